//! Saves an output as a file: selects the format and the name, and encodes it on a separate thread.

use super::mime_bundle::{self, OutputForm};
use anyhow::anyhow;
use editor::assets::AssetBytes;
use editor::output_table::{self, FetchedRows};
use host::fs::confined_dir::ConfinedPath;
use std::borrow::Cow;
use store::Execution;

/// Content to save as a file.
#[derive(Clone, Debug)]
pub struct OutputFile {
    bytes: AssetBytes,
    /// File extension.
    pub ending: Cow<'static, str>,
    /// Whether the content is base64.
    packed: bool,
    /// All rows of a data frame, of which the output holds only the first.
    rows: Option<FetchedRows>,
}

impl OutputFile {
    fn plain(bytes: AssetBytes, ending: &'static str) -> OutputFile {
        OutputFile { bytes, ending: ending.into(), packed: false, rows: None }
    }

    /// Creates the content from a file of a volume, unchanged.
    pub fn of_file(file: &ConfinedPath) -> OutputFile {
        let ending = file.path.rsplit_once('.').map_or("bin", |(_, ending)| ending).to_owned();
        OutputFile {
            bytes: AssetBytes::File(file.root.clone(), file.path.clone()),
            ending: ending.into(),
            packed: false,
            rows: None,
        }
    }

    /// Returns the richest output of a run: its first image, table, page or tree, otherwise all printed text. `rows`
    /// returns all rows of the data frame that the output at an index shows, if they were fetched.
    pub fn richest_output(run: &Execution, rows: impl Fn(usize) -> Option<FetchedRows>) -> OutputFile {
        let rich = run.outputs.iter().enumerate().find_map(|(at, output)| {
            let data = mime_bundle::mime_data(output)?;
            let here = |text: String, ending| Some(OutputFile::plain(AssetBytes::Here(text.into()), ending));
            match mime_bundle::output_form(output, data) {
                OutputForm::Figure => match data.get(plot::FIGURE_MIME) {
                    Some(value) => here(value.as_str().map_or_else(|| value.to_string(), str::to_owned), "svg"),
                    None => {
                        let bytes = AssetBytes::Blob(output.whole.as_ref()?.blob);
                        Some(OutputFile::plain(bytes, "svg"))
                    }
                },
                OutputForm::Table(form, bytes) => {
                    let rows = rows(at);
                    let is_json = form == output_table::TableFormat::Resource && rows.is_none();
                    Some(OutputFile { rows, ..OutputFile::plain(bytes, if is_json { "json" } else { "csv" }) })
                }
                OutputForm::Html(bytes) => Some(OutputFile::plain(bytes, "html")),
                OutputForm::Markdown(bytes) => Some(OutputFile::plain(bytes, "md")),
                OutputForm::Picture { bytes, is_svg: true } => Some(OutputFile::plain(bytes, "svg")),
                OutputForm::Picture { bytes, is_svg: false } => {
                    let ending = [("image/jpeg", "jpg"), ("image/webp", "webp"), ("image/gif", "gif")]
                        .into_iter()
                        .find(|(mime, _)| data.contains_key(*mime) && !data.contains_key("image/png"))
                        .map_or("png", |(_, ending)| ending);
                    Some(OutputFile { packed: true, ..OutputFile::plain(bytes, ending) })
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
        rich.unwrap_or_else(|| OutputFile::plain(whole(), "txt"))
    }

    /// Returns the file's bytes. Reads and renders, so don't call it while drawing.
    pub fn file(&self, handle: Option<&host::Handle>) -> anyhow::Result<Vec<u8>> {
        if let Some(rows) = &self.rows {
            return Ok(rows.to_csv().into_bytes());
        }
        let bytes = self.bytes.read(handle)?;
        if self.packed {
            let plain: Vec<u8> = bytes.into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect();
            return base64::Engine::decode(&base64::prelude::BASE64_STANDARD, plain)
                .map_err(|_| anyhow!("the picture cannot be read"));
        }
        if self.ending == "svg" && bytes.first() == Some(&b'{') {
            let text = String::from_utf8_lossy(&bytes);
            return Ok(plot::render_svg(&plot::Figure::from_json(&text)?)?.into_bytes());
        }
        Ok(bytes)
    }
}
