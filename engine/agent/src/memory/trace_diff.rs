//! Shows what a version of a trace does as text, and what differs between two versions, line by line.

use super::trace_versions::TraceVersion;
use serde_json::Value;
use text::diff::{self, DiffPart};

/// Maximum number of lines of a comparison.
const MAX_COMPARED_LINES: usize = 5_000;

/// Side of a line in a comparison of two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionLineSide {
    /// Both versions have it.
    Both,
    /// Only the older one has it.
    Removed,
    /// Only the newer one has it.
    Added,
}

impl VersionLineSide {
    /// Returns the sign before the line.
    pub const fn sign(self) -> char {
        match self {
            VersionLineSide::Both => ' ',
            VersionLineSide::Removed => '-',
            VersionLineSide::Added => '+',
        }
    }
}

impl TraceVersion {
    /// Describes what a replay does, one line per argument, condition and line of text.
    pub fn steps_text(&self) -> String {
        let mut lines = vec![format!("Goal: {}", self.goal_text.trim())];
        for slot in &self.slots {
            lines.push(format!("Value {} ({}), such as {}", slot.name, slot.kind.as_str(), slot.value));
        }
        for (step, number) in self.steps.iter().zip(1_usize..) {
            lines.push(format!("{number}. {}", step.tool));
            let mut arguments: Vec<(&String, &Value)> = step.input.iter().collect();
            arguments.sort_by_key(|(name, _)| *name);
            for (name, value) in arguments {
                push_argument(&mut lines, name, value);
            }
            let conditions = [
                (&step.needs, "must be there before"),
                (&step.free, "must not be there before"),
                (&step.leaves, "must be there after"),
                (&step.removes, "must not be there after"),
            ];
            for (paths, words) in conditions {
                lines.extend(paths.iter().map(|path| format!("   {path} {words}")));
            }
            if !step.expect.shape.is_empty() {
                lines.push(format!("   gets {}", step.expect.shape));
            }
            if !step.expect.same.is_empty() {
                lines.push(format!("   gets the same as before ({}{})", step.expect.same, step.expect.like));
            }
        }
        match &self.answer {
            Some(answer) => push_argument(&mut lines, "Answer", &Value::String(answer.clone())),
            None => lines.push("Answer: what the last step got".to_owned()),
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

fn push_argument(lines: &mut Vec<String>, name: &str, value: &Value) {
    let indent = if name == "Answer" { "" } else { "   " };
    match value {
        Value::String(text) if text.contains('\n') => {
            lines.push(format!("{indent}{name}:"));
            lines.extend(text.lines().map(|line| format!("{indent}   {line}").trim_end().to_owned()));
            if !text.ends_with('\n') {
                lines.push(format!("{indent}   (no line break at the end)"));
            }
        }
        Value::String(text) => lines.push(format!("{indent}{name}: {text}")),
        other => lines.push(format!("{indent}{name}: {other}")),
    }
}

/// Compares what two versions do. Returns all lines, with the side that each is on.
pub fn compare_versions(older: &TraceVersion, newer: &TraceVersion) -> Vec<(VersionLineSide, String)> {
    let (old_text, new_text) = (older.steps_text(), newer.steps_text());
    let mut lines = Vec::new();
    let mut push = |side: VersionLineSide, text: &str| lines.extend(text.lines().map(|line| (side, line.to_owned())));
    for part in diff::compare(&old_text, &new_text).parts {
        match part {
            DiffPart::Same { old, .. } => push(VersionLineSide::Both, &old_text[old]),
            DiffPart::Change { old, new, .. } => {
                push(VersionLineSide::Removed, &old_text[old]);
                push(VersionLineSide::Added, &new_text[new]);
            }
        }
    }
    lines.truncate(MAX_COMPARED_LINES);
    lines
}

/// Returns the lines that differ with their signs, and the line before each place where they do.
pub fn changed_lines(lines: &[(VersionLineSide, String)]) -> String {
    let mut text = String::new();
    let mut before: Option<&str> = None;
    for (side, line) in lines {
        if *side == VersionLineSide::Both {
            before = Some(line);
            continue;
        }
        if let Some(before) = before.take() {
            text.push_str(&format!("  {before}\n"));
        }
        text.push_str(&format!("{} {line}\n", side.sign()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::trace::TraceStep;
    use serde_json::json;

    fn version(text: &str) -> TraceVersion {
        let input = json!({"path": "reports/{month1}.md", "content": text});
        let step = TraceStep {
            tool: "write_file".to_owned(),
            input: input.as_object().cloned().expect("an object"),
            free: vec!["reports/{month1}.md".to_owned()],
            ..TraceStep::default()
        };
        TraceVersion { goal_text: "Write it".to_owned(), steps: vec![step], ..TraceVersion::default() }
    }

    #[test]
    fn versions_are_compared_line_by_line() {
        let lines = compare_versions(&version("# Report\n\nSold: {step1}\n"), &version("# Report\n\nTotal: {step1}\n"));
        let shown: Vec<String> = lines.iter().map(|(side, line)| format!("{}{line}", side.sign())).collect();
        let expected = [
            " Goal: Write it",
            " 1. write_file",
            "    content:",
            "       # Report",
            " ",
            "-      Sold: {step1}",
            "+      Total: {step1}",
            "    path: reports/{month1}.md",
            "    reports/{month1}.md must not be there before",
            " Answer: what the last step got",
        ];
        assert_eq!(shown, expected);
        assert_eq!(changed_lines(&lines), "  \n-       Sold: {step1}\n+       Total: {step1}\n");
        let same = compare_versions(&version("a"), &version("a"));
        assert!(same.iter().all(|(side, _)| *side == VersionLineSide::Both));
    }
}
