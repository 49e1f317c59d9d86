//! A pane: shows one note, with its own caret, sheet and page.
//!
//! A note may be open in several panes. Each pane keeps its caret in place while the others edit the note.

use crate::panels::row_details::file_title;
use crate::shell::title_field::TitleField;
use editor::display_map::DisplayMap;
use editor::note_editor::{EditContext, Editor};
use editor::render::TextStyleContext;
use eframe::egui;
use engine::{NotePhase, Session};
use notebook::actions::PaneId;
use notebook::attachment::AttachmentPage;
use notebook::collection::CollectionPage;
use notebook::page::NotePage;
use notebook::script::ScriptSync;
use store::{Block, DocId, FileKind};
use ui::theme::{self, size, space};

pub(crate) struct EditorPane {
    pub(crate) id: PaneId,
    pub(crate) note: Option<DocId>,
    /// Time since which the note is loading.
    pub(crate) reading: Option<f64>,
    pub(crate) sheet: DisplayMap,
    pub(crate) page: NotePage,
    pub(crate) editor: Editor,
    /// The title field of a new note, while its first name is typed.
    pub(crate) title_field: Option<TitleField>,
    /// State of the collection page.
    pub(crate) collection: CollectionPage,
    /// State of the attachment page.
    pub(crate) attachment: AttachmentPage,
    /// When the pane's script runs automatically.
    pub(crate) script: ScriptSync,
    /// Width of the note's column and its margin when last drawn.
    pub(crate) measures: (f32, f32),
}

impl EditorPane {
    /// Creates a pane, with a note to load or empty.
    pub(crate) fn new(id: PaneId, note: Option<DocId>) -> EditorPane {
        let mut pane = EditorPane {
            id,
            note: None,
            reading: None,
            sheet: DisplayMap::default(),
            page: NotePage::default(),
            editor: Editor::default(),
            title_field: None,
            collection: CollectionPage::default(),
            attachment: AttachmentPage::default(),
            script: ScriptSync::default(),
            measures: (size::NOTE_COLUMN_WIDTH, space::XXXL),
        };
        pane.show_note(note);
        pane
    }

    /// Returns the note's name and its full path.
    pub(crate) fn title(&self, session: &Session) -> Option<(String, String)> {
        let (volume, path) = session.locate_file(self.note?)?;
        let volume = session.volume(volume)?;
        let title = file_title(session, volume, path).to_owned();
        Some((title, format!("{} / {}", volume.name, path.replace('/', " / "))))
    }

    /// Shows a note in the pane, or none.
    pub(crate) fn show_note(&mut self, note: Option<DocId>) {
        self.note = note;
        self.reading = None;
        self.title_field = None;
        self.collection.reset_for_note();
        self.page.show_note(note, &mut self.editor);
    }

    /// Returns whether the note is loading, ready or failed, and `None` if it isn't open.
    pub(crate) fn note_phase(&self, session: &Session) -> Option<NotePhase> {
        Some(session.note(self.note?)?.phase.clone())
    }

    /// Returns whether the pane shows a collection as a table instead of its text.
    pub(crate) fn is_collection(&self, session: &Session) -> bool {
        let place = self.note.filter(|_| !self.collection.as_text).and_then(|note| session.locate_file(note));
        place.is_some_and(|(_, path)| collection::is_collection(path))
    }

    /// Returns the attachment that the pane shows in place of a note.
    pub(crate) fn shown_attachment(&self, session: &Session) -> Option<DocId> {
        let file = self.note?;
        let (volume, path) = session.locate_file(file)?;
        let kind = session.volume(volume)?.files.get(path)?.kind;
        (kind == FileKind::Attachment && session.note(file).is_none()).then_some(file)
    }

    /// Returns whether the pane's note is a script.
    pub(crate) fn is_script(&self, session: &Session) -> bool {
        let place = self.note.and_then(|note| session.locate_file(note));
        place.is_some_and(|(_, path)| FileKind::from_path(path) == FileKind::Script)
    }

    /// Calls `with` on the pane's note, once it's loaded.
    pub(crate) fn with_note<R>(
        &mut self,
        session: &Session,
        ctx: &egui::Context,
        dark: bool,
        look: impl FnOnce(&mut EditContext<'_>, &mut Editor, &mut NotePage) -> R,
    ) -> Option<R> {
        let note = session.note(self.note?)?;
        if note.phase != NotePhase::Ready || self.is_collection(session) {
            return None;
        }
        let texts: Vec<&Block> = note.blocks().collect();
        self.page.sync_layout(note, &mut self.sheet, &texts, &mut self.editor);
        let pen = TextStyleContext { ctx, colours: theme::ThemeColors::for_dark_mode(dark), note: note.id };
        let (width, margin) = self.measures;
        let sheet = &mut self.sheet;
        let mut world = EditContext { session, note, texts: &texts, sheet, pen, width, margin };
        Some(look(&mut world, &mut self.editor, &mut self.page))
    }
}
