//! Files moved, renamed, deleted and restored, with the links that lead to them: said on disk first, then done to the
//! files, then written into the notes that link there. A crash at any point is brought to its end at the next start.

use super::volumes::inside;
use super::{Reject, Session, Turn};
use crate::effect::{BatchNumber, Effect};
use crate::note::{KernelPhase, Note, Phase};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use store::disk::{FileRow, Write};
use store::{DocId, FileEntry, FileKind};
use text::links::{self, Relink};
use text::splice::Splice;

/// Under which name the disk keeps what can be taken back.
pub const MOVED: &str = "moved";
/// Of more moves, or more files and links in them, the disk keeps nothing.
const KEPT_ON_DISK: (usize, usize) = (10, 10_000);
/// Under which name the disk keeps a move that is under way.
pub const MOVING: &str = "moving";
/// The beginning of the names under which it keeps what is to be written into which notes.
pub const RELINK: &str = "relink/";
/// The beginning of the names under which it keeps what lies in the trash.
pub const TRASH: &str = "trash/";
/// The folder inside the workspace in which deleted files lie.
pub const TRASH_FOLDER: &str = "trash";

/// Notes that are rewritten at the same time.
const AT_ONCE: usize = 8;
/// Moves that can be taken back.
const KEPT: usize = 100;

/// Where a file lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Spot {
    /// At this path of its volume.
    Path(String),
    /// In the workspace's trash.
    Trash,
}

/// A file on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMove {
    /// What is known of it, at its old path.
    pub row: FileRow,
    /// From where.
    pub from: Spot,
    /// Where to.
    pub to: Spot,
    /// Whether this only repeats here what the volume's document says already: to say it again could undo what another
    /// device did next.
    #[serde(default)]
    pub echo: bool,
    /// Once it goes there: whether there is a file at all. Of a note whose text has not come yet there is only the
    /// name.
    #[serde(default)]
    made: Option<bool>,
}

impl FileMove {
    fn new(row: FileRow, from: Spot, to: Spot) -> FileMove {
        FileMove { row, from, to, echo: false, made: None }
    }
}

/// A deleted file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trashed {
    /// What was known of it; with the path at which it lay.
    pub row: FileRow,
    /// When it was deleted, milliseconds since 1970.
    pub at: i64,
}

/// A move of files that is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moving {
    /// The files, until they are where they belong.
    pub files: Vec<FileMove>,
    /// What is still to be written into which notes.
    pub relinks: BTreeMap<DocId, Vec<Relink>>,
    /// The batch that says on disk that they go there now, if that is on its way.
    waits: Option<BatchNumber>,
    /// Whether the host was asked to do it.
    sent: bool,
    /// Whether other devices' doing led to it.
    others: bool,
    /// Whether this takes back an earlier one.
    back: bool,
    /// Notes that are kept open to be written to.
    held: Vec<DocId>,
    /// All that is written, to be taken back.
    all: BTreeMap<DocId, Vec<Relink>>,
}

/// A move that is over and can be taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    files: Vec<FileMove>,
    relinks: BTreeMap<DocId, Vec<Relink>>,
}

impl Session {
    pub(super) fn move_files(&mut self, turn: &mut Turn<'_>, moves: &[(DocId, String)]) -> Result<(), Reject> {
        match self.planned(moves)? {
            files if files.is_empty() => Ok(()),
            files => self.begin_move(turn, files, Some(BTreeMap::new()), false),
        }
    }

    /// The same because of what others did. Links are left alone: whoever renamed a file has written them anew, and if
    /// two devices did that, what they wrote would stand there twice.
    pub(super) fn move_as_others(
        &mut self,
        turn: &mut Turn<'_>,
        file: DocId,
        to: &str,
        echo: bool,
    ) -> Result<(), Reject> {
        let mut files = self.planned(&[(file, to.to_owned())])?;
        files.iter_mut().for_each(|one| one.echo = echo);
        if files.is_empty() { Ok(()) } else { self.begin_move(turn, files, None, false) }
    }

    /// Deletes a file as another device did.
    pub(super) fn delete_as_others(&mut self, turn: &mut Turn<'_>, file: DocId) -> Result<(), Reject> {
        let mut moves = self.deletions(&[file])?;
        moves.iter_mut().for_each(|one| one.echo = true);
        self.begin_move(turn, moves, None, false)
    }

    /// Takes a file out of the trash as another device did.
    pub(super) fn restore_as_others(&mut self, turn: &mut Turn<'_>, file: DocId, to: &str) -> Result<(), Reject> {
        let mut restored = self.restored(file, Some(to))?;
        // Where that name is taken it gets another one, and that is said.
        restored.echo = restored.to == Spot::Path(to.to_owned());
        self.begin_move(turn, vec![restored], None, false)
    }

    fn planned(&self, moves: &[(DocId, String)]) -> Result<Vec<FileMove>, Reject> {
        let mut files = Vec::new();
        for (file, to) in moves {
            let row = self.movable(*file)?;
            let mut to = inside(to)?;
            if row.kind.is_text() {
                if FileKind::of(&to) != row.kind {
                    to.push_str(match row.kind {
                        FileKind::Collection => ".base",
                        FileKind::Script => ".py",
                        FileKind::Note | FileKind::Attachment => ".md",
                    });
                }
                if to != row.path && to.contains(['[', ']', '#', '^', '|']) {
                    return Err(Reject(format!("a link cannot name a note with [ ] # ^ or | in it: {to}")));
                }
            }
            if to != row.path {
                let from = Spot::Path(row.path.clone());
                files.push(FileMove::new(row, from, Spot::Path(to)));
            }
        }
        Ok(files)
    }

    pub(super) fn delete_files(&mut self, turn: &mut Turn<'_>, files: &[DocId]) -> Result<(), Reject> {
        let moves = self.deletions(files)?;
        self.begin_move(turn, moves, Some(BTreeMap::new()), false)
    }

    fn deletions(&self, files: &[DocId]) -> Result<Vec<FileMove>, Reject> {
        let mut moves = Vec::new();
        for file in files {
            let row = self.movable(*file)?;
            if let Some(why) = self.notes.get(file).and_then(|note| note.file.trouble.as_ref()) {
                return Err(Reject(format!("it cannot be deleted before it is saved: {why}")));
            }
            let from = Spot::Path(row.path.clone());
            moves.push(FileMove::new(row, from, Spot::Trash));
        }
        Ok(moves)
    }

    pub(super) fn restore_file(&mut self, turn: &mut Turn<'_>, file: DocId, to: Option<&str>) -> Result<(), Reject> {
        let restored = self.restored(file, to)?;
        self.begin_move(turn, vec![restored], Some(BTreeMap::new()), false)
    }

    /// Puts files into the trash and takes others out of it, to where they lay: all of it or nothing.
    pub(super) fn swap_files(&mut self, turn: &mut Turn<'_>, gone: &[DocId], back: &[DocId]) -> Result<(), Reject> {
        let mut moves = Vec::new();
        for file in gone {
            let row = self.movable(*file)?;
            let from = Spot::Path(row.path.clone());
            moves.push(FileMove::new(row, from, Spot::Trash));
        }
        for file in back {
            moves.push(self.restored(*file, None)?);
        }
        self.begin_move(turn, moves, Some(BTreeMap::new()), false)
    }

    /// How a file comes out of the trash.
    fn restored(&self, file: DocId, to: Option<&str>) -> Result<FileMove, Reject> {
        let Some(trashed) = self.trash.get(&file) else {
            return Err(Reject("it is not in the trash; `tracebook trash` lists what is".to_owned()));
        };
        if self.discarding.contains(&file) {
            return Err(Reject("it is being deleted for good".to_owned()));
        }
        let row = trashed.row.clone();
        let Some(volume) = self.volumes.get(&row.volume) else {
            return Err(Reject(format!("its volume is closed; open its folder first: {}", row.path)));
        };
        let wanted = match to {
            Some(to) => inside(to)?,
            None => row.path.clone(),
        };
        let (stem, ending) = match wanted.rsplit_once('.') {
            Some((stem, ending)) if !ending.contains('/') => (stem, format!(".{ending}")),
            _ => (wanted.as_str(), String::new()),
        };
        // What came into its place meanwhile stays.
        let numbered = (2_u32..).map(|number| format!("{stem} {number}{ending}"));
        let free = std::iter::once(wanted.clone()).chain(numbered).find(|path| !volume.files.contains_key(path));
        let to = Spot::Path(free.unwrap_or(wanted));
        Ok(FileMove::new(row, Spot::Trash, to))
    }

    /// Takes back the last move or deletion, files and links, as one.
    pub(super) fn undo_move(&mut self, turn: &mut Turn<'_>) -> Result<(), Reject> {
        self.nothing_moves()?;
        let Some(last) = self.moved.last().cloned() else {
            return Err(Reject("no rename, move or deletion can be taken back".to_owned()));
        };
        let mut files = Vec::new();
        for FileMove { row, from, to, .. } in last.files {
            let id = row.id;
            let row = match &to {
                Spot::Path(path) => self.volumes.get(&row.volume).and_then(|volume| volume.files.get(path)).cloned(),
                Spot::Trash => self.trash.get(&row.id).map(|trashed| trashed.row.clone()),
            };
            let Some(row) = row.filter(|now| now.id == id) else {
                self.moved.pop();
                return Err(Reject("it was moved again since, so it was left alone".to_owned()));
            };
            files.push(FileMove::new(row, to, from));
        }
        let back = |relinks: &Vec<Relink>| -> Vec<Relink> {
            let back = relinks.iter().map(|one| Relink { kind: one.kind, old: one.new.clone(), new: one.old.clone() });
            let mut unique: Vec<Relink> = Vec::new();
            for one in back {
                // Where two targets became one, they do not become two again: the plan for the way back decides.
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
        self.begin_move(turn, files, Some(relinks), true)
    }

    pub(super) fn nothing_moves(&self) -> Result<(), Reject> {
        match &self.moving {
            Some(_) => Err(Reject("other files are being moved; try again in a moment".to_owned())),
            None => Ok(()),
        }
    }

    fn movable(&self, file: DocId) -> Result<FileRow, Reject> {
        self.nothing_moves()?;
        let place = self.place(file).and_then(|(volume, path)| Some((self.volumes.get(&volume)?, path)));
        let Some((volume, path)) = place else { return Err(Reject(format!("there is no file {file}"))) };
        if volume.root.is_none() {
            return Err(Reject(format!("its volume has no folder on this device: {}", volume.name)));
        }
        volume.files.get(path).cloned().ok_or_else(|| Reject(format!("there is no file {path}")))
    }

    /// Says on disk what is to be done. `relinks`: what is to be written beyond what the links need; `None`: nothing.
    fn begin_move(
        &mut self,
        turn: &mut Turn<'_>,
        files: Vec<FileMove>,
        relinks: Option<BTreeMap<DocId, Vec<Relink>>>,
        back: bool,
    ) -> Result<(), Reject> {
        self.nothing_moves()?;
        let Some(id) = files.first().map(|file| file.row.volume) else { return Ok(()) };
        let Some(volume) = self.volumes.get_mut(&id) else {
            return Err(Reject("its volume is closed".to_owned()));
        };
        if files.iter().any(|file| file.row.volume != id) {
            return Err(Reject("files of several volumes cannot be moved at once".to_owned()));
        }
        if !volume.is_read() {
            return Err(Reject("its links are still being read; try again in a moment".to_owned()));
        }
        let leaves = |path: &str| files.iter().any(|file| file.from == Spot::Path(path.to_owned()));
        let mut targets: Vec<&str> = Vec::new();
        for file in &files {
            let Spot::Path(to) = &file.to else { continue };
            let below = |at: usize| volume.files.contains_key(&to[..at]) && !leaves(&to[..at]);
            if (volume.files.contains_key(to) && !leaves(to)) || targets.contains(&to.as_str()) {
                return Err(Reject(format!("there is a file of that name already; choose another: {to}")));
            }
            if let Some((at, _)) = to.match_indices('/').find(|(at, _)| below(*at)) {
                return Err(Reject(format!("a file is no folder: {}", &to[..at])));
            }
            targets.push(to);
        }
        if files.iter().any(|file| matches!(&file.to, Spot::Path(to) if leaves(to))) {
            return Err(Reject("files cannot change places with each other; move them one by one".to_owned()));
        }
        let renames: Vec<(DocId, String)> = files.iter().filter_map(renamed).collect();
        let others = relinks.is_none();
        let quiet = renames.is_empty() || others;
        let planned = if quiet { BTreeMap::new() } else { volume.links.rename(&renames) };
        let mut all = relinks.unwrap_or_default();
        for (note, planned) in planned {
            let known = all.entry(note).or_default();
            let new = planned
                .into_iter()
                .filter(|one| !known.iter().any(|other| other.kind == one.kind && other.old == one.old));
            let new: Vec<Relink> = new.collect();
            known.extend(new);
        }
        all.retain(|note, relinks| !relinks.is_empty() && volume.links.outline(*note).is_some());
        let mut writes = vec![json(MOVING.to_owned(), &files)];
        writes.extend(all.iter().map(|(note, relinks)| json(format!("{RELINK}{note}"), relinks)));
        self.append(turn, writes, None);
        for file in &files {
            self.end_burst(turn, file.row.id);
            // It is moved once it is there, and deleted once all of it is.
            let now = |note: &&mut Note| file.to == Spot::Trash || note.file.is_unmade();
            if let Some(note) = self.notes.get_mut(&file.row.id).filter(now) {
                note.file.due = note.file.due.map(|_| turn.now);
                self.write_file(turn, file.row.id);
            }
        }
        let relinks = all.clone();
        self.moving = Some(Moving { files, relinks, others, back, all, ..Moving::default() });
        Ok(())
    }

    /// What a move waits for may have come. Called whenever something has happened.
    pub(super) fn move_step(&mut self, turn: &mut Turn<'_>) {
        let Some(moving) = &self.moving else { return };
        if !moving.files.is_empty() {
            let waits = moving.waits.is_some_and(|batch| self.in_flight.iter().any(|flight| flight.batch <= batch));
            if let Some(why) = moving.files.iter().find_map(|file| self.stuck(file)).filter(|_| !moving.goes()) {
                return self.files_moved(turn, Err(why));
            }
            if moving.sent || waits || !(moving.goes() || moving.files.iter().all(|file| self.is_still(file))) {
                return;
            }
            let volume = moving.files.first().and_then(|file| self.volumes.get(&file.row.volume));
            match volume.map(|volume| (volume.is_read(), &volume.root)) {
                Some((true, Some(_))) => {}
                Some((false, _)) => return,
                Some((true, None)) | None => {
                    let why = "a move was given up: its volume has no folder on this device any more";
                    return self.files_moved(turn, Err(why.to_owned()));
                }
            }
            if !moving.goes() {
                return self.go(turn);
            }
            let moves: Vec<(PathBuf, PathBuf)> = moving
                .files
                .iter()
                .filter(|file| file.made == Some(true))
                .filter_map(|file| Some((self.spot(&file.row, &file.from)?, self.spot(&file.row, &file.to)?)))
                .collect();
            let emptied = moving.files.iter().filter_map(|file| self.emptied(file)).collect();
            turn.effects.push(Effect::MoveFiles { moves, emptied });
            if let Some(moving) = &mut self.moving {
                moving.sent = true;
            }
            return;
        }
        self.relink_step(turn);
    }

    /// Says on disk that the files go now, as they are: from here on they are left alone, and a crash may find them in
    /// either place.
    fn go(&mut self, turn: &mut Turn<'_>) {
        let Some(mut moving) = self.moving.take() else { return };
        moving.files.iter_mut().for_each(|file| file.made = Some(self.is_made(file)));
        self.append(turn, vec![json(MOVING.to_owned(), &moving.files)], None);
        moving.waits = Some(self.next_batch - 1);
        self.moving = Some(moving);
    }

    /// Where a file lies on this device.
    pub(super) fn spot(&self, row: &FileRow, spot: &Spot) -> Option<PathBuf> {
        match spot {
            Spot::Path(path) => Some(self.volumes.get(&row.volume)?.root.as_ref()?.join(path)),
            Spot::Trash => {
                let name = row.path.rsplit('/').next().unwrap_or(&row.path);
                Some(self.folder.join(TRASH_FOLDER).join(row.id.to_string()).join(name))
            }
        }
    }

    /// The folder that goes if a move leaves nothing in it: never the volume's own.
    fn emptied(&self, file: &FileMove) -> Option<PathBuf> {
        let folder = self.spot(&file.row, &file.from)?.parent()?.to_owned();
        let inside = match (&file.from, &file.to) {
            (Spot::Path(path), Spot::Path(_)) => path.contains('/'),
            (Spot::Trash, _) => true,
            (Spot::Path(_), Spot::Trash) => false,
        };
        inside.then_some(folder)
    }

    /// Why a file will not be still: it is to be deleted once all of it is written, and it cannot be written.
    fn stuck(&self, file: &FileMove) -> Option<String> {
        let note = self.notes.get(&file.row.id).filter(|note| file.to == Spot::Trash && note.is_ahead())?;
        let why = note.file.trouble.as_ref().filter(|_| note.read_only().is_none() && !note.file.gone)?;
        Some(format!("its last edits cannot be saved, so it was not deleted: {why}"))
    }

    /// Whether nothing happens to a file that is to be moved.
    fn is_still(&self, file: &FileMove) -> bool {
        let Some(note) = self.notes.get(&file.row.id) else { return true };
        let busy = note.phase == Phase::Reading || note.file.reading || note.file.writing.is_some();
        let unsaved = note.is_ahead() || note.is_loading() || note.file.unmerged.is_some() || !note.remote.is_empty();
        let coming = note.is_loading() || !note.remote.is_empty();
        let unmade = note.file.stamp.is_none() && !note.file.gone && (coming || note.file.is_unmade());
        let unmade = unmade && note.file.trouble.is_none() && note.read_only().is_none();
        !busy && !unmade && (file.to != Spot::Trash || note.file.gone || !unsaved || note.read_only().is_some())
    }

    /// Whether there is a file at all: of a note whose text has not come yet there is only the name.
    fn is_made(&self, file: &FileMove) -> bool {
        let Spot::Path(path) = &file.from else { return true };
        match self.notes.get(&file.row.id) {
            Some(note) if note.phase == Phase::Ready => note.file.stamp.is_some() || note.file.gone,
            Some(_) | None => {
                let row = self.volumes.get(&file.row.volume).and_then(|volume| volume.files.get(path));
                row.is_none_or(|row| row.size > 0 || row.mtime != 0)
            }
        }
    }

    /// Whether a file is being moved at this moment, so that it must be left alone.
    pub(super) fn is_moving(&self, file: DocId) -> bool {
        let moving = self.moving.as_ref().filter(|moving| moving.goes());
        moving.is_some_and(|moving| moving.files.iter().any(|one| one.row.id == file))
    }

    /// Whether what a scan says of this path is old, or will be: a file is on its way from or to it.
    pub(super) fn is_in_motion(&self, volume: DocId, path: &str) -> bool {
        let here = |spot: &Spot| matches!(spot, Spot::Path(at) if at == path);
        let meant = |one: &FileMove| one.row.volume == volume && (here(&one.from) || here(&one.to));
        self.moving.as_ref().is_some_and(|moving| moving.files.iter().any(meant))
    }

    /// The files are where they belong, or all are where they were.
    pub(super) fn files_moved(&mut self, turn: &mut Turn<'_>, result: Result<(), String>) {
        let Some(mut moving) = self.moving.take() else { return };
        let files = std::mem::take(&mut moving.files);
        let volume = files.first().map(|file| file.row.volume);
        let mut writes = vec![Write::Meta { key: MOVING.to_owned(), value: None }];
        match result {
            Ok(()) => {
                files.iter().for_each(|file| self.file_moved(turn, file, &mut writes));
                let done =
                    (!moving.back).then(|| Moved { files: files.clone(), relinks: std::mem::take(&mut moving.all) });
                writes.push(self.remember_move(done));
                // What others did to a file is not said to them, and other documents are synced all the same.
                for FileMove { row, to, .. } in files.iter().filter(|file| file.echo) {
                    let entry = match to {
                        Spot::Path(path) => Some(FileEntry { path: path.clone(), kind: row.kind }),
                        Spot::Trash => None,
                    };
                    self.sync_files_changed(row.volume, &[(row.id, entry)]);
                }
                // In one commit: what the disk knows of the files, and what others are told.
                writes.extend(volume.map(|volume| self.volume_doc_writes(turn, volume)).unwrap_or_default());
                self.append(turn, writes, None);
                self.moving = (!moving.relinks.is_empty()).then_some(moving);
                files
                    .iter()
                    .filter(|file| file.echo)
                    .for_each(|file| self.still_as_others(file.row.volume, file.row.id));
            }
            Err(why) => {
                let forget = |note: &DocId| Write::Meta { key: format!("{RELINK}{note}"), value: None };
                writes.extend(moving.relinks.keys().map(forget));
                self.append(turn, writes, None);
                self.unplan(&files, &moving.relinks);
                if moving.others || files.iter().any(|file| file.echo) {
                    // What others did is tried again: a scan may find out what stood in its way.
                    self.others_later(turn, volume, &why);
                } else {
                    self.problems.push(why);
                }
            }
        }
        files.iter().for_each(|file| self.resume(turn, file));
        if let Some(volume) = volume {
            self.write_volume_doc(turn, volume);
            self.scan(turn, volume);
        }
    }

    /// Notes what can be taken back now; `None`: what was done last has been.
    fn remember_move(&mut self, done: Option<Moved>) -> Write {
        match done {
            Some(done) => self.moved.push(done),
            None => _ = self.moved.pop(),
        }
        if self.moved.len() > KEPT {
            self.moved.remove(0);
        }
        let mut room = KEPT_ON_DISK.1;
        let fits = |moved: &&Moved| {
            let size = moved.files.len() + moved.relinks.values().map(Vec::len).sum::<usize>();
            let fits = size <= room;
            room = room.saturating_sub(size);
            fits
        };
        let mut kept: Vec<&Moved> = self.moved.iter().rev().take(KEPT_ON_DISK.0).take_while(fits).collect();
        kept.reverse();
        json(MOVED.to_owned(), &kept)
    }

    /// Links are written anew, and no file moves.
    pub(super) fn begin_relinks(&mut self, turn: &mut Turn<'_>, plan: BTreeMap<DocId, Vec<Relink>>, back: bool) {
        let known = |note: &DocId| {
            let volume = self.place(*note).and_then(|(volume, _)| self.volumes.get(&volume));
            volume.is_some_and(|volume| volume.links.outline(*note).is_some())
        };
        let all: BTreeMap<DocId, Vec<Relink>> = plan.into_iter().filter(|(note, _)| known(note)).collect();
        let mut writes: Vec<Write> =
            all.iter().map(|(note, relinks)| json(format!("{RELINK}{note}"), relinks)).collect();
        let done = (!back).then(|| Moved { files: Vec::new(), relinks: all.clone() });
        writes.push(self.remember_move(done));
        self.append(turn, writes, None);
        self.moving = (!all.is_empty()).then(|| Moving { relinks: all.clone(), all, back, ..Moving::default() });
    }

    /// A move did not come about: the links are as they were.
    fn unplan(&mut self, files: &[FileMove], relinks: &BTreeMap<DocId, Vec<Relink>>) {
        let Some(volume) = files.first().and_then(|file| self.volumes.get_mut(&file.row.volume)) else { return };
        for file in files {
            match &file.from {
                Spot::Path(path) => volume.links.enter(file.row.id, path),
                Spot::Trash => {}
            }
        }
        let volume = volume.id;
        self.unplan_links(volume, relinks);
    }

    /// Notes of a volume are not written anew: what they hold is as it was.
    pub(super) fn unplan_links(&mut self, volume: DocId, relinks: &BTreeMap<DocId, Vec<Relink>>) {
        let Some(volume) = self.volumes.get_mut(&volume) else { return };
        for (note, relinks) in relinks {
            let Some(outline) = volume.links.outline(*note) else { continue };
            let back: Vec<Relink> = relinks
                .iter()
                .map(|one| Relink { kind: one.kind, old: one.new.clone(), new: one.old.clone() })
                .collect();
            let outline = links::relinked(outline, &back);
            volume.links.set(*note, outline.into());
        }
    }

    /// Enters a move that was done.
    fn file_moved(&mut self, turn: &mut Turn<'_>, file: &FileMove, writes: &mut Vec<Write>) {
        let FileMove { row, from, to, echo, made } = file;
        let made = *made == Some(true);
        let (id, volume_id) = (row.id, row.volume);
        let Some(volume) = self.volumes.get_mut(&volume_id) else { return };
        // What happened since it was said (a write that ended) is in the row as it is now.
        let mut row = match from {
            Spot::Path(path) => volume.files.get(path).filter(|now| now.id == id).cloned(),
            Spot::Trash => None,
        }
        .or_else(|| volume.files.values().find(|now| now.id == id).filter(|_| *to != Spot::Trash).cloned())
        .unwrap_or_else(|| row.clone());
        if volume.files.get(&row.path).is_some_and(|now| now.id == id) {
            volume.files.remove(&row.path);
            volume.demoted.retain(|other| other.path != row.path);
            writes.push(Write::FileGone { volume: volume_id, path: row.path.clone() });
        }
        volume.revision += 1;
        for spot in [from, to] {
            if let Spot::Path(path) = spot {
                volume.moved.insert(path.clone());
            }
        }
        match to {
            Spot::Path(path) => {
                row.path.clone_from(path);
                volume.files.insert(path.clone(), row.clone());
                let entry = FileEntry { path: path.clone(), kind: row.kind };
                if !echo {
                    volume.doc_pending.push_back((id, Some(entry)));
                }
                volume.links.enter(id, path);
                if *from == Spot::Trash {
                    volume.unindexed.insert(id);
                    self.trash.remove(&id);
                    writes.push(Write::Meta { key: format!("{TRASH}{id}"), value: None });
                }
                self.places.insert(id, (volume_id, path.clone()));
                writes.push(Write::File(row));
            }
            Spot::Trash => {
                if !echo {
                    volume.doc_heads.push((id, super::sync::heads_text(&row.heads)));
                    volume.doc_pending.push_back((id, None));
                }
                volume.unlink(id);
                self.places.remove(&id);
                let trashed = Trashed { row, at: turn.now.0 };
                if made {
                    writes.push(json(format!("{TRASH}{id}"), &trashed));
                }
                writes.push(Write::Meta { key: super::volumes::links_key(id), value: None });
                if made {
                    self.trash.insert(id, trashed);
                }
                if self.notes.remove(&id).is_some_and(|note| note.kernel != KernelPhase::Off) {
                    turn.effects.push(Effect::KillKernel { note: id });
                }
            }
        }
    }

    /// What waited for the end of a move goes on.
    fn resume(&mut self, turn: &mut Turn<'_>, file: &FileMove) {
        let id = file.row.id;
        if file.from == Spot::Trash && file.row.kind.is_text() {
            self.read_note(turn, id); // what was typed while it was on its way there is not in the file
        }
        let Some(note) = self.notes.get_mut(&id) else { return };
        if note.phase == Phase::Reading {
            self.notes.remove(&id).into_iter().for_each(|old| {
                self.read_note(turn, id);
                if let Some(note) = self.notes.get_mut(&id) {
                    (note.shown, note.holds, note.remote) = (old.shown, old.holds, old.remote);
                }
            });
            return;
        }
        if std::mem::take(&mut note.file.reread) {
            self.read_file(turn, id);
        }
        if self.notes.get(&id).is_some_and(|note| note.file.due.is_some()) {
            self.wake_at(turn, turn.now);
        }
    }

    /// Writes what is to be written into notes that link to moved files, some notes at a time.
    fn relink_step(&mut self, turn: &mut Turn<'_>) {
        if self.volumes.values().any(|volume| !volume.is_linked()) {
            return;
        }
        let Some(moving) = &self.moving else { return };
        let next: Vec<DocId> = moving.relinks.keys().copied().take(AT_ONCE).collect();
        let mut any = false;
        for id in next {
            let held = self.moving.as_ref().is_some_and(|moving| moving.held.contains(&id));
            if !held && self.hold_note(turn, id, true).is_ok() {
                self.moving.iter_mut().for_each(|moving| moving.held.push(id));
            }
            let over = match self.notes.get(&id) {
                None => true,
                Some(note) => match note.phase {
                    Phase::Reading => false,
                    Phase::Failed(_) => true,
                    Phase::Ready => note.read_only().is_some() || note.file.unmerged.is_none(),
                },
            };
            if over {
                self.relink(turn, id);
                any = true;
            }
        }
        if self.moving.as_ref().is_some_and(|moving| moving.relinks.is_empty()) {
            self.moving = None;
        } else if any {
            self.wake_at(turn, turn.now);
        }
    }

    /// Writes what is to be written into one note. What cannot be written is said.
    fn relink(&mut self, turn: &mut Turn<'_>, id: DocId) {
        let Some(moving) = &mut self.moving else { return };
        let Some(relinks) = moving.relinks.remove(&id) else { return };
        let held = moving.held.iter().position(|held| *held == id).map(|at| moving.held.remove(at));
        let done = Write::Meta { key: format!("{RELINK}{id}"), value: None };
        let note = self.notes.get(&id).filter(|note| note.phase == Phase::Ready && note.read_only().is_none());
        let splices: Option<Vec<Splice>> = note.map(|note| {
            let places = links::places(&note.text(), &relinks);
            places.into_iter().map(|(at, delete, insert)| Splice { at, delete, insert }).collect()
        });
        match splices {
            Some(splices) if !splices.is_empty() => {
                self.adopt(turn, id);
                if let Some(note) = self.notes.get_mut(&id) {
                    for splice in splices.iter().rev() {
                        note.undo.carry(splice.at, splice.delete, splice.insert.len());
                    }
                }
                self.splice_note(turn, id, &splices, true, vec![done]);
            }
            Some(_) => self.append(turn, vec![done], None),
            None => {
                self.append(turn, vec![done], None);
                if let Some((_, path)) = self.place(id) {
                    self.problems.push(format!("its links could not follow a move; mend them by hand: {path}"));
                }
            }
        }
        if held.is_some() {
            let _ = self.hold_note(turn, id, false); // it was held above
        }
    }

    /// A move that is under way: files first, then links.
    pub fn moving(&self) -> Option<&Moving> {
        self.moving.as_ref()
    }

    /// What lies in the trash.
    pub fn trash(&self) -> impl Iterator<Item = (DocId, &Trashed)> {
        self.trash.iter().map(|(file, trashed)| (*file, trashed))
    }

    /// Whether a move can be taken back.
    pub fn can_undo_move(&self) -> bool {
        self.moving.is_none() && !self.moved.is_empty()
    }
}

fn renamed(file: &FileMove) -> Option<(DocId, String)> {
    match (&file.from, &file.to) {
        (Spot::Path(_), Spot::Path(to)) => Some((file.row.id, to.clone())),
        (Spot::Trash, _) | (_, Spot::Trash) => None,
    }
}

fn json(key: String, value: &impl Serialize) -> Write {
    Write::Meta { key, value: Some(serde_json::to_vec(value).unwrap_or_default()) }
}

impl Moving {
    /// Whether the files are on their way: before that they lie where they lay.
    fn goes(&self) -> bool {
        self.files.iter().any(|file| file.made.is_some())
    }

    /// What is to be written into a note, once the files are where they belong.
    pub(crate) fn relinks_of(&self, note: DocId) -> Option<&[Relink]> {
        self.relinks.get(&note).map(Vec::as_slice)
    }

    /// What the disk knew of a move when the last process ended.
    pub fn unfinished(files: Vec<FileMove>, relinks: BTreeMap<DocId, Vec<Relink>>) -> Option<Moving> {
        let all = relinks.clone();
        (!files.is_empty() || !relinks.is_empty()).then(|| Moving { files, relinks, all, ..Moving::default() })
    }
}
