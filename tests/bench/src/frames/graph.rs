//! Benchmark of the graph of very many notes: the cost of frames during layout, panning and zooming.

use super::super::report::{BenchReport, FigureGoal};
use super::super::{open_headless_window, text_fixtures, to_ms};
use super::NOTE_FRAMES;
use eframe::egui::vec2;
use engine::commands::CommandId;
use std::time::{Duration, Instant};
use support::measure::ScratchFolder;

/// Goal for the CPU time of a frame, in milliseconds.
const GRAPH_FRAME_GOAL: FigureGoal = FigureGoal::Under(8.0);
/// Maximum time to wait for the layout.
const GRAPH_LAYOUT_TIMEOUT: Duration = Duration::from_secs(120);

/// Measures frames of the graph of `count` notes.
pub(super) fn measure(report: &mut BenchReport, count: usize) -> Result<(), String> {
    let scratch = ScratchFolder::new("graph")?;
    for number in 0..count {
        scratch.write(
            &format!("N/{}", text_fixtures::linked_note_path(number)),
            text_fixtures::linked_note(number, count).as_bytes(),
        )?;
    }
    scratch.sync_to_disk();
    let mut stage = open_headless_window(&scratch)?;
    let name = format!("graph of {count} notes");
    stage.request_command(CommandId::ViewGraph);
    let (begun, mut settling) = (Instant::now(), Vec::new());
    settling.push(to_ms(stage.draw_frame(Vec::new()).cpu));
    while begun.elapsed() < GRAPH_LAYOUT_TIMEOUT && stage.wait_for_repaint(Duration::from_secs(1)) {
        settling.push(to_ms(stage.draw_frame(Vec::new()).cpu));
    }
    report.add_figure(format!("{name}, laid out"), begun.elapsed().as_secs_f64() - 1.0, "s", FigureGoal::None);
    report.add_figure(format!("{name}, frames meanwhile"), settling.len() as f64, "", FigureGoal::None);
    report.add_percentiles(&format!("{name}, while it is laid out, CPU"), &mut settling, "ms", GRAPH_FRAME_GOAL);
    let mut pan: Vec<f64> = Vec::with_capacity(NOTE_FRAMES);
    stage.press_pointer(true);
    for step in 0..NOTE_FRAMES {
        // Pan forward and back.
        let by = if step % 100 < 50 { vec2(3.0, 2.0) } else { vec2(-3.0, -2.0) };
        pan.push(to_ms(stage.drag_pointer(by).cpu));
    }
    stage.press_pointer(false);
    report.add_percentiles(&format!("{name}, pan, CPU"), &mut pan, "ms", GRAPH_FRAME_GOAL);
    let zoom = |step: usize| if step % 100 < 60 { -12.0 } else { 12.0 };
    let mut zoom: Vec<f64> = (0..NOTE_FRAMES).map(|step| to_ms(stage.turn_wheel(zoom(step)))).collect();
    report.add_percentiles(&format!("{name}, zoom, CPU"), &mut zoom, "ms", GRAPH_FRAME_GOAL);
    stage.close();
    Ok(())
}
