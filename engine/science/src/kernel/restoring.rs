//! Restores the science kernel's variables from saved states, moves between states, and starts over.

use super::{ScienceKernel, lock, start_machine};
use crate::ScienceError;
use crate::machine::{GuestFolder, Machine};
use crate::saver::{LoadedState, MovedState, SaverTask};
use kernel_states::{ChangedPages, KernelMemory, StateError, StateHeads, StateMove, StateRecord, VisitedState};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Maximum number of folders that a memory knows. A cell could list more.
const MAX_KNOWN_FOLDERS: usize = 128;

impl ScienceKernel {
    /// Starts over with a fresh instance.
    fn start_over(&mut self) -> Result<(), ScienceError> {
        self.folders = self.granted.clone();
        self.restart_machine()?;
        self.forget_saved();
        self.prepare()
    }

    /// Replaces the instance by a new one that has run nothing.
    fn restart_machine(&mut self) -> Result<(), ScienceError> {
        let machine = self.new_machine()?;
        self.replace_machine(machine);
        Ok(())
    }

    fn new_machine(&self) -> Result<Machine, ScienceError> {
        start_machine(&self.pack, &self.folders, self.outbox, &self.clock, &self.reply)
    }

    fn replace_machine(&mut self, machine: Machine) {
        *lock(&self.clock.stop) = machine.stop_switch();
        self.machine = machine;
        self.saved.forget_mapping();
    }

    /// Makes the instance, which has run nothing, the base that the next state is compared with.
    pub(super) fn forget_saved(&mut self) {
        self.saved = KernelMemory::of_fresh(self.machine.memory(), self.slots.as_ref());
        self.count = 0;
        if let Some(saver) = &self.saver {
            let _ = saver.send(SaverTask::Adopt { places: self.saved.places().to_vec() }); // it has reported its end
        }
    }

    /// Restarts the instance with the memory of the last saved state.
    pub(super) fn return_to_saved(&mut self) -> Result<(), ScienceError> {
        self.restart_machine()?;
        if self.saved.is_fresh() {
            self.forget_saved(); // no cell has run
            return self.prepare();
        }
        self.write_saved()
    }

    /// Writes the memory of the last saved state into an instance that has run nothing.
    fn write_saved(&mut self) -> Result<(), ScienceError> {
        self.write_memory()?;
        let mut reply = self.call_restored().unwrap_or_default();
        // Memory that an earlier version saved names none.
        let known = reply["folders"].as_array().filter(|known| known.len() <= MAX_KNOWN_FOLDERS);
        let known: Option<Vec<String>> =
            known.map(|known| known.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect());
        if let Some(known) = known {
            if reply["gone"].is_null() {
                // Grants were revoked or replaced since the state was saved.
                self.folders = folders_of_memory(&known, &self.granted, &self.revoked);
                self.restart_machine()?;
                self.write_memory()?;
                reply = self.call_restored().unwrap_or_default();
            }
            let unknown = self.folder_names().into_iter().skip(known.len()).collect::<Vec<_>>().join(", ");
            if !unknown.is_empty() {
                self.add_notice(format!(
                    "These variables were saved before {unknown} was granted, so cells don't reach it. Restart the \
                     kernel to reach it with no variables."
                ));
            }
        }
        self.report_closed_files(&reply);
        Ok(())
    }

    /// Adds a sentence to the message that the next cell shows.
    fn add_notice(&mut self, text: String) {
        self.notice = Some(match self.notice.take() {
            Some(before) if before.contains(&text) => before,
            Some(before) => format!("{before} {text}"),
            None => text,
        });
    }

    fn write_memory(&mut self) -> Result<(), ScienceError> {
        let fresh_bytes = self.machine.memory().len();
        let memory = self.machine.memory_mut(self.saved.memory_bytes())?;
        #[allow(unsafe_code, reason = "saved memory is mapped into the instance's")]
        // SAFETY: wasmtime maps an instance's memory for it alone. Saved memory is replaced only after the instance.
        unsafe {
            self.saved.write_over(memory, fresh_bytes);
        }
        Ok(())
    }

    /// Takes the pages that have changed since the last saved state.
    pub(super) fn take_changes(&mut self) -> ChangedPages {
        let memory = self.machine.memory_mut(0).unwrap_or_default();
        #[allow(unsafe_code, reason = "saved memory is mapped into the instance's")]
        // SAFETY: as above.
        unsafe {
            self.saved.take_changes(memory)
        }
    }

    /// Has the guest reopen its files. Returns its reply.
    fn call_restored(&mut self) -> Option<Value> {
        let names = json!(self.folder_names());
        // Memory that an earlier version saved takes no names.
        self.call("restored", &[&names]).or_else(|| self.call("restored", &[]))
    }

    /// Loads a saved state. A thinned state is recreated from the nearest earlier state that is kept.
    fn load_state(&mut self, state: &str) -> Result<(), ScienceError> {
        // If no instance can be started (a granted folder is gone), or the state can't be read, the current variables
        // stay. The `states` thread saves the next cell's changes to what it has read last, so that comes second.
        let machine = self.new_machine()?;
        let loaded = self.ask_saver(|reply| SaverTask::Load { state: state.to_owned(), reply })??;
        self.replace_machine(machine);
        self.begin_with_loaded(state, loaded)
    }

    /// Loads a state that is still being read into an instance that has run nothing.
    pub(super) fn begin_with_coming(
        &mut self,
        state: &str,
        loaded: &Receiver<Result<LoadedState, StateError>>,
    ) -> Result<(), ScienceError> {
        let loaded = loaded.recv().map_err(|_| ScienceError::NoStates)??;
        self.begin_with_loaded(state, loaded)
    }

    /// Writes the memory of a loaded state into an instance that has run nothing, and runs the plan's cells again.
    fn begin_with_loaded(&mut self, state: &str, loaded: LoadedState) -> Result<(), ScienceError> {
        let LoadedState { plan, base } = loaded;
        match base {
            Some(mut base) => {
                base.complete(self.machine.memory()).map_err(|_| ScienceError::State(StateError::OtherPack))?;
                self.saved = base;
                self.write_saved()?;
            }
            None => {
                self.forget_saved();
                self.prepare()?;
            }
        }
        let (Some(first), Some(last)) = (plan.cells.first(), plan.cells.last()) else { return Ok(()) };
        self.add_notice(match plan.cells.len() {
            1 => format!("The saved state after {} was thinned, so that cell ran again first.", last.cell),
            count => format!(
                "Saved states were thinned, so {count} earlier runs, from {} to {}, ran again first.",
                first.cell, last.cell
            ),
        });
        self.clock.is_muted.store(true, Ordering::Release);
        let ran = plan.cells.iter().all(|record| self.run_again(record));
        self.clock.is_muted.store(false, Ordering::Release);
        if !ran {
            return Err(ScienceError::State(StateError::LostLineage));
        }
        let changes = self.take_changes();
        if let Some(saver) = &self.saver {
            let _ = saver.send(SaverTask::KeepAgain { changes, state: state.to_owned() }); // it has reported its end
        }
        Ok(())
    }

    /// Runs the cell of a thinned state again. Returns whether Python survived it.
    fn run_again(&mut self, record: &StateRecord) -> bool {
        let request = json!({
            "code": record.code, "label": record.cell, "forget": record.forgotten, "silent": true, "file": record.file,
        });
        self.clock.begin();
        let reply = self.call("execute", &[&request]);
        self.clock.end();
        reply.is_some()
    }

    /// Sends a task to the `states` thread and waits for its answer.
    fn ask_saver<T>(&self, task: impl FnOnce(Sender<T>) -> SaverTask) -> Result<T, ScienceError> {
        let Some(saver) = &self.saver else { return Err(ScienceError::NoStates) };
        let (reply, answer) = channel();
        saver.send(task(reply)).map_err(|_| ScienceError::NoStates)?;
        answer.recv().map_err(|_| ScienceError::NoStates)
    }

    fn report_closed_files(&mut self, reply: &Value) {
        let gone: Vec<&str> = reply["gone"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if !gone.is_empty() {
            self.add_notice(format!("Files that were open are closed now: {}.", gone.join(", ")));
        }
    }

    pub(super) fn lineage(&self) -> Vec<StateRecord> {
        self.ask_saver(|reply| SaverTask::Lineage { reply }).unwrap_or_default()
    }

    /// Makes the state current in which only these executions have run, if the current branch has one. `label` is the
    /// cell's that runs next.
    pub(super) fn run_after(&mut self, after: &[String], label: &str) -> Result<(), ScienceError> {
        let line = self.lineage();
        let have: Vec<&str> = line.iter().map(|record| record.execution.as_str()).collect();
        let mut wanted: Vec<&str> = after.iter().map(String::as_str).filter(|ran| have.contains(ran)).collect();
        if wanted.len() < after.len() {
            // Some ran on another branch, on another device, or before states were kept. What this branch has of the
            // cells above counts instead.
            let is_above = |record: &&StateRecord| {
                let places = cell_place(&record.cell).zip(cell_place(label));
                after.contains(&record.execution) || places.is_some_and(|(place, next)| place < next)
            };
            wanted = line.iter().filter(is_above).map(|record| record.execution.as_str()).collect();
        }
        if have == wanted {
            return Ok(());
        }
        let common = have.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
        if common < wanted.len() {
            return Ok(()); // cells ran in another order than they stand: there is no such state
        }
        let to = match common {
            // The parent of the first known state is lost, and a fresh kernel can't recreate it.
            0 if line.first().is_some_and(|first| first.parent.is_some()) => return Ok(()),
            0 => StateMove::Fresh,
            count => StateMove::To(line[count - 1].state.clone()),
        };
        // The move isn't lasting yet: if the kernel is killed while the cell runs, the last complete run's variables
        // come back.
        let moved = self.move_state(to, false)?;
        self.outbox.send("state_reply", moved.to_json(true));
        Ok(())
    }

    fn move_state(&mut self, to: StateMove, is_lasting: bool) -> Result<MovedState, ScienceError> {
        let keeps_variables = to.keeps_variables();
        let moved = self.ask_saver(|reply| SaverTask::Move { to, is_lasting, reply })??;
        if keeps_variables {
            return Ok(moved);
        }
        let loaded = match &moved.state {
            Some(state) => self.load_state(state),
            None => self.start_over(),
        };
        if let Err(why) = loaded {
            self.set_heads(moved.before);
            return Err(why);
        }
        self.count = self.lineage().last().map_or(0, |record| record.count);
        Ok(moved)
    }

    /// Continues on another branch of the states, for a cell that mustn't change the user's variables. After an error
    /// the own branch is current.
    pub(super) fn visit_branch(&mut self, name: &str) -> Result<(), ScienceError> {
        let visited = self.ask_saver(|reply| SaverTask::Visit { branch: Some(name.to_owned()), reply })??;
        if let Err(why) = self.load_visited(&visited) {
            self.return_to_own_branch();
            return Err(why);
        }
        if visited.is_new {
            self.add_notice(format!(
                "The agent's cells run in the fork {} of the variables. The note's own variables stay as they are.",
                visited.branch
            ));
        }
        Ok(())
    }

    /// Returns to the note's own branch, with its variables.
    ///
    /// If they can't be read now, they aren't given up: they are still on disk.
    pub(super) fn end_visit(&mut self) -> Result<(), ScienceError> {
        let own = self.ask_saver(|reply| SaverTask::Visit { branch: None, reply })??;
        self.load_visited(&own)
    }

    fn load_visited(&mut self, visited: &VisitedState) -> Result<(), ScienceError> {
        if !visited.needs_load {
            return Ok(());
        }
        match &visited.state {
            Some(state) => self.load_state(state)?,
            None => self.start_over()?,
        }
        self.count = self.lineage().last().map_or(0, |record| record.count);
        Ok(())
    }

    /// Reverts a move to a state that can't be read.
    fn set_heads(&self, heads: StateHeads) {
        if let Some(saver) = &self.saver {
            let _ = saver.send(SaverTask::SetHeads { heads }); // it has reported its end
        }
    }

    /// Starts over because the saved state can't be read. The next saved state has no parent.
    pub(super) fn give_up_saved(&mut self, why: &ScienceError) -> Result<(), ScienceError> {
        self.notice = Some(format!("The saved variables could not be restored: {why}. Run the cells again."));
        // If no instance can be started, the caller ends the process, and the next one finds what was saved.
        self.start_over()?;
        // Fails only if the thread has ended, which it has reported.
        let _ = self.ask_saver(|reply| SaverTask::Move { to: StateMove::Fresh, is_lasting: true, reply });
        Ok(())
    }

    pub(super) fn change_state(&mut self, header: &Value, content: &Value) {
        let to = StateMove::from_json(content);
        let is_received = to == Some(StateMove::Receive);
        let moved = to.ok_or(ScienceError::State(StateError::NoSuchState)).and_then(|to| self.move_state(to, true));
        if is_received {
            self.add_notice(match &moved {
                Ok(_) => "The variables come from another device.".to_owned(),
                Err(why) => {
                    format!("The variables of the other device could not be restored: {why}. Run the cells again.")
                }
            });
        }
        let said = match moved {
            Ok(moved) => moved.to_json(false),
            Err(why) => json!({"status": "error", "why": why.to_string()}),
        };
        self.outbox.send_reply(header, "state_reply", said);
    }
}

/// Returns the folders for an instance whose memory knows folders with these paths, in this order: those that are still
/// granted, `revoked` for the others, and then those that the memory doesn't know.
fn folders_of_memory(known: &[String], granted: &[GuestFolder], revoked: &Path) -> Vec<GuestFolder> {
    let mut rest = granted.to_vec();
    let mut folders: Vec<GuestFolder> = known
        .iter()
        .map(|guest| match rest.iter().position(|folder| folder.guest == *guest) {
            Some(at) => rest.remove(at),
            None => GuestFolder { host: revoked.to_owned(), guest: guest.clone(), write: false },
        })
        .collect();
    folders.append(&mut rest);
    folders
}

/// Returns the place of a cell in its note, from its label.
fn cell_place(label: &str) -> Option<usize> {
    label.strip_prefix("cell ")?.parse().ok()
}
