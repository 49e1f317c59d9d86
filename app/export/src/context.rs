//! Context of an exported note: the files of its volume, and renderers.

use crate::error::ExportError;
use crate::render_jobs::{LayoutQuestion, LayoutReply};
use anyhow::{Context, anyhow, bail};
use collection::{Collection, EmbeddedCollection, VolumeMirror};
use engine::Session;
use host::Handle;
use host::clock;
use host::fs::confined_dir::ConfinedPath;
use pulldown_cmark::{Event, Tag};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use store::{DocId, FileKind};
use text::links::VolumeLinks;
use text::markdown::dialect::{self, DialectToken};
use text::outline::{self, Outline};

/// Maximum size of an image in bytes; larger ones are only named.
const MAX_PICTURE_BYTES: u64 = 32 << 20;
/// Maximum size of cached texts of embedded notes in bytes.
const MAX_CACHED_NOTE_BYTES: usize = 32 << 20;

/// A volume's files as seen by exports.
pub(super) struct ExportFiles {
    pub(super) root: PathBuf,
    kinds: BTreeMap<String, (DocId, FileKind)>,
    /// Links between the files. Files that aren't indexed yet are added when they're exported.
    links: RefCell<VolumeLinks>,
    /// Whether the other notes are exported, too.
    all: bool,
    handle: Handle,
    volume: DocId,
    /// Cached texts of embedded notes, by path.
    embedded: RefCell<HashMap<String, Rc<str>>>,
    /// Copy of the volume that collections are evaluated on, built when first needed.
    mirror: OnceCell<anyhow::Result<VolumeMirror>>,
}

impl ExportFiles {
    pub(super) fn load(handle: &Handle, volume: DocId, all: bool) -> Result<ExportFiles, ExportError> {
        let read = move |session: &Session| {
            let volume = session.volume(volume)?;
            let rows = volume.files.values();
            let rows = rows.map(|row| (row.path.clone(), row.id, row.kind, volume.links.outline(row.id).cloned()));
            let name = volume.links.volume_name().to_owned();
            Some((volume.root.clone()?, name, rows.collect::<Vec<_>>()))
        };
        let (root, name, rows) =
            handle.read(read)?.ok_or_else(|| ExportError::usage("the volume has no folder on this device"))?;
        let (mut kinds, mut links) = (BTreeMap::new(), VolumeLinks::default());
        links.set_volume_name(&name);
        for (path, id, kind, outline) in rows {
            links.set_path(id, &path);
            outline.into_iter().for_each(|outline| links.set_outline(id, outline));
            kinds.insert(path, (id, kind));
        }
        let links = RefCell::new(links);
        Ok(ExportFiles {
            root,
            kinds,
            links,
            all,
            handle: handle.clone(),
            volume,
            embedded: RefCell::default(),
            mirror: OnceCell::new(),
        })
    }

    fn file_kind(&self, path: &str) -> Option<FileKind> {
        self.kinds.get(path).map(|(_, kind)| *kind)
    }

    /// Returns a note's text with each collection replaced by a table.
    pub(super) fn replace_collections(&self, own: &str, text: &str) -> String {
        let text = &engine::generated_view::text_with_views(text);
        if let Some((id, _)) = self.kinds.get(own) {
            self.links.borrow_mut().set_outline(*id, Arc::new(Outline::of(text)));
        }
        collection::replace_embeds(text, |embed| match self.collection_table(own, embed) {
            // Search results change: the query is exported as source.
            _ if matches!(embed, EmbeddedCollection::Search { .. }) => None,
            Ok(table) => Some(table),
            Err(why) => Some(format!("*This collection is not shown: {}.*", why.to_string().trim_end_matches('.'))),
        })
    }

    fn collection_table(&self, own: &str, embed: EmbeddedCollection<'_>) -> anyhow::Result<String> {
        let (text, view) = match embed {
            EmbeddedCollection::Text { text, .. } => (text.to_owned(), None),
            EmbeddedCollection::Search { .. } => bail!("a search shows its hits in the window alone"),
            EmbeddedCollection::File { target, view } => {
                let path = self.resolve_target(own, target).with_context(|| format!("there is no {target}"))?;
                (ConfinedPath::new(&self.root, &path).read_text(MAX_PICTURE_BYTES)?, view)
            }
        };
        let source = self
            .mirror
            .get_or_init(|| self.handle.mirror_volume(self.volume))
            .as_ref()
            .map_err(|why| anyhow!("{why}"))?
            .source();
        let this = source.files.get(own).map(|row| row.id);
        let work = || -> anyhow::Result<String> {
            let base = Collection::parse(&text)?;
            let view =
                base.view_index(view).with_context(|| format!("it has no view “{}”", view.unwrap_or_default()))?;
            Ok(base.evaluate_view(source, view, this, clock::local_now()).to_markdown())
        };
        let made = std::thread::scope(|scope| {
            let thread =
                std::thread::Builder::new().stack_size(collection::EVAL_STACK_BYTES).spawn_scoped(scope, work).ok()?;
            thread.join().ok()
        });
        made.unwrap_or_else(|| Err(anyhow!("it could not be worked out")))
    }

    fn resolve_target(&self, own: &str, target: &str) -> Option<String> {
        if target.is_empty() {
            return None;
        }
        // A page that isn't a note, such as the index, is at the top.
        let own = self.kinds.get(own).map_or(DocId([0; 16]), |(id, _)| *id);
        let links = self.links.borrow();
        links.path(links.resolve_rendered_link(own, target)?).map(str::to_owned)
    }

    /// Returns the text of an embedded note, cached since it may be embedded many times.
    fn embedded_note_text(&self, path: &str) -> Option<Rc<str>> {
        if let Some(known) = self.embedded.borrow().get(path) {
            return Some(known.clone());
        }
        (self.file_kind(path) == Some(FileKind::Note)).then_some(())?;
        let text = String::from_utf8(ConfinedPath::new(&self.root, path).read(MAX_PICTURE_BYTES)?).ok()?;
        let text: Rc<str> = Rc::from(self.replace_collections(path, &text));
        let mut embedded = self.embedded.borrow_mut();
        if embedded.values().map(|text| text.len()).sum::<usize>() + text.len() > MAX_CACHED_NOTE_BYTES {
            embedded.clear();
        }
        embedded.insert(path.to_owned(), text.clone());
        Some(text)
    }

    /// Returns the attachments that a note shows or links to.
    pub(super) fn attachment_paths(&self, own: &str, text: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for (token, _) in dialect::tokenize(text, dialect::dialect_options()) {
            let DialectToken::Mark(Event::Start(Tag::Image { dest_url, .. } | Tag::Link { dest_url, .. })) = token
            else {
                continue;
            };
            let (target, _) = dialect::split_wiki_target(&dest_url);
            if let Some(path) = self.resolve_target(own, target)
                && self.file_kind(&path) == Some(FileKind::Attachment)
            {
                found.insert(path);
            }
        }
        found
    }
}

/// Context of one note: answers questions of the process that lays it out.
pub(super) struct NoteContext<'a> {
    pub(super) files: &'a ExportFiles,
    pub(super) own: &'a str,
    /// Attachments that exported pages link to.
    pub(super) linked: &'a RefCell<BTreeSet<String>>,
    /// Whether the note is part of a single document, in which links lead to anchors.
    pub(super) document: bool,
    /// Address below which a server has the files, by volume and path; `None` for links between exported files.
    pub(super) served_at: Option<&'a str>,
}

impl NoteContext<'_> {
    /// Answers a question about the files around the note.
    pub(super) fn answer_question(&self, question: &LayoutQuestion) -> (LayoutReply, Vec<u8>) {
        let text = |text: Option<String>| text.map_or(LayoutReply::Nothing, LayoutReply::Text);
        match question {
            LayoutQuestion::Picture(_, target) => match self.read_picture(target) {
                Some(bytes) => (LayoutReply::Bytes, bytes),
                None => (LayoutReply::Nothing, Vec::new()),
            },
            LayoutQuestion::Link(_, target) => (text(self.page_link(target)), Vec::new()),
            LayoutQuestion::Note(_, target) => (text(self.read_note(target)), Vec::new()),
            LayoutQuestion::Text(_, path) => match self.files.embedded_note_text(path) {
                Some(text) => (LayoutReply::Bytes, text.as_bytes().to_vec()),
                None => (LayoutReply::Nothing, Vec::new()),
            },
            LayoutQuestion::Ready
            | LayoutQuestion::Next
            | LayoutQuestion::GoOn(_)
            | LayoutQuestion::Diagram(..)
            | LayoutQuestion::Figure(_)
            | LayoutQuestion::Svg(_)
            | LayoutQuestion::Image(_)
            | LayoutQuestion::Formula { .. }
            | LayoutQuestion::Mathml { .. } => (LayoutReply::Nothing, Vec::new()),
        }
    }

    fn read_picture(&self, target: &str) -> Option<Vec<u8>> {
        let path = self.files.resolve_target(self.own, target)?;
        (self.files.file_kind(&path) == Some(FileKind::Attachment))
            .then(|| ConfinedPath::new(&self.files.root, &path).read(MAX_PICTURE_BYTES))
            .flatten()
    }

    fn page_link(&self, target: &str) -> Option<String> {
        let path = self.files.resolve_target(self.own, target).filter(|_| self.files.all)?;
        let note = self.files.file_kind(&path) == Some(FileKind::Note);
        if self.document {
            return note.then(|| format!("#{path}"));
        }
        if let Some(place) = self.served_at {
            return Some(format!("{place}{}", outline::percent_encode_path(&path)));
        }
        let to = if note {
            page_path(&path)
        } else {
            self.linked.borrow_mut().insert(path.clone());
            path
        };
        let up = "../".repeat(self.own.matches('/').count());
        Some(format!("{up}{}", outline::percent_encode_path(&to)))
    }

    fn read_note(&self, target: &str) -> Option<String> {
        let path = self.files.resolve_target(self.own, target)?;
        (self.files.file_kind(&path) == Some(FileKind::Note)).then_some(path)
    }
}

/// Returns the path of a note's HTML page.
pub(super) fn page_path(path: &str) -> String {
    format!("{}.html", path.strip_suffix(".md").unwrap_or(path))
}

/// Returns a note's title, derived from its path.
pub(super) fn note_title(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").unwrap_or(name)
}
