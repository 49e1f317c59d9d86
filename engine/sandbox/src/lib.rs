//! What untrusted code may do on Linux: one policy for the kernel that runs cells and for the processes of tools.
//!
//! Three layers of protection. Landlock limits which files are opened, TCP and signals (`files.rs`). An allow-list of
//! system calls rejects everything that programs don't need (`calls.rs`). And operations that change files by name, or
//! their metadata, which Landlock doesn't see, are performed by a supervisor that resolves the path first
//! (`supervisor.rs`). Files that other programs execute are rejected there, by the table in crate `guarded`.
//!
//! It knows nothing of notes, agents or the protocol.

mod chosen_interpreter;
mod command_environment;
#[cfg(target_os = "linux")]
mod cpu_share;
mod folder_growth;
mod installed_packages;
#[cfg(target_os = "linux")]
mod interpreter_start;
#[cfg(target_os = "linux")]
mod landlock_rules;
#[cfg(not(target_os = "linux"))]
mod no_cpu_share;
pub mod open_file_limit;
mod path_rules;
mod process_census;
#[cfg(target_os = "linux")]
mod raw_syscalls;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod syscall_filter;

pub use chosen_interpreter::{InterpreterError, check_interpreter};
pub use command_environment::command_environment;
#[cfg(target_os = "linux")]
pub use cpu_share::CpuShare;
pub use folder_growth::FolderGrowth;
pub use installed_packages::installed_packages;
#[cfg(not(target_os = "linux"))]
pub use no_cpu_share::MissingCpuShare as CpuShare;
pub use path_rules::{HidePathsError, PathRules, hide_paths, resolve_links};
pub use process_census::{ProcessCensus, ProcessExcess, is_group_alive, machine_thread_count};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The kind of process that's confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfinedKind {
    /// The process of a kernel, which runs cells itself: no other program is started.
    Cells,
    /// An interpreter that is not ours: once confined, the thread starts one process of it, which loads native code,
    /// and starts no other program and no other process.
    Interpreter,
    /// A shell and all that it starts.
    Programs,
}

/// What the confined may do.
#[derive(Clone, Debug)]
pub struct SandboxPolicy {
    /// The kind of process that's confined.
    pub kind: ConfinedKind,
    /// What they may read, beyond what the system's programs need.
    pub read: Vec<PathBuf>,
    /// What they may read and write, except what other programs execute.
    pub write: Vec<PathBuf>,
    /// Folders to which paths are relative when checking what other programs execute; entries of `write` may be deeper.
    pub counted_from: Vec<PathBuf>,
    /// Folders with unrestricted access: used by nobody else, and removed with the sandbox.
    pub private: Vec<PathBuf>,
    /// What of it is hidden or can only be read. Hidden paths are hidden with [`hide_paths`] before.
    pub rules: PathRules,
    /// Whether they may use the network.
    pub network: bool,
}

/// What was refused because other programs would execute it: paths, each with the reason.
#[derive(Clone, Debug, Default)]
pub struct GuardedRefusals(Arc<Mutex<Vec<String>>>);

impl GuardedRefusals {
    /// Names beyond these are not kept.
    #[cfg(target_os = "linux")]
    const MAX_REFUSALS: usize = 20;

    #[cfg(target_os = "linux")]
    fn add_path(&self, path: &str, why: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let words = format!("{} ({why})", path.escape_debug());
        if all.len() < GuardedRefusals::MAX_REFUSALS && !all.contains(&words) {
            all.push(words);
        }
    }

    /// All of it so far.
    pub fn refused_paths(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Why a wall does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    /// Landlock refuses the rules.
    #[error("Landlock failed ({0})")]
    Landlock(String),
    /// Landlock was left out when the machine was started.
    #[error("Landlock is not switched on")]
    LandlockOff,
    /// The kernel is older than Landlock.
    #[error("this kernel has no Landlock (it came with Linux 5.13)")]
    LandlockMissing,
    /// Seccomp refuses a filter.
    #[error("seccomp failed ({0})")]
    Seccomp(#[from] SyscallFilterError),
    /// The system gives no thread for the supervisor.
    #[error("no thread could be started ({0})")]
    NoThread(String),
    /// The supervisor can't confine itself.
    #[error("calls cannot be supervised: {0}")]
    Supervisor(String),
    /// The kernel gives no listener for calls.
    #[error("no calls can be supervised: {0}")]
    NoListener(String),
    /// The supervisor's thread is gone.
    #[error("the supervisor has ended")]
    SupervisorEnded,
}

/// Why a filter of system calls can't be installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyscallFilterError {
    /// There are no filters for this processor.
    #[error("it does not know this processor")]
    UnknownProcessor,
    /// The library or the kernel refuses the filter.
    #[error("{0}")]
    Refused(String),
}

/// What holds. Where a wall does not, the error says why.
#[derive(Clone, Debug)]
pub struct SandboxWalls {
    /// Files are bounded, and what other programs execute is kept.
    pub files: Result<(), SandboxError>,
    /// The network and other processes are bounded.
    pub calls: Result<(), SandboxError>,
    /// What is refused from here on because other programs would execute it.
    pub refused: GuardedRefusals,
}

/// Patterns of paths that other programs execute, for the walls of macOS; `programs`: as git may write what it keeps as
/// data.
pub fn guarded_patterns(programs: bool) -> Vec<String> {
    let any_case = |name: &str| -> String {
        let letter = |letter: char| match letter {
            'a'..='z' => format!("[{letter}{}]", letter.to_ascii_uppercase()),
            '.' => "\\.".to_owned(),
            other => other.to_string(),
        };
        name.chars().map(letter).collect()
    };
    let git = [
        "config",
        "hooks",
        "info",
        "modules",
        "worktrees",
        "commondir",
        "rebase-merge",
        "rebase-apply",
        "objects/info/alternates",
    ];
    let mut patterns = Vec::new();
    for name in guarded::guarded_names() {
        let pattern = any_case(name);
        patterns.push(format!("/{pattern}$"));
        match programs && name == ".git" {
            true => patterns.extend(git.iter().map(|below| format!("/{pattern}/{}", any_case(below)))),
            false => patterns.push(format!("/{pattern}/")),
        }
    }
    patterns
}

/// Closes inherited descriptors except standard input, output and error. Call it before anything is opened.
pub fn close_inherited() {
    #[cfg(target_os = "linux")]
    raw_syscalls::close_from(3);
}

/// Confines the calling thread and all that it starts from here on, for good, as far as this machine can. A thread of
/// this process stays outside and serves them.
#[cfg(target_os = "linux")]
pub fn enter(policy: &SandboxPolicy) -> SandboxWalls {
    let refused = GuardedRefusals::default();
    // The supervisor may write no more than the processes it serves, whatever they request.
    let supervisor = landlock_rules::restrict_writing(policy).and_then(|()| supervisor::start(policy, refused.clone()));
    let (files, newest) = match landlock_rules::restrict_files(policy) {
        Ok(newest) => (Ok(()), newest),
        Err(why) => (Err(why), false),
    };
    let (supervised, calls) = match syscall_filter::restrict_syscalls(policy, newest, supervisor) {
        Ok(supervised) => (supervised, Ok(())),
        Err(why) => (Ok(()), Err(SandboxError::Seccomp(why))),
    };
    let files = files.and(supervised).and_then(|()| calls.clone());
    SandboxWalls { files, calls, refused }
}

#[cfg(test)]
mod tests {
    #[test]
    fn patterns_name_what_is_guarded() {
        let patterns = super::guarded_patterns(false);
        assert!(patterns.contains(&r"/\.[gG][iI][tT]/".to_owned()), "{patterns:?}");
        let patterns = super::guarded_patterns(true);
        assert!(!patterns.contains(&r"/\.[gG][iI][tT]/".to_owned()), "git writes its data");
        assert!(patterns.contains(&r"/\.[gG][iI][tT]/[hH][oO][oO][kK][sS]".to_owned()), "{patterns:?}");
        assert!(patterns.contains(&r"/\.[eE][nN][vV][rR][cC]$".to_owned()), "{patterns:?}");
    }
}
