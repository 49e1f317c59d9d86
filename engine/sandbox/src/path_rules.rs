//! Rules for paths below folders that are open: some are hidden, some can only be read.
//!
//! Landlock only adds rights and can't take part of a folder away. The supervisor refuses what may not be changed.
//! Hidden paths get another mount on top, in a mount namespace of the process's own, so that nothing inside reads what
//! is below.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Rules for absolute paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathRules {
    /// What can't be read, changed or created. Folders look empty, and so do files.
    pub hidden: Vec<PathBuf>,
    /// What can't be changed or created.
    pub read_only: Vec<PathBuf>,
    /// Lists of what may be changed: a path has to be in each of them. No list allows everything.
    pub writable: Vec<Vec<PathBuf>>,
}

impl PathRules {
    /// Returns whether there's no rule.
    pub fn is_empty(&self) -> bool {
        self.hidden.is_empty() && self.read_only.is_empty() && self.writable.is_empty()
    }

    /// Returns the arguments from which [`PathRules::read_argument`] makes these rules again.
    pub fn to_args(&self) -> Vec<OsString> {
        let flagged = |flag: &str, paths: &[PathBuf]| -> Vec<OsString> {
            paths.iter().flat_map(|path| [OsString::from(flag), path.clone().into()]).collect()
        };
        let mut args = flagged("--hidden", &self.hidden);
        args.extend(flagged("--read-only", &self.read_only));
        for list in &self.writable {
            // The number of paths, since an empty list allows nothing.
            args.extend([OsString::from("--writable-list"), list.len().to_string().into()]);
            args.extend(flagged("--writable", list));
        }
        args
    }

    /// Takes a flag and its value from a command line. Returns whether the flag is one of rules.
    pub fn read_argument(&mut self, flag: &str, value: &str) -> bool {
        match flag {
            "--hidden" => self.hidden.push(PathBuf::from(value)),
            "--read-only" => self.read_only.push(PathBuf::from(value)),
            "--writable-list" => self.writable.push(Vec::new()),
            "--writable" => match self.writable.last_mut() {
                Some(list) => list.push(PathBuf::from(value)),
                None => self.writable.push(vec![PathBuf::from(value)]),
            },
            _ => return false,
        }
        true
    }

    /// Returns why a path may not be changed; `None` if no rule forbids it. The path has no symbolic links.
    pub fn write_refusal(&self, path: &Path) -> Option<&'static str> {
        let is_in = |list: &[PathBuf]| list.iter().any(|inside| path.starts_with(inside));
        if is_in(&self.hidden) {
            Some("sandbox.hidden names it")
        } else if is_in(&self.read_only) {
            Some("sandbox.read_only names it")
        } else if self.writable.iter().any(|list| !is_in(list)) {
            Some("sandbox.writable doesn't name it")
        } else {
            None
        }
    }

    /// Returns whether a rule is about something below this folder. If the folder were moved, the rule wouldn't hold.
    pub fn reaches_below(&self, folder: &Path) -> bool {
        let named = self.hidden.iter().chain(&self.read_only).chain(self.writable.iter().flatten());
        named.into_iter().any(|path| path.starts_with(folder) && path != folder)
    }

    /// Returns the rules with the real paths of what exists.
    #[cfg(target_os = "linux")]
    pub(crate) fn resolved(&self) -> PathRules {
        let real = |paths: &[PathBuf]| -> Vec<PathBuf> { paths.iter().map(|path| resolve_links(path)).collect() };
        PathRules {
            hidden: real(&self.hidden),
            read_only: real(&self.read_only),
            writable: self.writable.iter().map(|list| real(list)).collect(),
        }
    }
}

/// Returns a path without symbolic links; the part that doesn't exist stays.
pub fn resolve_links(path: &Path) -> PathBuf {
    let known = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    known.map_or_else(
        || path.to_owned(),
        |(above, real)| match path.strip_prefix(above) {
            Ok(rest) if rest.as_os_str().is_empty() => real,
            Ok(rest) => real.join(rest),
            Err(_) => path.to_owned(),
        },
    )
}

/// Why paths can't be hidden.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HidePathsError {
    /// The system gives this process no mounts of its own.
    #[error("the hidden paths of the sandbox need user namespaces, which this system refuses ({0})")]
    NoNamespace(String),
    /// Nothing can be mounted over a path.
    #[error("{path} can't be hidden ({why})")]
    Mount {
        /// The path.
        path: String,
        /// The system's error.
        why: String,
    },
    /// The system isn't Linux.
    #[error("the paths of the sandbox (hidden, read_only, writable) need Linux")]
    NotLinux,
}

/// Hides paths from this process and from what it starts, for good. What doesn't exist can't be made by the confined.
///
/// Must be called before the process has a second thread, and before it's confined.
///
/// # Errors
/// Returns an error if anything isn't hidden; the process must not run untrusted code then.
pub fn hide_paths(rules: &PathRules) -> Result<(), HidePathsError> {
    #[cfg(target_os = "linux")]
    return linux::hide(&rules.resolved().hidden);
    #[cfg(not(target_os = "linux"))]
    return if rules.is_empty() { Ok(()) } else { Err(HidePathsError::NotLinux) };
}

#[cfg(target_os = "linux")]
mod linux {
    use super::HidePathsError;
    use crate::raw_syscalls;
    use std::io::Error;
    use std::path::{Path, PathBuf};

    pub(super) fn hide(paths: &[PathBuf]) -> Result<(), HidePathsError> {
        let mut present: Vec<&PathBuf> = paths.iter().filter(|path| path.symlink_metadata().is_ok()).collect();
        if present.is_empty() {
            return Ok(());
        }
        // What's below a hidden folder can no longer be found.
        present.sort();
        let whole = present.clone();
        present.retain(|path| !whole.iter().any(|above| path.starts_with(above) && *path != *above));
        enter_namespace().map_err(|error| HidePathsError::NoNamespace(error.to_string()))?;
        for path in present {
            let failed = |error: i32| HidePathsError::Mount {
                path: path.display().to_string(),
                why: Error::from_raw_os_error(error).to_string(),
            };
            cover(path).map_err(failed)?;
        }
        Ok(())
    }

    /// Gives this process mounts of its own. Without the right to that, it gets a user namespace with the same user.
    fn enter_namespace() -> std::io::Result<()> {
        let failed = Error::from_raw_os_error;
        if raw_syscalls::unshare(libc::CLONE_NEWNS).is_err() {
            let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
            raw_syscalls::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS).map_err(failed)?;
            std::fs::write("/proc/self/setgroups", "deny")?;
            std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
            std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
        }
        // Mounts from here on stay in this namespace.
        raw_syscalls::mount(None, Path::new("/"), None, libc::MS_REC | libc::MS_PRIVATE, "").map_err(failed)
    }

    /// Puts something empty over a path.
    fn cover(path: &Path) -> Result<(), i32> {
        if path.is_dir() {
            let flags = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            return raw_syscalls::mount(Some("tmpfs"), path, Some("tmpfs"), flags, "size=4k,mode=555");
        }
        raw_syscalls::mount(Some("/dev/null"), path, None, libc::MS_BIND, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_pass_through_arguments_and_say_why() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let rules = PathRules {
            hidden: paths(&["/p/keys"]),
            read_only: paths(&["/p/lib"]),
            writable: vec![paths(&["/p/out", "/p/lib"]), Vec::new()],
        };
        let mut again = PathRules::default();
        let args: Vec<String> = rules.to_args().into_iter().filter_map(|word| word.into_string().ok()).collect();
        for pair in args.chunks(2) {
            assert!(again.read_argument(&pair[0], &pair[1]), "{pair:?}");
        }
        assert_eq!(again, rules);
        assert!(!again.read_argument("--network", ""));
        let rules = PathRules { writable: vec![paths(&["/p/out", "/p/lib"])], ..rules };
        let why = |path: &str| rules.write_refusal(Path::new(path));
        assert_eq!(why("/p/out/a"), None);
        assert_eq!(why("/p/keys/a"), Some("sandbox.hidden names it"));
        assert_eq!(why("/p/lib"), Some("sandbox.read_only names it"));
        assert_eq!(why("/p/outer"), Some("sandbox.writable doesn't name it"));
        assert!(rules.reaches_below(Path::new("/p")) && !rules.reaches_below(Path::new("/p/keys")));
        assert_eq!(PathRules::default().write_refusal(Path::new("/p")), None);
    }
}
