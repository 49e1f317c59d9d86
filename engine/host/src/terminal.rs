//! The terminal in which a command was given.

use std::io::IsTerminal;
use std::process::{Command, Stdio};

/// Whether standard input is a terminal, at which somebody sits who can be asked.
pub fn is_one() -> bool {
    std::io::stdin().is_terminal()
}

/// Reads something of standard input that nobody is to see: a terminal does not show it meanwhile.
pub fn unseen<R>(read: impl FnOnce() -> R) -> R {
    let hides = cfg!(unix) && std::io::stdin().is_terminal() && echo("-echo");
    let result = read();
    if hides {
        echo("echo");
        eprintln!();
    }
    result
}

/// Tells the terminal; whether it heard.
fn echo(word: &str) -> bool {
    let mut stty = Command::new("stty");
    stty.arg(word).stdin(Stdio::inherit()).stdout(Stdio::null()).stderr(Stdio::null());
    stty.status().is_ok_and(|status| status.success())
}
