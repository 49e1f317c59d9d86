//! The workspace document: the list of volumes, and settings shared by all devices. The folders of volumes differ
//! between devices, so they're in the disk's table of mounts.

use crate::document::{self, LoadedDocument};
use crate::error::StoreError;
use crate::id::DocId;
use crate::keys;
use crate::note::find_container;
use crate::schema::DocumentKind;
use automerge::transaction::{CommitOptions, Transactable};
use automerge::{ActorId, Automerge, AutomergeError, ObjId, ObjType, ReadDoc};
use std::collections::BTreeMap;

/// A volume of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeEntry {
    /// The displayed name.
    pub name: String,
}

/// The automerge document of a workspace.
pub struct WorkspaceDoc {
    doc: Automerge,
    volumes: ObjId,
}

impl std::fmt::Debug for WorkspaceDoc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WorkspaceDoc")
    }
}

impl WorkspaceDoc {
    /// Loads the workspace from its chunks. Further changes are written under `actor`.
    ///
    /// # Errors
    /// Returns an error if the document is damaged, has a newer schema, or is of another kind.
    pub fn load(id: DocId, chunks: &[Vec<u8>], actor: ActorId) -> Result<LoadedDocument<WorkspaceDoc>, StoreError> {
        let LoadedDocument { doc, bad_chunks: bad } =
            document::load_document(id, DocumentKind::Workspace, chunks, actor)?;
        let volumes = find_container(&doc, id, keys::VOLUMES)?;
        Ok(LoadedDocument { doc: WorkspaceDoc { doc, volumes }, bad_chunks: bad })
    }

    /// Saves the whole document as one chunk.
    pub fn save(&self) -> Vec<u8> {
        self.doc.save()
    }

    /// Returns all volumes of the workspace by id.
    pub fn volumes(&self) -> BTreeMap<DocId, VolumeEntry> {
        let keys: Vec<String> = self.doc.keys(&self.volumes).collect();
        let read = |key: &String| {
            let (_, volume) = self.doc.get(&self.volumes, key.as_str()).ok()??;
            let (name, _) = self.doc.get(&volume, keys::NAME).ok()??;
            Some((key.parse().ok()?, VolumeEntry { name: name.as_str()?.to_owned() }))
        };
        keys.iter().filter_map(read).collect()
    }

    /// Adds or renames a volume. `None` removes it from the workspace; its files stay. Returns the chunk to append.
    ///
    /// # Errors
    /// Returns automerge's error if the change fails.
    pub fn set_volume(&mut self, id: DocId, name: Option<&str>, time: i64) -> Result<Vec<u8>, StoreError> {
        let before = self.doc.get_heads();
        let container = &self.volumes;
        let made = self.doc.transact_with::<_, _, AutomergeError, _>(
            |()| CommitOptions::default().with_time(time),
            |tx| {
                let key = id.to_string();
                let Some(name) = name else {
                    return tx.delete(container, key.as_str());
                };
                let volume = match tx.get(container, key.as_str())? {
                    Some((_, volume)) => volume,
                    None => tx.put_object(container, key.as_str(), ObjType::Map)?,
                };
                tx.put(&volume, keys::NAME, name)
            },
        );
        made.map_err(|failure| StoreError::Automerge(failure.error))?;
        Ok(document::save_since(&self.doc, &before))
    }
}
