//! Very many clients that follow the events of a server, all in one thread, so that they cost the measured programs
//! little.

use super::{ServeProcess, said};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// What the names of notes begin with whose creation is an event to wait for; a number of this many digits follows.
const EVENT_MARK: &str = "stream-event-";
const EVENT_DIGITS: usize = 5;
/// Number of bytes that a client reads at once.
const READ_BYTES: usize = 8_192;

/// Returns the path of the note whose creation is event `number`.
pub(super) fn event_path(number: usize) -> String {
    format!("{EVENT_MARK}{number:05}.md")
}

/// Numbers of events, each with when a client got it.
type Arrivals = Vec<(usize, Instant)>;

/// What all clients got.
#[derive(Default)]
struct EventTally {
    arrivals: Mutex<Arrivals>,
    /// Number of times that a client was told that events are missing.
    gaps: AtomicUsize,
}

impl EventTally {
    fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The clients.
pub(super) struct EventClients {
    tally: Arc<EventTally>,
    /// Ends them; so does dropping it.
    end: oneshot::Sender<()>,
    thread: JoinHandle<Result<(), String>>,
}

impl EventClients {
    /// Connects clients, each of which then follows events.
    pub(super) fn connect(server: &ServeProcess, count: usize) -> Result<EventClients, String> {
        let mut streams = Vec::with_capacity(count);
        for number in 0..count {
            let mut line = server.connect(number)?;
            line.send("GET", "/api/v1/events", "", "")?;
            line.head()?;
            streams.push(line.into_stream()?);
        }
        let tally = Arc::<EventTally>::default();
        let (end, ended) = oneshot::channel();
        let shared = Arc::clone(&tally);
        let thread = std::thread::spawn(move || follow_all(streams, &shared, ended));
        Ok(EventClients { tally, end, thread })
    }

    /// Waits until the clients have got this many events together, at most `limit`, and ends them. Returns what they
    /// got, and how often one was told that events are missing.
    pub(super) fn finish(self, expected: usize, limit: Duration) -> Result<(Arrivals, usize), String> {
        let begun = Instant::now();
        while self.tally.arrivals().len() < expected && begun.elapsed() < limit {
            std::thread::park_timeout(Duration::from_millis(20));
        }
        // If the thread has ended already, it says why.
        let _ = self.end.send(());
        self.thread.join().unwrap_or_else(|_| Err("the clients failed".to_owned()))?;
        let arrivals = std::mem::take(&mut *self.tally.arrivals());
        Ok((arrivals, self.tally.gaps.load(Ordering::Relaxed)))
    }
}

fn follow_all(
    streams: Vec<(TcpStream, Vec<u8>)>,
    tally: &Arc<EventTally>,
    ended: oneshot::Receiver<()>,
) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(said)?;
    runtime.block_on(async {
        let mut clients = tokio::task::JoinSet::new();
        for (stream, received) in streams {
            let stream = tokio::net::TcpStream::from_std(stream).map_err(said)?;
            clients.spawn(follow_events(stream, received, Arc::clone(tally)));
        }
        // A dropped sender ends the clients, too.
        let _ = ended.await;
        Ok::<(), String>(())
    })
}

/// Reads the events of one client until the connection ends.
async fn follow_events(stream: tokio::net::TcpStream, received: Vec<u8>, tally: Arc<EventTally>) {
    let (mut received, mut seen) = (received, BTreeSet::new());
    loop {
        take_events(&mut received, &mut seen, &tally);
        if stream.readable().await.is_err() {
            return;
        }
        let mut buffer = [0; READ_BYTES];
        match stream.try_read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// Takes the whole lines out of what a client received, and counts each event when it comes first.
fn take_events(received: &mut Vec<u8>, seen: &mut BTreeSet<usize>, tally: &EventTally) {
    let Some(end) = received.iter().rposition(|byte| *byte == b'\n') else { return };
    let now = Instant::now();
    let whole: Vec<u8> = received.drain(..=end).collect();
    for line in String::from_utf8_lossy(&whole).lines().filter(|line| line.starts_with("data:")) {
        if line.contains("\"kind\":\"GAP\"") {
            tally.gaps.fetch_add(1, Ordering::Relaxed);
        }
        let digits = line.split_once(EVENT_MARK).and_then(|(_, rest)| rest.get(..EVENT_DIGITS));
        if let Some(number) = digits.and_then(|digits| digits.parse().ok()).filter(|number| seen.insert(*number)) {
            tally.arrivals().push((number, now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_counts_once_and_half_a_line_waits() {
        let (tally, mut seen) = (EventTally::default(), BTreeSet::new());
        let (first, second) = (event_path(3), event_path(12_345));
        let chunk = format!("5e\r\nevent: FILE_CHANGED\ndata: {{\"path\":\"{first}\"}}\n\n\r\ndata: half");
        let mut received = chunk.into_bytes();
        take_events(&mut received, &mut seen, &tally);
        assert_eq!(received, b"data: half");
        received = format!("data: {{\"path\":\"{first}\"}}\ndata: {{\"path\":\"{second}\"}}\n").into_bytes();
        take_events(&mut received, &mut seen, &tally);
        received.extend_from_slice(b"data: {\"kind\":\"GAP\"}\n: keep\n");
        take_events(&mut received, &mut seen, &tally);
        let numbers: Vec<usize> = tally.arrivals().iter().map(|(number, _)| *number).collect();
        assert_eq!((numbers, tally.gaps.load(Ordering::Relaxed)), (vec![3, 12_345], 1));
    }
}
