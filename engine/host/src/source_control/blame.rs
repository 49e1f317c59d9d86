//! Which commit each part of a note is from, read in the background.

use super::{SharedReadings, SourceControl, lock, sentence};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use store::{BlobHash, DocId};
use vcs::{BlameSpan, Commit, RepositoryFolder};

/// Maximum number of files whose blame is kept.
const MAX_KEPT_BLAMES: usize = 8;

/// A version of a note: its revision, and the repository's history at that time.
type BlamedVersion = (u64, Option<BlobHash>);

/// The commits of a note's parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlameReading {
    /// The note's revision that was read.
    pub revision: u64,
    /// Parts in bytes, in order, with their commits; `None` if a part isn't committed.
    pub parts: Vec<(Range<usize>, Option<Commit>)>,
    /// Why there's none.
    pub trouble: Option<String>,
}

/// Blame that is known and being read.
#[derive(Default)]
pub(super) struct BlameReadings {
    known: Vec<((DocId, String), BlamedVersion, Arc<BlameReading>)>,
    is_reading: bool,
}

impl SourceControl {
    /// Returns what is known of a note's parts, and reads it in the background if it's of another version and
    /// `is_settled`, or if nothing is known.
    pub fn blame(
        &self,
        (volume, path): (DocId, &str),
        version: BlamedVersion,
        is_settled: bool,
        text: &dyn Fn() -> String,
    ) -> Option<Arc<BlameReading>> {
        let mut shared = lock(&self.shared);
        let known = shared.blames.known.iter().find(|((of, name), _, _)| *of == volume && name == path);
        let known = known.map(|(_, version, reading)| (*version, reading.clone()));
        let is_due = known.as_ref().is_none_or(|(read, _)| *read != version && is_settled);
        if is_due
            && !shared.blames.is_reading
            && let Some((_, root, _)) = self.followed.iter().find(|(known, _, _)| *known == volume)
        {
            shared.blames.is_reading = true;
            let (root, file, text) = (root.clone(), (volume, path.to_owned()), text());
            let (readings, wake) = (self.shared.clone(), self.wake.clone());
            // A thread of its own: a file with a long history takes seconds.
            std::thread::spawn(move || {
                read_blame(&root, file, version, &text, &readings);
                wake();
            });
        }
        known.map(|(_, reading)| reading)
    }
}

fn read_blame(
    root: &Path,
    file: (DocId, String),
    version: BlamedVersion,
    text: &str,
    readings: &Mutex<SharedReadings>,
) {
    let read = RepositoryFolder::open(root).and_then(|repository| repository.blame_text(&file.1, text));
    let reading = match read {
        Ok(spans) => BlameReading { revision: version.0, parts: byte_parts(text, spans), trouble: None },
        Err(why) => {
            let trouble = Some(sentence(&why.to_string()));
            BlameReading { revision: version.0, trouble, ..BlameReading::default() }
        }
    };
    let blames = &mut lock(readings).blames;
    blames.is_reading = false;
    blames.known.retain(|(known, _, _)| *known != file);
    if blames.known.len() >= MAX_KEPT_BLAMES {
        blames.known.remove(0);
    }
    blames.known.push((file, version, Arc::new(reading)));
}

/// Returns where the parts are in bytes.
fn byte_parts(text: &str, spans: Vec<BlameSpan>) -> Vec<(Range<usize>, Option<Commit>)> {
    let mut lines = text.split_inclusive('\n');
    let mut at = 0;
    let part = |span: BlameSpan| {
        let start = at;
        at += lines.by_ref().take(span.lines).map(str::len).sum::<usize>();
        (start..at, span.commit)
    };
    spans.into_iter().map(part).collect()
}
