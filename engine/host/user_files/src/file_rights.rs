//! Permissions of files and folders: which are programs, and what only their owner may read. On systems other than
//! Unix, a file inherits its permissions from its folder, and none is marked as a program.

use std::fs::{DirBuilder, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Returns whether its owner may run a file.
pub fn is_executable(meta: &Metadata) -> bool {
    has_mode(meta, 0o100)
}

/// Returns whether anyone may run a file.
pub fn is_executable_by_anyone(meta: &Metadata) -> bool {
    has_mode(meta, 0o111)
}

/// Lets only the owner read and write the files that these options create.
pub fn make_private(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}

/// Creates a folder that only its owner can access.
///
/// # Errors
/// Returns the I/O error if the folder exists or can't be created.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    private_folder_builder().create(folder)
}

/// Creates a folder that only its owner can access, and the folders above it, unless they exist.
///
/// # Errors
/// Returns the I/O error if the folder can't be created.
pub fn create_private_folders(folder: &Path) -> io::Result<()> {
    private_folder_builder().recursive(true).create(folder)
}

/// Takes the permissions for a folder away from everyone but its owner.
///
/// # Errors
/// Returns the I/O error if the permissions can't be set.
pub fn make_folder_private(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700));
    #[cfg(not(unix))]
    {
        let _ = folder;
        Ok(())
    }
}

fn private_folder_builder() -> DirBuilder {
    #[cfg_attr(not(unix), allow(unused_mut, reason = "there are no modes"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

fn has_mode(meta: &Metadata, mode: u32) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & mode != 0;
    #[cfg(not(unix))]
    {
        let _ = (meta, mode);
        false
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    #[test]
    fn what_is_private_is_read_by_its_owner_alone() {
        let above = tempfile::tempdir().expect("a folder");
        let (one, deep) = (above.path().join("one"), above.path().join("a/b"));
        create_private_folder(&one).expect("created");
        create_private_folder(&one).expect_err("it exists");
        create_private_folders(&deep).expect("created");
        create_private_folders(&deep).expect("it may exist");
        assert_eq!([mode(&one), mode(&deep)], [0o700, 0o700]);
        std::fs::set_permissions(&one, std::fs::Permissions::from_mode(0o755)).expect("set");
        make_folder_private(&one).expect("set");
        let (file, mut options) = (one.join("key"), OpenOptions::new());
        make_private(options.write(true).create_new(true));
        options.open(&file).expect("created");
        assert_eq!([mode(&one), mode(&file)], [0o700, 0o600]);
    }

    #[test]
    fn a_program_is_known_by_its_permissions() {
        let above = tempfile::tempdir().expect("a folder");
        let file = above.path().join("run");
        std::fs::write(&file, "").expect("written");
        for (mode, own, any) in [(0o644, false, false), (0o755, true, true), (0o611, false, true)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("set");
            let meta = std::fs::metadata(&file).expect("there");
            assert_eq!((is_executable(&meta), is_executable_by_anyone(&meta)), (own, any), "{mode:o}");
        }
    }
}
