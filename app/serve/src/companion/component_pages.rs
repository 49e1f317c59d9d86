//! Generated components: their source, the button that approves it, and the sandboxed frame that previews it.
//!
//! A component is code of a model. Its frame has no origin (`sandbox`), no network, no storage and no cookies (its
//! content policy), and can't lead anywhere else (`frame-src` of the page around it). It gets values only by asking the
//! page for one by its name; the page has those that the component's file names.

use super::companion_session::{CheckedForm, CompanionCaller, CompanionError};
use super::page_layout::{PageSection, file_url, form_token_field, html_response, message, page, see_other, sentence};
use super::{PAGE_POLICY, static_files};
use crate::access_tokens::TokenScope;
use crate::command_calls::CommandCall;
use crate::http_state::UrlPath;
use crate::problem::ProblemDetails;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

/// Maximum number of components on the start page.
const MAX_HOME_COMPONENTS: usize = 5;
/// What a component's page lets it do, besides its nonce. Browsers have no directive for WebRTC; the frame's script
/// takes it away.
const FRAME_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline' data:; img-src data:; connect-src 'none'; \
                            form-action 'none'; base-uri 'none'; frame-ancestors 'self'; \
                            sandbox allow-scripts";
/// What a component can call, and what shows its errors.
const FRAME_SCRIPT: &str = include_str!("assets/component_frame.js");
/// What is said if a component's script doesn't define its element.
const FRAME_END: &str = "tracebookEnd()";

/// Returns the components that the browser reaches.
pub(super) async fn list_components(caller: &CompanionCaller) -> Result<Vec<Value>, ProblemDetails> {
    let call = CommandCall::json("components").option("volume", caller.api.volume(None)?);
    let all = caller.api.perform_ok(call).await?.value().unwrap_or_default();
    Ok(if let Value::Array(all) = all { all } else { Vec::new() })
}

async fn read_component(caller: &CompanionCaller, id: &str) -> Result<Value, ProblemDetails> {
    caller.ensure(TokenScope::Read)?;
    let call = CommandCall::json("components").option("volume", caller.api.volume(None)?).operands([id]);
    let outcome = caller.api.perform(call).await?;
    match outcome.value().filter(|_| outcome.code == 0) {
        Some(component) => Ok(component),
        None if outcome.code == 2 => Err(ProblemDetails::not_found(outcome.reason())),
        None => Err(ProblemDetails::of_outcome(&outcome)),
    }
}

fn component_row(component: &Value) -> Markup {
    let text = |key: &str| component[key].as_str().unwrap_or_default();
    let state = if component["approved"] == true { "approved" } else { "not approved" };
    html! {
        li {
            a class="entry" href=(text("page")) {
                span class="name" { (text("tagName")) }
                span class="muted" { (text("volume")) " · " (state) }
            }
        }
    }
}

/// Shows the first components, those that aren't approved first.
pub(super) fn component_section(components: &[Value]) -> Markup {
    let (done, open): (Vec<&Value>, Vec<&Value>) = components.iter().partition(|one| one["approved"] == true);
    html! {
        @if !components.is_empty() {
            section aria-labelledby="components-title" {
                h2 #components-title { "Components" }
                ul class="entries" {
                    @for one in open.into_iter().chain(done).take(MAX_HOME_COMPONENTS) { (component_row(one)) }
                }
                @if components.len() > MAX_HOME_COMPONENTS { p { a href="/components" { "All components" } } }
            }
        }
    }
}

/// Shows all components.
pub(super) async fn show_components(caller: CompanionCaller) -> Result<Response, CompanionError> {
    caller.ensure(TokenScope::Read)?;
    let components = list_components(&caller).await?;
    let content = html! {
        h1 { "Components" }
        @if components.is_empty() {
            p class="muted" { "No agent has proposed a component yet. Ask one for a component that shows your data." }
        }
        ul class="entries" { @for one in &components { (component_row(one)) } }
    };
    Ok(page(&caller, PageSection::Other, "Components", &content))
}

fn source_part(title: &str, source: &str) -> Markup {
    html! {
        @if !source.trim().is_empty() {
            details open { summary { (title) } pre { (source) } }
        }
    }
}

/// Shows a component: its source, and its preview if it's approved.
pub(super) async fn show_component(
    caller: CompanionCaller,
    UrlPath(id): UrlPath<String>,
) -> Result<Response, CompanionError> {
    let component = read_component(&caller, &id).await?;
    let text = |key: &str| component[key].as_str().unwrap_or_default();
    let is_approved = component["approved"] == true;
    let data = &component["data"];
    let names: Vec<&str> = data["properties"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let content = html! {
        h1 { (text("tagName")) }
        p class="muted" {
            "A component in " a href=(file_url(text("volume"), text("path"))) { (text("path")) } ". It runs without a \
            network, and can't read your notes."
        }
        @if let Some(note) = data["note"].as_str() {
            p { "It may read " (names.join(", ")) " of " a href=(file_url(text("volume"), note)) { (note) } "." }
        }
        @if let Some(problem) = component["problem"].as_str() { (message("bad", &html! { (sentence(problem)) })) }
        @if is_approved {
            iframe class="component" sandbox="allow-scripts" referrerpolicy="no-referrer" title=(text("tagName"))
                src={ "/components/" (text("id")) "/frame" } data-values=(component["values"]) {}
        }
        @if caller.allows(TokenScope::Approve) {
            form class="row" method="post" action={ "/components/" (text("id")) } {
                (form_token_field(&caller))
                @if is_approved {
                    button class="danger" name="decision" value="revoke" { "Stop previewing" }
                } @else {
                    button class="primary" name="decision" value="approve" { "Render preview" }
                }
            }
        } @else if !is_approved {
            p class="muted" { "This browser can't approve it. `tracebook components` can." }
        }
        (source_part("Script", text("script")))
        (source_part("Styles", text("styles")))
    };
    let mut response = page(&caller, PageSection::Other, text("tagName"), &content);
    let policy = HeaderValue::from_str(&format!("{PAGE_POLICY}; frame-src 'self'"));
    if let Ok(policy) = policy {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    Ok(response)
}

/// Approves a component, or takes the approval back.
pub(super) async fn decide_component(
    caller: CompanionCaller,
    UrlPath(id): UrlPath<String>,
    form: CheckedForm,
) -> Result<Response, CompanionError> {
    caller.ensure(TokenScope::Approve)?;
    let (approves, revokes) = (form.text("decision") == "approve", form.text("decision") == "revoke");
    if !approves && !revokes {
        let why = "The form doesn't say what was decided. Reload the page.";
        return Err(ProblemDetails::unprocessable(why).into());
    }
    // The whole id: exactly what was shown is approved.
    let component = read_component(&caller, &id).await?;
    if component["id"] != id.as_str() {
        return Err(ProblemDetails::not_found("There's no component with this address.").into());
    }
    let call = CommandCall::json("components").option("volume", caller.api.volume(None)?);
    let call = call.flag("approve", approves).flag("revoke", revokes).operands([&id]);
    caller.api.perform_ok(call).await?;
    Ok(see_other(&format!("/components/{id}")))
}

/// Shows the page inside of the frame: the element, and the script that defines it.
pub(super) async fn show_frame(
    caller: CompanionCaller,
    UrlPath(id): UrlPath<String>,
    headers: HeaderMap,
) -> Result<Response, CompanionError> {
    let destination = headers.get("sec-fetch-dest").map(HeaderValue::as_bytes);
    if destination.is_some_and(|destination| destination != b"iframe") {
        return Err(ProblemDetails::new(StatusCode::FORBIDDEN, "A preview is shown inside of its page only.").into());
    }
    let component = read_component(&caller, &id).await?;
    if component["approved"] != true || component["id"] != id.as_str() {
        return Err(ProblemDetails::new(StatusCode::FORBIDDEN, "This component isn't approved.").into());
    }
    let text = |key: &str| component[key].as_str().unwrap_or_default();
    let nonce = STANDARD.encode(rand::random::<[u8; 16]>());
    let data_url = |media: &str, source: &str| format!("data:{media};charset=utf-8;base64,{}", STANDARD.encode(source));
    let tag = text("tagName");
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="color-scheme" content="light dark";
                title { (tag) }
                style { (PreEscaped(static_files::FRAME_STYLE)) }
                // An address, so that no text of it can end the element that holds it.
                link rel="stylesheet" href=(data_url("text/css", text("styles")));
                script nonce=(nonce) data-tag=(tag) { (PreEscaped(FRAME_SCRIPT)) }
            }
            body {
                // The name was checked when the file was read: letters, digits and hyphens.
                (PreEscaped(format!("<{tag}></{tag}>")))
                script nonce=(nonce) src=(data_url("text/javascript", text("script"))) {}
                script nonce=(nonce) { (PreEscaped(FRAME_END)) }
            }
        }
    };
    let mut response = html_response(StatusCode::OK, &markup).into_response();
    let policy = HeaderValue::from_str(&format!("{FRAME_POLICY}; script-src 'nonce-{nonce}'"));
    let unwritable = |_| ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "the frame's policy can't be written");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy.map_err(unwritable)?);
    response.headers_mut().insert(HeaderName::from_static("x-dns-prefetch-control"), HeaderValue::from_static("off"));
    Ok(response)
}
