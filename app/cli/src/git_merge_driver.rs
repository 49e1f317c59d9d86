//! `git merge-driver`: merges a note for Git by finer parts than lines, and makes a repository use that.

use crate::git_commands::GitArguments;
use crate::{CliError, EXIT_DONE, EXIT_FAILED, program_path, yes_no_question};
use git_program::{MERGE_DRIVER_SETTING, merge_driver_command, merge_files};
use host::fs::{copy, user_file};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use text::note_merge::merge_notes;
use text::untrusted_text;
use vcs::RepositoryFolder;

/// Maximum size in bytes of a file that is merged by parts.
const MAX_MERGED_BYTES: u64 = 16 << 20;
/// Length of conflict markers if Git doesn't say.
const DEFAULT_MARKER_LENGTH: u32 = 7;
/// The line of `.gitattributes` that makes Git merge notes with the driver.
const ATTRIBUTES_LINE: &str = "*.md merge=tracebook";
/// Maximum size of `.gitattributes` in bytes.
const MAX_ATTRIBUTES_BYTES: u64 = 1 << 20;

/// Merges THEIRS into OURS, as Git calls a merge driver. Exit code 1 leaves Git's own result with conflict markers in
/// OURS.
pub(super) fn merge(here: &Path, args: &GitArguments, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let usage = || CliError::usage("merge-driver takes BASE OURS THEIRS [PATH [MARKER-LENGTH]], as Git calls it");
    let (files, rest) = args.names.split_at_checked(3).filter(|(_, rest)| rest.len() <= 2).ok_or_else(usage)?;
    let name = rest.first().unwrap_or(&files[1]);
    let marker_length = match rest.get(1) {
        Some(word) => word.parse::<u32>().ok().filter(|length| (1..=1_000).contains(length)).ok_or_else(usage)?,
        None => DEFAULT_MARKER_LENGTH,
    };
    let [base, ours, theirs] = [&files[0], &files[1], &files[2]].map(|file| copy::absolute_path(here, file));
    let read = |path: &Path| -> Result<String, CliError> {
        let bytes = user_file::read_user_file(path, MAX_MERGED_BYTES).map_err(CliError::usage)?;
        let bytes = bytes.ok_or_else(|| CliError::usage(format!("there is no file {}", path.display())))?;
        String::from_utf8(bytes).map_err(|_| {
            CliError::usage(format!("{name} isn't UTF-8 text, so it wasn't merged; choose one of both files"))
        })
    };
    let (base_text, ours_text, theirs_text) = (read(&base)?, read(&ours)?, read(&theirs)?);
    // Git's own result where it has one: the driver is never worse.
    let merged = merge_files(here, [&ours, &base, &theirs], marker_length)?;
    let (bytes, conflicts) = match merged.conflicts {
        0 => (merged.bytes, 0),
        conflicts => match merge_notes(&base_text, &ours_text, &theirs_text) {
            Some(text) => (text.into_bytes(), 0),
            None => (merged.bytes, conflicts),
        },
    };
    user_file::replace_user_file(&ours, Some(ours_text.as_bytes()), &bytes).map_err(CliError::usage)?;
    if json {
        writeln!(out, "{}", json!({"path": name, "conflicts": conflicts}))?;
    }
    Ok(if conflicts == 0 { EXIT_DONE } else { EXIT_FAILED })
}

/// Returns the folder whose repository `--install` names, unless it names a volume.
pub(super) fn installed_folder(args: &GitArguments, here: &Path) -> Option<PathBuf> {
    let folder = copy::absolute_path(here, args.install.as_deref()?);
    folder.is_dir().then_some(folder)
}

/// Shows what makes the repository of a folder use the driver for its notes, and writes it after a yes.
pub(super) fn install(folder: &Path, args: &GitArguments, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    if !args.names.is_empty() {
        return Err(CliError::usage("--install takes the folder or volume; other names go with a merge"));
    }
    let repository = RepositoryFolder::open(folder)?;
    let command = merge_driver_command(&program_path()?)
        .ok_or_else(|| CliError::usage("the path of this program isn't UTF-8 text, so Git can't be told it"))?;
    let settings = [("merge.tracebook.name", "Tracebook notes"), (MERGE_DRIVER_SETTING, command.as_str())];
    let mut missing = Vec::new();
    for (name, value) in settings {
        if repository.setting(name)?.as_deref() != Some(value) {
            missing.push((name, value));
        }
    }
    let attributes = folder.join(".gitattributes");
    if attributes.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
        return Err(CliError::usage(format!("Git doesn't follow the link {}; make it a file", attributes.display())));
    }
    let old = user_file::read_user_file(&attributes, MAX_ATTRIBUTES_BYTES).map_err(CliError::usage)?;
    let text = String::from_utf8(old.clone().unwrap_or_default())
        .map_err(|_| CliError::usage(format!("{} isn't UTF-8 text; add the line by hand", attributes.display())))?;
    let has_line = text.lines().any(|line| line.trim() == ATTRIBUTES_LINE);
    let is_ended = text.is_empty() || text.ends_with('\n');
    let new = match has_line {
        true => text.clone(),
        false => format!("{text}{}{ATTRIBUTES_LINE}\n", if is_ended { "" } else { "\n" }),
    };
    let names = settings.map(|(name, _)| name);
    let answer = |written: bool| json!({"attributes": attributes, "settings": names, "written": written});
    if missing.is_empty() && has_line {
        match json {
            true => writeln!(out, "{}", answer(false))?,
            false => writeln!(out, "{} has it already", folder.display())?,
        }
        return Ok(EXIT_DONE);
    }
    if !json {
        for (name, value) in &missing {
            writeln!(out, "git config {name} {}", untrusted_text::escape_line(value))?;
        }
        yes_no_question::show_change(&attributes, old.is_some().then_some(text.as_str()), &new, out)?;
    }
    if !args.yes && !yes_no_question::is_write_agreed(json, out)? {
        return Ok(EXIT_DONE);
    }
    // The setting first: the line without it would change nothing, and Git merges by lines.
    for (name, value) in missing {
        repository.set_own_setting(name, value)?;
    }
    if !has_line {
        user_file::replace_user_file(&attributes, old.as_deref(), new.as_bytes()).map_err(CliError::usage)?;
    }
    match json {
        true => writeln!(out, "{}", answer(true))?,
        false => writeln!(out, "Written. Commit .gitattributes; each clone needs its own --install")?,
    }
    Ok(EXIT_DONE)
}
