//! A plot of a million points: until its first picture, and each frame while somebody moves it.

use super::report::{Goal, Report};
use super::{ms, staged_note};
use eframe::egui::vec2;
use engine::{Command, Session};
use host::measure::ScratchFolder;
use std::time::{Duration, Instant};

/// Frames of each kind.
const FRAMES: usize = 200;
/// How long a picture may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// The plots: a line whose x only grow, and points without order.
const PLOTS: [(&str, &str); 2] = [
    ("1,000,000 points", "plt.plot(np.cumsum(rng.normal(size=1_000_000)))"),
    ("1,000,000 scattered", "plt.scatter(rng.normal(size=1_000_000), rng.normal(size=1_000_000), s=4)"),
];

/// All figures of plots.
pub(super) fn measure(report: &mut Report) -> Result<(), String> {
    for (name, draws) in PLOTS {
        let scratch = ScratchFolder::new("plots")?;
        let head = "```python timeout=0\nimport matplotlib.pyplot as plt, numpy as np";
        let text = format!("{head}\nrng = np.random.default_rng(1)\n{draws}\n```\n");
        scratch.write("N/note.md", text.as_bytes())?;
        scratch.settle();
        let (mut stage, note) = staged_note(&scratch)?;
        stage.run(Duration::from_secs(2));
        let begun = Instant::now();
        stage.command(Command::RunAll { note });
        let done = |session: &Session| {
            session.note(note).is_some_and(|note| {
                note.cells().all(|cell| note.execution(cell).is_some_and(|run| run.status.is_final()))
            })
        };
        stage.run_until("the cell has run", done)?;
        let ran = begun.elapsed();
        let mut longest = Duration::ZERO;
        while stage.figures() == 0 {
            if begun.elapsed() > PATIENCE {
                return Err(format!("{name}: no picture came"));
            }
            stage.wait(Duration::from_millis(5));
            longest = longest.max(stage.frame(Vec::new()).cpu);
        }
        report.figure(format!("{name}, run to first picture"), ms(begun.elapsed()), "ms", Goal::None);
        report.figure(format!("{name}, of it the cell itself"), ms(ran), "ms", Goal::None);
        report.figure(format!("{name}, longest frame meanwhile, CPU"), ms(longest), "ms", Goal::Under(16.0));
        stage.run(Duration::from_millis(500));
        stage.grab(true);
        let mut moved: Vec<f64> =
            (0..FRAMES).map(|at| ms(stage.pull(vec2(if at / 40 % 2 == 0 { 3.0 } else { -3.0 }, 1.0)).cpu)).collect();
        stage.grab(false);
        report.spread(&format!("{name}, panning, CPU"), &mut moved, "ms", Goal::Under(16.0));
        stage.close();
    }
    Ok(())
}
