//! Scans a volume's folder for new, changed, removed and skipped files. Reads only; nothing is rewritten.

use crate::fs::confined_dir::{ConfinedFolder, ConfinedPath};
use crate::fs::read::{self, FoundFile, TEMPORARY_PREFIX};
use crate::mailbox::{DiskJob, Mailbox};
use crate::workers::{self, DiskWorkers};
use anyhow::anyhow;
use engine::Event;
use engine::event::{FileStamp, OutlineSurvey, ScannedFile, SkippedFile};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use store::disk::{FileRow, io_reason};
use store::{BlobHash, DocId, FileKind};
use text::markdown;

/// Number of files per event, so that the UI thread isn't blocked.
const FILES_PER_EVENT: usize = 16;
/// Minimum number of known files whose loss, all at once, isn't believed.
const MIN_LOST_FILES: usize = 3;

/// Scans in a thread of its own, once the folder is watched (`entered`).
pub(crate) fn start(
    volume: DocId,
    root: PathBuf,
    unindexed: BTreeSet<DocId>,
    entered: Receiver<()>,
    workers: &DiskWorkers,
    inbox: Mailbox,
) {
    let (answer, known) = channel();
    workers.send(DiskJob::Files { volume, answer });
    std::thread::spawn(move || {
        workers::lower_thread_priority();
        // If the watcher has ended, the files can still be read.
        let _ = entered.recv();
        let known: HashMap<String, FileRow> = match known.recv() {
            Ok(Ok(rows)) => rows.into_iter().map(|row| (row.path.clone(), row)).collect(),
            Ok(Err(why)) => {
                inbox.send_event(scan_finished(volume, Vec::new(), Vec::new(), Some(why.to_string())));
                return;
            }
            Err(_) => return,
        };
        scan(volume, &root, &known, &unindexed, &inbox);
    });
}

fn scan_finished(volume: DocId, gone: Vec<String>, skipped: Vec<SkippedFile>, failed: Option<String>) -> Event {
    Event::ScanDone { volume, gone, skipped, failed }
}

fn scan(volume: DocId, root: &Path, known: &HashMap<String, FileRow>, unindexed: &BTreeSet<DocId>, inbox: &Mailbox) {
    let folder = match open_listable_folder(root) {
        Ok(folder) => folder,
        Err(why) => return inbox.send_event(scan_finished(volume, Vec::new(), Vec::new(), Some(why.to_string()))),
    };
    // Names are listed from the open folder, and each file is opened through it.
    let top = folder.walk_path();
    let mut skipped = Vec::new();
    // Folders that can't be listed may still hold known files, which don't count as deleted.
    let mut unseen: Vec<PathBuf> = Vec::new();
    let mut found: Vec<(String, FileStamp)> = Vec::new();
    let walk = walkdir::WalkDir::new(&top).follow_links(false).sort_by_file_name().into_iter();
    let walk = walk.filter_entry(|entry| entry.depth() == 0 || !is_hidden_folder(entry));
    for entry in walk {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                unseen.push(error.path().unwrap_or(&top).to_owned());
                let path = error.path().map(|path| display_path(&top, path)).unwrap_or_default();
                let why = error.io_error().map_or_else(|| error.to_string(), |error| io_reason(error));
                skipped.push(SkippedFile::new(path, format!("it can't be read: {why}")));
                continue;
            }
        };
        let kind = entry.file_type();
        if kind.is_dir() {
            continue;
        }
        let mut skip = |why: String| skipped.push(SkippedFile::new(display_path(&top, entry.path()), why));
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY_PREFIX) {
            continue;
        }
        let Some(path) = volume_path(&top, entry.path()) else {
            skip("its name is not UTF-8 text; rename it to use it here".to_owned());
            continue;
        };
        if kind.is_symlink() {
            let target = std::fs::read_link(entry.path()).map(|to| to.display().to_string()).unwrap_or_default();
            let target_file = folder.open_file(&path);
            let leads_outside = target_file.as_ref().is_err_and(|refused| refused.is_outside());
            let leads = match target_file {
                Err(refused) if refused.is_outside() => "leads out of the volume, so it is skipped",
                Err(refused) if refused.is_missing() => "leads nowhere, so it is skipped",
                _ => "stays in the volume: what it leads to is listed at its own place",
            };
            let why = format!("it is a symlink (to {target}) that {leads}");
            let path = display_path(&top, entry.path());
            skipped.push(SkippedFile { leads_outside, ..SkippedFile::new(path, why) });
            continue;
        }
        if !kind.is_file() {
            skip("it is not an ordinary file".to_owned());
            continue;
        }
        match entry.metadata() {
            Ok(meta) => {
                let stamp = FileStamp { size: meta.len(), mtime: read::mtime_nanos(&meta), hash: BlobHash([0; 32]) };
                found.push((path, stamp));
            }
            Err(error) => {
                skip(format!("it can't be read: {}", io_reason(&error)));
                unseen.push(entry.path().to_owned());
            }
        }
    }
    let present: HashSet<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    let hidden = |row: &FileRow| unseen.iter().any(|place| top.join(&row.path).starts_with(place));
    let gone = known.values().filter(|row| !present.contains(row.path.as_str()) && !hidden(row));
    // A file that was never created isn't gone either: it's pending, or was when a crash happened. By the time of this
    // report it may exist with its note closed. Forgetting it then would delete it on all devices that share it.
    let gone = gone.filter(|row| row.size > 0 || row.mtime != 0);
    // A note created during the listing isn't gone: its file exists by now.
    let gone = gone.filter(|row| !is_listed_file(&folder, &row.path));
    let gone: Vec<&FileRow> = gone.collect();
    if let Some(why) = loss_of_all(&folder, gone.len()) {
        return inbox.send_event(scan_finished(volume, Vec::new(), skipped, Some(why)));
    }
    // A new file with the bytes of a removed one was renamed.
    let mut renamed: HashMap<(BlobHash, u64, i64), Vec<&str>> = HashMap::new();
    for row in &gone {
        let key = (row.hash, row.size, if row.kind.is_text() { 0 } else { row.mtime });
        renamed.entry(key).or_default().push(&row.path);
    }
    let mut batch = Vec::new();
    let mut indexed = Vec::new();
    let mut seen = 0;
    let mut moved: HashSet<String> = HashSet::new();
    for (path, stamp) in found {
        seen += 1;
        let row = known.get(&path);
        // The reason why a note's name is only an attachment isn't stored, so it's determined again.
        let demoted = |row: &FileRow| row.kind == FileKind::Attachment && FileKind::from_path(&path).is_text();
        if row.is_none_or(|row| row.size != stamp.size || row.mtime != stamp.mtime || demoted(row)) {
            match inspect_file(&folder, root, &path, stamp) {
                Ok(Some(mut new)) => {
                    if row.is_none() {
                        let time = if new.kind.is_text() { 0 } else { new.stamp.mtime };
                        let key = (new.stamp.hash, new.stamp.size, time);
                        new.was = renamed.get_mut(&key).and_then(Vec::pop).map(ToOwned::to_owned);
                        moved.extend(new.was.clone());
                    }
                    batch.push(new);
                }
                Ok(None) => {}
                Err(why) => skipped.push(SkippedFile::new(path, why.to_string())),
            }
        } else if let Some(row) = row
            && unindexed.contains(&row.id)
            && let Ok(FoundFile::Text(text)) = read::read_note_file(&ConfinedPath::new(root, &path))
        {
            indexed.push((row.id, OutlineSurvey::of(text.stamp.hash, &text.text)));
            if indexed.len() >= FILES_PER_EVENT {
                inbox.send_event(Event::Indexed { volume, notes: std::mem::take(&mut indexed) });
            }
        }
        if batch.len() >= FILES_PER_EVENT {
            inbox.send_event(Event::Scanned { volume, files: std::mem::take(&mut batch), seen });
        }
    }
    inbox.send_event(Event::Scanned { volume, files: batch, seen });
    if !indexed.is_empty() {
        inbox.send_event(Event::Indexed { volume, notes: indexed });
    }
    let gone = gone.into_iter().map(|row| row.path.clone()).filter(|path| !moved.contains(path)).collect();
    inbox.send_event(scan_finished(volume, gone, skipped, None));
}

/// Opens a volume's folder if it can be listed.
fn open_listable_folder(root: &Path) -> anyhow::Result<ConfinedFolder> {
    let folder = ConfinedFolder::open_root(root)?;
    std::fs::read_dir(folder.stable_path())
        .map_err(|error| anyhow!("the volume's folder cannot be read ({}): {}", io_reason(&error), root.display()))?;
    Ok(folder)
}

/// Returns why it isn't believed that an empty folder has lost many files: its drive may not be connected.
fn loss_of_all(folder: &ConfinedFolder, lost: usize) -> Option<String> {
    let is_empty = || std::fs::read_dir(folder.stable_path()).is_ok_and(|mut entries| entries.next().is_none());
    (lost >= MIN_LOST_FILES && is_empty()).then(|| {
        format!(
            "the folder is empty, and had {lost} files. If its drive isn't connected, connect it. If you have deleted \
             them, put another file there first"
        )
    })
}

/// Returns whether a scan lists this file: it isn't a symlink, and isn't behind one.
fn is_listed_file(folder: &ConfinedFolder, path: &str) -> bool {
    let Ok((above, name)) = folder.open_parent(path, false) else { return false };
    above.metadata(&name).is_ok_and(|meta| !meta.is_symlink())
}

fn inspect_file(
    folder: &ConfinedFolder,
    root: &Path,
    path: &str,
    stamp: FileStamp,
) -> anyhow::Result<Option<ScannedFile>> {
    let attachment = |stamp, why| ScannedFile {
        path: path.to_owned(),
        kind: FileKind::Attachment,
        stamp,
        blocks: 0,
        cells: 0,
        survey: None,
        was: None,
        why,
    };
    let kind = FileKind::from_path(path);
    if !kind.is_text() {
        // Attachments aren't read: size and time show whether they changed.
        return folder
            .open_regular_file(path)
            .map(|_| Some(attachment(stamp, None)))
            .map_err(|refused| anyhow!("it can't be read: {refused}"));
    }
    match read::read_note_file(&ConfinedPath::new(root, path))? {
        FoundFile::Missing => Ok(None),
        FoundFile::Other { stamp, why } => Ok(Some(attachment(stamp, Some(why)))),
        FoundFile::Text(text) => {
            let survey = markdown::count_blocks_and_cells(&text.text);
            Ok(Some(ScannedFile {
                path: path.to_owned(),
                kind,
                stamp: text.stamp,
                blocks: survey.blocks,
                cells: survey.cells,
                // A collection contains no links or tasks, even if its text looks like them.
                survey: (kind == FileKind::Note).then(|| OutlineSurvey::of(text.stamp.hash, &text.text)),
                was: None,
                why: None,
            }))
        }
    }
}

fn is_hidden_folder(entry: &walkdir::DirEntry) -> bool {
    entry.file_type().is_dir() && entry.file_name().to_string_lossy().starts_with('.')
}

/// Returns the path inside the volume, with `/` between its parts; `None` if it isn't UTF-8.
pub(crate) fn volume_path(root: &Path, path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path.strip_prefix(root).ok()?.iter().map(|part| part.to_str()).collect();
    parts.map(|parts| parts.join("/"))
}

fn display_path(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::MailboxMessage;

    #[test]
    fn a_note_whose_file_was_never_made_is_not_gone() {
        let dir = tempfile::tempdir().expect("a folder");
        let volume = DocId([1; 16]);
        let row = |path: &str, size: u64, mtime: i64| FileRow {
            volume,
            path: path.to_owned(),
            id: DocId([path.len() as u8; 16]),
            kind: FileKind::Note,
            size,
            mtime,
            hash: BlobHash::of(b""),
            blocks: 0,
            cells: 0,
            heads: Vec::new(),
        };
        let rows = [row("arrives.md", 0, 0), row("deleted.md", 7, 5), row("was empty.md", 0, 5)];
        let known = rows.into_iter().map(|row| (row.path.clone(), row)).collect();
        // A file with the same bytes as a pending one isn't a renamed one.
        std::fs::write(dir.path().join("new.md"), "").expect("written");
        let (inbox, letters) = Mailbox::channel();
        scan(volume, dir.path(), &known, &BTreeSet::new(), &inbox);
        let (mut gone, mut was) = (Vec::new(), Vec::new());
        for post in letters.try_iter() {
            if let MailboxMessage::Event(Event::ScanDone { gone: told, .. }) = post {
                gone.extend(told);
            } else if let MailboxMessage::Event(Event::Scanned { files, .. }) = post {
                was.extend(files.into_iter().filter_map(|file| file.was));
            }
        }
        gone.sort();
        assert_eq!((gone, was), (vec!["deleted.md".to_owned()], vec!["was empty.md".to_owned()]));
    }
}
