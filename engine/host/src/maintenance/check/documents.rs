//! Checks documents: whether each can be loaded, and whether its rows agree with it.
//!
//! A repair never removes text: if there are two versions, both stay in the history. Unreadable data is quarantined.

use super::{FindingSeverity, WorkspaceCheck};
use std::collections::{BTreeMap, BTreeSet};
use store::disk::{
    DiskError, DiskReader, FileRow, InspectionReport, RowWrite, SalvageReport, SqliteReader, VolumeMount,
};
use store::{
    ActorId, BlobHash, Block, BlockId, ChangeKind, DocId, FileEntry, JournalRecord, LoadedDocument, NoteDoc,
    OutputsDoc, RegistryDoc, RunDoc, SessionDoc, StepKind, StoreError, VolumeDoc, WorkspaceDoc, apply_op, sort_blocks,
};

/// A loaded document of its declared kind.
enum CheckedDocument {
    Note(NoteDoc),
    Outputs(OutputsDoc),
    Session(SessionDoc),
    Run(RunDoc),
    Registry,
    Volume,
    Workspace,
}

/// A document loaded from its readable chunks.
struct ReadChunks {
    document: Result<CheckedDocument, StoreError>,
    /// Sequence numbers of the unreadable chunks.
    bad: Vec<i64>,
    all: Vec<i64>,
}

fn read_chunks(reader: &dyn DiskReader, id: DocId, actor: &ActorId) -> Result<ReadChunks, DiskError> {
    let chunks = reader.chunks(id)?;
    let all: Vec<i64> = chunks.iter().map(|chunk| chunk.seq).collect();
    let (good, torn): (Vec<_>, Vec<_>) = chunks.into_iter().partition(|chunk| chunk.intact);
    let mut bad: Vec<i64> = torn.iter().map(|chunk| chunk.seq).collect();
    let (seqs, bytes): (Vec<i64>, Vec<Vec<u8>>) = good.into_iter().map(|chunk| (chunk.seq, chunk.bytes)).unzip();
    if bytes.is_empty() {
        let why = "none of its changes is as it was written".to_owned();
        return Ok(ReadChunks { document: Err(StoreError::Damaged { doc: id, why }), bad, all });
    }
    let mut take = |unread: Vec<usize>| bad.extend(unread.into_iter().map(|at| seqs[at]));
    let document =
        match NoteDoc::load(id, &bytes, actor.clone()) {
            Ok(LoadedDocument { doc, bad_chunks: bad }) => {
                take(bad);
                Ok(CheckedDocument::Note(doc))
            }
            Err(StoreError::Kind { found, wanted, doc }) => {
                let actor = actor.clone();
                match found.as_str() {
                    "outputs" => OutputsDoc::load(id, &bytes, actor)
                        .map(|LoadedDocument { doc, bad_chunks: bad }| (CheckedDocument::Outputs(doc), bad)),
                    "session" => SessionDoc::load(id, &bytes, actor)
                        .map(|LoadedDocument { doc, bad_chunks: bad }| (CheckedDocument::Session(doc), bad)),
                    "run" => RunDoc::load(id, &bytes, actor)
                        .map(|LoadedDocument { doc, bad_chunks: bad }| (CheckedDocument::Run(doc), bad)),
                    "registry" => RegistryDoc::load(id, &bytes, actor)
                        .map(|loaded| (CheckedDocument::Registry, loaded.bad_chunks)),
                    "volume" => {
                        VolumeDoc::load(id, &bytes, actor).map(|loaded| (CheckedDocument::Volume, loaded.bad_chunks))
                    }
                    "workspace" => WorkspaceDoc::load(id, &bytes, actor)
                        .map(|loaded| (CheckedDocument::Workspace, loaded.bad_chunks)),
                    _ => Err(StoreError::Kind { found, wanted, doc }),
                }
                .map(|(document, unread)| {
                    take(unread);
                    document
                })
            }
            Err(error) => Err(error),
        };
    Ok(ReadChunks { document, bad, all })
}

/// Returns the ids of documents that declare themselves a workspace's.
pub(super) fn workspace_documents(reader: &dyn DiskReader) -> Result<Vec<DocId>, DiskError> {
    let actor = ActorId::from([0; 16]);
    let mut found = Vec::new();
    for id in reader.document_ids()? {
        if let Ok(CheckedDocument::Workspace) = read_chunks(reader, id, &actor)?.document {
            found.push(id);
        }
    }
    Ok(found)
}

/// What the rest of the workspace knows about documents, before any repair.
struct KnownDocuments {
    /// File rows by the id of their document.
    files: BTreeMap<DocId, FileRow>,
    /// Notes whose text is newer than their file, or may be.
    ahead: BTreeSet<DocId>,
    /// Documents that are partly unreadable.
    holes: BTreeSet<DocId>,
}

/// A note's rows before any repair.
#[derive(Default)]
struct NoteRows {
    blocks: Vec<Block>,
    bad: BTreeSet<BlockId>,
}

impl WorkspaceCheck<'_> {
    pub(super) fn check_documents(
        &mut self,
        reader: &SqliteReader,
        inspected: &InspectionReport,
        marker: &[VolumeMount],
    ) -> Result<(), DiskError> {
        let docs: BTreeSet<DocId> = reader.document_ids()?.into_iter().collect();
        let ahead: BTreeSet<DocId> = reader.unfinished_notes()?.into_iter().collect();
        // Rows of a note without a document are only checked if one of them is damaged.
        let named = inspected.rows.iter().filter(|row| ["blocks", "chunks", "journal"].contains(&row.table.as_str()));
        let named = named.flat_map(|row| row.key.split(' ')).filter_map(|word| word.parse::<DocId>().ok());
        let ids: BTreeSet<DocId> = docs.iter().chain(&ahead).copied().chain(named).collect();
        let mut rows = BTreeMap::new();
        for id in &ids {
            let (blocks, bad) = reader.blocks(*id)?;
            rows.insert(*id, NoteRows { blocks, bad: bad.into_iter().collect() });
        }
        let volumes: BTreeSet<DocId> = reader.mounts().iter().chain(marker).map(|mount| mount.id).collect();
        let mut files = BTreeMap::new();
        for volume in &volumes {
            files.extend(reader.file_rows(*volume)?.into_iter().map(|file| (file.id, file)));
        }
        if let Some(disk) = &mut self.disk {
            // Damaged rows are replaced by what the documents say. Their bytes are quarantined.
            let blocks: Vec<_> = inspected.rows.iter().filter(|row| row.table == "blocks").cloned().collect();
            disk.quarantine_rows(&blocks, self.now)?;
        }
        self.report.documents = docs.len();
        let mut known = KnownDocuments { files, ahead, holes: BTreeSet::new() };
        for id in ids {
            let rows = rows.remove(&id).unwrap_or_default();
            let place = match known.files.get(&id) {
                Some(file) => format!("{} (document {id})", file.path),
                None => format!("document {id}"),
            };
            let blocks = if docs.contains(&id) {
                let read = read_chunks(reader, id, &self.actor)?;
                if read.document.is_err() || !read.bad.is_empty() {
                    known.holes.insert(id);
                }
                match self.repair_document(id, read, &rows, &known, &place)? {
                    Some(blocks) => blocks,
                    None => continue,
                }
            } else {
                self.repair_from_rows(id, &rows, &known, &place, Vec::new())?
            };
            self.replay_journal(reader, id, blocks, &place)?;
        }
        self.mark_files_for_merge(&known)?;
        self.repair_volume_documents(reader, &known, &volumes)?;
        let id = reader.meta("workspace").ok().flatten();
        match id.and_then(|id| String::from_utf8(id).ok()?.parse::<DocId>().ok()) {
            Some(id) => self.repair_workspace_document(reader, id),
            None => Ok(()),
        }
    }

    /// Repairs one document. Returns the blocks on which to replay the journal; `None` for a document to leave alone.
    fn repair_document(
        &mut self,
        id: DocId,
        read: ReadChunks,
        rows: &NoteRows,
        known: &KnownDocuments,
        place: &str,
    ) -> Result<Option<Vec<Block>>, DiskError> {
        let document = match read.document {
            Ok(document) => document,
            Err(error @ StoreError::Newer { .. }) => {
                self.report_problem(FindingSeverity::Warning, place, error, "update Tracebook; nothing was touched");
                return Ok(None);
            }
            Err(error @ StoreError::Kind { .. }) => {
                self.report_problem(
                    FindingSeverity::Warning,
                    place,
                    error,
                    "Tracebook does not know this kind and leaves it alone",
                );
                return Ok(None);
            }
            Err(error) => {
                self.report_repairable(FindingSeverity::Damage, place, &error, "what cannot be read is set aside");
                let writes = set_aside(id, &read.all, &error.to_string(), self.now);
                return self.repair_from_rows(id, rows, known, place, writes).map(Some);
            }
        };
        let mut writes = set_aside(id, &read.bad, "it cannot be read", self.now);
        if !read.bad.is_empty() {
            let how = match document {
                CheckedDocument::Note(_) => "set aside; the text is taken from the blocks",
                CheckedDocument::Outputs(_) => "set aside; run the cell again to restore the missing parts",
                CheckedDocument::Session(_) | CheckedDocument::Run(_) | CheckedDocument::Registry => {
                    "set aside; the rest is kept"
                }
                CheckedDocument::Volume | CheckedDocument::Workspace => {
                    "set aside; missing parts are rebuilt from the rest"
                }
            };
            let what = format!("{} of {} stored changes cannot be read", read.bad.len(), read.all.len());
            self.report_repairable(FindingSeverity::Damage, place, what, how);
        }
        let mut blocks = Vec::new();
        match document {
            CheckedDocument::Note(note) => {
                let (target, more) = self.repair_note(note, rows, place, !read.bad.is_empty());
                blocks = target;
                writes.extend(more);
            }
            CheckedDocument::Outputs(outputs) => {
                self.named.extend(outputs.notebook_blob().map(|notebook| (notebook.blob, id)));
                let outputs = outputs.latest_executions().into_iter().flat_map(|execution| execution.outputs);
                self.named.extend(outputs.filter_map(|output| Some((output.whole?.blob, id))));
            }
            CheckedDocument::Session(session) => {
                let messages = session.messages().into_iter();
                self.named.extend(messages.filter_map(|message| Some((message.whole?.blob, id))));
            }
            CheckedDocument::Run(run) => {
                for step in run.steps() {
                    if let StepKind::ToolResult { whole, attached, .. } = step.kind {
                        self.named.extend(whole.into_iter().chain(attached).map(|blob| (blob.blob, id)));
                    }
                }
                for change in run.changes() {
                    if let ChangeKind::Bytes { before, after } = change.what {
                        self.named.extend(before.into_iter().chain(after).map(|blob| (blob, id)));
                    }
                }
            }
            CheckedDocument::Registry | CheckedDocument::Volume | CheckedDocument::Workspace => {}
        }
        self.commit(&writes)?;
        Ok(Some(blocks))
    }

    /// Repairs a note of which only rows are readable. Complete rows are used, otherwise the file, unless the rows are
    /// newer than the file.
    fn repair_from_rows(
        &mut self,
        id: DocId,
        rows: &NoteRows,
        known: &KnownDocuments,
        place: &str,
        mut writes: Vec<RowWrite>,
    ) -> Result<Vec<Block>, DiskError> {
        let file = known.files.get(&id).filter(|_| !known.ahead.contains(&id));
        let complete = rows.bad.is_empty() && !rows.blocks.is_empty() && !self.is_lossy();
        let mut blocks = rows.blocks.clone();
        match file {
            Some(file) if !complete && (!writes.is_empty() || !rows.bad.is_empty() || self.is_lossy()) => {
                if !rows.bad.is_empty() {
                    let what = format!("{} of its blocks are damaged", rows.bad.len());
                    self.report_repairable(
                        FindingSeverity::Damage,
                        place,
                        what,
                        "set aside; the note is read again from its file",
                    );
                }
                // Without heads and rows, the note counts as never opened, so it's read from its file.
                self.reread.insert(id);
                writes.push(RowWrite::File(FileRow { heads: Vec::new(), ..file.clone() }));
                let gone =
                    |block: &Block| RowWrite::Block { note: id, block: Block { text: String::new(), ..block.clone() } };
                writes.extend(blocks.iter().map(gone));
                blocks.clear();
            }
            Some(_) | None => {
                self.report_lost_blocks(place, &rows.bad);
                if !writes.is_empty() && !blocks.is_empty() {
                    // The history starts over.
                    let made = NoteDoc::import(id, &blocks, self.actor.clone());
                    writes.extend(made.map(|doc| RowWrite::Chunk { doc: id, bytes: doc.save() }).ok());
                }
            }
        }
        self.commit(&writes)?;
        Ok(blocks)
    }

    /// Returns whether a salvage may have lost rows without a trace.
    fn is_lossy(&self) -> bool {
        self.salvaged.as_ref().is_some_and(SalvageReport::is_lossy)
    }

    /// Marks files to be read and merged if their note lost data, because its text may now be older than the file.
    ///
    /// Files that are older than their note aren't marked.
    fn mark_files_for_merge(&mut self, known: &KnownDocuments) -> Result<(), DiskError> {
        let all = self.is_lossy();
        let files = known.files.values().filter(|file| !file.heads.is_empty() && !known.ahead.contains(&file.id));
        let files = files.filter(|file| all || known.holes.contains(&file.id) || self.mended.contains(&file.id));
        let writes: Vec<RowWrite> = files
            .filter(|file| !self.reread.contains(&file.id))
            .map(|file| RowWrite::File(FileRow { size: 0, mtime: 0, hash: BlobHash([0; 32]), ..file.clone() }))
            .collect();
        self.commit(&writes)
    }

    /// Returns the blocks that a note should have, and the writes that make its rows and document equal to them.
    fn repair_note(
        &mut self,
        mut note: NoteDoc,
        rows: &NoteRows,
        place: &str,
        bad: bool,
    ) -> (Vec<Block>, Vec<RowWrite>) {
        let (id, known) = (note.id(), note.blocks());
        let complete = rows.bad.is_empty() && !self.is_lossy() && !rows.blocks.is_empty();
        let mut target = rows.blocks.clone();
        // If the history has holes, a block in it may have been removed later. Complete rows are then more reliable.
        if !(bad && complete) {
            let there: BTreeSet<_> = target.iter().map(|block| block.id).collect();
            target.extend(known.iter().filter(|block| !there.contains(&block.id)).cloned());
            sort_blocks(&mut target);
        }
        let missing: Vec<&Block> = target.iter().filter(|block| !rows.blocks.contains(block)).collect();
        let mut writes: Vec<RowWrite> =
            missing.iter().map(|block| RowWrite::Block { note: id, block: (*block).clone() }).collect();
        let restored: BTreeSet<_> = missing.iter().map(|block| block.id).collect();
        let damaged = rows.bad.intersection(&restored).count();
        if damaged > 0 {
            self.report_repairable(
                FindingSeverity::Damage,
                place,
                format!("{damaged} blocks are damaged"),
                "taken from the document",
            );
        }
        self.report_lost_blocks(place, &rows.bad.difference(&restored).copied().collect());
        if missing.len() > damaged {
            let what = format!("{} blocks are missing", missing.len() - damaged);
            self.report_repairable(FindingSeverity::Damage, place, what, "taken from the document");
        }
        let difference = note.diff_blocks(&target);
        if !difference.is_empty() || !missing.is_empty() || !rows.bad.is_empty() {
            self.mended.insert(id);
        }
        if !difference.is_empty() {
            if !bad {
                let what = "its blocks and its document differ";
                self.report_repairable(
                    FindingSeverity::Damage,
                    place,
                    what,
                    "the blocks' text is made the newest in the document",
                );
            }
            match note.commit(&difference, self.now / 1000, Some("repair")) {
                Ok(bytes) => writes.push(RowWrite::Chunk { doc: id, bytes }),
                Err(error) => {
                    self.report_problem(FindingSeverity::Damage, place, error, "the blocks are kept as they are")
                }
            }
        }
        (target, writes)
    }

    fn report_lost_blocks(&mut self, place: &str, lost: &BTreeSet<BlockId>) {
        if !lost.is_empty() {
            let what = format!("{} blocks are damaged, and the document does not have them", lost.len());
            self.report_repairable(FindingSeverity::Damage, place, what, "set aside");
        }
    }

    /// Replays a note's journal on its blocks.
    fn replay_journal(
        &mut self,
        reader: &SqliteReader,
        id: DocId,
        mut blocks: Vec<Block>,
        place: &str,
    ) -> Result<(), DiskError> {
        let mut broken = reader.first_broken_record(id)?;
        let mut why = "it, or a record before it, cannot be read".to_owned();
        for (seq, bytes) in reader.journal_records(id)? {
            let replayed = JournalRecord::decode(seq, id, &bytes).and_then(|record| {
                let mut next = blocks.clone();
                record.ops.iter().try_for_each(|op| apply_op(&mut next, op)).map(|()| next)
            });
            match replayed {
                Ok(next) => blocks = next,
                Err(error) => {
                    (broken, why) = (Some(seq), error.to_string());
                    break;
                }
            }
        }
        if let Some(from) = broken {
            let what = format!("its last edits, from number {from} on, cannot be made again ({why})");
            self.report_repairable(FindingSeverity::Damage, place, what, "set aside");
            self.commit(&[RowWrite::QuarantineJournal { note: id, from, why, at: self.now }])?;
        }
        Ok(())
    }

    /// Adds missing files to the documents of volumes that have lost some, with their old ids.
    fn repair_volume_documents(
        &mut self,
        reader: &SqliteReader,
        known: &KnownDocuments,
        volumes: &BTreeSet<DocId>,
    ) -> Result<(), DiskError> {
        for id in volumes {
            let chunks = intact_chunks(reader, *id)?;
            if !chunks.is_empty() && !known.holes.contains(id) {
                continue;
            }
            // An unreadable document was already reported, and quarantined in a repair.
            let Ok(LoadedDocument { mut doc, .. }) = VolumeDoc::load(*id, &chunks, self.actor.clone()) else {
                continue;
            };
            let there = doc.files();
            let missing: Vec<(DocId, Option<FileEntry>)> = known
                .files
                .values()
                .filter(|file| file.volume == *id && !there.contains_key(&file.id))
                .map(|file| (file.id, Some(FileEntry { path: file.path.clone(), kind: file.kind })))
                .collect();
            if missing.is_empty() && !chunks.is_empty() {
                continue;
            }
            // The whole document is saved, because later changes depend on its first one.
            let what = match missing.len() {
                0 => "the volume's document is missing".to_owned(),
                count => format!("{count} files are missing in the volume's document"),
            };
            self.report_repairable(FindingSeverity::Damage, format!("document {id}"), what, "listed again");
            if missing.is_empty() || doc.commit(None, &missing, self.now / 1000).is_ok() {
                self.commit(&[RowWrite::Chunk { doc: *id, bytes: doc.save() }])?;
            }
        }
        Ok(())
    }

    /// Adds missing mounted volumes to the workspace's document.
    fn repair_workspace_document(&mut self, reader: &SqliteReader, id: DocId) -> Result<(), DiskError> {
        let mut names: BTreeMap<DocId, String> =
            reader.mounts().into_iter().map(|mount| (mount.id, mount.name)).collect();
        let chunks = intact_chunks(reader, id)?;
        let Ok(LoadedDocument { mut doc, .. }) = WorkspaceDoc::load(id, &chunks, self.actor.clone()) else {
            return Ok(());
        };
        let known = doc.volumes();
        names.retain(|volume, _| !known.contains_key(volume));
        if names.is_empty() {
            return Ok(());
        }
        let what = format!("{} volumes are missing in the workspace's document", names.len());
        self.report_repairable(FindingSeverity::Damage, format!("document {id}"), what, "listed again");
        let entered =
            names.iter().try_for_each(|(volume, name)| doc.set_volume(*volume, Some(name), self.now / 1000).map(drop));
        match entered {
            Ok(()) => self.commit(&[RowWrite::Chunk { doc: id, bytes: doc.save() }]),
            Err(error) => {
                self.report_problem(
                    FindingSeverity::Damage,
                    format!("document {id}"),
                    error,
                    "open the volumes' folders again",
                );
                Ok(())
            }
        }
    }
}

fn set_aside(doc: DocId, chunks: &[i64], why: &str, at: i64) -> Vec<RowWrite> {
    chunks.iter().map(|seq| RowWrite::QuarantineChunk { doc, seq: *seq, why: why.to_owned(), at }).collect()
}

/// Returns a document's intact chunks.
fn intact_chunks(reader: &dyn DiskReader, id: DocId) -> Result<Vec<Vec<u8>>, DiskError> {
    Ok(reader.chunks(id)?.into_iter().filter(|chunk| chunk.intact).map(|chunk| chunk.bytes).collect())
}
