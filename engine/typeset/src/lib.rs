//! Renders notes for readers: highlighted code, formulas, diagrams, HTML and PDF.
//!
//! It takes text and returns text and images. It opens no files (except system fonts, if requested) and knows no
//! windows. It's a separate crate to keep grammars out of the path of a keystroke.

pub mod clipboard_html;
pub mod diagram;
pub mod failure;
pub mod fonts;
pub mod formula;
pub mod highlight;
pub mod html;
pub mod pdf;
pub use text::ansi;
pub mod drawing;
pub mod tints;
#[cfg(test)]
mod trips;
