//! Related notes by meaning: requested while the list is visible, and again when the index has changed, without
//! blocking.

use eframe::egui;
use host::search::{SearchAnswer, SearchService};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};
use store::{BlockId, DocId};
use text::markdown::plain_text;

/// Maximum number of listed notes.
const MAX_RELATED_NOTES: usize = 8;
/// Minimum interval between requests while typing.
const RELATED_NOTES_INTERVAL: Duration = Duration::from_secs(2);

/// A related note.
pub(crate) struct RelatedNote {
    pub(crate) note: DocId,
    pub(crate) path: String,
    /// The most similar passage.
    pub(crate) block: Option<BlockId>,
    /// The start of that passage, in one line.
    pub(crate) text: String,
    /// Cosine similarity of the two embeddings.
    pub(crate) cosine: f32,
}

/// The related notes of a note.
#[derive(Default)]
pub(crate) struct RelatedNotes {
    /// The note, the state of the index, and the time of the request.
    asked: Option<(DocId, u64, Instant)>,
    wait: Option<Receiver<anyhow::Result<SearchAnswer>>>,
    pub(crate) found: Vec<RelatedNote>,
    /// Why there are no results, if there was a problem.
    pub(crate) trouble: Option<String>,
    /// Increases with each result that arrives.
    pub(crate) revision: u64,
}

impl RelatedNotes {
    /// Returns whether a request is pending.
    pub(crate) fn is_asking(&self) -> bool {
        self.wait.is_some()
    }

    /// Sends a request if one is due, and stores answers.
    pub(crate) fn refresh(&mut self, ctx: &egui::Context, search: &SearchService, note: DocId) {
        let revision = search.freshness().revision;
        let same = self.asked.is_some_and(|(of, at, _)| of == note && at == revision);
        let soon = self.asked.is_some_and(|(of, _, when)| of == note && when.elapsed() < RELATED_NOTES_INTERVAL);
        if !same && soon {
            ctx.request_repaint_after(RELATED_NOTES_INTERVAL);
        } else if !same && self.wait.is_none() {
            if self.asked.is_none_or(|(of, ..)| of != note) {
                self.found.clear();
                self.revision += 1;
            }
            self.asked = Some((note, revision, Instant::now()));
            let wake = ctx.clone();
            self.wait = Some(search.find_related(note, (MAX_RELATED_NOTES, None), move || wake.request_repaint()));
        }
        let Some(wait) = &self.wait else { return };
        match wait.try_recv() {
            Ok(Ok(answer)) => {
                let near = |hit: host::search::NoteHit| RelatedNote {
                    note: hit.note,
                    path: hit.path,
                    block: hit.place.split('/').next().and_then(|block| block.parse().ok()),
                    text: words(&hit.text),
                    cosine: hit.why.meaning.unwrap_or_default(),
                };
                self.found = answer.hits.into_iter().map(near).collect();
                self.trouble = None;
            }
            Ok(Err(why)) => self.trouble = Some(why.to_string()),
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => {}
        }
        self.revision += 1;
        self.wait = None;
    }
}

/// Returns the first words of a passage without headings, since the note's name precedes them.
fn words(text: &str) -> String {
    let text: String = text.split_inclusive('\n').filter(|line| !line.starts_with('#')).collect();
    plain_text(&text).lines().flat_map(str::split_whitespace).take(30).collect::<Vec<_>>().join(" ")
}
