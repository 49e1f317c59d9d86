//! Jupyter: notebooks in its file format, kernels by its protocol.
//!
//! A notebook goes in as JSON and comes out as JSON; between the two it is a note. What a note's text cannot carry
//! (ids, metadata, attachments, where one piece of prose ends and the next begins) is [`NotebookOriginal`] beside it
//! and found again by comparing texts, so that it survives edits in any editor. No notebook is opened as a file here. A
//! kernel is reached by [`bridge`], the body of a process of its own. This crate knows no window.

pub mod bridge;
mod kernel_json;
mod note_layout;
mod notebook_export;
mod notebook_file;
mod script_export;

pub use note_layout::{ImportedNotebook, NotebookOriginal, import_notebook};
pub use notebook_export::{CellRun, export_notebook};
pub use notebook_file::{NotebookReadError, read_notebook};
pub use script_export::export_script;
