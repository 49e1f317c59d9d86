//! Access tokens: what a program must show with every HTTP request.
//!
//! A token is `tb_ID_SECRET`. The workspace keeps its id and the hash of the secret, so that nobody who reads the file
//! can use it. The secret has 256 random bits: one round of BLAKE3 is as good as a slow hash.

use crate::private_list::{PrivateList, PrivateListError};
use serde::{Deserialize, Serialize};
use std::path::Path;
use utoipa::ToSchema;

/// The file in the workspace that holds the tokens' hashes.
const TOKENS_FILE: &str = "access-tokens";
/// Maximum number of tokens.
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
    /// Propose changes over MCP. Each waits for the user's approval.
    Suggest,
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
    pub const ALL: [TokenScope; 7] = [
        TokenScope::Read,
        TokenScope::Write,
        TokenScope::Suggest,
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
            TokenScope::Suggest => "suggest",
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
    #[serde(default, skip_serializing_if = "is_false")]
    browser: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_false(value: &bool) -> bool {
    !value
}

/// What is known about a token: all but the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct AccessToken {
    /// Its id, which is part of the token and no secret.
    pub id: String,
    /// The name that the user gave it.
    pub name: String,
    /// The scopes that the token grants.
    pub scopes: Vec<TokenScope>,
    /// Name of the only volume that it reaches; missing for all volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// When it was created, in milliseconds since 1970.
    pub created: i64,
    /// When it expires, in milliseconds since 1970; missing if never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
    /// Whether a paired browser has it, as a cookie. It's then no token for programs.
    #[serde(default, skip_serializing_if = "is_false")]
    pub browser: bool,
}

impl AccessToken {
    /// Returns whether the token allows something.
    pub(crate) fn allows(&self, scope: TokenScope) -> bool {
        self.scopes.contains(&scope)
    }
}

/// A token to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenGrant {
    /// A name for the user.
    pub name: String,
    /// The scopes that the token grants.
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
    /// The file can't be used.
    #[error(transparent)]
    List(#[from] PrivateListError),
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
    list: PrivateList<StoredToken>,
}

impl TokenStore {
    /// Returns the tokens of the workspace in this folder.
    pub fn new(workspace: &Path) -> TokenStore {
        TokenStore { list: PrivateList::new(workspace, TOKENS_FILE) }
    }

    /// Returns all tokens, oldest first.
    ///
    /// # Errors
    /// Returns an error if the file can't be read.
    pub fn list(&self) -> Result<Vec<AccessToken>, TokenStoreError> {
        Ok(self.list.read()?.into_iter().map(StoredToken::about).collect())
    }

    /// Creates a token. Returns what is known about it, and the token itself, which is kept nowhere.
    ///
    /// # Errors
    /// Returns an error if the name is taken or can't be used, or the file can't be written.
    pub fn create(&self, grant: TokenGrant, now: i64) -> Result<(AccessToken, String), TokenStoreError> {
        self.add(grant, false, now)
    }

    /// Creates the token of a paired browser. If the name is taken, it gets a number.
    pub(crate) fn create_for_browser(
        &self,
        mut grant: TokenGrant,
        now: i64,
    ) -> Result<(AccessToken, String), TokenStoreError> {
        let name = grant.name.clone();
        for number in 2..=MAX_TOKENS {
            match self.add(grant.clone(), true, now) {
                Err(TokenStoreError::Taken(_)) => grant.name = format!("{name} {number}"),
                done => return done,
            }
        }
        Err(TokenStoreError::Full)
    }

    fn add(&self, grant: TokenGrant, browser: bool, now: i64) -> Result<(AccessToken, String), TokenStoreError> {
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
            browser,
        };
        let shown = format!("tb_{}_{secret}", token.id);
        let about = token.clone().about();
        self.list.change(|tokens| {
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
        self.list.change(|tokens| {
            let at = tokens.iter().position(|token| token.id == word || token.name == word);
            let at = at.ok_or_else(|| TokenStoreError::Missing(word.to_owned()))?;
            Ok(tokens.remove(at).about())
        })
    }

    /// Returns whether there still is a token with this id, for answers that go on for long.
    pub(crate) fn holds(&self, id: &str, now: i64) -> bool {
        let tokens = self.list.read().unwrap_or_default();
        tokens.iter().any(|token| token.id == id && token.expires.is_none_or(|expires| expires > now))
    }

    /// Returns what a program's token allows. The file is read each time, so that revoking takes effect at once.
    pub(crate) fn check(&self, shown: &str, now: i64) -> Result<AccessToken, TokenRefusal> {
        self.check_kind(shown, false, now)
    }

    /// Returns what the token in a browser's cookie allows.
    pub(crate) fn check_browser(&self, shown: &str, now: i64) -> Result<AccessToken, TokenRefusal> {
        self.check_kind(shown, true, now)
    }

    fn check_kind(&self, shown: &str, browser: bool, now: i64) -> Result<AccessToken, TokenRefusal> {
        let tokens = self.list.read().map_err(|_| TokenRefusal::Unreadable)?;
        let (id, secret) =
            shown.strip_prefix("tb_").and_then(|rest| rest.split_once('_')).ok_or(TokenRefusal::Unknown)?;
        let hash = blake3::hash(secret.as_bytes());
        let token = tokens.into_iter().find(|token| token.id == id && token.browser == browser);
        let token = token.ok_or(TokenRefusal::Unknown)?;
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
        let StoredToken { id, name, hash: _, scopes, volume, created, expires, browser } = self;
        AccessToken { id, name, scopes, volume, created, expires, browser }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
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
        assert!(!std::fs::read_to_string(folder.join("access-tokens.json")).expect("text").contains(secret));
        let (empty, longer) = (format!("tb_{}_", about.id), format!("{shown}0"));
        for guessed in [&shown[..shown.len() - 1], "", "tb_", "tb__", &empty, &longer] {
            assert_eq!(store.check(guessed, 5_000), Err(TokenRefusal::Unknown), "{guessed}");
        }
        assert_eq!(store.check_browser(&shown, 5_000), Err(TokenRefusal::Unknown));
        let (browser, cookie) = store.create_for_browser(grant("phone"), 5_000).expect("created");
        assert_eq!(browser.name, "phone 2");
        assert_eq!(store.check_browser(&cookie, 5_000), Ok(browser));
        assert_eq!(store.check(&cookie, 5_000), Err(TokenRefusal::Unknown));
        store.revoke("phone").expect("revoked");
        assert_eq!(store.check(&shown, 5_000), Err(TokenRefusal::Unknown));
        assert!(matches!(store.revoke("phone"), Err(TokenStoreError::Missing(_))));
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
