//! Benchmark of the overhead of tools: a shell command with and without a sandbox, Python, and reading a file.

use super::report::{BenchReport, FigureGoal, percentile};
use super::to_ms;
use agent::tool_job::{ToolJob, ToolOutcome};
use host::tools::{ToolRunner, ToolWorkspace};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use support::measure::ScratchFolder;

/// Number of Python processes started.
const PYTHON_STARTS: usize = 20;
const TOOL_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs all benchmarks of tools; `count` shell commands are run.
pub(super) fn measure(report: &mut BenchReport, count: usize) -> Result<(), String> {
    let scratch = ScratchFolder::new("tools")?;
    scratch.write("N/data.csv", b"1,2\n")?;
    let root = scratch.folder().join("N");
    let program = std::env::current_exe().map_err(|error| format!("the program does not find itself ({error})"))?;
    let tools = ToolRunner::new(ToolWorkspace::new(program, scratch.folder()));
    let time = |job: &ToolJob, count: usize| -> Result<Vec<f64>, String> {
        (0..count as u64)
            .map(|id| {
                let (tell, told) = channel();
                let begun = Instant::now();
                tools.start(id, job.clone(), move |outcome| _ = tell.send(outcome));
                let outcome: ToolOutcome =
                    told.recv_timeout(TOOL_TIMEOUT).map_err(|_| "a tool does not end".to_owned())?;
                outcome.success.then(|| to_ms(begun.elapsed())).ok_or(outcome.text)
            })
            .collect()
    };
    let read = ToolJob::Read { root: root.clone(), path: "data.csv".to_owned(), lines: None };
    report.add_figure("a file read, p50", percentile(&mut time(&read, count)?, 50), "ms", FigureGoal::Under(2.0));
    if let Err(why) = tools.check_confinement() {
        report.leave_out("shell and Python behind walls", why.to_string());
        return Ok(());
    }
    let mut plain = Vec::new();
    for _ in 0..count {
        let begun = Instant::now();
        let mut command = Command::new("/bin/sh");
        let done = command.args(["-c", ":"]).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        plain.push(if done.status.success() { to_ms(begun.elapsed()) } else { return Err("no shell".to_owned()) });
    }
    report.add_figure("sh -c : without walls, p50", percentile(&mut plain, 50), "ms", FigureGoal::None);
    let (path, command) = (String::new(), ":".to_owned());
    let shell = ToolJob::Shell { root: root.clone(), path, command, seconds: 10, network: false };
    report.add_figure("sh -c : behind walls, p50", percentile(&mut time(&shell, count)?, 50), "ms", FigureGoal::None);
    let python = ToolJob::Python {
        root,
        code: "1 + 1".to_owned(),
        seconds: 20,
        web: None,
        grants: store::ToolGrants::default(),
        packages: None,
    };
    report.add_figure(
        "Python, one run, p50",
        percentile(&mut time(&python, PYTHON_STARTS)?, 50),
        "ms",
        FigureGoal::None,
    );
    Ok(())
}
