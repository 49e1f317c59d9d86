//! The end of a cell's outputs if its run was stopped, its kernel crashed, or variables couldn't be restored: what
//! happened, and what can be done.

use crate::actions::PageAction;
use eframe::egui;
use egui::{Id, Pos2, Rect, Ui, vec2};
use engine::Note;
use engine::commands::CommandId;
use store::{BlockId, CellOutput, Execution, ExecutionStatus, OutputBody};
use ui::theme::{size, space};
use ui::widgets::{word_button, word_width};

/// Number of bytes of a cell's first output in which the kernel says that variables were lost.
const LOST_NOTICE_BYTES: usize = 1_000;

/// A run that didn't end by itself, or that began without the variables of earlier runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutRun {
    /// Whether the kernel crashed; otherwise the run was stopped.
    is_crash: bool,
    /// Whether the saved variables of earlier runs couldn't be restored. The run itself isn't cut short then.
    has_lost_variables: bool,
    /// Whether the cell was canceled before it ran.
    is_canceled: bool,
    /// Whether the note's variables are saved after each run.
    is_saved: bool,
    /// Whether “Undo run” undoes this run: it left a state, and no other did so after it.
    is_undoable: bool,
}

impl CutRun {
    /// Returns how the latest run of a cell was cut short, or that it lacked variables, or `None` if neither holds.
    pub(crate) fn of(note: &Note, run: &Execution) -> Option<CutRun> {
        let (is_crash, has_lost_variables) = match run.status {
            ExecutionStatus::Interrupted => (false, false),
            ExecutionStatus::Died => (true, false),
            ExecutionStatus::Ok | ExecutionStatus::Error if note.saves_states() && has_lost_variables(&run.outputs) => {
                (false, true)
            }
            ExecutionStatus::Queued | ExecutionStatus::Running | ExecutionStatus::Ok | ExecutionStatus::Error => {
                return None;
            }
        };
        Some(CutRun {
            is_crash,
            has_lost_variables,
            is_canceled: run.is_canceled_in_queue(),
            is_saved: note.saves_states(),
            is_undoable: note.is_last_saved_run(run),
        })
    }

    /// Returns what happened, as a sentence.
    pub(super) fn sentence(self) -> &'static str {
        match (self.is_crash, self.is_saved) {
            _ if self.has_lost_variables => "This cell began without the variables of earlier runs.",
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
            _ if self.has_lost_variables => {
                let all = format!("Run all cells again, since cell {number} began without variables");
                let states = format!("Saved states before cell {number}");
                vec![
                    run("Run all cells", all, CommandId::NoteRunAll),
                    run("Saved states…", states, CommandId::KernelStates),
                ]
            }
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

/// Returns whether the kernel said, before the cell's own output, that saved variables couldn't be restored.
fn has_lost_variables(outputs: &[CellOutput]) -> bool {
    let Some(CellOutput { body: OutputBody::Stream { name, text }, .. }) = outputs.first() else { return false };
    let start = &text[..text.floor_char_boundary(LOST_NOTICE_BYTES)];
    name == "stderr" && start.starts_with("[The saved variables could not be restored: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_variables_are_what_the_kernel_says_first() {
        let is_lost = |name: &str, text: &str| {
            let body = OutputBody::Stream { name: name.to_owned(), text: text.to_owned() };
            has_lost_variables(&[CellOutput { body, whole: None }])
        };
        let said = "[The saved variables could not be restored: x is damaged. Run the cells again.]\n";
        assert!(is_lost("stderr", said));
        // This device's own variables are still there then.
        assert!(!is_lost("stderr", "[The variables of the other device could not be restored: x.]"));
        assert!(!is_lost("stdout", said) && !is_lost("stderr", &format!("Warning\n{said}")) && !is_lost("stderr", ""));
        assert!(!is_lost("stderr", &"[é".repeat(LOST_NOTICE_BYTES)) && !has_lost_variables(&[]));
    }
}
