//! `cmd_cells`: prints how a note's cells depend on each other.

use super::retried_commands::edit_as_planned;
use super::{CliError, CommandContext, EXIT_DONE, resolve};
use crate::arguments::CellsArguments;
use engine::{Command, Note, Reactivity};
use serde_json::{Value, json};
use store::{BlockId, DocId};
use text::cell_form::CellForm;
use text::text_edit::TextEdit;
use text::widget::{self, WidgetSpec};

pub(super) fn cmd_cells(scene: &mut CommandContext<'_>, args: &CellsArguments) -> Result<u8, CliError> {
    let mode = match args.mode.as_deref() {
        None => None,
        Some("manual") => Some(Reactivity::Manual),
        Some("stale") => Some(Reactivity::Marks),
        Some("automatic") => Some(Reactivity::Automatic),
        Some(other) => {
            return Err(CliError::usage(format!("--mode is manual, stale or automatic, not “{other}”")));
        }
    };
    let note = resolve::resolve_note(scene, args.note.as_str())?;
    let _held = export::open_note::hold_note(scene.handle, note)?;
    if let Some(to) = mode {
        export::open_note::read_loaded_note(scene.handle, note, |_| ())?;
        scene.handle.run_command(Command::SetReactivity { note, to })?;
        export::open_note::wait_until_saved(scene.handle)?;
    }
    if !args.set.is_empty() {
        export::open_note::read_loaded_note(scene.handle, note, |_| ())?;
        for setting in &args.set {
            set_widget(scene, note, setting)?;
        }
        export::open_note::wait_until_saved(scene.handle)?;
        return Ok(EXIT_DONE);
    }
    let (mode, mut found) =
        export::open_note::read_loaded_note(scene.handle, note, |note| (note.reactivity(), cells_as_json(note)))?;
    let saved = host::kernel_states::list_states(scene.handle.workspace_folder(), note).states;
    for cell in &mut found {
        let state = saved.iter().rev().find(|state| cell["execution"] == state.execution.as_str());
        cell["state"] = json!(state.map(|state| &state.state));
    }
    if scene.json {
        writeln!(scene.out, "{}", json!({"mode": mode.as_str(), "cells": found}))?;
        return Ok(EXIT_DONE);
    }
    if found.is_empty() {
        writeln!(scene.out, "The note has no cells.")?;
        return Ok(EXIT_DONE);
    }
    writeln!(scene.out, "{}", reactivity_description(mode))?;
    for cell in found {
        let list = |key: &str| {
            let names = cell[key].as_array().into_iter().flatten().filter_map(Value::as_str);
            names.collect::<Vec<_>>().join(", ")
        };
        let stale = cell["stale"].as_str().map(|why| format!(", stale: {why}")).unwrap_or_default();
        writeln!(scene.out, "cell {}{stale}", cell["cell"])?;
        for (what, names) in [("sets", list("binds")), ("changes", list("changes"))] {
            if !names.is_empty() {
                writeln!(scene.out, "  {what} {names}")?;
            }
        }
        for (name, from) in cell["uses"].as_object().into_iter().flatten() {
            let from: Vec<String> = from.as_array().into_iter().flatten().map(Value::to_string).collect();
            let cells = if from.len() == 1 { "cell" } else { "cells" };
            let name = if name == text::dataflow::ANY_NAME { "what it may have got from" } else { name };
            writeln!(scene.out, "  uses {name} of {cells} {}", from.join(", "))?;
        }
        if let Some(state) = cell["state"].as_str() {
            writeln!(scene.out, "  its run left the saved state {state}")?;
        }
        for remark in cell["remarks"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            writeln!(scene.out, "  {remark}")?;
        }
    }
    Ok(EXIT_DONE)
}

/// Sets the widgets with this name to the value in `NAME=VALUE`.
fn set_widget(scene: &mut CommandContext<'_>, note: DocId, setting: &str) -> Result<(), CliError> {
    let Some((name, typed)) = setting.split_once('=') else {
        return Err(CliError::usage(format!("--set takes NAME=VALUE, not “{setting}”")));
    };
    let (name, typed) = (name.trim().to_owned(), typed.to_owned());
    edit_as_planned(scene.handle, note, move |note, _| {
        let edit = note.cells().find_map(|cell| {
            let parts = note.cell_parts(cell).filter(|parts| parts.form == CellForm::Widget)?;
            let code = note.cell_code(cell)?;
            let widget = WidgetSpec::parse(code).ok().filter(|widget| widget.name == name)?;
            let new = widget::with_value(code, &widget.typed_value(&typed));
            let at = note.block_start(cell)? + parts.code.start;
            Some(new.map(|insert| TextEdit { at, delete: code.len(), insert }))
        });
        match edit {
            Some(edit) => Ok(vec![edit.map_err(|why| CliError::usage(why.to_string()))?]),
            None => Err(CliError::usage(format!("the note has no widget that sets `{name}`"))),
        }
    })?;
    Ok(())
}

fn reactivity_description(mode: Reactivity) -> &'static str {
    match mode {
        Reactivity::Manual => "Running a cell marks and runs no other one (--mode manual).",
        Reactivity::Marks => "Running a cell marks results that depend on it as stale (--mode stale).",
        Reactivity::Automatic => "Running a cell also runs those that depend on it (--mode automatic).",
    }
}

/// Returns all cells of a note as JSON objects.
fn cells_as_json(note: &Note) -> Vec<Value> {
    let flow = note.cell_flow();
    let cell = |(at, cell): (usize, BlockId)| {
        let names = note.cell_names(cell)?;
        let uses = flow.nodes.get(at)?.uses.iter().filter(|(_, from)| !from.is_empty());
        let uses: serde_json::Map<String, Value> = uses
            .map(|(name, from)| (name.clone(), from.iter().map(|source| source + 1).collect::<Vec<_>>().into()))
            .collect();
        Some(json!({
            "cell": at + 1,
            "binds": names.defines,
            "changes": names.changes,
            "wants": names.external_names(),
            "uses": uses,
            "unknown": names.uses_any || names.defines_any,
            "stale": note.stale_reason(cell).map(|stale| stale.describe()),
            "execution": note.latest_execution(cell).map(|run| run.id.to_string()),
            "remarks": note.name_remarks(cell),
        }))
    };
    note.cells().enumerate().filter_map(cell).collect()
}
