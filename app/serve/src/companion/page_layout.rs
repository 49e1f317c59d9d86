//! What the companion's pages share: head, navigation, messages, times and states.

use super::companion_session::CompanionCaller;
use super::static_files::asset_url;
use crate::access_tokens::TokenScope;
use crate::problem::ProblemDetails;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{DOCTYPE, Markup, html};

const MINUTE_MILLIS: i64 = 60_000;
const HOUR_MILLIS: i64 = 60 * MINUTE_MILLIS;
const DAY_MILLIS: i64 = 24 * HOUR_MILLIS;
/// Colors of the browser's own bars, as `paper` in the style.
const LIGHT_BAR: &str = "#fcfbf8";
const DARK_BAR: &str = "#16181d";

/// The page that is marked in the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageSection {
    Home,
    Notes,
    Todos,
    Runs,
    Search,
    Other,
}

/// Characters that aren't encoded in a part of an address (RFC 3986, unreserved).
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~')
}

/// Encodes a text for an address. Slashes stay if `keeps_slashes`.
fn encode(text: &str, keeps_slashes: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            byte if is_unreserved(byte) || (keeps_slashes && byte == b'/') => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Encodes a value in the query of an address.
pub(super) fn encode_value(text: &str) -> String {
    encode(text, false)
}

/// Returns the address of a file's page.
pub(super) fn file_url(volume: &str, path: &str) -> String {
    format!("/notes/{}/{}", encode(volume, false), encode(path, true))
}

/// Returns a note's title: its path's last part without the extension.
pub(super) fn note_title(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").unwrap_or(name)
}

/// Returns a text as a sentence: with a capital and a full stop.
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if text.ends_with(['.', '!', '?', ':']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

/// Shows a time: relative up to a week, then the date.
pub(super) fn shown_time(millis: i64) -> Markup {
    let at = Timestamp::from_millisecond(millis).unwrap_or_default();
    let zoned = at.to_zoned(TimeZone::system());
    let passed = Timestamp::now().as_millisecond().saturating_sub(millis);
    let words = match passed {
        passed if passed < MINUTE_MILLIS => "just now".to_owned(),
        passed if passed < HOUR_MILLIS => format!("{} min ago", passed / MINUTE_MILLIS),
        passed if passed < DAY_MILLIS => format!("{} h ago", passed / HOUR_MILLIS),
        passed if passed < 2 * DAY_MILLIS => "yesterday".to_owned(),
        passed if passed < 7 * DAY_MILLIS => format!("{} days ago", passed / DAY_MILLIS),
        _ => zoned.strftime("%-d %B %Y").to_string(),
    };
    html! { time datetime=(at) title=(zoned.strftime("%Y-%m-%d %H:%M")) { (words) } }
}

/// Shows the state of a run: a shape and a word, in a color.
pub(super) fn run_state(standing: &str) -> Markup {
    let (class, glyph, word) = match standing {
        "done" => ("ok", "✓", "Done"),
        "failed" => ("bad", "✕", "Failed"),
        "stopped" => ("quiet", "■", "Stopped"),
        "limit" => ("warn", "!", "Reached a limit"),
        "budget" => ("warn", "!", "Reached its budget"),
        "waits" => ("warn", "?", "Waits for approval"),
        _ => ("accent", "●", "Running"),
    };
    html! { span class={ "state " (class) } { span aria-hidden="true" { (glyph) } " " (word) } }
}

/// Returns the hidden field that every form carries.
pub(super) fn form_token_field(caller: &CompanionCaller) -> Markup {
    html! { input type="hidden" name="form_token" value=(caller.session.form_token()); }
}

/// Shows a message above a page's content.
pub(super) fn message(class: &str, content: &Markup) -> Markup {
    html! { p class={ "message " (class) } role="status" { (content) } }
}

fn page_head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover";
            meta name="color-scheme" content="light dark";
            meta name="theme-color" media="(prefers-color-scheme: light)" content=(LIGHT_BAR);
            meta name="theme-color" media="(prefers-color-scheme: dark)" content=(DARK_BAR);
            title { (title) " · Tracebook" }
            link rel="stylesheet" href=(asset_url("companion.css"));
            link rel="manifest" href="/manifest.webmanifest";
            link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
            link rel="apple-touch-icon" href="/assets/icon-256.png";
            script src=(asset_url("companion.js")) defer {}
        }
    }
}

fn navigation(section: PageSection) -> Markup {
    let entries = [
        (PageSection::Home, "/", "Home"),
        (PageSection::Notes, "/notes", "Notes"),
        (PageSection::Todos, "/todos", "Todos"),
        (PageSection::Runs, "/runs", "Runs"),
    ];
    html! {
        nav class="tabs" aria-label="Main" {
            @for (entry, address, name) in entries {
                a href=(address) aria-current=[(entry == section).then_some("page")] { (name) }
            }
        }
    }
}

/// Renders a page of a paired browser.
pub(super) fn page(caller: &CompanionCaller, section: PageSection, title: &str, content: &Markup) -> Response {
    let can_read = caller.allows(TokenScope::Read);
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            (page_head(title))
            body {
                a class="skip" href="#page-content" { "Skip to content" }
                header class="bar" {
                    div class="bar-inner" {
                        a class="brand" href="/" { "Tracebook" }
                        (navigation(section))
                        @if can_read && section != PageSection::Search {
                            form class="find" role="search" action="/search" {
                                input type="search" name="q" placeholder="Search" aria-label="Search notes" required;
                            }
                        }
                        a class="device" href="/device" { "Device" }
                    }
                }
                p id="connection" class="message quiet" role="status" {}
                main id="page-content" tabindex="-1" { (content) }
            }
        }
    };
    html_response(StatusCode::OK, &markup)
}

/// Renders a page for anyone: without navigation.
pub(super) fn bare_page(status: StatusCode, title: &str, content: &Markup) -> Response {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            (page_head(title))
            body class="bare" {
                header class="bar" { div class="bar-inner" { a class="brand" href="/" { "Tracebook" } } }
                main id="page-content" tabindex="-1" { (content) }
            }
        }
    };
    html_response(status, &markup)
}

/// Renders the page of a problem.
pub(super) fn problem_page(problem: &ProblemDetails) -> Response {
    let title = problem.status().canonical_reason().unwrap_or("Error");
    let content = html! {
        h1 { (title) }
        p class="problem" { (sentence(problem.detail())) }
        p { a class="button" href="/" { "Go to the start page" } }
    };
    bare_page(problem.status(), title, &content)
}

pub(super) fn html_response(status: StatusCode, markup: &Markup) -> Response {
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], markup.0.clone()).into_response()
}

/// Leads the browser to another page after a form.
pub(super) fn see_other(address: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, address.to_owned())]).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_hold_any_name() {
        assert_eq!(file_url("a/b", "Ideas/Sail é?#.md"), "/notes/a%2Fb/Ideas/Sail%20%C3%A9%3F%23.md");
        assert_eq!(encode_value("a/b&c"), "a%2Fb%26c");
        assert_eq!((note_title("a/B.md"), note_title("c.txt")), ("B", "c.txt"));
        assert_eq!((sentence("there is none"), sentence("Done.")), ("There is none.".to_owned(), "Done.".to_owned()));
    }
}
