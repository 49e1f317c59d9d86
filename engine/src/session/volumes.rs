//! Volumes: folders of ordinary files, kept up to date by scans and the watcher.

use crate::effect::Effect;
use crate::event::{DocumentLoadError, KnownFiles, OutlineSurvey, ScannedFile, SkippedFile};
use crate::note::{KernelPhase, Note, NotePhase};
use crate::session::apply_context::{ApplyContext, CommandError, SessionRequest};
use crate::session::state::FilesState;
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::{ScanState, Volume, VolumesState};
use crate::session::state::workspace::WorkspaceState;
use crate::session::volume_paths::{ensure_place_is_free, links_key, normalize_volume_path};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::disk::{FileRow, RowWrite};
use store::{DocId, FileEntry, FileKind, VolumeDoc};
use text::links;

/// Maximum number of files added to the volume's document per pass. The UI thread calls this and must not be blocked.
const MAX_FILES_PER_DOC_WRITE: usize = 256;
/// Time in milliseconds after which a folder that couldn't be read is looked at again.
const UNREACHABLE_SCAN_INTERVAL_MS: i64 = 5_000;

impl<'a> From<&'a Volume> for collection::VolumeFilesAndLinks<'a> {
    fn from(volume: &'a Volume) -> collection::VolumeFilesAndLinks<'a> {
        collection::VolumeFilesAndLinks { files: &volume.files, links: &volume.links }
    }
}

impl VolumesState {
    pub(super) fn open_folder(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        workspace: &mut WorkspaceState,
        folder: PathBuf,
        name: Option<String>,
    ) -> Result<(), CommandError> {
        if let Some((known, _)) = self.mounts.iter().find(|(_, root)| **root == folder) {
            let known = *known;
            self.scan(turn, known);
            return Ok(());
        }
        let closed = self.closed.get(&folder).cloned();
        let name = name.or_else(|| closed.as_ref().map(|(_, name)| name.clone()));
        let name = self.check_volume_folder(workspace, &folder, name)?;
        if let Some((id, _)) = closed {
            return self.reopen_volume(turn, workspace, (id, name), folder);
        }
        let id = DocId::random(self.random_bytes(turn));
        let doc =
            VolumeDoc::load(id, &[], workspace.actor.clone()).map_err(|error| CommandError(error.to_string()))?.doc;
        self.add_volume(turn, sync, workspace, (id, name), folder, (doc, true))
    }

    /// Reopens a closed volume under its id: what the disk knows of its files, with their history, is read again.
    fn reopen_volume(
        &mut self,
        turn: &mut ApplyContext<'_>,
        workspace: &mut WorkspaceState,
        (id, name): (DocId, String),
        folder: PathBuf,
    ) -> Result<(), CommandError> {
        let mut writes = workspace.workspace_writes(turn, id, Some(&name))?;
        self.closed.remove(&folder);
        self.mounts.insert(id, folder.clone());
        self.by_id.insert(id, Volume::new(id, name, Some(folder)));
        writes.push(self.mounts_write());
        turn.append_writes(writes, None);
        self.report_volumes(turn);
        turn.effects.push(Effect::LoadVolume { volume: id });
        Ok(())
    }

    /// Checks whether a folder can become a volume. Returns the name that the volume gets.
    pub(super) fn check_volume_folder(
        &self,
        workspace: &WorkspaceState,
        folder: &Path,
        name: Option<String>,
    ) -> Result<String, CommandError> {
        if !folder.is_absolute() {
            return Err(CommandError(format!("a volume needs an absolute path: {}", folder.display())));
        }
        if folder.to_str().is_none() {
            return Err(CommandError(format!(
                "the folder's path is not UTF-8 text; rename it first: {}",
                folder.display()
            )));
        }
        if workspace.folder.starts_with(folder) {
            return Err(CommandError(format!(
                "the folder holds the workspace's own database; choose one that does not: {}",
                folder.display()
            )));
        }
        for (id, root) in &self.mounts {
            if folder.starts_with(root) || root.starts_with(folder) {
                let name = self.by_id.get(id).map_or("another volume", |volume| volume.name.as_str());
                let why = match folder.starts_with(root) {
                    true => format!("the folder is in the volume “{name}” already"),
                    false => format!("the folder contains the volume “{name}”; close that volume first"),
                };
                return Err(CommandError(format!("{why}: {}", folder.display())));
            }
        }
        let name = name.unwrap_or_else(|| match folder.file_name() {
            Some(name) => name.to_string_lossy().into_owned(),
            None => "Volume".to_owned(),
        });
        Ok(self.free_name(&name))
    }

    /// Adds a volume. `new`: whether no other device has it.
    pub(super) fn add_volume(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        workspace: &mut WorkspaceState,
        (id, name): (DocId, String),
        folder: PathBuf,
        (doc, new): (VolumeDoc, bool),
    ) -> Result<(), CommandError> {
        let mut volume = Volume::new(id, name.clone(), Some(folder.clone()));
        (volume.known, volume.linking, volume.doc, volume.doc_new) = (true, None, Some(Box::new(doc)), new);
        self.mounts.insert(id, folder.clone());
        self.by_id.insert(id, volume);
        self.mark_forks();
        let mut writes = workspace.workspace_writes(turn, id, Some(&name))?;
        writes.push(self.mounts_write());
        turn.append_writes(writes, None);
        self.write_volume_doc(turn, sync, id);
        self.report_volumes(turn);
        turn.effects.push(Effect::Watch { volume: id, root: folder, make: !new });
        self.scan(turn, id);
        Ok(())
    }

    /// Removes a file from its volume; its documents stay on disk.
    pub(super) fn forget_file(&mut self, sync: &mut SyncState, id: DocId, path: &str, writes: &mut Vec<RowWrite>) {
        let Some(volume) = self.by_id.get_mut(&id) else { return };
        if let Some(row) = volume.files.remove(path) {
            volume.demoted.retain(|other| other.path != path);
            volume.doc_heads.push((row.id, crate::session::sync::heads::format_heads(&row.heads)));
            volume.doc_pending.push_back((row.id, None));
            volume.revision += 1;
            volume.remove_file(row.id);
            self.locations.remove(&row.id);
            writes.push(RowWrite::RemoveFile { volume: id, path: path.to_owned() });
            writes.push(RowWrite::Meta { key: links_key(row.id), value: None });
            sync.attachment_gone(row.id);
        }
    }

    /// Writes pending changes to the volume's document, a limited number at a time.
    pub(super) fn write_volume_doc(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState, id: DocId) {
        let writes = self.volume_doc_writes(turn, sync, id);
        if !writes.is_empty() {
            turn.append_writes(writes, None);
        }
    }

    /// Returns the writes of [`VolumesState::write_volume_doc`], to commit together with other data about these files:
    /// after a crash the disk has both or neither.
    pub(super) fn volume_doc_writes(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
    ) -> Vec<RowWrite> {
        let mut writes = Vec::new();
        let Some(volume) = self.by_id.get_mut(&id) else { return writes };
        let Some(doc) = &mut volume.doc else { return writes };
        if (volume.doc_pending.is_empty() && !volume.doc_new) || sync.is_coming(id) {
            return writes;
        }
        let count = volume.doc_pending.len().min(MAX_FILES_PER_DOC_WRITE);
        let mut slice: Vec<(DocId, Option<FileEntry>)> = volume.doc_pending.drain(..count).collect();
        let more = !volume.doc_pending.is_empty();
        // Known entries aren't written again, because that could overwrite a concurrent change of another device.
        slice.retain(|(file, entry)| doc.file_entry(*file) != *entry || !doc.is_listed(*file));
        let name = volume.doc_new.then_some(volume.name.as_str());
        let mut chunks = Vec::new();
        let gone: Vec<(DocId, String)> = std::mem::take(&mut volume.doc_heads);
        if !gone.is_empty() && !volume.doc_new {
            chunks.push(doc.set_last_heads(&gone, turn.now.as_seconds()));
        }
        if !slice.is_empty() || name.is_some() {
            let made = doc.commit(name, &slice, turn.now.as_seconds());
            chunks.push(made.map(|bytes| if std::mem::take(&mut volume.doc_new) { doc.save() } else { bytes }));
        }
        for chunk in chunks {
            match chunk {
                Ok(bytes) => writes.push(RowWrite::Chunk { doc: id, bytes }),
                Err(error) => volume.trouble = Some(error.to_string()),
            }
        }
        if !slice.is_empty() {
            sync.sync_files_changed(self, id, &slice);
        }
        if more {
            turn.wake_at(turn.now.plus_ms(5));
        }
        writes
    }
}

impl FilesState {
    pub(super) fn close_volume(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        workspace: &mut WorkspaceState,
        volume: DocId,
    ) -> Result<(), CommandError> {
        if !self.volumes.by_id.contains_key(&volume) {
            return Err(CommandError(format!("there is no volume {volume}")));
        }
        if self.moves.pending.is_some() {
            return Err(CommandError("files are being moved; try again in a moment".to_owned()));
        }
        if let Some(note) = self.notes.open.values().find(|note| note.volume == volume && note.is_ahead_of_file()) {
            let path = self.volumes.locate_file(note.id).map_or("a note", |(_, path)| path);
            return Err(CommandError(format!("wait until it is saved, then try again: {path}")));
        }
        if self.volumes.by_id.contains_key(&volume.memory_id()) {
            self.close_volume(turn, sync, workspace, volume.memory_id())?;
        }
        let mut writes = workspace.workspace_writes(turn, volume, None)?;
        self.volumes.mounts.remove(&volume);
        if let Some(Volume { name, root: Some(root), fork_of, .. }) = self.volumes.by_id.remove(&volume)
            && fork_of.is_none()
        {
            self.volumes.closed.insert(root, (volume, name));
        }
        for note in self.notes.open.values().filter(|note| note.volume == volume) {
            if note.kernel != KernelPhase::Off {
                turn.effects.push(Effect::KillKernel { note: note.id });
            }
        }
        self.notes.open.retain(|_, note| note.volume != volume);
        self.volumes.locations.retain(|_, (of, _)| *of != volume);
        sync.attachments_closed(volume);
        writes.push(self.volumes.mounts_write());
        turn.append_writes(writes, None);
        self.volumes.report_volumes(turn);
        turn.effects.push(Effect::Unwatch { volume });
        Ok(())
    }

    pub(super) fn volume_read(&mut self, turn: &mut ApplyContext<'_>, id: DocId, known: KnownFiles) {
        let Some(volume) = self.volumes.by_id.get_mut(&id) else { return };
        let KnownFiles { mut files, mut places } = known;
        // Extend the larger map with the smaller one, because the UI thread calls this and must not be blocked.
        if places.len() > self.volumes.locations.len() {
            std::mem::swap(&mut places, &mut self.volumes.locations);
        }
        self.volumes.locations.extend(places);
        volume.files.append(&mut files);
        volume.known = true;
        volume.revision += 1;
        // Finish what a crash interrupted between keystroke and file.
        let mine: Vec<DocId> =
            self.notes.unfinished.iter().copied().filter(|note| self.volumes.locations.contains_key(note)).collect();
        self.notes.unfinished.retain(|note| !mine.contains(note));
        for note in mine {
            self.read_note(turn, note);
        }
    }

    pub(super) fn volume_loaded(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        doc: Result<Box<VolumeDoc>, DocumentLoadError>,
    ) {
        let Some(volume) = self.volumes.by_id.get_mut(&id) else { return };
        match doc {
            Ok(doc) => {
                // The program ended before anything of it was written: the first chunk must include the first change.
                let empty = doc.name().is_none() && doc.files().is_empty();
                volume.doc_new |= empty && !sync.is_coming(id);
                volume.doc = Some(doc);
            }
            Err(why) => volume.trouble = Some(why.0),
        }
        self.volumes.write_volume_doc(turn, sync, id);
        turn.requests.push_back(SessionRequest::SyncLoadedVolume { volume: id });
        self.volumes.scan(turn, id);
    }

    pub(super) fn scanned(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        files: Vec<ScannedFile>,
        seen: u64,
    ) {
        if !self.volumes.by_id.contains_key(&id) {
            return;
        }
        let mut writes = Vec::with_capacity(files.len());
        for file in files {
            self.scanned_file(turn, sync, id, file, &mut writes);
        }
        if let Some(volume) = self.volumes.by_id.get_mut(&id)
            && let ScanState::Running { seen: so_far, .. } = &mut volume.scanning
        {
            *so_far = seen;
        }
        writes.extend(self.volumes.volume_doc_writes(turn, sync, id));
        if !writes.is_empty() {
            turn.append_writes(writes, None);
        }
    }

    fn scanned_file(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        file: ScannedFile,
        writes: &mut Vec<RowWrite>,
    ) {
        if self.moves.is_in_motion(id, &file.path) {
            return; // looked at again once the move is over
        }
        let Some(volume) = self.volumes.by_id.get_mut(&id) else { return };
        if volume.moved.contains(&file.path) || file.was.as_ref().is_some_and(|was| volume.moved.contains(was)) {
            return; // the same: it was seen before the move was over
        }
        if file.was.is_none() && !volume.files.contains_key(&file.path) && !sync.is_shared(id) {
            self.restore_returned_file(id, &file, writes);
        }
        let Some(volume) = self.volumes.by_id.get_mut(&id) else { return };
        let was = file.was.as_ref().filter(|_| !volume.files.contains_key(&file.path)).cloned();
        let old = was.as_ref().and_then(|was| volume.files.remove(was));
        if let Some(old) = &old {
            writes.push(RowWrite::RemoveFile { volume: id, path: old.path.clone() });
        }
        let old = old.or_else(|| volume.files.get(&file.path).cloned());
        let old = old.filter(|old| !sync.make_room_for_file(self, old));
        let Some(volume) = self.volumes.by_id.get_mut(&id) else { return };
        if let Some(old) = old.as_ref().filter(|_| was.is_none() && file.why.is_none())
            && (old.size, old.mtime, old.hash) == (file.stamp.size, file.stamp.mtime, file.stamp.hash)
            && old.kind == file.kind
            && !volume.unindexed.contains(&old.id)
        {
            return; // it was written here while the scan was under way
        }
        if let Some(old) = &old
            && old.kind.is_text()
            && (!old.heads.is_empty() || self.notes.open.contains_key(&old.id))
            && old.path == file.path
        {
            // The note has its own history, so the changes are merged into it, even if it's closed.
            let note = old.id;
            match self.notes.open.get(&note).map(|note| &note.phase) {
                Some(NotePhase::Ready) => self.read_file(turn, note),
                Some(NotePhase::Reading | NotePhase::Failed(_)) => {}
                None => self.read_note(turn, note),
            }
            return;
        }
        let mut bytes = [0; 16];
        turn.rng.fill_bytes(&mut bytes);
        // A new file at a path where others have an attachment that was missing here is that attachment.
        let theirs = || sync.attachment_at(id, &file.path).filter(|one| !self.volumes.locations.contains_key(one));
        let new = || match file.kind {
            FileKind::Attachment => theirs().filter(|one| !self.moves.trash.contains_key(one)),
            FileKind::Note | FileKind::Collection | FileKind::Script => None,
        };
        let (note, heads) = match old {
            Some(old) => (old.id, old.heads),
            None => (new().unwrap_or(DocId::random(bytes)), Vec::new()),
        };
        if file.kind == FileKind::Attachment && sync.is_shared(id) {
            sync.mark_attachments_stale();
        }
        let Some(volume) = self.volumes.by_id.get_mut(&id) else { return };
        let renamed = was.filter(|_| volume.links.path(note).is_some());
        let row = FileRow {
            volume: id,
            path: file.path.clone(),
            id: note,
            kind: file.kind,
            size: file.stamp.size,
            mtime: file.stamp.mtime,
            hash: file.stamp.hash,
            blocks: file.blocks,
            cells: file.cells,
            heads,
        };
        if let Some(why) = file.why {
            volume.demoted.retain(|other| other.path != file.path);
            volume.demoted.push(SkippedFile::new(file.path.clone(), why));
        }
        let entry = FileEntry { path: file.path.clone(), kind: file.kind };
        let known = volume.files.get(&file.path).is_some_and(|old| old.id == note && old.kind == file.kind);
        if !known {
            volume.doc_pending.push_back((note, Some(entry)));
        }
        volume.files.insert(file.path.clone(), row.clone());
        volume.revision += 1;
        volume.links.set_path(note, &file.path);
        volume.links.mark_changed(note);
        if let Some(survey) = file.survey {
            volume.links.set_outline(note, survey.outline);
            volume.unindexed.remove(&note);
            writes.push(RowWrite::Meta { key: links_key(note), value: Some(survey.stored) });
        }
        if let Some(was) = renamed {
            self.moves.record_external_rename(id, note, &was, &file.path);
        }
        self.volumes.locations.insert(note, (id, file.path));
        writes.push(RowWrite::File(row));
        if self.notes.open.get(&note).is_some_and(|note| note.phase == NotePhase::Ready) {
            self.read_file(turn, note); // it is open and was renamed
        }
    }

    /// Remembers deleted notes of a volume of the user's own. In shared ones, other devices have been told already.
    pub(super) fn remember_gone(&mut self, sync: &SyncState, id: DocId, rows: Vec<FileRow>) {
        let is_fork = self.volumes.by_id.get(&id).is_some_and(|volume| volume.fork_of.is_some());
        if !is_fork && !sync.is_shared(id) {
            self.moves.remember_gone(rows);
        }
    }

    /// Records whether a volume's folder can be read. Once it can be again, open notes are compared with their files.
    fn note_reachability(&mut self, turn: &mut ApplyContext<'_>, id: DocId, is_unreachable: bool) {
        let Some(volume) = self.volumes.by_id.get_mut(&id) else { return };
        let was_unreachable = std::mem::replace(&mut volume.is_unreachable, is_unreachable);
        if is_unreachable {
            let due = turn.now.plus_ms(UNREACHABLE_SCAN_INTERVAL_MS);
            self.volumes.look_again = Some(self.volumes.look_again.map_or(due, |other| other.min(due)));
            turn.wake_at(due);
        } else if was_unreachable {
            if let Some(root) = volume.root.clone() {
                turn.effects.push(Effect::Watch { volume: id, root, make: false });
            }
            let open = self.notes.open.values();
            let open: Vec<DocId> =
                open.filter(|note| note.volume == id && note.file.gone).map(|note| note.id).collect();
            open.into_iter().for_each(|note| self.read_file(turn, note));
        }
    }

    /// Makes a file that comes back the note that it was before another program deleted it.
    fn restore_returned_file(&mut self, id: DocId, file: &ScannedFile, writes: &mut Vec<RowWrite>) {
        let Some(row) = self.moves.take_returned(id, &file.path) else { return };
        let is_used = self.volumes.locations.contains_key(&row.id) || self.moves.trash.contains_key(&row.id);
        let Some(volume) = self.volumes.by_id.get_mut(&id).filter(|_| !is_used && row.kind == file.kind) else {
            return;
        };
        // It's compared with its document even if it's what it was.
        let row = FileRow { mtime: 0, ..row };
        volume.doc_pending.push_back((row.id, Some(FileEntry { path: row.path.clone(), kind: row.kind })));
        volume.revision += 1;
        volume.links.set_path(row.id, &row.path);
        if let Some(survey) = file.survey.clone() {
            volume.links.set_outline(row.id, survey.outline);
            writes.push(RowWrite::Meta { key: links_key(row.id), value: Some(survey.stored) });
        }
        self.volumes.locations.insert(row.id, (id, row.path.clone()));
        volume.files.insert(row.path.clone(), row.clone());
        writes.push(RowWrite::File(row));
    }

    pub(super) fn scan_done(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        gone: &[String],
        skipped: Vec<SkippedFile>,
        failed: Option<String>,
    ) {
        if failed.is_none() {
            self.prune_external_renames(turn, id, gone);
        }
        let (mut writes, mut forgotten) = (Vec::new(), Vec::new());
        for path in gone {
            let Some(row) = self.volumes.by_id.get(&id).and_then(|volume| volume.files.get(path)) else { continue };
            let note = row.id;
            let moved = self.volumes.by_id.get(&id).is_some_and(|volume| volume.moved.contains(path));
            if moved || self.moves.is_in_motion(id, path) {
                continue;
            }
            let unread = |note: &Note| matches!(note.phase, NotePhase::Failed(_)) && !note.adopted && !note.shown;
            if self.notes.open.get(&note).is_some_and(unread) {
                self.notes.open.remove(&note); // it was to be read for others, and was gone by then
            }
            if let Some(open) = self.notes.open.get_mut(&note) {
                // An open note keeps its text, whatever happened to the file.
                if open.phase == NotePhase::Ready && open.file.stamp.is_some() && open.file.writing.is_none() {
                    self.read_file(turn, note);
                }
                continue;
            }
            forgotten.extend(self.volumes.by_id.get(&id).and_then(|volume| volume.files.get(path)).cloned());
            self.volumes.forget_file(sync, id, path, &mut writes);
        }
        self.remember_gone(sync, id, forgotten);
        writes.extend(self.moves.take_gone_write());
        self.note_reachability(turn, id, failed.is_some());
        let Some(volume) = self.volumes.by_id.get_mut(&id) else { return };
        volume.scans += 1;
        if failed.is_none() {
            volume.skipped = skipped;
        }
        // The problem stays if the volume's document can't be read.
        if volume.doc.is_some() || failed.is_some() {
            volume.trouble = failed;
        }
        let again = matches!(volume.scanning, ScanState::Running { again: true, .. });
        volume.scanning = ScanState::Idle;
        volume.unreadable = volume.unindexed.clone();
        writes.extend(self.volumes.volume_doc_writes(turn, sync, id));
        if !writes.is_empty() {
            turn.append_writes(writes, None);
        }
        if again {
            self.volumes.scan(turn, id);
        }
    }

    /// Stores the outlines of notes that were indexed.
    pub(super) fn on_indexed(&mut self, turn: &mut ApplyContext<'_>, id: DocId, notes: Vec<(DocId, OutlineSurvey)>) {
        let mut writes = Vec::with_capacity(notes.len());
        let Some(volume) = self.volumes.by_id.get_mut(&id) else { return };
        for (note, OutlineSurvey { outline, stored }) in notes {
            if volume.links.path(note).is_none() {
                continue; // deleted meanwhile
            }
            let relinks = self.moves.pending.as_ref().and_then(|moving| moving.relinks_of(note));
            let outline = relinks.map_or(outline.clone(), |relinks| Arc::new(links::apply_rewrites(&outline, relinks)));
            volume.links.set_outline(note, outline);
            volume.unindexed.remove(&note);
            writes.push(RowWrite::Meta { key: links_key(note), value: Some(stored) });
        }
        if !writes.is_empty() {
            turn.append_writes(writes, None);
        }
    }

    pub(super) fn file_touched(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        path: Option<&str>,
        seen: Option<(u64, i64)>,
    ) {
        let row = path.and_then(|path| self.volumes.by_id.get(&id)?.files.get(path));
        match row.map(|row| (row.id, (row.size, row.mtime))) {
            Some((note, _)) if self.notes.open.get(&note).is_some_and(|note| note.phase == NotePhase::Ready) => {
                self.read_file(turn, note);
            }
            // Tracebook's own write: a scan would find nothing else, and checks all files.
            Some((_, known)) if Some(known) == seen => {}
            Some(_) | None => self.volumes.scan(turn, id),
        }
    }

    /// Creates a note for the user, unless something that isn't read has its name.
    pub(super) fn new_user_note(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        path: &str,
        text: &str,
    ) -> Result<(), CommandError> {
        let skipped = self.volumes.by_id.get(&id).into_iter().flat_map(|volume| &volume.skipped);
        let is_above = |one: &SkippedFile| path.strip_prefix(&one.path).is_some_and(|rest| rest.starts_with('/'));
        let is_named = |one: &SkippedFile| one.path == path || one.path.strip_suffix(".md") == Some(path);
        match skipped.clone().find(|one| is_named(one) || is_above(one)) {
            Some(SkippedFile { path, why, .. }) => {
                Err(CommandError(format!("{path} is there and isn't read ({why}); choose another name")))
            }
            None => self.new_note(turn, sync, id, path, text),
        }
    }

    pub(super) fn new_note(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        path: &str,
        text: &str,
    ) -> Result<(), CommandError> {
        let path = normalize_volume_path(path)?;
        let path = if FileKind::from_path(&path).is_text() { path } else { format!("{path}.md") };
        let kind = FileKind::from_path(&path);
        self.volumes.ensure_writable(id)?;
        let Some(volume) = self.volumes.by_id.get_mut(&id) else {
            return Err(CommandError(format!("there is no volume {id}")));
        };
        if volume.root.is_none() {
            return Err(CommandError(format!("the volume has no folder on this device: {}", volume.name)));
        }
        if !volume.known {
            return Err(CommandError(format!(
                "the volume's files are still being read; try again in a moment: {}",
                volume.name
            )));
        }
        if volume.files.contains_key(&path) || self.moves.is_in_motion(id, &path) {
            return Err(CommandError(format!("a file with that name already exists; choose another: {path}")));
        }
        ensure_place_is_free(&volume.files, &path)?;
        let Some(volume) = self.volumes.by_id.get_mut(&id) else { return Ok(()) };
        let mut bytes = [0; 16];
        turn.rng.fill_bytes(&mut bytes);
        let note = DocId::random(bytes);
        let row = FileRow::of_unwritten(id, path.clone(), note, kind);
        volume.files.insert(path.clone(), row.clone());
        volume.revision += 1;
        volume.links.set_path(note, &path);
        let entry = FileEntry { path: path.clone(), kind };
        volume.doc_pending.push_back((note, Some(entry)));
        self.volumes.locations.insert(note, (id, path));
        self.create_note(turn, sync, note, id, row, text);
        Ok(())
    }
}
