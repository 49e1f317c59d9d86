//! Reads requests: one JSON object per line, of limited length, each parsed into one of the known requests.
//!
//! Parsing never fails and never panics: an invalid line becomes `IncomingRequest::Invalid` with a message, and reading
//! continues. This module sends no answers and starts nothing.

use std::io::{BufRead, Read};

use serde_json::{Map, Value};

use crate::cell::{CellRequest, PureCellBindings};
use crate::ipython_syntax::plain_python;

/// Maximum length of a request line; longer ones are skipped unread. That's far above any cell a person writes, and far
/// below what exhausts memory.
pub(crate) const MAX_KERNEL_REQUEST_BYTES: usize = 64 << 20;

/// A message from the host.
#[derive(Debug, PartialEq)]
pub enum IncomingRequest {
    /// A valid request.
    Request {
        /// Header of the request, which every answer repeats.
        header: Value,
        /// Parsed content of the request.
        body: RequestBody,
    },
    /// An invalid line.
    Invalid {
        /// Header to answer; an empty object if the line has none.
        parent: Value,
        /// Error message.
        why: String,
    },
    /// The host has disconnected.
    End,
}

/// Body of a request that the kernel supports.
#[derive(Debug, PartialEq)]
pub enum RequestBody {
    /// Runs a cell.
    Execute(CellRequest),
    /// Answers a query about variables or code.
    Query(KernelQuery),
    /// The user's answer to a cell's prompt.
    Answer(String),
    /// The host's reply about the result of a pure cell.
    PureReply(Value),
    /// Interrupts the running cell.
    Interrupt,
    /// Asks for information about the kernel.
    Info,
    /// Shuts the kernel down.
    Shutdown,
    /// Makes another saved state the current one.
    State(Value),
}

/// A query about variables, or about code being edited. Positions are in characters.
#[derive(Debug, PartialEq)]
pub enum KernelQuery {
    /// Completions at a position.
    Complete {
        /// The cell's code.
        code: String,
        /// Position of the cursor in the code.
        at: usize,
        /// The import statements of the whole note, one per line.
        imports: String,
    },
    /// Information about the name at a position.
    Inspect {
        /// The cell's code.
        code: String,
        /// Position of the cursor in the code.
        at: usize,
    },
    /// All variables.
    Variables,
    /// The values of some variables.
    Values {
        /// Names of the variables, one per line.
        names: String,
    },
    /// A shown figure of matplotlib, drawn again with other limits.
    Redraw {
        /// ID of the figure in its output's metadata.
        figure: String,
        /// Limits of each pair of axes along x and y, as `matplotlib_backend.py` describes them.
        limits: Value,
    },
    /// Rows of a shown data frame.
    FrameRows {
        /// ID of the frame in its output's metadata.
        frame: String,
        /// Number of the first row.
        first: u64,
    },
}

/// Reads the requests of an input, in order.
pub struct RequestReader<R> {
    input: R,
    limit: usize,
    line: Vec<u8>,
}

impl<R: BufRead> RequestReader<R> {
    /// Creates a reader of `input`.
    pub fn new(input: R) -> RequestReader<R> {
        RequestReader { input, limit: MAX_KERNEL_REQUEST_BYTES, line: Vec::new() }
    }

    /// Waits for the next request. Empty lines are skipped.
    pub fn next_request(&mut self) -> IncomingRequest {
        loop {
            self.line.clear();
            self.line.shrink_to(1 << 20); // do not hold on to what one huge cell needed
            let bound = self.limit as u64 + 1;
            // A read error counts as the end of the input.
            match self.input.by_ref().take(bound).read_until(b'\n', &mut self.line) {
                Ok(0) | Err(_) => return IncomingRequest::End,
                Ok(_) => {}
            }
            if self.line.len() > self.limit && !self.line.ends_with(b"\n") {
                // A read error here is detected at the next read.
                let _ = self.input.skip_until(b'\n');
                let why = format!("the request is longer than {} bytes and was not read", self.limit);
                return IncomingRequest::Invalid { parent: empty_header(), why };
            }
            if !self.line.trim_ascii().is_empty() {
                return parse_request(&self.line);
            }
        }
    }
}

/// Returns the parent header of a message that answers no request.
pub(crate) fn empty_header() -> Value {
    Value::Object(Map::new())
}

fn parse_request(line: &[u8]) -> IncomingRequest {
    let mut message = match serde_json::from_slice::<Value>(line) {
        Ok(message) => message,
        Err(error) => {
            return IncomingRequest::Invalid {
                parent: empty_header(),
                why: format!("the request is not JSON: {error}"),
            };
        }
    };
    let header = match message.get_mut("header").map(Value::take) {
        Some(header @ Value::Object(_)) => header,
        _ => return IncomingRequest::Invalid { parent: empty_header(), why: "the request has no header".into() },
    };
    let body = match header.get("msg_type").and_then(Value::as_str) {
        Some("execute_request") => match parse_execute(message.get_mut("content")) {
            Some(cell) => RequestBody::Execute(cell),
            None => return IncomingRequest::Invalid { parent: header, why: "the execute_request has no code".into() },
        },
        Some(kind @ ("complete_request" | "inspect_request")) => {
            let inspect = kind == "inspect_request";
            let imports = message.get("content").and_then(|content| content.get("imports")).and_then(Value::as_str);
            let imports = imports.unwrap_or_default().to_owned();
            match code_and_cursor(message.get_mut("content")) {
                Some((code, at)) if inspect => RequestBody::Query(KernelQuery::Inspect { code, at }),
                Some((code, at)) => RequestBody::Query(KernelQuery::Complete { code, at, imports }),
                None => return IncomingRequest::Invalid { parent: header, why: "the request has no code".into() },
            }
        }
        Some("variables_request") => RequestBody::Query(KernelQuery::Variables),
        Some("values_request") => {
            let names = message.get("content").and_then(|content| content.get("names")).and_then(Value::as_array);
            let Some(names) = names else {
                return IncomingRequest::Invalid { parent: header, why: "the values_request has no names".into() };
            };
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            RequestBody::Query(KernelQuery::Values {
                names: names.join(
                    "
",
                ),
            })
        }
        Some(kind @ ("redraw_request" | "frame_rows_request")) => {
            let content = message.get("content");
            let member = |key: &str| content.and_then(|content| content.get(key)).cloned().unwrap_or_default();
            let text = |key: &str| member(key).as_str().unwrap_or_default().to_owned();
            RequestBody::Query(match kind {
                "redraw_request" => KernelQuery::Redraw { figure: text("figure"), limits: member("limits") },
                _ => KernelQuery::FrameRows { frame: text("frame"), first: member("first").as_u64().unwrap_or(0) },
            })
        }
        Some("input_reply") => {
            let value = message.get("content").and_then(|content| content.get("value")).and_then(Value::as_str);
            RequestBody::Answer(value.unwrap_or_default().to_owned())
        }
        Some("pure_reply") => RequestBody::PureReply(message.get_mut("content").map(Value::take).unwrap_or_default()),
        Some("state_request") => RequestBody::State(message.get_mut("content").map(Value::take).unwrap_or_default()),
        Some("interrupt_request") => RequestBody::Interrupt,
        Some("kernel_info_request") => RequestBody::Info,
        Some("shutdown_request") => RequestBody::Shutdown,
        Some(other) => {
            let why = format!("there is no message type {other:?}");
            return IncomingRequest::Invalid { parent: header, why };
        }
        None => return IncomingRequest::Invalid { parent: header, why: "the request's header has no msg_type".into() },
    };
    IncomingRequest::Request { header, body }
}

/// Returns the code and the cursor position, which is the code's end if it's missing.
fn code_and_cursor(content: Option<&mut Value>) -> Option<(String, usize)> {
    let content = content?;
    let Some(Value::String(code)) = content.get_mut("code").map(Value::take) else { return None };
    let at = content.get("cursor_pos").and_then(Value::as_u64).and_then(|at| usize::try_from(at).ok());
    let at = at.unwrap_or_else(|| code.chars().count());
    Some((code, at))
}

fn parse_execute(content: Option<&mut Value>) -> Option<CellRequest> {
    let content = content?;
    let Some(Value::String(code)) = content.get_mut("code").map(Value::take) else { return None };
    let label = content.get("cell").and_then(Value::as_str).unwrap_or_default();
    let silent = content.get("silent").and_then(Value::as_bool).unwrap_or(false);
    let names = |of: &Value, key: &str| {
        let names = of.get(key).and_then(Value::as_array).into_iter().flatten();
        names.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
    };
    let pure = content.get("pure").filter(|pure| pure.is_object());
    let pure = pure.map(|pure| PureCellBindings { uses: names(pure, "uses"), binds: names(pure, "binds") });
    let code = plain_python(&code).into_owned();
    let after = content.get("after").filter(|after| after.is_array()).map(|_| names(content, "after"));
    let text = |key: &str| content.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
    let (branch, file) = (text("branch"), text("file"));
    let forget = names(content, "forget");
    Some(CellRequest { forget, pure, after, branch, file, ..CellRequest::new(code, label, silent) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn all(input: &[u8], limit: usize) -> Vec<IncomingRequest> {
        let mut requests = RequestReader { limit, ..RequestReader::new(input) };
        std::iter::from_fn(|| Some(requests.next_request()).filter(|incoming| *incoming != IncomingRequest::End))
            .collect()
    }

    fn whys(input: &[u8]) -> Vec<String> {
        let why = |incoming| match incoming {
            IncomingRequest::Invalid { why, .. } => why,
            other => format!("{other:?}"),
        };
        all(input, 1000).into_iter().map(why).collect()
    }

    #[test]
    fn a_request_keeps_its_header() {
        let line = br#"{"header":{"msg_type":"execute_request","msg_id":"7"},"content":{"code":"1","cell":"cell 2"}}"#;
        let header = json!({"msg_type": "execute_request", "msg_id": "7"});
        let body = RequestBody::Execute(CellRequest::new("1".into(), "cell 2", false));
        assert_eq!(all(line, 1000), [IncomingRequest::Request { header, body }]);
    }

    #[test]
    fn what_is_no_request_is_said_and_passed_over() {
        assert_eq!(whys(b"\n\nnonsense\n"), ["the request is not JSON: expected ident at line 1 column 2"]);
        assert_eq!(whys(b"[1]\n{}\n"), ["the request has no header", "the request has no header"]);
        assert_eq!(whys(br#"{"header":{}}"#), ["the request's header has no msg_type"]);
        assert_eq!(whys(br#"{"header":{"msg_type":"dance"}}"#), [r#"there is no message type "dance""#]);
        let no_code = br#"{"header":{"msg_type":"execute_request"},"content":{"code":3}}"#;
        assert_eq!(whys(no_code), ["the execute_request has no code"]);
        assert!(whys(b"\xff\xfe\n")[0].starts_with("the request is not JSON"));
        assert!(whys("[".repeat(900).as_bytes())[0].starts_with("the request is not JSON"));
    }

    #[test]
    fn a_line_over_the_limit_is_refused_and_the_next_one_read() {
        let interrupt = br#"{"header":{"msg_type":"interrupt_request"}}"#;
        let mut input = vec![b'x'; 5000];
        input.push(b'\n');
        input.extend_from_slice(interrupt);
        let read = all(&input, interrupt.len());
        assert!(matches!(&read[0], IncomingRequest::Invalid { why, .. } if why.contains("longer than")), "{read:?}");
        assert!(matches!(read[1], IncomingRequest::Request { body: RequestBody::Interrupt, .. }), "{read:?}");
        assert_eq!(read.len(), 2);
    }
}
