//! The command line through the program's binary: output formats, exit codes and refusals. A command does the same
//! whether it owns the workspace or another process does.

mod acp;
mod agent_settings;
mod agent_socket;
pub(crate) mod agents;
mod answers;
#[cfg(target_os = "linux")]
mod browser;
mod companion;
mod components;
#[cfg(target_os = "linux")]
mod containers;
mod devices;
mod environments;
mod external_agents;
mod follower;
mod forks;
mod forms;
mod git;
mod git_arrivals;
mod git_conflicts;
#[cfg(unix)]
pub(crate) mod git_faults;
mod git_merge_driver;
#[cfg(unix)]
pub(crate) mod github_api;
#[cfg(unix)]
mod github_faults;
#[cfg(unix)]
mod github_server;
mod grpc;
mod grpc_v1;
mod grpc_v1_library;
mod history;
mod http_api;
mod http_server;
mod instructions;
mod kills;
mod logging;
mod lost_folders;
mod mcp_client;
mod mcp_features;
pub(crate) mod mcp_messages;
pub(crate) mod mcp_sampling;
mod mcp_server;
mod meaning;
mod memory;
mod moves;
mod notebooks;
mod own_tools;
mod owned;
mod packages;
mod packs;
mod pages;
mod paths;
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
mod workers;

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
