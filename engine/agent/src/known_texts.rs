//! What a run knows of the notes that it has read, so that it doesn't overwrite what the user, other runs or other
//! programs have changed since.

use std::collections::BTreeMap;
use store::DocId;
use text::diff;
use text::note_merge::merge_notes;

/// Prefix of the keys under which the database keeps what each active run knows, for a restart: a row for each run and
/// note, so that a change writes no other notes again.
pub const KNOWN_TEXTS_KEY_PREFIX: &str = "known-texts/";

/// Returns the key of the row for a run and a note.
pub fn known_text_key(run: DocId, note: DocId) -> String {
    format!("{KNOWN_TEXTS_KEY_PREFIX}{run}/{note}")
}

/// Returns what each run knows by these rows. Unreadable ones are left out.
pub fn known_texts_of_rows(rows: &[(String, Vec<u8>)]) -> BTreeMap<DocId, KnownTexts> {
    let mut runs: BTreeMap<DocId, KnownTexts> = BTreeMap::new();
    for (key, value) in rows {
        let ids = key.strip_prefix(KNOWN_TEXTS_KEY_PREFIX).and_then(|ids| ids.split_once('/'));
        let Some((Ok(run), Ok(note))) = ids.map(|(run, note)| (run.parse(), note.parse())) else { continue };
        if let Ok(text) = serde_json::from_slice(value) {
            runs.entry(run).or_default().notes.insert(note, text);
        }
    }
    runs
}

/// What is said of a write that was merged with another run's changes.
pub const MERGED_WRITE_REMARK: &str = "It was changed since you read it, by the user or another agent, so your text \
    was merged with that. Read it again before you write it again.";

/// The notes that a run has read. The text that the run knows is kept from the moment on at which someone else
/// changes the note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownTexts {
    notes: BTreeMap<DocId, Option<String>>,
}

/// The text to write instead of the one that a run wants to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedWrite {
    /// The text.
    pub text: String,
    /// Whether it holds changes that the run doesn't know.
    pub is_merged: bool,
}

/// A message for the model: it and someone else changed the same passage, with both changes and the current text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConflictingWriteError(pub String);

impl KnownTexts {
    /// Returns the notes that the run has read.
    pub fn notes(&self) -> impl Iterator<Item = DocId> {
        self.notes.keys().copied()
    }

    /// Returns the row's value for a note; `None` if the run hasn't read it.
    pub fn row_value(&self, note: DocId) -> Option<Vec<u8>> {
        serde_json::to_vec(self.notes.get(&note)?).ok()
    }

    /// Records that the run knows a note's current text. Returns whether that is new.
    pub fn record_read(&mut self, note: DocId) -> bool {
        self.notes.insert(note, None) != Some(None)
    }

    /// Returns whether the run has read the note, and nobody else has changed it since.
    pub fn knows_current(&self, note: DocId) -> bool {
        self.notes.get(&note) == Some(&None)
    }

    /// Records that someone else changes a note, whose text is `before` until then.
    pub fn record_change_by_other(&mut self, note: DocId, before: &str) {
        if let Some(known) = self.notes.get_mut(&note) {
            known.get_or_insert_with(|| before.to_owned());
        }
    }

    /// Merges the text that the run wants to write with what others have changed since it read the note.
    ///
    /// # Errors
    /// Returns an error if both changed the same passage.
    pub fn merge_write(
        &mut self,
        note: DocId,
        path: &str,
        new: &str,
        current: &str,
    ) -> Result<MergedWrite, ConflictingWriteError> {
        let whole = || MergedWrite { text: new.to_owned(), is_merged: false };
        let known = self.notes.insert(note, None).flatten().filter(|known| known != current && new != current);
        let Some(known) = known else { return Ok(whole()) };
        match merge_notes(&known, new, current) {
            Some(text) if text == new => Ok(whole()),
            Some(text) => {
                // The run doesn't know the changes of others yet, so its next text is merged with them, too.
                self.notes.insert(note, Some(new.to_owned()));
                Ok(MergedWrite { text, is_merged: true })
            }
            None => {
                let [theirs, ours] = [current, new].map(|text| diff::unified_diff(path, Some(&known), Some(text)));
                Err(ConflictingWriteError(format!(
                    "{path} was changed since you read it, by the user or another agent, and you both changed the same \
                     passage, so nothing was written. Write it again with both changes, or ask the user.\n\nThe other \
                     change:\n{theirs}\nYour change:\n{ours}\nThe note as it is now:\n{current}"
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: DocId = DocId([1; 16]);

    #[test]
    fn texts_are_merged_with_what_others_changed() {
        let mut known = KnownTexts::default();
        let write = |known: &mut KnownTexts, new: &str, current: &str| known.merge_write(NOTE, "a.md", new, current);
        // What wasn't read is written as it is.
        known.record_change_by_other(NOTE, "zero\n");
        let plain = |text: &str| Ok(MergedWrite { text: text.to_owned(), is_merged: false });
        assert_eq!(write(&mut known, "new\n", "old\n"), plain("new\n"));
        let read = "# A\n\none\n\ntwo\n\nthree\n";
        let theirs = "# A\n\none\n\ntwo\n\nthree, theirs\n";
        known.record_read(NOTE);
        assert_eq!(write(&mut known, "new\n", "old\n"), plain("new\n"), "nobody has changed it");
        known.record_read(NOTE);
        known.record_change_by_other(NOTE, read);
        known.record_change_by_other(NOTE, "what came later\n");
        let merged = write(&mut known, "# A\n\none, ours\n\ntwo\n\nthree\n", theirs).expect("merged");
        let both = "# A\n\none, ours\n\ntwo\n\nthree, theirs\n";
        assert_eq!(merged, MergedWrite { text: both.to_owned(), is_merged: true });
        // It still doesn't know what the other has changed.
        let again = write(&mut known, "# A\n\none, ours again\n\ntwo\n\nthree\n", both).expect("merged");
        assert_eq!(again.text, "# A\n\none, ours again\n\ntwo\n\nthree, theirs\n");
        // Both changed the same passage: the run gets both changes, and then knows the current text.
        known.record_read(NOTE);
        known.record_change_by_other(NOTE, read);
        let why = write(&mut known, "# A\n\none\n\ntwo\n\nthree, ours\n", theirs).expect_err("a conflict").0;
        assert!(why.contains("+three, theirs") && why.contains("+three, ours") && why.ends_with(theirs), "{why}");
        assert_eq!(write(&mut known, "three, both\n", theirs), plain("three, both\n"));
    }

    #[test]
    fn rows_hold_what_runs_know() {
        let (run, other) = (DocId([2; 16]), DocId([3; 16]));
        let mut known = KnownTexts::default();
        known.record_read(NOTE);
        known.record_read(other);
        known.record_change_by_other(NOTE, "# A\n");
        let row = |note| (known_text_key(run, note), known.row_value(note).expect("a row"));
        let bad = (known_text_key(run, run), b"{".to_vec());
        let old = (format!("{KNOWN_TEXTS_KEY_PREFIX}{run}"), b"{}".to_vec());
        let rows = [row(NOTE), bad, row(other), old];
        assert_eq!(known_texts_of_rows(&rows), BTreeMap::from([(run, known.clone())]));
        assert_eq!(known.row_value(run), None);
    }
}
