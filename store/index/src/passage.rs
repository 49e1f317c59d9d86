//! What is given to the index: notes and other documents, each cut into passages.

use store::DocId;

/// What a passage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PassageKind {
    /// Text outside code.
    Prose,
    /// Code of a cell or a fenced block.
    Code,
    /// What a cell printed or returned.
    Output,
    /// What an agent, its tools and the user said and did: a message of a session, a step of a run.
    Run,
    /// What was learnt of it: an experience, a trace.
    Memory,
}

impl PassageKind {
    /// All of them, each at the place of its number in the index.
    const ALL: [PassageKind; 5] =
        [PassageKind::Prose, PassageKind::Code, PassageKind::Output, PassageKind::Run, PassageKind::Memory];

    /// Its name, as `in:` takes it.
    pub fn name(self) -> &'static str {
        match self {
            PassageKind::Prose => "prose",
            PassageKind::Code => "code",
            PassageKind::Output => "output",
            PassageKind::Run => "run",
            PassageKind::Memory => "memory",
        }
    }

    /// The kind of that name.
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

/// What is found as one: a block of a note, what a cell printed, a step of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedPassage {
    /// Where in its document: `block`, `cell/output/2`, a step, a message.
    pub place: String,
    /// Kind of content: text, code, output or conversation.
    pub kind: PassageKind,
    /// The language of its code, else nothing.
    pub lang: String,
    /// The headings above it, the outermost first.
    pub heading: String,
    /// The passage's text.
    pub text: String,
    /// Whether it contains a todo.
    pub todo: bool,
    /// Whether a todo in it is done.
    pub done: bool,
    /// The notes that it links to, by [`link_name`].
    pub links: Vec<String>,
    /// Whether only a query for memory finds it.
    pub private: bool,
}

impl IndexedPassage {
    /// Makes an empty passage of this kind.
    pub fn new(kind: PassageKind) -> IndexedPassage {
        let (place, lang, heading, text) = Default::default();
        IndexedPassage { place, kind, lang, heading, text, todo: false, done: false, links: Vec::new(), private: false }
    }
}

/// The name by which links mean a note of this path: without folders and ending, in small letters.
pub fn link_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    name.strip_suffix(".md").map_or_else(|| name.clone(), str::to_owned)
}

/// A note as the index takes it, or another document with passages: a session, a run, a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteText {
    /// Document id of the note.
    pub note: DocId,
    /// The name of its volume.
    pub volume: String,
    /// The path in its volume; for sessions and runs, the name used in addresses before `#`.
    pub path: String,
    /// Title of the note.
    pub title: String,
    /// Its tags, without `#`.
    pub tags: Vec<String>,
    /// When its file was changed, milliseconds since 1970.
    pub modified: i64,
    /// Identifies this state of the note: if the index has this key, the note needn't be indexed again.
    pub key: u64,
    /// What is in it.
    pub passages: Vec<IndexedPassage>,
}
