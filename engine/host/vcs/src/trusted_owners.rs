//! Repositories of other users that Git's setting `safe.directory` trusts.
//!
//! libgit2 checks owners itself, but knows only a folder's exact path and `*`. Git also knows `FOLDER/*`, `~/FOLDER`,
//! links, `.` and a slash at the end.

use git2::{Config, ErrorCode, Repository, RepositoryOpenFlags};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// Held for reading while a repository is opened, and for writing while owners aren't checked.
static OWNER_CHECK: RwLock<()> = RwLock::new(());

/// Opens the repository whose files are in a folder, or above it if the flags allow that. If it belongs to another
/// user, `safe.directory` has to trust `top`, the folder of its files.
///
/// # Errors
/// Returns libgit2's error.
pub(crate) fn open_checked(folder: &Path, top: &Path, flags: RepositoryOpenFlags) -> Result<Repository, git2::Error> {
    let no_ceilings: [&OsStr; 0] = [];
    let open = || Repository::open_ext(folder, flags, no_ceilings);
    // A repository that is named itself may be opened by the path of its `.git`.
    let here = if flags.contains(RepositoryOpenFlags::NO_SEARCH) { top } else { folder };
    let checked = {
        let _reading = OWNER_CHECK.read().unwrap_or_else(PoisonError::into_inner);
        open()
    };
    match checked {
        Err(refused) if refused.code() == ErrorCode::Owner && is_trusted(top, here) => {
            let repository = open_unchecked(open)?;
            // It may have changed since.
            let found = repository.workdir().and_then(|found| found.canonicalize().ok());
            if found.is_some_and(|found| top.canonicalize().is_ok_and(|top| top == found)) {
                Ok(repository)
            } else {
                Err(refused)
            }
        }
        checked => checked,
    }
}

/// Opens a repository without libgit2's check of its owner.
fn open_unchecked(open: impl FnOnce() -> Result<Repository, git2::Error>) -> Result<Repository, git2::Error> {
    /// Turns the check on again, even after a panic.
    struct CheckAgain;
    impl Drop for CheckAgain {
        fn drop(&mut self) {
            set_owner_check(true);
        }
    }
    let _writing = OWNER_CHECK.write().unwrap_or_else(PoisonError::into_inner);
    let _check_again = CheckAgain; // dropped before the lock
    set_owner_check(false);
    open()
}

fn set_owner_check(is_on: bool) {
    #[allow(unsafe_code, reason = "libgit2 has no other way to open what Git trusts")]
    // SAFETY: the lock is held, so no other repository is opened here meanwhile. No program runs either way.
    let set = unsafe { git2::opts::set_verify_owner_validation(is_on) };
    debug_assert!(set.is_ok(), "setting it can't fail (git_libgit2_opts)");
}

/// Returns whether `safe.directory` of the user or the system trusts a repository with its files in `top`, when Git
/// runs in `folder`. As in Git, an empty value takes back those before it.
fn is_trusted(top: &Path, folder: &Path) -> bool {
    let Ok(top) = top.canonicalize() else { return false };
    let Ok(config) = Config::open_default() else { return false };
    let Ok(mut values) = config.multivar("safe.directory", None) else { return false };
    let mut is_trusted = false;
    while let Some(Ok(entry)) = values.next() {
        if !entry.has_value() || entry.value_bytes().is_empty() {
            is_trusted = false;
        } else if let Ok(value) = entry.value() {
            is_trusted |= names(value, &top, folder);
        }
    }
    is_trusted
}

/// Returns whether a value of `safe.directory` names the real path of a folder.
fn names(value: &str, top: &Path, folder: &Path) -> bool {
    match value {
        "*" => return true,
        "." => return folder.canonicalize().is_ok_and(|folder| folder == top),
        _ => {}
    }
    let value = value.strip_prefix("%(prefix)/").unwrap_or(value);
    let path = match value.strip_prefix("~/") {
        Some(inside) => std::env::home_dir().map(|home| home.join(inside.trim_start_matches('/'))),
        None => Some(PathBuf::from(value)),
    };
    let Some(path) = path.filter(|path| path.is_absolute()) else { return false };
    if path.file_name() == Some(OsStr::new("*")) {
        let above = path.parent().and_then(|above| above.canonicalize().ok());
        return above.is_some_and(|above| top != above && top.starts_with(above));
    }
    path.canonicalize().is_ok_and(|path| path == top)
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    #[test]
    fn forms_of_safe_directory_are_those_of_git() {
        let dir = tempfile::tempdir().expect("made");
        let root = dir.path().canonicalize().expect("there");
        let (top, inside) = (root.join("a/notes"), root.join("a/notes/sub"));
        std::fs::create_dir_all(&inside).expect("made");
        std::os::unix::fs::symlink(&top, root.join("link")).expect("made");
        let names = |value: &str, folder: &std::path::Path| super::names(value, &top, folder);
        let at = |inside: &str| root.join(inside).display().to_string();
        let trusted: [&str; 7] = ["*", &at("a/notes"), &at("a/notes/"), &at("a/*"), &at("*"), "/*", &at("link")];
        let prefixed = [format!("%(prefix)/{}", at("a/notes")), format!("%(prefix)/{}", at("a/*"))];
        for value in trusted.into_iter().chain(prefixed.iter().map(String::as_str)) {
            assert!(names(value, &inside), "{value}");
        }
        let others: [&str; 9] =
            ["", ".", "a/notes", "notes", &at("a"), &at("a/"), &at("a/notes/*"), &at("a/notes/sub"), &at("b/*")];
        for value in others {
            assert!(!names(value, &inside), "{value}");
        }
        assert!(names(".", &top));
    }
}
