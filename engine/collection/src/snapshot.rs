//! A copy of the data that collections are evaluated over. It's updated from changes, so another thread can use it.

use super::VolumeFilesAndLinks;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use store::DocId;
use store::disk::FileRow;
use text::links::VolumeLinks;
use text::outline::Outline;

/// A file's current state; `None` if the file no longer exists.
pub type MirroredFile = (DocId, Option<(FileRow, Option<Arc<Outline>>)>);

/// The next files of a volume, and its name.
#[derive(Debug, Default)]
pub struct MirrorSlice {
    /// Name of the volume, which links may begin with.
    pub volume_name: String,
    /// The files.
    pub files: Vec<MirroredFile>,
}

/// Maximum number of files of a slice.
const SLICE_FILES: usize = 500;

/// A copy of a volume's files and links.
#[derive(Debug, Default)]
pub struct VolumeMirror {
    files: BTreeMap<String, FileRow>,
    links: VolumeLinks,
}

impl VolumeMirror {
    /// Returns the state of a file in a volume.
    pub fn read_file_state(volume: VolumeFilesAndLinks<'_>, file: DocId) -> MirroredFile {
        let row = volume.links.path(file).and_then(|path| volume.files.get(path));
        (file, row.map(|row| (row.clone(), volume.links.outline(file).cloned())))
    }

    /// Returns the state of the next files of a volume, after this path.
    pub fn read_slice(volume: VolumeFilesAndLinks<'_>, after: Option<&str>) -> MirrorSlice {
        let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = volume.files.range::<str, _>((begin, Bound::Unbounded)).take(SLICE_FILES);
        let files = rows.map(|(_, row)| (row.id, Some((row.clone(), volume.links.outline(row.id).cloned())))).collect();
        MirrorSlice { volume_name: volume.links.volume_name().to_owned(), files }
    }

    /// Sets the name of the volume, which links may begin with.
    pub fn set_volume_name(&mut self, name: &str) {
        self.links.set_volume_name(name);
    }

    /// Copies a volume by slices, as far as `keeps` returns true for the files' paths. `read` returns the slice after a
    /// path; an empty one is the end.
    ///
    /// # Errors
    /// Returns the first error of `read`.
    pub fn from_slices<E>(
        mut read: impl FnMut(Option<String>) -> Result<MirrorSlice, E>,
        keeps: impl Fn(&str) -> bool,
    ) -> Result<VolumeMirror, E> {
        let (mut mirror, mut after) = (VolumeMirror::default(), None);
        loop {
            let slice = read(after)?;
            let Some((_, Some((last, _)))) = slice.files.last() else { return Ok(mirror) };
            after = Some(last.path.clone());
            mirror.set_volume_name(&slice.volume_name);
            let kept = slice.files.into_iter().filter(|(_, now)| now.as_ref().is_some_and(|(row, _)| keeps(&row.path)));
            kept.for_each(|file| mirror.apply(file));
        }
    }

    /// Applies a file's current state.
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

    /// Returns the files and links for evaluating collections.
    pub fn source(&self) -> VolumeFilesAndLinks<'_> {
        VolumeFilesAndLinks { files: &self.files, links: &self.links }
    }
}
