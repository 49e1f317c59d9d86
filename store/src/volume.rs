//! The volume document: file id to path, so that a rename never conflicts with an edit.

use crate::document::{self, Loaded};
use crate::error::StoreError;
use crate::id::DocId;
use crate::keys;
use crate::note::container;
use crate::schema::DocumentKind;
use automerge::transaction::{CommitOptions, Transactable};
use automerge::{ActorId, Automerge, AutomergeError, ObjId, ObjType, ROOT, ReadDoc};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// What a file is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// Markdown: a document.
    Note,
    /// A `.base` file, a view over the properties of notes: a document, too.
    Collection,
    /// Anything else: bytes that we leave alone.
    Attachment,
}

impl FileKind {
    /// The word that stands in the document.
    pub fn word(self) -> &'static str {
        match self {
            FileKind::Note => "note",
            FileKind::Collection => "collection",
            FileKind::Attachment => "attachment",
        }
    }

    /// What a file of this name is meant to be.
    pub fn of(path: &str) -> FileKind {
        let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("md" | "markdown") => FileKind::Note,
            Some("base") => FileKind::Collection,
            Some(_) | None => FileKind::Attachment,
        }
    }

    /// Whether its text is a document, which is edited here.
    pub fn is_text(self) -> bool {
        match self {
            FileKind::Note | FileKind::Collection => true,
            FileKind::Attachment => false,
        }
    }
}

/// A file of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path inside the volume, `/` between parts.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
}

/// The document behind a volume.
pub struct VolumeDoc {
    doc: Automerge,
    files: ObjId,
}

impl std::fmt::Debug for VolumeDoc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VolumeDoc")
    }
}

impl VolumeDoc {
    /// Loads the volume from its chunks; it writes under `actor` from now on.
    ///
    /// # Errors
    /// Damage, a newer schema, another kind.
    pub fn load(id: DocId, chunks: &[Vec<u8>], actor: ActorId) -> Result<Loaded<VolumeDoc>, StoreError> {
        let Loaded { doc, bad } = document::load(id, DocumentKind::Volume, chunks, actor)?;
        let files = container(&doc, id, keys::FILES)?;
        Ok(Loaded { doc: VolumeDoc { doc, files }, bad })
    }

    /// The whole document in one chunk.
    pub fn save(&self) -> Vec<u8> {
        self.doc.save()
    }

    /// Its name, if it was given one.
    pub fn name(&self) -> Option<String> {
        let (name, _) = self.doc.get(ROOT, keys::NAME).ok()??;
        name.as_str().map(str::to_owned)
    }

    /// All files that are there.
    pub fn files(&self) -> BTreeMap<DocId, FileEntry> {
        let keys: Vec<String> = self.doc.keys(&self.files).collect();
        keys.into_iter().filter_map(|key| Some((key.parse().ok()?, self.file(&key)?))).collect()
    }

    fn file(&self, key: &str) -> Option<FileEntry> {
        let (_, file) = self.doc.get(&self.files, key).ok()??;
        if self.doc.get(&file, keys::GONE).ok()?.is_some_and(|(gone, _)| gone.as_bool() == Some(true)) {
            return None;
        }
        let (path, _) = self.doc.get(&file, keys::PATH).ok()??;
        let (kind, _) = self.doc.get(&file, keys::FILE_KIND).ok()??;
        let kind = match kind.as_str()? {
            "note" => FileKind::Note,
            "collection" => FileKind::Collection,
            _ => FileKind::Attachment,
        };
        Some(FileEntry { path: path.as_str()?.to_owned(), kind })
    }

    /// Makes one change: sets the name if given, the listed files (`None`: gone). Gives the chunk to append.
    ///
    /// # Errors
    /// automerge's.
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
                            // In one piece, at half the price: a folder that is opened can bring many thousands.
                            let path = (keys::PATH, entry.path.as_str().into());
                            let fields = HashMap::from([path, (keys::FILE_KIND, entry.kind.word().into())]);
                            tx.batch_create_object(container, key.as_str(), &fields.into(), false)?;
                        }
                        (Some(file), Some(entry)) => {
                            tx.put(&file, keys::PATH, entry.path.as_str())?;
                            tx.put(&file, keys::FILE_KIND, entry.kind.word())?;
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
        Ok(document::increment(&self.doc, &before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
