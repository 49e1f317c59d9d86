//! Benchmark of what the UI thread waits for between a keystroke and the triangles, while everything else is busy.
//!
//! The disk is busy with other writes, the index with a new folder, and the kernel with a cell that prints. The system
//! counts each time that the thread yields its core voluntarily (a read, a lock, a channel). Only locks held for
//! microseconds remain: that of the toolkit's context, when another thread requests a frame, and those of the
//! allocator.

use super::super::report::{BenchReport, FigureGoal};
use super::super::{open_note_window, text_fixtures, to_ms};
use crate::headless_window::key_events;
use engine::{Command, Session};
use std::time::Duration;
use support::measure::{self, DiskLoad, ScratchFolder};

/// Number of keystrokes measured.
const BUSY_KEYSTROKES: usize = 1_000;
/// Number of notes indexed meanwhile.
const INDEXING_NOTES: usize = 3_000;
/// A long cell that prints for minutes unless it's stopped.
const LONG_RUNNING_CELL: &str =
    "```python\nimport time\nfor n in range(100000):\n    print(n, 'x' * 60)\n    time.sleep(0.01)\n```\n";

/// Measures the waits in the frames of 1,000 keystrokes.
pub(super) fn measure(report: &mut BenchReport) -> Result<(), String> {
    if measure::thread_voluntary_switches().is_none() {
        report.leave_out("waits of the drawing thread", "this system does not count them");
        return Ok(());
    }
    let scratch = ScratchFolder::new("waits")?;
    scratch
        .write("N/note.md", format!("{LONG_RUNNING_CELL}\n{}", text_fixtures::note_of_length(100_000)).as_bytes())?;
    for number in 0..INDEXING_NOTES {
        scratch.write(
            &format!("L/{}", text_fixtures::linked_note_path(number)),
            text_fixtures::linked_note(number, INDEXING_NOTES).as_bytes(),
        )?;
    }
    scratch.sync_to_disk();
    let (mut stage, note) = open_note_window(&scratch)?;
    let cell = stage.session().note(note).and_then(|note| note.cells().next()).ok_or("the note has no cell")?;
    stage.place_caret_and_scroll(60_000);
    stage.draw_for(Duration::from_millis(500));
    stage.draw_frame(key_events('x'));
    stage.draw_for(Duration::from_secs(1));
    let churn = DiskLoad::new(scratch.folder())?;
    stage.send_command(Command::Run { note, cell });
    stage.send_command(Command::OpenFolder { folder: scratch.folder().join("L"), name: None });
    let printed = |session: &Session| {
        session.note(note).and_then(|note| note.latest_execution(cell)).is_some_and(|run| !run.outputs.is_empty())
    };
    stage.draw_until("the cell prints", printed)?;
    let (mut waits, mut waited, mut transfers) = (0, 0, 0);
    let (mut off, mut cpu) = (Vec::with_capacity(BUSY_KEYSTROKES), Vec::with_capacity(BUSY_KEYSTROKES));
    for key in 0..BUSY_KEYSTROKES {
        let drawn = stage.draw_frame(key_events(char::from(b'a' + (key % 26) as u8)));
        waits += drawn.gave_way;
        transfers += drawn.transfers;
        waited += u64::from(drawn.gave_way > 0);
        // Time that's neither work nor waiting for a busy core.
        off.push(to_ms(drawn.wall.saturating_sub(drawn.cpu + drawn.waited)));
        cpu.push(to_ms(drawn.cpu));
        stage.draw_for(Duration::from_millis(8));
    }
    let busy = stage
        .session()
        .note(note)
        .and_then(|note| note.latest_execution(cell))
        .is_some_and(|run| !run.status.is_final());
    let synced = churn.end();
    if !busy || synced < 3 {
        report.add_error(format!("not all was busy: the cell runs: {busy}; {synced} writes reached the disk"));
    }
    stage.send_command(Command::Interrupt { note });
    let name = "busy with disk, index and cell";
    let figure =
        format!("{name}, reads, writes and disk faults of the drawing thread in {BUSY_KEYSTROKES} keystroke frames");
    report.add_figure(figure, transfers as f64, "", FigureGoal::Zero);
    report.add_figure(format!("{name}, waits of the drawing thread meanwhile"), waits as f64, "", FigureGoal::None);
    report.add_figure(format!("{name}, keystroke frames that waited"), waited as f64, "", FigureGoal::None);
    let longest = off.iter().copied().fold(0.0, f64::max);
    report.add_figure(format!("{name}, longest wait in a keystroke frame"), longest, "ms", FigureGoal::Under(1.0));
    report.add_percentiles(&format!("{name}, typing, CPU"), &mut cpu, "ms", FigureGoal::Under(4.0));
    stage.close();
    Ok(())
}
