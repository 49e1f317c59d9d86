//! Two windows that share a volume over a hub: what each shows of the other and of merges.

use super::*;
use engine::commands::CommandId;
use host::hub::{HubServer, HubSettings, OpenAccess, RunningHub};
use host::peers::DeviceKey;
use store::DocId;
use support::hub_load::free_port;

/// A hub in this process that accepts every local connection.
struct House {
    folder: tempfile::TempDir,
    key: DeviceKey,
    hub: Option<RunningHub>,
    at: String,
    /// The maximum number of bytes that it accepts from each device; 0 means no limit.
    quota: u64,
}

impl House {
    fn new() -> House {
        let (folder, key) = (tempfile::tempdir().expect("a folder"), DeviceKey::generate().expect("a key"));
        let mut house = House { folder, key, hub: None, at: String::new(), quota: 0 };
        // Nothing else gets its port while it is stopped.
        house.start(([127, 0, 0, 1], free_port().expect("a port")).into());
        house
    }

    fn start(&mut self, listen: std::net::SocketAddr) {
        let mut settings = HubSettings::new(self.folder.path().to_owned());
        (settings.listen, settings.open, settings.quota) = (listen, OpenAccess::Loopback, self.quota);
        let hub = HubServer::start(settings, self.key.clone(), std::sync::Arc::new(|_| ())).expect("a hub");
        self.at = hub.public_address().to_owned();
        self.hub = Some(hub);
    }

    fn stop(&mut self) -> std::net::SocketAddr {
        let hub = self.hub.take().expect("a hub");
        let at = hub.local_address();
        hub.stop();
        at
    }
}

fn volume(window: &Driven) -> DocId {
    session(window).volumes().next().expect("a volume").id
}

fn synced(window: &Driven) -> bool {
    session(window).sync_status() == engine::SyncStatus::Synced { away: 0 } && session(window).sync().is_settled()
}

/// Two windows that share a volume, both at its first note.
struct Two {
    house: House,
    benches: [Bench; 2],
    one: Driven,
    two: Driven,
}

impl Two {
    fn new(files: &[(&str, &str)]) -> Two {
        let house = House::new();
        let benches = [Bench::new(files), Bench::new(&[])];
        let mut one = benches[0].opened();
        let shared = volume(&one);
        one.state_mut().send_command(Command::ShareVolume { volume: shared, hub: house.at.clone() });
        until(&mut one, "it is shared", |one| synced(one));
        let mut two = benches[1].window();
        let address = engine::volume_address(&house.at, shared);
        two.state_mut().send_command(Command::JoinVolume { address, folder: benches[1].notes() });
        let count = files.len();
        until(&mut two, "the volume has come", |two| {
            one.step();
            session(two).volumes().any(|volume| volume.files.len() == count) && synced(two)
        });
        let mut both = Two { house, benches, one, two };
        both.show(files[0].0);
        both
    }

    /// Steps frames of both windows until a condition holds, since each may wait for the other.
    fn until(&mut self, what: &str, done: impl Fn(&mut Driven, &mut Driven) -> bool) {
        let Two { one, two, .. } = self;
        until(one, what, |one| {
            two.step();
            done(one, two)
        });
        two.run();
    }

    fn first(&mut self, what: &str, done: impl Fn(&mut Driven) -> bool) {
        self.until(what, |one, _| done(one));
    }

    /// Clicks a control of the first window as soon as it is there. A status may be another for a moment, while a
    /// hub is called again or an answer is on its way.
    fn click(&mut self, role: Role, label: &str) {
        self.first(label, |one| {
            let control = one.query_by_role_and_label(role, label);
            control.iter().for_each(|control| control.click());
            control.is_some()
        });
    }

    fn both(&mut self, what: &str, done: impl Fn(&mut Driven) -> bool) {
        self.until(what, |one, two| done(one) & done(two));
    }

    /// Shows a note in both windows.
    fn show(&mut self, path: &str) {
        for window in [&mut self.one, &mut self.two] {
            let note = session(window).volumes().find_map(|volume| volume.files.get(path)).expect("a file").id;
            window.state_mut().show(note);
            until(window, "the note is shown", |window| text(window).is_some_and(|text| !text.is_empty()));
        }
    }
}

fn title(window: &mut Driven, id: CommandId) {
    press(window, CTRL_SHIFT, Key::P);
    type_text(window, id.title());
    press(window, NONE, Key::Enter);
}

#[test]
fn what_another_device_changed_is_shown_before_and_after() {
    let mut both = Two::new(&[("Plan.md", "# Plan\n\nBeans along the wall.\n"), ("Shop.md", "Milk\n")]);
    both.two.get_by_label("Beans along the wall.").click();
    both.two.run();
    press(&mut both.two, NONE, Key::End);
    type_text(&mut both.two, " And peas.");
    both.first("the edit has come", |window| text(window).is_some_and(|text| text.contains("And peas.")));
    both.click(Role::Button, "Sync: Synced");
    let at = both.house.at.clone();
    both.first("the page says it", |window| {
        window.query_by_label_contains("Synced. All is saved on this device and at every hub.").is_some()
            && window.query_by_label_contains(&format!("{at}: Connected")).is_some()
            && window.query_by_label_contains("notes: Saved here and sent").is_some()
    });
    both.one.get_by_label("Changes by others").click();
    both.one.run();
    both.first("the change is listed", |window| {
        window.query_all_by_label_contains("Plan was changed on another device").next().is_some()
    });
    both.first("the note before and after is shown", |window| {
        window.query_by_label("Then: Beans along the wall.").is_some()
            && window.query_by_label("Now: Beans along the wall. And peas.").is_some()
    });
    // Work continues without the hub; later both have everything, and the report lists the merges.
    let since = std::time::Instant::now();
    both.first("all has been the same for a while", |_| since.elapsed().as_secs() >= 1);
    let listen = both.house.stop();
    both.both("the hub is gone", |window| session(window).sync_status() == engine::SyncStatus::Offline);
    both.first("it is told", |window| window.query_by_label("Sync: Offline").is_some());
    // Nothing is waiting to be sent, and the page says so.
    title(&mut both.one, CommandId::SyncStatus);
    both.first("all was sent", |window| {
        window.query_all_by_label_contains("notes: All sent · hub last seen ").next().is_some()
    });
    both.two.state_mut().place_caret(0);
    type_text(&mut both.two, "Two. ");
    let note = both.one.state().note().expect("a note");
    let end = text(&both.one).expect("a text").len();
    both.one.state_mut().send_command(Command::Edit { note, at: end, delete: 0, insert: "\nOne.\n".to_owned() });
    both.first("something waits", |window| {
        window.query_all_by_label_contains("notes: Saved here, not sent yet").next().is_some()
    });
    title(&mut both.one, CommandId::SyncLog);
    both.first("the log says it", |window| window.query_all_by_label_contains("can't be reached").next().is_some());
    both.house.start(listen);
    both.one.state_mut().send_command(Command::RetrySync);
    both.two.state_mut().send_command(Command::RetrySync);
    let whole = |window: &mut Driven| text(window).is_some_and(|text| text.contains("Two. ") && text.contains("One."));
    both.both("both have all", whole);
    title(&mut both.one, CommandId::SyncMerges);
    both.first("it is said that edits met", |window| {
        window.query_all_by_label_contains("Plan was changed on two devices at once").next().is_some()
    });
    if let Some(folder) = pictures_folder() {
        both.both("all is the same", |one| synced(one));
        for (theme, name) in [(engine::ColorTheme::Light, "light"), (engine::ColorTheme::Dark, "dark")] {
            while session(&both.one).settings().theme != theme {
                press(&mut both.one, CTRL_SHIFT, Key::L);
            }
            for (id, what) in
                [(CommandId::SyncStatus, "state"), (CommandId::SyncMerges, "merges"), (CommandId::SyncLog, "log")]
            {
                title(&mut both.one, id);
                for _ in 0..30 {
                    std::thread::sleep(Duration::from_millis(20));
                    both.one.step();
                }
                picture(&mut both.one, &folder, &format!("sync-{what}-{name}"));
            }
        }
    }
}

#[test]
fn a_lost_hub_is_told_in_the_status_bar_and_called_again_by_a_button() {
    let mut both = Two::new(&[("Plan.md", "# Plan\n\nBeans along the wall.\n")]);
    both.both("all is the same", |window| synced(window));
    let listen = both.house.stop();
    both.first("it is told", |window| window.query_by_label("Sync: Offline").is_some());
    both.one.state_mut().place_caret(0);
    type_text(&mut both.one, "New. ");
    both.click(Role::Button, "Sync: Offline");
    let meaning = "Offline. All changes are saved on this device.";
    both.first("its meaning is told", |window| window.query_all_by_label_contains(meaning).next().is_some());
    both.one.state_mut().take_ran();
    both.one.get_by_role_and_label(Role::Button, "Try now").click();
    both.one.run();
    assert!(both.one.state_mut().take_ran().contains(&CommandId::SyncRetry));
    both.house.start(listen);
    // The hub may be back before the click is.
    if let Some(again) = both.one.query_by_role_and_label(Role::Button, "Try now") {
        again.click_accesskit();
    }
    both.two.state_mut().send_command(Command::RetrySync);
    both.until("the edit has come", |_, two| text(two).is_some_and(|text| text.starts_with("New. ")));
    both.first("all is the same again", |window| window.query_by_label("Sync: Synced").is_some());
}

#[test]
fn a_volume_that_is_shared_no_longer_can_be_shared_again() {
    let house = House::new();
    let bench = Bench::new(&[("Plan.md", "# Plan\n")]);
    let mut window = bench.opened();
    let shared = volume(&window);
    window.state_mut().send_command(Command::ShareVolume { volume: shared, hub: house.at.clone() });
    until(&mut window, "it is shared", |window| synced(window));
    title(&mut window, CommandId::SyncStatus);
    window.get_by_label("Stop sharing notes").click();
    let (says, mut is_told) = ("Dismiss: notes is no longer shared. Other devices keep their copies.", false);
    until(&mut window, "nothing is shared", |window| {
        is_told |= window.query_by_label(says).is_some();
        is_told && session(window).sync_status() == engine::SyncStatus::NotShared
    });
    until(&mut window, "the page says so", |window| window.query_by_label("Share notes").is_some());
    window.get_by_label("Share notes again").click();
    until(&mut window, "it is shared again", |window| synced(window));
    assert!(window.query_by_label("Stop sharing notes").is_some());
    assert!(window.query_by_label("Share notes again").is_none());
}

#[test]
fn a_picture_that_has_not_come_says_so_until_it_is_there() {
    let mut both = Two::new(&[("Plan.md", "# Plan\n\n![[cat.png]]\n\nThe end.\n")]);
    // The hub has no space for it.
    let listen = both.house.stop();
    both.house.quota = 1_000_000;
    both.house.start(listen);
    [&mut both.one, &mut both.two].into_iter().for_each(|window| window.state_mut().send_command(Command::RetrySync));
    let picture: Vec<u8> = (0..2_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(both.benches[0].notes().join("cat.png"), &picture).expect("written");
    let at = both.house.at.clone();
    let words = format!("cat.png (2.0 MB) isn't on this device yet; it arrives over {at}");
    both.until("it is awaited", |_, two| two.query_all_by_label_contains(&words).next().is_some());
    title(&mut both.two, CommandId::SyncStatus);
    both.until("the page says so", |_, two| two.query_all_by_label_contains("1 file to come").next().is_some());
    title(&mut both.one, CommandId::SyncLog);
    both.first("and why", |one| one.query_all_by_label_contains("no room is left").next().is_some());
    // The hub gets more space.
    let listen = both.house.stop();
    both.house.quota = 0;
    both.house.start(listen);
    [&mut both.one, &mut both.two].into_iter().for_each(|window| window.state_mut().send_command(Command::RetrySync));
    let there = both.benches[1].notes().join("cat.png");
    both.until("it has come", |_, two| std::fs::read(&there).is_ok_and(|there| there == picture) && synced(two));
    both.show("Plan.md");
    both.until("nothing is awaited", |_, two| two.query_all_by_label_contains(&words).next().is_none());
}

#[test]
fn others_at_a_note_are_seen_until_they_go() {
    let mut both = Two::new(&[("Plan.md", "# Plan\n\nBeans along the wall.\n\n```python\nwhile True: pass\n```\n")]);
    let name = host::sync::devices::machine_name();
    let here = format!("{name} is here");
    both.two.state_mut().place_carets(&[(13, 8)]);
    both.two.run();
    both.first("their caret is seen", |window| window.query_all_by_label(&here).count() == 2);
    let note = both.one.state().note().expect("a note");
    let carets = |window: &Driven| session(window).sync().peers_at(note).first().map(|one| one.carets.clone());
    assert_eq!(carets(&both.one), Some(vec![(13, 8)]));
    // Text inserted before the caret moves it, on either side.
    both.one.state_mut().send_command(Command::Edit { note, at: 0, delete: 0, insert: "x\n".to_owned() });
    both.one.run();
    both.until("the edit has come", |_, two| text(two).is_some_and(|text| text.starts_with("x\n")));
    both.first("their caret has moved", |window| carets(window) == Some(vec![(15, 10)]));
    if let Some(folder) = pictures_folder() {
        both.two.state_mut().place_carets(&[(20, 10)]);
        both.two.run();
        both.first("their caret has moved", |window| carets(window) == Some(vec![(20, 10)]));
        picture(&mut both.one, &folder, "presence");
    }
    // A cell that one device runs shows as running on the other, and can't be started twice.
    both.two.get_by_label("Run cell 1").click();
    both.two.step();
    let runs = format!("{name} runs cell 1");
    both.first("it is seen", |window| window.query_by_label(&runs).is_some());
    both.one.get_by_label(&runs).click();
    both.one.step();
    both.first("it is refused", |window| {
        window.query_all_by_label_contains("runs this cell; what it prints is seen here").next().is_some()
    });
    both.two.get_by_label("Stop cell 1").click();
    both.two.step();
    both.first("it is over", |window| window.query_by_label("Run cell 1").is_some());
    // A device that closes says so; one that is lost disappears within ten seconds.
    let Two { mut house, benches, mut one, two } = both;
    let seen = |window: &Driven| {
        session(window).sync().devices().iter().map(|(seen, here)| (seen.name.clone(), *here)).collect::<Vec<_>>()
    };
    // Each document gets a message of its own; waiting for the device's silence would take longer.
    let mut open = Some(two);
    crate::program::assert_fast("seeing that a device has closed", Duration::from_secs(6), || {
        open.take().expect("it is open").into_state().close().expect("all is saved");
        let begun = Instant::now();
        until(&mut one, "they are gone", |window| {
            window.query_by_label(&here).is_none() && seen(window) == [(name.clone(), false)]
        });
        let took = begun.elapsed();
        let two = open.insert(benches[1].window());
        until(two, "it is open again", |window| text(window).is_some());
        until(&mut one, "they are back", |window| window.query_by_label(&here).is_some());
        took
    });
    house.stop();
    let begun = Instant::now();
    until(&mut one, "they are lost", |window| window.query_by_label(&here).is_none());
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

/// A process of the second device, without a window. Killed on drop.
struct Beside {
    child: std::process::Child,
    /// The file with its output.
    said: PathBuf,
}

impl Beside {
    fn runs(bench: &Bench, words: &[&str]) -> Beside {
        let said = bench.folder.path().join("beside.log");
        let file = std::fs::File::create(&said).expect("a file");
        let mut command = std::process::Command::new(program());
        command.arg("--workspace").arg(bench.folder.path().join("workspace")).args(words);
        command.env("HOME", bench.folder.path()).stdin(std::process::Stdio::null());
        command.stdout(file.try_clone().expect("the same file")).stderr(file);
        Beside { child: command.spawn().expect("started"), said }
    }

    /// Panics with its output if the process has ended by itself, since nothing more can be expected from it.
    fn goes_on(&mut self) {
        let Some(status) = self.child.try_wait().expect("a child") else { return };
        panic!("it ended by itself ({status}):\n{}", std::fs::read_to_string(&self.said).unwrap_or_default());
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = std::process::Command::new("kill").args([signal, &pid]).status().expect("`kill` runs");
        assert!(sent.success(), "{signal}");
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The maximum time for which a lost device may be shown.
const MAX_SHOWN_AFTER_LOSS: Duration = Duration::from_secs(10);
/// The number of attempts. Other processes may take the CPU for seconds, so one fast attempt is enough; a slow
/// implementation is slow in each.
const ATTEMPTS: usize = 3;

#[test]
fn who_falls_silent_or_is_killed_is_gone_within_ten_seconds() {
    let both = Two::new(&[("Plan.md", "# Plan\n\n```python\nimport time\ntime.sleep(600)\n```\n")]);
    let Two { house: _house, benches, mut one, two } = both;
    two.into_state().close().expect("all is saved");
    let runs = format!("{} runs cell 1", host::sync::devices::machine_name());
    let is_seen = |window: &Driven| window.query_by_label(&runs).is_some();
    let here = |window: &Driven| session(window).sync().devices().iter().filter(|(_, here)| *here).count();
    until(&mut one, "the window is gone", |one| here(one) == 0);
    let mut beside = Beside::runs(&benches[1], &["run", "Plan.md"]);
    // A stopped process sends nothing but keeps its connection; a killed one has none.
    for signal in ["-STOP", "-KILL"] {
        let mut times: Vec<Duration> = Vec::new();
        while times.len() < ATTEMPTS && times.iter().all(|took| *took >= MAX_SHOWN_AFTER_LOSS) {
            if signal == "-KILL" && !times.is_empty() {
                beside = Beside::runs(&benches[1], &["run", "Plan.md"]);
            }
            until(&mut one, "it is seen", |one| {
                beside.goes_on();
                is_seen(one) && here(one) == 1
            });
            beside.signal(signal);
            let (begun, mut took) = (Instant::now(), None);
            until(&mut one, "it is lost", |one| {
                let is_gone = !is_seen(one);
                took = is_gone.then(|| begun.elapsed());
                is_gone
            });
            times.push(took.expect("measured"));
            let note = one.state().note().expect("a note");
            assert!(session(&one).sync().peers_at(note).is_empty(), "{signal}");
            if signal == "-STOP" {
                beside.signal("-CONT");
            }
        }
        println!("{signal}: gone after {times:.1?}");
        assert!(times.iter().any(|took| *took < MAX_SHOWN_AFTER_LOSS), "{signal}: {times:.1?}");
    }
}
