//! The model picker at the message field: the current model's name, and a menu of the models that the configured
//! providers offer.

use super::connection::{is_configured, model_row};
use agent::config::AgentConfig;
use agent::model_call::{ModelEndpoint, WireProtocol};
use agent::router::{RequestFeatures, RoutingContext, choose_provider};
use anyhow::anyhow;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Popup, RichText, Sense, Ui, vec2};
use engine::{AgentSetup, RunsState};
use host::agents::llm::ProviderTestReport;
use host::agents::model_setup::{choose_model, list_models, set_context};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use text::untrusted_text;
use ui::icons;
use ui::menus::{menu_below, menu_item};
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring, paint_hover_fill, set_accessible_name, text_button};

/// Width of the menu.
const MENU_WIDTH: f32 = 280.0;
/// Maximum number of models of one provider in the menu.
const MAX_MENU_MODELS: usize = 40;

/// What the menu requests.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PickerEvent {
    /// The configuration was changed.
    Changed,
    /// The user wants to connect a model.
    Connect,
    /// The configuration couldn't be changed, with the reason.
    Failed(String),
}

/// The models of a provider, requested or received.
enum ProviderModels {
    Waits(Receiver<anyhow::Result<ProviderTestReport>>),
    Listed(anyhow::Result<Vec<String>>),
}

#[derive(Default)]
pub(super) struct ModelPicker {
    lists: BTreeMap<String, ProviderModels>,
    change: Option<Receiver<anyhow::Result<()>>>,
    was_open: bool,
}

/// Returns the endpoint that an ordinary question goes to.
pub(crate) fn current_endpoint(config: &AgentConfig, setup: Option<&AgentSetup>) -> Option<ModelEndpoint> {
    let situation = RoutingContext {
        providers: setup.map(|setup| setup.known.clone()).unwrap_or_default(),
        wanted: config.agents.lead.llm_provider.clone(),
        ..RoutingContext::default()
    };
    let chosen = choose_provider(config, &RequestFeatures::default(), &situation);
    chosen.ok().map(|decision| decision.endpoint)
}

impl ModelPicker {
    /// Draws the button and, while it's open, the menu.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        agents: &RunsState,
        config: Option<&AgentConfig>,
        workspace: &Path,
    ) -> Option<PickerEvent> {
        let mut event = self.receive();
        let setup = agents.setup().filter(|setup| setup.trouble.is_none());
        let Some(config) = setup.map(|setup| &setup.config).or(config) else { return event };
        let current = current_endpoint(config, setup);
        // The built-in default is a guess until the user has connected a model.
        let named = current.as_ref().filter(|_| is_configured(config));
        let shown = named.map_or("Choose a model", |endpoint| endpoint.model.as_str());
        let button = model_button(ui, shown);
        let mut is_open = false;
        Popup::menu(&button).width(MENU_WIDTH).show(|ui| {
            is_open = true;
            ui.set_min_width(MENU_WIDTH);
            if !self.was_open {
                self.request_lists(ui.ctx(), config, setup);
            }
            let area = egui::ScrollArea::vertical().max_height(360.0);
            event = area.show(ui, |ui| self.show_menu(ui, config, current.as_ref(), workspace)).inner.or(event.take());
        });
        self.was_open = is_open;
        event
    }

    fn show_menu(
        &mut self,
        ui: &mut Ui,
        config: &AgentConfig,
        current: Option<&ModelEndpoint>,
        workspace: &Path,
    ) -> Option<PickerEvent> {
        ui.spacing_mut().item_spacing.y = 0.0;
        let colours = ThemeColors::of(ui);
        let mut chosen = None;
        for (provider, list) in &mut self.lists {
            let Some(own) = config.endpoint(provider) else { continue };
            if let ProviderModels::Waits(told) = list {
                match told.try_recv() {
                    Ok(report) => {
                        *list = ProviderModels::Listed(report.map(|report| report.models.unwrap_or_default()));
                    }
                    Err(TryRecvError::Empty) => {}
                    Err(TryRecvError::Disconnected) => *list = ProviderModels::Listed(Ok(Vec::new())),
                }
            }
            let caption = theme::caption().font;
            ui.label(RichText::new(untrusted_text::escape_line(provider)).font(caption.clone()).color(colours.muted));
            let is = |model: &str| current.is_some_and(|now| now.provider == *provider && now.model == model);
            let mut row = |ui: &mut Ui, model: &str| {
                if model_row(ui, model, "", is(model)).clicked() {
                    chosen = Some((provider.clone(), model.to_owned()));
                }
            };
            match list {
                ProviderModels::Listed(Ok(models)) if !models.is_empty() => {
                    models.iter().take(MAX_MENU_MODELS).for_each(|model| row(ui, model));
                }
                ProviderModels::Listed(Err(why)) => {
                    let why = untrusted_text::escape_line(&why.to_string()).into_owned();
                    ui.label(RichText::new(why).font(caption).color(colours.warn));
                }
                ProviderModels::Listed(Ok(_)) | ProviderModels::Waits(_) => row(ui, &own.model),
            }
        }
        ui.add_space(space::XS);
        let connects = text_button(ui, "Connect another model…", false).clicked();
        if connects || chosen.is_some() {
            ui.close();
        }
        if let Some((provider, model)) = chosen {
            let workspace = workspace.to_owned();
            self.start_change(ui.ctx(), move || choose_model(&workspace, &provider, &model).map(drop));
        }
        connects.then_some(PickerEvent::Connect)
    }

    /// Requests the model list of every enabled provider that isn't barred.
    fn request_lists(&mut self, ctx: &egui::Context, config: &AgentConfig, setup: Option<&AgentSetup>) {
        self.lists.clear();
        let barred =
            |name: &str| setup.and_then(|setup| setup.known.get(name)).is_some_and(|known| known.barred.is_some());
        for (name, provider) in &config.llm.providers {
            let Some(endpoint) = config.endpoint(name).filter(|_| provider.is_enabled() && !barred(name)) else {
                continue;
            };
            // Without a setup, available keys are unknown: only the provider that the user has chosen is queried.
            if setup.is_none() && *name != config.llm.default_provider {
                continue;
            }
            let (tell, told) = channel();
            let wake = ctx.clone();
            std::thread::spawn(move || {
                let _ = tell.send(list_models(endpoint)); // the menu may be closed
                wake.request_repaint();
            });
            self.lists.insert(name.clone(), ProviderModels::Waits(told));
        }
    }

    fn receive(&mut self) -> Option<PickerEvent> {
        let made = match self.change.as_ref()?.try_recv() {
            Ok(made) => made,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(anyhow!("the model couldn't be changed")),
        };
        self.change = None;
        Some(match made {
            Ok(()) => PickerEvent::Changed,
            Err(why) => PickerEvent::Failed(why.to_string()),
        })
    }
}

/// Contexts below this size, in tokens, are worth a warning.
const SMALL_CONTEXT_TOKENS: u64 = 8_192;
/// Context sizes to choose from, in tokens.
const CONTEXT_CHOICES: [u64; 5] = [8_192, 16_384, 32_768, 65_536, 131_072];

/// Formats a number of tokens, in thousands.
fn tokens_label(tokens: u64) -> String {
    if tokens < 1_024 { tokens.to_string() } else { format!("{}k", tokens / 1_024) }
}

impl ModelPicker {
    /// Warns about a small context, and offers to change its size.
    pub(super) fn show_small_context(&mut self, ui: &mut Ui, agents: &RunsState, workspace: &Path) {
        let usable = agents.setup().filter(|setup| setup.trouble.is_none() && is_configured(&setup.config));
        let Some(setup) = usable else { return };
        let Some(endpoint) = current_endpoint(&setup.config, Some(setup)) else { return };
        let Some(context) = setup.contexts.get(&endpoint.provider).filter(|tokens| **tokens < SMALL_CONTEXT_TOKENS)
        else {
            return;
        };
        let colours = ThemeColors::of(ui);
        ui.horizontal(|ui| {
            let words = format!("Context is limited to {} tokens", tokens_label(*context));
            let label = ui.label(RichText::new(words).font(theme::caption().font).color(colours.muted));
            if endpoint.wire == WireProtocol::Ollama {
                label.on_hover_text(
                    "Ollama drops what is longer. Start it with OLLAMA_CONTEXT_LENGTH, and set the same here.",
                );
            }
            let button = text_button(ui, "Change", false);
            menu_below(&button, "Context", |ui| {
                for tokens in CONTEXT_CHOICES {
                    if menu_item(ui, &format!("{} tokens", tokens_label(tokens)), None, true) {
                        let (provider, workspace) = (endpoint.provider.clone(), workspace.to_owned());
                        self.start_change(ui.ctx(), move || set_context(&workspace, &provider, tokens).map(drop));
                    }
                }
            });
        });
    }

    /// Changes the configuration on a separate thread.
    fn start_change(&mut self, ctx: &egui::Context, work: impl FnOnce() -> anyhow::Result<()> + Send + 'static) {
        let (tell, told) = channel();
        let wake = ctx.clone();
        std::thread::spawn(move || {
            let _ = tell.send(work()); // nobody waits where the window was closed
            wake.request_repaint();
        });
        self.change = Some(told);
    }
}

/// Draws the button with the model's name that opens the menu.
fn model_button(ui: &mut Ui, model: &str) -> egui::Response {
    let room = (ui.available_width() * 0.6).clamp(80.0, 220.0);
    let style = theme::caption();
    let (rect, response) = ui.allocate_exact_size(vec2(room, size::MIN_CLICK_HEIGHT), Sense::click());
    let colours = ThemeColors::of(ui);
    paint_hover_fill(ui, &response);
    let at = rect.left_center() + vec2(space::XS, -8.0);
    let used = paint_clipped_text(ui, at, room - 2.0 * space::L, model, &style, colours.muted);
    let caret = rect.left_center() + vec2(space::XS + used + space::S, 0.0);
    ui.painter().text(caret, Align2::CENTER_CENTER, icons::CARET_DOWN, theme::icon_font(10.0), colours.muted);
    paint_focus_ring(ui, &response, theme::CONTROL_CORNER);
    set_accessible_name(&response, Role::Button, &format!("Model: {model}"));
    response
}
