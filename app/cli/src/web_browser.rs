//! Web pages in the user's browser: to sign in at a server, and those that a server asks the user to open.

use agent::server_form::UserForm;
use std::io::{self, Write};
use std::process::{Command, Stdio};
use text::untrusted_text;

/// The variable that names a program for web pages.
const BROWSER_VARIABLE: &str = "BROWSER";

/// Opens a web page in the user's browser. Returns whether a program took it.
pub(crate) fn open_browser(address: &str) -> bool {
    let named = std::env::var(BROWSER_VARIABLE).unwrap_or_default();
    let mut words = named.split_whitespace();
    let mut command = match words.next() {
        Some(program) => {
            let mut command = Command::new(program);
            command.args(words);
            command
        }
        None if cfg!(target_os = "macos") => Command::new("open"),
        None => Command::new("xdg-open"),
    };
    command.arg(address).env_remove(host::maintenance::secrets::PASSPHRASE_VARIABLE);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
}

/// Opens the page that a server has asked for, after the user has agreed. With `is_here`, the user sits at this
/// process; otherwise the address is only shown.
///
/// # Errors
/// Output fails.
pub(crate) fn open_page(form: &UserForm, is_here: bool, errors: &mut dyn Write) -> io::Result<()> {
    let Some(page) = form.page_address() else { return Ok(()) };
    let words = match is_here && open_browser(&page.text) {
        true => "The page opens in your browser. If it doesn't, open",
        false => "Open in your browser",
    };
    writeln!(errors, "{words}:\n{}", untrusted_text::escape_line(&page.text))
}
