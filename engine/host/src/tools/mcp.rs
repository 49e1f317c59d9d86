//! Tools of MCP servers.

use super::shown::{keep, shown};
use super::{GLANCE, Place, Stop};
use engine::agent::job::Outcome;
use serde_json::{Map, Value};
use std::time::Duration;
use store::BlobRef;

/// A call is given up after this.
const LIMIT: Duration = Duration::from_secs(300);

pub(super) fn run(
    place: &Place,
    server: &str,
    tool: &str,
    arguments: &Map<String, Value>,
    stop: &Stop,
) -> Result<Outcome, String> {
    let servers = place.servers.as_ref().ok_or("no MCP servers are configured")?;
    let pending = servers.call(server, tool, arguments.clone(), LIMIT);
    let said = loop {
        // To let go of what is pending cancels it.
        stop.check()?;
        if let Some(said) = pending.wait(GLANCE) {
            break said.map_err(|error| error.to_string())?;
        }
    };
    let mut outcome = Outcome { success: !said.failed, ..Outcome::default() };
    for (mime, bytes) in said.attached {
        let blob = keep(&bytes, &place.blobs)?;
        outcome.attached.push(BlobRef { blob, mime, size: bytes.len() as u64 });
    }
    let text = if said.text.is_empty() { "(no output)" } else { &said.text };
    (outcome.text, outcome.whole) = shown(text.as_bytes(), &place.blobs)?;
    Ok(outcome)
}
