//! `outputs --save` and `run --save`: cells' outputs as files in a folder. A note keeps the first rows of a large data
//! frame; the others come from the kernel that showed it, piece by piece, so memory stays small.

use super::{CliError, CommandContext, output_files};
use anyhow::{anyhow, bail};
use engine::{KernelPhase, Session};
use host::fs::copy;
use host::{Handle, InquiryAnswer, KernelInquiry};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::{CellOutput, DocId, Execution, OutputBody};
use typeset::ansi::CSV_MIME;

/// Maximum time that a kernel may take for a piece of a data frame, or until it's idle.
const FRAME_PIECE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of a data frame as CSV, in bytes.
const MAX_FRAME_CSV_BYTES: u64 = 8 << 30;
/// Maximum number of pieces of a data frame. A kernel could send rows without text.
const MAX_FRAME_PIECES: usize = 100_000;

/// A data frame of which the note keeps only the first rows, as its output's metadata say.
struct CutFrame {
    /// ID by which the kernel knows the frame.
    id: String,
    kept: usize,
    all: usize,
}

impl CutFrame {
    fn of(output: &CellOutput) -> Option<CutFrame> {
        let (OutputBody::ExecuteResult { metadata, .. } | OutputBody::DisplayData { metadata, .. }) = &output.body
        else {
            return None;
        };
        let about = metadata.get(CSV_MIME)?;
        let count = |key: &str| about[key].as_u64().and_then(|count| usize::try_from(count).ok());
        Some(CutFrame { id: about["frame"].as_str()?.to_owned(), kept: count("rows")?, all: count("all_rows")? })
    }

    /// Asks the kernel for rows from `first` on: CSV and the number of rows. `None`: it doesn't have them.
    fn ask_rows(&self, handle: &Handle, note: DocId, first: usize) -> Result<Option<(String, usize)>, CliError> {
        // Another cell may be running, whose end the kernel's answer would wait for.
        let idle = move |session: &Session| match session.note(note).map(|note| note.kernel) {
            Some(KernelPhase::Busy(_)) => None,
            Some(KernelPhase::Idle) => Some(true),
            Some(KernelPhase::Off) | None => Some(false),
        };
        if handle.wait(Some(FRAME_PIECE_TIMEOUT), idle)? != Some(true) {
            return Ok(None);
        }
        let asked = KernelInquiry::FrameRows { frame: self.id.clone(), first };
        let Some(answer) = handle.ask_kernel(note, asked)? else { return Ok(None) };
        match answer.recv_timeout(FRAME_PIECE_TIMEOUT) {
            Ok(InquiryAnswer::FrameRows(rows)) => Ok(rows.filter(|(_, count)| *count > 0)),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// Writes all rows to a new file. Returns whether the kernel had them; if not, there's no file.
    fn save(&self, handle: &Handle, note: DocId, file: &Path) -> Result<bool, CliError> {
        let Some(mut piece) = self.ask_rows(handle, note, 0)? else { return Ok(false) };
        let (mut rows, mut bytes, mut pieces, mut is_lost) = (0_usize, 0_u64, 0_usize, false);
        let next = || -> anyhow::Result<Option<Vec<u8>>> {
            if rows >= self.all {
                return Ok(None);
            }
            if pieces > 0 {
                let Some(more) = self.ask_rows(handle, note, rows).map_err(|error| anyhow!(error.why))? else {
                    is_lost = true;
                    bail!("the kernel no longer has all rows");
                };
                piece = more;
            }
            let (csv, count) = std::mem::take(&mut piece);
            (rows, bytes, pieces) = (rows.saturating_add(count), bytes + csv.len() as u64, pieces + 1);
            if bytes > MAX_FRAME_CSV_BYTES || pieces > MAX_FRAME_PIECES {
                let most = MAX_FRAME_CSV_BYTES >> 30;
                bail!("a data frame has more than {most} GB as CSV: write it in a cell, such as with to_parquet");
            }
            Ok(Some(csv.into_bytes()))
        };
        match copy::write_new_pieces(file, next) {
            Ok(()) => Ok(true),
            Err(_) if is_lost => Ok(false),
            Err(why) => Err(CliError::usage(why)),
        }
    }
}

/// Returns the folder that `run --save` names. It must be new or empty, which is checked before cells run.
pub(super) fn new_folder(scene: &CommandContext<'_>, named: &str) -> Result<PathBuf, CliError> {
    let folder = scene.folder.join(named);
    if !copy::is_empty(&folder) {
        return Err(CliError::usage(format!(
            "{} isn't an empty folder; choose a new one for --save",
            folder.display()
        )));
    }
    Ok(folder)
}

/// Saves the files of the latest executions of cells, whose numbers are given, and prints their paths. Returns the
/// number of files.
pub(super) fn save_outputs(
    scene: &mut CommandContext<'_>,
    note: DocId,
    folder: &Path,
    executions: impl IntoIterator<Item = (usize, Execution)>,
) -> Result<usize, CliError> {
    let mut saved = 0;
    for (number, mut execution) in executions {
        export::restore_figure_blobs(scene.handle, &mut execution.outputs);
        let mut at = 0;
        for output in &execution.outputs {
            let frame = CutFrame::of(output);
            if let Some(frame) = &frame {
                let file = folder.join(format!("cell-{number}-{}.csv", at + 1));
                if frame.save(scene.handle, note, &file)? {
                    (at, saved) = (at + 1, saved + 1);
                    report_file(scene, number, &file, Some((frame.all, frame.all)))?;
                    continue;
                }
            }
            let files = output_files::output_files(output, |hash| Ok(scene.handle.read_blob(hash)?))
                .map_err(CliError::workspace)?;
            at += usize::from(!files.is_empty());
            for (ending, bytes) in files {
                let file = folder.join(format!("cell-{number}-{at}.{ending}"));
                copy::write_new(&file, &bytes).map_err(CliError::usage)?;
                let rows = frame.as_ref().filter(|_| ending == "csv").map(|frame| (frame.kept, frame.all));
                report_file(scene, number, &file, rows)?;
                saved += 1;
            }
        }
    }
    Ok(saved)
}

/// Prints the path of a saved file. `rows`: how many rows of a data frame it has, and how many there are.
fn report_file(
    scene: &mut CommandContext<'_>,
    cell: usize,
    file: &Path,
    rows: Option<(usize, usize)>,
) -> Result<(), CliError> {
    if scene.json {
        let mut said = json!({"cell": cell, "saved": file.display().to_string()});
        if let Some((rows, all)) = rows {
            (said["rows"], said["all_rows"]) = (rows.into(), all.into());
        }
        writeln!(scene.out, "{said}")?;
    } else {
        writeln!(scene.out, "{}", file.display())?;
    }
    if let Some((rows, all)) = rows.filter(|(rows, all)| rows < all) {
        writeln!(
            scene.errors,
            "tracebook: {} has the first {rows} of {all} rows, because no kernel has the others now; to save all of \
             them: tracebook run NOTE --save FOLDER",
            file.display()
        )?;
    }
    Ok(())
}
