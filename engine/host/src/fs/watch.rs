//! Watches a volume's files for changes by other programs (crate `notify`).

use crate::fs::confined_dir::ConfinedPath;
use crate::fs::read::{self, TEMPORARY_PREFIX};
use crate::fs::scan;
use crate::mailbox::Mailbox;
use engine::Event;
use notify::{Config, EventKind, PollWatcher, RecommendedWatcher, RecursiveMode};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use store::DocId;

/// How long events are collected, because a save by another program often causes several.
const WATCH_DEBOUNCE: Duration = Duration::from_millis(60);
/// Interval for polling folders that the system can't watch.
const FOLDER_POLL_INTERVAL: Duration = Duration::from_secs(5);

enum WatchRequest {
    Watch {
        volume: DocId,
        root: PathBuf,
        /// Whether a missing folder is created.
        make: bool,
    },
    Unwatch {
        volume: DocId,
    },
    /// Answered once earlier requests are done.
    Entered(Sender<()>),
    Seen(Vec<PathBuf>),
    /// The system had more events than room for them.
    Lost,
    Close,
}

/// The watchers for folders. A system has a limited number of watchers (Linux: `fs.inotify.max_user_instances`, often
/// 128) and of watched folders; when none is left, folders are polled.
struct WatchMode {
    seen: Sender<WatchRequest>,
    system: Option<RecommendedWatcher>,
    looking: Option<PollWatcher>,
}

impl WatchMode {
    fn watch(&mut self, root: &Path) {
        use notify::Watcher as _;
        if self.system.is_none() {
            self.system = RecommendedWatcher::new(event_forwarder(self.seen.clone()), watcher_config()).ok();
        }
        if let Some(system) = &mut self.system {
            match system.watch(root, RecursiveMode::Recursive) {
                Ok(()) => return,
                Err(_) => _ = system.unwatch(root), // what it got to before there was no room
            }
        }
        if self.looking.is_none() {
            self.looking = PollWatcher::new(
                event_forwarder(self.seen.clone()),
                watcher_config().with_poll_interval(FOLDER_POLL_INTERVAL),
            )
            .ok();
        }
        if let Some(looking) = &mut self.looking {
            // A missing folder is reported by the scan.
            if let Err(error) = looking.watch(root, RecursiveMode::Recursive) {
                let why = crate::logging::content_field(error);
                tracing::warn!(why, "a folder is not watched; changes in it are seen at the next scan");
            }
        }
    }

    fn unwatch(&mut self, root: &Path) {
        use notify::Watcher as _;
        // Only one of the two watches it; the other returns an error.
        let _ = self.system.as_mut().map(|system| system.unwatch(root));
        let _ = self.looking.as_mut().map(|looking| looking.unwatch(root));
    }
}

/// Returns the configuration. Symlinks aren't followed, because they may lead to the whole disk.
fn watcher_config() -> Config {
    Config::default().with_follow_symlinks(false)
}

/// Watches folders in a thread of its own, because registering a large tree takes a while.
pub(crate) struct FolderWatcher {
    requests: Sender<WatchRequest>,
}

impl FolderWatcher {
    pub(crate) fn new(inbox: Mailbox) -> FolderWatcher {
        let (asks, queue) = channel();
        let mut watches = WatchMode { seen: asks.clone(), system: None, looking: None };
        std::thread::spawn(move || {
            let mut roots: BTreeMap<DocId, PathBuf> = BTreeMap::new();
            let mut gathered: BTreeSet<PathBuf> = BTreeSet::new();
            loop {
                let ask = if gathered.is_empty() {
                    queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
                } else {
                    queue.recv_timeout(WATCH_DEBOUNCE)
                };
                match ask {
                    Ok(WatchRequest::Seen(paths)) => gathered.extend(paths),
                    Ok(WatchRequest::Lost) => gathered.extend(roots.values().cloned()),
                    // A caller that has given up needs no answer.
                    Ok(WatchRequest::Entered(answer)) => _ = answer.send(()),
                    Ok(WatchRequest::Watch { volume, root, make }) => {
                        if make || agent::memory::place::is_private_memory_root(&root) {
                            // A folder that can't be created is reported by the scan.
                            let _ = std::fs::create_dir_all(&root);
                        }
                        watches.watch(&root);
                        roots.insert(volume, root);
                    }
                    Ok(WatchRequest::Unwatch { volume }) => {
                        if let Some(root) = roots.remove(&volume) {
                            watches.unwatch(&root);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        for path in std::mem::take(&mut gathered) {
                            report_change(&roots, &path, &inbox);
                        }
                    }
                    Ok(WatchRequest::Close) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        FolderWatcher { requests: asks }
    }

    pub(crate) fn watch(&self, volume: DocId, root: PathBuf, make: bool) {
        // Here and below: sending fails only when the program or the connection ends.
        let _ = self.requests.send(WatchRequest::Watch { volume, root, make });
    }

    /// Answers (or hangs up) once all requested folders are watched. A scan that starts earlier could miss files that
    /// are created after it and before the watch exists.
    pub(crate) fn watching_started(&self) -> Receiver<()> {
        let (answer, entered) = channel();
        let _ = self.requests.send(WatchRequest::Entered(answer));
        entered
    }

    pub(crate) fn unwatch(&self, volume: DocId) {
        let _ = self.requests.send(WatchRequest::Unwatch { volume });
    }
}

// The system's events use the same channel, so it never closes on its own.
impl Drop for FolderWatcher {
    fn drop(&mut self) {
        let _ = self.requests.send(WatchRequest::Close);
    }
}

fn event_forwarder(seen: Sender<WatchRequest>) -> impl FnMut(notify::Result<notify::Event>) {
    move |event| {
        let Ok(event) = event else { return };
        if event.need_rescan() {
            let _ = seen.send(WatchRequest::Lost);
        } else if !matches!(event.kind, EventKind::Access(_)) {
            let ours =
                |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(TEMPORARY_PREFIX));
            let paths: Vec<PathBuf> = event.paths.into_iter().filter(|path| !ours(path)).collect();
            if !paths.is_empty() {
                let _ = seen.send(WatchRequest::Seen(paths));
            }
        }
    }
}

fn report_change(roots: &BTreeMap<DocId, PathBuf>, path: &Path, inbox: &Mailbox) {
    for (volume, root) in roots {
        if let Ok(rest) = path.strip_prefix(root) {
            let mut folders = rest.parent().into_iter().flat_map(Path::iter);
            if folders.any(|folder| folder.to_string_lossy().starts_with('.')) {
                return;
            }
            let path = scan::volume_path(root, path).filter(|path| !path.is_empty());
            let meta = path.as_deref().and_then(|path| ConfinedPath::new(root, path).metadata().ok());
            let seen = meta.filter(std::fs::Metadata::is_file).map(|meta| (meta.len(), read::mtime_nanos(&meta)));
            inbox.send_event(Event::FileTouched { volume: *volume, path, seen });
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{Event, FolderWatcher, Mailbox, WatchMode, channel, event_forwarder};
    use crate::mailbox::MailboxMessage;
    use notify::event::Flag;
    use std::path::Path;
    use std::time::{Duration, Instant};
    use store::DocId;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Returns how many watchers of this process watch a folder. Other tests have theirs meanwhile.
    fn instances(folder: &Path) -> usize {
        let inode = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(folder).expect("a folder"));
        let watched = format!(" ino:{inode:x} ");
        let open = std::fs::read_dir("/proc/self/fdinfo").expect("a list of files");
        let infos = open.flatten().filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
        infos.filter(|info| info.lines().any(|line| line.starts_with("inotify ") && line.contains(&watched))).count()
    }

    #[test]
    fn a_watcher_gives_back_what_it_took() {
        let dir = tempfile::tempdir().expect("a folder");
        let (inbox, _letters) = Mailbox::channel();
        let begun = Instant::now();
        let until = |done: &dyn Fn() -> bool, what: &str| {
            while !done() {
                assert!(begun.elapsed() < PATIENCE, "{what}");
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        let watchers: Vec<FolderWatcher> = (0..20_u8)
            .map(|number| {
                let watcher = FolderWatcher::new(inbox.clone());
                watcher.watch(DocId([number; 16]), dir.path().to_owned(), false);
                watcher
            })
            .collect();
        until(&|| instances(dir.path()) >= 20, "they watch");
        drop(watchers);
        until(&|| instances(dir.path()) == 0, "they have ended");
    }

    #[test]
    fn once_a_folder_is_entered_nothing_is_missed() {
        let (inbox, letters) = Mailbox::channel();
        let watcher = FolderWatcher::new(inbox);
        for number in 0..50_u8 {
            let dir = tempfile::tempdir().expect("a folder");
            let volume = DocId([number; 16]);
            watcher.watch(volume, dir.path().to_owned(), false);
            watcher.watching_started().recv().expect("an answer");
            std::fs::write(dir.path().join("new.md"), "new").expect("written");
            loop {
                let post = letters.recv_timeout(PATIENCE).expect("an event for the file");
                if let MailboxMessage::Event(Event::FileTouched { volume: of, path: Some(path), .. }) = post
                    && (of, path.as_str()) == (volume, "new.md")
                {
                    break;
                }
            }
            watcher.unwatch(volume);
        }
    }

    #[test]
    fn what_the_system_had_no_room_for_is_looked_for() {
        let dir = tempfile::tempdir().expect("a folder");
        let (inbox, letters) = Mailbox::channel();
        let watcher = FolderWatcher::new(inbox);
        let volume = DocId([1; 16]);
        watcher.watch(volume, dir.path().to_owned(), false);
        watcher.watching_started().recv().expect("an answer");
        event_forwarder(watcher.requests.clone())(Ok(
            notify::Event::new(notify::EventKind::Other).set_flag(Flag::Rescan)
        ));
        let told = letters.recv_timeout(PATIENCE).expect("an event for the volume");
        assert!(
            matches!(told, MailboxMessage::Event(Event::FileTouched { volume: of, path: None, .. }) if of == volume)
        );
    }

    #[test]
    fn what_the_system_does_not_watch_is_looked_through() {
        let dir = tempfile::tempdir().expect("a folder");
        let (seen, heard) = channel();
        let config = super::Config::default().with_poll_interval(Duration::from_millis(50));
        let looking = super::PollWatcher::new(event_forwarder(seen.clone()), config).ok();
        let mut watches = WatchMode { seen, system: None, looking };
        assert!(watches.looking.is_some());
        use notify::Watcher as _;
        let looking = watches.looking.as_mut().expect("it looks");
        looking.watch(dir.path(), notify::RecursiveMode::Recursive).expect("there");
        std::fs::write(dir.path().join("new.md"), "new").expect("written");
        // The folder itself has changed, too.
        loop {
            let found = heard.recv_timeout(PATIENCE).expect("an event for the file");
            if matches!(found, super::WatchRequest::Seen(paths) if paths.iter().any(|path| path.ends_with("new.md"))) {
                break;
            }
        }
        watches.unwatch(dir.path());
    }
}
