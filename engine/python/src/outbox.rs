//! The kernel's only output channel: numbers messages, buffers printed text, and enforces a cell's output limits.
//!
//! Printed text is buffered up to 50 ms or 4 KiB, so that a tight loop of prints takes few messages. It is sent before
//! any other message, so the order is always that of the cell. Writing never fails for the caller: a reader that
//! disconnected shows as the end of standard input. This module runs no Python.

use std::fs::File;
use std::io::Write;
use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::requests::empty_header;

/// Maximum amount of text that a cell may print.
const MAX_STREAM_BYTES: usize = 8 << 20;
/// Maximum amount of displayed data, as JSON, that a cell may send.
const MAX_DISPLAY_BYTES: usize = 64 << 20;
/// Maximum size of the errors, as JSON, that a cell may send. Code in a sandbox can send any number of them.
const MAX_ERROR_BYTES: usize = 1 << 20;
/// Maximum number of characters of the name of an error whose message is left out.
const MAX_ERROR_NAME_CHARS: usize = 200;
/// Maximum recorded output of a cell whose result is cached.
const MAX_RECORDED_BYTES: usize = 16 << 20;
/// Amount of buffered text that is sent at once.
const FLUSH_CHUNK_BYTES: usize = 4 << 10;
/// Maximum time that text is buffered.
const FLUSH_DELAY: Duration = Duration::from_millis(50);

/// Stream that printed text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

impl OutputStream {
    fn name(self) -> &'static str {
        match self {
            OutputStream::Out => "stdout",
            OutputStream::Err => "stderr",
        }
    }
}

/// Sends messages to the host. One per process, shared by all threads.
pub struct KernelOutbox {
    state: Mutex<OutboxState>,
    /// Notified when text is buffered.
    waiting: Condvar,
    /// ID of the process that may write. Processes that a cell forks may not.
    process: u32,
}

struct OutboxState {
    out: Box<dyn Write + Send>,
    /// Header of the request that is being answered.
    parent: Value,
    sent: u64,
    /// Buffered text of `stream`, waiting since `since`.
    text: String,
    stream: OutputStream,
    since: Instant,
    /// When printed text was last sent.
    flushed: Instant,
    /// Amount of its limits that the cell has used. At the limit, further output is dropped.
    streamed: usize,
    displayed: usize,
    failed: usize,
    /// Recorded output of the cell (message type and content). `None` if it isn't recorded or is too large.
    record: Option<Vec<Value>>,
    recorded: usize,
}

static KERNEL_OUTBOX: OnceLock<KernelOutbox> = OnceLock::new();

impl KernelOutbox {
    /// Creates the process's outbox and starts the thread that sends buffered text after a delay.
    pub fn install(out: File) -> &'static KernelOutbox {
        let outbox = KERNEL_OUTBOX.get_or_init(|| KernelOutbox::new(Box::new(out)));
        // If the thread can't be started (no memory), text is still sent with the next chunk or message.
        let _ = std::thread::Builder::new().name("output".into()).spawn(|| outbox.flush_periodically());
        outbox
    }

    /// Returns the process's outbox, for native functions that Python calls: they can't store a reference to it.
    pub fn get() -> Option<&'static KernelOutbox> {
        KERNEL_OUTBOX.get()
    }

    fn new(out: Box<dyn Write + Send>) -> KernelOutbox {
        let now = Instant::now();
        let state = OutboxState {
            out,
            parent: empty_header(),
            sent: 0,
            text: String::new(),
            stream: OutputStream::Out,
            since: now,
            flushed: now,
            streamed: 0,
            displayed: 0,
            failed: 0,
            record: None,
            recorded: 0,
        };
        KernelOutbox { state: Mutex::new(state), waiting: Condvar::new(), process: std::process::id() }
    }

    /// Returns whether this process is the kernel and not a fork that a cell made.
    pub fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    /// Makes further messages answer the request with this header, and resets the output limits.
    pub fn begin_reply(&self, parent: Value) {
        let Some(mut state) = self.lock() else { return };
        state.flush();
        state.parent = parent;
        (state.streamed, state.displayed, state.failed) = (0, 0, 0);
    }

    /// Starts to record what the cell shows.
    pub fn start_recording(&self) {
        if let Some(mut state) = self.lock() {
            (state.record, state.recorded) = (Some(Vec::new()), 0);
        }
    }

    /// Stops the recording and returns it, or `None` if it was too large.
    pub fn take_recording(&self) -> Option<Vec<Value>> {
        let mut state = self.lock()?;
        state.flush();
        state.record.take()
    }

    /// Sends a message, after all text printed before it.
    pub fn send(&self, msg_type: &str, content: Value) {
        let Some(mut state) = self.lock() else { return };
        state.flush();
        let line = state.encode_message(msg_type, None, content);
        state.write_line(&line);
    }

    /// Sends a message that answers a request other than the current one.
    pub fn send_reply(&self, parent: &Value, msg_type: &str, content: Value) {
        let Some(mut state) = self.lock() else { return };
        let line = state.encode_message(msg_type, Some(parent), content);
        state.write_line(&line);
    }

    /// Sends displayed data, unless the cell has displayed too much already.
    pub fn send_display(&self, msg_type: &str, content: Value) {
        let Some(mut state) = self.lock() else { return };
        if state.displayed >= MAX_DISPLAY_BYTES {
            return;
        }
        state.flush();
        let line = state.encode_message(msg_type, None, content);
        state.displayed = state.displayed.saturating_add(line.len());
        if state.displayed < MAX_DISPLAY_BYTES {
            state.write_line(&line);
        } else {
            state.displayed = MAX_DISPLAY_BYTES;
            state.send_notice("display limit of 64 MiB reached; the rest is dropped\n");
        }
    }

    /// Sends an error of the cell, unless its errors are too large already.
    pub fn send_error(&self, content: Value) {
        let Some(mut state) = self.lock() else { return };
        if state.failed >= MAX_ERROR_BYTES {
            return;
        }
        state.flush();
        let is_first = state.failed == 0;
        let name: String = content["ename"].as_str().unwrap_or_default().chars().take(MAX_ERROR_NAME_CHARS).collect();
        let line = state.encode_message("error", None, content);
        state.failed = state.failed.saturating_add(line.len());
        if state.failed < MAX_ERROR_BYTES {
            state.write_line(&line);
        } else {
            if is_first {
                // The message alone is too long. What failed is still said.
                let short = json!({"ename": name, "evalue": "", "traceback": [name]});
                let short = state.encode_message("error", None, short);
                state.write_line(&short);
            }
            state.send_notice("error limit of 1 MiB reached; the rest is dropped\n");
        }
    }

    /// Buffers printed text, unless the cell has printed too much already.
    pub fn print_text(&self, stream: OutputStream, text: &str) {
        let Some(mut state) = self.lock() else { return };
        if text.is_empty() || state.streamed >= MAX_STREAM_BYTES {
            return;
        }
        let room = MAX_STREAM_BYTES - state.streamed;
        let kept = &text[..text.floor_char_boundary(room)];
        if state.stream != stream {
            state.flush();
            state.stream = stream;
        }
        let first = state.text.is_empty();
        state.text.push_str(kept);
        state.streamed += kept.len();
        if kept.len() < text.len() {
            state.streamed = MAX_STREAM_BYTES;
            state.flush();
            state.send_notice("output limit of 8 MiB reached; the rest is dropped\n");
        } else if state.text.len() >= FLUSH_CHUNK_BYTES
            || (kept.ends_with('\n') && state.flushed.elapsed() >= FLUSH_DELAY)
        {
            state.flush();
        } else if first {
            state.since = Instant::now();
            self.waiting.notify_one();
        }
    }

    /// Sends the buffered text now.
    pub fn flush(&self) {
        if let Some(mut state) = self.lock() {
            state.flush();
        }
    }

    fn flush_periodically(&self) {
        let Some(mut state) = self.lock() else { return };
        loop {
            let waited = state.since.elapsed();
            state = if state.text.is_empty() {
                self.waiting.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else if waited < FLUSH_DELAY {
                let rest = FLUSH_DELAY - waited;
                self.waiting.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0
            } else {
                state.flush();
                state
            };
        }
    }

    /// Locks the state. `None` in a fork: it must not write, and the lock may be held by a thread that it doesn't have.
    fn lock(&self) -> Option<MutexGuard<'_, OutboxState>> {
        self.is_ours().then(|| self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl OutboxState {
    fn encode_message(&mut self, msg_type: &str, parent: Option<&Value>, content: Value) -> String {
        self.sent += 1;
        let shown = matches!(msg_type, "stream" | "display_data" | "update_display_data");
        if parent.is_none() && shown && self.record.is_some() {
            let said = json!([msg_type, content]);
            self.recorded = self.recorded.saturating_add(said.to_string().len());
            self.record = self.record.take().filter(|_| self.recorded < MAX_RECORDED_BYTES);
            self.record.iter_mut().for_each(|record| record.push(said.clone()));
        }
        let header = json!({"msg_type": msg_type, "msg_id": format!("kernel-{}", self.sent)});
        let parent = parent.unwrap_or(&self.parent);
        let mut line = json!({"header": header, "parent_header": parent, "content": content}).to_string();
        line.push('\n');
        line
    }

    fn write_line(&mut self, line: &str) {
        // See the module comment: if this fails, the reader has disconnected, and the reading thread will notice.
        let _ = self.out.write_all(line.as_bytes());
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            let text = mem::take(&mut self.text);
            self.send_stream(self.stream, &text);
            self.text = text;
            self.text.clear();
            self.text.shrink_to(2 * FLUSH_CHUNK_BYTES);
        }
    }

    fn send_notice(&mut self, text: &str) {
        self.send_stream(OutputStream::Err, text);
    }

    fn send_stream(&mut self, stream: OutputStream, text: &str) {
        let line = self.encode_message("stream", None, json!({"name": stream.name(), "text": text}));
        self.write_line(&line);
        self.flushed = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn outbox() -> (KernelOutbox, impl Fn() -> Vec<(String, Value)>) {
        let sink = Sink::default();
        let messages = {
            let sink = sink.clone();
            move || {
                let bytes = sink.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
                serde_json::Deserializer::from_slice(&bytes)
                    .into_iter::<Value>()
                    .map(|message| message.expect("every line is JSON"))
                    .map(|message| (message["header"]["msg_type"].to_string(), message["content"].clone()))
                    .collect()
            }
        };
        (KernelOutbox::new(Box::new(sink)), messages)
    }

    fn streams(messages: &[(String, Value)], name: &str) -> String {
        messages.iter().filter(|(_, content)| content["name"] == name).filter_map(|(_, c)| c["text"].as_str()).collect()
    }

    #[test]
    fn text_is_gathered_and_never_overtaken() {
        let (outbox, messages) = outbox();
        for _ in 0..100 {
            outbox.print_text(OutputStream::Out, "a");
            outbox.print_text(OutputStream::Out, "\n");
        }
        outbox.print_text(OutputStream::Err, "b");
        outbox.send("status", json!({}));
        let messages = messages();
        let kinds: Vec<_> = messages.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, ["\"stream\"", "\"stream\"", "\"status\""]);
        assert_eq!(streams(&messages, "stdout"), "a\n".repeat(100));
        assert_eq!(streams(&messages, "stderr"), "b");
    }

    #[test]
    fn a_cell_prints_no_more_than_its_limit_and_the_next_one_starts_anew() {
        let (outbox, messages) = outbox();
        let piece = "ä".repeat(1500);
        for _ in 0..2 * MAX_STREAM_BYTES / piece.len() {
            outbox.print_text(OutputStream::Out, &piece);
        }
        outbox.print_text(OutputStream::Err, "lost");
        let sent = messages();
        assert!(streams(&sent, "stdout").len() > MAX_STREAM_BYTES - 4);
        assert!(streams(&sent, "stdout").len() <= MAX_STREAM_BYTES);
        assert_eq!(streams(&sent, "stderr"), "output limit of 8 MiB reached; the rest is dropped\n");
        outbox.begin_reply(empty_header());
        outbox.print_text(OutputStream::Err, "back");
        outbox.flush();
        assert!(streams(&messages(), "stderr").ends_with("back"));
    }

    #[test]
    fn a_cell_displays_no_more_than_its_limit() {
        let (outbox, messages) = outbox();
        let image = "x".repeat(20 << 20);
        for _ in 0..5 {
            outbox.send_display("display_data", json!({"data": {"image/svg+xml": image}}));
        }
        let sent = messages();
        assert_eq!(sent.iter().filter(|(kind, _)| kind == "\"display_data\"").count(), 3);
        assert_eq!(streams(&sent, "stderr"), "display limit of 64 MiB reached; the rest is dropped\n");
        assert_eq!(sent.len(), 4);
    }

    #[test]
    fn a_cell_sends_no_more_errors_than_its_limit() {
        let (outbox, messages) = outbox();
        let words = "x".repeat(400 << 10);
        for _ in 0..5 {
            outbox.send_error(json!({"ename": "E", "evalue": words, "traceback": []}));
        }
        let errors = |sent: &[(String, Value)]| sent.iter().filter(|(kind, _)| kind.as_str() == "\"error\"").count();
        let sent = messages();
        assert_eq!((errors(&sent), sent.len()), (2, 3));
        assert_eq!(streams(&sent, "stderr"), "error limit of 1 MiB reached; the rest is dropped\n");
        outbox.begin_reply(empty_header());
        outbox.send_error(json!({"ename": "E", "evalue": "", "traceback": []}));
        assert_eq!(errors(&messages()), 3);
        // One that is too long alone is still named.
        outbox.begin_reply(empty_header());
        outbox.send_error(json!({"ename": "KeyError", "evalue": "x".repeat(MAX_ERROR_BYTES), "traceback": []}));
        let sent = messages();
        assert_eq!(errors(&sent), 4);
        assert!(sent.iter().any(|(_, content)| content["ename"] == "KeyError" && content["evalue"] == ""));
    }
}
