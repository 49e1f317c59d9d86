//! Experiences: results of earlier work with their sources, as entries of the note `memory_log.md`. New entries are
//! checked: none without source, no duplicates, and contradicted ones are marked.

use super::goal::ParsedGoal;
use super::trace::iso_timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use text::task::CalendarDay;

/// Name of the note of experiences in a memory folder.
pub const EXPERIENCE_LOG_FILE: &str = "memory_log.md";
/// Goals with at least this similarity count as the same.
const SAME_GOAL_SIMILARITY: f64 = 0.8;
/// Failures expire after this many days: what failed then may work now.
const FAILURE_RETENTION_DAYS: i64 = 180;
/// Maximum length of an entry's texts in bytes.
const MAX_EXPERIENCE_TEXT_BYTES: usize = 4_000;

/// Outcome of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// The goal was reached.
    #[default]
    Success,
    /// The goal wasn't reached.
    Failure,
    /// The goal was reached after a failure on the way.
    SuccessWithRecovery,
}

impl RunOutcome {
    /// Returns the name used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            RunOutcome::Success => "success",
            RunOutcome::Failure => "failure",
            RunOutcome::SuccessWithRecovery => "success_with_recovery",
        }
    }

    /// Returns the outcome with this name.
    pub fn from_name(word: &str) -> Option<RunOutcome> {
        [RunOutcome::Success, RunOutcome::Failure, RunOutcome::SuccessWithRecovery]
            .into_iter()
            .find(|one| one.as_str() == word)
    }

    /// Returns whether the goal was reached.
    pub fn is_good(self) -> bool {
        self != RunOutcome::Failure
    }
}

/// How long an experience is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryTier {
    /// A single event.
    #[default]
    Episodic,
    /// Knowledge that expires.
    ShortTerm,
    /// Knowledge that stays valid.
    LongTerm,
}

impl MemoryTier {
    /// Returns the tier with this name.
    pub fn from_name(word: &str) -> Option<MemoryTier> {
        match word {
            "episodic" => Some(MemoryTier::Episodic),
            "short_term" => Some(MemoryTier::ShortTerm),
            "long_term" => Some(MemoryTier::LongTerm),
            _ => None,
        }
    }

    /// Returns the name used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            MemoryTier::Episodic => "episodic",
            MemoryTier::ShortTerm => "short_term",
            MemoryTier::LongTerm => "long_term",
        }
    }
}

fn once() -> u64 {
    1
}

/// The result of earlier work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Experience {
    /// Unique id in the project.
    pub experience_id: String,
    /// Name of the project.
    pub project_name: String,
    /// The goal of the run.
    pub primary_goal: String,
    /// The outcome of the run.
    pub final_outcome: RunOutcome,
    /// Names of the agents and tools that were used.
    pub components_used: Vec<String>,
    /// Number of files that the run created.
    pub files_created: u64,
    /// Summary of the result.
    pub output_summary: String,
    /// Duration of the run in milliseconds.
    pub execution_time_ms: u64,
    /// Lessons for later runs.
    pub learnings_or_issues: String,
    /// When the run ended, such as `2026-11-22T10:30:00Z`.
    pub timestamp: String,
    /// How long it's kept.
    pub tier: MemoryTier,
    /// Source of the experience: a run, a note or the user. Required.
    pub source: String,
    /// The step of the run that it comes from, in link form: `run-3f2a90c1#5`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub step: String,
    /// The note that was open when the user asked, or that contains it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Name of the agent or person who wrote it.
    pub author: String,
    /// How often the same experience occurred.
    #[serde(default = "once")]
    pub count: u64,
    /// The day it expires, such as `2027-05-21`; empty if never.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub expires: String,
    /// Id of the entry that contradicts and replaces it; empty if none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub superseded_by: String,
}

/// An experience and its place in its note.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperienceEntry {
    /// Path of the note.
    pub path: String,
    /// Where the entry starts in the note, in bytes.
    pub at: usize,
    /// The entry's text in the note.
    pub text: String,
    /// The experience, parsed.
    pub experience: Experience,
}

/// What to do with a new experience.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmissionDecision {
    /// It's new and is added.
    Keep,
    /// It repeats the entry at this index, whose count is raised.
    Merge(usize),
    /// It's new and contradicts the entry at this index.
    Supersede(usize),
    /// It's rejected.
    Refuse(AdmissionRefusal),
}

/// Why a new experience is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionRefusal {
    /// It has no source.
    #[error("it has no source")]
    NoSource,
    /// Its goal has too few meaningful words.
    #[error("it says too little to be of use")]
    TooVague,
}

/// Returns the words and values of a text, by which two goals are compared.
fn goal_words(text: &str) -> BTreeSet<String> {
    let goal = ParsedGoal::parse(text);
    let values = goal.values().map(|(_, text)| text.to_lowercase()).collect::<Vec<_>>();
    goal.words().map(str::to_owned).chain(values).collect()
}

/// Returns the similarity of two goals, 0 to 1: shared words divided by all words.
fn goal_similarity(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    let both = one.intersection(other).count() as f64;
    let all = one.union(other).count() as f64;
    if all == 0.0 { 0.0 } else { both / all }
}

/// Decides what to do with a new experience before it's written.
pub fn decide_admission(new: &Experience, known: &[&Experience]) -> AdmissionDecision {
    if new.source.trim().is_empty() {
        return AdmissionDecision::Refuse(AdmissionRefusal::NoSource);
    }
    let own = goal_words(&new.primary_goal);
    let telling = own.iter().filter(|word| word.chars().filter(|c| c.is_alphanumeric()).count() > 1).count();
    // Text that the user wrote is enough by itself. For a run, the goal must have enough meaningful words.
    let written = new.author == "user" && new.learnings_or_issues.split_whitespace().count() >= 3;
    if telling < 2 && !written {
        return AdmissionDecision::Refuse(AdmissionRefusal::TooVague);
    }
    let mut best: Option<(usize, f64)> = None;
    for (at, other) in known.iter().enumerate() {
        if other.project_name != new.project_name || !other.superseded_by.is_empty() {
            continue;
        }
        let like = goal_similarity(&own, &goal_words(&other.primary_goal));
        // Lessons distinguish two experiences of one goal only if a person wrote them.
        let lesson = goal_similarity(&goal_words(&other.learnings_or_issues), &goal_words(&new.learnings_or_issues));
        let by_hand = new.author == "user" || other.author == "user";
        if like >= SAME_GOAL_SIMILARITY
            && (!by_hand || lesson >= SAME_GOAL_SIMILARITY)
            && best.is_none_or(|(_, known)| like > known)
        {
            best = Some((at, like));
        }
    }
    match best {
        None => AdmissionDecision::Keep,
        Some((at, _))
            if known.get(at).is_some_and(|other| other.final_outcome.is_good() == new.final_outcome.is_good()) =>
        {
            AdmissionDecision::Merge(at)
        }
        Some((at, _)) => AdmissionDecision::Supersede(at),
    }
}

fn truncate_text(text: &str) -> String {
    let text = text.trim();
    text[..text.floor_char_boundary(MAX_EXPERIENCE_TEXT_BYTES)].to_owned()
}

impl Experience {
    /// Truncates texts to their limits, and sets the day on which a failure expires. `now` is in the unit of
    /// [`iso_timestamp`].
    pub fn with_limits(mut self, now: i64) -> Experience {
        self.primary_goal = truncate_text(&self.primary_goal);
        self.output_summary = truncate_text(&self.output_summary);
        self.learnings_or_issues = truncate_text(&self.learnings_or_issues);
        if self.timestamp.is_empty() {
            self.timestamp = iso_timestamp(now);
        }
        if self.final_outcome == RunOutcome::Failure && self.expires.is_empty() {
            let until = now.saturating_add(FAILURE_RETENTION_DAYS * 86_400_000);
            self.expires = iso_timestamp(until).get(..10).unwrap_or_default().to_owned();
        }
        self.count = self.count.max(1);
        self
    }

    /// Returns this experience merged with a repetition of it.
    pub fn merge_with(&self, new: &Experience) -> Experience {
        let mut one = self.clone();
        one.count = self.count.saturating_add(new.count.max(1));
        one.timestamp.clone_from(&new.timestamp);
        one.expires.clone_from(&new.expires);
        one.execution_time_ms = new.execution_time_ms;
        one.output_summary.clone_from(&new.output_summary);
        if new.learnings_or_issues.len() > one.learnings_or_issues.len() {
            one.learnings_or_issues.clone_from(&new.learnings_or_issues);
        }
        for part in &new.components_used {
            if !one.components_used.contains(part) {
                one.components_used.push(part.clone());
            }
        }
        one
    }

    /// Returns text for search: goal, outcome and lessons.
    pub fn search_text(&self) -> String {
        let parts = [&self.primary_goal, &self.output_summary, &self.learnings_or_issues];
        parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Returns whether it's valid on this day: neither superseded nor expired.
    pub fn is_current(&self, today: CalendarDay) -> bool {
        self.superseded_by.is_empty() && CalendarDay::parse(&self.expires).is_none_or(|expires| today < expires)
    }

    /// Formats it as an entry of the note.
    pub fn to_markdown(&self) -> String {
        let title: String = self.primary_goal.lines().next().unwrap_or_default().chars().take(80).collect();
        let body = serde_saphyr::to_string(self).unwrap_or_default();
        let mut fence = "```".to_owned();
        while body.contains(&fence) {
            fence.push('`');
        }
        format!("## {}: {title}\n\n{fence}yaml\n{body}{fence}\n", self.experience_id)
    }
}

/// Heading of a new note of experiences.
pub const EXPERIENCE_LOG_HEADING: &str =
    "# Memory log\n\nResults of earlier work. You can edit or delete each entry here.\n\n";

/// Parses the entries of a note. Unreadable ones are reported in `problems`.
pub fn parse_entries(path: &str, text: &str, problems: &mut Vec<String>) -> Vec<ExperienceEntry> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut heading = 0;
    let mut open: Option<(usize, String)> = None;
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        let ticks = &bare[..bare.bytes().take_while(|byte| *byte == b'`').count()];
        match &open {
            None if bare.starts_with("## ") => heading = at,
            None if ticks.len() >= 3 && bare[ticks.len()..].trim() == "yaml" => {
                open = Some((at + line.len(), ticks.to_owned()));
            }
            Some((from, fence)) if bare == ticks && ticks.len() >= fence.len() => {
                match text::yaml_edit::parse_typed::<Experience>(&text[*from..at]) {
                    Ok(experience) if !experience.experience_id.is_empty() => found.push(ExperienceEntry {
                        path: path.to_owned(),
                        at: heading,
                        text: text[heading..at + line.len()].to_owned(),
                        experience,
                    }),
                    Ok(_) => problems.push(format!("an entry has no experience_id: {path}")),
                    Err(error) => problems.push(format!("an entry cannot be read ({error}): {path}")),
                }
                open = None;
                heading = at + line.len();
            }
            None | Some(_) => {}
        }
        at += line.len();
    }
    if found.is_empty() && text.contains("experience_id:") {
        found = parse_reference_entries(path, text);
    }
    found
}

/// Parses entries in the format of the reference: a list between two `---` lines, with each value as its own item.
fn parse_reference_entries(path: &str, text: &str) -> Vec<ExperienceEntry> {
    let yaml = text.split("\n---").next().unwrap_or(text).trim_start_matches("---").trim_start();
    let Ok(items) = text::yaml_edit::parse_typed::<Vec<serde_json::Map<String, serde_json::Value>>>(yaml) else {
        return Vec::new();
    };
    let mut maps: Vec<serde_json::Map<String, serde_json::Value>> = Vec::new();
    for item in items {
        match maps.last_mut() {
            Some(last) if !item.contains_key("experience_id") => last.extend(item),
            _ => maps.push(item),
        }
    }
    let one = |map| {
        let experience: Experience = serde_json::from_value(serde_json::Value::Object(map)).ok()?;
        Some(ExperienceEntry { path: path.to_owned(), at: 0, text: String::new(), experience })
    };
    maps.into_iter().filter_map(one).collect()
}

/// An edit of a note of experiences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryNoteEdit {
    /// Creates the note with this text.
    Make(String),
    /// Replaces a piece of the note. If `old` is empty, `new` is appended.
    Replace {
        /// The text to replace, exactly as it is in the note.
        old: String,
        /// The text that replaces it.
        new: String,
    },
}

/// Returns the edits that add an experience to the note, if it's admitted. `entries` are those of the note; `exists` is
/// whether the note exists.
///
/// # Errors
/// Returns the reason if the experience is rejected.
pub fn admit_experience(
    new: Experience,
    entries: &[ExperienceEntry],
    exists: bool,
) -> Result<Vec<MemoryNoteEdit>, AdmissionRefusal> {
    let known: Vec<&Experience> = entries.iter().map(|entry| &entry.experience).collect();
    let replace = |at: usize, one: &Experience| {
        let entry = entries.get(at)?;
        (!entry.text.is_empty()).then(|| MemoryNoteEdit::Replace { old: entry.text.clone(), new: one.to_markdown() })
    };
    let verdict = decide_admission(&new, &known);
    let mut changes = Vec::new();
    match verdict {
        AdmissionDecision::Refuse(why) => return Err(why),
        AdmissionDecision::Merge(at) => {
            let merged = known.get(at).map(|one| one.merge_with(&new));
            return Ok(merged.and_then(|one| replace(at, &one)).into_iter().collect());
        }
        AdmissionDecision::Keep => {}
        AdmissionDecision::Supersede(_) => {}
    }
    let last = entries.len().checked_sub(1);
    let superseded = if let AdmissionDecision::Supersede(at) = verdict { Some(at) } else { None };
    let changed = |at: usize| {
        let one = (*known.get(at)?).clone();
        Some(Experience { superseded_by: new.experience_id.clone(), ..one })
    };
    if let Some(at) = superseded.filter(|at| Some(*at) != last) {
        changes.extend(changed(at).and_then(|one| replace(at, &one)));
    }
    // The new entry is inserted after the last one.
    let behind = last.and_then(|last| {
        let entry = entries.get(last).filter(|entry| !entry.text.is_empty())?;
        let before = match superseded {
            Some(at) if at == last => changed(at)?.to_markdown(),
            _ => entry.text.clone(),
        };
        Some(MemoryNoteEdit::Replace { old: entry.text.clone(), new: format!("{before}\n{}", new.to_markdown()) })
    });
    match behind {
        Some(change) => changes.push(change),
        None if !exists => changes.push(MemoryNoteEdit::Make(format!("{EXPERIENCE_LOG_HEADING}{}", new.to_markdown()))),
        None => changes.push(MemoryNoteEdit::Replace { old: String::new(), new: format!("\n{}", new.to_markdown()) }),
    }
    Ok(changes)
}

/// Returns the text of a note of experiences with `new` added; `None` if it's rejected.
pub fn with_experience(text: &str, new: Experience) -> Option<String> {
    let known = parse_entries("", text, &mut Vec::new());
    let mut whole = text.to_owned();
    for change in admit_experience(new, &known, !text.trim().is_empty()).ok()? {
        match change {
            MemoryNoteEdit::Make(made) => whole = made,
            MemoryNoteEdit::Replace { old, new } if old.is_empty() => whole.push_str(&new),
            MemoryNoteEdit::Replace { old, new } => whole = whole.replacen(&old, &new, 1),
        }
    }
    Some(whole)
}

/// Returns the text of a note of experiences without the entries with these ids.
pub fn without_entries(text: &str, names: &[String]) -> String {
    let mut whole = text.to_owned();
    for entry in parse_entries("", text, &mut Vec::new()) {
        if names.contains(&entry.experience.experience_id) && !entry.text.is_empty() {
            whole = whole.replacen(&entry.text, "", 1);
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn experience(id: &str, goal: &str, outcome: RunOutcome) -> Experience {
        let one = Experience {
            experience_id: id.to_owned(),
            project_name: "p".to_owned(),
            primary_goal: goal.to_owned(),
            final_outcome: outcome,
            learnings_or_issues: "scipy.fft: works\n```\nfast\n```".to_owned(),
            source: "run 1".to_owned(),
            ..Experience::default()
        };
        one.with_limits(1_795_000_000_000)
    }

    /// Applies these edits to the text of a note.
    fn applied(text: &str, changes: &[MemoryNoteEdit]) -> String {
        let mut text = text.to_owned();
        for change in changes {
            match change {
                MemoryNoteEdit::Make(new) => text.clone_from(new),
                MemoryNoteEdit::Replace { old, new } if old.is_empty() => text.push_str(new),
                MemoryNoteEdit::Replace { old, new } => text = text.replacen(old, new, 1),
            }
        }
        text
    }

    fn read(text: &str) -> Vec<ExperienceEntry> {
        let mut problems = Vec::new();
        let found = parse_entries("memory/memory_log.md", text, &mut problems);
        assert_eq!(problems, [] as [String; 0], "{text}");
        found
    }

    #[test]
    fn what_is_admitted_is_new_has_a_source_and_is_read_again() {
        let one = experience("exp_1", "Create a sine wave and apply an FFT", RunOutcome::Failure);
        let text = applied("", &admit_experience(one.clone(), &[], false).expect("kept"));
        assert_eq!(read(&text)[0].experience, one);
        assert_eq!(one.expires, "2027-05-17");
        // A repetition is counted, not added.
        let again = experience("exp_2", "please create a sine wave, and apply the FFT", RunOutcome::Failure);
        let text = applied(&text, &admit_experience(again, &read(&text), true).expect("merged"));
        assert_eq!((read(&text).len(), read(&text)[0].experience.count), (1, 2));
        // A later success supersedes the failure, which names the new entry.
        let good = experience("exp_3", "Create a sine wave and apply an FFT", RunOutcome::SuccessWithRecovery);
        let text = applied(&text, &admit_experience(good, &read(&text), true).expect("kept"));
        let found = read(&text);
        assert_eq!((found.len(), found[0].experience.superseded_by.as_str()), (2, "exp_3"));
        let today = CalendarDay::parse("2026-11-22").expect("a day");
        assert!(!found[0].experience.is_current(today) && found[1].experience.is_current(today));
        // A different goal is added at the end.
        let other = experience("exp_4", "Translate the letter into French", RunOutcome::Success);
        let text = applied(&text, &admit_experience(other, &read(&text), true).expect("kept"));
        assert_eq!(read(&text).len(), 3);
        let none =
            Experience { source: String::new(), ..experience("exp_5", "Count all the birds", RunOutcome::Success) };
        assert_eq!(admit_experience(none, &read(&text), true), Err(AdmissionRefusal::NoSource));
        let noise =
            Experience { learnings_or_issues: String::new(), ..experience("exp_6", "ok!", RunOutcome::Success) };
        assert_eq!(admit_experience(noise, &read(&text), true), Err(AdmissionRefusal::TooVague));
    }

    #[test]
    fn the_form_of_the_reference_is_read() {
        let text = "---\n- experience_id: exp_001\n- project_name: fft\n- primary_goal: Make a sine wave, apply FFT\n\
                    - final_outcome: success\n- components_used: [SystemAgent, scipy]\n- files_created: 9\n---\n";
        let found = read(text);
        assert_eq!((found.len(), found[0].experience.files_created), (1, 9));
        assert_eq!(found[0].experience.components_used, ["SystemAgent", "scipy"]);
    }

    proptest! {
        #[test]
        fn any_note_is_read(text in "(## x\n|```yaml\n|```\n|experience_id: a\n|---\n|- \\PC|\\PC|\n){0,40}") {
            parse_entries("memory/memory_log.md", &text, &mut Vec::new());
        }
    }
}
