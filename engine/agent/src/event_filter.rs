//! Events of the workspace, and filters for them: a kind, and a pattern for the subject. `tracebook events`, schedules
//! and functions of plugins use the same ones.

use crate::name_suggestions::closest_names;
use crate::notice::{Notice, NumberedNotice};
use crate::policy_rule::matches_wildcard;
use serde_json::{Map, Value, json};
use store::DocId;
use text::untrusted_text::escape_line;

/// Maximum number of events that a function of a plugin is called with at once.
const MAX_HANDLED_EVENTS: usize = 100;
/// Maximum length of filters for events that start work, in bytes.
const MAX_STARTING_FILTER_BYTES: usize = 2_000;
/// Maximum length of a text in an event for a function of a plugin, in bytes.
const MAX_HANDLED_TEXT_BYTES: usize = 2_000;
/// The kind of event of a file that was created, changed or removed.
const FILE_CHANGED: &str = "FILE_CHANGED";
/// The kind of event of a run that ended.
const RUN_ENDED: &str = "RUN_ENDED";

/// The kinds of events of a run's steps that can start work.
const STEP_KINDS: [&str; 3] = ["USER_INPUT", "LLM_OUTPUT", "TOOL_OUTPUT"];
/// How the kinds of events begin that other programs publish.
const CUSTOM_PREFIX: &str = "CUSTOM.";
/// Maximum length of the name of such a kind after its prefix, in bytes.
const MAX_CUSTOM_NAME_BYTES: usize = 64;

/// Kinds of events: names, and what each one says. The first three are those of `llm-os.md` (shared/reference).
pub const EVENT_KINDS: [(&str, &str); 20] = [
    (STEP_KINDS[0], "a message for an agent"),
    (STEP_KINDS[1], "what a model wrote"),
    (STEP_KINDS[2], "the result of a tool call"),
    ("PROGRAM_OUTPUT", "what the program says in a run without a model, such as the answer of a replay"),
    ("TOOL_CALL", "a tool call, with its arguments"),
    ("TODO", "the todos of a run"),
    ("ERROR", "an error in a run"),
    (FILE_CHANGED, "a file that was created, changed or removed"),
    ("RUN_BEGAN", "a run that started"),
    (RUN_ENDED, "a run that ended"),
    ("PHASE", "a phase that a run reached"),
    ("ASKED", "a call that needs approval"),
    ("TASK", "a task of a plan whose status changed"),
    ("BUDGET_LOW", "a budget that is nearly used up"),
    ("REMEMBERED", "a new entry of memory"),
    ("CONSOLIDATED", "memory that was consolidated"),
    ("SCHEDULED", "scheduled work that started"),
    ("SKIPPED", "scheduled work that was left out"),
    ("STOPPED", "something that hung and was stopped"),
    ("CUSTOM.NAME", "what another program published under this name"),
];

/// Kinds of events that can start work: those of a volume, other than what schedules do, which would start work in
/// circles.
const STARTING_KINDS: [&str; 13] = [
    FILE_CHANGED,
    "RUN_BEGAN",
    RUN_ENDED,
    "PHASE",
    "ASKED",
    "TASK",
    "REMEMBERED",
    "CONSOLIDATED",
    "STOPPED",
    STEP_KINDS[0],
    STEP_KINDS[1],
    STEP_KINDS[2],
    "CUSTOM.NAME",
];

/// Why a text isn't a filter, or can't start work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventFilterError {
    /// There is no such kind of event.
    #[error("there is no event “{word}”; {hint}")]
    UnknownKind {
        /// The filter as it was written.
        word: String,
        /// The nearest kinds, or all.
        hint: String,
    },
    /// The filters are too long.
    #[error("the filters have more than {MAX_STARTING_FILTER_BYTES} bytes; use a pattern with *")]
    TooLong,
    /// Events of this kind start no work.
    #[error("{kind} starts nothing; these events do: {}", STARTING_KINDS.join(", "))]
    StartsNothing {
        /// The kind of event.
        kind: String,
    },
}

/// An event: its kind, the subject that filters look at, and its data.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkspaceEvent {
    /// One of [`EVENT_KINDS`], or one that another program chose.
    pub kind: String,
    /// Path of the file, name of the tool or of the agent, or how a run ended; empty if there is none.
    pub subject: String,
    /// When it happened, in milliseconds since 1970.
    pub at: i64,
    /// What else is known of it.
    pub data: Map<String, Value>,
}

impl WorkspaceEvent {
    /// Returns the event that a notice says; `None` if it says none.
    pub fn of_notice(noticed: &NumberedNotice) -> Option<WorkspaceEvent> {
        let Ok(Value::Object(mut data)) = serde_json::to_value(noticed) else { return None };
        let event = data.remove("event")?.as_str()?.to_uppercase();
        let kind = if let Notice::Published { kind, .. } = &noticed.notice { kind.clone() } else { event };
        for told in ["at", "kind"] {
            data.remove(told);
        }
        let keys = ["subject", "path", "agent", "task", "name", "ending"];
        let subject = keys.iter().find_map(|key| data.get(*key)?.as_str());
        let subject = subject.unwrap_or_default().to_owned();
        Some(WorkspaceEvent { kind, subject, at: noticed.at.0, data })
    }

    /// Returns the event of a file that was created, changed or removed. `at`: in milliseconds since 1970.
    pub fn of_file((volume, project): (DocId, &str), path: &str, change: &str, at: i64) -> WorkspaceEvent {
        let mut data = Map::new();
        for (key, value) in [("path", path), ("change", change), ("project", project)] {
            data.insert(key.to_owned(), json!(value));
        }
        data.insert("volume".to_owned(), json!(volume.to_string()));
        WorkspaceEvent { kind: FILE_CHANGED.to_owned(), subject: path.to_owned(), at, data }
    }

    /// Returns the id that the data has under this key.
    pub fn id(&self, key: &str) -> Option<DocId> {
        self.data.get(key)?.as_str()?.parse().ok()
    }

    /// Returns whether a run failed, or reached one of its limits.
    pub fn is_failed_run(&self) -> bool {
        self.kind == RUN_ENDED && ["failed", "limit", "budget"].contains(&self.subject.as_str())
    }

    /// Returns the path of the file that changed; `None` if it's another event.
    pub fn changed_file(&self) -> Option<&str> {
        (self.kind == FILE_CHANGED).then_some(self.subject.as_str())
    }

    /// Returns the event as JSON.
    pub fn to_json(&self) -> Value {
        let mut all = Map::new();
        all.insert("kind".to_owned(), json!(self.kind));
        all.insert("at".to_owned(), json!(self.at));
        all.extend(self.data.clone());
        Value::Object(all)
    }
}

/// Adds an event to those that a function of a plugin is called with. Of too many, the last one says how many `more`
/// were left out.
pub fn add_handled_event(events: &mut Vec<Value>, mut event: Value) {
    for text in event.as_object_mut().into_iter().flat_map(|data| data.values_mut()) {
        if let Value::String(text) = text {
            text.truncate(text.floor_char_boundary(MAX_HANDLED_TEXT_BYTES));
        }
    }
    if events.len() < MAX_HANDLED_EVENTS {
        return events.push(event);
    }
    if let Some(Value::Object(last)) = events.last_mut() {
        let more = last.get("more").and_then(Value::as_u64).unwrap_or(0) + 1 + event["more"].as_u64().unwrap_or(0);
        last.insert("more".to_owned(), json!(more));
    }
}

/// A filter: the kind of event, and a pattern for its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    kind: String,
    subject: Option<String>,
}

impl EventFilter {
    /// Parses `KIND` or `KIND: PATTERN`.
    ///
    /// # Errors
    /// Returns an error with the nearest kinds if there is no such kind of event.
    pub fn parse(word: &str) -> Result<EventFilter, EventFilterError> {
        let (kind, subject) = match word.split_once(':') {
            Some((kind, pattern)) => (kind, Some(pattern.trim().to_owned())),
            None => (word, None),
        };
        if let Some(kind) = custom_kind(kind) {
            return Ok(EventFilter { kind, subject });
        }
        let kind = upper_kind(kind);
        if EVENT_KINDS.iter().any(|(known, _)| *known == kind) {
            return Ok(EventFilter { kind, subject });
        }
        let hint = match closest_names(&kind, EVENT_KINDS.iter().map(|(name, _)| *name)).as_slice() {
            [] => format!("there are {}", EVENT_KINDS.map(|(name, _)| name).join(", ")),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        Err(EventFilterError::UnknownKind { word: escape_line(word).into_owned(), hint })
    }

    /// Parses filters for events that start work, separated by `;`.
    ///
    /// # Errors
    /// Returns the error of [`EventFilter::parse`], or an error if such events start nothing or the text is too long.
    pub fn parse_starting(text: &str) -> Result<Vec<EventFilter>, EventFilterError> {
        if text.len() > MAX_STARTING_FILTER_BYTES {
            return Err(EventFilterError::TooLong);
        }
        let starting = |word: &str| {
            let filter = EventFilter::parse(word)?;
            match filter.kind.starts_with(CUSTOM_PREFIX) || STARTING_KINDS.contains(&filter.kind.as_str()) {
                true => Ok(filter),
                false => Err(EventFilterError::StartsNothing { kind: filter.kind }),
            }
        };
        text.split(';').map(starting).collect()
    }

    /// Returns whether this is an event that the filter lets through.
    pub fn fits(&self, event: &WorkspaceEvent) -> bool {
        self.kind == event.kind && self.subject.as_ref().is_none_or(|pattern| matches_wildcard(pattern, &event.subject))
    }

    /// Returns whether the filter lets changed files through.
    pub fn is_for_files(&self) -> bool {
        self.kind == FILE_CHANGED
    }

    /// Returns whether the filter lets steps of runs through.
    pub fn is_for_steps(&self) -> bool {
        STEP_KINDS.contains(&self.kind.as_str())
    }
}

/// Returns a kind of event as events name it.
fn upper_kind(kind: &str) -> String {
    kind.trim().to_uppercase().replace('-', "_")
}

/// Returns the kind of event that another program may publish under this name, as events name it; `None` if it isn't
/// `custom.` and a name of letters, digits, `_`, `-` and `.`.
pub fn custom_kind(kind: &str) -> Option<String> {
    let kind = upper_kind(kind);
    let name = kind.strip_prefix(CUSTOM_PREFIX)?;
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
    (is_plain && (1..=MAX_CUSTOM_NAME_BYTES).contains(&name.len())).then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_name_a_kind_and_a_subject() {
        let event = |kind: &str, subject: &str| WorkspaceEvent {
            kind: kind.to_owned(),
            subject: subject.to_owned(),
            at: 0,
            data: Map::new(),
        };
        let fits = |filter: &str, kind: &str, subject: &str| {
            EventFilter::parse(filter).expect("a filter").fits(&event(kind, subject))
        };
        assert!(fits("user_input", "USER_INPUT", "assistant"));
        assert!(fits("FILE_CHANGED: Inbox/*", "FILE_CHANGED", "Inbox/a.md"));
        assert!(!fits("FILE_CHANGED: Inbox/*", "FILE_CHANGED", "Log.md"));
        assert!(!fits("file-changed", "ASKED", "Log.md"));
        let why = EventFilter::parse("USER_INPT").expect_err("refused").to_string();
        assert!(why.contains("did you mean USER_INPUT?"), "{why}");
        let two = EventFilter::parse_starting("FILE_CHANGED: Inbox/*; run-ended: failed").expect("two");
        assert!(two[1].fits(&event("RUN_ENDED", "failed")) && !two[1].fits(&event("RUN_ENDED", "done")));
        for kind in ["user-input", "LLM_OUTPUT", "TOOL_OUTPUT: read_*", "custom.deploy-done: site"] {
            let filter = EventFilter::parse_starting(kind).expect("it starts work").remove(0);
            assert_eq!(filter.is_for_steps(), !kind.starts_with("custom"), "{kind}");
        }
        assert!(fits("custom.deploy-done: si*", "CUSTOM.DEPLOY_DONE", "site") && !fits("custom.a", "CUSTOM.B", ""));
        assert!(EventFilter::parse("custom.").is_err() && EventFilter::parse("custom.a b").is_err());
        let why = EventFilter::parse_starting("SCHEDULED").expect_err("refused").to_string();
        assert!(why.starts_with("SCHEDULED starts nothing; these events do: FILE_CHANGED"), "{why}");
    }

    #[test]
    fn of_too_many_events_the_number_is_known() {
        let mut events = Vec::new();
        for number in 0..MAX_HANDLED_EVENTS + 3 {
            add_handled_event(&mut events, json!({"text": "é".repeat(2_000), "number": number}));
        }
        assert_eq!((events.len(), &events[99]["number"], &events[99]["more"]), (100, &json!(99), &json!(3)));
        assert_eq!(events[0]["text"].as_str().map(str::len), Some(MAX_HANDLED_TEXT_BYTES));
    }
}
