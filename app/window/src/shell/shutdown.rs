//! The end of a window: everything is saved first, and where that cannot be, somebody is asked.

/// How far closing has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ShutdownState {
    /// Nobody wants to close.
    No,
    /// Waiting until all is saved, since then.
    Saving(f64),
    /// The question is open.
    Asked,
    /// It closes.
    Yes,
}
