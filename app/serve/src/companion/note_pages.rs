//! Notes: by folder, and each as the window shows it, with its cells to run.

use super::attachments::file_response;
use super::companion_session::{CheckedForm, CompanionCaller, CompanionError};
use super::companion_state::CellRunState;
use super::page_layout::{
    PageSection, encode_value, file_url, form_token_field, message, note_title, page, see_other, sentence,
};
use crate::access_tokens::TokenScope;
use crate::command_calls::CommandCall;
use crate::http_state::{UrlPath, UrlQuery};
use crate::problem::ProblemDetails;
use crate::rest_notes::NoteAddress;
use crate::tool_table::ToolRow;
use axum::response::Response;
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Maximum number of entries of a folder on a page.
const MAX_ENTRIES: usize = 1_000;

#[derive(Deserialize)]
pub(super) struct FolderQuery {
    volume: Option<String>,
    folder: Option<String>,
}

/// A link to each folder above.
fn folder_path(volume: &str, folder: &str) -> Markup {
    let parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    html! {
        nav class="crumbs" aria-label="Folders" {
            a href="/notes" { "Notes" }
            a href=(folder_url(volume, "")) { (volume) }
            @for at in 0..parts.len() {
                a href=(folder_url(volume, &parts[..=at].join("/"))) { (parts[at]) }
            }
        }
    }
}

fn folder_url(volume: &str, folder: &str) -> String {
    let volume = encode_value(volume);
    match folder {
        "" => format!("/notes?volume={volume}"),
        folder => format!("/notes?volume={volume}&folder={}", encode_value(folder)),
    }
}

fn count_words(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// Lists volumes, or what is in a folder of one.
pub(super) async fn list_folder(
    caller: CompanionCaller,
    UrlQuery(query): UrlQuery<FolderQuery>,
) -> Result<Response, CompanionError> {
    caller.ensure(TokenScope::Read)?;
    let volumes = caller.api.volumes().await?;
    let only = volumes.first().filter(|_| volumes.len() == 1).and_then(|volume| volume["name"].as_str());
    let Some(volume) = query.volume.or(only.map(str::to_owned)) else {
        let content = html! {
            h1 { "Notes" }
            ul class="entries" {
                @for volume in &volumes {
                    @let name = volume["name"].as_str().unwrap_or_default();
                    li { a class="entry" href=(folder_url(name, "")) {
                        span class="name" { (name) }
                        span class="muted" { (count_words(volume["notes"].as_u64().unwrap_or(0), "note")) }
                    } }
                }
            }
            @if volumes.is_empty() { p class="muted" { "There are no volumes yet. Open a folder in Tracebook." } }
        };
        return Ok(page(&caller, PageSection::Notes, "Notes", &content));
    };
    if !volumes.iter().any(|known| known["name"] == volume.as_str()) {
        return Err(ProblemDetails::not_found(format!("There's no volume {volume}.")).into());
    }
    let folder = query.folder.unwrap_or_default().trim_matches('/').to_owned();
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let named = (volume.clone(), prefix.clone());
    let notes = caller.api.perform_tool(move |calls| calls.notes(Some(named.0.as_str()), &named.1)).await?;
    let paths = notes.iter().filter_map(|note| note["path"].as_str()?.strip_prefix(&prefix));
    let (mut folders, mut here): (BTreeMap<&str, u64>, Vec<&str>) = (BTreeMap::new(), Vec::new());
    for path in paths {
        match path.split_once('/') {
            Some((below, _)) => *folders.entry(below).or_default() += 1,
            None => here.push(path),
        }
    }
    if folders.is_empty() && here.is_empty() && !folder.is_empty() {
        return Err(ProblemDetails::not_found(format!("There are no notes in {folder}.")).into());
    }
    let more = here.len().saturating_sub(MAX_ENTRIES);
    let title = folder.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(&volume);
    let content = html! {
        (folder_path(&volume, &folder))
        h1 { (title) }
        ul class="entries" {
            @for (name, count) in &folders {
                li { a class="entry folder" href=(folder_url(&volume, &format!("{prefix}{name}"))) {
                    span class="name" { (name) "/" }
                    span class="muted" { (count_words(*count, "note")) }
                } }
            }
            @for name in here.iter().take(MAX_ENTRIES) {
                @let address = file_url(&volume, &format!("{prefix}{name}"));
                li { a class="entry" href=(address) { span class="name" { (note_title(name)) } } }
            }
        }
        @if folders.is_empty() && here.is_empty() { p class="muted" { "There are no notes yet." } }
        @if more > 0 { p class="muted" { (more) " more notes are in this folder. Search finds them." } }
    };
    Ok(page(&caller, PageSection::Notes, title, &content))
}

/// What a note shows, as `export --fragment` prints it.
#[derive(Deserialize)]
struct NoteView {
    html: String,
    volume: String,
    path: String,
    cells: usize,
    running: usize,
}

async fn note_view(caller: &CompanionCaller, address: &NoteAddress) -> Result<NoteView, ProblemDetails> {
    let missing = || ProblemDetails::not_found(format!("There's no note {} in {}.", address.path(), address.volume()));
    let call = CommandCall::json("export").option("fragment", Some("/notes/")).operands([&address.word(), "-"]);
    let outcome = caller.api.perform(call).await?;
    match outcome.code {
        0 if !outcome.is_cut => {}
        2 => return Err(missing()),
        _ => return Err(ProblemDetails::of_outcome(&outcome)),
    }
    let view: Option<NoteView> = serde_json::from_slice(&outcome.output).ok();
    // A name can mean another note to a command.
    view.filter(|view| view.path == address.path() && view.volume == address.volume()).ok_or_else(missing)
}

fn cell_bar(caller: &CompanionCaller, address: &NoteAddress, view: &NoteView, run: Option<&CellRunState>) -> Markup {
    let is_running = view.running > 0 || run == Some(&CellRunState::Running);
    html! {
        @match run {
            Some(CellRunState::Ended { is_ok: true, .. }) if !is_running => {
                (message("ok", &html! { "✓ The cells ran." }))
            }
            Some(CellRunState::Ended { is_ok: false, messages }) if !is_running => {
                (message("bad", &html! { "✕ A cell failed. " (messages) }))
            }
            _ => {}
        }
        @if is_running { (message("accent", &html! { "● Cells are running." })) }
        @if caller.allows(TokenScope::Run) {
            form class="row cells" method="post" action=(file_url(address.volume(), address.path())) {
                (form_token_field(caller))
                @if is_running {
                    button class="danger" name="do" value="stop" { "Stop" }
                } @else {
                    label class="visually-hidden" for="cell-choice" { "Which cells" }
                    select #cell-choice name="cell" {
                        option value="" { "All cells" }
                        @for number in 1..=view.cells { option value=(number) { "Cell " (number) } }
                    }
                    button class="primary" name="do" value="run" { "Run" }
                    button name="do" value="stale" { "Run stale cells" }
                }
            }
        }
    }
}

/// Shows a note, or another file.
pub(super) async fn show_file(
    caller: CompanionCaller,
    UrlPath((volume, path)): UrlPath<(String, String)>,
) -> Result<Response, CompanionError> {
    caller.ensure(TokenScope::Read)?;
    let address = NoteAddress::new(&caller.api, volume, path)?;
    if !address.path().to_lowercase().ends_with(".md") {
        let call = CommandCall { words: vec!["cat".to_owned()], ..CommandCall::default() };
        let outcome = caller.api.perform(call.operands([&address.word()])).await?;
        return match outcome.code {
            0 if !outcome.is_cut => Ok(file_response(address.path(), outcome.output)),
            2 => Err(ProblemDetails::not_found(format!("There's no file {} in {}.", address.path(), address.volume()))
                .into()),
            _ => Err(ProblemDetails::of_outcome(&outcome).into()),
        };
    }
    let view = note_view(&caller, &address).await?;
    let run = caller.api.state.companion.cell_run(&address.word());
    let is_running = view.running > 0 || run == Some(CellRunState::Running);
    let folder = address.path().rsplit_once('/').map_or("", |(folder, _)| folder);
    let title = note_title(address.path());
    let has_title = view.html.contains("<h1");
    let content = html! {
        (folder_path(address.volume(), folder))
        div #live data-live="note" data-path=(address.path()) data-running=(is_running) {
            @if is_running { noscript { p { a href="" { "Reload to see what the cells have printed" } } } }
            @if view.cells > 0 { (cell_bar(&caller, &address, &view, run.as_ref())) }
            article class="note" aria-label=(title) {
                @if !has_title { h1 { (title) } }
                (PreEscaped(&view.html))
            }
        }
    };
    Ok(page(&caller, PageSection::Notes, title, &content))
}

/// Runs cells of a note, or stops them. The page shows their outputs when they come.
pub(super) async fn act_on_note(
    caller: CompanionCaller,
    UrlPath((volume, path)): UrlPath<(String, String)>,
    form: CheckedForm,
) -> Result<Response, CompanionError> {
    caller.ensure(TokenScope::Run)?;
    let address = NoteAddress::new(&caller.api, volume, path)?;
    let word = address.word();
    let place = see_other(&file_url(address.volume(), address.path()));
    let (cell, is_stale) = (form.text("cell").to_owned(), form.text("do") == "stale");
    let is_stop = match form.text("do") {
        "stop" => true,
        "run" | "stale" => false,
        _ => return Err(ProblemDetails::unprocessable("The form doesn't say what to do. Reload the page.").into()),
    };
    let checked = address.clone();
    caller.api.perform_calls(move |calls| checked.needed(calls).map(|_| ())).await??;
    if is_stop {
        let call = CommandCall::json("run").flag("stop", true).operands([&word]);
        let outcome = caller.api.perform(call).await?;
        // The cells may have ended just before.
        return if matches!(outcome.code, 0 | 2) {
            Ok(place)
        } else {
            Err(ProblemDetails::of_outcome(&outcome).into())
        };
    }
    let number = match cell.parse::<u64>() {
        _ if cell.is_empty() || is_stale => Value::Null,
        Ok(number) => number.into(),
        Err(_) => return Err(ProblemDetails::unprocessable("Cells are numbered from 1.").into()),
    };
    let state = caller.api.state.clone();
    if !state.companion.begin_cell_run(&word) {
        return Ok(place);
    }
    let api = caller.api.clone();
    let mut arguments = Map::new();
    arguments.insert("note".to_owned(), word.clone().into());
    arguments.insert("cell".to_owned(), number);
    arguments.insert("stale".to_owned(), is_stale.into());
    // Nobody waits for the answer: the page shows what the note has.
    tokio::spawn(async move {
        let ran = api.perform_calls(move |calls| {
            let row = ToolRow::named("run_cells").ok_or_else(|| "cells can't be run".to_owned())?;
            calls.call(row, &arguments).map_err(|error| error.0)
        });
        let (is_ok, messages) = match ran.await {
            Ok(Ok(value)) => (value["ok"] == true, value["messages"].as_str().unwrap_or_default().to_owned()),
            Ok(Err(why)) => (false, sentence(&why)),
            Err(problem) => (false, sentence(problem.detail())),
        };
        state.companion.end_cell_run(&word, is_ok, messages);
    });
    Ok(place)
}
