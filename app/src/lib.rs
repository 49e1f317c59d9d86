//! The program `tracebook`: its window and its command line, two callers of the same commands.

pub mod line;
// TEMP pub mod tokens;
// TEMP pub mod window;
mod window { pub fn run(_: host::Driver, _: impl FnOnce() + 'static) -> Result<(), String> { Err("not yet".into()) } }
pub use line::main;
