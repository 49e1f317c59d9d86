//! One-time codes with which a browser gets a token of its own, and the links that hold them.

use crate::access_tokens::{TokenGrant, TokenStoreError};
use crate::private_list::{PrivateList, private_options};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;

/// For how long a code can be used, in milliseconds.
const CODE_LIFETIME_MILLIS: i64 = 600_000;
/// Maximum number of codes that wait; with one more, the oldest is dropped.
const MAX_CODES: usize = 20;
/// Letters of codes: without those that look alike.
const CODE_LETTERS: &[u8; 30] = b"ABCDEFGHJKMNPQRSTUVWXYZ3456789";
/// Number of letters of a code: 58 random bits, for a secret that lives ten minutes and can't be tried quickly.
const CODE_LENGTH: usize = 12;
/// The file that says where the server is, so that links can be made beside it.
const ADDRESS_FILE: &str = "http-server.json";

/// Why a code was not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PairingRefusal {
    /// No such code was made, or long ago.
    #[error("That code isn't right. Check it, or make a new one with `tracebook tokens create NAME --qr`.")]
    Unknown,
    /// It was used.
    #[error("That code was used already. Make a new one with `tracebook tokens create NAME --qr`.")]
    Used,
    /// Its time is over.
    #[error("That code has expired. Make a new one with `tracebook tokens create NAME --qr`.")]
    Expired,
    /// The codes, or tokens, can't be read or written.
    #[error("The workspace's tokens can't be used: {0}")]
    Store(#[from] TokenStoreError),
}

impl From<crate::private_list::PrivateListError> for PairingRefusal {
    fn from(error: crate::private_list::PrivateListError) -> PairingRefusal {
        PairingRefusal::Store(error.into())
    }
}

/// A code as the workspace keeps it: only its hash.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredCode {
    /// BLAKE3 hash of the code's letters, in hexadecimal.
    hash: String,
    grant: TokenGrant,
    expires: i64,
    #[serde(default)]
    is_used: bool,
}

/// A link that pairs one browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairingLink {
    /// The whole link.
    pub url: String,
    /// The code in it, as people type it.
    pub code: String,
}

/// Why a link can't be made.
#[derive(Debug, thiserror::Error)]
pub enum PairingLinkError {
    /// There's no server to pair with.
    #[error("no server runs for this workspace; start `tracebook serve` first")]
    NoServer,
    /// The codes can't be written.
    #[error(transparent)]
    Store(#[from] TokenStoreError),
}

fn code_hash(code: &str) -> String {
    let letters: String = code.chars().filter(char::is_ascii_alphanumeric).collect();
    blake3::hash(letters.to_ascii_uppercase().as_bytes()).to_hex().to_string()
}

fn random_code() -> String {
    let mut random = rand::rng();
    let letters: Vec<u8> = (0..CODE_LENGTH).map(|_| CODE_LETTERS[random.random_range(0..CODE_LETTERS.len())]).collect();
    letters.chunks(4).map(String::from_utf8_lossy).collect::<Vec<_>>().join("-")
}

/// The codes of a workspace.
pub(crate) struct PairingCodes {
    list: PrivateList<StoredCode>,
}

impl PairingCodes {
    pub(crate) fn new(workspace: &Path) -> PairingCodes {
        PairingCodes { list: PrivateList::new(workspace, "pairing-codes") }
    }

    /// Makes a code for a token.
    fn create(&self, grant: TokenGrant, now: i64) -> Result<String, TokenStoreError> {
        let code = random_code();
        let stored = StoredCode {
            hash: code_hash(&code),
            grant,
            expires: now.saturating_add(CODE_LIFETIME_MILLIS),
            is_used: false,
        };
        self.list.change(|codes| {
            // Those that are over stay for a while, so that they can be told from wrong ones.
            codes.retain(|code| code.expires.saturating_add(CODE_LIFETIME_MILLIS) > now);
            let surplus = (codes.len() + 1).saturating_sub(MAX_CODES);
            codes.drain(..surplus);
            codes.push(stored);
            Ok::<(), TokenStoreError>(())
        })?;
        Ok(code)
    }

    /// Uses a code up, and returns the token that it's for.
    pub(crate) fn redeem(&self, code: &str, now: i64) -> Result<TokenGrant, PairingRefusal> {
        let hash = code_hash(code);
        self.list.change(|codes| {
            let found = codes.iter_mut().find(|code| code.hash == hash).ok_or(PairingRefusal::Unknown)?;
            if found.is_used {
                return Err(PairingRefusal::Used);
            }
            if found.expires <= now {
                return Err(PairingRefusal::Expired);
            }
            found.is_used = true;
            Ok(found.grant.clone())
        })
    }
}

#[derive(Serialize, Deserialize)]
struct ServerAddress {
    url: String,
}

/// Says in the workspace where the server is.
pub(crate) fn announce_address(workspace: &Path, url: &str) -> std::io::Result<()> {
    let text = serde_json::to_vec(&ServerAddress { url: url.to_owned() })?;
    private_options().truncate(true).open(workspace.join(ADDRESS_FILE))?.write_all(&text)
}

/// Removes what [`announce_address`] wrote.
pub(crate) fn withdraw_address(workspace: &Path) {
    // A file that stays is replaced at the next start.
    let _ = std::fs::remove_file(workspace.join(ADDRESS_FILE));
}

/// Makes a link that pairs one browser with the server of this workspace.
///
/// # Errors
/// Returns an error if no server runs, or the code can't be written.
pub fn pairing_link(workspace: &Path, grant: TokenGrant, now: i64) -> Result<PairingLink, PairingLinkError> {
    let address = std::fs::read(workspace.join(ADDRESS_FILE)).map_err(|_| PairingLinkError::NoServer)?;
    let address: ServerAddress = serde_json::from_slice(&address).map_err(|_| PairingLinkError::NoServer)?;
    let code = PairingCodes::new(workspace).create(grant, now)?;
    Ok(PairingLink { url: format!("{}/pair?code={code}", address.url), code })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_used_once_and_in_time() {
        let folder = std::env::temp_dir().join(format!("codes-{}", random_code()));
        std::fs::create_dir(&folder).expect("made");
        let codes = PairingCodes::new(&folder);
        let grant = TokenGrant { name: "phone".to_owned(), scopes: Vec::new(), volume: None, lifetime: None };
        let code = codes.create(grant.clone(), 1_000).expect("made");
        assert!(matches!(codes.redeem("AAAA-AAAA-AAAA", 1_000), Err(PairingRefusal::Unknown)));
        assert!(matches!(codes.redeem("", 1_000), Err(PairingRefusal::Unknown)));
        let typed = code.to_lowercase().replace('-', " ");
        assert_eq!(codes.redeem(&typed, 1_000).expect("right"), grant);
        assert!(matches!(codes.redeem(&code, 1_000), Err(PairingRefusal::Used)));
        let late = codes.create(grant, 1_000).expect("made");
        assert!(matches!(codes.redeem(&late, 1_000 + CODE_LIFETIME_MILLIS), Err(PairingRefusal::Expired)));
        let kept = std::fs::read_to_string(folder.join("pairing-codes.json")).expect("text");
        assert!(!kept.contains(&code) && !kept.contains(&late));
        assert!(matches!(pairing_link(&folder, codes_grant(), 1), Err(PairingLinkError::NoServer)));
        std::fs::remove_dir_all(folder).expect("removed");
    }

    fn codes_grant() -> TokenGrant {
        TokenGrant { name: "x".to_owned(), scopes: Vec::new(), volume: None, lifetime: None }
    }
}
