//! Frames of a window whose notes other programs use through `tracebook serve`: 1,000 clients follow a stream of
//! events, and others create notes, read and search. The same frames are measured without other programs.

use super::event_clients::{EventClients, event_path};
use super::{
    HttpLine, LONG_NOTE, LONG_NOTE_BYTES, NOTES_PATH, READ_GOAL, SEARCH_GOAL, ServedWorkspace, TOKENS, read_path,
    search_path,
};
use crate::headless_window::{FrameTimings, HeadlessWindow, key_events};
use crate::report::{BenchReport, FigureGoal};
use crate::text_fixtures::FixtureRng;
use crate::{open_workspace, to_ms};
use engine::{ScanState, Session};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::measure::ScratchFolder;

/// Frame interval of a 60 Hz screen.
const FRAME_INTERVAL: Duration = Duration::from_micros(16_667);
/// For how long the window is measured without other programs, and rests before that.
const ALONE_TIME: Duration = Duration::from_secs(10);
const REST_TIME: Duration = Duration::from_secs(3);
/// The user presses a key in one of this many frames, and scrolls in the others.
const FRAMES_PER_KEY: usize = 6;
/// Points that the user scrolls in a frame, and the number of frames until they scroll back.
const SCROLL_POINTS: f32 = 8.0;
const FRAMES_PER_SCROLL: usize = 300;
/// Number of clients that follow events.
const EVENT_CLIENTS: usize = 1_000;
/// Number of events, the time between them, and how long the last one may take.
const EVENTS: usize = 100;
const EVENT_INTERVAL: Duration = Duration::from_millis(100);
const EVENT_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of notes that are read for each event.
const READS_PER_EVENT: usize = 4;
/// What the clients do.
const CONNECTING: usize = 0;
const WORKING: usize = 1;
const OVER: usize = 2;

/// Frames that were drawn in some time, in milliseconds.
#[derive(Default)]
struct DrawnFrames {
    walls: Vec<f64>,
    /// Without waits for a busy core.
    at_work: Vec<f64>,
}

impl DrawnFrames {
    fn push(&mut self, drawn: FrameTimings) {
        self.walls.push(to_ms(drawn.wall));
        self.at_work.push(to_ms(drawn.wall.saturating_sub(drawn.waited)));
    }

    fn add_to(&mut self, report: &mut BenchReport, name: &str, goal: FigureGoal) {
        let late = |times: &[f64]| times.iter().filter(|time| **time > to_ms(FRAME_INTERVAL)).count() as f64;
        let longest = self.walls.iter().copied().fold(0.0, f64::max);
        report.add_figure(format!("{name}: frames"), self.walls.len() as f64, "", FigureGoal::None);
        report.add_figure(format!("{name}: frames over 16.7 ms"), late(&self.walls), "", goal);
        let name_at_work = format!("{name}: frames over 16.7 ms without waits for a core");
        report.add_figure(name_at_work, late(&self.at_work), "", FigureGoal::None);
        report.add_percentiles(&format!("{name}: a frame"), &mut self.walls, "ms", FigureGoal::None);
        report.add_figure(format!("{name}: longest frame"), longest, "ms", FigureGoal::None);
    }
}

/// A window whose user scrolls and types, at 60 frames a second.
struct UsedWindow {
    stage: HeadlessWindow,
    /// When the user's next input comes.
    next: Instant,
    inputs: usize,
}

impl UsedWindow {
    /// Waits until the window needs a frame or the user's next input comes, and draws it.
    fn draw_next(&mut self) -> FrameTimings {
        self.stage.wait_for_repaint(self.next.saturating_duration_since(Instant::now()));
        let now = Instant::now();
        if now < self.next {
            return self.stage.draw_frame(Vec::new());
        }
        self.next = (self.next + FRAME_INTERVAL).max(now);
        self.inputs += 1;
        if self.inputs.is_multiple_of(FRAMES_PER_KEY) {
            let letter = char::from(b'a' + (self.inputs / FRAMES_PER_KEY % 26) as u8);
            return self.stage.draw_frame(key_events(letter));
        }
        let is_back = self.inputs / FRAMES_PER_SCROLL % 2 == 1;
        let points = if is_back { -SCROLL_POINTS } else { SCROLL_POINTS };
        self.stage.draw_frame(vec![HeadlessWindow::wheel_event(points)])
    }
}

/// What the clients measured.
#[derive(Default)]
struct ClientFigures {
    /// Milliseconds that each request took.
    writes: Vec<f64>,
    reads: Vec<f64>,
    searches: Vec<f64>,
    /// Milliseconds from the request that causes an event until a client has the event.
    delays: Vec<f64>,
    /// Number of times that a client was told that events are missing.
    gaps: usize,
    /// From the first request until the last event.
    took: Duration,
}

/// Measures a window with the workspace's notes, alone and beside clients.
pub(super) fn measure(
    report: &mut BenchReport,
    scratch: &ScratchFolder,
    workspace: &ServedWorkspace,
    notes: &[String],
) -> Result<(), String> {
    let driver = open_workspace(scratch)?;
    let _guests = driver.serve_requests(cli::serve_request).map_err(|why| why.to_string())?;
    let mut stage = HeadlessWindow::new(driver);
    stage.draw_until("the notes are known", |session| {
        let mut volumes = session.volumes();
        volumes.any(|volume| volume.scans > 0 && volume.known && volume.scanning == ScanState::Idle)
            && session.is_saved()
    })?;
    let row = stage.session().volumes().find_map(|volume| volume.files.get(LONG_NOTE));
    let note = row.map(|row| row.id).ok_or("the long note is not there")?;
    stage.show_note(note);
    stage.draw_until("the note is readable", |session| session.note(note).is_some_and(engine::Note::is_settled))?;
    stage.place_caret_and_scroll(LONG_NOTE_BYTES / 2);
    stage.turn_wheel(0.0);
    // The first letter loads the note's document.
    stage.draw_frame(key_events('x'));
    stage.draw_for(REST_TIME);
    let length = |session: &Session| session.note(note).map_or(0, engine::Note::length);
    let (before, mut alone) = (length(stage.session()), DrawnFrames::default());
    let mut window = UsedWindow { stage, next: Instant::now(), inputs: 0 };
    let begun = Instant::now();
    while begun.elapsed() < ALONE_TIME {
        alone.push(window.draw_next());
    }
    alone.add_to(report, "window alone", FigureGoal::None);

    let (phase, mut connecting, mut working) =
        (AtomicUsize::new(CONNECTING), DrawnFrames::default(), DrawnFrames::default());
    let figures = std::thread::scope(|scope| {
        let clients = scope.spawn(|| run_clients(workspace, notes, &phase));
        while !clients.is_finished() {
            let drawn = window.draw_next();
            match phase.load(Ordering::Relaxed) {
                CONNECTING => connecting.push(drawn),
                WORKING => working.push(drawn),
                _ => {}
            }
        }
        clients.join().unwrap_or_else(|_| Err("the clients failed".to_owned()))
    });
    window.stage.draw_for(REST_TIME);
    let (typed, keys) = (length(window.stage.session()).saturating_sub(before), window.inputs / FRAMES_PER_KEY);
    if typed != keys {
        report.add_error(format!("{keys} letters were typed beside the clients and the note has {typed} more"));
    }
    window.stage.close();
    connecting.add_to(report, &format!("window while {EVENT_CLIENTS} clients connect"), FigureGoal::None);
    working.add_to(report, &format!("window beside {EVENT_CLIENTS} clients"), FigureGoal::Zero);
    report_clients(report, figures?);
    Ok(())
}

fn report_clients(report: &mut BenchReport, mut figures: ClientFigures) {
    let clients = format!("{EVENT_CLIENTS} clients");
    let (expected, delivered) = (EVENTS * EVENT_CLIENTS, figures.delays.len());
    let rate = delivered as f64 / figures.took.as_secs_f64().max(1e-9);
    report.add_figure(format!("{clients}: events for each"), EVENTS as f64, "", FigureGoal::None);
    report.add_figure(format!("{clients}: events delivered"), delivered as f64, "", FigureGoal::None);
    report.add_figure(format!("{clients}: events delivered a second"), rate, "", FigureGoal::None);
    let lost = expected.saturating_sub(delivered) as f64;
    report.add_figure(format!("{clients}: events lost"), lost, "", FigureGoal::Zero);
    report.add_figure(format!("{clients}: reports of a gap"), figures.gaps as f64, "", FigureGoal::Zero);
    let name = format!("{clients}: from the request to the event");
    report.add_percentiles(&name, &mut figures.delays, "ms", FigureGoal::None);
    let beside = format!("REST beside the window and {clients}");
    report.add_percentiles(&format!("{beside}: create a note"), &mut figures.writes, "ms", FigureGoal::None);
    report.add_percentiles(&format!("{beside}: read a note"), &mut figures.reads, "ms", READ_GOAL);
    report.add_percentiles(&format!("{beside}: search for three words"), &mut figures.searches, "ms", SEARCH_GOAL);
}

/// Starts a server, connects clients, and lets them work. The window must draw meanwhile: it has the workspace.
fn run_clients(workspace: &ServedWorkspace, notes: &[String], phase: &AtomicUsize) -> Result<ClientFigures, String> {
    let server = workspace.start()?;
    let clients = EventClients::connect(&server, EVENT_CLIENTS)?;
    let mut lines = server.connect_all()?;
    phase.store(WORKING, Ordering::Relaxed);
    let figures = send_events(&mut lines, clients, notes);
    phase.store(OVER, Ordering::Relaxed);
    figures
}

fn send_events(lines: &mut [HttpLine], clients: EventClients, notes: &[String]) -> Result<ClientFigures, String> {
    let (mut figures, mut rng) = (ClientFigures::default(), FixtureRng::new(9));
    let mut sent = Vec::with_capacity(EVENTS);
    for number in 0..EVENTS {
        let begun = Instant::now();
        sent.push(begun);
        let path = format!("{NOTES_PATH}/{}", event_path(number));
        let headers = "If-None-Match: *\r\nContent-Type: text/markdown\r\n";
        lines[number % TOKENS].request("PUT", &path, headers, "# An event\n")?;
        figures.writes.push(to_ms(begun.elapsed()));
        for read in 0..READS_PER_EVENT {
            let line = &mut lines[(number + read) % TOKENS];
            figures.reads.push(line.time_get(&read_path(&mut rng, notes.len()))?);
        }
        figures.searches.push(lines[number % TOKENS].time_get(&search_path(&mut rng, notes))?);
        std::thread::park_timeout(EVENT_INTERVAL.saturating_sub(begun.elapsed()));
    }
    let (arrivals, gaps) = clients.finish(EVENTS * EVENT_CLIENTS, EVENT_TIMEOUT)?;
    let (first, last) = (sent.first().copied(), arrivals.iter().map(|(_, at)| *at).max());
    figures.took = first.zip(last).map_or(Duration::ZERO, |(first, last)| last.saturating_duration_since(first));
    let delay = |(number, at): (usize, Instant)| {
        let sent: &Instant = sent.get(number)?;
        Some(to_ms(at.saturating_duration_since(*sent)))
    };
    figures.delays = arrivals.into_iter().filter_map(delay).collect();
    figures.gaps = gaps;
    Ok(figures)
}
