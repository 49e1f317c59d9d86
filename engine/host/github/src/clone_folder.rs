//! A new folder with the files of a repository's default branch.
//!
//! All is written into a hidden folder beside the new one, which gets its name at the end. What a killed program leaves
//! there is removed by the next try.

use crate::address::GitHubRepository;
use crate::api_client::{ApiClient, ApiControl};
use crate::api_error::GitHubError;
use crate::archive::fetch_archive;
use crate::blob_download::{WantedBlob, fetch_blobs};
use crate::endpoints::RepositoryApi;
use crate::folder_record::{FolderRecord, FolderState, lock_file};
use crate::remote_tree::{RemoteTree, folders_above};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Number of files from which on they are downloaded as an archive.
const MIN_ARCHIVE_FILES: usize = 20;
/// How the first bytes of a file are whose content is in Git LFS.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";
/// Maximum size of such a file in bytes.
const MAX_LFS_POINTER_BYTES: usize = 1_024;

/// The outcome of a clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloneSummary {
    /// Name of the branch.
    pub branch: String,
    /// Its last commit.
    pub commit: String,
    /// Number of files.
    pub files: usize,
    /// What isn't there, in sentences.
    pub remarks: Vec<String>,
}

/// Clones the default branch of a repository into a folder that doesn't exist.
///
/// # Errors
/// Returns a [`GitHubError`]; then there's no folder.
pub fn clone_repository(
    client: &ApiClient,
    repository: &GitHubRepository,
    folder: &Path,
    control: &ApiControl<'_>,
) -> Result<CloneSummary, GitHubError> {
    if folder.symlink_metadata().is_ok() {
        return Err(GitHubError::Taken(folder.to_owned()));
    }
    let place = ClonePlace::create(folder)?;
    let api = RepositoryApi { client, repository, control };
    control.report(&format!("Looking at {}", repository.display_text()));
    let branch = api.default_branch()?;
    let commit = api.branch_commit(&branch)?;
    let tree_hash = api.commit_tree(&commit)?;
    let tree = RemoteTree::fetch(&api, &tree_hash)?;
    let files = place.files();
    std::fs::create_dir(&files).map_err(|error| GitHubError::io("created", &files, error))?;
    download(&api, &commit, &tree, &place)?;
    let remarks = remarks(&tree, &files)?;
    let count = tree.files.len();
    let record = FolderRecord::new(client.address(), repository, (branch.clone(), commit.clone(), tree_hash), tree);
    let state = FolderState::create(&files, record)?;
    state.write_cache(client);
    control.check()?;
    place.finish(folder)?;
    Ok(CloneSummary { branch, commit, files: count, remarks })
}

fn download(api: &RepositoryApi<'_>, commit: &str, tree: &RemoteTree, place: &ClonePlace) -> Result<(), GitHubError> {
    let files = place.files();
    let folders: BTreeSet<&str> = tree.files.keys().flat_map(|path| folders_above(path)).collect();
    for folder in folders {
        let folder = files.join(folder);
        std::fs::create_dir_all(&folder).map_err(|error| GitHubError::io("created", &folder, error))?;
    }
    let write = |path: &str, bytes: &[u8]| {
        let is_program = tree.files.get(path).is_some_and(|file| file.is_program);
        write_new(&files.join(path), bytes, is_program)
    };
    let mut done = BTreeSet::new();
    if tree.files.len() >= MIN_ARCHIVE_FILES {
        let file = place.archive()?;
        match fetch_archive(api, commit, tree, file, &write) {
            Ok(found) => done = found,
            // Without the archive, files come one by one.
            Err(GitHubError::Malformed { .. } | GitHubError::NotFound { .. } | GitHubError::Unexpected { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let wanted = tree.files.iter().filter(|(path, _)| !done.contains(*path));
    let wanted: Vec<WantedBlob<'_>> = wanted.map(|(path, file)| tree.wanted(path, file)).collect();
    fetch_blobs(api, &wanted, &|blob, bytes| write(blob.path, &bytes))
}

/// Writes a file that doesn't exist. Its folder has been created by this program just now.
fn write_new(path: &Path, bytes: &[u8], is_program: bool) -> Result<(), GitHubError> {
    let fail = |error| GitHubError::io("written", path, error);
    let mut file = File::options().write(true).create_new(true).open(path).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    if is_program {
        make_program(path)?;
    }
    #[cfg(not(target_os = "linux"))]
    file.sync_all().map_err(fail)?;
    Ok(())
}

/// Gives everyone who may read a file the permission to run it.
pub(crate) fn make_program(path: &Path) -> Result<(), GitHubError> {
    set_program(path, true)
}

/// Makes a file a program, or no longer one.
pub(crate) fn set_program(path: &Path, is_program: bool) -> Result<(), GitHubError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let fail = |error| GitHubError::io("made a program", path, error);
        let mode = path.symlink_metadata().map_err(fail)?.permissions().mode();
        let mode = if is_program { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(fail)?;
    }
    #[cfg(not(unix))]
    let _ = (path, is_program); // files have no such permission
    Ok(())
}

/// Says what of the repository isn't in the folder.
fn remarks(tree: &RemoteTree, files: &Path) -> Result<Vec<String>, GitHubError> {
    let mut remarks = Vec::new();
    for kind in ["symbolic link", "submodule"] {
        let count = tree.left_out.values().filter(|found| *found == kind).count();
        if count > 0 {
            let (noun, verb) = if count == 1 { (kind.to_owned(), "isn't") } else { (format!("{kind}s"), "aren't") };
            remarks.push(format!("{count} {noun} of the repository {verb} in the folder, and stay in the repository."));
        }
    }
    let mut pointers = 0;
    for (path, size) in &tree.sizes {
        if (*size as usize) > MAX_LFS_POINTER_BYTES || (*size as usize) < LFS_POINTER.len() {
            continue;
        }
        let path = files.join(path);
        let bytes = std::fs::read(&path).map_err(|error| GitHubError::io("read", &path, error))?;
        pointers += usize::from(bytes.starts_with(LFS_POINTER));
    }
    if pointers > 0 {
        let noun = if pointers == 1 { "1 file is" } else { &format!("{pointers} files are") };
        remarks.push(format!("{noun} in Git LFS: the folder has only what names the content. Git gets it."));
    }
    Ok(remarks)
}

/// The hidden folder in which a clone is made. It's removed on drop.
struct ClonePlace {
    folder: PathBuf,
    _lock: File,
}

impl ClonePlace {
    /// Creates it beside the new folder, and removes what an earlier try has left.
    fn create(target: &Path) -> Result<ClonePlace, GitHubError> {
        let name = target.file_name().and_then(|name| name.to_str());
        let (Some(above), Some(name)) = (target.parent(), name) else {
            return Err(GitHubError::Refused(format!("A folder can't be created at {}.", target.display())));
        };
        std::fs::create_dir_all(above).map_err(|error| GitHubError::io("created", above, error))?;
        let folder = above.join(format!(".{name}.tracebook-clone"));
        match std::fs::create_dir(&folder) {
            Ok(()) => {}
            // Not through a link to another folder.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_folder(&folder) => {}
            Err(error) => return Err(GitHubError::io("created", &folder, error)),
        }
        let lock = lock_file(&folder.join("lock")).map_err(|error| GitHubError::io("opened", &folder, error))?;
        let lock = lock.ok_or_else(|| GitHubError::Locked(folder.clone()))?;
        let place = ClonePlace { folder, _lock: lock };
        for left in [place.files(), place.folder.join("archive")] {
            let removed = if is_folder(&left) { std::fs::remove_dir_all(&left) } else { std::fs::remove_file(&left) };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(GitHubError::io("removed", &left, error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(place)
    }

    fn files(&self) -> PathBuf {
        self.folder.join("files")
    }

    fn archive(&self) -> Result<File, GitHubError> {
        let path = self.folder.join("archive");
        let opened = File::options().read(true).write(true).create_new(true).open(&path);
        opened.map_err(|error| GitHubError::io("created", &path, error))
    }

    /// Gives the new folder its name, once all of it is on the disk.
    fn finish(self, target: &Path) -> Result<(), GitHubError> {
        let files = self.files();
        let fail = |error| GitHubError::io("created", target, error);
        #[cfg(target_os = "linux")]
        File::open(&files).and_then(|folder| Ok(rustix::fs::syncfs(&folder)?)).map_err(fail)?;
        match rename_folder(&files, target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(GitHubError::Taken(target.to_owned()));
            }
            done => done.map_err(fail)?,
        }
        store::disk::sync_folder(target.parent().unwrap_or(Path::new("/"))).map_err(fail)
    }
}

impl Drop for ClonePlace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder); // what is left is removed by the next try
    }
}

/// Renames a folder unless the target exists.
fn rename_folder(from: &Path, target: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, from, CWD, target, RenameFlags::NOREPLACE) {
            // Some file systems don't know it.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            done => return Ok(done?),
        }
    }
    match target.symlink_metadata() {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => std::fs::rename(from, target),
    }
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}
