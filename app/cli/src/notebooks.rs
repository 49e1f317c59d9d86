//! Jupyter notebooks: `import` of `.ipynb` files, `export` of a note as a notebook or a script.

use super::{CliError, CommandContext, output_files};
use anyhow::anyhow;
use engine::event::SkippedFile;
use engine::{Note, Session};
use export;
use host::fs::copy;
use jupyter::{CellRun, NotebookOriginal};
use std::path::Path;
use store::{BlockId, DocId, FileKind};

/// Export format for Jupyter and Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotebookFormat {
    /// A Jupyter notebook.
    Notebook,
    /// A Python script.
    Script,
}

impl NotebookFormat {
    /// Returns the file extension.
    fn extension(self) -> &'static str {
        match self {
            NotebookFormat::Notebook => "ipynb",
            NotebookFormat::Script => "py",
        }
    }
}

/// Returns a note as the bytes of a notebook file.
pub(super) fn notebook_bytes(scene: &mut CommandContext<'_>, note: DocId) -> Result<Vec<u8>, CliError> {
    let _held = export::open_note::hold_note(scene.handle, note)?;
    let (text, mut cells, kept) = export::open_note::read_loaded_note(scene.handle, note, |note| {
        let cell = |cell: BlockId| Some((note.block_start(cell)?, note.latest_execution(cell).cloned()));
        (note.text(), note.cells().filter_map(cell).collect::<Vec<_>>(), note.source_notebook())
    })?;
    let kept = match kept
        .map(|kept| {
            scene
                .handle
                .read_blob(kept.blob)
                .map_err(|why| why.to_string())
                .and_then(|bytes| NotebookOriginal::from_bytes(&bytes).map_err(|why| why.to_string()))
        })
        .transpose()
    {
        Ok(kept) => kept,
        Err(why) => {
            writeln!(scene.errors, "tracebook: exported without the notebook's original metadata: {why}")?;
            None
        }
    };
    for execution in cells.iter_mut().filter_map(|(_, execution)| execution.as_mut()) {
        export::restore_figure_blobs(scene.handle, &mut execution.outputs);
        output_files::draw_figures(&mut execution.outputs);
    }
    let ran: Vec<CellRun<'_>> =
        cells.iter().map(|(at, execution)| CellRun { at: *at, execution: execution.as_ref() }).collect();
    let blob = |hash| scene.handle.read_blob(hash).ok();
    let notebook = jupyter::export_notebook(&text, &ran, kept.as_ref(), &blob);
    // Same format as Jupyter: indented by one space, with a final line end.
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    serde::Serialize::serialize(&notebook, &mut writer)
        .map_err(|error| CliError::workspace(format!("the notebook cannot be written ({error})")))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Returns a note as a Python script.
pub(super) fn script_bytes(scene: &CommandContext<'_>, note: DocId) -> Result<Vec<u8>, CliError> {
    let _held = export::open_note::hold_note(scene.handle, note)?;
    let read = move |session: &Session| session.note(note).map(Note::text).unwrap_or_default();
    Ok(jupyter::export_script(&scene.handle.read(read)?).into_bytes())
}

/// Writes a note as a notebook or a script. Returns the note's path in the volume.
pub(super) fn write_note_as(
    scene: &mut CommandContext<'_>,
    note: DocId,
    dest: &Path,
    form: NotebookFormat,
) -> Result<String, CliError> {
    let path = scene.handle.read(move |session| session.locate_file(note).map(|(_, path)| path.to_owned()))?;
    let path = path.ok_or_else(|| CliError::usage("the note no longer exists"))?;
    let name = path.rsplit('/').next().unwrap_or(&path);
    let name = format!("{}.{}", name.strip_suffix(".md").unwrap_or(name), form.extension());
    let dest = if copy::is_folder(dest) { dest.join(name) } else { dest.to_owned() };
    let bytes = if form == NotebookFormat::Script { script_bytes(scene, note)? } else { notebook_bytes(scene, note)? };
    copy::write_new(&dest, &bytes).map_err(CliError::usage)?;
    Ok(path)
}

/// Writes all notes of a volume as notebooks or scripts into a new folder.
pub(super) fn write_volume_as(
    scene: &mut CommandContext<'_>,
    volume: DocId,
    dest: &Path,
    form: NotebookFormat,
) -> Result<(Vec<String>, Vec<SkippedFile>), CliError> {
    let read = move |session: &Session| {
        let files = session.volume(volume)?.files.values();
        let notes = files.filter(|row| row.kind == FileKind::Note);
        Some(notes.map(|row| (row.path.clone(), row.id)).collect::<Vec<_>>())
    };
    let (mut written, mut skipped) = (Vec::new(), Vec::new());
    for (path, note) in scene.handle.read(read)?.unwrap_or_default() {
        let made = if form == NotebookFormat::Script { script_bytes(scene, note) } else { notebook_bytes(scene, note) };
        let to = format!("{}.{}", path.strip_suffix(".md").unwrap_or(&path), form.extension());
        match made.map_err(|refusal| anyhow!(refusal.why)).and_then(|bytes| copy::write_new_inside(dest, &to, &bytes)) {
            Ok(()) => written.push(path),
            Err(why) => skipped.push(SkippedFile::new(path, why.to_string())),
        }
    }
    Ok((written, skipped))
}
