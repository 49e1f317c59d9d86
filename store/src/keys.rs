//! All keys in documents, in one place. A key must stay compatible with every other version of the program.

/// In every document: the schema version as `[major, minor]`.
pub(crate) const SCHEMA: &str = "schema";
/// In every document: its kind.
pub(crate) const KIND: &str = "kind";

/// In a note: map of block id to block.
pub(crate) const BLOCKS: &str = "blocks";
/// In a note: typed properties (used by a later issue; the map is part of the frozen first change).
pub(crate) const PROPERTIES: &str = "properties";
/// In a block: its position, a fractional index as a string that sorts by bytes.
pub(crate) const POS: &str = "pos";
/// In a block: its text.
pub(crate) const TEXT: &str = "text";

/// In a volume: map of file id to file.
pub(crate) const FILES: &str = "files";
/// In a volume: its name. In a file: its path inside the volume, with `/` between parts.
pub(crate) const NAME: &str = "name";
/// In a file: its path inside the volume.
pub(crate) const PATH: &str = "path";
/// In a file: `note` or `attachment`.
pub(crate) const FILE_KIND: &str = "kind";
/// In a file: set when it was removed. The entry stays so that a concurrent rename isn't lost silently.
pub(crate) const GONE: &str = "gone";
/// In a file: heads of its document when it was deleted, as the deleting device knew them.
pub(crate) const LAST_HEADS: &str = "last";
/// In the file of an attachment: the hash of its bytes, a space, and their number.
pub(crate) const BYTES: &str = "bytes";

/// In a volume: prefix of the id of a session that belongs to it. The value is empty, or [`GONE`] and the heads that it
/// had.
pub(crate) const SESSION: &str = "session:";
/// In a volume: prefix of the id of a run that belongs to it, with the same values.
pub(crate) const RUN: &str = "run:";

/// In a workspace: map of volume id to volume.
pub(crate) const VOLUMES: &str = "volumes";
/// In a workspace: map of device id to device.
pub(crate) const DEVICES: &str = "devices";
/// In a devices document: map of key to the time of its revocation, in milliseconds since 1970.
pub(crate) const REVOKED: &str = "revoked";
/// In a workspace: settings shared by all devices.
pub(crate) const SETTINGS: &str = "settings";

/// In outputs: map of execution id to execution.
pub(crate) const EXECUTIONS: &str = "executions";
/// In outputs: the blob (JSON) with the notebook that the note was imported from.
pub(crate) const NOTEBOOK: &str = "notebook";
/// In outputs: the announcement (JSON) of the kernel's newest state, if a device shares it, otherwise empty.
pub(crate) const SHARED_STATE: &str = "state";
/// In outputs: prefix of the name (a hash) of a generated view in the note. The value is `yes` if the user wants it
/// rendered, else `no`.
pub(crate) const VIEW: &str = "view:";
/// In an execution: block id of its cell.
pub(crate) const CELL: &str = "cell";
/// In an execution: hash of the code that ran.
pub(crate) const CODE: &str = "code";
/// In an execution: when it was requested, in milliseconds since 1970.
pub(crate) const STARTED: &str = "started";
/// In an execution: duration in milliseconds.
pub(crate) const DURATION: &str = "duration";
/// In an execution: `queued`, `running`, `ok`, `error`, `interrupted` or `died`.
pub(crate) const STATUS: &str = "status";
/// In the registry: the highest version of a tool that was ever approved.
pub(crate) const REVIEWED: &str = "reviewed";
/// In an execution: the kernel's execution count.
pub(crate) const COUNT: &str = "count";
/// In an execution: whether its result came from the cache.
pub(crate) const CACHED: &str = "cached";
/// In an execution: JSON map of name to the executions that had bound it when the cell ran.
pub(crate) const INPUTS: &str = "inputs";
/// In an execution: map of eight-digit number to output, as JSON in nbformat's output form.
pub(crate) const OUTPUTS: &str = "outputs";

/// In a session: map of message id to message, as JSON of [`crate::Message`]. A message never changes.
pub(crate) const MESSAGES: &str = "messages";
/// In a session: its metadata, such as `title` and `head` (the current message).
pub(crate) const ABOUT: &str = "about";
/// In a run's metadata: the device that it runs on, as JSON.
pub(crate) const DEVICE: &str = "device";
/// In a run: map of step id to step, as JSON of [`crate::ExecutionStep`]. A step never changes.
pub(crate) const STEPS: &str = "steps";
/// In a run: map of todo id to todo.
pub(crate) const TODOS: &str = "todos";
/// In a run: map of approval id to approval.
pub(crate) const APPROVALS: &str = "approvals";
/// In a run: map of number to a change that the run made.
pub(crate) const CHANGES: &str = "changes";
/// In an approval: the request as JSON. In a change: the change as JSON.
pub(crate) const ASKED: &str = "asked";
/// In an approval: JSON of the decision.
pub(crate) const DECIDED: &str = "decided";
/// In a change: JSON with the numbers of its reverted hunks.
pub(crate) const UNDONE: &str = "undone";
/// In a todo: `content`, `status`, `priority`, `due` and `repeat`, besides [`POS`] and [`GONE`].
pub(crate) const CONTENT: &str = "content";
/// In a todo: priority from 0 to 5.
pub(crate) const PRIORITY: &str = "priority";
/// In a todo: the day it's due, `YYYY-MM-DD`.
pub(crate) const DUE: &str = "due";
/// In a todo: recurrence rule.
pub(crate) const REPEAT: &str = "repeat";
/// In the registry: map of tool id to tool, a map of version number to JSON besides [`STATUS`].
pub(crate) const TOOLS: &str = "tools";
