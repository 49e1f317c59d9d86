//! The card that chooses the model for search by meaning: the embedded one, one of fastembed, one in a folder, or one
//! of a server that is found on this machine or typed. Models on this machine are tried before they are used.

use crate::SettingsChange;
use agent::config::is_local;
use agent::model_call::WireProtocol;
use agent_ui::agent::connection::{model_list, model_row};
use eframe::egui;
use egui::{Color32, RichText, Ui};
use engine::Settings;
use host::agents::llm::ProviderTimeouts;
use host::agents::model_setup::{LOCAL_SERVERS, NewProvider, find_local_servers};
use host::desktop::{FolderChooser, PathChoice};
use host::search::{EmbedderChoice, KnownModel, known_models, test_embedder};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use text::untrusted_text;
use ui::setting_rows::{SettingsRows, segmented_control, show_row, text};
use ui::text::{absolute, sentence};
use ui::theme::{self, ThemeColors, space};
use ui::widgets::text_button;

/// Maximum number of models listed at once.
const MAX_LISTED_MODELS: usize = 60;
/// What the names of models contain that turn texts into vectors.
const VECTOR_MODEL_MARKS: [&str; 7] = ["embed", "bge-", "e5-", "gte-", "minilm", "mpnet", "sbert"];

const EMBEDDED: usize = 0;
const FASTEMBED: usize = 1;
const FOLDER: usize = 2;
const SERVER: usize = 3;
const KINDS: [&str; 4] = ["Embedded", "fastembed", "Folder", "Server"];

/// A model that a server has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ServedModel {
    /// The server's address, up to and including `/v1`.
    url: String,
    name: String,
    /// The server's name; empty for a typed address.
    server: &'static str,
}

impl ServedModel {
    fn is_for_vectors(&self) -> bool {
        let name = self.name.to_lowercase();
        VECTOR_MODEL_MARKS.iter().any(|mark| name.contains(mark)) && !name.contains("rerank")
    }
}

/// A result from a thread.
enum SearchModelAnswer {
    /// Models of the servers on this machine.
    Found(Vec<ServedModel>),
    /// Models at the typed address.
    Listed(anyhow::Result<Vec<ServedModel>>),
    /// A tried model, and why it can't be used.
    Tried(EmbedderChoice, anyhow::Result<()>),
    Chosen(PathChoice),
}

/// The state of the card.
pub(crate) struct SearchModelCard {
    chooser: Option<FolderChooser>,
    known: Vec<KnownModel>,
    /// The kind of model whose choices are shown.
    open: Option<usize>,
    /// Models found on this machine.
    found: Option<Vec<ServedModel>>,
    is_looking: bool,
    /// Models at the typed address.
    listed: Vec<ServedModel>,
    shows_all: bool,
    /// What is being waited for.
    busy: Option<&'static str>,
    /// The model that is being tried. The results of others are no longer wanted.
    trying: Option<EmbedderChoice>,
    trouble: Option<String>,
    answers: Receiver<SearchModelAnswer>,
    tell: Sender<SearchModelAnswer>,
}

impl SearchModelCard {
    /// Creates the card. `chooser`: shows the system's dialog for folders.
    pub(crate) fn new(chooser: Option<FolderChooser>) -> SearchModelCard {
        let (tell, answers) = channel();
        SearchModelCard {
            chooser,
            known: known_models(),
            open: None,
            found: None,
            is_looking: false,
            listed: Vec::new(),
            shows_all: false,
            busy: None,
            trying: None,
            trouble: None,
            answers,
            tell,
        }
    }

    /// Draws the row of the model, and below it the choices of the kind that was clicked.
    pub(crate) fn show(
        &mut self,
        lines: &mut SettingsRows<'_>,
        settings: &Settings,
        changes: &mut Vec<SettingsChange>,
    ) {
        self.receive(lines.ui.ctx(), settings, changes);
        let used: EmbedderChoice = settings.embedder.parse().unwrap_or_default();
        let kind = match &used {
            EmbedderChoice::Embedded => EMBEDDED,
            EmbedderChoice::Fastembed(_) => FASTEMBED,
            EmbedderChoice::Folder(_) => FOLDER,
            EmbedderChoice::Endpoint { .. } => SERVER,
        };
        let shown = lines.shown;
        lines.show_matching_row("Sentence model", &describe(&used), |ui| {
            if let Some(kind) = segmented_control(ui, &KINDS, Some(self.open.unwrap_or(kind))) {
                (self.open, self.trouble) = ((kind != EMBEDDED).then_some(kind), None);
                (self.busy, self.trying) = (None, None);
                if kind == EMBEDDED {
                    changes.push(SettingsChange::Embedder(EmbedderChoice::Embedded.to_string()));
                }
            }
        });
        let Some(open) = self.open.filter(|_| lines.shown > shown) else { return };
        let ui = &mut *lines.ui;
        let chosen = match open {
            FASTEMBED => self.show_fastembed(ui, &used),
            FOLDER => self.show_folder(ui, &used),
            _ => self.show_servers(ui, &used),
        };
        if let Some(choice) = chosen {
            self.choose(ui.ctx(), choice, settings, changes);
        }
        let colours = ThemeColors::of(ui);
        if let Some(busy) = self.busy {
            paragraph(ui, busy, colours.muted);
        }
        if let Some(why) = &self.trouble {
            paragraph(ui, why, colours.bad);
        }
        ui.add_space(space::M);
    }

    fn start(&self, ctx: &egui::Context, work: impl FnOnce() -> SearchModelAnswer + Send + 'static) {
        let (tell, wake) = (self.tell.clone(), ctx.clone());
        std::thread::spawn(move || {
            let _ = tell.send(work()); // the settings may be closed
            wake.request_repaint();
        });
    }

    fn receive(&mut self, ctx: &egui::Context, settings: &Settings, changes: &mut Vec<SettingsChange>) {
        let answers: Vec<SearchModelAnswer> = self.answers.try_iter().collect();
        for answer in answers {
            match answer {
                SearchModelAnswer::Found(found) => (self.found, self.is_looking) = (Some(found), false),
                SearchModelAnswer::Listed(Ok(listed)) => {
                    self.busy = None;
                    self.shows_all = !listed.iter().any(ServedModel::is_for_vectors);
                    self.trouble = listed.is_empty().then(|| {
                        "It lists no models. Type its address and the model's name below, with # between them."
                            .to_owned()
                    });
                    self.listed = listed;
                }
                SearchModelAnswer::Listed(Err(why)) => {
                    (self.busy, self.trouble) = (None, Some(sentence(&why.to_string())));
                }
                SearchModelAnswer::Tried(choice, tried) if self.trying.as_ref() == Some(&choice) => {
                    (self.busy, self.trying) = (None, None);
                    match tried {
                        Ok(()) => self.apply(&choice, changes),
                        Err(why) => self.trouble = Some(format!("This model can't be used: {why}.")),
                    }
                }
                SearchModelAnswer::Tried(..) => {}
                SearchModelAnswer::Chosen(PathChoice::Chosen(folder)) => {
                    self.busy = None;
                    self.choose(ctx, EmbedderChoice::Folder(folder), settings, changes);
                }
                SearchModelAnswer::Chosen(PathChoice::Canceled) => self.busy = None,
                SearchModelAnswer::Chosen(PathChoice::Unavailable) => {
                    (self.busy, self.chooser) = (None, None);
                    self.trouble = Some("There's no folder chooser on this desktop. Type the path.".to_owned());
                }
            }
        }
    }

    /// Uses a model, after it was tried if that costs nothing.
    fn choose(
        &mut self,
        ctx: &egui::Context,
        choice: EmbedderChoice,
        settings: &Settings,
        changes: &mut Vec<SettingsChange>,
    ) {
        self.trouble = None;
        if let Err(why) = choice.to_string().parse::<EmbedderChoice>() {
            self.trouble = Some(format!("{}.", sentence(&why.to_string())));
            return;
        }
        let is_free = match &choice {
            EmbedderChoice::Folder(_) => true,
            EmbedderChoice::Endpoint { url, .. } => is_local(url),
            // These are part of the program, or have to be downloaded first.
            EmbedderChoice::Embedded | EmbedderChoice::Fastembed(_) => false,
        };
        if !is_free {
            self.apply(&choice, changes);
            return;
        }
        (self.busy, self.trying) = (Some("Trying the model…"), Some(choice.clone()));
        let library = Some(settings.onnx_runtime.trim()).filter(|path| !path.is_empty()).map(PathBuf::from);
        self.start(ctx, move || {
            let tried = test_embedder(&choice, library).map_err(anyhow::Error::from);
            SearchModelAnswer::Tried(choice, tried)
        });
    }

    fn apply(&mut self, choice: &EmbedderChoice, changes: &mut Vec<SettingsChange>) {
        (self.open, self.trouble) = (None, None);
        changes.push(SettingsChange::Embedder(choice.to_string()));
    }

    fn show_fastembed(&self, ui: &mut Ui, used: &EmbedderChoice) -> Option<EmbedderChoice> {
        let colours = ThemeColors::of(ui);
        if self.known.is_empty() {
            paragraph(ui, "This build can't run models of fastembed. Choose one of a server.", colours.muted);
            return None;
        }
        paragraph(ui, "For other languages, and larger ones. A model is downloaded when you choose it.", colours.muted);
        let mut chosen = None;
        model_list(ui, |ui| {
            for known in self.known.iter().take(MAX_LISTED_MODELS) {
                let is_used = *used == EmbedderChoice::Fastembed(known.name.clone());
                let row = model_row(ui, &known.name, "", is_used);
                if row.on_hover_text(&known.description).clicked() {
                    chosen = Some(EmbedderChoice::Fastembed(known.name.clone()));
                }
            }
        });
        chosen
    }

    fn show_folder(&mut self, ui: &mut Ui, used: &EmbedderChoice) -> Option<EmbedderChoice> {
        let kept = match used {
            EmbedderChoice::Folder(folder) => folder.display().to_string(),
            EmbedderChoice::Embedded | EmbedderChoice::Fastembed(_) | EmbedderChoice::Endpoint { .. } => String::new(),
        };
        let (mut browses, mut typed) = (false, None);
        show_row(ui, "Folder of the model", "It holds model.onnx and the files of its tokenizer.", |ui| {
            browses = self.chooser.is_some() && text_button(ui, "Browse…", false).clicked();
            typed = text(ui, "Folder of the model", &kept, "/home/me/model or ~/model");
        });
        if let Some(chooser) = self.chooser.clone().filter(|_| browses && self.busy.is_none()) {
            (self.busy, self.trouble) = (Some("The system's folder chooser is open."), None);
            self.start(ui.ctx(), move || SearchModelAnswer::Chosen(chooser()));
        }
        let typed = typed.filter(|typed| !typed.trim().is_empty())?;
        let folder = absolute(typed.trim());
        if folder.is_none() {
            self.trouble = Some("Give the whole path, beginning with / or ~.".to_owned());
        }
        folder.map(EmbedderChoice::Folder)
    }

    fn show_servers(&mut self, ui: &mut Ui, used: &EmbedderChoice) -> Option<EmbedderChoice> {
        let colours = ThemeColors::of(ui);
        if self.found.is_none() && !std::mem::replace(&mut self.is_looking, true) {
            self.start(ui.ctx(), || SearchModelAnswer::Found(local_models()));
        }
        let found = self.found.as_deref().unwrap_or_default();
        let all: Vec<&ServedModel> = self.listed.iter().chain(found).collect();
        let listed: Vec<&ServedModel> =
            all.iter().filter(|model| self.shows_all || model.is_for_vectors()).copied().collect();
        let about = match (self.found.is_some(), all.is_empty(), listed.is_empty()) {
            (false, true, _) => "Looking for models on this machine…",
            (true, true, _) => {
                "No model runs on this machine. Ollama, LM Studio or llama.cpp can run one, for example after `ollama \
                 pull nomic-embed-text`."
            }
            (_, false, true) => "None of the models here has the name of one for search.",
            (_, false, false) => "Choose a model. It's tried at once.",
        };
        paragraph(ui, about, colours.muted);
        let mut chosen = None;
        if !listed.is_empty() {
            model_list(ui, |ui| {
                for model in listed.iter().take(MAX_LISTED_MODELS) {
                    let choice = EmbedderChoice::Endpoint { url: model.url.clone(), model: model.name.clone() };
                    if model_row(ui, &model.name, model.server, choice == *used).clicked() {
                        chosen = Some(choice);
                    }
                }
            });
        }
        let has_others = all.iter().any(|model| !model.is_for_vectors());
        let (mut turns, mut looks) = (false, false);
        ui.horizontal_wrapped(|ui| {
            let word = if self.shows_all { "Show models for search" } else { "Show other models" };
            turns = has_others && text_button(ui, word, false).clicked();
            looks = self.found.is_some() && text_button(ui, "Look again", false).clicked();
        });
        self.shows_all ^= turns;
        if looks {
            (self.found, self.trouble) = (None, None);
        }
        self.show_address(ui);
        chosen.filter(|_| self.busy.is_none())
    }

    /// Draws the field for the address of another server, whose models are then listed.
    fn show_address(&mut self, ui: &mut Ui) {
        let mut typed = None;
        show_row(ui, "Address of a server", "Lists the models of a server that speaks like OpenAI, or Ollama.", |ui| {
            typed = text(ui, "Address of a server", "", "http://127.0.0.1:8080/v1");
        });
        let Some(typed) = typed.filter(|typed| !typed.trim().is_empty() && self.busy.is_none()) else { return };
        match NewProvider::at_address(&typed, None) {
            Ok(provider) => {
                (self.busy, self.trouble) = (Some("Asking the server for its models…"), None);
                self.listed.clear();
                self.start(ui.ctx(), move || {
                    let report = provider.test(ProviderTimeouts::default());
                    let models = report.map(|report| report.models.unwrap_or_default());
                    SearchModelAnswer::Listed(models.map(|models| models_at(&provider, "", models)))
                });
            }
            Err(why) => self.trouble = Some(sentence(&why.to_string())),
        }
    }
}

/// Returns the models of the servers that run on this machine. Blocks for less than two seconds.
fn local_models() -> Vec<ServedModel> {
    let servers = find_local_servers(&LOCAL_SERVERS).into_iter();
    servers
        .flat_map(|server| models_at(&NewProvider::of_kind(server.kind, None), server.kind.label, server.models))
        .collect()
}

fn models_at(provider: &NewProvider, server: &'static str, names: Vec<String>) -> Vec<ServedModel> {
    let Some(url) = &provider.base_url else { return Vec::new() };
    // Ollama has its own protocol for answers, and OpenAI's for vectors below /v1.
    let url = if provider.wire == WireProtocol::Ollama { format!("{url}/v1") } else { url.clone() };
    names.into_iter().map(|name| ServedModel { url: url.clone(), name, server }).collect()
}

fn describe(choice: &EmbedderChoice) -> String {
    match choice {
        EmbedderChoice::Embedded => {
            "Embedded: ships with the program, English. The others: other languages, larger models.".to_owned()
        }
        EmbedderChoice::Fastembed(name) => format!("{name}, of fastembed."),
        EmbedderChoice::Folder(folder) => format!("The model in {}.", folder.display()),
        EmbedderChoice::Endpoint { url, model } => format!("{model} at {url}."),
    }
}

/// Draws wrapped text.
fn paragraph(ui: &mut Ui, text: &str, colour: Color32) {
    let text = RichText::new(untrusted_text::escape_block(text)).font(theme::caption().font).color(colour);
    ui.add_space(space::S);
    ui.label(text);
    ui.add_space(space::S);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_for_vectors_are_told_by_their_names() {
        let is_one =
            |name: &str| ServedModel { url: String::new(), name: name.to_owned(), server: "" }.is_for_vectors();
        for name in ["nomic-embed-text:latest", "BAAI/bge-m3", "intfloat/multilingual-e5-large", "all-minilm:l6-v2"] {
            assert!(is_one(name), "{name}");
        }
        for name in ["qwen3:8b", "llama3.2", "BAAI/bge-reranker-v2-m3", "gpt-oss-20b"] {
            assert!(!is_one(name), "{name}");
        }
    }

    #[test]
    fn ollama_gives_vectors_below_v1() {
        let at = |address: &str| {
            let provider = NewProvider::at_address(address, None).expect("an address");
            models_at(&provider, "", vec!["a".to_owned()])[0].url.clone()
        };
        assert_eq!(at("http://127.0.0.1:11434"), "http://127.0.0.1:11434/v1");
        assert_eq!(at("127.0.0.1:9999"), "http://127.0.0.1:9999/v1");
    }
}
