//! Trust in traces: whether a run replays a trace by itself, and why.
//!
//! Confidence is the expected share of good replays. The run from which a trace was learned counts as one good replay,
//! and some failures that never happened are assumed: more of them where a wrong replay may do harm that can't be
//! undone. With `good` of `all` replays the confidence is `(good + 1) / (all + 1 + assumed)`, the mean of a beta
//! distribution.
//!
//! | effects | assumed failures | good replays for 80 % | 90 % | 95 % |
//! |---|---|---|---|---|
//! | reads only | 0.5 | 2 | 4 | 9 |
//! | changes only notes and other texts, whose history is kept | 0.5 | 2 | 4 | 9 |
//! | anything else | 1 | 4 | 9 | 19 |
//!
//! A rating counts, too: a good one as one more good replay, and a bad one turns the replay that it is about into a
//! failure, or is one by itself.

use super::slots::{self, SlotValues};
use super::trace::RunTrace;
use super::trace_feedback::RatingCounts;
use crate::tool_catalog::{self, BuiltInTool};
use serde::Serialize;
use store::{BlobHash, FileKind};

/// Default of `memory.follow_confidence`: above this confidence, 0 to 1, a trace is replayed by itself.
pub const DEFAULT_FOLLOW_CONFIDENCE: f64 = 0.9;

/// What the steps of a trace can do, from harmless to harmful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceEffects {
    /// All steps only read.
    ReadsOnly,
    /// Steps that change something write notes or other texts, whose history is kept, so that it can be undone.
    WritesWithHistory,
    /// A step runs code, deletes, reaches the network, or its effects are unknown.
    Other,
}

impl TraceEffects {
    /// Returns the effects of a trace's steps.
    pub fn of_trace(trace: &RunTrace) -> TraceEffects {
        let tools = tool_catalog::built_in();
        let learned: SlotValues =
            trace.slots.iter().map(|slot| (slot.name.clone(), (slot.kind, slot.value.clone()))).collect();
        let one = |step: &super::trace::TraceStep| {
            if tools.iter().any(|tool| tool.name == step.tool && tool.idempotent) {
                return TraceEffects::ReadsOnly;
            }
            let writes = [BuiltInTool::WriteFile, BuiltInTool::EditFile].iter().any(|tool| tool.is_named(&step.tool));
            let path = step.input.get("path").and_then(serde_json::Value::as_str).unwrap_or_default();
            // A path that depends on an earlier result isn't known before the replay.
            let is_text = slots::fill_template(path, &learned, &[])
                .is_ok_and(|path| !path.is_empty() && FileKind::from_path(&path).is_text());
            if writes && is_text { TraceEffects::WritesWithHistory } else { TraceEffects::Other }
        };
        trace.steps.iter().map(one).max().unwrap_or(TraceEffects::Other)
    }

    /// Returns the number of failures that are assumed although they never happened.
    pub const fn assumed_failures(self) -> f64 {
        match self {
            TraceEffects::ReadsOnly | TraceEffects::WritesWithHistory => 0.5,
            TraceEffects::Other => 1.0,
        }
    }

    /// Describes the effects, as a clause about the trace.
    pub const fn describe(self) -> &'static str {
        match self {
            TraceEffects::ReadsOnly => "it only reads",
            TraceEffects::WritesWithHistory => "it changes only texts whose history is kept",
            TraceEffects::Other => "it does more than change texts",
        }
    }
}

/// Whether a trace is replayed by itself, with everything that decides about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceTrust {
    /// What the steps can do.
    pub effects: TraceEffects,
    /// Expected share of good replays, 0 to 1.
    pub confidence: f64,
    /// Confidence above which the trace is replayed by itself, 0 to 1: `memory.follow_confidence`.
    pub threshold: f64,
    /// Whether the user pinned exactly these steps as trusted.
    pub pinned: bool,
    /// Whether a run of this workspace is known from which it was learned, and nobody else writes this memory. The
    /// counts of others prove nothing here.
    pub learned_here: bool,
    /// Number of good replays and ratings.
    #[serde(skip)]
    pub good: u64,
    /// Number of replays, and of ratings beside them.
    #[serde(skip)]
    pub all: u64,
    /// What the user's ratings add to these numbers.
    #[serde(skip)]
    pub ratings: RatingCounts,
}

impl TraceTrust {
    /// Returns the trust in a trace.
    pub fn of_trace(trace: &RunTrace, threshold: f64, pinned: bool, learned_here: bool) -> TraceTrust {
        let effects = TraceEffects::of_trace(trace);
        let replays = trace.known.usage_count;
        let ratings = RatingCounts::of_feedback(&trace.feedback);
        let good = trace.known.verified_count.min(replays).saturating_add(ratings.good);
        let all = replays.saturating_add(ratings.good).saturating_add(ratings.bad);
        let confidence = replay_confidence(good, all, effects);
        TraceTrust { effects, confidence, threshold, pinned, learned_here, good, all, ratings }
    }

    /// Returns whether a run replays the trace without being told to.
    pub fn is_followed(&self) -> bool {
        self.pinned || (self.learned_here && self.confidence > self.threshold)
    }

    /// Explains whether the trace is replayed by itself, as a clause without its period.
    pub fn reason(&self) -> String {
        let TraceTrust { effects, good, all, .. } = self;
        let counted = if self.ratings == RatingCounts::default() { "replays" } else { "replays and ratings" };
        let sure = format!("{good} of {all} {counted} were good, so {:.0} % sure", self.confidence * 100.0);
        if self.pinned {
            return format!("{sure}; you pinned it as trusted");
        }
        if !self.learned_here {
            return format!(
                "{sure}; it wasn't learned in this workspace, or others can write it, so it has to be pinned"
            );
        }
        let needed = format!("more than {} % is needed", (self.threshold * 1_000.0).round() / 10.0);
        format!("{sure}; {needed}, and {}", effects.describe())
    }
}

/// Returns the expected share of good replays after `good` of `all`, 0 to 1.
pub fn replay_confidence(good: u64, all: u64, effects: TraceEffects) -> f64 {
    let good = good.min(all);
    (good as f64 + 1.0) / (all as f64 + 1.0 + effects.assumed_failures())
}

impl RunTrace {
    /// Returns a hash of everything that a replay does. A pin holds for this hash, so that changed steps lose it.
    pub fn fingerprint(&self) -> String {
        let whole = format!("{}\n{}\n{}", self.known.agent, self.known.goal_text, self.steps_yaml());
        BlobHash::of(whole.as_bytes()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::trace::TraceStep;
    use serde_json::json;

    fn trace(steps: &[(&str, &str)]) -> RunTrace {
        let step = |(tool, path): &(&str, &str)| TraceStep {
            tool: (*tool).to_owned(),
            input: json!({"path": path}).as_object().cloned().unwrap_or_default(),
            ..TraceStep::default()
        };
        RunTrace { steps: steps.iter().map(step).collect(), ..RunTrace::default() }
    }

    #[test]
    fn traces_that_do_no_lasting_harm_need_fewer_proofs() {
        // The table above: the number of good replays in a row until a trace is replayed by itself.
        let needed = |effects, threshold: f64| {
            (0_u64..100).find(|count| replay_confidence(*count, *count, effects) > threshold).expect("at some time")
        };
        let rows = [
            (TraceEffects::ReadsOnly, [2, 4, 9]),
            (TraceEffects::WritesWithHistory, [2, 4, 9]),
            (TraceEffects::Other, [4, 9, 19]),
        ];
        for (effects, counts) in rows {
            assert_eq!([0.8, 0.9, 0.95].map(|threshold| needed(effects, threshold)), counts, "{effects:?}");
        }
        // A failure weighs more than a success.
        assert!(replay_confidence(9, 10, TraceEffects::WritesWithHistory) < DEFAULT_FOLLOW_CONFIDENCE);
        assert!(replay_confidence(u64::MAX, 3, TraceEffects::Other) < 1.0, "counts that can't be are bounded");
    }

    #[test]
    fn the_worst_step_decides_and_pins_hold_for_the_same_steps() {
        let effects = |steps: &[(&str, &str)]| TraceEffects::of_trace(&trace(steps));
        assert_eq!(effects(&[("read_file", "a.csv"), ("search", "")]), TraceEffects::ReadsOnly);
        assert_eq!(effects(&[("read_file", "a.csv"), ("write_file", "b.md")]), TraceEffects::WritesWithHistory);
        for step in [("write_file", "b.png"), ("write_file", "{step1}"), ("delete_file", "a.md"), ("shell", "a.md")] {
            assert_eq!(effects(&[("write_file", "b.md"), step]), TraceEffects::Other, "{step:?}");
        }
        assert_eq!(effects(&[("ask_agent", "")]), TraceEffects::Other, "another agent may do anything");
        assert_eq!(effects(&[("quantum", "a.md")]), TraceEffects::Other, "nothing is known of it");
        let (one, mut other) = (trace(&[("write_file", "b.md")]), trace(&[("write_file", "c.md")]));
        assert_ne!(one.fingerprint(), other.fingerprint());
        other = one.clone();
        (other.known.usage_count, other.known.verified_count) = (7, 7);
        assert_eq!(one.fingerprint(), other.fingerprint(), "counts aren't steps");
        let sure = |pinned, here| TraceTrust::of_trace(&other, DEFAULT_FOLLOW_CONFIDENCE, pinned, here);
        assert!(
            sure(false, true).is_followed() && !sure(false, false).is_followed() && sure(true, false).is_followed()
        );
        assert!(sure(false, false).reason().contains("has to be pinned"), "{}", sure(false, false).reason());
    }
}
