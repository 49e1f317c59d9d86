//! Fetches web addresses as Markdown or text, and serves web requests of tools' programs. Only allowed hosts are
//! reached, even by redirects. A name is resolved once, after the user has allowed it, and the connection goes to the
//! checked address. A name therefore can't lead into the user's own network without permission.

use super::ToolWorkspace;
use super::truncate::{store_blob, truncate_output};
use agent::tool_job::{AccessRequest, ToolOutcome, WebAccess};
use agent::web_address::{WebAddress, describe_ip, is_listed, special_range_name, unmap_ipv4};
use anyhow::{Context, anyhow, bail};
use base64::Engine;
use htmd::HtmlToMarkdown;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::BlobRef;
use text::html_size::measure_html;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

/// Maximum number of bytes read from a page.
const MAX_PAGE_BYTES: u64 = 2 << 20;
/// Time limit for a fetch, including redirects.
const FETCH_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_REDIRECTS: usize = 5;
/// Deeper HTML is returned as is, because the converter is recursive.
const MAX_PAGE_DEPTH: usize = 150;
/// Maximum product of elements and depth: some HTML makes a parser repeat the open elements for each unclosed one.
const MAX_PAGE_WORK: usize = 4_000_000;

/// Elements that are dropped from a page.
const SKIPPED_ELEMENTS: [&str; 16] = [
    "script", "style", "meta", "link", "noscript", "template", "iframe", "object", "embed", "svg", "canvas", "form",
    "input", "select", "button", "textarea",
];

/// Why a page couldn't be fetched.
enum FetchError {
    /// The reason, as a sentence.
    Failed(anyhow::Error),
    /// The user must be asked first.
    Asks(AccessRequest),
}

impl From<anyhow::Error> for FetchError {
    fn from(why: anyhow::Error) -> FetchError {
        FetchError::Failed(why)
    }
}

/// Fetches an address that was allowed. `hosts` are those that redirects may lead to without asking; `inside` are the
/// addresses outside of the public internet that were allowed with it.
pub(super) fn run(
    place: &ToolWorkspace,
    url: &str,
    hosts: &[String],
    inside: &[String],
) -> anyhow::Result<ToolOutcome> {
    let first = WebAddress::read(url).map_err(|why| anyhow!("{why}: {url}"))?;
    let inside: Vec<IpAddr> = inside.iter().filter_map(|ip| ip.parse().ok()).collect();
    let gate = |address: &WebAddress| {
        if address.site == first.site {
            return Ok(inside.clone());
        }
        if !is_listed(&address.site.host, hosts) {
            return Err(FetchError::Asks(AccessRequest::Redirect { url: address.text.clone() }));
        }
        Ok(listed_ip(address, hosts))
    };
    let page = match fetch_page(&first, &WebRequestBody::default(), &gate) {
        Ok(page) => page,
        Err(FetchError::Asks(asks)) => return Ok(ToolOutcome { asks: Some(asks), ..ToolOutcome::default() }),
        Err(FetchError::Failed(why)) => return Err(why),
    };
    let kind = page.mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let mut outcome = ToolOutcome { success: (200..300).contains(&page.status), ..ToolOutcome::default() };
    let mut text = String::new();
    if !outcome.success {
        text += &format!("(status {})\n", page.status);
    }
    if page.url != first.text {
        text += &format!("(from {})\n", page.url);
    }
    if matches!(kind.as_str(), "text/html" | "application/xhtml+xml") {
        text += &html_to_markdown(&decode_text(&page.bytes, &page.mime));
    } else if is_text(&kind, &page.bytes) {
        text += &decode_text(&page.bytes, &page.mime);
    } else {
        let blob = store_blob(&page.bytes, &place.blobs)?;
        text += &format!("({kind}, {} bytes)\n", page.bytes.len());
        outcome.attached.push(BlobRef { blob, mime: kind, size: page.bytes.len() as u64 });
    }
    if page.cut {
        text += &format!("\n(only the first {} MB are read)", MAX_PAGE_BYTES >> 20);
    }
    (outcome.text, outcome.whole) = truncate_output(text.as_bytes(), &place.blobs)?;
    Ok(outcome)
}

/// Fetches a small text file from an address in the user's own configuration. Addresses outside of the public internet
/// are reached only if the URL has that IP address, and unencrypted ones only on this machine.
pub(crate) fn fetch_text_file(url: &str, max_bytes: usize) -> anyhow::Result<String> {
    String::from_utf8(fetch_file(url, max_bytes)?).map_err(|_| anyhow!("the file isn't valid UTF-8: {url}"))
}

/// Fetches a file of at most 2 MiB, under the same rules as a text file.
///
/// # Errors
/// Returns a message if it can't be fetched, or is longer than `max_bytes`.
pub fn fetch_file(url: &str, max_bytes: usize) -> anyhow::Result<Vec<u8>> {
    let first = WebAddress::read(url).map_err(|why| anyhow!("{why}: {url}"))?;
    let gate = |address: &WebAddress| {
        let is_here = address.ip.is_some_and(|ip| unmap_ipv4(ip).is_loopback());
        if address.site.scheme != "https" && !is_here {
            let why = anyhow!("use https instead of {}: {}", address.site.scheme, address.text);
            return Err(FetchError::Failed(why));
        }
        Ok(address.ip.filter(|_| address.site == first.site).into_iter().collect())
    };
    let page = fetch_page(&first, &WebRequestBody::default(), &gate).map_err(|halt| match halt {
        FetchError::Failed(why) => why,
        FetchError::Asks(AccessRequest::PrivateAddress { url, .. } | AccessRequest::Redirect { url }) => {
            anyhow!("{url} leads into a private network")
        }
    })?;
    if !(200..300).contains(&page.status) {
        bail!("{} answered with status {}", page.url, page.status);
    }
    if page.cut || page.bytes.len() > max_bytes {
        bail!("the file is longer than {max_bytes} bytes: {}", page.url);
    }
    Ok(page.bytes)
}

/// Why a message wasn't accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WebhookError {
    /// There was no answer, and there may be one later.
    #[error("{0}")]
    Unreachable(String),
    /// The server answered with this status.
    #[error("{host} answered with status {status}")]
    Status {
        /// The host, since the rest of the address may be a secret.
        host: String,
        /// The HTTP status.
        status: u16,
    },
    /// The address isn't one that messages are sent to.
    #[error("{0}")]
    Refused(String),
}

impl WebhookError {
    /// Returns whether the same message may be accepted later.
    pub(crate) fn can_retry(&self) -> bool {
        match self {
            WebhookError::Unreachable(_) => true,
            WebhookError::Status { status, .. } => *status == 429 || *status >= 500,
            WebhookError::Refused(_) => false,
        }
    }
}

/// Posts JSON to an address in the user's own configuration: over https, or unencrypted to this machine. It follows no
/// redirects. Errors name the host only, because the rest of such an address is often a secret.
pub(crate) fn post_json(url: &str, body: &Value, timeout: Duration) -> Result<(), WebhookError> {
    let address = WebAddress::read(url).map_err(|why| WebhookError::Refused(why.to_string()))?;
    let host = address.site.host.clone();
    let is_here = address.ip.is_some_and(|ip| unmap_ipv4(ip).is_loopback());
    if address.site.scheme != "https" && !is_here {
        return Err(WebhookError::Refused(format!("use https for {host}")));
    }
    let allowed: Vec<IpAddr> = address.ip.into_iter().collect();
    let sent = WebRequestBody {
        method: "POST".to_owned(),
        headers: BTreeMap::from([("Content-Type".to_owned(), "application/json".to_owned())]),
        body: Some(base64::engine::general_purpose::STANDARD.encode(body.to_string())),
        timeout: Some(timeout),
    };
    let page = fetch_page(&address, &sent, &|_| Ok(allowed.clone())).map_err(|halt| match halt {
        FetchError::Failed(why) => WebhookError::Unreachable(why.to_string().replace(&address.text, &host)),
        FetchError::Asks(AccessRequest::PrivateAddress { .. } | AccessRequest::Redirect { .. }) => {
            WebhookError::Refused(format!("{host} leads into a private network; give the address itself"))
        }
    })?;
    match page.status {
        200..=299 => Ok(()),
        status => Err(WebhookError::Status { host, status }),
    }
}

/// Returns the address's IP if the list of hosts contains that IP itself.
fn listed_ip(address: &WebAddress, hosts: &[String]) -> Vec<IpAddr> {
    let ip = address.ip.filter(|ip| ip.to_string() == address.site.host && is_listed(&address.site.host, hosts));
    ip.into_iter().collect()
}

/// A web request of a tool's program, as JSON.
#[derive(Deserialize)]
struct WebRequest {
    url: String,
    #[serde(flatten)]
    sent: WebRequestBody,
}

/// Method, headers and body of a request.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WebRequestBody {
    method: String,
    headers: BTreeMap<String, String>,
    /// The body, encoded in Base64.
    body: Option<String>,
    /// Time limit; `None` for [`FETCH_TIMEOUT`].
    #[serde(skip)]
    timeout: Option<Duration>,
}

/// Performs a web request of a tool's program under the policy of `web`. The answer is JSON: the response, or `error`.
pub(super) fn answer_web_request(request: &str, web: &WebAccess) -> Value {
    let gate = |address: &WebAddress| {
        let host = &address.site.host;
        if web.restricted && !is_listed(host, &web.hosts) {
            return Err(anyhow!("{host} is not on the list of hosts (allowed_hosts)").into());
        }
        Ok(listed_ip(address, &web.hosts))
    };
    let read = serde_json::from_str::<WebRequest>(request).map_err(|error| anyhow!("no request: {error}"));
    let page = read.and_then(|request| {
        let address = WebAddress::read(&request.url)?;
        fetch_page(&address, &request.sent, &gate).map_err(|halt| match halt {
            FetchError::Failed(why) => why,
            // Allowing a program as a whole doesn't allow addresses that weren't approved.
            FetchError::Asks(AccessRequest::PrivateAddress { url, ips }) => {
                let found: Vec<String> = ips.iter().filter_map(|ip| Some(describe_ip(ip.parse().ok()?))).collect();
                anyhow!(
                    "{url} leads to the {}: tools reach it only where allowed_hosts names that address",
                    found.join(", the ")
                )
            }
            FetchError::Asks(AccessRequest::Redirect { url }) => anyhow!("it redirects to {url}"),
        })
    });
    match page {
        Ok(page) => json!({
            "status": page.status,
            "url": page.url,
            "headers": page.headers,
            "body": base64::engine::general_purpose::STANDARD.encode(&page.bytes),
        }),
        Err(error) => json!({"error": error.to_string()}),
    }
}

/// A fetched page.
struct FetchedPage {
    /// The page's URL, after redirects.
    url: String,
    status: u16,
    mime: String,
    headers: Vec<(String, String)>,
    bytes: Vec<u8>,
    /// Whether the page is longer than what was read.
    cut: bool,
}

/// Returns whether a header belongs to the transport, such as a hop-by-hop header.
fn is_transport_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    matches!(name.as_str(), "host" | "content-length" | "transfer-encoding" | "connection" | "upgrade" | "te")
        || name.starts_with("proxy-")
}

/// Fetches an address, following redirects. `gate` is called before each connection, and returns the addresses outside
/// of the public internet that may be reached there.
fn fetch_page(
    first: &WebAddress,
    sent: &WebRequestBody,
    gate: &dyn Fn(&WebAddress) -> Result<Vec<IpAddr>, FetchError>,
) -> Result<FetchedPage, FetchError> {
    let begun = Instant::now();
    let mut at = first.clone();
    let looks = matches!(sent.method.as_str(), "" | "GET" | "HEAD");
    for _ in 0..=MAX_REDIRECTS {
        let allowed = gate(&at)?;
        let host = at.site.host.clone();
        let most = sent.timeout.unwrap_or(FETCH_TIMEOUT);
        let left = most.checked_sub(begun.elapsed()).with_context(|| timeout_message(&host))?;
        let config = Config::builder()
            .timeout_global(Some(left))
            .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build())
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            // A proxy would resolve names itself.
            .proxy(None)
            .user_agent(concat!("Tracebook/", env!("CARGO_PKG_VERSION")))
            .accept("text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.5")
            .build();
        let found: Arc<Mutex<Vec<IpAddr>>> = Arc::default();
        let looked = PublicResolver { inner: DefaultResolver::default(), allowed, found: found.clone() };
        let agent = ureq::Agent::with_parts(config, DefaultConnector::default(), looked);
        let method = if sent.method.is_empty() { "GET" } else { sent.method.as_str() };
        let mut request = ureq::http::Request::builder().method(method).uri(&at.text);
        // Headers for one site aren't sent to another.
        let own = |_: &(&String, &String)| at.site == first.site;
        for (name, value) in sent.headers.iter().filter(own).filter(|(name, _)| !is_transport_header(name)) {
            request = request.header(name, value);
        }
        let body = sent.body.as_ref().map(|body| base64::engine::general_purpose::STANDARD.decode(body)).transpose();
        let body = body.map_err(|error| anyhow!("the body is no base64 ({error})"))?;
        let wrong = |error: ureq::http::Error| anyhow!("that cannot be sent ({error}): {}", at.text);
        let answered = match body {
            Some(body) => agent.run(request.body(body).map_err(wrong)?),
            None => agent.run(request.body(()).map_err(wrong)?),
        };
        let mut response = match answered {
            Ok(response) => response,
            Err(error) => {
                let found = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
                if is_refused(&error) && !found.is_empty() {
                    let ips = found.iter().map(ToString::to_string).collect();
                    return Err(FetchError::Asks(AccessRequest::PrivateAddress { url: at.text, ips }));
                }
                return Err(anyhow!(error_message(&host, &error)).into());
            }
        };
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let status = response.status().as_u16();
        if matches!(status, 301 | 302 | 303 | 307 | 308)
            && let Some(next) = header("location").filter(|_| looks)
        {
            at = at.join(&next).map_err(anyhow::Error::from)?;
            continue;
        }
        let mime = header("content-type").unwrap_or_default();
        let named = |(name, value): (&ureq::http::HeaderName, &ureq::http::HeaderValue)| {
            Some((name.to_string(), value.to_str().ok()?.to_owned()))
        };
        let headers = response.headers().iter().filter_map(named).collect();
        let mut bytes = Vec::new();
        let body = response.body_mut().as_reader();
        body.take(MAX_PAGE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| anyhow!("{host} broke off ({error})"))?;
        let cut = bytes.len() as u64 > MAX_PAGE_BYTES;
        bytes.truncate(usize::try_from(MAX_PAGE_BYTES).unwrap_or(usize::MAX));
        return Ok(FetchedPage { url: at.text, status, mime, headers, bytes, cut });
    }
    Err(anyhow!("more than {MAX_REDIRECTS} redirects: {}", first.text).into())
}

fn timeout_message(host: &str) -> String {
    format!("{host} has not answered within {} s", FETCH_TIMEOUT.as_secs())
}

/// Converts a connection error to a message.
fn error_message(host: &str, error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => timeout_message(host),
        ureq::Error::HostNotFound => format!("there is no host {host}, or no network"),
        error => format!("{host} could not be reached ({error})"),
    }
}

fn is_refused(error: &ureq::Error) -> bool {
    matches!(error, ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// Resolver that drops addresses outside of the public internet unless they were allowed. The connection goes to the
/// remaining ones.
#[derive(Debug)]
struct PublicResolver {
    inner: DefaultResolver,
    /// Addresses that were allowed.
    allowed: Vec<IpAddr>,
    /// Addresses that were dropped.
    found: Arc<Mutex<Vec<IpAddr>>>,
}

impl Resolver for PublicResolver {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let all = self.inner.resolve(uri, config, timeout)?;
        let mut open = self.empty();
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        for address in all.iter() {
            let ip = unmap_ipv4(address.ip());
            if special_range_name(ip).is_none() || self.allowed.iter().any(|allowed| unmap_ipv4(*allowed) == ip) {
                open.push(*address);
            } else if !found.contains(&ip) {
                found.push(ip);
            }
        }
        if open.is_empty() {
            return Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied).into());
        }
        Ok(open)
    }
}

fn is_text(kind: &str, bytes: &[u8]) -> bool {
    let known = kind.starts_with("text/")
        || kind.ends_with("+xml")
        || kind.ends_with("+json")
        || matches!(kind, "application/json" | "application/xml" | "application/javascript" | "application/yaml");
    known || (kind.is_empty() && std::str::from_utf8(bytes).is_ok())
}

/// Decodes bytes by the declared charset.
fn decode_text(bytes: &[u8], mime: &str) -> String {
    let charset = mime.split(';').skip(1).find_map(|part| part.trim().strip_prefix("charset="));
    let label = charset.unwrap_or("utf-8").trim_matches('"');
    let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap_or(encoding_rs::UTF_8);
    encoding.decode(bytes).0.into_owned()
}

/// Converts HTML to Markdown, or returns it as is if it's nested too deeply.
fn html_to_markdown(html: &str) -> String {
    let (depth, tags) = measure_html(html);
    if depth > MAX_PAGE_DEPTH || depth.saturating_mul(tags) > MAX_PAGE_WORK {
        return html.to_owned();
    }
    let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED_ELEMENTS.to_vec()).build();
    let made = catch_unwind(AssertUnwindSafe(|| converter.convert(html)));
    match made {
        Ok(Ok(text)) if !text.trim().is_empty() => text,
        _ => html.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_becomes_markdown_however_deep() {
        let text = html_to_markdown(
            "<html><head><title>T</title><style>a{}</style></head><body><h1>One</h1><script>x()</script>\
                             <p>two <b>three</b> <a href='https://x.org'>four</a></p></body></html>",
        );
        assert!(text.contains("# One") && text.contains("two **three** [four](https://x.org)"), "{text}");
        assert!(!text.contains("x()") && !text.contains("a{}"), "{text}");
        let deep = "<div>".repeat(100_000);
        assert_eq!(html_to_markdown(&deep), deep);
        assert_eq!(decode_text(b"gr\xfc\xdfe", "text/plain; charset=iso-8859-1"), "grüße");
    }
}
