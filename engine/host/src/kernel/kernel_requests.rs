//! Inquiries of the UI to a kernel while a note is edited: completions, descriptions, variables, figures with other
//! limits, rows of tables. They change nothing, so they bypass the session. A missing answer counts as none.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

/// Maximum number of completions that are used.
const MAX_COMPLETION_CHOICES: usize = 500;
/// Maximum number of variables that are used.
const MAX_VARIABLE_ROWS: usize = 500;
/// Maximum length of a name, a type or a value, in characters.
const MAX_VARIABLE_TEXT_CHARS: usize = 200;
/// Maximum length of a description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 10_000;

/// An inquiry to a kernel. Positions are byte offsets in the code.
#[derive(Clone, Debug, PartialEq)]
pub enum KernelInquiry {
    /// Requests completions at a position.
    Complete {
        /// Code of the cell.
        code: String,
        /// Offset of the caret in the code, in bytes.
        at: usize,
        /// The import statements of the whole note, one per line. The built-in Python knows the modules of the standard
        /// library before a cell has imported them.
        imports: String,
    },
    /// Requests a description of the name at a position.
    Describe {
        /// Code of the cell.
        code: String,
        /// Offset of the name in the code, in bytes.
        at: usize,
    },
    /// Lists the kernel's variables.
    Variables,
    /// Requests the values of some variables.
    Values {
        /// Names of the variables.
        names: Vec<String>,
    },
    /// Requests a shown figure of matplotlib, drawn with other limits.
    Redraw {
        /// ID of the figure in its output's metadata.
        figure: String,
        /// Limits of each pair of axes along x and y; `None` for those that stay.
        limits: Vec<[Option<[f64; 2]>; 2]>,
    },
    /// Requests rows of a shown data frame: as many as the kernel sends at once.
    FrameRows {
        /// ID of the frame in its output's metadata.
        frame: String,
        /// Number of the first row.
        first: usize,
    },
}

/// A completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionChoice {
    /// The text to insert.
    pub text: String,
    /// Its kind, such as `function`; may be empty.
    pub kind: String,
}

/// A variable of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelVariable {
    /// Name of the variable.
    pub name: String,
    /// Name of its type.
    pub kind: String,
    /// Its shape or length as text; empty if it has none.
    pub size: String,
    /// A short form of its value.
    pub value: String,
}

/// The answer to an inquiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InquiryAnswer {
    /// The completions, and the range of code that they replace.
    Choices {
        /// Where the replaced text starts, in bytes.
        from: usize,
        /// Where the replaced text ends, in bytes.
        to: usize,
        /// The completions, best first.
        choices: Vec<CompletionChoice>,
    },
    /// The description; `None` if nothing is known.
    Description(Option<String>),
    /// The variables; `None` if this kernel can't report them.
    Variables(Option<Vec<KernelVariable>>),
    /// The existing values by name; `None` if this kernel can't report them.
    Values(Option<serde_json::Map<String, Value>>),
    /// The figure as JSON, which wasn't checked; `None` if the kernel no longer has it or can't draw it.
    Figure(Option<String>),
    /// Rows as CSV, and their number. The first ones come after the names of the columns. `None` if the kernel no
    /// longer has the frame.
    FrameRows(Option<(String, usize)>),
}

/// Inquiries that a kernel hasn't answered yet, by request id.
pub(crate) type PendingInquiries = Arc<Mutex<HashMap<String, (KernelInquiry, Sender<InquiryAnswer>)>>>;

impl KernelInquiry {
    /// Returns whether a message of this type answers an inquiry.
    pub(crate) fn is_reply(kind: &str) -> bool {
        matches!(
            kind,
            "complete_reply"
                | "inspect_reply"
                | "variables_reply"
                | "values_reply"
                | "redraw_reply"
                | "frame_rows_reply"
        )
    }

    /// Returns the message's type and content.
    pub(crate) fn to_message(&self) -> (&'static str, Value) {
        let place = |code: &str, at: usize| {
            let letters = code.get(..at).unwrap_or(code).chars().count();
            json!({"code": code, "cursor_pos": letters, "detail_level": 0})
        };
        match self {
            KernelInquiry::Complete { code, at, imports } => {
                let mut content = place(code, *at);
                content["imports"] = imports.as_str().into();
                ("complete_request", content)
            }
            KernelInquiry::Describe { code, at } => ("inspect_request", place(code, *at)),
            KernelInquiry::Variables => ("variables_request", json!({})),
            KernelInquiry::Values { names } => ("values_request", json!({"names": names})),
            KernelInquiry::Redraw { figure, limits } => ("redraw_request", json!({"figure": figure, "limits": limits})),
            KernelInquiry::FrameRows { frame, first } => {
                ("frame_rows_request", json!({"frame": frame, "first": first}))
            }
        }
    }

    /// Parses the content of the reply.
    pub(crate) fn parse_reply(&self, content: &Value) -> InquiryAnswer {
        match self {
            KernelInquiry::Complete { code, at, .. } => parse_choices(content, code, *at),
            KernelInquiry::Describe { .. } => {
                let text = content["data"]["text/plain"].as_str();
                InquiryAnswer::Description(
                    text.map(|text| truncate_chars(text, MAX_DESCRIPTION_CHARS)).filter(|text| !text.trim().is_empty()),
                )
            }
            KernelInquiry::Values { .. } => InquiryAnswer::Values(content["values"].as_object().cloned()),
            KernelInquiry::Redraw { .. } => InquiryAnswer::Figure(content["figure"].as_str().map(ToOwned::to_owned)),
            KernelInquiry::FrameRows { .. } => {
                let csv = content["frame"]["csv"].as_str().map(ToOwned::to_owned);
                let rows = content["frame"]["rows"].as_u64().and_then(|rows| usize::try_from(rows).ok());
                InquiryAnswer::FrameRows(csv.zip(rows))
            }
            KernelInquiry::Variables => {
                let row = |row: &Value| {
                    let text =
                        |key: &str| truncate_chars(row[key].as_str().unwrap_or_default(), MAX_VARIABLE_TEXT_CHARS);
                    KernelVariable { name: text("name"), kind: text("type"), size: text("size"), value: text("value") }
                };
                let rows = content["variables"].as_array();
                InquiryAnswer::Variables(rows.map(|rows| rows.iter().take(MAX_VARIABLE_ROWS).map(row).collect()))
            }
        }
    }
}

fn parse_choices(content: &Value, code: &str, at: usize) -> InquiryAnswer {
    let byte = |key: &str| {
        let letters = content[key].as_u64().and_then(|at| usize::try_from(at).ok())?;
        code.char_indices().map(|(byte, _)| byte).chain([code.len()]).nth(letters)
    };
    let (from, to) = (byte("cursor_start").unwrap_or(at), byte("cursor_end").unwrap_or(at));
    let kinds = content["metadata"]["_jupyter_types_experimental"].as_array();
    let kind = |index: usize, text: &str| {
        let about = kinds.and_then(|kinds| kinds.get(index)).filter(|about| about["text"] == text);
        let kind = about.and_then(|about| about["type"].as_str()).unwrap_or_default();
        // Jupyter's value for an unknown kind.
        if kind == "<unknown>" { String::new() } else { truncate_chars(kind, MAX_VARIABLE_TEXT_CHARS) }
    };
    let matches =
        content["matches"].as_array().into_iter().flatten().filter_map(Value::as_str).take(MAX_COMPLETION_CHOICES);
    let choices = matches.enumerate().map(|(index, text)| CompletionChoice {
        text: truncate_chars(text, MAX_VARIABLE_TEXT_CHARS),
        kind: kind(index, text),
    });
    InquiryAnswer::Choices { from: from.min(to), to, choices: choices.collect() }
}

fn truncate_chars(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::{InquiryAnswer, KernelInquiry};
    use serde_json::json;

    #[test]
    fn places_are_bytes_here_and_letters_there() {
        let asked = KernelInquiry::Complete { code: "ö = al".to_owned(), at: 7, imports: String::new() };
        assert_eq!(asked.to_message().1["cursor_pos"], 6);
        let reply = json!({"matches": ["all"], "cursor_start": 4, "cursor_end": 6});
        let InquiryAnswer::Choices { from, to, choices } = asked.parse_reply(&reply) else { panic!("offers") };
        assert_eq!((from, to, choices[0].text.as_str(), choices[0].kind.as_str()), (5, 7, "all", ""));
        // Invalid values are ignored.
        let odd = asked.parse_reply(&json!({"matches": [1, null], "cursor_start": 900, "cursor_end": -1}));
        assert_eq!(odd, InquiryAnswer::Choices { from: 7, to: 7, choices: Vec::new() });
        assert_eq!(KernelInquiry::Variables.parse_reply(&json!({})), InquiryAnswer::Variables(None));
    }
}
