//! The index's input: notes and other documents, each split into passages.

use store::DocId;

/// The kind of a passage's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PassageKind {
    /// Text outside code.
    Prose,
    /// Code of a cell or a fenced block.
    Code,
    /// What a cell printed or returned.
    Output,
    /// A message of a session or a step of a run: what an agent, its tools or the user said and did.
    Run,
    /// What was learned from a run: an experience or a trace.
    Memory,
}

impl PassageKind {
    /// All kinds. Each one's position is its number in the index.
    const ALL: [PassageKind; 5] =
        [PassageKind::Prose, PassageKind::Code, PassageKind::Output, PassageKind::Run, PassageKind::Memory];

    /// Returns the kind's name, as used by the `in:` filter.
    pub fn name(self) -> &'static str {
        match self {
            PassageKind::Prose => "prose",
            PassageKind::Code => "code",
            PassageKind::Output => "output",
            PassageKind::Run => "run",
            PassageKind::Memory => "memory",
        }
    }

    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<PassageKind> {
        PassageKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(crate) fn to_index_number(self) -> u64 {
        self as u64
    }

    pub(crate) fn from_index_number(number: u64) -> PassageKind {
        usize::try_from(number)
            .ok()
            .and_then(|number| PassageKind::ALL.get(number).copied())
            .unwrap_or(PassageKind::Prose)
    }
}

/// The unit that a search finds: a block of a note, a cell's output, or a step of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedPassage {
    /// Place in its document: `block`, `cell/output/2`, a step, or a message.
    pub place: String,
    /// Kind of content: text, code, output or conversation.
    pub kind: PassageKind,
    /// The language of its code; empty if it isn't code.
    pub lang: String,
    /// The headings above it, outermost first.
    pub heading: String,
    /// The passage's text.
    pub text: String,
    /// Whether it contains a todo.
    pub todo: bool,
    /// Whether a todo in it is done.
    pub done: bool,
    /// The notes that it links to, in the form of [`link_name`].
    pub links: Vec<String>,
    /// Other names of its note, if the passage is the note's first.
    pub names: Vec<String>,
    /// Whether only a query for memory finds it.
    pub private: bool,
    /// The speaker, if it's a turn of a conversation.
    pub speaker: String,
    /// The session that it's a turn of; empty if it's no turn. The turns of a session follow each other.
    pub session: String,
    /// The day on which it was said or that the note is of, in milliseconds since 1970.
    pub said: Option<i64>,
}

impl IndexedPassage {
    /// Creates an empty passage of this kind.
    pub fn new(kind: PassageKind) -> IndexedPassage {
        IndexedPassage {
            place: String::new(),
            kind,
            lang: String::new(),
            heading: String::new(),
            text: String::new(),
            todo: false,
            done: false,
            links: Vec::new(),
            names: Vec::new(),
            private: false,
            speaker: String::new(),
            session: String::new(),
            said: None,
        }
    }
}

/// Separates the headings above a passage.
const HEADING_SEPARATOR: &str = " › ";

impl IndexedPassage {
    /// Returns the heading directly above the passage; `None` if there's none, or if it's no text of a note.
    pub(crate) fn own_heading(&self) -> Option<&str> {
        let is_of_note = matches!(self.kind, PassageKind::Prose | PassageKind::Code);
        let heading = self.heading.rsplit(HEADING_SEPARATOR).next().map(str::trim);
        heading.filter(|heading| is_of_note && !heading.is_empty())
    }

    /// Returns the headings inside the passage: short sections are one passage together.
    pub(crate) fn inner_headings(&self) -> impl Iterator<Item = &str> {
        let lines = self.text.lines().filter(|_| self.kind == PassageKind::Prose);
        lines.filter(|line| line.starts_with('#')).map(|line| line.trim_matches('#').trim())
    }
}

/// Returns the name that links use for a note with this path: without folders and extension, in lower case.
pub fn link_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    name.strip_suffix(".md").map_or_else(|| name.clone(), str::to_owned)
}

/// A document to index: a note, or a session, a run or a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteText {
    /// Document id of the note.
    pub note: DocId,
    /// Name of its volume.
    pub volume: String,
    /// Path in its volume. For sessions and runs, the name used in addresses before `#`.
    pub path: String,
    /// Title of the note.
    pub title: String,
    /// Its tags, without `#`.
    pub tags: Vec<String>,
    /// When its file was last changed, in milliseconds since 1970.
    pub modified: i64,
    /// Identifies this state of the note: if the index has this key, the note needn't be indexed again.
    pub key: u64,
    /// The passages of the document.
    pub passages: Vec<IndexedPassage>,
}
