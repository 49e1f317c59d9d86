//! Git operations of tools, with results as text. Reads and commits run in process; what needs a remote or changes the
//! working tree runs the user's `git`, without the repository's hooks.

use super::truncate::truncate_output;
use super::{StopSignal, ToolWorkspace};
use crate::fs::confined_dir::ConfinedFolder;
use agent::tool_job::{GitJob, GitProgramJob, ToolOutcome, WebAccess};
use agent::web_address::is_listed;
use anyhow::bail;
use git_program::{GitCaller, GitOperation, MERGE_DRIVER_SETTING, RepositoryAddress, merge_driver_command};
use std::path::Path;
use vcs::{MAX_STATUS_FILES, RepositoryFolder};

/// Number of commits in a log by default.
const DEFAULT_LOG_COMMITS: usize = 20;

pub(super) fn run(place: &ToolWorkspace, root: &Path, what: &GitJob) -> anyhow::Result<ToolOutcome> {
    let text = run_git_job(root, what)?;
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
    let text = match what {
        GitProgramJob::Clone { repository, directory, depth } => {
            let from = RepositoryAddress::read(repository, Path::new("/nowhere"))?;
            let Some(host) = from.host() else {
                bail!("agents clone from other devices only, not from a folder here: {}", from.display_text());
            };
            check_hosts([host].into_iter(), web)?;
            let directory = super::files::check_writable_path(directory)?;
            let (folder, name) = ConfinedFolder::open_root(root)?.open_parent(&directory, true)?;
            let target = folder.stable_path().join(&name);
            if target.symlink_metadata().is_ok() {
                bail!("a file or folder with that name already exists; choose another: {directory}");
            }
            let operation = GitOperation::Clone { from: from.clone(), folder: target, depth: *depth };
            run(root, &operation)?;
            format!("cloned {} into {directory}", from.display_text())
        }
        GitProgramJob::Fetch => {
            run(root, remote_operation(place, root, GitOperation::Fetch, web)?.as_ref())?;
            describe_branch(&RepositoryFolder::open(root)?.branch_state()?)
        }
        GitProgramJob::Pull { rebase } => {
            let operation = remote_operation(place, root, GitOperation::Pull { rebase: *rebase }, web)?;
            let said = run(root, operation.as_ref())?;
            format!("{}\n{said}", describe_branch(&RepositoryFolder::open(root)?.branch_state()?))
        }
        GitProgramJob::Push => push(place, root, web, &run)?,
        GitProgramJob::CommitAndPush { message, files } => {
            // Refused before the commit, so that a second try doesn't find it made already.
            check_remotes(place, &RepositoryFolder::open(root)?, web)?;
            let committed = run_git_job(root, &GitJob::Commit { message: message.clone(), files: files.clone() })?;
            match push(place, root, web, &run) {
                Ok(pushed) => format!("{committed}\n{pushed}"),
                Err(why) => bail!("{committed}\nIt is committed, but not pushed: {why}"),
            }
        }
        GitProgramJob::Switch { branch, create } => {
            let repository = RepositoryFolder::open(root)?;
            check_settings(&repository, &place.program)?;
            run(root, &GitOperation::Switch { branch: branch.clone(), create: *create })?;
            describe_branch(&RepositoryFolder::open(root)?.branch_state()?)
        }
    };
    let (text, whole) = truncate_output(text.trim().as_bytes(), &place.blobs)?;
    Ok(ToolOutcome { success: true, text, whole, ..ToolOutcome::default() })
}

/// Pushes the current branch.
fn push(
    place: &ToolWorkspace,
    root: &Path,
    web: &WebAccess,
    run: &dyn Fn(&Path, &GitOperation) -> Result<String, git_program::GitProgramError>,
) -> anyhow::Result<String> {
    let repository = RepositoryFolder::open(root)?;
    check_remotes(place, &repository, web)?;
    run(root, &GitOperation::Push { first: repository.first_push_target()? })?;
    Ok(format!("pushed; {}", describe_branch(&RepositoryFolder::open(root)?.branch_state()?)))
}

/// Returns the operation if the repository's remotes may be reached.
fn remote_operation(
    place: &ToolWorkspace,
    root: &Path,
    operation: GitOperation,
    web: &WebAccess,
) -> anyhow::Result<Box<GitOperation>> {
    check_remotes(place, &RepositoryFolder::open(root)?, web)?;
    Ok(Box::new(operation))
}

/// Refuses a repository whose remotes the configuration doesn't allow, or whose settings run programs.
fn check_remotes(place: &ToolWorkspace, repository: &RepositoryFolder, web: &WebAccess) -> anyhow::Result<()> {
    check_settings(repository, &place.program)?;
    let urls = repository.remote_urls()?;
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

/// Refuses a repository whose own configuration makes Git run programs: it could attack through an agent.
fn check_settings(repository: &RepositoryFolder, program: &Path) -> anyhow::Result<()> {
    let mut settings = repository.program_settings()?;
    // This program as a merge driver, exactly as it installs itself, starts nothing else.
    if repository.setting(MERGE_DRIVER_SETTING)? == merge_driver_command(program) {
        settings.retain(|name| name != MERGE_DRIVER_SETTING);
    }
    match settings.as_slice() {
        [] => Ok(()),
        settings => bail!(
            "The repository's own .git/config names programs or other places ({}), so agents don't use its remote. Do \
             it yourself with `tracebook git`, or move these settings to your own Git configuration.",
            settings.join(", ")
        ),
    }
}

/// Describes the current branch in a sentence.
fn describe_branch(state: &vcs::BranchState) -> String {
    let branch = state.branch.as_deref().unwrap_or("no branch (a commit is checked out)");
    let remote = match &state.upstream {
        None => "it has no remote branch".to_owned(),
        Some(upstream) if state.ahead + state.behind == 0 => format!("even with {upstream}"),
        Some(upstream) => format!("{} ahead of and {} behind {upstream}", state.ahead, state.behind),
    };
    let under_way = state.under_way.map(|what| format!("; a {what} is under way")).unwrap_or_default();
    format!("on {branch}, {remote}{under_way}")
}

fn run_git_job(root: &Path, what: &GitJob) -> Result<String, vcs::VcsError> {
    let part = RepositoryFolder::open(root)?;
    Ok(match what {
        GitJob::Status => {
            let files = match part.status()? {
                (lines, _) if lines.is_empty() => "nothing has changed since the last commit".to_owned(),
                (lines, true) => lines.join("\n"),
                (lines, false) => format!("{}\n… more than {MAX_STATUS_FILES} files …", lines.join("\n")),
            };
            let state = part.branch_state()?;
            match state.upstream.is_some() || state.under_way.is_some() || state.branch.is_none() {
                true => format!("{}\n{files}", describe_branch(&state)),
                false => files,
            }
        }
        GitJob::Diff { path } => match part.diff(path.as_deref())? {
            (text, _) if text.is_empty() => "nothing differs from the last commit".to_owned(),
            (text, true) => text,
            (text, false) => format!("{text}\n… more than {} MB …", vcs::MAX_DIFF_BYTES >> 20),
        },
        GitJob::Blame { path } => {
            let lines = part.blame(path)?;
            let line = |line: &vcs::BlameLine| {
                let id = line.id.as_deref().and_then(|id| id.get(..8)).unwrap_or("--------");
                let day = line.time.map_or_else(|| "----------".to_owned(), format_day);
                format!("{id} {day} {} {}: {}", line.author, line.line, line.text)
            };
            lines.iter().map(line).collect::<Vec<_>>().join("\n")
        }
        GitJob::Branch { name: Some(name) } => {
            part.create_branch(name)?;
            format!("created the branch {name}; git_switch switches to it")
        }
        GitJob::Branch { name: None } => {
            let line = |branch: &vcs::BranchInfo| {
                let mark = if branch.current { "* " } else { "  " };
                format!("{mark}{} {} {}", branch.name, branch.id.get(..8).unwrap_or_default(), branch.summary)
            };
            match part.branches()?.as_slice() {
                [] => "there is no commit yet".to_owned(),
                branches => branches.iter().map(line).collect::<Vec<_>>().join("\n"),
            }
        }
        GitJob::Log { limit } => {
            let commits = part.log(limit.unwrap_or(DEFAULT_LOG_COMMITS))?;
            let line = |commit: &vcs::Commit| {
                let id = commit.id.get(..8).unwrap_or(&commit.id);
                format!("{id} {} {}: {}", format_day(commit.time), commit.author, commit.summary)
            };
            match commits.as_slice() {
                [] => "there is no commit yet".to_owned(),
                commits => commits.iter().map(line).collect::<Vec<_>>().join("\n"),
            }
        }
        GitJob::Commit { message, files } => {
            let (commit, files) = part.commit(message, files)?;
            format!("committed {} “{}”\n{}", commit.id.get(..8).unwrap_or(&commit.id), commit.summary, files.join("\n"))
        }
    })
}

/// Formats a time as a day in UTC, such as `2026-11-22`, by Howard Hinnant's `civil_from_days`.
fn format_day(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400).clamp(-1_000_000_000, 1_000_000_000) + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{:02}", of_year - (153 * shifted + 2) / 5 + 1)
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
        ] {
            assert_eq!(super::format_day(seconds), day);
        }
        super::format_day(i64::MAX);
        super::format_day(i64::MIN);
    }
}
