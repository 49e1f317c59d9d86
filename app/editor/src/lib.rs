//! Notes as they are shown and edited: rows, their layout, carets, keys and Vim. Nothing here knows a window.

#![allow(
    missing_docs,
    reason = "what is public here is so for sibling crates of this program; fields say what they are"
)]

pub mod cellwork;
pub mod comments;
pub mod drawn;
pub mod fold;
pub mod grid;
pub mod keys;
pub mod lists;
pub mod long;
pub mod marks;
pub mod motion;
pub mod note_editor;
pub mod output_data;
pub mod output_table;
pub mod python;
pub mod render;
pub mod rows;
pub mod sheet;
pub mod sights;
pub mod source;
pub mod table;
pub mod turns;
pub mod vim;
