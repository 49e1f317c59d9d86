//! Labels of runs: times, costs, call summaries, and the text of a diff.

use agent::{approval_text, policy};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use store::{CallUsage, ExecutionStep, RunEnding, StepKind};
use text::diff::{self, DiffPart};
use text::untrusted_text;

/// Formats a duration.
pub(super) fn duration_label(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        _ => format!("{} min {} s", milliseconds / 60_000, milliseconds % 60_000 / 1_000),
    }
}

/// Formats the time left until an approval expires, as a sentence.
pub(super) fn expiry_label(milliseconds: i64) -> String {
    match u64::try_from(milliseconds).unwrap_or(0).div_ceil(1_000) {
        seconds @ 0..60 => format!("Expires in {seconds} s."),
        seconds @ 60..3_600 => format!("Expires in {} min.", seconds.div_ceil(60)),
        seconds => format!("Expires in {} h.", seconds.div_ceil(3_600)),
    }
}

/// Formats a time of day.
pub(super) fn time_label(milliseconds: i64) -> String {
    let time = Timestamp::from_millisecond(milliseconds).map(|time| time.to_zoned(TimeZone::system()));
    time.map(|time| time.strftime("%H:%M").to_string()).unwrap_or_default()
}

/// Formats an amount of money in dollars.
pub(super) fn dollars_label(cost: f64) -> String {
    if cost == 0.0 || cost >= 0.995 { format!("${cost:.2}") } else { format!("${cost:.4}") }
}

/// Formats the cost of usage; an unknown cost isn't estimated.
pub(super) fn cost_label(spent: &CallUsage) -> String {
    spent.cost.map_or_else(|| "cost unknown".to_owned(), dollars_label)
}

/// Formats the number of used tokens.
pub(super) fn tokens_label(spent: &CallUsage) -> String {
    let all = spent.input_tokens.saturating_add(spent.output_tokens);
    format!("{} tokens", ui::text::format_thousands(usize::try_from(all).unwrap_or(usize::MAX)))
}

/// Summarizes a call's arguments on one line.
pub(super) fn call_summary(arguments: &Map<String, Value>) -> String {
    let subject = policy::main_argument(arguments);
    let subject =
        if subject.is_empty() { arguments.get("question").and_then(Value::as_str).unwrap_or("") } else { subject };
    let line = subject.lines().next().unwrap_or("");
    shortened(line, 200)
}

/// Returns the start of an untrusted line, escaped for display, with a mark where it was cut.
fn shortened(line: &str, most: usize) -> String {
    let line = untrusted_text::escape_line(line);
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into_owned(),
    }
}

/// Describes how a run ended, as a sentence.
pub(super) fn ending_label(ending: RunEnding) -> &'static str {
    match ending {
        RunEnding::Done => "Done.",
        RunEnding::Cancelled => "You stopped this run. Its results so far are kept.",
        RunEnding::Failed => "It failed.",
        RunEnding::Limit => "It reached its iteration limit.",
        RunEnding::Budget => "Its budget is spent.",
    }
}

/// Describes a step briefly: its kind and content.
pub(super) fn step_label(step: &ExecutionStep) -> (&'static str, String) {
    let first =
        |text: &str| -> String { shortened(text.lines().find(|line| !line.trim().is_empty()).unwrap_or(""), 160) };
    match &step.kind {
        StepKind::Thinking { content, .. } => {
            // Steps made by the program aren't model calls.
            let route = step.route.as_deref().unwrap_or_default();
            let kind = match route.split('/').next() {
                Some("phase") => "Phase",
                Some("memory") => "Memory",
                Some("trace") => "Trace",
                Some("notice") => "Notice",
                _ => "Model call",
            };
            (kind, first(content))
        }
        StepKind::ToolCall { tool_name, params, .. } => ("Tool call", format!("{tool_name} {}", call_summary(params))),
        StepKind::ToolResult { success, result, error, .. } => {
            let text = result.as_ref().and_then(Value::as_str).or(error.as_deref()).unwrap_or("");
            (if *success { "Result" } else { "Failed result" }, first(text))
        }
        StepKind::Todo { todos } => {
            ("Todos", if todos.len() == 1 { "1 todo".to_owned() } else { format!("{} todos", todos.len()) })
        }
        StepKind::FinalAnswer { content } => ("Answer", first(content)),
        StepKind::Error { message, .. } => ("Error", first(message)),
    }
}

/// Returns the full text of a step: its text, or the arguments of a tool call.
pub(super) fn step_text(step: &ExecutionStep) -> String {
    let text = match &step.kind {
        StepKind::Thinking { content, .. } | StepKind::FinalAnswer { content } => content.clone(),
        StepKind::ToolCall { params, .. } => parameters_text(params),
        StepKind::ToolResult { result, error, attached, .. } => {
            let mut text = match result {
                Some(Value::String(text)) => text.clone(),
                Some(value) => format!("{value:#}"),
                None => error.clone().unwrap_or_default(),
            };
            for file in attached {
                text.push_str(&format!("\n\nKept with this result: {}, {} bytes.", file.mime, file.size));
            }
            text
        }
        StepKind::Todo { todos } => {
            let line =
                |todo: &store::TodoItem| format!("{} {}\n", if is_over(todo) { "[x]" } else { "[ ]" }, todo.content);
            todos.iter().map(line).collect()
        }
        StepKind::Error { message, .. } => message.clone(),
    };
    untrusted_text::escape_block(&text).into_owned()
}

/// Returns whether a todo is finished.
pub(super) fn is_over(todo: &store::TodoItem) -> bool {
    matches!(todo.status, store::TodoStatus::Completed | store::TodoStatus::Cancelled)
}

/// Formats a tool's arguments: each name with its value; an edit as a diff. Escaped for display, and complete.
pub(super) fn parameters_text(arguments: &Map<String, Value>) -> String {
    untrusted_text::escape_block(&parameters_as_sent(arguments)).into_owned()
}

fn parameters_as_sent(arguments: &Map<String, Value>) -> String {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    // Only if there are no other arguments: those would be hidden from review.
    if let (Some(path), Some(old), Some(new), 3) =
        (text("path"), text("old_content"), text("new_content"), arguments.len())
    {
        return diff_text(path, old, new);
    }
    if let (Some(path), Some(content), 2) = (text("path"), text("content"), arguments.len()) {
        return diff_text(path, "", content);
    }
    if arguments.len() == 1
        && let Some(only) = text("command").or(text("code")).or(text("question"))
    {
        return only.to_owned();
    }
    approval_text::format_arguments(arguments)
}

/// Returns two texts as a unified diff.
pub(super) fn diff_text(path: &str, old: &str, new: &str) -> String {
    let mut text = format!("@@ {path} @@");
    let mut push = |sign: char, side: &str| {
        for line in side.lines() {
            text.push('\n');
            text.push(sign);
            text.push_str(line);
        }
    };
    for part in diff::compare(old, new).parts {
        match part {
            DiffPart::Same { old: same, .. } => push(' ', &old[same]),
            DiffPart::Change { old: gone, new: come, .. } => {
                push('-', &old[gone]);
                push('+', &new[come]);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_and_money() {
        assert_eq!(
            [duration_label(40), duration_label(4_260), duration_label(61_000)],
            ["40 ms", "4.2 s", "1 min 1 s"]
        );
        assert_eq!(
            [expiry_label(-5), expiry_label(40_000), expiry_label(200_000), expiry_label(7_000_000)],
            ["Expires in 0 s.", "Expires in 40 s.", "Expires in 4 min.", "Expires in 2 h."]
        );
        assert_eq!([dollars_label(0.0), dollars_label(0.0123), dollars_label(2.5)], ["$0.00", "$0.0123", "$2.50"]);
        assert_eq!(cost_label(&CallUsage::default()), "cost unknown");
    }

    #[test]
    fn parameters_are_read_as_what_they_do() {
        let object = |value: Value| value.as_object().cloned().unwrap_or_default();
        assert_eq!(parameters_text(&object(json!({"command": "ls -l"}))), "ls -l");
        let edit = json!({"path": "a.md", "old_content": "one\ntwo", "new_content": "2"});
        assert_eq!(parameters_text(&object(edit)), "@@ a.md @@\n-one\n-two\n+2");
        let edit = json!({"path": "a.md", "old_content": "one\ntwo\n", "new_content": "one\n2\n"});
        assert_eq!(parameters_text(&object(edit)), "@@ a.md @@\n one\n-two\n+2");
        assert_eq!(parameters_text(&object(json!({"limit": 3, "query": "rain"}))), "limit: 3\nquery: rain");
        let more = parameters_text(&object(json!({"path": "a.md", "content": "x", "then": "rm \u{1b}"})));
        assert!(more.contains("then: rm ␛") && more.contains("content: x"), "nothing is left out: {more}");
        assert_eq!(call_summary(&object(json!({"command": "ls\nrm"}))), "ls");
    }
}
