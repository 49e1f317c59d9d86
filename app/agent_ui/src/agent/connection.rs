//! The card that connects a model: local servers, an API key, or another address. Servers are queried and files written
//! on threads. The key is stored with the user's secrets, and dropped here as soon as it was tested.

use agent::config::{AgentConfig, merge};
use anyhow::anyhow;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Response, RichText, Sense, Ui, vec2};
use host::agents::llm::{ProviderTestReport, ProviderTimeouts};
use host::agents::model_setup::{
    self, KEYED_PROVIDERS, LOCAL_SERVERS, LocalServer, NewProvider, find_local_servers, user_secrets,
};
use host::maintenance::configuration;
use host::maintenance::secrets::SecretValue;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{
    append_text, chip_button, paint_clipped_text, paint_focus_ring, paint_hover_fill, set_accessible_name, text_button,
};

/// Maximum number of models listed at once; a filter finds the others.
const MAX_LISTED_MODELS: usize = 60;
/// Number of models from which on a filter is offered.
const MIN_FILTERED_MODELS: usize = 8;
/// Height of the list of models.
const MODEL_LIST_HEIGHT: f32 = 240.0;

/// Result of an interaction with the card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// This model is used from now on.
    Connected(String),
    /// The card was dismissed.
    Later,
}

/// Current step of the card.
#[derive(Default)]
enum ConnectionStep {
    #[default]
    Choose,
    Key,
    Address,
    Model {
        provider: NewProvider,
        models: Vec<String>,
        context: Option<u64>,
    },
}

/// Result of background work.
enum ConnectionResult {
    Tested(Box<NewProvider>, anyhow::Result<ProviderTestReport>),
    Saved(anyhow::Result<String>),
}

/// The state of the card.
#[derive(Default)]
pub struct ModelConnection {
    /// Whether the user requested the card.
    pub open: bool,
    /// Whether the user dismissed the card.
    put_away: bool,
    workspace: PathBuf,
    /// The configuration that was read for the card, and the pending read.
    config: Option<AgentConfig>,
    reading: Option<Receiver<Option<AgentConfig>>>,
    /// Whether a configuration was read or requested.
    is_read: bool,
    /// Servers found on this machine, and the pending search for them.
    servers: Option<Vec<LocalServer>>,
    search: Option<Receiver<Vec<LocalServer>>>,
    step: ConnectionStep,
    /// Index of the chosen kind of provider that takes a key.
    kind: usize,
    key: String,
    address: String,
    model: String,
    work: Option<Receiver<ConnectionResult>>,
    trouble: Option<String>,
    /// Whether the keyboard came to the panel while the card is in it, and waits there for something to choose.
    pub awaits_keyboard: bool,
    /// Whether the main control of the step takes the keyboard when it's drawn next.
    takes_keyboard: bool,
}

thread_local! {
    /// The configuration of a user who has changed nothing, which takes too long to read for each frame.
    static BUILT_IN_CONFIG: Option<AgentConfig> = merge(&[]).ok();
}

/// Returns whether the user has configured models.
pub(crate) fn is_configured(config: &AgentConfig) -> bool {
    BUILT_IN_CONFIG.with(|built_in| {
        built_in.as_ref().is_some_and(|built_in| built_in.llm != config.llm || built_in.agents != config.agents)
    })
}

fn start<T: Send + 'static>(ctx: &egui::Context, work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (tell, told) = channel();
    let wake = ctx.clone();
    std::thread::spawn(move || {
        let _ = tell.send(work()); // the card may be gone
        wake.request_repaint();
    });
    told
}

impl ModelConnection {
    /// Creates the card of a workspace.
    pub fn of_workspace(workspace: &Path) -> ModelConnection {
        ModelConnection { workspace: workspace.to_owned(), ..ModelConnection::default() }
    }

    /// Sets the workspace, and reads its configuration the first time.
    pub fn refresh(&mut self, ctx: &egui::Context, workspace: &Path) {
        if self.workspace != workspace {
            workspace.clone_into(&mut self.workspace);
            self.is_read = false;
        }
        if !std::mem::replace(&mut self.is_read, true) {
            let folder = self.workspace.clone();
            self.reading = Some(start(ctx, move || configuration::load_config(&folder).ok()));
        }
        if let Some(config) = self.reading.as_ref().and_then(|reading| reading.try_recv().ok()) {
            (self.config, self.reading) = (config, None);
        }
    }

    /// Returns the configuration that was read for the card.
    pub fn config(&self) -> Option<&AgentConfig> {
        self.config.as_ref()
    }

    /// Returns whether the card can ask for the key of a provider with this name.
    pub fn takes_key(provider: &str) -> bool {
        KEYED_PROVIDERS.iter().any(|kind| kind.name == provider)
    }

    /// Opens the card at the key of a provider.
    pub fn open_for_key(&mut self, provider: &str) {
        if let Some(kind) = KEYED_PROVIDERS.iter().position(|kind| kind.name == provider) {
            (self.open, self.kind) = (true, kind);
            self.go_to(ConnectionStep::Key);
        }
    }

    /// Returns whether the card is shown in an otherwise empty panel.
    pub fn is_needed(&self) -> bool {
        !self.put_away && self.config.as_ref().is_some_and(|config| !is_configured(config))
    }

    /// Passes the keyboard on to the first choice once there is one, if it waits for that. `is_idle`: the message's
    /// field has the keyboard, and nothing is typed there.
    pub fn pass_keyboard(&mut self, is_idle: bool) {
        self.awaits_keyboard &= is_idle;
        if self.servers.is_some() && std::mem::take(&mut self.awaits_keyboard) {
            self.takes_keyboard = true;
        }
    }

    /// Draws the card.
    pub fn show(&mut self, ui: &mut Ui) -> Option<ConnectionEvent> {
        let mut event = self.receive();
        let colours = ThemeColors::of(ui);
        ui.spacing_mut().item_spacing = vec2(space::S, space::S);
        let title = RichText::new("Connect a model to get started")
            .font(theme::inter_font(theme::InterCut::SemiBold, 15.0))
            .color(colours.ink);
        ui.label(title);
        ui.add_space(space::XS);
        match self.step {
            ConnectionStep::Choose => event = self.show_choice(ui).or(event),
            ConnectionStep::Key => self.show_key(ui),
            ConnectionStep::Address => self.show_address(ui),
            ConnectionStep::Model { .. } => self.show_models(ui),
        }
        if self.work.is_some() {
            paragraph(ui, "Testing the connection…", colours.muted);
        }
        if let Some(why) = &self.trouble {
            paragraph(ui, why, colours.bad);
        }
        if matches!(event, Some(ConnectionEvent::Connected(_) | ConnectionEvent::Later)) {
            (self.open, self.put_away) = (false, true);
        }
        event
    }

    fn receive(&mut self) -> Option<ConnectionEvent> {
        if let Some(found) = self.search.as_ref().and_then(|search| search.try_recv().ok()) {
            (self.servers, self.search) = (Some(found), None);
        }
        let result = match self.work.as_ref()?.try_recv() {
            Ok(result) => result,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => ConnectionResult::Saved(Err(anyhow!("It doesn't answer. Try again."))),
        };
        self.work = None;
        match result {
            ConnectionResult::Tested(provider, Ok(report)) => {
                self.trouble = None;
                // It stays in its field only while it may have to be corrected.
                self.key.clear();
                let models = report.models.unwrap_or_default();
                let usual = model_setup::provider_kind(&provider.name).map_or("", |kind| kind.model);
                let listed = models.iter().any(|model| model == usual) || models.is_empty();
                self.model = if listed { usual.to_owned() } else { models.first().cloned().unwrap_or_default() };
                self.step = ConnectionStep::Model { provider: *provider, models, context: report.context };
                self.takes_keyboard = true;
                None
            }
            ConnectionResult::Tested(_, Err(why)) | ConnectionResult::Saved(Err(why)) => {
                self.trouble = Some(ui::text::sentence(&why.to_string()));
                self.takes_keyboard = true;
                None
            }
            ConnectionResult::Saved(Ok(model)) => {
                let (workspace, servers) = (std::mem::take(&mut self.workspace), self.servers.take());
                *self = ModelConnection { workspace, servers, ..ModelConnection::default() };
                Some(ConnectionEvent::Connected(model))
            }
        }
    }

    fn show_choice(&mut self, ui: &mut Ui) -> Option<ConnectionEvent> {
        let colours = ThemeColors::of(ui);
        if self.servers.is_none() && self.search.is_none() {
            self.search = Some(start(ui.ctx(), || find_local_servers(&LOCAL_SERVERS)));
        }
        let mut chosen = None;
        let mut takes_keyboard = self.servers.is_some() && std::mem::take(&mut self.takes_keyboard);
        match &self.servers {
            None => paragraph(ui, "Looking for models on this machine…", colours.muted),
            Some(servers) if servers.is_empty() => {
                paragraph(
                    ui,
                    "No model runs on this machine. Ollama, LM Studio or llama.cpp can run one.",
                    colours.muted,
                );
            }
            Some(servers) => {
                paragraph(ui, "Found on this machine:", colours.muted);
                let all = servers.iter().flat_map(|server| server.models.iter().map(move |model| (server, model)));
                model_list(ui, |ui| {
                    for (server, model) in all.take(MAX_LISTED_MODELS) {
                        let row = model_row(ui, model, server.kind.label, false);
                        if std::mem::take(&mut takes_keyboard) {
                            focus_soon(&row);
                        }
                        if row.clicked() {
                            chosen = Some((NewProvider::of_kind(server.kind, None), model.clone(), server.context));
                        }
                    }
                });
            }
        }
        if let Some((provider, model, context)) = chosen {
            self.save(ui.ctx(), provider, model, context);
        }
        let mut later = false;
        ui.horizontal_wrapped(|ui| {
            let has_servers = self.servers.as_ref().is_some_and(|servers| !servers.is_empty());
            let add_key = text_button(ui, "Add an API key", !has_servers);
            if takes_keyboard {
                focus_soon(&add_key);
            }
            if add_key.clicked() {
                self.go_to(ConnectionStep::Key);
            }
            if text_button(ui, "Other endpoint…", false).clicked() {
                self.go_to(ConnectionStep::Address);
            }
            if self.servers.is_some() && text_button(ui, "Look again", false).clicked() {
                self.servers = None;
            }
            later = text_button(ui, "Later", false).clicked();
        });
        later.then_some(ConnectionEvent::Later)
    }

    fn go_to(&mut self, step: ConnectionStep) {
        (self.step, self.trouble, self.takes_keyboard) = (step, None, true);
        self.key.clear();
    }

    fn show_key(&mut self, ui: &mut Ui) {
        ui.horizontal_wrapped(|ui| {
            for (at, kind) in KEYED_PROVIDERS.iter().enumerate() {
                if chip_button(ui, kind.label, kind.label, at == self.kind, &theme::small()) {
                    self.kind = at;
                }
            }
        });
        let takes_keyboard = std::mem::take(&mut self.takes_keyboard);
        let sent = field(ui, ("API key", "Paste the key"), &mut self.key, true, takes_keyboard);
        paragraph(
            ui,
            "It's kept in the system's keyring or, where there is none, in an encrypted file. It isn't written to a \
             note or to config.yaml.",
            ThemeColors::of(ui).muted,
        );
        let provider = KEYED_PROVIDERS.get(self.kind).copied();
        if self.show_test_buttons(ui, sent, !self.key.trim().is_empty())
            && let Some(kind) = provider
        {
            match SecretValue::new(self.key.clone()) {
                Ok(key) => self.test(ui.ctx(), NewProvider::of_kind(kind, Some(key))),
                Err(error) => self.trouble = Some(ui::text::sentence(&error.to_string())),
            }
        }
    }

    fn show_address(&mut self, ui: &mut Ui) {
        let takes_keyboard = std::mem::take(&mut self.takes_keyboard);
        let names = ("Base URL", "http://127.0.0.1:8080/v1");
        let sent = field(ui, names, &mut self.address, false, takes_keyboard);
        let names = ("API key, if it needs one", "Key, if it needs one");
        let sent = field(ui, names, &mut self.key, true, false) || sent;
        paragraph(ui, "Any server that speaks like OpenAI, or Ollama.", ThemeColors::of(ui).muted);
        if self.show_test_buttons(ui, sent, !self.address.trim().is_empty()) {
            let key = self.key.clone();
            let key = if key.trim().is_empty() { Ok(None) } else { SecretValue::new(key).map(Some) };
            let provider = key.map_err(anyhow::Error::from).and_then(|key| NewProvider::at_address(&self.address, key));
            match provider {
                Ok(provider) => self.test(ui.ctx(), provider),
                Err(why) => self.trouble = Some(ui::text::sentence(&why.to_string())),
            }
        }
    }

    /// Draws the buttons below a form. Returns whether to test its input.
    fn show_test_buttons(&mut self, ui: &mut Ui, sent: bool, can: bool) -> bool {
        let mut goes = sent;
        ui.horizontal_wrapped(|ui| {
            goes |= text_button(ui, "Connect", can).clicked();
            if text_button(ui, "Back", false).clicked() {
                self.go_to(ConnectionStep::Choose);
            }
        });
        goes && can && self.work.is_none()
    }

    fn show_models(&mut self, ui: &mut Ui) {
        let ConnectionStep::Model { provider, models, context } = &self.step else { return };
        let colours = ThemeColors::of(ui);
        let mut chosen = None;
        if models.is_empty() {
            paragraph(ui, "It's connected, but doesn't list its models. Which one do you want?", colours.muted);
        } else {
            paragraph(ui, "It works. Which model do you want?", colours.muted);
        }
        let listed = models.contains(&self.model);
        let takes_keyboard = std::mem::take(&mut self.takes_keyboard);
        if models.is_empty() || models.len() >= MIN_FILTERED_MODELS {
            field(ui, ("Model", "Name of the model"), &mut self.model, false, takes_keyboard && !listed);
        }
        // A name that is in the list is a choice rather than a filter.
        let wanted = if listed { String::new() } else { self.model.trim().to_lowercase() };
        if !models.is_empty() {
            model_list(ui, |ui| {
                let fits = models.iter().filter(|model| model.to_lowercase().contains(&wanted));
                for model in fits.take(MAX_LISTED_MODELS) {
                    if model_row(ui, model, "", *model == self.model).clicked() {
                        chosen = Some(model.clone());
                    }
                }
            });
        }
        let (provider, context) = (provider.clone(), context.filter(|_| models.len() == 1));
        if let Some(model) = chosen {
            self.model = model;
        }
        let can = !self.model.trim().is_empty() && (models.is_empty() || listed) && self.work.is_none();
        let (mut uses, mut back) = (false, false);
        ui.horizontal_wrapped(|ui| {
            let button = text_button(ui, "Use this model", can);
            if takes_keyboard && listed {
                focus_soon(&button);
            }
            uses = button.clicked() && can;
            back = text_button(ui, "Back", false).clicked();
        });
        if uses {
            self.save(ui.ctx(), provider, self.model.trim().to_owned(), context);
        } else if back {
            self.go_to(ConnectionStep::Choose);
        }
    }

    fn test(&mut self, ctx: &egui::Context, provider: NewProvider) {
        self.trouble = None;
        self.work = Some(start(ctx, move || {
            let tested = provider.test(ProviderTimeouts::default());
            ConnectionResult::Tested(Box::new(provider), tested)
        }));
    }

    fn save(&mut self, ctx: &egui::Context, provider: NewProvider, model: String, context: Option<u64>) {
        let workspace = self.workspace.clone();
        self.trouble = None;
        self.work = Some(start(ctx, move || {
            let saved = user_secrets().and_then(|secrets| provider.save(&workspace, &secrets, &model, context));
            ConnectionResult::Saved(saved.map(|_| model))
        }));
    }
}

/// Gives a control the keyboard, and draws it again with the ring around it.
fn focus_soon(response: &Response) {
    response.request_focus();
    response.ctx.request_repaint();
}

/// Draws wrapped text.
fn paragraph(ui: &mut Ui, text: &str, colour: egui::Color32) {
    let mut job = egui::text::LayoutJob::default();
    append_text(&mut job, text, &theme::small(), colour);
    ui.label(job);
}

/// Draws a text field with its accessible name and hint. Returns whether Enter was pressed in it.
fn field(ui: &mut Ui, (name, hint): (&str, &str), text: &mut String, hidden: bool, takes_keyboard: bool) -> bool {
    let style = theme::small();
    let hint = RichText::new(hint).font(style.font.clone()).color(ThemeColors::of(ui).muted);
    let field = egui::TextEdit::singleline(text)
        .id_salt(name)
        .font(style.font)
        .hint_text(hint)
        .password(hidden)
        .margin(egui::Margin::symmetric(8, 6))
        .desired_width(f32::INFINITY);
    let response = ui.add(field).accessible_name(name);
    if takes_keyboard {
        focus_soon(&response);
    }
    response.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter))
}

/// Draws a list of models that scrolls if it's long.
pub fn model_list(ui: &mut Ui, rows: impl FnOnce(&mut Ui)) {
    egui::ScrollArea::vertical().id_salt("models").max_height(MODEL_LIST_HEIGHT).auto_shrink([false, true]).show(
        ui,
        |ui| {
            ui.spacing_mut().item_spacing.y = 0.0;
            rows(ui);
        },
    );
}

/// Draws a model to choose. `at`: where it runs; `is`: whether it's the chosen one.
pub fn model_row(ui: &mut Ui, model: &str, at: &str, is: bool) -> Response {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT), Sense::click());
    let colours = ThemeColors::of(ui);
    if is {
        ui.painter().rect_filled(rect, theme::CONTROL_CORNER, colours.accent_ground);
    }
    paint_hover_fill(ui, &response);
    let style = theme::small();
    let at_width = if at.is_empty() { 0.0 } else { 80.0 };
    let place = rect.left_center() + vec2(space::S, -10.0);
    let room = rect.width() - at_width - 2.0 * space::S;
    paint_clipped_text(ui, place, room, model, &style, colours.ink);
    let end = rect.right_center() + vec2(-at_width, -10.0);
    paint_clipped_text(ui, end, at_width, at, &style, colours.muted);
    paint_focus_ring(ui, &response, theme::CONTROL_CORNER);
    let name = if at.is_empty() { format!("Use {model}") } else { format!("Use {model}, {at}") };
    set_accessible_name(&response, Role::Button, &name);
    response
}
