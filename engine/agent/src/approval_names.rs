//! Names in the lists of `approval` in `config.yaml`: those of tools, of MCP servers' tools, and the action names of
//! `mixos-go.md` (shared/reference). A name that means nothing is reported, because a user relies on it.

use crate::config::AgentConfig;
use crate::name_suggestions::closest_names;
use crate::policy_rule::{CallPattern, Permission};
use crate::prompt_quote::quote_inline;
use crate::tool_catalog::BuiltInTool;

/// Action names of `mixos-go.md` that aren't tools here, each with the patterns that it means.
const ACTION_NAMES: [(&str, &[&str]); 4] = [
    ("api_key_usage", &["*/*"]),
    ("delete_files", &[BuiltInTool::DeleteFile.as_str()]),
    ("deploy_production", &[BuiltInTool::GitPush.as_str(), "shell: *deploy*"]),
    ("list_directory", &[BuiltInTool::ListFiles.as_str()]),
];
/// Action names that can't be allowed for good, because their patterns also match calls that do something else.
const BROAD_ACTION_NAMES: [&str; 2] = ["api_key_usage", "deploy_production"];

/// Returns the patterns that an entry of a list means. An action name that is too broad to allow allows nothing.
pub(crate) fn meant_patterns(entry: &str, word: Permission) -> Vec<String> {
    let name = entry.trim();
    match ACTION_NAMES.iter().find(|(action, _)| *action == name) {
        Some(_) if word == Permission::Allow && BROAD_ACTION_NAMES.contains(&name) => Vec::new(),
        Some((_, patterns)) => patterns.iter().map(|pattern| (*pattern).to_owned()).collect(),
        None => vec![entry.to_owned()],
    }
}

/// Returns what is wrong with the first entry that means nothing, as a sentence for the user; `None` if all are
/// understood. `tools` are the names of all tools, built-in and the user's.
pub fn unknown_approval_name(config: &AgentConfig, tools: &[String]) -> Option<String> {
    let approval = &config.approval;
    let lists = [
        ("always_approve", &approval.always_approve),
        ("never_approve", &approval.never_approve),
        ("deny", &approval.deny),
    ];
    lists.into_iter().find_map(|(list, entries)| {
        let wrong = entries.iter().find_map(|entry| fault_of_entry(entry, list == "never_approve", config, tools))?;
        Some(format!("config.yaml: approval.{list}: {wrong}"))
    })
}

/// Returns what is wrong with an entry of a list of tools; `None` if a tool has its name.
pub fn fault_of_entry(entry: &str, allows: bool, config: &AgentConfig, tools: &[String]) -> Option<String> {
    let CallPattern { tool: name, argument } = CallPattern::parse(entry);
    let shown = quote_inline(&name, 60);
    if argument.as_deref() == Some("") {
        return Some(format!(
            "{} has nothing after its colon. Write {shown} for all its calls, or {} for some.",
            quote_inline(entry.trim(), 60),
            quote_inline(&format!("{name}: PATTERN"), 60)
        ));
    }
    if ACTION_NAMES.iter().any(|(action, _)| *action == entry.trim()) {
        return (allows && BROAD_ACTION_NAMES.contains(&name.as_str())).then(|| {
            format!(
                "{shown} always needs approval, because it stands for calls of many kinds. Write the calls that need \
                 none, such as “shell: make deploy”."
            )
        });
    }
    if let Some((server, _)) = name.split_once('/') {
        let there = server.contains('*') || config.mcp.servers.contains_key(server);
        return (!there)
            .then(|| format!("there is no MCP server {}. Add it under mcp.servers.", quote_inline(server, 60)));
    }
    if name.contains('*') || BuiltInTool::from_name(&name).is_some() || tools.contains(&name) {
        return None;
    }
    let known = tools.iter().map(String::as_str).chain(ACTION_NAMES.map(|(action, _)| action));
    let hint = match closest_names(&name, known).as_slice() {
        [] => "`tracebook tools` lists those that there are.".to_owned(),
        near => format!("Did you mean {}?", near.join(" or ")),
    };
    Some(format!("there is no tool {shown}. {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigLayer, merge};

    fn fault(lists: &str) -> Option<String> {
        let text = format!("mcp: {{servers: {{web: {{command: x}}}}}}\napproval: {{{lists}}}\n");
        let config = merge(&[ConfigLayer::parse("config.yaml", &text).expect("read")]).expect("whole");
        unknown_approval_name(&config, &["weather".to_owned(), "write_file".to_owned()])
    }

    #[test]
    fn a_name_that_means_nothing_is_told() {
        for fine in [
            "always_approve: [deploy_production, delete_files, api_key_usage]",
            "never_approve: [read_file, list_directory, git_status, weather]",
            "deny: ['shell: rm *', 'web/*', 'fetch_*', 'web/open: x']",
            "always_approve: []",
        ] {
            assert_eq!(fault(fine), None, "{fine}");
        }
        let said = |lists: &str| fault(lists).expect("a fault");
        let hint = "config.yaml: approval.deny: there is no tool “write_flie”. Did you mean write_file?";
        assert_eq!(said("deny: [write_flie]"), hint);
        assert!(said("always_approve: [nonsense]").ends_with("`tracebook tools` lists those that there are."));
        assert!(said("deny: [other/open]").contains("no MCP server “other”"));
        assert!(said("deny: ['shell: ']").contains("Write “shell” for all its calls"));
        assert!(said("never_approve: [deploy_production]").contains("always needs approval"));
    }

    #[test]
    fn action_names_mean_calls() {
        assert_eq!(meant_patterns("list_directory", Permission::Allow), [BuiltInTool::ListFiles.as_str()]);
        assert_eq!(meant_patterns("deploy_production", Permission::Ask).len(), 2);
        assert!(meant_patterns("deploy_production", Permission::Allow).is_empty());
        assert_eq!(meant_patterns("shell: make *", Permission::Allow), ["shell: make *"]);
    }
}
