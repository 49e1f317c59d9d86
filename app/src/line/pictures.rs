//! Outputs as files: figures are drawn, what is a picture already is unpacked; tables, pages and JSON are as they are.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use plot::Figure;
use serde_json::{Map, Value};
use store::{BlobHash, Execution, Output, OutputBody};

/// Pixels to a point, as screens have them now.
const SCALE: f64 = 2.0;

fn figure(data: &Map<String, Value>) -> Option<Figure> {
    let value = data.get(plot::MIME)?;
    Figure::read(&value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)).ok()
}

/// The pictures of an output: the ending of each one's name, and its bytes.
pub(super) fn of(body: &OutputBody) -> Vec<(&'static str, Vec<u8>)> {
    let (OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. }) = body else {
        return Vec::new();
    };
    if let Some(figure) = figure(data) {
        let png = plot::png(&figure, SCALE).ok().map(|bytes| ("png", bytes));
        let svg = plot::svg(&figure).ok().map(|text| ("svg", text.into_bytes()));
        return png.into_iter().chain(svg).collect();
    }
    let text = |mime: &str| data.get(mime).map(typeset::printed::joined);
    let packed = |mime: &str| {
        let plain: String = text(mime)?.chars().filter(|letter| !letter.is_whitespace()).collect();
        BASE64_STANDARD.decode(plain).ok()
    };
    let png = packed("image/png").map(|bytes| ("png", bytes));
    let jpeg = packed("image/jpeg").map(|bytes| ("jpg", bytes));
    let svg = text("image/svg+xml").map(|text| ("svg", text.into_bytes()));
    png.into_iter().chain(jpeg).chain(svg).collect()
}

/// The files of an output: its pictures, or a table, a page, JSON. `blob` reads what is kept outside of the note.
pub(super) fn files(
    output: &Output,
    blob: impl Fn(BlobHash) -> Result<Vec<u8>, String>,
) -> Result<Vec<(&'static str, Vec<u8>)>, String> {
    let pictures = of(&output.body);
    if !pictures.is_empty() {
        return Ok(pictures);
    }
    let (OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. }) = &output.body else {
        return Ok(Vec::new());
    };
    let kinds = [
        (typeset::printed::TABLE, "csv"),
        ("text/html", "html"),
        ("image/svg+xml", "svg"),
        ("image/png", "png"),
        ("image/jpeg", "jpg"),
        ("application/json", "json"),
    ];
    for (mime, ending) in kinds {
        let bytes = match (data.get(mime), &output.whole) {
            (Some(Value::String(text)), _) => text.clone().into_bytes(),
            (Some(value), _) => value.to_string().into_bytes(),
            (None, Some(whole)) if whole.mime == mime => blob(whole.blob)?,
            (None, _) => continue,
        };
        if matches!(ending, "png" | "jpg") {
            let plain: Vec<u8> = bytes.into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect();
            return Ok(BASE64_STANDARD.decode(plain).map(|bytes| (ending, bytes)).into_iter().collect());
        }
        return Ok(vec![(ending, bytes)]);
    }
    Ok(Vec::new())
}

/// Gives each figure of an execution a picture beside it, for programs that do not know our figures.
pub(super) fn draw(execution: &mut Execution) {
    for output in &mut execution.outputs {
        if let OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } = &mut output.body
            && !data.contains_key("image/png")
            && let Some(bytes) = figure(data).and_then(|figure| plot::png(&figure, SCALE).ok())
        {
            data.insert("image/png".to_owned(), BASE64_STANDARD.encode(bytes).into());
        }
    }
}
