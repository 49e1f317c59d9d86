//! Every key that stands in a document, in one place: a key is a promise to every other version of the program.

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
/// Block: its text.
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

/// Workspace: map of volume id to volume.
pub(crate) const VOLUMES: &str = "volumes";
/// Workspace: map of device id to device.
pub(crate) const DEVICES: &str = "devices";
/// Workspace: settings shared by all devices.
pub(crate) const SETTINGS: &str = "settings";

/// Outputs: map of execution id to execution.
pub(crate) const EXECUTIONS: &str = "executions";
/// Outputs: the blob (JSON) that keeps the notebook that the note was imported from.
pub(crate) const NOTEBOOK: &str = "notebook";
/// Execution: block id of its cell.
pub(crate) const CELL: &str = "cell";
/// Execution: hash of the code that ran.
pub(crate) const CODE: &str = "code";
/// Execution: milliseconds since 1970 when it was asked for.
pub(crate) const STARTED: &str = "started";
/// Execution: milliseconds that it took.
pub(crate) const DURATION: &str = "duration";
/// Execution: `queued`, `running`, `ok`, `error`, `interrupted`, `died`.
pub(crate) const STATUS: &str = "status";
/// Execution: the kernel's execution count.
pub(crate) const COUNT: &str = "count";
/// Execution: JSON, name to the executions that had bound it when the cell ran.
pub(crate) const INPUTS: &str = "inputs";
/// Execution: map of eight-digit number to output, JSON in nbformat's output form.
pub(crate) const OUTPUTS: &str = "outputs";
