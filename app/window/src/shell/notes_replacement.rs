//! Replaces text in many notes, which may be closed.
//!
//! A few notes at a time are opened, edited if they are unchanged since the search, and closed. All of it is undone
//! together.

use crate::panels::exact_panel::counted_matches;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use engine::commands::CommandId;
use engine::{Command, Note, NotePhase};
use notebook::actions::{NoteReplacement, TextReplacement};
use std::collections::VecDeque;
use std::ops::Range;
use text::find_query::FindQuery;
use text::text_edit::TextEdit;
use ui::text::counted;

/// Maximum number of notes held open at once.
const MAX_HELD_NOTES: usize = 8;

/// A replacement in many notes, and the undo of the last one.
#[derive(Default)]
pub(crate) struct NotesReplacement {
    queue: VecDeque<NoteReplacement>,
    held: Vec<NoteReplacement>,
    /// The query and replacement template, for edits without a known new text.
    template: (FindQuery, String),
    is_undo: bool,
    /// The edits that undo what has been replaced so far.
    done: Vec<NoteReplacement>,
    skipped: usize,
    /// The edits that undo the last replacement.
    undo: Vec<NoteReplacement>,
}

impl NotesReplacement {
    fn is_running(&self) -> bool {
        !self.queue.is_empty() || !self.held.is_empty()
    }

    /// Starts a replacement.
    pub(crate) fn begin(
        &mut self,
        notices: &mut NoticeState,
        query: FindQuery,
        with: String,
        notes: Vec<NoteReplacement>,
    ) {
        if self.is_running() {
            notices.toasts.show_message("A replacement is still in progress. Try again in a moment.");
            return;
        }
        *self = NotesReplacement { queue: notes.into(), template: (query, with), ..NotesReplacement::default() };
    }

    /// Starts undoing the last replacement.
    pub(crate) fn begin_undo(&mut self, notices: &mut NoticeState) {
        let undo = if self.is_running() { Vec::new() } else { std::mem::take(&mut self.undo) };
        if undo.is_empty() {
            notices.toasts.show_message("No replacement to undo");
            return;
        }
        *self = NotesReplacement { queue: undo.into(), is_undo: true, ..NotesReplacement::default() };
    }

    /// Advances the replacement as far as possible without waiting.
    pub(crate) fn step(&mut self, host: &mut HostLink, notices: &mut NoticeState) {
        if !self.is_running() {
            return;
        }
        while self.held.len() < MAX_HELD_NOTES
            && let Some(next) = self.queue.pop_front()
        {
            match host.command(Command::HoldNote { note: next.note }) {
                Ok(()) => self.held.push(next),
                Err(_) => self.skipped += 1, // it's gone
            }
        }
        for wanted in std::mem::take(&mut self.held) {
            let is_failed = |note: &Note| matches!(note.phase, NotePhase::Failed(_));
            // A change of the file by another program may still have to be merged.
            if host.note(Some(wanted.note)).is_some_and(|note| !note.is_settled() && !is_failed(note)) {
                self.held.push(wanted);
                continue;
            }
            let note = wanted.note;
            match self.replace_in_note(host, wanted) {
                Some(undo) => self.done.push(undo),
                None => self.skipped += 1,
            }
            // A note that couldn't be opened isn't held, so releasing it may fail.
            let _ = host.command(Command::ReleaseNote { note });
        }
        if !self.is_running() {
            self.report(notices);
        }
    }

    /// Edits a note if all matches are where they were found. Returns the edits that undo it.
    fn replace_in_note(&self, host: &mut HostLink, wanted: NoteReplacement) -> Option<NoteReplacement> {
        let text = host.note(Some(wanted.note)).filter(|note| note.is_settled())?.text();
        let ranges: Vec<Range<usize>> = wanted.edits.iter().map(|edit| edit.at..edit.at + edit.old.len()).collect();
        let is_unchanged =
            ranges.iter().zip(&wanted.edits).all(|(range, edit)| text.get(range.clone()) == Some(&edit.old));
        if !is_unchanged {
            return None;
        }
        let (query, with) = &self.template;
        let made = query.replacements(&text, &ranges, with);
        let (mut edits, mut undo) = (Vec::new(), Vec::new());
        let (mut grown, mut gone) = (0, 0);
        for (edit, made) in wanted.edits.into_iter().zip(made) {
            let new = edit.new.unwrap_or(made);
            let at = edit.at + grown - gone;
            (grown, gone) = (grown + new.len(), gone + edit.old.len());
            edits.push(TextEdit { at: edit.at, delete: edit.old.len(), insert: new.clone() });
            undo.push(TextReplacement { at, old: new, new: Some(edit.old) });
        }
        host.command(Command::EditAll { note: wanted.note, edits }).ok()?;
        Some(NoteReplacement { note: wanted.note, edits: undo })
    }

    /// Reports the result, and offers to undo it.
    fn report(&mut self, notices: &mut NoticeState) {
        let done = std::mem::take(&mut self.done);
        let (notes, skipped) = (counted(done.len(), "note"), counted(self.skipped, "note"));
        let has = if self.skipped == 1 { "has" } else { "have" };
        if self.is_undo {
            let left = format!(" {skipped} {has} changed since and stayed as before.");
            let left = if self.skipped == 0 { String::new() } else { left };
            notices.toasts.show_message(format!("Restored {notes}.{left}"));
            return;
        }
        if done.is_empty() {
            notices.toasts.show_message(format!("Nothing was replaced: {skipped} {has} changed since the search."));
            return;
        }
        let left = format!(" Skipped {skipped} that {has} changed since the search.");
        let left = if self.skipped == 0 { String::new() } else { left };
        let matches = done.iter().map(|note| note.edits.len()).sum();
        let says = format!("Replaced {} in {notes}.{left}", counted_matches(matches));
        notices.toasts.show_with_action(says, "Undo", CommandId::SearchUndoReplace);
        self.undo = done;
    }
}
