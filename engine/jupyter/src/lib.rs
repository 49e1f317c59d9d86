//! Jupyter: notebooks in its file format, kernels by its protocol.
//!
//! A notebook goes in as JSON and comes out as JSON; between the two it is a note. What a note's text cannot carry
//! (ids, metadata, attachments, where one piece of prose ends and the next begins) is [`Kept`] beside it and found
//! again by comparing texts, so that it survives edits in any editor. No notebook is opened as a file here. A kernel is
//! reached by [`bridge`], the body of a process of its own. This crate knows no window.

pub mod bridge;
mod file;
mod note;
mod notebook;
mod script;
mod spec;

pub use file::{Unreadable, read};
pub use note::{Kept, Laid, lay};
pub use notebook::{Ran, notebook};
pub use script::script;
