//! `cmd_run`: runs cells without a window, and stores their outputs in the note as the window does.

use super::parse::number_option;
use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED, resolve, saved_outputs};
use crate::arguments::RunArguments;
use engine::{Command, END_OF_INPUT, KernelKind, Note, Session};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;
use store::{BlockId, CellOutput, DocId, ExecutionStatus, FileKind, OutputBody};
use text::untrusted_text;
use typeset::ansi::PROGRESS_MIME_TYPE;

/// Maximum length of an input line in bytes; longer lines are split.
const MAX_INPUT_LINE_BYTES: usize = 1 << 20;

/// Longest wait for a cell that another program runs, in seconds, unless `--timeout` says how long a cell may take.
const OTHER_RUN_TIMEOUT_SECONDS: u64 = 60;
/// Interval at which the command says what it waits for. One whose user has left by Ctrl+C ends then, because nothing
/// can be written.
const OTHER_RUN_NOTICE_INTERVAL: Duration = Duration::from_secs(5);

/// What is new in an execution since the last poll.
enum ExecutionNews {
    Text { name: String, text: String },
    Whole(OutputBody),
    Asks { prompt: String, password: bool },
    End { status: ExecutionStatus, outputs: Vec<CellOutput> },
}

pub(super) fn cmd_run(scene: &mut CommandContext<'_>, args: &RunArguments) -> Result<u8, CliError> {
    let note = resolve::resolve_note(scene, args.note.as_str())?;
    let only = number_option("cell", args.cell.as_deref())?;
    let timeout = number_option("timeout", args.timeout.as_deref())?;
    let (stale, clean) = (args.stale, args.clean);
    if u8::from(stale) + u8::from(clean) + u8::from(only.is_some()) > 1 {
        return Err(CliError::usage("choose one of --cell, --stale and --clean"));
    }
    let _held = export::open_note::hold_note(scene.handle, note)?;
    if args.stop && args.save.is_some() {
        return Err(CliError::usage("--stop saves nothing: leave out --save"));
    }
    let folder = args.save.as_deref().map(|named| saved_outputs::new_folder(scene, named)).transpose()?;
    if args.stop {
        scene.handle.run_command(Command::Interrupt { note })?;
        return Ok(EXIT_DONE);
    }
    if let Some(kernel) = args.kernel.clone() {
        let found = super::kernels::find_kernels(scene, note)?;
        super::kernels::check_kernel(&kernel, &found)?;
        scene.handle.run_command(Command::UseKernel { note, kernel: Some(kernel), keep: false, seen: None })?;
    }
    let cells: Vec<BlockId> =
        scene.handle.read(move |session| session.note(note).map(|note| note.cells().collect()))?.unwrap_or_default();
    if cells.is_empty() && only.is_none() {
        writeln!(scene.errors, "tracebook: {} has no cells to run", untrusted_text::escape_line(&args.note))?;
    }
    let mut chosen: Vec<(usize, BlockId)> = cells.into_iter().enumerate().map(|(at, cell)| (at + 1, cell)).collect();
    if let Some(only) = only {
        let count = chosen.len();
        chosen.retain(|(number, _)| *number as u64 == only);
        if chosen.is_empty() {
            return Err(CliError::usage(format!("there is no cell {only}; the note has {count}")));
        }
    }
    if only.is_none() {
        // A note may contain cells in several languages; its kernel runs one of them.
        let here = runnable_cells(scene, note)?;
        if chosen.iter().any(|(_, cell)| here.contains(cell)) {
            chosen.retain(|(_, cell)| here.contains(cell));
        }
    }
    if timeout.is_none() {
        warn_of_misread_time_limits(scene, note, &chosen)?;
    }
    if scene.json {
        chosen.iter().try_for_each(|place| wait_for_other_run(scene, note, *place, timeout))?;
    }
    let mut code = EXIT_DONE;
    if stale || clean || (only.is_some() && timeout.is_none()) {
        code = run_planned_cells(scene, note, chosen, stale, clean)?;
    } else {
        let mut followed = Vec::new();
        for (number, cell) in chosen {
            scene.handle.run_command(match timeout {
                Some(seconds) => Command::RunWithin { note, cell, seconds },
                None => Command::RunCells { note, cells: vec![cell] },
            })?;
            followed.push(cell);
            if follow_cell(scene, note, cell, number)? != ExecutionStatus::Ok {
                code = EXIT_FAILED;
                break;
            }
        }
        if code == EXIT_DONE {
            code = follow_pending_cells(scene, note, followed)?;
        }
    }
    let unsaved = move |session: &Session| Some(session.note(note)?.unsaved_state_problem()?.to_owned());
    if let Some(problem) = scene.handle.read(unsaved)? {
        writeln!(scene.errors, "tracebook: {}", untrusted_text::escape_line(&problem))?;
    }
    // The outputs are a result of the command, so it waits until they are on disk.
    // Another note that can't be saved is no reason to fail.
    let saved = move |session: &Session| session.are_saved(|other| other.id == note).then_some(());
    if scene.handle.wait(Some(Duration::from_secs(10)), saved)?.is_none() {
        let why = scene.handle.read(move |session| {
            let stuck = || session.note(note).and_then(|note| note.file.trouble.clone());
            session.saving().trouble.clone().or_else(stuck)
        })?;
        let why = why.unwrap_or_else(|| "it takes too long".to_owned());
        return Err(CliError::workspace(format!("the cells have run, and what they printed is not on disk: {why}")));
    }
    if let Some(folder) = folder {
        save_results(scene, note, only, &folder)?;
    }
    Ok(code)
}

/// Saves the outputs of the note's cells, or of one, as files. The kernel still has their data frames.
fn save_results(scene: &mut CommandContext<'_>, note: DocId, only: Option<u64>, folder: &Path) -> Result<(), CliError> {
    let executions = export::open_note::read_loaded_note(scene.handle, note, move |note| {
        let numbered = note.cells().zip(1_usize..).filter(|(_, number)| only.is_none_or(|only| *number as u64 == only));
        numbered.filter_map(|(cell, number)| Some((number, note.latest_execution(cell)?.clone()))).collect::<Vec<_>>()
    })?;
    if saved_outputs::save_outputs(scene, note, folder, executions)? == 0 {
        writeln!(scene.errors, "tracebook: the cells show no figures, pictures, tables or pages to save")?;
    }
    Ok(())
}

/// Waits until a run of the cell that others asked for is over. A program would get its outputs in place of its own:
/// those of older code, or of a run that is being interrupted because another program has left.
fn wait_for_other_run(
    scene: &mut CommandContext<'_>,
    note: DocId,
    (number, cell): (usize, BlockId),
    timeout: Option<u64>,
) -> Result<(), CliError> {
    let running = move |session: &Session| {
        let execution = session.note(note)?.latest_execution(cell)?;
        (!execution.status.is_final()).then_some(execution.id)
    };
    let Some(id) = scene.handle.read(running)? else { return Ok(()) };
    let seconds = timeout.unwrap_or(OTHER_RUN_TIMEOUT_SECONDS);
    // As for the cell itself, 0 is no limit.
    let mut left = (seconds > 0).then(|| Duration::from_secs(seconds));
    let mut has_said = false;
    loop {
        let pause = left.map_or(OTHER_RUN_NOTICE_INTERVAL, |left| left.min(OTHER_RUN_NOTICE_INTERVAL));
        let is_over = move |session: &Session| (running(session) != Some(id)).then_some(());
        if scene.handle.wait(Some(pause), is_over)?.is_some() {
            break;
        }
        left = left.map(|left| left.saturating_sub(pause));
        if left == Some(Duration::ZERO) {
            let why = format!(
                "cell {number} still runs for another program after {seconds} s; try again later, or stop it with \
                 `tracebook run NOTE --stop`"
            );
            return Err(CliError { code: EXIT_FAILED, why });
        }
        writeln!(scene.errors, "tracebook: waiting for cell {number}, which another program runs; Ctrl+C ends this")?;
        has_said = true;
    }
    if has_said {
        writeln!(scene.errors, "tracebook: cell {number} has ended")?;
    }
    Ok(())
}

/// Says which cells have a time limit in their first line that doesn't count.
fn warn_of_misread_time_limits(
    scene: &mut CommandContext<'_>,
    note: DocId,
    chosen: &[(usize, BlockId)],
) -> Result<(), CliError> {
    let chosen = chosen.to_vec();
    let look = move |session: &Session| -> Vec<(usize, String)> {
        let Some(note) = session.note(note) else { return Vec::new() };
        let stated = |cell: BlockId| text::markdown::misread_time_limit(&note.block(cell)?.text).map(str::to_owned);
        chosen.into_iter().filter_map(|(number, cell)| Some((number, stated(cell)?))).collect()
    };
    for (number, stated) in scene.handle.read(look)? {
        let stated = untrusted_text::escape_line(&stated);
        writeln!(
            scene.errors,
            "tracebook: cell {number}: `timeout={stated}` doesn't count; write whole seconds, such as `timeout=60`"
        )?;
    }
    Ok(())
}

/// Returns the cells that the note's kernel can run.
fn runnable_cells(scene: &CommandContext<'_>, note: DocId) -> Result<Vec<BlockId>, CliError> {
    let look = move |session: &Session| {
        let named = session.note(note).is_some_and(|note| KernelKind::of(note.kernel_name()) == KernelKind::Jupyter);
        (named, session.kernel_searches())
    };
    let (named, before) = scene.handle.read(look)?;
    if named {
        scene.handle.run_command(Command::FindKernels { note })?;
        let found = move |session: &Session| (session.kernel_searches() > before).then_some(());
        scene.handle.wait(Some(Duration::from_secs(30)), found)?;
    }
    let cells = move |session: &Session| {
        let note = session.note(note)?;
        Some(note.cells().filter(|cell| session.other_language_reason(note, *cell).is_none()).collect())
    };
    Ok(scene.handle.read(cells)?.unwrap_or_default())
}

/// Runs the cells that the session plans to run, and prints their outputs in order.
fn run_planned_cells(
    scene: &mut CommandContext<'_>,
    note: DocId,
    chosen: Vec<(usize, BlockId)>,
    stale: bool,
    clean: bool,
) -> Result<u8, CliError> {
    // Which cells are stale is stored in the note's outputs.
    export::open_note::read_loaded_note(scene.handle, note, |_| ())?;
    let verdicts =
        move |session: &Session| session.note(note).and_then(Note::clean_run_report).map_or(0, |(count, _)| count);
    let before = scene.handle.read(verdicts)?;
    if stale && scene.handle.read(move |session| session.note(note).is_some_and(has_no_stale_cells))? {
        if !scene.json {
            writeln!(scene.out, "nothing is stale")?;
        }
        return Ok(EXIT_DONE);
    }
    scene.handle.run_command(match chosen.as_slice() {
        _ if stale => Command::RunStale { note },
        _ if clean => Command::RunClean { note },
        [(_, cell)] => Command::Run { note, cell: *cell },
        _ => return Err(CliError::usage("name one cell")),
    })?;
    let begun = move |session: &Session| {
        let open = session.note(note)?;
        (!open.is_restarting()).then(|| numbered_pending_cells(open))
    };
    let pending = scene.handle.wait(None, begun)?.unwrap_or_default();
    let (mut code, mut followed) = (EXIT_DONE, Vec::new());
    for (number, cell) in pending {
        followed.push(cell);
        if follow_cell(scene, note, cell, number)? != ExecutionStatus::Ok {
            code = EXIT_FAILED;
            break;
        }
    }
    if code == EXIT_DONE {
        code = follow_pending_cells(scene, note, followed)?;
    }
    if clean {
        let look = move |session: &Session| {
            let open = session.note(note)?;
            let (count, verdict) = open.clean_run_report()?;
            let numbers = open.cells().enumerate().filter(|(_, cell)| verdict.different.contains(cell));
            let different: Vec<usize> = numbers.map(|(at, _)| at + 1).collect();
            (count > before).then(|| (verdict.clone(), different, open.clean_run_summary().unwrap_or_default()))
        };
        let Some((verdict, different, words)) = scene.handle.wait(None, look)? else { return Ok(code) };
        if scene.json {
            let (same, new, left) = (verdict.same, verdict.new, verdict.not_run);
            let clean = serde_json::json!({"same": same, "different": different, "new": new, "left": left});
            writeln!(scene.out, "{}", serde_json::json!({"clean": clean}))?;
        } else {
            writeln!(scene.out, "{words}")?;
        }
        if !different.is_empty() {
            code = EXIT_FAILED;
        }
    }
    Ok(code)
}

/// Follows the cells that are queued while others run, until none is left: a cell that runs in the state above it has
/// the results below it made again.
fn follow_pending_cells(
    scene: &mut CommandContext<'_>,
    note: DocId,
    mut followed: Vec<BlockId>,
) -> Result<u8, CliError> {
    let look = move |session: &Session| session.note(note).map(numbered_pending_cells).unwrap_or_default();
    loop {
        let pending = scene.handle.read(look)?;
        let Some((number, cell)) = pending.into_iter().find(|(_, cell)| !followed.contains(cell)) else {
            return Ok(EXIT_DONE);
        };
        followed.push(cell);
        if follow_cell(scene, note, cell, number)? != ExecutionStatus::Ok {
            return Ok(EXIT_FAILED);
        }
    }
}

/// Returns the cells that run or are queued with their numbers in the note, from 1.
fn numbered_pending_cells(note: &Note) -> Vec<(usize, BlockId)> {
    let cells: Vec<BlockId> = note.cells().collect();
    let number = |cell: &BlockId| cells.iter().position(|other| other == cell).unwrap_or(0) + 1;
    note.pending_cells().into_iter().map(|cell| (number(&cell), cell)).collect()
}

fn has_no_stale_cells(note: &Note) -> bool {
    note.cells().all(|cell| note.stale_reason(cell).is_none())
}

/// Whether an output says that a program ended as it meant to: with `sys.exit()` or `sys.exit(0)`.
fn is_planned_exit(body: &OutputBody) -> bool {
    matches!(body, OutputBody::Error { ename, evalue, .. }
        if ename == "SystemExit" && matches!(evalue.as_str(), "" | "0" | "None"))
}

/// Prints a cell's outputs as they arrive, until it ends.
fn follow_cell(
    scene: &mut CommandContext<'_>,
    note: DocId,
    cell: BlockId,
    number: usize,
) -> Result<ExecutionStatus, CliError> {
    let mut seen = (0, 0);
    let live = !scene.json;
    // In a note, such an end keeps the cells below from running.
    let may_exit =
        scene.handle.read(move |session| session.note(note).is_some_and(|note| note.kind == FileKind::Script))?;
    // The kernel's echo of a prompt that is already in the terminal.
    let mut echo = String::new();
    loop {
        let look = move |session: &Session| next_execution_news(session.note(note)?, cell, seen, live);
        match scene.handle.wait(None, look)? {
            None => {} // only a wait with an end comes back with nothing
            Some((now, ExecutionNews::Text { name, text })) => {
                seen = now;
                let text = text.strip_prefix(std::mem::take(&mut echo).as_str()).unwrap_or(&text).to_owned();
                let to: &mut dyn Write = if name == "stderr" { scene.errors } else { scene.out };
                to.write_all(text.as_bytes())?;
                to.flush()?;
            }
            Some((now, ExecutionNews::Whole(body))) => {
                seen = now;
                // Progress bars are useless in output that's written only once.
                let is_progress =
                    matches!(&body, OutputBody::DisplayData { data, .. } if data.contains_key(PROGRESS_MIME_TYPE));
                let is_hidden = is_progress || (may_exit && is_planned_exit(&body));
                if !is_hidden {
                    print_output(scene.out, &body)?;
                }
            }
            Some((now, ExecutionNews::Asks { prompt, password })) => {
                seen = now;
                echo = answer_stdin_request(scene, note, &prompt, password)?;
            }
            Some((_, ExecutionNews::End { status, mut outputs })) => {
                let has_exited = may_exit && outputs.last().is_some_and(|output| is_planned_exit(&output.body));
                if scene.json {
                    // A large figure stays a blob, but images are rendered from it.
                    let blobs: Vec<bool> = outputs.iter().map(|output| output.whole.is_some()).collect();
                    export::restore_figure_blobs(scene.handle, &mut outputs);
                    export::notebook_export::draw_figures(&mut outputs);
                    for (output, blob) in outputs.into_iter().zip(blobs) {
                        let mut value = serde_json::to_value(&output).unwrap_or_default();
                        let data = value.get_mut("data").and_then(serde_json::Value::as_object_mut);
                        if let Some(data) = data.filter(|_| blob) {
                            data.remove(plot::FIGURE_MIME);
                        }
                        value["cell"] = number.into();
                        writeln!(scene.out, "{value}")?;
                    }
                } else {
                    print_stream_tails(scene, &outputs)?;
                }
                return Ok(if has_exited { ExecutionStatus::Ok } else { status });
            }
        }
    }
}

/// Asks the user for a cell's input. Returns the echo that the kernel will print.
fn answer_stdin_request(
    scene: &mut CommandContext<'_>,
    note: DocId,
    prompt: &str,
    password: bool,
) -> Result<String, CliError> {
    // With `--json`, standard output is for programs, so the prompt goes to standard error.
    let to: &mut dyn Write = if scene.json { scene.errors } else { scene.out };
    to.write_all(prompt.as_bytes())?;
    to.flush()?;
    let hidden = password && scene.own;
    let line =
        if hidden { crate::terminal::read_without_echo(|| read_line(scene.input)) } else { read_line(scene.input) }?;
    let Some(text) = line else {
        // As in Python: raises `EOFError`, which the cell may handle.
        scene.handle.run_command(Command::Answer { note, text: END_OF_INPUT.to_owned() })?;
        return Ok(prompt.to_owned());
    };
    let shown = if password { "········" } else { text.as_str() };
    let echo = format!("{prompt}{shown}\n");
    scene.handle.run_command(Command::Answer { note, text })?;
    Ok(echo)
}

/// Reads a line of input without its line end; `None` at the end of the input.
pub(super) fn read_line(input: &mut dyn Read) -> std::io::Result<Option<String>> {
    let (mut bytes, mut byte) = (Vec::new(), [0]);
    while bytes.len() < MAX_INPUT_LINE_BYTES {
        match input.read(&mut byte)? {
            0 if bytes.is_empty() => return Ok(None),
            0 => break,
            _ if byte[0] == b'\n' => break,
            _ => bytes.push(byte[0]),
        }
    }
    Ok(Some(String::from_utf8_lossy(&bytes).trim_end_matches('\r').to_owned()))
}

/// Prints the parts of long streams that are stored outside the note.
fn print_stream_tails(scene: &mut CommandContext<'_>, outputs: &[CellOutput]) -> Result<(), CliError> {
    for output in outputs {
        if let (OutputBody::Stream { name, text }, Some(whole)) = (&output.body, &output.whole) {
            let all = scene.handle.read_blob(whole.blob).map_err(|why| CliError::workspace(why.to_string()))?;
            let to: &mut dyn Write = if name == "stderr" { scene.errors } else { scene.out };
            to.write_all(all.get(text.len()..).unwrap_or_default())?;
        }
    }
    Ok(())
}

/// Returns what is new after `seen` (number of complete outputs, bytes of the next one).
fn next_execution_news(
    note: &Note,
    cell: BlockId,
    seen: (usize, usize),
    live: bool,
) -> Option<((usize, usize), ExecutionNews)> {
    let execution = note.latest_execution(cell)?;
    // A cell may have cleared its outputs.
    let seen = if execution.outputs.len() < seen.0 { (0, 0) } else { seen };
    if live && let Some(output) = execution.outputs.get(seen.0) {
        match &output.body {
            OutputBody::Stream { name, text } => {
                if let Some(text) = text.get(seen.1..).filter(|text| !text.is_empty()) {
                    let now = (seen.0, seen.1 + text.len());
                    return Some((now, ExecutionNews::Text { name: name.clone(), text: text.to_owned() }));
                }
                // The stream is complete; the next output follows.
                if execution.outputs.len() > seen.0 + 1 {
                    return next_execution_news(note, cell, (seen.0 + 1, 0), live);
                }
            }
            body => return Some(((seen.0 + 1, 0), ExecutionNews::Whole(body.clone()))),
        }
    }
    if let Some(question) = note.stdin_request().filter(|question| question.execution == execution.id) {
        return Some((seen, ExecutionNews::Asks { prompt: question.prompt.clone(), password: question.password }));
    }
    let end = ExecutionNews::End { status: execution.status, outputs: execution.outputs.clone() };
    execution.status.is_final().then_some((seen, end))
}

/// Prints an output as readable text.
pub(super) fn print_output(out: &mut dyn Write, body: &OutputBody) -> std::io::Result<()> {
    match body {
        OutputBody::Stream { text, .. } => {
            out.write_all(text.as_bytes())?;
            if !text.ends_with('\n') {
                writeln!(out)?;
            }
        }
        OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => {
            match data.get("text/plain").and_then(|text| text.as_str()) {
                Some(text) => writeln!(out, "{text}")?,
                None => {
                    let kinds: Vec<&str> = data.keys().map(String::as_str).collect();
                    writeln!(out, "({})", kinds.join(", "))?;
                }
            }
        }
        // The kernel didn't raise this; the name would be taken for an exception of the code.
        OutputBody::Error { ename, evalue, .. } if ename == "KernelDied" => writeln!(out, "{evalue}")?,
        OutputBody::Error { traceback, .. } => {
            for line in traceback {
                writeln!(out, "{}", typeset::ansi::strip_codes(line).trim_end_matches('\n'))?;
            }
        }
    }
    Ok(())
}
