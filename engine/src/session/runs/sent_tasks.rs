//! Tasks of plans that other devices carry out. The program sends them and reports how they ended; a task whose worker
//! was lost is taken back, and continues here with what is known of it.

use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::runs::RunsState;
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use agent::sent_task::SentPlanTask;
use std::collections::BTreeMap;
use store::{DocId, RunEnding};

impl RunsState {
    /// Returns the tasks of plans that other devices are to carry out, by the id of their runs.
    pub fn sent_tasks(&self) -> &BTreeMap<DocId, SentPlanTask> {
        &self.sent_tasks
    }

    /// Returns whether a run of this device waits for the answer of this one.
    pub fn is_awaited(&self, run: DocId) -> bool {
        self.children.contains_key(&run)
    }

    /// Gives a plan the result of a task that another device carried out.
    pub(in crate::session) fn finish_sent_task(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        run: DocId,
        (ending, said): (RunEnding, &str),
    ) -> Result<(), CommandError> {
        if !self.sent_tasks.contains_key(&run) {
            return Err(CommandError("no plan waits for this run".to_owned()));
        }
        self.on_child_ended(turn, files, sync, workspace, run, (Some(ending), said));
        Ok(())
    }

    /// Carries out a task here that was sent over a hub, which lends it to nobody from now on. A run that another
    /// device began is continued like after a crash.
    pub(in crate::session) fn take_back_task(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        (run, hub): (DocId, String),
    ) -> Result<(), CommandError> {
        let Some(SentPlanTask { request, .. }) = self.sent_tasks.get(&run).cloned() else {
            return Err(CommandError("no plan waits for this run".to_owned()));
        };
        if self.run_summaries.contains_key(&run) {
            let Some(known) = self.runs.get(&run) else {
                self.open_run(turn, run)?;
                return Err(CommandError("the run is still being read; try again in a moment".to_owned()));
            };
            let about = &known.about;
            if (about.volume, about.session, &about.prompt) != (request.volume, request.session, &request.text)
                || Some(&about.agent) != request.agent.as_ref()
            {
                return Err(CommandError("the run's document isn't about what was sent".to_owned()));
            }
            if about.ending.is_some() {
                return Err(CommandError("the run is over".to_owned()));
            }
            let mut policy = self.policy();
            policy.rules.extend(request.allow);
            self.hold_run(turn, files, sync, workspace, run, (hub, Some(Box::new(policy))))?;
        } else {
            self.request_run(turn, &files.volumes, workspace, request)?;
        }
        self.sent_tasks.remove(&run);
        Ok(())
    }
}
