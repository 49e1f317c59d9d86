//! A collection of very many notes: how long until its table is there, and what its frames cost then.

use super::prose::{self, Chance};
use super::report::{Goal, Report};
use super::{ms, staged};
use engine::Session;
use host::measure::ScratchFolder;
use std::time::{Duration, Instant};

/// Frames of each kind.
const FRAMES: usize = 300;
/// One turn of a wheel, and a long way, in points.
const TURN: f32 = 120.0;
const FAR: f32 = 40_000.0;
/// The table is waited for so long at most.
const LONGEST: Duration = Duration::from_secs(120);
/// Groups make the table longer, sums make it be gone through.
const BASE: &str = "filters: file.ext == \"md\"
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

fn note(number: usize) -> String {
    let mut chance = Chance::new(number as u64 + 1);
    let (rating, kind, day) = (chance.below(100), chance.below(20), 1 + chance.below(28));
    let (done, other) = (chance.below(2) == 0, chance.below(1_000));
    format!(
        "---\nrating: {rating}\nkind: Kind {kind:02}\ndone: {done}\nlast: 2026-03-{day:02}\n\
         topics: [\"[[Note {other:05}]]\", word {kind}, word {day}]\n---\nA note.\n"
    )
}

/// Figures of a collection of so many notes.
pub(super) fn measure(report: &mut Report, count: usize) -> Result<(), String> {
    let scratch = ScratchFolder::new("collection")?;
    for number in 0..count {
        scratch.write(&format!("N/{}", prose::path(number)), note(number).as_bytes())?;
    }
    scratch.write("N/All.base", BASE.as_bytes())?;
    scratch.settle();
    let mut stage = staged(&scratch)?;
    let find = |session: &Session| session.volumes().find_map(|volume| volume.files.get("All.base")).map(|row| row.id);
    let file = find(stage.session()).ok_or("the collection is not there")?;
    let name = format!("collection of {count} notes");
    let (begun, mut meanwhile) = (Instant::now(), Vec::new());
    stage.show(file);
    meanwhile.push(ms(stage.frame(Vec::new()).cpu));
    while stage.rows() != Some(count) && begun.elapsed() < LONGEST {
        stage.wait(Duration::from_millis(20));
        meanwhile.push(ms(stage.frame(Vec::new()).cpu));
    }
    if stage.rows() != Some(count) {
        report.wrong(format!("{count} rows should be there and {:?} are", stage.rows()));
        return Ok(());
    }
    report.figure(format!("{name}, until it is there"), begun.elapsed().as_secs_f64(), "s", Goal::None);
    report.spread(&format!("{name}, until it is there, CPU"), &mut meanwhile, "ms", Goal::None);
    stage.run(Duration::from_millis(500));
    let mut scroll: Vec<f64> = (0..FRAMES).map(|_| ms(stage.wheel(TURN))).collect();
    report.spread(&format!("{name}, scroll, CPU"), &mut scroll, "ms", Goal::Under(2.0));
    // There and back.
    let far = |step: usize| if step % 60 < 30 { FAR } else { -FAR };
    let mut far: Vec<f64> = (0..FRAMES).map(|step| ms(stage.wheel(far(step)))).collect();
    report.spread(&format!("{name}, far, CPU"), &mut far, "ms", Goal::Under(4.0));
    stage.close();
    Ok(())
}
