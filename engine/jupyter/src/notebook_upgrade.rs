//! Upgrades notebooks of formats 2 and 3 to format 4, as Jupyter does. Fields that neither knows are preserved.

use serde_json::{Map, Value, json};

/// Kinds of data in outputs of formats 2 and 3, and what format 4 calls them.
const MIME_TYPES: [(&str, &str); 8] = [
    ("text", "text/plain"),
    ("html", "text/html"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpeg", "image/jpeg"),
    ("latex", "text/latex"),
    ("json", "application/json"),
    ("javascript", "application/javascript"),
];

/// Upgrades a notebook of format 2 or 3.
///
/// # Errors
/// Returns what is missing if it isn't a valid notebook.
pub(crate) fn upgrade_notebook(file: Value) -> Result<Value, &'static str> {
    const NO_SHEETS: &str = "it has no worksheets";
    let Value::Object(mut top) = file else { return Err(NO_SHEETS) };
    let Some(Value::Array(sheets)) = top.remove("worksheets") else { return Err(NO_SHEETS) };
    let mut cells = Vec::new();
    for mut sheet in sheets {
        let Some(Value::Array(of_sheet)) = sheet.get_mut("cells").map(Value::take) else {
            return Err("a worksheet has no cells");
        };
        cells.extend(of_sheet);
    }
    // These formats say the language in each cell, format 4 once for the notebook.
    let language = cells.iter().find_map(|cell| cell["language"].as_str()).map(ToOwned::to_owned);
    let metadata = top.entry("metadata").or_insert_with(|| json!({}));
    if let (Some(metadata), Some(language)) = (metadata.as_object_mut(), language)
        && !matches!(language.as_str(), "" | "python")
    {
        metadata.entry("language_info").or_insert_with(|| json!({ "name": language }));
    }
    cells.iter_mut().filter_map(Value::as_object_mut).for_each(upgrade_cell);
    top.insert("cells".to_owned(), cells.into());
    top.insert("nbformat".to_owned(), json!(4));
    top.insert("nbformat_minor".to_owned(), json!(5));
    Ok(Value::Object(top))
}

fn upgrade_cell(cell: &mut Map<String, Value>) {
    cell.entry("metadata").or_insert_with(|| json!({}));
    let kind = cell.get("cell_type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if kind == "code" {
        let source = cell.remove("input").filter(|source| !source.is_null()).unwrap_or_else(|| json!(""));
        cell.insert("source".to_owned(), source);
        cell.remove("language");
        let count = cell.remove("prompt_number").unwrap_or_default();
        cell.insert("execution_count".to_owned(), count);
        let collapsed = cell.remove("collapsed").filter(Value::is_boolean);
        if let (Some(collapsed), Some(Value::Object(metadata))) = (collapsed, cell.get_mut("metadata")) {
            metadata.insert("collapsed".to_owned(), collapsed);
        }
        let outputs = cell.entry("outputs").or_insert_with(|| json!([])).as_array_mut();
        outputs.into_iter().flatten().filter_map(Value::as_object_mut).for_each(upgrade_output);
    }
    cell.remove("rendered");
    let level = cell.remove("level").and_then(|level| usize::try_from(level.as_u64()?).ok());
    let source = cell.entry("source").or_insert_with(|| json!(""));
    join_lines(source);
    if kind == "heading"
        && let Some(text) = source.as_str()
    {
        let line = text.lines().collect::<Vec<_>>().join(" ");
        *source = format!("{} {line}", "#".repeat(level.unwrap_or(1).clamp(1, 6))).into();
    }
    if matches!(kind.as_str(), "heading" | "html") {
        cell.insert("cell_type".to_owned(), json!("markdown"));
    }
}

fn upgrade_output(output: &mut Map<String, Value>) {
    let kind = output.get("output_type").and_then(Value::as_str).unwrap_or_default().to_owned();
    match kind.as_str() {
        "stream" => {
            let name = output.remove("stream").unwrap_or_else(|| json!("stdout"));
            output.entry("name").or_insert(name);
            join_lines(output.entry("text").or_insert_with(|| json!("")));
        }
        "pyerr" => {
            output.insert("output_type".to_owned(), json!("error"));
            output.entry("ename").or_insert_with(|| json!(""));
            output.entry("evalue").or_insert_with(|| json!(""));
            output.entry("traceback").or_insert_with(|| json!([]));
        }
        "pyout" | "display_data" => {
            let mut data = std::mem::take(output);
            data.remove("output_type");
            let count = data.remove("prompt_number").unwrap_or_default();
            let metadata = match data.remove("metadata") {
                Some(Value::Object(metadata)) => rename_mime_types(metadata),
                Some(_) | None => Map::new(),
            };
            data.values_mut().for_each(join_lines);
            let mut data = rename_mime_types(data);
            if let Some(Value::String(text)) = data.get("application/json")
                && let Ok(parsed) = serde_json::from_str::<Value>(text)
            {
                data.insert("application/json".to_owned(), parsed);
            }
            if kind == "pyout" {
                output.insert("output_type".to_owned(), json!("execute_result"));
                output.insert("execution_count".to_owned(), count);
            } else {
                output.insert("output_type".to_owned(), json!(kind));
            }
            output.insert("data".to_owned(), Value::Object(data));
            output.insert("metadata".to_owned(), Value::Object(metadata));
        }
        _ => {}
    }
}

fn rename_mime_types(map: Map<String, Value>) -> Map<String, Value> {
    let renamed = |key: String| match MIME_TYPES.iter().find(|(old, _)| *old == key) {
        Some((_, new)) => (*new).to_owned(),
        None => key,
    };
    map.into_iter().map(|(key, value)| (renamed(key), value)).collect()
}

/// Makes a list of lines one string. As in Jupyter, the first line says whether lines have their line breaks: early
/// versions left them out.
fn join_lines(text: &mut Value) {
    let lines = text.as_array().and_then(|lines| lines.iter().map(Value::as_str).collect::<Option<Vec<&str>>>());
    if let Some(lines) = lines {
        let have_breaks = lines.first().is_some_and(|line| line.ends_with(['\n', '\r']));
        *text = lines.join(if have_breaks { "" } else { "\n" }).into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upgraded(format: u8, cells: &Value) -> Value {
        let file = json!({"nbformat": format, "metadata": {"name": "x"}, "worksheets": [{"cells": cells}]});
        upgrade_notebook(file).expect("a notebook")
    }

    #[test]
    fn lines_without_breaks_stay_lines() {
        for (format, lines) in [(2, json!(["a = 1", "", "b"])), (3, json!(["a = 1\n", "\n", "b"]))] {
            let cell = json!({"cell_type": "code", "input": lines, "collapsed": true, "outputs": [
                {"output_type": "stream", "stream": "stderr", "text": lines},
                {"output_type": "pyout", "prompt_number": 3, "text": lines, "png": "iVBO",
                    "metadata": {"png": {"w": 1}}},
                {"output_type": "display_data", "json": ["{\"a\":", "1}"], "x/y": 1},
            ]});
            let file = upgraded(format, &json!([cell, {"cell_type": "html", "source": lines}]));
            let is = json!([
                {"cell_type": "code", "source": "a = 1\n\nb", "execution_count": null, "metadata": {"collapsed": true},
                    "outputs": [
                        {"output_type": "stream", "name": "stderr", "text": "a = 1\n\nb"},
                        {"output_type": "execute_result", "execution_count": 3, "metadata": {"image/png": {"w": 1}},
                            "data": {"text/plain": "a = 1\n\nb", "image/png": "iVBO"}},
                        {"output_type": "display_data", "metadata": {},
                            "data": {"application/json": {"a": 1}, "x/y": 1}},
                    ]},
                {"cell_type": "markdown", "source": "a = 1\n\nb", "metadata": {}},
            ]);
            assert_eq!((&file["cells"], &file["metadata"]), (&is, &json!({"name": "x"})));
        }
    }

    #[test]
    fn headings_have_the_levels_of_markdown() {
        let levels = [(json!(-1), "#"), (json!(4_000_000_000_u64), "######"), (json!(2), "##"), (json!("3"), "#")];
        for (level, marks) in levels {
            let cell = json!({"cell_type": "heading", "level": level, "source": ["Two", "lines"]});
            let is = json!([{"cell_type": "markdown", "source": format!("{marks} Two lines"), "metadata": {}}]);
            assert_eq!(upgraded(3, &json!([cell]))["cells"], is);
        }
    }

    #[test]
    fn the_language_of_cells_is_kept() {
        let file = upgraded(3, &json!([{"cell_type": "code", "language": "julia", "input": null}]));
        assert_eq!(file["metadata"]["language_info"], json!({"name": "julia"}));
        assert_eq!(file["cells"][0]["source"], "");
    }
}
