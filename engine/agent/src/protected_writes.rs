//! Tool calls that write files which other programs execute. They always need approval.

use crate::tool_spec::{ToolRisk, ToolSpec};
use serde_json::{Map, Value};

pub use ::guarded::{executed_reason, guarded_reason};

/// Tool arguments that name a file to write.
const WRITE_PATH_ARGUMENTS: [&str; 6] = ["path", "to", "target", "destination", "new_path", "directory"];

/// Returns why a call always needs approval; `None` unless it writes a file that other programs execute.
pub fn always_ask_reason(tool: &ToolSpec, arguments: &Map<String, Value>) -> Option<String> {
    if !tool.permissions.fs || tool.risk == ToolRisk::None {
        return None;
    }
    let mut paths = WRITE_PATH_ARGUMENTS.iter().filter_map(|name| arguments.get(*name)?.as_str());
    // A note's extension may be left out.
    let has_extension = |path: &str| path.rsplit('/').next().is_some_and(|name| name.contains('.'));
    let as_note = |path: &str| (!has_extension(path)).then(|| guarded_reason(&format!("{path}.md"))).flatten();
    let reason = |path: &str| guarded_reason(path).or_else(|| as_note(path));
    paths.find_map(|path| reason(path).map(|why| format!("{path} is not an ordinary file: {why}")))
}

#[cfg(test)]
mod tests {
    use crate::config::AgentConfig;
    use crate::policy::{CallFacts, Permission, ToolPolicy};
    use crate::tool_catalog;
    use serde_json::json;
    use store::DocId;

    #[test]
    fn writing_what_others_execute_asks_whatever_the_rules_say() {
        let mut config = AgentConfig::default();
        config.approval.never_approve = vec!["*".to_owned(), "write_file".to_owned(), "delete_file".to_owned()];
        config.approval.auto_approve_level = crate::tool_spec::ToolRisk::High;
        let policy = ToolPolicy::from_config(&config);
        let here = DocId([1; 16]);
        let decided = |name: &str, path: &str| {
            let tool = tool_catalog::built_in().into_iter().find(|tool| tool.name == name).expect("a tool");
            let arguments = json!({"path": path, "content": "x"});
            policy.decide(&tool, arguments.as_object().expect("an object"), &CallFacts::default(), here, here)
        };
        for path in [
            ".envrc",
            "sub/.vscode/tasks.json",
            "components/agents/a.md",
            "Agents/a.py",
            ".venv/x",
            "x/HEAD",
            "CLAUDE",
            "sub/SKILL",
        ] {
            for tool in ["write_file", "edit_file", "delete_file"] {
                let verdict = decided(tool, path);
                assert_eq!(verdict.word, Permission::Ask, "{tool} {path}");
                assert!(verdict.why.contains("not an ordinary file"), "{}", verdict.why);
            }
            let read = decided("read_file", path);
            let is_secret = crate::secrets::secret_files::secret_file_kind(path).is_some();
            assert_eq!(
                read.word,
                if is_secret { Permission::Ask } else { Permission::Allow },
                "to read it is fine: {path}"
            );
        }
        assert_eq!(decided("write_file", "a.md").word, Permission::Allow);
        // A repository would bring its files to where programs look for theirs.
        let clone = tool_catalog::built_in().into_iter().find(|tool| tool.name == "git_clone").expect("a tool");
        for (directory, expected) in
            [(".vscode", Permission::Ask), ("agents", Permission::Ask), ("lib", Permission::Allow)]
        {
            let arguments = json!({"repository": "https://example.org/x.git", "directory": directory});
            let arguments = arguments.as_object().expect("an object");
            let verdict = policy.decide(&clone, arguments, &CallFacts::default(), here, here);
            assert_eq!(verdict.word, expected, "{directory}: {}", verdict.why);
        }
    }
}
