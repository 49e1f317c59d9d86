//! The command line through the program's binary: output formats, exit codes and refusals. A command does the same
//! whether it owns the workspace or another process does.

mod acp;
#[cfg(target_os = "linux")]
mod acp_programs;
mod advice;
mod agent_sessions;
mod agent_settings;
mod agent_socket;
mod agent_teams;
pub(crate) mod agents;
mod agents_elsewhere;
mod answers;
mod answers_for_programs;
#[cfg(target_os = "linux")]
mod browser;
mod companion;
mod components;
#[cfg(target_os = "linux")]
mod containers;
mod devices;
mod environments;
mod events;
mod external_agents;
mod follower;
mod fork_variables;
mod forks;
mod forms;
#[cfg(target_os = "linux")]
mod frames;
pub(crate) mod git;
mod git_arrivals;
mod git_conflicts;
#[cfg(unix)]
pub(crate) mod git_faults;
mod git_heads;
mod git_history_merge;
#[cfg(unix)]
mod git_hostile;
#[cfg(unix)]
mod git_ignored;
#[cfg(unix)]
mod git_killed_steps;
#[cfg(unix)]
mod git_kills;
#[cfg(target_os = "linux")]
mod git_large;
#[cfg(unix)]
mod git_lfs;
mod git_merge_driver;
#[cfg(unix)]
mod git_more;
#[cfg(unix)]
mod git_paths;
#[cfg(unix)]
mod git_random;
mod git_real;
mod git_revisions;
#[cfg(target_os = "linux")]
mod git_server;
mod git_walkthrough;
#[cfg(unix)]
pub(crate) mod github_api;
#[cfg(unix)]
mod github_faults;
#[cfg(unix)]
mod github_server;
pub(crate) mod grpc;
mod grpc_v1;
mod grpc_v1_library;
mod history;
mod http_api;
#[cfg(target_os = "linux")]
mod http_limits;
mod http_memory;
mod http_rivals;
mod http_server;
mod http_standards;
mod http_tricks;
mod imported_sessions;
mod instructions;
mod kills;
mod logging;
mod lost_folders;
mod mcp_approvals;
mod mcp_client;
mod mcp_features;
pub(crate) mod mcp_forms;
pub(crate) mod mcp_messages;
mod mcp_oauth;
pub(crate) mod mcp_pages;
pub(crate) mod mcp_sampling;
pub(crate) mod mcp_server;
mod mcp_volume;
mod meaning;
mod memory;
mod model_choice;
mod moves;
mod notebooks;
mod own_tools;
mod owned;
pub(crate) mod package_addresses;
pub(crate) mod packages;
mod packs;
mod pages;
mod paths;
mod platform;
mod plugin_events;
mod policy;
mod prompts;
mod providers;
mod pure;
mod refusals;
mod sample;
mod sandbox_limits;
mod schedules;
mod screenshots;
mod script_tools;
mod scripts;
mod search;
mod sql;
mod state_programs;
pub(crate) mod states;
mod tasks;
mod trace_files;
mod trace_versions;
mod updates;
mod volumes;
mod webhooks;
mod widgets;
pub(crate) mod workers;

use crate::program::House;
use serde_json::Value;
use std::collections::BTreeSet;

/// The subcommands, as the README and the manual name them.
const COMMANDS: [&str; 53] = [
    "components",
    "capture",
    "devices",
    "pair",
    "hub",
    "mcp",
    "acp",
    "serve",
    "tokens",
    "providers",
    "secrets",
    "ask",
    "runs",
    "steps",
    "sessions",
    "approvals",
    "tools",
    "traces",
    "memory",
    "budget",
    "schedule",
    "tasks",
    "cells",
    "kernels",
    "grant",
    "init",
    "open",
    "new",
    "cat",
    "edit",
    "run",
    "ls",
    "history",
    "outputs",
    "import",
    "export",
    "fsck",
    "search",
    "related",
    "index",
    "searches",
    "sync",
    "backup",
    "restore",
    "doctor",
    "update",
    "bench",
    "screenshots",
    "completions",
    "man",
    "cp",
    "git",
    "events",
];

const CELLS: &str = "# Cells

```python
print('out')
6 * 7
```

```python
import sys
_ = sys.stderr.write('err')
```

```python
1 / 0
```

```python
'never'
```
";

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}")).keys().map(String::as_str).collect()
}

/// A volume `notes` with a plain note, one with cells, two with the same name, and an attachment.
fn house() -> House {
    House::with(&[
        ("a.md", "# Alpha\n\né and more\n"),
        ("cells.md", CELLS),
        ("one/twin.md", "first\n"),
        ("two/twin.md", "second\n"),
        ("data.csv", "1,2\n"),
    ])
}
