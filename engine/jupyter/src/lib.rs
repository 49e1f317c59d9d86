//! Jupyter: notebooks in its file format, kernels by its protocol.
//!
//! Notebooks are read and written as JSON; in between they're notes. Content that a note's text can't carry (ids,
//! metadata, attachments, boundaries of Markdown cells) is in [`NotebookOriginal`] next to it and matched by comparing
//! texts, so that it survives edits in any editor. No notebook file is opened here. [`bridge`] connects to a kernel in
//! a process of its own. This crate knows no window.

pub mod bridge;
mod kernel_json;
mod note_layout;
mod notebook_export;
mod notebook_file;
mod script_export;

pub use note_layout::{ImportedNotebook, KeptNotebookError, NotebookOriginal, import_notebook};
pub use notebook_export::{CellRun, export_notebook};
pub use notebook_file::{NotebookReadError, read_notebook};
pub use script_export::export_script;
