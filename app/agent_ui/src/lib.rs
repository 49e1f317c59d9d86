//! The pages and the panel of agents and of what projects remember.

#![allow(
    missing_docs,
    reason = "what is public here is so for sibling crates of this program; fields say what they are"
)]

pub mod agent;
pub mod memory;
pub mod panel_action;
