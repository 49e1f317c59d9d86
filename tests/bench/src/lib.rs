//! `run_bench` measures the figures of BENCHMARKS.md on this machine with this program.
//!
//! Every measurement creates its data in a temporary folder, uses the same interfaces as a user, and deletes the
//! folder afterwards. It doesn't touch the user's data, and prints its results even if a goal is missed.

mod agent;
mod cells;
mod collection;
mod conversations;
mod editing_trace;
mod frames;
mod git;
pub mod headless_window;
mod hub;
mod import;
mod kernels;
mod learning;
mod memory;
mod open;
mod plots;
mod remote_typing;
mod replay;
mod replay_truth;
mod report;
mod retrieval;
mod retrieval_collections;
pub mod screenshots;
mod search;
mod serving;
mod sync;
mod text_fixtures;
mod tools;
mod typing;
mod typing_while_indexing;

use crate::headless_window::HeadlessWindow;
use clap::ArgMatches;
use cli::{CliError, EXIT_DONE, EXIT_FAILED, arguments, parse};
use engine::{Command, ScanState, Session};
use host::{Driver, WorkspaceOptions};
use report::BenchReport;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use store::DocId;
use support::measure::ScratchFolder;

/// Maximum time to wait for anything.
const BENCH_TIMEOUT: Duration = Duration::from_secs(1_800);

/// Runs the program `tracebook-bench`: all of `tracebook`, with `run_bench` and `take_screenshots`.
pub fn main() -> std::process::ExitCode {
    cli::main(program_hooks(Some(run)))
}

/// Runs the program as `tracebook` does, which starts `tracebook-bench` for its benchmarks.
pub fn main_without_benchmarks() -> std::process::ExitCode {
    cli::main(program_hooks(None))
}

fn program_hooks(bench: Option<cli::BenchCommand>) -> cli::ProgramHooks {
    cli::ProgramHooks {
        window: |driver, start, first_frame| {
            window::run(driver, start.path, start.is_safe, start.requests, first_frame)
        },
        bench,
    }
}

fn run(name: &str, args: &ArgMatches, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    match name {
        "screenshots" => screenshots::take_screenshots(&arguments::typed(args)?, json, out),
        _ => run_bench(&arguments::typed(args)?, json),
    }
}

/// Arguments of the subcommand `bench`.
#[derive(clap::Args, Clone, Debug)]
struct BenchArguments {
    #[arg(id = "WHAT")]
    what: String,
    #[arg(long)]
    size: Option<String>,
    #[arg(long)]
    notes: Option<String>,
    #[arg(long)]
    corpus: Option<String>,
    #[arg(long)]
    all: Option<String>,
    #[arg(long)]
    dump: Option<String>,
    #[arg(long)]
    words: bool,
    #[arg(long)]
    foreign: Option<String>,
    #[arg(long)]
    conversations: Option<String>,
    #[arg(long)]
    split: bool,
}

fn run_bench(args: &BenchArguments, json: bool) -> Result<u8, CliError> {
    let what = args.what.as_str();
    let known = "edit, open, import, frames, search, cells, kernels, tools, agent, learning, git, hub, serve, sync, \
                 replay, memory or retrieval";
    if known.split([' ', ',']).filter(|word| *word != "or").all(|word| word != what) {
        return Err(CliError::usage(format!("bench measures {known}, not “{what}”")));
    }
    if what == "retrieval" {
        if let Some(folder) = &args.all {
            let dump = args.dump.as_deref().map(Path::new);
            let parts = retrieval_collections::MeasuredParts { words_only: args.words, dump };
            let found = retrieval_collections::measure(Path::new(folder), parts);
            let found = found.map_err(|why| CliError { code: EXIT_FAILED, why })?;
            return retrieval_collections::print_table(&found, json, &mut std::io::stdout());
        }
        if let Some(path) = &args.conversations {
            let mut report = BenchReport::new(what, json);
            let done = conversations::measure(&mut report, Path::new(path));
            report.finish();
            done.map_err(|why| CliError { code: EXIT_FAILED, why })?;
            return Ok(if report.is_correct() { EXIT_DONE } else { EXIT_FAILED });
        }
        let Some(corpus) = &args.corpus else {
            return Err(CliError::usage(
                "bench retrieval wants --corpus DIR with corpus.jsonl, queries.jsonl, qrels.tsv, \
                 or --all DIR with such folders (--words without vectors), or --conversations FILE or DIR",
            ));
        };
        let foreign = args.foreign.as_deref().map(Path::new);
        let found =
            retrieval::measure(Path::new(corpus), foreign).map_err(|why| CliError { code: EXIT_FAILED, why })?;
        return retrieval::print_results(&found, json, &mut std::io::stdout());
    }
    if what == "replay" || what == "memory" {
        let said = args.conversations.as_deref().map(Path::new).filter(|_| what == "memory");
        let corpus = args.corpus.as_deref().map(Path::new);
        if corpus.is_none() && said.is_none() {
            let or = if what == "memory" { ", or --conversations FILE of LoCoMo's form" } else { "" };
            let why = format!("bench {what} wants --corpus DIR: the unpacked wheel of bfcl-eval (PyPI){or}");
            return Err(CliError::usage(why));
        }
        let mut report = BenchReport::new(what, json);
        let done = corpus.map_or(Ok(()), |corpus| match what {
            "memory" => memory::measure(&mut report, corpus),
            _ => replay::measure(&mut report, corpus, args.split),
        });
        let done = done.and_then(|()| said.map_or(Ok(()), |file| conversations::measure(&mut report, file)));
        report.finish();
        done.map_err(|why| CliError { code: EXIT_FAILED, why })?;
        return Ok(if report.is_correct() { EXIT_DONE } else { EXIT_FAILED });
    }
    let asked =
        parse::number_option("notes", args.notes.as_deref())?.or(parse::number_option("size", args.size.as_deref())?);
    let asked = asked.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    let mut report = BenchReport::new(what, json);
    let done = match (what, asked) {
        ("edit", Some(count)) => typing_while_indexing::measure(&mut report, count),
        ("edit", None) => editing_trace::measure(&mut report)
            .and_then(|()| typing::measure(&mut report))
            .and_then(|()| remote_typing::measure(&mut report)),
        ("cells", _) => cells::measure(&mut report, asked.unwrap_or(500)),
        ("kernels", _) => kernels::measure(&mut report, asked.unwrap_or(500)),
        ("agent", _) => agent::measure(&mut report),
        ("learning", _) => learning::measure(&mut report, asked.unwrap_or(learning::DEFAULT_DAY_COUNT)),
        ("git", _) => git::measure(&mut report, asked.unwrap_or(50_000)),
        ("hub", _) => hub::measure(&mut report, asked.unwrap_or(1_000)),
        ("serve", _) => serving::measure(&mut report, asked.unwrap_or(10_000)),
        ("sync", _) => sync::measure(&mut report, asked.unwrap_or(50_000)),
        ("tools", _) => tools::measure(&mut report, asked.unwrap_or(200)),
        ("frames", _) => frames::measure(&mut report, asked.unwrap_or(10_000)),
        ("search", _) => search::measure(&mut report, asked.unwrap_or(10_000)),
        ("open", _) => open::measure(&mut report, asked.unwrap_or(10_000)),
        _ => import::measure(&mut report, asked.unwrap_or(50_000)),
    };
    report.finish();
    done.map_err(|why| CliError { code: EXIT_FAILED, why })?;
    Ok(if report.is_correct() { EXIT_DONE } else { EXIT_FAILED })
}

/// Opens or creates the workspace `W` of a measurement.
fn open_workspace(scratch: &ScratchFolder) -> Result<Driver, String> {
    let program = std::env::current_exe().map_err(|error| format!("the program does not find itself ({error})"))?;
    let folder = scratch.folder().join("W");
    let mut driver =
        host::open_workspace(&folder, WorkspaceOptions { program, create: true }).map_err(|error| error.to_string())?;
    drive_until(&mut driver, "the workspace is open", Session::is_open)?;
    Ok(driver)
}

/// Opens a folder as a volume and waits until it's completely scanned.
fn open_volume(driver: &mut Driver, folder: &Path) -> Result<DocId, String> {
    let folder = folder.to_owned();
    driver.run_command(Command::OpenFolder { folder: folder.clone(), name: None }).map_err(|reject| reject.0)?;
    let find = move |session: &Session| {
        let volume = session.volumes().find(|volume| volume.root.as_ref() == Some(&folder))?;
        (volume.scans > 0).then_some(volume.id)
    };
    drive_until(driver, "the folder is known", |session| find(session).is_some())?;
    find(driver.session()).ok_or_else(|| "the volume is gone".to_owned())
}

/// Opens a window with the scratch folder's `N` as volume, and waits until all its notes are indexed.
fn open_headless_window(scratch: &ScratchFolder) -> Result<HeadlessWindow, String> {
    let mut headless_window = HeadlessWindow::new(open_workspace(scratch)?);
    headless_window.send_command(Command::OpenFolder { folder: scratch.folder().join("N"), name: None });
    headless_window.draw_until("all notes are known", |session| {
        let mut volumes = session.volumes();
        volumes.any(|volume| volume.scans > 0 && volume.is_indexed() && volume.scanning == ScanState::Idle)
            && session.is_saved()
    })?;
    Ok(headless_window)
}

/// Opens a window on the only note in the scratch folder's `N`, and waits until it's readable.
fn open_note_window(scratch: &ScratchFolder) -> Result<(HeadlessWindow, DocId), String> {
    open_note_window_in(open_workspace(scratch)?, scratch)
}

/// Opens a window on the only note in an open workspace, and waits until it's readable.
fn open_note_window_in(mut driver: Driver, scratch: &ScratchFolder) -> Result<(HeadlessWindow, DocId), String> {
    let volume = open_volume(&mut driver, &scratch.folder().join("N"))?;
    let row = driver.session().volume(volume).and_then(|volume| volume.files.values().next());
    let note = row.map(|row| row.id).ok_or("the note is not there")?;
    driver.run_command(Command::OpenNote { note }).map_err(|reject| reject.0)?;
    let mut headless_window = HeadlessWindow::new(driver);
    headless_window
        .draw_until("the note is readable", |session| session.note(note).is_some_and(engine::Note::is_settled))?;
    Ok((headless_window, note))
}

/// Drives the session until a condition holds.
fn drive_until(driver: &mut Driver, what: &str, so: impl Fn(&Session) -> bool) -> Result<(), String> {
    let begun = Instant::now();
    while !so(driver.session()) {
        if begun.elapsed() > BENCH_TIMEOUT {
            return Err(format!("given up waiting until {what}"));
        }
        driver.wait(Duration::from_millis(20));
    }
    Ok(())
}

/// Converts a duration to milliseconds.
fn to_ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
