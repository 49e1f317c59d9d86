//! States that came from another device. They are untrusted until the kernel's process, which is confined, has checked
//! their hashes and bounds. What this device has is never replaced by them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::errors::StateError;
use crate::files::{damaged, is_name, parse_segment, parse_state, read_bounded, read_heads, write_whole};
use crate::folder::{MAX_LISTED_NAMES, StateFolder};
use crate::pages::{MAX_GUEST_MEMORY_BYTES, PAGE_BYTES};
use crate::records::StateRecord;
use crate::shared_state::{MAX_ANNOUNCEMENT_BYTES, SharedState, SharedStateFile};

/// Name of the folder with what came from another device and isn't checked yet.
const INCOMING_FOLDER: &str = "incoming";
/// Name of the file with the announcement in that folder.
const ANNOUNCEMENT_FILE: &str = "announcement";
/// Maximum number of pages of all received segments. A state's memory is at most half of it.
const MAX_RECEIVED_PAGES: usize = 2 * MAX_GUEST_MEMORY_BYTES / PAGE_BYTES;
/// Maximum number of pages that are decompressed at once: 128 MB.
pub(crate) const MAX_RECEIVED_FRAME_PAGES: usize = 32_768;
/// Maximum number of cells that have run before a received state.
const MAX_RECEIVED_COUNT: u64 = 1 << 32;
/// Maximum length of a received cell's label and of an execution's ID.
const MAX_RECEIVED_LABEL_BYTES: usize = 200;
/// Name of the fork that keeps this device's variables while those of another device are current.
const LOCAL_BRANCH: &str = "here";

/// Returns the path at which a file of another device's state is put for [`StateFolder::receive`].
#[must_use]
pub fn incoming_file(folder: &Path, file: &SharedStateFile) -> PathBuf {
    folder.join(INCOMING_FOLDER).join(&file.hash)
}

/// Prepares a note's folder for the state that another device announced, and returns the files to fetch. `None`: this
/// state isn't taken over.
///
/// Without being asked (`is_asked`), it's taken over only if it's new here and follows this device's state, or this
/// device never had one. No file is fetched for another `pack`, since [`StateFolder::receive`] refuses the state.
///
/// # Errors
/// Returns an error if the announcement or the current state can't be read, or the folder can't be written.
pub fn plan_receiving(
    folder: &Path,
    announcement: &str,
    pack: Option<&str>,
    is_asked: bool,
) -> Result<Option<Vec<SharedStateFile>>, StateError> {
    let shared = SharedState::parse(announcement)?;
    let heads = read_heads(folder)?;
    let follows = match heads.current() {
        Some(current) if current == shared.state => return Ok(None),
        Some(current) => shared.ancestors.iter().any(|ancestor| ancestor == current),
        None => !folder.join("heads").exists(), // otherwise the user started over
    };
    let is_there = |path: &Path| std::fs::symlink_metadata(path).is_ok();
    // What was here before was left by the user, with an undo or for a fork, and isn't imposed again.
    let is_left = is_there(&folder.join("states").join(&shared.state));
    if !is_asked && (!follows || is_left) {
        return Ok(None);
    }
    let incoming = folder.join(INCOMING_FOLDER);
    std::fs::create_dir_all(&incoming).map_err(|source| StateError::write(&incoming, source))?;
    write_whole(&incoming.join(ANNOUNCEMENT_FILE), announcement.as_bytes())?;
    if pack.is_some_and(|pack| pack != shared.pack) {
        return Ok(Some(Vec::new()));
    }
    let states = shared.states.iter().map(|(id, file)| (file, folder.join("states").join(id)));
    let segments = shared.segments.iter().map(|file| (file, folder.join("segments").join(file.segment_name())));
    let missing = states
        .chain(segments)
        .filter(|(file, path)| !is_there(path) && !is_there(&incoming_file(folder, file)))
        .map(|(file, _)| file.clone());
    Ok(Some(missing.collect()))
}

impl StateFolder {
    /// Checks the state that came from another device, and adds it to this folder's. Returns its ID; making it current
    /// is another step. If this device's current state isn't on its line, a fork keeps it.
    ///
    /// # Errors
    /// Returns an error if a file is missing or damaged, or the state is of another pack. No state has changed then.
    pub fn receive(&mut self) -> Result<String, StateError> {
        let incoming = self.folder.join(INCOMING_FOLDER);
        let received = self.receive_from(&incoming);
        if !matches!(received, Err(StateError::NotReceived)) {
            let _ = std::fs::remove_dir_all(&incoming); // what stays is overwritten the next time
        }
        received
    }

    fn receive_from(&mut self, incoming: &Path) -> Result<String, StateError> {
        let text = read_bounded(&incoming.join(ANNOUNCEMENT_FILE), MAX_ANNOUNCEMENT_BYTES);
        let text = text.map_err(|_| StateError::NotReceived)?;
        let shared = SharedState::parse(std::str::from_utf8(&text).map_err(|_| StateError::BadAnnouncement)?)?;
        if shared.pack != self.pack {
            return Err(StateError::OtherPack);
        }
        let mut pages = 0;
        for file in &shared.segments {
            pages += self.receive_segment(incoming, file)?;
            if pages > MAX_RECEIVED_PAGES {
                return Err(damaged(incoming));
            }
        }
        // A state follows its parent, so that a crash leaves no gap.
        for (id, file) in shared.states.iter().rev() {
            self.receive_state(incoming, id, file, &shared)?;
        }
        self.keep_local_branch(&shared)?;
        Ok(shared.state)
    }

    /// Adds a segment, unless it's here. Returns the number of its pages that were checked.
    fn receive_segment(&mut self, incoming: &Path, file: &SharedStateFile) -> Result<usize, StateError> {
        let name = file.segment_name();
        if self.segment_bytes.contains_key(name) {
            return Ok(0);
        }
        let bytes = read_incoming(incoming, file)?;
        let segment = parse_segment(incoming.join(&file.hash), name, bytes.clone())?;
        if segment.hashes.len() > MAX_RECEIVED_PAGES {
            return Err(damaged(incoming));
        }
        segment.check_pages(MAX_RECEIVED_FRAME_PAGES)?;
        write_whole(&self.folder.join("segments").join(name), &bytes)?;
        self.segment_bytes.insert(name.to_owned(), file.size);
        Ok(segment.hashes.len())
    }

    /// Adds a state, unless this device knows it.
    fn receive_state(
        &mut self,
        incoming: &Path,
        id: &str,
        file: &SharedStateFile,
        shared: &SharedState,
    ) -> Result<(), StateError> {
        if self.records.contains_key(id) || self.kept.contains_key(id) {
            return Ok(());
        }
        let bytes = read_incoming(incoming, file)?;
        let path = incoming.join(&file.hash);
        let state = parse_state(&path, id, &bytes)?;
        let named: HashSet<&str> = shared.segments.iter().map(SharedStateFile::segment_name).collect();
        let is_whole = state.segments.iter().all(|name| named.contains(name.as_str()));
        if state.pack != self.pack || !is_whole || !is_plausible(&state.record) {
            return Err(damaged(&path));
        }
        write_whole(&self.folder.join("states").join(id), &bytes)?;
        self.add_state(&state, file.size);
        Ok(())
    }

    /// Keeps the current state as a fork, if the received one doesn't follow it.
    fn keep_local_branch(&mut self, shared: &SharedState) -> Result<(), StateError> {
        let mut heads = self.heads().clone();
        let Some(current) = heads.current().map(ToOwned::to_owned) else { return Ok(()) };
        if current == shared.state || shared.ancestors.contains(&current) {
            return Ok(());
        }
        let name = |number: u32| match number {
            1 => LOCAL_BRANCH.to_owned(),
            number => format!("{LOCAL_BRANCH} {number}"),
        };
        if let Some(name) = (1..).map(name).find(|name| !heads.branches.contains_key(name)) {
            heads.branches.insert(name, Some(current));
        }
        self.set_heads(heads)
    }
}

/// Reads a received file and checks its size and hash.
fn read_incoming(incoming: &Path, file: &SharedStateFile) -> Result<Vec<u8>, StateError> {
    let path = incoming.join(&file.hash);
    let most = usize::try_from(file.size).unwrap_or(usize::MAX);
    let bytes = read_bounded(&path, most).map_err(|why| match why {
        StateError::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound => StateError::NotReceived,
        other => other,
    })?;
    let is_same = bytes.len() as u64 == file.size && blake3::hash(&bytes).to_hex().as_str() == file.hash;
    if is_same { Ok(bytes) } else { Err(damaged(&path)) }
}

/// Returns whether what a received state says of itself is within bounds.
pub(crate) fn is_plausible(record: &StateRecord) -> bool {
    record.count <= MAX_RECEIVED_COUNT
        && record.bytes <= i64::MAX as u64
        && record.time <= i64::MAX as u64
        && record.cell.len() <= MAX_RECEIVED_LABEL_BYTES
        && record.execution.len() <= MAX_RECEIVED_LABEL_BYTES
        && record.parent.as_deref().is_none_or(is_name)
        && [&record.defined, &record.changed, &record.forgotten].iter().all(|names| names.len() <= MAX_LISTED_NAMES)
}

#[cfg(test)]
mod tests;
