//! The page about volumes: whose each is, where its repository is, and whether anything may change in it.

use agent::config::{VolumeConfig, VolumeKind, branch_refusal, remote_refusal};
use agent::system_volume::SYSTEM_VOLUME_NAME;
use agent_ui::config_writer::ConfigWriter;
use engine::{Command, Session};
use host::maintenance::config_edit::ConfigChange;
use serde_json::Value;
use std::path::PathBuf;
use ui::setting_rows::{SettingsRows, text, toggle_switch};
use ui::text::sentence;
use ui::theme;
use ui::widgets::chip_button;

/// State of the page beyond the session.
pub struct VolumePage {
    workspace: PathBuf,
    writer: ConfigWriter,
}

impl VolumePage {
    /// Creates the state for a workspace, by its folder.
    pub fn new(workspace: PathBuf) -> VolumePage {
        VolumePage { workspace, writer: ConfigWriter::default() }
    }

    /// Draws the rows of each volume.
    pub fn show(&mut self, lines: &mut SettingsRows<'_>, session: &Session, wishes: &mut Vec<Command>) {
        if self.writer.receive() {
            wishes.push(Command::ReadSetup);
        }
        if let Some(why) = self.writer.trouble() {
            lines.show_matching_row("A volume's settings can't be changed", why, |_| ());
        }
        let mut volumes: Vec<_> = session.volumes().collect();
        volumes.sort_by_key(|volume| volume.name.to_lowercase());
        let mut changes = Vec::new();
        for volume in volumes {
            let place = volume.root.as_ref().map(|root| root.display().to_string());
            let place = place.unwrap_or_else(|| "Not on this device.".to_owned());
            let known = session.volume_config(volume.id).cloned().unwrap_or_default();
            show_volume(lines, (&volume.name, &place), &known, &mut changes);
        }
        let about = "Tracebook's own agents, prompts and guide. Read-only.";
        lines.show_matching_row(&format!("Volume {}", sentence(SYSTEM_VOLUME_NAME)), about, |_| ());
        let Some((change, refusal)) = changes.pop() else { return };
        self.writer.set_trouble(refusal.map(sentence));
        if refusal.is_none() {
            self.writer.change(lines.ui.ctx(), &self.workspace, vec![change]);
        }
    }
}

/// A change that the user asks for, and why it can't be made.
type WantedChange = (ConfigChange, Option<&'static str>);

/// Draws the rows of a volume.
fn show_volume(
    lines: &mut SettingsRows<'_>,
    (name, place): (&str, &str),
    known: &VolumeConfig,
    changes: &mut Vec<WantedChange>,
) {
    let mut change = |key: &str, value: Option<Value>, refusal| {
        changes.push(((vec!["volumes".to_owned(), name.to_owned(), key.to_owned()], value), refusal));
    };
    lines.show_matching_row(&format!("Volume {name}"), place, |ui| {
        let kinds = [("Not set", None), ("Own", Some(VolumeKind::User)), ("Team", Some(VolumeKind::Team))];
        for (word, kind) in kinds {
            let label = format!("Kind of {name}: {}", word.to_lowercase());
            if chip_button(ui, word, &label, kind == known.kind, &theme::caption()) && kind != known.kind {
                change("kind", kind.map(|kind| kind.as_str().into()), None);
            }
        }
    });
    let remote = known.remote.as_deref().unwrap_or_default();
    lines.show_matching_row(&format!("Remote of {name}"), "Address of its repository, without a password.", |ui| {
        if let Some(typed) = text(ui, &format!("Address of {name}"), remote, "https://…") {
            let typed = typed.trim();
            // What isn't there can't be removed.
            if typed != remote {
                change("remote", Some(typed).filter(|typed| !typed.is_empty()).map(Value::from), remote_refusal(typed));
            }
        }
    });
    let branch = known.branch.as_deref().unwrap_or_default();
    lines.show_matching_row(&format!("Branch of {name}"), "The branch that a clone checks out.", |ui| {
        if let Some(typed) = text(ui, &format!("Branch to clone of {name}"), branch, "the default branch") {
            let typed = typed.trim();
            if typed != branch {
                change("branch", Some(typed).filter(|typed| !typed.is_empty()).map(Value::from), branch_refusal(typed));
            }
        }
    });
    let about = "You and agents can read its notes and files, and change nothing.";
    lines.show_matching_row(&format!("{name} is read-only"), about, |ui| {
        if toggle_switch(ui, &format!("Make {name} read-only"), known.readonly) {
            change("readonly", Some((!known.readonly).into()), None);
        }
    });
}

/// Describes a volume in a line: whose it is, its remote and its branch. Empty if nothing is known of it.
pub fn describe_volume(known: Option<&VolumeConfig>, branch_now: Option<&str>) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(known.and_then(|known| known.kind).map(|kind| match kind {
        VolumeKind::Team => "Volume of a team".to_owned(),
        VolumeKind::User => "Your own volume".to_owned(),
    }));
    parts.extend(known.and_then(|known| known.remote.clone()));
    let branch = branch_now.or_else(|| known.and_then(|known| known.branch.as_deref()));
    parts.extend(branch.map(|branch| format!("branch {branch}")));
    if known.is_some_and(|known| known.readonly) {
        parts.push("read-only".to_owned());
    }
    sentence(&parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_described_by_what_is_known_of_it() {
        assert_eq!(describe_volume(None, None), "");
        assert_eq!(describe_volume(None, Some("main")), "Branch main");
        let remote = Some("https://example.org/harbor.git".to_owned());
        let known =
            VolumeConfig { readonly: true, kind: Some(VolumeKind::Team), remote, branch: Some("main".to_owned()) };
        let expected = "Volume of a team, https://example.org/harbor.git, branch idea, read-only";
        assert_eq!(describe_volume(Some(&known), Some("idea")), expected);
    }
}
