//! Loads what the session needs from disk: the workspace, volumes, notes and other documents.
//!
//! It only reads and decides nothing. Tests use it with the in-memory disk.

use crate::error::OpenError;
use agent::known_texts::{KNOWN_TEXTS_KEY_PREFIX, known_texts_of_rows};
use agent::policy::PolicyRule;
use anyhow::anyhow;
use engine::event::{
    DocumentLoadError, FileReadError, FileText, KnownFiles, KnownLinks, NoteContent, NoteDocs, WorkspaceStart,
    file_marks_key,
};
use engine::records::forks::FORKS_META_KEY;
use engine::{
    AGREED_BYTES_KEY_PREFIX, EMBEDDING_COSTS_KEY_PREFIX, EXTERNAL_RENAMES_KEY, EmbeddingCost, Event, GONE_FILES_KEY,
    LINKS_KEY_PREFIX, MERGES_KEY, OUTBOX_KEY, PENDING_MOVE_KEY, POLICY_RULES_KEY, PROVIDER_LATENCIES_KEY, PendingMove,
    RELINK_KEY_PREFIX, RUN_KEY_PREFIX, SCHEDULE_KEY_PREFIX, SEEN_DEVICES_KEY, SESSION_KEY_PREFIX, SYNC_LOG_KEY,
    SYNC_SHARES_KEY, SavedSyncState, Settings, TRASH_KEY_PREFIX, UNDO_MOVES_KEY,
};
use rand::RngCore;
use std::collections::BTreeMap;
use std::path::Path;
use store::disk::{Disk, DiskReader, DocumentChunk, LOST_KEY, MOUNTS_META_KEY};
use store::{
    ActorId, DocId, JournalRecord, NoteDoc, OutputsDoc, RegistryDoc, RunDoc, SessionDoc, VolumeDoc, WorkspaceDoc,
    apply_op, import_blocks,
};
use text::markdown;
use text::outline::OutlinedBytes;

/// A document with more chunks than this is rewritten as one chunk while loading.
const MAX_CHUNKS_BEFORE_FOLD: usize = 256;

/// Reads what the session needs to start. A new workspace gets an id, which is stored.
///
/// # Errors
/// Returns an error if the disk fails or the workspace can't be read.
pub fn load_workspace_start(
    disk: &mut dyn Disk,
    folder: &Path,
    rng: &mut dyn RngCore,
) -> Result<WorkspaceStart, OpenError> {
    let mut actor = [0; 16];
    rng.fill_bytes(&mut actor);
    let reader = disk.open_reader()?;
    let workspace = match reader.meta("workspace")? {
        Some(id) => String::from_utf8(id)
            .ok()
            .and_then(|id| id.parse().ok())
            .ok_or_else(|| OpenError::Other("the workspace's id cannot be read; run `tracebook fsck`".to_owned()))?,
        None => {
            let mut id = [0; 16];
            rng.fill_bytes(&mut id);
            let id = DocId::random(id);
            let value = Some(id.to_string().into_bytes());
            disk.commit(&[store::disk::RowWrite::Meta { key: "workspace".to_owned(), value }])?;
            id
        }
    };
    let mut problems = Vec::new();
    if let Some(why) = reader.meta(LOST_KEY)? {
        let why = String::from_utf8_lossy(&why);
        problems.push(format!("the workspace's database was damaged: {why}; run `tracebook fsck`"));
    }
    let chunks: Vec<Vec<u8>> =
        reader.chunks(workspace)?.into_iter().filter(|chunk| chunk.intact).map(|chunk| chunk.bytes).collect();
    let loaded = WorkspaceDoc::load(workspace, &chunks, ActorId::from(actor))
        .map_err(|error| OpenError::Other(format!("{error}; run `tracebook fsck`")))?;
    if !loaded.bad_chunks.is_empty() {
        problems.push("a part of the workspace's document cannot be read; run `tracebook fsck`".to_owned());
    }
    let relinks = read_entries(reader.as_ref(), RELINK_KEY_PREFIX)?;
    let moving = PendingMove::unfinished(read_json(reader.as_ref(), PENDING_MOVE_KEY)?.unwrap_or_default(), relinks);
    let rules = policy_rules(reader.as_ref(), &mut problems)?;
    Ok(WorkspaceStart {
        workspace,
        folder: folder.to_owned(),
        doc: Box::new(loaded.doc),
        mounts: read_json(reader.as_ref(), MOUNTS_META_KEY)?.unwrap_or_default(),
        memory_place: None,
        volume_settings: Default::default(),
        forks: read_json(reader.as_ref(), FORKS_META_KEY)?.unwrap_or_default(),
        device: crate::sync::devices::machine_name(),
        settings: read_json::<Settings>(reader.as_ref(), "settings")?.unwrap_or_default(),
        last_seq: reader.last_journal_seq()?,
        unfinished: reader.unfinished_notes()?,
        actor,
        problems,
        trash: read_entries(reader.as_ref(), TRASH_KEY_PREFIX)?,
        moving,
        moved: read_json(reader.as_ref(), UNDO_MOVES_KEY)?.unwrap_or_default(),
        renamed: read_json(reader.as_ref(), EXTERNAL_RENAMES_KEY)?.unwrap_or_default(),
        gone: read_json(reader.as_ref(), GONE_FILES_KEY)?.unwrap_or_default(),
        sessions: read_entries(reader.as_ref(), SESSION_KEY_PREFIX)?,
        runs: read_entries(reader.as_ref(), RUN_KEY_PREFIX)?,
        known_texts: known_texts_of_rows(&reader.metas_with_prefix(KNOWN_TEXTS_KEY_PREFIX)?),
        shares: read_json(reader.as_ref(), SYNC_SHARES_KEY)?.unwrap_or_default(),
        sync_log: read_json(reader.as_ref(), SYNC_LOG_KEY)?.unwrap_or_default(),
        sync_kept: SavedSyncState {
            merges: read_json(reader.as_ref(), MERGES_KEY)?.unwrap_or_default(),
            seen: read_json(reader.as_ref(), SEEN_DEVICES_KEY)?.unwrap_or_default(),
            agreed: read_entries(reader.as_ref(), AGREED_BYTES_KEY_PREFIX)?,
            outboxes: read_json(reader.as_ref(), OUTBOX_KEY)?.unwrap_or_default(),
        },
        rules,
        schedules: read_entries(reader.as_ref(), SCHEDULE_KEY_PREFIX)?,
        outlays: read_embedding_costs(reader.as_ref())?,
        latencies: read_json(reader.as_ref(), PROVIDER_LATENCIES_KEY)?.unwrap_or_default(),
    })
}

/// Returns the policy rules from the user's decisions. Unreadable ones are reported and don't apply; the others do.
fn policy_rules(reader: &dyn DiskReader, problems: &mut Vec<String>) -> Result<Vec<PolicyRule>, OpenError> {
    let Some(kept) = reader.meta(POLICY_RULES_KEY)? else { return Ok(Vec::new()) };
    let Ok(rules) = serde_json::from_slice::<Vec<PolicyRule>>(&kept) else {
        problems.push("the rules from your approvals can't be read, so none of them applies".to_owned());
        // Kept as one rule that no version can read, so that the next decision doesn't overwrite it.
        return Ok(vec![PolicyRule::from(serde_json::Value::String(String::from_utf8_lossy(&kept).into_owned()))]);
    };
    for (at, _) in rules.iter().enumerate().filter(|(_, rule)| !rule.is_readable()) {
        let number = at + 1;
        problems.push(format!(
            "rule {number} from your approvals can't be read, so it doesn't apply; `tracebook approvals \
             --rules` shows it, and `--forget {number}` removes it"
        ));
    }
    Ok(rules)
}

/// Reads the settings of a workspace that isn't open, for a bug report; `None` if they can't be read now.
pub fn read_settings(folder: &Path) -> Option<serde_json::Value> {
    let _owned = crate::lock::WorkspaceLock::acquire(folder).ok()?;
    let disk = store::disk::SqliteDisk::open(folder, false).ok()?;
    read_json(disk.open_reader().ok()?.as_ref(), "settings").ok().flatten()
}

/// Reads all entries whose key is this prefix plus a document's id. Unreadable entries are left out.
fn read_entries<T: serde::de::DeserializeOwned>(
    reader: &dyn DiskReader,
    beginning: &str,
) -> Result<BTreeMap<DocId, T>, OpenError> {
    let entry = |(key, value): &(String, Vec<u8>)| {
        Some((key.strip_prefix(beginning)?.parse().ok()?, serde_json::from_slice(value).ok()?))
    };
    Ok(reader.metas_with_prefix(beginning)?.iter().filter_map(entry).collect())
}

fn read_embedding_costs(reader: &dyn DiskReader) -> Result<Vec<EmbeddingCost>, OpenError> {
    let kept = reader.metas_with_prefix(EMBEDDING_COSTS_KEY_PREFIX)?;
    Ok(kept.iter().filter_map(|(_, value)| serde_json::from_slice(value).ok()).collect())
}

fn read_json<T: serde::de::DeserializeOwned>(reader: &dyn DiskReader, key: &str) -> Result<Option<T>, OpenError> {
    let value = reader.meta(key)?;
    Ok(value.and_then(|value| serde_json::from_slice(&value).ok()))
}

/// Reads a volume's known files, then their links, and reports both.
pub fn load_volume_files(reader: &dyn DiskReader, volume: DocId, mut tell: impl FnMut(Event)) {
    let rows = match reader.file_rows(volume) {
        Ok(rows) => rows,
        Err(error) => return tell(Event::VolumeLoaded { volume, doc: Err(DocumentLoadError(error.to_string())) }),
    };
    tell(Event::VolumeRead { volume, files: Box::new(KnownFiles::new(volume, rows.clone())) });
    // Unreadable outlines are computed again.
    let outlines = reader.metas_with_prefix(LINKS_KEY_PREFIX).unwrap_or_default();
    let outlines = outlines.iter().filter_map(|(key, value)| {
        Some((key.strip_prefix(LINKS_KEY_PREFIX)?.parse().ok()?, serde_json::from_slice::<OutlinedBytes>(value).ok()?))
    });
    tell(Event::VolumeLinked { volume, links: Box::new(KnownLinks::new(&rows, outlines)) });
}

/// Loads a volume's document.
pub fn load_volume_doc(reader: &dyn DiskReader, volume: DocId, actor: &ActorId) -> Event {
    let doc = load_document(reader, volume, |chunks| VolumeDoc::load(volume, chunks, actor.clone()));
    let doc = as_event_result(doc.map(|loaded| Box::new(loaded.doc)), DocumentLoadError);
    Event::VolumeLoaded { volume, doc }
}

/// Loads a session's document.
pub fn load_session_doc(reader: &dyn DiskReader, session: DocId, actor: &ActorId) -> Event {
    let doc = load_document(reader, session, |chunks| SessionDoc::load(session, chunks, actor.clone()));
    let doc = as_event_result(doc.map(|loaded| Box::new(loaded.doc)), DocumentLoadError);
    Event::SessionLoaded { session, doc }
}

/// Loads a run's document.
pub fn load_run_doc(reader: &dyn DiskReader, run: DocId, actor: &ActorId) -> Event {
    let doc = load_document(reader, run, |chunks| RunDoc::load(run, chunks, actor.clone()));
    let doc = as_event_result(doc.map(|loaded| Box::new(loaded.doc)), DocumentLoadError);
    Event::RunLoaded { run, doc }
}

/// Loads the document of the user's tools.
pub fn load_registry_doc(reader: &dyn DiskReader, registry: DocId, actor: &ActorId) -> Event {
    let doc = load_document(reader, registry, |chunks| RegistryDoc::load(registry, chunks, actor.clone()));
    let doc = as_event_result(doc.map(|loaded| Box::new(loaded.doc)), DocumentLoadError);
    Event::RegistryLoaded { registry, doc }
}

/// Converts an error to the engine's type for events, with the message that users read.
pub(crate) fn as_event_result<T, E>(result: anyhow::Result<T>, error: fn(String) -> E) -> Result<T, E> {
    result.map_err(|why| error(why.to_string()))
}

struct LoadedNote<D> {
    doc: D,
    chunks: Vec<DocumentChunk>,
    problems: Vec<String>,
    bad: bool,
}

/// Loads a document from its intact chunks.
fn load_document<D>(
    reader: &dyn DiskReader,
    doc: DocId,
    load: impl Fn(&[Vec<u8>]) -> Result<store::LoadedDocument<D>, store::StoreError>,
) -> anyhow::Result<LoadedNote<D>> {
    let chunks = reader.chunks(doc)?;
    let whole: Vec<Vec<u8>> = chunks.iter().filter(|chunk| chunk.intact).map(|chunk| chunk.bytes.clone()).collect();
    let torn = chunks.len() - whole.len();
    let loaded = load(&whole).map_err(|error| anyhow!("{error}; `tracebook fsck` sets it aside"))?;
    let bad = torn + loaded.bad_chunks.len();
    let mut problems = Vec::new();
    if bad > 0 {
        problems.push(format!(
            "{bad} stored changes can't be read; the text is complete; run `tracebook fsck` to repair the rest"
        ));
    }
    Ok(LoadedNote { doc: loaded.doc, chunks, problems, bad: bad > 0 })
}

/// Reads a note's blocks, journal and file.
///
/// # Errors
/// Returns the disk's error. An unreadable file isn't an error: the content reports it.
pub fn load_note_content<E: std::fmt::Display>(
    reader: &dyn DiskReader,
    note: DocId,
    volume: DocId,
    path: &str,
    file: impl FnOnce() -> Result<Option<FileText>, E>,
) -> anyhow::Result<NoteContent> {
    let (mut blocks, bad) = reader.blocks(note)?;
    let mut problems = Vec::new();
    if !bad.is_empty() {
        problems.push(format!("{} blocks cannot be read; `tracebook fsck` takes them from the history", bad.len()));
    }
    let mut records = Vec::new();
    for (seq, bytes) in reader.journal_records(note)? {
        let replayed = JournalRecord::decode(seq, note, &bytes).and_then(|record| {
            let mut next = blocks.clone();
            record.ops.iter().try_for_each(|op| apply_op(&mut next, op))?;
            Ok((record, next))
        });
        match replayed {
            Ok((record, next)) => {
                blocks = next;
                records.push(record);
            }
            Err(error) => {
                problems.push(format!("the last edits could not be read back: {error}"));
                break;
            }
        }
    }
    let row = reader.file_row(volume, path)?;
    let ahead = reader.unfinished_notes()?.contains(&note);
    let marks = reader.meta(&file_marks_key(note))?;
    let marks = marks.and_then(|marks| serde_json::from_slice(&marks).ok()).unwrap_or_default();
    let file = file().map_err(|why| FileReadError(why.to_string()));
    let known = row.as_ref().is_some_and(|row| !row.heads.is_empty());
    let adopted = known || ahead || !blocks.is_empty() || !records.is_empty();
    if !adopted && let Ok(Some(file)) = &file {
        blocks = import_blocks(markdown::split_file(store::FileKind::from_path(path), &file.text).into_iter());
    }
    Ok(NoteContent { blocks, adopted, records, row, file, ahead, marks, problems })
}

/// Loads a note's documents. If there's no document yet, imports the note's rows.
///
/// # Errors
/// Returns an error if the disk fails, or the document can't be read. The document then stays as it is.
pub fn load_note_docs(reader: &dyn DiskReader, note: DocId, actor: &ActorId) -> anyhow::Result<NoteDocs> {
    let mut loaded = load_document(reader, note, |chunks| NoteDoc::load(note, chunks, actor.clone()))?;
    let (rows, _) = reader.blocks(note)?;
    let mut append = Vec::new();
    let mut snapshot = None;
    if loaded.chunks.is_empty() {
        loaded.doc = NoteDoc::import(note, &rows, actor.clone())?;
        append.push(loaded.doc.save());
    } else if loaded.bad {
        // Rows hold what the unreadable part of the history had, so the document is made equal to the rows.
        let difference = loaded.doc.diff_blocks(&rows);
        if !rows.is_empty() && !difference.is_empty() {
            let repair = loaded.doc.commit(&difference, 0, Some("repair"))?;
            append.push(repair);
        }
    } else if loaded.chunks.len() > MAX_CHUNKS_BEFORE_FOLD {
        let covers = loaded.chunks.iter().map(|chunk| chunk.seq).max().unwrap_or(0);
        snapshot = Some((loaded.doc.save(), covers));
    }
    let outputs =
        load_document(reader, note.outputs_id(), |chunks| OutputsDoc::load(note.outputs_id(), chunks, actor.clone()));
    let (outputs, outputs_new) = match outputs {
        Ok(outputs) => {
            loaded.problems.extend(outputs.problems);
            (Ok(Box::new(outputs.doc)), outputs.chunks.is_empty())
        }
        Err(why) => (Err(DocumentLoadError(format!("the kept outputs: {why}"))), false),
    };
    Ok(NoteDocs {
        doc: Box::new(loaded.doc),
        chunks: append,
        snapshot,
        outputs_new,
        outputs,
        problems: loaded.problems,
    })
}
