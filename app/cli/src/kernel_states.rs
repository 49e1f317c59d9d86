//! `kernels states NOTE`, and `undo`, `fork`, `compare`, `share` and others: the saved states of a note's kernel.

use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED, resolve};
use crate::arguments::KernelsArguments;
use engine::{Command, KernelStateMove, KernelStateReport, Session};
use host::kernel_states::{
    ComparedValue, NoteStates, SavedState, StateBudget, compare_states, list_states, state_graph, workspace_state_bytes,
};
use serde_json::json;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use store::DocId;
use text::untrusted_text::escape_line;

/// Maximum time for a kernel to start and to restore a state.
const MOVE_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum time for fetching the variables of another device, too.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(720);
/// Number of displayed digits of a state's id, which is enough to refer to it.
const SHOWN_ID_CHARS: usize = 10;

pub(super) fn cmd_kernel_states(
    scene: &mut CommandContext<'_>,
    action: &str,
    note: &str,
    args: &KernelsArguments,
) -> Result<u8, CliError> {
    let name = || {
        let missing = || CliError::usage(format!("which fork? tracebook kernels {action} NOTE --as NAME"));
        args.fork.clone().ok_or_else(missing)
    };
    let state = || {
        let missing = || {
            CliError::usage(format!("which state? tracebook kernels {action} NOTE STATE; `kernels states` lists them"))
        };
        args.first_state.clone().ok_or_else(missing)
    };
    check_words(action, args)?;
    if matches!(action, "share" | "unshare") {
        let note = resolve::resolve_note(scene, note)?;
        return share_states(scene, note, action == "share");
    }
    let to = match (action, &args.state) {
        ("states" | "compare", _) => None,
        ("pin", _) => Some(KernelStateMove::Pin { state: state()?, name: args.pin_name.clone() }),
        ("unpin", _) => Some(KernelStateMove::Unpin { state: state()? }),
        ("undo" | "redo", Some(state)) => Some(KernelStateMove::To { state: state.clone() }),
        ("undo", None) => Some(KernelStateMove::Undo),
        ("redo", None) => Some(KernelStateMove::Redo),
        ("fork", from) => Some(KernelStateMove::Fork { name: name()?, state: from.clone() }),
        ("switch", _) => Some(KernelStateMove::Switch { name: name()? }),
        ("adopt", _) => Some(KernelStateMove::Adopt { name: name()? }),
        ("discard", _) => Some(KernelStateMove::Discard { name: name()? }),
        ("restore", _) => Some(KernelStateMove::Receive),
        _ => {
            return Err(CliError::usage(format!(
                "`kernels {action} {note}` isn't known; it does install science, remove science, lists a NOTE's \
                 kernels, \
                 or does env, states, undo, redo, fork, switch, adopt, discard, pin, unpin, compare, share, unshare or \
                 restore with a NOTE"
            )));
        }
    };
    let note = resolve::resolve_note(scene, note)?;
    let Some(mut to) = to else {
        if action == "states" {
            return show_states(scene, note);
        }
        let (Some(a), Some(b)) = (&args.first_state, &args.other_state) else {
            return Err(CliError::usage("which states? tracebook kernels compare NOTE STATE OTHER".to_owned()));
        };
        let (a, b) = (state_or_fork(scene, note, a)?, state_or_fork(scene, note, b)?);
        return show_comparison(scene, note, &a, &b);
    };
    if let KernelStateMove::To { state }
    | KernelStateMove::Fork { state: Some(state), .. }
    | KernelStateMove::Pin { state, .. }
    | KernelStateMove::Unpin { state } = &mut to
    {
        *state = whole_id(scene, note, state)?;
    }
    let pinned = match &to {
        KernelStateMove::Pin { state, .. } => Some(format!("pinned {}", short_id(state))),
        KernelStateMove::Unpin { state } => Some(format!("unpinned {}", short_id(state))),
        _ => None,
    };
    let _held = export::open_note::hold_note(scene.handle, note)?;
    export::open_note::read_loaded_note(scene.handle, note, |_| ())?;
    let count = move |session: &Session| session.note(note).map_or(0, |note| note.state_move().count);
    let before = scene.handle.read(count)?;
    let timeout = if to == KernelStateMove::Receive { RESTORE_TIMEOUT } else { MOVE_TIMEOUT };
    scene.handle.run_command(Command::MoveState { note, to })?;
    let moved = move |session: &Session| {
        let open = session.note(note)?;
        let report = open.state_move();
        if report.count > before {
            return Some(Ok(report.clone()));
        }
        // The kernel couldn't be started.
        let died = open.kernel == engine::KernelPhase::Off && !open.is_fetching_state();
        died.then(|| Err(open.kernel_trouble().unwrap_or("the kernel ended").to_owned()))
    };
    let failed = |why: String| CliError { code: EXIT_FAILED, why };
    let report: KernelStateReport = match scene.handle.wait(Some(timeout), moved)? {
        Some(Ok(report)) => report,
        Some(Err(why)) => return Err(failed(why)),
        None => return Err(failed("the kernel doesn't answer; restart it and run the cells again".to_owned())),
    };
    if let Some(problem) = report.problem {
        return Err(failed(problem));
    }
    if scene.json {
        let undone: Vec<String> = report.undone.iter().map(ToString::to_string).collect();
        let said = json!({"state": report.state, "fork": report.branch, "undone": undone});
        writeln!(scene.out, "{said}")?;
        return Ok(EXIT_DONE);
    }
    let states = list_states(scene.handle.workspace_folder(), note);
    if let Some(pinned) = pinned {
        writeln!(scene.out, "{pinned}")?;
        return Ok(EXIT_DONE);
    }
    let state = report.state.as_deref().and_then(|id| states.states.iter().find(|state| state.state == id));
    match state {
        Some(state) => writeln!(
            scene.out,
            "variables are as after {} ({}), on {}",
            escape_line(&state.cell),
            short_id(&state.state),
            escape_line(&report.branch)
        )?,
        None => writeln!(scene.out, "the kernel has no variables now, on {}", escape_line(&report.branch))?,
    }
    Ok(EXIT_DONE)
}

/// Shares the note's saved states from this device, or no longer.
fn share_states(scene: &mut CommandContext<'_>, note: DocId, is_shared: bool) -> Result<u8, CliError> {
    let _held = export::open_note::hold_note(scene.handle, note)?;
    export::open_note::read_loaded_note(scene.handle, note, |_| ())?;
    let before = scene.handle.read(move |session| session.note(note).map_or(0, |note| note.shared_state().count))?;
    scene.handle.run_command(Command::ShareState { note, is_shared })?;
    let done = move |session: &Session| {
        let progress = session.note(note)?.shared_state();
        (progress.count > before).then(|| progress.problem.clone())
    };
    let problem = match scene.handle.wait(Some(MOVE_TIMEOUT), done)? {
        Some(problem) => problem,
        None => Some("the disk takes too long; try again".to_owned()),
    };
    if let Some(why) = problem {
        return Err(CliError { code: EXIT_FAILED, why });
    }
    let said = match is_shared {
        true => "shared: other devices that have this note can continue with its variables",
        false => "not shared: new variables stay on this device; a hub and other devices keep what they have",
    };
    match scene.json {
        true => writeln!(scene.out, "{}", json!({"shared": is_shared}))?,
        false => writeln!(scene.out, "{said}")?,
    }
    Ok(EXIT_DONE)
}

fn short_id(id: &str) -> &str {
    id.get(..SHOWN_ID_CHARS).unwrap_or(id)
}

/// Rejects arguments that belong to another action.
fn check_words(action: &str, args: &KernelsArguments) -> Result<(), CliError> {
    let takes = match action {
        "compare" => 2,
        "pin" | "unpin" => 1,
        _ => 0,
    };
    let extra = [&args.first_state, &args.other_state].into_iter().skip(takes).flatten().next();
    if let Some(extra) = extra {
        return Err(CliError::usage(format!("{extra} is one word too many for `kernels {action}`")));
    }
    if args.pin_name.is_some() && action != "pin" {
        return Err(CliError::usage("--name needs pin: tracebook kernels pin NOTE STATE --name NAME".to_owned()));
    }
    Ok(())
}

/// Returns the latest state of the fork with this name, or the state with this id or name.
fn state_or_fork(scene: &CommandContext<'_>, note: DocId, word: &str) -> Result<String, CliError> {
    let states = list_states(scene.handle.workspace_folder(), note);
    match states.branches.get(word) {
        Some(Some(state)) => Ok(state.clone()),
        Some(None) => Err(CliError::usage(format!("the fork {word} has no variables to compare"))),
        None => whole_id(scene, note, word),
    }
}

fn show_comparison(scene: &mut CommandContext<'_>, note: DocId, a: &str, b: &str) -> Result<u8, CliError> {
    let workspace = scene.handle.workspace_folder();
    let said = compare_states(&std::env::current_exe()?, workspace, note, (a, b), &AtomicBool::new(false));
    let said = said.map_err(|why| CliError { code: EXIT_FAILED, why: format!("can't compare: {why}") })?;
    if scene.json {
        writeln!(scene.out, "{}", json!(said))?;
        return Ok(EXIT_DONE);
    }
    let value = |value: &ComparedValue| escape_line(&value.describe()).to_string();
    for (id, names) in [(a, &said.only_a), (b, &said.only_b)] {
        for variable in names {
            let name = escape_line(&variable.name);
            writeln!(scene.out, "only in {}: {name} = {}", short_id(id), value(&variable.value))?;
        }
    }
    for variable in &said.differ {
        let name = escape_line(&variable.name);
        writeln!(scene.out, "differs: {name}: {} | {}", value(&variable.a), value(&variable.b))?;
    }
    for (what, names) in [("equal", &said.equal), ("can't be compared", &said.unclear)] {
        if !names.is_empty() {
            writeln!(scene.out, "{what}: {}", escape_line(&names.join(", ")))?;
        }
    }
    Ok(EXIT_DONE)
}

/// Returns the full id of the state whose id starts with this prefix, or that has this name.
fn whole_id(scene: &CommandContext<'_>, note: DocId, begins: &str) -> Result<String, CliError> {
    let states = list_states(scene.handle.workspace_folder(), note);
    if let Some(named) = states.states.iter().find(|state| state.name.as_deref() == Some(begins)) {
        return Ok(named.state.clone());
    }
    let mut fitting = states.states.iter().filter(|state| !begins.is_empty() && state.state.starts_with(begins));
    match (fitting.next(), fitting.next()) {
        (Some(one), None) => Ok(one.state.clone()),
        (Some(_), Some(_)) => Err(CliError::usage(format!("several states begin with {begins}; give more of its id"))),
        (None, _) => {
            Err(CliError::usage(format!("there is no state {begins}; `tracebook kernels states NOTE` lists them")))
        }
    }
}

fn show_states(scene: &mut CommandContext<'_>, note: DocId) -> Result<u8, CliError> {
    let workspace = scene.handle.workspace_folder().to_owned();
    let NoteStates { states, current, branch, branches, damaged, thinned, is_shared, used_bytes, problem } =
        list_states(&workspace, note);
    if let Some(problem) = problem {
        return Err(CliError { code: EXIT_FAILED, why: problem });
    }
    if scene.json {
        writeln!(scene.out, "{}", json!(states))?;
        return Ok(EXIT_DONE);
    }
    let _held = export::open_note::hold_note(scene.handle, note)?;
    export::open_note::read_loaded_note(scene.handle, note, |_| ())?;
    let may_save = scene.handle.read(move |session| session.note(note).is_none_or(engine::Note::may_save_states))?;
    if !may_save {
        writeln!(scene.out, "this note says `state: off`: its variables aren't saved")?;
    } else if states.is_empty() {
        writeln!(scene.out, "no saved states; run a cell with the kernel science")?;
    }
    for (state, row) in states.iter().zip(state_graph(&states)) {
        let SavedState { state: id, cell, defined, changed, bytes, pinned, name, .. } = state;
        let lines = row.draw_oldest_first(Some(id) == current.as_ref());
        let mut said = Vec::new();
        for (what, names) in [("defines", defined), ("changes", changed)] {
            if !names.is_empty() {
                said.push(format!("{what} {}", names.join(", ")));
            }
        }
        let forks: Vec<&str> =
            branches.iter().filter(|(_, at)| at.as_ref() == Some(id)).map(|(name, _)| name.as_str()).collect();
        let forks =
            if branches.len() > 1 && !forks.is_empty() { format!(" [{}]", forks.join(", ")) } else { String::new() };
        let pin = match (pinned, name) {
            (true, Some(name)) => format!(" (pinned: {name})"),
            (true, None) => " (pinned)".to_owned(),
            (false, _) => String::new(),
        };
        let line = format!("{cell}  {}{forks}{pin}  {} kB", said.join("; "), bytes.div_ceil(1000));
        writeln!(scene.out, "{lines} {}  {}", short_id(id), escape_line(&line))?;
    }
    if branches.len() > 1 {
        writeln!(scene.out, "the current fork is {}", escape_line(&branch))?;
    }
    if is_shared {
        writeln!(scene.out, "shared: other devices that have this note can continue with its variables")?;
    }
    if thinned > 0 {
        writeln!(scene.out, "{thinned} older states were thinned; their cells run again when they are needed")?;
    }
    if !states.is_empty() {
        let budget = StateBudget::of(&workspace);
        let megabytes = |bytes: u64| format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10);
        let (note, all) = (megabytes(used_bytes), megabytes(workspace_state_bytes(&workspace)));
        let (of_note, of_all) = (megabytes(budget.note_bytes), megabytes(budget.workspace_bytes));
        writeln!(scene.out, "uses {note} of {of_note}; all notes: {all} of {of_all} (`kernels` in config.yaml)")?;
    }
    if damaged > 0 {
        writeln!(scene.errors, "{damaged} saved states are damaged and can't be used")?;
    }
    Ok(EXIT_DONE)
}
