//! Pictures in outputs, as files: figures are drawn, what is a picture already is unpacked.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use plot::Figure;
use serde_json::{Map, Value};
use store::{Execution, OutputBody};

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
