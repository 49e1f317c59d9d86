//! What a frame costs the thread that draws, triangles included: scrolling, jumping and typing in a note of very many
//! blocks, in notes that are one single block, and in one full of outputs; the graph and a collection of very many
//! notes; and what the thread that draws waits for.

mod graph;
mod waits;

use super::prose::{self, Chance};
use super::report::{Goal, Report};
use super::{collection, ms, staged_note};
use crate::stage::{Stage, press};
use engine::{Command, Session};
use host::measure::ScratchFolder;
use std::time::Duration;
use store::{DocId, OutputBody};

/// Frames of each kind.
const FRAMES: usize = 300;
/// One turn of a wheel, in points.
const TURN: f32 = 120.0;
/// The cells of the note with outputs, and how many of them draw.
const CELLS: usize = 200;
const PLOTS: usize = 50;
/// The notes of the graph.
const NOTES: usize = 20_000;
/// The notes of the collection.
const ROWS: usize = 50_000;

/// What of the goals holds for a note.
struct Goals {
    scroll: Goal,
    jump: Goal,
    typing: Goal,
}

/// All figures of frames.
pub(super) fn measure(report: &mut Report, blocks: usize) -> Result<(), String> {
    let goals = || Goals { scroll: Goal::Under(1.0), jump: Goal::Under(4.0), typing: Goal::Under(2.0) };
    note(report, &format!("{blocks} blocks"), &prose::blocks(blocks), &goals(), false)?;
    note(report, "one paragraph of 1 MB", &prose::paragraph(1_000_000), &goals(), false)?;
    note(report, "one block of code of 1 MB", &prose::code(1_000_000), &goals(), false)?;
    let outputs = prose::outputs(CELLS, PLOTS);
    note(report, &format!("{CELLS} outputs, {PLOTS} of them plots"), &outputs, &goals(), true)?;
    graph::measure(report, NOTES)?;
    collection::measure(report, ROWS)?;
    waits::measure(report)
}

fn note(report: &mut Report, name: &str, text: &str, goals: &Goals, run: bool) -> Result<(), String> {
    let scratch = ScratchFolder::new("frames")?;
    scratch.write("N/note.md", text.as_bytes())?;
    scratch.settle();
    let (mut stage, note) = staged_note(&scratch)?;
    if run {
        stage.command(Command::RunAll { note });
        let done = |session: &Session| {
            session.note(note).is_some_and(|note| {
                note.cells().all(|cell| note.execution(cell).is_some_and(|run| run.status.is_final()))
            })
        };
        stage.run_until("all cells have run", done)?;
        let plots = stage.session().note(note).map_or(0, plots);
        if plots != PLOTS {
            report.wrong(format!("{PLOTS} plots should be there and {plots} are"));
        }
    }
    stage.run(Duration::from_millis(500));
    measured(report, name, text.len(), goals, &mut stage, note);
    stage.close();
    Ok(())
}

/// How many cells of a note have drawn.
fn plots(note: &engine::Note) -> usize {
    let drew = |output: &store::CellOutput| match &output.body {
        OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => {
            data.contains_key(plot::FIGURE_MIME)
        }
        OutputBody::Stream { .. } | OutputBody::Error { .. } => false,
    };
    note.cells().filter_map(|cell| note.execution(cell)).filter(|run| run.outputs.iter().any(drew)).count()
}

fn measured(report: &mut Report, name: &str, length: usize, goals: &Goals, stage: &mut Stage, note: DocId) {
    let mut chance = Chance::new(11);
    let mut scroll: Vec<f64> = (0..FRAMES).map(|_| ms(stage.wheel(TURN))).collect();
    report.spread(&format!("{name}, scroll, CPU"), &mut scroll, "ms", goals.scroll);
    let mut jump = Vec::with_capacity(FRAMES);
    for _ in 0..FRAMES {
        stage.place(chance.below(length));
        jump.push(ms(stage.frame(Vec::new()).cpu));
        (0..3).for_each(|_| _ = stage.frame(Vec::new()));
    }
    report.spread(&format!("{name}, jump, CPU"), &mut jump, "ms", goals.jump);
    stage.place(length / 2);
    stage.run(Duration::from_millis(500));
    let before = stage.session().note(note).map_or(0, engine::Note::length);
    // The first letter gives the note its document; that is measured by `bench edit`.
    stage.frame(press('x'));
    stage.run(Duration::from_secs(1));
    let mut typing = Vec::with_capacity(FRAMES);
    for _ in 0..FRAMES {
        typing.push(ms(stage.frame(press(char::from(b'a' + chance.below(26) as u8))).cpu));
        stage.run(Duration::from_millis(8));
    }
    report.spread(&format!("{name}, typing, CPU"), &mut typing, "ms", goals.typing);
    let typed = stage.session().note(note).map_or(0, engine::Note::length).saturating_sub(before);
    if typed != FRAMES + 1 {
        report.wrong(format!("{name}: {} letters were typed and the note has {typed} more", FRAMES + 1));
    }
}
