//! Panes and their content: notes, a page in place of notes, embedded collections, and actions that wait for a note's
//! text.

use crate::shell::folder_opening::FolderOpening;
use crate::shell::host_link::HostLink;
use crate::shell::page_view::PageView;
use crate::shell::pane::EditorPane;
use crate::shell::panes::PaneLayout;
use crate::shell::pending_note_action::PendingNoteAction;
use editor::remote_cursors::SharedCarets;
use engine::{Command, Note, NotePosition, Settings};
use notebook::actions::PendingJump;
use notebook::collection::{CollectionUndo, HeldCollections};
use source_control::note_conflict::NoteConflict;
use std::collections::VecDeque;
use std::path::PathBuf;
use store::DocId;

/// The window's panes.
pub(crate) struct PaneState {
    /// The active pane.
    pub(crate) active: EditorPane,
    pub(crate) layout: PaneLayout,
    /// The page shown in place of notes.
    pub(crate) view: Option<PageView>,
    /// The note to open once it's known.
    pub(crate) pending_note: Option<DocId>,
    /// Whether the first note is chosen. Until then, the window may choose it.
    pub(crate) has_chosen_note: bool,
    /// Notes that the session keeps open, most recent first.
    pub(crate) background_notes: VecDeque<DocId>,
    /// Actions that wait for a note's text.
    pub(crate) pending_note_actions: Vec<PendingNoteAction>,
    /// Folders that are being opened.
    pub(crate) openings: Vec<FolderOpening>,
    /// Whether the sample's first figure is drawn once its note is shown.
    pub(crate) draws_sample: bool,
    /// The last closed volume's folder, and the note that was visible.
    pub(crate) closed_volume: Option<(PathBuf, Option<DocId>)>,
    /// The note last created by a link, and the note with the link.
    pub(crate) linked_note: Option<(DocId, DocId)>,
    /// The target of a chosen search result, until its note is loaded.
    pub(crate) pending_jump: Option<PendingJump>,
    /// Collections embedded in notes.
    pub(crate) embedded: HeldCollections,
    /// Undo history of collections.
    pub(crate) collection_undo: CollectionUndo,
    /// Whether notes show which Git commit their parts are from.
    pub(crate) is_blame_shown: bool,
    /// The choices above notes in conflict.
    pub(crate) conflict: NoteConflict,
    /// Carets last reported to the session, and the number of shared volumes at that time.
    pub(crate) last_reported_carets: Option<(SharedCarets, usize)>,
    /// When the positions of notes were last saved, in seconds, and the active note at that time.
    pub(crate) positions_saved: (f64, Option<DocId>),
}

/// Interval at which the positions of notes are saved while a note stays open, in seconds.
const POSITIONS_SAVE_INTERVAL_SECONDS: f64 = 15.0;
/// Maximum number of notes whose positions are saved.
const MAX_SAVED_POSITIONS: usize = 50;

impl PaneState {
    /// Restores the panes from settings. Their notes are opened once they are known.
    pub(crate) fn from_settings(settings: &Settings) -> PaneState {
        let (mut active, layout) = PaneLayout::restore_panes(settings.panes.as_ref(), settings.pane);
        let pending_note = if settings.panes.is_some() { active.note } else { settings.last_note };
        active.show_note(None);
        let mut panes = PaneState {
            active,
            layout,
            view: None,
            pending_note,
            has_chosen_note: settings.panes.is_some() && pending_note.is_none(),
            background_notes: VecDeque::new(),
            pending_note_actions: Vec::new(),
            openings: Vec::new(),
            draws_sample: false,
            closed_volume: None,
            linked_note: None,
            pending_jump: None,
            embedded: HeldCollections::default(),
            collection_undo: CollectionUndo::default(),
            is_blame_shown: false,
            conflict: NoteConflict::default(),
            last_reported_carets: None,
            positions_saved: (0.0, None),
        };
        for (note, position) in &settings.positions {
            panes.all_mut().for_each(|pane| pane.page.remember_position(*note, *position));
        }
        panes
    }

    /// Creates a single pane without a note, in which the window opens none by itself.
    pub(crate) fn without_notes() -> PaneState {
        PaneState { has_chosen_note: true, ..PaneState::from_settings(&Settings::default()) }
    }

    /// Returns whether the positions of notes must be saved.
    pub(crate) fn positions_are_due(&self, now: f64) -> bool {
        let (saved, note) = self.positions_saved;
        now - saved >= POSITIONS_SAVE_INTERVAL_SECONDS || note != self.active.note
    }

    /// Returns the saved positions of notes, updated by what the panes show.
    pub(crate) fn merged_positions(&self, saved: &[(DocId, NotePosition)]) -> Vec<(DocId, NotePosition)> {
        let mut merged = saved.to_vec();
        let others = self.layout.others.values().chain([&self.active]);
        for (note, position) in others.flat_map(|pane| pane.page.positions(&pane.editor)) {
            match merged.iter_mut().find(|(known, _)| *known == note) {
                Some((_, old)) => *old = position,
                None if position != NotePosition::default() => merged.insert(0, (note, position)),
                None => {}
            }
        }
        merged.truncate(MAX_SAVED_POSITIONS);
        merged
    }

    /// Saves the positions of notes now, since the window closes.
    pub(crate) fn save_positions(&self, host: &mut HostLink) {
        let mut settings = host.session().settings().clone();
        settings.positions = self.merged_positions(&settings.positions);
        if settings != *host.session().settings() {
            // Where notes were left is no reason to keep the window open.
            let _ = host.driver.run_command(Command::Set { settings: Box::new(settings) });
        }
    }

    /// Returns all panes, the active one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &EditorPane> {
        std::iter::once(&self.active).chain(self.layout.others.values())
    }

    /// Returns all panes, the active one first.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut EditorPane> {
        std::iter::once(&mut self.active).chain(self.layout.others.values_mut())
    }

    /// Returns the active pane's note, if it's open in the session.
    pub(crate) fn open_note<'h>(&self, host: &'h HostLink) -> Option<&'h Note> {
        host.note(self.active.note)
    }

    /// Returns all carets in document order, each as its offset and the offset of its selection's other end.
    pub(crate) fn carets(&self) -> Vec<(usize, usize)> {
        let mut carets: Vec<(usize, usize)> =
            self.active.editor.carets().map(|caret| (caret.at, caret.anchor)).collect();
        carets.sort_unstable();
        carets
    }
}
