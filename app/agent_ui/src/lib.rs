//! The agent panel, and the pages for agents and project memory.

pub mod agent;
pub mod config_writer;
pub mod memory;
pub mod panel_action;
