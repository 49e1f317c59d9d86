//! How other programs use a workspace: the MCP server (`tracebook mcp`), the HTTP server with its web companion
//! (`tracebook serve`), and the agents for editors (`tracebook acp`).
//!
//! Nothing here opens a workspace. Every request becomes a command of the command line, which the process that owns
//! the workspace performs. So a program gets what its user would get in a terminal, under the same policy.

mod access_tokens;
mod acp_prompt;
mod acp_server;
mod acp_turn;
mod acp_updates;
mod agent_socket;
mod agent_socket_calls;
mod api_docs;
mod api_links;
mod api_patterns;
mod approval_requests;
mod audit_log;
mod byte_ranges;
mod client_rates;
mod client_roots;
mod clock;
mod command_calls;
mod companion;
mod component_approvals;
mod entity_tags;
mod event_feed;
#[cfg(feature = "grpc")]
mod grpc;
mod http_guard;
mod http_router;
mod http_server;
mod http_state;
mod kept_answers;
mod list_pages;
mod mcp_approvals;
mod mcp_batches;
mod mcp_completion;
mod mcp_http;
pub mod mcp_install;
mod mcp_prompts;
mod mcp_resources;
mod mcp_server;
mod mcp_sessions;
mod mcp_stdio;
mod note_prompts;
mod pairing;
mod pending_approval;
mod percent_text;
mod placed_connections;
mod private_list;
mod problem;
mod proposed_writes;
mod request_keys;
mod rest_attachments;
mod rest_collections;
mod rest_events;
mod rest_history;
mod rest_memory;
mod rest_notes;
mod rest_work;
mod task_queue;
mod tls_certificate;
mod token_lease;
mod tool_arguments;
mod tool_calls;
mod tool_table;
mod trace_calls;
mod volume_limit;
mod whole_numbers;

pub use access_tokens::{AccessToken, TokenGrant, TokenScope, TokenStore, TokenStoreError};
pub use acp_server::{AcpServeError, serve_acp};
pub use command_calls::{CommandCall, CommandOutcome, WorkspaceCommands};
pub use component_approvals::ComponentApprovals;
pub use http_server::{HttpServeError, HttpServerSettings, ServedPlaces, TlsFiles, TlsSource, serve_http};
pub use mcp_http::mcp_http_service;
pub use mcp_server::{McpPermissions, McpServeError, NotebookMcpServer, WritePermission, serve_mcp};
pub use pairing::{PairingLink, PairingLinkError, pairing_link};
pub use private_list::PrivateListError;
pub use tls_certificate::CertificateError;
