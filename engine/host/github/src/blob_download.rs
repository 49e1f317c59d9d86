//! Downloads of files by their hash, several at once.

use crate::api_error::GitHubError;
use crate::endpoints::RepositoryApi;
use crate::limits::MAX_FILE_BYTES;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of downloads at once. GitHub asks for few.
const PARALLEL_DOWNLOADS: usize = 4;

/// A file that is downloaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedBlob<'a> {
    /// A path that it has, for errors.
    pub(crate) path: &'a str,
    pub(crate) hash: &'a str,
    /// Its size in bytes, if that's known.
    pub(crate) size: Option<u64>,
}

/// Gets the bytes of a file, which have the hash.
pub(crate) fn fetch_blob(api: &RepositoryApi<'_>, wanted: WantedBlob<'_>) -> Result<Vec<u8>, GitHubError> {
    let bytes = api.blob(wanted.hash, wanted.size.unwrap_or(MAX_FILE_BYTES), wanted.path)?;
    match vcs::blob_id(&bytes)? == wanted.hash {
        true => Ok(bytes),
        false => Err(api.client.malformed(&format!("{} with other bytes than its hash says", wanted.path))),
    }
}

/// Gets files, and passes each to `store`, which threads call.
pub(crate) fn fetch_blobs<'a>(
    api: &RepositoryApi<'_>,
    wanted: &[WantedBlob<'a>],
    store: &(dyn Fn(WantedBlob<'a>, Vec<u8>) -> Result<(), GitHubError> + Sync),
) -> Result<(), GitHubError> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failed: Mutex<Option<GitHubError>> = Mutex::new(None);
    let lock = || failed.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        while let Some(blob) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
            match fetch_blob(api, *blob).and_then(|bytes| store(*blob, bytes)) {
                Ok(()) => {
                    let count = done.fetch_add(1, Ordering::Relaxed) + 1;
                    api.control.report(&format!("Downloading files: {count} of {}", wanted.len()));
                }
                Err(error) => {
                    // The others end with the file that they have begun.
                    next.store(wanted.len(), Ordering::Relaxed);
                    lock().get_or_insert(error);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL_DOWNLOADS.min(wanted.len()) {
            scope.spawn(work);
        }
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}
