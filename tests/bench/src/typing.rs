//! Keys pressed in the window, in notes of three sizes: how long until the letter is drawn, how long until it is on
//! disk, beside the least that a durable commit costs on the same disk.

use super::prose::{self, Chance};
use super::report::{Goal, Report, percentile};
use super::{ms, staged_note};
use crate::stage::{Drawn, Stage, press};
use engine::Session;
use host::measure::ScratchFolder;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use store::DocId;
use store::disk::BaselineDatabase;

const SIZES: [(usize, &str); 3] = [(10_000, "10k"), (100_000, "100k"), (1_000_000, "1M")];
/// Keys in each note.
const KEYS: usize = 400;
/// From key to key: a fast typist.
const PACE: Duration = Duration::from_millis(30);

/// All figures of typing.
pub(super) fn measure(report: &mut Report) -> Result<(), String> {
    for (length, name) in SIZES {
        // The disk of a minute ago is not the disk of now: the least is measured just before and just after.
        let mut floor = floor(KEYS / 2)?;
        let mut typed = note(report, length, name)?;
        floor.extend(self::floor(KEYS / 2)?);
        report.spread(&format!("keystroke to drawn, {name} characters,"), &mut typed.drawn, "ms", Goal::Under(4.0));
        report.spread(&format!("keystroke to drawn, {name} characters, CPU"), &mut typed.cpu, "ms", Goal::None);
        report.spread(
            &format!("keystroke to durable, {name} characters,"),
            &mut typed.durable,
            "ms",
            Goal::Under(20.0),
        );
        let commit = format!("one SQLite commit beside it, WAL, synchronous FULL, {name} characters,");
        report.spread(&commit, &mut floor, "ms", Goal::None);
        for percent in [50, 99] {
            let ratio = percentile(&mut typed.durable, percent) / percentile(&mut floor, percent);
            let name = format!("keystroke to durable, {name} characters, to one SQLite commit, p{percent}");
            report.figure(name, ratio, "times", Goal::None);
        }
    }
    Ok(())
}

/// What a durable commit of one small row costs here, at the pace of typing.
fn floor(count: usize) -> Result<Vec<f64>, String> {
    let scratch = ScratchFolder::new("floor")?;
    let floor = BaselineDatabase::open(scratch.folder()).map_err(|error| error.to_string())?;
    scratch.settle();
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        floor.commit(&[b'x'; 200]).map_err(|error| error.to_string())?;
        times.push(ms(begun.elapsed()));
        std::thread::park_timeout(PACE.saturating_sub(begun.elapsed()));
    }
    Ok(times)
}

#[derive(Default)]
struct Typed {
    drawn: Vec<f64>,
    cpu: Vec<f64>,
    durable: Vec<f64>,
}

/// Types into the middle of a note of this length.
fn note(report: &mut Report, length: usize, name: &str) -> Result<Typed, String> {
    let scratch = ScratchFolder::new(name)?;
    let text = prose::note(length);
    scratch.write("N/long.md", text.as_bytes())?;
    scratch.settle();
    let (mut stage, note) = staged_note(&scratch)?;
    stage.run(Duration::from_millis(500));
    // About as high as the note is, half of it: where exactly the caret stands does not matter.
    stage.scroll(length as f32 / 90.0 * 24.0 * 0.6);
    let first = first_key(&mut stage, note)?;
    let at = first.at as f64 / length as f64 * 100.0;
    report.figure(format!("first keystroke ever, {name} characters, drawn"), ms(first.drawn.wall), "ms", Goal::None);
    report.figure(
        format!("first keystroke ever, {name} characters, drawn, CPU"),
        ms(first.drawn.cpu),
        "ms",
        Goal::None,
    );
    report.figure(format!("first keystroke ever, {name} characters, durable"), first.durable, "ms", Goal::None);
    report.figure(format!("caret, {name} characters"), at, "% of the note", Goal::None);
    stage.run_until("the first letter is saved", Session::is_saved)?;
    stage.run(Duration::from_secs(2));

    let mut typed = Typed::default();
    let mut waiting: VecDeque<(u64, Instant)> = VecDeque::new();
    let mut chance = Chance::new(3);
    let before = stage.session().note(note).map_or(0, engine::Note::length);
    for number in 0..KEYS {
        let begun = Instant::now();
        let letter = if number % 6 == 5 { ' ' } else { char::from(b'a' + chance.below(26) as u8) };
        let frame = stage.frame(press(letter));
        typed.drawn.push(ms(frame.wall));
        typed.cpu.push(ms(frame.cpu));
        waiting.push_back((stage.session().saving().last, begun));
        arrived(frame, &mut waiting, &mut typed.durable);
        while let Some(left) = PACE.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
            if stage.wait(left) {
                arrived(stage.frame(Vec::new()), &mut waiting, &mut typed.durable);
            }
        }
    }
    while !waiting.is_empty() {
        stage.wait(Duration::from_millis(20));
        arrived(stage.frame(Vec::new()), &mut waiting, &mut typed.durable);
    }
    let after = stage.session().note(note).map_or(0, engine::Note::length);
    if after != before + KEYS {
        report.wrong(format!("{KEYS} letters were typed and the note has {} more", after.saturating_sub(before)));
    }
    stage.close();
    Ok(typed)
}

/// Notes the keys that a frame has found on disk.
fn arrived(frame: Drawn, waiting: &mut VecDeque<(u64, Instant)>, durable: &mut Vec<f64>) {
    let Some((upto, when)) = frame.durable else { return };
    while let Some((_, begun)) = waiting.pop_front_if(|(number, _)| *number <= upto) {
        durable.push(ms(when.saturating_duration_since(begun)));
    }
}

struct First {
    drawn: Drawn,
    durable: f64,
    /// Where in the note it went.
    at: usize,
}

/// Clicks until the caret stands in text, and types the first letter: the note gets its document by it.
fn first_key(stage: &mut Stage, note: DocId) -> Result<First, String> {
    for down in [0.0, 45.0, -60.0, 90.0, -120.0, 150.0, -200.0] {
        stage.click(down);
        let revision = stage.session().note(note).map_or(0, engine::Note::revision);
        let begun = Instant::now();
        let frame = stage.frame(press('x'));
        let edited = stage.session().note(note).filter(|note| note.revision() > revision);
        let Some(at) = edited.and_then(|note| note.shifts_since(revision)?.next().map(|shift| shift.at)) else {
            continue;
        };
        let number = stage.session().saving().last;
        stage.run_until("the first letter is durable", |session| session.saving().durable >= number)?;
        return Ok(First { drawn: frame, durable: ms(begun.elapsed()), at });
    }
    Err("no click put the caret into the note".to_owned())
}
