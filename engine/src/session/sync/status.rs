//! Sync status and progress as shown to the user: overall, of a volume, of a note.

use crate::records::sync::{DeliveryState, HubConnection, HubState};
use crate::session::state::FilesState;
use crate::session::state::runs::RunsState;
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use std::collections::BTreeSet;
use store::DocId;
use text::time::UnixMillis;

/// Overall status of sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncStatus {
    /// No volume is shared.
    NotShared,
    /// The user has paused sync.
    Paused,
    /// No hub is reachable. This isn't an error: changes are saved here and sent later.
    Offline,
    /// Connecting to hubs.
    Connecting,
    /// Number of documents that are being sent or received.
    Syncing(usize),
    /// All reachable hubs have all changes.
    Synced {
        /// Number of unreachable hubs.
        away: usize,
    },
}

impl SyncStatus {
    /// Describes the status in a few words.
    pub fn describe(&self) -> String {
        match self {
            SyncStatus::NotShared => "Nothing is shared".to_owned(),
            SyncStatus::Paused => "Sync paused".to_owned(),
            SyncStatus::Offline => "Offline".to_owned(),
            SyncStatus::Connecting => "Connecting…".to_owned(),
            SyncStatus::Syncing(1) => "1 to sync".to_owned(),
            SyncStatus::Syncing(many) => format!("{many} to sync"),
            SyncStatus::Synced { away: 0 } => "Synced".to_owned(),
            SyncStatus::Synced { away: 1 } => "Synced, 1 hub away".to_owned(),
            SyncStatus::Synced { away } => format!("Synced, {away} hubs away"),
        }
    }

    /// Explains the status in a sentence.
    pub fn explanation(&self) -> &'static str {
        match self {
            SyncStatus::NotShared => "Notes are only on this device.",
            SyncStatus::Paused => "All changes are saved on this device. Resume sync to send and receive changes.",
            SyncStatus::Offline => "All changes are saved on this device. They're sent when a hub is reachable again.",
            SyncStatus::Connecting => "All changes are saved on this device. Connecting to the hub…",
            SyncStatus::Syncing(_) => "All is saved on this device; the rest is on its way.",
            SyncStatus::Synced { away: 0 } => "All is saved on this device and at every hub.",
            SyncStatus::Synced { .. } => {
                "All is saved on this device and at every reachable hub. The others get it later."
            }
        }
    }
}

/// Sync progress of a volume or a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncProgress {
    /// How far the changes have been delivered.
    pub delivery: DeliveryState,
    /// Number of shared documents: for a volume its own, its notes and their outputs.
    pub documents: usize,
    /// Number of those documents that aren't the same everywhere yet.
    pub behind: usize,
    /// Number of notes whose names have arrived but not their text.
    pub coming: usize,
    /// When changes from another device last arrived since the program started.
    pub last_received: Option<UnixMillis>,
    /// When everything was last the same everywhere since the program started.
    pub last_synced: Option<UnixMillis>,
    /// When an unreachable hub was last connected, if everything was sent to it.
    pub hub_last_seen: Option<UnixMillis>,
    /// Whether it's the local network instead of a hub.
    pub lan: bool,
}

impl SyncProgress {
    /// Returns who is away and has everything, as one word, and when they were last connected.
    pub fn last_seen(&self) -> Option<(&'static str, UnixMillis)> {
        Some((if self.lan { "others" } else { "hub" }, self.hub_last_seen?))
    }

    /// Describes the progress for the user.
    pub fn describe(&self) -> String {
        match (self.delivery, self.coming, self.behind) {
            (DeliveryState::NotShared, ..) => "On this device only".to_owned(),
            (_, 1, _) => "1 note is coming".to_owned(),
            (_, coming @ 2.., _) => format!("{coming} notes are coming"),
            (DeliveryState::Synced, ..) => "Saved here and sent".to_owned(),
            (DeliveryState::SentToAwayHub, ..) => "All sent".to_owned(),
            (DeliveryState::SavedLocally, _, 0 | 1) => "Saved here, not sent yet".to_owned(),
            (DeliveryState::SavedLocally, _, behind) => format!("Saved here, {behind} not sent yet"),
        }
    }
}

impl SyncState {
    /// Returns the status of sync.
    pub(in crate::session) fn sync_status(&self) -> SyncStatus {
        let shares = &self.shares;
        if shares.hubs.is_empty() {
            return SyncStatus::NotShared;
        }
        if shares.paused {
            return SyncStatus::Paused;
        }
        let states: Vec<Option<&HubState>> = shares.hubs.iter().map(|hub| self.states.get(&hub.url)).collect();
        let online = || states.iter().flatten().filter(|state| state.reach == HubConnection::Online);
        if online().count() == 0 {
            let offline = |state: &Option<&HubState>| {
                state.is_some_and(|state| matches!(state.reach, HubConnection::Offline { .. }))
            };
            return if states.iter().all(offline) { SyncStatus::Offline } else { SyncStatus::Connecting };
        }
        let mut waiting: BTreeSet<DocId> = online().flat_map(|state| state.behind.iter().copied()).collect();
        waiting.extend(self.expected_notes.keys());
        waiting.extend(&self.undocumented_notes);
        match waiting.len() {
            0 => SyncStatus::Synced { away: states.len() - online().count() },
            some => SyncStatus::Syncing(some),
        }
    }

    /// Returns the sync progress of a volume, or of a note in it.
    pub(in crate::session) fn sync_progress(&self, files: &FilesState, runs: &RunsState, doc: DocId) -> SyncProgress {
        let volume = files.volumes.locate_file(doc).map_or(doc, |(volume, _)| volume);
        let whole = volume == doc;
        let (received, same) = (self.last_received.get(&doc).copied(), self.last_synced.get(&doc).copied());
        let sent = DeliveryState::NotShared;
        let mut spread = SyncProgress {
            delivery: sent,
            documents: 0,
            behind: 0,
            coming: 0,
            last_received: received,
            last_synced: same,
            hub_last_seen: None,
            lan: false,
        };
        if !self.is_shared(volume) {
            return spread;
        }
        // `known`: whether it's known what each hub lacks, because it's connected or had everything until it left.
        let (mut known, mut behind, mut waits) = (true, BTreeSet::new(), BTreeSet::new());
        let mut seen = None;
        // For a note, only its own document counts, and there may be very many others.
        let among = |docs: &BTreeSet<DocId>| match whole {
            true => docs.clone(),
            false => docs.get(&doc).copied().into_iter().collect(),
        };
        for hub in self.shares.hubs.iter().filter(|hub| hub.volumes.contains(&volume)) {
            let state = self.states.get(&hub.url);
            let online = state.is_some_and(|state| state.reach == HubConnection::Online);
            let outbox = self.outboxes.get(&hub.url).filter(|outbox| outbox.volumes.contains(&volume));
            if let Some(outbox) = outbox.filter(|_| !online) {
                waits.extend(among(&outbox.waits));
                seen = seen.max(Some((outbox.at, hub.url == crate::records::sync::LAN_HUB_ADDRESS)));
                continue;
            }
            known &= online;
            behind.extend(state.into_iter().flat_map(|state| among(&state.behind)));
        }
        if whole {
            let rows = || files.volumes.by_id.get(&volume).into_iter().flat_map(|volume| volume.files.values());
            let texts = || rows().filter(|row| row.kind.is_text());
            spread.documents = 1 + texts().map(|row| 1 + usize::from(row.cells > 0)).sum::<usize>();
            behind.extend(&self.undocumented_notes);
            spread.coming = self.expected_notes.values().filter(|(of, _)| *of == volume).count();
            let (placed, others): (Vec<DocId>, Vec<DocId>) =
                behind.iter().copied().partition(|one| *one == volume || files.volumes.locate_file(*one).is_some());
            let of =
                |one: &&DocId| **one == volume || files.volumes.locate_file(**one).is_some_and(|(of, _)| of == volume);
            spread.behind = placed.iter().filter(of).count();
            if !others.is_empty() {
                // The id of outputs doesn't identify their note, but the note's id gives the id of its outputs.
                let outputs = texts().filter(|row| row.cells > 0).map(|row| row.id.outputs_id());
                spread.behind += outputs.filter(|outputs| others.binary_search(outputs).is_ok()).count();
            }
            spread.behind += self.count_waiting(&files.volumes, runs, volume, waits.difference(&behind));
        } else {
            spread.documents = 1;
            spread.behind =
                usize::from(behind.contains(&doc) || waits.contains(&doc) || self.undocumented_notes.contains(&doc));
        }
        let ahead = files.notes.open.get(&doc).is_some_and(|note| !note.pending.is_empty());
        let done = known && !ahead && spread.behind == 0 && spread.coming == 0;
        spread.hub_last_seen = seen.filter(|_| done).map(|(at, _)| at);
        spread.lan = seen.is_some_and(|(_, lan)| lan);
        spread.delivery = match (done, spread.hub_last_seen) {
            (false, _) => DeliveryState::SavedLocally,
            (true, None) => DeliveryState::Synced,
            (true, Some(_)) => DeliveryState::SentToAwayHub,
        };
        spread
    }

    /// Records when documents became the same everywhere.
    pub(super) fn record_synced_times(
        &mut self,
        all_volumes: &VolumesState,
        now: UnixMillis,
        before: &HubState,
        after: &HubState,
    ) {
        if after.reach == HubConnection::Online {
            let done: Vec<DocId> = before.behind.difference(&after.behind).copied().collect();
            self.last_synced.extend(done.iter().map(|doc| (*doc, now)));
            let volumes: BTreeSet<DocId> =
                done.iter().filter_map(|doc| Some(all_volumes.locate_file(*doc)?.0)).collect();
            self.last_synced.extend(volumes.into_iter().map(|volume| (volume, now)));
        }
    }
}
