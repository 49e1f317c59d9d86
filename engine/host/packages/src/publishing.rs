//! Packs and signs a package, and adds it to an index.

use crate::archive_files::{MAX_ARCHIVE_BYTES, RawFiles};
use crate::package_content::file_listing;
use crate::package_index::{INDEX_FILE, INDEX_FORMAT, IndexEntry, IndexFile, MAX_INDEX_BYTES};
use crate::package_signature::{PUBLIC_KEY_FILE, SIGNATURE_FILE};
use crate::{PackageContent, PackageError, PackageSigningKey};
use flate2::{Compression, GzBuilder};
use host::fs::atomic_write::{ReplaceOutcome, replace_file};
use host::fs::copy;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::BlobHash;

/// A package that was added to an index.
#[derive(Clone, Debug)]
pub struct PublishedPackage {
    /// Its entry in the index.
    pub entry: IndexEntry,
    /// The archive.
    pub archive: PathBuf,
}

/// Reads a folder, signs it, and returns the package with the signature.
fn read_signed(folder: &Path, key: &PackageSigningKey) -> Result<(PackageContent, Vec<u8>), PackageError> {
    let mut files = RawFiles::from_folder(folder)?.into_package_files();
    // An earlier signature was for what the folder held then.
    files.remove(SIGNATURE_FILE);
    files.insert(PUBLIC_KEY_FILE.to_owned(), key.public_key_file());
    let about = crate::manifest::PackageManifest::parse(
        files.get(crate::manifest::MANIFEST_FILE).map_or(&[][..], Vec::as_slice),
    )?;
    let signature = key.sign(&file_listing(&files), &format!("{} {}", about.name, about.version))?;
    files.insert(SIGNATURE_FILE.to_owned(), signature.clone());
    Ok((PackageContent::from_files(RawFiles::from_files(files))?, signature))
}

/// Signs a package in its folder, for a repository that others install it from.
///
/// # Errors
/// Returns an error if it isn't a valid package, or can't be written.
pub fn sign_folder(folder: &Path, key: &PackageSigningKey) -> Result<PackageContent, PackageError> {
    let (content, signature) = read_signed(folder, key)?;
    write_over(&folder.join(PUBLIC_KEY_FILE), &key.public_key_file())?;
    write_over(&folder.join(SIGNATURE_FILE), &signature)?;
    Ok(content)
}

/// Packs and signs the package in `folder`, and adds it to the index in the folder `index`.
///
/// # Errors
/// Returns an error if it isn't a valid package, if the index has other content under this version, or if something
/// can't be written. The index then has no entry for it.
pub fn publish_package(folder: &Path, index: &Path, key: &PackageSigningKey) -> Result<PublishedPackage, PackageError> {
    let (content, signature) = read_signed(folder, key)?;
    let place = index.join(INDEX_FILE);
    let shown = place.display().to_string();
    let old = if copy::exists(&place) {
        let bytes = copy::read(&place, MAX_INDEX_BYTES);
        Some(bytes.ok_or_else(|| PackageError::Index(format!("{shown} can't be read")))?)
    } else {
        None
    };
    let mut file = match &old {
        Some(bytes) => IndexFile::parse(&String::from_utf8_lossy(bytes), &shown)?,
        None => IndexFile { format: INDEX_FORMAT, packages: Vec::new() },
    };
    let manifest = &content.manifest;
    let entry = IndexEntry {
        manifest: manifest.into(),
        archive: format!("{}-{}.tar.gz", manifest.name, manifest.version),
        hash: content.hash,
        signer: content.signer.clone(),
    };
    let is_version = |known: &&IndexEntry| {
        (&known.manifest.name, &known.manifest.version) == (&entry.manifest.name, &entry.manifest.version)
    };
    let archive = index.join(&entry.archive);
    match file.packages.iter().find(is_version) {
        Some(known) if *known == entry => return Ok(PublishedPackage { entry, archive }),
        Some(_) => {
            return Err(PackageError::Index(format!(
                "the index has {} {} already, with other content or another signer; raise the version in package.yaml",
                manifest.name, manifest.version
            )));
        }
        None => {}
    }
    let packed = pack(&content, &signature).map_err(|error| PackageError::io("packing", folder, &error))?;
    if packed.len() as u64 > MAX_ARCHIVE_BYTES {
        return Err(PackageError::TooLarge(format!("its archive has more than {} MB", MAX_ARCHIVE_BYTES >> 20)));
    }
    // The archive first: an index never names one that isn't there.
    write_over(&archive, &packed)?;
    file.packages.push(entry.clone());
    file.packages.sort_by(|one, other| {
        let key =
            |entry: &IndexEntry| (entry.manifest.name.clone(), semver::Version::parse(&entry.manifest.version).ok());
        key(one).cmp(&key(other))
    });
    let mut text = serde_json::to_string_pretty(&file)
        .map_err(|error| PackageError::Index(format!("{shown} can't be written: {error}")))?;
    text.push('\n');
    match replace_file(&place, old.as_deref().map(BlobHash::of), text.as_bytes())? {
        ReplaceOutcome::Done { .. } => Ok(PublishedPackage { entry, archive }),
        ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone => {
            Err(PackageError::Index(format!("another program has just changed {shown}; try again")))
        }
    }
}

fn write_over(path: &Path, bytes: &[u8]) -> Result<(), PackageError> {
    let old = copy::read(path, MAX_ARCHIVE_BYTES).as_deref().map(BlobHash::of);
    match replace_file(path, old, bytes)? {
        ReplaceOutcome::Done { .. } => Ok(()),
        ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone => {
            Err(PackageError::Conflict(format!("another program has just changed {}; try again", path.display())))
        }
    }
}

/// Packs a package. The same content gives the same bytes.
fn pack(content: &PackageContent, signature: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzBuilder::new().mtime(0).write(Vec::new(), Compression::best()));
    let signature = signature.to_vec();
    let signed: BTreeMap<&String, &Vec<u8>> = content.files().iter().collect();
    let name = SIGNATURE_FILE.to_owned();
    for (path, bytes) in signed.into_iter().chain([(&name, &signature)]) {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        let top = &content.manifest.name;
        archive.append_data(&mut header, format!("{top}/{path}"), bytes.as_slice())?;
    }
    archive.into_inner()?.finish()
}
