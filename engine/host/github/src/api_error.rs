//! Why GitHub, or a folder from it, couldn't be used, in words that say what to do.

use std::io;
use std::path::{Path, PathBuf};
use store::disk::DiskError;
use vcs::VcsError;

/// Name of the secret, and of the environment variable, that holds the token.
pub const TOKEN_NAME: &str = "GITHUB_TOKEN";
/// Maximum number of files that an error names.
const MAX_NAMED_FILES: usize = 10;
/// Maximum length of a quoted text in characters.
const MAX_QUOTED_CHARS: usize = 200;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum GitHubError {
    /// This isn't a repository of the API's host.
    #[error("This isn't a repository of {host}: {given}. Write OWNER/NAME, or the address of its page.")]
    Address {
        /// The address that the user gave.
        given: String,
        /// Name of the web site.
        host: String,
    },
    /// The API's address isn't used.
    #[error("GITHUB_API_URL must be an https address such as https://github.example.org/api/v3, not “{0}”.")]
    ApiAddress(String),
    /// The token isn't accepted.
    #[error(
        "{host} didn't accept the token. Make a new one in the settings of your account there, and store it: \
         `tracebook secrets set {TOKEN_NAME}`."
    )]
    Token {
        /// The API's host.
        host: String,
    },
    /// There's nothing, or the token can't see it.
    #[error("{host} has no {what}, or it's private and {}.", token_advice(*has_token))]
    NotFound {
        /// The API's host.
        host: String,
        /// The object that was requested.
        what: String,
        /// Whether a token was sent.
        has_token: bool,
    },
    /// The token may not do this.
    #[error(
        "{host} refuses this: {message}. Reading needs a token with the permission “Contents: read”, and commits one \
         with “Contents: write”: `tracebook secrets set {TOKEN_NAME}`."
    )]
    Forbidden {
        /// The API's host.
        host: String,
        /// The host's message.
        message: String,
    },
    /// All requests of this hour are used up.
    #[error("{host} allows no more requests until {}.{}", format_time(*reset), limit_advice(*has_token))]
    RateLimited {
        /// The API's host.
        host: String,
        /// When requests are allowed again, in seconds since 1970.
        reset: Option<i64>,
        /// Whether a token was sent.
        has_token: bool,
    },
    /// Too many requests in a short time.
    #[error(
        "{host} asks for a pause until {}, because of many requests in a short time. Try again then.",
        format_time(Some(*until))
    )]
    Pause {
        /// The API's host.
        host: String,
        /// When requests are allowed again, in seconds since 1970.
        until: i64,
    },
    /// The host can't be reached, or breaks off.
    #[error("{host} can't be reached ({why}). Your files are as they were. Try again later.")]
    Unreachable {
        /// The host.
        host: String,
        /// The reason.
        why: String,
    },
    /// The host has an error of its own.
    #[error("{host} has an error of its own (status {status}). Your files are as they were. Try again later.")]
    Server {
        /// The host.
        host: String,
        /// The HTTP status.
        status: u16,
    },
    /// An answer that isn't expected.
    #[error("{host} answered with status {status}: {message}.")]
    Unexpected {
        /// The host.
        host: String,
        /// The HTTP status.
        status: u16,
        /// The host's message.
        message: String,
    },
    /// An answer that can't be read or isn't what was requested.
    #[error("{host} sent something else than was requested: {why}.")]
    Malformed {
        /// The host.
        host: String,
        /// The error in the answer.
        why: String,
    },
    /// Too much for the API.
    #[error("{0}, which is too much for GitHub's API. Install Git and clone the repository with it.")]
    TooLarge(String),
    /// A path that isn't written.
    #[error("The repository has a file that isn't written here, because {why}: “{path}”. Nothing was changed.")]
    HostilePath {
        /// The path.
        path: String,
        /// The reason.
        why: &'static str,
    },
    /// The repository has no commit.
    #[error("The repository is empty. Commit its first file on its page, and try again.")]
    EmptyRepository,
    /// The branch has commits that aren't here.
    #[error("The branch {0} has commits that aren't here, so nothing was committed. Pull first, then commit again.")]
    BranchMoved(String),
    /// Both sides changed the same places.
    #[error(
        "You and others have changed the same parts of {}. Nothing was pulled, and your files are as they were. Pull \
         and keep both versions to get theirs as a second file beside each of yours.",
        named_files(.0)
    )]
    Conflict(Vec<String>),
    /// There was nothing to commit.
    #[error("Nothing has changed since the last pull or commit.")]
    NothingChanged,
    /// A pull has stopped halfway.
    #[error("A pull has stopped halfway. Pull again to finish it, and then commit.")]
    UnfinishedPull,
    /// A file changed while a pull replaced files.
    #[error("{0} has changed while files were pulled, and keeps your change. Pull again.")]
    ChangedMeanwhile(String),
    /// Another command works in the folder.
    #[error("Another command works in {} now. Try again when it has ended.", .0.display())]
    Locked(PathBuf),
    /// There's something at the new folder's path.
    #[error("there is something at {} already; choose another folder", .0.display())]
    Taken(PathBuf),
    /// It was canceled.
    #[error("cancelled")]
    Canceled,
    /// The folder's record isn't usable.
    #[error(
        "{} isn't a usable record of a GitHub folder: {why}. Clone the repository again into another folder.",
        path.display()
    )]
    Record {
        /// The file.
        path: PathBuf,
        /// The error in the record.
        why: String,
    },
    /// Refused, with the reason as a sentence.
    #[error("{0}")]
    Refused(String),
    /// A file can't be read or written.
    #[error("{} can't be {what}: {source}", path.display())]
    Io {
        /// What was tried, such as `read`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A user's file can't be written.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// An error of libgit2.
    #[error(transparent)]
    Git(#[from] VcsError),
}

impl GitHubError {
    pub(crate) fn io(what: &'static str, path: &Path, source: io::Error) -> GitHubError {
        GitHubError::Io { what, path: path.to_owned(), source }
    }
}

/// Returns an untrusted text for a message: one line, bounded.
pub(crate) fn quoted(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(MAX_QUOTED_CHARS).collect()
}

fn token_advice(has_token: bool) -> &'static str {
    match has_token {
        true => "your token can't see it; give the token access to it, or store another one",
        false => "needs a token; make one in the settings of your account, and `tracebook secrets set GITHUB_TOKEN`",
    }
}

fn limit_advice(has_token: bool) -> &'static str {
    match has_token {
        true => "",
        false => " With a token, it allows many more: `tracebook secrets set GITHUB_TOKEN`.",
    }
}

/// Formats a time in the user's time zone; the day only if it isn't today.
fn format_time(seconds: Option<i64>) -> String {
    let Some(time) = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok()) else {
        return "later".to_owned();
    };
    let (time, now) = (time.to_zoned(jiff::tz::TimeZone::system()), jiff::Zoned::now());
    match time.date() == now.date() {
        true => time.strftime("%H:%M").to_string(),
        false => time.strftime("%Y-%m-%d %H:%M").to_string(),
    }
}

fn named_files(files: &[String]) -> String {
    let shown = files.iter().take(MAX_NAMED_FILES).map(|file| quoted(file)).collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(MAX_NAMED_FILES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
