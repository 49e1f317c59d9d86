//! Benchmarks of the kinds of kernels, especially of the science kernel's saved states, with ipykernel and marimo.
//!
//! They measure startup, cells, checkpoints, restoring, undo, memory and disk space. They talk to the kernel processes
//! directly by their own protocol, so that the parts of a checkpoint can be told apart.

use super::cells::measure_peer;
use super::report::{BenchReport, FigureGoal, percentile};
use super::to_ms;
use host::science_pack::SciencePack;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use support::measure::{self, ScratchFolder};

/// Maximum time of one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// Number of processes started, one after the other.
const STARTS: usize = 10;
/// Number of cells with pandas, and of restored states.
const PANDAS_CELLS: usize = 30;
/// Number of cells in the long note whose states are counted.
const LONG_NOTE_CELLS: usize = 1_000;
/// Budget of a note's states in bytes, the same as in the configuration.
const STATES_BUDGET_BYTES: &str = "512000000";
const TRIVIAL_CELL: &str = "1 + 1";
const IMPORT_CELL: &str = "import numpy as np, pandas as pd";
const FRAME_CELL: &str = "df = pd.DataFrame({'k': np.arange(1_000_000) % 100, 'v': np.random.rand(1_000_000)})";
const PANDAS_CELL: &str = "means = df.groupby('k').v.mean()\nmeans.head()";
/// Peer programs: the name, the variable with the path of a Python that has it and pandas, and the script.
const PEER_PROGRAMS: [(&str, &str, &str); 2] = [
    (
        "ipykernel",
        "TRACEBOOK_IPYKERNEL",
        concat!(include_str!("ipykernel_client.py"), include_str!("kernels_ipykernel.py")),
    ),
    ("marimo", "TRACEBOOK_MARIMO", concat!(include_str!("marimo_client.py"), include_str!("kernels_marimo.py"))),
];

/// Runs all benchmarks of kernels; `count` trivial cells are run.
pub(super) fn measure(report: &mut BenchReport, count: usize) -> Result<(), String> {
    let scratch = ScratchFolder::new("kernels")?;
    let notes = scratch.folder().join("N");
    std::fs::create_dir_all(&notes).map_err(|error| format!("cannot make {} ({error})", notes.display()))?;
    let program = std::env::current_exe().map_err(|error| format!("the program does not find itself ({error})"))?;
    let plain = KernelKindBench { name: "instant", program: program.clone(), words: vec!["kernel".into()], notes };
    measure_kind(report, &plain, count)?;
    let python = std::env::var_os("TRACEBOOK_ENVIRONMENT_PYTHON").unwrap_or_else(|| "/usr/bin/python3".into());
    let words = vec!["kernel".into(), "--environment".into(), python];
    measure_kind(report, &KernelKindBench { name: "environment", words, ..plain.clone() }, count)?;
    match SciencePack::of_user(&program).wait_status().installed {
        Some(pack) => {
            let states = scratch.folder().join("states");
            let words = vec![
                "kernel".into(),
                "--science".into(),
                "--pack".into(),
                pack.folder.into(),
                "--pack-id".into(),
                "bench".into(),
                "--scratch".into(),
                states.clone().into(),
                "--states".into(),
                states.clone().into(),
                "--states-budget".into(),
                STATES_BUDGET_BYTES.into(),
            ];
            let science = KernelKindBench { name: "science", words, ..plain };
            measure_kind(report, &science, count)?;
            measure_states(report, &science, &states)?;
            measure_long_note(report, &science, &states)?;
        }
        None => report.leave_out("science", "the pack is not installed: tracebook kernels install science"),
    }
    for (name, variable, script) in PEER_PROGRAMS {
        let cells = [TRIVIAL_CELL, IMPORT_CELL, FRAME_CELL, PANDAS_CELL].map(ToOwned::to_owned);
        let words = [count.to_string(), STARTS.to_string()].into_iter().chain(cells).collect::<Vec<_>>();
        measure_peer(report, (name, variable, script), &words);
    }
    Ok(())
}

/// A kind of kernel, and how its process is started.
#[derive(Clone)]
struct KernelKindBench {
    name: &'static str,
    program: PathBuf,
    words: Vec<OsString>,
    notes: PathBuf,
}

impl KernelKindBench {
    fn start(&self) -> Result<KernelProcess, String> {
        let begun = Instant::now();
        let wrong = |error: std::io::Error| format!("the {} kernel does not start ({error})", self.name);
        let mut child = Command::new(&self.program)
            .args(&self.words)
            .current_dir(&self.notes)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(wrong)?;
        let input = child.stdin.take().ok_or("the kernel has no input")?;
        let output = child.stdout.take().ok_or("the kernel has no output")?;
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut process = KernelProcess { child, input: Some(input), messages, requests: 0, ready_ms: 0.0 };
        process.wait_for("kernel_info_reply")?;
        process.ready_ms = to_ms(begun.elapsed());
        Ok(process)
    }

    fn figure(&self, what: &str) -> String {
        format!("{}: {what}", self.name)
    }
}

struct KernelProcess {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    requests: u64,
    /// Milliseconds from start until the kernel reported that it's ready, with saved variables restored.
    ready_ms: f64,
}

impl KernelProcess {
    fn wait_for(&self, kind: &str) -> Result<Value, String> {
        let end = Instant::now() + ANSWER_TIMEOUT;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let message = self.messages.recv_timeout(left).map_err(|_| format!("the kernel sent no {kind}"))?;
            if message["header"]["msg_type"] == "error" {
                return Err(format!("a cell failed: {}", message["content"]["traceback"]));
            }
            let text = message["content"]["text"].as_str().unwrap_or_default();
            if message["header"]["msg_type"] == "stream" && text.contains("aren't saved") {
                return Err(text.trim().to_owned());
            }
            if message["header"]["msg_type"] == kind {
                return Ok(message["content"].clone());
            }
        }
    }

    fn ask(&mut self, kind: &str, content: Value) -> Result<(), String> {
        self.requests += 1;
        let header = json!({"msg_type": kind, "msg_id": format!("r{}", self.requests)});
        let line = format!("{}\n", json!({"header": header, "parent_header": {}, "content": content}));
        let input = self.input.as_mut().ok_or("the kernel was ended")?;
        input.write_all(line.as_bytes()).and_then(|()| input.flush()).map_err(|error| error.to_string())
    }

    /// Runs a cell and returns the milliseconds until its reply.
    fn run(&mut self, code: &str) -> Result<f64, String> {
        let begun = Instant::now();
        self.ask("execute_request", json!({"code": code, "cell": "cell 1", "silent": false}))?;
        self.wait_for("execute_reply")?;
        Ok(to_ms(begun.elapsed()))
    }

    fn memory_mb(&self) -> Option<f64> {
        measure::process_footprint(self.child.id()).map(|footprint| footprint.resident as f64 / 1e6)
    }

    /// Ends the process once everything is written.
    fn end(mut self) -> Result<(), String> {
        drop(self.input.take());
        self.child.wait().map(|_| ()).map_err(|error| error.to_string())
    }
}

/// Measures what each kind supports: startup, first cell, trivial cells and memory.
fn measure_kind(report: &mut BenchReport, kind: &KernelKindBench, count: usize) -> Result<(), String> {
    let mut ready = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        let process = kind.start()?;
        ready.push(process.ready_ms);
        process.end()?;
    }
    report.add_figure(kind.figure("ready, p50"), percentile(&mut ready, 50), "ms", FigureGoal::None);
    let mut process = kind.start()?;
    report.add_figure(kind.figure("first cell"), process.run(TRIVIAL_CELL)?, "ms", FigureGoal::None);
    let mut times = (0..count).map(|_| process.run(TRIVIAL_CELL)).collect::<Result<Vec<f64>, String>>()?;
    report.add_figure(kind.figure("trivial cell, p50"), percentile(&mut times, 50), "ms", FigureGoal::None);
    report.add_figure(kind.figure("trivial cell, p99"), percentile(&mut times, 99), "ms", FigureGoal::None);
    if let Some(memory) = process.memory_mb() {
        report.add_figure(kind.figure("memory"), memory, "MB", FigureGoal::None);
    }
    process.end()
}

/// Measures checkpoints, restoring and undo with pandas and a data frame of a million rows.
fn measure_states(report: &mut BenchReport, science: &KernelKindBench, states: &Path) -> Result<(), String> {
    clear(states)?;
    let mut process = science.start()?;
    report.add_figure(science.figure("import numpy and pandas"), process.run(IMPORT_CELL)?, "ms", FigureGoal::None);
    process.wait_for("state_saved")?;
    process.run(FRAME_CELL)?;
    process.wait_for("state_saved")?;
    let (mut cells, mut on_path, mut behind, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PANDAS_CELLS {
        cells.push(process.run(PANDAS_CELL)?);
        let saved = process.wait_for("state_saved")?;
        on_path.push(saved["path_ms"].as_f64().ok_or("a state says nothing of its time")?);
        behind.push(saved["ms"].as_f64().ok_or("a state says nothing of its time")?);
        bytes.push(saved["bytes"].as_f64().ok_or("a state says nothing of its size")? / 1e6);
    }
    let pandas = "a pandas cell (groupby of 1M rows)";
    report.add_figure(science.figure(pandas), percentile(&mut cells, 50), "ms", FigureGoal::None);
    let goal = FigureGoal::Under(10.0);
    report.add_figure(science.figure("checkpoint, on the cell's path, p95"), percentile(&mut on_path, 95), "ms", goal);
    let goal = FigureGoal::Under(50.0);
    report.add_figure(science.figure("checkpoint, behind it, p95"), percentile(&mut behind, 95), "ms", goal);
    let goal = FigureGoal::Under(3.0);
    report.add_figure(science.figure("checkpoint of a pandas cell, p95"), percentile(&mut bytes, 95), "MB", goal);
    if let Some(memory) = process.memory_mb() {
        report.add_figure(science.figure("memory with pandas and the frame"), memory, "MB", FigureGoal::None);
    }
    let mut undone = Vec::with_capacity(PANDAS_CELLS / 2);
    for _ in 0..PANDAS_CELLS / 2 {
        let begun = Instant::now();
        process.ask("state_request", json!({"move": "undo"}))?;
        let moved = process.wait_for("state_reply")?;
        if moved["status"] != "ok" {
            return Err(format!("a run was not undone: {moved}"));
        }
        undone.push(to_ms(begun.elapsed()));
    }
    report.add_figure(science.figure("undo, p95"), percentile(&mut undone, 95), "ms", FigureGoal::None);
    process.end()?;
    let check = "assert len(df) == 1_000_000 and len(means) == 100";
    measure_restore(report, science, "with pandas and the frame", check)?;
    clear(states)?;
    let mut process = science.start()?;
    process.run(IMPORT_CELL)?;
    process.wait_for("state_saved")?;
    process.end()?;
    measure_restore(report, science, "with pandas", "assert len(pd.DataFrame({'a': [1, 2]})) == 2")
}

/// Measures how long new processes take until they have the saved state, and checks it.
fn measure_restore(report: &mut BenchReport, science: &KernelKindBench, what: &str, check: &str) -> Result<(), String> {
    let mut restored = Vec::with_capacity(PANDAS_CELLS);
    for _ in 0..PANDAS_CELLS {
        let mut process = science.start()?;
        restored.push(process.ready_ms);
        process.run(check)?;
        process.end()?;
    }
    let figure = science.figure(&format!("restore in a new process, {what}, p95"));
    report.add_figure(figure, percentile(&mut restored, 95), "ms", FigureGoal::Under(200.0));
    Ok(())
}

/// Measures the disk space of a long note's states.
fn measure_long_note(report: &mut BenchReport, science: &KernelKindBench, states: &Path) -> Result<(), String> {
    clear(states)?;
    let mut process = science.start()?;
    process.run(IMPORT_CELL)?;
    for number in 0..LONG_NOTE_CELLS {
        process.run(&format!("x{number} = pd.Series(np.arange({number} % 50))\nx{number}.sum()"))?;
        process.wait_for("state_saved")?;
    }
    process.end()?;
    let size = measure::folder_bytes(states);
    let what = format!("states of {LONG_NOTE_CELLS} cells with pandas");
    report.add_figure(science.figure(&what), size as f64 / 1e6, "MB", FigureGoal::None);
    let process = science.start()?;
    report.add_figure(science.figure("restore after them"), process.ready_ms, "ms", FigureGoal::None);
    process.end()
}

fn clear(folder: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {} ({error})", folder.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
