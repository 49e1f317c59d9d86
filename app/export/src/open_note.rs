//! Keeps notes open while a command reads them, and waits until everything is saved.

use crate::error::ExportError;
use engine::{Command, Note, NotePhase, Session};
use std::time::Duration;
use store::DocId;

/// Maximum time to read a note.
const NOTE_READ_TIMEOUT: Duration = Duration::from_secs(120);

/// Keeps a note open while a command works with it.
pub struct OpenNoteGuard<'a> {
    handle: &'a host::Handle,
    /// The note, which stays open until this is dropped.
    pub note: DocId,
}

impl Drop for OpenNoteGuard<'_> {
    fn drop(&mut self) {
        // If the session has ended, the note is no longer held.
        let _ = self.handle.run_command(Command::ReleaseNote { note: self.note });
    }
}

/// Opens a note and waits until it can be read.
pub fn hold_note<'a>(handle: &'a host::Handle, note: DocId) -> Result<OpenNoteGuard<'a>, ExportError> {
    handle.run_command(Command::HoldNote { note })?;
    let held = OpenNoteGuard { handle, note };
    let look = move |session: &Session| match session.note(note) {
        Some(open) => match &open.phase {
            NotePhase::Failed(why) => Some(Err(why.clone())),
            NotePhase::Ready | NotePhase::Reading => open.is_settled().then_some(Ok(())),
        },
        None => Some(Err("it was closed meanwhile".to_owned())),
    };
    match handle.wait(Some(NOTE_READ_TIMEOUT), look)? {
        Some(Ok(())) => Ok(held),
        Some(Err(why)) => Err(ExportError::workspace(format!("the note cannot be read: {why}"))),
        None => Err(ExportError::workspace("the note could not be read in two minutes")),
    }
}

/// Waits until the note's documents are loaded, then calls `read`.
pub fn read_loaded_note<R: Send + 'static>(
    handle: &host::Handle,
    note: DocId,
    read: impl Fn(&Note) -> R + Send + 'static,
) -> Result<R, ExportError> {
    let look = move |session: &Session| {
        let note = session.note(note)?;
        (!note.is_document_loading()).then(|| read(note))
    };
    handle
        .wait(Some(NOTE_READ_TIMEOUT), look)?
        .ok_or_else(|| ExportError::workspace("the note's document could not be read in two minutes"))
}

/// Waits until everything is saved in the database and in files.
pub fn wait_until_saved(handle: &host::Handle) -> Result<(), ExportError> {
    handle.wait_until_saved().map_err(|error| match error {
        host::SaveError::Command(reject) => reject.into(),
        error => ExportError::workspace(error), // tidy: open because only a refusal is the request's fault
    })
}
