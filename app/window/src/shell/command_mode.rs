//! Cells as Jupyter's notebooks have them: command mode, in which letters mean cells, and what the commands of the
//! table do to cells.

/// Jupyter in this window.
#[derive(Default)]
pub(crate) struct CommandMode {
    /// Command mode, and the caret's last position; if it differs, the user continued typing.
    pub(crate) command: Option<usize>,
    /// The first of two letters.
    pub(crate) first: Option<char>,
    /// The cell that was cut or copied last, with its fences.
    pub(crate) held: String,
}
