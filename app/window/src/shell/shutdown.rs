//! Closing the window: everything is saved first; if that fails, the user is asked.

/// How far closing has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ShutdownState {
    /// The window isn't closing.
    No,
    /// Saving since this time, in seconds.
    Saving(f64),
    /// The user was asked whether to close anyway.
    Asked,
    /// The window may close.
    Yes,
}
