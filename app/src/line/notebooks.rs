//! Jupyter's notebooks: `import` of `.ipynb` files, `export` of a note as one, or as a program.

use super::{Refusal, Scene, notes, pictures};
use crate::export;
use engine::event::Skipped;
use engine::{Command, Note, Session};
use host::fs::copy;
use jupyter::{Kept, Laid, Ran};
use std::path::{Path, PathBuf};
use store::{BlobRef, BlockId, DocId, Execution, FileKind, OutputBody, Status};

/// A larger file is not read.
const LARGEST: u64 = 256 << 20;

/// What a note becomes for Jupyter and Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A notebook.
    Notebook,
    /// A Python program.
    Script,
}

impl Form {
    /// How the name of such a file ends.
    fn ending(self) -> &'static str {
        match self {
            Form::Notebook => "ipynb",
            Form::Script => "py",
        }
    }
}

/// Whether a file to be imported is a notebook.
pub(crate) fn is(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
    ending.eq_ignore_ascii_case("ipynb") && !copy::is_folder(path)
}

/// Reads notebooks, each with the name of its note.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<(String, Laid)>, Refusal> {
    let mut read = Vec::new();
    for path in paths {
        let wrong = |why: &str| Refusal::usage(format!("{why}: {}", path.display()));
        let bytes = copy::read(path, LARGEST).ok_or_else(|| wrong("the notebook cannot be read, or is too large"))?;
        let notebook = jupyter::read(&bytes).map_err(|error| wrong(&error.to_string()))?;
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        read.push((format!("{name}.md"), jupyter::lay(notebook)));
    }
    Ok(read)
}

/// Makes a note of a notebook: its text, the outputs of its cells, and beside them what a text cannot carry. Gives the
/// note, which is closed again.
pub(crate) fn make(handle: &host::Handle, volume: DocId, path: &str, laid: Laid) -> Result<DocId, Refusal> {
    handle.command(Command::NewNote { volume, path: path.to_owned(), text: laid.text })?;
    let own = path.to_owned();
    let made = handle.read(move |session| Some(session.volume(volume)?.files.get(&own)?.id))?;
    let note = made.ok_or_else(|| Refusal::workspace(format!("the note was not made: {path}")))?;
    let cells: Vec<(usize, BlockId)> = notes::loaded(handle, note, |note: &Note| {
        note.cells().filter_map(|cell| Some((note.start(cell)?, cell))).collect()
    })?;
    let kept = laid.kept.bytes();
    let size = kept.len() as u64;
    let blob = handle.keep_blob(kept).map_err(Refusal::workspace)?;
    let mut executions = Vec::new();
    for printed in laid.printed {
        // Cells in other languages are text here; their outputs stay with the notebook.
        let Some((_, cell)) = cells.iter().find(|(at, _)| *at == printed.at) else { continue };
        let bodies = printed.outputs.into_iter().filter_map(|output| serde_json::from_value::<OutputBody>(output).ok());
        let outputs: Vec<_> = bodies.map(|body| handle.lighten(body)).collect();
        let failed = outputs.iter().any(|output| matches!(output.body, OutputBody::Error { .. }));
        executions.push(Execution {
            id: printed.execution,
            cell: *cell,
            code: String::new(),
            started: 0,
            duration: None,
            status: if failed { Status::Error } else { Status::Ok },
            count: printed.count,
            outputs,
            cached: false,
            inputs: None,
        });
    }
    let notebook = BlobRef { blob, mime: "application/x-ipynb+json".to_owned(), size };
    handle.command(Command::TakeNotebook { note, notebook, executions })?;
    handle.command(Command::CloseNote { note })?;
    Ok(note)
}

/// A note as a notebook file.
pub(super) fn notebook(scene: &mut Scene<'_>, note: DocId) -> Result<Vec<u8>, Refusal> {
    let _held = notes::hold(scene.handle, note)?;
    let (text, mut cells, kept) = notes::loaded(scene.handle, note, |note| {
        let cell = |cell: BlockId| Some((note.start(cell)?, note.execution(cell).cloned()));
        (note.text(), note.cells().filter_map(cell).collect::<Vec<_>>(), note.notebook())
    })?;
    let kept = match kept.map(|kept| scene.handle.blob(kept.blob).and_then(|bytes| Kept::read(&bytes))).transpose() {
        Ok(kept) => kept,
        Err(why) => {
            writeln!(scene.errors, "tracebook: exported without what came with the notebook: {why}")?;
            None
        }
    };
    for execution in cells.iter_mut().filter_map(|(_, execution)| execution.as_mut()) {
        export::bring_figures(scene.handle, &mut execution.outputs);
        pictures::draw(&mut execution.outputs);
    }
    let ran: Vec<Ran<'_>> =
        cells.iter().map(|(at, execution)| Ran { at: *at, execution: execution.as_ref() }).collect();
    let blob = |hash| scene.handle.blob(hash).ok();
    let notebook = jupyter::notebook(&text, &ran, kept.as_ref(), &blob);
    // As Jupyter writes it: one space, one line end.
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    serde::Serialize::serialize(&notebook, &mut writer)
        .map_err(|error| Refusal::workspace(format!("the notebook cannot be written ({error})")))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// A note as a program.
pub(super) fn script(scene: &Scene<'_>, note: DocId) -> Result<Vec<u8>, Refusal> {
    let _held = notes::hold(scene.handle, note)?;
    let read = move |session: &Session| session.note(note).map(Note::text).unwrap_or_default();
    Ok(jupyter::script(&scene.handle.read(read)?).into_bytes())
}

/// Writes one note as a notebook or a program. Gives its path in the volume.
pub(super) fn note(scene: &mut Scene<'_>, note: DocId, dest: &Path, form: Form) -> Result<String, Refusal> {
    let path = scene.handle.read(move |session| session.place(note).map(|(_, path)| path.to_owned()))?;
    let path = path.ok_or_else(|| Refusal::usage("the note is no longer there"))?;
    let name = path.rsplit('/').next().unwrap_or(&path);
    let name = format!("{}.{}", name.strip_suffix(".md").unwrap_or(name), form.ending());
    let dest = if copy::is_folder(dest) { dest.join(name) } else { dest.to_owned() };
    let bytes = if form == Form::Script { script(scene, note)? } else { notebook(scene, note)? };
    copy::write_new(&dest, &bytes).map_err(Refusal::usage)?;
    Ok(path)
}

/// Writes all notes of a volume as notebooks, or as programs, into a new folder.
pub(super) fn volume(
    scene: &mut Scene<'_>,
    volume: DocId,
    dest: &Path,
    form: Form,
) -> Result<(Vec<String>, Vec<Skipped>), Refusal> {
    let read = move |session: &Session| {
        let files = session.volume(volume)?.files.values();
        let notes = files.filter(|row| row.kind == FileKind::Note);
        Some(notes.map(|row| (row.path.clone(), row.id)).collect::<Vec<_>>())
    };
    let (mut written, mut skipped) = (Vec::new(), Vec::new());
    for (path, note) in scene.handle.read(read)?.unwrap_or_default() {
        let made = if form == Form::Script { script(scene, note) } else { notebook(scene, note) };
        let to = format!("{}.{}", path.strip_suffix(".md").unwrap_or(&path), form.ending());
        match made.map_err(|refusal| refusal.why).and_then(|bytes| copy::write_below(dest, &to, &bytes)) {
            Ok(()) => written.push(path),
            Err(why) => skipped.push(Skipped { path, why }),
        }
    }
    Ok((written, skipped))
}
