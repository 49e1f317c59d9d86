//! Saved states of a note's kernel: the list, and the results of moves between them.

use crate::overlays::command_palette::CommandPalette;
use crate::overlays::dialogs::Dialog;
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::background_jobs::BackgroundJobs;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use host::kernel_states::list_states;
use std::time::Duration;

impl PaneState {
    /// Reads the saved states of the open note's kernel, to list them.
    pub(crate) fn list_states(
        &self,
        host: &HostLink,
        notices: &mut NoticeState,
        jobs: &BackgroundJobs,
        ctx: &egui::Context,
    ) {
        let Some(note) = self.active.note else {
            notices.toasts.show_message("No note is open.");
            return;
        };
        if host.session().note(note).is_some_and(|note| !note.may_save_states()) {
            let why = "This note's properties say `state: off`, so its variables aren't saved.";
            notices.toasts.show_message(why);
            return;
        }
        let (workspace, tell, wake) =
            (host.driver.handle().workspace_folder().to_owned(), jobs.states.0.clone(), ctx.clone());
        std::thread::spawn(move || {
            // If the receiver is gone, the result is no longer needed.
            let _ = tell.send((note, list_states(&workspace, note)));
            wake.request_repaint_after(Duration::from_millis(1));
        });
    }
}

impl WindowOverlay {
    /// Opens the palette with the saved states, once they are read.
    pub(crate) fn show_states(&mut self, panes: &PaneState, notices: &mut NoticeState, jobs: &BackgroundJobs) {
        let Some((note, states)) = jobs.states.1.try_iter().last() else { return };
        if panes.active.note != Some(note) || !matches!(self, WindowOverlay::None) {
            return;
        }
        if let Some(problem) = states.problem {
            notices.toasts.show_message(format!("{}.", ui::text::sentence(&problem)));
        } else if states.states.is_empty() {
            notices.toasts.show_message("No saved states. Choose the kernel Science, and run a cell.");
        } else {
            *self = WindowOverlay::Palette(CommandPalette::states(&states));
        }
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
        if let WindowOverlay::Dialog(Dialog::KernelForks(_)) = overlay {
            return; // it says so itself
        }
        if let Some(problem) = &report.problem {
            notices.toasts.show_message(format!("{}.", ui::text::sentence(problem)));
            return;
        }
        let numbers: Vec<String> = note
            .cells()
            .enumerate()
            .filter(|(_, cell)| report.undone.contains(cell))
            .map(|(at, _)| (at + 1).to_string())
            .collect();
        let said = match (report.state.is_some(), numbers.as_slice()) {
            (false, _) => "The kernel has no variables now.".to_owned(),
            (true, []) => "Variables are as they were in that state.".to_owned(),
            (true, [one]) => format!("Variables are as they were before cell {one} ran."),
            (true, several) => format!("Variables are as they were before cells {} ran.", several.join(", ")),
        };
        notices.toasts.show_message(said);
    }
}
