//! Exact search for words or a pattern in the notes of all volumes. It runs on a thread of its own, over the files and,
//! for open notes, their current text. The index can't do this, because it knows only words and no punctuation.

use crate::fs::confined_dir::ConfinedPath;
use crate::fs::read::{self, FoundFile};
use crate::mailbox::{Mailbox, MailboxMessage};
use engine::{NotePhase, Session};
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use store::{DocId, FileKind};
use text::find_query::FindQuery;

/// Maximum number of matches in all notes.
pub const MAX_EXACT_MATCHES: usize = 10_000;
/// Maximum number of characters of a line shown before a match, and after it.
const MAX_LINE_CONTEXT_CHARS: usize = 200;

/// A match in a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactMatch {
    /// Byte range in the note.
    pub range: Range<usize>,
    /// The lines around the match; long ones are shortened.
    pub line: String,
    /// Byte range of the match in `line`.
    pub in_line: Range<usize>,
    /// Number of the match's first line, from 1.
    pub line_number: usize,
}

impl ExactMatch {
    /// Returns the text that matched.
    pub fn matched(&self) -> &str {
        &self.line[self.in_line.clone()]
    }
}

/// The matches in a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteMatches {
    /// The note.
    pub note: DocId,
    /// The matches in text order, at least one.
    pub matches: Vec<ExactMatch>,
}

/// A running search, until it's dropped or has covered all notes.
pub struct ExactSearch {
    /// Matches, one note at a time; the channel closes when the search ends.
    pub found: Receiver<NoteMatches>,
    _alive: Arc<()>,
}

/// A note's id and file, and its text if it's open.
type NoteSource = (DocId, ConfinedPath, Option<String>);

/// Searches for `query` in all notes of all volumes, except in agents' memory.
pub(crate) fn start_exact_search(session: &Session, query: FindQuery, inbox: Mailbox) -> ExactSearch {
    let mut sources: Vec<NoteSource> = Vec::new();
    let mut volumes: Vec<_> = session.volumes().collect();
    volumes.sort_by_key(|volume| volume.name.to_lowercase());
    for volume in volumes {
        let Some(root) = &volume.root else { continue };
        let is_note = |kind: FileKind| matches!(kind, FileKind::Note | FileKind::Script);
        let rows = volume.files.values().filter(|row| is_note(row.kind) && !agent::memory::is_memory(&row.path));
        sources.extend(rows.map(|row| {
            let open = session.note(row.id).filter(|note| note.phase == NotePhase::Ready);
            (row.id, ConfinedPath::new(root, &row.path), open.map(engine::Note::text))
        }));
    }
    let (sender, found) = channel();
    let alive = Arc::new(());
    let wanted = Arc::downgrade(&alive);
    std::thread::spawn(move || {
        search_notes(&query, sources, &sender, &wanted, &inbox);
        drop(sender);
        wake(&inbox);
    });
    ExactSearch { found, _alive: alive }
}

fn wake(inbox: &Mailbox) {
    inbox.send(MailboxMessage::Read(Box::new(|_| ())));
}

fn search_notes(
    query: &FindQuery,
    sources: Vec<NoteSource>,
    found: &Sender<NoteMatches>,
    wanted: &Weak<()>,
    inbox: &Mailbox,
) {
    let mut left = MAX_EXACT_MATCHES;
    for (note, file, open) in sources {
        if wanted.strong_count() == 0 {
            return; // nobody waits for it any more
        }
        let text = match open {
            Some(text) => text,
            None => match read::read_note_file(&file) {
                Ok(FoundFile::Text(file)) => file.text,
                Ok(_) | Err(_) => continue, // it's an attachment, or gone
            },
        };
        let matches = matches_in_text(query, &text, left);
        left -= matches.len();
        if !matches.is_empty() {
            if found.send(NoteMatches { note, matches }).is_err() {
                return;
            }
            wake(inbox);
        }
        if left == 0 {
            return;
        }
    }
}

fn matches_in_text(query: &FindQuery, text: &str, most: usize) -> Vec<ExactMatch> {
    let mut ranges = query.find(text).unwrap_or_default();
    ranges.truncate(most);
    let (mut line_number, mut counted) = (1, 0);
    let one = |range: Range<usize>| {
        line_number += text[counted..range.start].matches('\n').count();
        counted = range.start;
        let start = text[..range.start].rfind('\n').map_or(0, |newline| newline + 1);
        let stop = text[range.end..].find('\n').map_or(text.len(), |newline| range.end + newline);
        let before = text[start..range.start].char_indices().rev().nth(MAX_LINE_CONTEXT_CHARS);
        let from = before.map_or(start, |(from, _)| start + from);
        let behind = text[range.end..stop].char_indices().nth(MAX_LINE_CONTEXT_CHARS);
        let to = behind.map_or(stop, |(to, _)| range.end + to);
        let in_line = range.start - from..range.end - from;
        let to = to - usize::from(text[range.end..to].ends_with('\r'));
        ExactMatch { line: text[from..to].to_owned(), in_line, range, line_number }
    };
    ranges.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_know_their_lines() {
        let query = FindQuery { text: "Sea".to_owned(), ..FindQuery::default() };
        let text = "one\nThe sea, the SEA\n\nlast sea";
        let found = matches_in_text(&query, text, 10);
        let seen: Vec<(usize, &str, &str)> =
            found.iter().map(|one| (one.line_number, one.matched(), one.line.as_str())).collect();
        assert_eq!(seen, [(2, "sea", "The sea, the SEA"), (2, "SEA", "The sea, the SEA"), (4, "sea", "last sea")]);
        assert!(found.iter().all(|one| text[one.range.clone()] == *one.matched()));
        assert_eq!(matches_in_text(&query, text, 2).len(), 2);
    }
}
