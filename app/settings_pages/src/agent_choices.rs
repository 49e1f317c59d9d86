//! Settings of single agents: provider, length and temperature of answers, deadline, tools. They are `agents` in
//! `config.yaml`, and win over those in an agent's own file.

use crate::agent_limits::{entries_text, number, number_text, split_entries, whole_text};
use crate::config_rows::ConfigRows;
use agent::agent_definition;
use agent::approval_names::fault_of_entry;
use agent::config::{AgentChoice, AgentConfig};
use agent::model_call::ToolCallChoice;
use agent::name_suggestions::closest_names;
use agent_ui::config_writer::config_value;
use anyhow::bail;
use eframe::egui::Ui;
use engine::RunsState;
use host::maintenance::config_edit::change_config;
use host::maintenance::configuration::{CONFIG_FILE, user_config_folder};
use serde_json::Value;
use std::path::Path;
use ui::icons;
use ui::setting_rows::{SettingsRows, text, toggle_switch};
use ui::widgets::{icon_button, text_button};

/// Maximum length of an agent's name in characters.
const MAX_AGENT_NAME_CHARS: usize = 60;
/// What stands for an empty list of tools.
const NO_TOOLS: &str = "none";
const NEW_AGENT_ROW: &str = "Settings of an agent";
/// Name in the window of the agents without settings of their own, which `agents.lead` is about.
const OTHER_AGENTS: &str = "other agents";

/// A value of an agent's settings that is typed.
struct ChoiceField {
    name: &'static str,
    about: &'static str,
    key: &'static str,
    /// What an empty field means.
    hint: &'static str,
    kept: fn(&AgentChoice) -> String,
    value: fn(&str) -> Value,
}

static CHOICE_FIELDS: [ChoiceField; 5] = [
    ChoiceField {
        name: "Provider",
        about: "The agent always uses it.",
        key: "llm_provider",
        hint: "by the rules",
        kept: |choice| choice.llm_provider.clone().unwrap_or_default(),
        value: |typed| if typed.is_empty() { Value::Null } else { typed.into() },
    },
    ChoiceField {
        name: "Answer length",
        about: "Maximum tokens in an answer.",
        key: "max_tokens",
        hint: "the provider's",
        kept: |choice| whole_text(choice.max_tokens),
        value: number,
    },
    ChoiceField {
        name: "Temperature",
        about: "0 to 2. Answers vary more above 1.",
        key: "temperature",
        hint: "the provider's",
        kept: |choice| number_text(choice.temperature),
        value: number,
    },
    ChoiceField {
        name: "Deadline",
        about: "A time such as 20 min, or a date. It ends each run.",
        key: "deadline",
        hint: "none",
        kept: |choice| choice.deadline.map(|deadline| deadline.to_string()).unwrap_or_default(),
        value: |typed| if typed.is_empty() { Value::Null } else { typed.into() },
    },
    ChoiceField {
        name: "Tools",
        about: "Names with commas, or none. The agent can use only these.",
        key: TOOLS_KEY,
        hint: "as in its file",
        kept: |choice| match choice.tools.as_deref() {
            None => String::new(),
            Some([]) => NO_TOOLS.to_owned(),
            Some(tools) => entries_text(tools),
        },
        value: |typed| match typed {
            "" => Value::Null,
            NO_TOOLS => Vec::<Value>::new().into(),
            typed => split_entries(typed).into(),
        },
    },
];
const TOOLS_KEY: &str = "tools";

/// State of the agents' settings beyond the session.
#[derive(Default)]
pub(crate) struct AgentChoiceSettings {
    /// The agent whose fields are shown; empty for the others.
    open: Option<String>,
    /// Names of the user's and the program's agents, for a revision of the agents.
    known: Vec<String>,
    checked: Option<u64>,
}

impl AgentChoiceSettings {
    /// Draws rows for each agent that has settings, and the field that adds one.
    pub(crate) fn show(
        &mut self,
        rows: &mut ConfigRows,
        lines: &mut SettingsRows<'_>,
        agents: &RunsState,
        config: &AgentConfig,
    ) {
        if self.checked != Some(agents.revision()) {
            let own = agents.setup().map(|setup| setup.agents.iter()).into_iter().flatten();
            let own = own.map(|agent| agent.name.clone());
            self.known = agent_definition::built_in().into_iter().map(|agent| agent.name).chain(own).collect();
            self.checked = Some(agents.revision());
        }
        self.show_new(rows, lines, config);
        rows.show_removed(lines, NEW_AGENT_ROW);
        let lead = &config.agents.lead;
        let summary = choice_text(lead, "Those without settings of their own here.");
        let mut folded = false;
        rows.show_row(lines, "Settings of other agents", &summary, |ui| {
            folded = self.fold_button(ui, "", OTHER_AGENTS);
            None::<()>
        });
        self.fold(folded, "");
        if self.open.as_deref() == Some("") {
            show_fields(rows, lines, (OTHER_AGENTS, &["agents", "lead"], lead), (agents, config));
        }
        for (name, choice) in &config.agents.specialists {
            self.show_agent(rows, lines, (name.as_str(), choice), (agents, config));
        }
    }

    fn show_new(&mut self, rows: &mut ConfigRows, lines: &mut SettingsRows<'_>, config: &AgentConfig) {
        let about = "They override the agent's own file.";
        let Some(typed) = rows.show_row(lines, NEW_AGENT_ROW, about, |ui| text(ui, "Name of an agent", "", "qa"))
        else {
            return;
        };
        let name = typed.trim().trim_start_matches('@');
        if name.is_empty() {
            return;
        }
        if name.chars().count() > MAX_AGENT_NAME_CHARS || name.chars().any(char::is_control) {
            let why = format!("“{name}” can't be an agent's name: it has up to {MAX_AGENT_NAME_CHARS} characters.");
            rows.refuse(NEW_AGENT_ROW, &why);
            return;
        }
        self.open = Some(name.to_owned());
        if !config.agents.specialists.contains_key(name) {
            let change = config_value(&["agents", "specialists", name, "enabled"], true.into());
            rows.change(lines.ui.ctx(), NEW_AGENT_ROW, vec![change]);
        }
    }

    fn show_agent(
        &mut self,
        rows: &mut ConfigRows,
        lines: &mut SettingsRows<'_>,
        (name, choice): (&str, &AgentChoice),
        (agents, config): (&RunsState, &AgentConfig),
    ) {
        let is_on = choice.enabled.unwrap_or(true);
        let row = format!("Agent {name}");
        let about = match self.unknown_text(name) {
            Some(unknown) => unknown,
            None if !is_on => "Switched off.".to_owned(),
            None => choice_text(choice, "As in its own file."),
        };
        let (mut removed, mut folded) = (false, false);
        let switched = rows.show_row(lines, &row, &about, |ui| {
            removed = icon_button(ui, icons::X, &format!("Remove the settings of {name}"), None).clicked();
            folded = self.fold_button(ui, name, name);
            toggle_switch(ui, &format!("Use the agent {name}"), is_on).then_some(!is_on)
        });
        if let Some(wanted) = switched {
            let change = config_value(&["agents", "specialists", name, "enabled"], wanted.into());
            rows.change(lines.ui.ctx(), &row, vec![change]);
        }
        if removed {
            let (undo, name) = ((NEW_AGENT_ROW, format!("{row}: {about}")), name.to_owned());
            rows.remove(lines.ui.ctx(), &row, undo, move |workspace| remove_choice(workspace, name));
        }
        self.fold(folded, name);
        if self.open.as_deref() == Some(name) {
            show_fields(rows, lines, (name, &["agents", "specialists", name], choice), (agents, config));
        }
    }

    /// Says that an agent is neither the user's nor the program's, and which one may be meant.
    fn unknown_text(&self, name: &str) -> Option<String> {
        if self.known.iter().any(|known| known == name) {
            return None;
        }
        let near = closest_names(name, self.known.iter().map(String::as_str));
        let hint = if near.is_empty() { String::new() } else { format!(" Did you mean {}?", near.join(" or ")) };
        Some(format!("No agent of yours or of Tracebook is called “{name}”.{hint}"))
    }

    fn fold_button(&self, ui: &mut Ui, key: &str, name: &str) -> bool {
        let word = if self.open.as_deref() == Some(key) { "Close" } else { "Edit" };
        text_button(ui, &format!("{word} {name}"), false).clicked()
    }

    fn fold(&mut self, is_clicked: bool, key: &str) {
        if is_clicked {
            self.open = (self.open.as_deref() != Some(key)).then(|| key.to_owned());
        }
    }
}

/// Draws the fields of an agent's settings.
fn show_fields(
    rows: &mut ConfigRows,
    lines: &mut SettingsRows<'_>,
    (name, keys, choice): (&str, &[&str], &AgentChoice),
    (agents, config): (&RunsState, &AgentConfig),
) {
    for field in &CHOICE_FIELDS {
        let (row, kept) = (format!("{} of {name}", field.name), (field.kept)(choice));
        let about = match field.key == TOOLS_KEY && name == OTHER_AGENTS {
            true => "Names with commas, or none. They hold for the assistant.",
            false => field.about,
        };
        let Some(typed) = rows.show_row(lines, &row, about, |ui| text(ui, &row, &kept, field.hint)) else { continue };
        let typed = typed.trim();
        if field.key == TOOLS_KEY && typed != NO_TOOLS {
            let tools = agents.named_tools();
            let fault = split_entries(typed).iter().find_map(|tool| fault_of_entry(tool, false, config, &tools));
            if let Some(why) = fault {
                rows.refuse(&row, &why);
                continue;
            }
        }
        let change = config_value(&[keys, &[field.key][..]].concat(), (field.value)(typed));
        rows.change(lines.ui.ctx(), &row, vec![change]);
    }
}

/// Describes an agent's settings in a line; `none` if there are none.
fn choice_text(choice: &AgentChoice, none: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(choice.llm_provider.clone());
    parts.extend(choice.max_tokens.map(|tokens| format!("{tokens} tokens")));
    parts.extend(choice.temperature.map(|temperature| format!("temperature {temperature}")));
    parts.extend(choice.deadline.map(|deadline| format!("deadline {deadline}")));
    parts.extend(choice.tool_choice.map(|choice| match choice {
        ToolCallChoice::Auto => "tools as the model decides".to_owned(),
        ToolCallChoice::Required => "a tool first".to_owned(),
        ToolCallChoice::None => "no tool calls".to_owned(),
    }));
    parts.extend(choice.tools.as_deref().map(|tools| match tools {
        [] => "no tools".to_owned(),
        tools => tools.join(", "),
    }));
    if parts.is_empty() { none.to_owned() } else { format!("{}.", parts.join(", ")) }
}

/// Removes the settings of an agent from the workspace's file.
fn remove_choice(workspace: &Path, name: String) -> anyhow::Result<()> {
    let names = ["agents", "specialists", name.as_str()].map(ToOwned::to_owned).to_vec();
    let config = change_config(workspace, &[(names, None)])?;
    if config.agents.specialists.contains_key(&name) {
        let folder = user_config_folder().unwrap_or_default();
        bail!("{} has settings of {name}, too. Remove them there.", folder.join(CONFIG_FILE).display());
    }
    Ok(())
}
