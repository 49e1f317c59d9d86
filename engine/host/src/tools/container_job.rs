//! Jobs of the container tools: the project's files by the confined opener, and the files that a container changed.

use super::truncate::truncate_output;
use super::{StopSignal, ToolWorkspace};
use crate::fs::confined_dir::ConfinedFolder;
use crate::fs::volume_snapshot::VolumeSnapshot;
use agent::config::SandboxLimits;
use agent::tool_job::{ToolJob, ToolOutcome};
use containers::{ContainerError, ContainerRequest, ContainerSetup, FolderEntry, ProjectFiles};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The project's folder, as containers may see it.
struct ConfinedProject<'a>(&'a ConfinedFolder);

impl ProjectFiles for ConfinedProject<'_> {
    fn locate_folder(&self, path: &str) -> Result<PathBuf, ContainerError> {
        Ok(self.0.open_folder(path).map_err(refused)?.original_path().to_owned())
    }

    fn list_folder(&self, path: &str) -> Result<Vec<FolderEntry>, ContainerError> {
        let folder = self.0.open_folder(path).map_err(refused)?;
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder.walk_path()).map_err(refused)? {
            let entry = entry.map_err(refused)?;
            let Ok(kind) = entry.file_type() else { continue }; // it's gone by now
            let Ok(name) = entry.file_name().into_string() else { continue }; // no path of a project
            if kind.is_dir() || kind.is_file() {
                found.push(FolderEntry { name, is_folder: kind.is_dir() });
            }
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    fn open_file(&self, path: &str) -> Result<File, ContainerError> {
        Ok(self.0.open_regular_file(path).map_err(refused)?.0)
    }
}

fn refused(why: impl std::fmt::Display) -> ContainerError {
    ContainerError::Refused(why.to_string())
}

/// Runs a job of a container tool.
pub(super) fn run(
    place: &ToolWorkspace,
    root: &Path,
    job: &ToolJob,
    limits: &SandboxLimits,
    stop: &StopSignal,
) -> anyhow::Result<ToolOutcome> {
    let root = ConfinedFolder::open_root(root)?;
    let closed = [Some(place.workspace.clone()), place.home.clone()].into_iter().flatten().collect();
    let setup = ContainerSetup { closed, limits: limits.clone() };
    let before = match job {
        ToolJob::Container { tool, arguments, .. }
            if ContainerRequest::from_call(tool, arguments).is_ok_and(|request| request.changes_files()) =>
        {
            Some(VolumeSnapshot::capture(&root, &place.workspace))
        }
        _ => None,
    };
    let answer = place.containers.perform_job(job, &ConfinedProject(&root), &setup, &|| stop.is_stopped())?;
    let mut outcome = ToolOutcome { success: answer.success, ..ToolOutcome::default() };
    let mut text = answer.text;
    if let Some(before) = before {
        let (changed, remarks) = before.changes_since(&root, &place.blobs)?;
        outcome.changed = changed;
        remarks.iter().for_each(|remark| text.push_str(&format!("\n{remark}")));
    }
    (outcome.text, outcome.whole) = truncate_output(text.as_bytes(), &place.blobs)?;
    Ok(outcome)
}
