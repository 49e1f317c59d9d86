//! Atomic writes of a user's plain file: after any crash it has either all new bytes or the old ones. This module
//! doesn't decide the content. It never loses what another program wrote in the meantime, and never follows a symbolic
//! link.

use rand::TryRngCore;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::BlobHash;
use store::disk::{BlobHasher, DiskError, sync_folder};

/// Age beyond which a temporary file counts as left behind by a crash.
const STALE_TEMPORARY_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Number of bytes read at a time.
const READ_BLOCK_BYTES: usize = 256 << 10;

/// Result of replacing a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplaceOutcome {
    /// The file has the new bytes, durably.
    Done {
        /// Modification time in nanoseconds since 1970.
        modified: i64,
    },
    /// Another program wrote to the file, and its bytes are kept. Merge the new bytes into them and try again.
    Raced {
        /// The bytes that the file has now.
        theirs: Vec<u8>,
    },
    /// Another program removed the file. It wasn't created again.
    Gone,
}

/// Replaces the bytes of the file at `path` if its current ones have the hash `expected` (`None`: if it doesn't exist).
/// Mode and, where allowed, owner stay. A write-protected file or a symbolic link is refused: to write through a link,
/// resolve it first.
///
/// # Errors
/// [`DiskError::Full`], [`DiskError::ReadOnly`] or [`DiskError::Io`]; the file then has its old bytes.
pub fn replace_file(path: &Path, expected: Option<BlobHash>, bytes: &[u8]) -> Result<ReplaceOutcome, DiskError> {
    match replace(path, expected, FileContent::Bytes(bytes), || ())? {
        SwapOutcome::Done { modified } => Ok(ReplaceOutcome::Done { modified }),
        SwapOutcome::Gone => Ok(ReplaceOutcome::Gone),
        SwapOutcome::Raced => match read_regular_file(path) {
            Ok(theirs) => Ok(ReplaceOutcome::Raced { theirs }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ReplaceOutcome::Gone),
            Err(error) => Err(DiskError::from_io("writing", path, &error)),
        },
    }
}

/// Result of replacing a file without returning another program's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwapOutcome {
    /// The file has the new bytes, durably, with this modification time in nanoseconds since 1970.
    Done {
        /// Nanoseconds since 1970.
        modified: i64,
    },
    /// Another program wrote to the file, and its bytes are kept.
    Raced,
    /// Another program removed the file.
    Gone,
}

/// Replaces the bytes of the file at `path` by those of the file `from`, block by block, like [`replace_file`]. Bytes
/// with another hash are never stored.
///
/// # Errors
/// Those of [`replace_file`], or `from` has another hash.
pub fn replace_by_copy(
    path: &Path,
    expected: Option<BlobHash>,
    from: &Path,
    hash: BlobHash,
) -> Result<SwapOutcome, DiskError> {
    replace(path, expected, FileContent::File { from, hash }, || ())
}

/// The new content of a file.
#[derive(Clone, Copy)]
enum FileContent<'a> {
    Bytes(&'a [u8]),
    File { from: &'a Path, hash: BlobHash },
}

impl FileContent<'_> {
    fn hash(self) -> BlobHash {
        match self {
            FileContent::Bytes(bytes) => BlobHash::of(bytes),
            FileContent::File { hash, .. } => hash,
        }
    }

    fn write(self, to: &mut File) -> io::Result<()> {
        match self {
            FileContent::Bytes(bytes) => to.write_all(bytes),
            FileContent::File { from, hash } => {
                let mut from = open_regular_file(from)?;
                match hash_reader(&mut from, |block| to.write_all(block))? == hash {
                    true => Ok(()),
                    false => Err(io::Error::new(io::ErrorKind::InvalidData, "its bytes are not what they were")),
                }
            }
        }
    }
}

/// Hashes everything that's read, block by block.
fn hash_reader(from: &mut File, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<BlobHash> {
    let (mut hasher, mut block) = (BlobHasher::default(), vec![0; READ_BLOCK_BYTES]);
    loop {
        match from.read(&mut block)? {
            0 => return Ok(hasher.finish()),
            count => {
                hasher.update(&block[..count]);
                each(&block[..count])?;
            }
        }
    }
}

fn hash_file(path: &Path) -> io::Result<BlobHash> {
    hash_reader(&mut open_regular_file(path)?, |_| Ok(()))
}

/// Opens a plain file for reading. Refuses a symlink at the path and anything that could block.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, i32::try_from(flags.bits()).unwrap_or(0));
    }
    #[cfg(not(unix))]
    if std::fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::Error::other("it is a symbolic link"));
    }
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    Ok(file)
}

/// Reads all bytes of a plain file.
pub fn read_regular_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular_file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Implements [`replace_file`]. For tests, `meanwhile` runs after the last check of the file and before it's replaced.
fn replace(
    path: &Path,
    expected: Option<BlobHash>,
    content: FileContent<'_>,
    meanwhile: impl FnOnce(),
) -> Result<SwapOutcome, DiskError> {
    let fail = |error: io::Error| DiskError::from_io("writing", path, &error);
    let refuse = |why: &str| DiskError::Io { what: "writing", why: why.to_owned(), path: path.to_owned() };
    let folder = path.parent().unwrap_or(Path::new(""));
    let old = match std::fs::symlink_metadata(path) {
        Ok(old) if old.is_symlink() => return Err(refuse("it is a symbolic link")),
        Ok(old) if !old.is_file() => return Err(refuse("it is not a plain file")),
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(fail(error)),
    };
    if !folder.as_os_str().is_empty() && !folder.is_dir() {
        return Err(refuse("its folder is gone"));
    }
    let Some(old) = old else {
        if expected.is_some() {
            return Ok(SwapOutcome::Gone);
        }
        let temporary = TemporaryFile::write(folder, content, None).map_err(fail)?;
        let modified = temporary.modified;
        meanwhile();
        return match temporary.persist_noclobber(path) {
            Ok(()) => sync_folder(folder).map(|()| SwapOutcome::Done { modified }).map_err(fail),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(SwapOutcome::Raced),
            Err(error) => Err(fail(error)),
        };
    };
    let ours = content.hash();
    let theirs = hash_file(path).map_err(fail)?;
    if theirs == ours {
        // The bytes are there already, perhaps written just before a crash; only the name may not be durable yet.
        sync_folder(folder).map_err(fail)?;
        return Ok(SwapOutcome::Done { modified: modified_nanos(&old) });
    }
    if expected != Some(theirs) {
        return Ok(SwapOutcome::Raced);
    }
    check_writable(path).map_err(fail)?;
    let mut temporary = TemporaryFile::write(folder, content, Some(&old)).map_err(fail)?;
    meanwhile();
    match exchange_names(&temporary.path, path) {
        Ok(true) => {}
        Ok(false) => return overwrite_unchanged(&temporary, path, theirs).map_err(fail),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SwapOutcome::Gone),
        Err(error) => return Err(fail(error)),
    }
    // The old file now has the temporary name. It's removed only if it is the one we knew.
    if hash_file(&temporary.path).ok() == Some(theirs) {
        let modified = temporary.modified;
        temporary.remove().and_then(|()| sync_folder(folder)).map_err(fail)?;
        return Ok(SwapOutcome::Done { modified });
    }
    // Another program wrote within these microseconds. Restore its file first, so that it survives a crash here.
    temporary.keep = true;
    exchange_names(&temporary.path, path).map_err(fail)?;
    temporary.keep = hash_file(&temporary.path).ok() != Some(ours);
    if temporary.keep {
        // It wrote once more, into our file: the newer one stays at `path`, the older one under its temporary name.
        exchange_names(&temporary.path, path).map_err(fail)?;
    }
    sync_folder(folder).map_err(fail)?;
    Ok(SwapOutcome::Raced)
}

/// Replaces a file where names can't be exchanged: checks it a last time, then renames over it.
fn overwrite_unchanged(temporary: &TemporaryFile, path: &Path, known: BlobHash) -> io::Result<SwapOutcome> {
    if hash_file(path)? != known {
        return Ok(SwapOutcome::Raced);
    }
    std::fs::rename(&temporary.path, path)?;
    sync_folder(path.parent().unwrap_or(Path::new("")))?;
    Ok(SwapOutcome::Done { modified: temporary.modified })
}

/// A temporary file next to the target. It's removed on drop.
pub struct TemporaryFile {
    path: PathBuf,
    /// Its modification time in nanoseconds since 1970.
    pub modified: i64,
    /// Whether the file holds another program's bytes and must stay.
    keep: bool,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.keep {
            let _ = std::fs::remove_file(&self.path); // mostly gone by now; a leftover is found when it is stale
        }
    }
}

impl TemporaryFile {
    /// Writes a temporary file durably, with the mode of the file that it will replace.
    fn write(folder: &Path, content: FileContent<'_>, like: Option<&Metadata>) -> io::Result<TemporaryFile> {
        let (mut temporary, file) = TemporaryFile::create_and_fill(folder, content, like)?;
        file.sync_all()?;
        temporary.modified = modified_nanos(&file.metadata()?);
        Ok(temporary)
    }

    /// Writes a temporary file; the caller must make it durable before renaming it.
    pub fn write_unsynced(folder: &Path, bytes: &[u8], like: Option<&Metadata>) -> io::Result<(TemporaryFile, File)> {
        TemporaryFile::create_and_fill(folder, FileContent::Bytes(bytes), like)
    }

    fn create_and_fill(
        folder: &Path,
        content: FileContent<'_>,
        like: Option<&Metadata>,
    ) -> io::Result<(TemporaryFile, File)> {
        let number = rand::rngs::OsRng.try_next_u64().map_err(io::Error::other)?;
        let path = folder.join(format!(".tracebook-{number:016x}.tmp"));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if like.is_some() {
            // Private until it has the old file's mode.
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let mut file = options.open(&path)?;
        let mut temporary = TemporaryFile { path, modified: 0, keep: false };
        content.write(&mut file)?;
        if let Some(like) = like {
            copy_attributes(&file, like)?;
        }
        temporary.modified = modified_nanos(&file.metadata()?);
        Ok((temporary, file))
    }

    /// Renames the file to `path` unless that exists.
    pub fn persist_noclobber(&self, path: &Path) -> io::Result<()> {
        rename_new(&self.path, path)
    }

    fn remove(mut self) -> io::Result<()> {
        self.keep = true;
        std::fs::remove_file(&self.path)
    }
}

/// Renames a file unless the target exists.
pub fn rename_new(from: &Path, path: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, from, CWD, path, RenameFlags::NOREPLACE) {
            Err(error) if is_unsupported(error) => {}
            done => return Ok(done?),
        }
    }
    match std::fs::hard_link(from, path) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => Err(error),
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            // The file system supports neither way (FAT): reserve the name first, and then replace it.
            OpenOptions::new().write(true).create_new(true).open(path)?;
            std::fs::rename(from, path)
        }
        Ok(()) => std::fs::remove_file(from),
        done => done,
    }
}

/// Exchanges two names; returns whether the file system supports it.
fn exchange_names(one: &Path, other: &Path) -> io::Result<bool> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
            Err(error) if is_unsupported(error) => Ok(false),
            done => Ok(done.map(|()| true)?),
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    {
        // Used on Linux and macOS only.
        let _ = (one, other);
        Ok(false)
    }
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn is_unsupported(error: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    // `OPNOTSUPP` and `NOTSUP` are one number on Linux and two on macOS.
    error == Errno::INVAL || error == Errno::NOSYS || error == Errno::OPNOTSUPP || error == Errno::NOTSUP
}

/// Checks that a file is writable: a rename needs only the folder's permission, but must not replace a protected file.
fn check_writable(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return Ok(rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?);
    #[cfg(not(unix))]
    return OpenOptions::new().write(true).open(path).map(|_| ());
}

fn copy_attributes(file: &File, like: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
            // Only root may give a file away; others may only set one of their own groups. Failures are ignored.
            let _ = std::os::unix::fs::fchown(file, None, Some(like.gid()));
            let _ = std::os::unix::fs::fchown(file, Some(like.uid()), None);
        }
    }
    file.set_permissions(like.permissions())
}

/// Returns a file's modification time in nanoseconds since 1970.
pub fn modified_nanos(file: &Metadata) -> i64 {
    let Ok(time) = file.modified() else { return 0 };
    let nanos = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => nanos(since),
        Err(before) => -nanos(before.duration()),
    }
}

/// Returns whether a name is that of one of our temporary files, which scans skip.
pub fn is_temporary_file(name: &std::ffi::OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b".tracebook-") && name.ends_with(b".tmp")
}

/// Removes stale temporary files that crashes left in `folder`, not in its subfolders; returns how many were removed.
///
/// # Errors
/// Returns the I/O error if the folder can't be listed.
pub fn remove_stale_files(folder: &Path, now: SystemTime) -> io::Result<usize> {
    let mut removed = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if !is_temporary_file(&entry.file_name()) {
            continue;
        }
        let old = entry.metadata().is_ok_and(|file| {
            let age = file.modified().ok().and_then(|time| now.duration_since(time).ok());
            file.is_file() && age.is_some_and(|age| age > STALE_TEMPORARY_AGE)
        });
        if old && std::fs::remove_file(entry.path()).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn hash(bytes: &[u8]) -> Option<BlobHash> {
        Some(BlobHash::of(bytes))
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .expect("listed")
            .map(|entry| entry.expect("listed").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn new_changed_and_the_same() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("n\u{f6}te.md");
        let done = |replaced: Result<ReplaceOutcome, DiskError>| {
            let modified = modified_nanos(&fs::metadata(&path).expect("there"));
            assert_eq!(replaced.expect("replaced"), ReplaceOutcome::Done { modified });
        };
        done(replace_file(&path, None, b"one"));
        done(replace_file(&path, hash(b"one"), b"two"));
        assert_eq!(fs::read(&path).expect("read"), b"two");
        done(replace_file(&path, hash(b"one"), b"two"));
        assert_eq!(names(dir.path()), ["n\u{f6}te.md"]);
    }

    #[test]
    fn a_change_before_it_is_kept() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a.md");
        fs::write(&path, "theirs").expect("written");
        let raced = Ok(ReplaceOutcome::Raced { theirs: b"theirs".to_vec() });
        assert_eq!(replace_file(&path, hash(b"old"), b"ours").map_err(drop), raced);
        assert_eq!(replace_file(&path, None, b"ours").map_err(drop), raced);
        assert_eq!(fs::read(&path).expect("read"), b"theirs");
        fs::remove_file(&path).expect("removed");
        assert_eq!(replace_file(&path, hash(b"old"), b"ours").expect("told"), ReplaceOutcome::Gone);
        assert_eq!(names(dir.path()), [""; 0]);
    }

    #[test]
    fn a_change_in_between_is_kept() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a.md");
        fs::write(&path, "old").expect("written");
        let ours = FileContent::Bytes(b"ours");
        let raced = replace(&path, hash(b"old"), ours, || fs::write(&path, "theirs").expect("written"));
        assert_eq!(raced.expect("told"), SwapOutcome::Raced);
        assert_eq!(fs::read(&path).expect("read"), b"theirs");
        let gone = replace(&path, hash(b"theirs"), ours, || fs::remove_file(&path).expect("removed"));
        assert_eq!(gone.expect("told"), SwapOutcome::Gone);
        let raced = replace(&path, None, ours, || fs::write(&path, "theirs").expect("written"));
        assert_eq!(raced.expect("told"), SwapOutcome::Raced);
        assert_eq!(fs::read(&path).expect("read"), b"theirs");
        assert_eq!(names(dir.path()), ["a.md"]);
    }

    #[test]
    fn a_large_file_is_copied_in_parts_and_checked_before_it_has_its_name() {
        let dir = tempfile::tempdir().expect("a folder");
        let (from, path) = (dir.path().join("from"), dir.path().join("a.bin"));
        let large: Vec<u8> = (0..3 * READ_BLOCK_BYTES as u32 + 5).map(|at| (at % 251) as u8).collect();
        fs::write(&from, &large).expect("written");
        let right = BlobHash::of(&large);
        // Wrong bytes: nothing is created, and the existing file stays.
        let wrong = replace_by_copy(&path, None, &from, BlobHash::of(b"other"));
        assert!(wrong.expect_err("refused").to_string().contains("its bytes are not what they were"));
        assert_eq!(names(dir.path()), ["from"]);
        assert!(matches!(replace_by_copy(&path, None, &from, right).expect("copied"), SwapOutcome::Done { .. }));
        assert!(fs::read(&path).expect("read") == large);
        // Again with the same bytes, then over a known file, then over an unknown one.
        let modified = modified_nanos(&fs::metadata(&path).expect("there"));
        assert_eq!(replace_by_copy(&path, hash(b"x"), &from, right).expect("the same"), SwapOutcome::Done { modified });
        fs::write(&path, "old").expect("written");
        assert_eq!(replace_by_copy(&path, None, &from, right).expect("told"), SwapOutcome::Raced);
        assert_eq!(replace_by_copy(&path, hash(b"older"), &from, right).expect("told"), SwapOutcome::Raced);
        assert!(replace_by_copy(&path, hash(b"old"), &from, BlobHash::of(b"other")).is_err());
        assert_eq!(fs::read(&path).expect("read"), b"old");
        assert!(matches!(
            replace_by_copy(&path, hash(b"old"), &from, right).expect("copied"),
            SwapOutcome::Done { .. }
        ));
        assert!(fs::read(&path).expect("read") == large);
        assert_eq!(replace_by_copy(&dir.path().join("b"), hash(b"x"), &from, right).expect("told"), SwapOutcome::Gone);
        assert_eq!(names(dir.path()), ["a.bin", "from"]);
    }

    #[cfg(unix)]
    #[test]
    fn mode_stays_and_links_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a.md");
        for mode in [0o600, 0o644, 0o755, 0o660] {
            fs::write(&path, "old").expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
            replace_file(&path, hash(b"old"), b"new").expect("replaced");
            assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o7777, mode);
        }
        let link = dir.path().join("link.md");
        std::os::unix::fs::symlink(&path, &link).expect("linked");
        assert!(matches!(replace_file(&link, hash(b"new"), b"x"), Err(DiskError::Io { .. })));
        assert!(matches!(replace_file(dir.path(), None, b"x"), Err(DiskError::Io { .. })));
        let gone = replace_file(&dir.path().join("no/a.md"), None, b"x");
        assert!(gone.expect_err("refused").to_string().contains("its folder is gone"));
        assert_eq!(fs::read(&path).expect("read"), b"new");
    }

    #[test]
    fn without_exchange() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a.md");
        fs::write(&path, "old").expect("written");
        let temporary = TemporaryFile::write(dir.path(), FileContent::Bytes(b"ours"), None).expect("written");
        assert_eq!(overwrite_unchanged(&temporary, &path, BlobHash::of(b"older")).expect("told"), SwapOutcome::Raced);
        assert_eq!(fs::read(&path).expect("read"), b"old");
        assert!(matches!(
            overwrite_unchanged(&temporary, &path, BlobHash::of(b"old")).expect("told"),
            SwapOutcome::Done { .. }
        ));
        drop(temporary);
        assert_eq!(fs::read(&path).expect("read"), b"ours");
        assert_eq!(names(dir.path()), ["a.md"]);
    }

    #[test]
    fn leftovers_go_after_a_day() {
        let dir = tempfile::tempdir().expect("a folder");
        for name in [".tracebook-12.tmp", ".tracebook-x", "a.tmp"] {
            fs::write(dir.path().join(name), "x").expect("written");
        }
        let now = SystemTime::now();
        assert_eq!(remove_stale_files(dir.path(), now).expect("listed"), 0);
        assert_eq!(remove_stale_files(dir.path(), now + STALE_TEMPORARY_AGE * 2).expect("listed"), 1);
        assert_eq!(names(dir.path()), [".tracebook-x", "a.tmp"]);
    }
}
