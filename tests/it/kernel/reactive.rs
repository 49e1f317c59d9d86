//! Cells that run by themselves: random programs end as a clean run from the top does, with a real kernel behind the
//! session.

use super::Kernel;
use crate::session::cells::{finished, printed};
use crate::twin::{Asked, Twin};
use engine::{Command, Event, Reactivity, StaleReason};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use store::{BlockId, CellOutput, DocId, ExecutionStatus, OutputBody};

/// The first cell, which defines every name that the others use.
const FIRST: &str = "a = b = c = d = 1; xs = [0]\ndef f(): return 2\n";

impl Kernel {
    /// Runs code. Returns what it printed, including its error's class, and its status.
    fn said(&mut self, code: &str, forget: &[String]) -> (String, ExecutionStatus) {
        let id = self.send("execute_request", json!({"code": code, "cell": "cell", "silent": false, "forget": forget}));
        let (mut text, mut status) = (String::new(), ExecutionStatus::Ok);
        loop {
            let message = self.message();
            assert_eq!(message["parent_header"]["msg_id"], id, "{message}");
            let content = &message["content"];
            match message["header"]["msg_type"].as_str().unwrap_or_default() {
                "stream" => text.push_str(content["text"].as_str().unwrap_or_default()),
                "error" => {
                    text.push_str(&format!("{}: {}", content["ename"], content["evalue"]));
                    status = ExecutionStatus::Error;
                }
                "status" if content["execution_state"] == "idle" => return (text, status),
                _ => {}
            }
        }
    }
}

/// Handles the session's kernel requests until there are no more.
fn serve(twin: &mut Twin, note: DocId, kernel: &mut Kernel) {
    while let Some(Asked::Eval { execution, code, forget, .. }) = twin.asked.pop() {
        assert!(twin.asked.is_empty());
        let (text, status) = kernel.said(&code, &forget);
        twin.event(Event::KernelReady { note });
        twin.event(Event::Began { note, execution });
        printed(twin, note, execution, &text);
        finished(twin, note, execution, status);
    }
}

fn cells(twin: &Twin, note: DocId) -> Vec<BlockId> {
    twin.note(note).cells().collect()
}

fn shown(twin: &Twin, note: DocId, cell: BlockId) -> String {
    let run = twin.note(note).latest_execution(cell);
    let text = |output: &CellOutput| match &output.body {
        OutputBody::Stream { text, .. } => text.clone(),
        other => panic!("{other:?}"),
    };
    run.map(|run| run.outputs.iter().map(text).collect()).unwrap_or_default()
}

/// A random statement over a few names.
fn statement(rng: &mut StdRng) -> String {
    let names = ["a", "b", "c", "d"];
    let (v, w) = (names[rng.random_range(0..4)], names[rng.random_range(0..4)]);
    let n = rng.random_range(0..9);
    match rng.random_range(0..17) {
        0 | 1 => format!("{v} = {n}"),
        2 | 3 => format!("{v} = {w} + {n}"),
        4 => format!("{v} += {w} % 7"),
        5 => format!("if {w} % 2: {v} = {n}"),
        6 => format!("for {v} in range({w} % 3): pass"),
        7 => format!("xs = [{w}]"),
        8 => format!("xs.append({w})"),
        9 => format!("xs[:1] = [{w}, {n}]"),
        10 => format!("{v} = len(xs)"),
        11 => format!("def f(): return {w} + {n}"),
        12 => format!("def f():\n    global {v}\n    {v} = {w} + 1\n    return {v}"),
        13 => format!("{v} = f()"),
        14 => format!("{v} = [i + {w} for i in range(2)][1]"),
        15 => format!("try:\n    {v} = {w} // ({n} % 2)\nexcept ZeroDivisionError as e: pass"),
        _ => format!("{v}, (q, *r) = {w}, (1, {n})\ndel q, r"),
    }
}

fn code(rng: &mut StdRng) -> String {
    let mut lines: Vec<String> = (0..rng.random_range(1..3)).map(|_| statement(rng)).collect();
    lines.push("print(a, b, c, d, xs)".to_owned());
    if rng.random_bool(0.5) {
        let v = ["a", "b", "xs"][rng.random_range(0..3)];
        *lines.last_mut().expect("a line") = format!("print({v})");
    }
    lines.join("\n") + "\n"
}

/// Replaces a cell's code; `None` removes the cell.
fn rewrite(twin: &mut Twin, note: DocId, cell: BlockId, code: Option<&str>) {
    let open = twin.note(note);
    let (start, block) = (open.block_start(cell).expect("a start"), open.block(cell).expect("a block"));
    match code {
        Some(code) => {
            let range = open.cell_parts(cell).expect("a cell").code.clone();
            twin.edit(note, start + range.start, range.len(), code);
        }
        None => twin.edit(note, start, block.text.len(), ""),
    }
}

#[test]
fn what_runs_by_itself_ends_as_a_clean_run_does() {
    let (mut kernel, mut clean) = (Kernel::start(), Kernel::start());
    for seed in 0..20 {
        let mut rng = StdRng::seed_from_u64(seed);
        let block = |code: &str| format!("```python\n{code}```\n\n");
        let mut text = format!("---\ncells: automatic\n---\n\n{}", block(FIRST));
        (0..rng.random_range(2..7)).for_each(|_| text.push_str(&block(&code(&mut rng))));
        kernel.said("for _k in [k for k in globals() if not k.startswith('__')]: del globals()[_k]", &[]);
        let (mut twin, note) = Twin::on(&text);
        assert_eq!(twin.note(note).reactivity(), Reactivity::Automatic);
        twin.command(Command::RunAll { note }).expect("run");
        serve(&mut twin, note, &mut kernel);
        for step in 0..8 {
            let all = cells(&twin, note);
            let at = rng.random_range(1..all.len().max(2)).min(all.len() - 1);
            let what = rng.random_range(0..6);
            match what {
                // The first cell is kept, since it defines the names.
                0 if all.len() > 3 => {
                    rewrite(&mut twin, note, all[at.max(1)], None);
                    let _ = twin.command(Command::RunStale { note });
                }
                1 => {
                    let start = twin.note(note).block_start(all[at]).expect("a start");
                    twin.edit(note, start, 0, &block(&code(&mut rng)));
                    // Which of the two cells keeps the old id isn't specified, so every new or changed cell is run.
                    let new = |cell: &BlockId| {
                        let open = twin.note(note);
                        open.latest_execution(*cell).is_none() || open.stale_reason(*cell) == Some(StaleReason::Code)
                    };
                    for cell in cells(&twin, note).into_iter().filter(new).collect::<Vec<_>>() {
                        twin.command(Command::Run { note, cell }).expect("run");
                        serve(&mut twin, note, &mut kernel);
                    }
                }
                2 => twin.command(Command::Run { note, cell: all[at] }).expect("run"),
                3 => {
                    rewrite(&mut twin, note, all[0], Some(&FIRST.replace("= 1;", &format!("= {step};"))));
                    twin.command(Command::Run { note, cell: all[0] }).expect("run");
                }
                _ => {
                    rewrite(&mut twin, note, all[at], Some(&code(&mut rng)));
                    twin.command(Command::Run { note, cell: all[at] }).expect("run");
                }
            }
            serve(&mut twin, note, &mut kernel);
            clean.said("for _k in [k for k in globals() if not k.startswith('__')]: del globals()[_k]", &[]);
            for (number, cell) in cells(&twin, note).into_iter().enumerate() {
                let code = twin.note(note).cell_code(cell).expect("code").to_owned();
                let (expected, _) = clean.said(&code, &[]);
                let story = || format!("seed {seed}, step {step} ({what}), cell {}:\n{}", number + 1, twin.text(note));
                assert_eq!(shown(&twin, note, cell), expected, "{}", story());
                assert_eq!(twin.note(note).stale_reason(cell), None, "{}", story());
            }
        }
    }
}
