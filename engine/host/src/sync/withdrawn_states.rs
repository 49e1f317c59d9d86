//! Files of states that this device no longer shares, until each hub of their volume has deleted them.

use crate::kernel::science::{STATES_FOLDER, states_folder};
use ::kernel_states::{StateError, WithdrawnFile, remove_withdrawn, withdrawn_files};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use store::DocId;
use store::sync::blobs::VolumeBlob;

/// Number of deleted files at which they are removed from the notes' lists, even if hubs still delete others.
const MAX_DONE_FILES: usize = 1_000;

/// The withdrawn files of all notes. Their names are in the notes' folders, too.
#[derive(Default)]
pub(super) struct WithdrawnStates {
    by_note: BTreeMap<DocId, BTreeSet<VolumeBlob>>,
    /// The hubs that have deleted a file, by their address.
    deleted_at: BTreeMap<VolumeBlob, BTreeSet<String>>,
    /// Files that no hub has, and that are still in the notes' lists.
    done: BTreeMap<DocId, Vec<VolumeBlob>>,
}

impl WithdrawnStates {
    /// Reads the lists of all notes of a workspace.
    pub(super) fn load(workspace: &Path) -> WithdrawnStates {
        let folders = std::fs::read_dir(workspace.join(STATES_FOLDER)).into_iter().flatten().flatten();
        let notes = folders.filter_map(|folder| folder.file_name().to_str()?.parse::<DocId>().ok());
        let mut all = WithdrawnStates::default();
        notes.for_each(|note| all.set(note, read_withdrawn(workspace, note)));
        all
    }

    /// Replaces the files of a note.
    pub(super) fn set(&mut self, note: DocId, files: BTreeSet<VolumeBlob>) {
        if files.is_empty() {
            self.by_note.remove(&note);
        } else {
            self.by_note.insert(note, files);
        }
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &VolumeBlob> {
        self.by_note.values().flatten()
    }

    /// Records that a hub has deleted a file. `hubs` are all hubs of the file's volume.
    pub(super) fn record_deleted<'a>(&mut self, item: VolumeBlob, hub: &str, mut hubs: impl Iterator<Item = &'a str>) {
        let deleted_at = self.deleted_at.entry(item).or_default();
        deleted_at.insert(hub.to_owned());
        if !hubs.all(|hub| deleted_at.contains(hub)) {
            return;
        }
        self.deleted_at.remove(&item);
        for (note, files) in &mut self.by_note {
            if files.remove(&item) {
                self.done.entry(*note).or_default().push(item);
            }
        }
    }

    /// Returns the files to remove from the notes' lists, together if hubs are still deleting others.
    pub(super) fn take_done(&mut self, is_deleting: bool) -> BTreeMap<DocId, Vec<VolumeBlob>> {
        let count: usize = self.done.values().map(Vec::len).sum();
        if is_deleting && count < MAX_DONE_FILES { BTreeMap::new() } else { std::mem::take(&mut self.done) }
    }
}

/// Reads a note's list.
pub(super) fn read_withdrawn(workspace: &Path, note: DocId) -> BTreeSet<VolumeBlob> {
    let files = withdrawn_files(&states_folder(workspace, note)).into_iter();
    files
        .filter_map(|file| Some(VolumeBlob { volume: file.volume.parse().ok()?, hash: file.hash.parse().ok()? }))
        .collect()
}

/// Removes files from a note's list.
pub(super) fn remove_done(workspace: &Path, note: DocId, files: &[VolumeBlob]) -> Result<(), StateError> {
    let name = |item: &VolumeBlob| WithdrawnFile { volume: item.volume.to_string(), hash: item.hash.to_string() };
    let files: Vec<WithdrawnFile> = files.iter().map(name).collect();
    remove_withdrawn(&states_folder(workspace, note), &files)
}
