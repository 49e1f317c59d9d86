//! The window.
mod rows;
