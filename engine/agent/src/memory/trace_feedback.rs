//! What the user thought of a trace's runs: ratings, runs that were undone, and results that were edited. It counts in
//! the trace's confidence, stands in its note, and can be taken back.

use super::trace::RunTrace;
use serde::{Deserialize, Serialize};

/// Maximum number of runs of a version about which something is kept; the oldest are dropped.
const MAX_FEEDBACK_RUNS: usize = 50;
/// Maximum length of a remark in bytes.
const MAX_REMARK_BYTES: usize = 300;

/// A user's rating.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunRating {
    /// The result was as it should be.
    Good,
    /// It wasn't.
    Bad,
}

impl RunRating {
    /// Returns the name used in files and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            RunRating::Good => "good",
            RunRating::Bad => "bad",
        }
    }
}

/// What is known of one run of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunFeedback {
    /// Id of the run; empty for the trace as a whole.
    pub run: String,
    /// When it was last changed, such as `2026-11-22T10:30:00Z`.
    pub at: String,
    /// The user's rating.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rating: Option<RunRating>,
    /// Whether the user undid the run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_undone: bool,
    /// Whether the user edited what the run wrote, before the trace ran again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_edited: bool,
    /// Whether the run was a replay, which is counted as such.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_replay: bool,
    /// What was learned from the edit, or why nothing was.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remark: String,
}

/// A run as feedback names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RatedRun {
    /// Id of the run; empty for the trace as a whole.
    pub run: String,
    /// When it began, such as `2026-11-22T10:30:00Z`; empty for now.
    pub began_at: String,
    /// Whether it was a whole replay, which is counted as such.
    pub is_replay: bool,
}

/// What ratings add to the numbers of replays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RatingCounts {
    /// Good ratings.
    pub good: u64,
    /// Bad ratings of what isn't counted as a replay.
    pub bad: u64,
}

impl RunFeedback {
    /// Returns whether the run's result wasn't what the user wanted.
    pub fn is_bad(&self) -> bool {
        let is_edited = self.is_edited && self.rating != Some(RunRating::Good);
        self.is_undone || is_edited || self.rating == Some(RunRating::Bad)
    }

    fn is_empty(&self) -> bool {
        self.rating.is_none() && !self.is_undone && !self.is_edited
    }

    /// Says what is known of the run, as a clause. The text may come from others.
    pub fn describe(&self) -> String {
        let mut said = Vec::new();
        said.extend(self.rating.map(|rating| format!("rated {}", rating.as_str())));
        said.extend(self.is_undone.then(|| "undone".to_owned()));
        said.extend(self.is_edited.then(|| format!("edited afterwards ({})", self.remark)));
        let subject = if self.run.is_empty() {
            "the trace".to_owned()
        } else {
            format!("run {}", self.run.get(..8).unwrap_or(&self.run))
        };
        format!("{subject} was {}", said.join(", "))
    }
}

impl RatingCounts {
    /// Returns what the feedback on a version adds to the numbers of its replays.
    pub fn of_feedback(feedback: &[RunFeedback]) -> RatingCounts {
        let mut counts = RatingCounts::default();
        for run in feedback {
            match run.is_bad() {
                false => counts.good += u64::from(run.rating == Some(RunRating::Good)),
                true => counts.bad += u64::from(!run.is_replay),
            }
        }
        counts
    }
}

/// Keeps what a file may hold.
pub(super) fn bound_feedback(feedback: &mut Vec<RunFeedback>) {
    feedback.drain(..feedback.len().saturating_sub(MAX_FEEDBACK_RUNS));
    for run in feedback {
        run.remark.truncate(run.remark.floor_char_boundary(MAX_REMARK_BYTES));
    }
}

/// Changes what is known of a run, and the number of good replays with it. Returns whether anything was changed.
fn change_feedback(
    (usage, verified): (u64, &mut u64),
    feedback: &mut Vec<RunFeedback>,
    run: &RatedRun,
    at: &str,
    change: &dyn Fn(&mut RunFeedback),
) -> bool {
    let place = feedback.iter().position(|known| known.run == run.run);
    let before = place.map(|place| feedback.remove(place));
    let new = || RunFeedback { run: run.run.clone(), is_replay: run.is_replay, ..RunFeedback::default() };
    let before = before.unwrap_or_else(new);
    let mut after = before.clone();
    change(&mut after);
    if after == before {
        if !before.is_empty() {
            feedback.insert(place.unwrap_or(feedback.len()), before);
        }
        return false;
    }
    if after.is_replay {
        match (before.is_bad(), after.is_bad()) {
            (false, true) => *verified = verified.saturating_sub(1),
            (true, false) => *verified = verified.saturating_add(1).min(usage),
            (false, false) | (true, true) => {}
        }
    }
    if !after.is_empty() {
        at.clone_into(&mut after.at);
        feedback.push(after);
        bound_feedback(feedback);
    }
    true
}

impl RunTrace {
    /// Returns the number of the version that a run was about: the one that it taught, or the one in use when it began.
    fn version_of_run(&self, run: &RatedRun) -> u64 {
        let all = self.all_versions();
        if run.run.is_empty() {
            return self.version.number;
        }
        let is_taught = |run_id: &str| !run_id.is_empty() && run_id == run.run;
        let used = || all.iter().filter(|(version, _)| !version.is_proposed).map(|(version, _)| version);
        let taught = used()
            .find(|version| version.origin.corrections.is_empty() && is_taught(&version.origin.run) && !run.is_replay);
        let began = used().filter(|version| version.origin.used_since.as_str() <= run.began_at.as_str());
        let latest = || began.max_by_key(|version| (version.origin.used_since.clone(), version.origin.number));
        taught.or_else(latest).map_or(self.version.number, |version| version.origin.number)
    }

    fn with_feedback_of(&mut self, run: &RatedRun, at: &str, change: &dyn Fn(&mut RunFeedback)) {
        let number = self.version_of_run(run);
        match self.versions.iter_mut().find(|version| version.origin.number == number) {
            Some(version) => {
                let counts = (version.usage_count, &mut version.verified_count);
                change_feedback(counts, &mut version.feedback, run, at, change);
            }
            None => {
                let counts = (self.known.usage_count, &mut self.known.verified_count);
                if change_feedback(counts, &mut self.feedback, run, at, change) {
                    self.known.success_rating =
                        super::trace::success_share(self.known.verified_count, self.known.usage_count);
                }
            }
        }
    }

    /// Rates a run, or takes the rating back.
    pub fn rate_run(&mut self, run: &RatedRun, rating: Option<RunRating>, at: &str) {
        self.with_feedback_of(run, at, &|known| known.rating = rating);
    }

    /// Notes that a run was undone, or that it was done again.
    pub fn mark_undone(&mut self, run: &RatedRun, is_undone: bool, at: &str) {
        self.with_feedback_of(run, at, &|known| known.is_undone = is_undone);
    }

    /// Notes that what a run wrote was edited, with what was learned from it, or that it no longer is.
    pub(super) fn mark_edited(&mut self, run: &RatedRun, remark: Option<&str>, at: &str) {
        // The last run is always one of the version in use.
        let counts = (self.known.usage_count, &mut self.known.verified_count);
        let is_changed = change_feedback(counts, &mut self.feedback, run, at, &|known| {
            known.is_edited = remark.is_some();
            remark.unwrap_or_default().clone_into(&mut known.remark);
        });
        if is_changed {
            self.known.success_rating = super::trace::success_share(self.known.verified_count, self.known.usage_count);
        }
    }

    /// Returns the rating of a run, or of the trace as a whole if the id is empty.
    pub fn rating_of(&self, run: &str) -> Option<RunRating> {
        let all = self.versions.iter().flat_map(|version| &version.feedback).chain(&self.feedback);
        all.filter(|known| known.run == run).find_map(|known| known.rating)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::trace::tests::sample;
    use crate::memory::trace_trust::TraceTrust;
    use crate::memory::trace_versions::VersionReason;

    const AT: &str = "2026-11-22T10:30:00Z";

    fn replay(run: &str) -> RatedRun {
        RatedRun { run: run.to_owned(), began_at: AT.to_owned(), is_replay: true }
    }

    fn counts(trace: &RunTrace) -> (u64, u64) {
        let trust = TraceTrust::of_trace(trace, 0.9, false, true);
        (trust.good, trust.all)
    }

    #[test]
    fn ratings_count_once_and_can_be_taken_back() {
        let mut trace = sample();
        (trace.known.usage_count, trace.known.verified_count) = (3, 3);
        trace.rate_run(&replay("one"), Some(RunRating::Bad), AT);
        assert_eq!(counts(&trace), (2, 3), "the replay wasn't good");
        trace.rate_run(&replay("one"), Some(RunRating::Bad), AT);
        trace.mark_undone(&replay("one"), true, AT);
        assert_eq!(counts(&trace), (2, 3), "it's the same replay");
        trace.rate_run(&replay("one"), Some(RunRating::Good), AT);
        assert_eq!(counts(&trace), (2, 3), "it's still undone");
        trace.mark_undone(&replay("one"), false, AT);
        assert_eq!(counts(&trace), (4, 4), "it's good, and said to be");
        trace.rate_run(&replay("one"), None, AT);
        assert_eq!((counts(&trace), trace.feedback.len()), ((3, 3), 0));
        let whole = RatedRun::default();
        trace.rate_run(&whole, Some(RunRating::Bad), AT);
        assert_eq!((counts(&trace), trace.rating_of("")), ((3, 4), Some(RunRating::Bad)));
        assert!(TraceTrust::of_trace(&trace, 0.9, false, true).reason().starts_with("3 of 4 replays and ratings were"));
        assert_eq!(trace.feedback[0].describe(), "the trace was rated bad");
        let read = RunTrace::parse(&trace.to_note()).expect("read");
        assert_eq!((read.feedback, counts(&trace)), (trace.feedback.clone(), (3, 4)));
        for run in 0..80 {
            trace.rate_run(&replay(&run.to_string()), Some(RunRating::Good), AT);
        }
        assert_eq!(trace.feedback.len(), MAX_FEEDBACK_RUNS);
        assert!(trace.reset_for_import().feedback.is_empty());
    }

    #[test]
    fn a_rating_is_about_the_version_that_ran() {
        let mut trace = sample();
        (trace.known.usage_count, trace.known.verified_count) = (2, 2);
        let mut other = sample();
        (other.answer, other.known.learned_from) = (None, "teacher".to_owned());
        let later = "2026-11-23T10:30:00Z";
        trace.add_learned_version(&other, VersionReason::Relearned, false, later);
        trace.rate_run(&replay("early"), Some(RunRating::Bad), later);
        assert_eq!((trace.versions[0].verified_count, counts(&trace)), (1, (0, 0)));
        let teacher = RatedRun { run: "teacher".to_owned(), began_at: AT.to_owned(), is_replay: false };
        trace.rate_run(&teacher, Some(RunRating::Good), later);
        assert_eq!((counts(&trace), trace.rating_of("early")), ((1, 1), Some(RunRating::Bad)));
    }
}
