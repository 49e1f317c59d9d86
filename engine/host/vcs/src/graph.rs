//! The graph of commits: history of one or all branches, each commit with its place among parallel lines.

use crate::errors::VcsError;
use crate::range_walk::WalkedCommit;
use crate::reads::{self, MAX_LISTED_REFERENCES};
use crate::repository_folder::{Commit, RepositoryFolder};
use crate::revisions::CommitRange;
use git2::Oid;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Maximum number of commits in a graph.
pub const MAX_GRAPH_COMMITS: usize = 200_000;
/// Maximum number of lanes; lines of more branches share the last one.
pub const MAX_GRAPH_LANES: usize = 64;
/// Maximum length of the first line of a message, in bytes.
const MAX_SUMMARY_BYTES: usize = 200;
/// How long the commits of a graph are searched.
const GRAPH_TIMEOUT: Duration = Duration::from_secs(120);
/// Number of commits after which a reader is told of the first ones, and then each time.
const FIRST_ROWS: usize = 300;

/// A commit in the graph. Lanes are vertical lines, numbered from the left.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct GraphRow {
    /// The commit.
    #[serde(flatten)]
    pub commit: Commit,
    /// Hashes of its parents.
    pub parents: Vec<String>,
    /// Its lane.
    pub lane: u8,
    /// Lanes that pass by, as a set of bits.
    #[serde(skip)]
    pub through: u64,
    /// Lanes that end here from above, as a set of bits.
    #[serde(skip)]
    pub from_above: u64,
    /// Lanes that begin or go on here downwards, as a set of bits.
    #[serde(skip)]
    pub to_below: u64,
}

impl RepositoryFolder {
    /// Returns the commits of the current branch, or of all branches and tags, newest first: at most `limit` and
    /// [`MAX_GRAPH_COMMITS`], and only the newest ones found if it takes over two minutes. Also returns whether these
    /// are all.
    ///
    /// `on_rows` gets the first ones as soon as they are known; it returns whether to go on.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn commit_graph(
        &self,
        is_all: bool,
        limit: usize,
        on_rows: &mut dyn FnMut(&[GraphRow]) -> bool,
    ) -> Result<(Vec<GraphRow>, bool), VcsError> {
        let mut range = self.commit_range(&[])?;
        if is_all {
            for pattern in ["refs/heads/*", "refs/remotes/*", "refs/tags/*"] {
                for reference in self.repository.references_glob(pattern)?.take(MAX_LISTED_REFERENCES) {
                    // A tag may name something else than a commit.
                    if let Ok(commit) = reference?.peel_to_commit() {
                        range.tips.push(commit.id());
                    }
                }
            }
        }
        self.range_graph(&range, limit, on_rows)
    }

    /// Returns the commits of a range as [`RepositoryFolder::commit_graph`] does. No line leads to those that the range
    /// leaves out.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn range_graph(
        &self,
        range: &CommitRange,
        limit: usize,
        on_rows: &mut dyn FnMut(&[GraphRow]) -> bool,
    ) -> Result<(Vec<GraphRow>, bool), VcsError> {
        let limit = limit.min(MAX_GRAPH_COMMITS);
        let (commits, is_in_time) = self.walk_range(range, limit, Instant::now() + GRAPH_TIMEOUT)?;
        let is_complete = is_in_time && commits.len() <= limit;
        let included: Option<HashSet<Oid>> =
            (!range.hidden.is_empty()).then(|| commits.iter().map(|commit| commit.id).collect());
        let is_included = |id: &Oid| included.as_ref().is_none_or(|included| included.contains(id));
        let mut lanes = GraphLanes::default();
        let mut rows = Vec::new();
        for WalkedCommit { id, parents, time: _ } in commits.into_iter().take(limit) {
            let drawn: Vec<Oid> = parents.iter().copied().filter(is_included).collect();
            let place = lanes.place(id, &drawn);
            let mut described = reads::describe(&self.repository.find_commit(id)?);
            described.summary.truncate(described.summary.floor_char_boundary(MAX_SUMMARY_BYTES));
            rows.push(GraphRow {
                commit: described,
                parents: parents.iter().map(Oid::to_string).collect(),
                lane: place.lane,
                through: place.through,
                from_above: place.from_above,
                to_below: place.to_below,
            });
            if rows.len() == FIRST_ROWS && !on_rows(&rows) {
                return Ok((rows, false));
            }
            // Asked often enough to end soon, and not so often that it costs.
            if rows.len().is_multiple_of(10_000) && !on_rows(&rows[..FIRST_ROWS]) {
                return Ok((rows, false));
            }
        }
        Ok((rows, is_complete))
    }
}

/// The lanes while a graph is laid out.
#[derive(Default)]
struct GraphLanes {
    /// The commit that each lane leads to.
    awaited: Vec<Option<Oid>>,
    placed: HashSet<Oid>,
}

/// Where a commit is, with the lanes around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LanePlace {
    lane: u8,
    through: u64,
    from_above: u64,
    to_below: u64,
}

fn lane_bit(lane: usize) -> u64 {
    1 << lane.min(MAX_GRAPH_LANES - 1)
}

impl GraphLanes {
    fn free_lane(&mut self) -> usize {
        self.awaited.iter().position(Option::is_none).unwrap_or_else(|| {
            self.awaited.push(None);
            self.awaited.len() - 1
        })
    }

    /// Places the next commit.
    fn place(&mut self, id: Oid, parents: &[Oid]) -> LanePlace {
        let mut place = LanePlace::default();
        let mut own = None;
        for (lane, awaited) in self.awaited.iter_mut().enumerate() {
            if *awaited == Some(id) {
                own.get_or_insert(lane);
                place.from_above |= lane_bit(lane);
                *awaited = None;
            } else if awaited.is_some() {
                place.through |= lane_bit(lane);
            }
        }
        let own = own.unwrap_or_else(|| self.free_lane());
        place.lane = u8::try_from(own.min(MAX_GRAPH_LANES - 1)).unwrap_or(u8::MAX);
        self.placed.insert(id);
        for (number, parent) in parents.iter().enumerate() {
            // Clocks that go wrong can put a parent before its child; no line leads there.
            if self.placed.contains(parent) {
                continue;
            }
            let known = self.awaited.iter().position(|awaited| *awaited == Some(*parent));
            let lane = match known {
                Some(lane) => lane,
                None if number == 0 => own,
                None => self.free_lane_besides(own),
            };
            self.awaited[lane] = Some(*parent);
            place.to_below |= lane_bit(lane);
        }
        while self.awaited.last().is_some_and(Option::is_none) {
            self.awaited.pop();
        }
        // The lane of a branch that ends here is free for the next one.
        place
    }

    /// Returns a free lane for another parent: not the commit's own, so that two lines are told apart.
    fn free_lane_besides(&mut self, own: usize) -> usize {
        let found = self.awaited.iter().enumerate().position(|(lane, awaited)| awaited.is_none() && lane != own);
        found.unwrap_or_else(|| {
            self.awaited.push(None);
            self.awaited.len() - 1
        })
    }
}

/// Returns rows of a graph as text, as `git log --graph` draws it: `describe` says what follows a commit's sign.
pub fn graph_text(rows: &[GraphRow], describe: &dyn Fn(&GraphRow) -> String) -> String {
    let mut text = String::new();
    let lanes = |bits: u64| (0..MAX_GRAPH_LANES).filter(move |lane| bits & lane_bit(*lane) != 0);
    let line = |row: &GraphRow, upright: u64, joined: u64, is_down: bool| {
        let own = usize::from(row.lane);
        let last = lanes(upright | joined).next_back().unwrap_or(0).max(own);
        let mut signs = vec![b' '; 2 * last + 1];
        lanes(upright).for_each(|lane| signs[2 * lane] = b'|');
        for lane in lanes(joined & !lane_bit(own)) {
            let (from, to) = if lane > own { (2 * own + 1, 2 * lane - 1) } else { (2 * lane + 1, 2 * own - 1) };
            signs[from..=to].iter_mut().filter(|sign| **sign == b' ').for_each(|sign| *sign = b'-');
            let end = if lane > own { to } else { from };
            signs[end] = if (lane > own) == is_down { b'\\' } else { b'/' };
        }
        String::from_utf8_lossy(&signs).trim_end().to_owned()
    };
    for row in rows {
        let own = lane_bit(usize::from(row.lane));
        if row.from_above & !own != 0 {
            text.push_str(&line(row, row.through | (row.from_above & own), row.from_above, false));
            text.push('\n');
        }
        let mut signs = line(row, row.through | own, 0, true).into_bytes();
        signs[2 * usize::from(row.lane)] = b'*';
        text.push_str(&format!("{} {}\n", String::from_utf8_lossy(&signs), describe(row)));
        if row.to_below & !own != 0 {
            text.push_str(&line(row, row.through | (row.to_below & own), row.to_below, true));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(number: u8) -> Oid {
        Oid::from_bytes(&[number; 20]).expect("an id")
    }

    fn rows(commits: &[(u8, &[u8])]) -> Vec<GraphRow> {
        let mut lanes = GraphLanes::default();
        let row = |(number, parents): &(u8, &[u8])| {
            let parents: Vec<Oid> = parents.iter().map(|parent| id(*parent)).collect();
            let LanePlace { lane, through, from_above, to_below } = lanes.place(id(*number), &parents);
            let (id, author, summary) = (number.to_string(), String::new(), String::new());
            let commit = Commit { id, author_time: 0, commit_time: 0, author, summary };
            let parents = parents.iter().map(Oid::to_string).collect();
            GraphRow { commit, parents, lane, through, from_above, to_below }
        };
        commits.iter().map(row).collect()
    }

    #[test]
    fn branches_and_merges_are_drawn_as_lines() {
        // 6 merges 4 and 5, which both come from 3; 2 is a branch of its own that ends in 1.
        let drawn = rows(&[(6, &[5, 4]), (5, &[3]), (4, &[3]), (3, &[1]), (2, &[1]), (1, &[])]);
        let text = graph_text(&drawn, &|row| row.commit.id.clone());
        assert_eq!(text, "* 6\n|\\\n* | 5\n| * 4\n|/\n* 3\n| * 2\n|/\n* 1\n");
        // An octopus, and a parent that comes before its child.
        let drawn = rows(&[(9, &[8, 7, 6]), (8, &[9]), (7, &[]), (6, &[])]);
        let text = graph_text(&drawn, &|row| row.commit.id.clone());
        assert_eq!(text, "* 9\n|\\-\\\n* | | 8\n  * | 7\n    * 6\n");
    }

    proptest! {
        #[test]
        fn every_line_leads_from_a_child_to_its_parent(
            parents in prop::collection::vec(prop::collection::vec(1_usize..6, 0..4), 1..120)
        ) {
            // Commit `n` has parents among the next ones.
            let count = parents.len();
            let of = |at: usize| -> Vec<Oid> {
                let mut all: Vec<usize> = parents[at].iter().map(|step| at + step).filter(|at| *at < count).collect();
                all.dedup();
                all.into_iter().map(|at| id(u8::try_from(at).expect("small"))).collect()
            };
            let mut lanes = GraphLanes::default();
            // Lanes that lead downwards after the last row.
            let mut open = 0_u64;
            for at in 0..count {
                let place = lanes.place(id(u8::try_from(at).expect("small")), &of(at));
                prop_assert_eq!(place.through | place.from_above, open, "what leads here goes by or ends here");
                prop_assert_eq!(place.through & place.from_above, 0);
                open = place.through | place.to_below;
                prop_assert_eq!(place.to_below.count_ones() > 0, !of(at).is_empty());
            }
            prop_assert_eq!(open, 0, "no line leads to nowhere");
        }
    }
}
