//! The one black-box test binary: the program as its users meet it, and the session with a world in memory.

mod kernel;
mod merge;
mod session;
mod tidy;
mod twin;
