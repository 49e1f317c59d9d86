//! `cmd_open`, `cmd_new`, `ls`, `cmd_import`, `cmd_export`: commands for volumes and their files.

use super::{CliError, CommandContext, EXIT_DONE, file_ops, notebooks, resolve, system_files, volume_settings};
use crate::arguments::{ExportArguments, ImportArguments, LsArguments, NewArguments, OpenArguments, typed};
use crate::plurals::counted;
use agent::system_volume::SYSTEM_VOLUME_NAME;
use clap::ArgMatches;
use engine::event::SkippedFile;
use engine::{Command, Session, Volume};
use export::{self, ExportFormat, ExportProgress, ExportScope, NoteFragment};
use host::fs::copy;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::{DocId, FileKind};
use text::untrusted_text;
use typeset::pdf::PaperSize;

/// Maximum time to scan a folder.
const SCAN_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Tags by their lower case: as they're written, and the number of notes that have them.
type TagCounts = BTreeMap<String, (String, usize)>;

pub(super) struct OpenedVolume {
    pub(super) id: DocId,
    pub(super) name: String,
    notes: u64,
    /// Number of files other than notes, and of collections among them.
    attachments: u64,
    collections: u64,
    skipped: Vec<SkippedFile>,
    pub(super) trouble: Option<String>,
}

/// Opens a folder as a volume (or rescans it) and waits until everything is known.
pub(super) fn open_volume(
    scene: &mut CommandContext<'_>,
    folder: PathBuf,
    name: Option<String>,
) -> Result<OpenedVolume, CliError> {
    resolve::wait_for_volumes(scene, false)?;
    let root = folder.clone();
    let before = scene.handle.read(move |session| {
        let known = session.volumes().find(|volume| volume.root.as_ref() == Some(&root));
        known.map_or(0, |volume| volume.scans + u64::from(volume.scanning != engine::ScanState::Idle))
    })?;
    scene.handle.run_command(Command::OpenFolder { folder: folder.clone(), name })?;
    let look = move |session: &Session| {
        let volume = session.volumes().find(|volume| volume.root.as_ref() == Some(&folder))?;
        (volume.scans > before && volume.scanning == engine::ScanState::Idle).then(|| {
            let (notes, attachments) = volume.counts();
            let skipped = volume.skipped.iter().chain(&volume.demoted).cloned().collect();
            let (id, name, trouble) = (volume.id, volume.name.clone(), volume.trouble.clone());
            let is_one = |row: &&store::disk::FileRow| row.kind == store::FileKind::Collection;
            let collections = volume.files.values().filter(is_one).count() as u64;
            OpenedVolume { id, name, notes, attachments, collections, skipped, trouble }
        })
    };
    let opened = scene.handle.wait_on_disk(Some(SCAN_TIMEOUT), look)?;
    opened.ok_or_else(|| CliError::workspace("the folder could not be looked through in an hour"))
}

/// Rejects missing paths of `cmd_open` and `cmd_import` before a workspace is created for them.
pub(super) fn check_paths_exist(command: &str, args: &ArgMatches, here: &Path) -> Result<(), CliError> {
    match command {
        "open" => {
            let folder = copy::absolute_path(here, &typed::<OpenArguments>(args)?.folder);
            if !copy::is_folder(&folder) {
                let shown = folder.display();
                return Err(CliError::usage(match folder.parent().filter(|_| folder.is_file()) {
                    Some(parent) => {
                        format!("it is a file, not a folder; open its folder, {}: {shown}", parent.display())
                    }
                    None => format!("no such folder; check its path: {shown}"),
                }));
            }
        }
        "import" => {
            if let Some(missing) = import_paths(&typed(args)?, here).iter().find(|path| !path.exists()) {
                return Err(CliError::usage(format!("no such file; check its path: {}", missing.display())));
            }
        }
        _ => {}
    }
    Ok(())
}

fn import_paths(args: &ImportArguments, here: &Path) -> Vec<PathBuf> {
    args.path.iter().map(|path| copy::absolute_path(here, path)).collect()
}

/// Returns the open volume whose folder has all of these notebooks, with its folder and the folder of each notebook
/// inside it, such as `Data/`. Their notes go there, beside them.
fn volume_around(
    scene: &CommandContext<'_>,
    notebooks: &[PathBuf],
) -> Result<Option<(DocId, PathBuf, Vec<String>)>, CliError> {
    let volumes = scene.handle.read(|session| {
        let open = session.volumes().filter(|volume| session.read_only_reason(volume.id).is_none());
        open.filter_map(|volume| Some((volume.id, volume.root.clone()?))).collect::<Vec<_>>()
    })?;
    let folder_in = |path: &Path, root: &Path| {
        let folder = path.strip_prefix(root).ok()?.parent()?.to_str()?.to_owned();
        (!store::is_hidden(&folder)).then(|| if folder.is_empty() { folder } else { folder + "/" })
    };
    // Of volumes inside each other, the inner one.
    let found = volumes.into_iter().filter_map(|(id, root)| {
        let whole = copy::absolute_path(Path::new("/"), root.to_str()?);
        let folders = notebooks.iter().map(|path| folder_in(path, &whole)).collect::<Option<Vec<_>>>()?;
        Some((id, root, folders))
    });
    Ok(found.max_by_key(|(_, root, _)| root.components().count()))
}

pub(super) fn cmd_open(scene: &mut CommandContext<'_>, args: &OpenArguments) -> Result<u8, CliError> {
    let folder = copy::absolute_path(scene.folder, args.folder.as_str());
    let opened = open_volume(scene, folder, None)?;
    if let Some(trouble) = opened.trouble {
        return Err(CliError::usage(trouble));
    }
    export::open_note::wait_until_saved(scene.handle)?;
    let OpenedVolume { id, name, notes, attachments, collections, skipped, .. } = opened;
    if scene.json {
        let answer = serde_json::json!({
            "volume": name, "id": id, "notes": notes, "attachments": attachments, "skipped": skipped,
        });
        writeln!(scene.out, "{answer}")?;
    } else {
        let shelves = if collections > 0 { counted(collections, "collection") + ", " } else { String::new() };
        let (name, rest) = (untrusted_text::escape_line(&name), counted(attachments - collections, "attachment"));
        writeln!(scene.out, "{name}: {}, {shelves}{rest}", counted(notes, "note"))?;
        for SkippedFile { path, why, .. } in skipped {
            writeln!(scene.out, "  {}: {}", untrusted_text::escape_line(&path), untrusted_text::escape_line(&why))?;
        }
    }
    Ok(EXIT_DONE)
}

/// Returns the named volume, the first one if `first` is set, or the volume `Notes` in the workspace's folder, which is
/// created if necessary.
pub(super) fn volume_or_new(
    scene: &mut CommandContext<'_>,
    name: Option<&str>,
    first: bool,
) -> Result<(DocId, PathBuf), CliError> {
    let named = name.is_some() || first;
    let found = if named {
        resolve::resolve_volume(scene, name)?
    } else {
        // A volume of another name's case is one that the user has made.
        resolve::wait_for_volumes(scene, false)?;
        let is_first = |volume: &&Volume| volume.name == resolve::FIRST_VOLUME_NAME;
        scene.handle.read(move |session| session.volumes().find(is_first).map(|volume| volume.id))?
    };
    let id = match found {
        Some(id) => id,
        None => {
            let folder = scene.handle.workspace_folder().join(resolve::FIRST_VOLUME_NAME);
            copy::create_folder(&folder).map_err(CliError::workspace)?;
            open_volume(scene, folder, Some(resolve::FIRST_VOLUME_NAME.to_owned()))?.id
        }
    };
    let root = scene.handle.read(move |session| session.volume(id).and_then(|volume| volume.root.clone()))?;
    let root = root.ok_or_else(|| CliError::usage("the volume has no folder on this device"))?;
    Ok((id, root))
}

pub(super) fn cmd_new(scene: &mut CommandContext<'_>, args: &NewArguments) -> Result<u8, CliError> {
    let mut text = args.text.clone().unwrap_or_default();
    if text == "-" {
        text = crate::parse::read_text_input(scene.input, crate::notes::MAX_TEXT_INPUT_BYTES)?;
    }
    let (named, path) = resolve::read_new_path(scene, &args.path, args.volume.as_deref(), None)?;
    if path == "./" {
        return Err(CliError::usage(format!("name the new note, too: {}", args.path)));
    }
    let (volume, root) = volume_or_new(scene, named.as_deref(), true)?;
    resolve::wait_for_volumes(scene, true)?;
    system_files::refuse_system_path(scene, volume, &path)?;
    // The session knows no empty folders.
    let file = if FileKind::from_path(&path).is_text() { path.clone() } else { format!("{path}.md") };
    if copy::is_folder(&root.join(file.trim_start_matches('/'))) {
        return Err(CliError::usage(format!("a folder has that name already; choose another: {file}")));
    }
    scene.handle.run_command(Command::NewNote { volume, path: path.clone(), text })?;
    export::open_note::wait_until_saved(scene.handle)?;
    let made = scene.handle.read(move |session| {
        let volume = session.volume(volume)?;
        let path = path.trim_start_matches("./");
        let row = volume.files.get(path).or_else(|| volume.files.get(&format!("{path}.md")))?;
        Some((row.id, row.path.clone(), volume.name.clone()))
    })?;
    if let Some((note, path, volume)) = made {
        // The note exists; whether it stays open doesn't matter to the user.
        let _ = scene.handle.run_command(Command::CloseNote { note });
        if scene.json {
            writeln!(scene.out, "{}", serde_json::json!({"path": path, "volume": volume, "id": note}))?;
        } else {
            writeln!(scene.out, "{}:{}", untrusted_text::escape_line(&volume), untrusted_text::escape_line(&path))?;
        }
    }
    Ok(EXIT_DONE)
}

/// Lists volumes with their folders, numbers of files and settings; with `missing`, also those that aren't here yet.
pub(super) fn list_volumes(scene: &mut CommandContext<'_>, only: Option<DocId>, missing: bool) -> Result<u8, CliError> {
    let mut rows = scene.handle.read(move |session| {
        let mut volumes: Vec<_> =
            session.volumes().filter(|volume| only.is_none_or(|only| only == volume.id)).collect();
        volumes.sort_by_key(|volume| &volume.name);
        let row = |volume: &Volume| {
            let notes = volume.files.values().filter(|row| row.kind == FileKind::Note).count();
            serde_json::json!({
                "id": volume.id, "name": volume.name, "folder": volume.root, "notes": notes,
                "files": volume.files.len(), "trusted": session.settings().trusted_volumes.contains(&volume.id),
                "readonly": session.read_only_reason(volume.id).is_some(),
            })
        };
        volumes.into_iter().map(row).collect::<Vec<_>>()
    })?;
    let settings = resolve::volume_settings(scene);
    rows.iter_mut().for_each(|row| volume_settings::describe(&settings, row));
    if missing {
        rows.extend(volume_settings::missing_rows(&settings, &rows));
    }
    if scene.json {
        writeln!(scene.out, "{}", serde_json::Value::from(rows))?;
        return Ok(EXIT_DONE);
    }
    for row in rows {
        let text = |key: &str| untrusted_text::escape_line(row[key].as_str().unwrap_or("not on this device"));
        let (set, hint) = volume_settings::settings_text(&row);
        let id: String = row["id"].as_str().unwrap_or_default().chars().take(8).collect();
        let trusted = if row["trusted"] == true { "  trusted" } else { "" };
        let read_only = if row["readonly"] == true { "  read-only" } else { "" };
        let (name, folder, notes) = (text("name"), text("folder"), row["notes"].as_u64().unwrap_or_default());
        let notes = counted(notes, "note");
        writeln!(scene.out, "{id:8}  {name}  {notes}  {folder}{set}{trusted}{read_only}")?;
        if let Some(hint) = hint {
            writeln!(scene.out, "{hint}")?;
        }
    }
    Ok(EXIT_DONE)
}

/// Lists the notes that changed last, newest first.
fn list_recent(scene: &mut CommandContext<'_>, only: Option<DocId>, limit: usize) -> Result<u8, CliError> {
    let rows = scene.handle.read(move |session| {
        let volumes = session.volumes().filter(|volume| only.is_none_or(|only| only == volume.id));
        let notes = volumes.flat_map(|volume| volume.files.values().map(|row| (volume.name.as_str(), row)));
        let mut notes: Vec<_> = notes.filter(|(_, row)| row.kind == FileKind::Note).collect();
        notes.sort_by_key(|(_, row)| std::cmp::Reverse(row.mtime));
        let notes = notes.into_iter().take(limit);
        notes.map(|(volume, row)| (volume.to_owned(), row.path.clone(), row.mtime / 1_000_000)).collect::<Vec<_>>()
    })?;
    for (volume, path, changed) in rows {
        if scene.json {
            writeln!(scene.out, "{}", serde_json::json!({"path": path, "volume": volume, "changed": changed}))?;
        } else {
            let (path, volume) = (untrusted_text::escape_line(&path), untrusted_text::escape_line(&volume));
            let at = jiff::Timestamp::from_millisecond(changed).unwrap_or_default();
            let at = at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string();
            writeln!(scene.out, "{at}  {path}  ({volume})")?;
        }
    }
    Ok(EXIT_DONE)
}

/// Lists the tags of notes with the number of notes that have each. Upper and lower case are one tag.
fn list_tags(scene: &mut CommandContext<'_>, only: Option<DocId>) -> Result<u8, CliError> {
    file_ops::wait_for_links(scene)?;
    let volumes = scene.handle.read(move |session| {
        let wanted = session.volumes().filter(|volume| only.is_none_or(|only| only == volume.id));
        let mut volumes: Vec<(String, TagCounts)> = wanted
            .map(|volume| {
                let mut counts = TagCounts::new();
                let notes = volume.links.files().filter(|(_, path, _)| !agent::memory::is_memory(path));
                for outline in notes.filter_map(|(_, _, outline)| outline) {
                    let mut own: BTreeMap<String, &str> = BTreeMap::new();
                    for tag in outline.tags.iter().map(|tag| tag.trim_matches('/')).filter(|tag| !tag.is_empty()) {
                        own.entry(tag.to_lowercase()).or_insert(tag);
                    }
                    for (key, tag) in own {
                        counts.entry(key).or_insert_with(|| (tag.to_owned(), 0)).1 += 1;
                    }
                }
                (volume.name.clone(), counts)
            })
            .collect();
        volumes.sort();
        volumes
    })?;
    let is_empty = volumes.iter().all(|(_, counts)| counts.is_empty());
    scene.explain_empty_list(is_empty, "No tags. A tag is a word such as #garden in a note.")?;
    for (volume, counts) in volumes {
        for (tag, notes) in counts.into_values() {
            match scene.json {
                true => {
                    writeln!(scene.out, "{}", serde_json::json!({"tag": tag, "notes": notes, "volume": volume}))?;
                }
                false => {
                    let (tag, volume) = (untrusted_text::escape_line(&tag), untrusted_text::escape_line(&volume));
                    writeln!(scene.out, "{notes:6}  #{tag}  ({volume})")?;
                }
            }
        }
    }
    Ok(EXIT_DONE)
}

pub(super) fn cmd_ls(scene: &mut CommandContext<'_>, args: &LsArguments) -> Result<u8, CliError> {
    let is_system = args.volume.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(SYSTEM_VOLUME_NAME));
    if is_system && resolve::resolve_volume(scene, args.volume.as_deref()).is_err() {
        return system_files::list_files(scene);
    }
    let only = match args.volume.as_ref() {
        Some(name) => resolve::resolve_volume(scene, Some(name))?,
        None => None,
    };
    resolve::wait_for_volumes(scene, true)?;
    if args.volumes {
        return list_volumes(scene, only, false);
    }
    if args.tags {
        return list_tags(scene, only);
    }
    if let Some(limit) = crate::parse::number_option("recent", args.recent.as_deref())? {
        return list_recent(scene, only, usize::try_from(limit).unwrap_or(usize::MAX));
    }
    let rows = scene.handle.read(move |session| {
        let mut rows: Vec<serde_json::Value> = Vec::new();
        let mut volumes: Vec<_> =
            session.volumes().filter(|volume| only.is_none_or(|only| only == volume.id)).collect();
        volumes.sort_by_key(|volume| &volume.name);
        for volume in volumes {
            let is_read_only = session.read_only_reason(volume.id).is_some();
            for row in volume.files.values() {
                let open = session.note(row.id).filter(|note| note.is_settled());
                let (blocks, cells) = match open {
                    Some(note) => (note.blocks().count(), note.cells().count()),
                    None => (row.blocks as usize, row.cells as usize),
                };
                let mut shown = serde_json::json!({
                    "path": row.path, "kind": row.kind, "blocks": blocks, "cells": cells, "volume": volume.name,
                });
                if let Some(problem) = volume.links.outline(row.id).and_then(|outline| outline.problem.clone()) {
                    shown["problem"] = problem.into();
                }
                if is_read_only {
                    shown["readonly"] = true.into();
                }
                rows.push(shown);
            }
            for SkippedFile { path, why, .. } in &volume.skipped {
                rows.push(serde_json::json!({"path": path, "kind": "skipped", "why": why, "volume": volume.name}));
            }
        }
        rows
    })?;
    if scene.json {
        writeln!(scene.out, "{}", serde_json::Value::from(rows))?;
        return Ok(EXIT_DONE);
    }
    scene.explain_empty_list(rows.is_empty(), "No files yet. `tracebook open FOLDER` opens a folder of notes.")?;
    let mut volume = String::new();
    for row in rows {
        let text = |key: &str| row[key].as_str().unwrap_or("").to_owned();
        if text("volume") != volume {
            volume = text("volume");
            let read_only = if row["readonly"] == true { " (read-only)" } else { "" };
            writeln!(scene.out, "{}{read_only}", untrusted_text::escape_line(&volume))?;
        }
        let cells = match row["cells"].as_u64() {
            Some(0) | None => String::new(),
            Some(cells) => format!(", {}", counted(cells, "cell")),
        };
        let kind = match row["kind"].as_str() {
            Some("note") => String::new(),
            Some("skipped") => format!("  (skipped: {})", untrusted_text::escape_line(&text("why"))),
            _ => format!("  ({})", text("kind")),
        };
        writeln!(scene.out, "  {}{kind}{cells}", untrusted_text::escape_line(&text("path")))?;
        if let Some(problem) = row["problem"].as_str() {
            writeln!(scene.out, "    {}", untrusted_text::escape_line(problem))?;
        }
    }
    Ok(EXIT_DONE)
}

pub(super) fn cmd_import(scene: &mut CommandContext<'_>, args: &ImportArguments) -> Result<u8, CliError> {
    let (notebooks, paths): (Vec<PathBuf>, Vec<PathBuf>) =
        import_paths(args, scene.folder).into_iter().partition(|path| export::notebook_import::is_notebook_path(path));
    let around = match &args.volume {
        None if paths.is_empty() && !notebooks.is_empty() => volume_around(scene, &notebooks)?,
        _ => None,
    };
    let mut repairs = Vec::new();
    let mut notebooks = export::notebook_import::read_notebooks(&notebooks, &mut |repair| repairs.push(repair))?;
    let (volume, root) = match around {
        Some((volume, root, folders)) => {
            for ((name, _), folder) in notebooks.iter_mut().zip(folders) {
                name.insert_str(0, &folder);
            }
            (volume, root)
        }
        None => volume_or_new(scene, args.volume.as_deref(), false)?,
    };
    if let Some(why) = scene.handle.read(move |session| session.read_only_reason(volume))? {
        return Err(CliError::usage(why));
    }
    // All or nothing: two files with the same name would collide in the middle of copying.
    let twins = |at: usize| paths[..at].iter().any(|other| other.file_name() == paths[at].file_name());
    if let Some(twin) = (0..paths.len()).find(|at| twins(*at)) {
        return Err(CliError::usage(format!("two imports have the same name; rename one: {}", paths[twin].display())));
    }
    if let Some((twin, _)) = notebooks
        .iter()
        .enumerate()
        .find_map(|(at, notebook)| notebooks[..at].iter().any(|other| other.0 == notebook.0).then_some(notebook))
    {
        return Err(CliError::usage(format!("two imports have the same name; rename one: {twin}")));
    }
    let made = notebooks.iter().map(|(name, _)| {
        let name = Path::new(name);
        (name, name.parent().map_or_else(|| root.clone(), |folder| root.join(folder)))
    });
    let copies = paths.iter().map(|path| (path.as_path(), root.clone()));
    if let Some(why) = copies.chain(made).find_map(|(path, folder)| copy::copy_conflict(path, &folder)) {
        return Err(CliError::usage(why));
    }
    let mut copied = copy::CopyReport::default();
    for path in &paths {
        let one = copy::copy_into(path, &root).map_err(CliError::usage)?;
        copied.files.extend(one.files);
        copied.skipped.extend(one.skipped);
    }
    let opened = open_volume(scene, root, None)?;
    for (name, laid) in notebooks {
        export::notebook_import::create_note(scene.handle, opened.id, &name, laid)?;
        copied.files.push(name);
    }
    export::open_note::wait_until_saved(scene.handle)?;
    for repair in repairs {
        writeln!(scene.errors, "tracebook: {}", untrusted_text::escape_line(&repair))?;
    }
    for path in paths.iter().filter(|path| is_archive(path)) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = untrusted_text::escape_line(&name);
        writeln!(
            scene.errors,
            "tracebook: {name} is an attachment; to use notes in it, unpack it and open its folder"
        )?;
    }
    let (files, skipped) = (copied.files, copied.skipped);
    if scene.json {
        let answer = serde_json::json!({"volume": opened.name, "imported": files, "skipped": skipped});
        writeln!(scene.out, "{answer}")?;
    } else {
        writeln!(scene.out, "{}: {} imported", opened.name, counted(files.len(), "file"))?;
        for SkippedFile { path, why, .. } in &skipped {
            writeln!(scene.out, "  {}: {}", untrusted_text::escape_line(path), untrusted_text::escape_line(why))?;
        }
    }
    Ok(EXIT_DONE)
}

/// Whether a file's name says that others are packed in it, as in exports of other programs.
fn is_archive(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    matches!(ending.as_str(), "zip" | "7z" | "rar" | "tar" | "tgz")
}

pub(super) fn cmd_export(scene: &mut CommandContext<'_>, args: &ExportArguments) -> Result<u8, CliError> {
    let dest = scene.folder.join(args.dest.as_str());
    if let Some(links) = args.fragment.as_deref() {
        if args.dest != "-" {
            return Err(CliError::usage("a fragment is printed: name `-` as DEST"));
        }
        let note = resolve::resolve_note(scene, args.note_or_volume.as_str())?;
        let NoteFragment { html, volume, path, cells, running } = export::note_fragment(scene.handle, note, links)?;
        if scene.json {
            let value = serde_json::json!({
                "html": html, "volume": volume, "path": path, "cells": cells, "running": running,
            });
            writeln!(scene.out, "{value}")?;
        } else {
            scene.out.write_all(html.as_bytes())?;
        }
        return Ok(EXIT_DONE);
    }
    if args.dest == "-" {
        return Err(CliError::usage("name a new file or folder; `tracebook cat` prints the text of a note"));
    }
    let what = match resolve::resolve_note_or_volume(scene, args.note_or_volume.as_str())? {
        resolve::ResolvedName::Note(note) => ExportScope::Note(note),
        resolve::ResolvedName::Volume(volume) => ExportScope::Folder(volume, String::new()),
    };
    let done = match (parse_export_request(&what, &dest, args)?, &what) {
        (ExportRequest::Ours(form), _) => export::export(scene.handle, &what, form, &dest, &ExportProgress::default())?,
        (ExportRequest::Jupyter(form), ExportScope::Note(note)) => {
            let files = vec![notebooks::write_note_as(scene, *note, &dest, form)?];
            export::ExportReport { files, ..export::ExportReport::default() }
        }
        (ExportRequest::Jupyter(form), ExportScope::Folder(volume, _)) => {
            export::save_and_create_folder(scene.handle, *volume, &dest)?;
            let (files, skipped) = notebooks::write_volume_as(scene, *volume, &dest, form)?;
            export::ExportReport { files, skipped, ..export::ExportReport::default() }
        }
    };
    if scene.json {
        let mut answer = serde_json::json!({"exported": done.files, "skipped": done.skipped});
        if !done.limited.is_empty() {
            answer["limited"] = serde_json::json!(done.limited);
        }
        writeln!(scene.out, "{answer}")?;
    } else {
        writeln!(scene.out, "{} exported to {}", counted(done.files.len(), "file"), dest.display())?;
        for SkippedFile { path, why, .. } in done.skipped.iter().chain(&done.limited) {
            writeln!(scene.out, "  {}: {}", untrusted_text::escape_line(path), untrusted_text::escape_line(why))?;
        }
    }
    if !done.missing.is_empty() {
        writeln!(scene.errors, "tracebook: {}", export::missing_glyphs_message(&done.missing))?;
    }
    Ok(EXIT_DONE)
}

/// Extensions of formats that users may expect but that aren't supported. Any other extension is part of the name.
const UNSUPPORTED_EXPORT_ENDINGS: &[&str] = &[
    "adoc", "csv", "doc", "docx", "epub", "jpeg", "jpg", "json", "odt", "org", "png", "ppt", "pptx", "rst", "rtf",
    "svg", "tex", "xls", "xlsx", "xml", "zip",
];

/// Requested export format.
enum ExportRequest {
    Ours(ExportFormat),
    Jupyter(notebooks::NotebookFormat),
}

/// Returns the requested format: from an option, or the new file's extension.
fn parse_export_request(what: &ExportScope, dest: &Path, args: &ExportArguments) -> Result<ExportRequest, CliError> {
    let paper = match args.paper.as_ref().map(|name| name.to_ascii_lowercase()).as_deref() {
        None | Some("a4") => PaperSize::A4,
        Some("letter") => PaperSize::Letter,
        Some(other) => return Err(CliError::usage(format!("--paper is a4 or letter, not “{other}”"))),
    };
    let named = |name: &str| match name {
        "html" | "htm" => Some(ExportRequest::Ours(ExportFormat::Html)),
        "pdf" => Some(ExportRequest::Ours(ExportFormat::Pdf(paper))),
        "ipynb" => Some(ExportRequest::Jupyter(notebooks::NotebookFormat::Notebook)),
        "py" => Some(ExportRequest::Jupyter(notebooks::NotebookFormat::Script)),
        "md" => Some(ExportRequest::Ours(ExportFormat::Files)),
        _ => None,
    };
    if args.html {
        return Ok(ExportRequest::Ours(ExportFormat::Html));
    }
    if let Some(to) = args.to.as_ref() {
        return named(to).ok_or_else(|| {
            CliError::usage(format!("there's no export to “{to}”; --to takes html, pdf, ipynb, py or md"))
        });
    }
    let ending = dest.extension().and_then(|ending| ending.to_str()).unwrap_or("").to_ascii_lowercase();
    if UNSUPPORTED_EXPORT_ENDINGS.contains(&ending.as_str()) && matches!(what, ExportScope::Note(_)) {
        return Err(CliError::usage(format!("can't export to .{ending}: use .md, .html, .pdf, .ipynb or .py")));
    }
    if matches!(what, ExportScope::Folder(..)) && matches!(ending.as_str(), "ipynb" | "py" | "html" | "htm") {
        let form = if ending.starts_with("htm") { "--html".to_owned() } else { format!("--to {ending}") };
        return Err(CliError::usage(format!(
            "a volume is exported to a folder, not to one .{ending} file: name a folder and add {form}, or a .pdf file"
        )));
    }
    // A volume is exported to a folder, whatever its name, unless the name requests a PDF.
    let named = named(&ending).filter(|_| matches!(what, ExportScope::Note(_)) || ending == "pdf");
    Ok(named.unwrap_or(ExportRequest::Ours(ExportFormat::Files)))
}
