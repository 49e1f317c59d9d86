//! Which generated components the user has approved: the ids of what was read, in a file of the workspace.

use crate::private_list::{PrivateList, PrivateListError};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file in the workspace that holds the approvals.
const APPROVALS_FILE: &str = "component-approvals";
/// Maximum number of approvals; beyond it the oldest is forgotten, and asked for again.
const MAX_APPROVALS: usize = 1_000;

/// An approval of one version of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ComponentApproval {
    /// Its id, which changes with everything that the component holds.
    id: String,
    /// When it was approved, in milliseconds since 1970.
    at: i64,
}

/// The approved components of a workspace.
#[derive(Clone, Debug)]
pub struct ComponentApprovals {
    list: PrivateList<ComponentApproval>,
}

impl ComponentApprovals {
    /// Returns the approvals of the workspace in this folder.
    pub fn new(workspace: &Path) -> ComponentApprovals {
        ComponentApprovals { list: PrivateList::new(workspace, APPROVALS_FILE) }
    }

    /// Returns the ids that are approved.
    ///
    /// # Errors
    /// Returns an error if the file can't be read.
    pub fn ids(&self) -> Result<Vec<String>, PrivateListError> {
        Ok(self.list.read()?.into_iter().map(|one| one.id).collect())
    }

    /// Approves the component with this id. `now` is in milliseconds since 1970.
    ///
    /// # Errors
    /// Returns an error if the file can't be written.
    pub fn approve(&self, id: &str, now: i64) -> Result<(), PrivateListError> {
        self.list.change(|all| {
            all.retain(|one| one.id != id);
            let extra = (all.len() + 1).saturating_sub(MAX_APPROVALS);
            all.drain(..extra);
            all.push(ComponentApproval { id: id.to_owned(), at: now });
            Ok(())
        })
    }

    /// Takes the approval back.
    ///
    /// # Errors
    /// Returns an error if the file can't be written.
    pub fn revoke(&self, id: &str) -> Result<(), PrivateListError> {
        self.list.change(|all| {
            all.retain(|one| one.id != id);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approvals_are_kept_bounded_and_taken_back() {
        let folder = std::env::temp_dir().join(format!("tracebook-component-approvals-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let approvals = ComponentApprovals::new(&folder);
        assert_eq!(approvals.ids().expect("read"), Vec::<String>::new());
        for number in 0..=MAX_APPROVALS {
            let at = i64::try_from(number).expect("small");
            approvals.approve(&format!("id{number}"), at).expect("written");
        }
        let ids = approvals.ids().expect("read");
        assert!(ids.len() == MAX_APPROVALS && ids[0] == "id1", "the oldest goes: {:?}", ids.first());
        approvals.revoke("id7").expect("written");
        assert!(!approvals.ids().expect("read").contains(&"id7".to_owned()));
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
