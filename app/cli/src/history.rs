//! `cmd_history`: a note's changes, an earlier version, what has changed since, authorship, and reverting.

use super::maintenance::format_date;
use super::notes::{wait_for_file, wait_until_durable};
use super::retried_commands::edit_as_planned;
use super::{CliError, CommandContext, EXIT_DONE, resolve};
use crate::arguments::HistoryArguments;
use engine::Note;
use export::open_note::hold_note;
use host::history::{CommittedVersion, committed_versions, text_in_commit};
use std::fmt::Write as _;
use std::path::PathBuf;
use store::DocId;
use text::commit_mark::short_commit;
use text::diff::{DiffPart, DiffRow, TextDiff, compare, line_ranges};
use text::history::{AuthoredSpan, ChangeAuthor, NoteHistory};
use text::text_edit;
use text::untrusted_text;
use vcs::{MAX_FILE_LOG_COMMITS, RepositoryFolder};

/// Number of context lines around a change.
const HISTORY_CONTEXT_LINES: usize = 3;

pub(super) fn cmd_history(scene: &mut CommandContext<'_>, args: &HistoryArguments) -> Result<u8, CliError> {
    let note = resolve::resolve_note(scene, args.note.as_str())?;
    let _held = hold_note(scene.handle, note)?;
    let story = scene.handle.note_history(note).map_err(CliError::workspace)?;
    let file = scene.handle.read(move |session| {
        let (volume, path) = session.locate_file(note)?;
        Some((session.volume(volume)?.root.clone()?, path.to_owned()))
    })?;
    let now = scene.handle.read(move |session| session.note(note).map(Note::text))?.unwrap_or_default();
    let versions = VersionFinder { story: story.as_ref(), file, now };
    if let Some(word) = args.restore.as_deref() {
        return restore_version(scene, note, &versions, word);
    }
    let at = args.at.as_deref().map(|word| versions.resolve(word)).transpose()?;
    if args.diff {
        let at = at.unwrap_or_else(|| NamedVersion::Change(changes_before_last_version(story.as_ref())));
        print_difference(scene, &at, &versions.text(&at)?, &versions.now)?;
    } else if args.blame {
        let count = match at {
            Some(NamedVersion::Commit { .. }) => {
                return Err(CliError::usage(
                    "--blame with --at needs a change's number or hash; `tracebook git blame` reads commits",
                ));
            }
            Some(NamedVersion::Change(count)) => Some(count),
            None => None,
        };
        print_blame(scene, &versions, count)?;
    } else if let Some(at) = at {
        let text = versions.text(&at)?;
        if scene.json {
            writeln!(scene.out, "{}", at.json(serde_json::json!({"text": text})))?;
        } else {
            scene.out.write_all(text.as_bytes())?;
        }
    } else {
        list_versions(scene, &versions)?;
    }
    Ok(EXIT_DONE)
}

/// A version that was named on the command line.
enum NamedVersion {
    /// The note after this many changes.
    Change(usize),
    /// The note in a commit.
    Commit { id: String, text: String },
}

impl NamedVersion {
    /// Returns a JSON object with the version's name added.
    fn json(&self, mut object: serde_json::Value) -> serde_json::Value {
        match self {
            NamedVersion::Change(count) => object["change"] = (*count).into(),
            NamedVersion::Commit { id, .. } => object["commit"] = id.as_str().into(),
        }
        object
    }

    /// Describes the version in a few words.
    fn describe(&self) -> String {
        match self {
            NamedVersion::Change(count) => format!("after change {count}"),
            NamedVersion::Commit { id, .. } => format!("in commit {}", short_commit(id)),
        }
    }
}

/// Finds versions of a note in its document and in its repository.
struct VersionFinder<'a> {
    story: Option<&'a NoteHistory>,
    /// The folder of the volume, and the note's path in it.
    file: Option<(PathBuf, String)>,
    /// The note's present text.
    now: String,
}

impl VersionFinder<'_> {
    /// Resolves a word to a change by its number or hash, or to a commit by its name.
    fn resolve(&self, word: &str) -> Result<NamedVersion, CliError> {
        let unknown = match resolve_change_count(self.story, word) {
            Ok(count) => return Ok(NamedVersion::Change(count)),
            Err(unknown) => unknown,
        };
        let (root, path) = match &self.file {
            Some((root, path)) => (Some(root.as_path()), path.as_str()),
            None => (None, ""),
        };
        let root = root.filter(|root| word.len() >= 4 && vcs::is_in_repository(root));
        match (text_in_commit(root, path, self.story, word), root) {
            (Ok((id, text)), _) => Ok(NamedVersion::Commit { id, text }),
            (Err(why), Some(_)) => Err(CliError::usage(format!("{}; {why}", unknown.why))),
            (Err(_), None) => Err(unknown),
        }
    }

    fn text(&self, version: &NamedVersion) -> Result<String, CliError> {
        match version {
            NamedVersion::Change(count) => text_after_change(self.story, *count, &self.now),
            NamedVersion::Commit { text, .. } => Ok(text.clone()),
        }
    }
}

fn list_versions(scene: &mut CommandContext<'_>, versions: &VersionFinder<'_>) -> Result<(), CliError> {
    let story = versions.story;
    let moments = story.map(|story| story.past.moments.as_slice()).unwrap_or_default();
    let commits = versions.file.as_ref().map(|(root, path)| committed_versions(root, path, story)).unwrap_or_default();
    let who = |at: usize| story.and_then(|story| story.author(at)).unwrap_or(ChangeAuthor::Here);
    // A commit that only Git has stands before the first change that is newer.
    let only_git = |commit: &&CommittedVersion| commit.change.is_none();
    let place = |time: i64| moments.iter().position(|moment| moment.time > time).unwrap_or(moments.len());
    let before = |at: usize| commits.iter().filter(only_git).filter(move |one| place(one.commit.commit_time) == at);
    if scene.json {
        let commit = |one: &CommittedVersion| {
            serde_json::json!({
                "number": null, "commit": one.commit.id, "time": one.commit.author_time,
                "commit_time": one.commit.commit_time, "operations": 0,
                "message": one.commit.summary, "who": commit_author(one).describe(),
            })
        };
        let mut all: Vec<serde_json::Value> = Vec::new();
        for at in 0..=moments.len() {
            all.extend(before(at).map(commit));
            let Some(moment) = moments.get(at) else { continue };
            let actor = story.and_then(|story| story.past.actors.get(moment.actor));
            let commits = commits.iter().filter(|commit| commit.change == Some(at + 1));
            let commits: Vec<&str> = commits.map(|one| one.commit.id.as_str()).collect();
            all.push(serde_json::json!({
                "number": at + 1, "hash": moment.hash.to_string(), "actor": actor.map(|actor| actor.to_hex_string()),
                "time": moment.time, "operations": moment.operations, "message": moment.message,
                "who": who(at).describe(), "commits": commits,
            }));
        }
        writeln!(scene.out, "{}", serde_json::Value::Array(all))?;
        return Ok(());
    }
    if moments.is_empty() {
        writeln!(scene.out, "no changes yet: the note is as its file was found")?;
    }
    if commits.iter().filter(only_git).count() >= MAX_FILE_LOG_COMMITS {
        writeln!(scene.out, "older commits aren't listed here; `tracebook git log FILE --limit NUMBER` lists them")?;
    }
    for at in 0..=moments.len() {
        for one in before(at) {
            let (id, when) = (short_commit(&one.commit.id), format_date(one.commit.author_time));
            let what =
                untrusted_text::escape_line(&format!("{}: {}", one.commit.author, one.commit.summary)).into_owned();
            writeln!(scene.out, "{:>5}  {id:<10}  {when:<20}  {:>17}  {what}", "", "commit")?;
        }
        let Some(moment) = moments.get(at) else { continue };
        let hash = moment.hash.to_string();
        let (when, operations) = (format_date(moment.time), moment.operations);
        let who = match moment.message.as_deref() {
            Some("first") => "The beginning".to_owned(),
            Some(_) | None => untrusted_text::escape_line(&who(at).describe()).into_owned(),
        };
        write!(scene.out, "{:>5}  {}  {when:<20}  {operations:>6} operations  {who}", at + 1, &hash[..10])?;
        for one in commits.iter().filter(|commit| commit.change == Some(at + 1)) {
            // What came with a commit names it already.
            if !matches!(story.and_then(|story| story.author(at)), Some(ChangeAuthor::Commit { .. })) {
                write!(scene.out, "; committed as {}", short_commit(&one.commit.id))?;
            }
        }
        writeln!(scene.out)?;
    }
    Ok(())
}

fn commit_author(one: &CommittedVersion) -> ChangeAuthor {
    ChangeAuthor::Commit { author: one.commit.author.clone(), id: one.commit.id.clone() }
}

/// Resolves a word to a number of changes: the number itself, or a prefix of the last change's hash.
fn resolve_change_count(story: Option<&NoteHistory>, word: &str) -> Result<usize, CliError> {
    let moments = story.map(|story| story.past.moments.as_slice()).unwrap_or_default();
    let number = word.parse::<usize>().ok().filter(|number| *number <= moments.len());
    let by_hash = || {
        let mut found = moments.iter().enumerate().filter(|(_, moment)| moment.hash.to_string().starts_with(word));
        let first = found.next().filter(|_| word.len() >= 4)?;
        found.next().is_none().then_some(first.0 + 1)
    };
    number.or_else(by_hash).ok_or_else(|| {
        let known = match moments.len() {
            0 => "the note hasn't been changed here yet".to_owned(),
            1 => "`tracebook history NOTE` lists the only one".to_owned(),
            count => format!("`tracebook history NOTE` lists all {count}"),
        };
        CliError::usage(format!("there is no change “{word}”; {known}"))
    })
}

fn text_after_change(story: Option<&NoteHistory>, count: usize, now: &str) -> Result<String, CliError> {
    match story {
        Some(story) => story.text_after(count).map_err(|error| CliError::workspace(error.to_string())),
        None => Ok(now.to_owned()),
    }
}

/// Returns the number of changes before the last version.
fn changes_before_last_version(story: Option<&NoteHistory>) -> usize {
    story.and_then(|story| story.versions.last()).map_or(0, |version| version.changes.start)
}

fn print_difference(
    scene: &mut CommandContext<'_>,
    version: &NamedVersion,
    old: &str,
    new: &str,
) -> Result<(), CliError> {
    let comparison = compare(old, new);
    if scene.json {
        let change = |part: &DiffPart| match part {
            DiffPart::Same { .. } => None,
            DiffPart::Change { old: from, new: to, .. } => Some(serde_json::json!({
                "then": {"at": from.start, "text": &old[from.clone()]},
                "now": {"at": to.start, "text": &new[to.clone()]},
            })),
        };
        let changes: Vec<serde_json::Value> = comparison.parts.iter().filter_map(change).collect();
        writeln!(scene.out, "{}", version.json(serde_json::json!({"changes": changes})))?;
        return Ok(());
    }
    if comparison.change_count() == 0 {
        writeln!(scene.out, "nothing has changed since")?;
        return Ok(());
    }
    writeln!(scene.out, "--- {}\n+++ now", version.describe())?;
    scene.out.write_all(unified_diff(&comparison, old, new).as_bytes())?;
    Ok(())
}

/// Formats the changes with context, like `diff -u`.
fn unified_diff(comparison: &TextDiff, old: &str, new: &str) -> String {
    let mut out = String::new();
    let mut hunk: Vec<(char, &str)> = Vec::new();
    // Next line number on both sides, and the line numbers at the start of the hunk.
    let (mut from, mut to) = (1, 1);
    let mut first = (1, 1);
    let mut flush = |hunk: &mut Vec<(char, &str)>, first: (usize, usize)| {
        if hunk.iter().any(|(sign, _)| *sign != ' ') {
            let count = |side: char| hunk.iter().filter(|(sign, _)| *sign == ' ' || *sign == side).count();
            let start = |number: usize, count: usize| if count == 0 { number - 1 } else { number };
            let (gone, come) = (count('-'), count('+'));
            // Writing to a `String` can't fail.
            let _ = writeln!(out, "@@ -{},{gone} +{},{come} @@", start(first.0, gone), start(first.1, come));
            hunk.iter().for_each(|(sign, line)| _ = writeln!(out, "{sign}{line}"));
        }
        hunk.clear();
    };
    for (at, part) in comparison.parts.iter().enumerate() {
        match part {
            DiffPart::Same { new: range, lines: count, .. } => {
                let last = at + 1 == comparison.parts.len();
                for (place, line) in line_ranges(new, range.clone()).enumerate() {
                    let (head, tail) =
                        (place < HISTORY_CONTEXT_LINES && at > 0, place + HISTORY_CONTEXT_LINES >= *count && !last);
                    if !head && tail && place > HISTORY_CONTEXT_LINES && place + HISTORY_CONTEXT_LINES == *count {
                        flush(&mut hunk, first);
                    }
                    if hunk.is_empty() {
                        first = (from, to);
                    }
                    if head || tail {
                        hunk.push((' ', &new[line]));
                    }
                    (from, to) = (from + 1, to + 1);
                }
            }
            DiffPart::Change { rows, .. } => {
                if hunk.is_empty() {
                    first = (from, to);
                }
                #[allow(clippy::type_complexity, reason = "two rows of a table")]
                let sides: [(char, &str, fn(&DiffRow) -> Option<&text::diff::DiffLine>); 2] =
                    [('-', old, |row| row.old.as_ref()), ('+', new, |row| row.new.as_ref())];
                for (sign, text, side) in sides {
                    for line in rows.iter().filter_map(side) {
                        hunk.push((sign, &text[line.range.clone()]));
                        if sign == '-' { from += 1 } else { to += 1 }
                    }
                }
            }
        }
    }
    flush(&mut hunk, first);
    out
}

/// Names the commits that brought what was in a note's file before the note had a history here.
fn name_committers(spans: Vec<AuthoredSpan>, text: &str, file: &(PathBuf, String)) -> Vec<AuthoredSpan> {
    let (root, path) = file;
    let is_found = |span: &AuthoredSpan| span.who == Some(ChangeAuthor::Found);
    if !spans.iter().any(is_found) || !vcs::is_in_repository(root) {
        return spans;
    }
    let blamed = RepositoryFolder::open(root).and_then(|repository| repository.blame_text(path, text));
    let Ok(blamed) = blamed else { return spans }; // it isn't committed, for instance
    let mut lines = text.split_inclusive('\n');
    let mut ranges = Vec::new();
    let mut from = 0;
    for blame in blamed {
        let to = from + lines.by_ref().take(blame.lines).map(str::len).sum::<usize>();
        ranges.extend(blame.commit.map(|commit| (from..to, commit)));
        from = to;
    }
    let mut named = Vec::new();
    for span in spans {
        let mut at = span.range.start;
        let first = ranges.partition_point(|(range, _)| range.end <= at);
        let overlapping = ranges[first..].iter().take_while(|(range, _)| range.start < span.range.end);
        for (range, commit) in overlapping.filter(|_| is_found(&span)) {
            let (start, end) = (range.start.max(at), range.end.min(span.range.end));
            if at < start {
                named.push(AuthoredSpan { range: at..start, ..span.clone() });
            }
            let who = Some(ChangeAuthor::Commit { author: commit.author.clone(), id: commit.id.clone() });
            named.push(AuthoredSpan { range: start..end, who, time: commit.author_time, change: span.change });
            at = end;
        }
        if at < span.range.end {
            named.push(AuthoredSpan { range: at..span.range.end, ..span });
        }
    }
    named
}

fn print_blame(
    scene: &mut CommandContext<'_>,
    versions: &VersionFinder<'_>,
    at: Option<usize>,
) -> Result<(), CliError> {
    let now = versions.now.as_str();
    let fail = |error: store::StoreError| CliError::workspace(error.to_string());
    let (text, mut written) = match versions.story {
        Some(story) => {
            let count = at.unwrap_or(story.past.moments.len());
            (story.text_after(count).map_err(fail)?, story.authored_spans(count).map_err(fail)?)
        }
        None => {
            let all = AuthoredSpan { range: 0..now.len(), who: Some(ChangeAuthor::Found), time: 0, change: None };
            (now.to_owned(), vec![all])
        }
    };
    if let Some(file) = versions.file.as_ref().filter(|_| at.is_none()) {
        written = name_committers(written, &text, file);
    }
    let words = |who: &Option<ChangeAuthor>| who.as_ref().map_or_else(|| "Unknown".to_owned(), ChangeAuthor::describe);
    let shown = |who: &Option<ChangeAuthor>| untrusted_text::escape_line(&words(who)).into_owned();
    if scene.json {
        for one in &written {
            let line = serde_json::json!({
                "at": one.range.start, "length": one.range.len(), "who": words(&one.who), "time": one.time,
                "change": one.change.map(|change| change + 1), "text": text.get(one.range.clone()),
            });
            writeln!(scene.out, "{line}")?;
        }
        return Ok(());
    }
    for line in line_ranges(&text, 0..text.len()) {
        // A line is attributed to the author of most of its text.
        let first = written.partition_point(|one| one.range.end <= line.start);
        let own = written[first..].iter().take_while(|one| one.range.start <= line.end);
        let share = |one: &&AuthoredSpan| one.range.end.min(line.end).saturating_sub(one.range.start.max(line.start));
        let most = own.max_by_key(share);
        let (who, when) = most.map_or_else(Default::default, |one| (shown(&one.who), format_date(one.time)));
        writeln!(scene.out, "{who:<22}  {when:<20}  {}", &text[line])?;
    }
    Ok(())
}

fn restore_version(
    scene: &mut CommandContext<'_>,
    note: DocId,
    versions: &VersionFinder<'_>,
    word: &str,
) -> Result<u8, CliError> {
    let version = versions.resolve(word)?;
    let text = versions.text(&version)?;
    let seq = edit_as_planned(scene.handle, note, move |_, now| Ok(text_edit::compute_edits(now, &text)))?;
    wait_until_durable(scene.handle, seq, scene.errors)?;
    if scene.json {
        writeln!(scene.out, "{}", version.json(serde_json::json!({"seq": seq, "durable": true})))?;
    } else {
        let was = version.describe();
        writeln!(scene.out, "the note is again as it was {was}; the changes since are kept")?;
    }
    wait_for_file(scene, note)?;
    Ok(EXIT_DONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_printed_as_diff_does() {
        let old: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let new = old.replace("2\n3\n", "2\nthree\n").replace("18\n", "");
        let seen = unified_diff(&compare(&old, &new), &old, &new);
        let expected = "@@ -1,6 +1,6 @@\n 1\n 2\n-3\n+three\n 4\n 5\n 6\n\
                        @@ -15,6 +15,5 @@\n 15\n 16\n 17\n-18\n 19\n 20\n";
        assert_eq!(seen, expected);
        assert_eq!(unified_diff(&compare("", "a\n"), "", "a\n"), "@@ -0,0 +1,1 @@\n+a\n");
        let near = "1\n2\n3\n4\n5\n";
        let other = "one\n2\n3\n4\nfive\n";
        let one = "@@ -1,5 +1,5 @@\n-1\n+one\n 2\n 3\n 4\n-5\n+five\n";
        assert_eq!(unified_diff(&compare(near, other), near, other), one);
    }
}
