//! What in a repository makes Git run programs or reach other places: its own settings, and those of its submodules.
//!
//! A repository that someone else has made may have them to attack who works in it.

use crate::errors::VcsError;
use crate::repository_folder::RepositoryFolder;
use crate::trusted_owners::open_checked;
use git2::{ConfigLevel, FileMode, IndexEntry, Repository, RepositoryOpenFlags};
use std::path::{Path, PathBuf};

/// Maximum number of submodules whose settings are read.
const MAX_SUBMODULES: usize = 500;

/// Settings of a repository that name programs or lead elsewhere, in lower case; `*` stands for any text.
const PROGRAM_SETTINGS: [&str; 44] = [
    // Git takes an alias for a program that isn't installed: one that reaches remotes, or has passwords.
    "alias.credential-*",
    "alias.remote-*",
    "core.alternaterefscommand",
    "core.askpass",
    "core.attributesfile",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.hookspath",
    "core.pager",
    "core.sshcommand",
    "credential.helper",
    "credential.*.helper",
    "diff.external",
    "diff.*.command",
    "diff.*.textconv",
    "fetch.bundleuri",
    "filter.*",
    "gc.recentobjectshook",
    "gpg.program",
    "gpg.*.program",
    "gpg.ssh.defaultkeycommand",
    "hook.*",
    // These write a file anywhere, or let another device read passwords.
    "http*cookiefile",
    "http*curloptresolve",
    "http*proxy",
    "http*savecookies",
    "http*sslcainfo",
    "http*sslverify",
    "include.path",
    "includeif.*",
    "lfs.customtransfer.*",
    "lfs.extension.*",
    "lfs*standalonetransferagent",
    "merge.*.driver",
    "protocol.*",
    "remote.*.proxy",
    "remote.*.receivepack",
    "remote.*.uploadpack",
    "remote.*.vcs",
    "sequence.editor",
    "trailer.*.cmd",
    "trailer.*.command",
    "url.*",
];

/// Settings of a submodule with which looking for changes in it runs programs. Git does that before many operations,
/// with the submodule's own settings.
const SUBMODULE_SETTINGS: [&str; 6] =
    ["core.fsmonitor", "filter.*", "hook.*", "include.path", "includeif.*", "lfs.extension.*"];

/// Settings whose value is the address of a remote, or the name of one.
const ADDRESS_SETTINGS: [&str; 5] =
    ["branch.*.pushremote", "branch.*.remote", "remote.*.pushurl", "remote.*.url", "remote.pushdefault"];

impl RepositoryFolder {
    /// Returns the addresses that Git fetches from and pushes to: those of all remotes, and of branches without one.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn remote_urls(&self) -> Result<Vec<String>, VcsError> {
        let (mut urls, mut names) = (Vec::new(), Vec::new());
        for name in self.repository.remotes()?.iter().filter_map(|name| name.ok().flatten()) {
            let remote = self.repository.find_remote(name)?;
            urls.extend(remote.url().ok().map(ToOwned::to_owned));
            urls.extend(remote.pushurl().ok().flatten().map(ToOwned::to_owned));
            names.push(name.to_owned());
        }
        // A remote can have several, and a branch can have an address instead of a remote.
        let mut named = Vec::new();
        self.repository.config()?.entries(None)?.for_each(|entry| {
            let name = String::from_utf8_lossy(entry.name_bytes()).to_lowercase();
            if entry.has_value() && ADDRESS_SETTINGS.iter().any(|pattern| matches_setting(pattern, &name)) {
                named.push(String::from_utf8_lossy(entry.value_bytes()).into_owned());
            }
        })?;
        let is_address = |text: &String| text.contains([':', '/']) && !names.contains(text);
        for address in named.into_iter().filter(is_address) {
            // With the user's abbreviations for addresses.
            let remote = self.repository.remote_anonymous(&address)?;
            let found =
                [remote.url().ok().map(ToOwned::to_owned), remote.pushurl().ok().flatten().map(ToOwned::to_owned)];
            for url in found.into_iter().flatten() {
                if !urls.contains(&url) {
                    urls.push(url);
                }
            }
        }
        Ok(urls)
    }

    /// Returns the settings in the repository's own configuration, and in those of its submodules, that make Git run
    /// programs or reach other places.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn program_settings(&self) -> Result<Vec<String>, VcsError> {
        let mut found = self.own_program_settings()?;
        found.extend(submodule_settings(&self.repository, &self.top)?);
        Ok(found)
    }

    /// Returns such settings without those of submodules, for work in a new worktree, which has none of them.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn own_program_settings(&self) -> Result<Vec<String>, VcsError> {
        let mut found = own_settings(&self.repository, &PROGRAM_SETTINGS)?;
        // Git still reads remotes from files, as it did before it had settings for them.
        for folder in ["branches", "remotes"] {
            let files = std::fs::read_dir(self.repository.commondir().join(folder));
            let names = files.into_iter().flatten().flatten().map(|file| file.file_name());
            found.extend(names.map(|name| format!("{folder}/{}", name.to_string_lossy())));
        }
        Ok(found)
    }
}

/// Returns those settings of a repository's own configuration that fit one of the patterns.
fn own_settings(repository: &Repository, patterns: &[&str]) -> Result<Vec<String>, VcsError> {
    let config = repository.config()?;
    let mut found = Vec::new();
    for level in [ConfigLevel::Local, ConfigLevel::Worktree] {
        let Ok(own) = config.open_level(level) else { continue }; // there's no file of this level
        own.entries(None)?.for_each(|entry| {
            let name = String::from_utf8_lossy(entry.name_bytes()).to_lowercase();
            if patterns.iter().any(|pattern| matches_setting(pattern, &name)) && !found.contains(&name) {
                found.push(name);
            }
        })?;
    }
    Ok(found)
}

/// Returns the settings of all submodules that are there, each with where it is.
fn submodule_settings(repository: &Repository, top: &Path) -> Result<Vec<String>, VcsError> {
    let mut found = Vec::new();
    let mut next = submodule_folders(repository, top)?;
    let mut count = 0;
    while let Some(folder) = next.pop() {
        count += 1;
        if count > MAX_SUBMODULES {
            found.push(format!("more than {MAX_SUBMODULES} submodules"));
            break;
        }
        let place = folder.strip_prefix(top).unwrap_or(&folder).display().to_string();
        // What can't be read here may still be read by Git.
        let Ok((settings, deeper)) = read_submodule(&folder) else {
            found.push(format!("the submodule {place}, which can't be read"));
            continue;
        };
        found.extend(settings.iter().map(|name| format!("{name} in the submodule {place}")));
        next.extend(deeper);
    }
    Ok(found)
}

/// Returns the settings of a submodule that run programs, and the folders of its own submodules.
fn read_submodule(folder: &Path) -> Result<(Vec<String>, Vec<PathBuf>), VcsError> {
    let submodule = open_checked(folder, folder, RepositoryOpenFlags::NO_SEARCH)?;
    Ok((own_settings(&submodule, &SUBMODULE_SETTINGS)?, submodule_folders(&submodule, folder)?))
}

/// Returns the folders of a repository's submodules that are there.
fn submodule_folders(repository: &Repository, top: &Path) -> Result<Vec<PathBuf>, VcsError> {
    let index = repository.index()?;
    let is_submodule = |entry: &IndexEntry| entry.mode == u32::from(FileMode::Commit);
    let folder = |entry: IndexEntry| top.join(path_of(&entry.path));
    let folders = index.iter().filter(is_submodule).map(folder);
    Ok(folders.filter(|folder| folder.join(".git").symlink_metadata().is_ok()).collect())
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

/// Returns whether a setting's name fits a pattern: its parts before and after `*` are there.
fn matches_setting(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => {
            name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_run_programs_are_known() {
        let known = |name: &str| PROGRAM_SETTINGS.iter().any(|pattern| matches_setting(pattern, name));
        for name in [
            "core.sshcommand",
            "credential.https://x.helper",
            "filter.lfs.clean",
            "url.ext::sh.insteadof",
            "http.proxy",
            "http.https://x.sslverify",
            "lfs.https://x.standalonetransferagent",
            "hook.x.command",
            "alias.remote-x",
        ] {
            assert!(known(name), "{name}");
        }
        for name in [
            "core.bare",
            "remote.origin.url",
            "branch.main.remote",
            "user.name",
            "core.autocrlf",
            "http.postbuffer",
            "lfs.repositoryformatversion",
            "alias.st",
        ] {
            assert!(!known(name), "{name}");
        }
    }
}
