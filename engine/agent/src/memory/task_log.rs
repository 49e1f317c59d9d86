//! The session log: recent tasks in the format of `llmos-lite.md`, written and parsed.

use super::experience::{Experience, RunOutcome};
use super::trace::short_hash;
use crate::goal_slug::slug;
use crate::tool_catalog::BuiltInTool;
use serde::{Deserialize, Serialize};

/// Folder of session logs in a memory folder.
pub const TASK_LOG_FOLDER: &str = "short_term";
/// Path of the log in a memory folder.
pub const TASK_LOG_FILE: &str = "short_term/execution_log.md";
/// Maximum number of tasks in a log.
const MAX_LOGGED_TASKS: usize = 100;
/// Maximum length of a task's code in the log, in bytes.
const MAX_LOGGED_CODE_BYTES: usize = 4_000;
/// Maximum number of tasks read from one file.
const MAX_READ_LOG_TASKS: usize = 2_000;
/// Suffix of a failed call's line.
const FAILED_ACTION_SUFFIX: &str = " (failed)";
/// Prefix of a task's heading.
const TASK_HEADING_PREFIX: &str = "# Task: ";
/// Delimiter of a task's metadata.
const METADATA_DELIMITER: &str = "---";

/// Metadata of a task: the lines above its title.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskLogMetadata {
    /// When the task was logged, such as `2026-11-22T10:30:00Z`.
    pub timestamp: String,
    /// Kind of action, such as `task_execution`.
    pub action: String,
    /// Short name of the task.
    pub task: String,
    /// Status: `completed` or `failed`.
    pub status: String,
    /// Id of the run; empty if another program or a person wrote the entry.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// Name of the agent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// When it was converted to an experience, if it isn't from one of our runs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub consolidated: String,
}

/// A completed task from the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedTask {
    /// Metadata of the task.
    #[serde(flatten)]
    pub known: TaskLogMetadata,
    /// The goal of the task.
    pub goal: String,
    /// The actions taken, in order.
    pub actions: Vec<String>,
    /// The results.
    pub results: String,
    /// Code that was written or run.
    pub code: Vec<String>,
}

/// A logged task and its place in its note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskLogEntry {
    /// Path of the note.
    pub path: String,
    /// Where the task starts in the note, in bytes.
    pub at: usize,
    /// The task's text in the note.
    pub text: String,
    /// The YAML above the title; empty if there's none.
    pub front: String,
    /// The task, parsed.
    pub task: LoggedTask,
}

/// Formats a YAML scalar, quoted only if needed.
fn yaml_scalar(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let other = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"];
    let word = text.starts_with(char::is_alphabetic) && text.chars().all(plain);
    match word && !other.contains(&text.to_lowercase().as_str()) {
        true => text.to_owned(),
        false => serde_json::Value::from(text).to_string(),
    }
}

impl TaskLogMetadata {
    /// Formats the metadata as YAML, with the keys in the order of the reference.
    fn to_yaml(&self) -> String {
        let TaskLogMetadata { timestamp, action, task, status, run, agent, consolidated } = self;
        let mut text = format!("timestamp: {timestamp}\n");
        for (key, value) in [("action", action), ("task", task), ("status", status), ("run", run), ("agent", agent)] {
            if !value.is_empty() {
                text.push_str(&format!("{key}: {}\n", yaml_scalar(value)));
            }
        }
        if !consolidated.is_empty() {
            text.push_str(&format!("consolidated: {consolidated}\n"));
        }
        text
    }
}

/// Returns whether a path is that of a session log.
pub fn is_task_log(path: &str) -> bool {
    super::is_memory(path)
        && path.ends_with(".md")
        && path.contains(&format!("{}/{TASK_LOG_FOLDER}/", super::MEMORY_FOLDER))
}

impl LoggedTask {
    /// Formats a call as one line: tool, main argument, and whether it failed.
    pub fn action_line(call: &super::trace_extraction::CompletedCall) -> String {
        let subject = crate::policy::main_argument(&call.arguments).lines().next().unwrap_or_default();
        let subject = &subject[..subject.floor_char_boundary(120)];
        let end = if call.success == Some(true) { "" } else { FAILED_ACTION_SUFFIX };
        let colon = if subject.is_empty() { "" } else { ": " };
        format!("{}{colon}{subject}{end}", call.tool)
    }

    /// Returns the code that a call wrote or ran.
    pub fn call_code(call: &super::trace_extraction::CompletedCall) -> Option<String> {
        let word = |key: &str| call.arguments.get(key).and_then(serde_json::Value::as_str);
        match BuiltInTool::from_name(&call.tool) {
            Some(BuiltInTool::RunPython) => word("code"),
            Some(BuiltInTool::WriteFile) if word("path").is_some_and(|path| path.ends_with(".py")) => word("content"),
            _ => None,
        }
        .map(str::to_owned)
    }

    /// Returns the tools of the successful actions, in order. Consecutive uses of one tool count once.
    pub fn tool_sequence(&self) -> Vec<&str> {
        let tool = |action: &str| {
            let end = action.find([':', ' ']).unwrap_or(action.len());
            let (word, rest) = action.split_at(end);
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            let is = rest.is_empty() || rest.starts_with(": ");
            (is && !action.ends_with(FAILED_ACTION_SUFFIX) && word.chars().all(plain)).then_some(end)
        };
        let mut way: Vec<&str> = self.actions.iter().filter_map(|action| action.get(..tool(action)?)).collect();
        way.dedup();
        way
    }

    /// Returns the outcome; `None` if the task isn't finished.
    pub fn outcome(&self) -> Option<RunOutcome> {
        let failed = || self.actions.iter().any(|action| action.ends_with(FAILED_ACTION_SUFFIX));
        match self.known.status.as_str() {
            "completed" if failed() => Some(RunOutcome::SuccessWithRecovery),
            "completed" => Some(RunOutcome::Success),
            "failed" => Some(RunOutcome::Failure),
            _ => None,
        }
    }

    /// Formats the task as a section of the log.
    pub fn to_markdown(&self) -> String {
        let title: String = self.goal.lines().next().unwrap_or_default().chars().take(80).collect();
        let task = slug(&self.goal);
        let known = TaskLogMetadata { task, ..self.known.clone() };
        let actions: Vec<String> =
            self.actions.iter().zip(1..).map(|(one, number)| format!("{number}. {one}")).collect();
        // Quoted, because headings in the text would be parsed as further tasks.
        let plain = |text: &str| {
            text.lines().map(|line| format!("> {line}").trim_end().to_owned()).collect::<Vec<_>>().join("\n")
        };
        let mut code = String::new();
        for piece in &self.code {
            let room = MAX_LOGGED_CODE_BYTES.saturating_sub(code.len());
            let piece = &piece[..piece.floor_char_boundary(room)];
            if piece.trim().is_empty() {
                continue;
            }
            // Indented, so that its headings and fences aren't interpreted.
            let piece: String = piece.lines().map(|line| format!("    {line}").trim_end().to_owned() + "\n").collect();
            code.push_str(&format!("\n{piece}"));
        }
        let code = if code.is_empty() { code } else { format!("\n## Code Generated\n{code}") };
        format!(
            "{METADATA_DELIMITER}\n{}{METADATA_DELIMITER}\n\n{TASK_HEADING_PREFIX}{title}\n\n## Request\n\n{}\n\n## \
                Actions Taken\n\n{}\n\n\
             ## Results\n\n{}\n{code}",
            known.to_yaml(),
            plain(&self.goal),
            actions.join("\n"),
            plain(&self.results)
        )
    }
}

impl TaskLogEntry {
    /// Returns the YAML above the title, marked as converted to an experience. `at` is the time of the conversion.
    pub fn consolidated_metadata(&self, at: &str) -> String {
        format!("{}\nconsolidated: {at}\n", self.front.trim_end())
    }

    /// Converts the task to an experience with this note as source. Returns `None` if it was already converted, isn't
    /// finished, or has no metadata, or if it's from one of our runs, which store their own.
    pub fn to_experience(&self, project: &str) -> Option<Experience> {
        let TaskLogMetadata { timestamp, run, agent, consolidated, .. } = &self.task.known;
        let open = run.is_empty() && consolidated.is_empty() && !self.front.trim().is_empty();
        let final_outcome = self.task.outcome().filter(|_| open)?;
        // A line of data isn't a lesson.
        let says = |line: &&str| !line.is_empty() && !line.starts_with(['{', '[', '`', '<']);
        let first = |text: &str| text.lines().map(str::trim).find(says).unwrap_or_default().to_owned();
        let goal = self.task.goal.trim();
        Some(Experience {
            experience_id: format!("exp_{}", &short_hash(format!("{timestamp}\n{goal}").as_bytes())[..8]),
            project_name: project.to_owned(),
            primary_goal: goal.to_owned(),
            final_outcome,
            components_used: self.task.tool_sequence().into_iter().map(str::to_owned).collect(),
            output_summary: self.task.results.clone(),
            learnings_or_issues: first(&self.task.results),
            timestamp: timestamp.clone(),
            source: format!("note {}", self.path),
            note: self.path.clone(),
            author: if agent.is_empty() { "a session log".to_owned() } else { agent.clone() },
            ..Experience::default()
        })
    }
}

/// Returns where the tasks of a log start, at their metadata or their title, and the range of each task's YAML.
fn find_task_starts(text: &str) -> Vec<(usize, std::ops::Range<usize>)> {
    let mut found: Vec<(usize, std::ops::Range<usize>)> = Vec::new();
    let lines: Vec<(usize, &str)> = text
        .split_inclusive('\n')
        .scan(0, |at, line| {
            let start = *at;
            *at += line.len();
            Some((start, line))
        })
        .collect();
    let bare = |number: usize| lines.get(number).map_or("", |(_, line)| line.trim_end());
    let begins = |number: usize| bare(number) == METADATA_DELIMITER && bare(number + 1).starts_with("timestamp:");
    let mut known: Option<(usize, std::ops::Range<usize>)> = None;
    let mut number = 0;
    while number < lines.len() && found.len() < MAX_READ_LOG_TASKS {
        let (at, line) = lines[number];
        if line.starts_with(TASK_HEADING_PREFIX) {
            found.push(known.take().unwrap_or((at, at..at)));
        } else if begins(number) {
            let close = (number + 1..lines.len())
                .find(|number| bare(*number) == METADATA_DELIMITER || bare(*number).starts_with('#'));
            if let Some(close) = close.filter(|close| bare(*close) == METADATA_DELIMITER && !begins(*close)) {
                let from = at + line.len();
                known = Some((at, from..lines[close].0));
                number = close;
            }
        } else if !line.trim().is_empty() {
            known = None; // it belongs to the title right below it
        }
        number += 1;
    }
    found
}

/// Parses the tasks of a log. Unreadable metadata is reported in `problems`.
pub fn parse_entries(path: &str, text: &str, problems: &mut Vec<String>) -> Vec<TaskLogEntry> {
    let starts = find_task_starts(text);
    let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([text.len()]);
    let mut found = Vec::new();
    for ((at, front), end) in starts.iter().zip(ends) {
        let front = text[front.clone()].to_owned();
        let known = match front.trim() {
            "" => TaskLogMetadata::default(),
            yaml => text::yaml_edit::parse_typed::<TaskLogMetadata>(yaml).unwrap_or_else(|error| {
                problems.push(format!("what is known of a task cannot be read ({error}): {path}"));
                TaskLogMetadata::default()
            }),
        };
        let whole = &text[*at..end];
        found.push(TaskLogEntry {
            path: path.to_owned(),
            at: *at,
            text: whole.to_owned(),
            front,
            task: parse_task(known, whole),
        });
    }
    found
}

/// Parses one task of a log.
fn parse_task(mut known: TaskLogMetadata, text: &str) -> LoggedTask {
    let mut task = LoggedTask::default();
    let mut section = String::new();
    let (mut request, mut results, mut code) = (String::new(), String::new(), String::new());
    let mut title = String::new();
    let mut titled = false;
    for line in text.lines() {
        if !titled {
            // Metadata above the title is already parsed.
            if let Some(words) = line.strip_prefix(TASK_HEADING_PREFIX) {
                (titled, title) = (true, words.trim().to_owned());
            }
            continue;
        }
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading.trim().to_lowercase();
            continue;
        }
        let quoted = line.strip_prefix("> ").or_else(|| line.strip_prefix('>')).unwrap_or(line);
        match section.as_str() {
            // The format of earlier versions: `- status: completed`.
            "" => {
                let (key, value) = line.trim_start_matches("- ").split_once(": ").unwrap_or_default();
                let place = match key {
                    "timestamp" => &mut known.timestamp,
                    "action" => &mut known.action,
                    "status" => &mut known.status,
                    "run" => &mut known.run,
                    _ => continue,
                };
                if line.starts_with("- ") && place.is_empty() {
                    value.trim().clone_into(place);
                }
            }
            "request" => request.push_str(&format!("{quoted}\n")),
            "results" => results.push_str(&format!("{quoted}\n")),
            "actions taken" => {
                let digits = line.bytes().take_while(u8::is_ascii_digit).count();
                let action =
                    line[digits..].strip_prefix(". ").filter(|_| digits > 0).or_else(|| line.strip_prefix("- "));
                task.actions.extend(action.map(|action| action.trim().to_owned()));
            }
            "code generated" => code.push_str(&format!("{}\n", line.strip_prefix("    ").unwrap_or(line))),
            _ => {}
        }
    }
    let goal = request.trim();
    (if goal.is_empty() { title.as_str() } else { goal }).clone_into(&mut task.goal);
    results.trim().clone_into(&mut task.results);
    task.code = Some(code.trim_matches('\n').to_owned()).filter(|code| !code.trim().is_empty()).into_iter().collect();
    LoggedTask { known, ..task }
}

/// Returns the text of a log with one more task. The oldest tasks are removed beyond `MAX_LOGGED_TASKS`.
pub fn with_logged_task(text: &str, task: &str) -> String {
    let starts: Vec<usize> = find_task_starts(text).into_iter().map(|(at, _)| at).collect();
    let from = starts.len().checked_sub(MAX_LOGGED_TASKS - 1).and_then(|at| starts.get(at)).copied();
    let (head, rest) = match (from, starts.first()) {
        (Some(from), Some(first)) => (&text[..*first], &text[from..]),
        _ => ("", text),
    };
    let before = format!("{head}{rest}");
    if before.trim().is_empty() {
        return task.to_owned();
    }
    let gap = match (before.ends_with("\n\n"), before.ends_with('\n')) {
        (true, _) => "",
        (false, true) => "\n",
        (false, false) => "\n\n",
    };
    // An empty line separates the YAML from the closing rule. Without it, Markdown makes the last YAML line a heading.
    let task = task.replacen(
        &format!("\n{METADATA_DELIMITER}\n\n{TASK_HEADING_PREFIX}"),
        &format!("\n\n{METADATA_DELIMITER}\n\n{TASK_HEADING_PREFIX}"),
        1,
    );
    format!("{before}{gap}{task}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<TaskLogEntry> {
        let mut problems = Vec::new();
        let found = parse_entries("memory/short_term/execution_log.md", text, &mut problems);
        assert_eq!(problems, [] as [String; 0], "{text}");
        found
    }

    fn report(number: usize) -> LoggedTask {
        LoggedTask {
            known: TaskLogMetadata {
                timestamp: "2026-11-22T10:30:00Z".to_owned(),
                action: "task_execution".to_owned(),
                task: format!("write_report_{number}"),
                status: "completed".to_owned(),
                run: format!("{number:032x}"),
                agent: "assistant".to_owned(),
                consolidated: String::new(),
            },
            goal: format!("Write the report {number}\n# Task: no heading\n---\ntimestamp: none"),
            actions: vec!["read_file: data.csv".to_owned(), "read_file: more.csv".to_owned(), "write_file".to_owned()],
            results: "## Results\nIt is written.\n---".to_owned(),
            code: vec!["# Task: code\nprint(1)".to_owned()],
        }
    }

    #[test]
    fn it_is_in_the_form_of_the_reference_and_read_again() {
        let text = with_logged_task("", &report(1).to_markdown());
        let form = "---\ntimestamp: 2026-11-22T10:30:00Z\naction: task_execution\ntask: write_report_1\n\
                    status: completed\n\
                    run: \"00000000000000000000000000000001\"\nagent: assistant\n---\n\n# Task: Write the report 1\n\n\
                    ## Request\n\n> Write the report 1\n> # Task: no heading\n> ---\n> timestamp: none\n\n\
                    ## Actions Taken\n\n1. read_file: data.csv\n2. read_file: more.csv\n3. write_file\n\n\
                    ## Results\n\n> ## Results\n> It is written.\n> ---\n\n\
                    ## Code Generated\n\n    # Task: code\n    print(1)\n";
        assert_eq!(text, form);
        let mut whole = text;
        for number in 2..MAX_LOGGED_TASKS + 20 {
            whole = with_logged_task(&whole, &report(number).to_markdown());
        }
        let found = read(&whole);
        assert_eq!(found.len(), MAX_LOGGED_TASKS);
        for (entry, number) in found.iter().zip(20..) {
            assert_eq!(entry.task, report(number));
            assert_eq!(whole[entry.at..entry.at + entry.text.len()], entry.text);
        }
        assert_eq!(found[0].task.tool_sequence(), ["read_file", "write_file"]);
        assert_eq!(found[0].to_experience("shop"), None, "its run has left one");
        // None of the content is parsed as another heading: neither results nor metadata.
        let heads = whole.lines().filter(|line| line.starts_with('#')).count();
        assert_eq!(heads, MAX_LOGGED_TASKS * 5);
        assert!(!whole.contains("agent: assistant\n---"), "the rule would make a heading of it");
    }

    /// An example from `llmos-lite.md`.
    const THEIRS: &str = "---\ntimestamp: 2025-12-21T18:30:00Z\naction: task_execution\ntask: signal_analysis\n\
                          status: completed\n---\n\n# Task: Signal Analysis with FFT\n\n## Request\n\
                          User asked to create a sine wave signal, add noise, and apply FFT.\n\n## Actions Taken\n\
                          1. Created project structure: projects/signal_fft_analysis/\n\
                          2. Generated Python code for signal processing\n\n## Results\n\
                          - Signal frequency: 50 Hz detected\n- Visualization saved: signal_fft_spectrum.png\n\n\
                          ## Code Generated\nimport numpy\n";

    #[test]
    fn the_reference_s_own_is_read_and_becomes_an_experience_once() {
        let found = read(THEIRS);
        let [entry] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((entry.task.known.task.as_str(), entry.task.actions.len()), ("signal_analysis", 2));
        assert_eq!(entry.task.code, ["import numpy"]);
        let one = entry.to_experience("signal_fft").expect("nobody else has left one");
        assert_eq!((one.final_outcome, one.project_name.as_str()), (RunOutcome::Success, "signal_fft"));
        assert_eq!(one.source, "note memory/short_term/execution_log.md");
        assert_eq!(one.learnings_or_issues, "- Signal frequency: 50 Hz detected");
        assert_eq!(one.components_used, [] as [String; 0], "sentences are no tools");
        let marked = THEIRS.replacen(&entry.front, &entry.consolidated_metadata("2026-11-22T10:30:00Z"), 1);
        let again = read(&marked);
        assert_eq!((again[0].to_experience("signal_fft"), &again[0].task.goal), (None, &entry.task.goal));
        // The format of our earlier versions is parsed, too.
        let old = "# Task: Sum up\n\n- timestamp: 2026-11-22T10:30:00Z\n- action: task_execution\n- status: failed\n\
                   - run: 12\n\n## Request\n\n> Sum up\n\n## Actions taken\n\n1. shell: x (failed)\n\n## Results\n\n\
                   > no\n";
        let both = with_logged_task(old, &report(2).to_markdown());
        let found = read(&both);
        assert_eq!((found.len(), found[0].task.outcome()), (2, Some(RunOutcome::Failure)));
        assert_eq!((found[0].task.known.run.as_str(), found[1].task.known.status.as_str()), ("12", "completed"));
        assert!(is_task_log("projects/p/memory/short_term/execution_log.md") && !is_task_log("memory/memory_log.md"));
    }

    proptest! {
        #[test]
        fn any_log_is_read_and_grows(
            text in "(---\n|timestamp: |status: completed\n|# Task: |## Results\n|> |1\\. |\\PC|\n|\r\n){0,40}"
        ) {
            let known = parse_entries("memory/short_term/a.md", &text, &mut Vec::new());
            let ends = known.last().is_none_or(|last| last.at + last.text.len() == text.len());
            prop_assert!(ends);
            let more = parse_entries("memory/short_term/a.md", &with_logged_task(&text, &report(1).to_markdown()),
                &mut Vec::new());
            prop_assert_eq!(more.last().map(|last| &last.task), Some(&report(1)));
        }
    }
}
