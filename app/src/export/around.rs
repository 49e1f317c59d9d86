//! What stands around a note that is exported: the files of its volume, and what draws.

use crate::drawings;
use crate::line::Refusal;
use crate::tokens::Colours;
use engine::Session;
use engine::markdown::dialect::{self, Token};
use engine::markdown::meant;
use host::{Handle, copy};
use pulldown_cmark::{Event, Tag};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use store::{DocId, FileKind};
use typeset::html::Around;
use typeset::vector::Drawing;

/// A larger picture is named, not shown.
const LARGEST: u64 = 32 << 20;

/// A volume's files as exports see them.
pub(super) struct Files {
    pub(super) root: PathBuf,
    kinds: BTreeMap<String, FileKind>,
    /// Whether the other notes are exported, too.
    all: bool,
}

impl Files {
    pub(super) fn of(handle: &Handle, volume: DocId, all: bool) -> Result<Files, Refusal> {
        let read = move |session: &Session| {
            let volume = session.volume(volume)?;
            let kinds = volume.files.values().map(|row| (row.path.clone(), row.kind)).collect();
            Some(Files { root: volume.root.clone()?, kinds, all })
        };
        handle.read(read)?.ok_or_else(|| Refusal::usage("the volume has no folder on this device"))
    }

    fn find(&self, own: &str, target: &str) -> Option<&str> {
        meant::find(&self.kinds, own, target).map(|(path, _)| path)
    }

    /// The files that a note shows or links to and that are no notes.
    pub(super) fn attached(&self, own: &str, text: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for (token, _) in dialect::tokens(text, dialect::options()) {
            let Token::Mark(Event::Start(Tag::Image { dest_url, .. } | Tag::Link { dest_url, .. })) = token else {
                continue;
            };
            let (target, _) = dialect::wiki_target(&dest_url);
            if let Some(path) = self.find(own, target)
                && self.kinds.get(path) == Some(&FileKind::Attachment)
            {
                found.insert(path.to_owned());
            }
        }
        found
    }
}

/// What stands around one note.
pub(super) struct Near<'a> {
    pub(super) files: &'a Files,
    pub(super) own: &'a str,
    /// Attachments that pages link to.
    pub(super) linked: &'a RefCell<BTreeSet<String>>,
    /// The colours of what is drawn.
    pub(super) colours: &'a Colours,
    /// Whether it is part of one document, in which links lead to places.
    pub(super) document: bool,
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
        let note = self.files.kinds.get(path) == Some(&FileKind::Note);
        if self.document {
            return note.then(|| format!("#{path}"));
        }
        let to = if note {
            page_path(path)
        } else {
            self.linked.borrow_mut().insert(path.to_owned());
            path.to_owned()
        };
        let up = "../".repeat(self.own.matches('/').count());
        Some(format!("{up}{}", meant::encoded(&to)))
    }

    fn note(&self, target: &str) -> Option<String> {
        let path = self.files.find(self.own, target)?;
        (self.files.kinds.get(path) == Some(&FileKind::Note)).then_some(())?;
        String::from_utf8(copy::read(&self.files.root.join(path), LARGEST)?).ok()
    }

    fn diagram(&self, source: &str) -> Result<Drawing, String> {
        drawings::diagram(source, self.colours)
    }

    fn figure(&self, media: &str, json: &str) -> Option<Drawing> {
        (media == plot::MIME).then_some(())?;
        let svg = plot::svg(&plot::Figure::read(json).ok()?).ok()?;
        drawings::svg(svg.into_bytes()).ok()
    }

    fn colours(&self) -> String {
        self.colours.css()
    }

    fn svg(&self, bytes: Vec<u8>) -> Option<Drawing> {
        drawings::svg(bytes).ok()
    }
}

/// The path of the page of a note.
pub(super) fn page_path(path: &str) -> String {
    format!("{}.html", path.strip_suffix(".md").unwrap_or(path))
}

/// The title of a note, by its path.
pub(super) fn title(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").unwrap_or(name)
}
