//! Desktop notifications of what happens while the user uses another window: long cells, runs and approvals.

use crate::shell::host_link::HostLink;
use crate::shell::notice_state::{NoticeState, NotificationState};
use crate::shell::window_state::WindowState;
use agent::notice::Notice;
use eframe::egui;
use engine::{Command, KernelPhase, Session};
use store::{DocId, Execution, ExecutionStatus, RunEnding};
use text::untrusted_text::escape_line;
use ui::text::{sentence, shown_name};

/// How long the cells of a note must run before their end is worth a notification, in seconds.
const LONG_CELL_SECONDS: f64 = 10.0;
/// How much earlier than it's noticed a cell may have been started, in milliseconds.
const START_TOLERANCE_MS: i64 = 2_000;
/// Maximum length of a notification's text, in characters.
const MAX_BODY_CHARS: usize = 200;

impl NoticeState {
    /// Shows notifications for what has ended or waits since the last call, unless the window has the focus.
    pub(crate) fn notify_desktop(&mut self, host: &HostLink, ctx: &egui::Context) {
        let (now, is_focused) = ctx.input(|input| (input.time, input.focused));
        let session = host.session();
        let mut events = self.notifications.ended_cells(session, now);
        events.extend(self.notifications.run_events(session));
        let Some(notifier) = host.notifier.as_ref().filter(|_| !is_focused && session.settings().notifications) else {
            return;
        };
        for (title, body) in events {
            let notifier = notifier.clone();
            let body: String = escape_line(&body).chars().take(MAX_BODY_CHARS).collect();
            std::thread::spawn(move || {
                let _ = notifier(&title, &body); // a desktop without notifications is no problem
            });
        }
    }

    /// Reports which scripts no available font can draw.
    pub(crate) fn report_unshown_scripts(&mut self, host: &mut HostLink, prefs: &WindowState) {
        let Some((text, mut settings)) = self.unshown_scripts.take_news(host.session().settings()) else { return };
        self.toasts.show_message(text);
        prefs.store_settings(&mut settings);
        host.send(Command::Set { settings: Box::new(settings) }, self);
    }
}

impl NotificationState {
    /// Returns the notes whose cells have run long and have ended, as notifications.
    fn ended_cells(&mut self, session: &Session, now: f64) -> Vec<(String, String)> {
        for note in session.notes().filter(|note| matches!(note.kernel, KernelPhase::Busy(_))) {
            self.busy.entry(note.id).or_insert((now, host::unix_millis_now()));
        }
        let is_busy = |note: &DocId| session.note(*note).is_some_and(|note| !note.pending_cells().is_empty());
        let ended: Vec<DocId> = self.busy.keys().filter(|note| !is_busy(note)).copied().collect();
        let mut events = Vec::new();
        for note in ended {
            let Some((since, started)) = self.busy.remove(&note) else { continue };
            let Some(note) = session.note(note).filter(|_| now - since >= LONG_CELL_SECONDS) else { continue };
            let failed = |run: &Execution| {
                let is_failure = matches!(run.status, ExecutionStatus::Error | ExecutionStatus::Died);
                is_failure && run.started + START_TOLERANCE_MS >= started
            };
            let has_failed = note.cells().filter_map(|cell| note.latest_execution(cell)).any(failed);
            let name =
                session.locate_file(note.id).map_or("a note", |(_, path)| path.rsplit('/').next().unwrap_or(path));
            let title = if has_failed { "A cell failed" } else { "Cells finished" };
            events.push((title.to_owned(), format!("{}, after {:.0} s", shown_name(name), now - since)));
        }
        events
    }

    /// Returns the ends of runs and their questions since the last call, as notifications.
    fn run_events(&mut self, session: &Session) -> Vec<(String, String)> {
        let notices = session.notices();
        let event = |notice: &Notice| match notice {
            Notice::RunEnded { run, ending, why } => {
                let title = match ending {
                    RunEnding::Done => "The agent is done",
                    RunEnding::Cancelled => return None, // the user has just stopped it
                    RunEnding::Failed => "The agent failed",
                    RunEnding::Limit => "The agent reached its limit",
                    RunEnding::Budget => "The agent has used up its budget",
                };
                let asked = session.agents().runs().find(|(id, _)| id == run).map(|(_, run)| run.prompt.clone());
                Some((title.to_owned(), why.clone().map(|why| sentence(&why)).or(asked).unwrap_or_default()))
            }
            Notice::Asked { what, .. } => Some(("The agent needs your approval".to_owned(), sentence(what))),
            Notice::RunBegan { .. }
            | Notice::Phase { .. }
            | Notice::Task { .. }
            | Notice::BudgetLow { .. }
            | Notice::Remembered { .. }
            | Notice::Consolidated { .. }
            | Notice::Scheduled { .. }
            | Notice::Skipped { .. }
            | Notice::Stopped { .. }
            | Notice::Published { .. } => None,
        };
        let news = notices.notices_after(self.last_notice);
        let events = news.filter_map(|noticed| event(&noticed.notice)).collect();
        self.last_notice = notices.last_number();
        events
    }
}
