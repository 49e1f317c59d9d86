//! Benchmark of a collection of very many notes: the time until its table is shown, and the cost of its frames.

use super::report::{BenchReport, FigureGoal};
use super::text_fixtures::{self, FixtureRng};
use super::{open_headless_window, to_ms};
use engine::Session;
use std::time::{Duration, Instant};
use support::measure::ScratchFolder;

/// Number of frames of each kind.
const COLLECTION_FRAMES: usize = 300;
/// Scroll distances in points: one turn of the wheel, and a long way.
const COLLECTION_WHEEL_POINTS: f32 = 120.0;
const FAR_SCROLL_POINTS: f32 = 40_000.0;
/// Maximum time to wait for the table.
const TABLE_TIMEOUT: Duration = Duration::from_secs(120);
/// The collection. Groups lengthen the table, and summaries require a pass over it.
const COLLECTION_SOURCE: &str = "filters: file.ext == \"md\"
formulas:
  Twice: rating * 2
views:
  - type: table
    name: All
    groupBy:
      property: kind
      direction: ASC
    order:
      - file.name
      - rating
      - done
      - topics
      - last
      - formula.Twice
      - file.size
    sort:
      - property: rating
        direction: DESC
    summaries:
      note.rating: Average
";

fn note_text(number: usize) -> String {
    let mut chance = FixtureRng::new(number as u64 + 1);
    let (rating, kind, day) = (chance.below(100), chance.below(20), 1 + chance.below(28));
    let (done, other) = (chance.below(2) == 0, chance.below(1_000));
    format!(
        "---\nrating: {rating}\nkind: Kind {kind:02}\ndone: {done}\nlast: 2026-03-{day:02}\n\
         topics: [\"[[Note {other:05}]]\", word {kind}, word {day}]\n---\nA note.\n"
    )
}

/// Measures a collection of `count` notes.
pub(super) fn measure(report: &mut BenchReport, count: usize) -> Result<(), String> {
    let scratch = ScratchFolder::new("collection")?;
    for number in 0..count {
        scratch.write(&format!("N/{}", text_fixtures::linked_note_path(number)), note_text(number).as_bytes())?;
    }
    scratch.write("N/All.base", COLLECTION_SOURCE.as_bytes())?;
    scratch.sync_to_disk();
    let mut stage = open_headless_window(&scratch)?;
    let find = |session: &Session| session.volumes().find_map(|volume| volume.files.get("All.base")).map(|row| row.id);
    let file = find(stage.session()).ok_or("the collection is not there")?;
    let name = format!("collection of {count} notes");
    let (begun, mut meanwhile) = (Instant::now(), Vec::new());
    stage.show_note(file);
    meanwhile.push(to_ms(stage.draw_frame(Vec::new()).cpu));
    while stage.collection_row_count() != Some(count) && begun.elapsed() < TABLE_TIMEOUT {
        stage.wait_for_repaint(Duration::from_millis(20));
        meanwhile.push(to_ms(stage.draw_frame(Vec::new()).cpu));
    }
    if stage.collection_row_count() != Some(count) {
        report.add_error(format!("{count} rows should be there and {:?} are", stage.collection_row_count()));
        return Ok(());
    }
    report.add_figure(format!("{name}, until it is there"), begun.elapsed().as_secs_f64(), "s", FigureGoal::None);
    report.add_percentiles(&format!("{name}, until it is there, CPU"), &mut meanwhile, "ms", FigureGoal::None);
    stage.draw_for(Duration::from_millis(500));
    let mut scroll: Vec<f64> =
        (0..COLLECTION_FRAMES).map(|_| to_ms(stage.turn_wheel(COLLECTION_WHEEL_POINTS))).collect();
    report.add_percentiles(&format!("{name}, scroll, CPU"), &mut scroll, "ms", FigureGoal::Under(2.0));
    // Scroll down and back up.
    let far = |step: usize| if step % 60 < 30 { FAR_SCROLL_POINTS } else { -FAR_SCROLL_POINTS };
    let mut far: Vec<f64> = (0..COLLECTION_FRAMES).map(|step| to_ms(stage.turn_wheel(far(step)))).collect();
    report.add_percentiles(&format!("{name}, far, CPU"), &mut far, "ms", FigureGoal::Under(4.0));
    stage.close();
    Ok(())
}
