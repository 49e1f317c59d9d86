//! Jupyter notebooks: `import` of `.ipynb` files, `export` of a note as a notebook or a script.

use super::{CliError, CommandContext};
use anyhow::anyhow;
use engine::event::SkippedFile;
use engine::{Note, Session};
use export;
use host::fs::copy;
use std::path::Path;
use store::{DocId, FileKind};

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
    let file = export::notebook_export::notebook_file(scene.handle, note)?;
    if let Some(why) = file.loss {
        writeln!(scene.errors, "tracebook: {why}")?;
    }
    Ok(file.bytes)
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
