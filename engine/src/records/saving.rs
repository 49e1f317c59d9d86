//! Save status: how much of what was typed is on disk.

/// Number of a batch of writes, from 1, in the order in which batches must reach the disk.
pub type BatchNumber = u64;

/// How much of what was typed is on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaveStatus {
    /// Number of the last keystroke.
    pub last: u64,
    /// Number of the last keystroke that is on disk.
    pub durable: u64,
    /// Why the disk rejects writes; `None` if it doesn't. Nothing is lost meanwhile: data stays in memory and is
    /// written later.
    pub trouble: Option<String>,
}
