//! Pairing code that is requested on the hub's machine while the hub runs. It's stored in the hub's folder until the
//! hub takes it, readable only by the user, and worthless once used.

use crate::error::HubFileError;
use peers::DeviceId;
use peers::pairing::{DeviceRights, Invitation, OneTimeCode};
use serde::{Deserialize, Serialize};
use std::path::Path;
use store::DeviceAccess;

/// Name of the invitation file in the hub's folder.
const INVITATION_FILE: &str = "invitation.json";

/// Name of the file in which a running hub records its address.
const ADDRESS_FILE: &str = "address";

/// Returns the address and key of the hub that runs over this folder, as an invitation without a code.
pub fn running_hub_invitation(folder: &Path) -> Option<Invitation> {
    std::fs::read_to_string(folder.join(ADDRESS_FILE)).ok()?.parse().ok()
}

/// Records the hub's address and key; `None` removes the record when the hub stops.
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

/// An invitation's code, and the rights of the device that uses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvitationGrant {
    /// The one-time code.
    pub offer: OneTimeCode,
    /// The device's maximum access.
    pub access: DeviceAccess,
    /// Whether the device may change the list of devices.
    pub admin: bool,
}

impl InvitationGrant {
    /// Stores the invitation for the hub of this folder, replacing an earlier one.
    ///
    /// # Errors
    /// Returns an error if the file can't be written.
    pub fn save_for_hub(&self, folder: &Path) -> Result<(), HubFileError> {
        let text = serde_json::to_vec(self)?;
        let (path, temporary) = (folder.join(INVITATION_FILE), folder.join("invitation.tmp"));
        crate::certificate::write_private_file(&temporary, &text)?;
        std::fs::rename(&temporary, &path).map_err(HubFileError::io(path))
    }

    /// Reads and removes the stored invitation; `None` if there is none.
    pub(crate) fn take_saved(folder: &Path) -> Option<InvitationGrant> {
        let path = folder.join(INVITATION_FILE);
        let text = std::fs::read(&path).ok()?;
        // If the file stays, it's read again; its code still expires.
        let _ = std::fs::remove_file(&path);
        serde_json::from_slice(&text).ok()
    }

    /// Returns the rights of the device that uses the invitation.
    pub fn rights(&self) -> DeviceRights {
        DeviceRights { access: self.access, admin: self.admin }
    }

    /// Returns whether the hub has taken the stored invitation.
    pub fn is_taken(folder: &Path) -> bool {
        !folder.join(INVITATION_FILE).exists()
    }

    /// Removes the stored invitation if no hub has taken it.
    pub fn withdraw(folder: &Path) {
        // If the file stays, a hub takes it later; its code still expires.
        let _ = std::fs::remove_file(folder.join(INVITATION_FILE));
    }
}
