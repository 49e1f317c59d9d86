//! Backup and restore.

use super::{House, TEXT, VOLUME, house, text, tree};
use host::maintenance::backup::{
    BackupError, BackupSummary, BackupTrust, MANIFEST_FILE, RestoreSummary, create_backup, restore_backup,
};
use host::maintenance::check::check_workspace;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use store::disk::{Disk, DiskReader, RowWrite, SqliteDisk, SqliteReader};

fn make(house: &House, dest: &Path) -> Result<BackupSummary, BackupError> {
    let mut last = None;
    let made =
        create_backup(&house.workspace(), dest, 5, &mut |progress| last = Some(progress), &AtomicBool::new(false));
    assert!(made.is_err() || last.is_some_and(|last| last.done == last.total && last.done > 0), "{last:?}");
    made
}

fn bring_back(from: &Path, to: &Path) -> Result<RestoreSummary, BackupError> {
    restore_backup(from, to, BackupTrust::Own, &mut |_| (), &AtomicBool::new(false))
}

/// The files of a volume, with paths relative to it.
fn inside(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let relative = |(path, bytes): (PathBuf, Vec<u8>)| (path.strip_prefix(folder).expect("inside").to_owned(), bytes);
    tree(folder).into_iter().map(relative).collect()
}

#[test]
fn there_and_back() {
    let house = house();
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc/hostname", house.volume().join("link")).expect("linked");
    let original = inside(&house.volume());
    let configuration = b"llm:\n  default_provider: llamacpp\n";
    fs::write(house.workspace().join("config.yaml"), configuration).expect("written");
    let dest = house.dir.path().join("backups/1");
    // The backup is made while the program runs and writes.
    let mut disk = SqliteDisk::open(&house.workspace(), false).expect("opened");
    let mut writing = 0;
    let made = create_backup(
        &house.workspace(),
        &dest,
        5,
        &mut |_| {
            writing += 1;
            let value = Some(vec![1; 5000]);
            disk.commit(&[RowWrite::Meta { key: format!("later {writing}"), value }]).expect("committed");
        },
        &AtomicBool::new(false),
    );
    let made = made.expect("made");
    assert_eq!(made.problems, [""; 0]);
    assert!(writing > 3);
    assert!(matches!(make(&house, &dest), Err(BackupError::Refused(_))), "never into an old one");

    // Restores beside the old workspace: its volume still exists, so the files go into the new workspace.
    let second = house.dir.path().join("second");
    let restored = bring_back(&dest, &second).expect("restored");
    assert_eq!(restored.volumes[0].path, fs::canonicalize(&second).expect("there").join("volumes/My notes"));
    assert_eq!(inside(&restored.volumes[0].path), original);
    assert!(restored.volumes[0].path.join("sub/empty").is_dir());
    let reader = SqliteReader::open(&second).expect("opened");
    assert_eq!(text(&reader), TEXT);
    assert_eq!(fs::read(second.join("config.yaml")).expect("there"), configuration);
    assert_eq!(reader.meta("later 1").expect("read"), None);
    assert_eq!(reader.mounts(), restored.volumes);
    drop(reader);
    let findings = check_workspace(&second, false, 1).findings;
    assert!(findings.iter().all(|found| found.what.contains("a symlink that leads out")), "{findings:?}");
    assert!(matches!(bring_back(&dest, &second), Err(BackupError::Refused(_))), "never over another");
    assert_eq!(inside(&house.volume()), original);

    // Everything is lost, so the restore puts the files back at their original paths.
    drop(disk);
    fs::remove_dir_all(house.volume()).expect("removed");
    fs::remove_dir_all(house.workspace()).expect("removed");
    let restored = bring_back(&dest, &house.workspace()).expect("restored");
    assert_eq!((restored.volumes[0].id, &restored.volumes[0].path), (VOLUME, &house.volume()));
    assert_eq!(inside(&house.volume()), original);
    assert_eq!(house.text(), TEXT);
    let findings = check_workspace(&house.workspace(), false, 1).findings;
    assert!(findings.iter().all(|found| found.what.contains("a symlink that leads out")), "{findings:?}");
}

#[test]
fn an_unfinished_or_changed_backup_is_refused() {
    let house = house();
    let dest = house.dir.path().join("backup");
    make(&house, &dest).expect("made");
    let (to, all) = (house.dir.path().join("to"), tree(&dest));
    for (path, bytes) in &all {
        let manifest = path.ends_with(MANIFEST_FILE);
        for change in 0..3 {
            match change {
                0 => fs::remove_file(path).expect("removed"),
                1 => fs::write(path, &bytes[..bytes.len() / 2]).expect("cut"),
                _ if bytes.is_empty() || manifest => continue,
                _ => {
                    let mut bytes = bytes.clone();
                    let middle = bytes.len() / 2;
                    bytes[middle] ^= 1;
                    fs::write(path, bytes).expect("changed");
                }
            }
            let refused = bring_back(&dest, &to).expect_err("refused");
            assert!(matches!(refused, BackupError::Refused(_)), "{} {refused}", path.display());
            assert!(!to.exists(), "nothing is written before all is checked");
        }
        fs::write(path, bytes).expect("as it was");
    }
    bring_back(&dest, &to).expect("restored");
}

#[test]
fn a_manifest_that_leads_out_is_refused() {
    let house = house();
    let dest = house.dir.path().join("backup");
    make(&house, &dest).expect("made");
    let manifest = fs::read_to_string(dest.join(MANIFEST_FILE)).expect("read");
    for path in ["volumes/../../../x", "/etc/x", "../x"] {
        let changed = manifest.replacen(&format!("volumes/{VOLUME}/alpha.md"), path, 1);
        assert_ne!(changed, manifest);
        fs::write(dest.join(MANIFEST_FILE), changed).expect("written");
        assert!(matches!(bring_back(&dest, &house.dir.path().join("to")), Err(BackupError::Refused(_))));
    }
}

#[test]
fn cancelled() {
    let house = house();
    let dest = house.dir.path().join("backup");
    let cancel = AtomicBool::new(false);
    let made = create_backup(&house.workspace(), &dest, 5, &mut |_| cancel.store(true, Ordering::Relaxed), &cancel);
    assert!(matches!(made, Err(BackupError::Cancelled)));
    assert!(!dest.exists());
}

/// A restore that stops at any point can be resumed from there.
#[test]
fn taken_up_again() {
    let house = house();
    let dest = house.dir.path().join("backup");
    make(&house, &dest).expect("made");
    fs::remove_dir_all(house.volume()).expect("removed");
    fs::remove_dir_all(house.workspace()).expect("removed");
    for stop in 0.. {
        let cancel = AtomicBool::new(false);
        let mut calls = 0;
        let mut progress = |_| {
            calls += 1;
            cancel.store(calls > stop, Ordering::Relaxed);
        };
        match restore_backup(&dest, &house.workspace(), BackupTrust::Own, &mut progress, &cancel) {
            Err(BackupError::Cancelled) => assert!(!house.database().exists()),
            restored => {
                assert_eq!(restored.expect("restored").volumes[0].path, house.volume());
                assert!(stop > 5);
                break;
            }
        }
    }
    assert_eq!(house.text(), TEXT);
    assert_eq!(check_workspace(&house.workspace(), false, 1).findings, []);
}

#[test]
fn what_is_missing_is_told() {
    let house = house();
    fs::remove_dir_all(house.volume()).expect("removed");
    let dest = house.dir.path().join("backup");
    let made = make(&house, &dest).expect("made");
    assert!(made.problems[0].contains("is not there"), "{made:?}");
    let restored = bring_back(&dest, &house.dir.path().join("to")).expect("restored");
    assert_eq!(restored.volumes[0].path, house.volume());
    assert_eq!(restored.problems, made.problems);
}
