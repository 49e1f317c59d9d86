//! The single black-box test binary: the program as users run it, and the session with an in-memory world.

#![allow(
    clippy::unwrap_used,
    clippy::type_complexity,
    reason = "a test fails by panicking, and its tables are its own"
)]

mod budgets;
mod confined;
mod conformance;
#[cfg(target_os = "linux")]
mod container_engine;
mod disk;
mod display_lists;
mod faults;
mod hostile;
mod hub;
mod kernel;
mod limits;
mod line;
mod merge;
mod model;
mod plain_files;
mod planted;
mod program;
mod recall;
mod session;
mod sync;
mod tidy;
mod tools;
mod traces;
mod twin;
mod walls;
mod window;
