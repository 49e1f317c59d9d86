//! Visits of another branch for one cell: an agent's cells run there, and the user's current state stays what it is.

use crate::errors::StateError;
use crate::folder::StateFolder;
use crate::moves::StateMove;
use crate::records::StateHeads;

/// The current state after a visit has begun or ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisitedState {
    /// ID of the state; `None` is a fresh kernel.
    pub state: Option<String>,
    /// Whether the kernel's memory isn't that state, and has to be loaded.
    pub needs_load: bool,
    /// Name of the branch.
    pub branch: String,
    /// Whether the visit has made the branch.
    pub is_new: bool,
}

impl StateFolder {
    /// Continues on another branch, which begins with the current state if it's new. On disk, the own branch stays the
    /// current one, so that a kernel that starts after a crash has the user's variables.
    ///
    /// If this branch is the own one, because the user has switched to it, another one with a number is visited.
    ///
    /// # Errors
    /// Returns an error if the current variables aren't saved, or the name is invalid. Nothing has changed then.
    pub fn visit_branch(&mut self, name: &str) -> Result<VisitedState, StateError> {
        if self.is_behind {
            return Err(StateError::UnsavedVariables);
        }
        let own = self.own_branch.clone().unwrap_or_else(|| self.heads().branch.clone());
        let name = if own == name { format!("{name} 2") } else { name.to_owned() };
        let is_new = !self.heads().branches.contains_key(&name);
        let to = if is_new { StateMove::Fork(name.clone(), None) } else { StateMove::Switch(name.clone()) };
        let before = self.heads().current().map(ToOwned::to_owned);
        let is_theirs = is_new || self.heads().visited.contains(&name);
        let mut heads = to.apply(self.heads(), &|id| self.record(id).ok())?;
        if is_theirs {
            heads.visited.insert(name.clone());
        }
        let state = heads.current().map(ToOwned::to_owned);
        self.set_heads_until_saved(heads);
        self.own_branch = Some(own);
        Ok(VisitedState { needs_load: state != before, state, branch: name, is_new })
    }

    /// Returns to the own branch, if another one is visited.
    pub fn end_visit(&mut self) -> VisitedState {
        let before = self.heads().current().map(ToOwned::to_owned);
        if let Some(own) = self.own_branch.take() {
            let heads = StateHeads { branch: own, ..self.heads().clone() };
            self.set_heads_until_saved(heads);
        }
        let state = self.heads().current().map(ToOwned::to_owned);
        // What the visit couldn't save isn't in its state, so the two may have the same one and other variables.
        let needs_load = state != before || self.is_behind;
        VisitedState { needs_load, state, branch: self.heads().branch.clone(), is_new: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChangedPages, PAGE_BYTES, SavedMemory, StateRecord, read_heads};

    const PACK: &str = "a pack";

    fn open(folder: &std::path::Path) -> StateFolder {
        StateFolder::open(folder, PACK).expect("opened")
    }

    /// Saves a state after the folder's current one, whose only page is filled with this byte.
    fn save(folder: &mut StateFolder, byte: u8) -> Result<String, StateError> {
        let fresh = vec![0; PAGE_BYTES];
        let current = folder.heads().current().map(ToOwned::to_owned);
        let mut saved = match &current {
            Some(current) => folder.load(current, &fresh)?,
            None => SavedMemory::of_fresh(&fresh),
        };
        let changes = ChangedPages { memory: PAGE_BYTES, numbers: vec![0], bytes: vec![byte; PAGE_BYTES] };
        let record = StateRecord { cell: format!("cell {byte}"), time: byte.into(), ..StateRecord::default() };
        Ok(folder.save(&mut saved.places, &changes, record)?.state)
    }

    #[test]
    fn a_visit_continues_a_branch_and_the_current_state_stays() {
        let place = tempfile::tempdir().expect("a folder");
        let mut folder = open(place.path());
        let own = save(&mut folder, 1).expect("saved");
        let visited = folder.visit_branch("run").expect("visited");
        assert_eq!((visited.state.as_ref(), visited.needs_load, visited.is_new), (Some(&own), false, true));
        let theirs = save(&mut folder, 2).expect("saved");
        // A kernel that is killed now leaves this behind.
        let heads = read_heads(place.path()).expect("read");
        assert_eq!((heads.branch.as_str(), heads.current()), ("main", Some(own.as_str())));
        assert_eq!(heads.branches["run"].as_ref(), Some(&theirs));
        let back = folder.end_visit();
        assert_eq!((back.state.as_ref(), back.needs_load, back.branch.as_str()), (Some(&own), true, "main"));
        let next = save(&mut folder, 3).expect("saved");
        let again = folder.visit_branch("run").expect("visited");
        assert_eq!((again.state.as_ref(), again.needs_load, again.is_new), (Some(&theirs), true, false));
        drop(folder);

        let mut folder = open(place.path());
        assert_eq!(folder.heads().current(), Some(next.as_str()));
        assert!(matches!(folder.visit_branch("../x"), Err(StateError::BranchName { .. })));
        let switched = StateMove::Switch("run".to_owned()).apply(folder.heads(), &|_| None).expect("a move");
        folder.set_heads(switched).expect("moved");
        let other = folder.visit_branch("run").expect("visited");
        assert_eq!((other.branch.as_str(), other.is_new), ("run 2", true), "the user has taken it over");
    }

    #[test]
    fn variables_that_are_not_saved_are_not_left() {
        let place = tempfile::tempdir().expect("a folder");
        let mut folder = open(place.path());
        save(&mut folder, 1).expect("saved");
        folder.is_behind = true; // as after a full disk
        assert!(matches!(folder.visit_branch("run"), Err(StateError::UnsavedVariables)));
        assert_eq!(folder.heads().branch, "main");
        folder.forget_unsaved();
        folder.visit_branch("run").expect("visited");
        folder.is_behind = true;
        assert!(folder.end_visit().needs_load, "the memory has more than the state");
    }
}
