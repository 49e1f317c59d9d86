//! Fetch: an address of the web, as Markdown or text. Only allowed hosts are reached, also by redirects; a name is
//! looked up once, and the connection goes to the address that was looked at, so that no name leads into the user's
//! own network.

use super::Place;
use super::shown::{keep, shown};
use engine::agent::job::Outcome;
use htmd::HtmlToMarkdown;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use store::BlobRef;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

/// Bytes that are read.
const LARGEST: u64 = 2 << 20;
/// For all of it.
const TIME: Duration = Duration::from_secs(20);
const REDIRECTS: usize = 5;
/// Deeper HTML is shown as it is: what reads it calls itself for each level.
const DEEPEST: usize = 150;
/// Elements times depth: some HTML makes a reader repeat what is open for each that is not closed.
const WORK: usize = 4_000_000;

/// Elements of which nothing is taken over.
const NEVER: [&str; 16] = [
    "script", "style", "meta", "link", "noscript", "template", "iframe", "object", "embed", "svg", "canvas", "form",
    "input", "select", "button", "textarea",
];

pub(super) fn run(place: &Place, url: &str, hosts: &[String]) -> Result<Outcome, String> {
    let page = get(url, hosts)?;
    let kind = page.mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let mut outcome = Outcome { success: (200..300).contains(&page.status), ..Outcome::default() };
    let mut text = String::new();
    if !outcome.success {
        text += &format!("(status {})\n", page.status);
    }
    if page.url != url {
        text += &format!("(from {})\n", page.url);
    }
    if matches!(kind.as_str(), "text/html" | "application/xhtml+xml") {
        text += &markdown(&decoded(&page.bytes, &page.mime));
    } else if is_text(&kind, &page.bytes) {
        text += &decoded(&page.bytes, &page.mime);
    } else {
        let blob = keep(&page.bytes, &place.blobs)?;
        text += &format!("({kind}, {} bytes)\n", page.bytes.len());
        outcome.attached.push(BlobRef { blob, mime: kind, size: page.bytes.len() as u64 });
    }
    if page.cut {
        text += &format!("\n(only the first {} MB are read)", LARGEST >> 20);
    }
    (outcome.text, outcome.whole) = shown(text.as_bytes(), &place.blobs)?;
    Ok(outcome)
}

/// What came.
struct Page {
    /// From where, after redirects.
    url: String,
    status: u16,
    mime: String,
    bytes: Vec<u8>,
    /// Whether there is more.
    cut: bool,
}

fn get(url: &str, hosts: &[String]) -> Result<Page, String> {
    let begun = Instant::now();
    let mut at = url.to_owned();
    for _ in 0..=REDIRECTS {
        let uri: Uri = at.parse().map_err(|error| format!("that is no address ({error}): {at}"))?;
        let host = allowed(&uri, hosts)?;
        let left = TIME.checked_sub(begun.elapsed()).ok_or_else(|| late(&host))?;
        let config = Config::builder()
            .timeout_global(Some(left))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            // A proxy would look names up by itself.
            .proxy(None)
            .user_agent(concat!("Tracebook/", env!("CARGO_PKG_VERSION")))
            .accept("text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.5")
            .build();
        let local = is_local(&host);
        let looked = Looked { inner: DefaultResolver::default(), local };
        let agent = ureq::Agent::with_parts(config, DefaultConnector::default(), looked);
        let mut response = agent.get(&at).call().map_err(|error| said(&host, &error))?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let status = response.status().as_u16();
        if matches!(status, 301 | 302 | 303 | 307 | 308)
            && let Some(next) = header("location")
        {
            at = joined(&uri, &next)?;
            continue;
        }
        let mime = header("content-type").unwrap_or_default();
        let mut bytes = Vec::new();
        let body = response.body_mut().as_reader();
        body.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| format!("{host} broke off ({error})"))?;
        let cut = bytes.len() as u64 > LARGEST;
        bytes.truncate(usize::try_from(LARGEST).unwrap_or(usize::MAX));
        return Ok(Page { url: at, status, mime, bytes, cut });
    }
    Err(format!("more than {REDIRECTS} redirects: {url}"))
}

fn late(host: &str) -> String {
    format!("{host} has not answered within {} s", TIME.as_secs())
}

/// An error in our words.
fn said(host: &str, error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => late(host),
        ureq::Error::HostNotFound => format!("there is no host {host}, or no network"),
        ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            format!("{host} leads into a private network, where tools fetch nothing")
        }
        error => format!("{host} could not be reached ({error})"),
    }
}

/// The host of an address, if it may be reached.
fn allowed(uri: &Uri, hosts: &[String]) -> Result<String, String> {
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(format!("only http and https addresses are fetched: {uri}"));
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("an address with a name or a password in it is not fetched".to_owned());
    }
    let host = uri.host().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    let fits = |pattern: &String| {
        let pattern = pattern.trim_end_matches('.').to_ascii_lowercase();
        // A name that can only be local is reached if it is named itself.
        host == pattern
            || (pattern.len() > 1 && pattern.starts_with('.') && host.ends_with(&pattern) && !is_local(&host))
    };
    match !host.is_empty() && hosts.iter().any(fits) {
        true => Ok(host),
        false => Err(format!("{host} is not among the hosts that may be reached")),
    }
}

/// Whether a host can only be in the user's own network: its name is no public one, or it is an address.
fn is_local(host: &str) -> bool {
    let bare = host.trim_matches(['[', ']']);
    bare.parse::<IpAddr>().is_ok()
        || !bare.contains('.')
        || [".localhost", ".local", ".internal", ".home.arpa", ".lan"].iter().any(|end| bare.ends_with(end))
}

/// Where a redirect leads.
fn joined(from: &Uri, to: &str) -> Result<String, String> {
    let wrong = || format!("the redirect leads nowhere: {to}");
    if to.contains("://") {
        return Ok(to.to_owned());
    }
    let (scheme, authority) = from.scheme_str().zip(from.authority()).ok_or_else(wrong)?;
    if let Some(rest) = to.strip_prefix("//") {
        return Ok(format!("{scheme}://{rest}"));
    }
    let above = from.path().rsplit_once('/').map_or("", |(above, _)| above);
    Ok(match to.chars().next() {
        Some('/') => format!("{scheme}://{authority}{to}"),
        Some('?') => format!("{scheme}://{authority}{}{to}", from.path()),
        _ => format!("{scheme}://{authority}{above}/{to}"),
    })
}

/// Looks names up, and leaves out addresses of private networks. The connection goes to what is left.
#[derive(Debug)]
struct Looked {
    inner: DefaultResolver,
    /// Whether the user named a host of their own network.
    local: bool,
}

impl Resolver for Looked {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.inner.resolve(uri, config, timeout)?;
        let mut open = self.empty();
        for address in found.iter().filter(|address| self.local || is_public(address.ip())) {
            open.push(*address);
        }
        if open.is_empty() {
            return Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied).into());
        }
        Ok(open)
    }
}

/// Whether an address lies in the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// By IANA's registry of special addresses (RFC 6890 and its successors).
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(a == 0
        || a >= 224 // multicast, reserved, broadcast
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local() // also where clouds hand out keys
        || address.is_documentation()
        || (a == 100 && (64..128).contains(&b)) // carriers
        || (a, b, c) == (192, 0, 0)
        || (a, b, c) == (192, 88, 99)
        || (a == 198 && (18..20).contains(&b))) // measurements
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    // Only 2000::/3 is given out; what wraps or tunnels an address of the older kind is as public as that.
    if let Some(older) = address.to_ipv4_mapped() {
        return is_public_v4(older);
    }
    match parts {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))),
        [0x2002, high, low, ..] => is_public_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))),
        [0x2001, 0..0x200, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..0x1000, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

fn is_text(kind: &str, bytes: &[u8]) -> bool {
    let known = kind.starts_with("text/")
        || kind.ends_with("+xml")
        || kind.ends_with("+json")
        || matches!(kind, "application/json" | "application/xml" | "application/javascript" | "application/yaml");
    known || (kind.is_empty() && std::str::from_utf8(bytes).is_ok())
}

/// Bytes as text, by the charset that was told.
fn decoded(bytes: &[u8], mime: &str) -> String {
    let charset = mime.split(';').skip(1).find_map(|part| part.trim().strip_prefix("charset="));
    let label = charset.unwrap_or("utf-8").trim_matches('"');
    let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap_or(encoding_rs::UTF_8);
    encoding.decode(bytes).0.into_owned()
}

/// HTML as Markdown; as it is where it is too deep to be read.
fn markdown(html: &str) -> String {
    let (depth, tags) = measured(html);
    if depth > DEEPEST || depth.saturating_mul(tags) > WORK {
        return html.to_owned();
    }
    let converter = HtmlToMarkdown::builder().skip_tags(NEVER.to_vec()).build();
    let made = catch_unwind(AssertUnwindSafe(|| converter.convert(html)));
    match made {
        Ok(Ok(text)) if !text.trim().is_empty() => text,
        _ => html.to_owned(),
    }
}

/// How deep elements stand inside each other at most, and how many there are.
fn measured(html: &str) -> (usize, usize) {
    // They end where the next begins, or at once.
    const LOOSE: [&str; 17] = [
        "p", "li", "td", "th", "tr", "dt", "dd", "option", "br", "hr", "img", "meta", "link", "input", "col", "source",
        "wbr",
    ];
    let (mut depth, mut most, mut tags) = (0_usize, 0, 0);
    for part in html.split('<').skip(1) {
        let (closes, part) = part.strip_prefix('/').map_or((false, part), |part| (true, part));
        let end = part.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(part.len());
        let name = part[..end].to_ascii_lowercase();
        if name.is_empty() || LOOSE.contains(&name.as_str()) {
            continue;
        }
        tags += 1;
        depth = if closes { depth.saturating_sub(1) } else { depth + 1 };
        most = most.max(depth);
    }
    (most, tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_known() {
        let public = ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"];
        assert!(public.iter().all(|address| is_public(address.parse().expect("an address"))));
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "192.0.0.8",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "::127.0.0.1",
        ] {
            assert!(!is_public(address.parse().expect("an address")), "{address}");
        }
    }

    #[test]
    fn hosts_are_allowed_by_name() {
        let hosts =
            ["example.org".to_owned(), ".rust-lang.org".to_owned(), "127.0.0.1".to_owned(), ".local".to_owned()];
        let allowed = |url: &str| allowed(&url.parse().expect("an address"), &hosts).is_ok();
        for url in
            ["https://example.org/a?b", "http://EXAMPLE.org:81/", "https://doc.rust-lang.org", "http://127.0.0.1:8/"]
        {
            assert!(allowed(url), "{url}");
        }
        for url in [
            "https://www.example.org",
            "https://rust-lang.org.evil.com",
            "https://notrust-lang.org",
            "https://rust-lang.org",
            "ftp://example.org",
            "https://user:word@example.org",
            "http://127.0.0.2/",
            "http://printer.local/",
            "/etc/passwd",
        ] {
            assert!(!allowed(url), "{url}");
        }
    }

    #[test]
    fn redirects_lead_where_they_say() {
        let from: Uri = "https://example.org/a/b?c".parse().expect("an address");
        for (to, joined) in [
            ("https://other.org/x", "https://other.org/x"),
            ("//other.org/x", "https://other.org/x"),
            ("/x", "https://example.org/x"),
            ("x", "https://example.org/a/x"),
            ("?d", "https://example.org/a/b?d"),
        ] {
            assert_eq!(super::joined(&from, to).as_deref(), Ok(joined));
        }
    }

    #[test]
    fn html_becomes_markdown_however_deep() {
        let text = markdown(
            "<html><head><title>T</title><style>a{}</style></head><body><h1>One</h1><script>x()</script>\
                             <p>two <b>three</b> <a href='https://x.org'>four</a></p></body></html>",
        );
        assert!(text.contains("# One") && text.contains("two **three** [four](https://x.org)"), "{text}");
        assert!(!text.contains("x()") && !text.contains("a{}"), "{text}");
        let deep = "<div>".repeat(100_000);
        assert_eq!(markdown(&deep), deep);
        assert_eq!(decoded(b"gr\xfc\xdfe", "text/plain; charset=iso-8859-1"), "grüße");
    }
}
