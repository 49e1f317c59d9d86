//! Addresses: of the API, and of repositories.

use crate::api_error::{GitHubError, quoted};
use url::{Host, Url};

/// Environment variable with another address of the API, such as that of GitHub Enterprise.
pub const API_ADDRESS_VARIABLE: &str = "GITHUB_API_URL";
/// The public API.
const DEFAULT_API: &str = "https://api.github.com/";
/// How the host of an API begins if it isn't a path of the web site.
const API_HOST_PREFIX: &str = "api.";
/// Maximum length of an owner's or repository's name in bytes.
const MAX_NAME_BYTES: usize = 100;
/// Maximum length of a branch's name in bytes.
const MAX_BRANCH_BYTES: usize = 250;

/// Where the API is. It's reached over https, or over http on this device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiAddress(Url);

impl ApiAddress {
    /// Reads an address; the public API without one.
    ///
    /// # Errors
    /// Returns [`GitHubError::ApiAddress`] if it isn't an https address, or has a password.
    pub fn read(given: Option<&str>) -> Result<ApiAddress, GitHubError> {
        let given = given.map(str::trim).filter(|given| !given.is_empty()).unwrap_or(DEFAULT_API);
        let wrong = || GitHubError::ApiAddress(quoted(given));
        let url = Url::parse(&format!("{}/", given.trim_end_matches('/'))).map_err(|_| wrong())?;
        let is_plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
        match is_plain && url.has_host() && (url.scheme() == "https" || is_loopback(&url)) {
            true => Ok(ApiAddress(url)),
            false => Err(wrong()),
        }
    }

    pub(crate) fn url(&self) -> &Url {
        &self.0
    }

    /// Returns the host, with its port if that isn't the usual one.
    pub fn host(&self) -> String {
        host_with_port(&self.0)
    }

    /// Returns the host of the web site that belongs to the API.
    fn web_host(&self) -> String {
        let host = self.host();
        host.strip_prefix(API_HOST_PREFIX).map_or(host.clone(), ToOwned::to_owned)
    }
}

/// Returns whether an address is http on this device.
pub(crate) fn is_loopback(url: &Url) -> bool {
    url.scheme() == "http"
        && match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        }
}

pub(crate) fn host_with_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or(host.to_owned(), |port| format!("{host}:{port}"))
}

/// A repository by owner and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitHubRepository {
    pub(crate) owner: String,
    pub(crate) name: String,
}

impl GitHubRepository {
    /// Reads `OWNER/NAME`, the address of a page, or an address that Git takes, if it's a repository of the API's host.
    ///
    /// # Errors
    /// Returns [`GitHubError::Address`] if it isn't.
    pub fn read(given: &str, api: &ApiAddress) -> Result<GitHubRepository, GitHubError> {
        let wrong = || GitHubError::Address { given: quoted(given), host: api.web_host() };
        let given = given.trim();
        let path = if let Ok(url) = Url::parse(given)
            && url.has_host()
        {
            let is_known = matches!(url.scheme(), "https" | "http" | "ssh" | "git");
            let host = url.host_str().unwrap_or_default();
            let is_same = host_with_port(&url) == api.web_host() || url.scheme() == "ssh" && host == api.web_host();
            match is_known && is_same {
                true => url.path().trim_start_matches('/').to_owned(),
                false => return Err(wrong()),
            }
        } else if let Some((user, path)) = given.split_once(':') {
            match user.rsplit('@').next() == Some(api.web_host().as_str()) {
                true => path.to_owned(),
                false => return Err(wrong()),
            }
        } else {
            given.to_owned()
        };
        let path = path.trim_end_matches('/');
        let (owner, name) = path.split_once('/').ok_or_else(wrong)?;
        GitHubRepository::new(owner, name.strip_suffix(".git").unwrap_or(name)).ok_or_else(wrong)
    }

    /// Returns a repository if its names are possible.
    pub(crate) fn new(owner: &str, name: &str) -> Option<GitHubRepository> {
        let is_name = |name: &str| {
            (1..=MAX_NAME_BYTES).contains(&name.len())
                && !name.starts_with('.')
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        (is_name(owner) && is_name(name)).then(|| GitHubRepository { owner: owner.to_owned(), name: name.to_owned() })
    }

    /// Returns `OWNER/NAME`.
    pub fn display_text(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }
}

/// Returns whether a text can be a branch's name, and nothing else in an address.
pub(crate) fn is_branch_name(text: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    (1..=MAX_BRANCH_BYTES).contains(&text.len())
        && !text.starts_with('-')
        && !text.contains("..")
        && !text.chars().any(|letter| letter.is_control() || letter.is_whitespace() || "\\?*[~^:".contains(letter))
        && text.split('/').all(is_part)
}

/// Returns whether a text is a hash as Git writes it.
pub(crate) fn is_hash(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_are_those_of_the_api_s_host() {
        let public = ApiAddress::read(None).expect("the default");
        let own = ApiAddress::read(Some("https://git.example.org/api/v3")).expect("an address");
        for given in [
            "ada/notes",
            "https://github.com/ada/notes",
            "https://github.com/ada/notes.git",
            "https://secret@github.com/ada/notes/",
            "git@github.com:ada/notes.git",
            "ssh://git@github.com:22/ada/notes.git",
        ] {
            let read = GitHubRepository::read(given, &public).expect(given);
            assert_eq!(read.display_text(), "ada/notes", "{given}");
        }
        assert!(GitHubRepository::read("https://git.example.org/ada/notes", &own).is_ok());
        for given in [
            "",
            "notes",
            "a/b/c",
            "../x",
            "ada/..",
            "ada/no tes",
            "https://example.org/ada/notes",
            "https://github.com.evil.org/a/b",
            "evil@example.org:a/b",
            "file:///ada/notes",
            "-x/%2e%2e",
        ] {
            assert!(GitHubRepository::read(given, &public).is_err(), "{given}");
        }
        assert!(GitHubRepository::read("https://github.com/ada/notes", &own).is_err());
    }

    #[test]
    fn the_api_is_reached_over_https_or_on_this_device() {
        for good in
            ["https://git.example.org/api/v3/", "http://127.0.0.1:8080", "http://[::1]:1/x", "http://localhost:1"]
        {
            assert!(ApiAddress::read(Some(good)).is_ok(), "{good}");
        }
        for bad in ["http://git.example.org", "ftp://x", "x", "https://u:p@x.org", "http://127.0.0.1.evil.org"] {
            assert!(ApiAddress::read(Some(bad)).is_err(), "{bad}");
        }
        for (name, is_good) in [("main", true), ("a/b-c", true), ("../x", false), ("a//b", false), ("a?b", false)] {
            assert_eq!(is_branch_name(name), is_good, "{name}");
        }
    }
}
