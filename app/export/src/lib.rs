//! Exports notes to a new place: as files, HTML pages or PDF. The command line and the window share this code, which
//! runs on a thread that doesn't draw. Nothing is overwritten.

mod context;
pub mod error;
pub mod notebook_export;
pub mod notebook_import;
pub mod open_note;
pub mod render_jobs;

use crate::error::ExportError;
use crate::open_note::{OpenNoteGuard, wait_until_saved};
use crate::render_jobs::{LayoutNote, LayoutQuestion, LayoutReply, PageTheme, Unfinished};
use context::{ExportFiles, NoteContext, note_title, page_path};
use engine::event::SkippedFile;
use engine::{Note, Session};
use host::fs::confined_dir::{ConfinedFolder, ConfinedPath};
use host::{Handle, fs::copy};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use store::{CellOutput, DocId, Execution, FileKind, OutputBody};
use typeset::html;
use typeset::pdf::PaperSize;
use typeset::tints::{DARK_TINTS, LIGHT_TINTS, ThemeTints};

/// Maximum size of the text of an output in a page or document.
const MAX_OUTPUT_TEXT_BYTES: usize = 1 << 20;
/// Maximum size of the long texts of a note's outputs in a page or document. Of the others, the beginning is shown.
const MAX_NOTE_TEXT_BYTES: usize = 4 << 20;

/// Output format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// The original files, byte for byte.
    Files,
    /// HTML pages.
    Html,
    /// A single PDF document.
    Pdf(PaperSize),
    /// Jupyter notebooks.
    Notebook,
}

/// The notes to export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportScope {
    /// A single note.
    Note(DocId),
    /// All files of a volume below this path; an empty path means the whole volume.
    Folder(DocId, String),
}

/// Progress and cancellation of an export, shared between two threads.
#[derive(Default)]
pub struct ExportProgress {
    share: AtomicU32,
    stop: AtomicBool,
}

impl ExportProgress {
    /// Returns the finished share, 0 to 1.
    pub fn fraction(&self) -> f32 {
        f32::from_bits(self.share.load(Ordering::Relaxed))
    }

    /// Cancels the export.
    pub fn cancel(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Reports the finished share and returns whether to continue.
    fn report_fraction(&self, share: f32) -> bool {
        self.share.store(share.to_bits(), Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }
}

/// Files written and notes skipped.
#[derive(Debug, Default)]
pub struct ExportReport {
    /// Paths in the volume of the exported files.
    pub files: Vec<String>,
    /// Files that couldn't be exported, with the reasons.
    pub skipped: Vec<SkippedFile>,
    /// Files with parts shown as source, with the reasons.
    pub limited: Vec<SkippedFile>,
    /// Characters that no font on this system has.
    pub missing: Vec<char>,
    /// The new file or folder.
    pub dest: PathBuf,
}

/// Returns a message about characters that no font has.
pub fn missing_glyphs_message(missing: &[char]) -> String {
    let some: Vec<String> = missing.iter().take(12).map(char::to_string).collect();
    let more = if missing.len() > 12 { " and others" } else { "" };
    format!(
        "no font of this system has the letters {}{more}, so they are boxes in the document; install a font that has \
         them",
        some.join(" ")
    )
}

/// Counts a volume's files below a folder.
fn count_files_in_folder(volume: &engine::Volume, below: &str) -> usize {
    volume.files.keys().filter(|path| path.starts_with(below)).count()
}

/// Exports to a new file or folder.
///
/// # Errors
/// Returns an error if the destination exists, the content can't be read or written, or the export is canceled.
pub fn export(
    handle: &Handle,
    what: &ExportScope,
    form: ExportFormat,
    dest: &Path,
    progress: &ExportProgress,
) -> Result<ExportReport, ExportError> {
    match (what, form) {
        (ExportScope::Note(id), _) => export_note(handle, *id, form, dest, progress),
        (ExportScope::Folder(volume, below), ExportFormat::Pdf(paper)) => {
            let (name, notes) = list_notes(handle, *volume, below)?;
            export_pdf(handle, *volume, &name, notes, paper, dest, progress)
        }
        (ExportScope::Folder(volume, below), ExportFormat::Notebook) => {
            notebook_export::export_notebooks(handle, *volume, below, dest, progress)
        }
        (ExportScope::Folder(volume, below), ExportFormat::Html) => {
            save_and_create_folder(handle, *volume, dest)?;
            export_pages(handle, *volume, below, dest, progress)
        }
        (ExportScope::Folder(volume, below), ExportFormat::Files) => {
            let root = save_and_create_folder(handle, *volume, dest)?;
            let mut copied = copy::CopyReport::default();
            let all = handle.read({
                let (volume, below) = (*volume, below.clone());
                move |session| session.volume(volume).map_or(0, |volume| count_files_in_folder(volume, &below))
            })?;
            #[allow(clippy::cast_precision_loss, reason = "a share")]
            let mut goes_on = |done: usize| progress.report_fraction((done as f32 / all.max(1) as f32).min(1.0));
            copy::create_folder(dest).map_err(ExportError::workspace)?;
            let source = ConfinedFolder::open_root(&root).and_then(|root| root.open_folder(below));
            let source = source.map_err(|refused| ExportError::workspace(refused.to_string()))?;
            let target =
                ConfinedFolder::open_chosen(dest).map_err(|refused| ExportError::workspace(refused.to_string()))?;
            copy::copy_tree(&source, &target, &mut copied, &mut goes_on).map_err(ExportError::workspace)?;
            Ok(ExportReport {
                files: copied.files,
                skipped: copied.skipped,
                dest: dest.to_owned(),
                ..ExportReport::default()
            })
        }
    }
}

/// Returns a note's text and the last execution of each cell.
fn read_note_content(handle: &Handle, note: DocId) -> Result<(String, Vec<Option<Execution>>), ExportError> {
    let _held: OpenNoteGuard<'_> = crate::open_note::hold_note(handle, note)?;
    let read = |note: &Note| (note.text(), note.cells().map(|cell| note.latest_execution(cell).cloned()).collect());
    let (text, mut outputs): (String, Vec<Option<Execution>>) = crate::open_note::read_loaded_note(handle, note, read)?;
    let mut room = MAX_NOTE_TEXT_BYTES;
    for execution in outputs.iter_mut().flatten() {
        restore_figure_blobs(handle, &mut execution.outputs);
        restore_text_blobs(handle, &mut execution.outputs, MAX_OUTPUT_TEXT_BYTES, &mut room);
    }
    Ok((text, outputs))
}

/// Restores long texts, which are stored as blobs, in outputs. If an output has more than `most` bytes of text, or more
/// than there's `room` for, its last line says how many lines are left out. `room` becomes smaller by each text.
pub fn restore_text_blobs(handle: &Handle, outputs: &mut [CellOutput], most: usize, room: &mut usize) {
    for output in outputs {
        let Some(whole) = output.whole.as_ref().filter(|whole| whole.mime == "text/plain") else { continue };
        let read = handle.read_blob(whole.blob).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let most = most.min(*room);
        let restore = |shown: &str| match &read {
            Some(all) => shorten_text(all, most.max(shown.len())),
            None => format!("{}[the rest can't be read]\n", whole_lines(shown)),
        };
        let length = match &mut output.body {
            OutputBody::Stream { text, .. } => {
                *text = restore(text.as_str());
                text.len()
            }
            OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => {
                let shown = data.get("text/plain").and_then(serde_json::Value::as_str);
                let text = restore(shown.unwrap_or_default());
                let length = text.len();
                data.insert("text/plain".to_owned(), text.into());
                length
            }
            OutputBody::Error { .. } => continue,
        };
        *room = room.saturating_sub(length);
    }
}

/// Returns the whole lines at the start of a text, or everything if it's a single line.
fn whole_lines(text: &str) -> &str {
    text.rfind('\n').map_or(text, |end| &text[..=end])
}

/// Shortens a text to about this size. It then ends with a line that says how much is left out.
fn shorten_text(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let kept = whole_lines(&text[..text.floor_char_boundary(most)]);
    let rest = &text[kept.len()..];
    match rest.lines().count() {
        _ if !kept.ends_with('\n') => format!("{kept}\n… {} more bytes\n", rest.len()),
        1 => format!("{kept}… 1 more line\n"),
        lines => format!("{kept}… {lines} more lines\n"),
    }
}

/// Restores large figures, which are stored as blobs, in outputs.
pub fn restore_figure_blobs(handle: &Handle, outputs: &mut [CellOutput]) {
    for output in outputs {
        if let Some(whole) = output.whole.as_ref().filter(|whole| whole.mime == plot::FIGURE_MIME)
            && let OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } = &mut output.body
            && !data.contains_key(plot::FIGURE_MIME)
            && let Some(json) = handle.read_blob(whole.blob).ok().and_then(|bytes| String::from_utf8(bytes).ok())
        {
            data.insert(plot::FIGURE_MIME.to_owned(), json.into());
        }
    }
}

/// Returns the name of a volume or its folder, and its notes sorted by path.
fn list_notes(handle: &Handle, volume: DocId, below: &str) -> Result<(String, Vec<(String, DocId)>), ExportError> {
    let below = below.to_owned();
    let read = move |session: &Session| {
        let volume = session.volume(volume)?;
        let notes = volume.files.values().filter(|row| row.kind == FileKind::Note && row.path.starts_with(&below));
        let folder = below.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty());
        let name = folder.map_or_else(|| volume.name.clone(), str::to_owned);
        Some((name, notes.map(|row| (row.path.clone(), row.id)).collect::<Vec<_>>()))
    };
    handle.read(read)?.ok_or_else(|| ExportError::usage("the volume no longer exists"))
}

/// Saves a volume before it's exported into a new folder, and checks the destination. Returns the volume's own folder.
pub fn save_and_create_folder(handle: &Handle, volume: DocId, dest: &Path) -> Result<PathBuf, ExportError> {
    if dest.exists() {
        return Err(ExportError::usage(format!("it already exists; choose another name: {}", dest.display())));
    }
    wait_until_saved(handle)?;
    let root = handle.read(move |session| session.volume(volume).and_then(|volume| volume.root.clone()))?;
    let root = root.ok_or_else(|| ExportError::usage("the volume has no folder on this device"))?;
    if dest.starts_with(&root) {
        return Err(ExportError::usage(format!(
            "the new folder would lie inside the volume itself: {}",
            dest.display()
        )));
    }
    Ok(root)
}

/// Renders a note as a page. If it exceeds its limits, the page shows the source with the reason.
fn note_page(
    path: &str,
    text: &str,
    outputs: Vec<Option<Execution>>,
    near: &NoteContext<'_>,
) -> (String, Option<SkippedFile>) {
    let (light, dark) = (LIGHT_TINTS.css_variables(), DARK_TINTS.css_variables());
    let theme = PageTheme { light: &light, dark: &dark, drawn: LIGHT_TINTS };
    let laid = LayoutNote {
        title: note_title(path).to_owned(),
        path: path.to_owned(),
        text: text.to_owned(),
        outputs,
        plain: None,
    };
    match render_jobs::render_page(laid, &theme, false, &mut |question| Some(near.answer_question(&question))) {
        Ok(page) => (page, None),
        Err(why) => {
            let page = html::render_source_page(note_title(path), text, &limit_notice(&why), &light, &dark);
            (page, Some(SkippedFile::new(path.to_owned(), source_notice(&why))))
        }
    }
}

/// Returns the notice on a page that shows a note's source.
fn limit_notice(why: &Unfinished) -> String {
    format!("This is the note's source. Laying it out was stopped: {why}.")
}

fn source_notice(why: &Unfinished) -> String {
    format!("shown as its source, since laying it out was stopped: {why}")
}

/// Renders a text as a page without context.
pub fn text_page(title: &str, text: &str) -> String {
    let (light, dark) = (LIGHT_TINTS.css_variables(), DARK_TINTS.css_variables());
    let theme = PageTheme { light: &light, dark: &dark, drawn: LIGHT_TINTS };
    let (path, outputs) = (String::new(), Vec::new());
    let laid = LayoutNote { title: title.to_owned(), path, text: text.to_owned(), outputs, plain: None };
    render_jobs::render_page(laid, &theme, true, &mut |_| Some((LayoutReply::Nothing, Vec::new())))
        .unwrap_or_else(|why| html::render_source_page(title, text, &limit_notice(&why), &light, &dark))
}

/// Returns the colors of a document on white paper.
fn print_colors() -> ThemeTints {
    ThemeTints { paper: [0xff, 0xff, 0xff], ..LIGHT_TINTS }
}

/// Exports a single note. Returns its path in the volume.
fn export_note(
    handle: &Handle,
    id: DocId,
    form: ExportFormat,
    dest: &Path,
    progress: &ExportProgress,
) -> Result<ExportReport, ExportError> {
    let place = handle.read(move |session| session.locate_file(id).map(|(volume, path)| (volume, path.to_owned())))?;
    let (volume, path) = place.ok_or_else(|| ExportError::usage("the note no longer exists"))?;
    let inside = |name: String| if copy::is_folder(dest) { dest.join(name) } else { dest.to_owned() };
    let (mut missing, mut limited) = (Vec::new(), Vec::new());
    let dest = match form {
        ExportFormat::Files => {
            let _held = crate::open_note::hold_note(handle, id)?;
            let text = handle.read(move |session| session.note(id).map(Note::text).unwrap_or_default())?;
            let dest = inside(path.rsplit('/').next().unwrap_or(&path).to_owned());
            copy::write_new(&dest, text.as_bytes()).map_err(ExportError::usage)?;
            dest
        }
        ExportFormat::Html => {
            let (text, outputs) = read_note_content(handle, id)?;
            let files = ExportFiles::load(handle, volume, false)?;
            let linked = RefCell::default();
            let near = NoteContext { files: &files, own: &path, linked: &linked, document: false, served_at: None };
            let text = files.replace_collections(&path, &text);
            let dest = inside(format!("{}.html", note_title(&path)));
            let (page, source) = note_page(&path, &text, outputs, &near);
            copy::write_new(&dest, page.as_bytes()).map_err(ExportError::usage)?;
            limited.extend(source);
            dest
        }
        ExportFormat::Pdf(paper) => {
            let dest = inside(format!("{}.pdf", note_title(&path)));
            let notes = vec![(path.clone(), id)];
            let done = export_pdf(handle, volume, note_title(&path), notes, paper, &dest, progress)?;
            (missing, limited) = (done.missing, done.limited);
            dest
        }
        ExportFormat::Notebook => {
            let dest = inside(format!("{}.ipynb", note_title(&path)));
            let file = notebook_export::notebook_file(handle, id)?;
            copy::write_new(&dest, &file.bytes).map_err(ExportError::usage)?;
            limited.extend(file.loss.map(|why| SkippedFile::new(path.clone(), why)));
            dest
        }
    };
    Ok(ExportReport { files: vec![path], skipped: Vec::new(), limited, missing, dest })
}

/// What a note shows, for a page of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteFragment {
    /// The content as HTML, which runs no scripts.
    pub html: String,
    /// Name of the note's volume.
    pub volume: String,
    /// Path of the note in its volume.
    pub path: String,
    /// Number of cells.
    pub cells: usize,
    /// Number of cells that run or wait for others to end.
    pub running: usize,
}

/// Renders what a note shows. Links to files lead to addresses that begin with `links` and the volume's name.
///
/// # Errors
/// Returns an error if the note can't be read.
pub fn note_fragment(handle: &Handle, id: DocId, links: &str) -> Result<NoteFragment, ExportError> {
    let place = move |session: &Session| {
        let (volume, path) = session.locate_file(id)?;
        Some((volume, session.volume(volume)?.name.clone(), path.to_owned()))
    };
    let (volume, name, path) = handle.read(place)?.ok_or_else(|| ExportError::usage("the note no longer exists"))?;
    let (text, outputs) = read_note_content(handle, id)?;
    let running = handle.read(move |session| session.note(id).map_or(0, |note| note.pending_cells().len()))?;
    let files = ExportFiles::load(handle, volume, true)?;
    let linked = RefCell::default();
    let place = format!("{links}{}/", text::outline::percent_encode_path(&name));
    let near =
        NoteContext { files: &files, own: &path, linked: &linked, document: false, served_at: Some(place.as_str()) };
    let text = files.replace_collections(&path, &text);
    let cells = outputs.len();
    let (page, _) = note_page(&path, &text, outputs, &near);
    let html = html::page_content(&page).to_owned();
    Ok(NoteFragment { html, volume: name, path, cells, running })
}

/// Exports a note into a new folder, with the files that it shows and links to.
///
/// # Errors
/// Returns an error if the folder exists, the note can't be read or written, or the export is canceled.
pub fn export_bundle(
    handle: &Handle,
    id: DocId,
    dest: &Path,
    progress: &ExportProgress,
) -> Result<ExportReport, ExportError> {
    let place = handle.read(move |session| session.locate_file(id).map(|(volume, path)| (volume, path.to_owned())))?;
    let (volume, path) = place.ok_or_else(|| ExportError::usage("the note no longer exists"))?;
    let root = save_and_create_folder(handle, volume, dest)?;
    let (text, _) = read_note_content(handle, id)?;
    let files = ExportFiles::load(handle, volume, true)?;
    let folder = path.rfind('/').map_or("", |slash| &path[..=slash]);
    let name = path.strip_prefix(folder).unwrap_or(&path);
    let with_tables = files.replace_collections(&path, &text);
    copy::write_new_inside(dest, name, with_tables.as_bytes()).map_err(ExportError::usage)?;
    let mut done = ExportReport { files: vec![path.clone()], dest: dest.to_owned(), ..ExportReport::default() };
    let all = files.attachment_paths(&path, &text);
    let count = all.len();
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    for (at, attached) in all.into_iter().enumerate() {
        if !progress.report_fraction(at as f32 / count as f32) {
            return Err(ExportError::usage(copy::COPY_STOPPED));
        }
        // Files below the note's folder keep their relative path; all others go next to the note, where links find
        // them.
        let to = attached.strip_prefix(folder).unwrap_or(attached.rsplit('/').next().unwrap_or(&attached));
        match copy::copy_to(&ConfinedPath::new(&root, &attached), dest, to) {
            Ok(()) => done.files.push(attached),
            Err(why) => done.skipped.push(SkippedFile::new(attached, why.to_string())),
        }
    }
    Ok(done)
}

/// Exports notes as one PDF.
fn export_pdf(
    handle: &Handle,
    volume: DocId,
    name: &str,
    notes: Vec<(String, DocId)>,
    paper: PaperSize,
    dest: &Path,
    progress: &ExportProgress,
) -> Result<ExportReport, ExportError> {
    if dest.exists() {
        return Err(ExportError::usage(format!("it already exists; choose another name: {}", dest.display())));
    }
    let files = ExportFiles::load(handle, volume, notes.len() > 1)?;
    let tints = print_colors();
    let mut done = ExportReport { dest: dest.to_owned(), ..ExportReport::default() };
    let mut read = Vec::new();
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    for (at, (path, id)) in notes.iter().enumerate() {
        if !progress.report_fraction(0.3 * at as f32 / notes.len() as f32) {
            return Err(ExportError::usage(EXPORT_STOPPED_MESSAGE));
        }
        match read_note_content(handle, *id) {
            Ok((text, outputs)) => {
                let text = files.replace_collections(path, &text);
                let title = note_title(path).to_owned();
                read.push(LayoutNote { title, path: path.clone(), text, outputs, plain: None });
            }
            Err(refusal) => done.skipped.push(SkippedFile::new(path.clone(), refusal.to_string())),
        }
    }
    let lay = |notes: &[LayoutNote], from: f32| {
        lay_out_pdf(&files, name, paper, tints, notes, &mut |share| {
            progress.report_fraction(from + (1.0 - from) * share)
        })
    };
    let mut made = lay(&read, 0.3);
    if let Err(why) = &made
        && *why != Unfinished::Stopped
    {
        // A note exceeds its limits: each is tried separately, and those that fail are shown as source. If even that
        // fails, only the reason is shown.
        for at in 0..read.len() {
            let mut first = if read.len() == 1 { Err(why.clone()) } else { lay(&read[at..=at], 0.3) };
            for round in 0..2 {
                match first {
                    Ok(_) => break,
                    Err(Unfinished::Stopped) => return Err(ExportError::usage(EXPORT_STOPPED_MESSAGE)),
                    Err(why) if round == 0 => {
                        done.limited.push(SkippedFile::new(read[at].path.clone(), source_notice(&why)));
                        read[at].plain = Some(limit_notice(&why));
                    }
                    Err(_) => read[at].text.clear(),
                }
                first = lay(&read[at..=at], 0.3);
            }
        }
        made = lay(&read, 0.3);
    }
    let (bytes, missing) = made.map_err(|why| match why {
        Unfinished::Stopped => ExportError::usage(EXPORT_STOPPED_MESSAGE),
        why => {
            ExportError::usage(format!("the document was not made: {why}; export fewer notes at a time, or as HTML"))
        }
    })?;
    copy::write_new(dest, &bytes).map_err(ExportError::usage)?;
    done.files = read.into_iter().map(|laid| laid.path).collect();
    done.missing = missing;
    Ok(done)
}

const EXPORT_STOPPED_MESSAGE: &str = "it was stopped";

/// Lays out notes as one PDF, in a separate process.
fn lay_out_pdf(
    files: &ExportFiles,
    name: &str,
    paper: PaperSize,
    tints: ThemeTints,
    notes: &[LayoutNote],
    go_on: &mut dyn FnMut(f32) -> bool,
) -> Result<(Vec<u8>, Vec<char>), Unfinished> {
    let linked = RefCell::default();
    let mut next = 0;
    render_jobs::render_pdf(name, paper, tints, &mut |question| match question {
        LayoutQuestion::Next => {
            let laid = notes.get(next).cloned();
            next += 1;
            Some((laid.map_or(LayoutReply::Nothing, LayoutReply::Note), Vec::new()))
        }
        LayoutQuestion::GoOn(share) => go_on(share).then_some((LayoutReply::Nothing, Vec::new())),
        LayoutQuestion::Picture(note, _)
        | LayoutQuestion::Link(note, _)
        | LayoutQuestion::Note(note, _)
        | LayoutQuestion::Text(note, _) => {
            let Some(laid) = notes.get(note) else { return Some((LayoutReply::Nothing, Vec::new())) };
            let near = NoteContext { files, own: &laid.path, linked: &linked, document: true, served_at: None };
            Some(near.answer_question(&question))
        }
        _ => Some((LayoutReply::Nothing, Vec::new())),
    })
}

/// Exports notes as pages into a new folder, with the attachments that they link to and an index page.
fn export_pages(
    handle: &Handle,
    volume: DocId,
    below: &str,
    dest: &Path,
    progress: &ExportProgress,
) -> Result<ExportReport, ExportError> {
    let (name, notes) = list_notes(handle, volume, below)?;
    let files = ExportFiles::load(handle, volume, true)?;
    let linked = RefCell::default();
    let near = |own| NoteContext { files: &files, own, linked: &linked, document: false, served_at: None };
    let mut done = ExportReport { dest: dest.to_owned(), ..ExportReport::default() };
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    for (at, (path, id)) in notes.iter().enumerate() {
        if !progress.report_fraction(at as f32 / notes.len() as f32) {
            return Err(ExportError::usage(copy::COPY_STOPPED));
        }
        let written = read_note_content(handle, *id).map_err(anyhow::Error::from).and_then(|(text, outputs)| {
            let text = files.replace_collections(path, &text);
            let (page, source) = note_page(path, &text, outputs, &near(path));
            copy::write_new_inside(dest, &page_path(path), page.as_bytes()).map(|()| source)
        });
        match written {
            Ok(source) => {
                done.files.push(path.clone());
                done.limited.extend(source);
            }
            Err(why) => done.skipped.push(SkippedFile::new(path.clone(), why.to_string())),
        }
    }
    if !notes.iter().any(|(path, _)| page_path(path) == "index.html") {
        let lines =
            done.files.iter().map(|path| format!("- [{}](<{path}>)\n", path.strip_suffix(".md").unwrap_or(path)));
        let text = format!("# {name}\n\n{}", lines.collect::<String>());
        let (index, _) = note_page(&name, &text, Vec::new(), &near("index.md"));
        copy::write_new_inside(dest, "index.html", index.as_bytes()).map_err(ExportError::usage)?;
    }
    for path in linked.into_inner() {
        match copy::copy_to(&ConfinedPath::new(&files.root, &path), dest, &path) {
            Ok(()) => done.files.push(path),
            Err(why) => done.skipped.push(SkippedFile::new(path, why.to_string())),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::missing_glyphs_message;

    #[test]
    fn missing_letters_are_named_with_what_to_do() {
        let said = missing_glyphs_message(&['📅', '🔁']);
        assert!(
            said.starts_with("no font of this system has the letters 📅 🔁, so ") && said.contains("install a font")
        );
        let many: Vec<char> = ('a'..='z').collect();
        assert!(missing_glyphs_message(&many).contains("k l and others, so "));
    }
}
