//! Volumes: the state of each folder of files.

use crate::event::SkippedFile;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use store::disk::FileRow;
use store::{DocId, FileEntry, FileKind, VolumeDoc};
use text::links::VolumeLinks;

/// How a scan goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanState {
    /// Not yet, or over.
    Idle,
    /// A scan is running. `again`: something changed meanwhile, so another scan follows.
    Running {
        /// Number of files looked at so far.
        seen: u64,
        /// Scan once more afterwards.
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
    /// Its folder on this device; `None` if it's on other devices only.
    pub root: Option<PathBuf>,
    /// Its files by path.
    pub files: BTreeMap<String, FileRow>,
    /// Whether its files are known yet.
    pub known: bool,
    /// How the scan goes.
    pub scanning: ScanState,
    /// How often a scan has ended.
    pub scans: u64,
    /// What the last scan left out.
    pub skipped: Vec<SkippedFile>,
    /// Notes that are kept as attachments, and why.
    pub demoted: Vec<SkippedFile>,
    /// What is wrong with it, for the user.
    pub trouble: Option<String>,
    /// Counts changes of `note_files`.
    pub revision: u64,
    /// What its notes hold, and which links where.
    pub links: VolumeLinks,
    /// Notes that aren't indexed yet.
    pub(in crate::session) unindexed: BTreeSet<DocId>,
    /// Files that went away while the links of the last time are still being read; `None` once these are here.
    pub(in crate::session) linking: Option<Vec<DocId>>,
    pub(in crate::session) doc: Option<Box<VolumeDoc>>,
    pub(in crate::session) doc_new: bool,
    pub(in crate::session) doc_pending: VecDeque<(DocId, Option<FileEntry>)>,
    /// What deleted notes held, to be said before it is said that they are gone.
    pub(in crate::session) doc_heads: Vec<(DocId, String)>,
    /// Old and new paths of files moved since the running scan began; its results for them may be outdated.
    pub(in crate::session) moved: BTreeSet<String>,
}

impl Volume {
    pub(in crate::session) fn new(id: DocId, name: String, root: Option<PathBuf>) -> Volume {
        Volume {
            id,
            name,
            root,
            files: BTreeMap::new(),
            known: false,
            scanning: ScanState::Idle,
            scans: 0,
            skipped: Vec::new(),
            demoted: Vec::new(),
            trouble: None,
            revision: 0,
            links: VolumeLinks::default(),
            unindexed: BTreeSet::new(),
            linking: Some(Vec::new()),
            doc: None,
            doc_new: false,
            doc_pending: Default::default(),
            doc_heads: Vec::new(),
            moved: BTreeSet::new(),
        }
    }

    /// Whether it is known of all its notes what they hold that others refer to.
    pub fn is_indexed(&self) -> bool {
        self.known && self.is_linked() && self.unindexed.is_empty()
    }

    /// Whether the links that were known when it was closed are here again.
    pub(in crate::session) fn is_linked(&self) -> bool {
        self.linking.is_none()
    }

    /// Whether everything on disk about the volume is loaded. Before that, a scan would take known files for new, and
    /// changes couldn't be recorded in its document.
    pub(in crate::session) fn is_read(&self) -> bool {
        self.known && self.is_linked() && (self.doc.is_some() || self.trouble.is_some())
    }

    /// Removes a file from the volume.
    pub(in crate::session) fn remove_file(&mut self, file: DocId) {
        self.links.remove_file(file);
        if let Some(gone) = &mut self.linking {
            gone.push(file);
        }
    }

    /// How many notes and attachments it has.
    pub fn counts(&self) -> (u64, u64) {
        let notes = self.files.values().filter(|row| row.kind == FileKind::Note).count() as u64;
        (notes, self.files.len() as u64 - notes)
    }
}
