//! The terminal in which a command runs.

use std::io::IsTerminal;
use std::process::{Command, Stdio};

/// Returns whether standard input is a terminal.
pub(crate) fn is_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// Runs `read` while the terminal doesn't echo input.
pub(crate) fn read_without_echo<R>(read: impl FnOnce() -> R) -> R {
    let hides = cfg!(unix) && std::io::stdin().is_terminal() && set_echo("-echo");
    let result = read();
    if hides {
        set_echo("echo");
        eprintln!();
    }
    result
}

/// Passes an argument to `stty` and returns whether it succeeded.
fn set_echo(word: &str) -> bool {
    let mut stty = Command::new("stty");
    stty.arg(word).stdin(Stdio::inherit()).stdout(Stdio::null()).stderr(Stdio::null());
    stty.status().is_ok_and(|status| status.success())
}
