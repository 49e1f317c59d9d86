//! What running cells costs: a kernel until it is ready, the first cell, a trivial one through the whole line, a chain
//! of a hundred, much output, interrupts, memory, programs; ipykernel through jupyter_client, marimo and CPython beside
//! it.

use super::report::{Goal, Report, percentile};
use super::{ms, until, volume, workspace};
use engine::{Command, Note, Session};
use host::Driver;
use host::measure::{self, ScratchFolder};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};
use store::{BlockId, DocId, Execution, ExecutionStatus, OutputBody};

/// Processes that are started, one after the other.
const STARTS: usize = 20;
/// Cells of a chain.
const CHAIN: usize = 100;
/// What the peers do: the name of each, the variable that names a Python which has it, and what it runs.
const PEERS: [(&str, &str, &str); 2] = [
    ("ipykernel", "TRACEBOOK_IPYKERNEL", include_str!("cells.py")),
    ("marimo", "TRACEBOOK_MARIMO", include_str!("marimo.py")),
];
/// Small programs that print how long they took, for cells and for CPython.
const PROGRAMS: &str = include_str!("programs.py");

/// All figures of cells; `count` trivial ones are run.
pub(super) fn measure(report: &mut Report, count: usize) -> Result<(), String> {
    ready(report)?;
    let scratch = ScratchFolder::new("cells")?;
    let cell = |code: &str| format!("```python timeout=0\n{code}\n```\n\n");
    let chain: String = (0..CHAIN)
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
        PROGRAMS,
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
    scratch.settle();
    let mut driver = workspace(&scratch)?;
    let volume = volume(&mut driver, &scratch.folder().join("N"))?;

    let mut bench = Bench { driver: &mut driver, volume };
    let cold = bench.note("cold.md", false)?;
    let took = bench.run(cold, 0)?;
    report.figure("first cell, no kernel there", took, "ms", Goal::None);
    let warm = bench.note("warm.md", true)?;
    bench.rest(Duration::from_secs(1));
    let took = bench.run(warm, 0)?;
    report.figure("first cell, a kernel in reserve", took, "ms", Goal::None);

    let mut times = (0..count).map(|_| bench.run(warm, 0)).collect::<Result<Vec<f64>, String>>()?;
    report.figure("trivial cell, whole line, p50", percentile(&mut times, 50), "ms", Goal::Under(1.0));
    report.figure("trivial cell, whole line, p99", percentile(&mut times, 99), "ms", Goal::None);

    let note = bench.note("chain.md", false)?;
    bench.run(note, 0)?;
    let mut times = (0..5).map(|_| bench.run_all(note)).collect::<Result<Vec<f64>, String>>()?;
    report.figure(format!("chain of {CHAIN} cells"), percentile(&mut times, 50), "ms", Goal::Under(150.0));

    let note = bench.note("cells.md", false)?;
    bench.run(note, 0)?;
    report.figure("100,000 printed lines", bench.run(note, 1)?, "ms", Goal::None);
    report.figure("1 MB in one print", bench.run(note, 2)?, "ms", Goal::None);
    for (cell, name) in [(3, "while True"), (4, "a native loop")] {
        let took = bench.interrupt(note, cell)?;
        report.figure(format!("interrupt of {name}"), took, "ms", Goal::Under(1_000.0));
    }
    bench.run(note, 5)?;
    let said = bench.printed(note, 5)?;
    driver.close()?;
    super::plots::measure(report)?;
    speed(report, &said);
    for (name, variable, script) in PEERS {
        peer(report, (name, variable, script), count);
    }
    Ok(())
}

/// How fast programs are, in a cell and in CPython.
fn speed(report: &mut Report, said: &str) {
    type Said = (String, Vec<(String, f64)>);
    let Ok((_, ours)) = serde_json::from_str::<Said>(said) else {
        report.leave_out("speed of Python", "the programs have not said how long they took");
        return;
    };
    let ran = std::process::Command::new("python3").args(["-c", PROGRAMS]).stdin(Stdio::null()).output();
    let theirs = ran.ok().and_then(|output| serde_json::from_slice::<Said>(&output.stdout).ok());
    for (name, took) in ours {
        report.figure(format!("program {name}"), took, "ms", Goal::None);
        let other = theirs
            .as_ref()
            .and_then(|(version, all)| all.iter().find(|(known, _)| *known == name).map(|(_, took)| (version, *took)));
        match other {
            Some((version, took)) => {
                report.figure(format!("CPython {version}: program {name}"), took, "ms", Goal::None)
            }
            None => report.leave_out(&format!("CPython: program {name}"), "python3 is not there"),
        }
    }
}

/// Processes of the kernel, until each says that it is ready, and the memory of the last.
fn ready(report: &mut Report) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| format!("the program does not find itself ({error})"))?;
    let mut times = Vec::with_capacity(STARTS);
    for start in 0..STARTS {
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
        times.push(ms(begun.elapsed()));
        if start + 1 == STARTS {
            std::thread::park_timeout(Duration::from_millis(200));
            if let Some(footprint) = measure::footprint(child.id()) {
                report.figure("memory of a kernel", footprint.resident as f64 / 1e6, "MB", Goal::None);
            }
        }
        drop(child.stdin.take());
        child.wait().map_err(wrong)?;
    }
    report.figure("kernel ready, p50", percentile(&mut times, 50), "ms", Goal::Under(60.0));
    report.figure("kernel ready, p99", percentile(&mut times, 99), "ms", Goal::None);
    Ok(())
}

struct Bench<'a> {
    driver: &'a mut Driver,
    volume: DocId,
}

impl Bench<'_> {
    /// Opens a note, `shown` as a window does, else as a command does.
    fn note(&mut self, path: &str, shown: bool) -> Result<DocId, String> {
        let row = self.driver.session().volume(self.volume).and_then(|volume| volume.files.get(path));
        let note = row.map(|row| row.id).ok_or_else(|| format!("{path} is not there"))?;
        let command = if shown { Command::OpenNote { note } } else { Command::HoldNote { note } };
        self.driver.command(command).map_err(|reject| reject.0)?;
        until(self.driver, "the note can be run", |session| session.note(note).is_some_and(Note::is_settled))?;
        Ok(note)
    }

    /// Lets time pass.
    fn rest(&mut self, time: Duration) {
        let begun = Instant::now();
        while let Some(rest) = time.checked_sub(begun.elapsed()) {
            self.driver.wait(rest);
        }
    }

    fn cell(&self, note: DocId, index: usize) -> Result<BlockId, String> {
        let cell = self.driver.session().note(note).and_then(|note| note.cells().nth(index));
        cell.ok_or_else(|| format!("there is no cell {}", index + 1))
    }

    fn execution(&self, note: DocId, cell: BlockId) -> Option<&Execution> {
        self.driver.session().note(note)?.execution(cell)
    }

    /// Milliseconds from the wish to the end of a cell.
    fn run(&mut self, note: DocId, index: usize) -> Result<f64, String> {
        let cell = self.cell(note, index)?;
        let before = self.execution(note, cell).map(|run| run.id);
        let begun = Instant::now();
        self.driver.command(Command::RunCells { note, cells: vec![cell] }).map_err(|reject| reject.0)?;
        let ended = |session: &Session| {
            let run = session.note(note).and_then(|note| note.execution(cell));
            run.is_some_and(|run| Some(run.id) != before && run.status.is_final())
        };
        until(self.driver, "a cell has run", ended)?;
        let took = ms(begun.elapsed());
        match self.execution(note, cell).map(|run| run.status) {
            Some(ExecutionStatus::Ok) => Ok(took),
            status => Err(format!("cell {} ended as {status:?}", index + 1)),
        }
    }

    /// What a cell has printed.
    fn printed(&self, note: DocId, index: usize) -> Result<String, String> {
        let outputs = self.execution(note, self.cell(note, index)?).map(|run| run.outputs.as_slice());
        let texts = outputs.unwrap_or_default().iter().filter_map(|output| match &output.body {
            OutputBody::Stream { text, .. } => Some(text.as_str()),
            OutputBody::ExecuteResult { .. } | OutputBody::DisplayData { .. } | OutputBody::Error { .. } => None,
        });
        Ok(texts.collect())
    }

    fn run_all(&mut self, note: DocId) -> Result<f64, String> {
        let begun = Instant::now();
        self.driver.command(Command::RunAll { note }).map_err(|reject| reject.0)?;
        let ended = |session: &Session| session.note(note).is_some_and(|note| note.pending_cells().is_empty());
        until(self.driver, "all cells have run", ended)?;
        Ok(ms(begun.elapsed()))
    }

    /// Milliseconds from the wish to stop to the end.
    fn interrupt(&mut self, note: DocId, index: usize) -> Result<f64, String> {
        let cell = self.cell(note, index)?;
        self.driver.command(Command::RunCells { note, cells: vec![cell] }).map_err(|reject| reject.0)?;
        let runs = |session: &Session| {
            let run = session.note(note).and_then(|note| note.execution(cell));
            run.is_some_and(|run| run.status == ExecutionStatus::Running)
        };
        until(self.driver, "the cell runs", runs)?;
        self.rest(Duration::from_millis(300));
        let begun = Instant::now();
        self.driver.command(Command::Interrupt { note }).map_err(|reject| reject.0)?;
        let ended = |session: &Session| {
            let run = session.note(note).and_then(|note| note.execution(cell));
            run.is_some_and(|run| run.status.is_final())
        };
        until(self.driver, "the cell has stopped", ended)?;
        Ok(ms(begun.elapsed()))
    }
}

/// Another program, doing the same.
fn peer(report: &mut Report, (name, variable, script): (&str, &str, &str), count: usize) {
    let python = std::env::var_os(variable).unwrap_or_else(|| "python3".into());
    let ran = std::process::Command::new(&python)
        .args(["-c", script, &count.to_string(), &CHAIN.to_string()])
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
            (Some(name), Some(value), Some("MB")) => report.figure(name, value, "MB", Goal::None),
            (Some(name), Some(value), _) => report.figure(name, value, "ms", Goal::None),
            (Some(name), None, Some(why)) => report.leave_out(name, why),
            _ => {}
        }
    }
}
