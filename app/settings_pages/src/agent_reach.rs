//! Settings of agents that `config.yaml` holds and most users want: local models first, how long approvals stay open,
//! which hosts tools reach, and the webhook.

use crate::agent_limits::{entries_text, split_entries};
use crate::config_rows::ConfigRows;
use agent::config::AgentConfig;
use agent_ui::config_writer::config_value;
use eframe::egui::Ui;
use serde_json::Value;
use ui::setting_rows::{SettingsRows, segmented_control, text, toggle_switch};

/// How long approvals stay open: name and seconds.
const APPROVAL_TIMES: [(&str, u64); 3] = [("5 minutes", 300), ("30 minutes", 1_800), ("8 hours", 28_800)];

/// Draws the settings.
pub(crate) fn show(rows: &mut ConfigRows, lines: &mut SettingsRows<'_>, config: &AgentConfig) {
    show_switch(
        rows,
        lines,
        ("Prefer models on this machine", &["llm", "prefer_local"], config.llm.prefer_local),
        "Local providers are used before the default one.",
    );
    show_switch(
        rows,
        lines,
        ("Prefer the cheapest model", &["llm", "prefer_cheapest"], config.llm.prefer_cheapest),
        "Of the providers that may be asked without a rule.",
    );
    let chosen = APPROVAL_TIMES.iter().position(|(_, seconds)| *seconds == config.approval.timeout_seconds);
    let about = match chosen {
        Some(_) => "A request that nobody answers is denied after this time.".to_owned(),
        None => format!("A request is denied after {} seconds.", config.approval.timeout_seconds),
    };
    let name = "Approval requests stay open";
    let control = |ui: &mut Ui| segmented_control(ui, &APPROVAL_TIMES.map(|(name, _)| name), chosen);
    if let Some(place) = rows.show_row(lines, name, &about, control) {
        let change = config_value(&["approval", "timeout_seconds"], APPROVAL_TIMES[place].1.into());
        rows.change(lines.ui.ctx(), name, vec![change]);
    }
    let restricted = config.security.network_restricted;
    show_switch(
        rows,
        lines,
        ("Allowed hosts only", &["security", "network_restricted"], restricted),
        "Tools reach the hosts below and no others. If off, they ask for others.",
    );
    let (name, hosts) = ("Allowed hosts", entries_text(&config.security.allowed_hosts));
    let about = "With commas between them. A leading dot includes all names below: .rust-lang.org";
    if let Some(typed) = rows.show_row(lines, name, about, |ui| text(ui, name, &hosts, "github.com")) {
        let hosts = split_entries(&typed);
        rows.change(lines.ui.ctx(), name, vec![config_value(&["security", "allowed_hosts"], hosts.into())]);
    }
    let (name, webhook) = ("Webhook", config.notifications.webhook.as_deref().unwrap_or_default());
    let about = "An https address that gets a message when a run ends or needs approval, without your text.";
    if let Some(typed) = rows.show_row(lines, name, about, |ui| text(ui, name, webhook, "none")) {
        let address = typed.trim();
        let value = if address.is_empty() { Value::Null } else { address.into() };
        rows.change(lines.ui.ctx(), name, vec![config_value(&["notifications", "webhook"], value)]);
    }
}

/// Draws a switch for a value that is true or false.
fn show_switch(
    rows: &mut ConfigRows,
    lines: &mut SettingsRows<'_>,
    (name, keys, is_on): (&str, &[&str], bool),
    about: &str,
) {
    let control = |ui: &mut Ui| toggle_switch(ui, name, is_on).then_some(!is_on);
    if let Some(wanted) = rows.show_row(lines, name, about, control) {
        rows.change(lines.ui.ctx(), name, vec![config_value(keys, wanted.into())]);
    }
}
