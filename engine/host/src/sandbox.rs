//! The process `tracebook sandbox`: runs one shell command in the sandbox, supervises it, and ends everything it
//! started.
//!
//! It reads its order from the first line of its input. The end of its input means that the command was canceled.
//!
//! Three things hold whatever the command does:
//!
//! - No process inside leaves the process group, because `setsid` and `setpgid` have no effect there. One signal
//!   therefore ends everything at once.
//! - Orphans become children of this process.
//! - This process is outside the sandbox, where no signal from inside reaches it.
//!
//! The parent counts processes and memory (`tools/census.rs`).

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Maximum private memory of all processes together, in bytes.
pub const MAX_MEMORY_BYTES: u64 = 4 << 30;
/// Maximum number of processes and threads at once.
pub const MAX_PROCESSES: usize = 512;
/// Maximum size in bytes of a file that a process may write.
pub const MAX_FILE_BYTES: u64 = 1 << 30;
/// Maximum number of bytes that a call of an agent's tool adds to folders.
pub const MAX_ADDED_BYTES: u64 = 8 << 30;

/// An order to run a command, as one line of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SandboxOrder {
    /// The command for `sh -c`.
    pub(crate) command: String,
    /// Paths that may be read, executed and written, except files that other programs would execute.
    pub(crate) write: Vec<PathBuf>,
    /// The folder relative to which paths are checked for files that other programs would execute.
    #[serde(default)]
    pub(crate) root: Option<PathBuf>,
    /// Private folders that may be read, executed and written without exception.
    #[serde(default)]
    pub(crate) private: Vec<PathBuf>,
    /// Paths that may be read and executed, in addition to the system's folders.
    pub(crate) read: Vec<PathBuf>,
    /// Whether the command may use the network.
    pub(crate) network: bool,
    /// Maximum share of all processes together, in percent of one processor.
    #[serde(default)]
    pub(crate) cpu_percent: Option<u64>,
    /// CPU time limit of each process, in seconds.
    pub(crate) seconds: u64,
    /// What of these paths is hidden or can only be read.
    #[serde(default)]
    pub(crate) rules: PathRuleOrder,
    /// Maximum memory of all processes together, in bytes.
    #[serde(default = "max_memory_bytes")]
    pub(crate) memory_bytes: u64,
    /// Maximum number of processes and threads.
    #[serde(default = "max_processes")]
    pub(crate) processes: usize,
    /// Maximum size of a file that a process writes, in bytes.
    #[serde(default = "max_file_bytes")]
    pub(crate) file_bytes: u64,
}

const fn max_memory_bytes() -> u64 {
    MAX_MEMORY_BYTES
}

const fn max_processes() -> usize {
    MAX_PROCESSES
}

const fn max_file_bytes() -> u64 {
    MAX_FILE_BYTES
}

/// Rules for paths, as a part of an order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PathRuleOrder {
    hidden: Vec<PathBuf>,
    read_only: Vec<PathBuf>,
    writable: Vec<Vec<PathBuf>>,
}

impl From<::sandbox::PathRules> for PathRuleOrder {
    fn from(rules: ::sandbox::PathRules) -> PathRuleOrder {
        let ::sandbox::PathRules { hidden, read_only, writable } = rules;
        PathRuleOrder { hidden, read_only, writable }
    }
}

impl From<PathRuleOrder> for ::sandbox::PathRules {
    fn from(order: PathRuleOrder) -> ::sandbox::PathRules {
        let PathRuleOrder { hidden, read_only, writable } = order;
        ::sandbox::PathRules { hidden, read_only, writable }
    }
}

/// How the command ended, as one line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SandboxVerdict {
    /// Exited with this code.
    Exited(i32),
    /// Killed by this signal.
    Signal(i32),
    /// Not started, because there's no sandbox or no shell here; with the reason.
    Refused(String),
}

/// The verdict together with the files whose writing was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SandboxReport {
    pub(crate) verdict: SandboxVerdict,
    /// Files that were not written because other programs would execute them, each with the reason.
    #[serde(default)]
    pub(crate) refused: Vec<String>,
}

/// Runs the sandbox process until its command has ended.
pub fn run() -> ExitCode {
    ::sandbox::close_inherited();
    #[cfg(target_os = "linux")]
    return linux::run();
    #[cfg(target_os = "macos")]
    return macos::run();
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    return print_report(
        &SandboxVerdict::Refused("this system has no sandbox that Tracebook knows".to_owned()),
        Vec::new(),
    );
}

fn print_report(verdict: &SandboxVerdict, refused: Vec<String>) -> ExitCode {
    use std::io::Write;
    let line = serde_json::to_string(&SandboxReport { verdict: verdict.clone(), refused }).unwrap_or_default();
    let mut out = std::io::stdout().lock();
    // If this fails, the reader is gone.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    ExitCode::SUCCESS
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn read_order() -> anyhow::Result<SandboxOrder> {
    use std::io::{BufRead, Read};
    let mut line = String::new();
    std::io::stdin().lock().take(4 << 20).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(|error| anyhow::anyhow!("what to run was not understood ({error})"))
}

/// Returns the folders and files to open for a tool that works in `folder`.
///
/// That's the folder itself, unless the user's home or the workspace is inside. A sandbox can't hide what is in an open
/// folder. In that case, visible entries are opened one by one, and the workspace never.
pub(crate) fn granted_paths(folder: &Path, home: Option<&Path>, workspace: &Path) -> Vec<PathBuf> {
    if folder == workspace {
        return Vec::new();
    }
    if ![home, Some(workspace)].into_iter().flatten().any(|shut| shut.starts_with(folder)) {
        return vec![folder.to_owned()];
    }
    let entries = std::fs::read_dir(folder).map(|entries| entries.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let open = entries.into_iter().filter(|entry| {
        // A symlink may lead to hidden files.
        let link = entry.file_type().map_or(true, |kind| kind.is_symlink());
        !link && !entry.file_name().as_encoded_bytes().starts_with(b".")
    });
    open.flat_map(|entry| granted_paths(&entry.path(), home, workspace)).collect()
}

/// The supervising process outside the sandbox, on Linux.
#[cfg(target_os = "linux")]
mod linux {
    use super::{MAX_PROCESSES, SandboxOrder, SandboxVerdict, print_report, read_order};
    use ::sandbox::{ConfinedKind, CpuShare, GuardedRefusals, SandboxPolicy, SandboxWalls};
    use anyhow::anyhow;
    use rustix::process::{
        Resource, Rlimit, Signal, WaitOptions, getpid, kill_current_process_group, set_child_subreaper,
        setpriority_process, setrlimit, setsid, wait,
    };
    use std::os::fd::AsFd;
    use std::process::{Child, Command, ExitCode, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    /// Niceness of sandboxed processes.
    const SANDBOX_NICENESS: i32 = 10;
    /// Executes the command `$1` after limiting the processor time of each of its processes to `$0` seconds.
    const LIMITED_COMMAND: &str = "ulimit -t \"$0\" && exec /bin/sh -c \"$1\"";

    pub(super) fn run() -> ExitCode {
        match start() {
            Ok((child, refused, share)) => wait_for_shell(child, &refused, share),
            Err(why) => print_report(&SandboxVerdict::Refused(why.to_string()), Vec::new()),
        }
    }

    fn start() -> anyhow::Result<(Child, GuardedRefusals, Option<CpuShare>)> {
        let fail =
            |what: &str, error: &dyn std::fmt::Display| anyhow!("the sandbox could not be made: {what} ({error})");
        // A new session has no terminal to type into, and is a single group to signal.
        setsid().map_err(|error| fail("no session", &error))?;
        // Linux divides CPU time among sessions. A session with very many processes must not delay the process that
        // supervises it.
        let _ = std::fs::write("/proc/self/autogroup", SANDBOX_NICENESS.to_string()); // some kernels share otherwise
        set_child_subreaper(Some(getpid())).map_err(|error| fail("orphans are not ours", &error))?;
        std::fs::metadata("/proc/self/stat")
            .map_err(|error| fail("there is no /proc to count processes by", &error))?;
        let order = read_order()?;
        // Before the process has a second thread.
        ::sandbox::hide_paths(&order.rules.clone().into())?;
        std::thread::spawn(|| {
            // A pipe error also means that the host is gone.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            report_and_exit(None, &GuardedRefusals::default());
        });
        // The limit counts all processes of the user, so it's the current number plus what a tool may have. Root has no
        // such limit, only the count from outside.
        let tasks = ::sandbox::machine_thread_count().unwrap_or(MAX_PROCESSES).saturating_add(order.processes) as u64;
        let limits = [
            (Resource::Nproc, tasks),
            (Resource::Core, 0),
            (Resource::Fsize, order.file_bytes),
            (Resource::Nofile, 1024),
            (Resource::Data, order.memory_bytes),
            (Resource::Cpu, order.seconds.max(1)),
        ];
        let share = order.cpu_percent.map(CpuShare::of_own_group).transpose();
        let share = share.map_err(|error| fail("no share of the processor", &error))?;
        // Keeping a share takes processor time of this process, which isn't the command's, so the shell limits itself.
        for (resource, most) in limits.into_iter().filter(|(kind, _)| share.is_none() || *kind != Resource::Cpu) {
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            setrlimit(resource, limit).map_err(|error| fail("a limit was refused", &error))?;
        }
        // A sandbox applies to a thread and to what it starts, so this process stays outside.
        let inside = std::thread::spawn(move || spawn_confined(&order));
        let (child, refused) = inside.join().unwrap_or_else(|_| Err(anyhow!("the sandbox failed")))?;
        Ok((child, refused, share))
    }

    /// Enters the sandbox on the current thread, and starts the shell there.
    fn spawn_confined(order: &SandboxOrder) -> anyhow::Result<(Child, GuardedRefusals)> {
        let _ = setpriority_process(None, SANDBOX_NICENESS); // only politeness
        let shell = |error: std::io::Error| anyhow!("there is no shell ({error})");
        let output = std::io::stderr().as_fd().try_clone_to_owned().map_err(shell)?;
        let policy = SandboxPolicy {
            kind: ConfinedKind::Programs,
            read: order.read.clone(),
            write: order.write.clone(),
            counted_from: order.root.iter().cloned().collect(),
            private: order.private.clone(),
            rules: order.rules.clone().into(),
            network: order.network,
        };
        let SandboxWalls { files, calls, refused } = ::sandbox::enter(&policy);
        // If any part of the sandbox fails, nothing is run.
        files.and(calls).map_err(|why| anyhow!("there is no sandbox here: {why}"))?;
        let mut command = Command::new("/bin/sh");
        let seconds = order.cpu_percent.map(|_| order.seconds.max(1).to_string());
        command.arg("-c").args(seconds.iter().flat_map(|seconds| [LIMITED_COMMAND, seconds.as_str()]));
        command.arg(&order.command).stdin(Stdio::null()).stdout(output);
        Ok((command.spawn().map_err(shell)?, refused))
    }

    /// Waits for the shell, and reaps every orphan until then.
    fn wait_for_shell(child: Child, refused: &GuardedRefusals, mut share: Option<CpuShare>) -> ExitCode {
        let shell = i32::try_from(child.id()).ok();
        loop {
            match share.as_mut().map_or_else(|| wait(WaitOptions::empty()), CpuShare::wait_for_child) {
                Ok(Some((pid, status))) if Some(pid.as_raw_nonzero().get()) == shell => {
                    let code = status.exit_status().map(SandboxVerdict::Exited);
                    let signal = || SandboxVerdict::Signal(status.terminating_signal().unwrap_or(0));
                    report_and_exit(Some(&code.unwrap_or_else(signal)), refused);
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    report_and_exit(Some(&SandboxVerdict::Refused(format!("the shell was lost ({error})"))), refused)
                }
            }
        }
    }

    /// Reports how the command ended, only once, and ends everything including this process.
    fn report_and_exit(verdict: Option<&SandboxVerdict>, refused: &GuardedRefusals) -> ! {
        static IS_REPORTED: AtomicBool = AtomicBool::new(false);
        if let Some(verdict) = verdict
            && !IS_REPORTED.swap(true, Ordering::AcqRel)
        {
            print_report(verdict, refused.refused_paths());
        } else if verdict.is_some() {
            // Another thread is reporting.
            std::thread::sleep(Duration::from_secs(1));
        }
        // If the group can't be killed, the exit below still ends this process.
        let _ = kill_current_process_group(Signal::KILL);
        std::process::exit(1)
    }
}

/// The supervising process on macOS, with a profile for `sandbox-exec`. Processes can't be counted there.
#[cfg(target_os = "macos")]
mod macos {
    use super::{SandboxOrder, SandboxVerdict, print_report, read_order};
    use anyhow::{Context, anyhow};
    use rustix::process::{Resource, Rlimit, Signal, kill_current_process_group, setrlimit, setsid};
    use std::os::fd::AsFd;
    use std::path::Path;
    use std::process::{Command, ExitCode, Stdio};

    const PROGRAM: &str = "/usr/bin/sandbox-exec";

    pub(super) fn run() -> ExitCode {
        let verdict = perform().unwrap_or_else(|why| SandboxVerdict::Refused(why.to_string()));
        print_report(&verdict, Vec::new());
        // If the group can't be killed, this process still ends by itself.
        let _ = kill_current_process_group(Signal::KILL);
        ExitCode::SUCCESS
    }

    fn perform() -> anyhow::Result<SandboxVerdict> {
        let fail = |error: &dyn std::fmt::Display| anyhow!("the sandbox could not be made ({error})");
        setsid().map_err(|error| fail(&error))?;
        let order = read_order()?;
        ::sandbox::hide_paths(&order.rules.clone().into())?;
        std::thread::spawn(|| {
            // A pipe error also means that the host is gone.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            let _ = kill_current_process_group(Signal::KILL);
        });
        for (resource, most) in
            [(Resource::Core, 0), (Resource::Fsize, order.file_bytes), (Resource::Cpu, order.seconds.max(1))]
        {
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            setrlimit(resource, limit).map_err(|error| fail(&error))?;
        }
        let output = std::io::stderr().as_fd().try_clone_to_owned().map_err(|error| fail(&error))?;
        let mut command = Command::new(PROGRAM);
        command.arg("-p").arg(profile(&order)?).args(["/bin/sh", "-c", &order.command]);
        let status = command.stdin(Stdio::null()).stdout(output).status().map_err(|error| fail(&error))?;
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        Ok(status.code().map_or(SandboxVerdict::Signal(signal.unwrap_or(0)), SandboxVerdict::Exited))
    }

    /// Returns the profile of what is allowed, in the language of `sandbox-exec`.
    fn profile(order: &SandboxOrder) -> anyhow::Result<String> {
        let mut profile = String::from(
            "(version 1)(deny default)(allow process-fork)(allow signal (target same-sandbox))(allow sysctl-read)\
             (allow file-read-metadata)(allow file-read* process-exec (subpath \"/usr\") (subpath \"/bin\")\
             (subpath \"/sbin\") (subpath \"/System\") (subpath \"/Library/Developer\") (subpath \"/opt\")\
             (subpath \"/private/var/db/timezone\") (literal \"/private/etc/passwd\"))\
             (allow file-read* file-write* (literal \"/dev/null\"))\
             (allow file-read* (literal \"/dev/random\") (literal \"/dev/urandom\") (literal \"/dev/zero\"))",
        );
        let below = |path: &Path| {
            let path = path.to_str().context("a folder's name is not UTF-8 text")?;
            Ok::<_, anyhow::Error>(format!("(subpath \"{}\")", path.replace('\\', "\\\\").replace('"', "\\\"")))
        };
        for path in &order.read {
            profile += &format!("(allow file-read* process-exec {})", below(path)?);
        }
        for path in &order.write {
            profile += &format!("(allow file-read* file-write* process-exec {})", below(path)?);
        }
        // Denies writing files that other programs would execute. In a profile, the last matching rule wins.
        for pattern in ::sandbox::guarded_patterns(true) {
            profile += &format!("(deny file-write* (regex #\"{pattern}\"))");
        }
        for path in &order.private {
            profile += &format!("(allow file-read* file-write* process-exec {})", below(path)?);
        }
        if order.network {
            profile += "(allow network-outbound)(allow system-socket)(allow mach-lookup\
                        (global-name \"com.apple.dnssd.service\"))(allow file-read* (subpath \"/private/etc/ssl\")\
                        (literal \"/private/etc/hosts\") (literal \"/private/etc/resolv.conf\"))";
        }
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::granted_paths;
    use std::path::Path;

    #[test]
    fn what_stays_shut_is_never_opened_from_above() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        for name in ["home/.ssh", "home/notes", "home/data", "W/blobs"] {
            std::fs::create_dir_all(at(name)).expect("made");
        }
        std::os::unix::fs::symlink(at("home/.ssh"), at("home/keys")).expect("linked");
        let open = |folder: &Path| {
            let mut open = granted_paths(folder, Some(&at("home")), &at("W"));
            open.sort();
            open
        };
        assert_eq!(open(&at("home/notes")), [at("home/notes")]);
        assert_eq!(open(&at("home")), [at("home/data"), at("home/notes")]);
        assert_eq!(open(dir.path()), [at("home/data"), at("home/notes")], "neither what is hidden nor the workspace");
        assert_eq!(open(&at("W")), Vec::<std::path::PathBuf>::new());
        assert_eq!(open(&at("W/blobs")), [at("W/blobs")], "the sample lies in the workspace");
    }
}
