//! Notes in conflict without Git's markers: a note has the text of the user's own side, and the index keeps both.
//!
//! Markers in a note would be synced to other devices and read by agents, so they're taken out once Git has stopped.
//! The conflicts are then those of a merge of the versions in the index. Which of them are chosen can't be seen in the
//! text, since a choice may leave it as it is: a file in the repository's own folder says so.

use crate::conflicts::{
    ConflictChoice, ConflictRegion, MAX_CONFLICT_FILE_BYTES, MAX_CONFLICT_FILES, MAX_LISTED_BYTES, MarkedRegion,
    OWN_MARKERS, SideTexts, conflict_path, is_marked, marked_regions,
};
use crate::errors::VcsError;
use crate::repository_folder::RepositoryFolder;
use git2::{
    AttrCheckFlags, AttrValue, DiffOptions, IndexConflict, IndexEntry, MergeFileInput, MergeFileOptions, ObjectType,
    Oid, Patch,
};
use std::io::{Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Name of the file in the repository's own folder that says which conflicts of notes are chosen.
const RECORD_FILE: &str = "tracebook-choices";
/// Maximum size in bytes of that file.
const MAX_RECORD_BYTES: u64 = 4 << 20;
/// Minimum length of the markers that tell conflicts apart here. They never come to a file.
const MIN_MARKER_LENGTH: usize = 60;
/// Names of the commit that a merge, rebase, cherry-pick or revert has stopped at.
pub(crate) const STOP_REFERENCES: [&str; 4] = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD"];
/// Attributes with which a file in the folder has other bytes than in the repository.
const CONVERTING_ATTRIBUTES: [&str; 3] = ["filter", "ident", "working-tree-encoding"];
/// Stands for a conflict without a choice.
const OPEN: u8 = b'.';

/// A note with Git's markers, and its text without them.
#[derive(Clone, Debug)]
pub struct MarkedNote {
    /// Path relative to the folder, with `/` separators.
    pub path: String,
    /// The file's bytes, with markers.
    pub marked: Vec<u8>,
    /// The bytes without markers: what both sides have changed is as on the user's own side.
    pub text: Vec<u8>,
    record: ChoiceRecord,
}

/// A file's bytes after a choice.
#[derive(Clone, Debug)]
pub struct ResolvedText {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Number of conflicts that are left in the file.
    pub left: usize,
    /// What is recorded of the choice, if the file is a note without markers.
    record: Option<ChoiceRecord>,
}

/// What is known of a note whose markers were taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ChoiceRecord {
    /// Path in the repository.
    path: String,
    /// The stop of Git, and the versions in the index, that it's about.
    stop: String,
    /// Hash of the file with Git's markers.
    marked: String,
    /// Whether conflicts without a choice have the text of Git's theirs.
    shows_theirs: bool,
    /// A letter for each conflict.
    choices: String,
    /// The choices after one that is being written, and the hash of the file then.
    next: Option<(String, String)>,
}

impl ChoiceRecord {
    fn to_line(&self) -> String {
        let word = |word: &str| if word.is_empty() { "-".to_owned() } else { word.to_owned() };
        let (next, hash) = self.next.clone().unwrap_or_default();
        let side = if self.shows_theirs { "theirs" } else { "ours" };
        let words = format!("{} {} {}", word(&self.choices), word(&next), word(&hash));
        format!("{} {} {side} {words} {}", self.stop, self.marked, self.path)
    }

    fn from_line(line: &str) -> Option<ChoiceRecord> {
        let mut words = line.splitn(7, ' ');
        let mut word = || words.next().map(|word| if word == "-" { String::new() } else { word.to_owned() });
        let (stop, marked, side, choices, next, hash, path) =
            (word()?, word()?, word()?, word()?, word()?, word()?, word()?);
        let next = (!hash.is_empty()).then_some((next, hash));
        Some(ChoiceRecord { path, stop, marked, shows_theirs: side == "theirs", choices, next })
    }
}

/// A merge of a note's versions: its text with markers, and where its conflicts are in it.
struct MergedNote {
    bytes: Vec<u8>,
    regions: Vec<MarkedRegion>,
}

/// A part of a text in an edited version of it.
#[derive(Debug, PartialEq, Eq)]
struct FoundPart {
    /// Number of its first line, from 1.
    line: usize,
    bytes: Range<usize>,
}

/// A conflict without a choice whose text is in the file.
struct OpenConflict {
    /// Index among all conflicts of the note.
    index: usize,
    part: FoundPart,
}

/// The conflicts of a note without markers.
pub(crate) struct NoteChoices {
    record: ChoiceRecord,
    merged: MergedNote,
    open: Vec<OpenConflict>,
    /// Number of conflicts without a choice whose text was edited.
    edited: usize,
}

impl ResolvedText {
    /// Returns the result of a choice between what Git has marked.
    pub(crate) fn of_marked(bytes: Vec<u8>, left: usize) -> ResolvedText {
        ResolvedText { bytes, left, record: None }
    }
}

impl NoteChoices {
    /// Returns the conflicts that are left to choose.
    pub(crate) fn regions(&self) -> Vec<ConflictRegion> {
        let text = |range: &Range<usize>| String::from_utf8_lossy(&self.merged.bytes[range.clone()]).into_owned();
        let region = |(place, open): (usize, &OpenConflict)| {
            let marked = &self.merged.regions[open.index];
            let (ours, theirs) = (text(&marked.ours), text(&marked.theirs));
            ConflictRegion { number: place + 1, line: open.part.line, ours, theirs }
        };
        self.open.iter().enumerate().map(region).collect()
    }

    /// Returns what can no longer be chosen, and what to do about it.
    pub(crate) fn trouble(&self) -> Option<String> {
        let edited = match self.edited {
            0 if self.open.is_empty() => "nothing is left to choose in it".to_owned(),
            0 => return None,
            1 => "the text of 1 conflict was edited".to_owned(),
            count => format!("the text of {count} conflicts was edited"),
        };
        let rest = if self.open.is_empty() { "" } else { "choose for the others, and then " };
        Some(format!("{edited}, so {rest}stage it if it's as you want it"))
    }

    /// Returns a hash of the file and of its choices: one may leave the text as it is.
    pub(crate) fn seen(&self, bytes: &[u8]) -> Result<String, VcsError> {
        let all = [bytes, b"\0", self.record.choices.as_bytes()].concat();
        Ok(Oid::hash_object(ObjectType::Blob, &all)?.to_string())
    }

    /// Replaces the text of a conflict by its number, or of all that are left.
    pub(crate) fn resolve(
        self,
        bytes: &[u8],
        texts: &SideTexts,
        choice: ConflictChoice,
        region: Option<usize>,
    ) -> Result<ResolvedText, VcsError> {
        let mut choices = self.record.choices.clone().into_bytes();
        let letter = match choice {
            ConflictChoice::Ours => b'o',
            ConflictChoice::Theirs => b't',
            ConflictChoice::Both => b'b',
        };
        let shown = taken_sides(OPEN, self.record.shows_theirs);
        let taken = taken_sides(letter, self.record.shows_theirs);
        let has_crlf = has_only_crlf(bytes);
        let mut result = Vec::with_capacity(bytes.len());
        let mut at = 0;
        for (place, open) in self.open.iter().enumerate() {
            if region.is_some_and(|number| number != place + 1) {
                continue;
            }
            choices[open.index] = letter;
            if taken == shown {
                continue; // the file's own bytes stay
            }
            result.extend_from_slice(&bytes[at..open.part.bytes.start]);
            at = open.part.bytes.end;
            let mut text = Vec::new();
            push_sides(&mut text, &self.merged.bytes, &self.merged.regions[open.index], taken);
            if at == bytes.len() {
                trim_line_end(&mut text, texts, taken);
            }
            // The line before may have lost its end.
            if !text.is_empty() && result.last().is_some_and(|last| *last != b'\n') {
                text.insert(0, b'\n');
            }
            push_lines(&mut result, &text, has_crlf);
        }
        result.extend_from_slice(&bytes[at..]);
        let choices = String::from_utf8_lossy(&choices).into_owned();
        let left = choices.bytes().filter(|letter| *letter == OPEN).count();
        let hash = Oid::hash_object(ObjectType::Blob, &result)?.to_string();
        let record = Some(ChoiceRecord { next: Some((choices, hash)), ..self.record });
        Ok(ResolvedText { bytes: result, left, record })
    }

    /// Returns the number of conflicts that are left to choose.
    pub(crate) fn open_count(&self) -> usize {
        self.open.len()
    }
}

impl RepositoryFolder {
    /// Returns the notes of the folder in conflict that have Git's markers, with their text without them. A note keeps
    /// its markers if it has over 4 MB or 500 conflicts, or if Git converts its bytes.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn marked_notes(&self) -> Result<Vec<MarkedNote>, VcsError> {
        let shows_theirs = self.conflict_sides()?.is_yours_theirs();
        let index = self.repository.index()?;
        let mut found = Vec::new();
        let mut bytes = 0;
        for conflict in index.conflicts()? {
            let conflict = conflict?;
            let is_wanted = |path: &String| self.has_path(path) && is_note_path(path);
            let Some(inside) = conflict_path(&conflict).filter(is_wanted) else { continue };
            bytes += self.top.join(&inside).symlink_metadata().map_or(0, |meta| meta.len());
            if found.len() == MAX_CONFLICT_FILES || bytes > MAX_LISTED_BYTES {
                break;
            }
            // One that can't be read keeps its markers, and says why where its conflicts are shown.
            found.extend(self.marked_note(inside, &conflict, shows_theirs).ok().flatten());
        }
        Ok(found)
    }

    /// Records that these notes have no markers, and that nothing is chosen in them. Comes before they're written: a
    /// note that still has its markers is read by them.
    ///
    /// # Errors
    /// Returns [`VcsError::Git`] if the record can't be written.
    pub fn record_marked_notes(&self, notes: &[MarkedNote]) -> Result<(), VcsError> {
        if notes.is_empty() {
            return Ok(());
        }
        // Of other notes that are still in conflict, such as those of another volume in the repository.
        let mut records = self.records_in_conflict()?;
        records.retain(|record| notes.iter().all(|note| note.record.path != record.path));
        records.extend(notes.iter().map(|note| note.record.clone()));
        self.write_choice_records(&records)
    }

    /// Forgets the choices of notes that are no longer in conflict: the same merge can be made once more.
    ///
    /// # Errors
    /// Returns [`VcsError::Git`] if the record can't be written.
    pub fn forget_past_choices(&self) -> Result<(), VcsError> {
        let kept = self.records_in_conflict()?;
        if kept.len() == self.choice_records().len() { Ok(()) } else { self.write_choice_records(&kept) }
    }

    fn records_in_conflict(&self) -> Result<Vec<ChoiceRecord>, VcsError> {
        let index = self.repository.index()?;
        let is_in_conflict = |record: &ChoiceRecord| index.get_path(Path::new(&record.path), 2).is_some();
        Ok(self.choice_records().into_iter().filter(is_in_conflict).collect())
    }

    /// Records a choice: before its bytes are written, and once they are. A crash between leaves no doubt, because the
    /// file says which.
    ///
    /// # Errors
    /// Returns [`VcsError::Git`] if the record can't be written.
    pub fn record_choice(&self, resolved: &ResolvedText, is_written: bool) -> Result<(), VcsError> {
        let Some(mut record) = resolved.record.clone() else { return Ok(()) };
        if is_written && let Some((choices, _)) = record.next.take() {
            record.choices = choices;
        }
        self.put_choice_record(record)
    }

    /// Returns what is recorded of the choices in a note without markers, for
    /// [`RepositoryFolder::restore_recorded_choices`].
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if the path leads out of the folder.
    pub fn recorded_choices(&self, path: &str) -> Result<Option<String>, VcsError> {
        let inside = self.repository_path(path)?;
        Ok(self.choice_records().into_iter().find(|record| record.path == inside).map(|record| record.to_line()))
    }

    /// Records choices as they were.
    ///
    /// # Errors
    /// Returns [`VcsError::Git`] if the record can't be written.
    pub fn restore_recorded_choices(&self, recorded: &str) -> Result<(), VcsError> {
        ChoiceRecord::from_line(recorded).map_or(Ok(()), |record| self.put_choice_record(record))
    }

    /// Returns the conflicts of a note without markers; `None` if Git's markers are in it, or were taken out by hand.
    pub(crate) fn note_choices(
        &self,
        inside: &str,
        conflict: &IndexConflict,
        texts: &SideTexts,
        bytes: &[u8],
    ) -> Result<Option<NoteChoices>, VcsError> {
        let is_about = |record: &ChoiceRecord| record.path == inside && record.stop == self.stop_of(conflict);
        let Some(mut record) = self.choice_records().into_iter().find(is_about) else { return Ok(None) };
        let hash = Oid::hash_object(ObjectType::Blob, bytes)?.to_string();
        let has_markers = || -> Result<bool, VcsError> {
            let regions = marked_regions(bytes, self.marker_length(inside)?, texts);
            Ok(regions.is_ok_and(|regions| !regions.is_empty()))
        };
        if hash == record.marked || has_markers()? {
            return Ok(None);
        }
        if let Some((choices, _)) = record.next.take().filter(|(_, written)| *written == hash) {
            record.choices = choices;
        }
        let Ok(merged) = self.merge_note(conflict, texts)? else { return Ok(None) };
        if merged.regions.len() != record.choices.len() {
            return Ok(None);
        }
        let (text, parts) = text_with_choices(&merged, &record, texts);
        let (mut open, mut edited) = (Vec::new(), 0);
        for (index, part) in find_parts(&text, &parts, bytes)?.into_iter().enumerate() {
            match (record.choices.as_bytes()[index], part) {
                (OPEN, Some(part)) => open.push(OpenConflict { index, part }),
                (OPEN, None) => edited += 1,
                (_, _) => {}
            }
        }
        Ok(Some(NoteChoices { record, merged, open, edited }))
    }

    fn marked_note(
        &self,
        inside: String,
        conflict: &IndexConflict,
        shows_theirs: bool,
    ) -> Result<Option<MarkedNote>, VcsError> {
        if self.is_converted(&inside)? {
            return Ok(None);
        }
        let Ok(texts) = self.side_texts(conflict)? else { return Ok(None) };
        let Ok(marked) = self.read_marked(&inside) else { return Ok(None) };
        if !is_marked(&marked, self.marker_length(&inside)?, &texts) {
            return Ok(None);
        }
        let Ok(merged) = self.merge_note(conflict, &texts)? else { return Ok(None) };
        let record = ChoiceRecord {
            stop: self.stop_of(conflict),
            marked: Oid::hash_object(ObjectType::Blob, &marked)?.to_string(),
            shows_theirs,
            choices: char::from(OPEN).to_string().repeat(merged.regions.len()),
            next: None,
            path: inside,
        };
        let (text, _) = text_with_choices(&merged, &record, &texts);
        let mut fitted = Vec::with_capacity(text.len());
        push_lines(&mut fitted, &text, has_only_crlf(&marked));
        Ok(Some(MarkedNote { path: self.folder_path(&record.path).to_owned(), marked, text: fitted, record }))
    }

    /// Merges the versions of a note in the index. The inner error says why their conflicts can't be told apart.
    fn merge_note(
        &self,
        conflict: &IndexConflict,
        texts: &SideTexts,
    ) -> Result<Result<MergedNote, &'static str>, VcsError> {
        let base = match &conflict.ancestor {
            None => Vec::new(),
            Some(entry) if self.repository.odb()?.read_header(entry.id)?.0 as u64 > MAX_CONFLICT_FILE_BYTES => {
                return Ok(Err(OWN_MARKERS));
            }
            Some(entry) => self.repository.find_blob(entry.id)?.content().to_vec(),
        };
        merge_versions(&base, texts)
    }

    /// Returns whether a file in the folder has other bytes than in the repository, apart from its line ends.
    pub(crate) fn is_converted(&self, inside: &str) -> Result<bool, VcsError> {
        for name in CONVERTING_ATTRIBUTES {
            let value = self.repository.get_attr(Path::new(inside), name, AttrCheckFlags::default())?;
            match AttrValue::from_string(value) {
                AttrValue::Unspecified | AttrValue::False => {}
                AttrValue::True | AttrValue::String(_) | AttrValue::Bytes(_) => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Returns what tells a conflict from an earlier one of the same file, also between the same versions.
    fn stop_of(&self, conflict: &IndexConflict) -> String {
        // A time wouldn't do: a copy of the repository has others, and two stops can have the same.
        let stopped = STOP_REFERENCES.iter().find_map(|name| self.repository.refname_to_id(name).ok());
        let name = |id: Option<Oid>| id.map_or_else(|| "none".to_owned(), |id| id.to_string());
        let id = |entry: &Option<IndexEntry>| name(entry.as_ref().map(|entry| entry.id));
        format!("{}-{}-{}-{}", name(stopped), id(&conflict.ancestor), id(&conflict.our), id(&conflict.their))
    }

    fn record_file(&self) -> PathBuf {
        self.repository.path().join(RECORD_FILE)
    }

    /// Returns the records of notes without markers. What can't be read counts as not there.
    fn choice_records(&self) -> Vec<ChoiceRecord> {
        let (mut text, path) = (String::new(), self.record_file());
        // Opening a pipe would wait for who writes to it.
        if !path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            return Vec::new();
        }
        let Ok(file) = std::fs::File::open(path) else { return Vec::new() };
        match file.take(MAX_RECORD_BYTES).read_to_string(&mut text) {
            Ok(_) => text.lines().filter_map(ChoiceRecord::from_line).collect(),
            Err(_) => Vec::new(),
        }
    }

    fn put_choice_record(&self, record: ChoiceRecord) -> Result<(), VcsError> {
        let mut records = self.choice_records();
        records.retain(|known| known.path != record.path);
        records.push(record);
        self.write_choice_records(&records)
    }

    /// Replaces the records at once, so that a crash leaves the old ones.
    fn write_choice_records(&self, records: &[ChoiceRecord]) -> Result<(), VcsError> {
        let file = self.record_file();
        let new = file.with_extension(format!("{}.new", std::process::id()));
        let text: String = records.iter().map(|record| record.to_line() + "\n").collect();
        // A link of this name, in a repository that someone else has made, would lead elsewhere.
        let _ = std::fs::remove_file(&new); // what a crash has left, if anything
        let created = std::fs::File::options().write(true).create_new(true).open(&new);
        let written = created.and_then(|mut to| to.write_all(text.as_bytes()));
        let written = written.and_then(|()| std::fs::rename(&new, &file));
        written.map_err(|error| VcsError::Git(format!("{error}: {}", file.display())))
    }
}

/// Returns whether a file is a note that its conflicts can be chosen in. A name with a line end can't be recorded.
pub(crate) fn is_note_path(path: &str) -> bool {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let is_note = ["md", "markdown"].iter().any(|known| extension.eq_ignore_ascii_case(known));
    is_note && !path.chars().any(char::is_control)
}

/// Merges what both sides have made of a text.
fn merge_versions(base: &[u8], texts: &SideTexts) -> Result<Result<MergedNote, &'static str>, VcsError> {
    // Longer than any line of signs, so that no line of a text is taken for a marker.
    let longest = longest_signs(base).max(longest_signs(&texts.ours)).max(longest_signs(&texts.theirs));
    let length = longest.max(MIN_MARKER_LENGTH) + 1;
    let Ok(marker_size) = u16::try_from(length) else { return Ok(Err(OWN_MARKERS)) };
    // The merge alone doesn't initialize libgit2, and then its memory allocator fails.
    git2::Config::new()?;
    let [mut before, mut first, mut second] = [(); 3].map(|()| MergeFileInput::new());
    before.content(base);
    first.content(&texts.ours);
    second.content(&texts.theirs);
    let mut options = MergeFileOptions::new();
    options.marker_size(marker_size).style_standard(true);
    let bytes = git2::merge_file(&before, &first, &second, Some(&mut options))?.content().to_vec();
    let regions = marked_regions(&bytes, length, texts);
    Ok(regions.map(|regions| MergedNote { bytes, regions }))
}

/// Returns the length of the longest beginning of a line that consists of one of the signs of markers.
fn longest_signs(text: &[u8]) -> usize {
    let signs = |line: &[u8]| match line.first() {
        Some(sign) if b"<|=>".contains(sign) => line.iter().take_while(|byte| *byte == sign).count(),
        Some(_) | None => 0,
    };
    text.split(|byte| *byte == b'\n').map(signs).max().unwrap_or(0)
}

/// Returns whether a conflict with this letter has the text of ours, and of theirs.
fn taken_sides(letter: u8, shows_theirs: bool) -> (bool, bool) {
    match letter {
        b'o' => (true, false),
        b't' => (false, true),
        b'b' => (true, true),
        _ => (!shows_theirs, shows_theirs),
    }
}

fn push_sides(text: &mut Vec<u8>, merged: &[u8], region: &MarkedRegion, (has_ours, has_theirs): (bool, bool)) {
    if has_ours {
        text.extend_from_slice(&merged[region.ours.clone()]);
    }
    if has_theirs {
        text.extend_from_slice(&merged[region.theirs.clone()]);
    }
}

/// Takes the last line's end away if the side has none: a merge ends each line before a marker.
fn trim_line_end(text: &mut Vec<u8>, texts: &SideTexts, (_, has_theirs): (bool, bool)) {
    let last = if has_theirs { &texts.theirs } else { &texts.ours };
    if !last.ends_with(b"\n") && text.ends_with(b"\n") {
        text.pop();
        if text.ends_with(b"\r") {
            text.pop();
        }
    }
}

/// Returns a note's text with the recorded choices, and where its conflicts are in it.
fn text_with_choices(merged: &MergedNote, record: &ChoiceRecord, texts: &SideTexts) -> (Vec<u8>, Vec<Range<usize>>) {
    let (mut text, mut parts) = (Vec::with_capacity(merged.bytes.len()), Vec::new());
    let mut at = 0;
    for (region, letter) in merged.regions.iter().zip(record.choices.bytes()) {
        text.extend_from_slice(&merged.bytes[at..region.whole.start]);
        let taken = taken_sides(letter, record.shows_theirs);
        let start = text.len();
        push_sides(&mut text, &merged.bytes, region, taken);
        at = region.whole.end;
        if at == merged.bytes.len() {
            trim_line_end(&mut text, texts, taken);
        }
        parts.push(start.min(text.len())..text.len());
    }
    text.extend_from_slice(&merged.bytes[at..]);
    (text, parts)
}

/// Returns whether all lines of a file end with CRLF.
fn has_only_crlf(file: &[u8]) -> bool {
    let mut lines = file.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")).peekable();
    lines.peek().is_some() && lines.all(|line| line.ends_with(b"\r\n"))
}

/// Appends lines, with CRLF if the file has it.
fn push_lines(to: &mut Vec<u8>, text: &[u8], has_crlf: bool) {
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\n").filter(|line| has_crlf && !line.ends_with(b"\r")) {
            Some(line) => {
                to.extend_from_slice(line);
                to.extend_from_slice(b"\r\n");
            }
            None => to.extend_from_slice(line),
        }
    }
}

/// Returns a text with LF only, and with an end of its last line: neither makes a line another one.
fn plain_lines(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len() + 1);
    for byte in text {
        if *byte == b'\n' && plain.last() == Some(&b'\r') {
            plain.pop();
        }
        plain.push(*byte);
    }
    if plain.last().is_some_and(|last| *last != b'\n') {
        plain.push(b'\n');
    }
    plain
}

/// Returns where each line starts, and where the last one ends.
fn line_starts(text: &[u8]) -> Vec<usize> {
    let mut starts = vec![0];
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        at += line.len();
        starts.push(at);
    }
    starts
}

/// Finds parts of a text, which consist of whole lines, in an edited version of it; `None` for one that was edited.
fn find_parts(text: &[u8], parts: &[Range<usize>], edited: &[u8]) -> Result<Vec<Option<FoundPart>>, VcsError> {
    let (old, new) = (plain_lines(text), plain_lines(edited));
    let mut options = DiffOptions::new();
    options.context_lines(0).interhunk_lines(0).force_text(true);
    let patch = Patch::from_buffers(&old, None, &new, None, Some(&mut options))?;
    let mut hunks: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for number in 0..patch.num_hunks() {
        let (hunk, _) = patch.hunk(number)?;
        let place = |start: u32, count: u32| {
            // The start of an empty range is the line before it.
            let start = usize::try_from(start).unwrap_or(usize::MAX).saturating_sub(usize::from(count > 0));
            start..start.saturating_add(usize::try_from(count).unwrap_or(usize::MAX))
        };
        hunks.push((place(hunk.old_start(), hunk.old_lines()), place(hunk.new_start(), hunk.new_lines())));
    }
    let (old_starts, new_starts) = (line_starts(text), line_starts(edited));
    let find = |part: &Range<usize>| {
        let line = |at: usize| old_starts.partition_point(|start| *start < at);
        let lines = line(part.start)..line(part.end);
        let is_touched = |(gone, _): &(Range<usize>, Range<usize>)| match (lines.is_empty(), gone.is_empty()) {
            // What was changed beside a place without text may belong to it.
            (true, _) => gone.start <= lines.start && lines.start <= gone.end,
            (false, true) => lines.start < gone.start && gone.start < lines.end,
            (false, false) => gone.start < lines.end && lines.start < gone.end,
        };
        if hunks.iter().any(is_touched) {
            return None;
        }
        let before = hunks.iter().rev().find(|(gone, _)| gone.end <= lines.start);
        let start = before.map_or(lines.start, |(gone, come)| come.end + (lines.start - gone.end));
        let bytes = *new_starts.get(start)?..*new_starts.get(start + lines.len())?;
        Some(FoundPart { line: start + 1, bytes })
    };
    Ok(parts.iter().map(find).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(text: &str, part: &str, edited: &str) -> Option<(usize, String)> {
        let start = text.find(part).expect("it's there");
        let parts = find_parts(text.as_bytes(), std::slice::from_ref(&(start..start + part.len())), edited.as_bytes())
            .expect("compared");
        parts[0].as_ref().map(|part| (part.line, edited[part.bytes.clone()].to_owned()))
    }

    #[test]
    fn parts_are_found_by_their_text() {
        let text = "a\nb\nc\nd\n";
        let at = |line: usize, text: &str| Some((line, text.to_owned()));
        assert_eq!(found(text, "b\nc\n", text), at(2, "b\nc\n"));
        assert_eq!(found(text, "b\nc\n", "x\na\nb\nc\nD\ny\n"), at(3, "b\nc\n"));
        assert_eq!(found(text, "b\nc\n", "a\nnew\nb\nc\nmore\nd\n"), at(3, "b\nc\n"));
        assert_eq!(found(text, "b\nc\n", "a\r\nb\r\nc\r\nd"), at(2, "b\r\nc\r\n"));
        assert_eq!(found(text, "d\n", "a\nb\nc\nd"), at(4, "d"));
        assert_eq!(found("a\nb", "b", "a\nb\nc\n"), at(2, "b\n"));
        for edited in ["a\nB\nc\nd\n", "a\nb\nnew\nc\nd\n", "a\nc\nd\n", ""] {
            assert_eq!(found(text, "b\nc\n", edited), None, "{edited}");
        }
        // A place between two lines.
        let between = |edited: &str| {
            let parts =
                find_parts(text.as_bytes(), std::slice::from_ref(&(4..4)), edited.as_bytes()).expect("compared");
            parts[0].as_ref().map(|part| (part.line, part.bytes.clone()))
        };
        assert_eq!(between("x\na\nb\nc\nd\n"), Some((4, 6..6)));
        assert_eq!(between("a\nb\nnew\nc\nd\n"), None);
        assert_eq!(between("a\nB\nc\nd\n"), None);
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let record = ChoiceRecord {
            path: "sub/My notes.md".to_owned(),
            stop: "1-a-b-c".to_owned(),
            marked: "d".to_owned(),
            shows_theirs: true,
            choices: ".ob".to_owned(),
            next: Some(("tob".to_owned(), "e".to_owned())),
        };
        for record in [ChoiceRecord { choices: String::new(), next: None, ..record.clone() }, record] {
            assert_eq!(ChoiceRecord::from_line(&record.to_line()), Some(record));
        }
        assert_eq!(ChoiceRecord::from_line("a b c"), None);
    }

    proptest! {
        /// Whatever the texts look like, choosing one side for all conflicts is the merge that favors this side.
        #[test]
        fn one_side_of_each_conflict_is_a_merge_for_that_side(
            base in "[xy]\n([ab]|<{7}|={8}|\n|\r\n){0,12}",
            ours in "[xy]\n([ab]|<{7}|>{61}|\n|\r\n){0,12}",
            theirs in "[xy]\n([ab]|={61}|\n|\r\n){0,12}",
        ) {
            let texts = SideTexts { ours: ours.into_bytes(), theirs: theirs.into_bytes() };
            let merged = merge_versions(base.as_bytes(), &texts).expect("merged").expect("told apart");
            for (letter, favor) in [("o", git2::FileFavor::Ours), ("t", git2::FileFavor::Theirs)] {
                let record = ChoiceRecord {
                    path: String::new(),
                    stop: String::new(),
                    marked: String::new(),
                    shows_theirs: false,
                    choices: letter.repeat(merged.regions.len()),
                    next: None,
                };
                let (text, parts) = text_with_choices(&merged, &record, &texts);
                prop_assert!(parts.iter().all(|part| part.start <= part.end && part.end <= text.len()));
                let [mut before, mut first, mut second] = [(); 3].map(|()| MergeFileInput::new());
                before.content(base.as_bytes());
                first.content(&texts.ours);
                second.content(&texts.theirs);
                let mut options = MergeFileOptions::new();
                options.favor(favor);
                let expected = git2::merge_file(&before, &first, &second, Some(&mut options)).expect("merged");
                if merged.regions.is_empty() {
                    prop_assert_eq!(&text, &merged.bytes);
                } else {
                    prop_assert_eq!(plain_lines(&text), plain_lines(expected.content()));
                }
            }
        }
    }
}
