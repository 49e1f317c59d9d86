//! State of kernels: the available ones, and the spare one.

use crate::note::Note;
use crate::records::kernels::{KernelKind, KernelSpec};
use std::path::PathBuf;
use store::BlockId;
use store::DocId;
use text::time::UnixMillis;

/// State of kernels that don't belong to a note.
#[derive(Debug, Default)]
pub(in crate::session) struct KernelsState {
    /// Jupyter kernels found by the last search.
    pub(in crate::session) specs: Vec<KernelSpec>,
    /// Number of kernel searches so far.
    pub(in crate::session) searches: u64,
    pub(in crate::session) pool: KernelPool,
}

impl KernelsState {
    /// Returns why the note's kernel can't run a cell of another language; `None` if it can.
    pub(in crate::session) fn other_language_reason(&self, note: &Note, cell: BlockId) -> Option<String> {
        let language = note.cell_language(cell)?;
        match note.kernel_name().filter(|name| !KernelKind::of(Some(name)).is_confined()) {
            None if language == "python" => None,
            None => {
                Some(format!("this cell is in {language}: choose a kernel of Jupyter's that runs it (Choose kernel)"))
            }
            Some(name) => {
                let spec = self.kernels().iter().find(|spec| spec.name == name)?;
                let same = spec.language.eq_ignore_ascii_case(&language)
                    || (language == "sh" && spec.language.eq_ignore_ascii_case("bash"))
                    || (language == "js" && spec.language.eq_ignore_ascii_case("javascript"));
                (!same)
                    .then(|| format!("this cell is in {language}, and the note's kernel {name} runs {}", spec.language))
            }
        }
    }

    /// Returns the Jupyter kernels found by the last search.
    pub(in crate::session) fn kernels(&self) -> &[KernelSpec] {
        &self.specs
    }

    /// Returns the number of kernel searches so far.
    pub(in crate::session) fn kernel_searches(&self) -> u64 {
        self.searches
    }

    pub(in crate::session) fn kernels_found(&mut self, kernels: Vec<KernelSpec>) {
        self.specs = kernels;
        self.searches += 1;
    }
}

/// State of the spare kernel.
#[derive(Debug, Default)]
pub(in crate::session) struct KernelPool {
    /// The note that was opened last.
    pub(in crate::session) note: Option<DocId>,
    /// State for which the last decision was made: the note, the revision of its cells, and whether it could use a
    /// kernel.
    pub(in crate::session) last_decision: Option<(DocId, u64, bool)>,
    pub(in crate::session) start_at: Option<(UnixMillis, PathBuf)>,
    pub(in crate::session) expires_at: Option<UnixMillis>,
}
