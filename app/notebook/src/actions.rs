//! What views ask for: plain data, carried out by the window's dispatch.

use agent_ui::panel_action::PanelAction;
use editor::note_editor::NoteEdit;
use engine::commands::CommandId;
use engine::{ColorTheme, Command};
use export::ExportScope;
use host::search::NoteHit;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::ops::Range;
use store::{BlockId, DocId, StepId};
use text::find_query::FindQuery;
use text::text_edit::{self, TextEdit};

/// What notes shall become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportCommand {
    /// Web pages.
    Html,
    /// One PDF of them all.
    Pdf,
    /// A folder of Markdown.
    Folder,
    /// Shows what was written last.
    Open,
    /// The open note, on paper.
    Print,
}

/// What a menu does with the clipboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClipboardCommand {
    /// Moves the selection to it.
    Cut,
    /// Copies the selection to it.
    Copy,
    /// Inserts what it holds.
    Paste,
    /// Inserts its text without formatting.
    PastePlain,
}

/// What a view asks for.
#[derive(Debug)]
pub enum PageAction {
    /// A command for the session; a rejection becomes a toast.
    Do(Command),
    /// A command of the table.
    Run(CommandId),
    /// A command of the table that concerns this cell.
    InCell(BlockId, CommandId),
    /// The clipboard and what is selected in the note.
    Clipboard(ClipboardCommand),
    /// An edit of the open note.
    Edit(NoteEdit),
    /// Show this note.
    Open(DocId),
    /// Show this note from a byte on.
    OpenAt(DocId, usize),
    /// Ask for a file's new path.
    Rename(DocId),
    /// Give a new note the typed name.
    NameNote {
        /// The new note.
        note: DocId,
        /// The name; empty if nothing was typed.
        name: String,
        /// Whether the caret goes into the note's text.
        writes: bool,
    },
    /// Put a file into the trash.
    Delete(DocId),
    /// Do something with an attachment.
    File(DocId, FileAction),
    /// Show it in a tab of its own.
    OpenBeside(DocId),
    /// A menu of the tree asks for this.
    Tree(TreeAction),
    /// The caret goes to this pane.
    Here(PaneId),
    /// Close this tab.
    CloseTab(PaneId),
    /// Follow a link in the open note.
    Follow(String),
    /// The same in a tab of its own, where it leads to a note.
    FollowBeside(String),
    /// Copy a picture that the open note shows under this name.
    CopyPicture(String),
    /// Save it under another name.
    SavePicture(String),
    /// Add a word to the user's dictionary.
    Learn(String),
    /// Move rows of the open note.
    Move {
        /// What moves them.
        edits: Vec<TextEdit>,
        /// The byte at which the caret is then, if it was in them.
        caret: Option<usize>,
    },
    /// Rows of another note go into this one; the caret goes there.
    Carry {
        /// The rows where they are now.
        from: Box<RowDrag>,
        /// The note that gets them.
        to: DocId,
        /// What inserts them there.
        edit: TextEdit,
        /// The byte at which the caret is then.
        caret: usize,
    },
    /// Put the caret at a byte of the open note.
    Place(usize),
    /// Say something.
    Say(String),
    /// Something is done with what is remembered.
    Memory(Box<agent_ui::memory::MemoryAction>),
    /// Show what the agent asks.
    ShowAgent,
    /// Show a step of a run on its timeline.
    ShowStep(DocId, StepId),
    /// Show what this run and the others of its session changed.
    ShowChanges(DocId),
    /// Something is done in a collection.
    Collection(DocId, CollectionEdit),
    /// Show what a search has found.
    Hit(PendingJump),
    /// Search for this in the panel at the left.
    SearchFor(String),
    /// Replace matches of `query` in several notes.
    Replace {
        /// What was looked for, which makes the new texts.
        query: FindQuery,
        /// The text in place of a match.
        with: String,
        /// The matches that are replaced.
        notes: Vec<NoteReplacement>,
    },
    /// The caret goes to a line of a cell.
    ToLine {
        /// Number of the cell in the note, from 1.
        cell: usize,
        /// Number of the line in the cell, from 1.
        line: usize,
    },
    /// Save what a cell printed as a file.
    SaveOutput(BlockId),
    /// Use this theme from now on.
    SetTheme(ColorTheme),
    /// Offer to set up a full Python that has this module, which a cell misses.
    SetUpPython {
        /// The cell.
        cell: BlockId,
        /// The module that it imports.
        module: String,
    },
    /// Show the packages of the note, with one that this cell misses.
    ShowPackages {
        /// The cell that failed.
        cell: BlockId,
        /// The package, as the index calls it; `None`: those that the note lists aren't installed.
        missing: Option<String>,
    },
    /// Run the note with the science pack, which has this module, and this cell at once; offer to install it first.
    UseScience {
        /// The cell.
        cell: BlockId,
        /// The module that it imports.
        module: String,
    },
    /// Ask over which hub a volume shall be shared.
    Share(DocId),
}

impl From<PanelAction> for PageAction {
    fn from(action: PanelAction) -> PageAction {
        match action {
            PanelAction::Do(command) => PageAction::Do(command),
            PanelAction::Run(id) => PageAction::Run(id),
            PanelAction::Open(note) => PageAction::Open(note),
            PanelAction::OpenAt(note, at) => PageAction::OpenAt(note, at),
            PanelAction::Delete(file) => PageAction::Delete(file),
            PanelAction::Follow(link) => PageAction::Follow(link),
            PanelAction::Say(text) => PageAction::Say(text),
            PanelAction::Memory(wish) => PageAction::Memory(wish),
            PanelAction::ShowStep(run, step) => PageAction::ShowStep(run, step),
            PanelAction::ShowChanges(run) => PageAction::ShowChanges(run),
        }
    }
}

/// What is done with an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAction {
    /// Open it with the program that is set for its kind.
    OpenOutside,
    /// Show the folder that it is in.
    ShowInFolder,
    /// Show the note of a notebook; import the notebook if there is none.
    OpenNotebook,
    /// Import a notebook as a new note.
    ImportNotebook,
    /// Rewrite it as UTF-8, and keep a copy.
    ConvertToUtf8,
}

/// What a menu of the tree asks for, beyond commands of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeAction {
    /// A new note below this path of a volume.
    NewNote(DocId, String),
    /// Another name or place for a folder of a volume.
    RenameFolder(DocId, String),
    /// Duplicate it.
    Duplicate(DocId),
    /// To the starred notes, or away from them.
    Star(DocId),
    /// A link to it, for the clipboard.
    CopyLink(DocId),
    /// Copy its path.
    CopyPath(DocId),
    /// How it was.
    History(DocId),
    /// An end to files of the trash.
    Discard(Vec<DocId>),
    /// Take a volume out of the workspace.
    CloseVolume(DocId),
    /// Files go to new paths of their volume, because they were dropped on a folder or a volume.
    Move {
        /// The files and their new paths.
        moves: Vec<(DocId, String)>,
        /// Name of the folder or volume.
        into: String,
    },
    /// To a new place, as HTML, PDF or Markdown.
    Export(ExportCommand, ExportScope),
}

/// Jump target for when the note is loaded: block and words.
#[derive(Clone, Debug)]
pub struct PendingJump {
    /// The note, session or run to show.
    pub note: DocId,
    /// The block to scroll to; `None`: the top.
    pub block: Option<BlockId>,
    /// Words to mark there.
    pub terms: HashSet<String>,
    /// For sessions and runs: the message or step.
    pub part: String,
    /// Whether it was found by what it means, and not by its words.
    pub by_meaning: bool,
    /// What is selected of the note's text, in bytes; instead of block and words.
    pub range: Option<Range<usize>>,
}

/// A text that is replaced, as long as it is where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextReplacement {
    /// Where it was found, in bytes of the note.
    pub at: usize,
    /// What stands there.
    pub old: String,
    /// The text in its place; `None` where the search's query makes it.
    pub new: Option<String>,
}

/// Texts of a note that are replaced, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteReplacement {
    /// The note.
    pub note: DocId,
    /// The texts, from the first to the last.
    pub edits: Vec<TextReplacement>,
}

impl PendingJump {
    /// A block, or what a cell printed, by its place: `block`, `cell/output/2`.
    pub fn from_place(note: DocId, place: &str) -> Option<PendingJump> {
        let block = place.split('/').next()?.parse().ok()?;
        Some(PendingJump { block: Some(block), ..PendingJump::to_note(note) })
    }

    /// The passage of a hit.
    pub fn from_hit(hit: &NoteHit, terms: &HashSet<String>) -> PendingJump {
        let block = hit.place.split('/').next().and_then(|block| block.parse().ok());
        let (part, by_meaning) = (hit.place.clone(), hit.why.is_by_meaning());
        PendingJump { block, terms: terms.clone(), part, by_meaning, ..PendingJump::to_note(hit.note) }
    }

    /// A range of a note's text, in bytes.
    pub fn from_range(note: DocId, range: Range<usize>) -> PendingJump {
        PendingJump { range: Some(range), ..PendingJump::to_note(note) }
    }

    fn to_note(note: DocId) -> PendingJump {
        PendingJump { note, block: None, terms: HashSet::new(), part: String::new(), by_meaning: false, range: None }
    }
}

/// An edit in a collection.
#[derive(Debug)]
pub enum CollectionEdit {
    /// Its text is edited.
    Change {
        /// The note that holds the text.
        note: DocId,
        /// What changes in the note, bytes counted from its beginning.
        edits: Vec<text_edit::TextEdit>,
    },
    /// A property of a note is set.
    Set {
        /// The note with the property.
        file: DocId,
        /// Name of the property.
        key: String,
        /// Its new value; `None` removes it.
        value: Option<Value>,
    },
    /// A new note in a folder, with properties.
    New {
        /// The volume that gets the note.
        volume: DocId,
        /// The folder in it; `None`: at its top.
        folder: Option<String>,
        /// What puts it among the rows that are shown.
        properties: Map<String, Value>,
    },
    /// Its text is shown, or its views again.
    Text,
}

/// Rows that the pointer holds.
#[derive(Clone, Debug)]
pub struct RowDrag {
    /// The note that they are in.
    pub note: DocId,
    /// Their bytes in it.
    pub rows: Range<usize>,
    /// The revision of the note for which that is so.
    pub revision: u64,
    /// The text to insert elsewhere.
    pub load: DraggedText,
    /// The edit that removes them here.
    pub gone: TextEdit,
}

/// Rows as they are written elsewhere.
#[derive(Clone, Debug)]
pub struct DraggedText {
    /// The rows, with the line ends between them.
    pub text: String,
    /// Indentation of its first line.
    pub indent: String,
    /// Whether all rows are list items.
    pub list: bool,
    /// Whether the first row is a list item, and whether the last one is.
    pub items: (bool, bool),
}

/// The name of a pane, as long as the window is open.
pub type PaneId = u64;
