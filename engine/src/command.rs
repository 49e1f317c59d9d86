//! A user's wishes: the half of [`crate::Input`] that comes from people. Plain data, so that it can be logged,
//! replayed and sent from another process.

use crate::fresh::Reactivity;
use crate::settings::Settings;
use crate::splice::Splice;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use store::{BlobRef, BlockId, DocId, Execution};

/// What a user wants. What it does is in [`crate::Session::apply`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Make a volume of this folder (an absolute path), or scan it again if it is one already.
    OpenFolder {
        /// The folder.
        folder: PathBuf,
        /// The volume's name; the folder's name when `None`.
        name: Option<String>,
    },
    /// Take a volume out of the workspace. Its files stay where they are.
    CloseVolume {
        /// Which.
        volume: DocId,
    },
    /// A new note, or a new collection.
    NewNote {
        /// In which volume.
        volume: DocId,
        /// Path inside the volume; `.md` is added when it is neither a note's nor a collection's.
        path: String,
        /// Its first text.
        text: String,
    },
    /// Show a note: read it, and load its document behind it.
    OpenNote {
        /// Which.
        note: DocId,
    },
    /// Read a note and keep it open until [`Command::ReleaseNote`], without showing it: for commands and agents.
    HoldNote {
        /// Which.
        note: DocId,
    },
    /// The end of a [`Command::HoldNote`].
    ReleaseNote {
        /// Which.
        note: DocId,
    },
    /// Let go of a note that is no longer shown. What is unsaved is saved first.
    CloseNote {
        /// Which.
        note: DocId,
    },
    /// Replace bytes of a note.
    Edit {
        /// Which note.
        note: DocId,
        /// Byte offset in the whole note.
        at: usize,
        /// How many bytes go.
        delete: usize,
        /// What comes.
        insert: String,
    },
    /// Edits of a note in several places at once, which undo takes back at once.
    EditAll {
        /// Which note.
        note: DocId,
        /// The edits: in order, at offsets of the text as it is now, none touching another.
        edits: Vec<Splice>,
    },
    /// Take back the last edit of this note that was made here.
    Undo {
        /// Which note.
        note: DocId,
    },
    /// Make the last edit that was taken back again.
    Redo {
        /// Which note.
        note: DocId,
    },
    /// Take over what came with a note that was a notebook.
    TakeNotebook {
        /// Which note.
        note: DocId,
        /// The notebook, kept as a blob.
        notebook: BlobRef,
        /// What its cells printed. Their code and time are filled in.
        executions: Vec<Execution>,
    },
    /// Run one cell, and where the note says so what depends on it and what it needs.
    Run {
        /// Which note.
        note: DocId,
        /// Its cell.
        cell: BlockId,
    },
    /// Run one cell, and only it, with a time limit other than its own.
    RunWithin {
        /// Which note.
        note: DocId,
        /// Its cell.
        cell: BlockId,
        /// Seconds; 0: as long as it takes.
        seconds: u64,
    },
    /// Run all cells of a note in order; the first error stops the rest.
    RunAll {
        /// Which note.
        note: DocId,
    },
    /// Run just these cells of a note, in this order; the first error stops the rest.
    RunCells {
        /// Which note.
        note: DocId,
        /// Its cells.
        cells: Vec<BlockId>,
    },
    /// Run the cells whose results no longer count, and what they need.
    RunStale {
        /// Which note.
        note: DocId,
    },
    /// End the note's kernel, run all cells, and compare the results with those before.
    RunClean {
        /// Which note.
        note: DocId,
    },
    /// Say in the note's properties what happens to cells that depend on one that runs.
    SetReactivity {
        /// Which note.
        note: DocId,
        /// What happens.
        to: Reactivity,
    },
    /// Look for the Jupyter kernels that a note could use ([`crate::Session::kernels`]).
    FindKernels {
        /// Which note.
        note: DocId,
    },
    /// Choose which kernel runs a note's cells, and allow that it does: a Jupyter kernel has all rights of the user.
    UseKernel {
        /// Which note.
        note: DocId,
        /// The kernel's name; `None`: the embedded one.
        kernel: Option<String>,
        /// Whether the note says so from now on; otherwise it is so until the note is closed.
        keep: bool,
    },
    /// Answer what the running cell of a note asks.
    Answer {
        /// Which note.
        note: DocId,
        /// The line.
        text: String,
    },
    /// Stop what runs in this note: politely first, after a moment by force.
    Interrupt {
        /// Which note.
        note: DocId,
    },
    /// End the note's kernel; the next cell starts a fresh one.
    RestartKernel {
        /// Which note.
        note: DocId,
    },
    /// Give files of one volume other paths. Links to them, and relative ones in them, are written anew.
    MoveFiles {
        /// The files, and where each goes inside its volume; a note without an ending gets `.md`.
        moves: Vec<(DocId, String)>,
    },
    /// Put files into the workspace's trash.
    DeleteFiles {
        /// Which.
        files: Vec<DocId>,
    },
    /// Take a file out of the trash.
    RestoreFile {
        /// Which.
        file: DocId,
        /// Where to; where it lay when `None`. A name that is taken gets a number.
        path: Option<String>,
    },
    /// Delete files in the trash for good, with their history and outputs.
    Discard {
        /// Which.
        files: Vec<DocId>,
    },
    /// Click the box of a task in a note that need not be open. One that comes again gets its next above it.
    Check {
        /// Which note.
        note: DocId,
        /// About where the task's line stands, in bytes of the note.
        at: usize,
        /// The task's words, without its fields.
        words: String,
        /// What day it is where the user is.
        today: crate::task::Day,
    },
    /// Replace a piece of a note that need not be open: the one of this text that is nearest to a place.
    Amend {
        /// Which note.
        note: DocId,
        /// About where the piece stands, in bytes of the note.
        at: usize,
        /// What stands there.
        old: String,
        /// What comes.
        new: String,
    },
    /// Set a property in the front matter of a note that need not be open.
    SetProperty {
        /// Which note.
        note: DocId,
        /// The property's name.
        key: String,
        /// Its value, as JSON; `None` takes the property out.
        value: Option<serde_json::Value>,
    },
    /// Take back the last move or deletion, in files and links.
    UndoMove,
    /// Write the links anew that lead to files which another program renamed.
    FollowRenamed,
    /// Look at all files of all volumes again.
    Rescan,
    /// Save everything now: end bursts, write files.
    Save,
    /// Keep these settings.
    Set {
        /// The settings.
        settings: Box<Settings>,
    },
}
