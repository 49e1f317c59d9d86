//! Commands about the saved states of a kernel, and jobs that they lead to.

use serde::{Deserialize, Serialize};

/// A change of a kernel's saved states. Serialized as JSON, it's the message that the kernel expects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "move", rename_all = "lowercase")]
pub enum KernelStateMove {
    /// Switches to the state before the last run.
    Undo,
    /// Switches to the state that the last undo left.
    Redo,
    /// Switches to the initial state, that of a kernel that has run nothing.
    Fresh,
    /// Switches to this state.
    To {
        /// Id of the state.
        state: String,
    },
    /// Continues on a new branch.
    Fork {
        /// Name of the branch.
        name: String,
        /// Id of the state that it continues from; `None` is the current one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<String>,
    },
    /// Switches to the last state of a branch.
    Switch {
        /// Name of the branch.
        name: String,
    },
    /// Deletes a branch.
    Discard {
        /// Name of the branch.
        name: String,
    },
    /// Continues the current branch from the state of another branch, and deletes that branch.
    Adopt {
        /// Name of the branch.
        name: String,
    },
    /// Pins a state, so that thinning never removes it.
    Pin {
        /// Id of the state.
        state: String,
        /// New name of the state; `None` keeps the name.
        name: Option<String>,
    },
    /// Unpins a state, so that thinning may remove it again.
    Unpin {
        /// Id of the state.
        state: String,
    },
    /// Adds a branch with a state that a fork of the project has brought into the note's folder of states.
    Take {
        /// Name of the branch.
        name: String,
        /// Id of the state.
        state: String,
    },
    /// Takes over the newest state that another device shares.
    Receive,
}

/// Minimum time between two announcements of a note's states, in milliseconds. Hubs keep the files of each.
const ANNOUNCE_INTERVAL_MS: i64 = 10_000;

/// What a device does about the state that a note shares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedStateProgress {
    /// Number of finished jobs that share, announce or unshare.
    pub count: u64,
    /// Why the last of them failed.
    pub problem: Option<String>,
    /// Whether variables that may have to be announced are being saved, or an announcement is to be made.
    pub is_due: bool,
    /// When the next announcement may be made, in milliseconds since 1970; `None`: at once.
    pub may_announce_at: Option<i64>,
    /// Whether an announcement waits for that.
    pub is_delayed: bool,
    /// The announcement that this device made or handled last.
    pub handled: Option<String>,
    /// Whether the announcement was withdrawn, because the note's variables aren't to be saved.
    pub is_withdrawn: bool,
    /// Whether cells wait for the variables of another device.
    pub is_fetching: bool,
}

impl SharedStateProgress {
    /// Records that a state is to be announced, at this time. Returns when, if it must wait for the end of the interval
    /// after the announcement before; `None` announces it at once.
    pub fn begin_announcement(&mut self, now: i64) -> Option<i64> {
        let later = self.may_announce_at.filter(|at| now < *at);
        (self.is_due, self.is_delayed) = (true, later.is_some());
        if later.is_none() {
            self.may_announce_at = Some(now.saturating_add(ANNOUNCE_INTERVAL_MS));
        }
        later
    }

    /// Records the end of a job that shares, announces or unshares. Returns the problem of the job before.
    pub fn end_job(&mut self, problem: Option<String>) -> Option<String> {
        (self.is_due, self.count) = (self.is_delayed, self.count + 1);
        std::mem::replace(&mut self.problem, problem)
    }

    /// Forgets a pending announcement, because the volume is no longer shared.
    pub fn drop_announcement(&mut self) {
        (self.is_due, self.is_delayed) = (false, false);
    }
}

/// Work for the host on the state that a note shares with other devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedStateJob {
    /// Share the note's states from this device, and announce the current one.
    Share,
    /// Share them no longer.
    Unshare,
    /// Announce the current state, if the note's states are shared from this device.
    Announce,
    /// Fetch the state with this announcement, if it follows this device's.
    Fetch(String),
    /// Fetch the state with this announcement, because the user asked for it.
    FetchAnyway(String),
}

/// Result of a [`SharedStateJob`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedStateOutcome {
    /// The announcement of the current state; `None` if there is none, or the states aren't shared from this device.
    Announced(Option<String>),
    /// The states are shared no longer.
    Unshared,
    /// Sharing, announcing or unsharing failed, with the reason.
    ShareFailed(String),
    /// Fetching ended. Whether something of the state lies ready for the kernel, which checks it.
    Fetched(bool),
    /// Nothing was fetched, with the reason.
    FetchFailed(String),
}
