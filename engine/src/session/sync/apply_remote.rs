//! Changes of other devices, each taken by what it concerns: a volume, a note, outputs.

use super::MAX_ARRIVING_NOTES;
use crate::effect::Effect;
use crate::note::{Note, NotePhase};
use crate::session::apply_context::ApplyContext;
use crate::session::state::Session;
use store::disk::RowWrite;
use store::{ChangeParcel, DocId};

impl Session {
    /// Changes of a document have come. They are said to be taken once they are on disk (the host sees to that), or
    /// refused here.
    pub(in crate::session) fn on_received(
        &mut self,
        turn: &mut ApplyContext<'_>,
        doc: DocId,
        ticket: u64,
        parcel: ChangeParcel,
    ) {
        let is_note = self.file_locations.contains_key(&doc) || self.sync.expected_notes.contains_key(&doc);
        let waits =
            !self.notes.contains_key(&doc) && (!self.sync.waiting_changes.is_empty() || self.arrival_capacity() == 0);
        // A document on its way to the trash would lose the changes, and nobody would answer.
        if is_note && (waits || self.is_moving(doc)) {
            self.sync.waiting_changes.push_back((doc, ticket, parcel));
            return;
        }
        self.apply_received(turn, doc, ticket, parcel);
    }

    /// Returns how many more notes may be created or changed for other devices. Only those count that finish by
    /// themselves, not notes that the user looks at or that can't be written.
    fn arrival_capacity(&self) -> usize {
        let counts = |note: &&Note| {
            let is_written = self.volumes.get(&note.volume).is_some_and(|volume| volume.root.is_some());
            let stuck = matches!(note.phase, NotePhase::Failed(_)) || note.file.trouble.is_some() || !is_written;
            !note.shown && note.holds == 0 && !stuck && note.read_only().is_none() && !note.is_idle()
        };
        MAX_ARRIVING_NOTES.saturating_sub(self.notes.values().filter(counts).count() + self.sync.arrived_notes.len())
    }

    /// Takes what has come and waited, as far as there is room.
    pub(in crate::session) fn apply_waiting_changes(&mut self, turn: &mut ApplyContext<'_>) {
        if self.sync.waiting_changes.is_empty() {
            return;
        }
        for _ in 0..self.arrival_capacity() {
            if self.sync.waiting_changes.front().is_some_and(|(doc, ..)| self.is_moving(*doc)) {
                return;
            }
            let Some((doc, ticket, parcel)) = self.sync.waiting_changes.pop_front() else { return };
            self.apply_received(turn, doc, ticket, parcel);
        }
    }

    fn apply_received(&mut self, turn: &mut ApplyContext<'_>, doc: DocId, ticket: u64, parcel: ChangeParcel) {
        let taken = if self.volumes.contains_key(&doc) {
            self.volume_received(turn, doc, ticket, parcel)
        } else if self.sync.expected_notes.contains_key(&doc) {
            self.sync.arrived_notes.push((doc, ticket, parcel));
            Ok(())
        } else if self.file_locations.contains_key(&doc) {
            self.note_received(turn, doc, parcel)
        } else if let Some(note) = self.note_of_outputs(doc) {
            self.outputs_received(turn, note, parcel.bytes)
        } else if let Some(taken) = self.on_agent_doc_received(turn, doc, ticket, &parcel.bytes) {
            taken
        } else {
            Err("it belongs to nothing that is shared".to_owned())
        };
        if taken.is_ok() {
            let volume = self.locate_file(doc).map_or(doc, |(volume, _)| volume);
            self.sync.last_received.extend([(doc, turn.now), (volume, turn.now)]);
        }
        if let Err(why) = taken {
            self.sync.log_line(turn.now, format!("changes from another device were refused: {why}"));
            turn.effects.push(Effect::RefuseReceived { ticket, why });
        }
    }

    fn volume_received(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        ticket: u64,
        mut parcel: ChangeParcel,
    ) -> Result<(), String> {
        let Some(volume) = self.volumes.get_mut(&id) else { return Err("its volume is closed".to_owned()) };
        if let Some(trouble) = volume.trouble.as_ref().filter(|_| volume.doc.is_none()) {
            return Err(trouble.clone());
        }
        let known = volume.known;
        let Some(doc) = volume.doc.as_mut().filter(|_| known) else {
            self.sync.early_volume_changes.push((id, ticket, parcel));
            return Ok(());
        };
        let changed = doc.merge_parcel(id, &mut parcel).map_err(|error| error.to_string())?;
        let new = std::mem::take(&mut volume.doc_new);
        let mut writes = vec![RowWrite::Chunk { doc: id, bytes: parcel.bytes }];
        if new {
            writes.push(RowWrite::Chunk { doc: id, bytes: doc.save() });
        }
        self.append_writes(turn, writes, None);
        let mut arrived = false;
        for hub in &mut self.sync.shares.hubs {
            arrived |= hub.coming.remove(&id);
        }
        if arrived {
            let name = self.volumes.get(&id).map_or_else(String::new, |volume| volume.name.clone());
            self.sync.log_line(turn.now, format!("{name} has arrived, with {} files", changed.files.len()));
            self.save_shares(turn);
            self.on_volume_list_loaded(turn, id);
            self.reconcile_files(turn, id);
        }
        self.on_remote_attachments(id, changed.files.iter().map(|(file, entry)| (file, entry.as_ref())));
        for (file, entry) in changed.files {
            self.on_remote_file(turn, id, file, entry);
        }
        for line in changed.listed {
            self.on_volume_list_entry(turn, id, line);
        }
        self.sync.mark_stale();
        self.write_volume_doc(turn, id);
        Ok(())
    }

    /// A volume's document is loaded: apply earlier changes, and request what it lists and is missing here.
    pub(in crate::session) fn sync_volume_loaded(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        if !self.sync.is_shared(id) {
            return;
        }
        let Some(volume) = self.volumes.get(&id) else { return };
        let files = volume.doc.as_ref().map(|doc| doc.files()).unwrap_or_default();
        self.on_remote_attachments(id, files.iter().map(|(file, entry)| (file, Some(entry))));
        for (file, entry) in files {
            if !self.file_locations.contains_key(&file) {
                self.on_remote_file(turn, id, file, Some(entry));
            }
        }
        let early = std::mem::take(&mut self.sync.early_volume_changes);
        for (doc, ticket, parcel) in early {
            self.on_received(turn, doc, ticket, parcel);
        }
        self.queue_undocumented_notes(id);
        self.on_volume_list_loaded(turn, id);
    }

    fn note_received(&mut self, turn: &mut ApplyContext<'_>, id: DocId, parcel: ChangeParcel) -> Result<(), String> {
        let Some((volume, path)) = self.locate_file(id).map(|(volume, path)| (volume, path.to_owned())) else {
            return Err("the note no longer exists".to_owned());
        };
        let Some(known) = self.volumes.get(&volume).filter(|volume| volume.root.is_some()) else {
            return Err("its volume has no folder on this device".to_owned());
        };
        let is_new = known.files.get(&path).is_some_and(|row| row.size == 0 && row.heads.is_empty());
        if let Some(why) = self.notes.get(&id).and_then(|note| note.read_only()) {
            return Err(format!("{why}: {path}"));
        }
        if is_new && self.notes.get(&id).is_none_or(|note| matches!(note.phase, NotePhase::Failed(_))) {
            // Its name came before the program ended, its text did not.
            self.begin_arrived(turn, id, volume, None);
        }
        self.apply_remote_changes(turn, id, parcel);
        self.sync.log_line(turn.now, format!("{path}: changes from another device"));
        Ok(())
    }

    fn outputs_received(&mut self, turn: &mut ApplyContext<'_>, id: DocId, bytes: Vec<u8>) -> Result<(), String> {
        if let Some(note) = self.notes.get_mut(&id)
            && let Some(outputs) = &mut note.outputs
        {
            outputs.merge(id.outputs_id(), &bytes).map_err(|error| error.to_string())?;
            note.outputs_new = false;
            for execution in outputs.latest_executions() {
                let known = note.executions.get(&execution.cell);
                // What runs here, and what is on its way to the disk, is newer.
                let ours = note.unsaved_outputs.contains(&execution.cell)
                    || note.is_running_here(execution.cell)
                    || known.is_some_and(|known| known.started > execution.started);
                if !ours {
                    note.executions.insert(execution.cell, execution);
                }
            }
            note.runs += 1;
            note.outputs_changed += 1;
            note.cells_revision += 1;
        }
        self.append_writes(turn, vec![RowWrite::Chunk { doc: id.outputs_id(), bytes }], None);
        Ok(())
    }
}
