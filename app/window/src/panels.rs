//! The side panels: file tree, outline, backlinks, search, tags and variables.

pub(crate) mod backlinks_panel;
pub(crate) mod exact_panel;
pub(crate) mod outline;
pub(crate) mod panel_list;
pub(crate) mod related;
pub(crate) mod row_details;
pub(crate) mod search_panel;
pub(crate) mod tags_panel;
pub(crate) mod tree;
pub(crate) mod variables;
