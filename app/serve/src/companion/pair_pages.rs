//! Pairing: a one-time code becomes a browser's session. Also what this browser may do, and how it signs out.

use super::companion_session::{CheckedForm, CompanionCaller, CompanionError, remove_cookie, set_cookie};
use super::page_layout::{PageSection, bare_page, form_token_field, page, see_other, shown_time};
use crate::client_rates::ClientNetwork;
use crate::clock::unix_millis;
use crate::http_state::{HttpState, UrlQuery};
use crate::pairing::PairingRefusal;
use crate::problem::ProblemDetails;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;
use std::sync::Arc;

/// Maximum length of a browser's name in characters.
const MAX_NAME_CHARS: usize = 40;
/// Maximum length of a code that is looked at, in bytes.
const MAX_CODE_BYTES: usize = 64;
/// What an answer 401 must name. Browsers know no such scheme, so they show the page.
const PAIRING_CHALLENGE: &str = "Pairing realm=\"tracebook\"";

#[derive(Deserialize)]
pub(super) struct PairQuery {
    code: Option<String>,
}

fn pairing_form(code: &str, name: &str, problem: Option<&str>) -> Markup {
    html! {
        h1 { "Pair this browser" }
        @if let Some(problem) = problem {
            p class="message bad" role="alert" { (problem) }
        }
        p {
            "Run " code { "tracebook tokens create NAME --qr" } " on the computer with your notes. "
            "Then scan the code that it shows, or type it here."
        }
        form class="stack" method="post" action="/pair" {
            label for="pair-code" { "Code" }
            input #pair-code class="code" name="code" value=(code) required autocomplete="off"
                autocapitalize="characters" spellcheck="false" maxlength="20" placeholder="ABCD-EFGH-JKMN";
            label for="pair-name" { "Name of this browser" }
            input #pair-name name="name" value=(name) maxlength=(MAX_NAME_CHARS) autocomplete="off";
            button class="primary" type="submit" { "Pair" }
        }
        p class="muted" {
            "The code can be used once. Afterwards, this browser stays signed in until you sign out or revoke it."
        }
    }
}

/// Shows what a browser that isn't paired can do.
pub(super) fn unpaired_page(status: StatusCode, problem: &str) -> Response {
    let mut page = bare_page(status, "Pair", &pairing_form("", "", Some(problem)));
    page.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(PAIRING_CHALLENGE));
    page
}

/// Returns a name for the browser, from what it says about itself.
fn browser_name(agent: &str) -> &'static str {
    let known = [("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android phone"), ("Macintosh", "Mac")];
    let other = [("Windows", "Windows"), ("Linux", "Linux")];
    known.into_iter().chain(other).find(|(mark, _)| agent.contains(mark)).map_or("Browser", |(_, name)| name)
}

/// Shows the form for pairing. A link fills in the code; only the button uses it up.
pub(super) async fn show_pairing(UrlQuery(query): UrlQuery<PairQuery>, request: Request) -> Response {
    let agent = request.headers().get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let code = query.code.unwrap_or_default();
    bare_page(StatusCode::OK, "Pair", &pairing_form(&code, browser_name(agent), None))
}

/// Exchanges a one-time code for a session.
pub(super) async fn pair(State(state): State<Arc<HttpState>>, request: Request) -> Result<Response, CompanionError> {
    let network = ClientNetwork::of_request(&request);
    let form = CheckedForm::receive(request, &state).await?;
    let (code, name) = (form.text("code").to_owned(), form.text("name").to_owned());
    if code.len() > MAX_CODE_BYTES || !state.refusals.admits(network) {
        let why = "Too many codes were tried. Wait a moment, and try again.";
        return Err(ProblemDetails::new(StatusCode::TOO_MANY_REQUESTS, why).into());
    }
    let name: String = name.trim().chars().filter(|letter| !letter.is_control()).take(MAX_NAME_CHARS).collect();
    let now = unix_millis();
    let redeemed = state.pairing.redeem(&code, now).and_then(|mut grant| {
        if !name.is_empty() {
            grant.name.clone_from(&name);
        }
        Ok(state.tokens.create_for_browser(grant, now)?)
    });
    match redeemed {
        Ok((token, shown)) => {
            let cookie = set_cookie(&state, &shown, &token, now);
            Ok(([(header::SET_COOKIE, cookie)], see_other("/")).into_response())
        }
        Err(refusal) => {
            let status = match refusal {
                PairingRefusal::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
                PairingRefusal::Unknown | PairingRefusal::Used | PairingRefusal::Expired => StatusCode::FORBIDDEN,
            };
            Ok(bare_page(status, "Pair", &pairing_form("", &name, Some(&refusal.to_string()))))
        }
    }
}

/// Shows what this browser may do.
pub(super) async fn show_device(caller: CompanionCaller) -> Response {
    let token = &caller.api.token;
    let scopes = token.scopes.iter().map(|scope| scope.name()).collect::<Vec<_>>().join(", ");
    let content = html! {
        h1 { "This browser" }
        dl class="facts" {
            dt { "Name" } dd { (token.name) }
            dt { "May" } dd { (scopes) }
            dt { "Volume" } dd { (token.volume.as_deref().unwrap_or("all")) }
            dt { "Paired" } dd { (shown_time(token.created)) }
            @if let Some(expires) = token.expires {
                dt { "Until" } dd { (shown_date(expires)) }
            }
        }
        form method="post" action="/sign-out" {
            (form_token_field(&caller))
            button class="danger" type="submit" { "Sign out" }
        }
        p class="muted" {
            "On the computer, " code { "tracebook tokens" } " lists all browsers, and "
            code { "tracebook tokens revoke" } " signs one out."
        }
    };
    page(&caller, PageSection::Other, "This browser", &content)
}

fn shown_date(millis: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%-d %B %Y").to_string()
}

/// Revokes this browser's token and removes its cookie.
pub(super) async fn sign_out(caller: CompanionCaller, _form: CheckedForm) -> Result<Response, CompanionError> {
    let state = &caller.api.state;
    let failed = |error: crate::access_tokens::TokenStoreError| {
        ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    };
    state.tokens.revoke(&caller.api.token.id).map_err(failed)?;
    let content = html! {
        h1 { "Signed out" }
        p { "This browser no longer reaches your notes." }
        p { a class="button" href="/pair" { "Pair again" } }
    };
    let page = bare_page(StatusCode::OK, "Signed out", &content);
    Ok(([(header::SET_COOKIE, remove_cookie(state))], page).into_response())
}
