//! Panes and what they show: notes, a page instead of notes, collections inside notes, and jobs that wait for a note's
//! text.

use crate::shell::host_link::HostLink;
use crate::shell::page_view::PageView;
use crate::shell::pane::EditorPane;
use crate::shell::panes::PaneLayout;
use crate::shell::pending_note_action::PendingNoteAction;
use editor::remote_cursors::SharedCarets;
use engine::{Note, Settings};
use notebook::actions::PendingJump;
use notebook::collection::{CollectionUndo, HeldCollections};
use std::collections::VecDeque;
use store::DocId;

/// The panes of the window.
pub(crate) struct PaneState {
    /// The pane that has the caret.
    pub(crate) active: EditorPane,
    pub(crate) layout: PaneLayout,
    /// The page that is shown instead of notes.
    pub(crate) view: Option<PageView>,
    /// The note to be opened once it is known.
    pub(crate) pending_note: Option<DocId>,
    /// Whether the user has chosen a note yet; until then the window may.
    pub(crate) has_chosen_note: bool,
    /// Notes that the session keeps open, the newest first.
    pub(crate) background_notes: VecDeque<DocId>,
    /// Jobs that wait for a note's text.
    pub(crate) pending_note_actions: Vec<PendingNoteAction>,
    /// Where a chosen hit leads, until its note can be read.
    pub(crate) pending_jump: Option<PendingJump>,
    /// Collections that notes show.
    pub(crate) embedded: HeldCollections,
    /// Undo history of collections.
    pub(crate) collection_undo: CollectionUndo,
    /// Carets last reported to the session, and the number of shared volumes at that time.
    pub(crate) last_reported_carets: Option<(SharedCarets, usize)>,
}

impl PaneState {
    /// Restores the panes from settings. Their notes are opened once they are known.
    pub(crate) fn from_settings(settings: &Settings) -> PaneState {
        let (mut active, layout) = PaneLayout::restore_panes(settings.panes.as_ref(), settings.pane);
        let pending_note = if settings.panes.is_some() { active.note } else { settings.last_note };
        active.show_note(None);
        PaneState {
            active,
            layout,
            view: None,
            pending_note,
            has_chosen_note: settings.panes.is_some() && pending_note.is_none(),
            background_notes: VecDeque::new(),
            pending_note_actions: Vec::new(),
            pending_jump: None,
            embedded: HeldCollections::default(),
            collection_undo: CollectionUndo::default(),
            last_reported_carets: None,
        }
    }

    /// All panes, the one with the caret first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &EditorPane> {
        std::iter::once(&self.active).chain(self.layout.others.values())
    }

    /// All panes, the one with the caret first.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut EditorPane> {
        std::iter::once(&mut self.active).chain(self.layout.others.values_mut())
    }

    /// The note of the pane that has the caret.
    pub(crate) fn open_note<'h>(&self, host: &'h HostLink) -> Option<&'h Note> {
        host.note(self.active.note)
    }

    /// All carets, from the top of the note: where each is, and where its selection begins.
    pub(crate) fn carets(&self) -> Vec<(usize, usize)> {
        let mut carets: Vec<(usize, usize)> =
            self.active.editor.carets().map(|caret| (caret.at, caret.anchor)).collect();
        carets.sort_unstable();
        carets
    }
}
