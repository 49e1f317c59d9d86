//! A field for the path of a file, with the system's dialog beside it.

use eframe::egui;
use egui::Ui;
use host::desktop::{FileChooser, PathChoice};
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use ui::dialog_parts::{field, field_with_button, words};
use ui::theme::space;

/// The path of a file. **Browse…** shows the system's dialog, if there's one.
pub(crate) struct FilePathField {
    /// The path as it's typed or chosen.
    pub(crate) path: String,
    chooser: Option<FileChooser>,
    /// The answer of the dialog that is open.
    answer: Option<Receiver<PathChoice>>,
    /// Whether the dialog couldn't be shown.
    is_unavailable: bool,
}

impl FilePathField {
    pub(crate) fn new(path: String, chooser: Option<FileChooser>) -> FilePathField {
        FilePathField { path, chooser, answer: None, is_unavailable: false }
    }

    /// Draws the field. Returns whether a file was chosen in the system's dialog.
    pub(crate) fn show(&mut self, ui: &mut Ui, name: &str, hint: &str) -> bool {
        let is_chosen = self.take_answer();
        if self.chooser.is_none() {
            field(ui, &mut self.path, name, hint);
        } else if field_with_button(ui, &mut self.path, name, hint, "Browse…") && self.answer.is_none() {
            self.browse(ui.ctx());
        }
        let words_below = match (self.answer.is_some(), self.is_unavailable) {
            (true, _) => "The system's dialog is open.",
            (false, true) => "There's no dialog for files on this desktop. Type the path.",
            (false, false) => return is_chosen,
        };
        ui.add_space(space::XS);
        words(ui, words_below);
        is_chosen
    }

    fn browse(&mut self, ctx: &egui::Context) {
        let Some(chooser) = self.chooser.clone() else { return };
        let (tell, answer) = channel();
        let (proposed, wake) = (self.path.trim().to_owned(), ctx.clone());
        std::thread::spawn(move || {
            let _ = tell.send(chooser(Path::new(&proposed))); // our dialog may be closed
            wake.request_repaint();
        });
        self.answer = Some(answer);
    }

    /// Takes the answer of the system's dialog. Returns whether a file was chosen.
    fn take_answer(&mut self) -> bool {
        let Some(answer) = &self.answer else { return false };
        let choice = match answer.try_recv() {
            Ok(choice) => choice,
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => PathChoice::Unavailable,
        };
        self.answer = None;
        match choice {
            PathChoice::Chosen(path) => {
                self.path = path.display().to_string();
                true
            }
            PathChoice::Canceled => false,
            PathChoice::Unavailable => {
                (self.chooser, self.is_unavailable) = (None, true);
                false
            }
        }
    }
}
