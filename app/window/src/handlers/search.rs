//! Opens searches, saves them, and goes to their results.

use crate::overlays::search::SearchOverlay;
use crate::overlays::settings::SettingsChange;
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::dock_state::{DockState, LeftPanel};
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use crate::shell::window_state::WindowState;
use eframe::egui;
use egui::{Key, Modifiers};
use engine::{FirstStep, NotePhase};
use host::search::highlight_ranges;
use notebook::actions::{PageAction, PendingJump};

impl WindowOverlay {
    /// Opens the search with the last query.
    pub(crate) fn open_search(&mut self, host: &HostLink) {
        let seek = host.new_search();
        *self = WindowOverlay::Search(Box::new(seek));
    }

    /// Opens the search palette with a query.
    pub(crate) fn open_search_for(&mut self, host: &HostLink, query: &str) {
        let seek = SearchOverlay { query: query.to_owned(), ..host.new_search() };
        *self = WindowOverlay::Search(Box::new(seek));
    }
}

impl HostLink {
    fn new_search(&self) -> SearchOverlay {
        SearchOverlay::new(self.driver.search().clone(), self.session().settings().searches.clone())
    }
}

impl DockState {
    /// Opens the search panel with the selected text and focuses it. `replaces`: with the replace field, too.
    pub(crate) fn open_search_panel(
        &mut self,
        host: &HostLink,
        panes: &mut PaneState,
        prefs: &mut WindowState,
        ctx: &egui::Context,
        replaces: bool,
    ) {
        self.show_search_panel(panes, prefs, ctx);
        let selected = Some(panes.selected_text(host)).filter(|text| !text.contains('\n')).unwrap_or_default();
        if replaces {
            self.search.open_replace(selected);
        } else {
            self.search.open(selected);
        }
    }

    /// Shows the search panel, which takes the keyboard focus.
    pub(crate) fn show_search_panel(&mut self, panes: &mut PaneState, prefs: &mut WindowState, ctx: &egui::Context) {
        self.left = LeftPanel::Search;
        prefs.open_left(ctx);
        // When the palette that started this closes, it would give the keyboard focus back to the note.
        panes.active.editor.focus = false;
    }
}

impl DockState {
    /// Handles a key press while the search panel's field has the keyboard focus. Returns whether it was used; what
    /// follows from it is added to `actions`.
    pub(crate) fn search_panel_key(
        &mut self,
        panes: &mut PaneState,
        ctx: &egui::Context,
        (key, modifiers): (Key, Modifiers),
        actions: &mut Vec<PageAction>,
    ) -> bool {
        if !self.search.has_keyboard() || !modifiers.is_none() {
            return false;
        }
        if key == Key::Escape {
            ctx.memory_mut(|memory| memory.stop_text_input());
            if panes.active.editor.caret.is_none() {
                panes.active.page.restore_caret(&mut panes.active.editor);
            }
            panes.active.editor.focus = panes.active.editor.caret.is_some();
            ctx.request_repaint();
            return true;
        }
        self.search.key(key, actions)
    }
}

impl HostLink {
    /// Returns the change of the settings that saves a search, or removes it; `None` if it can't be saved.
    pub(crate) fn saved_search_change(
        &self,
        notices: &mut NoticeState,
        query: &str,
        keep: bool,
    ) -> Option<SettingsChange> {
        let mut settings = self.session().settings().clone();
        if !keep {
            settings.searches.retain(|(_, known)| known != query);
        } else if let Err(why) = settings.save_search(query, query) {
            notices.toasts.show_message(why.to_string());
            return None;
        }
        Some(SettingsChange::Searches(settings.searches))
    }
}

impl PaneState {
    /// Opens a search result, and goes to its block once the note is loaded.
    pub(crate) fn go_to_hit(
        &mut self,
        host: &mut HostLink,
        dock: &mut DockState,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        prefs: &mut WindowState,
        aim: PendingJump,
    ) {
        self.close_overlay(overlay);
        if aim.by_meaning {
            host.complete_step(FirstStep::FindByMeaning);
        }
        if dock.show_found(host, self, notices, prefs, aim.note, &aim.part) {
            return; // a run, or what was said in a session
        }
        self.open(host, notices, aim.note);
        self.pending_jump = Some(aim);
    }

    /// Jumps to the chosen hit once its note is loaded.
    pub(crate) fn follow_aim(&mut self, host: &HostLink, notices: &mut NoticeState) {
        let Some(aim) = &self.pending_jump else { return };
        if self.active.note != Some(aim.note) {
            self.pending_jump = None; // the user went elsewhere
            return;
        }
        let Some(note) = host.session().note(aim.note) else { return };
        if note.phase == NotePhase::Reading {
            return;
        }
        if let Some(range) = &aim.range {
            match note.slice(range.start, range.len()) {
                Some(_) => self.active.editor.select(range.start, range.end),
                None => notices.toasts.show_message("That passage is no longer in the note."),
            }
            self.active.page.point_out(range.start);
            self.pending_jump = None;
            return;
        }
        let lost = aim.block.is_some_and(|id| note.block(id).is_none());
        let at = aim.block.and_then(|id| {
            let text = &note.block(id)?.text;
            let first = highlight_ranges(text, &aim.terms).first().map_or(0, |mark| mark.start);
            Some(note.block_start(id)? + first)
        });
        self.active.editor.place_caret(at.unwrap_or(0));
        self.active.page.point_out(at.unwrap_or(0));
        self.pending_jump = None;
        if lost {
            notices.toasts.show_message("That passage is no longer in the note.");
        }
    }
}
