//! A question to the person at the terminal that only y or yes agrees to.

use crate::CliError;
use std::io::{self, IsTerminal as _, Read, Write};
use std::path::Path;
use text::untrusted_text;

/// Returns whether a person at a terminal can answer questions of this process.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal()
}

/// Asks a question, and returns whether the answer is y or yes. The end of input is no.
///
/// # Errors
/// Input or output fails.
pub(crate) fn is_agreed(question: &str, input: &mut dyn Read, out: &mut dyn Write) -> io::Result<bool> {
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    let answer = crate::run_cells::read_line(input)?.unwrap_or_default();
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Shows how a file of the user changes.
///
/// # Errors
/// Output fails.
pub(crate) fn show_change(path: &Path, before: Option<&str>, after: &str, out: &mut dyn Write) -> io::Result<()> {
    let name = path.display().to_string();
    let changes = text::diff::unified_diff(name.trim_start_matches('/'), before, Some(after));
    writeln!(out, "{}", untrusted_text::escape_block(&changes))?;
    out.flush()
}

/// Asks whether a change that was shown is written. Where nobody can be asked, it's refused.
///
/// # Errors
/// Nobody can be asked, or input or output fails.
pub(crate) fn is_write_agreed(json: bool, out: &mut dyn Write) -> Result<bool, CliError> {
    if json || !can_ask() {
        return Err(CliError::usage("nothing was written; --yes writes it"));
    }
    let is_agreed = is_agreed("Write this?", &mut io::stdin(), out)?;
    if !is_agreed {
        writeln!(out, "Nothing was written")?;
    }
    Ok(is_agreed)
}

#[cfg(test)]
mod tests {
    use super::is_agreed;

    #[test]
    fn only_yes_is_yes() {
        for (answer, agreed) in [
            ("y\n", true),
            (" yes \r\n", true),
            ("Y", true),
            ("", false),
            ("\n", false),
            ("yep\n", false),
            ("n\n", false),
        ] {
            let mut said = Vec::new();
            let is = is_agreed("Write this?", &mut answer.as_bytes(), &mut said).expect("asked");
            assert_eq!((is, said.as_slice()), (agreed, &b"Write this? [y/N] "[..]), "{answer:?}");
        }
    }
}
