//! Setup of agents, and summaries of runs and sessions, as shared with the host and stored on disk.

use crate::config::ModelPrice;
use crate::model_call::ModelEndpoint;
use crate::router;
use crate::tool_spec::ToolSpec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::{CallUsage, DocId, RunDevice, RunEnding, RunOrigin};

/// Prefix of the keys under which run summaries are stored on disk.
pub const RUN_KEY_PREFIX: &str = "runs/";
/// Prefix of the keys under which session summaries are stored on disk.
pub const SESSION_KEY_PREFIX: &str = "sessions/";
/// Key under which the rules from the user's decisions are stored on disk.
pub const POLICY_RULES_KEY: &str = "policy";
/// Key under which recent latencies of providers are stored on disk.
pub const PROVIDER_LATENCIES_KEY: &str = "latencies";

/// Configuration, agents and tools for runs, which the host reads from files and servers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSetup {
    /// The configuration from `config.yaml`.
    pub config: crate::config::AgentConfig,
    /// Error in the configuration file, which prevents runs from starting.
    pub trouble: Option<String>,
    /// Why tools can't be sandboxed on this machine; `None` if they can.
    pub unconfined: Option<String>,
    /// The machine that runs tools.
    pub machine: crate::tool_machine::ToolMachine,
    /// Status of each provider, by name.
    pub known: BTreeMap<String, router::ProviderStatus>,
    /// Context sizes in tokens from the price list, by provider.
    pub contexts: BTreeMap<String, u64>,
    /// The user's own agents.
    pub agents: Vec<crate::agent_definition::AgentDefinition>,
    /// Tools in the plugins folder.
    pub plugins: Vec<store::UserTool>,
    /// Problems with plugin files and with servers, as text for the user.
    pub problems: Vec<String>,
    /// Values of this installation's keys, which no model and no log may contain.
    pub own_keys: crate::secrets::InstallationKeys,
    /// Tools of MCP servers: the server, the tool's name there, and its specification for models.
    pub servers: Vec<(String, String, ToolSpec)>,
    /// Prompts and resources of the MCP servers that have answered.
    pub offers: Vec<crate::server_material::ServerOffer>,
}

impl AgentSetup {
    /// Returns the names of the MCP servers that may be used.
    pub fn server_names(&self) -> Vec<&str> {
        let enabled = self.config.mcp.servers.iter().filter(|(_, server)| server.enabled.unwrap_or(true));
        enabled.map(|(name, _)| name.as_str()).collect()
    }

    /// Returns the price of a model; `None` if it's unknown.
    pub fn model_price(&self, endpoint: &ModelEndpoint) -> Option<ModelPrice> {
        // A stated price counts for a provider on this machine, too: it may pass requests on to a paid one.
        let stated = self.config.llm.providers.get(&endpoint.provider).and_then(|provider| provider.price);
        let known = || match endpoint.local {
            true => Some(ModelPrice { input: 0.0, output: 0.0 }),
            false => self.known.get(&endpoint.provider)?.price,
        };
        stated.or_else(known)
    }
}

/// Summary of a run, for lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The session that the run belongs to.
    pub session: DocId,
    /// The volume that the run works in.
    pub volume: DocId,
    /// The user's prompt, or its beginning.
    pub prompt: String,
    /// When the run started, in milliseconds since 1970.
    pub start_time: i64,
    /// When it ended, in milliseconds since 1970; `None` while it's active.
    pub ended: Option<i64>,
    /// How it ended; `None` while it's active.
    pub ending: Option<RunEnding>,
    /// Number of model calls.
    pub iteration: u64,
    /// Number of pending decisions.
    pub pending: usize,
    /// Tokens and money used so far.
    pub spent: CallUsage,
    /// Known part of the cost in US dollars, if the price of other calls is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_part: Option<f64>,
    /// Estimated usage of a paid model call that has begun and isn't in `spent` yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsettled: Option<CallUsage>,
    /// Number of steps.
    #[serde(default)]
    pub steps: usize,
    /// Name of the run's agent.
    #[serde(default)]
    pub agent: String,
    /// Who or what started the run.
    #[serde(default)]
    pub origin: RunOrigin,
    /// Current phase, from 1, if the agent works in phases; otherwise 0.
    #[serde(default)]
    pub phase: u8,
    /// The device that the run belongs to; `None` for this one.
    #[serde(default)]
    pub device: Option<RunDevice>,
    /// Budget in US dollars, including delegated work; `None` if not set.
    #[serde(default)]
    pub budget: Option<f64>,
    /// When it ends at the latest, in milliseconds since 1970; `None` if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<i64>,
    /// Paths of the first files that the run changed, one more than [`MAX_LISTED_CHANGES`] if there are more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// Maximum number of changed files that the summary of a run names.
const MAX_LISTED_CHANGES: usize = 32;

impl RunSummary {
    /// Returns the paths to list of changed files.
    pub fn listed_changes<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
        let mut listed: Vec<String> = Vec::new();
        for path in paths {
            if listed.len() <= MAX_LISTED_CHANGES && listed.iter().all(|known| known != path) {
                listed.push(path.to_owned());
            }
        }
        listed
    }

    /// Returns the cost so far in US dollars, as far as it's known.
    pub fn known_cost(&self) -> f64 {
        self.spent.cost.or(self.known_part).unwrap_or(0.0)
    }

    /// Returns whether the run may have changed the file at a path.
    pub fn may_have_changed(&self, path: &str) -> bool {
        self.changed.len() > MAX_LISTED_CHANGES || self.changed.iter().any(|changed| changed == path)
    }
}

/// Summary of a session, for lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// Title of the session.
    pub title: String,
    /// The volume that the session works in.
    pub volume: Option<DocId>,
    /// The note in which the session was started.
    pub note: Option<DocId>,
    /// When the last message was added, in milliseconds since 1970.
    pub updated: i64,
    /// Number of messages.
    pub messages: usize,
    /// Number of branches in the tree of messages.
    pub branches: usize,
    /// Whether the user has closed the session.
    #[serde(default)]
    pub closed: bool,
    /// Heads of the session's document, in the form of [`store::SessionDoc::heads`].
    #[serde(default)]
    pub heads: String,
}

/// Prefix of the keys under which costs outside of runs are stored on disk.
pub const EMBEDDING_COSTS_KEY_PREFIX: &str = "outlays/";
/// Milliseconds per day.
const DAY_MS: i64 = 86_400_000;

/// Cost of an embedding endpoint, for one call or one day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmbeddingCost {
    /// The endpoint and its model, such as `https://…/v1#model`.
    pub what: String,
    /// Number of calls.
    pub calls: u64,
    /// Number of input tokens.
    pub tokens: u64,
    /// Cost in US dollars of the calls with a known price.
    pub cost: f64,
    /// Number of calls with an unknown price.
    pub unknown: u64,
    /// When the last call was made, in milliseconds since 1970.
    pub at: i64,
}

impl EmbeddingCost {
    /// Returns the day of the last call, in days since 1970.
    pub fn day_number(&self) -> i64 {
        self.at.div_euclid(DAY_MS)
    }
}
