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
        if let Some(driver) = &self.driver {
            let kept = driver.session().settings().searches.clone();
            self.overlay = WindowOverlay::Search(Box::new(SearchOverlay::new(driver.search().clone(), kept)));
        }
    }

    /// The palette that searches, with something asked already.
    pub(crate) fn open_search_for(&mut self, query: &str) {
        if let Some(driver) = &self.driver {
            let kept = driver.session().settings().searches.clone();
            let seek = SearchOverlay { query: query.to_owned(), ..SearchOverlay::new(driver.search().clone(), kept) };
            self.overlay = WindowOverlay::Search(Box::new(seek));
        }
    }

    /// Keeps a search in the settings, or forgets it.
    pub(crate) fn save_search(&mut self, ctx: &egui::Context, query: &str, keep: bool) {
        let Some(driver) = &self.driver else { return };
        let mut settings = driver.session().settings().clone();
        if !keep {
            settings.searches.retain(|(_, known)| known != query);
        } else if let Err(why) = settings.save_search(query, query) {
            self.toasts.show_message(&why);
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
        self.pending_jump = Some(aim);
    }

    /// Jumps to the chosen hit once its note is loaded.
    pub(crate) fn follow_aim(&mut self) {
        let Some(aim) = &self.pending_jump else { return };
        if self.active_pane.note != Some(aim.note) {
            self.pending_jump = None; // the user went elsewhere
            return;
        }
        let Some(note) = self.driver.as_ref().and_then(|driver| driver.session().note(aim.note)) else { return };
        if note.phase == NotePhase::Reading {
            return;
        }
        let lost = aim.block.is_some_and(|id| note.block(id).is_none());
        let at = aim.block.and_then(|id| {
            let text = &note.block(id)?.text;
            let first = highlight_ranges(text, &aim.terms).first().map_or(0, |mark| mark.start);
            Some(note.block_start(id)? + first)
        });
        self.active_pane.editor.place_caret(at.unwrap_or(0));
        self.active_pane.page.point_out(at.unwrap_or(0));
        self.pending_jump = None;
        if lost {
            self.toasts.show_message("That passage is no longer in the note.");
        }
    }
}
