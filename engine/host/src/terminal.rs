//! The terminal in which a command was given.

use std::io::IsTerminal;
use std::process::{Command, Stdio};

/// Whether standard input is a terminal with a user.
pub fn is_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// Reads hidden input: the terminal doesn't echo it.
pub fn read_without_echo<R>(read: impl FnOnce() -> R) -> R {
    let hides = cfg!(unix) && std::io::stdin().is_terminal() && set_echo("-echo");
    let result = read();
    if hides {
        set_echo("echo");
        eprintln!();
    }
    result
}

/// Sends a word to the terminal's settings; returns whether it succeeded.
fn set_echo(word: &str) -> bool {
    let mut stty = Command::new("stty");
    stty.arg(word).stdin(Stdio::inherit()).stdout(Stdio::null()).stderr(Stdio::null());
    stty.status().is_ok_and(|status| status.success())
}
