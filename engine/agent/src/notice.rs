//! Notices: typed and numbered events that users or other programs may want to know about. The session publishes them
//! in one place ([`crate::Session::notices`]). A reader (the window, `--json` streams) remembers the last number it
//! read. Notices aren't state: what must be kept is in documents.

use serde::Serialize;
use serde_json::Value;
use std::collections::VecDeque;
use store::{DocId, RunEnding};
use text::time::UnixMillis;

/// Number of notices that are kept for later readers.
const MAX_NOTICES: usize = 2_000;

/// An event that the user or another program may want to know about.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Notice {
    /// A run started.
    RunBegan {
        /// The run that started.
        run: DocId,
        /// Name of the run's agent.
        agent: String,
        /// The run's goal, on one line.
        goal: String,
    },
    /// A run ended.
    RunEnded {
        /// The run that ended.
        run: DocId,
        /// How the run ended.
        ending: RunEnding,
        /// The reason; `None` if the run is done.
        why: Option<String>,
    },
    /// A run reached a phase.
    Phase {
        /// The run that reached it.
        run: DocId,
        /// Number of the phase, from 1.
        phase: u8,
        /// Name of the phase.
        name: String,
    },
    /// A tool call needs the user's approval.
    Asked {
        /// The run that waits for the approval.
        run: DocId,
        /// Id of the approval.
        approval: String,
        /// The call to approve, as a sentence.
        what: String,
    },
    /// The status of a task in a plan changed.
    Task {
        /// The run that works on the plan.
        run: DocId,
        /// Id of the task.
        task: String,
        /// The task's new status: `running`, `done`, `failed` or `cancelled`.
        status: String,
    },
    /// A budget is nearly used up.
    BudgetLow {
        /// What the budget applies to.
        of: String,
        /// Remaining budget in US dollars.
        left: f64,
        /// Limit in US dollars.
        limit: f64,
    },
    /// Something was added to memory.
    Remembered {
        /// The volume that the memory belongs to.
        volume: DocId,
        /// Path of the note in the volume.
        path: String,
    },
    /// Memory was consolidated.
    Consolidated {
        /// The volume that the memory belongs to.
        volume: DocId,
        /// Folder of the memory in the volume.
        folder: String,
        /// Number of patterns found.
        patterns: usize,
        /// Number of experiences that expired.
        expired: usize,
    },
    /// A schedule was due and started.
    Scheduled {
        /// The schedule that started.
        schedule: DocId,
        /// Name of the schedule.
        name: String,
        /// When the schedule was due.
        due: UnixMillis,
        /// Number of earlier occurrences that were missed.
        missed: u64,
    },
    /// A schedule was due and was skipped, or couldn't start.
    Skipped {
        /// The schedule that was skipped.
        schedule: DocId,
        /// Name of the schedule.
        name: String,
        /// The reason, as a sentence.
        why: String,
    },
    /// The watchdog stopped something that hung.
    Stopped {
        /// The run that was affected.
        run: DocId,
        /// What was stopped, as a sentence.
        what: String,
    },
    /// Another program published an event.
    Published {
        /// The volume that the event belongs to.
        volume: DocId,
        /// Its kind: `CUSTOM.` and a name.
        kind: String,
        /// What filters compare; `None` if its data names no subject.
        #[serde(skip_serializing_if = "Option::is_none")]
        subject: Option<String>,
        /// What the program said, within the limits of [`crate::published_event`].
        data: Value,
    },
}

/// A notice with its number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NumberedNotice {
    /// Number of the notice since the program started, from 1 without gaps.
    pub number: u64,
    /// Time of the notice.
    pub at: UnixMillis,
    /// The notice.
    #[serde(flatten)]
    pub notice: Notice,
}

/// The most recent notices.
#[derive(Debug, Default)]
pub struct RecentNotices {
    kept: VecDeque<NumberedNotice>,
    count: u64,
}

impl RecentNotices {
    /// Adds a notice; the oldest one is dropped if there are too many.
    pub fn publish(&mut self, at: UnixMillis, notice: Notice) {
        self.count += 1;
        self.kept.push_back(NumberedNotice { number: self.count, at, notice });
        if self.kept.len() > MAX_NOTICES {
            self.kept.pop_front();
        }
    }

    /// Returns the number of the last notice, or 0 if there was none.
    pub fn last_number(&self) -> u64 {
        self.count
    }

    /// Returns the notices after a number that are still kept, oldest first.
    pub fn notices_after(&self, number: u64) -> impl Iterator<Item = &NumberedNotice> {
        self.kept.iter().filter(move |noticed| noticed.number > number)
    }

    /// Returns whether a notice after a number says that the run began.
    pub fn has_run_begun(&self, number: u64, run: DocId) -> bool {
        let begins = |notice: &Notice| matches!(notice, Notice::RunBegan { run: begun, .. } if *begun == run);
        self.notices_after(number).any(|noticed| begins(&noticed.notice))
    }
}

impl Notice {
    /// Returns whether to inform the user of the notice, because it isn't the direct result of a request.
    pub fn is_news(&self) -> bool {
        match self {
            Notice::BudgetLow { .. } | Notice::Scheduled { .. } | Notice::Skipped { .. } | Notice::Stopped { .. } => {
                true
            }
            Notice::RunBegan { .. }
            | Notice::RunEnded { .. }
            | Notice::Phase { .. }
            | Notice::Asked { .. }
            | Notice::Task { .. }
            | Notice::Remembered { .. }
            | Notice::Consolidated { .. }
            | Notice::Published { .. } => false,
        }
    }

    /// Describes the notice on one line.
    pub fn describe(&self) -> String {
        text::untrusted_text::escape_line(&self.sentence()).into_owned()
    }

    fn sentence(&self) -> String {
        let short = |id: &DocId| id.to_string().chars().take(8).collect::<String>();
        match self {
            Notice::RunBegan { run, agent, goal } => format!("run {} began ({agent}): {goal}", short(run)),
            Notice::RunEnded { run, ending: RunEnding::Done, .. } => format!("run {} is done", short(run)),
            Notice::RunEnded { run, ending, why } => {
                let word = match ending {
                    RunEnding::Done => "is done",
                    RunEnding::Cancelled => "was stopped",
                    RunEnding::Failed => "failed",
                    RunEnding::Limit => "reached its limit",
                    RunEnding::Budget => "has no money left",
                };
                let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                format!("run {} {word}{why}", short(run))
            }
            Notice::Phase { run, phase, name } => format!("run {}, phase {phase}: {name}", short(run)),
            Notice::Asked { run, approval, what } => {
                format!("run {} waits for `tracebook approvals {}/{approval}`: {what}", short(run), short(run))
            }
            Notice::Task { run, task, status } => format!("run {}, task {task}: {status}", short(run)),
            Notice::BudgetLow { of, left, limit } => format!("the budget is low: ${left:.4} of ${limit:.2} for {of}"),
            Notice::Remembered { path, .. } => format!("remembered in {path}"),
            Notice::Consolidated { folder, patterns, expired, .. } => {
                format!("{folder}: {patterns} patterns, {expired} forgotten")
            }
            Notice::Scheduled { name, missed: 0, .. } => format!("schedule {name} began"),
            Notice::Scheduled { name, missed, .. } => format!("schedule {name} began; {missed} before it were missed"),
            Notice::Skipped { name, why, .. } => format!("schedule {name} was left out: {why}"),
            Notice::Stopped { run, what } => format!("run {}: {what}", short(run)),
            Notice::Published { kind, data, .. } => format!("{kind}: {data}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_looks_late_reads_on() {
        let mut notices = RecentNotices::default();
        for number in 0..MAX_NOTICES + 10 {
            let path = number.to_string();
            notices.publish(UnixMillis(5), Notice::Remembered { volume: DocId([1; 16]), path });
        }
        let last = notices.last_number();
        assert_eq!((notices.notices_after(0).count(), notices.notices_after(last - 3).count()), (MAX_NOTICES, 3));
        assert_eq!(notices.notices_after(last).count(), 0);
    }
}
