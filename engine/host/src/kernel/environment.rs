//! The environment that a note's cells run in: the user's choice for the note, that of its packages, or `.venv` next to
//! it or in a parent folder up to the volume's. The kernel is in crate `python`, in the sandbox of the built-in one.

use super::note_environment::{environments_folder, find_environment};
use anyhow::{Context, bail};
use engine::NotePackages;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the environment's folder, as created by `kernels --setup`.
const ENVIRONMENT_FOLDER: &str = ".venv";

/// Makes `tracebook kernel` run cells in the environment of a note in `folder`, which is below `root`. `packages` has
/// the name of the note's file, and the packages that it lists. `chosen` is the user's choice for the note.
///
/// # Errors
/// Returns an error if there's no environment. A run installs nothing by itself.
pub(super) fn configure_environment_kernel(
    command: &mut Command,
    (folder, root): (&Path, &Path),
    packages: Option<&(PathBuf, NotePackages)>,
    chosen: Option<PathBuf>,
) -> anyhow::Result<()> {
    let packages = packages.filter(|_| chosen.is_none());
    let python = chosen.map_or_else(|| choose_interpreter((folder, root), packages), Ok)?;
    let advice = match packages {
        Some((file, _)) => format!("add it with `tracebook kernels env {} --add {{package}}`", shell_word(file)),
        None => format!("install it with `{} -m pip install {{package}}`", shell_word(&python)),
    };
    command.arg("--advice").arg(advice).arg("--environment").arg(python);
    Ok(())
}

/// Returns the Python that runs the cells of a note in `folder`, which is below `root`. `packages` has the name of the
/// note's file, and the packages that it lists.
///
/// # Errors
/// Returns an error if there's none, with the command that creates one.
pub fn choose_interpreter(
    (folder, root): (&Path, &Path),
    packages: Option<&(PathBuf, NotePackages)>,
) -> anyhow::Result<PathBuf> {
    let Some((file, packages)) = packages else {
        return find_interpreter(folder, root).context(
            "the note has no environment yet. Make one with `tracebook kernels env NOTE --add PACKAGE`, or .venv with \
             `tracebook kernels NOTE --setup --package PACKAGE`",
        );
    };
    match find_environment(&environments_folder(), &folder.join(file), packages) {
        Ok(found) => Ok(found.python),
        Err(why) => bail!("{why}. Install them with `tracebook kernels env {}`", shell_word(file)),
    }
}

fn shell_word(path: &Path) -> String {
    super::python_setup::shell_line(&[path.to_string_lossy().into_owned()])
}

/// Returns the interpreter of the nearest environment. Its path isn't resolved, because it identifies the environment.
fn find_interpreter(folder: &Path, root: &Path) -> Option<PathBuf> {
    let inside = folder.ancestors().take_while(|folder| folder.starts_with(root));
    let mut found = inside.map(|folder| folder.join(ENVIRONMENT_FOLDER)).filter(|environment| {
        environment.join("pyvenv.cfg").is_file() && environment.join("bin").join("python").is_file()
    });
    found.next().map(|environment| environment.join("bin").join("python"))
}

#[cfg(test)]
mod tests {
    use super::find_interpreter;

    #[test]
    fn the_nearest_environment_of_the_volume_is_found() {
        let place = tempfile::tempdir().expect("a folder");
        let root = place.path().join("notes");
        let below = root.join("a/b");
        std::fs::create_dir_all(&below).expect("made");
        let make = |folder: &std::path::Path| {
            let python = folder.join(".venv/bin/python");
            std::fs::create_dir_all(folder.join(".venv/bin")).expect("made");
            std::fs::write(folder.join(".venv/pyvenv.cfg"), "").expect("written");
            std::fs::write(&python, "").expect("written");
            python
        };
        make(place.path());
        assert_eq!(find_interpreter(&below, &root), None, "not from above the volume");
        let far = make(&root);
        assert_eq!(find_interpreter(&below, &root), Some(far));
        let near = make(&below);
        assert_eq!(find_interpreter(&below, &root), Some(near));
    }
}
