//! Merge report: effects of other devices' edits on notes. It lists each note before and after, two files with one
//! name, and notes deleted on one device and edited on another. No text is stored twice: heads of the note's document
//! identify both versions.

use crate::records::sync::{MergeKind, MergeRecord};
use crate::session::apply_context::ApplyContext;
use crate::session::state::sync::SyncState;
use crate::session::sync::heads::heads_to_text;
use store::{ChangeHash, DocId};
use text::time::UnixMillis;

/// Maximum number of entries in the merge report.
const MAX_MERGE_RECORDS: usize = 200;
/// Maximum time between changes of a note that become one entry, in milliseconds.
const MERGE_WINDOW_MS: i64 = 5 * 60_000;

impl SyncState {
    /// Adds an entry to the merge report, or extends the note's recent entry.
    pub(in crate::session) fn add_merge_record(&mut self, now: UnixMillis, note: DocId, path: String, what: MergeKind) {
        let mut entry = MergeRecord { from: now, to: now, note, path, what };
        let recent = |one: &MergeRecord| one.note == note && now.ms_since(one.to) <= MERGE_WINDOW_MS;
        if let MergeKind::Text { before, after, met } = &entry.what
            && let Some(at) = self.merges.iter().rposition(recent)
            && let Some(MergeRecord {
                from, what: MergeKind::Text { before: first, after: last, met: already }, ..
            }) = self.merges.get(at)
        {
            // Local edits between two remote changes count as part of the merge.
            let met = *met || *already || last != before;
            entry.from = *from;
            entry.what = MergeKind::Text { before: first.clone(), after: after.clone(), met };
            self.merges.remove(at);
        }
        if self.merges.len() >= MAX_MERGE_RECORDS {
            self.merges.pop_front();
        }
        self.merges.push_back(entry);
        self.log_due.get_or_insert(now.plus_ms(crate::session::state::sync::SYNC_LOG_SAVE_INTERVAL_MS));
        self.revision += 1;
    }

    /// Adds a remote change of a note's text to the report, with the document's heads before and after.
    pub(in crate::session) fn add_text_merge(
        &mut self,
        now: UnixMillis,
        (note, path): (DocId, String),
        before: &[ChangeHash],
        after: &[ChangeHash],
    ) {
        let what = MergeKind::Text { before: heads_to_text(before), after: heads_to_text(after), met: after.len() > 1 };
        self.add_merge_record(now, note, path, what);
    }
}

impl SyncState {
    /// Adds a remote change of a file to the report.
    pub(in crate::session) fn add_file_merge(
        &mut self,
        turn: &ApplyContext<'_>,
        note: DocId,
        path: &str,
        what: MergeKind,
    ) {
        self.add_merge_record(turn.now, note, path.to_owned(), what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::sync::heads::parse_heads;

    #[test]
    fn changes_in_quick_succession_are_one_entry() {
        let mut sync = SyncState::default();
        let note = (DocId([1; 16]), "a.md".to_owned());
        let head = |number: u8| vec![ChangeHash([number; 32])];
        sync.add_text_merge(UnixMillis(0), note.clone(), &head(1), &head(2));
        sync.add_text_merge(UnixMillis(1_000), note.clone(), &head(2), &head(3));
        let MergeKind::Text { before, after, met } = &sync.merges[0].what else { panic!("a text") };
        assert_eq!((parse_heads(before), parse_heads(after), *met), (head(1), head(3), false));
        // Local text was written in between.
        sync.add_text_merge(UnixMillis(2_000), note.clone(), &head(4), &head(5));
        assert!(matches!(sync.merges[0].what, MergeKind::Text { met: true, .. }) && sync.merges.len() == 1);
        sync.add_text_merge(UnixMillis(2_000 + MERGE_WINDOW_MS + 1), note.clone(), &head(5), &head(6));
        assert_eq!(sync.merges.len(), 2);
        for number in 0..250 {
            sync.add_merge_record(
                UnixMillis(i64::from(number)),
                DocId([9; 16]),
                format!("{number}.md"),
                MergeKind::Deleted,
            );
        }
        assert_eq!(sync.merges.len(), MAX_MERGE_RECORDS);
        let kept = serde_json::to_string(&sync.merges).expect("JSON");
        assert_eq!(
            serde_json::from_str::<std::collections::VecDeque<MergeRecord>>(&kept).expect("the same"),
            sync.merges
        );
    }
}
