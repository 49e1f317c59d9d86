//! Other devices' changes to files: new files, renames, deletions. Two files with one path are both kept. A note that
//! was edited here and deleted there is restored. A path that leads out of the volume is rejected.

use crate::effect::Effect;
use crate::note::{DocPhase, Note, NotePhase};
use crate::records::sync::MergeKind;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::runs::RunsState;
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use crate::session::volume_paths::{is_acceptable_remote_path, name_with_mark};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::disk::{FileRow, RowWrite};
use store::{ChangeParcel, DocId, FileEntry, FileKind, NoteDoc, OutputsDoc, is_device_only};

/// Milliseconds before a failed file change is retried; [`MAX_FILE_ATTEMPTS`] limits the number of attempts.
const FILE_RETRY_INTERVAL_MS: i64 = 2_000;
const MAX_FILE_ATTEMPTS: u32 = 5;

impl SyncState {
    /// Handles a file's entry in the volume's document that another device changed.
    pub(in crate::session) fn on_remote_file(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        runs: &RunsState,
        workspace: &WorkspaceState,
        volume: DocId,
        (file, entry): (DocId, Option<FileEntry>),
    ) {
        let Some(entry) = entry else { return self.on_remote_deletion(&files.volumes, file) };
        let elsewhere = files.volumes.locate_file(file).is_some_and(|(of, _)| of != volume);
        if elsewhere
            || (!files.volumes.locations.contains_key(&file) && is_non_file_id(&files.volumes, runs, workspace, file))
        {
            self.log_line(turn.now, format!("a file from another device is refused: {} is something else here", file));
            return;
        }
        let known = files.volumes.locate_file(file).map(|(_, path)| path.to_owned());
        if known.as_ref() == Some(&entry.path) {
            self.renames.remove(&file);
            self.cancel_remote_deletion(turn, files, file);
            return;
        }
        if !is_acceptable_remote_path(&entry.path, entry.kind) {
            let path: String = entry.path.chars().take(200).collect();
            self.log_line(turn.now, format!("a file name from another device is refused: {path:?}"));
            return;
        }
        self.cancel_remote_deletion(turn, files, file);
        if known.is_some() {
            self.renames.insert(file);
        } else if files.moves.trash.contains_key(&file) {
            self.restored.insert(file);
        } else if entry.kind.is_text() {
            self.expected_notes.insert(file, (volume, entry));
        }
        self.mark_stale();
    }

    /// Repeats other devices' changes to files here, one move at a time.
    pub(super) fn apply_remote_file_changes(&mut self, turn: &mut ApplyContext<'_>, files: &mut FilesState) {
        let idle = self.restored.is_empty() && self.deleted.is_empty() && self.renames.is_empty();
        if idle || files.moves.ensure_no_pending_move().is_err() {
            return;
        }
        if let Some(later) = self.retry_at.filter(|later| turn.now < *later) {
            return turn.wake_at(later);
        }
        self.retry_at = None;
        if let Some(file) = self.restored.pop_first() {
            self.apply_remote_restore(turn, files, file);
        } else if let Some(file) = self.deleted.pop_first() {
            let Some((_, path, None)) = files.volumes.remote_entry(file) else { return };
            match files.delete_for_remote(turn, self, file) {
                Ok(()) => {
                    self.log_line(turn.now, format!("{path} was deleted on another device: it is in the trash"));
                    self.add_file_merge(turn, file, &path, MergeKind::Deleted);
                }
                Err(CommandError(why)) => {
                    self.log_line(turn.now, format!("{path} was deleted on another device: {why}"));
                    if self.schedule_retry(turn, file) {
                        self.deleted.insert(file);
                    }
                }
            }
        } else if let Some(file) = self.renames.pop_first() {
            self.apply_remote_rename(turn, files, file);
        }
    }

    /// Schedules a retry of a failed change. Returns whether the change should be tried again.
    fn schedule_retry(&mut self, turn: &mut ApplyContext<'_>, file: DocId) -> bool {
        let tries = self.retry_counts.entry(file).or_default();
        *tries += 1;
        let goes_on = *tries < MAX_FILE_ATTEMPTS;
        if !goes_on {
            self.retry_counts.remove(&file);
        }
        let later = turn.now.plus_ms(FILE_RETRY_INTERVAL_MS);
        self.retry_at = Some(later);
        turn.wake_at(later);
        goes_on
    }

    /// Compares the rows of files with the volume's document, because a crash or a failed move may have separated them.
    /// `doc_pending`: changes still to be recorded.
    pub(in crate::session) fn reconcile_files(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        runs: &RunsState,
        workspace: &WorkspaceState,
        id: DocId,
    ) {
        let is_shared = self.is_shared(id);
        let Some(volume) = files.volumes.by_id.get_mut(&id).filter(|volume| volume.known) else { return };
        let Some(doc) = volume.doc.as_ref().filter(|_| !self.is_coming(id)) else { return };
        let (listed, mut told, mut unlisted) = (doc.files(), Vec::new(), Vec::new());
        let said: BTreeSet<DocId> = volume.doc_pending.iter().map(|(file, _)| *file).collect();
        for row in volume.files.values().filter(|row| !said.contains(&row.id)) {
            match listed.get(&row.id) {
                Some(entry) if entry.path == row.path => {}
                Some(entry) if is_shared => told.push((row.id, Some(entry.clone()))),
                None if is_shared && doc.is_listed(row.id) => told.push((row.id, None)),
                Some(_) | None => {
                    unlisted.push((row.id, Some(FileEntry { path: row.path.clone(), kind: row.kind })));
                }
            }
        }
        volume.doc_pending.extend(unlisted);
        for (file, entry) in told {
            self.on_remote_file(turn, files, runs, workspace, id, (file, entry));
        }
        files.volumes.write_volume_doc(turn, self, id);
    }

    /// Handles a failed move that another device had made: compares local files with the document again a little later.
    pub(in crate::session) fn retry_remote_changes(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        runs: &RunsState,
        workspace: &WorkspaceState,
        volume: Option<DocId>,
        why: &str,
    ) {
        self.log_line(turn.now, format!("what another device did to files could not be done here: {why}"));
        let later = turn.now.plus_ms(FILE_RETRY_INTERVAL_MS);
        self.retry_at = Some(later);
        turn.wake_at(later);
        if let Some(volume) = volume {
            self.reconcile_files(turn, files, runs, workspace, volume);
            let known = files.volumes.by_id.get(&volume).and_then(|volume| volume.doc.as_ref());
            let back = |file: &&DocId| known.is_some_and(|doc| doc.file_entry(**file).is_some());
            let back: Vec<DocId> = files.moves.trash.keys().filter(back).copied().collect();
            self.restored.extend(back);
        }
    }

    /// Checks a file again after another device's change was applied, because the device may have changed it further.
    pub(in crate::session) fn recheck_remote_state(&mut self, files: &FilesState, volume: DocId, file: DocId) {
        let Some(doc) = files.volumes.by_id.get(&volume).and_then(|volume| volume.doc.as_ref()) else { return };
        let here = files.volumes.locate_file(file).map(|(_, path)| path.to_owned());
        match (doc.file_entry(file), here) {
            (Some(entry), _) if !is_acceptable_remote_path(&entry.path, entry.kind) => {}
            (Some(_), None) if files.moves.trash.contains_key(&file) => _ = self.restored.insert(file),
            (Some(entry), None) if entry.kind.is_text() => _ = self.expected_notes.insert(file, (volume, entry)),
            (Some(entry), Some(path)) if entry.path != path => _ = self.renames.insert(file),
            (None, Some(_)) => self.on_remote_deletion(&files.volumes, file),
            (Some(_) | None, _) => {}
        }
    }

    fn apply_remote_restore(&mut self, turn: &mut ApplyContext<'_>, files: &mut FilesState, file: DocId) {
        let to = files.moves.trash.get(&file).and_then(|trashed| {
            let volume = files.volumes.by_id.get(&trashed.row.volume)?;
            volume.doc.as_ref()?.file_entry(file).map(|entry| entry.path).filter(|to| !is_device_only(to))
        });
        let Some(to) = to else { return };
        match files.restore_for_remote(turn, self, file, &to) {
            Ok(()) => {
                self.log_line(turn.now, format!("{to} was brought back: it was edited on another device"));
                self.add_file_merge(turn, file, &to, MergeKind::Back);
            }
            Err(CommandError(why)) => {
                self.log_line(turn.now, format!("a note that another device brought back stays in the trash: {why}"));
                if self.schedule_retry(turn, file) {
                    self.restored.insert(file);
                }
            }
        }
    }

    fn apply_remote_rename(&mut self, turn: &mut ApplyContext<'_>, files: &mut FilesState, file: DocId) {
        let Some((volume, from, Some(FileEntry { path: to, .. }))) = files.volumes.remote_entry(file) else { return };
        if from == to {
            return;
        }
        let taken = files.volumes.by_id.get(&volume).and_then(|volume| volume.files.get(&to)).map(|row| row.id);
        let (moved, to, echo) = match taken {
            Some(other) if other != file && other < file => (file, files.free_sibling_name(volume, &to, file), false),
            Some(other) if other != file => {
                // The other file makes room first.
                self.renames.insert(file);
                (other, files.free_sibling_name(volume, &to, other), false)
            }
            _ => (file, to, true),
        };
        if moved == file && to == from {
            // The file already has its own name next to the other one, but only this device knows it.
            if let Some(known) = files.volumes.by_id.get_mut(&volume) {
                known.doc_pending.push_back((file, Some(FileEntry { kind: FileKind::from_path(&to), path: to })));
            }
            return files.volumes.write_volume_doc(turn, self, volume);
        }
        match files.move_for_remote(turn, self, moved, &to, echo) {
            Ok(()) => {
                if echo {
                    self.add_file_merge(turn, moved, &to, MergeKind::Renamed { from: from.clone() });
                }
                let was = if echo { from } else { "a file".to_owned() };
                self.log_line(turn.now, format!("{was} is called {to} now, as on another device"));
            }
            Err(CommandError(why)) => {
                self.log_line(turn.now, format!("{from} could not be renamed to {to}: {why}"));
                if self.schedule_retry(turn, file) {
                    self.renames.insert(file);
                } else {
                    self.renames.remove(&file);
                }
            }
        }
    }

    /// Makes room for a file that another program created at the path of an expected note. Until its text arrives, a
    /// note from another device may be only a name. The two are treated like notes created by two devices. Returns
    /// whether it did.
    pub(in crate::session) fn make_room_for_file(&mut self, files: &mut FilesState, row: &FileRow) -> bool {
        let bare = row.kind.is_text() && row.heads.is_empty() && row.size == 0 && row.mtime == 0;
        if !bare || files.notes.open.contains_key(&row.id) || !self.is_shared(row.volume) {
            return false;
        }
        files.volumes.locations.remove(&row.id);
        self.renames.remove(&row.id);
        let Some(volume) = files.volumes.by_id.get_mut(&row.volume) else { return true };
        volume.remove_file(row.id);
        if let Some(entry) = volume.doc.as_ref().and_then(|doc| doc.file_entry(row.id)) {
            self.expected_notes.insert(row.id, (row.volume, entry));
        }
        self.mark_stale();
        true
    }

    /// Creates the notes whose text has arrived, if their path is free or can be freed.
    pub(super) fn place_arrived_notes(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        workspace: &WorkspaceState,
    ) {
        if self.arrived_notes.is_empty() {
            return;
        }
        let mut waits = Vec::new();
        for (file, ticket, parcel) in std::mem::take(&mut self.arrived_notes) {
            if files.volumes.locations.contains_key(&file) {
                files.apply_remote_changes(turn, self, file, parcel);
                continue;
            }
            let place = self.expected_notes.get(&file).cloned();
            let Some((volume, entry, known)) =
                place.and_then(|(volume, entry)| Some((volume, entry, files.volumes.by_id.get(&volume)?)))
            else {
                // The note was deleted while it waited.
                let why = "it no longer exists".to_owned();
                turn.effects.push(Effect::RefuseReceived { ticket, why });
                continue;
            };
            if files.moves.is_in_motion(volume, &entry.path) {
                waits.push((file, ticket, parcel));
                continue;
            }
            match known.files.get(&entry.path).map(|row| row.id) {
                None => {
                    self.enter_arrived_note(turn, files, workspace, volume, (file, entry, false), &parcel);
                    files.apply_remote_changes(turn, self, file, parcel);
                }
                // Both are kept: the note with the lower id keeps its path, the same on all devices.
                Some(other) if other < file => {
                    let path = files.free_sibling_name(volume, &entry.path, file);
                    self.log_line(turn.now, format!("{}: two devices made it; the other is {path}", entry.path));
                    self.add_file_merge(
                        turn,
                        other,
                        &entry.path,
                        MergeKind::Twins { other: file, called: path.clone() },
                    );
                    self.enter_arrived_note(
                        turn,
                        files,
                        workspace,
                        volume,
                        (file, FileEntry { path, kind: entry.kind }, true),
                        &parcel,
                    );
                    files.apply_remote_changes(turn, self, file, parcel);
                }
                Some(other) => {
                    if files.moves.ensure_no_pending_move().is_ok() {
                        let path = files.free_sibling_name(volume, &entry.path, other);
                        self.log_line(turn.now, format!("{}: two devices made it; ours is {path} now", entry.path));
                        self.add_file_merge(turn, file, &entry.path, MergeKind::Twins { other, called: path.clone() });
                        // A rejected move is retried with the waiting parcel.
                        let _ = files.move_for_remote(turn, self, other, &path, false);
                    }
                    waits.push((file, ticket, parcel));
                }
            }
        }
        if !waits.is_empty() {
            self.arrived_notes = waits;
            turn.wake_at(turn.now.plus_ms(50));
        }
    }

    /// Adds a note from another device, which the parcel is then merged into. `renamed`: whether its path differs from
    /// that in the volume's document.
    fn enter_arrived_note(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        workspace: &WorkspaceState,
        volume_id: DocId,
        (file, entry, renamed): (DocId, FileEntry, bool),
        parcel: &ChangeParcel,
    ) {
        let Some(volume) = files.volumes.by_id.get_mut(&volume_id) else { return };
        let FileEntry { path, kind } = entry;
        let row = FileRow::of_unwritten(volume_id, path.clone(), file, kind);
        volume.files.insert(path.clone(), row.clone());
        volume.revision += 1;
        volume.links.set_path(file, &path);
        if renamed {
            volume.doc_pending.push_back((file, Some(FileEntry { path: path.clone(), kind })));
        }
        files.volumes.locations.insert(file, (volume_id, path));
        self.expected_notes.remove(&file);
        let mut writes = files.volumes.volume_doc_writes(turn, self, volume_id);
        writes.push(RowWrite::File(row));
        turn.append_writes(writes, None);
        files.begin_arrived(turn, workspace, file, volume_id, Some(parcel));
        self.mark_stale();
    }
}

/// Returns whether an id belongs to something that isn't a file; no volume may use it for a file.
fn is_non_file_id(volumes: &VolumesState, runs: &RunsState, workspace: &WorkspaceState, id: DocId) -> bool {
    id == workspace.id || id == workspace.id.registry_id() || volumes.by_id.contains_key(&id) || runs.is_agent_doc(id)
}

impl FilesState {
    /// Returns a free name for a file next to another one with the same name.
    fn free_sibling_name(&self, volume: DocId, path: &str, file: DocId) -> String {
        let taken = |path: &String| {
            let row = self.volumes.by_id.get(&volume).and_then(|volume| volume.files.get(path));
            row.is_some_and(|row| row.id != file) || self.moves.is_in_motion(volume, path)
        };
        let id = file.to_string();
        let names = [4, 8, 16].map(|length| name_with_mark(path, &id[..length]));
        names.into_iter().find(|name| !taken(name)).unwrap_or_else(|| name_with_mark(path, &id))
    }

    /// Creates an empty note for another device's text to be merged into. `whole`: the changes to merge first, if
    /// nothing of the note is on this disk. If they are complete, nothing needs to be loaded.
    pub(super) fn begin_arrived(
        &mut self,
        turn: &mut ApplyContext<'_>,
        workspace: &WorkspaceState,
        file: DocId,
        volume: DocId,
        whole: Option<&ChangeParcel>,
    ) {
        let kind = self.volumes.locate_file(file).map_or(FileKind::Note, |(_, path)| FileKind::from_path(path));
        let mut note = Note::new(file, volume, kind);
        note.phase = NotePhase::Ready;
        note.file.base = Some(Arc::from(""));
        // The file is created together with its text. The note isn't recorded as ahead before that, because a crash
        // would then leave an empty file.
        note.adopted = true;
        let begun = whole.and_then(|parcel| NoteDoc::empty_before_merge(file, parcel, workspace.actor.clone()).ok()?);
        let outputs = || OutputsDoc::load(file.outputs_id(), &[], workspace.actor.clone()).ok();
        if let Some((doc, outputs)) = begun.and_then(|doc| Some((doc, outputs()?.doc))) {
            note.doc = DocPhase::Loaded(Box::new(doc));
            (note.outputs, note.outputs_new) = (Some(Box::new(outputs)), true);
            note.runs += 1;
        }
        self.notes.open.insert(file, note);
        self.notes.load_doc(turn, file);
    }
}
