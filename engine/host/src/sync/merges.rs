//! Reconstructs how other devices' edits changed a note, as two texts from its document, on a separate thread.

use crate::driver::Driver;
use crate::handle::Handle;
use crate::history::TextComparison;
use crate::mailbox::MailboxMessage;
use anyhow::{Context, anyhow, bail};
use engine::{Command, MergeKind, MergeRecord, Note, NotePhase, Session, parse_heads};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use store::DocId;
use text::diff::compare;

/// How long reading a note may take.
const MERGE_READ_TIMEOUT: Duration = Duration::from_secs(120);

/// A note that stays open until this is dropped.
struct HeldNote<'a> {
    handle: &'a Handle,
    note: DocId,
}

impl<'a> HeldNote<'a> {
    fn new(handle: &'a Handle, note: DocId) -> anyhow::Result<HeldNote<'a>> {
        handle.run_command(Command::HoldNote { note })?;
        let held = HeldNote { handle, note };
        let look = move |session: &Session| match session.note(note) {
            Some(Note { phase: NotePhase::Failed(why), .. }) => Some(Err(anyhow!("{why}"))),
            Some(open) => open.is_settled().then_some(Ok(())),
            None => Some(Err(anyhow!("it was closed meanwhile"))),
        };
        match handle.wait(Some(MERGE_READ_TIMEOUT), look)? {
            Some(read) => read.map(|()| held),
            None => Err(anyhow!("the note could not be read in two minutes")),
        }
    }

    fn read_text(&self) -> anyhow::Result<String> {
        let note = self.note;
        let text = self.handle.read(move |session| session.note(note).map(Note::text));
        text?.context("it was closed meanwhile")
    }
}

impl Drop for HeldNote<'_> {
    fn drop(&mut self) {
        // If the session has ended, it has no open notes.
        let _ = self.handle.run_command(Command::ReleaseNote { note: self.note });
    }
}

impl Handle {
    /// Returns the note's text before and after a merge; for two files with the same name, the current text of both.
    ///
    /// It's `None` if no text changed. Waits for documents.
    ///
    /// # Errors
    /// Returns an error if the note no longer exists, can't be read, or its history doesn't reach back to the merge.
    pub fn compare_merge(&self, merge: &MergeRecord) -> anyhow::Result<Option<TextComparison>> {
        let (old, new) = match &merge.what {
            MergeKind::Text { before, after, .. } => {
                let _held = HeldNote::new(self, merge.note)?;
                let story = self.note_history(merge.note)?.context("the note has no history")?;
                let text = |heads: &str| {
                    let heads = parse_heads(heads);
                    let known = |head: &store::ChangeHash| story.past.moments.iter().any(|moment| moment.hash == *head);
                    if heads.is_empty() || !heads.iter().all(known) {
                        bail!("the note's history does not reach back so far");
                    }
                    Ok(story.text_at(&heads)?)
                };
                (text(before)?, text(after)?)
            }
            MergeKind::Twins { other, .. } => {
                (HeldNote::new(self, merge.note)?.read_text()?, HeldNote::new(self, *other)?.read_text()?)
            }
            MergeKind::Renamed { .. } | MergeKind::Deleted | MergeKind::Kept | MergeKind::Back => return Ok(None),
        };
        let comparison = compare(&old, &new);
        Ok(Some(TextComparison { old: Arc::from(old), new: Arc::from(new), comparison }))
    }
}

impl Driver {
    /// Runs [`Handle::compare_merge`] on a separate thread, and wakes the session's thread afterwards.
    pub fn start_merge_comparison(&self, merge: MergeRecord) -> Receiver<anyhow::Result<Option<Arc<TextComparison>>>> {
        let (tell, told) = channel();
        let handle = self.handle();
        std::thread::spawn(move || {
            // If the receiver is gone, nobody needs the result.
            let _ = tell.send(handle.compare_merge(&merge).map(|compared| compared.map(Arc::new)));
            handle.inbox.send(MailboxMessage::Read(Box::new(|_| ())));
        });
        told
    }
}
