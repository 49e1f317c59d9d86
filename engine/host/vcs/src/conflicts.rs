//! Files in conflict after a merge, rebase, cherry-pick, revert or stash: which side did what, and the text of both
//! sides.
//!
//! The sides of a file come from the index. Its conflicts are the parts that Git has marked in the file, since they're
//! what the user sees and what a choice replaces. Where a line could be text as well as a marker, the sides decide.
//! Those of a note without markers are found in another way: see `note_choices`.

use crate::errors::VcsError;
use crate::note_choices::ResolvedText;
use crate::repository_folder::{MAX_COMMIT_FILE_BYTES, RepositoryFolder};
use git2::{AttrCheckFlags, AttrValue, IndexConflict, IndexEntry, ObjectType, Oid, RepositoryState};
use std::io::Read;
use std::ops::Range;
use std::path::Path;

/// Maximum number of files in conflict that are listed.
pub const MAX_CONFLICT_FILES: usize = 500;
/// Maximum size in bytes of a file, and of each of its sides, whose conflicts are told apart.
pub const MAX_CONFLICT_FILE_BYTES: u64 = 4 << 20;
/// Maximum number of conflicts that are told apart in a file.
pub const MAX_CONFLICT_REGIONS: usize = 500;
/// Maximum size in bytes of all files that a list reads.
pub(crate) const MAX_LISTED_BYTES: u64 = 64 << 20;
/// Maximum number of lines of a file that are checked for being the middle of a conflict or a part of its text.
const MAX_DOUBTFUL_LINES: usize = 100;
/// Maximum length of the name of a side, in characters.
const MAX_SIDE_NAME_CHARS: usize = 80;
/// Length of Git's markers, if no attribute says otherwise.
const DEFAULT_MARKER_LENGTH: usize = 7;
/// Maximum length of markers that an attribute can ask for.
const MAX_MARKER_LENGTH: usize = 200;

/// What both sides did to a file. “Ours” and “theirs” are Git's words: in a rebase, ours is the other branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConflictKind {
    /// Both have changed it.
    BothModified,
    /// Both have added it.
    BothAdded,
    /// Ours has changed it, theirs has deleted it.
    DeletedByTheirs,
    /// Ours has deleted it, theirs has changed it.
    DeletedByOurs,
    /// Both have deleted it, or moved it to different places.
    BothDeleted,
    /// Only ours has it, for instance because it was moved there.
    AddedByOurs,
    /// Only theirs has it, for instance because it was moved there.
    AddedByTheirs,
}

impl ConflictKind {
    /// Describes it in Git's words.
    pub fn word(self) -> &'static str {
        match self {
            ConflictKind::BothModified => "changed on both sides",
            ConflictKind::BothAdded => "added on both sides",
            ConflictKind::DeletedByTheirs => "changed by ours, deleted by theirs",
            ConflictKind::DeletedByOurs => "deleted by ours, changed by theirs",
            ConflictKind::BothDeleted => "deleted or moved on both sides",
            ConflictKind::AddedByOurs => "added by ours",
            ConflictKind::AddedByTheirs => "added by theirs",
        }
    }

    /// Returns whether a side has the file.
    pub fn has_file(self, is_theirs: bool) -> bool {
        match self {
            ConflictKind::BothModified | ConflictKind::BothAdded => true,
            ConflictKind::DeletedByTheirs | ConflictKind::AddedByOurs => !is_theirs,
            ConflictKind::DeletedByOurs | ConflictKind::AddedByTheirs => is_theirs,
            ConflictKind::BothDeleted => false,
        }
    }
}

/// The side of a conflict to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictChoice {
    /// That of Git's ours.
    Ours,
    /// That of Git's theirs.
    Theirs,
    /// Both, ours first.
    Both,
}

/// A part of a file that both sides have changed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ConflictRegion {
    /// Number among the conflicts that are left in the file, from 1.
    pub number: usize,
    /// Number of the line where it begins, from 1.
    pub line: usize,
    /// Text of ours; bytes that aren't UTF-8 are replaced.
    pub ours: String,
    /// Text of theirs.
    pub theirs: String,
}

/// A file in conflict.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FileConflict {
    /// Path relative to the folder, with `/` separators.
    pub path: String,
    /// The change on each side.
    pub kind: ConflictKind,
    /// Whether a side isn't text.
    pub is_binary: bool,
    /// The conflicts that are left in its text.
    pub regions: Vec<ConflictRegion>,
    /// Why its conflicts can't be told apart, or what can no longer be chosen, without the path.
    pub trouble: Option<String>,
    /// Hash of the file and of its choices as they are now, by which a choice is checked; `None` if there's no file.
    pub seen: Option<String>,
    /// Whether Git's markers were taken out, because it's a note: where there's no choice yet, it has one side's text.
    pub is_unmarked: bool,
}

/// A side of all conflicts.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ConflictSide {
    /// What it is, such as “Your change (main)” or “From idea”; untrusted.
    pub name: String,
    /// Whether it's the user's own change.
    pub is_yours: bool,
}

/// Both sides, in Git's words.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ConflictSides {
    /// Git's ours.
    pub ours: ConflictSide,
    /// Git's theirs.
    pub theirs: ConflictSide,
}

impl ConflictSides {
    /// Returns a side.
    pub fn side(&self, is_theirs: bool) -> &ConflictSide {
        if is_theirs { &self.theirs } else { &self.ours }
    }

    /// Returns whether the user's own change is Git's theirs, as in a rebase.
    pub fn is_yours_theirs(&self) -> bool {
        self.theirs.is_yours
    }
}

/// A conflict that is marked in a file's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkedRegion {
    line: usize,
    pub(crate) whole: Range<usize>,
    pub(crate) ours: Range<usize>,
    pub(crate) theirs: Range<usize>,
}

/// The bytes of both sides of a file.
pub(crate) struct SideTexts {
    pub(crate) ours: Vec<u8>,
    pub(crate) theirs: Vec<u8>,
}

impl RepositoryFolder {
    /// Lists the files in conflict, at most [`MAX_CONFLICT_FILES`]. Returns whether the list is complete.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn conflicts(&self) -> Result<(Vec<FileConflict>, bool), VcsError> {
        let index = self.repository.index()?;
        let mut found = Vec::new();
        let mut bytes = 0;
        for conflict in index.conflicts()? {
            let conflict = conflict?;
            // File names that aren't valid UTF-8 can't be shown or passed on.
            let Some(inside) = conflict_path(&conflict).filter(|path| self.has_path(path)) else { continue };
            if found.len() == MAX_CONFLICT_FILES {
                return Ok((found, false));
            }
            bytes += self.top.join(&inside).symlink_metadata().map_or(0, |meta| meta.len());
            let is_read = bytes <= MAX_LISTED_BYTES;
            found.push(self.describe_conflict(&inside, &conflict, is_read)?);
        }
        Ok((found, true))
    }

    /// Returns the conflicts of a file.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if the path leads out of the folder, or if the file isn't in conflict.
    pub fn conflict(&self, path: &str) -> Result<FileConflict, VcsError> {
        let inside = self.repository_path(path)?;
        let conflict = self.conflict_entries(&inside, path)?;
        let mut described = self.describe_conflict(&inside, &conflict, true)?;
        if described.seen.is_none() {
            described.seen = self.file_id(path)?;
        }
        Ok(described)
    }

    /// Returns the hash of a file's bytes, as Git counts it without filters; `None` if there's no regular file of at
    /// most 100 MB.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if the path leads out of the folder.
    pub fn file_id(&self, path: &str) -> Result<Option<String>, VcsError> {
        let file = self.top.join(self.repository_path(path)?);
        let is_small = |meta: &std::fs::Metadata| meta.is_file() && meta.len() <= MAX_COMMIT_FILE_BYTES;
        if !file.symlink_metadata().is_ok_and(|meta| is_small(&meta)) {
            return Ok(None);
        }
        Ok(Some(Oid::hash_file(ObjectType::Blob, &file)?.to_string()))
    }

    /// Returns the bytes of a file with some of its conflicts replaced by a side: one by its number, or all that are
    /// left. `bytes` are the file's current ones. [`RepositoryFolder::record_choice`] comes before and after they're
    /// written.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if the file isn't in conflict, if its conflicts can't be told apart, or if there's
    /// no conflict with this number.
    pub fn resolve_regions(
        &self,
        path: &str,
        bytes: &[u8],
        choice: ConflictChoice,
        region: Option<usize>,
    ) -> Result<ResolvedText, VcsError> {
        let refuse = |why: String| Err(VcsError::Refused(format!("{why}: {path}")));
        let is_missing = |count: usize| region.is_some_and(|number| number == 0 || number > count);
        let missing = |count: usize| format!("there is no conflict {} in it, it has {count}", region.unwrap_or(0));
        let inside = self.repository_path(path)?;
        let conflict = self.conflict_entries(&inside, path)?;
        let texts = match self.side_texts(&conflict)? {
            Ok(texts) => texts,
            Err(why) => return refuse(why.to_owned()),
        };
        if let Some(choices) = self.note_choices(&inside, &conflict, &texts, bytes)? {
            return match (choices.open_count(), choices.trouble()) {
                (0, Some(why)) => refuse(why),
                (count, _) if is_missing(count) => refuse(missing(count)),
                (_, _) => choices.resolve(bytes, &texts, choice, region),
            };
        }
        let regions = match marked_regions(bytes, self.marker_length(&inside)?, &texts) {
            Ok(regions) => regions,
            Err(why) => return refuse(why.to_owned()),
        };
        if is_missing(regions.len()) {
            return refuse(missing(regions.len()));
        }
        if regions.is_empty() {
            return refuse("no conflict is marked in it".to_owned());
        }
        let mut result = Vec::with_capacity(bytes.len());
        let mut at = 0;
        for (place, marked) in regions.iter().enumerate() {
            if region.is_some_and(|number| number != place + 1) {
                continue;
            }
            result.extend_from_slice(&bytes[at..marked.whole.start]);
            if choice != ConflictChoice::Theirs {
                result.extend_from_slice(&bytes[marked.ours.clone()]);
            }
            if choice != ConflictChoice::Ours {
                result.extend_from_slice(&bytes[marked.theirs.clone()]);
            }
            at = marked.whole.end;
            // Git ends the last line before a marker, though the side's text may not.
            let last = if choice == ConflictChoice::Ours { &texts.ours } else { &texts.theirs };
            if at == bytes.len() && !last.ends_with(b"\n") && result.ends_with(b"\n") {
                result.pop();
                if result.ends_with(b"\r") {
                    result.pop();
                }
            }
        }
        result.extend_from_slice(&bytes[at..]);
        let left = if region.is_some() { regions.len() - 1 } else { 0 };
        Ok(ResolvedText::of_marked(result, left))
    }

    /// Refuses to stage files that have conflicts in their text: staging would keep the markers as text, or one side
    /// without a choice. Without names, any file in conflict is refused.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`], and libgit2's error.
    pub fn refuse_unresolved(&self, files: &[String]) -> Result<(), VcsError> {
        let is_below = |path: &str, name: &str| {
            let name = name.trim_start_matches("./").trim_end_matches('/');
            let below = path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            below || matches!(name, "" | ".")
        };
        // What leads elsewhere by `..` is Git's to read; which file it means isn't known here.
        let is_unclear = files.iter().any(|name| self.repository_path(name).is_err());
        for conflict in self.repository.index()?.conflicts()? {
            let conflict = conflict?;
            let Some(inside) = conflict_path(&conflict) else { continue };
            let is_here = self.has_path(&inside);
            let path = self.folder_path(&inside);
            let is_named = is_here && files.iter().any(|name| is_below(path, name));
            let is_refused = is_unclear
                || is_here && files.is_empty()
                || is_named && !self.describe_conflict(&inside, &conflict, true)?.regions.is_empty();
            if is_refused {
                let why = format!("{path} is in conflict. Choose a side for each of its conflicts first.");
                return Err(VcsError::Refused(why));
            }
        }
        Ok(())
    }

    /// Returns what both sides of all conflicts are.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn conflict_sides(&self) -> Result<ConflictSides, VcsError> {
        let side = |name: String, is_yours| {
            let name = match name.char_indices().nth(MAX_SIDE_NAME_CHARS) {
                Some((end, _)) => format!("{}…", &name[..end]),
                None => name,
            };
            ConflictSide { name, is_yours }
        };
        let commit = |name: &str| {
            let object = self.repository.revparse_single(name).ok();
            object.and_then(|object| object.peel_to_commit().ok())
        };
        let subject = |commit: Option<git2::Commit<'_>>, before: &str, otherwise: &str| match commit {
            Some(commit) => format!("{before}{}", crate::reads::describe(&commit).summary),
            None => otherwise.to_owned(),
        };
        let yours = || -> Result<ConflictSide, VcsError> {
            let branch = self.branch_state()?.branch;
            Ok(side(branch.map_or_else(|| "Your change".to_owned(), |name| format!("Your change ({name})")), true))
        };
        let (ours, theirs) = match self.repository.state() {
            RepositoryState::Merge => (yours()?, side(self.name_of_other(commit("MERGE_HEAD"))?, false)),
            RepositoryState::CherryPick | RepositoryState::CherryPickSequence => {
                let name = subject(commit("CHERRY_PICK_HEAD"), "From the commit: ", "From the commit");
                (yours()?, side(name, false))
            }
            RepositoryState::Revert | RepositoryState::RevertSequence => {
                (yours()?, side(subject(commit("REVERT_HEAD"), "Without: ", "Without the commit"), false))
            }
            RepositoryState::ApplyMailbox => (yours()?, side("From the patch".to_owned(), false)),
            RepositoryState::Rebase
            | RepositoryState::RebaseInteractive
            | RepositoryState::RebaseMerge
            | RepositoryState::ApplyMailboxOrRebase => {
                let onto = ["rebase-merge/onto", "rebase-apply/onto"].iter().find_map(|name| self.read_state(name));
                let onto = onto.and_then(|id| Oid::from_str(&id).ok());
                let onto = onto.and_then(|id| self.repository.find_commit(id).ok());
                let name = subject(commit("REBASE_HEAD"), "Your change: ", "Your change");
                (side(self.name_of_other(onto)?, false), side(name, true))
            }
            // A stash that is applied leaves no other trace.
            RepositoryState::Clean | RepositoryState::Bisect => {
                (side("Your files".to_owned(), true), side("From the stash".to_owned(), false))
            }
        };
        Ok(ConflictSides { ours, theirs })
    }

    /// Names the branch at this commit, or else the commit.
    fn name_of_other(&self, commit: Option<git2::Commit<'_>>) -> Result<String, VcsError> {
        let Some(commit) = commit else { return Ok("From the other branch".to_owned()) };
        let id = commit.id().to_string();
        let branches = self.branches()?;
        let at = |is_remote: bool| branches.iter().find(|branch| branch.id == id && branch.remote == is_remote);
        Ok(match at(false).or_else(|| at(true)) {
            Some(branch) => format!("From {}", branch.name),
            None => format!("From the commit: {}", crate::reads::describe(&commit).summary),
        })
    }

    /// Reads a short file of Git's own.
    fn read_state(&self, name: &str) -> Option<String> {
        let mut text = String::new();
        let file = std::fs::File::open(self.repository.path().join(name)).ok()?;
        file.take(200).read_to_string(&mut text).ok()?;
        Some(text.trim().to_owned())
    }

    /// Returns whether a path in the repository is in the folder.
    pub(crate) fn has_path(&self, path: &str) -> bool {
        self.prefix.is_empty() || path.strip_prefix(&self.prefix).is_some_and(|rest| rest.starts_with('/'))
    }

    fn conflict_entries(&self, inside: &str, path: &str) -> Result<IndexConflict, VcsError> {
        let index = self.repository.index()?;
        let stage = |number| index.get_path(Path::new(inside), number);
        let conflict = IndexConflict { ancestor: stage(1), our: stage(2), their: stage(3) };
        match conflict_path(&conflict) {
            Some(_) => Ok(conflict),
            None => Err(VcsError::Refused(format!("it isn't in conflict: {path}"))),
        }
    }

    fn describe_conflict(
        &self,
        inside: &str,
        conflict: &IndexConflict,
        is_read: bool,
    ) -> Result<FileConflict, VcsError> {
        let kind = match (&conflict.ancestor, &conflict.our, &conflict.their) {
            (Some(_), Some(_), Some(_)) => ConflictKind::BothModified,
            (None, Some(_), Some(_)) => ConflictKind::BothAdded,
            (Some(_), Some(_), None) => ConflictKind::DeletedByTheirs,
            (Some(_), None, Some(_)) => ConflictKind::DeletedByOurs,
            (Some(_) | None, None, None) => ConflictKind::BothDeleted,
            (None, Some(_), None) => ConflictKind::AddedByOurs,
            (None, None, Some(_)) => ConflictKind::AddedByTheirs,
        };
        let path = self.folder_path(inside).to_owned();
        let mut found = FileConflict {
            path,
            kind,
            is_binary: false,
            regions: Vec::new(),
            trouble: None,
            seen: None,
            is_unmarked: false,
        };
        if !(kind.has_file(false) && kind.has_file(true)) {
            return Ok(found);
        }
        if !is_read {
            found.trouble = Some("there are too many conflicts to read at once, so name the file".to_owned());
            return Ok(found);
        }
        let texts = match self.side_texts(conflict)? {
            Ok(texts) => texts,
            Err(why) => {
                found.is_binary = why == BINARY_SIDE;
                found.trouble = Some(why.to_owned());
                return Ok(found);
            }
        };
        let bytes = match self.read_marked(inside) {
            Ok(bytes) => bytes,
            Err(why) => {
                found.trouble = Some(why.to_owned());
                return Ok(found);
            }
        };
        if let Some(choices) = self.note_choices(inside, conflict, &texts, &bytes)? {
            (found.is_unmarked, found.seen) = (true, Some(choices.seen(&bytes)?));
            (found.regions, found.trouble) = (choices.regions(), choices.trouble());
            return Ok(found);
        }
        found.seen = Some(Oid::hash_object(ObjectType::Blob, &bytes)?.to_string());
        match marked_regions(&bytes, self.marker_length(inside)?, &texts) {
            Ok(regions) => {
                let text = |range: &Range<usize>| String::from_utf8_lossy(&bytes[range.clone()]).into_owned();
                let region = |(place, marked): (usize, &MarkedRegion)| ConflictRegion {
                    number: place + 1,
                    line: marked.line,
                    ours: text(&marked.ours),
                    theirs: text(&marked.theirs),
                };
                found.regions = regions.iter().enumerate().map(region).collect();
                if regions.is_empty() {
                    found.trouble = Some("no conflict is marked in it, so stage it if it's as you want it".to_owned());
                }
            }
            Err(why) => found.trouble = Some(why.to_owned()),
        }
        Ok(found)
    }

    /// Reads a file that Git has marked.
    pub(crate) fn read_marked(&self, inside: &str) -> Result<Vec<u8>, &'static str> {
        let file = self.top.join(inside);
        let meta = file.symlink_metadata().map_err(|_| "the file is gone")?;
        if !meta.is_file() || !file.canonicalize().is_ok_and(|real| real.starts_with(&self.top)) {
            return Err("it isn't a regular file");
        }
        if meta.len() > MAX_CONFLICT_FILE_BYTES {
            return Err(LARGE_FILE);
        }
        let mut bytes = Vec::new();
        let opened = std::fs::File::open(&file).map_err(|_| "the file can't be read")?;
        opened.take(MAX_CONFLICT_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|_| "the file can't be read")?;
        match bytes.len() as u64 > MAX_CONFLICT_FILE_BYTES {
            true => Err(LARGE_FILE),
            false => Ok(bytes),
        }
    }

    /// Returns the texts of both sides, or why there are none.
    pub(crate) fn side_texts(&self, conflict: &IndexConflict) -> Result<Result<SideTexts, &'static str>, VcsError> {
        let (Some(ours), Some(theirs)) = (&conflict.our, &conflict.their) else {
            return Ok(Err("only one side has this file, so keep or delete it as a whole"));
        };
        let is_file = |entry: &IndexEntry| matches!(entry.mode, 0o100_644 | 0o100_755);
        if !is_file(ours) || !is_file(theirs) {
            return Ok(Err("it's a link or a repository, so resolve it with Git itself"));
        }
        let store = self.repository.odb()?;
        let mut texts = [Vec::new(), Vec::new()];
        for (entry, text) in [ours, theirs].into_iter().zip(&mut texts) {
            if store.read_header(entry.id)?.0 as u64 > MAX_CONFLICT_FILE_BYTES {
                return Ok(Err(LARGE_FILE));
            }
            let blob = self.repository.find_blob(entry.id)?;
            if blob.is_binary() {
                return Ok(Err(BINARY_SIDE));
            }
            *text = blob.content().to_vec();
        }
        let [ours, theirs] = texts;
        Ok(Ok(SideTexts { ours, theirs }))
    }

    pub(crate) fn marker_length(&self, inside: &str) -> Result<usize, VcsError> {
        let name = "conflict-marker-size";
        let value = self.repository.get_attr(Path::new(inside), name, AttrCheckFlags::default())?;
        let length = match AttrValue::from_string(value) {
            AttrValue::String(text) => text.parse().ok(),
            AttrValue::True | AttrValue::False | AttrValue::Bytes(_) | AttrValue::Unspecified => None,
        };
        Ok(length.filter(|length| (1..=MAX_MARKER_LENGTH).contains(length)).unwrap_or(DEFAULT_MARKER_LENGTH))
    }
}

const LARGE_FILE: &str = "it's larger than 4 MB, so take one side's whole file";
const BINARY_SIDE: &str = "it isn't text, so take one side's whole file";
const BROKEN_MARKERS: &str = "its conflict markers were edited, so resolve it in the file and stage it";
pub(crate) const OWN_MARKERS: &str = "its own text has lines like conflict markers, so take one side's whole file, or \
                                      resolve it in the file and stage it";

/// Returns the path of a conflict in the repository; `None` if it isn't UTF-8.
pub(crate) fn conflict_path(conflict: &IndexConflict) -> Option<String> {
    let entry = conflict.our.as_ref().or(conflict.their.as_ref()).or(conflict.ancestor.as_ref())?;
    String::from_utf8(entry.path.clone()).ok()
}

/// Returns which of Git's markers a line is: `<`, `|`, `=` or `>`.
fn marker_of(line: &[u8], length: usize) -> Option<u8> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let sign = *line.first().filter(|sign| b"<|=>".contains(sign))?;
    let (marker, rest) = line.split_at_checked(length)?;
    let is_marker = marker.iter().all(|byte| *byte == sign);
    let fits = rest.is_empty() || sign != b'=' && rest.starts_with(b" ");
    (is_marker && fits).then_some(sign)
}

/// A conflict whose end isn't read yet.
struct OpenRegion {
    line: usize,
    start: usize,
    text: usize,
    base: Option<usize>,
    /// Lines that can be the middle.
    middles: Vec<Range<usize>>,
}

/// Finds the conflicts that Git has marked in a file.
pub(crate) fn marked_regions(
    bytes: &[u8],
    length: usize,
    texts: &SideTexts,
) -> Result<Vec<MarkedRegion>, &'static str> {
    let lines = |text| <[u8]>::split_inclusive(text, |byte| *byte == b'\n');
    let is_own = |line: &[u8]| marker_of(line, length).is_some_and(|sign| sign != b'=');
    if lines(&texts.ours).any(is_own) || lines(&texts.theirs).any(is_own) {
        return Err(OWN_MARKERS);
    }
    let mut regions = Vec::new();
    let mut open: Option<OpenRegion> = None;
    let (mut at, mut doubtful) = (0, 0);
    for (place, line) in lines(bytes).enumerate() {
        let range = at..at + line.len();
        at = range.end;
        match (marker_of(line, length), &mut open) {
            (Some(b'<'), None) => {
                let (start, text) = (range.start, range.end);
                open = Some(OpenRegion { line: place + 1, start, text, base: None, middles: Vec::new() });
            }
            (Some(b'|'), Some(open)) if open.base.is_none() => {
                open.base = Some(range.start);
                open.middles.clear();
            }
            (Some(b'='), Some(open)) => open.middles.push(range),
            (Some(b'>'), Some(ended)) => {
                if ended.middles.len() > 1 {
                    doubtful += ended.middles.len();
                }
                if doubtful > MAX_DOUBTFUL_LINES || regions.len() == MAX_CONFLICT_REGIONS {
                    return Err("it has too many conflicts to tell apart, so take one side's whole file");
                }
                regions.push(close_region(bytes, ended, range, texts)?);
                open = None;
            }
            (None, _) | (Some(b'='), None) => {}
            (Some(_), _) => return Err(BROKEN_MARKERS),
        }
    }
    if open.is_some() { Err(BROKEN_MARKERS) } else { Ok(regions) }
}

/// Returns whether Git has marked conflicts in a file, also if they can't be told apart.
pub(crate) fn is_marked(bytes: &[u8], length: usize, texts: &SideTexts) -> bool {
    let is_start = |line: &&[u8]| marker_of(line, length) == Some(b'<');
    let starts = |text: &[u8]| text.split_inclusive(|byte| *byte == b'\n').filter(is_start).count();
    match marked_regions(bytes, length, texts) {
        Ok(regions) => !regions.is_empty(),
        // More such lines than in either side's text are Git's.
        Err(why) => why != BROKEN_MARKERS && starts(bytes) > starts(&texts.ours).max(starts(&texts.theirs)),
    }
}

fn close_region(
    bytes: &[u8],
    open: &OpenRegion,
    end: Range<usize>,
    texts: &SideTexts,
) -> Result<MarkedRegion, &'static str> {
    let region = |middle: &Range<usize>| MarkedRegion {
        line: open.line,
        whole: open.start..end.end,
        ours: open.text..open.base.unwrap_or(middle.start),
        theirs: middle.end..end.start,
    };
    if let [middle] = open.middles.as_slice() {
        return Ok(region(middle));
    }
    // Seven equals signs below a line also make it a heading.
    let is_of_sides = |found: &MarkedRegion| {
        has_lines(&texts.ours, &bytes[found.ours.clone()]) && has_lines(&texts.theirs, &bytes[found.theirs.clone()])
    };
    let mut fitting = open.middles.iter().map(region).filter(is_of_sides);
    match (fitting.next(), fitting.next()) {
        (Some(found), None) => Ok(found),
        (None, _) => Err(BROKEN_MARKERS),
        (Some(_), Some(_)) => Err(OWN_MARKERS),
    }
}

/// Returns whether a text has these whole lines one after another, whatever ends them.
fn has_lines(text: &[u8], lines: &[u8]) -> bool {
    let plain = |bytes: &[u8]| format!("\n{}", String::from_utf8_lossy(bytes).replace("\r\n", "\n"));
    let (mut text, lines) = (plain(text), plain(lines));
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.contains(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(ours: &str, theirs: &str) -> SideTexts {
        SideTexts { ours: ours.as_bytes().to_vec(), theirs: theirs.as_bytes().to_vec() }
    }

    fn sides(text: &str, sides: &SideTexts) -> Result<Vec<(String, String)>, &'static str> {
        let shown = |range: &Range<usize>| text[range.clone()].to_owned();
        let regions = marked_regions(text.as_bytes(), 7, sides)?;
        Ok(regions.iter().map(|region| (shown(&region.ours), shown(&region.theirs))).collect())
    }

    #[test]
    fn marked_conflicts_are_read() {
        let pair = |ours: &str, theirs: &str| (ours.to_owned(), theirs.to_owned());
        let none = texts("", "");
        let text =
            "a\n<<<<<<< HEAD\none\n=======\r\ntwo\r\n>>>>>>> idea\nb\n<<<<<<<\n||||||| base\nc\n=======\n>>>>>>>\n";
        assert_eq!(sides(text, &none), Ok(vec![pair("one\n", "two\r\n"), pair("", "")]));
        assert_eq!(sides("=======\n<<<<<<<< a\n> b\n", &none), Ok(Vec::new()), "no markers");
        for broken in ["<<<<<<< a\n", ">>>>>>> b\n", "<<<<<<< a\n<<<<<<< b\n", "<<<<<<< a\nx\n>>>>>>> b\n"] {
            assert_eq!(sides(broken, &none), Err(BROKEN_MARKERS), "{broken}");
        }
        // A heading's underline is told from the middle by the sides.
        let heading = "<<<<<<< a\nSummary\n=======\none\n=======\nSummary\n=======\ntwo\n>>>>>>> b\n";
        let known = texts("x\nSummary\n=======\none\n", "Summary\r\n=======\r\ntwo");
        assert_eq!(sides(heading, &known), Ok(vec![pair("Summary\n=======\none\n", "Summary\n=======\ntwo\n")]));
        assert_eq!(sides(heading, &none), Err(BROKEN_MARKERS));
        assert_eq!(sides("", &texts("<<<<<<< a sample\n", "")), Err(OWN_MARKERS));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(lines in proptest::collection::vec("(<{7}|={7}|>{7}|[|]{7}|a)( x)?\r?\n?", 0..40)) {
            let text = lines.concat();
            let sides = texts(&lines.first().cloned().unwrap_or_default(), "a\n");
            if let Ok(regions) = marked_regions(text.as_bytes(), 7, &sides) {
                let mut end = 0;
                for region in regions {
                    prop_assert!(end <= region.whole.start && region.whole.end <= text.len());
                    prop_assert!(region.whole.start <= region.ours.start && region.ours.end <= region.theirs.start);
                    prop_assert!(region.ours.start <= region.ours.end && region.theirs.start <= region.theirs.end);
                    end = region.whole.end;
                }
            }
        }
    }
}
