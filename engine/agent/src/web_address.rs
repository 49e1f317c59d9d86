//! Web addresses for the policy: scheme, host and port from a URL parser, and the network range of an IP address.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// Scheme, host and port of an address, to which a decision about it is bound.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WebOrigin {
    /// The scheme, `http` or `https`.
    pub scheme: String,
    /// Host name in lowercase without a trailing dot, or IP address in its usual form; IPv6 without brackets.
    pub host: String,
    /// The port, even if it's the scheme's default.
    pub port: u16,
}

/// A web address that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebAddress {
    /// Scheme, host and port.
    pub site: WebOrigin,
    /// The host's IP address, if the host is written as one in any form or is `localhost`.
    pub ip: Option<IpAddr>,
    /// The normalized address that's sent.
    pub text: String,
    /// Path and query.
    pub path: String,
}

/// Why an address can't be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebAddressError {
    /// It isn't a valid URL.
    #[error("it isn't a web address ({0})")]
    Invalid(#[source] url::ParseError),
    /// Its scheme is neither `http` nor `https`.
    #[error("only http and https can be fetched")]
    Scheme,
    /// It contains a user name or a password.
    #[error("an address with a name or a password in it is not fetched")]
    Credentials,
    /// It has no host.
    #[error("the address names no host")]
    NoHost,
    /// It has no port.
    #[error("the address names no port")]
    NoPort,
    /// The target of the redirect isn't a valid URL.
    #[error("the redirect leads nowhere ({0})")]
    Redirect(#[source] url::ParseError),
}

impl WebAddress {
    /// Parses an address as browsers do: `0x7f000001`, `2130706433` and `127.1` are IP addresses.
    ///
    /// # Errors
    /// Returns an error if the address is invalid, has another scheme than `http` or `https`, or contains credentials.
    pub fn read(text: &str) -> Result<WebAddress, WebAddressError> {
        let url = Url::parse(text.trim()).map_err(WebAddressError::Invalid)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(WebAddressError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(WebAddressError::Credentials);
        }
        let (host, ip) = match url.host().ok_or(WebAddressError::NoHost)? {
            Host::Domain(name) => (name.trim_end_matches('.').to_ascii_lowercase(), None),
            Host::Ipv4(ip) => (ip.to_string(), Some(IpAddr::V4(ip))),
            Host::Ipv6(ip) => (ip.to_string(), Some(IpAddr::V6(ip))),
        };
        if host.is_empty() {
            return Err(WebAddressError::NoHost);
        }
        let port = url.port_or_known_default().ok_or(WebAddressError::NoPort)?;
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        // `localhost` can only be this machine, so it needs no lookup.
        let ip = ip.or_else(|| is_localhost(&host).then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        Ok(WebAddress {
            site: WebOrigin { scheme: url.scheme().to_owned(), host, port },
            ip,
            text: url.to_string(),
            path,
        })
    }

    /// Returns the address to which a redirect from this address leads.
    ///
    /// # Errors
    /// Returns an error if the target is invalid or can't be fetched.
    pub fn join(&self, to: &str) -> Result<WebAddress, WebAddressError> {
        let joined = Url::parse(&self.text).and_then(|url| url.join(to));
        WebAddress::read(joined.map_err(WebAddressError::Redirect)?.as_str())
    }
}

impl WebOrigin {
    /// Formats the origin for display: `https://docs.rs`, with the port if it isn't the scheme's default.
    pub fn display_text(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.scheme.as_str(), self.port) {
            ("http", 80) | ("https", 443) => format!("{}://{host}", self.scheme),
            (scheme, port) => format!("{scheme}://{host}:{port}"),
        }
    }
}

fn is_localhost(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

/// Returns whether a host is on a list. A leading `.` includes all subdomains. An IP address must be listed itself.
pub fn is_listed(host: &str, list: &[String]) -> bool {
    list.iter().any(|known| {
        let known = known.trim().trim_end_matches('.').to_ascii_lowercase();
        let known = known.trim_matches(['[', ']']);
        let is_ip = host.parse::<IpAddr>().is_ok();
        match known.strip_prefix('.') {
            Some(base) => !is_ip && !base.is_empty() && (host == base || host.ends_with(known)),
            None if is_ip => known.parse::<IpAddr>().is_ok_and(|known| known.to_string() == host),
            None => known == host,
        }
    })
}

/// Returns the name of the range of an IP address outside the public internet; `None` for public ones. The ranges are
/// from IANA's registries of special-purpose addresses (RFC 6890 and its successors).
pub fn special_range_name(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => range_v4(ip),
        IpAddr::V6(ip) => range_v6(ip),
    }
}

/// Formats an IP address with the name of its range: `loopback address 127.0.0.1`.
pub fn describe_ip(ip: IpAddr) -> String {
    match special_range_name(ip) {
        Some(range) => format!("{range} address {}", unmap_ipv4(ip)),
        None => unmap_ipv4(ip).to_string(),
    }
}

/// Returns the IPv4 address that is mapped into an IPv6 address; any other address unchanged.
pub fn unmap_ipv4(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(six) => six.to_ipv4_mapped().map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

fn range_v4(ip: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = ip.octets();
    Some(match (a, b, c) {
        (0, 0, 0) if ip.is_unspecified() => "loopback (unspecified)",
        (0, ..) => "reserved",
        (127, ..) => "loopback",
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => "private",
        (169, 254, _) if ip.octets()[2..] == [169, 254] => "cloud metadata",
        (169, 254, _) => "link-local",
        (100, 64..=127, _) => "shared (carrier)",
        (192, 0, 0) | (192, 88, 99) => "reserved",
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => "documentation",
        (198, 18..=19, _) => "benchmarking",
        (224..=239, ..) => "multicast",
        (240.., ..) => "reserved",
        _ => return None,
    })
}

fn range_v6(ip: Ipv6Addr) -> Option<&'static str> {
    let embedded = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    if let Some(older) = ip.to_ipv4_mapped() {
        return range_v4(older);
    }
    Some(match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => "loopback (unspecified)",
        [0, 0, 0, 0, 0, 0, 0, 1] => "loopback",
        // An address that translates or tunnels an IPv4 address is as public as that one.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => return range_v4(embedded(high, low)),
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] => "cloud metadata",
        [0xfc00..=0xfdff, ..] => "private (unique local)",
        [0xfe80..=0xfebf, ..] => "link-local",
        [0xfec0..=0xfeff, ..] => "private (site-local)",
        [0xff00..=0xffff, ..] => "multicast",
        [0x2001, 0xdb8, ..] | [0x3fff, 0..0x1000, ..] => "documentation",
        [0x2001, 0..0x200, ..] => "reserved",
        [first, ..] if first & 0xe000 == 0x2000 => return None,
        _ => "reserved",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hosts_are_what_they_mean() {
        let cases = [
            ("https://docs.rs/url", "https://docs.rs", None),
            ("HTTP://Docs.RS.:8080/x", "http://docs.rs:8080", None),
            ("http://other/?x=://docs.rs/", "http://other", None),
            ("http://docs.rs\\@evil.com/", "http://docs.rs", None),
            ("http://0x7f000001/", "http://127.0.0.1", Some("loopback address 127.0.0.1")),
            ("http://2130706433/", "http://127.0.0.1", Some("loopback address 127.0.0.1")),
            ("http://0177.0.0.1/", "http://127.0.0.1", Some("loopback address 127.0.0.1")),
            ("http://127.1:81/", "http://127.0.0.1:81", Some("loopback address 127.0.0.1")),
            ("http://0.0.0.0/", "http://0.0.0.0", Some("loopback (unspecified) address 0.0.0.0")),
            ("http://0/", "http://0.0.0.0", Some("loopback (unspecified) address 0.0.0.0")),
            ("http://[::ffff:127.0.0.1]/", "http://[::ffff:127.0.0.1]", Some("loopback address 127.0.0.1")),
            ("http://[::1]/", "http://[::1]", Some("loopback address ::1")),
            ("http://localhost./", "http://localhost", Some("loopback address 127.0.0.1")),
            ("http://a.localhost/", "http://a.localhost", Some("loopback address 127.0.0.1")),
            ("http://１２７.0.0.1/", "http://127.0.0.1", Some("loopback address 127.0.0.1")),
            ("http://169.254.169.254/", "http://169.254.169.254", Some("cloud metadata address 169.254.169.254")),
            ("http://93.184.216.34/", "http://93.184.216.34", Some("93.184.216.34")),
        ];
        for (text, site, ip) in cases {
            let address = WebAddress::read(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(
                (address.site.display_text().as_str(), address.ip.map(describe_ip).as_deref()),
                (site, ip),
                "{text}"
            );
        }
        for text in
            ["file:///etc/passwd", "ftp://x", "http://", "http://a:b@c/", "http://user@c/", "docs.rs", "//docs.rs"]
        {
            assert!(WebAddress::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_have_names() {
        for ip in ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"] {
            assert_eq!(special_range_name(ip.parse().expect("an address")), None, "{ip}");
        }
        for (ip, name) in [
            ("127.0.0.1", "loopback"),
            ("10.1.2.3", "private"),
            ("172.16.0.1", "private"),
            ("192.168.1.1", "private"),
            ("169.254.1.1", "link-local"),
            ("169.254.169.254", "cloud metadata"),
            ("100.64.0.1", "shared (carrier)"),
            ("0.0.0.0", "loopback (unspecified)"),
            ("0.1.2.3", "reserved"),
            ("224.0.0.1", "multicast"),
            ("255.255.255.255", "reserved"),
            ("198.18.0.1", "benchmarking"),
            ("192.0.0.8", "reserved"),
            ("::1", "loopback"),
            ("::", "loopback (unspecified)"),
            ("fe80::1", "link-local"),
            ("fc00::1", "private (unique local)"),
            ("fd00:ec2::254", "cloud metadata"),
            ("ff02::1", "multicast"),
            ("::ffff:10.0.0.1", "private"),
            ("64:ff9b::7f00:1", "loopback"),
            ("2002:7f00:1::", "loopback"),
            ("2001:db8::1", "documentation"),
            ("::127.0.0.1", "reserved"),
        ] {
            assert_eq!(special_range_name(ip.parse().expect("an address")), Some(name), "{ip}");
        }
    }

    #[test]
    fn lists_name_hosts() {
        let list = ["example.org".to_owned(), ".rust-lang.org".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()];
        for host in ["example.org", "doc.rust-lang.org", "rust-lang.org", "127.0.0.1", "::1"] {
            assert!(is_listed(host, &list), "{host}");
        }
        for host in ["www.example.org", "rust-lang.org.evil.com", "notrust-lang.org", "127.0.0.2", "1", ""] {
            assert!(!is_listed(host, &list), "{host}");
        }
        assert!(!is_listed("10.0.0.1", &[".1".to_owned()]) && !is_listed("a", &[".".to_owned(), String::new()]));
    }

    #[test]
    fn redirects_lead_where_they_say() {
        let from = WebAddress::read("https://example.org/a/b?c").expect("an address");
        for (to, joined) in [
            ("https://other.org/x", Some("https://other.org/x")),
            ("//other.org/x", Some("https://other.org/x")),
            ("/x", Some("https://example.org/x")),
            ("x", Some("https://example.org/a/x")),
            ("?d", Some("https://example.org/a/b?d")),
            ("file:///etc/passwd", None),
        ] {
            assert_eq!(from.join(to).ok().map(|address| address.text).as_deref(), joined, "{to}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            if let Ok(address) = WebAddress::read(&text) {
                // The address that's sent has the same origin as the one that was checked.
                let again = WebAddress::read(&address.text);
                prop_assert_eq!(again.map(|again| again.site), Ok(address.site));
            }
        }
    }
}
