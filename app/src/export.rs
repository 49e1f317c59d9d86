//! Notes written to a new place: as they are, as pages for a browser, as PDF. The command line and the window do it
//! alike, on a thread that does not draw. Nothing is overwritten.

mod around;

use crate::drawings;
use crate::line::Refusal;
use crate::line::notes::{self, Held};
use crate::line::volumes::saved;
use crate::tokens::{Colours, DARK, LIGHT};
use around::{Files, Near, page_path, title};
use engine::event::Skipped;
use engine::{Note, Session};
use host::{Handle, copy};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use store::{DocId, Execution, FileKind, OutputBody};
use typeset::html::{self, Page};
use typeset::pdf::{self, Asked, Paper};

/// What notes become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Themselves, byte for byte.
    Files,
    /// Pages for a browser.
    Html,
    /// One document.
    Pdf(Paper),
}

/// What is exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A note.
    Note(DocId),
    /// The files of a volume whose path begins so; all of them with an empty path.
    Folder(DocId, String),
}

/// How far an export is, and whether it is still wanted. Shared between two threads.
#[derive(Default)]
pub(crate) struct Progress {
    share: AtomicU32,
    stop: AtomicBool,
}

impl Progress {
    /// How much is done, 0 to 1.
    pub(crate) fn share(&self) -> f32 {
        f32::from_bits(self.share.load(Ordering::Relaxed))
    }

    /// It is no longer wanted.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Says how much is done. Whether to go on.
    fn at(&self, share: f32) -> bool {
        self.share.store(share.to_bits(), Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }
}

/// What was written.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The paths of the volume that were.
    pub(crate) files: Vec<String>,
    /// Those that could not be.
    pub(crate) skipped: Vec<Skipped>,
    /// Letters that no font of this system has.
    pub(crate) missing: Vec<char>,
    /// The new file or folder.
    pub(crate) dest: PathBuf,
}

/// What is to be said of letters that no font has.
pub(crate) fn lacking(missing: &[char]) -> String {
    let some: String = missing.iter().take(12).flat_map(|letter| [*letter, ' ']).collect();
    let more = if missing.len() > 12 { "and others " } else { "" };
    format!("no font of this system has the letters {some}{more}: they are boxes in the document")
}

/// How many files of a volume lie below a folder.
fn inside(volume: &engine::Volume, below: &str) -> usize {
    volume.files.keys().filter(|path| path.starts_with(below)).count()
}

/// Exports to a new file or folder.
///
/// # Errors
/// What is in the way.
pub(crate) fn export(
    handle: &Handle,
    what: &What,
    form: Form,
    dest: &Path,
    progress: &Progress,
) -> Result<Done, Refusal> {
    match (what, form) {
        (What::Note(id), _) => note(handle, *id, form, dest, progress),
        (What::Folder(volume, below), Form::Pdf(paper)) => {
            let (name, notes) = listed(handle, *volume, below)?;
            document(handle, *volume, &name, notes, paper, dest, progress)
        }
        (What::Folder(volume, below), Form::Html) => {
            fresh(handle, *volume, dest)?;
            pages(handle, *volume, below, dest, progress)
        }
        (What::Folder(volume, below), Form::Files) => {
            let root = fresh(handle, *volume, dest)?;
            let mut copied = copy::Copied::default();
            let all = handle.read({
                let (volume, below) = (*volume, below.clone());
                move |session| session.volume(volume).map_or(0, |volume| inside(volume, &below))
            })?;
            #[allow(clippy::cast_precision_loss, reason = "a share")]
            let mut goes_on = |done: usize| progress.at((done as f32 / all.max(1) as f32).min(1.0));
            copy::copy_tree(&root.join(below), dest, &mut copied, &mut goes_on).map_err(Refusal::workspace)?;
            Ok(Done { files: copied.files, skipped: copied.skipped, dest: dest.to_owned(), ..Done::default() })
        }
    }
}

/// A note's text and the last execution of each of its cells.
fn content(handle: &Handle, note: DocId) -> Result<(String, Vec<Option<Execution>>), Refusal> {
    let _held: Held<'_> = notes::hold(handle, note)?;
    let read = |note: &Note| (note.text(), note.cells().map(|cell| note.execution(cell).cloned()).collect());
    let (text, mut outputs): (String, Vec<Option<Execution>>) = notes::loaded(handle, note, read)?;
    outputs.iter_mut().flatten().for_each(|execution| bring_figures(handle, execution));
    Ok((text, outputs))
}

/// Puts figures with much data, which are blobs, back among an execution's outputs.
pub(crate) fn bring_figures(handle: &Handle, execution: &mut Execution) {
    for output in &mut execution.outputs {
        if let Some(whole) = output.whole.as_ref().filter(|whole| whole.mime == plot::MIME)
            && let OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } = &mut output.body
            && !data.contains_key(plot::MIME)
            && let Some(json) = handle.blob(whole.blob).ok().and_then(|bytes| String::from_utf8(bytes).ok())
        {
            data.insert(plot::MIME.to_owned(), json.into());
        }
    }
}

/// The name of a volume, or of a folder of it, and its notes in the order of their paths.
fn listed(handle: &Handle, volume: DocId, below: &str) -> Result<(String, Vec<(String, DocId)>), Refusal> {
    let below = below.to_owned();
    let read = move |session: &Session| {
        let volume = session.volume(volume)?;
        let notes = volume.files.values().filter(|row| row.kind == FileKind::Note && row.path.starts_with(&below));
        let folder = below.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty());
        let name = folder.map_or_else(|| volume.name.clone(), str::to_owned);
        Some((name, notes.map(|row| (row.path.clone(), row.id)).collect::<Vec<_>>()))
    };
    handle.read(read)?.ok_or_else(|| Refusal::usage("the volume is no longer there"))
}

/// Saves a volume that is to be exported into a new folder; gives the volume's own folder.
pub(crate) fn fresh(handle: &Handle, volume: DocId, dest: &Path) -> Result<PathBuf, Refusal> {
    if dest.exists() {
        return Err(Refusal::usage(format!("it exists already, and nothing is overwritten: {}", dest.display())));
    }
    saved(handle)?;
    let root = handle.read(move |session| session.volume(volume).and_then(|volume| volume.root.clone()))?;
    let root = root.ok_or_else(|| Refusal::usage("the volume has no folder on this device"))?;
    if dest.starts_with(&root) {
        return Err(Refusal::usage(format!("the new folder would lie inside the volume itself: {}", dest.display())));
    }
    Ok(root)
}

fn page(path: &str, text: &str, outputs: &[Option<Execution>], near: &Near<'_>) -> String {
    let (light, dark) = (LIGHT.css(), DARK.css());
    html::page(&Page { title: title(path), text, outputs, light: &light, dark: &dark, around: near })
}

/// A text of its own as a page: nothing stands around it.
pub(crate) fn text_page(title: &str, text: &str) -> String {
    struct Alone;
    impl html::Around for Alone {
        fn picture(&self, _: &str) -> Option<Vec<u8>> {
            None
        }
        fn link(&self, _: &str) -> Option<String> {
            None
        }
        fn note(&self, _: &str) -> Option<String> {
            None
        }
        fn diagram(&self, _: &str) -> Result<typeset::vector::Drawing, String> {
            Err("it is not drawn here".to_owned())
        }
        fn figure(&self, _: &str, _: &str) -> Option<typeset::vector::Drawing> {
            None
        }
        fn svg(&self, _: Vec<u8>) -> Option<typeset::vector::Drawing> {
            None
        }
    }
    let (light, dark) = (LIGHT.css(), DARK.css());
    html::page(&Page { title, text, outputs: &[], light: &light, dark: &dark, around: &Alone })
}

/// The colours of a document on white paper.
fn printed() -> Colours {
    Colours { paper: eframe::egui::Color32::WHITE, ..LIGHT }
}

/// Writes one note. Gives its path in the volume.
fn note(handle: &Handle, id: DocId, form: Form, dest: &Path, progress: &Progress) -> Result<Done, Refusal> {
    let place = handle.read(move |session| session.place(id).map(|(volume, path)| (volume, path.to_owned())))?;
    let (volume, path) = place.ok_or_else(|| Refusal::usage("the note is no longer there"))?;
    let inside = |name: String| if copy::is_folder(dest) { dest.join(name) } else { dest.to_owned() };
    let mut missing = Vec::new();
    let dest = match form {
        Form::Files => {
            let _held = notes::hold(handle, id)?;
            let text = handle.read(move |session| session.note(id).map(Note::text).unwrap_or_default())?;
            let dest = inside(path.rsplit('/').next().unwrap_or(&path).to_owned());
            copy::write_new(&dest, text.as_bytes()).map_err(Refusal::usage)?;
            dest
        }
        Form::Html => {
            let (text, outputs) = content(handle, id)?;
            let files = Files::of(handle, volume, false)?;
            let linked = RefCell::default();
            let near = Near { files: &files, own: &path, linked: &linked, colours: &LIGHT, document: false };
            let text = files.with_tables(&path, &text);
            let dest = inside(format!("{}.html", title(&path)));
            copy::write_new(&dest, page(&path, &text, &outputs, &near).as_bytes()).map_err(Refusal::usage)?;
            dest
        }
        Form::Pdf(paper) => {
            let dest = inside(format!("{}.pdf", title(&path)));
            let notes = vec![(path.clone(), id)];
            let done = document(handle, volume, title(&path), notes, paper, &dest, progress)?;
            missing = done.missing;
            dest
        }
    };
    Ok(Done { files: vec![path], skipped: Vec::new(), missing, dest })
}

/// Writes a note into a new folder, with the files that it shows and links to.
///
/// # Errors
/// What is in the way.
pub(crate) fn bundle(handle: &Handle, id: DocId, dest: &Path, progress: &Progress) -> Result<Done, Refusal> {
    let place = handle.read(move |session| session.place(id).map(|(volume, path)| (volume, path.to_owned())))?;
    let (volume, path) = place.ok_or_else(|| Refusal::usage("the note is no longer there"))?;
    let root = fresh(handle, volume, dest)?;
    let (text, _) = content(handle, id)?;
    let files = Files::of(handle, volume, true)?;
    let folder = path.rfind('/').map_or("", |slash| &path[..=slash]);
    let name = path.strip_prefix(folder).unwrap_or(&path);
    let with_tables = files.with_tables(&path, &text);
    copy::write_new(&dest.join(name), with_tables.as_bytes()).map_err(Refusal::usage)?;
    let mut done = Done { files: vec![path.clone()], dest: dest.to_owned(), ..Done::default() };
    let all = files.attached(&path, &text);
    let count = all.len();
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    for (at, attached) in all.into_iter().enumerate() {
        if !progress.at(at as f32 / count as f32) {
            return Err(Refusal::usage(copy::STOPPED));
        }
        // What lies below the note's folder keeps its place; all else lies beside the note, where a link finds it.
        let to = attached.strip_prefix(folder).unwrap_or(attached.rsplit('/').next().unwrap_or(&attached));
        match copy::copy_to(&root.join(&attached), &dest.join(to)) {
            Ok(()) => done.files.push(attached),
            Err(why) => done.skipped.push(Skipped { path: attached, why }),
        }
    }
    Ok(done)
}

/// Writes notes as one PDF.
fn document(
    handle: &Handle,
    volume: DocId,
    name: &str,
    notes: Vec<(String, DocId)>,
    paper: Paper,
    dest: &Path,
    progress: &Progress,
) -> Result<Done, Refusal> {
    if dest.exists() {
        return Err(Refusal::usage(format!("it exists already, and nothing is overwritten: {}", dest.display())));
    }
    let files = Files::of(handle, volume, notes.len() > 1)?;
    let (linked, colours) = (RefCell::default(), printed());
    let mut done = Done { dest: dest.to_owned(), ..Done::default() };
    let mut read = Vec::new();
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    for (at, (path, id)) in notes.iter().enumerate() {
        if !progress.at(0.3 * at as f32 / notes.len() as f32) {
            return Err(Refusal::usage("it was stopped"));
        }
        match content(handle, *id) {
            Ok((text, outputs)) => read.push((path.clone(), files.with_tables(path, &text), outputs)),
            Err(refusal) => done.skipped.push(Skipped { path: path.clone(), why: refusal.why }),
        }
    }
    let near: Vec<Near<'_>> = read
        .iter()
        .map(|(path, ..)| Near { files: &files, own: path, linked: &linked, colours: &colours, document: true })
        .collect();
    let parts = read.iter().zip(&near).map(|((path, text, outputs), near)| pdf::Note {
        title: title(path),
        place: path,
        text,
        outputs,
        around: near,
    });
    let asked = Asked { title: name, paper, tints: colours.tints(), fonts: drawings::fonts() };
    let made = pdf::write(&asked, parts, &mut |share| progress.at(0.3 + 0.7 * share));
    let made = made.map_err(Refusal::usage)?;
    copy::write_new(dest, &made.bytes).map_err(Refusal::usage)?;
    done.files = read.into_iter().map(|(path, ..)| path).collect();
    done.missing = made.missing;
    Ok(done)
}

/// Writes notes as pages into a new folder, with the attachments that they link to and a page that lists them.
fn pages(handle: &Handle, volume: DocId, below: &str, dest: &Path, progress: &Progress) -> Result<Done, Refusal> {
    let (name, notes) = listed(handle, volume, below)?;
    let files = Files::of(handle, volume, true)?;
    let linked = RefCell::default();
    let near = |own| Near { files: &files, own, linked: &linked, colours: &LIGHT, document: false };
    let mut done = Done { dest: dest.to_owned(), ..Done::default() };
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    for (at, (path, id)) in notes.iter().enumerate() {
        if !progress.at(at as f32 / notes.len() as f32) {
            return Err(Refusal::usage(copy::STOPPED));
        }
        let written = content(handle, *id).map_err(|refusal| refusal.why).and_then(|(text, outputs)| {
            let text = files.with_tables(path, &text);
            copy::write_new(&dest.join(page_path(path)), page(path, &text, &outputs, &near(path)).as_bytes())
        });
        match written {
            Ok(()) => done.files.push(path.clone()),
            Err(why) => done.skipped.push(Skipped { path: path.clone(), why }),
        }
    }
    if !notes.iter().any(|(path, _)| page_path(path) == "index.html") {
        let lines =
            done.files.iter().map(|path| format!("- [{}](<{path}>)\n", path.strip_suffix(".md").unwrap_or(path)));
        let text = format!("# {name}\n\n{}", lines.collect::<String>());
        let index = page(&name, &text, &[], &near("index.md"));
        copy::write_new(&dest.join("index.html"), index.as_bytes()).map_err(Refusal::usage)?;
    }
    for path in linked.into_inner() {
        match copy::copy_to(&files.root.join(&path), &dest.join(&path)) {
            Ok(()) => done.files.push(path),
            Err(why) => done.skipped.push(Skipped { path, why }),
        }
    }
    Ok(done)
}
