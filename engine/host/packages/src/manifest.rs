//! A package's `package.yaml`: what it is, and what its content may do.

use crate::error::PackageError;
use semver::Version;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Name of the manifest in a package.
pub(crate) const MANIFEST_FILE: &str = "package.yaml";
/// Maximum length of a package's name in bytes.
const MAX_NAME_BYTES: usize = 48;
/// Maximum length of a text in the manifest, in characters.
const MAX_TEXT_CHARS: usize = 300;
/// Maximum number of permissions of each kind.
const MAX_PERMISSIONS: usize = 100;
/// Permission of agents without a list of tools.
pub(crate) const ALL_TOOLS: &str = "all";
/// What tools may be permitted to use.
const TOOL_PERMISSIONS: [&str; 4] = ["network", "fs", "ui", "process"];

/// What the content of a package may do, as its manifest says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PackagePermissions {
    /// What its tools may use: `network`, `fs`, `ui`, `process`.
    pub tools: BTreeSet<String>,
    /// Names of the tools that its agents may call; `all` for an agent that has no list of tools.
    pub agents: BTreeSet<String>,
}

impl PackagePermissions {
    /// Returns the permissions that aren't among `known`.
    pub fn beyond(&self, known: &PackagePermissions) -> PackagePermissions {
        let agents = match known.agents.contains(ALL_TOOLS) {
            true => BTreeSet::new(),
            false => self.agents.difference(&known.agents).cloned().collect(),
        };
        PackagePermissions { tools: self.tools.difference(&known.tools).cloned().collect(), agents }
    }

    /// Returns whether nothing is permitted.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.agents.is_empty()
    }

    /// Returns the permissions in words, a line for each kind.
    pub fn describe(&self) -> Vec<String> {
        let list = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let mut lines = Vec::new();
        if !self.tools.is_empty() {
            lines.push(format!("its tools may use {}", list(&self.tools)));
        }
        match self.agents.contains(ALL_TOOLS) {
            true => lines.push("its agents may call every tool".to_owned()),
            false if self.agents.is_empty() => {}
            false => lines.push(format!("its agents may call {}", list(&self.agents))),
        }
        lines
    }

    pub(crate) fn check(&self) -> Result<(), PackageError> {
        if let Some(unknown) = self.tools.iter().find(|word| !TOOL_PERMISSIONS.contains(&word.as_str())) {
            return Err(PackageError::Malformed(format!(
                "there is no permission “{unknown}” for tools; there are {}",
                TOOL_PERMISSIONS.join(", ")
            )));
        }
        let is_listable = |name: &String| {
            !name.is_empty() && name.len() <= 100 && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
        };
        if self.agents.len() > MAX_PERMISSIONS || !self.agents.iter().all(is_listable) {
            return Err(PackageError::Malformed(format!(
                "the permissions of agents are up to {MAX_PERMISSIONS} names of tools, or {ALL_TOOLS}"
            )));
        }
        Ok(())
    }
}

/// What a package says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageManifest {
    /// Its name, unique in a workspace.
    pub name: String,
    /// Its version, a semantic one.
    pub version: String,
    /// What it's for, in one line.
    pub description: String,
    /// Its license, as an SPDX expression.
    pub license: String,
    /// What its content may do.
    #[serde(default)]
    pub permissions: PackagePermissions,
}

impl PackageManifest {
    pub(crate) fn parse(bytes: &[u8]) -> Result<PackageManifest, PackageError> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| PackageError::Malformed(format!("{MANIFEST_FILE} isn't UTF-8 text")))?;
        let manifest: PackageManifest = text::yaml_edit::parse_typed(text)
            .map_err(|error| PackageError::Malformed(format!("{MANIFEST_FILE}: {}", error.without_snippet())))?;
        manifest.check()?;
        Ok(manifest)
    }

    /// Checks what another file says of a package, such as an index.
    pub(crate) fn check(&self) -> Result<(), PackageError> {
        if !is_package_name(&self.name) {
            return Err(PackageError::Malformed(format!(
                "a package's name has small letters, digits and hyphens, and at most {MAX_NAME_BYTES} of them: {}",
                self.name.chars().take(MAX_NAME_BYTES).collect::<String>()
            )));
        }
        self.read_version()?;
        for (key, text) in [("description", &self.description), ("license", &self.license)] {
            let is_line = !text.trim().is_empty() && !text.chars().any(char::is_control);
            if !is_line || text.chars().count() > MAX_TEXT_CHARS {
                return Err(PackageError::Malformed(format!(
                    "the {key} is one line of at most {MAX_TEXT_CHARS} characters"
                )));
            }
        }
        self.permissions.check()
    }

    /// Returns the version.
    ///
    /// # Errors
    /// Returns an error if it isn't a semantic version.
    pub fn read_version(&self) -> Result<Version, PackageError> {
        let shown: String = self.version.chars().take(60).collect();
        let short = Some(&self.version).filter(|version| version.len() <= 60);
        short.and_then(|version| Version::parse(version).ok()).ok_or_else(|| {
            PackageError::Malformed(format!("the version has three numbers, such as 1.0.0, and isn't “{shown}”"))
        })
    }
}

/// Returns whether this may be the name of a package.
pub fn is_package_name(name: &str) -> bool {
    let letters = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    letters
        && (2..=MAX_NAME_BYTES).contains(&name.len())
        && name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permissions(tools: &[&str], agents: &[&str]) -> PackagePermissions {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        PackagePermissions { tools: set(tools), agents: set(agents) }
    }

    #[test]
    fn permissions_beyond_others_are_those_that_were_not_approved() {
        let known = permissions(&["fs"], &["read_file"]);
        assert!(known.beyond(&known).is_empty() && permissions(&[], &[]).beyond(&known).is_empty());
        let more = permissions(&["fs", "network"], &["read_file", "shell"]);
        assert_eq!(more.beyond(&known), permissions(&["network"], &["shell"]));
        assert!(permissions(&[], &["shell"]).beyond(&permissions(&[], &["all"])).is_empty());
        assert_eq!(permissions(&[], &["all"]).beyond(&known), permissions(&[], &["all"]));
    }

    #[test]
    fn manifests_are_strict() {
        let good = "name: sail-kit\nversion: 1.2.0\ndescription: Logbooks\nlicense: MIT\n";
        let manifest = PackageManifest::parse(good.as_bytes()).expect("a manifest");
        assert_eq!((manifest.name.as_str(), manifest.permissions.is_empty()), ("sail-kit", true));
        for (from, to, about) in [
            ("sail-kit", "../etc", "small letters"),
            ("sail-kit", "Sail", "small letters"),
            ("1.2.0", "1.2", "three numbers"),
            ("license: MIT\n", "", "license"),
            ("Logbooks", "\"a\\nb\"", "one line"),
            ("license: MIT\n", "license: MIT\npermissions: {tools: [root]}\n", "no permission “root”"),
            ("license: MIT\n", "license: MIT\npermissions: {hosts: [x]}\n", "hosts"),
            ("license: MIT\n", "license: MIT\nscripts: [x]\n", "scripts"),
        ] {
            let refused = PackageManifest::parse(good.replace(from, to).as_bytes()).expect_err(about).to_string();
            assert!(refused.contains(about), "{about}: {refused}");
        }
    }
}
