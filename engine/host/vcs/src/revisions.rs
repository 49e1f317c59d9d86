//! Revisions as Git's commands take them: names of commits such as `main`, `v1` or `HEAD~2`, and ranges such as `A..B`.

use crate::errors::VcsError;
use crate::reads::MAX_LISTED_REFERENCES;
use crate::repository_folder::RepositoryFolder;
use git2::{ErrorCode, ObjectType, Oid};

/// Maximum length in bytes of a name that is compared with those of branches.
const MAX_COMPARED_NAME_BYTES: usize = 100;
/// Maximum number of branches and tags that an error names.
const MAX_SUGGESTED_NAMES: usize = 3;
/// The last commit, where a range doesn't name one.
const HEAD: &str = "HEAD";

/// The commits that revisions name: those that can be reached from some commits, but not from others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitRange {
    /// The commits at which a log begins.
    pub(crate) tips: Vec<Oid>,
    /// The commits that it leaves out, with all before them.
    pub(crate) hidden: Vec<Oid>,
}

impl RepositoryFolder {
    /// Reads revisions as `git log` does: commits, `^A`, `A..B`, `A...B`, `A^!`, `A^@` and `A^-`. Without any, the
    /// range begins at the last commit; it's empty if there's none yet.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if one names no commit; the message names the closest branches and tags.
    pub fn commit_range(&self, revisions: &[String]) -> Result<CommitRange, VcsError> {
        let mut range = CommitRange::default();
        if revisions.is_empty() {
            range.tips.extend(self.head_commit()?.map(|commit| commit.id()));
        }
        for revision in revisions {
            self.add_revision(revision, &mut range)?;
        }
        Ok(range)
    }

    fn add_revision(&self, revision: &str, range: &mut CommitRange) -> Result<(), VcsError> {
        if let Some((left, right, is_symmetric)) = split_range(revision) {
            let (left, right) = (self.find_revision(left)?.id(), self.find_revision(right)?.id());
            range.tips.push(right);
            if is_symmetric {
                range.tips.push(left);
                range.hidden.extend(self.common_ancestors(left, right)?);
            } else {
                range.hidden.push(left);
            }
        } else if let Some(name) = revision.strip_prefix('^') {
            range.hidden.push(self.find_revision(name)?.id());
        } else if let Some(name) = revision.strip_suffix("^!") {
            let commit = self.find_revision(name)?;
            range.tips.push(commit.id());
            range.hidden.extend(commit.parent_ids());
        } else if let Some(name) = revision.strip_suffix("^@") {
            range.tips.extend(self.find_revision(name)?.parent_ids());
        } else if let Some(name) = revision.strip_suffix("^-") {
            let commit = self.find_revision(name)?;
            range.tips.push(commit.id());
            range.hidden.extend(commit.parent_ids().next());
        } else {
            range.tips.push(self.find_revision(revision)?.id());
        }
        Ok(())
    }

    /// Returns the commit that a name means.
    pub(crate) fn find_revision(&self, name: &str) -> Result<git2::Commit<'_>, VcsError> {
        let refuse = |why: String| VcsError::Refused(why);
        let object = self.repository.revparse_single(name).map_err(|error| match error.code() {
            ErrorCode::Ambiguous => refuse(format!("several objects have a hash that begins with {name}; add digits")),
            ErrorCode::NotFound | ErrorCode::InvalidSpec | ErrorCode::UnbornBranch => {
                let is_of_head = matches!(name.split(['~', '^', '@', ':']).next(), Some("" | HEAD));
                match is_of_head && matches!(self.head_commit(), Ok(None)) {
                    true => refuse("there is no commit yet; commit something first".to_owned()),
                    false => refuse(self.describe_unknown(name)),
                }
            }
            ErrorCode::Peel => refuse(format!("{name} names something other than a commit")),
            // The parts of a name that is no revision can be anything.
            _ => refuse(format!("{}; {}", self.describe_unknown(name), error.message())),
        })?;
        let object = object.peel(ObjectType::Commit);
        let object = object.map_err(|_| refuse(format!("{name} names something other than a commit")))?;
        Ok(self.repository.find_commit(object.id())?)
    }

    /// Returns a sentence about a name that means no commit, with the names that are the most similar.
    fn describe_unknown(&self, name: &str) -> String {
        let advice = match self.closest_references(name).as_slice() {
            [] => "`git branch` lists the branches".to_owned(),
            [only] => format!("the closest one is {only}"),
            [first @ .., last] => format!("the closest ones are {} and {last}", first.join(", ")),
        };
        format!("no branch, tag or commit is called {name}; {advice}")
    }

    /// Returns the names of branches and tags that are the most similar to a name, best first.
    fn closest_references(&self, name: &str) -> Vec<String> {
        // `HEAD~2` or `main@{1}`: the name of the branch is before it.
        let name = name.split(['~', '^', '@', ':']).next().unwrap_or_default().to_lowercase();
        if name.is_empty() || name.len() > MAX_COMPARED_NAME_BYTES {
            return Vec::new();
        }
        let mut found: Vec<(usize, String)> = Vec::new();
        for pattern in ["refs/heads/*", "refs/tags/*", "refs/remotes/*"] {
            let Ok(references) = self.repository.references_glob(pattern) else { continue };
            for reference in references.take(MAX_LISTED_REFERENCES).flatten() {
                let known = String::from_utf8_lossy(reference.shorthand_bytes()).into_owned();
                if known.len() > 2 * MAX_COMPARED_NAME_BYTES || reference.symbolic_target_bytes().is_some() {
                    continue;
                }
                let lower = known.to_lowercase();
                let last = lower.rsplit('/').next().unwrap_or_default();
                let distance = name_distance(&name, &lower).min(name_distance(&name, last).saturating_add(1));
                let begins = name.chars().count() > 1 && (lower.starts_with(&name) || last.starts_with(&name));
                let distance = if begins { distance.min(1) } else { distance };
                if distance <= name.chars().count() / 2 || distance <= 1 {
                    found.push((distance, known));
                }
            }
        }
        found.sort();
        found.dedup_by(|one, other| one.1 == other.1);
        found.into_iter().take(MAX_SUGGESTED_NAMES).map(|(_, name)| name).collect()
    }

    /// Returns the commits that two others both come from, the best ones alone.
    pub(crate) fn common_ancestors(&self, one: Oid, other: Oid) -> Result<Vec<Oid>, VcsError> {
        match self.repository.merge_bases(one, other) {
            Ok(bases) => Ok(bases.to_vec()),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Splits `A..B` or `A...B` into the names of its ends, and whether it's the second form. An end that is left out is
/// the last commit.
pub(crate) fn split_range(revision: &str) -> Option<(&str, &str, bool)> {
    let (left, right) = revision.split_once("..")?;
    let (right, is_symmetric) = match right.strip_prefix('.') {
        Some(right) => (right, true),
        None => (right, false),
    };
    // As in Git, `..` is a folder.
    if left.is_empty() && right.is_empty() && !is_symmetric {
        return None;
    }
    let or_head = |name| if str::is_empty(name) { HEAD } else { name };
    Some((or_head(left), or_head(right), is_symmetric))
}

/// Returns how many letters must be added, removed, replaced or exchanged with their neighbors to make one name the
/// other.
fn name_distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let (mut before, mut last): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=other.len()).collect());
    for (at, letter) in one.iter().enumerate() {
        let mut row = vec![at + 1];
        for (place, known) in other.iter().enumerate() {
            let replaced = last[place] + usize::from(letter != known);
            let mut least = replaced.min(last[place + 1] + 1).min(row[place] + 1);
            if at > 0 && place > 0 && one[at - 1] == *known && other[place - 1] == *letter {
                least = least.min(before[place - 1] + 1);
            }
            row.push(least);
        }
        (before, last) = (last, row);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_split_at_their_dots() {
        assert_eq!(split_range("a..b"), Some(("a", "b", false)));
        assert_eq!(split_range("a...b"), Some(("a", "b", true)));
        assert_eq!(split_range("v1.."), Some(("v1", "HEAD", false)));
        assert_eq!(split_range("..v1"), Some(("HEAD", "v1", false)));
        assert_eq!(split_range("..."), Some(("HEAD", "HEAD", true)));
        assert_eq!((split_range(".."), split_range("v1.0"), split_range("main")), (None, None, None));
    }

    #[test]
    fn names_are_compared_by_their_letters() {
        let distances = ["main", "mian", "maim", "mai", "mains", "idea", ""].map(|name| name_distance("main", name));
        assert_eq!(distances, [0, 1, 1, 1, 1, 4, 4]);
    }
}
