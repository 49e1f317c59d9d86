//! Reads notebook files: JSON that claims to be a notebook is upgraded to format 4, or a message says why it can't be.
//!
//! Everything stays JSON: unknown fields are preserved.

use crate::notebook_upgrade::upgrade_notebook;
use serde_json::{Value, json};

/// Maximum size of a notebook file. Larger files are refused.
const MAX_NOTEBOOK_BYTES: usize = 256 << 20;

/// Numbers that JSON doesn't have, as Python's `json` writes them.
const ODD_NUMBERS: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];

/// Error of reading a notebook file, as a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotebookReadError(pub String);

/// Reads a notebook file. The result has format 4; formats 2 and 3 are upgraded, and errors that Jupyter tolerates too
/// (a missing minor version, duplicate ids) are fixed.
///
/// # Errors
/// Returns [`NotebookReadError`] if the bytes aren't JSON, aren't a notebook, or contain an invalid cell.
pub fn read_notebook(bytes: &[u8]) -> Result<Value, NotebookReadError> {
    read_notebook_with_nulls(bytes).map(|(file, _)| file)
}

/// Reads a notebook file as [`read_notebook`] does. Also returns how many numbers were read as null, because JSON
/// doesn't have them: NaN and infinity.
///
/// # Errors
/// Returns an error under the same conditions as [`read_notebook`].
pub fn read_notebook_with_nulls(bytes: &[u8]) -> Result<(Value, usize), NotebookReadError> {
    if bytes.len() > MAX_NOTEBOOK_BYTES {
        return Err(NotebookReadError(format!("the notebook is larger than {} MB", MAX_NOTEBOOK_BYTES >> 20)));
    }
    // Some editors write a byte order mark, which JSON doesn't have.
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let (file, nulls) =
        parse_json(bytes).map_err(|error| NotebookReadError(format!("it is not a notebook: no JSON ({error})")))?;
    Ok((upgrade_and_repair(file)?, nulls))
}

/// Parses JSON, in which NaN and infinity become null. Returns how many there were.
fn parse_json(bytes: &[u8]) -> serde_json::Result<(Value, usize)> {
    serde_json::from_slice(bytes).map(|file| (file, 0)).or_else(|error| match replace_odd_numbers(bytes) {
        (_, 0) => Err(error),
        (bytes, nulls) => serde_json::from_slice(&bytes).map(|file| (file, nulls)),
    })
}

/// Replaces NaN and infinity outside of strings by null. Returns how many there were.
fn replace_odd_numbers(bytes: &[u8]) -> (Vec<u8>, usize) {
    let (mut out, mut count, mut in_string) = (Vec::with_capacity(bytes.len()), 0, false);
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        let odd = ODD_NUMBERS.into_iter().find(|number| !in_string && rest.starts_with(number));
        if let Some(number) = odd {
            out.extend_from_slice(b"null");
            count += 1;
            rest = &rest[number.len()..];
            continue;
        }
        in_string ^= *first == b'"';
        let length = if in_string && *first == b'\\' { rest.len().min(2) } else { 1 };
        out.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
    }
    (out, count)
}

fn upgrade_and_repair(mut file: Value) -> Result<Value, NotebookReadError> {
    let format = file.get("nbformat").and_then(Value::as_i64);
    let Some(format) = format.filter(|_| file.is_object()) else {
        return Err(NotebookReadError(
            "it is not a notebook: it does not say which format it has (nbformat)".to_owned(),
        ));
    };
    match format {
        2 | 3 => {
            file = upgrade_notebook(file)
                .map_err(|why| NotebookReadError(format!("it is not a valid notebook of format {format}: {why}")))?;
        }
        4 => {}
        ..2 => {
            let why = format!("its notebook format {format} is too old; save it again with Jupyter");
            return Err(NotebookReadError(why));
        }
        _ => {
            let why = format!("its notebook format {format} is newer than what is known here (4)");
            return Err(NotebookReadError(why));
        }
    }
    validate(&file)?;
    repair(&mut file);
    Ok(file)
}

/// Returns a source or text as one string. Notebooks store it as a string or as a list of lines.
pub(crate) fn join_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(lines) => lines.iter().map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Returns a text in Jupyter's format: a list of lines, each with its line break.
pub(crate) fn split_lines(text: &str) -> Value {
    text.split_inclusive('\n').collect()
}

fn validate(file: &Value) -> Result<(), NotebookReadError> {
    let no =
        |at: usize, what: &str| Err(NotebookReadError(format!("it is not a valid notebook: cell {} {what}", at + 1)));
    let Some(cells) = file.get("cells").and_then(Value::as_array) else {
        return Err(NotebookReadError("it is not a valid notebook: it has no cells".to_owned()));
    };
    if file.get("metadata").is_some_and(|metadata| !metadata.is_object()) {
        return Err(NotebookReadError("it is not a valid notebook: its metadata are no object".to_owned()));
    }
    // Content of later minor versions is preserved but not shown.
    let later = file.get("nbformat_minor").and_then(Value::as_i64).is_some_and(|minor| minor > 5);
    for (at, cell) in cells.iter().enumerate() {
        match cell["cell_type"].as_str() {
            Some("markdown" | "code" | "raw") => {}
            Some(_) if later => continue,
            Some(other) => return no(at, &format!("is of a kind that does not exist: {other}")),
            None => return no(at, "has no kind"),
        }
        if join_text(&cell["source"]).is_none() {
            return no(at, "has no source");
        }
        if cell.get("metadata").is_some_and(|metadata| !metadata.is_object()) {
            return no(at, "has metadata that are no object");
        }
        let outputs = cell.get("outputs");
        let good = |outputs: &Value| outputs.as_array().is_some_and(|outputs| outputs.iter().all(Value::is_object));
        if cell["cell_type"] == "code" && !outputs.is_none_or(good) {
            return no(at, "has outputs that are no list");
        }
    }
    Ok(())
}

fn is_id(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn repair(file: &mut Value) {
    let Some(top) = file.as_object_mut() else { return };
    let minor = top.entry("nbformat_minor").or_insert_with(|| json!(4)).as_i64().unwrap_or(0);
    top.entry("metadata").or_insert_with(|| json!({}));
    let mut taken = std::collections::BTreeSet::new();
    let cells = top.get_mut("cells").and_then(Value::as_array_mut);
    for (at, cell) in cells.into_iter().flatten().filter_map(Value::as_object_mut).enumerate() {
        cell.entry("metadata").or_insert_with(|| json!({}));
        if cell.get("cell_type").is_some_and(|kind| kind == "code") {
            cell.entry("outputs").or_insert_with(|| json!([]));
            cell.entry("execution_count").or_insert(Value::Null);
        }
        if minor >= 5 {
            let id = cell.get("id").and_then(Value::as_str).filter(|id| is_id(id)).map(ToOwned::to_owned);
            let id = id.filter(|id| !taken.contains(id)).unwrap_or_else(|| {
                let source = cell.get("source").map(Value::to_string).unwrap_or_default();
                fresh_id(&format!("{at} {source}"), &taken)
            });
            cell.insert("id".to_owned(), id.clone().into());
            taken.insert(id);
        }
    }
}

/// Returns an unused ID, which is the same for the same seed.
pub(crate) fn fresh_id(seed: &str, taken: &std::collections::BTreeSet<String>) -> String {
    let mut id = store::BlobHash::of(seed.as_bytes()).to_string()[..8].to_owned();
    while taken.contains(&id) {
        id = store::BlobHash::of(id.as_bytes()).to_string()[..8].to_owned();
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_notebook_gets_one_sentence() {
        let cell = |cell: &str| format!(r#"{{"nbformat":4,"nbformat_minor":5,"metadata":{{}},"cells":[{cell}]}}"#);
        let cases = [
            ("nothing".to_owned(), "no JSON"),
            ("[]".to_owned(), "does not say which format"),
            (r#"{"nbformat":4}"#.to_owned(), "no cells"),
            (r#"{"nbformat":7,"cells":[]}"#.to_owned(), "newer"),
            (r#"{"nbformat":1,"cells":[]}"#.to_owned(), "too old"),
            (r#"{"nbformat":3}"#.to_owned(), "no worksheets"),
            (cell(r#"{"cell_type":"heading","source":""}"#), "cell 1 is of a kind"),
            (cell(r#"{"cell_type":"markdown"}"#), "cell 1 has no source"),
            (cell(r#"{"cell_type":"markdown","source":"","metadata":3}"#), "metadata"),
            (cell(r#"{"cell_type":"code","source":"","outputs":[3]}"#), "outputs"),
            ("[".repeat(5_000), "no JSON"),
        ];
        for (text, why) in cases {
            let error = read_notebook(text.as_bytes()).expect_err(&text).to_string();
            assert!(error.contains(why) && error.lines().count() == 1, "{text}: {error}");
        }
    }

    #[test]
    fn numbers_that_json_does_not_have_are_null() {
        let mended = |text: &str| {
            let (bytes, count) = replace_odd_numbers(text.as_bytes());
            (String::from_utf8(bytes).expect("text"), count)
        };
        let odd = r#"{"NaN": [1, NaN,-Infinity , Infinity], "a\"NaN": "\\", "b": NaN, "c": "\\\"-Infinity", "d": -1}"#;
        let fine = r#"{"NaN": [1, null,null , null], "a\"NaN": "\\", "b": null, "c": "\\\"-Infinity", "d": -1}"#;
        assert_eq!(mended(odd), (fine.to_owned(), 4));
        for same in ["", "\"NaN", "\"\\", "nan inf", "{}"] {
            assert_eq!(mended(same), (same.to_owned(), 0));
        }
        let text = r#"{"nbformat":4,"nbformat_minor":5,"metadata":{"y":[1,NaN]},"cells":[]}"#;
        let (file, nulls) = read_notebook_with_nulls(text.as_bytes()).expect("read");
        assert_eq!((&file["metadata"]["y"], nulls), (&json!([1, null]), 1));
        let error = read_notebook(b"{\"a\": NaN, b}").expect_err("no JSON").to_string();
        assert!(error.contains("no JSON"), "{error}");
    }

    #[test]
    fn slips_are_mended() {
        let text = r#"{"nbformat":4,"nbformat_minor":5,"cells":[
            {"cell_type":"code","source":"1","id":"a"},{"cell_type":"raw","source":["x\n","y"],"id":"a"},
            {"cell_type":"markdown","source":"","id":"$"}]}"#;
        let file = read_notebook(text.as_bytes()).expect("read");
        let ids: std::collections::BTreeSet<&str> =
            file["cells"].as_array().expect("cells").iter().filter_map(|cell| cell["id"].as_str()).collect();
        assert_eq!(ids.len(), 3);
        assert!(ids.contains("a") && ids.iter().all(|id| is_id(id)));
        assert_eq!(file["cells"][0]["outputs"], json!([]));
        assert_eq!(file["metadata"], json!({}));
    }
}
