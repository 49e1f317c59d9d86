//! Phases of an orchestrating run for display: the status of each phase, and the steps that belong to it.

use crate::session::runs::orchestrated_run::{agent_phases, phase_name};
use crate::session::state::agent_run::AgentRun;
use std::collections::BTreeMap;
use store::{ExecutionStep, RunEnding, StepId, StepKind};

pub use agent::agent_phases::{PhaseStatus, RunPhase};

/// Returns the mark for steps of a phase.
pub(super) fn phase_mark(phase: u8) -> String {
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

impl AgentRun {
    /// Returns the phase of each step, from 1 as in [`AgentRun::phases`], or 0 for none. Empty if the agent doesn't
    /// work in phases. A result belongs to the phase of its call, any other unmarked step to the last marked phase.
    pub fn step_phases(&self) -> Vec<usize> {
        let own = agent_phases(&self.about.agent);
        if own.is_empty() {
            return Vec::new();
        }
        let mut calls: BTreeMap<StepId, usize> = BTreeMap::new();
        let mut now = 0;
        let mut all = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
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

    /// Returns the run's phases in order; empty if its agent doesn't work in phases.
    pub fn phases(&self) -> Vec<RunPhase> {
        let own = agent_phases(&self.about.agent);
        let of = self.step_phases();
        let at = own.iter().position(|phase| *phase == self.about.phase).map_or(0, |at| at + 1);
        let mut took: BTreeMap<usize, i64> = BTreeMap::new();
        for (place, phase) in of.iter().enumerate() {
            let end = self.steps.get(place + 1).map_or(self.about.ended, |next| Some(next.timestamp));
            let (Some(step), Some(end)) = (self.steps.get(place), end) else { continue };
            *took.entry(*phase).or_default() += end.saturating_sub(step.timestamp).max(0);
        }
        let phase = |(number, phase): (usize, &u8)| {
            let reached = match (number.cmp(&at), self.about.ending) {
                (std::cmp::Ordering::Less, _) | (std::cmp::Ordering::Equal, Some(RunEnding::Done)) => {
                    PhaseStatus::Finished
                }
                (std::cmp::Ordering::Greater, _) => PhaseStatus::Upcoming,
                (std::cmp::Ordering::Equal, Some(_)) => PhaseStatus::Stopped,
                (std::cmp::Ordering::Equal, None) => PhaseStatus::Current,
            };
            let ends = matches!(reached, PhaseStatus::Finished | PhaseStatus::Stopped);
            RunPhase {
                number,
                name: phase_name(&self.about.agent, *phase),
                reached,
                first: of.iter().position(|known| *known == number),
                steps: of.iter().filter(|known| **known == number).count(),
                took: took.get(&number).filter(|_| ends).and_then(|took| u64::try_from(*took).ok()),
            }
        };
        (1..).zip(own).map(phase).collect()
    }
}
