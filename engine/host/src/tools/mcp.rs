//! Calls of tools on MCP servers.

use super::truncate::{store_blob, truncate_output};
use super::{CANCEL_POLL_INTERVAL, StopSignal, ToolWorkspace};
use ::mcp::{McpTool, PendingMcpResponse};
use agent::tool_job::ToolOutcome;
use anyhow::Context;
use serde_json::{Map, Value};
use std::path::Path;
use std::time::Duration;
use store::{BlobRef, DocId};

/// Time limit for a call.
const MCP_CALL_TIMEOUT: Duration = Duration::from_secs(300);

/// A call of an MCP server's tool.
pub(super) struct McpCall<'a> {
    /// The run that makes the call, and the call's id there.
    pub(super) run: DocId,
    /// The folder of the run's project.
    pub(super) root: &'a Path,
    pub(super) call: &'a str,
    pub(super) server: &'a str,
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
    /// Hash of the tool's definition when the user allowed it.
    pub(super) definition: &'a str,
}

/// Waits for a server's answer. Dropping the request cancels it at the server.
fn wait_for<T>(pending: &PendingMcpResponse<T>, stop: &StopSignal) -> anyhow::Result<T> {
    loop {
        stop.check_not_stopped()?;
        if let Some(answer) = pending.wait(CANCEL_POLL_INTERVAL) {
            return Ok(answer?);
        }
    }
}

pub(super) fn run(place: &ToolWorkspace, call: &McpCall<'_>, stop: &StopSignal) -> anyhow::Result<ToolOutcome> {
    let McpCall { run, root, call, server, tool, arguments, definition: allowed } = *call;
    let servers = place.servers.as_ref().context("no MCP servers are configured")?;
    servers.enter_project(server, root.to_owned());
    // A server may describe its tools differently by now than when the user allowed them.
    let listed = wait_for(&servers.list_tools(server), stop)?;
    let is_allowed = |known: &McpTool| known.specification(server).definition_hash().as_deref() == Some(allowed);
    let same = listed.tools.iter().any(|known| known.name == tool && is_allowed(known));
    if !same {
        let text = format!(
            "{server}/{tool} is no longer the tool that was allowed: its server has changed or removed it. Nothing \
             was called; ask for it again to have the user see what it is now."
        );
        return Ok(ToolOutcome { text, outdated: true, ..ToolOutcome::default() });
    }
    let user = place.server_requests.as_ref().map(|all| all.of_call(run, call, server));
    let pending = servers.call_tool_for(user, (server, tool), arguments.clone(), MCP_CALL_TIMEOUT);
    let said = wait_for(&pending, stop)?;
    let mut outcome = ToolOutcome { success: !said.failed, ..ToolOutcome::default() };
    for (mime, bytes) in said.attached {
        let blob = store_blob(&bytes, &place.blobs)?;
        outcome.attached.push(BlobRef { blob, mime, size: bytes.len() as u64 });
    }
    let text = if said.text.is_empty() { "(no output)" } else { &said.text };
    (outcome.text, outcome.whole) = truncate_output(text.as_bytes(), &place.blobs)?;
    Ok(outcome)
}
