//! Opens searches, keeps them, and goes to what they found.

use crate::actions::PendingJump;
use crate::app_window::AppWindow;
use crate::overlays::search::SearchOverlay;
use crate::overlays::window_overlay::WindowOverlay;
use eframe::egui;
use engine::NotePhase;
use host::search::highlight_ranges;

impl AppWindow {
    /// Opens the search with the last query.
    pub(crate) fn open_search(&mut self) {
        let seek = self.new_search();
        self.overlay = WindowOverlay::Search(Box::new(seek));
    }

    /// The palette that searches, with something asked already.
    pub(crate) fn open_search_for(&mut self, query: &str) {
        let seek = SearchOverlay { query: query.to_owned(), ..self.new_search() };
        self.overlay = WindowOverlay::Search(Box::new(seek));
    }

    fn new_search(&self) -> SearchOverlay {
        SearchOverlay::new(self.host.driver.search().clone(), self.host.session().settings().searches.clone())
    }

    /// Keeps a search in the settings, or forgets it.
    pub(crate) fn save_search(&mut self, ctx: &egui::Context, query: &str, keep: bool) {
        let mut settings = self.host.session().settings().clone();
        if !keep {
            settings.searches.retain(|(_, known)| known != query);
        } else if let Err(why) = settings.save_search(query, query) {
            self.notices.toasts.show_message(&why);
            return;
        }
        self.set(ctx, vec![crate::overlays::settings::SettingsChange::Searches(settings.searches)]);
    }

    /// Opens what was found; goes to the block once the note can be read.
    pub(crate) fn go_to_hit(&mut self, aim: PendingJump) {
        self.close_overlay();
        if self.show_found(aim.note, &aim.part) {
            return; // a run, or what was said in a session
        }
        self.open(aim.note);
        self.panes.pending_jump = Some(aim);
    }

    /// Jumps to the chosen hit once its note is loaded.
    pub(crate) fn follow_aim(&mut self) {
        let Some(aim) = &self.panes.pending_jump else { return };
        if self.panes.active.note != Some(aim.note) {
            self.panes.pending_jump = None; // the user went elsewhere
            return;
        }
        let Some(note) = self.host.session().note(aim.note) else { return };
        if note.phase == NotePhase::Reading {
            return;
        }
        let lost = aim.block.is_some_and(|id| note.block(id).is_none());
        let at = aim.block.and_then(|id| {
            let text = &note.block(id)?.text;
            let first = highlight_ranges(text, &aim.terms).first().map_or(0, |mark| mark.start);
            Some(note.block_start(id)? + first)
        });
        self.panes.active.editor.place_caret(at.unwrap_or(0));
        self.panes.active.page.point_out(at.unwrap_or(0));
        self.panes.pending_jump = None;
        if lost {
            self.notices.toasts.show_message("That passage is no longer in the note.");
        }
    }
}
