//! What other devices did to files: new ones, renames, deletions. Two files of one path are both kept; a note that was
//! edited here and deleted there comes back; a path that leads out of the volume is refused.

use super::super::volumes::inside;
use super::super::{Reject, Session, Turn};
use super::merges::Merged;
use crate::note::{Note, Phase};
use std::sync::Arc;
use store::disk::{FileRow, Write};
use store::{BlobHash, DocId, FileEntry, FileKind};

impl Session {
    /// The volume's document says this of a file now, since another device did.
    pub(super) fn file_told(&mut self, turn: &mut Turn<'_>, volume: DocId, file: DocId, entry: Option<FileEntry>) {
        let Some(entry) = entry else { return self.deleted_elsewhere(turn, volume, file) };
        let elsewhere = self.place(file).is_some_and(|(of, _)| of != volume);
        if elsewhere || (!self.places.contains_key(&file) && self.is_kept_alone(file)) {
            self.sync.say(turn.now, format!("a file from another device is refused: {} is something else here", file));
            return;
        }
        let known = self.place(file).map(|(_, path)| path.to_owned());
        if known.as_ref() == Some(&entry.path) {
            self.sync.renames.remove(&file);
            return;
        }
        let sound = inside(&entry.path).is_ok_and(|path| path == entry.path) && FileKind::of(&entry.path) == entry.kind;
        if !sound {
            let path: String = entry.path.chars().take(200).collect();
            self.sync.say(turn.now, format!("a file name from another device is refused: {path:?}"));
            return;
        }
        self.sync.deleted.remove(&file);
        if known.is_some() {
            self.sync.renames.insert(file, entry.path);
        } else if self.trash.contains_key(&file) {
            self.sync.restored.insert(file);
        } else if entry.kind.is_text() {
            self.sync.coming.insert(file, (volume, entry));
        }
        self.sync.touch();
    }

    fn deleted_elsewhere(&mut self, turn: &mut Turn<'_>, volume: DocId, file: DocId) {
        self.sync.renames.remove(&file);
        self.sync.restored.remove(&file);
        if self.sync.coming.remove(&file).is_some() {
            self.sync.touch();
        }
        let Some((_, path)) = self.place(file) else { return };
        let path = path.to_owned();
        let Some(known) = self.volumes.get_mut(&volume) else { return };
        let Some(row) = known.files.get(&path).cloned() else { return };
        let last = known.doc.as_ref().and_then(|doc| doc.last_heads(file));
        let typed = self.notes.get(&file).is_some_and(Note::is_ahead);
        if typed || last.is_some_and(|last| last != heads_text(&row.heads)) {
            // Edited since the other device saw it: it stays, and comes back there.
            known.doc_pending.push_back((file, Some(FileEntry { path: path.clone(), kind: row.kind })));
            self.sync.say(turn.now, format!("{path} was deleted on another device and edited on this one: it stays"));
            self.report_file(turn, file, &path, Merged::Kept);
            self.write_volume_doc(turn, volume);
        } else {
            self.sync.deleted.insert(file);
        }
    }

    /// Whether a name belongs to something here that is no file: no volume can have it for one.
    fn is_kept_alone(&self, id: DocId) -> bool {
        id == self.workspace || id == self.workspace.registry() || self.volumes.contains_key(&id) || self.is_kept(id)
    }

    /// Does to the files here what others did to theirs, one move at a time.
    pub(super) fn move_files_of_others(&mut self, turn: &mut Turn<'_>) {
        if self.nothing_moves().is_err() {
            return;
        }
        if let Some(file) = self.sync.restored.pop_first() {
            let to = self.trash.get(&file).and_then(|trashed| {
                let volume = self.volumes.get(&trashed.row.volume)?;
                volume.doc.as_ref()?.entry(file).map(|entry| entry.path)
            });
            if let Err(Reject(why)) = self.restore_file(turn, file, to.as_deref()) {
                self.sync.say(turn.now, format!("a note that another device brought back stays in the trash: {why}"));
            } else if let Some(to) = to {
                self.sync.say(turn.now, format!("{to} was brought back: it was edited on another device"));
                self.report_file(turn, file, &to, Merged::Back);
                self.sync.echoes.insert((file, Some(to)));
            }
        } else if let Some(file) = self.sync.deleted.pop_first() {
            let path = self.place(file).map_or_else(String::new, |(_, path)| path.to_owned());
            match self.delete_files(turn, &[file]) {
                Ok(()) => {
                    self.sync.echoes.insert((file, None));
                    self.sync.say(turn.now, format!("{path} was deleted on another device: it is in the trash"));
                    self.report_file(turn, file, &path, Merged::Deleted);
                }
                Err(Reject(why)) => self.sync.say(turn.now, format!("{path} was deleted on another device: {why}")),
            }
        } else if let Some((file, to)) = self.sync.renames.pop_first() {
            self.renamed_by_others(turn, file, to);
        }
    }

    fn renamed_by_others(&mut self, turn: &mut Turn<'_>, file: DocId, to: String) {
        let Some((volume, from)) = self.place(file).map(|(volume, path)| (volume, path.to_owned())) else { return };
        let taken = self.volumes.get(&volume).and_then(|volume| volume.files.get(&to)).map(|row| row.id);
        let (file, to, echo) = match taken {
            Some(other) if other != file && other < file => (file, beside(&to, file), false),
            Some(other) if other != file => {
                // The other one makes room first.
                self.sync.renames.insert(file, to.clone());
                (other, beside(&to, other), false)
            }
            _ => (file, to, true),
        };
        match self.move_files(turn, &[(file, to.clone())]) {
            Ok(()) => {
                if echo {
                    self.sync.echoes.insert((file, Some(to.clone())));
                    self.report_file(turn, file, &to, Merged::Renamed { from: from.clone() });
                }
                let was = if echo { from } else { "a file".to_owned() };
                self.sync.say(turn.now, format!("{was} is called {to} now, as on another device"));
            }
            Err(Reject(why)) => self.sync.say(turn.now, format!("{from} could not be renamed to {to}: {why}")),
        }
    }

    /// Notes whose text has come are made, where their place is free or can be made so.
    pub(super) fn place_what_arrived(&mut self, turn: &mut Turn<'_>) {
        if self.sync.arrived.is_empty() {
            return;
        }
        let mut waits = Vec::new();
        for (file, bytes) in std::mem::take(&mut self.sync.arrived) {
            if self.places.contains_key(&file) {
                self.remote(turn, file, bytes);
                continue;
            }
            let Some((volume, entry)) = self.sync.coming.get(&file).cloned() else { continue };
            let Some(known) = self.volumes.get(&volume) else { continue };
            match known.files.get(&entry.path).map(|row| row.id) {
                None => {
                    self.arrive(turn, volume, file, entry, false);
                    self.remote(turn, file, bytes);
                }
                // Both are kept: the lower name keeps its path, on all devices alike.
                Some(other) if other < file => {
                    let path = beside(&entry.path, file);
                    self.sync.say(turn.now, format!("{}: two devices made it; the other is {path}", entry.path));
                    self.report_file(turn, other, &entry.path, Merged::Twins { other: file, called: path.clone() });
                    self.arrive(turn, volume, file, FileEntry { path, kind: entry.kind }, true);
                    self.remote(turn, file, bytes);
                }
                Some(other) => {
                    if self.nothing_moves().is_ok() {
                        let path = beside(&entry.path, other);
                        self.sync.say(turn.now, format!("{}: two devices made it; ours is {path} now", entry.path));
                        self.report_file(turn, file, &entry.path, Merged::Twins { other, called: path.clone() });
                        let _ = self.move_files(turn, &[(other, path)]);
                    }
                    waits.push((file, bytes));
                }
            }
        }
        if !waits.is_empty() {
            self.sync.arrived = waits;
            self.wake_at(turn, turn.now.plus(50));
        }
    }

    /// Enters a note of another device. `renamed`: under another path than the volume's document has.
    fn arrive(&mut self, turn: &mut Turn<'_>, volume_id: DocId, file: DocId, entry: FileEntry, renamed: bool) {
        let Some(volume) = self.volumes.get_mut(&volume_id) else { return };
        let FileEntry { path, kind } = entry;
        let row = FileRow {
            volume: volume_id,
            path: path.clone(),
            id: file,
            kind,
            size: 0,
            mtime: 0,
            hash: BlobHash::of(b""),
            blocks: 0,
            cells: 0,
            heads: Vec::new(),
        };
        volume.files.insert(path.clone(), row.clone());
        volume.revision += 1;
        volume.links.enter(file, &path);
        if renamed {
            volume.doc_pending.push_back((file, Some(FileEntry { path: path.clone(), kind })));
        }
        self.places.insert(file, (volume_id, path));
        self.sync.coming.remove(&file);
        self.append(turn, vec![Write::File(row)], None);
        self.begin_arrived(turn, file, volume_id);
        self.write_volume_doc(turn, volume_id);
        self.sync.touch();
    }

    /// An empty note, into which the text of another device is merged.
    pub(super) fn begin_arrived(&mut self, turn: &mut Turn<'_>, file: DocId, volume: DocId) {
        let kind = self.place(file).map_or(FileKind::Note, |(_, path)| FileKind::of(path));
        let mut note = Note::new(file, volume, kind);
        note.phase = Phase::Ready;
        note.file.base = Some(Arc::from(""));
        self.notes.insert(file, note);
        self.adopt(turn, file);
    }
}

/// The name of a file beside another of the same name: the same on every device.
pub(super) fn beside(path: &str, file: DocId) -> String {
    let mark: String = file.to_string().chars().take(4).collect();
    marked(path, &mark)
}

/// The name of a file with a mark behind it.
pub(super) fn marked(path: &str, mark: &str) -> String {
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let (stem, ending) = name.rsplit_once('.').map_or((name, ""), |(stem, ending)| (stem, ending));
    let name = if ending.is_empty() { format!("{stem} ({mark})") } else { format!("{stem} ({mark}).{ending}") };
    if folder.is_empty() { name } else { format!("{folder}/{name}") }
}

/// Heads as the volume's document keeps them.
pub(in crate::session) fn heads_text(heads: &[[u8; 32]]) -> String {
    let hex = |head: &[u8; 32]| head.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut heads: Vec<String> = heads.iter().map(hex).collect();
    heads.sort_unstable();
    heads.join(" ")
}
