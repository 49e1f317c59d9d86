//! Compares traces with the runs of this workspace, without repeating anything.

use crate::session::state::agent_run::AgentRun;
use crate::session::state::runs::RunsState;
use crate::session::state::volumes::VolumesState;
use agent::memory::trace::RunTrace;
use agent::memory::trace_compression::without_redundant_calls;
use agent::memory::trace_extraction::{CompletedCall, completed_calls};
use agent::memory::trace_verification::{TraceVerificationError, verify_trace};
use store::DocId;

/// Why a trace isn't confirmed by a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunVerificationError {
    /// The run isn't in memory.
    #[error("the run is not open")]
    NotOpen,
    /// The run did something else.
    #[error(transparent)]
    Different(#[from] TraceVerificationError),
}

impl RunsState {
    /// Returns a run's calls in the two forms in which a trace can hold them: without redundant ones, and, for traces
    /// from before those were left out, with them.
    pub(super) fn calls_to_compare(&self, run: &AgentRun) -> [Vec<CompletedCall>; 2] {
        let tools = self.tool_facts(&self.definition_of(run));
        let mut all = completed_calls(&run.steps, &run.approvals, &run.changes);
        let compressed = without_redundant_calls(all.clone(), &tools);
        all.retain(|call| call.success == Some(true) || !tools.get(&call.tool).is_some_and(|facts| facts.idempotent));
        [compressed, all]
    }

    /// Compares a trace with an open run.
    ///
    /// # Errors
    /// Returns the first difference, or that the run isn't open.
    pub(in crate::session) fn verify_trace(
        &self,
        volumes: &VolumesState,
        id: DocId,
        trace: &RunTrace,
    ) -> Result<(), RunVerificationError> {
        let run = self.run(id).ok_or(RunVerificationError::NotOpen)?;
        let note = volumes.note_of(run);
        let schemas = self.schemas_of(&self.definition_of(run));
        let [compressed, all] = self.calls_to_compare(run);
        let goal = (run.about.prompt.as_str(), note.as_deref());
        let is_origin = trace.origin_run() == id.to_string();
        verify_trace(trace, goal, &compressed, &schemas, is_origin)
            .or_else(|why| verify_trace(trace, goal, &all, &schemas, is_origin).map_err(|_| why))
            .map_err(RunVerificationError::from)
    }
}
