//! Benchmarks of the UI thread's cost per frame, including tessellation.
//!
//! They cover scrolling, jumping and typing in a note of very many blocks, in notes of a single block, and in one full
//! of outputs. They also cover the graph and a collection of very many notes, and what the UI thread waits for.

mod blocking_waits;
mod graph;

use super::report::{BenchReport, FigureGoal};
use super::text_fixtures::{self, FixtureRng};
use super::{collection, open_note_window, to_ms};
use crate::headless_window::{HeadlessWindow, key_events};
use engine::{Command, Session};
use std::time::Duration;
use store::{DocId, OutputBody};
use support::measure::ScratchFolder;

/// Number of frames of each kind.
const NOTE_FRAMES: usize = 300;
/// Scroll distance of one wheel turn, in points.
const NOTE_WHEEL_POINTS: f32 = 120.0;
/// Number of cells in the note with outputs, and how many of them draw plots.
const OUTPUT_NOTE_CELLS: usize = 200;
const OUTPUT_NOTE_PLOTS: usize = 50;
/// Number of notes in the graph.
const GRAPH_NOTES: usize = 20_000;
/// Number of notes in the collection.
const COLLECTION_NOTES: usize = 50_000;

/// Goals for the frames of a note.
struct FrameGoals {
    scroll: FigureGoal,
    jump: FigureGoal,
    typing: FigureGoal,
}

/// Runs all benchmarks of frames.
pub(super) fn measure(report: &mut BenchReport, blocks: usize) -> Result<(), String> {
    let goals =
        || FrameGoals { scroll: FigureGoal::Under(1.0), jump: FigureGoal::Under(4.0), typing: FigureGoal::Under(2.0) };
    measure_note(report, &format!("{blocks} blocks"), &text_fixtures::note_with_blocks(blocks), &goals(), false)?;
    measure_note(report, "one paragraph of 1 MB", &text_fixtures::paragraph_of_length(1_000_000), &goals(), false)?;
    measure_note(report, "one block of code of 1 MB", &text_fixtures::code_of_length(1_000_000), &goals(), false)?;
    let outputs = text_fixtures::note_with_cells(OUTPUT_NOTE_CELLS, OUTPUT_NOTE_PLOTS);
    measure_note(
        report,
        &format!("{OUTPUT_NOTE_CELLS} outputs, {OUTPUT_NOTE_PLOTS} of them plots"),
        &outputs,
        &goals(),
        true,
    )?;
    graph::measure(report, GRAPH_NOTES)?;
    collection::measure(report, COLLECTION_NOTES)?;
    blocking_waits::measure(report)
}

fn measure_note(report: &mut BenchReport, name: &str, text: &str, goals: &FrameGoals, run: bool) -> Result<(), String> {
    let scratch = ScratchFolder::new("frames")?;
    scratch.write("N/note.md", text.as_bytes())?;
    scratch.sync_to_disk();
    let (mut stage, note) = open_note_window(&scratch)?;
    if run {
        stage.send_command(Command::RunAll { note });
        let done = |session: &Session| {
            session.note(note).is_some_and(|note| {
                note.cells().all(|cell| note.latest_execution(cell).is_some_and(|run| run.status.is_final()))
            })
        };
        stage.draw_until("all cells have run", done)?;
        let plots = stage.session().note(note).map_or(0, count_plots);
        if plots != OUTPUT_NOTE_PLOTS {
            report.add_error(format!("{OUTPUT_NOTE_PLOTS} plots should be there and {plots} are"));
        }
    }
    stage.draw_for(Duration::from_millis(500));
    measure_frames(report, name, text.len(), goals, &mut stage, note);
    stage.close();
    Ok(())
}

/// Counts the cells of a note that have drawn a plot.
fn count_plots(note: &engine::Note) -> usize {
    let drew = |output: &store::CellOutput| match &output.body {
        OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => {
            data.contains_key(plot::FIGURE_MIME)
        }
        OutputBody::Stream { .. } | OutputBody::Error { .. } => false,
    };
    note.cells().filter_map(|cell| note.latest_execution(cell)).filter(|run| run.outputs.iter().any(drew)).count()
}

fn measure_frames(
    report: &mut BenchReport,
    name: &str,
    length: usize,
    goals: &FrameGoals,
    stage: &mut HeadlessWindow,
    note: DocId,
) {
    let mut chance = FixtureRng::new(11);
    let mut scroll: Vec<f64> = (0..NOTE_FRAMES).map(|_| to_ms(stage.turn_wheel(NOTE_WHEEL_POINTS))).collect();
    report.add_percentiles(&format!("{name}, scroll, CPU"), &mut scroll, "ms", goals.scroll);
    let mut jump = Vec::with_capacity(NOTE_FRAMES);
    for _ in 0..NOTE_FRAMES {
        stage.place_caret_and_scroll(chance.below(length));
        jump.push(to_ms(stage.draw_frame(Vec::new()).cpu));
        (0..3).for_each(|_| _ = stage.draw_frame(Vec::new()));
    }
    report.add_percentiles(&format!("{name}, jump, CPU"), &mut jump, "ms", goals.jump);
    stage.place_caret_and_scroll(length / 2);
    stage.draw_for(Duration::from_millis(500));
    let before = stage.session().note(note).map_or(0, engine::Note::length);
    // The first keystroke loads the note's document; `bench edit` measures that.
    stage.draw_frame(key_events('x'));
    stage.draw_for(Duration::from_secs(1));
    let mut typing = Vec::with_capacity(NOTE_FRAMES);
    for _ in 0..NOTE_FRAMES {
        typing.push(to_ms(stage.draw_frame(key_events(char::from(b'a' + chance.below(26) as u8))).cpu));
        stage.draw_for(Duration::from_millis(8));
    }
    report.add_percentiles(&format!("{name}, typing, CPU"), &mut typing, "ms", goals.typing);
    let typed = stage.session().note(note).map_or(0, engine::Note::length).saturating_sub(before);
    if typed != NOTE_FRAMES + 1 {
        report.add_error(format!("{name}: {} letters were typed and the note has {typed} more", NOTE_FRAMES + 1));
    }
}
