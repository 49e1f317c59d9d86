//! Attachments of shared volumes: which bytes each file has on this device and on others, and what to do about
//! differences. A file that differs here from the others' version is never overwritten: both are kept. The host
//! transfers the bytes.

use crate::effect::Effect;
use crate::records::files::FileStamp;
use crate::records::sync::{AGREED_BYTES_KEY_PREFIX, AgreedBytes, AttachmentAction, VolumeAttachments};
use crate::session::apply_context::ApplyContext;
use crate::session::state::FilesState;
use crate::session::state::notes::NotesState;
use crate::session::state::runs::RunsState;
use crate::session::state::sync::{RemoteFile, SyncState};
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use crate::session::volume_paths::{name_with_mark, sibling_name};
use std::collections::{BTreeMap, BTreeSet};
use store::disk::{FileRow, RowWrite};
use store::{BlobHash, DocId, FileBytes, FileEntry, FileKind, is_hidden};

/// Maximum number of files reported to the host per millisecond.
const MAX_REPORTED_FILES_PER_MS: usize = 100;

impl crate::session::state::sync::SyncState {
    /// Returns whether the host has been sent everything that is known of attachments.
    pub(in crate::session) fn attachments_settled(&self) -> bool {
        !self.attachments.is_stale && self.attachments.reading.is_empty()
    }

    /// Marks attachments to be checked again.
    pub(in crate::session) fn mark_attachments_stale(&mut self) {
        self.attachments.is_stale = true;
    }

    pub(super) fn set_agreed(&mut self, agreed: BTreeMap<DocId, AgreedBytes>) {
        self.attachments.agreed_bytes = agreed;
        self.attachments.is_stale = true;
    }

    /// Returns the attachment of other devices that belongs at this path, if any.
    pub(in crate::session) fn attachment_at(&self, volume: DocId, path: &str) -> Option<DocId> {
        self.attachments.paths.get(&(volume, path.to_owned())).copied()
    }

    /// Returns the path and size in bytes of a file that is yet to arrive in this volume, by its name in a note.
    pub fn awaited_file(&self, volume: DocId, name: &str) -> Option<(&str, u64)> {
        let decoded = name.replace("%20", " ");
        let last = |path: &str| path.rsplit('/').next().unwrap_or(path).to_lowercase();
        let coming = self.attachments.incoming.get(&volume)?;
        let whole = coming.iter().find(|(path, _)| *path == decoded);
        let named = || coming.iter().find(|(path, _)| last(path) == last(&decoded));
        whole.or_else(named).map(|(path, size)| (path.as_str(), *size))
    }

    /// Returns a counter that increases when files arrive from other devices or are announced, so that views check
    /// again.
    pub fn arrival_count(&self) -> u64 {
        self.attachments.arrival_count
    }
}

impl SyncState {
    /// Handles entries of attachments in the volume's document.
    pub(in crate::session) fn on_remote_attachments<'a>(
        &mut self,
        volumes: &VolumesState,
        volume: DocId,
        files: impl Iterator<Item = (&'a DocId, Option<&'a FileEntry>)>,
    ) {
        let Some(doc) = volumes.by_id.get(&volume).and_then(|volume| volume.doc.as_ref()) else { return };
        let known = self.attachments.remote_files.get(&volume);
        let mut told = Vec::new();
        for (file, entry) in files {
            let theirs = entry.filter(|entry| entry.kind == FileKind::Attachment);
            let theirs = theirs.map(|entry| {
                let (path, bytes, rivals) = (entry.path.clone(), doc.attachment_bytes(*file), doc.rival_hashes(*file));
                RemoteFile { path, bytes, rivals }
            });
            if theirs.is_some() || known.is_some_and(|known| known.contains_key(file)) {
                told.push((*file, theirs));
            }
        }
        self.attachments.remote_files.entry(volume).or_default();
        for (file, theirs) in told {
            self.attachments.set_remote_file(volume, file, theirs);
            self.mark_attachments_stale();
        }
    }

    /// Determines the next actions and sends them to the host, less often the more files there are.
    pub(super) fn step_attachments(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        runs: &RunsState,
        workspace: &WorkspaceState,
    ) {
        if !self.attachments.is_stale {
            return;
        }
        let due = self.attachments.last_reported;
        let due = due.map(|(at, count)| at.plus_ms((50 + count / MAX_REPORTED_FILES_PER_MS).min(1_000) as i64));
        if let Some(due) = due.filter(|due| turn.now < *due) {
            return turn.wake_at(due);
        }
        self.attachments.is_stale = false;
        self.forget_agreed(turn, files, workspace);
        let shared: BTreeSet<DocId> = self.shares.hubs.iter().flat_map(|hub| hub.volumes.iter().copied()).collect();
        let mut all = BTreeMap::new();
        for volume in shared {
            if let Some(belongings) = self.volume_attachments(turn, files, runs, volume) {
                all.insert(volume, belongings);
            }
        }
        if all.is_empty() && self.attachments.last_reported.is_none() {
            return;
        }
        let count =
            all.values().map(|one: &VolumeAttachments| one.files.len() + one.outputs.len() + one.runs.len()).sum();
        self.attachments.last_reported = Some((turn.now, count));
        self.revision += 1;
        turn.effects.push(Effect::SyncFiles(Box::new(all)));
    }

    /// Forgets the agreed bytes of files that are neither in a volume nor in the trash.
    fn forget_agreed(&mut self, turn: &mut ApplyContext<'_>, files: &FilesState, workspace: &WorkspaceState) {
        // Volumes that are still being read may contain the files.
        if workspace.doc.is_none() || files.volumes.by_id.values().any(|volume| !volume.known) {
            return;
        }
        let attachments = &self.attachments;
        let is_gone =
            |file: &&DocId| !files.volumes.locations.contains_key(file) && !files.moves.trash.contains_key(file);
        let gone: Vec<DocId> = attachments.agreed_bytes.keys().filter(is_gone).copied().collect();
        if gone.is_empty() {
            return;
        }
        let writes =
            gone.iter().map(|file| RowWrite::Meta { key: format!("{AGREED_BYTES_KEY_PREFIX}{file}"), value: None });
        turn.append_writes(writes.collect(), None);
        for file in gone {
            self.attachments.agreed_bytes.remove(&file);
            self.attachments.read.remove(&file);
            self.attachments.unreadable.remove(&file);
        }
    }

    fn volume_attachments(
        &mut self,
        turn: &mut ApplyContext<'_>,
        all_files: &mut FilesState,
        runs: &RunsState,
        id: DocId,
    ) -> Option<VolumeAttachments> {
        let volume = all_files.volumes.by_id.get(&id).filter(|volume| volume.known && !self.is_coming(id))?;
        let (root, doc) = (volume.root.clone()?, volume.doc.as_ref()?);
        if !self.attachments.remote_files.contains_key(&id) {
            let files = doc.files();
            self.on_remote_attachments(&all_files.volumes, id, files.iter().map(|(file, entry)| (file, Some(entry))));
            self.attachments.is_stale = false;
        }
        let mut belongings = VolumeAttachments { root, ..VolumeAttachments::default() };
        let theirs = self.attachments.remote_files.get(&id).cloned().unwrap_or_default();
        let shown = all_files.shown_names(id);
        let urgent = |path: &str| shown.contains(&path.rsplit('/').next().unwrap_or(path).to_lowercase());
        let (mut says, mut coming, mut aside) = (Vec::new(), Vec::new(), None);
        for (file, RemoteFile { path, bytes, rivals }) in theirs {
            let here = all_files.volumes.locate_file(file).map(|(of, path)| (of, path.to_owned()));
            let fetch =
                |bytes, over, kept, path: &str| AttachmentAction::Fetch { bytes, over, kept, urgent: urgent(path) };
            match here {
                Some((of, _)) if of != id => {}
                // Hidden files hold keys and settings of programs: neither they nor their hashes are sent to anyone.
                // What programs here obey isn't changed from elsewhere either.
                Some((_, at)) if is_hidden(&at) || agent::protected_writes::executed_reason(&at).is_some() => {}
                Some((_, at)) => {
                    let Some(row) = all_files.volumes.by_id.get(&id).and_then(|volume| volume.files.get(&at)) else {
                        continue;
                    };
                    let Some(local) = self.attachments.local_stamp(row) else {
                        if self.attachments.unreadable.get(&file) != Some(&(row.size, row.mtime)) {
                            self.attachments.reading.insert(file);
                            belongings.files.insert(file, (at, AttachmentAction::Read));
                        }
                        continue;
                    };
                    let base = self.attachments.agreed_bytes.get(&file).map(|agreed| agreed.hash);
                    let attached = match bytes {
                        Some(theirs) if theirs.hash == local.hash => {
                            self.record_agreement(turn, file, local);
                            AttachmentAction::Offer(local)
                        }
                        // Bytes that this device set concurrently with another one aren't outdated.
                        Some(theirs) if base == Some(local.hash) && !rivals.contains(&local.hash) => {
                            fetch(theirs, Some(local), None, &at)
                        }
                        Some(theirs) if base != Some(theirs.hash) => {
                            let mark: String = local.hash.to_string().chars().take(8).collect();
                            fetch(theirs, Some(local), Some(name_with_mark(&at, &mark)), &at)
                        }
                        // The file was changed on this device only, or hasn't been announced yet.
                        Some(_) | None => {
                            says.push((file, FileBytes { hash: local.hash, size: local.size }));
                            continue;
                        }
                    };
                    belongings.files.insert(file, (at, attached));
                }
                None => {
                    let Some(bytes) = bytes.filter(|_| !all_files.moves.trash.contains_key(&file)) else { continue };
                    if !self.is_valid_attachment_path(turn, file, &path) {
                        continue;
                    }
                    let other = all_files.volumes.by_id.get(&id).and_then(|volume| volume.files.get(&path)).cloned();
                    let at = match other {
                        None => path,
                        Some(other) => match self.attachments.local_stamp(&other) {
                            Some(same) if same.hash == bytes.hash => continue,
                            // Compute the other file's hash first.
                            None if other.kind == FileKind::Attachment => continue,
                            // The file with the lower id keeps its path, the same on all devices.
                            Some(_) | None if other.id < file => sibling_name(&path, file),
                            Some(_) | None => {
                                aside = Some((other.id, sibling_name(&path, other.id)));
                                continue;
                            }
                        },
                    };
                    if all_files.volumes.by_id.get(&id).is_some_and(|volume| volume.files.contains_key(&at)) {
                        continue; // it is here under another name
                    }
                    coming.push((at.clone(), bytes.size));
                    belongings.files.insert(file, (at.clone(), fetch(bytes, None, None, &at)));
                }
            }
        }
        if self.attachments.incoming.get(&id).is_none_or(|known| *known != coming) {
            self.attachments.incoming.insert(id, coming);
            self.attachments.arrival_count += 1;
        }
        if let Some((other, to)) = aside.filter(|_| all_files.moves.ensure_no_pending_move().is_ok()) {
            self.log_line(turn.now, format!("two devices made a file of one name; ours is {to} now"));
            // If the move is rejected, both files stay in place; the next scan tries again.
            let _ = all_files.move_files(turn, self, &[(other, to)]);
            self.mark_attachments_stale();
        }
        self.report_bytes(turn, &mut all_files.volumes, id, &says);
        if let Some(volume) = all_files.volumes.by_id.get(&id) {
            let cells = volume.files.values().filter(|row| row.kind.is_text() && row.cells > 0);
            let outputs_of = |row: &FileRow| self.outputs.get(&row.id).copied().unwrap_or_else(|| row.id.outputs_id());
            let outputs = cells.clone().map(|row| (outputs_of(row), all_files.notes.open.contains_key(&row.id)));
            let notes = cells.map(|row| (outputs_of(row), row.id));
            belongings.outputs = outputs.collect();
            belongings.notes_of_outputs = notes.collect();
        }
        belongings.runs = runs.runs_of(id).collect();
        Some(belongings)
    }

    /// Announces the bytes of these files to other devices.
    fn report_bytes(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &mut VolumesState,
        id: DocId,
        says: &[(DocId, FileBytes)],
    ) {
        if says.is_empty() {
            return;
        }
        let Some(volume) = volumes.by_id.get_mut(&id) else { return };
        let Some(doc) = volume.doc.as_mut().filter(|_| !volume.doc_new) else { return };
        match doc.set_attachment_bytes(says, turn.now.as_seconds()) {
            Ok(bytes) => {
                turn.append_writes(vec![RowWrite::Chunk { doc: id, bytes }], None);
                for (file, bytes) in says {
                    let theirs = self.attachments.remote_files.get_mut(&id).and_then(|all| all.get_mut(file));
                    if let Some(theirs) = theirs {
                        (theirs.bytes, theirs.rivals) = (Some(*bytes), Vec::new());
                    }
                }
                self.mark_attachments_stale();
            }
            Err(error) => volume.trouble = Some(error.to_string()),
        }
    }

    /// Handles the stamp of an attachment that was read; `None` if it can't be read.
    pub(in crate::session) fn attachment_read(
        &mut self,
        volumes: &VolumesState,
        file: DocId,
        stamp: Option<FileStamp>,
    ) {
        self.attachments.reading.remove(&file);
        match stamp {
            Some(stamp) => {
                self.attachments.unreadable.remove(&file);
                self.attachments.read.insert(file, stamp);
            }
            None => {
                let row =
                    volumes.locate_file(file).and_then(|(volume, path)| volumes.by_id.get(&volume)?.files.get(path));
                let was = row.map(|row| (row.size, row.mtime));
                self.attachments.unreadable.extend(was.map(|was| (file, was)));
            }
        }
        // If the file has changed since, the next scan notices it.
        self.mark_attachments_stale();
    }

    /// Records an attachment whose file was written with another device's bytes.
    pub(in crate::session) fn attachment_placed(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &mut VolumesState,
        volume_id: DocId,
        file: DocId,
        path: String,
        stamp: FileStamp,
    ) {
        self.attachments.arrival_count += 1;
        self.mark_attachments_stale();
        let Some(volume) = volumes.by_id.get_mut(&volume_id) else { return };
        let elsewhere = volumes.locations.get(&file).is_some_and(|place| *place != (volume_id, path.clone()));
        if elsewhere || volume.files.get(&path).is_some_and(|row| row.id != file) {
            return; // it was moved meanwhile: the next scan tells what is there
        }
        let row = FileRow {
            size: stamp.size,
            mtime: stamp.mtime,
            hash: BlobHash([0; 32]),
            ..FileRow::of_unwritten(volume_id, path.clone(), file, FileKind::Attachment)
        };
        volume.files.insert(path.clone(), row.clone());
        volume.revision += 1;
        volume.links.set_path(file, &path);
        let renamed = self.attachment_at(volume_id, &path) != Some(file);
        if renamed {
            let entry = FileEntry { path: path.clone(), kind: FileKind::Attachment };
            volume.doc_pending.push_back((file, Some(entry)));
        }
        volumes.locations.insert(file, (volume_id, path));
        turn.append_writes(vec![RowWrite::File(row)], None);
        self.record_agreement(turn, file, stamp);
        volumes.write_volume_doc(turn, self, volume_id);
    }

    /// Handles blobs of outputs that arrived, so that views of them are refreshed.
    pub(in crate::session) fn on_blobs_received(&mut self, notes: &mut NotesState, count: u64) {
        self.attachments.arrival_count += count;
        self.revision += 1;
        for note in notes.open.values_mut() {
            note.outputs_changed += 1;
        }
    }
}

impl FilesState {
    /// Returns the last path segments of all links in a volume's open notes.
    fn shown_names(&self, volume: DocId) -> BTreeSet<String> {
        let Some(known) = self.volumes.by_id.get(&volume) else { return BTreeSet::new() };
        let open = self.notes.open.values().filter(|note| note.volume == volume);
        let outlines = open.filter_map(|note| known.links.outline(note.id));
        let links = outlines.flat_map(|outline| outline.links.iter());
        links
            .map(|link| link.target.rsplit('/').next().unwrap_or_default().replace("%20", " ").to_lowercase())
            .collect()
    }
}
