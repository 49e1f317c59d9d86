//! Kernels: child processes of the same program, one per note, that speak Jupyter messages over pipes.

use crate::driver::{Inbox, Post};
use crate::writer::Writer;
use engine::Event;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use store::{BlobRef, DocId, ExecutionId, Output, OutputBody, Status};

/// Of a stream this much goes to the note; the whole becomes a blob.
const SHOWN: usize = 65_536;
/// A result larger than this (an image, a long representation) becomes a blob as well.
const LARGE: usize = 262_144;
/// A message from a kernel longer than this is not read.
const LONGEST: u64 = 64 << 20;

/// What a kernel sees of the environment that the program was started in.
const SURROUNDINGS: [&str; 9] =
    ["HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "SystemRoot", "TEMP", "TZ", "USER"];

struct Kernel {
    /// Tells this process from the one that the note had before.
    number: u64,
    process: Arc<Mutex<Process>>,
    /// Written by a thread: a process that does not read must not hold up the one that draws.
    requests: Sender<String>,
    alive: Arc<AtomicBool>,
}

/// The process of a kernel, once it was started, which takes a while.
#[derive(Default)]
struct Process {
    child: Option<Child>,
    /// It is to end, or not to begin.
    ended: bool,
}

impl Process {
    fn end(process: &Mutex<Process>) {
        if let Ok(mut process) = process.lock() {
            process.ended = true;
            if let Some(child) = &mut process.child {
                let _ = child.kill();
            }
        }
    }
}

/// A cell on its way to a kernel.
pub(crate) struct Cell {
    pub(crate) code: String,
    /// What the traceback calls it.
    pub(crate) label: String,
    /// Names that are forgotten before it runs.
    pub(crate) forget: Vec<String>,
}

/// The running kernels.
pub(crate) struct Kernels {
    program: PathBuf,
    inbox: Inbox,
    writer: Writer,
    running: HashMap<DocId, Kernel>,
    started: u64,
}

impl Kernels {
    pub(crate) fn new(program: PathBuf, inbox: Inbox, writer: Writer) -> Kernels {
        Kernels { program, inbox, writer, running: HashMap::new(), started: 0 }
    }

    /// Sends a cell to the note's kernel; starts one if there is none.
    pub(crate) fn eval(&mut self, note: DocId, folder: &Path, execution: ExecutionId, cell: &Cell) {
        if self.running.get(&note).is_some_and(|kernel| !kernel.alive.load(Ordering::Acquire)) {
            self.running.remove(&note);
        }
        if !self.running.contains_key(&note) {
            let kernel = self.start(note, folder);
            self.running.insert(note, kernel);
        }
        let request = json!({
            "header": {"msg_type": "execute_request", "msg_id": execution},
            "parent_header": {},
            "content": {"code": cell.code, "cell": cell.label, "silent": false, "forget": cell.forget},
        });
        self.send(note, &request);
    }

    /// Asks the note's kernel to stop what it does.
    pub(crate) fn interrupt(&mut self, note: DocId) {
        let request = json!({
            "header": {"msg_type": "interrupt_request", "msg_id": "interrupt"},
            "parent_header": {},
            "content": {},
        });
        self.send(note, &request);
    }

    /// Ends the note's kernel at once. Its reader tells the session.
    pub(crate) fn kill(&mut self, note: DocId) {
        match self.running.remove(&note) {
            Some(kernel) => Process::end(&kernel.process),
            None => self.inbox.event(Event::KernelDied { note, why: "there was no kernel".to_owned() }),
        }
    }

    /// Ends all kernels.
    pub(crate) fn close(&mut self) {
        self.running.drain().for_each(|(_, kernel)| Process::end(&kernel.process));
    }

    fn send(&mut self, note: DocId, message: &Value) {
        if let Some(kernel) = self.running.get_mut(&note) {
            // A kernel that has died meanwhile is told of by its reader.
            let _ = kernel.requests.send(message.to_string());
        }
    }

    /// The process `number` of this note has ended. Says whether that is news to the session: the note may have a new
    /// kernel meanwhile.
    pub(crate) fn ended(&mut self, note: DocId, number: u64) -> bool {
        match self.running.get(&note) {
            Some(kernel) if kernel.number != number => false,
            Some(_) | None => {
                self.running.remove(&note);
                true
            }
        }
    }

    fn start(&mut self, note: DocId, folder: &Path) -> Kernel {
        let mut command = Command::new(&self.program);
        // A terminal's Ctrl-C is for us; the kernel is asked to stop by a message.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        // Keys and tokens in the surroundings are not a cell's business.
        let surroundings = SURROUNDINGS.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command
            .arg("kernel")
            .env_clear()
            .envs(surroundings)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        self.started += 1;
        let number = self.started;
        let alive = Arc::new(AtomicBool::new(true));
        let process: Arc<Mutex<Process>> = Arc::default();
        let (requests, queue) = channel();
        let reader = Replies { note, inbox: self.inbox.clone(), writer: self.writer.clone(), streams: HashMap::new() };
        let (started, still) = (process.clone(), alive.clone());
        std::thread::spawn(move || {
            let (note, inbox) = (reader.note, reader.inbox.clone());
            let why = match launch(command, &started, queue) {
                Ok((replies, words)) => {
                    reader.read(BufReader::new(replies));
                    still.store(false, Ordering::Release);
                    ended(&started, &words)
                }
                Err(why) => {
                    still.store(false, Ordering::Release);
                    format!("the kernel could not be started ({why})")
                }
            };
            inbox.post(Post::KernelEnded { note, number, why });
        });
        Kernel { number, process, requests, alive }
    }
}

/// The tail of what a process wrote to its standard error: the last words of one that dies say why.
type LastWords = Arc<Mutex<String>>;

/// Starts a kernel's process, with a thread that hands it what it is asked. Gives where its replies come from.
fn launch(
    mut command: Command,
    process: &Mutex<Process>,
    queue: Receiver<String>,
) -> Result<(ChildStdout, LastWords), String> {
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let none = || "no pipe".to_owned();
    let mut requests = child.stdin.take().ok_or_else(none)?;
    let replies = child.stdout.take().ok_or_else(none)?;
    let errors = child.stderr.take().ok_or_else(none)?;
    if let Ok(mut process) = process.lock() {
        if process.ended {
            let _ = child.kill(); // nobody wants it any more
        }
        process.child = Some(child);
    }
    std::thread::spawn(move || {
        for request in queue {
            if writeln!(requests, "{request}").and_then(|()| requests.flush()).is_err() {
                return;
            }
        }
    });
    let last_words = LastWords::default();
    let words = last_words.clone();
    std::thread::spawn(move || keep_tail(errors, &words));
    Ok((replies, last_words))
}

/// Why a process is no more whose output has ended: it is dead, dying, or has closed its standard output, which ends it
/// for us.
fn ended(process: &Mutex<Process>, words: &Mutex<String>) -> String {
    let child = process.lock().ok().and_then(|mut process| process.child.take());
    let status = child.map(|mut child| {
        let _ = child.kill();
        child.wait()
    });
    let words = words.lock().map(|words| words.trim().to_owned()).unwrap_or_default();
    let why = match status {
        Some(Ok(status)) => format!("the kernel's process ended ({status}); the next run starts a new one"),
        Some(Err(_)) | None => "the kernel's process ended; the next run starts a new one".to_owned(),
    };
    words.lines().last().map_or(why.clone(), |last| format!("{why}. Its last words: {last}"))
}

fn keep_tail(mut from: impl Read, words: &Mutex<String>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if let Ok(mut words) = words.lock() {
            words.push_str(&String::from_utf8_lossy(&buffer[..count]));
            if words.len() > 8192 {
                let mut cut = words.len() - 4096;
                while !words.is_char_boundary(cut) {
                    cut += 1;
                }
                words.drain(..cut);
            }
        }
    }
}

/// What was sent of an execution so far: which outputs it has, and the whole text of long streams.
#[derive(Default)]
struct Sent {
    count: usize,
    stream: Option<(String, String)>,
    whole: Vec<(usize, BlobRef)>,
    failed: bool,
    interrupted: bool,
}

/// Reads a kernel's messages and makes events of them.
struct Replies {
    note: DocId,
    inbox: Inbox,
    writer: Writer,
    streams: HashMap<ExecutionId, Sent>,
}

impl Replies {
    fn read(mut self, mut from: impl BufRead) {
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut from).take(LONGEST).read_until(b'\n', &mut line) {
                Ok(1..) if line.ends_with(b"\n") => {}
                Ok(_) | Err(_) => return, // end of output, or a message beyond all measure
            }
            // What is not a message of ours is not worth the session's time.
            if let Ok(message) = serde_json::from_slice::<Value>(&line) {
                self.message(&message);
            }
        }
    }

    fn message(&mut self, message: &Value) {
        let kind = message["header"]["msg_type"].as_str().unwrap_or("");
        let content = &message["content"];
        if kind == "kernel_info_reply" {
            self.inbox.event(Event::KernelReady { note: self.note });
            return;
        }
        let id = message["parent_header"]["msg_id"].as_str().and_then(|id| id.parse().ok());
        let Some(execution): Option<ExecutionId> = id else { return };
        match kind {
            "status" if content["execution_state"] == "busy" => {
                self.streams.insert(execution, Sent::default());
                self.inbox.event(Event::Began { note: self.note, execution });
            }
            "stream" => {
                let name = if content["name"] == "stderr" { "stderr" } else { "stdout" };
                self.stream(execution, name, content["text"].as_str().unwrap_or(""));
            }
            "execute_result" | "display_data" | "error" => {
                let mut body = content.clone();
                body["output_type"] = kind.into();
                let Ok(body) = serde_json::from_value::<OutputBody>(body) else { return };
                if let OutputBody::Error { ename, .. } = &body {
                    let sent = self.streams.entry(execution).or_default();
                    sent.failed = true;
                    sent.interrupted = ename == "KeyboardInterrupt";
                }
                self.end_stream(execution);
                let output = lighten(&self.writer, body);
                self.streams.entry(execution).or_default().count += 1;
                self.inbox.event(Event::Output { note: self.note, execution, output });
            }
            "execute_reply" => {
                self.end_stream(execution);
                let sent = self.streams.remove(&execution).unwrap_or_default();
                let status = match content["status"].as_str() {
                    Some("ok") if !sent.failed => Status::Ok,
                    _ if sent.interrupted => Status::Interrupted,
                    _ => Status::Error,
                };
                let count = content["execution_count"].as_u64();
                let (note, whole) = (self.note, sent.whole);
                self.inbox.event(Event::Finished { note, execution, status, count, whole });
            }
            _ => {}
        }
    }

    fn stream(&mut self, execution: ExecutionId, name: &str, text: &str) {
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
        let shown = all.len() < SHOWN;
        all.push_str(text);
        if shown {
            let body = OutputBody::Stream { name: name.to_owned(), text: text.to_owned() };
            self.inbox.event(Event::Output { note: self.note, execution, output: Output { body, whole: None } });
        }
    }

    /// A stream is over: if the note holds only its beginning, the whole becomes a blob.
    fn end_stream(&mut self, execution: ExecutionId) {
        let Some(sent) = self.streams.get_mut(&execution) else { return };
        let Some((_, all)) = sent.stream.take() else { return };
        if all.len() > SHOWN {
            let size = all.len() as u64;
            if let Ok(blob) = self.writer.blob(all.into_bytes()) {
                sent.whole.push((sent.count - 1, BlobRef { blob, mime: "text/plain".to_owned(), size }));
            }
        }
    }
}

/// Takes what is too large for a document out of an output: the note keeps the beginning of a text.
pub(crate) fn lighten(writer: &Writer, mut body: OutputBody) -> Output {
    let mut whole = None;
    let mut keep = |text: String, mime: &str| {
        let size = text.len() as u64;
        if let Ok(blob) = writer.blob(text.into_bytes()) {
            whole.get_or_insert(BlobRef { blob, mime: mime.to_owned(), size });
        }
    };
    match &mut body {
        OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => {
            let large: Vec<String> = data
                .iter()
                .filter(|(_, value)| value.as_str().map_or_else(|| value.to_string().len(), str::len) > LARGE)
                .map(|(mime, _)| mime.clone())
                .collect();
            for mime in large {
                let Some(value) = data.remove(&mime) else { continue };
                let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
                if mime == "text/plain" {
                    data.insert(mime.clone(), Value::from(&text[..text.floor_char_boundary(SHOWN)]));
                }
                keep(text, &mime);
            }
        }
        // A kernel's streams come in pieces and are kept whole elsewhere; a notebook's come at once.
        OutputBody::Stream { text, .. } if text.len() > SHOWN => {
            let shown = text[..text.floor_char_boundary(SHOWN)].to_owned();
            keep(std::mem::replace(text, shown), "text/plain");
        }
        OutputBody::Stream { .. } | OutputBody::Error { .. } => {}
    }
    Output { body, whole }
}
