//! Reads the files of a package from a folder or an archive, which are untrusted: bounded in number, size and depth,
//! without links, devices and paths that lead elsewhere.

use crate::error::PackageError;
use crate::manifest::MANIFEST_FILE;
use flate2::read::GzDecoder;
use host::fs::confined_dir::ConfinedFolder;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Read};
use std::path::Path;
use zip::ZipArchive;

/// Maximum size of an archive in bytes.
pub(crate) const MAX_ARCHIVE_BYTES: u64 = 2 << 20;
/// Maximum number of a package's files.
const MAX_FILES: usize = 300;
/// Maximum number of entries of an archive or a folder, with those that aren't read.
const MAX_ENTRIES: usize = 2_000;
/// Maximum size of a file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Maximum size of all files in bytes.
const MAX_PACKAGE_BYTES: u64 = 8 << 20;
/// Maximum depth of a file: the archive's own folder, the kind's folder, and the file.
const MAX_DEPTH: usize = 3;
/// First bytes of gzip data, and of a zip file.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZIP_MAGIC: [u8; 2] = *b"PK";

/// Files that were read and whose names aren't checked yet, by path.
#[derive(Debug, Default)]
pub(crate) struct RawFiles {
    files: BTreeMap<String, Vec<u8>>,
    bytes: u64,
    entries: usize,
}

impl RawFiles {
    /// Adds a file that is read from `from`. Hidden files are left out.
    fn add(&mut self, path: &str, from: &mut dyn Read) -> Result<(), PackageError> {
        let path = path.strip_prefix("./").unwrap_or(path);
        let shown = || path.chars().take(200).collect::<String>();
        let parts: Vec<&str> = path.split('/').collect();
        let is_plain = parts.iter().all(|part| !matches!(*part, "" | "." | ".."));
        if !is_plain || path.contains(['\\', ':', '\0']) {
            return Err(PackageError::Archive(format!("a path leads elsewhere: {}", shown())));
        }
        if parts.iter().any(|part| part.starts_with('.')) {
            return Ok(());
        }
        if parts.len() > MAX_DEPTH {
            return Err(PackageError::Archive(format!("the folders of a package have no folders inside: {}", shown())));
        }
        let mut bytes = Vec::new();
        let read = from.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| PackageError::Archive(format!("{error}: {}", shown())))?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(PackageError::TooLarge(format!(
                "a file of a package has at most {} MB: {}",
                MAX_FILE_BYTES >> 20,
                shown()
            )));
        }
        self.bytes += bytes.len() as u64;
        if self.bytes > MAX_PACKAGE_BYTES || self.files.len() >= MAX_FILES {
            return Err(PackageError::TooLarge(format!(
                "a package has at most {MAX_FILES} files with {} MB",
                MAX_PACKAGE_BYTES >> 20
            )));
        }
        if self.files.insert(path.to_owned(), bytes).is_some() {
            return Err(PackageError::Archive(format!("it has two files with the same name: {}", shown())));
        }
        Ok(())
    }

    fn count_entry(&mut self) -> Result<(), PackageError> {
        self.entries += 1;
        match self.entries > MAX_ENTRIES {
            true => Err(PackageError::TooLarge(format!("it has more than {MAX_ENTRIES} files and folders"))),
            false => Ok(()),
        }
    }

    /// Takes files that were read already.
    pub(crate) fn from_files(files: BTreeMap<String, Vec<u8>>) -> RawFiles {
        RawFiles { files, ..RawFiles::default() }
    }

    /// Reads the files of a folder.
    pub(crate) fn from_folder(folder: &Path) -> Result<RawFiles, PackageError> {
        let mut raw = RawFiles::default();
        let confined = ConfinedFolder::open_chosen(folder).map_err(|error| unreadable(folder, &error))?;
        raw.add_folder(&confined, folder, "", 1)?;
        Ok(raw)
    }

    fn add_folder(
        &mut self,
        confined: &ConfinedFolder,
        folder: &Path,
        prefix: &str,
        depth: usize,
    ) -> Result<(), PackageError> {
        let fail = |error: std::io::Error| PackageError::io("reading", folder, &error);
        for entry in std::fs::read_dir(folder).map_err(fail)? {
            self.count_entry()?;
            let entry = entry.map_err(fail)?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                let shown = name.to_string_lossy();
                return Err(PackageError::Archive(format!("the name of a file isn't UTF-8 text: {shown}")));
            };
            // Git's folder, editors' files and the like belong to no package.
            if name.starts_with('.') {
                continue;
            }
            let path = format!("{prefix}{name}");
            let kind = entry.file_type().map_err(fail)?;
            if kind.is_dir() {
                if depth >= MAX_DEPTH - 1 {
                    return Err(PackageError::Archive(format!(
                        "the folders of a package have no folders inside: {path}"
                    )));
                }
                self.add_folder(confined, &entry.path(), &format!("{path}/"), depth + 1)?;
            } else if kind.is_file() {
                let (mut file, _) = confined.open_regular_file(&path).map_err(|error| unreadable(folder, &error))?;
                self.add(&path, &mut file)?;
            } else {
                return Err(PackageError::Archive(format!("a package has no links, pipes and devices: {path}")));
            }
        }
        Ok(())
    }

    /// Reads the files of an archive: `.tar.gz` or `.zip`.
    pub(crate) fn from_archive(bytes: &[u8]) -> Result<RawFiles, PackageError> {
        if bytes.len() as u64 > MAX_ARCHIVE_BYTES {
            return Err(PackageError::TooLarge(format!("an archive has at most {} MB", MAX_ARCHIVE_BYTES >> 20)));
        }
        let mut raw = RawFiles::default();
        if bytes.starts_with(&GZIP_MAGIC) {
            raw.add_tar(bytes)?;
        } else if bytes.starts_with(&ZIP_MAGIC) {
            raw.add_zip(bytes)?;
        } else {
            return Err(PackageError::Archive("it's neither a .tar.gz nor a .zip file".to_owned()));
        }
        Ok(raw)
    }

    fn add_tar(&mut self, bytes: &[u8]) -> Result<(), PackageError> {
        let fail = |error: std::io::Error| PackageError::Archive(error.to_string());
        // Headers and padding count, too: small archives can unpack to much of them.
        let mut unpacked = GzDecoder::new(bytes).take(2 * MAX_PACKAGE_BYTES + 1);
        let mut archive = tar::Archive::new(&mut unpacked);
        for entry in archive.entries().map_err(fail)? {
            self.count_entry()?;
            let mut entry = entry.map_err(fail)?;
            let kind = entry.header().entry_type();
            if kind.is_dir() || kind.is_pax_global_extensions() {
                continue;
            }
            let path = String::from_utf8(entry.path_bytes().into_owned())
                .map_err(|_| PackageError::Archive("the name of a file isn't UTF-8 text".to_owned()))?;
            if !kind.is_file() {
                return Err(PackageError::Archive(format!("a package has no links, pipes and devices: {path}")));
            }
            if entry.size() > MAX_FILE_BYTES {
                return Err(PackageError::TooLarge(format!("a file of a package has at most 1 MB: {path}")));
            }
            self.add(&path, &mut entry)?;
        }
        match unpacked.limit() {
            0 => Err(PackageError::TooLarge(format!("it unpacks to more than {} MB", MAX_PACKAGE_BYTES >> 20))),
            _ => Ok(()),
        }
    }

    fn add_zip(&mut self, bytes: &[u8]) -> Result<(), PackageError> {
        let fail = |error: zip::result::ZipError| PackageError::Archive(error.to_string());
        let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(fail)?;
        if archive.len() > MAX_ENTRIES {
            return Err(PackageError::TooLarge(format!("it has more than {MAX_ENTRIES} files and folders")));
        }
        let mut paths = Vec::new();
        let metadata = archive.metadata();
        for place in 0..metadata.len() {
            let entry = metadata.entry(place).map_err(fail)?;
            let path = std::str::from_utf8(entry.name_raw())
                .map_err(|_| PackageError::Archive("the name of a file isn't UTF-8 text".to_owned()))?;
            let kind = entry.unix_mode().map_or(0, |mode| mode & 0o170_000);
            if entry.is_symlink() || !matches!(kind, 0 | 0o100_000 | 0o040_000) || entry.encrypted() {
                return Err(PackageError::Archive(format!("a package has no links, pipes and secret files: {path}")));
            }
            paths.push(path.to_owned());
        }
        if archive.has_overlapping_entries().map_err(fail)? {
            return Err(PackageError::Archive("its files overlap".to_owned()));
        }
        for (place, path) in paths.iter().enumerate().filter(|(_, path)| !path.ends_with('/')) {
            let mut file = archive.by_index(place).map_err(fail)?;
            self.add(path, &mut file)?;
        }
        Ok(())
    }

    /// Returns the files as paths in the package: archives often have one folder with all of it.
    pub(crate) fn into_package_files(self) -> BTreeMap<String, Vec<u8>> {
        if self.files.contains_key(MANIFEST_FILE) {
            return self.files;
        }
        let tops: BTreeSet<&str> = self.files.keys().map(|path| path.split('/').next().unwrap_or_default()).collect();
        let top = match tops.into_iter().collect::<Vec<_>>().as_slice() {
            [top] if self.files.contains_key(&format!("{top}/{MANIFEST_FILE}")) => format!("{top}/"),
            _ => return self.files,
        };
        let inside = |(path, bytes): (String, Vec<u8>)| Some((path.strip_prefix(&top)?.to_owned(), bytes));
        self.files.into_iter().filter_map(inside).collect()
    }
}

fn unreadable(folder: &Path, error: &dyn std::fmt::Display) -> PackageError {
    PackageError::Unreachable { what: folder.display().to_string(), why: error.to_string() }
}
