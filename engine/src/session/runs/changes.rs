//! Reverts and reapplies what a run changed: a hunk, a change, or the whole run. A revert is an edit like any other, so
//! it can be reverted itself, and nothing is destroyed.

use crate::effect::Effect;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::runs::{RunRecord, RunsState};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use agent::tool_job::{ToolJob, ToolOutcome};
use store::{ChangeKind, DocId, RunChange};

/// Returns the number of parts of a change that can be reverted separately.
pub fn revertible_parts(change: &RunChange) -> usize {
    match &change.what {
        ChangeKind::Edited { hunks } => hunks.len(),
        ChangeKind::Created { .. } | ChangeKind::Deleted | ChangeKind::Bytes { .. } => 1,
    }
}

impl RunsState {
    /// Reverts (or, with `again`, reapplies) what a run changed: everything, one change, or one of its hunks.
    pub(in crate::session) fn revert_changes(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        id: DocId,
        only: Option<(u64, Option<usize>)>,
        again: bool,
    ) -> Result<(), CommandError> {
        let Some(run) = self.runs.get(&id) else {
            return Err(CommandError("the run is not open yet; try again in a moment".to_owned()));
        };
        if run.is_busy() {
            return Err(CommandError("the run is active; stop it first".to_owned()));
        }
        let mut todo: Vec<(RunChange, Vec<usize>)> = Vec::new();
        for change in &run.changes {
            let hunk = match only {
                None => None,
                Some((number, hunk)) if number == change.number => hunk,
                Some(_) => continue,
            };
            let fits = |part: &usize| hunk.is_none_or(|hunk| hunk == *part);
            let mut parts: Vec<usize> = (0..revertible_parts(change))
                .filter(|part| fits(part) && change.undone.contains(part) == again)
                .collect();
            // Revert from the end, so that the positions of earlier parts stay valid.
            if !again {
                parts.reverse();
            }
            if !parts.is_empty() {
                todo.push((change.clone(), parts));
            }
        }
        if todo.is_empty() {
            let words = if again { "nothing of it was taken back" } else { "there is nothing to take back" };
            return Err(CommandError(words.to_owned()));
        }
        // Revert from the last change, reapply from the first.
        if !again {
            todo.reverse();
        }
        let mut problems = Vec::new();
        // Files are deleted and restored together.
        let (mut gone, mut back) = (Vec::new(), Vec::new());
        for (change, _) in &todo {
            match (&change.what, again, change.file) {
                (ChangeKind::Created { .. }, false, Some(file)) | (ChangeKind::Deleted, true, Some(file)) => {
                    gone.push(file);
                }
                (ChangeKind::Created { .. }, true, Some(file)) | (ChangeKind::Deleted, false, Some(file)) => {
                    back.push(file);
                }
                (ChangeKind::Edited { .. } | ChangeKind::Bytes { .. }, _, _) | (_, _, None) => {}
            }
        }
        let moved = match gone.is_empty() && back.is_empty() {
            true => Ok(()),
            false => files.swap_files(turn, sync, &gone, &back),
        };
        let mut made = 0;
        for (mut change, parts) in todo {
            for part in parts.iter().copied() {
                let done = match &change.what {
                    ChangeKind::Created { .. } | ChangeKind::Deleted => moved.clone(),
                    ChangeKind::Edited { hunks } => match (hunks.get(part), change.file) {
                        (Some(hunk), Some(note)) => files.apply_hunk(turn, sync, note, hunk, again),
                        (None, _) | (_, None) => Err(CommandError("the file no longer exists".to_owned())),
                    },
                    ChangeKind::Bytes { .. } => files.volumes.restore_changed_file(turn, id, &change, again),
                };
                match done {
                    Ok(()) => {
                        made += 1;
                        if again {
                            change.undone.retain(|undone| *undone != part);
                        } else {
                            change.undone.push(part);
                        }
                    }
                    Err(CommandError(why)) => problems.push(format!("{}: {why}", change.path)),
                }
            }
            self.record_run(turn, sync, id, RunRecord { changes: vec![change], ..RunRecord::default() });
        }
        if made == 0 {
            return Err(CommandError(problems.join("; ")));
        }
        if only.is_none() && problems.is_empty() {
            self.count_reverted_replay(turn, files, sync, id, again);
        }
        turn.journal.problems.extend(problems);
        Ok(())
    }

    /// Handles the end of a revert. If it failed, the change keeps its earlier state.
    pub(super) fn on_reverted(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        call: &str,
        outcome: &ToolOutcome,
    ) {
        let back = |prefix: &str| call.strip_prefix(prefix).and_then(|number| number.parse::<u64>().ok());
        let (number, again) = match (back("undo-"), back("redo-")) {
            (Some(number), _) => (number, false),
            (None, Some(number)) => (number, true),
            (None, None) => return, // a late result of a call that was cancelled
        };
        if outcome.success {
            return;
        }
        turn.journal.problems.push(outcome.text.clone());
        let run = self.runs.get(&id);
        let known = run.and_then(|run| run.changes.iter().find(|change| change.number == number)).cloned();
        if let Some(mut change) = known {
            change.undone = if again { vec![0] } else { Vec::new() };
            self.record_run(turn, sync, id, RunRecord { changes: vec![change], ..RunRecord::default() });
        }
    }
}

impl VolumesState {
    /// Restores an attachment to its content before or after a change.
    fn restore_changed_file(
        &self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        change: &RunChange,
        again: bool,
    ) -> Result<(), CommandError> {
        let ChangeKind::Bytes { before, after } = &change.what else { return Ok(()) };
        let root = self.by_id.get(&change.volume).and_then(|volume| volume.root.clone());
        let root = root.ok_or_else(|| CommandError("the volume has no folder on this device".to_owned()))?;
        let (expected, to) = if again { (*before, *after) } else { (*after, *before) };
        let job = ToolJob::Restore { root, path: change.path.clone(), expected, to };
        let call = format!("{}{}", if again { "redo-" } else { "undo-" }, change.number);
        turn.effects.push(Effect::RunTool { run: id, call, job: Box::new(job) });
        Ok(())
    }
}
