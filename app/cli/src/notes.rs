//! `cmd_cat`, `cmd_edit`, `cmd_outputs`: commands for one note.

use super::retried_commands::edit_as_planned;
use super::{CliError, CommandContext, EXIT_DONE, EXIT_USAGE, resolve, saved_outputs, system_files};
use crate::arguments::{CatArguments, EditArguments, OutputsArguments};
use anyhow::anyhow;
use engine::{Command, Note, Session, StaleReason};
use std::io::{BufRead, BufReader, Read, Write};
use std::time::Duration;
use store::{BlobHash, BlockId, DocId, Execution};
use text::text_edit::{self, TextEdit};

/// After the end of its input, `cmd_edit` waits this long for a disk that rejects writes.
const EDIT_DISK_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of the long texts of a note's outputs in JSON, in bytes. Of the others, the beginning is printed.
const MAX_JSON_TEXT_BYTES: usize = 32 << 20;
/// Maximum size of a note's text on standard input, in bytes.
pub(super) const MAX_TEXT_INPUT_BYTES: u64 = 64 << 20;
/// Maximum size of an attachment that is printed, in bytes.
const MAX_ATTACHMENT_BYTES: u64 = 32 << 20;

fn report_problems(scene: &mut CommandContext<'_>, note: DocId) -> Result<(), CliError> {
    let problems = scene.handle.read(move |session| {
        let path = session.locate_file(note).map_or("", |(_, path)| path);
        let shown = session.volumes().find_map(|volume| volume.links.outline(note)?.problem.clone());
        let shown = shown.map(|problem| format!("{}: {problem}", text::untrusted_text::escape_line(path)));
        let own = session.note(note).map(|note| note.problems.clone()).unwrap_or_default();
        own.into_iter().chain(shown).collect::<Vec<_>>()
    })?;
    for problem in problems {
        writeln!(scene.errors, "tracebook: {problem}")?;
    }
    Ok(())
}

pub(super) fn cmd_cat(scene: &mut CommandContext<'_>, args: &CatArguments) -> Result<u8, CliError> {
    let in_volume = args.volume.as_ref().map(|volume| format!("{volume}:{}", args.note.trim_start_matches('/')));
    let word = in_volume.as_deref().unwrap_or(&args.note);
    let found = resolve::resolve_note(scene, word);
    if let Some(path) = resolve::system_path(word).filter(|_| found.is_err()) {
        return system_files::print_file(scene, &path);
    }
    if found.is_err()
        && let Some(file) = resolve::find_attachment(scene, word)?
    {
        let bytes = file.read(MAX_ATTACHMENT_BYTES).ok_or_else(|| {
            let most = MAX_ATTACHMENT_BYTES >> 20;
            CliError::usage(format!("the attachment can't be read, or has more than {most} MB: {word}"))
        })?;
        scene.out.write_all(&bytes)?;
        return Ok(EXIT_DONE);
    }
    let note = match (found, word.rsplit_once('#')) {
        (Ok(note), _) => note,
        (Err(_), Some((path, place))) => return print_passage(scene, path, place),
        (Err(why), None) => return Err(why),
    };
    let held = export::open_note::hold_note(scene.handle, note)?;
    if args.blocks {
        print_blocks(scene, note)?;
        drop(held);
        return Ok(EXIT_DONE);
    }
    let read = move |session: &Session| session.note(note).map(|note| (note.text(), note.file.trouble.clone()));
    let (text, trouble) = scene.handle.read(read)?.unwrap_or_default();
    if let Some(why) = trouble {
        writeln!(scene.errors, "tracebook: this is the note's last text, and its file differs: {why}")?;
    }
    if scene.json {
        let place = scene.handle.read(move |session| {
            let (volume, path) = session.locate_file(note)?;
            Some((session.volume(volume)?.name.clone(), path.to_owned()))
        })?;
        let (volume, path) = place.unwrap_or_default();
        let version = BlobHash::of(text.as_bytes()).to_string();
        let shown = serde_json::json!({"text": text, "path": path, "volume": volume, "version": version});
        writeln!(scene.out, "{shown}")?;
    } else {
        scene.out.write_all(text.as_bytes())?;
    }
    drop(held);
    report_problems(scene, note)?;
    Ok(EXIT_DONE)
}

/// Prints a note's blocks, with their offsets in bytes, and what is a cell.
fn print_blocks(scene: &mut CommandContext<'_>, note: DocId) -> Result<(), CliError> {
    let rows = export::open_note::read_loaded_note(scene.handle, note, |note| {
        let mut at = 0;
        let row = |block: &store::Block| {
            let start = at;
            at += block.text.len();
            let language = note.cell_language(block.id);
            serde_json::json!({"id": block.id, "at": start, "text": block.text, "cell": language})
        };
        note.blocks().map(row).collect::<Vec<_>>()
    })?;
    for row in rows {
        writeln!(scene.out, "{row}")?;
    }
    Ok(())
}

/// Prints the passage at a search address: `NOTE#block`, or `NOTE#cell/output/2`.
fn print_passage(scene: &mut CommandContext<'_>, path: &str, place: &str) -> Result<u8, CliError> {
    let note = resolve::resolve_note(scene, path)?;
    let held = export::open_note::hold_note(scene.handle, note)?;
    let none = || CliError::usage(format!("the note has no such passage: {place}"));
    let mut parts = place.split('/');
    let block: BlockId = parts.next().and_then(|block| block.parse().ok()).ok_or_else(none)?;
    match (parts.next(), parts.next().map(str::parse::<usize>), parts.next()) {
        (None, None, None) => {
            let text = scene.handle.read(move |session| Some(session.note(note)?.block(block)?.text.clone()))?;
            scene.out.write_all(text.ok_or_else(none)?.as_bytes())?;
        }
        (Some("output"), Some(Ok(number)), None) => {
            let outputs = export::open_note::read_loaded_note(scene.handle, note, move |note| {
                note.latest_execution(block).map(|run| run.outputs.clone())
            })?;
            let output = outputs.and_then(|outputs| outputs.into_iter().nth(number.checked_sub(1)?));
            super::run_cells::print_output(scene.out, &output.ok_or_else(none)?.body)?;
        }
        _ => return Err(none()),
    }
    drop(held);
    report_problems(scene, note)?;
    Ok(EXIT_DONE)
}

/// One line of `cmd_edit`'s input.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct EditInputLine {
    at: usize,
    #[serde(default)]
    delete: usize,
    #[serde(default)]
    insert: String,
    /// Instead of `delete`: the text that is replaced. If something else is there, nothing is changed.
    #[serde(default)]
    old: Option<String>,
    /// The version of the note that the edit is for. If it has another, nothing is changed.
    #[serde(default)]
    version: Option<String>,
}

pub(super) fn cmd_edit(scene: &mut CommandContext<'_>, args: &EditArguments) -> Result<u8, CliError> {
    let note = resolve::resolve_note(scene, args.note.as_str())?;
    let _held = export::open_note::hold_note(scene.handle, note)?;
    // A read-only document is reported before any edit is acknowledged.
    if let Some(why) = export::open_note::read_loaded_note(scene.handle, note, engine::Note::edit_refusal)? {
        return Err(CliError::workspace(why));
    }
    if args.text {
        replace_text(scene, note, args.if_version.as_deref())?;
    } else {
        apply_edit_lines(scene, note)?;
    }
    wait_for_file(scene, note)?;
    Ok(EXIT_DONE)
}

/// Waits until the note's text is written to its file, or reports why it isn't.
pub(super) fn wait_for_file(scene: &mut CommandContext<'_>, note: DocId) -> Result<(), CliError> {
    scene.handle.run_command(Command::Save)?;
    let look = move |session: &Session| {
        let Some(open) = session.note(note) else { return Some(None) };
        if open.is_ahead_of_file() { open.file.trouble.clone().map(Some) } else { Some(None) }
    };
    if let Some(Some(why)) = scene.handle.wait(Some(EDIT_DISK_TIMEOUT), look)? {
        writeln!(scene.errors, "tracebook: kept in the workspace; its file is written once that is possible: {why}")?;
    }
    Ok(())
}

/// Applies the edits from the input lines.
fn apply_edit_lines(scene: &mut CommandContext<'_>, note: DocId) -> Result<(), CliError> {
    // All available input is sent at once and acknowledged together, as a group commit. A slow writer gets each line
    // acknowledged separately.
    let mut input = BufReader::with_capacity(65_536, &mut *scene.input);
    let mut line = Vec::new();
    let mut number = 0_u64;
    let mut last = 0;
    loop {
        let mut sent = Vec::new();
        let mut wrong = None;
        let mut ended = false;
        loop {
            line.clear();
            if (&mut input).take(MAX_TEXT_INPUT_BYTES).read_until(b'\n', &mut line)? == 0 {
                ended = true;
                break;
            }
            number += 1;
            if !line.trim_ascii().is_empty() {
                match apply_edit_line(scene.handle, note, &line) {
                    Ok(seq) => sent.push(seq),
                    Err(why) => wrong = Some(why),
                }
            }
            if wrong.is_some() || !input.buffer().contains(&b'\n') || sent.len() >= 1_000 {
                break;
            }
        }
        for seq in sent {
            if seq > last {
                wait_until_durable(scene.handle, seq, scene.errors)?;
                last = seq;
            }
            writeln!(scene.out, "{{\"seq\":{seq},\"durable\":true}}")?;
        }
        scene.out.flush()?;
        if let Some(why) = wrong {
            return Err(CliError { code: EXIT_USAGE, why: format!("line {number}: {why}") });
        }
        if ended {
            return Ok(());
        }
    }
}

fn apply_edit_line(handle: &host::Handle, note: DocId, line: &[u8]) -> anyhow::Result<u64> {
    let line: EditInputLine = serde_json::from_slice(line)
        .map_err(|error| anyhow!("not of the form {{\"at\":BYTE,\"delete\":N,\"insert\":\"…\"}} ({error})"))?;
    let EditInputLine { at, delete, insert, old, version } = line;
    if old.is_none() && version.is_none() {
        return Ok(handle.run_command(Command::Edit { note, at, delete, insert })?);
    }
    let planned = edit_as_planned(handle, note, move |_, text| {
        if version.as_ref().is_some_and(|version| *version != BlobHash::of(text.as_bytes()).to_string()) {
            return Err(CliError::usage("the note has changed since it was read; read it again"));
        }
        let is_there = |old: &String| text.get(at..).is_some_and(|rest| rest.starts_with(old.as_str()));
        if old.as_ref().is_some_and(|old| !is_there(old)) {
            let why = format!("the text to replace is no longer at byte {at}; read the note again");
            return Err(CliError::usage(why));
        }
        let delete = old.as_ref().map_or(delete, String::len);
        Ok(vec![TextEdit { at, delete, insert: insert.clone() }])
    });
    planned.map_err(|error| anyhow!(error.why))
}

/// Waits until an edit is on disk. If the disk rejects it, reports that once and keeps waiting for
/// [`EDIT_DISK_TIMEOUT`].
pub(super) fn wait_until_durable(handle: &host::Handle, seq: u64, errors: &mut dyn Write) -> Result<(), CliError> {
    let look = move |session: &Session| {
        let saving = session.saving();
        if saving.durable >= seq { Some(Ok(())) } else { saving.trouble.clone().map(Err) }
    };
    let why = match handle.wait(None, look)? {
        Some(Ok(())) | None => return Ok(()),
        Some(Err(why)) => why,
    };
    writeln!(errors, "tracebook: not on disk yet, trying again: {why}")?;
    let look = move |session: &Session| (session.saving().durable >= seq).then_some(());
    match handle.wait(Some(EDIT_DISK_TIMEOUT), look)? {
        Some(()) => Ok(()),
        None => Err(CliError::workspace(format!("the edit {seq} and what followed it are not on disk: {why}"))),
    }
}

/// Replaces the note's text by standard input; with a version, only if the note still has it.
fn replace_text(scene: &mut CommandContext<'_>, note: DocId, version: Option<&str>) -> Result<(), CliError> {
    let text = super::parse::read_text_input(scene.input, MAX_TEXT_INPUT_BYTES)?;
    let old = scene.handle.read(move |session| session.note(note).map(Note::text))?.unwrap_or_default();
    let expected = BlobHash::of(old.as_bytes());
    if version.is_some_and(|version| version != expected.to_string()) {
        return Err(CliError::usage("the note has changed since it was read; read it again"));
    }
    let edits = text_edit::compute_edits(&old, &text);
    // Whoever edits meanwhile, in the window or from elsewhere, is never overwritten.
    let seq = scene.handle.run_command(Command::EditIfUnchanged { note, expected, edits })?;
    wait_until_durable(scene.handle, seq, scene.errors)?;
    writeln!(scene.out, "{{\"seq\":{seq},\"durable\":true}}")?;
    Ok(())
}

pub(super) fn cmd_outputs(scene: &mut CommandContext<'_>, args: &OutputsArguments) -> Result<u8, CliError> {
    let note = resolve::resolve_note(scene, args.note.as_str())?;
    let _held = export::open_note::hold_note(scene.handle, note)?;
    let found: Vec<(usize, Option<StaleReason>, Execution)> =
        export::open_note::read_loaded_note(scene.handle, note, |note| {
            let cells = note.cells().enumerate();
            cells
                .filter_map(|(at, cell)| Some((at + 1, note.stale_reason(cell), note.latest_execution(cell)?.clone())))
                .collect()
        })?;
    let folder = args.save.as_ref().map(|folder| scene.folder.join(folder));
    let mut room = if scene.json { MAX_JSON_TEXT_BYTES } else { usize::MAX };
    if let Some(folder) = &folder {
        let executions = found.into_iter().map(|(number, _, execution)| (number, execution));
        if saved_outputs::save_outputs(scene, note, folder, executions)? == 0 {
            writeln!(
                scene.errors,
                "tracebook: {} has no figures, pictures, tables or pages to save; run its cells first",
                text::untrusted_text::escape_line(&args.note)
            )?;
        }
        return Ok(EXIT_DONE);
    }
    for (number, stale, mut execution) in found {
        export::restore_text_blobs(scene.handle, &mut execution.outputs, usize::MAX, &mut room);
        if scene.json {
            let mut value = serde_json::to_value(&execution).unwrap_or_default();
            value["cell"] = number.into();
            value["stale"] = stale.is_some().into();
            if let Some(stale) = stale {
                value["why"] = stale.describe().into();
            }
            writeln!(scene.out, "{value}")?;
            continue;
        }
        let stale = match stale {
            Some(reason) => format!(", stale: {}", reason.describe()),
            None => String::new(),
        };
        let cached = if execution.cached { ", cached" } else { "" };
        writeln!(scene.out, "cell {number}: {}{cached}{stale}", execution.status.as_str())?;
        for output in &execution.outputs {
            super::run_cells::print_output(scene.out, &output.body)?;
        }
    }
    Ok(EXIT_DONE)
}
