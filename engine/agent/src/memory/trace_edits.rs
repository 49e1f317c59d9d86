//! Learns from edits of what a run wrote: if the edit can be explained by the values and results of the run, a version
//! with the corrected text is proposed; otherwise it only counts against the trace. Nothing here uses a version.

use super::goal::{MAX_GOAL_BYTES, ParsedGoal};
use super::slots::{self, SlotValues, TemplateError, TemplatePart};
use super::trace::{RunTrace, short_hash};
use super::trace_extraction::distinctive_words;
use super::trace_feedback::RatedRun;
use super::trace_findings::ReusableResults;
use super::trace_versions::StepCorrection;
use crate::secrets;
use crate::tool_catalog::{self, BuiltInTool};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::ops::Range;
use text::diff::{self, DiffPart};
use text::text_edit::{self, TextEdit};

/// Maximum size in bytes of the results of a run that are kept to learn from edits.
const MAX_KEPT_RESULT_BYTES: usize = 16 << 10;
/// Maximum size of an edited text in bytes.
const MAX_EDITED_TEXT_BYTES: usize = 256 << 10;
/// From this size on, a text of which most was removed is a new one.
const MIN_REWRITTEN_BYTES: usize = 200;
/// Maximum number of edits of a text that are looked at, and of parts of a template.
const MAX_EDITS: usize = 500;
const MAX_EDITED_PARTS: usize = 5_000;
/// Argument with the text that `write_file` writes.
pub(super) const CONTENT_ARGUMENT: &str = "content";

/// The last run of a trace: what is needed to know what it wrote, until its edits were learned from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastTraceRun {
    /// Id of the run.
    pub run: String,
    /// When it began, such as `2026-11-22T10:30:00Z`.
    pub began_at: String,
    /// Whether it was a replay; otherwise a model did the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_replay: bool,
    /// The goal of the run.
    pub goal: String,
    /// Path of the note that was open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Results of the steps.
    pub results: Vec<String>,
}

impl LastTraceRun {
    /// Returns whether it may be kept: it's small, and holds no secret.
    pub fn is_bounded(&self) -> bool {
        let size: usize = self.results.iter().map(String::len).sum();
        let is_secret =
            |text: &String| secrets::contains_mask(text) || matches!(secrets::mask_known_secrets(text), Cow::Owned(_));
        size <= MAX_KEPT_RESULT_BYTES
            && self.goal.len() <= MAX_GOAL_BYTES
            && !self.results.iter().chain([&self.goal]).any(is_secret)
    }

    fn rated_run(&self) -> RatedRun {
        RatedRun { run: self.run.clone(), began_at: self.began_at.clone(), is_replay: self.is_replay }
    }
}

/// Why an edit says nothing about the next run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditRefusal {
    /// The text of the file isn't the one that the run wrote, but only a part of it.
    #[error("only a passage of it was written")]
    Passage,
    /// The text is too long, or little of it is left.
    #[error("it was rewritten")]
    Rewritten,
    /// A value was replaced by another text.
    #[error("the value of {{{place}}} was replaced")]
    ValueReplaced {
        /// The placeholder of the value.
        place: String,
    },
    /// The new text has a value in a form in which it can't be recognized next time.
    #[error("it has the value of {{{slot}}} in a form of its own")]
    UnknownForm {
        /// Name of the slot.
        slot: String,
    },
    /// The new text has a number that the run found, so that it would be out of date next time.
    #[error("it has “{word}”, which the run found")]
    Finding {
        /// The word that counts as a finding.
        word: String,
    },
    /// The new text has a secret.
    #[error("it has a secret")]
    Secret,
    /// The template of the text can't be filled in again.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The corrected template doesn't give the edited text.
    #[error("it can't be written by rule")]
    NotReproduced,
}

/// A file that the last run of a trace left.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WrittenFile {
    /// Index of the step that wrote it.
    step: usize,
    /// Path in the run's volume.
    path: String,
    /// The text that the run wrote.
    text: String,
    /// Whether that was the whole text of the file.
    is_whole: bool,
}

impl WrittenFile {
    /// Returns whether what was written has changed. Text around it isn't an edit of it.
    fn is_edited(&self, now: &str) -> bool {
        let written = self.text.trim_end();
        if !self.is_whole {
            return !now.contains(written);
        }
        let is_line_end = |rest: &str| {
            let rest = rest.trim_start_matches([' ', '\t', '\r']);
            rest.is_empty() || rest.starts_with('\n')
        };
        let is_before = now.strip_prefix(written).is_some_and(is_line_end);
        let before = now.trim_end().strip_suffix(written);
        let is_behind = before.is_some_and(|before| before.is_empty() || before.ends_with('\n'));
        !(is_before || is_behind)
    }
}

impl RunTrace {
    /// Notes what is needed to learn from edits of what a run wrote. Nothing is kept of a run that wrote nothing, or
    /// that found too much.
    pub fn remember_run(&mut self, last: LastTraceRun) {
        let writes = self
            .steps
            .iter()
            .any(|step| BuiltInTool::WriteFile.is_named(&step.tool) || BuiltInTool::EditFile.is_named(&step.tool));
        self.last_run = Some(last).filter(|last| writes && last.is_bounded());
    }

    /// Returns the paths of the files that the last run left, in its volume.
    pub fn written_paths(&self) -> Vec<String> {
        self.written_files().into_iter().map(|file| file.path).collect()
    }

    /// Returns the values of the last run.
    fn last_values(&self) -> Option<SlotValues> {
        let last = self.last_run.as_ref()?;
        self.match_goal(&ParsedGoal::parse(&last.goal), last.note.as_deref()).ok()
    }

    /// Returns the files that the last run left, as far as it's certain what it wrote.
    fn written_files(&self) -> Vec<WrittenFile> {
        let (Some(last), Some(values)) = (&self.last_run, self.last_values()) else { return Vec::new() };
        let tools = tool_catalog::built_in();
        let mut files: Vec<WrittenFile> = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            if tools.iter().any(|tool| tool.name == step.tool && tool.idempotent) {
                continue;
            }
            let text = |key: &str| {
                let template = step.input.get(key).and_then(Value::as_str)?;
                slots::fill_template(template, &values, last.results.get(..at)?).ok()
            };
            let is_whole = BuiltInTool::WriteFile.is_named(&step.tool);
            let written = if is_whole { text(CONTENT_ARGUMENT) } else { text("new_content") };
            match (text("path"), written) {
                _ if !is_whole && !BuiltInTool::EditFile.is_named(&step.tool) => {
                    files.clear(); // it may change any file
                }
                (Some(path), written) => {
                    files.retain(|file| file.path != path);
                    let in_project = !step.input.contains_key("volume");
                    files.extend(
                        written.filter(|text| in_project && !text.trim().is_empty()).map(|text| WrittenFile {
                            step: at,
                            path,
                            text,
                            is_whole,
                        }),
                    );
                }
                (None, _) => files.clear(),
            }
        }
        files
    }

    /// Learns from edits of what the last run wrote. `now` returns the current text of a file; `None` if it isn't
    /// there or if someone else than the user changed it. Returns whether the trace has changed. Doing it again
    /// changes nothing, and an edit that was taken back no longer counts.
    pub fn review_edits(&mut self, now: &dyn Fn(&str) -> Option<String>, at: &str) -> bool {
        let Some(last) = self.last_run.clone() else { return false };
        let known = self.feedback.iter().find(|known| known.run == last.run);
        if known.is_some_and(|known| known.is_undone) {
            return false;
        }
        let before = self.clone();
        let files: Vec<(WrittenFile, String)> =
            self.written_files().into_iter().filter_map(|file| Some((file.clone(), now(&file.path)?))).collect();
        if files.is_empty() {
            return false;
        }
        let (mut corrected, mut paths, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for (file, now) in files.iter().filter(|(file, now)| file.is_edited(now)) {
            match self.corrected_template(file, now) {
                Ok(template) => {
                    let correction = StepCorrection { step: file.step + 1, text: short_hash(now.as_bytes()) };
                    corrected.push((file.step, CONTENT_ARGUMENT, template, correction));
                    paths.push(file.path.as_str());
                }
                Err(why) => refused.push(format!("{}: {why}", file.path)),
            }
        }
        if corrected.is_empty() {
            self.withdraw_correction(&last.run);
        } else {
            self.propose_correction(&last.run, &corrected, at);
            refused.insert(0, format!("a version with the text of {} was proposed", paths.join(", ")));
        }
        let remark = refused.join("; ");
        self.mark_edited(&last.rated_run(), Some(remark.as_str()).filter(|remark| !remark.is_empty()), at);
        *self != before
    }

    /// Returns the template of a step's text that gives the edited text with the values of the last run.
    fn corrected_template(&self, file: &WrittenFile, now: &str) -> Result<String, EditRefusal> {
        if !file.is_whole {
            return Err(EditRefusal::Passage);
        }
        let step = self.steps.get(file.step).and_then(|step| step.input.get(CONTENT_ARGUMENT));
        let (Some(template), Some(last), Some(values)) =
            (step.and_then(Value::as_str), self.last_run.as_ref(), self.last_values())
        else {
            return Err(EditRefusal::NotReproduced);
        };
        let results = last.results.get(..file.step).unwrap_or_default();
        correct_template(template, &values, results, &last.goal, now)
    }
}

/// A changed part: its range in the written text and in the edited one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ChangedRegion {
    old: Range<usize>,
    new: Range<usize>,
    /// Whether a value is in it.
    has_value: bool,
}

/// A template with its filled-in text, and where each part of it is.
struct FilledTemplate {
    text: String,
    parts: Vec<(TemplatePart, Range<usize>)>,
}

impl FilledTemplate {
    fn new(template: &str, values: &SlotValues, results: &[String]) -> Result<FilledTemplate, TemplateError> {
        let mut filled = FilledTemplate { text: String::new(), parts: Vec::new() };
        for part in slots::parse_template(template)? {
            let start = filled.text.len();
            match &part {
                TemplatePart::Literal(literal) => filled.text.push_str(literal),
                TemplatePart::Place(place) => filled.text.push_str(&slots::slot_value(place, values, results)?),
            }
            filled.parts.push((part, start..filled.text.len()));
        }
        Ok(filled)
    }

    fn places(&self) -> impl Iterator<Item = (&str, &Range<usize>)> {
        self.parts.iter().filter_map(|(part, range)| match part {
            TemplatePart::Place(place) => Some((place.as_str(), range)),
            TemplatePart::Literal(_) => None,
        })
    }

    /// Returns the edits that turn the text into the edited one, line by line. Lines that were removed stay apart from
    /// lines that were only changed.
    fn edits(&self, now: &str) -> Vec<TextEdit> {
        let whole_line = |text: &str, range: &Range<usize>| {
            let end = text[range.end..].find('\n').map_or(text.len(), |line_end| range.end + line_end + 1);
            range.start..end
        };
        let mut edits = Vec::new();
        for part in diff::compare(&self.text, now).parts {
            let DiffPart::Change { old, new, rows } = part else { continue };
            let holds_value = |range: &Range<usize>| {
                self.places().any(|(_, place)| range.start < place.end && place.start < range.end)
            };
            let is_removed = rows
                .iter()
                .any(|row| row.new.is_none() && row.old.as_ref().is_some_and(|line| holds_value(&line.range)));
            let is_added = rows.iter().any(|row| {
                row.old.is_none() && row.new.as_ref().is_some_and(|line| !now[line.range.clone()].trim().is_empty())
            });
            if is_removed && is_added {
                // The new lines may be there instead of the value.
                edits.push(TextEdit { at: old.start, delete: old.len(), insert: now[new].to_owned() });
                continue;
            }
            let mut at = old.start;
            for row in rows {
                let before = row.old.map_or(at..at, |line| whole_line(&self.text, &line.range));
                let after = row.new.map_or("", |line| &now[whole_line(now, &line.range)]);
                let own = text_edit::compute_edits(&self.text[before.clone()], after);
                edits.extend(own.into_iter().map(|edit| TextEdit { at: before.start + edit.at, ..edit }));
                at = before.end;
            }
        }
        edits
    }

    /// Returns what was changed, so that each value is changed as a whole or not at all.
    fn changed_regions(&self, edits: &[TextEdit]) -> Vec<ChangedRegion> {
        let mut regions: Vec<ChangedRegion> = Vec::new();
        let (mut inserted, mut deleted) = (0, 0);
        for edit in edits {
            let mut old = edit.at..edit.at + edit.delete;
            let mut has_value = false;
            for (_, place) in self.places() {
                if self.is_touched(place, edit) {
                    old = old.start.min(place.start)..old.end.max(place.end);
                    has_value = true;
                }
            }
            // What lies between edits is unchanged, so the distances are the same in both texts.
            let start = (old.start + inserted).saturating_sub(deleted);
            inserted += edit.insert.len();
            deleted += edit.delete;
            let end = (old.end + inserted).saturating_sub(deleted);
            // What touches a changed value in the same line may be a part of its new text.
            let touches = |last: &ChangedRegion| {
                let is_same_line = !self.text[..old.start].ends_with('\n');
                old.start == last.old.end && (has_value || last.has_value) && is_same_line
            };
            let meets = |last: &ChangedRegion| old.start < last.old.end || old.start < last.old.start || touches(last);
            match regions.last_mut().filter(|last| meets(last)) {
                Some(last) => {
                    last.has_value |= has_value;
                    if old.start < last.old.start {
                        last.new.start = last.new.start.saturating_sub(last.old.start - old.start);
                        last.old.start = old.start;
                    }
                    let behind = last.old.end.saturating_sub(old.end);
                    last.old.end = last.old.end.max(old.end);
                    last.new.end = end + behind;
                }
                None => regions.push(ChangedRegion { old, new: start..end, has_value }),
            }
        }
        regions
    }

    /// Returns whether an edit alters the text at a place, or adds to a word of it.
    fn is_touched(&self, place: &Range<usize>, edit: &TextEdit) -> bool {
        let old = edit.at..edit.at + edit.delete;
        let is_inside = edit.delete == 0 && place.start < edit.at && edit.at < place.end;
        if is_inside || old.start < place.end && place.start < old.end {
            return true;
        }
        let joined = |one: Option<char>, other: Option<char>| {
            one.is_some_and(char::is_alphanumeric) && other.is_some_and(char::is_alphanumeric)
        };
        let text = &self.text[place.clone()];
        old.start == place.end && joined(text.chars().next_back(), edit.insert.chars().next())
            || old.end == place.start && joined(edit.insert.chars().next_back(), text.chars().next())
    }
}

/// Returns the name of what a placeholder stands for, without its form.
fn place_name(place: &str) -> &str {
    place.split(':').next().unwrap_or(place)
}

/// Corrects a template so that it gives the edited text with the same values and results. Values stay placeholders.
///
/// # Errors
/// Returns why the edit says nothing about other values.
fn correct_template(
    template: &str,
    values: &SlotValues,
    results: &[String],
    goal: &str,
    now: &str,
) -> Result<String, EditRefusal> {
    let filled = FilledTemplate::new(template, values, results)?;
    if now.len() > MAX_EDITED_TEXT_BYTES || filled.text.len() > MAX_EDITED_TEXT_BYTES {
        return Err(EditRefusal::Rewritten);
    }
    let edits = filled.edits(now);
    if edits.len() > MAX_EDITS || filled.parts.len() > MAX_EDITED_PARTS {
        return Err(EditRefusal::Rewritten);
    }
    let regions = filled.changed_regions(&edits);
    let removed: usize = regions.iter().map(|region| region.old.len()).sum();
    if filled.text.len() >= MIN_REWRITTEN_BYTES && removed > filled.text.len() / 3 * 2 {
        return Err(EditRefusal::Rewritten);
    }
    let known: Vec<(String, String)> =
        values.iter().flat_map(|(name, (kind, value))| slots::written_forms(name, *kind, value)).collect();
    let mut found = ReusableResults::default();
    results.iter().for_each(|result| found.add(result, &|_| true));
    let found = found.values();
    let extract = |text: &str| {
        let parts = slots::extract_values(vec![TemplatePart::Literal(text.to_owned())], &known);
        slots::extract_values(parts, &found)
    };
    for region in &regions {
        let new = now.get(region.new.clone()).ok_or(EditRefusal::NotReproduced)?;
        if new.trim().is_empty() {
            continue; // what was removed with its values isn't written for other values, either
        }
        let kept: Vec<TemplatePart> = extract(new);
        let gone = filled.places().filter(|(_, range)| region.old.start <= range.start && range.end <= region.old.end);
        for (place, _) in gone {
            let is_kept = kept
                .iter()
                .any(|part| matches!(part, TemplatePart::Place(other) if place_name(other) == place_name(place)));
            if !is_kept {
                return Err(EditRefusal::ValueReplaced { place: place.to_owned() });
            }
        }
    }
    let mut parts: Vec<TemplatePart> = Vec::new();
    for (part, is_new) in edited_parts(&filled, &regions, now) {
        match part {
            TemplatePart::Literal(text) if is_new => parts.extend(extract(&text)),
            part => parts.push(part),
        }
    }
    check_new_text(&filled, &parts, values, results, goal)?;
    let corrected = slots::render_template(&parts);
    if slots::fill_template(&corrected, values, results)? == now {
        Ok(corrected)
    } else {
        Err(EditRefusal::NotReproduced)
    }
}

/// Returns the parts of the edited text: unchanged ones, and the lines with changes.
fn edited_parts(filled: &FilledTemplate, regions: &[ChangedRegion], now: &str) -> Vec<(TemplatePart, bool)> {
    let mut pieces: Vec<(TemplatePart, bool)> = Vec::new();
    let mut at = 0;
    for region in regions.iter().map(Some).chain([None]) {
        let end = region.map_or(filled.text.len(), |region| region.old.start);
        for (part, range) in &filled.parts {
            match part {
                TemplatePart::Literal(_) if range.start.max(at) < range.end.min(end) => {
                    let unchanged = filled.text[range.start.max(at)..range.end.min(end)].to_owned();
                    pieces.push((TemplatePart::Literal(unchanged), false));
                }
                TemplatePart::Place(_) if at <= range.start && range.end <= end => pieces.push((part.clone(), false)),
                TemplatePart::Literal(_) | TemplatePart::Place(_) => {}
            }
        }
        if let Some(region) = region {
            pieces.push((TemplatePart::Literal(now.get(region.new.clone()).unwrap_or_default().to_owned()), true));
            at = region.old.end;
        }
    }
    // A value can lie partly in what was changed, so the whole line around it is looked at.
    let mut lines: Vec<(TemplatePart, bool)> = Vec::new();
    for (part, is_new) in pieces {
        let TemplatePart::Literal(text) = part else {
            lines.push((part, is_new));
            continue;
        };
        match lines.last_mut() {
            Some((TemplatePart::Literal(last), true)) if is_new => last.push_str(&text),
            Some((TemplatePart::Literal(last), true)) => {
                let head = text.find('\n').map_or(text.len(), |line_end| line_end + 1);
                last.push_str(&text[..head]);
                if head < text.len() {
                    lines.push((TemplatePart::Literal(text[head..].to_owned()), false));
                }
            }
            Some((TemplatePart::Literal(last), false)) if is_new => {
                let tail = last.split_off(last.rfind('\n').map_or(0, |line_end| line_end + 1));
                lines.push((TemplatePart::Literal(tail + &text), true));
            }
            Some(_) | None => lines.push((TemplatePart::Literal(text), is_new)),
        }
    }
    lines.retain(|(part, _)| *part != TemplatePart::Literal(String::new()));
    lines
}

/// Checks that new text of a corrected template holds for other values, too.
fn check_new_text(
    filled: &FilledTemplate,
    corrected: &[TemplatePart],
    values: &SlotValues,
    results: &[String],
    goal: &str,
) -> Result<(), EditRefusal> {
    let literal = |part: &TemplatePart| match part {
        TemplatePart::Literal(text) => Some(text.clone()),
        TemplatePart::Place(_) => None,
    };
    let before: Vec<String> = filled.parts.iter().filter_map(|(part, _)| literal(part)).collect();
    let after: Vec<String> = corrected.iter().filter_map(literal).collect();
    let (before, after) = (before.join("\n"), after.join("\n"));
    if secrets::contains_mask(&after) || matches!(secrets::mask_known_secrets(&after), Cow::Owned(_)) {
        return Err(EditRefusal::Secret);
    }
    for (slot, (kind, value)) in values {
        let remnants = slots::value_remnants(*kind, value);
        if remnants.iter().any(|text| slots::contains_word(&after, text) && !slots::contains_word(&before, text)) {
            return Err(EditRefusal::UnknownForm { slot: slot.clone() });
        }
    }
    let (told, known) = (distinctive_words(goal), distinctive_words(&before));
    let found = distinctive_words(&results.join("\n"));
    let is_finding = |word: &&String| {
        word.chars().any(|c| c.is_ascii_digit())
            && found.contains(*word)
            && !told.contains(*word)
            && !known.contains(*word)
    };
    match distinctive_words(&after).iter().find(is_finding) {
        Some(word) => Err(EditRefusal::Finding { word: word.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::goal::SlotKind;
    use crate::memory::trace::{TraceMetadata, TraceSlot, TraceStep};
    use proptest::prelude::*;
    use serde_json::json;

    const AT: &str = "2026-11-22T10:30:00Z";
    const TEMPLATE: &str = "# {month1:words}\n\nSold: {step1.total}\n\nSee data/{month1}.csv\n";
    const PATH: &str = "reports/2026-11.md";

    fn trace(template: &str) -> RunTrace {
        let step = |tool: &str, input: Value| TraceStep {
            tool: tool.to_owned(),
            input: input.as_object().cloned().expect("an object"),
            ..TraceStep::default()
        };
        let steps = vec![
            step("read_file", json!({"path": "data/{month1}.csv"})),
            step("write_file", json!({"path": "reports/{month1}.md", "content": template})),
        ];
        let known = TraceMetadata {
            kind: "trace".to_owned(),
            goal_text: "Write the report for October 2026".to_owned(),
            agent: "assistant".to_owned(),
            usage_count: 1,
            verified_count: 1,
            ..TraceMetadata::default()
        };
        let slots = vec![TraceSlot { name: "month1".to_owned(), kind: SlotKind::Month, value: "2026-10".to_owned() }];
        let mut trace = RunTrace { known, slots, steps, ..RunTrace::default() };
        trace.remember_run(LastTraceRun {
            run: "3f2a90c1".to_owned(),
            began_at: AT.to_owned(),
            is_replay: true,
            goal: "Write the report for November 2026".to_owned(),
            note: None,
            results: vec!["total: 1140\nbest day: 623".to_owned(), "Changed".to_owned()],
        });
        trace
    }

    /// Returns what a replay of a trace writes for a month with this total.
    fn written(trace: &RunTrace, month: &str, total: &str) -> String {
        let goal = ParsedGoal::parse(&format!("Write the report for {month}"));
        let values = trace.match_goal(&goal, None).expect("it fits");
        let mut calls = trace.predicted_calls(&values, &[format!("total: {total}\nbest day: 623")]);
        let (_, arguments) = calls.remove(1).expect("filled");
        arguments[CONTENT_ARGUMENT].as_str().expect("a text").to_owned()
    }

    fn review(trace: &mut RunTrace, text: &str) -> bool {
        let text = text.to_owned();
        trace.review_edits(&move |path| (path == PATH).then(|| text.clone()), AT)
    }

    /// Returns the text for another month as the accepted correction writes it, or why there is none.
    fn corrected(text: &str) -> Result<String, String> {
        let mut trace = trace(TEMPLATE);
        let before = trace.fingerprint();
        assert!(review(&mut trace, text), "it's noticed");
        assert_eq!((trace.fingerprint(), trace.known.verified_count), (before, 0), "it isn't used, and it's counted");
        let again = trace.clone();
        assert!(!review(&mut trace, text) && trace == again, "once");
        let read = RunTrace::parse(&trace.to_note()).expect("read");
        assert_eq!(read, trace);
        let Some(number) = trace.proposed_version() else { return Err(trace.feedback[0].remark.clone()) };
        trace.use_version(number, AT).expect("used");
        assert_eq!(written(&trace, "November 2026", "1140"), text, "the edited text");
        Ok(written(&trace, "December 2026", "77"))
    }

    #[test]
    fn edits_that_the_values_explain_are_proposed() {
        let rows = [
            (
                "# Report: November 2026\n\nSold: 1140\n\nSee data/2026-11.csv\n",
                "# Report: December 2026\n\nSold: 77\n\nSee data/2026-12.csv\n",
            ),
            ("# November 2026\n\nSold: 1140 pieces\n", "# December 2026\n\nSold: 77 pieces\n"),
            ("# 2026-11\n\nSold: 1140\n\nSee data/2026-11.csv\n", "# 2026-12\n\nSold: 77\n\nSee data/2026-12.csv\n"),
            (
                "# November 2026\n\nSold: 1140\n\nSee data/2026-11.csv and old/2026-11.csv {raw}\n",
                "# December 2026\n\nSold: 77\n\nSee data/2026-12.csv and old/2026-12.csv {raw}\n",
            ),
            (
                "Total of November 2026: 1140\n\nSee data/2026-11.csv\n",
                "Total of December 2026: 77\n\nSee data/2026-12.csv\n",
            ),
        ];
        for (edited, next) in rows {
            assert_eq!(corrected(edited).as_deref(), Ok(next), "{edited}");
        }
    }

    #[test]
    fn other_edits_are_noted() {
        let rows = [
            ("# November 2026\n\nSold: 1,140\n\nSee data/2026-11.csv\n", "was replaced"),
            ("# November 2026\n\nSold: many\n\nSee data/2026-11.csv\n", "was replaced"),
            ("# November 2026\n\nSold: 1140 in Nov\n\nSee data/2026-11.csv\n", "a form of its own"),
        ];
        for (edited, why) in rows {
            let refused = corrected(edited);
            assert!(refused.as_ref().is_err_and(|said| said.contains(why)), "{edited}: {refused:?}");
        }
        // A number that was found is a placeholder if it has a name, and otherwise it would be out of date.
        let best = corrected("# November 2026\n\nSold: 1140, best 623\n\nSee data/2026-11.csv\n");
        assert_eq!(best.as_deref(), Ok("# December 2026\n\nSold: 77, best 623\n\nSee data/2026-12.csv\n"));
        let mut other = trace(TEMPLATE);
        other.last_run.as_mut().expect("kept").results[0] = "total: 1140\nday,sold\n7,623\n".to_owned();
        assert!(review(&mut other, "# November 2026\n\nSold: 1140, best 623\n\nSee data/2026-11.csv\n"));
        assert!(other.proposed_version().is_none() && other.feedback[0].remark.contains("“623”"), "{other:?}");
    }

    #[test]
    fn what_is_no_edit_changes_nothing_and_an_edit_can_be_taken_back() {
        let mut trace = trace(TEMPLATE);
        let own = written(&trace, "November 2026", "1140");
        for text in
            [own.clone(), own.trim_end().to_owned(), format!("{own}\nMore.\n"), format!("---\na: 1\n---\n{own}")]
        {
            assert!(!review(&mut trace, &text), "{text}");
        }
        assert!(!trace.review_edits(&|_| None, AT), "it's gone");
        let before = trace.clone();
        assert!(review(&mut trace, &own.replace("Sold", "Total")));
        assert!(review(&mut trace, &own.replace("Sold", "Sum")), "edited again");
        assert_eq!((trace.versions.len(), trace.known.verified_count), (1, 0), "one proposal after one run");
        assert!(review(&mut trace, &own));
        assert_eq!((trace.versions.len(), trace.known.verified_count), (0, 1));
        assert_eq!(trace.steps, before.steps);
        // Passages say that they were edited, no more; other tools may have changed anything.
        trace.steps[1].tool = "edit_file".to_owned();
        let content = trace.steps[1].input.remove(CONTENT_ARGUMENT).expect("a text");
        trace.steps[1].input.insert("new_content".to_owned(), content);
        assert!(!review(&mut trace, &format!("Before\n{own}Behind\n")) && review(&mut trace, "Other\n"));
        assert!(trace.feedback[0].remark.contains("passage") && trace.proposed_version().is_none());
        trace.steps.push(TraceStep { tool: "shell".to_owned(), ..TraceStep::default() });
        assert_eq!(trace.written_paths(), Vec::<String>::new());
    }

    #[test]
    fn only_small_runs_without_secrets_are_remembered() {
        let mut kept = trace(TEMPLATE);
        let last = kept.last_run.clone().expect("kept");
        let long = LastTraceRun { results: vec!["x".repeat(MAX_KEPT_RESULT_BYTES + 1)], ..last };
        kept.remember_run(long.clone());
        assert_eq!(kept.last_run, None);
        kept.last_run = Some(long);
        assert_eq!(RunTrace::parse(&kept.to_note()).expect("read").last_run, None, "nor from a file");
        assert!(!trace(TEMPLATE).to_library_yaml().contains("1140"), "what a run found isn't given to others");
    }

    proptest! {
        /// An accepted correction gives the edited text with the run's values, and the same edit with others.
        #[test]
        fn corrections_of_fixed_text_hold_for_other_values(
            lines in proptest::collection::vec((0..4_u8, "[a-z]{1,6}( [a-z{}]{1,6}){0,3}"), 1..8),
            edited in 0..8_usize, act in 0..4_u8, new in "[a-zäß{}]{1,7}",
        ) {
            let template = |lines: &[(u8, String)]| {
                let line = |(kind, text): &(u8, String)| {
                    let text = text.replace('{', "{{").replace('}', "}}");
                    match kind {
                        0 => format!("# {{month1:words}} {text}\n"),
                        1 => format!("{text} {{step1.total}}, {text}\n"),
                        2 => format!("{text} {{month1}}/{{step1.total}}\n"),
                        _ => format!("{text}\n"),
                    }
                };
                format!("Report {{month1}} for all readers\n{}", lines.iter().map(line).collect::<String>())
            };
            prop_assume!(new != "nov");
            let mut trace = trace(&template(&lines));
            let mut wanted = lines.clone();
            let at = edited % wanted.len();
            match act {
                0 => wanted[at].1 = format!("{new} {}", wanted[at].1),
                1 => _ = wanted.remove(at),
                2 => wanted.insert(at, (3, new)),
                _ => wanted[at].1 = new,
            }
            let fixed = |lines: &[(u8, String)], month: &str, total: &str| {
                let mut other = trace.clone();
                other.steps[1].input.insert(CONTENT_ARGUMENT.to_owned(), Value::String(template(lines)));
                written(&other, month, total)
            };
            let (edited, next) = (fixed(&wanted, "November 2026", "1140"), fixed(&wanted, "December 2026", "77"));
            let own = fixed(&lines, "November 2026", "1140");
            if review(&mut trace, &edited) {
                prop_assert!(own != edited);
                if let Some(number) = trace.proposed_version() {
                    trace.use_version(number, AT).expect("used");
                    prop_assert_eq!(written(&trace, "November 2026", "1140"), edited);
                    prop_assert_eq!(written(&trace, "December 2026", "77"), next);
                } else {
                    // Only a text that a value stood in may be refused, and none where a line was added.
                    prop_assert!(act != 2, "{}", trace.feedback[0].remark);
                }
            }
        }

        #[test]
        fn any_edit_is_explained_or_refused(text in "(\\PC|[{}]|November 2026|1140|\n){0,60}") {
            let mut trace = trace(TEMPLATE);
            if review(&mut trace, &text) && let Some(number) = trace.proposed_version() {
                trace.use_version(number, AT).expect("used");
                prop_assert_eq!(written(&trace, "November 2026", "1140"), text);
            }
        }
    }
}
