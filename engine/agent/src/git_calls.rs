//! Calls of Git's tools: the job of each, and how it's described to the user who decides.

use crate::tool_catalog::BuiltInTool;
use crate::tool_job::{GitJob, GitProgramJob, GitStashAction};
use crate::tool_outcomes::{number_argument, string_argument};
use serde_json::{Map, Value};

/// The job of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GitCallJob {
    /// One that begins in process.
    InProcess(GitJob),
    /// One of the user's `git`.
    ByProgram(GitProgramJob),
}

/// Returns the job of a call of one of Git's tools that change something, or of `git_show`. `None` for other tools.
pub fn git_call_job(tool: BuiltInTool, arguments: &Map<String, Value>) -> Option<GitCallJob> {
    let text = |key: &str| string_argument(arguments, key).to_owned();
    let optional = |key: &str| arguments.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
    let files = || -> Vec<String> { named_files(arguments).map(ToOwned::to_owned).collect() };
    Some(match tool {
        BuiltInTool::GitShow => GitCallJob::InProcess(GitJob::Show { commit: optional("commit") }),
        BuiltInTool::GitBranch => GitCallJob::InProcess(GitJob::Branch { name: optional("name") }),
        BuiltInTool::GitAdd => GitCallJob::InProcess(GitJob::Add { files: files() }),
        BuiltInTool::GitCommit => {
            let (message, files, staged) = (text("message"), files(), is_set(arguments, "staged"));
            match is_set(arguments, "push") {
                true => GitCallJob::ByProgram(GitProgramJob::CommitAndPush { message, files, staged }),
                false => GitCallJob::InProcess(GitJob::Commit { message, files, staged }),
            }
        }
        BuiltInTool::GitFetch => GitCallJob::ByProgram(GitProgramJob::Fetch),
        BuiltInTool::GitPull => GitCallJob::ByProgram(GitProgramJob::Pull { rebase: is_set(arguments, "rebase") }),
        BuiltInTool::GitPush => GitCallJob::ByProgram(GitProgramJob::Push),
        BuiltInTool::GitSwitch => {
            let (branch, create) = (text("branch"), is_set(arguments, "create"));
            GitCallJob::ByProgram(GitProgramJob::Switch { branch, create })
        }
        BuiltInTool::GitMerge => GitCallJob::ByProgram(GitProgramJob::Merge { branch: text("branch") }),
        BuiltInTool::GitStash => GitCallJob::ByProgram(GitProgramJob::Stash { action: stash_action(arguments) }),
        BuiltInTool::GitClone => {
            let depth = number_argument(arguments, "depth").and_then(|depth| u32::try_from(depth).ok());
            let (repository, directory) = (text("repository"), text("directory"));
            GitCallJob::ByProgram(GitProgramJob::Clone { repository, directory, depth })
        }
        _ => return None, // tidy: open because all others only look, or have nothing to do with Git
    })
}

/// Describes the effect of a call of one of Git's tools for the user; `None` if its name says enough.
pub fn describe_git_call(tool: BuiltInTool, arguments: &Map<String, Value>) -> Option<String> {
    let text = |key: &str| string_argument(arguments, key);
    Some(match tool {
        BuiltInTool::GitAdd => match named_files(arguments).collect::<Vec<_>>().join(", ") {
            files if files.is_empty() => "Stage all changes".to_owned(),
            files => format!("Stage {files}"),
        },
        BuiltInTool::GitCommit => {
            let word = if is_set(arguments, "push") { "Commit and push" } else { "Commit" };
            format!("{word}: {}", text("message"))
        }
        BuiltInTool::GitPush => "Push the branch to its remote".to_owned(),
        BuiltInTool::GitPull => "Pull from the remote".to_owned(),
        BuiltInTool::GitFetch => "Fetch from the remote".to_owned(),
        BuiltInTool::GitSwitch => format!("Switch to the branch {}", text("branch")),
        BuiltInTool::GitMerge => format!("Merge the branch {}", text("branch")),
        BuiltInTool::GitStash => match stash_action(arguments) {
            GitStashAction::List => "List the stashes".to_owned(),
            GitStashAction::Push { .. } => "Stash all changes that aren't committed".to_owned(),
            GitStashAction::Apply { number, pop: false } => format!("Apply stash {number}"),
            GitStashAction::Apply { number, pop: true } => format!("Apply stash {number}, and delete it"),
        },
        BuiltInTool::GitClone => format!("Clone {} into {}", text("repository"), text("directory")),
        _ => return None, // tidy: open because all others only look, or have nothing to do with Git
    })
}

/// Returns what a call of `git_stash` does. The newest stash has the number 0.
fn stash_action(arguments: &Map<String, Value>) -> GitStashAction {
    let number = number_argument(arguments, "number").and_then(|number| usize::try_from(number).ok()).unwrap_or(0);
    match string_argument(arguments, "action") {
        "push" => GitStashAction::Push { message: string_argument(arguments, "message").to_owned() },
        "apply" => GitStashAction::Apply { number, pop: false },
        "pop" => GitStashAction::Apply { number, pop: true },
        _ => GitStashAction::List, // the schema allows only one other word
    }
}

fn named_files(arguments: &Map<String, Value>) -> impl Iterator<Item = &str> {
    arguments.get("files").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn is_set(arguments: &Map<String, Value>, key: &str) -> bool {
    arguments.get(key).and_then(Value::as_bool).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_tool_of_git_has_a_job_or_only_looks() {
        let looking = [BuiltInTool::GitStatus, BuiltInTool::GitDiff, BuiltInTool::GitLog, BuiltInTool::GitBlame];
        for tool in BuiltInTool::ALL {
            let has_job = git_call_job(*tool, &Map::new()).is_some();
            assert_eq!(has_job, tool.is_for_git() && !looking.contains(tool), "{tool}");
        }
    }

    #[test]
    fn arguments_become_jobs() {
        let call = |tool: BuiltInTool, arguments: Value| {
            let arguments = arguments.as_object().cloned().expect("an object");
            (git_call_job(tool, &arguments), describe_git_call(tool, &arguments).unwrap_or_default())
        };
        let (job, what) = call(BuiltInTool::GitCommit, json!({"message": "m", "staged": true}));
        let expected = GitJob::Commit { message: "m".to_owned(), files: Vec::new(), staged: true };
        assert_eq!((job, what.as_str()), (Some(GitCallJob::InProcess(expected)), "Commit: m"));
        let (job, what) = call(BuiltInTool::GitStash, json!({"action": "pop", "number": 2}));
        let expected = GitProgramJob::Stash { action: GitStashAction::Apply { number: 2, pop: true } };
        assert_eq!((job, what.as_str()), (Some(GitCallJob::ByProgram(expected)), "Apply stash 2, and delete it"));
        let (job, what) = call(BuiltInTool::GitAdd, json!({"files": ["a.md", "b.md"]}));
        let expected = GitJob::Add { files: vec!["a.md".to_owned(), "b.md".to_owned()] };
        assert_eq!((job, what.as_str()), (Some(GitCallJob::InProcess(expected)), "Stage a.md, b.md"));
    }
}
