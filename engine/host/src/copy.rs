//! Copies of plain files for import, export and the sample: byte for byte, never over a file that is there.

use crate::replace;
use std::io;
use std::path::{Path, PathBuf};

/// A path as a command was given it, made absolute; links in it are followed where it exists.
pub fn absolute(folder: &Path, path: &str) -> PathBuf {
    let path = folder.join(path);
    std::fs::canonicalize(&path).unwrap_or(path)
}

/// Reads a file of text that is no note.
///
/// # Errors
/// A sentence: it is gone, cannot be read, or is no text.
pub fn read_text(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("the file cannot be read ({error}): {}", path.display()))
}

/// Whether there is anything of that name.
pub fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

/// Whether it is a folder.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir()
}

/// Whether nothing is in a folder, or nothing there at all.
pub fn is_empty(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Makes a folder and those above it.
///
/// # Errors
/// A sentence.
pub fn make_folder(path: &Path) -> Result<(), String> {
    std::fs::create_dir_all(path).map_err(|error| format!("the folder cannot be made ({error}): {}", path.display()))
}

/// Writes a new file, durably.
///
/// # Errors
/// A sentence; also when there is a file of that name.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if let Some(parent) = path.parent() {
        make_folder(parent)?;
    }
    if std::fs::symlink_metadata(path).is_ok() {
        return Err(format!("there is a file of that name already, and nothing is overwritten: {}", path.display()));
    }
    match replace::replace_file(path, None, bytes) {
        Ok(replace::Replaced::Done { .. }) => Ok(()),
        Ok(replace::Replaced::Raced { .. } | replace::Replaced::Gone) => {
            Err(format!("another program made that file just now: {}", path.display()))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// The bytes of a plain file that is no larger than `most`.
pub fn read(path: &Path, most: u64) -> Option<Vec<u8>> {
    let small = std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= most);
    small.then(|| std::fs::read(path).ok()).flatten()
}

/// What is said of a copy that was stopped.
pub const STOPPED: &str = "it was stopped; what was written stays";

/// What a copy did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Files copied, as paths inside the destination.
    pub files: Vec<String>,
    /// What was left out, and why.
    pub skipped: Vec<engine::event::Skipped>,
}

/// Why this file or folder cannot be copied into that folder, if so: something of its name is there, and nothing is
/// overwritten or mixed.
pub fn taken(source: &Path, folder: &Path) -> Option<String> {
    let target = folder.join(source.file_name()?);
    let there = std::fs::symlink_metadata(&target).is_ok();
    there.then(|| format!("it is there already, and nothing is overwritten: {}", target.display()))
}

/// Copies a file, or a folder with all that is in it but hidden folders and links, into a folder.
///
/// # Errors
/// A sentence when the source cannot be read at all.
pub fn copy_into(source: &Path, folder: &Path) -> Result<Copied, String> {
    let mut copied = Copied::default();
    let Some(name) = source.file_name() else {
        return Err(format!("it has no name to copy it under: {}", source.display()));
    };
    let meta =
        std::fs::metadata(source).map_err(|error| format!("it cannot be read ({error}): {}", source.display()))?;
    if meta.is_dir() {
        copy_tree(source, &folder.join(name), &mut copied, &mut |_| true)?;
        let name = name.to_string_lossy();
        copied.files.iter_mut().for_each(|path| *path = format!("{name}/{path}"));
    } else {
        copy_file(source, &folder.join(name))?;
        copied.files.push(name.to_string_lossy().into_owned());
    }
    Ok(copied)
}

/// Copies all that is in a folder into another. Before each file it is asked, with the count of those done, whether to
/// go on.
///
/// # Errors
/// A sentence when the source cannot be read at all, or when it was stopped.
pub fn copy_tree(
    source: &Path,
    folder: &Path,
    copied: &mut Copied,
    goes_on: &mut dyn FnMut(usize) -> bool,
) -> Result<(), String> {
    std::fs::read_dir(source).map_err(|error| format!("it cannot be read ({error}): {}", source.display()))?;
    make_folder(folder)?;
    let hidden = |entry: &walkdir::DirEntry| {
        entry.depth() > 0 && entry.file_type().is_dir() && entry.file_name().to_string_lossy().starts_with('.')
    };
    for entry in walkdir::WalkDir::new(source).sort_by_file_name().into_iter().filter_entry(|entry| !hidden(entry)) {
        let mut skip = |path: &Path, why: String| {
            let path = path.strip_prefix(source).unwrap_or(path).to_string_lossy().into_owned();
            copied.skipped.push(engine::event::Skipped { path, why });
        };
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                skip(error.path().unwrap_or(source), format!("it cannot be read: {error}"));
                continue;
            }
        };
        let Ok(path) = entry.path().strip_prefix(source) else { continue };
        if !goes_on(copied.files.len()) {
            return Err(STOPPED.to_owned());
        }
        if entry.file_type().is_dir() {
            make_folder(&folder.join(path))?;
        } else if !entry.file_type().is_file() {
            skip(entry.path(), "it is not an ordinary file".to_owned());
        } else {
            match copy_file(entry.path(), &folder.join(path)) {
                Ok(()) => copied.files.push(path.to_string_lossy().into_owned()),
                Err(why) => skip(entry.path(), why),
            }
        }
    }
    Ok(())
}

/// Copies one file to a place where there is none of that name; makes the folders above it.
///
/// # Errors
/// A sentence.
pub fn copy_to(source: &Path, target: &Path) -> Result<(), String> {
    if let Some(parent) = target.parent() {
        make_folder(parent)?;
    }
    copy_file(source, target)
}

/// Copies files into a folder in the background, each under its own name or, where that is taken by other bytes, under
/// one with a number behind. `done` gets the name of each, or a sentence.
pub fn bring(sources: Vec<PathBuf>, folder: PathBuf, done: impl FnOnce(Vec<Result<String, String>>) + Send + 'static) {
    std::thread::spawn(move || done(sources.iter().map(|source| bring_one(source, &folder)).collect()));
}

/// Keeps bytes that are made in the background as a new file of a folder, under a name with a number behind where that
/// is taken. `done` gets the name, or a sentence.
pub fn keep(
    stem: String,
    ending: &'static str,
    folder: PathBuf,
    make: impl FnOnce() -> Result<Vec<u8>, String> + Send + 'static,
    done: impl FnOnce(Result<String, String>) + Send + 'static,
) {
    std::thread::spawn(move || {
        done(make().and_then(|bytes| {
            let free = (1..1_000).find_map(|number| {
                let name = if number == 1 { format!("{stem}.{ending}") } else { format!("{stem} {number}.{ending}") };
                std::fs::symlink_metadata(folder.join(&name)).is_err().then_some(name)
            });
            let name = free.ok_or_else(|| format!("there are too many files called {stem}: {}", folder.display()))?;
            write_new(&folder.join(&name), &bytes).map(|()| name)
        }));
    });
}

fn bring_one(source: &Path, folder: &Path) -> Result<String, String> {
    let name = source.file_name().and_then(|name| name.to_str()).filter(|name| !name.contains(['\n', '\r', '<', '>']));
    let Some(name) = name else {
        return Err(format!("it has a name that cannot be linked; rename it first: {}", source.display()));
    };
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => (stem, format!(".{ending}")),
        _ => (name, String::new()),
    };
    for number in 1..1_000 {
        let name = if number == 1 { name.to_owned() } else { format!("{stem} {number}{ending}") };
        let target = folder.join(&name);
        match same(source, &target) {
            Some(true) => return Ok(name),
            Some(false) => {}
            None => return copy_file(source, &target).map(|()| name),
        }
    }
    Err(format!("there are too many files of that name already: {}", folder.join(name).display()))
}

/// Whether two files hold the same bytes; `None` where there is no second.
fn same(source: &Path, target: &Path) -> Option<bool> {
    let there = std::fs::symlink_metadata(target).ok()?;
    let size = std::fs::metadata(source).map_or(0, |meta| meta.len());
    let bytes = |path: &Path| {
        let file = std::fs::File::open(path).ok()?;
        Some(io::Read::bytes(io::BufReader::new(file)).map(Result::ok))
    };
    let equal = || bytes(source).zip(bytes(target)).is_some_and(|(one, other)| one.eq(other));
    Some(there.is_file() && there.len() == size && equal())
}

fn copy_file(source: &Path, target: &Path) -> Result<(), String> {
    let say = |error: io::Error| format!("it cannot be copied ({error}): {}", source.display());
    let mut from = std::fs::File::open(source).map_err(say)?;
    // `create_new` refuses what is there, also a link.
    let made = std::fs::File::options().write(true).create_new(true).open(target);
    let mut to = match made {
        Ok(to) => to,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(format!(
                "there is a file of that name already, and nothing is overwritten: {}",
                target.display()
            ));
        }
        Err(error) => return Err(say(error)),
    };
    let copied = io::copy(&mut from, &mut to).and_then(|_| to.sync_all());
    if copied.is_err() {
        let _ = std::fs::remove_file(target); // a half copy is worse than none
    }
    copied.map_err(say)
}
