//! A folder of very many notes becomes a volume while the window is open: how long, how much memory, and how long the
//! window ever stands still.

use super::prose;
use super::report::{Goal, Report};
use super::{ms, workspace};
use crate::stage::Stage;
use engine::{Command, ScanState, Session};
use host::measure::{self, ScratchFolder};
use std::path::Path;
use std::time::{Duration, Instant};

/// One frame of a screen at 60 Hz.
const FRAME: Duration = Duration::from_micros(16_667);
/// How long the whole may take.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// All figures of an import.
pub(super) fn measure(report: &mut Report, count: usize) -> Result<(), String> {
    let scratch = ScratchFolder::new("import")?;
    let mut bytes = 0;
    for number in 0..count {
        let text = prose::linked(number, count);
        bytes += text.len();
        scratch.write(&format!("N/{}", prose::path(number)), text.as_bytes())?;
    }
    scratch.settle();
    let folder = scratch.folder().join("N");
    let mut stage = Stage::new(workspace(&scratch)?);
    // What is laid out once (fonts, panels) is not the import's.
    (0..10).for_each(|_| _ = stage.frame(Vec::new()));

    report.figure("notes", count as f64, "", Goal::None);
    report.figure("text", bytes as f64 / 1e6, "MB", Goal::None);
    let before = measure::footprint(std::process::id());
    let stalls = scan(&mut stage, &folder, 0)?;
    let known = stage.session().volumes().map(|volume| volume.counts().0).sum::<u64>();
    if known != count as u64 {
        report.wrong(format!("{count} notes were made and {known} are known"));
    }
    report.figure("import until all are known", stalls.took.as_secs_f64(), "s", Goal::None);
    report.figure("import until all is on disk", stalls.saved.as_secs_f64(), "s", Goal::None);
    report.figure("import, notes a second", count as f64 / stalls.took.as_secs_f64(), "", Goal::None);
    report.figure("import, CPU of all threads", stalls.cpu.as_secs_f64(), "s", Goal::None);
    if let (Some(before), Some(after)) = (before, measure::footprint(std::process::id())) {
        report.figure("import, memory at its peak", after.peak as f64 / 1e6, "MB", Goal::None);
        let more = after.peak.saturating_sub(before.peak);
        report.figure("import, memory at its peak, above before", more as f64 / 1e6, "MB", Goal::None);
    }
    tell(report, "import", &stalls);

    let stalls = scan(&mut stage, &folder, 1)?;
    report.figure("second scan, nothing changed", stalls.took.as_secs_f64(), "s", Goal::None);
    tell(report, "second scan", &stalls);
    stage.close();
    again(report, &scratch)
}

/// A new start, at which all notes are known from the beginning.
fn again(report: &mut Report, scratch: &ScratchFolder) -> Result<(), String> {
    let begun = Instant::now();
    let mut stage = Stage::new(workspace(scratch)?);
    let (mut longest, mut pump, mut first, mut tree) = (0.0_f64, 0.0_f64, true, None);
    let scanned = |session: &Session| session.volumes().all(|volume| volume.known && volume.scans > 0);
    while !scanned(stage.session()) {
        let frame = Instant::now();
        let drawn = stage.frame(Vec::new());
        pump = pump.max(ms(drawn.pump));
        if tree.is_none() && stage.session().volumes().any(|volume| volume.known) {
            tree = Some(begun.elapsed());
        }
        // The first frame of all lays out fonts and is not counted: `bench open` has it.
        if !std::mem::take(&mut first) {
            longest = longest.max(ms(frame.elapsed()));
        }
        if begun.elapsed() > PATIENCE {
            return Err("given up waiting until the folder is known again".to_owned());
        }
        std::thread::park_timeout(FRAME.saturating_sub(frame.elapsed()));
    }
    let tree = tree.unwrap_or_else(|| begun.elapsed());
    report.figure("next start, until the tree is there", tree.as_secs_f64(), "s", Goal::None);
    report.figure("next start, until all are known and looked through", begun.elapsed().as_secs_f64(), "s", Goal::None);
    report.figure("next start, longest frame", longest, "ms", Goal::Under(16.0));
    report.figure("next start, longest pump", pump, "ms", Goal::None);
    stage.close();
    Ok(())
}

struct Stalls {
    took: Duration,
    saved: Duration,
    cpu: Duration,
    frames: Vec<f64>,
    longest_at_work: f64,
    longest_pump: f64,
    longest_pump_cpu: f64,
}

fn tell(report: &mut Report, name: &str, stalls: &Stalls) {
    let longest = stalls.frames.iter().copied().fold(0.0, f64::max);
    let late = stalls.frames.iter().filter(|frame| **frame >= ms(FRAME)).count();
    report.figure(format!("{name}, frames drawn meanwhile"), stalls.frames.len() as f64, "", Goal::None);
    report.figure(format!("{name}, longest frame"), longest, "ms", Goal::Under(16.0));
    let at_work = stalls.longest_at_work;
    report.figure(format!("{name}, longest frame without waits for a core"), at_work, "ms", Goal::Under(16.0));
    report.figure(format!("{name}, frames over 16.7 ms"), late as f64, "", Goal::None);
    report.figure(format!("{name}, longest pump"), stalls.longest_pump, "ms", Goal::Under(16.0));
    report.figure(format!("{name}, longest pump, CPU"), stalls.longest_pump_cpu, "ms", Goal::None);
}

/// Opens the folder (again) and draws until it is looked through and all is on disk.
fn scan(stage: &mut Stage, folder: &Path, scans: u64) -> Result<Stalls, String> {
    let known = |session: &Session| {
        let mut volumes = session.volumes();
        volumes.any(|volume| volume.scans > scans && volume.known && volume.scanning == ScanState::Idle)
    };
    let (begun, cpu) = (Instant::now(), measure::process_cpu());
    stage.command(Command::OpenFolder { folder: folder.to_owned(), name: None });
    let mut stalls = Stalls {
        took: Duration::ZERO,
        saved: Duration::ZERO,
        cpu: Duration::ZERO,
        frames: Vec::new(),
        longest_at_work: 0.0,
        longest_pump: 0.0,
        longest_pump_cpu: 0.0,
    };
    loop {
        let frame = Instant::now();
        let drawn = stage.frame(Vec::new());
        stalls.frames.push(ms(frame.elapsed()));
        let at_work = frame.elapsed().saturating_sub(drawn.waited);
        stalls.longest_at_work = stalls.longest_at_work.max(ms(at_work));
        stalls.longest_pump = stalls.longest_pump.max(ms(drawn.pump));
        stalls.longest_pump_cpu = stalls.longest_pump_cpu.max(ms(drawn.pump_cpu));
        if stalls.took.is_zero() && known(stage.session()) {
            stalls.took = begun.elapsed();
            stalls.cpu = measure::process_cpu().saturating_sub(cpu);
        }
        if !stalls.took.is_zero() && stage.session().is_saved() {
            stalls.saved = begun.elapsed();
            return Ok(stalls);
        }
        if begun.elapsed() > PATIENCE {
            return Err("given up waiting until the folder is known".to_owned());
        }
        std::thread::park_timeout(FRAME.saturating_sub(frame.elapsed()));
    }
}
