//! The merge of three files as Git's own `merge-file` makes it, and the command that makes Git use the program's.

use crate::GitProgramError;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

/// What Git merged three versions of a file to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedFile {
    /// The bytes, with markers around conflicts.
    pub bytes: Vec<u8>,
    /// Number of conflicts; Git counts up to 127.
    pub conflicts: u8,
}

/// Merges three versions of a file as `git merge-file` does, and changes none of them. The paths are absolute.
///
/// # Errors
/// Returns [`GitProgramError::Other`] if Git refuses the files, such as binary ones.
pub fn merge_files(
    folder: &Path,
    [ours, base, theirs]: [&Path; 3],
    marker_length: u32,
) -> Result<MergedFile, GitProgramError> {
    let mut command = Command::new("git");
    command.args(["merge-file", "-p", "-q", &format!("--marker-size={marker_length}")]);
    command.args(["-L", "ours", "-L", "base", "-L", "theirs", "--"]).args([ours, base, theirs]);
    command.current_dir(folder).env("LC_ALL", "C.UTF-8").env_remove("LANGUAGE").stdin(Stdio::null());
    command.env_remove(crate::git_process::PASSPHRASE_VARIABLE);
    let done = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound if folder.is_dir() => GitProgramError::NotInstalled,
        _ => GitProgramError::NotStarted { folder: folder.to_owned(), source: error },
    })?;
    match done.status.code().and_then(|code| u8::try_from(code).ok()) {
        Some(conflicts) if conflicts < 128 => Ok(MergedFile { bytes: done.stdout, conflicts }),
        _ => Err(GitProgramError::Other(String::from_utf8_lossy(&done.stderr).trim().to_owned())),
    }
}

/// Name of the setting that makes Git merge notes with the program.
pub const MERGE_DRIVER_SETTING: &str = "merge.tracebook.driver";

/// Returns the value of [`MERGE_DRIVER_SETTING`] for a program, in the words of a shell. `None` if the path isn't
/// UTF-8.
pub fn merge_driver_command(program: &Path) -> Option<String> {
    let program = OsString::from(program).into_string().ok()?;
    // Git replaces `%` and one letter.
    let quoted = program.replace('\'', r"'\''").replace('%', "%%");
    Some(format!("'{quoted}' git merge-driver %O %A %B %P %L"))
}
