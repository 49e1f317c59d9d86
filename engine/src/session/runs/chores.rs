//! Work of tools on notes that need not be open: they are held, changed or run as the user would, and let go.

use super::Record;
use super::deeds::{done, failed};
use crate::effect::Effect;
use crate::note::{KernelPhase, Phase};
use crate::session::{Reject, Session, Turn};
use crate::undo::Change as Undoable;
use agent::job::Outcome;
use store::{Change, ChangeKind, DocId, ExecutionId, Hunk, Origin, Status};
use text::printed;
use text::splice::{self, Splice};

/// Bytes before a change by which its place is found again.
const BEFORE: usize = 40;

/// Work on a note that need not be open.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::session) struct Chore {
    pub(super) run: DocId,
    pub(super) call: String,
    pub(super) note: DocId,
    pub(super) what: What,
    pub(super) begun: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    /// Its cells are read, and the call is judged by them; `again`: why it is judged once more.
    Look { again: Option<String> },
    /// The note becomes this text.
    Write(String),
    /// This comes to its end.
    Append(String),
    /// One passage becomes another.
    Edit { old: String, new: String },
    /// A cell runs; once it has begun, which execution is waited for.
    Cell { number: usize, execution: Option<ExecutionId> },
    /// A command of the window on its cells.
    Command(String),
    /// The file goes into the trash.
    Delete,
}

impl Session {
    pub(super) fn begin_chore(&mut self, turn: &mut Turn<'_>, chore: Chore) -> Option<Outcome> {
        if let Err(Reject(why)) = self.hold_note(turn, chore.note, true) {
            return Some(failed(why));
        }
        self.agents.chores.push(chore);
        None
    }

    /// Gives up the work of a run on notes; those that were only being read for it are let go.
    pub(super) fn drop_chores(&mut self, turn: &mut Turn<'_>, run: DocId) {
        let all = std::mem::take(&mut self.agents.chores);
        let (own, others): (Vec<Chore>, Vec<Chore>) = all.into_iter().partition(|chore| chore.run == run);
        self.agents.chores = others;
        for chore in own.into_iter().filter(|chore| matches!(chore.what, What::Look { .. })) {
            let _ = self.hold_note(turn, chore.note, false); // it was held for this
        }
    }

    /// Does what can be done by now of the work on notes.
    pub(in crate::session) fn chore_step(&mut self, turn: &mut Turn<'_>) {
        if self.agents.chores.is_empty() {
            return;
        }
        for mut chore in std::mem::take(&mut self.agents.chores) {
            if self.judged_anew(turn, &chore) {
                let _ = self.hold_note(turn, chore.note, false); // it was held for this
                continue;
            }
            match self.do_chore(turn, &mut chore) {
                None => self.agents.chores.push(chore),
                Some(outcome) => {
                    if chore.what != What::Delete {
                        let _ = self.hold_note(turn, chore.note, false); // it was held for this
                    }
                    self.tool_done(turn, chore.run, &chore.call, outcome);
                }
            }
        }
    }

    /// Whether what a call would run is known by now, or is not what was allowed: then it is judged, and this ends.
    fn judged_anew(&mut self, turn: &mut Turn<'_>, chore: &Chore) -> bool {
        let Chore { run, call, note, what, begun } = chore;
        if *begun || !self.is_looked_into(*note) {
            return false;
        }
        match what {
            What::Look { again } => {
                self.judge_again(turn, *run, call, &[], again.clone());
                true
            }
            What::Cell { execution: None, .. } | What::Command(_) => match self.changed_since(*run, call) {
                Some(why) => {
                    self.judge_again(turn, *run, call, &[], Some(why));
                    true
                }
                None => {
                    self.bind_cells(*run, call, *note);
                    false
                }
            },
            What::Cell { .. } | What::Write(_) | What::Append(_) | What::Edit { .. } | What::Delete => false,
        }
    }

    fn do_chore(&mut self, turn: &mut Turn<'_>, chore: &mut Chore) -> Option<Outcome> {
        let Chore { run, call, note: id, what, begun } = chore;
        if let What::Delete = what {
            if !*begun {
                if self.nothing_moves().is_err() {
                    return None; // after what is being moved
                }
                if let Err(Reject(why)) = self.delete_files(turn, &[*id]) {
                    return Some(failed(why));
                }
                *begun = true;
                return None;
            }
            if self.trash.contains_key(id) {
                let path = self.trash.get(id).map(|trashed| trashed.row.path.clone()).unwrap_or_default();
                self.keep_change(turn, *run, call, *id, ChangeKind::Deleted);
                return Some(done(format!("Put {path} into the trash.")));
            }
            return self.nothing_moves().is_ok().then(|| failed("the file could not be moved into the trash"));
        }
        let note = self.notes.get(id)?;
        match &note.phase {
            Phase::Failed(why) => return Some(failed(format!("the note cannot be read: {why}"))),
            Phase::Ready if note.is_settled() => {}
            Phase::Reading | Phase::Ready => return None,
        }
        if let Some(why) = note.read_only() {
            return Some(failed(format!("the note can only be read: {why}")));
        }
        let text = match what {
            What::Cell { .. } | What::Command(_) | What::Look { .. } => String::new(),
            What::Write(_) | What::Append(_) | What::Edit { .. } | What::Delete => note.text(),
        };
        match what.clone() {
            What::Write(new) => Some(self.rewrite(turn, *run, call, *id, &text, &new)),
            What::Append(more) => {
                let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                Some(self.rewrite(turn, *run, call, *id, &text, &format!("{text}{gap}{more}")))
            }
            What::Edit { old, new } => Some(match text.matches(&old).count() {
                0 => failed("old_content does not stand in the note; read it again and copy the passage exactly"),
                1 => {
                    let changed = text.replacen(&old, &new, 1);
                    self.rewrite(turn, *run, call, *id, &text, &changed)
                }
                count => failed(format!("old_content stands {count} times in the note; take more of its surroundings")),
            }),
            What::Cell { number, execution: None } => {
                let cell = note.cells().nth(number.saturating_sub(1));
                let Some(cell) = cell else {
                    let count = note.cells().count();
                    return Some(failed(format!("there is no cell {number}; the note has {count}")));
                };
                if let Err(Reject(why)) = self.run(turn, *id, cell) {
                    self.unbind_cells(*id);
                    return Some(failed(why));
                }
                self.unbind_cells(*id);
                let execution = self.notes.get(id).and_then(|note| note.execution(cell)).map(|execution| execution.id);
                *what = What::Cell { number, execution };
                None
            }
            What::Cell { number, execution: Some(execution) } => {
                let cell = note.cells().nth(number.saturating_sub(1))?;
                let Some(known) = note.execution(cell).filter(|known| known.id == execution) else {
                    return Some(failed("the cell was changed or run again meanwhile"));
                };
                if !known.status.is_final() {
                    return None;
                }
                if known.status == Status::Interrupted && known.outputs.is_empty() {
                    return Some(failed("the cell was stopped before it ran, or was changed after it was allowed"));
                }
                let words = printed::outputs(&known.outputs);
                let words = if words.is_empty() { "The cell printed nothing.".to_owned() } else { words };
                Some(Outcome { success: known.status == Status::Ok, ..done(words) })
            }
            What::Command(name) if *begun => {
                if matches!(note.kernel, KernelPhase::Busy(_)) || !note.queue.is_empty() {
                    return None;
                }
                let ran: Vec<Status> =
                    note.cells().filter_map(|cell| note.execution(cell)).map(|execution| execution.status).collect();
                let good = ran.iter().filter(|status| **status == Status::Ok).count();
                let title = crate::commands::command(&name).map_or(name.as_str(), |command| command.title);
                let words = format!("{title}: {good} of {} cells ran well.", ran.len());
                Some(Outcome { success: good == ran.len(), ..done(words) })
            }
            What::Command(name) => {
                let origin = self.agents.runs.get(run).map(|run| run.about.origin);
                let asked = match name.as_str() {
                    "note.run_all" => self.run_all(turn, *id),
                    "note.run_stale" => self.run_stale(turn, *id),
                    "note.run_clean" => self.run_clean(turn, *id),
                    _ => self.restart_kernel(turn, *id),
                };
                self.unbind_cells(*id);
                if asked.is_ok() && matches!(origin, Some(Origin::Schedule { .. })) {
                    *begun = true; // nobody looks at the note: what comes of it is waited for
                    return None;
                }
                let title = crate::commands::command(&name).map_or(name.as_str(), |command| command.title);
                Some(asked.map_or_else(|Reject(why)| failed(why), |()| done(format!("{title}: begun."))))
            }
            What::Delete | What::Look { .. } => None,
        }
    }

    /// A note becomes another text, in the smallest steps; the run remembers them.
    fn rewrite(&mut self, turn: &mut Turn<'_>, run: DocId, call: &str, id: DocId, old: &str, new: &str) -> Outcome {
        let splices = splice::difference(old, new);
        if splices.is_empty() {
            return done("Nothing had to be changed: the text is there already.");
        }
        let path = self.place(id).map(|(_, path)| path.to_owned()).unwrap_or_default();
        // What the user was writing is a change of its own; who wrote what is read off the changes.
        self.end_burst(turn, id);
        self.adopt(turn, id);
        let hunks = hunks(old, new, &splices);
        self.splice_note(turn, id, &splices, true, Vec::new());
        if let Some(note) = self.notes.get_mut(&id) {
            let back = hunks.iter().zip(&splices).rev();
            let undoable = back.map(|(hunk, splice)| Undoable {
                at: splice.at,
                removed: hunk.removed.clone(),
                inserted: hunk.inserted.clone(),
            });
            note.undo.record_all(turn.now, undoable.collect());
            note.by_agent = true;
        }
        self.end_burst(turn, id);
        self.keep_change(turn, run, call, id, ChangeKind::Edited { hunks });
        done(format!("Changed {path}.\n{}", text::compare::unified(&path, Some(old), Some(new))))
    }

    /// Remembers what a call changed.
    pub(super) fn keep_change(&mut self, turn: &mut Turn<'_>, run: DocId, call: &str, file: DocId, what: ChangeKind) {
        let place = self.place(file).map(|(volume, path)| (volume, path.to_owned()));
        let trashed = || self.trash.get(&file).map(|trashed| (trashed.row.volume, trashed.row.path.clone()));
        let Some((volume, path)) = place.or_else(trashed) else { return };
        self.push_change(turn, run, call, (volume, Some(file), path), what);
    }

    pub(super) fn push_change(
        &mut self,
        turn: &mut Turn<'_>,
        id: DocId,
        call: &str,
        (volume, file, path): (DocId, Option<DocId>, String),
        what: ChangeKind,
    ) {
        let Some(run) = self.agents.runs.get(&id) else { return };
        let Some(pending) = run.calls.iter().find(|pending| pending.call.id == call) else { return };
        let number = run.changes.last().map_or(0, |change| change.number + 1);
        let (step, at) = (pending.step, turn.now.0);
        let change = Change { number, step, volume, file, path, at, what, undone: Vec::new() };
        self.record(turn, id, Record { changes: vec![change], ..Record::default() });
    }

    /// Stops what a call has begun.
    pub(super) fn stop_deed(&mut self, turn: &mut Turn<'_>, id: DocId, call: &str) {
        if self.agents.children.values().any(|(asker, asked)| *asker == id && asked == call) {
            return; // what was handed on ends with the run
        }
        let Some(at) = self.agents.chores.iter().position(|chore| chore.run == id && chore.call == call) else {
            turn.effects.push(Effect::CancelTool { run: id, call: call.to_owned() });
            return;
        };
        let chore = self.agents.chores.remove(at);
        if let What::Cell { execution: Some(_), .. } = chore.what {
            let _ = self.interrupt(turn, chore.note); // it refuses only where nothing runs
        }
        if chore.what != What::Delete {
            let _ = self.hold_note(turn, chore.note, false); // it was held for this
        }
    }
}

/// Where splices of `old` stand in `new`, which comes of them.
fn hunks(old: &str, new: &str, splices: &[Splice]) -> Vec<Hunk> {
    let mut shift = 0_isize;
    let mut hunks = Vec::new();
    for splice in splices {
        let at = splice.at.saturating_add_signed(shift);
        let removed = old.get(splice.at..splice.at + splice.delete).unwrap_or("").to_owned();
        shift += splice.insert.len() as isize - splice.delete as isize;
        let from = new.floor_char_boundary(at.saturating_sub(BEFORE));
        let before = new.get(from..at).unwrap_or("").to_owned();
        hunks.push(Hunk { at, removed, inserted: splice.insert.clone(), before });
    }
    hunks
}
