//! Standard input and output of the MCP server. Lines that aren't messages get an answer here, with their id where they
//! have one: the library drops some of them, and a client would wait forever.

use crate::mcp_batches::{BatchedAnswer, MAX_BATCH_MESSAGES, OpenBatches};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, Stdout, duplex};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// Maximum length of a message in bytes.
const MAX_MESSAGE_BYTES: u64 = 16 << 20;
/// Number of bytes between this module and the library.
const PIPE_BYTES: usize = 64 << 10;

/// 2 to the power of 53.
const MAX_EXACT_NUMBER: f64 = 9_007_199_254_740_992.0;

/// Error codes of JSON-RPC 2.0.
pub(crate) const PARSE_ERROR: i64 = -32_700;
pub(crate) const INVALID_REQUEST: i64 = -32_600;
const INVALID_PARAMS: i64 = -32_602;

/// Standard output, and the batches whose answers go there.
struct ClientOutput {
    out: Mutex<Stdout>,
    batches: OpenBatches,
}

impl ClientOutput {
    async fn write(&self, line: &[u8]) -> std::io::Result<()> {
        let mut out = self.out.lock().await;
        out.write_all(line).await?;
        out.flush().await
    }

    async fn write_value(&self, value: &Value) -> std::io::Result<()> {
        self.write(format!("{value}\n").as_bytes()).await
    }
}

/// Returns the two ends for the library, and the task that passes its output on until it has ended.
pub(crate) fn checked_stdio() -> ((DuplexStream, DuplexStream), JoinHandle<()>) {
    let (to_library, input) = duplex(PIPE_BYTES);
    let (output, from_library) = duplex(PIPE_BYTES);
    let out = Arc::new(ClientOutput { out: Mutex::new(tokio::io::stdout()), batches: OpenBatches::default() });
    tokio::spawn(pass_input_on(to_library, Arc::clone(&out)));
    ((input, output), tokio::spawn(pass_output_on(from_library, out)))
}

async fn pass_output_on(from_library: DuplexStream, out: Arc<ClientOutput>) {
    let mut lines = BufReader::new(from_library);
    let mut line = Vec::new();
    while matches!(lines.read_until(b'\n', &mut line).await, Ok(1..)) {
        let written = match out.batches.take(&line) {
            BatchedAnswer::Single => out.write(&line).await,
            BatchedAnswer::Held => Ok(()),
            BatchedAnswer::Whole(answers) => out.write_value(&answers).await,
        };
        if written.is_err() {
            return;
        }
        line.clear();
    }
}

async fn pass_input_on(mut to_library: DuplexStream, out: Arc<ClientOutput>) {
    let mut input = BufReader::new(tokio::io::stdin());
    let (mut line, mut is_rest) = (Vec::new(), false);
    loop {
        line.clear();
        let read = (&mut input).take(MAX_MESSAGE_BYTES).read_until(b'\n', &mut line).await;
        if !matches!(read, Ok(1..)) {
            return;
        }
        let is_whole = line.last() == Some(&b'\n') || (line.len() as u64) < MAX_MESSAGE_BYTES;
        let checked = match (std::mem::replace(&mut is_rest, !is_whole), is_whole) {
            (true, _) => continue, // the rest of a message that was refused
            (false, false) => {
                let why = format!("a message has at most {} MB", MAX_MESSAGE_BYTES >> 20);
                CheckedLine::Refused(error_reply(&Value::Null, INVALID_REQUEST, &why))
            }
            (false, true) => check_line(&line),
        };
        let passed = match checked {
            CheckedLine::Blank => Ok(()),
            CheckedLine::Refused(refusal) => out.write_value(&refusal).await,
            CheckedLine::Message(message) => pass_message(&mut to_library, &out, &message, &line).await,
            CheckedLine::Batch(messages) => pass_batch(&mut to_library, &out, &messages).await,
        };
        if passed.is_err() {
            return;
        }
    }
}

/// Passes a message on as it came.
async fn pass_message(
    to_library: &mut DuplexStream,
    out: &ClientOutput,
    message: &Value,
    line: &[u8],
) -> std::io::Result<()> {
    if let Some(answers) = out.batches.cancel(message) {
        out.write_value(&answers).await?;
    }
    to_library.write_all(line).await
}

/// Passes the messages of a batch on, one by one.
async fn pass_batch(to_library: &mut DuplexStream, out: &ClientOutput, messages: &[Value]) -> std::io::Result<()> {
    let (mut passed, mut waiting, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for message in messages {
        match check_message(message) {
            Some(refusal) => refused.push(refusal),
            None => {
                let id = message.get("id").filter(|_| message.get("method").is_some());
                waiting.extend(id.and_then(request_id));
                passed.push(message);
            }
        }
    }
    if let Some(answers) = out.batches.begin(waiting, refused) {
        out.write_value(&answers).await?;
    }
    for message in passed {
        pass_message(to_library, out, message, format!("{message}\n").as_bytes()).await?;
    }
    Ok(())
}

fn error_reply(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// Returns the id under which the library answers a request; `None` if it takes no such id.
fn request_id(id: &Value) -> Option<Value> {
    // Up to here, whole numbers with a fraction of 0 are exact.
    let whole = || id.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < MAX_EXACT_NUMBER);
    match id.is_string() || id.is_i64() {
        true => Some(id.clone()),
        false => whole().map(|number| Value::from(number as i64)),
    }
}

/// What a line of the client is.
#[derive(Debug, PartialEq)]
enum CheckedLine {
    Blank,
    /// A message that the library can take.
    Message(Value),
    /// Several messages, each of which is still to be checked.
    Batch(Vec<Value>),
    /// Something else, with the answer to it.
    Refused(Value),
}

fn check_line(line: &[u8]) -> CheckedLine {
    if line.iter().all(u8::is_ascii_whitespace) {
        return CheckedLine::Blank;
    }
    match serde_json::from_slice::<Value>(line) {
        Err(error) => {
            let why = format!("the line isn't JSON: {error}");
            CheckedLine::Refused(error_reply(&Value::Null, PARSE_ERROR, &why))
        }
        Ok(Value::Array(messages)) if !messages.is_empty() => match messages.len() {
            ..=MAX_BATCH_MESSAGES => CheckedLine::Batch(messages),
            _ => {
                let why = format!("a batch has at most {MAX_BATCH_MESSAGES} messages");
                CheckedLine::Refused(error_reply(&Value::Null, INVALID_REQUEST, &why))
            }
        },
        Ok(message) => match check_message(&message) {
            Some(refusal) => CheckedLine::Refused(refusal),
            None => CheckedLine::Message(message),
        },
    }
}

/// Returns the answer to what is no message; `None` if the library can take it.
fn check_message(message: &Value) -> Option<Value> {
    let id = message.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
    let answer = |code, why: &str| Some(error_reply(id.as_ref().unwrap_or(&Value::Null), code, why));
    let Value::Object(fields) = message else { return answer(INVALID_REQUEST, "a message is one JSON object") };
    let own_id = fields.get("id");
    match fields.get("method") {
        // Nobody waits for an answer to a notification.
        Some(Value::String(_)) if own_id.is_none() => None,
        Some(Value::String(_)) if !fields.get("params").is_none_or(Value::is_object) => {
            answer(INVALID_PARAMS, "`params` is an object")
        }
        // The library would answer these without their id.
        Some(Value::String(_)) if fields.get("jsonrpc").is_none_or(|version| version != "2.0") => {
            answer(INVALID_REQUEST, "`jsonrpc` is \"2.0\"")
        }
        Some(Value::String(_)) if own_id.and_then(request_id).is_none() => {
            answer(INVALID_REQUEST, "`id` is a text or a whole number of at most 63 bits")
        }
        Some(Value::String(_)) => None,
        None if fields.contains_key("result") || fields.contains_key("error") => None,
        Some(_) | None => answer(INVALID_REQUEST, "a request has a `method`, which is a text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_that_is_no_message_gets_an_answer_with_its_id() {
        let refused = |line: &str| match check_line(line.as_bytes()) {
            CheckedLine::Refused(answer) => (answer["id"].clone(), answer["error"]["code"].as_i64()),
            other => panic!("taken as {other:?}: {line}"),
        };
        assert_eq!(refused("garbage"), (Value::Null, Some(PARSE_ERROR)));
        assert_eq!(refused(r#"{"id": 1"#), (Value::Null, Some(PARSE_ERROR)));
        assert_eq!(refused("[]"), (Value::Null, Some(INVALID_REQUEST)));
        assert_eq!(refused(r#"{"id": 7}"#), (json!(7), Some(INVALID_REQUEST)));
        assert_eq!(refused(r#"{"id": "q", "method": 5}"#), (json!("q"), Some(INVALID_REQUEST)));
        assert_eq!(refused(r#"{"id": 8, "method": "tools/call", "params": []}"#), (json!(8), Some(INVALID_PARAMS)));
        assert_eq!(refused(r#"{"id": 9, "method": "ping"}"#), (json!(9), Some(INVALID_REQUEST)));
        for id in [json!(1.5), json!(u64::MAX), json!(1e30)] {
            let line = json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string();
            assert_eq!(refused(&line), (id, Some(INVALID_REQUEST)));
        }
        for id in [json!(null), json!(true), json!([1])] {
            let line = json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string();
            assert_eq!(refused(&line), (Value::Null, Some(INVALID_REQUEST)));
        }
        assert_eq!(request_id(&json!(1e3)), Some(json!(1000)));
        for line in [
            r#"{"jsonrpc": "2.0", "id": 1e3, "method": "tools/list"}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#,
            r#"{"jsonrpc": "2.0", "method": "notifications/initialized", "params": []}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#,
        ] {
            assert!(matches!(check_line(line.as_bytes()), CheckedLine::Message(_)), "{line}");
        }
        assert_eq!(check_line(b" \r\n"), CheckedLine::Blank);
        assert_eq!(check_line(b"[1, {}]"), CheckedLine::Batch(vec![json!(1), json!({})]));
        let long = format!("[{}0]", "0,".repeat(MAX_BATCH_MESSAGES));
        assert_eq!(refused(&long), (Value::Null, Some(INVALID_REQUEST)));
    }
}
