//! `kernels env NOTE`: the packages that a note lists in its properties, and their environment.

use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED, resolve};
use crate::arguments::KernelsArguments;
use engine::{Command, DEPENDENCIES_PROPERTY, NotePackages, REQUIRES_PYTHON_PROPERTY, Session};
use host::note_environment::{
    EnvironmentSetup, environments_folder, find_environment, is_requirement, lock_path, python_versions,
    requirement_name,
};
use host::python_setup::{SetupError, follow_setup};
use serde_json::{Value, json};
use std::path::PathBuf;
use store::DocId;
use text::untrusted_text::escape_line;

/// The word behind `kernels`.
pub(super) const ACTION: &str = "env";

/// Where a note's file lies, and which folders cells and agents can write.
struct NotePlace {
    root: PathBuf,
    file: PathBuf,
    shared: Vec<PathBuf>,
}

fn place_of(scene: &CommandContext<'_>, note: DocId) -> Result<NotePlace, CliError> {
    let workspace = scene.handle.workspace_folder().to_owned();
    let look = move |session: &Session| {
        let (volume, path) = session.locate_file(note)?;
        let root = session.volume(volume)?.root.clone()?;
        let shared = session.volumes().filter_map(|volume| volume.root.clone()).chain([workspace]).collect();
        Some(NotePlace { file: root.join(path), root, shared })
    };
    let missing = || CliError::usage("the note's volume has no folder on this device");
    scene.handle.read(look)?.ok_or_else(missing)
}

/// The Python that would run the note's cells, or why there's none yet.
pub(super) fn find_python(scene: &CommandContext<'_>, note: DocId) -> Result<anyhow::Result<PathBuf>, CliError> {
    let place = place_of(scene, note)?;
    let packages = scene.handle.read(move |session| session.note(note)?.packages().cloned())?;
    let name = place.file.file_name().map(PathBuf::from).unwrap_or_default();
    let folder = place.file.parent().unwrap_or(&place.root);
    let packages = packages.map(|packages| (name, packages));
    Ok(host::choose_interpreter((folder, &place.root), packages.as_ref()))
}

/// What the note is to list, and whether that's something else than before.
fn changed_packages(old: NotePackages, args: &KernelsArguments) -> Result<NotePackages, CliError> {
    if let Some(bad) = args.add.iter().find(|name| !is_requirement(name)) {
        return Err(CliError::usage(format!(
            "“{bad}” isn't the name of a package; type names like pandas or 'pandas>=2', without addresses or options"
        )));
    }
    let mut new = old;
    if let Some(python) = &args.python {
        new.requires_python = Some(python_versions(python));
    }
    for name in &args.remove {
        let before = new.dependencies.len();
        new.dependencies.retain(|known| requirement_name(known) != requirement_name(name));
        if new.dependencies.len() == before {
            return Err(CliError::usage(format!("the note doesn't list {name}; it lists {}", listed(&new))));
        }
    }
    for name in &args.add {
        let known = new.dependencies.iter_mut().find(|known| requirement_name(known) == requirement_name(name));
        match known {
            Some(known) => known.clone_from(name),
            None => new.dependencies.push(name.clone()),
        }
    }
    Ok(new)
}

fn listed(packages: &NotePackages) -> String {
    if packages.dependencies.is_empty() { "no packages".to_owned() } else { packages.dependencies.join(", ") }
}

/// Installs what the note lists, with the changes that the arguments ask for; then the note lists that.
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
    let failed = |error: SetupError| CliError { code: EXIT_FAILED, why: error.to_string() };
    let was_there = find_environment(&root, &file, &new).is_ok();
    if !was_there && !scene.json {
        let python = new.requires_python.as_ref().map(|versions| format!(" with Python {versions}"));
        let said = format!("Installing {}{}", listed(&new), python.unwrap_or_default());
        writeln!(scene.out, "{}", escape_line(&said))?;
        scene.out.flush()?;
    }
    let setup = EnvironmentSetup {
        note_file: file.clone(),
        packages: new.clone(),
        only_locked: args.sync,
        root: root.clone(),
        shared,
        variables: Vec::new(),
    };
    let (json, out) = (scene.json, &mut *scene.out);
    let running = setup.start(|| ());
    let told =
        |line: &str| if json { Ok(()) } else { writeln!(out, "{}", escape_line(line)).and_then(|()| out.flush()) };
    follow_setup(&running, told).map_err(failed)?;
    set_packages(scene, note, &old, &new)?;
    let ready =
        find_environment(&root, &file, &new).map_err(|why| CliError { code: EXIT_FAILED, why: why.to_string() })?;
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

/// Writes what differs into the note's properties.
fn set_packages(
    scene: &CommandContext<'_>,
    note: DocId,
    old: &NotePackages,
    new: &NotePackages,
) -> Result<(), CliError> {
    let set = |key: &str, value: Option<Value>| {
        scene.handle.run_command(Command::SetProperty { note, key: key.to_owned(), value })
    };
    if old.requires_python != new.requires_python {
        set(REQUIRES_PYTHON_PROPERTY, new.requires_python.clone().map(Value::from))?;
    }
    if old.dependencies != new.dependencies {
        let dependencies = (!new.dependencies.is_empty()).then(|| json!(new.dependencies));
        set(DEPENDENCIES_PROPERTY, dependencies)?;
    }
    if old != new {
        export::open_note::wait_until_saved(scene.handle)?;
    }
    Ok(())
}
