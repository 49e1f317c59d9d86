//! Imports Jupyter notebooks as notes, for `import` and dropped `.ipynb` files.

use crate::error::ExportError;
use crate::open_note;
use engine::{Command, Note};
use host::fs::copy;
use jupyter::ImportedNotebook;
use std::path::{Path, PathBuf};
use store::{BlobRef, BlockId, DocId, Execution, ExecutionStatus, OutputBody};

/// Maximum size of an imported notebook in bytes.
const MAX_IMPORTED_NOTEBOOK_BYTES: u64 = 256 << 20;

/// Returns whether an imported file is a notebook.
pub fn is_notebook_path(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
    ending.eq_ignore_ascii_case("ipynb") && !copy::is_folder(path)
}

/// Reads notebooks. Returns each with the name of its note. `say` gets what was read differently than it's written.
pub fn read_notebooks(
    paths: &[PathBuf],
    say: &mut dyn FnMut(String),
) -> Result<Vec<(String, ImportedNotebook)>, ExportError> {
    let mut read = Vec::new();
    for path in paths {
        let wrong = |why: &str| ExportError::usage(format!("{why}: {}", path.display()));
        let bytes = copy::read(path, MAX_IMPORTED_NOTEBOOK_BYTES)
            .ok_or_else(|| wrong("the notebook cannot be read, or is too large"))?;
        let read_file = jupyter::read_notebook_with_nulls(&bytes);
        let (notebook, nulls) = read_file.map_err(|error| wrong(&error.to_string()))?;
        if nulls > 0 {
            let numbers = if nulls == 1 { "number is" } else { "numbers are" };
            say(format!("{nulls} {numbers} read as null, since JSON has no NaN and no Infinity: {}", path.display()));
        }
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        read.push((format!("{name}.md"), jupyter::import_notebook(notebook)));
    }
    Ok(read)
}

/// Creates a note from a notebook: its text, cell outputs, and metadata that text can't carry. Returns the note, which
/// is closed afterwards.
pub fn create_note(
    handle: &host::Handle,
    volume: DocId,
    path: &str,
    laid: ImportedNotebook,
) -> Result<DocId, ExportError> {
    handle.run_command(Command::NewNote { volume, path: path.to_owned(), text: laid.text })?;
    let own = path.to_owned();
    let made = handle.read(move |session| Some(session.volume(volume)?.files.get(&own)?.id))?;
    let note = made.ok_or_else(|| ExportError::workspace(format!("the note was not made: {path}")))?;
    let cells: Vec<(usize, BlockId)> = open_note::read_loaded_note(handle, note, |note: &Note| {
        note.cells().filter_map(|cell| Some((note.block_start(cell)?, cell))).collect()
    })?;
    let kept = laid.original.to_bytes();
    let size = kept.len() as u64;
    let blob = handle.store_blob(kept).map_err(ExportError::workspace)?;
    let mut executions = Vec::new();
    for printed in laid.outputs {
        // Cells in other languages are plain text here; their outputs stay with the original notebook.
        let Some((_, cell)) = cells.iter().find(|(at, _)| *at == printed.at) else { continue };
        let bodies = printed.outputs.into_iter().filter_map(|output| serde_json::from_value::<OutputBody>(output).ok());
        let outputs: Vec<_> = bodies.map(|body| handle.offload_large_output(body)).collect();
        let failed = outputs.iter().any(|output| matches!(output.body, OutputBody::Error { .. }));
        executions.push(Execution {
            id: printed.execution,
            cell: *cell,
            code: String::new(),
            started: 0,
            duration: None,
            waited: 0,
            status: if failed { ExecutionStatus::Error } else { ExecutionStatus::Ok },
            count: printed.count,
            outputs,
            cached: false,
            inputs: None,
        });
    }
    let notebook = BlobRef { blob, mime: "application/x-ipynb+json".to_owned(), size };
    handle.run_command(Command::TakeNotebook { note, notebook, executions })?;
    handle.run_command(Command::CloseNote { note })?;
    Ok(note)
}
