//! Copies of a note's states. A fork of a project begins with the variables of its notes, and what its runs made of
//! them can be brought back into the note's folder. Neither side can change a file of the other: nothing is linked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::files::{
    MAX_STATE_BYTES, is_name, open_plain, parse_segment, parse_state, read_bounded, read_state, write_heads,
    write_index, write_whole,
};
use crate::folder::{LOCK_TIMEOUT, lock_folder};
use crate::received_state::{MAX_RECEIVED_FRAME_PAGES, is_plausible};
use crate::{MAIN_BRANCH, StateError, StateFolder, StateHeads, StateRecord};

/// Maximum number of attempts to copy a state whose kernel rewrites its files meanwhile.
const MAX_COPY_ATTEMPTS: u32 = 3;
/// Maximum size of the files that one copy's variables bring back, in bytes.
const MAX_BROUGHT_BYTES: u64 = 512 << 20;
/// Maximum number of states of a line that are brought back.
const MAX_BROUGHT_STATES: usize = 64;
/// Number of bytes in a megabyte, as messages say it.
const MEGABYTE_BYTES: u64 = 1_000_000;

/// Copies states from one note's folder to another's.
struct StateCopier<'a> {
    from: &'a Path,
    to: &'a Path,
    /// Whether the files come from a kernel that the user doesn't trust with the other folder, so that each page is
    /// compared with its hash: a segment's hashes decide what later states don't write again.
    is_checked: bool,
    /// Number of bytes that may still be copied.
    left_bytes: u64,
}

impl StateCopier<'_> {
    /// Copies a state and the segments that the other folder lacks, unless it has the state.
    fn copy_state(&mut self, id: &str) -> Result<(), StateError> {
        let mut attempts = 1;
        loop {
            match self.try_to_copy(id) {
                // Its kernel is running, and has just replaced a segment and the state that names it.
                Err(StateError::Read { source, .. })
                    if source.kind() == std::io::ErrorKind::NotFound && attempts < MAX_COPY_ATTEMPTS =>
                {
                    attempts += 1;
                }
                done => return done,
            }
        }
    }

    fn try_to_copy(&mut self, id: &str) -> Result<(), StateError> {
        if !is_name(id) {
            return Err(StateError::NoSuchState);
        }
        let place = self.to.join("states").join(id);
        if is_there(&place) {
            return Ok(());
        }
        let path = self.from.join("states").join(id);
        let bytes = read_bounded(&path, MAX_STATE_BYTES)?;
        let file = parse_state(&path, id, &bytes)?;
        if self.is_checked && !is_plausible(&file.record) {
            return Err(StateError::Damaged { path });
        }
        let folder = self.to.join("segments");
        let missing: BTreeSet<&String> = file.segments.iter().filter(|name| !is_there(&folder.join(name))).collect();
        let size = |name: &&String| {
            std::fs::symlink_metadata(self.from.join("segments").join(name)).map_or(0, |about| about.len())
        };
        let needed = missing.iter().map(size).fold(bytes.len() as u64, u64::saturating_add);
        if needed > self.left_bytes {
            let (megabytes, most) = (needed.div_ceil(MEGABYTE_BYTES), self.left_bytes / MEGABYTE_BYTES);
            return Err(StateError::TooLargeToCopy { megabytes, most });
        }
        for name in missing {
            self.copy_segment(name)?;
        }
        write_whole(&place, &bytes)?;
        self.left_bytes -= needed;
        Ok(())
    }

    fn copy_segment(&self, name: &str) -> Result<(), StateError> {
        let (path, place) = (self.from.join("segments").join(name), self.to.join("segments").join(name));
        if self.is_checked {
            let bytes = read_bounded(&path, usize::try_from(self.left_bytes).unwrap_or(usize::MAX))?;
            parse_segment(path, name, bytes.clone())?.check_pages(MAX_RECEIVED_FRAME_PAGES)?;
            return write_whole(&place, &bytes);
        }
        let fail = |source| StateError::write(&place, source);
        let (mut source, _) = open_plain(&path)?;
        let folder = self.to.join("segments");
        let mut copy = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
        // File systems that can share blocks do so. The copy isn't flushed: its hash says so if it's lost.
        std::io::copy(&mut source, copy.as_file_mut()).map_err(fail)?;
        copy.persist(&place).map_err(|error| fail(error.error))?;
        Ok(())
    }
}

fn is_there(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

fn make_folders(folder: &Path) -> Result<(), StateError> {
    for part in ["segments", "states"] {
        let path = folder.join(part);
        std::fs::create_dir_all(&path).map_err(|source| StateError::write(&path, source))?;
    }
    Ok(())
}

impl StateFolder {
    /// Gives a copy of a note, which has no states yet, the current state of the note and those that led to it, as far
    /// as they have at most this many bytes together. Returns the current state; `None` if there is none to copy.
    ///
    /// The note's kernel may run meanwhile. Earlier states that aren't copied count as thinned.
    ///
    /// # Errors
    /// Returns an error if the current state can't be read or written, or is too large. The copy then has no variables.
    pub fn copy_line(from: &Path, to: &Path, most_bytes: u64) -> Result<Option<String>, StateError> {
        if is_there(&to.join("heads")) {
            return Ok(None);
        }
        let states = StateFolder::open_for_reading(from, "")?;
        let Some(current) = states.heads().current().map(ToOwned::to_owned) else { return Ok(None) };
        make_folders(to)?;
        let mut copier = StateCopier { from, to, is_checked: false, left_bytes: most_bytes };
        copier.copy_state(&current)?;
        let line: Vec<&StateRecord> = states.ancestors(Some(&current)).collect();
        for record in line.iter().skip(1).filter(|record| states.kept.contains_key(&record.state)) {
            // Without it, its cells run again if it's needed.
            if let Err(StateError::TooLargeToCopy { .. }) = copier.copy_state(&record.state) {
                break;
            }
        }
        write_index(to, &line)?;
        let branches = BTreeMap::from([(MAIN_BRANCH.to_owned(), Some(current.clone()))]);
        write_heads(to, &StateHeads { branch: MAIN_BRANCH.to_owned(), branches, ..StateHeads::default() })?;
        Ok(Some(current))
    }

    /// Brings the current state of a note's copy, and those of its line that are new, into the note's folder of states.
    /// Returns its ID. Nothing that the folder has is replaced, and no branch names it yet
    /// ([`crate::StateMove::Take`]).
    ///
    /// The note's kernel may run meanwhile.
    ///
    /// # Errors
    /// Returns an error if the state can't be read or written, is damaged or too large.
    pub fn bring_line(from: &Path, to: &Path) -> Result<Option<String>, StateError> {
        let states = StateFolder::open_for_reading(from, "")?;
        let Some(current) = states.heads().current().map(ToOwned::to_owned) else { return Ok(None) };
        make_folders(to)?;
        let mut copier = StateCopier { from, to, is_checked: true, left_bytes: MAX_BROUGHT_BYTES };
        copier.copy_state(&current)?;
        let earlier = states.ancestors(Some(&current)).skip(1).take(MAX_BROUGHT_STATES);
        for record in earlier.take_while(|record| !is_there(&to.join("states").join(&record.state))) {
            // A thinned or lost one ends the line, as it does for a state of another device.
            if copier.copy_state(&record.state).is_err() {
                break;
            }
        }
        Ok(Some(current))
    }

    /// Deletes a note's folder of states, after waiting until no kernel writes in it.
    ///
    /// # Errors
    /// Returns an error if a kernel uses the folder, or something can't be deleted.
    pub fn remove_folder(folder: &Path) -> Result<(), StateError> {
        if !is_there(folder) {
            return Ok(());
        }
        // Windows deletes no file that is open, so the lock is only waited for.
        drop(lock_folder(folder, LOCK_TIMEOUT)?);
        std::fs::remove_dir_all(folder).map_err(|source| StateError::write(folder, source))
    }

    /// Adds a state that [`StateFolder::bring_line`] has put into this folder, and those of its line that came along.
    ///
    /// # Errors
    /// Returns an error if the state or a segment of it isn't there, or the state is damaged.
    pub fn add_brought(&mut self, id: &str) -> Result<(), StateError> {
        let mut next = Some(id.to_owned());
        while let Some(at) = next.take().filter(|at| !self.kept.contains_key(at) || !self.records.contains_key(at)) {
            let path = self.folder.join("states").join(&at);
            let read = read_state(&self.folder, &at).and_then(|file| Ok((file_bytes(&path)?, file)));
            let (bytes, file) = match read {
                Ok(read) => read,
                Err(_) if at != id => break, // the line begins after it
                Err(why) => return Err(why),
            };
            for name in &file.segments {
                let size = file_bytes(&self.folder.join("segments").join(name))?;
                self.segment_bytes.insert(name.clone(), size);
            }
            self.add_state(&file, bytes);
            next = file.record.parent;
        }
        Ok(())
    }
}

fn file_bytes(path: &Path) -> Result<u64, StateError> {
    let about = std::fs::symlink_metadata(path).map_err(|source| StateError::read(path, source))?;
    Ok(about.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChangedPages, PAGE_BYTES, SavedMemory, StateMove};

    const PACK: &str = "a pack";
    const PAGES: usize = 4;

    /// Saves a state after the folder's current one, in which a page is filled with this byte.
    fn save(folder: &mut StateFolder, page: usize, byte: u8) -> String {
        let fresh = vec![0; PAGES * PAGE_BYTES];
        let current = folder.heads().current().map(ToOwned::to_owned);
        let mut saved = match &current {
            Some(current) => folder.load(current, &fresh).expect("loaded"),
            None => SavedMemory::of_fresh(&fresh),
        };
        let number = u32::try_from(page).expect("a page");
        let changes = ChangedPages { memory: fresh.len(), numbers: vec![number], bytes: vec![byte; PAGE_BYTES] };
        let record = StateRecord { cell: format!("cell {byte}"), time: byte.into(), ..StateRecord::default() };
        folder.save(&mut saved.places, &changes, record).expect("saved").state
    }

    fn memory(folder: &mut StateFolder, state: &str) -> Vec<u8> {
        let bytes = folder.load(state, &vec![0; PAGES * PAGE_BYTES]).expect("loaded").bytes;
        bytes.chunks_exact(PAGE_BYTES).map(|page| page[0]).collect()
    }

    #[test]
    fn a_copy_begins_with_the_variables_and_its_own_come_back_as_a_branch() {
        let (note, copy) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let mut ours = StateFolder::open(note.path(), PACK).expect("opened");
        assert!(
            StateFolder::copy_line(note.path(), copy.path(), u64::MAX).expect("read").is_none(),
            "there is no state yet"
        );
        let first = save(&mut ours, 0, 1);
        let second = save(&mut ours, 1, 2);
        // The note's kernel has the folder open all the time.
        assert_eq!(StateFolder::copy_line(note.path(), copy.path(), u64::MAX).expect("copied"), Some(second.clone()));
        assert_eq!(
            StateFolder::copy_line(note.path(), copy.path(), u64::MAX).expect("read"),
            None,
            "it has variables now"
        );
        let mut theirs = StateFolder::open(copy.path(), PACK).expect("opened");
        assert_eq!(memory(&mut theirs, &second), [1, 2, 0, 0]);
        assert_eq!(theirs.lineage(Some(&second)).len(), 2);
        let back = StateMove::To(first.clone()).apply(theirs.heads(), &|id| theirs.record(id).ok()).expect("a move");
        theirs.set_heads(back).expect("moved");
        let (third, fourth) = (save(&mut theirs, 2, 3), save(&mut theirs, 3, 4));
        let own = save(&mut ours, 2, 9);

        assert_eq!(StateFolder::bring_line(copy.path(), note.path()).expect("brought"), Some(fourth.clone()));
        assert!(matches!(ours.record(&fourth), Err(StateError::NoSuchState)), "the kernel doesn't know it yet");
        ours.add_brought(&fourth).expect("added");
        let take = |ours: &StateFolder, name: &str| {
            StateMove::Take(name.to_owned(), fourth.clone()).apply(ours.heads(), &|id| ours.record(id).ok())
        };
        let heads = take(&ours, "try").expect("a move");
        assert!(matches!(take(&ours, "main"), Err(StateError::BranchExists { .. })));
        ours.set_heads(heads).expect("moved");
        assert_eq!((ours.heads().branch.as_str(), ours.heads().current()), ("main", Some(own.as_str())));
        let line: Vec<String> = ours.lineage(Some(&fourth)).into_iter().map(|record| record.state).collect();
        assert_eq!(line, [first, third, fourth.clone()]);
        assert_eq!((memory(&mut ours, &fourth), memory(&mut ours, &own)), (vec![1, 0, 3, 4], vec![1, 2, 9, 0]));
        // Also for a kernel that starts later.
        drop(ours);
        let mut ours = StateFolder::open(note.path(), PACK).expect("opened");
        assert_eq!(memory(&mut ours, &fourth), [1, 0, 3, 4]);

        assert!(matches!(lock_folder(copy.path(), std::time::Duration::ZERO), Err(StateError::InUse { .. })));
        drop(theirs);
        StateFolder::remove_folder(copy.path()).expect("removed");
        assert!(!copy.path().exists());
        StateFolder::remove_folder(copy.path()).expect("nothing to remove");
        assert_eq!(memory(&mut ours, &fourth), [1, 0, 3, 4], "nothing of it was in the copy");
    }

    #[test]
    fn a_copy_keeps_to_its_size_and_earlier_states_count_as_thinned() {
        let (note, copy) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let mut ours = StateFolder::open(note.path(), PACK).expect("opened");
        let (first, second) = (save(&mut ours, 0, 1), save(&mut ours, 0, 2));
        let refused = StateFolder::copy_line(note.path(), copy.path(), 10);
        assert!(matches!(refused, Err(StateError::TooLargeToCopy { .. })), "{refused:?}");
        assert!(!copy.path().join("heads").exists());
        let size = |name: &str| std::fs::metadata(note.path().join("states").join(name)).expect("a file").len();
        let file = read_state(note.path(), &second).expect("read");
        let segments = file.segments.iter().map(|name| note.path().join("segments").join(name));
        let needed = size(&second) + segments.map(|path| std::fs::metadata(path).expect("a file").len()).sum::<u64>();
        StateFolder::copy_line(note.path(), copy.path(), needed).expect("copied");
        let theirs = StateFolder::open(copy.path(), PACK).expect("opened");
        assert!(theirs.kept.contains_key(&second) && !theirs.kept.contains_key(&first));
        let plan = theirs.replay_plan(&first).expect("a plan");
        assert_eq!((plan.base, plan.cells.len()), (None, 1), "its cell runs again");
    }

    #[test]
    fn forged_files_of_a_copy_are_refused() {
        let (note, copy) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let mut ours = StateFolder::open(note.path(), PACK).expect("opened");
        save(&mut ours, 0, 1);
        StateFolder::copy_line(note.path(), copy.path(), u64::MAX).expect("copied");
        let mut theirs = StateFolder::open(copy.path(), PACK).expect("opened");
        let state = save(&mut theirs, 1, 2);
        let file = read_state(copy.path(), &state).expect("read");
        let new = file.segments.iter().position(|name| !note.path().join("segments").join(name).exists());
        let new = new.expect("a new segment");
        let place = |name: &str| copy.path().join("segments").join(name);
        let whole = std::fs::read(place(&file.segments[new])).expect("read");
        let before = crate::folder_bytes(note.path());
        let refuse = || {
            let refused = StateFolder::bring_line(copy.path(), note.path());
            assert!(matches!(refused, Err(StateError::Damaged { .. })), "{refused:?}");
            assert_eq!(crate::folder_bytes(note.path()), before);
        };
        std::fs::write(place(&file.segments[new]), &whole[..whole.len() - 1]).expect("written");
        refuse();
        std::fs::write(place(&file.segments[new]), &whole).expect("written");
        // A segment that is whole, but says another hash of its page.
        let mut other = whole;
        other[20] ^= 1;
        let name = blake3::hash(&other).to_hex()[..32].to_owned();
        std::fs::write(place(&name), &other).expect("written");
        let mut forged = file.clone();
        forged.segments[new] = name;
        crate::files::write_state(copy.path(), &forged).expect("written");
        refuse();
        crate::files::write_state(copy.path(), &file).expect("written");
        assert_eq!(StateFolder::bring_line(copy.path(), note.path()).expect("brought"), Some(state));
    }
}
