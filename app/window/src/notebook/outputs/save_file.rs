//! An output that is saved as a file: in which form, under which name, and the writing, on a thread of its own.

use super::mime_bundle::{self, OutputForm};
use crate::AppWindow;
use crate::WindowOverlay;
use crate::overlays::dialogs::Dialog;
use crate::panels::tree;
use editor::assets;
use editor::assets::AssetBytes;
use editor::output_table;
use eframe::egui;
use std::path::PathBuf;
use store::{BlockId, Execution};

/// What is to be saved.
#[derive(Clone, Debug)]
pub(crate) struct OutputFile {
    bytes: AssetBytes,
    /// How the name of the file ends.
    pub(crate) ending: &'static str,
    /// Whether it is in base64.
    packed: bool,
}

impl OutputFile {
    /// The richest of what a run has shown: its first picture, table, page or tree, else all that it printed.
    pub(crate) fn richest_output(run: &Execution) -> OutputFile {
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

    /// The file as it is to be; reads and draws, so not while drawing.
    fn file(&self, handle: Option<&host::Handle>) -> Result<Vec<u8>, String> {
        let bytes = self.bytes.read(handle)?;
        if self.packed {
            let plain: Vec<u8> = bytes.into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect();
            return base64::Engine::decode(&base64::prelude::BASE64_STANDARD, plain)
                .map_err(|_| "the picture cannot be read".to_owned());
        }
        if self.ending == "svg" && bytes.first() == Some(&b'{') {
            let text = String::from_utf8_lossy(&bytes);
            return plot::Figure::from_json(&text).and_then(|figure| plot::render_svg(&figure)).map(String::into_bytes);
        }
        Ok(bytes)
    }
}

impl AppWindow {
    /// Asks where the output of a cell shall be saved.
    pub(crate) fn ask_save(&mut self, cell: BlockId) {
        let Some(note) = self.active_pane.note.and_then(|note| self.session()?.note(note)) else { return };
        let Some(run) = note.latest_execution(cell).filter(|run| !run.outputs.is_empty()) else {
            self.toasts.show_message("This cell has no output yet.");
            return;
        };
        let save = OutputFile::richest_output(run);
        let number = note.cells().position(|other| other == cell).unwrap_or(0) + 1;
        let name = self.session().and_then(|session| session.locate_file(note.id)).map_or("Note", |(_, path)| path);
        let name = tree::shown_name(name.rsplit('/').next().unwrap_or(name));
        let home = std::env::home_dir().unwrap_or_default();
        let documents = home.join("Documents");
        let folder = if host::fs::copy::is_folder(&documents) { documents } else { home };
        let dest = folder.join(format!("{name} {number}.{}", save.ending)).display().to_string();
        self.overlay = WindowOverlay::Dialog(Dialog::SaveOutput { save, dest, trouble: None });
    }

    /// Writes it. Gives why not, where that is known at once.
    pub(crate) fn save_output(&mut self, ctx: &egui::Context, save: OutputFile, dest: PathBuf) -> Result<(), String> {
        if host::fs::copy::exists(&dest) {
            return Err("There is something of that name already, and nothing is overwritten.".to_owned());
        }
        let (handle, wake, said) = (assets::host_handle(ctx), ctx.clone(), self.saved.0.clone());
        std::thread::spawn(move || {
            let made = save.file(handle.as_ref()).and_then(|bytes| host::fs::copy::write_new(&dest, &bytes));
            let words = match made {
                Ok(()) => format!("Saved as {}", dest.display()),
                Err(why) => ui::text::sentence(&why),
            };
            let _ = said.send(words); // the window may be closed
            wake.request_repaint();
        });
        Ok(())
    }

    /// Says what was saved.
    pub(crate) fn report_saved_output(&mut self) {
        while let Ok(words) = self.saved.1.try_recv() {
            self.toasts.show_message(words);
        }
    }
}
