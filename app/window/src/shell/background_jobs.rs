//! Work that goes on behind the window, whose result is told once it is there.

use crate::overlays::export_form::ExportState;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Jobs of the window.
pub(crate) struct BackgroundJobs {
    pub(crate) exports: ExportState,
    /// What is said once an output is saved.
    pub(crate) saved: (Sender<String>, Receiver<String>),
    /// How often kernels had been looked for when the user asked which there are.
    pub(crate) kernels_asked: Option<u64>,
}

impl Default for BackgroundJobs {
    fn default() -> Self {
        BackgroundJobs { exports: ExportState::default(), saved: channel(), kernels_asked: None }
    }
}
