//! Disks that are full, read-only, gone or torn: the state is the old or the new one, the error is clear, and work
//! continues afterwards. The first two need a small disk of their own, so root; `TRACEBOOK_CI=1` makes them mandatory.

use super::{House, NOTE, TEXT, house, text, tree};
use host::fs::atomic_write::{ReplaceOutcome, replace_file};
use host::maintenance::backup::{BackupError, create_backup};
use host::maintenance::check::check_workspace;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use store::disk::{Disk, DiskError, DiskReader, RowWrite, SqliteDisk, SqliteReader, salvage_database, write_marker};
use store::{BlobHash, DocId};

/// A file system mounted for a test, unmounted on drop.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs `mount` with these arguments and a new folder as the last one. `None` if mounting isn't permitted.
    fn by(words: &[&str]) -> Option<Mounted> {
        let dir = tempfile::tempdir().expect("a folder");
        let done = Command::new("mount").args(words).arg(dir.path()).output();
        let why = match done {
            Ok(done) if done.status.success() => return Some(Mounted(dir)),
            Ok(done) => String::from_utf8_lossy(&done.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(std::env::var_os("TRACEBOOK_CI").is_none(), "mount must work where TRACEBOOK_CI is set: {why}");
        println!("skipped: only root can mount a small disk ({why})");
        None
    }

    fn small() -> Option<Mounted> {
        Mounted::by(&["-t", "tmpfs", "-o", "size=3m", "tmpfs"])
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status(); // the folder is removed after it
    }
}

fn record(seq: u64, size: usize) -> RowWrite {
    RowWrite::Journal { seq, note: NOTE, record: vec![b'r'; size] }
}

fn seqs(dir: &Path) -> Vec<u64> {
    let journal = SqliteReader::open(dir).expect("opened").journal_records(NOTE).expect("read");
    journal.into_iter().map(|(seq, _)| seq).collect()
}

/// Fills a disk to the last block with a file. Removing the file frees the space.
fn ballast(dir: &Path) -> PathBuf {
    let path = dir.join("ballast");
    let mut bytes = 4 << 20;
    let mut file = fs::File::create(&path).expect("made");
    while bytes > 0 {
        if std::io::Write::write_all(&mut file, &vec![0; bytes]).is_err() {
            bytes /= 2;
        }
    }
    path
}

fn full<T: std::fmt::Debug>(result: Result<T, DiskError>) {
    assert!(matches!(result, Err(DiskError::Full { .. })), "{result:?}");
}

#[test]
fn a_full_disk() {
    let Some(small) = Mounted::small() else { return };
    let dir = small.path().join("workspace");
    let mut disk = SqliteDisk::open(&dir, true).expect("made");
    let other = small.path().join("what the user can spare");
    fs::write(&other, vec![0; 1 << 20]).expect("written");
    let mut last = 0;
    let error = loop {
        match disk.commit(&[record(last + 1, 30_000)]) {
            Ok(_) => last += 1,
            Err(error) => break error,
        }
    };
    full::<()>(Err(error));
    assert!(last > 5);
    let known: Vec<u64> = (1..=last).collect();
    assert_eq!(seqs(&dir), known, "what was said to be durable is there, and nothing else");
    let ballast = ballast(small.path());
    full(disk.commit(&[record(last + 1, 30_000)]));
    full(disk.put_blob(&[7; 100_000]));
    full(write_marker(&dir, &[store::disk::VolumeMount { id: NOTE, name: "x".repeat(9000), path: "/x".into() }]));
    disk.run_idle_tasks();
    assert_eq!(seqs(&dir), known);
    assert!(!tree(&dir).iter().any(|(path, _)| path.to_string_lossy().contains(".tracebook-")), "nothing is left over");
    assert_eq!(store::disk::read_marker(&dir).expect("read"), Some(Vec::new()), "the old marker");

    fs::remove_file(ballast).expect("removed");
    fs::remove_file(other).expect("removed");
    disk.commit(&[record(last + 1, 30_000)]).expect("the same commit works now, on the same disk");
    disk.commit(&[RowWrite::JournalDone { note: NOTE, upto: last - 1 }]).expect("committed");
    assert_eq!(seqs(&dir), [last, last + 1]);
    drop(disk);
    assert_eq!(
        check_workspace(&dir, false, 1).findings.iter().filter(|finding| !finding.what.contains("last edits")).count(),
        0
    );
}

#[test]
fn a_full_disk_and_plain_files() {
    let Some(small) = Mounted::small() else { return };
    let path = small.path().join("a.md");
    fs::write(&path, "old").expect("written");
    let ballast = ballast(small.path());
    full(replace_file(&path, Some(BlobHash::of(b"old")), &[b'n'; 50_000]));
    full(replace_file(&small.path().join("new.md"), None, &[b'n'; 50_000]));
    assert_eq!(fs::read(&path).expect("read"), b"old");
    assert_eq!(tree(small.path()).len(), 2, "nothing is left over");
    fs::remove_file(ballast).expect("removed");
    let done = replace_file(&path, Some(BlobHash::of(b"old")), &[b'n'; 50_000]).expect("replaced");
    assert!(matches!(done, ReplaceOutcome::Done { .. }));
}

#[test]
fn a_full_disk_and_backup_and_salvage() {
    let Some(small) = Mounted::small() else { return };
    let house = house();
    let mut disk = SqliteDisk::open(&house.workspace(), false).expect("opened");
    disk.put_blob(&vec![3; 4 << 20]).expect("stored");
    drop(disk);
    let dest = small.path().join("backup");
    let made = create_backup(&house.workspace(), &dest, 1, &mut |_| (), &AtomicBool::new(false));
    assert!(matches!(made, Err(BackupError::Disk(DiskError::Full { .. }))), "{made:?}");
    assert!(!dest.exists(), "half a backup only takes room");

    let dir = small.path().join("workspace");
    drop(SqliteDisk::open(&dir, true).expect("made"));
    fs::copy(house.database(), dir.join("tracebook.db")).expect("copied");
    let ballast = ballast(small.path());
    full(salvage_database(&dir, 1));
    full(salvage_database(&dir, 1));
    fs::remove_file(ballast).expect("removed");
    salvage_database(&dir, 1).expect("salvaged");
    assert_eq!(text(&SqliteReader::open(&dir).expect("opened")), TEXT);
}

/// Mounts the workspace again as read-only.
fn read_only(house: &House) -> Option<Mounted> {
    let workspace = house.dir.path().to_string_lossy().into_owned();
    let mounted = Mounted::by(&["--bind", &workspace])?;
    let done = Command::new("mount").args(["-o", "remount,bind,ro"]).arg(mounted.path()).status();
    assert!(done.expect("mount").success());
    Some(mounted)
}

fn refused<T: std::fmt::Debug>(result: Result<T, DiskError>) {
    assert!(matches!(result, Err(DiskError::ReadOnly { .. })), "{result:?}");
}

#[test]
fn a_read_only_folder() {
    let house = house();
    let Some(mounted) = read_only(&house) else { return };
    let dir = mounted.path().join("workspace");
    refused(SqliteDisk::open(&dir, false));
    refused(SqliteDisk::open(&mounted.path().join("new"), true));
    assert_eq!(text(&SqliteReader::open(&dir).expect("it can be read")), TEXT);
    let path = mounted.path().join("Notes/alpha.md");
    let there = fs::read(&path).expect("read");
    refused(replace_file(&path, Some(BlobHash::of(&there)), b"new"));
    refused(replace_file(&mounted.path().join("Notes/new.md"), None, b"new"));
    assert!(!check_workspace(&dir, false, 1).has_damage());
    let report = check_workspace(&dir, true, 1);
    assert!(report.has_damage() && report.findings[0].what.contains("belongs to another user"), "{report:?}");
    let dest = house.dir.path().join("backup");
    create_backup(&dir, &dest, 1, &mut |_| (), &AtomicBool::new(false)).expect("a backup of it can be made");
}

/// After a crash with a full log and a read-only mount, the log is still read.
#[test]
fn a_read_only_folder_after_a_crash() {
    let house = house();
    let mut disk = SqliteDisk::open(&house.workspace(), false).expect("opened");
    disk.commit(&[record(50, 10)]).expect("committed");
    let Some(mounted) = read_only(&house) else { return };
    let dir = mounted.path().join("workspace");
    assert_eq!(seqs(&dir), [1, 50]);
    refused(SqliteDisk::open(&dir, false));
    drop(disk);
}

#[test]
fn a_folder_that_goes_away() {
    let house = house();
    let (here, there) = (house.workspace(), house.dir.path().join("moved"));
    let mut disk = SqliteDisk::open(&here, false).expect("opened");
    disk.commit(&[record(2, 10)]).expect("committed");
    fs::rename(&here, &there).expect("moved");
    let error = disk.commit(&[record(3, 10)]).expect_err("it must not be said to be durable");
    assert!(matches!(error, DiskError::Missing { .. }), "{error}");
    assert!(disk.open_reader().is_err());
    fs::rename(&there, &here).expect("moved back");
    disk.commit(&[record(3, 10)]).expect("the same works now");
    assert_eq!(seqs(&here), [1, 2, 3]);
    // A different database at the same path is the current one: further commits go there.
    fs::rename(&here, &there).expect("moved");
    let mut other = SqliteDisk::open(&here, true).expect("made");
    other.commit(&[record(9, 10)]).expect("committed");
    drop(other);
    disk.commit(&[record(10, 10)]).expect("committed");
    assert_eq!(seqs(&here), [9, 10]);
}

/// The log is cut at any place: all commits up to some point are there, and none after it.
#[test]
fn a_cut_log() {
    let from = tempfile::tempdir().expect("a folder");
    let mut disk = SqliteDisk::open(from.path(), true).expect("made");
    for seq in 1..=20 {
        disk.commit(&[record(seq, 3000), RowWrite::Chunk { doc: DocId([9; 16]), bytes: vec![1; 3000] }])
            .expect("committed");
    }
    let log = fs::read(from.path().join("tracebook.db-wal")).expect("read");
    let mut counts = std::collections::BTreeSet::new();
    for cut in (0..log.len()).step_by(7919).chain([1, 31, 32, 56, log.len() - 1]) {
        let dir = tempfile::tempdir().expect("a folder");
        fs::copy(from.path().join("workspace.json"), dir.path().join("workspace.json")).expect("copied");
        fs::copy(from.path().join("tracebook.db"), dir.path().join("tracebook.db")).expect("copied");
        fs::write(dir.path().join("tracebook.db-wal"), &log[..cut]).expect("written");
        let mut disk = SqliteDisk::open(dir.path(), false).expect("opened");
        let there = seqs(dir.path());
        let count = there.len() as u64;
        assert_eq!(there, (1..=count).collect::<Vec<u64>>());
        let chunks = disk.open_reader().expect("reader").chunks(DocId([9; 16])).expect("read");
        assert!(chunks.len() as u64 == count && chunks.iter().all(|chunk| chunk.intact));
        disk.commit(&[record(count + 1, 5)]).expect("goes on");
        counts.insert(count);
    }
    assert!(counts.len() > 10, "{counts:?}");
}

/// Empty files in place of full ones, as a power cut leaves them for programs that don't sync.
#[test]
fn zero_bytes() {
    let house = house();
    fs::write(house.database(), "").expect("emptied");
    for create in [true, false] {
        let error = SqliteDisk::open(&house.workspace(), create).expect_err("never silently a new one");
        assert!(matches!(&error, DiskError::Damaged { .. }) && error.to_string().contains("fsck"), "{error}");
    }
    let house = self::house();
    fs::remove_file(house.workspace().join("workspace.json")).expect("removed");
    fs::remove_file(house.database()).expect("removed");
    assert!(matches!(SqliteDisk::open(&house.workspace(), true), Err(DiskError::Damaged { .. })), "it has blobs");
    let house = self::house();
    fs::write(house.workspace().join("workspace.json"), "").expect("emptied");
    drop(SqliteDisk::open(&house.workspace(), false).expect("the database is enough"));
    assert_eq!(house.text(), TEXT);
}
