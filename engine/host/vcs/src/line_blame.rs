//! Which commit each line of a file is from, through all names that the file had.

use crate::reads::{BlameLine, BlameSpan, MAX_BLAME_FILE_BYTES, describe};
use crate::renames::{BINARY_CHECK_BYTES, NewFile};
use crate::{Commit, RepositoryFolder, VcsError};
use git2::{Blob, DiffOptions, ErrorClass, ObjectType, Oid, Patch};
use std::borrow::Cow;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long contents are compared to find what renamed files were called. After that, only the same content counts.
const RENAME_SEARCH_TIMEOUT: Duration = Duration::from_secs(20);

/// A line: its place in the blamed text, and that in an older version.
type TracedLine = (usize, usize);

/// A version of the file: its commit, and its path in it.
type FilePlace = (Oid, PathBuf);

/// Lines that are the same in two texts: in the old one from a place on, and in the new one.
#[derive(Debug, PartialEq, Eq)]
struct SameLines {
    old: usize,
    new: Range<usize>,
}

/// The versions that are yet to be compared with those before them, with the lines that may be from them.
#[derive(Default)]
struct BlameQueue {
    order: BinaryHeap<(i64, FilePlace)>,
    lines: HashMap<FilePlace, Vec<TracedLine>>,
}

impl BlameQueue {
    fn push(&mut self, commit: &git2::Commit<'_>, path: &Path, mut lines: Vec<TracedLine>) {
        let place = (commit.id(), path.to_owned());
        match self.lines.get_mut(&place) {
            Some(known) => known.append(&mut lines),
            None => {
                self.order.push((commit.time().seconds(), place.clone()));
                self.lines.insert(place, lines);
            }
        }
    }

    /// Takes the newest version, with its lines in their order there.
    fn pop(&mut self) -> Option<(FilePlace, Vec<TracedLine>)> {
        let (_, place) = self.order.pop()?;
        let mut lines = self.lines.remove(&place).unwrap_or_default();
        lines.sort_unstable_by_key(|(_, line)| *line);
        Some((place, lines))
    }
}

impl RepositoryFolder {
    /// Returns the commit of each line of a file as it is now.
    ///
    /// # Errors
    /// Returns [`VcsError::Missing`] if there's no such file, and [`VcsError::Refused`] if it isn't committed, isn't
    /// text, or has over [`MAX_BLAME_FILE_BYTES`].
    pub fn blame(&self, path: &str) -> Result<Vec<BlameLine>, VcsError> {
        let inside = self.repository_path(path)?;
        let file = self.top.join(&inside);
        let meta = file.symlink_metadata().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                VcsError::Missing(format!("there's no file {path}; blame shows files as they are now"))
            }
            _ => VcsError::Refused(format!("{error}: {path}")),
        })?;
        if !meta.is_file() || meta.len() > MAX_BLAME_FILE_BYTES {
            return Err(VcsError::Refused(format!("it isn't a regular file of at most 4 MB: {path}")));
        }
        let real = file.canonicalize().map_err(|error| VcsError::Refused(format!("{error}: {path}")))?;
        if !real.starts_with(&self.top) {
            return Err(VcsError::Refused(format!("a link on the way leads elsewhere: {path}")));
        }
        let bytes = std::fs::read(&real).map_err(|error| VcsError::Refused(format!("{error}: {path}")))?;
        // Git takes such a file for binary.
        if bytes.iter().take(BINARY_CHECK_BYTES).any(|byte| *byte == 0) {
            return Err(VcsError::Refused(format!("it isn't text: {path}")));
        }
        let ids = self.line_commits(&inside, path, &bytes)?;
        // Like a diff, this shows what isn't UTF-8 with replacements: the lines are the same.
        let text = String::from_utf8_lossy(&bytes);
        let commits = self.described(&ids)?;
        let line = |(at, (text, id)): (usize, (&str, &Option<Oid>))| {
            let commit = id.and_then(|id| commits.get(&id));
            BlameLine {
                line: at + 1,
                id: id.map(|id| id.to_string()),
                author: commit.map_or_else(|| "not committed".to_owned(), |commit| commit.author.clone()),
                author_time: commit.map(|commit| commit.author_time),
                commit_time: commit.map(|commit| commit.commit_time),
                text: text.to_owned(),
            }
        };
        Ok(text.lines().zip(&ids).enumerate().map(line).collect())
    }

    /// Returns the commits of the lines of a text that is a newer version of a file.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if the file isn't committed, or if the text has over [`MAX_BLAME_FILE_BYTES`].
    pub fn blame_text(&self, path: &str, text: &str) -> Result<Vec<BlameSpan>, VcsError> {
        if text.len() as u64 > MAX_BLAME_FILE_BYTES {
            return Err(VcsError::Refused(format!("it has more than 4 MB: {path}")));
        }
        let ids = self.line_commits(&self.repository_path(path)?, path, text.as_bytes())?;
        let commits = self.described(&ids)?;
        let same = ids.chunk_by(|one, other| one == other);
        let span = |ids: &[Option<Oid>]| BlameSpan {
            lines: ids.len(),
            commit: ids.first().copied().flatten().and_then(|id| commits.get(&id).cloned()),
        };
        Ok(same.map(span).collect())
    }

    /// Describes the commits of lines.
    fn described(&self, ids: &[Option<Oid>]) -> Result<HashMap<Oid, Commit>, VcsError> {
        let distinct: HashSet<Oid> = ids.iter().flatten().copied().collect();
        let described =
            |id: Oid| -> Result<(Oid, Commit), VcsError> { Ok((id, describe(&self.repository.find_commit(id)?))) };
        distinct.into_iter().map(described).collect()
    }

    /// Returns the commit of each line of a text that is a newer version of a file; `None` if a line isn't committed.
    fn line_commits(&self, inside: &str, path: &str, text: &[u8]) -> Result<Vec<Option<Oid>>, VcsError> {
        let uncommitted = || VcsError::Refused(format!("the file isn't committed yet: {path}"));
        let Some(head) = self.head_commit()? else { return Err(uncommitted()) };
        let (inside, tree) = (Path::new(inside), head.tree()?);
        let (old_path, blob) = match self.file_blob(&head, inside)? {
            Some(blob) => (inside.to_owned(), blob),
            // It may have been renamed since the last commit.
            None => {
                let index = self.repository.index()?;
                let staged = index.get_path(inside, 0).ok_or_else(uncommitted)?;
                let file = NewFile { path: inside, blob: staged.id, content: Some(text) };
                let old = self.find_unstaged_path(&tree, &file)?.ok_or_else(uncommitted)?;
                let blob = self.file_blob(&head, &old)?.ok_or_else(uncommitted)?;
                (old, blob)
            }
        };
        let mut found = vec![None; line_count(text)];
        let committed = self.repository.find_blob(blob)?;
        // In the folder, the line ends may be those of another system.
        let is_converted = text.contains(&b'\r') && !committed.content().contains(&b'\r');
        let ends = |at: usize| text.get(at) == Some(&b'\r') && text.get(at + 1) == Some(&b'\n');
        let plain: Cow<'_, [u8]> = match is_converted {
            true => {
                Cow::Owned((0..text.len()).filter(|at| !ends(*at)).filter_map(|at| text.get(at).copied()).collect())
            }
            false => Cow::Borrowed(text),
        };
        let all: Vec<TracedLine> = (0..found.len()).map(|line| (line, line)).collect();
        let (committed_lines, _) = split_lines(&same_lines(committed.content(), &plain)?, all);
        let mut queue = BlameQueue::default();
        let until = Instant::now() + RENAME_SEARCH_TIMEOUT;
        queue.push(&head, &old_path, committed_lines);
        while let Some(((id, path), lines)) = queue.pop() {
            let commit = self.repository.find_commit(id)?;
            for (line, _) in self.pass_to_parents(&commit, (&path, until), lines, &mut queue)? {
                if let Some(of) = found.get_mut(line) {
                    *of = Some(id);
                }
            }
        }
        Ok(found)
    }

    /// Passes those lines of a version on that its commit's parents have, too. Returns the others.
    fn pass_to_parents(
        &self,
        commit: &git2::Commit<'_>,
        (path, until): (&Path, Instant),
        mut lines: Vec<TracedLine>,
        queue: &mut BlameQueue,
    ) -> Result<Vec<TracedLine>, VcsError> {
        if lines.is_empty() {
            return Ok(lines);
        }
        let Some(blob) = self.file_blob(commit, path)? else { return Ok(lines) };
        // The oldest commits of a shallow clone have parents that aren't there.
        let parents: Vec<git2::Commit<'_>> =
            commit.parent_ids().filter_map(|id| self.repository.find_commit(id).ok()).collect();
        let mut origins: Vec<Option<(PathBuf, Oid)>> = Vec::new();
        for parent in &parents {
            let same_path = self.file_blob(parent, path)?.map(|blob| (path.to_owned(), blob));
            if same_path.as_ref().is_some_and(|(_, old)| *old == blob) {
                queue.push(parent, path, lines);
                return Ok(Vec::new());
            }
            origins.push(same_path);
        }
        for (parent, origin) in parents.iter().zip(&mut origins).filter(|(_, origin)| origin.is_none()) {
            let file = NewFile { path, blob, content: None };
            let Some(old) = self.find_old_path(&parent.tree()?, &commit.tree()?, &file, Some(until))? else { continue };
            let Some(old_blob) = self.file_blob(parent, &old)? else { continue };
            if old_blob == blob {
                queue.push(parent, &old, lines);
                return Ok(Vec::new());
            }
            *origin = Some((old, old_blob));
        }
        let new = self.repository.find_blob(blob)?;
        let mut compared: Vec<Oid> = Vec::new();
        for (parent, (old_path, old_blob)) in
            parents.iter().zip(origins).filter_map(|(parent, origin)| Some((parent, origin?)))
        {
            // A parent with the same content as one before has nothing more.
            if lines.is_empty() || compared.contains(&old_blob) {
                continue;
            }
            compared.push(old_blob);
            let old: Blob<'_> = self.repository.find_blob(old_blob)?;
            let (passed, kept) = split_lines(&same_lines(old.content(), new.content())?, lines);
            lines = kept;
            if !passed.is_empty() {
                queue.push(parent, &old_path, passed);
            }
        }
        Ok(lines)
    }

    /// Returns the hash of a file's content in a commit; `None` if it has no such file, or a very large one.
    fn file_blob(&self, commit: &git2::Commit<'_>, path: &Path) -> Result<Option<Oid>, VcsError> {
        match commit.tree()?.get_path(path) {
            // A version that inflates to very much isn't read: its lines stay with those that came after it.
            Ok(entry) if entry.kind() == Some(ObjectType::Blob) => {
                let size = self.repository.odb()?.read_header(entry.id()).map_or(0, |(size, _)| size);
                Ok((size as u64 <= 4 * MAX_BLAME_FILE_BYTES).then(|| entry.id()))
            }
            Ok(_) => Ok(None),
            // libgit2's errors don't tell a missing file from a missing part of the history by their code.
            Err(error) if error.class() == ErrorClass::Tree => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn line_count(text: &[u8]) -> usize {
    text.split_inclusive(|byte| *byte == b'\n').count()
}

/// Returns the lines that are the same in two texts, in order.
fn same_lines(old: &[u8], new: &[u8]) -> Result<Vec<SameLines>, VcsError> {
    let mut options = DiffOptions::new();
    options.context_lines(0).interhunk_lines(0).force_text(true).indent_heuristic(true);
    let patch = Patch::from_buffers(old, None, new, None, Some(&mut options))?;
    let mut same = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    for number in 0..patch.num_hunks() {
        let (hunk, _) = patch.hunk(number)?;
        let place = |start: u32, count: u32| {
            // The start of an empty range is the line before it.
            let start = usize::try_from(start).unwrap_or(usize::MAX).saturating_sub(usize::from(count > 0));
            start..start.saturating_add(usize::try_from(count).unwrap_or(usize::MAX))
        };
        let (gone, come) = (place(hunk.old_start(), hunk.old_lines()), place(hunk.new_start(), hunk.new_lines()));
        same.push(SameLines { old: old_at, new: new_at..come.start });
        (old_at, new_at) = (gone.end, come.end);
    }
    same.push(SameLines { old: old_at, new: new_at..line_count(new).max(new_at) });
    Ok(same)
}

/// Splits lines, which are in order, into those that an older text has, with their places there, and the others.
fn split_lines(same: &[SameLines], lines: Vec<TracedLine>) -> (Vec<TracedLine>, Vec<TracedLine>) {
    let (mut passed, mut kept) = (Vec::new(), Vec::new());
    let mut at = 0;
    for (final_line, line) in lines {
        while same.get(at).is_some_and(|same| same.new.end <= line) {
            at += 1;
        }
        match same.get(at).filter(|same| same.new.contains(&line)) {
            Some(same) => passed.push((final_line, same.old + (line - same.new.start))),
            None => kept.push((final_line, line)),
        }
    }
    (passed, kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_in_an_older_text() {
        let split = |old: &str, new: &str| {
            let all = (0..line_count(new.as_bytes())).map(|line| (line, line)).collect();
            split_lines(&same_lines(old.as_bytes(), new.as_bytes()).expect("compared"), all)
        };
        assert_eq!(split("a\nb\n", "a\nb\n"), (vec![(0, 0), (1, 1)], vec![]));
        assert_eq!(split("a\nb\nc\n", "a\nx\nc\nd\n"), (vec![(0, 0), (2, 2)], vec![(1, 1), (3, 3)]));
        assert_eq!(split("a\nb\nc\n", "c\n"), (vec![(0, 2)], vec![]));
        assert_eq!(split("c\n", "a\nb\nc"), (vec![], vec![(0, 0), (1, 1), (2, 2)]));
        assert_eq!(split("", "a\n"), (vec![], vec![(0, 0)]));
        assert_eq!(split("a\n", ""), (vec![], vec![]));
    }
}
