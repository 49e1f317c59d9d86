//! Files moved, renamed, deleted and restored, with the links that lead to them. A move is recorded on disk first, then
//! made in the file system, then written to the notes that link to the files. After a crash at any point, the next
//! start finishes it.

use crate::effect::Effect;
use crate::event::FileChangeError;
use crate::note::{KernelPhase, Note, NotePhase};
use crate::records::moves::{
    CompletedMove, FileLocation, FileMove, PENDING_MOVE_KEY, PendingMove, RELINK_KEY_PREFIX, TRASH_FOLDER,
    TRASH_KEY_PREFIX, TrashedFile, UNDO_MOVES_KEY,
};
use crate::session::apply_context::{ApplyContext, CommandError, SessionRequest};
use crate::session::state::FilesState;
use crate::session::state::moves::MovesState;
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use crate::session::volume_paths::normalize_volume_path;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use store::disk::{FileRow, RowWrite};
use store::{DocId, FileEntry, FileKind};
use text::links::{self, LinkRewrite};
use text::text_edit::TextEdit;

/// Maximum numbers of undoable moves, and of files and links in them, that the disk keeps.
const MAX_SAVED_MOVES_AND_ITEMS: (usize, usize) = (10, 10_000);

/// Maximum number of notes that are rewritten at the same time.
const MAX_CONCURRENT_RELINKS: usize = 8;
/// Maximum number of moves that can be undone.
const MAX_UNDOABLE_MOVES: usize = 100;

impl FilesState {
    pub(super) fn move_files(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        moves: &[(DocId, String)],
    ) -> Result<(), CommandError> {
        match self.plan_moves(moves)? {
            files if files.is_empty() => Ok(()),
            files => self.begin_move(turn, sync, files, Some(BTreeMap::new()), false),
        }
    }

    /// Moves files because another device did. Links are left alone: the other device has updated them already, and a
    /// second update would duplicate the text.
    pub(super) fn move_for_remote(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        file: DocId,
        to: &str,
        echo: bool,
    ) -> Result<(), CommandError> {
        let mut files = self.plan_moves(&[(file, to.to_owned())])?;
        files.iter_mut().for_each(|one| one.echo = echo);
        if files.is_empty() { Ok(()) } else { self.begin_move(turn, sync, files, None, false) }
    }

    /// Deletes a file because another device did.
    pub(super) fn delete_for_remote(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        file: DocId,
    ) -> Result<(), CommandError> {
        let mut moves = self.plan_deletions(&[file])?;
        moves.iter_mut().for_each(|one| one.echo = true);
        self.begin_move(turn, sync, moves, None, false)
    }

    /// Restores a file from the trash because another device did.
    pub(super) fn restore_for_remote(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        file: DocId,
        to: &str,
    ) -> Result<(), CommandError> {
        let mut restored = self.plan_restore(file, Some(to))?;
        // If the path is taken, the file gets a different one, which must be recorded for other devices.
        restored.echo = restored.to == FileLocation::Path(to.to_owned());
        self.begin_move(turn, sync, vec![restored], None, false)
    }

    fn plan_moves(&self, moves: &[(DocId, String)]) -> Result<Vec<FileMove>, CommandError> {
        let mut files = Vec::new();
        for (file, to) in moves {
            let row = self.movable_row(*file)?;
            let mut to = normalize_volume_path(to)?;
            if row.kind.is_text() {
                if FileKind::from_path(&to) != row.kind {
                    to.push_str(match row.kind {
                        FileKind::Collection => ".base",
                        FileKind::Script => ".py",
                        FileKind::Note | FileKind::Attachment => ".md",
                    });
                }
                if to != row.path && to.contains(['[', ']', '#', '^', '|']) {
                    return Err(CommandError(format!("a link cannot name a note with [ ] # ^ or | in it: {to}")));
                }
            }
            if to != row.path {
                let from = FileLocation::Path(row.path.clone());
                files.push(FileMove::new(row, from, FileLocation::Path(to)));
            }
        }
        Ok(files)
    }

    pub(super) fn delete_files(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        files: &[DocId],
    ) -> Result<(), CommandError> {
        let moves = self.plan_deletions(files)?;
        self.begin_move(turn, sync, moves, Some(BTreeMap::new()), false)
    }

    fn plan_deletions(&self, files: &[DocId]) -> Result<Vec<FileMove>, CommandError> {
        let mut moves = Vec::new();
        for file in files {
            let row = self.movable_row(*file)?;
            if let Some(why) = self.notes.open.get(file).and_then(|note| note.file.trouble.as_ref()) {
                let advice = "move it to another path first";
                return Err(CommandError(format!("it cannot be deleted before it is saved; {advice}: {why}")));
            }
            let from = FileLocation::Path(row.path.clone());
            moves.push(FileMove::new(row, from, FileLocation::Trash));
        }
        Ok(moves)
    }

    pub(super) fn restore_file(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        file: DocId,
        to: Option<&str>,
    ) -> Result<(), CommandError> {
        let restored = self.plan_restore(file, to)?;
        self.begin_move(turn, sync, vec![restored], Some(BTreeMap::new()), false)
    }

    /// Moves files to the trash and restores others to their earlier paths, all or none.
    pub(super) fn swap_files(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        gone: &[DocId],
        back: &[DocId],
    ) -> Result<(), CommandError> {
        let mut moves = Vec::new();
        for file in gone {
            let row = self.movable_row(*file)?;
            let from = FileLocation::Path(row.path.clone());
            moves.push(FileMove::new(row, from, FileLocation::Trash));
        }
        for file in back {
            moves.push(self.plan_restore(*file, None)?);
        }
        self.begin_move(turn, sync, moves, Some(BTreeMap::new()), false)
    }

    /// Plans the restoration of a file from the trash.
    fn plan_restore(&self, file: DocId, to: Option<&str>) -> Result<FileMove, CommandError> {
        let Some(trashed) = self.moves.trash.get(&file) else {
            return Err(CommandError("it is not in the trash; `tracebook trash` lists what is".to_owned()));
        };
        if self.moves.deleting.contains(&file) {
            return Err(CommandError("it's being deleted permanently".to_owned()));
        }
        let row = trashed.row.clone();
        let Some(volume) = self.volumes.by_id.get(&row.volume) else {
            return Err(CommandError(format!("its volume is closed; open its folder first: {}", row.path)));
        };
        let wanted = match to {
            Some(to) => normalize_volume_path(to)?,
            None => row.path.clone(),
        };
        let (stem, ending) = match wanted.rsplit_once('.') {
            Some((stem, ending)) if !ending.contains('/') => (stem, format!(".{ending}")),
            _ => (wanted.as_str(), String::new()),
        };
        // A file that now has this path stays there.
        let numbered = (2_u32..).map(|number| format!("{stem} {number}{ending}"));
        let free = std::iter::once(wanted.clone()).chain(numbered).find(|path| !volume.files.contains_key(path));
        let to = FileLocation::Path(free.unwrap_or(wanted));
        Ok(FileMove::new(row, FileLocation::Trash, to))
    }

    /// Undoes the last move or deletion, files and links together.
    pub(super) fn undo_move(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState) -> Result<(), CommandError> {
        self.moves.ensure_no_pending_move()?;
        let Some(last) = self.moves.undoable.last().cloned() else {
            return Err(CommandError("there's no rename, move or deletion to undo".to_owned()));
        };
        let mut files = Vec::new();
        for FileMove { row, from, to, .. } in last.files {
            let id = row.id;
            let row = match &to {
                FileLocation::Path(path) => {
                    self.volumes.by_id.get(&row.volume).and_then(|volume| volume.files.get(path)).cloned()
                }
                FileLocation::Trash => self.moves.trash.get(&row.id).map(|trashed| trashed.row.clone()),
            };
            let Some(row) = row.filter(|now| now.id == id) else {
                self.moves.undoable.pop();
                return Err(CommandError("it was moved again since, so it was left alone".to_owned()));
            };
            files.push(FileMove::new(row, to, from));
        }
        let back = |relinks: &Vec<LinkRewrite>| -> Vec<LinkRewrite> {
            let back =
                relinks.iter().map(|one| LinkRewrite { kind: one.kind, old: one.new.clone(), new: one.old.clone() });
            let mut unique: Vec<LinkRewrite> = Vec::new();
            for one in back {
                // Two targets that became one can't be told apart here; the plan of the reverse move decides.
                match unique.iter().position(|other| other.kind == one.kind && other.old == one.old) {
                    Some(at) => _ = unique.remove(at),
                    None => unique.push(one),
                }
            }
            unique
        };
        let relinks = last.relinks.iter().map(|(note, relinks)| (*note, back(relinks))).collect();
        if files.is_empty() {
            self.begin_relinks(turn, relinks, true);
            return Ok(());
        }
        self.begin_move(turn, sync, files, Some(relinks), true)
    }

    fn movable_row(&self, file: DocId) -> Result<FileRow, CommandError> {
        self.moves.ensure_no_pending_move()?;
        let place =
            self.volumes.locate_file(file).and_then(|(volume, path)| Some((self.volumes.by_id.get(&volume)?, path)));
        let Some((volume, path)) = place else { return Err(CommandError(format!("there is no file {file}"))) };
        if volume.root.is_none() {
            return Err(CommandError(format!("its volume has no folder on this device: {}", volume.name)));
        }
        volume.files.get(path).cloned().ok_or_else(|| CommandError(format!("there is no file {path}")))
    }

    /// Records a move on disk. `relinks`: text changes besides those that the links need; `None` to change no links.
    fn begin_move(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        files: Vec<FileMove>,
        relinks: Option<BTreeMap<DocId, Vec<LinkRewrite>>>,
        back: bool,
    ) -> Result<(), CommandError> {
        self.moves.ensure_no_pending_move()?;
        let Some(id) = files.first().map(|file| file.row.volume) else { return Ok(()) };
        // Another device's moves have no link updates; they come from where the volume may be written.
        if relinks.is_some() {
            self.volumes.ensure_writable(id)?;
        }
        let Some(volume) = self.volumes.by_id.get_mut(&id) else {
            return Err(CommandError("its volume is closed".to_owned()));
        };
        if files.iter().any(|file| file.row.volume != id) {
            return Err(CommandError("files of several volumes cannot be moved at once".to_owned()));
        }
        if !volume.is_read() {
            return Err(CommandError("its links are still being read; try again in a moment".to_owned()));
        }
        let leaves = |path: &str| files.iter().any(|file| file.from == FileLocation::Path(path.to_owned()));
        let mut targets: Vec<&str> = Vec::new();
        for file in &files {
            let FileLocation::Path(to) = &file.to else { continue };
            let below = |at: usize| volume.files.contains_key(&to[..at]) && !leaves(&to[..at]);
            if (volume.files.contains_key(to) && !leaves(to)) || targets.contains(&to.as_str()) {
                return Err(CommandError(format!("a file with that name already exists; choose another: {to}")));
            }
            if let Some((at, _)) = to.match_indices('/').find(|(at, _)| below(*at)) {
                return Err(CommandError(format!("this is a file, not a folder: {}", &to[..at])));
            }
            targets.push(to);
        }
        if files.iter().any(|file| matches!(&file.to, FileLocation::Path(to) if leaves(to))) {
            return Err(CommandError("files cannot change places with each other; move them one by one".to_owned()));
        }
        let renames: Vec<(DocId, String)> = files.iter().filter_map(new_path).collect();
        let others = relinks.is_none();
        let quiet = renames.is_empty() || others;
        let planned = if quiet { BTreeMap::new() } else { volume.links.rename_files(&renames) };
        let mut all = relinks.unwrap_or_default();
        for (note, planned) in planned {
            let known = all.entry(note).or_default();
            let new = planned
                .into_iter()
                .filter(|one| !known.iter().any(|other| other.kind == one.kind && other.old == one.old));
            let new: Vec<LinkRewrite> = new.collect();
            known.extend(new);
        }
        all.retain(|note, relinks| !relinks.is_empty() && volume.links.outline(*note).is_some());
        let mut writes = vec![json_write(PENDING_MOVE_KEY.to_owned(), &files)];
        writes.extend(all.iter().map(|(note, relinks)| json_write(format!("{RELINK_KEY_PREFIX}{note}"), relinks)));
        turn.append_writes(writes, None);
        for file in &files {
            self.notes.end_burst(turn, file.row.id);
            // A new note must be written to its file before it's moved, and all changes must be written before a
            // deletion.
            let now = |note: &&mut Note| file.to == FileLocation::Trash || note.file.is_new_file();
            if let Some(note) = self.notes.open.get_mut(&file.row.id).filter(now) {
                note.file.due = note.file.due.map(|_| turn.now);
                self.write_file(turn, sync, file.row.id);
            }
        }
        let relinks = all.clone();
        self.moves.pending = Some(PendingMove {
            files,
            relinks,
            is_remote: others,
            is_undo: back,
            all_relinks: all,
            ..PendingMove::default()
        });
        Ok(())
    }

    /// Continues the pending move if what it waits for has arrived. Called after every input.
    pub(super) fn step_move(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState, workspace: &WorkspaceState) {
        let Some(moving) = &self.moves.pending else { return };
        if !moving.files.is_empty() {
            let waits = moving
                .awaited_batch
                .is_some_and(|batch| turn.journal.in_flight.iter().any(|flight| flight.batch <= batch));
            if let Some(why) =
                moving.files.iter().find_map(|file| self.notes.blocked_reason(file)).filter(|_| !moving.has_started())
            {
                return self.on_files_moved(turn, sync, Err(FileChangeError(why)));
            }
            if moving.is_sent
                || waits
                || !(moving.has_started() || moving.files.iter().all(|file| self.notes.is_idle(file)))
            {
                return;
            }
            let volume = moving.files.first().and_then(|file| self.volumes.by_id.get(&file.row.volume));
            match volume.map(|volume| (volume.is_read(), &volume.root)) {
                Some((true, Some(_))) => {}
                Some((false, _)) => return,
                Some((true, None)) | None => {
                    let why = "a move was canceled: its volume no longer has a folder on this device";
                    return self.on_files_moved(turn, sync, Err(FileChangeError(why.to_owned())));
                }
            }
            if !moving.has_started() {
                return self.start_file_moves(turn);
            }
            let moves: Vec<(PathBuf, PathBuf)> = moving
                .files
                .iter()
                .filter(|file| file.made == Some(true))
                .filter_map(|file| {
                    Some((
                        self.volumes.resolve_location(workspace, &file.row, &file.from)?,
                        self.volumes.resolve_location(workspace, &file.row, &file.to)?,
                    ))
                })
                .collect();
            let emptied = moving.files.iter().filter_map(|file| self.volumes.emptied_folder(workspace, file)).collect();
            turn.effects.push(Effect::MoveFiles { moves, emptied });
            if let Some(moving) = &mut self.moves.pending {
                moving.is_sent = true;
            }
            return;
        }
        self.step_relinks(turn, sync);
    }

    /// Records on disk that the files are about to move in their current state. From here on they aren't changed, and
    /// after a crash they may be in either place.
    fn start_file_moves(&mut self, turn: &mut ApplyContext<'_>) {
        let Some(mut moving) = self.moves.pending.take() else { return };
        moving.files.iter_mut().for_each(|file| file.made = Some(self.exists_on_disk(file)));
        turn.append_writes(vec![json_write(PENDING_MOVE_KEY.to_owned(), &moving.files)], None);
        moving.awaited_batch = Some(turn.journal.next_batch - 1);
        self.moves.pending = Some(moving);
    }

    /// Returns whether the file exists at all; a note whose text hasn't arrived yet is only a name.
    fn exists_on_disk(&self, file: &FileMove) -> bool {
        let FileLocation::Path(path) = &file.from else { return true };
        match self.notes.open.get(&file.row.id) {
            Some(note) if note.phase == NotePhase::Ready => note.file.stamp.is_some() || note.file.gone,
            Some(_) | None => {
                let row = self.volumes.by_id.get(&file.row.volume).and_then(|volume| volume.files.get(path));
                row.is_none_or(|row| row.size > 0 || row.mtime != 0)
            }
        }
    }

    /// Completes a move: either all files are at their new locations, or all are at their old ones.
    pub(super) fn on_files_moved(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        result: Result<(), FileChangeError>,
    ) {
        let Some(mut moving) = self.moves.pending.take() else { return };
        let files = std::mem::take(&mut moving.files);
        let volume = files.first().map(|file| file.row.volume);
        let mut writes = vec![RowWrite::Meta { key: PENDING_MOVE_KEY.to_owned(), value: None }];
        match result {
            Ok(()) => {
                files.iter().for_each(|file| self.file_moved(turn, file, &mut writes));
                let done = (!moving.is_undo)
                    .then(|| CompletedMove { files: files.clone(), relinks: std::mem::take(&mut moving.all_relinks) });
                writes.push(self.moves.remember_move(done));
                // Changes made by other devices aren't sent back to them; the other documents are still synced.
                for FileMove { row, to, .. } in files.iter().filter(|file| file.echo) {
                    let entry = match to {
                        FileLocation::Path(path) => Some(FileEntry { path: path.clone(), kind: row.kind }),
                        FileLocation::Trash => None,
                    };
                    sync.sync_files_changed(&self.volumes, row.volume, &[(row.id, entry)]);
                }
                // In one commit: the rows of the files, and the volume's document for other devices.
                writes.extend(
                    volume.map(|volume| self.volumes.volume_doc_writes(turn, sync, volume)).unwrap_or_default(),
                );
                turn.append_writes(writes, None);
                self.moves.pending = (!moving.relinks.is_empty()).then_some(moving);
                files
                    .iter()
                    .filter(|file| file.echo)
                    .for_each(|file| sync.recheck_remote_state(self, file.row.volume, file.row.id));
            }
            Err(FileChangeError(why)) => {
                let forget = |note: &DocId| RowWrite::Meta { key: format!("{RELINK_KEY_PREFIX}{note}"), value: None };
                writes.extend(moving.relinks.keys().map(forget));
                turn.append_writes(writes, None);
                self.volumes.cancel_move(&files, &moving.relinks);
                if moving.is_remote || files.iter().any(|file| file.echo) {
                    // Changes made by other devices are retried; a scan may find what prevented them.
                    turn.requests.push_back(SessionRequest::RetryRemoteChanges { volume, why });
                } else {
                    turn.journal.problems.push(why);
                }
            }
        }
        files.iter().for_each(|file| self.resume_file(turn, file));
        if let Some(volume) = volume {
            self.volumes.write_volume_doc(turn, sync, volume);
            self.volumes.scan(turn, volume);
        }
    }

    /// Updates links without moving a file.
    pub(super) fn begin_relinks(
        &mut self,
        turn: &mut ApplyContext<'_>,
        plan: BTreeMap<DocId, Vec<LinkRewrite>>,
        back: bool,
    ) {
        let known = |note: &DocId| {
            let volume = self.volumes.locate_file(*note).and_then(|(volume, _)| self.volumes.by_id.get(&volume));
            volume.is_some_and(|volume| volume.links.outline(*note).is_some())
        };
        let all: BTreeMap<DocId, Vec<LinkRewrite>> = plan.into_iter().filter(|(note, _)| known(note)).collect();
        let mut writes: Vec<RowWrite> =
            all.iter().map(|(note, relinks)| json_write(format!("{RELINK_KEY_PREFIX}{note}"), relinks)).collect();
        let done = (!back).then(|| CompletedMove { files: Vec::new(), relinks: all.clone() });
        writes.push(self.moves.remember_move(done));
        turn.append_writes(writes, None);
        self.moves.pending = (!all.is_empty()).then(|| PendingMove {
            relinks: all.clone(),
            all_relinks: all,
            is_undo: back,
            ..PendingMove::default()
        });
    }

    /// Applies the move of a file to the session's state and adds its writes.
    fn file_moved(&mut self, turn: &mut ApplyContext<'_>, file: &FileMove, writes: &mut Vec<RowWrite>) {
        let FileMove { row, from, to, echo, made } = file;
        let made = *made == Some(true);
        let (id, volume_id) = (row.id, row.volume);
        let Some(volume) = self.volumes.by_id.get_mut(&volume_id) else { return };
        // The current row includes later events, such as a finished write.
        let mut row = match from {
            FileLocation::Path(path) => volume.files.get(path).filter(|now| now.id == id).cloned(),
            FileLocation::Trash => None,
        }
        .or_else(|| volume.files.values().find(|now| now.id == id).filter(|_| *to != FileLocation::Trash).cloned())
        .unwrap_or_else(|| row.clone());
        if volume.files.get(&row.path).is_some_and(|now| now.id == id) {
            volume.files.remove(&row.path);
            volume.demoted.retain(|other| other.path != row.path);
            writes.push(RowWrite::RemoveFile { volume: volume_id, path: row.path.clone() });
        }
        volume.revision += 1;
        for spot in [from, to] {
            if let FileLocation::Path(path) = spot {
                volume.moved.insert(path.clone());
            }
        }
        match to {
            FileLocation::Path(path) => {
                row.path.clone_from(path);
                volume.files.insert(path.clone(), row.clone());
                let entry = FileEntry { path: path.clone(), kind: row.kind };
                if !echo {
                    volume.doc_pending.push_back((id, Some(entry)));
                }
                volume.links.set_path(id, path);
                if *from == FileLocation::Trash {
                    if row.kind == FileKind::Note {
                        volume.unindexed.insert(id);
                    }
                    self.moves.trash.remove(&id);
                    writes.push(RowWrite::Meta { key: format!("{TRASH_KEY_PREFIX}{id}"), value: None });
                }
                self.volumes.locations.insert(id, (volume_id, path.clone()));
                writes.push(RowWrite::File(row));
            }
            FileLocation::Trash => {
                if !echo {
                    volume.doc_heads.push((id, crate::session::sync::heads::format_heads(&row.heads)));
                    volume.doc_pending.push_back((id, None));
                }
                volume.remove_file(id);
                self.volumes.locations.remove(&id);
                let trashed = TrashedFile { row, at: turn.now.0 };
                if made {
                    writes.push(json_write(format!("{TRASH_KEY_PREFIX}{id}"), &trashed));
                }
                writes.push(RowWrite::Meta { key: crate::session::volume_paths::links_key(id), value: None });
                if made {
                    self.moves.trash.insert(id, trashed);
                }
                if self.notes.open.remove(&id).is_some_and(|note| note.kernel != KernelPhase::Off) {
                    turn.effects.push(Effect::KillKernel { note: id });
                }
            }
        }
    }

    /// Resumes work that waited for the end of a move.
    fn resume_file(&mut self, turn: &mut ApplyContext<'_>, file: &FileMove) {
        let id = file.row.id;
        if file.from == FileLocation::Trash && file.row.kind.is_text() {
            self.read_note(turn, id); // what was typed while it was on its way there is not in the file
        }
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        if note.phase == NotePhase::Reading {
            self.notes.open.remove(&id).into_iter().for_each(|old| {
                self.read_note(turn, id);
                if let Some(note) = self.notes.open.get_mut(&id) {
                    (note.shown, note.holds, note.remote) = (old.shown, old.holds, old.remote);
                }
            });
            return;
        }
        if std::mem::take(&mut note.file.reread) {
            self.read_file(turn, id);
        }
        if self.notes.open.get(&id).is_some_and(|note| note.file.due.is_some()) {
            turn.wake_at(turn.now);
        }
    }

    /// Rewrites the links in notes that link to moved files, a few notes at a time.
    fn step_relinks(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState) {
        if self.volumes.by_id.values().any(|volume| !volume.is_linked()) {
            return;
        }
        let Some(moving) = &self.moves.pending else { return };
        let next: Vec<DocId> = moving.relinks.keys().copied().take(MAX_CONCURRENT_RELINKS).collect();
        let mut any = false;
        for id in next {
            let held = self.moves.pending.as_ref().is_some_and(|moving| moving.held_notes.contains(&id));
            if !held && self.hold_note(turn, sync, id, true).is_ok() {
                self.moves.pending.iter_mut().for_each(|moving| moving.held_notes.push(id));
            }
            let over = match self.notes.open.get(&id) {
                None => true,
                Some(note) => match note.phase {
                    NotePhase::Reading => false,
                    NotePhase::Failed(_) => true,
                    NotePhase::Ready => note.read_only().is_some() || note.file.unmerged.is_none(),
                },
            };
            if over {
                self.relink_note(turn, sync, id);
                any = true;
            }
        }
        if self.moves.pending.as_ref().is_some_and(|moving| moving.relinks.is_empty()) {
            self.moves.pending = None;
        } else if any {
            turn.wake_at(turn.now);
        }
    }

    /// Rewrites the links in one note. A note that can't be written is reported as a problem.
    fn relink_note(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState, id: DocId) {
        let Some(moving) = &mut self.moves.pending else { return };
        let Some(relinks) = moving.relinks.remove(&id) else { return };
        let held = moving.held_notes.iter().position(|held| *held == id).map(|at| moving.held_notes.remove(at));
        let done = RowWrite::Meta { key: format!("{RELINK_KEY_PREFIX}{id}"), value: None };
        let note = self.notes.open.get(&id).filter(|note| note.phase == NotePhase::Ready && note.read_only().is_none());
        let splices: Option<Vec<TextEdit>> = note.map(|note| {
            let places = links::rewrite_spans(&note.text(), &relinks);
            places.into_iter().map(|(at, delete, insert)| TextEdit { at, delete, insert }).collect()
        });
        match splices {
            Some(splices) if !splices.is_empty() => {
                self.notes.create_note_document(turn, id);
                if let Some(note) = self.notes.open.get_mut(&id) {
                    for splice in splices.iter().rev() {
                        note.undo.rebase_steps(splice.at, splice.delete, splice.insert.len());
                    }
                }
                self.notes.splice_note(turn, sync, id, &splices, true, vec![done]);
            }
            Some(_) => turn.append_writes(vec![done], None),
            None => {
                turn.append_writes(vec![done], None);
                if let Some((_, path)) = self.volumes.locate_file(id) {
                    turn.journal.problems.push(format!("its links could not follow a move; mend them by hand: {path}"));
                }
            }
        }
        if held.is_some() {
            let _ = self.hold_note(turn, sync, id, false); // it was held above
        }
    }
}

impl MovesState {
    /// Records the move that can be undone next; `None` if the last one was undone.
    fn remember_move(&mut self, done: Option<CompletedMove>) -> RowWrite {
        match done {
            Some(done) => self.undoable.push(done),
            None => _ = self.undoable.pop(),
        }
        if self.undoable.len() > MAX_UNDOABLE_MOVES {
            self.undoable.remove(0);
        }
        let mut room = MAX_SAVED_MOVES_AND_ITEMS.1;
        let fits = |moved: &&CompletedMove| {
            let size = moved.files.len() + moved.relinks.values().map(Vec::len).sum::<usize>();
            let fits = size <= room;
            room = room.saturating_sub(size);
            fits
        };
        let mut kept: Vec<&CompletedMove> =
            self.undoable.iter().rev().take(MAX_SAVED_MOVES_AND_ITEMS.0).take_while(fits).collect();
        kept.reverse();
        json_write(UNDO_MOVES_KEY.to_owned(), &kept)
    }
}

impl VolumesState {
    /// Returns the path of a location on this device; `None` if its volume has no folder here.
    pub(super) fn resolve_location(
        &self,
        workspace: &WorkspaceState,
        row: &FileRow,
        spot: &FileLocation,
    ) -> Option<PathBuf> {
        match spot {
            FileLocation::Path(path) => Some(self.by_id.get(&row.volume)?.root.as_ref()?.join(path)),
            FileLocation::Trash => {
                let name = row.path.rsplit('/').next().unwrap_or(&row.path);
                Some(workspace.folder.join(TRASH_FOLDER).join(row.id.to_string()).join(name))
            }
        }
    }

    /// Returns the folder to remove if the move leaves it empty; never the volume's own folder.
    fn emptied_folder(&self, workspace: &WorkspaceState, file: &FileMove) -> Option<PathBuf> {
        let folder = self.resolve_location(workspace, &file.row, &file.from)?.parent()?.to_owned();
        let inside = match (&file.from, &file.to) {
            (FileLocation::Path(path), FileLocation::Path(_)) => path.contains('/'),
            (FileLocation::Trash, _) => true,
            (FileLocation::Path(_), FileLocation::Trash) => false,
        };
        inside.then_some(folder)
    }
}

fn new_path(file: &FileMove) -> Option<(DocId, String)> {
    match (&file.from, &file.to) {
        (FileLocation::Path(_), FileLocation::Path(to)) => Some((file.row.id, to.clone())),
        (FileLocation::Trash, _) | (_, FileLocation::Trash) => None,
    }
}

fn json_write(key: String, value: &impl Serialize) -> RowWrite {
    RowWrite::Meta { key, value: Some(serde_json::to_vec(value).unwrap_or_default()) }
}
