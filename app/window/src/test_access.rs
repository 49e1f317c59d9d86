//! Access to the window for tests and benchmarks, which are other crates: what it shows, and what a user would do.
//!
//! It's behind a feature, so that the program that users build doesn't have it.

use crate::app_window::AppWindow;
use crate::shell::commands;
use eframe::egui;
use engine::commands::CommandId;
use std::ffi::OsString;
use store::DocId;

impl AppWindow {
    /// Returns the session behind the window.
    pub fn session(&self) -> &engine::Session {
        self.host.session()
    }

    /// Sends a command as a view would.
    pub fn send_command(&mut self, command: engine::Command) {
        self.host.send(command, &mut self.notices);
    }

    /// Performs a command of the command table, as the palette does.
    pub fn perform_command(&mut self, ctx: &egui::Context, id: CommandId) {
        if let Some(what) = commands::window_command(id) {
            self.run_command(ctx, what);
        }
    }

    /// Returns the commands that ran since the last call, at most the last eight.
    pub fn take_ran(&mut self) -> Vec<CommandId> {
        let id = |what: commands::WindowCommand| {
            commands::available_commands().find(|info| commands::window_command(info.id) == Some(what))
        };
        self.input.command_log.drain(..).filter_map(id).map(|info| info.id).collect()
    }

    /// Shows a note, as a click in the tree does.
    pub fn show(&mut self, note: DocId) {
        self.panes.open(&mut self.host, &mut self.notices, note);
    }

    /// Returns the caret's byte offset in the open note.
    pub fn caret(&self) -> Option<usize> {
        self.panes.active.editor.caret.map(|caret| caret.at)
    }

    /// Returns all carets in document order, each as its offset and the offset of its selection's other end.
    pub fn carets(&self) -> Vec<(usize, usize)> {
        self.panes.carets()
    }

    /// Places carets with their selections, each as offset and selection anchor.
    pub fn place_carets(&mut self, carets: &[(usize, usize)]) {
        self.panes.active.editor.end_editing();
        if let [(at, anchor), rest @ ..] = carets {
            self.panes.active.editor.select(*anchor, *at);
            self.panes.active.editor.more =
                rest.iter().map(|(at, anchor)| editor::note_editor::Caret { at: *at, anchor: *anchor }).collect();
        }
    }

    /// Places the caret at a byte offset, as a click would.
    pub fn place_caret(&mut self, at: usize) {
        self.panes.active.editor.place_caret(at);
    }

    /// Returns the visible note.
    pub fn note(&self) -> Option<DocId> {
        self.panes.active.note
    }

    /// Returns the number of rows of the visible collection, once its table is ready.
    pub fn rows(&self) -> Option<usize> {
        self.panes
            .shows_collection(&self.host)
            .then(|| self.panes.active.collection.lined.as_ref().map(|table| table.rows.len()))
            .flatten()
    }

    /// Returns the number of drawn figures in the visible note.
    pub fn figures(&self) -> usize {
        self.panes.active.page.cells.figures.drawn_count()
    }

    /// Sets the environment variables for the programs that **Set up Python…** starts.
    pub fn use_setup_variables(&mut self, variables: Vec<(String, OsString)>) {
        self.host.setup_variables = variables;
    }

    /// Replaces the science pack.
    pub fn use_science_pack(&mut self, pack: host::science_pack::SciencePack) {
        self.host.science = pack;
    }
}
