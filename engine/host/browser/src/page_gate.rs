//! The way of a tab's pages to the network: a SOCKS 5 proxy (RFC 1928) that resolves names itself, and connects to
//! exactly the address that it has checked. A name can't lead into the user's own network, however often it changes.

use crate::devtools_pipe::POLL_INTERVAL;
use crate::{MAX_CONNECTION_BYTES, MAX_TAB_BYTES, PageOrigin, PagePolicy};
use agent::web_address::unmap_ipv4;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of connections of a tab at the same time.
const MAX_CONNECTIONS: usize = 128;
/// How long a connection may take to be made, or its request to arrive.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of addresses of a host that are tried.
const MAX_TRIED_ADDRESSES: usize = 4;
/// Maximum number of remarks that are kept until they're read.
const MAX_REMARKS: usize = 10;

/// Finds the addresses of a host, each with the port.
pub(crate) type HostResolver = Arc<dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// An origin that pages may be opened at, and the addresses outside the public internet that it may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenOrigin {
    pub(crate) origin: PageOrigin,
    pub(crate) inside: Vec<IpAddr>,
}

/// The proxy of a tab.
pub(crate) struct PageGate {
    policy: Arc<dyn PagePolicy>,
    resolver: HostResolver,
    port: u16,
    /// The origins that the tab shows, or is about to show.
    shown: Mutex<Vec<OpenOrigin>>,
    received: AtomicU64,
    connections: AtomicUsize,
    is_closed: AtomicBool,
    remarks: Mutex<Vec<String>>,
}

/// Why no connection is made, as SOCKS numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GateRefusal {
    Forbidden = 2,
    NoHost = 4,
    NoAnswer = 5,
    NoSuchCommand = 7,
}

impl PageGate {
    /// Starts a proxy on a free port of this machine.
    pub(crate) fn open(policy: Arc<dyn PagePolicy>, resolver: HostResolver) -> io::Result<Arc<PageGate>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let gate = Arc::new(PageGate {
            policy,
            resolver,
            port: listener.local_addr()?.port(),
            shown: Mutex::default(),
            received: AtomicU64::new(0),
            connections: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
            remarks: Mutex::default(),
        });
        let accepting = gate.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.is_closed.load(Ordering::Acquire) {
                    return;
                }
                match stream {
                    Ok(stream) => accepting.clone().accept(stream),
                    // No descriptors are left, for now.
                    Err(_) => std::thread::sleep(POLL_INTERVAL),
                }
            }
        });
        Ok(gate)
    }

    /// Returns the address of the proxy for the browser.
    pub(crate) fn address(&self) -> String {
        format!("socks5://127.0.0.1:{}", self.port)
    }

    /// Stops taking connections.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        // Wakes the thread that accepts; if this fails, the next connection does.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }

    fn shown(&self) -> MutexGuard<'_, Vec<OpenOrigin>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the tab reach an origin that it's about to show.
    pub(crate) fn let_in(&self, origin: OpenOrigin) {
        let mut shown = self.shown();
        if !shown.contains(&origin) {
            shown.push(origin);
        }
    }

    /// Sets the only origin that the tab shows now.
    pub(crate) fn show_only(&self, origin: Option<OpenOrigin>) {
        *self.shown() = origin.into_iter().collect();
    }

    fn remark(&self, text: String) {
        let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        if remarks.len() < MAX_REMARKS && !remarks.contains(&text) {
            remarks.push(text);
        }
    }

    /// Takes what was remarked since the last time.
    pub(crate) fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut *self.remarks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn accept(self: Arc<PageGate>, stream: TcpStream) {
        if self.connections.fetch_add(1, Ordering::AcqRel) >= MAX_CONNECTIONS {
            self.connections.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        std::thread::spawn(move || {
            // Broken connections are the browser's own affair.
            let _ = self.serve(stream);
            self.connections.fetch_sub(1, Ordering::AcqRel);
        });
    }

    fn serve(&self, mut browser: TcpStream) -> io::Result<()> {
        browser.set_read_timeout(Some(CONNECT_TIMEOUT))?;
        let Some((host, port)) = read_request(&mut browser)? else {
            return refuse(&mut browser, GateRefusal::NoSuchCommand);
        };
        let site = match self.connect(&host, port) {
            Ok(site) => site,
            Err(why) => return refuse(&mut browser, why),
        };
        browser.set_read_timeout(None)?;
        browser.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
        let (mut from_browser, mut to_site) = (browser.try_clone()?, site.try_clone()?);
        let upward = std::thread::spawn(move || {
            // Each direction ends by itself.
            let _ = copy_up_to(&mut from_browser, &mut to_site, MAX_CONNECTION_BYTES, |_| true);
            let _ = to_site.shutdown(Shutdown::Write);
        });
        let mut from_site = site;
        let copied = copy_up_to(&mut from_site, &mut browser, MAX_CONNECTION_BYTES, |count| {
            self.received.fetch_add(count, Ordering::AcqRel) + count <= MAX_TAB_BYTES
        });
        if let Ok(false) = copied {
            self.remark(format!(
                "What {host} sent was cut off: a page gets {} MB over one connection and {} MB in all.",
                MAX_CONNECTION_BYTES >> 20,
                MAX_TAB_BYTES >> 20
            ));
        }
        // Already closed if the other side did it.
        let _ = browser.shutdown(Shutdown::Both);
        let _ = from_site.shutdown(Shutdown::Both);
        let _ = upward.join();
        Ok(())
    }

    /// Connects to a host if the page may reach it.
    fn connect(&self, host: &str, port: u16) -> Result<TcpStream, GateRefusal> {
        if self.received.load(Ordering::Acquire) > MAX_TAB_BYTES {
            return Err(GateRefusal::Forbidden);
        }
        if !self.policy.may_load_from(host) {
            self.remark(format!("The page could not load from {host}, which is not on the list of hosts."));
            return Err(GateRefusal::Forbidden);
        }
        // Once: what is checked below is what is connected to.
        let found = (self.resolver)(host, port).map_err(|_| GateRefusal::NoHost)?;
        let inside: Vec<IpAddr> = {
            let shown = self.shown();
            let here = shown.iter().filter(|open| open.origin.host == host && open.origin.port == port);
            here.flat_map(|open| open.inside.iter().map(|ip| unmap_ipv4(*ip))).collect()
        };
        let may_reach = |ip: IpAddr| self.policy.is_public(ip) || inside.contains(&unmap_ipv4(ip));
        let open: Vec<SocketAddr> = found.iter().copied().filter(|address| may_reach(address.ip())).collect();
        if open.is_empty() {
            self.remark(format!("The page tried to reach {host}:{port} inside your network. That was refused."));
            return Err(GateRefusal::Forbidden);
        }
        let tried = open.iter().take(MAX_TRIED_ADDRESSES);
        let connected = tried.filter_map(|address| TcpStream::connect_timeout(address, CONNECT_TIMEOUT).ok()).next();
        connected.ok_or(GateRefusal::NoAnswer)
    }
}

/// Resolves a host to its addresses, as the system does.
pub(crate) fn resolve_by_system(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

/// Reads the greeting and the request of a client. Returns host and port; `None` if it wants something else than a
/// connection.
fn read_request(stream: &mut TcpStream) -> io::Result<Option<(String, u16)>> {
    let mut head = [0; 2];
    stream.read_exact(&mut head)?;
    let mut methods = vec![0; usize::from(head[1])];
    stream.read_exact(&mut methods)?;
    if head[0] != 5 || !methods.contains(&0) {
        stream.write_all(&[5, 0xff])?;
        return Err(io::ErrorKind::InvalidData.into());
    }
    stream.write_all(&[5, 0])?;
    let mut request = [0; 4];
    stream.read_exact(&mut request)?;
    let host = match request[3] {
        1 => {
            let mut bytes = [0; 4];
            stream.read_exact(&mut bytes)?;
            Ipv4Addr::from(bytes).to_string()
        }
        3 => {
            let mut length = [0];
            stream.read_exact(&mut length)?;
            let mut name = vec![0; usize::from(length[0])];
            stream.read_exact(&mut name)?;
            String::from_utf8(name).map_err(|_| io::ErrorKind::InvalidData)?
        }
        4 => {
            let mut bytes = [0; 16];
            stream.read_exact(&mut bytes)?;
            Ipv6Addr::from(bytes).to_string()
        }
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    let mut port = [0; 2];
    stream.read_exact(&mut port)?;
    let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    Ok((request[0] == 5 && request[1] == 1 && !host.is_empty()).then_some((host, u16::from_be_bytes(port))))
}

fn refuse(stream: &mut TcpStream, why: GateRefusal) -> io::Result<()> {
    stream.write_all(&[5, why as u8, 0, 1, 0, 0, 0, 0, 0, 0])
}

/// Copies until the end, or until `most` bytes or `may_go_on` says no. Returns whether it came to the end.
fn copy_up_to(
    from: &mut TcpStream,
    to: &mut TcpStream,
    most: u64,
    may_go_on: impl Fn(u64) -> bool,
) -> io::Result<bool> {
    let mut bytes = [0; 16 << 10];
    let mut copied = 0;
    loop {
        let count = from.read(&mut bytes)?;
        if count == 0 {
            return Ok(true);
        }
        copied += count as u64;
        if copied > most || !may_go_on(count as u64) {
            return Ok(false);
        }
        to.write_all(bytes.get(..count).unwrap_or_default())?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the range of documentation is public, and one host is named.
    struct TestPolicy;

    impl PagePolicy for TestPolicy {
        fn origin_of(&self, _: &str) -> Option<PageOrigin> {
            None
        }

        fn is_public(&self, ip: IpAddr) -> bool {
            ip == IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))
        }

        fn may_load_from(&self, host: &str) -> bool {
            host != "unlisted.example"
        }

        fn listed_addresses(&self, _: &PageOrigin) -> Option<Vec<IpAddr>> {
            None
        }
    }

    fn ask(gate: &PageGate, request: &[u8]) -> (TcpStream, [u8; 2]) {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, gate.port)).expect("listens");
        stream.write_all(&[5, 1, 0]).expect("sent");
        stream.write_all(request).expect("sent");
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).expect("answers");
        (stream, [answer[2], answer[3]])
    }

    fn named(host: &str, port: u16) -> Vec<u8> {
        let length = u8::try_from(host.len()).expect("short");
        [&[5, 1, 0, 3, length], host.as_bytes(), &port.to_be_bytes()].concat()
    }

    #[test]
    fn only_the_shown_origin_reaches_this_machine() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = server.local_addr().expect("bound").port();
        std::thread::spawn(move || {
            for stream in server.incoming() {
                let mut stream = stream.expect("a client");
                // Endlessly; the proxy hangs up.
                while stream.write_all(&[7; 4096]).is_ok() {}
            }
        });
        let gate = PageGate::open(Arc::new(TestPolicy), Arc::new(resolve_by_system)).expect("opened");
        let four = [&[5, 1, 0, 1, 127, 0, 0, 1][..], &port.to_be_bytes()].concat();
        let six = [&[5, 1, 0, 4][..], &Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets(), &port.to_be_bytes()].concat();
        for request in [&four, &six, &named("localhost", port), &named("LOCALHOST.", port), &named("127.0.0.1", port)] {
            assert_eq!(ask(&gate, request).1, [5, 2], "{request:?}");
        }
        assert!(gate.take_remarks().iter().any(|remark| remark.contains("inside your network")));
        assert_eq!(ask(&gate, &named("unlisted.example", 80)).1, [5, 2]);
        assert_eq!(
            gate.take_remarks(),
            ["The page could not load from unlisted.example, which is not on the list of hosts."]
        );
        assert_eq!(ask(&gate, &named("no-such-host.invalid", 80)).1, [5, 4]);
        // Binding, and names that are no text.
        assert_eq!(ask(&gate, &[5, 2, 0, 1, 127, 0, 0, 1, 0, 80]).1, [5, 7]);

        let origin = PageOrigin { scheme: "http".to_owned(), host: "localhost".to_owned(), port };
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        gate.let_in(OpenOrigin { origin: origin.clone(), inside: vec![here] });
        assert_eq!(ask(&gate, &four).1, [5, 2], "the origin is another one");
        let (mut stream, answer) = ask(&gate, &named("localhost", port));
        assert_eq!(answer, [5, 0]);
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("an end");
        assert!(all.len() as u64 <= MAX_CONNECTION_BYTES + 8, "{}", all.len());
        assert!(gate.take_remarks().concat().contains("cut off"));
        gate.show_only(None);
        assert_eq!(ask(&gate, &named("localhost", port)).1, [5, 2]);
        gate.close();
    }

    #[test]
    fn the_address_of_a_changing_name_is_checked_at_each_connection() {
        let (first, second) = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2));
        let server = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
        let port = server.local_addr().expect("bound").port();
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for stream in server.incoming() {
                let reached = stream.expect("a client").local_addr().expect("bound").ip();
                _ = tell.send(reached); // the test may be over
            }
        });
        // One answer for each look-up. A second look-up for one connection would take the next one's answer.
        let answers = Mutex::new(vec![vec![second, first], vec![second], vec![first]]);
        let resolver = move |_: &str, port: u16| -> io::Result<Vec<SocketAddr>> {
            let answer = answers.lock().expect("no panic").pop().ok_or(io::ErrorKind::NotFound)?;
            Ok(answer.into_iter().map(|ip| SocketAddr::from((ip, port))).collect())
        };
        let gate = PageGate::open(Arc::new(TestPolicy), Arc::new(resolver)).expect("opened");
        let host = "rebind.example";
        let origin = PageOrigin { scheme: "http".to_owned(), host: host.to_owned(), port };
        gate.let_in(OpenOrigin { origin, inside: vec![IpAddr::V4(first)] });
        let (_open, answer) = ask(&gate, &named(host, port));
        assert_eq!(answer, [5, 0], "the address that was approved");
        assert_eq!(ask(&gate, &named(host, port)).1, [5, 2], "another address of this machine");
        assert!(gate.take_remarks().concat().contains("inside your network"));
        let (_mixed, answer) = ask(&gate, &named(host, port));
        assert_eq!(answer, [5, 0], "the approved one of two");
        assert_eq!(ask(&gate, &named(host, port)).1, [5, 4], "no address any more");
        let reached = [told.recv().expect("a connection"), told.recv().expect("a connection")];
        assert_eq!(reached, [IpAddr::V4(first); 2]);
        assert!(told.try_recv().is_err());
        gate.close();
    }
}
