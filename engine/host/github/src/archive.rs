//! A commit's files as one archive, which takes one request instead of one for each file.
//!
//! Nothing in it is believed: a file counts only if its bytes have the hash that the tree lists for its path.
//! Attributes such as `export-ignore` leave files out or change them; these are downloaded one by one.

use crate::api_error::GitHubError;
use crate::endpoints::RepositoryApi;
use crate::remote_tree::RemoteTree;
use flate2::read::GzDecoder;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek};

/// Number of bytes that an archive may have for each entry besides its content.
const ENTRY_OVERHEAD_BYTES: u64 = 16 << 10;
/// Number of bytes that an archive may have in any case.
const ARCHIVE_OVERHEAD_BYTES: u64 = 1 << 20;

/// Keeps the bytes of a file by its path.
type KeepFile<'a> = &'a dyn Fn(&str, &[u8]) -> Result<(), GitHubError>;

/// Downloads the archive of a commit into `file`, and passes each file of the tree that's in it to `store`. Returns the
/// paths of these files.
pub(crate) fn fetch_archive(
    api: &RepositoryApi<'_>,
    commit: &str,
    tree: &RemoteTree,
    mut file: File,
    store: KeepFile<'_>,
) -> Result<BTreeSet<String>, GitHubError> {
    api.control.report("Downloading all files as an archive");
    let limit = tree.total_bytes + ENTRY_OVERHEAD_BYTES * tree.files.len() as u64 + ARCHIVE_OVERHEAD_BYTES;
    api.archive(commit, &file, limit)?;
    let fail = |error| GitHubError::Refused(format!("The downloaded archive can't be read ({error})."));
    file.rewind().map_err(fail)?;
    let mut found = BTreeSet::new();
    // What unpacks to more than the tree has isn't read further.
    let mut archive = tar::Archive::new(GzDecoder::new(file).take(limit));
    let Ok(entries) = archive.entries() else { return Ok(found) };
    for entry in entries {
        api.control.check()?;
        // A damaged archive is of use up to there.
        let Ok(mut entry) = entry else { break };
        let path = entry.path().ok().and_then(|path| path.to_str().map(ToOwned::to_owned));
        // The first folder is named after the repository and the commit.
        let Some((_, path)) = path.as_deref().and_then(|path| path.split_once('/')) else { continue };
        let (Some(wanted), Some(size)) = (tree.files.get(path), tree.sizes.get(path)) else { continue };
        if !entry.header().entry_type().is_file() || entry.size() != *size {
            continue;
        }
        let mut bytes = Vec::new();
        if entry.read_to_end(&mut bytes).is_err() {
            break;
        }
        if vcs::blob_id(&bytes)? == wanted.hash && found.insert(path.to_owned()) {
            store(path, &bytes)?;
            if found.len() % 100 == 0 {
                api.control.report(&format!("Unpacking files: {} of {}", found.len(), tree.files.len()));
            }
        }
    }
    Ok(found)
}
