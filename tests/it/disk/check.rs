//! `fsck`: finds each kind of damage, changes nothing without permission, repairs without losing other data.

use super::{House, NOTE, TEXT, VOLUME, WORKSPACE, house, tree};
use host::maintenance::check::{CheckReport, FindingSeverity, check_workspace};
use std::fs;
use std::path::Path;
use store::disk::{BlobStore, DATABASE_FILE, Disk, DiskReader, RowWrite, SqliteDisk, SqliteReader, read_marker};
use store::{Block, BlockId, DocId};

/// Checks, repairs and checks again. Returns the report of the repair.
fn mend(house: &House) -> CheckReport {
    let before = without_shared_memory(&house.workspace());
    let looked = check_workspace(&house.workspace(), false, 7000);
    assert!(looked.findings.iter().any(|finding| finding.severity > FindingSeverity::Note), "nothing was found");
    assert_eq!(looked.repaired_count(), 0);
    assert!(before == without_shared_memory(&house.workspace()), "looking changes nothing");
    let mended = check_workspace(&house.workspace(), true, 8000);
    assert!(!mended.has_damage(), "{mended:#?}");
    let again = check_workspace(&house.workspace(), false, 9000);
    assert_eq!(again.findings, [], "after {mended:#?}");
    mended
}

/// The files without SQLite's shared memory and log, which every reader creates.
fn without_shared_memory(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let passing = |path: &Path| path.to_string_lossy().ends_with("-shm") || path.to_string_lossy().ends_with("-wal");
    tree(dir).into_iter().filter(|(path, _)| !passing(path)).collect()
}

fn says(report: &CheckReport, words: &str) {
    let said = |finding: &host::maintenance::check::CheckFinding| {
        format!("{} {} {}", finding.what, finding.place, finding.advice)
    };
    assert!(report.findings.iter().any(|finding| said(finding).contains(words)), "{words}: {report:#?}");
}

#[test]
fn a_sound_workspace() {
    let house = house();
    let before = without_shared_memory(&house.workspace());
    for repair in [false, true] {
        let report = check_workspace(&house.workspace(), repair, 1);
        assert_eq!(report.findings, []);
        assert_eq!((report.documents, report.blobs), (4, 1));
    }
    assert!(before == without_shared_memory(&house.workspace()), "a sound one is left as it is");
}

#[test]
fn a_damaged_block_comes_back_from_the_document() {
    let house = house();
    house.flip("Bravo was edited");
    says(&mend(&house), "1 blocks are damaged");
    assert_eq!(house.text(), TEXT);
}

#[test]
fn a_missing_block_comes_back_from_the_document() {
    let house = house();
    let mut disk = SqliteDisk::open(&house.workspace(), false).expect("opened");
    let block = Block { id: BlockId(10), pos: String::new(), text: String::new() };
    disk.commit(&[RowWrite::Block { note: NOTE, block }]).expect("committed");
    drop(disk);
    says(&mend(&house), "1 blocks are missing");
    assert_eq!(house.text(), TEXT);
}

#[test]
fn a_changed_block_becomes_the_documents_newest() {
    let house = house();
    let mut disk = SqliteDisk::open(&house.workspace(), false).expect("opened");
    let block = Block { id: BlockId(11), pos: "B".into(), text: "Bravo was rewritten.\n\n".into() };
    disk.commit(&[RowWrite::Block { note: NOTE, block }]).expect("committed");
    drop(disk);
    says(&mend(&house), "differ");
    assert_eq!(house.text(), TEXT.replace("was edited", "was rewritten"));
    assert_eq!(house.document(), TEXT.replace("was edited", "was rewritten").replace('!', "."));
}

#[test]
fn damaged_changes_are_set_aside_and_the_text_kept() {
    for last in [false, true] {
        let house = house();
        let chunks = house.reader().chunks(NOTE).expect("read");
        let chunk = if last { &chunks[1] } else { &chunks[0] };
        let mut bytes = fs::read(house.database()).expect("read");
        let at = (0..bytes.len()).find(|at| bytes[*at..].starts_with(&chunk.bytes)).expect("there");
        bytes[at + chunk.bytes.len() / 2] ^= 1;
        fs::write(house.database(), &bytes).expect("written");
        let report = mend(&house);
        says(&report, if last { "1 of 2 stored changes" } else { "set aside" });
        assert_eq!(house.text(), TEXT);
        assert_eq!(house.document(), TEXT.replace('!', "."));
        let aside = house.reader().quarantined_rows().expect("read");
        assert!(aside.iter().any(|row| bytes[at..].starts_with(&row.bytes)), "its bytes are kept");
    }
}

#[test]
fn a_damaged_journal_keeps_what_comes_before() {
    let house = house();
    let mut disk = SqliteDisk::open(&house.workspace(), false).expect("opened");
    for (seq, text) in [(2, "second key"), (3, "third key")] {
        let op = store::NoteOp::Splice { block: BlockId(10), at: 0, delete: 0, insert: text.to_owned() };
        let record = store::JournalRecord { seq, note: NOTE, ops: vec![op] }.encode();
        disk.commit(&[RowWrite::Journal { seq, note: NOTE, record }]).expect("committed");
    }
    drop(disk);
    house.flip("second key");
    says(&mend(&house), "from number 2 on");
    assert_eq!(house.text(), TEXT);
    assert_eq!(house.reader().quarantined_rows().expect("read").len(), 2);
}

#[test]
fn a_journal_that_does_not_fit() {
    let house = house();
    let mut disk = SqliteDisk::open(&house.workspace(), false).expect("opened");
    let op = store::NoteOp::Splice { block: BlockId(10), at: 5000, delete: 0, insert: "x".to_owned() };
    let record = store::JournalRecord { seq: 2, note: NOTE, ops: vec![op] }.encode();
    let odd = RowWrite::Journal { seq: 3, note: NOTE, record: b"no record".to_vec() };
    disk.commit(&[RowWrite::Journal { seq: 2, note: NOTE, record }, odd]).expect("committed");
    drop(disk);
    says(&mend(&house), "from number 2 on");
    assert_eq!(house.text(), TEXT);
}

#[test]
fn small_rows() {
    let house = house();
    house.flip("quite dark");
    says(&mend(&house), "a row of the table meta is damaged (settings");
    let house = self::house();
    house.flip(&format!("{{\"{VOLUME}\":"));
    says(&mend(&house), "where the volumes lie is not known");
    assert_eq!(house.reader().mounts()[0].path, house.volume());
    let house = self::house();
    house.flip(&WORKSPACE.to_string());
    says(&mend(&house), "the workspace's id is not known");
    let id = house.reader().meta("workspace").expect("read").expect("there");
    assert_eq!(id, WORKSPACE.to_string().into_bytes());
}

#[test]
fn marker_volume_and_leftovers() {
    let house = house();
    fs::write(house.workspace().join("workspace.json"), "").expect("emptied");
    fs::write(house.workspace().join("blobs/.tracebook-1-2.tmp"), "half").expect("written");
    fs::write(house.workspace().join("tracebook.db.new"), "half").expect("written");
    says(&mend(&house), "workspace.json");
    assert_eq!(read_marker(&house.workspace()).expect("read").expect("there")[0].path, house.volume());
    fs::rename(house.volume(), house.dir.path().join("elsewhere")).expect("moved");
    let report = check_workspace(&house.workspace(), true, 1);
    says(&report, "\u{201c}Notes\u{201d} is not there");
    assert!(!report.has_damage());
}

#[test]
fn blobs() {
    let house = house();
    let path = BlobStore::new(&house.workspace()).blob_path(house.blob);
    fs::write(&path, "").expect("emptied");
    let report = check_workspace(&house.workspace(), true, 1);
    says(&report, "the stored output is damaged");
    assert!(report.has_damage(), "a check cannot make it again");
    fs::remove_file(&path).expect("removed");
    let report = check_workspace(&house.workspace(), true, 1);
    says(&report, "is missing");
    assert!(report.has_damage());
}

#[test]
fn a_newer_document_is_left_alone() {
    let house = house();
    let newer = include_bytes!("../../data/newer-note.automerge");
    let id = DocId([8; 16]);
    let mut disk = SqliteDisk::open(&house.workspace(), false).expect("opened");
    disk.commit(&[RowWrite::Chunk { doc: id, bytes: newer.to_vec() }]).expect("committed");
    drop(disk);
    for repair in [false, true] {
        let report = check_workspace(&house.workspace(), repair, 1);
        says(&report, "newer Tracebook");
        assert!(!report.has_damage());
        let chunks = house.reader().chunks(id).expect("read");
        assert!(chunks.len() == 1 && chunks[0].bytes == newer);
    }
}

/// Documents that are damaged, hostile or foreign, each as a note: `fsck` reports each clearly and keeps their bytes.
#[test]
fn hostile_documents() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/automerge");
    if !folder.is_dir() {
        assert!(std::env::var_os("TRACEBOOK_CI").is_none(), "{} is missing", folder.display());
        println!("skipped: {} is not here", folder.display());
        return;
    }
    let house = house();
    let mut disk = SqliteDisk::open(&house.workspace(), false).expect("opened");
    let files: Vec<_> = tree(&folder).into_iter().filter(|(path, _)| !path.ends_with("README.md")).collect();
    assert!(files.len() > 15);
    for (number, (_, bytes)) in files.iter().enumerate() {
        let doc = DocId([100 + u8::try_from(number).expect("few"); 16]);
        disk.commit(&[RowWrite::Chunk { doc, bytes: bytes.clone() }]).expect("committed");
        if bytes.len() < 100_000 {
            // The same bytes after a valid start.
            let doc = DocId([200 + u8::try_from(number).expect("few"); 16]);
            let first = store::NoteDoc::import(doc, &[], super::actor(1)).expect("made").save();
            disk.commit(&[first, bytes.clone()].map(|bytes| RowWrite::Chunk { doc, bytes })).expect("committed");
        }
    }
    drop(disk);
    let report = mend(&house);
    for number in 0..files.len() {
        says(&report, &format!("{}", DocId([100 + u8::try_from(number).expect("few"); 16])));
    }
    let aside = house.reader().quarantined_rows().expect("read");
    for (path, bytes) in &files {
        assert!(aside.iter().any(|row| row.bytes == *bytes), "{} is kept", path.display());
    }
    assert_eq!(house.text(), TEXT);
}

#[test]
fn a_lost_volume_document_is_made_from_the_rows() {
    let house = house();
    let mut disk = SqliteDisk::open(&house.workspace(), false).expect("opened");
    let seq = house.reader().chunks(VOLUME).expect("read")[0].seq;
    let home = house.reader().chunks(WORKSPACE).expect("read")[0].seq;
    let aside = |doc, seq| RowWrite::QuarantineChunk { doc, seq, why: String::new(), at: 0 };
    disk.commit(&[aside(VOLUME, seq), aside(WORKSPACE, home)]).expect("committed");
    drop(disk);
    let report = mend(&house);
    says(&report, "1 files are missing");
    says(&report, "1 volumes are missing");
}

#[test]
fn damaged_databases() {
    for damage in 0..6 {
        let house = house();
        let mut bytes = fs::read(house.database()).expect("read");
        let middle = bytes.len() / 8192 * 4096;
        match damage {
            0 => bytes.clear(),
            1 => bytes.truncate(middle),
            2 => bytes[..4096].fill(0),
            3 => bytes[4096..].fill(0xff),
            4 => bytes[middle..middle + 4096].fill(0),
            _ => bytes.truncate(60),
        }
        fs::write(house.database(), &bytes).expect("written");
        let looked = check_workspace(&house.workspace(), false, 1);
        assert!(looked.has_damage(), "{damage}");
        assert!(fs::read(house.database()).expect("read") == bytes, "looking changes nothing");
        let mended = check_workspace(&house.workspace(), true, 2);
        says(&mended, "the database is damaged");
        assert!(fs::read(house.workspace().join("damaged/1-tracebook.db")).expect("kept") == bytes);
        let again = check_workspace(&house.workspace(), true, 3);
        assert!(!again.has_damage(), "{damage} {mended:#?} {again:#?}");
        assert_eq!(house.reader().mounts()[0].path, house.volume(), "{damage}");
        let mut disk = SqliteDisk::open(&house.workspace(), false).expect("opened");
        disk.commit(&[RowWrite::NoteAhead { note: NOTE, ahead: true }]).expect("goes on");
    }
}

#[test]
fn no_workspace_and_no_database() {
    let dir = tempfile::tempdir().expect("a folder");
    let report = check_workspace(dir.path(), true, 1);
    says(&report, "there is no workspace");
    assert!(tree(dir.path()).is_empty(), "a check makes none");
    let house = house();
    fs::remove_file(house.database()).expect("removed");
    says(&mend(&house), "it is missing");
    assert!(SqliteReader::open(&house.workspace()).is_ok() && house.workspace().join(DATABASE_FILE).exists());
}
