//! A folder that nothing steps out of: not by `..`, not by an absolute path, not by a link, also not by one that
//! another program puts there meanwhile. Files are reached by descriptors of their folders, never by names from the
//! top.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A folder that is held open.
pub(super) struct Folder {
    #[cfg(unix)]
    held: std::os::fd::OwnedFd,
    /// Where it was when it was opened.
    place: PathBuf,
}

/// The parts of a path inside a root, or why it is none.
fn parts(path: &str) -> Result<Vec<&str>, String> {
    let refuse = |why: &str| Err(format!("{why}: {path}"));
    if path.contains('\0') || path.len() > 4096 {
        return Err("a path holds no zero byte and has at most 4096 bytes".to_owned());
    }
    let absolute = path.starts_with('/') || Path::new(path).is_absolute();
    if absolute || (cfg!(windows) && path.contains(['\\', ':'])) {
        return refuse("the path begins at the top; name it from the volume's folder on");
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return refuse("`..` leads out of the volume and is not followed");
    }
    Ok(parts)
}

/// A path inside a root in its one form: no empty parts, no `.`.
pub(super) fn tidy(path: &str) -> Result<String, String> {
    Ok(parts(path)?.join("/"))
}

#[cfg(unix)]
impl Folder {
    /// Opens a root.
    pub(super) fn root(root: &Path) -> Result<Folder, String> {
        let fail = |error: &dyn std::fmt::Display| {
            format!("the volume's folder cannot be opened ({error}): {}", root.display())
        };
        let place = root.canonicalize().map_err(|error| fail(&error))?;
        let held = open(rustix::fs::CWD, &place, FOLDER).map_err(|error| fail(&error))?;
        Ok(Folder { held, place })
    }

    /// Opens a folder inside it; empty: itself once more.
    pub(super) fn folder(&self, path: &str) -> Result<Folder, String> {
        let parts = parts(path)?;
        let held = self.reach(&parts, FOLDER).map_err(|error| why(error, "the folder cannot be opened", path))?;
        Ok(Folder { held, place: self.place.join(parts.join("/")) })
    }

    /// Opens a file inside it for reading. Whatever it is, this does not wait for it.
    pub(super) fn file(&self, path: &str) -> Result<File, String> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self.reach(&parts(path)?, flags).map_err(|error| why(error, "the file cannot be opened", path))?;
        Ok(File::from(file))
    }

    /// The folder in which a file lies or will lie, and its name there; makes what is missing on the way, if asked to.
    pub(super) fn above(&self, path: &str, make: bool) -> Result<(Folder, OsString), String> {
        let parts = parts(path)?;
        let Some((name, way)) = parts.split_last() else { return Err("that is the volume's own folder".to_owned()) };
        let mut folder = Folder {
            held: self.reach(&[], FOLDER).map_err(|error| why(error, "it cannot be opened", path))?,
            place: self.place.clone(),
        };
        for part in way {
            let next = match folder.reach(&[part], FOLDER) {
                Err(Errno::NOENT) if make => {
                    match rustix::fs::mkdirat(&folder.held, *part, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(why(error, "the folder cannot be made", path)),
                    }
                    let _ = store::disk::sync_folder(&folder.path()); // a file in it is what must last, and is made to
                    folder.reach(&[part], FOLDER)
                }
                reached => reached,
            };
            let held = next.map_err(|error| why(error, "its folder cannot be opened", path))?;
            folder = Folder { held, place: folder.place.join(part) };
        }
        Ok((folder, OsString::from(name)))
    }

    /// Removes a file of this very folder.
    pub(super) fn remove(&self, name: &OsString) -> Result<(), String> {
        let gone = rustix::fs::unlinkat(&self.held, name.as_os_str(), AtFlags::empty());
        gone.map_err(|error| format!("it could not be removed ({error})"))?;
        store::disk::sync_folder(&self.path()).map_err(|error| format!("it could not be removed for good ({error})"))
    }

    /// A path of this folder for functions that want one: it leads here wherever the folder is moved, and never
    /// elsewhere.
    pub(super) fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        if cfg!(target_os = "linux") {
            PathBuf::from(format!("/proc/self/fd/{}", self.held.as_raw_fd()))
        } else {
            self.place.clone()
        }
    }

    /// Where it was when it was opened: for words, and for processes that start there behind walls of their own.
    pub(super) fn place(&self) -> &Path {
        &self.place
    }

    fn reach(&self, parts: &[&str], flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if parts.is_empty() { ".".to_owned() } else { parts.join("/") };
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::ResolveFlags;
            let inside = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            loop {
                match rustix::fs::openat2(&self.held, path.as_str(), flags | OFlags::CLOEXEC, Mode::empty(), inside) {
                    // Something was renamed on the way: the kernel cannot tell, so once more.
                    Err(Errno::AGAIN) => {}
                    // Linux before 5.6, or a box that does not know the call.
                    Err(Errno::NOSYS | Errno::PERM) => break,
                    done => return done,
                }
            }
        }
        self.step(parts, flags)
    }

    /// The same, part by part, where the system cannot do it at once. No link at all is followed.
    fn step(&self, parts: &[&str], flags: OFlags) -> Result<OwnedFd, Errno> {
        let Some((last, way)) = parts.split_last() else { return open(&self.held, Path::new("."), flags) };
        let mut at: Option<OwnedFd> = None;
        for part in way {
            let from = at.as_ref().map_or(self.held.as_fd(), OwnedFd::as_fd);
            at = Some(open(from, Path::new(part), FOLDER | OFlags::NOFOLLOW)?);
        }
        open(at.as_ref().map_or(self.held.as_fd(), OwnedFd::as_fd), Path::new(last), flags | OFlags::NOFOLLOW)
    }
}

#[cfg(unix)]
use rustix::fs::{AtFlags, Mode, OFlags};
#[cfg(unix)]
use rustix::io::Errno;
#[cfg(unix)]
use std::os::fd::{AsFd, OwnedFd};

#[cfg(unix)]
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

#[cfg(unix)]
fn open(at: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(at, path, flags | OFlags::CLOEXEC, Mode::empty())
}

#[cfg(unix)]
fn why(error: Errno, what: &str, path: &str) -> String {
    match error {
        Errno::NOENT => format!("there is nothing of that name: {path}"),
        Errno::XDEV | Errno::LOOP => format!("a link on the way leads out of the volume and is not followed: {path}"),
        Errno::NOTDIR => format!("a part of the path is no folder: {path}"),
        error => format!("{what} ({error}): {path}"),
    }
}

/// Where descriptors of folders do not exist: the path is looked through for links, and then used.
#[cfg(not(unix))]
impl Folder {
    pub(super) fn root(root: &Path) -> Result<Folder, String> {
        let place = root.canonicalize().map_err(|error| format!("the volume's folder cannot be opened ({error})"))?;
        Ok(Folder { place })
    }

    pub(super) fn folder(&self, path: &str) -> Result<Folder, String> {
        let place = self.reach(path)?;
        if place.is_dir() { Ok(Folder { place }) } else { Err(format!("there is no folder of that name: {path}")) }
    }

    pub(super) fn file(&self, path: &str) -> Result<File, String> {
        File::open(self.reach(path)?).map_err(|error| format!("the file cannot be opened ({error}): {path}"))
    }

    pub(super) fn above(&self, path: &str, make: bool) -> Result<(Folder, OsString), String> {
        let parts = parts(path)?;
        let Some((name, way)) = parts.split_last() else { return Err("that is the volume's own folder".to_owned()) };
        let place = self.reach(&way.join("/"))?;
        if make {
            std::fs::create_dir_all(&place).map_err(|error| format!("the folder cannot be made ({error}): {path}"))?;
        }
        Ok((Folder { place }, OsString::from(name)))
    }

    pub(super) fn remove(&self, name: &OsString) -> Result<(), String> {
        std::fs::remove_file(self.place.join(name)).map_err(|error| format!("it could not be removed ({error})"))
    }

    pub(super) fn path(&self) -> PathBuf {
        self.place.clone()
    }

    pub(super) fn place(&self) -> &Path {
        &self.place
    }

    fn reach(&self, path: &str) -> Result<PathBuf, String> {
        let mut at = self.place.clone();
        for part in parts(path)? {
            at.push(part);
            if std::fs::symlink_metadata(&at).is_ok_and(|meta| meta.is_symlink()) {
                return Err(format!("a link on the way leads out of the volume and is not followed: {path}"));
            }
        }
        Ok(at)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_steps_out() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("a/b")).expect("made");
        std::fs::write(dir.path().join("secret"), b"secret").expect("written");
        std::fs::write(root.join("a/b/in.txt"), b"in").expect("written");
        symlink("../secret", root.join("out")).expect("linked");
        symlink(dir.path(), root.join("up")).expect("linked");
        symlink("a/b", root.join("down")).expect("linked");
        let folder = Folder::root(&root).expect("opened");
        let read = |folder: &Folder, path: &str| {
            let mut text = String::new();
            folder.file(path)?.read_to_string(&mut text).map_err(|error| error.to_string())?;
            Ok::<_, String>(text)
        };
        assert_eq!(read(&folder, "a/b/in.txt").as_deref(), Ok("in"));
        assert_eq!(read(&folder, "./a//b/in.txt").as_deref(), Ok("in"));
        assert_eq!(read(&folder, "down/in.txt").as_deref(), Ok("in"), "a link that stays inside");
        let absolute = dir.path().join("secret").to_string_lossy().into_owned();
        for way in ["../secret", "a/../../secret", "out", "up/secret", absolute.as_str(), "/etc/passwd"] {
            assert!(read(&folder, way).is_err(), "{way}");
            assert!(folder.above(way, true).map(|(folder, name)| folder.place().join(name)).is_err() || way == "out");
        }
        // Part by part, as on older systems.
        let open = |path: &str| folder.step(&parts(path)?, OFlags::RDONLY).map_err(|error| error.to_string());
        assert!(open("a/b/in.txt").is_ok());
        for way in ["out", "up/secret", "down/in.txt"] {
            assert!(open(way).is_err(), "{way}");
        }
        let (above, name) = folder.above("new/deep/file.txt", true).expect("made");
        assert_eq!(above.place().join(name), folder.place().join("new/deep/file.txt"));
        assert!(folder.above("gone/file.txt", false).is_err());
        assert_eq!(tidy("./a//b/"), Ok("a/b".to_owned()));
    }
}
