//! Rules that choose a model by the request: `llm.rules` in `config.yaml`.

use crate::agent_limits::split_entries;
use crate::config_rows::ConfigRows;
use agent::config::{AgentConfig, RoutingRule, RuleProviders};
use agent::router::RoutingCondition;
use agent_ui::config_writer::config_value;
use anyhow::{Context as _, bail};
use host::maintenance::config_edit::change_config;
use host::maintenance::configuration::{self, CONFIG_FILE, MAX_CONFIG_BYTES};
use serde_json::{Value, json};
use std::path::Path;
use text::yaml_edit::parse_value;
use ui::icons;
use ui::setting_rows::{SettingsRows, text};
use ui::widgets::{icon_button, text_button};

/// The word that stands for the cheapest provider.
const CHEAPEST: &str = "cheapest";
const NEW_RULE_ROW: &str = "Rules for models";

/// State of the rules beyond the session.
#[derive(Default)]
pub(crate) struct ModelRuleSettings {
    /// The rule whose fields are shown.
    open: Option<usize>,
    /// A new condition that can't be read.
    typed: String,
}

/// A rule as the page shows it, which may be older than the file.
#[derive(Clone, Copy)]
struct ShownRule<'a> {
    at: usize,
    /// The number of rules.
    count: usize,
    rule: &'a RoutingRule,
}

/// A change of a rule's key; `None` removes the key.
type RuleField = (&'static str, Option<Value>);

impl ModelRuleSettings {
    /// Draws a row for each rule, and the field that adds one.
    pub(crate) fn show(&mut self, rows: &mut ConfigRows, lines: &mut SettingsRows<'_>, config: &AgentConfig) {
        let about = "The rule with the highest priority that fits a request chooses its model.";
        let hint = "complexity > 0.8 and code";
        let typed =
            rows.show_row(lines, NEW_RULE_ROW, about, |ui| text(ui, "Condition of a new rule", &self.typed, hint));
        if let Some(typed) = typed {
            self.add(rows, lines, config, typed);
        }
        rows.show_removed(lines, NEW_RULE_ROW);
        let rules = &config.llm.rules;
        for (at, rule) in rules.iter().enumerate() {
            self.show_rule(rows, lines, ShownRule { at, count: rules.len(), rule });
        }
    }

    fn add(&mut self, rows: &mut ConfigRows, lines: &mut SettingsRows<'_>, config: &AgentConfig, typed: String) {
        self.typed.clear();
        if typed.trim().is_empty() {
            return;
        }
        match RoutingCondition::parse(&typed) {
            Ok(condition) => {
                let rule = json!({"when": condition.text(), "use": config.llm.default_provider});
                self.open = Some(config.llm.rules.len());
                rows.run(lines.ui.ctx(), NEW_RULE_ROW, move |workspace| {
                    change_rules(workspace, |rules| {
                        rules.push(rule);
                        Ok(())
                    })
                });
            }
            Err(why) => {
                rows.refuse(NEW_RULE_ROW, &why.to_string());
                self.typed = typed;
            }
        }
    }

    fn show_rule(&mut self, rows: &mut ConfigRows, lines: &mut SettingsRows<'_>, shown: ShownRule<'_>) {
        let ShownRule { at, rule, .. } = shown;
        let (number, is_open) = (at + 1, self.open == Some(at));
        let row = format!("Model rule {number}");
        let about = format!("{}: {}. Priority {}.", rule.when.text(), providers_text(&rule.providers), rule.priority);
        let (mut folded, mut removed) = (false, false);
        rows.show_row(lines, &row, &about, |ui| {
            removed = icon_button(ui, icons::X, &format!("Remove model rule {number}"), None).clicked();
            let word = if is_open { "Close" } else { "Edit" };
            folded = text_button(ui, &format!("{word} rule {number}"), false).clicked();
            None::<()>
        });
        if removed {
            self.open = None;
            rows.remove(lines.ui.ctx(), &row, (NEW_RULE_ROW, format!("{row}: {about}")), rule_job(shown, None));
        }
        if folded {
            self.open = (!is_open).then_some(at);
        }
        if is_open {
            show_fields(rows, lines, shown);
        }
    }
}

/// Draws the fields of a rule.
fn show_fields(rows: &mut ConfigRows, lines: &mut SettingsRows<'_>, shown: ShownRule<'_>) {
    let (number, rule) = (shown.at + 1, shown.rule);
    let row = format!("Condition of rule {number}");
    let about = "With tokens, complexity, code, large, tools; and, or, not, and comparisons.";
    if let Some(typed) = rows.show_row(lines, &row, about, |ui| text(ui, &row, rule.when.text(), "code")) {
        match RoutingCondition::parse(&typed) {
            Ok(condition) => change_rule(rows, lines, &row, shown, ("when", Some(condition.text().into()))),
            Err(why) => rows.refuse(&row, &why.to_string()),
        }
    }
    let row = format!("Providers of rule {number}");
    let about = "With commas: the first that can be asked. Or cheapest.";
    let kept = providers_text(&rule.providers);
    if let Some(typed) = rows.show_row(lines, &row, about, |ui| text(ui, &row, &kept, CHEAPEST)) {
        let names = split_entries(&typed);
        match names.as_slice() {
            [] => rows.refuse(&row, "A rule needs a provider, or cheapest."),
            [name] => change_rule(rows, lines, &row, shown, ("use", Some(name.as_str().into()))),
            names => change_rule(rows, lines, &row, shown, ("use", Some(names.into()))),
        }
    }
    let row = format!("Priority of rule {number}");
    let (about, kept) = ("A whole number. The highest goes first.", rule.priority.to_string());
    if let Some(typed) = rows.show_row(lines, &row, about, |ui| text(ui, &row, &kept, "0")) {
        match typed.trim() {
            "" => change_rule(rows, lines, &row, shown, ("priority", None)),
            typed => match typed.parse::<i64>() {
                Ok(priority) => change_rule(rows, lines, &row, shown, ("priority", Some(priority.into()))),
                Err(_) => rows.refuse(&row, &format!("“{typed}” isn't a whole number.")),
            },
        }
    }
}

fn providers_text(providers: &RuleProviders) -> String {
    match providers {
        RuleProviders::Named(names) => names.join(", "),
        RuleProviders::Cheapest => CHEAPEST.to_owned(),
    }
}

/// Changes a key of a rule.
fn change_rule(rows: &mut ConfigRows, lines: &mut SettingsRows<'_>, row: &str, shown: ShownRule<'_>, field: RuleField) {
    rows.run(lines.ui.ctx(), row, rule_job(shown, Some(field)));
}

/// A change of the rules in the workspace's folder.
type RuleJob = Box<dyn FnOnce(&Path) -> anyhow::Result<()> + Send>;

/// Returns the change of a key of a rule, or the removal of the rule, in the configuration as it then is.
fn rule_job(ShownRule { at, count, rule }: ShownRule<'_>, field: Option<RuleField>) -> RuleJob {
    let rule = rule.clone();
    Box::new(move |workspace: &Path| {
        change_rules(workspace, |rules| {
            let is_same =
                |value: &Value| serde_json::from_value::<RoutingRule>(value.clone()).is_ok_and(|other| other == rule);
            // A rule that was just edited is another one, at the same place.
            let same = rules.iter().position(is_same).or((rules.len() == count).then_some(at));
            let Some(at) = same else { bail!("Another program has changed this rule. Reload the configuration.") };
            match field {
                None => _ = rules.remove(at),
                Some((key, value)) => {
                    let fields = rules[at].as_object_mut().context("A rule has keys.")?;
                    match value {
                        Some(value) => _ = fields.insert(key.to_owned(), value),
                        None => _ = fields.remove(key),
                    }
                }
            }
            Ok(())
        })
    })
}

/// Edits the rules as the workspace's file has them, or else the rules that hold without it.
fn change_rules(workspace: &Path, edit: impl FnOnce(&mut Vec<Value>) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let config = configuration::load_config(workspace)?;
    let file = host::fs::copy::read_text(&workspace.join(CONFIG_FILE), MAX_CONFIG_BYTES).ok();
    let file = file.and_then(|text| parse_value(&text).ok());
    let written = file.as_ref().and_then(|file| file.pointer("/llm/rules")?.as_array());
    let mut rules = written.cloned().unwrap_or_else(|| config.llm.rules.iter().map(rule_value).collect());
    edit(&mut rules)?;
    change_config(workspace, &[config_value(&["llm", "rules"], rules.into())]).map(drop)
}

fn rule_value(rule: &RoutingRule) -> Value {
    let providers = match &rule.providers {
        RuleProviders::Named(names) => json!(names),
        RuleProviders::Cheapest => json!(CHEAPEST),
    };
    json!({"when": rule.when.text(), "use": providers, "priority": rule.priority})
}
