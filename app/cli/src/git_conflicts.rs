//! Conflicts for `git`: lists files in conflict with the text of both sides, and resolves them.

use super::{CliError, EXIT_DONE, git_hunks, parse};
use crate::git_commands::GitArguments;
use host::source_control::{ConflictChoice, GitRequest, perform};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use text::untrusted_text::{escape_block, escape_line};
use vcs::{ConflictSides, FileConflict, RepositoryFolder};

/// Lists the files in conflict, or the conflicts of a file.
pub(super) fn list_conflicts(
    repository: &RepositoryFolder,
    args: &GitArguments,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let (path, files, is_complete) = match args.names.as_slice() {
        [] => {
            let (files, is_complete) = repository.conflicts()?;
            (None, files, is_complete)
        }
        [path] => (Some(path), vec![repository.conflict(path)?], true),
        [_, ..] => return Err(CliError::usage("conflicts takes one file, or none for a list of all")),
    };
    let sides = repository.conflict_sides()?;
    if json {
        let under_way = repository.branch_state()?.under_way;
        let answer = match (path, files.as_slice()) {
            (Some(_), [file]) => json!({"sides": sides, "under_way": under_way, "file": file}),
            (_, files) => {
                let file = |file: &FileConflict| {
                    json!({
                        "path": file.path, "kind": file.kind, "is_binary": file.is_binary,
                        "regions": file.regions.len(), "trouble": file.trouble,
                    })
                };
                let files: Vec<_> = files.iter().map(file).collect();
                json!({"sides": sides, "under_way": under_way, "files": files, "complete": is_complete})
            }
        };
        writeln!(out, "{answer}")?;
        return Ok(EXIT_DONE);
    }
    if files.is_empty() {
        writeln!(out, "No file is in conflict.")?;
        return Ok(EXIT_DONE);
    }
    write!(out, "{}", escape_block(&conflicts_text(&sides, &files, path.is_some())))?;
    if !is_complete {
        writeln!(out, "… more than {} files …", vcs::MAX_CONFLICT_FILES)?;
    }
    Ok(EXIT_DONE)
}

fn conflicts_text(sides: &ConflictSides, files: &[FileConflict], has_text: bool) -> String {
    let mut text = format!("--ours    {}\n--theirs  {}\n", sides.ours.name, sides.theirs.name);
    for file in files {
        let count = match file.regions.len() {
            0 => String::new(),
            1 => ", 1 conflict".to_owned(),
            count => format!(", {count} conflicts"),
        };
        let trouble = file.trouble.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        text.push_str(&format!("{}  {}{count}{trouble}\n", file.path, file.kind.word()));
        for region in file.regions.iter().filter(|_| has_text) {
            text.push_str(&format!("\nconflict {}, line {}\n", region.number, region.line));
            for (flag, name, side) in
                [("--ours", &sides.ours.name, &region.ours), ("--theirs", &sides.theirs.name, &region.theirs)]
            {
                text.push_str(&format!("  {flag}: {name}\n"));
                side.lines().for_each(|line| text.push_str(&format!("    {line}\n")));
            }
        }
    }
    text
}

/// Resolves conflicts of a file.
pub(super) fn resolve_conflicts(
    folder: &Path,
    args: &GitArguments,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let [path] = args.names.as_slice() else { return Err(CliError::usage("resolve needs one file")) };
    let choice = match (args.is_ours, args.is_theirs, args.is_both) {
        (true, false, false) => ConflictChoice::Ours,
        (false, true, false) => ConflictChoice::Theirs,
        (false, false, true) => ConflictChoice::Both,
        _ => {
            return Err(CliError::usage(
                "resolve needs one of --ours, --theirs and --both; `tracebook git conflicts` says what they are",
            ));
        }
    };
    let region = parse::number_option("region", args.region.as_deref())?;
    let region = region.map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    let request = GitRequest::Resolve { path: path.clone(), choice, region, seen: args.seen.clone() };
    let done = perform((folder, None), &request, &mut |_| {}, &|| false).map_err(CliError::usage)?;
    let kept = match &done.undo {
        Some(GitRequest::Unresolve(file)) => file.kept.as_deref(),
        _ => None, // tidy: open because only this request resolves
    };
    if json {
        let left = RepositoryFolder::open(folder)?.conflict(path).map_or(0, |file| file.regions.len());
        writeln!(out, "{}", json!({"done": done.text, "path": path, "conflicts_left": left, "kept": kept}))?;
        return Ok(EXIT_DONE);
    }
    writeln!(out, "{}", escape_line(&done.text))?;
    if let Some(kept) = kept {
        let command = git_hunks::restoring_command(kept, path, args);
        writeln!(out, "To get the former text back: {command}")?;
    }
    Ok(EXIT_DONE)
}
