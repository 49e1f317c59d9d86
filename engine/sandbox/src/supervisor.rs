//! Performs, for those who are confined, what changes files by name and what changes metadata: Landlock does not see
//! the latter, and neither Landlock nor a filter of system calls can tell `.git/hooks` from any other folder.
//!
//! A separate thread with its own file descriptors. It copies the arguments of a call, resolves the path, checks the
//! result by its descriptor, and performs the call relative to it: nothing that the caller changes meanwhile leads
//! elsewhere. Landlock limits its writes like the caller's.

mod attributes;
mod git_links;

use crate::interpreter_start::InterpreterStart;
use crate::landlock_rules::{NULL_DEVICE, containing_root};
use crate::{GuardedRefusals, PathRules, SandboxError, SandboxPolicy, raw_syscalls, syscall_filter};
use libc::{EACCES, EINVAL, ELOOP, ENOENT, EOPNOTSUPP, EPERM};
use rustix::fs::{AtFlags, CWD, Dev, FileType, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps};
use rustix::fs::{Gid, Uid, ftruncate, statat, symlinkat, unlinkat, utimensat};
use rustix::fs::{chmod, chownat, linkat, mkdirat, mknodat, openat, readlinkat, renameat_with};
use std::ffi::{CString, OsStr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Links that a path may lead over.
const MAX_FOLLOWED_LINKS: usize = 40;
/// Bits by which a file runs with its owner's rights.
const SET_ID_BITS: u32 = 0o6000;
/// Entries of a folder that is renamed to where some names are guarded. One with more is not.
const MAX_RENAMED_ENTRIES: usize = 1_000;

/// Paths and rules that it checks.
struct SupervisorBounds {
    write: Vec<PathBuf>,
    private: Vec<PathBuf>,
    /// Where paths are counted from: the outermost first.
    counted_from: Vec<PathBuf>,
    /// Whether programs such as git run, which may write what a repository keeps as data.
    programs: bool,
    rules: PathRules,
    refused: GuardedRefusals,
    /// The programs that the interpreter may start.
    start: InterpreterStart,
}

/// A supervisor before it gets its listener.
pub(crate) struct PendingSupervisor {
    listener: Sender<RawFd>,
    ready: Receiver<Result<(), SandboxError>>,
}

impl PendingSupervisor {
    /// Hands the listener over: from here on calls are served.
    pub(crate) fn serve(self, listener: OwnedFd) -> Result<(), SandboxError> {
        self.listener.send(listener.as_raw_fd()).map_err(|_| SandboxError::SupervisorEnded)?;
        self.ready.recv().map_err(|_| SandboxError::SupervisorEnded)??;
        // Its own copy remains; no confined process has one.
        drop(listener);
        Ok(())
    }
}

/// Starts the thread, before there is anything to listen to: what confines the caller later does not confine it.
pub(crate) fn start(policy: &SandboxPolicy, refused: GuardedRefusals) -> Result<PendingSupervisor, SandboxError> {
    let whole = |paths: &[PathBuf]| -> Vec<PathBuf> {
        let mut whole: Vec<PathBuf> = paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
        whole.sort_by_key(|path| path.components().count());
        whole
    };
    let bounds = Arc::new(SupervisorBounds {
        write: whole(&policy.write),
        private: whole(&policy.private),
        counted_from: whole(&policy.counted_from),
        programs: policy.kind == crate::ConfinedKind::Programs,
        rules: policy.rules.resolved(),
        refused,
        start: InterpreterStart::of(policy.kind),
    });
    let (listener, given) = channel::<RawFd>();
    let (tell, ready) = channel();
    let supervise = move || {
        let Ok(listener) = given.recv() else { return };
        let failed = |why: &dyn std::fmt::Display| SandboxError::Supervisor(why.to_string());
        let owned = raw_syscalls::unshare_files(listener)
            .map_err(|error| failed(&std::io::Error::from_raw_os_error(error)))
            .and_then(|owned| {
                let restricted = syscall_filter::restrict_supervisor_syscalls();
                restricted.map(|()| owned).map_err(|why| failed(&why))
            });
        match owned {
            Ok(owned) => {
                // The receiver may be gone, and then nobody needs this.
                let _ = tell.send(Ok(()));
                serve(&Arc::new(owned), &bounds);
            }
            Err(why) => _ = tell.send(Err(why)),
        }
    };
    let thread = std::thread::Builder::new().name("supervisor".into()).stack_size(256 << 10);
    thread.spawn(supervise).map_err(|error| SandboxError::NoThread(error.to_string()))?;
    Ok(PendingSupervisor { listener, ready })
}

fn serve(listener: &Arc<OwnedFd>, bounds: &Arc<SupervisorBounds>) {
    loop {
        let call = match raw_syscalls::receive_call(listener) {
            Ok(call) => call,
            Err(libc::EINTR) => continue,
            // The calling thread was killed, or no process is left.
            Err(ENOENT) if raw_syscalls::has_callers(listener) => continue,
            Err(_) => return,
        };
        let caller = CallingThread { pid: call.pid, bounds };
        match caller.perform_call(i64::from(call.data.nr), &call.data.args, &|| {
            raw_syscalls::is_call_waiting(listener, call.id)
        }) {
            Ok(SupervisorResult::Value(value)) => raw_syscalls::answer_call(listener, call.id, Ok(value)),
            Ok(SupervisorResult::File { file, cloexec }) => {
                raw_syscalls::answer_call_with_file(listener, call.id, &file, cloexec)
            }
            Ok(SupervisorResult::AsMade) => raw_syscalls::let_call_happen(listener, call.id),
            Ok(SupervisorResult::Later(open)) => {
                // A pipe is opened when its other end is: others must not wait for that.
                let (listening, id) = (listener.clone(), call.id);
                let later = move || match open() {
                    Ok((file, cloexec)) => raw_syscalls::answer_call_with_file(&listening, id, &file, cloexec),
                    Err(error) => raw_syscalls::answer_call(&listening, id, Err(error)),
                };
                if std::thread::Builder::new().stack_size(64 << 10).spawn(later).is_err() {
                    raw_syscalls::answer_call(listener, call.id, Err(libc::EAGAIN));
                }
            }
            Err(error) => raw_syscalls::answer_call(listener, call.id, Err(error)),
        }
    }
}

/// A file to be opened, which may take long.
type PendingOpen = Box<dyn FnOnce() -> Result<(OwnedFd, bool), i32> + Send>;

enum SupervisorResult {
    Value(i64),
    File {
        file: OwnedFd,
        cloexec: bool,
    },
    Later(PendingOpen),
    /// The call happens in the caller.
    AsMade,
}

const ZERO_RESULT: SupervisorResult = SupervisorResult::Value(0);

/// Where a path leads: a name in a folder that is held open.
struct ResolvedPath {
    folder: OwnedFd,
    name: CString,
    real: PathBuf,
    /// The path ended in `/`.
    slash: bool,
}

/// Who made a call: a thread.
struct CallingThread<'a> {
    pid: u32,
    bounds: &'a SupervisorBounds,
}

fn errno_number(error: rustix::io::Errno) -> i32 {
    error.raw_os_error()
}

/// An argument that is a number of 32 bits.
fn as_i32(argument: u64) -> i32 {
    (argument & 0xffff_ffff) as u32 as i32
}

fn as_mode(argument: u64, most: u32) -> Mode {
    Mode::from_bits_retain((argument as u32) & most)
}

/// What is behind a descriptor that was opened by its path alone.
fn real_path(file: &OwnedFd) -> Result<PathBuf, i32> {
    let link = readlinkat(CWD, descriptor_path(file), Vec::new()).map_err(errno_number)?;
    Ok(PathBuf::from(OsStr::from_bytes(link.as_bytes())))
}

/// The path by which a descriptor of this thread is reached.
fn descriptor_path(file: &OwnedFd) -> String {
    format!("/proc/thread-self/fd/{}", file.as_raw_fd())
}

impl CallingThread<'_> {
    fn perform_call(&self, call: i64, args: &[u64; 6], waits: &dyn Fn() -> bool) -> Result<SupervisorResult, i32> {
        let [a, b, c, d, e, _] = *args;
        const CURRENT_FOLDER: i32 = libc::AT_FDCWD;
        match call {
            libc::SYS_clone if self.bounds.start.take_process() => Ok(SupervisorResult::AsMade),
            libc::SYS_execve if self.bounds.start.take_program() => Ok(SupervisorResult::AsMade),
            libc::SYS_openat => self.open(as_i32(a), b, as_i32(c), d, waits),
            libc::SYS_mkdirat => self.make_folder(as_i32(a), b, c, waits),
            libc::SYS_mknodat => self.make_node(as_i32(a), b, c, waits),
            libc::SYS_unlinkat => self.unlink(as_i32(a), b, as_i32(c), waits),
            libc::SYS_symlinkat => self.symlink(a, as_i32(b), c, waits),
            libc::SYS_linkat => self.link((as_i32(a), b), (as_i32(c), d), as_i32(e), waits),
            libc::SYS_renameat => self.rename((as_i32(a), b), (as_i32(c), d), 0, waits),
            libc::SYS_renameat2 => self.rename((as_i32(a), b), (as_i32(c), d), e as u32, waits),
            libc::SYS_truncate => self.truncate(a, b, waits),
            libc::SYS_fchmod => self.chmod(&self.open_file(as_i32(a))?, b, waits),
            libc::SYS_fchmodat => self.chmod(&self.open_target(as_i32(a), b, true)?, c, waits),
            libc::SYS_fchmodat2 => self.chmod(&self.open_target_with_flags(as_i32(a), b, as_i32(d))?, c, waits),
            libc::SYS_fchown => self.chown(&self.open_file(as_i32(a))?, b, c, waits),
            libc::SYS_fchownat => self.chown(&self.open_target_with_flags(as_i32(a), b, as_i32(e))?, c, d, waits),
            libc::SYS_utimensat => {
                let file = if b == 0 {
                    self.open_file(as_i32(a))?
                } else {
                    self.open_target_with_flags(as_i32(a), b, as_i32(d))?
                };
                self.set_times(&file, self.read_times(c, 1)?, waits)
            }
            libc::SYS_setxattr => {
                self.set_attribute(&self.open_target(CURRENT_FOLDER, a, true)?, b, (c, d), as_i32(e), waits)
            }
            libc::SYS_lsetxattr => {
                self.set_attribute(&self.open_target(CURRENT_FOLDER, a, false)?, b, (c, d), as_i32(e), waits)
            }
            libc::SYS_fsetxattr => self.set_attribute(&self.open_file(as_i32(a))?, b, (c, d), as_i32(e), waits),
            libc::SYS_removexattr => self.remove_attribute(&self.open_target(CURRENT_FOLDER, a, true)?, b, waits),
            libc::SYS_lremovexattr => self.remove_attribute(&self.open_target(CURRENT_FOLDER, a, false)?, b, waits),
            libc::SYS_fremovexattr => self.remove_attribute(&self.open_file(as_i32(a))?, b, waits),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => self.open(CURRENT_FOLDER, a, as_i32(b), c, waits),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => self.open(CURRENT_FOLDER, a, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, b, waits),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mkdir => self.make_folder(CURRENT_FOLDER, a, b, waits),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mknod => self.make_node(CURRENT_FOLDER, a, b, waits),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_unlink => self.unlink(CURRENT_FOLDER, a, 0, waits),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rmdir => self.unlink(CURRENT_FOLDER, a, libc::AT_REMOVEDIR, waits),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_symlink => self.symlink(a, CURRENT_FOLDER, b, waits),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_link => self.link((CURRENT_FOLDER, a), (CURRENT_FOLDER, b), 0, waits),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => self.rename((CURRENT_FOLDER, a), (CURRENT_FOLDER, b), 0, waits),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chmod => self.chmod(&self.open_target(CURRENT_FOLDER, a, true)?, b, waits),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chown => self.chown(&self.open_target(CURRENT_FOLDER, a, true)?, b, c, waits),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_lchown => self.chown(&self.open_target(CURRENT_FOLDER, a, false)?, b, c, waits),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_utime => {
                self.set_times(&self.open_target(CURRENT_FOLDER, a, true)?, self.read_times_in_seconds(b)?, waits)
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_utimes => {
                self.set_times(&self.open_target(CURRENT_FOLDER, a, true)?, self.read_times(b, 1_000)?, waits)
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_futimesat => {
                let file = if b == 0 { self.open_file(as_i32(a))? } else { self.open_target(as_i32(a), b, true)? };
                self.set_times(&file, self.read_times(c, 1_000)?, waits)
            }
            _ => Err(EPERM),
        }
    }
}

/// Resolution of paths.
impl CallingThread<'_> {
    /// Whether the kernel permits the caller to change this path.
    fn check_allowed(&self, real: &Path) -> Result<(), i32> {
        if containing_root(real, &self.bounds.private).is_some() {
            return Ok(());
        }
        let (root, below) = self.counted_path(real).ok_or(EACCES)?;
        if let Some(why) = self.bounds.rules.write_refusal(real) {
            self.bounds.refused.add_path(&below, why);
            return Err(EACCES);
        }
        match self.guarded_reason(root, &below).or_else(|| bare_repository_reason(root, Path::new(&below))) {
            Some(why) => {
                self.bounds.refused.add_path(&below, why);
                Err(EACCES)
            }
            None => Ok(()),
        }
    }

    /// Returns a writable path relative to its counted root.
    fn counted_path(&self, real: &Path) -> Option<(&Path, String)> {
        let root = containing_root(real, &self.bounds.write)?;
        let root = containing_root(real, &self.bounds.counted_from).unwrap_or(root);
        Some((root, real.strip_prefix(root).ok()?.to_string_lossy().into_owned()))
    }

    fn guarded_reason(&self, root: &Path, below: &str) -> Option<&'static str> {
        let guarded = |path: &str| match self.bounds.programs {
            true => guarded::guarded_reason_for_programs(path),
            false => guarded::guarded_reason(path),
        };
        // Some names are guarded by where they lie, which the root itself may say.
        guarded(below).or_else(|| guarded(&format!("{}{below}", self.guarded_context(root))))
    }

    /// Returns the prefix that a root adds for names guarded by location.
    fn guarded_context(&self, root: &Path) -> String {
        let name = |path: Option<&Path>| {
            path.and_then(Path::file_name).map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
        };
        let (own, above) = (name(Some(root)), name(root.parent()));
        match (above.as_str(), own.as_str()) {
            (_, "projects" | "components") => format!("{own}/"),
            // The folder of a note may be one of agents; a volume is none.
            (_, "agents") if !self.bounds.programs => format!("{own}/"),
            ("projects", _) => format!("{above}/{own}/"),
            _ => String::new(),
        }
    }

    /// The folder from which a path is resolved.
    fn base_folder(&self, folder: i32, path: &[u8]) -> Result<OwnedFd, i32> {
        let from = match folder {
            _ if path.starts_with(b"/") => "/".to_owned(),
            libc::AT_FDCWD => format!("/proc/{}/cwd", self.pid),
            number => format!("/proc/{}/fd/{number}", self.pid),
        };
        openat(CWD, from, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|error| match errno_number(error) {
            ENOENT => libc::EBADF,
            error => error,
        })
    }

    /// An open file of the caller.
    fn open_file(&self, number: i32) -> Result<OwnedFd, i32> {
        self.base_folder(number, b"")
    }

    /// An open file of the caller, if the path means one.
    fn own_descriptor(path: &[u8]) -> Option<i32> {
        match path {
            b"/dev/stdin" => return Some(0),
            b"/dev/stdout" => return Some(1),
            b"/dev/stderr" => return Some(2),
            _ => {}
        }
        let known: [&[u8]; 3] = [b"/dev/fd/", b"/proc/self/fd/", b"/proc/thread-self/fd/"];
        let number = known.iter().find_map(|folder| path.strip_prefix(*folder))?;
        std::str::from_utf8(number).ok()?.parse().ok()
    }

    fn read_text(&self, address: u64) -> Result<Vec<u8>, i32> {
        raw_syscalls::read_c_string(self.pid, address)
    }

    fn resolve_path(&self, folder: i32, path: &[u8], follow: bool) -> Result<ResolvedPath, i32> {
        let mut base = self.base_folder(folder, path)?;
        let mut path = path.to_vec();
        for _ in 0..MAX_FOLLOWED_LINKS {
            if path.is_empty() {
                return Err(ENOENT);
            }
            let slash = path.ends_with(b"/");
            let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
            let whole = &path[..end];
            let cut = whole.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
            let (way, name) = whole.split_at(cut);
            let inside = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let open = |from: &OwnedFd, way: &[u8]| openat(from, way, inside, Mode::empty()).map_err(errno_number);
            if matches!(name, b"" | b"." | b"..") {
                let folder = open(&base, if path.is_empty() { b"/" } else { &path })?;
                let real = real_path(&folder)?;
                return Ok(ResolvedPath { folder, name: c".".to_owned(), real, slash: true });
            }
            let folder = open(&base, if way.is_empty() { b"." } else { way })?;
            let name = CString::new(name).map_err(|_| EINVAL)?;
            if follow {
                match readlinkat(&folder, name.as_c_str(), Vec::new()) {
                    Ok(target) => {
                        let mut target = target.into_bytes();
                        if slash {
                            target.push(b'/');
                        }
                        base = if target.starts_with(b"/") { self.base_folder(libc::AT_FDCWD, b"/")? } else { folder };
                        path = target;
                        continue;
                    }
                    Err(error) if matches!(errno_number(error), EINVAL | ENOENT) => {}
                    Err(error) => return Err(errno_number(error)),
                }
            }
            let real = real_path(&folder)?.join(OsStr::from_bytes(name.as_bytes()));
            return Ok(ResolvedPath { folder, name, real, slash });
        }
        Err(ELOOP)
    }

    /// The same where the caller may change it.
    fn resolve_allowed_path(
        &self,
        folder: i32,
        path: &[u8],
        follow: bool,
        waits: &dyn Fn() -> bool,
    ) -> Result<ResolvedPath, i32> {
        let place = self.resolve_path(folder, path, follow)?;
        self.check_allowed(&place.real)?;
        // The result belongs to the caller only if the caller still exists.
        if waits() { Ok(place) } else { Err(ENOENT) }
    }

    /// The file or folder itself.
    fn open_target(&self, folder: i32, address: u64, follow: bool) -> Result<OwnedFd, i32> {
        let path = self.read_text(address)?;
        if path.is_empty() {
            return Err(ENOENT);
        }
        if let Some(number) = CallingThread::own_descriptor(&path).filter(|_| follow) {
            return self.open_file(number);
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC | if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
        openat(self.base_folder(folder, &path)?, path, flags, Mode::empty()).map_err(errno_number)
    }

    /// The same with the flags that such calls have.
    fn open_target_with_flags(&self, folder: i32, address: u64, flags: i32) -> Result<OwnedFd, i32> {
        if flags & libc::AT_EMPTY_PATH != 0 && (address == 0 || self.read_text(address)?.is_empty()) {
            return self.open_file(folder);
        }
        self.open_target(folder, address, flags & libc::AT_SYMLINK_NOFOLLOW == 0)
    }

    /// The file, if its metadata may be changed.
    fn open_changeable<'f>(&self, file: &'f OwnedFd, waits: &dyn Fn() -> bool) -> Result<(&'f OwnedFd, Stat), i32> {
        self.check_allowed(&real_path(file)?)?;
        let about = statat(file, c"", AtFlags::EMPTY_PATH).map_err(errno_number)?;
        if waits() { Ok((file, about)) } else { Err(ENOENT) }
    }

    /// New files have the caller's mask.
    fn apply_umask(&self) -> Result<(), i32> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).map_err(|_| libc::ESRCH)?;
        let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        let mask = mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).ok_or(libc::ESRCH)?;
        rustix::process::umask(Mode::from_bits_retain(mask));
        Ok(())
    }
}

/// Returns why a path in a bare Git repository is guarded.
fn bare_repository_reason(root: &Path, below: &Path) -> Option<&'static str> {
    let is_settings = |name: &OsStr| {
        let name = name.to_string_lossy().to_ascii_lowercase();
        matches!(&*name, "hooks" | "config" | "config.lock" | "config.worktree" | "commondir")
    };
    let is_repository = |folder: &Path| folder.join("HEAD").is_file() && folder.join("objects").is_dir();
    let mut way = below.ancestors();
    let found = way.any(|part| {
        part.file_name().is_some_and(is_settings) && part.parent().is_some_and(|above| is_repository(&root.join(above)))
    });
    found.then_some("git runs programs that are named there")
}

/// Handling of one supervised system call.
impl CallingThread<'_> {
    fn open(
        &self,
        folder: i32,
        address: u64,
        flags: i32,
        bits: u64,
        waits: &dyn Fn() -> bool,
    ) -> Result<SupervisorResult, i32> {
        let path = self.read_text(address)?;
        let cloexec = flags & libc::O_CLOEXEC != 0;
        let asked = OFlags::from_bits_retain(flags.cast_unsigned());
        let flags = asked | OFlags::CLOEXEC | OFlags::NOCTTY;
        if let Some(number) = CallingThread::own_descriptor(&path) {
            return self.reopen(number, flags, cloexec, waits);
        }
        let mode = as_mode(bits, 0o777);
        if asked.contains(OFlags::TMPFILE) {
            let place = self.resolve_allowed_path(folder, &[&path[..], b"/."].concat(), true, waits)?;
            self.apply_umask()?;
            let file = openat(&place.folder, c".", flags, mode).map_err(errno_number)?;
            return Ok(SupervisorResult::File { file, cloexec });
        }
        let follow = !asked.contains(OFlags::NOFOLLOW) && !asked.contains(OFlags::CREATE | OFlags::EXCL);
        let place = self.resolve_path(folder, &path, follow)?;
        let null = place.real == Path::new(NULL_DEVICE);
        if !null {
            self.check_allowed(&place.real)?;
        }
        if place.slash && asked.contains(OFlags::CREATE) {
            return Err(libc::EISDIR);
        }
        if !waits() {
            return Err(ENOENT);
        }
        let flags = flags | OFlags::NOFOLLOW;
        let found = statat(&place.folder, place.name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW);
        let kind = found.map(|about| FileType::from_raw_mode(about.st_mode));
        match kind {
            Ok(FileType::Fifo) if !asked.contains(OFlags::NONBLOCK) => {
                Ok(SupervisorResult::Later(Box::new(move || {
                    let file = openat(&place.folder, place.name.as_c_str(), flags, mode).map_err(errno_number)?;
                    Ok((file, cloexec))
                })))
            }
            Ok(FileType::RegularFile | FileType::Directory | FileType::Symlink | FileType::Fifo) | Err(_) => {
                if asked.contains(OFlags::CREATE) {
                    self.apply_umask()?;
                }
                // What has become a pipe meanwhile must not hold others up.
                let patient = openat(&place.folder, place.name.as_c_str(), flags | OFlags::NONBLOCK, mode);
                let file = patient.map_err(errno_number)?;
                if !asked.contains(OFlags::NONBLOCK) {
                    let now = rustix::fs::fcntl_getfl(&file).map_err(errno_number)?;
                    rustix::fs::fcntl_setfl(&file, now - OFlags::NONBLOCK).map_err(errno_number)?;
                }
                Ok(SupervisorResult::File { file, cloexec })
            }
            Ok(_) if null => {
                let file = openat(&place.folder, place.name.as_c_str(), flags, mode).map_err(errno_number)?;
                Ok(SupervisorResult::File { file, cloexec })
            }
            // A device, or a socket.
            Ok(_) => Err(EACCES),
        }
    }

    /// Opens what the caller has open once more.
    fn reopen(
        &self,
        number: i32,
        flags: OFlags,
        cloexec: bool,
        waits: &dyn Fn() -> bool,
    ) -> Result<SupervisorResult, i32> {
        let file = self.open_file(number)?;
        let place = real_path(&file)?;
        let piped = place.as_os_str().as_bytes().starts_with(b"pipe:");
        if !piped && place != Path::new(NULL_DEVICE) {
            self.check_allowed(&place)?;
        }
        if !waits() {
            return Err(ENOENT);
        }
        let flags = flags - OFlags::CREATE - OFlags::EXCL - OFlags::NOFOLLOW;
        let open = move || {
            let file = openat(CWD, descriptor_path(&file), flags, Mode::empty()).map_err(errno_number)?;
            Ok((file, cloexec))
        };
        if piped {
            // Its other end may be gone. The descriptor and the check belong to this thread.
            return Ok(SupervisorResult::Later(Box::new(open)));
        }
        let (file, cloexec) = open()?;
        Ok(SupervisorResult::File { file, cloexec })
    }

    fn make_folder(
        &self,
        folder: i32,
        address: u64,
        bits: u64,
        waits: &dyn Fn() -> bool,
    ) -> Result<SupervisorResult, i32> {
        let place = self.resolve_allowed_path(folder, &self.read_text(address)?, false, waits)?;
        self.apply_umask()?;
        mkdirat(&place.folder, place.name.as_c_str(), as_mode(bits, 0o1777)).map_err(errno_number)?;
        Ok(ZERO_RESULT)
    }

    fn make_node(
        &self,
        folder: i32,
        address: u64,
        bits: u64,
        waits: &dyn Fn() -> bool,
    ) -> Result<SupervisorResult, i32> {
        let kind = match bits as u32 & libc::S_IFMT {
            0 | libc::S_IFREG => FileType::RegularFile,
            libc::S_IFIFO => FileType::Fifo,
            // A device reads the disk behind all walls, and a socket is made by `bind`.
            _ => return Err(EPERM),
        };
        let place = self.resolve_allowed_path(folder, &self.read_text(address)?, false, waits)?;
        self.apply_umask()?;
        let device: Dev = 0;
        mknodat(&place.folder, place.name.as_c_str(), kind, as_mode(bits, 0o777), device).map_err(errno_number)?;
        Ok(ZERO_RESULT)
    }

    fn unlink(&self, folder: i32, address: u64, flags: i32, waits: &dyn Fn() -> bool) -> Result<SupervisorResult, i32> {
        let place = self.resolve_allowed_path(folder, &self.read_text(address)?, false, waits)?;
        let flags = AtFlags::from_bits_retain((flags & libc::AT_REMOVEDIR).cast_unsigned());
        unlinkat(&place.folder, place.name.as_c_str(), flags).map_err(errno_number)?;
        Ok(ZERO_RESULT)
    }

    fn symlink(
        &self,
        target: u64,
        folder: i32,
        address: u64,
        waits: &dyn Fn() -> bool,
    ) -> Result<SupervisorResult, i32> {
        let target = CString::new(self.read_text(target)?).map_err(|_| EINVAL)?;
        let place = self.resolve_allowed_path(folder, &self.read_text(address)?, false, waits)?;
        self.check_no_link_in_git(None, &place.real)?;
        symlinkat(target.as_c_str(), &place.folder, place.name.as_c_str()).map_err(errno_number)?;
        Ok(ZERO_RESULT)
    }

    fn link(
        &self,
        (from, old): (i32, u64),
        (to, new): (i32, u64),
        flags: i32,
        waits: &dyn Fn() -> bool,
    ) -> Result<SupervisorResult, i32> {
        let old = self.read_text(old)?;
        let follow = flags & libc::AT_SYMLINK_FOLLOW != 0;
        let new = self.resolve_allowed_path(to, &self.read_text(new)?, false, waits)?;
        let open = match CallingThread::own_descriptor(&old).filter(|_| follow) {
            Some(number) => Some(self.open_file(number)?),
            None if old.is_empty() && flags & libc::AT_EMPTY_PATH != 0 => Some(self.open_file(from)?),
            None => None,
        };
        let done = match open {
            Some(file) => {
                self.check_allowed(&real_path(&file)?)?;
                let about = statat(&file, c"", AtFlags::EMPTY_PATH).map_err(errno_number)?;
                self.check_no_link_in_git(Some(about), &new.real)?;
                linkat(CWD, descriptor_path(&file), &new.folder, new.name.as_c_str(), AtFlags::SYMLINK_FOLLOW)
            }
            None => {
                let old = self.resolve_allowed_path(from, &old, follow, waits)?;
                self.check_no_link_comes(&old, &new)?;
                linkat(&old.folder, old.name.as_c_str(), &new.folder, new.name.as_c_str(), AtFlags::empty())
            }
        };
        done.map(|()| ZERO_RESULT).map_err(errno_number)
    }

    fn rename(
        &self,
        (from, old): (i32, u64),
        (to, new): (i32, u64),
        flags: u32,
        waits: &dyn Fn() -> bool,
    ) -> Result<SupervisorResult, i32> {
        let flags = RenameFlags::from_bits_retain(flags);
        if !(flags - RenameFlags::NOREPLACE - RenameFlags::EXCHANGE).is_empty() {
            return Err(EINVAL);
        }
        let old = self.resolve_allowed_path(from, &self.read_text(old)?, false, waits)?;
        let new = self.resolve_allowed_path(to, &self.read_text(new)?, false, waits)?;
        // Elsewhere, the rules for what is below wouldn't hold.
        let exchanged = flags.contains(RenameFlags::EXCHANGE).then_some(&new.real);
        if [Some(&old.real), exchanged].into_iter().flatten().any(|moved| self.bounds.rules.reaches_below(moved)) {
            return Err(EACCES);
        }
        self.check_stays_unguarded(&old, &new.real)?;
        self.check_no_link_comes(&old, &new)?;
        if flags.contains(RenameFlags::EXCHANGE) {
            self.check_no_link_comes(&new, &old)?;
            self.check_stays_unguarded(&new, &old.real)?;
        }
        renameat_with(&old.folder, old.name.as_c_str(), &new.folder, new.name.as_c_str(), flags)
            .map_err(errno_number)?;
        Ok(ZERO_RESULT)
    }

    /// Some names are guarded only in some places: a folder that holds them may not be renamed to such a place.
    fn check_stays_unguarded(&self, old: &ResolvedPath, new: &Path) -> Result<(), i32> {
        let Some((root, below)) = self.counted_path(new) else { return Ok(()) };
        let with_root = format!("{}{below}", self.guarded_context(root));
        let names = [&below, &with_root].into_iter().flat_map(|path| guarded::names_that_become_guarded(path));
        let holds = |folder: &OwnedFd, way: &Path, name: &str| {
            let entries = openat(folder, way, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                .and_then(rustix::fs::Dir::read_from);
            let Ok(entries) = entries else { return false }; // no folder
            entries.take(MAX_RENAMED_ENTRIES).flatten().any(|entry| {
                let found = entry.file_name().to_string_lossy();
                name == "*" && !matches!(&*found, "." | "..") || found.eq_ignore_ascii_case(name)
            })
        };
        let way = PathBuf::from(OsStr::from_bytes(old.name.as_bytes()));
        for name in names {
            if holds(&old.folder, &way, name) {
                self.bounds.refused.add_path(&below, "agents would be loaded from there");
                return Err(EACCES);
            }
        }
        Ok(())
    }

    fn truncate(&self, address: u64, length: u64, waits: &dyn Fn() -> bool) -> Result<SupervisorResult, i32> {
        let place = self.resolve_allowed_path(libc::AT_FDCWD, &self.read_text(address)?, true, waits)?;
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&place.folder, place.name.as_c_str(), flags, Mode::empty()).map_err(errno_number)?;
        ftruncate(&file, length).map_err(errno_number)?;
        Ok(ZERO_RESULT)
    }

    fn chmod(&self, file: &OwnedFd, bits: u64, waits: &dyn Fn() -> bool) -> Result<SupervisorResult, i32> {
        let (file, about) = self.open_changeable(file, waits)?;
        match FileType::from_raw_mode(about.st_mode) {
            FileType::Symlink => return Err(EOPNOTSUPP),
            FileType::Directory => {}
            // Executing it would give the user's rights.
            _ if bits as u32 & SET_ID_BITS != 0 => return Err(EPERM),
            _ => {}
        }
        chmod(descriptor_path(file), as_mode(bits, 0o7777)).map_err(errno_number)?;
        Ok(ZERO_RESULT)
    }

    fn chown(&self, file: &OwnedFd, user: u64, group: u64, waits: &dyn Fn() -> bool) -> Result<SupervisorResult, i32> {
        let (file, _) = self.open_changeable(file, waits)?;
        let given = |id: u64| Some(id as u32).filter(|id| *id != u32::MAX);
        let (user, group) = (given(user).map(Uid::from_raw), given(group).map(Gid::from_raw));
        chownat(file, c"", user, group, AtFlags::EMPTY_PATH).map_err(errno_number)?;
        Ok(ZERO_RESULT)
    }

    /// Two times, whose second part counts nanoseconds once it is multiplied by `factor`. None: now.
    fn read_times(&self, address: u64, factor: i64) -> Result<Option<Timestamps>, i32> {
        if address == 0 {
            return Ok(None);
        }
        let bytes = raw_syscalls::read_bytes(self.pid, address, 32)?;
        let numbers: Vec<i64> = bytes.as_chunks::<8>().0.iter().map(|number| i64::from_ne_bytes(*number)).collect();
        let [a, b, c, d] = numbers[..] else { return Err(EINVAL) };
        let time = |seconds, rest: i64| Timespec { tv_sec: seconds, tv_nsec: rest.saturating_mul(factor) };
        Ok(Some(Timestamps { last_access: time(a, b), last_modification: time(c, d) }))
    }

    /// Two times in seconds.
    #[cfg(target_arch = "x86_64")]
    fn read_times_in_seconds(&self, address: u64) -> Result<Option<Timestamps>, i32> {
        if address == 0 {
            return Ok(None);
        }
        let bytes = raw_syscalls::read_bytes(self.pid, address, 16)?;
        let numbers: Vec<i64> = bytes.as_chunks::<8>().0.iter().map(|number| i64::from_ne_bytes(*number)).collect();
        let [a, b] = numbers[..] else { return Err(EINVAL) };
        let time = |seconds| Timespec { tv_sec: seconds, tv_nsec: 0 };
        Ok(Some(Timestamps { last_access: time(a), last_modification: time(b) }))
    }

    fn set_times(
        &self,
        file: &OwnedFd,
        times: Option<Timestamps>,
        waits: &dyn Fn() -> bool,
    ) -> Result<SupervisorResult, i32> {
        let (file, about) = self.open_changeable(file, waits)?;
        let now = || {
            let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
            Timestamps { last_access: now, last_modification: now }
        };
        let times = times.unwrap_or_else(now);
        let done = match FileType::from_raw_mode(about.st_mode) {
            FileType::Symlink => utimensat(file, c"", &times, AtFlags::EMPTY_PATH),
            _ => utimensat(CWD, descriptor_path(file), &times, AtFlags::empty()),
        };
        done.map(|()| ZERO_RESULT).map_err(errno_number)
    }
}
