//! Notes as others read them: coloured code, set formulas, diagrams, HTML. Pure: text goes in, text and pictures come
//! out; it opens no file (system fonts apart, where asked for) and knows no window. A crate of its own so that grammars
//! stay off the way of a keystroke.

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
