//! Variables in forks. A fork begins with the saved variables of the project's notes and the executions that made them.
//! An adoption brings what its runs made of them back, as forks of the notes' variables: the user's own stay as they
//! are, and nothing is compared or taken over before the user says so.

use crate::adoption::AdoptedVariables;
use crate::fork_error::ForkError;
use crate::fork_record::{ForkRecord, ForkedVariables};
use crate::open_forks::OpenForks;
use engine::{Command, KernelPhase, KernelStateMove, Note, NotePhase, Session};
use host::kernel_states::{StateBudget, StateFolder, folder_bytes, notes_with_states, read_heads};
use host::{Handle, states_folder};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use store::{BlockId, DocId, Execution};

/// Maximum time to read a note.
const NOTE_READ_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum time for a kernel to start and to add a fork of its variables.
const MOVE_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of notes whose variables a fork begins with.
const MAX_FORKED_NOTES: usize = 200;

/// A note that stays open until this is dropped.
struct ForkNoteHold<'a> {
    handle: &'a Handle,
    note: DocId,
}

impl Drop for ForkNoteHold<'_> {
    fn drop(&mut self) {
        // If the session has ended, the note is no longer held.
        let _ = self.handle.run_command(Command::ReleaseNote { note: self.note });
    }
}

impl<'a> ForkNoteHold<'a> {
    /// Opens a note and waits until its text and its executions can be read.
    fn open(handle: &'a Handle, note: DocId) -> Result<ForkNoteHold<'a>, ForkError> {
        handle.run_command(Command::HoldNote { note })?;
        let held = ForkNoteHold { handle, note };
        let look = move |session: &Session| match session.note(note) {
            Some(open) => match &open.phase {
                NotePhase::Failed(why) => Some(Err(why.clone())),
                NotePhase::Ready | NotePhase::Reading => {
                    (open.is_settled() && !open.is_document_loading()).then_some(Ok(()))
                }
            },
            None => Some(Err("it was closed meanwhile".to_owned())),
        };
        match handle.wait(Some(NOTE_READ_TIMEOUT), look)? {
            Some(Ok(())) => Ok(held),
            Some(Err(why)) => Err(ForkError::Unreadable(format!("the note cannot be read: {why}"))),
            None => Err(ForkError::Unreadable("the note could not be read in two minutes".to_owned())),
        }
    }

    fn read<R: Send + 'static>(&self, read: impl FnOnce(&Note) -> R + Send + 'static) -> Result<R, ForkError> {
        let note = self.note;
        let found = self.handle.read(move |session| session.note(note).map(read))?;
        found.ok_or_else(|| ForkError::Unreadable("the note was closed meanwhile".to_owned()))
    }
}

impl OpenForks {
    /// Gives the notes of a new fork the saved variables of the project's notes. What is too large or can't be read is
    /// recorded as left out.
    pub(crate) fn copy_variables(
        &self,
        fork: &mut ForkRecord,
        copied: DocId,
        limit_bytes: u64,
    ) -> Result<(), ForkError> {
        let budget = StateBudget::of(self.handle.workspace_folder()).note_bytes;
        let mut left = limit_bytes.saturating_sub(fork.bytes);
        for (number, (path, note, copy)) in self.paired_notes(fork.volume, copied)?.into_iter().enumerate() {
            if number >= MAX_FORKED_NOTES {
                fork.left_out.variables.push(path);
                continue;
            }
            match self.copy_note_variables((note, copy), budget.min(left)) {
                Ok(Some((state, bytes))) => {
                    left = left.saturating_sub(bytes);
                    fork.states.push(ForkedVariables { note: copy, state: Some(state) });
                }
                Ok(None) => {}
                Err(error @ ForkError::Gone(_)) => return Err(error),
                Err(why) => fork.left_out.variables.push(format!("{path}: {why}")),
            }
        }
        if fork.states.is_empty() && fork.left_out.variables.is_empty() {
            return Ok(());
        }
        self.store().save(fork)
    }

    /// Returns the notes of a volume that have saved states: path, note, and the note with this path in another volume.
    fn paired_notes(&self, volume: DocId, other: DocId) -> Result<Vec<(String, DocId, DocId)>, ForkError> {
        let notes = notes_with_states(self.handle.workspace_folder());
        let mut pairs = self.handle.read(move |session| {
            let pair = |note: DocId| {
                let (_, path) = session.locate_file(note).filter(|(of, _)| *of == volume)?;
                Some((path.to_owned(), note, session.volume(other)?.files.get(path)?.id))
            };
            notes.into_iter().filter_map(pair).collect::<Vec<_>>()
        })?;
        pairs.sort();
        Ok(pairs)
    }

    /// Copies a note's variables. Returns the current state and the size of its files; `None` if there is none.
    fn copy_note_variables(
        &self,
        (note, copy): (DocId, DocId),
        most_bytes: u64,
    ) -> Result<Option<(String, u64)>, ForkError> {
        let workspace = self.handle.workspace_folder();
        let (from, to) = (states_folder(workspace, note), states_folder(workspace, copy));
        let (original, held) = (ForkNoteHold::open(&self.handle, note)?, ForkNoteHold::open(&self.handle, copy)?);
        if !original.read(Note::saves_states)? || !held.read(Note::saves_states)? {
            return Ok(None);
        }
        // By its executions a kernel knows which state the cells above a cell have left.
        let ran = original.read(executed_cells)?;
        let executions = held.read(move |note| own_executions(note, ran))?;
        let Some(state) = StateFolder::copy_line(&from, &to, most_bytes)? else { return Ok(None) };
        if let Err(error) = self.handle.run_command(Command::TakeExecutions { note: copy, executions }) {
            StateFolder::remove_folder(&to)?;
            return Err(error.into());
        }
        Ok(Some((state, folder_bytes(&to))))
    }

    /// Adds the fork's variables to the notes of the project that have adopted its changes, as forks of theirs. `paths`
    /// are these notes; `None` for all.
    pub(crate) fn adopt_variables(
        &self,
        fork: &ForkRecord,
        paths: Option<&BTreeSet<String>>,
    ) -> Result<Vec<AdoptedVariables>, ForkError> {
        let Some(copied) = self.volume(fork)? else { return Ok(Vec::new()) };
        let mut adopted = Vec::new();
        for (path, copy, note) in self.paired_notes(copied, fork.volume)? {
            if paths.is_some_and(|paths| !paths.contains(&path)) {
                continue;
            }
            let began = fork.states.iter().find(|known| known.note == copy).and_then(|known| known.state.as_deref());
            match self.adopt_note_variables(&fork.name, (copy, note), began) {
                Ok(None) => {}
                Ok(branch) => adopted.push(AdoptedVariables { path, branch, problem: None }),
                Err(error @ ForkError::Gone(_)) => return Err(error),
                Err(why) => adopted.push(AdoptedVariables { path, branch: None, problem: Some(why.to_string()) }),
            }
        }
        Ok(adopted)
    }

    /// Returns the name of the note's new fork of variables; `None` if no cell has run in the copy, or its variables
    /// are adopted already.
    fn adopt_note_variables(
        &self,
        fork: &str,
        (copy, note): (DocId, DocId),
        began: Option<&str>,
    ) -> Result<Option<String>, ForkError> {
        let workspace = self.handle.workspace_folder();
        let (from, to) = (states_folder(workspace, copy), states_folder(workspace, note));
        let (theirs, ours) = (read_heads(&from)?, read_heads(&to)?);
        let Some(current) = theirs.current().filter(|state| Some(*state) != began) else { return Ok(None) };
        let known = StateFolder::open_for_reading(&to, "")?;
        let has = |head: &String| {
            head == current || known.lineage(Some(head.as_str())).iter().any(|record| record.state == current)
        };
        if ours.branches.values().flatten().any(has) {
            return Ok(None);
        }
        let held = ForkNoteHold::open(&self.handle, note)?;
        if !held.read(Note::saves_states)? {
            return Err(ForkError::Refused("the note's own variables aren't saved".to_owned()));
        }
        let Some(state) = StateFolder::bring_line(&from, &to)? else { return Ok(None) };
        let name = free_branch_name(&ours.branches, fork);
        self.move_state(note, KernelStateMove::Take { name: name.clone(), state })?;
        Ok(Some(name))
    }

    /// Lets the note's kernel, which is started if none is running, make a move.
    fn move_state(&self, note: DocId, to: KernelStateMove) -> Result<(), ForkError> {
        let before = self.handle.read(move |session| session.note(note).map_or(0, |open| open.state_move().count))?;
        self.handle.run_command(Command::MoveState { note, to })?;
        let moved = move |session: &Session| {
            let open = session.note(note)?;
            let report = open.state_move();
            if report.count > before {
                return Some(report.problem.clone());
            }
            // The kernel couldn't be started.
            let trouble = || Some(open.kernel_trouble().unwrap_or("the kernel ended").to_owned());
            (open.kernel == KernelPhase::Off).then(trouble)
        };
        match self.handle.wait(Some(MOVE_TIMEOUT), moved)? {
            Some(None) => Ok(()),
            Some(Some(why)) => Err(ForkError::Refused(why)),
            None => {
                Err(ForkError::Refused("the kernel doesn't answer; restart it and adopt the fork again".to_owned()))
            }
        }
    }

    /// Returns the notes of a fork that have saved states.
    pub(crate) fn notes_with_variables(&self, copied: DocId) -> Result<Vec<DocId>, ForkError> {
        let notes = notes_with_states(self.handle.workspace_folder());
        let is_in_fork =
            move |session: &Session, note: DocId| session.locate_file(note).is_some_and(|(volume, _)| volume == copied);
        Ok(self.handle.read(move |session| notes.into_iter().filter(|note| is_in_fork(session, *note)).collect())?)
    }
}

/// Returns the code of each cell, and its latest execution if that has ended.
fn executed_cells(note: &Note) -> Vec<(String, Option<Execution>)> {
    let cell = |cell: BlockId| {
        let execution = note.latest_execution(cell).filter(|execution| execution.status.is_final());
        (note.cell_code(cell).unwrap_or_default().to_owned(), execution.cloned())
    };
    note.cells().map(cell).collect()
}

/// Returns the executions of another note's cells as those of this note's cells that have the same code and place.
fn own_executions(note: &Note, ran: Vec<(String, Option<Execution>)>) -> Vec<Execution> {
    let same = note.cells().zip(ran).filter(|(cell, (code, _))| note.cell_code(*cell) == Some(code.as_str()));
    same.filter_map(|(cell, (_, execution))| Some(Execution { cell, ..execution? })).collect()
}

/// Returns the name of a new fork of variables: that of the fork of the project, with a number if it's taken.
fn free_branch_name(branches: &BTreeMap<String, Option<String>>, fork: &str) -> String {
    let numbered = (2_u32..).map(|number| format!("{fork} {number}"));
    let mut names = std::iter::once(fork.to_owned()).chain(numbered);
    names.find(|name| !branches.contains_key(name)).unwrap_or_else(|| fork.to_owned())
}
