//! A folder of very many notes becomes a volume while the window is open: how long, how much memory, and how long the
//! window ever stands still.

use super::prose;
use super::report::{Goal, Report};
use super::stage::Stage;
use super::{ms, workspace};
use engine::{Command, Scanning, Session};
use host::measure::{self, Scratch};
use std::path::Path;
use std::time::{Duration, Instant};

/// One frame of a screen at 60 Hz.
const FRAME: Duration = Duration::from_micros(16_667);
/// How long the whole may take.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// All figures of an import.
pub(super) fn measure(report: &mut Report, count: usize) -> Result<(), String> {
    let scratch = Scratch::new("import")?;
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
    Ok(())
}

struct Stalls {
    took: Duration,
    saved: Duration,
    cpu: Duration,
    frames: Vec<f64>,
    longest_pump: f64,
    longest_pump_cpu: f64,
}

fn tell(report: &mut Report, name: &str, stalls: &Stalls) {
    let longest = stalls.frames.iter().copied().fold(0.0, f64::max);
    let late = stalls.frames.iter().filter(|frame| **frame >= ms(FRAME)).count();
    report.figure(format!("{name}, frames drawn meanwhile"), stalls.frames.len() as f64, "", Goal::None);
    report.figure(format!("{name}, longest frame"), longest, "ms", Goal::Under(16.0));
    report.figure(format!("{name}, frames over 16.7 ms"), late as f64, "", Goal::None);
    report.figure(format!("{name}, longest pump"), stalls.longest_pump, "ms", Goal::Under(16.0));
    report.figure(format!("{name}, longest pump, CPU"), stalls.longest_pump_cpu, "ms", Goal::None);
}

/// Opens the folder (again) and draws until it is looked through and all is on disk.
fn scan(stage: &mut Stage, folder: &Path, scans: u64) -> Result<Stalls, String> {
    let known = |session: &Session| {
        let mut volumes = session.volumes();
        volumes.any(|volume| volume.scans > scans && volume.known && volume.scanning == Scanning::Idle)
    };
    let (begun, cpu) = (Instant::now(), measure::process_cpu());
    stage.command(Command::OpenFolder { folder: folder.to_owned(), name: None });
    let mut stalls = Stalls {
        took: Duration::ZERO,
        saved: Duration::ZERO,
        cpu: Duration::ZERO,
        frames: Vec::new(),
        longest_pump: 0.0,
        longest_pump_cpu: 0.0,
    };
    loop {
        let frame = Instant::now();
        let drawn = stage.frame(Vec::new());
        stalls.frames.push(ms(frame.elapsed()));
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
