//! The end of a cell's outputs if its run was stopped or its kernel crashed: what happened, and what can be done.

use crate::actions::PageAction;
use eframe::egui;
use egui::{Id, Pos2, Rect, Ui, vec2};
use engine::Note;
use engine::commands::CommandId;
use store::{BlockId, Execution, ExecutionStatus};
use ui::theme::{size, space};
use ui::widgets::{word_button, word_width};

/// A run that didn't end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutRun {
    /// Whether the kernel crashed; otherwise the run was stopped.
    is_crash: bool,
    /// Whether the cell was canceled before it ran.
    is_canceled: bool,
    /// Whether the note's variables are saved after each run.
    is_saved: bool,
    /// Whether “Undo run” undoes this run: it left a state, and no other did so after it.
    is_undoable: bool,
}

impl CutRun {
    /// Returns how the latest run of a cell was cut short, or `None` if it wasn't.
    pub(crate) fn of(note: &Note, run: &Execution) -> Option<CutRun> {
        let is_crash = match run.status {
            ExecutionStatus::Interrupted => false,
            ExecutionStatus::Died => true,
            ExecutionStatus::Queued | ExecutionStatus::Running | ExecutionStatus::Ok | ExecutionStatus::Error => {
                return None;
            }
        };
        Some(CutRun {
            is_crash,
            is_canceled: run.is_canceled_in_queue(),
            is_saved: note.saves_states(),
            is_undoable: note.is_last_saved_run(run),
        })
    }

    /// Returns what happened, as a sentence.
    pub(super) fn sentence(self) -> &'static str {
        match (self.is_crash, self.is_saved) {
            _ if self.is_canceled => "Not run.",
            (false, _) => "Stopped before it was done.",
            (true, false) => "The kernel crashed. Text and outputs are kept; variables are lost.",
            (true, true) => {
                "The kernel crashed. Text and outputs are kept; variables are as they were before this run."
            }
        }
    }

    /// Returns whether there are buttons below the sentence.
    pub(super) fn has_offers(self) -> bool {
        !self.is_canceled
    }

    /// Draws the buttons in a line; `number` is the cell's.
    pub(super) fn show(
        self,
        ui: &mut Ui,
        id: Id,
        at: Pos2,
        (block, number): (BlockId, usize),
        actions: &mut Vec<PageAction>,
    ) {
        let again =
            ("Run cell again", format!("Run cell {number} again"), PageAction::InCell(block, CommandId::CellRun));
        let run = |text, name, command| (text, name, PageAction::Run(command));
        let offers = match (self.is_crash, self.is_saved) {
            (true, false) => {
                let name = format!("Restart kernel after the crash in cell {number}");
                vec![run("Restart kernel", name, CommandId::KernelRestart), again]
            }
            (true, true) => {
                let name = format!("Saved states after the crash in cell {number}");
                vec![again, run("Saved states…", name, CommandId::KernelStates)]
            }
            (false, true) if self.is_undoable => {
                let name = format!("Undo the stopped run of cell {number}");
                vec![again, run("Undo run", name, CommandId::KernelUndo)]
            }
            (false, _) => vec![again],
        };
        let mut left = at;
        for (text, name, action) in offers {
            let wide = word_width(ui, text);
            let rect = Rect::from_min_size(left, vec2(wide, size::MIN_CLICK_HEIGHT));
            if word_button(ui, rect, id.with(text), text, &name).clicked() {
                actions.push(action);
            }
            left.x += wide + space::L;
        }
    }
}
