//! The start page: capture, what waits for approval, runs, and recent notes.

use super::capture_pages::capture_form;
use super::companion_session::{CompanionCaller, CompanionError};
use super::component_pages::{component_section, list_components};
use super::page_layout::{PageSection, file_url, message, note_title, page, shown_time};
use super::run_pages::{approval_card, is_open_run, run_row};
use crate::access_tokens::TokenScope;
use crate::command_calls::CommandCall;
use crate::http_state::UrlQuery;
use crate::problem::ProblemDetails;
use crate::rest_work::{pending_approvals, reachable_runs};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

/// Numbers of notes and of ended runs on the page.
const RECENT_NOTES: usize = 8;
const RECENT_RUNS: usize = 3;

#[derive(Deserialize)]
pub(super) struct HomeQuery {
    volume: Option<String>,
    added: Option<String>,
}

async fn recent_notes(caller: &CompanionCaller) -> Result<Vec<Value>, ProblemDetails> {
    let call = CommandCall::json("ls").option("volume", caller.api.volume(None)?).option("recent", Some(RECENT_NOTES));
    Ok(caller.api.perform_ok(call).await?.lines())
}

fn note_row(note: &Value) -> Markup {
    let text = |key: &str| note[key].as_str().unwrap_or_default();
    let folder = text("path").rsplit_once('/').map_or(text("volume"), |(folder, _)| folder);
    html! {
        li {
            a class="entry" href=(file_url(text("volume"), text("path"))) {
                span class="name" { (note_title(text("path"))) }
                span class="muted" { (folder) " · " (shown_time(note["changed"].as_i64().unwrap_or(0))) }
            }
        }
    }
}

/// Shows the start page.
pub(super) async fn show_home(
    caller: CompanionCaller,
    UrlQuery(query): UrlQuery<HomeQuery>,
) -> Result<Response, CompanionError> {
    let (approvals, runs, notes, components) = if caller.allows(TokenScope::Read) {
        let approvals = pending_approvals(&caller.api).await?;
        let (runs, notes) = (reachable_runs(&caller.api).await?, recent_notes(&caller).await?);
        (approvals, runs, notes, list_components(&caller).await?)
    } else {
        Default::default()
    };
    let (open, ended): (Vec<&Value>, Vec<&Value>) = runs.iter().partition(|run| is_open_run(run));
    let content = html! {
        h1 class="visually-hidden" { "Home" }
        @if let (Some(volume), Some(path)) = (&query.volume, &query.added) {
            (message("ok", &html! { "Added to " a href=(file_url(volume, path)) { (note_title(path)) } "." }))
        }
        @if caller.allows(TokenScope::Write) { (capture_form(&caller)) }
        @if caller.allows(TokenScope::Read) {
            div #live data-live="runs" {
                @if !approvals.is_empty() {
                    section aria-labelledby="approvals-title" {
                        h2 #approvals-title { "Waits for approval" }
                        @for approval in &approvals { (approval_card(&caller, approval, "/")) }
                    }
                }
                @if !open.is_empty() || !ended.is_empty() {
                    section aria-labelledby="runs-title" {
                        h2 #runs-title { "Runs" }
                        ul class="entries" {
                            @for run in open.iter().chain(ended.iter().take(RECENT_RUNS)) { (run_row(run)) }
                        }
                    }
                }
                (component_section(&components))
                section aria-labelledby="notes-title" {
                    h2 #notes-title { "Recent notes" }
                    @if notes.is_empty() { p class="muted" { "There are no notes yet." } }
                    ul class="entries" { @for note in &notes { (note_row(note)) } }
                }
            }
        }
    };
    Ok(page(&caller, PageSection::Home, "Home", &content))
}
