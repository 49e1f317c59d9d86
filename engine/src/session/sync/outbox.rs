//! Changes that wait for an unreachable hub. A connected hub reports what differs. Once everything was in sync, later
//! changes are recorded here and on disk, so that they're known however long the hub is away.

use crate::effect::Effect;
use crate::records::sync::{HubConnection, HubOutbox, HubState, OUTBOX_KEY, SharedHub};
use crate::session::apply_context::ApplyContext;
use crate::session::state::runs::RunsState;
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use std::collections::BTreeSet;
use store::DocId;
use store::disk::RowWrite;
use text::time::UnixMillis;

/// Time in milliseconds without local changes after which a hub counts as in sync: nothing is in transit between
/// threads.
const OUTBOX_QUIET_MS: i64 = 500;
/// Maximum number of waiting documents for which the outbox is written to disk at once; with more, writes are combined.
const MAX_IMMEDIATE_OUTBOX_WRITES: usize = 100;
/// Minimum interval between combined writes of the outbox, in milliseconds.
const OUTBOX_SAVE_INTERVAL_MS: i64 = 2_000;

fn is_same_hub(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// Returns whether a hub is connected and has all changes.
fn is_in_sync(state: Option<&HubState>, asked: Option<&usize>) -> bool {
    state.is_some_and(|state| {
        let files = state.blobs.going + state.blobs.busy;
        state.reach == HubConnection::Online && state.behind.is_empty() && files == 0 && Some(&state.documents) == asked
    })
}

impl SyncState {
    /// Records which writes since the last call are waiting for hubs.
    pub(in crate::session) fn track_outbox(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &RunsState,
    ) {
        for at in std::mem::replace(&mut turn.tracked_effects, turn.effects.len())..turn.effects.len() {
            let Effect::Append { writes, .. } = &mut turn.effects[at] else { continue };
            let kept = self.track_outbox_writes(volumes, runs, turn.now, writes);
            writes.extend(kept);
        }
    }

    /// Records that these writes are waiting for hubs. Returns the record to store in the same commit.
    fn track_outbox_writes(
        &mut self,
        volumes: &VolumesState,
        runs: &RunsState,
        now: UnixMillis,
        writes: &[RowWrite],
    ) -> Option<RowWrite> {
        if self.shares.hubs.is_empty() {
            return None;
        }
        let docs: BTreeSet<DocId> = writes
            .iter()
            .filter_map(|write| match write {
                RowWrite::Chunk { doc, .. } => Some(*doc),
                _ => None,
            })
            .collect();
        let mut new = false;
        for doc in docs {
            let known = |hub: &SharedHub| self.outboxes.get(&hub.url).is_some_and(|outbox| outbox.waits.contains(&doc));
            if self.shares.hubs.iter().all(known) {
                self.changed = Some(now);
                continue;
            }
            let Some(volume) = self.volume_of_document(volumes, runs, doc) else { continue };
            for hub in self.shares.hubs.iter().filter(|hub| hub.volumes.contains(&volume)) {
                self.changed = Some(now);
                new |= self.outboxes.get_mut(&hub.url).is_some_and(|outbox| outbox.waits.insert(doc));
            }
        }
        let count: usize = self.outboxes.values().map(|outbox| outbox.waits.len()).sum();
        if new && count > MAX_IMMEDIATE_OUTBOX_WRITES {
            self.outbox_due.get_or_insert(now.plus_ms(OUTBOX_SAVE_INTERVAL_MS));
            return None;
        }
        new.then(|| self.outbox_write())
    }

    /// Returns the volume that a document belongs to.
    fn volume_of_document(&self, all_volumes: &VolumesState, runs: &RunsState, doc: DocId) -> Option<DocId> {
        let note = self.notes.get(&doc).copied().unwrap_or(doc);
        if let Some((volume, _)) = all_volumes.locate_file(note) {
            return Some(volume);
        }
        let mut volumes = all_volumes.by_id.keys().copied();
        volumes.find(|volume| *volume == doc || self.is_shared(*volume) && runs.agent_docs(*volume).contains(&doc))
    }

    /// Counts the documents that belong to a volume, or may belong to it: while it's being read, not all are known.
    pub(super) fn count_waiting<'a>(
        &self,
        volumes: &VolumesState,
        runs: &RunsState,
        volume: DocId,
        waits: impl Iterator<Item = &'a DocId>,
    ) -> usize {
        waits.filter(|doc| self.volume_of_document(volumes, runs, **doc).is_none_or(|of| of == volume)).count()
    }

    /// Returns whether a volume is shared over the hub at this address.
    pub(in crate::session) fn is_shared_over(&self, url: &str, volume: DocId) -> bool {
        self.shares.hubs.iter().any(|hub| is_same_hub(&hub.url, url) && hub.volumes.contains(&volume))
    }

    /// Returns whether the hub at this address has all changes of a document.
    pub(in crate::session) fn is_delivered(&self, url: &str, doc: DocId) -> bool {
        self.outboxes.iter().any(|(at, outbox)| is_same_hub(at, url) && !outbox.waits.contains(&doc))
    }

    /// Empties the outboxes of hubs that have been in sync for a while.
    pub(super) fn step_outbox(&mut self, turn: &mut ApplyContext<'_>, all_volumes: &VolumesState, runs: &RunsState) {
        self.track_outbox(turn, all_volumes, runs);
        if let Some(due) = self.outbox_due {
            if turn.now >= due {
                self.save_outbox(turn);
            } else {
                turn.wake_at(due);
            }
        }
        if !turn.journal.in_flight.is_empty() {
            self.changed = Some(turn.now); // the hub hears of it only once it's on disk
        }
        let due = self.changed.map_or(turn.now, |at| at.plus_ms(OUTBOX_QUIET_MS));
        let mut new = false;
        for hub in &self.shares.hubs {
            let volumes: BTreeSet<DocId> = hub.volumes.difference(&hub.coming).copied().collect();
            let known = |outbox: &HubOutbox| outbox.waits.is_empty() && outbox.volumes == volumes;
            if !is_in_sync(self.states.get(&hub.url), self.requested_counts.get(&hub.url))
                || self.outboxes.get(&hub.url).is_some_and(known)
            {
                continue;
            }
            if turn.now < due {
                return turn.wake_at(due);
            }
            let outbox = HubOutbox { at: turn.now, volumes, waits: BTreeSet::new() };
            self.outboxes.insert(hub.url.clone(), outbox);
            new = true;
        }
        if new {
            self.save_outbox(turn);
        }
    }

    /// Records when hubs were last connected, because one has disconnected (`url`) or the program ends.
    pub(in crate::session) fn on_hub_left(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        runs: &RunsState,
        url: Option<&str>,
    ) {
        self.step_outbox(turn, volumes, runs);
        let mut new = self.outbox_due.is_some();
        for (at, outbox) in &mut self.outboxes {
            let online = self.states.get(at).is_some_and(|state| state.reach == HubConnection::Online);
            if online && url.is_none_or(|url| url == at) {
                outbox.at = turn.now;
                new = true;
            }
        }
        if new {
            self.save_outbox(turn);
        }
    }
}

impl crate::session::state::sync::SyncState {
    pub(in crate::session) fn outbox_write(&self) -> RowWrite {
        RowWrite::Meta { key: OUTBOX_KEY.to_owned(), value: serde_json::to_vec(&self.outboxes).ok() }
    }

    /// Removes volumes and hubs that are no longer shared.
    pub(super) fn prune_outboxes(&mut self) {
        let hubs = &self.shares.hubs;
        self.outboxes.retain(|url, outbox| {
            let hub = hubs.iter().find(|hub| hub.url == *url);
            outbox.volumes.retain(|volume| hub.is_some_and(|hub| hub.volumes.contains(volume)));
            hub.is_some()
        });
    }
}
