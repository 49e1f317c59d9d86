//! Limits for all connections of the hub from the moment they are accepted: how many there may be without a proven key,
//! for how long and with how many bytes, and how much memory unfinished messages take.

use axum_server::accept::Accept;
use futures_util::task::AtomicWaker;
use peers::DeviceId;
use std::collections::{BTreeMap, HashMap};
use std::future::{Ready, ready};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Time from the first packet within which a connection must prove a key.
const PROOF_DEADLINE: Duration = Duration::from_secs(15);
/// Maximum number of bytes that a connection without a proven key may send: TLS, an HTTP head, two messages.
const MAX_UNPROVEN_BYTES: usize = 64 << 10;
/// A connection that accepts no data for this long is closed.
const WRITE_DEADLINE: Duration = Duration::from_secs(60);
/// Maximum number of bytes of unfinished messages, for all connections together.
const MAX_UNFINISHED_BYTES: usize = 256 << 20;
/// Maximum number of simultaneous connections of one device.
const MAX_DEVICE_CONNECTIONS: usize = 32;
/// Number of files that the hub itself keeps open: its store, its certificate, blobs.
const RESERVED_FILES: usize = 100;

/// Limits on the number of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    /// Maximum number of all connections.
    pub(crate) all: usize,
    /// Maximum number of connections that have proven no key although [`ConnectionLimits::grace`] has passed.
    pub(crate) unproven: usize,
    /// Maximum number of connections that have proven no key, however new they are.
    pub(crate) most_unproven: usize,
    /// How long a new connection is protected when there are many.
    pub(crate) grace: Duration,
    /// Maximum number of connections without a proven key from one address.
    pub(crate) per_address: usize,
    /// Maximum number of connections that have proven a key.
    pub(crate) proven: usize,
}

impl ConnectionLimits {
    /// Computes limits for this many open files and at most `proven` connections with a proven key.
    pub(crate) fn new(files: usize, proven: usize) -> ConnectionLimits {
        let all = files.saturating_sub(RESERVED_FILES).max(16);
        let (unproven, most_unproven) = ((all / 2).min(512), (all / 2).min(4_096));
        let (per_address, proven) = ((unproven / 4).max(4), proven.min(all - most_unproven));
        ConnectionLimits { all, unproven, most_unproven, grace: Duration::from_secs(1), per_address, proven }
    }
}

/// An open connection with its byte counts.
#[derive(Debug)]
pub(crate) struct HubPeer {
    number: u64,
    from: SocketAddr,
    opened: Instant,
    proven: AtomicBool,
    closed: AtomicBool,
    /// Number of bytes received so far.
    received: AtomicU64,
    /// Number of bytes received of the current, unfinished message.
    unfinished: AtomicUsize,
    /// When writing blocked, and when the current message started: milliseconds since `opened`, plus one; 0 if not.
    blocked: AtomicU64,
    begun: AtomicU64,
    reader: AtomicWaker,
    writer: AtomicWaker,
    /// Log span that lasts as long as the connection.
    span: tracing::Span,
}

impl HubPeer {
    /// Closes the connection: reads and writes return an error.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.reader.wake();
        self.writer.wake();
    }

    /// Returns the number of bytes received so far.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    fn age_millis(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
    }

    fn closed_error(&self) -> Option<io::Error> {
        self.closed.load(Ordering::SeqCst).then(|| io::Error::from(io::ErrorKind::ConnectionAborted))
    }
}

#[derive(Default)]
struct ConnectionTable {
    last: u64,
    by_address: HashMap<SocketAddr, Arc<HubPeer>>,
    /// Connections without a proven key, oldest first.
    unproven: BTreeMap<u64, Arc<HubPeer>>,
    proven: BTreeMap<u64, (Arc<HubPeer>, Option<DeviceId>)>,
    /// Number of connections closed without a proven key since the last call of `close_overdue`.
    closed: u64,
}

/// All open connections, with their limits.
pub(crate) struct OpenConnections {
    limits: ConnectionLimits,
    table: Mutex<ConnectionTable>,
    /// Number of bytes of unfinished messages, for all connections together.
    unfinished: AtomicUsize,
}

impl OpenConnections {
    pub(crate) fn new(limits: ConnectionLimits) -> Arc<OpenConnections> {
        Arc::new(OpenConnections { limits, table: Mutex::default(), unfinished: AtomicUsize::new(0) })
    }

    fn table(&self) -> MutexGuard<'_, ConnectionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a new connection. If too many have no proven key, the oldest one is closed from the address that has the
    /// most of them. A client that proves its key at once therefore always finds room.
    fn admit(self: &Arc<Self>, stream: TcpStream, from: SocketAddr) -> CountedStream {
        let mut table = self.table();
        table.last += 1;
        let connection = Arc::new(HubPeer {
            number: table.last,
            from,
            opened: Instant::now(),
            proven: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            received: AtomicU64::new(0),
            unfinished: AtomicUsize::new(0),
            blocked: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            reader: AtomicWaker::new(),
            writer: AtomicWaker::new(),
            span: tracing::info_span!(parent: None, "connection", number = table.last),
        });
        let mut of_address: HashMap<IpAddr, usize> = HashMap::new();
        for one in table.unproven.values() {
            *of_address.entry(address_network(one.from.ip())).or_default() += 1;
        }
        let own = address_network(from.ip());
        // All connections through a proxy on this machine have its address.
        let crowded = !own.is_loopback() && of_address.get(&own).is_some_and(|count| *count >= self.limits.per_address);
        let full = table.unproven.len() >= self.limits.unproven;
        let brimful = table.unproven.len() >= self.limits.most_unproven;
        let most = of_address.iter().max_by_key(|(_, count)| **count).map(|(address, _)| *address);
        if let Some(address) = if crowded && !brimful { Some(own) } else { most.filter(|_| full) } {
            let oldest = table.unproven.values().find(|one| address_network(one.from.ip()) == address).cloned();
            if let Some(oldest) = oldest.filter(|one| brimful || one.opened.elapsed() >= self.limits.grace) {
                table.unproven.remove(&oldest.number);
                table.closed += 1;
                oldest.close();
            }
        }
        if table.unproven.len() + table.proven.len() >= self.limits.all {
            table.closed += 1;
            connection.close();
        } else {
            table.unproven.insert(connection.number, Arc::clone(&connection));
        }
        table.by_address.insert(from, Arc::clone(&connection));
        CountedStream { stream, connection, connections: Arc::clone(self) }
    }

    /// Returns the open connection from this socket address, which is unique while it lasts.
    pub(crate) fn find_peer(&self, from: SocketAddr) -> Option<Arc<HubPeer>> {
        self.table().by_address.get(&from).cloned()
    }

    /// Marks a connection as proven, after it has proven a key or was admitted without one: it may now send what the
    /// protocol allows.
    ///
    /// # Errors
    /// Returns a message if there are too many connections.
    pub(crate) fn mark_proven(&self, connection: &Arc<HubPeer>, device: Option<DeviceId>) -> Result<(), &'static str> {
        let mut table = self.table();
        if table.unproven.remove(&connection.number).is_none() {
            return Err("it took too long");
        }
        if table.proven.len() >= self.limits.proven {
            return Err("the hub has too many connections; try again later");
        }
        let same = |of: &Option<DeviceId>| device.is_some() && *of == device;
        if table.proven.values().filter(|(_, of)| same(of)).count() >= MAX_DEVICE_CONNECTIONS
            && let Some((oldest, _)) = table.proven.values().find(|(_, of)| same(of)).cloned()
        {
            // It closes a moment later. It's removed now so that the next connection closes another one.
            table.proven.remove(&oldest.number);
            oldest.close();
        }
        table.proven.insert(connection.number, (Arc::clone(connection), device));
        connection.proven.store(true, Ordering::SeqCst);
        let open = table.proven.len();
        drop(table);
        connection.span.in_scope(|| tracing::info!(open, "connection let in"));
        Ok(())
    }

    /// Returns whether one more connection with a proven key would be admitted.
    pub(crate) fn has_room(&self) -> bool {
        self.table().proven.len() < self.limits.proven
    }

    /// Resets the count of unfinished bytes after a whole message has arrived.
    pub(crate) fn finish_message(&self, connection: &HubPeer) {
        connection.begun.store(0, Ordering::Relaxed);
        self.unfinished.fetch_sub(connection.unfinished.swap(0, Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Closes connections that exceeded a deadline; returns how many were closed without a proven key since the last
    /// call.
    pub(crate) fn close_overdue(&self) -> u64 {
        let mut table = self.table();
        let overdue: Vec<Arc<HubPeer>> =
            table.unproven.values().take_while(|one| one.opened.elapsed() > PROOF_DEADLINE).cloned().collect();
        for one in overdue {
            table.unproven.remove(&one.number);
            table.closed += 1;
            one.close();
        }
        let most = u64::try_from(WRITE_DEADLINE.as_millis()).unwrap_or(u64::MAX);
        for (one, _) in table.proven.values() {
            let since = one.blocked.load(Ordering::Relaxed);
            if since > 0 && one.age_millis().saturating_sub(since) > most {
                one.close();
            }
        }
        std::mem::take(&mut table.closed)
    }

    /// Counts incoming bytes of a message. If unfinished messages take too much memory, the connection is closed whose
    /// message began first.
    fn count_incoming_bytes(&self, connection: &HubPeer, count: usize) {
        let age = connection.age_millis();
        // A time that is already set stays, because it's the earlier one.
        let _ = connection.begun.compare_exchange(0, age, Ordering::Relaxed, Ordering::Relaxed);
        connection.unfinished.fetch_add(count, Ordering::SeqCst);
        if self.unfinished.fetch_add(count, Ordering::SeqCst) + count <= MAX_UNFINISHED_BYTES {
            return;
        }
        let table = self.table();
        let since = |one: &HubPeer| one.opened + Duration::from_millis(one.begun.load(Ordering::Relaxed));
        let large = |one: &&Arc<HubPeer>| one.unfinished.load(Ordering::SeqCst) > MAX_UNPROVEN_BYTES;
        let first = table.proven.values().map(|(one, _)| one).filter(large).min_by_key(|one| since(one));
        if let Some(first) = first {
            first.close();
            self.finish_message(first);
        }
    }

    fn remove(&self, connection: &HubPeer) {
        let mut table = self.table();
        table.unproven.remove(&connection.number);
        let was_proven = table.proven.remove(&connection.number).is_some();
        if table.by_address.get(&connection.from).is_some_and(|one| one.number == connection.number) {
            table.by_address.remove(&connection.from);
        }
        drop(table);
        let received = connection.received.load(Ordering::Relaxed);
        connection.span.in_scope(|| match was_proven {
            true => tracing::info!(received, "connection closed"),
            false => tracing::debug!(received, "connection closed without proof"),
        });
        self.finish_message(connection);
    }
}

/// Returns the part of an address that counts as one client: for IPv6, the first 64 bits.
pub(crate) fn address_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
    }
}

/// Admits connections as they are accepted. Sets `TCP_NODELAY`, so that a small message (a keystroke) doesn't wait
/// until the previous one was acknowledged.
#[derive(Clone)]
pub(crate) struct TcpAcceptor(pub(crate) Arc<OpenConnections>);

impl<S> Accept<TcpStream, S> for TcpAcceptor {
    type Stream = CountedStream;
    type Service = S;
    type Future = Ready<io::Result<(CountedStream, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let from = stream.set_nodelay(true).and_then(|()| stream.peer_addr());
        ready(from.map(|from| (self.0.admit(stream, from), service)))
    }
}

/// TCP stream of a connection that enforces the connection's limits.
pub(crate) struct CountedStream {
    stream: TcpStream,
    connection: Arc<HubPeer>,
    connections: Arc<OpenConnections>,
}

impl Drop for CountedStream {
    fn drop(&mut self) {
        self.connections.remove(&self.connection);
    }
}

impl AsyncRead for CountedStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.connection.reader.register(cx.waker());
        if let Some(refused) = this.connection.closed_error() {
            return Poll::Ready(Err(refused));
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        let count = buf.filled().len() - before;
        if count > 0 {
            let received = this.connection.received.fetch_add(count as u64, Ordering::Relaxed) + count as u64;
            if this.connection.proven.load(Ordering::SeqCst) {
                this.connections.count_incoming_bytes(&this.connection, count);
            } else if received > MAX_UNPROVEN_BYTES as u64 {
                this.connection.close();
                return Poll::Ready(Err(io::Error::from(io::ErrorKind::ConnectionAborted)));
            }
        }
        read
    }
}

impl CountedStream {
    fn record_write<T>(&self, wrote: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &wrote {
            Poll::Pending => {
                let age = self.connection.age_millis();
                // A time that is already set stays, because it's the earlier one.
                let _ = self.connection.blocked.compare_exchange(0, age, Ordering::Relaxed, Ordering::Relaxed);
            }
            Poll::Ready(_) => self.connection.blocked.store(0, Ordering::Relaxed),
        }
        wrote
    }

    fn check_open_for_writing(&self, cx: &Context<'_>) -> io::Result<()> {
        self.connection.writer.register(cx.waker());
        self.connection.closed_error().map_or(Ok(()), Err)
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.check_open_for_writing(cx)?;
        let wrote = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.record_write(wrote)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.check_open_for_writing(cx)?;
        let wrote = Pin::new(&mut this.stream).poll_write_vectored(cx, bytes);
        this.record_write(wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pair(connections: &Arc<OpenConnections>, from: [u8; 4]) -> (CountedStream, TcpStream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let at = listener.local_addr().expect("an address");
        let (there, here) = tokio::join!(TcpStream::connect(at), listener.accept());
        let (stream, real) = here.expect("accepted");
        let from = SocketAddr::from((from, real.port()));
        (connections.admit(stream, from), there.expect("connected"))
    }

    fn is_closed(one: &(CountedStream, TcpStream)) -> bool {
        one.0.connection.closed_error().is_some()
    }

    #[tokio::test]
    async fn the_oldest_of_the_address_with_most_goes_and_others_stay() {
        let grace = Duration::ZERO;
        let limits = ConnectionLimits { all: 20, unproven: 6, most_unproven: 6, grace, per_address: 4, proven: 10 };
        let connections = OpenConnections::new(limits);
        let other = pair(&connections, [10, 0, 0, 1]).await;
        let mut crowd = Vec::new();
        for _ in 0..10 {
            crowd.push(pair(&connections, [10, 0, 0, 2]).await);
        }
        assert!(!is_closed(&other));
        assert_eq!(crowd.iter().map(is_closed).collect::<Vec<_>>(), [[true; 6].as_slice(), &[false; 4]].concat());
        // Many addresses: connections of the largest group are closed.
        let mut many = Vec::new();
        for last in 3..6 {
            many.push(pair(&connections, [10, 0, 0, last]).await);
        }
        assert!(!is_closed(&other) && !many.iter().any(is_closed));
        assert_eq!(connections.close_overdue(), 8);
        connections.mark_proven(&other.0.connection, None).expect("room");
        assert!(connections.mark_proven(&crowd[0].0.connection, None).is_err(), "it was closed before");
        drop(crowd);
        drop(many);
        assert_eq!(connections.table().unproven.len(), 0);
        drop(other);
        assert!(connections.table().proven.is_empty() && connections.table().by_address.is_empty());
    }

    #[tokio::test]
    async fn unfinished_messages_take_no_more_than_their_share() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let connections = OpenConnections::new(ConnectionLimits::new(1024, 100));
        let (mut here, mut there) = pair(&connections, [10, 0, 0, 1]).await;
        there.write_all(&vec![1; MAX_UNPROVEN_BYTES * 2]).await.expect("sent");
        let mut bytes = vec![0; MAX_UNPROVEN_BYTES * 2];
        assert!(here.read_exact(&mut bytes).await.is_err(), "more than the words of a proof");
        let (mut here, mut there) = pair(&connections, [10, 0, 0, 1]).await;
        connections.mark_proven(&here.connection, None).expect("room");
        there.write_all(&vec![1; 100_000]).await.expect("sent");
        here.read_exact(&mut bytes[..100_000]).await.expect("read");
        assert_eq!(connections.unfinished.load(Ordering::SeqCst), 100_000);
        let (later, _there) = pair(&connections, [10, 0, 0, 1]).await;
        connections.mark_proven(&later.connection, None).expect("room");
        connections.count_incoming_bytes(&later.connection, MAX_UNFINISHED_BYTES);
        assert!(here.connection.closed_error().is_some(), "it began first");
        assert!(later.connection.closed_error().is_none());
        connections.finish_message(&later.connection);
        assert_eq!(connections.unfinished.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn a_device_has_no_more_than_its_connections() {
        let connections = OpenConnections::new(ConnectionLimits::new(1024, 500));
        let [device, other] = [(); 2].map(|()| peers::DeviceKey::generate().expect("a key").id());
        let mut own = Vec::new();
        let (friend, _there) = pair(&connections, [10, 0, 0, 2]).await;
        connections.mark_proven(&friend.connection, Some(other)).expect("room");
        // All at once: none of the closed connections has ended when the next one arrives.
        for _ in 0..MAX_DEVICE_CONNECTIONS + 20 {
            let one = pair(&connections, [10, 0, 0, 1]).await;
            connections.mark_proven(&one.0.connection, Some(device)).expect("room");
            own.push(one);
        }
        let closed: Vec<bool> = own.iter().map(is_closed).collect();
        assert_eq!(closed, [[true; 20].as_slice(), &[false; MAX_DEVICE_CONNECTIONS]].concat());
        assert!(friend.connection.closed_error().is_none(), "another device keeps its own");
        drop(own);
        assert_eq!(connections.table().proven.len(), 1);
    }

    #[test]
    fn limits_fit_into_the_open_files() {
        for files in [0, 64, 256, 1024, 1 << 20] {
            let limits = ConnectionLimits::new(files, 10_000);
            assert!(limits.proven + limits.most_unproven <= limits.all, "{limits:?}");
            assert!(limits.unproven > 0 && limits.proven > 0 && limits.per_address > 0, "{limits:?}");
            assert!(files < 128 || limits.all + RESERVED_FILES <= files, "{limits:?}");
        }
        assert_eq!(
            address_network("2001:db8::1".parse().expect("v6")),
            address_network("2001:db8::2".parse().expect("v6"))
        );
        assert_eq!(
            address_network("::ffff:10.0.0.1".parse().expect("v6")),
            address_network("10.0.0.1".parse().expect("v4"))
        );
    }
}
