//! A peer that sends a hub blobs that don't match their names, or that it isn't allowed to send.

use super::{HUB, Meeting, SOON};
use host::hub::{HubPolicy, HubServer, HubSettings, OpenAccess};
use host::peers::DeviceKey;
use host::peers::hub_client::{HubClient, HubEvent};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::sync::blobs::{BLOBS_TOPIC, BLOBS_VERSION, BlobCommand, BlobExtent, BlobLimits, BlobTransfers, VolumeBlob};
use store::sync::peers::SyncLimits as PeerLimits;
use store::sync::{DocumentAccess, PeerId, PeerMetadata, PeersOutput, SyncPeers};
use store::{BlobHash, DocId};

const VOLUME: DocId = DocId([5; 16]);

fn writes(_: u64, _: DocId) -> DocumentAccess {
    DocumentAccess::Write
}

/// Whether the hub has the complete blob with this hash.
fn keeps(meeting: &Meeting, hash: BlobHash) -> bool {
    keeps_in(meeting, "blobs", hash)
}

/// Whether the hub has the complete blob with this hash as the file of a state.
fn keeps_state(meeting: &Meeting, hash: BlobHash) -> bool {
    keeps_in(meeting, "states/blobs", hash)
}

fn keeps_in(meeting: &Meeting, folder: &str, hash: BlobHash) -> bool {
    let name = hash.to_string();
    let folder = meeting.folder.path().join("volumes").join(VOLUME.to_string()).join(folder);
    folder.join(&name[..2]).join(&name[2..]).exists()
}

/// Starts a hub on this folder with changed settings.
fn meeting(folder: tempfile::TempDir, set: impl FnOnce(&mut HubSettings)) -> Meeting {
    let key = DeviceKey::generate().expect("a key");
    let id = key.id().to_string();
    let mut settings = HubSettings::new(folder.path().to_owned());
    (settings.listen, settings.open) = (([127, 0, 0, 1], 0).into(), OpenAccess::Loopback);
    set(&mut settings);
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let lines = Arc::clone(&log);
    let hub = HubServer::start(settings, key, Arc::new(move |line| lines.lock().expect("lock").push(line.to_owned())));
    let hub = hub.expect("a hub");
    let at = hub.public_address().to_owned();
    Meeting { folder, hub: Some(hub), at, id, log }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Sends blobs under these names until the hub stays silent for a while, then requests the blobs in `wants` and returns
/// those that arrived.
fn bring(at: &str, named: &[(BlobHash, Vec<u8>)], wants: &[(BlobHash, u64)]) -> HashMap<BlobHash, Vec<u8>> {
    exchange(at, named, wants, (false, &[]))
}

/// Sends blobs as files of states.
fn bring_states(at: &str, named: &[(BlobHash, Vec<u8>)]) {
    exchange(at, named, &[], (true, &[]));
}

/// Asks the hub to forget files.
fn withdraw(at: &str, hashes: &[BlobHash]) {
    exchange(at, &[], &[], (false, hashes));
}

/// Sends and requests blobs as [`bring`] does. `are_states`: it sends them as files of states. The files in `withdrawn`
/// are to be forgotten.
fn exchange(
    at: &str,
    named: &[(BlobHash, Vec<u8>)],
    wants: &[(BlobHash, u64)],
    (are_states, withdrawn): (bool, &[BlobHash]),
) -> HashMap<BlobHash, Vec<u8>> {
    let (tell, told) = channel();
    let client = HubClient::start(|| Ok((None, BTreeMap::new())), move |_, one| _ = tell.send(one)).expect("a thread");
    client.dial(HUB, format!("{at}/"));
    let metadata = PeerMetadata { ephemeral: true, blobs: Some(BLOBS_VERSION), ..PeerMetadata::default() };
    let mut peers = SyncPeers::new(PeerId("bringer".to_owned()), metadata, PeerLimits::default());
    peers.connect(HUB, true, None, Box::new(|_| DocumentAccess::Write));
    let mut blobs = BlobTransfers::new(false, BlobLimits::default());
    let items = |hashes: &mut dyn Iterator<Item = BlobHash>| -> BTreeSet<VolumeBlob> {
        hashes.map(|hash| VolumeBlob { volume: VOLUME, hash }).collect()
    };
    blobs.set_state_files(items(&mut named.iter().filter(|_| are_states).map(|(hash, _)| *hash)), &writes);
    blobs.set_withdrawn(items(&mut withdrawn.iter().copied()), &writes);
    for (hash, bytes) in named {
        blobs.add_held(VolumeBlob { volume: VOLUME, hash: *hash }, bytes.len() as u64, &writes);
    }
    for (hash, size) in wants {
        blobs.want(VolumeBlob { volume: VOLUME, hash: *hash }, Some(*size), true, &writes);
    }
    let (mut came, mut quiet, begun) = (HashMap::<BlobHash, Vec<u8>>::new(), 0, Instant::now());
    while quiet < 10 {
        assert!(begun.elapsed() < SOON, "it goes on and on");
        quiet += 1;
        match told.recv_timeout(Duration::from_millis(50)) {
            Ok(HubEvent::Message(bytes)) => {
                quiet = 0;
                peers.receive(HUB, &bytes);
            }
            Ok(HubEvent::Closed(why)) => panic!("documents are not concerned: {why}"),
            Ok(HubEvent::Open | HubEvent::Notice(_)) | Err(_) => {}
        }
        loop {
            let outputs = peers.take_outputs();
            blobs.advance(0, &writes, &|_| true);
            let deeds = blobs.take_commands();
            if outputs.is_empty() && deeds.is_empty() {
                break;
            }
            for output in outputs {
                match output {
                    PeersOutput::Send { bytes, .. } => client.send(HUB, bytes),
                    PeersOutput::Greeted { peer, metadata, .. } => {
                        assert_eq!(metadata.blobs, Some(BLOBS_VERSION));
                        blobs.connect(HUB, peer, !metadata.ephemeral, &writes);
                        blobs.set_peer_version(HUB, BLOBS_VERSION, &writes);
                    }
                    PeersOutput::Extension { topic, data, .. } if topic == BLOBS_TOPIC => {
                        blobs.receive(HUB, &data, 0, &writes)
                    }
                    _ => {}
                }
            }
            for deed in deeds {
                match deed {
                    BlobCommand::Send { data, .. } => peers.send_extension(HUB, BLOBS_TOPIC, data),
                    BlobCommand::Probe { item, .. } => blobs.on_probed(item, BlobExtent::Part(0), &writes),
                    BlobCommand::Read { link, item, offset } => {
                        let found = named.iter().find(|(hash, _)| *hash == item.hash).map(|(_, bytes)| {
                            let at = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                            (bytes.len() as u64, bytes[at..].iter().take(64 << 10).copied().collect())
                        });
                        blobs.on_read(link, item, offset, found);
                    }
                    BlobCommand::Write { item, bytes, .. } => came.entry(item.hash).or_default().extend(bytes),
                    BlobCommand::Check { .. }
                    | BlobCommand::Remove { .. }
                    | BlobCommand::Forgotten { .. }
                    | BlobCommand::Arrived { .. }
                    | BlobCommand::Log { .. }
                    | BlobCommand::Refused { .. } => {}
                }
            }
        }
    }
    came
}

#[test]
fn what_is_not_what_it_is_called_is_not_kept() {
    let meeting = meeting(folder(), |_| {});
    let (wrong, right) = (BlobHash::of(b"something else"), vec![7; 200_000]);
    let named = [(wrong, vec![1; 200_000]), (BlobHash::of(&right), right.clone())];
    bring(&meeting.at, &named, &[]);
    meeting.logged("it sent something else under the name of a picture");
    assert!(!keeps(&meeting, wrong) && keeps(&meeting, BlobHash::of(&right)));
    let came = bring(&meeting.at, &[], &[(BlobHash::of(&right), 200_000), (wrong, 200_000)]);
    assert_eq!(came.get(&BlobHash::of(&right)), Some(&right));
    assert!(!came.contains_key(&wrong));
}

#[test]
fn who_may_only_read_brings_nothing_and_gets_what_is_there() {
    let mut before = meeting(folder(), |_| {});
    let (theirs, ours) = (vec![7; 100_000], vec![8; 100_000]);
    bring(&before.at, &[(BlobHash::of(&theirs), theirs.clone())], &[]);
    assert!(keeps(&before, BlobHash::of(&theirs)));
    // The same hub, now with read access only.
    drop(before.hub.take());
    let policy = HubPolicy { default: store::DeviceAccess::Read, ..HubPolicy::default() };
    policy.save(before.folder.path()).expect("saved");
    let meeting = meeting(before.folder, |_| {});
    let named = [(BlobHash::of(&ours), ours.clone())];
    let came = bring(&meeting.at, &named, &[(BlobHash::of(&theirs), 100_000)]);
    assert_eq!(came.get(&BlobHash::of(&theirs)), Some(&theirs));
    meeting.logged("it brings pictures to a volume that it may only read");
    assert!(!keeps(&meeting, BlobHash::of(&ours)));
}

#[test]
fn variables_that_are_withdrawn_are_deleted_and_nothing_else_is() {
    let meeting = meeting(folder(), |_| {});
    let named = |byte: u8| (BlobHash::of(&[byte; 100_000]), vec![byte; 100_000]);
    let (picture, pages, both) = (named(7), named(8), named(9));
    bring(&meeting.at, std::slice::from_ref(&picture), &[]);
    // A device calls a picture that is there the file of a state. It stays a picture.
    bring_states(&meeting.at, &[picture.clone(), pages.clone(), both.clone()]);
    assert!(keeps_state(&meeting, pages.0) && keeps_state(&meeting, both.0));
    assert!(keeps(&meeting, picture.0) && !keeps_state(&meeting, picture.0));
    // Variables that another device brings as a picture are one from then on.
    bring(&meeting.at, std::slice::from_ref(&both), &[]);
    withdraw(&meeting.at, &[picture.0, pages.0, both.0]);
    assert!(!keeps_state(&meeting, pages.0) && !keeps(&meeting, pages.0));
    let wants = [(picture.0, 100_000), (pages.0, 100_000), (both.0, 100_000)];
    let came = bring(&meeting.at, &[], &wants);
    assert_eq!((came.get(&picture.0), came.get(&both.0)), (Some(&picture.1), Some(&both.1)));
    assert!(!came.contains_key(&pages.0));
}

#[test]
fn who_may_only_read_deletes_no_variables() {
    let mut before = meeting(folder(), |_| {});
    let pages = (BlobHash::of(&[7; 100_000]), vec![7; 100_000]);
    bring_states(&before.at, std::slice::from_ref(&pages));
    drop(before.hub.take());
    let policy = HubPolicy { default: store::DeviceAccess::Read, ..HubPolicy::default() };
    policy.save(before.folder.path()).expect("saved");
    let meeting = meeting(before.folder, |_| {});
    withdraw(&meeting.at, &[pages.0]);
    meeting.logged("it asks to delete variables of a volume that it may not change");
    assert!(keeps_state(&meeting, pages.0));
}

#[test]
fn what_has_no_room_is_not_taken() {
    let meeting = meeting(folder(), |settings| settings.quota = 150_000);
    let (small, large) = (vec![7; 100_000], vec![8; 400_000]);
    let named = [(BlobHash::of(&large), large.clone()), (BlobHash::of(&small), small.clone())];
    bring(&meeting.at, &named, &[]);
    meeting.logged("for which no room is left");
    assert!(keeps(&meeting, BlobHash::of(&small)) && !keeps(&meeting, BlobHash::of(&large)));
    // Used space stays used.
    bring(&meeting.at, &[(BlobHash::of(&[9; 100_000]), vec![9; 100_000])], &[]);
    assert!(!keeps(&meeting, BlobHash::of(&[9; 100_000])));
}
