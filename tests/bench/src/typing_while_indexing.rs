//! Benchmark of typing in the window while very many notes are indexed: first their words, then their meanings.

use super::report::{BenchReport, FigureGoal};
use super::{open_note_window_in, open_workspace, search, text_fixtures, to_ms};
use crate::headless_window::{HeadlessWindow, key_events};
use engine::{Command, Session};
use host::search::SearchService;
use std::time::{Duration, Instant};
use support::measure::ScratchFolder;

/// Number of keys typed in each phase.
const KEYS_PER_PHASE: usize = 400;
/// Interval between keys: a fast typist.
const INDEXING_KEY_INTERVAL: Duration = Duration::from_millis(30);
/// Maximum time to wait for anything.
const INDEXING_TIMEOUT: Duration = Duration::from_secs(600);

/// Measures both phases over `count` notes.
pub(super) fn measure(report: &mut BenchReport, count: usize) -> Result<(), String> {
    let scratch = ScratchFolder::new("meanwhile")?;
    scratch.write("N/long.md", text_fixtures::note_of_length(100_000).as_bytes())?;
    search::write_notes(&scratch, "L", count)?;
    scratch.sync_to_disk();
    report.add_figure("notes", count as f64, "", FigureGoal::None);
    let mut driver = open_workspace(&scratch)?;
    search::use_stand_in_model(report, &mut driver, count)?;
    let search = driver.search().clone();
    let (mut stage, _) = open_note_window_in(driver, &scratch)?;
    stage.place_caret_and_scroll(50_000);
    stage.draw_for(Duration::from_millis(500));
    stage.draw_frame(key_events('x'));
    stage.draw_until("the first letter is saved", Session::is_saved)?;
    search.wait_until_indexed(INDEXING_TIMEOUT).map_err(|why| why.to_string())?;
    stage.send_command(Command::OpenFolder { folder: scratch.folder().join("L"), name: None });
    stage.draw_until("the notes are known", |session| session.volumes().all(|volume| volume.scans > 0))?;
    measure_typing(report, &mut stage, "while notes are indexed", || !search.freshness().complete)?;
    draw_until_indexed(&mut stage, "all are indexed", || search.freshness().complete)?;
    // Embedding starts after a moment of rest.
    draw_until_indexed(&mut stage, "meanings are being found", || is_embedding(&search))?;
    measure_typing(report, &mut stage, "while meanings are found", || is_embedding(&search))?;
    stage.close();
    Ok(())
}

fn is_embedding(search: &SearchService) -> bool {
    let (left, all) = search.freshness().meanings;
    left > 0 && left < all
}

fn draw_until_indexed(stage: &mut HeadlessWindow, what: &str, so: impl Fn() -> bool) -> Result<(), String> {
    let begun = Instant::now();
    while !so() {
        if begun.elapsed() > INDEXING_TIMEOUT {
            return Err(format!("given up waiting until {what}"));
        }
        stage.draw_for(Duration::from_millis(20));
    }
    Ok(())
}

/// Types keys while `busy` is true, and reports how long each took to be drawn.
fn measure_typing(
    report: &mut BenchReport,
    stage: &mut HeadlessWindow,
    when: &str,
    busy: impl Fn() -> bool,
) -> Result<(), String> {
    let (mut drawn, mut cpu) = (Vec::with_capacity(KEYS_PER_PHASE), Vec::with_capacity(KEYS_PER_PHASE));
    let mut meanwhile = 0;
    for key in 0..KEYS_PER_PHASE {
        meanwhile += usize::from(busy());
        let frame = stage.draw_frame(key_events(char::from(b'a' + (key % 26) as u8)));
        drawn.push(to_ms(frame.wall));
        cpu.push(to_ms(frame.cpu));
        stage.draw_for(INDEXING_KEY_INTERVAL.saturating_sub(frame.wall));
    }
    if meanwhile * 2 < KEYS_PER_PHASE {
        report.leave_out(
            &format!("keystroke to drawn {when}"),
            format!("it was over after {meanwhile} of {KEYS_PER_PHASE} keys: ask for more notes"),
        );
        return Ok(());
    }
    report.add_figure(format!("{when}, keys pressed meanwhile"), meanwhile as f64, "", FigureGoal::None);
    report.add_percentiles(&format!("{when}, keystroke to drawn,"), &mut drawn, "ms", FigureGoal::Under(16.0));
    report.add_percentiles(&format!("{when}, keystroke to drawn, CPU"), &mut cpu, "ms", FigureGoal::Under(4.0));
    Ok(())
}
