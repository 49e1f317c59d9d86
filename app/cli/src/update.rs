//! `update --check`: checks for a newer version. It installs nothing.

use super::{CliError, EXIT_DONE, EXIT_FAILED};
use crate::arguments::UpdateArguments;
use host::maintenance::configuration;
use host::maintenance::update_check::{UpdateCheckError, check_for_update};
use std::io::Write;
use std::path::Path;
use text::untrusted_text;

pub(super) fn cmd_update(
    workspace: &Path,
    args: &UpdateArguments,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    if !args.check {
        return Err(CliError::usage(
            "Tracebook doesn't update itself: `tracebook update --check` says whether there is a newer version; \
             install that the way you installed this one",
        ));
    }
    let config = configuration::load_config(workspace).map_err(|error| CliError::usage(error.to_string()))?;
    let report = check_for_update(&config.update).map_err(|error| match error {
        UpdateCheckError::NotConfigured => CliError::usage(error.to_string()),
        UpdateCheckError::Unreachable(_) | UpdateCheckError::Unreadable(_) => {
            CliError { code: EXIT_FAILED, why: error.to_string() }
        }
    })?;
    if json {
        writeln!(out, "{}", serde_json::to_string(&report).unwrap_or_default())?;
    } else if report.newer {
        let date = report.date.map(|date| format!(" of {}", untrusted_text::escape_line(&date))).unwrap_or_default();
        writeln!(out, "Tracebook {}{date} is available; this is {}", report.latest, report.current)?;
    } else {
        writeln!(out, "Tracebook {} is the newest version", report.current)?;
    }
    Ok(EXIT_DONE)
}
