//! `cmd_git`: Git for the current folder or a volume. Reads run in process and start no program; the rest is done by
//! the user's own `git`.

use super::{
    CliError, CommandContext, EXIT_DONE, git_conflicts, git_hunks, git_merge_driver, git_outputs, git_paths,
    git_revisions, github_folder, parse, resolve,
};
use clap::Args;
use git_program::{GitCaller, GitOperation, GitProgramError, HalfDoneOperation, RepositoryAddress};
use host::source_control::configured_pull;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use text::untrusted_text::{escape_block, escape_line};
use vcs::{RepositoryFolder, VcsError};

/// Number of commits in a log by default.
pub(super) const DEFAULT_LOG_COMMITS: usize = 20;
/// Subcommands that change files of the folder or its history.
const CHANGING_VERBS: [&str; 12] = [
    "tag",
    "add",
    "restore",
    "resolve",
    "commit",
    "pull",
    "switch",
    "merge",
    "merge-driver",
    "rebase",
    "stash",
    "branch",
];

impl From<VcsError> for CliError {
    fn from(error: VcsError) -> Self {
        CliError::usage(error)
    }
}

impl From<GitProgramError> for CliError {
    fn from(error: GitProgramError) -> Self {
        match error {
            GitProgramError::Conflict { is_undone, .. } => {
                let advice = match is_undone {
                    true => "To choose between both sides, do it again with --keep-conflicts.",
                    false => "`tracebook git conflicts` lists them.",
                };
                CliError { code: super::EXIT_FAILED, why: format!("{error} {advice}") }
            }
            GitProgramError::StashedConflict { .. }
            | GitProgramError::Unmerged
            | GitProgramError::NotMerged
            | GitProgramError::Rejected
            | GitProgramError::NothingToCommit => CliError { code: super::EXIT_FAILED, why: error.to_string() },
            _ => CliError::usage(error), // tidy: open because every other error has one exit code.
        }
    }
}

/// `git`.
#[derive(Args, Clone, Debug)]
pub(super) struct GitArguments {
    #[arg(id = "VERB")]
    pub(super) verb: String,
    #[arg(id = "NAME", num_args = 0..)]
    pub(super) names: Vec<String>,
    #[arg(long)]
    pub(super) volume: Option<String>,
    #[arg(long)]
    pub(super) message: Option<String>,
    #[arg(long)]
    pub(super) limit: Option<String>,
    #[arg(long)]
    pub(super) depth: Option<String>,
    #[arg(id = "api", long = "api")]
    pub(super) is_over_api: bool,
    #[arg(long)]
    pub(super) staged: bool,
    #[arg(long)]
    pub(super) hunks: bool,
    #[arg(long)]
    pub(super) hunk: Option<String>,
    #[arg(long)]
    pub(super) from: Option<String>,
    #[arg(id = "ours", long = "ours")]
    pub(super) is_ours: bool,
    #[arg(id = "theirs", long = "theirs")]
    pub(super) is_theirs: bool,
    #[arg(id = "both", long = "both")]
    pub(super) is_both: bool,
    #[arg(long)]
    pub(super) region: Option<String>,
    #[arg(long)]
    pub(super) seen: Option<String>,
    #[arg(id = "keep-conflicts", long = "keep-conflicts")]
    pub(super) keep_conflicts: bool,
    #[arg(long)]
    pub(super) all: bool,
    #[arg(long)]
    pub(super) graph: bool,
    #[arg(long)]
    pub(super) amend: bool,
    #[arg(long)]
    pub(super) signoff: bool,
    #[arg(long)]
    pub(super) push: bool,
    #[arg(id = "with-outputs", long = "with-outputs")]
    pub(super) with_outputs: bool,
    #[arg(long)]
    pub(super) rebase: bool,
    #[arg(long)]
    pub(super) create: bool,
    #[arg(long)]
    pub(super) delete: bool,
    #[arg(id = "continue", long = "continue")]
    pub(super) is_continued: bool,
    #[arg(id = "abort", long = "abort")]
    pub(super) is_aborted: bool,
    #[arg(long)]
    pub(super) install: Option<String>,
    #[arg(long)]
    pub(super) yes: bool,
}

/// Output and errors, and whether they're this process's own.
pub(super) type GitStreams<'a> = (&'a mut dyn Write, &'a mut dyn Write, bool);

/// Runs `git` for a volume of the workspace.
pub(super) fn cmd_git(scene: &mut CommandContext<'_>, args: &GitArguments) -> Result<u8, CliError> {
    let name = args.volume.as_deref().or(args.install.as_deref());
    refuse_outputs(args)?;
    let volume = match args.with_outputs && args.volume.is_none() {
        true => Some(git_outputs::volume_around(scene)?),
        false => resolve::resolve_volume(scene, name)?,
    };
    let Some(volume) = volume else { return Err(CliError::usage("there is no volume yet; `tracebook open` adds one")) };
    let (root, volume_name, locked) = scene.handle.read(move |session| {
        let known = session.volume(volume);
        let name = known.map_or_else(String::new, |volume| volume.name.clone());
        (known.and_then(|volume| volume.root.clone()), name, session.read_only_reason(volume))
    })?;
    let root = root.ok_or_else(|| CliError::usage("the volume has no folder on this device"))?;
    let clones_inside = args.verb == "clone" && clone_target(args, &root)?.starts_with(&root);
    if let Some(why) = locked.filter(|_| clones_inside || changes_files(args)) {
        return Err(CliError::usage(why));
    }
    if args.install.is_some() {
        return git_merge_driver::install(&root, args, scene.json, scene.out);
    }
    let workspace = scene.handle.workspace_folder().to_owned();
    let here = if args.volume.is_some() || !args.with_outputs { root.as_path() } else { scene.folder };
    let known = git_paths::GitVolume { name: volume_name, root: root.clone(), kind: None };
    let place = git_paths::find_files(|| vec![known], here, args)?;
    let (folder, mut args) = (place.folder.clone(), place.args.clone());
    if !args.with_outputs {
        let streams: GitStreams<'_> = (&mut *scene.out, &mut *scene.errors, scene.own);
        let done = run_in_folder((&folder, &workspace), &args, scene.json, streams);
        let code = done.map_err(|error| place.explain(error))?;
        record_heads(&workspace, &folder, &args);
        return Ok(code);
    }
    let changed = git_outputs::write_outputs(scene, (volume, root.as_path()), &folder, &args)?;
    if !args.names.is_empty() {
        args.names.extend(changed);
    } else if args.verb == "commit" && !changed.is_empty() && commits_staged(&folder, &args)? {
        git_program::run(&folder, &GitOperation::Add { files: changed }, GitCaller::User, &mut |_| {}, &|| false)?;
    }
    let streams: GitStreams<'_> = (&mut *scene.out, &mut *scene.errors, scene.own);
    let done = run_in_folder((&folder, &workspace), &args, scene.json, streams);
    let code = done.map_err(|error| place.explain(error))?;
    record_heads(&workspace, &folder, &args);
    Ok(code)
}

/// Records which version of each note a commit has that was just made.
pub(super) fn record_heads(workspace: &Path, folder: &Path, args: &GitArguments) {
    if args.verb == "commit" {
        git_program::record_commit_heads(workspace, folder);
    }
}

/// Refuses outputs where nothing is staged or committed as a whole.
fn refuse_outputs(args: &GitArguments) -> Result<(), CliError> {
    let takes_outputs = matches!(args.verb.as_str(), "add" | "commit") && args.hunk.is_none();
    match args.with_outputs && !takes_outputs {
        true => Err(CliError::usage("--with-outputs goes with add and commit of whole files")),
        false => Ok(()),
    }
}

/// Returns whether a commit that names no files takes what is staged or known to Git, rather than all changes.
fn commits_staged(folder: &Path, args: &GitArguments) -> Result<bool, CliError> {
    let is_staged = |line: &String| !line.starts_with([' ', '?']);
    Ok(args.all || args.amend || RepositoryFolder::open(folder)?.status()?.0.iter().any(is_staged))
}

/// Returns whether a subcommand changes files or history, and doesn't only list.
pub(super) fn changes_files(args: &GitArguments) -> bool {
    let lists = match args.verb.as_str() {
        "branch" => args.names.is_empty(),
        "tag" => lists_tags(args),
        "stash" => args.names.first().is_some_and(|word| word == "list"),
        _ => false,
    };
    CHANGING_VERBS.contains(&args.verb.as_str()) && !lists
}

fn lists_tags(args: &GitArguments) -> bool {
    !args.delete && matches!(args.names.as_slice(), [] | [_]) && args.names.first().is_none_or(|word| word == "list")
}

/// Returns the folder that `clone` has made.
pub(super) fn cloned_folder(args: &GitArguments, here: &Path) -> Option<String> {
    (args.verb == "clone")
        .then(|| clone_target(args, here))
        .and_then(Result::ok)
        .map(|folder| folder.display().to_string())
}

/// Returns the folder that `clone` makes: the named one, or one called as the repository.
pub(super) fn clone_target(args: &GitArguments, here: &Path) -> Result<PathBuf, CliError> {
    let address = parse::needed(args.names.first().map(String::as_str), "the address of the repository")?;
    let named = args.names.get(1).map(String::as_str).filter(|name| !name.is_empty());
    let folder = named.or_else(|| git_program::repository_folder_name(address));
    let folder = folder.ok_or_else(|| CliError::usage("name the new folder, too"))?;
    Ok(host::fs::copy::absolute_path(here, folder))
}

/// Runs `git` in a folder that this workspace may have as a volume.
pub(super) fn run_in_folder(
    (folder, workspace): (&Path, &Path),
    args: &GitArguments,
    json: bool,
    (out, errors, own): GitStreams<'_>,
) -> Result<u8, CliError> {
    let first = args.names.first().map(String::as_str);
    let open = || RepositoryFolder::open(folder);
    if args.install.is_some() || args.yes {
        return Err(CliError::usage("--install and --yes go with merge-driver"));
    }
    if args.is_over_api && args.verb != "clone" {
        return Err(CliError::usage("--api goes with clone"));
    }
    refuse_surplus_names(args)?;
    refuse_surplus_options(args)?;
    let shows_progress = own && !json && std::io::stderr().is_terminal();
    if args.is_over_api {
        return github_folder::clone(&clone_target(args, folder)?, args, json, shows_progress, out);
    }
    if !matches!(args.verb.as_str(), "clone" | "merge-driver")
        && let Some((root, part)) = github::find_folder(folder)
    {
        if args.verb == "log" && first.is_some() {
            return Err(CliError::usage("without Git, log takes no file and lists all commits"));
        }
        return github_folder::run(&root, &part, args, json, shows_progress, out);
    }
    if let Some(chosen) = &args.hunk {
        open()?;
        return git_hunks::use_hunks(folder, args, chosen, json, out);
    }
    match args.verb.as_str() {
        "restore" => {
            open()?;
            return git_hunks::restore_files(folder, args, json, out);
        }
        "merge-driver" => return git_merge_driver::merge(folder, args, json, out),
        "conflicts" => return git_conflicts::list_conflicts(&open()?, args, json, out),
        "resolve" => {
            open()?;
            return git_conflicts::resolve_conflicts(folder, args, json, out);
        }
        "status" => return print_status(&open()?, json, out),
        "diff" => return git_revisions::print_diff(&open()?, args, json, out),
        "log" => return git_revisions::print_log(&open()?, args, json, (out, errors)),
        "show" => return print_commit(&open()?, first.unwrap_or("HEAD"), json, out),
        "blame" => {
            let file = first.ok_or_else(|| CliError::usage("name the file: tracebook git blame FILE"))?;
            let lines = open()?.blame(file)?;
            let line = |line: &vcs::BlameLine| {
                let id = line.id.as_deref().map_or("--------", short);
                let day = line.author_time.map_or_else(|| "----------".to_owned(), day);
                format!("{id} {day} {:<16.16} {:>5} {}\n", line.author, line.line, line.text)
            };
            let text: String = lines.iter().map(line).collect();
            return print_text(json, out, &text, &json!(lines));
        }
        "branch" if first.is_none() => {
            let branches = open()?.branches()?;
            let line = |branch: &vcs::BranchInfo| {
                let mark = if branch.current { "*" } else { " " };
                let follows = branch.upstream.as_ref().map(|name| format!(" [{name}]")).unwrap_or_default();
                format!("{mark} {} {}{follows} {}\n", branch.name, short(&branch.id), branch.summary)
            };
            let text: String = branches.iter().map(line).collect();
            return print_text(json, out, &text, &json!(branches));
        }
        "tag" if lists_tags(args) => {
            let tags = open()?.tags()?;
            let text: String =
                tags.iter().map(|tag| format!("{} {} {}\n", tag.name, short(&tag.id), tag.summary)).collect();
            return print_text(json, out, &text, &json!(tags));
        }
        "stash" if first == Some("list") => {
            let stashes = open()?.stashes()?;
            let text: String = stashes.iter().map(|stash| format!("{} {}\n", stash.number, stash.message)).collect();
            return print_text(json, out, &text, &json!(stashes));
        }
        _ => {}
    }
    let mut progress = |line: &str| {
        if shows_progress {
            // Progress that can't be shown isn't worth stopping for.
            let _ = write!(errors, "\r{:<78.78}", escape_line(line));
        }
    };
    let mut said = String::new();
    for operation in operations(folder, args)? {
        let place = (folder, workspace);
        let printed = match git_program::run_in_workspace(place, &operation, GitCaller::User, &mut progress, &|| false)
        {
            Err(GitProgramError::NotInstalled) if github_folder::can_clone(&operation, first) => {
                return github_folder::clone(&clone_target(args, folder)?, args, json, shows_progress, out);
            }
            printed => printed?,
        };
        said.push_str(&printed);
        if !printed.is_empty() {
            said.push('\n');
        }
    }
    if args.verb == "commit" && args.push {
        said += &push_commit(folder, &mut progress)?;
    }
    if shows_progress {
        write!(errors, "\r{:<78}\r", "")?;
    }
    let place = if args.verb == "clone" { clone_target(args, folder)? } else { folder.to_owned() };
    let repository = RepositoryFolder::open(&place)?;
    let state = repository.branch_state()?;
    if json {
        let answer = json!({"done": args.verb, "branch": state, "folder": place, "output": said.trim()});
        writeln!(out, "{answer}")?;
        return Ok(EXIT_DONE);
    }
    if matches!(args.verb.as_str(), "commit" | "merge" | "rebase" | "pull")
        && let Some(commit) = repository.log(1)?.first()
    {
        writeln!(out, "{}", escape_line(&commit_line(commit)))?;
    } else if !said.trim().is_empty() && args.verb != "clone" {
        writeln!(out, "{}", escape_block(said.trim()))?;
    }
    writeln!(out, "{}", escape_line(&branch_line(&state)))?;
    Ok(EXIT_DONE)
}

/// Refuses names that a subcommand would ignore.
fn refuse_surplus_names(args: &GitArguments) -> Result<(), CliError> {
    let verb = args.verb.as_str();
    let most = match (verb, args.names.first().map(String::as_str)) {
        ("status" | "fetch" | "pull" | "push", _) => 0,
        ("show" | "blame" | "switch" | "merge" | "rebase", _) => 1,
        ("branch" | "tag", _) if args.delete => 1,
        ("stash", Some("list" | "push")) => 1,
        ("branch" | "tag" | "stash" | "clone", _) => 2,
        _ => return Ok(()), // the others take any number of names, or count them
    };
    let Some(surplus) = args.names.get(most) else { return Ok(()) };
    let takes = match most {
        0 => "no name".to_owned(),
        1 => "one name".to_owned(),
        _ => format!("{most} names"),
    };
    Err(CliError::usage(format!("`tracebook git {verb}` takes {takes} here, so not “{surplus}”")))
}

/// Refuses options that a subcommand would leave unread: `stash --staged` would put aside more than was meant.
fn refuse_surplus_options(args: &GitArguments) -> Result<(), CliError> {
    let given: [(&str, bool, &str); 17] = [
        ("--message", args.message.is_some(), "commit, stash and tag"),
        ("--limit", args.limit.is_some(), "log"),
        ("--depth", args.depth.is_some(), "clone"),
        ("--staged", args.staged, "diff and restore"),
        ("--hunks", args.hunks, "diff"),
        ("--from", args.from.is_some(), "restore"),
        ("--ours", args.is_ours, "resolve"),
        ("--theirs", args.is_theirs, "resolve"),
        ("--both", args.is_both, "resolve"),
        ("--region", args.region.is_some(), "resolve"),
        ("--all", args.all, "add, commit and log"),
        ("--graph", args.graph, "log"),
        ("--amend", args.amend, "commit"),
        ("--signoff", args.signoff, "commit"),
        ("--push", args.push, "commit"),
        ("--rebase", args.rebase, "pull"),
        ("--create", args.create, "switch"),
    ];
    let is_taken = |verbs: &str| verbs.split([' ', ',']).any(|verb| verb == args.verb);
    match given.iter().find(|(_, is_given, verbs)| *is_given && !is_taken(verbs)) {
        Some((option, _, verbs)) => Err(CliError::usage(format!("{option} goes with {verbs}"))),
        None => Ok(()),
    }
}

/// Returns what the user's `git` has to do, in order.
fn operations(folder: &Path, args: &GitArguments) -> Result<Vec<GitOperation>, CliError> {
    let first = args.names.first().map(String::as_str);
    let named = |what: &str| {
        first
            .map(ToOwned::to_owned)
            .ok_or_else(|| CliError::usage(format!("name {what}: tracebook git {} NAME", args.verb)))
    };
    let message = args.message.clone().unwrap_or_default();
    let start = args.names.get(1).cloned();
    let ends = args.is_continued || args.is_aborted;
    if ends && !matches!(args.verb.as_str(), "merge" | "rebase") || args.is_continued && args.is_aborted {
        return Err(CliError::usage("--continue or --abort goes with merge and rebase"));
    }
    // The newest stash has the number 0.
    let stash = || match args.names.get(1) {
        None => Ok(0),
        Some(number) => number
            .parse::<usize>()
            .map_err(|_| CliError::usage(format!("a stash has a number, as in `git stash list`, not “{number}”"))),
    };
    let open = || RepositoryFolder::open(folder);
    if args.keep_conflicts && (ends || !matches!(args.verb.as_str(), "merge" | "rebase" | "pull")) {
        return Err(CliError::usage("--keep-conflicts goes with merge, rebase and pull"));
    }
    let keep = |operation| match args.keep_conflicts {
        true => GitOperation::KeepConflicts(Box::new(operation)),
        false => operation,
    };
    // Staging a file in conflict would make its markers text.
    let refuse_unresolved = |files: &[String]| open()?.refuse_unresolved(files);
    let half_done = |what: HalfDoneOperation| -> Result<Vec<GitOperation>, CliError> {
        let is_under_way = open()?.branch_state()?.under_way == Some(what.word());
        match (is_under_way, args.is_continued, first) {
            (_, _, Some(_)) => Err(CliError::usage("--continue and --abort take no name")),
            (false, _, _) => Err(CliError::usage(format!("no {} is under way in this repository", what.word()))),
            (true, true, _) => Ok(vec![GitOperation::Continue(what)]),
            (true, false, _) => Ok(vec![GitOperation::Abort(what)]),
        }
    };
    // A folder outside of a repository is reported in the same words for all subcommands.
    if args.verb != "clone" {
        open()?;
    }
    if matches!(args.verb.as_str(), "fetch" | "pull") {
        open()?.refuse_without_remote()?;
    }
    let needs_commit = match args.verb.as_str() {
        "tag" | "branch" => !args.delete && start.is_none(),
        "stash" => matches!(first, None | Some("push")),
        _ => false, // tidy: open because the others say themselves what is missing
    };
    if needs_commit && open()?.branch_state()?.head.is_none() {
        return Err(CliError::usage("there is no commit yet; commit something first"));
    }
    Ok(match args.verb.as_str() {
        "add" => {
            refuse_unresolved(&args.names)?;
            vec![GitOperation::Add { files: args.names.clone() }]
        }
        "commit" => {
            if message.is_empty() && !args.amend {
                return Err(CliError::usage("a commit needs a message: -m \"What has changed\""));
            }
            let files = args.names.clone();
            let repository = open()?;
            // Git's own --all takes changes outside of the folder, too.
            let is_all_of_folder = args.all && files.is_empty() && repository.is_committed_apart();
            if files.is_empty() && !is_all_of_folder {
                repository.refuse_staged_outside()?;
            }
            let commit = GitOperation::Commit {
                message,
                files: if is_all_of_folder { vec![".".to_owned()] } else { files.clone() },
                all: args.all && !is_all_of_folder,
                amend: args.amend,
                signoff: args.signoff,
            };
            let is_staged = |line: &String| !line.starts_with([' ', '?']);
            let stages = match (files.is_empty(), args.all || args.amend) {
                (false, _) => Some(files),
                (true, false) if !repository.status()?.0.iter().any(is_staged) => Some(Vec::new()),
                (true, _) => None,
            };
            if let Some(files) = &stages {
                refuse_unresolved(files)?;
            } else if args.all {
                refuse_unresolved(&[])?;
            }
            stages.map(|files| GitOperation::Add { files }).into_iter().chain([commit]).collect()
        }
        "fetch" => vec![GitOperation::Fetch],
        "pull" if args.rebase => vec![keep(GitOperation::Pull { rebase: true })],
        "pull" => vec![keep(configured_pull(&open()?)?)],
        "push" => vec![GitOperation::Push { first: open()?.first_push_target()? }],
        "branch" if args.delete => vec![GitOperation::DeleteBranch { name: named("the branch")? }],
        "branch" => vec![GitOperation::CreateBranch { name: named("the branch")?, at: start }],
        "switch" => vec![GitOperation::Switch { branch: named("the branch")?, create: args.create }],
        "tag" if args.delete => vec![GitOperation::DeleteTag { name: named("the tag")? }],
        "tag" => vec![GitOperation::CreateTag { name: named("the tag")?, message, at: start }],
        "merge" if ends => half_done(HalfDoneOperation::Merge)?,
        "rebase" if ends => half_done(HalfDoneOperation::Rebase)?,
        "rebase" | "merge" => {
            let branch = named("the branch")?;
            open()?.refuse_merged_snapshot(&branch)?;
            vec![keep(match args.verb.as_str() {
                "merge" => GitOperation::Merge { branch },
                _ => GitOperation::Rebase { onto: branch },
            })]
        }
        "stash" => vec![match first {
            None | Some("push") => GitOperation::StashPush { message, is_within_folder: open()?.is_below_top() },
            Some(verb @ ("pop" | "apply")) => GitOperation::StashApply { number: stash()?, pop: verb == "pop" },
            Some("drop") => GitOperation::StashDrop { number: stash()? },
            Some(other) => {
                return Err(CliError::usage(format!("stash knows push, list, apply, pop and drop, not “{other}”")));
            }
        }],
        "clone" => {
            let address = parse::needed(first, "the address of the repository")?.to_owned();
            let from = RepositoryAddress::read(&address, folder).map_err(CliError::usage)?;
            let depth = match parse::number_option("depth", args.depth.as_deref())? {
                Some(0) => return Err(CliError::usage("--depth is a number of commits, so at least 1")),
                depth => depth.map(|depth| u32::try_from(depth).unwrap_or(u32::MAX)),
            };
            vec![GitOperation::Clone { from, folder: clone_target(args, folder)?, depth, branch: None }]
        }
        other => {
            return Err(CliError::usage(format!(
                "`tracebook git` knows status, diff, log, show, blame, add, restore, conflicts, resolve, commit, \
                 fetch, pull, push, branch, switch, merge, merge-driver, rebase, tag, stash and clone, not “{other}”; \
                 your own git does the rest"
            )));
        }
    })
}

/// Prints a commit with its message, indented as Git does, and its diff.
fn print_commit(repository: &RepositoryFolder, name: &str, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let (commit, message, diff, whole) = repository.show_message(name)?;
    let is_empty = |line: &&str| line.trim().is_empty();
    // The line above has all of the first paragraph.
    let body: Vec<&str> = message.lines().skip_while(is_empty).skip_while(|line| !is_empty(line)).collect();
    let body = body.join("\n");
    let body = body.trim_matches(['\r', '\n']);
    let indented: String = body.lines().map(|line| format!("    {line}").trim_end().to_owned() + "\n").collect();
    let gap = if body.is_empty() { "" } else { "\n" };
    let text = format!("{}\n{gap}{indented}\n{diff}", commit_line(&commit));
    let value = json!({"commit": commit, "message": message, "diff": diff, "complete": whole});
    print_text(json, out, &text, &value)
}

fn print_status(repository: &RepositoryFolder, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    let state = repository.branch_state()?;
    let (files, whole) = repository.status_entries()?;
    if json {
        writeln!(out, "{}", json!({"branch": state, "files": files, "complete": whole}))?;
        return Ok(EXIT_DONE);
    }
    writeln!(out, "{}", escape_line(&branch_line(&state)))?;
    for file in &files {
        let old = file.old_path.as_ref().map(|old| format!("{old} -> ")).unwrap_or_default();
        let note = if file.is_inexact { "  (its name isn't UTF-8 text: only Git itself can name it)" } else { "" };
        writeln!(out, "{}", escape_line(&format!("{} {old}{}{note}", file.status, file.path)))?;
    }
    match (files.is_empty(), whole) {
        (true, _) if state.head.is_none() => writeln!(out, "There's nothing to commit.")?,
        (true, _) => writeln!(out, "Nothing has changed since the last commit.")?,
        (false, true) => {}
        (false, false) => writeln!(out, "… more than {} files …", vcs::MAX_STATUS_FILES)?,
    }
    Ok(EXIT_DONE)
}

pub(super) fn print_text(json: bool, out: &mut dyn Write, text: &str, value: &Value) -> Result<u8, CliError> {
    if json {
        writeln!(out, "{value}")?;
    } else {
        write!(out, "{}", escape_block(text))?;
    }
    Ok(EXIT_DONE)
}

/// Describes the branch in a line.
fn branch_line(state: &vcs::BranchState) -> String {
    let branch = match (&state.branch, &state.head) {
        (Some(branch), Some(_)) => format!("On {branch}"),
        (Some(branch), None) => format!("On {branch}, no commit yet"),
        (None, head) => format!("No branch, at {}", head.as_deref().map_or("no commit", short)),
    };
    let remote = match &state.upstream {
        None => String::new(),
        Some(upstream) if state.ahead + state.behind == 0 => format!(", even with {upstream}"),
        Some(upstream) => format!(", {} ahead of and {} behind {upstream}", state.ahead, state.behind),
    };
    let under_way = state.under_way.map(|what| format!("; a {what} is under way")).unwrap_or_default();
    format!("{branch}{remote}{under_way}")
}

/// Pushes a commit that was just made. An error says that the commit stays.
fn push_commit(folder: &Path, progress: &mut dyn FnMut(&str)) -> Result<String, CliError> {
    let repository = RepositoryFolder::open(folder)?;
    let made = repository.log(1)?.first().map(|commit| short(&commit.id).to_owned()).unwrap_or_default();
    let first = repository.first_push_target().map_err(CliError::from);
    let pushed = first.and_then(|first| {
        let push = GitOperation::Push { first };
        Ok(git_program::run(folder, &push, GitCaller::User, progress, &|| false)?)
    });
    pushed
        .map_err(|CliError { code, why }| CliError { code, why: format!("Committed as {made}, but not pushed. {why}") })
}

pub(super) fn commit_line(commit: &vcs::Commit) -> String {
    format!("{} {} {}: {}", short(&commit.id), day(commit.author_time), commit.author, commit.summary)
}

/// Returns the first digits of a hash, as Git shows them.
pub(super) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

/// Formats a time in seconds since 1970 as a day in UTC.
fn day(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds)
        .map_or_else(|_| "----------".to_owned(), |time| time.strftime("%Y-%m-%d").to_string())
}
