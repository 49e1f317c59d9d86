//! Sync over the local network: all reachable paired devices together act as one hub.

use super::{SyncTask, SyncThread, share_policy};
use anyhow::bail;
use engine::{HubConnection, LAN_HUB_ADDRESS};
use peers::lan_peers::{LanConfig, LanPeerEvent, LanPeers};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use store::DocId;
use store::sync::{DocumentAccess, LinkId};

/// Delay before another attempt to open the local network.
const LAN_START_RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Status while no device is reachable.
const NO_DEVICE_STATUS: &str = "no paired device is on this network now";

/// The paired devices that are reachable.
#[derive(Default)]
pub(super) struct NearbyDevices {
    pub(super) near: Option<LanPeers>,
    /// Name and differing documents of the device at each connection.
    pub(super) devices: BTreeMap<LinkId, (String, BTreeSet<DocId>)>,
}

impl NearbyDevices {
    /// Returns documents that differ from any reachable device.
    pub(super) fn unsynced_documents(&self) -> BTreeSet<DocId> {
        self.devices.values().flat_map(|(_, behind)| behind.iter().copied()).collect()
    }

    pub(super) fn close(&mut self) -> Vec<LinkId> {
        self.near = None;
        std::mem::take(&mut self.devices).into_keys().collect()
    }
}

/// Opens the endpoint on the local network.
///
/// # Errors
/// Returns an error if no device was paired, `TRACEBOOK_LAN` is invalid, or the endpoint can't be started.
fn open_lan(tasks: &std::sync::mpsc::Sender<SyncTask>) -> anyhow::Result<LanPeers> {
    let Some((key, _)) = crate::sync::devices::existing_device_key()? else {
        bail!("no device was paired yet: `tracebook pair` does it");
    };
    let place = LanConfig::from_env_value(std::env::var("TRACEBOOK_LAN").ok().as_deref())?;
    let tasks = tasks.clone();
    let tell = move |link, told| _ = tasks.send(SyncTask::LanEvent(link, told));
    Ok(LanPeers::start(key, crate::sync::devices::open_device_list()?, place, tell)?)
}

impl SyncThread {
    /// Opens the endpoint on the local network if it's due.
    pub(super) fn open_lan_if_due(&mut self) {
        let now = Instant::now();
        let Some(hub) = self.hubs.get_mut(LAN_HUB_ADDRESS) else { return };
        if self.paused || self.nearby.near.is_some() || hub.due.is_none_or(|due| due > now) {
            return;
        }
        hub.has_news = true;
        match open_lan(&self.tasks) {
            Ok(near) => {
                self.nearby.near = Some(near);
                (hub.due, hub.state.reach) = (None, HubConnection::Offline { why: NO_DEVICE_STATUS.to_owned() });
            }
            Err(why) => {
                (hub.due, hub.state.reach) =
                    (Some(now + LAN_START_RETRY_INTERVAL), HubConnection::Offline { why: why.to_string() })
            }
        }
    }

    /// Handles an event from the local network.
    pub(super) fn handle_lan_event(&mut self, link: LinkId, told: LanPeerEvent) {
        let Some(hub) = self.hubs.get_mut(LAN_HUB_ADDRESS).filter(|_| self.nearby.near.is_some()) else { return };
        hub.has_news = true;
        match told {
            LanPeerEvent::Open { name, access, dialed } => {
                hub.state.seen = Some(crate::clock::unix_now());
                hub.state.reach = HubConnection::Online;
                hub.log_lines.push(format!("{name} is on the local network"));
                let (shown, volumes, behind) = (hub.shown.clone(), hub.volumes.clone(), (*hub.docs).clone());
                self.connection_log.opened(link, LAN_HUB_ADDRESS);
                self.nearby.devices.insert(link, (name, behind));
                self.links.insert(link, LAN_HUB_ADDRESS.to_owned());
                let most = match access {
                    store::DeviceAccess::None => DocumentAccess::None,
                    store::DeviceAccess::Read => DocumentAccess::Read,
                    store::DeviceAccess::Write => DocumentAccess::Write,
                };
                let all = share_policy(shown);
                self.peers.connect(link, dialed, None, Box::new(move |doc| all(doc).min(most)));
                for (volume, docs) in volumes {
                    self.peers.follow_volume(link, volume, docs);
                }
            }
            LanPeerEvent::Message(bytes) => {
                hub.state.seen = Some(crate::clock::unix_now());
                hub.state.received += bytes.len() as u64;
                self.peers.receive(link, &bytes);
            }
            LanPeerEvent::Closed(why) => {
                self.peers.disconnect(link);
                self.remove_lan_device(link, &why);
            }
            LanPeerEvent::Unavailable(why) => hub.state.reach = HubConnection::Offline { why },
        }
    }

    /// Removes a device that has disconnected.
    pub(super) fn remove_lan_device(&mut self, link: LinkId, why: &str) {
        self.links.remove(&link);
        let Some((name, _)) = self.nearby.devices.remove(&link) else { return };
        self.connection_log.closed(link, why);
        let Some(hub) = self.hubs.get_mut(LAN_HUB_ADDRESS) else { return };
        hub.log_lines.push(format!("{name} left the local network ({why})"));
        hub.has_news = true;
        if self.nearby.devices.is_empty() {
            hub.state.reach = HubConnection::Offline { why: NO_DEVICE_STATUS.to_owned() };
        }
    }

    /// Applies a change of what's shared on the local network.
    pub(super) fn update_lan_targets(
        &mut self,
        new: &[DocId],
        before: &BTreeMap<DocId, Arc<BTreeSet<DocId>>>,
        fewer: bool,
    ) {
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
                // A connection's maximum rights are fixed, so with other rights it must be opened again.
                self.peers.disconnect(link);
                if let Some(near) = &self.nearby.near {
                    near.close(link);
                }
                self.remove_lan_device(link, "other documents are shared with it now");
                continue;
            }
            self.announce_documents(link, &volumes, before);
        }
    }

    /// Closes all connections on the local network.
    pub(super) fn leave_lan(&mut self) {
        for link in self.nearby.close() {
            self.links.remove(&link);
            self.peers.disconnect(link);
        }
    }
}
