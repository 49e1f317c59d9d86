//! Keys pressed in the window while the index of very many notes is being made: first of their words, then of their
//! meanings.

use super::report::{Goal, Report};
use super::{ms, prose, search, staged_note_of, workspace};
use crate::stage::{Stage, press};
use engine::{Command, Session};
use host::measure::ScratchFolder;
use host::search::SearchService;
use std::time::{Duration, Instant};

/// Keys in each half.
const KEYS: usize = 400;
/// From key to key: a fast typist.
const PACE: Duration = Duration::from_millis(30);
/// How long anything may take before it is given up.
const PATIENCE: Duration = Duration::from_secs(600);

/// Both halves, over so many notes.
pub(super) fn measure(report: &mut Report, count: usize) -> Result<(), String> {
    let scratch = ScratchFolder::new("meanwhile")?;
    scratch.write("N/long.md", prose::note(100_000).as_bytes())?;
    search::notes(&scratch, "L", count)?;
    scratch.settle();
    report.figure("notes", count as f64, "", Goal::None);
    let mut driver = workspace(&scratch)?;
    search::stand_in(report, &mut driver, count)?;
    let search = driver.search().clone();
    let (mut stage, _) = staged_note_of(driver, &scratch)?;
    stage.place(50_000);
    stage.run(Duration::from_millis(500));
    stage.frame(press('x'));
    stage.run_until("the first letter is saved", Session::is_saved)?;
    search.settle(PATIENCE)?;
    stage.command(Command::OpenFolder { folder: scratch.folder().join("L"), name: None });
    stage.run_until("the notes are known", |session| session.volumes().all(|volume| volume.scans > 0))?;
    typed(report, &mut stage, "while notes are indexed", || !search.freshness().complete)?;
    until(&mut stage, "all are indexed", || search.freshness().complete)?;
    // The meanings begin after a moment of rest.
    until(&mut stage, "meanings are being found", || is_thinking(&search))?;
    typed(report, &mut stage, "while meanings are found", || is_thinking(&search))?;
    stage.close();
    Ok(())
}

fn is_thinking(search: &SearchService) -> bool {
    let (left, all) = search.freshness().meanings;
    left > 0 && left < all
}

fn until(stage: &mut Stage, what: &str, so: impl Fn() -> bool) -> Result<(), String> {
    let begun = Instant::now();
    while !so() {
        if begun.elapsed() > PATIENCE {
            return Err(format!("given up waiting until {what}"));
        }
        stage.run(Duration::from_millis(20));
    }
    Ok(())
}

/// Presses keys as long as `busy`, and says how long each took to be drawn.
fn typed(report: &mut Report, stage: &mut Stage, when: &str, busy: impl Fn() -> bool) -> Result<(), String> {
    let (mut drawn, mut cpu) = (Vec::with_capacity(KEYS), Vec::with_capacity(KEYS));
    let mut meanwhile = 0;
    for key in 0..KEYS {
        meanwhile += usize::from(busy());
        let frame = stage.frame(press(char::from(b'a' + (key % 26) as u8)));
        drawn.push(ms(frame.wall));
        cpu.push(ms(frame.cpu));
        stage.run(PACE.saturating_sub(frame.wall));
    }
    if meanwhile * 2 < KEYS {
        report.leave_out(
            &format!("keystroke to drawn {when}"),
            format!("it was over after {meanwhile} of {KEYS} keys: ask for more notes"),
        );
        return Ok(());
    }
    report.figure(format!("{when}, keys pressed meanwhile"), meanwhile as f64, "", Goal::None);
    report.spread(&format!("{when}, keystroke to drawn,"), &mut drawn, "ms", Goal::Under(16.0));
    report.spread(&format!("{when}, keystroke to drawn, CPU"), &mut cpu, "ms", Goal::Under(4.0));
    Ok(())
}
