//! The log of a session: what was done lately, task by task, in the form of `llmos-lite.md`; written and read again.

use super::experience::{Experience, Outcome};
use super::trace::short;
use crate::planner;
use serde::{Deserialize, Serialize};

/// The folder of session logs in a folder of memory.
pub const FOLDER: &str = "short_term";
/// The log in a folder of memory.
pub const LOG: &str = "short_term/execution_log.md";
/// So many tasks are kept in it.
const KEPT: usize = 100;
/// Of the code of a task so much is logged, in bytes.
const CODE: usize = 4_000;
/// So many tasks of one file are read.
const MOST: usize = 2_000;
/// How the line of a call ends that failed.
const FAILED: &str = " (failed)";
/// How a task begins.
const TITLE: &str = "# Task: ";
/// The line around what is known of a task.
const RULE: &str = "---";

/// What is known of a task: the lines above its title.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Known {
    /// When, `2026-11-22T10:30:00Z`.
    pub timestamp: String,
    /// What kind of thing was done.
    pub action: String,
    /// A short name of it.
    pub task: String,
    /// How it stands: `completed`, `failed`.
    pub status: String,
    /// The run; empty: another program or a person has written it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// Who did it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// When it became an experience, where it was no run of ours.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub consolidated: String,
}

/// A task that was carried out, as the log has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// What is known of it.
    #[serde(flatten)]
    pub known: Known,
    /// What was wanted.
    pub goal: String,
    /// What was done, in order.
    pub actions: Vec<String>,
    /// What it led to.
    pub results: String,
    /// The code that was written or run.
    pub code: Vec<String>,
}

/// A task of a log, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The path of its note.
    pub path: String,
    /// Where it begins there, in bytes.
    pub at: usize,
    /// Its text in the note.
    pub text: String,
    /// The YAML above its title; empty: there is none.
    pub front: String,
    /// It.
    pub task: Task,
}

/// A value of the YAML above a title: as it is where nothing else can be meant, else between quotation marks.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let other = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"];
    let word = text.starts_with(char::is_alphabetic) && text.chars().all(plain);
    match word && !other.contains(&text.to_lowercase().as_str()) {
        true => text.to_owned(),
        false => serde_json::Value::from(text).to_string(),
    }
}

impl Known {
    /// As YAML, in the order of the reference.
    fn written(&self) -> String {
        let Known { timestamp, action, task, status, run, agent, consolidated } = self;
        let mut text = format!("timestamp: {timestamp}\n");
        for (key, value) in [("action", action), ("task", task), ("status", status), ("run", run), ("agent", agent)] {
            if !value.is_empty() {
                text.push_str(&format!("{key}: {}\n", scalar(value)));
            }
        }
        if !consolidated.is_empty() {
            text.push_str(&format!("consolidated: {consolidated}\n"));
        }
        text
    }
}

/// Whether a path is that of a log of a session.
pub fn is_log(path: &str) -> bool {
    super::is_memory(path) && path.ends_with(".md") && path.contains(&format!("{}/{FOLDER}/", super::FOLDER))
}

impl Task {
    /// A call in a line.
    pub fn action(call: &super::learn::Call) -> String {
        let subject = crate::policy::subject(&call.arguments).lines().next().unwrap_or_default();
        let subject = &subject[..subject.floor_char_boundary(120)];
        let end = if call.success == Some(true) { "" } else { FAILED };
        let colon = if subject.is_empty() { "" } else { ": " };
        format!("{}{colon}{subject}{end}", call.tool)
    }

    /// The code that a call wrote or ran.
    pub fn code_of(call: &super::learn::Call) -> Option<String> {
        let word = |key: &str| call.arguments.get(key).and_then(serde_json::Value::as_str);
        match call.tool.as_str() {
            "run_python" => word("code"),
            "write_file" if word("path").is_some_and(|path| path.ends_with(".py")) => word("content"),
            _ => None,
        }
        .map(str::to_owned)
    }

    /// The way in which it was done: the tools of its actions that did what was asked, in their order, one that is used
    /// again at once only once.
    pub fn way(&self) -> Vec<&str> {
        let tool = |action: &str| {
            let end = action.find([':', ' ']).unwrap_or(action.len());
            let (word, rest) = action.split_at(end);
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            let is = rest.is_empty() || rest.starts_with(": ");
            (is && !action.ends_with(FAILED) && word.chars().all(plain)).then_some(end)
        };
        let mut way: Vec<&str> = self.actions.iter().filter_map(|action| action.get(..tool(action)?)).collect();
        way.dedup();
        way
    }

    /// What came of it; `None`: it is not over.
    pub fn outcome(&self) -> Option<Outcome> {
        let failed = || self.actions.iter().any(|action| action.ends_with(FAILED));
        match self.known.status.as_str() {
            "completed" if failed() => Some(Outcome::SuccessWithRecovery),
            "completed" => Some(Outcome::Success),
            "failed" => Some(Outcome::Failure),
            _ => None,
        }
    }

    /// As a section of the log.
    pub fn written(&self) -> String {
        let title: String = self.goal.lines().next().unwrap_or_default().chars().take(80).collect();
        let task = planner::slug(&self.goal);
        let known = Known { task, ..self.known.clone() };
        let actions: Vec<String> =
            self.actions.iter().zip(1..).map(|(one, number)| format!("{number}. {one}")).collect();
        // Headings in what was said would read as further tasks.
        let plain = |text: &str| {
            text.lines().map(|line| format!("> {line}").trim_end().to_owned()).collect::<Vec<_>>().join("\n")
        };
        let mut code = String::new();
        for piece in &self.code {
            let room = CODE.saturating_sub(code.len());
            let piece = &piece[..piece.floor_char_boundary(room)];
            if piece.trim().is_empty() {
                continue;
            }
            // Indented, so that a heading in it is none, and it is no cell.
            let piece: String = piece.lines().map(|line| format!("    {line}").trim_end().to_owned() + "\n").collect();
            code.push_str(&format!("\n{piece}"));
        }
        let code = if code.is_empty() { code } else { format!("\n## Code Generated\n{code}") };
        format!(
            "{RULE}\n{}{RULE}\n\n{TITLE}{title}\n\n## Request\n\n{}\n\n## Actions Taken\n\n{}\n\n\
             ## Results\n\n{}\n{code}",
            known.written(),
            plain(&self.goal),
            actions.join("\n"),
            plain(&self.results)
        )
    }
}

impl Entry {
    /// The YAML above its title once it has become an experience. `at`: when.
    pub fn consolidated(&self, at: &str) -> String {
        format!("{}\nconsolidated: {at}\n", self.front.trim_end())
    }

    /// The experience that it becomes, where no run of ours has left one: with this note as its source. `None`: a run
    /// has, it has become one already, it is not over, or what is known of it is not said.
    pub fn experience(&self, project: &str) -> Option<Experience> {
        let Known { timestamp, run, agent, consolidated, .. } = &self.task.known;
        let open = run.is_empty() && consolidated.is_empty() && !self.front.trim().is_empty();
        let final_outcome = self.task.outcome().filter(|_| open)?;
        // A line of data is no lesson.
        let says = |line: &&str| !line.is_empty() && !line.starts_with(['{', '[', '`', '<']);
        let first = |text: &str| text.lines().map(str::trim).find(says).unwrap_or_default().to_owned();
        let goal = self.task.goal.trim();
        Some(Experience {
            experience_id: format!("exp_{}", &short(format!("{timestamp}\n{goal}").as_bytes())[..8]),
            project_name: project.to_owned(),
            primary_goal: goal.to_owned(),
            final_outcome,
            components_used: self.task.way().into_iter().map(str::to_owned).collect(),
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

/// Where the tasks of a log begin: at what is known of each, or at its title. With the YAML of each, by its place.
fn starts(text: &str) -> Vec<(usize, std::ops::Range<usize>)> {
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
    let begins = |number: usize| bare(number) == RULE && bare(number + 1).starts_with("timestamp:");
    let mut known: Option<(usize, std::ops::Range<usize>)> = None;
    let mut number = 0;
    while number < lines.len() && found.len() < MOST {
        let (at, line) = lines[number];
        if line.starts_with(TITLE) {
            found.push(known.take().unwrap_or((at, at..at)));
        } else if begins(number) {
            let close =
                (number + 1..lines.len()).find(|number| bare(*number) == RULE || bare(*number).starts_with('#'));
            if let Some(close) = close.filter(|close| bare(*close) == RULE && !begins(*close)) {
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

/// The tasks of a log, in their order. What is known of one and cannot be read is told.
pub fn entries(path: &str, text: &str, problems: &mut Vec<String>) -> Vec<Entry> {
    let starts = starts(text);
    let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([text.len()]);
    let mut found = Vec::new();
    for ((at, front), end) in starts.iter().zip(ends) {
        let front = text[front.clone()].to_owned();
        let known = match front.trim() {
            "" => Known::default(),
            yaml => text::yaml::typed::<Known>(yaml).unwrap_or_else(|error| {
                problems.push(format!("what is known of a task cannot be read ({error}): {path}"));
                Known::default()
            }),
        };
        let whole = &text[*at..end];
        found.push(Entry { path: path.to_owned(), at: *at, text: whole.to_owned(), front, task: task(known, whole) });
    }
    found
}

/// Reads a task.
fn task(mut known: Known, text: &str) -> Task {
    let mut task = Task::default();
    let mut section = String::new();
    let (mut request, mut results, mut code) = (String::new(), String::new(), String::new());
    let mut title = String::new();
    let mut titled = false;
    for line in text.lines() {
        if !titled {
            // What is above the title was read already.
            if let Some(words) = line.strip_prefix(TITLE) {
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
            // The form of earlier versions: `- status: completed`.
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
    Task { known, ..task }
}

/// The text of a log with one more task; the oldest go.
pub fn logged(text: &str, task: &str) -> String {
    let starts: Vec<usize> = starts(text).into_iter().map(|(at, _)| at).collect();
    let from = starts.len().checked_sub(KEPT - 1).and_then(|at| starts.get(at)).copied();
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
    // Below other text the last line of the YAML would be a heading where the rule follows it at once.
    let task = task.replacen(&format!("\n{RULE}\n\n{TITLE}"), &format!("\n\n{RULE}\n\n{TITLE}"), 1);
    format!("{before}{gap}{task}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<Entry> {
        let mut problems = Vec::new();
        let found = entries("memory/short_term/execution_log.md", text, &mut problems);
        assert_eq!(problems, [] as [String; 0], "{text}");
        found
    }

    fn report(number: usize) -> Task {
        Task {
            known: Known {
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
        let text = logged("", &report(1).written());
        let form = "---\ntimestamp: 2026-11-22T10:30:00Z\naction: task_execution\ntask: write_report_1\n\
                    status: completed\n\
                    run: \"00000000000000000000000000000001\"\nagent: assistant\n---\n\n# Task: Write the report 1\n\n\
                    ## Request\n\n> Write the report 1\n> # Task: no heading\n> ---\n> timestamp: none\n\n\
                    ## Actions Taken\n\n1. read_file: data.csv\n2. read_file: more.csv\n3. write_file\n\n\
                    ## Results\n\n> ## Results\n> It is written.\n> ---\n\n\
                    ## Code Generated\n\n    # Task: code\n    print(1)\n";
        assert_eq!(text, form);
        let mut whole = text;
        for number in 2..KEPT + 20 {
            whole = logged(&whole, &report(number).written());
        }
        let found = read(&whole);
        assert_eq!(found.len(), KEPT);
        for (entry, number) in found.iter().zip(20..) {
            assert_eq!(entry.task, report(number));
            assert_eq!(whole[entry.at..entry.at + entry.text.len()], entry.text);
        }
        assert_eq!(found[0].task.way(), ["read_file", "write_file"]);
        assert_eq!(found[0].experience("shop"), None, "its run has left one");
        // Nothing of it reads as a heading beside its own: neither what was said nor what is known of it.
        let heads = whole.lines().filter(|line| line.starts_with('#')).count();
        assert_eq!(heads, KEPT * 5);
        assert!(!whole.contains("agent: assistant\n---"), "the rule would make a heading of it");
    }

    /// As it stands in `llmos-lite.md`.
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
        let one = entry.experience("signal_fft").expect("nobody else has left one");
        assert_eq!((one.final_outcome, one.project_name.as_str()), (Outcome::Success, "signal_fft"));
        assert_eq!(one.source, "note memory/short_term/execution_log.md");
        assert_eq!(one.learnings_or_issues, "- Signal frequency: 50 Hz detected");
        assert_eq!(one.components_used, [] as [String; 0], "sentences are no tools");
        let marked = THEIRS.replacen(&entry.front, &entry.consolidated("2026-11-22T10:30:00Z"), 1);
        let again = read(&marked);
        assert_eq!((again[0].experience("signal_fft"), &again[0].task.goal), (None, &entry.task.goal));
        // What earlier versions of ours wrote is read, too.
        let old = "# Task: Sum up\n\n- timestamp: 2026-11-22T10:30:00Z\n- action: task_execution\n- status: failed\n\
                   - run: 12\n\n## Request\n\n> Sum up\n\n## Actions taken\n\n1. shell: x (failed)\n\n## Results\n\n\
                   > no\n";
        let both = logged(old, &report(2).written());
        let found = read(&both);
        assert_eq!((found.len(), found[0].task.outcome()), (2, Some(Outcome::Failure)));
        assert_eq!((found[0].task.known.run.as_str(), found[1].task.known.status.as_str()), ("12", "completed"));
        assert!(is_log("projects/p/memory/short_term/execution_log.md") && !is_log("memory/memory_log.md"));
    }

    proptest! {
        #[test]
        fn any_log_is_read_and_grows(
            text in "(---\n|timestamp: |status: completed\n|# Task: |## Results\n|> |1\\. |\\PC|\n|\r\n){0,40}"
        ) {
            let known = entries("memory/short_term/a.md", &text, &mut Vec::new());
            let ends = known.last().is_none_or(|last| last.at + last.text.len() == text.len());
            prop_assert!(ends);
            let more = entries("memory/short_term/a.md", &logged(&text, &report(1).written()), &mut Vec::new());
            prop_assert_eq!(more.last().map(|last| &last.task), Some(&report(1)));
        }
    }
}
