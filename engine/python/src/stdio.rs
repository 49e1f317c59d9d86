//! Takes the process's standard input and output for the protocol, so that nothing else can reach them.
//!
//! Afterwards, descriptors 0 and 1 are `/dev/null`: a cell that reads them, a native write, or a child process can
//! neither consume a request nor corrupt a message. Standard error is unchanged. Nothing here reads or writes.

use std::fs::File;
use std::io;

/// Returns the private ends of the protocol, closed on exec: the input of requests and the output of messages.
#[cfg(unix)]
pub fn take() -> io::Result<(File, File)> {
    use std::os::fd::{AsFd, AsRawFd};

    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let null = File::options().read(true).write(true).open("/dev/null")?;
    for descriptor in [libc::STDIN_FILENO, libc::STDOUT_FILENO] {
        #[allow(unsafe_code, reason = "std has no way to replace a descriptor in place")]
        // SAFETY: `null` is open during the call, and both targets are descriptors that no value owns.
        let done = unsafe { libc::dup2(null.as_raw_fd(), descriptor) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok((input, output))
}

/// Returns the input of requests and the output of messages. The standard handles stay in place: `sys.stdin` and
/// `sys.stdout` are the kernel's own objects, but a child process of a cell could still write in between.
#[cfg(windows)]
pub fn take() -> io::Result<(File, File)> {
    use std::os::windows::io::AsHandle;

    let input = File::from(io::stdin().as_handle().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_handle().try_clone_to_owned()?);
    Ok((input, output))
}

/// Asks Linux to kill this process when the thread that started it ends, so that a crashed parent leaves no busy loop
/// behind. On other systems, only the end of standard input ends it.
pub fn die_with_parent() {
    #[cfg(target_os = "linux")]
    {
        #[allow(unsafe_code, reason = "std has no wrapper for prctl")]
        // SAFETY: PR_SET_PDEATHSIG takes one number and touches no memory of ours.
        let done = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        // If it's refused (by a seccomp filter of the parent), the end of standard input, which comes at the same time,
        // ends it.
        let _ = done;
    }
}
