//! Cell outputs as files: figures are rendered, images are decoded, and tables, pages and JSON are written unchanged.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use export::notebook_export::{FIGURE_PIXELS_PER_POINT, figure_json};
use export::render_jobs;
use serde_json::Value;
use store::{BlobHash, CellOutput, OutputBody};

/// Returns the images of an output: each one's file extension and bytes.
pub(super) fn output_pictures(body: &OutputBody) -> Vec<(&'static str, Vec<u8>)> {
    let (OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. }) = body else {
        return Vec::new();
    };
    if let Some(json) = figure_json(data) {
        let (png, svg) = render_jobs::render_figure(&json, FIGURE_PIXELS_PER_POINT);
        let png = png.map(|bytes| ("png", bytes));
        let svg = svg.map(|text| ("svg", text.into_bytes()));
        let drawn: Vec<_> = png.into_iter().chain(svg).collect();
        if !drawn.is_empty() {
            return drawn;
        }
    }
    let text = |mime: &str| data.get(mime).map(typeset::ansi::multiline_text);
    let packed = |mime: &str| {
        let plain: String = text(mime)?.chars().filter(|letter| !letter.is_whitespace()).collect();
        BASE64_STANDARD.decode(plain).ok()
    };
    let png = packed("image/png").map(|bytes| ("png", bytes));
    let jpeg = packed("image/jpeg").map(|bytes| ("jpg", bytes));
    let svg = text("image/svg+xml").map(|text| ("svg", text.into_bytes()));
    png.into_iter().chain(jpeg).chain(svg).collect()
}

/// Returns the files of an output: its images, or a table, a page, or JSON. `blob` reads content outside the note.
pub(super) fn output_files(
    output: &CellOutput,
    blob: impl Fn(BlobHash) -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<Vec<(&'static str, Vec<u8>)>> {
    let pictures = output_pictures(&output.body);
    if !pictures.is_empty() {
        return Ok(pictures);
    }
    let (OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. }) = &output.body else {
        return Ok(Vec::new());
    };
    let kinds = [
        (typeset::ansi::CSV_MIME, "csv"),
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
