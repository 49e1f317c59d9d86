//! What the thread that draws waits for between a key and the triangles, while all else is busy: the disk with writes
//! of others, the index with a new folder, the kernel with a cell that prints. Each time that the thread gives up its
//! core of its own accord (a read, a lock, a channel) the system counts it. What is left are locks that are held for
//! microseconds: that of the toolkit's context, when another thread asks for a frame, and those of the allocator.

use super::super::report::{Goal, Report};
use super::super::{ms, prose, staged_note};
use crate::stage::press;
use engine::{Command, Session};
use host::measure::{self, DiskLoad, ScratchFolder};
use std::time::Duration;

/// Keystrokes that are looked at.
const KEYS: usize = 1_000;
/// Notes that are being put into the index meanwhile.
const NOTES: usize = 3_000;
/// The longest cell: it prints for minutes unless it is stopped.
const CELL: &str =
    "```python\nimport time\nfor n in range(100000):\n    print(n, 'x' * 60)\n    time.sleep(0.01)\n```\n";

/// The waits of 1,000 keystroke frames.
pub(super) fn measure(report: &mut Report) -> Result<(), String> {
    if measure::thread_gave_way().is_none() {
        report.leave_out("waits of the drawing thread", "this system does not count them");
        return Ok(());
    }
    let scratch = ScratchFolder::new("waits")?;
    scratch.write("N/note.md", format!("{CELL}\n{}", prose::note(100_000)).as_bytes())?;
    for number in 0..NOTES {
        scratch.write(&format!("L/{}", prose::path(number)), prose::linked(number, NOTES).as_bytes())?;
    }
    scratch.settle();
    let (mut stage, note) = staged_note(&scratch)?;
    let cell = stage.session().note(note).and_then(|note| note.cells().next()).ok_or("the note has no cell")?;
    stage.place(60_000);
    stage.run(Duration::from_millis(500));
    stage.frame(press('x'));
    stage.run(Duration::from_secs(1));
    let churn = DiskLoad::new(scratch.folder())?;
    stage.command(Command::Run { note, cell });
    stage.command(Command::OpenFolder { folder: scratch.folder().join("L"), name: None });
    let printed = |session: &Session| {
        session.note(note).and_then(|note| note.execution(cell)).is_some_and(|run| !run.outputs.is_empty())
    };
    stage.run_until("the cell prints", printed)?;
    let (mut waits, mut waited, mut transfers) = (0, 0, 0);
    let (mut off, mut cpu) = (Vec::with_capacity(KEYS), Vec::with_capacity(KEYS));
    for key in 0..KEYS {
        let drawn = stage.frame(press(char::from(b'a' + (key % 26) as u8)));
        waits += drawn.gave_way;
        transfers += drawn.transfers;
        waited += u64::from(drawn.gave_way > 0);
        // What is neither work nor waiting for a core that others are on.
        off.push(ms(drawn.wall.saturating_sub(drawn.cpu + drawn.waited)));
        cpu.push(ms(drawn.cpu));
        stage.run(Duration::from_millis(8));
    }
    let busy =
        stage.session().note(note).and_then(|note| note.execution(cell)).is_some_and(|run| !run.status.is_final());
    let synced = churn.end();
    if !busy || synced < 3 {
        report.wrong(format!("not all was busy: the cell runs: {busy}; {synced} writes reached the disk"));
    }
    stage.command(Command::Interrupt { note });
    let name = "busy with disk, index and cell";
    let figure = format!("{name}, reads, writes and disk faults of the drawing thread in {KEYS} keystroke frames");
    report.figure(figure, transfers as f64, "", Goal::Zero);
    report.figure(format!("{name}, waits of the drawing thread meanwhile"), waits as f64, "", Goal::None);
    report.figure(format!("{name}, keystroke frames that waited"), waited as f64, "", Goal::None);
    let longest = off.iter().copied().fold(0.0, f64::max);
    report.figure(format!("{name}, longest wait in a keystroke frame"), longest, "ms", Goal::Under(1.0));
    report.spread(&format!("{name}, typing, CPU"), &mut cpu, "ms", Goal::Under(4.0));
    stage.close();
    Ok(())
}
