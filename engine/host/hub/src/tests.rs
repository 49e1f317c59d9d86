//! Tests of a hub over real sockets on loopback: what devices get, and what is rejected. Others continue after every
//! rejection.

use crate::{HubLog, HubPolicy, HubServer, HubSettings, InvitationGrant, OpenAccess, RunningHub, VolumePolicy};
use flate2::Compression;
use flate2::read::DeflateEncoder;
use peers::challenge::{ChallengeResponse, ChannelBinding, DeviceChallenge};
use peers::devices::{DeviceList, now_millis};
use peers::handshake::{self, DEVICE_PATH, FrameTransport, PAIR_PATH, PeerFrame};
use peers::hub_socket::{CertificateTrust, HubConnectError, HubSocket};
use peers::pairing::OneTimeCode;
use peers::pairing_flow::{device_card, device_entry};
use peers::{DeviceId, DeviceKey};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::sync::PeerId;
use store::sync::wire::{self, WireMessage};
use store::{ActorId, DeviceAccess, DocId, FileEntry, FileKind, VolumeDoc};
use support::PlainText;
use support::hub_probe::HubProbe;

const SOON: Duration = Duration::from_secs(60);
const DOC: DocId = DocId([7; 16]);

/// A hub with its folder, its key and its log.
struct House {
    folder: tempfile::TempDir,
    hub: Option<RunningHub>,
    id: DeviceId,
    key: DeviceKey,
    at: String,
    log: Arc<Mutex<Vec<String>>>,
    runtime: tokio::runtime::Runtime,
}

impl House {
    fn new(change: impl FnOnce(&mut HubSettings)) -> House {
        let folder = tempfile::tempdir().expect("a folder");
        let key = DeviceKey::generate().expect("key");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        let log = Arc::default();
        let mut house = House { id: key.id(), key, folder, hub: None, at: String::new(), log, runtime };
        house.start(change);
        house
    }

    fn start(&mut self, change: impl FnOnce(&mut HubSettings)) {
        let mut settings = HubSettings::new(self.folder.path().to_owned());
        settings.listen = ([127, 0, 0, 1], 0).into();
        change(&mut settings);
        let lines = Arc::clone(&self.log);
        let log: HubLog = Arc::new(move |line| lines.lock().expect("lock").push(line.to_owned()));
        let hub = HubServer::start(settings, self.key.clone(), log).expect("started");
        self.at = hub.public_address().to_owned();
        self.hub = Some(hub);
    }

    fn devices(&self) -> DeviceList {
        DeviceList::new(self.folder.path()).expect("chance")
    }

    /// Pairs a new device, and returns its key.
    fn paired(&self, name: &str, access: DeviceAccess) -> DeviceKey {
        let key = DeviceKey::generate().expect("key");
        self.devices().pair(key.id(), device_entry(&device_card(&key, name), access, false)).expect("kept");
        // The hub checks its folder at intervals.
        self.until("the list is read", |house| {
            house.run(async { HubProbe::device(&house.at, &key, house.id).await.is_ok() })
        });
        key
    }

    fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    #[track_caller]
    fn until(&self, what: &str, holds: impl Fn(&House) -> bool) {
        let end = Instant::now() + SOON;
        while !holds(self) {
            assert!(Instant::now() < end, "not in time: {what}; the log: {:#?}", self.lines());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn lines(&self) -> Vec<String> {
        self.log.lock().expect("lock").clone()
    }

    #[track_caller]
    fn logged(&self, words: &str) {
        self.until(words, |house| house.lines().iter().any(|line| line.contains(words)));
    }

    fn metrics(&self) -> String {
        let token = std::fs::read_to_string(self.folder.path().join("metrics-token")).expect("a token");
        self.run(get(&self.at, "/metrics", &format!("Authorization: Bearer {token}\r\n")))
    }

    async fn connect(&self, key: &DeviceKey) -> HubProbe {
        HubProbe::device(&self.at, key, self.id).await.expect("connected")
    }

    /// Checks that the hub still works after a refusal: two other devices exchange a change.
    #[track_caller]
    fn is_well(&self, name: &str) {
        let (one, two) = (
            self.paired(&format!("{name} one"), DeviceAccess::Write),
            self.paired(&format!("{name} two"), DeviceAccess::Write),
        );
        let doc = DocId(*blake3::hash(name.as_bytes()).as_bytes().first_chunk().expect("16 of 32"));
        self.run(async {
            let (mut one, mut two) = (self.connect(&one).await, self.connect(&two).await);
            let text = PlainText::new(name, ActorId::from([1; 16])).expect("made");
            one.send_change(doc, text.save()).await;
            one.follow(doc).await;
            assert!(one.receive_until(SOON, |one| one.peers.is_in_sync(1, doc) == Some(true)).await, "{:?}", one.ended);
            two.follow(doc).await;
            assert!(two.receive_until(SOON, |two| !two.heads(doc).is_empty()).await, "{:?}", two.ended);
            assert_eq!(read(&two, doc), name);
        });
    }
}

fn read(probe: &HubProbe, doc: DocId) -> String {
    let chunks = probe.chunks.get(&doc).cloned().unwrap_or_default();
    PlainText::load(&chunks, ActorId::from([250; 16])).and_then(|text| text.text()).unwrap_or_default()
}

#[test]
fn what_one_device_writes_others_get_also_after_a_restart() {
    let mut house = House::new(|_| {});
    let (one, two, late) = (
        house.paired("one", DeviceAccess::Write),
        house.paired("two", DeviceAccess::Write),
        house.paired("late", DeviceAccess::Read),
    );
    house.run(async {
        let (mut one, mut two) = (house.connect(&one).await, house.connect(&two).await);
        let mut text = PlainText::new("hello", ActorId::from([1; 16])).expect("made");
        one.send_change(DOC, text.save()).await;
        one.follow(DOC).await;
        assert!(one.receive_until(SOON, |one| one.peers.is_in_sync(1, DOC) == Some(true)).await, "{:?}", one.ended);
        two.follow(DOC).await;
        assert!(two.receive_until(SOON, |two| read(two, DOC) == "hello").await, "{:?}", two.ended);
        for at in 0..100 {
            one.send_change(DOC, text.insert(5 + at, "!").expect("typed")).await;
            one.receive_frame(Duration::from_micros(1)).await;
        }
        let whole = text.text().expect("text");
        let same = one.receive_until(SOON, |one| one.peers.is_in_sync(1, DOC) == Some(true)).await;
        if !same {
            let mut third = house.connect(&late).await;
            third.follow(DOC).await;
            third.receive_until(Duration::from_secs(5), |_| false).await;
            panic!("{:?} one {:?} hub {:?} {}", one.ended, one.heads(DOC), third.heads(DOC), read(&third, DOC).len());
        }
        assert!(two.receive_until(SOON, |two| read(two, DOC) == whole).await, "{}", read(&two, DOC));
        // An ephemeral message.
        one.send_ephemeral(DOC, &[0x61, b'x']).await;
        assert!(two.receive_until(SOON, |two| two.ephemeral == [vec![0x61, b'x']]).await);
        // A document that no peer has.
        two.follow(DocId([9; 16])).await;
        assert!(two.receive_until(SOON, |two| two.absent == [DocId([9; 16])]).await);
    });
    assert!(house.run(get(&house.at, "/metrics", "")).starts_with("HTTP/1.1 401"));
    let page = house.metrics();
    assert!(
        page.contains("tracebook_hub_connected_total") && page.contains("tracebook_hub_store_seconds_bucket"),
        "{page}"
    );
    assert!(house.run(get(&house.at, "/healthz", "")).ends_with("ok\n"));
    house.hub.take().expect("runs").stop();
    house.start(|_| {});
    house.run(async {
        let mut late = house.connect(&late).await;
        late.follow(DOC).await;
        assert!(late.receive_until(SOON, |late| read(late, DOC).len() == 105).await, "{:?}", late.ended);
    });
}

/// Fetches a page of the hub, as any program on this machine could.
async fn get(at: &str, path: &str, head: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let address = at.trim_start_matches("ws://");
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("there");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{head}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("asked");
    let mut page = String::new();
    stream.read_to_string(&mut page).await.expect("answered");
    page
}

#[test]
fn a_key_that_is_not_paired_or_revoked_is_refused() {
    let house = House::new(|_| {});
    let stranger = DeviceKey::generate().expect("key");
    let why = house.run(HubProbe::device(&house.at, &stranger, house.id)).err().expect("refused");
    assert!(why.contains("not paired"), "{why}");
    house.logged("was refused: this device is not paired here");
    let revoked_fast = |name: &str| {
        let known = house.paired(name, DeviceAccess::Write);
        let took = house.run(async {
            let mut phone = house.connect(&known).await;
            phone.follow(DOC).await;
            assert!(phone.receive_until(SOON, |phone| phone.absent == [DOC]).await);
            let since = Instant::now();
            house.devices().revoke(known.id()).expect("revoked");
            assert!(phone.receive_until(SOON, |phone| phone.ended.is_some()).await);
            assert_eq!(phone.ended.as_deref(), Some("this device was revoked"));
            since.elapsed()
        });
        let why = house.run(HubProbe::device(&house.at, &known, house.id)).err().expect("refused");
        assert!(why.contains("revoked"), "{why}");
        took < Duration::from_secs(1)
    };
    // Others may have the machine for a moment, so one fast attempt is enough; what is slow is slow in each.
    assert!(["phone", "pad", "watch", "ring", "lamp"].into_iter().any(revoked_fast));
    house.logged("was refused: this device was revoked");
    // Proving the key before the revocation, and greeting after it, doesn't help either.
    let late = house.paired("late", DeviceAccess::Write);
    house.run(async {
        let mut late_phone = house.connect(&late).await;
        house.devices().revoke(late.id()).expect("revoked");
        let again = || async { HubProbe::device(&house.at, &late, house.id).await.is_ok() };
        while again().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        late_phone.follow(DOC).await;
        assert!(late_phone.receive_until(SOON, |phone| phone.ended.is_some() || !phone.absent.is_empty()).await);
        assert_eq!(late_phone.ended.as_deref(), Some("this device was revoked"));
    });
    // A program without a key isn't admitted, unless the settings allow it.
    assert!(house.run(HubProbe::open(&house.at, "/", "somebody")).is_err());
    house.logged("it isn't a paired device and has no token");
    house.is_well("strangers");
}

#[test]
fn pairing_takes_the_right_code_and_five_wrong_ones_end_it() {
    let house = House::new(|settings| settings.tls = crate::TlsMode::Own);
    let hub = house.hub.as_ref().expect("runs");
    let join = |code: String, key: &DeviceKey, name: &str| {
        let (key, ours) = (key.clone(), device_card(key, name));
        house.run(async move {
            let connected = HubSocket::connect(hub.public_address(), PAIR_PATH, &CertificateTrust::Any).await;
            let (mut way, binding) = connected.map_err(|why| why.to_string())?;
            handshake::join_pairing(&mut way, &key, &ours, &code, Some(house.id), &binding)
                .await
                .map(|card| (card, binding))
                .map_err(|why| why.to_string())
        })
    };
    let phone = DeviceKey::generate().expect("key");
    assert!(join("0000-0000".to_owned(), &phone, "phone").expect_err("none").contains("no code is waiting"));
    let invited = || InvitationGrant {
        offer: OneTimeCode::new(now_millis()).expect("chance"),
        access: DeviceAccess::Write,
        admin: false,
    };
    let code = hub.invite(invited()).code;
    let wrong = if code.starts_with('1') { "2222-2222" } else { "1111-1111" };
    for _ in 0..5 {
        assert!(join(wrong.to_owned(), &phone, "phone").expect_err("wrong").contains("the code is wrong"));
    }
    assert!(join(code, &phone, "phone").expect_err("used up").contains("tried too often"));
    house.logged("was not paired: the code is wrong, and was tried too often");
    assert!(house.devices().list().expect("read").is_empty());
    // A new code, and a malicious name, which is stored as a plain name.
    let code = hub.invite(invited()).code;
    let (met, binding) = join(code.clone(), &phone, "../../etc/passwd\n\u{1b}[2J").expect("paired");
    assert_eq!(met.device, house.id);
    house.until("it is listed", |house| house.devices().list().expect("read").contains_key(&phone.id()));
    assert_eq!(house.devices().list().expect("read")[&phone.id()].name, "../../etc/passwd[2J");
    assert!(join(code, &phone, "phone").is_err(), "a code is used once");
    // Over TLS, only with the certificate that was seen at pairing.
    let seen = binding.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(met.certificate, Some(seen.clone()));
    house.run(async {
        let (mut way, binding) = HubSocket::connect(hub.public_address(), DEVICE_PATH, &CertificateTrust::Pinned(seen))
            .await
            .expect("the same");
        handshake::authenticate_to_listener(&mut way, &phone, house.id, &binding).await.expect("known");
        let other =
            HubSocket::connect(hub.public_address(), DEVICE_PATH, &CertificateTrust::Pinned("00".repeat(32))).await;
        assert!(matches!(other, Err(HubConnectError::OtherCertificate { .. })));
        // A machine-in-the-middle with another certificate.
        let (mut way, _) =
            HubSocket::connect(hub.public_address(), DEVICE_PATH, &CertificateTrust::Any).await.expect("there");
        let middle = ChannelBinding::from_certificate(b"the middle's");
        let bound = handshake::authenticate_to_listener(&mut way, &phone, house.id, &middle).await;
        assert!(bound.is_err_and(|why| why.to_string().contains("does not hold")));
    });
    house.logged("the proof of the device's key does not hold");
}

#[test]
fn a_recorded_handshake_opens_nothing() {
    let house = House::new(|_| {});
    let key = house.paired("phone", DeviceAccess::Write);
    let word = |frame: Option<PeerFrame>| match frame {
        Some(PeerFrame::Text(text)) => text,
        other => panic!("no word: {other:?}"),
    };
    house.run(async {
        let (mut way, binding) =
            HubSocket::connect(&house.at, DEVICE_PATH, &CertificateTrust::Any).await.expect("there");
        let challenge: DeviceChallenge = serde_json::from_str(&word(way.next_frame().await)).expect("a challenge");
        let (_, answer) =
            peers::challenge::CallerHandshake::respond(&key, house.id, &challenge, &binding).expect("answered");
        let recorded: String = serde_json::to_string(&answer).expect("text");
        way.send_frame(PeerFrame::Text(recorded.clone())).await.expect("sent");
        assert!(word(way.next_frame().await).contains("signature"), "it was good once");
        let (mut again, _) = HubSocket::connect(&house.at, DEVICE_PATH, &CertificateTrust::Any).await.expect("there");
        word(again.next_frame().await);
        again.send_frame(PeerFrame::Text(recorded)).await.expect("sent");
        assert!(word(again.next_frame().await).contains("does not hold"));
        // Another device's id, signed with the caller's own key.
        let (mut third, _) = HubSocket::connect(&house.at, DEVICE_PATH, &CertificateTrust::Any).await.expect("there");
        let challenge: DeviceChallenge = serde_json::from_str(&word(third.next_frame().await)).expect("a challenge");
        let own = DeviceKey::generate().expect("key");
        let (_, answer) =
            peers::challenge::CallerHandshake::respond(&own, house.id, &challenge, &binding).expect("answered");
        let posing = ChallengeResponse { device: key.id(), ..answer };
        third.send_frame(PeerFrame::Text(serde_json::to_string(&posing).expect("text"))).await.expect("sent");
        assert!(word(third.next_frame().await).contains("does not hold"));
    });
    house.logged("the proof of the device's key does not hold");
    house.is_well("replays");
}

fn join_as(name: &str) -> PeerFrame {
    let join = WireMessage::Join {
        sender: PeerId(name.to_owned()),
        versions: vec!["1".to_owned()],
        metadata: Default::default(),
    };
    PeerFrame::Binary(wire::encode(&join))
}

/// Reads frames until the hub closes the connection.
async fn drain(way: &mut HubSocket) {
    let drained = tokio::time::timeout(SOON, async { while way.next_frame().await.is_some() {} }).await;
    assert!(drained.is_ok(), "the hub did not hang up");
}

#[test]
fn nobody_speaks_in_the_name_of_another() {
    let house = House::new(|settings| settings.open = OpenAccess::Loopback);
    let (one, two) = (house.paired("one", DeviceAccess::Write), house.paired("two", DeviceAccess::Write));
    house.run(async {
        let mut victim = house.connect(&two).await;
        victim.follow(DOC).await;
        // With the right key and the wrong name.
        let (mut way, binding) =
            HubSocket::connect(&house.at, DEVICE_PATH, &CertificateTrust::Any).await.expect("there");
        handshake::authenticate_to_listener(&mut way, &one, house.id, &binding).await.expect("known");
        way.send_frame(join_as(&two.id().to_string())).await.expect("sent");
        drain(&mut way).await;
        // Without a key.
        let (mut way, _) = HubSocket::connect(&house.at, "/", &CertificateTrust::Any).await.expect("there");
        way.send_frame(join_as(&two.id().to_string())).await.expect("sent");
        drain(&mut way).await;
        // With the name of a connected client.
        let mut guest = HubProbe::open(&house.at, "/", "a guest").await.expect("there");
        guest.follow(DOC).await;
        assert!(guest.receive_until(SOON, |guest| guest.absent == [DOC]).await);
        let (mut way, binding) =
            HubSocket::connect(&house.at, DEVICE_PATH, &CertificateTrust::Any).await.expect("there");
        handshake::authenticate_to_listener(&mut way, &one, house.id, &binding).await.expect("known");
        way.send_frame(join_as("a guest")).await.expect("sent");
        drain(&mut way).await;
        guest.receive_frame(Duration::from_millis(100)).await;
        assert_eq!(guest.ended, None);
        // A sync message that claims to come from another device.
        let (mut way, _) = HubSocket::connect(&house.at, "/", &CertificateTrust::Any).await.expect("there");
        way.send_frame(join_as("somebody")).await.expect("sent");
        let (sender, target) = (PeerId(two.id().to_string()), PeerId(house.id.to_string()));
        let data = vec![0x42, 0, 0, 0, 0];
        way.send_frame(PeerFrame::Binary(wire::encode(&WireMessage::Sync { sender, target, doc: DOC, data })))
            .await
            .expect("sent");
        drain(&mut way).await;
        victim.receive_frame(Duration::from_millis(100)).await;
        assert_eq!(victim.ended, None);
    });
    house.logged("and claims to be");
    house.logged("it claims to be another device");
    house.logged("it uses the name of another connected device");
    house.is_well("names");
}

/// Encodes a number as LEB128.
fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(0x80 | (number & 0x7f) as u8);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// Returns an automerge sync message that knows nothing, wants nothing and contains these changes.
fn changes(changes: &[Vec<u8>]) -> Vec<u8> {
    let mut message = vec![0x42, 0, 0, 0];
    message.extend(leb(changes.len()));
    for change in changes {
        message.extend(leb(change.len()));
        message.extend(change);
    }
    message
}

#[test]
fn a_reader_reads_and_volumes_are_shared_as_the_policy_says() {
    let house = House::new(|_| {});
    let (writer, reader) = (house.paired("writer", DeviceAccess::Write), house.paired("reader", DeviceAccess::Read));
    let (volume, note) = (DocId([1; 16]), DocId([2; 16]));
    house.run(async {
        let mut writer = house.connect(&writer).await;
        let mut text = PlainText::new("read me", ActorId::from([1; 16])).expect("made");
        let mut doc = VolumeDoc::load(volume, &[], ActorId::from([3; 16])).expect("made").doc;
        let file = FileEntry { path: "note.md".to_owned(), kind: FileKind::Note };
        doc.commit(Some("shared"), &[(note, Some(file))], 0).expect("added");
        for (doc, bytes) in [(note, text.save()), (volume, doc.save())] {
            writer.send_change(doc, bytes).await;
            writer.follow(doc).await;
            assert!(writer.receive_until(SOON, |writer| writer.peers.is_in_sync(1, doc) == Some(true)).await);
        }
        let mut probe = house.connect(&reader).await;
        probe.follow(note).await;
        assert!(probe.receive_until(SOON, |probe| read(probe, note) == "read me").await);
        // A well-behaved client doesn't even try to write; this one does.
        let mut own = text.replica(ActorId::from([2; 16])).expect("copied");
        let data = changes(&[own.insert(0, "I write: ").expect("typed")]);
        let (sender, target) = (PeerId(reader.id().to_string()), PeerId(house.id.to_string()));
        let frame = PeerFrame::Binary(wire::encode(&WireMessage::Sync { sender, target, doc: note, data }));
        probe.socket.send_frame(frame).await.expect("sent");
        let changed = text.insert(7, "!").expect("typed");
        writer.send_change(note, changed).await;
        probe.receive_until(Duration::from_secs(1), |_| false).await;
        assert!(probe.ended.is_none(), "{:?}", probe.ended);
        assert_eq!(read(&probe, note), "read me!", "it goes on reading");
        writer.receive_frame(Duration::from_millis(200)).await;
        assert_eq!(read(&writer, note), "read me!", "nobody gets what a reader writes");
    });
    house.logged("it writes to a document that it may only read");
    // From now on only the writer may access the volume, including its note.
    let named =
        VolumePolicy { default: DeviceAccess::None, devices: BTreeMap::from([(writer.id(), DeviceAccess::Write)]) };
    let policy = HubPolicy { default: DeviceAccess::Write, volumes: BTreeMap::from([(volume, named)]) };
    policy.save(house.folder.path()).expect("saved");
    house.until("the policy holds", |house| {
        house.run(async {
            let mut probe = house.connect(&reader).await;
            probe.follow(note).await;
            probe
                .receive_until(Duration::from_secs(2), |probe| {
                    !probe.absent.is_empty() || !probe.heads(note).is_empty()
                })
                .await;
            probe.absent == [note]
        })
    });
    house.logged("it asks for a document that is not shared with it");
    house.is_well("readers");
}

#[test]
fn bombs_giants_and_noise_end_one_connection_and_nothing_else() {
    let house = House::new(|settings| settings.open = OpenAccess::Loopback);
    let key = house.paired("phone", DeviceAccess::Write);
    // A change that decompresses to more than a document may hold.
    let zeros = std::io::repeat(0).take(300 << 20);
    let mut packed = Vec::new();
    DeflateEncoder::new(zeros, Compression::fast()).read_to_end(&mut packed).expect("packed");
    let mut chunk = vec![0x85, 0x6f, 0x4a, 0x83, 0, 0, 0, 0, 2];
    chunk.extend(leb(packed.len()));
    chunk.extend(&packed);
    let bomb = changes(&[chunk]);
    let sync = |data: Vec<u8>| {
        let (sender, target) = (PeerId(key.id().to_string()), PeerId(house.id.to_string()));
        PeerFrame::Binary(wire::encode(&WireMessage::Sync { sender, target, doc: DOC, data }))
    };
    let cases: Vec<(&str, PeerFrame, &str)> = vec![
        ("a bomb", sync(bomb), "unpacks to more than a document may hold"),
        ("a giant", PeerFrame::Binary(vec![0; 100 << 20]), "too"),
        ("noise", PeerFrame::Binary(vec![0xff; 1000]), "not a message of the protocol"),
        ("noise in a message", sync(vec![0x42, 0xff, 0xff]), "cannot be read"),
        ("nothing", PeerFrame::Binary(Vec::new()), "not a message of the protocol"),
    ];
    for (name, frame, words) in cases {
        let before = house.lines().len();
        house.run(async {
            let (mut way, binding) =
                HubSocket::connect(&house.at, DEVICE_PATH, &CertificateTrust::Any).await.expect("there");
            handshake::authenticate_to_listener(&mut way, &key, house.id, &binding).await.expect("known");
            way.send_frame(join_as(&key.id().to_string())).await.expect("sent");
            let _ = way.send_frame(frame).await;
            drain(&mut way).await;
        });
        house.until(name, |house| house.lines()[before..].iter().any(|line| line.contains(words)));
    }
    house.is_well("bombs");
}

#[test]
fn who_has_used_up_the_quota_reads_on_and_who_is_fast_is_slowed() {
    let house = House::new(|settings| {
        settings.quota = 10_000;
        settings.rate = 100;
    });
    let key = house.paired("phone", DeviceAccess::Write);
    house.run(async {
        let mut phone = house.connect(&key).await;
        for number in 0..80_u8 {
            let doc = DocId([number; 16]);
            let bytes: String =
                (0..400).map(|at| char::from(b'a' + (blake3::hash(&[number, at as u8]).as_bytes()[0] % 26))).collect();
            phone.send_change(doc, PlainText::new(&bytes, ActorId::from([number; 16])).expect("made").save()).await;
            phone.follow(doc).await;
        }
        phone.receive_until(Duration::from_secs(4), |_| false).await;
        assert_eq!(phone.ended, None);
    });
    house.logged("has used up its 10000 bytes");
    let page = house.metrics();
    let slowed = page.lines().find_map(|line| line.strip_prefix("tracebook_hub_slowed_total ")).expect("counted");
    assert!(slowed.parse::<u64>().expect("a number") > 0);
    house.is_well("quotas");
}
