//! Tool jobs for the host, and their results: the contract between the loop and `engine/host/tools.rs`. Changes to
//! notes aren't jobs: the session makes them with its own commands.

use crate::config::SandboxLimits;
use crate::script_tool::ScriptToolCall;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;
use store::{BlobHash, BlobRef, ChangeKind, DocId, TextHunk, ToolFileInfo, ToolGrants, UserTool};
use text::kernel_properties::NotePackages;
use text::script_packages::ScriptPackagesError;

/// Maximum length in bytes of a result in the context and the run's document. The full text is a blob.
pub const MAX_TOOL_RESULT_BYTES: usize = 16 * 1024;
/// What a result says in its middle if something was left out there.
const LEFT_OUT_MARK: &str = " bytes are left out here …";
/// What the session puts at the end of a result of which it has left something out.
const CUT_MARK: &str = "[The rest was left out.]";

/// A job for the host. A `path` is relative to `root`, with `/` as separator. Nothing outside of `root` can be reached,
/// not even by symbolic links or `..`.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolJob {
    /// Reads a text file.
    Read {
        /// The volume's folder on this device.
        root: PathBuf,
        /// Path of the file, relative to `root`.
        path: String,
        /// The first line, from 1, and the number of lines; `None` for all lines.
        lines: Option<(usize, usize)>,
    },
    /// Reads the experiences that the projects of the workspace remember, as the file `memory_log.md` of System.
    MemoryLog {
        /// The folders that hold memory.
        roots: Vec<PathBuf>,
        /// The first line, from 1, and the number of lines; `None` for all lines.
        lines: Option<(usize, usize)>,
    },
    /// Lists a folder, two levels deep.
    List {
        /// The volume's folder on this device.
        root: PathBuf,
        /// Path of the folder, relative to `root`; empty for `root` itself.
        path: String,
    },
    /// Replaces an attachment atomically, and creates missing folders. The old content becomes a blob.
    Replace {
        /// The volume's folder on this device.
        root: PathBuf,
        /// Path of the file, relative to `root`.
        path: String,
        /// The new text of the file.
        text: String,
        /// Content that the file must have. `Some(None)` means that it must not exist; `None` allows anything.
        expected: Option<Option<BlobHash>>,
    },
    /// Replaces the only occurrence of `old` in an attachment, atomically.
    Amend {
        /// The volume's folder on this device.
        root: PathBuf,
        /// Path of the file, relative to `root`.
        path: String,
        /// The text to replace, which must occur exactly once.
        old: String,
        /// The text that replaces it.
        new: String,
    },
    /// Removes an attachment. The old content becomes a blob.
    Remove {
        /// The volume's folder on this device.
        root: PathBuf,
        /// Path of the file, relative to `root`.
        path: String,
    },
    /// Restores a file's earlier content from a blob, or removes the file, if it still has the expected content.
    Restore {
        /// The volume's folder on this device.
        root: PathBuf,
        /// Path of the file, relative to `root`.
        path: String,
        /// Content that the file must have; `None` means that it must not exist.
        expected: Option<BlobHash>,
        /// The new content; `None` removes the file.
        to: Option<BlobHash>,
    },
    /// Takes what a program that works as an agent says of a step of its own, and finds the files that it changed.
    ProgramReport {
        /// The project's folder on this device.
        root: PathBuf,
        /// The program's run.
        run: DocId,
        /// Paths that it says it changed, relative to `root`; none if it doesn't say.
        paths: Vec<String>,
        /// Whether the step succeeded.
        success: bool,
        /// What the program says of it.
        text: String,
    },
    /// Searches passages of notes, outputs, runs and memory.
    Search {
        /// The query, as a user would type it.
        query: String,
        /// Maximum number of results.
        limit: usize,
        /// Name of the fork that the run works in, if it does: notes of the fork are found instead of the project's.
        fork: Option<String>,
    },
    /// Runs a shell command in the sandbox.
    Shell {
        /// The volume's folder on this device: the only folder that the command can write to.
        root: PathBuf,
        /// Working directory, relative to `root`; empty for `root` itself.
        path: String,
        /// The command line, for `sh -c`.
        command: String,
        /// Time limit in seconds.
        seconds: u64,
        /// Whether the command may use the network.
        network: bool,
    },
    /// Runs Python in its own embedded kernel, with the sandbox of cells.
    Python {
        /// The folder that the code may use.
        root: PathBuf,
        /// The code. The value of the last expression is the result.
        code: String,
        /// Time limit in seconds.
        seconds: u64,
        /// What the code may fetch from the web through the host; `None` for nothing. The process itself has no
        /// network.
        web: Option<WebAccess>,
        /// What else the code may do. Without `fs`, its folder is an empty one of its own instead of `root`.
        grants: ToolGrants,
        /// The packages that it needs; `None` runs it in the built-in Python.
        packages: Option<Box<ToolPackages>>,
    },
    /// Runs a tool's function in JavaScript in a process of its own, with the sandbox of cells and no folder at all.
    JavaScript {
        /// The folder whose files the function may ask the host for.
        root: PathBuf,
        /// The function and its arguments.
        call: Box<ScriptToolCall>,
        /// Time limit in seconds.
        seconds: u64,
        /// What the function may fetch from the web through the host; `None` for nothing.
        web: Option<WebAccess>,
        /// What else the function may do.
        grants: ToolGrants,
    },
    /// Does a job within limits of the configuration or of the agent.
    Limited {
        /// The limits.
        limits: Box<SandboxLimits>,
        /// The job, which isn't one of this kind itself.
        job: Box<ToolJob>,
    },
    /// Reads or commits to the Git repository that contains the volume.
    Git {
        /// The volume's folder on this device.
        root: PathBuf,
        /// The Git operation.
        what: GitJob,
    },
    /// Runs the user's `git` program in the repository that contains the volume.
    GitProgram {
        /// The volume's folder on this device.
        root: PathBuf,
        /// The Git operation.
        what: GitProgramJob,
        /// Hosts that remotes may be on.
        web: WebAccess,
    },
    /// Fetches an `http` or `https` address: HTML as Markdown, at most 2 MB, 20 seconds, 5 redirects.
    Fetch {
        /// The approved address.
        url: String,
        /// Hosts to which a redirect is allowed without asking; a leading `.` includes all subdomains.
        hosts: Vec<String>,
        /// Addresses outside the public internet that the host may resolve to.
        inside: Vec<String>,
    },
    /// Uses the browser of a run, which starts with the first page and ends with the run.
    Browser {
        /// The run.
        run: DocId,
        /// Name of the tool.
        tool: String,
        /// Its arguments, which fit its schema.
        arguments: Map<String, Value>,
        /// Addresses outside the public internet that the opened host may resolve to.
        inside: Vec<String>,
        /// Hosts that pages may load from, and those that they may lead to without asking.
        web: WebAccess,
        /// The configured program; `None` for one that's installed.
        program: Option<PathBuf>,
    },
    /// Uses containers, which end with the run.
    Container {
        /// The run.
        run: DocId,
        /// The volume whose containers may be used.
        project: DocId,
        /// The volume's folder on this device.
        root: PathBuf,
        /// Name of the tool.
        tool: String,
        /// Its arguments, which fit its schema.
        arguments: Map<String, Value>,
        /// The configured socket of the engine; `None` for the one that is found.
        socket: Option<String>,
        /// Whether containers get no network at all.
        restricted: bool,
    },
    /// Calls a tool of an MCP server.
    Mcp {
        /// The run that makes the call.
        run: DocId,
        /// The project's folder, which the server may ask for.
        root: PathBuf,
        /// The call's id in the run.
        call: String,
        /// The server's name in the configuration.
        server: String,
        /// The tool's name on the server.
        tool: String,
        /// Arguments for the tool, as JSON.
        arguments: Map<String, Value>,
        /// Hash of the tool's definition at the time of approval.
        definition: String,
    },
}

/// Hosts that a program may reach on the web.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebAccess {
    /// Allowed hosts; a leading `.` includes all subdomains.
    pub hosts: Vec<String>,
    /// Whether only these hosts may be reached, instead of the whole public internet.
    pub restricted: bool,
}

/// The packages of a user's tool, which runs in an environment that has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPackages {
    /// The tool's name.
    pub tool: String,
    /// The packages, as the tool's code lists them.
    pub packages: NotePackages,
}

impl ToolPackages {
    /// Returns the packages of a tool; `None` if it needs none.
    ///
    /// # Errors
    /// Returns an error if its list can't be read.
    pub fn of(tool: &UserTool) -> Result<Option<ToolPackages>, ScriptPackagesError> {
        let packages = crate::tool_file::listed_packages(tool)?;
        Ok(packages.map(|packages| ToolPackages { tool: tool.name.clone(), packages }))
    }
}

/// Access that a running job asks the user for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessRequest {
    /// The host resolves to addresses outside the public internet.
    PrivateAddress {
        /// The requested address.
        url: String,
        /// The IP addresses that it resolves to.
        ips: Vec<String>,
    },
    /// A redirect leads to another site.
    Redirect {
        /// The address that the redirect leads to.
        url: String,
    },
}

/// An operation on a Git repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "lowercase")]
pub enum GitJob {
    /// Lists changed files.
    Status,
    /// Shows the diff between the working tree and the last commit, or between others.
    Diff {
        /// Only the diff of this path; `None` for all files.
        #[serde(default)]
        path: Option<String>,
        /// What is compared, as in `git diff`: `A`, `A B`, `A..B` or `A...B`; `None` means the last commit.
        #[serde(default)]
        revision: Option<String>,
    },
    /// Lists the latest commits.
    Log {
        /// Maximum number of commits, up to 200; `None` means 20.
        #[serde(default)]
        limit: Option<usize>,
        /// Which commits, as in `git log`: `A`, `A..B` or `A...B`; `None` means the current branch.
        #[serde(default)]
        revision: Option<String>,
        /// Only commits that changed this file.
        #[serde(default)]
        path: Option<String>,
    },
    /// Shows a commit and its diff.
    Show {
        /// Its hash, or the name of a branch or tag; `None` for the last one.
        #[serde(default)]
        commit: Option<String>,
    },
    /// Stages the named files, or all changed files.
    Add {
        /// Paths to stage; empty for all changed files.
        #[serde(default)]
        files: Vec<String>,
    },
    /// Lists who last changed each line of a file.
    Blame {
        /// Path of the file.
        path: String,
    },
    /// Creates a branch at the last commit, or lists the branches.
    Branch {
        /// Name of the new branch; `None` to list.
        #[serde(default)]
        name: Option<String>,
    },
    /// Commits the named files, or all changed files.
    Commit {
        /// The commit message.
        message: String,
        /// Paths to commit; empty for all changed files.
        #[serde(default)]
        files: Vec<String>,
        /// Whether exactly what is staged is committed instead.
        #[serde(default)]
        staged: bool,
    },
}

impl GitJob {
    /// Returns the diff that a call wants. An empty path is all of the volume.
    pub fn diff_of(path: String, arguments: &Map<String, Value>) -> GitJob {
        GitJob::Diff { path: Some(path).filter(|path| !path.is_empty()), revision: revision_argument(arguments) }
    }

    /// Returns the log that a call wants. An empty path is all of the volume.
    pub fn log_of(path: String, arguments: &Map<String, Value>) -> GitJob {
        GitJob::Log {
            limit: arguments.get("limit").and_then(Value::as_u64).map(|limit| limit as usize),
            revision: revision_argument(arguments),
            path: Some(path).filter(|path| !path.is_empty()),
        }
    }
}

fn revision_argument(arguments: &Map<String, Value>) -> Option<String> {
    let revision = arguments.get("revision").and_then(Value::as_str).map(str::trim);
    revision.filter(|revision| !revision.is_empty()).map(ToOwned::to_owned)
}

/// An operation that the user's `git` program performs, because it needs the network or changes the working tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "lowercase")]
pub enum GitProgramJob {
    /// Gets commits from the remote.
    Fetch,
    /// Gets commits from the remote, and merges them or rebases onto them.
    Pull {
        /// Whether to rebase instead of to merge.
        #[serde(default)]
        rebase: bool,
    },
    /// Sends the branch's commits to the remote.
    Push,
    /// Commits in process, then pushes.
    CommitAndPush {
        /// The commit message.
        message: String,
        /// Paths to commit; empty for all changed files.
        #[serde(default)]
        files: Vec<String>,
        /// Whether exactly what is staged is committed instead.
        #[serde(default)]
        staged: bool,
    },
    /// Merges a branch into the current one.
    Merge {
        /// Name of the branch.
        branch: String,
    },
    /// Puts changes aside, takes them back, or lists what is put aside.
    Stash {
        /// The operation on stashes.
        action: GitStashAction,
    },
    /// Switches to a branch.
    Switch {
        /// Name of the branch.
        branch: String,
        /// Whether the branch is created.
        #[serde(default)]
        create: bool,
    },
    /// Clones a repository into a new folder.
    Clone {
        /// URL of the repository, or `OWNER/NAME` on GitHub.
        repository: String,
        /// Path of the new folder, relative to `root`.
        directory: String,
        /// Number of commits to get; `None` for all.
        #[serde(default)]
        depth: Option<u32>,
    },
}

impl GitProgramJob {
    /// Returns whether it may change any file of the folder, whichever ones Git finds.
    pub fn changes_any_file(&self) -> bool {
        match self {
            GitProgramJob::Pull { .. } | GitProgramJob::Merge { .. } => true,
            GitProgramJob::Stash { action } => *action != GitStashAction::List,
            // A new branch begins where the folder is.
            GitProgramJob::Switch { create, .. } => !create,
            GitProgramJob::Fetch
            | GitProgramJob::Push
            | GitProgramJob::CommitAndPush { .. }
            | GitProgramJob::Clone { .. } => false,
        }
    }
}

/// What is done with stashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GitStashAction {
    /// Lists them.
    List,
    /// Puts all changes that aren't committed aside.
    Push {
        /// Description; empty for Git's own.
        message: String,
    },
    /// Takes a stash back.
    Apply {
        /// Number of the stash; 0 is the newest.
        number: usize,
        /// Whether it's deleted once its changes are back.
        pop: bool,
    },
}

/// A file that a job changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Path of the file, relative to `root`.
    pub path: String,
    /// The earlier content as a blob; `None` if the file didn't exist.
    pub before: Option<BlobHash>,
    /// The content now as a blob; `None` if the file doesn't exist.
    pub after: Option<BlobHash>,
    /// The changed places of a text, if they were looked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<TextHunk>,
}

impl FileChange {
    /// Returns the file, if it's a note whose changed places are known, and how it has changed.
    pub fn kind(&self, note: Option<DocId>) -> (Option<DocId>, ChangeKind) {
        match note.filter(|_| !self.hunks.is_empty()) {
            Some(note) => (Some(note), ChangeKind::Edited { hunks: self.hunks.clone() }),
            None => (None, ChangeKind::Bytes { before: self.before, after: self.after }),
        }
    }
}

/// Result of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutcome {
    /// Whether the job succeeded.
    pub success: bool,
    /// A result, a unified diff, or the error. At most [`MAX_TOOL_RESULT_BYTES`] bytes.
    pub text: String,
    /// The full text, if `text` contains only its beginning and end.
    pub whole: Option<BlobRef>,
    /// Files that the tool changed.
    pub changed: Vec<FileChange>,
    /// Changes of files that a program has changed or a call of it was to change: ids of the calls, and the changes.
    pub ordered: Vec<(String, FileChange)>,
    /// Images and files of the result.
    pub attached: Vec<BlobRef>,
    /// What is known of the files that were read, written or listed: at most [`store::MAX_RESULT_FILES`].
    pub files: Vec<ToolFileInfo>,
    /// Access that needs the user's approval; nothing was done yet.
    pub asks: Option<AccessRequest>,
    /// Whether the tool differs from the one that was allowed, so that nothing was done.
    pub outdated: bool,
    /// Whether a search found nothing, so that `text` only says so.
    pub found_nothing: bool,
    /// Whether it failed because there's no file with that name.
    pub is_missing: bool,
    /// The execution of the cell that it ran.
    pub execution: Option<store::ExecutionId>,
}

/// Returns the beginning and end of a text, in whole lines unless they're too long, and how much is left out between
/// them.
pub fn truncate_middle(text: &str) -> String {
    if text.len() <= MAX_TOOL_RESULT_BYTES {
        return text.to_owned();
    }
    let room = MAX_TOOL_RESULT_BYTES - 80; // for the line between them
    let mut head = text.floor_char_boundary(room * 2 / 3);
    let mut tail = text.ceil_char_boundary(text.len() - room / 3);
    // Drop a line that would be cut, unless it's most of what is left.
    head = text[..head].rfind('\n').map_or(head, |at| if at + 1 > head / 2 { at + 1 } else { head });
    tail += text[tail..].find('\n').map_or(0, |at| if at + 1 < (text.len() - tail) / 2 { at + 1 } else { 0 });
    let (start, end) = (&text[..head], &text[tail..]);
    let new = if start.ends_with('\n') { "" } else { "\n" };
    format!("{start}{new}… {} of {}{LEFT_OUT_MARK}\n{end}", tail - head, text.len())
}

/// Returns whether a result is only a part of what a tool has given.
pub fn is_cut_result(text: &str) -> bool {
    text.ends_with(CUT_MARK) || text.contains(LEFT_OUT_MARK)
}
