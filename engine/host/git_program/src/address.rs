//! Addresses of repositories.

use std::path::Path;

/// Maximum length of an address in bytes.
const MAX_ADDRESS_BYTES: usize = 2_000;
/// Protocols that are used.
const PROTOCOLS: [&str; 5] = ["https", "http", "ssh", "git", "file"];

/// Address of a repository that Git understands and that can't be taken for an option or for a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryAddress(String);

/// Why an address isn't used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepositoryAddressError {
    /// It's empty, too long, or has control characters.
    #[error("this isn't the address of a repository: {0}")]
    Malformed(String),
    /// Its protocol isn't used.
    #[error("repositories are reached by https, ssh, http, git or file, not by this address: {0}")]
    Protocol(String),
}

impl RepositoryAddress {
    /// Reads a URL, `USER@HOST:PATH`, a folder on this device, or `OWNER/NAME`, which means GitHub.
    ///
    /// # Errors
    /// Returns an error if the address isn't one, or has a protocol that runs programs.
    pub fn read(text: &str, here: &Path) -> Result<RepositoryAddress, RepositoryAddressError> {
        let text = text.trim();
        let shown: String = text.chars().take(200).filter(|letter| !letter.is_control()).collect();
        let is_plain = !text.is_empty()
            && text.len() <= MAX_ADDRESS_BYTES
            && !text.starts_with('-')
            && !text.chars().any(|letter| letter.is_control() || letter.is_whitespace() && letter != ' ');
        if !is_plain {
            return Err(RepositoryAddressError::Malformed(shown));
        }
        if let Some((protocol, rest)) = text.split_once("://") {
            let is_known = PROTOCOLS.iter().any(|known| known.eq_ignore_ascii_case(protocol));
            // A host that begins with `-` would be an option of ssh.
            return match is_known && !rest.is_empty() && !host_of(text).is_some_and(|host| host.starts_with('-')) {
                true => Ok(RepositoryAddress(text.to_owned())),
                false => Err(RepositoryAddressError::Protocol(shown)),
            };
        }
        if text.contains("::") {
            return Err(RepositoryAddressError::Protocol(shown)); // Git runs a program of that name
        }
        if here.join(text).is_dir() {
            let folder = here.join(text).canonicalize().unwrap_or_else(|_| here.join(text));
            return Ok(RepositoryAddress(folder.to_string_lossy().into_owned()));
        }
        if let Some((user, path)) = text.split_once(':') {
            let is_host = !user.contains('/') && !user.is_empty() && !path.is_empty();
            let host = user.rsplit('@').next().unwrap_or_default();
            return match is_host && !host.starts_with('-') {
                true => Ok(RepositoryAddress(text.to_owned())),
                false => Err(RepositoryAddressError::Malformed(shown)),
            };
        }
        let is_name = |part: &str| {
            !part.is_empty()
                && !part.starts_with('.')
                && part.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
        };
        match text.split('/').collect::<Vec<_>>().as_slice() {
            [owner, name] if is_name(owner) && is_name(name) => {
                let name = name.strip_suffix(".git").unwrap_or(name);
                Ok(RepositoryAddress(format!("https://github.com/{owner}/{name}.git")))
            }
            _ => Err(RepositoryAddressError::Malformed(shown)),
        }
    }

    /// Returns the address as Git gets it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the host; `None` for a folder on this device.
    pub fn host(&self) -> Option<String> {
        host_of(&self.0)
    }

    /// Returns the address without a password or token, for people.
    pub fn display_text(&self) -> String {
        match self.0.split_once("://") {
            Some((protocol, rest)) => {
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                format!("{protocol}://{}/{path}", host.rsplit('@').next().unwrap_or_default())
            }
            None => self.0.clone(),
        }
    }
}

/// Returns the name of the folder that a clone of an address gets by itself: its last part, without `.git`.
pub fn repository_folder_name(address: &str) -> Option<&str> {
    let last = address.trim_end_matches('/').rsplit(['/', ':']).next()?;
    let name = last.strip_suffix(".git").unwrap_or(last);
    (!name.is_empty() && name != "." && name != "..").then_some(name)
}

/// Returns the host of a remote's address in lower case; `None` for a folder on this device.
pub fn host_of(address: &str) -> Option<String> {
    let host = match address.split_once("://") {
        Some((protocol, _)) if protocol.eq_ignore_ascii_case("file") => return None,
        Some((_, rest)) => rest.split('/').next()?.rsplit('@').next()?,
        None => {
            let (host, _) = address.split_once(':').filter(|(host, _)| !host.contains('/'))?;
            host.rsplit('@').next()?
        }
    };
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next()?,
        None => host.split(':').next()?,
    };
    (!host.is_empty()).then(|| host.to_lowercase())
}
