//! The agent panel, and pages of agents and of project memory.

pub mod agent;
pub mod memory;
pub mod panel_action;
