//! Messages to the user: toasts, the status bar, dismissed problems, and the last reports.

use crate::shell::status_bar::StatusBar;
use engine::commands::CommandId;
use engine::{RunSummary, Session};
use std::collections::{BTreeMap, HashMap, HashSet};
use store::{DocId, RunEnding};
use ui::fallback_fonts::UnshownScripts;
use ui::toasts::ToastStack;

/// What was last known for notifications of the desktop, so that each event is shown once.
#[derive(Default)]
pub(crate) struct NotificationState {
    /// Notes with running cells: since when, in seconds, and in milliseconds since 1970.
    pub(crate) busy: HashMap<DocId, (f64, i64)>,
    /// Number of the last notice of the session that was looked at.
    pub(crate) last_notice: u64,
}

/// Runs that failed since the user last saw the agent.
#[derive(Default)]
pub(crate) struct FailedRuns {
    /// When that was, in milliseconds since 1970; `None` before the first frame.
    seen: Option<i64>,
    /// The revision of the runs that were counted, and their number.
    counted: (u64, usize),
}

/// Messages to the user, and the last report of each kind.
#[derive(Default)]
pub(crate) struct NoticeState {
    pub(crate) status: StatusBar,
    pub(crate) toasts: ToastStack,
    /// Number of the last notice that was shown.
    pub(crate) last_seen_notice: u64,
    /// Number of notes with links to renamed files, when that was last reported.
    pub(crate) last_reported_renames: usize,
    /// The last reported clean run of each note.
    pub(crate) last_reported_runs: BTreeMap<DocId, u64>,
    /// Runs that failed since the user last saw the agent.
    pub(crate) failures: FailedRuns,
    /// Problems that the user dismissed.
    pub(crate) dismissed_problems: HashSet<String>,
    pub(crate) unshown_scripts: UnshownScripts,
    /// What was last known for notifications of the desktop.
    pub(crate) notifications: NotificationState,
}

impl NoticeState {
    /// Shows where the crash report is, if the program crashed in its last run. Returns whether its start failed.
    pub(crate) fn show_crash_notice(&mut self, driver: &host::Driver) -> bool {
        let Some(report) = host::logging::take_crash_notice(driver.folder()) else { return false };
        let says = format!("Tracebook crashed the last time it ran. The crash report is in {}.", report.display());
        self.toasts.show_with_action(says, "Report…", CommandId::HelpReport);
        host::logging::crashed_at_start(&report)
    }

    /// Returns the number of this device's runs that failed since the user last saw the agent.
    pub(crate) fn unseen_failures(&mut self, session: &Session, sees_agent: bool) -> usize {
        let (agents, now) = (session.agents(), host::unix_millis_now());
        let seen = *self.failures.seen.get_or_insert(now);
        if sees_agent {
            (self.failures.seen, self.failures.counted) = (Some(now), (agents.revision(), 0));
        } else if self.failures.counted.0 != agents.revision() {
            let is_new = |run: &&RunSummary| {
                let is_failure = run.ending == Some(RunEnding::Failed) && session.is_own_device(run.device.as_ref());
                is_failure && run.ended.is_some_and(|ended| ended >= seen)
            };
            let count = agents.runs().map(|(_, run)| run).filter(is_new).count();
            self.failures.counted = (agents.revision(), count);
        }
        self.failures.counted.1
    }

    /// Shows the session's news since the last call as toasts.
    pub(crate) fn show_news(&mut self, session: &Session) {
        let notices = session.notices();
        for noticed in notices.notices_after(self.last_seen_notice).filter(|noticed| noticed.notice.is_news()) {
            self.toasts.show_message(ui::text::sentence(&noticed.notice.describe()));
        }
        self.last_seen_notice = notices.last_number();
    }
}
