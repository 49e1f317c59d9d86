//! The agents that orchestrate, and the phases in which they work.

/// The agent that orchestrates larger work in eight phases.
pub const SYSTEM_AGENT: &str = "system";
/// The agent that carries out a plan.
pub const LEAD_AGENT: &str = "lead";
/// The agent that makes a plan and stores it as a note.
pub const PLANNER_AGENT: &str = "planner";
/// Names of the phases, starting with phase 1.
pub const PHASE_NAMES: [&str; 8] = [
    "Analyse and plan",
    "Create the project",
    "Create agents",
    "Execute the plan",
    "Log",
    "Produce the output",
    "Summarise",
    "Update memory",
];

/// Number of the phase in which tasks are done.
pub const WORK_PHASE: u8 = 4;

/// Returns the phases of an orchestrating agent; empty if the agent doesn't orchestrate.
pub fn agent_phases(agent: &str) -> &'static [u8] {
    match agent {
        SYSTEM_AGENT => &[1, 2, 3, 4, 5, 6, 7, 8],
        LEAD_AGENT => &[1, 4, 7],
        PLANNER_AGENT => &[1, 2, 7],
        _ => &[],
    }
}

/// Returns whether an agent orchestrates.
pub fn is_orchestrator(agent: &str) -> bool {
    !agent_phases(agent).is_empty()
}

/// Returns the name of a phase of this agent.
pub fn phase_name(agent: &str, phase: u8) -> &'static str {
    match (agent, phase) {
        (PLANNER_AGENT, 2) => "Keep the plan",
        _ => PHASE_NAMES.get(usize::from(phase).saturating_sub(1)).copied().unwrap_or("Work"),
    }
}

/// Status of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseStatus {
    /// The phase hasn't started, or will be repeated.
    Upcoming,
    /// The phase is running.
    Current,
    /// The phase is completed.
    Finished,
    /// The run ended in this phase before the phase was completed.
    Stopped,
}

/// A phase of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPhase {
    /// Number of the phase in this run, from 1.
    pub number: usize,
    /// Name of the phase.
    pub name: &'static str,
    /// Status of the phase.
    pub reached: PhaseStatus,
    /// Index of the phase's first step in the run's steps; `None` if it has none.
    pub first: Option<usize>,
    /// Number of steps in the phase.
    pub steps: usize,
    /// Duration in milliseconds; `None` unless the phase is finished or stopped.
    pub took: Option<u64>,
}
