//! What sync costs between two workspaces and a hub on this machine: a key until the other device shows it, the first
//! sync of very many notes, and a few changed ones found among very many.

use super::report::{Goal, Report};
use super::{hub, ms, prose, until, volume};
use engine::{Command, HubConnection, Session};
use host::measure::{self, ScratchFolder};
use host::{Driver, WorkspaceOptions};
use std::time::{Duration, Instant};
use store::DocId;

/// Keys that are typed, one in this time.
const KEYS: usize = 300;
const EVERY: Duration = Duration::from_millis(40);
/// Notes that change while the other device is away.
const CHANGED: usize = 10;
/// How long anything may take before the measurement is given up.
const PATIENCE: Duration = Duration::from_secs(1_200);

/// A workspace of its own, with the folder of its volume.
struct House {
    /// Ends before its folder goes.
    driver: Driver,
    scratch: ScratchFolder,
}

impl House {
    fn new(name: &str) -> Result<House, String> {
        let scratch = ScratchFolder::new(name)?;
        let program = std::env::current_exe().map_err(|error| format!("the program does not find itself ({error})"))?;
        let folder = scratch.folder().join("W");
        let mut driver =
            host::open(&folder, WorkspaceOptions { program, create: true }).map_err(|error| error.to_string())?;
        until(&mut driver, "the workspace is open", Session::is_open)?;
        let waiter = std::thread::current();
        driver.on_wake(move || waiter.unpark());
        Ok(House { driver, scratch })
    }

    fn command(&mut self, command: Command) -> Result<(), String> {
        self.driver.command(command).map_err(|reject| reject.0)
    }

    /// Bytes that went over the wire so far, both ways.
    fn carried(&self) -> u64 {
        self.driver.session().sync().states.values().map(|state| state.sent + state.received).sum()
    }
}

/// Two devices, at work until something is so.
fn both(one: &mut House, two: &mut House, what: &str, so: impl Fn(&Session, &Session) -> bool) -> Result<(), String> {
    let begun = Instant::now();
    while !so(one.driver.session(), two.driver.session()) {
        if begun.elapsed() > PATIENCE {
            return Err(format!("given up waiting until {what}"));
        }
        let (first, second) = (one.driver.pump(Duration::from_millis(4)), two.driver.pump(Duration::from_millis(4)));
        if !first && !second {
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }
    Ok(())
}

/// Whether all that a device shares is the same elsewhere.
fn in_step(session: &Session) -> bool {
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

/// What a file holds on a device, as a hash.
fn same(one: &Session, two: &Session, paths: &[String]) -> bool {
    let row = |session: &Session, path: &String| {
        session.volumes().next().and_then(|volume| volume.files.get(path)).map(|row| (row.hash, row.size))
    };
    paths.iter().all(|path| row(one, path).is_some_and(|there| row(two, path) == Some(there)))
}

/// All figures of sync; `count`: notes among which few have changed; a fifth of them is the first sync.
pub(super) fn measure(report: &mut Report, count: usize) -> Result<(), String> {
    typed(report)?;
    many(report, count)
}

/// Shares a volume of one device over a hub, and gets it on the other.
fn share(one: &mut House, two: &mut House, hub: &str) -> Result<DocId, String> {
    let shared = volume(&mut one.driver, &one.scratch.folder().join("N"))?;
    one.command(Command::ShareVolume { volume: shared, hub: hub.to_owned() })?;
    both(one, two, "all is with the hub", |one, _| in_step(one))?;
    Ok(shared)
}

fn join(two: &mut House, shared: DocId, hub: &str) -> Result<(), String> {
    two.scratch.write("N/.keep", b"")?;
    let folder = two.scratch.folder().join("N");
    two.command(Command::JoinVolume { address: engine::volume_address(hub, shared), folder })
}

fn typed(report: &mut Report) -> Result<(), String> {
    let (mut one, mut two) = (House::new("sync-one")?, House::new("sync-two")?);
    let server = hub::ours(&one.scratch.folder().join("hub"))?;
    one.scratch.write("N/a.md", prose::note(5_000).as_bytes())?;
    let shared = share(&mut one, &mut two, server.at())?;
    join(&mut two, shared, server.at())?;
    let path = ["a.md".to_owned()];
    both(&mut one, &mut two, "the note has come", |one, two| same(one, two, &path) && in_step(two))?;
    let row = one.driver.session().volume(shared).and_then(|volume| volume.files.get("a.md"));
    let note = row.map(|row| row.id).ok_or("the note is not there")?;
    for house in [&mut one, &mut two] {
        house.command(Command::OpenNote { note })?;
        house.command(Command::HoldNote { note })?;
    }
    let length = |session: &Session| session.note(note).filter(|note| note.is_settled()).map(engine::Note::length);
    both(&mut one, &mut two, "both show the note", |one, two| length(one).is_some() && length(one) == length(two))?;
    let mut seen = Vec::with_capacity(KEYS);
    for number in 0..KEYS {
        let at = length(one.driver.session()).unwrap_or(0).min(100 + number);
        let begun = Instant::now();
        one.command(Command::Edit { note, at, delete: 0, insert: "x".to_owned() })?;
        both(&mut one, &mut two, "a key has arrived", |one, two| {
            let long = |session: &Session| session.note(note).map(engine::Note::length);
            long(one) == long(two)
        })?;
        seen.push(ms(begun.elapsed()));
        let next = begun + EVERY;
        both(&mut one, &mut two, "it is time for the next key", |_, _| Instant::now() >= next)?;
    }
    // The first are those that find each other.
    let mut seen = seen.split_off(KEYS / 10);
    report.spread("a key typed on one device, seen on the other through a hub", &mut seen, "ms", Goal::Under(20.0));
    Ok(())
}

fn many(report: &mut Report, count: usize) -> Result<(), String> {
    let first = (count / 5).max(1);
    let (mut one, mut two) = (House::new("sync-three")?, House::new("sync-four")?);
    let server = hub::ours(&one.scratch.folder().join("hub"))?;
    let mut bytes = 0;
    for number in 0..first {
        let text = prose::linked(number, count);
        bytes += text.len();
        one.scratch.write(&format!("N/{}", prose::path(number)), text.as_bytes())?;
    }
    let begun = Instant::now();
    let shared = share(&mut one, &mut two, server.at())?;
    let raw = bytes as f64;
    report.figure(format!("{first} notes read and sent to a hub"), begun.elapsed().as_secs_f64(), "s", Goal::None);
    report.figure("bytes for it, of those of the text", one.carried() as f64 / raw * 100.0, "%", Goal::None);
    let begun = Instant::now();
    join(&mut two, shared, server.at())?;
    let paths: Vec<String> = (0..first).map(prose::path).collect();
    both(&mut one, &mut two, "all notes have come, and are in their files", |one, two| {
        let here = two.volumes().next().map_or(0, |volume| volume.files.len());
        here >= first && in_step(two) && same(one, two, &paths)
    })?;
    let took = begun.elapsed();
    report.figure(format!("first sync of {first} notes"), took.as_secs_f64(), "s", Goal::Under(10.0));
    report.figure("bytes for it, of those of the text", two.carried() as f64 / raw * 100.0, "%", Goal::None);
    if let Some(footprint) = measure::footprint(std::process::id()) {
        report.figure("memory of both devices at its peak", footprint.peak as f64 / 1e6, "MB", Goal::None);
    }

    for number in first..count {
        let text = prose::linked(number, count);
        one.scratch.write(&format!("N/{}", prose::path(number)), text.as_bytes())?;
    }
    let begun = Instant::now();
    one.command(Command::Rescan)?;
    both(&mut one, &mut two, "the rest has come", |one, two| {
        let files = |session: &Session| session.volumes().next().map_or(0, |volume| volume.files.len());
        files(one) >= count && files(two) >= count && in_step(one) && in_step(two)
    })?;
    let name = format!("{} further notes found on one device, all of them on the other", count - first);
    report.figure(name, begun.elapsed().as_secs_f64(), "s", Goal::None);
    two.command(Command::PauseSync { paused: true })?;
    let paths: Vec<String> = (0..CHANGED).map(|number| prose::path(number * (count / CHANGED))).collect();
    for path in &paths {
        let row = one.driver.session().volume(shared).and_then(|volume| volume.files.get(path));
        let note = row.map(|row| row.id).ok_or_else(|| format!("{path} is not there"))?;
        one.command(Command::OpenNote { note })?;
        both(&mut one, &mut two, "the note is open", |one, _| one.note(note).is_some_and(engine::Note::is_settled))?;
        one.command(Command::Edit { note, at: 0, delete: 0, insert: "Changed.\n\n".to_owned() })?;
        one.command(Command::CloseNote { note })?;
    }
    both(&mut one, &mut two, "the changes are with the hub", |one, _| in_step(one))?;
    let before = two.carried();
    let begun = Instant::now();
    two.command(Command::PauseSync { paused: false })?;
    both(&mut one, &mut two, "the changes have come", |one, two| same(one, two, &paths))?;
    let took = begun.elapsed();
    both(&mut one, &mut two, "all is quiet", |_, two| in_step(two))?;
    let carried = two.carried().saturating_sub(before) as f64;
    let name = format!("catching up with {CHANGED} changed notes of {count}");
    report.figure(&name, took.as_secs_f64(), "s", Goal::Under(1.0));
    report.figure(format!("{name}, bytes"), carried / 1e3, "kB", Goal::Under(100.0));
    Ok(())
}
