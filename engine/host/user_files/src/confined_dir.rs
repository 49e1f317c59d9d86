//! A folder that file access never leaves by `..`, an absolute path or a symlink, even one that another program makes
//! meanwhile. Files are reached by descriptors of their folders, not by absolute paths. Inner symlinks are followed,
//! except where a volume's files are changed and where tools read: rules hold for a file's own path.

use anyhow::{anyhow, bail};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use store::disk::{DiskError, io_reason};

/// Maximum number of symlinks followed on the way to one file.
#[cfg(unix)]
const MAX_SYMLINKS: usize = 40;
/// Maximum number of retries if the file system changes while a path is resolved; then the path is walked part by part.
#[cfg(target_os = "linux")]
const MAX_RETRIES: usize = 64;
/// Maximum length of a path inside a folder, in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// Reason why a file or folder was not opened.
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

    /// Returns whether nothing with this name exists.
    pub fn is_missing(&self) -> bool {
        self.kind == EntryKind::Missing
    }

    /// Returns whether the path leads out of the folder.
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

/// Path of a file inside a folder that access never leaves: a volume's, or the workspace's for its trash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfinedPath {
    /// The folder that the path stays in.
    pub root: PathBuf,
    /// The path inside it, with `/` between its parts.
    pub path: String,
}

impl ConfinedPath {
    /// Creates the path of a file inside this folder.
    pub fn new(root: &Path, path: &str) -> ConfinedPath {
        ConfinedPath { root: root.to_owned(), path: path.to_owned() }
    }

    /// Returns the full path for messages. It must never be used to open the file.
    pub fn display(&self) -> String {
        self.root.join(&self.path).display().to_string()
    }

    /// Opens the file for reading, if it's an ordinary file.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if it isn't, or can't be opened.
    pub fn open(&self) -> Result<(File, Metadata), OpenRefusal> {
        ConfinedFolder::open_root(&self.root)?.open_regular_file(&self.path)
    }

    /// Returns the file's bytes, if it's an ordinary file of at most `most` bytes.
    pub fn read(&self, most: u64) -> Option<Vec<u8>> {
        let (file, meta) = self.open().ok()?;
        let mut bytes = Vec::with_capacity(usize::try_from(meta.len().min(most)).unwrap_or(0));
        file.take(most + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= most).then_some(bytes)
    }

    /// Returns the file's text, if it's an ordinary file of at most `most` bytes.
    ///
    /// # Errors
    /// Returns a message if it isn't, or can't be read.
    pub fn read_text(&self, most: u64) -> anyhow::Result<String> {
        let (file, _) = self.open()?;
        let mut text = String::new();
        let read = file.take(most + 1).read_to_string(&mut text);
        read.map_err(|error| anyhow!("the file can't be read ({}): {}", io_reason(&error), self.display()))?;
        if text.len() as u64 > most {
            bail!("the file has more than {} MiB: {}", most >> 20, self.display());
        }
        Ok(text)
    }

    /// Opens the folder that contains the file, and returns the file's name there. `make` creates missing folders, but
    /// not the volume's own: its drive may not be connected. No symlink is followed: scans list no file behind one.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if the folder can't be opened.
    pub fn open_parent(&self, make: bool) -> Result<(ConfinedFolder, OsString), OpenRefusal> {
        ConfinedFolder::open_root(&self.root)?.open_real_parent(&self.path, make)
    }

    /// Returns the file's metadata, without following a symlink.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if the file or its folder can't be read.
    pub fn metadata(&self) -> Result<Metadata, OpenRefusal> {
        let (folder, name) = self.open_parent(false)?;
        folder.metadata(&name).map_err(|error| refused_by(&error, Path::new(&self.path)))
    }

    /// Replaces the descriptor's path in an error by the file's own path.
    pub fn with_display_path(&self, error: DiskError) -> DiskError {
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
        _ => OpenRefusal::other(format!("it cannot be looked at ({}): {path}", io_reason(error))),
    }
}

/// An open folder that file access never leaves.
#[derive(Debug)]
pub struct ConfinedFolder {
    #[cfg(unix)]
    held: std::os::fd::OwnedFd,
    /// The folder's path when it was opened.
    place: PathBuf,
    /// The path that the root was opened with: absolute symlinks may lead through it.
    named: PathBuf,
}

/// Locations of roots when they were first opened. A root that a symlink replaces later is refused.
static KNOWN_ROOTS: Mutex<BTreeMap<PathBuf, PathBuf>> = Mutex::new(BTreeMap::new());

/// Forgets a root's location, because the user has just chosen it, wherever its path leads now.
pub fn forget_root(root: &Path) {
    KNOWN_ROOTS.lock().unwrap_or_else(PoisonError::into_inner).remove(root);
}

/// Returns whether a root is still the folder that it was when first opened.
fn is_same_root(root: &Path, place: &Path) -> bool {
    let mut roots = KNOWN_ROOTS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = roots.entry(root.to_owned()).or_insert_with(|| place.to_owned());
    if place == root {
        *known = place.to_owned(); // no symlink is on the way
    }
    known == place
}

/// Splits a path inside a root into its parts, or refuses it.
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

/// Normalizes a path inside a root: no empty parts, no `.`.
///
/// # Errors
/// Returns an [`OpenRefusal`] if the path leads out of the root.
pub fn normalize_path(path: &str) -> Result<String, OpenRefusal> {
    let parts: Vec<&str> = path_parts(Path::new(path))?.into_iter().filter_map(OsStr::to_str).collect();
    Ok(parts.join("/"))
}

impl ConfinedFolder {
    /// Opens a volume's folder. It may be a symlink, because the user chose it.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if it can't be opened, or if a symlink has replaced it since it was first opened.
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

    /// Returns the folder's path when it was opened: for messages, and for processes that start there in a sandbox of
    /// their own.
    pub fn original_path(&self) -> &Path {
        &self.place
    }

    /// Opens an ordinary file inside the folder for reading. Refuses folders, pipes, devices and sockets, and never
    /// blocks on them.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if it isn't an ordinary file, or can't be opened.
    pub fn open_regular_file(&self, path: impl AsRef<Path>) -> Result<(File, Metadata), OpenRefusal> {
        let path = path.as_ref();
        let file = self.open_file(path)?;
        let meta = file.metadata().map_err(|error| refused_by(&error, path))?;
        if !meta.is_file() {
            return Err(OpenRefusal::other(format!("it is not an ordinary file: {}", path.display())));
        }
        Ok((file, meta))
    }

    /// Returns a path of this folder for directory walks: it names a folder, not a symlink, even if the system presents
    /// descriptors as symlinks.
    pub fn walk_path(&self) -> PathBuf {
        self.stable_path().join(".")
    }

    /// Returns the path of a direct entry, for functions that need a path.
    pub fn join(&self, name: &OsStr) -> PathBuf {
        self.stable_path().join(name)
    }

    /// Returns the metadata of a direct entry, without following a symlink.
    ///
    /// # Errors
    /// Returns the I/O error if the metadata can't be read.
    pub fn metadata(&self, name: &OsStr) -> std::io::Result<Metadata> {
        std::fs::symlink_metadata(self.join(name))
    }

    /// Returns whether the folder has a direct entry with this name.
    pub fn has_entry(&self, name: &OsStr) -> bool {
        self.metadata(name).is_ok()
    }
}

#[cfg(unix)]
impl ConfinedFolder {
    /// Opens a folder that the user has just chosen, wherever its path leads.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if it can't be opened.
    pub fn open_chosen(root: &Path) -> Result<ConfinedFolder, OpenRefusal> {
        let fail = |error: &std::io::Error| {
            let kind = if error.kind() == std::io::ErrorKind::NotFound { EntryKind::Missing } else { EntryKind::Other };
            let why = io_reason(&error);
            OpenRefusal::new(kind, format!("the volume's folder cannot be opened ({why}): {}", root.display()))
        };
        let held = open(rustix::fs::CWD, root, FOLDER_FLAGS).map_err(|error| fail(&error.into()))?;
        let place = descriptor_path(&held, root).map_err(|error| fail(&error))?;
        Ok(ConfinedFolder { held, place, named: root.to_owned() })
    }

    /// Opens a folder inside this one; an empty path opens this folder again.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if it can't be opened.
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

    /// Opens a file inside the folder for reading. Never blocks, whatever the file is.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if it can't be opened.
    pub fn open_file(&self, path: impl AsRef<Path>) -> Result<File, OpenRefusal> {
        let path = path.as_ref();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self
            .reach(&path_parts(path)?, flags)
            .map_err(|error| refusal_reason(error, "the file can't be read", path))?;
        Ok(File::from(file))
    }

    /// Opens a file for reading like [`ConfinedFolder::open_file`], but follows no symlink: what is allowed for a path
    /// isn't done to a file with another one.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if it can't be opened, or is behind a symlink.
    pub fn open_real_file(&self, path: impl AsRef<Path>) -> Result<File, OpenRefusal> {
        let path = path.as_ref();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        if let Ok(file) = self.resolve(&path_parts(path)?, flags, false) {
            return Ok(File::from(file));
        }
        let linked = self.open_file(path)?;
        let real = descriptor_path(&linked.into(), &self.place.join(path)).map_err(|error| refused_by(&error, path))?;
        let real = real.strip_prefix(&self.place).unwrap_or(&real).display();
        Err(OpenRefusal::other(format!("a symlink leads there; the file's own path is {real}: {}", path.display())))
    }

    /// Opens the folder that contains a file, and returns the file's name there; creates missing folders on request.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if the folder can't be opened or created.
    pub fn open_parent(&self, path: impl AsRef<Path>, make: bool) -> Result<(ConfinedFolder, OsString), OpenRefusal> {
        self.open_way(path.as_ref(), make, true)
    }

    /// Opens the folder that contains a file like [`ConfinedFolder::open_parent`], but follows no symlink.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if the folder can't be opened or created, or is behind a symlink.
    pub fn open_real_parent(
        &self,
        path: impl AsRef<Path>,
        make: bool,
    ) -> Result<(ConfinedFolder, OsString), OpenRefusal> {
        self.open_way(path.as_ref(), make, false)
    }

    fn open_way(&self, path: &Path, make: bool, links: bool) -> Result<(ConfinedFolder, OsString), OpenRefusal> {
        let parts = path_parts(path)?;
        let Some((name, way)) = parts.split_last() else {
            return Err(OpenRefusal::other("that is the volume's own folder"));
        };
        let held = match self.resolve(way, FOLDER_FLAGS, links) {
            Err(Errno::NOENT) if make => self.create_folders(way, path, links)?,
            Err(_) if !links => return Err(self.refusal_on_way(way, name, path)),
            reached => reached.map_err(|error| refusal_reason(error, "its folder cannot be opened", path))?,
        };
        let place =
            descriptor_path(&held, &self.place.join(join_parts(way))).map_err(|error| refused_by(&error, path))?;
        Ok((ConfinedFolder { held, named: place.clone(), place }, OsString::from(name)))
    }

    /// Returns why the folder of a file isn't opened where no symlink is followed.
    fn refusal_on_way(&self, way: &[&OsStr], name: &OsStr, path: &Path) -> OpenRefusal {
        let known = (0..=way.len()).rev().find_map(|count| {
            let (reached, rest) = (join_parts(&way[..count]), join_parts(&way[count..]));
            Some((self.open_folder(&reached).ok()?.place, reached, rest))
        });
        match known.filter(|(place, reached, _)| *place != self.place.join(reached)) {
            Some((place, _, rest)) => {
                let real = place.join(rest).join(name);
                OpenRefusal::other(format!(
                    "a symlink on the way to {} leads elsewhere in the volume; the file's own path is {}",
                    path.display(),
                    real.strip_prefix(&self.place).unwrap_or(&real).display()
                ))
            }
            None => match self.reach(way, FOLDER_FLAGS) {
                Err(error) => refusal_reason(error, "its folder cannot be opened", path),
                Ok(_) => OpenRefusal::other(format!("its folder changes all the time: {}", path.display())),
            },
        }
    }

    /// Opens a folder inside this one, and creates its missing parts.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if it can't be opened or created.
    pub fn open_or_create_folder(&self, path: impl AsRef<Path>) -> Result<ConfinedFolder, OpenRefusal> {
        let path = path.as_ref();
        let parts = path_parts(path)?;
        let held = self.create_folders(&parts, path, true)?;
        let place =
            descriptor_path(&held, &self.place.join(join_parts(&parts))).map_err(|error| refused_by(&error, path))?;
        Ok(ConfinedFolder { held, named: place.clone(), place })
    }

    /// Opens a folder inside this one, and creates it and its parents if missing.
    fn create_folders(&self, way: &[&OsStr], path: &Path, links: bool) -> Result<OwnedFd, OpenRefusal> {
        let mut held =
            self.reach(&[], FOLDER_FLAGS).map_err(|error| refusal_reason(error, "it cannot be opened", path))?;
        for (at, part) in way.iter().enumerate() {
            let next = match self.resolve(&way[..=at], FOLDER_FLAGS, links) {
                Err(Errno::NOENT) => {
                    match rustix::fs::mkdirat(&held, *part, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(refusal_reason(error, "the folder cannot be made", path)),
                    }
                    let _ = rustix::fs::fsync(&held); // a file in it is what must last, and is made to
                    self.resolve(&way[..=at], FOLDER_FLAGS, links)
                }
                reached => reached,
            };
            held = next.map_err(|error| refusal_reason(error, "its folder cannot be opened", path))?;
        }
        Ok(held)
    }

    /// Removes a file directly inside this folder.
    ///
    /// # Errors
    /// Returns a message if the file can't be removed.
    pub fn remove_file(&self, name: &OsStr) -> anyhow::Result<()> {
        let gone = rustix::fs::unlinkat(&self.held, name, AtFlags::empty());
        gone.map_err(|error| anyhow!("it could not be removed ({})", io_reason(&error)))?;
        store::disk::sync_folder(&self.stable_path())
            .map_err(|error| anyhow!("it could not be removed for good ({})", io_reason(&error)))
    }

    /// Removes a folder directly inside this one, if it's empty.
    pub fn remove_empty_folder(&self, name: &OsStr) {
        let _ = rustix::fs::unlinkat(&self.held, name, AtFlags::REMOVEDIR); // refused while something is in it
    }

    /// Returns a path of this folder for functions that need one. It leads here even if the folder is moved, and never
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
        self.resolve(parts, flags, true)
    }

    /// Opens what is inside this folder. `links`: whether symlinks that stay inside are followed.
    fn resolve(&self, parts: &[&OsStr], flags: OFlags, links: bool) -> Result<OwnedFd, Errno> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::ResolveFlags;
            let path = if parts.is_empty() { PathBuf::from(".") } else { join_parts(parts) };
            let inside = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            let inside = if links { inside } else { inside | ResolveFlags::NO_SYMLINKS };
            for _ in 0..MAX_RETRIES {
                match rustix::fs::openat2(&self.held, &path, flags | OFlags::CLOEXEC, Mode::empty(), inside) {
                    // Something was renamed on the way, and the kernel can't tell whether the path stays inside: retry.
                    Err(Errno::AGAIN) => {}
                    // Linux before 5.6, or a container that doesn't know the call; or an absolute symlink, which may
                    // lead inside.
                    Err(Errno::NOSYS | Errno::PERM | Errno::XDEV) => break,
                    done => return done,
                }
            }
        }
        self.walk(parts, flags, links)
    }

    /// Resolves a path part by part: the system follows no symlink; each is read here, and `..` returns the way it
    /// came.
    fn walk(&self, parts: &[&OsStr], flags: OFlags, links: bool) -> Result<OwnedFd, Errno> {
        use std::os::unix::ffi::OsStrExt;
        let mut left: Vec<OsString> = parts.iter().rev().map(OsString::from).collect();
        let mut way: Vec<OwnedFd> = Vec::new();
        let mut followed = 0;
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
                Err(error @ (Errno::LOOP | Errno::NOTDIR | Errno::MLINK)) if links => {
                    let target = rustix::fs::readlinkat(at, part.as_os_str(), Vec::new()).map_err(|_| error)?;
                    followed += 1;
                    if followed > MAX_SYMLINKS {
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
        // The errors of opening a socket, or a device without a driver.
        Errno::NXIO | Errno::NODEV => OpenRefusal::other(format!("it is not an ordinary file: {path}")),
        error => OpenRefusal::other(format!("{what} ({}): {path}", io_reason(&error))),
    }
}

/// Fallback for systems without folder descriptors: checks the path for symlinks, and then uses it.
#[cfg(not(unix))]
impl ConfinedFolder {
    /// Opens a folder that the user has just chosen, wherever its path leads.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if it can't be opened.
    pub fn open_chosen(root: &Path) -> Result<ConfinedFolder, OpenRefusal> {
        let place = root.canonicalize().map_err(|error| {
            let kind = if error.kind() == std::io::ErrorKind::NotFound { EntryKind::Missing } else { EntryKind::Other };
            let why = io_reason(&error);
            OpenRefusal::new(kind, format!("the volume's folder cannot be opened ({why}): {}", root.display()))
        })?;
        Ok(ConfinedFolder { place, named: root.to_owned() })
    }

    /// Opens a folder inside this one, and creates its missing parts.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if it can't be opened or created.
    pub fn open_or_create_folder(&self, path: impl AsRef<Path>) -> Result<ConfinedFolder, OpenRefusal> {
        let path = path.as_ref();
        let made = std::fs::create_dir_all(self.reach(path)?);
        made.map_err(|error| {
            OpenRefusal::other(format!("the folder cannot be made ({}): {}", io_reason(&error), path.display()))
        })?;
        self.open_folder(path)
    }

    /// Opens a folder inside this one; an empty path opens this folder again.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if it can't be opened.
    pub fn open_folder(&self, path: impl AsRef<Path>) -> Result<ConfinedFolder, OpenRefusal> {
        let path = path.as_ref();
        let place = self.reach(path)?;
        if place.is_dir() {
            Ok(ConfinedFolder { named: place.clone(), place })
        } else {
            Err(OpenRefusal::new(EntryKind::Missing, format!("no such folder: {}", path.display())))
        }
    }

    /// Opens a file inside the folder for reading.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if it can't be opened.
    pub fn open_file(&self, path: impl AsRef<Path>) -> Result<File, OpenRefusal> {
        let path = path.as_ref();
        File::open(self.reach(path)?).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => refused_by(&error, path),
            _ => OpenRefusal::other(format!("the file can't be read ({}): {}", io_reason(&error), path.display())),
        })
    }

    /// Opens a file for reading like [`ConfinedFolder::open_file`], but follows no symlink: what is allowed for a path
    /// isn't done to a file with another one.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if it can't be opened, or is behind a symlink.
    pub fn open_real_file(&self, path: impl AsRef<Path>) -> Result<File, OpenRefusal> {
        let path = path.as_ref();
        if self.reach(path)? != self.place.join(join_parts(&path_parts(path)?)) {
            return Err(OpenRefusal::other(format!(
                "a symlink leads there; use the file's own path: {}",
                path.display()
            )));
        }
        self.open_file(path)
    }

    /// Opens the folder that contains a file, and returns the file's name there; creates missing folders on request.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if the folder can't be opened or created.
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
                OpenRefusal::other(format!("the folder cannot be made ({}): {}", io_reason(&error), path.display()))
            })?;
        } else if !place.is_dir() {
            return Err(OpenRefusal::new(EntryKind::Missing, format!("no such file or folder: {}", path.display())));
        }
        Ok((ConfinedFolder { named: place.clone(), place }, OsString::from(name)))
    }

    /// Opens the folder that contains a file like [`ConfinedFolder::open_parent`], but follows no symlink.
    ///
    /// # Errors
    /// Returns an [`OpenRefusal`] if the folder can't be opened or created, or is behind a symlink.
    pub fn open_real_parent(
        &self,
        path: impl AsRef<Path>,
        make: bool,
    ) -> Result<(ConfinedFolder, OsString), OpenRefusal> {
        let path = path.as_ref();
        let way = join_parts(&path_parts(path)?);
        let way = way.parent().unwrap_or(Path::new(""));
        if self.reach(way)? != self.place.join(way) {
            let why = "a symlink on the way leads elsewhere in the volume; use the file's own path";
            return Err(OpenRefusal::other(format!("{why}: {}", path.display())));
        }
        self.open_parent(path, make)
    }

    /// Removes a file directly inside this folder.
    ///
    /// # Errors
    /// Returns a message if the file can't be removed.
    pub fn remove_file(&self, name: &OsStr) -> anyhow::Result<()> {
        std::fs::remove_file(self.place.join(name))
            .map_err(|error| anyhow!("it could not be removed ({})", io_reason(&error)))
    }

    /// Removes a folder directly inside this one, if it's empty.
    pub fn remove_empty_folder(&self, name: &OsStr) {
        let _ = std::fs::remove_dir(self.place.join(name)); // refused while something is in it
    }

    /// Returns a path of this folder for functions that need one.
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
mod tests;
