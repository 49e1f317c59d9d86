//! Moves between saved states: which one is current, on which branch, and which are pinned.

use crate::errors::StateError;
use crate::records::{StateHeads, StateRecord, is_branch_name};

/// A move that changes the current state, branches or pins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateMove {
    /// Moves to the state before the current one.
    Undo,
    /// Moves to the state that the last undo left.
    Redo,
    /// Moves to no state: a fresh kernel.
    Fresh,
    /// Moves to this state.
    To(String),
    /// Continues on a new branch with this name, from this state; `None` is the current one.
    Fork(String, Option<String>),
    /// Moves to the last state of the branch with this name.
    Switch(String),
    /// Discards the branch with this name, which can't be the current one.
    Discard(String),
    /// Continues the current branch from the state of the branch with this name, which is discarded.
    Adopt(String),
    /// Pins this state, so that it's never thinned, and gives it this name.
    Pin(String, Option<String>),
    /// Unpins this state, so that it may be thinned again.
    Unpin(String),
    /// Adds a branch with this name, which continues from this state: one that
    /// [`crate::StateFolder::bring_line`] has put into the folder.
    Take(String, String),
    /// Moves to the state of another device that lies in the folder for received ones
    /// ([`crate::StateFolder::receive`]).
    Receive,
}

impl StateMove {
    /// Reads a move from a message: `{"move": "undo"}`, and `name` or `state` if the move needs one.
    #[must_use]
    pub fn from_json(content: &serde_json::Value) -> Option<StateMove> {
        let text = |key: &str| content[key].as_str().map(ToOwned::to_owned);
        Some(match content["move"].as_str()? {
            "undo" => StateMove::Undo,
            "redo" => StateMove::Redo,
            "fresh" => StateMove::Fresh,
            "to" => StateMove::To(text("state")?),
            "fork" => StateMove::Fork(text("name")?, text("state")),
            "switch" => StateMove::Switch(text("name")?),
            "discard" => StateMove::Discard(text("name")?),
            "adopt" => StateMove::Adopt(text("name")?),
            "pin" => StateMove::Pin(text("state")?, text("name")),
            "unpin" => StateMove::Unpin(text("state")?),
            "take" => StateMove::Take(text("name")?, text("state")?),
            "receive" => StateMove::Receive,
            _ => return None,
        })
    }

    /// Returns the message that `from_json` reads.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            StateMove::Undo => serde_json::json!({"move": "undo"}),
            StateMove::Redo => serde_json::json!({"move": "redo"}),
            StateMove::Fresh => serde_json::json!({"move": "fresh"}),
            StateMove::To(state) => serde_json::json!({"move": "to", "state": state}),
            StateMove::Fork(name, state) => serde_json::json!({"move": "fork", "name": name, "state": state}),
            StateMove::Switch(name) => serde_json::json!({"move": "switch", "name": name}),
            StateMove::Discard(name) => serde_json::json!({"move": "discard", "name": name}),
            StateMove::Adopt(name) => serde_json::json!({"move": "adopt", "name": name}),
            StateMove::Pin(state, name) => serde_json::json!({"move": "pin", "state": state, "name": name}),
            StateMove::Unpin(state) => serde_json::json!({"move": "unpin", "state": state}),
            StateMove::Take(name, state) => serde_json::json!({"move": "take", "name": name, "state": state}),
            StateMove::Receive => serde_json::json!({"move": "receive"}),
        }
    }

    /// Returns whether the move leaves variables unchanged.
    #[must_use]
    pub fn keeps_variables(&self) -> bool {
        matches!(self, StateMove::Discard(_) | StateMove::Pin(..) | StateMove::Unpin(_) | StateMove::Take(..))
    }

    /// Returns the heads after the move. `record` reads a state.
    ///
    /// # Errors
    /// Returns an error if there is nothing to undo or redo, the state or branch doesn't exist, or the name is invalid.
    pub fn apply(
        &self,
        heads: &StateHeads,
        record: &dyn Fn(&str) -> Option<StateRecord>,
    ) -> Result<StateHeads, StateError> {
        let mut heads = heads.clone();
        let branch = heads.branch.clone();
        let current = heads.current().map(ToOwned::to_owned);
        match self {
            StateMove::Undo => {
                let current = current.ok_or(StateError::NothingToUndo)?;
                let parent = record(&current).ok_or(StateError::NoSuchState)?.parent;
                heads.redo.entry(branch.clone()).or_default().push(current);
                heads.branches.insert(branch, parent);
            }
            StateMove::Redo => {
                let next = heads.redo.get_mut(&branch).and_then(Vec::pop).ok_or(StateError::NothingToRedo)?;
                heads.branches.insert(branch, Some(next));
            }
            StateMove::Fresh => {
                heads.redo.remove(&branch);
                heads.branches.insert(branch, None);
            }
            StateMove::To(id) => {
                record(id).ok_or(StateError::NoSuchState)?;
                heads.redo.remove(&branch);
                heads.branches.insert(branch, Some(id.clone()));
            }
            StateMove::Fork(name, state) => {
                ensure_new_branch(&heads, name)?;
                let from = match state {
                    Some(id) => Some(record(id).ok_or(StateError::NoSuchState)?.state),
                    None => current,
                };
                heads.branches.insert(name.clone(), from);
                heads.branch.clone_from(name);
            }
            StateMove::Switch(name) => {
                if !heads.branches.contains_key(name) {
                    return Err(StateError::NoSuchBranch { name: name.clone() });
                }
                heads.branch.clone_from(name);
                heads.visited.remove(name);
            }
            StateMove::Discard(name) | StateMove::Adopt(name) if *name == branch => {
                return Err(StateError::CurrentBranch { name: name.clone() });
            }
            StateMove::Discard(name) => {
                heads.branches.remove(name).ok_or_else(|| StateError::NoSuchBranch { name: name.clone() })?;
                heads.redo.remove(name);
                heads.visited.remove(name);
            }
            StateMove::Adopt(name) => {
                let state = heads.branches.remove(name);
                let state = state.ok_or_else(|| StateError::NoSuchBranch { name: name.clone() })?;
                heads.redo.remove(name);
                heads.visited.remove(name);
                heads.redo.remove(&branch);
                heads.branches.insert(branch, state);
            }
            StateMove::Pin(id, name) => {
                record(id).ok_or(StateError::NoSuchState)?;
                heads.pinned.insert(id.clone());
                if let Some(name) = name {
                    if !is_branch_name(name) {
                        return Err(StateError::PinName { name: name.clone() });
                    }
                    heads.names.retain(|_, other| other != name);
                    heads.names.insert(id.clone(), name.clone());
                }
            }
            StateMove::Unpin(id) => {
                if !heads.pinned.remove(id) {
                    return Err(StateError::NotPinned);
                }
                heads.names.remove(id);
            }
            StateMove::Take(name, state) => {
                ensure_new_branch(&heads, name)?;
                let state = record(state).ok_or(StateError::NoSuchState)?.state;
                heads.branches.insert(name.clone(), Some(state));
            }
            // The folder checks what was received first, and then moves to its state.
            StateMove::Receive => return Err(StateError::NotReceived),
        }
        Ok(heads)
    }
}

fn ensure_new_branch(heads: &StateHeads, name: &str) -> Result<(), StateError> {
    if !is_branch_name(name) {
        return Err(StateError::BranchName { name: name.to_owned() });
    }
    if heads.branches.contains_key(name) {
        return Err(StateError::BranchExists { name: name.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_continues_from_the_current_state_or_another_one() {
        let heads = StateHeads {
            branch: "main".into(),
            branches: [("main".to_owned(), Some("b".to_owned()))].into(),
            ..StateHeads::default()
        };
        let record = |id: &str| (id != "gone").then(|| StateRecord { state: id.to_owned(), ..StateRecord::default() });
        let forked = |from: Option<&str>| StateMove::Fork("try".into(), from.map(str::to_owned)).apply(&heads, &record);
        assert_eq!(forked(None).expect("forked").current(), Some("b"));
        let other = forked(Some("a")).expect("forked");
        assert_eq!((other.current(), other.branches["main"].as_deref()), (Some("a"), Some("b")));
        assert!(matches!(forked(Some("gone")), Err(StateError::NoSuchState)));
        let said = StateMove::Fork("try".into(), Some("a".into()));
        assert_eq!(StateMove::from_json(&said.to_json()), Some(said));
    }
}
