//! Reconstructs what other devices' edits did to a note, as two texts from the note's document, on a separate thread.

use crate::driver::Driver;
use crate::handle::Handle;
use crate::history::TextComparison;
use crate::mailbox::MailboxMessage;
use engine::{Command, MergeKind, MergeRecord, Note, NotePhase, Session, parse_heads};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use store::DocId;
use text::diff::compare;

/// How long a note may take to be read.
const MERGE_READ_TIMEOUT: Duration = Duration::from_secs(120);

/// A note that is held open, until this goes.
struct HeldNote<'a> {
    handle: &'a Handle,
    note: DocId,
}

impl<'a> HeldNote<'a> {
    fn new(handle: &'a Handle, note: DocId) -> Result<HeldNote<'a>, String> {
        handle.run_command(Command::HoldNote { note }).map_err(|reject| reject.0)?;
        let held = HeldNote { handle, note };
        let look = move |session: &Session| match session.note(note) {
            Some(Note { phase: NotePhase::Failed(why), .. }) => Some(Err(why.clone())),
            Some(open) => open.is_settled().then_some(Ok(())),
            None => Some(Err("it was closed meanwhile".to_owned())),
        };
        match handle.wait(Some(MERGE_READ_TIMEOUT), look).map_err(|gone| gone.to_string())? {
            Some(read) => read.map(|()| held),
            None => Err("the note could not be read in two minutes".to_owned()),
        }
    }

    fn read_text(&self) -> Result<String, String> {
        let note = self.note;
        let text = self.handle.read(move |session| session.note(note).map(Note::text));
        text.map_err(|gone| gone.to_string())?.ok_or_else(|| "it was closed meanwhile".to_owned())
    }
}

impl Drop for HeldNote<'_> {
    fn drop(&mut self) {
        // If the session has ended, it holds no note.
        let _ = self.handle.run_command(Command::ReleaseNote { note: self.note });
    }
}

impl Handle {
    /// Returns the note before and after a merge; for two files with the same name, both in their current state. `None`
    /// if no text changed. Waits for documents.
    ///
    /// # Errors
    /// A sentence: the note is not here any more, or cannot be read.
    pub fn compare_merge(&self, merge: &MergeRecord) -> Result<Option<TextComparison>, String> {
        let (old, new) = match &merge.what {
            MergeKind::Text { before, after, .. } => {
                let _held = HeldNote::new(self, merge.note)?;
                let story = self.note_history(merge.note)?.ok_or("the note has no history")?;
                let text = |heads: &str| {
                    let heads = parse_heads(heads);
                    let known = |head: &store::ChangeHash| story.past.moments.iter().any(|moment| moment.hash == *head);
                    if heads.is_empty() || !heads.iter().all(known) {
                        return Err("the note's history does not reach back so far".to_owned());
                    }
                    story.text_at(&heads).map_err(|error| error.to_string())
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
    /// The same on a thread of its own, which wakes who draws.
    pub fn start_merge_comparison(&self, merge: MergeRecord) -> Receiver<Result<Option<Arc<TextComparison>>, String>> {
        let (tell, told) = channel();
        let handle = self.handle();
        std::thread::spawn(move || {
            // The receiver may be gone, and then nobody needs this.
            let _ = tell.send(handle.compare_merge(&merge).map(|compared| compared.map(Arc::new)));
            handle.inbox.send(MailboxMessage::Read(Box::new(|_| ())));
        });
        told
    }
}
