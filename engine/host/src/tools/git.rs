//! Git operations of tools, with results as text. Reads and commits run in process; what needs a remote or a signature,
//! or changes the working tree, runs the user's `git`, without the repository's hooks.

use super::truncate::truncate_output;
use super::{StopSignal, ToolWorkspace};
use crate::fs::confined_dir::ConfinedFolder;
use crate::source_control::github_api::{clone_over_api, github_client, is_github_address};
use agent::config::SandboxPaths;
use agent::tool_job::{GitJob, GitProgramJob, GitStashAction, ToolOutcome, WebAccess};
use agent::web_address::is_listed;
use anyhow::{Context as _, bail};
use git_program::{AgentRepository, GitCaller, GitOperation, GitProgramError, RepositoryAddress};
use github::{AgentOperation, ApiControl};
use std::path::Path;
use vcs::{RepositoryFolder, describe_branch};

/// How files go to GitHub from a folder without Git.
const GITHUB_ADVICE: &str = "These files came from GitHub without Git, so a commit goes there at once: git_commit with \
     push commits and sends it.";
/// What a folder from GitHub can't do.
const NEEDS_GIT: &str = "These files came from GitHub without Git. There are git_status, git_fetch, git_pull, and \
     git_commit with push; the rest needs a clone that Git has made.";

pub(super) fn run(
    place: &ToolWorkspace,
    (root, paths): (&Path, &SandboxPaths),
    what: &GitJob,
    stop: &StopSignal,
) -> anyhow::Result<ToolOutcome> {
    let text = match (github::find_folder(root), what) {
        (Some((top, part)), GitJob::Status) => github::describe_status(&top, &part)?,
        (Some(_), GitJob::Commit { .. }) => bail!("{GITHUB_ADVICE}"),
        (Some(_), GitJob::Log { .. }) => bail!("The commits of this folder are at GitHub; git_fetch lists them."),
        (Some(_), GitJob::Show { .. } | GitJob::Add { .. }) => bail!("{NEEDS_GIT}"),
        (Some(_), GitJob::Diff { .. } | GitJob::Blame { .. } | GitJob::Branch { .. }) => bail!("{NEEDS_GIT}"),
        (None, GitJob::Diff { .. } | GitJob::Show { .. }) => {
            let diff = run_git_job(place, root, what, stop)?;
            RepositoryFolder::open(root)?.without_files(&diff, &|path| paths.is_hidden(path))
        }
        (None, _) => run_git_job(place, root, what, stop)?,
    };
    let (text, whole) = truncate_output(text.as_bytes(), &place.blobs)?;
    Ok(ToolOutcome { success: true, text, whole, ..ToolOutcome::default() })
}

/// Runs an operation with the user's `git`.
pub(super) fn run_program(
    place: &ToolWorkspace,
    root: &Path,
    what: &GitProgramJob,
    web: &WebAccess,
    stop: &StopSignal,
) -> anyhow::Result<ToolOutcome> {
    let run = |folder: &Path, operation: &GitOperation| {
        git_program::run(folder, operation, GitCaller::Agent, &mut |_| {}, &|| stop.is_stopped())
    };
    let over_api = |root: &Path, operation: AgentOperation<'_>| {
        let (top, part) = github::find_folder(root).context("the folder was moved meanwhile")?;
        let client = github_client()?;
        check_hosts([client.address().host()].into_iter(), web)?;
        let is_stopped = || stop.is_stopped();
        let control = ApiControl::new(&|_| {}, &is_stopped);
        anyhow::Ok(github::perform_for_agent(&top, &part, &client, operation, &control)?)
    };
    let is_from_github = github::find_folder(root).is_some();
    let is_canceled = || stop.is_stopped();
    let own = AgentRepository { folder: root, program: &place.program, is_canceled: &is_canceled };
    let text = match what {
        GitProgramJob::Fetch if is_from_github => over_api(root, AgentOperation::Fetch)?,
        // There are no commits here that a rebase would move.
        GitProgramJob::Pull { .. } if is_from_github => over_api(root, AgentOperation::Pull)?,
        GitProgramJob::CommitAndPush { staged: true, .. } if is_from_github => bail!("{NEEDS_GIT}"),
        GitProgramJob::CommitAndPush { message, files, .. } if is_from_github => {
            over_api(root, AgentOperation::Commit { message, files })?
        }
        GitProgramJob::Push if is_from_github => bail!("{GITHUB_ADVICE}"),
        GitProgramJob::Switch { .. } | GitProgramJob::Merge { .. } | GitProgramJob::Stash { .. } if is_from_github => {
            bail!("{NEEDS_GIT}")
        }
        GitProgramJob::Clone { repository, directory, depth } => {
            let from = RepositoryAddress::read(repository, Path::new("/nowhere"))?;
            let Some(host) = from.host() else {
                bail!("agents clone from other devices only, not from a folder here: {}", from.display_text());
            };
            check_hosts([host].into_iter(), web)?;
            let directory = super::files::check_writable_path(directory)?;
            let (folder, name) = ConfinedFolder::open_root(root)?.open_real_parent(&directory, true)?;
            let target = folder.stable_path().join(&name);
            if target.symlink_metadata().is_ok() {
                bail!("a file or folder with that name already exists; choose another: {directory}");
            }
            let operation = GitOperation::Clone { from: from.clone(), folder: target, depth: *depth, branch: None };
            match run(root, &operation) {
                Err(GitProgramError::NotInstalled) if is_github_address(repository, &from) => {
                    check_hosts([github_client()?.address().host()].into_iter(), web)?;
                    let is_stopped = || stop.is_stopped();
                    let control = ApiControl::new(&|_| {}, &is_stopped);
                    clone_over_api(repository, &folder.stable_path().join(&name), &control)?;
                    format!("downloaded the files of {} into {directory}, without Git", from.display_text())
                }
                done => done.map(|_| format!("cloned {} into {directory}", from.display_text()))?,
            }
        }
        GitProgramJob::Fetch => {
            check_remotes(&own, web)?;
            run(root, &GitOperation::Fetch)?;
            describe_branch(&RepositoryFolder::open(root)?.branch_state()?)
        }
        GitProgramJob::Pull { rebase } => {
            check_remotes(&own, web)?;
            let said = run(root, &GitOperation::Pull { rebase: *rebase })?;
            format!("{}\n{said}", describe_branch(&RepositoryFolder::open(root)?.branch_state()?))
        }
        GitProgramJob::Push => push(&own, web, &run)?,
        GitProgramJob::CommitAndPush { message, files, staged } => {
            // Refused before the commit, so that a second try doesn't find it made already.
            check_remotes(&own, web)?;
            RepositoryFolder::open(root)?.refuse_pushed_snapshot()?;
            let committed = commit(place, &own, message, files, *staged)?;
            match push(&own, web, &run) {
                Ok(pushed) => format!("{committed}\n{pushed}"),
                Err(why) => bail!("{committed}\nIt is committed, but not pushed: {why}"),
            }
        }
        GitProgramJob::Switch { branch, create } => {
            own.check_settings()?;
            run(root, &GitOperation::Switch { branch: branch.clone(), create: *create })?;
            describe_branch(&RepositoryFolder::open(root)?.branch_state()?)
        }
        GitProgramJob::Merge { branch } => own.merge(branch)?,
        GitProgramJob::Stash { action: GitStashAction::List } => own.list_stashes()?,
        GitProgramJob::Stash { action: GitStashAction::Push { message } } => own.push_stash(message)?,
        GitProgramJob::Stash { action: GitStashAction::Apply { number, pop } } => own.apply_stash(*number, *pop)?,
    };
    let (text, whole) = truncate_output(text.trim().as_bytes(), &place.blobs)?;
    Ok(ToolOutcome { success: true, text, whole, ..ToolOutcome::default() })
}

/// Commits the named files, all changed ones, or exactly what is staged.
fn commit(
    place: &ToolWorkspace,
    own: &AgentRepository<'_>,
    message: &str,
    files: &[String],
    staged: bool,
) -> anyhow::Result<String> {
    let committed = match (staged, files) {
        (false, _) => own.commit(message, files)?,
        (true, []) => own.commit_staged(message)?,
        (true, [_, ..]) => bail!("With staged, exactly what is staged is committed. Name no files, or leave it out."),
    };
    git_program::record_commit_heads(&place.workspace, own.folder);
    Ok(committed)
}

/// Pushes the current branch.
fn push(
    own: &AgentRepository<'_>,
    web: &WebAccess,
    run: &dyn Fn(&Path, &GitOperation) -> Result<String, GitProgramError>,
) -> anyhow::Result<String> {
    check_remotes(own, web)?;
    let repository = RepositoryFolder::open(own.folder)?;
    run(own.folder, &GitOperation::Push { first: repository.first_push_target()? })?;
    Ok(format!("pushed; {}", describe_branch(&RepositoryFolder::open(own.folder)?.branch_state()?)))
}

/// Refuses a repository whose remotes the configuration doesn't allow, or whose settings run programs.
fn check_remotes(own: &AgentRepository<'_>, web: &WebAccess) -> anyhow::Result<()> {
    let urls = own.check_settings()?.remote_urls()?;
    check_hosts(urls.iter().filter_map(|url| git_program::host_of(url)), web)
}

fn check_hosts(hosts: impl Iterator<Item = String>, web: &WebAccess) -> anyhow::Result<()> {
    for host in hosts.filter(|_| web.restricted) {
        if !is_listed(&host, &web.hosts) {
            bail!("{host} is not on the list of hosts (security.allowed_hosts in config.yaml)");
        }
    }
    Ok(())
}

fn run_git_job(place: &ToolWorkspace, root: &Path, what: &GitJob, stop: &StopSignal) -> anyhow::Result<String> {
    let part = RepositoryFolder::open_own(root)?;
    let is_canceled = || stop.is_stopped();
    let own = AgentRepository { folder: root, program: &place.program, is_canceled: &is_canceled };
    Ok(match what {
        GitJob::Status => part.status_text()?,
        GitJob::Diff { path, revision } => part.diff_text(revision.as_deref(), path.as_deref())?,
        GitJob::Blame { path } => part.describe_blame(path, &format_day)?,
        GitJob::Branch { name: Some(name) } => {
            part.create_branch(name)?;
            format!("created the branch {name}; git_switch switches to it")
        }
        GitJob::Branch { name: None } => part.branches_text()?,
        GitJob::Log { limit, revision, path } => {
            part.log_text(revision.as_deref(), path.as_deref(), *limit, &format_day)?
        }
        GitJob::Show { commit } => part.show_text(commit.as_deref().unwrap_or("HEAD"), &format_day)?,
        GitJob::Add { files } => own.stage(files)?,
        GitJob::Commit { message, files, staged } => commit(place, &own, message, files, *staged)?,
    })
}

/// Formats a time as a day in UTC, such as `2026-11-22`.
fn format_day(seconds: i64) -> String {
    let day = jiff::Timestamp::from_second(seconds).map(|time| time.strftime("%Y-%m-%d").to_string());
    day.unwrap_or_else(|_| "----------".to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn days() {
        for (seconds, day) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_795_305_599, "2026-11-21"),
            (1_795_305_600, "2026-11-22"),
            (-1, "1969-12-31"),
            // Git keeps any number; a calendar ends somewhere.
            (i64::MAX, "----------"),
            (i64::MIN, "----------"),
        ] {
            assert_eq!(super::format_day(seconds), day);
        }
    }
}
