//! Reads an Obsidian vault's settings for daily notes, templates and attachments, from the files of its `.obsidian`
//! folder: `daily-notes.json`, `templates.json` and `app.json` (<https://help.obsidian.md/configuration-folder>).

use super::confined_dir::ConfinedPath;
use engine::Settings;
use serde_json::Value;
use std::path::Path;

/// Maximum size of a settings file in bytes; larger ones aren't read.
const MAX_SETTINGS_BYTES: u64 = 256 << 10;
/// Maximum size of a value in bytes; longer ones are ignored.
const MAX_VALUE_BYTES: usize = 500;

/// A vault's settings that Tracebook has, too; `None`: the vault doesn't set it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObsidianSettings {
    daily_folder: Option<String>,
    daily_format: Option<String>,
    daily_template: Option<String>,
    templates: Option<String>,
    attachment_folder: Option<String>,
}

/// Reads the settings of a vault; they're empty if it has none, or if they're unreadable. Blocks on the disk.
pub fn read_obsidian_settings(root: &Path) -> ObsidianSettings {
    let file = |name: &str| -> Value {
        let bytes = ConfinedPath::new(root, &format!(".obsidian/{name}")).read(MAX_SETTINGS_BYTES);
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    };
    let text = |of: &Value, key: &str| -> Option<String> {
        let value = of.get(key)?.as_str()?.trim();
        let is_plain = !value.is_empty() && value.len() <= MAX_VALUE_BYTES && !value.chars().any(char::is_control);
        (is_plain && !value.split('/').any(|part| part == "..")).then(|| value.to_owned())
    };
    let folder = |of: &Value, key: &str| text(of, key).map(|name| name.trim_matches('/').to_owned());
    let (daily, templates, app) = (file("daily-notes.json"), file("templates.json"), file("app.json"));
    let template = folder(&daily, "template").filter(|name| !name.is_empty());
    ObsidianSettings {
        daily_folder: folder(&daily, "folder"),
        daily_format: text(&daily, "format"),
        daily_template: template.map(|name| if name.ends_with(".md") { name } else { format!("{name}.md") }),
        templates: folder(&templates, "folder"),
        attachment_folder: text(&app, "attachmentFolderPath").and_then(|place| match place.strip_prefix("./") {
            // In the note's own folder, or in a subfolder of it.
            Some(beside) => Some(beside.trim_matches('/').to_owned()),
            // Tracebook has no setting for the vault's root: the note's own folder stays.
            None if place.trim_matches('/').is_empty() => None,
            None => Some(format!("/{}", place.trim_matches('/'))),
        }),
    }
}

impl ObsidianSettings {
    /// Copies the vault's settings into Tracebook's.
    pub fn apply_to(&self, settings: &mut Settings) {
        let pairs = [
            (&self.daily_folder, &mut settings.daily_folder),
            (&self.daily_format, &mut settings.daily_format),
            (&self.daily_template, &mut settings.daily_template),
            (&self.templates, &mut settings.templates),
            (&self.attachment_folder, &mut settings.attachment_folder),
        ];
        for (said, own) in pairs {
            if let Some(said) = said {
                own.clone_from(said);
            }
        }
    }

    /// Returns whether applying them would change something.
    pub fn differs_from(&self, settings: &Settings) -> bool {
        let mut changed = settings.clone();
        self.apply_to(&mut changed);
        changed != *settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vault_says_where_its_notes_and_files_go() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(".obsidian").join(name), text);
        assert_eq!(read_obsidian_settings(folder.path()), ObsidianSettings::default());
        std::fs::create_dir(folder.path().join(".obsidian")).expect("a folder");
        write("daily-notes.json", r#"{"folder": "Daily/", "format": "YYYY/MM", "template": "T/Day"}"#)
            .expect("written");
        write("templates.json", "{not json").expect("written");
        for (place, own) in [("./", Some("")), ("./img", Some("img")), ("Files", Some("/Files")), ("/", None)] {
            write("app.json", &format!(r#"{{"attachmentFolderPath": "{place}", "x": [1]}}"#)).expect("written");
            let read = read_obsidian_settings(folder.path());
            assert_eq!(read.attachment_folder.as_deref(), own, "{place}");
            let mut settings = Settings::default();
            assert!(read.differs_from(&settings));
            read.apply_to(&mut settings);
            assert_eq!((&*settings.daily_folder, &*settings.daily_format), ("Daily", "YYYY/MM"));
            assert_eq!((&*settings.daily_template, &*settings.templates), ("T/Day.md", "Templates"));
            assert!(!read.differs_from(&settings));
        }
        let long = "x".repeat(MAX_VALUE_BYTES + 1);
        for bad in ["../out", "a\\nb", &long] {
            write("daily-notes.json", &format!(r#"{{"folder": "{bad}", "format": 7}}"#)).expect("written");
            assert_eq!(read_obsidian_settings(folder.path()).daily_folder, None, "{bad}");
        }
    }
}
