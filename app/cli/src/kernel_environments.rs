//! `kernels env NOTE`: the packages listed in a note's properties, and their environment.

use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED, resolve};
use crate::arguments::KernelsArguments;
use anyhow::anyhow;
use engine::{Command, KernelGrant, NotePackages};
use host::note_environment::{
    EnvironmentSetup, ReadyEnvironment, environments_folder, find_environment, lock_path, python_versions,
};
use host::note_packages::{
    NotePlace, add_package, describe_installation, describe_packages, property_commands, remove_package,
};
use host::python_setup::follow_setup;
use serde_json::json;
use std::path::PathBuf;
use store::DocId;
use text::untrusted_text::escape_line;

/// The action word after `kernels`.
pub(super) const ACTION: &str = "env";

fn place_of(scene: &CommandContext<'_>, note: DocId) -> Result<NotePlace, CliError> {
    let workspace = scene.handle.workspace_folder().to_owned();
    let missing = || CliError::usage("the note's volume has no folder on this device");
    scene.handle.read(move |session| NotePlace::of(session, note, &workspace))?.ok_or_else(missing)
}

/// Makes a Python that the user names run the note's cells on this device. `None`: that of the note's own environment.
pub(super) fn choose_python(scene: &CommandContext<'_>, note: DocId, path: Option<&str>) -> Result<(), CliError> {
    let interpreter = match path {
        Some(path) => {
            let shared = place_of(scene, note)?.shared;
            let found = host::check_interpreter(&scene.folder.join(path), &shared);
            Some(found.map_err(|why| CliError::usage(why.to_string()))?)
        }
        None => None,
    };
    let granted = scene.handle.read(move |session| session.kernel_grant(note))?;
    if granted.interpreter != interpreter {
        export::open_note::read_loaded_note(scene.handle, note, |_| ())?;
        scene.handle.run_command(Command::Grant { note, grant: KernelGrant { interpreter, ..granted } })?;
        export::open_note::wait_until_saved(scene.handle)?;
    }
    Ok(())
}

/// Returns the Python that would run the note's cells, or why there's none yet.
pub(super) fn find_python(scene: &CommandContext<'_>, note: DocId) -> Result<anyhow::Result<PathBuf>, CliError> {
    if let Some(chosen) = scene.handle.read(move |session| session.kernel_grant(note).interpreter)? {
        let gone = "it's gone; choose another with --use env --interpreter PATH, or none with --use env";
        return Ok(if chosen.is_file() { Ok(chosen) } else { Err(anyhow!("{}: {gone}", chosen.display())) });
    }
    let place = place_of(scene, note)?;
    let packages = scene.handle.read(move |session| session.note(note)?.packages().cloned())?;
    let name = place.file.file_name().map(PathBuf::from).unwrap_or_default();
    let folder = place.file.parent().unwrap_or(&place.root);
    let packages = packages.map(|packages| (name, packages));
    Ok(host::choose_interpreter((folder, &place.root), packages.as_ref()))
}

/// Returns the packages that the note will list.
fn changed_packages(old: NotePackages, args: &KernelsArguments) -> Result<NotePackages, CliError> {
    let mut new = old;
    if let Some(python) = &args.python {
        new.requires_python = Some(python_versions(python));
    }
    for name in &args.remove {
        if !remove_package(&mut new, name) {
            let listed = describe_packages(&new);
            return Err(CliError::usage(format!("the note doesn't list {name}; it lists {listed}")));
        }
    }
    for name in &args.add {
        add_package(&mut new, name).map_err(|bad| CliError::usage(bad.to_string()))?;
    }
    Ok(new)
}

/// Installs the note's packages with the requested changes, then updates the note's list.
pub(super) fn cmd_environment(
    scene: &mut CommandContext<'_>,
    note: &str,
    args: &KernelsArguments,
) -> Result<u8, CliError> {
    let is_change = args.python.is_some() || !args.add.is_empty() || !args.remove.is_empty();
    if args.sync && is_change {
        return Err(CliError::usage("--sync installs what the lock file says: give no --python, --add or --remove"));
    }
    let note = resolve::resolve_note(scene, note)?;
    let _held = export::open_note::hold_note(scene.handle, note)?;
    let read = |note: &engine::Note| {
        let front = note.blocks().next().map(|block| text::properties::read(&block.text));
        let broken = front.flatten().and_then(Result::err).map(|why| why.to_string());
        (broken, note.packages().cloned())
    };
    let (broken, stated) = export::open_note::read_loaded_note(scene.handle, note, read)?;
    if let Some(why) = broken {
        return Err(CliError::usage(format!("the note's front matter can't be read: {why}; correct it first")));
    }
    if stated.is_none() && !is_change {
        return Err(CliError::usage("the note lists no packages; add some: tracebook kernels env NOTE --add PACKAGE"));
    }
    let old = stated.unwrap_or_default();
    let new = changed_packages(old.clone(), args)?;
    let NotePlace { file, shared, .. } = place_of(scene, note)?;
    let root = environments_folder();
    let was_there = find_environment(&root, &file, &new).is_ok();
    let setup = EnvironmentSetup {
        note_file: file.clone(),
        packages: new.clone(),
        only_locked: args.sync,
        root,
        shared,
        variables: Vec::new(),
    };
    let ready = install_environment(scene, setup)?;
    set_packages(scene, note, &old, &new)?;
    choose_python(scene, note, None)?;
    if scene.json {
        let said = json!({
            "python": ready.python, "version": ready.version, "environment": ready.folder, "lock": lock_path(&file),
            "packages": ready.packages, "requires_python": new.requires_python, "dependencies": new.dependencies,
            "was_installed": was_there,
        });
        writeln!(scene.out, "{said}")?;
        return Ok(EXIT_DONE);
    }
    let packages = if ready.packages.is_empty() { "no packages".to_owned() } else { ready.packages.join(", ") };
    let said = format!("Python {} with {packages} is ready: tracebook run NOTE", ready.version);
    writeln!(scene.out, "{}", escape_line(&said))?;
    Ok(EXIT_DONE)
}

/// Installs packages, shows what runs, and returns the environment.
pub(super) fn install_environment(
    scene: &mut CommandContext<'_>,
    setup: EnvironmentSetup,
) -> Result<ReadyEnvironment, CliError> {
    let (root, file, packages) = (setup.root.clone(), setup.note_file.clone(), setup.packages.clone());
    let failed = |why: String| CliError { code: EXIT_FAILED, why };
    let (json, out) = (scene.json, &mut *scene.out);
    let mut told =
        |line: &str| if json { Ok(()) } else { writeln!(out, "{}", escape_line(line)).and_then(|()| out.flush()) };
    if find_environment(&root, &file, &packages).is_err() {
        told(&describe_installation(&packages))?;
    }
    follow_setup(&setup.start(|| ()), told).map_err(|error| failed(error.to_string()))?;
    find_environment(&root, &file, &packages).map_err(|why| failed(why.to_string()))
}

/// Writes the differences to the note's properties.
fn set_packages(
    scene: &CommandContext<'_>,
    note: DocId,
    old: &NotePackages,
    new: &NotePackages,
) -> Result<(), CliError> {
    for command in property_commands(note, old, new) {
        scene.handle.run_command(command)?;
    }
    if old != new {
        export::open_note::wait_until_saved(scene.handle)?;
    }
    Ok(())
}
