//! Benchmark of startup as a user sees it: this program as a new process with its window, in a workspace of many notes.

use super::report::{BenchReport, FigureGoal, percentile};
use super::text_fixtures;
use super::{drive_until, open_volume, open_workspace, to_ms};
use engine::{Command, Session};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::park_timeout;
use std::time::{Duration, Instant};
use support::measure::{self, ProcessFootprint, ScratchFolder};

/// Number of starts.
const PROGRAM_STARTS: usize = 5;
/// Maximum time until the window appears.
const WINDOW_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time of the work at a first start: the sentence model reads every note once.
const FIRST_START_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Time without activity that counts as rest. The sentence model is unloaded half a minute after its last use.
const QUIET_PERIOD: Duration = Duration::from_secs(40);
/// Time over which idle CPU use is measured.
const IDLE_MEASURE_TIME: Duration = Duration::from_secs(10);

/// Runs all benchmarks of startup.
pub(super) fn measure(report: &mut BenchReport, count: usize) -> Result<(), String> {
    if !host::has_display() {
        let why = "there is no display here; with Xvfb: `xvfb-run -a tracebook bench open`";
        report.leave_out("first frame, memory, idle CPU", why);
        return Ok(());
    }
    let scratch = ScratchFolder::new("open")?;
    prepare_workspace(&scratch, count)?;
    let (mut frames, mut own) = (Vec::new(), Vec::new());
    for at in 1..=PROGRAM_STARTS {
        let mut started = RunningProgram::new(&scratch)?;
        match started.wait_for_first_frame() {
            Ok((spawned, inside)) => {
                frames.push(spawned);
                own.push(inside);
            }
            Err(why) => {
                report.leave_out("first frame, memory, idle CPU", why);
                return Ok(());
            }
        }
        if at == PROGRAM_STARTS {
            report.add_figure("notes", count as f64, "", FigureGoal::None);
            report.add_figure(
                "spawn to first frame, median",
                percentile(&mut frames, 50),
                "ms",
                FigureGoal::Under(400.0),
            );
            report.add_figure("spawn to first frame, longest", percentile(&mut frames, 100), "ms", FigureGoal::None);
            report.add_figure("own start to first frame, median", percentile(&mut own, 50), "ms", FigureGoal::None);
            measure_at_rest(report, &started)?;
        }
    }
    Ok(())
}

/// Creates the workspace and opens it once, so that everything in it is known.
fn prepare_workspace(scratch: &ScratchFolder, count: usize) -> Result<(), String> {
    for number in 0..count {
        let text = text_fixtures::linked_note(number, count);
        scratch.write(&format!("N/{}", text_fixtures::linked_note_path(number)), text.as_bytes())?;
    }
    let mut driver = open_workspace(scratch)?;
    let volume = open_volume(&mut driver, &scratch.folder().join("N"))?;
    let first = driver.session().volume(volume).and_then(|volume| volume.files.values().next()).map(|row| row.id);
    if let Some(note) = first {
        // The window reopens what was open last.
        driver.run_command(Command::OpenNote { note }).map_err(|reject| reject.0)?;
        let ready = |session: &Session| session.note(note).is_some_and(engine::Note::is_settled);
        drive_until(&mut driver, "the first note is readable", ready)?;
    }
    drive_until(&mut driver, "everything is saved", Session::is_saved)?;
    driver.close().map_err(|why| why.to_string())?;
    scratch.sync_to_disk();
    Ok(())
}

/// Measures memory and CPU time at rest, when all background work of a first start is done.
fn measure_at_rest(report: &mut BenchReport, started: &RunningProgram) -> Result<(), String> {
    let gone = || "the window closed while it was measured".to_owned();
    let look = || measure::process_footprint(started.child.id()).ok_or_else(gone);
    let begun = Instant::now();
    let first = look()?;
    let (mut before, mut changed, mut most) = (first, Instant::now(), 0);
    while changed.elapsed() < QUIET_PERIOD {
        if begun.elapsed() > FIRST_START_TIMEOUT {
            report.leave_out(
                "memory at rest, idle CPU",
                format!("it was busy for {} minutes", FIRST_START_TIMEOUT.as_secs() / 60),
            );
            return Ok(());
        }
        park_timeout(Duration::from_secs(1));
        let now = look()?;
        // The clock's own tick may fall into any second.
        if now.ticks > before.ticks + 1 {
            changed = Instant::now();
        }
        most = most.max(now.anonymous);
        before = now;
    }
    let worked = (changed - begun).as_secs_f64();
    report.add_figure("first search index and meanings, wall", worked, "s", FigureGoal::None);
    report.add_figure("meanwhile, CPU", ((before.ticks - first.ticks) as f64) / 100.0, "s", FigureGoal::None);
    report.add_figure("meanwhile, memory at its most, anonymous", most as f64 / 1e6, "MB", FigureGoal::None);
    park_timeout(IDLE_MEASURE_TIME);
    let ProcessFootprint { anonymous, resident, peak, ticks } = look()?;
    report.add_figure("memory at rest, anonymous", anonymous as f64 / 1e6, "MB", FigureGoal::Under(150.0));
    report.add_figure("memory at rest, resident", resident as f64 / 1e6, "MB", FigureGoal::None);
    report.add_figure("memory, most so far", peak as f64 / 1e6, "MB", FigureGoal::None);
    report.add_figure("idle CPU in 10 s", ticks.saturating_sub(before.ticks) as f64, "ticks", FigureGoal::Zero);
    Ok(())
}

/// The running program with its window. It's killed when dropped.
struct RunningProgram {
    child: Child,
    begun: Instant,
}

impl RunningProgram {
    fn new(scratch: &ScratchFolder) -> Result<RunningProgram, String> {
        let fail = |error: std::io::Error| format!("the program cannot be started again ({error})");
        let program = std::env::current_exe().map_err(fail)?;
        let mut command = std::process::Command::new(program);
        command.arg("--workspace").arg(scratch.folder().join("W")).env("TRACEBOOK_FIRST_FRAME", "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let begun = Instant::now();
        Ok(RunningProgram { child: command.spawn().map_err(fail)?, begun })
    }

    /// Returns the milliseconds until the first frame: since the process was spawned, and as the program reports it.
    fn wait_for_first_frame(&mut self) -> Result<(f64, f64), String> {
        let errors = self.child.stderr.take().ok_or("the window's messages cannot be read")?;
        let (tell, told) = channel();
        // Reads to the end, because the window would block on a full pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                let _ = tell.send((Instant::now(), line));
            }
        });
        let mut last = String::new();
        loop {
            match told.recv_timeout(WINDOW_TIMEOUT.saturating_sub(self.begun.elapsed())) {
                Ok((when, line)) => {
                    let own = line.strip_prefix("first frame after ").and_then(|rest| rest.strip_suffix(" ms"));
                    if let Some(own) = own.and_then(|own| own.parse().ok()) {
                        return Ok((to_ms(when - self.begun), own));
                    }
                    last = line;
                }
                Err(RecvTimeoutError::Timeout) => return Err("no frame came in a minute".to_owned()),
                Err(RecvTimeoutError::Disconnected) => return Err(format!("the window did not open: {last}")),
            }
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // Killed as by a power failure; its data is in a temporary folder that is deleted too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
