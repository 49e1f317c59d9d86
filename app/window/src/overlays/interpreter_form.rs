//! The dialog that chooses the Python that runs a note's cells on this device.
//!
//! The Python is started once to ask for its version, on a thread of its own.

use crate::overlays::dialogs::DialogDecision;
use crate::overlays::file_path_field::FilePathField;
use anyhow::Context as _;
use eframe::egui;
use egui::Ui;
use host::desktop::FileChooser;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use store::DocId;
use ui::dialog_parts::{buttons, head, show_trouble, words};
use ui::theme::space;

/// The Python that was checked; `None` if no path was typed, which means that of the note's own environment.
type CheckedInterpreter = anyhow::Result<Option<PathBuf>>;

/// The path of the Python, and its check.
pub(crate) struct InterpreterForm {
    note: DocId,
    path: FilePathField,
    /// Folders that cells and agents can write: no program is run from there.
    shared: Vec<PathBuf>,
    /// Receives the result of the check that runs.
    check: Option<Receiver<CheckedInterpreter>>,
    trouble: Option<String>,
}

impl InterpreterForm {
    /// Creates the dialog. `chosen` is the Python that the user has chosen before.
    pub(crate) fn new(
        note: DocId,
        chosen: Option<PathBuf>,
        shared: Vec<PathBuf>,
        chooser: Option<FileChooser>,
    ) -> InterpreterForm {
        let path = chosen.map(|python| python.display().to_string()).unwrap_or_default();
        InterpreterForm { note, path: FilePathField::new(path, chooser), shared, check: None, trouble: None }
    }

    /// Shows why the Python can't be used.
    pub(crate) fn show_error(&mut self, why: String) {
        self.trouble = Some(why);
    }

    /// Checks the typed path.
    pub(crate) fn submit(&mut self, ctx: &egui::Context) {
        if self.check.is_some() {
            return;
        }
        let typed = self.path.path.trim().trim_matches(['"', '\'']).to_owned();
        let (tell, check) = channel();
        (self.check, self.trouble) = (Some(check), None);
        let (shared, wake) = (self.shared.clone(), ctx.clone());
        std::thread::spawn(move || {
            let _ = tell.send(check_path(&typed, &shared)); // the dialog may be closed
            wake.request_repaint();
        });
    }

    /// Takes the result of the check. Returns the decision once the Python can be used.
    fn take_check(&mut self) -> Option<DialogDecision> {
        let checked = match self.check.as_ref()?.try_recv() {
            Ok(checked) => checked,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(anyhow::anyhow!("The check ended early. Try again.")),
        };
        self.check = None;
        match checked {
            Ok(interpreter) => Some(DialogDecision::UseInterpreter { note: self.note, interpreter }),
            Err(why) => {
                self.show_error(ui::text::sentence(&why.to_string()));
                None
            }
        }
    }

    /// Draws the dialog. Returns a decision once there is one.
    pub(crate) fn show(&mut self, ui: &mut Ui) -> Option<DialogDecision> {
        let decision = self.take_check();
        if decision.is_some() {
            return decision;
        }
        head(ui, "Choose an interpreter");
        words(
            ui,
            "This Python runs the cells of this note on this device, as confined as the built-in one. It needs no \
             ipykernel. Leave the path empty for the note’s own environment.",
        );
        ui.add_space(space::M);
        let before = self.path.path.clone();
        let is_chosen = self.path.show(ui, "Path of the interpreter", "/home/me/miniconda3/envs/data/bin/python");
        if self.path.path != before {
            self.trouble = None; // it was about the other path
        }
        if self.check.is_some() {
            ui.add_space(space::XS);
            words(ui, "Asking it for its version…");
        }
        show_trouble(ui, self.trouble.as_deref());
        let pressed = buttons(ui, "Use interpreter", "Cancel");
        if is_chosen || pressed == Some(true) {
            self.submit(ui.ctx());
        }
        (pressed == Some(false)).then_some(DialogDecision::Never)
    }
}

/// Returns the Python that a path names. Starts it.
fn check_path(typed: &str, shared: &[PathBuf]) -> CheckedInterpreter {
    if typed.is_empty() {
        return Ok(None);
    }
    let path = ui::text::absolute(typed).context("Give the whole path, beginning with / or ~.")?;
    Ok(Some(host::check_interpreter(&path, shared)?))
}
