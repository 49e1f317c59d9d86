//! An output that is saved as a file: in which form, under which name, and the writing, on a thread of its own.

use super::mime_bundle::{self, OutputForm};
use anyhow::anyhow;
use editor::assets::AssetBytes;
use editor::output_table;
use store::Execution;

/// What is to be saved.
#[derive(Clone, Debug)]
pub struct OutputFile {
    bytes: AssetBytes,
    /// How the name of the file ends.
    pub ending: &'static str,
    /// Whether it is in base64.
    packed: bool,
}

impl OutputFile {
    /// Returns the richest output of a run: its first picture, table, page or tree, otherwise all printed text.
    pub fn richest_output(run: &Execution) -> OutputFile {
        let rich = run.outputs.iter().find_map(|output| {
            let data = mime_bundle::mime_data(output)?;
            let here =
                |text: String, ending| Some(OutputFile { bytes: AssetBytes::Here(text.into()), ending, packed: false });
            match mime_bundle::output_form(output, data) {
                OutputForm::Figure => match data.get(plot::FIGURE_MIME) {
                    Some(value) => here(value.as_str().map_or_else(|| value.to_string(), str::to_owned), "svg"),
                    None => {
                        let bytes = AssetBytes::Blob(output.whole.as_ref()?.blob);
                        Some(OutputFile { bytes, ending: "svg", packed: false })
                    }
                },
                OutputForm::Table(form, bytes) => {
                    let ending = if form == output_table::TableFormat::Resource { "json" } else { "csv" };
                    Some(OutputFile { bytes, ending, packed: false })
                }
                OutputForm::Html(bytes) => Some(OutputFile { bytes, ending: "html", packed: false }),
                OutputForm::Markdown(bytes) => Some(OutputFile { bytes, ending: "md", packed: false }),
                OutputForm::Picture { bytes, is_svg: true } => Some(OutputFile { bytes, ending: "svg", packed: false }),
                OutputForm::Picture { bytes, is_svg: false } => {
                    let ending = [("image/jpeg", "jpg"), ("image/webp", "webp"), ("image/gif", "gif")]
                        .into_iter()
                        .find(|(mime, _)| data.contains_key(*mime) && !data.contains_key("image/png"))
                        .map_or("png", |(_, ending)| ending);
                    Some(OutputFile { bytes, ending, packed: true })
                }
                OutputForm::Tree(value) => here(serde_json::to_string_pretty(value).unwrap_or_default(), "json"),
                OutputForm::Progress(_) | OutputForm::Text(_) => None,
            }
        });
        let whole = || {
            let mut whole = run.outputs.iter().filter_map(|output| output.whole.as_ref());
            match (whole.next(), run.outputs.len()) {
                (Some(whole), 1) => AssetBytes::Blob(whole.blob),
                _ => AssetBytes::Here(format!("{}\n", super::whole_text(run)).into()),
            }
        };
        rich.unwrap_or_else(|| OutputFile { bytes: whole(), ending: "txt", packed: false })
    }

    /// Returns the file's bytes; reads and renders, so don't call it while drawing.
    pub fn file(&self, handle: Option<&host::Handle>) -> anyhow::Result<Vec<u8>> {
        let bytes = self.bytes.read(handle)?;
        if self.packed {
            let plain: Vec<u8> = bytes.into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect();
            return base64::Engine::decode(&base64::prelude::BASE64_STANDARD, plain)
                .map_err(|_| anyhow!("the picture cannot be read"));
        }
        if self.ending == "svg" && bytes.first() == Some(&b'{') {
            let text = String::from_utf8_lossy(&bytes);
            let drawn = plot::Figure::from_json(&text).and_then(|figure| plot::render_svg(&figure));
            return drawn.map(String::into_bytes).map_err(anyhow::Error::msg);
        }
        Ok(bytes)
    }
}
