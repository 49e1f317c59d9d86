//! `git` in a folder that came over GitHub's API, without Git.

use crate::git_commands::{DEFAULT_LOG_COMMITS, GitArguments, commit_line, print_text, short};
use crate::{CliError, EXIT_DONE, EXIT_FAILED, parse};
use git_program::GitOperation;
use github::{ApiClient, ApiControl, FolderRecord, FolderState, GitHubError, LocalChange};
use host::source_control::github_api::{clone_over_api, github_client, is_github_address};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use text::untrusted_text::{escape_block, escape_line};
use vcs::{BranchState, MAX_STATUS_FILES};

impl From<GitHubError> for CliError {
    fn from(error: GitHubError) -> Self {
        match error {
            GitHubError::Conflict(_) => {
                let why = format!("{error} On the command line: `tracebook git pull --keep-conflicts`.");
                CliError { code: EXIT_FAILED, why }
            }
            GitHubError::BranchMoved(_)
            | GitHubError::NothingChanged
            | GitHubError::UnfinishedPull
            | GitHubError::ChangedMeanwhile(_) => CliError { code: EXIT_FAILED, why: error.to_string() },
            _ => CliError::usage(error), // tidy: open because every other error has one exit code.
        }
    }
}

/// Returns whether an operation that needs Git is a clone that can do without.
pub(super) fn can_clone(operation: &GitOperation, given: Option<&str>) -> bool {
    match (operation, given) {
        (GitOperation::Clone { from, .. }, Some(given)) => is_github_address(given, from),
        _ => false, // tidy: open because nothing else is a clone.
    }
}

/// Prints progress over the last line of the terminal, if it's shown.
struct TerminalProgress(bool);

impl TerminalProgress {
    fn show(&self, line: &str) {
        if self.0 {
            // Progress that can't be shown isn't worth stopping for.
            let _ = write!(std::io::stderr(), "\r{:<78.78}", escape_line(line));
        }
    }
}

impl Drop for TerminalProgress {
    fn drop(&mut self) {
        if self.0 {
            let _ = write!(std::io::stderr(), "\r{:<78}\r", ""); // as above
        }
    }
}

/// Runs an operation with progress. Ctrl+C ends the program, which loses nothing.
fn with_progress<T>(
    shows_progress: bool,
    work: impl FnOnce(&ApiControl<'_>) -> Result<T, GitHubError>,
) -> Result<T, GitHubError> {
    let progress = TerminalProgress(shows_progress);
    work(&ApiControl::new(&|line| progress.show(line), &|| false))
}

/// Runs `git clone` without Git.
pub(super) fn clone(
    target: &Path,
    args: &GitArguments,
    json: bool,
    shows_progress: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let given = parse::needed(args.names.first().map(String::as_str), "the address of the repository")?;
    let cloned = with_progress(shows_progress, |control| clone_over_api(given, target, control))?;
    if json {
        let (branch, head, upstream) = (Some(cloned.branch), Some(cloned.commit), Some(given.to_owned()));
        let branch = BranchState { branch, head, upstream, ..BranchState::default() };
        let answer = json!({"done": "clone", "branch": branch, "folder": target, "output": cloned.remarks.join("\n")});
        writeln!(out, "{answer}")?;
        return Ok(EXIT_DONE);
    }
    for remark in &cloned.remarks {
        writeln!(out, "{}", escape_line(remark))?;
    }
    let files = if cloned.files == 1 { "1 file".to_owned() } else { format!("{} files", cloned.files) };
    writeln!(out, "Downloaded {files} without Git: {} at {}", escape_line(&cloned.branch), short(&cloned.commit))?;
    Ok(EXIT_DONE)
}

/// Runs another subcommand in a folder from GitHub, of which `part` is where the user is.
pub(super) fn run(
    root: &Path,
    part: &str,
    args: &GitArguments,
    json: bool,
    shows_progress: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    refuse_other(args)?;
    let client = github_client()?;
    let mut state = FolderState::open(root, &client)?;
    match args.verb.as_str() {
        "status" => print_status(&state, json, out),
        "log" => {
            let limit = parse::number_option("limit", args.limit.as_deref())?
                .map_or(DEFAULT_LOG_COMMITS, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
            let list = |control: &ApiControl<'_>| github::list_commits(&state, &client, control, limit);
            let commits = with_progress(shows_progress, list)?;
            state.write_cache(&client);
            let text: String = commits.iter().map(|commit| commit_line(commit) + "\n").collect();
            print_text(json, out, &text, &json!(commits))
        }
        "fetch" => {
            let look = |control: &ApiControl<'_>| github::has_newer_commits(&state, &client, control);
            let is_behind = with_progress(shows_progress, look)?;
            state.write_cache(&client);
            let branch = &state.record.branch;
            let text = match is_behind {
                true => format!("{branch} has newer commits at GitHub; `tracebook git pull` gets them"),
                false => format!("{branch} has no newer commits"),
            };
            finish(&state, args, (json, &text, json!({"is_behind": is_behind})), out)
        }
        "pull" => pull(&mut state, &client, args, json, shows_progress, out),
        _ => {
            let message = args.message.clone().unwrap_or_default();
            if message.is_empty() {
                return Err(CliError::usage("a commit needs a message: -m \"What has changed\""));
            }
            let paths = args.names.iter().map(|name| github::path_in_folder(part, name));
            let paths = paths.collect::<Result<Vec<_>, _>>()?;
            let commit =
                |control: &ApiControl<'_>| github::commit_files(&mut state, &client, control, &message, &paths);
            let made = with_progress(shows_progress, commit)?;
            let text = commit_line(&made.commit);
            finish(&state, args, (json, &text, json!({"files": made.files})), out)
        }
    }
}

/// Refuses what needs Git, with the reason.
fn refuse_other(args: &GitArguments) -> Result<(), CliError> {
    let needs_git = |what: &str| {
        Err(CliError::usage(format!(
            "{what} needs Git, and a clone that Git has made: this folder came from GitHub without it, and knows \
             status, log, fetch, pull and commit --push"
        )))
    };
    match args.verb.as_str() {
        "status" | "log" | "fetch" | "pull" => {}
        "commit" if args.push => {}
        "commit" => {
            return Err(CliError::usage(
                "this folder came from GitHub without Git, so a commit goes to GitHub at once: add --push",
            ));
        }
        "push" => {
            return Err(CliError::usage(
                "this folder came from GitHub without Git: `tracebook git commit -m MESSAGE --push` commits and pushes \
                 in one step",
            ));
        }
        verb => return needs_git(&format!("`git {verb}`")),
    }
    let flags = [
        ("--rebase", args.rebase),
        ("--amend", args.amend),
        ("--signoff", args.signoff),
        ("--graph", args.graph),
        ("--staged", args.staged),
        ("--hunk", args.hunk.is_some()),
    ];
    match flags.iter().find(|(_, is_set)| *is_set) {
        Some((flag, _)) => needs_git(flag),
        None => Ok(()),
    }
}

fn pull(
    state: &mut FolderState,
    client: &ApiClient,
    args: &GitArguments,
    json: bool,
    shows_progress: bool,
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    let pull = |control: &ApiControl<'_>| github::pull(state, client, control, args.keep_conflicts);
    let pulled = with_progress(shows_progress, pull)?;
    let mut lines = vec![match pulled.is_new {
        true => format!("Files written: {}, deleted: {}", pulled.written, pulled.deleted),
        false => "There's nothing new".to_owned(),
    }];
    let named = |files: &[String]| files.join(", ");
    if !pulled.merged.is_empty() {
        lines.push(format!("Merged with your changes: {}", named(&pulled.merged)));
    }
    if !pulled.kept.is_empty() {
        lines.push(format!(
            "In conflict: {}. Your versions stay, and the others are beside them with (GitHub) in their names.",
            named(&pulled.kept)
        ));
    }
    let value = json!({
        "is_new": pulled.is_new,
        "written": pulled.written,
        "deleted": pulled.deleted,
        "merged": pulled.merged,
        "conflicts": pulled.kept,
    });
    finish(state, args, (json, &lines.join("\n"), value), out)
}

/// Prints what was done, and where the branch is.
fn finish(
    state: &FolderState,
    args: &GitArguments,
    (json, text, value): (bool, &str, Value),
    out: &mut dyn Write,
) -> Result<u8, CliError> {
    if json {
        let branch = record_state(state);
        let answer =
            json!({"done": args.verb, "branch": branch, "folder": state.root(), "output": text, "details": value});
        writeln!(out, "{answer}")?;
        return Ok(EXIT_DONE);
    }
    writeln!(out, "{}", escape_block(text))?;
    writeln!(out, "{}", escape_line(&branch_line(&state.record)))?;
    Ok(EXIT_DONE)
}

fn print_status(state: &FolderState, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let changes = github::list_changes(state.root(), &state.record)?;
    let whole = changes.len() <= MAX_STATUS_FILES;
    let shown = &changes[..changes.len().min(MAX_STATUS_FILES)];
    if json {
        let file = |change: &LocalChange| json!({"status": change.kind.letters(), "path": change.path});
        let files: Vec<Value> = shown.iter().map(file).collect();
        writeln!(out, "{}", json!({"branch": record_state(state), "files": files, "complete": whole}))?;
        return Ok(EXIT_DONE);
    }
    writeln!(out, "{}", escape_line(&branch_line(&state.record)))?;
    if state.unfinished_pull().is_some() {
        writeln!(out, "A pull has stopped halfway; `tracebook git pull` finishes it.")?;
    }
    for change in shown {
        writeln!(out, "{} {}", change.kind.letters(), escape_line(&change.path))?;
    }
    match (shown.is_empty(), whole) {
        (true, _) => writeln!(out, "Nothing has changed since the last pull or commit.")?,
        (false, true) => {}
        (false, false) => writeln!(out, "… more than {MAX_STATUS_FILES} files …")?,
    }
    Ok(EXIT_DONE)
}

fn record_state(state: &FolderState) -> BranchState {
    github::branch_state(&state.record, state.unfinished_pull().is_some())
}

fn branch_line(record: &FolderRecord) -> String {
    format!("On {} at {}, from {} without Git", record.branch, short(&record.commit), record.repository_text())
}
