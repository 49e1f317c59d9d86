//! Takes from this process what a cell has no business with, before the first cell runs.
//!
//! On Linux: Landlock for files, seccomp for network, processes and other processes' affairs, rlimits for memory. It is
//! never given back. What cannot be enforced here is said in `kernel_info_reply`, never passed over in silence.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value, json};

/// What a process of cells may have of memory.
#[cfg(unix)]
const MEMORY: u64 = 4 << 30;
/// The largest file that a cell may write.
#[cfg(unix)]
const FILE: u64 = 4 << 30;
/// Files that may be open at once.
#[cfg(unix)]
const OPEN_FILES: u64 = 256;

/// Names the folder in which results of pure cells are kept.
#[cfg_attr(not(unix), allow(dead_code, reason = "there are no walls to open"))]
const PURE: &str = "TRACEBOOK_PURE";

/// What cells reach beside the working folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Whether the network.
    pub network: bool,
    /// A folder that stays shut unless they are started below it: the workspace.
    pub shut: Option<PathBuf>,
    /// Folders and files that they may read.
    pub read: Vec<PathBuf>,
    /// Folders and files that they may read and write.
    pub write: Vec<PathBuf>,
}

impl Reach {
    /// As the words behind `tracebook kernel` say it: `--network`, and `--shut`, `--read`, `--write`, each before a
    /// path. Other words grant nothing.
    #[must_use]
    pub fn of(words: &[String]) -> Reach {
        let mut reach = Reach::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
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

/// What is enforced.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sandbox {
    files: bool,
    network: bool,
    processes: bool,
    memory: bool,
    /// Whether more than the folder was granted.
    more: bool,
}

static SANDBOX: OnceLock<Sandbox> = OnceLock::new();

impl Sandbox {
    /// What is enforced in this process.
    pub(crate) fn get() -> Sandbox {
        SANDBOX.get().copied().unwrap_or_default()
    }

    /// Locks this process in for good: it reaches the working folder and what is granted, nothing else. Call it before
    /// any thread is started.
    pub(crate) fn enter(reach: Reach) {
        let mut sandbox = Sandbox::default();
        let folder = std::env::current_dir().ok();
        #[cfg(unix)]
        {
            sandbox.memory = limits::set();
        }
        #[cfg(target_os = "linux")]
        {
            let home = std::env::var_os("HOME").map(PathBuf::from);
            let granted = |folder: &Path| granted(folder, home.as_deref(), reach.shut.as_deref());
            let mut open = folder.map(|folder| granted(&folder)).unwrap_or_default();
            let network = reach.network;
            sandbox.more = network || !reach.read.is_empty() || !reach.write.is_empty();
            let read: Vec<PathBuf> = reach.read.iter().flat_map(|path| granted(path)).collect();
            open.extend(reach.write.iter().flat_map(|path| granted(path)));
            // Where results of pure cells are kept. Without it they are not.
            open.extend(std::env::var_os(PURE).map(PathBuf::from).filter(|kept| std::fs::create_dir_all(kept).is_ok()));
            sandbox.files = linux::files(&open, &read, network);
            let calls = linux::calls(network);
            (sandbox.network, sandbox.processes) = (calls && !network, calls);
        }
        #[cfg(target_os = "macos")]
        {
            let home = std::env::var_os("HOME").map(PathBuf::from);
            let granted = |folder: &Path| granted(folder, home.as_deref(), reach.shut.as_deref());
            let mut write: Vec<PathBuf> = folder.iter().flat_map(|folder| granted(folder)).collect();
            write.extend(reach.write.iter().flat_map(|path| granted(path)));
            write
                .extend(std::env::var_os(PURE).map(PathBuf::from).filter(|kept| std::fs::create_dir_all(kept).is_ok()));
            let read: Vec<PathBuf> = reach.read.iter().flat_map(|path| granted(path)).collect();
            sandbox.more = reach.network || !reach.read.is_empty() || !reach.write.is_empty();
            let stands = crate::seatbelt::stand(&write, &read, reach.network);
            (sandbox.files, sandbox.processes) = (stands, stands);
            sandbox.network = stands && !reach.network;
        }
        #[cfg(not(any(target_os = "linux", target_os = "macos")))]
        drop((folder, reach));
        // There is one call, and so nothing that this could meet.
        let _ = SANDBOX.set(sandbox);
    }

    /// The part of `kernel_info_reply` that says it.
    pub(crate) fn info(self) -> Value {
        json!({"files": self.files, "network": self.network, "processes": self.processes, "memory": self.memory})
    }

    /// What a cell is told that was refused something, if anything is refused here.
    pub(crate) fn words(self) -> &'static str {
        match (self.files, self.network) {
            (true, _) if self.more => "cells reach only the folder of their note and what was granted to it",
            (true, true) => "cells reach only the folder of their note, no network, and start no processes",
            (true, false) => "cells reach only the folder of their note",
            (false, true) => "cells reach no network and start no processes",
            (false, false) => "",
        }
    }
}

/// The folders and files to open for cells in `folder`: itself, unless the home folder lies in it, or the one that
/// stays shut. Landlock cannot close what lies in an open folder, and `~/.ssh` must stay shut: then what is not
/// hidden is opened one by one.
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
        // A link may lead to what is hidden.
        let link = entry.file_type().map_or(true, |kind| kind.is_symlink());
        !link && !entry.file_name().as_encoded_bytes().starts_with(b".")
    });
    open.flat_map(|entry| granted(&entry.path(), home, shut)).collect()
}

#[cfg(unix)]
mod limits {
    /// Sets the limits; says whether the one of memory holds.
    pub(super) fn set() -> bool {
        let limit = |kind, most: u64| {
            let limit = libc::rlimit { rlim_cur: most as libc::rlim_t, rlim_max: most as libc::rlim_t };
            #[allow(unsafe_code, reason = "std has no wrapper for setrlimit")]
            // SAFETY: setrlimit reads the one struct that it is given.
            let done = unsafe { libc::setrlimit(kind, &raw const limit) };
            done == 0
        };
        #[allow(unsafe_code, reason = "std has no wrapper for signal")]
        // SAFETY: to ignore a signal installs no handler. A file that is too large is then an error that Python raises.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        }
        // The lesser limits are no walls: where they are refused, nothing is said.
        let _ = limit(libc::RLIMIT_CORE, 0) && limit(libc::RLIMIT_FSIZE, super::FILE);
        let _ = limit(libc::RLIMIT_NOFILE, super::OPEN_FILES);
        limit(libc::RLIMIT_AS, super::MEMORY)
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
        RulesetError, RulesetStatus, Scope, path_beneath_rules,
    };
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    };

    /// The newest Landlock that is asked for; an older one gives what it has.
    const NEWEST: ABI = ABI::V6;
    /// What Python itself reads: time zones, chance.
    const READ: [&str; 5] = ["/etc/localtime", "/usr/share/zoneinfo", "/dev/urandom", "/dev/random", "/dev/zero"];

    /// What finding a host's address takes, where the network is granted.
    const NAMES: [&str; 5] =
        ["/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/ssl/certs", "/run/systemd/resolve"];

    /// Shuts all files but those below `open`, and those below `read` against writing.
    pub(super) fn files(open: &[PathBuf], read: &[PathBuf], network: bool) -> bool {
        let shut = || -> Result<RulesetStatus, RulesetError> {
            let mut rules = Ruleset::default()
                .set_compatibility(CompatLevel::BestEffort)
                .handle_access(AccessFs::from_all(NEWEST))?;
            if !network {
                rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
            }
            let names: &[&str] = if network { &NAMES } else { &[] };
            let rules = rules
                .scope(Scope::from_all(NEWEST))?
                .create()?
                .add_rules(path_beneath_rules(open, AccessFs::from_all(NEWEST) & !AccessFs::Execute))?
                .add_rules(path_beneath_rules(read, AccessFs::ReadFile | AccessFs::ReadDir))?
                .add_rules(path_beneath_rules(READ, AccessFs::ReadFile | AccessFs::ReadDir))?
                .add_rules(path_beneath_rules(names, AccessFs::ReadFile | AccessFs::ReadDir))?
                .add_rules(path_beneath_rules(["/dev/null"], AccessFs::ReadFile | AccessFs::WriteFile))?;
            Ok(rules.restrict_self()?.ruleset)
        };
        shut().is_ok_and(|status| status != RulesetStatus::NotEnforced)
    }

    /// Takes the system calls away with which a cell would reach the network or other processes, or make new ones.
    pub(super) fn calls(network: bool) -> bool {
        let take = || -> Option<()> {
            // Threads are made with `clone`, too, which a filter can look into; `clone3` it cannot: then glibc and musl
            // use `clone`.
            program(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)?;
            program(denied(network)?, libc::EACCES)
        };
        take().is_some()
    }

    fn program(rules: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> Option<()> {
        let arch = std::env::consts::ARCH.try_into().ok()?;
        let refuse = SeccompAction::Errno(error.unsigned_abs());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).ok()?;
        let program: BpfProgram = filter.try_into().ok()?;
        seccompiler::apply_filter_all_threads(&program).ok()
    }

    fn denied(network: bool) -> Option<BTreeMap<i64, Vec<SeccompRule>>> {
        let mut calls = vec![
            // Programs, and the affairs of other processes.
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_pidfd_open,
            libc::SYS_pidfd_getfd,
            libc::SYS_pidfd_send_signal,
            libc::SYS_tkill,
            libc::SYS_rt_sigqueueinfo,
            libc::SYS_setpgid,
            libc::SYS_setsid,
            libc::SYS_setpriority,
            // The machine, and what has been a way out of boxes.
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_chroot,
            libc::SYS_pivot_root,
            libc::SYS_bpf,
            libc::SYS_perf_event_open,
            libc::SYS_keyctl,
            libc::SYS_add_key,
            libc::SYS_request_key,
            libc::SYS_io_uring_setup,
            libc::SYS_userfaultfd,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_kexec_load,
        ];
        #[cfg(target_arch = "x86_64")]
        calls.extend([libc::SYS_fork, libc::SYS_vfork]);
        if !network {
            // `socketpair` stays: asyncio talks to itself through it.
            calls.extend([libc::SYS_socket, libc::SYS_connect, libc::SYS_bind, libc::SYS_listen]);
        }
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> = calls.into_iter().map(|call| (call, Vec::new())).collect();
        let rule = |condition: SeccompCondition| SeccompRule::new(vec![condition]).ok().map(|rule| vec![rule]);
        // A new process is a `clone` without the mark of a thread.
        let thread = SeccompCmpOp::MaskedEq(libc::CLONE_THREAD.unsigned_abs().into());
        let process = SeccompCondition::new(0, SeccompCmpArgLen::Qword, thread, 0).ok()?;
        rules.insert(libc::SYS_clone, rule(process)?);
        // Signals go to this process only: a cell may well interrupt itself.
        let other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, std::process::id().into());
        let other = other.ok()?;
        let not_us = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0).ok()?;
        rules.insert(libc::SYS_prlimit64, rule(not_us)?);
        if network {
            // Local sockets lead to the desktop's bus and to agents that hold keys.
            let family = |family: i32| {
                let family = u64::from(family.unsigned_abs());
                SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family).ok()
            };
            let foreign = SeccompRule::new(vec![family(libc::AF_INET)?, family(libc::AF_INET6)?]).ok()?;
            rules.insert(libc::SYS_socket, vec![foreign]);
        }
        rules.insert(libc::SYS_kill, rule(other.clone())?);
        rules.insert(libc::SYS_tgkill, rule(other)?);
        Some(rules)
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
        let src = here.join("src");
        assert_eq!(granted(here, Some(Path::new("/nowhere")), None), [here]);
        assert_eq!(granted(here, None, None), [here]);
        assert_eq!(granted(&src, Some(here), Some(here)), [here.join("src")]);
        assert_eq!(granted(here, Some(here), None), [here.join("Cargo.toml"), here.join("src")]);
        assert_eq!(granted(here, None, Some(&src)), [here.join("Cargo.toml")], "shut as a whole");
        assert!(granted(Path::new("/"), Some(here), None).iter().all(|path| !here.starts_with(path)), "not from above");
    }
}
