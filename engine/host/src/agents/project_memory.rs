//! Reads a project's files for agents: its memory, its agents, its plans. Also finds the memory that is relevant to a
//! goal, by words and by meaning like any other search.

use crate::fs::confined_dir::ConfinedFolder;
use crate::search::{SearchMode, SearchRequest, SearchService, query_of_message};
use agent::agent_registry::{self, AgentRegistry};
use agent::memory::experience::ExperienceEntry;
use agent::memory::{self, ExperienceMatch, ProjectMemory};
use agent::task_block::TASKS_FOLDER;
use std::collections::HashMap;
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
/// Maximum number of experiences found for a goal.
const MAX_FOUND_EXPERIENCES: usize = 40;
/// Number of experiences searched, from which those next to each other support each other.
const MAX_SEARCHED_EXPERIENCES: usize = 100;
/// Share of its neighbor's score that an experience gets in addition: an answer follows its question. Chosen on real
/// chats (BENCHMARKS.md).
const NEIGHBOR_SHARE: f64 = 0.3;
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
    let places: HashMap<(&str, &str), usize> = memory.entries.iter().map(entry_key).zip(0..).collect();
    let mut found: Vec<(usize, ExperienceMatch)> = Vec::new();
    for hit in answer.hits {
        let Some(place) = places.get(&(hit.path.as_str(), hit.heading.as_str())) else { continue };
        let (score, meaning) = (f64::from(hit.score), hit.why.meaning.map(f64::from));
        found.push((*place, ExperienceMatch { score, meaning, id: hit.heading }));
    }
    let mut near = add_neighbor_scores(&memory.entries, &found);
    near.sort_by(|a, b| b.score.total_cmp(&a.score));
    near.truncate(MAX_FOUND_EXPERIENCES);
    near
}

fn entry_key(entry: &ExperienceEntry) -> (&str, &str) {
    (&entry.path, &entry.experience.experience_id)
}

/// Adds to each found experience a share of the better score next to it in the log, if both are of one conversation.
/// The found ones come with their places among the entries, and keep their order.
fn add_neighbor_scores(entries: &[ExperienceEntry], found: &[(usize, ExperienceMatch)]) -> Vec<ExperienceMatch> {
    let scores: HashMap<usize, f64> = found.iter().map(|(place, one)| (*place, one.score)).collect();
    // A source without a number, such as “user”, is no particular conversation.
    let source = |place: usize| {
        let entry = entries.get(place)?;
        let source = entry.experience.source.as_str();
        source.contains(|c: char| c.is_ascii_digit()).then_some((entry.path.as_str(), source))
    };
    let raised = |place: usize, own: &ExperienceMatch| {
        let beside = [place.checked_sub(1), Some(place + 1)].into_iter().flatten();
        let beside = beside.filter(|other| source(place).is_some() && source(*other) == source(place));
        let best = beside.filter_map(|other| scores.get(&other)).copied().fold(0.0, f64::max);
        ExperienceMatch { score: own.score + NEIGHBOR_SHARE * best, ..own.clone() }
    };
    found.iter().map(|(place, own)| raised(*place, own)).collect()
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

/// Reads the plans of a volume and of its projects: path and text.
pub fn read_plans(root: &Path) -> Vec<(String, String)> {
    read_texts(root, &folder_in_each_project(root, TASKS_FOLDER), &[".md"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent::memory::experience::Experience;

    #[test]
    fn what_was_said_next_to_a_hit_moves_up_within_one_conversation() {
        let entry = |id: &str, source: &str| ExperienceEntry {
            path: "log.md".to_owned(),
            at: 0,
            text: String::new(),
            experience: Experience { experience_id: id.to_owned(), source: source.to_owned(), ..Experience::default() },
        };
        let entries =
            [entry("a", "chat 1"), entry("b", "chat 1"), entry("c", "chat 2"), entry("d", "u"), entry("e", "u")];
        let one =
            |place: usize, id: &str, score: f64| (place, ExperienceMatch { id: id.to_owned(), score, meaning: None });
        let found = [one(1, "b", 1.0), one(3, "d", 0.9), one(2, "c", 0.8), one(0, "a", 0.7), one(4, "e", 0.6)];
        let scores: Vec<f64> = add_neighbor_scores(&entries, &found).iter().map(|near| near.score).collect();
        let expected = [1.0 + NEIGHBOR_SHARE * 0.7, 0.9, 0.8, 0.7 + NEIGHBOR_SHARE, 0.6];
        assert!(scores.iter().zip(expected).all(|(score, wanted)| (score - wanted).abs() < 1e-9), "{scores:?}");
    }
}
