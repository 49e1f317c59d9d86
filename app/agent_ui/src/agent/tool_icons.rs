//! Icons of tool calls: by what the tool does, so that a folded list can be read at a glance.

use agent::tool_catalog::BuiltInTool;
use ui::icons;

/// Returns the icon of a tool. Those of servers and the user's own have a wrench.
pub(super) fn tool_icon(name: &str) -> &'static str {
    let Some(tool) = BuiltInTool::from_name(&name.replace('-', "_")) else { return icons::WRENCH };
    match tool {
        BuiltInTool::ReadFile => icons::FILE_TEXT,
        BuiltInTool::ListFiles => icons::FOLDER_OPEN,
        BuiltInTool::WriteFile => icons::FILE_PLUS,
        BuiltInTool::EditFile => icons::PENCIL,
        BuiltInTool::DeleteFile => icons::TRASH,
        BuiltInTool::Search => icons::SEARCH,
        BuiltInTool::RunCell => icons::PLAY,
        BuiltInTool::RunPython => icons::CODE,
        BuiltInTool::Shell => icons::TERMINAL,
        BuiltInTool::FetchUrl => icons::LINK,
        BuiltInTool::TodoWrite | BuiltInTool::Plan => icons::LIST_BULLETS,
        BuiltInTool::AskUser => icons::USER,
        BuiltInTool::AskAgent | BuiltInTool::RunAgent => icons::ROBOT,
        BuiltInTool::MessageAgent => icons::CHAT,
        tool if tool.is_for_git() => icons::BRANCH,
        tool if tool.is_for_browser() => icons::LINK,
        tool if tool.is_for_containers() => icons::ARCHIVE,
        _ => icons::WRENCH, // tidy: open because the others are rare
    }
}

/// Returns whether a tool changes the text of a file, so that its result is a diff.
pub(super) fn edits_file(name: &str) -> bool {
    let tool = BuiltInTool::from_name(&name.replace('-', "_"));
    matches!(tool, Some(BuiltInTool::WriteFile | BuiltInTool::EditFile | BuiltInTool::DeleteFile))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn kinds_of_tools_differ() {
        let names = ["read_file", "write_file", "edit_file", "shell", "run_python", "search", "git_log", "weather"];
        let icons: BTreeSet<&str> = names.into_iter().map(tool_icon).collect();
        assert_eq!(icons.len(), names.len());
        assert_eq!((tool_icon("execute"), tool_icon("edit-file")), (icons::WRENCH, icons::PENCIL));
        assert!(edits_file("write-file") && !edits_file("read_file"));
    }
}
