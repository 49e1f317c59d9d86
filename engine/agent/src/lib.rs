//! Agents: requests to models and tools, and decisions about them. Plain data and pure functions; the loop is in
//! `session/runs.rs`, effects are in the host.

pub mod agent_definition;
pub mod agent_registry;
pub mod approval_names;
pub mod approval_text;
pub mod config;
pub mod external_program;
pub mod generated_view;
pub mod memory;
pub mod model_call;
pub mod model_context;
pub mod name_suggestions;
pub mod path_resolver;
pub mod planner;
pub mod policy;
pub mod policy_rule;
pub mod prompt_quote;
pub mod protected_writes;
pub mod python_plugin;
pub mod router;
pub mod run_records;
pub mod schedule;
pub mod schema_limits;
pub mod secrets;
pub mod session_files;
pub mod session_tree_file;
pub mod shell_words;
pub mod system_volume;
pub mod task_block;
pub mod tool_call_parser;
pub mod tool_catalog;
pub mod tool_file;
pub mod tool_job;
pub mod tool_program;
pub mod tool_spec;
pub mod web_address;
