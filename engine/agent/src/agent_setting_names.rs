//! Names in the settings of agents that mean nothing: agents that don't exist, and tools that an agent may use. A user
//! relies on them, so they are reported.

use crate::agent_definition::{self, AgentDefinition};
use crate::agent_registry::AgentRegistry;
use crate::approval_names::fault_of_entry;
use crate::name_suggestions::closest_names;
use crate::prompt_quote::quote_inline;
use crate::run_records::AgentSetup;

/// Returns a sentence for each name in the settings of agents that means nothing: agents, and tools that an agent may
/// use. `crew` are the project's agents, and `tools` the names of all tools.
pub fn unknown_agent_settings(setup: &AgentSetup, crew: &AgentRegistry, tools: &[String]) -> Vec<String> {
    let (config, settings) = (&setup.config, &setup.config.agents);
    let mut agents = agent_definition::built_in();
    agents.extend(setup.agents.iter().chain(&crew.definitions).cloned());
    let python = crew.file_names().flat_map(|(file, class)| [file, class]);
    agents.extend(python.map(|name| AgentDefinition { name, ..AgentDefinition::default() }));
    let known = || agents.iter().map(|agent| agent.name.as_str());
    let strangers = settings.specialists.keys().filter(|name| !known().any(|one| one == name.as_str()));
    let mut told: Vec<String> = strangers
        .map(|name| {
            let hint = match closest_names(name, known()).as_slice() {
                [] => "`tracebook tasks agents` lists those that there are.".to_owned(),
                near => format!("Did you mean {}?", near.join(" or ")),
            };
            format!("config.yaml: agents.specialists: there is no agent {} here. {hint}", quote_inline(name, 60))
        })
        .collect();
    let chosen = settings.specialists.iter().map(|(name, choice)| (format!("specialists.{name}"), choice));
    let chosen = std::iter::once(("lead".to_owned(), &settings.lead)).chain(chosen);
    let mut lists: Vec<(String, &[String])> = chosen
        .filter_map(|(name, choice)| Some((format!("config.yaml: agents.{name}.tools"), choice.tools.as_deref()?)))
        .collect();
    let files = agents.iter().filter_map(|agent| Some((agent.path.as_deref()?, agent.tools.as_deref()?)));
    lists.extend(files.map(|(path, names)| (format!("{path}: tools"), names)));
    for (place, names) in lists {
        let faults = names.iter().filter_map(|name| fault_of_entry(name, false, config, tools));
        told.extend(faults.map(|fault| format!("{place}: {fault}")));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigLayer, merge};

    #[test]
    fn unknown_names_in_settings_of_agents_are_told() {
        let text = "agents:\n  lead: {tools: [shell]}\n  specialists:\n    qa: {tools: [nosuch, weather]}\n    \
                    backand: {max_tokens: 100}\n";
        let config = merge(&[ConfigLayer::parse("config.yaml", text).expect("read")]).expect("whole");
        let setup = AgentSetup { config, ..AgentSetup::default() };
        let told = unknown_agent_settings(&setup, &AgentRegistry::default(), &["weather".to_owned()]);
        let [agent, tool] = told.as_slice() else { panic!("{told:?}") };
        assert!(agent.contains("no agent “backand” here. Did you mean backend?"), "{agent}");
        assert!(tool.starts_with("config.yaml: agents.specialists.qa.tools: there is no tool “nosuch”."), "{tool}");
    }
}
