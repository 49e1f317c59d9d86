//! The configuration: YAML in the format of `mixos-go.md` (shared/reference), plus rules for the router, cost limits,
//! MCP servers and hosts. Files are parsed strictly: an unknown key or a value of the wrong type is an error with line
//! and column. Then they are merged over `system::DEFAULT_CONFIG`, which names every key. The host knows where the
//! files are.

mod acp_agents;
mod mcp_oauth;
mod rule_providers;
mod sandbox;
mod values;
mod volumes;
mod watchdog;

use crate::deadline::Deadline;
use crate::external_program::is_known_program;
use crate::memory::place::MemoryPlace;
use crate::memory::trace_trust::DEFAULT_FOLLOW_CONFIDENCE;
use crate::model_call::{ModelEndpoint, ToolCallChoice, WireProtocol};
use crate::router::RoutingCondition;
use crate::tool_spec::ToolRisk;
pub use acp_agents::{AcpAgentConfig, external_programs};
pub use mcp_oauth::{McpIdentityConfig, McpOauthConfig, McpOauthGrant};
pub use rule_providers::RuleProviders;
pub use sandbox::{SandboxConfig, SandboxLimits, SandboxPaths};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
pub use values::is_local;
pub use volumes::{VolumeConfig, VolumeKind, VolumeSettings, branch_refusal, read_only_sentence, remote_refusal};
pub use watchdog::{RunStop, WatchdogConfig, WatchdogLimits};

/// Maximum size of a configuration file in bytes.
const MAX_CONFIG_FILE_BYTES: usize = 1 << 20;
/// Maximum length of the name of a program that works as an agent, in characters.
const MAX_AGENT_NAME_CHARS: usize = 60;
/// Context size in tokens that is assumed for an unknown model.
pub const DEFAULT_CONTEXT_TOKENS: u64 = 32_768;
/// Default context size of Ollama's models in tokens. Ollama silently truncates longer input.
pub const OLLAMA_CONTEXT_TOKENS: u64 = 4_096;

/// The complete `config.yaml`, with defaults filled in.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentConfig {
    /// Settings of the runtime.
    #[serde(deserialize_with = "values::section")]
    pub runtime: RuntimeConfig,
    /// Providers, prices and routing of language models.
    #[serde(deserialize_with = "values::section")]
    pub llm: LlmConfig,
    /// Provider of each agent.
    #[serde(deserialize_with = "values::section")]
    pub agents: AgentsConfig,
    /// Which tool calls need the user's approval.
    #[serde(deserialize_with = "values::section")]
    pub approval: ApprovalConfig,
    /// Sandbox and network access of tools.
    #[serde(deserialize_with = "values::section")]
    pub security: SecurityConfig,
    /// Tools of other programs, by MCP.
    #[serde(deserialize_with = "values::section")]
    pub mcp: McpConfig,
    /// Programs that work as agents, by name.
    #[serde(deserialize_with = "values::section")]
    pub acp_agents: BTreeMap<String, AcpAgentConfig>,
    /// Settings of memory.
    #[serde(deserialize_with = "values::section")]
    pub memory: MemoryConfig,
    /// Monthly spending limits.
    #[serde(deserialize_with = "values::section")]
    pub budget: BudgetConfig,
    /// How long models, tools and runs may take.
    #[serde(deserialize_with = "values::section")]
    pub watchdog: WatchdogConfig,
    /// Limits of what runs in the sandbox.
    #[serde(deserialize_with = "values::section")]
    pub sandbox: SandboxConfig,
    /// Resource limits of kernels.
    #[serde(deserialize_with = "values::section")]
    pub kernels: KernelsConfig,
    /// The browser of agents.
    #[serde(deserialize_with = "values::section")]
    pub browser: BrowserConfig,
    /// The containers of agents.
    #[serde(deserialize_with = "values::section")]
    pub containers: ContainersConfig,
    /// Who is told about runs.
    #[serde(deserialize_with = "values::section")]
    pub notifications: NotificationsConfig,
    /// Where packages come from.
    #[serde(deserialize_with = "values::section")]
    pub packages: PackagesConfig,
    /// Where the program checks for updates.
    #[serde(deserialize_with = "values::section")]
    pub update: UpdateConfig,
    /// Settings of volumes, by name.
    #[serde(deserialize_with = "values::section")]
    pub volumes: VolumeSettings,
}

impl AgentConfig {
    /// Returns the names of the volumes that nothing may change.
    pub fn read_only_volumes(&self) -> BTreeSet<String> {
        self.volumes.read_only_names()
    }
}

/// Resource limits of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KernelsConfig {
    /// Maximum size in megabytes of a note's saved kernel states.
    #[serde(deserialize_with = "values::plain")]
    pub states_budget_mb: u64,
    /// Maximum size in megabytes of the saved kernel states of all notes in a workspace.
    #[serde(deserialize_with = "values::plain")]
    pub workspace_states_budget_mb: u64,
}

impl Default for KernelsConfig {
    fn default() -> KernelsConfig {
        KernelsConfig { states_budget_mb: 512, workspace_states_budget_mb: 4_096 }
    }
}

/// Where packages come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PackagesConfig {
    /// Indexes that are searched, in this order: folders, https addresses of an `index.json`, and Git repositories.
    pub indexes: Vec<String>,
}

/// Where the program checks for updates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UpdateConfig {
    /// URL of a release's `latest.json`. If empty, the program never checks for updates.
    pub url: String,
}

/// Who is told about runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotificationsConfig {
    /// URL that gets a JSON message when a run finishes, fails or waits for an approval; `None` for no messages.
    #[serde(deserialize_with = "values::webhook")]
    pub webhook: Option<String>,
}

/// Spending limits per calendar month (UTC).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetConfig {
    /// Limit for all runs in US dollars; `None` means no limit.
    #[serde(deserialize_with = "values::dollars")]
    pub month: Option<f64>,
    /// Limit for the runs of one project in US dollars; `None` means no limit.
    #[serde(deserialize_with = "values::dollars")]
    pub project: Option<f64>,
    /// Price of the embedding endpoint in US dollars per million tokens. `None` uses the price list; a local endpoint
    /// is free.
    #[serde(deserialize_with = "values::dollars")]
    pub embeddings: Option<f64>,
}

/// Settings of memory: what is kept, recalled and replayed.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryConfig {
    /// Whether successful runs become traces, and all runs become experiences.
    #[serde(deserialize_with = "values::plain")]
    pub learn: bool,
    /// Where memory is kept. `None` means the project's folder if runs already keep it there, otherwise the workspace.
    pub place: Option<MemoryPlace>,
    /// When memory is consolidated without being told to.
    pub consolidate: ConsolidationTime,
    /// Confidence, 0 to 1, above which a trace is replayed without being told to; see
    /// [`trace_trust`](crate::memory::trace_trust). At 1 only pinned traces are.
    #[serde(deserialize_with = "values::share")]
    pub follow_confidence: f64,
}

impl Default for MemoryConfig {
    fn default() -> MemoryConfig {
        let consolidate = ConsolidationTime::Never;
        MemoryConfig { learn: false, place: None, consolidate, follow_confidence: DEFAULT_FOLLOW_CONFIDENCE }
    }
}

impl MemoryConfig {
    /// Returns whether memory is consolidated after sessions. What isn't kept can't be consolidated.
    pub fn consolidates_after_sessions(&self) -> bool {
        self.learn && self.consolidate == ConsolidationTime::AfterSessions
    }
}

/// When memory is consolidated without being told to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConsolidationTime {
    /// Only when the user or a schedule asks for it.
    #[default]
    Never,
    /// When no agent has worked in a volume for a while, or the command that asked one ends.
    AfterSessions,
}

/// How many tool calls a run makes in parallel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuntimeProfile {
    /// Runs one tool call at a time.
    Minimal,
    /// Runs up to four tool calls in parallel. Suits most machines.
    #[default]
    Standard,
    /// Runs up to eight tool calls in parallel.
    Performance,
}

impl RuntimeProfile {
    /// Returns how many tool calls of one turn may run in parallel.
    pub fn max_parallel_tools(self) -> usize {
        match self {
            RuntimeProfile::Minimal => 1,
            RuntimeProfile::Standard => 4,
            RuntimeProfile::Performance => 8,
        }
    }
}

/// How much the command line reports on standard error during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Reports failures and retries.
    #[default]
    Error,
    /// Also reports which model was chosen, and why.
    Info,
    /// Also reports each step.
    Debug,
}

/// Parallelism, default workspace and logging of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuntimeConfig {
    /// How many tool calls a run makes in parallel.
    pub profile: RuntimeProfile,
    /// Workspace to open if none is named; empty for the platform's default.
    pub data_dir: String,
    /// How much the command line reports on standard error.
    pub log_level: LogLevel,
}

/// Providers of language models, and how one is chosen for a request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LlmConfig {
    /// Provider to use if no rule applies.
    pub default_provider: String,
    /// Whether a provider on this machine is preferred to the default one.
    #[serde(deserialize_with = "values::plain")]
    pub prefer_local: bool,
    /// Whether the cheapest of the providers that may be asked unasked goes first: local ones, the default one and the
    /// fallback chain.
    #[serde(deserialize_with = "values::plain")]
    pub prefer_cheapest: bool,
    /// Cost limit per session in US dollars; `None` means no limit.
    #[serde(deserialize_with = "values::dollars")]
    pub cost_limit: Option<f64>,
    /// Cost limit per request in US dollars; `None` means no limit.
    #[serde(deserialize_with = "values::dollars")]
    pub request_cost_limit: Option<f64>,
    /// Providers known to be slower than this, in milliseconds, are skipped if another is available.
    #[serde(deserialize_with = "values::plain")]
    pub latency_target: Option<u64>,
    /// Providers to try, in this order, if the chosen one doesn't answer.
    pub fallback: Vec<String>,
    /// Rules that choose a provider by request.
    #[serde(deserialize_with = "values::section")]
    pub rules: Vec<RoutingRule>,
    /// All providers, by name.
    #[serde(deserialize_with = "values::section")]
    pub providers: BTreeMap<String, ProviderConfig>,
}

/// A rule that chooses the provider for some requests.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoutingRule {
    /// Requests that the rule applies to.
    pub when: RoutingCondition,
    /// The providers to use.
    #[serde(rename = "use")]
    pub providers: RuleProviders,
    /// Rules with a higher priority are checked first.
    #[serde(default, deserialize_with = "values::plain")]
    pub priority: i64,
}

/// Price in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// Price of input tokens.
    #[serde(deserialize_with = "values::amount")]
    pub input: f64,
    /// Price of output tokens.
    #[serde(deserialize_with = "values::amount")]
    pub output: f64,
}

impl ModelPrice {
    /// Returns the cost of these tokens in US dollars.
    pub fn of(self, input: u64, output: u64) -> f64 {
        (self.input * input as f64 + self.output * output as f64) / 1e6
    }
}

/// A provider of language models.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderConfig {
    /// Whether the provider may be used; `None` means yes.
    #[serde(deserialize_with = "values::plain")]
    pub enabled: Option<bool>,
    /// API protocol of the provider; `None` derives it from the provider's name, with OpenAI's as the fallback.
    pub wire: Option<WireProtocol>,
    /// Base URL; `None` for the provider's public address.
    #[serde(deserialize_with = "values::address")]
    pub base_url: Option<String>,
    /// The model's name at the provider.
    pub model: String,
    /// Name under which the API key is stored, never the key itself; `None` if the provider needs no key.
    #[serde(deserialize_with = "values::key")]
    pub api_key: Option<String>,
    /// Whether the provider runs on this machine; `None` derives it from the address.
    #[serde(deserialize_with = "values::plain")]
    pub local: Option<bool>,
    /// Context size in tokens; `None` uses the price list.
    #[serde(deserialize_with = "values::plain")]
    pub context: Option<u64>,
    /// Maximum length of an answer in tokens; `None` uses the provider's default.
    #[serde(deserialize_with = "values::plain")]
    pub max_tokens: Option<u32>,
    /// Sampling temperature, 0 to 2; `None` uses the provider's default.
    #[serde(deserialize_with = "values::temperature")]
    pub temperature: Option<f64>,
    /// Price of the model; `None` uses the price list.
    pub price: Option<ModelPrice>,
}

impl ProviderConfig {
    /// Returns whether the provider may be used.
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }
}

/// Settings of the lead agent and of specialists.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentsConfig {
    /// Settings of the lead agent, and of agents that aren't in `specialists`.
    #[serde(deserialize_with = "values::section")]
    pub lead: AgentChoice,
    /// Settings of other agents, by name.
    #[serde(deserialize_with = "values::section")]
    pub specialists: BTreeMap<String, AgentChoice>,
}

/// Settings of one agent. They win over those in the agent's own file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentChoice {
    /// Whether the agent may be used; `None` means yes.
    #[serde(deserialize_with = "values::plain")]
    pub enabled: Option<bool>,
    /// Provider that the agent always uses; `None` follows the routing rules.
    pub llm_provider: Option<String>,
    /// Maximum length of an answer in tokens, at least 1; `None` uses the provider's limit.
    #[serde(deserialize_with = "values::tokens")]
    pub max_tokens: Option<u32>,
    /// Sampling temperature, 0 to 2; `None` uses the provider's.
    #[serde(deserialize_with = "values::temperature")]
    pub temperature: Option<f64>,
    /// Whether the model has to call a tool: auto, required (for the first answer) or none.
    pub tool_choice: Option<ToolCallChoice>,
    /// Names of the tools that the agent may use; `None` uses those of its own file.
    pub tools: Option<Vec<String>>,
    /// When a run of the agent ends at the latest.
    pub deadline: Option<Deadline>,
    /// Time limits that differ from those of all.
    #[serde(deserialize_with = "values::section")]
    pub watchdog: WatchdogConfig,
    /// Limits of the agent's sandbox, which tighten those of all.
    #[serde(deserialize_with = "values::section")]
    pub sandbox: SandboxConfig,
}

/// Which tool calls need the user's approval.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalConfig {
    /// Tool calls with a lower risk than this run without approval: none, low or medium.
    #[serde(deserialize_with = "values::level")]
    pub auto_approve_level: ToolRisk,
    /// Seconds after which a pending approval counts as denied.
    #[serde(deserialize_with = "values::seconds")]
    pub timeout_seconds: u64,
    /// Tools that need approval whatever their risk. Takes precedence over `never_approve`.
    pub always_approve: Vec<String>,
    /// Tools that never need approval.
    pub never_approve: Vec<String>,
    /// Tools that are never called, whatever other rules say.
    pub deny: Vec<String>,
}

impl Default for ApprovalConfig {
    fn default() -> ApprovalConfig {
        ApprovalConfig {
            auto_approve_level: ToolRisk::Medium,
            timeout_seconds: 300,
            always_approve: Vec::new(),
            never_approve: Vec::new(),
            deny: Vec::new(),
        }
    }
}

/// Sandbox and network access of tools.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecurityConfig {
    /// Whether shell and Python tools may run without approval because they are in the sandbox. If not, each of their
    /// calls needs approval. They are in the sandbox all the same.
    #[serde(deserialize_with = "values::plain")]
    pub sandbox_enabled: bool,
    /// Whether tools may reach only the allowed hosts; otherwise the user is asked about others.
    #[serde(deserialize_with = "values::plain")]
    pub network_restricted: bool,
    /// Allowed hosts; a leading `.` includes all subdomains.
    pub allowed_hosts: Vec<String>,
}

impl Default for SecurityConfig {
    fn default() -> SecurityConfig {
        SecurityConfig { sandbox_enabled: true, network_restricted: false, allowed_hosts: Vec::new() }
    }
}

/// The browser that agents open pages with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BrowserConfig {
    /// Path or name of its program; `None` for the first Chromium or Chrome that's installed.
    pub program: Option<String>,
}

/// The engine that runs agents' containers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContainersConfig {
    /// Path of its Unix socket; `None` for the one that is found.
    pub socket: Option<String>,
}

/// Tools of other programs, by MCP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpConfig {
    /// Servers of the Model Context Protocol, by name.
    #[serde(deserialize_with = "values::section")]
    pub servers: BTreeMap<String, McpServerConfig>,
}

/// An MCP server: a local program or a remote address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpServerConfig {
    /// Whether the server may be used; `None` means yes.
    #[serde(deserialize_with = "values::plain")]
    pub enabled: Option<bool>,
    /// The program that starts a local server.
    pub command: Option<String>,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Environment variables of the program; values may contain `${NAME}`.
    #[serde(deserialize_with = "values::hidden")]
    pub env: BTreeMap<String, String>,
    /// The address of a remote server.
    #[serde(deserialize_with = "values::address")]
    pub url: Option<String>,
    /// HTTP headers; values may contain `${NAME}`.
    #[serde(deserialize_with = "values::hidden")]
    pub headers: BTreeMap<String, String>,
    /// How the user signs in at a remote server with OAuth.
    #[serde(deserialize_with = "values::section")]
    pub oauth: McpOauthConfig,
}

/// An error in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The file's name, as passed to [`ConfigLayer::parse`].
    pub file: String,
    /// Line and column, from 1; `None` if the error concerns the whole file.
    pub place: Option<(u64, u64)>,
    /// Description of the error: a sentence without its period.
    pub what: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((line, column)) => write!(f, "{}:{line}:{column}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

/// A contradiction in a configuration whose files are well-formed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum ConfigConflictError {
    #[error("{at}: there is no provider “{name}” under llm.providers; there are {known}")]
    UnknownProvider { at: String, name: String, known: String },
    #[error("llm.providers.{provider}.model is missing: name the model, or set enabled to false")]
    ModelMissing { provider: String },
    #[error("mcp.servers.{server} has both a command and a url; it takes one of them")]
    CommandAndUrl { server: String },
    #[error("mcp.servers.{server} needs a command or a url")]
    NoCommandOrUrl { server: String },
    #[error("mcp.servers.{server} has headers, but a command takes env")]
    CommandWithHeaders { server: String },
    #[error("mcp.servers.{server} has oauth, but nobody signs in at a command")]
    CommandWithOauth { server: String },
    #[error("mcp.servers.{server}.oauth.{key} must be ${{NAME}}; `tracebook secrets set NAME` keeps it")]
    PlainClientSecret { server: String, key: &'static str },
    #[error(
        "mcp.servers.{server}.oauth with grant: client_credentials needs client_id, and either client_secret or \
         private_key"
    )]
    NoClientCredentials { server: String },
    #[error("mcp.servers.{server}.oauth.private_key is for grant: client_credentials")]
    KeyWithoutGrant { server: String },
    #[error(
        "mcp.servers.{server}.oauth with grant: cross_app_access needs client_id, client_secret, and identity_provider \
         with issuer, token_endpoint, client_id, and either id_token or refresh_token"
    )]
    IncompleteIdentity { server: String },
    #[error("mcp.servers.{server}.oauth.identity_provider is for grant: cross_app_access")]
    IdentityWithoutGrant { server: String },
    #[error("mcp.servers.{server}.oauth.identity_provider.{key} must begin with https://, because tokens go there")]
    PlainIdentityAddress { server: String, key: &'static str },
    #[error("mcp.servers.{server} has args or env, but a url takes headers")]
    UrlWithArguments { server: String },
    #[error("acp_agents.{agent} needs a command that starts it")]
    NoAgentCommand { agent: String },
    #[error("acp_agents: an agent's name has up to 60 letters, digits, - and _, not “{agent}”")]
    AgentName { agent: String },
}

/// A parsed configuration file that is well-formed.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigLayer {
    file: String,
    value: Value,
}

impl ConfigLayer {
    /// Parses the text of a configuration file. Errors refer to it as `file`.
    ///
    /// # Errors
    /// Returns an error if the text is too long, isn't YAML, has unknown keys, or has values of the wrong type.
    pub fn parse(file: &str, text: &str) -> Result<ConfigLayer, ConfigError> {
        let error = |place, what: String| ConfigError { file: file.to_owned(), place, what };
        if text.len() > MAX_CONFIG_FILE_BYTES {
            return Err(error(None, format!("it is longer than {MAX_CONFIG_FILE_BYTES} bytes")));
        }
        let said = |why: serde_saphyr::Error| {
            let place = why.location().map(|place| (place.line(), place.column())).filter(|place| place.0 > 0);
            error(place, values::error_text(&why))
        };
        let empty = text.lines().all(|line| line.trim_start().starts_with('#') || line.trim().is_empty());
        if empty {
            return Ok(ConfigLayer { file: file.to_owned(), value: Value::Object(serde_json::Map::new()) });
        }
        text::yaml_edit::parse_typed_with::<AgentConfig>(text, values::strict_yaml_options()).map_err(said)?;
        let value = text::yaml_edit::parse_typed_with::<Value>(text, values::strict_yaml_options()).map_err(said)?;
        Ok(ConfigLayer { file: file.to_owned(), value })
    }
}

/// Merges files over [`system::DEFAULT_CONFIG`], in ascending precedence. Later values replace earlier ones; maps are
/// merged, lists are replaced as a whole.
///
/// # Errors
/// Returns an error if the files are valid but contradict each other, such as by naming a provider that doesn't exist.
pub fn merge(layers: &[ConfigLayer]) -> Result<AgentConfig, ConfigError> {
    let mut whole = ConfigLayer::parse("the default configuration", system::DEFAULT_CONFIG)?.value;
    for layer in layers {
        merge_values(&mut whole, &layer.value);
    }
    let file = layers.last().map_or("the default configuration", |layer| layer.file.as_str());
    let error = |what: String| ConfigError { file: file.to_owned(), place: None, what };
    let config = serde_json::from_value::<AgentConfig>(whole).map_err(|why| error(why.to_string()))?;
    config.validate().map_err(|why| error(why.to_string()))?;
    Ok(config)
}

fn merge_values(below: &mut Value, above: &Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                merge_values(below.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        // A key without a value, such as a section whose lines are all comments, changes nothing.
        (Value::Object(_) | Value::Array(_), Value::Null) => {}
        (below, above) => *below = above.clone(),
    }
}

impl AgentConfig {
    /// Returns the model endpoint of a provider.
    pub fn endpoint(&self, name: &str) -> Option<ModelEndpoint> {
        let provider = self.llm.providers.get(name)?;
        let wire = provider.wire.unwrap_or(values::default_wire_protocol(name));
        let near = || match (&provider.base_url, wire) {
            (Some(address), _) => is_local(address),
            (None, wire) => wire == WireProtocol::Ollama,
        };
        Some(ModelEndpoint {
            provider: name.to_owned(),
            wire,
            base_url: provider.base_url.clone(),
            model: provider.model.clone(),
            key: provider.api_key.clone(),
            local: provider.local.unwrap_or_else(near),
        })
    }

    /// Checks constraints between keys.
    fn validate(&self) -> Result<(), ConfigConflictError> {
        let llm = &self.llm;
        let known = |name: &str, at: &str| match llm.providers.contains_key(name) {
            true => Ok(()),
            false => {
                let known = llm.providers.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                Err(ConfigConflictError::UnknownProvider { at: at.to_owned(), name: name.to_owned(), known })
            }
        };
        known(&llm.default_provider, "llm.default_provider")?;
        for (at, name) in llm.fallback.iter().enumerate() {
            known(name, &format!("llm.fallback, entry {}", at + 1))?;
        }
        for (at, rule) in llm.rules.iter().enumerate() {
            for name in rule.providers.names() {
                known(name, &format!("llm.rules, rule {}", at + 1))?;
            }
        }
        for (name, agent) in std::iter::once(("lead", &self.agents.lead))
            .chain(self.agents.specialists.iter().map(|(name, agent)| (name.as_str(), agent)))
        {
            if let Some(provider) = &agent.llm_provider {
                known(provider, &format!("the llm_provider of the agent “{name}”"))?;
            }
        }
        for (name, provider) in &llm.providers {
            if provider.is_enabled() && provider.model.trim().is_empty() {
                return Err(ConfigConflictError::ModelMissing { provider: name.clone() });
            }
        }
        for (name, program) in &self.acp_agents {
            let fits = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
            if name.is_empty() || name.chars().count() > MAX_AGENT_NAME_CHARS || !name.chars().all(fits) {
                return Err(ConfigConflictError::AgentName { agent: name.clone() });
            }
            let is_startable = match &program.command {
                Some(command) => !command.trim().is_empty(),
                None => is_known_program(name) || program.enabled == Some(false),
            };
            if !is_startable {
                return Err(ConfigConflictError::NoAgentCommand { agent: name.clone() });
            }
        }
        for (name, server) in &self.mcp.servers {
            let name = || name.clone();
            match (&server.command, &server.url) {
                (Some(_), Some(_)) => return Err(ConfigConflictError::CommandAndUrl { server: name() }),
                (None, None) => return Err(ConfigConflictError::NoCommandOrUrl { server: name() }),
                (Some(_), None) if !server.headers.is_empty() => {
                    return Err(ConfigConflictError::CommandWithHeaders { server: name() });
                }
                (Some(_), None) if server.oauth != McpOauthConfig::default() => {
                    return Err(ConfigConflictError::CommandWithOauth { server: name() });
                }
                (None, Some(_)) if !server.args.is_empty() || !server.env.is_empty() => {
                    return Err(ConfigConflictError::UrlWithArguments { server: name() });
                }
                (Some(_), None) | (None, Some(_)) => server.oauth.check(name)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
