//! Closes the program once everything is saved, or asks the user.

use crate::overlays::dialogs::Dialog;
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::host_link::HostLink;
use crate::shell::pane_state::PaneState;
use crate::shell::shutdown::ShutdownState;
use eframe::egui;
use egui::ViewportCommand;
use engine::{AgentRun, Command, KernelPhase, Session};
use std::time::Duration;
use store::DocId;
use ui::text::shown_name;

/// How long to wait for saves to finish, in seconds.
const SHUTDOWN_SAVE_TIMEOUT_SECONDS: f64 = 3.0;

/// Returns the notes whose cells run, and this device's runs that work.
fn busy_work(session: &Session) -> (Vec<DocId>, Vec<DocId>) {
    let notes = session.notes().filter(|note| matches!(note.kernel, KernelPhase::Busy(_))).map(|note| note.id);
    let is_own = |run: &&AgentRun| session.is_own_device(run.device.as_ref()) && run.is_awake();
    (notes.collect(), session.agents().open_runs().filter(is_own).map(|run| run.id).collect())
}

/// Describes the cells and runs that closing would stop; `None` if nothing runs.
fn running_work(session: &Session) -> Option<String> {
    let (notes, runs) = busy_work(session);
    let cells = notes.first().map(|note| {
        let name = session.locate_file(*note).map_or("a note", |(_, path)| path.rsplit('/').next().unwrap_or(path));
        match notes.len() {
            1 => format!("A cell of {} is running.", shown_name(name)),
            count => format!("Cells of {count} notes are running."),
        }
    });
    let runs = match runs.len() {
        0 => None,
        1 => Some("An agent is working. You can resume its run later.".to_owned()),
        count => Some(format!("{count} agents are working. You can resume their runs later.")),
    };
    let said: Vec<String> = cells.into_iter().chain(runs).collect();
    (!said.is_empty()).then(|| said.join(" "))
}

/// Stops running cells and runs. What they have done so far is saved. Runs that other devices sent don't end: another
/// worker may continue them.
fn stop_work(host: &mut HostLink) {
    host.run_worker.set_paused(true);
    let sent = busy_work(host.session()).1.into_iter().filter(|run| sent_runs::is_for_others(host.session(), *run));
    let give_back = sent.map(|run| Command::HoldRun { run, hub: String::new(), policy: None });
    for command in give_back.collect::<Vec<_>>() {
        // It may be over just now.
        let _ = host.driver.run_command(command);
    }
    let (notes, runs) = busy_work(host.session());
    let stops = notes.into_iter().map(|note| Command::Interrupt { note });
    for stop in stops.chain(runs.into_iter().map(|run| Command::CancelRun { run })) {
        // A cell or run that has just ended can't be stopped.
        let _ = host.driver.run_command(stop);
    }
}

impl ShutdownState {
    /// Advances closing by one step.
    pub(crate) fn close_step(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        overlay: &mut WindowOverlay,
        ctx: &egui::Context,
    ) {
        if *self == ShutdownState::No {
            host.run_worker.set_paused(false);
        }
        let (wished, now) = ctx.input(|input| (input.viewport().close_requested(), input.time));
        // Another process that wants the workspace has asked its own user.
        if wished
            && *self == ShutdownState::No
            && !host.driver.is_closing()
            && let Some(why) = running_work(host.session())
        {
            ctx.send_viewport_cmd(ViewportCommand::CancelClose);
            *self = ShutdownState::Asked;
            *overlay = WindowOverlay::Dialog(Dialog::ClosingWhileRunning { why });
            return;
        }
        if wished && *self != ShutdownState::Yes {
            if matches!(*self, ShutdownState::No | ShutdownState::Confirmed) {
                stop_work(host);
                panes.save_positions(host);
                // Problems with saving are shown below. The command itself fails only before the workspace is open.
                let _ = host.driver.run_command(Command::Save);
                host.driver.pump(Duration::from_millis(4));
            }
            if host.session().is_saved() {
                *self = ShutdownState::Yes;
                return;
            }
            ctx.send_viewport_cmd(ViewportCommand::CancelClose);
            if matches!(*self, ShutdownState::No | ShutdownState::Confirmed) {
                *self = ShutdownState::Saving(now);
                panes.active.editor.end_editing();
            }
        }
        let ShutdownState::Saving(since) = *self else { return };
        let session = host.session();
        if session.is_saved() {
            *self = ShutdownState::Yes;
            ctx.send_viewport_cmd(ViewportCommand::Close);
            return;
        }
        let disk = session
            .saving()
            .trouble
            .as_ref()
            .map(|why| format!("The disk refuses: {why}. What is not saved is lost if the window closes now."));
        let file = session.notes().find_map(|note| note.file.trouble.as_ref()).map(|why| {
            let rest = "Its text is safe in the workspace and is written when the program runs again.";
            format!("A file cannot be written: {why}. {rest}")
        });
        let trouble = disk.or(file);
        if trouble.is_some() || now - since >= SHUTDOWN_SAVE_TIMEOUT_SECONDS {
            let why = trouble.unwrap_or_else(|| "The disk isn't responding.".to_owned());
            *self = ShutdownState::Asked;
            *overlay = WindowOverlay::Dialog(Dialog::Closing { why });
        }
        ctx.request_repaint_after(Duration::from_millis(50));
    }

    /// Returns whether the window waits for saves to finish before it closes.
    pub(crate) fn is_saving(&self) -> bool {
        matches!(self, ShutdownState::Saving(_))
    }
}
