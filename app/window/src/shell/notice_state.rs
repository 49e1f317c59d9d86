//! Messages to the user: toasts, the status bar, dismissed problems, and the last reports.

use crate::shell::status_bar::StatusBar;
use engine::Session;
use std::collections::{BTreeMap, HashSet};
use store::DocId;
use ui::fallback_fonts::{self, UnshownScripts};
use ui::toasts::ToastStack;

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
    /// Problems that the user dismissed.
    pub(crate) dismissed_problems: HashSet<String>,
    pub(crate) unshown_scripts: UnshownScripts,
}

impl NoticeState {
    /// Shows where the crash report is, if the program crashed in its last run.
    pub(crate) fn show_crash_notice(&mut self, driver: &host::Driver) {
        if let Some(report) = host::logging::take_crash_notice(driver.folder()) {
            self.toasts.show_message(format!(
                "Tracebook failed the last time it ran. The report is in {}. `tracebook doctor --report FILE` collects \
                 what helps to find the cause.",
                report.display()
            ));
        }
    }

    /// Reports once which scripts no available font can draw.
    pub(crate) fn report_unshown_scripts(&mut self) {
        let scripts = self.unshown_scripts.take();
        if !scripts.is_empty() {
            self.toasts.show_message(fallback_fonts::describe_unshown(&scripts));
        }
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
