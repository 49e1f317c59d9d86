//! The graph of very many notes: what its frames cost while it is being laid out, moved and zoomed.

use super::super::report::{Goal, Report};
use super::super::{ms, prose, staged};
use super::FRAMES;
use eframe::egui::vec2;
use host::measure::ScratchFolder;
use std::time::{Duration, Instant};

/// What one frame may cost.
const GOAL: Goal = Goal::Under(8.0);
/// The layout is looked at for so long at most.
const LONGEST: Duration = Duration::from_secs(120);

/// Frames of the graph of so many notes.
pub(super) fn measure(report: &mut Report, count: usize) -> Result<(), String> {
    let scratch = ScratchFolder::new("graph")?;
    for number in 0..count {
        scratch.write(&format!("N/{}", prose::path(number)), prose::linked(number, count).as_bytes())?;
    }
    scratch.settle();
    let mut stage = staged(&scratch)?;
    let name = format!("graph of {count} notes");
    stage.ask("view.graph");
    let (begun, mut settling) = (Instant::now(), Vec::new());
    settling.push(ms(stage.frame(Vec::new()).cpu));
    while begun.elapsed() < LONGEST && stage.wait(Duration::from_secs(1)) {
        settling.push(ms(stage.frame(Vec::new()).cpu));
    }
    report.figure(format!("{name}, laid out"), begun.elapsed().as_secs_f64() - 1.0, "s", Goal::None);
    report.figure(format!("{name}, frames meanwhile"), settling.len() as f64, "", Goal::None);
    report.spread(&format!("{name}, while it is laid out, CPU"), &mut settling, "ms", GOAL);
    let mut pan: Vec<f64> = Vec::with_capacity(FRAMES);
    stage.grab(true);
    for step in 0..FRAMES {
        // There and back.
        let by = if step % 100 < 50 { vec2(3.0, 2.0) } else { vec2(-3.0, -2.0) };
        pan.push(ms(stage.pull(by).cpu));
    }
    stage.grab(false);
    report.spread(&format!("{name}, pan, CPU"), &mut pan, "ms", GOAL);
    let zoom = |step: usize| if step % 100 < 60 { -12.0 } else { 12.0 };
    let mut zoom: Vec<f64> = (0..FRAMES).map(|step| ms(stage.wheel(zoom(step)))).collect();
    report.spread(&format!("{name}, zoom, CPU"), &mut zoom, "ms", GOAL);
    stage.close();
    Ok(())
}
