//! Commands: requests from the user, one half of [`crate::Input`]. Plain data, so that they can be logged, replayed and
//! sent from another process.

use crate::records::forks::ForkOrigin;
use crate::staleness::Reactivity;
use agent::memory::trace_feedback::RunRating;
use agent::policy::ToolPolicy;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use store::{
    BlobHash, BlobRef, BlockId, DecisionRecord, DocId, Execution, ExecutionStep, MessageId, RunAbout, RunApproval,
    SessionMessage, TodoItem,
};
use text::text_edit::TextEdit;
use user_settings::settings::Settings;

impl Command {
    /// Returns whether the command changes no user data and no settings, so that it's allowed when nothing can be
    /// written.
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

/// A request of the user. [`crate::Session::apply`] carries it out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Opens a folder (an absolute path) as a volume, or rescans it if it's already open.
    OpenFolder {
        /// Absolute path of the folder.
        folder: PathBuf,
        /// The volume's name; the folder's name when `None`.
        name: Option<String>,
    },
    /// Opens a folder that holds a copy of a volume as a fork of it, which isn't listed with the volumes.
    OpenFork {
        /// The volume that was copied, and the fork's name.
        origin: ForkOrigin,
        /// Absolute path of the folder, inside the workspace's folder.
        folder: PathBuf,
    },
    /// Removes a volume from the workspace. Its files stay in place.
    CloseVolume {
        /// The volume to close.
        volume: DocId,
    },
    /// Ensures that a volume's memory has a place, which may be outside of the volume's folder.
    OpenMemory {
        /// The volume whose memory is opened.
        volume: DocId,
    },
    /// Creates a note or a collection.
    NewNote {
        /// The volume in which to create the note.
        volume: DocId,
        /// Path in the volume; `.md` is added unless it has the extension of a note or a collection.
        path: String,
        /// Initial text of the note.
        text: String,
    },
    /// Shows a note: reads it, and loads its document in the background.
    OpenNote {
        /// The note to show.
        note: DocId,
    },
    /// Reads a note and keeps it open until [`Command::ReleaseNote`] without showing it, for commands and agents.
    HoldNote {
        /// The note to keep open.
        note: DocId,
    },
    /// Ends the hold of a [`Command::HoldNote`].
    ReleaseNote {
        /// The note that's no longer needed.
        note: DocId,
    },
    /// Closes a note that's no longer shown, after saving it.
    CloseNote {
        /// The note to close.
        note: DocId,
    },
    /// Replaces bytes of a note.
    Edit {
        /// The note to edit.
        note: DocId,
        /// Byte offset in the whole note.
        at: usize,
        /// Number of bytes to delete.
        delete: usize,
        /// The text to insert.
        insert: String,
    },
    /// Edits several places of a note as one undo step.
    EditAll {
        /// The note to edit.
        note: DocId,
        /// The edits in ascending order, at offsets of the current text, without touching each other.
        edits: Vec<TextEdit>,
    },
    /// Edits several places of a note, if its text is still the one with this hash.
    EditIfUnchanged {
        /// The note to edit.
        note: DocId,
        /// BLAKE3 hash of the whole text that the edits were made for.
        expected: BlobHash,
        /// The edits, as in [`Command::EditAll`].
        edits: Vec<TextEdit>,
    },
    /// Undoes the last edit of the note that was made on this device.
    Undo {
        /// The note to change.
        note: DocId,
    },
    /// Redoes the last edit that was undone.
    Redo {
        /// The note to change.
        note: DocId,
    },
    /// Imports the outputs and metadata of a notebook.
    TakeNotebook {
        /// The note that was created from the notebook.
        note: DocId,
        /// The notebook, kept as a blob.
        notebook: BlobRef,
        /// Outputs of the notebook's cells. Code and time are filled in by the session.
        executions: Vec<Execution>,
    },
    /// Gives the cells of a note in a fork, which haven't run there, the executions of the note that it's a copy of.
    TakeExecutions {
        /// The note in the fork.
        note: DocId,
        /// The executions, by the cells of that note.
        executions: Vec<Execution>,
    },
    /// Runs a cell and, depending on the note's reactivity, its dependents and the cells that it needs.
    Run {
        /// The note that holds the cell.
        note: DocId,
        /// The cell to run.
        cell: BlockId,
    },
    /// Runs only this cell, with a time limit that replaces the cell's own.
    RunWithin {
        /// The note that holds the cell.
        note: DocId,
        /// The cell to run.
        cell: BlockId,
        /// Time limit in seconds; 0 for none.
        seconds: u64,
    },
    /// Runs all cells of a note in order and stops at the first error.
    RunAll {
        /// The note to run.
        note: DocId,
    },
    /// Runs these cells in this order and stops at the first error.
    RunCells {
        /// The note that holds the cells.
        note: DocId,
        /// The cells to run.
        cells: Vec<BlockId>,
    },
    /// Runs all stale cells and the cells that they need.
    RunStale {
        /// The note to run.
        note: DocId,
    },
    /// Restarts the note's kernel, runs all cells, and compares the results with the earlier ones.
    RunClean {
        /// The note to run.
        note: DocId,
    },
    /// Sets the note's reactivity in its properties.
    SetReactivity {
        /// The note to change.
        note: DocId,
        /// What happens to the dependents of a cell that runs.
        to: Reactivity,
    },
    /// Searches for Jupyter kernels that a note could use ([`crate::Session::kernels`]).
    FindKernels {
        /// The note that needs a kernel.
        note: DocId,
    },
    /// Selects the kernel of a note and allows it to run. A Jupyter kernel has all rights of the user.
    UseKernel {
        /// The note that uses the kernel.
        note: DocId,
        /// Name of the Jupyter kernel; `None` for the built-in kernel.
        kernel: Option<String>,
        /// Whether to write the choice into the note; otherwise it applies until the note is closed.
        keep: bool,
        /// Fingerprint of the kernel whose file and command the user has seen and allowed; required if others can
        /// change what it starts ([`crate::KernelSpec::doubt`]).
        #[serde(default)]
        seen: Option<String>,
    },
    /// Sets what a note's built-in kernel may access beyond its folder, on this device. A running kernel is stopped,
    /// because its sandbox can't be widened.
    Grant {
        /// The note whose kernel gets access.
        note: DocId,
        /// Everything that the kernel may access; the default is the note's folder only.
        grant: crate::records::kernels::KernelGrant,
    },
    /// Answers the input prompt of a running cell.
    Answer {
        /// The note that holds the cell.
        note: DocId,
        /// The line that the user typed.
        text: String,
    },
    /// Interrupts the running cell, and stops its kernel if the cell doesn't end.
    Interrupt {
        /// The note that holds the cell.
        note: DocId,
    },
    /// Stops the note's kernel; the next cell starts a new one.
    RestartKernel {
        /// The note whose kernel is stopped.
        note: DocId,
    },
    /// Switches a note's kernel to another of its saved states ([`crate::Note::state_move`]).
    MoveState {
        /// The note that the kernel belongs to.
        note: DocId,
        /// The state to switch to.
        to: crate::records::kernels::KernelStateMove,
    },
    /// Shares the saved states of a note's kernel from this device, or no longer ([`crate::Note::shared_state`]).
    ShareState {
        /// The note that the kernel belongs to.
        note: DocId,
        /// Whether to share them with the devices that have the note.
        is_shared: bool,
    },
    /// Moves or renames files of one volume. Links to them and relative links inside them are updated.
    MoveFiles {
        /// The files and their new paths in the volume; `.md` is added to a note's path without an extension.
        moves: Vec<(DocId, String)>,
    },
    /// Moves files to the workspace's trash.
    DeleteFiles {
        /// The files to delete.
        files: Vec<DocId>,
    },
    /// Moves a note that is open to the trash, if its text is still the one with this hash.
    DeleteIfUnchanged {
        /// The note to delete.
        note: DocId,
        /// BLAKE3 hash of the whole text.
        expected: BlobHash,
    },
    /// Restores a file from the trash.
    RestoreFile {
        /// The file to restore.
        file: DocId,
        /// The path to restore to; `None` for its old path. If the name is taken, a number is added.
        path: Option<String>,
    },
    /// Permanently deletes files in the trash, with their history and outputs.
    Discard {
        /// The files to delete.
        files: Vec<DocId>,
    },
    /// Checks or unchecks a task in a note, which may be closed. A repeating task gets its next occurrence above it.
    Check {
        /// The note that holds the task.
        note: DocId,
        /// Approximate offset of the task's line, in bytes of the note.
        at: usize,
        /// The task's text without its fields.
        words: String,
        /// Today's date in the user's time zone.
        today: text::task::CalendarDay,
    },
    /// Replaces text in a note, which may be closed. The occurrence closest to `at` is replaced.
    Amend {
        /// The note to change.
        note: DocId,
        /// Approximate offset of the text, in bytes of the note.
        at: usize,
        /// The text to replace.
        old: String,
        /// The replacement text.
        new: String,
    },
    /// Sets a property in the front matter of a note, which may be closed.
    SetProperty {
        /// The note to change.
        note: DocId,
        /// Name of the property.
        key: String,
        /// The value as JSON; `None` removes the property.
        value: Option<serde_json::Value>,
    },
    /// Sends a message to an agent and starts a run that answers it.
    Ask {
        /// Id of the run, chosen by the caller so that the caller can follow the run.
        run: DocId,
        /// The session; it's created if no session has this id.
        session: DocId,
        /// The volume that the agent works in.
        volume: DocId,
        /// The note that's open in the window, if any.
        note: Option<DocId>,
        /// The message that this one answers. `None` means the end of the current branch, [`MessageId::SESSION_ROOT`]
        /// starts a new branch.
        parent: Option<MessageId>,
        /// The text of the message.
        text: String,
        /// Name of the agent; `None` for the assistant.
        agent: Option<String>,
        /// Maximum cost in US dollars.
        budget: Option<f64>,
        /// Policy patterns that are allowed without asking, such as `shell: cargo test *`.
        allow: Vec<String>,
        /// Whether a trace may be replayed, and which memories are excluded from recall.
        recall: agent::memory::RecallOptions,
        /// Name of the provider to ask, and no other; `None` leaves the choice to the router.
        provider: Option<Box<str>>,
    },
    /// Shows or hides a generated view of an open note. The choice is stored with the note and this version of
    /// the view.
    ShowView {
        /// The note that holds the view.
        note: DocId,
        /// Hash of the view's source ([`crate::generated_view::source_hash`]).
        view: store::BlobHash,
        /// Whether the view is shown.
        shown: bool,
    },
    /// Presses a button of a visible generated view. The policy checks its action, which becomes a run.
    Press {
        /// Id of the run, chosen by the caller.
        run: DocId,
        /// The note that holds the view.
        note: DocId,
        /// Hash of the view's source.
        view: store::BlobHash,
        /// Index of the button in the view, from 0.
        button: usize,
    },
    /// Stops a run. Its results so far are kept, and it can be resumed.
    CancelRun {
        /// The run to stop.
        run: DocId,
    },
    /// Resumes a run that was stopped, failed, or reached a limit.
    ResumeRun {
        /// The run to resume.
        run: DocId,
        /// Number of additional iterations to allow.
        more: Option<u64>,
        /// New maximum of the run's total cost in US dollars.
        budget: Option<f64>,
    },
    /// Carries out a run for another device by that device's policy; a run that began elsewhere is taken over.
    HoldRun {
        /// The run, which may not have begun yet.
        run: DocId,
        /// Address of the hub that lends the run.
        hub: String,
        /// The owner's policy; `None` to give the run up: work on it stops at once, and nothing is recorded.
        policy: Option<Box<ToolPolicy>>,
    },
    /// Decides a pending approval. Author and time are filled in by the session.
    Decide {
        /// The run that waits for the approval.
        run: DocId,
        /// Id of the approval.
        approval: String,
        /// The user's decision.
        decision: DecisionRecord,
    },
    /// Replaces the todo list of a run.
    SetTodos {
        /// The run to change.
        run: DocId,
        /// All todos, in order.
        todos: Vec<TodoItem>,
    },
    /// Reverts or reapplies the changes of a run: all of them, one change, or one hunk.
    Revert {
        /// The run whose changes are reverted.
        run: DocId,
        /// Number of the change and index of its hunk; `None` for all changes.
        only: Option<(u64, Option<usize>)>,
        /// Whether to reapply the changes instead of reverting them.
        again: bool,
    },
    /// Rates a run, which counts for the trace that it replayed or from which it could be replayed.
    RateRun {
        /// The run.
        run: DocId,
        /// The rating; `None` takes it back.
        rating: Option<RunRating>,
    },
    /// Loads a run's document.
    OpenRun {
        /// The run to load.
        run: DocId,
    },
    /// Loads a session's document.
    OpenSession {
        /// The session to load.
        session: DocId,
    },
    /// Switches a session to the branch that ends with a message.
    GoTo {
        /// The session to change.
        session: DocId,
        /// The last message of the branch.
        message: MessageId,
    },
    /// Renames, archives or unarchives a session.
    DescribeSession {
        /// The session to change.
        session: DocId,
        /// The new title; `None` keeps it.
        title: Option<String>,
        /// Whether the session is archived; `None` keeps the current state.
        closed: Option<bool>,
    },
    /// Starts a new session with a copy of the messages up to a given one.
    ForkSession {
        /// The session to copy from.
        session: DocId,
        /// The last message to copy.
        at: MessageId,
        /// The new session's id.
        new: DocId,
    },
    /// Merges the result of one branch into another.
    MergeBranch {
        /// The session that holds both branches.
        session: DocId,
        /// Last message of the branch whose result is merged.
        from: MessageId,
        /// Last message of the branch that receives the result.
        into: MessageId,
    },
    /// Permanently deletes a session and its runs.
    DeleteSession {
        /// The session to delete.
        session: DocId,
    },
    /// Imports a session from an exported file.
    ImportSession {
        /// Id of the new session.
        session: DocId,
        /// The volume that the session works in.
        volume: DocId,
        /// Title of the session.
        title: String,
        /// The messages, oldest first, as one branch.
        messages: Vec<SessionMessage>,
        /// Other content of the file, kept for export (`agent::persisted`).
        imported: Option<String>,
    },
    /// Imports a finished run from an exported file.
    ImportRun {
        /// Id of the new run.
        run: DocId,
        /// Metadata of the run.
        about: Box<RunAbout>,
        /// The todos of the run.
        todos: Vec<TodoItem>,
        /// The steps of the run.
        steps: Vec<ExecutionStep>,
        /// The decisions about its calls, as records that allow nothing (`agent::session_tree_file`).
        approvals: Vec<RunApproval>,
    },
    /// Adds a schedule. Its next and last occurrences are filled in by the session.
    AddSchedule {
        /// Id of the schedule, chosen by the caller.
        schedule: DocId,
        /// The schedule to add.
        what: Box<agent::schedule::Schedule>,
    },
    /// Removes a schedule. Runs that it has already started continue.
    RemoveSchedule {
        /// The schedule to remove.
        schedule: DocId,
    },
    /// Pauses or resumes a schedule.
    PauseSchedule {
        /// The schedule to change.
        schedule: DocId,
        /// Whether the schedule is paused.
        paused: bool,
    },
    /// Starts the work of a schedule now.
    RunSchedule {
        /// The schedule to start.
        schedule: DocId,
    },
    /// Lets this process start scheduled work, since it stays open.
    MindSchedules {
        /// Current rules of time zones, including this machine's; schedules adopt the rules of their zone.
        zones: Vec<text::time_zone::ZoneClock>,
    },
    /// Publishes an event of another program.
    PublishEvent {
        /// The volume that the event belongs to.
        volume: DocId,
        /// Kind of the event: `custom.` and a name.
        kind: String,
        /// What the program says.
        data: serde_json::Value,
    },
    /// Runs a plan: starts a run that assigns each task to the agent that fits it.
    RunTasks {
        /// Id of the run, chosen by the caller.
        run: DocId,
        /// Id of the session to create for the run.
        session: DocId,
        /// The note that holds the plan; completed tasks are checked off in it.
        note: DocId,
        /// The tasks as written in the note.
        tasks: Vec<agent::task_block::TaskBlock>,
        /// The only task to run; `None` for all tasks.
        only: Option<String>,
        /// Maximum total cost in US dollars.
        budget: Option<f64>,
        /// Policy patterns that are allowed without asking.
        allow: Vec<String>,
    },
    /// Gives a plan the result of a task that another device carried out.
    FinishSentTask {
        /// The run that carried out the task.
        run: DocId,
        /// How it ended.
        ending: store::RunEnding,
        /// Its answer, or why there's none.
        said: String,
    },
    /// Carries out a task of a plan here that was sent to another device. The hub's queue has lent it to this one.
    TakeBackTask {
        /// The run that carries out the task.
        run: DocId,
        /// Address of the hub.
        hub: String,
    },
    /// Cancels a task of a plan, even if it's running.
    CancelTask {
        /// The note that holds the plan.
        note: DocId,
        /// Id of the task.
        task: String,
    },
    /// Reopens a canceled task of a plan.
    ReopenTask {
        /// The note that holds the plan.
        note: DocId,
        /// Id of the task.
        task: String,
        /// Whether the task's status becomes failed rather than open.
        failed: bool,
    },
    /// Maintains the memory of a volume.
    Upkeep {
        /// The volume whose memory is maintained.
        volume: DocId,
        /// The kind of maintenance.
        what: agent::memory::MemoryMaintenance,
    },
    /// Reloads the configuration of agents: settings, keys and tool servers.
    ReadSetup,
    /// Proposes a user tool, or a new version of it.
    ProposeTool {
        /// The tool. Version and time are filled in by the session.
        tool: Box<store::UserTool>,
    },
    /// Sets the version of a tool that agents may use.
    ApproveTool {
        /// Name of the tool.
        name: String,
        /// Number of the version; `None` to allow no version.
        version: Option<u64>,
    },
    /// Removes a tool and all its versions.
    RemoveTool {
        /// Name of the tool.
        name: String,
    },
    /// Deletes a policy rule that a decision created.
    ForgetRule {
        /// Index of the rule in the list, from 0.
        number: usize,
    },
    /// Undoes the last move or deletion of files, including the updates of links.
    UndoMove,
    /// Updates links to files that another program renamed.
    FollowRenamed,
    /// Shares a volume over a hub. Anyone who has its address on the hub can get it.
    ShareVolume {
        /// The volume to share.
        volume: DocId,
        /// The hub's address, `ws://…` or `wss://…`.
        hub: String,
    },
    /// Stops sharing a volume over a hub. Other devices keep their copies.
    UnshareVolume {
        /// The volume to stop sharing.
        volume: DocId,
        /// The hub's address; empty to stop sharing over all hubs.
        hub: String,
    },
    /// Gets a volume from a hub and stores it in a folder.
    JoinVolume {
        /// The hub's address, `#`, and the volume's document id.
        address: String,
        /// Absolute path of the folder, which must be empty or not exist.
        folder: PathBuf,
    },
    /// Pauses or resumes sync.
    PauseSync {
        /// Whether sync is paused.
        paused: bool,
    },
    /// Reconnects to unreachable hubs now.
    RetrySync,
    /// Announces the user's carets to others who have the note open. Nothing is stored.
    Carets {
        /// The note with the carets; `None` for no note.
        note: Option<DocId>,
        /// Byte offsets in the note, each with the other end of its selection.
        carets: Vec<(usize, usize)>,
    },
    /// Rescans all volumes.
    Rescan,
    /// Saves everything now: ends edit bursts and writes files.
    Save,
    /// Stores new settings.
    Set {
        /// The settings to store.
        settings: Box<Settings>,
    },
}
