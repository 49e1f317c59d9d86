//! An index of packages: a folder or a Git repository with `index.json` and archives, or that file on a web server.

use crate::archive_files::MAX_ARCHIVE_BYTES;
use crate::manifest::{PackageManifest, PackagePermissions};
use crate::package_source::{ClonedRepository, clone_repository};
use crate::{PackageError, is_package_name};
use git_program::RepositoryAddress;
use host::fs::copy;
use semver::Version;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use store::BlobHash;

/// Name of the file that lists packages.
pub(crate) const INDEX_FILE: &str = "index.json";
/// Version of the file's format.
pub(crate) const INDEX_FORMAT: u32 = 1;
/// Maximum size of an index in bytes.
pub(crate) const MAX_INDEX_BYTES: u64 = 2 << 20;
/// Maximum number of versions in an index.
const MAX_INDEX_ENTRIES: usize = 10_000;

/// A version of a package in an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexEntry {
    /// What the package says of itself.
    #[serde(flatten)]
    pub manifest: IndexedManifest,
    /// Name of the archive, which is beside the index.
    pub archive: String,
    /// Hash of the package.
    pub hash: BlobHash,
    /// The public key that has signed it; `None` if it isn't signed.
    pub signer: Option<String>,
}

/// What an index repeats of a manifest. Later versions of the program may add fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedManifest {
    /// Name of the package.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The package's purpose, in a sentence.
    pub description: String,
    /// Its license.
    pub license: String,
    /// What its content may do.
    #[serde(default)]
    pub permissions: PackagePermissions,
}

impl From<&PackageManifest> for IndexedManifest {
    fn from(manifest: &PackageManifest) -> IndexedManifest {
        let PackageManifest { name, version, description, license, permissions } = manifest.clone();
        IndexedManifest { name, version, description, license, permissions }
    }
}

impl IndexEntry {
    fn check(&self) -> Result<Version, PackageError> {
        let IndexedManifest { name, version, description, license, permissions } = self.manifest.clone();
        let manifest = PackageManifest { name, version, description, license, permissions };
        manifest.check()?;
        let is_name = self.archive.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte));
        let is_key = |key: &String| key.len() <= 100 && key.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_name || self.archive.starts_with('.') || self.archive.is_empty() || self.archive.len() > 200 {
            return Err(PackageError::Malformed("the archive is a plain file name beside the index".to_owned()));
        }
        if !self.signer.as_ref().is_none_or(is_key) {
            return Err(PackageError::Malformed("the signer is a public key of minisign".to_owned()));
        }
        manifest.read_version()
    }
}

/// The file `index.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexFile {
    /// Version of the format.
    pub(crate) format: u32,
    /// All versions of all packages.
    pub(crate) packages: Vec<IndexEntry>,
}

impl IndexFile {
    pub(crate) fn parse(text: &str, shown: &str) -> Result<IndexFile, PackageError> {
        let refuse = |why: String| PackageError::Index(format!("{shown} isn't an index of packages: {why}"));
        let index: IndexFile = serde_json::from_str(text).map_err(|error| refuse(error.to_string()))?;
        if index.format != INDEX_FORMAT {
            return Err(refuse(format!("its format is {}, and this Tracebook reads {INDEX_FORMAT}", index.format)));
        }
        if index.packages.len() > MAX_INDEX_ENTRIES {
            return Err(refuse(format!("it has more than {MAX_INDEX_ENTRIES} entries")));
        }
        for entry in &index.packages {
            entry.check().map_err(|error| refuse(error.to_string()))?;
        }
        Ok(index)
    }
}

/// The location of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IndexLocation {
    /// A folder with `index.json`.
    Folder(PathBuf),
    /// Address of the folder that has `index.json`, with a final slash.
    Web(String),
    /// A Git repository.
    Git(String),
}

impl IndexLocation {
    /// Reads an entry of `packages.indexes`. Paths are relative to `here`.
    ///
    /// # Errors
    /// Returns an error if it's neither a folder nor an address.
    pub fn read(word: &str, here: &Path) -> Result<IndexLocation, PackageError> {
        let word = word.trim();
        if let Some(address) = crate::package_source::repository_word(word) {
            return Ok(IndexLocation::Git(RepositoryAddress::read(address, here)?.as_str().to_owned()));
        }
        if word.starts_with("https://") || word.starts_with("http://") {
            let folder = word.strip_suffix(INDEX_FILE).unwrap_or(word);
            return Ok(IndexLocation::Web(format!("{}/", folder.trim_end_matches('/'))));
        }
        let folder = copy::absolute_path(here, word.strip_suffix("/index.json").unwrap_or(word));
        match copy::is_folder(&folder) {
            true => Ok(IndexLocation::Folder(folder)),
            false => Err(PackageError::Unreachable {
                what: format!("the index {word}"),
                why: "no such folder; an index is a folder, an https address or a Git repository".to_owned(),
            }),
        }
    }

    /// Returns the location for people.
    pub fn display_text(&self) -> String {
        match self {
            IndexLocation::Folder(folder) => folder.display().to_string(),
            IndexLocation::Web(address) => address.clone(),
            IndexLocation::Git(address) => crate::package_source::shown_address(address),
        }
    }
}

/// An index that was read.
#[derive(Debug)]
pub struct OpenedIndex {
    location: IndexLocation,
    file: IndexFile,
    /// A clone, as long as its archives may be needed.
    clone: Option<ClonedRepository>,
}

impl OpenedIndex {
    /// Reads an index.
    ///
    /// # Errors
    /// Returns an error if it can't be reached, or isn't one.
    pub fn open(location: &IndexLocation) -> Result<OpenedIndex, PackageError> {
        let shown = location.display_text();
        let in_folder = |folder: &Path| {
            let bytes = copy::read(&folder.join(INDEX_FILE), MAX_INDEX_BYTES);
            bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| PackageError::Unreachable {
                what: format!("the index {shown}"),
                why: format!("it has no {INDEX_FILE}, or one of more than {} MB", MAX_INDEX_BYTES >> 20),
            })
        };
        let mut clone = None;
        let text = match location {
            IndexLocation::Folder(folder) => in_folder(folder)?,
            IndexLocation::Git(address) => in_folder(&clone.insert(clone_repository(address)?).path())?,
            IndexLocation::Web(address) => {
                let bytes = fetch(&format!("{address}{INDEX_FILE}"), MAX_INDEX_BYTES, &format!("the index {shown}"))?;
                String::from_utf8(bytes).map_err(|_| PackageError::Index(format!("{shown} isn't UTF-8 text")))?
            }
        };
        Ok(OpenedIndex { location: location.clone(), file: IndexFile::parse(&text, &shown)?, clone })
    }

    /// Returns the newest version of each package, by name. Versions before a release count only if there is no other.
    pub fn newest(&self) -> Vec<&IndexEntry> {
        let mut names: Vec<&str> = self.file.packages.iter().map(|entry| entry.manifest.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().filter_map(|name| self.newest_of(name)).collect()
    }

    /// Returns the newest version of a package.
    pub fn newest_of(&self, name: &str) -> Option<&IndexEntry> {
        debug_assert!(is_package_name(name), "the caller checks names");
        let all = self.file.packages.iter().filter(|entry| entry.manifest.name == name);
        let version = |entry: &IndexEntry| Version::parse(&entry.manifest.version).ok();
        all.max_by_key(|entry| version(entry).map(|version| (version.pre.is_empty(), version)))
    }

    /// Returns the bytes of an entry's archive.
    pub(crate) fn read_archive(&self, entry: &IndexEntry) -> Result<Vec<u8>, PackageError> {
        let what = format!("the archive {} of the index {}", entry.archive, self.location.display_text());
        let folder = match (&self.location, &self.clone) {
            (IndexLocation::Web(address), _) => {
                return fetch(&format!("{address}{}", entry.archive), MAX_ARCHIVE_BYTES, &what);
            }
            (_, Some(clone)) => clone.path(),
            (IndexLocation::Folder(folder), None) => folder.clone(),
            (IndexLocation::Git(_), None) => PathBuf::new(),
        };
        copy::read(&folder.join(&entry.archive), MAX_ARCHIVE_BYTES).ok_or_else(|| PackageError::Unreachable {
            what,
            why: format!("it isn't there, or has more than {} MB", MAX_ARCHIVE_BYTES >> 20),
        })
    }
}

/// Fetches a file from an address in the user's configuration or command.
pub(crate) fn fetch(address: &str, max_bytes: u64, what: &str) -> Result<Vec<u8>, PackageError> {
    let max = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    host::tools::fetch_file(address, max)
        .map_err(|error| PackageError::Unreachable { what: what.to_owned(), why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(entries: &[(&str, &str)]) -> String {
        let entry = |(name, version): &(&str, &str)| {
            serde_json::json!({
                "name": name, "version": version, "description": "d", "license": "MIT",
                "archive": format!("{name}-{version}.tar.gz"), "hash": BlobHash::of(b"x"), "signer": null, "later": 1,
            })
        };
        let packages: Vec<_> = entries.iter().map(entry).collect();
        serde_json::json!({"format": 1, "packages": packages}).to_string()
    }

    #[test]
    fn the_newest_version_is_by_number_and_released() {
        let text = index(&[("sail", "1.9.0"), ("sail", "1.10.0"), ("sail", "2.0.0-rc.1"), ("boat", "0.1.0-a")]);
        let file = IndexFile::parse(&text, "x").expect("an index");
        let opened = OpenedIndex { location: IndexLocation::Web("https://x/".to_owned()), file, clone: None };
        let newest: Vec<_> = opened.newest().iter().map(|one| one.archive.clone()).collect();
        assert_eq!(newest, ["boat-0.1.0-a.tar.gz", "sail-1.10.0.tar.gz"]);
    }

    #[test]
    fn hostile_indexes_are_refused() {
        let good = index(&[("sail", "1.0.0")]);
        for (from, to) in [
            ("sail-1.0.0.tar.gz", "../sail"),
            ("sail-1.0.0.tar.gz", "/etc/passwd"),
            ("\"sail\"", "\"Sail\""),
            ("\"d\"", "\"\\u001b[2J\""),
            ("\"format\":1", "\"format\":2"),
            ("\"1.0.0\"", "\"one\""),
        ] {
            assert!(good.contains(from), "{from}: {good}");
            assert!(IndexFile::parse(&good.replace(from, to), "x").is_err(), "{to}");
        }
        assert!(IndexFile::parse(&"[".repeat(100_000), "x").is_err());
    }
}
