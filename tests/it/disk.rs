//! Durability on real files: full and read-only disks, cut and overwritten files, check, salvage, backup, restore.

mod backup;
mod check;
mod faults;

use std::fs;
use std::path::{Path, PathBuf};
use store::disk::{
    Disk, DiskReader, FileRow, MOUNTS_META_KEY, RowWrite, SqliteDisk, SqliteReader, VolumeMount, write_marker,
};
use store::{
    ActorId, BlobHash, BlobRef, Block, BlockId, CellOutput, DocId, Execution, ExecutionId, ExecutionStatus, FileEntry,
    FileKind, JournalRecord, NoteDoc, NoteOp, OutputBody, OutputsDoc, VolumeDoc, WorkspaceDoc, apply_op,
};

const WORKSPACE: DocId = DocId([1; 16]);
const VOLUME: DocId = DocId([2; 16]);
const NOTE: DocId = DocId([3; 16]);
/// The text of the whole note, including the pending keystroke.
const TEXT: &str = "# Alpha, the first\n\nBravo was edited.\n\nCharlie is last!\n";

/// A workspace with a volume, an edited note, its outputs, and a keystroke that is only in the journal.
struct House {
    dir: tempfile::TempDir,
    blob: BlobHash,
}

impl House {
    fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    fn volume(&self) -> PathBuf {
        self.dir.path().join("Notes")
    }

    fn database(&self) -> PathBuf {
        self.workspace().join("tracebook.db")
    }

    fn reader(&self) -> SqliteReader {
        SqliteReader::open(&self.workspace()).expect("opened")
    }

    /// The note's text as users see it: its rows plus its journal.
    fn text(&self) -> String {
        text(&self.reader())
    }

    /// The note's text according to its automerge document.
    fn document(&self) -> String {
        let chunks = self.reader().chunks(NOTE).expect("read");
        assert!(chunks.iter().all(|chunk| chunk.intact));
        let chunks: Vec<_> = chunks.into_iter().map(|chunk| chunk.bytes).collect();
        let loaded = NoteDoc::load(NOTE, &chunks, actor(9)).expect("loaded");
        assert!(loaded.bad_chunks.is_empty());
        loaded.doc.blocks().into_iter().map(|block| block.text).collect()
    }

    /// Flips a bit in the database at each occurrence of `what`.
    fn flip(&self, what: &str) {
        let mut bytes = fs::read(self.database()).expect("read");
        let places: Vec<usize> =
            (0..bytes.len() - what.len()).filter(|at| bytes[*at..].starts_with(what.as_bytes())).collect();
        assert!(!places.is_empty(), "{what} is nowhere");
        for place in places {
            bytes[place] ^= 2;
        }
        fs::write(self.database(), bytes).expect("written");
    }
}

fn text(reader: &dyn DiskReader) -> String {
    let (mut blocks, _) = reader.blocks(NOTE).expect("read");
    for (seq, record) in reader.journal_records(NOTE).expect("read") {
        let record = JournalRecord::decode(seq, NOTE, &record).expect("decoded");
        record.ops.iter().for_each(|op| apply_op(&mut blocks, op).expect("fits"));
    }
    blocks.into_iter().map(|block| block.text).collect()
}

fn actor(number: u8) -> ActorId {
    ActorId::from([number; 16])
}

fn house() -> House {
    let dir = tempfile::tempdir().expect("a folder");
    let (workspace, volume) = (dir.path().join("workspace"), dir.path().join("Notes"));
    fs::create_dir_all(volume.join("sub/empty")).expect("made");
    fs::write(volume.join("alpha.md"), "# Alpha, the first\n\nBravo was edited.\n\nCharlie is last.\n")
        .expect("written");
    fs::write(volume.join("sub/data.bin"), [0, 255, 10, 13]).expect("written");
    let mut disk = SqliteDisk::open(&workspace, true).expect("made");
    let mounts = [VolumeMount { id: VOLUME, name: "My notes".to_owned(), path: volume.clone() }];
    let blob = disk.put_blob(&b"a large output ".repeat(1000)).expect("stored");

    let mut house = WorkspaceDoc::load(WORKSPACE, &[], actor(1)).expect("made").doc;
    house.set_volume(VOLUME, Some("My notes"), 1).expect("set");
    let mut files = VolumeDoc::load(VOLUME, &[], actor(1)).expect("made").doc;
    let entry = FileEntry { path: "alpha.md".to_owned(), kind: FileKind::Note };
    files.commit(Some("My notes"), &[(NOTE, Some(entry))], 1).expect("committed");

    let block = |id: u64, pos: &str, text: &str| Block { id: BlockId(id), pos: pos.into(), text: text.into() };
    let first = [
        block(10, "A", "# Alpha, the first\n\n"),
        block(11, "B", "Bravo is here.\n\n"),
        block(12, "C", "Charlie is last.\n"),
    ];
    let mut note = NoteDoc::import(NOTE, &first, actor(1)).expect("made");
    let mut writes = vec![
        RowWrite::Meta { key: "workspace".to_owned(), value: Some(WORKSPACE.to_string().into_bytes()) },
        RowWrite::Meta {
            key: MOUNTS_META_KEY.to_owned(),
            value: Some(serde_json::json!({ VOLUME.to_string(): volume }).to_string().into_bytes()),
        },
        RowWrite::Meta { key: "settings".to_owned(), value: Some(b"{\"theme\":\"quite dark\"}".to_vec()) },
        RowWrite::Chunk { doc: WORKSPACE, bytes: house.save() },
        RowWrite::Chunk { doc: VOLUME, bytes: files.save() },
        RowWrite::Chunk { doc: NOTE, bytes: note.save() },
        RowWrite::Actor { actor: vec![1; 16], at: 1 },
    ];
    let edit = [NoteOp::Splice { block: BlockId(11), at: 6, delete: 8, insert: "was edited.".to_owned() }];
    writes.push(RowWrite::Chunk { doc: NOTE, bytes: note.commit(&edit, 2, None).expect("committed") });
    writes.extend(note.blocks().into_iter().map(|block| RowWrite::Block { note: NOTE, block }));
    writes.push(RowWrite::File(FileRow {
        volume: VOLUME,
        path: "alpha.md".to_owned(),
        id: NOTE,
        kind: FileKind::Note,
        size: 56,
        mtime: 1,
        hash: BlobHash::of(&fs::read(volume.join("alpha.md")).expect("read")),
        blocks: 3,
        cells: 0,
        heads: note.heads().into_iter().map(|head| head.0).collect(),
    }));
    let mut outputs = OutputsDoc::load(NOTE.outputs_id(), &[], actor(1)).expect("made").doc;
    let whole = BlobRef { blob, mime: "text/plain".to_owned(), size: 15_000 };
    let body = OutputBody::Stream { name: "stdout".to_owned(), text: "a large output".to_owned() };
    let execution = Execution {
        id: ExecutionId(5),
        cell: BlockId(12),
        code: "0".repeat(16),
        started: 1,
        duration: Some(1),
        waited: 0,
        status: ExecutionStatus::Ok,
        count: Some(1),
        outputs: vec![CellOutput { body, whole: Some(whole) }],
        cached: false,
        inputs: None,
    };
    outputs.commit(&[&execution], 1).expect("committed");
    writes.push(RowWrite::Chunk { doc: NOTE.outputs_id(), bytes: outputs.save() });
    let key = NoteOp::Splice { block: BlockId(12), at: 15, delete: 1, insert: "!".to_owned() };
    let record = JournalRecord { seq: 1, note: NOTE, ops: vec![key] }.encode();
    writes.push(RowWrite::Journal { seq: 1, note: NOTE, record });
    disk.commit(&writes).expect("committed");
    write_marker(&workspace, &mounts).expect("written");
    drop(disk);
    let house = House { dir, blob };
    assert_eq!(house.text(), TEXT);
    house
}

/// All files below a folder, with their bytes.
fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("listed") {
            let path = entry.expect("listed").path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push((path.clone(), fs::read(path).expect("read"))),
            }
        }
    }
    found.sort();
    found
}
