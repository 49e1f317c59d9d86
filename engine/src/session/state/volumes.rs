//! State of volumes: their folders and files, and the location of each file.

use crate::effect::Effect;
use crate::event::{KnownLinks, SkippedFile};
use crate::records::forks::ForkOrigin;
use crate::records::moves::{FileLocation, FileMove};
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::agent_run::AgentRun;
use agent::agent_registry::AgentVolume;
use agent::config::{VolumeSettings, read_only_sentence};
use agent::memory::place::MemoryPlace;
use agent::project_instructions::nearest_instruction_files;
use std::collections::HashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use store::disk::FileRow;
use store::disk::RowWrite;
use store::{DocId, FileEntry, FileKind, VolumeDoc, is_device_only};
use text::links;
use text::links::LinkRewrite;
use text::links::VolumeLinks;
use text::time::UnixMillis;
use user_settings::settings::Settings;

/// An instruction file that concerns a note or a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionFile {
    /// The file.
    pub file: DocId,
    /// Its volume.
    pub volume: DocId,
    /// Path in the volume.
    pub path: String,
    /// Whether agents follow it, because the user trusts the volume.
    pub is_trusted: bool,
}

/// The volumes of the workspace.
#[derive(Debug, Default)]
pub(in crate::session) struct VolumesState {
    pub(in crate::session) by_id: BTreeMap<DocId, Volume>,
    /// When folders that couldn't be read are looked at again.
    pub(in crate::session) look_again: Option<UnixMillis>,
    /// Folders of the volumes on this device.
    pub(in crate::session) mounts: BTreeMap<DocId, PathBuf>,
    /// Folders of closed volumes with id and name, so that they can be reopened as they were.
    pub(in crate::session) closed: BTreeMap<PathBuf, (DocId, String)>,
    /// Volume and path of each file.
    pub(in crate::session) locations: HashMap<DocId, (DocId, String)>,
    /// The workspace's folder, which holds private memory.
    pub(in crate::session) workspace_folder: PathBuf,
    /// Where new memory is kept; `None` to keep it where the volume already has its memory.
    pub(in crate::session) memory_place: Option<MemoryPlace>,
    /// What the configuration says of volumes.
    pub(in crate::session) settings: VolumeSettings,
    /// What each fork is a copy of, also of those that were discarded, since their runs are kept.
    pub(in crate::session) forks: BTreeMap<DocId, ForkOrigin>,
}

impl VolumesState {
    /// Returns the volumes by id, without private memory volumes and forks.
    pub(in crate::session) fn volumes(&self) -> impl Iterator<Item = &Volume> {
        self.by_id.values().filter(|volume| volume.memory_of.is_none() && volume.fork_of.is_none())
    }

    /// Returns the other volumes, whose agents can be called by name in this one, and whether the user trusts them.
    pub(in crate::session) fn agent_volumes(&self, settings: &Settings, volume: DocId) -> Vec<AgentVolume> {
        let own = [volume, self.project_of(volume)];
        let others = self.volumes().filter(|other| !own.contains(&other.id) && !other.is_unreachable);
        let of = |other: &Volume| {
            let (name, root) = (other.name.clone(), other.root.clone()?);
            Some(AgentVolume { name, root, is_trusted: self.is_trusted(settings, other.id) })
        };
        others.filter_map(of).collect()
    }

    /// Returns the volume with this id.
    pub(in crate::session) fn volume(&self, id: DocId) -> Option<&Volume> {
        self.by_id.get(&id)
    }

    /// Returns why nothing may change in a volume; `None` if it may.
    pub(in crate::session) fn read_only_reason(&self, volume: DocId) -> Option<String> {
        let name = &self.by_id.get(&volume).filter(|volume| self.settings.is_read_only(&volume.name))?.name;
        Some(read_only_sentence(name))
    }

    /// Refuses a change of a read-only volume.
    pub(in crate::session) fn ensure_writable(&self, volume: DocId) -> Result<(), CommandError> {
        let reason = self.read_only_reason(volume).or_else(|| self.unreachable_reason(volume));
        reason.map_or(Ok(()), |why| Err(CommandError(why)))
    }

    /// Returns why nothing is written into the folder of a volume now: its drive may not be connected.
    pub(in crate::session) fn unreachable_reason(&self, volume: DocId) -> Option<String> {
        let volume = self.by_id.get(&volume).filter(|volume| volume.is_unreachable)?;
        let why = volume.trouble.as_deref().unwrap_or("its folder can't be read");
        Some(format!("nothing can be written in {} now: {why}", volume.name))
    }

    /// Returns whether a note's file that isn't there has to wait for the first look into its folder: written into the
    /// empty folder of a drive that isn't connected, it would make the loss of all others believed.
    pub(in crate::session) fn awaits_first_scan(&self, note: DocId) -> bool {
        let located = self.locations.get(&note).and_then(|(id, path)| Some((self.by_id.get(id)?, path)));
        located.is_some_and(|(volume, path)| {
            volume.scans == 0 && volume.files.get(path).is_some_and(|row| row.size > 0 || row.mtime != 0)
        })
    }

    /// Looks again, after a while, whether the folders are there that couldn't be read.
    pub(in crate::session) fn step_unreachable(&mut self, turn: &mut ApplyContext<'_>) {
        let Some(due) = self.look_again else { return };
        if turn.now < due {
            return turn.wake_at(due);
        }
        self.look_again = None;
        let away: Vec<DocId> =
            self.by_id.iter().filter(|(_, volume)| volume.is_unreachable).map(|(id, _)| *id).collect();
        away.into_iter().for_each(|id| self.scan(turn, id));
    }

    /// Returns the volume whose instruction files concern a note or else a volume, and their paths.
    pub(in crate::session) fn instruction_files(
        &self,
        volume: DocId,
        note: Option<DocId>,
    ) -> Option<(&Volume, Vec<String>)> {
        let located = note.and_then(|note| self.locate_file(note));
        let (volume, place) = located.map_or((volume, None), |(volume, path)| (volume, Some(path)));
        let volume = self.by_id.get(&volume).filter(|volume| volume.root.is_some())?;
        Some((volume, nearest_instruction_files(place, &|path| volume.files.contains_key(path))))
    }

    /// Returns the instruction files that concern a note, or else a volume. The nearest comes last.
    pub(in crate::session) fn list_instruction_files(
        &self,
        settings: &Settings,
        (volume, note): (DocId, Option<DocId>),
    ) -> Vec<InstructionFile> {
        let Some((volume, paths)) = self.instruction_files(volume, note) else { return Vec::new() };
        let is_trusted = self.is_trusted(settings, volume.id);
        let file = |path: String| {
            let file = volume.files.get(&path)?.id;
            Some(InstructionFile { file, volume: volume.id, path, is_trusted })
        };
        paths.into_iter().filter_map(file).collect()
    }

    /// Returns a file's volume and its path in the volume.
    pub(in crate::session) fn locate_file(&self, file: DocId) -> Option<(DocId, &str)> {
        self.locations.get(&file).map(|(volume, path)| (*volume, path.as_str()))
    }

    pub(in crate::session) fn find_kernels(&self, turn: &mut ApplyContext<'_>, id: DocId) -> Result<(), CommandError> {
        let folder = self.note_file_path(id).and_then(|file| file.parent().map(ToOwned::to_owned));
        let Some(folder) = folder else { return Err(CommandError("the note is not open".to_owned())) };
        turn.effects.push(Effect::FindKernels { folder });
        Ok(())
    }

    /// Restores the links after a move that wasn't made.
    pub(in crate::session) fn cancel_move(&mut self, files: &[FileMove], relinks: &BTreeMap<DocId, Vec<LinkRewrite>>) {
        let Some(volume) = files.first().and_then(|file| self.by_id.get_mut(&file.row.volume)) else { return };
        for file in files {
            match &file.from {
                FileLocation::Path(path) => volume.links.set_path(file.row.id, path),
                FileLocation::Trash => {}
            }
        }
        let volume = volume.id;
        self.cancel_relinks(volume, relinks);
    }

    /// Cancels link updates in a volume; its notes stay unchanged.
    pub(in crate::session) fn cancel_relinks(&mut self, volume: DocId, relinks: &BTreeMap<DocId, Vec<LinkRewrite>>) {
        let Some(volume) = self.by_id.get_mut(&volume) else { return };
        for (note, relinks) in relinks {
            let Some(outline) = volume.links.outline(*note) else { continue };
            let back: Vec<LinkRewrite> = relinks
                .iter()
                .map(|one| LinkRewrite { kind: one.kind, old: one.new.clone(), new: one.old.clone() })
                .collect();
            let outline = links::apply_rewrites(outline, &back);
            volume.links.set_outline(*note, outline.into());
        }
    }

    pub(in crate::session) fn note_file_path(&self, id: DocId) -> Option<PathBuf> {
        let (volume, path) = self.locate_file(id)?;
        Some(self.by_id.get(&volume)?.root.as_ref()?.join(path))
    }

    /// Checks that a file is a note that can be opened; the error says why it isn't.
    pub(in crate::session) fn note_row(&self, id: DocId) -> Result<(), CommandError> {
        let Some((volume, path)) = self.locate_file(id) else {
            return Err(CommandError(format!("there is no note {id}")));
        };
        let Some(volume) = self.by_id.get(&volume) else { return Ok(()) };
        if volume.files.get(path).is_some_and(|row| !row.kind.is_text()) {
            let why = volume.demoted.iter().find(|other| other.path == path).map(|other| other.why.as_str());
            let why = why.unwrap_or("it is an attachment, not a note");
            return Err(CommandError(format!("{why}: {path}")));
        }
        if volume.root.is_none() {
            return Err(CommandError(format!("its volume has no folder on this device: {}", volume.name)));
        }
        Ok(())
    }

    /// Returns the note with this path.
    pub(in crate::session) fn find_note(&self, volume: DocId, path: &str) -> Option<DocId> {
        self.find_file(volume, path).filter(|note| self.is_note(*note))
    }

    /// Returns the file with this path; a note's extension may be omitted.
    pub(in crate::session) fn find_file(&self, volume: DocId, path: &str) -> Option<DocId> {
        let files = &self.by_id.get(&volume)?.files;
        files.get(path).or_else(|| files.get(&format!("{path}.md"))).map(|row| row.id)
    }

    pub(in crate::session) fn resolve_path(&self, volume: DocId, path: &str) -> String {
        let file = self.find_file(volume, path).and_then(|file| self.locate_file(file));
        file.map_or_else(|| path.to_owned(), |(_, path)| path.to_owned())
    }

    pub(in crate::session) fn is_note(&self, file: DocId) -> bool {
        self.locate_file(file).is_some_and(|(volume, path)| {
            let row = self.by_id.get(&volume).and_then(|volume| volume.files.get(path));
            row.is_some_and(|row| row.kind.is_text())
        })
    }

    /// Returns the path of the note that was open when the user sent the message, if any.
    pub(in crate::session) fn note_of(&self, run: &AgentRun) -> Option<String> {
        run.about.note.and_then(|note| self.locate_file(note)).map(|(_, path)| path.to_owned())
    }

    pub(in crate::session) fn is_there(&self, volume: DocId, path: &str) -> bool {
        self.find_file(volume, path.trim_start_matches("./")).is_some()
    }

    /// Returns a file's volume, its path on this device, and its entry in the volume's document. `None` if the document
    /// isn't loaded, a local change is pending, or the file isn't shared.
    pub(in crate::session) fn remote_entry(&self, file: DocId) -> Option<(DocId, String, Option<FileEntry>)> {
        let (volume, path) = self.locate_file(file)?;
        let known = self.by_id.get(&volume)?;
        // A local change that isn't recorded yet is newer.
        let ours = known.doc_pending.iter().any(|(pending, _)| *pending == file);
        let entry = known.doc.as_ref().filter(|_| !ours)?.file_entry(file);
        let is_hidden = is_device_only(path) || entry.as_ref().is_some_and(|entry| is_device_only(&entry.path));
        (!is_hidden).then(|| (volume, path.to_owned(), entry))
    }

    pub(in crate::session) fn mounts_write(&self) -> RowWrite {
        let value = serde_json::to_vec(&self.mounts).unwrap_or_default();
        RowWrite::Meta { key: "mounts".to_owned(), value: Some(value) }
    }

    pub(in crate::session) fn volume_markers(&self) -> Vec<(DocId, String, PathBuf)> {
        let mounted = |volume: &Volume| Some((volume.id, volume.name.clone(), volume.root.clone()?));
        self.by_id.values().filter_map(mounted).collect()
    }

    pub(in crate::session) fn free_name(&self, name: &str) -> String {
        let taken = |name: &str| self.by_id.values().any(|volume| volume.name == name);
        let numbered = (2_u32..).map(|number| format!("{name} {number}"));
        std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken(name)).unwrap_or_default()
    }

    pub(in crate::session) fn random_bytes(&self, turn: &mut ApplyContext<'_>) -> [u8; 16] {
        let mut bytes = [0; 16];
        turn.rng.fill_bytes(&mut bytes);
        bytes
    }

    pub(in crate::session) fn scan(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        let Some(volume) = self.by_id.get_mut(&id) else { return };
        let Some(root) = volume.root.clone().filter(|_| volume.is_read()) else { return };
        match &mut volume.scanning {
            ScanState::Running { again, .. } => *again = true,
            ScanState::Idle => {
                volume.scanning = ScanState::Running { seen: 0, again: false };
                volume.moved.clear();
                let unindexed = volume.unindexed.clone();
                turn.effects.push(Effect::Scan { volume: id, root, unindexed });
            }
        }
    }

    pub(in crate::session) fn volume_linked(&mut self, turn: &mut ApplyContext<'_>, id: DocId, known: KnownLinks) {
        let Some(volume) = self.by_id.get_mut(&id) else { return };
        let early = std::mem::replace(&mut volume.links, known.links);
        volume.links.set_volume_name(early.volume_name());
        let unindexed = std::mem::replace(&mut volume.unindexed, known.unindexed);
        volume.unindexed.extend(unindexed);
        // Changes between the two reads are newer.
        for (file, path, outline) in early.files() {
            volume.links.set_path(file, path);
            if let Some(outline) = outline {
                volume.links.set_outline(file, outline.clone());
                volume.unindexed.remove(&file);
            }
        }
        for file in volume.linking.take().into_iter().flatten() {
            if !self.locations.contains_key(&file) {
                volume.links.remove_file(file);
                volume.unindexed.remove(&file);
            }
        }
        volume.revision += 1;
        if let Some(root) = volume.root.clone() {
            turn.effects.push(Effect::Watch { volume: id, root, make: false });
        }
    }
}

/// State of a volume's scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanState {
    /// No scan is running.
    Idle,
    /// A scan is running.
    Running {
        /// Number of files checked so far.
        seen: u64,
        /// Whether another scan follows, because something has changed meanwhile.
        again: bool,
    },
}

/// A volume: a folder of ordinary files.
#[derive(Debug)]
pub struct Volume {
    /// Document id of the volume.
    pub id: DocId,
    /// Name of the volume as the user sees it.
    pub name: String,
    /// Folder of the volume on this device; `None` if the volume is on other devices only.
    pub root: Option<PathBuf>,
    /// The volume that this private memory belongs to, if it is one. Such a volume isn't listed with the others.
    pub memory_of: Option<DocId>,
    /// What this volume is a fork of, if it is one. Such a volume isn't listed with the others.
    pub fork_of: Option<ForkOrigin>,
    /// Files of the volume, by path.
    pub files: BTreeMap<String, FileRow>,
    /// Whether the volume's files are known yet.
    pub known: bool,
    /// State of the scan.
    pub scanning: ScanState,
    /// Number of scans that have ended.
    pub scans: u64,
    /// Files that the last scan skipped.
    pub skipped: Vec<SkippedFile>,
    /// Notes that are kept as attachments, with the reasons.
    pub demoted: Vec<SkippedFile>,
    /// What is wrong with the volume, for the user.
    pub trouble: Option<String>,
    /// Whether the last scan has failed, so that nothing is written into the folder.
    pub(crate) is_unreachable: bool,
    /// Counter that increases with changes to the volume's files.
    pub revision: u64,
    /// Outlines of the volume's notes, and the links between its files.
    pub links: VolumeLinks,
    /// Notes that aren't indexed yet.
    pub(in crate::session) unindexed: BTreeSet<DocId>,
    /// Notes that the last scan left unindexed, because their files can't be read or don't exist yet.
    pub(in crate::session) unreadable: BTreeSet<DocId>,
    /// Files removed while the last known links are still being read; `None` once these are loaded.
    pub(in crate::session) linking: Option<Vec<DocId>>,
    pub(in crate::session) doc: Option<Box<VolumeDoc>>,
    pub(in crate::session) doc_new: bool,
    pub(in crate::session) doc_pending: VecDeque<(DocId, Option<FileEntry>)>,
    /// Heads of deleted notes, which must be recorded before their deletion.
    pub(in crate::session) doc_heads: Vec<(DocId, String)>,
    /// Old and new paths of files moved since the running scan began; its results for them may be outdated.
    pub(in crate::session) moved: BTreeSet<String>,
}

impl Volume {
    pub(in crate::session) fn new(id: DocId, name: String, root: Option<PathBuf>) -> Volume {
        let mut links = VolumeLinks::default();
        links.set_volume_name(&name);
        Volume {
            id,
            name,
            root,
            memory_of: None,
            fork_of: None,
            files: BTreeMap::new(),
            known: false,
            scanning: ScanState::Idle,
            scans: 0,
            skipped: Vec::new(),
            demoted: Vec::new(),
            trouble: None,
            is_unreachable: false,
            revision: 0,
            links,
            unindexed: BTreeSet::new(),
            unreadable: BTreeSet::new(),
            linking: Some(Vec::new()),
            doc: None,
            doc_new: false,
            doc_pending: Default::default(),
            doc_heads: Vec::new(),
            moved: BTreeSet::new(),
        }
    }

    /// Returns whether the links, headings and tasks of all notes are known.
    pub fn is_indexed(&self) -> bool {
        self.known && self.is_linked() && self.unindexed.is_empty()
    }

    /// Returns whether the last known links are loaded.
    pub(in crate::session) fn is_linked(&self) -> bool {
        self.linking.is_none()
    }

    /// Returns whether everything on disk about the volume is loaded. Before that, a scan would take known files for
    /// new, and changes couldn't be recorded in its document.
    pub(in crate::session) fn is_read(&self) -> bool {
        self.known && self.is_linked() && (self.doc.is_some() || self.trouble.is_some())
    }

    /// Removes a file from the volume.
    pub(in crate::session) fn remove_file(&mut self, file: DocId) {
        self.links.remove_file(file);
        self.unindexed.remove(&file);
        if let Some(gone) = &mut self.linking {
            gone.push(file);
        }
    }

    /// Returns the number of notes and the number of other files in the volume.
    pub fn counts(&self) -> (u64, u64) {
        let notes = self.files.values().filter(|row| row.kind == FileKind::Note).count() as u64;
        (notes, self.files.len() as u64 - notes)
    }
}
