//! Access tokens: what a program must show with every HTTP request.
//!
//! A token is `tb_ID_SECRET`. The workspace keeps its id and the hash of the secret, so that nobody who reads the file
//! can use it. The secret has 256 random bits: one round of BLAKE3 is as good as a slow hash.

use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use utoipa::ToSchema;

/// The file in the workspace that holds the tokens' hashes, and the file that is locked while it changes.
const TOKENS_FILE: &str = "access-tokens.json";
const TOKENS_LOCK_FILE: &str = "access-tokens.lock";
/// Maximum size of the file in bytes, and number of tokens.
const MAX_TOKENS_BYTES: u64 = 1 << 20;
const MAX_TOKENS: usize = 1_000;
/// Maximum length of a token's name in bytes.
const MAX_NAME_BYTES: usize = 100;

/// What a token allows. No scope includes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenScope {
    /// Read and search notes, todos, runs and events.
    Read,
    /// Change notes and memory.
    Write,
    /// Run cells.
    Run,
    /// Give tasks to agents.
    Agent,
    /// Decide calls that wait for approval.
    Approve,
    /// List and revoke tokens, and read the audit log.
    Admin,
}

impl TokenScope {
    /// All scopes.
    pub const ALL: [TokenScope; 6] = [
        TokenScope::Read,
        TokenScope::Write,
        TokenScope::Run,
        TokenScope::Agent,
        TokenScope::Approve,
        TokenScope::Admin,
    ];

    /// Returns the scope's name.
    pub fn name(self) -> &'static str {
        match self {
            TokenScope::Read => "read",
            TokenScope::Write => "write",
            TokenScope::Run => "run",
            TokenScope::Agent => "agent",
            TokenScope::Approve => "approve",
            TokenScope::Admin => "admin",
        }
    }

    /// Returns the scope with this name.
    pub fn from_name(name: &str) -> Option<TokenScope> {
        TokenScope::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// A token as the workspace keeps it: without the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredToken {
    id: String,
    name: String,
    /// BLAKE3 hash of the secret, in hexadecimal.
    hash: String,
    scopes: Vec<TokenScope>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    volume: Option<String>,
    created: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<i64>,
}

/// What is known about a token: all but the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct AccessToken {
    /// Its id, which is part of the token and no secret.
    pub id: String,
    /// The name that the user gave it.
    pub name: String,
    /// What it allows.
    pub scopes: Vec<TokenScope>,
    /// Name of the only volume that it reaches; missing for all volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// When it was created, in milliseconds since 1970.
    pub created: i64,
    /// When it expires, in milliseconds since 1970; missing if never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
}

impl AccessToken {
    /// Returns whether the token allows something.
    pub(crate) fn allows(&self, scope: TokenScope) -> bool {
        self.scopes.contains(&scope)
    }
}

/// A token to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenGrant {
    /// A name for the user.
    pub name: String,
    /// What it allows.
    pub scopes: Vec<TokenScope>,
    /// The only volume that it reaches.
    pub volume: Option<String>,
    /// For how many milliseconds it is valid; `None` for no end.
    pub lifetime: Option<i64>,
}

/// Why a token was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenRefusal {
    /// There is no such token, or its secret is another.
    #[error("the token isn't known; create one with `tracebook tokens create`")]
    Unknown,
    /// It has expired.
    #[error("the token has expired; create a new one with `tracebook tokens create`")]
    Expired,
    /// The file of tokens can't be read.
    #[error("the workspace's tokens can't be read")]
    Unreadable,
}

/// Why tokens can't be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum TokenStoreError {
    /// The file can't be read or written.
    #[error("{path} can't be used: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file isn't one of ours.
    #[error("{path} doesn't hold tokens ({source}); move it away to start with none")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The name can't be used.
    #[error("a token's name has 1 to {MAX_NAME_BYTES} bytes and no control characters")]
    Name,
    /// The name is in use.
    #[error("there is a token named {0} already; revoke it, or choose another name")]
    Taken(String),
    /// There are too many.
    #[error("there are {MAX_TOKENS} tokens; revoke some")]
    Full,
    /// No token has this id or name.
    #[error("there is no token {0}; `tracebook tokens` lists them")]
    Missing(String),
}

/// The tokens of a workspace.
#[derive(Clone, Debug)]
pub struct TokenStore {
    folder: PathBuf,
}

impl TokenStore {
    /// Returns the tokens of the workspace in this folder.
    pub fn new(workspace: &Path) -> TokenStore {
        TokenStore { folder: workspace.to_owned() }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(TOKENS_FILE)
    }

    fn io_error(path: &Path) -> impl FnOnce(std::io::Error) -> TokenStoreError {
        let path = path.to_owned();
        |source| TokenStoreError::Io { path, source }
    }

    fn read(&self) -> Result<Vec<StoredToken>, TokenStoreError> {
        let path = self.path();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(TokenStore::io_error(&path)(error)),
        };
        let mut bytes = Vec::new();
        file.take(MAX_TOKENS_BYTES).read_to_end(&mut bytes).map_err(TokenStore::io_error(&path))?;
        serde_json::from_slice(&bytes).map_err(|source| TokenStoreError::Damaged { path, source })
    }

    /// Changes the tokens while no other process can, and writes them durably.
    fn change<R>(
        &self,
        change: impl FnOnce(&mut Vec<StoredToken>) -> Result<R, TokenStoreError>,
    ) -> Result<R, TokenStoreError> {
        let lock_path = self.folder.join(TOKENS_LOCK_FILE);
        let lock = private_options().open(&lock_path).map_err(TokenStore::io_error(&lock_path))?;
        lock.lock().map_err(TokenStore::io_error(&lock_path))?;
        let mut tokens = self.read()?;
        let result = change(&mut tokens)?;
        let (path, new) = (self.path(), self.folder.join(format!("{TOKENS_FILE}.new")));
        let bytes = serde_json::to_vec_pretty(&tokens)
            .map_err(|source| TokenStoreError::Damaged { path: path.clone(), source })?;
        let written = private_options()
            .truncate(true)
            .open(&new)
            .and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()))
            .and_then(|()| std::fs::rename(&new, &path));
        written.map_err(TokenStore::io_error(&path))?;
        Ok(result)
    }

    /// Returns all tokens, oldest first.
    ///
    /// # Errors
    /// Returns an error if the file can't be read.
    pub fn list(&self) -> Result<Vec<AccessToken>, TokenStoreError> {
        Ok(self.read()?.into_iter().map(StoredToken::about).collect())
    }

    /// Creates a token. Returns what is known about it, and the token itself, which is kept nowhere.
    ///
    /// # Errors
    /// Returns an error if the name is taken or can't be used, or the file can't be written.
    pub fn create(&self, grant: TokenGrant, now: i64) -> Result<(AccessToken, String), TokenStoreError> {
        let is_name = (1..=MAX_NAME_BYTES).contains(&grant.name.len()) && !grant.name.contains(char::is_control);
        if !is_name {
            return Err(TokenStoreError::Name);
        }
        let (id, secret) = (hex(&rand::random::<[u8; 6]>()), hex(&rand::random::<[u8; 32]>()));
        let mut scopes = grant.scopes;
        scopes.sort_unstable();
        scopes.dedup();
        let token = StoredToken {
            id,
            name: grant.name,
            hash: blake3::hash(secret.as_bytes()).to_hex().to_string(),
            scopes,
            volume: grant.volume,
            created: now,
            expires: grant.lifetime.map(|lifetime| now.saturating_add(lifetime)),
        };
        let shown = format!("tb_{}_{secret}", token.id);
        let about = token.clone().about();
        self.change(|tokens| {
            if tokens.iter().any(|other| other.name == token.name || other.id == token.id) {
                return Err(TokenStoreError::Taken(token.name));
            }
            if tokens.len() >= MAX_TOKENS {
                return Err(TokenStoreError::Full);
            }
            tokens.push(token);
            Ok(())
        })?;
        Ok((about, shown))
    }

    /// Revokes the token with this id or name. The next request that shows it is refused.
    ///
    /// # Errors
    /// Returns an error if there is no such token, or the file can't be written.
    pub fn revoke(&self, word: &str) -> Result<AccessToken, TokenStoreError> {
        self.change(|tokens| {
            let at = tokens.iter().position(|token| token.id == word || token.name == word);
            let at = at.ok_or_else(|| TokenStoreError::Missing(word.to_owned()))?;
            Ok(tokens.remove(at).about())
        })
    }

    /// Returns whether there still is a token with this id, for answers that go on for long.
    pub(crate) fn holds(&self, id: &str, now: i64) -> bool {
        let tokens = self.read().unwrap_or_default();
        tokens.iter().any(|token| token.id == id && token.expires.is_none_or(|expires| expires > now))
    }

    /// Returns what a token allows. The file is read each time, so that revoking takes effect at once.
    pub(crate) fn check(&self, shown: &str, now: i64) -> Result<AccessToken, TokenRefusal> {
        let tokens = self.read().map_err(|_| TokenRefusal::Unreadable)?;
        let (id, secret) =
            shown.strip_prefix("tb_").and_then(|rest| rest.split_once('_')).ok_or(TokenRefusal::Unknown)?;
        let hash = blake3::hash(secret.as_bytes());
        let token = tokens.into_iter().find(|token| token.id == id).ok_or(TokenRefusal::Unknown)?;
        // Hashes are compared in constant time.
        let is_right = blake3::Hash::from_hex(&token.hash).is_ok_and(|stored| stored == hash);
        match token.expires {
            _ if !is_right => Err(TokenRefusal::Unknown),
            Some(expires) if expires <= now => Err(TokenRefusal::Expired),
            _ => Ok(token.about()),
        }
    }
}

impl StoredToken {
    fn about(self) -> AccessToken {
        let StoredToken { id, name, hash: _, scopes, volume, created, expires } = self;
        AccessToken { id, name, scopes, volume, created, expires }
    }
}

/// Returns options that open a file for writing which only the user can read.
pub(crate) fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(name: &str) -> TokenGrant {
        TokenGrant { name: name.to_owned(), scopes: vec![TokenScope::Read], volume: None, lifetime: Some(1_000) }
    }

    #[test]
    fn a_token_is_known_until_it_expires_or_is_revoked() {
        let folder = std::env::temp_dir().join(format!("tokens-{}", hex(&rand::random::<[u8; 8]>())));
        std::fs::create_dir(&folder).expect("made");
        let store = TokenStore::new(&folder);
        let (about, shown) = store.create(grant("phone"), 5_000).expect("created");
        assert!(matches!(store.create(grant("phone"), 5_000), Err(TokenStoreError::Taken(_))));
        assert_eq!(store.check(&shown, 5_999).expect("known"), about);
        assert_eq!(store.check(&shown, 6_000), Err(TokenRefusal::Expired));
        let secret = shown.rsplit('_').next().expect("a secret");
        assert!(!std::fs::read_to_string(store.path()).expect("text").contains(secret));
        let (empty, longer) = (format!("tb_{}_", about.id), format!("{shown}0"));
        for guessed in [&shown[..shown.len() - 1], "", "tb_", "tb__", &empty, &longer] {
            assert_eq!(store.check(guessed, 5_000), Err(TokenRefusal::Unknown), "{guessed}");
        }
        store.revoke("phone").expect("revoked");
        assert_eq!(store.check(&shown, 5_000), Err(TokenRefusal::Unknown));
        assert!(matches!(store.revoke("phone"), Err(TokenStoreError::Missing(_))));
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
