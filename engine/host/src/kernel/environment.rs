//! The environment that a note's cells run in: `.venv` beside the note, or in a folder above it up to the volume's. The
//! kernel itself is crate `python`'s; its cells stand behind the same walls as those of the built-in one.

use anyhow::bail;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment's folder, as `kernels --setup` makes it.
const ENVIRONMENT_FOLDER: &str = ".venv";

/// Makes `tracebook kernel` run cells in the environment of a note in `folder`, which is below `root`.
///
/// # Errors
/// There's none. A run installs nothing by itself.
pub(super) fn configure_environment_kernel(command: &mut Command, folder: &Path, root: &Path) -> anyhow::Result<()> {
    let Some(python) = find_interpreter(folder, root) else {
        bail!("the note has no environment yet. Make one with `tracebook kernels NOTE --setup --package PACKAGE`");
    };
    let install = super::python_setup::shell_line(&[python.to_string_lossy().into_owned()]);
    command.arg("--advice").arg(format!("install it with `{install} -m pip install {{package}}`"));
    command.arg("--environment").arg(python);
    Ok(())
}

/// The interpreter of the nearest environment. Its path isn't resolved: it says which environment it is.
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
