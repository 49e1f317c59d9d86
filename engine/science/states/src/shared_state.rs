//! States that other devices may have: which notes share theirs, and the announcement of the newest state.
//!
//! An announcement names files by their hash: those of the newest states of a line, and the segments that they need.
//! Other devices have most segments from the announcement before. Nothing is announced or offered without the note's
//! marker, which only this device's user makes, and which holds for one volume.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::iter::empty;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::errors::StateError;
use crate::files::{damaged, is_name, parse_state, read_bounded, read_heads, write_whole};
use crate::folder::StateFolder;
use crate::records::StateRecord;
use crate::withdrawn_files::record_withdrawn;

/// Maximum size of an announcement in bytes.
pub const MAX_ANNOUNCEMENT_BYTES: usize = 1 << 20;
/// Maximum size of all files of an announced state. That of a blob is the same.
const MAX_SHARED_STATE_BYTES: usize = 512 << 20;
/// Maximum size of a state's own file, without its segments.
const MAX_SHARED_DESCRIPTION_BYTES: usize = 4 << 20;
/// Number of announced states of a line, as many as are never thinned.
const MAX_SHARED_STATES: usize = 8;
/// Maximum number of segments of an announced state.
const MAX_SHARED_SEGMENTS: usize = 4_096;
/// Maximum number of earlier states that an announcement names.
const MAX_SHARED_ANCESTORS: usize = 256;
/// Maximum number of variables that an announcement names, and the maximum length of a name.
const MAX_SHARED_NAMES: usize = 200;
const MAX_SHARED_NAME_BYTES: usize = 100;
/// Name of the file that says that a note shares its states.
pub(crate) const MARKER_FILE: &str = "shared";

/// A file that belongs to an announced state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedStateFile {
    /// BLAKE3 hash of the file: 64 hexadecimal digits.
    pub hash: String,
    /// Size of the file in bytes.
    pub size: u64,
}

impl SharedStateFile {
    fn of(bytes: &[u8]) -> SharedStateFile {
        SharedStateFile { hash: blake3::hash(bytes).to_hex().to_string(), size: bytes.len() as u64 }
    }

    /// Returns the name of the file as a segment.
    pub(crate) fn segment_name(&self) -> &str {
        self.hash.get(..32).unwrap_or_default()
    }

    fn is_valid(&self) -> bool {
        self.hash.len() == 64 && self.hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }
}

/// The newest state of a note's kernel, as announced to other devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedState {
    /// ID of the state.
    pub state: String,
    /// The state before it; `None` is a fresh kernel.
    pub parent: Option<String>,
    /// Hash of the pack. A state can't be used with another pack.
    pub pack: String,
    /// Names of the variables, as far as they are known.
    pub names: Vec<String>,
    /// The states before it, newest first.
    pub ancestors: Vec<String>,
    /// The state and those before it that go along, newest first: ID and file.
    pub states: Vec<(String, SharedStateFile)>,
    /// The files with their pages.
    pub segments: Vec<SharedStateFile>,
}

impl SharedState {
    /// Parses an announcement, which is untrusted.
    ///
    /// # Errors
    /// Returns an error if it's too large, can't be read, or names something that can't be a state's file.
    pub fn parse(text: &str) -> Result<SharedState, StateError> {
        if text.len() > MAX_ANNOUNCEMENT_BYTES {
            return Err(StateError::BadAnnouncement);
        }
        let shared: SharedState = serde_json::from_str(text).map_err(|_| StateError::BadAnnouncement)?;
        let is_id = |id: &String| is_name(id) && !id.bytes().any(|byte| byte.is_ascii_uppercase());
        let fits = is_id(&shared.state)
            && shared.states.first().is_some_and(|(id, _)| *id == shared.state)
            && shared.states.len() <= MAX_SHARED_STATES
            && shared.segments.len() <= MAX_SHARED_SEGMENTS
            && shared.ancestors.len() <= MAX_SHARED_ANCESTORS
            && shared.states.iter().map(|(id, _)| id).chain(&shared.ancestors).chain(&shared.parent).all(is_id)
            && shared.states.iter().all(|(_, file)| file.size <= MAX_SHARED_DESCRIPTION_BYTES as u64)
            && shared.files().all(SharedStateFile::is_valid)
            && shared.bytes() <= MAX_SHARED_STATE_BYTES as u64;
        if fits { Ok(shared) } else { Err(StateError::BadAnnouncement) }
    }

    /// Returns the text that [`SharedState::parse`] reads.
    ///
    /// # Errors
    /// Returns an error if it would be larger than an announcement may be.
    pub fn to_text(&self) -> Result<String, StateError> {
        let text = serde_json::to_string(self).map_err(|error| StateError::Encode(error.to_string()))?;
        if text.len() > MAX_ANNOUNCEMENT_BYTES { Err(StateError::BadAnnouncement) } else { Ok(text) }
    }

    /// Returns the files of all announced states.
    pub fn files(&self) -> impl Iterator<Item = &SharedStateFile> {
        self.states.iter().map(|(_, file)| file).chain(&self.segments)
    }

    /// Returns the size of all files in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files().fold(0, |sum, file| sum.saturating_add(file.size))
    }
}

/// Content of the file that says that a note shares its states.
#[derive(Default, Serialize, Deserialize)]
struct ShareMarker {
    /// The volume with whose devices they are shared.
    volume: String,
    /// What was announced last, so that only new segments are hashed.
    announced: Option<SharedState>,
}

/// Reads a note's marker, for whichever volume it is.
fn read_any_marker(folder: &Path) -> Option<ShareMarker> {
    let bytes = read_bounded(&folder.join(MARKER_FILE), 2 * MAX_ANNOUNCEMENT_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Reads a note's marker. Without a readable one, the states stay on this device.
fn read_marker(folder: &Path, volume: &str) -> Option<ShareMarker> {
    read_any_marker(folder).filter(|marker| marker.volume == volume)
}

/// Records that hubs have to delete what a marker announced last.
fn withdraw_announced(folder: &Path, marker: &ShareMarker) -> Result<(), StateError> {
    match &marker.announced {
        Some(announced) => record_withdrawn(folder, &marker.volume, announced.files(), empty()),
        None => Ok(()),
    }
}

fn write_marker(folder: &Path, marker: &ShareMarker) -> Result<(), StateError> {
    let bytes = serde_json::to_vec(marker).map_err(|error| StateError::Encode(error.to_string()))?;
    write_whole(&folder.join(MARKER_FILE), &bytes)
}

/// Shares the states in a note's folder with the devices of this volume, from now on.
///
/// # Errors
/// Returns an error if this can't be written.
pub fn begin_sharing(folder: &Path, volume: &str) -> Result<(), StateError> {
    match read_any_marker(folder) {
        Some(marker) if marker.volume == volume => return Ok(()),
        Some(marker) => withdraw_announced(folder, &marker)?,
        None => {}
    }
    std::fs::create_dir_all(folder).map_err(|source| StateError::write(folder, source))?;
    write_marker(folder, &ShareMarker { volume: volume.to_owned(), announced: None })
}

/// Keeps the states in a note's folder on this device, from now on. Hubs have to delete what was shared, see
/// [`crate::withdrawn_files`].
///
/// # Errors
/// Returns an error if the marker can't be removed, or what hubs have to delete can't be written. The states are still
/// shared then.
pub fn end_sharing(folder: &Path) -> Result<(), StateError> {
    if let Some(marker) = read_any_marker(folder) {
        withdraw_announced(folder, &marker)?;
    }
    let path = folder.join(MARKER_FILE);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(StateError::write(&path, error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Withdraws what a note shared with the devices of another volume before it was moved to this one.
fn withdraw_elsewhere(folder: &Path, volume: &str) -> Result<(), StateError> {
    match read_any_marker(folder).filter(|marker| marker.volume != volume && marker.announced.is_some()) {
        Some(marker) => {
            withdraw_announced(folder, &marker)?;
            write_marker(folder, &ShareMarker { announced: None, ..marker })
        }
        None => Ok(()),
    }
}

/// Describes a note's current state for the devices of this volume. `None`: it isn't shared with them, or there is no
/// state. Hubs have to delete what was announced before and is no longer needed, see [`crate::withdrawn_files`].
///
/// # Errors
/// Returns an error if a file can't be read or is damaged, or the state is too large.
pub fn announce_state(folder: &Path, volume: &str) -> Result<Option<SharedState>, StateError> {
    let Some(marker) = read_marker(folder, volume) else {
        return withdraw_elsewhere(folder, volume).map(|()| None);
    };
    let heads = read_heads(folder)?;
    let Some(current) = heads.current() else { return Ok(None) };
    let states = StateFolder::open_for_reading(folder, "")?;
    let line: Vec<&StateRecord> = states.ancestors(Some(current)).collect();
    let known: HashMap<String, SharedStateFile> = marker
        .announced
        .iter()
        .flat_map(|announced| &announced.segments)
        .map(|file| (file.segment_name().to_owned(), file.clone()))
        .collect();
    let (mut pack, mut described, mut needed) = (String::new(), Vec::new(), BTreeSet::new());
    for record in line.iter().take(MAX_SHARED_STATES) {
        let path = folder.join("states").join(&record.state);
        // An earlier state may have been thinned. Then the line begins after it.
        let bytes = match read_bounded(&path, MAX_SHARED_DESCRIPTION_BYTES) {
            Err(_) if !described.is_empty() => break,
            read => read?,
        };
        let file = parse_state(&path, &record.state, &bytes)?;
        pack = file.pack;
        needed.extend(file.segments);
        described.push((record.state.clone(), SharedStateFile::of(&bytes)));
    }
    let mut segments = Vec::new();
    for name in needed {
        segments.push(match known.get(&name) {
            Some(file) => file.clone(),
            None => hash_segment(folder, &name)?,
        });
    }
    let names: BTreeSet<&String> = line.iter().flat_map(|record| &record.defined).collect();
    let short = |name: &&String| name.len() <= MAX_SHARED_NAME_BYTES;
    let shared = SharedState {
        state: current.to_owned(),
        parent: line.first().and_then(|record| record.parent.clone()),
        pack,
        names: names.into_iter().filter(short).take(MAX_SHARED_NAMES).cloned().collect(),
        ancestors: line.iter().skip(1).take(MAX_SHARED_ANCESTORS).map(|record| record.state.clone()).collect(),
        states: described,
        segments,
    };
    if shared.bytes() > MAX_SHARED_STATE_BYTES as u64 || shared.segments.len() > MAX_SHARED_SEGMENTS {
        let (megabytes, most) = (shared.bytes() >> 20, (MAX_SHARED_STATE_BYTES >> 20) as u64);
        return Err(StateError::TooLargeToShare { megabytes, most });
    }
    if shared.states.is_empty() {
        return Err(StateError::NoSuchState); // the current one can't be read
    }
    let announced: HashSet<&str> = shared.files().map(|file| file.hash.as_str()).collect();
    let before = marker.announced.iter().flat_map(SharedState::files);
    let superseded = before.filter(|file| !announced.contains(file.hash.as_str()));
    record_withdrawn(folder, volume, superseded, shared.files())?;
    write_marker(folder, &ShareMarker { volume: volume.to_owned(), announced: Some(shared.clone()) })?;
    Ok(Some(shared))
}

/// Hashes a segment, whose name is the first half of its hash.
fn hash_segment(folder: &Path, name: &str) -> Result<SharedStateFile, StateError> {
    let path = folder.join("segments").join(name);
    let file = SharedStateFile::of(&read_bounded(&path, MAX_SHARED_STATE_BYTES)?);
    if file.segment_name() == name { Ok(file) } else { Err(damaged(&path)) }
}

/// Returns the files of an announcement that this device gives to the devices of this volume, each with its path in the
/// note's folder: those that it has announced itself, and none unless its user shares the note's states with them.
/// Whether a file is there isn't checked.
#[must_use]
pub fn offered_files(folder: &Path, volume: &str, announcement: &str) -> Vec<(SharedStateFile, String)> {
    let own = read_marker(folder, volume).and_then(|marker| marker.announced);
    let (Some(own), Ok(shared)) = (own, SharedState::parse(announcement)) else { return Vec::new() };
    // Another device could announce a file under the hash of other content, which this one then seemed to have.
    let own_segments: HashSet<(&str, u64)> = own.segments.iter().map(|file| (file.hash.as_str(), file.size)).collect();
    let states = shared.states.into_iter().filter(|state| own.states.contains(state));
    let states = states.map(|(id, file)| (file, format!("states/{id}")));
    let segments = shared.segments.into_iter().filter(|file| own_segments.contains(&(file.hash.as_str(), file.size)));
    let segments = segments.map(|file| {
        let path = format!("segments/{}", file.segment_name());
        (file, path)
    });
    states.chain(segments).collect()
}
