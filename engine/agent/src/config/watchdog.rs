//! Time limits of models, tools and runs, from `config.yaml` and from the front matter of agents.

use super::values;
use crate::deadline::Deadline;
use crate::model_call::ModelCallLimits;
use serde::Deserialize;
use store::RunAbout;
use text::time::UnixMillis;

/// Time that a model may be silent before its answer begins, in milliseconds.
const DEFAULT_FIRST_BYTE_MS: u64 = 180_000;
/// The same for a model on this machine, which may read a long request slowly.
const DEFAULT_FIRST_BYTE_LOCAL_MS: u64 = 900_000;
/// Time that a model may be silent in the middle of its answer, in milliseconds.
const DEFAULT_SILENCE_MS: u64 = 300_000;
/// Maximum duration of a model's whole answer, in milliseconds.
const DEFAULT_CALL_MS: u64 = 3_600_000;
/// Maximum duration of a tool call, in milliseconds.
const DEFAULT_TOOL_MS: u64 = 600_000;

/// Time limits in milliseconds; `None` where nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WatchdogConfig {
    /// Time until a model's answer begins.
    #[serde(deserialize_with = "values::time_limit")]
    pub first_byte: Option<u64>,
    /// The same for a model on this machine.
    #[serde(deserialize_with = "values::time_limit")]
    pub first_byte_local: Option<u64>,
    /// Silence in the middle of a model's answer.
    #[serde(deserialize_with = "values::time_limit")]
    pub silence: Option<u64>,
    /// A model's whole answer.
    #[serde(deserialize_with = "values::time_limit")]
    pub call: Option<u64>,
    /// A call of a tool, whatever it asks for itself.
    #[serde(deserialize_with = "values::time_limit")]
    pub tool: Option<u64>,
    /// A run's work without a pause; waiting for the user doesn't count.
    #[serde(deserialize_with = "values::time_limit")]
    pub run: Option<u64>,
}

/// The time limits of a run, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchdogLimits {
    /// Time until a model's answer begins.
    pub first_byte: u64,
    /// The same for a model on this machine.
    pub first_byte_local: u64,
    /// Silence in the middle of a model's answer.
    pub silence: u64,
    /// A model's whole answer.
    pub call: u64,
    /// A call of a tool.
    pub tool: u64,
    /// A run's work without a pause; `None` for no limit.
    pub run: Option<u64>,
    /// The deadline of the agent's runs.
    pub deadline: Option<Deadline>,
}

/// Why a run is stopped, as a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunStop {
    /// It has worked too long without a pause.
    #[error(
        "The watchdog stopped the run after {seconds} s of work, as `watchdog.run` says. Resume it to let it go on."
    )]
    Work {
        /// The limit in seconds.
        seconds: u64,
    },
    /// Its deadline has come.
    #[error("The run ended at its deadline, {at}. Ask again to let it go on.")]
    Deadline {
        /// The deadline.
        at: Deadline,
    },
}

impl WatchdogLimits {
    /// Returns the limits of a model call. `local`: the model is on this machine.
    pub fn model_call(&self, local: bool) -> ModelCallLimits {
        ModelCallLimits {
            first_byte: if local { self.first_byte_local } else { self.first_byte },
            silence: self.silence,
            whole: self.call,
        }
    }

    /// Returns the deadline of a run, in milliseconds since 1970: its own, or its agent's if that is earlier.
    pub fn deadline_of(&self, run: &RunAbout) -> Option<i64> {
        let agent = self.deadline.map(|deadline| deadline.at(run.start_time));
        run.deadline.into_iter().chain(agent).min()
    }

    /// Returns when a run is stopped next, and why. `since`: when it began to work, if it works.
    pub fn first_stop(&self, run: &RunAbout, since: Option<UnixMillis>) -> Option<(UnixMillis, RunStop)> {
        let work = since.zip(self.run).map(|(since, most)| {
            (since.plus_ms(i64::try_from(most).unwrap_or(i64::MAX)), RunStop::Work { seconds: most / 1_000 })
        });
        let deadline = self.deadline_of(run).map(|at| (UnixMillis(at), RunStop::Deadline { at: Deadline::At(at) }));
        work.into_iter().chain(deadline).min_by_key(|(until, _)| until.0)
    }
}

impl WatchdogConfig {
    /// Returns these limits, with others where these say nothing.
    pub fn or(self, other: WatchdogConfig) -> WatchdogConfig {
        WatchdogConfig {
            first_byte: self.first_byte.or(other.first_byte),
            first_byte_local: self.first_byte_local.or(other.first_byte_local),
            silence: self.silence.or(other.silence),
            call: self.call.or(other.call),
            tool: self.tool.or(other.tool),
            run: self.run.or(other.run),
        }
    }

    /// Returns the limits that hold for an agent, whose own ones come first.
    pub fn for_agent(&self, agent: &WatchdogConfig) -> WatchdogLimits {
        let stated = agent.or(*self);
        WatchdogLimits {
            first_byte: stated.first_byte.unwrap_or(DEFAULT_FIRST_BYTE_MS),
            first_byte_local: stated.first_byte_local.unwrap_or(DEFAULT_FIRST_BYTE_LOCAL_MS),
            silence: stated.silence.unwrap_or(DEFAULT_SILENCE_MS),
            call: stated.call.unwrap_or(DEFAULT_CALL_MS),
            tool: stated.tool.unwrap_or(DEFAULT_TOOL_MS),
            run: stated.run,
            deadline: None,
        }
    }
}
