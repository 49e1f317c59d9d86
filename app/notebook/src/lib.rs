//! Content of a note's page: rows, cells and their outputs, figures, collections. It reads the session and returns
//! actions; it changes nothing itself.

pub mod actions;
pub mod active_row;
pub mod attachment;
pub mod cells;
pub mod collection;
pub mod embedded_search;
pub mod empty_note;
pub mod generated_view;
pub mod hit_text;
pub mod link_targets;
pub mod outputs;
pub mod page;
pub mod saved_states;
pub mod script;
pub mod widget_controls;
