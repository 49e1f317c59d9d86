//! Agent definitions: Markdown files with the agent's name and tools in the front matter, and its prompt as the text.

use crate::config::{AgentsConfig, SandboxConfig, WatchdogConfig, WatchdogLimits};
use crate::deadline::Deadline;
use crate::external_program::ExternalProgram;
use crate::model_call::ToolCallChoice;
use crate::name_suggestions::closest_names;
use crate::prompt_quote::quote_inline;
use crate::tool_spec::ToolSpec;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Definition of an agent: the front matter of its file, and its prompt.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AgentDefinition {
    /// The agent's name, which a mention uses after `@`.
    pub name: String,
    /// When to use the agent, in one sentence.
    pub description: String,
    /// Names of the tools that the agent may use; `None` allows all.
    pub tools: Option<Vec<String>>,
    /// Lowercase words of goals that this agent handles. The beginning of a longer word is enough.
    pub when: Vec<String>,
    /// The agent's role, one of `mixos-go.md` (shared/reference) or another word; the name if none is given.
    pub role: Option<String>,
    /// What the agent is good at, such as `api_design`.
    pub capabilities: Vec<String>,
    /// Provider that the agent always uses; `None` follows the routing rules.
    pub llm_provider: Option<String>,
    /// Maximum length of an answer in tokens, at least 1; `None` uses the provider's limit.
    pub max_tokens: Option<u32>,
    /// Sampling temperature, 0 to 2; `None` uses the provider's.
    pub temperature: Option<f64>,
    /// Whether the model has to call a tool: auto, required (for the first answer) or none.
    pub tool_choice: Option<ToolCallChoice>,
    /// When a run of the agent ends at the latest.
    pub deadline: Option<Deadline>,
    /// Time limits that differ from those in `config.yaml`.
    pub watchdog: WatchdogConfig,
    /// Limits of the sandbox, which tighten those in `config.yaml`.
    pub sandbox: SandboxConfig,
    /// Keys of the front matter that mean nothing here.
    #[serde(flatten)]
    pub other_keys: BTreeMap<String, serde_json::Value>,
    /// Instructions for the model.
    #[serde(skip)]
    pub prompt: String,
    /// Path of the file: in the volume for a project's agent, otherwise on this machine. `None` for built-in agents.
    #[serde(skip)]
    pub path: Option<String>,
    /// The volume that it comes from, if that isn't the one in which it's called. Its name begins with the volume's.
    #[serde(skip)]
    pub volume: Option<String>,
    /// The program that does the work, if it isn't a model. No file of a project can name one.
    #[serde(skip)]
    pub program: Option<ExternalProgram>,
}

/// Name of the agent that answers if no other is named.
pub const DEFAULT_AGENT: &str = "assistant";
/// The agent that answers questions about earlier work.
pub const MEMORY_ANALYSIS_AGENT: &str = "memory-analysis";
/// The agent that consolidates logs into long-term notes.
const MEMORY_CONSOLIDATION_AGENT: &str = "memory-consolidation";
/// Name of the agent behind a button of a generated view. It calls one tool and no model.
pub const BUTTON_AGENT: &str = "button";
/// System prompt of the model that writes summaries.
pub const SUMMARY_AGENT_PROMPT: &str = system::SUMMARY_PROMPT;

/// Why a text isn't a valid agent definition.
#[derive(Debug, thiserror::Error)]
pub enum AgentDefinitionError {
    /// The text has no front matter.
    #[error("an agent's file begins with front matter, between two lines ---")]
    NoFrontMatter,
    /// The front matter has no closing `---` line.
    #[error("the front matter has no end: a line ---")]
    OpenFrontMatter,
    /// The front matter isn't YAML of the expected form.
    #[error("the front matter cannot be read: {0}")]
    FrontMatter(#[from] serde_saphyr::Error),
    /// The front matter has no name.
    #[error("the front matter gives the agent no name")]
    NoName,
    /// The name is longer than 60 characters or contains control characters, so it doesn't fit on a line.
    #[error("the agent's name is longer than 60 characters, or has more than one line")]
    LongName,
    /// The sampling temperature is out of range.
    #[error("temperature takes 0 to 2, not {0}")]
    Temperature(f64),
    /// No answer fits into the limit of tokens.
    #[error("max_tokens takes 1 or more")]
    NoTokens,
}

/// Keys that an agent's front matter may have.
const KNOWN_KEYS: [&str; 13] = [
    "name",
    "description",
    "tools",
    "when",
    "role",
    "capabilities",
    "llm_provider",
    "max_tokens",
    "temperature",
    "tool_choice",
    "deadline",
    "watchdog",
    "sandbox",
];
/// Keys that notes have whatever they describe, so that an agent's file may have them, too.
const NOTE_KEYS: [&str; 10] =
    ["tags", "aliases", "cssclasses", "created", "updated", "date", "id", "title", "version", "author"];

impl AgentDefinition {
    /// Parses an agent definition from the text of its file.
    ///
    /// # Errors
    /// Returns an [`AgentDefinitionError`] if the front matter is missing or invalid, or its name is missing or too
    /// long.
    pub fn parse(text: &str) -> Result<AgentDefinition, AgentDefinitionError> {
        let rest = text.strip_prefix("---\n").ok_or(AgentDefinitionError::NoFrontMatter)?;
        let (front, prompt) = rest.split_once("\n---\n").ok_or(AgentDefinitionError::OpenFrontMatter)?;
        let mut definition: AgentDefinition = text::yaml_edit::parse_typed(front)?;
        if definition.name.trim().is_empty() {
            return Err(AgentDefinitionError::NoName);
        }
        if definition.name.chars().count() > 60 || definition.name.chars().any(char::is_control) {
            return Err(AgentDefinitionError::LongName);
        }
        if let Some(value) = definition.temperature.filter(|value| !(0.0..=2.0).contains(value)) {
            return Err(AgentDefinitionError::Temperature(value));
        }
        if definition.max_tokens == Some(0) {
            return Err(AgentDefinitionError::NoTokens);
        }
        prompt.trim().clone_into(&mut definition.prompt);
        Ok(definition)
    }

    /// Returns a sentence, without its period, for each key of the front matter that changes nothing.
    pub fn unknown_keys(&self) -> Vec<String> {
        let unknown = self.other_keys.keys().filter(|key| !NOTE_KEYS.contains(&key.as_str())).take(5);
        let told = |key: &String| {
            let near = closest_names(key, KNOWN_KEYS.into_iter());
            let hint = match near.is_empty() {
                true => format!("an agent has {}", KNOWN_KEYS.join(", ")),
                false => format!("did you mean {}?", near.join(" or ")),
            };
            format!("the key {} of an agent changes nothing; {hint}", quote_inline(key, 60))
        };
        unknown.map(told).collect()
    }

    /// Replaces what the configuration states for the agent with this name. `lead` states it for all agents that aren't
    /// in `specialists`, but its list of tools only for the assistant: others have lists of their own.
    pub fn apply_choice(&mut self, name: &str, agents: &AgentsConfig) {
        let own = agents.specialists.get(name);
        let choice = own.unwrap_or(&agents.lead);
        // An agent's own file says more about it than the settings of all agents.
        let prefers_own_file = own.is_none() && name != DEFAULT_AGENT;
        let choose = |stated: bool, in_file: bool| stated && !(prefers_own_file && in_file);
        if choose(choice.llm_provider.is_some(), self.llm_provider.is_some()) {
            self.llm_provider.clone_from(&choice.llm_provider);
        }
        if choose(choice.max_tokens.is_some(), self.max_tokens.is_some()) {
            self.max_tokens = choice.max_tokens;
        }
        if choose(choice.temperature.is_some(), self.temperature.is_some()) {
            self.temperature = choice.temperature;
        }
        if choose(choice.deadline.is_some(), self.deadline.is_some()) {
            self.deadline = choice.deadline;
        }
        self.watchdog = match prefers_own_file {
            true => self.watchdog.or(choice.watchdog),
            false => choice.watchdog.or(self.watchdog),
        };
        if choose(choice.tool_choice.is_some(), self.tool_choice.is_some()) {
            self.tool_choice = choice.tool_choice;
        }
        if choice.tools.is_some() && !prefers_own_file {
            self.tools.clone_from(&choice.tools);
        }
    }

    /// Returns the time limits of the agent's runs: its own ones, or else these.
    pub fn watchdog_limits(&self, all: &WatchdogConfig) -> WatchdogLimits {
        WatchdogLimits { deadline: self.deadline, ..all.for_agent(&self.watchdog) }
    }

    /// Returns the agent's role: the stated one, or its name.
    pub fn role(&self) -> &str {
        self.role.as_deref().map(str::trim).filter(|role| !role.is_empty()).unwrap_or(&self.name)
    }

    /// Returns those of `tools` that the agent may use.
    pub fn allowed_tools(&self, tools: Vec<ToolSpec>) -> Vec<ToolSpec> {
        match &self.tools {
            None => tools,
            Some(names) => tools.into_iter().filter(|tool| names.contains(&tool.name)).collect(),
        }
    }

    /// Returns the system prompt: who the agent is, and its context.
    pub fn build_prompt(&self, surroundings: &str) -> String {
        // Fenced calls aren't mentioned here: a small model that reads about them writes a mix of a fenced and a native
        // call.
        format!("{}\n\n{surroundings}", self.prompt)
    }
}

/// Names of built-in agents for software developers.
const DEVELOPER_AGENTS: [&str; 6] = ["backend", "devops", "frontend", "mobile", "qa", "security"];

/// Returns whether this is the name of a built-in agent for software developers.
pub fn is_developer_agent(name: &str) -> bool {
    DEVELOPER_AGENTS.contains(&name)
}

/// Returns the built-in agents.
pub fn built_in() -> Vec<AgentDefinition> {
    system::BUILT_IN_AGENTS
        .iter()
        .filter_map(|(_, text)| AgentDefinition::parse(std::str::from_utf8(text).ok()?).ok())
        .collect()
}

/// Returns the agent with this name. The user's own agents win over built-in ones; the assistant is the fallback.
pub fn find(name: &str, own: &[AgentDefinition]) -> AgentDefinition {
    if let Some(agent) = own.iter().find(|agent| agent.name == name) {
        return agent.clone();
    }
    let mut all = built_in();
    let at = all.iter().position(|agent| agent.name == name).unwrap_or(0);
    if all.is_empty() { AgentDefinition::default() } else { all.swap_remove(at) }
}

/// Returns whether the agent is a memory agent, whose work doesn't need a model.
pub fn is_memory_agent(name: &str) -> bool {
    matches!(name, MEMORY_ANALYSIS_AGENT | MEMORY_CONSOLIDATION_AGENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_all_agents_leave_the_limits_in_an_own_file() {
        let limits = |tool: u64| WatchdogConfig { tool: Some(tool), ..WatchdogConfig::default() };
        let mut agents = AgentsConfig::default();
        agents.lead.deadline = Some(Deadline::After(7_000));
        agents.lead.watchdog = WatchdogConfig { run: Some(9_000), ..limits(5_000) };
        let own = AgentDefinition { watchdog: limits(2_000), ..AgentDefinition::default() };
        let chosen = |name: &str| {
            let mut agent = own.clone();
            agent.apply_choice(name, &agents);
            (agent.watchdog.tool, agent.watchdog.run, agent.deadline)
        };
        let deadline = Some(Deadline::After(7_000));
        assert_eq!(chosen("editor"), (Some(2_000), Some(9_000), deadline));
        assert_eq!(chosen(DEFAULT_AGENT), (Some(5_000), Some(9_000), deadline));
    }

    #[test]
    fn definitions_are_read() {
        assert_eq!(built_in().len(), system::BUILT_IN_AGENTS.len(), "each that ships can be read");
        assert_eq!(find("nobody", &[]).name, "assistant");
        let read = AgentDefinition::parse("---\nname: qa\ntools: [search]\n---\nYou test.\n").expect("read");
        assert_eq!((read.name.as_str(), read.prompt.as_str()), ("qa", "You test."));
        assert_eq!(find("qa", std::slice::from_ref(&read)), read);
        assert_eq!(read.allowed_tools(crate::tool_catalog::built_in()).len(), 1);
        let read = AgentDefinition::parse(
            "---\nname: x\ntemprature: 1\ntags: [a]\nmax_tokens: 50\ntemperature: 0.5\nllm_provider: near\n---\nX.\n",
        )
        .expect("read");
        assert_eq!((read.max_tokens, read.temperature, read.role()), (Some(50), Some(0.5), "x"));
        assert_eq!(
            read.unknown_keys(),
            ["the key “temprature” of an agent changes nothing; did you mean temperature?"],
        );
        for agent in built_in() {
            assert!(agent.unknown_keys().is_empty(), "{agent:?}");
        }
        for out_of_range in ["temperature: 3", "temperature: -1", "max_tokens: 0", "max_tokens: -5", "max_tokens: many"]
        {
            let text = format!("---\nname: x\n{out_of_range}\n---\nX.\n");
            assert!(AgentDefinition::parse(&text).is_err(), "{out_of_range}");
        }
        for wrong in ["", "You test.", "---\nname: x\n", "---\nname: [\n---\n", "---\ndescription: x\n---\n"] {
            assert!(AgentDefinition::parse(wrong).is_err(), "{wrong}");
        }
    }
}
