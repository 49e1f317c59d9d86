//! Groups of processes: a program with all that it starts, which is ended as a whole. Systems other than Unix have
//! none, so only the program itself is ended there.

use std::process::{Child, Command};

/// Lets a command start in a group of its own: a terminal's Ctrl-C doesn't reach it.
pub(crate) fn start_in_own_group(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(not(unix))]
    let _ = command;
}

/// Ends a process that hasn't been waited for, and its group.
pub(crate) fn end_process_group(child: &mut Child) {
    #[cfg(unix)]
    {
        let group = rustix::process::Pid::from_child(child);
        // Both calls fail only if the process has ended already.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    // As above.
    let _ = child.kill();
}
