//! Waits until hubs have what this device has. A worker that begins earlier would work on an older state.

use engine::{HubConnection, HubState, NotePhase, Session, SharedHub};
use host::{Handle, OwnerGone};
use std::time::Duration;

/// Longer than a message takes between two threads.
const SETTLE_INTERVAL: Duration = Duration::from_millis(200);
/// Number of looks in a row at which everything must be there, since messages between two threads aren't visible.
const SETTLED_LOOKS: usize = 3;

/// Waits until everything is synced, and still is a moment later. Only one hub counts if `hub` is its address. Returns
/// whether it is.
///
/// # Errors
/// Returns [`OwnerGone`] if the program is closing.
pub fn wait_until_hubs_have_all(handle: &Handle, hub: Option<&str>, patience: Duration) -> Result<bool, OwnerGone> {
    for _ in 0..SETTLED_LOOKS {
        let only = hub.map(str::to_owned);
        let look = move |session: &Session| is_synced(session, only.as_deref()).then_some(());
        if handle.wait(Some(patience), look)?.is_none() {
            return Ok(false);
        }
        std::thread::park_timeout(SETTLE_INTERVAL);
    }
    Ok(true)
}

/// Returns whether all configured hubs, or this one, have the same content as this device.
fn is_synced(session: &Session, only: Option<&str>) -> bool {
    let sync = session.sync();
    let there = |state: Option<&HubState>| {
        state
            .is_some_and(|state| state.reach == HubConnection::Online && state.behind.is_empty() && state.documents > 0)
    };
    // Don't wait for blobs that no reachable device has.
    let brought = |state: Option<&HubState>| {
        state.is_some_and(|state| state.blobs.there == 0 && state.blobs.going == 0 && state.blobs.busy == 0)
    };
    let reading = session.notes().any(|note| note.phase == NotePhase::Reading) || session.pending_move().is_some();
    let plain = |address: &str| address.trim_end_matches('/').to_owned();
    let hubs = sync.shares.hubs.iter().filter(|hub| only.is_none_or(|only| plain(&hub.url) == plain(only)));
    let hubs: Vec<&SharedHub> = hubs.collect();
    !reading
        && session.is_saved()
        && sync.is_settled()
        && sync.has_current_hub_states()
        && session.is_agent_sync_settled()
        && (only.is_none() || !hubs.is_empty())
        && hubs.iter().map(|hub| sync.states.get(&hub.url)).all(|state| there(state) && brought(state))
}
