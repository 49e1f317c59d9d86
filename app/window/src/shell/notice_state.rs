//! What the window tells the user, and up to where it has told: toasts, the status bar, problems that were put away.

use engine::Session;
use std::collections::{BTreeMap, HashSet};
use store::DocId;
use ui::toasts::ToastStack;

use crate::shell::status_bar::StatusBar;

/// Notices and what was said last of each kind.
#[derive(Default)]
pub(crate) struct NoticeState {
    pub(crate) status: StatusBar,
    pub(crate) toasts: ToastStack,
    /// The number of the last notice that was looked at.
    pub(crate) last_seen_notice: u64,
    /// In how many notes links could follow renamed files, when that was said last.
    pub(crate) last_reported_renames: usize,
    /// Of each note the last clean run that was told of.
    pub(crate) last_reported_runs: BTreeMap<DocId, u64>,
    /// Problems that were read and put away.
    pub(crate) dismissed_problems: HashSet<String>,
}

impl NoticeState {
    /// Shows the session's news since the last call as toasts.
    pub(crate) fn show_news(&mut self, session: &Session) {
        let notices = session.notices();
        for noticed in notices.notices_after(self.last_seen_notice).filter(|noticed| noticed.notice.is_news()) {
            self.toasts.show_message(ui::text::sentence(&noticed.notice.describe()));
        }
        self.last_seen_notice = notices.last_number();
    }
}
