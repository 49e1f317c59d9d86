//! What programs that work as agents change by themselves. Such a program writes some files through Tracebook and
//! others on its own; the latter are found by comparing the folder with what was there before.

use super::{MAX_CHANGED_FILE_BYTES, MAX_SNAPSHOT_FILE_BYTES, SeenFile, VolumeSnapshot, file_stamps, read_file};
use crate::fs::confined_dir::ConfinedFolder;
use agent::text_hunks::line_hunks;
use agent::tool_job::FileChange;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::disk::BlobStore;
use store::{BlobHash, DocId};

/// A program's folder as it was after the last step that the program told about.
struct ProgramBaseline {
    root: ConfinedFolder,
    before: VolumeSnapshot,
    /// What Tracebook is to write for the program, by path: the id of the call, and the content. It may not have
    /// reached the disk yet.
    ordered: HashMap<String, (String, BlobHash)>,
}

/// What has changed in a program's folder since it was last compared.
#[derive(Default)]
pub(crate) struct ProgramChanges {
    /// Files that the program has changed by itself.
    pub(crate) own: Vec<FileChange>,
    /// Files that look as Tracebook was to write them, by the calls. The program writes some of them itself, too, and
    /// only the session knows who came first.
    pub(crate) ordered: Vec<(String, FileChange)>,
    pub(crate) remarks: Vec<String>,
}

/// The folders of all programs that work at the moment, by their runs.
#[derive(Default)]
pub(crate) struct ProgramBaselines(Mutex<HashMap<DocId, Arc<Mutex<ProgramBaseline>>>>);

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProgramBaselines {
    /// Returns the folder of a run. A comparison takes its time, so only the run's own lock is held meanwhile.
    fn baseline(&self, run: DocId) -> Option<Arc<Mutex<ProgramBaseline>>> {
        lock(&self.0).get(&run).cloned()
    }

    /// Remembers what is in a program's folder before it works. Without it, its changes can be seen but not undone.
    pub(crate) fn begin(&self, run: DocId, root: &Path, workspace: &Path) {
        let Ok(root) = ConfinedFolder::open_root(root) else { return };
        let mut before = VolumeSnapshot::capture(&root, workspace);
        // The program has the user's rights, and may set up Git for the user.
        before.git = None;
        let baseline = ProgramBaseline { root, before, ordered: HashMap::new() };
        lock(&self.0).insert(run, Arc::new(Mutex::new(baseline)));
    }

    /// Forgets a program's folder.
    pub(crate) fn end(&self, run: DocId) {
        lock(&self.0).remove(&run);
    }

    /// Notes that the program wants a file to be written through Tracebook, unless it has written it already.
    pub(crate) fn order_write(&self, run: DocId, call: &str, path: &str, content: &str) {
        let Some(baseline) = self.baseline(run) else { return };
        let mut baseline = lock(&baseline);
        let there = read_file(&baseline.root, path, MAX_CHANGED_FILE_BYTES);
        if there.as_deref() != Some(content.as_bytes()) {
            let ordered = (call.to_owned(), BlobHash::of(content.as_bytes()));
            baseline.ordered.insert(path.to_owned(), ordered);
        }
    }

    /// Notes that a write was refused: if the content appears all the same, the program has written it.
    pub(crate) fn refuse_write(&self, run: DocId, call: &str) {
        if let Some(baseline) = self.baseline(run) {
            lock(&baseline).ordered.retain(|_, (ordered, _)| ordered != call);
        }
    }

    /// Notes that changes are recorded as those of a call, unless the program has changed the files before it, too.
    pub(crate) fn note_changes(&self, run: DocId, changed: &[FileChange]) {
        let Some(baseline) = self.baseline(run) else { return };
        let mut baseline = lock(&baseline);
        let bytes = |path| baseline.before.files.get(path).and_then(|seen| seen.bytes.as_deref());
        let known = changed.iter().filter(|change| bytes(&change.path).map(BlobHash::of) == change.before);
        let paths: Vec<String> = known.map(|change| change.path.clone()).collect();
        if !paths.is_empty() {
            baseline.advance(&paths);
        }
    }

    /// Returns the files that have changed since they were last compared. `paths` are those that the program says it
    /// changed; none means that it doesn't say.
    pub(crate) fn changes_of(
        &self,
        run: DocId,
        root: &Path,
        paths: &[String],
        blobs: &BlobStore,
    ) -> anyhow::Result<ProgramChanges> {
        let mut changes = ProgramChanges::default();
        let Some(baseline) = self.baseline(run) else { return Ok(changes) };
        let mut baseline = lock(&baseline);
        if baseline.root.original_path() != root {
            return Ok(changes);
        }
        let (mut all, remarks) = baseline.before.changes_since(&baseline.root, blobs)?;
        all.retain(|change| paths.is_empty() || paths.contains(&change.path));
        changes.remarks = remarks;
        for mut change in all {
            let text = |blob: Option<BlobHash>| String::from_utf8(blobs.read(blob?).ok()?).ok();
            if let (Some(old), Some(new)) = (text(change.before), text(change.after)) {
                change.hunks = line_hunks(&old, &new);
            }
            match baseline.ordered.get(&change.path) {
                Some((call, content)) if change.after == Some(*content) => changes.ordered.push((call.clone(), change)),
                Some(_) | None => changes.own.push(change),
            }
        }
        baseline.advance(paths);
        Ok(changes)
    }
}

impl ProgramBaseline {
    /// Takes what is in the folder now for what was there before, at these paths, or everywhere if there are none.
    fn advance(&mut self, paths: &[String]) {
        let is_meant = |path: &String| paths.is_empty() || paths.contains(path);
        let (now, whole) = file_stamps(self.root.original_path(), &self.before.apart);
        self.before.whole &= whole;
        self.before.files.retain(|path, _| now.contains_key(path) || !is_meant(path));
        for (path, stamp) in now.into_iter().filter(|(path, _)| is_meant(path)) {
            if self.before.files.get(&path).is_none_or(|seen| seen.stamp != stamp) {
                let bytes = read_file(&self.root, &path, MAX_SNAPSHOT_FILE_BYTES);
                let hash = bytes.as_deref().map(BlobHash::of);
                self.ordered.retain(|ordered, (_, content)| *ordered != path || Some(*content) != hash);
                self.before.files.insert(path, SeenFile { stamp, bytes });
            }
        }
    }
}
