//! `kernels states|undo|redo|fork|switch|adopt|discard NOTE`: the saved states of a note's kernel.

use super::{CliError, CommandContext, EXIT_DONE, EXIT_FAILED, resolve};
use crate::arguments::KernelsArguments;
use engine::{Command, KernelStateMove, KernelStateReport, Session};
use host::kernel_states::{NoteStates, SavedState, list_states};
use serde_json::json;
use std::time::Duration;
use store::DocId;
use text::untrusted_text::escape_line;

/// How long a kernel may take to start and to restore a state.
const MOVE_TIMEOUT: Duration = Duration::from_secs(120);
/// Digits of a state's id that are shown, which is enough to name it.
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
    let to = match (action, &args.state) {
        ("states", _) => None,
        ("undo" | "redo", Some(state)) => Some(KernelStateMove::To { state: state.clone() }),
        ("undo", None) => Some(KernelStateMove::Undo),
        ("redo", None) => Some(KernelStateMove::Redo),
        ("fork", _) => Some(KernelStateMove::Fork { name: name()? }),
        ("switch", _) => Some(KernelStateMove::Switch { name: name()? }),
        ("adopt", _) => Some(KernelStateMove::Adopt { name: name()? }),
        ("discard", _) => Some(KernelStateMove::Discard { name: name()? }),
        _ => {
            return Err(CliError::usage(format!(
                "`kernels {action} {note}` isn't known; it does install science, remove science, lists a NOTE's \
                 kernels, \
                 or does env, states, undo, redo, fork, switch, adopt or discard with a NOTE"
            )));
        }
    };
    let note = resolve::resolve_note(scene, note)?;
    let Some(mut to) = to else { return show_states(scene, note) };
    if let KernelStateMove::To { state } = &mut to {
        *state = whole_id(scene, note, state)?;
    }
    let _held = export::open_note::hold_note(scene.handle, note)?;
    export::open_note::read_loaded_note(scene.handle, note, |_| ())?;
    let count = move |session: &Session| session.note(note).map_or(0, |note| note.state_move().count);
    let before = scene.handle.read(count)?;
    scene.handle.run_command(Command::MoveState { note, to })?;
    let moved = move |session: &Session| {
        let open = session.note(note)?;
        let report = open.state_move();
        if report.count > before {
            return Some(Ok(report.clone()));
        }
        // A kernel that could not be started.
        let died = open.kernel == engine::KernelPhase::Off;
        died.then(|| Err(open.kernel_trouble().unwrap_or("the kernel ended").to_owned()))
    };
    let failed = |why: String| CliError { code: EXIT_FAILED, why };
    let report: KernelStateReport = match scene.handle.wait(Some(MOVE_TIMEOUT), moved)? {
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

fn short_id(id: &str) -> &str {
    id.get(..SHOWN_ID_CHARS).unwrap_or(id)
}

/// The state whose id begins so.
fn whole_id(scene: &CommandContext<'_>, note: DocId, begins: &str) -> Result<String, CliError> {
    let states = list_states(scene.handle.workspace_folder(), note);
    let mut fitting = states.states.iter().filter(|state| state.state.starts_with(begins));
    match (fitting.next(), fitting.next()) {
        (Some(one), None) => Ok(one.state.clone()),
        (Some(_), Some(_)) => Err(CliError::usage(format!("several states begin with {begins}; give more of its id"))),
        (None, _) => {
            Err(CliError::usage(format!("there is no state {begins}; `tracebook kernels states NOTE` lists them")))
        }
    }
}

fn show_states(scene: &mut CommandContext<'_>, note: DocId) -> Result<u8, CliError> {
    let NoteStates { states, current, branch, branches, damaged, problem } =
        list_states(scene.handle.workspace_folder(), note);
    if let Some(problem) = problem {
        return Err(CliError { code: EXIT_FAILED, why: problem });
    }
    if scene.json {
        writeln!(scene.out, "{}", json!(states))?;
        return Ok(EXIT_DONE);
    }
    if states.is_empty() {
        writeln!(scene.out, "no saved states; run a cell with the kernel science")?;
    }
    for state in &states {
        let SavedState { state: id, cell, defined, changed, bytes, .. } = state;
        let mark = if Some(id) == current.as_ref() { "*" } else { " " };
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
        let line = format!("{cell}  {}{forks}  {} kB", said.join("; "), bytes.div_ceil(1000));
        writeln!(scene.out, "{mark} {}  {}", short_id(id), escape_line(&line))?;
    }
    if branches.len() > 1 {
        writeln!(scene.out, "the current fork is {}", escape_line(&branch))?;
    }
    if damaged > 0 {
        writeln!(scene.errors, "{damaged} saved states are damaged and can't be used")?;
    }
    Ok(EXIT_DONE)
}
