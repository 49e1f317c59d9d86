//! Sync over the local network: all reachable paired devices together act as one hub.

use super::{SyncTask, SyncThread, share};
use engine::{HubConnection, LAN_HUB_ADDRESS};
use peers::lan_peers::{LanConfig, LanPeerEvent, LanPeers};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use store::DocId;
use store::sync::{DocumentAccess, LinkId};

/// What cannot be begun is tried again after this time.
const LAN_START_RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Status while no device is reachable.
const NOBODY: &str = "no paired device is on this network now";

/// The reachable devices.
#[derive(Default)]
pub(super) struct NearbyDevices {
    pub(super) near: Option<LanPeers>,
    /// Each connection: the device's name, and documents that differ.
    pub(super) devices: BTreeMap<LinkId, (String, BTreeSet<DocId>)>,
}

impl NearbyDevices {
    /// Returns documents that differ from any reachable device.
    pub(super) fn behind(&self) -> BTreeSet<DocId> {
        self.devices.values().flat_map(|(_, behind)| behind.iter().copied()).collect()
    }

    pub(super) fn end(&mut self) -> Vec<LinkId> {
        self.near = None;
        std::mem::take(&mut self.devices).into_keys().collect()
    }
}

/// Opens the endpoint on the local network, or returns why it can't now.
fn open(tasks: &std::sync::mpsc::Sender<SyncTask>) -> Result<LanPeers, String> {
    let Some((key, _)) = crate::sync::devices::known_key()? else {
        return Err("no device was paired yet: `tracebook pair` does it".to_owned());
    };
    let place = LanConfig::from_env_value(std::env::var("TRACEBOOK_LAN").ok().as_deref())?;
    let tasks = tasks.clone();
    LanPeers::start(key, crate::sync::devices::list()?, place, move |link, told| {
        _ = tasks.send(SyncTask::Near(link, told))
    })
}

impl SyncThread {
    /// Opens the endpoint if it's time.
    pub(super) fn look_near(&mut self) {
        let now = Instant::now();
        let Some(hub) = self.hubs.get_mut(LAN_HUB_ADDRESS) else { return };
        if self.paused || self.nearby.near.is_some() || hub.due.is_none_or(|due| due > now) {
            return;
        }
        hub.news = true;
        match open(&self.tasks) {
            Ok(near) => {
                self.nearby.near = Some(near);
                (hub.due, hub.state.reach) = (None, HubConnection::Offline { why: NOBODY.to_owned() });
            }
            Err(why) => {
                (hub.due, hub.state.reach) = (Some(now + LAN_START_RETRY_INTERVAL), HubConnection::Offline { why })
            }
        }
    }

    /// Something has happened on the local network.
    pub(super) fn told_near(&mut self, link: LinkId, told: LanPeerEvent) {
        let Some(hub) = self.hubs.get_mut(LAN_HUB_ADDRESS).filter(|_| self.nearby.near.is_some()) else { return };
        hub.news = true;
        match told {
            LanPeerEvent::Open { name, access, dialed } => {
                hub.state.seen = Some(crate::driver::now());
                hub.state.reach = HubConnection::Online;
                hub.said.push(format!("{name} is on the local network"));
                let (shown, volumes, behind) = (hub.shown.clone(), hub.volumes.clone(), (*hub.docs).clone());
                self.nearby.devices.insert(link, (name, behind));
                self.links.insert(link, LAN_HUB_ADDRESS.to_owned());
                let most = match access {
                    store::DeviceAccess::None => DocumentAccess::None,
                    store::DeviceAccess::Read => DocumentAccess::Read,
                    store::DeviceAccess::Write => DocumentAccess::Write,
                };
                let all = share(shown);
                self.peers.connect(link, dialed, None, Box::new(move |doc| all(doc).min(most)));
                for (volume, docs) in volumes {
                    self.peers.follow_volume(link, volume, docs);
                }
            }
            LanPeerEvent::Message(bytes) => {
                hub.state.seen = Some(crate::driver::now());
                hub.state.received += bytes.len() as u64;
                self.peers.receive(link, &bytes);
            }
            LanPeerEvent::Closed(why) => {
                self.peers.disconnect(link);
                self.lost_near(link, &why);
            }
            LanPeerEvent::Unavailable(why) => hub.state.reach = HubConnection::Offline { why },
        }
    }

    /// A device disconnected.
    pub(super) fn lost_near(&mut self, link: LinkId, why: &str) {
        self.links.remove(&link);
        let Some((name, _)) = self.nearby.devices.remove(&link) else { return };
        let Some(hub) = self.hubs.get_mut(LAN_HUB_ADDRESS) else { return };
        hub.said.push(format!("{name} left the local network ({why})"));
        hub.news = true;
        if self.nearby.devices.is_empty() {
            hub.state.reach = HubConnection::Offline { why: NOBODY.to_owned() };
        }
    }

    /// What is shared on the local network has become other.
    pub(super) fn wanted_near(&mut self, new: &[DocId], before: &BTreeMap<DocId, Arc<BTreeSet<DocId>>>, fewer: bool) {
        let Some(hub) = self.hubs.get(LAN_HUB_ADDRESS) else { return };
        let (shown, volumes) = (hub.shown.clone(), hub.volumes.clone());
        let links: Vec<LinkId> = self.nearby.devices.keys().copied().collect();
        for link in links {
            if let Some((_, behind)) = self.nearby.devices.get_mut(&link) {
                let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
                behind.retain(|doc| shown.contains(doc));
                behind.extend(new);
            }
            if fewer {
                // A connection's maximum rights are fixed: with other rights, it starts again.
                self.peers.disconnect(link);
                if let Some(near) = &self.nearby.near {
                    near.close(link);
                }
                self.lost_near(link, "other documents are shared with it now");
                continue;
            }
            self.speak_of(link, &volumes, before);
        }
    }

    /// Nothing is shared there now.
    pub(super) fn leave_near(&mut self) {
        for link in self.nearby.end() {
            self.links.remove(&link);
            self.peers.disconnect(link);
        }
    }
}
