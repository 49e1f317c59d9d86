//! Jupyter support: reads and writes notebook files, and connects to kernels by the Jupyter protocol.
//!
//! Notebooks are read and written as JSON; in between they're notes. Content that a note's text can't carry (ids,
//! metadata, attachments, boundaries of Markdown cells) is in [`NotebookOriginal`] next to it. It is matched by
//! comparing texts, so it survives edits in any editor. This crate opens no notebook file. [`bridge`] connects to a
//! kernel in a separate process. This crate has no user interface.

pub mod bridge;
mod kernel_json;
mod note_layout;
mod notebook_export;
mod notebook_file;
mod notebook_upgrade;
mod script_export;

pub use note_layout::{ImportedNotebook, KeptNotebookError, NotebookOriginal, import_notebook};
pub use notebook_export::{CellRun, export_notebook};
pub use notebook_file::{NotebookReadError, read_notebook, read_notebook_with_nulls};
pub use script_export::export_script;
