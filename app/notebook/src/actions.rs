//! Actions that views request: plain data, performed by the window's dispatch.

use agent_ui::panel_action::PanelAction;
use editor::note_editor::NoteEdit;
use engine::commands::CommandId;
use engine::{ColorTheme, Command};
use export::ExportScope;
use host::search::NoteHit;
use host::source_control::GitRequest;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::ops::Range;
use store::{BlockId, DocId, StepId};
use text::find_query::FindQuery;
use text::text_edit::{self, TextEdit};

/// Export commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportCommand {
    /// Exports as HTML pages.
    Html,
    /// Exports as a single PDF.
    Pdf,
    /// Exports as a folder of Markdown files.
    Folder,
    /// Exports as Jupyter notebooks.
    Notebook,
    /// Shows the last export.
    Open,
    /// Prints the open note.
    Print,
}

/// Clipboard command of a menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClipboardCommand {
    /// Moves the selection to the clipboard.
    Cut,
    /// Copies the selection to the clipboard.
    Copy,
    /// Inserts the clipboard's content.
    Paste,
    /// Inserts the clipboard's text without formatting.
    PastePlain,
}

/// Action requested by a view.
#[derive(Debug)]
pub enum PageAction {
    /// A command for the session; a rejection becomes a toast.
    Do(Command),
    /// A command from the command table.
    Run(CommandId),
    /// A command from the command table, applied to this cell.
    InCell(BlockId, CommandId),
    /// A clipboard command for the selection in the note.
    Clipboard(ClipboardCommand),
    /// An edit of the open note.
    Edit(NoteEdit),
    /// Show this note.
    Open(DocId),
    /// Show this note, scrolled to a byte offset.
    OpenAt(DocId, usize),
    /// Show the workspace's folder in the desktop's file manager.
    ShowWorkspace,
    /// Ask the user for a file's new path.
    Rename(DocId),
    /// Give a new note the typed name.
    NameNote {
        /// The new note.
        note: DocId,
        /// The name; empty if nothing was typed.
        name: String,
        /// Whether the caret moves into the note's text.
        writes: bool,
    },
    /// Move a file to the trash.
    Delete(DocId),
    /// Perform an action on an attachment.
    File(DocId, FileAction),
    /// Show this note in a new tab.
    OpenBeside(DocId),
    /// Perform an action from a menu of the file tree.
    Tree(TreeAction),
    /// Make this pane the active one.
    Here(PaneId),
    /// Close this tab.
    CloseTab(PaneId),
    /// Follow a link in the open note.
    Follow(String),
    /// Follow a link in the open note; a linked note opens in a new tab.
    FollowBeside(String),
    /// Open a link with the program that the system has for it.
    FollowOutside(String),
    /// Copy the image that the open note shows under this name.
    CopyPicture(String),
    /// Save the image that the open note shows under this name as a file.
    SavePicture(String),
    /// Add a word to the user's dictionary.
    Learn(String),
    /// Move rows of the open note.
    Move {
        /// Edits that move the rows.
        edits: Vec<TextEdit>,
        /// Byte offset of the caret afterwards, if it was in the rows.
        caret: Option<usize>,
    },
    /// Move rows of another note into this one; the caret moves there.
    Carry {
        /// The rows at their current place.
        from: Box<RowDrag>,
        /// The note that receives them.
        to: DocId,
        /// The edit that inserts them.
        edit: TextEdit,
        /// Byte offset of the caret afterwards.
        caret: usize,
    },
    /// Place the caret at a byte offset of the open note.
    Place(usize),
    /// Show a toast.
    Say(String),
    /// Perform an action on a remembered item.
    Memory(Box<agent_ui::memory::MemoryAction>),
    /// Show the agent's pending questions.
    ShowAgent,
    /// Shows the outline in the right panel, or closes it.
    ShowOutline,
    /// Show a step of a run on its timeline.
    ShowStep(DocId, StepId),
    /// Show this session in the agent's panel.
    ShowSession(DocId),
    /// Show what this run and the others of its session changed.
    ShowChanges(DocId),
    /// Perform an edit in a collection.
    Collection(DocId, CollectionEdit),
    /// Show a search hit.
    Hit(PendingJump),
    /// Search for this in the left panel.
    SearchFor(String),
    /// Replace matches of `query` in several notes.
    Replace {
        /// The search query, which also produces the new texts.
        query: FindQuery,
        /// The replacement for a match.
        with: String,
        /// The matches to replace.
        notes: Vec<NoteReplacement>,
    },
    /// Move the caret to a line of a cell.
    ToLine {
        /// Number of the cell in the note, from 1.
        cell: usize,
        /// Number of the line in the cell, from 1.
        line: usize,
    },
    /// Save a cell's output as a file.
    SaveOutput(BlockId),
    /// Use this theme from now on.
    SetTheme(ColorTheme),
    /// Offer to set up a full Python that has a module missing from the built-in one.
    SetUpPython {
        /// The cell that imports the module.
        cell: BlockId,
        /// Name of the module.
        module: String,
    },
    /// Show the note's packages, with one that this cell is missing.
    ShowPackages {
        /// The cell that failed.
        cell: BlockId,
        /// The package's name in the package index; `None` if the packages that the note lists aren't installed.
        missing: Option<String>,
    },
    /// Run the note with the science pack, which has this module, and run this cell immediately; offer to install the
    /// pack first.
    UseScience {
        /// The cell that imports the module.
        cell: BlockId,
        /// Name of the module.
        module: String,
    },
    /// Ask which hub to share a volume over.
    Share(DocId),
    /// Use source control.
    SourceControl(SourceControlAction),
    /// Show a file of the read-only volume System.
    ShowSystemFile(String),
    /// Copy a file of System into the open note's volume.
    CopySystemFile(String),
}

/// Action of the page of source control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceControlAction {
    /// Start an operation in the repository of this volume.
    Begin(DocId, GitRequest),
    /// Cancel the operation that runs.
    Cancel,
    /// Remove the report of the last operation.
    Dismiss,
    /// Read the repository of this volume again.
    Refresh(DocId),
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

/// Action on an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAction {
    /// Open it with the default program for its type.
    OpenOutside,
    /// Show its folder.
    ShowInFolder,
    /// Show the note of a notebook; import the notebook if there is none.
    OpenNotebook,
    /// Import a notebook as a new note.
    ImportNotebook,
    /// Rewrite it as UTF-8, and keep a copy.
    ConvertToUtf8,
}

/// Action from a menu of the file tree, beyond commands of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeAction {
    /// Create a note below this path of a volume.
    NewNote(DocId, String),
    /// Rename or move a folder of a volume.
    RenameFolder(DocId, String),
    /// Duplicate this file.
    Duplicate(DocId),
    /// Star this note, or remove its star.
    Star(DocId),
    /// Copy a link to this file.
    CopyLink(DocId),
    /// Copy this file's path.
    CopyPath(DocId),
    /// Show this note's history.
    History(DocId),
    /// Permanently delete files from the trash.
    Discard(Vec<DocId>),
    /// Show the settings of volumes.
    VolumeSettings,
    /// Remove a volume from the workspace.
    CloseVolume(DocId),
    /// Move files within their volume after they were dropped on a folder or a volume.
    Move {
        /// The files and their new paths.
        moves: Vec<(DocId, String)>,
        /// Name of the target folder or volume.
        into: String,
    },
    /// Export as HTML, PDF or Markdown.
    Export(ExportCommand, ExportScope),
}

/// Jump target, kept until the note is loaded: a block with terms, or a range.
#[derive(Clone, Debug)]
pub struct PendingJump {
    /// The note, session or run to show.
    pub note: DocId,
    /// The block to scroll to; `None` means the top.
    pub block: Option<BlockId>,
    /// Terms to highlight there.
    pub terms: HashSet<String>,
    /// For sessions and runs: the id of the message or step.
    pub part: String,
    /// Whether it was found by semantic search rather than by its words.
    pub by_meaning: bool,
    /// Bytes of the note's text to select, instead of block and terms.
    pub range: Option<Range<usize>>,
}

/// A text to replace if it's still where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextReplacement {
    /// Byte offset in the note at which it was found.
    pub at: usize,
    /// The text found there.
    pub old: String,
    /// The replacement; `None` if the search query produces it.
    pub new: Option<String>,
}

/// Replacements in a note, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteReplacement {
    /// The note.
    pub note: DocId,
    /// The replacements, from first to last.
    pub edits: Vec<TextReplacement>,
}

impl PendingJump {
    /// Creates a jump to a block or a cell's output by its address: `block`, `cell/output/2`.
    pub fn from_place(note: DocId, place: &str) -> Option<PendingJump> {
        let block = place.split('/').next()?.parse().ok()?;
        Some(PendingJump { block: Some(block), ..PendingJump::to_note(note) })
    }

    /// Creates a jump to the passage of a hit.
    pub fn from_hit(hit: &NoteHit, terms: &HashSet<String>) -> PendingJump {
        let block = hit.place.split('/').next().and_then(|block| block.parse().ok());
        let (part, by_meaning) = (hit.place.clone(), hit.why.is_by_meaning());
        PendingJump { block, terms: terms.clone(), part, by_meaning, ..PendingJump::to_note(hit.note) }
    }

    /// Creates a jump to a byte range of a note's text.
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
    /// Changes the collection's own text.
    Change {
        /// The note that contains the text.
        note: DocId,
        /// Edits of that note, with offsets from its start.
        edits: Vec<text_edit::TextEdit>,
    },
    /// Sets a property of a note.
    Set {
        /// The note with the property.
        file: DocId,
        /// Name of the property.
        key: String,
        /// Its new value; `None` removes it.
        value: Option<Value>,
    },
    /// Creates a note with properties in a folder.
    New {
        /// The volume that receives the note.
        volume: DocId,
        /// The folder in the volume; `None` means its root.
        folder: Option<String>,
        /// Properties that make it one of the visible rows.
        properties: Map<String, Value>,
    },
    /// Switches between the collection's text and its views.
    Text,
}

/// Rows being dragged.
#[derive(Clone, Debug)]
pub struct RowDrag {
    /// The note that contains them.
    pub note: DocId,
    /// Their byte range in the note.
    pub rows: Range<usize>,
    /// The note revision for which the range is valid.
    pub revision: u64,
    /// The text to insert elsewhere.
    pub load: DraggedText,
    /// The edit that removes them from this note.
    pub gone: TextEdit,
}

/// Text of rows to insert elsewhere.
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

/// Identifies a pane while the window is open.
pub type PaneId = u64;
