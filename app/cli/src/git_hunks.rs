//! Hunks and lines of changed files for `git`: lists them, stages, unstages and discards them.

use super::{CliError, EXIT_DONE};
use crate::git_commands::GitArguments;
use host::source_control::{DiscardedFile, GitRequest, HunkAction, HunkChoice, perform, restore_kept};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use text::untrusted_text::{escape_block, escape_line};
use vcs::{FileHunk, RepositoryFolder};

/// Maximum number of files whose hunks are listed at once.
const MAX_HUNK_FILES: usize = 200;

/// Reads `1,3` or `2:1+3-4`: hunks, or lines of a hunk.
fn parse_choices(text: &str) -> Result<Vec<HunkChoice>, CliError> {
    let wrong = || {
        CliError::usage(format!(
            "--hunk wants numbers such as 1,3, or lines of a hunk such as 2:1+3-4, not “{text}”; `git diff --hunks` \
             lists them"
        ))
    };
    let number = |text: &str| text.trim().parse::<usize>().ok().filter(|number| *number > 0).ok_or_else(wrong);
    let mut choices = Vec::new();
    for part in text.split(',') {
        let (hunk, chosen) = part.split_once(':').map_or((part, None), |(hunk, lines)| (hunk, Some(lines)));
        let mut lines = Vec::new();
        for range in chosen.into_iter().flat_map(|chosen| chosen.split('+')) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (number(first)?, number(last)?);
            // No hunk has more lines than a file has bytes.
            if last < first || last > vcs::MAX_DIFF_BYTES {
                return Err(wrong());
            }
            lines.extend(first..=last);
        }
        choices.push(HunkChoice { hunk: number(hunk)?, lines });
    }
    Ok(choices)
}

/// Stages, unstages or discards the hunks that `--hunk` names.
pub(super) fn use_hunks(
    folder: &Path,
    args: &GitArguments,
    chosen: &str,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let [path] = args.names.as_slice() else { return Err(CliError::usage("--hunk needs one file")) };
    let action = match (args.verb.as_str(), args.staged) {
        ("add", _) => HunkAction::Stage,
        ("restore", true) => HunkAction::Unstage,
        ("restore", false) => HunkAction::Discard,
        _ => return Err(CliError::usage("--hunk goes with add and restore")),
    };
    let request = GitRequest::Hunks { path: path.clone(), action, choices: parse_choices(chosen)?, seen: None };
    finish(folder, &request, args, (json, out))
}

/// Unstages or discards whole files, or brings back what a discard has kept.
pub(super) fn restore_files(
    folder: &Path,
    args: &GitArguments,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    if args.names.is_empty() {
        return Err(CliError::usage("name the files to restore"));
    }
    let Some(kept) = &args.from else {
        let files = args.names.clone();
        if args.staged {
            // Git's own `reset` takes any name.
            let repository = RepositoryFolder::open(folder)?;
            files.iter().try_for_each(|file| repository.is_known_folder(file).map(|_| ()))?;
        }
        let request = if args.staged { GitRequest::Unstage(files) } else { GitRequest::Discard(files) };
        return finish(folder, &request, args, (json, out));
    };
    let [path] = args.names.as_slice() else { return Err(CliError::usage("--from needs one file")) };
    let before = restore_kept(folder, path, kept).map_err(CliError::usage)?;
    print_done(&format!("Restored the changes in {path}."), &[before], args, (json, out))
}

fn finish(
    folder: &Path,
    request: &GitRequest,
    args: &GitArguments,
    output: (bool, &mut dyn Write),
) -> Result<u8, CliError> {
    let done = perform((folder, None), request, &mut |_| {}, &|| false).map_err(CliError::usage)?;
    let discarded = match &done.undo {
        Some(GitRequest::Restore(files)) => files.as_slice(),
        _ => &[], // tidy: open because only a discard keeps files
    };
    print_done(&done.text, discarded, args, output)
}

fn print_done(
    said: &str,
    discarded: &[DiscardedFile],
    args: &GitArguments,
    (json, out): (bool, &mut dyn Write),
) -> Result<u8, CliError> {
    if json {
        let kept: Vec<Value> = discarded.iter().map(|file| json!({"path": file.path, "kept": file.kept})).collect();
        writeln!(out, "{}", json!({"done": said, "discarded": kept}))?;
        return Ok(EXIT_DONE);
    }
    if !said.is_empty() {
        writeln!(out, "{}", escape_line(said))?;
    }
    for file in discarded {
        if let Some(kept) = &file.kept {
            writeln!(out, "To undo: {}", restoring_command(kept, &file.path, args))?;
        }
    }
    Ok(EXIT_DONE)
}

/// Returns the command that brings a file's kept text back.
pub(super) fn restoring_command(kept: &str, path: &str, args: &GitArguments) -> String {
    let word = |word: &str| vcs::shell_word(&escape_line(word));
    let volume = args.volume.as_deref().map_or_else(String::new, |volume| format!(" --volume {}", word(volume)));
    let names = if path.starts_with('-') { " --" } else { "" };
    format!("tracebook git restore --from {kept}{volume}{names} {}", word(path))
}

/// Returns the hunks of changed files by path: of one file, or of all that have some.
pub(super) fn list_hunks(
    repository: &RepositoryFolder,
    path: Option<&str>,
    is_staged: bool,
) -> Result<Vec<(String, Vec<FileHunk>)>, CliError> {
    if let Some(path) = path
        && let Ok(hunks) = repository.hunks(path, is_staged)
    {
        return Ok(vec![(path.to_owned(), hunks)]);
    }
    let below = path.map(|path| format!("{}/", path.trim_end_matches('/')));
    let is_listed = |change: &vcs::FileChange| {
        let has_changed = if is_staged { change.staged.is_some() } else { change.unstaged.is_some() };
        has_changed && below.as_ref().is_none_or(|below| change.path.starts_with(below.as_str()))
    };
    let changes = repository.changes()?.0;
    let files = changes.into_iter().filter(is_listed).take(MAX_HUNK_FILES);
    // Files without hunks, such as pictures, are staged as a whole.
    Ok(files.filter_map(|file| Some((file.path.clone(), repository.hunks(&file.path, is_staged).ok()?))).collect())
}

/// Returns hunks as JSON.
pub(super) fn hunks_json(files: &[(String, Vec<FileHunk>)]) -> Value {
    files.iter().map(|(path, hunks)| json!({"path": path, "hunks": hunks})).collect()
}

/// Returns hunks as text, with the numbers that `--hunk` takes.
pub(super) fn hunks_text(files: &[(String, Vec<FileHunk>)]) -> String {
    let mut text = String::new();
    for (path, hunks) in files {
        text.push_str(&format!("{path}\n"));
        for hunk in hunks {
            let ((old, old_count), (new, new_count)) = (hunk.old, hunk.new);
            text.push_str(&format!("  hunk {} @@ -{old},{old_count} +{new},{new_count} @@\n", hunk.number));
            for line in &hunk.lines {
                let number = line.number.map_or_else(String::new, |number| number.to_string());
                text.push_str(&format!("{number:>6} {}{}\n", line.sign, line.text));
            }
        }
    }
    escape_block(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read() {
        let choice = |hunk, lines: &[usize]| HunkChoice { hunk, lines: lines.to_vec() };
        let read = |text: &str| parse_choices(text).map_err(|error| error.why);
        assert_eq!(read("1,3"), Ok(vec![choice(1, &[]), choice(3, &[])]));
        assert_eq!(read("2:1+3-5"), Ok(vec![choice(2, &[1, 3, 4, 5])]));
        for wrong in ["", "0", "a", "1,", "1:", "1:0", "1:3-1", "1:1-99999999999", "-1"] {
            assert!(parse_choices(wrong).is_err(), "{wrong}");
        }
    }
}
