//! State of Jupyter's command mode, in which letters are commands on cells.

/// State of command mode and cell commands.
#[derive(Default)]
pub(crate) struct CommandMode {
    /// The caret's position in command mode. If the caret is elsewhere, the user has left the mode.
    pub(crate) command: Option<usize>,
    /// The first letter of a two-letter command.
    pub(crate) first: Option<char>,
    /// The last cut or copied cell, with its fences.
    pub(crate) held: String,
}
