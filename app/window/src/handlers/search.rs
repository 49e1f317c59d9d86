//! Opens searches, keeps them, and goes to what they found.

use crate::app_window::AppWindow;
use crate::overlays::search::SearchOverlay;
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::dock_state::DockState;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use crate::shell::window_state::WindowState;
use eframe::egui;
use engine::NotePhase;
use host::search::highlight_ranges;
use notebook::actions::PendingJump;

impl WindowOverlay {
    /// Opens the search with the last query.
    pub(crate) fn open_search(&mut self, host: &HostLink) {
        let seek = host.new_search();
        *self = WindowOverlay::Search(Box::new(seek));
    }

    /// The palette that searches, with something asked already.
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

impl AppWindow {
    /// Keeps a search in the settings, or forgets it.
    pub(crate) fn save_search(&mut self, ctx: &egui::Context, query: &str, keep: bool) {
        let mut settings = self.host.session().settings().clone();
        if !keep {
            settings.searches.retain(|(_, known)| known != query);
        } else if let Err(why) = settings.save_search(query, query) {
            self.notices.toasts.show_message(why.to_string());
            return;
        }
        self.set(ctx, vec![crate::overlays::settings::SettingsChange::Searches(settings.searches)]);
    }
}

impl PaneState {
    /// Opens what was found; goes to the block once the note can be read.
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
