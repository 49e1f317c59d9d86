//! The state of the kernel in reserve.

use std::path::PathBuf;
use store::DocId;
use text::time::UnixMillis;

/// State of the spare kernel.
#[derive(Debug, Default)]
pub(in crate::session) struct KernelPool {
    /// The note that was opened last.
    pub(in crate::session) note: Option<DocId>,
    /// The state for which it was decided: the note, its cells, whether it could use one.
    pub(in crate::session) last_decision: Option<(DocId, u64, bool)>,
    pub(in crate::session) start_at: Option<(UnixMillis, PathBuf)>,
    pub(in crate::session) expires_at: Option<UnixMillis>,
}
