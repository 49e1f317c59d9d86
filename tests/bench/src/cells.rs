//! Benchmarks of running cells, compared with ipykernel through jupyter_client, marimo and CPython.
//!
//! They measure the start of a kernel, the first cell, a trivial cell end to end, a chain of a hundred, much output,
//! interrupts, memory and small programs.

use super::report::{BenchReport, FigureGoal, percentile};
use super::{drive_until, open_volume, open_workspace, to_ms};
use engine::{Command, Note, Session};
use host::Driver;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};
use store::{BlockId, DocId, Execution, ExecutionStatus, OutputBody};
use support::measure::{self, ScratchFolder};

/// Number of processes started, one after the other.
const KERNEL_STARTS: usize = 20;
/// Number of cells in the chain.
const CHAIN_CELLS: usize = 100;
/// Peer programs: the name, the variable with the path of a Python that has it, and the script.
const PEER_PROGRAMS: [(&str, &str, &str); 2] = [
    ("ipykernel", "TRACEBOOK_IPYKERNEL", concat!(include_str!("ipykernel_client.py"), include_str!("cells.py"))),
    ("marimo", "TRACEBOOK_MARIMO", concat!(include_str!("marimo_client.py"), include_str!("marimo.py"))),
];
/// Small programs that print how long they took, for cells and for CPython.
const SPEED_PROGRAMS: &str = include_str!("programs.py");

/// Runs all benchmarks of cells; `count` trivial cells are run.
pub(super) fn measure(report: &mut BenchReport, count: usize) -> Result<(), String> {
    measure_kernel_start(report)?;
    let scratch = ScratchFolder::new("cells")?;
    let cell = |code: &str| format!("```python timeout=0\n{code}\n```\n\n");
    let chain: String = (0..CHAIN_CELLS)
        .map(|number| match number {
            0 => cell("x0 = 1"),
            _ => cell(&format!("x{number} = x{} + 1", number - 1)),
        })
        .collect();
    let codes = [
        "1 + 1",
        "for i in range(100_000): print(i)",
        "print('x' * 1_000_000)",
        "while True: pass",
        "sum(range(10 ** 11))",
        SPEED_PROGRAMS,
    ];
    let notes = [
        ("cold.md", cell("1 + 1")),
        ("warm.md", cell("1 + 1")),
        ("chain.md", chain),
        ("cells.md", codes.iter().map(|code| cell(code)).collect()),
    ];
    for (path, text) in &notes {
        scratch.write(&format!("N/{path}"), text.as_bytes())?;
    }
    scratch.sync_to_disk();
    let mut driver = open_workspace(&scratch)?;
    let volume = open_volume(&mut driver, &scratch.folder().join("N"))?;

    let mut bench = CellBench { driver: &mut driver, volume };
    let cold = bench.open_note("cold.md", false)?;
    let took = bench.run_cell(cold, 0)?;
    report.add_figure("first cell, no kernel there", took, "ms", FigureGoal::None);
    let warm = bench.open_note("warm.md", true)?;
    bench.idle_for(Duration::from_secs(1));
    let took = bench.run_cell(warm, 0)?;
    report.add_figure("first cell, a kernel in reserve", took, "ms", FigureGoal::None);

    let mut times = (0..count).map(|_| bench.run_cell(warm, 0)).collect::<Result<Vec<f64>, String>>()?;
    report.add_figure("trivial cell, whole line, p50", percentile(&mut times, 50), "ms", FigureGoal::Under(1.0));
    report.add_figure("trivial cell, whole line, p99", percentile(&mut times, 99), "ms", FigureGoal::None);

    let note = bench.open_note("chain.md", false)?;
    bench.run_cell(note, 0)?;
    let mut times = (0..5).map(|_| bench.run_all(note)).collect::<Result<Vec<f64>, String>>()?;
    report.add_figure(
        format!("chain of {CHAIN_CELLS} cells"),
        percentile(&mut times, 50),
        "ms",
        FigureGoal::Under(150.0),
    );

    let note = bench.open_note("cells.md", false)?;
    bench.run_cell(note, 0)?;
    report.add_figure("100,000 printed lines", bench.run_cell(note, 1)?, "ms", FigureGoal::None);
    report.add_figure("1 MB in one print", bench.run_cell(note, 2)?, "ms", FigureGoal::None);
    for (cell, name) in [(3, "while True"), (4, "a native loop")] {
        let took = bench.interrupt_cell(note, cell)?;
        report.add_figure(format!("interrupt of {name}"), took, "ms", FigureGoal::Under(1_000.0));
    }
    bench.run_cell(note, 5)?;
    let said = bench.printed_text(note, 5)?;
    driver.close().map_err(|why| why.to_string())?;
    super::plots::measure(report)?;
    measure_program_speed(report, &said);
    for (name, variable, script) in PEER_PROGRAMS {
        measure_peer(report, (name, variable, script), &[count.to_string(), CHAIN_CELLS.to_string()]);
    }
    Ok(())
}

/// Compares the speed of programs in a cell and in CPython.
fn measure_program_speed(report: &mut BenchReport, said: &str) {
    type ProgramTimings = (String, Vec<(String, f64)>);
    let Ok((_, ours)) = serde_json::from_str::<ProgramTimings>(said) else {
        report.leave_out("speed of Python", "the programs have not said how long they took");
        return;
    };
    let ran = std::process::Command::new("python3").args(["-c", SPEED_PROGRAMS]).stdin(Stdio::null()).output();
    let theirs = ran.ok().and_then(|output| serde_json::from_slice::<ProgramTimings>(&output.stdout).ok());
    for (name, took) in ours {
        report.add_figure(format!("program {name}"), took, "ms", FigureGoal::None);
        let other = theirs
            .as_ref()
            .and_then(|(version, all)| all.iter().find(|(known, _)| *known == name).map(|(_, took)| (version, *took)));
        match other {
            Some((version, took)) => {
                report.add_figure(format!("CPython {version}: program {name}"), took, "ms", FigureGoal::None)
            }
            None => report.leave_out(&format!("CPython: program {name}"), "python3 is not there"),
        }
    }
}

/// Measures the time until a kernel process reports that it's ready, and the memory of the last one.
fn measure_kernel_start(report: &mut BenchReport) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| format!("the program does not find itself ({error})"))?;
    let mut times = Vec::with_capacity(KERNEL_STARTS);
    for start in 0..KERNEL_STARTS {
        let begun = Instant::now();
        let wrong = |error: std::io::Error| format!("the kernel does not start ({error})");
        let mut child = std::process::Command::new(&program)
            .arg("kernel")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(wrong)?;
        let mut line = String::new();
        let output = child.stdout.take().ok_or("the kernel has no output")?;
        BufReader::new(output).read_line(&mut line).map_err(wrong)?;
        times.push(to_ms(begun.elapsed()));
        if start + 1 == KERNEL_STARTS {
            std::thread::park_timeout(Duration::from_millis(200));
            if let Some(footprint) = measure::process_footprint(child.id()) {
                report.add_figure("memory of a kernel", footprint.resident as f64 / 1e6, "MB", FigureGoal::None);
            }
        }
        drop(child.stdin.take());
        child.wait().map_err(wrong)?;
    }
    report.add_figure("kernel ready, p50", percentile(&mut times, 50), "ms", FigureGoal::Under(60.0));
    report.add_figure("kernel ready, p99", percentile(&mut times, 99), "ms", FigureGoal::None);
    Ok(())
}

struct CellBench<'a> {
    driver: &'a mut Driver,
    volume: DocId,
}

impl CellBench<'_> {
    /// Opens a note; with `shown` as a window does, otherwise as a command does.
    fn open_note(&mut self, path: &str, shown: bool) -> Result<DocId, String> {
        let row = self.driver.session().volume(self.volume).and_then(|volume| volume.files.get(path));
        let note = row.map(|row| row.id).ok_or_else(|| format!("{path} is not there"))?;
        let command = if shown { Command::OpenNote { note } } else { Command::HoldNote { note } };
        self.driver.run_command(command).map_err(|reject| reject.0)?;
        drive_until(self.driver, "the note can be run", |session| session.note(note).is_some_and(Note::is_settled))?;
        Ok(note)
    }

    /// Keeps driving the session for some time.
    fn idle_for(&mut self, time: Duration) {
        let begun = Instant::now();
        while let Some(rest) = time.checked_sub(begun.elapsed()) {
            self.driver.wait(rest);
        }
    }

    fn cell_at(&self, note: DocId, index: usize) -> Result<BlockId, String> {
        let cell = self.driver.session().note(note).and_then(|note| note.cells().nth(index));
        cell.ok_or_else(|| format!("there is no cell {}", index + 1))
    }

    fn execution(&self, note: DocId, cell: BlockId) -> Option<&Execution> {
        self.driver.session().note(note)?.latest_execution(cell)
    }

    /// Runs a cell and returns the milliseconds from the request to its end.
    fn run_cell(&mut self, note: DocId, index: usize) -> Result<f64, String> {
        let cell = self.cell_at(note, index)?;
        let before = self.execution(note, cell).map(|run| run.id);
        let begun = Instant::now();
        self.driver.run_command(Command::RunCells { note, cells: vec![cell] }).map_err(|reject| reject.0)?;
        let ended = |session: &Session| {
            let run = session.note(note).and_then(|note| note.latest_execution(cell));
            run.is_some_and(|run| Some(run.id) != before && run.status.is_final())
        };
        drive_until(self.driver, "a cell has run", ended)?;
        let took = to_ms(begun.elapsed());
        match self.execution(note, cell).map(|run| run.status) {
            Some(ExecutionStatus::Ok) => Ok(took),
            status => Err(format!("cell {} ended as {status:?}", index + 1)),
        }
    }

    /// Returns what a cell has printed.
    fn printed_text(&self, note: DocId, index: usize) -> Result<String, String> {
        let outputs = self.execution(note, self.cell_at(note, index)?).map(|run| run.outputs.as_slice());
        let texts = outputs.unwrap_or_default().iter().filter_map(|output| match &output.body {
            OutputBody::Stream { text, .. } => Some(text.as_str()),
            OutputBody::ExecuteResult { .. } | OutputBody::DisplayData { .. } | OutputBody::Error { .. } => None,
        });
        Ok(texts.collect())
    }

    fn run_all(&mut self, note: DocId) -> Result<f64, String> {
        let begun = Instant::now();
        self.driver.run_command(Command::RunAll { note }).map_err(|reject| reject.0)?;
        let ended = |session: &Session| session.note(note).is_some_and(|note| note.pending_cells().is_empty());
        drive_until(self.driver, "all cells have run", ended)?;
        Ok(to_ms(begun.elapsed()))
    }

    /// Interrupts a running cell and returns the milliseconds from the request to its end.
    fn interrupt_cell(&mut self, note: DocId, index: usize) -> Result<f64, String> {
        let cell = self.cell_at(note, index)?;
        self.driver.run_command(Command::RunCells { note, cells: vec![cell] }).map_err(|reject| reject.0)?;
        let runs = |session: &Session| {
            let run = session.note(note).and_then(|note| note.latest_execution(cell));
            run.is_some_and(|run| run.status == ExecutionStatus::Running)
        };
        drive_until(self.driver, "the cell runs", runs)?;
        self.idle_for(Duration::from_millis(300));
        let begun = Instant::now();
        self.driver.run_command(Command::Interrupt { note }).map_err(|reject| reject.0)?;
        let ended = |session: &Session| {
            let run = session.note(note).and_then(|note| note.latest_execution(cell));
            run.is_some_and(|run| run.status.is_final())
        };
        drive_until(self.driver, "the cell has stopped", ended)?;
        Ok(to_ms(begun.elapsed()))
    }
}

/// Measures another program doing the same. `words` are the arguments of its script.
pub(super) fn measure_peer(report: &mut BenchReport, (name, variable, script): (&str, &str, &str), words: &[String]) {
    let python = std::env::var_os(variable).unwrap_or_else(|| "python3".into());
    let ran = std::process::Command::new(&python)
        .args(["-c", script])
        .args(words)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let said = match ran {
        Ok(output) if output.status.success() => serde_json::from_slice::<serde_json::Value>(&output.stdout).ok(),
        Ok(_) | Err(_) => None,
    };
    let Some(said) = said else {
        report.leave_out(name, format!("it is not there; {variable} names a Python that has it"));
        return;
    };
    for figure in said.as_array().into_iter().flatten() {
        match (figure[0].as_str(), figure[1].as_f64(), figure[2].as_str()) {
            (Some(name), Some(value), Some("MB")) => report.add_figure(name, value, "MB", FigureGoal::None),
            (Some(name), Some(value), _) => report.add_figure(name, value, "ms", FigureGoal::None),
            (Some(name), None, Some(why)) => report.leave_out(name, why),
            _ => {}
        }
    }
}
