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

/// What is enforced.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sandbox {
    files: bool,
    network: bool,
    processes: bool,
    memory: bool,
}

static SANDBOX: OnceLock<Sandbox> = OnceLock::new();

impl Sandbox {
    /// What is enforced in this process.
    pub(crate) fn get() -> Sandbox {
        SANDBOX.get().copied().unwrap_or_default()
    }

    /// Locks this process in for good: it reaches the working folder and nothing else. Call it before any thread is
    /// started.
    pub(crate) fn enter() {
        let mut sandbox = Sandbox::default();
        let folder = std::env::current_dir().ok();
        #[cfg(unix)]
        {
            sandbox.memory = limits::set();
        }
        #[cfg(target_os = "linux")]
        {
            let home = std::env::var_os("HOME").map(PathBuf::from);
            let open = folder.map(|folder| granted(&folder, home.as_deref())).unwrap_or_default();
            sandbox.files = linux::files(&open);
            let calls = linux::calls();
            (sandbox.network, sandbox.processes) = (calls, calls);
        }
        #[cfg(not(target_os = "linux"))]
        drop(folder);
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
            (true, true) => "cells reach only the folder of their note, no network, and start no processes",
            (true, false) => "cells reach only the folder of their note",
            (false, true) => "cells reach no network and start no processes",
            (false, false) => "",
        }
    }
}

/// The folders and files to open for cells in `folder`: itself, unless the home folder lies in it. Landlock cannot
/// close what lies in an open folder, and `~/.ssh` must stay shut: then what is not hidden is opened one by one.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has Landlock"))]
fn granted(folder: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    if !home.is_some_and(|home| home.starts_with(folder)) {
        return vec![folder.to_owned()];
    }
    let entries = std::fs::read_dir(folder).map(|entries| entries.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let visible = entries.into_iter().filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    visible.flat_map(|entry| granted(&entry.path(), home)).collect()
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

    /// Shuts all files but those below `open`.
    pub(super) fn files(open: &[PathBuf]) -> bool {
        let shut = || -> Result<RulesetStatus, RulesetError> {
            let rules = Ruleset::default()
                .set_compatibility(CompatLevel::BestEffort)
                .handle_access(AccessFs::from_all(NEWEST))?
                .handle_access(AccessNet::from_all(NEWEST))?
                .scope(Scope::from_all(NEWEST))?
                .create()?
                .add_rules(path_beneath_rules(open, AccessFs::from_all(NEWEST) & !AccessFs::Execute))?
                .add_rules(path_beneath_rules(READ, AccessFs::ReadFile | AccessFs::ReadDir))?
                .add_rules(path_beneath_rules(["/dev/null"], AccessFs::ReadFile | AccessFs::WriteFile))?;
            Ok(rules.restrict_self()?.ruleset)
        };
        shut().is_ok_and(|status| status != RulesetStatus::NotEnforced)
    }

    /// Takes the system calls away with which a cell would reach the network or other processes, or make new ones.
    pub(super) fn calls() -> bool {
        let take = || -> Option<()> {
            // Threads are made with `clone`, too, which a filter can look into; `clone3` it cannot: then glibc and musl
            // use `clone`.
            program(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)?;
            program(denied()?, libc::EACCES)
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

    fn denied() -> Option<BTreeMap<i64, Vec<SeccompRule>>> {
        let mut calls = vec![
            // Network. `socketpair` stays: asyncio talks to itself through it.
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_bind,
            libc::SYS_listen,
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
        assert_eq!(granted(here, Some(Path::new("/nowhere"))), [here]);
        assert_eq!(granted(here, None), [here]);
        assert_eq!(granted(&here.join("src"), Some(here)), [here.join("src")]);
        let mut visible = granted(here, Some(here));
        visible.sort();
        assert_eq!(visible, [here.join("Cargo.toml"), here.join("src")]);
        assert!(granted(Path::new("/"), Some(here)).iter().all(|path| !here.starts_with(path)), "not from above");
    }
}
