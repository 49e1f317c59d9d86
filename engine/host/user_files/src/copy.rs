//! Copies of plain files for import, export and the sample: byte for byte, never over an existing file.

use crate::atomic_write;
use crate::confined_dir::{ConfinedFolder, ConfinedPath};
use anyhow::{Context, anyhow, bail};
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use store::disk::io_reason;

/// Maximum number of entries of a folder that are looked at to tell what it is.
const MAX_LOOKED_AT_ENTRIES: usize = 10_000;

/// Returns the absolute form of a command's path; links are resolved if it exists.
pub fn absolute_path(folder: &Path, path: &str) -> PathBuf {
    let path = folder.join(path);
    std::fs::canonicalize(&path).unwrap_or(path)
}

/// Returns whether anything exists at this path.
pub fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

/// Returns whether the path is a folder.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir()
}

/// Returns whether the kernel makes up the content of this path: in `/proc` and `/sys`, files may be endless.
#[cfg(target_os = "linux")]
pub fn is_kernel_interface(path: &Path) -> bool {
    // proc, sysfs, cgroup2, debugfs, tracefs
    const MAGIC_NUMBERS: [u64; 5] = [0x9fa0, 0x6265_6572, 0x6367_7270, 0x6462_6720, 0x7472_6163];
    let system = rustix::fs::statfs(path).map(|system| u64::try_from(system.f_type));
    matches!(system, Ok(Ok(kind)) if MAGIC_NUMBERS.contains(&kind))
}

/// Returns whether the kernel makes up the content of this path: not on this system.
#[cfg(not(target_os = "linux"))]
pub fn is_kernel_interface(_path: &Path) -> bool {
    false
}

/// Returns why this user may not list a folder; `None` if that isn't what hinders it.
pub fn folder_refusal(path: &Path) -> Option<String> {
    let error = std::fs::read_dir(path).err()?;
    (error.kind() == io::ErrorKind::PermissionDenied).then(|| io_reason(&error))
}

/// Returns whether a folder has a file itself whose name ends so.
pub fn holds_file_ending(folder: &Path, ending: &str) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.take(MAX_LOOKED_AT_ENTRIES).any(|entry| entry.file_name().to_string_lossy().ends_with(ending))
}

/// Returns whether a folder is empty or doesn't exist.
pub fn is_empty(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Creates a folder and its parents.
///
/// # Errors
/// Returns a message if it can't be created.
pub fn create_folder(path: &Path) -> anyhow::Result<()> {
    let made = std::fs::create_dir_all(path);
    made.map_err(|error| anyhow!("the folder cannot be made ({}): {}", io_reason(&error), path.display()))
}

/// Writes a new file at a place that the user chose, durably.
///
/// # Errors
/// Returns a message if the file exists or can't be written.
pub fn write_new(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if let Some(parent) = path.parent() {
        create_folder(parent)?;
    }
    write_at(path, path, bytes)
}

/// Writes a new file at a place that the user chose, durably, with the pieces that `next` returns until `None`. If it
/// fails, or `next` does, no file remains.
///
/// # Errors
/// Returns a message if the file exists or can't be written, or that of `next`.
pub fn write_new_pieces(path: &Path, mut next: impl FnMut() -> anyhow::Result<Option<Vec<u8>>>) -> anyhow::Result<()> {
    if let Some(parent) = path.parent() {
        create_folder(parent)?;
    }
    let say = |error: io::Error| anyhow!("the file cannot be written ({}): {}", io_reason(&error), path.display());
    // `create_new` refuses anything that exists, even a link.
    let mut file = match File::options().write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => bail!(already_exists_message(path)),
        Err(error) => return Err(say(error)),
    };
    let mut write = || {
        while let Some(piece) = next()? {
            file.write_all(&piece).map_err(say)?;
        }
        file.sync_all().map_err(say)
    };
    let written = write();
    if written.is_err() {
        let _ = std::fs::remove_file(path); // half a file is worse than none
    }
    written
}

/// Writes a new file below a folder that the user chose, durably, and never through a symlink that leads out of it.
///
/// # Errors
/// Returns a message if the file exists or can't be written.
pub fn write_new_inside(folder: &Path, path: &str, bytes: &[u8]) -> anyhow::Result<()> {
    create_folder(folder)?;
    let (above, name) = ConfinedFolder::open_chosen(folder)?.open_parent(path, true)?;
    write_at(&above.join(&name), &folder.join(path), bytes)
}

/// Writes a new file; `shown` names it in messages.
fn write_at(path: &Path, shown: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if std::fs::symlink_metadata(path).is_ok() {
        bail!(already_exists_message(shown));
    }
    match atomic_write::replace_file(path, None, bytes) {
        Ok(atomic_write::ReplaceOutcome::Done { .. }) => Ok(()),
        Ok(atomic_write::ReplaceOutcome::Raced { .. } | atomic_write::ReplaceOutcome::Gone) => {
            Err(anyhow!("another program made that file just now: {}", shown.display()))
        }
        Err(error) => bail!(error.to_string().replace(&*path.to_string_lossy(), &shown.to_string_lossy())),
    }
}

fn already_exists_message(path: &Path) -> String {
    format!("a file with that name already exists; choose another name: {}", path.display())
}

/// Reads a plain file chosen by the user, if it's no larger than `most`. Symlinks are followed; pipes and devices are
/// skipped.
pub fn read(path: &Path, most: u64) -> Option<Vec<u8>> {
    let (file, meta) = open(path).ok()?;
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len().min(most)).unwrap_or(0));
    file.take(most + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= most).then_some(bytes)
}

/// Reads the text of a plain file that the user chose.
///
/// # Errors
/// Returns an error that says whether it can't be read, is too large, or is no text.
pub fn read_text(path: &Path, max_bytes: u64) -> anyhow::Result<String> {
    let unreadable = |error: io::Error| anyhow!("can't read {} ({})", path.display(), io_reason(&error));
    let (file, _) = open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > max_bytes {
        bail!("{} is larger than {} MB", path.display(), max_bytes >> 20);
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to() + 1;
        anyhow!("{} isn't text: it contains invalid UTF-8 at byte {at}", path.display())
    })
}

/// Opens a plain file that the user chose.
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, i32::try_from(flags.bits()).unwrap_or(0));
    }
    let file = options.open(path)?;
    let meta = file.metadata()?;
    if meta.is_file() { Ok((file, meta)) } else { Err(io::Error::other("it is not an ordinary file")) }
}

/// Copies one file of a volume below a folder that the user chose, to a name that is free.
///
/// # Errors
/// Returns a message if the file can't be copied.
pub fn copy_to(source: &ConfinedPath, folder: &Path, path: &str) -> anyhow::Result<()> {
    create_folder(folder)?;
    let opened = source.open().map_err(io::Error::other);
    copy_file(opened, &source.display(), &ConfinedFolder::open_chosen(folder)?, path)
}

/// Copies files into a folder of a volume in the background. Each keeps its name, or gets a numbered one if different
/// bytes have that name. `done` gets each file's name, or a message.
pub fn import_files(
    sources: Vec<PathBuf>,
    folder: ConfinedPath,
    done: impl FnOnce(Vec<anyhow::Result<String>>) + Send + 'static,
) {
    std::thread::spawn(move || {
        let held = ConfinedFolder::open_root(&folder.root).and_then(|root| root.open_or_create_folder(&folder.path));
        done(match held {
            Ok(held) => sources.iter().map(|source| import_file(source, &held)).collect(),
            Err(refused) => vec![Err(refused.into())],
        });
    });
}

/// Saves bytes as a new file in a folder of a volume, in the background; the name gets a number if it's taken. `done`
/// gets the name, or a message.
pub fn save_new_file(
    stem: String,
    ending: &'static str,
    folder: ConfinedPath,
    make: impl FnOnce() -> anyhow::Result<Vec<u8>> + Send + 'static,
    done: impl FnOnce(anyhow::Result<String>) + Send + 'static,
) {
    std::thread::spawn(move || {
        done(make().and_then(|bytes| {
            let held = ConfinedFolder::open_root(&folder.root)?.open_or_create_folder(&folder.path)?;
            let free = (1..1_000).find_map(|number| {
                let name = if number == 1 { format!("{stem}.{ending}") } else { format!("{stem} {number}.{ending}") };
                (!held.has_entry(name.as_ref())).then_some(name)
            });
            let name = free.with_context(|| format!("there are too many files called {stem}: {}", folder.display()))?;
            write_at(&held.join(name.as_ref()), &held.original_path().join(&name), &bytes).map(|()| name)
        }));
    });
}

/// Stores bytes as an attachment in a folder of a volume: under this name, or a numbered one if other bytes have it.
/// Returns the name.
///
/// # Errors
/// Returns a message if the folder can't be used, or the file can't be written.
pub fn store_attachment(folder: &ConfinedPath, name: &str, bytes: &[u8]) -> anyhow::Result<String> {
    let held = ConfinedFolder::open_root(&folder.root)?.open_or_create_folder(&folder.path)?;
    let (stem, ending) = name.rsplit_once('.').with_context(|| format!("the file needs an extension: {name}"))?;
    for number in 1..1_000 {
        let name = if number == 1 { name.to_owned() } else { format!("{stem} {number}.{ending}") };
        if !held.has_entry(name.as_ref()) {
            write_at(&held.join(name.as_ref()), &held.original_path().join(&name), bytes)?;
            return Ok(name);
        }
        let same = |mut file: File| {
            let mut there = Vec::new();
            io::Read::read_to_end(&mut io::Read::take(&mut file, bytes.len() as u64 + 1), &mut there).ok()?;
            Some(there == bytes)
        };
        let there = atomic_write::open_regular_file(&held.join(name.as_ref())).ok();
        if there.and_then(same) == Some(true) {
            return Ok(name);
        }
    }
    Err(anyhow!("there are too many files called {name}: {}", folder.display()))
}

fn import_file(source: &Path, folder: &ConfinedFolder) -> anyhow::Result<String> {
    let name = source.file_name().and_then(|name| name.to_str()).filter(|name| !name.contains(['\n', '\r', '<', '>']));
    let Some(name) = name else {
        bail!("it has a name that cannot be linked; rename it first: {}", source.display());
    };
    if is_kernel_interface(source) {
        bail!("it is part of the system, not a file that can be copied: {}", source.display());
    }
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => (stem, format!(".{ending}")),
        _ => (name, String::new()),
    };
    for number in 1..1_000 {
        let name = if number == 1 { name.to_owned() } else { format!("{stem} {number}{ending}") };
        match has_same_bytes(source, folder, &name) {
            Some(true) => return Ok(name),
            Some(false) => {}
            None => return copy_file(open(source), &source.display(), folder, &name).map(|()| name),
        }
    }
    Err(anyhow!(
        "too many files already have that name; choose another: {}",
        folder.original_path().join(name).display()
    ))
}

/// Returns whether two files have the same bytes; `None` if the second doesn't exist.
fn has_same_bytes(source: &Path, folder: &ConfinedFolder, name: &str) -> Option<bool> {
    let there = folder.metadata(name.as_ref()).ok()?;
    let bytes = |file: File| io::Read::bytes(io::BufReader::new(file)).map(Result::ok);
    let equal = || {
        let (one, meta) = open(source).ok()?;
        let other = atomic_write::open_regular_file(&folder.join(name.as_ref())).ok()?;
        Some(meta.len() == there.len() && bytes(one).eq(bytes(other)))
    };
    Some(there.is_file() && equal().unwrap_or(false))
}

/// Copies an open file below a folder, to a name that is free; creates missing parent folders.
pub fn copy_file(
    source: io::Result<(File, Metadata)>,
    shown: &dyn std::fmt::Display,
    folder: &ConfinedFolder,
    path: impl AsRef<Path>,
) -> anyhow::Result<()> {
    let say = |error: io::Error| anyhow!("it cannot be copied ({}): {shown}", io_reason(&error));
    let (mut from, _) = source.map_err(say)?;
    let (above, name) = folder.open_parent(path, true)?;
    let target = above.join(&name);
    // `create_new` refuses anything that exists, even a link.
    let made = File::options().write(true).create_new(true).open(&target);
    let mut to = match made {
        Ok(to) => to,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            bail!(already_exists_message(&above.original_path().join(&name)));
        }
        Err(error) => return Err(say(error)),
    };
    let copied = io::copy(&mut from, &mut to).and_then(|_| to.sync_all());
    if copied.is_err() {
        let _ = std::fs::remove_file(&target); // a half copy is worse than none
    }
    copied.map_err(say)
}
