//! Work in the background, and its results.

use crate::overlays::export_form::ExportState;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Background work of the window.
pub(crate) struct BackgroundJobs {
    pub(crate) exports: ExportState,
    /// Results of saving outputs.
    pub(crate) saved: (Sender<String>, Receiver<String>),
    /// Number of kernel searches when the user asked for the list.
    pub(crate) kernels_asked: Option<u64>,
}

impl Default for BackgroundJobs {
    fn default() -> Self {
        BackgroundJobs { exports: ExportState::default(), saved: channel(), kernels_asked: None }
    }
}
