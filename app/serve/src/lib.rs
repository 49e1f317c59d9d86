//! How other programs use a workspace: the MCP server (`tracebook mcp`).
//!
//! Nothing here opens a workspace. Every request becomes a command of the command line, which the process that owns
//! the workspace performs. So a program gets what its user would get in a terminal, under the same policy.

mod command_calls;
pub mod mcp_install;
mod mcp_prompts;
mod mcp_server;
mod tool_arguments;
mod tool_calls;
mod tool_table;

pub use command_calls::{CommandCall, CommandOutcome, WorkspaceCommands};
pub use mcp_server::{McpPermissions, McpServeError, serve_mcp};
