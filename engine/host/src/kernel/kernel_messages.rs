//! Reads a kernel's messages, one JSON object per line, and turns them into events.

use crate::kernel::kernel_requests::{KernelInquiry, PendingInquiries};
use crate::kernel::pure_cache::PureCache;
use crate::mailbox::{Mailbox, StoreWriter};
use engine::{Event, KernelGrant};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;
use store::{BlobRef, CellOutput, DocId, ExecutionId, ExecutionStatus, OutputBody};

/// Maximum bytes of a stream that are stored in the note; a longer stream also becomes a blob.
const MAX_INLINE_OUTPUT_BYTES: usize = 65_536;
/// Maximum size of an inline result in bytes; a larger one (an image, a long representation) becomes a blob as well.
const MAX_INLINE_RESULT_BYTES: usize = 262_144;
/// Maximum size of a kernel's message in bytes; a larger one ends reading.
const MAX_REPLY_BYTES: u64 = 64 << 20;
/// Maximum length of an input prompt in characters.
const MAX_PROMPT_CHARS: usize = 1_000;
/// Maximum number of outputs that can be updated later.
const MAX_UPDATABLE_OUTPUTS: usize = 1_000;

/// Progress of an execution: the number of sent outputs, and the whole text of long streams.
#[derive(Default)]
struct ExecutionProgress {
    count: usize,
    stream: Option<(String, String)>,
    whole: Vec<(usize, BlobRef)>,
    /// Whether all outputs are cleared as soon as there is a new one.
    clears: bool,
    failed: bool,
    interrupted: bool,
    /// When the execution started.
    since: Option<Instant>,
}

/// Reads a kernel's messages and turns them into events.
pub(crate) struct KernelReplyReader {
    /// The note that the kernel belongs to, once assigned.
    whose: Arc<OnceLock<DocId>>,
    note: DocId,
    inbox: Mailbox,
    writer: StoreWriter,
    streams: HashMap<ExecutionId, ExecutionProgress>,
    /// Outputs with a display id, by which they're updated later; oldest first.
    named: Vec<(String, ExecutionId, usize)>,
    inquiries: PendingInquiries,
    kept: PureResultAccess,
}

/// A kernel's access to cached results of pure cells.
pub(crate) struct PureResultAccess {
    pub(crate) cache: PureCache,
    /// The grants that the kernel was started with.
    pub(crate) grant: KernelGrant,
    /// Channel for requests to the kernel; gone when the kernel isn't needed.
    pub(crate) requests: Weak<Sender<String>>,
}

impl PureResultAccess {
    /// Answers a kernel that requests a cached result, or delivers one.
    fn answer_pure_request(&self, note: DocId, kind: &str, content: &Value) {
        let key = content["key"].as_str().unwrap_or_default();
        let content = if kind == "pure_find" {
            json!({"key": key, "entry": self.cache.find(note, &self.grant, key)})
        } else {
            let entry = content["entry"].as_str().unwrap_or_default();
            let refused = self.cache.store_result(note, &self.grant, key, entry).err();
            json!({"key": key, "why": refused.map(|why| why.to_string())})
        };
        let request = json!({
            "header": {"msg_type": "pure_reply", "msg_id": "pure"},
            "parent_header": {},
            "content": content,
        });
        if let Some(requests) = self.requests.upgrade() {
            let _ = requests.send(request.to_string()); // it may have ended
        }
    }
}

impl KernelReplyReader {
    pub(crate) fn new(
        whose: Arc<OnceLock<DocId>>,
        inbox: Mailbox,
        writer: StoreWriter,
        inquiries: PendingInquiries,
        kept: PureResultAccess,
    ) -> KernelReplyReader {
        let note = DocId([0; 16]);
        KernelReplyReader { whose, note, inbox, writer, streams: HashMap::new(), named: Vec::new(), inquiries, kept }
    }

    pub(crate) fn inbox(&self) -> Mailbox {
        self.inbox.clone()
    }

    pub(crate) fn read_messages(mut self, mut from: impl BufRead) {
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut from).take(MAX_REPLY_BYTES).read_until(b'\n', &mut line) {
                Ok(1..) if line.ends_with(b"\n") => {}
                Ok(_) | Err(_) => return, // end of output, or a message beyond all measure
            }
            // Ignore lines that aren't valid messages.
            if let Ok(message) = serde_json::from_slice::<Value>(&line) {
                self.handle_message(&message);
            }
        }
    }

    fn handle_message(&mut self, message: &Value) {
        let kind = message["header"]["msg_type"].as_str().unwrap_or("");
        let content = &message["content"];
        if KernelInquiry::is_reply(kind) {
            self.answer_inquiry(message);
            return;
        }
        // A spare kernel only answers inquiries, and reports that it's ready.
        let Some(note) = self.whose.get() else { return };
        self.note = *note;
        if kind == "kernel_info_reply" {
            self.inbox.send_event(Event::KernelReady { note: self.note });
            return;
        }
        if matches!(kind, "pure_find" | "pure_keep") {
            self.kept.answer_pure_request(self.note, kind, content);
            return;
        }
        if kind == "state_reply" {
            self.report_state_move(content);
            return;
        }
        let id = message["parent_header"]["msg_id"].as_str().and_then(|id| id.parse().ok());
        let Some(execution): Option<ExecutionId> = id else { return };
        match kind {
            "status" if content["execution_state"] == "busy" => {
                self.streams.insert(
                    execution,
                    ExecutionProgress { since: Some(Instant::now()), ..ExecutionProgress::default() },
                );
                self.inbox.send_event(Event::Began { note: self.note, execution });
            }
            "state_saved" if content["status"] == "unchanged" => {
                self.inbox.send_event(Event::StateUnchanged { note: self.note });
            }
            "state_saved" => {
                let problem = content["why"].as_str().map(ToOwned::to_owned);
                self.inbox.send_event(Event::StateSaved { note: self.note, execution, problem });
            }
            "clear_output" => {
                if content["wait"] == true {
                    self.streams.entry(execution).or_default().clears = true;
                } else {
                    self.clear_outputs(execution);
                }
            }
            "input_request" => {
                let prompt: String = content["prompt"].as_str().unwrap_or("").chars().take(MAX_PROMPT_CHARS).collect();
                let password = content["password"] == true;
                self.inbox.send_event(Event::Asked { note: self.note, execution, prompt, password });
            }
            "update_display_data" => self.update_named_outputs(content),
            "stream" => {
                self.apply_pending_clear(execution);
                let name = if content["name"] == "stderr" { "stderr" } else { "stdout" };
                self.append_to_stream(execution, name, content["text"].as_str().unwrap_or(""));
            }
            "execute_result" | "display_data" | "error" => {
                let mut body = content.clone();
                body["output_type"] = kind.into();
                let Ok(body) = serde_json::from_value::<OutputBody>(body) else { return };
                self.apply_pending_clear(execution);
                if let OutputBody::Error { ename, .. } = &body {
                    let sent = self.streams.entry(execution).or_default();
                    sent.failed = true;
                    sent.interrupted = ename == "KeyboardInterrupt";
                }
                self.end_stream(execution);
                let output = offload_large_output(&self.writer, body);
                let sent = self.streams.entry(execution).or_default();
                if let Some(name) = content["transient"]["display_id"].as_str() {
                    if self.named.len() >= MAX_UPDATABLE_OUTPUTS {
                        self.named.remove(0);
                    }
                    self.named.push((name.to_owned(), execution, sent.count));
                }
                sent.count += 1;
                self.inbox.send_event(Event::Output { note: self.note, execution, output });
            }
            "execute_reply" => {
                self.end_stream(execution);
                let sent = self.streams.remove(&execution).unwrap_or_default();
                let status = match content["status"].as_str() {
                    Some("ok") if !sent.failed => ExecutionStatus::Ok,
                    _ if sent.interrupted => ExecutionStatus::Interrupted,
                    _ => ExecutionStatus::Error,
                };
                let count = content["execution_count"].as_u64();
                let (note, whole) = (self.note, sent.whole);
                let cached = content["cached"] == true;
                let took = sent.since.and_then(|since| u64::try_from(since.elapsed().as_millis()).ok());
                self.inbox.send_event(Event::Finished { note, execution, status, count, whole, cached, took });
            }
            _ => {}
        }
    }

    /// Reports that the kernel has moved to another saved state, or failed to.
    fn report_state_move(&self, content: &Value) {
        let text = |key: &str| content[key].as_str().map(ToOwned::to_owned);
        let undone = content["undone"].as_array().into_iter().flatten();
        self.inbox.send_event(Event::StateMoved {
            note: self.note,
            state: text("state"),
            branch: text("branch").unwrap_or_default(),
            undone: undone.filter_map(|id| id.as_str()?.parse().ok()).collect(),
            rerun: content["rerun"] == true,
            problem: text("why"),
        });
    }

    /// Passes the kernel's answer on to the inquiry that requested it.
    fn answer_inquiry(&self, message: &Value) {
        let id = message["parent_header"]["msg_id"].as_str().unwrap_or_default();
        let asked = self.inquiries.lock().ok().and_then(|mut asked| asked.remove(id));
        if let Some((inquiry, to)) = asked {
            let _ = to.send(inquiry.parse_reply(&message["content"])); // whoever asked may have gone
            self.inbox.wake();
        }
    }

    /// Clears the outputs of an execution.
    fn clear_outputs(&mut self, execution: ExecutionId) {
        let sent = self.streams.entry(execution).or_default();
        *sent = ExecutionProgress {
            failed: sent.failed,
            interrupted: sent.interrupted,
            since: sent.since,
            ..ExecutionProgress::default()
        };
        self.named.retain(|(_, other, _)| *other != execution);
        self.inbox.send_event(Event::Cleared { note: self.note, execution });
    }

    /// Clears the outputs of an execution if that was delayed until there is a new one.
    fn apply_pending_clear(&mut self, execution: ExecutionId) {
        if self.streams.get(&execution).is_some_and(|sent| sent.clears) {
            self.clear_outputs(execution);
        }
    }

    /// Replaces all outputs with a display id.
    fn update_named_outputs(&mut self, content: &Value) {
        let Some(name) = content["transient"]["display_id"].as_str() else { return };
        let mut body = json!({"data": content["data"], "metadata": content["metadata"]});
        body["output_type"] = "display_data".into();
        let Ok(body) = serde_json::from_value::<OutputBody>(body) else { return };
        for (_, execution, at) in self.named.iter().filter(|(other, _, _)| other == name) {
            let output = offload_large_output(&self.writer, body.clone());
            let (note, execution, at) = (self.note, *execution, *at);
            self.inbox.send_event(Event::Updated { note, execution, at, output });
        }
    }

    fn append_to_stream(&mut self, execution: ExecutionId, name: &str, text: &str) {
        let sent = self.streams.entry(execution).or_default();
        if sent.stream.as_ref().is_some_and(|(known, _)| known != name) {
            self.end_stream(execution);
        }
        let sent = self.streams.entry(execution).or_default();
        let first = sent.stream.is_none();
        if first {
            sent.count += 1;
        }
        let (_, all) = sent.stream.get_or_insert_with(|| (name.to_owned(), String::new()));
        let shown = all.len() < MAX_INLINE_OUTPUT_BYTES;
        all.push_str(text);
        if shown {
            let body = OutputBody::Stream { name: name.to_owned(), text: text.to_owned() };
            self.inbox.send_event(Event::Output {
                note: self.note,
                execution,
                output: CellOutput { body, whole: None },
            });
        }
    }

    /// Ends a stream: if the note holds only its beginning, the whole text becomes a blob.
    fn end_stream(&mut self, execution: ExecutionId) {
        let Some(sent) = self.streams.get_mut(&execution) else { return };
        let Some((_, all)) = sent.stream.take() else { return };
        if all.len() > MAX_INLINE_OUTPUT_BYTES {
            let size = all.len() as u64;
            match self.writer.store_blob(all.into_bytes()) {
                Ok(blob) => sent.whole.push((sent.count - 1, BlobRef { blob, mime: "text/plain".to_owned(), size })),
                Err(why) => {
                    sent.count += 1;
                    let body =
                        OutputBody::Stream { name: "stderr".to_owned(), text: format!("{}\n", not_kept_message(&why)) };
                    let (note, output) = (self.note, CellOutput { body, whole: None });
                    self.inbox.send_event(Event::Output { note, execution, output });
                }
            }
        }
    }
}

/// Text shown instead of a large output.
fn not_kept_message(why: &anyhow::Error) -> String {
    format!("[only the beginning of this is kept: {why}]")
}

/// Moves the parts of an output that are too large for a document to a blob; the note keeps the beginning of a text.
pub(crate) fn offload_large_output(writer: &StoreWriter, mut body: OutputBody) -> CellOutput {
    let (mut whole, mut lost) = (None, None);
    let mut keep = |text: String, mime: &str| {
        let size = text.len() as u64;
        match writer.store_blob(text.into_bytes()) {
            Ok(blob) => _ = whole.get_or_insert(BlobRef { blob, mime: mime.to_owned(), size }),
            Err(why) => lost = Some(not_kept_message(&why)),
        }
    };
    match &mut body {
        OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => {
            let large: Vec<String> = data
                .iter()
                .filter(|(_, value)| {
                    value.as_str().map_or_else(|| value.to_string().len(), str::len) > MAX_INLINE_RESULT_BYTES
                })
                .map(|(mime, _)| mime.clone())
                .collect();
            for mime in large {
                let Some(value) = data.remove(&mime) else { continue };
                let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
                if mime == "text/plain" {
                    data.insert(mime.clone(), Value::from(&text[..text.floor_char_boundary(MAX_INLINE_OUTPUT_BYTES)]));
                }
                keep(text, &mime);
            }
        }
        // A kernel's streams arrive in pieces and are stored as a whole in `end_stream`; a notebook's arrive at once.
        OutputBody::Stream { text, .. } if text.len() > MAX_INLINE_OUTPUT_BYTES => {
            let shown = text[..text.floor_char_boundary(MAX_INLINE_OUTPUT_BYTES)].to_owned();
            keep(std::mem::replace(text, shown), "text/plain");
        }
        OutputBody::Stream { .. } | OutputBody::Error { .. } => {}
    }
    match (&mut body, lost) {
        (OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. }, Some(lost)) => {
            let text =
                data.get("text/plain").and_then(Value::as_str).map_or(lost.clone(), |text| format!("{text}\n{lost}"));
            data.insert("text/plain".to_owned(), text.into());
        }
        (OutputBody::Stream { text, .. }, Some(lost)) => text.push_str(&format!("\n{lost}\n")),
        (OutputBody::Error { .. }, Some(_)) | (_, None) => {}
    }
    CellOutput { body, whole }
}
