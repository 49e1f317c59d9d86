//! Notes whose meaning is near to that of the open note: asked for when the list is in sight, again when the index
//! has changed, and never waited for.

use eframe::egui;
use host::search::{SearchAnswer, SearchService};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};
use store::{BlockId, DocId};

/// As many are listed.
const MAX_RELATED_NOTES: usize = 8;
/// While one writes, they are asked for at most this often.
const RELATED_NOTES_INTERVAL: Duration = Duration::from_secs(2);

/// A note that is near.
pub(crate) struct RelatedNote {
    pub(crate) note: DocId,
    pub(crate) path: String,
    /// The passage that is nearest.
    pub(crate) block: Option<BlockId>,
    /// Its beginning, in a line.
    pub(crate) text: String,
    /// The cosine of both meanings.
    pub(crate) cosine: f32,
}

/// The notes that are near to one.
#[derive(Default)]
pub(crate) struct RelatedNotes {
    /// The note they were asked for, the state of the index, and when.
    asked: Option<(DocId, u64, Instant)>,
    wait: Option<Receiver<Result<SearchAnswer, String>>>,
    pub(crate) found: Vec<RelatedNote>,
    /// Why there are none, if that has a reason.
    pub(crate) trouble: Option<String>,
    /// Rises with each result that arrives.
    pub(crate) revision: u64,
}

impl RelatedNotes {
    /// Whether an answer is on its way.
    pub(crate) fn is_asking(&self) -> bool {
        self.wait.is_some()
    }

    /// Asks where that is due, and takes in what came.
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
            self.wait = Some(search.related(note, MAX_RELATED_NOTES, move || wake.request_repaint()));
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
            Ok(Err(why)) => self.trouble = Some(why),
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => {}
        }
        self.revision += 1;
        self.wait = None;
    }
}

/// The first words of a passage, but for headings: the note's name stands before them already.
fn words(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).take(30).collect::<Vec<_>>().join(" ")
}
