//! What other devices' edits did to notes, as a report: each note before and after, two files of one name, what was
//! deleted on one device and edited on another. No text is kept twice: heads of the note's document tell both.

use super::Sync;
use crate::session::{Session, Turn};
use serde::{Deserialize, Serialize};
use store::{ChangeHash, DocId};
use text::time::Time;

/// Under which name the disk keeps the report.
pub const MERGES: &str = "sync/merges";
/// Entries that are kept.
const MOST: usize = 200;
/// Changes of a note that come at most this many milliseconds apart are one entry.
const PAUSE: i64 = 5 * 60_000;

/// What happened to a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Merged {
    /// Its text was changed elsewhere.
    Text {
        /// The document's heads before, as hexadecimal numbers with spaces between.
        before: String,
        /// And after.
        after: String,
        /// Whether edits of this device met them, which the other did not know.
        met: bool,
    },
    /// Two devices made a file of this path: both are kept.
    Twins {
        /// The other one.
        other: DocId,
        /// What that is called now.
        called: String,
    },
    /// It was renamed elsewhere.
    Renamed {
        /// What it was called here.
        from: String,
    },
    /// It was deleted elsewhere, and is in the trash.
    Deleted,
    /// It was deleted elsewhere and edited here: it stays.
    Kept,
    /// It was deleted here and edited elsewhere: it is back.
    Back,
}

/// An entry of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merge {
    /// When it began.
    pub from: Time,
    /// When the last change of it came.
    pub to: Time,
    /// The note.
    pub note: DocId,
    /// Its path at that time.
    pub path: String,
    /// What happened.
    pub what: Merged,
}

impl Merge {
    /// What happened, in words that follow the path.
    pub fn words(&self) -> String {
        match &self.what {
            Merged::Text { met: false, .. } => "was changed on another device".to_owned(),
            Merged::Text { met: true, .. } => "was changed on two devices at once; both edits are in it".to_owned(),
            Merged::Twins { called, .. } => format!("was made on two devices; both are kept, the other is {called}"),
            Merged::Renamed { from } => format!("was {from} before it was renamed on another device"),
            Merged::Deleted => "was deleted on another device; it is in the trash".to_owned(),
            Merged::Kept => "was deleted on another device and edited on this one; it stays".to_owned(),
            Merged::Back => "was deleted on this device and edited on another; it is back".to_owned(),
        }
    }

    /// Whether there is a text before and one after.
    pub fn has_texts(&self) -> bool {
        matches!(self.what, Merged::Text { .. } | Merged::Twins { .. })
    }
}

impl Sync {
    /// Enters something into the report.
    pub(in crate::session) fn report(&mut self, now: Time, note: DocId, path: String, what: Merged) {
        let mut entry = Merge { from: now, to: now, note, path, what };
        let recent = |one: &Merge| one.note == note && now.since(one.to) <= PAUSE;
        if let Merged::Text { before, after, met } = &entry.what
            && let Some(at) = self.merges.iter().rposition(recent)
            && let Some(Merge { from, what: Merged::Text { before: first, after: last, met: already }, .. }) =
                self.merges.get(at)
        {
            // What was written here between two changes from there is part of the story.
            let met = *met || *already || last != before;
            entry.from = *from;
            entry.what = Merged::Text { before: first.clone(), after: after.clone(), met };
            self.merges.remove(at);
        }
        if self.merges.len() >= MOST {
            self.merges.pop_front();
        }
        self.merges.push_back(entry);
        self.log_due.get_or_insert(now.plus(super::LOG_EVERY));
        self.revision += 1;
    }

    /// A note's text was changed elsewhere: its document's heads before and after.
    pub(in crate::session) fn report_text(
        &mut self,
        now: Time,
        (note, path): (DocId, String),
        before: &[ChangeHash],
        after: &[ChangeHash],
    ) {
        let what = Merged::Text { before: heads(before), after: heads(after), met: after.len() > 1 };
        self.report(now, note, path, what);
    }
}

impl Session {
    /// The same for what happened to a file.
    pub(in crate::session) fn report_file(&mut self, turn: &Turn<'_>, note: DocId, path: &str, what: Merged) {
        self.sync.report(turn.now, note, path.to_owned(), what);
    }
}

fn heads(heads: &[ChangeHash]) -> String {
    let mut heads: Vec<String> = heads.iter().map(ToString::to_string).collect();
    heads.sort_unstable();
    heads.join(" ")
}

/// Reads what [`Merged::Text`] keeps. What is no head is left out.
pub fn read_heads(text: &str) -> Vec<ChangeHash> {
    text.split(' ').filter_map(|head| head.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_in_quick_succession_are_one_entry() {
        let mut sync = Sync::default();
        let note = (DocId([1; 16]), "a.md".to_owned());
        let head = |number: u8| vec![ChangeHash([number; 32])];
        sync.report_text(Time(0), note.clone(), &head(1), &head(2));
        sync.report_text(Time(1_000), note.clone(), &head(2), &head(3));
        let Merged::Text { before, after, met } = &sync.merges[0].what else { panic!("a text") };
        assert_eq!((read_heads(before), read_heads(after), *met), (head(1), head(3), false));
        // Something was written here between.
        sync.report_text(Time(2_000), note.clone(), &head(4), &head(5));
        assert!(matches!(sync.merges[0].what, Merged::Text { met: true, .. }) && sync.merges.len() == 1);
        sync.report_text(Time(2_000 + PAUSE + 1), note.clone(), &head(5), &head(6));
        assert_eq!(sync.merges.len(), 2);
        for number in 0..250 {
            sync.report(Time(i64::from(number)), DocId([9; 16]), format!("{number}.md"), Merged::Deleted);
        }
        assert_eq!(sync.merges.len(), MOST);
        let kept = serde_json::to_string(&sync.merges).expect("JSON");
        assert_eq!(serde_json::from_str::<std::collections::VecDeque<Merge>>(&kept).expect("the same"), sync.merges);
    }
}
