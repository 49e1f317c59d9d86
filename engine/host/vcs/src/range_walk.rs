//! A walk over the commits of a range, newest first, that ends in time.
//!
//! libgit2's own walk finds what a range leaves out in one step, which takes seconds in a long history and can't be
//! stopped.

use crate::errors::VcsError;
use crate::repository_folder::RepositoryFolder;
use crate::revisions::CommitRange;
use git2::{Oid, Repository};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::time::Instant;

/// Number of commits beyond the wanted ones that are put in order, too. Ordering the whole history takes seconds.
const LOOKAHEAD_COMMITS: usize = 256;
/// Number of commits that are still visited once only those to leave out remain, as in Git: where a clock was wrong,
/// one of them can lead to a newer commit.
const SLOP_COMMITS: usize = 5;

/// A commit of a range.
#[derive(Clone, Debug)]
pub(crate) struct WalkedCommit {
    pub(crate) id: Oid,
    /// When it was made, in seconds since 1970.
    pub(crate) time: i64,
    pub(crate) parents: Vec<Oid>,
}

/// A commit that the walk has met.
struct SeenCommit {
    time: i64,
    parents: Vec<Oid>,
    is_left_out: bool,
    is_queued: bool,
}

/// The commits that are yet to be visited, and those that were met.
struct RangeWalk<'a> {
    repository: &'a Repository,
    /// By time; what was met first comes first among equal ones.
    queue: BinaryHeap<(i64, Reverse<usize>, Oid)>,
    seen: HashMap<Oid, SeenCommit>,
    /// Number of commits in the queue that aren't left out.
    wanted: usize,
}

impl RangeWalk<'_> {
    fn push(&mut self, id: Oid, is_left_out: bool) -> Result<(), VcsError> {
        if self.seen.contains_key(&id) {
            if is_left_out {
                self.leave_out(id);
            }
            return Ok(());
        }
        let commit = self.repository.find_commit(id)?;
        let time = commit.time().seconds();
        self.queue.push((time, Reverse(self.seen.len()), id));
        self.wanted += usize::from(!is_left_out);
        let parents = commit.parent_ids().collect();
        self.seen.insert(id, SeenCommit { time, parents, is_left_out, is_queued: true });
        Ok(())
    }

    /// Leaves a commit out, with all commits before it that were met.
    fn leave_out(&mut self, id: Oid) {
        let mut next = vec![id];
        while let Some(id) = next.pop() {
            let Some(seen) = self.seen.get_mut(&id).filter(|seen| !seen.is_left_out) else { continue };
            seen.is_left_out = true;
            self.wanted -= usize::from(seen.is_queued);
            next.extend(&seen.parents);
        }
    }

    /// Visits commits until `max` are found or the time is up. Returns whether it wasn't.
    fn visit(&mut self, max: usize, until: Instant, found: &mut Vec<Oid>) -> Result<bool, VcsError> {
        let (mut slop, mut last_time) = (SLOP_COMMITS, i64::MAX);
        while found.len() < max {
            if Instant::now() >= until {
                return Ok(self.queue.is_empty());
            }
            let Some((time, _, id)) = self.queue.pop() else { break };
            let Some(seen) = self.seen.get_mut(&id) else { continue };
            seen.is_queued = false;
            let (is_left_out, parents) = (seen.is_left_out, seen.parents.clone());
            for parent in parents {
                self.push(parent, is_left_out)?;
            }
            if !is_left_out {
                self.wanted -= 1;
                last_time = time;
                found.push(id);
                continue;
            }
            let is_newer = self.queue.peek().is_some_and(|(next, _, _)| *next >= last_time);
            slop = if self.wanted > 0 || is_newer { SLOP_COMMITS } else { slop - 1 };
            if slop == 0 {
                break;
            }
        }
        Ok(true)
    }
}

impl RepositoryFolder {
    /// Returns the commits of a range, newest first and each before its parents, and whether the walk ended in time:
    /// if not, these are the newest. There can be some more than `limit`.
    pub(crate) fn walk_range(
        &self,
        range: &CommitRange,
        limit: usize,
        until: Instant,
    ) -> Result<(Vec<WalkedCommit>, bool), VcsError> {
        let (queue, seen) = (BinaryHeap::new(), HashMap::new());
        let mut walk = RangeWalk { repository: &self.repository, queue, seen, wanted: 0 };
        for tip in &range.tips {
            walk.push(*tip, false)?;
        }
        for hidden in &range.hidden {
            walk.push(*hidden, true)?;
        }
        // What is to be left out may only be met at the end.
        let max = if range.hidden.is_empty() { limit.saturating_add(LOOKAHEAD_COMMITS) } else { usize::MAX };
        let mut found = Vec::new();
        let is_in_time = walk.visit(max, until, &mut found)?;
        let mut seen = walk.seen;
        let walked = found.into_iter().filter_map(|id| {
            let SeenCommit { time, parents, is_left_out, is_queued: _ } = seen.remove(&id)?;
            (!is_left_out).then_some(WalkedCommit { id, time, parents })
        });
        Ok((children_first(walked.collect()), is_in_time))
    }

    /// Returns the commits of a range that leaves some out; `None` if it leaves out none. Also returns whether these
    /// were found in time.
    pub(crate) fn included_commits(
        &self,
        range: &CommitRange,
        until: Instant,
    ) -> Result<(Option<HashSet<Oid>>, bool), VcsError> {
        if range.hidden.is_empty() {
            return Ok((None, true));
        }
        let (commits, is_in_time) = self.walk_range(range, usize::MAX, until)?;
        Ok((Some(commits.into_iter().map(|commit| commit.id).collect()), is_in_time))
    }
}

/// Orders commits by time, newest first, with each before its parents. With equal times they stay as they are.
fn children_first(commits: Vec<WalkedCommit>) -> Vec<WalkedCommit> {
    let places: HashMap<Oid, usize> = commits.iter().enumerate().map(|(place, commit)| (commit.id, place)).collect();
    let mut children = vec![0_usize; commits.len()];
    let parents_of = |place: usize| commits[place].parents.iter().filter_map(|id| places.get(id).copied());
    for place in 0..commits.len() {
        parents_of(place).for_each(|parent| children[parent] += 1);
    }
    let key = |place: usize| (commits[place].time, Reverse(place));
    let mut ready: BinaryHeap<_> = (0..commits.len()).filter(|place| children[*place] == 0).map(key).collect();
    let mut order = Vec::with_capacity(commits.len());
    while let Some((_, Reverse(place))) = ready.pop() {
        order.push(place);
        for parent in parents_of(place) {
            children[parent] -= 1;
            if children[parent] == 0 {
                ready.push(key(parent));
            }
        }
    }
    let mut commits: Vec<_> = commits.into_iter().map(Some).collect();
    order.into_iter().filter_map(|place| commits[place].take()).collect()
}
