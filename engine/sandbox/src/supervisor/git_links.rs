//! Keeps symbolic links out of folders `.git`: a program outside of the walls that reads the repository would follow
//! them to files that the confined programs can't read.

use super::{CallingThread, ResolvedPath, errno_number};
use crate::landlock_rules::containing_root;
use libc::EACCES;
use rustix::fs::{AtFlags, FileType, Stat, statat};
use std::path::{Component, Path};

/// Returns whether a path is inside of a folder `.git`.
fn is_below_git(real: &Path) -> bool {
    let is_git = |part: Component<'_>| part.as_os_str().eq_ignore_ascii_case(".git");
    real.parent().is_some_and(|above| above.components().any(is_git))
}

impl CallingThread<'_> {
    /// Refuses to move a link, or a folder that may hold some, into a repository.
    pub(super) fn check_no_link_comes(&self, old: &ResolvedPath, new: &ResolvedPath) -> Result<(), i32> {
        if is_below_git(&old.real) || !is_below_git(&new.real) {
            return Ok(());
        }
        let about = statat(&old.folder, old.name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW).map_err(errno_number)?;
        self.check_no_link_in_git(Some(about), &new.real)
    }

    /// Refuses anything but a file to come into a repository. `about`: what comes; `None` stands for a symbolic link.
    pub(super) fn check_no_link_in_git(&self, about: Option<Stat>, new: &Path) -> Result<(), i32> {
        let is_file = about.is_some_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::RegularFile);
        if is_file || !is_below_git(new) || containing_root(new, &self.bounds.private).is_some() {
            return Ok(());
        }
        if let Some((_, below)) = self.counted_path(new) {
            self.bounds.refused.add_path(&below, "a link in a repository would lead Git elsewhere");
        }
        Err(EACCES)
    }
}
