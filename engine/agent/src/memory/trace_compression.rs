//! Leaves out the calls of a run that a replay doesn't need: reads that failed or were repeated, and texts that were
//! replaced at once.

use super::trace_extraction::{CompletedCall, ToolFacts};
use crate::tool_catalog::BuiltInTool;
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns the calls without those that had no effect on the end of the run.
///
/// Left out are
/// - reads that failed: they changed nothing and found nothing;
/// - reads that repeat an earlier one, with the same result and with nothing but reads in between;
/// - whole texts of a file that the next call replaces by another.
pub fn without_redundant_calls(calls: Vec<CompletedCall>, tools: &BTreeMap<String, ToolFacts>) -> Vec<CompletedCall> {
    let only_reads = |call: &CompletedCall| tools.get(&call.tool).is_some_and(|facts| facts.idempotent);
    let mut kept: Vec<CompletedCall> = Vec::new();
    for mut call in calls {
        if only_reads(&call) {
            let mut reads = kept.iter().rev().take_while(|earlier| only_reads(earlier));
            let is_repeated = reads.any(|earlier| {
                earlier.tool == call.tool && earlier.arguments == call.arguments && earlier.result == call.result
            });
            if call.success != Some(true) || is_repeated {
                continue;
            }
        } else if call.success == Some(true)
            && let Some(path) = whole_text_path(&call)
            && let Some(replaced) =
                kept.pop_if(|last| last.success == Some(true) && whole_text_path(last) == Some(path))
        {
            call.created |= replaced.created;
        }
        kept.push(call);
    }
    kept
}

/// Returns the file of which a call writes the whole text.
fn whole_text_path(call: &CompletedCall) -> Option<&str> {
    let written = call.arguments.get("path").and_then(Value::as_str);
    written.filter(|_| BuiltInTool::WriteFile.is_named(&call.tool))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn call(tool: &str, arguments: Value, result: &str, success: bool) -> CompletedCall {
        CompletedCall {
            tool: tool.to_owned(),
            arguments: arguments.as_object().cloned().unwrap_or_default(),
            result: result.to_owned(),
            success: Some(success),
            created: false,
            looks: false,
            known: true,
        }
    }

    fn tools() -> BTreeMap<String, ToolFacts> {
        let tool = |idempotent| ToolFacts { schema: String::new(), idempotent, parameters: String::new() };
        [("read_file", true), ("search", true), ("write_file", false), ("shell", false)]
            .map(|(name, idempotent)| (name.to_owned(), tool(idempotent)))
            .into()
    }

    fn read(path: &str, result: &str) -> CompletedCall {
        call("read_file", json!({"path": path}), result, true)
    }

    fn write(path: &str, content: &str) -> CompletedCall {
        call("write_file", json!({"path": path, "content": content}), "Changed", true)
    }

    #[test]
    fn repeated_and_failed_reads_and_replaced_texts_are_left_out() {
        let first = CompletedCall { created: true, ..write("b.md", "one") };
        let calls = vec![
            call("read_file", json!({"path": "none"}), "there is no file none", false),
            read("a.md", "A"),
            call("search", json!({"query": "a"}), "a.md", true),
            read("a.md", "A"),
            first,
            write("b.md", "two"),
            read("a.md", "A"),
            write("c.md", "three"),
            write("b.md", "four"),
        ];
        let kept = without_redundant_calls(calls, &tools());
        let shown: Vec<(&str, &str)> = kept
            .iter()
            .map(|call| (call.tool.as_str(), call.arguments.get("content").and_then(Value::as_str).unwrap_or_default()))
            .collect();
        let expected = [
            ("read_file", ""),
            ("search", ""),
            ("write_file", "two"),
            ("read_file", ""),
            ("write_file", "three"),
            ("write_file", "four"),
        ];
        assert_eq!(shown, expected, "a read after a change may find something else");
        assert!(kept[2].created, "the file is new, whichever text came first");
    }

    proptest! {
        /// Files after all calls and after those that are kept are the same, and no kept read lost its result.
        #[test]
        fn the_end_stays_the_same(steps in proptest::collection::vec((0..3_u8, 0..3_u8, 0..3_u8), 0..30)) {
            let run = |calls: &[CompletedCall]| {
                let mut files: BTreeMap<String, String> = BTreeMap::new();
                for call in calls {
                    let text = |key: &str| {
                        call.arguments.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
                    };
                    match call.tool.as_str() {
                        "write_file" => { files.insert(text("path"), text("content")); }
                        "shell" => { files.insert("log".to_owned(), format!("{files:?}")); }
                        _ => assert_eq!(files.get(&text("path")).cloned().unwrap_or_default(), call.result),
                    }
                }
                files
            };
            let mut files: BTreeMap<String, String> = BTreeMap::new();
            let mut calls = Vec::new();
            for (kind, file, text) in steps {
                let (path, content) = (format!("{file}.md"), text.to_string());
                calls.push(match kind {
                    0 => read(&path, files.get(&path).map_or("", String::as_str)),
                    1 => { files.insert(path.clone(), content.clone()); write(&path, &content) }
                    _ => { files.insert("log".to_owned(), format!("{files:?}")); call("shell", json!({}), "", true) }
                });
            }
            let kept = without_redundant_calls(calls.clone(), &tools());
            prop_assert_eq!(run(&calls), run(&kept));
            prop_assert!(kept.len() <= calls.len());
        }
    }
}
