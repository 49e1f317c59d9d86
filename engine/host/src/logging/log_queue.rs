//! Queue of lines for the log file: callers only put them into memory, and another thread writes them.

use super::log_file::RotatingLogFile;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// Maximum size of queued lines in bytes. If the disk is too slow, further lines are dropped.
const MAX_QUEUED_BYTES: usize = 1 << 20;
/// Maximum length of a line in bytes; longer ones are truncated.
const MAX_LINE_BYTES: usize = 64 << 10;

#[derive(Default)]
struct QueuedLines {
    lines: Vec<Vec<u8>>,
    bytes: usize,
    /// Number of lines dropped because the queue was full.
    dropped: u64,
    is_writing: bool,
}

impl QueuedLines {
    fn push(&mut self, line: &[u8]) {
        if self.bytes + line.len() > MAX_QUEUED_BYTES {
            self.dropped += 1;
            return;
        }
        let mut line = line.to_vec();
        if line.len() > MAX_LINE_BYTES {
            let cut = (MAX_LINE_BYTES - 3..MAX_LINE_BYTES).find(|at| line.get(*at).is_none_or(|byte| byte >> 6 != 2));
            line.truncate(cut.unwrap_or(MAX_LINE_BYTES));
            line.push(b'\n');
        }
        self.bytes += line.len();
        self.lines.push(line);
    }

    fn is_done(&self) -> bool {
        self.lines.is_empty() && !self.is_writing
    }
}

/// Sends lines to the log. Clones share the queue.
#[derive(Clone, Default)]
pub(super) struct LogQueue {
    shared: Arc<(Mutex<QueuedLines>, Condvar)>,
}

impl LogQueue {
    /// Starts the writing thread; `None` if the system can't create one.
    pub(super) fn start(mut file: RotatingLogFile) -> Option<LogQueue> {
        let queue = LogQueue::default();
        let source = queue.clone();
        let writer = std::thread::Builder::new().name("log".to_owned()).spawn(move || {
            loop {
                for line in source.take() {
                    // If the disk rejects log lines, continue, because the error can't be reported elsewhere.
                    let _ = file.append(&line);
                }
            }
        });
        writer.ok().map(|_| queue)
    }

    /// Waits up to `limit` until all lines are written.
    pub(super) fn flush(&self, limit: Duration) {
        let waited = self.shared.1.wait_timeout_while(self.lock(), limit, |lines| !lines.is_done());
        drop(waited);
    }

    fn push(&self, line: &[u8]) {
        self.lock().push(line);
        self.shared.1.notify_all();
    }

    /// Takes all queued lines, and blocks until there are some.
    fn take(&self) -> Vec<Vec<u8>> {
        let mut queued = self.lock();
        queued.is_writing = false;
        self.shared.1.notify_all();
        while queued.lines.is_empty() {
            queued = self.shared.1.wait(queued).unwrap_or_else(PoisonError::into_inner);
        }
        let mut lines = std::mem::take(&mut queued.lines);
        if let dropped @ 1.. = std::mem::take(&mut queued.dropped) {
            lines.push(format!("{dropped} lines are missing here: the disk was too slow for them\n").into_bytes());
        }
        (queued.bytes, queued.is_writing) = (0, true);
        lines
    }

    fn lock(&self) -> MutexGuard<'_, QueuedLines> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes one event to the queue.
pub(super) struct LogLineWriter<'a>(&'a LogQueue);

impl Write for LogLineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = LogLineWriter<'a>;

    fn make_writer(&'a self) -> LogLineWriter<'a> {
        LogLineWriter(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_a_slow_disk_has_no_time_for_are_counted() {
        let queue = LogQueue::default();
        let line = [b'a'; 1 << 12];
        for _ in 0..300 {
            queue.push(&line);
        }
        queue.push("ä".repeat(MAX_LINE_BYTES).as_bytes());
        let lines = queue.take();
        assert_eq!(lines.len(), MAX_QUEUED_BYTES / line.len() + 1);
        assert_eq!(lines.last().expect("a last line"), b"45 lines are missing here: the disk was too slow for them\n");
        assert!(!queue.lock().is_done());
        queue.push("aä".repeat(MAX_LINE_BYTES / 2).as_bytes());
        let cut = queue.take().remove(0);
        assert!(cut.len() <= MAX_LINE_BYTES + 1 && std::str::from_utf8(&cut).is_ok() && cut.ends_with(b"\n"));
    }

    #[test]
    fn a_flush_finds_lines_written_and_a_bad_folder_harms_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut queue = LogQueue::start(RotatingLogFile::new(folder.path())).expect("a thread");
        writeln!(queue.make_writer(), "a line").expect("never fails");
        queue.flush(Duration::from_secs(10));
        let text = std::fs::read_to_string(folder.path().join("tracebook.log")).expect("read");
        assert_eq!(text, "a line\n");
        queue = LogQueue::start(RotatingLogFile::new(&folder.path().join("missing"))).expect("a thread");
        writeln!(queue.make_writer(), "a line").expect("never fails");
        queue.flush(Duration::from_secs(10));
        assert!(queue.lock().is_done());
    }
}
