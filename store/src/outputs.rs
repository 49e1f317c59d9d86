//! The outputs document of a note: executions of its cells and their outputs, separate from the note's text.
//!
//! Outputs are stored in nbformat's output form (https://nbformat.readthedocs.io, version 4.5), one JSON value each.
//! Large ones are stored as blobs and only referenced here.

use crate::document::{self, LoadedDocument};
use crate::error::StoreError;
use crate::id::{BlobHash, BlockId, DocId, ExecutionId};
use crate::keys;
use crate::note::find_container;
use crate::schema::DocumentKind;
use automerge::transaction::{CommitOptions, Transactable, Transaction};
use automerge::{ActorId, Automerge, AutomergeError, ObjId, ObjType, ReadDoc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Status of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionStatus {
    /// Waiting for the kernel.
    Queued,
    /// Running in the kernel.
    Running,
    /// Finished without an exception.
    Ok,
    /// Ended with an exception.
    Error,
    /// Stopped by the user, or because the program ended.
    Interrupted,
    /// The kernel's process ended during the execution.
    Died,
}

impl ExecutionStatus {
    /// Returns the name used in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            ExecutionStatus::Queued => "queued",
            ExecutionStatus::Running => "running",
            ExecutionStatus::Ok => "ok",
            ExecutionStatus::Error => "error",
            ExecutionStatus::Interrupted => "interrupted",
            ExecutionStatus::Died => "died",
        }
    }

    /// Whether the execution has ended.
    pub fn is_final(self) -> bool {
        !matches!(self, ExecutionStatus::Queued | ExecutionStatus::Running)
    }

    /// Parses a stored status. An execution that was running when the program ended becomes interrupted.
    fn from_stored(word: &str) -> ExecutionStatus {
        match word {
            "ok" => ExecutionStatus::Ok,
            "error" => ExecutionStatus::Error,
            "died" => ExecutionStatus::Died,
            _ => ExecutionStatus::Interrupted,
        }
    }
}

/// A reference to bytes too large for a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRef {
    /// Hash of the bytes, the name of the blob.
    pub blob: BlobHash,
    /// Media type of the bytes, such as `image/png`.
    pub mime: String,
    /// Length in bytes.
    pub size: u64,
}

/// Content of an output, in nbformat's form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "output_type", rename_all = "snake_case")]
pub enum OutputBody {
    /// Text printed to a stream.
    Stream {
        /// `stdout` or `stderr`.
        name: String,
        /// The printed text.
        text: String,
    },
    /// The value of the last expression.
    ExecuteResult {
        /// The kernel's execution counter.
        execution_count: Option<u64>,
        /// Media type to content.
        data: serde_json::Map<String, serde_json::Value>,
        /// Jupyter metadata by media type.
        #[serde(default)]
        metadata: serde_json::Map<String, serde_json::Value>,
    },
    /// A value displayed during the execution.
    DisplayData {
        /// Media type to content.
        data: serde_json::Map<String, serde_json::Value>,
        /// Jupyter metadata by media type.
        #[serde(default)]
        metadata: serde_json::Map<String, serde_json::Value>,
    },
    /// A Python exception.
    Error {
        /// The exception's class name.
        ename: String,
        /// The exception's message.
        evalue: String,
        /// The traceback, one entry per line.
        traceback: Vec<String>,
    },
}

/// One output. If the body holds only its beginning, a blob holds the full output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellOutput {
    /// Content of the output, by kind.
    #[serde(flatten)]
    pub body: OutputBody,
    /// The full output, if the body was truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<BlobRef>,
}

/// One execution of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// Unique id of the execution.
    pub id: ExecutionId,
    /// The cell that was run.
    pub cell: BlockId,
    /// BLAKE3 hash (16 hexadecimal digits) of the code that ran: a cell whose code differs is stale.
    pub code: String,
    /// When it was requested, in milliseconds since 1970.
    pub started: i64,
    /// Duration in milliseconds, without the waits for answers; `None` while it's running, or if unknown.
    pub duration: Option<u64>,
    /// Time spent waiting for answers so far, in milliseconds.
    #[serde(skip)]
    pub waited: u64,
    /// How the execution ended, or that it's running.
    pub status: ExecutionStatus,
    /// The kernel's execution count.
    pub count: Option<u64>,
    /// Whether nothing ran, because a pure cell's result came from the cache.
    #[serde(default)]
    pub cached: bool,
    /// Everything that the cell printed and returned.
    pub outputs: Vec<CellOutput>,
    /// Names that it used, each with the executions that had assigned it; `None` if unknown.
    #[serde(skip)]
    pub inputs: Option<BTreeMap<String, Vec<ExecutionId>>>,
}

impl Execution {
    /// Whether the cell waited for the kernel and was canceled before it ran: a cell that ran has a duration.
    pub fn is_canceled_in_queue(&self) -> bool {
        self.status == ExecutionStatus::Interrupted && self.duration.is_none() && self.outputs.is_empty()
    }

    /// Returns about how many bytes the outputs take in the document.
    pub fn output_bytes(&self) -> usize {
        let bytes = |output: &CellOutput| match &output.body {
            OutputBody::Stream { text, .. } => text.len(),
            OutputBody::ExecuteResult { .. } | OutputBody::DisplayData { .. } | OutputBody::Error { .. } => 1_024,
        };
        self.outputs.iter().map(bytes).sum()
    }

    /// Returns a cell's result in a form that can be compared between runs, without counts and addresses.
    pub fn comparable_result(&self) -> String {
        let mut text = self.status.as_str().to_owned();
        for output in &self.outputs {
            let mut body = serde_json::to_value(&output.body).unwrap_or_default();
            if let Some(body) = body.as_object_mut() {
                body.remove("execution_count");
            }
            text.push_str(&body.to_string());
            text.push_str(&output.whole.as_ref().map(|whole| whole.blob.to_string()).unwrap_or_default());
        }
        let mut plain = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(at) = rest.find("0x") {
            let digits = rest[at + 2..].bytes().take_while(u8::is_ascii_hexdigit).count();
            plain.push_str(&rest[..at + 2]);
            if digits < 6 {
                plain.push_str(&rest[at + 2..at + 2 + digits]);
            }
            rest = &rest[at + 2 + digits..];
        }
        plain + rest
    }
}

/// The automerge document of a note's outputs.
pub struct OutputsDoc {
    doc: Automerge,
    executions: ObjId,
}

impl std::fmt::Debug for OutputsDoc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OutputsDoc")
    }
}

impl OutputsDoc {
    /// Loads the outputs from their chunks. Further changes are written under `actor`.
    ///
    /// # Errors
    /// Returns an error if the document is damaged, has a newer schema, or is of another kind.
    pub fn load(id: DocId, chunks: &[Vec<u8>], actor: ActorId) -> Result<LoadedDocument<OutputsDoc>, StoreError> {
        let LoadedDocument { doc, bad_chunks: bad } =
            document::load_document(id, DocumentKind::Outputs, chunks, actor)?;
        let executions = find_container(&doc, id, keys::EXECUTIONS)?;
        Ok(LoadedDocument { doc: OutputsDoc { doc, executions }, bad_chunks: bad })
    }

    /// Saves the whole document as one chunk.
    pub fn save(&self) -> Vec<u8> {
        self.doc.save()
    }

    /// Returns the latest execution of each cell, oldest first.
    pub fn latest_executions(&self) -> Vec<Execution> {
        let keys: Vec<String> = self.doc.keys(&self.executions).collect();
        let mut all: Vec<Execution> = keys.iter().filter_map(|key| self.read_execution(key)).collect();
        all.sort_by_key(|execution| (execution.started, execution.id));
        let mut latest: Vec<Execution> = Vec::new();
        for execution in all.into_iter().rev() {
            if latest.iter().all(|later| later.cell != execution.cell) {
                latest.push(execution);
            }
        }
        latest.reverse();
        latest
    }

    /// Writes executions in their current state (new ones, or further outputs of known ones). Returns the chunk to
    /// append.
    ///
    /// # Errors
    /// Returns automerge's error if the change fails.
    pub fn commit(&mut self, executions: &[&Execution], time: i64) -> Result<Vec<u8>, StoreError> {
        let before = self.doc.get_heads();
        let container = &self.executions;
        let made = self.doc.transact_with::<_, _, AutomergeError, _>(
            |()| CommitOptions::default().with_time(time),
            |tx| executions.iter().try_for_each(|execution| write_execution(tx, container, execution)),
        );
        made.map_err(|failure| StoreError::Automerge(failure.error))?;
        Ok(document::save_since(&self.doc, &before))
    }

    /// Whether the user wants the generated view with this hash rendered; `None` if that wasn't set.
    pub fn is_view_shown(&self, view: BlobHash) -> Option<bool> {
        let (value, _) = self.doc.get(automerge::ROOT, format!("{}{view}", keys::VIEW)).ok()??;
        value.as_str().map(|word| word == "yes")
    }

    /// Sets whether the generated view with this hash is rendered. Returns the chunk to append.
    ///
    /// # Errors
    /// Returns automerge's error if the change fails.
    pub fn set_view_shown(&mut self, view: BlobHash, shown: bool, time: i64) -> Result<Vec<u8>, StoreError> {
        let before = self.doc.get_heads();
        let word = if shown { "yes" } else { "no" };
        let made = self.doc.transact_with::<_, _, AutomergeError, _>(
            |()| CommitOptions::default().with_time(time),
            |tx| tx.put(automerge::ROOT, format!("{}{view}", keys::VIEW), word),
        );
        made.map_err(|failure| StoreError::Automerge(failure.error))?;
        Ok(document::save_since(&self.doc, &before))
    }

    /// Merges changes from another device.
    ///
    /// # Errors
    /// Returns [`StoreError::Damaged`] if the bytes can't be read. Nothing is merged then.
    pub fn merge(&mut self, id: DocId, bytes: &[u8]) -> Result<(), StoreError> {
        document::merge_changes(id, &mut self.doc, bytes, None, |_| {}).map(|_| ())
    }

    /// Returns the blobs that the document refers to: large outputs of each cell's latest execution, and the notebook.
    pub fn blob_refs(&self) -> Vec<BlobRef> {
        let outputs = self.latest_executions().into_iter().flat_map(|execution| execution.outputs);
        outputs.filter_map(|output| output.whole).chain(self.notebook_blob()).collect()
    }

    /// Returns the blob with the notebook that the note was imported from.
    pub fn notebook_blob(&self) -> Option<BlobRef> {
        let (value, _) = self.doc.get(automerge::ROOT, keys::NOTEBOOK).ok()??;
        serde_json::from_str(value.as_str()?).ok()
    }

    /// Sets the notebook that the note was imported from. Returns the chunk to append.
    ///
    /// # Errors
    /// Returns automerge's error if the change fails.
    pub fn set_notebook_blob(&mut self, notebook: &BlobRef, time: i64) -> Result<Vec<u8>, StoreError> {
        let before = self.doc.get_heads();
        let json = serde_json::to_string(notebook).unwrap_or_default();
        let made = self.doc.transact_with::<_, _, AutomergeError, _>(
            |()| CommitOptions::default().with_time(time),
            |tx| tx.put(automerge::ROOT, keys::NOTEBOOK, json),
        );
        made.map_err(|failure| StoreError::Automerge(failure.error))?;
        Ok(document::save_since(&self.doc, &before))
    }

    /// Returns the announcement of the kernel's newest state, if a device shares it.
    pub fn shared_state(&self) -> Option<String> {
        let (value, _) = self.doc.get(automerge::ROOT, keys::SHARED_STATE).ok()??;
        value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// Sets the announcement of the kernel's newest state; `None` if it is no longer shared. Returns the chunk to
    /// append.
    ///
    /// # Errors
    /// Returns automerge's error if the change fails.
    pub fn set_shared_state(&mut self, announcement: Option<&str>, time: i64) -> Result<Vec<u8>, StoreError> {
        let before = self.doc.get_heads();
        let made = self.doc.transact_with::<_, _, AutomergeError, _>(
            |()| CommitOptions::default().with_time(time),
            |tx| tx.put(automerge::ROOT, keys::SHARED_STATE, announcement.unwrap_or_default()),
        );
        made.map_err(|failure| StoreError::Automerge(failure.error))?;
        Ok(document::save_since(&self.doc, &before))
    }

    fn read_execution(&self, key: &str) -> Option<Execution> {
        let id = key.parse().ok()?;
        let (_, execution) = self.doc.get(&self.executions, key).ok()??;
        let word = |key: &str| {
            let (value, _) = self.doc.get(&execution, key).ok()??;
            value.as_str().map(str::to_owned)
        };
        let number = |key: &str| {
            let (value, _) = self.doc.get(&execution, key).ok()??;
            value.as_i64()
        };
        let mut outputs = Vec::new();
        if let Some((_, list)) = self.doc.get(&execution, keys::OUTPUTS).ok()? {
            for key in self.doc.keys(&list) {
                let (value, _) = self.doc.get(&list, key.as_str()).ok()??;
                outputs.extend(value.as_str().and_then(|json| serde_json::from_str(json).ok()));
            }
        }
        Some(Execution {
            id,
            cell: word(keys::CELL)?.parse().ok()?,
            code: word(keys::CODE).unwrap_or_default(),
            started: number(keys::STARTED).unwrap_or(0),
            duration: number(keys::DURATION).and_then(|ms| u64::try_from(ms).ok()),
            waited: 0,
            status: ExecutionStatus::from_stored(&word(keys::STATUS).unwrap_or_default()),
            count: number(keys::COUNT).and_then(|count| u64::try_from(count).ok()),
            cached: self
                .doc
                .get(&execution, keys::CACHED)
                .ok()?
                .is_some_and(|(value, _)| value.as_bool() == Some(true)),
            outputs,
            inputs: word(keys::INPUTS).and_then(|json| serde_json::from_str(&json).ok()),
        })
    }
}

fn write_execution(tx: &mut Transaction<'_>, container: &ObjId, execution: &Execution) -> Result<(), AutomergeError> {
    let key = execution.id.to_string();
    let known = tx.get(container, key.as_str())?;
    let object = match known {
        Some((_, object)) => object,
        None => {
            let object = tx.put_object(container, key.as_str(), ObjType::Map)?;
            tx.put(&object, keys::CELL, execution.cell.to_string())?;
            tx.put(&object, keys::CODE, execution.code.as_str())?;
            tx.put(&object, keys::STARTED, execution.started)?;
            tx.put_object(&object, keys::OUTPUTS, ObjType::Map)?;
            object
        }
    };
    tx.put(&object, keys::STATUS, execution.status.as_str())?;
    if let Some(duration) = execution.duration {
        tx.put(&object, keys::DURATION, i64::try_from(duration).unwrap_or(i64::MAX))?;
    }
    if let Some(count) = execution.count {
        tx.put(&object, keys::COUNT, i64::try_from(count).unwrap_or(i64::MAX))?;
    }
    if execution.cached {
        tx.put(&object, keys::CACHED, true)?;
    }
    if let Some(inputs) = &execution.inputs {
        let json = serde_json::to_string(inputs).unwrap_or_default();
        let same = tx.get(&object, keys::INPUTS)?.is_some_and(|(old, _)| old.as_str() == Some(json.as_str()));
        if !same {
            tx.put(&object, keys::INPUTS, json)?;
        }
    }
    let Some((_, list)) = tx.get(&object, keys::OUTPUTS)? else { return Ok(()) };
    for (at, output) in execution.outputs.iter().enumerate() {
        let key = format!("{at:08}");
        let json = serde_json::to_string(output).unwrap_or_default();
        let same = tx.get(&list, key.as_str())?.is_some_and(|(old, _)| old.as_str() == Some(json.as_str()));
        if !same {
            tx.put(&list, key.as_str(), json)?;
        }
    }
    Ok(())
}
