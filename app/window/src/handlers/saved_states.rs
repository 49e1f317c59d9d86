//! Saved states of a note's variables: sends the dialog's requests to the kernel, and shows the results.

use crate::overlays::dialogs::Dialog;
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::background_jobs::BackgroundJobs;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use anyhow::anyhow;
use engine::commands::CommandId;
use engine::{Command, KernelPhase, KernelStateMove, KernelStateReport, Note};
use notebook::saved_states::{ForkSupport, SavedStatesChange, SavedStatesForm, SavedStatesView};
use store::DocId;

impl HostLink {
    /// Restarts a note's kernel, and says what became of the variables.
    pub(crate) fn restart_kernel(&mut self, notices: &mut NoticeState, note: Option<DocId>) {
        let Some(note) = note else { return notices.toasts.show_message("No note is open.") };
        let is_saved = self.note(Some(note)).is_some_and(Note::saves_states);
        if !self.send(Command::RestartKernel { note }, notices) {
            return;
        }
        if is_saved {
            let text = "The kernel restarts without variables. You can bring them back.";
            notices.toasts.show_with_action(text, "Saved states…", CommandId::KernelStates);
        } else {
            notices.toasts.show_message("The kernel restarts. Its variables are lost; text and outputs stay.");
        }
    }
}

/// The note property that controls whether the note's variables are saved.
const STATE_PROPERTY: &str = "state";

impl WindowOverlay {
    /// Opens the dialog with the saved states of the open note's variables.
    pub(crate) fn show_saved_states(
        &mut self,
        host: &HostLink,
        panes: &PaneState,
        notices: &mut NoticeState,
        view: SavedStatesView,
    ) {
        let Some((note, support)) = panes.active.note.and_then(|note| Some((note, support(host, note)?))) else {
            notices.toasts.show_message("No note is open.");
            return;
        };
        let place = (host.driver.program().to_owned(), host.driver.folder().to_owned());
        let form = SavedStatesForm::new(note, view, support, place);
        *self = WindowOverlay::Dialog(Dialog::SavedStates(Box::new(form)));
    }

    /// Updates the dialog with the kernel's results.
    pub(crate) fn follow_saved_states(&mut self, host: &HostLink) {
        let WindowOverlay::Dialog(Dialog::SavedStates(form)) = self else { return };
        form.support = support(host, form.note).unwrap_or(form.support);
        let Some(note) = host.session().note(form.note) else { return };
        if let Some((before, is_shared)) = form.awaited_share {
            let progress = note.shared_state();
            if progress.count > before {
                form.finish_change(ended(progress.problem.as_deref(), || shared_text(is_shared).to_owned()));
            }
            return;
        }
        let Some((before, to)) = &form.awaited else { return };
        let report = note.state_move();
        if report.count > *before {
            let ended = ended(report.problem.as_deref(), || done_text(to, note, report));
            form.finish_change(ended);
        } else if note.kernel == KernelPhase::Off && !note.is_fetching_state() {
            // The kernel couldn't be started.
            let why = ui::text::sentence(note.kernel_trouble().unwrap_or("the kernel ended"));
            form.finish_change(Err(anyhow!("{why}.")));
        }
    }

    /// Makes the change that was chosen in the dialog.
    pub(crate) fn change_saved_states(&mut self, host: &mut HostLink, note: DocId, change: SavedStatesChange) {
        let WindowOverlay::Dialog(Dialog::SavedStates(form)) = self else { return };
        let sent = match change {
            SavedStatesChange::Move(to) => {
                let before = host.session().note(note).map_or(0, |note| note.state_move().count);
                let sent = host.command(Command::MoveState { note, to: to.clone() });
                sent.map(|()| form.awaited = Some((before, to)))
            }
            SavedStatesChange::Share(is_shared) => {
                let before = host.session().note(note).map_or(0, |note| note.shared_state().count);
                let sent = host.command(Command::ShareState { note, is_shared });
                sent.map(|()| form.awaited_share = Some((before, is_shared)))
            }
            SavedStatesChange::SaveVariables => {
                host.command(Command::SetProperty { note, key: STATE_PROPERTY.to_owned(), value: None })
            }
        };
        form.trouble = sent.err().map(|why| format!("{}.", ui::text::sentence(&why.to_string())));
    }
}

impl BackgroundJobs {
    /// Reports the result of a move between saved states.
    pub(crate) fn report_state_moves(
        &mut self,
        host: &HostLink,
        panes: &PaneState,
        overlay: &WindowOverlay,
        notices: &mut NoticeState,
    ) {
        let session = host.session();
        let Some(note) = panes.active.note.and_then(|note| session.note(note)) else { return };
        let report = note.state_move();
        let seen = self.state_moves.entry(note.id).or_insert(0);
        if *seen == report.count {
            return;
        }
        *seen = report.count;
        if let WindowOverlay::Dialog(Dialog::SavedStates(_)) = overlay {
            return; // it says so itself
        }
        notices.toasts.show_message(match &report.problem {
            Some(problem) => format!("{}.", ui::text::sentence(problem)),
            None => undone_text(note, report),
        });
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

fn ended(problem: Option<&str>, done: impl FnOnce() -> String) -> anyhow::Result<String> {
    match problem {
        Some(problem) => Err(anyhow!("{}.", ui::text::sentence(problem))),
        None => Ok(done()),
    }
}

fn shared_text(is_shared: bool) -> &'static str {
    match is_shared {
        true => "Other devices that have this note can continue with its variables.",
        false => "New variables stay on this device.",
    }
}

fn done_text(to: &KernelStateMove, note: &Note, report: &KernelStateReport) -> String {
    let current = &report.branch;
    match to {
        KernelStateMove::Discard { name } => format!("{name} is discarded."),
        KernelStateMove::Adopt { name } => format!("{current} continues with the variables of {name}."),
        KernelStateMove::Pin { .. } => "The state is pinned.".to_owned(),
        KernelStateMove::Unpin { .. } => "The state is no longer pinned.".to_owned(),
        KernelStateMove::Take { name, .. } => format!("The variables of the fork {name} are there."),
        KernelStateMove::Receive => "The variables come from the other device now.".to_owned(),
        KernelStateMove::Fork { .. } | KernelStateMove::Switch { .. } => format!("Cells run in {current} now."),
        KernelStateMove::Undo | KernelStateMove::Redo | KernelStateMove::Fresh | KernelStateMove::To { .. } => {
            undone_text(note, report)
        }
    }
}

/// Says which cells' effects a move between states has undone.
fn undone_text(note: &Note, report: &KernelStateReport) -> String {
    let undone = note.cells().enumerate().filter(|(_, cell)| report.undone.contains(cell));
    let numbers: Vec<String> = undone.map(|(at, _)| (at + 1).to_string()).collect();
    match (report.state.is_some(), numbers.as_slice()) {
        (false, _) => "The kernel has no variables now.".to_owned(),
        (true, []) => "Variables are as they were in that state.".to_owned(),
        (true, [one]) => format!("Variables are as they were before cell {one} ran."),
        (true, several) => format!("Variables are as they were before cells {} ran.", several.join(", ")),
    }
}
