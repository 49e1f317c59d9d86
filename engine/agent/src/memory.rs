//! Memory: earlier work, stored as notes of the project that people can read and edit. Pure: texts in, texts out.

pub mod consolidation;
pub mod experience;
pub mod goal;
pub mod idle_consolidation;
pub mod insight;
pub mod place;
pub mod replay_steps;
pub mod result_check;
pub mod run_outcome;
pub mod slots;
pub mod task_log;
pub mod trace;
pub mod trace_compression;
pub mod trace_diff;
pub mod trace_edits;
pub mod trace_extraction;
pub mod trace_feedback;
mod trace_findings;
pub mod trace_library;
mod trace_lists;
pub mod trace_trust;
pub mod trace_update;
pub mod trace_verification;
pub mod trace_versions;
pub mod trace_wording;

use goal::ParsedGoal;
use serde::{Deserialize, Serialize};
use slots::SlotValues;
use std::collections::BTreeMap;
use trace::{RunTrace, TRACES_FOLDER};
use trace_trust::TraceTrust;

/// Folder of a project's memory.
pub const MEMORY_FOLDER: &str = "memory";
/// Subfolder for long-term knowledge.
pub const LONG_TERM_FOLDER: &str = "long_term";
/// Folder of projects inside a volume.
pub const PROJECTS_FOLDER: &str = "projects";

/// Returns whether a file belongs to the memory of its volume or of one of the projects in it.
pub fn is_memory(path: &str) -> bool {
    let below = path
        .strip_prefix(PROJECTS_FOLDER)
        .and_then(|rest| rest.strip_prefix('/'))
        .and_then(|rest| rest.split_once('/'));
    let own = below.map_or(path, |(_, rest)| rest);
    own.strip_prefix(MEMORY_FOLDER).is_some_and(|rest| rest.starts_with('/'))
}

/// Subfolders of a memory folder that contain its files.
pub const MEMORY_SUBFOLDERS: [&str; 3] = ["", TRACES_FOLDER, task_log::TASK_LOG_FOLDER];

/// Maximum number of files that are looked at for edits.
const MAX_WRITTEN_FILES: usize = 500;

/// Maintenance of a volume's memory that needs no model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryMaintenance {
    /// Turns recurring goals and proven practices into long-term notes, and removes expired experiences.
    Consolidate,
    /// Answers a query and stores the answer as a note.
    Analyze(insight::MemoryQuery),
}

/// Whether a goal may be reached by replaying a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplayMode {
    /// Replays a trace that's confident enough; otherwise uses a model.
    #[default]
    Auto,
    /// Always uses a model.
    Learner,
    /// Replays any matching trace; otherwise uses a model.
    Follower,
}

impl ReplayMode {
    /// Returns the mode with this name.
    pub fn from_name(name: &str) -> Option<ReplayMode> {
        match name.to_lowercase().as_str() {
            "auto" => Some(ReplayMode::Auto),
            "learner" => Some(ReplayMode::Learner),
            "follower" => Some(ReplayMode::Follower),
            _ => None,
        }
    }
}

/// What the user allows a run: which parts of memory, and until when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecallOptions {
    /// Whether a trace may be replayed.
    pub mode: ReplayMode,
    /// Paths of traces and ids of experiences that the user excluded.
    pub without: Vec<String>,
    /// When the run ends at the latest, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<i64>,
}

/// A trace and the note that holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTrace {
    /// The note's path in its volume.
    pub path: String,
    /// The note's text as it was read.
    pub text: String,
    /// The trace, parsed.
    pub trace: RunTrace,
}

/// The memory of a project: traces, experiences and the recent log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProjectMemory {
    /// The project's traces.
    pub traces: Vec<StoredTrace>,
    /// The project's experiences.
    pub entries: Vec<experience::ExperienceEntry>,
    /// Recent tasks from the session logs.
    pub logged: Vec<task_log::TaskLogEntry>,
    /// Files that can't be read, with the reasons.
    pub problems: Vec<String>,
    /// Current texts of the files that the last runs of traces wrote, by path in the project's volume.
    pub written: BTreeMap<String, String>,
    /// Experiences that a search by words and meaning has found for the goal in question, the best first.
    pub near: Vec<ExperienceMatch>,
}

/// An experience found by a search.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperienceMatch {
    /// Id of the experience.
    pub id: String,
    /// Relevance score, 0 to about 1; comparable only within one search.
    pub score: f64,
    /// Cosine similarity of the meaning; `None` if it wasn't compared.
    pub meaning: Option<f64>,
}

/// A trace that matches a goal.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceMatch {
    /// Index of the trace in [`ProjectMemory::traces`].
    pub at: usize,
    /// Values of the trace's slots for this goal.
    pub values: SlotValues,
    /// Whether it may be replayed without being told to.
    pub trust: TraceTrust,
    /// Reason for the match, as a sentence.
    pub why: String,
}

/// Returns the memory folder for work on this note: the project's, if the note is in one.
pub fn memory_folder(note: Option<&str>) -> String {
    let mut parts = note.unwrap_or_default().split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(PROJECTS_FOLDER), Some(name), Some(_)) => format!("{PROJECTS_FOLDER}/{name}/{MEMORY_FOLDER}"),
        _ => MEMORY_FOLDER.to_owned(),
    }
}

/// Returns the memory folders to search for work on this note.
pub fn memory_folders(note: Option<&str>) -> Vec<String> {
    let own = memory_folder(note);
    if own == MEMORY_FOLDER { vec![own] } else { vec![own, MEMORY_FOLDER.to_owned()] }
}

/// Returns whether a path is that of a note of experiences.
pub fn is_experience_log(path: &str) -> bool {
    is_memory(path) && path.ends_with(&format!("/{}", experience::EXPERIENCE_LOG_FILE))
}

/// Returns whether a path is that of a trace.
pub fn is_trace(path: &str) -> bool {
    path.ends_with(".md") && path.contains(&format!("{MEMORY_FOLDER}/{TRACES_FOLDER}/"))
}

impl ProjectMemory {
    /// Parses the memory in `files` (path inside the volume, and text).
    pub fn from_files(files: impl IntoIterator<Item = (String, String)>) -> ProjectMemory {
        let mut memory = ProjectMemory::default();
        for (path, text) in files {
            if is_trace(&path) {
                match RunTrace::parse(&text) {
                    Ok(trace) => memory.traces.push(StoredTrace { path, text, trace }),
                    Err(why) => memory.problems.push(format!("{why}: {path}")),
                }
            } else if path.ends_with(&format!("{MEMORY_FOLDER}/{}", experience::EXPERIENCE_LOG_FILE)) {
                memory.entries.extend(experience::parse_entries(&path, &text, &mut memory.problems));
            } else if task_log::is_task_log(&path) {
                memory.logged.extend(task_log::parse_entries(&path, &text, &mut memory.problems));
            }
        }
        memory
    }

    /// Returns the paths of the files that the last runs of traces wrote, in the project's volume.
    pub fn written_paths(&self) -> Vec<String> {
        let mut paths: Vec<String> =
            self.traces.iter().flat_map(|filed| filed.trace.written_paths()).take(MAX_WRITTEN_FILES).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Learns from edits of what the last runs of traces wrote. `is_by_user` says whether nobody else changed a file
    /// since a run. Returns the indices of the traces that have changed; nothing else than the traces is.
    pub fn review_edits(&mut self, is_by_user: &dyn Fn(&str, &str) -> bool, at: &str) -> Vec<usize> {
        let written = &self.written;
        let review = |(index, filed): (usize, &mut StoredTrace)| {
            let run = filed.trace.last_run.as_ref()?.run.clone();
            let now = |path: &str| written.get(path).filter(|_| is_by_user(&run, path)).cloned();
            filed.trace.review_edits(&now, at).then_some(index)
        };
        self.traces.iter_mut().enumerate().filter_map(review).collect()
    }

    /// Returns whether an experience has this id or a trace has this path.
    pub fn contains_item(&self, name: &str) -> bool {
        self.traces.iter().any(|filed| filed.path == name)
            || self.entries.iter().any(|entry| entry.experience.experience_id == name)
    }

    /// Returns the traces that match a goal, trusted ones first, then by confidence. `tools` maps each
    /// tool's name to its current schema hash; `trust` says how far a trace is trusted.
    pub fn matching_traces(
        &self,
        goal: &str,
        note: Option<&str>,
        agent: &str,
        tools: &BTreeMap<String, String>,
        trust: &dyn Fn(&RunTrace) -> TraceTrust,
    ) -> Vec<TraceMatch> {
        let goal = ParsedGoal::parse(goal);
        let mut found: Vec<TraceMatch> = Vec::new();
        for (at, filed) in self.traces.iter().enumerate() {
            let trace = &filed.trace;
            if trace.known.agent != agent || trace.changed_tool(tools).is_some() {
                continue;
            }
            let Ok(values) = trace.match_goal_with_lists(&goal, note) else { continue };
            let trust = trust(trace);
            let said: Vec<String> = values.iter().map(|(name, (_, text))| format!("{name} = {text}")).collect();
            let with = if said.is_empty() { String::new() } else { format!(" with {}", said.join(", ")) };
            let why = format!("the same goal{with}; {}", trust.reason());
            found.push(TraceMatch { at, values, trust, why });
        }
        found.sort_by(|one, other| {
            let key = |fitting: &TraceMatch| (fitting.trust.is_followed(), fitting.trust.confidence);
            let ((followed, sure), (other_followed, other_sure)) = (key(one), key(other));
            other_followed.cmp(&followed).then(other_sure.total_cmp(&sure))
        });
        found
    }

    /// Returns the trace to replay for a goal; `None` if none qualifies.
    pub fn choose_trace(
        &self,
        goal: &str,
        note: Option<&str>,
        agent: &str,
        tools: &BTreeMap<String, String>,
        recall: &RecallOptions,
        trust: &dyn Fn(&RunTrace) -> TraceTrust,
    ) -> Option<TraceMatch> {
        if recall.mode == ReplayMode::Learner {
            return None;
        }
        let mut found = self.matching_traces(goal, note, agent, tools, trust);
        found.retain(|fitting| {
            let wanted = self.traces.get(fitting.at).is_some_and(|filed| !recall.without.contains(&filed.path));
            wanted && (recall.mode == ReplayMode::Follower || fitting.trust.is_followed())
        });
        // If two traces do different things, it's unclear which one the goal refers to.
        let parsed = ParsedGoal::parse(goal);
        let calls = |fitting: &TraceMatch| {
            let trace = self.traces.get(fitting.at).map(|filed| filed.trace.for_goal(&parsed));
            trace.map(|trace| trace.predicted_calls(&fitting.values, &[]))
        };
        let first = found.first()?;
        let alike = found.iter().all(|other| calls(other) == calls(first));
        (alike || found.len() == 1).then(|| found.swap_remove(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_lies_with_its_project() {
        assert_eq!(memory_folder(None), "memory");
        assert_eq!(memory_folder(Some("plan.md")), "memory");
        assert_eq!(memory_folder(Some("projects/fft/notes/plan.md")), "projects/fft/memory");
        assert_eq!(memory_folders(Some("projects/fft/plan.md")), ["projects/fft/memory", "memory"]);
        assert!(is_memory("projects/fft/memory/memory_log.md") && is_memory("memory/traces/a.md"));
        assert!(!is_memory("memory.md") && !is_memory("notes/memory/a.md") && !is_memory("projects/memory/a.md"));
        assert!(is_trace("projects/fft/memory/traces/a.md") && !is_trace("memory/a.md"));
    }
}
