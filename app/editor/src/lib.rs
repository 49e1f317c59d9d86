//! Display and editing of notes: rows, layout, carets, keys and Vim. Independent of any window.

pub mod assets;
pub mod bidi_text;
pub mod cell_edits;
mod column_summary;
pub mod comments;
pub mod display_map;
pub mod editor_keys;
pub mod figure;
pub mod folding;
pub mod grid;
pub mod input_order;
pub mod lists;
pub mod long_rows;
pub mod markdown_keys;
pub mod motion;
pub mod note_editor;
pub mod output_table;
pub mod python_highlighter;
pub mod remote_cursors;
pub mod render;
pub mod row_layout;
pub mod row_splitter;
pub mod source_layout;
pub mod spelling;
pub mod table_data;
pub mod table_renderer;
pub mod vim;
