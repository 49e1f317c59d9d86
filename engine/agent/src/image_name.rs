//! Names of container images, as the reference grammar of the OCI distribution specification has them
//! (<https://github.com/distribution/reference>): `registry.example:5000/team/image:tag@sha256:…`.

use std::fmt;

/// The registry of names without one.
const DEFAULT_REGISTRY: &str = "docker.io";
/// The folder of names without one at the default registry.
const DEFAULT_FOLDER: &str = "library";
/// Maximum length of a name in bytes, without tag and digest.
const MAX_NAME_BYTES: usize = 255;
/// Maximum length of a tag in bytes.
const MAX_TAG_BYTES: usize = 128;

/// A valid name of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageName {
    /// Host and perhaps port of the registry; `None` if the name has none.
    pub registry: Option<String>,
    /// The path at the registry.
    pub path: String,
    /// The tag; `None` if the name has none.
    pub tag: Option<String>,
    /// The digest, `sha256:` and 64 hexadecimal digits; `None` if the name has none.
    pub digest: Option<String>,
}

/// Why a text isn't the name of an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} is no name of an image; it takes one such as alpine:3.20 or ghcr.io/team/tool@sha256:…, with small letters \
     and digits"
)]
pub struct ImageNameError(String);

impl ImageName {
    /// Parses a name.
    ///
    /// # Errors
    /// Returns an error if it isn't one.
    pub fn parse(text: &str) -> Result<ImageName, ImageNameError> {
        let wrong = || ImageNameError(crate::prompt_quote::quote_inline(text, 100));
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        let last = rest.rfind('/').map_or(0, |at| at + 1);
        let (name, tag) = match rest.get(last..).and_then(|end| end.split_once(':')) {
            Some((end, tag)) => (rest.get(..last + end.len()).unwrap_or_default(), Some(tag)),
            None => (rest, None),
        };
        let (registry, path) = match name.split_once('/') {
            Some((first, path)) if first == "localhost" || first.contains(['.', ':']) => (Some(first), path),
            _ => (None, name),
        };
        let valid = name.len() <= MAX_NAME_BYTES
            && registry.is_none_or(is_registry)
            && path.split('/').all(is_path_part)
            && tag.is_none_or(is_tag)
            && digest.is_none_or(is_digest);
        let owned = |part: Option<&str>| part.map(ToOwned::to_owned);
        let parsed =
            ImageName { registry: owned(registry), path: path.to_owned(), tag: owned(tag), digest: owned(digest) };
        if valid { Ok(parsed) } else { Err(wrong()) }
    }

    /// Returns host and perhaps port of the registry that the image is fetched from.
    pub fn registry_text(&self) -> &str {
        self.registry.as_deref().unwrap_or(DEFAULT_REGISTRY)
    }

    /// Returns the host of the registry.
    pub fn registry_host(&self) -> &str {
        self.registry_text().split(':').next().unwrap_or_default()
    }

    /// Returns the whole name without tag and digest.
    pub fn repository_text(&self) -> String {
        let registry = self.registry_text();
        let folder = registry == DEFAULT_REGISTRY && !self.path.contains('/');
        if folder { format!("{registry}/{DEFAULT_FOLDER}/{}", self.path) } else { format!("{registry}/{}", self.path) }
    }

    /// Returns the tag, `latest` if the name has none.
    pub fn tag_text(&self) -> &str {
        self.tag.as_deref().unwrap_or("latest")
    }

    /// Returns the whole name. The digest counts more than the tag.
    pub fn full_text(&self) -> String {
        self.with_version(&self.repository_text())
    }

    /// Returns the names by which an engine may know the image that a user calls by this name: images that were made on
    /// this machine have no registry, or `localhost`.
    pub fn local_texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        if self.registry.is_none() {
            texts.push(self.with_version(&format!("localhost/{}", self.path)));
        }
        texts.push(self.full_text());
        texts
    }

    fn with_version(&self, repository: &str) -> String {
        match &self.digest {
            Some(digest) => format!("{repository}@{digest}"),
            None => format!("{repository}:{}", self.tag_text()),
        }
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full_text())
    }
}

fn is_registry(text: &str) -> bool {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    host.split('.').all(is_label) && port.is_none_or(is_port)
}

/// Returns whether a part of a path has small letters and digits, with `.`, `_`, `__` or any number of `-` between.
fn is_path_part(part: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [part.bytes().next(), part.bytes().last()];
    let separators = part.split(|letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit());
    ends.iter().all(|end| end.is_some_and(is_plain))
        && separators
            .into_iter()
            .all(|between| matches!(between, "" | "." | "_" | "__") || between.bytes().all(|byte| byte == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let mut bytes = tag.bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= MAX_TAG_BYTES
        && bytes.next().is_some_and(is_word)
        && bytes.all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

fn is_digest(digest: &str) -> bool {
    let hex = digest.strip_prefix("sha256:");
    hex.is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_read_and_written_in_full() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        for (text, full, host) in [
            ("alpine", "docker.io/library/alpine:latest", "docker.io"),
            ("team/tool:1.2", "docker.io/team/tool:1.2", "docker.io"),
            ("localhost/tracebook/mine", "localhost/tracebook/mine:latest", "localhost"),
            ("127.0.0.1:5000/a/b_c:V-1", "127.0.0.1:5000/a/b_c:V-1", "127.0.0.1"),
            ("ghcr.io/a/b--c__d.e", "ghcr.io/a/b--c__d.e:latest", "ghcr.io"),
        ] {
            let name = ImageName::parse(text).expect(text);
            assert_eq!((name.full_text().as_str(), name.registry_host()), (full, host));
            assert_eq!(ImageName::parse(full), Ok(ImageName::parse(&name.to_string()).expect("again")));
        }
        let pinned = ImageName::parse(&format!("alpine:3@{digest}")).expect("a digest");
        assert_eq!(pinned.full_text(), format!("docker.io/library/alpine@{digest}"));
        assert_eq!(ImageName::parse("alpine:3").expect("a tag").local_texts()[0], "localhost/alpine:3");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let long = "a".repeat(256);
        let all = [
            "",
            "Alpine",
            "a b",
            "../a",
            "a/../b",
            "a//b",
            "/a",
            "a/",
            "-a",
            "a-",
            "a..b",
            "a___b",
            "a:",
            "a:-x",
            "a@b",
            "a@sha256:12",
            "a?b",
            "a%2fb",
            "a#b",
            "http://a/b",
            "host:99999/a",
            "ho_st.x/a",
            "a\nb",
            "a:b:c",
            "ä",
            &long,
            "docker-archive:/etc/passwd",
            "oci:/tmp/x",
            "containers-storage:x/y",
        ];
        for text in all {
            assert!(ImageName::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_name_leaves_its_place_in_an_address(text in "[a-z0-9./:@_?#% \\\\-]{0,40}") {
            if let Ok(name) = ImageName::parse(&text) {
                let full = name.full_text();
                prop_assert!(!full.contains(['?', '#', '%', ' ', '\\']));
                prop_assert!(!full.contains("..") && !full.contains("//"));
            }
        }
    }
}
