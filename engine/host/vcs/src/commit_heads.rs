//! Which version of each note a commit made here has: the heads of the notes' documents, as a note of Git on it.
//!
//! It's a hint that stays on this device. A rebase or amend makes a commit without it, and anyone can write such notes,
//! so a version is always compared with the text in the commit.

use crate::note_choices::is_note_path;
use crate::{RepositoryFolder, VcsError};
use git2::{Oid, Signature};
use std::path::Path;

/// The reference of these notes. It's in no refspec by default, so nothing pushes or fetches it.
const HEADS_REFERENCE: &str = "refs/notes/tracebook";
/// Maximum number of notes of a commit whose heads are recorded.
const MAX_RECORDED_NOTES: usize = 200;
/// Maximum number of changed files of a commit that are looked at.
const MAX_COMPARED_FILES: usize = 2_000;
/// Maximum total size in bytes of the texts that are compared.
const MAX_COMPARED_BYTES: usize = 16 << 20;
/// Maximum size in bytes of what is recorded for a commit.
const MAX_RECORD_BYTES: usize = 64 << 10;
/// Maximum number of heads of a note.
const MAX_HEADS: usize = 8;
/// Length of a head as a hexadecimal number, with what separates it from the next one.
const HEAD_CHARS: usize = 65;

impl RepositoryFolder {
    /// Records for the last commit which version it has of each note that it has changed. `heads_of` gets a note's
    /// absolute path and its bytes in the commit, and returns the heads of its document with this text; none if they
    /// aren't known.
    ///
    /// # Errors
    /// Returns libgit2's error, for instance if another program has locked the reference.
    pub fn record_heads(&self, heads_of: impl Fn(&Path, &[u8]) -> Vec<[u8; 32]>) -> Result<(), VcsError> {
        let Some(commit) = self.head_commit()? else { return Ok(()) };
        let before = match commit.parent_count() {
            0 => None,
            _ => Some(commit.parent(0)?.tree()?),
        };
        let diff = self.repository.diff_tree_to_tree(before.as_ref(), Some(&commit.tree()?), None)?;
        let store = self.repository.odb()?;
        let (mut record, mut notes, mut bytes) = (String::new(), 0, 0);
        for delta in diff.deltas().take(MAX_COMPARED_FILES) {
            let file = delta.new_file();
            let path = file.path().and_then(Path::to_str).filter(|path| is_note_path(path));
            let Some(path) = path.filter(|_| !file.id().is_zero()) else { continue };
            bytes += store.read_header(file.id())?.0;
            if bytes > MAX_COMPARED_BYTES || notes == MAX_RECORDED_NOTES {
                break;
            }
            let heads = heads_of(&self.top.join(path), self.repository.find_blob(file.id())?.content());
            if heads.is_empty() || heads.len() > MAX_HEADS {
                continue;
            }
            let hex = |head: &[u8; 32]| head.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let line = format!("{} {path}\n", heads.iter().map(hex).collect::<Vec<_>>().join(","));
            if record.len() + line.len() > MAX_RECORD_BYTES {
                break;
            }
            record.push_str(&line);
            notes += 1;
        }
        if !record.is_empty() {
            // Not by the user: it's no part of the project.
            let author = Signature::now("Tracebook", "tracebook@localhost")?;
            self.repository.note(&author, &author, Some(HEADS_REFERENCE), commit.id(), &record, true)?;
        }
        Ok(())
    }

    /// Returns the heads that are recorded for a note in a commit, as hexadecimal numbers separated by commas.
    pub fn recorded_heads(&self, commit: &str, path: &str) -> Option<String> {
        let inside = self.repository_path(path).ok()?;
        let note = self.repository.find_note(Some(HEADS_REFERENCE), Oid::from_str(commit).ok()?).ok()?;
        let record = note.message().ok().filter(|record| record.len() <= MAX_RECORD_BYTES)?;
        let mut lines = record.lines().filter_map(|line| line.split_once(' '));
        let (heads, _) = lines.find(|(heads, path)| *path == inside && heads.len() <= MAX_HEADS * HEAD_CHARS)?;
        Some(heads.to_owned())
    }
}
