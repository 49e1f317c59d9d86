//! Reads the plugins folder: tool files in JSON, and Python files with `@llm_tool`. Nothing of them is run here, and
//! each file that gives no tool is reported.

use super::{MAX_PLUGIN_BYTES, MAX_PLUGIN_FILES};
use crate::kernel::note_environment::LOCK_ENDING;
use crate::tools::tool_environment::PLUGINS_FOLDER;
use agent::{python_plugin, tool_file};
use std::path::{Path, PathBuf};
use store::UserTool;

/// Reads the tools in the plugins folder. Returns them, and what is wrong with files, for the user.
pub(super) fn read_plugin_tools(folder: &Path) -> (Vec<UserTool>, Vec<String>) {
    let (mut found, mut problems): (Vec<UserTool>, Vec<String>) = (Vec::new(), Vec::new());
    let Ok(entries) = std::fs::read_dir(folder) else { return (found, problems) }; // there are no plugins
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    if files.len() > MAX_PLUGIN_FILES {
        problems.push(format!("{PLUGINS_FOLDER} has {} files; the first {MAX_PLUGIN_FILES} are read", files.len()));
        files.truncate(MAX_PLUGIN_FILES);
    }
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Hidden files, locks of packages and Python's own folder are no plugins and aren't meant to be.
        if name.starts_with('.') || name == "__pycache__" || name.ends_with(LOCK_ENDING) {
            continue;
        }
        let shown = format!("{PLUGINS_FOLDER}/{name}");
        let (tools, wrong) = read_plugin(&file, &shown);
        problems.extend(wrong);
        for tool in tools {
            if found.iter().any(|known| known.name == tool.name) {
                problems.push(format!("{shown}: another plugin has a tool {} already", tool.name));
            } else {
                found.push(tool);
            }
        }
    }
    (found, problems)
}

/// Reads a file. Problems begin with its name and, where it's known, the line.
fn read_plugin(file: &Path, shown: &str) -> (Vec<UserTool>, Vec<String>) {
    let one = |what: String| (Vec::new(), vec![what]);
    let kind = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if !matches!(kind, "json" | "py") || !file.is_file() {
        return one(format!("{shown} is ignored: plugins are .py and .json files"));
    }
    let Some(bytes) = crate::fs::copy::read(file, MAX_PLUGIN_BYTES) else {
        return one(format!("{shown} can't be read, or is larger than {} MB", MAX_PLUGIN_BYTES >> 20));
    };
    let Ok(text) = String::from_utf8(bytes) else { return one(format!("{shown} isn't UTF-8 text")) };
    if kind == "py" {
        let (tools, wrong) = python_plugin::read_python_plugin(&text);
        return (
            tools,
            wrong.into_iter().map(|wrong| format!("{shown}, line {}: {}", wrong.line, wrong.what)).collect(),
        );
    }
    let tools = match tool_file::parse_tool_file(&text) {
        Ok(tools) => tools,
        Err(why) => return one(format!("{shown} isn't a tool file: {why}")),
    };
    let (mut good, mut wrong) = (Vec::new(), Vec::new());
    for tool in tools {
        match tool_file::check_tool(&tool) {
            Ok(()) => good.push(tool),
            Err(why) => wrong.push(format!("{shown}: {why}")),
        }
    }
    (good, wrong)
}
