//! Tool jobs for the host, and their results: the contract between the loop and `engine/host/tools.rs`. Changes to
//! notes aren't jobs: the session makes them with its own commands.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;
use store::{BlobHash, BlobRef};

/// Maximum length of a result in the context and the run's document; the full text is a blob.
pub const MAX_TOOL_RESULT_BYTES: usize = 16 * 1024;

/// One piece of work. Paths named `path` are inside `root`, `/` between parts; nothing outside it is reached, also not
/// by symbolic links or `..`.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolJob {
    /// Read a text file.
    Read {
        /// The volume's folder on this device.
        root: PathBuf,
        /// Path of the file, relative to `root`.
        path: String,
        /// The first line, from 1; with how many lines; `None`: all.
        lines: Option<(usize, usize)>,
    },
    /// List a folder, two levels deep.
    List {
        /// The volume's folder on this device.
        root: PathBuf,
        /// Which folder; empty: the root.
        path: String,
    },
    /// Replaces an attachment atomically; folders are created. The old content becomes a blob.
    Replace {
        /// The volume's folder on this device.
        root: PathBuf,
        /// Path of the file, relative to `root`.
        path: String,
        /// The new text of the file.
        text: String,
        /// What must be there: `Some(None)`: nothing; `None`: whatever.
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
    /// Put back what a file held: the bytes of a blob, or nothing. Only where it still holds what is expected.
    Restore {
        /// The volume's folder on this device.
        root: PathBuf,
        /// Path of the file, relative to `root`.
        path: String,
        /// What must be there; `None`: nothing.
        expected: Option<BlobHash>,
        /// The new content; `None` removes the file.
        to: Option<BlobHash>,
    },
    /// Find passages of notes, outputs, runs and memory.
    Search {
        /// As a user would type it.
        query: String,
        /// Maximum number of results.
        limit: usize,
    },
    /// Run a line of shell in the sandbox.
    Shell {
        /// The volume's folder: the only place that can be written to.
        root: PathBuf,
        /// Where it runs, inside the root; empty: the root.
        path: String,
        /// The line, for `sh -c`.
        command: String,
        /// Time limit in seconds.
        seconds: u64,
        /// Whether it may use the network.
        network: bool,
    },
    /// Run Python in an embedded kernel of its own, with the sandbox of cells.
    Python {
        /// The folder that it may use.
        root: PathBuf,
        /// The code. The value of the last expression is the result.
        code: String,
        /// Time limit in seconds.
        seconds: u64,
        /// What it may fetch of the web, through the host; `None`: nothing. The process itself has no network.
        web: Option<WebAccess>,
    },
    /// Reads or commits to the Git repository that contains the volume.
    Git {
        /// The volume's folder on this device.
        root: PathBuf,
        /// The Git operation.
        what: GitJob,
    },
    /// Fetch an `http` or `https` address: HTML as Markdown, at most 2 MB, 20 seconds, 5 redirects.
    Fetch {
        /// The address, which was allowed.
        url: String,
        /// Hosts to which a redirect is allowed without asking; a leading `.` includes all subdomains.
        hosts: Vec<String>,
        /// Addresses outside of the public internet that the host's name may mean.
        inside: Vec<String>,
    },
    /// Call a tool of an MCP server.
    Mcp {
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
    /// Whether only these hosts may be reached, and not all of the public internet.
    pub restricted: bool,
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
    /// Shows the diff between the working tree and the last commit.
    Diff {
        /// Only the diff of this path; `None` for all files.
        #[serde(default)]
        path: Option<String>,
    },
    /// Lists the latest commits.
    Log {
        /// Maximum number of commits, up to 200; `None` means 20.
        #[serde(default)]
        limit: Option<usize>,
    },
    /// Commits the named files, or all changed files.
    Commit {
        /// The commit message.
        message: String,
        /// Paths to commit; empty for all changed files.
        #[serde(default)]
        files: Vec<String>,
    },
}

/// A file that a job changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Its path inside the root.
    pub path: String,
    /// What was there; `None`: nothing. The bytes are a blob.
    pub before: Option<BlobHash>,
    /// The content now as a blob; `None` if the file doesn't exist.
    pub after: Option<BlobHash>,
}

/// Result of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutcome {
    /// Whether it did what was asked.
    pub success: bool,
    /// A result, a unified diff, or the error. At most [`MAX_TOOL_RESULT_BYTES`] bytes.
    pub text: String,
    /// The whole, where `text` is only its beginning and its end.
    pub whole: Option<BlobRef>,
    /// Files that the tool changed.
    pub changed: Vec<FileChange>,
    /// Pictures and files of the result.
    pub attached: Vec<BlobRef>,
    /// Access that needs the user's approval; nothing was done yet.
    pub asks: Option<AccessRequest>,
    /// Whether the tool was found to be another than the one that was allowed; then nothing was done.
    pub outdated: bool,
    /// Whether a search found nothing; `text` only says so.
    pub found_nothing: bool,
}
