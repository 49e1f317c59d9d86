//! All keys in documents, in one place: a key is a promise to every other version of the program.

/// `[major, minor]`, in every document.
pub(crate) const SCHEMA: &str = "schema";
/// The document's kind, in every document.
pub(crate) const KIND: &str = "kind";

/// Note: map of block id to block.
pub(crate) const BLOCKS: &str = "blocks";
/// Note: typed properties (filled by a later issue; the map is part of the frozen first change).
pub(crate) const PROPERTIES: &str = "properties";
/// Block: fractional position, a string that sorts by bytes.
pub(crate) const POS: &str = "pos";
/// In a block: its text.
pub(crate) const TEXT: &str = "text";

/// Volume: map of file id to file.
pub(crate) const FILES: &str = "files";
/// Volume: its name. File: its path inside the volume, `/` between parts.
pub(crate) const NAME: &str = "name";
/// File: path inside the volume.
pub(crate) const PATH: &str = "path";
/// File: `note` or `attachment`.
pub(crate) const FILE_KIND: &str = "kind";
/// File: set when it was removed; the entry stays so that a concurrent rename is not lost silently.
pub(crate) const GONE: &str = "gone";
/// In a file: heads of its document when it was deleted, as the deleting device knew them.
pub(crate) const LAST_HEADS: &str = "last";
/// File: of an attachment, the hash of its bytes, a space, and how many they are.
pub(crate) const BYTES: &str = "bytes";

/// Volume: before the id of a session that belongs to it: empty, or [`GONE`] and the heads that it had.
pub(crate) const SESSION: &str = "session:";
/// Volume: the same of a run.
pub(crate) const RUN: &str = "run:";

/// Workspace: map of volume id to volume.
pub(crate) const VOLUMES: &str = "volumes";
/// Workspace: map of device id to device.
pub(crate) const DEVICES: &str = "devices";
/// Devices: map of key to when it was revoked, milliseconds since 1970.
pub(crate) const REVOKED: &str = "revoked";
/// Workspace: settings shared by all devices.
pub(crate) const SETTINGS: &str = "settings";

/// Outputs: map of execution id to execution.
pub(crate) const EXECUTIONS: &str = "executions";
/// Outputs: the blob (JSON) that keeps the notebook that the note was imported from.
pub(crate) const NOTEBOOK: &str = "notebook";
/// Outputs: before the name (a hash) of a generated view in the note: `yes` where the user wants it drawn, else `no`.
pub(crate) const VIEW: &str = "view:";
/// Execution: block id of its cell.
pub(crate) const CELL: &str = "cell";
/// Execution: hash of the code that ran.
pub(crate) const CODE: &str = "code";
/// In an execution: when it was requested, in milliseconds since 1970.
pub(crate) const STARTED: &str = "started";
/// Execution: milliseconds that it took.
pub(crate) const DURATION: &str = "duration";
/// Execution: `queued`, `running`, `ok`, `error`, `interrupted`, `died`.
pub(crate) const STATUS: &str = "status";
/// Execution: the kernel's execution count.
pub(crate) const COUNT: &str = "count";
/// Execution: whether its result was one that had been kept.
pub(crate) const CACHED: &str = "cached";
/// Execution: JSON, name to the executions that had bound it when the cell ran.
pub(crate) const INPUTS: &str = "inputs";
/// Execution: map of eight-digit number to output, JSON in nbformat's output form.
pub(crate) const OUTPUTS: &str = "outputs";

/// Session: map of message id to message, JSON of [`crate::Message`]: a message never changes.
pub(crate) const MESSAGES: &str = "messages";
/// In a session: its metadata: `title`, `head` (the current message).
pub(crate) const ABOUT: &str = "about";
/// In a run's metadata: the device that it runs on, as JSON.
pub(crate) const DEVICE: &str = "device";
/// Run: map of step id to step, JSON of [`crate::ExecutionStep`]: a step never changes.
pub(crate) const STEPS: &str = "steps";
/// Run: map of todo id to todo.
pub(crate) const TODOS: &str = "todos";
/// Run: map of approval id to approval.
pub(crate) const APPROVALS: &str = "approvals";
/// Run: map of number to what it changed.
pub(crate) const CHANGES: &str = "changes";
/// In an approval: the request as JSON. In a change: the change as JSON.
pub(crate) const ASKED: &str = "asked";
/// Approval: JSON of the decision.
pub(crate) const DECIDED: &str = "decided";
/// Change: JSON, the numbers of its hunks that were taken back.
pub(crate) const UNDONE: &str = "undone";
/// In a todo: `content`, `status`, `priority`, `due`, `repeat`, besides [`POS`] and [`GONE`].
pub(crate) const CONTENT: &str = "content";
/// Todo: from 0 to 5.
pub(crate) const PRIORITY: &str = "priority";
/// In a todo: the day it's due, `YYYY-MM-DD`.
pub(crate) const DUE: &str = "due";
/// Todo: how it comes again.
pub(crate) const REPEAT: &str = "repeat";
/// In the registry: map of tool id to tool, a map of version number to JSON besides [`STATUS`].
pub(crate) const TOOLS: &str = "tools";
