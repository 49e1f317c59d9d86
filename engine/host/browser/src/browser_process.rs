//! The browser's process with all that it starts, and the folder that it may use. Both are gone when it's killed.

use crate::installed_browser::{SandboxUser, sandbox_user};
use crate::{BrowserError, IDLE_TIMEOUT};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum length in bytes of the end of the browser's standard error that's kept.
const MAX_STDERR_BYTES: usize = 8_000;
/// Interval for checking memory and idleness.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);
/// How long to wait for the end of what was killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Beginning of the names of profile folders; the number of the process that made it follows.
const PROFILE_PREFIX: &str = "tracebook-browser-";
/// Passes the pipes on as descriptors 3 and 4, where the browser expects them.
const PIPE_SCRIPT: &str = "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null";
/// Environment variables that the browser gets; everything else stays here.
const INHERITED_ENV_VARS: [&str; 5] = ["LANG", "LC_ALL", "LC_CTYPE", "PATH", "TZ"];

/// Switches of the browser: no window, nothing of its own on the network, no way around the proxy.
const SWITCHES: [&str; 22] = [
    "--headless",
    "--remote-debugging-pipe",
    "--no-startup-window",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--deny-permission-prompts",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AutofillServerCommunication",
];
/// Names aren't resolved by the browser itself, and only tabs, each with a proxy of its own, reach anything: nothing
/// listens on this port.
const NETWORK_SWITCHES: [&str; 3] = [
    "--proxy-server=socks5://127.0.0.1:1",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
];

/// A folder for the profile and downloads of one browser.
struct ProfileFolder(PathBuf);

impl Drop for ProfileFolder {
    fn drop(&mut self) {
        // A process that's about to end may still write.
        let until = Instant::now() + KILL_TIMEOUT;
        while fs::remove_dir_all(&self.0).is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
            if Instant::now() > until {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl ProfileFolder {
    fn new(user: SandboxUser) -> io::Result<ProfileFolder> {
        let place = match user {
            SandboxUser::Same => std::env::temp_dir(),
            // Another user may not reach a folder of ours.
            SandboxUser::Nobody { .. } => PathBuf::from("/tmp"),
        };
        remove_stale_profiles(&place);
        let prefix = format!("{PROFILE_PREFIX}{}-", std::process::id());
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(place)?.keep();
        let folder = ProfileFolder(folder);
        #[cfg(unix)]
        if let SandboxUser::Nobody { id } = user {
            std::os::unix::fs::chown(&folder.0, Some(id), Some(id))?;
        }
        let downloads = folder.0.join("downloads");
        fs::create_dir(&downloads)?;
        #[cfg(unix)]
        if let SandboxUser::Nobody { id } = user {
            std::os::unix::fs::chown(&downloads, Some(id), Some(id))?;
        }
        Ok(folder)
    }
}

/// Removes the profiles of processes that were killed and couldn't do it themselves.
fn remove_stale_profiles(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let owner = name.strip_prefix(PROFILE_PREFIX).and_then(|rest| rest.split('-').next()?.parse::<i32>().ok());
        if owner.is_some_and(|owner| !is_running(owner)) {
            // Another process may be removing it, too, or it belongs to another user.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_running(process: i32) -> bool {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, test_kill_process};
        let tested = Pid::from_raw(process).map(test_kill_process);
        tested.is_some_and(|tested| tested != Err(rustix::io::Errno::SRCH))
    }
    #[cfg(not(unix))]
    {
        // Unused elsewhere, because no browser is started there.
        let _ = process;
        true
    }
}

struct ProcessState {
    child: Option<Child>,
    profile: Option<ProfileFolder>,
    /// Why the process was killed.
    why: Option<String>,
    last_used: Instant,
    is_busy: bool,
}

/// A started browser. It's killed when this is dropped.
pub(crate) struct BrowserProcess {
    group: u32,
    downloads: PathBuf,
    stderr_tail: Arc<Mutex<String>>,
    state: Mutex<ProcessState>,
    /// What the user should know about how it runs.
    pub(crate) remark: Option<&'static str>,
}

/// The ends of the pipe to a browser.
pub(crate) struct BrowserPipes {
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
}

impl Drop for BrowserProcess {
    fn drop(&mut self) {
        self.kill("its run has ended");
    }
}

impl BrowserProcess {
    /// Starts a browser with a new profile.
    pub(crate) fn start(
        program: &Path,
        memory_bytes: u64,
        is_sandboxed: bool,
    ) -> Result<(Arc<BrowserProcess>, BrowserPipes), BrowserError> {
        if !cfg!(unix) {
            return Err(BrowserError::Unsupported);
        }
        let user = sandbox_user();
        let system = |what| move |source| BrowserError::System { what, source };
        let profile = ProfileFolder::new(user).map_err(system("creating the browser's folder"))?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", PIPE_SCRIPT, "sh"]).arg(program).args(SWITCHES).args(NETWORK_SWITCHES);
        let mut data = OsString::from("--user-data-dir=");
        data.push(&profile.0);
        command.arg(data);
        if !is_sandboxed {
            command.arg("--no-sandbox");
        }
        let kept = INHERITED_ENV_VARS.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.env_clear().envs(kept);
        for name in ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, &profile.0);
        }
        command.current_dir(&profile.0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            command.process_group(0);
            if let SandboxUser::Nobody { id } = user {
                command.uid(id).gid(id);
            }
        }
        let mut child = command.spawn().map_err(system("starting the browser"))?;
        let (input, output, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let stderr_tail = Arc::new(Mutex::new(String::new()));
        if let Some(stderr) = stderr {
            let tail = stderr_tail.clone();
            std::thread::spawn(move || keep_tail(stderr, &tail));
        }
        let process = Arc::new(BrowserProcess {
            group: child.id(),
            downloads: profile.0.join("downloads"),
            stderr_tail,
            state: Mutex::new(ProcessState {
                child: Some(child),
                profile: Some(profile),
                why: None,
                last_used: Instant::now(),
                is_busy: true,
            }),
            remark: (!is_sandboxed).then_some(
                "Chromium's own sandbox does not work here, so this page runs without it, as a user without rights.",
            ),
        });
        let watched = Arc::downgrade(&process);
        std::thread::spawn(move || {
            while let Some(process) = watched.upgrade()
                && process.watch(memory_bytes)
            {
                drop(process);
                std::thread::sleep(WATCH_INTERVAL);
            }
        });
        let pipes = input.zip(output).map(|(input, output)| BrowserPipes { input, output });
        let start = |why: &str| BrowserError::Start { program: program.to_owned(), why: why.to_owned() };
        pipes.map(|pipes| (process, pipes)).ok_or_else(|| start("it has no pipes"))
    }

    fn state(&self) -> MutexGuard<'_, ProcessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder that downloads go to until they're read.
    pub(crate) fn downloads(&self) -> &Path {
        &self.downloads
    }

    /// Marks the beginning or the end of a call.
    pub(crate) fn mark_busy(&self, is_busy: bool) {
        let mut state = self.state();
        (state.is_busy, state.last_used) = (is_busy, Instant::now());
    }

    /// Returns why it has ended; `None` if nobody killed it.
    pub(crate) fn kill_reason(&self) -> Option<String> {
        self.state().why.clone()
    }

    /// Returns the last of what it printed about errors.
    pub(crate) fn printed(&self) -> String {
        self.stderr_tail.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Checks memory and idleness. Returns whether it's still running.
    fn watch(&self, memory_bytes: u64) -> bool {
        let is_idle = {
            let state = self.state();
            if state.child.is_none() {
                return false;
            }
            !state.is_busy && state.last_used.elapsed() > IDLE_TIMEOUT
        };
        if is_idle {
            self.kill(&format!("nothing used it for {} minutes", IDLE_TIMEOUT.as_secs() / 60));
        } else if group_memory_bytes(self.group) > memory_bytes {
            self.kill(&format!("the page took more than {} MB of memory", memory_bytes >> 20));
        }
        true
    }

    /// Kills it with all that it has started, waits for their end, and removes its folder.
    pub(crate) fn kill(&self, why: &str) {
        let (child, profile) = {
            let mut state = self.state();
            if state.child.is_none() {
                return;
            }
            state.why = Some(why.to_owned());
            (state.child.take(), state.profile.take())
        };
        let Some(mut child) = child else { return };
        let folder = profile.as_ref().map(|profile| profile.0.to_string_lossy().into_owned()).unwrap_or_default();
        let until = Instant::now() + KILL_TIMEOUT;
        loop {
            kill_group(self.group);
            // Fails only if it has ended already, as below.
            let _ = child.kill();
            let _ = child.try_wait();
            if !kill_strays(self.group, &folder) || Instant::now() > until {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = child.wait(); // nothing is left to wait for if this fails
        drop(profile);
    }
}

fn keep_tail(mut stderr: impl Read, tail: &Mutex<String>) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut bytes) {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.push_str(&String::from_utf8_lossy(bytes.get(..count).unwrap_or_default()));
        let cut = tail.ceil_char_boundary(tail.len().saturating_sub(MAX_STDERR_BYTES));
        tail.drain(..cut);
    }
}

fn kill_group(group: u32) {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL); // there is none if all of it has ended
        }
    }
    #[cfg(not(unix))]
    let _ = group; // no browser is started there
}

/// A process in `/proc`: its number, group and whether it's running.
struct ProcessEntry {
    path: PathBuf,
    number: i32,
    group: u32,
}

/// Lists all processes that haven't ended; empty where there's no `/proc`.
fn list_processes() -> Vec<ProcessEntry> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name, in parentheses, may contain anything, so parse after its last one. See proc_pid_stat(5).
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let is_over = matches!(fields.next()?, "Z" | "X");
        let group = fields.nth(1)?.parse().ok()?;
        (!is_over).then(|| ProcessEntry { path: entry.path(), number, group })
    })
    .collect()
}

/// Kills what the browser has started outside of its group, such as its crash handler. Returns whether anything of the
/// browser is still running.
fn kill_strays(group: u32, folder: &str) -> bool {
    let names_folder = |entry: &ProcessEntry| {
        let line = fs::read(entry.path.join("cmdline")).unwrap_or_default();
        !folder.is_empty() && line.windows(folder.len()).any(|part| part == folder.as_bytes())
    };
    let left: Vec<ProcessEntry> =
        list_processes().into_iter().filter(|entry| entry.group == group || names_folder(entry)).collect();
    #[cfg(unix)]
    for entry in &left {
        if let Some(process) = rustix::process::Pid::from_raw(entry.number) {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL); // it may have ended by now
        }
    }
    !left.is_empty()
}

/// Returns the memory of all processes of a group in bytes, without what they share with files.
fn group_memory_bytes(group: u32) -> u64 {
    let memory = |entry: &ProcessEntry| {
        let status = fs::read_to_string(entry.path.join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
    };
    list_processes().iter().filter(|entry| entry.group == group).filter_map(memory).sum()
}
