//! Blobs that are still being received from another device: the received part of each is in its own file. It becomes a
//! blob only if its hash is right. After a crash, the transfer continues from the received part.

use super::durable;
use crate::disk::blobs::{BlobHasher, BlobStore};
use crate::disk::error::DiskError;
use crate::id::BlobHash;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Number of bytes hashed at once.
const PARTIAL_HASH_BLOCK_BYTES: usize = 256 << 10;

/// The partially received blobs in a folder.
#[derive(Clone, Debug)]
pub struct PartialBlobs {
    folder: PathBuf,
}

impl PartialBlobs {
    /// Returns the partial blobs in this folder. Nothing is created before the first [`PartialBlobs::write_at`].
    pub fn new(folder: PathBuf) -> PartialBlobs {
        PartialBlobs { folder }
    }

    fn partial_path(&self, hash: BlobHash) -> PathBuf {
        self.folder.join(format!("{hash}.part"))
    }

    /// Returns how many bytes of a blob have been received.
    pub fn received_len(&self, hash: BlobHash) -> u64 {
        std::fs::metadata(self.partial_path(hash)).map_or(0, |file| file.len())
    }

    /// Writes bytes at this offset. Anything after them is truncated.
    ///
    /// # Errors
    /// Returns an error if fewer bytes than `offset` have been received, or if writing fails.
    pub fn write_at(&self, hash: BlobHash, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let path = self.partial_path(hash);
        let write = || {
            durable::create_folder(&self.folder)?;
            let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
            if file.metadata()?.len() < offset {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "its beginning is gone"));
            }
            file.set_len(offset)?;
            file.seek(SeekFrom::Start(offset))?;
            file.write_all(bytes)
        };
        write().map_err(|error| DiskError::from_io("storing what comes from another device", &path, &error))
    }

    /// Completes a blob. If the bytes match the hash, they become a blob durably; otherwise they're deleted. Returns
    /// whether they matched.
    ///
    /// # Errors
    /// Returns an error if reading or storing fails. The received bytes are kept then.
    pub fn finish_blob(&self, hash: BlobHash, blobs: &BlobStore) -> Result<bool, DiskError> {
        let path = self.partial_path(hash);
        let fail = |error: io::Error| DiskError::from_io("checking data received from another device", &path, &error);
        let mut file = File::options().read(true).write(true).open(&path).map_err(fail)?;
        let (mut hasher, mut block) = (BlobHasher::default(), vec![0; PARTIAL_HASH_BLOCK_BYTES]);
        loop {
            match file.read(&mut block).map_err(fail)? {
                0 => break,
                count => hasher.update(&block[..count]),
            }
        }
        if hasher.finish() != hash {
            std::fs::remove_file(&path).map_err(fail)?;
            return Ok(false);
        }
        file.sync_all().map_err(fail)?;
        let to = blobs.blob_path(hash);
        let folder = to.parent().unwrap_or(&self.folder);
        durable::create_folder(folder).and_then(|()| std::fs::rename(&path, &to)).map_err(fail)?;
        durable::sync_folder(folder).map_err(fail)?;
        Ok(true)
    }

    /// Removes partial blobs that are too old to be continued.
    pub fn remove_stale(&self, is_old: impl Fn(&Metadata) -> bool) {
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let is_part = entry.path().extension().is_some_and(|ending| ending == "part");
            if is_part && entry.metadata().is_ok_and(|file| is_old(&file)) {
                let _ = std::fs::remove_file(entry.path()); // at worst it stays
            }
        }
    }
}

/// Reads a piece of a file. Returns the file's size, and at most `length` bytes from `offset`. A range after the end of
/// the file is empty, even if a peer requests one.
///
/// # Errors
/// Returns the I/O error if the file can't be read.
pub fn read_file_piece(path: &Path, offset: u64, length: u64) -> io::Result<(u64, Vec<u8>)> {
    read_open_file_piece(&mut File::open(path)?, offset, length)
}

/// Reads a piece of an open file, like [`read_file_piece`].
///
/// # Errors
/// Returns the I/O error if the file can't be read.
pub fn read_open_file_piece(file: &mut File, offset: u64, length: u64) -> io::Result<(u64, Vec<u8>)> {
    let size = file.metadata()?.len();
    let mut bytes = Vec::new();
    if offset >= size {
        // Operating systems refuse to seek beyond `i64::MAX`. That would look like an unreadable file.
        return Ok((size, bytes));
    }
    file.seek(SeekFrom::Start(offset))?;
    file.take(length).read_to_end(&mut bytes)?;
    Ok((size, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_a_blob_when_they_are_right() {
        let dir = tempfile::tempdir().expect("a folder");
        let (coming, blobs) = (PartialBlobs::new(dir.path().join("coming")), BlobStore::new(dir.path()));
        let bytes: Vec<u8> = (0..700_000_u32).map(|at| (at % 251) as u8).collect();
        let hash = BlobHash::of(&bytes);
        assert_eq!(coming.received_len(hash), 0);
        coming.write_at(hash, 0, &bytes[..300_000]).expect("written");
        coming.write_at(hash, 200_000, &bytes[200_000..500_000]).expect("written over");
        assert_eq!(coming.received_len(hash), 500_000);
        assert!(coming.write_at(hash, 500_001, b"x").is_err(), "something would be left out");
        coming.write_at(hash, 500_000, &bytes[500_000..]).expect("written");
        assert!(!blobs.has(hash));
        assert!(coming.finish_blob(hash, &blobs).expect("checked"));
        assert_eq!((blobs.read(hash).expect("read"), coming.received_len(hash)), (bytes.clone(), 0));
        let (size, piece) = read_file_piece(&blobs.blob_path(hash), 699_000, 65_536).expect("read");
        assert_eq!((size, piece.as_slice()), (700_000, &bytes[699_000..]));
        for offset in [700_000, i64::MAX as u64 + 1, u64::MAX] {
            let beyond = read_file_piece(&blobs.blob_path(hash), offset, 65_536).expect("no fault of the file");
            assert_eq!(beyond, (700_000, Vec::new()), "{offset}");
        }
        blobs.remove(hash).expect("removed");
        blobs.remove(hash).expect("removed before");
        assert!(!blobs.has(hash));
    }

    #[test]
    fn what_is_wrong_goes() {
        let dir = tempfile::tempdir().expect("a folder");
        let (coming, blobs) = (PartialBlobs::new(dir.path().to_owned()), BlobStore::new(dir.path()));
        let hash = BlobHash::of(b"right");
        coming.write_at(hash, 0, b"wrong").expect("written");
        assert!(!coming.finish_blob(hash, &blobs).expect("checked"));
        assert_eq!((blobs.has(hash), coming.received_len(hash)), (false, 0));
        coming.write_at(hash, 0, b"ri").expect("written");
        coming.remove_stale(|file| file.len() > 2);
        assert_eq!(coming.received_len(hash), 2);
        coming.remove_stale(|file| file.len() == 2);
        assert_eq!(coming.received_len(hash), 0);
    }
}
