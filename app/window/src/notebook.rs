//! What a note's page shows: rows, cells and their outputs, figures, collections.

pub(crate) mod active_row;
pub(crate) mod cells;
pub(crate) mod collection;
pub(crate) mod embedded_search;
pub(crate) mod empty_note;
pub(crate) mod generated_view;
pub(crate) mod link_targets;
pub(crate) mod outputs;
pub(crate) mod page;
pub(crate) mod script;
