//! Plain data that commands, events, effects and the state of the session share.

pub mod files;
pub mod kernels;
pub mod moves;
pub mod saving;
pub mod sync;
