//! A folder that file access never leaves: not by `..`, not by an absolute path, not by a symlink, also not by one that
//! another program puts there meanwhile. Files are reached by descriptors of their folders, never by names from the
//! top. Symlinks that stay inside are followed.

use anyhow::{anyhow, bail};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use store::disk::DiskError;

/// Symlinks that are followed on the way to one file.
#[cfg(unix)]
const MAX_SYMLINKS: usize = 40;
/// A file system that changes while a path is resolved is asked so often; then the path is walked part by part.
#[cfg(target_os = "linux")]
const MAX_RETRIES: usize = 64;
/// The longest path inside a folder, in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// Why a file or folder was not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRefusal {
    kind: EntryKind,
    why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryKind {
    Missing,
    Outside,
    Other,
}

impl OpenRefusal {
    fn new(kind: EntryKind, why: impl Into<String>) -> OpenRefusal {
        OpenRefusal { kind, why: why.into() }
    }

    fn other(why: impl Into<String>) -> OpenRefusal {
        OpenRefusal::new(EntryKind::Other, why)
    }

    /// Whether there is nothing of that name.
    pub fn is_missing(&self) -> bool {
        self.kind == EntryKind::Missing
    }

    /// Whether the way leads out of the folder.
    pub fn is_outside(&self) -> bool {
        self.kind == EntryKind::Outside
    }
}

impl fmt::Display for OpenRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for OpenRefusal {}

impl From<OpenRefusal> for String {
    fn from(refused: OpenRefusal) -> String {
        refused.why
    }
}

/// A file inside a folder that access to it never leaves: a volume's, or the workspace's for its trash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfinedPath {
    /// The folder that the path stays in.
    pub root: PathBuf,
    /// The path inside it, `/` between its parts.
    pub path: String,
}

impl ConfinedPath {
    /// This path inside this folder.
    pub fn new(root: &Path, path: &str) -> ConfinedPath {
        ConfinedPath { root: root.to_owned(), path: path.to_owned() }
    }

    /// Names the file in messages. Never to be opened by this name.
    pub fn display(&self) -> String {
        self.root.join(&self.path).display().to_string()
    }

    /// Opens it for reading: an ordinary file, and nothing else.
    ///
    /// # Errors
    /// [`OpenRefusal`].
    pub fn open(&self) -> Result<(File, Metadata), OpenRefusal> {
        ConfinedFolder::open_root(&self.root)?.open_regular_file(&self.path)
    }

    /// All its bytes, if it is an ordinary file of at most `most` bytes.
    pub fn read(&self, most: u64) -> Option<Vec<u8>> {
        let (file, meta) = self.open().ok()?;
        let mut bytes = Vec::with_capacity(usize::try_from(meta.len().min(most)).unwrap_or(0));
        file.take(most + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= most).then_some(bytes)
    }

    /// Its text, if it is an ordinary file of at most `most` bytes.
    ///
    /// # Errors
    /// A sentence.
    pub fn read_text(&self, most: u64) -> anyhow::Result<String> {
        let (file, _) = self.open()?;
        let mut text = String::new();
        let read = file.take(most + 1).read_to_string(&mut text);
        read.map_err(|error| anyhow!("the file can't be read ({error}): {}", self.display()))?;
        if text.len() as u64 > most {
            bail!("the file has more than {} MiB: {}", most >> 20, self.display());
        }
        Ok(text)
    }

    /// Opens the folder that contains it, and returns its name there; `make`: creates missing folders, even the
    /// volume's own, for example of a joined volume without files.
    ///
    /// # Errors
    /// [`OpenRefusal`].
    pub fn open_parent(&self, make: bool) -> Result<(ConfinedFolder, OsString), OpenRefusal> {
        let is_gone = std::fs::symlink_metadata(&self.root).is_err_and(|error| error.kind() == ErrorKind::NotFound);
        if make && is_gone && !self.root.as_os_str().is_empty() {
            store::disk::create_folder(&self.root).map_err(|error| refused_by(&error, &self.root))?;
        }
        ConfinedFolder::open_root(&self.root)?.open_parent(&self.path, make)
    }

    /// Returns its metadata, without following a symlink.
    ///
    /// # Errors
    /// [`OpenRefusal`].
    pub fn metadata(&self) -> Result<Metadata, OpenRefusal> {
        let (folder, name) = self.open_parent(false)?;
        folder.metadata(&name).map_err(|error| refused_by(&error, Path::new(&self.path)))
    }

    /// An error at the file by its own name instead of the descriptor's.
    pub(crate) fn with_display_path(&self, error: DiskError) -> DiskError {
        let own = || self.root.join(&self.path);
        match error {
            DiskError::Full { .. } => DiskError::Full { path: own() },
            DiskError::ReadOnly { .. } => DiskError::ReadOnly { path: own() },
            DiskError::Io { what, why, .. } => DiskError::Io { what, why, path: own() },
            other => other,
        }
    }
}

fn refused_by(error: &std::io::Error, path: &Path) -> OpenRefusal {
    let path = path.display();
    match error.kind() {
        std::io::ErrorKind::NotFound => OpenRefusal::new(EntryKind::Missing, format!("no such file or folder: {path}")),
        _ => OpenRefusal::other(format!("it cannot be looked at ({error}): {path}")),
    }
}

/// A folder that is held open.
#[derive(Debug)]
pub struct ConfinedFolder {
    #[cfg(unix)]
    held: std::os::fd::OwnedFd,
    /// Where it was when it was opened.
    place: PathBuf,
    /// The path that the root was opened with: absolute symlinks may lead through it.
    named: PathBuf,
}

/// Where roots lay when they were opened first. One that a symlink replaces later is refused.
static KNOWN_ROOTS: Mutex<BTreeMap<PathBuf, PathBuf>> = Mutex::new(BTreeMap::new());

/// Forgets where a root lay: the user has just chosen it, wherever its path leads now.
pub(crate) fn forget_root(root: &Path) {
    KNOWN_ROOTS.lock().unwrap_or_else(PoisonError::into_inner).remove(root);
}

/// Whether a root is still the folder that it was when first opened.
fn is_same_root(root: &Path, place: &Path) -> bool {
    let mut roots = KNOWN_ROOTS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = roots.entry(root.to_owned()).or_insert_with(|| place.to_owned());
    if place == root {
        *known = place.to_owned(); // no symlink is on the way
    }
    known == place
}

/// The parts of a path inside a root, or why it is none.
fn path_parts(path: &Path) -> Result<Vec<&OsStr>, OpenRefusal> {
    let refuse = |why: &str| Err(OpenRefusal::new(EntryKind::Outside, format!("{why}: {}", path.display())));
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.contains(&0) || bytes.len() > MAX_PATH_BYTES {
        return Err(OpenRefusal::other(format!("a path holds no zero byte and has at most {MAX_PATH_BYTES} bytes")));
    }
    if cfg!(windows) && bytes.iter().any(|byte| matches!(byte, b'\\' | b':')) {
        return refuse("the path begins at the top; name it from the volume's folder on");
    }
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part),
            Component::CurDir => {}
            Component::ParentDir => return refuse("`..` leads out of the volume and is not followed"),
            Component::RootDir | Component::Prefix(_) => {
                return refuse("the path begins at the top; name it from the volume's folder on");
            }
        }
    }
    Ok(parts)
}

fn join_parts(parts: &[&OsStr]) -> PathBuf {
    parts.iter().collect()
}

/// A path inside a root in its one form: no empty parts, no `.`.
///
/// # Errors
/// [`OpenRefusal`]: it leads out of the root.
pub fn normalize_path(path: &str) -> Result<String, OpenRefusal> {
    let parts: Vec<&str> = path_parts(Path::new(path))?.into_iter().filter_map(OsStr::to_str).collect();
    Ok(parts.join("/"))
}

impl ConfinedFolder {
    /// Opens a volume's folder. It may be a symlink: the user chose it.
    ///
    /// # Errors
    /// [`OpenRefusal`]; also where a symlink has replaced it since it was opened first.
    pub fn open_root(root: &Path) -> Result<ConfinedFolder, OpenRefusal> {
        if root.as_os_str().is_empty() {
            return Err(OpenRefusal::other("the file belongs to no open volume"));
        }
        let folder = ConfinedFolder::open_chosen(root)?;
        if !is_same_root(root, &folder.place) {
            let why = "the volume's folder was replaced by a symlink, which is not followed; open the folder again";
            return Err(OpenRefusal::new(EntryKind::Outside, format!("{why}: {}", root.display())));
        }
        Ok(folder)
    }

    /// Where it was when it was opened: for words, and for processes that start there behind walls of their own.
    pub fn original_path(&self) -> &Path {
        &self.place
    }

    /// Opens an ordinary file inside it for reading, and nothing else: no folder, pipe, device or socket. Does not wait
    /// for it, whatever it is.
    ///
    /// # Errors
    /// [`OpenRefusal`].
    pub fn open_regular_file(&self, path: impl AsRef<Path>) -> Result<(File, Metadata), OpenRefusal> {
        let path = path.as_ref();
        let file = self.open_file(path)?;
        let meta = file.metadata().map_err(|error| refused_by(&error, path))?;
        if !meta.is_file() {
            return Err(OpenRefusal::other(format!("it is not an ordinary file: {}", path.display())));
        }
        Ok((file, meta))
    }

    /// The path of this folder for a walk through it: a folder's and no symlink's, whatever the system says of
    /// descriptors.
    pub fn walk_path(&self) -> PathBuf {
        self.stable_path().join(".")
    }

    /// The name of a file of this very folder, for functions that want a path.
    pub fn join(&self, name: &OsStr) -> PathBuf {
        self.stable_path().join(name)
    }

    /// Returns the metadata of a direct entry, without following a symlink.
    ///
    /// # Errors
    /// The system's.
    pub fn metadata(&self, name: &OsStr) -> std::io::Result<Metadata> {
        std::fs::symlink_metadata(self.join(name))
    }

    /// Whether this very folder has an entry of that name.
    pub fn has_entry(&self, name: &OsStr) -> bool {
        self.metadata(name).is_ok()
    }
}

#[cfg(unix)]
impl ConfinedFolder {
    /// Opens a folder that the user has just named, wherever its path leads.
    ///
    /// # Errors
    /// [`OpenRefusal`].
    pub fn open_chosen(root: &Path) -> Result<ConfinedFolder, OpenRefusal> {
        let fail = |error: &std::io::Error| {
            let kind = if error.kind() == std::io::ErrorKind::NotFound { EntryKind::Missing } else { EntryKind::Other };
            OpenRefusal::new(kind, format!("the volume's folder cannot be opened ({error}): {}", root.display()))
        };
        let held = open(rustix::fs::CWD, root, FOLDER_FLAGS).map_err(|error| fail(&error.into()))?;
        let place = descriptor_path(&held, root).map_err(|error| fail(&error))?;
        Ok(ConfinedFolder { held, place, named: root.to_owned() })
    }

    /// Opens a folder inside it; empty: itself once more.
    ///
    /// # Errors
    /// [`OpenRefusal`].
    pub fn open_folder(&self, path: impl AsRef<Path>) -> Result<ConfinedFolder, OpenRefusal> {
        let path = path.as_ref();
        let parts = path_parts(path)?;
        let held = self
            .reach(&parts, FOLDER_FLAGS)
            .map_err(|error| refusal_reason(error, "the folder cannot be opened", path))?;
        let place =
            descriptor_path(&held, &self.place.join(join_parts(&parts))).map_err(|error| refused_by(&error, path))?;
        Ok(ConfinedFolder { held, named: place.clone(), place })
    }

    /// Opens a file inside it for reading. Whatever it is, this does not wait for it.
    ///
    /// # Errors
    /// [`OpenRefusal`].
    pub fn open_file(&self, path: impl AsRef<Path>) -> Result<File, OpenRefusal> {
        let path = path.as_ref();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self
            .reach(&path_parts(path)?, flags)
            .map_err(|error| refusal_reason(error, "the file can't be read", path))?;
        Ok(File::from(file))
    }

    /// Opens the folder that contains a file, and returns the file's name there; creates missing folders on request.
    ///
    /// # Errors
    /// [`OpenRefusal`].
    pub fn open_parent(&self, path: impl AsRef<Path>, make: bool) -> Result<(ConfinedFolder, OsString), OpenRefusal> {
        let path = path.as_ref();
        let parts = path_parts(path)?;
        let Some((name, way)) = parts.split_last() else {
            return Err(OpenRefusal::other("that is the volume's own folder"));
        };
        let fail = |error| refusal_reason(error, "its folder cannot be opened", path);
        let held = match self.reach(way, FOLDER_FLAGS) {
            Err(Errno::NOENT) if make => self.create_folders(way, path)?,
            reached => reached.map_err(fail)?,
        };
        let place =
            descriptor_path(&held, &self.place.join(join_parts(way))).map_err(|error| refused_by(&error, path))?;
        Ok((ConfinedFolder { held, named: place.clone(), place }, OsString::from(name)))
    }

    /// Opens a folder inside it, and makes what is missing of it.
    ///
    /// # Errors
    /// [`OpenRefusal`].
    pub fn open_or_create_folder(&self, path: impl AsRef<Path>) -> Result<ConfinedFolder, OpenRefusal> {
        let path = path.as_ref();
        let parts = path_parts(path)?;
        let held = self.create_folders(&parts, path)?;
        let place =
            descriptor_path(&held, &self.place.join(join_parts(&parts))).map_err(|error| refused_by(&error, path))?;
        Ok(ConfinedFolder { held, named: place.clone(), place })
    }

    /// Opens a folder inside it, and makes it and those above it where they are missing.
    fn create_folders(&self, way: &[&OsStr], path: &Path) -> Result<OwnedFd, OpenRefusal> {
        let mut held =
            self.reach(&[], FOLDER_FLAGS).map_err(|error| refusal_reason(error, "it cannot be opened", path))?;
        for (at, part) in way.iter().enumerate() {
            let next = match self.reach(&way[..=at], FOLDER_FLAGS) {
                Err(Errno::NOENT) => {
                    match rustix::fs::mkdirat(&held, *part, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(refusal_reason(error, "the folder cannot be made", path)),
                    }
                    let _ = rustix::fs::fsync(&held); // a file in it is what must last, and is made to
                    self.reach(&way[..=at], FOLDER_FLAGS)
                }
                reached => reached,
            };
            held = next.map_err(|error| refusal_reason(error, "its folder cannot be opened", path))?;
        }
        Ok(held)
    }

    /// Removes a file of this very folder.
    ///
    /// # Errors
    /// A sentence.
    pub fn remove_file(&self, name: &OsStr) -> anyhow::Result<()> {
        let gone = rustix::fs::unlinkat(&self.held, name, AtFlags::empty());
        gone.map_err(|error| anyhow!("it could not be removed ({error})"))?;
        store::disk::sync_folder(&self.stable_path())
            .map_err(|error| anyhow!("it could not be removed for good ({error})"))
    }

    /// Removes a folder of this very folder, if it is empty.
    pub fn remove_empty_folder(&self, name: &OsStr) {
        let _ = rustix::fs::unlinkat(&self.held, name, AtFlags::REMOVEDIR); // refused while something is in it
    }

    /// A path of this folder for functions that want one: it leads here wherever the folder is moved, and never
    /// elsewhere.
    pub fn stable_path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        if cfg!(target_os = "linux") {
            PathBuf::from(format!("/proc/self/fd/{}", self.held.as_raw_fd()))
        } else {
            self.place.clone()
        }
    }

    fn reach(&self, parts: &[&OsStr], flags: OFlags) -> Result<OwnedFd, Errno> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::ResolveFlags;
            let path = if parts.is_empty() { PathBuf::from(".") } else { join_parts(parts) };
            let inside = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            for _ in 0..MAX_RETRIES {
                match rustix::fs::openat2(&self.held, &path, flags | OFlags::CLOEXEC, Mode::empty(), inside) {
                    // Something was renamed on the way: the kernel cannot tell, so once more.
                    Err(Errno::AGAIN) => {}
                    // Linux before 5.6, or a box that does not know the call; an absolute symlink, which may lead
                    // inside.
                    Err(Errno::NOSYS | Errno::PERM | Errno::XDEV) => break,
                    done => return done,
                }
            }
        }
        self.walk(parts, flags)
    }

    /// The same, part by part: no symlink is followed by the system, each is read, and `..` leads back the way that it
    /// came.
    fn walk(&self, parts: &[&OsStr], flags: OFlags) -> Result<OwnedFd, Errno> {
        use std::os::unix::ffi::OsStrExt;
        let mut left: Vec<OsString> = parts.iter().rev().map(OsString::from).collect();
        let mut way: Vec<OwnedFd> = Vec::new();
        let mut links = 0;
        while let Some(part) = left.pop() {
            if part == ".." {
                if way.pop().is_none() {
                    return Err(Errno::XDEV);
                }
                continue;
            }
            let at = way.last().map_or(self.held.as_fd(), AsFd::as_fd);
            let is_last = left.is_empty();
            let how = if is_last { flags } else { FOLDER_FLAGS };
            match open(at, Path::new(&part), how | OFlags::NOFOLLOW) {
                Ok(reached) if is_last => return Ok(reached),
                Ok(reached) => way.push(reached),
                Err(error @ (Errno::LOOP | Errno::NOTDIR | Errno::MLINK)) => {
                    let target = rustix::fs::readlinkat(at, part.as_os_str(), Vec::new()).map_err(|_| error)?;
                    links += 1;
                    if links > MAX_SYMLINKS {
                        return Err(Errno::LOOP);
                    }
                    let target = Path::new(OsStr::from_bytes(target.to_bytes()));
                    let inside = if target.is_absolute() {
                        way.clear();
                        let inside = target.strip_prefix(&self.place).or_else(|_| target.strip_prefix(&self.named));
                        inside.map_err(|_| Errno::XDEV)?
                    } else {
                        target
                    };
                    for component in inside.components().rev() {
                        match component {
                            Component::Normal(name) => left.push(name.to_owned()),
                            Component::ParentDir => left.push("..".into()),
                            Component::CurDir => {}
                            Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
                        }
                    }
                }
                Err(error) => return Err(error),
            }
        }
        // The path names an intermediate folder: no component was left, or a symlink led to it.
        open(way.last().map_or(self.held.as_fd(), AsFd::as_fd), Path::new("."), flags)
    }
}

#[cfg(unix)]
use rustix::fs::{AtFlags, Mode, OFlags};
#[cfg(unix)]
use rustix::io::Errno;
#[cfg(unix)]
use std::os::fd::{AsFd, OwnedFd};

#[cfg(unix)]
const FOLDER_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

#[cfg(unix)]
fn open(at: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(at, path, flags | OFlags::CLOEXEC, Mode::empty())
}

/// Returns the path of an open folder.
#[cfg(unix)]
fn descriptor_path(held: &OwnedFd, path: &Path) -> std::io::Result<PathBuf> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        if let Ok(place) = std::fs::read_link(format!("/proc/self/fd/{}", held.as_raw_fd()))
            && place.is_absolute()
        {
            return Ok(place);
        }
    }
    // Used on Linux only.
    let _ = held;
    path.canonicalize()
}

#[cfg(unix)]
fn refusal_reason(error: Errno, what: &str, path: &Path) -> OpenRefusal {
    let path = path.display();
    match error {
        Errno::NOENT => OpenRefusal::new(EntryKind::Missing, format!("no such file or folder: {path}")),
        Errno::XDEV => OpenRefusal::new(
            EntryKind::Outside,
            format!("a symlink on the way leads out of the volume and is not followed: {path}"),
        ),
        Errno::LOOP => OpenRefusal::new(
            EntryKind::Outside,
            format!("a symlink on the way leads in a circle or out of the volume and is not followed: {path}"),
        ),
        Errno::NOTDIR => OpenRefusal::other(format!("a part of the path is no folder: {path}")),
        // What opening a socket, or a device without a driver, says.
        Errno::NXIO | Errno::NODEV => OpenRefusal::other(format!("it is not an ordinary file: {path}")),
        error => OpenRefusal::other(format!("{what} ({error}): {path}")),
    }
}

/// Where descriptors of folders do not exist: the path is looked through for symlinks, and then used.
#[cfg(not(unix))]
impl ConfinedFolder {
    /// Opens a folder that the user has just named, wherever its path leads.
    ///
    /// # Errors
    /// [`OpenRefusal`].
    pub fn open_chosen(root: &Path) -> Result<ConfinedFolder, OpenRefusal> {
        let place = root.canonicalize().map_err(|error| {
            let kind = if error.kind() == std::io::ErrorKind::NotFound { EntryKind::Missing } else { EntryKind::Other };
            OpenRefusal::new(kind, format!("the volume's folder cannot be opened ({error}): {}", root.display()))
        })?;
        Ok(ConfinedFolder { place, named: root.to_owned() })
    }

    /// Opens a folder inside it, and makes what is missing of it.
    ///
    /// # Errors
    /// [`OpenRefusal`].
    pub fn open_or_create_folder(&self, path: impl AsRef<Path>) -> Result<ConfinedFolder, OpenRefusal> {
        let path = path.as_ref();
        let made = std::fs::create_dir_all(self.reach(path)?);
        made.map_err(|error| OpenRefusal::other(format!("the folder cannot be made ({error}): {}", path.display())))?;
        self.open_folder(path)
    }

    /// Opens a folder inside it; empty: itself once more.
    ///
    /// # Errors
    /// [`OpenRefusal`].
    pub fn open_folder(&self, path: impl AsRef<Path>) -> Result<ConfinedFolder, OpenRefusal> {
        let path = path.as_ref();
        let place = self.reach(path)?;
        if place.is_dir() {
            Ok(ConfinedFolder { named: place.clone(), place })
        } else {
            Err(OpenRefusal::new(EntryKind::Missing, format!("no such folder: {}", path.display())))
        }
    }

    /// Opens a file inside it for reading.
    ///
    /// # Errors
    /// [`OpenRefusal`].
    pub fn open_file(&self, path: impl AsRef<Path>) -> Result<File, OpenRefusal> {
        let path = path.as_ref();
        File::open(self.reach(path)?).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => refused_by(&error, path),
            _ => OpenRefusal::other(format!("the file can't be read ({error}): {}", path.display())),
        })
    }

    /// Opens the folder that contains a file, and returns the file's name there; creates missing folders on request.
    ///
    /// # Errors
    /// [`OpenRefusal`].
    pub fn open_parent(&self, path: impl AsRef<Path>, make: bool) -> Result<(ConfinedFolder, OsString), OpenRefusal> {
        let path = path.as_ref();
        let parts = path_parts(path)?;
        let Some((name, way)) = parts.split_last() else {
            return Err(OpenRefusal::other("that is the volume's own folder"));
        };
        let place = self.reach(&join_parts(way))?;
        if make {
            let made = std::fs::create_dir_all(&place);
            made.map_err(|error| {
                OpenRefusal::other(format!("the folder cannot be made ({error}): {}", path.display()))
            })?;
        } else if !place.is_dir() {
            return Err(OpenRefusal::new(EntryKind::Missing, format!("no such file or folder: {}", path.display())));
        }
        Ok((ConfinedFolder { named: place.clone(), place }, OsString::from(name)))
    }

    /// Removes a file of this very folder.
    ///
    /// # Errors
    /// A sentence.
    pub fn remove_file(&self, name: &OsStr) -> anyhow::Result<()> {
        std::fs::remove_file(self.place.join(name)).map_err(|error| anyhow!("it could not be removed ({error})"))
    }

    /// Removes a folder of this very folder, if it is empty.
    pub fn remove_empty_folder(&self, name: &OsStr) {
        let _ = std::fs::remove_dir(self.place.join(name)); // refused while something is in it
    }

    /// A path of this folder for functions that want one.
    pub fn stable_path(&self) -> PathBuf {
        self.place.clone()
    }

    fn reach(&self, path: &Path) -> Result<PathBuf, OpenRefusal> {
        let mut at = self.place.clone();
        for part in path_parts(path)? {
            at.push(part);
            if std::fs::symlink_metadata(&at).is_ok_and(|meta| meta.is_symlink()) {
                let inside = at.canonicalize().ok().filter(|place| place.starts_with(&self.place));
                at = inside.ok_or_else(|| {
                    let why = "a symlink on the way leads out of the volume and is not followed";
                    OpenRefusal::new(EntryKind::Outside, format!("{why}: {}", path.display()))
                })?;
            }
        }
        Ok(at)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn read(folder: &ConfinedFolder, path: &str) -> anyhow::Result<String> {
        let mut text = String::new();
        folder.open_regular_file(path)?.0.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn nothing_steps_out() {
        let dir = tempfile::tempdir().expect("a folder");
        let dir = dir.path().canonicalize().expect("there");
        let root = dir.join("root");
        std::fs::create_dir_all(root.join("a/b")).expect("made");
        std::fs::write(dir.join("secret"), b"secret").expect("written");
        std::fs::write(root.join("a/b/in.txt"), b"in").expect("written");
        symlink("../secret", root.join("out")).expect("linked");
        symlink(&dir, root.join("up")).expect("linked");
        symlink("a/b", root.join("down")).expect("linked");
        symlink("../b/in.txt", root.join("a/b/back")).expect("linked");
        symlink(root.join("a/b/in.txt"), root.join("absolute")).expect("linked");
        symlink(root.join("../secret"), root.join("sly")).expect("linked");
        symlink("/proc/self/cwd", root.join("magic")).expect("linked");
        symlink("circle", root.join("circle")).expect("linked");
        let folder = ConfinedFolder::open_root(&root).expect("opened");
        let absolute = dir.join("secret").to_string_lossy().into_owned();
        let outside = ["../secret", "a/../../secret", "out", "up/secret", "sly", "magic", "circle", "/etc/passwd"];
        let inside = ["a/b/in.txt", "./a//b/in.txt", "down/in.txt", "a/b/back", "absolute"];
        for way in inside {
            assert_eq!(read(&folder, way).expect(way), "in");
        }
        for way in outside.into_iter().chain([absolute.as_str()]) {
            let refused = folder.open_file(way).expect_err(way);
            assert!(refused.is_outside(), "{way}: {refused}");
            let above = folder.open_parent(way, true).map(|(folder, name)| folder.original_path().join(name));
            assert!(above.is_err() || above.is_ok_and(|path| path.parent() == Some(folder.original_path())), "{way}");
        }
        // Part by part, as on older systems.
        for way in inside {
            let reached = folder.walk(&path_parts(Path::new(way)).expect("a path"), OFlags::RDONLY);
            assert!(reached.is_ok(), "{way}: {reached:?}");
        }
        for way in ["out", "up/secret", "sly", "magic", "circle", "a/b/in.txt/x"] {
            let parts = path_parts(Path::new(way)).expect("a path");
            let reached = folder.walk(&parts, OFlags::RDONLY);
            assert!(reached.is_err(), "{way}: {reached:?}");
        }
        let (above, name) = folder.open_parent("new/deep/file.txt", true).expect("made");
        assert_eq!(above.original_path().join(name), folder.original_path().join("new/deep/file.txt"));
        assert_eq!(
            folder.open_parent("down/new.txt", true).expect("made").0.original_path(),
            folder.original_path().join("a/b")
        );
        assert!(folder.open_parent("up/new/file.txt", true).expect_err("refused").is_outside());
        assert!(folder.open_parent("gone/file.txt", false).expect_err("refused").is_missing());
        assert_eq!(normalize_path("./a//b/"), Ok("a/b".to_owned()));
    }

    #[test]
    fn what_is_no_file_is_refused_without_waiting() {
        let dir = tempfile::tempdir().expect("a folder");
        let fifo = dir.path().join("x.md");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
        assert!(made.success());
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("s.md")).expect("bound");
        std::fs::create_dir(dir.path().join("f.md")).expect("made");
        let folder = ConfinedFolder::open_root(dir.path()).expect("opened");
        for name in ["x.md", "s.md", "f.md"] {
            let refused = folder.open_regular_file(name).map(drop).expect_err(name);
            assert!(refused.to_string().contains("not an ordinary file"), "{refused}");
        }
    }

    #[test]
    fn a_root_may_be_a_symlink_and_is_not_replaced_by_one() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        for name in ["real", "other", "own"] {
            std::fs::create_dir(at(name)).expect("made");
            std::fs::write(at(name).join("n.md"), name).expect("written");
        }
        symlink(at("real"), at("chosen")).expect("linked");
        let text =
            |root: &Path| ConfinedFolder::open_root(root).map_err(Into::into).and_then(|folder| read(&folder, "n.md"));
        assert_eq!(text(&at("chosen")).expect("read"), "real");
        assert_eq!(text(&at("own")).expect("read"), "own");
        std::fs::rename(at("own"), at("moved")).expect("moved");
        symlink(at("other"), at("own")).expect("linked");
        assert!(text(&at("own")).expect_err("refused").to_string().contains("replaced by a symlink"));
        // Another folder in its place is what the user did.
        std::fs::remove_file(at("own")).expect("removed");
        std::fs::create_dir(at("own")).expect("made");
        std::fs::write(at("own/n.md"), "new").expect("written");
        assert_eq!(text(&at("own")).expect("read"), "new");
        forget_root(&at("chosen"));
        std::fs::remove_file(at("chosen")).expect("removed");
        symlink(at("other"), at("chosen")).expect("linked");
        assert_eq!(text(&at("chosen")).expect("read"), "other", "chosen again");
    }

    /// A folder that is a folder and a link in turn, thousands of times a second: no byte from outside, none put there.
    #[test]
    fn a_folder_that_is_swapped_for_a_symlink_leads_nowhere() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        for name in ["outside", "root", "root/sub"] {
            std::fs::create_dir(at(name)).expect("made");
        }
        std::fs::write(at("outside/n.md"), "secret").expect("written");
        std::fs::write(at("root/sub/n.md"), "own").expect("written");
        symlink(at("outside"), at("root/link")).expect("linked");
        let stop = std::sync::atomic::AtomicBool::new(false);
        let path = ConfinedPath::new(&at("root"), "sub/n.md");
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let (sub, link) = (at("root/sub"), at("root/link"));
                    // The next try comes at once.
                    let _ = rustix::fs::renameat_with(
                        rustix::fs::CWD,
                        &sub,
                        rustix::fs::CWD,
                        &link,
                        rustix::fs::RenameFlags::EXCHANGE,
                    );
                }
            });
            let (mut own, mut refused) = (0, 0);
            let begun = std::time::Instant::now();
            while begun.elapsed() < std::time::Duration::from_secs(20) && (own < 500 || refused < 500) {
                match path.read(100) {
                    Some(text) => {
                        assert_eq!(text, b"own");
                        own += 1;
                    }
                    None => refused += 1,
                }
                if let Ok((folder, _)) = path.open_parent(true) {
                    // Where it is written, if at all, is checked below.
                    let _ = std::fs::write(folder.join(OsStr::new("new.md")), "x");
                }
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(own > 0 && refused > 0, "both were met: {own} {refused}");
        });
        let names: Vec<_> = std::fs::read_dir(at("outside")).expect("listed").flatten().collect();
        assert_eq!(names.len(), 1, "nothing was put outside");
    }
}
