//! Changes to the packages that a note lists in its properties, shared by the command line and the window.

use super::note_environment::{is_requirement, requirement_name};
use engine::{Command, DEPENDENCIES_PROPERTY, NotePackages, REQUIRES_PYTHON_PROPERTY, Session};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use store::DocId;

/// Error for a text that isn't a package's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("“{0}” isn't the name of a package; type names like pandas or pandas>=2, without addresses or options")]
pub struct NoPackageName(pub String);

/// Location of a note's file, and the folders that cells and agents can write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotePlace {
    /// The volume's folder.
    pub root: PathBuf,
    /// The note's file.
    pub file: PathBuf,
    /// Folders that cells and agents can write: no program is run from there.
    pub shared: Vec<PathBuf>,
}

impl NotePlace {
    /// Returns the location of a note; `None` if its volume has no folder on this device.
    pub fn of(session: &Session, note: DocId, workspace: &Path) -> Option<NotePlace> {
        let (volume, path) = session.locate_file(note)?;
        let root = session.volume(volume)?.root.clone()?;
        let roots = session.volumes().filter_map(|volume| volume.root.clone());
        let shared = roots.chain([workspace.to_owned()]).collect();
        Some(NotePlace { file: root.join(path), root, shared })
    }
}

/// Adds a package, or replaces the one with the same name.
///
/// # Errors
/// Returns an error if the text isn't a package's name.
pub fn add_package(packages: &mut NotePackages, requirement: &str) -> Result<(), NoPackageName> {
    if !is_requirement(requirement) {
        return Err(NoPackageName(requirement.to_owned()));
    }
    let name = requirement_name(requirement);
    match packages.dependencies.iter_mut().find(|known| requirement_name(known) == name) {
        Some(known) => requirement.clone_into(known),
        None => packages.dependencies.push(requirement.to_owned()),
    }
    Ok(())
}

/// Removes a package; returns whether it was listed.
pub fn remove_package(packages: &mut NotePackages, name: &str) -> bool {
    let before = packages.dependencies.len();
    packages.dependencies.retain(|known| requirement_name(known) != requirement_name(name));
    packages.dependencies.len() < before
}

/// Lists the packages in a short text.
pub fn describe_packages(packages: &NotePackages) -> String {
    if packages.dependencies.is_empty() { "no packages".to_owned() } else { packages.dependencies.join(", ") }
}

/// Describes the installation in a sentence without a full stop.
pub fn describe_installation(packages: &NotePackages) -> String {
    let python = packages.requires_python.as_ref().map(|versions| format!(" with Python {versions}"));
    format!("Installing {}{}", describe_packages(packages), python.unwrap_or_default())
}

/// Returns the commands that write the difference to the note's properties.
pub fn property_commands(note: DocId, old: &NotePackages, new: &NotePackages) -> Vec<Command> {
    let set = |key: &str, value: Option<Value>| Command::SetProperty { note, key: key.to_owned(), value };
    let mut commands = Vec::new();
    if old.requires_python != new.requires_python {
        commands.push(set(REQUIRES_PYTHON_PROPERTY, new.requires_python.clone().map(Value::from)));
    }
    if old.dependencies != new.dependencies {
        let dependencies = (!new.dependencies.is_empty()).then(|| json!(new.dependencies));
        commands.push(set(DEPENDENCIES_PROPERTY, dependencies));
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::{NotePackages, add_package, remove_package};

    #[test]
    fn a_package_is_listed_once() {
        let mut packages = NotePackages::default();
        for name in ["six", "polars", "Six>=1.16"] {
            add_package(&mut packages, name).expect("a name");
        }
        assert_eq!(packages.dependencies, ["Six>=1.16", "polars"]);
        assert!(add_package(&mut packages, "-r x").is_err() && add_package(&mut packages, "").is_err());
        assert!(remove_package(&mut packages, "SIX") && !remove_package(&mut packages, "six"));
        assert_eq!(packages.dependencies, ["polars"]);
    }
}
