//! Roots: the folders that an MCP client works in. They choose the volume where a call names none.

#![expect(deprecated, reason = "clients of the protocol before 2026-07-28 have roots")]

use crate::percent_text::percent_decoded;
use rmcp::{Peer, RoleServer};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;

/// Maximum number of roots that are looked at.
const MAX_ROOTS: usize = 50;
/// Maximum time that a client has to list its roots; without them, the call has no preferred volume.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(5);

/// The roots of one client, asked for once and again when they have changed.
#[derive(Default)]
pub(crate) struct ClientRoots {
    /// How often the client has said that its roots are others.
    changes: AtomicU64,
    /// The folders, and the number of changes when they were listed.
    known: Mutex<(Option<u64>, Vec<PathBuf>)>,
}

/// Returns the folder or file of a `file:` address; `None` if it's none of this machine.
pub(crate) fn local_path(uri: &str) -> Option<PathBuf> {
    let path = uri.strip_prefix("file://")?;
    let path = percent_decoded(path.strip_prefix("localhost").unwrap_or(path))?;
    // As in file:///C:/Users.
    let is_drive = cfg!(windows) && path.as_bytes().get(2) == Some(&b':');
    let path = if is_drive { path.trim_start_matches('/') } else { &path };
    Some(PathBuf::from(path)).filter(|path| path.is_absolute())
}

/// Returns a path without links, or as it is if it can't be followed.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

impl ClientRoots {
    /// Asks the client again with the next call.
    pub(crate) fn forget(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the client's folders. A client without roots isn't asked.
    pub(crate) async fn folders(&self, peer: &Peer<RoleServer>) -> Vec<PathBuf> {
        if peer.peer_info().is_none_or(|info| info.capabilities.roots.is_none()) {
            return Vec::new();
        }
        let mut known = self.known.lock().await;
        let change = self.changes.load(Ordering::Relaxed);
        if known.0 != Some(change) {
            let folders = match tokio::time::timeout(ROOTS_TIMEOUT, peer.list_roots()).await {
                Ok(Ok(listed)) => {
                    listed.roots.iter().take(MAX_ROOTS).filter_map(|root| local_path(&root.uri)).collect()
                }
                // Its calls work as those of a client without roots.
                Ok(Err(_)) | Err(_) => Vec::new(),
            };
            *known = (Some(change), folders);
        }
        known.1.clone()
    }
}

/// Returns the volume that a client with these roots means: the innermost one that contains a root, or else the first
/// one inside of a root. Volumes are names with their folders.
pub(crate) fn preferred_volume(roots: &[PathBuf], volumes: &[(String, String)]) -> Option<String> {
    let roots: Vec<PathBuf> = roots.iter().map(|root| real_path(root)).collect();
    let folders: Vec<(&String, PathBuf)> =
        volumes.iter().map(|(name, folder)| (name, real_path(Path::new(folder)))).collect();
    let containing = roots.iter().find_map(|root| {
        let around = folders.iter().filter(|(_, folder)| root.starts_with(folder));
        around.max_by_key(|(_, folder)| folder.components().count())
    });
    let inside = || roots.iter().find_map(|root| folders.iter().find(|(_, folder)| folder.starts_with(root)));
    containing.or_else(inside).map(|(name, _)| (*name).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_root_is_a_folder_of_this_machine() {
        assert_eq!(local_path("file:///home/ada/my%20notes"), Some(PathBuf::from("/home/ada/my notes")));
        assert_eq!(local_path("file://localhost/home"), Some(PathBuf::from("/home")));
        for wrong in ["https://example.com/", "file://server/share", "file:///%zz", "notes", ""] {
            assert_eq!(local_path(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_innermost_volume_around_a_root_is_preferred() {
        let volumes = [("all", "/none/w"), ("boats", "/none/w/boats"), ("other", "/none/x/docs")]
            .map(|(name, folder)| (name.to_owned(), folder.to_owned()));
        let preferred = |roots: &[&str]| {
            let roots: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
            preferred_volume(&roots, &volumes)
        };
        assert_eq!(preferred(&["/none/w/boats/sails"]).as_deref(), Some("boats"));
        assert_eq!(preferred(&["/none/w/boatsheds"]).as_deref(), Some("all"));
        assert_eq!(preferred(&["/elsewhere", "/none/x"]).as_deref(), Some("other"));
        // A volume around any root comes first.
        assert_eq!(preferred(&["/none/x", "/none/w"]).as_deref(), Some("all"));
        assert_eq!(preferred(&["/elsewhere"]), None);
        assert_eq!(preferred(&[]), None);
    }
}
