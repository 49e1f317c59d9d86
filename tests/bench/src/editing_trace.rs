//! Benchmark of a real editing history, the automerge paper as it was typed key by key.
//!
//! It goes through everything from command, journal, changes and database to the file. Then the note is closed, opened
//! again and compared with the paper's final text.

use super::report::{BenchReport, FigureGoal, percentile};
use super::{drive_until, open_volume, open_workspace, to_ms};
use engine::{Command, NotePhase, Session};
use flate2::read::GzDecoder;
use host::Driver;
use host::history::{ComparisonSide, HistoryAnswer, HistoryQuestion, HistoryThread, VersionText};
use serde::Deserialize;
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use store::DocId;
use store::disk::{DiskReader, SqliteReader};
use support::measure::{self, ScratchFolder};

const TRACE_PATH: &str = "traces/automerge-paper.json.gz";
/// Number of times the note is reopened.
const REOPEN_COUNT: usize = 7;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EditingTrace {
    start_content: String,
    end_content: String,
    txns: Vec<TraceTransaction>,
}

#[derive(Deserialize)]
struct TraceTransaction {
    patches: Vec<(usize, usize, String)>,
}

/// Returns the folders where test data may be: the configured one, or beside the working directory and the source.
fn test_data_folders() -> Vec<PathBuf> {
    let named = std::env::var_os("TRACEBOOK_DATA").map(PathBuf::from);
    let built = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    named.map_or_else(|| vec![PathBuf::from("../shared/data"), built], |named| vec![named])
}

fn read_trace_file() -> Option<Vec<u8>> {
    test_data_folders().into_iter().find_map(|folder| measure::read(&folder.join(TRACE_PATH)).ok())
}

fn parse_trace(bytes: &[u8]) -> Result<EditingTrace, String> {
    let mut text = String::new();
    let unpacked = GzDecoder::new(bytes).read_to_string(&mut text);
    unpacked.map_err(|error| format!("the trace cannot be unpacked ({error}): {TRACE_PATH}"))?;
    serde_json::from_str(&text).map_err(|error| format!("the trace cannot be read ({error}): {TRACE_PATH}"))
}

/// Converts the trace's offsets from Unicode characters to bytes.
fn to_byte_offsets(trace: &EditingTrace) -> Vec<(usize, usize, String)> {
    let mut text = trace.start_content.clone();
    // As long as the text is ASCII, both offsets are the same.
    let mut wide = text.chars().filter(|c| !c.is_ascii()).count();
    let mut edits = Vec::with_capacity(trace.txns.len());
    for (at, delete, insert) in trace.txns.iter().flat_map(|transaction| &transaction.patches) {
        let (start, end) = match wide {
            0 => (*at, at + delete),
            _ => {
                let mut places = text.char_indices().map(|(place, _)| place).chain([text.len()]).skip(*at);
                let start = places.next().unwrap_or(text.len());
                (start, delete.checked_sub(1).map_or(start, |rest| places.nth(rest).unwrap_or(text.len())))
            }
        };
        wide += insert.chars().filter(|c| !c.is_ascii()).count();
        wide -= text[start..end].chars().filter(|c| !c.is_ascii()).count();
        text.replace_range(start..end, insert);
        edits.push((start, end - start, insert.clone()));
    }
    edits
}

/// Runs all benchmarks of the trace.
pub(super) fn measure(report: &mut BenchReport) -> Result<(), String> {
    let Some(bytes) = read_trace_file() else {
        let places: Vec<String> = test_data_folders().iter().map(|folder| folder.display().to_string()).collect();
        let why = format!("there is no {TRACE_PATH} in {}; name its folder by TRACEBOOK_DATA", places.join(" or "));
        report.leave_out("all figures of the trace", why);
        return Ok(());
    };
    let trace = parse_trace(&bytes)?;
    let edits = to_byte_offsets(&trace);
    let scratch = ScratchFolder::new("trace")?;
    scratch.write("N/before.md", b"A note that was there before.\n")?;
    let note = type_trace(report, &scratch, &trace, edits)?;
    measure_sizes(report, &scratch, note)?;
    measure_reopening(report, &scratch, note, &trace.end_content)
}

/// Types the trace into a new note and saves it.
fn type_trace(
    report: &mut BenchReport,
    scratch: &ScratchFolder,
    trace: &EditingTrace,
    edits: Vec<(usize, usize, String)>,
) -> Result<DocId, String> {
    let mut driver = open_workspace(scratch)?;
    let volume = open_volume(&mut driver, &scratch.folder().join("N"))?;
    let text = trace.start_content.clone();
    let new = Command::NewNote { volume, path: "paper.md".to_owned(), text };
    driver.run_command(new).map_err(|reject| reject.0)?;
    let made = |session: &Session| session.volume(volume)?.files.get("paper.md").map(|row| row.id);
    let note = made(driver.session()).ok_or("the new note is not there")?;
    let settled = |session: &Session| session.is_saved() && session.note(note).is_some_and(|n| n.document().is_some());
    drive_until(&mut driver, "the new note is saved", settled)?;

    let count = edits.len();
    let mut each = Vec::with_capacity(count);
    let (begun, cpu, own) = (Instant::now(), measure::process_cpu(), measure::thread_cpu());
    let mut before = own;
    for (at, delete, insert) in edits {
        driver.run_command(Command::Edit { note, at, delete, insert }).map_err(|reject| reject.0)?;
        driver.pump(Duration::from_millis(1));
        let now = measure::thread_cpu();
        each.push(to_ms(now.saturating_sub(before)) * 1e3);
        before = now;
    }
    let typed = begun.elapsed();
    driver.run_command(Command::Save).map_err(|reject| reject.0)?;
    drive_until(&mut driver, "the trace is saved", Session::is_saved)?;
    let (wall, own) = (begun.elapsed(), measure::thread_cpu().saturating_sub(own));
    let cpu = measure::process_cpu().saturating_sub(cpu);

    report.add_figure("trace edits", count as f64, "", FigureGoal::None);
    report.add_figure("trace typed, wall", typed.as_secs_f64(), "s", FigureGoal::None);
    report.add_figure("trace typed and saved, wall", wall.as_secs_f64(), "s", FigureGoal::None);
    report.add_figure("trace typed and saved, CPU of all threads", cpu.as_secs_f64(), "s", FigureGoal::None);
    report.add_figure("trace typed and saved, CPU of the thread that draws", own.as_secs_f64(), "s", FigureGoal::None);
    report.add_figure("trace edit, wall, mean", to_ms(wall) * 1e3 / count as f64, "µs", FigureGoal::None);
    report.add_figure("trace edit, CPU of all threads, mean", to_ms(cpu) * 1e3 / count as f64, "µs", FigureGoal::None);
    report.add_percentiles("trace edit, CPU of the thread that draws,", &mut each, "µs", FigureGoal::None);
    driver.close().map_err(|why| why.to_string())?;
    Ok(note)
}

fn measure_sizes(report: &mut BenchReport, scratch: &ScratchFolder, note: DocId) -> Result<(), String> {
    let reader = SqliteReader::open(&scratch.folder().join("W")).map_err(|error| error.to_string())?;
    let chunks = reader.chunks(note).map_err(|error| error.to_string())?;
    let history: usize = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
    let disk = measure::folder_bytes(&scratch.folder().join("W")) as f64;
    report.add_figure("trace workspace on disk", disk / 1e3, "kB", FigureGoal::None);
    report.add_figure("trace history in the workspace", history as f64 / 1e3, "kB", FigureGoal::None);
    report.add_figure("trace history chunks", chunks.len() as f64, "", FigureGoal::None);
    Ok(())
}

/// Reopens the workspace and the note several times, each time as a program that has just started.
fn measure_reopening(report: &mut BenchReport, scratch: &ScratchFolder, note: DocId, end: &str) -> Result<(), String> {
    let (mut opened, mut readable, mut loaded, mut cpu) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut listed, mut compared, mut versions) = (Vec::new(), Vec::new(), 0);
    for _ in 0..REOPEN_COUNT {
        let begun = Instant::now();
        let mut driver = open_workspace(scratch)?;
        drive_until(&mut driver, "the volume is known", |session| session.locate_file(note).is_some())?;
        opened.push(to_ms(begun.elapsed()));
        let (begun, before) = (Instant::now(), measure::process_cpu());
        driver.run_command(Command::OpenNote { note }).map_err(|reject| reject.0)?;
        let ready = |session: &Session| session.note(note).is_some_and(|note| note.phase == NotePhase::Ready);
        drive_until(&mut driver, "the note is readable", ready)?;
        readable.push(to_ms(begun.elapsed()));
        let there = |session: &Session| session.note(note).is_some_and(|note| note.document().is_some());
        drive_until(&mut driver, "the document is loaded", there)?;
        loaded.push(to_ms(begun.elapsed()));
        cpu.push(to_ms(measure::process_cpu().saturating_sub(before)));
        compare_text(report, &driver, note, end);
        let begun = Instant::now();
        let history = driver.open_history(note);
        let HistoryAnswer::History(Some(story)) = next_history_answer(&mut driver, &history) else {
            return Err("there is no history".to_owned());
        };
        listed.push(to_ms(begun.elapsed()));
        versions = story.versions.len();
        let begun = Instant::now();
        history.ask(HistoryQuestion::Compare {
            then: VersionText::Change(story.past.moments.len() / 2),
            with: ComparisonSide::Current(end.into()),
        });
        let HistoryAnswer::Compared(_) = next_history_answer(&mut driver, &history) else {
            return Err("nothing was compared".to_owned());
        };
        compared.push(to_ms(begun.elapsed()));
        driver.close().map_err(|why| why.to_string())?;
    }
    report.add_figure("trace history listed", percentile(&mut listed, 50), "ms", FigureGoal::Under(1_000.0));
    report.add_figure("trace history versions", versions as f64, "", FigureGoal::None);
    report.add_figure("trace half way compared with the end", percentile(&mut compared, 50), "ms", FigureGoal::None);
    report.add_figure("trace workspace opened", percentile(&mut opened, 50), "ms", FigureGoal::None);
    report.add_figure("trace note readable", percentile(&mut readable, 50), "ms", FigureGoal::Under(50.0));
    report.add_figure("trace document loaded", percentile(&mut loaded, 50), "ms", FigureGoal::None);
    report.add_figure("trace document loaded, CPU of all threads", percentile(&mut cpu, 50), "ms", FigureGoal::None);
    let file = measure::read(&scratch.folder().join("N/paper.md"))?;
    if file != end.as_bytes() {
        report.add_error("the file of the trace is not how the trace ends");
    }
    Ok(())
}

/// Waits for the next answer of a history thread.
fn next_history_answer(driver: &mut Driver, history: &HistoryThread) -> HistoryAnswer {
    loop {
        driver.wait(Duration::from_millis(5));
        if let Some(told) = history.try_answer() {
            return told;
        }
    }
}

fn compare_text(report: &mut BenchReport, driver: &Driver, note: DocId, end: &str) {
    let Some(note) = driver.session().note(note) else {
        report.add_error("the note of the trace is gone");
        return;
    };
    if note.text() != end {
        report.add_error("the note of the trace is not how the trace ends");
    }
    let document = note.document().map(|doc| doc.blocks().into_iter().map(|block| block.text).collect::<String>());
    if document.as_deref() != Some(end) {
        report.add_error("the document of the trace is not how the trace ends");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_become_bytes() {
        let patch = |at, delete, insert: &str| TraceTransaction { patches: vec![(at, delete, insert.to_owned())] };
        let trace = EditingTrace {
            start_content: "aé".to_owned(),
            end_content: "x\u{1f600}".to_owned(),
            txns: vec![patch(2, 0, "\u{1f600}b"), patch(3, 1, ""), patch(0, 2, "x")],
        };
        let edits = to_byte_offsets(&trace);
        let places: Vec<(usize, usize)> = edits.iter().map(|(at, delete, _)| (*at, *delete)).collect();
        assert_eq!(places, [(3, 0), (7, 1), (0, 3)]);
    }
}
