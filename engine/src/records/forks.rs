//! Forks of volumes: which volume each is a copy of.

use serde::{Deserialize, Serialize};
use store::DocId;

/// Key under which [`ForkOrigin`]s are kept, by the fork's volume.
pub const FORKS_META_KEY: &str = "forks";
/// Folder inside the workspace's folder that holds the files of all forks.
pub const FORKS_FOLDER: &str = "forks";

/// What a fork is a copy of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkOrigin {
    /// The volume that was copied.
    pub volume: DocId,
    /// Name of the fork, unique in the workspace while the fork exists.
    pub name: String,
}
