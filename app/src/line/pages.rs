//! `export` in other forms: a note as one page, a notebook or a program; a volume as a folder of pages that link to
//! each other.

use super::{Refusal, Scene, notebooks, notes};
use crate::tokens::{DARK, LIGHT};
use clap::ArgMatches;
use engine::Session;
use engine::event::Skipped;
use engine::markdown::meant;
use host::copy;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use store::{DocId, Execution, FileKind};
use typeset::html::{self, Around, Page};

/// A larger picture is named, not shown.
const LARGEST: u64 = 32 << 20;

/// What a note becomes when it is not copied byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A page for a browser.
    Html,
    /// A notebook for Jupyter.
    Notebook,
    /// A Python program.
    Script,
}

impl Form {
    fn of(ending: &str) -> Option<Form> {
        match ending {
            "html" | "htm" => Some(Form::Html),
            "ipynb" => Some(Form::Notebook),
            "py" => Some(Form::Script),
            _ => None,
        }
    }

    /// How the name of such a file ends.
    pub(super) fn ending(self) -> &'static str {
        match self {
            Form::Html => "html",
            Form::Notebook => "ipynb",
            Form::Script => "py",
        }
    }
}

/// What is asked for: by an option, or by the ending of the new file's name. `None`: byte for byte.
pub(super) fn wanted(dest: &Path, args: &ArgMatches) -> Result<Option<Form>, Refusal> {
    if args.get_flag("html") {
        return Ok(Some(Form::Html));
    }
    if let Some(to) = args.get_one::<String>("to") {
        let form = Form::of(to);
        let known = form.is_some() || to == "md";
        return known
            .then_some(form)
            .ok_or_else(|| Refusal::usage(format!("no export to “{to}”: ipynb, py, md, html")));
    }
    let ending = dest.extension().and_then(|ending| ending.to_str()).unwrap_or("").to_ascii_lowercase();
    Ok(Form::of(&ending))
}

/// A volume's files as pages see them.
struct Files {
    root: PathBuf,
    kinds: BTreeMap<String, FileKind>,
    /// Whether the other notes become pages, too.
    all: bool,
}

impl Files {
    fn of(scene: &Scene<'_>, volume: DocId, all: bool) -> Result<Files, Refusal> {
        let read = move |session: &Session| {
            let volume = session.volume(volume)?;
            let kinds = volume.files.values().map(|row| (row.path.clone(), row.kind)).collect();
            Some(Files { root: volume.root.clone()?, kinds, all })
        };
        scene.handle.read(read)?.ok_or_else(|| Refusal::usage("the volume has no folder on this device"))
    }

    fn find(&self, own: &str, target: &str) -> Option<&str> {
        meant::find(&self.kinds, own, target).map(|(path, _)| path)
    }
}

/// What stands around one note.
struct Near<'a> {
    files: &'a Files,
    own: &'a str,
    /// Attachments that pages link to.
    linked: &'a RefCell<BTreeSet<String>>,
}

impl Around for Near<'_> {
    fn picture(&self, target: &str) -> Option<Vec<u8>> {
        let path = self.files.find(self.own, target)?;
        (self.files.kinds.get(path) == Some(&FileKind::Attachment))
            .then(|| copy::read(&self.files.root.join(path), LARGEST))
            .flatten()
    }

    fn link(&self, target: &str) -> Option<String> {
        let path = self.files.find(self.own, target).filter(|_| self.files.all)?;
        let to = match self.files.kinds.get(path) {
            Some(FileKind::Note) => page_path(path),
            _ => {
                self.linked.borrow_mut().insert(path.to_owned());
                path.to_owned()
            }
        };
        let up = "../".repeat(self.own.matches('/').count());
        Some(format!("{up}{}", meant::encoded(&to)))
    }

    fn note(&self, target: &str) -> Option<String> {
        let path = self.files.find(self.own, target)?;
        (self.files.kinds.get(path) == Some(&FileKind::Note)).then_some(())?;
        String::from_utf8(copy::read(&self.files.root.join(path), LARGEST)?).ok()
    }
}

fn page_path(path: &str) -> String {
    format!("{}.html", path.strip_suffix(".md").unwrap_or(path))
}

fn title(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").unwrap_or(name)
}

/// A note's text and the last execution of each of its cells.
fn content(scene: &Scene<'_>, note: DocId) -> Result<(String, Vec<Option<Execution>>), Refusal> {
    let _held = notes::hold(scene.handle, note)?;
    notes::loaded(scene.handle, note, |note| {
        (note.text(), note.cells().map(|cell| note.execution(cell).cloned()).collect())
    })
}

fn page(path: &str, text: &str, outputs: &[Option<Execution>], around: &dyn Around) -> String {
    let (light, dark) = (LIGHT.css(), DARK.css());
    html::page(&Page { title: title(path), text, outputs, light: &light, dark: &dark, around })
}

/// Writes one note in another form. Gives its path in the volume.
pub(super) fn note(scene: &mut Scene<'_>, note: DocId, dest: &Path, form: Form) -> Result<Vec<String>, Refusal> {
    let place =
        scene.handle.read(move |session| session.place(note).map(|(volume, path)| (volume, path.to_owned())))?;
    let (volume, path) = place.ok_or_else(|| Refusal::usage("the note is no longer there"))?;
    let ending = form.ending();
    let dest = if copy::is_folder(dest) { dest.join(format!("{}.{ending}", title(&path))) } else { dest.to_owned() };
    let bytes = match form {
        Form::Html => {
            let (text, outputs) = content(scene, note)?;
            let files = Files::of(scene, volume, false)?;
            let near = Near { files: &files, own: &path, linked: &RefCell::default() };
            page(&path, &text, &outputs, &near).into_bytes()
        }
        Form::Notebook => notebooks::notebook(scene, note)?,
        Form::Script => notebooks::script(scene, note)?,
    };
    copy::write_new(&dest, &bytes).map_err(Refusal::usage)?;
    Ok(vec![path])
}

/// Writes all notes of a volume as pages into a new folder, with the attachments that they link to and a page that
/// lists them.
pub(super) fn volume(scene: &Scene<'_>, volume: DocId, dest: &Path) -> Result<(Vec<String>, Vec<Skipped>), Refusal> {
    let read = move |session: &Session| {
        let volume = session.volume(volume)?;
        let notes = volume.files.values().filter(|row| row.kind == FileKind::Note);
        Some((volume.name.clone(), notes.map(|row| (row.path.clone(), row.id)).collect::<Vec<_>>()))
    };
    let (name, notes) = scene.handle.read(read)?.unwrap_or_default();
    let files = Files::of(scene, volume, true)?;
    let linked = RefCell::default();
    let (mut written, mut skipped) = (Vec::new(), Vec::new());
    for (path, id) in &notes {
        let near = Near { files: &files, own: path, linked: &linked };
        let done = content(scene, *id).map_err(|refusal| refusal.why).and_then(|(text, outputs)| {
            copy::write_new(&dest.join(page_path(path)), page(path, &text, &outputs, &near).as_bytes())
        });
        match done {
            Ok(()) => written.push(path.clone()),
            Err(why) => skipped.push(Skipped { path: path.clone(), why }),
        }
    }
    if !notes.iter().any(|(path, _)| page_path(path) == "index.html") {
        let lines = written.iter().map(|path| format!("- [{}](<{path}>)\n", path.strip_suffix(".md").unwrap_or(path)));
        let text = format!("# {name}\n\n{}", lines.collect::<String>());
        let near = Near { files: &files, own: "index.md", linked: &linked };
        copy::write_new(&dest.join("index.html"), page(&name, &text, &[], &near).as_bytes()).map_err(Refusal::usage)?;
    }
    for path in linked.into_inner() {
        match copy::copy_to(&files.root.join(&path), &dest.join(&path)) {
            Ok(()) => written.push(path),
            Err(why) => skipped.push(Skipped { path, why }),
        }
    }
    Ok((written, skipped))
}
