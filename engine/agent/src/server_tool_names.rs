//! Names of MCP servers' tools: each gets a unique one for models.

use crate::tool_catalog::BuiltInTool;
use crate::tool_spec::{ToolSource, ToolSpec};
use std::collections::BTreeMap;
use store::BlobHash;

/// Maximum length of a tool's name in characters.
const MAX_TOOL_NAME_CHARS: usize = 64;
/// Number of characters that distinguish tools with the same name.
const TOOL_NAME_MARK_CHARS: usize = 8;

/// Assigns each tool of a server the name that models use: `SERVER_TOOL`. If two tools would get the same name, or the
/// name would be truncated, each of them gets a suffix derived from server and tool only. So no name refers to two
/// tools, and none changes its meaning when servers come and go in another order.
pub fn assign_tool_names(servers: &mut [(String, String, ToolSpec)]) {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let wanted = |server: &str, tool: &str| format!("{server}_{tool}").chars().map(plain).collect::<String>();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for tool in BuiltInTool::ALL {
        counts.insert(tool.to_string(), 1);
    }
    for (server, tool, _) in servers.iter() {
        *counts.entry(wanted(server, tool)).or_default() += 1;
    }
    for (server, tool, spec) in servers {
        let name = wanted(server, tool);
        let alone = counts.get(&name) == Some(&1) && name.len() <= MAX_TOOL_NAME_CHARS;
        spec.source = ToolSource::Server { server: server.clone(), tool: tool.clone() };
        spec.name = if alone {
            name
        } else {
            let mark = BlobHash::of(format!("{server}\0{tool}").as_bytes()).to_string();
            let kept: String = name.chars().take(MAX_TOOL_NAME_CHARS - TOOL_NAME_MARK_CHARS - 1).collect();
            format!("{kept}_{}", &mark[..TOOL_NAME_MARK_CHARS])
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(pairs: &[(&str, &str)]) -> Vec<String> {
        let spec = crate::tool_catalog::built_in().remove(0);
        let mut servers: Vec<(String, String, ToolSpec)> =
            pairs.iter().map(|(server, tool)| ((*server).to_owned(), (*tool).to_owned(), spec.clone())).collect();
        assign_tool_names(&mut servers);
        servers.into_iter().map(|(_, _, spec)| spec.name).collect()
    }

    #[test]
    fn no_name_means_two_tools() {
        let names = named(&[("git", "log"), ("hub", "log")]);
        // `git_log` is a built-in tool.
        assert!(names[0].starts_with("git_log_"), "{names:?}");
        assert_eq!(names[1], "hub_log");
        let long = "x".repeat(70);
        let pairs = [("a_b", "c"), ("a", "b_c"), ("run", "python"), ("note", "command"), ("s", &*long), ("s", "plain")];
        let names = named(&pairs);
        let different: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(different.len(), names.len(), "{names:?}");
        assert!(names.iter().all(|name| name.len() <= MAX_TOOL_NAME_CHARS), "{names:?}");
        assert!(names[..2].iter().all(|name| name.starts_with("a_b_c_")), "{names:?}");
        assert!(!names.contains(&"run_python".to_owned()) && !names.contains(&"note_command".to_owned()));
        assert_eq!(names[5], "s_plain");
        // The result must not depend on which tools are present, or on their order.
        let turned: Vec<(&str, &str)> = pairs.iter().rev().copied().collect();
        assert_eq!(named(&turned).into_iter().rev().collect::<Vec<_>>(), names);
    }
}
