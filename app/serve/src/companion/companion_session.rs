//! The session of a paired browser: its cookie, its scopes, and the secret that its forms must carry.

use super::refusal_page;
use crate::access_tokens::{AccessToken, TokenScope};
use crate::http_state::{ApiCaller, HttpState};
use crate::problem::ProblemDetails;
use axum::Form;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Name of the cookie. With TLS, its prefix keeps other hosts and ports from setting it.
const PLAIN_COOKIE: &str = "tracebook_session";
const TLS_COOKIE: &str = "__Host-tracebook_session";
/// What the secret of forms is derived for (BLAKE3's context string).
const FORM_SECRET_CONTEXT: &str = "tracebook 2026-11-27 secret of the companion's forms";
/// Maximum time to receive a form.
const FORM_TIMEOUT: Duration = Duration::from_secs(15);
/// For how long a browser keeps a cookie whose token has no end, in seconds.
const COOKIE_SECONDS: i64 = 400 * 86_400;

fn cookie_name(has_tls: bool) -> &'static str {
    if has_tls { TLS_COOKIE } else { PLAIN_COOKIE }
}

/// Returns the token in a browser's cookie.
pub(crate) fn session_cookie(headers: &HeaderMap, has_tls: bool) -> Option<String> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == cookie_name(has_tls)).map(|(_, value)| value.to_owned())
}

/// Returns the header that gives a browser its token. Only this server gets it back, and no script can read it.
pub(super) fn set_cookie(state: &HttpState, shown: &str, token: &AccessToken, now: i64) -> String {
    let seconds = token.expires.map_or(COOKIE_SECONDS, |expires| ((expires - now) / 1_000).clamp(0, COOKIE_SECONDS));
    cookie_line(state, shown, seconds)
}

/// Returns the header that removes a browser's token.
pub(super) fn remove_cookie(state: &HttpState) -> String {
    cookie_line(state, "", 0)
}

fn cookie_line(state: &HttpState, value: &str, seconds: i64) -> String {
    let secure = if state.has_tls { "; Secure" } else { "" };
    format!("{}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}", cookie_name(state.has_tls))
}

/// The session of a paired browser.
#[derive(Clone)]
pub(crate) struct BrowserSession {
    pub(crate) token: AccessToken,
    form_secret: blake3::Hash,
}

impl BrowserSession {
    /// Creates the session of a browser that showed this token.
    pub(crate) fn new(token: AccessToken, shown: &str) -> BrowserSession {
        BrowserSession {
            token,
            form_secret: blake3::Hash::from_bytes(blake3::derive_key(FORM_SECRET_CONTEXT, shown.as_bytes())),
        }
    }

    /// Returns the secret that this session's forms carry. Other sites can't read it.
    pub(super) fn form_token(&self) -> String {
        self.form_secret.to_hex().to_string()
    }

    /// Refuses a form without the session's secret. Hashes are compared in constant time.
    pub(super) fn ensure_form_token(&self, sent: Option<&str>) -> Result<(), ProblemDetails> {
        let is_own =
            sent.and_then(|sent| blake3::Hash::from_hex(sent).ok()).is_some_and(|sent| sent == self.form_secret);
        let why = "This form is from another session. Go back, reload the page and try again.";
        is_own.then_some(()).ok_or_else(|| ProblemDetails::new(StatusCode::FORBIDDEN, why))
    }
}

/// A paired browser that requests a page, and its way to the workspace.
#[derive(Clone)]
pub(super) struct CompanionCaller {
    pub(super) api: ApiCaller,
    pub(super) session: BrowserSession,
}

impl CompanionCaller {
    /// Returns whether the browser may do something.
    pub(super) fn allows(&self, scope: TokenScope) -> bool {
        self.api.token.allows(scope)
    }

    /// Refuses what the browser may not do.
    pub(super) fn ensure(&self, scope: TokenScope) -> Result<(), ProblemDetails> {
        let why = || format!("This browser wasn't paired for this. It lacks the scope `{}`.", scope.name());
        self.allows(scope).then_some(()).ok_or_else(|| ProblemDetails::new(StatusCode::FORBIDDEN, why()))
    }
}

impl FromRequestParts<Arc<HttpState>> for CompanionCaller {
    type Rejection = CompanionError;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<HttpState>) -> Result<CompanionCaller, CompanionError> {
        let session = parts.extensions.get::<BrowserSession>().cloned();
        let unpaired = || ProblemDetails::new(StatusCode::UNAUTHORIZED, "This browser isn't paired.");
        let session = session.ok_or_else(unpaired)?;
        Ok(CompanionCaller { api: ApiCaller { state: state.clone(), token: session.token.clone() }, session })
    }
}

/// Why there's no page. It's shown as one.
pub(super) struct CompanionError(pub(super) ProblemDetails);

impl From<ProblemDetails> for CompanionError {
    fn from(problem: ProblemDetails) -> CompanionError {
        CompanionError(problem)
    }
}

impl IntoResponse for CompanionError {
    fn into_response(self) -> Response {
        refusal_page(&self.0)
    }
}

/// What a form sent, which carried the session's secret.
pub(super) struct CheckedForm {
    fields: HashMap<String, String>,
}

impl CheckedForm {
    /// Returns a field; empty if it's missing.
    pub(super) fn text(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// Receives the fields of a form, within limits of size and time.
    pub(super) async fn receive(request: Request, state: &Arc<HttpState>) -> Result<CheckedForm, ProblemDetails> {
        let slow = |_| ProblemDetails::new(StatusCode::REQUEST_TIMEOUT, "The form did not arrive in time.");
        let received =
            tokio::time::timeout(FORM_TIMEOUT, Form::<HashMap<String, String>>::from_request(request, state));
        match received.await.map_err(slow)? {
            Ok(Form(fields)) => Ok(CheckedForm { fields }),
            Err(error) => Err(ProblemDetails::new(error.status(), format!("The form can't be read: {error}."))),
        }
    }
}

impl FromRequest<Arc<HttpState>> for CheckedForm {
    type Rejection = CompanionError;

    async fn from_request(request: Request, state: &Arc<HttpState>) -> Result<CheckedForm, CompanionError> {
        let session = request.extensions().get::<BrowserSession>().cloned();
        let form = CheckedForm::receive(request, state).await?;
        let unpaired = || ProblemDetails::new(StatusCode::UNAUTHORIZED, "This browser isn't paired.");
        session.ok_or_else(unpaired)?.ensure_form_token(Some(form.text("form_token")))?;
        Ok(form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, "a=b; tracebook_session=tb_1_2".parse().expect("a header"));
        headers.append(header::COOKIE, "__Host-tracebook_session=tb_3_4".parse().expect("a header"));
        assert_eq!(session_cookie(&headers, false).as_deref(), Some("tb_1_2"));
        assert_eq!(session_cookie(&headers, true).as_deref(), Some("tb_3_4"));
        assert_eq!(session_cookie(&HeaderMap::new(), false), None);
    }
}
