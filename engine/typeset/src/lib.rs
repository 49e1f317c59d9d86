//! Notes as others read them: coloured code, set formulas, HTML. Pure: text goes in, text comes out; it opens no file
//! and knows no window. A crate of its own so that grammars stay off the way of a keystroke.

pub mod colour;
pub mod formula;
pub mod html;
pub mod printed;
