//! A user's wishes: the half of [`crate::Input`] that comes from people. Plain data, so that it can be logged,
//! replayed and sent from another process.

use crate::settings::Settings;
use crate::staleness::Reactivity;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use store::{
    BlobRef, BlockId, DecisionRecord, DocId, Execution, ExecutionStep, MessageId, RunAbout, SessionMessage, TodoItem,
};
use text::text_edit::TextEdit;

impl Command {
    /// Whether it changes nothing that a user made or set: allowed where nothing can be written.
    pub fn is_read_only(&self) -> bool {
        matches!(
            self,
            Command::OpenNote { .. }
                | Command::HoldNote { .. }
                | Command::ReleaseNote { .. }
                | Command::CloseNote { .. }
                | Command::FindKernels { .. }
                | Command::OpenRun { .. }
                | Command::OpenSession { .. }
                | Command::ReadSetup
                | Command::Carets { .. }
                | Command::Rescan
                | Command::Save
        )
    }
}

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
        edits: Vec<TextEdit>,
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
        /// The print of the kernel whose file and command the user has seen and allowed: wanted where others can change
        /// what it starts ([`crate::KernelSpec::doubt`]).
        #[serde(default)]
        seen: Option<String>,
    },
    /// Say what a note's cells reach beyond its folder, on this device and in the embedded kernel. The one that runs
    /// ends: walls cannot be moved once they stand.
    Grant {
        /// Which note.
        note: DocId,
        /// All that they reach; the default: nothing beyond the folder.
        grant: crate::records::kernels::KernelGrant,
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
        today: text::task::CalendarDay,
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
    /// Ask an agent: a message, and a run that answers it.
    Ask {
        /// The run's id, chosen by whoever asks, so that it can be watched.
        run: DocId,
        /// The session, which is made if there is none of this id.
        session: DocId,
        /// The volume in which the agent works.
        volume: DocId,
        /// The note that is looked at.
        note: Option<DocId>,
        /// The message that this one follows; `None`: the end of the branch that is looked at;
        /// [`MessageId::BEGINNING`]: none, it begins a branch of its own.
        parent: Option<MessageId>,
        /// What is asked.
        text: String,
        /// Which agent; `None`: the assistant.
        agent: Option<String>,
        /// It may cost at most so many US dollars.
        budget: Option<f64>,
        /// What it may do without asking: patterns of the policy, such as `shell: cargo test *`.
        allow: Vec<String>,
        /// Whether it may be replayed from a trace, and what of memory it may not use.
        recall: agent::memory::RecallOptions,
    },
    /// Say whether a generated view of an open note is drawn. That is kept with the note; a view that has changed is
    /// another one.
    ShowView {
        /// The note.
        note: DocId,
        /// The view ([`crate::view::name`]).
        view: store::BlobHash,
        /// Whether.
        shown: bool,
    },
    /// Press a button of a generated view that is drawn: what it asks for becomes a run, and the policy decides.
    Press {
        /// The run's id, chosen by whoever presses.
        run: DocId,
        /// The note.
        note: DocId,
        /// The view.
        view: store::BlobHash,
        /// Which of its buttons, from 0.
        button: usize,
    },
    /// Stop a run. What came by then is kept, and it can be resumed.
    CancelRun {
        /// Which.
        run: DocId,
    },
    /// Let a run go on that was stopped, failed, or came to its limit.
    ResumeRun {
        /// Which.
        run: DocId,
        /// With so many further iterations.
        more: Option<u64>,
        /// It may cost at most so many US dollars in all.
        budget: Option<f64>,
    },
    /// Decide what a run waits for. Who decided and when is filled in.
    Decide {
        /// Which run.
        run: DocId,
        /// Which approval.
        approval: String,
        /// What is decided.
        decision: DecisionRecord,
    },
    /// Change the todos of a run: all of them, in their order.
    SetTodos {
        /// Which run.
        run: DocId,
        /// They.
        todos: Vec<TodoItem>,
    },
    /// Take back what a run changed, or with `again` make it again: all of it, a change, or a hunk of one.
    Revert {
        /// Which run.
        run: DocId,
        /// Only this change, only this hunk of it.
        only: Option<(u64, Option<usize>)>,
        /// Whether it is made again.
        again: bool,
    },
    /// Read a run.
    OpenRun {
        /// Which.
        run: DocId,
    },
    /// Read a session.
    OpenSession {
        /// Which.
        session: DocId,
    },
    /// Look at the branch of a session that ends with a message.
    GoTo {
        /// Which session.
        session: DocId,
        /// Which message.
        message: MessageId,
    },
    /// Give a session another title, put it away or back.
    DescribeSession {
        /// Which.
        session: DocId,
        /// The title.
        title: Option<String>,
        /// Whether it is put away.
        closed: Option<bool>,
    },
    /// Begin a new session with what was said up to a message.
    ForkSession {
        /// Which session.
        session: DocId,
        /// Which message.
        at: MessageId,
        /// The new session's id.
        new: DocId,
    },
    /// Tell one branch what came of another.
    MergeBranch {
        /// Which session.
        session: DocId,
        /// The end of the branch that is brought over.
        from: MessageId,
        /// The end of the branch that goes on.
        into: MessageId,
    },
    /// Delete a session and its runs for good.
    DeleteSession {
        /// Which.
        session: DocId,
    },
    /// Take over a session that was exported.
    ImportSession {
        /// Its id.
        session: DocId,
        /// The volume in which it works.
        volume: DocId,
        /// Its title.
        title: String,
        /// What was said, oldest first, one behind the other.
        messages: Vec<SessionMessage>,
        /// What else its file held, for the way back (`agent::persisted`).
        imported: Option<String>,
    },
    /// Take over a run that was exported. It is over.
    ImportRun {
        /// Its id.
        run: DocId,
        /// What is said of it.
        about: Box<RunAbout>,
        /// What it was to do.
        todos: Vec<TodoItem>,
        /// What it did.
        steps: Vec<ExecutionStep>,
    },
    /// Make a schedule. What is next and was last is filled in.
    AddSchedule {
        /// Its id, chosen by whoever asks.
        schedule: DocId,
        /// It.
        what: Box<agent::schedule::Schedule>,
    },
    /// Remove a schedule. What it has begun goes on.
    RemoveSchedule {
        /// Which.
        schedule: DocId,
    },
    /// Let a schedule rest, or go on.
    PauseSchedule {
        /// Which.
        schedule: DocId,
        /// Whether it rests.
        paused: bool,
    },
    /// Begin what a schedule stands for now.
    RunSchedule {
        /// Which.
        schedule: DocId,
    },
    /// Begin what schedules say from now on: this process stays.
    MindSchedules {
        /// Clocks as they are known today, that of this machine among them; schedules that go by one take it over.
        zones: Vec<text::time_zone::ZoneClock>,
    },
    /// Have a plan carried out: a run that hands each task to the agent that fits it.
    RunTasks {
        /// The run's id, chosen by whoever asks.
        run: DocId,
        /// The session, which is made.
        session: DocId,
        /// The note in which the plan stands; its boxes are ticked.
        note: DocId,
        /// The tasks of the note, as it has them.
        tasks: Vec<agent::task_block::TaskBlock>,
        /// Only this one of them.
        only: Option<String>,
        /// All of it may cost at most so many US dollars.
        budget: Option<f64>,
        /// What may be done without asking: patterns of the policy.
        allow: Vec<String>,
    },
    /// Give a task of a plan up, also where it is under way.
    CancelTask {
        /// The note in which the plan stands.
        note: DocId,
        /// Which task.
        task: String,
    },
    /// Have a task of a plan stand as open or as failed again: it was given up.
    ReopenTask {
        /// The note in which the plan stands.
        note: DocId,
        /// Which task.
        task: String,
        /// Whether it had failed before; else it was open.
        failed: bool,
    },
    /// Work the memory of a volume over.
    Upkeep {
        /// Which volume.
        volume: DocId,
        /// What is to be done.
        what: agent::memory::MemoryMaintenance,
    },
    /// Read anew what agents have to work with: the configuration, keys, servers of tools.
    ReadSetup,
    /// Propose a tool of the user's own, or a new version of one.
    ProposeTool {
        /// It. Version and time are filled in.
        tool: Box<store::UserTool>,
    },
    /// Say which version of a tool may be used; `None`: none.
    ApproveTool {
        /// Which tool.
        name: String,
        /// Which version.
        version: Option<u64>,
    },
    /// Take a tool away, with its versions.
    RemoveTool {
        /// Which.
        name: String,
    },
    /// Take back a rule that a decision made.
    ForgetRule {
        /// Its place in the list, from 0.
        number: usize,
    },
    /// Take back the last move or deletion, in files and links.
    UndoMove,
    /// Write the links anew that lead to files which another program renamed.
    FollowRenamed,
    /// Share a volume over a hub: whoever has its address there gets it.
    ShareVolume {
        /// Which.
        volume: DocId,
        /// The hub's address, `ws://…` or `wss://…`.
        hub: String,
    },
    /// Share it there no more. What others have of it stays with them.
    UnshareVolume {
        /// Which.
        volume: DocId,
        /// The hub's address; empty: at all hubs.
        hub: String,
    },
    /// Get a volume from a hub into a folder.
    JoinVolume {
        /// The hub's address, `#`, the document's.
        address: String,
        /// The folder: absolute, and empty or not there yet.
        folder: PathBuf,
    },
    /// Sync nothing for now, or go on.
    PauseSync {
        /// Whether to pause.
        paused: bool,
    },
    /// Try hubs that are not there at once.
    RetrySync,
    /// The user's carets are there now, for others who look at the same note. Nothing is kept of it.
    Carets {
        /// In which note; `None`: in none.
        note: Option<DocId>,
        /// Bytes of the note, each with the other end of what is selected there.
        carets: Vec<(usize, usize)>,
    },
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
