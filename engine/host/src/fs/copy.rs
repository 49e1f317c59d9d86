//! Copies files and folders into volumes.

use crate::fs::confined_dir::ConfinedFolder;
use anyhow::{anyhow, bail};
use std::io;
use std::path::Path;
use store::disk::io_reason;
pub use user_files::copy::{
    absolute_path, copy_file, copy_to, create_folder, exists, folder_refusal, holds_file_ending, import_files,
    is_empty, is_folder, is_kernel_interface, open, read, read_text, save_new_file, store_attachment, write_new,
    write_new_inside, write_new_pieces,
};

/// Message when a copy was stopped.
pub const COPY_STOPPED: &str = "it was stopped; what was written stays";

/// Result of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// Files copied, as paths inside the destination.
    pub files: Vec<String>,
    /// Files that were skipped, and why.
    pub skipped: Vec<engine::event::SkippedFile>,
}

/// Returns why this file or folder can't be copied into that folder, if so. Its name may be taken: nothing is
/// overwritten or merged.
pub fn copy_conflict(source: &Path, folder: &Path) -> Option<String> {
    let target = folder.join(source.file_name()?);
    let there = std::fs::symlink_metadata(&target).is_ok();
    there.then(|| format!("it already exists; choose another name: {}", target.display()))
}

/// Copies a file, or a folder with its content except hidden folders and links, into a volume's folder.
///
/// # Errors
/// Returns a message if the source can't be read at all.
pub fn copy_into(source: &Path, root: &Path) -> anyhow::Result<CopyReport> {
    let mut copied = CopyReport::default();
    let Some(name) = source.file_name() else {
        bail!("it has no name to copy it under: {}", source.display());
    };
    if is_kernel_interface(source) {
        bail!("it isn't made of files that are stored; copy what you need to another folder: {}", source.display());
    }
    let root = ConfinedFolder::open_root(root)?;
    let meta = std::fs::metadata(source)
        .map_err(|error| anyhow!("it cannot be read ({}): {}", io_reason(&error), source.display()))?;
    if meta.is_dir() {
        copy_tree(&ConfinedFolder::open_chosen(source)?, &root.open_or_create_folder(name)?, &mut copied, &mut |_| {
            true
        })?;
        let name = name.to_string_lossy();
        copied.files.iter_mut().for_each(|path| *path = format!("{name}/{path}"));
    } else {
        copy_file(open(source), &source.display(), &root, name)?;
        copied.files.push(name.to_string_lossy().into_owned());
    }
    Ok(copied)
}

/// Copies a folder's content into another. Before each file, `goes_on` gets the number of finished ones and decides
/// whether to continue.
///
/// # Errors
/// Returns a message if the source can't be read at all, or if the copy was stopped.
pub fn copy_tree(
    source: &ConfinedFolder,
    target: &ConfinedFolder,
    copied: &mut CopyReport,
    goes_on: &mut dyn FnMut(usize) -> bool,
) -> anyhow::Result<()> {
    let top = source.walk_path();
    std::fs::read_dir(&top)
        .map_err(|error| anyhow!("it cannot be read ({}): {}", io_reason(&error), source.original_path().display()))?;
    let hidden = |entry: &walkdir::DirEntry| {
        entry.depth() > 0 && entry.file_type().is_dir() && entry.file_name().to_string_lossy().starts_with('.')
    };
    let mut entries = walkdir::WalkDir::new(&top).sort_by_file_name().into_iter();
    while let Some(entry) = entries.next() {
        if entry.as_ref().is_ok_and(hidden) {
            entries.skip_current_dir();
            continue;
        }
        let mut skip = |path: &Path, why: String| {
            let path = path.strip_prefix(&top).unwrap_or(path).to_string_lossy().into_owned();
            copied.skipped.push(engine::event::SkippedFile::new(path, why));
        };
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let why = error.io_error().map_or_else(|| error.to_string(), |error| io_reason(error));
                skip(error.path().unwrap_or(&top), format!("it can't be read: {why}"));
                continue;
            }
        };
        if !goes_on(copied.files.len()) {
            bail!(COPY_STOPPED);
        }
        let Ok(path) = entry.path().strip_prefix(&top) else { continue };
        if entry.file_type().is_dir() && is_kernel_interface(entry.path()) {
            skip(entry.path(), "it isn't made of files that are stored".to_owned());
            entries.skip_current_dir();
        } else if entry.file_type().is_dir() {
            target.open_or_create_folder(path)?;
        } else if !entry.file_type().is_file() {
            skip(entry.path(), "it is not an ordinary file".to_owned());
        } else {
            match copy_file(source.open_regular_file(path).map_err(io::Error::other), &path.display(), target, path) {
                Ok(()) => copied.files.push(path.to_string_lossy().into_owned()),
                Err(why) => skip(entry.path(), why.to_string()),
            }
        }
    }
    Ok(())
}
