//! Consolidation of logs. Writes recurring goals and how they were reached, good practices and failures to avoid as
//! long-term notes. Turns tasks in session logs that aren't our runs into experiences. Works by counting; no model is
//! needed.

use super::experience::{AdmissionDecision, EXPERIENCE_LOG_FILE, Experience, decide_admission};
use super::goal::ParsedGoal;
use super::{ProjectMemory, task_log};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use text::task::CalendarDay;

/// Maximum number of lessons of each kind.
const MAX_CONSOLIDATED_LESSONS: usize = 100;

/// Result of a consolidation.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsolidationResult {
    /// The text of `patterns.md`.
    pub patterns: String,
    /// The text of `best_practices.md`.
    pub best_practices: String,
    /// Ids of expired experiences, which are removed.
    pub expired: Vec<String>,
    /// Number of patterns found.
    pub patterns_found: usize,
    /// Logged tasks that become experiences, each with its place in the log.
    pub new: Vec<(task_log::TaskLogEntry, Experience)>,
}

/// Experiences and logged tasks whose goals have the same template.
#[derive(Default)]
struct GoalGroup<'a> {
    known: Vec<&'a Experience>,
    tasks: Vec<&'a task_log::LoggedTask>,
}

impl GoalGroup<'_> {
    /// Returns the number of attempts and of successes. A run leaves both an experience and a logged task, so the
    /// larger count is used, not the sum. The log keeps fewer entries.
    fn attempt_counts(&self) -> (u64, u64) {
        let times = |one: &&&Experience| one.count.max(1);
        let good = |one: &&&Experience| one.final_outcome.is_good();
        let of_known = (
            self.known.iter().map(|one| times(&one)).sum(),
            self.known.iter().filter(good).map(|one| times(&one)).sum(),
        );
        let over: Vec<bool> =
            self.tasks.iter().filter_map(|task| task.outcome()).map(|outcome| outcome.is_good()).collect();
        let of_tasks = (over.len() as u64, over.iter().filter(|good| **good).count() as u64);
        if of_known.0 >= of_tasks.0 { of_known } else { of_tasks }
    }

    /// Returns the sequence of tools that succeeded most often, with its successes and attempts.
    fn most_successful_way(&self) -> Option<(String, usize, usize)> {
        let well = self.tasks.iter().filter(|task| task.outcome().is_some_and(super::experience::RunOutcome::is_good));
        let ways: Vec<Vec<&str>> = well.map(|task| task.tool_sequence()).filter(|way| !way.is_empty()).collect();
        let mut counts: BTreeMap<&Vec<&str>, usize> = BTreeMap::new();
        for way in &ways {
            *counts.entry(way).or_default() += 1;
        }
        let (way, count) = counts.into_iter().max_by_key(|(way, count)| (*count, Reverse(way.len())))?;
        Some((way.join(", then "), count, ways.len()))
    }
}

impl ProjectMemory {
    /// Consolidates the memory of a folder and its session logs into notes. `project` is the project's name.
    pub fn consolidate(&self, folder: &str, project: &str, today: CalendarDay) -> ConsolidationResult {
        let (mut expired, mut kept) = (Vec::new(), Vec::new());
        for entry in self.entries.iter().filter(|entry| entry.path == format!("{folder}/{EXPERIENCE_LOG_FILE}")) {
            let one = &entry.experience;
            match CalendarDay::parse(&one.expires).is_some_and(|expires| today >= expires) {
                true => expired.push(one.experience_id.clone()),
                false => kept.push(one),
            }
        }
        let below = format!("{folder}/{}/", task_log::TASK_LOG_FOLDER);
        let logged: Vec<&task_log::TaskLogEntry> =
            self.logged.iter().filter(|entry| entry.path.starts_with(&below)).collect();
        let taken = |entry: &&task_log::TaskLogEntry| Some(((*entry).clone(), entry.to_experience(project)?));
        let new: Vec<(task_log::TaskLogEntry, Experience)> = logged.iter().filter_map(taken).collect();
        let mut all = kept;
        for (_, one) in &new {
            // Tasks that repeat a known experience are already counted there.
            if let AdmissionDecision::Keep | AdmissionDecision::Supersede(_) = decide_admission(one, &all) {
                all.push(one);
            }
        }
        let mut groups: BTreeMap<String, GoalGroup<'_>> = BTreeMap::new();
        for one in &all {
            groups.entry(ParsedGoal::parse(&one.primary_goal).template_text()).or_default().known.push(one);
        }
        for entry in &logged {
            groups.entry(ParsedGoal::parse(&entry.task.goal).template_text()).or_default().tasks.push(&entry.task);
        }
        let (patterns, patterns_found) = patterns_note(&groups);
        ConsolidationResult { patterns, best_practices: best_practices_note(&all), expired, patterns_found, new }
    }
}

/// Writes the note of recurring goals, most frequent first, and returns their number.
fn patterns_note(groups: &BTreeMap<String, GoalGroup<'_>>) -> (String, usize) {
    let mut text = String::from("# Patterns\n\nGoals that recur, and how well they went.\n");
    let mut order: Vec<(&String, &GoalGroup<'_>)> =
        groups.iter().filter(|(_, group)| group.attempt_counts().0 > 1).collect();
    order.sort_by_key(|(_, group)| Reverse(group.attempt_counts().0));
    for (form, group) in &order {
        let (times, good) = group.attempt_counts();
        let of_known = group.known.iter().flat_map(|one| one.components_used.iter().map(String::as_str));
        let parts: BTreeSet<&str> = of_known.chain(group.tasks.iter().flat_map(|task| task.tool_sequence())).collect();
        let parts: Vec<&str> = parts.into_iter().collect();
        let parts = if parts.is_empty() { "no tools".to_owned() } else { parts.join(", ") };
        text.push_str(&format!("\n## {form}\n\n- {times} times, {good} of them well\n- With {parts}\n"));
        if let Some((way, count, all)) = group.most_successful_way() {
            text.push_str(&format!("- Succeeded with {way} ({count} of {all} times)\n"));
        }
        let mut from: Vec<String> = group.known.iter().map(|one| one.experience_id.clone()).collect();
        from.extend(match group.tasks.len() {
            0 => None,
            1 => Some("1 task of the session log".to_owned()),
            count => Some(format!("{count} tasks of the session log")),
        });
        text.push_str(&format!("- From {}\n", from.join(", ")));
    }
    (text, order.len())
}

/// Returns the advice of an experience: what to do (`good`), or what to avoid. After a success that's its first line
/// and the lines about failures on the way; lines that are data are skipped.
fn lessons_from(one: &Experience, good: bool) -> Vec<&str> {
    let lines = one.learnings_or_issues.lines().map(|line| line.trim().trim_start_matches("- "));
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with(['{', '[', '`', '<']));
    let failed = |line: &&str| line.contains(" failed: ");
    match (one.final_outcome.is_good(), good) {
        (true, true) => lines.find(|line| !failed(line)).into_iter().collect(),
        (true, false) => lines.filter(failed).collect(),
        (false, false) => lines.next().into_iter().collect(),
        (false, true) => Vec::new(),
    }
}

/// Writes the note of lessons, each with its sources.
fn best_practices_note(all: &[&Experience]) -> String {
    let mut text = String::from("# Best practices\n\nWhat has proved good, and what to avoid.\n");
    for (title, good) in [("Do", true), ("Avoid", false)] {
        let mut lessons: BTreeMap<&str, (u64, Vec<&str>)> = BTreeMap::new();
        for one in all.iter().filter(|one| one.superseded_by.is_empty()) {
            for lesson in lessons_from(one, good) {
                let (count, ids) = lessons.entry(lesson).or_default();
                *count += one.count.max(1);
                ids.push(&one.experience_id);
            }
        }
        let mut order: Vec<(&str, (u64, Vec<&str>))> = lessons.into_iter().collect();
        order.sort_by_key(|(_, (count, _))| Reverse(*count));
        text.push_str(&format!("\n## {title}\n\n"));
        for (lesson, (count, ids)) in order.into_iter().take(MAX_CONSOLIDATED_LESSONS) {
            text.push_str(&format!("- {lesson} ({count} times; {})\n", ids.join(", ")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::experience::{EXPERIENCE_LOG_HEADING, RunOutcome};

    const THEIRS: &str = "---\ntimestamp: 2025-12-21T18:30:00Z\naction: task_execution\ntask: peaks\nstatus: \
                          completed\n---\n\n# Task: Find the peaks of a signal\n\n## Results\n- Use scipy.fft\n";

    fn task(number: u8, goal: &str, actions: &[&str], status: &str) -> String {
        let known = task_log::TaskLogMetadata {
            timestamp: format!("2026-11-2{number}T10:00:00Z"),
            status: status.to_owned(),
            run: format!("{number:032x}"),
            ..task_log::TaskLogMetadata::default()
        };
        let actions = actions.iter().map(|one| (*one).to_owned()).collect();
        task_log::LoggedTask { known, goal: goal.to_owned(), actions, ..task_log::LoggedTask::default() }.to_markdown()
    }

    fn memory() -> ProjectMemory {
        let one = Experience {
            experience_id: "exp_1".to_owned(),
            project_name: "shop".to_owned(),
            primary_goal: "Write the report for October 2026".to_owned(),
            learnings_or_issues: "read_file, write_file did it, in 3 model calls.".to_owned(),
            components_used: vec!["assistant".to_owned()],
            source: "run 1".to_owned(),
            count: 2,
            ..Experience::default()
        };
        let gone = Experience {
            experience_id: "exp_2".to_owned(),
            primary_goal: "Call the shop at once".to_owned(),
            final_outcome: RunOutcome::Failure,
            expires: "2026-01-01".to_owned(),
            ..one.clone()
        };
        let (read, write) = ("read_file: a.csv", "write_file: b.md");
        let mut lately =
            task_log::with_logged_task("", &task(1, "Write the report for October 2026", &[read, write], "completed"));
        let goal = "Write the report for November 2026";
        lately = task_log::with_logged_task(&lately, &task(2, goal, &[read, read, write], "completed"));
        lately = task_log::with_logged_task(&lately, &task(3, goal, &["shell: x (failed)", write], "completed"));
        lately = task_log::with_logged_task(&lately, &task(4, goal, &["shell: x (failed)"], "failed"));
        let file = |path: &str, text: String| (path.to_owned(), text);
        ProjectMemory::from_files([
            file(
                "memory/memory_log.md",
                format!("{EXPERIENCE_LOG_HEADING}{}\n{}", one.to_markdown(), gone.to_markdown()),
            ),
            file("memory/short_term/execution_log.md", lately),
            file("memory/short_term/older.md", THEIRS.to_owned()),
            file("projects/x/memory/short_term/execution_log.md", THEIRS.replace("peaks", "valleys")),
        ])
    }

    #[test]
    fn what_repeats_is_told_with_the_way_that_went_well() {
        let memory = memory();
        assert_eq!((memory.entries.len(), memory.logged.len(), memory.problems.len()), (2, 6, 0));
        let today = CalendarDay::parse("2026-11-23").expect("a day");
        let made = memory.consolidate("memory", "shop", today);
        assert_eq!((made.expired.as_slice(), made.patterns_found), (["exp_2".to_owned()].as_slice(), 1));
        let wanted = "- 4 times, 3 of them well\n- With assistant, read_file, write_file\n- Succeeded with \
                      read_file, then write_file (2 of 3 times)\n- From exp_1, 4 tasks of the session log\n";
        assert!(made.patterns.contains(wanted), "{}", made.patterns);
        // A log written by another program yields an experience, whose lesson counts at once.
        let [(entry, one)] = made.new.as_slice() else { panic!("{:?}", made.new) };
        assert_eq!(entry.path, "memory/short_term/older.md");
        assert_eq!(
            (one.primary_goal.as_str(), one.learnings_or_issues.as_str()),
            ("Find the peaks of a signal", "- Use scipy.fft")
        );
        assert!(made.best_practices.contains(&format!("- Use scipy.fft (1 times; {})", one.experience_id)));
        assert!(made.best_practices.contains("- read_file, write_file did it, in 3 model calls. (2 times; exp_1)"));
        // A project's log is consolidated only for that project.
        let other = memory.consolidate("projects/x/memory", "x", today);
        assert_eq!(
            other.new.iter().map(|(_, one)| one.primary_goal.as_str()).collect::<Vec<_>>(),
            ["Find the valleys of a signal"]
        );
    }
}
