//! Exports notes as Jupyter notebooks.

use crate::error::ExportError;
use crate::open_note::{hold_note, read_loaded_note};
use crate::{
    EXPORT_STOPPED_MESSAGE, ExportProgress, ExportReport, list_notes, render_jobs, restore_figure_blobs,
    save_and_create_folder,
};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use engine::event::SkippedFile;
use host::{Handle, fs::copy};
use jupyter::{CellRun, NotebookOriginal};
use serde_json::{Map, Value};
use std::path::Path;
use store::{BlockId, CellOutput, DocId, OutputBody};

/// Pixels per point of figures, as on current screens.
pub const FIGURE_PIXELS_PER_POINT: f64 = 2.0;

/// A note as a notebook file.
pub struct NotebookFile {
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// Why the metadata of the notebook that the note was made from is left out.
    pub loss: Option<String>,
}

/// Makes a notebook file of a note.
///
/// # Errors
/// Returns an error if the note can't be read.
pub fn notebook_file(handle: &Handle, note: DocId) -> Result<NotebookFile, ExportError> {
    let _held = hold_note(handle, note)?;
    let (text, mut cells, kept) = read_loaded_note(handle, note, |note| {
        let cell = |cell: BlockId| Some((note.block_start(cell)?, note.latest_execution(cell).cloned()));
        (note.text(), note.cells().filter_map(cell).collect::<Vec<_>>(), note.source_notebook())
    })?;
    let kept = kept.map(|kept| {
        let bytes = handle.read_blob(kept.blob).map_err(|why| why.to_string())?;
        NotebookOriginal::from_bytes(&bytes).map_err(|why| why.to_string())
    });
    let (kept, loss) = match kept.transpose() {
        Ok(kept) => (kept, None),
        Err(why) => (None, Some(format!("exported without the notebook's original metadata: {why}"))),
    };
    for execution in cells.iter_mut().filter_map(|(_, execution)| execution.as_mut()) {
        restore_figure_blobs(handle, &mut execution.outputs);
        draw_figures(&mut execution.outputs);
    }
    let ran: Vec<CellRun<'_>> =
        cells.iter().map(|(at, execution)| CellRun { at: *at, execution: execution.as_ref() }).collect();
    let blob = |hash| handle.read_blob(hash).ok();
    let notebook = jupyter::export_notebook(&text, &ran, kept.as_ref(), &blob);
    // Same format as Jupyter: indented by one space, with a final line end.
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    serde::Serialize::serialize(&notebook, &mut writer)
        .map_err(|error| ExportError::workspace(format!("the notebook cannot be written ({error})")))?;
    bytes.push(b'\n');
    Ok(NotebookFile { bytes, loss })
}

/// Exports the notes of a volume or folder as notebooks into a new folder.
pub(crate) fn export_notebooks(
    handle: &Handle,
    volume: DocId,
    below: &str,
    dest: &Path,
    progress: &ExportProgress,
) -> Result<ExportReport, ExportError> {
    save_and_create_folder(handle, volume, dest)?;
    let (_, notes) = list_notes(handle, volume, below)?;
    copy::create_folder(dest).map_err(ExportError::workspace)?;
    let mut done = ExportReport { dest: dest.to_owned(), ..ExportReport::default() };
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    for (at, (path, note)) in notes.iter().enumerate() {
        if !progress.report_fraction(at as f32 / notes.len() as f32) {
            return Err(ExportError::usage(EXPORT_STOPPED_MESSAGE));
        }
        let inner = path.strip_prefix(below).unwrap_or(path);
        let to = format!("{}.ipynb", inner.strip_suffix(".md").unwrap_or(inner));
        let file = match notebook_file(handle, *note) {
            Ok(file) => file,
            Err(why) => {
                done.skipped.push(SkippedFile::new(path.clone(), why.to_string()));
                continue;
            }
        };
        match copy::write_new_inside(dest, &to, &file.bytes) {
            Ok(()) => done.files.push(path.clone()),
            Err(why) => done.skipped.push(SkippedFile::new(path.clone(), why.to_string())),
        }
        done.limited.extend(file.loss.map(|why| SkippedFile::new(path.clone(), why)));
    }
    Ok(done)
}

/// Returns the figure among an output's formats, as JSON.
pub fn figure_json(data: &Map<String, Value>) -> Option<String> {
    let value = data.get(plot::FIGURE_MIME)?;
    Some(value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned))
}

/// Adds images to each figure in the outputs, for programs that can't draw Tracebook's figures.
pub fn draw_figures(outputs: &mut [CellOutput]) {
    for output in outputs {
        let (OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. }) = &mut output.body else {
            continue;
        };
        let (png, svg) = (data.contains_key("image/png"), data.contains_key("image/svg+xml"));
        let Some(json) = figure_json(data).filter(|_| !png || !svg) else { continue };
        let drawn = render_jobs::render_figure(&json, FIGURE_PIXELS_PER_POINT);
        if let Some(bytes) = drawn.0.filter(|_| !png) {
            data.insert("image/png".to_owned(), BASE64_STANDARD.encode(bytes).into());
        }
        if let Some(text) = drawn.1.filter(|_| !svg) {
            data.insert("image/svg+xml".to_owned(), text.into());
        }
    }
}
