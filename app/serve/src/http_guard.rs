//! What every HTTP request passes before it's handled: `Host` and `Origin`, the token, the rate, and the audit log.
//!
//! Browsers let any page send requests to this machine. A page can't know a token, and it can't hide where it's from:
//! a `Host` that isn't ours means DNS rebinding, and an `Origin` that isn't ours means another site.

use crate::access_tokens::{AccessToken, TokenRefusal, TokenScope};
use crate::api_docs::{DOCS_PATH, DOCS_STYLE_PATH};
use crate::audit_log::AuditEntry;
use crate::client_rates::ClientNetwork;
use crate::clock::unix_millis;
use crate::companion::{self, BrowserSession};
use crate::http_state::HttpState;
use crate::problem::ProblemDetails;
use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// The description of the REST interface.
pub(crate) const DESCRIPTION_PATH: &str = "/api/v1/openapi.json";
/// Where front ends of the agent connect.
pub(crate) const AGENT_SOCKET_PATH: &str = "/api/v1/agent";
/// The paths that need no token: they hold nothing of the user.
const OPEN_PATHS: [&str; 3] = [DESCRIPTION_PATH, DOCS_PATH, DOCS_STYLE_PATH];
/// Where programs look for metadata, such as how to sign in. There is none, and they continue when they hear so.
const WELL_KNOWN_PATH: &str = "/.well-known";
/// How the paths of gRPC's services begin.
#[cfg(feature = "grpc")]
const SERVICE_PATHS: [&str; 3] = ["/grpc.", "/mixagent.", "/tracebook."];
/// Maximum number of open connections of a network. Beyond it, requests are refused.
const MAX_CONNECTIONS: usize = 2_048;

/// What a request without a token is told to send, and what one with a wrong token is told (RFC 6750).
const CHALLENGE: &str = "Bearer realm=\"tracebook\"";
const WRONG_TOKEN_CHALLENGE: &str = "Bearer realm=\"tracebook\", error=\"invalid_token\"";

/// Header in which browsers say which site a request is from.
const FETCH_SITE_HEADER: &str = "sec-fetch-site";
/// Headers that decide who asks and for what. Of several, another program might take another one.
const SINGLE_HEADERS: [&str; 7] =
    ["authorization", "content-type", "if-match", "if-none-match", "origin", "range", FETCH_SITE_HEADER];

/// Returns the host of an authority, without its port. `None` if something else follows it.
fn host_name(authority: &str) -> Option<&str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(host)
}

/// Returns whether a client may reach the server under this authority. A rebinding attack needs a name of its own, so
/// addresses are fine.
pub(crate) fn is_own_host(authority: &str, names: &[String]) -> bool {
    let Some(host) = host_name(authority) else { return false };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "localhost" || host.parse::<IpAddr>().is_ok() || names.iter().any(|name| name.eq_ignore_ascii_case(&host))
}

fn header_text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// Returns whether a path belongs to programs. All others are pages of the companion.
fn is_program_path(path: &str) -> bool {
    // A browser's cookie isn't taken for them, whatever type of content the request names.
    #[cfg(feature = "grpc")]
    if SERVICE_PATHS.iter().any(|service| path.starts_with(service)) {
        return true;
    }
    ["/api", "/mcp", WELL_KNOWN_PATH].into_iter().any(|folder| is_within(path, folder))
}

/// Returns whether a path is that of a folder, or below it.
fn is_within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns whether a request is a program's: it goes to a path of programs, or speaks gRPC, whose paths are names of
/// services.
pub(crate) fn is_for_programs(request: &Request) -> bool {
    let content = request.headers().get(header::CONTENT_TYPE).map(|value| value.as_bytes());
    let is_grpc = cfg!(feature = "grpc") && content.is_some_and(|content| content.starts_with(b"application/grpc"));
    is_grpc || is_program_path(request.uri().path())
}

/// Refuses requests under a foreign name and requests of other sites.
fn check_site(state: &HttpState, headers: &HeaderMap, uri: &Uri, version: Version) -> Result<(), ProblemDetails> {
    let forbidden = |why: &str| Err(ProblemDetails::new(StatusCode::FORBIDDEN, why));
    let authority = uri.authority().map(|authority| authority.as_str());
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        // HTTP/2 has the authority in place of the header.
        (None, None) if version == Version::HTTP_2 => authority,
        _ => None,
    };
    let Some(host) = host else {
        return Err(ProblemDetails::new(StatusCode::BAD_REQUEST, "the request needs exactly one Host header"));
    };
    if !is_own_host(host, &state.host_names) || authority.is_some_and(|own| own != host) {
        return forbidden("this server isn't known under that host; name it with `tracebook serve --host NAME`");
    }
    if SINGLE_HEADERS.iter().any(|name| headers.get_all(*name).iter().count() > 1) {
        let why = "a header that says who asks, or for what, was sent more than once";
        return Err(ProblemDetails::new(StatusCode::BAD_REQUEST, why));
    }
    if let Some(origin) = header_text(headers, &header::ORIGIN) {
        let scheme = if state.has_tls { "https" } else { "http" };
        if origin != format!("{scheme}://{host}") {
            return forbidden("requests of other sites are refused");
        }
    }
    match headers.get(FETCH_SITE_HEADER).map(|site| site.as_bytes()) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        // A link in a message may lead to the page for pairing, which shows and does nothing by itself.
        Some(_) if companion::is_linked_page(uri.path()) && header_text(headers, &header::ORIGIN).is_none() => Ok(()),
        Some(_) => forbidden("requests of other sites are refused"),
    }
}

/// Returns the session of a browser; `None` without a cookie.
fn check_browser(
    state: &HttpState,
    headers: &HeaderMap,
    network: ClientNetwork,
) -> Result<Option<BrowserSession>, ProblemDetails> {
    let Some(shown) = companion::session_cookie(headers, state.has_tls) else { return Ok(None) };
    match state.tokens.check_browser(&shown, unix_millis()) {
        Ok(token) if state.rates.check_key(&token.id).is_err() => Err(too_many("too many requests from this browser")),
        Ok(token) => Ok(Some(BrowserSession::new(token, &shown))),
        Err(error @ TokenRefusal::Unreadable) => {
            Err(ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()))
        }
        Err(TokenRefusal::Unknown | TokenRefusal::Expired) => match state.refusals.admits(network) {
            true => Ok(None),
            false => Err(too_many("too many requests without a valid session")),
        },
    }
}

/// Refuses to change anything for a request that doesn't say where it's from.
fn check_origin_named(method: &Method, headers: &HeaderMap) -> Result<(), ProblemDetails> {
    let is_named = headers.contains_key(header::ORIGIN) || headers.contains_key(FETCH_SITE_HEADER);
    if method == Method::GET || method == Method::HEAD || is_named {
        return Ok(());
    }
    let why = "the browser doesn't say which page sent this; use a newer browser";
    Err(ProblemDetails::new(StatusCode::FORBIDDEN, why))
}

/// Returns what a shown token allows. Who shows wrong ones too often is told to wait.
pub(crate) fn check_shown_token(
    state: &HttpState,
    shown: &str,
    network: ClientNetwork,
) -> Result<AccessToken, ProblemDetails> {
    match state.tokens.check(shown, unix_millis()) {
        Ok(token) if state.rates.check_key(&token.id).is_err() => Err(too_many("too many requests with this token")),
        Ok(token) => Ok(token),
        Err(error @ TokenRefusal::Unreadable) => {
            Err(ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()))
        }
        Err(error @ (TokenRefusal::Unknown | TokenRefusal::Expired)) => {
            Err(unauthorized(state, network, error.to_string(), WRONG_TOKEN_CHALLENGE))
        }
    }
}

fn unauthorized(state: &HttpState, network: ClientNetwork, why: String, challenge: &str) -> ProblemDetails {
    match state.refusals.admits(network) {
        true => ProblemDetails::new(StatusCode::UNAUTHORIZED, why).with_header(header::WWW_AUTHENTICATE, challenge),
        // Guessing is hopeless; this only keeps it from using the machine.
        false => too_many("too many requests without a valid token"),
    }
}

/// Returns the token that a request shows.
fn check_token(state: &HttpState, headers: &HeaderMap, network: ClientNetwork) -> Result<AccessToken, ProblemDetails> {
    let shown = header_text(headers, &header::AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let missing = || {
        let why = "send a token: `Authorization: Bearer TOKEN`".to_owned();
        unauthorized(state, network, why, CHALLENGE)
    };
    check_shown_token(state, shown.ok_or_else(missing)?, network)
}

fn too_many(why: &str) -> ProblemDetails {
    ProblemDetails::new(StatusCode::TOO_MANY_REQUESTS, why).with_header(header::RETRY_AFTER, "1")
}

/// Who makes an admitted request.
enum Admitted {
    /// Anyone: the path holds nothing of the user.
    Anyone,
    Program(AccessToken),
    Browser(BrowserSession),
}

/// Admits a request for what needs no token, unless there were too many.
fn admit_anyone(state: &HttpState, network: ClientNetwork) -> Result<Admitted, ProblemDetails> {
    match state.open_requests.admits(network) {
        true => Ok(Admitted::Anyone),
        false => Err(too_many("too many requests without a token")),
    }
}

/// Decides who makes a request, and whether it's answered.
fn admit(state: &HttpState, request: &Request, network: ClientNetwork) -> Result<Admitted, ProblemDetails> {
    if state.connection_places.taken_by(&network) > MAX_CONNECTIONS {
        return Err(ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, "too many connections are open"));
    }
    let (method, path, headers) = (request.method(), request.uri().path(), request.headers());
    check_site(state, headers, request.uri(), request.version())?;
    if is_for_programs(request) {
        // A front end in a browser can't send a token with a WebSocket; its first message brings it.
        let brings_token = path == AGENT_SOCKET_PATH && !headers.contains_key(header::AUTHORIZATION);
        let reads = method == Method::GET || method == Method::HEAD;
        let is_known_open = OPEN_PATHS.contains(&path) || is_within(path, WELL_KNOWN_PATH);
        let is_open = reads && (is_known_open || brings_token);
        return match is_open {
            true => admit_anyone(state, network),
            false => check_token(state, headers, network).map(Admitted::Program),
        };
    }
    check_origin_named(method, headers)?;
    match check_browser(state, headers, network)? {
        Some(session) => Ok(Admitted::Browser(session)),
        None if companion::is_open_path(path) => admit_anyone(state, network),
        None => Err(ProblemDetails::new(StatusCode::UNAUTHORIZED, "This browser isn't paired.")),
    }
}

/// Admits a request or refuses it, and records it.
pub(crate) async fn guard(State(state): State<Arc<HttpState>>, mut request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let is_program = is_for_programs(&request);
    // A one-time code isn't written down.
    let path = match request.uri().path() {
        path if companion::is_linked_page(path) => path.to_owned(),
        _ => request.uri().path_and_query().map(|path| path.as_str().to_owned()).unwrap_or_default(),
    };
    let network = ClientNetwork::of_request(&request);
    request.extensions_mut().insert(network);
    let (token, mut response) = match admit(&state, &request, network) {
        Err(problem) if is_program => (None, problem.into_response()),
        Err(problem) => (None, companion::refusal_page(&problem)),
        Ok(Admitted::Anyone) => (None, next.run(request).await),
        Ok(Admitted::Program(token)) => {
            let id = token.id.clone();
            let has_body = !request.body().is_end_stream();
            match has_body.then(|| state.body_places.take(id.clone())) {
                Some(None) => {
                    let problem = too_many("too many requests with a body at the same time; wait for some of them");
                    (Some(id), problem.into_response())
                }
                // The place is kept until there's an answer.
                _place => {
                    request.extensions_mut().insert(token);
                    (Some(id), next.run(request).await)
                }
            }
        }
        Ok(Admitted::Browser(session)) => {
            let id = session.token.id.clone();
            request.extensions_mut().insert(session.token.clone());
            request.extensions_mut().insert(session);
            (Some(id), next.run(request).await)
        }
    };
    let status = response.status();
    #[cfg(feature = "grpc")]
    let status = crate::grpc::recorded_status(response.headers()).unwrap_or(status);
    let entry = AuditEntry {
        at: unix_millis(),
        token,
        method: method.to_string(),
        path,
        status: status.as_u16(),
        millis: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    if state.audit.record(entry).is_err() {
        // What isn't recorded isn't answered.
        let why = "the audit log in the workspace can't be written";
        response = ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    }
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(header::HeaderValue::from_static("no-store"));
    if is_program {
        let policy = header::HeaderValue::from_static("default-src 'none'; sandbox");
        headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    } else {
        companion::set_page_headers(headers);
    }
    response
}

/// Refuses requests whose token lacks a scope.
pub(crate) async fn require_scope(State(scope): State<TokenScope>, request: Request, next: Next) -> Response {
    let token = request.extensions().get::<AccessToken>();
    if token.is_some_and(|token| token.allows(scope)) {
        return next.run(request).await;
    }
    let why = format!("the token lacks the scope `{}`", scope.name());
    let challenge = format!("{CHALLENGE}, error=\"insufficient_scope\", scope=\"{}\"", scope.name());
    ProblemDetails::new(StatusCode::FORBIDDEN, why).with_header(header::WWW_AUTHENTICATE, &challenge).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_programs_have_other_paths() {
        for path in ["/api", "/api/v1/notes", "/mcp", "/.well-known/oauth-protected-resource"] {
            assert!(is_program_path(path), "{path}");
        }
        for path in ["/", "/apis", "/notes/tracebook.v1.md", "/mcp.css", "/.well-known.md"] {
            assert!(!is_program_path(path), "{path}");
        }
        let services =
            ["/tracebook.v1.NoteService/ReadNote", "/mixagent.AgentService/SubmitTask", "/grpc.health.v1.Health/Check"];
        for path in services {
            assert_eq!(is_program_path(path), cfg!(feature = "grpc"), "{path}");
        }
    }

    #[test]
    fn only_own_names_and_addresses_are_hosts() {
        let names = ["notes.example".to_owned()];
        for own in ["localhost", "LOCALHOST:7610", "127.0.0.1:7610", "[::1]:7610", "[::1]", "notes.example:1"] {
            assert!(is_own_host(own, &names), "{own}");
        }
        let foreign = ["evil.example", "localhost.evil.example:7610", "127.0.0.1.evil.example", ""];
        let odd =
            ["localhost:7610@evil.example", "localhost:80:80", "[::1]x", "[::1", "[::1]:x", "::1", "localhost:+1"];
        for foreign in foreign.into_iter().chain(odd) {
            assert!(!is_own_host(foreign, &names), "{foreign}");
        }
    }
}
