//! The agents page: language models and their status, the configuration's path, MCP servers, rules and limits, and
//! what runs without approval. Keys are never shown.

use crate::agent_choices::AgentChoiceSettings;
use crate::config_rows::ConfigRows;
use crate::mcp_servers::McpServerSettings;
use crate::model_rules::ModelRuleSettings;
use crate::policy_rules::PolicyRuleSettings;
use crate::{agent_limits, agent_reach};
use agent::config::{AgentConfig, MemoryConfig};
use agent::memory::place::MemoryPlace;
use agent::model_call::ModelEndpoint;
use agent::policy::Permission;
use agent::tool_spec::ToolRisk;
use agent_ui::agent::connection::{ConnectionEvent, ModelConnection};
use agent_ui::config_writer::config_value;
use anyhow::{Context as _, anyhow, bail};
use eframe::egui;
use egui::{Sense, pos2, vec2};
use engine::{Command, RunsState};
use host::agents::llm::{self, ProviderClient, ProviderTimeouts};
use host::maintenance::configuration::{self, CONFIG_FILE};
use host::maintenance::secrets::UserSecrets;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use text::untrusted_text;
use ui::icons;
use ui::setting_rows::{SettingsRows, segmented_control};
use ui::theme::{self, ThemeColors, size};
use ui::widgets::{icon_button, paint_clipped_text, text_button};

/// What a revoked permission leaves the user to do.
const REVOCATION_WARNING: &str = "There’s no undo for a revoked one; “Allow for…” adds it again.";

/// A running test, or its result.
enum ProviderTest {
    Waits(Receiver<anyhow::Result<String>>),
    Said(anyhow::Result<String>),
}

/// State of the agents page beyond the session.
pub struct ProviderSettings {
    folder: PathBuf,
    tests: BTreeMap<String, ProviderTest>,
    /// Whether the configuration was requested since the page was opened.
    asked: bool,
    rows: ConfigRows,
    servers: McpServerSettings,
    policy_rules: PolicyRuleSettings,
    model_rules: ModelRuleSettings,
    choices: AgentChoiceSettings,
    connection: ModelConnection,
}

impl ProviderSettings {
    /// Creates the state for a workspace, by its folder.
    pub fn new(folder: PathBuf) -> ProviderSettings {
        ProviderSettings {
            tests: BTreeMap::new(),
            asked: false,
            rows: ConfigRows::of_workspace(&folder),
            servers: McpServerSettings::of_workspace(&folder),
            policy_rules: PolicyRuleSettings::default(),
            model_rules: ModelRuleSettings::default(),
            choices: AgentChoiceSettings::default(),
            connection: ModelConnection::of_workspace(&folder),
            folder,
        }
    }

    /// Draws the settings of saved variables, which stand on the page of notes.
    pub fn show_saved_variables(
        &mut self,
        lines: &mut SettingsRows<'_>,
        agents: &RunsState,
        wishes: &mut Vec<Command>,
    ) {
        self.read_setup(wishes);
        if let Some(setup) = agents.setup() {
            agent_limits::show_saved_variables(&mut self.rows, lines, &setup.config);
        }
    }

    /// Has the configuration read when the settings open, and after each change.
    fn read_setup(&mut self, wishes: &mut Vec<Command>) {
        let is_first = !std::mem::replace(&mut self.asked, true);
        if self.rows.receive() || is_first {
            wishes.push(Command::ReadSetup);
        }
    }

    /// Draws the page.
    pub fn show(&mut self, lines: &mut SettingsRows<'_>, agents: &RunsState, wishes: &mut Vec<Command>) {
        self.read_setup(wishes);
        self.connect(lines, wishes);
        let path = self.folder.join(CONFIG_FILE);
        lines.show_matching_row("Configuration", &path.display().to_string(), |ui| {
            if text_button(ui, "Reload", false).clicked() {
                wishes.push(Command::ReadSetup);
                self.tests.clear();
            }
            if text_button(ui, "Open", false).clicked() {
                ui.ctx().open_url(egui::OpenUrl::new_tab(format!("file://{}", path.display())));
            }
        });
        let Some(setup) = agents.setup() else {
            lines.show_matching_row("Language models", "Reading the configuration…", |_| ());
            return;
        };
        if let Some(trouble) = &setup.trouble {
            lines.show_matching_row("Can't use the configuration", trouble, |_| ());
        }
        let config = &setup.config;
        for (name, provider) in &config.llm.providers {
            let Some(endpoint) = config.endpoint(name) else { continue };
            let barred = setup.known.get(name).and_then(|known| known.barred.as_deref());
            let lead = if *name == config.llm.default_provider { "The default. " } else { "" };
            let about = match self.said(name) {
                Some(said) => said,
                None if !provider.is_enabled() => "Switched off.".to_owned(),
                None => format!("{lead}{}{}", at(&endpoint), keyed(&endpoint, barred)),
            };
            let wants_key = barred.is_some() && endpoint.key.is_some() && ModelConnection::takes_key(name);
            let title = format!("{name}: {}", endpoint.model);
            lines.show_matching_row(&title, &about, |ui| {
                if provider.is_enabled() && wants_key {
                    if text_button(ui, &format!("Add key for {name}…"), false).clicked() {
                        self.connection.open_for_key(name);
                    }
                } else if provider.is_enabled() && text_button(ui, &format!("Test {name}"), false).clicked() {
                    self.tests.insert(name.clone(), ProviderTest::Waits(test(ui.ctx(), config, endpoint.clone())));
                }
            });
        }
        let confined = match &setup.unconfined {
            Some(why) => format!("No: {why}. Each call that runs programs asks."),
            None => "Yes: programs that tools run see the project and no network.".to_owned(),
        };
        lines.show_matching_row("Tools run in a sandbox", &confined, |_| ());
        self.memory(lines, &config.memory);
        self.servers.show(lines, setup, wishes);
        self.approvals(lines, config.approval.auto_approve_level);
        self.policy_rules.show(&mut self.rows, lines, agents, config);
        rules(lines, agents, wishes);
        agent_reach::show(&mut self.rows, lines, config);
        self.model_rules.show(&mut self.rows, lines, config);
        agent_limits::show(&mut self.rows, lines, config);
        self.choices.show(&mut self.rows, lines, agents, config);
    }

    /// Draws the fields that connect a model without editing the file.
    fn connect(&mut self, lines: &mut SettingsRows<'_>, wishes: &mut Vec<Command>) {
        let about = "One on this machine, one that takes an API key, or one at another address.";
        lines.show_matching_row("Connect a model", about, |ui| {
            if text_button(ui, if self.connection.open { "Close" } else { "Connect…" }, false).clicked() {
                self.connection.open = !self.connection.open;
            }
        });
        if !self.connection.open || !lines.wanted.is_empty() {
            return;
        }
        let frame = egui::Frame::NONE.inner_margin(egui::Margin::symmetric(0, 12));
        if let Some(ConnectionEvent::Connected(_)) = frame.show(lines.ui, |ui| self.connection.show(ui)).inner {
            self.tests.clear();
            wishes.push(Command::ReadSetup);
        }
    }

    /// Draws the settings for where agents store what they learn.
    fn memory(&mut self, lines: &mut SettingsRows<'_>, memory: &MemoryConfig) {
        const PLACES: [&str; 3] = ["Off", "Private to this device", "In this folder"];
        let about = match (memory.learn, memory.place) {
            (false, _) => "Agents keep nothing of what they do.",
            (true, Some(MemoryPlace::Folder)) => {
                "Agents keep what they learn as notes in the folder memory, searched and synced like others."
            }
            (true, Some(MemoryPlace::Private)) => {
                "Agents keep what they learn in the workspace, outside of your folders."
            }
            (true, None) => {
                "Agents keep what they learn in the workspace. Folders that already hold memory continue to use it."
            }
        };
        let chosen = match (memory.learn, memory.place) {
            (false, _) => 0,
            (true, None | Some(MemoryPlace::Private)) => 1,
            (true, Some(MemoryPlace::Folder)) => 2,
        };
        let control = |ui: &mut egui::Ui| segmented_control(ui, &PLACES, Some(chosen));
        let Some(place) = self.rows.show_row(lines, "Memory", about, control) else { return };
        let mut changes = vec![config_value(&["memory", "learn"], (place > 0).into())];
        if place > 0 {
            changes.push(config_value(&["memory", "place"], ["private", "folder"][place - 1].into()));
        }
        self.rows.change(lines.ui.ctx(), "Memory", changes);
    }

    /// Draws the setting for which tool calls run without approval.
    fn approvals(&mut self, lines: &mut SettingsRows<'_>, level: ToolRisk) {
        const LEVELS: [(&str, &str, &str); 3] = [
            ("none", "Nothing", "Every tool call of an agent asks first."),
            ("low", "Reading", "Tool calls that only read run without asking. All others ask first."),
            (
                "medium",
                "Reading and undoable changes",
                "Tool calls that read, or make changes that you can undo, run without asking. All others ask first.",
            ),
        ];
        let chosen = match level {
            ToolRisk::None => 0,
            ToolRisk::Low => 1,
            ToolRisk::Medium | ToolRisk::High | ToolRisk::Critical => 2,
        };
        let (row, names) = ("Run without approval", LEVELS.map(|(_, name, _)| name));
        let control = |ui: &mut egui::Ui| segmented_control(ui, &names, Some(chosen));
        if let Some(place) = self.rows.show_row(lines, row, LEVELS[chosen].2, control) {
            let change = config_value(&["approval", "auto_approve_level"], LEVELS[place].0.into());
            self.rows.change(lines.ui.ctx(), row, vec![change]);
        }
    }

    /// Returns a provider's test result, or that it's running.
    fn said(&mut self, name: &str) -> Option<String> {
        let test = self.tests.get_mut(name)?;
        if let ProviderTest::Waits(answer) = test {
            let said = match answer.try_recv() {
                Ok(said) => said,
                Err(TryRecvError::Empty) => return Some("Testing…".to_owned()),
                Err(TryRecvError::Disconnected) => Err(anyhow!("No answer. Try again.")),
            };
            *test = ProviderTest::Said(said);
        }
        match test {
            ProviderTest::Said(Ok(words)) => Some(format!("Works: {words}")),
            ProviderTest::Said(Err(why)) => Some(format!("Doesn't work: {why}")),
            ProviderTest::Waits(_) => None,
        }
    }
}

fn at(endpoint: &ModelEndpoint) -> String {
    match (endpoint.local, &endpoint.base_url) {
        (true, Some(address)) => format!("On this machine, {address}. "),
        (true, None) => "On this machine. ".to_owned(),
        (false, Some(address)) => format!("{address}. "),
        (false, None) => String::new(),
    }
}

fn keyed(endpoint: &ModelEndpoint, barred: Option<&str>) -> String {
    match (&endpoint.key, barred) {
        // The window has a button for what the command at the end does.
        (_, Some(why)) => format!("Not ready: {}.", why.split_once(": `").map_or(why, |(what, _)| what)),
        (None, None) => "It needs no key.".to_owned(),
        (Some(_), None) => "Its key is set.".to_owned(),
    }
}

/// Tests a provider on a separate thread, since reading its key may take a while.
fn test(ctx: &egui::Context, config: &AgentConfig, endpoint: ModelEndpoint) -> Receiver<anyhow::Result<String>> {
    let (tell, answer) = channel();
    let (wake, default) = (ctx.clone(), config.llm.default_provider.clone());
    std::thread::spawn(move || {
        let said = ask(&endpoint, &default);
        let _ = tell.send(said); // nobody waits where the settings were closed
        wake.request_repaint();
    });
    answer
}

fn ask(endpoint: &ModelEndpoint, default: &str) -> anyhow::Result<String> {
    let folder = configuration::user_config_folder().context("there is no home folder to keep secrets in")?;
    let key = llm::read_endpoint_key(endpoint, &UserSecrets::new(&folder))?;
    let (tell, told) = channel();
    let providers = ProviderClient::new(ProviderTimeouts::default());
    providers.test_provider(endpoint.clone(), key.map(|key| key.expose().to_owned()), move |found| {
        let _ = tell.send(found); // it has its own end
    });
    let tested = told.recv().map_err(|_| anyhow!("it does not answer"))?.map_err(|failure| anyhow!(failure.why))?;
    let model = match tested.listed {
        Some(false) => bail!("{} has no model “{}”.", tested.host, endpoint.model),
        Some(true) => format!("and has “{}”.", endpoint.model),
        None => "and lists no models.".to_owned(),
    };
    let lead = if endpoint.provider == default { "The default, " } else { "" };
    Ok(format!("{lead}{} answers after {} ms {model}", tested.host, tested.milliseconds))
}

/// Draws what the user has allowed or denied permanently, each with a button that revokes it.
fn rules(lines: &mut SettingsRows<'_>, agents: &RunsState, wishes: &mut Vec<Command>) {
    let lasting: Vec<_> = agents.rules().iter().enumerate().collect();
    let about = match lasting.len() {
        0 => "No rules yet. “Allow for…” in an approval adds them.".to_owned(),
        1 => format!("1 rule, from your approvals. {REVOCATION_WARNING}"),
        count => format!("{count} rules, from your approvals. {REVOCATION_WARNING}"),
    };
    lines.show_matching_row("What you have allowed", &about, |_| ());
    if !lines.wanted.is_empty() {
        return;
    }
    let ui = &mut *lines.ui;
    for (number, rule) in lasting {
        let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 32.0), Sense::hover());
        let word = match rule.word {
            _ if !rule.is_readable() => "Skipped",
            Permission::Allow => "Allowed",
            Permission::Ask => "Asked",
            Permission::Deny => "Denied",
        };
        let within = if rule.within.is_some() { ", here only" } else { "" };
        let rule = untrusted_text::escape_line(&rule.describe()).into_owned();
        let said = format!("{word}{within}: {rule}");
        let _ = response.on_hover_text(&said); // all of it, where the line is too short
        let at = pos2(rect.left(), rect.center().y - 10.0);
        paint_clipped_text(ui, at, rect.width() - 60.0, &said, &theme::small(), ThemeColors::of(ui).ink);
        let corner = egui::Rect::from_min_max(pos2(rect.right() - size::MIN_CLICK_HEIGHT, rect.top()), rect.max);
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(corner).id_salt(("rule", number)));
        if icon_button(&mut child, icons::X, &format!("Revoke: {rule}"), None).clicked() {
            wishes.push(Command::ForgetRule { number });
        }
    }
}
