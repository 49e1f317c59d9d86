//! Reverts and reapplies what a run changed: a hunk, a change, or the whole run. A revert is an edit like any other, so
//! it can be reverted itself, and nothing is destroyed.

use crate::effect::Effect;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::agent_run::PendingRestore;
use crate::session::state::runs::{RunRecord, RunsState};
use crate::session::state::sync::SyncState;
use agent::tool_job::{ToolJob, ToolOutcome};
use std::collections::BTreeSet;
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
            if run.restores.iter().any(|restore| restore.change == change.number) {
                return Err(CommandError(format!("{} is being restored already; try again in a moment", change.path)));
            }
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
            let words = if again { "none of it was reverted" } else { "there is nothing to take back" };
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
        // What the run both created and deleted is in the trash before and after.
        let passing: Vec<DocId> = gone.iter().filter(|file| back.contains(file)).copied().collect();
        gone.retain(|file| !passing.contains(file));
        back.retain(|file| !passing.contains(file));
        // Edits come before the move of their file to the trash, and after its move back.
        let (mut made, mut to_move) = (0, Vec::new());
        for (change, parts) in todo {
            let restore = PendingRestore { change: change.number, parts, again, is_started: false };
            match (&change.what, change.file) {
                (_, Some(file)) if passing.contains(&file) => {
                    made += 1;
                    self.record_restored(turn, sync, id, restore.applied_to(change, &restore.parts));
                }
                (ChangeKind::Created { .. } | ChangeKind::Deleted, _) => to_move.push((change, restore)),
                (ChangeKind::Bytes { .. }, _) => {
                    made += 1;
                    self.queue_restore(id, restore);
                }
                (ChangeKind::Edited { .. }, Some(file)) if back.contains(&file) => {
                    made += 1;
                    self.queue_restore(id, restore);
                }
                (ChangeKind::Edited { .. }, _) => {
                    made += self.restore_text(turn, files, sync, id, (change, &restore), &mut problems);
                }
            }
        }
        if !to_move.is_empty() {
            match files.swap_files(turn, sync, &gone, &back) {
                Ok(()) => {
                    made += to_move.len();
                    for (change, restore) in to_move {
                        self.record_restored(turn, sync, id, restore.applied_to(change, &restore.parts));
                    }
                }
                Err(CommandError(why)) => {
                    problems.extend(to_move.iter().map(|(change, _)| format!("{}: {why}", change.path)));
                    self.drop_restores_of(id, &back);
                }
            }
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

    /// Reverts or reapplies hunks. Returns how many succeeded.
    fn restore_text(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        id: DocId,
        (change, restore): (RunChange, &PendingRestore),
        problems: &mut Vec<String>,
    ) -> usize {
        let ChangeKind::Edited { hunks } = &change.what else { return 0 };
        let mut made = Vec::new();
        for part in restore.parts.iter().copied() {
            let done = match (hunks.get(part), change.file) {
                (Some(hunk), Some(note)) => files.apply_hunk(turn, sync, note, hunk, restore.again),
                (None, _) | (_, None) => Err(CommandError("the file no longer exists".to_owned())),
            };
            match done {
                Ok(()) => made.push(part),
                Err(CommandError(why)) => problems.push(format!("{}: {why}", change.path)),
            }
        }
        if !made.is_empty() {
            self.record_restored(turn, sync, id, restore.applied_to(change, &made));
        }
        made.len()
    }

    fn record_restored(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState, id: DocId, change: RunChange) {
        self.record_run(turn, sync, id, RunRecord { changes: vec![change], ..RunRecord::default() });
    }

    fn queue_restore(&mut self, id: DocId, restore: PendingRestore) {
        if let Some(run) = self.runs.get_mut(&id) {
            run.restores.push(restore);
        }
    }

    /// Drops the restores of files that stay in the trash.
    fn drop_restores_of(&mut self, id: DocId, trashed: &[DocId]) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let changes = &run.changes;
        run.restores.retain(|restore| {
            let change = changes.iter().find(|change| change.number == restore.change);
            change.and_then(|change| change.file).is_none_or(|file| !trashed.contains(&file))
        });
    }

    /// Starts the restores whose turn it is. Each compares its file with what it expects, so moves, earlier restores of
    /// the same file and edits of its note must be on disk first.
    pub(in crate::session) fn step_restores(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
    ) {
        let waiting = self.runs.iter().filter(|(_, run)| !run.restores.is_empty());
        for id in waiting.map(|(id, _)| *id).collect::<Vec<DocId>>() {
            for (change, restore) in self.startable_restores(id, files) {
                let mut problems = Vec::new();
                match files.restore_job(&change, restore.again) {
                    None => _ = self.restore_text(turn, files, sync, id, (change, &restore), &mut problems),
                    Some(Ok(job)) => {
                        turn.effects.push(Effect::RunTool { run: id, call: restore.call(), job: Box::new(job) });
                        self.queue_restore(id, PendingRestore { is_started: true, ..restore });
                    }
                    Some(Err(CommandError(why))) => problems.push(format!("{}: {why}", change.path)),
                }
                turn.journal.problems.extend(problems);
            }
        }
    }

    /// Takes the restores that can start now out of the queue.
    fn startable_restores(&mut self, id: DocId, files: &FilesState) -> Vec<(RunChange, PendingRestore)> {
        let Some(run) = self.runs.get_mut(&id).filter(|_| files.moves.pending_move().is_none()) else {
            return Vec::new();
        };
        // Started ones come first, since starting one moves it to the end of the queue.
        let mut earlier: BTreeSet<(DocId, String)> = BTreeSet::new();
        let changes = &run.changes;
        let change_of = |restore: &PendingRestore| changes.iter().find(|change| change.number == restore.change);
        for change in run.restores.iter().filter(|restore| restore.is_started).filter_map(change_of) {
            earlier.insert((change.volume, change.path.clone()));
        }
        let mut startable = Vec::new();
        for restore in std::mem::take(&mut run.restores) {
            let Some(change) = change_of(&restore) else { continue };
            let is_first = restore.is_started || earlier.insert((change.volume, change.path.clone()));
            if !restore.is_started && is_first && files.is_file_current(change.volume, &change.path) {
                startable.push((change.clone(), restore));
            } else {
                run.restores.push(restore);
            }
        }
        startable
    }

    /// Handles the end of a restore. If it failed, the change keeps its state.
    pub(super) fn on_restored(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        call: &str,
        outcome: &ToolOutcome,
    ) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let Some(at) = run.restores.iter().position(|restore| restore.is_started && restore.call() == call) else {
            return; // a late result of a call that was cancelled
        };
        let restore = run.restores.remove(at);
        let change = run.changes.iter().find(|change| change.number == restore.change);
        let Some(change) = change.cloned() else { return };
        if !outcome.success {
            turn.journal.problems.push(outcome.text.clone());
            // The others would find it changed, too.
            let same = |number: u64| {
                run.changes
                    .iter()
                    .any(|other| other.number == number && (other.volume, &other.path) == (change.volume, &change.path))
            };
            run.restores.retain(|restore| !same(restore.change));
            return;
        }
        self.record_restored(turn, sync, id, restore.applied_to(change, &restore.parts));
    }

    /// Returns the number of files that are being restored.
    pub(in crate::session) fn pending_restores(&self) -> usize {
        self.runs.values().map(|run| run.restores.len()).sum()
    }
}

impl FilesState {
    /// Returns whether a file on disk has all edits of its note, or can't get them.
    pub(super) fn is_file_current(&self, volume: DocId, path: &str) -> bool {
        let Some(id) = self.volumes.find_file(volume, path) else { return true };
        let Some(note) = self.notes.open.get(&id) else { return true };
        note.file.trouble.is_some() || !(note.is_ahead_of_file() || self.notes.has_note_job(id))
    }

    /// Returns the job that restores a file to its content before a change, or after it with `again`; `None` if only
    /// its text was edited.
    fn restore_job(&self, change: &RunChange, again: bool) -> Option<Result<ToolJob, CommandError>> {
        let ChangeKind::Bytes { before, after } = &change.what else { return None };
        let root = self.volumes.by_id.get(&change.volume).and_then(|volume| volume.root.clone());
        let (expected, to) = if again { (*before, *after) } else { (*after, *before) };
        Some(match root {
            Some(root) => Ok(ToolJob::Restore { root, path: change.path.clone(), expected, to }),
            None => Err(CommandError("the volume has no folder on this device".to_owned())),
        })
    }
}
