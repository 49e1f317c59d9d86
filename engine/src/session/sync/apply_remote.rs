//! Applies changes from other devices, by the kind of document: a volume, a note, or outputs.

use super::MAX_ARRIVING_NOTES;
use crate::effect::Effect;
use crate::note::{Note, NotePhase};
use crate::session::apply_context::{ApplyContext, RemoteChangeError};
use crate::session::state::FilesState;
use crate::session::state::runs::RunsState;
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use store::disk::RowWrite;
use store::{ChangeParcel, DocId};

impl SyncState {
    /// Handles received changes of a document. The host acknowledges them once they're on disk; this function may also
    /// reject them.
    pub(in crate::session) fn on_received(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        runs: &mut RunsState,
        workspace: &WorkspaceState,
        (doc, ticket, parcel): (DocId, u64, ChangeParcel),
    ) {
        let is_note = files.volumes.locations.contains_key(&doc) || self.expected_notes.contains_key(&doc);
        let waits = !files.notes.open.contains_key(&doc)
            && (!self.waiting_changes.is_empty() || self.arrival_capacity(files) == 0);
        // A document that is being moved to the trash would lose the changes, and they would never be acknowledged.
        if is_note && (waits || files.moves.is_moving(doc)) {
            self.waiting_changes.push_back((doc, ticket, parcel));
            return;
        }
        self.apply_received(turn, files, runs, workspace, (doc, ticket, parcel));
    }

    /// Returns how many more notes may be created or changed for other devices. Only notes that finish by themselves
    /// count, not those that the user has open or that can't be written.
    fn arrival_capacity(&self, files: &FilesState) -> usize {
        let counts = |note: &&Note| {
            let is_written = files.volumes.by_id.get(&note.volume).is_some_and(|volume| volume.root.is_some());
            let stuck = matches!(note.phase, NotePhase::Failed(_)) || note.file.trouble.is_some() || !is_written;
            !note.shown && note.holds == 0 && !stuck && note.read_only().is_none() && !note.is_idle()
        };
        MAX_ARRIVING_NOTES.saturating_sub(files.notes.open.values().filter(counts).count() + self.arrived_notes.len())
    }

    /// Applies waiting changes as far as capacity allows.
    pub(in crate::session) fn apply_waiting_changes(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        runs: &mut RunsState,
        workspace: &WorkspaceState,
    ) {
        if self.waiting_changes.is_empty() {
            return;
        }
        for _ in 0..self.arrival_capacity(files) {
            if self.waiting_changes.front().is_some_and(|(doc, ..)| files.moves.is_moving(*doc)) {
                return;
            }
            let Some((doc, ticket, parcel)) = self.waiting_changes.pop_front() else { return };
            self.apply_received(turn, files, runs, workspace, (doc, ticket, parcel));
        }
    }

    fn apply_received(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        runs: &mut RunsState,
        workspace: &WorkspaceState,
        (doc, ticket, parcel): (DocId, u64, ChangeParcel),
    ) {
        let taken = if files.volumes.by_id.contains_key(&doc) {
            self.volume_received(turn, files, runs, workspace, (doc, ticket, parcel))
        } else if self.expected_notes.contains_key(&doc) {
            self.arrived_notes.push((doc, ticket, parcel));
            Ok(())
        } else if files.volumes.locations.contains_key(&doc) {
            self.note_received(turn, files, workspace, doc, parcel)
        } else if let Some(note) = self.note_of_outputs(&files.volumes, doc) {
            files.notes.outputs_received(turn, note, parcel.bytes)
        } else if let Some(taken) =
            runs.on_agent_doc_received(turn, files, self, workspace, doc, (ticket, &parcel.bytes))
        {
            taken
        } else {
            Err(RemoteChangeError::NotShared)
        };
        if taken.is_ok() {
            let volume = files.volumes.locate_file(doc).map_or(doc, |(volume, _)| volume);
            self.last_received.extend([(doc, turn.now), (volume, turn.now)]);
        }
        if let Err(why) = taken {
            self.log_line(turn.now, format!("changes from another device were refused: {why}"));
            turn.effects.push(Effect::RefuseReceived { ticket, why: why.to_string() });
        }
    }

    fn volume_received(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        runs: &mut RunsState,
        workspace: &WorkspaceState,
        (id, ticket, mut parcel): (DocId, u64, ChangeParcel),
    ) -> Result<(), RemoteChangeError> {
        let volume = files.volumes.by_id.get_mut(&id).ok_or(RemoteChangeError::VolumeClosed)?;
        if let Some(trouble) = volume.trouble.as_ref().filter(|_| volume.doc.is_none()) {
            return Err(RemoteChangeError::Unreadable(trouble.clone()));
        }
        let known = volume.known;
        let Some(doc) = volume.doc.as_mut().filter(|_| known) else {
            self.early_volume_changes.push((id, ticket, parcel));
            return Ok(());
        };
        let changed = doc.merge_parcel(id, &mut parcel)?;
        let new = std::mem::take(&mut volume.doc_new);
        let mut writes = vec![RowWrite::Chunk { doc: id, bytes: parcel.bytes }];
        if new {
            writes.push(RowWrite::Chunk { doc: id, bytes: doc.save() });
        }
        turn.append_writes(writes, None);
        let mut arrived = false;
        for hub in &mut self.shares.hubs {
            arrived |= hub.coming.remove(&id);
        }
        if arrived {
            let name = files.volumes.by_id.get(&id).map_or_else(String::new, |volume| volume.name.clone());
            self.log_line(turn.now, format!("{name} has arrived, with {} files", changed.files.len()));
            self.save_shares(turn, &files.volumes, runs);
            runs.on_volume_list_loaded(turn, files, self, workspace, id);
            self.reconcile_files(turn, files, runs, workspace, id);
        }
        self.on_remote_attachments(
            &files.volumes,
            id,
            changed.files.iter().map(|(file, entry)| (file, entry.as_ref())),
        );
        for (file, entry) in changed.files {
            self.on_remote_file(turn, files, runs, workspace, id, (file, entry));
        }
        for line in changed.listed {
            runs.on_volume_list_entry(turn, files, self, workspace, id, line);
        }
        self.mark_stale();
        files.volumes.write_volume_doc(turn, self, id);
        Ok(())
    }

    /// Handles a volume's loaded document: applies earlier changes, and requests what it lists and is missing here.
    pub(in crate::session) fn sync_volume_loaded(
        &mut self,
        turn: &mut ApplyContext<'_>,
        all_files: &mut FilesState,
        runs: &mut RunsState,
        workspace: &WorkspaceState,
        id: DocId,
    ) {
        if !self.is_shared(id) {
            return;
        }
        let Some(volume) = all_files.volumes.by_id.get(&id) else { return };
        let files = volume.doc.as_ref().map(|doc| doc.files()).unwrap_or_default();
        self.on_remote_attachments(&all_files.volumes, id, files.iter().map(|(file, entry)| (file, Some(entry))));
        for (file, entry) in files {
            if !all_files.volumes.locations.contains_key(&file) {
                self.on_remote_file(turn, all_files, runs, workspace, id, (file, Some(entry)));
            }
        }
        let early = std::mem::take(&mut self.early_volume_changes);
        for (doc, ticket, parcel) in early {
            self.on_received(turn, all_files, runs, workspace, (doc, ticket, parcel));
        }
        self.queue_undocumented_notes(&all_files.volumes, id);
        runs.on_volume_list_loaded(turn, all_files, self, workspace, id);
    }

    fn note_received(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        workspace: &WorkspaceState,
        id: DocId,
        parcel: ChangeParcel,
    ) -> Result<(), RemoteChangeError> {
        let place = files.volumes.locate_file(id).map(|(volume, path)| (volume, path.to_owned()));
        let (volume, path) = place.ok_or(RemoteChangeError::NoteGone)?;
        let known = files.volumes.by_id.get(&volume).filter(|volume| volume.root.is_some());
        let known = known.ok_or(RemoteChangeError::NoFolder)?;
        let is_new = known.files.get(&path).is_some_and(|row| row.size == 0 && row.heads.is_empty());
        if let Some(why) = files.notes.open.get(&id).and_then(|note| note.read_only()) {
            return Err(RemoteChangeError::ReadOnly { why: why.to_string(), path });
        }
        if let Some(why) = agent::protected_writes::executed_reason(&path) {
            return Err(RemoteChangeError::ReadOnly { why: format!("programs of this device obey it: {why}"), path });
        }
        if is_new && files.notes.open.get(&id).is_none_or(|note| matches!(note.phase, NotePhase::Failed(_))) {
            // Its name arrived before the program ended, but not its text.
            files.begin_arrived(turn, workspace, id, volume, None);
        }
        files.apply_remote_changes(turn, self, id, parcel);
        self.log_line(turn.now, format!("{path}: changes from another device"));
        Ok(())
    }
}
