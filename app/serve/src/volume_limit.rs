//! The volume to which a caller is limited.
//!
//! Commands look for names in all volumes. So what such a caller names is first resolved in its own volume, commands
//! get it as exactly that, and what they find is compared once more.

use crate::command_calls::{CommandCall, text_page};
use crate::tool_arguments::{ToolArguments, ToolCallError};
use crate::tool_calls::{ServedNote, ToolCallContext, whole_note};
use crate::tool_table::ToolRow;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The arguments of tools that name a volume.
const VOLUME_ARGUMENTS: [&str; 2] = ["volume", "project"];
/// Maximum number of notes that an error names where a name fits several.
const MAX_NAMED_NOTES: usize = 5;
/// Number of bytes of a wrong name that an error repeats.
const MAX_REPEATED_BYTES: usize = 200;

fn beyond(own: &str) -> ToolCallError {
    ToolCallError(format!("this token is for the volume {own}, and reaches no other volume"))
}

fn missing_note(own: &str, word: &str) -> ToolCallError {
    let word = text_page(word, 0, MAX_REPEATED_BYTES).0;
    ToolCallError(format!("there is no note “{word}” in {own}, the only volume that this token reaches"))
}

/// Returns which of these paths end as a note is named, without `.md`, and in any case.
fn fitting_paths<'p>(paths: impl Iterator<Item = &'p str>, word: &str) -> Vec<&'p str> {
    let plain = |path: &str| path.strip_suffix(".md").unwrap_or(path).to_lowercase();
    let wanted = plain(word);
    let ending = format!("/{wanted}");
    let mut fitting: Vec<&str> = paths
        .filter(|path| {
            let path = plain(path);
            path == wanted || path.ends_with(&ending)
        })
        .collect();
    fitting.sort_unstable();
    fitting
}

impl ToolCallContext<'_> {
    /// Returns whether the caller reaches a volume with this name.
    pub(crate) fn reaches(&self, volume: &Value) -> bool {
        self.only_volume.is_none_or(|own| volume.as_str() == Some(own))
    }

    /// Returns the volume that a call may use: what it names, limited to what the caller reaches.
    pub(crate) fn reached_volume<'v>(&'v self, named: Option<&'v str>) -> Result<Option<&'v str>, ToolCallError> {
        match (self.only_volume, named) {
            (Some(own), Some(named)) if named != own => Err(beyond(own)),
            (Some(own), _) => Ok(Some(own)),
            (None, named) => Ok(named),
        }
    }

    /// Returns the arguments of a call, with the caller's volume as the one in which the tool works.
    pub(crate) fn limited_arguments<'m>(
        &self,
        row: &ToolRow,
        arguments: &'m Map<String, Value>,
    ) -> Result<Cow<'m, Map<String, Value>>, ToolCallError> {
        let Some(own) = self.only_volume else { return Ok(Cow::Borrowed(arguments)) };
        let mut limited = arguments.clone();
        for (name, ..) in row.input.iter().filter(|(name, ..)| VOLUME_ARGUMENTS.contains(name)) {
            self.reached_volume(ToolArguments(arguments).text(name)?)?;
            limited.insert((*name).to_owned(), own.into());
        }
        Ok(Cow::Owned(limited))
    }

    /// Checks that the caller's volume is on this device. Otherwise, commands would say which other volumes there are.
    pub(crate) fn ensure_volume_is_here(&self) -> Result<(), ToolCallError> {
        let Some(own) = self.only_volume else { return Ok(()) };
        match self.volume_folders()?.is_empty() {
            false => Ok(()),
            true => Err(ToolCallError(format!("the volume {own} of this token is no longer on this device"))),
        }
    }

    /// Limits a search to the volume that the caller reaches.
    pub(crate) fn limited_search(&self, call: CommandCall) -> Result<CommandCall, ToolCallError> {
        self.ensure_volume_is_here()?;
        Ok(call.option("volume", self.only_volume))
    }

    /// Returns the volumes that the caller reaches, as `ls --volumes` lists them.
    pub(crate) fn volumes(&self) -> Result<Vec<Value>, ToolCallError> {
        let all = self.perform_ok(CommandCall::json("ls").flag("volumes", true))?.value();
        let all = if let Some(Value::Array(all)) = all { all } else { Vec::new() };
        Ok(all.into_iter().filter(|volume| self.reaches(&volume["name"])).collect())
    }

    /// Returns the runs of agents that the caller reaches, newest first.
    pub(crate) fn runs(&self) -> Result<Vec<Value>, ToolCallError> {
        let mut runs = self.perform_ok(CommandCall::json("runs"))?.lines();
        if self.only_volume.is_some() {
            // A run names its volume by id.
            let volumes = self.volumes()?;
            runs.retain(|run| volumes.iter().any(|volume| run["volume"].is_string() && run["volume"] == volume["id"]));
        }
        Ok(runs)
    }

    /// Returns what agents and programs wait for, of runs and volumes that the caller reaches.
    pub(crate) fn approvals(&self) -> Result<Vec<Value>, ToolCallError> {
        let mut approvals = self.perform_ok(CommandCall::json("approvals"))?.lines();
        if self.only_volume.is_some() {
            let runs = self.runs()?;
            approvals.retain(|approval| match approval["run"].as_str() {
                Some(run) => runs.iter().any(|own| own["id"] == run),
                None => self.reaches(&approval["volume"]),
            });
        }
        Ok(approvals)
    }

    /// Returns the name under which commands know the note that a call names, and no note of another volume.
    pub(crate) fn note_word<'w>(&self, word: &'w str) -> Result<Cow<'w, str>, ToolCallError> {
        let Some(own) = self.only_volume else { return Ok(Cow::Borrowed(word)) };
        let note = self.own_note(own, word)?.ok_or_else(|| missing_note(own, word))?;
        Ok(Cow::Owned(format!("{own}:{}", note.path)))
    }

    /// Reads the note that a change is about. Returns it with the name under which commands know it.
    pub(crate) fn changed_note(&self, word: &str) -> Result<(ServedNote, String), ToolCallError> {
        let Some(own) = self.only_volume else { return Ok((self.read_note(word)?, word.to_owned())) };
        let note = self.own_note(own, word)?.ok_or_else(|| missing_note(own, word))?;
        let word = format!("{own}:{}", note.path);
        Ok((note, word))
    }

    /// Reads a note of the caller's volume, or the passage of one at a search address.
    pub(crate) fn read_own_note(&self, own: &str, word: &str) -> Result<ServedNote, ToolCallError> {
        if let Some(note) = self.own_note(own, word)? {
            return Ok(note);
        }
        let passage = match word.rsplit_once('#') {
            Some((path, place)) => self.own_passage(own, path, place)?,
            None => None,
        };
        passage.ok_or_else(|| missing_note(own, word))
    }

    /// Reads a note of the caller's volume by its path there.
    pub(crate) fn needed_own_note(&self, own: &str, path: &str) -> Result<ServedNote, ToolCallError> {
        self.exact_note(own, path)?.ok_or_else(|| missing_note(own, path))
    }

    fn own_passage(&self, own: &str, path: &str, place: &str) -> Result<Option<ServedNote>, ToolCallError> {
        let Some(note) = self.own_note(own, path)? else { return Ok(None) };
        let word = format!("{own}:{}#{place}", note.path);
        let outcome = self.perform_ok(CommandCall::json("cat").operands([&word]))?;
        // A whole note isn't the passage, but one of another volume with such a name.
        let is_passage = whole_note(&outcome).is_none();
        let passage =
            || ServedNote { text: outcome.text(), path: note.path, volume: own.to_owned(), version: String::new() };
        Ok(is_passage.then(passage))
    }

    /// Finds the note of the caller's volume that a word names: by its path, after the volume's name, or by the end of
    /// its path if that fits one note.
    fn own_note(&self, own: &str, word: &str) -> Result<Option<ServedNote>, ToolCallError> {
        let bare = word.trim_start_matches('/');
        let after = |mark: char| bare.strip_prefix(own).and_then(|rest| rest.strip_prefix(mark));
        // A folder may be called as the volume.
        for path in [after(':'), Some(bare), after('/')].into_iter().flatten() {
            if let Some(note) = self.exact_note(own, path)? {
                return Ok(Some(note));
            }
        }
        let notes = self.notes(Some(own), "")?;
        let paths = notes.iter().filter_map(|row| row["path"].as_str());
        match fitting_paths(paths, bare).as_slice() {
            [] => Ok(None),
            [path] => self.exact_note(own, path),
            many => {
                let named: Vec<&str> = many.iter().take(MAX_NAMED_NOTES).copied().collect();
                let word = text_page(word, 0, MAX_REPEATED_BYTES).0;
                Err(ToolCallError(format!("“{word}” fits several notes, name one: {}", named.join(", "))))
            }
        }
    }

    /// Reads the note of a volume that has exactly this path, with or without `.md`.
    fn exact_note(&self, own: &str, path: &str) -> Result<Option<ServedNote>, ToolCallError> {
        let outcome = self.perform(CommandCall::json("cat").operands([&format!("{own}:{path}")]));
        match outcome.code {
            0 if !outcome.is_cut => {}
            2 => return Ok(None),
            _ => return Err(ToolCallError::new(outcome.reason())),
        }
        let is_meant = |note: &ServedNote| {
            note.volume == own && (note.path == path || note.path.strip_suffix(".md") == Some(path))
        };
        Ok(whole_note(&outcome).filter(is_meant))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_calls::{CommandOutcome, WorkspaceCommands};
    use crate::tool_calls::CallNews;
    use serde_json::json;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    /// A workspace that finds the same note whatever is named: one of another volume.
    struct StrayCommands;

    impl WorkspaceCommands for StrayCommands {
        fn perform(&self, call: &CommandCall, _: &mut dyn FnMut(&str)) -> CommandOutcome {
            let output = match call.words[0].as_str() {
                "cat" => json!({"text": "theirs", "path": "Boat.md", "volume": "other", "version": "1"}),
                "ls" => {
                    json!([{"path": "Boat.md", "volume": "other", "kind": "note", "name": "other", "folder": "/o"}])
                }
                _ => json!([]),
            };
            CommandOutcome { output: output.to_string().into_bytes(), ..CommandOutcome::default() }
        }
    }

    #[test]
    fn what_a_command_finds_elsewhere_is_not_taken() {
        let (commands, cancelled) = (&StrayCommands, Arc::<AtomicBool>::default());
        let on_news = &mut |_: CallNews| {};
        let all = ToolCallContext { commands, only_volume: None, cancelled: cancelled.clone(), on_news };
        assert_eq!(all.read_note("Boat.md").expect("a note").text, "theirs");
        assert_eq!(all.note_word("Boat.md").expect("a word"), "Boat.md");
        assert_eq!((all.notes(None, "").expect("a list").len(), all.ensure_volume_is_here().is_ok()), (1, true));
        let on_news = &mut |_: CallNews| {};
        let own = ToolCallContext { commands, only_volume: Some("notes"), cancelled, on_news };
        for word in ["Boat.md", "Boat", "notes:Boat.md", "notes/Boat", "other:Boat.md", "Boat.md#1", "/Boat.md", "/"] {
            let why = own.read_note(word).expect_err("refused").0;
            assert!(why.contains(&format!("“{word}” in notes")) && !why.contains("theirs"), "{why}");
            assert!(own.note_word(word).is_err() && own.changed_note(word).is_err(), "{word}");
        }
        assert!(own.notes(None, "").expect("a list").is_empty() && own.volume_folders().expect("a list").is_empty());
        assert!(own.ensure_volume_is_here().expect_err("refused").0.contains("notes"));
        assert!(own.notes(Some("other"), "").expect_err("refused").0.contains("reaches no other"));
        assert_eq!(own.reached_volume(None).expect("a volume"), Some("notes"));
        assert_eq!(own.reached_volume(Some("notes")).expect("a volume"), Some("notes"));
        assert!(own.reached_volume(Some("Notes")).is_err() && own.reached_volume(Some("")).is_err());
    }

    #[test]
    fn the_end_of_a_path_names_a_note() {
        let paths = ["Ideas/Boat.md", "Boats.md", "Rowboat.md", "old/ideas/boat.md"];
        let fitting = |word: &str| fitting_paths(paths.into_iter(), word);
        assert_eq!(fitting("Boat"), ["Ideas/Boat.md", "old/ideas/boat.md"]);
        assert_eq!(fitting("old/ideas/BOAT.md"), ["old/ideas/boat.md"]);
        assert_eq!(fitting("boats"), ["Boats.md"]);
        assert!(fitting("").is_empty() && fitting("oat").is_empty());
    }
}
