//! The state of kernels: those that were found, and the spare one.

use crate::note::Note;
use crate::records::kernels::{KernelKind, KernelSpec};
use std::path::PathBuf;
use store::BlockId;
use store::DocId;
use text::time::UnixMillis;

/// Kernels that belong to no note.
#[derive(Debug, Default)]
pub(in crate::session) struct KernelsState {
    /// Jupyter kernels that were found last.
    pub(in crate::session) specs: Vec<KernelSpec>,
    /// Number of searches.
    pub(in crate::session) searches: u64,
    pub(in crate::session) pool: KernelPool,
}

impl KernelsState {
    /// Why the note's kernel cannot run a cell: it is of another language.
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

    /// The Jupyter kernels that were found when that was asked last.
    pub(in crate::session) fn kernels(&self) -> &[KernelSpec] {
        &self.specs
    }

    /// Returns how often kernels were searched.
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
    /// The state for which it was decided: the note, its cells, whether it could use one.
    pub(in crate::session) last_decision: Option<(DocId, u64, bool)>,
    pub(in crate::session) start_at: Option<(UnixMillis, PathBuf)>,
    pub(in crate::session) expires_at: Option<UnixMillis>,
}
