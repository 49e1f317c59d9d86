//! Makes a fork: a worktree on a branch of its own, or a folder, with the files as they are now.

use crate::file_versions::MAX_MERGED_TEXT_BYTES;
use crate::fork_error::ForkError;
use crate::fork_record::{
    BaseFile, BaseFiles, ForkBranch, ForkPhase, ForkRecord, ForkStore, LeftOutFiles, branch_name,
};
use crate::project_walk::{MAX_FORK_FILES, is_dependency_folder, walk_project};
use agent::secrets::secret_files::secret_file_kind;
use git_program::{GitCaller, GitOperation};
use host::fs::atomic_write::modified_nanos;
use host::fs::confined_dir::{ConfinedFolder, ConfinedPath};
use std::fs::{File, OpenOptions};
use std::path::{Component, Path};
use store::disk::create_folder;
use store::{BlobHash, DocId};
use vcs::{FORK_SNAPSHOT_TRAILER, FileChangeKind, RepositoryFolder, VcsError};

/// Maximum size of a fork's files in bytes, unless a greater one is given.
pub const DEFAULT_FORK_LIMIT_BYTES: u64 = 2_000_000_000;
/// Maximum number of kept names of each kind of files that are left out.
const MAX_LEFT_OUT_NAMES: usize = 200;
/// Maximum number of files in the arguments of one Git process.
const MAX_NAMED_FILES: usize = 200;
/// Permissions of the folder with all forks: notes are private.
#[cfg(unix)]
const PRIVATE_FOLDER_MODE: u32 = 0o700;

/// The arguments for a new fork.
#[derive(Clone, Copy, Debug)]
pub struct ForkRequest<'a> {
    /// The fork's name; `None` for one that is made of the prompt.
    pub name: Option<&'a str>,
    /// What the agent is asked.
    pub prompt: &'a str,
    /// The volume, and its name.
    pub volume: (DocId, &'a str),
    /// The volume's folder.
    pub project: &'a Path,
    /// Current time in milliseconds since 1970.
    pub now: i64,
    /// Maximum size of the files in bytes.
    pub limit_bytes: u64,
}

/// The files to copy, and what isn't copied.
#[derive(Debug, Default)]
struct CopyPlan {
    paths: Vec<String>,
    /// Links, which are copied if they stay inside.
    links: Vec<String>,
    left_out: LeftOutFiles,
    /// Submodules, which stay empty folders.
    submodules: Vec<String>,
}

impl ForkStore {
    /// Makes a fork with the project's files as they are now.
    ///
    /// # Errors
    /// Returns [`ForkError::Refused`] if the name is wrong or taken, or if the repository isn't in a state to begin a
    /// branch from, and [`ForkError::TooLarge`]. Nothing is left of the fork then.
    pub fn create(&self, request: ForkRequest<'_>) -> Result<ForkRecord, ForkError> {
        let _only = crate::adoption::one_at_a_time();
        let name = self.free_name(request.name, request.prompt)?;
        let repository = open_forkable(request.project)?;
        let plan = match &repository {
            Some(repository) => plan_repository(repository, request.project)?,
            None => plan_folder(request.project)?,
        };
        let bytes = measure(request.project, &plan.paths);
        if bytes > request.limit_bytes {
            return Err(ForkError::TooLarge { bytes, files: plan.paths.len(), limit: request.limit_bytes });
        }
        let git = match &repository {
            Some(repository) => {
                let (top, prefix) = repository.place();
                let branch = branch_name(&name);
                if repository.branches()?.iter().any(|known| known.name == branch && !known.remote) {
                    return Err(ForkError::Refused(format!(
                        "the repository has a branch {branch} already; choose another name, or delete the branch"
                    )));
                }
                let commit = repository.branch_state()?.head.unwrap_or_default();
                Some(ForkBranch { top, prefix: prefix.to_owned(), branch, commit, snapshot: None })
            }
            None => None,
        };
        let mut fork = ForkRecord {
            name,
            volume: request.volume.0,
            volume_name: request.volume.1.to_owned(),
            project: request.project.to_owned(),
            created: request.now,
            phase: ForkPhase::Making,
            git,
            files: 0,
            bytes: 0,
            left_out: plan.left_out.clone(),
            adoptions: Vec::new(),
            states: Vec::new(),
        };
        self.make_private_folder(&fork.name)?;
        self.save(&fork)?;
        match self.fill(&mut fork, &plan, request.limit_bytes) {
            Ok(()) => Ok(fork),
            Err(error) => {
                // If this fails, too, the next start reports the rest.
                let _ = self.remove(&mut fork);
                Err(error)
            }
        }
    }

    fn make_private_folder(&self, name: &str) -> Result<(), ForkError> {
        let folder = self.fork_folder(name);
        create_folder(&folder).map_err(|error| ForkError::io("making", &folder, &error))?;
        #[cfg(unix)]
        for folder in folder.parent().into_iter().chain([folder.as_path()]) {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(PRIVATE_FOLDER_MODE);
            std::fs::set_permissions(folder, mode).map_err(|error| ForkError::io("making", folder, &error))?;
        }
        Ok(())
    }

    fn fill(&self, fork: &mut ForkRecord, plan: &CopyPlan, limit_bytes: u64) -> Result<(), ForkError> {
        let tree = self.tree_folder(&fork.name);
        if let Some(git) = &fork.git {
            let add =
                GitOperation::AddWorktree { folder: tree.clone(), branch: git.branch.clone(), at: git.commit.clone() };
            // As for agents: no hook of the repository runs.
            git_program::run(&git.top, &add, GitCaller::Agent, &mut |_| {}, &|| false)?;
        }
        let files = self.files_folder(fork);
        create_folder(&files).map_err(|error| ForkError::io("making", &files, &error))?;
        if fork.git.is_some() {
            RepositoryFolder::open(&files)?.index_last_commit()?;
        }
        let open = |folder: &Path| {
            ConfinedFolder::open_chosen(folder).map_err(|refused| ForkError::Refused(refused.to_string()))
        };
        let (from, to) = (open(&fork.project)?, open(&files)?);
        for submodule in &plan.submodules {
            to.open_or_create_folder(submodule).map_err(|refused| ForkError::Refused(refused.to_string()))?;
        }
        let base_folder = self.base_text_path(&fork.name, BlobHash([0; 32]));
        if let Some(folder) = base_folder.parent() {
            create_folder(folder).map_err(|error| ForkError::io("making", folder, &error))?;
        }
        let mut base = BaseFiles::new();
        for path in &plan.paths {
            // A file that is gone by now, or can't be read, isn't what the user sees either.
            let Some(file) = self.copy_file(&fork.name, &from, &to, path)? else { continue };
            fork.bytes += file.size;
            if fork.bytes > limit_bytes {
                return Err(ForkError::TooLarge { bytes: fork.bytes, files: plan.paths.len(), limit: limit_bytes });
            }
            base.insert(path.clone(), file);
        }
        for link in &plan.links {
            if !copy_link(&fork.project, &to, link) {
                push_name(&mut fork.left_out.links, link);
            }
        }
        if let Some(git) = &mut fork.git {
            git.snapshot = commit_uncommitted(&files, &fork.name)?;
        }
        fork.files = base.len();
        self.save_base(&fork.name, &base)?;
        sync_files(&self.fork_folder(&fork.name));
        fork.phase = ForkPhase::Ready;
        self.save(fork)
    }

    /// Copies a file, as a clone where the file system can share its blocks. Returns what it was.
    fn copy_file(
        &self,
        name: &str,
        from: &ConfinedFolder,
        to: &ConfinedFolder,
        path: &str,
    ) -> Result<Option<BaseFile>, ForkError> {
        let Ok((mut source, meta)) = from.open_regular_file(path) else { return Ok(None) };
        let (folder, file_name) =
            to.open_parent(path, true).map_err(|refused| ForkError::Refused(refused.to_string()))?;
        let place = folder.join(&file_name);
        let fail = |error: std::io::Error| ForkError::io("copying", Path::new(path), &error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o700 | 0o600;
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
        }
        let mut copy = options.open(&place).map_err(fail)?;
        let size = std::io::copy(&mut source, &mut copy).map_err(fail)?;
        let bytes = read_small(&place, size).map_err(fail)?;
        let hash = match &bytes {
            Some(bytes) => BlobHash::of(bytes),
            None => hash_file(&place).map_err(fail)?,
        };
        let is_text = |bytes: &Vec<u8>| !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok();
        let text = bytes.filter(is_text);
        if let Some(text) = &text {
            let kept = self.base_text_path(name, hash);
            if !kept.exists() {
                std::fs::write(&kept, text).map_err(|error| ForkError::io("copying", &kept, &error))?;
            }
        }
        let modified = copy.metadata().map_err(fail)?;
        Ok(Some(BaseFile { hash, size, modified: modified_nanos(&modified), is_kept: text.is_some() }))
    }
}

/// Returns the repository that a worktree can be made of; `None` if the folder isn't in one.
fn open_forkable(project: &Path) -> Result<Option<RepositoryFolder>, ForkError> {
    let repository = match RepositoryFolder::open(project) {
        Ok(repository) => repository,
        Err(VcsError::None(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if repository.is_ignored_folder()? {
        return Ok(None);
    }
    let state = repository.branch_state()?;
    if let Some(under_way) = state.under_way {
        return Err(ForkError::Refused(format!(
            "a {under_way} is under way in the repository; end it first, since a fork begins at a commit"
        )));
    }
    if state.head.is_none() {
        return Err(ForkError::Refused(
            "the repository has no commit yet, and a fork begins at one; commit something first".to_owned(),
        ));
    }
    // Git runs these whatever folder of hooks it's told to use.
    if let Some(hook) = repository.own_program_settings()?.iter().find(|name| name.starts_with("hook.")) {
        return Err(ForkError::Refused(format!(
            "the repository's own .git/config names a hook ({hook}), and no hook runs for a fork; move it to your own \
             Git configuration first"
        )));
    }
    let is_conflict = |change: &vcs::FileChange| change.unstaged == Some(FileChangeKind::Conflicted);
    if let Some(file) = repository.changes()?.0.iter().find(|change| is_conflict(change)) {
        return Err(ForkError::Refused(format!("{} is in conflict in the repository; resolve it first", file.path)));
    }
    Ok(Some(repository))
}

/// Commits on the fork's branch what isn't committed in the project, so that an agent's commit has only the agent's
/// changes. Returns the commit; `None` if all is committed.
fn commit_uncommitted(files: &Path, fork: &str) -> Result<Option<String>, ForkError> {
    let repository = RepositoryFolder::open(files)?;
    let message = format!(
        "Files as they were when the fork {fork} began\n\nThis is what wasn't committed in the project. The commit \
         stays in the\nfork: it's neither adopted nor pushed.\n\n{FORK_SNAPSHOT_TRAILER}{fork}\n"
    );
    // Filters are programs. Those that the repository's own settings name don't run; a merge driver isn't used here,
    // nor what is on the way to a remote.
    let is_unused = |name: &String| name.starts_with("merge.") || name.starts_with("http.");
    let runs_filters = repository.own_program_settings()?.iter().all(is_unused);
    let mut stage_filtered = |names: &[String]| {
        for names in names.chunks(MAX_NAMED_FILES).filter(|_| runs_filters) {
            let add = GitOperation::Add { files: names.to_vec() };
            // What can't be staged stays uncommitted, as it is in the project.
            let _ = git_program::run(files, &add, GitCaller::Agent, &mut |_| {}, &|| false);
        }
    };
    Ok(repository.commit_snapshot(&message, &mut stage_filtered)?)
}

fn push_name(names: &mut Vec<String>, name: &str) {
    if names.len() < MAX_LEFT_OUT_NAMES {
        names.push(name.to_owned());
    }
}

fn plan_repository(repository: &RepositoryFolder, project: &Path) -> Result<CopyPlan, ForkError> {
    let found = repository.project_files()?;
    let mut plan = CopyPlan::default();
    found.ignored.iter().for_each(|name| push_name(&mut plan.left_out.ignored, name));
    found.nested.iter().for_each(|name| push_name(&mut plan.left_out.nested, name));
    plan.submodules = found.nested;
    let untracked = found.untracked.into_iter().map(|path| (path, false));
    for (path, is_tracked) in found.tracked.into_iter().map(|path| (path, true)).chain(untracked) {
        if !is_tracked && secret_file_kind(&path).is_some() {
            push_name(&mut plan.left_out.secret, &path);
            continue;
        }
        match ConfinedPath::new(project, &path).metadata() {
            Ok(meta) if meta.is_file() => plan.paths.push(path),
            Ok(meta) if meta.is_symlink() => plan.links.push(path),
            Ok(_) | Err(_) => {} // it's gone, or something else has its name
        }
    }
    check_count(plan)
}

fn plan_folder(project: &Path) -> Result<CopyPlan, ForkError> {
    let folder = ConfinedFolder::open_chosen(project).map_err(|refused| ForkError::Refused(refused.to_string()))?;
    let found = walk_project(&folder, &|folder, _| is_dependency_folder(folder))?;
    let mut plan = CopyPlan { links: found.links, ..CopyPlan::default() };
    found.left_out.iter().for_each(|name| push_name(&mut plan.left_out.ignored, name));
    for (path, _) in found.files {
        match secret_file_kind(&path) {
            Some(_) => push_name(&mut plan.left_out.secret, &path),
            None => plan.paths.push(path),
        }
    }
    check_count(plan)
}

fn check_count(plan: CopyPlan) -> Result<CopyPlan, ForkError> {
    match plan.paths.len() > MAX_FORK_FILES {
        true => Err(ForkError::Refused(format!("a fork has at most {MAX_FORK_FILES} files"))),
        false => Ok(plan),
    }
}

/// Returns the size of these files in bytes.
fn measure(project: &Path, paths: &[String]) -> u64 {
    let size = |path: &String| std::fs::symlink_metadata(project.join(path)).map_or(0, |meta| meta.len());
    paths.iter().map(size).sum()
}

/// Copies a link that stays inside the project. Returns whether it did.
fn copy_link(project: &Path, to: &ConfinedFolder, path: &str) -> bool {
    let Ok(target) = std::fs::read_link(project.join(path)) else { return false };
    let stays_inside = {
        let mut depth = Path::new(path).components().count() as i64 - 1;
        target.components().all(|part| {
            depth += match part {
                Component::Normal(_) => 1,
                Component::ParentDir => -1,
                Component::CurDir => 0,
                Component::RootDir | Component::Prefix(_) => i64::from(i32::MIN),
            };
            depth >= 0
        })
    };
    // On the way may be other links.
    let leads_inside = || {
        let real = std::fs::canonicalize(project.join(path)).ok();
        std::fs::canonicalize(project).is_ok_and(|root| real.is_some_and(|real| real.starts_with(root)))
    };
    if !stays_inside || !leads_inside() {
        return false;
    }
    let Ok((folder, name)) = to.open_parent(path, true) else { return false };
    #[cfg(unix)]
    return std::os::unix::fs::symlink(&target, folder.join(&name)).is_ok();
    #[cfg(not(unix))]
    {
        let _ = (folder, name); // links need a permission there
        false
    }
}

fn read_small(file: &Path, size: u64) -> std::io::Result<Option<Vec<u8>>> {
    (size <= MAX_MERGED_TEXT_BYTES).then(|| std::fs::read(file)).transpose()
}

fn hash_file(file: &Path) -> std::io::Result<BlobHash> {
    let mut hasher = store::disk::BlobHasher::default();
    let mut file = File::open(file)?;
    let mut block = vec![0; 256 << 10];
    loop {
        match std::io::Read::read(&mut file, &mut block)? {
            0 => return Ok(hasher.finish()),
            count => hasher.update(&block[..count]),
        }
    }
}

/// Makes what was copied durable at once, since thousands of single files would take minutes.
fn sync_files(folder: &Path) {
    #[cfg(target_os = "linux")]
    if let Ok(folder) = File::open(folder) {
        // Without it, a power cut within seconds may damage the copy, and a merge then reports what it can't read.
        let _ = rustix::fs::syncfs(&folder);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = folder; // the system writes files out within seconds
}
