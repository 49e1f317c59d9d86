//! Adopts a fork's changes in the project, and takes that back. What is going to be written is on disk before the first
//! file changes, so that after a crash all of it can be finished or taken back.

use crate::file_versions::{FileVersion, read_version};
use crate::fork_error::ForkError;
use crate::fork_record::{AdoptionKind, AdoptionPhase, AdoptionRecord, AdoptionStep, ForkPhase, ForkRecord, ForkStore};
use crate::merge_plan::{ChangeSelection, ConflictPreference, MergeInput, chosen_changes, plan_merge};
use crate::project_commit::{ProjectCommit, commit_files, commit_obstacle};
use git_program::GitCaller;
use host::fs::atomic_write::{ReplaceOutcome, replace_file};
use host::fs::confined_dir::ConfinedFolder;
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::BlobHash;
use store::disk::BlobStore;

/// What to adopt, and how.
#[derive(Clone, Debug)]
pub struct AdoptRequest {
    /// The changes to adopt.
    pub selection: ChangeSelection,
    /// Version of the changes that the user has seen ([`ForkChanges::version`](crate::ForkChanges::version)): others
    /// aren't adopted. `None` for those that the fork has by then.
    pub seen: Option<String>,
    /// Whose version counts where both have changed the same.
    pub prefer: ConflictPreference,
    /// Message of the commit, if one is made.
    pub message: String,
    /// Current time in milliseconds since 1970.
    pub now: i64,
    /// Who wants it, for the user's `git`.
    pub caller: GitCaller,
}

/// What an adoption has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptionReport {
    /// The written files; none if the project had all of it already.
    pub steps: Vec<AdoptionStep>,
    /// What became of the commit.
    pub commit: ProjectCommit,
    /// Files that can't be adopted, and why.
    pub skipped: Vec<(String, String)>,
    /// What became of the notes' variables.
    pub variables: Vec<AdoptedVariables>,
}

/// What became of the variables that runs in a fork gave a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptedVariables {
    /// Path of the note.
    pub path: String,
    /// The fork of the note's variables that has them.
    pub branch: Option<String>,
    /// Why they aren't adopted, if so.
    pub problem: Option<String>,
}

/// Waits until no other request changes forks or projects.
pub(crate) fn one_at_a_time() -> MutexGuard<'static, ()> {
    static FORK_WORK: Mutex<()> = Mutex::new(());
    FORK_WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ForkStore {
    /// Adopts changes of a fork in the project.
    ///
    /// # Errors
    /// Returns [`ForkError::Conflicts`] if both have changed the same, and other errors if the fork isn't ready or a
    /// file can't be written. Nothing is adopted then.
    pub fn adopt(&self, name: &str, request: &AdoptRequest) -> Result<AdoptionReport, ForkError> {
        let _only = one_at_a_time();
        let mut fork = self.read_ready(name)?;
        let changes = self.changes(&fork)?;
        if request.seen.as_ref().is_some_and(|seen| *seen != changes.version()) {
            return Err(ForkError::ChangedSinceSeen);
        }
        let skipped = changes.skipped.clone();
        let inputs = chosen_changes(changes, &request.selection)?;
        let is_partial = request.selection.is_partial();
        let report = self.write_merge(&mut fork, &inputs, (AdoptionKind::Adopt, is_partial), request)?;
        Ok(AdoptionReport { skipped, ..report })
    }

    /// Takes the last adoption back: what changed in the project since then stays.
    ///
    /// # Errors
    /// As for [`ForkStore::adopt`].
    pub fn undo_adoption(&self, name: &str, request: &AdoptRequest) -> Result<AdoptionReport, ForkError> {
        let _only = one_at_a_time();
        let mut fork = self.read_ready(name)?;
        let Some(adopted) = fork.adopted().cloned() else {
            return Err(ForkError::Refused(format!("nothing of the fork {name} is adopted, so nothing can be undone")));
        };
        let kept = self.kept_bytes(name);
        let version = |hash: Option<BlobHash>| -> Result<FileVersion, ForkError> {
            Ok(match hash {
                Some(hash) => FileVersion::of_bytes(kept.read(hash)?),
                None => FileVersion::Missing,
            })
        };
        let mut inputs = Vec::new();
        for step in &adopted.steps {
            let (base, theirs) = (version(step.after)?, version(step.before)?);
            inputs.push(MergeInput { path: step.path.clone(), base, theirs, is_executable: step.is_executable });
        }
        let report = self.write_merge(&mut fork, &inputs, (AdoptionKind::Undo, adopted.is_partial), request)?;
        if let Some(undone) =
            fork.adoptions.iter_mut().rev().find(|one| one.at == adopted.at && one.steps == adopted.steps)
        {
            undone.is_undone = true;
        }
        self.save(&fork)?;
        Ok(report)
    }

    /// Finishes an adoption, or an undoing, that was interrupted.
    ///
    /// # Errors
    /// Returns an error if nothing was interrupted, or if a file has changed since; the rest stays as it is.
    pub fn finish_interrupted(&self, name: &str, caller: GitCaller) -> Result<AdoptionReport, ForkError> {
        let _only = one_at_a_time();
        let mut fork = self.read(name)?;
        let Some(interrupted) = fork.interrupted().cloned() else {
            return Err(ForkError::Refused(format!("nothing of the fork {name} was interrupted")));
        };
        let (project, kept) = (open_project(&fork)?, self.kept_bytes(name));
        for step in &interrupted.steps {
            write_step(&project, &kept, step)?;
        }
        if interrupted.kind == AdoptionKind::Undo
            && let Some(undone) = fork.adopted().map(|adopted| adopted.at)
        {
            fork.adoptions.iter_mut().filter(|one| one.at == undone).for_each(|one| one.is_undone = true);
        }
        let commit = self.finish_record(&mut fork, caller)?;
        Ok(AdoptionReport { steps: interrupted.steps, commit, skipped: Vec::new(), variables: Vec::new() })
    }

    /// Takes an adoption, or an undoing, that was interrupted back. Returns its files.
    ///
    /// # Errors
    /// Returns an error if nothing was interrupted, or if a file has changed since; the rest stays as it is.
    pub fn take_back_interrupted(&self, name: &str) -> Result<Vec<AdoptionStep>, ForkError> {
        let _only = one_at_a_time();
        let mut fork = self.read(name)?;
        let Some(interrupted) = fork.interrupted().cloned() else {
            return Err(ForkError::Refused(format!("nothing of the fork {name} was interrupted")));
        };
        let (project, kept) = (open_project(&fork)?, self.kept_bytes(name));
        for step in interrupted.steps.iter().rev() {
            write_step(&project, &kept, &reversed(step))?;
        }
        fork.adoptions.pop();
        self.save(&fork)?;
        Ok(interrupted.steps)
    }

    fn read_ready(&self, name: &str) -> Result<ForkRecord, ForkError> {
        let fork = self.read(name)?;
        if fork.phase != ForkPhase::Ready {
            return Err(ForkError::Refused(format!(
                "the fork {name} isn't complete; `tracebook forks discard {name}` removes what there is of it"
            )));
        }
        match fork.interrupted() {
            Some(_) => Err(ForkError::Interrupted(name.to_owned())),
            None => Ok(fork),
        }
    }

    fn write_merge(
        &self,
        fork: &mut ForkRecord,
        inputs: &[MergeInput],
        (kind, is_partial): (AdoptionKind, bool),
        request: &AdoptRequest,
    ) -> Result<AdoptionReport, ForkError> {
        let (project, kept) = (open_project(fork)?, self.kept_bytes(&fork.name));
        let steps = plan_merge(&project, &kept, inputs, request.prefer)?;
        let mut record = AdoptionRecord {
            kind,
            at: request.now,
            phase: AdoptionPhase::Writing,
            steps,
            is_partial,
            is_undone: false,
            message: None,
            commit: None,
            not_committed: None,
        };
        if record.steps.is_empty() {
            let commit = ProjectCommit::NotMade("the project has all of it already".to_owned());
            return Ok(AdoptionReport { steps: Vec::new(), commit, skipped: Vec::new(), variables: Vec::new() });
        }
        match commit_obstacle(&fork.project, &record.steps) {
            None => record.message = Some(request.message.clone()),
            Some(ProjectCommit::NotMade(why)) => record.not_committed = Some(why),
            Some(ProjectCommit::Made(_) | ProjectCommit::NoRepository) => {}
        }
        let steps = record.steps.clone();
        fork.adoptions.push(record);
        self.save(fork)?;
        if let Err((error, is_taken_back)) = write_all(&project, &kept, &steps) {
            // What can't be taken back now stays recorded as interrupted.
            if is_taken_back {
                fork.adoptions.pop();
                self.save(fork)?;
            }
            return Err(error);
        }
        let commit = self.finish_record(fork, request.caller)?;
        Ok(AdoptionReport { steps, commit, skipped: Vec::new(), variables: Vec::new() })
    }

    /// Makes the commit of the last adoption, whose files are written, and marks it as complete.
    fn finish_record(&self, fork: &mut ForkRecord, caller: GitCaller) -> Result<ProjectCommit, ForkError> {
        let project = fork.project.clone();
        let Some(last) = fork.adoptions.last_mut() else { return Ok(ProjectCommit::NoRepository) };
        last.phase = AdoptionPhase::Committing;
        self.save(fork)?;
        let Some(last) = fork.adoptions.last_mut() else { return Ok(ProjectCommit::NoRepository) };
        let commit = match (&last.message, &last.not_committed) {
            (Some(message), _) => commit_files(&project, &last.steps, message, caller),
            (None, Some(why)) => ProjectCommit::NotMade(why.clone()),
            (None, None) => ProjectCommit::NoRepository,
        };
        match &commit {
            ProjectCommit::Made(id) => last.commit = Some(id.clone()),
            ProjectCommit::NotMade(why) => last.not_committed = Some(why.clone()),
            ProjectCommit::NoRepository => {}
        }
        last.phase = AdoptionPhase::Done;
        self.save(fork)?;
        Ok(commit)
    }
}

fn open_project(fork: &ForkRecord) -> Result<ConfinedFolder, ForkError> {
    ConfinedFolder::open_root(&fork.project).map_err(|refused| ForkError::Refused(refused.to_string()))
}

fn reversed(step: &AdoptionStep) -> AdoptionStep {
    AdoptionStep { before: step.after, after: step.before, ..step.clone() }
}

/// Writes files one after another. If one can't be written, those before it get their former bytes. Returns the error,
/// and whether that has succeeded.
fn write_all(project: &ConfinedFolder, kept: &BlobStore, steps: &[AdoptionStep]) -> Result<(), (ForkError, bool)> {
    for (at, step) in steps.iter().enumerate() {
        if let Err(error) = write_step(project, kept, step) {
            let undone = steps[..at].iter().rev().try_for_each(|done| write_step(project, kept, &reversed(done)));
            return Err((error, undone.is_ok()));
        }
    }
    Ok(())
}

/// Writes one file, if it's still what it was. A file that has its new bytes already is left alone.
fn write_step(project: &ConfinedFolder, kept: &BlobStore, step: &AdoptionStep) -> Result<(), ForkError> {
    let changed = || ForkError::Refused(format!("{} has changed in the meantime; try again", step.path));
    let refuse = |why: String| ForkError::Refused(format!("{}: {why}", step.path));
    let current = read_version(project, &step.path).map_err(|error| refuse(error.to_string()))?.0.hash();
    if current == step.after {
        return Ok(());
    }
    if current != step.before {
        return Err(changed());
    }
    let (folder, name) =
        project.open_parent(&step.path, true).map_err(|refused| ForkError::Refused(refused.to_string()))?;
    let Some(after) = step.after else {
        return folder.remove_file(&name).map_err(|error| refuse(error.to_string()));
    };
    match replace_file(&folder.join(&name), step.before, &kept.read(after)?)? {
        ReplaceOutcome::Done { .. } => {}
        ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone => return Err(changed()),
    }
    #[cfg(unix)]
    if step.before.is_none() && step.is_executable {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        // Without it, the file is there and can be made executable.
        let _ = std::fs::set_permissions(folder.join(&name), mode);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_before_one_that_cannot_be_written_get_their_bytes_back() {
        let dir = tempfile::tempdir().expect("a folder");
        let place = |name: &str| dir.path().join("project").join(name);
        fs::create_dir_all(place("folder")).expect("made");
        fs::write(place("a.md"), "a").expect("written");
        fs::write(place("gone.md"), "gone").expect("written");
        fs::write(place("last.md"), "changed meanwhile").expect("written");
        let project = ConfinedFolder::open_chosen(&dir.path().join("project")).expect("opened");
        let kept = BlobStore::new(&dir.path().join("kept"));
        let keep = |text: &str| Some(kept.put(text.as_bytes()).expect("kept"));
        let step = |path: &str, before: Option<BlobHash>, after: Option<BlobHash>| AdoptionStep {
            path: path.to_owned(),
            before,
            after,
            is_executable: false,
        };
        let mut steps = vec![
            step("a.md", keep("a"), keep("A")),
            step("folder/new.md", None, keep("new")),
            step("gone.md", keep("gone"), None),
            step("last.md", keep("last"), keep("LAST")),
        ];
        let (error, is_taken_back) = write_all(&project, &kept, &steps).expect_err("the last one has changed");
        assert!(is_taken_back && error.to_string().contains("last.md has changed"), "{error}");
        let read = |name: &str| fs::read_to_string(place(name)).ok();
        assert_eq!((read("a.md"), read("gone.md")), (Some("a".to_owned()), Some("gone".to_owned())));
        assert_eq!((read("folder/new.md"), read("last.md")), (None, Some("changed meanwhile".to_owned())));
        // Without it all are written, and once more changes nothing.
        steps.pop();
        for _ in 0..2 {
            write_all(&project, &kept, &steps).expect("written");
            assert_eq!((read("a.md"), read("folder/new.md")), (Some("A".to_owned()), Some("new".to_owned())));
            assert_eq!(read("gone.md"), None);
        }
    }
}
