//! The program `tracebook`: its window and its command line, two callers of the same commands.

mod drawings;
mod export;
pub mod line;
pub mod tokens;
pub mod window;

pub use line::main;
