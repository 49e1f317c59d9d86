//! What Git would see in a folder that isn't a repository: hashes of files, and the files that no rule ignores.

use crate::errors::VcsError;
use crate::ignore_rules::list_statuses;
use git2::{ObjectType, Oid, Repository, RepositoryInitOptions, Status, StatusOptions};
use std::path::Path;

/// Returns the hash that Git gives a file with these bytes, in 40 hexadecimal digits.
///
/// # Errors
/// Returns libgit2's error.
pub fn blob_id(bytes: &[u8]) -> Result<String, VcsError> {
    Ok(Oid::hash_object(ObjectType::Blob, bytes)?.to_string())
}

/// Returns the files of a folder that neither its `.gitignore` files nor the user's own rules ignore, by path with `/`
/// separators. Repositories inside, and names that aren't UTF-8, are left out.
///
/// `scratch` is an empty folder outside of it for libgit2's own files; nothing is written into the folder itself.
///
/// # Errors
/// Returns libgit2's error.
pub fn unignored_files(folder: &Path, scratch: &Path) -> Result<Vec<String>, VcsError> {
    let mut options = RepositoryInitOptions::new();
    options.bare(true).external_template(false).no_reinit(true);
    let repository = Repository::init_opts(scratch, &options)?;
    repository.set_workdir(folder, false)?;
    let mut options = StatusOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true).exclude_submodules(true).disable_pathspec_match(true);
    let (found, mut ignored) = list_statuses(&repository, "", &mut options)?;
    let files = found.iter().filter(|entry| entry.status().contains(Status::WT_NEW));
    let paths = files.filter_map(|entry| String::from_utf8(entry.path_bytes().to_vec()).ok());
    Ok(paths.filter(|path| !path.ends_with('/') && !ignored.contain(path)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_and_ignored_files_are_git_s_own() {
        assert_eq!(blob_id(b"hello\n").expect("hashed"), "ce013625030ba8dba906f756967f9e9ca394464a");
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("above")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        write(".gitignore", "*.log\n/build/\n!keep.log\n");
        for name in ["a.md", "b/c.md", "b/x.log", "b/keep.log", "build/out", ".hidden/d", "b/build/e"] {
            write(name, "x");
        }
        let before = std::fs::read_dir(folder.path()).expect("listed").count();
        let scratch = tempfile::tempdir().expect("a folder");
        let files = unignored_files(folder.path(), scratch.path()).expect("listed");
        assert_eq!(files, [".gitignore", ".hidden/d", "a.md", "b/build/e", "b/c.md", "b/keep.log"]);
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), before, "it wrote something");
    }
}
