//! `git log` and `git diff`: of commits and ranges, and of files. Says which name is which.

use super::parse::{self, PATH_MARK};
use super::{CliError, git_hunks};
use crate::git_commands::{DEFAULT_LOG_COMMITS, GitArguments, commit_line, print_text};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;
use vcs::RepositoryFolder;

/// How long commits are searched for.
const LOG_SEARCH_TIMEOUT: Duration = Duration::from_secs(120);

/// What is said of a log that lacks commits.
const CUT_LOG: &str = "tracebook: older commits are left out, because the search takes too long";

/// The names that a log or diff was given.
struct RevisionNames {
    revisions: Vec<String>,
    files: Vec<String>,
}

impl RevisionNames {
    /// Tells revisions from files, as Git does: revisions come first, and `--` may stand between them.
    fn split(repository: &RepositoryFolder, names: &[String]) -> Result<RevisionNames, CliError> {
        if let Some(mark) = names.iter().position(|name| name == PATH_MARK) {
            return Ok(RevisionNames { revisions: names[..mark].to_vec(), files: names[mark + 1..].to_vec() });
        }
        let mut revisions = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let file = repository.is_known_folder(name);
            match (file, repository.commit_range(std::slice::from_ref(name))) {
                (Ok(_), Ok(_)) => {
                    return Err(CliError::usage(format!(
                        "{name} is the name of a file or folder, and also means a commit; write `{name} --` for the \
                         commit, or `-- {name}` for the file"
                    )));
                }
                (Err(_), Ok(_)) => revisions.push(name.clone()),
                (Ok(_), Err(_)) => {
                    let files = names[at..].to_vec();
                    files.iter().try_for_each(|file| repository.is_known_folder(file).map(drop))?;
                    return Ok(RevisionNames { revisions, files });
                }
                (Err(file), Err(_)) if ["/", "./", "../"].iter().any(|start| name.starts_with(start)) => {
                    return Err(file.into());
                }
                (Err(_), Err(revision)) if name.contains("..") => return Err(revision.into()),
                (Err(file), Err(revision)) => {
                    return Err(CliError::usage(format!(
                        "{file}, and {revision}; `-- {name}` means a file that only older commits have"
                    )));
                }
            }
        }
        Ok(RevisionNames { revisions, files: Vec::new() })
    }
}

/// Prints what has changed since the last commit, since another one, or between two.
pub(super) fn print_diff(
    repository: &RepositoryFolder,
    args: &GitArguments,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let RevisionNames { revisions, files } = RevisionNames::split(repository, &args.names)?;
    if let Some(what) = repository.revision_diff(&revisions, args.staged)? {
        if args.hunks {
            return Err(CliError::usage("--hunks lists what can be staged or unstaged, so name no commit"));
        }
        let found = repository.compare_versions(&what, &files, json)?;
        let files = git_hunks::hunks_json(&found.files);
        let value = json!({"diff": found.text, "complete": found.is_complete, "files": files});
        return print_text(json, out, &found.text, &value);
    }
    files.iter().try_for_each(|file| repository.is_known_folder(file).map(drop))?;
    let (text, whole) =
        if args.staged { repository.staged_diff_paths(&files)? } else { repository.diff_paths(&files)? };
    if !json && !args.hunks {
        return print_text(json, out, &text, &Value::Null);
    }
    let mut hunks = Vec::new();
    if files.is_empty() {
        hunks = git_hunks::list_hunks(repository, None, args.staged)?;
    }
    for file in &files {
        hunks.extend(git_hunks::list_hunks(repository, Some(file), args.staged)?);
    }
    let value = json!({"diff": text, "complete": whole, "files": git_hunks::hunks_json(&hunks)});
    print_text(json, out, &git_hunks::hunks_text(&hunks), &value)
}

/// Prints the last commits, or those of revisions: all of them, or those that changed a file.
pub(super) fn print_log(
    repository: &RepositoryFolder,
    args: &GitArguments,
    json: bool,
    (out, errors): (&mut dyn Write, &mut dyn Write),
) -> Result<u8, CliError> {
    if !args.graph && args.all {
        return Err(CliError::usage("--all goes with commit, and with log --graph"));
    }
    let limit = parse::number_option("limit", args.limit.as_deref())?
        .map_or(DEFAULT_LOG_COMMITS, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let RevisionNames { revisions, files } = RevisionNames::split(repository, &args.names)?;
    let range = repository.commit_range(&revisions)?;
    if args.graph {
        if !files.is_empty() {
            return Err(CliError::usage("log takes a file only without --graph"));
        }
        if args.all && !revisions.is_empty() {
            return Err(CliError::usage("--all lists the commits of all branches, so name no commit"));
        }
        let (rows, is_complete) = match args.all {
            true => repository.commit_graph(true, limit, &mut |_| true)?,
            false => repository.range_graph(&range, limit, &mut |_| true)?,
        };
        if !is_complete && rows.len() < limit.min(vcs::MAX_GRAPH_COMMITS) {
            writeln!(errors, "{CUT_LOG}")?;
        }
        let text = vcs::graph_text(&rows, &|row| commit_line(&row.commit));
        return print_text(json, out, &text, &json!(rows));
    }
    let commits = match files.as_slice() {
        [] => {
            let (found, is_complete) = repository.log_range(&range, limit, LOG_SEARCH_TIMEOUT)?;
            if !is_complete {
                writeln!(errors, "{CUT_LOG}")?;
            }
            found
        }
        [path] => {
            let known = repository.is_known_folder(path);
            if matches!(known, Ok(true)) {
                return Err(CliError::usage(format!("log takes a file, and this is a folder: {path}")));
            }
            let (found, is_complete) = repository.file_commits(path, &range, limit, LOG_SEARCH_TIMEOUT)?;
            if !is_complete {
                writeln!(errors, "{CUT_LOG}")?;
            } else if found.is_empty() && revisions.is_empty() {
                known?;
            }
            found
        }
        [_, surplus, ..] => {
            return Err(CliError::usage(format!("`tracebook git log` takes one file, so not “{surplus}”")));
        }
    };
    let text: String = commits.iter().map(|commit| commit_line(commit) + "\n").collect();
    print_text(json, out, &text, &json!(commits))
}
