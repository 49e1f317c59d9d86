//! The run document: the execution graph of an agent's run. It contains steps with their parents, todos, approvals and
//! changes.

use crate::conversation::{CallUsage, ExecutionStep, StepKind, TodoItem, TodoStatus};
use crate::document::{self, LoadedDocument};
use crate::error::StoreError;
use crate::id::{BlobHash, DocId, MessageId, StepId};
use crate::keys;
use crate::note::find_container;
use crate::schema::DocumentKind;
use automerge::transaction::{CommitOptions, Transactable, Transaction};
use automerge::{ActorId, Automerge, AutomergeError, ObjId, ObjType, ReadDoc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What an agent is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentState {
    /// Not working: the run has ended or waits for a decision.
    #[default]
    Idle,
    /// A model is being called.
    Thinking,
    /// Tool calls are being executed.
    Executing,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnding {
    /// Ended with a final answer.
    Done,
    /// The user stopped it.
    Cancelled,
    /// An error occurred; the run can be resumed.
    Failed,
    /// It reached its limit of iterations; it can be resumed with a higher limit.
    Limit,
    /// The budget was spent; it can be resumed with a higher one.
    Budget,
}

/// Who or what started a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "lowercase")]
pub enum RunOrigin {
    /// The user, directly.
    #[default]
    User,
    /// One of the user's schedules.
    Schedule {
        /// The schedule that started it.
        schedule: DocId,
    },
    /// Another run, whose agent delegated part of its work.
    Agent {
        /// The run whose agent started it.
        run: DocId,
    },
    /// Another device, whose user sent it over a hub. Only a worker with the hub's claim carries it out.
    Device,
}

/// Metadata of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunAbout {
    /// The session that the run belongs to.
    pub session: DocId,
    /// The message that the run answers.
    pub asked: MessageId,
    /// The last message of the branch that the run added.
    pub head: MessageId,
    /// The volume that the run works in.
    pub volume: DocId,
    /// The note in which the user asked.
    pub note: Option<DocId>,
    /// The user's message that the run answers.
    pub prompt: String,
    /// Name of the agent that runs.
    pub agent: String,
    /// When the run started, in milliseconds since 1970.
    pub start_time: i64,
    /// When the run ended, in milliseconds since 1970; `None` while it's active.
    pub ended: Option<i64>,
    /// How the run ended; `None` while it's active.
    pub ending: Option<RunEnding>,
    /// Number of model calls so far.
    pub iteration: u64,
    /// Maximum number of model calls.
    pub limit: u64,
    /// Current state of the agent.
    pub agent_state: AgentState,
    /// Tokens and money used so far.
    pub spent: CallUsage,
    /// Maximum cost in US dollars including delegated runs; `None` for no limit of its own.
    pub budget: Option<f64>,
    /// Who or what started the run.
    #[serde(default)]
    pub origin: RunOrigin,
    /// Current phase, from 1, if the agent works in phases; otherwise 0.
    #[serde(default)]
    pub phase: u8,
    /// For an imported run: other content of its file, kept for export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Box<Value>>,
    /// Name of the only provider that may be asked, if the user chose one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// When the run ends at the latest, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<i64>,
    /// Whether it only repeats a trace, and fails if none fits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_follower: bool,
}

/// The device that owns a run. Only this device continues it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDevice {
    /// Id of the device's workspace.
    pub id: DocId,
    /// Name of the device.
    pub name: String,
}

/// The calls that a decision applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecisionScope {
    /// For this call only.
    #[default]
    Once,
    /// For similar calls in this run.
    Run,
    /// For all runs in this volume.
    Project,
    /// For all runs in all volumes.
    Always,
}

/// Who decided on an approval; a string in the document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum DecisionMaker {
    /// The user.
    User,
    /// Nobody: the approval expired.
    Timeout,
    /// Nobody: the run was canceled.
    Cancelled,
    /// A rule of the policy.
    Policy,
    /// An unknown value, written by another version of the program.
    Other(String),
}

impl DecisionMaker {
    /// Returns the value used in documents.
    pub fn as_str(&self) -> &str {
        match self {
            DecisionMaker::User => "user",
            DecisionMaker::Timeout => "timeout",
            DecisionMaker::Cancelled => "cancelled",
            DecisionMaker::Policy => "policy",
            DecisionMaker::Other(text) => text,
        }
    }
}

impl From<String> for DecisionMaker {
    fn from(text: String) -> DecisionMaker {
        let known = [DecisionMaker::User, DecisionMaker::Timeout, DecisionMaker::Cancelled, DecisionMaker::Policy];
        known.into_iter().find(|known| known.as_str() == text).unwrap_or(DecisionMaker::Other(text))
    }
}

impl From<DecisionMaker> for String {
    fn from(maker: DecisionMaker) -> String {
        maker.as_str().to_owned()
    }
}

/// A decision on an approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// Whether the call is allowed.
    pub allowed: bool,
    /// The calls that the decision applies to.
    pub scope: DecisionScope,
    /// Who decided.
    pub by: DecisionMaker,
    /// When the decision was made, in milliseconds since 1970.
    pub at: i64,
    /// The user's changed arguments, which replace the original ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Map<String, Value>>,
    /// The user's comment, which is passed to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

impl DecisionRecord {
    /// Returns a decision of the user, without a comment. Its time is filled in when it's recorded.
    pub fn by_user(allowed: bool, scope: DecisionScope) -> DecisionRecord {
        DecisionRecord { allowed, scope, by: DecisionMaker::User, at: 0, arguments: None, comment: None }
    }
}

/// A request for the user's approval, pending or decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunApproval {
    /// Id of the approval: the id of the call, with a suffix for repeated requests.
    pub id: String,
    /// The step that needs the approval.
    pub step: StepId,
    /// Name of the tool that needs approval.
    pub tool: String,
    /// Arguments of the call.
    pub arguments: Map<String, Value>,
    /// Effect of the call, as a sentence.
    pub what: String,
    /// Why approval is needed, as a sentence.
    pub reason: String,
    /// When approval was requested, in milliseconds since 1970.
    pub asked: i64,
    /// When it expires and counts as denied, in milliseconds since 1970.
    pub expires: i64,
    /// Code that would run and isn't part of the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<CodePiece>,
    /// Hash of the tool's definition, for tools that can change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Addresses outside of the public internet that the call would connect to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// What a permanent decision would cover, as a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reach: String,
    /// The decision; `None` while it's pending.
    #[serde(default)]
    pub decision: Option<DecisionRecord>,
}

impl RunApproval {
    /// Returns the id of the call that needs approval. Repeated requests for the same call have the ids `CALL~2`,
    /// `CALL~3`.
    pub fn call_id(&self) -> &str {
        self.id.split_once('~').map_or(&self.id, |(call, _)| call)
    }
}

/// Code that would run, with a title.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodePiece {
    /// Title, such as `Cell 3`.
    pub title: String,
    /// The source code.
    pub text: String,
}

/// A replaced piece of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextHunk {
    /// Start of the hunk, in bytes of the text after the change.
    pub at: usize,
    /// The text that was replaced.
    pub removed: String,
    /// The text that replaced it.
    pub inserted: String,
    /// The text just before the hunk, used to find it again after later changes.
    #[serde(default)]
    pub before: String,
    /// First line numbers in the old and the new text, from 1; `None` if an older version recorded the change.
    #[serde(default)]
    pub lines: Option<(u32, u32)>,
    /// Context lines before the hunk, for display.
    #[serde(default)]
    pub lines_before: String,
    /// Context lines after the hunk, for display.
    #[serde(default)]
    pub lines_after: String,
}

/// A change to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ChangeKind {
    /// A note was created.
    Created {
        /// The new file's text.
        text: String,
    },
    /// A note's text was changed.
    Edited {
        /// The changed places, in order.
        hunks: Vec<TextHunk>,
    },
    /// A file was moved to the trash.
    Deleted,
    /// The bytes of an attachment were changed; `None` if it didn't exist.
    Bytes {
        /// The bytes before the change; `None` if there was no file.
        before: Option<BlobHash>,
        /// The bytes after the change; `None` if the file was deleted.
        after: Option<BlobHash>,
    },
}

/// A change that a run made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunChange {
    /// Number of the change in the run, from 0.
    pub number: u64,
    /// The step that made it.
    pub step: StepId,
    /// The volume that holds the file.
    pub volume: DocId,
    /// Id of the file, if it has one.
    pub file: Option<DocId>,
    /// Path inside the volume.
    pub path: String,
    /// When the change was made, in milliseconds since 1970.
    pub at: i64,
    /// How the file was changed.
    pub what: ChangeKind,
    /// Indexes of reverted hunks; for a change without hunks, 0 means all of it.
    #[serde(default)]
    pub undone: Vec<usize>,
}

/// The automerge document of a run.
pub struct RunDoc {
    doc: Automerge,
    steps: ObjId,
    todos: ObjId,
    approvals: ObjId,
    changes: ObjId,
    about: ObjId,
}

impl std::fmt::Debug for RunDoc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RunDoc")
    }
}

/// Changes to write to a run's document in one commit.
#[derive(Clone, Debug, Default)]
pub struct RunWrite<'a> {
    /// Steps to add to the run.
    pub steps: Vec<&'a ExecutionStep>,
    /// The complete todo list in order, if it has changed. Todos that aren't in it are removed.
    pub todos: Option<&'a [TodoItem]>,
    /// New or decided approvals.
    pub approvals: Vec<&'a RunApproval>,
    /// New changes, or changes with other reverted hunks.
    pub changes: Vec<&'a RunChange>,
    /// New metadata of the run.
    pub about: Option<&'a RunAbout>,
    /// The device that owns the run.
    pub device: Option<&'a RunDevice>,
}

impl RunDoc {
    /// Loads a run from its chunks. Further changes are written under `actor`.
    ///
    /// # Errors
    /// Returns an error if the document is damaged, has a newer schema, or is of another kind.
    pub fn load(id: DocId, chunks: &[Vec<u8>], actor: ActorId) -> Result<LoadedDocument<RunDoc>, StoreError> {
        let LoadedDocument { doc, bad_chunks: bad } = document::load_document(id, DocumentKind::Run, chunks, actor)?;
        let [steps, todos, approvals, changes, about] =
            [keys::STEPS, keys::TODOS, keys::APPROVALS, keys::CHANGES, keys::ABOUT]
                .map(|key| find_container(&doc, id, key));
        let (steps, todos, approvals, changes, about) = (steps?, todos?, approvals?, changes?, about?);
        Ok(LoadedDocument { doc: RunDoc { doc, steps, todos, approvals, changes, about }, bad_chunks: bad })
    }

    /// Saves the whole document as one chunk.
    pub fn save(&self) -> Vec<u8> {
        self.doc.save()
    }

    fn read_json<T: for<'a> Deserialize<'a>>(&self, object: &ObjId, key: &str) -> Option<T> {
        let (value, _) = self.doc.get(object, key).ok()??;
        serde_json::from_str(value.as_str()?).ok()
    }

    /// Returns the run's metadata; `None` if it can't be parsed.
    pub fn about(&self) -> Option<RunAbout> {
        let mut whole = Map::new();
        for item in self.doc.map_range(&self.about, ..) {
            whole.extend(document::parse_json_value::<Value>(&item).map(|value| (item.key.to_string(), value)));
        }
        serde_json::from_value(Value::Object(whole)).ok()
    }

    /// Returns the device that owns the run; `None` if it wasn't recorded or can't be parsed.
    pub fn device(&self) -> Option<RunDevice> {
        self.read_json(&self.about, keys::DEVICE)
    }

    /// Returns all steps, oldest first, without unreadable ones.
    pub fn steps(&self) -> Vec<ExecutionStep> {
        let steps = self.doc.map_range(&self.steps, ..);
        let mut all: Vec<ExecutionStep> = steps.filter_map(|item| document::parse_json_value(&item)).collect();
        all.sort_by_key(|step| (step.timestamp, step.id));
        all
    }

    /// Returns the todos in order.
    pub fn todos(&self) -> Vec<TodoItem> {
        let mut all: Vec<(String, TodoItem)> = Vec::new();
        for id in self.doc.keys(&self.todos) {
            let Ok(Some((_, object))) = self.doc.get(&self.todos, id.as_str()) else { continue };
            let word = |key: &str| {
                let (value, _) = self.doc.get(&object, key).ok()??;
                value.as_str().map(str::to_owned)
            };
            if word(keys::GONE).is_some() {
                continue;
            }
            let status = word(keys::STATUS).and_then(|word| serde_json::from_value(Value::String(word)).ok());
            let priority = self.doc.get(&object, keys::PRIORITY).ok().flatten().and_then(|(value, _)| value.as_i64());
            let item = TodoItem {
                id: id.clone(),
                content: word(keys::CONTENT).unwrap_or_default(),
                status: status.unwrap_or(TodoStatus::Pending),
                priority: priority.and_then(|number| u8::try_from(number).ok()).unwrap_or(2).min(5),
                due: word(keys::DUE),
                repeat: word(keys::REPEAT),
            };
            all.push((word(keys::POS).unwrap_or_default(), item));
        }
        all.sort_by(|(one, item), (other, next)| (one, &item.id).cmp(&(other, &next.id)));
        all.into_iter().map(|(_, item)| item).collect()
    }

    /// Returns the approvals, oldest first.
    pub fn approvals(&self) -> Vec<RunApproval> {
        let mut all: Vec<RunApproval> = Vec::new();
        for id in self.doc.keys(&self.approvals) {
            let Ok(Some((_, object))) = self.doc.get(&self.approvals, id.as_str()) else { continue };
            let Some(mut approval) = self.read_json::<RunApproval>(&object, keys::ASKED) else { continue };
            approval.decision = self.read_json(&object, keys::DECIDED);
            all.push(approval);
        }
        all.sort_by(|one, other| (one.asked, &one.id).cmp(&(other.asked, &other.id)));
        all
    }

    /// Returns the changes in the order in which they were made.
    pub fn changes(&self) -> Vec<RunChange> {
        let mut all: Vec<RunChange> = Vec::new();
        for id in self.doc.keys(&self.changes) {
            let Ok(Some((_, object))) = self.doc.get(&self.changes, id.as_str()) else { continue };
            let Some(mut change) = self.read_json::<RunChange>(&object, keys::ASKED) else { continue };
            change.undone = self.read_json(&object, keys::UNDONE).unwrap_or_default();
            all.push(change);
        }
        all.sort_by_key(|change| change.number);
        all
    }

    /// Returns the blobs that it refers to, with their sizes if known: large results and their files, and changed files
    /// before and after. Blobs of hidden files stay on this device, like the files.
    pub fn blob_sizes(&self) -> BTreeMap<BlobHash, Option<u64>> {
        let mut blobs = BTreeMap::new();
        for change in self.changes().into_iter().filter(|change| !crate::volume::is_hidden(&change.path)) {
            if let ChangeKind::Bytes { before, after } = change.what {
                blobs.extend(before.into_iter().chain(after).map(|blob| (blob, None)));
            }
        }
        for step in self.steps() {
            if let StepKind::ToolResult { whole, attached, .. } = step.kind {
                blobs.extend(whole.into_iter().chain(attached).map(|blob| (blob.blob, Some(blob.size))));
            }
        }
        blobs
    }

    /// Commits changes to the run and returns the chunk to append.
    ///
    /// # Errors
    /// Returns automerge's error if the change fails.
    pub fn commit(&mut self, write: &RunWrite<'_>, time: i64) -> Result<Vec<u8>, StoreError> {
        let before = self.doc.get_heads();
        let (steps, todos, approvals, changes, about) =
            (&self.steps, &self.todos, &self.approvals, &self.changes, &self.about);
        let made = self.doc.transact_with::<_, _, AutomergeError, _>(
            |()| CommitOptions::default().with_time(time),
            |tx| {
                for step in &write.steps {
                    tx.put(steps, step.id.to_string(), serde_json::to_string(step).unwrap_or_default())?;
                }
                if let Some(items) = write.todos {
                    write_todos(tx, todos, items)?;
                }
                for approval in &write.approvals {
                    let object = ensure_entry(tx, approvals, &approval.id)?;
                    let asked = RunApproval { decision: None, ..(*approval).clone() };
                    put_json(tx, &object, keys::ASKED, &asked)?;
                    match &approval.decision {
                        Some(decision) => put_json(tx, &object, keys::DECIDED, decision)?,
                        None => put_optional_text(tx, &object, keys::DECIDED, None)?, // it's asked about anew
                    }
                }
                for change in &write.changes {
                    let object = ensure_entry(tx, changes, &format!("{:08}", change.number))?;
                    let made = RunChange { undone: Vec::new(), ..(*change).clone() };
                    put_json(tx, &object, keys::ASKED, &made)?;
                    put_json(tx, &object, keys::UNDONE, &change.undone)?;
                }
                if let Some(Ok(Value::Object(fields))) = write.about.map(serde_json::to_value) {
                    for (key, value) in &fields {
                        put_json(tx, about, key, value)?;
                    }
                }
                if let Some(device) = write.device {
                    put_json(tx, about, keys::DEVICE, device)?;
                }
                Ok(())
            },
        );
        made.map_err(|failure| StoreError::Automerge(failure.error))?;
        Ok(document::save_since(&self.doc, &before))
    }

    /// Merges changes from another device and returns the chunk to append.
    ///
    /// # Errors
    /// Returns [`StoreError::Damaged`] if the bytes can't be read completely. Nothing is merged then.
    pub fn merge(&mut self, id: DocId, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
        let before = self.doc.get_heads();
        document::merge_changes(id, &mut self.doc, bytes, None, |_| {})?;
        Ok(document::save_since(&self.doc, &before))
    }
}

fn ensure_entry(tx: &mut Transaction<'_>, container: &ObjId, key: &str) -> Result<ObjId, AutomergeError> {
    match tx.get(container, key)? {
        Some((_, object)) => Ok(object),
        None => tx.put_object(container, key, ObjType::Map),
    }
}

/// Writes a value as JSON, unless it's there already.
fn put_json<T: Serialize>(
    tx: &mut Transaction<'_>,
    object: &ObjId,
    key: &str,
    value: &T,
) -> Result<(), AutomergeError> {
    put_optional_text(tx, object, key, Some(&serde_json::to_string(value).unwrap_or_default()))
}

fn put_optional_text(
    tx: &mut Transaction<'_>,
    object: &ObjId,
    key: &str,
    value: Option<&str>,
) -> Result<(), AutomergeError> {
    let old = tx.get(object, key)?.and_then(|(old, _)| old.as_str().map(str::to_owned));
    match value {
        Some(value) if old.as_deref() != Some(value) => tx.put(object, key, value),
        None if old.is_some() => tx.delete(object, key),
        Some(_) | None => Ok(()),
    }
}

fn write_todos(tx: &mut Transaction<'_>, container: &ObjId, items: &[TodoItem]) -> Result<(), AutomergeError> {
    // Positions that are already in order stay, so that todos added by two devices at the same time don't conflict.
    let mut placed: BTreeMap<String, String> = BTreeMap::new();
    for id in tx.keys(container).collect::<Vec<_>>() {
        let Some((_, object)) = tx.get(container, id.as_str())? else { continue };
        if items.iter().all(|item| item.id != id) {
            put_optional_text(tx, &object, keys::GONE, Some("yes"))?;
        }
        let pos = tx.get(&object, keys::POS)?.and_then(|(value, _)| value.as_str().map(str::to_owned));
        placed.extend(pos.map(|pos| (id, pos)));
    }
    let mut last = String::new();
    for (at, item) in items.iter().enumerate() {
        let object = ensure_entry(tx, container, &item.id)?;
        let kept = placed.get(&item.id).filter(|pos| **pos > last).cloned();
        let pos = kept.unwrap_or_else(|| {
            let after = items[at + 1..].iter().find_map(|next| placed.get(&next.id).filter(|pos| **pos > last));
            let low = (!last.is_empty()).then_some(last.as_str());
            crate::position::position_between(low, after.map(String::as_str))
        });
        put_optional_text(tx, &object, keys::POS, Some(&pos))?;
        put_optional_text(tx, &object, keys::GONE, None)?;
        put_optional_text(tx, &object, keys::CONTENT, Some(&item.content))?;
        let status = serde_json::to_value(item.status).ok();
        put_optional_text(tx, &object, keys::STATUS, status.as_ref().and_then(Value::as_str))?;
        let priority = tx.get(&object, keys::PRIORITY)?.and_then(|(value, _)| value.as_i64());
        if priority != Some(i64::from(item.priority)) {
            tx.put(&object, keys::PRIORITY, i64::from(item.priority))?;
        }
        put_optional_text(tx, &object, keys::DUE, item.due.as_deref())?;
        put_optional_text(tx, &object, keys::REPEAT, item.repeat.as_deref())?;
        last = pos;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: DocId = DocId([9; 16]);

    fn device(actor: u8) -> RunDoc {
        RunDoc::load(ID, &[], ActorId::from([actor; 16])).expect("made").doc
    }

    fn todo(id: &str) -> TodoItem {
        let id = id.to_owned();
        TodoItem { content: format!("do {id}"), id, status: TodoStatus::Pending, priority: 2, due: None, repeat: None }
    }

    fn ids(doc: &RunDoc) -> Vec<String> {
        doc.todos().into_iter().map(|todo| todo.id).collect()
    }

    #[test]
    fn todos_are_ordered_added_and_removed_on_two_devices_at_once() {
        let (mut one, mut other) = (device(1), device(2));
        let write = |doc: &mut RunDoc, items: &[TodoItem]| {
            doc.commit(&RunWrite { todos: Some(items), ..RunWrite::default() }, 0).expect("kept")
        };
        let first = write(&mut one, &[todo("a"), todo("b"), todo("c")]);
        other.merge(ID, &first).expect("merged");
        let moved = write(&mut one, &[todo("c"), todo("a"), todo("b")]);
        let done = TodoItem { status: TodoStatus::Completed, ..todo("b") };
        let ticked = write(&mut other, &[todo("a"), done.clone(), todo("c"), todo("d")]);
        one.merge(ID, &ticked).expect("merged");
        other.merge(ID, &moved).expect("merged");
        assert_eq!(one.todos(), other.todos());
        assert_eq!(ids(&one).len(), 4);
        assert!(one.todos().contains(&done));
        write(&mut one, &[todo("d"), todo("a")]);
        assert_eq!(ids(&one), ["d", "a"]);
    }

    #[test]
    fn what_is_written_is_read() {
        let mut doc = device(1);
        let step = ExecutionStep {
            id: StepId(1),
            timestamp: 5,
            duration: Some(7),
            parents: vec![StepId(0)],
            kind: StepKind::FinalAnswer { content: "42".to_owned() },
            spent: None,
            route: None,
            tool: None,
        };
        let approval = RunApproval {
            id: "call".to_owned(),
            step: StepId(1),
            tool: "shell".to_owned(),
            arguments: Map::new(),
            what: "run ls".to_owned(),
            reason: "shell asks".to_owned(),
            asked: 5,
            expires: 9,
            code: vec![CodePiece { title: "Cell 1".to_owned(), text: "1".to_owned() }],
            definition: Some("ab".to_owned()),
            addresses: vec!["loopback address 127.0.0.1".to_owned()],
            reach: "this".to_owned(),
            decision: None,
        };
        let about = RunAbout {
            session: ID,
            asked: MessageId(1),
            head: MessageId(1),
            volume: ID,
            note: None,
            prompt: "why?".to_owned(),
            agent: "assistant".to_owned(),
            start_time: 5,
            ended: None,
            ending: None,
            iteration: 1,
            limit: 20,
            agent_state: AgentState::Executing,
            spent: CallUsage { input_tokens: 3, output_tokens: 4, cost: Some(0.25) },
            budget: Some(1.0),
            origin: RunOrigin::Agent { run: ID },
            phase: 4,
            imported: None,
            provider: Some("local".to_owned()),
            deadline: Some(7),
            is_follower: true,
        };
        let change = RunChange {
            number: 0,
            step: StepId(1),
            volume: ID,
            file: None,
            path: "a.csv".to_owned(),
            at: 6,
            what: ChangeKind::Bytes { before: None, after: Some(BlobHash::of(b"1")) },
            undone: vec![0],
        };
        let write = RunWrite {
            steps: vec![&step],
            todos: None,
            approvals: vec![&approval],
            changes: vec![&change],
            about: Some(&about),
            device: Some(&RunDevice { id: ID, name: "desk".to_owned() }),
        };
        doc.commit(&write, 0).expect("kept");
        let decision = DecisionRecord {
            allowed: false,
            scope: DecisionScope::Once,
            by: DecisionMaker::User,
            at: 8,
            arguments: None,
            comment: None,
        };
        let decided = RunApproval { decision: Some(decision), ..approval };
        doc.commit(&RunWrite { approvals: vec![&decided], ..RunWrite::default() }, 0).expect("kept");
        let doc = RunDoc::load(ID, &[doc.save()], ActorId::from([2; 16])).expect("read").doc;
        assert_eq!(doc.steps(), std::slice::from_ref(&step));
        assert_eq!(doc.approvals(), [decided]);
        assert_eq!(doc.changes(), std::slice::from_ref(&change));
        assert_eq!(doc.about(), Some(about));
        assert_eq!(doc.device().map(|device| device.name).as_deref(), Some("desk"));
        // The referenced blobs: large results, and changed files before and after, unless the files are hidden.
        let what = ChangeKind::Bytes { before: Some(BlobHash::of(b"2")), after: Some(BlobHash::of(b"3")) };
        let hidden = RunChange { number: 1, path: "deep/.env".to_owned(), what, ..change.clone() };
        let whole = crate::BlobRef { blob: BlobHash::of(b"long"), mime: "text/plain".to_owned(), size: 99_000 };
        let picture = crate::BlobRef { blob: BlobHash::of(b"png"), mime: "image/png".to_owned(), size: 3 };
        let kind = StepKind::ToolResult {
            tool_call_id: "c1".to_owned(),
            success: true,
            result: None,
            error: None,
            whole: Some(whole),
            attached: vec![picture],
            files: vec![crate::ToolFileInfo::new("a.csv", 3)],
        };
        let long = ExecutionStep { id: StepId(2), kind, ..step.clone() };
        let mut doc = doc;
        doc.commit(&RunWrite { steps: vec![&long], changes: vec![&hidden], ..RunWrite::default() }, 0).expect("kept");
        let expected =
            [(BlobHash::of(b"1"), None), (BlobHash::of(b"long"), Some(99_000)), (BlobHash::of(b"png"), Some(3))];
        assert_eq!(doc.blob_sizes(), BTreeMap::from(expected));
    }
}
