//! Runs that this device carries out for another one, by the other device's policy. What they do is with the hub before
//! it begins: if this device fails, the one that continues it knows what was under way, and does nothing twice.

use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::agent_run::{AgentRun, CallPhase};
use crate::session::state::runs::{RunRecord, RunsState};
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use agent::policy::ToolPolicy;
use store::{DocId, RunOrigin};

impl RunsState {
    /// Lets this device carry out a run by its owner's policy; a run of another device is taken over and continues.
    /// Without a policy, the run is given up: all work on it stops at once, and nothing is recorded.
    pub(in crate::session) fn hold_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        (hub, policy): (String, Option<Box<ToolPolicy>>),
    ) -> Result<(), CommandError> {
        let Some(policy) = policy else {
            self.run_requests.retain(|request| request.run != id);
            self.held.remove(&id);
            for part in self.run_family(id) {
                self.halt_run(turn, files, sync, part);
            }
            return Ok(());
        };
        self.held.insert(id, (hub, *policy));
        if !self.run_summaries.contains_key(&id) {
            return Ok(()); // it begins with the request that follows
        }
        let Some(run) = self.runs.get_mut(&id) else { return self.open_run(turn, id) };
        if run.about.ending.is_some() || run.is_busy() {
            return Ok(());
        }
        run.device = Some(workspace.device.clone());
        self.restore_run(turn, sync, id);
        self.tick_runs(turn, files, sync, workspace);
        match self.runs.get(&id) {
            Some(run) if !run.is_busy() => self.resume_run(turn, sync, workspace, id, None, None),
            // It waits for a decision; that it's this device's is recorded at once.
            Some(_) => {
                self.record_run(turn, sync, id, RunRecord::default());
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Returns the hub and the owner's policy if this device holds the run or one that it was delegated from, and these
    /// runs.
    pub(super) fn holder_policy(&self, id: DocId) -> Option<(Vec<DocId>, &(String, ToolPolicy))> {
        if self.held.is_empty() {
            return None;
        }
        let family = self.ancestors(id);
        let policy = family.iter().find_map(|run| self.held.get(run))?;
        Some((family, policy))
    }

    /// Returns whether this device continues a run: it's its own, and if another device sent it, it's held now.
    pub(super) fn carries_out(&self, workspace: &WorkspaceState, id: DocId) -> bool {
        let Some(run) = self.runs.get(&id) else { return false };
        let is_sent = self.root_origin(id).unwrap_or(run.about.origin) == RunOrigin::Device;
        workspace.is_own_device(run.device.as_ref()) && (!is_sent || self.holder_policy(id).is_some())
    }

    /// Returns the policy for the calls of a run.
    pub(super) fn policy_of(&self, id: DocId) -> ToolPolicy {
        let own = self.policy();
        match self.holder_policy(id) {
            Some((family, (_, owner))) => owner.on_device(&own, &family),
            None => own,
        }
    }

    /// Returns whether the next call of a run must wait until the hub has all that was recorded of it.
    pub(super) fn waits_for_delivery(&self, sync: &SyncState, id: DocId) -> bool {
        let Some(volume) = self.runs.get(&id).map(|run| run.about.volume) else { return false };
        let held = self.holder_policy(id);
        held.is_some_and(|(_, (hub, _))| sync.is_shared_over(hub, volume) && !sync.is_delivered(hub, id))
    }

    /// Starts the calls of held runs that waited for the hub.
    pub(in crate::session) fn step_held_runs(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
    ) {
        let held: Vec<DocId> = self.held.keys().flat_map(|id| self.run_family(*id)).collect();
        for id in held {
            let waits = |run: &AgentRun| run.calls.iter().any(|pending| pending.phase == CallPhase::Ready);
            if self.runs.get(&id).is_some_and(waits)
                && !self.resume_after.contains_key(&id)
                && !self.waits_for_delivery(sync, id)
            {
                self.start_tools(turn, files, sync, workspace, id);
            }
        }
    }
}
