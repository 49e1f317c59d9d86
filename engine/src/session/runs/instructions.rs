//! Instruction files of a volume for a run: followed if the user trusts the volume, otherwise left out and named.

use super::agent_mentions::NOTICE_ROUTE;
use super::prompt_material::new_system_message;
use crate::effect::MentionedFile;
use crate::session::apply_context::ApplyContext;
use crate::session::state::agent_run::{RunInstructions, new_step};
use crate::session::state::runs::{RunRecord, RunsState};
use crate::session::state::volumes::VolumesState;
use agent::project_instructions::instruction_message;
use store::{DocId, StepKind};
use user_settings::settings::Settings;

impl VolumesState {
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
        let is_trusted = self.is_trusted(settings, volume.id);
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
