//! Settings of agents that `config.yaml` holds and most users want: local models first, how long approvals stay open,
//! which hosts tools reach, and the webhook.

use agent::config::AgentConfig;
use agent_ui::config_writer::config_value;
use host::maintenance::config_edit::ConfigChange;
use ui::setting_rows::{SettingsRows, segmented_control, text, toggle_switch};

/// How long approvals stay open: name and seconds.
const APPROVAL_TIMES: [(&str, u64); 3] = [("5 minutes", 300), ("30 minutes", 1_800), ("8 hours", 28_800)];

/// Draws the settings. Returns the changes of the configuration.
pub(crate) fn show(lines: &mut SettingsRows<'_>, config: &AgentConfig) -> Vec<ConfigChange> {
    let mut changes = Vec::new();
    let name = "Prefer models on this machine";
    lines.show_matching_row(name, "A local provider is asked before the default one.", |ui| {
        if toggle_switch(ui, name, config.llm.prefer_local) {
            changes.push(config_value(&["llm", "prefer_local"], (!config.llm.prefer_local).into()));
        }
    });
    let (name, cheapest) = ("Prefer the cheapest model", config.llm.prefer_cheapest);
    lines.show_matching_row(name, "Of the providers that may be asked without a rule.", |ui| {
        if toggle_switch(ui, name, cheapest) {
            changes.push(config_value(&["llm", "prefer_cheapest"], (!cheapest).into()));
        }
    });
    let chosen = APPROVAL_TIMES.iter().position(|(_, seconds)| *seconds == config.approval.timeout_seconds);
    let about = match chosen {
        Some(_) => "A request without an answer is denied after that.".to_owned(),
        None => format!("A request is denied after {} seconds.", config.approval.timeout_seconds),
    };
    lines.show_matching_row("Approval requests stay open", &about, |ui| {
        if let Some(place) = segmented_control(ui, &APPROVAL_TIMES.map(|(name, _)| name), chosen) {
            changes.push(config_value(&["approval", "timeout_seconds"], APPROVAL_TIMES[place].1.into()));
        }
    });
    let (name, restricted) = ("Allowed hosts only", config.security.network_restricted);
    lines.show_matching_row(name, "Tools reach the hosts below and no others. If off, they ask for others.", |ui| {
        if toggle_switch(ui, name, restricted) {
            changes.push(config_value(&["security", "network_restricted"], (!restricted).into()));
        }
    });
    let about = "With commas between them. A leading dot includes all names below: .rust-lang.org";
    lines.show_matching_row("Allowed hosts", about, |ui| {
        let hosts = config.security.allowed_hosts.join(", ");
        if let Some(hosts) = text(ui, "Allowed hosts", &hosts, "github.com") {
            let hosts: Vec<&str> = hosts.split(',').map(str::trim).filter(|host| !host.is_empty()).collect();
            changes.push(config_value(&["security", "allowed_hosts"], hosts.into()));
        }
    });
    let about = "An https address that gets a message when a run ends or needs approval. It holds no text of yours.";
    lines.show_matching_row("Webhook", about, |ui| {
        let webhook = config.notifications.webhook.as_deref().unwrap_or_default();
        if let Some(address) = text(ui, "Webhook", webhook, "none") {
            let address = address.trim();
            let value = if address.is_empty() { serde_json::Value::Null } else { address.into() };
            changes.push(config_value(&["notifications", "webhook"], value));
        }
    });
    changes
}
