//! Where a package comes from, and how its files get here: a folder, an archive, a Git repository or an index.

use crate::archive_files::{MAX_ARCHIVE_BYTES, RawFiles};
use crate::package_index::{IndexLocation, OpenedIndex, fetch};
use crate::{InstalledPackage, PackageContent, PackageError, is_package_name};
use git_program::{GitCaller, GitOperation, RepositoryAddress};
use host::fs::copy;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time limit for cloning a repository.
const CLONE_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum size of a clone in bytes, and how often it's measured.
const MAX_CLONE_BYTES: u64 = 64 << 20;
const CLONE_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of a clone's files that are measured; more of them is too large.
const MAX_CLONE_ENTRIES: usize = 20_000;

/// Name of the clone in its temporary folder.
const CLONE_FOLDER: &str = "clone";

/// Where a package comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PackageSource {
    /// A folder on this device.
    Folder(PathBuf),
    /// An archive on this device.
    Archive(PathBuf),
    /// Address of an archive.
    WebArchive(String),
    /// Address of a Git repository.
    Git(String),
    /// The newest version in an index.
    Index(IndexLocation),
}

/// Returns the address of a repository, if a word is one.
pub(crate) fn repository_word(word: &str) -> Option<&str> {
    if let Some(address) = word.strip_prefix("git+") {
        return Some(address);
    }
    let is_host = |word: &str| word.split_once(':').is_some_and(|(user, _)| user.contains('@') && !user.contains('/'));
    let is_git = match word.split_once("://") {
        Some(("ssh" | "git" | "file", _)) => true,
        Some((_, rest)) => rest.ends_with(".git"),
        None => is_host(word),
    };
    is_git.then_some(word)
}

/// Returns an address without a password or token, for people.
pub(crate) fn shown_address(address: &str) -> String {
    RepositoryAddress::read(address, Path::new("/"))
        .map_or_else(|_| "the repository".to_owned(), |address| address.display_text())
}

impl PackageSource {
    /// Reads a word of a command: a path, an address, or the name of a package in an index.
    ///
    /// # Errors
    /// Returns an error if it's none of these.
    pub fn read(word: &str, here: &Path) -> Result<Option<PackageSource>, PackageError> {
        let word = word.trim();
        if let Some(address) = repository_word(word) {
            return Ok(Some(PackageSource::Git(RepositoryAddress::read(address, here)?.as_str().to_owned())));
        }
        if word.contains("://") {
            let path = word.split(['?', '#']).next().unwrap_or_default();
            return match [".tar.gz", ".tgz", ".zip"].iter().any(|ending| path.ends_with(ending)) {
                true => Ok(Some(PackageSource::WebArchive(word.to_owned()))),
                false => Ok(Some(PackageSource::Git(RepositoryAddress::read(word, here)?.as_str().to_owned()))),
            };
        }
        let path = match word.is_empty() {
            true => PathBuf::new(),
            false => copy::absolute_path(here, word),
        };
        if copy::is_folder(&path) {
            return Ok(Some(PackageSource::Folder(path)));
        }
        if copy::exists(&path) {
            return Ok(Some(PackageSource::Archive(path)));
        }
        match is_package_name(word) {
            true => Ok(None),
            false => Err(PackageError::Unreachable {
                what: word.to_owned(),
                why: "no such folder or archive, and it isn't the name of a package".to_owned(),
            }),
        }
    }

    /// Returns the source for people.
    pub fn display_text(&self) -> String {
        match self {
            PackageSource::Folder(path) | PackageSource::Archive(path) => path.display().to_string(),
            PackageSource::WebArchive(address) => address.clone(),
            PackageSource::Git(address) => shown_address(address),
            PackageSource::Index(location) => format!("the index {}", location.display_text()),
        }
    }
}

/// Gets a package; `name` is its name in an index.
///
/// # Errors
/// Returns an error if the source can't be reached, or what it has isn't a valid package.
pub fn fetch_package(source: &PackageSource, name: &str) -> Result<PackageContent, PackageError> {
    let raw = match source {
        PackageSource::Folder(folder) => RawFiles::from_folder(folder)?,
        PackageSource::Archive(path) => {
            let bytes = copy::read(path, MAX_ARCHIVE_BYTES).ok_or_else(|| PackageError::Unreachable {
                what: path.display().to_string(),
                why: format!("it isn't a readable file of at most {} MB", MAX_ARCHIVE_BYTES >> 20),
            })?;
            RawFiles::from_archive(&bytes)?
        }
        PackageSource::WebArchive(address) => RawFiles::from_archive(&fetch(address, MAX_ARCHIVE_BYTES, address)?)?,
        PackageSource::Git(address) => RawFiles::from_folder(&clone_repository(address)?.path())?,
        PackageSource::Index(location) => return fetch_from_index(&OpenedIndex::open(location)?, location, name),
    };
    PackageContent::from_files(raw)
}

/// Gets a package of an index, and checks that it's what the index says.
fn fetch_from_index(index: &OpenedIndex, location: &IndexLocation, name: &str) -> Result<PackageContent, PackageError> {
    let shown = location.display_text();
    let entry =
        index.newest_of(name).ok_or_else(|| PackageError::Index(format!("the index {shown} has no package {name}")))?;
    let content = PackageContent::from_files(RawFiles::from_archive(&index.read_archive(entry)?)?)?;
    let is_same = content.hash == entry.hash
        && content.signer == entry.signer
        && (&content.manifest.name, &content.manifest.version) == (&entry.manifest.name, &entry.manifest.version);
    match is_same {
        true => Ok(content),
        false => Err(PackageError::Index(format!(
            "the archive {} isn't the one that the index {shown} lists: its content, name, version or signer differs. \
             Nothing was installed",
            entry.archive
        ))),
    }
}

/// Gets an installed package again from where it came from.
///
/// # Errors
/// Returns an error as for [`fetch_package`], or if another package or another signer's is there now.
pub fn fetch_update(installed: &InstalledPackage) -> Result<PackageContent, PackageError> {
    let name = &installed.name;
    let content = fetch_package(&installed.source, name)?;
    let shown = installed.source.display_text();
    if &content.manifest.name != name {
        return Err(PackageError::Conflict(format!(
            "{shown} has the package {} now, not {name}; install that with `tracebook packages add`",
            content.manifest.name
        )));
    }
    if installed.signer.is_some() && installed.signer != content.signer {
        let by = content.signer.as_ref().map_or("isn't signed".to_owned(), |key| format!("is signed by {key}"));
        return Err(PackageError::Signature(format!(
            "the new version of {name} {by}, and the installed one is signed by {}. If you trust it, remove the \
             package and add it again",
            installed.signer.as_deref().unwrap_or_default()
        )));
    }
    if content.manifest.read_version()? < installed.read_version()? {
        return Err(PackageError::Conflict(format!(
            "{shown} has {name} {}, which is older than the installed {}; to go back, remove the package and add it \
             again",
            content.manifest.version, installed.version
        )));
    }
    Ok(content)
}

/// Clones the newest commit of a repository into a temporary folder. No hook of it runs.
pub(crate) fn clone_repository(address: &str) -> Result<ClonedRepository, PackageError> {
    let fail = |error: std::io::Error| PackageError::io("creating", &std::env::temp_dir(), &error);
    let folder = tempfile::tempdir().map_err(fail)?;
    let from = RepositoryAddress::read(address, Path::new("/"))?;
    let shown = from.display_text();
    let operation =
        GitOperation::Clone { from, folder: folder.path().join(CLONE_FOLDER), depth: Some(1), branch: None };
    let begun = Instant::now();
    let (measured, stopped) = (Cell::new(begun), Cell::new(None));
    let is_canceled = || {
        if begun.elapsed() > CLONE_TIMEOUT {
            stopped.set(Some("it took longer than two minutes"));
        } else if measured.get().elapsed() > CLONE_CHECK_INTERVAL {
            measured.set(Instant::now());
            if is_too_large(folder.path()) {
                stopped.set(Some("the repository is too large for a package"));
            }
        }
        stopped.get().is_some()
    };
    let done = git_program::run(folder.path(), &operation, GitCaller::Agent, &mut |_| {}, &is_canceled);
    let what = format!("the repository {shown}");
    if let Some(why) = stopped.get() {
        return Err(PackageError::Unreachable { what, why: why.to_owned() });
    }
    done.map_err(|error| PackageError::Unreachable { what, why: error.to_string().replace('\n', " ") })?;
    if is_too_large(folder.path()) {
        let why = "the repository is too large for a package".to_owned();
        return Err(PackageError::Unreachable { what: shown, why });
    }
    Ok(ClonedRepository(folder))
}

/// A clone in a temporary folder, which is deleted on drop.
#[derive(Debug)]
pub(crate) struct ClonedRepository(TempDir);

impl ClonedRepository {
    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join(CLONE_FOLDER)
    }
}

fn is_too_large(folder: &Path) -> bool {
    let (mut bytes, mut entries, mut folders) = (0, 0, vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
            entries += 1;
            // Git removes its temporary files at any moment.
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                folders.push(entry.path());
            }
            bytes += meta.len();
            if bytes > MAX_CLONE_BYTES || entries > MAX_CLONE_ENTRIES {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_folders_archives_repositories_or_names() {
        let here = tempfile::tempdir().expect("a folder");
        std::fs::write(here.path().join("a.zip"), "x").expect("written");
        let read = |word: &str| PackageSource::read(word, here.path());
        assert!(matches!(read("."), Ok(Some(PackageSource::Folder(_)))));
        assert!(matches!(read("a.zip"), Ok(Some(PackageSource::Archive(_)))));
        assert!(matches!(read("sail-kit"), Ok(None)));
        assert!(matches!(read("https://x.org/a.tar.gz?v=1"), Ok(Some(PackageSource::WebArchive(_)))));
        for git in
            ["https://x.org/a.git", "https://x.org/a", "git@x.org:a/b", "file:///tmp/x", "git+https://x.org/a.zip"]
        {
            assert!(matches!(read(git), Ok(Some(PackageSource::Git(_)))), "{git}");
        }
        for bad in ["", "no such/place", "ext::sh -c true", "ftp://x/a", "git+--upload-pack=x"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
