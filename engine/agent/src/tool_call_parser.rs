//! Tool calls in the answers of models: found, parsed, and checked against the tool's schema before anything else.

use crate::schema_limits::{self, ToolSchemaError};
use crate::tool_spec::ToolSpec;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use store::ToolCall;

/// Maximum number of tool calls in an answer. The model learns that further ones were dropped.
pub const MAX_CALLS_PER_ANSWER: usize = 32;
/// Maximum size of a call's arguments in bytes of JSON.
pub const MAX_CALL_ARGUMENT_BYTES: usize = 2 << 20;
/// What some models write before a call in their answer, and after it.
const CALL_TAG: &str = "<tool_call>";
const CALL_END_TAG: &str = "</tool_call>";
/// Maximum number of cached compiled schemas.
const MAX_CACHED_SCHEMAS: usize = 1_000;

/// A call in a code fence: its place in the text and its content.
#[derive(Clone, Debug, PartialEq)]
pub struct FencedCall {
    /// Range of the fenced block in bytes of the text, including the fences.
    pub range: std::ops::Range<usize>,
    /// Name and arguments, or why they can't be read.
    pub call: Result<(String, Map<String, Value>), FencedCallError>,
}

/// Why the content of a fence isn't a valid call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FencedCallError {
    /// It isn't JSON; the text is the parser's message.
    #[error("it isn't valid JSON: {0}")]
    NotJson(String),
    /// It isn't a JSON object.
    #[error("it isn't a JSON object")]
    NotObject,
    /// It doesn't name a tool.
    #[error("it names no tool; expected {{\"tool\": …, \"inputs\": {{…}}}}")]
    NoTool,
    /// Its arguments aren't a JSON object.
    #[error("its inputs aren't a JSON object")]
    InputsNotObject,
}

/// Why a call's arguments are rejected: a sentence for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolArgumentError {
    /// The arguments are larger than [`MAX_CALL_ARGUMENT_BYTES`].
    #[error("the arguments of {tool} have over {} MB", MAX_CALL_ARGUMENT_BYTES >> 20)]
    TooLarge {
        /// Name of the tool.
        tool: String,
    },
    /// The tool's schema can't be checked within limits.
    #[error("the schema of {tool} is not used: {source}")]
    SchemaLimits {
        /// Name of the tool.
        tool: String,
        /// The exceeded limit.
        source: ToolSchemaError,
    },
    /// The tool's schema is invalid.
    #[error("the schema of {tool} does not hold: {why}")]
    InvalidSchema {
        /// Name of the tool.
        tool: String,
        /// The library's message.
        why: String,
    },
    /// The arguments don't match the tool's schema.
    #[error("{tool} was called wrongly: {faults}. It takes {schema}")]
    Unfit {
        /// Name of the tool.
        tool: String,
        /// What is wrong, and where.
        faults: String,
        /// The tool's schema, as JSON.
        schema: String,
    },
}

/// Finds calls in the form of `llmos-lite.md`: a fence marked `tool`, `tool_call` or `json tool` with `{"tool": …,
/// "inputs": {…}}`. `name` with `arguments` or `parameters` is accepted, too, since small models mix the forms up.
pub fn find_fenced_calls(text: &str) -> Vec<FencedCall> {
    let mut found = Vec::new();
    let mut open: Option<(usize, usize, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let body = line.trim();
        let ticks = body.bytes().take_while(|byte| *byte == b'`').count();
        match open {
            None if ticks >= 3 && is_tool_fence(&body[ticks..]) => {
                open = Some((at, at + line.len(), ticks));
            }
            Some((start, from, fence)) if ticks >= fence && body.len() == ticks => {
                found.push(FencedCall { range: start..at + line.trim_end().len(), call: parse_call(&text[from..at]) });
                open = None;
            }
            None | Some(_) => {}
        }
        at += line.len();
    }
    // If the closing fence is missing because the model was cut off or forgot it, a call with complete JSON still
    // counts.
    if let Some((start, from, _)) = open {
        let call = parse_call(&text[from..]);
        if call.is_ok() {
            found.push(FencedCall { range: start..text.len(), call });
        }
    }
    found
}

fn parse_call(json: &str) -> Result<ParsedCall, FencedCallError> {
    let value: Value =
        serde_json::from_str(json.trim()).map_err(|error| FencedCallError::NotJson(error.to_string()))?;
    let Value::Object(mut object) = value else { return Err(FencedCallError::NotObject) };
    let name = ["tool", "name", "toolId"].iter().find_map(|key| object.get(*key)?.as_str().map(str::to_owned));
    let name = name.ok_or(FencedCallError::NoTool)?;
    let inputs = ["inputs", "arguments", "parameters"].iter().find_map(|key| object.remove(*key));
    match inputs {
        None => Ok((name, Map::new())),
        Some(Value::Object(inputs)) => Ok((name, inputs)),
        Some(_) => Err(FencedCallError::InputsNotObject),
    }
}

/// Finds calls that stand in the text itself, as `{"tool": …, "inputs": {…}}`, or alone in a `json` fence. At the start
/// of a line, `{"name": …, "arguments": {…}}` is one, too, with or without the tags that some models put around it.
/// Only objects that name one of `tools` count, because an answer may also speak about calls; other code and quotes are
/// left alone.
pub fn find_inline_calls<'a>(text: &str, tools: impl Iterator<Item = &'a str> + Clone) -> Vec<FencedCall> {
    let mut found = Vec::new();
    let mut fence: Option<InlineFence> = None;
    let mut at = 0;
    let mut resume = 0;
    for line in text.split_inclusive('\n') {
        let (start, body) = (at, line.trim());
        at += line.len();
        if start < resume {
            continue; // it belongs to a call of several lines
        }
        let ticks = body.bytes().take_while(|byte| *byte == b'`').count();
        match &fence {
            None if ticks >= 3 => {
                let is_json = matches!(body[ticks..].trim(), "" | "json");
                fence = Some(InlineFence { start, from: at, ticks, is_json });
            }
            Some(open) if ticks >= open.ticks && body.len() == ticks => {
                if open.is_json
                    && let Ok((name, inputs)) = parse_call(&text[open.from..start])
                    && nearest_tool_name(&name, tools.clone()).is_some()
                {
                    let range = open.start..start + line.trim_end().len();
                    found.push(FencedCall { range, call: Ok((name, inputs)) });
                }
                fence = None;
            }
            Some(_) => {}
            None => {
                let mut from = start;
                while let Some(begin) = inline_call_start(&text[from..], at - from, false).map(|begin| from + begin) {
                    match read_inline_call(&text[begin..], tools.clone()) {
                        Some((length, call)) => {
                            let range = with_tags(text, begin..begin + length);
                            from = range.end;
                            found.push(FencedCall { range, call: Ok(call) });
                        }
                        None => from = begin + 1,
                    }
                    if from >= at {
                        break;
                    }
                }
                resume = from.max(at);
            }
        }
        if found.len() > MAX_CALLS_PER_ANSWER {
            break;
        }
    }
    found
}

/// Removes calls in an answer's text that the model only repeats from a text that it was given: what a file or a tool
/// says is no call of the model. White space makes no difference, nor do escapes of JSON.
pub fn remove_repeated_calls(answer: &str, calls: &mut Vec<FencedCall>, given: &[String]) {
    let is_kept = |letter: &char| !letter.is_whitespace() && *letter != '\\';
    let squeeze = |text: &str| text.chars().filter(is_kept).collect::<String>();
    let given: Vec<String> =
        if calls.is_empty() { Vec::new() } else { given.iter().map(|text| squeeze(text)).collect() };
    calls.retain(|call| {
        let source = &answer[call.range.clone()];
        let object = source.find('{').zip(source.rfind('}')).filter(|(from, to)| from < to);
        let object = squeeze(object.map_or(source, |(from, to)| &source[from..=to]));
        !given.iter().any(|text| text.contains(&object))
    });
}

/// A code fence that is open while inline calls are searched.
struct InlineFence {
    start: usize,
    from: usize,
    ticks: usize,
    is_json: bool,
}

/// Returns where an object begins whose first key is `tool`, or `name` at the start of the line: in the first `length`
/// bytes, and outside of inline code. With `partly`, an object also counts whose first key is still to come.
fn inline_call_start(text: &str, length: usize, partly: bool) -> Option<usize> {
    const FIRST_KEYS: [&str; 2] = ["\"tool\"", "\"name\""];
    let line = &text[..length];
    let (mut from, mut ticks) = (0, 0);
    while let Some(at) = line[from..].find('{').map(|at| from + at) {
        ticks += line[from..at].bytes().filter(|byte| *byte == b'`').count();
        let rest = text[at + 1..].trim_start();
        // Only the first object can be at the start of the line.
        let is_first = from == 0 && matches!(line[..at].trim(), "" | CALL_TAG);
        let keys = if is_first { &FIRST_KEYS[..] } else { &FIRST_KEYS[..1] };
        let is_call = keys.iter().any(|key| rest.starts_with(key) || (partly && key.starts_with(rest)));
        if is_call && ticks % 2 == 0 {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

/// Returns where an object begins in the first `length` bytes that is a call, or may still become one.
fn possible_call_start(text: &str, length: usize) -> Option<usize> {
    let mut from = 0;
    while let Some(begin) = inline_call_start(&text[from..], length - from, true).map(|begin| from + begin) {
        let is_possible = match serde_json::Deserializer::from_str(&text[begin..]).into_iter::<Value>().next() {
            Some(Ok(value)) => is_call_object(&value),
            Some(Err(error)) => error.is_eof(),
            None => true,
        };
        if is_possible {
            return Some(begin);
        }
        from = begin + 1;
    }
    None
}

/// The name and the arguments of a call.
type ParsedCall = (String, Map<String, Value>);

/// Reads a call at the beginning of a text. Returns its length in bytes, its name and its arguments.
fn read_inline_call<'a>(text: &str, tools: impl Iterator<Item = &'a str>) -> Option<(usize, ParsedCall)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let length = values.byte_offset();
    if !is_call_object(&value) {
        return None;
    }
    let call = parse_call(&text[..length]).ok()?;
    nearest_tool_name(&call.0, tools)?;
    Some((length, call))
}

/// Returns whether an object has the form of a call. Many other objects have a name.
fn is_call_object(value: &Value) -> bool {
    const CALL_KEYS: [&str; 6] = ["name", "arguments", "parameters", "inputs", "id", "type"];
    let Some(object) = value.as_object() else { return false };
    let has_arguments = CALL_KEYS[1..4].iter().any(|key| object.get(*key).is_some_and(Value::is_object));
    object.contains_key("tool") || has_arguments && object.keys().all(|key| CALL_KEYS.contains(&key.as_str()))
}

/// Extends the range of a call by the tags around it.
fn with_tags(text: &str, range: std::ops::Range<usize>) -> std::ops::Range<usize> {
    let start = text[..range.start].trim_end().strip_suffix(CALL_TAG).map_or(range.start, str::len);
    let rest = text[range.end..].trim_start().strip_prefix(CALL_END_TAG);
    start..rest.map_or(range.end, |rest| text.len() - rest.len())
}

/// Returns the text without its fenced calls.
pub fn strip_fenced_calls(text: &str, calls: &[FencedCall]) -> String {
    let mut rest = String::new();
    let mut from = 0;
    for call in calls {
        rest.push_str(&text[from..call.range.start]);
        from = call.range.end;
    }
    rest.push_str(&text[from..]);
    rest.trim().to_owned()
}

/// Returns the part of a streamed answer that can be shown: without fenced calls, and without a last line that may
/// start one. The result only grows as the text grows.
pub fn displayable_prefix(text: &str) -> String {
    let mut out = String::new();
    let mut open = None;
    let mut next = 0;
    for line in text.split_inclusive('\n') {
        let at = next;
        next += line.len();
        let body = line.trim();
        let ticks = body.bytes().take_while(|byte| *byte == b'`').count();
        match open {
            None if !line.ends_with('\n') && (body.starts_with('`') || CALL_TAG.starts_with(body)) => break,
            None if body.starts_with(CALL_TAG) => break,
            None if ticks >= 3 && is_tool_fence(&body[ticks..]) => open = Some(ticks),
            None => {
                // What may become a call in the text isn't shown, nor what follows it.
                if let Some(begin) = possible_call_start(&text[at..], line.len()) {
                    out.push_str(&line[..begin]);
                    break;
                }
                out.push_str(line);
            }
            Some(fence) if ticks >= fence && body.len() == ticks => {
                open = None;
                // The line end after the closing fence belongs to the text.
                out.push_str(&line[line.trim_end().len()..]);
            }
            Some(_) => {}
        }
    }
    out
}

/// Returns whether a fence's info string marks a tool call.
fn is_tool_fence(info: &str) -> bool {
    matches!(info.trim(), "tool" | "tool_call" | "json tool")
}

/// Assigns ids to calls without one or with one used before, because results refer to them.
pub fn assign_call_ids(calls: Vec<ToolCall>, used: &mut BTreeSet<String>) -> Vec<ToolCall> {
    let mut given = Vec::new();
    for mut call in calls {
        // `~` is reserved: it separates a call's id from the number of a question about it.
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'~';
        let fits = |id: &str| !id.is_empty() && id.len() <= 128 && id.bytes().all(plain);
        if !fits(&call.id) || used.contains(&call.id) {
            let mut number = used.len() + 1;
            while used.contains(&format!("call_{number}")) {
                number += 1;
            }
            call.id = format!("call_{number}");
        }
        used.insert(call.id.clone());
        given.push(call);
    }
    given
}

/// Returns the compiled schema of a tool, from the cache if possible.
fn compile_schema(tool: &ToolSpec) -> Result<Arc<jsonschema::Validator>, ToolArgumentError> {
    static COMPILED_SCHEMAS: Mutex<BTreeMap<String, Arc<jsonschema::Validator>>> = Mutex::new(BTreeMap::new());
    let schema = tool.parameters.to_string();
    let mut known = COMPILED_SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(validator) = known.get(&schema) {
        return Ok(validator.clone());
    }
    let made = schema_limits::compile_schema(&tool.parameters)
        .map_err(|error| ToolArgumentError::InvalidSchema { tool: tool.name.clone(), why: error.to_string() })?;
    if known.len() >= MAX_CACHED_SCHEMAS {
        known.clear(); // servers that make up new ones all the time
    }
    let made = Arc::new(made);
    known.insert(schema, made.clone());
    Ok(made)
}

/// Checks a call's arguments against the tool's schema.
///
/// # Errors
/// Returns an error if the arguments are too large or don't match the schema, or if the schema is invalid or exceeds
/// the limits.
pub fn check_arguments(tool: &ToolSpec, arguments: &Map<String, Value>) -> Result<(), ToolArgumentError> {
    let value = Value::Object(arguments.clone());
    if value.to_string().len() > MAX_CALL_ARGUMENT_BYTES {
        return Err(ToolArgumentError::TooLarge { tool: tool.name.clone() });
    }
    schema_limits::check_limits(&tool.parameters, arguments)
        .map_err(|source| ToolArgumentError::SchemaLimits { tool: tool.name.clone(), source })?;
    let wrong = stacker::grow(schema_limits::SCHEMA_STACK_BYTES, || -> Result<Vec<String>, ToolArgumentError> {
        let validator = compile_schema(tool)?;
        let words = validator.iter_errors(&value).take(3).map(|error| {
            let place = error.instance_path().to_string();
            let words: String = error.to_string().chars().take(200).collect();
            if place.is_empty() { words } else { format!("{} {words}", place.trim_start_matches('/')) }
        });
        Ok(words.collect())
    })?;
    if wrong.is_empty() {
        return Ok(());
    }
    let (tool, schema) = (tool.name.clone(), tool.parameters.to_string());
    Err(ToolArgumentError::Unfit { tool, faults: wrong.join("; "), schema })
}

/// Other names of built-in tools, in the seeds and in other programs, without separators.
const TOOL_ALIASES: [(&str, &str); 8] = [
    ("executepython", "runpython"),
    ("python", "runpython"),
    ("executeshell", "shell"),
    ("bash", "shell"),
    ("listdirectory", "listfiles"),
    ("listdir", "listfiles"),
    ("createfile", "writefile"),
    ("searchnotes", "search"),
];

/// Returns the tool whose name differs only in case or separators, or that has another name elsewhere, for a model that
/// has misspelled it.
pub fn nearest_tool_name<'a>(name: &str, tools: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let bare = |name: &str| name.to_lowercase().replace(['-', ' ', '.', '_'], "");
    let wanted = bare(name);
    let alias = TOOL_ALIASES.iter().find(|(other, _)| *other == wanted).map(|(_, tool)| *tool);
    let mut by_alias = None;
    for tool in tools {
        let known = bare(tool);
        if known == wanted {
            return Some(tool);
        }
        if alias == Some(known.as_str()) {
            by_alias = Some(tool);
        }
    }
    by_alias
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool_spec::{ToolPermissions, ToolRisk, ToolSource};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn no_call_is_shown_while_it_comes() {
        let text = "Look:\n```tool\n{\"tool\": \"ls\"}\n```\nand `a`\n```python\nx\n```\nend `b` c";
        let mut before = String::new();
        for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            let now = displayable_prefix(&text[..end]);
            assert!(now.starts_with(&before), "{before:?} and then {now:?}");
            assert!(!now.contains("tool") && !now.contains("ls"), "{now:?}");
            before = now;
        }
        assert_eq!(before, "Look:\n\nand `a`\n```python\nx\n```\nend `b` c");
        assert_eq!(before.trim(), strip_fenced_calls(text, &find_fenced_calls(text)));
    }

    #[test]
    fn fenced_calls_are_found() {
        let text = "I look.\n```tool\n{\"tool\": \"read_file\", \"inputs\": {\"path\": \"a.md\"}}\n```\nThen:\n\
                    ````tool\n{\"name\": \"x\", \"arguments\": {\"code\": \"```\\n\"}}\n````\n```tool\nnonsense\n```\n";
        let calls = find_fenced_calls(text);
        let names: Vec<_> = calls.iter().map(|call| call.call.as_ref().map(|(name, _)| name.as_str())).collect();
        assert_eq!(names[..2], [Ok("read_file"), Ok("x")]);
        assert!(names[2].is_err());
        assert_eq!(strip_fenced_calls(text, &calls), "I look.\n\nThen:");
        assert_eq!(find_fenced_calls("```tool\n{\"tool\": \"ls\"}").len(), 1, "the end may be missing");
        assert_eq!(find_fenced_calls("```tool\n{\"tool\": \"l").len(), 0, "half a call is none");
        assert_eq!(find_fenced_calls("```python\n{\"tool\": \"ls\"}\n```").len(), 0);
    }

    #[test]
    fn calls_in_the_text_itself_are_found() {
        let tools = ["read_file", "run_python"];
        let found = |text: &str| -> Vec<String> {
            let calls = find_inline_calls(text, tools.into_iter());
            calls.into_iter().filter_map(|call| Some(call.call.ok()?.0)).collect()
        };
        let text = "Sure: {\"tool\":\"read-file\",\"inputs\":{\"path\":\"a {b}.md\"}} and\n{\n \
                    \"tool\": \"execute-python\",\n \
                    \"inputs\": {\"code\": \"1\"}\n}\nDone.";
        assert_eq!(found(text), ["read-file", "execute-python"]);
        let calls = find_inline_calls(text, tools.into_iter());
        assert_eq!(strip_fenced_calls(text, &calls), "Sure:  and\n\nDone.");
        assert_eq!(found("```json\n{\"tool\": \"read_file\", \"inputs\": {}}\n```"), ["read_file"]);
        for other in [
            "`{\"tool\":\"read_file\",\"inputs\":{}}` is how to call it",
            "```python\nx = {\"tool\": \"read_file\"}\n```",
            "{\"tool\": \"hammer\", \"inputs\": {}}",
            "{\"tool\": \"read_file\", \"inputs\": {",
            "{\"tools\": [\"read_file\"]}",
        ] {
            assert_eq!(found(other), [] as [&str; 0], "{other}");
        }
        // Some models call by name: alone, or in tags.
        let named = "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.md\"}}";
        let tagged = format!("I look.\n<tool_call>\n{named}\n</tool_call>\n<tool_call>{named}</tool_call>\nSo.");
        assert_eq!((found(named).len(), found(&format!("```\n{named}\n```")).len(), found(&tagged).len()), (1, 1, 2));
        let calls = find_inline_calls(&tagged, tools.into_iter());
        assert_eq!(strip_fenced_calls(&tagged, &calls), "I look.\n\n\nSo.");
        for other in [
            format!("It is called as {named}"),
            "{\"name\": \"read_file\", \"description\": \"Reads.\", \"parameters\": {}}".to_owned(),
            "{\"name\": \"read_file\"}".to_owned(),
            "{\"name\": \"Ada\", \"arguments\": {}}".to_owned(),
        ] {
            assert_eq!(found(&other), [] as [&str; 0], "{other}");
        }
        for text in [text, tagged.as_str()] {
            let mut before = String::new();
            for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
                let now = displayable_prefix(&text[..end]);
                let is_plain = !now.contains(['{', '<']);
                assert!(now.starts_with(&before) && is_plain, "{before:?} and then {now:?}");
                before = now;
            }
        }
        // Other objects are shown once they are known to be none.
        let package = "```json\n{\n  \"name\": \"sail\",\n  \"version\": \"1\"\n}\n```\nThat is it.";
        assert_eq!(displayable_prefix(package), package);
        assert_eq!(displayable_prefix(&package[..30]), "```json\n");
        assert_eq!(nearest_tool_name("execute-python", tools.into_iter()), Some("run_python"));
    }

    #[test]
    fn arguments_are_checked() {
        let tool = ToolSpec {
            name: "read_file".to_owned(),
            description: String::new(),
            parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
                "additionalProperties": false}),
            risk: ToolRisk::None,
            permissions: ToolPermissions::default(),
            idempotent: true,
            source: ToolSource::BuiltIn,
        };
        let object = |value: Value| value.as_object().cloned().expect("an object");
        assert_eq!(check_arguments(&tool, &object(json!({"path": "a"}))), Ok(()));
        for wrong in [json!({}), json!({"path": 1}), json!({"path": "a", "mode": "x"})] {
            let why = check_arguments(&tool, &object(wrong)).expect_err("wrong");
            assert!(why.to_string().starts_with("read_file was called wrongly: "), "{why}");
        }
    }

    #[test]
    fn ids_are_given_once() {
        let call = |id: &str| ToolCall { id: id.to_owned(), name: "x".to_owned(), arguments: Map::new() };
        let mut used = BTreeSet::from(["a".to_owned()]);
        let ids: Vec<String> = assign_call_ids(vec![call("a"), call(""), call("b"), call("b")], &mut used)
            .into_iter()
            .map(|call| call.id)
            .collect();
        assert_eq!(ids, ["call_2", "call_3", "b", "call_5"]);
        assert_eq!(nearest_tool_name("Read-File", ["list_files", "read_file"].into_iter()), Some("read_file"));
    }

    #[test]
    fn many_braces_take_time_that_grows_with_them() {
        let begun = std::time::Instant::now();
        for part in ["{", "{\"tool\" ", "{\"name\" ", "`{", "{ "] {
            let text = part.repeat(300_000);
            assert!(find_inline_calls(&text, ["read_file"].into_iter()).is_empty(), "{part}");
            displayable_prefix(&text);
        }
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    }

    proptest! {
        #[test]
        fn whatever_a_model_says_is_cut_at_letters(text in "(\\PC|`|\n|tool){0,80}") {
            let calls = find_fenced_calls(&text);
            strip_fenced_calls(&text, &calls);
        }
    }
}
