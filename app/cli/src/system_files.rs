//! The read-only volume System on the command line: `ls --volume system`, `cat system/…`, and `cmd_cp` to copy from
//! it.

use super::{CliError, CommandContext, EXIT_DONE, memory, resolve, volumes};
use agent::system_volume::{self, MEMORY_LOG_PATH, SYSTEM_READ_ONLY, SYSTEM_VOLUME_NAME};
use clap::Args;
use engine::{Command, Note};
use host::fs::atomic_write::{ReplaceOutcome, replace_file};
use host::fs::confined_dir::ConfinedFolder;
use store::{DocId, FileKind};
use text::untrusted_text;

/// `cp`.
#[derive(Args, Clone, Debug)]
pub(super) struct CopyArguments {
    #[arg(id = "FILE")]
    pub(super) file: String,
    #[arg(id = "PATH")]
    pub(super) path: Option<String>,
    #[arg(long)]
    pub(super) volume: Option<String>,
}

/// Refuses to create a file in System, unless the volume has a folder with that name.
pub(super) fn refuse_system_path(scene: &CommandContext<'_>, volume: DocId, path: &str) -> Result<(), CliError> {
    let bare = path.trim_start_matches('/').to_owned();
    let first = bare.split('/').next().unwrap_or_default().to_owned();
    if !first.eq_ignore_ascii_case(SYSTEM_VOLUME_NAME) || !bare.contains('/') {
        return Ok(());
    }
    let has_folder = scene.handle.read(move |session| {
        let below = format!("{first}/");
        session.volume(volume).is_some_and(|volume| volume.files.keys().any(|path| path.starts_with(&below)))
    })?;
    if has_folder { Ok(()) } else { Err(CliError::usage(SYSTEM_READ_ONLY)) }
}

/// Returns the text of a file of System. The log of experiences is made of the memory of all projects.
fn file_text(scene: &CommandContext<'_>, path: &str) -> Result<String, CliError> {
    match path {
        MEMORY_LOG_PATH => Ok(system_volume::memory_log(&memory::all_experiences(scene)?)),
        path => Ok(system_volume::read(path).unwrap_or_default().to_owned()),
    }
}

/// Prints a file of System.
pub(super) fn print_file(scene: &mut CommandContext<'_>, path: &str) -> Result<u8, CliError> {
    let text = file_text(scene, path)?;
    if scene.json {
        writeln!(scene.out, "{}", serde_json::json!({"text": text, "volume": SYSTEM_VOLUME_NAME, "readonly": true}))?;
    } else {
        scene.out.write_all(text.as_bytes())?;
    }
    Ok(EXIT_DONE)
}

/// Lists the files of System.
pub(super) fn list_files(scene: &mut CommandContext<'_>) -> Result<u8, CliError> {
    if scene.json {
        let row = |(path, size): (&str, usize)| {
            let kind = FileKind::from_path(path);
            serde_json::json!({
                "path": path, "kind": kind, "size": size, "volume": SYSTEM_VOLUME_NAME, "readonly": true,
            })
        };
        let mut rows: Vec<serde_json::Value> = system_volume::list("").map(row).collect();
        rows.push(serde_json::json!({
            "path": MEMORY_LOG_PATH, "kind": FileKind::Note, "volume": SYSTEM_VOLUME_NAME, "readonly": true,
        }));
        writeln!(scene.out, "{}", serde_json::Value::from(rows))?;
        return Ok(EXIT_DONE);
    }
    writeln!(scene.out, "{SYSTEM_VOLUME_NAME} (read-only)")?;
    for (path, size) in system_volume::list("") {
        writeln!(scene.out, "  {path}  ({size} bytes)")?;
    }
    writeln!(scene.out, "  {MEMORY_LOG_PATH}  (results of earlier work)")?;
    Ok(EXIT_DONE)
}

/// Returns the path of a copy: like its source, it ends in `.md`, `.base` or `.py`. A folder keeps the source's name.
fn copy_path(source: &str, path: &str) -> String {
    if path.ends_with('/') {
        let folder = path.strip_prefix("./").unwrap_or(path);
        return format!("{folder}{}", source.rsplit('/').next().unwrap_or(source));
    }
    let kind = FileKind::from_path(source);
    if FileKind::from_path(path) == kind {
        return path.to_owned();
    }
    let ending = match kind {
        FileKind::Note => ".md",
        FileKind::Collection => ".base",
        FileKind::Script => ".py",
        FileKind::Attachment => "",
    };
    format!("{path}{ending}")
}

/// Copies a file of System, or a note, into a volume.
pub(super) fn cmd_cp(scene: &mut CommandContext<'_>, args: &CopyArguments) -> Result<u8, CliError> {
    let found = resolve::resolve_note(scene, &args.file);
    let (text, own_path, source) = match (found, resolve::system_path(&args.file)) {
        (Ok(note), _) => {
            let held = export::open_note::hold_note(scene.handle, note)?;
            let text = scene.handle.read(move |session| session.note(note).map(Note::text))?.unwrap_or_default();
            drop(held);
            let source =
                scene.handle.read(move |session| session.locate_file(note).map(|(_, path)| path.to_owned()))?;
            (text, None, source)
        }
        (Err(_), Some(path)) => (file_text(scene, &path)?, Some(system_volume::copy_path(&path)), None),
        (Err(why), None) => return Err(why),
    };
    let path = args.path.clone().or(own_path);
    let Some(path) = path else { return Err(CliError::usage("name the path of the copy, too")) };
    let (named, path) = resolve::read_new_path(scene, &path, args.volume.as_deref(), None)?;
    let path = match (source, resolve::system_path(&args.file)) {
        (Some(source), _) => copy_path(&source, &path),
        (None, Some(source)) if path.ends_with('/') => copy_path(&source, &path),
        (None, _) => path,
    };
    let (volume, root) = volumes::volume_or_new(scene, named.as_deref(), true)?;
    resolve::wait_for_volumes(scene, true)?;
    refuse_system_path(scene, volume, &path)?;
    if let Some(why) = scene.handle.read(move |session| session.read_only_reason(volume))? {
        return Err(CliError::usage(why));
    }
    if FileKind::from_path(&path).is_text() {
        scene.handle.run_command(Command::NewNote { volume, path: path.clone(), text })?;
        export::open_note::wait_until_saved(scene.handle)?;
    } else {
        let folder = ConfinedFolder::open_root(&root).and_then(|folder| folder.open_parent(&path, true));
        let (folder, name) = folder.map_err(|why| CliError::usage(format!("{why}")))?;
        match replace_file(&folder.stable_path().join(name), None, text.as_bytes()).map_err(CliError::workspace)? {
            ReplaceOutcome::Done { .. } => {}
            ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone => {
                return Err(CliError::usage(format!("a file with that name already exists; choose another: {path}")));
            }
        }
    }
    let (name, is_only) = scene.handle.read(move |session| {
        let name = session.volume(volume).map_or_else(String::new, |volume| volume.name.clone());
        (name, session.volumes().count() == 1)
    })?;
    if scene.json {
        writeln!(scene.out, "{}", serde_json::json!({"path": path, "volume": name}))?;
        return Ok(EXIT_DONE);
    }
    // A path such as `other/Plan.md` would read as one in the volume `other`.
    let place = if is_only { path } else { format!("{name}:{path}") };
    writeln!(scene.out, "{}", untrusted_text::escape_line(&place))?;
    Ok(EXIT_DONE)
}
