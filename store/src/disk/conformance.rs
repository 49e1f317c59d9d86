//! Conformance suite for both disks: [`super::SqliteDisk`] and [`super::MemoryDisk`] must behave identically.

use super::*;
use crate::id::{BlobHash, BlockId, DocId};
use crate::note::Block;
use crate::volume::FileKind;
use proptest::prelude::*;
use std::path::Path;

/// A disk under test, with ways to kill the process and to damage rows.
trait DiskBench: Sized {
    fn new() -> Self;
    fn disk(&mut self) -> &mut dyn Disk;
    /// Simulates a killed process and a restart.
    fn again(&mut self);
    fn corrupt(&mut self, row: &FaultyRow);
}

struct SqliteBench {
    disk: Option<SqliteDisk>,
    dir: tempfile::TempDir,
}

impl DiskBench for SqliteBench {
    fn new() -> SqliteBench {
        let dir = tempfile::tempdir().expect("a folder");
        SqliteBench { disk: Some(SqliteDisk::open(dir.path(), true).expect("made")), dir }
    }

    fn disk(&mut self) -> &mut dyn Disk {
        self.disk.as_mut().expect("open")
    }

    fn again(&mut self) {
        // A copy of the files is what a killed process leaves behind.
        let dir = tempfile::tempdir().expect("a folder");
        copy_tree(self.dir.path(), dir.path());
        drop(self.disk.take());
        self.disk = Some(SqliteDisk::open(dir.path(), false).expect("opened"));
        self.dir = dir;
    }

    fn corrupt(&mut self, row: &FaultyRow) {
        let conn = rusqlite::Connection::open(self.dir.path().join(DATABASE_FILE)).expect("opened");
        let changed = match row {
            FaultyRow::Journal(seq) => {
                conn.execute("UPDATE journal SET record = x'00' WHERE seq = ?1", [rows::to_signed_bits(*seq)])
            }
            FaultyRow::Chunk(seq) => conn.execute("UPDATE chunks SET bytes = x'00' WHERE seq = ?1", [seq]),
            FaultyRow::Block(note, block) => conn.execute(
                "UPDATE blocks SET text = 'x' WHERE note = ?1 AND block = ?2",
                (note.0, rows::to_signed_bits(block.0)),
            ),
            FaultyRow::Meta(key) => conn.execute("UPDATE meta SET value = NULL WHERE key = ?1", [key]),
            FaultyRow::File(volume, path) => {
                conn.execute("UPDATE files SET size = -9 WHERE volume = ?1 AND path = ?2", (volume.0, path))
            }
            FaultyRow::Blob(hash) => {
                std::fs::write(BlobStore::new(self.dir.path()).blob_path(*hash), b"?").expect("written");
                Ok(1)
            }
        };
        assert_eq!(changed.expect("changed"), 1);
    }
}

impl DiskBench for MemoryDisk {
    fn new() -> MemoryDisk {
        MemoryDisk::new()
    }

    fn disk(&mut self) -> &mut dyn Disk {
        self
    }

    fn again(&mut self) {
        *self = self.reopen_after_crash();
    }

    fn corrupt(&mut self, row: &FaultyRow) {
        assert!(MemoryDisk::corrupt_row(self, row));
    }
}

pub(super) fn copy_tree(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("listed") {
        let entry = entry.expect("listed");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir(&to).expect("made");
            copy_tree(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).expect("copied");
        }
    }
}

const A: DocId = DocId([0xa; 16]);
const B: DocId = DocId([0xb; 16]);

fn record(seq: u64, note: DocId) -> RowWrite {
    RowWrite::Journal { seq, note, record: format!("record {seq}").into_bytes() }
}

fn chunk(doc: DocId, bytes: &str) -> RowWrite {
    RowWrite::Chunk { doc, bytes: bytes.into() }
}

fn snapshot(doc: DocId, bytes: &str, covers: i64) -> RowWrite {
    RowWrite::Snapshot { doc, bytes: bytes.into(), covers }
}

fn block(id: u64, pos: &str, text: &str) -> Block {
    Block { id: BlockId(id), pos: pos.into(), text: text.into() }
}

fn seqs(disk: &mut dyn Disk, note: DocId) -> Vec<u64> {
    let journal = disk.open_reader().expect("reader").journal_records(note).expect("read");
    journal.into_iter().map(|(seq, _)| seq).collect()
}

fn texts(disk: &mut dyn Disk, doc: DocId) -> Vec<(i64, bool, String, bool)> {
    let chunks = disk.open_reader().expect("reader").chunks(doc).expect("read");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    chunks.into_iter().map(|chunk| (chunk.seq, chunk.snapshot, text(chunk.bytes), chunk.intact)).collect()
}

fn journal<T: DiskBench>() {
    let mut bench = T::new();
    let disk = bench.disk();
    assert_eq!(disk.commit(&[record(1, A), record(2, B), record(3, A)]).expect("committed"), [0_i64; 0]);
    assert_eq!((seqs(disk, A), seqs(disk, B)), (vec![1, 3], vec![2]));
    assert_eq!(disk.open_reader().expect("reader").unfinished_notes().expect("read"), [A, B]);
    // A number can be used only once, and a failed commit leaves nothing behind.
    for writes in [[record(4, A), record(4, B)], [record(4, A), record(2, B)]] {
        assert!(matches!(disk.commit(&writes), Err(DiskError::Refused { .. })));
        assert_eq!((seqs(disk, A), seqs(disk, B)), (vec![1, 3], vec![2]));
    }
    disk.commit(&[record(4, A), RowWrite::JournalDone { note: A, upto: 3 }, record(5, A)]).expect("committed");
    assert_eq!(seqs(disk, A), [4, 5]);
    disk.commit(&[RowWrite::JournalDone { note: A, upto: 5 }, RowWrite::JournalDone { note: B, upto: 5 }])
        .expect("committed");
    assert_eq!(disk.open_reader().expect("reader").unfinished_notes().expect("read"), []);
    assert_eq!(disk.open_reader().expect("reader").last_journal_seq().expect("read"), 5);
    bench.again();
    let disk = bench.disk();
    assert_eq!(disk.open_reader().expect("reader").last_journal_seq().expect("read"), 5);
    assert!(disk.commit(&[record(5, A)]).is_err());
    disk.commit(&[record(9, A), RowWrite::NoteAhead { note: B, ahead: true }]).expect("committed");
    assert_eq!(disk.open_reader().expect("reader").unfinished_notes().expect("read"), [A, B]);
    disk.commit(&[RowWrite::NoteAhead { note: B, ahead: false }, RowWrite::NoteAhead { note: A, ahead: false }])
        .expect("committed");
    assert_eq!(disk.open_reader().expect("reader").unfinished_notes().expect("read"), [A]);
}

fn broken_journal<T: DiskBench>() {
    let mut bench = T::new();
    bench.disk().commit(&[1, 2, 3, 4, 5].map(|seq| record(seq, if seq == 2 { B } else { A }))).expect("committed");
    bench.corrupt(&FaultyRow::Journal(4));
    bench.again();
    let disk = bench.disk();
    assert_eq!((seqs(disk, A), seqs(disk, B)), (vec![1, 3], vec![2]));
    assert_eq!(disk.open_reader().expect("reader").first_broken_record(A).expect("read"), Some(4));
    assert_eq!(disk.open_reader().expect("reader").first_broken_record(B).expect("read"), None);
    disk.commit(&[RowWrite::QuarantineJournal { note: A, from: 4, why: "sum".into(), at: 7 }, record(6, A)])
        .expect("committed");
    assert_eq!((seqs(disk, A), seqs(disk, B)), (vec![1, 3, 6], vec![2]));
    let reader = disk.open_reader().expect("reader");
    assert_eq!(reader.first_broken_record(A).expect("read"), None);
    let aside = reader.quarantined_rows().expect("read");
    let keys: Vec<_> = aside.iter().map(|row| (row.source.as_str(), row.key.clone(), row.at)).collect();
    assert_eq!(keys, [("journal", format!("{A} 4"), 7), ("journal", format!("{A} 5"), 7)]);
    assert_eq!(aside[1].bytes, b"record 5");
}

fn a_new_record_goes_behind_what_can_be_read<T: DiskBench>() {
    let mut bench = T::new();
    bench.disk().commit(&[1, 2, 3].map(|seq| record(seq, A))).expect("committed");
    bench.corrupt(&FaultyRow::Journal(2));
    bench.again();
    bench.disk().commit(&[record(4, A)]).expect("committed");
    bench.again();
    assert_eq!(seqs(bench.disk(), A), [1, 4]);
    assert_eq!(bench.disk().open_reader().expect("reader").quarantined_rows().expect("read").len(), 2);
}

fn chunks<T: DiskBench>() {
    let mut bench = T::new();
    let disk = bench.disk();
    assert_eq!(disk.commit(&[chunk(A, "a1"), chunk(B, "b2"), chunk(A, "a3")]).expect("committed"), [1, 2, 3]);
    let plain = |seq, text: &str| (seq, false, text.to_owned(), true);
    assert_eq!(texts(disk, A), [plain(1, "a1"), plain(3, "a3")]);
    assert_eq!(disk.open_reader().expect("reader").document_ids().expect("read"), [A, B]);
    assert!(disk.commit(&[RowWrite::DropChunks { doc: A, upto: 3 }]).is_err());
    assert!(disk.commit(&[snapshot(A, "A", 4)]).is_err(), "covers what does not exist");
    assert!(disk.commit(&[snapshot(A, "A", 3), RowWrite::DropChunks { doc: A, upto: 3 }]).is_err(), "not durable yet");
    // Another chunk arrived between taking the snapshot and writing it.
    assert_eq!(disk.commit(&[chunk(A, "a4"), snapshot(A, "A", 3), chunk(A, "a6")]).expect("committed"), [4, 5, 6]);
    let whole = (5, true, "A".to_owned(), true);
    assert_eq!(texts(disk, A), [whole.clone(), plain(4, "a4"), plain(6, "a6")]);
    assert!(disk.commit(&[RowWrite::DropChunks { doc: A, upto: 4 }]).is_err(), "it does not hold 4");
    assert!(disk.commit(&[RowWrite::DropChunks { doc: B, upto: 2 }]).is_err(), "it is another's");
    disk.commit(&[RowWrite::DropChunks { doc: A, upto: 3 }]).expect("committed");
    assert_eq!(texts(disk, A), [whole, plain(4, "a4"), plain(6, "a6")]);
    assert_eq!(texts(disk, B), [plain(2, "b2")]);
    bench.again();
    let disk = bench.disk();
    assert_eq!(disk.commit(&[snapshot(A, "B", 6)]).expect("committed"), [7]);
    disk.commit(&[RowWrite::DropChunks { doc: A, upto: 6 }]).expect("committed");
    assert_eq!(texts(disk, A), [(7, true, "B".to_owned(), true)]);
    let aside = RowWrite::QuarantineChunk { doc: A, seq: 7, why: "odd".into(), at: 3 };
    disk.commit(&[aside.clone(), aside]).expect("committed");
    assert_eq!(texts(disk, A), []);
    assert_eq!(disk.open_reader().expect("reader").quarantined_rows().expect("read").len(), 1);
    bench.again();
    // Numbers of removed chunks aren't reused.
    assert_eq!(bench.disk().commit(&[chunk(A, "x")]).expect("committed"), [8]);
}

fn damaged_chunks<T: DiskBench>() {
    let mut bench = T::new();
    bench
        .disk()
        .commit(&[chunk(A, "a1"), snapshot(A, "A2", 1), chunk(A, "a3"), snapshot(A, "A4", 3)])
        .expect("committed");
    bench.corrupt(&FaultyRow::Chunk(4));
    // The older snapshot is used instead, and the damaged one is reported.
    let found: Vec<_> = texts(bench.disk(), A).into_iter().map(|(seq, _, _, intact)| (seq, intact)).collect();
    assert_eq!(found, [(2, true), (3, true), (4, false)]);
    assert!(bench.disk().commit(&[RowWrite::DropChunks { doc: A, upto: 3 }]).is_err(), "only a damaged one holds it");
    bench.disk().commit(&[RowWrite::DropChunks { doc: A, upto: 1 }]).expect("committed");
    bench.corrupt(&FaultyRow::Chunk(2));
    let found: Vec<_> = texts(bench.disk(), A).into_iter().map(|(seq, _, _, intact)| (seq, intact)).collect();
    assert_eq!(found, [(2, false), (3, true), (4, false)]);
}

fn small_rows<T: DiskBench>() {
    let mut bench = T::new();
    let disk = bench.disk();
    let (one, two) = (block(u64::MAX, "b", "one\0\u{1f4d3}"), block(2, "a", "two"));
    let put = |block: &Block| RowWrite::Block { note: A, block: block.clone() };
    disk.commit(&[put(&one), put(&two), RowWrite::Block { note: B, block: block(2, "", "other") }]).expect("committed");
    let blocks = |disk: &mut dyn Disk| disk.open_reader().expect("reader").blocks(A).expect("read");
    assert_eq!(blocks(disk), (vec![two.clone(), one.clone()], vec![]));
    let moved = block(2, "c", "two, moved");
    disk.commit(&[put(&moved)]).expect("committed");
    assert_eq!(blocks(disk), (vec![one.clone(), moved.clone()], vec![]));
    disk.commit(&[put(&block(u64::MAX, "b", ""))]).expect("committed");
    assert_eq!(blocks(disk), (vec![moved.clone()], vec![]));
    disk.commit(&[put(&one)]).expect("committed");
    bench.corrupt(&FaultyRow::Block(A, BlockId(2)));
    assert_eq!(blocks(bench.disk()), (vec![one.clone()], vec![BlockId(2)]));
    bench.disk().commit(&[put(&moved)]).expect("committed");
    assert_eq!(blocks(bench.disk()), (vec![one, moved], vec![]));

    let set = |key: &str, value: Option<&[u8]>| RowWrite::Meta { key: key.into(), value: value.map(<[u8]>::to_vec) };
    bench
        .disk()
        .commit(&[set("k", Some(b"1")), set("k", Some(b"2")), set("gone", Some(b"")), set("gone", None)])
        .expect("ok");
    let meta = |disk: &mut dyn Disk, key: &str| disk.open_reader().expect("reader").meta(key);
    assert_eq!(meta(bench.disk(), "k").expect("read"), Some(b"2".to_vec()));
    assert_eq!(meta(bench.disk(), "gone").expect("read"), None);
    bench.disk().commit(&[set("a/2", Some(b"y")), set("a/1", Some(b"x")), set("b", Some(b"z"))]).expect("committed");
    let metas = bench.disk().open_reader().expect("reader").metas_with_prefix("a/").expect("read");
    assert_eq!(metas, [("a/1".to_owned(), b"x".to_vec()), ("a/2".to_owned(), b"y".to_vec())]);
    bench.corrupt(&FaultyRow::Meta("k".into()));
    assert!(matches!(meta(bench.disk(), "k"), Err(DiskError::Damaged { .. })));

    bench
        .disk()
        .commit(&[RowWrite::Actor { actor: vec![2], at: 5 }, RowWrite::Actor { actor: vec![1], at: 6 }])
        .expect("ok");
    assert_eq!(bench.disk().open_reader().expect("reader").actors().expect("read"), [(vec![1], 6), (vec![2], 5)]);
}

pub(super) fn file_row(volume: DocId, path: &str, size: u64) -> FileRow {
    FileRow {
        volume,
        path: path.to_owned(),
        id: B,
        kind: if size.is_multiple_of(2) { FileKind::Note } else { FileKind::Attachment },
        size,
        mtime: -5,
        hash: BlobHash::of(path.as_bytes()),
        blocks: u32::MAX,
        cells: 0,
        heads: vec![[3; 32]; usize::try_from(size % 3).expect("small")],
    }
}

fn files<T: DiskBench>() {
    let mut bench = T::new();
    let disk = bench.disk();
    let rows = [file_row(A, "a.md", 1), file_row(A, "Z/\u{e4}.md", u64::MAX), file_row(B, "a.md", 2)];
    disk.commit(&rows.clone().map(RowWrite::File)).expect("committed");
    let reader = disk.open_reader().expect("reader");
    assert_eq!(reader.file_rows(A).expect("read"), [rows[1].clone(), rows[0].clone()]);
    assert_eq!(reader.file_row(B, "a.md").expect("read"), Some(rows[2].clone()));
    assert_eq!(reader.file_row(B, "A.md").expect("read"), None);
    drop(reader);
    disk.commit(&[
        RowWrite::File(file_row(A, "a.md", 8)),
        RowWrite::RemoveFile { volume: A, path: "Z/\u{e4}.md".into() },
    ])
    .expect("committed");
    assert_eq!(disk.open_reader().expect("reader").file_rows(A).expect("read"), [file_row(A, "a.md", 8)]);
    bench.corrupt(&FaultyRow::File(A, "a.md".into()));
    assert_eq!(bench.disk().open_reader().expect("reader").file_rows(A).expect("read"), []);
    assert_eq!(bench.disk().open_reader().expect("reader").file_row(A, "a.md").expect("read"), None);
}

fn blobs<T: DiskBench>() {
    let mut bench = T::new();
    let hash = bench.disk().put_blob(b"bytes").expect("stored");
    assert_eq!(bench.disk().put_blob(b"bytes").expect("stored"), hash);
    let read = |disk: &mut dyn Disk| disk.open_reader().expect("reader").read_blob(hash);
    assert_eq!(read(bench.disk()).expect("read"), b"bytes");
    bench.corrupt(&FaultyRow::Blob(hash));
    assert!(matches!(read(bench.disk()), Err(DiskError::Blob { what: BlobFault::Damaged, .. })));
    bench.disk().put_blob(b"bytes").expect("stored");
    bench.again();
    assert_eq!(read(bench.disk()).expect("read"), b"bytes");
    let missing = bench.disk().open_reader().expect("reader").read_blob(BlobHash([0; 32]));
    assert!(matches!(missing, Err(DiskError::Blob { what: BlobFault::Missing, .. })));
}

/// A record lost without a trace, as a salvage may leave behind: later records can't be applied.
#[test]
fn a_gap_in_the_journal_is_noticed() {
    let mut bench = SqliteBench::new();
    bench.disk().commit(&[1, 2, 3, 4].map(|seq| record(seq, if seq == 3 { B } else { A }))).expect("committed");
    let conn = rusqlite::Connection::open(bench.dir.path().join(DATABASE_FILE)).expect("opened");
    conn.execute("DELETE FROM journal WHERE seq = 2", []).expect("deleted");
    drop(conn);
    assert_eq!((seqs(bench.disk(), A), seqs(bench.disk(), B)), (vec![1], vec![3]));
    assert_eq!(bench.disk().open_reader().expect("reader").first_broken_record(A).expect("read"), Some(4));
    bench.again();
    bench.disk().commit(&[record(5, A)]).expect("committed");
    assert_eq!(seqs(bench.disk(), A), [1, 5]);
}

macro_rules! on_both {
    ($($name:ident),*) => {
        mod sqlite { $(#[test] fn $name() { super::$name::<super::SqliteBench>(); })* }
        mod memory { $(#[test] fn $name() { super::$name::<super::MemoryDisk>(); })* }
    };
}
on_both!(
    journal,
    broken_journal,
    a_new_record_goes_behind_what_can_be_read,
    chunks,
    damaged_chunks,
    small_rows,
    files,
    blobs
);

#[test]
fn memory_fails_when_told() {
    let handle = MemoryDisk::new();
    let mut disk = handle.clone();
    handle.fail_next_commits(2, CommitFault::Full);
    assert!(matches!(disk.commit(&[record(1, A)]), Err(DiskError::Full { .. })));
    assert!(matches!(disk.put_blob(b"b"), Err(DiskError::Full { .. })));
    disk.commit(&[record(1, A)]).expect("the same again");
    handle.fail_next_commits(1, CommitFault::ReadOnly);
    assert!(matches!(disk.commit(&[record(2, A)]), Err(DiskError::ReadOnly { .. })));
    handle.set_size_limit(Some(handle.content_bytes() + 3));
    assert!(matches!(disk.commit(&[record(2, A)]), Err(DiskError::Full { .. })));
    disk.commit(&[RowWrite::JournalDone { note: A, upto: 1 }]).expect("what frees room works");
    disk.commit(&[record(2, A)]).expect("and then there is room");
    assert_eq!(handle.commit_count(), 3);
}

fn doc() -> impl Strategy<Value = DocId> {
    prop_oneof![Just(A), Just(B), Just(DocId([0; 16])), Just(DocId([255; 16]))]
}

fn write() -> impl Strategy<Value = RowWrite> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..40);
    let text = || prop_oneof![Just(String::new()), "[a-c\u{e4}\n]{1,5}"];
    let number = 0_i64..12;
    let at = any::<i64>();
    prop_oneof![
        // Mostly positive increments of the number: `settle` adds them up.
        4 => (0_u64..3, doc(), bytes()).prop_map(|(seq, note, record)| RowWrite::Journal { seq, note, record }),
        1 => (doc(), 0_u64..40).prop_map(|(note, upto)| RowWrite::JournalDone { note, upto }),
        3 => (doc(), bytes()).prop_map(|(doc, bytes)| RowWrite::Chunk { doc, bytes }),
        1 => (doc(), bytes(), number.clone()).prop_map(|(doc, bytes, covers)| RowWrite::Snapshot { doc, bytes,
            covers }),
        1 => (doc(), number.clone()).prop_map(|(doc, upto)| RowWrite::DropChunks { doc, upto }),
        3 => (doc(), 0_u64..4, text(), text())
            .prop_map(|(note, id, pos, text)| RowWrite::Block { note, block: block(id, &pos, &text) }),
        1 => (text(), prop::option::of(bytes())).prop_map(|(key, value)| RowWrite::Meta { key, value }),
        1 => (doc(), text(), 0_u64..9).prop_map(|(volume, path, size)| RowWrite::File(file_row(volume, &path, size))),
        1 => (doc(), text()).prop_map(|(volume, path)| RowWrite::RemoveFile { volume, path }),
        1 => (doc(), any::<bool>()).prop_map(|(note, ahead)| RowWrite::NoteAhead { note, ahead }),
        1 => (bytes(), at).prop_map(|(actor, at)| RowWrite::Actor { actor, at }),
        1 => (doc(), number, text(), at).prop_map(|(doc, seq, why, at)| RowWrite::QuarantineChunk { doc, seq, why,
            at }),
        1 => (doc(), 0_u64..40, text(), at)
            .prop_map(|(note, from, why, at)| RowWrite::QuarantineJournal { note, from, why, at }),
        1 => doc().prop_map(|doc| RowWrite::DeleteDocument { doc }),
    ]
}

/// Returns everything that a reader can return, as text.
fn everything(reader: &dyn DiskReader) -> String {
    let mut all = String::new();
    let mut say = |what: &dyn std::fmt::Debug| all.push_str(&format!("{what:?}\n"));
    say(&reader.document_ids().expect("read"));
    say(&reader.unfinished_notes().expect("read"));
    say(&reader.last_journal_seq().expect("read"));
    say(&reader.actors().expect("read"));
    say(&reader.quarantined_rows().expect("read"));
    for doc in [A, B, DocId([0; 16]), DocId([255; 16])] {
        say(&reader.chunks(doc).expect("read"));
        say(&reader.blocks(doc).expect("read"));
        say(&reader.journal_records(doc).expect("read"));
        say(&reader.first_broken_record(doc).expect("read"));
        say(&reader.file_rows(doc).expect("read"));
        say(&reader.file_row(doc, "a").expect("read"));
    }
    for key in ["", "a", "b", "c", "\u{e4}", "\n"] {
        say(&reader.meta(key).expect("read"));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn both_read_the_same(groups in prop::collection::vec(prop::collection::vec(write(), 1..6), 1..25)) {
        let (mut sqlite, mut memory) = (SqliteBench::new(), MemoryDisk::new());
        let mut next = 0;
        for (at, mut group) in groups.into_iter().enumerate() {
            for write in &mut group {
                if let RowWrite::Journal { seq, .. } = write {
                    next += *seq;
                    *seq = next;
                }
            }
            let (one, other) = (sqlite.disk().commit(&group), memory.disk().commit(&group));
            prop_assert_eq!(one.as_ref().ok(), other.as_ref().ok(), "{:?} {:?}", one, other);
            if at % 8 == 7 {
                sqlite.again();
                memory.again();
            }
            let readers = (sqlite.disk().open_reader().expect("reader"), memory.disk().open_reader().expect("reader"));
            prop_assert_eq!(everything(&*readers.0), everything(&*readers.1));
        }
    }
}
