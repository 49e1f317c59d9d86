//! One end of a connection: sends requests and waits for answers, and receives what the other end sends.

use crate::line_reader::{BoundedLine, read_line};
use agent_client_protocol_schema::MethodDispatchError;
use agent_client_protocol_schema::v1::{Error, ErrorCode, RequestId, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum length of a received line in bytes.
const MAX_LINE_BYTES: usize = 16 << 20;
/// Number of lines that are no messages before the connection is given up.
const MAX_BAD_LINES: u32 = 100;
/// Maximum number of own requests that wait for an answer.
const MAX_WAITING_REQUESTS: usize = 256;
/// Maximum length of an error's text from the other end, in bytes.
const MAX_ERROR_BYTES: usize = 4_000;

/// A request or a notification of the other end.
#[derive(Debug)]
pub enum IncomingMessage {
    /// It waits for an answer.
    Request {
        /// Its id, for the answer.
        id: RequestId,
        /// Name of the method.
        method: String,
        /// Parameters; an empty object if it has none.
        params: Value,
    },
    /// It wants no answer.
    Notification {
        /// Name of the method.
        method: String,
        /// Parameters; an empty object if it has none.
        params: Value,
    },
}

/// Requests that wait for an answer.
#[derive(Default)]
struct WaitingRequests {
    last_id: i64,
    senders: HashMap<i64, Sender<Result<Value, Error>>>,
    /// The other end has gone; no answer comes.
    is_closed: bool,
}

/// One end of a connection. Any thread may send; one reads.
pub struct PeerConnection {
    out: Mutex<Box<dyn Write + Send>>,
    waiting: Mutex<WaitingRequests>,
}

/// A request that was sent.
pub struct SentRequest {
    /// Its id.
    pub id: i64,
    answer: Receiver<Result<Value, Error>>,
}

impl SentRequest {
    /// Waits for the answer. Returns `None` if none came in this time; the request still waits then.
    ///
    /// # Errors
    /// Returns what the other end says, or that it has gone.
    pub fn wait(&self, timeout: Duration) -> Option<Result<Value, Error>> {
        match self.answer.recv_timeout(timeout) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(closed_error())),
        }
    }
}

fn closed_error() -> Error {
    Error::new(i32::from(ErrorCode::InternalError), "the other program has closed the connection")
}

/// Returns the error for parameters that don't fit a method, or for a method that isn't known.
pub fn params_error(error: &MethodDispatchError) -> Error {
    let code = match error {
        MethodDispatchError::UnknownMethod { .. } => ErrorCode::MethodNotFound,
        _ => ErrorCode::InvalidParams,
    };
    Error::new(code.into(), error.to_string())
}

impl PeerConnection {
    /// Creates an end that sends to `out`.
    pub fn new(out: Box<dyn Write + Send>) -> PeerConnection {
        PeerConnection { out: Mutex::new(out), waiting: Mutex::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingRequests> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends one message as a line.
    fn send(&self, message: &Value) -> io::Result<()> {
        let line = format!("{message}\n");
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(line.as_bytes())?;
        out.flush()
    }

    /// Sends what wants no answer. If the other end has gone, the reader notices it.
    fn send_if_open(&self, message: serde_json::Result<Value>) {
        if let Ok(message) = message {
            // As above: the connection then ends for the reader, too.
            let _ = self.send(&message);
        }
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: &impl Serialize) {
        let params = serde_json::to_value(params);
        self.send_if_open(params.map(|params| json!({"jsonrpc": "2.0", "method": method, "params": params})));
    }

    /// Sends a request.
    ///
    /// # Errors
    /// Returns an error if the other end has gone, or too many requests wait for an answer.
    pub fn request(&self, method: &str, params: &impl Serialize) -> io::Result<SentRequest> {
        let (sender, answer) = channel();
        let mut waiting = self.waiting();
        if waiting.is_closed || waiting.senders.len() >= MAX_WAITING_REQUESTS {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        waiting.last_id += 1;
        let id = waiting.last_id;
        waiting.senders.insert(id, sender);
        drop(waiting);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": serde_json::to_value(params)?});
        if let Err(error) = self.send(&message) {
            self.waiting().senders.remove(&id);
            return Err(error);
        }
        Ok(SentRequest { id, answer })
    }

    /// Gives up a request: an answer that still comes is dropped, and the other end is told.
    pub fn give_up(&self, id: i64) {
        if self.waiting().senders.remove(&id).is_some() {
            self.notify("$/cancel_request", &json!({"requestId": id}));
        }
    }

    /// Answers a request.
    pub fn respond<R: Serialize>(&self, id: &RequestId, result: Result<R, Error>) {
        let result = result.and_then(|result| serde_json::to_value(result).map_err(Error::into_internal_error));
        let message = serde_json::to_value(Response::new(id.clone(), result)).map(|mut message| {
            message["jsonrpc"] = "2.0".into();
            message
        });
        self.send_if_open(message);
    }

    /// Reads until the other end closes the connection, and gives its requests and notifications to `on_message`.
    ///
    /// # Errors
    /// Returns an error if reading fails, or if too much of what comes isn't a message.
    pub fn read(&self, input: &mut dyn BufRead, on_message: &mut dyn FnMut(IncomingMessage)) -> io::Result<()> {
        let mut bad_lines = 0;
        let done = loop {
            let line = match read_line(input, MAX_LINE_BYTES) {
                Ok(Some(line)) => line,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            let refusal = match line {
                BoundedLine::TooLong => Some(Error::new(
                    i32::from(ErrorCode::InvalidRequest),
                    format!("a message has at most {MAX_LINE_BYTES} bytes"),
                )),
                BoundedLine::Line(line) if line.iter().all(u8::is_ascii_whitespace) => None,
                BoundedLine::Line(line) => self.receive(&line, on_message).err(),
            };
            let Some(refusal) = refusal else { continue };
            bad_lines += 1;
            if bad_lines > MAX_BAD_LINES {
                break Err(io::Error::new(io::ErrorKind::InvalidData, "too many lines are no messages"));
            }
            self.respond(&RequestId::Null, Err::<Value, Error>(refusal));
        };
        let mut waiting = self.waiting();
        waiting.is_closed = true;
        waiting.senders.clear();
        done
    }

    /// Takes a line. Returns the error to answer with if it isn't a message.
    fn receive(&self, line: &[u8], on_message: &mut dyn FnMut(IncomingMessage)) -> Result<(), Error> {
        let invalid = |why: &str| Error::new(i32::from(ErrorCode::InvalidRequest), why);
        let message: Value = serde_json::from_slice(line)
            .map_err(|error| Error::new(i32::from(ErrorCode::ParseError), format!("the line isn't JSON: {error}")))?;
        let Value::Object(mut message) = message else { return Err(invalid("a message is a JSON object")) };
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(invalid("a message has \"jsonrpc\": \"2.0\""));
        }
        let id = message.remove("id");
        let Some(method) = message.remove("method") else {
            // An answer that nobody waits for is dropped.
            if let Some(id) = id.as_ref().and_then(Value::as_i64)
                && let Some(sender) = self.waiting().senders.remove(&id)
            {
                // Who waited may have given up.
                let _ = sender.send(answer_of(message));
            }
            return Ok(());
        };
        let Value::String(method) = method else { return Err(invalid("a method is named by a string")) };
        let params = match message.remove("params") {
            None | Some(Value::Null) => Value::Object(Map::new()),
            Some(params) => params,
        };
        match id {
            None => on_message(IncomingMessage::Notification { method, params }),
            Some(id) => {
                let id = serde_json::from_value(id).map_err(|_| invalid("an id is a string or a whole number"))?;
                on_message(IncomingMessage::Request { id, method, params });
            }
        }
        Ok(())
    }
}

/// Reads the result or the error of an answer.
fn answer_of(mut message: Map<String, Value>) -> Result<Value, Error> {
    match message.remove("error") {
        None | Some(Value::Null) => Ok(message.remove("result").unwrap_or_default()),
        Some(error) => {
            let mut error = serde_json::from_value(error).unwrap_or_else(|_| {
                Error::new(i32::from(ErrorCode::InternalError), "the other program gives no reason")
            });
            error.message.truncate(error.message.floor_char_boundary(MAX_ERROR_BYTES));
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Keeps what was written.
    #[derive(Clone, Default)]
    struct KeptOutput(Arc<Mutex<Vec<u8>>>);

    impl Write for KeptOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("free").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl KeptOutput {
        fn lines(&self) -> Vec<Value> {
            let text = String::from_utf8(self.0.lock().expect("free").clone()).expect("UTF-8");
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
        }
    }

    #[test]
    fn whatever_comes_is_answered_or_dropped() {
        let out = KeptOutput::default();
        let connection = PeerConnection::new(Box::new(out.clone()));
        let sent = connection.request("ask", &json!({"a": 1})).expect("sent");
        let other = connection.request("ask", &json!({})).expect("sent");
        let deep = "[".repeat(100_000);
        let lines = [
            "no JSON",
            &deep,
            "[]",
            r#"{"id": 1, "method": "x"}"#,
            r#"{"jsonrpc": "2.0", "id": {}, "method": "x"}"#,
            r#"{"jsonrpc": "2.0", "id": 7, "method": 7}"#,
            "",
            r#"{"jsonrpc": "2.0", "id": 99, "result": "nobody asked"}"#,
            r#"{"jsonrpc": "2.0", "id": "1", "result": "another id"}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "result": {"b": 2}}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "result": "twice"}"#,
            r#"{"jsonrpc": "2.0", "id": "q", "method": "go"}"#,
            r#"{"jsonrpc": "2.0", "method": "said", "params": [1]}"#,
        ];
        let mut came = Vec::new();
        let text = lines.join("\n");
        connection.read(&mut text.as_bytes(), &mut |message| came.push(format!("{message:?}"))).expect("read");
        assert_eq!(came.len(), 2, "{came:?}");
        assert!(came[0].contains("\"go\"") && came[0].contains("Str(\"q\")"), "{came:?}");
        assert!(came[1].contains("said"), "{came:?}");
        assert_eq!(sent.wait(Duration::ZERO).expect("answered").expect("good"), json!({"b": 2}));
        // The connection is closed: nobody waits forever.
        assert!(other.wait(Duration::ZERO).expect("ended").is_err());
        assert!(connection.request("ask", &json!({})).is_err());
        let codes: Vec<Value> = out.lines()[2..].iter().map(|line| line["error"]["code"].clone()).collect();
        assert_eq!(codes, [-32700, -32700, -32600, -32600, -32600, -32600]);
    }

    #[test]
    fn an_end_without_sense_is_given_up() {
        let connection = PeerConnection::new(Box::new(io::sink()));
        let error = connection.read(&mut "x\n".repeat(1_000).as_bytes(), &mut |_| {}).expect_err("given up");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
