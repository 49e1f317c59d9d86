//! Steps of a run, as `ask --json` prints them, in the words of the Agent Client Protocol.

use acp::v1::{
    ContentBlock, ContentChunk, Diff, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate, ToolCall,
    ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use agent::approval_text;
use agent::tool_catalog::BuiltInTool;
use serde_json::Value;
use std::path::{Component, Path};
use text::untrusted_text;

/// Maximum length of a tool's result that an editor gets, in bytes. The run keeps all of it.
const MAX_RESULT_BYTES: usize = 100_000;
/// Maximum length of a tool call's title in characters.
const MAX_TITLE_CHARS: usize = 200;
/// Arguments that say best what a call is about, the best first.
const SUBJECT_ARGUMENTS: [&str; 11] =
    ["command", "path", "action", "query", "url", "goal", "message", "code", "directory", "name", "repository"];

/// Returns a piece of the agent's answer.
pub(crate) fn answer_chunk(text: &str) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::from(text)))
}

/// Returns a piece of what the agent thinks.
pub(crate) fn thought_chunk(text: &str) -> SessionUpdate {
    SessionUpdate::AgentThoughtChunk(ContentChunk::new(ContentBlock::from(text)))
}

/// Returns a piece of what the user said.
pub(crate) fn user_chunk(text: &str) -> SessionUpdate {
    SessionUpdate::UserMessageChunk(ContentChunk::new(ContentBlock::from(text)))
}

/// Returns which kind of work a tool does.
pub(crate) fn tool_kind(tool: &str) -> ToolKind {
    use BuiltInTool as Tool;
    let Some(tool) = BuiltInTool::from_name(tool) else { return ToolKind::Other };
    match tool {
        Tool::ReadFile => ToolKind::Read,
        Tool::GitStatus | Tool::GitDiff | Tool::GitLog | Tool::GitBlame | Tool::GitShow => ToolKind::Read,
        Tool::WriteFile | Tool::EditFile | Tool::ProposeView | Tool::ProposeComponent | Tool::CreateTool => {
            ToolKind::Edit
        }
        Tool::DeleteFile => ToolKind::Delete,
        Tool::ListFiles | Tool::Search => ToolKind::Search,
        Tool::RunCell | Tool::RunPython | Tool::Shell => ToolKind::Execute,
        Tool::GitAdd | Tool::GitCommit | Tool::GitBranch | Tool::GitSwitch | Tool::GitMerge | Tool::GitStash => {
            ToolKind::Execute
        }
        Tool::BrowserRead => ToolKind::Read,
        Tool::BrowserAct | Tool::BrowserGo | Tool::BrowserTabs | Tool::BrowserSave => ToolKind::Execute,
        Tool::ContainerList | Tool::ContainerLogs => ToolKind::Read,
        Tool::ContainerBuild | Tool::ContainerRun | Tool::ContainerExec | Tool::ContainerEnd => ToolKind::Execute,
        Tool::ContainerPull => ToolKind::Fetch,
        Tool::BrowserOpen | Tool::FetchUrl | Tool::GitFetch | Tool::GitPull | Tool::GitPush | Tool::GitClone => {
            ToolKind::Fetch
        }
        Tool::TodoWrite | Tool::Plan | Tool::Assign => ToolKind::Think,
        Tool::AskUser
        | Tool::AskAgent
        | Tool::MessageAgent
        | Tool::NoteCommand
        | Tool::RunAgent
        | Tool::AgentPermission
        | Tool::AgentReport
        | Tool::McpSampling
        | Tool::McpForm => ToolKind::Other,
    }
}

/// Returns whether calls of a tool are shown in another way: as a plan, or as a question.
pub(crate) fn is_shown_otherwise(tool: &str) -> bool {
    BuiltInTool::TodoWrite.is_named(tool) || BuiltInTool::AskUser.is_named(tool)
}

/// Returns a line that says which tool is called, and on what.
pub(crate) fn call_title(tool: &str, arguments: &Value) -> String {
    let subject = SUBJECT_ARGUMENTS.iter().find_map(|name| arguments[*name].as_str()).unwrap_or_default();
    let words = match BuiltInTool::from_name(tool) {
        Some(BuiltInTool::ReadFile) => "Read",
        Some(BuiltInTool::WriteFile) => "Write",
        Some(BuiltInTool::EditFile) => "Edit",
        Some(BuiltInTool::DeleteFile) => "Delete",
        Some(BuiltInTool::ListFiles) => "List",
        Some(BuiltInTool::Search) => "Search",
        Some(BuiltInTool::RunCell) => "Run a cell of",
        Some(BuiltInTool::RunPython) => "Run Python:",
        Some(BuiltInTool::Shell) => "Run",
        Some(BuiltInTool::FetchUrl) => "Fetch",
        Some(BuiltInTool::BrowserOpen) => "Open in the browser:",
        Some(BuiltInTool::AskAgent) => "Ask an agent:",
        Some(BuiltInTool::AgentPermission | BuiltInTool::AgentReport) => "",
        _ => tool,
    };
    let line = format!("{words} {}", subject.lines().next().unwrap_or_default());
    let line = line.trim();
    match line.char_indices().nth(MAX_TITLE_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// Returns the file of the volume that a call is about; `None` if it's in another volume, or not a path inside.
fn file_path(root: &Path, arguments: &Value) -> Option<std::path::PathBuf> {
    let path = Path::new(arguments["path"].as_str()?);
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    (is_inside && arguments["volume"].is_null()).then(|| root.join(path))
}

fn locations(root: &Path, arguments: &Value) -> Vec<ToolCallLocation> {
    let line = arguments["from_line"].as_u64().and_then(|line| u32::try_from(line).ok());
    file_path(root, arguments).map(|path| ToolCallLocation::new(path).line(line)).into_iter().collect()
}

/// Returns the change that a call asks for; `before` is the text of the file that a call replaces.
pub(crate) fn proposed_diff(root: &Path, tool: &str, arguments: &Value, before: Option<String>) -> Option<Diff> {
    let path = file_path(root, arguments)?;
    match BuiltInTool::from_name(tool) {
        Some(BuiltInTool::WriteFile) => Some(Diff::new(path, arguments["content"].as_str()?).old_text(before)),
        Some(BuiltInTool::EditFile) => {
            let old = arguments["old_content"].as_str()?.to_owned();
            Some(Diff::new(path, arguments["new_content"].as_str()?).old_text(old))
        }
        _ => None,
    }
}

/// Returns a call that the agent begins.
pub(crate) fn begun_call(root: &Path, id: &str, tool: &str, arguments: &Value, diff: Option<Diff>) -> SessionUpdate {
    let call = ToolCall::new(id.to_owned(), call_title(tool, arguments))
        .name(tool.to_owned())
        .kind(tool_kind(tool))
        .status(ToolCallStatus::InProgress)
        .content(diff.into_iter().map(ToolCallContent::from).collect())
        .locations(locations(root, arguments))
        .raw_input(arguments.clone());
    SessionUpdate::ToolCall(call)
}

/// Returns a call whose approval is asked for: what it would do, why it needs approval, and what would run.
pub(crate) fn approval_call(root: &Path, approval: &Value) -> ToolCallUpdate {
    let text = |name: &str| approval[name].as_str().unwrap_or_default();
    let (tool, arguments) = (text("tool"), &approval["arguments"]);
    let told = approval_text::from_json(approval);
    // What would run comes first: a name in the reason can begin a comment of Markdown, which hides what follows.
    let plain = |text: &str| untrusted_text::escape_line(text).replace('<', "\\<");
    // A title that says it all is Markdown in some editors, too.
    let (title, body) = (approval_text::title(&told), approval_text::body(&told));
    let run = fenced(if body.is_empty() { &title } else { &body });
    let mut words = vec![run, plain(&told.reason), plain(&approval_text::lasting_scope(&told))];
    words.retain(|part| !part.trim().is_empty());
    let mut content: Vec<ToolCallContent> = proposed_diff(root, tool, arguments, None)
        .filter(|_| BuiltInTool::EditFile.is_named(tool))
        .into_iter()
        .map(ToolCallContent::from)
        .collect();
    content.push(ToolCallContent::from(words.join("\n\n")));
    let fields = ToolCallUpdateFields::new()
        .title(title)
        .name(tool.to_owned())
        .kind(tool_kind(tool))
        .status(ToolCallStatus::Pending)
        .content(content)
        .locations(locations(root, arguments))
        .raw_input(arguments.clone());
    ToolCallUpdate::new(text("call").to_owned(), fields)
}

/// Returns a text as a block of code that nothing in it ends: editors and other programs draw Markdown.
pub(crate) fn fenced(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    if text.is_empty() { String::new() } else { format!("{fence}\n{text}\n{fence}") }
}

/// Returns the end of a call: its result or why it failed, and the changes that it made.
pub(crate) fn ended_call(id: &str, step: &Value, changes: Vec<Diff>) -> SessionUpdate {
    let is_good = step["success"] == true;
    let text = match (&step["result"], step["error"].as_str()) {
        (_, Some(error)) if !is_good => error.to_owned(),
        (Value::String(text), _) => text.clone(),
        (Value::Null, _) => String::new(),
        (other, _) => other.to_string(),
    };
    let text = text.get(..text.floor_char_boundary(MAX_RESULT_BYTES)).unwrap_or_default().to_owned();
    let mut content: Vec<ToolCallContent> = changes.into_iter().map(ToolCallContent::from).collect();
    if !text.is_empty() && (content.is_empty() || !is_good) {
        content.push(ToolCallContent::from(text.as_str()));
    }
    let status = if is_good { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
    let fields = ToolCallUpdateFields::new().status(status).content(content).raw_output(Value::String(text));
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_owned(), fields))
}

/// Returns the agent's todos.
pub(crate) fn plan_update(step: &Value) -> SessionUpdate {
    let entry = |todo: &Value| {
        // From 0, lowest, to 5, highest; 2 is normal.
        let priority = match todo["priority"].as_u64().unwrap_or(2) {
            4.. => PlanEntryPriority::High,
            0 | 1 => PlanEntryPriority::Low,
            2 | 3 => PlanEntryPriority::Medium,
        };
        let status = match todo["status"].as_str().unwrap_or_default() {
            "in_progress" => PlanEntryStatus::InProgress,
            // The protocol has no word for what was given up: it's over, too.
            "completed" | "cancelled" => PlanEntryStatus::Completed,
            _ => PlanEntryStatus::Pending,
        };
        PlanEntry::new(todo["content"].as_str().unwrap_or_default(), priority, status)
    };
    let todos = step["todos"].as_array().map(Vec::as_slice).unwrap_or_default();
    SessionUpdate::Plan(Plan::new(todos.iter().map(entry).collect()))
}

/// Returns what a change of a run did to files; `change` is one that `runs RUN --json` prints.
pub(crate) fn change_diffs(root: &Path, change: &Value) -> Vec<Diff> {
    let Some(path) = change["path"].as_str().map(|path| root.join(path)) else { return Vec::new() };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let what = &change["what"];
    if what["kind"] == "created" {
        return vec![Diff::new(path, text(&what["text"]))];
    }
    let hunks = what["hunks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let diff = |hunk: &Value| Diff::new(path.clone(), text(&hunk["inserted"])).old_text(text(&hunk["removed"]));
    hunks.iter().map(diff).collect()
}

/// Returns what of a thinking step an editor hasn't got yet, if the beginning of a thought was streamed: the rest of
/// the thought, and the text behind it. Without a streamed thought, all of it is text.
pub(crate) fn unsent_thought<'a>(content: &'a str, streamed: &str) -> (&'a str, &'a str) {
    let streamed = streamed.trim_start();
    let known = streamed.trim_end();
    match content.strip_prefix(known).filter(|_| !known.is_empty()) {
        Some(rest) => match rest.strip_prefix("\n\n") {
            Some(text) => ("", text),
            None => (content.strip_prefix(streamed).unwrap_or(rest), ""),
        },
        None => ("", content),
    }
}

/// Returns what of a step's text an editor hasn't got yet, if its beginning was streamed.
pub(crate) fn unsent_text<'a>(content: &'a str, streamed: &str) -> &'a str {
    let streamed = streamed.trim_start();
    if streamed.trim_end().is_empty() {
        return content;
    }
    for known in [streamed, streamed.trim_end()] {
        // What the model thinks comes before the answer.
        let begin = match content.starts_with(known) {
            true => Some(0),
            false => content.rfind(&format!("\n\n{known}")).map(|at| at + 2),
        };
        if let Some(begin) = begin {
            return content.get(begin + known.len()..).unwrap_or_default().trim_end();
        }
    }
    // It was streamed in another form, such as with a tool call in its text.
    ""
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_that_lead_out_are_no_locations() {
        let root = Path::new("/notes");
        for path in ["../x", "/etc/passwd", "a/../../x"] {
            assert_eq!(file_path(root, &json!({"path": path})), None, "{path}");
        }
        assert_eq!(file_path(root, &json!({"path": "a/b.md", "volume": "other"})), None);
        assert_eq!(file_path(root, &json!({"path": "./a/b.md"})), Some("/notes/./a/b.md".into()));
    }

    #[test]
    fn only_what_was_not_streamed_is_sent() {
        assert_eq!(unsent_text("All of it", ""), "All of it");
        assert_eq!(unsent_text("I think.\n\nAll of it\n", "All of"), " it");
        assert_eq!(unsent_text("I wait.\n\nI see it", "I "), "wait.\n\nI see it");
        assert_eq!(unsent_text("I write it.", "I "), "write it.");
        assert_eq!(unsent_text("All of it", "All of it\n"), "");
        assert_eq!(unsent_text("something else", "All"), "");
    }

    #[test]
    fn thoughts_are_told_from_text_by_what_was_streamed() {
        assert_eq!(unsent_thought("I see it.", ""), ("", "I see it."));
        assert_eq!(unsent_thought("I think.", "I think."), ("", ""));
        assert_eq!(unsent_thought("I think.", "I "), ("think.", ""));
        assert_eq!(unsent_thought("I think.\n\nI see it.", "I think.\n"), ("", "I see it."));
    }

    #[test]
    fn titles_are_one_short_line() {
        assert_eq!(call_title("shell", &json!({"command": "ls\nrm"})), "Run ls");
        assert_eq!(call_title("list_files", &json!({})), "List");
        assert!(call_title("weather", &json!({"query": "é".repeat(900)})).chars().count() <= MAX_TITLE_CHARS + 1);
    }
}
