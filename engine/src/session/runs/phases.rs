//! Phases of an orchestrating run for display.

use crate::session::state::agent_run::AgentRun;
pub(super) use agent::agent_phases::phase_mark;
pub use agent::agent_phases::{PhaseStatus, RunPhase, phases_of};

impl AgentRun {
    /// Returns the phase of each step, from 1 as in [`AgentRun::phases`], or 0 for none. Empty if the agent doesn't
    /// work in phases. A result belongs to the phase of its call, any other unmarked step to the last marked phase.
    pub fn step_phases(&self) -> Vec<usize> {
        agent::agent_phases::step_phases(&self.about.agent, &self.steps)
    }

    /// Returns the run's phases in order; empty if its agent doesn't work in phases.
    pub fn phases(&self) -> Vec<RunPhase> {
        agent::agent_phases::run_phases(&self.about, &self.steps)
    }
}
