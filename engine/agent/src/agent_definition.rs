//! Agent definitions: Markdown files with the agent's name and tools in the front matter, and its prompt as the text.

use crate::config::WatchdogConfig;
use crate::tool_spec::ToolSpec;
use serde::Deserialize;

/// Definition of an agent: the front matter of its file, and its prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
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
    /// Time limits that differ from those in `config.yaml`.
    pub watchdog: WatchdogConfig,
    /// Instructions for the model.
    #[serde(skip)]
    pub prompt: String,
    /// Path of the file: in the volume for a project's agent, otherwise on this machine. `None` for built-in agents.
    #[serde(skip)]
    pub path: Option<String>,
}

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
}

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
        prompt.trim().clone_into(&mut definition.prompt);
        Ok(definition)
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
const DEVELOPER_AGENTS: [&str; 5] = ["backend", "devops", "frontend", "qa", "security"];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_read() {
        assert_eq!(built_in().len(), system::BUILT_IN_AGENTS.len(), "each that ships can be read");
        assert_eq!(find("nobody", &[]).name, "assistant");
        let read = AgentDefinition::parse("---\nname: qa\ntools: [search]\n---\nYou test.\n").expect("read");
        assert_eq!((read.name.as_str(), read.prompt.as_str()), ("qa", "You test."));
        assert_eq!(find("qa", std::slice::from_ref(&read)), read);
        assert_eq!(read.allowed_tools(crate::tool_catalog::built_in()).len(), 1);
        for wrong in ["", "You test.", "---\nname: x\n", "---\nname: [\n---\n", "---\ndescription: x\n---\n"] {
            assert!(AgentDefinition::parse(wrong).is_err(), "{wrong}");
        }
    }
}
