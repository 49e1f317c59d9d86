//! What a note's page shows: rows, cells and their outputs, figures, collections. It reads the session and returns
//! actions; it changes nothing itself.

#![allow(
    missing_docs,
    reason = "what is public here is so for sibling crates of this program; fields say what they are"
)]

pub mod actions;
pub mod active_row;
pub mod cells;
pub mod collection;
pub mod embedded_search;
pub mod empty_note;
pub mod generated_view;
pub mod hit_text;
pub mod link_targets;
pub mod outputs;
pub mod page;
pub mod script;
