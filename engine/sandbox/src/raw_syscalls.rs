//! The few calls of the kernel for which neither std nor rustix has a wrapper: another process's memory, seccomp's
//! listener, tables of file descriptors.

use std::ffi::CString;
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The longest path that Linux takes, with the zero at its end.
const MAX_SYSCALL_PATH_BYTES: usize = 4096;

/// Reads the text at `address` of a process, up to its zero.
pub(crate) fn read_c_string(pid: u32, address: u64) -> Result<Vec<u8>, i32> {
    let mut text = Vec::new();
    while text.len() < MAX_SYSCALL_PATH_BYTES {
        // Up to the end of the page: the next one may not be there.
        let at = address + text.len() as u64;
        let room = MAX_SYSCALL_PATH_BYTES - usize::try_from(at % MAX_SYSCALL_PATH_BYTES as u64).unwrap_or(0);
        let piece = read_bytes(pid, at, room.min(MAX_SYSCALL_PATH_BYTES - text.len()))?;
        match piece.iter().position(|byte| *byte == 0) {
            Some(end) => {
                text.extend_from_slice(&piece[..end]);
                return Ok(text);
            }
            None => text.extend_from_slice(&piece),
        }
    }
    Err(libc::ENAMETOOLONG)
}

/// Reads `size` bytes at `address` of a process.
pub(crate) fn read_bytes(pid: u32, address: u64, size: usize) -> Result<Vec<u8>, i32> {
    let mut found = vec![0u8; size];
    let local = libc::iovec { iov_base: found.as_mut_ptr().cast(), iov_len: size };
    let there = usize::try_from(address).map_err(|_| libc::EFAULT)?;
    let remote = libc::iovec { iov_base: there as *mut libc::c_void, iov_len: size };
    let pid = libc::pid_t::try_from(pid).map_err(|_| libc::ESRCH)?;
    #[allow(unsafe_code, reason = "rustix has no process_vm_readv")]
    // SAFETY: `local` is the memory of `found`, as long as it says; the kernel checks the other process's addresses.
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    match usize::try_from(read) {
        Ok(read) if read == size => Ok(found),
        Ok(_) => Err(libc::EFAULT),
        Err(_) => Err(last_errno()),
    }
}

/// Returns the process group of a process: 0 for the system's own processes; `None` if there's no such process.
pub(crate) fn process_group(pid: i32) -> Option<i32> {
    #[allow(unsafe_code, reason = "rustix takes no group 0")]
    // SAFETY: it takes a number and returns one.
    let group = unsafe { libc::getpgid(pid) };
    (group >= 0).then_some(group)
}

/// Gives this process namespaces of its own.
pub(crate) fn unshare(namespaces: i32) -> Result<(), i32> {
    #[allow(unsafe_code, reason = "rustix has it behind an unsafe function as well")]
    // SAFETY: no namespace of this kind changes memory or descriptors of this process.
    let done = unsafe { libc::unshare(namespaces) };
    if done == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Mounts something at a path.
pub(crate) fn mount(
    source: Option<&str>,
    target: &Path,
    kind: Option<&str>,
    flags: libc::c_ulong,
    options: &str,
) -> Result<(), i32> {
    let text = |text: &[u8]| CString::new(text).map_err(|_| libc::EINVAL);
    let optional = |given: Option<&str>| given.map(|given| text(given.as_bytes())).transpose();
    let (source, kind) = (optional(source)?, optional(kind)?);
    let (target, options) = (text(target.as_os_str().as_bytes())?, text(options.as_bytes())?);
    let pointer = |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
    #[allow(unsafe_code, reason = "rustix has mount only with a feature of its own")]
    // SAFETY: all pointers are null or texts with a zero at the end, which outlive the call.
    let done = unsafe {
        libc::mount(pointer(&source), target.as_ptr(), pointer(&kind), flags, options.as_ptr().cast::<libc::c_void>())
    };
    if done == 0 { Ok(()) } else { Err(last_errno()) }
}

/// What the last call failed by.
pub(crate) fn last_errno() -> i32 {
    Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Installs a filter for this thread, whose listener gets its calls.
pub(crate) fn install_listener(program: &[seccompiler::sock_filter]) -> Result<OwnedFd, i32> {
    let mut program: Vec<libc::sock_filter> =
        program.iter().map(|one| libc::sock_filter { code: one.code, jt: one.jt, jf: one.jf, k: one.k }).collect();
    let Ok(len) = u16::try_from(program.len()) else { return Err(libc::E2BIG) };
    let whole = libc::sock_fprog { len, filter: program.as_mut_ptr() };
    // A call that has begun is not begun once more because of a signal, where the kernel knows how.
    let killable = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let mut error = libc::EINVAL;
    for flags in [killable, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER] {
        #[allow(unsafe_code, reason = "std has no wrapper for prctl and seccomp")]
        // SAFETY: the kernel copies the program, which outlives the call; a filter only takes rights away.
        let made = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const whole)
        };
        if let Ok(made @ 0..) = RawFd::try_from(made) {
            #[allow(unsafe_code, reason = "the descriptor is new")]
            // SAFETY: the kernel has made this descriptor just now, and nobody else owns it.
            let listener = unsafe { OwnedFd::from_raw_fd(made) };
            // A hint to the scheduler, which older kernels do not know.
            let _ = listener_ioctl(&listener, libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, std::ptr::without_provenance_mut(1));
            return Ok(listener);
        }
        error = last_errno();
        if error != libc::EINVAL {
            break;
        }
    }
    Err(error)
}

fn listener_ioctl(listener: &OwnedFd, what: libc::Ioctl, with: *mut libc::c_void) -> Result<i32, i32> {
    #[allow(unsafe_code, reason = "rustix does not know these requests")]
    // SAFETY: each request is given the struct that it is made for, by the functions below.
    let done = unsafe { libc::ioctl(listener.as_raw_fd(), what, with) };
    if done < 0 { Err(last_errno()) } else { Ok(done) }
}

/// Waits for the next call.
pub(crate) fn receive_call(listener: &OwnedFd) -> Result<libc::seccomp_notif, i32> {
    #[allow(unsafe_code, reason = "the kernel wants it zeroed")]
    // SAFETY: a struct of numbers.
    let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    listener_ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, (&raw mut call).cast())?;
    Ok(call)
}

/// Whether there is still a process that could make a call.
pub(crate) fn has_callers(listener: &OwnedFd) -> bool {
    let mut look = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    #[allow(unsafe_code, reason = "one struct")]
    // SAFETY: the kernel is given one struct, as it is told.
    unsafe {
        libc::poll(&raw mut look, 1, 0);
    }
    look.revents & (libc::POLLHUP | libc::POLLNVAL) == 0
}

/// Whether the call is still pending: its thread may have been killed, and the id reused.
pub(crate) fn is_call_waiting(listener: &OwnedFd, mut id: u64) -> bool {
    listener_ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, (&raw mut id).cast()).is_ok()
}

/// Answers a call: with what it returns, or an error's number.
pub(crate) fn answer_call(listener: &OwnedFd, id: u64, answer: Result<i64, i32>) {
    let (val, error) = match answer {
        Ok(value) => (value, 0),
        Err(error) => (0, -error),
    };
    let mut response = libc::seccomp_notif_resp { id, val, error, flags: 0 };
    // The calling thread may have been killed.
    let _ = listener_ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, (&raw mut response).cast());
}

/// Lets a call happen as it was made. Only for those whose arguments don't matter: another thread could change them.
pub(crate) fn let_call_happen(listener: &OwnedFd, id: u64) {
    let flags = u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).unwrap_or_default();
    let mut response = libc::seccomp_notif_resp { id, val: 0, error: 0, flags };
    // As above.
    let _ = listener_ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, (&raw mut response).cast());
}

/// Puts a file among those that the caller has open, and answers the call with its number.
pub(crate) fn answer_call_with_file(listener: &OwnedFd, id: u64, file: &OwnedFd, cloexec: bool) {
    let number = |flag: libc::c_ulong| u32::try_from(flag).unwrap_or_default();
    let mut added = libc::seccomp_notif_addfd {
        id,
        flags: number(libc::SECCOMP_ADDFD_FLAG_SEND),
        srcfd: file.as_raw_fd().unsigned_abs(),
        newfd: 0,
        newfd_flags: if cloexec { libc::O_CLOEXEC.unsigned_abs() } else { 0 },
    };
    if let Err(error) = listener_ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ADDFD, (&raw mut added).cast()) {
        answer_call(listener, id, Err(error));
    }
}

/// Gives the calling thread file descriptors of its own: of those that its process has, only `listener`. Signals go to
/// other threads from here on.
pub(crate) fn unshare_files(listener: RawFd) -> Result<OwnedFd, i32> {
    #[allow(unsafe_code, reason = "std has no wrapper for signal masks")]
    // SAFETY: a set of this thread's own; handlers of the process run on its other threads.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
    let keep = listener.unsigned_abs();
    // This copies the table first; some containers refuse `unshare`.
    close_range(keep + 1, u32::MAX, libc::CLOSE_RANGE_UNSHARE)?;
    #[allow(unsafe_code, reason = "the table is a copy")]
    // SAFETY: in the copy, nobody else owns this descriptor.
    let listener = unsafe { OwnedFd::from_raw_fd(listener) };
    if keep > 0 {
        close_range(0, keep - 1, 0)?;
    }
    // What is printed by mistake must not reach a file of the user.
    for _ in 0..3 {
        if let Ok(null) = std::fs::File::open(crate::landlock_rules::NULL_DEVICE)
            && null.as_raw_fd() <= 2
        {
            // The descriptor stays open, on purpose.
            let _ = null.into_raw_fd();
        }
    }
    Ok(listener)
}

/// Closes this and all later file descriptors.
pub(crate) fn close_from(first: u32) {
    if close_range(first, u32::MAX, 0) == Err(libc::ENOSYS) {
        for number in first.cast_signed()..1 << 16 {
            #[allow(unsafe_code, reason = "Linux before 5.9 closes one by one")]
            // SAFETY: nobody owns them: it is called before anything is opened.
            unsafe {
                libc::close(number);
            }
        }
    }
}

fn close_range(first: u32, last: u32, flags: libc::c_uint) -> Result<(), i32> {
    #[allow(unsafe_code, reason = "rustix has no close_range")]
    // SAFETY: nobody in this table owns them: it is called before anything is opened, and on a copy of a table.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if done == 0 { Ok(()) } else { Err(last_errno()) }
}
