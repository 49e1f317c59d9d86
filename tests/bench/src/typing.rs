//! Benchmark of typing in the window, in notes of three sizes: the time until a letter is drawn, and until it's on
//! disk.
//!
//! The minimum that a durable commit costs on the same disk is measured for comparison.

use super::report::{BenchReport, FigureGoal, percentile};
use super::text_fixtures::{self, FixtureRng};
use super::{open_note_window, to_ms};
use crate::headless_window::{FrameTimings, HeadlessWindow, key_events};
use engine::Session;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use store::DocId;
use support::BaselineDatabase;
use support::measure::ScratchFolder;

const NOTE_SIZES: [(usize, &str); 3] = [(10_000, "10k"), (100_000, "100k"), (1_000_000, "1M")];
/// Number of keys typed in each note.
const KEYS_PER_NOTE: usize = 400;
/// Interval between keys: a fast typist.
const TYPING_INTERVAL: Duration = Duration::from_millis(30);

/// Runs all benchmarks of typing.
pub(super) fn measure(report: &mut BenchReport) -> Result<(), String> {
    for (length, name) in NOTE_SIZES {
        // Disk speed varies over time, so the minimum is measured just before and just after.
        let mut floor = measure_commit_floor(KEYS_PER_NOTE / 2)?;
        let mut typed = measure_note(report, length, name)?;
        floor.extend(self::measure_commit_floor(KEYS_PER_NOTE / 2)?);
        report.add_percentiles(
            &format!("keystroke to drawn, {name} characters,"),
            &mut typed.drawn,
            "ms",
            FigureGoal::Under(4.0),
        );
        report.add_percentiles(
            &format!("keystroke to drawn, {name} characters, CPU"),
            &mut typed.cpu,
            "ms",
            FigureGoal::None,
        );
        report.add_percentiles(
            &format!("keystroke to durable, {name} characters,"),
            &mut typed.durable,
            "ms",
            FigureGoal::Under(20.0),
        );
        let commit = format!("one SQLite commit beside it, WAL, synchronous FULL, {name} characters,");
        report.add_percentiles(&commit, &mut floor, "ms", FigureGoal::None);
        for percent in [50, 99] {
            let ratio = percentile(&mut typed.durable, percent) / percentile(&mut floor, percent);
            let name = format!("keystroke to durable, {name} characters, to one SQLite commit, p{percent}");
            report.add_figure(name, ratio, "times", FigureGoal::None);
        }
    }
    Ok(())
}

/// Measures a durable commit of one small row at the pace of typing.
fn measure_commit_floor(count: usize) -> Result<Vec<f64>, String> {
    let scratch = ScratchFolder::new("floor")?;
    let floor = BaselineDatabase::open(scratch.folder()).map_err(|error| error.to_string())?;
    scratch.sync_to_disk();
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        floor.commit(&[b'x'; 200]).map_err(|error| error.to_string())?;
        times.push(to_ms(begun.elapsed()));
        std::thread::park_timeout(TYPING_INTERVAL.saturating_sub(begun.elapsed()));
    }
    Ok(times)
}

#[derive(Default)]
struct TypingTimes {
    drawn: Vec<f64>,
    cpu: Vec<f64>,
    durable: Vec<f64>,
}

/// Types into the middle of a note of this length.
fn measure_note(report: &mut BenchReport, length: usize, name: &str) -> Result<TypingTimes, String> {
    let scratch = ScratchFolder::new(name)?;
    let text = text_fixtures::note_of_length(length);
    scratch.write("N/long.md", text.as_bytes())?;
    scratch.sync_to_disk();
    let (mut stage, note) = open_note_window(&scratch)?;
    stage.draw_for(Duration::from_millis(500));
    // Roughly half of the note's height; the exact position doesn't matter.
    stage.scroll_page(length as f32 / 90.0 * 24.0 * 0.6);
    let first = type_first_key(&mut stage, note)?;
    let at = first.at as f64 / length as f64 * 100.0;
    report.add_figure(
        format!("first keystroke ever, {name} characters, drawn"),
        to_ms(first.drawn.wall),
        "ms",
        FigureGoal::None,
    );
    report.add_figure(
        format!("first keystroke ever, {name} characters, drawn, CPU"),
        to_ms(first.drawn.cpu),
        "ms",
        FigureGoal::None,
    );
    report.add_figure(
        format!("first keystroke ever, {name} characters, durable"),
        first.durable,
        "ms",
        FigureGoal::None,
    );
    report.add_figure(format!("caret, {name} characters"), at, "% of the note", FigureGoal::None);
    stage.draw_until("the first letter is saved", Session::is_saved)?;
    stage.draw_for(Duration::from_secs(2));

    let mut typed = TypingTimes::default();
    let mut waiting: VecDeque<(u64, Instant)> = VecDeque::new();
    let mut chance = FixtureRng::new(3);
    let before = stage.session().note(note).map_or(0, engine::Note::length);
    for number in 0..KEYS_PER_NOTE {
        let begun = Instant::now();
        let letter = if number % 6 == 5 { ' ' } else { char::from(b'a' + chance.below(26) as u8) };
        let frame = stage.draw_frame(key_events(letter));
        typed.drawn.push(to_ms(frame.wall));
        typed.cpu.push(to_ms(frame.cpu));
        waiting.push_back((stage.session().saving().last, begun));
        record_durable_keys(frame, &mut waiting, &mut typed.durable);
        while let Some(left) = TYPING_INTERVAL.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
            if stage.wait_for_repaint(left) {
                record_durable_keys(stage.draw_frame(Vec::new()), &mut waiting, &mut typed.durable);
            }
        }
    }
    while !waiting.is_empty() {
        stage.wait_for_repaint(Duration::from_millis(20));
        record_durable_keys(stage.draw_frame(Vec::new()), &mut waiting, &mut typed.durable);
    }
    let after = stage.session().note(note).map_or(0, engine::Note::length);
    if after != before + KEYS_PER_NOTE {
        report.add_error(format!(
            "{KEYS_PER_NOTE} letters were typed and the note has {} more",
            after.saturating_sub(before)
        ));
    }
    stage.close();
    Ok(typed)
}

/// Records the keys that are durable as of a frame.
fn record_durable_keys(frame: FrameTimings, waiting: &mut VecDeque<(u64, Instant)>, durable: &mut Vec<f64>) {
    let Some((upto, when)) = frame.durable else { return };
    while let Some((_, begun)) = waiting.pop_front_if(|(number, _)| *number <= upto) {
        durable.push(to_ms(when.saturating_duration_since(begun)));
    }
}

struct FirstKeyTimes {
    drawn: FrameTimings,
    durable: f64,
    /// Byte offset of the inserted letter in the note.
    at: usize,
}

/// Clicks until the caret is in text and types the first letter, which loads the note's document.
fn type_first_key(stage: &mut HeadlessWindow, note: DocId) -> Result<FirstKeyTimes, String> {
    for down in [0.0, 45.0, -60.0, 90.0, -120.0, 150.0, -200.0] {
        stage.click_page(down);
        let revision = stage.session().note(note).map_or(0, engine::Note::revision);
        let begun = Instant::now();
        let frame = stage.draw_frame(key_events('x'));
        let edited = stage.session().note(note).filter(|note| note.revision() > revision);
        let Some(at) = edited.and_then(|note| note.shifts_since(revision)?.next().map(|shift| shift.at)) else {
            continue;
        };
        let number = stage.session().saving().last;
        stage.draw_until("the first letter is durable", |session| session.saving().durable >= number)?;
        return Ok(FirstKeyTimes { drawn: frame, durable: to_ms(begun.elapsed()), at });
    }
    Err("no click put the caret into the note".to_owned())
}
