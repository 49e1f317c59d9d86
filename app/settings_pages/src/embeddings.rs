//! The search page: the embedding model, indexing progress, and saved searches.

use crate::SettingsChange;
use crate::search_model::SearchModelCard;
use crate::sections::{clear_button, remove_entry, show_removed_entry};
use eframe::egui;
use egui::{Sense, pos2, vec2};
use engine::Settings;
use host::desktop::FolderChooser;
use host::search::{EmbedderChoice, IndexFreshness, OnnxRuntime, SearchService, known_rerankers};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use ui::icons;
use ui::setting_rows::{SettingsRows, text, toggle_switch};
use ui::text::{format_thousands, sentence};
use ui::theme::{self, ThemeColors};
use ui::widgets::{icon_button, paint_clipped_text};

/// Name of the saved searches among the lists that entries can be removed from.
const SEARCHES_LIST: &str = "searches";
/// What can be typed as the name of a model.
const TYPED_CHOICES: &str = "Or type it: embedded, fastembed:NAME, folder:/path, or http://localhost:8080/v1#name.";

/// State of the search page beyond the settings.
pub struct EmbeddingSettings {
    search: SearchService,
    /// Status of the library for this setting, checked on a separate thread.
    runtime: Option<(String, String)>,
    looks: Option<(String, Receiver<String>)>,
    card: SearchModelCard,
    rerankers: Vec<String>,
    /// Invalid input.
    wrong: Option<String>,
}

impl EmbeddingSettings {
    /// Creates the state for a search service. `chooser`: shows the system's dialog for folders.
    pub fn new(search: SearchService, chooser: Option<FolderChooser>) -> EmbeddingSettings {
        let rerankers = known_rerankers().into_iter().map(|known| known.name).collect();
        let card = SearchModelCard::new(chooser);
        EmbeddingSettings { search, runtime: None, looks: None, card, rerankers, wrong: None }
    }

    /// Draws the page.
    pub fn show(&mut self, lines: &mut SettingsRows<'_>, settings: &Settings, changes: &mut Vec<SettingsChange>) {
        let fresh = self.search.freshness();
        let state = state(&fresh);
        if fresh.pending_model.is_some() || fresh.meanings.0 > 0 {
            lines.ui.ctx().request_repaint_after(Duration::from_millis(500));
        }
        lines.show_matching_row("Found by meaning", &state, |ui| {
            if toggle_switch(ui, "Found by meaning", !settings.meaning_paused) {
                changes.push(SettingsChange::MeaningPaused(!settings.meaning_paused));
            }
        });
        self.card.show(lines, settings, changes);
        let about = self.wrong.clone().unwrap_or_else(|| TYPED_CHOICES.to_owned());
        lines.show_matching_row("Name of the model", &about, |ui| {
            if let Some(name) = text(ui, "Name of the model", &settings.embedder, "embedded") {
                match name.parse::<EmbedderChoice>() {
                    Ok(choice) => {
                        self.wrong = None;
                        changes.push(SettingsChange::Embedder(choice.to_string()));
                    }
                    Err(why) => self.wrong = Some(why.to_string()),
                }
            }
        });
        let found = self.runtime(lines.ui.ctx(), &settings.onnx_runtime);
        lines.show_matching_row("ONNX Runtime", &found, |ui| {
            if let Some(path) = text(ui, "ONNX Runtime", &settings.onnx_runtime, "found automatically") {
                changes.push(SettingsChange::OnnxRuntime(path.trim().to_owned()));
            }
        });
        let about = fresh
            .reranker
            .clone()
            .unwrap_or_else(|| format!("Ranks the best results once more: {}", self.rerankers.join(", ")));
        lines.show_matching_row("Reranker", &about, |ui| {
            if let Some(name) = text(ui, "Reranker", &settings.reranker, "none") {
                let name = self.rerankers.iter().find(|known| known.eq_ignore_ascii_case(name.trim()));
                changes.push(SettingsChange::Reranker(name.cloned().unwrap_or_default()));
            }
        });
        let about = "Search skips notes in these folders. Separate folders with commas.";
        lines.show_matching_row("Excluded folders", about, |ui| {
            if let Some(folders) = text(ui, "Excluded folders", &settings.unsearched.join(", "), "none") {
                let folders = folders.split(',').map(|folder| folder.trim().trim_matches('/').to_owned());
                changes.push(SettingsChange::Unsearched(folders.filter(|folder| !folder.is_empty()).collect()));
            }
        });
        kept(lines, settings, changes);
    }

    /// Returns where the ONNX runtime was found, or how to get one.
    fn runtime(&mut self, ctx: &egui::Context, named: &str) -> String {
        if let Some((_, said)) = self.runtime.as_ref().filter(|(of, _)| of == named) {
            return said.clone();
        }
        if self.looks.as_ref().is_none_or(|(of, _)| of != named) {
            self.looks = Some((named.to_owned(), look(named, ctx)));
        }
        let Some((of, answer)) = &self.looks else { return String::new() };
        if let Ok(said) = answer.try_recv() {
            self.runtime = Some((of.clone(), said.clone()));
            return said;
        }
        "Looking for it…".to_owned()
    }
}

/// Looks for the library on a separate thread.
fn look(named: &str, ctx: &egui::Context) -> Receiver<String> {
    let (tell, answer) = channel();
    let (named, wake) = (PathBuf::from(named), ctx.clone());
    std::thread::spawn(move || {
        let said =
            match OnnxRuntime::find(Some(&named).filter(|path| !path.as_os_str().is_empty()).map(PathBuf::as_path)) {
                Ok(found) => format!("Found in {}: {}", found.origin, found.path.display()),
                Err(why) => format!("Needed for fastembed and folder models. {}.", sentence(&why.to_string())),
            };
        let _ = tell.send(said); // nobody waits where the settings were closed
        wake.request_repaint();
    });
    answer
}

/// Returns a model's name for use in a sentence.
fn called(choice: &EmbedderChoice) -> String {
    if *choice == EmbedderChoice::Embedded { "the embedded model".to_owned() } else { choice.to_string() }
}

/// Describes the progress of embedding the notes.
fn state(fresh: &IndexFreshness) -> String {
    if let Some(file) = &fresh.download {
        return format!("Downloading {}: {} of {} MB", file.file, file.received_bytes >> 20, file.total_bytes >> 20);
    }
    if let Some(why) = fresh.words_only_reason.as_ref().or(fresh.error.as_ref()) {
        return why.clone();
    }
    let (left, all) = fresh.meanings;
    let done = format_thousands(all.saturating_sub(left.min(all)));
    let paused = if fresh.paused { "Paused. " } else { "" };
    match &fresh.pending_model {
        Some(next) => {
            format!(
                "{paused}{} answers until {} has read all: {done} of {}",
                called(&fresh.answering_model),
                called(next),
                format_thousands(all)
            )
        }
        None if left > 0 => {
            format!("{paused}{done} of {} passages by {}", format_thousands(all), called(&fresh.answering_model))
        }
        None => format!("{paused}All {} passages by {}", format_thousands(all), called(&fresh.answering_model)),
    }
}

/// Draws the saved searches, each with a button that removes it.
fn kept(lines: &mut SettingsRows<'_>, settings: &Settings, changes: &mut Vec<SettingsChange>) {
    let count = match settings.searches.len() {
        0 => "None yet. Ctrl+D in the search saves one.".to_owned(),
        count => format!("{count}, offered before you type in the search."),
    };
    lines.show_matching_row("Saved searches", &count, |ui| {
        if let Some(searches) = clear_button(ui, ("Remove all searches", "Restore searches"), &settings.searches) {
            changes.push(SettingsChange::Searches(searches));
        }
    });
    if let Some(searches) = show_removed_entry(lines, SEARCHES_LIST, &settings.searches) {
        changes.push(SettingsChange::Searches(searches));
    }
    if !lines.wanted.is_empty() {
        return;
    }
    let ui = &mut *lines.ui;
    for (index, (name, query)) in settings.searches.iter().enumerate() {
        let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), 32.0), Sense::hover());
        let at = pos2(rect.left(), rect.center().y - 10.0);
        let said = if name == query { name.clone() } else { format!("{name}: {query}") };
        paint_clipped_text(ui, at, rect.width() - 60.0, &said, &theme::small(), ThemeColors::of(ui).ink);
        let corner = egui::Rect::from_min_max(pos2(rect.right() - theme::size::MIN_CLICK_HEIGHT, rect.top()), rect.max);
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(corner).id_salt(("search", name)));
        if icon_button(&mut child, icons::X, &format!("Remove the search {name}"), None).clicked() {
            let left = remove_entry(ui, SEARCHES_LIST, (index, &said), &settings.searches);
            changes.push(SettingsChange::Searches(left));
        }
    }
}
