//! Blobs: bytes too large for a document, in one file each, named by hash (`blobs/ab/cdef…`). Blobs never change and
//! aren't removed here. A file whose bytes don't match its name is replaced when the right bytes are stored.

use super::durable;
use crate::disk::error::{BlobFault, DiskError};
use crate::id::BlobHash;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the folder for blobs in a workspace.
pub const BLOBS_FOLDER: &str = "blobs";

/// Computes a blob's hash incrementally.
#[derive(Clone, Debug, Default)]
pub struct BlobHasher(blake3::Hasher);

impl BlobHasher {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the hash of all added bytes.
    pub fn finish(&self) -> BlobHash {
        BlobHash(*self.0.finalize().as_bytes())
    }
}

/// The blob storage of one workspace.
#[derive(Clone, Debug)]
pub struct BlobStore {
    folder: PathBuf,
}

impl BlobStore {
    /// Returns the blob storage of the workspace in `dir`. Nothing is created before the first [`BlobStore::put`].
    pub fn new(dir: &Path) -> BlobStore {
        BlobStore { folder: dir.join(BLOBS_FOLDER) }
    }

    /// Returns the path of a blob.
    pub fn blob_path(&self, hash: BlobHash) -> PathBuf {
        let name = hash.to_string();
        self.folder.join(&name[..2]).join(&name[2..])
    }

    /// Whether the blob's file exists; its bytes aren't checked.
    pub fn has(&self, hash: BlobHash) -> bool {
        self.blob_path(hash).is_file()
    }

    /// Returns the size of an existing blob; its bytes aren't checked.
    pub fn blob_len(&self, hash: BlobHash) -> Option<u64> {
        std::fs::metadata(self.blob_path(hash)).ok().filter(std::fs::Metadata::is_file).map(|file| file.len())
    }

    /// Removes a blob that was only stored here temporarily, on its way elsewhere. A missing blob isn't an error.
    ///
    /// # Errors
    /// Returns the I/O error if the file can't be removed.
    pub fn remove(&self, hash: BlobHash) -> Result<(), DiskError> {
        let path = self.blob_path(hash);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(DiskError::from_io("removing what was on its way", &path, &error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Moves a blob of another storage of the same disk here, durably. A blob that's here already or isn't there isn't
    /// an error.
    ///
    /// # Errors
    /// Returns the I/O error if the file can't be moved.
    pub fn take_from(&self, other: &BlobStore, hash: BlobHash) -> Result<(), DiskError> {
        let (from, to) = (other.blob_path(hash), self.blob_path(hash));
        if self.has(hash) || !other.has(hash) {
            return Ok(());
        }
        let folder = to.parent().unwrap_or(&self.folder);
        durable::create_folder(folder)
            .and_then(|()| std::fs::rename(&from, &to))
            .and_then(|()| durable::sync_folder(folder))
            .map_err(|error| DiskError::from_io("keeping a file", &to, &error))
    }

    /// Stores bytes under their hash; they are durable on return.
    ///
    /// # Errors
    /// Any [`DiskError`]. An existing file stays as it was then.
    pub fn put(&self, bytes: &[u8]) -> Result<BlobHash, DiskError> {
        let hash = BlobHash::of(bytes);
        let path = self.blob_path(hash);
        self.write_file(&path, bytes).map_err(|error| DiskError::from_io("storing an output", &path, &error))?;
        Ok(hash)
    }

    fn write_file(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let folder = path.parent().unwrap_or(&self.folder);
        // The bytes are compared, not only the length: after a power cut, a file may have the right length and hold
        // zeros.
        if std::fs::read(path).is_ok_and(|there| there == bytes) {
            return durable::sync_folder(folder); // whoever wrote it may have died before this
        }
        durable::create_folder(folder)?;
        durable::replace_file(path, bytes)
    }

    /// Reads a blob and checks its bytes against its hash.
    ///
    /// # Errors
    /// Returns [`DiskError::Blob`] if it's missing or damaged, otherwise the I/O error.
    pub fn read(&self, hash: BlobHash) -> Result<Vec<u8>, DiskError> {
        let path = self.blob_path(hash);
        match std::fs::read(&path) {
            Ok(bytes) if BlobHash::of(&bytes) == hash => Ok(bytes),
            Ok(_) => Err(DiskError::Blob { hash, what: BlobFault::Damaged }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(DiskError::Blob { hash, what: BlobFault::Missing })
            }
            Err(error) => Err(DiskError::from_io("reading an output", &path, &error)),
        }
    }

    /// Returns all blobs, and the files in their folders whose name isn't a hash.
    ///
    /// # Errors
    /// Returns the I/O error if a folder can't be read.
    pub fn list(&self) -> Result<(Vec<BlobHash>, Vec<PathBuf>), DiskError> {
        let (mut blobs, mut strays) = (Vec::new(), Vec::new());
        let fail = |path: &Path, error: io::Error| DiskError::from_io("listing the outputs", path, &error);
        let folders = match std::fs::read_dir(&self.folder) {
            Ok(folders) => folders,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((blobs, strays)),
            Err(error) => return Err(fail(&self.folder, error)),
        };
        for folder in folders {
            let folder = folder.map_err(|error| fail(&self.folder, error))?.path();
            if !folder.is_dir() {
                strays.push(folder);
                continue;
            }
            for file in std::fs::read_dir(&folder).map_err(|error| fail(&folder, error))? {
                let file = file.map_err(|error| fail(&folder, error))?.path();
                let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
                let hash = name(&folder).zip(name(&file)).and_then(|(start, end)| (start + &end).parse().ok());
                match hash {
                    Some(hash) if self.blob_path(hash) == file => blobs.push(hash),
                    Some(_) | None => strays.push(file),
                }
            }
        }
        blobs.sort_unstable();
        strays.sort_unstable();
        Ok((blobs, strays))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn put_read_list() {
        let dir = tempfile::tempdir().expect("a folder");
        let blobs = BlobStore::new(dir.path());
        assert_eq!(blobs.list().expect("listed"), (Vec::new(), Vec::new()));
        let hash = blobs.put(b"bytes").expect("stored");
        assert_eq!(blobs.put(b"bytes").expect("again"), hash);
        assert_eq!(blobs.read(hash).expect("read"), b"bytes");
        let empty = blobs.put(b"").expect("stored");
        assert_eq!(blobs.read(empty).expect("read"), b"");
        let missing = BlobHash::of(b"other");
        assert!(matches!(blobs.read(missing), Err(DiskError::Blob { what: BlobFault::Missing, .. })));
        let stray = blobs.blob_path(hash).with_file_name(".tracebook-1-0.tmp");
        std::fs::write(&stray, b"x").expect("written");
        let mut both = vec![hash, empty];
        both.sort_unstable();
        assert_eq!(blobs.list().expect("listed"), (both, vec![stray]));
    }

    #[test]
    fn a_blob_moves_from_one_storage_to_another() {
        let dir = tempfile::tempdir().expect("a folder");
        let (here, there) = (BlobStore::new(dir.path()), BlobStore::new(&dir.path().join("states")));
        let hash = there.put(b"bytes").expect("stored");
        for _ in 0..2 {
            here.take_from(&there, hash).expect("moved");
            assert_eq!((here.read(hash).expect("read").as_slice(), there.has(hash)), (&b"bytes"[..], false));
        }
    }

    #[test]
    fn a_torn_blob_is_told_and_replaced() {
        let dir = tempfile::tempdir().expect("a folder");
        let blobs = BlobStore::new(dir.path());
        let hash = blobs.put(b"the right bytes").expect("stored");
        for torn in [&b""[..], b"the ri", b"the right bytez", &[0; 15], b"the right bytes and more"] {
            std::fs::write(blobs.blob_path(hash), torn).expect("torn");
            assert!(matches!(blobs.read(hash), Err(DiskError::Blob { what: BlobFault::Damaged, .. })));
            blobs.put(b"the right bytes").expect("stored");
            assert_eq!(blobs.read(hash).expect("read"), b"the right bytes");
        }
    }
}
