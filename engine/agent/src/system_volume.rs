//! The read-only volume *system* inside the program: agents, prompts, tools, guide and default configuration.

use crate::memory::experience::ExperienceEntry;
use crate::name_suggestions;
use crate::tool_catalog::{self, BuiltInTool};
use crate::tool_job::ToolOutcome;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use store::{MAX_RESULT_FILES, ToolFileInfo};

/// Name under which tools, window and command line reach the volume.
pub const SYSTEM_VOLUME_NAME: &str = "system";
/// Why a change to the volume is refused.
pub const SYSTEM_READ_ONLY: &str = "System is read-only. Copy it to your workspace to change it.";

/// Path of the log of experiences. It's no file: it's made of the projects' memory whenever it's read.
pub const MEMORY_LOG_PATH: &str = "memory_log.md";
/// What the log is, at its beginning.
const MEMORY_LOG_HEADING: &str = "# Memory log\n\nResults of earlier work, the newest first. This file is made of the \
                                  memory of all projects whenever it is read, and can't be changed.\n";
/// Maximum size of the log in bytes; the oldest entries are left out.
const MAX_MEMORY_LOG_BYTES: usize = 1 << 20;

/// Returns all files by path, without the log of experiences.
pub fn files() -> &'static BTreeMap<String, Cow<'static, str>> {
    static FILES: OnceLock<BTreeMap<String, Cow<'static, str>>> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut files = BTreeMap::new();
        let below = |folder: &'static str, all: &[system::EmbeddedFile]| {
            let file =
                |(name, bytes): &system::EmbeddedFile| (format!("{folder}/{name}"), String::from_utf8_lossy(bytes));
            all.iter().map(file).collect::<Vec<_>>()
        };
        files.extend(below("agents", system::BUILT_IN_AGENTS));
        files.extend(below("guide", system::GUIDE_FILES));
        files.insert("config.yaml".to_owned(), Cow::Borrowed(system::DEFAULT_CONFIG));
        files.insert("prompts/summary.md".to_owned(), Cow::Borrowed(system::SUMMARY_PROMPT));
        for tool in tool_catalog::built_in() {
            let text = serde_json::to_string_pretty(&tool).unwrap_or_default() + "\n";
            files.insert(format!("tools/{}.json", tool.name), Cow::Owned(text));
        }
        files
    })
}

/// Returns the path of a file as it's stored. Case, `-`, `_`, a missing `.md` and the ending `Agent` don't matter:
/// `agents/MemoryAnalysisAgent.md` is `agents/memory-analysis.md`.
pub fn find_path(path: &str) -> Option<String> {
    if files().contains_key(path) {
        return Some(path.to_owned());
    }
    let plain = |path: &str| {
        let lower = path.to_lowercase().replace(['-', '_', ' '], "");
        let stem = lower.strip_suffix(".md").unwrap_or(&lower);
        // The agent `system` is the seed's `SystemAgent`.
        stem.strip_suffix("agent").filter(|stem| !stem.ends_with('/')).unwrap_or(stem).to_owned()
    };
    let wanted = plain(path.get(..200).unwrap_or(path));
    if wanted == plain(MEMORY_LOG_PATH) {
        return Some(MEMORY_LOG_PATH.to_owned());
    }
    files().keys().find(|known| plain(known) == wanted).cloned()
}

/// Returns whether a call reads the log of experiences.
pub fn reads_memory_log(tool: &str, arguments: &Map<String, Value>) -> bool {
    let path = arguments.get("path").and_then(Value::as_str).and_then(find_path);
    BuiltInTool::from_name(tool) == Some(BuiltInTool::ReadFile) && path.as_deref() == Some(MEMORY_LOG_PATH)
}

/// Returns the text of the log of experiences.
pub fn memory_log(entries: &[ExperienceEntry]) -> String {
    let mut newest: Vec<&ExperienceEntry> = entries.iter().collect();
    newest.sort_by(|one, other| other.experience.timestamp.cmp(&one.experience.timestamp));
    let mut text = MEMORY_LOG_HEADING.to_owned();
    if newest.is_empty() {
        text.push_str("\nNothing is remembered yet.\n");
    }
    for (at, entry) in newest.iter().enumerate() {
        let entry = entry.experience.to_markdown();
        if text.len() + entry.len() > MAX_MEMORY_LOG_BYTES {
            text.push_str(&format!("\n{} older entries are left out.\n", newest.len() - at));
            break;
        }
        text.push('\n');
        text.push_str(&entry);
    }
    text
}

/// Returns the text of a file. The log of experiences has none of its own.
pub fn read(path: &str) -> Option<&'static str> {
    files().get(path).map(AsRef::as_ref)
}

/// Returns whether this is a folder of the volume; the empty path is the volume itself.
pub fn is_folder(path: &str) -> bool {
    path.is_empty() || files().keys().any(|known| known.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
}

/// Returns the paths and sizes in bytes of the files below a folder.
pub fn list(folder: &str) -> impl Iterator<Item = (&'static str, usize)> {
    let inside = move |path: &str| {
        folder.is_empty() || path == folder || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    };
    let all = files().iter().filter(move |(path, _)| inside(path));
    all.map(|(path, text)| (path.as_str(), text.len())).collect::<Vec<_>>().into_iter()
}

/// Returns where a copy of a file takes effect in a volume: agents among the project's, the rest under its own path.
pub fn copy_path(path: &str) -> String {
    match path.strip_prefix("agents/") {
        Some(name) => format!("{}/{name}", crate::agent_registry::AGENT_DEFINITIONS_FOLDER),
        None => path.to_owned(),
    }
}

fn file_info((path, size): (&str, usize)) -> ToolFileInfo {
    ToolFileInfo { read_only: true, ..ToolFileInfo::new(path, size as u64) }
}

/// Carries out a tool call that concerns the volume.
pub fn perform_call(tool: &str, arguments: &Map<String, Value>) -> ToolOutcome {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or("");
    let number = |key: &str| arguments.get(key).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
    let outcome = |success: bool, text: String| ToolOutcome { success, text, ..ToolOutcome::default() };
    let missing = |what: &str, path: &str| {
        let near = name_suggestions::closest_sentence(path, files().keys().map(String::as_str));
        outcome(false, format!("There is no {what}{path} in System.{near}"))
    };
    match BuiltInTool::from_name(tool) {
        Some(BuiltInTool::ReadFile) => {
            let path = text("path");
            let Some(text) = read(path) else { return missing("", path) };
            let files = vec![file_info((path, text.len()))];
            let from = number("from_line").unwrap_or(1).saturating_sub(1);
            let lines = text.split_inclusive('\n').skip(from).take(number("lines").unwrap_or(usize::MAX));
            ToolOutcome { files, ..outcome(true, lines.collect()) }
        }
        Some(BuiltInTool::ListFiles) => {
            let folder = text("directory");
            let row = |(path, size): (&str, usize)| format!("{path} ({size} bytes, read-only)\n");
            let mut rows: String = list(folder).map(row).collect();
            if folder.is_empty() {
                rows.push_str(&format!("{MEMORY_LOG_PATH} (results of earlier work, read-only)\n"));
            }
            if rows.is_empty() {
                return missing("folder ", folder);
            }
            let files = list(folder).take(MAX_RESULT_FILES).map(file_info).collect();
            ToolOutcome { files, ..outcome(true, rows) }
        }
        _ => outcome(false, SYSTEM_READ_ONLY.to_owned()), // tidy: open because all others change it
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_can_be_read() {
        for (path, size) in list("") {
            assert_eq!(read(path).map(str::len), Some(size), "{path}");
            assert_eq!(find_path(path).as_deref(), Some(path));
        }
        for path in ["agents/system.md", "tools/read_file.json", "config.yaml", "guide/index.md", "prompts/summary.md"]
        {
            assert!(read(path).is_some_and(|text| !text.is_empty()), "{path}");
        }
        assert!(is_folder("agents") && is_folder("") && !is_folder("agent") && !is_folder("config.yaml"));
        assert_eq!(list("tools").count(), tool_catalog::built_in().len());
        assert_eq!(find_path("Agents/MemoryConsolidationAgent").as_deref(), Some("agents/memory-consolidation.md"));
        assert_eq!(find_path("Memory-Log").as_deref(), Some(MEMORY_LOG_PATH));
        assert_eq!(copy_path("agents/qa.md"), "components/agents/qa.md");
    }
}
