//! The endpoints of the API that are used, typed.

use crate::address::{GitHubRepository, is_branch_name, is_hash};
use crate::api_client::{ApiClient, ApiControl, ApiRequest, RAW_MEDIA, now};
use crate::api_error::{GitHubError, quoted};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::File;
use vcs::Commit;

/// Maximum number of commits of a list. GitHub has the same limit for a page.
pub(crate) const MAX_LISTED_COMMITS: usize = 100;
/// Maximum length of a listed author or summary in characters.
const MAX_LISTED_CHARS: usize = 500;

#[derive(Deserialize)]
struct RepositoryAnswer {
    default_branch: String,
}

#[derive(Deserialize)]
struct ReferenceAnswer {
    object: HashAnswer,
}

#[derive(Deserialize)]
struct HashAnswer {
    sha: String,
}

#[derive(Deserialize)]
struct CommitAnswer {
    sha: String,
    tree: HashAnswer,
}

#[derive(Deserialize)]
struct CreatedCommit {
    sha: String,
    author: Option<ListedAuthor>,
}

#[derive(Deserialize)]
struct ListedCommit {
    sha: String,
    commit: ListedCommitText,
}

#[derive(Deserialize)]
struct ListedCommitText {
    message: String,
    author: Option<ListedAuthor>,
    committer: Option<ListedAuthor>,
}

#[derive(Deserialize)]
struct ListedAuthor {
    #[serde(default)]
    name: String,
    date: Option<jiff::Timestamp>,
}

/// Entries of a tree, as GitHub lists them.
#[derive(Deserialize)]
pub(crate) struct TreeAnswer {
    pub(crate) tree: Vec<TreeEntryAnswer>,
    #[serde(default)]
    pub(crate) truncated: bool,
}

#[derive(Deserialize)]
pub(crate) struct TreeEntryAnswer {
    pub(crate) path: String,
    pub(crate) mode: String,
    pub(crate) sha: String,
    #[serde(default)]
    pub(crate) size: Option<u64>,
}

/// A change of a file for a new tree: its mode and hash, or `None` if it's deleted.
pub(crate) struct TreeChange {
    pub(crate) path: String,
    pub(crate) content: Option<(String, String)>,
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(MAX_LISTED_CHARS).collect()
}

/// A client for one repository.
pub(crate) struct RepositoryApi<'a> {
    pub(crate) client: &'a ApiClient,
    pub(crate) repository: &'a GitHubRepository,
    pub(crate) control: &'a ApiControl<'a>,
}

impl RepositoryApi<'_> {
    fn url(&self, rest: &[&str], query: &[(&str, &str)]) -> url::Url {
        let GitHubRepository { owner, name } = self.repository;
        let parts = ["repos", owner.as_str(), name.as_str()].into_iter().chain(rest.iter().copied());
        self.client.url(parts, query)
    }

    fn get<T: for<'de> Deserialize<'de>>(
        &self,
        rest: &[&str],
        query: &[(&str, &str)],
        what: &str,
    ) -> Result<T, GitHubError> {
        self.client.get_json(self.url(rest, query), what, self.control)
    }

    fn repository_text(&self) -> String {
        format!("repository {}", self.repository.display_text())
    }

    fn checked_hash(&self, hash: String) -> Result<String, GitHubError> {
        match is_hash(&hash) {
            true => Ok(hash),
            false => Err(self.client.malformed(&format!("“{}” as a hash", quoted(&hash)))),
        }
    }

    /// Returns the name of the default branch.
    pub(crate) fn default_branch(&self) -> Result<String, GitHubError> {
        let found: RepositoryAnswer = self.get(&[], &[], &self.repository_text())?;
        match is_branch_name(&found.default_branch) {
            true => Ok(found.default_branch),
            false => Err(self.client.malformed("a branch whose name can't be one")),
        }
    }

    /// Returns the last commit of a branch.
    pub(crate) fn branch_commit(&self, branch: &str) -> Result<String, GitHubError> {
        let parts: Vec<&str> = ["git", "ref", "heads"].into_iter().chain(branch.split('/')).collect();
        let what = format!("branch {branch} in {}", self.repository.display_text());
        let found: ReferenceAnswer = self.get(&parts, &[], &what)?;
        self.checked_hash(found.object.sha)
    }

    /// Returns the tree of a commit.
    pub(crate) fn commit_tree(&self, commit: &str) -> Result<String, GitHubError> {
        let what = format!("commit {commit} in {}", self.repository.display_text());
        let found: CommitAnswer = self.get(&["git", "commits", commit], &[], &what)?;
        match found.sha == commit {
            true => self.checked_hash(found.tree.sha),
            false => Err(self.client.malformed("another commit")),
        }
    }

    /// Returns the entries of a tree, and of all trees in it if `is_recursive`.
    pub(crate) fn tree(&self, tree: &str, is_recursive: bool) -> Result<TreeAnswer, GitHubError> {
        let query: &[(&str, &str)] = if is_recursive { &[("recursive", "1")] } else { &[] };
        let found: TreeAnswer = self.get(&["git", "trees", tree], query, &self.repository_text())?;
        match found.tree.iter().all(|entry| is_hash(&entry.sha)) {
            true => Ok(found),
            false => Err(self.client.malformed("a tree with hashes that can't be ones")),
        }
    }

    /// Returns the bytes of a file by its hash.
    pub(crate) fn blob(&self, hash: &str, limit: u64, path: &str) -> Result<Vec<u8>, GitHubError> {
        let what = format!("file {} in {}", quoted(path), self.repository.display_text());
        let url = self.url(&["git", "blobs", hash], &[]);
        let request = ApiRequest { method: "GET", url, media: RAW_MEDIA, body: None, what: &what, limit, file: None };
        Ok(self.client.send(request, None, self.control)?.body)
    }

    /// Downloads a commit's files as a compressed archive.
    pub(crate) fn archive(&self, commit: &str, file: &File, limit: u64) -> Result<(), GitHubError> {
        let what = self.repository_text();
        let url = self.url(&["tarball", commit], &[]);
        let media = "application/vnd.github+json";
        let request = ApiRequest { method: "GET", url, media, body: None, what: &what, limit, file: Some(file) };
        self.client.send(request, None, self.control).map(drop)
    }

    /// Returns commits, newest first, beginning at one.
    pub(crate) fn commits(&self, from: &str, limit: usize) -> Result<Vec<Commit>, GitHubError> {
        let limit = limit.clamp(1, MAX_LISTED_COMMITS).to_string();
        let query = [("sha", from), ("per_page", limit.as_str())];
        let found: Vec<ListedCommit> = self.get(&["commits"], &query, &self.repository_text())?;
        let commit = |listed: ListedCommit| -> Result<Commit, GitHubError> {
            let date = |who: &Option<ListedAuthor>| who.as_ref()?.date.map(jiff::Timestamp::as_second);
            let text = &listed.commit;
            Ok(Commit {
                author_time: date(&text.author).or_else(|| date(&text.committer)).unwrap_or_default(),
                commit_time: date(&text.committer).or_else(|| date(&text.author)).unwrap_or_default(),
                author: first_line(text.author.as_ref().map(|who| who.name.as_str()).unwrap_or_default()),
                summary: first_line(&text.message),
                id: self.checked_hash(listed.sha)?,
            })
        };
        found.into_iter().take(MAX_LISTED_COMMITS).map(commit).collect()
    }

    fn create(&self, rest: &[&str], body: &Value) -> Result<String, GitHubError> {
        let url = self.url(rest, &[]);
        let made: HashAnswer = self.client.send_json("POST", url, body, &self.repository_text(), self.control)?;
        self.checked_hash(made.sha)
    }

    /// Stores a file's bytes and returns their hash.
    pub(crate) fn create_blob(&self, bytes: &[u8]) -> Result<String, GitHubError> {
        use base64::Engine as _;
        let content = base64::engine::general_purpose::STANDARD.encode(bytes);
        self.create(&["git", "blobs"], &json!({"content": content, "encoding": "base64"}))
    }

    /// Stores a tree that differs from another by these changes.
    pub(crate) fn create_tree(&self, base: &str, changes: &[TreeChange]) -> Result<String, GitHubError> {
        let entry = |change: &TreeChange| match &change.content {
            Some((mode, hash)) => json!({"path": change.path, "mode": mode, "type": "blob", "sha": hash}),
            None => json!({"path": change.path, "mode": "100644", "type": "blob", "sha": null}),
        };
        let entries: Vec<Value> = changes.iter().map(entry).collect();
        self.create(&["git", "trees"], &json!({"base_tree": base, "tree": entries}))
    }

    /// Stores a commit, which no branch has yet. The owner of the token is its author.
    pub(crate) fn create_commit(&self, message: &str, tree: &str, parent: &str) -> Result<Commit, GitHubError> {
        let url = self.url(&["git", "commits"], &[]);
        let body = json!({"message": message, "tree": tree, "parents": [parent]});
        let made: CreatedCommit = self.client.send_json("POST", url, &body, &self.repository_text(), self.control)?;
        let author = made.author.unwrap_or(ListedAuthor { name: String::new(), date: None });
        let time = author.date.map_or_else(now, jiff::Timestamp::as_second);
        Ok(Commit {
            id: self.checked_hash(made.sha)?,
            author_time: time,
            commit_time: time,
            author: first_line(&author.name),
            summary: first_line(message),
        })
    }

    /// Makes a commit a branch's last one, if the branch's current one is before it.
    ///
    /// # Errors
    /// Returns [`GitHubError::BranchMoved`] if it isn't.
    pub(crate) fn advance_branch(&self, branch: &str, commit: &str) -> Result<(), GitHubError> {
        let parts: Vec<&str> = ["git", "refs", "heads"].into_iter().chain(branch.split('/')).collect();
        let body = json!({"sha": commit, "force": false});
        let url = self.url(&parts, &[]);
        let what = self.repository_text();
        let moved = self.client.send_json::<ReferenceAnswer>("PATCH", url, &body, &what, self.control);
        match moved {
            Ok(reference) if reference.object.sha == commit => Ok(()),
            Ok(_) => Err(self.client.malformed("another commit than the new one")),
            Err(GitHubError::Unexpected { status: 409 | 422, message, .. })
                if message.to_lowercase().contains("fast forward")
                    || message.to_lowercase().contains("fast-forward") =>
            {
                Err(GitHubError::BranchMoved(branch.to_owned()))
            }
            Err(error) => Err(error),
        }
    }
}
