//! Todos of all notes: listed by when they are due, and checked.

use super::companion_session::{CheckedForm, CompanionCaller, CompanionError};
use super::page_layout::{PageSection, file_url, form_token_field, message, note_title, page, see_other};
use crate::access_tokens::TokenScope;
use crate::http_state::UrlQuery;
use crate::problem::ProblemDetails;
use crate::rest_notes::{NoteAddress, find_todos, toggle_todo};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

/// Maximum number of todos on a page.
const MAX_SHOWN_TODOS: usize = 300;

#[derive(Deserialize)]
pub(super) struct TodoQuery {
    q: Option<String>,
    all: Option<String>,
    checked: Option<String>,
}

fn todo_row(caller: &CompanionCaller, todo: &Value, shows_all: bool) -> Markup {
    let text = |key: &str| todo[key].as_str().unwrap_or_default();
    let is_done = todo["done"] == true;
    let (glyph, action) = if is_done { ("✓", "Uncheck") } else { ("", "Check") };
    let day = todo["due"].as_str().or(todo["scheduled"].as_str());
    html! {
        li class="todo" {
            @if caller.allows(TokenScope::Write) {
                form method="post" action="/todos" {
                    (form_token_field(caller))
                    @for key in ["volume", "path", "text"] { input type="hidden" name=(key) value=(text(key)); }
                    input type="hidden" name="at" value=(todo["at"].as_u64().unwrap_or(0));
                    input type="hidden" name="all" value=(if shows_all { "1" } else { "" });
                    @let name = format!("{action}: {}", text("text"));
                    button class={ "box" @if is_done { " done" } } aria-label=(name) { (glyph) }
                }
            }
            div class="todo-text" {
                span class=[is_done.then_some("done")] { (text("text")) }
                span class="muted" {
                    @if let Some(day) = day { (day) " · " }
                    a href=(file_url(text("volume"), text("path"))) { (note_title(text("path"))) }
                }
            }
        }
    }
}

/// Lists todos.
pub(super) async fn list_todos(
    caller: CompanionCaller,
    UrlQuery(query): UrlQuery<TodoQuery>,
) -> Result<Response, CompanionError> {
    caller.ensure(TokenScope::Read)?;
    let shows_all = query.all.is_some_and(|all| all == "1");
    let words = query.q.filter(|words| !words.trim().is_empty());
    let todos = find_todos(&caller.api, words.clone(), shows_all).await?;
    let more = todos.len().saturating_sub(MAX_SHOWN_TODOS);
    let mut groups: Vec<(&str, Vec<&Value>)> = Vec::new();
    for todo in todos.iter().take(MAX_SHOWN_TODOS) {
        let when = todo["when"].as_str().unwrap_or_default();
        match groups.last_mut() {
            Some((last, rows)) if *last == when => rows.push(todo),
            _ => groups.push((when, vec![todo])),
        }
    }
    let content = html! {
        h1 { "Todos" }
        @if let Some(text) = &query.checked { (message("ok", &html! { "Changed: " (text) })) }
        form class="row search" role="search" action="/todos" aria-label="Filter todos" {
            input type="search" name="q" value=(words.as_deref().unwrap_or_default()) placeholder="Filter"
                aria-label="Words in todos";
            label class="check" { input type="checkbox" name="all" value="1" checked[shows_all]; " Show done" }
            button type="submit" { "Show" }
        }
        div #live data-live="files" {
            @if todos.is_empty() {
                p class="muted" {
                    @if words.is_some() { "No todo has these words." } @else { "There's nothing to do." }
                }
            }
            @for (when, rows) in &groups {
                section {
                    h2 { (when) }
                    ul class="todos" { @for todo in rows { (todo_row(&caller, todo, shows_all)) } }
                }
            }
            @if more > 0 { p class="muted" { (more) " more todos. Filter to see them." } }
        }
    };
    Ok(page(&caller, PageSection::Todos, "Todos", &content))
}

/// Checks a todo, or unchecks it if it's done.
pub(super) async fn check_todo(caller: CompanionCaller, form: CheckedForm) -> Result<Response, CompanionError> {
    caller.ensure(TokenScope::Write)?;
    let address = NoteAddress::new(&caller.api, form.text("volume").to_owned(), form.text("path").to_owned())?;
    let at = form
        .text("at")
        .parse()
        .map_err(|_| ProblemDetails::unprocessable("The form is incomplete. Reload the page."))?;
    let text = form.text("text").to_owned();
    toggle_todo(&caller.api, address, text.clone(), at).await?;
    let all = if form.text("all") == "1" { "&all=1" } else { "" };
    Ok(see_other(&format!("/todos?checked={}{all}", super::page_layout::encode_value(&text))))
}
