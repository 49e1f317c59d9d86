//! The web companion: pages for a phone or a browser, rendered on the server.
//!
//! A browser is paired once, with a one-time code, and then holds a token of its own in a cookie. Its pages perform the
//! same commands as the REST interface. They work without JavaScript; the one script keeps pages live and sends what
//! was captured offline.

mod attachments;
mod capture_ledger;
mod capture_pages;
mod companion_session;
pub(crate) mod companion_state;
mod component_pages;
mod home_page;
mod note_pages;
mod page_layout;
mod pair_pages;
mod run_pages;
mod search_page;
mod server_form_fields;
mod static_files;
mod todo_pages;

pub(crate) use companion_session::{BrowserSession, session_cookie};

use crate::http_state::HttpState;
use crate::problem::ProblemDetails;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use std::sync::Arc;

/// Maximum length of what a form sends, in bytes.
const MAX_FORM_BYTES: usize = 256 << 10;
/// Maximum length of a photo's form that is received, in bytes. What is beyond a photo's own limit is dropped, so that
/// the browser gets to read why.
const MAX_PHOTO_FORM_BYTES: usize = 64 << 20;
/// What the companion's pages may load and do.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                           media-src 'self'; font-src 'self'; connect-src 'self'; manifest-src 'self'; \
                           worker-src 'self'; \
                           form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Returns whether other sites may lead to a page. It holds a one-time code, so its query isn't recorded.
pub(crate) fn is_linked_page(path: &str) -> bool {
    path == "/pair"
}

/// Returns whether a path holds nothing of the user.
pub(crate) fn is_open_path(path: &str) -> bool {
    is_linked_page(path) || static_files::is_static_path(path)
}

/// Sets what browsers must know about every page.
pub(crate) fn set_page_headers(headers: &mut HeaderMap) {
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(PAGE_POLICY));
    // `no-referrer` would also hide from us where forms are from.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        headers.insert(name, HeaderValue::from_static("same-origin"));
    }
}

/// Returns the page for a request that isn't answered.
pub(crate) fn refusal_page(problem: &ProblemDetails) -> Response {
    if problem.status() == StatusCode::UNAUTHORIZED {
        return pair_pages::unpaired_page(problem.status(), problem.detail());
    }
    page_layout::problem_page(problem)
}

/// Returns the page for a path that leads nowhere.
pub(crate) fn missing_page(_request: &Request) -> Response {
    refusal_page(&ProblemDetails::not_found("There's no page with this address."))
}

/// Returns the pages of the companion.
pub(crate) fn companion_router() -> Router<Arc<HttpState>> {
    Router::new()
        .route("/", get(home_page::show_home))
        .route("/capture/form-token", get(capture_pages::form_token))
        .route("/search", get(search_page::show_search))
        .route("/notes", get(note_pages::list_folder))
        .route("/notes/{volume}/{*path}", get(note_pages::show_file).post(note_pages::act_on_note))
        .route("/todos", get(todo_pages::list_todos).post(todo_pages::check_todo))
        .route("/runs", get(run_pages::list_runs))
        .route("/runs/{run}", get(run_pages::show_run))
        .route("/runs/{run}/stop", post(run_pages::stop_run))
        .route("/approvals/{approval}", post(run_pages::decide_approval))
        .route("/components", get(component_pages::show_components))
        .route("/components/{id}", get(component_pages::show_component).post(component_pages::decide_component))
        .route("/components/{id}/frame", get(component_pages::show_frame))
        .route("/live", get(run_pages::stream_live))
        .route("/pair", get(pair_pages::show_pairing).post(pair_pages::pair))
        .route("/device", get(pair_pages::show_device))
        .route("/sign-out", post(pair_pages::sign_out))
        .merge(static_files::static_router())
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
        .merge(
            Router::new()
                .route("/capture", get(capture_pages::show_capture).post(capture_pages::capture))
                .layer(DefaultBodyLimit::max(MAX_PHOTO_FORM_BYTES)),
        )
}
