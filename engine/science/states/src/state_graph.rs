//! The graph of a note's saved states: each state in a lane, with a line to the state that it continues.

use crate::note_states::SavedState;
use std::collections::HashMap;

/// Maximum number of lanes of a graph. Lines beyond that share the last lane.
pub const MAX_STATE_LANES: usize = 8;

/// A state's place in the graph, with newer states above it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateGraphRow {
    /// The state's lane.
    pub lane: usize,
    /// Lanes whose lines pass the state.
    pub passing: Vec<usize>,
    /// Lanes of further states that continue from this one. They join its lane here.
    pub joining: Vec<usize>,
    /// Whether a newer state in the same lane continues from this one.
    pub has_child: bool,
    /// Whether the state continues an older one of the list.
    pub has_parent: bool,
}

impl StateGraphRow {
    /// Returns the row as text, for a list with the oldest state first: `*` is the current state, `o` another one.
    #[must_use]
    pub fn draw_oldest_first(&self, is_current: bool) -> String {
        let last_joining = self.joining.iter().copied().max();
        let lanes = self.passing.iter().copied().chain(last_joining).chain([self.lane]).max().unwrap_or_default();
        let mut line = String::new();
        for lane in 0..=lanes {
            let is_inside = last_joining.is_some_and(|last| (self.lane..last).contains(&lane));
            line.push(match (is_inside, self.joining.contains(&lane), self.passing.contains(&lane)) {
                _ if lane == self.lane && is_current => '*',
                _ if lane == self.lane => 'o',
                (true, true, _) => '┬',
                (false, true, _) => '╮',
                (true, false, true) => '┼',
                (false, false, true) => '│',
                (true, false, false) => '─',
                (false, false, false) => ' ',
            });
            line.push(if is_inside { '─' } else { ' ' });
        }
        line.trim_end().to_owned()
    }
}

/// Returns the place of each state, in the order of the list, whose oldest state is first.
#[must_use]
pub fn state_graph(states: &[SavedState]) -> Vec<StateGraphRow> {
    let places: HashMap<&str, usize> = states.iter().enumerate().map(|(at, one)| (one.state.as_str(), at)).collect();
    // The state that each lane's line leads to, going down to older states.
    let mut lanes: Vec<Option<&str>> = Vec::new();
    let mut rows = Vec::with_capacity(states.len());
    for (place, state) in states.iter().enumerate().rev() {
        let mut from: Vec<usize> = (0..lanes.len()).filter(|lane| lanes[*lane] == Some(state.state.as_str())).collect();
        let has_child = !from.is_empty();
        let lane = match from.first().copied().or_else(|| lanes.iter().position(Option::is_none)) {
            Some(lane) => lane,
            None if lanes.len() < MAX_STATE_LANES => {
                lanes.push(None);
                lanes.len() - 1
            }
            None => MAX_STATE_LANES - 1,
        };
        from.retain(|other| *other != lane);
        from.iter().for_each(|other| lanes[*other] = None);
        // A damaged file may name a newer state as the one before it.
        let parent = state.kept_ancestor.as_deref().filter(|id| places.get(id).is_some_and(|at| *at < place));
        lanes[lane] = parent;
        let passing = (0..lanes.len()).filter(|other| *other != lane && lanes[*other].is_some()).collect();
        rows.push(StateGraphRow { lane, passing, joining: from, has_child, has_parent: parent.is_some() });
    }
    rows.reverse();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(list: &[(&str, &str)]) -> Vec<SavedState> {
        let state = |(id, parent): &(&str, &str)| SavedState {
            state: (*id).to_owned(),
            kept_ancestor: (!parent.is_empty()).then(|| (*parent).to_owned()),
            ..SavedState::default()
        };
        list.iter().map(state).collect()
    }

    #[test]
    fn forks_have_lanes_of_their_own() {
        let list = states(&[("a", ""), ("b", "a"), ("c", "a"), ("d", "b"), ("e", "a")]);
        let rows = state_graph(&list);
        let lines: Vec<String> = rows.iter().map(|row| row.draw_oldest_first(false)).collect();
        assert_eq!(lines, ["o─┬─╮", "│ o │", "│ │ o", "│ o", "o"], "{rows:?}");
        assert!(rows[1].has_child && rows[1].has_parent && !rows[4].has_child);
        assert_eq!(rows[0].draw_oldest_first(true), "*─┬─╮");
        // A line that passes between a state and its fork.
        let rows = state_graph(&states(&[("x", ""), ("a", ""), ("b", "a"), ("y", "x"), ("c", "a")]));
        let lines: Vec<String> = rows.iter().map(|row| row.draw_oldest_first(false)).collect();
        assert_eq!(lines, ["  o", "o─┼─╮", "│ │ o", "│ o", "o"], "{rows:?}");
    }

    #[test]
    fn damaged_and_endless_lines_stay_bounded() {
        let rows = state_graph(&states(&[("a", "b"), ("b", "b"), ("c", "gone")]));
        assert!(rows.iter().all(|row| !row.has_parent && row.lane == 0), "{rows:?}");
        let many: Vec<(String, &str)> = (0..100).map(|number| (format!("s{number}"), "a")).collect();
        let list: Vec<(&str, &str)> =
            [("a", "")].into_iter().chain(many.iter().map(|(id, parent)| (id.as_str(), *parent))).collect();
        let rows = state_graph(&states(&list));
        assert!(rows.iter().all(|row| row.lane < MAX_STATE_LANES && row.passing.len() < MAX_STATE_LANES));
    }
}
