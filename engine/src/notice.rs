//! Notices: what happened that others may want to know of, as typed events with numbers. The session publishes them
//! in one place ([`crate::Session::notices`]); whoever looks (the window, `--json` streams) remembers the last number
//! and reads on. They are no state: what is to last stands in documents.

use serde::Serialize;
use std::collections::VecDeque;
use store::{DocId, RunEnding};
use text::time::UnixMillis;

/// So many are kept for who looks late.
const MAX_NOTICES: usize = 2_000;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Notice {
    /// A run has begun.
    RunBegan {
        /// Which.
        run: DocId,
        /// Its agent.
        agent: String,
        /// What it is to do, in a line.
        goal: String,
    },
    /// A run is over.
    RunEnded {
        /// Which.
        run: DocId,
        /// How.
        ending: RunEnding,
        /// Why, where it is not done.
        why: Option<String>,
    },
    /// A run has come to a phase.
    Phase {
        /// Which run.
        run: DocId,
        /// The phase, from 1.
        phase: u8,
        /// What it is called.
        name: String,
    },
    /// Something waits for the user.
    Asked {
        /// In which run.
        run: DocId,
        /// Which approval.
        approval: String,
        /// What would be done.
        what: String,
    },
    /// A task of a plan stands otherwise.
    Task {
        /// The run that works on the plan.
        run: DocId,
        /// Which task.
        task: String,
        /// How it stands: `running`, `done`, `failed`, `cancelled`.
        status: String,
    },
    /// Little is left of a budget.
    BudgetLow {
        /// Of which.
        of: String,
        /// US dollars that are left.
        left: f64,
        /// US dollars that there were.
        limit: f64,
    },
    /// Something was brought into memory.
    Remembered {
        /// The volume.
        volume: DocId,
        /// The note, inside it.
        path: String,
    },
    /// Memory was consolidated.
    Consolidated {
        /// The volume.
        volume: DocId,
        /// The folder of memory, inside it.
        folder: String,
        /// How many patterns there are.
        patterns: usize,
        /// How many experiences were over.
        expired: usize,
    },
    /// A schedule was due and has begun.
    Scheduled {
        /// Which.
        schedule: DocId,
        /// What the user calls it.
        name: String,
        /// When it was due.
        due: UnixMillis,
        /// How many points in time before were missed.
        missed: u64,
    },
    /// A schedule was due and was left out, or could not begin.
    Skipped {
        /// Which.
        schedule: DocId,
        /// What the user calls it.
        name: String,
        /// Why: a sentence.
        why: String,
    },
    /// The watchdog has ended something that hung.
    Stopped {
        /// In which run.
        run: DocId,
        /// What: a sentence.
        what: String,
    },
}

/// A notice with its number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NumberedNotice {
    /// From 1, without gaps, since the program began.
    pub number: u64,
    /// When.
    pub at: UnixMillis,
    /// What.
    #[serde(flatten)]
    pub notice: Notice,
}

/// The last notices.
#[derive(Debug, Default)]
pub struct RecentNotices {
    kept: VecDeque<NumberedNotice>,
    count: u64,
}

impl RecentNotices {
    pub(crate) fn publish(&mut self, at: UnixMillis, notice: Notice) {
        self.count += 1;
        self.kept.push_back(NumberedNotice { number: self.count, at, notice });
        if self.kept.len() > MAX_NOTICES {
            self.kept.pop_front();
        }
    }

    /// The number of the last one; 0: there is none.
    pub fn last_number(&self) -> u64 {
        self.count
    }

    /// Those after a number that are still kept, oldest first.
    pub fn notices_after(&self, number: u64) -> impl Iterator<Item = &NumberedNotice> {
        self.kept.iter().filter(move |noticed| noticed.number > number)
    }
}

impl Notice {
    /// Whether it is news for somebody who sits there: nobody has asked for it there and then.
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
            | Notice::Consolidated { .. } => false,
        }
    }

    /// In words, of one line.
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
                    RunEnding::Limit => "came to its limit",
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
