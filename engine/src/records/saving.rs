//! How far what was typed has got to the disk.

/// Batches are numbered from 1 in the order in which they must reach the disk.
pub type BatchNumber = u64;

/// Whether all is on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaveStatus {
    /// The number of the last keystroke.
    pub last: u64,
    /// The number of the last keystroke that is on disk.
    pub durable: u64,
    /// Why the disk refuses, if it does. Nothing is lost meanwhile: it is kept in memory and written later.
    pub trouble: Option<String>,
}
