//! The terminal in which a command was given.

use std::io::IsTerminal;
use std::process::{Command, Stdio};

/// Whether standard input is a terminal with a user.
pub fn is_one() -> bool {
    std::io::stdin().is_terminal()
}

/// Reads hidden input: the terminal doesn't echo it.
pub fn unseen<R>(read: impl FnOnce() -> R) -> R {
    let hides = cfg!(unix) && std::io::stdin().is_terminal() && echo("-echo");
    let result = read();
    if hides {
        echo("echo");
        eprintln!();
    }
    result
}

/// Sends a word to the terminal's settings; returns whether it succeeded.
fn echo(word: &str) -> bool {
    let mut stty = Command::new("stty");
    stty.arg(word).stdin(Stdio::inherit()).stdout(Stdio::null()).stderr(Stdio::null());
    stty.status().is_ok_and(|status| status.success())
}
