//! A pairing code requested on the hub's machine while the hub runs: it's in the hub's folder until the hub takes it,
//! readable only by the user, and worthless once used.

use crate::HubFileError;
use peers::DeviceId;
use peers::pairing::{DeviceRights, Invitation, OneTimeCode};
use serde::{Deserialize, Serialize};
use std::path::Path;
use store::DeviceAccess;

/// The file in the hub's folder.
const INVITATION_FILE: &str = "invitation.json";

/// The file in which a hub that runs says how it is reached.
const ADDRESS_FILE: &str = "address";

/// How the hub is reached that runs over this folder, without a code.
pub fn running_hub_invitation(folder: &Path) -> Option<Invitation> {
    std::fs::read_to_string(folder.join(ADDRESS_FILE)).ok()?.parse().ok()
}

/// Records the hub's address; `None` if it no longer runs.
pub(crate) fn write_hub_address(folder: &Path, at: Option<(&str, DeviceId)>) -> Result<(), HubFileError> {
    let path = folder.join(ADDRESS_FILE);
    match at {
        Some((at, key)) => {
            let invitation = Invitation { at: at.to_owned(), code: "-".to_owned(), key, rights: None };
            crate::certificate::write_private_file(&path, invitation.to_string().as_bytes())
        }
        None => std::fs::remove_file(&path).map_err(HubFileError::io(path)),
    }
}

/// What a device is to get that uses the code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvitationGrant {
    /// The one-time code.
    pub offer: OneTimeCode,
    /// The most that the device may do.
    pub access: DeviceAccess,
    /// Whether it may change the list of devices.
    pub admin: bool,
}

impl InvitationGrant {
    /// Stores the invitation for the hub of this folder; it replaces an earlier one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save_for_hub(&self, folder: &Path) -> Result<(), HubFileError> {
        let text = serde_json::to_vec(self)?;
        let (path, temporary) = (folder.join(INVITATION_FILE), folder.join("invitation.tmp"));
        crate::certificate::write_private_file(&temporary, &text)?;
        std::fs::rename(&temporary, &path).map_err(HubFileError::io(path))
    }

    /// Takes what was left.
    pub(crate) fn take_saved(folder: &Path) -> Option<InvitationGrant> {
        let path = folder.join(INVITATION_FILE);
        let text = std::fs::read(&path).ok()?;
        // If it stays, it is taken again, and its code still ends with its time.
        let _ = std::fs::remove_file(&path);
        serde_json::from_slice(&text).ok()
    }

    /// What the device may do that uses it.
    pub fn rights(&self) -> DeviceRights {
        DeviceRights { access: self.access, admin: self.admin }
    }

    /// Whether the hub has taken what was left.
    pub fn is_taken(folder: &Path) -> bool {
        !folder.join(INVITATION_FILE).exists()
    }

    /// Takes back what no hub took.
    pub fn withdraw(folder: &Path) {
        // If it stays, a hub takes it later, and its code ends with its time.
        let _ = std::fs::remove_file(folder.join(INVITATION_FILE));
    }
}
