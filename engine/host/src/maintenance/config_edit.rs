//! Edits `config.yaml` in the workspace's folder for the user.
//!
//! Comments, order and style of the rest are kept, and nothing is written that couldn't be read again.

use crate::fs::atomic_write::{ReplaceOutcome, replace_file};
use crate::maintenance::configuration::{self, CONFIG_FILE};
use agent::config::{AgentConfig, ConfigLayer};
use anyhow::{anyhow, bail};
use serde_json::Value;
use std::path::Path;
use store::BlobHash;
use text::yaml_edit::{YamlStep, set_value};

/// A value of the configuration with the keys that lead to it; `None` removes the key.
pub type ConfigChange = (Vec<String>, Option<Value>);

/// Makes these changes and returns the resulting configuration. Blocks.
///
/// # Errors
/// Returns an error if the file can't be read or written, or can't be edited without rewriting it. The file stays as it
/// was.
pub fn change_config(workspace: &Path, changes: &[ConfigChange]) -> anyhow::Result<AgentConfig> {
    let path = workspace.join(CONFIG_FILE);
    let fail = |why: &dyn std::fmt::Display| anyhow!("can't change {}: {why}; edit it by hand", path.display());
    let old = match std::fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(fail(&error)),
    };
    let mut text = old.clone().unwrap_or_default();
    for (names, value) in changes {
        let steps: Vec<YamlStep> = names.iter().map(|name| YamlStep::from(name.as_str())).collect();
        text = set_value(&text, &steps, value.as_ref()).map_err(|why| fail(&why))?;
    }
    let layer = ConfigLayer::parse(&path.display().to_string(), &text)?;
    let config = configuration::load_config_with(workspace, layer)?;
    if old.as_deref() != Some(text.as_str()) {
        let expected = old.map(|old| BlobHash::of(old.as_bytes()));
        match replace_file(&path, expected, text.as_bytes())? {
            ReplaceOutcome::Done { .. } => {}
            ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone => {
                bail!("another program has just changed {}; try again", path.display());
            }
        }
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn change(names: &[&str], value: Value) -> ConfigChange {
        (names.iter().map(|name| (*name).to_owned()).collect(), Some(value))
    }

    #[test]
    fn a_value_is_set_and_comments_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = change_config(folder.path(), &[change(&["memory", "place"], json!("folder"))]).expect("written");
        assert_eq!(config.memory.place, Some(agent::memory::place::MemoryPlace::Folder));
        let path = folder.path().join(CONFIG_FILE);
        let text = "# mine\nbudget:\n  month: 5 # dollars\nmemory:\n  # keep\n  learn: true\n";
        std::fs::write(&path, text).expect("written");
        let changes = [change(&["memory", "learn"], json!(false)), change(&["llm", "prefer_local"], json!(false))];
        let config = change_config(folder.path(), &changes).expect("written");
        assert!(!config.memory.learn && !config.llm.prefer_local && config.budget.month == Some(5.0));
        let new = std::fs::read_to_string(&path).expect("there");
        assert!(new.starts_with("# mine\nbudget:\n  month: 5 # dollars\nmemory:\n  # keep\n  learn: false\n"), "{new}");
    }

    #[test]
    fn what_could_not_be_read_again_is_not_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(CONFIG_FILE);
        for (text, names) in [("budget: [\n", ["memory", "learn"]), ("memory: {}\n", ["memory", "unknown"])] {
            std::fs::write(&path, text).expect("written");
            change_config(folder.path(), &[change(&names, json!(true))]).expect_err("refused");
            assert_eq!(std::fs::read_to_string(&path).expect("there"), text);
        }
    }
}
