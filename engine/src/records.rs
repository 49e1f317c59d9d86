//! Plain data shared by commands, events, effects and the session's state.

pub mod files;
pub mod forks;
pub mod kernels;
pub mod moves;
pub mod saving;
pub mod sync;
