//! What tools cost beyond what they do: a line of shell behind walls beside one without, Python, a file.

use super::ms;
use super::report::{Goal, Report, percentile};
use agent::tool_job::{ToolJob, ToolOutcome};
use host::measure::ScratchFolder;
use host::tools::{ToolRunner, ToolWorkspace};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Python's processes that are started.
const STARTS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// All figures of tools; `count` lines of shell are run.
pub(super) fn measure(report: &mut Report, count: usize) -> Result<(), String> {
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
                let outcome: ToolOutcome = told.recv_timeout(PATIENCE).map_err(|_| "a tool does not end".to_owned())?;
                outcome.success.then(|| ms(begun.elapsed())).ok_or(outcome.text)
            })
            .collect()
    };
    let read = ToolJob::Read { root: root.clone(), path: "data.csv".to_owned(), lines: None };
    report.figure("a file read, p50", percentile(&mut time(&read, count)?, 50), "ms", Goal::Under(2.0));
    if let Err(why) = tools.confined() {
        report.leave_out("shell and Python behind walls", why);
        return Ok(());
    }
    let mut plain = Vec::new();
    for _ in 0..count {
        let begun = Instant::now();
        let mut command = Command::new("/bin/sh");
        let done = command.args(["-c", ":"]).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        plain.push(if done.status.success() { ms(begun.elapsed()) } else { return Err("no shell".to_owned()) });
    }
    report.figure("sh -c : without walls, p50", percentile(&mut plain, 50), "ms", Goal::None);
    let (path, command) = (String::new(), ":".to_owned());
    let shell = ToolJob::Shell { root: root.clone(), path, command, seconds: 10, network: false };
    report.figure("sh -c : behind walls, p50", percentile(&mut time(&shell, count)?, 50), "ms", Goal::None);
    let python = ToolJob::Python { root, code: "1 + 1".to_owned(), seconds: 20, web: None };
    report.figure("Python, one run, p50", percentile(&mut time(&python, STARTS)?, 50), "ms", Goal::None);
    Ok(())
}
