//! Benchmark of a plot of a million points: the time until its first image, and each frame during pan and zoom.

use super::report::{BenchReport, FigureGoal};
use super::{open_note_window, to_ms};
use eframe::egui::vec2;
use engine::{Command, Session};
use std::time::{Duration, Instant};
use support::measure::ScratchFolder;

/// Number of frames of each kind.
const PLOT_FRAMES: usize = 200;
/// Maximum time of an image.
const PICTURE_TIMEOUT: Duration = Duration::from_secs(120);
/// The plots: a line with increasing x, and unordered points.
const MILLION_POINT_PLOTS: [(&str, &str); 2] = [
    ("1,000,000 points", "plt.plot(np.cumsum(rng.normal(size=1_000_000)))"),
    ("1,000,000 scattered", "plt.scatter(rng.normal(size=1_000_000), rng.normal(size=1_000_000), s=4)"),
];

/// Runs all benchmarks of plots.
pub(super) fn measure(report: &mut BenchReport) -> Result<(), String> {
    for (name, draws) in MILLION_POINT_PLOTS {
        let scratch = ScratchFolder::new("plots")?;
        let head = "```python timeout=0\nimport matplotlib.pyplot as plt, numpy as np";
        let text = format!("{head}\nrng = np.random.default_rng(1)\n{draws}\n```\n");
        scratch.write("N/note.md", text.as_bytes())?;
        scratch.sync_to_disk();
        let (mut stage, note) = open_note_window(&scratch)?;
        stage.draw_for(Duration::from_secs(2));
        let begun = Instant::now();
        stage.send_command(Command::RunAll { note });
        let done = |session: &Session| {
            session.note(note).is_some_and(|note| {
                note.cells().all(|cell| note.latest_execution(cell).is_some_and(|run| run.status.is_final()))
            })
        };
        stage.draw_until("the cell has run", done)?;
        let ran = begun.elapsed();
        let mut longest = Duration::ZERO;
        while stage.drawn_figure_count() == 0 {
            if begun.elapsed() > PICTURE_TIMEOUT {
                return Err(format!("{name}: no picture came"));
            }
            stage.wait_for_repaint(Duration::from_millis(5));
            longest = longest.max(stage.draw_frame(Vec::new()).cpu);
        }
        report.add_figure(format!("{name}, run to first picture"), to_ms(begun.elapsed()), "ms", FigureGoal::None);
        report.add_figure(format!("{name}, of it the cell itself"), to_ms(ran), "ms", FigureGoal::None);
        report.add_figure(
            format!("{name}, longest frame meanwhile, CPU"),
            to_ms(longest),
            "ms",
            FigureGoal::Under(16.0),
        );
        stage.draw_for(Duration::from_millis(500));
        stage.press_pointer(true);
        let mut moved: Vec<f64> = (0..PLOT_FRAMES)
            .map(|at| to_ms(stage.drag_pointer(vec2(if at / 40 % 2 == 0 { 3.0 } else { -3.0 }, 1.0)).cpu))
            .collect();
        stage.press_pointer(false);
        report.add_percentiles(&format!("{name}, panning, CPU"), &mut moved, "ms", FigureGoal::Under(16.0));
        stage.close();
    }
    Ok(())
}
