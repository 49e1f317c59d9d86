//! Agents as Markdown files: front matter that says who it is and which tools it has, and its prompt.

use crate::tool_spec::ToolSpec;
use serde::Deserialize;

/// An agent's front matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AgentDefinition {
    /// Its name, by which it is called with `@`.
    pub name: String,
    /// When to use the agent, in one sentence.
    pub description: String,
    /// The tools that it has; `None`: all.
    pub tools: Option<Vec<String>>,
    /// Words of goals that are for it, small letters; of longer ones their beginnings are enough.
    pub when: Vec<String>,
    /// Instructions for the model.
    #[serde(skip)]
    pub prompt: String,
    /// Path of its file: in its volume if a project provides it, otherwise on this machine. `None` for built-in agents.
    #[serde(skip)]
    pub path: Option<String>,
}

/// The agent that a button of a generated view is: it calls one tool, and no model.
pub const BUTTON_AGENT: &str = "button";
/// System prompt of the model that summarizes.
pub const SUMMARY_AGENT_PROMPT: &str = system::SUMMARY_PROMPT;

/// Why a text defines no agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentDefinitionError {
    /// It has no front matter.
    #[error("an agent's file begins with front matter, between two lines ---")]
    NoFrontMatter,
    /// Its front matter has no end.
    #[error("the front matter has no end: a line ---")]
    OpenFrontMatter,
    /// Its front matter isn't YAML of the expected form.
    #[error("the front matter cannot be read: {0}")]
    FrontMatter(#[from] serde_saphyr::Error),
    /// The agent has no name.
    #[error("the front matter gives the agent no name")]
    NoName,
    /// The agent's name can't be shown in a line.
    #[error("the agent's name is longer than 60 characters, or has more than one line")]
    LongName,
}

impl AgentDefinition {
    /// Reads a definition.
    ///
    /// # Errors
    /// There is no front matter, or it cannot be read.
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

    /// Those of these tools that it has.
    pub fn allowed_tools(&self, tools: Vec<ToolSpec>) -> Vec<ToolSpec> {
        match &self.tools {
            None => tools,
            Some(names) => tools.into_iter().filter(|tool| names.contains(&tool.name)).collect(),
        }
    }

    /// Returns the system prompt: who the agent is, and its context.
    pub fn build_prompt(&self, surroundings: &str) -> String {
        // Nothing of fenced calls: a small model that reads of them writes half of one and half of a native one.
        format!("{}\n\n{surroundings}", self.prompt)
    }
}

/// The agents that come with the program.
pub fn built_in() -> Vec<AgentDefinition> {
    system::BUILT_IN_AGENTS
        .iter()
        .filter_map(|(_, text)| AgentDefinition::parse(std::str::from_utf8(text).ok()?).ok())
        .collect()
}

/// The agent of this name, the user's own before those that come with the program; the assistant where there is none.
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
