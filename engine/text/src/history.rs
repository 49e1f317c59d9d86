//! History of a note: who made which changes, grouped into versions and sittings. Uses only dates and authors of
//! changes and no text, so that long histories are cheap.

use crate::commit_mark::{CommitMark, short_commit};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::Range;
use store::{ActorId, ChangeHash, NoteChange, NoteDoc, NotePast, StoreError};

/// Message of a change that was imported after another program wrote the note's file.
pub const EXTERNAL_CHANGE_MESSAGE: &str = "outside";
/// Message of a change that the agent made.
pub const AGENT_CHANGE_MESSAGE: &str = "agent";

/// Pause after which a new version starts.
const VERSION_PAUSE_SECS: i64 = 5 * 60;
/// Maximum duration of a version.
const MAX_VERSION_SECS: i64 = 10 * 60;
/// Maximum number of operations in a version.
const MAX_VERSION_OPERATIONS: u64 = 2_000;
/// Pause after which a new sitting starts.
const SITTING_PAUSE_SECS: i64 = 45 * 60;
/// Approximate maximum number of versions. In a very long history, the versions are longer.
const MAX_VERSIONS: usize = 2_000;

/// Author of a change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeAuthor {
    /// The user, on this device.
    Here,
    /// Another program that changed the note's file.
    Program,
    /// An agent's run.
    Agent,
    /// Unknown: the file already had this text when it was first read.
    Found,
    /// `tracebook fsck`, which restored the text from redundant data.
    Repair,
    /// The author of a commit of Git that brought the change.
    Commit {
        /// Name of the author.
        author: String,
        /// Hash of the commit, 40 hexadecimal digits.
        id: String,
    },
    /// A person on another device, identified by the start of the device's ID.
    Device(String),
}

impl ChangeAuthor {
    /// Returns the author of a change. `own` contains all actors under which this device ever wrote.
    pub fn of(moment: &NoteChange, past: &NotePast, own: &BTreeSet<ActorId>) -> ChangeAuthor {
        match moment.message.as_deref() {
            Some("first" | "import") => return ChangeAuthor::Found,
            Some("repair") => return ChangeAuthor::Repair,
            Some(EXTERNAL_CHANGE_MESSAGE) => return ChangeAuthor::Program,
            Some(AGENT_CHANGE_MESSAGE) => return ChangeAuthor::Agent,
            Some(message) => {
                if let Some(CommitMark { author, id, .. }) = CommitMark::from_message(message) {
                    return ChangeAuthor::Commit { author, id };
                }
            }
            None => {}
        }
        match past.actors.get(moment.actor) {
            Some(actor) if !own.contains(actor) => {
                ChangeAuthor::Device(actor.to_hex_string().chars().take(4).collect::<String>())
            }
            Some(_) | None => ChangeAuthor::Here,
        }
    }

    /// Describes the author for the user.
    pub fn describe(&self) -> String {
        match self {
            ChangeAuthor::Here => "You".to_owned(),
            ChangeAuthor::Program => "Another program".to_owned(),
            ChangeAuthor::Agent => "The agent".to_owned(),
            ChangeAuthor::Found => "As the file was found".to_owned(),
            ChangeAuthor::Repair => "A repair".to_owned(),
            ChangeAuthor::Commit { author, id } => format!("{author} (commit {})", short_commit(id)),
            ChangeAuthor::Device(name) => format!("Another device ({name})"),
        }
    }
}

/// Consecutive changes by one author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteVersion {
    /// Author of the changes.
    pub who: ChangeAuthor,
    /// Time of the first change, in seconds since 1970; 0 if unknown.
    pub from: i64,
    /// Time of the last change, in seconds since 1970.
    pub to: i64,
    /// Indexes of the changes. The note at the end of this version results from all changes up to the range's end.
    pub changes: Range<usize>,
    /// Approximate number of characters that were inserted or deleted.
    pub operations: u64,
    /// Hashes of the commits of Git in which the note is as at the end of this version.
    pub commits: Vec<String>,
    /// Whether only Git has this version: its text is that in its commit, and it has no changes.
    pub is_only_in_git: bool,
}

/// A commit of Git that changed a note's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionCommit {
    /// Hash of the commit.
    pub id: String,
    /// Name of the author.
    pub author: String,
    /// When the author made the change, in seconds since 1970.
    pub author_time: i64,
    /// When the commit was made, in seconds since 1970. It says where the commit is among the versions.
    pub commit_time: i64,
    /// Number of the note's changes after which it's as in the commit; `None` if only Git has this version.
    pub change: Option<usize>,
}

/// A sitting: versions without a long pause between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditSitting {
    /// Start of the sitting, in seconds since 1970.
    pub from: i64,
    /// End of the sitting, in seconds since 1970.
    pub to: i64,
    /// Range of its versions in the history.
    pub versions: Range<usize>,
    /// Approximate number of characters that were inserted or deleted.
    pub operations: u64,
}

/// Groups the changes of a note into versions, oldest first.
pub fn group_into_versions(past: &NotePast, own: &BTreeSet<ActorId>) -> Vec<NoteVersion> {
    group_into_versions_at(past, own, &BTreeSet::new())
}

/// Groups like [`group_into_versions`], and ends a version after each of these numbers of changes.
fn group_into_versions_at(past: &NotePast, own: &BTreeSet<ActorId>, ends: &BTreeSet<usize>) -> Vec<NoteVersion> {
    let whos: Vec<ChangeAuthor> = past.moments.iter().map(|moment| ChangeAuthor::of(moment, past, own)).collect();
    let mut factor = 1;
    loop {
        let found = group_changes(past, &whos, factor, ends);
        // Doubling the maximum length halves the number of versions. If authors alternate, longer versions don't help.
        if found.len() <= MAX_VERSIONS || factor > 1 << 20 {
            return found;
        }
        factor *= 2;
    }
}

fn group_changes(past: &NotePast, whos: &[ChangeAuthor], factor: i64, ends: &BTreeSet<usize>) -> Vec<NoteVersion> {
    let mut found: Vec<NoteVersion> = Vec::new();
    for (at, (moment, who)) in past.moments.iter().zip(whos).enumerate() {
        // Every note begins with the same change, which contains no text.
        if moment.message.as_deref() == Some("first") {
            continue;
        }
        let goes_on = |last: &NoteVersion| {
            last.who == *who
                && !ends.contains(&at)
                && moment.time.saturating_sub(last.to) <= VERSION_PAUSE_SECS.saturating_mul(factor)
                && moment.time.saturating_sub(last.from) <= MAX_VERSION_SECS.saturating_mul(factor)
                && last.operations + moment.operations <= MAX_VERSION_OPERATIONS.saturating_mul(factor.unsigned_abs())
        };
        match found.last_mut() {
            Some(last) if goes_on(last) => {
                last.to = last.to.max(moment.time);
                last.changes.end = at + 1;
                last.operations += moment.operations;
            }
            _ => found.push(NoteVersion {
                who: who.clone(),
                from: moment.time,
                to: moment.time,
                changes: at..at + 1,
                operations: moment.operations,
                commits: Vec::new(),
                is_only_in_git: false,
            }),
        }
    }
    found
}

/// Groups versions into sittings, oldest first. `day` returns the user's local day of a time.
pub fn group_into_sittings(versions: &[NoteVersion], day: impl Fn(i64) -> i64) -> Vec<EditSitting> {
    let mut found: Vec<EditSitting> = Vec::new();
    for (at, version) in versions.iter().enumerate() {
        match found.last_mut() {
            Some(last) if version.from - last.to <= SITTING_PAUSE_SECS && day(version.from) == day(last.from) => {
                last.to = last.to.max(version.to);
                last.versions.end = at + 1;
                last.operations += version.operations;
            }
            _ => found.push(EditSitting {
                from: version.from,
                to: version.to,
                versions: at..at + 1,
                operations: version.operations,
            }),
        }
    }
    found
}

/// A note's document and its history.
#[derive(Debug)]
pub struct NoteHistory {
    doc: NoteDoc,
    own: BTreeSet<ActorId>,
    /// All changes of the note.
    pub past: NotePast,
    /// The changes grouped into versions, oldest first.
    pub versions: Vec<NoteVersion>,
}

/// A range of text with its author and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthoredSpan {
    /// Range in the text, in bytes.
    pub range: Range<usize>,
    /// Author of the text; `None` if the document doesn't tell.
    pub who: Option<ChangeAuthor>,
    /// Time of the change, in seconds since 1970; 0 if unknown.
    pub time: i64,
    /// Index of the change that inserted the text.
    pub change: Option<usize>,
}

impl NoteHistory {
    /// Reads the history of a note's document. `own` contains all actors under which this device ever wrote.
    pub fn of(doc: NoteDoc, own: BTreeSet<ActorId>) -> NoteHistory {
        let past = doc.read_past();
        let versions = group_into_versions(&past, &own);
        NoteHistory { doc, own, past, versions }
    }

    /// Returns the number of changes up to the last of these heads, which are hexadecimal numbers separated by commas;
    /// `None` if the note lacks one of them.
    pub fn count_at(&self, heads: &str) -> Option<usize> {
        let count = |head: &str| {
            let hash: ChangeHash = head.parse().ok()?;
            self.past.moments.iter().position(|moment| moment.hash == hash).map(|at| at + 1)
        };
        let counts: Vec<usize> = heads.split(',').map(count).collect::<Option<_>>()?;
        counts.into_iter().max()
    }

    /// Adds commits of Git, oldest first, to the versions. A version ends where a commit has it. What only Git has
    /// becomes a version before the first one that is newer.
    pub fn add_commits(&mut self, commits: &[VersionCommit]) {
        let ends: BTreeSet<usize> = commits.iter().filter_map(|commit| commit.change).collect();
        self.versions = group_into_versions_at(&self.past, &self.own, &ends);
        for VersionCommit { id, author, author_time, commit_time, change } in commits {
            let has_change =
                |version: &&mut NoteVersion| Some(version.changes.end) == *change && !version.is_only_in_git;
            if let Some(version) = self.versions.iter_mut().find(has_change) {
                version.commits.push(id.clone());
            } else if change.is_none() {
                let newer =
                    self.versions.iter().position(|version| !version.is_only_in_git && version.from > *commit_time);
                // The last version is the note as it is now.
                let place = newer.unwrap_or(self.versions.len()).min(self.versions.len().saturating_sub(1));
                let start = self.versions.get(place).map_or(self.past.moments.len(), |next| next.changes.start);
                let version = NoteVersion {
                    who: ChangeAuthor::Commit { author: author.clone(), id: id.clone() },
                    from: *author_time,
                    to: *author_time,
                    changes: start..start,
                    operations: 0,
                    commits: vec![id.clone()],
                    is_only_in_git: true,
                };
                self.versions.insert(place, version);
            }
        }
    }

    /// Returns the author of a change, or `None` if there is no such change.
    pub fn author(&self, change: usize) -> Option<ChangeAuthor> {
        self.past.moments.get(change).map(|moment| ChangeAuthor::of(moment, &self.past, &self.own))
    }

    /// Returns the note's text after the first `count` changes.
    ///
    /// # Errors
    /// Returns an error if the document is damaged.
    pub fn text_after(&self, count: usize) -> Result<String, StoreError> {
        self.doc.text_at(&self.past.heads_after(count))
    }

    /// Returns the note's text at these heads of its document.
    ///
    /// # Errors
    /// Returns an error if the document doesn't have these heads.
    pub fn text_at(&self, heads: &[ChangeHash]) -> Result<String, StoreError> {
        self.doc.text_at(heads)
    }

    /// Returns who wrote which part of the text after the first `count` changes.
    ///
    /// # Errors
    /// Returns an error if the document is damaged.
    pub fn authored_spans(&self, count: usize) -> Result<Vec<AuthoredSpan>, StoreError> {
        let mut at = 0;
        let passages = self.doc.authored_passages(&self.past, &self.past.heads_after(count))?;
        let written = passages.into_iter().map(|passage| {
            let range = at..at + passage.length;
            at = range.end;
            let time = passage.moment.and_then(|change| self.past.moments.get(change)).map_or(0, |moment| moment.time);
            AuthoredSpan {
                range,
                who: passage.moment.and_then(|change| self.author(change)),
                time,
                change: passage.moment,
            }
        });
        Ok(written.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{Block, BlockId, DocId, NoteDoc, NoteOp};

    fn at(minute: i64) -> i64 {
        1_000_000 + minute * 60
    }

    fn write(doc: &mut NoteDoc, time: i64, text: &str, message: Option<&str>) {
        let op = NoteOp::Splice { block: BlockId(1), at: 0, delete: 0, insert: text.to_owned() };
        doc.commit(&[op], time, message).expect("a change");
    }

    fn note() -> NoteDoc {
        let block = Block { id: BlockId(1), pos: "a".to_owned(), text: "found\n".to_owned() };
        NoteDoc::import(DocId([1; 16]), &[block], ActorId::from([1; 16])).expect("a note")
    }

    #[test]
    fn changes_become_versions_and_sittings() {
        let mut doc = note();
        for (minute, message) in
            [(0, None), (1, None), (9, None), (12, Some(EXTERNAL_CHANGE_MESSAGE)), (13, None), (200, None)]
        {
            write(&mut doc, at(minute), "x", message);
        }
        let past = doc.read_past();
        let own = BTreeSet::from([ActorId::from([1; 16])]);
        let found = group_into_versions(&past, &own);
        let seen: Vec<(ChangeAuthor, Range<usize>)> =
            found.iter().map(|version| (version.who.clone(), version.changes.clone())).collect();
        let expected = [
            (ChangeAuthor::Found, 1..2),
            (ChangeAuthor::Here, 2..4),
            (ChangeAuthor::Here, 4..5),
            (ChangeAuthor::Program, 5..6),
            (ChangeAuthor::Here, 6..7),
            (ChangeAuthor::Here, 7..8),
        ];
        assert_eq!(seen, expected);
        let sat: Vec<Range<usize>> =
            group_into_sittings(&found, |time| time / 86_400).into_iter().map(|one| one.versions).collect();
        assert_eq!(sat, [0..1, 1..5, 5..6]);
        assert_eq!(doc.text_at(&past.heads_after(found[1].changes.end)).expect("a text"), "xxfound\n");
        let other = group_into_versions(&past, &BTreeSet::new());
        assert_eq!(other[1].who, ChangeAuthor::Device("0101".to_owned()));
    }

    #[test]
    fn a_long_past_has_longer_versions() {
        let moments: Vec<NoteChange> = {
            let mut doc = note();
            write(&mut doc, 5, "x", None);
            let moment = doc.read_past().moments.remove(2);
            let later = |at: i64| {
                let mut moment = moment.clone();
                moment.time = at * 1_000;
                moment
            };
            (0..20_000).map(later).collect()
        };
        let past = NotePast { moments, actors: vec![ActorId::from([1; 16])] };
        let found = group_into_versions(&past, &BTreeSet::new());
        assert!(found.len() <= MAX_VERSIONS && found.len() > MAX_VERSIONS / 8, "{}", found.len());
        assert_eq!(found.last().map(|version| version.changes.end), Some(20_000));
    }
}
