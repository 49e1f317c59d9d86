//! Benchmark of importing a folder of very many notes with the window open: time, memory, and how long the window
//! stalls.

use super::report::{BenchReport, FigureGoal};
use super::text_fixtures;
use super::{open_workspace, to_ms};
use crate::headless_window::HeadlessWindow;
use engine::{Command, ScanState, Session};
use std::path::Path;
use std::time::{Duration, Instant};
use support::measure::{self, ScratchFolder};

/// Frame interval of a 60 Hz screen.
const FRAME_INTERVAL: Duration = Duration::from_micros(16_667);
/// Maximum time of the import.
const IMPORT_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Runs all benchmarks of an import.
pub(super) fn measure(report: &mut BenchReport, count: usize) -> Result<(), String> {
    let scratch = ScratchFolder::new("import")?;
    let mut bytes = 0;
    for number in 0..count {
        let text = text_fixtures::linked_note(number, count);
        bytes += text.len();
        scratch.write(&format!("N/{}", text_fixtures::linked_note_path(number)), text.as_bytes())?;
    }
    scratch.sync_to_disk();
    let folder = scratch.folder().join("N");
    let mut stage = HeadlessWindow::new(open_workspace(&scratch)?);
    // The initial layout of fonts and panels isn't part of the import.
    (0..10).for_each(|_| _ = stage.draw_frame(Vec::new()));

    report.add_figure("notes", count as f64, "", FigureGoal::None);
    report.add_figure("text", bytes as f64 / 1e6, "MB", FigureGoal::None);
    let before = measure::process_footprint(std::process::id());
    let stalls = scan_folder(&mut stage, &folder, 0)?;
    let known = stage.session().volumes().map(|volume| volume.counts().0).sum::<u64>();
    if known != count as u64 {
        report.add_error(format!("{count} notes were made and {known} are known"));
    }
    report.add_figure("import until all are known", stalls.took.as_secs_f64(), "s", FigureGoal::None);
    report.add_figure("import until all is on disk", stalls.saved.as_secs_f64(), "s", FigureGoal::None);
    report.add_figure("import, notes a second", count as f64 / stalls.took.as_secs_f64(), "", FigureGoal::None);
    report.add_figure("import, CPU of all threads", stalls.cpu.as_secs_f64(), "s", FigureGoal::None);
    if let (Some(before), Some(after)) = (before, measure::process_footprint(std::process::id())) {
        report.add_figure("import, memory at its peak", after.peak as f64 / 1e6, "MB", FigureGoal::None);
        let more = after.peak.saturating_sub(before.peak);
        report.add_figure("import, memory at its peak, above before", more as f64 / 1e6, "MB", FigureGoal::None);
    }
    report_timings(report, "import", &stalls);

    let stalls = scan_folder(&mut stage, &folder, 1)?;
    report.add_figure("second scan, nothing changed", stalls.took.as_secs_f64(), "s", FigureGoal::None);
    report_timings(report, "second scan", &stalls);
    stage.close();
    measure_restart(report, &scratch)
}

/// Measures a restart, at which all notes are already known.
fn measure_restart(report: &mut BenchReport, scratch: &ScratchFolder) -> Result<(), String> {
    let begun = Instant::now();
    let mut stage = HeadlessWindow::new(open_workspace(scratch)?);
    let (mut longest, mut pump, mut first, mut tree) = (0.0_f64, 0.0_f64, true, None);
    let scanned = |session: &Session| session.volumes().all(|volume| volume.known && volume.scans > 0);
    while !scanned(stage.session()) {
        let frame = Instant::now();
        let drawn = stage.draw_frame(Vec::new());
        pump = pump.max(to_ms(drawn.pump));
        if tree.is_none() && stage.session().volumes().any(|volume| volume.known) {
            tree = Some(begun.elapsed());
        }
        // The very first frame lays out fonts and isn't counted: `bench open` measures it.
        if !std::mem::take(&mut first) {
            longest = longest.max(to_ms(frame.elapsed()));
        }
        if begun.elapsed() > IMPORT_TIMEOUT {
            return Err("given up waiting until the folder is known again".to_owned());
        }
        std::thread::park_timeout(FRAME_INTERVAL.saturating_sub(frame.elapsed()));
    }
    let tree = tree.unwrap_or_else(|| begun.elapsed());
    report.add_figure("next start, until the tree is there", tree.as_secs_f64(), "s", FigureGoal::None);
    report.add_figure(
        "next start, until all are known and looked through",
        begun.elapsed().as_secs_f64(),
        "s",
        FigureGoal::None,
    );
    report.add_figure("next start, longest frame", longest, "ms", FigureGoal::Under(16.0));
    report.add_figure("next start, longest pump", pump, "ms", FigureGoal::None);
    stage.close();
    Ok(())
}

struct ImportTimings {
    took: Duration,
    saved: Duration,
    cpu: Duration,
    frames: Vec<f64>,
    longest_at_work: f64,
    longest_pump: f64,
    longest_pump_cpu: f64,
}

fn report_timings(report: &mut BenchReport, name: &str, stalls: &ImportTimings) {
    let longest = stalls.frames.iter().copied().fold(0.0, f64::max);
    let late = stalls.frames.iter().filter(|frame| **frame >= to_ms(FRAME_INTERVAL)).count();
    report.add_figure(format!("{name}, frames drawn meanwhile"), stalls.frames.len() as f64, "", FigureGoal::None);
    report.add_figure(format!("{name}, longest frame"), longest, "ms", FigureGoal::Under(16.0));
    let at_work = stalls.longest_at_work;
    report.add_figure(
        format!("{name}, longest frame without waits for a core"),
        at_work,
        "ms",
        FigureGoal::Under(16.0),
    );
    report.add_figure(format!("{name}, frames over 16.7 ms"), late as f64, "", FigureGoal::None);
    report.add_figure(format!("{name}, longest pump"), stalls.longest_pump, "ms", FigureGoal::Under(16.0));
    report.add_figure(format!("{name}, longest pump, CPU"), stalls.longest_pump_cpu, "ms", FigureGoal::None);
}

/// Opens or rescans the folder, and draws until it's scanned and everything is saved.
fn scan_folder(stage: &mut HeadlessWindow, folder: &Path, scans: u64) -> Result<ImportTimings, String> {
    let known = |session: &Session| {
        let mut volumes = session.volumes();
        volumes.any(|volume| volume.scans > scans && volume.known && volume.scanning == ScanState::Idle)
    };
    let (begun, cpu) = (Instant::now(), measure::process_cpu());
    stage.send_command(Command::OpenFolder { folder: folder.to_owned(), name: None });
    let mut stalls = ImportTimings {
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
        let drawn = stage.draw_frame(Vec::new());
        stalls.frames.push(to_ms(frame.elapsed()));
        let at_work = frame.elapsed().saturating_sub(drawn.waited);
        stalls.longest_at_work = stalls.longest_at_work.max(to_ms(at_work));
        stalls.longest_pump = stalls.longest_pump.max(to_ms(drawn.pump));
        stalls.longest_pump_cpu = stalls.longest_pump_cpu.max(to_ms(drawn.pump_cpu));
        if stalls.took.is_zero() && known(stage.session()) {
            stalls.took = begun.elapsed();
            stalls.cpu = measure::process_cpu().saturating_sub(cpu);
        }
        if !stalls.took.is_zero() && stage.session().is_saved() {
            stalls.saved = begun.elapsed();
            return Ok(stalls);
        }
        if begun.elapsed() > IMPORT_TIMEOUT {
            return Err("given up waiting until the folder is known".to_owned());
        }
        std::thread::park_timeout(FRAME_INTERVAL.saturating_sub(frame.elapsed()));
    }
}
