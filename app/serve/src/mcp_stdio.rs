//! Standard input and output of the MCP server. Lines that aren't messages get an answer here, with their id where they
//! have one: the library drops some of them, and a client would wait forever.

use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, Stdout, duplex};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// Maximum length of a message in bytes.
const MAX_MESSAGE_BYTES: u64 = 16 << 20;
/// Number of bytes between this module and the library.
const PIPE_BYTES: usize = 64 << 10;

/// Error codes of JSON-RPC 2.0.
const PARSE_ERROR: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;
const INVALID_PARAMS: i64 = -32_602;

/// Returns the two ends for the library, and the task that passes its output on until it has ended.
pub(crate) fn checked_stdio() -> ((DuplexStream, DuplexStream), JoinHandle<()>) {
    let (to_library, input) = duplex(PIPE_BYTES);
    let (output, from_library) = duplex(PIPE_BYTES);
    let out = Arc::new(Mutex::new(tokio::io::stdout()));
    tokio::spawn(pass_input_on(to_library, Arc::clone(&out)));
    ((input, output), tokio::spawn(pass_output_on(from_library, out)))
}

async fn pass_output_on(from_library: DuplexStream, out: Arc<Mutex<Stdout>>) {
    let mut lines = BufReader::new(from_library);
    let mut line = Vec::new();
    while matches!(lines.read_until(b'\n', &mut line).await, Ok(1..)) {
        if write_line(&out, &line).await.is_err() {
            return;
        }
        line.clear();
    }
}

async fn write_line(out: &Mutex<Stdout>, line: &[u8]) -> std::io::Result<()> {
    let mut out = out.lock().await;
    out.write_all(line).await?;
    out.flush().await
}

async fn pass_input_on(mut to_library: DuplexStream, out: Arc<Mutex<Stdout>>) {
    let mut input = BufReader::new(tokio::io::stdin());
    let (mut line, mut is_rest) = (Vec::new(), false);
    loop {
        line.clear();
        let read = (&mut input).take(MAX_MESSAGE_BYTES).read_until(b'\n', &mut line).await;
        if !matches!(read, Ok(1..)) {
            return;
        }
        let is_whole = line.last() == Some(&b'\n') || (line.len() as u64) < MAX_MESSAGE_BYTES;
        let refusal = match (std::mem::replace(&mut is_rest, !is_whole), is_whole) {
            (true, _) => continue, // the rest of a message that was refused
            (false, false) => {
                let why = format!("a message has at most {} MB", MAX_MESSAGE_BYTES >> 20);
                Some(error_reply(&Value::Null, INVALID_REQUEST, &why))
            }
            (false, true) => check_message(&line),
        };
        let passed = match refusal {
            Some(refusal) => write_line(&out, format!("{refusal}\n").as_bytes()).await,
            None => to_library.write_all(&line).await,
        };
        if passed.is_err() {
            return;
        }
    }
}

fn error_reply(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// Returns the answer to a line that is no message; `None` if the library can take it.
fn check_message(line: &[u8]) -> Option<Value> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let message: Value = match serde_json::from_slice(line) {
        Ok(message) => message,
        Err(error) => {
            let why = format!("the line isn't JSON: {error}");
            return Some(error_reply(&Value::Null, PARSE_ERROR, &why));
        }
    };
    let id = message.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
    let answer = |code, why: &str| Some(error_reply(id.as_ref().unwrap_or(&Value::Null), code, why));
    let Value::Object(fields) = &message else { return answer(INVALID_REQUEST, "a message is one JSON object") };
    match fields.get("method") {
        Some(Value::String(_)) if fields.get("params").is_none_or(Value::is_object) => None,
        // Nobody waits for an answer to a notification.
        Some(Value::String(_)) if !fields.contains_key("id") => None,
        Some(Value::String(_)) => answer(INVALID_PARAMS, "`params` is an object"),
        None if fields.contains_key("result") || fields.contains_key("error") => None,
        Some(_) | None => answer(INVALID_REQUEST, "a request has a `method`, which is a text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_that_is_no_message_gets_an_answer_with_its_id() {
        let refused = |line: &str| {
            let answer = check_message(line.as_bytes()).unwrap_or_else(|| panic!("taken: {line}"));
            (answer["id"].clone(), answer["error"]["code"].as_i64())
        };
        assert_eq!(refused("garbage"), (Value::Null, Some(PARSE_ERROR)));
        assert_eq!(refused(r#"{"id": 1"#), (Value::Null, Some(PARSE_ERROR)));
        assert_eq!(refused("[]"), (Value::Null, Some(INVALID_REQUEST)));
        assert_eq!(refused(r#"{"id": 7}"#), (json!(7), Some(INVALID_REQUEST)));
        assert_eq!(refused(r#"{"id": "q", "method": 5}"#), (json!("q"), Some(INVALID_REQUEST)));
        assert_eq!(refused(r#"{"id": 8, "method": "tools/call", "params": []}"#), (json!(8), Some(INVALID_PARAMS)));
        for line in [
            "\n",
            r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#,
            r#"{"jsonrpc": "2.0", "method": "notifications/initialized", "params": []}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#,
        ] {
            assert_eq!(check_message(line.as_bytes()), None, "{line}");
        }
    }
}
