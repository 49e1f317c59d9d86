//! The agents that orchestrate, and the phases in which they work.

use std::collections::BTreeMap;
use store::{ExecutionStep, RunAbout, RunEnding, StepId, StepKind};

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

/// Returns the mark for steps of a phase.
pub fn phase_mark(phase: u8) -> String {
    format!("phase/{phase}")
}

/// Returns the phase that a step is marked with, if any.
fn phase_from_mark(step: &ExecutionStep) -> Option<u8> {
    step.route.as_deref()?.strip_prefix("phase/")?.parse().ok()
}

/// Returns the names of an agent's phases; empty if the agent doesn't work in phases.
pub fn phases_of(agent: &str) -> Vec<&'static str> {
    agent_phases(agent).iter().map(|phase| phase_name(agent, *phase)).collect()
}

/// Returns the phase of each step, from 1 as in [`run_phases`], or 0 for none. Empty if the agent doesn't work in
/// phases. A result belongs to the phase of its call, any other unmarked step to the last marked phase.
pub fn step_phases(agent: &str, steps: &[ExecutionStep]) -> Vec<usize> {
    let own = agent_phases(agent);
    if own.is_empty() {
        return Vec::new();
    }
    let mut calls: BTreeMap<StepId, usize> = BTreeMap::new();
    let mut now = 0;
    let mut all = Vec::with_capacity(steps.len());
    for step in steps {
        let number = phase_from_mark(step).and_then(|phase| own.iter().position(|known| *known == phase));
        let parent = step.parents.first().and_then(|parent| calls.get(parent)).copied();
        let phase = match (&step.kind, number, parent) {
            (_, Some(at), _) => at + 1,
            (StepKind::ToolResult { .. }, None, Some(phase)) => phase,
            (_, None, _) => now,
        };
        if let StepKind::ToolCall { .. } = step.kind {
            calls.insert(step.id, phase);
        }
        if number.is_some() {
            now = phase;
        }
        all.push(phase);
    }
    all
}

/// Returns the phases of a run in order; empty if its agent doesn't work in phases.
pub fn run_phases(about: &RunAbout, steps: &[ExecutionStep]) -> Vec<RunPhase> {
    let own = agent_phases(&about.agent);
    let of = step_phases(&about.agent, steps);
    let at = own.iter().position(|phase| *phase == about.phase).map_or(0, |at| at + 1);
    let mut took: BTreeMap<usize, i64> = BTreeMap::new();
    for (place, phase) in of.iter().enumerate() {
        let end = steps.get(place + 1).map_or(about.ended, |next| Some(next.timestamp));
        let (Some(step), Some(end)) = (steps.get(place), end) else { continue };
        *took.entry(*phase).or_default() += end.saturating_sub(step.timestamp).max(0);
    }
    let phase = |(number, phase): (usize, &u8)| {
        let reached = match (number.cmp(&at), about.ending) {
            (std::cmp::Ordering::Less, _) | (std::cmp::Ordering::Equal, Some(RunEnding::Done)) => PhaseStatus::Finished,
            (std::cmp::Ordering::Greater, _) => PhaseStatus::Upcoming,
            (std::cmp::Ordering::Equal, Some(_)) => PhaseStatus::Stopped,
            (std::cmp::Ordering::Equal, None) => PhaseStatus::Current,
        };
        let ends = matches!(reached, PhaseStatus::Finished | PhaseStatus::Stopped);
        RunPhase {
            number,
            name: phase_name(&about.agent, *phase),
            reached,
            first: of.iter().position(|known| *known == number),
            steps: of.iter().filter(|known| **known == number).count(),
            took: took.get(&number).filter(|_| ends).and_then(|took| u64::try_from(*took).ok()),
        }
    };
    (1..).zip(own).map(phase).collect()
}
