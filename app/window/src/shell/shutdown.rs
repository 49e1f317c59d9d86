//! Closing the window: everything is saved first. If that fails, the user is asked.

/// Progress of closing the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ShutdownState {
    /// The window isn't closing.
    No,
    /// The user agreed to stop cells and runs.
    Confirmed,
    /// Saving since this time, in seconds.
    Saving(f64),
    /// The user was asked whether to close anyway.
    Asked,
    /// The window can close.
    Yes,
}
