//! Instruction files of a volume for a run: followed if the user trusts the volume, otherwise left out and named.

use super::agent_mentions::NOTICE_ROUTE;
use super::prompt_material::new_system_message;
use crate::effect::MentionedFile;
use crate::session::apply_context::ApplyContext;
use crate::session::state::Session;
use crate::session::state::agent_run::new_step;
use crate::session::state::runs::{RunRecord, RunsState};
use crate::session::state::volumes::{Volume, VolumesState};
use crate::settings::Settings;
use agent::project_instructions::{instruction_message, nearest_instruction_files};
use store::{DocId, StepKind};

/// The instruction files of a run.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct RunInstructions {
    /// Names of the files that the run follows, with the volume.
    followed: Vec<String>,
    /// Names of files that aren't text.
    unreadable: Vec<String>,
    /// Names of those that it doesn't follow, because the user doesn't trust their volume.
    untrusted: Vec<String>,
    /// Name of that volume.
    volume: String,
}

/// An instruction file that concerns a note or a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionFile {
    /// The file.
    pub file: DocId,
    /// Its volume.
    pub volume: DocId,
    /// Path in the volume.
    pub path: String,
    /// Whether agents follow it, because the user trusts the volume.
    pub is_trusted: bool,
}

impl VolumesState {
    /// Returns the volume whose instruction files concern a note or else a volume, and their paths.
    fn instruction_files(&self, volume: DocId, note: Option<DocId>) -> Option<(&Volume, Vec<String>)> {
        let located = note.and_then(|note| self.locate_file(note));
        let (volume, place) = located.map_or((volume, None), |(volume, path)| (volume, Some(path)));
        let volume = self.by_id.get(&volume).filter(|volume| volume.root.is_some())?;
        Some((volume, nearest_instruction_files(place, &|path| volume.files.contains_key(path))))
    }

    /// Returns the instruction files for a run, and which of them it follows. What the message mentions is material,
    /// and no instruction.
    pub(super) fn choose_instructions(
        &self,
        settings: &Settings,
        (volume, note): (DocId, Option<DocId>),
        mentioned: &[MentionedFile],
    ) -> (Vec<MentionedFile>, RunInstructions) {
        let mut chosen = RunInstructions::default();
        let Some((volume, paths)) = self.instruction_files(volume, note) else { return (Vec::new(), chosen) };
        let root = volume.root.clone().unwrap_or_default();
        let is_trusted = settings.trusted_volumes.contains(&volume.id);
        chosen.volume.clone_from(&volume.name);
        let mut files = Vec::new();
        for path in paths {
            let name = format!("{}/{path}", volume.name);
            let is_same = |file: &MentionedFile| file.name == name || (file.root == root && file.path == path);
            if mentioned.iter().any(is_same) {
                continue;
            }
            let is_text = volume.files.get(&path).is_some_and(|row| row.kind.is_text());
            if is_trusted && !is_text {
                chosen.unreadable.push(name);
            } else if is_trusted {
                chosen.followed.push(name.clone());
                files.push(MentionedFile { name, root: root.clone(), path });
            } else {
                chosen.untrusted.push(name);
            }
        }
        (files, chosen)
    }
}

impl RunsState {
    /// Takes a run's instructions out of what was found for it, and records them as a step and as a message for the
    /// model.
    pub(super) fn record_instructions(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        found: &mut Vec<(String, String)>,
        record: &mut RunRecord,
    ) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let RunInstructions { followed, unreadable, untrusted, volume } = std::mem::take(&mut run.instructions);
        if followed.is_empty() && unreadable.is_empty() && untrusted.is_empty() {
            return;
        }
        let (mut texts, rest): (Vec<_>, Vec<_>) =
            std::mem::take(found).into_iter().partition(|(name, _)| followed.contains(name));
        *found = rest;
        let (read, mut unread): (Vec<String>, Vec<String>) =
            followed.into_iter().partition(|name| texts.iter().any(|(known, _)| known == name));
        unread.extend(unreadable);
        let mut lines = Vec::new();
        if !read.is_empty() {
            lines.push(format!("Follows the instructions of {}.", read.join(", ")));
        }
        if !unread.is_empty() {
            lines.push(format!("Left out {}: there's no text that can be read.", unread.join(", ")));
        }
        if !untrusted.is_empty() {
            lines.push(format!(
                "Left out the instructions of {}, because you don't trust the volume {volume}. To trust it: tracebook \
                 volumes trust {volume}",
                untrusted.join(", ")
            ));
        }
        let kind = StepKind::Thinking { content: lines.join("\n"), is_streaming: None };
        let mut step = new_step(turn, run.last_step(), kind);
        step.route = Some(NOTICE_ROUTE.to_owned());
        record.steps.push(step);
        if read.is_empty() {
            return;
        }
        let head = record.messages.last().map_or(run.about.head, |message| message.id);
        let own = self.own_keys();
        texts.iter_mut().for_each(|(_, text)| own.mask_in_place(text));
        record.messages.push(new_system_message(turn, (id, head), instruction_message(&texts)));
    }
}

impl Session {
    /// Returns the instruction files that concern a note, or else a volume. The nearest comes last.
    pub fn instruction_files(&self, volume: DocId, note: Option<DocId>) -> Vec<InstructionFile> {
        let Some((volume, paths)) = self.state.files.volumes.instruction_files(volume, note) else { return Vec::new() };
        let is_trusted = self.settings().trusted_volumes.contains(&volume.id);
        let file = |path: String| {
            let file = volume.files.get(&path)?.id;
            Some(InstructionFile { file, volume: volume.id, path, is_trusted })
        };
        paths.into_iter().filter_map(file).collect()
    }
}
