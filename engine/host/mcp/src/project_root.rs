//! The root that a server gets: the folder of the project for which its tools are called.
#![expect(deprecated, reason = "servers of the protocol before 2026-07-28 ask for roots in this way")]

use rmcp::model::{ListRootsResult, Root};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct RootState {
    folder: Option<PathBuf>,
    /// Whether the server hasn't heard of this folder yet.
    is_news: bool,
}

/// The folder of the project that last called one server.
#[derive(Clone, Default)]
pub(crate) struct ProjectRoot(Arc<Mutex<RootState>>);

impl ProjectRoot {
    fn state(&self) -> MutexGuard<'_, RootState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the folder.
    pub(crate) fn enter(&self, folder: PathBuf) {
        let mut state = self.state();
        if state.folder.as_ref() != Some(&folder) {
            *state = RootState { folder: Some(folder), is_news: true };
        }
    }

    /// Returns whether the folder is another one since the last call of this method.
    pub(crate) fn take_news(&self) -> bool {
        std::mem::take(&mut self.state().is_news)
    }

    /// Returns the answer for the server: the folder, or nothing before the first call.
    pub(crate) fn listed(&self) -> ListRootsResult {
        let folder = self.state().folder.clone();
        let root = folder.and_then(|folder| {
            let root = Root::new(reqwest::Url::from_file_path(&folder).ok()?);
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
            Some(name.map_or(root.clone(), |name| root.with_name(name)))
        });
        ListRootsResult::new(root.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_folder_is_told_once() {
        let root = ProjectRoot::default();
        assert!(root.listed().roots.is_empty() && !root.take_news());
        root.enter(PathBuf::from("/home/ada/my notes"));
        assert!(root.take_news() && !root.take_news());
        root.enter(PathBuf::from("/home/ada/my notes"));
        assert!(!root.take_news(), "it's the same one");
        let listed = root.listed().roots;
        assert_eq!(
            (listed[0].uri.as_str(), listed[0].name.as_deref()),
            ("file:///home/ada/my%20notes", Some("my notes"))
        );
        root.enter(PathBuf::from("/home/ada/w"));
        assert!(root.take_news() && listed.len() == 1);
    }
}
