//! `tracebook fsck`: checks a workspace for damage, and repairs what can be repaired without losing the rest.
//!
//! It never deletes unreadable data. That's moved into the folder `damaged` or to the quarantined rows.

mod documents;

use crate::fs::atomic_write::{is_temporary_file, remove_stale_files};
use crate::fs::confined_dir::ConfinedFolder;
use crate::fs::scan;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::disk::{
    BlobStore, DATABASE_FILE, Disk, DiskError, DiskReader, InspectionReport, LOST_KEY, MARKER_FILE, MOUNTS_META_KEY,
    RowWrite, SalvageReport, SqliteDisk, SqliteReader, VolumeMount, read_marker, salvage_database, write_marker,
};
use store::{ActorId, BlobHash, DocId};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingSeverity {
    /// Information that needs no action.
    Note,
    /// Something isn't as it should be, but nothing is lost.
    Warning,
    /// Stored data has changed or is lost.
    Damage,
}

/// A single problem or remark from a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckFinding {
    /// Severity of the finding.
    pub severity: FindingSeverity,
    /// The problem, as a sentence.
    pub what: String,
    /// The path or document concerned.
    pub place: String,
    /// Whether it was repaired.
    pub repaired: bool,
    /// What was done, or what the user can do.
    pub advice: String,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// All findings, in the order of the checks.
    pub findings: Vec<CheckFinding>,
    /// Number of documents read.
    pub documents: usize,
    /// Number of blobs read.
    pub blobs: usize,
}

impl CheckReport {
    /// Returns whether there's damage that wasn't repaired.
    pub fn has_damage(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == FindingSeverity::Damage && !finding.repaired)
    }

    /// Returns the number of repaired findings.
    pub fn repaired_count(&self) -> usize {
        self.findings.iter().filter(|finding| finding.repaired).count()
    }
}

/// Checks the workspace in `dir`. With `repair` it also repairs it, which needs exclusive access.
///
/// `now` is milliseconds since 1970.
pub fn check_workspace(dir: &Path, repair: bool, now: i64) -> CheckReport {
    let mut actor = [0; 16];
    // Without randomness, the actor id of a repair's changes comes from the time, which is unique too.
    if rand::TryRngCore::try_fill_bytes(&mut rand::rngs::OsRng, &mut actor).is_err() {
        actor[..8].copy_from_slice(&now.to_be_bytes());
    }
    let mut check = WorkspaceCheck {
        dir,
        repair,
        now,
        actor: ActorId::from(actor),
        actor_recorded: false,
        report: CheckReport::default(),
        disk: None,
        salvaged: None,
        named: BTreeMap::new(),
        mended: BTreeSet::new(),
        reread: BTreeSet::new(),
    };
    if let Err(error) = check.run() {
        let advice = if matches!(error, DiskError::Full { .. } | DiskError::ReadOnly { .. }) {
            "the check could not be finished; nothing was lost by it"
        } else {
            "the check could not be finished"
        };
        check.report_problem(FindingSeverity::Damage, dir.display(), error, advice);
    }
    check.report
}

struct WorkspaceCheck<'a> {
    dir: &'a Path,
    repair: bool,
    now: i64,
    /// Actor id of a repair's changes.
    actor: ActorId,
    actor_recorded: bool,
    report: CheckReport,
    /// The database opened for writing, if there's something to repair.
    disk: Option<SqliteDisk>,
    salvaged: Option<SalvageReport>,
    /// Blobs that documents refer to, with the id of the document.
    named: BTreeMap<BlobHash, DocId>,
    /// Notes whose rows and document differed and were made equal.
    mended: BTreeSet<DocId>,
    /// Notes to read again from their files.
    reread: BTreeSet<DocId>,
}

impl WorkspaceCheck<'_> {
    fn run(&mut self) -> Result<(), DiskError> {
        let marker = self.check_marker();
        // Check this before opening the database for writing, because that replaces its log.
        let mut lost = store::disk::detect_loss(self.dir).unwrap_or_default();
        let Some(reader) = self.check_database()? else { return Ok(()) };
        if lost.is_none() {
            lost = reader.recorded_loss().unwrap_or_default();
        }
        self.report_losses(lost)?;
        let inspected = reader.inspect()?;
        self.report_damaged_rows(&inspected);
        self.check_metadata(&reader, &marker)?;
        self.check_documents(&reader, &inspected, &marker)?;
        self.set_aside_remaining_rows(&reader)?;
        let mounts = self.check_mounts(&reader, marker)?;
        drop(reader);
        self.check_blobs()?;
        self.check_leftovers();
        self.check_volumes(&mounts);
        Ok(())
    }

    fn add_finding(
        &mut self,
        severity: FindingSeverity,
        place: impl Display,
        what: impl Display,
        repaired: bool,
        advice: &str,
    ) {
        let (place, what) = (place.to_string(), what.to_string());
        self.report.findings.push(CheckFinding { severity, what, place, repaired, advice: advice.to_owned() });
    }

    /// Reports a problem that isn't repaired.
    fn report_problem(&mut self, severity: FindingSeverity, place: impl Display, what: impl Display, advice: &str) {
        self.add_finding(severity, place, what, false, advice);
    }

    /// Reports a problem that's repaired on request.
    fn report_repairable(&mut self, severity: FindingSeverity, place: impl Display, what: impl Display, how: &str) {
        match self.repair {
            true => self.add_finding(severity, place, what, true, how),
            false => self.add_finding(severity, place, what, false, &format!("`tracebook fsck` mends it: {how}")),
        }
    }

    /// Reports stored data that was lost.
    fn report_losses(&mut self, lost: Option<String>) -> Result<(), DiskError> {
        let Some(why) = lost else { return Ok(()) };
        let path = self.dir.join(DATABASE_FILE);
        let how = "the text in your files is kept; what was only in the database is lost";
        self.report_repairable(FindingSeverity::Damage, path.display(), why, how);
        self.commit(&[RowWrite::Meta { key: LOST_KEY.to_owned(), value: None }])
    }

    fn check_marker(&mut self) -> Vec<VolumeMount> {
        let path = self.dir.join(MARKER_FILE);
        match read_marker(self.dir) {
            Ok(Some(mounts)) => mounts,
            Ok(None) if !self.dir.join(DATABASE_FILE).exists() => Vec::new(),
            Ok(None) => {
                self.report_repairable(FindingSeverity::Warning, path.display(), "it is missing", "written again");
                Vec::new()
            }
            Err(DiskError::Damaged { why, .. }) => {
                self.report_repairable(
                    FindingSeverity::Warning,
                    path.display(),
                    format!("it cannot be read ({why})"),
                    "written again",
                );
                Vec::new()
            }
            Err(error) => {
                self.report_problem(
                    FindingSeverity::Damage,
                    path.display(),
                    error,
                    "see what the system says about this file",
                );
                Vec::new()
            }
        }
    }

    /// Opens a reader on an undamaged database; `None` if there's none. A repair salvages a damaged database first.
    fn check_database(&mut self) -> Result<Option<SqliteReader>, DiskError> {
        let path = self.dir.join(DATABASE_FILE);
        let looked = SqliteReader::open(self.dir).and_then(|reader| Ok((reader.inspect()?.pages, reader)));
        let why = match looked {
            Ok((pages, reader)) if pages.is_empty() => {
                if !self.repair {
                    return Ok(Some(reader));
                }
                drop(reader);
                match SqliteDisk::open(self.dir, false) {
                    Err(DiskError::Damaged { why, .. }) => why,
                    opened => {
                        self.disk = Some(opened?);
                        return SqliteReader::open(self.dir).map(Some);
                    }
                }
            }
            Ok((pages, _)) => pages.join("; "),
            Err(DiskError::Damaged { why, .. }) => why,
            Err(error @ DiskError::Newer { .. }) => {
                self.report_problem(
                    FindingSeverity::Warning,
                    path.display(),
                    error,
                    "update Tracebook; nothing was touched",
                );
                return Ok(None);
            }
            Err(error) => {
                self.report_problem(FindingSeverity::Damage, path.display(), error, "nothing else could be checked");
                return Ok(None);
            }
        };
        let what = format!("the database is damaged ({why})");
        if !self.repair {
            let advice = "`tracebook fsck` saves all rows that can be read into a new one and keeps the old one";
            self.report_problem(FindingSeverity::Damage, path.display(), what, advice);
            return Ok(None);
        }
        let salvaged = salvage_database(self.dir, self.now)?;
        let count = |of: fn(&store::disk::TableCount) -> u64| salvaged.tables.iter().map(of).sum::<u64>();
        let lost: Vec<String> = salvaged
            .tables
            .iter()
            .filter(|table| table.lost > 0)
            .map(|table| format!("{} of {}", table.lost, table.table))
            .collect();
        let kept = salvaged
            .moved
            .first()
            .map_or_else(String::new, |path| format!("; the old one is kept: {}", path.display()));
        let advice = format!(
            "{} rows are saved, {} are lost{}{kept}",
            count(|table| table.kept),
            count(|table| table.lost),
            if lost.is_empty() { String::new() } else { format!(" ({})", lost.join(", ")) },
        );
        self.add_finding(FindingSeverity::Damage, path.display(), what, true, &advice);
        self.salvaged = Some(salvaged);
        self.disk = Some(SqliteDisk::open(self.dir, false)?);
        SqliteReader::open(self.dir).map(Some)
    }

    /// Reports rows with wrong checksums. Those of documents, blocks and the journal are reported with their document.
    fn report_damaged_rows(&mut self, inspected: &InspectionReport) {
        let path = self.dir.join(DATABASE_FILE);
        for row in &inspected.rows {
            let how = match row.table.as_str() {
                "files" => "set aside; the file is read again",
                "meta" => "set aside; it's rebuilt from the rest of the workspace, or reset to its default",
                "journal" | "chunks" | "blocks" => continue,
                _ => "set aside",
            };
            let what = format!("a row of the table {} is damaged ({})", row.table, row.key);
            self.report_repairable(FindingSeverity::Damage, path.display(), what, how);
        }
    }

    /// Quarantines damaged rows that no document uses.
    fn set_aside_remaining_rows(&mut self, reader: &SqliteReader) -> Result<(), DiskError> {
        let left = reader.inspect()?.rows;
        let path = self.dir.join(DATABASE_FILE);
        if self.repair {
            for row in left.iter().filter(|row| ["journal", "chunks", "blocks"].contains(&row.table.as_str())) {
                let what = format!("a row of the table {} is damaged, and whose it is cannot be read", row.table);
                self.add_finding(FindingSeverity::Damage, path.display(), what, true, "set aside");
            }
        }
        match &mut self.disk {
            Some(disk) if !left.is_empty() => disk.quarantine_rows(&left, self.now),
            Some(_) | None => Ok(()),
        }
    }

    fn commit(&mut self, writes: &[RowWrite]) -> Result<(), DiskError> {
        let Some(disk) = self.disk.as_mut().filter(|_| !writes.is_empty()) else { return Ok(()) };
        let changes = writes.iter().any(|write| matches!(write, RowWrite::Chunk { .. }));
        if changes && !std::mem::replace(&mut self.actor_recorded, true) {
            disk.commit(&[RowWrite::Actor { actor: self.actor.to_bytes().to_vec(), at: self.now }])?;
        }
        disk.commit(writes).map(drop)
    }

    /// Checks the values needed to find everything else: the workspace's id, and the volumes' folders.
    fn check_metadata(&mut self, reader: &SqliteReader, marker: &[VolumeMount]) -> Result<(), DiskError> {
        let path = self.dir.join(DATABASE_FILE);
        if self.repair {
            // Damaged values first, because they block new ones and would count as missing.
            let bad: Vec<_> = reader.inspect()?.rows.into_iter().filter(|row| row.table == "meta").collect();
            if let Some(disk) = &mut self.disk {
                disk.quarantine_rows(&bad, self.now)?;
            }
        }
        let value = |key| reader.meta(key).ok().flatten();
        let id = value("workspace").and_then(|id| String::from_utf8(id).ok()?.parse::<DocId>().ok());
        if id.is_none() {
            let known = documents::workspace_documents(reader)?;
            let (id, how) = match known.as_slice() {
                [id] => (*id, "found in its document"),
                _ => (DocId(new_id(self.actor.to_bytes())), "a new one is drawn"),
            };
            if !known.is_empty() || !marker.is_empty() {
                self.report_repairable(FindingSeverity::Damage, path.display(), "the workspace's id is not known", how);
                self.commit(&[RowWrite::Meta {
                    key: "workspace".to_owned(),
                    value: Some(id.to_string().into_bytes()),
                }])?;
            }
        }
        let mounts =
            value(MOUNTS_META_KEY).and_then(|mounts| serde_json::from_slice::<BTreeMap<DocId, PathBuf>>(&mounts).ok());
        if mounts.is_none() && !marker.is_empty() {
            self.report_repairable(
                FindingSeverity::Damage,
                path.display(),
                "where the volumes lie is not known",
                "taken from workspace.json",
            );
            let mounts: BTreeMap<DocId, &PathBuf> = marker.iter().map(|mount| (mount.id, &mount.path)).collect();
            let value = serde_json::to_vec(&mounts).ok();
            self.commit(&[RowWrite::Meta { key: MOUNTS_META_KEY.to_owned(), value }])?;
        }
        Ok(())
    }

    /// Compares the volumes' folders in the database and the marker. A repair writes the marker from the database.
    fn check_mounts(&mut self, reader: &SqliteReader, marker: Vec<VolumeMount>) -> Result<Vec<VolumeMount>, DiskError> {
        let mounts = reader.mounts();
        let places = |mounts: &[VolumeMount]| -> BTreeSet<(DocId, PathBuf)> {
            mounts.iter().map(|mount| (mount.id, mount.path.clone())).collect()
        };
        let told = self.report.findings.iter().any(|finding| finding.place.ends_with(MARKER_FILE));
        if places(&mounts) != places(&marker) || told {
            if !told && !mounts.is_empty() {
                let place = self.dir.join(MARKER_FILE);
                let what = "it does not name the volumes that the database knows";
                self.report_repairable(FindingSeverity::Warning, place.display(), what, "written again");
            }
            if self.repair && (told || !mounts.is_empty()) {
                write_marker(self.dir, &mounts)?;
            }
        }
        Ok(if mounts.is_empty() { marker } else { mounts })
    }

    fn check_blobs(&mut self) -> Result<(), DiskError> {
        let blobs = BlobStore::new(self.dir);
        let (there, strays) = blobs.list()?;
        self.report.blobs = there.len();
        let again = "run the cell again, or restore the file from a backup";
        for hash in &there {
            match blobs.read(*hash) {
                Ok(_) => {}
                Err(DiskError::Blob { what, .. }) => {
                    let severity =
                        if self.named.contains_key(hash) { FindingSeverity::Damage } else { FindingSeverity::Warning };
                    self.report_problem(
                        severity,
                        blobs.blob_path(*hash).display(),
                        format!("the stored output is {what}"),
                        again,
                    );
                }
                Err(error) => {
                    self.report_problem(FindingSeverity::Damage, blobs.blob_path(*hash).display(), error, again)
                }
            }
        }
        let there: BTreeSet<BlobHash> = there.into_iter().collect();
        let missing: Vec<_> =
            self.named.iter().filter(|(hash, _)| !there.contains(hash)).map(|(hash, doc)| (*hash, *doc)).collect();
        for (hash, doc) in missing {
            self.report_problem(
                FindingSeverity::Damage,
                format!("document {doc}"),
                format!("its stored output {hash} is missing"),
                again,
            );
        }
        for stray in strays {
            if stray.file_name().is_some_and(is_temporary_file) {
                self.report_leftover(&stray);
            } else {
                self.report_problem(
                    FindingSeverity::Note,
                    stray.display(),
                    "it is not a stored output",
                    "Tracebook leaves it alone",
                );
            }
        }
        Ok(())
    }

    /// Reports a partial file left behind by a crash, and removes it in a repair.
    fn report_leftover(&mut self, path: &Path) {
        let removed = self.repair && std::fs::remove_file(path).is_ok();
        if removed {
            self.add_finding(FindingSeverity::Note, path.display(), "a crash left it behind", true, "removed");
        } else {
            let advice = "it holds nothing that is needed; `tracebook fsck` removes it";
            self.report_problem(FindingSeverity::Note, path.display(), "a crash left it behind", advice);
        }
    }

    fn check_leftovers(&mut self) {
        let Ok(entries) = std::fs::read_dir(self.dir) else { return };
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        for path in paths {
            let Some(name) = path.file_name() else { continue };
            let half_made = name
                .to_str()
                .is_some_and(|name| name.starts_with("tracebook.db.new") || name.starts_with("tracebook.db.salvage"));
            if is_temporary_file(name) || half_made {
                self.report_leftover(&path);
            }
        }
    }

    fn check_volumes(&mut self, mounts: &[VolumeMount]) {
        let now = UNIX_EPOCH + Duration::from_millis(u64::try_from(self.now).unwrap_or(0));
        for mount in mounts {
            if !mount.path.is_dir() {
                let what = format!("the folder of the volume \u{201c}{}\u{201d} is not there", mount.name);
                let advice = "bring it back (is a drive missing?) or `tracebook open` it at its new place";
                self.report_problem(FindingSeverity::Warning, mount.path.display(), what, advice);
            } else {
                if self.repair {
                    remove_leftovers(&mount.path, now);
                }
                for path in outside_symlinks(&mount.path) {
                    let what = "it is a symlink that leads out of the volume, so it is skipped";
                    let advice = "copy what it leads to into the volume to have it there, or remove it";
                    self.report_problem(FindingSeverity::Note, mount.path.join(path).display(), what, advice);
                }
            }
        }
    }
}

/// Maximum number of a volume's symlinks that a check lists.
const MAX_LISTED_SYMLINKS: usize = 100;

/// Returns an id derived from this check's random actor.
fn new_id(actor: &[u8]) -> [u8; 16] {
    let mut id = [0; 16];
    id.copy_from_slice(&BlobHash::of(actor).0[..16]);
    id
}

/// Removes what crashes left behind among a volume's files. Folders that can't be listed are the user's, and are
/// skipped.
fn remove_leftovers(root: &Path, now: SystemTime) {
    let Ok(root) = ConfinedFolder::open_root(root) else { return };
    let top = root.walk_path();
    for entry in walkdir::WalkDir::new(&top).into_iter().filter_map(Result::ok) {
        if entry.file_type().is_dir()
            && let Some(folder) = scan::volume_path(&top, entry.path()).and_then(|path| root.open_folder(&path).ok())
        {
            // The next check finds temporary files that couldn't be removed.
            let _ = remove_stale_files(&folder.stable_path(), now);
        }
    }
}

/// Returns the symlinks of a volume that lead out of it.
fn outside_symlinks(root: &Path) -> Vec<String> {
    let Ok(root) = ConfinedFolder::open_root(root) else { return Vec::new() };
    let top = root.walk_path();
    let hidden =
        |entry: &walkdir::DirEntry| entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".");
    let walk = walkdir::WalkDir::new(&top).sort_by_file_name().into_iter().filter_entry(|entry| !hidden(entry));
    let links = walk.filter_map(Result::ok).filter(|entry| entry.path_is_symlink() && entry.depth() > 0);
    let paths = links.filter_map(|entry| scan::volume_path(&top, entry.path()));
    paths
        .filter(|path| root.open_file(path).is_err_and(|refused| refused.is_outside()))
        .take(MAX_LISTED_SYMLINKS)
        .collect()
}
