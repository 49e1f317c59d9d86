//! Programs that work as agents: those of the built-in list that are installed, and those that the configuration adds.

use crate::external_program::{ExternalProgram, KNOWN_PROGRAMS};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A program that works as an agent and speaks the Agent Client Protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AcpAgentConfig {
    /// Whether the program may be used; `None` means yes.
    #[serde(deserialize_with = "super::values::plain")]
    pub enabled: Option<bool>,
    /// The command that starts it. A known program needs none.
    pub command: Option<String>,
    /// Arguments of the command.
    pub args: Vec<String>,
    /// Environment variables of the program; values may contain `${NAME}`.
    #[serde(deserialize_with = "super::values::hidden")]
    pub env: BTreeMap<String, String>,
}

/// Returns the programs that can be used as agents: for each its name, a description, and how it's started.
/// `configured` are those of the configuration; `is_installed` tells whether a command of the built-in list is there.
pub fn external_programs(
    configured: &BTreeMap<String, AcpAgentConfig>,
    is_installed: &dyn Fn(&str) -> bool,
) -> Vec<(String, String, ExternalProgram)> {
    let mut all = Vec::new();
    for (name, title, commands) in KNOWN_PROGRAMS {
        let own = configured.get(name);
        if own.is_some_and(|own| own.enabled == Some(false) || own.command.is_some()) {
            continue;
        }
        let mut ways = commands.iter().filter_map(|words| words.split_first());
        let Some((command, args)) = ways.find(|(command, _)| is_installed(command)) else { continue };
        let program = ExternalProgram {
            command: (*command).to_owned(),
            args: args.iter().map(|word| (*word).to_owned()).collect(),
            env: own.map(|own| own.env.clone()).unwrap_or_default(),
        };
        all.push((name.to_owned(), description(title), program));
    }
    for (name, own) in configured {
        if let (Some(command), None | Some(true)) = (&own.command, own.enabled) {
            let (command, args, env) = (command.clone(), own.args.clone(), own.env.clone());
            all.push((name.clone(), description(name), ExternalProgram { command, args, env }));
        }
    }
    all
}

fn description(title: &str) -> String {
    format!("{title}, a program of this computer that has your rights. It works only when you ask it.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigLayer, merge};

    fn names(text: &str, installed: &[&str]) -> Vec<(String, String)> {
        let config = merge(&[ConfigLayer::parse("config.yaml", text).expect("well-formed")]).expect("a configuration");
        let found = external_programs(&config.acp_agents, &|command| installed.contains(&command));
        found
            .into_iter()
            .map(|(name, _, program)| (name, format!("{} {}", program.command, program.args.join(" "))))
            .collect()
    }

    #[test]
    fn programs_come_from_the_path_and_from_the_configuration() {
        let text = |name: &str, line: &str| (name.to_owned(), line.to_owned());
        assert_eq!(names("", &[]), []);
        assert_eq!(
            names("", &["opencode", "claude-code-acp"]),
            [text("claude-code", "claude-code-acp "), text("opencode", "opencode acp"),]
        );
        let own = "acp_agents:\n  opencode: {enabled: false}\n  gemini: {command: /opt/gemini, args: [--acp, -v]}\n  \
                   mine: {command: my-agent}\n  off: {command: x, enabled: false}\n";
        assert_eq!(
            names(own, &["opencode", "gemini"]),
            [text("gemini", "/opt/gemini --acp -v"), text("mine", "my-agent "),]
        );
        for wrong in ["mine: {}", "mine: {command: \"\"}", "\"a b\": {command: x}", "mine: {command: x, url: y}"] {
            let parsed = ConfigLayer::parse("config.yaml", &format!("acp_agents:\n  {wrong}\n"));
            assert!(parsed.and_then(|layer| merge(&[layer])).is_err(), "{wrong}");
        }
    }
}
