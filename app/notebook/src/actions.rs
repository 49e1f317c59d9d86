//! What views ask for: plain data, carried out by the window's dispatch.

use agent_ui::panel_action::PanelAction;
use editor::note_editor::NoteEdit;
use engine::Command;
use engine::commands::CommandId;
use export::ExportScope;
use host::search::NoteHit;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::ops::Range;
use store::{BlockId, DocId, StepId};
use text::text_edit::{self, TextEdit};

/// What notes shall become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportCommand {
    Html,
    Pdf,
    /// A folder of Markdown.
    Folder,
    /// Shows what was written last.
    Open,
}

/// What a view asks for.
#[derive(Debug)]
pub enum PageAction {
    /// A command for the session; a rejection becomes a toast.
    Do(Command),
    /// A command of the table.
    Run(CommandId),
    /// An edit of the open note.
    Edit(NoteEdit),
    /// Show this note.
    Open(DocId),
    /// Show this note from a byte on.
    OpenAt(DocId, usize),
    /// Ask for a file's new path.
    Rename(DocId),
    /// Put a file into the trash.
    Delete(DocId),
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
    /// Move rows; the caret goes along if it was in them.
    Move { edits: Vec<TextEdit>, caret: Option<usize> },
    /// Rows of another note go into this one; the caret goes there.
    Carry { from: Box<RowDrag>, to: DocId, edit: TextEdit, caret: usize },
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
    /// Something is done in a collection.
    Collection(DocId, CollectionEdit),
    /// Show what a search has found.
    Hit(PendingJump),
    /// The caret goes to a line of a cell, both counted from 1.
    ToLine { cell: usize, line: usize },
    /// Save what a cell printed as a file.
    SaveOutput(BlockId),
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
        }
    }
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
    /// To a new place, as HTML, PDF or Markdown.
    Export(ExportCommand, ExportScope),
}

/// Jump target for when the note is loaded: block and words.
#[derive(Clone, Debug)]
pub struct PendingJump {
    pub note: DocId,
    pub block: Option<BlockId>,
    pub terms: HashSet<String>,
    /// For sessions and runs: the message or step.
    pub part: String,
}

impl PendingJump {
    /// A block, or what a cell printed, by its place: `block`, `cell/output/2`.
    pub fn from_place(note: DocId, place: &str) -> Option<PendingJump> {
        let block = place.split('/').next()?.parse().ok()?;
        Some(PendingJump { note, block: Some(block), terms: HashSet::new(), part: String::new() })
    }

    /// The passage of a hit.
    pub fn from_hit(hit: &NoteHit, terms: &HashSet<String>) -> PendingJump {
        let block = hit.place.split('/').next().and_then(|block| block.parse().ok());
        PendingJump { note: hit.note, block, terms: terms.clone(), part: hit.place.clone() }
    }
}

/// An edit in a collection.
#[derive(Debug)]
pub enum CollectionEdit {
    /// Its text is edited, which this note holds.
    Change { note: DocId, edits: Vec<text_edit::TextEdit> },
    /// A property of a note is set.
    Set { file: DocId, key: String, value: Option<Value> },
    /// A new note in a folder, with properties.
    New { volume: DocId, folder: Option<String>, properties: Map<String, Value> },
    /// Its text is shown, or its views again.
    Text,
}

/// Rows that the pointer holds.
#[derive(Clone, Debug)]
pub struct RowDrag {
    /// Their note, and their bytes.
    pub note: DocId,
    pub rows: Range<usize>,
    /// The revision of the note for which that is so.
    pub revision: u64,
    /// The text to insert elsewhere, and to delete here.
    pub load: DraggedText,
    pub gone: TextEdit,
}

/// Rows as they are written elsewhere.
#[derive(Clone, Debug)]
pub struct DraggedText {
    pub text: String,
    /// Indentation of its first line.
    pub indent: String,
    /// Whether all of it is items; whether the first and the last row are.
    pub list: bool,
    pub items: (bool, bool),
}

/// The name of a pane, as long as the window is open.
pub type PaneId = u64;
