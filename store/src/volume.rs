//! The volume document: maps file ids to paths, so that a rename never conflicts with an edit.

use crate::document::{self, ChangeParcel, LoadedDocument, MergeOutcome};
use crate::error::StoreError;
use crate::id::{BlobHash, DocId};
use crate::keys;
use crate::note::find_container;
use crate::schema::DocumentKind;
use crate::sync::inflate;
use automerge::legacy::{Key, ObjectId, OpId, OpType};
use automerge::transaction::{CommitOptions, Transactable};
use automerge::{ActorId, Automerge, AutomergeError, ObjId, ObjType, ROOT, ReadDoc};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::catch_unwind;

/// How Tracebook treats a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A Markdown file, stored as a document.
    Note,
    /// A `.base` file, a view over the properties of notes. Also stored as a document.
    Collection,
    /// A `.py` file, a single Python cell. Also stored as a document.
    Script,
    /// Any other file. Its bytes aren't interpreted.
    Attachment,
}

/// Whether a file is hidden, by its own name or a folder's. Hidden attachments stay on their device.
pub fn is_hidden(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.'))
}

/// Whether a file is never shared: a hidden one that isn't text. Other devices can't move or delete such a file, nor
/// make one of another.
pub fn is_device_only(path: &str) -> bool {
    is_hidden(path) && !FileKind::from_path(path).is_text()
}

impl FileKind {
    /// Returns the name used in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            FileKind::Note => "note",
            FileKind::Collection => "collection",
            FileKind::Script => "script",
            FileKind::Attachment => "attachment",
        }
    }

    /// Returns the kind of a file by its name.
    pub fn from_path(path: &str) -> FileKind {
        let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("md" | "markdown") => FileKind::Note,
            Some("base") => FileKind::Collection,
            Some("py") => FileKind::Script,
            Some(_) | None => FileKind::Attachment,
        }
    }

    /// Whether the file's text is stored as a document and can be edited in Tracebook.
    pub fn is_text(self) -> bool {
        match self {
            FileKind::Note | FileKind::Collection | FileKind::Script => true,
            FileKind::Attachment => false,
        }
    }
}

/// A file of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path inside the volume, with `/` between parts.
    pub path: String,
    /// Kind of file: note, collection, script or attachment.
    pub kind: FileKind,
}

/// Hash and size of an attachment's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileBytes {
    /// BLAKE3 hash of the bytes.
    pub hash: BlobHash,
    /// Size in bytes.
    pub size: u64,
}

/// Kinds of documents that a volume's document lists besides its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListedDocumentKind {
    /// A conversation with an agent.
    Session,
    /// A run of an agent.
    Run,
}

impl ListedDocumentKind {
    /// Returns the prefix of its key in the document.
    fn key_prefix(self) -> &'static str {
        match self {
            ListedDocumentKind::Session => keys::SESSION,
            ListedDocumentKind::Run => keys::RUN,
        }
    }

    fn parse_key(key: &str) -> Option<(ListedDocumentKind, DocId)> {
        [ListedDocumentKind::Session, ListedDocumentKind::Run].into_iter().find_map(|kind| {
            let id = key.strip_prefix(kind.key_prefix())?.parse().ok()?;
            Some((kind, id))
        })
    }
}

/// Entries affected by other devices' changes, in their current state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeChanges {
    /// Files that changed; `None` for those that were deleted.
    pub files: Vec<(DocId, Option<FileEntry>)>,
    /// Sessions and runs; for deleted ones, the heads that the deleting device knew.
    pub listed: Vec<(ListedDocumentKind, DocId, Option<String>)>,
}

/// The automerge document of a volume.
pub struct VolumeDoc {
    doc: Automerge,
    files: ObjId,
    /// The file that each object belongs to, because changes from other devices name objects only.
    owners: HashMap<ObjId, DocId>,
}

impl std::fmt::Debug for VolumeDoc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VolumeDoc")
    }
}

impl VolumeDoc {
    /// Loads the volume from its chunks. Further changes are written under `actor`.
    ///
    /// # Errors
    /// Returns an error if the document is damaged, has a newer schema, or is of another kind.
    pub fn load(id: DocId, chunks: &[Vec<u8>], actor: ActorId) -> Result<LoadedDocument<VolumeDoc>, StoreError> {
        let LoadedDocument { doc, bad_chunks: bad } = document::load_document(id, DocumentKind::Volume, chunks, actor)?;
        let files = find_container(&doc, id, keys::FILES)?;
        Ok(LoadedDocument { doc: VolumeDoc { doc, files, owners: HashMap::new() }, bad_chunks: bad })
    }

    /// Saves the whole document as one chunk.
    pub fn save(&self) -> Vec<u8> {
        self.doc.save()
    }

    /// Returns the volume's name, if it has one.
    pub fn name(&self) -> Option<String> {
        let (name, _) = self.doc.get(ROOT, keys::NAME).ok()??;
        name.as_str().map(str::to_owned)
    }

    /// Returns all existing files.
    pub fn files(&self) -> BTreeMap<DocId, FileEntry> {
        let keys: Vec<String> = self.doc.keys(&self.files).collect();
        keys.into_iter().filter_map(|key| Some((key.parse().ok()?, self.read_file_entry(&key)?))).collect()
    }

    /// Returns a file's entry, if it exists.
    pub fn file_entry(&self, id: DocId) -> Option<FileEntry> {
        self.read_file_entry(&id.to_string())
    }

    /// Whether a file is listed, even if it was deleted.
    pub fn is_listed(&self, id: DocId) -> bool {
        self.doc.get(&self.files, id.to_string()).ok().flatten().is_some()
    }

    /// Returns hash and size of an attachment's bytes, if a device has recorded them.
    pub fn attachment_bytes(&self, id: DocId) -> Option<FileBytes> {
        let (_, file) = self.doc.get(&self.files, id.to_string()).ok()??;
        let (bytes, _) = self.doc.get(&file, keys::BYTES).ok()??;
        let (hash, size) = bytes.as_str()?.split_once(' ')?;
        Some(FileBytes { hash: hash.parse().ok()?, size: size.parse().ok()? })
    }

    /// Returns the hashes that other devices concurrently set for an attachment: all except the one that
    /// [`VolumeDoc::attachment_bytes`] returns.
    pub fn rival_hashes(&self, id: DocId) -> Vec<BlobHash> {
        let bytes = self.attachment_bytes(id).map(|bytes| bytes.hash);
        let Ok(Some((_, file))) = self.doc.get(&self.files, id.to_string()) else { return Vec::new() };
        let all = self.doc.get_all(&file, keys::BYTES).unwrap_or_default();
        let hashes = all.iter().filter_map(|(value, _)| value.as_str()?.split_once(' ')?.0.parse::<BlobHash>().ok());
        hashes.filter(|hash| Some(*hash) != bytes).collect()
    }

    /// Sets hash and size of the bytes of listed attachments. Returns the chunk to append.
    ///
    /// # Errors
    /// Returns automerge's error if the change fails.
    pub fn set_attachment_bytes(&mut self, files: &[(DocId, FileBytes)], time: i64) -> Result<Vec<u8>, StoreError> {
        let before = self.doc.get_heads();
        let container = &self.files;
        let made = self.doc.transact_with::<_, _, AutomergeError, _>(
            |()| CommitOptions::default().with_time(time),
            |tx| {
                for (id, bytes) in files {
                    if let Some((_, file)) = tx.get(container, id.to_string())? {
                        tx.put(&file, keys::BYTES, format!("{} {}", bytes.hash, bytes.size))?;
                    }
                }
                Ok(())
            },
        );
        made.map_err(|failure| StoreError::Automerge(failure.error))?;
        Ok(document::save_since(&self.doc, &before))
    }

    /// Returns the heads of the note's document when it was deleted, as the deleting device knew them.
    pub fn last_heads(&self, id: DocId) -> Option<String> {
        let (_, file) = self.doc.get(&self.files, id.to_string()).ok()??;
        let (heads, _) = self.doc.get(&file, keys::LAST_HEADS).ok()??;
        heads.as_str().map(str::to_owned)
    }

    /// Records the last heads of notes that are about to be deleted. Returns the chunk to append.
    ///
    /// # Errors
    /// Returns automerge's error if the change fails.
    pub fn set_last_heads(&mut self, files: &[(DocId, String)], time: i64) -> Result<Vec<u8>, StoreError> {
        let before = self.doc.get_heads();
        let container = &self.files;
        let made = self.doc.transact_with::<_, _, AutomergeError, _>(
            |()| CommitOptions::default().with_time(time),
            |tx| {
                for (id, heads) in files {
                    if let Some((_, file)) = tx.get(container, id.to_string())? {
                        tx.put(&file, keys::LAST_HEADS, heads.as_str())?;
                    }
                }
                Ok(())
            },
        );
        made.map_err(|failure| StoreError::Automerge(failure.error))?;
        Ok(document::save_since(&self.doc, &before))
    }

    /// Returns the sessions and runs; for deleted ones, the heads that the deleting device knew.
    pub fn listed_documents(&self) -> Vec<(ListedDocumentKind, DocId, Option<String>)> {
        let keys: Vec<String> = self.doc.keys(ROOT).collect();
        let known = keys.iter().filter_map(|key| ListedDocumentKind::parse_key(key));
        known.filter_map(|(kind, id)| Some((kind, id, self.listed_heads(kind, id)?))).collect()
    }

    /// Returns all documents that belong to the volume: its own, its text files and their outputs, sessions, runs and
    /// tools.
    pub fn all_documents(&self, id: DocId) -> BTreeSet<DocId> {
        let texts = self.files().into_iter().filter(|(_, entry)| entry.kind.is_text());
        let texts = texts.flat_map(|(file, _)| [file, file.outputs_id()]);
        let kept = self.listed_documents().into_iter().filter(|(_, _, gone)| gone.is_none()).map(|(_, id, _)| id);
        texts.chain(kept).chain([id, id.tools_id()]).collect()
    }

    /// Returns all documents that changes of a volume's document name, without loading that document: added ones, and
    /// those whose entry changes, such as deletions. `None` if the changes alone don't contain enough information.
    pub fn documents_in_changes(changes: &[u8]) -> Option<BTreeSet<DocId>> {
        let mut named = BTreeSet::new();
        for (kind, bytes) in inflate::split_chunks(changes)? {
            if kind != inflate::ChunkKind::Change {
                return None;
            }
            let change = catch_unwind(|| automerge::Change::from_bytes(bytes.to_vec()).map(|change| change.decode()));
            let change = change.ok()?.ok()?;
            let is_new = |object: &OpId| object.1 == change.actor_id && object.0 >= change.start_op.get();
            for op in &change.operations {
                let Key::Map(key) = &op.key else { continue };
                // A file that was restored or became a note: its object doesn't say which file it is.
                let tells = key == keys::FILE_KIND || key == keys::GONE && matches!(op.action, OpType::Delete);
                if tells && matches!(&op.obj, ObjectId::Id(object) if !is_new(object)) {
                    return None;
                }
                if let Ok(file) = key.parse::<DocId>() {
                    named.extend([file, file.outputs_id()]);
                }
                named.extend(ListedDocumentKind::parse_key(key).map(|(_, id)| id));
            }
        }
        Some(named)
    }

    /// Returns whether a session or a run is listed, and the heads of a deleted one.
    fn listed_heads(&self, kind: ListedDocumentKind, id: DocId) -> Option<Option<String>> {
        let (value, _) = self.doc.get(ROOT, format!("{}{id}", kind.key_prefix())).ok()??;
        let word = value.as_str()?;
        Some(word.strip_prefix(keys::GONE).map(|heads| heads.trim().to_owned()))
    }

    /// Lists sessions and runs (`None`), or marks them as deleted with their last heads. Returns the chunk to append.
    ///
    /// # Errors
    /// Returns automerge's error if the change fails.
    pub fn list_documents(
        &mut self,
        entries: &[(ListedDocumentKind, DocId, Option<String>)],
        time: i64,
    ) -> Result<Vec<u8>, StoreError> {
        let before = self.doc.get_heads();
        let made = self.doc.transact_with::<_, _, AutomergeError, _>(
            |()| CommitOptions::default().with_time(time),
            |tx| {
                for (kind, id, gone) in entries {
                    let value = gone.as_ref().map_or_else(String::new, |heads| format!("{} {heads}", keys::GONE));
                    tx.put(ROOT, format!("{}{id}", kind.key_prefix()), value)?;
                }
                Ok(())
            },
        );
        made.map_err(|failure| StoreError::Automerge(failure.error))?;
        Ok(document::save_since(&self.doc, &before))
    }

    /// Merges changes from another device and returns the affected entries in their current state.
    ///
    /// # Errors
    /// Returns [`StoreError::Damaged`] if the bytes can't be read. Nothing is merged then.
    pub fn merge(&mut self, id: DocId, bytes: &[u8]) -> Result<VolumeChanges, StoreError> {
        self.merge_loaded(id, bytes, None)
    }

    /// Merges received changes, which may already be loaded. The parcel keeps its bytes.
    ///
    /// # Errors
    /// Returns [`StoreError::Damaged`] if the bytes can't be read. Nothing is merged then.
    pub fn merge_parcel(&mut self, id: DocId, parcel: &mut ChangeParcel) -> Result<VolumeChanges, StoreError> {
        let read = parcel.loaded.take();
        self.merge_loaded(id, &parcel.bytes, read)
    }

    fn merge_loaded(
        &mut self,
        id: DocId,
        bytes: &[u8],
        read: Option<Box<Automerge>>,
    ) -> Result<VolumeChanges, StoreError> {
        if self.owners.is_empty() {
            let keys: Vec<String> = self.doc.keys(&self.files).collect();
            keys.iter().filter_map(|key| key.parse().ok()).for_each(|id| self.index_file(id));
        }
        let (files, owners) = (&self.files, &self.owners);
        let mut touched: BTreeSet<DocId> = BTreeSet::new();
        let mut listed: BTreeSet<(ListedDocumentKind, DocId)> = BTreeSet::new();
        let merged = document::merge_changes(id, &mut self.doc, bytes, read, |change| {
            for op in &change.operations {
                let ObjectId::Id(object) = &op.obj else {
                    match &op.key {
                        Key::Map(key) => listed.extend(ListedDocumentKind::parse_key(key)),
                        Key::Seq(_) => {}
                    }
                    continue;
                };
                let object = ObjId::Id(object.0, object.1.clone(), 0);
                match &op.key {
                    Key::Map(key) if object == *files => touched.extend(key.parse::<DocId>().ok()),
                    Key::Map(_) | Key::Seq(_) => touched.extend(owners.get(&object)),
                }
            }
        })?;
        if merged == MergeOutcome::Replaced {
            touched.extend(self.doc.keys(&self.files).filter_map(|key| key.parse::<DocId>().ok()));
            listed.extend(self.doc.keys(ROOT).filter_map(|key| ListedDocumentKind::parse_key(&key)));
        }
        touched.iter().for_each(|id| self.index_file(*id));
        let kept = listed.into_iter().filter_map(|(kind, id)| Some((kind, id, self.listed_heads(kind, id)?))).collect();
        Ok(VolumeChanges { files: touched.into_iter().map(|id| (id, self.file_entry(id))).collect(), listed: kept })
    }

    fn index_file(&mut self, id: DocId) {
        if let Ok(Some((_, object))) = self.doc.get(&self.files, id.to_string()) {
            self.owners.insert(object, id);
        }
    }

    fn read_file_entry(&self, key: &str) -> Option<FileEntry> {
        let (_, file) = self.doc.get(&self.files, key).ok()??;
        if self.doc.get(&file, keys::GONE).ok()?.is_some_and(|(gone, _)| gone.as_bool() == Some(true)) {
            return None;
        }
        let (path, _) = self.doc.get(&file, keys::PATH).ok()??;
        let (kind, _) = self.doc.get(&file, keys::FILE_KIND).ok()??;
        let kind = match kind.as_str()? {
            "note" => FileKind::Note,
            "collection" => FileKind::Collection,
            "script" => FileKind::Script,
            _ => FileKind::Attachment,
        };
        Some(FileEntry { path: path.as_str()?.to_owned(), kind })
    }

    /// Commits one change: sets the name, if given, and the given files' entries (`None`: deleted). Returns the chunk
    /// to append.
    ///
    /// # Errors
    /// Returns automerge's error if the change fails.
    pub fn commit(
        &mut self,
        name: Option<&str>,
        files: &[(DocId, Option<FileEntry>)],
        time: i64,
    ) -> Result<Vec<u8>, StoreError> {
        let before = self.doc.get_heads();
        let container = &self.files;
        let made = self.doc.transact_with::<_, _, AutomergeError, _>(
            |()| CommitOptions::default().with_time(time),
            |tx| {
                if let Some(name) = name {
                    tx.put(ROOT, keys::NAME, name)?;
                }
                for (id, entry) in files {
                    let key = id.to_string();
                    let known = tx.get(container, key.as_str())?.map(|(_, file)| file);
                    match (known, entry) {
                        (None, Some(entry)) => {
                            // Creating the entry in one step costs half as much. Opening a folder can add many
                            // thousands of files.
                            let path = (keys::PATH, entry.path.as_str().into());
                            let fields = HashMap::from([path, (keys::FILE_KIND, entry.kind.as_str().into())]);
                            tx.batch_create_object(container, key.as_str(), &fields.into(), false)?;
                        }
                        (Some(file), Some(entry)) => {
                            tx.put(&file, keys::PATH, entry.path.as_str())?;
                            let kind = tx.get(&file, keys::FILE_KIND)?;
                            if kind.is_none_or(|(kind, _)| kind.as_str() != Some(entry.kind.as_str())) {
                                tx.put(&file, keys::FILE_KIND, entry.kind.as_str())?;
                            }
                            if tx.get(&file, keys::GONE)?.is_some() {
                                tx.delete(&file, keys::GONE)?;
                            }
                        }
                        (Some(file), None) => tx.put(&file, keys::GONE, true)?,
                        (None, None) => {
                            let file = tx.put_object(container, key.as_str(), ObjType::Map)?;
                            tx.put(&file, keys::GONE, true)?;
                        }
                    }
                }
                Ok(())
            },
        );
        made.map_err(|failure| StoreError::Automerge(failure.error))?;
        if !self.owners.is_empty() {
            files.iter().for_each(|(id, _)| self.index_file(*id));
        }
        Ok(document::save_since(&self.doc, &before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VOLUME: DocId = DocId([1; 16]);

    /// An action on a volume: which of two devices, the kind of action, and the file.
    type Deed = (bool, u8, u8);

    /// Performs an action and returns the changes.
    fn act(volume: &mut VolumeDoc, (_, deed, which): Deed, time: i64) -> Vec<u8> {
        let file = DocId([16 + which; 16]);
        let entry = |folder: &str, kind| Some(FileEntry { path: format!("{folder}/{which}"), kind });
        let made = match deed {
            0 | 1 => volume.commit(None, &[(file, entry("a", FileKind::Note))], time),
            2 => volume.commit(None, &[(file, entry("b", FileKind::Script))], time),
            3 => volume.commit(None, &[(file, entry("c", FileKind::Attachment))], time),
            4 | 5 => volume.commit(None, &[(file, None)], time),
            6 => volume.list_documents(&[(ListedDocumentKind::Session, DocId([64 + which; 16]), None)], time),
            7 => volume.list_documents(&[(ListedDocumentKind::Run, DocId([96 + which; 16]), None)], time),
            8 => volume.list_documents(
                &[(ListedDocumentKind::Session, DocId([64 + which; 16]), Some("heads".to_owned()))],
                time,
            ),
            _ => volume.set_last_heads(&[(file, "heads".to_owned())], time),
        };
        made.expect("made")
    }

    proptest! {
        /// Checks the list of documents that a hub keeps, which only grows by the documents named in changes. It must
        /// contain all documents of the rebuilt list, and otherwise only documents that were deleted.
        #[test]
        fn what_changes_name_keeps_a_list_whole(
            deeds in proptest::collection::vec((any::<bool>(), 0..10_u8, 0..6_u8), 1..60),
            begun in 0..30_usize,
        ) {
            let load = |actor| VolumeDoc::load(VOLUME, &[], ActorId::from([actor; 16])).expect("loaded").doc;
            // Two devices that sync with a delay, and the hub's document.
            let (mut devices, mut hub) = ([load(2), load(3)], load(9));
            let (mut kept, mut ever) = (None, BTreeSet::new());
            for (at, deed) in deeds.into_iter().enumerate() {
                if at == begun {
                    kept = Some(hub.all_documents(VOLUME));
                }
                let [one, two] = &mut devices;
                let (writer, other) = if deed.0 { (one, two) } else { (two, one) };
                let changes = act(writer, deed, at as i64);
                if deed.2 % 2 == 0 {
                    other.merge(VOLUME, &writer.save()).expect("merged");
                }
                if changes.is_empty() {
                    continue;
                }
                hub.merge(VOLUME, &changes).expect("merged");
                ever.extend(hub.all_documents(VOLUME));
                let files = (0..6).map(|which| DocId([16 + which; 16])).filter(|file| hub.is_listed(*file));
                ever.extend(files.flat_map(|file| [file, file.outputs_id()]));
                ever.extend(hub.listed_documents().into_iter().map(|(_, id, _)| id));
                if let Some(kept) = &mut kept {
                    match VolumeDoc::documents_in_changes(&changes) {
                        Some(named) => kept.extend(named),
                        None => *kept = hub.all_documents(VOLUME),
                    }
                    let now = hub.all_documents(VOLUME);
                    prop_assert!(now.is_subset(kept), "{:?} are missing", now.difference(kept));
                    let more: Vec<&DocId> = kept.iter().filter(|doc| !ever.contains(*doc)).collect();
                    prop_assert!(more.is_empty(), "{more:?} never were of it");
                }
            }
        }
    }

    #[test]
    fn changes_name_the_documents_that_they_add() {
        let mut volume = VolumeDoc::load(DocId([1; 16]), &[], ActorId::from([2; 16])).expect("loaded").doc;
        let (one, two, session) = (DocId([4; 16]), DocId([5; 16]), DocId([6; 16]));
        let entry = |path: &str| Some(FileEntry { path: path.to_owned(), kind: FileKind::Note });
        let mut changes = volume.commit(None, &[(one, entry("a.md"))], 1).expect("made");
        assert_eq!(VolumeDoc::documents_in_changes(&changes), Some([one, one.outputs_id()].into()));
        changes.extend(volume.commit(None, &[(two, entry("b.md"))], 2).expect("made"));
        changes.extend(volume.list_documents(&[(ListedDocumentKind::Session, session, None)], 3).expect("listed"));
        let all = [one, one.outputs_id(), two, two.outputs_id(), session];
        assert_eq!(VolumeDoc::documents_in_changes(&changes), Some(all.into()));
        let id = DocId([1; 16]);
        let has = volume.all_documents(id);
        assert!(all.iter().all(|doc| has.contains(doc)) && has.len() == all.len() + 2, "{has:?}");
        assert_eq!(VolumeDoc::documents_in_changes(&volume.save()), None, "of all of it that cannot be said");
        assert_eq!(VolumeDoc::documents_in_changes(&changes[..changes.len() - 1]), None);
        assert_eq!(VolumeDoc::documents_in_changes(b"no changes"), None);
    }

    #[test]
    fn what_another_device_did_to_files_is_seen() {
        let id = DocId([1; 16]);
        let load = |actor| VolumeDoc::load(id, &[], ActorId::from([actor; 16])).expect("loaded").doc;
        let (mut here, mut there) = (load(2), load(3));
        let (one, two, three) = (DocId([4; 16]), DocId([5; 16]), DocId([9; 16]));
        let entry = |path: &str| Some(FileEntry { path: path.to_owned(), kind: FileKind::Note });
        here.commit(Some("V"), &[(one, entry("a.md")), (two, entry("b.md"))], 1).expect("made");
        assert_eq!(there.merge(id, &here.save()).expect("merged").files, [(one, entry("a.md")), (two, entry("b.md"))]);
        assert_eq!(there.name().as_deref(), Some("V"));
        let renamed = there.commit(None, &[(two, entry("c.md"))], 2).expect("renamed");
        assert_eq!(here.merge(id, &renamed).expect("merged").files, [(two, entry("c.md"))]);
        let kept = there.set_last_heads(&[(one, "heads".to_owned())], 3).expect("kept");
        here.merge(id, &kept).expect("merged");
        let gone = there.commit(None, &[(one, None)], 3).expect("gone");
        assert_eq!(here.merge(id, &gone).expect("merged").files, [(one, None)]);
        assert_eq!(here.last_heads(one).as_deref(), Some("heads"));
        assert!(here.merge(id, &gone).expect("again").files.is_empty());
        // Hash and size of an attachment's bytes.
        let picture = Some(FileEntry { path: "a.png".to_owned(), kind: FileKind::Attachment });
        let two_bytes = FileBytes { hash: BlobHash::of(b"ab"), size: 2 };
        let listed = here.commit(None, &[(three, picture.clone())], 3).expect("listed");
        there.merge(id, &listed).expect("merged");
        assert_eq!(there.attachment_bytes(three), None);
        let said = here.set_attachment_bytes(&[(three, two_bytes), (DocId([99; 16]), two_bytes)], 3).expect("said");
        assert_eq!(there.merge(id, &said).expect("merged").files, [(three, picture)]);
        assert_eq!((there.attachment_bytes(three), there.attachment_bytes(one)), (Some(two_bytes), None));
        // Of two concurrent values, one wins and the other is still available.
        let new = |bytes: &[u8]| FileBytes { hash: BlobHash::of(bytes), size: bytes.len() as u64 };
        let ours = here.set_attachment_bytes(&[(three, new(b"ours"))], 3).expect("said");
        let theirs = there.set_attachment_bytes(&[(three, new(b"theirs"))], 3).expect("said");
        here.merge(id, &theirs).expect("merged");
        there.merge(id, &ours).expect("merged");
        let stands = here.attachment_bytes(three).expect("one stands");
        let other = if stands == new(b"ours") { new(b"theirs") } else { new(b"ours") };
        assert_eq!((there.attachment_bytes(three), here.rival_hashes(three)), (Some(stands), vec![other.hash]));
        assert_eq!((there.rival_hashes(three), there.rival_hashes(one)), (vec![other.hash], Vec::new()));
        // Sessions and runs listed by both devices concurrently; one is deleted.
        let listed = |kind, id, gone: Option<&str>| (kind, DocId([id; 16]), gone.map(str::to_owned));
        let ours = here
            .list_documents(
                &[listed(ListedDocumentKind::Session, 6, None), listed(ListedDocumentKind::Run, 7, None)],
                4,
            )
            .expect("listed");
        let theirs = there.list_documents(&[listed(ListedDocumentKind::Session, 8, None)], 4).expect("listed");
        assert_eq!(
            there.merge(id, &ours).expect("merged").listed,
            [listed(ListedDocumentKind::Session, 6, None), listed(ListedDocumentKind::Run, 7, None)]
        );
        here.merge(id, &theirs).expect("merged");
        let gone = there.list_documents(&[listed(ListedDocumentKind::Session, 6, Some("a b"))], 5).expect("deleted");
        assert_eq!(
            here.merge(id, &gone).expect("merged").listed,
            [listed(ListedDocumentKind::Session, 6, Some("a b"))]
        );
        let mut all = here.listed_documents();
        all.sort();
        assert_eq!(
            all,
            [
                listed(ListedDocumentKind::Session, 6, Some("a b")),
                listed(ListedDocumentKind::Session, 8, None),
                listed(ListedDocumentKind::Run, 7, None)
            ]
        );
        assert_eq!(here.files(), there.files());
    }

    #[test]
    fn files_come_go_and_are_read_back() {
        let id = DocId([1; 16]);
        let load = |chunks: &[Vec<u8>]| VolumeDoc::load(id, chunks, ActorId::from([2; 16])).expect("loaded").doc;
        let mut volume = load(&[]);
        let entry = |path: String| FileEntry { path, kind: FileKind::Note };
        let mut chunks = vec![volume.save()];
        let mut expected = BTreeMap::new();
        for slice in 0..20_u8 {
            let mut files: Vec<(DocId, Option<FileEntry>)> = (0..50_u8)
                .map(|number| {
                    (DocId([number.wrapping_mul(37) ^ slice; 16]), Some(entry(format!("{slice}/{number}.md"))))
                })
                .collect();
            files.push((DocId([slice; 16]), None));
            files.push((DocId([slice ^ 1; 16]), Some(entry("back.md".to_owned()))));
            for (id, file) in &files {
                match file {
                    Some(file) => expected.insert(*id, file.clone()),
                    None => expected.remove(id),
                };
            }
            chunks.push(volume.commit(Some("V"), &files, 7).expect("committed"));
        }
        assert_eq!(volume.files(), expected);
        assert_eq!(load(&chunks).files(), expected);
        assert_eq!(load(&[volume.save()]).files(), expected);
        assert_eq!(load(&chunks).name().as_deref(), Some("V"));
    }
}
