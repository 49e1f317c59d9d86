//! Trace libraries in the window: written to a file, read from one, and shown with their signer and with what is
//! different here before the user imports them.

use super::widgets;
use agent::memory::trace::{self, RunTrace};
use agent::memory::trace_library::{
    LIBRARY_SIGNATURE_PURPOSE, LibrarySignature, split_signature, trace_differences, with_signature,
};
use anyhow::anyhow;
use eframe::egui;
use egui::Ui;
use egui::accesskit::Role;
use engine::Session;
use host::peers::signed_file::verified_signer;
use host::sync::devices::{existing_device_key, load_or_create_device_key, open_device_list};
use std::path::{Path, PathBuf};
use store::DocId;
use ui::theme::{ThemeColors, space};
use ui::widgets::text_button;

/// Maximum size of an imported file in bytes.
const MAX_TRACE_FILE_BYTES: u64 = 64 << 20;
/// Maximum number of traces that are shown before an import.
const MAX_SHOWN_TRACES: usize = 12;

/// Traces of a file that was read and isn't imported yet.
pub(super) struct ReadLibrary {
    traces: Vec<RunTrace>,
    /// Who signed the file, as a sentence.
    signer: String,
    /// A text for each shown trace, once the tools are known.
    texts: Option<Vec<String>>,
}

/// What the user wants with a file that was read.
pub(super) enum ImportDecision {
    /// Import these traces.
    Import(Vec<RunTrace>),
    /// Leave the file alone.
    Cancel,
    /// Nothing yet.
    Undecided(ReadLibrary),
}

/// Reads a library and verifies its signature. Blocks.
pub(super) fn read_library(path: &Path) -> anyhow::Result<ReadLibrary> {
    let text = host::fs::copy::read_text(path, MAX_TRACE_FILE_BYTES)?;
    let told = |why: String| anyhow!("{}: {why}", path.display());
    let (signed, signature) = split_signature(&text).map_err(|why| told(why.to_string()))?;
    let signer = match &signature {
        None => "The file isn't signed.".to_owned(),
        Some(LibrarySignature { device, signature }) => {
            let own = existing_device_key().ok().flatten().map(|(key, _)| key.id());
            let listed = open_device_list().and_then(|devices| Ok(devices.list()?)).unwrap_or_default();
            let content = (LIBRARY_SIGNATURE_PURPOSE, signed.as_bytes());
            let signer = verified_signer(content, (device, signature), own, &listed);
            format!("The file is {}.", signer.map_err(|why| told(why.to_string()))?.describe())
        }
    };
    let traces = trace::parse_library(signed).map_err(|why| told(why.to_string()))?;
    Ok(ReadLibrary { traces, signer, texts: None })
}

/// Writes traces to a new file, signed by this device if the user wants it. Blocks.
pub(super) fn write_library(path: &Path, mut library: String, is_signed: bool) -> anyhow::Result<PathBuf> {
    if is_signed {
        let (key, _) = load_or_create_device_key()?;
        let signature = key.sign_file(LIBRARY_SIGNATURE_PURPOSE, library.as_bytes());
        library = with_signature(&library, &LibrarySignature { device: key.id().to_string(), signature });
    }
    host::fs::copy::write_new(path, library.as_bytes())?;
    Ok(path.to_owned())
}

impl ReadLibrary {
    /// Draws who signed the file, what its traces do, and what is different here.
    pub(super) fn show(mut self, ui: &mut Ui, session: &Session, project: Option<DocId>) -> ImportDecision {
        let colours = ThemeColors::of(ui);
        widgets::row(ui, |ui| widgets::show_text_line(ui, &self.signer, colours.ink, Role::Status));
        if self.texts.is_none() && session.agents().setup().is_some() {
            let shown = self.traces.iter().take(MAX_SHOWN_TRACES);
            self.texts = Some(shown.map(|trace| trace_text(session, project, trace)).collect());
        }
        match &self.texts {
            None => {
                widgets::row(ui, |ui| widgets::show_text_line(ui, "Reading the tools…", colours.muted, Role::Status))
            }
            Some(texts) => {
                for text in texts {
                    widgets::row(ui, |ui| widgets::show_small_text(ui, text, colours.ink));
                }
                let more = self.traces.len() - texts.len();
                if more > 0 {
                    widgets::row(ui, |ui| widgets::show_small_text(ui, &format!("… and {more} more"), colours.muted));
                }
            }
        }
        let (mut imports, mut cancels) = (false, false);
        let count = self.traces.len();
        widgets::row(ui, |ui| {
            let words = if count == 1 { "Import 1 trace".to_owned() } else { format!("Import {count} traces") };
            imports = self.texts.is_some() && text_button(ui, &words, true).clicked();
            cancels = text_button(ui, "Cancel import", false).clicked();
        });
        ui.add_space(space::S);
        match (imports, cancels) {
            (true, _) => ImportDecision::Import(self.traces),
            (false, true) => ImportDecision::Cancel,
            (false, false) => ImportDecision::Undecided(self),
        }
    }
}

/// Describes a trace: its goal, its tools, and what is different here from where it was learned.
fn trace_text(session: &Session, project: Option<DocId>, trace: &RunTrace) -> String {
    let files = project.and_then(|project| session.volume(project)).map(|volume| &volume.files);
    let has_file = |path: &str| files.is_some_and(|files| files.contains_key(path));
    let differences = trace_differences(trace, &session.tool_schemas(&trace.known.agent), &has_file);
    let tools: Vec<&str> = trace.steps.iter().map(|step| step.tool.as_str()).collect();
    let goal = trace.known.goal_text.lines().next().unwrap_or_default();
    let here = match differences.as_slice() {
        [] => "Everything that it needs is here.".to_owned(),
        differences => differences.join("\n"),
    };
    let steps = if tools.len() == 1 { "1 step".to_owned() } else { format!("{} steps", tools.len()) };
    format!("{goal}\n{steps}: {}\n{here}", tools.join(", "))
}
