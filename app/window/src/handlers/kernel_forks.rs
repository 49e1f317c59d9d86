//! Forks of a note's variables: sends the dialog's requests to the kernel, and shows the results.

use crate::overlays::dialogs::Dialog;
use crate::overlays::kernel_forks_form::{ForkSupport, KernelForksForm};
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use anyhow::anyhow;
use engine::{Command, KernelPhase, KernelStateMove, KernelStateReport};
use store::DocId;

/// The note property that controls whether the note's variables are saved.
const STATE_PROPERTY: &str = "state";

impl WindowOverlay {
    /// Opens the dialog with the forks of the open note's variables.
    pub(crate) fn show_forks(&mut self, host: &HostLink, panes: &PaneState, notices: &mut NoticeState) {
        let Some((note, support)) = panes.active.note.and_then(|note| Some((note, support(host, note)?))) else {
            notices.toasts.show_message("No note is open.");
            return;
        };
        let (program, workspace) = (host.driver.program().to_owned(), host.driver.folder().to_owned());
        let form = KernelForksForm::new(note, support, program, workspace);
        *self = WindowOverlay::Dialog(Dialog::KernelForks(Box::new(form)));
    }

    /// Updates the dialog with the kernel's results.
    pub(crate) fn follow_forks(&mut self, host: &HostLink) {
        let WindowOverlay::Dialog(Dialog::KernelForks(form)) = self else { return };
        form.support = support(host, form.note).unwrap_or(form.support);
        let Some((before, to)) = &form.awaited else { return };
        let Some(note) = host.session().note(form.note) else { return };
        let report = note.state_move();
        if report.count > *before {
            let ended = match &report.problem {
                Some(problem) => Err(anyhow!("{}.", ui::text::sentence(problem))),
                None => Ok(done_text(to, report)),
            };
            form.finish_move(ended);
        } else if note.kernel == KernelPhase::Off {
            // The kernel couldn't be started.
            let why = ui::text::sentence(note.kernel_trouble().unwrap_or("the kernel ended"));
            form.finish_move(Err(anyhow!("{why}.")));
        }
    }

    /// Sends the move between states that was chosen in the dialog to the kernel.
    pub(crate) fn move_kernel_state(&mut self, host: &mut HostLink, note: DocId, to: KernelStateMove) {
        let WindowOverlay::Dialog(Dialog::KernelForks(form)) = self else { return };
        let before = host.session().note(note).map_or(0, |note| note.state_move().count);
        match host.command(Command::MoveState { note, to: to.clone() }) {
            Ok(()) => (form.awaited, form.trouble) = (Some((before, to)), None),
            Err(why) => form.trouble = Some(why.to_string()),
        }
    }

    /// Turns saving of a note's variables on again.
    pub(crate) fn save_variables(&mut self, host: &mut HostLink, note: DocId) {
        let WindowOverlay::Dialog(Dialog::KernelForks(form)) = self else { return };
        let set = Command::SetProperty { note, key: STATE_PROPERTY.to_owned(), value: None };
        form.trouble = host.command(set).err().map(|why| why.to_string());
    }
}

/// Returns whether a note's variables are saved, or `None` if the note isn't open.
fn support(host: &HostLink, note: DocId) -> Option<ForkSupport> {
    let note = host.session().note(note)?;
    Some(if note.saves_states() {
        ForkSupport::Saved
    } else if note.may_save_states() {
        ForkSupport::OtherKernel { has_science: host.science.status().installed.is_some() }
    } else {
        ForkSupport::TurnedOff
    })
}

fn done_text(to: &KernelStateMove, report: &KernelStateReport) -> String {
    let current = &report.branch;
    match to {
        KernelStateMove::Discard { name } => format!("{name} is discarded."),
        KernelStateMove::Adopt { name } => format!("{current} continues with the variables of {name}."),
        KernelStateMove::Fork { .. }
        | KernelStateMove::Switch { .. }
        | KernelStateMove::Undo
        | KernelStateMove::Redo
        | KernelStateMove::Fresh
        | KernelStateMove::To { .. }
        | KernelStateMove::Pin { .. }
        | KernelStateMove::Unpin { .. }
        | KernelStateMove::Receive => format!("Cells run in {current} now."),
    }
}
