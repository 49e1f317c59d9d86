//! `git add` and `git commit` with `--with-outputs`: writes the outputs of cells as files beside their notes. They are
//! the same for the same outputs, and those of cells without an output are removed.

use super::{CliError, CommandContext, output_files, resolve, run_cells};
use crate::git_commands::GitArguments;
use engine::Session;
use host::fs::atomic_write::{ReplaceOutcome, replace_file};
use host::fs::confined_dir::ConfinedPath;
use host::fs::folder_names;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use store::{BlobHash, CellOutput, DocId, ExecutionStatus, FileKind, OutputBody};
use vcs::RepositoryFolder;

/// What follows the path of a note in the name of the folder of its outputs.
const OUTPUTS_ENDING: &str = ".outputs";
/// How the name of each file in such a folder begins. Others are left alone.
const FILE_BEGINNING: &str = "cell-";
/// Maximum size in bytes of the text of a cell.
const MAX_CELL_TEXT_BYTES: usize = 256 << 10;
/// Maximum size in bytes of the data of a cell.
const MAX_CELL_JSON_BYTES: usize = 1 << 20;
/// Maximum size in bytes of a picture.
const MAX_PICTURE_BYTES: usize = 4 << 20;
/// Maximum size in bytes of all texts of a note.
const MAX_NOTE_TEXT_BYTES: usize = 8 << 20;
/// Maximum number of pictures of a cell.
const MAX_CELL_PICTURES: usize = 50;
/// Maximum size of a file that is compared before it's replaced.
const MAX_OLD_FILE_BYTES: u64 = 64 << 20;

/// A note of the volume that may have outputs.
struct OutputsNote {
    id: DocId,
    /// Path in the volume.
    path: String,
    has_cells: bool,
}

/// The files of a note's cells.
#[derive(Default)]
struct OutputsFiles {
    /// Content by name.
    files: BTreeMap<String, Vec<u8>>,
    /// Numbers of cells that are at work: their files stay as they are.
    at_work: BTreeSet<usize>,
}

/// Returns the volume that a command without `--volume` is about: the innermost around its folder.
pub(super) fn volume_around(scene: &CommandContext<'_>) -> Result<DocId, CliError> {
    resolve::wait_for_volumes(scene, false)?;
    let roots = scene.handle.read(|session| {
        session.volumes().filter_map(|volume| Some((volume.id, volume.root.clone()?))).collect::<Vec<_>>()
    })?;
    let folder = real(scene.folder);
    let around = roots.into_iter().map(|(id, root)| (id, real(&root))).filter(|(_, root)| folder.starts_with(root));
    let innermost = around.max_by_key(|(_, root)| root.components().count());
    innermost.map(|(id, _)| id).ok_or_else(|| {
        CliError::usage(format!("no volume contains {}; `tracebook open` adds one", scene.folder.display()))
    })
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Writes the outputs of the notes that a command is about, which runs in `folder` of the volume. Returns the files
/// that Git now finds changed, relative to `folder`.
pub(super) fn write_outputs(
    scene: &CommandContext<'_>,
    (volume, root): (DocId, &Path),
    folder: &Path,
    args: &GitArguments,
) -> Result<Vec<String>, CliError> {
    if args.verb == "commit" && args.message.as_deref().unwrap_or_default().is_empty() && !args.amend {
        return Err(CliError::usage("a commit needs a message: -m \"What has changed\""));
    }
    if github::find_folder(folder).is_some() {
        return Err(CliError::usage("--with-outputs needs a clone that Git has made"));
    }
    let repository = RepositoryFolder::open(folder)?;
    resolve::wait_for_volumes(scene, true)?;
    export::open_note::wait_until_saved(scene.handle)?;
    let inside = real(folder).strip_prefix(real(root)).map(Path::to_path_buf).unwrap_or_default();
    let inside: Vec<String> = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let prefix = inside.iter().map(|part| format!("{part}/")).collect::<String>();
    let scope = scope_of(&repository, args)?;
    let is_meant = |path: &str| {
        let Some(path) = path.strip_prefix(prefix.as_str()) else { return false };
        scope.as_ref().is_none_or(|names| {
            names.iter().any(|name| {
                let rest = path.strip_prefix(name.as_str());
                name.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        })
    };
    let (notes, orphans) = scene.handle.read(move |session| find_notes(session, volume))?;
    let mut folders = Vec::new();
    for note in notes.into_iter().filter(|note| is_meant(&note.path)) {
        let place = format!("{}{OUTPUTS_ENDING}", note.path);
        let old = list_files(root, &place);
        if !note.has_cells && old.is_empty() {
            continue;
        }
        let new = read_outputs(scene, note.id)?;
        update_folder(root, &place, &old, &new)?;
        folders.push(place);
    }
    for place in orphans.into_iter().filter(|place| is_meant(place.trim_end_matches(OUTPUTS_ENDING))) {
        update_folder(root, &place, &list_files(root, &place), &OutputsFiles::default())?;
        folders.push(place);
    }
    let below: Vec<String> =
        folders.iter().filter_map(|place| Some(format!("{}/", place.strip_prefix(prefix.as_str())?))).collect();
    let changed = repository.status()?.0;
    // What is removed and staged already isn't there to be staged.
    let paths = changed.iter().filter(|line| !line.starts_with("D ")).filter_map(|line| line.get(3..));
    let is_output = |path: &&str| {
        below.iter().any(|place| path.strip_prefix(place.as_str()).is_some_and(|name| name.starts_with(FILE_BEGINNING)))
    };
    Ok(paths.filter(is_output).map(ToOwned::to_owned).collect())
}

/// Returns the paths, relative to the folder, that a command takes: those that it names, or what is staged; `None` for
/// all.
fn scope_of(repository: &RepositoryFolder, args: &GitArguments) -> Result<Option<Vec<String>>, CliError> {
    let tidy = |name: &str| {
        let name = name.trim_start_matches("./").trim_end_matches('/');
        if name == "." { String::new() } else { name.to_owned() }
    };
    if !args.names.is_empty() {
        return Ok(Some(args.names.iter().map(|name| tidy(name)).collect()));
    }
    if args.verb == "add" || args.all {
        return Ok(None);
    }
    let lines = repository.status()?.0;
    let staged: Vec<String> = lines.iter().filter(|line| is_staged(line)).map(|line| line[3..].to_owned()).collect();
    Ok(Some(staged).filter(|staged| !staged.is_empty() || args.amend))
}

/// Returns whether a line of the status names something that is staged.
fn is_staged(line: &str) -> bool {
    !line.starts_with([' ', '?']) && line.is_char_boundary(3) && line.len() > 3
}

/// Returns the notes of a volume, and the folders of outputs whose notes are gone.
fn find_notes(session: &Session, volume: DocId) -> (Vec<OutputsNote>, BTreeSet<String>) {
    let Some(volume) = session.volume(volume) else { return (Vec::new(), BTreeSet::new()) };
    let notes = volume.files.values().filter(|row| row.kind == FileKind::Note).map(|row| OutputsNote {
        id: row.id,
        path: row.path.clone(),
        has_cells: match session.note(row.id).filter(|note| note.is_settled()) {
            Some(note) => note.cells().next().is_some(),
            None => row.cells > 0,
        },
    });
    let orphans = volume.files.keys().filter_map(|path| {
        let (place, name) = path.rsplit_once('/')?;
        let note = place.strip_suffix(OUTPUTS_ENDING).filter(|note| note.ends_with(".md"))?;
        (name.starts_with(FILE_BEGINNING) && !volume.files.contains_key(note)).then(|| place.to_owned())
    });
    (notes.collect(), orphans.collect())
}

/// Reads the outputs of a note's cells.
fn read_outputs(scene: &CommandContext<'_>, note: DocId) -> Result<OutputsFiles, CliError> {
    let _held = export::open_note::hold_note(scene.handle, note)?;
    let runs = export::open_note::read_loaded_note(scene.handle, note, |note| {
        note.cells().map(|cell| note.latest_execution(cell).cloned()).collect::<Vec<_>>()
    })?;
    let mut found = OutputsFiles::default();
    let mut room = MAX_NOTE_TEXT_BYTES;
    for (at, run) in runs.into_iter().enumerate() {
        let Some(mut run) = run else { continue };
        if matches!(run.status, ExecutionStatus::Queued | ExecutionStatus::Running) {
            found.at_work.insert(at + 1);
            continue;
        }
        export::restore_figure_blobs(scene.handle, &mut run.outputs);
        export::restore_text_blobs(scene.handle, &mut run.outputs, MAX_CELL_TEXT_BYTES, &mut room);
        found.files.extend(cell_files(at + 1, &run.outputs)?);
    }
    Ok(found)
}

/// Returns the files of a cell's outputs: what it printed and returned as text, other data as JSON, and pictures.
fn cell_files(number: usize, outputs: &[CellOutput]) -> Result<BTreeMap<String, Vec<u8>>, CliError> {
    let mut files = BTreeMap::new();
    let (mut text, mut data, mut pictures) = (Vec::new(), Vec::new(), 0);
    for output in outputs {
        run_cells::print_output(&mut text, &output.body)?;
        let value = output_data(output);
        if !value.is_empty() {
            data.push(Value::Object(value));
        }
        let drawn = output_files::output_pictures(&output.body);
        pictures += usize::from(!drawn.is_empty());
        for (ending, bytes) in drawn {
            if pictures <= MAX_CELL_PICTURES && bytes.len() <= MAX_PICTURE_BYTES {
                files.insert(format!("{FILE_BEGINNING}{number}-{pictures}.{ending}"), bytes);
            }
        }
    }
    if !text.is_empty() {
        files.insert(format!("{FILE_BEGINNING}{number}.txt"), shortened(text));
    }
    if !data.is_empty() {
        let json = serde_json::to_string_pretty(&data).unwrap_or_default() + "\n";
        let json = match json.len() <= MAX_CELL_JSON_BYTES {
            true => json,
            false => format!("[\n  \"{} bytes are left out here\"\n]\n", json.len()),
        };
        files.insert(format!("{FILE_BEGINNING}{number}.json"), json.into_bytes());
    }
    Ok(files)
}

/// Cuts a text that is too long, at the end of a line where there's one.
fn shortened(text: Vec<u8>) -> Vec<u8> {
    if text.len() <= MAX_CELL_TEXT_BYTES {
        return text;
    }
    let text = String::from_utf8_lossy(&text);
    let kept = &text[..text.floor_char_boundary(MAX_CELL_TEXT_BYTES)];
    let kept = kept.rfind('\n').map_or(kept, |end| &kept[..end]);
    format!("{kept}\n… {} bytes are left out here …\n", text.len() - kept.len()).into_bytes()
}

/// Returns the data of an output that is neither text nor a picture, by media type, with its keys in order. What
/// differs at each run, such as the execution's number and the ids of widgets, isn't part of it.
fn output_data(output: &CellOutput) -> Map<String, Value> {
    let (OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. }) = &output.body else {
        return Map::new();
    };
    let is_data = |mime: &str| {
        mime != "text/plain" && mime != plot::FIGURE_MIME && !mime.starts_with("image/") && !mime.contains("widget")
    };
    let known: BTreeMap<&String, &Value> = data.iter().filter(|(mime, _)| is_data(mime)).collect();
    let mut shown: Map<String, Value> =
        known.into_iter().map(|(mime, value)| (mime.clone(), diffable(value))).collect();
    if let Some(whole) = output.whole.as_ref().filter(|whole| is_data(&whole.mime) && !data.contains_key(&whole.mime)) {
        shown.insert(whole.mime.clone(), format!("{} bytes are left out here", whole.size).into());
    }
    shown
}

/// Returns a value with its keys in order and its texts as lists of lines, so that small changes make small
/// differences.
fn diffable(value: &Value) -> Value {
    match value {
        Value::String(text) if text.trim_end_matches('\n').contains('\n') => {
            text.split_inclusive('\n').map(Value::from).collect()
        }
        Value::Array(values) => values.iter().map(diffable).collect(),
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            Value::Object(sorted.into_iter().map(|(key, value)| (key.clone(), diffable(value))).collect())
        }
        other => other.clone(), // tidy: open because all other values are single ones
    }
}

/// Returns the names of the files of outputs in a folder of the volume; none if it isn't there.
fn list_files(root: &Path, place: &str) -> Vec<String> {
    let mut names = folder_names(root, place);
    names.retain(|name| name.starts_with(FILE_BEGINNING));
    names
}

/// Returns the number of the cell that a file is of.
fn cell_number(name: &str) -> Option<usize> {
    let rest = name.strip_prefix(FILE_BEGINNING)?;
    rest.split(['-', '.']).next()?.parse().ok()
}

/// Makes a folder of outputs hold these files. Files that are the same already aren't touched.
fn update_folder(root: &Path, place: &str, old: &[String], new: &OutputsFiles) -> Result<(), CliError> {
    for (name, bytes) in &new.files {
        let path = format!("{place}/{name}");
        let file = ConfinedPath::new(root, &path);
        let held = file.read(MAX_OLD_FILE_BYTES);
        if held.as_ref() == Some(bytes) {
            continue;
        }
        let refuse = |why: String| CliError::usage(format!("{path} can't be written: {why}"));
        let (folder, name) = file.open_parent(true).map_err(|error| refuse(error.to_string()))?;
        let expected = held.map(|held| BlobHash::of(&held));
        match replace_file(&folder.stable_path().join(name), expected, bytes).map_err(CliError::workspace)? {
            ReplaceOutcome::Done { .. } => {}
            ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone => {
                return Err(refuse("another program has just changed it; try again".to_owned()));
            }
        }
    }
    let is_over = |name: &&String| {
        let number = cell_number(name);
        !new.files.contains_key(*name) && number.is_some_and(|number| !new.at_work.contains(&number))
    };
    for name in old.iter().filter(is_over) {
        let gone = ConfinedPath::new(root, &format!("{place}/{name}"));
        let (folder, name) = gone.open_parent(false).map_err(CliError::usage)?;
        folder.remove_file(&name).map_err(CliError::usage)?;
    }
    // A folder with other files, or with none that were removed, stays.
    if new.files.is_empty()
        && let Ok((parent, name)) = ConfinedPath::new(root, place).open_parent(false)
    {
        parent.remove_empty_folder(&name);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result(count: u64, data: Value) -> CellOutput {
        let data = data.as_object().cloned().expect("an object");
        let body = OutputBody::ExecuteResult { execution_count: Some(count), data, metadata: Map::new() };
        CellOutput { body, whole: None }
    }

    #[test]
    fn the_same_outputs_are_the_same_files() {
        let printed = || CellOutput {
            body: OutputBody::Stream { name: "stdout".to_owned(), text: "tide 3\n".to_owned() },
            whole: None,
        };
        let png = "iVBORw0KGgo=";
        let first = [
            printed(),
            result(1, json!({"text/plain": "a table", "text/html": "<b>\n1\n</b>", "image/png": png})),
            result(1, json!({"application/json": {"b": 1, "a": [true]}})),
        ];
        let again = [
            printed(),
            result(9, json!({"image/png": png, "text/html": "<b>\n1\n</b>", "text/plain": "a table"})),
            result(9, json!({"application/json": {"a": [true], "b": 1}})),
        ];
        let files = cell_files(3, &first).expect("files");
        assert_eq!(files.keys().collect::<Vec<_>>(), ["cell-3-1.png", "cell-3.json", "cell-3.txt"]);
        assert_eq!(files, cell_files(3, &again).expect("files"));
        let text = String::from_utf8_lossy(&files["cell-3.txt"]).into_owned();
        assert!(text.starts_with("tide 3\na table\n"), "{text}");
        let json = String::from_utf8_lossy(&files["cell-3.json"]).into_owned();
        assert!(json.contains("\"<b>\\n\",\n") && !json.contains("image") && !json.contains('9'), "{json}");
        assert_eq!(cell_files(1, &[]).expect("files").len(), 0);
    }

    #[test]
    fn what_is_long_is_cut() {
        let line = "0123456789\n";
        let long = line.repeat(MAX_CELL_TEXT_BYTES / line.len() + 100);
        let body = OutputBody::Stream { name: "stdout".to_owned(), text: long };
        let files = cell_files(1, &[CellOutput { body, whole: None }]).expect("files");
        let text = String::from_utf8_lossy(&files["cell-1.txt"]).into_owned();
        assert!(
            text.len() < MAX_CELL_TEXT_BYTES + 100 && text.ends_with("bytes are left out here …\n"),
            "{}",
            text.len()
        );
        let json = "x".repeat(MAX_CELL_JSON_BYTES);
        let files = cell_files(1, &[result(1, json!({"application/json": json}))]).expect("files");
        assert!(files["cell-1.json"].len() < 100);
        assert_eq!(["cell-12-1.png", "cell-3.txt", "cell-x.txt"].map(cell_number), [Some(12), Some(3), None]);
    }
}
