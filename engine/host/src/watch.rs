//! Seeing what other programs do to the files of a volume (crate `notify`).

use crate::driver::Inbox;
use crate::files::TEMPORARY;
use crate::scan;
use engine::Event;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use store::DocId;

/// Events are gathered this long before they are told: a save by another program is often several of them.
const GATHER: Duration = Duration::from_millis(60);

enum Ask {
    Watch { volume: DocId, root: PathBuf },
    Unwatch { volume: DocId },
    Seen(Vec<PathBuf>),
}

/// Watches folders, in a thread of its own: entering a large tree takes a while.
pub(crate) struct Watcher {
    asks: Sender<Ask>,
}

impl Watcher {
    pub(crate) fn new(inbox: Inbox) -> Watcher {
        let (asks, queue) = channel();
        let seen = asks.clone();
        std::thread::spawn(move || {
            let mut watcher: Option<RecommendedWatcher> = None;
            let mut roots: BTreeMap<DocId, PathBuf> = BTreeMap::new();
            let mut gathered: BTreeSet<PathBuf> = BTreeSet::new();
            loop {
                let ask = if gathered.is_empty() {
                    queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
                } else {
                    queue.recv_timeout(GATHER)
                };
                match ask {
                    Ok(Ask::Seen(paths)) => gathered.extend(paths),
                    Ok(Ask::Watch { volume, root }) => {
                        if watcher.is_none() {
                            watcher = notify::recommended_watcher(forward(seen.clone())).ok();
                        }
                        // A system without room for more watches still has scans: at start, and when asked for.
                        if let Some(watcher) = &mut watcher {
                            let _ = watcher.watch(&root, RecursiveMode::Recursive);
                        }
                        roots.insert(volume, root);
                    }
                    Ok(Ask::Unwatch { volume }) => {
                        if let (Some(watcher), Some(root)) = (&mut watcher, roots.remove(&volume)) {
                            let _ = watcher.unwatch(&root);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        for path in std::mem::take(&mut gathered) {
                            tell(&roots, &path, &inbox);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        Watcher { asks }
    }

    pub(crate) fn watch(&self, volume: DocId, root: PathBuf) {
        let _ = self.asks.send(Ask::Watch { volume, root });
    }

    pub(crate) fn unwatch(&self, volume: DocId) {
        let _ = self.asks.send(Ask::Unwatch { volume });
    }
}

fn forward(seen: Sender<Ask>) -> impl FnMut(notify::Result<notify::Event>) {
    move |event| {
        if let Ok(event) = event
            && !matches!(event.kind, EventKind::Access(_))
        {
            let ours = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(TEMPORARY));
            let paths: Vec<PathBuf> = event.paths.into_iter().filter(|path| !ours(path)).collect();
            if !paths.is_empty() {
                let _ = seen.send(Ask::Seen(paths));
            }
        }
    }
}

fn tell(roots: &BTreeMap<DocId, PathBuf>, path: &Path, inbox: &Inbox) {
    for (volume, root) in roots {
        if let Ok(rest) = path.strip_prefix(root) {
            let mut folders = rest.parent().into_iter().flat_map(Path::iter);
            if folders.any(|folder| folder.to_string_lossy().starts_with('.')) {
                return;
            }
            let path = scan::inside(root, path).filter(|path| !path.is_empty());
            inbox.event(Event::FileTouched { volume: *volume, path });
        }
    }
}
