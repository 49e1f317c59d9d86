//! Moves a user's files to other names: all of them or none, never over another file, and whatever was done before a
//! crash is found done. Decides nothing about what goes where.

use crate::replace::rename_new;
use std::io;
use std::path::{Path, PathBuf};
use store::disk::sync_folder;

/// Moves files, then removes those of the folders `emptied` in which nothing is left.
///
/// # Errors
/// A sentence; all files are where they were then.
pub(crate) fn move_files(moves: &[(PathBuf, PathBuf)], emptied: &[PathBuf]) -> Result<(), String> {
    for (done, (from, to)) in moves.iter().enumerate() {
        if let Err(why) = move_file(from, to) {
            for (from, to) in moves[..done].iter().rev() {
                move_file(to, from).map_err(|back| format!("{why}; and going back failed: {back}"))?;
            }
            return Err(why);
        }
    }
    for folder in emptied {
        let _ = std::fs::remove_dir(folder); // refused while something is in it
    }
    Ok(())
}

/// Removes a file for good, and the folder around it if nothing is left in that.
///
/// # Errors
/// A sentence; the file is still there then.
pub(crate) fn remove(file: &Path) -> Result<(), String> {
    match std::fs::remove_file(file) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {} // done before a crash
        Err(error) => return Err(format!("it cannot be deleted ({error}): {}", file.display())),
    }
    if let Some(folder) = file.parent() {
        let _ = std::fs::remove_dir(folder); // refused while something is in it
    }
    Ok(())
}

fn move_file(from: &Path, to: &Path) -> Result<(), String> {
    let say = |what: &str, error: &dyn std::fmt::Display, path: &Path| format!("{what} ({error}): {}", path.display());
    let there = |path: &Path| std::fs::symlink_metadata(path).is_ok();
    match (there(from), there(to)) {
        (false, true) => return Ok(()), // done before a crash
        (false, false) => return Err(format!("it is gone, so it was not moved: {}", from.display())),
        (true, true) if !is_same(from, to) => {
            return Err(format!("something has that name already, so nothing was moved: {}", to.display()));
        }
        (true, _) => {}
    }
    let folder = to.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(folder).map_err(|error| say("the folder cannot be made", &error, folder))?;
    let moved = match rename_new(from, to) {
        // A name in other letters, where small and large ones are the same to the disk.
        Err(_) if there(to) && is_same(from, to) => std::fs::rename(from, to),
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => carry(from, to),
        moved => moved,
    };
    moved.map_err(|error| say("it cannot be moved", &error, from))?;
    for folder in [Some(folder), from.parent()].into_iter().flatten() {
        sync_folder(folder).map_err(|error| say("the move may not be on disk yet", &error, folder))?;
    }
    Ok(())
}

/// To another file system: copied whole under another name first, then the old one goes.
fn carry(from: &Path, to: &Path) -> io::Result<()> {
    let temporary = to.with_file_name(format!(".tracebook-{:016x}.tmp", std::process::id()));
    let copied = std::fs::copy(from, &temporary).and_then(|_| std::fs::File::open(&temporary)?.sync_all());
    let copied = copied.and_then(|()| rename_new(&temporary, to));
    if copied.is_err() {
        let _ = std::fs::remove_file(&temporary);
        return copied;
    }
    std::fs::remove_file(from)
}

fn is_same(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let inode = |path| std::fs::symlink_metadata(path).map(|file| (file.dev(), file.ino())).ok();
        inode(one).is_some() && inode(one) == inode(other)
    }
    #[cfg(not(unix))]
    {
        std::fs::canonicalize(one).ok() == std::fs::canonicalize(other).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn all_or_none_and_never_over_another() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        for name in ["a", "b", "taken"] {
            fs::write(at(name), name).expect("written");
        }
        let moves = [(at("a"), at("x/y/a")), (at("b"), at("taken"))];
        assert!(move_files(&moves, &[]).expect_err("refused").contains("taken"));
        assert_eq!(fs::read(at("a")).expect("it is back"), b"a");
        let moves = [(at("a"), at("x/y/a")), (at("b"), at("x/b"))];
        move_files(&moves[..1], &[]).expect("moved");
        move_files(&moves, &[]).expect("the first was done before");
        assert_eq!(
            (fs::read(at("x/y/a")).expect("there"), fs::read(at("x/b")).expect("there")),
            (b"a".into(), b"b".into())
        );
        let back = [(at("x/y/a"), at("a")), (at("x/b"), at("b"))];
        move_files(&back, &[at("x/y"), at("x")]).expect("moved back");
        assert!(!at("x").exists());
        assert!(move_files(&[(at("no"), at("nowhere"))], &[]).expect_err("refused").contains("gone"));
        carry(&at("a"), &at("c")).expect("carried");
        assert_eq!((fs::read(at("c")).expect("there"), at("a").exists()), (b"a".to_vec(), false));
    }
}
