//! Pages that are shown in place of a note.

pub(crate) mod agenda;
pub(crate) mod graph;
pub(crate) mod history;
pub(crate) mod sync;
pub(crate) mod system_file;
pub(crate) mod trash;
pub(crate) mod welcome;
