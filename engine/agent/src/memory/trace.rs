//! Traces: what a successful run did, as a note that people can read and edit and a run can replay.
//!
//! The format is that of `llm-os.md`: a note with metadata in front matter, then the steps as fenced YAML.

use super::goal::{GoalToken, ParsedGoal, SlotKind};
use super::result_check::ResultCheck;
use super::slots::{self, SlotValues, TemplateError, TemplatePart};
use super::trace_edits::LastTraceRun;
use super::trace_feedback::{self, RunFeedback};
use super::trace_versions::{self, TraceVersion, VersionOrigin};
use crate::tool_spec::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::Range;
use store::BlobHash;
use text::outline;

/// Folder of traces in a memory folder.
pub const TRACES_FOLDER: &str = "traces";
/// Maximum size of a trace's file in bytes.
pub const MAX_TRACE_BYTES: usize = 1 << 20;
/// Maximum number of steps in a trace.
pub(super) const MAX_TRACE_STEPS: usize = 200;
/// Maximum number of slots in a trace: each is compared with each.
pub(super) const MAX_TRACE_SLOTS: usize = 200;
/// Maximum number of values that the steps of a trace take from results: each reads its result.
const MAX_RESULT_PLACES: usize = 2_000;
/// Parts of the names of arguments that are files or folders.
const FILE_ARGUMENT_NAMES: [&str; 6] = ["file", "path", "folder", "dir", "source", "destination"];

/// A value of the goal that may differ next time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSlot {
    /// Name of the slot in templates.
    pub name: String,
    /// Kind of the value.
    #[serde(rename = "type")]
    pub kind: SlotKind,
    /// The value when the trace was learned.
    pub value: String,
}

/// One step: a tool call, its preconditions and its expected result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceStep {
    /// Name of the called tool.
    pub tool: String,
    /// Hash of the tool's schema. A tool with another hash has changed.
    #[serde(default)]
    pub schema: String,
    /// Arguments; texts are templates.
    #[serde(default)]
    pub input: Map<String, Value>,
    /// Files that must exist before the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Files that must not exist before the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub free: Vec<String>,
    /// Files that must exist after the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves: Vec<String>,
    /// Files that must not exist after the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removes: Vec<String>,
    /// Requirements on the result.
    #[serde(default)]
    pub expect: ResultCheck,
}

/// Slots, steps and answer of a trace: the YAML in the body of its file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct TraceBody {
    #[serde(default)]
    slots: Vec<TraceSlot>,
    steps: Vec<TraceStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// The version that the steps above are.
    #[serde(default, skip_serializing_if = "VersionOrigin::is_first")]
    version: VersionOrigin,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    feedback: Vec<RunFeedback>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_run: Option<LastTraceRun>,
    /// All other versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    versions: Vec<TraceVersion>,
}

/// Metadata of a trace: its front matter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceMetadata {
    /// Always `trace`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Hash that goals of the same form and agent share.
    pub goal_signature: String,
    /// The goal from which it was learned.
    pub goal_text: String,
    /// Share of successful replays, 0 to 1.
    pub success_rating: f64,
    /// How often it was replayed, or compared with the calls of a model.
    pub usage_count: u64,
    /// How often all its conditions were met.
    pub verified_count: u64,
    /// When it was last used, such as `2026-11-22T10:30:00Z`.
    pub last_used: String,
    /// When it was learned.
    pub created_at: String,
    /// Cost of a replay in US dollars, which is 0.
    pub estimated_cost_usd: f64,
    /// Estimated duration of a replay in seconds.
    pub estimated_time_secs: f64,
    /// Tokens used by the run from which it was learned.
    pub learned_tokens: u64,
    /// Cost in US dollars of the run from which it was learned.
    pub learned_usd: f64,
    /// Whether that cost isn't known, so that what replays save isn't known either.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cost_unknown: bool,
    /// Duration in seconds of the run from which it was learned.
    pub learned_secs: f64,
    /// Tokens saved by all replays.
    pub saved_tokens: u64,
    /// US dollars saved by all replays.
    pub saved_usd: f64,
    /// Seconds saved by all replays.
    pub saved_secs: f64,
    /// Name of the agent that made the calls.
    pub agent: String,
    /// Id of the run from which it was learned.
    pub learned_from: String,
}

/// The recorded calls of a run, which can be replayed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTrace {
    /// Metadata of the trace.
    pub known: TraceMetadata,
    /// Values that may differ in a replay.
    pub slots: Vec<TraceSlot>,
    /// The calls, in order.
    pub steps: Vec<TraceStep>,
    /// Template of the final answer; `None` means the result of the last step.
    pub answer: Option<String>,
    /// Number and origin of the version in use, which is the steps above.
    pub version: VersionOrigin,
    /// What the user thought of runs of the version in use.
    pub feedback: Vec<RunFeedback>,
    /// The last run of the version in use, until its edits were learned from.
    pub last_run: Option<LastTraceRun>,
    /// The versions that aren't in use, oldest first.
    pub versions: Vec<TraceVersion>,
}

/// Returns a hash of a tool's schema, risk and idempotence, and of its code if it's the user's own tool.
pub fn schema_hash(tool: &ToolSpec, code: &str) -> String {
    let whole = format!("{}\n{}\n{:?}\n{}\n{code}", tool.name, tool.parameters, tool.risk, tool.idempotent);
    short_hash(whole.as_bytes())
}

/// Returns the first 16 characters of a hash.
pub(super) fn short_hash(bytes: &[u8]) -> String {
    BlobHash::of(bytes).to_string().chars().take(16).collect()
}

/// Returns the lower end of the confidence interval of the success rate for `good` of `all` (Wilson, 95 %).
pub fn wilson_lower_bound(good: u64, all: u64) -> f64 {
    if all == 0 {
        return 0.0;
    }
    let (n, z) = (all as f64, 1.959_964);
    let p = (good.min(all) as f64) / n;
    let middle = p + z * z / (2.0 * n);
    let width = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    ((middle - width) / (1.0 + z * z / n)).max(0.0)
}

/// Returns the success rate of replays, 0 to 1, rounded to three decimals for files.
pub fn success_share(good: u64, all: u64) -> f64 {
    (good as f64 / all.max(1) as f64 * 1_000.0).round() / 1_000.0
}

/// Formats a time in milliseconds since 1970 as ISO 8601, such as `2026-11-22T10:30:00Z`.
pub fn iso_timestamp(at: i64) -> String {
    let (year, month, day) = text::task::CalendarDay(at.div_euclid(86_400_000)).date();
    let seconds = at.rem_euclid(86_400_000) / 1_000;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A tool's name and arguments.
pub type TraceCall = (String, Map<String, Value>);

/// Why a trace doesn't match a goal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoalMismatch {
    /// The goal has different words.
    #[error("the words are others")]
    OtherWords,
    /// A value that isn't a slot differs.
    #[error("it is for {own}, not {new}")]
    OtherValue {
        /// The value of the trace.
        own: String,
        /// The value of the goal.
        new: String,
    },
    /// One slot would have two different values.
    #[error("{one} and {other} were one value when it was learned")]
    SplitValue {
        /// The first of the values.
        one: String,
        /// The second of the values.
        other: String,
    },
    /// Two slots would have the same value, but their values differed when the trace was learned.
    #[error("{one} and {other} are both {value}")]
    MergedValues {
        /// The first of the slots.
        one: String,
        /// The second of the slots.
        other: String,
        /// The value that both have.
        value: String,
    },
    /// Two values that could be written alike when the trace was learned no longer can be.
    #[error("{one} and {other} belonged together when it was learned")]
    SeparateValues {
        /// The first of the values.
        one: String,
        /// The second of the values.
        other: String,
    },
    /// The trace needs an open note.
    #[error("it was learned beside a note, and none is open")]
    NoNote,
    /// The goal has no value for a slot.
    #[error("the goal does not say its {slot}")]
    MissingValue {
        /// The slot without a value.
        slot: String,
    },
}

/// Why a text isn't a valid trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceParseError {
    /// It's larger than [`MAX_TRACE_BYTES`].
    #[error("a trace has at most {} MB", MAX_TRACE_BYTES >> 20)]
    TooLong,
    /// It has no front matter.
    #[error("a trace begins with front matter, between two lines ---")]
    NoFrontMatter,
    /// The front matter isn't YAML of the expected form.
    #[error("its front matter cannot be read: {0}")]
    FrontMatter(#[source] serde_saphyr::Error),
    /// The steps aren't YAML of the expected form.
    #[error("its steps cannot be read: {0}")]
    Steps(#[source] serde_saphyr::Error),
    /// It has no steps, or too many.
    #[error("a trace has from 1 to {MAX_TRACE_STEPS} steps")]
    StepCount,
    /// It has too many values.
    #[error("a trace has at most {MAX_TRACE_SLOTS} slots and {MAX_RESULT_PLACES} values of results")]
    ValueCount,
    /// The goal is empty.
    #[error("its goal_text says nothing")]
    NoGoal,
    /// A path in it isn't a valid template.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

/// Why a text isn't a valid trace library.
#[derive(Debug, thiserror::Error)]
pub enum TraceLibraryError {
    /// It contains no trace.
    #[error("there is no trace in it")]
    Empty,
    /// One of its traces can't be read.
    #[error("trace {number}: {source}")]
    Trace {
        /// Number of the trace, from 1.
        number: usize,
        /// Why it can't be read.
        source: Box<TraceParseError>,
    },
}

impl RunTrace {
    /// Matches a goal and returns the values of the slots.
    ///
    /// # Errors
    /// Returns the reason if the trace doesn't match the goal.
    pub fn match_goal(&self, goal: &ParsedGoal, note: Option<&str>) -> Result<SlotValues, GoalMismatch> {
        self.match_parsed_goal(&ParsedGoal::parse(&self.known.goal_text), goal, note)
    }

    /// The same as [`RunTrace::match_goal`], with the trace's own goal parsed already.
    pub(super) fn match_parsed_goal(
        &self,
        own: &ParsedGoal,
        goal: &ParsedGoal,
        note: Option<&str>,
    ) -> Result<SlotValues, GoalMismatch> {
        let mut values = SlotValues::new();
        if own.tokens.is_empty() || own.tokens.len() != goal.tokens.len() {
            return Err(GoalMismatch::OtherWords);
        }
        let slot = |kind: SlotKind, text: &str| self.slots.iter().find(|slot| slot.kind == kind && slot.value == text);
        // A file's name may have no extension next time, and the other way round. A text that isn't such a name, such
        // as a message, isn't one next time: "post 'notes.md'" may mean what is in the file.
        let accepts = |(own_kind, own): (SlotKind, &str), new_kind: SlotKind| {
            let is_textual = |kind| matches!(kind, SlotKind::Name | SlotKind::Text | SlotKind::Path);
            let names_file = || slot(own_kind, own).is_some_and(|slot| self.names_only_files(&slot.name));
            own_kind.accepts(new_kind) || (is_textual(own_kind) && is_textual(new_kind) && names_file())
        };
        let mut quoted: Vec<(&str, &str)> = Vec::new();
        for (own, new) in own.tokens.iter().zip(&goal.tokens) {
            match (own, new) {
                (GoalToken::Word(own), GoalToken::Word(new)) if own == new => {}
                (GoalToken::Value(own_kind, own), GoalToken::Value(new_kind, new))
                    if accepts((*own_kind, own.as_str()), *new_kind) =>
                {
                    match slot(*own_kind, own) {
                        None if own == new => {}
                        None if (*own_kind, *new_kind) == (SlotKind::Text, SlotKind::Text) => {
                            quoted.push((own.as_str(), new.as_str()));
                        }
                        None => return Err(GoalMismatch::OtherValue { own: own.clone(), new: new.clone() }),
                        Some(slot) => match values.insert(slot.name.clone(), (*new_kind, new.clone())) {
                            Some((_, before)) if before != *new => {
                                return Err(GoalMismatch::SplitValue { one: before, other: new.clone() });
                            }
                            Some(_) | None => {}
                        },
                    }
                }
                (GoalToken::Word(_) | GoalToken::Value(..), _) => return Err(GoalMismatch::OtherWords),
            }
        }
        // A quoted text may hold other values of the goal, and must differ in nothing else.
        let learned: SlotValues =
            self.slots.iter().map(|slot| (slot.name.clone(), (slot.kind, slot.value.clone()))).collect();
        for (own, new) in quoted {
            let expected = slots::fill_template(&slots::result_template(own, &learned), &values, &[]);
            if expected.as_deref() != Ok(new) {
                return Err(GoalMismatch::OtherValue { own: own.to_owned(), new: new.to_owned() });
            }
        }
        // Values that differed when the trace was learned must differ now, or a step would do something else.
        let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, (_, text)) in &values {
            if let Some(other) = seen.insert(text, name) {
                let (one, other, value) = (other.to_owned(), name.clone(), text.clone());
                return Err(GoalMismatch::MergedValues { one, other, value });
            }
        }
        if let Some(slot) = self.slots.iter().find(|slot| slot.name == "note") {
            let note = note.ok_or(GoalMismatch::NoNote)?;
            values.insert(slot.name.clone(), (SlotKind::Path, note.to_owned()));
        }
        if let Some(slot) = self.slots.iter().find(|slot| !values.contains_key(&slot.name)) {
            return Err(GoalMismatch::MissingValue { slot: slot.name.clone() });
        }
        // A file that was named after the month must be named after the month now. Otherwise it's unknown which of the
        // two values a step refers to.
        for one in &self.slots {
            for other in self.slots.iter().filter(|other| other.name != one.name) {
                let alike = |kind, text: &str, of: (SlotKind, &str)| {
                    let of = slots::value_renderings(of.0, of.1);
                    let all = slots::value_renderings(kind, text).into_iter();
                    let same = |form: &'static str, text: &str| {
                        of.iter()
                            .filter(|(_, known)| known == text)
                            .map(|(other, _)| (form, *other))
                            .collect::<Vec<_>>()
                    };
                    all.flat_map(|(form, text)| same(form, &text)).collect::<Vec<_>>()
                };
                let before = alike(one.kind, &one.value, (other.kind, &other.value));
                if before.is_empty() {
                    continue;
                }
                let (Some((kind, text)), Some((other_kind, other_text))) =
                    (values.get(&one.name), values.get(&other.name))
                else {
                    continue;
                };
                let now = alike(*kind, text, (*other_kind, other_text));
                if before.iter().any(|pair| !now.contains(pair)) {
                    return Err(GoalMismatch::SeparateValues { one: text.clone(), other: other_text.clone() });
                }
            }
        }
        Ok(values)
    }

    /// Returns whether all steps write a slot's value as it stands in the goal, in no other form, and only as a whole
    /// argument that is a file or folder.
    fn names_only_files(&self, slot: &str) -> bool {
        let is_place = |part: &TemplatePart, with_form: bool| match part {
            TemplatePart::Place(place) => {
                place.strip_prefix(slot).is_some_and(|form| form.is_empty() || (with_form && form.starts_with(':')))
            }
            TemplatePart::Literal(_) => false,
        };
        let parts = |template: &str| slots::parse_template(template).unwrap_or_default();
        let has_slot = |template: &str| parts(template).iter().any(|part| is_place(part, true));
        let is_whole = |template: &str| matches!(parts(template).as_slice(), [part] if is_place(part, false));
        let has_form =
            |template: &String| parts(template).iter().any(|part| is_place(part, true) && !is_place(part, false));
        if self.answer.as_ref().is_some_and(has_form) {
            return false;
        }
        self.steps.iter().flat_map(|step| &step.input).all(|(key, value)| {
            let key = key.to_lowercase();
            let is_file = FILE_ARGUMENT_NAMES.iter().any(|name| key.contains(name));
            let mut texts = Vec::new();
            collect_texts(value, 0, &mut texts);
            texts.into_iter().all(|text| !has_slot(text) || (is_file && is_whole(text)))
        })
    }

    /// Returns the first tool that has changed or no longer exists. `tools` maps each tool's name to its current schema
    /// hash.
    pub fn changed_tool(&self, tools: &BTreeMap<String, String>) -> Option<&str> {
        let step = self.steps.iter().find(|step| tools.get(&step.tool) != Some(&step.schema))?;
        Some(&step.tool)
    }

    /// Returns the calls of a replay with these values. A call that needs a result not in `results` yet is an error.
    pub fn predicted_calls(&self, values: &SlotValues, results: &[String]) -> Vec<Result<TraceCall, TemplateError>> {
        let one = |step: &TraceStep| Ok((step.tool.clone(), slots::fill_arguments(&step.input, values, results)?));
        self.steps.iter().map(one).collect()
    }

    /// Returns a hash that goals of the same form and agent share.
    pub fn goal_signature(&self) -> String {
        let own = ParsedGoal::parse(&self.known.goal_text);
        let word = |token: &GoalToken| match token {
            GoalToken::Word(word) => word.clone(),
            GoalToken::Value(kind, text) => {
                match self.slots.iter().any(|slot| slot.kind == *kind && slot.value == *text) {
                    true => format!("{{{}}}", kind.as_str()),
                    false => format!("{text:?}"),
                }
            }
        };
        let form: Vec<String> = own.tokens.iter().map(word).collect();
        short_hash(format!("{}\n{}", self.known.agent, form.join(" ")).as_bytes())
    }

    /// Resets the statistics of an imported trace: they prove nothing on this machine.
    pub fn reset_for_import(self) -> RunTrace {
        let known = TraceMetadata {
            kind: "trace".to_owned(),
            success_rating: 0.0,
            usage_count: 0,
            verified_count: 0,
            last_used: String::new(),
            saved_tokens: 0,
            saved_usd: 0.0,
            saved_secs: 0.0,
            ..self.known.clone()
        };
        let mut trace = RunTrace { known, ..self };
        trace.known.goal_signature = trace.goal_signature();
        trace.forget_other_workspace();
        trace
    }

    /// Returns the file name for the trace, without a folder.
    pub fn file_name(&self) -> String {
        let own = ParsedGoal::parse(&self.known.goal_text);
        let words: Vec<&str> = own.words().filter(|word| word.chars().all(char::is_alphanumeric)).take(5).collect();
        let mut name = words.join("-");
        name.truncate(name.floor_char_boundary(48));
        let signature: String = self.known.goal_signature.chars().take(6).collect();
        format!("{}-{signature}.md", if name.is_empty() { "trace" } else { &name })
    }

    fn front_matter(&self) -> String {
        serde_saphyr::to_string(&self.known).unwrap_or_default()
    }

    /// Returns slots, steps and answer of the version in use as YAML.
    pub(super) fn steps_yaml(&self) -> String {
        let (slots, steps, answer) = (self.slots.clone(), self.steps.clone(), self.answer.clone());
        serde_saphyr::to_string(&TraceBody { slots, steps, answer, ..TraceBody::default() }).unwrap_or_default()
    }

    pub(super) fn body_yaml(&self) -> String {
        let body = TraceBody {
            slots: self.slots.clone(),
            steps: self.steps.clone(),
            answer: self.answer.clone(),
            version: self.version.clone(),
            feedback: self.feedback.clone(),
            last_run: self.last_run.clone(),
            versions: self.versions.clone(),
        };
        serde_saphyr::to_string(&body).unwrap_or_default()
    }

    /// Returns the body as a fenced block.
    pub(super) fn body_block(&self) -> String {
        let body = self.body_yaml();
        let mut fence = "```".to_owned();
        while body.contains(&fence) {
            fence.push('`');
        }
        format!("{fence}yaml\n{body}{fence}\n")
    }

    /// Formats the trace as a note.
    pub fn to_note(&self) -> String {
        let title = self.known.goal_text.lines().next().unwrap_or_default();
        format!("---\n{}---\n\n# {title}\n\n{}", self.front_matter(), self.body_block())
    }

    /// Formats the trace as YAML with front matter, the exchange format of trace libraries. What runs of this workspace
    /// found, and what the user thought of them, is left out.
    pub fn to_library_yaml(&self) -> String {
        let mut shared = self.clone();
        shared.forget_runs();
        format!("---\n{}---\n\n{}", shared.front_matter(), shared.body_yaml())
    }

    /// Parses a trace from a note, or from YAML with front matter.
    ///
    /// # Errors
    /// Returns an error if the text is too long or isn't a valid trace.
    pub fn parse(text: &str) -> Result<RunTrace, TraceParseError> {
        if text.len() > MAX_TRACE_BYTES {
            return Err(TraceParseError::TooLong);
        }
        let range = outline::front_matter_range(text).ok_or(TraceParseError::NoFrontMatter)?;
        let mut known: TraceMetadata =
            text::yaml_edit::parse_typed(&text[range.clone()]).map_err(TraceParseError::FrontMatter)?;
        let (_, yaml) = body_ranges(text, range.end);
        let mut body: TraceBody = text::yaml_edit::parse_typed(&text[yaml]).map_err(TraceParseError::Steps)?;
        if body.steps.is_empty() || body.steps.len() > MAX_TRACE_STEPS {
            return Err(TraceParseError::StepCount);
        }
        if !has_bounded_values(&body.slots, &body.steps) {
            return Err(TraceParseError::ValueCount);
        }
        if ParsedGoal::parse(&known.goal_text).tokens.is_empty() {
            return Err(TraceParseError::NoGoal);
        }
        if known.agent.is_empty() {
            "assistant".clone_into(&mut known.agent);
        }
        for step in &body.steps {
            for text in step.needs.iter().chain(&step.free).chain(&step.leaves).chain(&step.removes) {
                slots::parse_template(text)?;
            }
        }
        trace_versions::bound_versions(&mut body.versions, &mut body.version);
        trace_feedback::bound_feedback(&mut body.feedback);
        let TraceBody { slots, steps, answer, version, feedback, last_run, versions } = body;
        let last_run = last_run.filter(LastTraceRun::is_bounded);
        Ok(RunTrace { known, slots, steps, answer, version, feedback, last_run, versions })
    }
}

/// Returns whether a trace has no more slots and places in results than are matched and filled in a moment.
pub(super) fn has_bounded_values(slots: &[TraceSlot], steps: &[TraceStep]) -> bool {
    let mut texts = Vec::new();
    steps.iter().flat_map(|step| step.input.values()).for_each(|value| collect_texts(value, 0, &mut texts));
    // The slot of a number is the name of its place.
    let places = |text: &str| text.matches("{step").count() + usize::from(text.starts_with("step"));
    slots.len() <= MAX_TRACE_SLOTS && texts.into_iter().map(places).sum::<usize>() <= MAX_RESULT_PLACES
}

/// Adds the texts of an argument, as deep as arguments are filled.
fn collect_texts<'a>(value: &'a Value, deep: usize, into: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => into.push(text),
        Value::Array(items) if deep < 32 => items.iter().for_each(|item| collect_texts(item, deep + 1, into)),
        Value::Object(map) if deep < 32 => map.values().for_each(|item| collect_texts(item, deep + 1, into)),
        Value::Array(_) | Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the block with the YAML of a body, and the YAML in it: the fenced part, or all of the text behind the front
/// matter, which ends at `front_end`.
pub(super) fn body_ranges(text: &str, front_end: usize) -> (Range<usize>, Range<usize>) {
    let start = text[front_end..].find('\n').map_or(text.len(), |line_end| front_end + line_end + 1);
    let mut at = start;
    let mut open: Option<(Range<usize>, &str)> = None;
    for line in text[start..].split_inclusive('\n') {
        let bare = line.trim();
        let ticks = &bare[..bare.bytes().take_while(|byte| *byte == b'`').count()];
        match &open {
            None if ticks.len() >= 3 && matches!(bare[ticks.len()..].trim(), "yaml" | "yml") => {
                open = Some((at..at + line.len(), ticks));
            }
            Some((fence, ticks_before)) if bare == ticks && ticks.len() >= ticks_before.len() => {
                return (fence.start..at + line.len(), fence.end..at);
            }
            None | Some(_) => {}
        }
        at += line.len();
    }
    (start..text.len(), start..text.len())
}

/// Parses the traces of a library: YAML with front matter, one after another.
///
/// # Errors
/// Returns an error if the text contains no trace, or the number of the first invalid trace and the reason.
pub fn parse_library(text: &str) -> Result<Vec<RunTrace>, TraceLibraryError> {
    // A trace starts with front matter: a `---` line before a line with its type or goal signature.
    let mut starts = Vec::new();
    let mut at = 0;
    let mut before = "";
    for line in text.split_inclusive('\n') {
        let first = line.starts_with("type: trace") || line.starts_with("goal_signature:");
        if first && before.trim_end() == "---" {
            starts.push(at - before.len());
        }
        at += line.len();
        before = line;
    }
    if starts.is_empty() {
        return Err(TraceLibraryError::Empty);
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let one = |(number, (from, to)): (usize, (&usize, usize))| {
        RunTrace::parse(&text[*from..to])
            .map_err(|source| TraceLibraryError::Trace { number: number + 1, source: Box::new(source) })
    };
    starts.iter().zip(ends).enumerate().map(one).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    pub(crate) fn sample() -> RunTrace {
        let input = json!({"path": "data/{month1}.csv", "lines": {"$slot": "number1"}, "text": "a: {{b}}\n```\nc\n"});
        let step = TraceStep {
            tool: "read_file".to_owned(),
            schema: "0123456789abcdef".to_owned(),
            input: input.as_object().cloned().unwrap_or_default(),
            needs: vec!["data/{month1}.csv".to_owned()],
            expect: ResultCheck::from_result("a,b\n1,2\n", false, &SlotValues::new()),
            ..TraceStep::default()
        };
        let slot = |name: &str, kind, value: &str| TraceSlot { name: name.to_owned(), kind, value: value.to_owned() };
        let mut trace = RunTrace {
            known: TraceMetadata {
                kind: "trace".to_owned(),
                goal_text: "Show 5 lines of October 2026: \"quick\" and yes".to_owned(),
                agent: "assistant".to_owned(),
                created_at: iso_timestamp(1_795_000_000_000),
                ..TraceMetadata::default()
            },
            slots: vec![slot("month1", SlotKind::Month, "2026-10"), slot("number1", SlotKind::Number, "5")],
            steps: vec![step.clone(), step],
            answer: Some("Yes: {step1}\n- [x] no".to_owned()),
            ..RunTrace::default()
        };
        trace.known.goal_signature = trace.goal_signature();
        trace
    }

    #[test]
    fn traces_are_written_and_read() {
        let trace = sample();
        assert_eq!(RunTrace::parse(&trace.to_note()).expect("read"), trace, "{}", trace.to_note());
        assert_eq!(RunTrace::parse(&trace.to_library_yaml()).expect("read"), trace);
        let two = format!("{}\n{}", trace.to_library_yaml(), trace.to_library_yaml());
        assert_eq!(parse_library(&two).expect("read"), [trace.clone(), trace.clone()]);
        // The format of the reference is parsed, too.
        let front = "goal_signature: \"a3f7c9e1b2d4f8a6\"\ngoal_text: \"Calculate primes\"\nusage_count: 15\n";
        let theirs =
            format!("---\n{front}---\n\nsteps:\n  - tool: Write\n    input:\n      content: |\n        def f():\n");
        let read = parse_library(&theirs).expect("read");
        assert_eq!((read[0].known.usage_count, read[0].steps.len()), (15, 1));
        assert!(parse_library("nothing").is_err() && RunTrace::parse("---\n---\nsteps: []").is_err());
        assert!(trace.file_name().ends_with(".md"), "{}", trace.file_name());
    }

    #[test]
    fn only_its_own_form_fits() {
        let trace = sample();
        let fits = |text: &str| trace.match_goal(&ParsedGoal::parse(text), None);
        let values = fits("Please display 7 lines of November 2026: \"quick\" and yes").expect("it fits");
        assert_eq!(values["month1"].1, "2026-11");
        assert_eq!(values["number1"].1, "7");
        assert!(
            fits("Show 7 lines of November 2026: \"slow\" and yes").is_err_and(|why| why.to_string().contains("quick"))
        );
        assert!(fits("Hide 7 lines of November 2026: \"quick\" and yes").is_err());
        assert!(fits("Show 7 lines of November 2026").is_err());
        let tools = BTreeMap::from([("read_file".to_owned(), "other".to_owned())]);
        assert_eq!(trace.changed_tool(&tools), Some("read_file"));
    }

    #[test]
    fn a_text_may_be_a_file_and_hold_other_values() {
        let mut trace = sample();
        trace.known.goal_text = "Put 'tea' into 'b' of Ann, as 'for Ann: tea, or b'".to_owned();
        let slot = |name: &str, kind, value: &str| TraceSlot { name: name.to_owned(), kind, value: value.to_owned() };
        trace.slots = vec![slot("text1", SlotKind::Text, "tea"), slot("name1", SlotKind::Name, "Ann")];
        let input = serde_json::json!({"path": "{text1}", "content": ["{name1:upper}"]});
        trace.steps[0].input = input.as_object().cloned().unwrap_or_default();
        trace.steps.truncate(1);
        let fits = |text: &str| trace.match_goal(&ParsedGoal::parse(text), None).is_ok();
        assert!(fits("Put 'rice.txt' into 'b' of Bob, as 'for Bob: rice.txt, or b'"));
        assert!(!fits("Put 'rice.txt' into 'b' of Bob, as 'for Ann: rice.txt, or b'"), "it's for someone else");
        assert!(!fits("Put 'tea' into 'b' of Ann, as 'for Ann: tea, or c'"), "b isn't a slot");
        assert!(!fits("Put 'tea' into 'b' of 'a/x.md', as 'for a/x.md: tea, or b'"), "a file has no such form");
        trace.known.goal_text = "Post 'tea'".to_owned();
        trace.slots.truncate(1);
        let input = serde_json::json!({"message": "{text1}"});
        trace.steps[0].input = input.as_object().cloned().unwrap_or_default();
        let fits = |text: &str| trace.match_goal(&ParsedGoal::parse(text), None).is_ok();
        assert!(fits("Post 'rice'") && !fits("Post 'rice.txt'"), "what is in the file may be meant");
    }

    #[test]
    fn traces_of_too_many_values_are_refused() {
        let mut trace = sample();
        let slot = |at: usize| TraceSlot { name: format!("text{at}"), kind: SlotKind::Text, value: at.to_string() };
        trace.slots = (0..MAX_TRACE_SLOTS + 1).map(slot).collect();
        assert!(matches!(RunTrace::parse(&trace.to_note()), Err(TraceParseError::ValueCount)));
        let mut trace = sample();
        let places = Value::String("{step1.a}".repeat(MAX_RESULT_PLACES + 1));
        trace.steps[1].input.insert("text".to_owned(), places);
        assert!(matches!(RunTrace::parse(&trace.to_note()), Err(TraceParseError::ValueCount)));
    }

    #[test]
    fn confidence_has_to_be_earned() {
        let bound = wilson_lower_bound;
        assert!(bound(0, 0) <= 0.0 && bound(1, 1) < 0.21 && bound(34, 34) < 0.9 && bound(35, 35) > 0.9);
        assert!(bound(50, 52) < 0.9 && bound(100, 101) > 0.9);
    }

    #[test]
    fn times_are_written_as_iso_8601() {
        assert_eq!(iso_timestamp(1_795_000_000_000), "2026-11-18T11:06:40Z");
    }

    proptest! {
        #[test]
        fn any_file_is_read_or_refused(text in "(---\n|type: trace\n|steps:\n|- tool: x\n|```yaml\n|\\PC|\n){0,40}") {
            let _ = (RunTrace::parse(&text), parse_library(&text));
        }
    }
}
