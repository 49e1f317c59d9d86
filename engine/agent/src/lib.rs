//! The agent: what is asked of models and tools, and how it is decided. Plain data and pure decisions; the loop itself
//! is in `session/runs.rs`, what it needs of the world in the host.

pub mod address;
pub mod argv;
pub mod block;
pub mod calls;
pub mod catalog;
pub mod config;
pub mod context;
pub mod crew;
pub mod definition;
pub mod guarded;
pub mod job;
pub mod memory;
pub mod model;
pub mod names;
pub mod planner;
pub mod policy;
pub mod question;
pub mod quote;
pub mod router;
pub mod rule;
pub mod schedule;
pub mod schema;
pub mod secrets;
pub mod tool;
