//! Benchmark of sync between two workspaces and a hub on this machine.
//!
//! It measures the time until a keystroke is shown on the other device, the first sync of very many notes, and finding
//! a few changed notes among very many.

use super::report::{BenchReport, FigureGoal};
use super::{drive_until, hub, open_volume, text_fixtures, to_ms};
use engine::{Command, HubConnection, Session};
use host::{Driver, WorkspaceOptions};
use std::time::{Duration, Instant};
use store::DocId;
use support::measure::{self, ScratchFolder};

/// Number of keys typed, one per interval.
const TYPED_KEYS: usize = 300;
const SYNC_KEY_INTERVAL: Duration = Duration::from_millis(40);
/// Number of notes that change while the other device is offline.
const CHANGED_NOTES: usize = 10;
/// Maximum time to wait for anything.
const SYNC_TIMEOUT: Duration = Duration::from_secs(1_200);

/// A device: a separate workspace with the folder of its volume.
struct SyncDevice {
    /// Dropped before its folder is deleted.
    driver: Driver,
    scratch: ScratchFolder,
}

impl SyncDevice {
    fn new(name: &str) -> Result<SyncDevice, String> {
        let scratch = ScratchFolder::new(name)?;
        let program = std::env::current_exe().map_err(|error| format!("the program does not find itself ({error})"))?;
        let folder = scratch.folder().join("W");
        let mut driver = host::open_workspace(&folder, WorkspaceOptions { program, create: true })
            .map_err(|error| error.to_string())?;
        drive_until(&mut driver, "the workspace is open", Session::is_open)?;
        let waiter = std::thread::current();
        driver.on_wake(move || waiter.unpark());
        Ok(SyncDevice { driver, scratch })
    }

    fn send_command(&mut self, command: Command) -> Result<(), String> {
        self.driver.run_command(command).map_err(|reject| reject.0)
    }

    /// Returns the bytes transferred so far in both directions.
    fn transferred_bytes(&self) -> u64 {
        self.driver.session().sync().states.values().map(|state| state.sent + state.received).sum()
    }
}

/// Drives two devices until a condition holds.
fn drive_both_until(
    one: &mut SyncDevice,
    two: &mut SyncDevice,
    what: &str,
    so: impl Fn(&Session, &Session) -> bool,
) -> Result<(), String> {
    let begun = Instant::now();
    while !so(one.driver.session(), two.driver.session()) {
        if begun.elapsed() > SYNC_TIMEOUT {
            return Err(format!("given up waiting until {what}"));
        }
        let (first, second) = (one.driver.pump(Duration::from_millis(4)), two.driver.pump(Duration::from_millis(4)));
        if !first && !second {
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }
    Ok(())
}

/// Returns whether everything that a device shares is in sync.
fn is_synced(session: &Session) -> bool {
    let sync = session.sync();
    let there = sync.states.values().all(|state| state.reach == HubConnection::Online && state.behind.is_empty());
    let told = sync.states.values().any(|state| state.documents > 1);
    there
        && told
        && sync.is_settled()
        && sync.has_current_hub_states()
        && session.is_agent_sync_settled()
        && session.is_saved()
}

/// Returns whether both devices have the same contents at these paths, by hash and size.
fn has_same_files(one: &Session, two: &Session, paths: &[String]) -> bool {
    let row = |session: &Session, path: &String| {
        session.volumes().next().and_then(|volume| volume.files.get(path)).map(|row| (row.hash, row.size))
    };
    paths.iter().all(|path| row(one, path).is_some_and(|there| row(two, path) == Some(there)))
}

/// Runs all benchmarks of sync. `count` is the number of notes among which a few change; the first sync has a fifth.
pub(super) fn measure(report: &mut BenchReport, count: usize) -> Result<(), String> {
    measure_typing(report)?;
    measure_many_notes(report, count)
}

/// Shares a volume of one device over a hub, and waits until the hub has it.
fn share_volume(one: &mut SyncDevice, two: &mut SyncDevice, hub: &str) -> Result<DocId, String> {
    let shared = open_volume(&mut one.driver, &one.scratch.folder().join("N"))?;
    one.send_command(Command::ShareVolume { volume: shared, hub: hub.to_owned() })?;
    drive_both_until(one, two, "all is with the hub", |one, _| is_synced(one))?;
    Ok(shared)
}

fn join_volume(two: &mut SyncDevice, shared: DocId, hub: &str) -> Result<(), String> {
    two.scratch.write("N/.keep", b"")?;
    let folder = two.scratch.folder().join("N");
    two.send_command(Command::JoinVolume { address: engine::volume_address(hub, shared), folder })
}

fn measure_typing(report: &mut BenchReport) -> Result<(), String> {
    let (mut one, mut two) = (SyncDevice::new("sync-one")?, SyncDevice::new("sync-two")?);
    let server = hub::start_tracebook_hub(&one.scratch.folder().join("hub"))?;
    one.scratch.write("N/a.md", text_fixtures::note_of_length(5_000).as_bytes())?;
    let shared = share_volume(&mut one, &mut two, server.address())?;
    join_volume(&mut two, shared, server.address())?;
    let path = ["a.md".to_owned()];
    drive_both_until(&mut one, &mut two, "the note has come", |one, two| {
        has_same_files(one, two, &path) && is_synced(two)
    })?;
    let row = one.driver.session().volume(shared).and_then(|volume| volume.files.get("a.md"));
    let note = row.map(|row| row.id).ok_or("the note is not there")?;
    for house in [&mut one, &mut two] {
        house.send_command(Command::OpenNote { note })?;
        house.send_command(Command::HoldNote { note })?;
    }
    let length = |session: &Session| session.note(note).filter(|note| note.is_settled()).map(engine::Note::length);
    drive_both_until(&mut one, &mut two, "both show the note", |one, two| {
        length(one).is_some() && length(one) == length(two)
    })?;
    let mut seen = Vec::with_capacity(TYPED_KEYS);
    for number in 0..TYPED_KEYS {
        let at = length(one.driver.session()).unwrap_or(0).min(100 + number);
        let begun = Instant::now();
        one.send_command(Command::Edit { note, at, delete: 0, insert: "x".to_owned() })?;
        drive_both_until(&mut one, &mut two, "a key has arrived", |one, two| {
            let long = |session: &Session| session.note(note).map(engine::Note::length);
            long(one) == long(two)
        })?;
        seen.push(to_ms(begun.elapsed()));
        let next = begun + SYNC_KEY_INTERVAL;
        drive_both_until(&mut one, &mut two, "it is time for the next key", |_, _| Instant::now() >= next)?;
    }
    // The first keys are those during which the devices connect.
    let mut seen = seen.split_off(TYPED_KEYS / 10);
    report.add_percentiles(
        "a key typed on one device, seen on the other through a hub",
        &mut seen,
        "ms",
        FigureGoal::Under(20.0),
    );
    Ok(())
}

fn measure_many_notes(report: &mut BenchReport, count: usize) -> Result<(), String> {
    let first = (count / 5).max(1);
    let (mut one, mut two) = (SyncDevice::new("sync-three")?, SyncDevice::new("sync-four")?);
    let server = hub::start_tracebook_hub(&one.scratch.folder().join("hub"))?;
    let mut bytes = 0;
    for number in 0..first {
        let text = text_fixtures::linked_note(number, count);
        bytes += text.len();
        one.scratch.write(&format!("N/{}", text_fixtures::linked_note_path(number)), text.as_bytes())?;
    }
    let begun = Instant::now();
    let shared = share_volume(&mut one, &mut two, server.address())?;
    let raw = bytes as f64;
    report.add_figure(
        format!("{first} notes read and sent to a hub"),
        begun.elapsed().as_secs_f64(),
        "s",
        FigureGoal::None,
    );
    report.add_figure(
        "bytes for it, of those of the text",
        one.transferred_bytes() as f64 / raw * 100.0,
        "%",
        FigureGoal::None,
    );
    let begun = Instant::now();
    join_volume(&mut two, shared, server.address())?;
    let paths: Vec<String> = (0..first).map(text_fixtures::linked_note_path).collect();
    drive_both_until(&mut one, &mut two, "all notes have come, and are in their files", |one, two| {
        let here = two.volumes().next().map_or(0, |volume| volume.files.len());
        here >= first && is_synced(two) && has_same_files(one, two, &paths)
    })?;
    let took = begun.elapsed();
    report.add_figure(format!("first sync of {first} notes"), took.as_secs_f64(), "s", FigureGoal::Under(10.0));
    report.add_figure(
        "bytes for it, of those of the text",
        two.transferred_bytes() as f64 / raw * 100.0,
        "%",
        FigureGoal::None,
    );
    if let Some(footprint) = measure::process_footprint(std::process::id()) {
        report.add_figure("memory of both devices at its peak", footprint.peak as f64 / 1e6, "MB", FigureGoal::None);
    }

    for number in first..count {
        let text = text_fixtures::linked_note(number, count);
        one.scratch.write(&format!("N/{}", text_fixtures::linked_note_path(number)), text.as_bytes())?;
    }
    let begun = Instant::now();
    one.send_command(Command::Rescan)?;
    drive_both_until(&mut one, &mut two, "the rest has come", |one, two| {
        let files = |session: &Session| session.volumes().next().map_or(0, |volume| volume.files.len());
        files(one) >= count && files(two) >= count && is_synced(one) && is_synced(two)
    })?;
    let name = format!("{} further notes found on one device, all of them on the other", count - first);
    report.add_figure(name, begun.elapsed().as_secs_f64(), "s", FigureGoal::None);
    two.send_command(Command::PauseSync { paused: true })?;
    let paths: Vec<String> =
        (0..CHANGED_NOTES).map(|number| text_fixtures::linked_note_path(number * (count / CHANGED_NOTES))).collect();
    for path in &paths {
        let row = one.driver.session().volume(shared).and_then(|volume| volume.files.get(path));
        let note = row.map(|row| row.id).ok_or_else(|| format!("{path} is not there"))?;
        one.send_command(Command::OpenNote { note })?;
        drive_both_until(&mut one, &mut two, "the note is open", |one, _| {
            one.note(note).is_some_and(engine::Note::is_settled)
        })?;
        one.send_command(Command::Edit { note, at: 0, delete: 0, insert: "Changed.\n\n".to_owned() })?;
        one.send_command(Command::CloseNote { note })?;
    }
    drive_both_until(&mut one, &mut two, "the changes are with the hub", |one, _| is_synced(one))?;
    let before = two.transferred_bytes();
    let begun = Instant::now();
    two.send_command(Command::PauseSync { paused: false })?;
    drive_both_until(&mut one, &mut two, "the changes have come", |one, two| has_same_files(one, two, &paths))?;
    let took = begun.elapsed();
    drive_both_until(&mut one, &mut two, "all is quiet", |_, two| is_synced(two))?;
    let carried = two.transferred_bytes().saturating_sub(before) as f64;
    let name = format!("catching up with {CHANGED_NOTES} changed notes of {count}");
    report.add_figure(&name, took.as_secs_f64(), "s", FigureGoal::Under(1.0));
    report.add_figure(format!("{name}, bytes"), carried / 1e3, "kB", FigureGoal::Under(100.0));
    Ok(())
}
