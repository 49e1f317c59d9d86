//! Restricts this process to what cells need, before the first cell runs.
//!
//! On Linux: Landlock for files, seccomp for network, new processes and access to other processes, rlimits for memory.
//! The restrictions can't be lifted again. Those that can't be enforced are reported in `kernel_info_reply`, never
//! ignored silently.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ::sandbox::PathRules;
use serde_json::{Value, json};

/// Memory limit of a process that runs cells.
#[cfg(unix)]
const MAX_MEMORY_BYTES: u64 = 4 << 30;
/// Memory that a process has before it runs code: stacks, tables, its heap.
#[cfg(unix)]
const STARTING_MEMORY_BYTES: u64 = crate::INTERPRETER_STACK_BYTES as u64 + (64 << 20);
/// Maximum size of a file that a cell writes.
#[cfg(unix)]
const MAX_WRITTEN_FILE_BYTES: u64 = 4 << 30;
/// Maximum number of open files.
#[cfg(unix)]
const MAX_OPEN_FILES: u64 = 256;

/// Access that cells have besides the working folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxGrants {
    /// Whether the network may be used.
    pub network: bool,
    /// A folder that stays closed unless cells run below it: the workspace.
    pub shut: Option<PathBuf>,
    /// Folders and files that cells may read.
    pub read: Vec<PathBuf>,
    /// Folders and files that cells may read and write.
    pub write: Vec<PathBuf>,
    /// Bytes of address space that the process may use; `None` is 4 GiB.
    pub address_bytes: Option<u64>,
    /// Bytes of memory that the process may use beyond what it starts with; `None` for no limit but the address space.
    pub memory_bytes: Option<u64>,
    /// Maximum size in bytes of a file that the process writes; `None` is 4 GiB.
    pub file_bytes: Option<u64>,
    /// Processor time of the process, in seconds; `None` for no limit.
    pub cpu_seconds: Option<u64>,
    /// What of all this is hidden or can only be read.
    pub rules: PathRules,
}

impl SandboxGrants {
    /// Reads the arguments after `tracebook kernel`: `--network`, and `--shut`, `--read`, `--write`, each followed by a
    /// path, and limits: `--memory-bytes`, `--file-bytes`, `--cpu-seconds` with a number, and those of [`PathRules`].
    /// Other arguments grant nothing.
    #[must_use]
    pub fn from_args(words: &[String]) -> SandboxGrants {
        let mut reach = SandboxGrants::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let number = |value: Option<&String>| value.and_then(|value| value.parse().ok());
            match word.as_str() {
                "--memory-bytes" => reach.memory_bytes = number(words.next()),
                "--file-bytes" => reach.file_bytes = number(words.next()),
                "--cpu-seconds" => reach.cpu_seconds = number(words.next()),
                "--hidden" | "--read-only" | "--writable-list" | "--writable" => {
                    words.next().map(|value| reach.rules.read_argument(word, value));
                }
                "--network" => reach.network = true,
                "--shut" => reach.shut = words.next().map(PathBuf::from),
                "--read" => reach.read.extend(words.next().map(PathBuf::from)),
                "--write" => reach.write.extend(words.next().map(PathBuf::from)),
                _ => {}
            }
        }
        reach
    }
}

/// The restrictions that are in force.
#[derive(Clone, Copy, Debug, Default)]
pub struct CellSandbox {
    files: bool,
    network: bool,
    processes: bool,
    memory: bool,
    /// Whether more than the working folder was granted.
    more: bool,
}

static ACTIVE_SANDBOX: OnceLock<CellSandbox> = OnceLock::new();

impl CellSandbox {
    /// Returns the restrictions that are enforced in this process.
    pub fn get() -> CellSandbox {
        ACTIVE_SANDBOX.get().copied().unwrap_or_default()
    }

    /// Restricts this process permanently to the working folder and what is granted. Must be called before any thread
    /// starts.
    pub fn enter(reach: SandboxGrants) {
        let mut sandbox = CellSandbox::default();
        let folder = std::env::current_dir().ok();
        #[cfg(unix)]
        {
            sandbox.memory = limits::set_limits(&reach);
        }
        // Before anything runs: where a path isn't hidden, nothing is run.
        if let Err(why) = ::sandbox::hide_paths(&reach.rules) {
            exit_unconfined(&why);
        }
        #[cfg(target_os = "linux")]
        {
            let home = std::env::var_os("HOME").map(PathBuf::from);
            let granted = |folder: &Path| granted(folder, home.as_deref(), reach.shut.as_deref());
            let mut write = folder.as_deref().map(granted).unwrap_or_default();
            write.extend(reach.write.iter().flat_map(|path| granted(path)));
            let policy = ::sandbox::SandboxPolicy {
                kind: ::sandbox::ConfinedKind::Cells,
                read: reach.read.iter().flat_map(|path| granted(path)).collect(),
                write,
                counted_from: folder.iter().chain(&reach.write).cloned().collect(),
                private: Vec::new(),
                rules: reach.rules.clone(),
                network: reach.network,
            };
            sandbox.more = reach.network || !reach.read.is_empty() || !reach.write.is_empty();
            let confined = ::sandbox::enter(&policy);
            if let Err(why) = confined.files.as_ref().map_err(ToString::to_string)
                && !reach.rules.is_empty()
            {
                exit_unconfined(&why);
            }
            sandbox.files = confined.files.is_ok();
            sandbox.processes = confined.calls.is_ok();
            sandbox.network = confined.calls.is_ok() && !reach.network;
            // Restrictions that don't apply are also listed in `kernel_info_reply`; the reasons go to standard error.
            for why in [confined.files, confined.calls].into_iter().filter_map(Result::err) {
                eprintln!("tracebook kernel: cells are not confined: {why}");
            }
        }
        #[cfg(target_os = "macos")]
        {
            let home = std::env::var_os("HOME").map(PathBuf::from);
            let granted = |folder: &Path| granted(folder, home.as_deref(), reach.shut.as_deref());
            let mut write: Vec<PathBuf> = folder.iter().flat_map(|folder| granted(folder)).collect();
            write.extend(reach.write.iter().flat_map(|path| granted(path)));
            let read: Vec<PathBuf> = reach.read.iter().flat_map(|path| granted(path)).collect();
            sandbox.more = reach.network || !reach.read.is_empty() || !reach.write.is_empty();
            let stands = crate::seatbelt::stand(&write, &read, reach.network);
            (sandbox.files, sandbox.processes) = (stands, stands);
            sandbox.network = stands && !reach.network;
        }
        #[cfg(not(any(target_os = "linux", target_os = "macos")))]
        drop((folder, reach));
        // Fails only if it was set before, and this is called once.
        let _ = ACTIVE_SANDBOX.set(sandbox);
    }

    /// Returns the part of `kernel_info_reply` that lists the restrictions.
    pub fn to_json(self) -> Value {
        json!({"files": self.files, "network": self.network, "processes": self.processes, "memory": self.memory})
    }

    /// Returns the message for a cell that was denied access, if access is restricted.
    pub(crate) fn denial_message(self) -> &'static str {
        match (self.files, self.network) {
            (true, _) if self.more => {
                "cells reach only the folder of their note and what was granted to it, and write no files that other \
                 programs execute"
            }
            (true, true) => {
                "cells reach only the folder of their note, no network, start no processes, and write no files that \
                 other programs execute"
            }
            (true, false) => {
                "cells reach only the folder of their note, and write no files that other programs execute"
            }
            (false, true) => "cells reach no network and start no processes",
            (false, false) => "",
        }
    }
}

/// Ends the process, because a rule of the user's configuration can't be enforced.
fn exit_unconfined(why: &dyn std::fmt::Display) -> ! {
    eprintln!("tracebook kernel: {why}");
    std::process::exit(1);
}

/// Returns the sandbox policy of a user's interpreter whose cells have these grants and the folder `private`, and the
/// message for denied access.
#[cfg(target_os = "linux")]
pub(crate) fn interpreter_policy(reach: &SandboxGrants, private: &Path) -> (::sandbox::SandboxPolicy, &'static str) {
    let folder = std::env::current_dir().ok();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let granted = |folder: &Path| granted(folder, home.as_deref(), reach.shut.as_deref());
    let mut write = folder.as_deref().map(granted).unwrap_or_default();
    write.extend(reach.write.iter().flat_map(|path| granted(path)));
    let policy = ::sandbox::SandboxPolicy {
        kind: ::sandbox::ConfinedKind::Interpreter,
        read: reach.read.iter().flat_map(|path| granted(path)).collect(),
        write,
        counted_from: folder.iter().chain(&reach.write).cloned().collect(),
        private: vec![private.to_owned()],
        rules: reach.rules.clone(),
        network: reach.network,
    };
    let more = reach.network || !reach.read.is_empty() || !reach.write.is_empty();
    let walls =
        CellSandbox { files: true, network: !reach.network, processes: true, memory: true, more }.denial_message();
    (policy, walls)
}

/// Returns the folders and files to open for cells in `folder`: the folder itself, unless it contains the home folder
/// or the closed one. Landlock can't close parts of an open folder, and `~/.ssh` must stay closed. So in that case
/// visible entries are opened one by one.
#[cfg_attr(not(unix), allow(dead_code, reason = "there are no walls to open"))]
fn granted(folder: &Path, home: Option<&Path>, shut: Option<&Path>) -> Vec<PathBuf> {
    if shut == Some(folder) {
        return Vec::new();
    }
    if ![home, shut].into_iter().flatten().any(|inside| inside.starts_with(folder)) {
        return vec![folder.to_owned()];
    }
    let entries = std::fs::read_dir(folder).map(|entries| entries.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let open = entries.into_iter().filter(|entry| {
        // A link may lead to something hidden.
        let link = entry.file_type().map_or(true, |kind| kind.is_symlink());
        !link && !entry.file_name().as_encoded_bytes().starts_with(b".")
    });
    open.flat_map(|entry| granted(&entry.path(), home, shut)).collect()
}

#[cfg(unix)]
mod limits {
    /// Sets the resource limits. Returns whether the memory limit is in force.
    pub(super) fn set_limits(reach: &super::SandboxGrants) -> bool {
        let limit = |kind, most: u64| {
            let limit = libc::rlimit { rlim_cur: most as libc::rlim_t, rlim_max: most as libc::rlim_t };
            #[allow(unsafe_code, reason = "std has no wrapper for setrlimit")]
            // SAFETY: setrlimit reads the one struct that it gets.
            let done = unsafe { libc::setrlimit(kind, &raw const limit) };
            done == 0
        };
        #[allow(unsafe_code, reason = "std has no wrapper for signal")]
        // SAFETY: ignoring a signal installs no handler. Writing a too large file is then an error that Python raises.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        }
        // These limits aren't security boundaries: failures are ignored.
        let _ = limit(libc::RLIMIT_CORE, 0);
        let _ = limit(libc::RLIMIT_NOFILE, super::MAX_OPEN_FILES);
        let written = limit(libc::RLIMIT_FSIZE, reach.file_bytes.unwrap_or(super::MAX_WRITTEN_FILE_BYTES));
        let timed = reach.cpu_seconds.is_none_or(|most| limit(libc::RLIMIT_CPU, most.max(1)));
        // Stacks of threads count as data, and so do the tables of the interpreter.
        let own = super::STARTING_MEMORY_BYTES;
        let data = reach.memory_bytes.is_none_or(|most| limit(libc::RLIMIT_DATA, most.saturating_add(own)));
        // What the configuration limits has to be limited.
        let is_stated = reach.file_bytes.is_some() || reach.cpu_seconds.is_some() || reach.memory_bytes.is_some();
        if is_stated && !(written && timed && data) {
            super::exit_unconfined(&"the limits of the sandbox can't be set");
        }
        limit(libc::RLIMIT_AS, reach.address_bytes.unwrap_or(super::MAX_MEMORY_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::granted;
    use std::path::Path;

    #[test]
    fn a_folder_is_open_unless_the_home_folder_lies_in_it() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let granted = |folder: &Path, home: Option<&Path>, shut: Option<&Path>| {
            let mut open = granted(folder, home, shut);
            open.sort();
            open
        };
        let (src, files) = (here.join("src"), ["Cargo.toml", "build.rs"].map(|name| here.join(name)).into_iter());
        assert_eq!(granted(here, Some(Path::new("/nowhere")), None), [here]);
        assert_eq!(granted(here, None, None), [here]);
        assert_eq!(granted(&src, Some(here), Some(here)), [here.join("src")]);
        assert_eq!(granted(here, Some(here), None), files.clone().chain([src.clone()]).collect::<Vec<_>>());
        assert_eq!(granted(here, None, Some(&src)), files.collect::<Vec<_>>(), "shut as a whole");
        assert!(granted(Path::new("/"), Some(here), None).iter().all(|path| !here.starts_with(path)), "not from above");
    }
}
