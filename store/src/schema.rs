//! Kinds of documents, their schema version, and the frozen first change of each.
//!
//! Two devices that create a document of one kind must create the same first change. Otherwise one side's containers
//! hide the other's (FACTS.md). So actor, time, message and operations are fixed, and a test pins the change's hash.

use crate::error::StoreError;
use crate::id::DocId;
use crate::keys;
use automerge::transaction::{CommitOptions, Transactable};
use automerge::{ActorId, Automerge, ObjType, ROOT, ReadDoc, TextEncoding};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Schema version `(major, minor)` that this program writes. It can read any minor version of the same major version.
pub const SCHEMA_VERSION: (u64, u64) = (1, 0);

/// The kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DocumentKind {
    /// A workspace: its volumes, devices and shared settings.
    Workspace,
    /// A volume: its files by id, with their paths.
    Volume,
    /// A note: ordered blocks of text.
    Note,
    /// A note's executions and their outputs, separate from its text.
    Outputs,
    /// A session: a tree of messages.
    Session,
    /// An agent's run: steps, calls, approvals and cost.
    Run,
    /// The registry of the user's own tools.
    Registry,
    /// The devices that may connect to this device or hub.
    Devices,
}

impl DocumentKind {
    /// Returns the name used in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            DocumentKind::Workspace => "workspace",
            DocumentKind::Volume => "volume",
            DocumentKind::Note => "note",
            DocumentKind::Outputs => "outputs",
            DocumentKind::Session => "session",
            DocumentKind::Run => "run",
            DocumentKind::Registry => "registry",
            DocumentKind::Devices => "devices",
        }
    }

    fn container_keys(self) -> &'static [&'static str] {
        match self {
            DocumentKind::Workspace => &[keys::VOLUMES, keys::DEVICES, keys::SETTINGS],
            DocumentKind::Volume => &[keys::FILES],
            DocumentKind::Note => &[keys::BLOCKS, keys::PROPERTIES],
            DocumentKind::Outputs => &[keys::EXECUTIONS],
            DocumentKind::Session => &[keys::MESSAGES, keys::ABOUT],
            DocumentKind::Run => &[keys::STEPS, keys::TODOS, keys::APPROVALS, keys::CHANGES, keys::ABOUT],
            DocumentKind::Registry => &[keys::TOOLS],
            DocumentKind::Devices => &[keys::DEVICES, keys::REVOKED],
        }
    }
}

/// Offsets in texts are bytes of UTF-8. This applies to this process only and isn't stored in the document.
pub(crate) const TEXT_ENCODING: TextEncoding = TextEncoding::Utf8CodeUnit;

/// Returns a document of `kind` that contains only its frozen first change. Its actor is fixed, so set another one
/// before editing.
///
/// # Errors
/// No input causes an error; automerge's errors are passed on.
pub(crate) fn first_change_document(kind: DocumentKind) -> Result<Automerge, StoreError> {
    // Creating one is a large part of the cost of receiving a note; a copy is cheap.
    static FIRST_CHANGES: Mutex<BTreeMap<&str, Automerge>> = Mutex::new(BTreeMap::new());
    let mut made = FIRST_CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(doc) = made.get(kind.as_str()) {
        return Ok(doc.clone());
    }
    let doc = build_first_change(kind)?;
    made.insert(kind.as_str(), doc.clone());
    Ok(doc)
}

fn build_first_change(kind: DocumentKind) -> Result<Automerge, StoreError> {
    let mut doc = Automerge::new_with_encoding(TEXT_ENCODING).with_actor(ActorId::from([0_u8; 16]));
    let commit = CommitOptions::default().with_time(0).with_message("first");
    let made = doc.transact_with::<_, _, automerge::AutomergeError, _>(
        |()| commit,
        |tx| {
            tx.put(ROOT, keys::KIND, kind.as_str())?;
            let schema = tx.put_object(ROOT, keys::SCHEMA, ObjType::List)?;
            tx.insert(&schema, 0, SCHEMA_VERSION.0)?;
            tx.insert(&schema, 1, SCHEMA_VERSION.1)?;
            for container in kind.container_keys() {
                tx.put_object(ROOT, *container, ObjType::Map)?;
            }
            Ok(())
        },
    );
    made.map_err(|failure| StoreError::Automerge(failure.error))?;
    Ok(doc)
}

/// Checks that `doc` is of `kind` and has a schema that this program may write to.
///
/// # Errors
/// Returns [`StoreError::Damaged`] if kind or schema can't be read, [`StoreError::Newer`], or [`StoreError::Kind`].
pub(crate) fn check_schema(id: DocId, kind: DocumentKind, doc: &Automerge) -> Result<(), StoreError> {
    let damaged = |why: &str| StoreError::Damaged { doc: id, why: why.to_owned() };
    let found = match doc.get(ROOT, keys::KIND)? {
        Some((value, _)) => value.as_str().map(str::to_owned).ok_or_else(|| damaged("its kind is not a word"))?,
        None => return Err(damaged("it does not say what kind it is")),
    };
    let Some((_, list)) = doc.get(ROOT, keys::SCHEMA)? else {
        return Err(damaged("it has no schema number"));
    };
    let number = |at: usize| -> Result<u64, StoreError> {
        let value = doc.get(&list, at)?;
        value.and_then(|(value, _)| value.as_u64()).ok_or_else(|| damaged("its schema number cannot be read"))
    };
    let (major, minor) = (number(0)?, number(1)?);
    if major > SCHEMA_VERSION.0 {
        let known = format!("{}.{}", SCHEMA_VERSION.0, SCHEMA_VERSION.1);
        return Err(StoreError::Newer { doc: id, found: format!("{major}.{minor}"), known });
    }
    if found != kind.as_str() {
        return Err(StoreError::Kind { doc: id, found, wanted: kind.as_str().to_owned() });
    }
    for container in kind.container_keys() {
        match doc.get(ROOT, *container)? {
            Some((automerge::Value::Object(ObjType::Map), _)) => {}
            Some(_) | None => return Err(damaged(&format!("its \u{201c}{container}\u{201d} is not a map"))),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every other device relies on these hashes. Changing one makes documents that can't be merged.
    #[test]
    fn first_changes_are_frozen() {
        let heads: Vec<String> = [
            DocumentKind::Workspace,
            DocumentKind::Volume,
            DocumentKind::Note,
            DocumentKind::Outputs,
            DocumentKind::Session,
            DocumentKind::Run,
            DocumentKind::Registry,
            DocumentKind::Devices,
        ]
        .into_iter()
        .map(|kind| {
            let doc = first_change_document(kind).expect("made");
            format!("{} {}", kind.as_str(), doc.get_heads()[0])
        })
        .collect();
        let frozen = [
            "workspace 68908af1f749922c51e939e525d3c826dcfb4af99ad86809f7b45938adac3542",
            "volume 6ea1ee88750b89fabf78d7c02055cfa8e75956c7de66ef90baf8b8f0a56d293f",
            "note 49e39230f79b71e4716f478c28c5d9816d0a5b6940da217e381a0f6e3fc9f80d",
            "outputs 3f8ee1835b14eb0fe6275de48fca9b3603246f47aa7f3cb0ac7e83990046afa3",
            "session 87f9d18d7985b4967e10fdd637e7c7e18652788e1cd7f175c2aeea774fe686e7",
            "run 85bdcf922fdd71d945d253906237df87f5b416c129b46073250c534828bf6d77",
            "registry f3ae9f68b3dc2cdcd8a7c4df47e9d13056514514488c2918f7072a9c5f4e75d3",
            "devices 9b0c4219f0b3f3c40d841302cdd4ce3fd6fdc39aa6ef2468562fa2c2cfe4b816",
        ];
        assert_eq!(heads, frozen);
    }
}
