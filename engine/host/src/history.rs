//! A note's history on a separate thread.
//!
//! The thread has a copy of the document, reconstructs and compares versions, and never blocks drawing. If several
//! questions are waiting, only the last is answered.

mod committed_versions;

pub use committed_versions::{CommittedVersion, committed_versions, text_in_commit};

use crate::handle::Handle;
use crate::mailbox::{DiskJob, MailboxMessage};
use anyhow::anyhow;
use engine::{Command, NotePhase, Session};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use store::{ActorId, DocId, NoteDoc};
use text::diff::{TextDiff, compare};
use text::history::{AuthoredSpan, NoteHistory};

/// How long loading a note's document may take.
const HISTORY_LOAD_TIMEOUT: Duration = Duration::from_secs(120);

/// The newer side of a comparison.
#[derive(Clone, Debug)]
pub enum ComparisonSide {
    /// The current text.
    Current(Arc<str>),
    /// An older version.
    Version(VersionText),
}

/// A version whose text is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionText {
    /// The note after this many changes.
    Change(usize),
    /// The note in the commit of Git with this hash.
    Commit(String),
}

/// A request to the history thread.
#[derive(Clone, Debug)]
pub enum HistoryQuestion {
    /// Read the document again, because it has changed.
    Refresh,
    /// Compare a version with another one.
    Compare {
        /// The older version.
        then: VersionText,
        /// The version to compare with.
        with: ComparisonSide,
    },
    /// Attribute the text after this many changes to its authors.
    Authorship(usize),
}

/// Two texts and the differences between them.
#[derive(Debug)]
pub struct TextComparison {
    /// Text of the older version.
    pub old: Arc<str>,
    /// Text of the newer version.
    pub new: Arc<str>,
    /// Differences between the two.
    pub comparison: TextDiff,
}

/// A text with the author of each part.
#[derive(Debug)]
pub struct AuthoredText {
    /// Text of the version.
    pub text: Arc<str>,
    /// Spans of the text by author, in order.
    pub spans: Vec<AuthoredSpan>,
}

/// The answer to a [`HistoryQuestion`].
#[derive(Debug)]
pub enum HistoryAnswer {
    /// The history; `None` if the note has no document, because it was never edited.
    History(Option<Arc<NoteHistory>>),
    /// The answer to [`HistoryQuestion::Compare`].
    Compared(Arc<TextComparison>),
    /// The answer to [`HistoryQuestion::Authorship`].
    Authorship(Arc<AuthoredText>),
    /// The history can't be read, with a message for the user.
    Failed(String),
}

/// A connection to the history thread, which ends when this is dropped.
#[derive(Debug)]
pub struct HistoryThread {
    questions: Sender<HistoryQuestion>,
    answers: Receiver<HistoryAnswer>,
}

impl HistoryThread {
    /// Starts a thread for a note's history. Its first answer is [`HistoryAnswer::History`].
    pub(crate) fn start(handle: Handle, note: DocId) -> HistoryThread {
        let (asks, questions) = channel();
        let (tell, told) = channel();
        std::thread::spawn(move || run_history_thread(&handle, note, &questions, &tell));
        HistoryThread { questions: asks, answers: told }
    }

    /// Sends a question to the thread.
    pub fn ask(&self, ask: HistoryQuestion) {
        // The receiver ends only with the program or the connection.
        let _ = self.questions.send(ask);
    }

    /// Returns the next answer, if one has arrived.
    pub fn try_answer(&self) -> Option<HistoryAnswer> {
        self.answers.try_recv().ok()
    }
}

impl Handle {
    /// Returns the history of an open note; `None` if it was never edited. Waits for its document.
    ///
    /// # Errors
    /// Returns an error if the document can't be read within two minutes, or the note or the program is closed.
    pub fn note_history(&self, note: DocId) -> anyhow::Result<Option<NoteHistory>> {
        // Save first, so that the latest keystrokes are part of the history.
        let _ = self.run_command(Command::Save);
        let found = self.wait(Some(HISTORY_LOAD_TIMEOUT), move |session| copy_document(session, note))?;
        match found {
            None => Err(anyhow!("the note's document could not be read in two minutes")),
            Some(Err(why)) => Err(why),
            Some(Ok(None)) => Ok(None),
            Some(Ok(Some(doc))) => Ok(Some(NoteHistory::of(*doc, self.device_actors()?))),
        }
    }

    /// Returns all actor ids under which this device ever wrote.
    ///
    /// # Errors
    /// Returns an error if the disk fails or the program is closing.
    pub fn device_actors(&self) -> anyhow::Result<BTreeSet<ActorId>> {
        let (answer, wait) = channel();
        self.inbox.send(MailboxMessage::Job(Box::new(DiskJob::Actors { answer })));
        Ok(wait.recv().map_err(|_| crate::handle::OwnerGone)??)
    }
}

/// Returns a copy of a note's document; `None` while it loads. The inner value is `None` if the note has no document.
fn copy_document(session: &Session, note: DocId) -> Option<anyhow::Result<Option<Box<NoteDoc>>>> {
    let Some(note) = session.note(note) else { return Some(Err(anyhow!("the note was closed meanwhile"))) };
    match &note.phase {
        NotePhase::Failed(why) => return Some(Err(anyhow!("{why}"))),
        NotePhase::Reading => return None,
        NotePhase::Ready => {}
    }
    if let Some(why) = note.read_only() {
        return Some(Err(anyhow!("{why}")));
    }
    (!note.is_document_loading()).then(|| Ok(note.document().map(|doc| Box::new(doc.clone()))))
}

fn run_history_thread(
    handle: &Handle,
    note: DocId,
    questions: &Receiver<HistoryQuestion>,
    tell: &Sender<HistoryAnswer>,
) {
    let mut story: Option<Arc<NoteHistory>> = None;
    let mut file: Option<(PathBuf, String)> = None;
    let mut next = Some(HistoryQuestion::Refresh);
    loop {
        let Some(ask) = next.take().or_else(|| questions.recv().ok()) else { return };
        let (mut again, mut last) = (matches!(ask, HistoryQuestion::Refresh), ask);
        while let Ok(ask) = questions.try_recv() {
            again |= matches!(ask, HistoryQuestion::Refresh);
            last = ask;
        }
        let mut answers = Vec::new();
        if again {
            match handle.note_history(note) {
                Ok(mut found) => {
                    file = handle.read(move |session| note_file(session, note)).ok().flatten();
                    if let (Some(found), Some((root, path))) = (&mut found, &file) {
                        let commits = committed_versions(root, path, Some(found));
                        found.add_commits(&commits.into_iter().map(Into::into).collect::<Vec<_>>());
                    }
                    story = found.map(Arc::new);
                    answers.push(HistoryAnswer::History(story.clone()));
                }
                Err(why) => answers.push(HistoryAnswer::Failed(why.to_string())),
            }
        }
        if let Some(story) = &story {
            answers.extend(answer_question(story, file.as_ref(), last));
        }
        for told in answers {
            if tell.send(told).is_err() {
                return; // nobody looks at it any more
            }
        }
        handle.inbox.send(MailboxMessage::Read(Box::new(|_| ()))); // wakes who draws
    }
}

/// Returns the folder of a note's volume and the note's path in it.
fn note_file(session: &Session, note: DocId) -> Option<(PathBuf, String)> {
    let (volume, path) = session.locate_file(note)?;
    Some((session.volume(volume)?.root.clone()?, path.to_owned()))
}

fn answer_question(
    story: &NoteHistory,
    file: Option<&(PathBuf, String)>,
    ask: HistoryQuestion,
) -> Option<HistoryAnswer> {
    let text_of = |version: VersionText| match (version, file) {
        (VersionText::Change(count), _) => Ok(story.text_after(count)?),
        (VersionText::Commit(id), Some((root, path))) => {
            text_in_commit(Some(root), path, Some(story), &id).map(|(_, text)| text)
        }
        (VersionText::Commit(id), None) => text_in_commit(None, "", Some(story), &id).map(|(_, text)| text),
    };
    let told = match ask {
        HistoryQuestion::Refresh => return None,
        HistoryQuestion::Compare { then, with } => text_of(then).and_then(|old| {
            let new = match with {
                ComparisonSide::Current(text) => text,
                ComparisonSide::Version(version) => Arc::from(text_of(version)?),
            };
            let comparison = compare(&old, &new);
            Ok(HistoryAnswer::Compared(Arc::new(TextComparison { old: Arc::from(old), new, comparison })))
        }),
        HistoryQuestion::Authorship(count) => text_of(VersionText::Change(count)).and_then(|text| {
            Ok(HistoryAnswer::Authorship(Arc::new(AuthoredText {
                text: Arc::from(text),
                spans: story.authored_spans(count)?,
            })))
        }),
    };
    Some(told.unwrap_or_else(|error| HistoryAnswer::Failed(error.to_string())))
}
