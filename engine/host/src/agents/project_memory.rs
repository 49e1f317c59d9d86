//! Reads a project's files for agents: its memory, its agents, its plans. Also finds the memory that is relevant to a
//! goal, by words and by meaning like any other search.

use crate::fs::confined_dir::ConfinedFolder;
use crate::search::{SearchMode, SearchRequest, SearchService};
use agent::agent_registry::{self, AgentRegistry, AgentVolume};
use agent::memory::{self, ExperienceMatch, ProjectMemory};
use agent::secrets::query_of_message;
use agent::task_block::TASKS_FOLDER;
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// Maximum number of files read from a folder.
const MAX_MEMORY_FILES: usize = 1_000;
/// Maximum size of a file in bytes.
const MAX_MEMORY_FILE_BYTES: u64 = 1 << 20;
/// Maximum total size in bytes.
const MAX_MEMORY_BYTES: usize = 16 << 20;

/// Maximum number of a goal's characters used as a query.
const MAX_GOAL_CHARS: usize = 400;
/// Maximum number of experiences found for a goal, and of those searched: each also counts for those next to it.
const MAX_FOUND_EXPERIENCES: usize = 40;
const MAX_SEARCHED_EXPERIENCES: usize = 100;
/// Time limit for the search; without a result, only words decide what is relevant to the goal.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads the memory folders in a volume's folder, and searches their experiences for a goal. Blocks, so don't call it
/// on the UI thread.
pub fn recall_project_memory(search: &SearchService, root: &Path, folders: &[String], goal: &str) -> ProjectMemory {
    let mut memory = read_project_memory(root, folders);
    if !memory.entries.is_empty() {
        memory.near = nearest_experiences(search, &memory, goal, SearchMode::Both);
    }
    memory
}

/// Returns the experiences that a search finds for a goal, best first. Blocks.
pub fn nearest_experiences(
    search: &SearchService,
    memory: &ProjectMemory,
    goal: &str,
    mode: SearchMode,
) -> Vec<ExperienceMatch> {
    let plain = query_of_message(goal, MAX_GOAL_CHARS);
    let text = format!("in:memory path:\"{}\" {plain}", memory::experience::EXPERIENCE_LOG_FILE);
    let asked = search.ask(
        SearchRequest { text, limit: MAX_SEARCHED_EXPERIENCES, per_passage: true, mode, ..SearchRequest::default() },
        || {},
    );
    let Ok(Ok(answer)) = asked.recv_timeout(SEARCH_TIMEOUT) else { return Vec::new() };
    let known: HashSet<(&str, &str)> =
        memory.entries.iter().map(|entry| (entry.path.as_str(), entry.experience.experience_id.as_str())).collect();
    let hits = answer.hits.into_iter().filter(|hit| known.contains(&(hit.path.as_str(), hit.heading.as_str())));
    let near = hits.take(MAX_FOUND_EXPERIENCES).map(|hit| ExperienceMatch {
        score: f64::from(hit.score),
        meaning: hit.why.meaning.map(f64::from),
        id: hit.heading,
    });
    near.collect()
}

/// Returns the files in these folders with these extensions: path and text. Missing, hidden and non-text files and
/// links are skipped.
fn read_texts(root: &Path, folders: &[String], endings: &[&str]) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    let mut whole = 0;
    let Ok(root) = ConfinedFolder::open_root(root) else { return files };
    for inside in folders {
        let Ok(folder) = root.open_folder(inside) else { continue };
        let Ok(entries) = std::fs::read_dir(folder.stable_path()) else { continue };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| endings.iter().any(|ending| name.ends_with(ending)) && !name.starts_with('.'));
        names.sort();
        for name in names.into_iter().take(MAX_MEMORY_FILES) {
            let path = format!("{inside}/{name}");
            let is_link = folder.metadata(name.as_ref()).is_ok_and(|meta| meta.is_symlink());
            let Some((file, _)) = folder.open_regular_file(&name).ok().filter(|_| !is_link) else { continue };
            let mut text = String::new();
            let read = file.take(MAX_MEMORY_FILE_BYTES + 1).read_to_string(&mut text);
            if read.is_err() || text.len() as u64 > MAX_MEMORY_FILE_BYTES {
                continue;
            }
            whole += text.len();
            if whole <= MAX_MEMORY_BYTES {
                files.push((path, text));
            }
        }
    }
    files
}

/// Reads these memory folders in a volume's folder.
pub fn read_project_memory(root: &Path, folders: &[String]) -> ProjectMemory {
    let inside = |folder: &String| {
        let places = memory::MEMORY_SUBFOLDERS.iter();
        places
            .map(|place| if place.is_empty() { folder.clone() } else { format!("{folder}/{place}") })
            .collect::<Vec<_>>()
    };
    ProjectMemory::from_files(read_texts(root, &folders.iter().flat_map(inside).collect::<Vec<_>>(), &[".md"]))
}

/// Reads the files that the last runs of traces wrote, below the folder of the project's volume, so that edits of them
/// can be learned from. Blocks.
pub fn read_written_files(root: &Path, memory: &mut ProjectMemory) {
    let paths = memory.written_paths();
    let Some(root) = ConfinedFolder::open_root(root).ok().filter(|_| !paths.is_empty()) else { return };
    let mut whole = 0;
    for path in paths {
        let Ok((file, _)) = root.open_regular_file(&path) else { continue };
        let mut text = String::new();
        let read = file.take(MAX_MEMORY_FILE_BYTES + 1).read_to_string(&mut text);
        whole += text.len();
        if read.is_ok() && text.len() as u64 <= MAX_MEMORY_FILE_BYTES && whole <= MAX_MEMORY_BYTES {
            memory.written.insert(path, text);
        }
    }
}

/// Returns the names of the projects inside a volume's folder, sorted.
fn list_projects(root: &Path) -> Vec<String> {
    let folder = ConfinedFolder::open_root(root).and_then(|root| root.open_folder(memory::PROJECTS_FOLDER));
    let Some(entries) = folder.ok().and_then(|folder| std::fs::read_dir(folder.stable_path()).ok()) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names.truncate(MAX_MEMORY_FILES);
    names
}

/// Returns a folder of a volume, and the folders with the same name in its projects.
fn folder_in_each_project(root: &Path, folder: &str) -> Vec<String> {
    let mut found: Vec<String> =
        list_projects(root).into_iter().map(|name| format!("{}/{name}/{folder}", memory::PROJECTS_FOLDER)).collect();
    let held = ConfinedFolder::open_root(root);
    found.retain(|folder| held.as_ref().is_ok_and(|root| root.open_folder(folder).is_ok()));
    found.insert(0, folder.to_owned());
    found
}

/// Returns the memory folders of a volume: its own, and those of its projects.
pub fn memory_folders(root: &Path) -> Vec<String> {
    folder_in_each_project(root, memory::MEMORY_FOLDER)
}

/// Reads the agents of a volume and of its projects.
pub fn read_agent_registry(root: &Path) -> AgentRegistry {
    let mut folders = folder_in_each_project(root, agent_registry::AGENT_DEFINITIONS_FOLDER);
    folders.extend(folder_in_each_project(root, agent_registry::PYTHON_AGENTS_FOLDER));
    AgentRegistry::read(read_texts(root, &folders, &[".md", ".py"]))
}

/// Reads the agents of a volume and its projects, and those of other volumes, which have names of their own.
pub fn read_callable_agents(root: &Path, elsewhere: &[AgentVolume]) -> AgentRegistry {
    let mut crew = read_agent_registry(root);
    for other in elsewhere {
        crew.add_volume(&other.name, other.is_trusted, read_agent_registry(&other.root));
    }
    crew
}

/// Reads the plans of a volume and of its projects: path and text.
pub fn read_plans(root: &Path) -> Vec<(String, String)> {
    read_texts(root, &folder_in_each_project(root, TASKS_FOLDER), &[".md"])
}
