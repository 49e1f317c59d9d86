//! Marks the parts of a note that agents have changed, until the user has moved the caret there or left the note.

use engine::{Note, Session};
use std::collections::HashSet;
use std::ops::Range;
use store::{ChangeKind, DocId, TextHunk};
use text::text_edit::shift_offset;

/// Maximum number of marks in a note; larger changes are read in the review.
const MAX_AGENT_MARKS: usize = 200;

/// Agents' changes in the displayed note that the user hasn't seen.
pub(super) struct AgentMarks {
    /// Changes before this time (Unix milliseconds), when the window was opened, aren't marked.
    since: i64,
    /// Changes that were already marked: run and number.
    known: HashSet<(DocId, u64)>,
    note: Option<DocId>,
    revision: u64,
    /// Carets of the last frame: only a caret that moves removes a mark.
    carets: Vec<usize>,
    ranges: Vec<Range<usize>>,
}

impl Default for AgentMarks {
    fn default() -> Self {
        AgentMarks {
            since: host::unix_millis_now(),
            known: HashSet::new(),
            note: None,
            revision: 0,
            carets: Vec::new(),
            ranges: Vec::new(),
        }
    }
}

impl AgentMarks {
    /// Updates the marks with changes since the last frame.
    pub(super) fn follow(&mut self, session: &Session, note: &Note, carets: Vec<usize>) {
        if self.note != Some(note.id) {
            self.ranges.clear();
            (self.note, self.revision) = (Some(note.id), note.revision());
        }
        let has_changed = self.revision != note.revision();
        for shift in note.shifts_since(self.revision).into_iter().flatten() {
            let through = |at: usize| shift_offset(at, shift.at, shift.delete, shift.insert, false);
            self.ranges.iter_mut().for_each(|range| *range = through(range.start)..through(range.end));
        }
        self.revision = note.revision();
        if !has_changed && carets != self.carets {
            self.ranges.retain(|range| !carets.iter().any(|caret| (range.start..=range.end).contains(caret)));
        }
        self.carets = carets;
        let mut text = None;
        for run in session.agents().open_runs() {
            for change in run.changes.iter().filter(|change| change.file == Some(note.id) && change.at >= self.since) {
                let ChangeKind::Edited { hunks } = &change.what else { continue };
                if self.known.insert((run.id, change.number)) {
                    let text = text.get_or_insert_with(|| note.text());
                    self.ranges.extend(hunks.iter().filter_map(|hunk| hunk_range(text, hunk)));
                }
            }
        }
        self.ranges.retain(|range| !range.is_empty());
        self.ranges.truncate(MAX_AGENT_MARKS);
    }

    /// Returns whether a part of the note has an unseen change by an agent.
    pub(super) fn touches(&self, part: &Range<usize>) -> bool {
        self.ranges.iter().any(|range| range.start <= part.end && part.start < range.end)
    }
}

/// Returns the current range of the text that a hunk inserted, or the position of a deletion.
fn hunk_range(text: &str, hunk: &TextHunk) -> Option<Range<usize>> {
    if hunk.inserted.is_empty() {
        return Some(hunk.at.min(text.len())..(hunk.at + 1).min(text.len()));
    }
    let is_there = text.get(hunk.at..).is_some_and(|rest| rest.starts_with(&hunk.inserted));
    let at = if is_there { hunk.at } else { text.find(&hunk.inserted)? };
    Some(at..at + hunk.inserted.trim_end_matches('\n').len())
}
