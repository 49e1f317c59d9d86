//! Commands that are tried again if others change the same note or move files at the same time.

use super::CliError;
use engine::{Command, Note};
use std::time::{Duration, Instant};
use store::{BlobHash, DocId};
use text::text_edit::TextEdit;

/// Maximum time for a move and its link updates.
pub(super) const MOVE_TIMEOUT: Duration = Duration::from_secs(600);
/// How often an edit is planned for a note that others change at the same time.
const MAX_EDIT_PLANS: usize = 100;

/// Begins a command that moves files, after those that others move at the moment. Returns how many problems there were.
pub(super) fn begin_move(handle: &host::Handle, command: &Command) -> Result<usize, CliError> {
    let begun = Instant::now();
    loop {
        handle.wait(Some(MOVE_TIMEOUT), |session| session.pending_move().is_none().then_some(()))?;
        let before = handle.read(|session| session.problems().len())?;
        let Err(refusal) = handle.run_command(command.clone()) else { return Ok(before) };
        // It's refused as well if another move was faster.
        let is_moving = handle.read(|session| session.pending_move().is_some())?;
        if !is_moving || begun.elapsed() > MOVE_TIMEOUT {
            return Err(refusal.into());
        }
    }
}

/// Makes the edits that `plan` finds for a note and its text. If others change the text before they are made, they are
/// planned again.
pub(super) fn edit_as_planned(
    handle: &host::Handle,
    note: DocId,
    plan: impl Fn(&Note, &str) -> Result<Vec<TextEdit>, CliError> + Clone + Send + 'static,
) -> Result<u64, CliError> {
    for _ in 0..MAX_EDIT_PLANS {
        let plan = plan.clone();
        let planned = export::open_note::read_loaded_note(handle, note, move |note| {
            let text = note.text();
            (BlobHash::of(text.as_bytes()), plan(note, &text))
        })?;
        let (expected, edits) = (planned.0, planned.1?);
        let refusal = match handle.run_command(Command::EditIfUnchanged { note, expected, edits }) {
            Ok(seq) => return Ok(seq),
            Err(refusal) => refusal,
        };
        let now = handle.read(move |session| session.note(note).map(|note| BlobHash::of(note.text().as_bytes())))?;
        if now.is_none_or(|now| now == expected) {
            return Err(refusal.into());
        }
    }
    Err(CliError::workspace("others change the note all the time, so nothing was changed; try again"))
}
