//! The agenda: tasks of all notes, grouped into overdue, today, upcoming, and without a day.

use crate::session::Session;
use store::DocId;
use text::task::NoteTask;

pub use text::task::AgendaSlot;

/// A task and the note that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgendaEntry {
    /// Document id of the note.
    pub note: DocId,
    /// The note's path in its volume.
    pub path: String,
    /// The task, from the note's outline.
    pub task: NoteTask,
}

/// Returns the tasks of all volumes that contain all `words` (in text, path or tags), sorted by day, priority and
/// place. With `all`, completed tasks are included.
pub fn agenda_tasks(session: &Session, words: &str, all: bool) -> Vec<AgendaEntry> {
    let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
    let mut found = Vec::new();
    for volume in session.volumes() {
        for (note, outline) in volume.links.outlines() {
            let Some(path) = volume.links.path(note).filter(|_| !outline.tasks.is_empty()) else { continue };
            for task in outline.tasks.iter().filter(|task| all || !task.is_done()) {
                let fits = words.is_empty() || {
                    let text = format!("{} {path}", task.text).to_lowercase();
                    words.iter().all(|word| text.contains(word))
                };
                if fits {
                    found.push(AgendaEntry { note, path: path.to_owned(), task: task.clone() });
                }
            }
        }
    }
    found.sort_by(|one, other| {
        let key = |entry: &AgendaEntry| {
            let day = entry.task.agenda_day().map_or(i64::MAX, |day| day.0);
            (entry.task.is_done(), day, u8::MAX - entry.task.priority)
        };
        key(one).cmp(&key(other)).then_with(|| (&one.path, one.task.at).cmp(&(&other.path, other.task.at)))
    });
    found
}
