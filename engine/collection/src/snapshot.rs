//! What a collection is worked out over, apart from the session: another thread keeps it in step by what changed.

use super::VolumeFilesAndLinks;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::DocId;
use store::disk::FileRow;
use text::links::VolumeLinks;
use text::outline::Outline;

/// A file as it is now; `None`: it is gone.
pub type MirroredFile = (DocId, Option<(FileRow, Option<Arc<Outline>>)>);

/// A volume's files and what they hold, once more.
#[derive(Debug, Default)]
pub struct VolumeMirror {
    files: BTreeMap<String, FileRow>,
    links: VolumeLinks,
}

impl VolumeMirror {
    /// A file as a volume knows it.
    pub fn read_file_state(volume: VolumeFilesAndLinks<'_>, file: DocId) -> MirroredFile {
        let row = volume.links.path(file).and_then(|path| volume.files.get(path));
        (file, row.map(|row| (row.clone(), volume.links.outline(file).cloned())))
    }

    /// Takes in how a file is now.
    pub fn apply(&mut self, (file, now): MirroredFile) {
        if let Some(old) = self.links.path(file)
            && now.as_ref().is_none_or(|(row, _)| row.path != old)
            && self.files.get(old).is_some_and(|row| row.id == file)
        {
            self.files.remove(old);
        }
        match now {
            None => self.links.remove_file(file),
            Some((row, outline)) => {
                self.links.set_path(file, &row.path);
                if let Some(outline) = outline {
                    self.links.set_outline(file, outline);
                }
                self.files.insert(row.path.clone(), row);
            }
        }
    }

    /// What a collection is worked out over.
    pub fn source(&self) -> VolumeFilesAndLinks<'_> {
        VolumeFilesAndLinks { files: &self.files, links: &self.links }
    }
}
