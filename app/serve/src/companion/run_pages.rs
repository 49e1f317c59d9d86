//! Runs of agents: listed, followed step by step, approved or denied, and stopped.

use super::companion_session::{CheckedForm, CompanionCaller, CompanionError};
use super::page_layout::{PageSection, form_token_field, message, page, run_state, see_other, sentence, shown_time};
use super::server_form_fields::{asked_form, entered_answers, form_fields};
use crate::access_tokens::TokenScope;
use crate::command_calls::CommandCall;
use crate::http_state::{UrlPath, UrlQuery};
use crate::pending_approval::PendingApproval;
use crate::problem::ProblemDetails;
use crate::rest_events;
use crate::rest_work::{ApprovalDecision, decide, needed_run, pending_approvals, reachable_runs};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{Event, Options, Tag, TagEnd};
use serde::Deserialize;
use serde_json::Value;
use text::markdown::parse;
use text::untrusted_text;

/// Maximum numbers of runs and of steps on a page, newest kept.
const MAX_SHOWN_RUNS: usize = 100;
const MAX_SHOWN_STEPS: usize = 400;
/// Maximum length of a text in a step, in bytes. The window has the rest.
const MAX_STEP_BYTES: usize = 20_000;
/// Texts up to this many bytes and lines are shown open.
const MAX_OPEN_BYTES: usize = 400;
const MAX_OPEN_LINES: usize = 6;
/// Maximum length of a comment in bytes.
const MAX_COMMENT_BYTES: usize = 4_000;

/// Returns whether a run isn't over.
pub(super) fn is_open_run(run: &Value) -> bool {
    run["ending"].is_null()
}

/// Returns when a run began, in milliseconds since 1970.
fn begun(run: &Value) -> i64 {
    run["start_time"].as_i64().unwrap_or(0)
}

fn cost_words(cost: &Value) -> String {
    match cost.as_f64() {
        Some(cost) if cost <= 0.0 => "free".to_owned(),
        Some(cost) if cost < 0.01 => "under 1 ¢".to_owned(),
        Some(cost) => format!("${cost:.2}"),
        None => "cost unknown".to_owned(),
    }
}

/// Shows a run in a list.
pub(super) fn run_row(run: &Value) -> Markup {
    let text = |key: &str| run[key].as_str().unwrap_or_default();
    let prompt = text("prompt").lines().next().filter(|line| !line.trim().is_empty()).unwrap_or("Untitled run");
    html! {
        li {
            a class="entry" href={ "/runs/" (text("id")) } {
                span class="name" { (prompt) }
                span class="muted" {
                    (run_state(text("standing"))) " · " (text("agent")) " · " (shown_time(begun(run)))
                }
            }
        }
    }
}

/// Returns a value as text in which nothing hides.
fn shown_value(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| serde_json::to_string_pretty(value).unwrap_or_default(), str::to_owned);
    untrusted_text::escape_block(&text).into_owned()
}

fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_STEP_BYTES);
    let kept = text.get(..end).unwrap_or_default();
    if end < text.len() { format!("{kept}… {} more bytes", text.len() - end) } else { kept.to_owned() }
}

/// Shows what a call was given: each argument by name, as `shown` shows its text.
fn argument_list(arguments: &Value, shown: fn(&str) -> String) -> Markup {
    let rows = arguments.as_object();
    html! {
        @if let Some(rows) = rows.filter(|rows| !rows.is_empty()) {
            dl class="arguments" {
                @for (name, value) in rows {
                    dt { (untrusted_text::escape_line(name).into_owned()) }
                    dd { pre { (shown(&shown_value(value))) } }
                }
            }
        }
    }
}

/// Shows a call that waits for approval, with the form that decides it.
pub(super) fn approval_card(caller: &CompanionCaller, approval: &PendingApproval, back: &str) -> Markup {
    let id = &approval.action_id;
    let asked = asked_form(approval);
    let what = untrusted_text::escape_block(&approval.description).into_owned();
    let (allow, deny) = match &asked {
        Some(call) if call.form.page.is_some() => ("Continue", "Decline"),
        Some(_) => ("Send", "Decline"),
        None => ("Allow once", "Deny"),
    };
    html! {
        section class="card" aria-label={ "Approval: " (what) } {
            p class="muted" {
                (run_state("waits")) " · " a href={ "/runs/" (approval.run) } { (approval.agent) }
                " · asked " (shown_time(approval.asked))
            }
            p class="what" { (what) }
            p class="muted" { (sentence(&untrusted_text::escape_line(&approval.reason))) }
            details open[approval.parameters.to_string().len() <= MAX_OPEN_BYTES] {
                summary { "Arguments of " code { (approval.action_type) } }
                // All of it: what is left out would be allowed unseen.
                (argument_list(&approval.parameters, str::to_owned))
            }
            @for piece in &approval.code {
                @let title = untrusted_text::escape_line(piece["title"].as_str().unwrap_or_default()).into_owned();
                details {
                    summary { "Code that would run: " (title) }
                    pre { (shown_value(&piece["text"])) }
                }
            }
            @if caller.allows(TokenScope::Approve) {
                form class="stack" method="post" action={ "/approvals/" (id) } {
                    (form_token_field(caller))
                    input type="hidden" name="back" value=(back);
                    @if let Some(asked) = &asked { (form_fields(id, asked)) }
                    label for={ "comment-" (id) } { "Comment for the agent" }
                    input id={ "comment-" (id) } name="comment" maxlength=(MAX_COMMENT_BYTES / 4) autocomplete="off";
                    div class="row" {
                        button class="primary" name="decision" value="allow" { (allow) }
                        button class="danger" name="decision" value="deny" { (deny) }
                    }
                }
            }
        }
    }
}

/// Lists runs.
pub(super) async fn list_runs(caller: CompanionCaller) -> Result<Response, CompanionError> {
    caller.ensure(TokenScope::Read)?;
    let approvals = pending_approvals(&caller.api).await?;
    let runs = reachable_runs(&caller.api).await?;
    let content = html! {
        h1 { "Runs" }
        div #live data-live="runs" {
            @for approval in &approvals { (approval_card(&caller, approval, "/runs")) }
            @if runs.is_empty() { p class="muted" { "No agent has run yet." } }
            ul class="entries" { @for run in runs.iter().take(MAX_SHOWN_RUNS) { (run_row(run)) } }
            @if runs.len() > MAX_SHOWN_RUNS { p class="muted" { "Older runs are in the window." } }
        }
    };
    Ok(page(&caller, PageSection::Runs, "Runs", &content))
}

/// Shows a text of a step: open if it's short.
fn step_text(text: &str) -> Markup {
    let lines = text.lines().count();
    html! {
        @if text.len() <= MAX_OPEN_BYTES && lines <= MAX_OPEN_LINES { pre { (text) } } @else {
            details {
                summary { "Show " (lines) @if lines == 1 { " line" } @else { " lines" } }
                pre { (cut(text)) }
            }
        }
    }
}

/// Renders Markdown that a model wrote. HTML in it is text, pictures are their descriptions, and links lead to the web.
fn model_text(text: &str) -> Markup {
    let text = cut(text);
    let rendered = parse(&text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH, |parser| {
        let mut links = Vec::new();
        let events = parser.filter_map(|event| match event {
            Event::Html(html) | Event::InlineHtml(html) => Some(Event::Text(html)),
            // Below the page's own headings.
            Event::Start(Tag::Heading { .. }) => Some(Event::Start(Tag::Paragraph)),
            Event::End(TagEnd::Heading(_)) => Some(Event::End(TagEnd::Paragraph)),
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
            Event::Start(Tag::Link { ref dest_url, .. }) => {
                let is_web = ["https://", "http://", "mailto:"].iter().any(|scheme| dest_url.starts_with(scheme));
                links.push(is_web);
                is_web.then_some(event)
            }
            Event::End(TagEnd::Link) => links.pop().unwrap_or(false).then_some(event),
            event => Some(event),
        });
        let mut out = String::new();
        pulldown_cmark::html::push_html(&mut out, events);
        out
    });
    match rendered {
        Ok(rendered) => PreEscaped(rendered),
        // It exceeds the limits of Markdown, so it's shown as it is.
        Err(_) => html! { pre { (text) } },
    }
}

fn step_row(step: &Value) -> Markup {
    let text = |key: &str| step[key].as_str().unwrap_or_default();
    let (class, name) = match text("type") {
        "thinking" => ("thought", "Thought"),
        "tool_call" => ("tool", "Call"),
        "tool_result" if step["success"] == true => ("ok", "Result"),
        "tool_result" => ("bad", "Failed"),
        "todo" => ("quiet", "Plan"),
        "final_answer" => ("accent", "Answer"),
        "error" => ("bad", "Error"),
        _ => ("quiet", "Step"),
    };
    let used = if step["executedParams"].is_object() { &step["executedParams"] } else { &step["params"] };
    html! {
        li class={ "step " (class) } {
            p class="step-head" {
                span class="kind" { (name) }
                @if text("type") == "tool_call" { " " code { (text("toolName")) } }
                " " span class="muted" { (shown_time(step["timestamp"].as_i64().unwrap_or(0))) }
            }
            @match text("type") {
                "thinking" => { div class="answer" { (model_text(text("content").trim())) } }
                "tool_call" => {
                    @if used.to_string().len() <= MAX_OPEN_BYTES { (argument_list(used, cut)) } @else {
                        details { summary { "Arguments" } (argument_list(used, cut)) }
                    }
                }
                "tool_result" if step["success"] == true => { (step_text(&shown_value(&step["result"]))) }
                "tool_result" => { (step_text(text("error"))) }
                "todo" => {
                    ul class="plan" {
                        @for todo in step["todos"].as_array().map(Vec::as_slice).unwrap_or_default() {
                            @let (mark, word) = match todo["status"].as_str() {
                                Some("completed") => ("✓", "Done: "),
                                Some("in_progress") => ("●", "In progress: "),
                                Some("cancelled") => ("✕", "Canceled: "),
                                _ => ("○", "To do: "),
                            };
                            li {
                                span aria-hidden="true" { (mark) " " }
                                span class="visually-hidden" { (word) }
                                (todo["content"].as_str().unwrap_or_default())
                            }
                        }
                    }
                }
                "final_answer" => { div class="answer" { (model_text(text("content"))) } }
                "error" => { p { (text("message")) } }
                _ => {}
            }
        }
    }
}

#[derive(Deserialize)]
pub(super) struct RunPageQuery {
    decided: Option<String>,
}

/// Shows a run with its steps.
pub(super) async fn show_run(
    caller: CompanionCaller,
    UrlPath(id): UrlPath<String>,
    UrlQuery(query): UrlQuery<RunPageQuery>,
) -> Result<Response, CompanionError> {
    caller.ensure(TokenScope::Read)?;
    let id = needed_run(&caller.api, id).await?;
    let runs = reachable_runs(&caller.api).await?;
    let run = runs.iter().find(|run| run["id"] == id.as_str());
    let run = run.ok_or_else(|| ProblemDetails::not_found("There's no run with this address."))?;
    let steps = caller.api.perform_ok(CommandCall::json("steps").operands([&id])).await?.lines();
    let is_shown = |step: &&Value| {
        step["type"] != "thinking" || step["content"].as_str().is_some_and(|text| !text.trim().is_empty())
    };
    let steps: Vec<&Value> = steps.iter().filter(is_shown).collect();
    let hidden = steps.len().saturating_sub(MAX_SHOWN_STEPS);
    let approvals = pending_approvals(&caller.api).await?;
    let own = approvals.iter().filter(|approval| approval.run == id);
    let text = |key: &str| run[key].as_str().unwrap_or_default();
    let back = format!("/runs/{id}");
    let is_open = is_open_run(run);
    let title = text("prompt").lines().next().unwrap_or("Run");
    let content = html! {
        nav class="crumbs" aria-label="Pages above" { a href="/runs" { "Runs" } }
        h1 class="prompt" { (title) }
        @match query.decided.as_deref() {
            Some("allow") => { (message("ok", &html! { "✓ Allowed once." })) }
            Some("deny") => { (message("quiet", &html! { "✕ Denied." })) }
            _ => {}
        }
        div #live data-live="run" data-run=(id) {
            p class="muted" {
                (run_state(text("standing"))) " · " (text("agent")) " · " (shown_time(begun(run)))
                " · " (cost_words(&run["spent"]["cost"]))
            }
            @if is_open && may_stop(&caller) {
                form method="post" action={ "/runs/" (id) "/stop" } {
                    (form_token_field(&caller))
                    button class="danger" { "Stop run" }
                }
            }
            @for approval in own { (approval_card(&caller, approval, &back)) }
            @if hidden > 0 { p class="muted" { (hidden) " earlier steps are in the window." } }
            ol class="steps" aria-label="Steps" { @for step in &steps[hidden..] { (step_row(step)) } }
            @if steps.is_empty() { p class="muted" { "No steps yet." } }
            @if is_open { noscript { p { a href="" { "Reload to see the next steps" } } } }
        }
    };
    Ok(page(&caller, PageSection::Runs, title, &content))
}

/// Returns whether the browser may stop runs: it may decide about them, or start them.
fn may_stop(caller: &CompanionCaller) -> bool {
    caller.allows(TokenScope::Approve) || caller.allows(TokenScope::Agent)
}

/// Stops a run.
pub(super) async fn stop_run(
    caller: CompanionCaller,
    UrlPath(id): UrlPath<String>,
    _form: CheckedForm,
) -> Result<Response, CompanionError> {
    if !may_stop(&caller) {
        caller.ensure(TokenScope::Approve)?;
    }
    let id = needed_run(&caller.api, id).await?;
    caller.api.perform_ok(CommandCall::json("runs").flag("stop", true).operands([&id])).await?;
    Ok(see_other(&format!("/runs/{id}")))
}

/// Approves or denies a call, this once.
pub(super) async fn decide_approval(
    caller: CompanionCaller,
    UrlPath(id): UrlPath<String>,
    form: CheckedForm,
) -> Result<Response, CompanionError> {
    caller.ensure(TokenScope::Approve)?;
    let is_allowed = match form.text("decision") {
        "allow" => true,
        "deny" => false,
        _ => {
            return Err(ProblemDetails::unprocessable("The form doesn't say what was decided. Reload the page.").into());
        }
    };
    let comment = form.text("comment").trim();
    if comment.len() > MAX_COMMENT_BYTES {
        return Err(ProblemDetails::unprocessable(format!("A comment has at most {MAX_COMMENT_BYTES} bytes.")).into());
    }
    let comment = Some(comment.to_owned()).filter(|comment| !comment.is_empty());
    let pending = if is_allowed { pending_approvals(&caller.api).await? } else { Vec::new() };
    let asked = pending.iter().find(|approval| approval.action_id == id).and_then(asked_form);
    let answers = asked.map(|asked| entered_answers(&asked, &form)).transpose()?;
    let decision = ApprovalDecision { answers, ..ApprovalDecision::new(is_allowed, comment) };
    let run = decide(&caller.api, &id, decision).await?;
    Ok(see_other(&format!("/runs/{run}?decided={}", form.text("decision"))))
}

/// Sends events as they happen, for the script.
pub(super) async fn stream_live(caller: CompanionCaller, headers: HeaderMap) -> Result<Response, CompanionError> {
    caller.ensure(TokenScope::Read)?;
    Ok(rest_events::stream_events(caller.api, headers).await?.into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_wrote_runs_nothing() {
        let of = |text: &str| model_text(text).0;
        assert_eq!(of("**a** <b onclick=x>"), "<p><strong>a</strong> &lt;b onclick=x&gt;</p>\n");
        assert_eq!(of("# A"), "<p>A</p>\n");
        assert_eq!(of("<script>x</script>\n"), "&lt;script&gt;x&lt;/script&gt;\n");
        assert_eq!(of("[a](javascript:x) [b](https://b.example)"), "<p>a <a href=\"https://b.example\">b</a></p>\n");
        assert_eq!(of("![p](https://evil.example/x.png \"t\")"), "<p>p</p>\n");
        assert_eq!(of("[a ![p](q)](data:text/html,x)"), "<p>a p</p>\n");
    }
}
