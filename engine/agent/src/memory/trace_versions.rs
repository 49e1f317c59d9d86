//! Versions of a trace: the steps in use, earlier ones, and ones that are only proposed. None is lost when a newer one
//! is learned, and none is used without the user unless a run taught it as a whole.

use super::slots;
use super::trace::{MAX_TRACE_STEPS, RunTrace, TraceSlot, TraceStep, has_bounded_values};
use super::trace_feedback::{RunFeedback, bound_feedback};
use serde::{Deserialize, Serialize};

/// Maximum number of versions of a trace, the one in use included; the oldest are dropped.
pub const MAX_TRACE_VERSIONS: usize = 20;
/// Maximum size in bytes of the versions that aren't in use; the oldest are dropped.
const MAX_VERSIONS_BYTES: usize = 256 << 10;
/// Maximum number of corrected texts that a version can have.
const MAX_CORRECTIONS: usize = 20;

/// Largest number of a version that's read from a file.
const MAX_VERSION_NUMBER: u64 = 1 << 53;

/// How a version came to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VersionReason {
    /// It was learned from a run, as the first one.
    #[default]
    Learned,
    /// A later run for the same goal did something else.
    Relearned,
    /// The user edited what a run wrote.
    Edited,
    /// It came with a file of traces.
    Imported,
    /// The user returned to an earlier version.
    RolledBack,
}

/// A text that a version writes as the user corrected it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepCorrection {
    /// Number of the step, from 1.
    pub step: usize,
    /// Hash of the text as the user left it after the run.
    pub text: String,
}

/// Number and origin of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VersionOrigin {
    /// Its number, from 1.
    pub number: u64,
    /// When it came to be, such as `2026-11-22T10:30:00Z`; empty for a first version: when the trace was learned.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub created_at: String,
    /// The reason for this version.
    pub reason: VersionReason,
    /// The run that it was learned from, or after which the user edited; empty for a first version: the trace's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// The version that was edited or returned to; 0 if none.
    #[serde(skip_serializing_if = "is_zero")]
    pub of: u64,
    /// Since when it was last in use; empty if it always was, or never.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub used_since: String,
    /// The texts that differ from what its run wrote.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub corrections: Vec<StepCorrection>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Default for VersionOrigin {
    fn default() -> VersionOrigin {
        VersionOrigin {
            number: 1,
            created_at: String::new(),
            reason: VersionReason::Learned,
            run: String::new(),
            of: 0,
            used_since: String::new(),
            corrections: Vec::new(),
        }
    }
}

impl VersionOrigin {
    /// Returns whether this is an unchanged first version, about which nothing has to be written down.
    pub fn is_first(&self) -> bool {
        *self == VersionOrigin::default()
    }

    /// Says how the version came to be, as a clause. The text may come from others.
    pub fn describe(&self) -> String {
        let run = self.run.get(..8).unwrap_or(&self.run);
        match self.reason {
            VersionReason::Learned => "learned".to_owned(),
            VersionReason::Relearned => format!("relearned from run {run}"),
            VersionReason::Edited => format!("edited after run {run}"),
            VersionReason::Imported => "imported".to_owned(),
            VersionReason::RolledBack => format!("rolled back to version {}", self.of),
        }
    }
}

/// A version that isn't in use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceVersion {
    /// Number and origin.
    pub origin: VersionOrigin,
    /// Whether it was never in use: it waits for the user's decision.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_proposed: bool,
    /// The goal from which it was learned.
    pub goal_text: String,
    /// Id of the run that vouches for it.
    pub learned_from: String,
    /// Number of its replays.
    pub usage_count: u64,
    /// Number of its good replays.
    pub verified_count: u64,
    /// What the user thought of its runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub feedback: Vec<RunFeedback>,
    /// Values that may differ in a replay.
    pub slots: Vec<TraceSlot>,
    /// The calls, in order.
    pub steps: Vec<TraceStep>,
    /// Template of the final answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// Why a version can't be shown or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceVersionError {
    /// There's no version with this number.
    #[error("there is no version {0} of this trace")]
    Unknown(u64),
    /// It's in use already.
    #[error("version {0} is in use already")]
    InUse(u64),
}

impl TraceVersion {
    /// Returns whether a replay of both does the same: equal steps and answer, and slots of the same names and kinds.
    fn does_the_same(&self, other: &TraceVersion) -> bool {
        let slots =
            |of: &TraceVersion| -> Vec<_> { of.slots.iter().map(|slot| (slot.name.clone(), slot.kind)).collect() };
        self.steps == other.steps && self.answer == other.answer && slots(self) == slots(other)
    }
}

/// Keeps what a file may hold: versions with valid steps and distinct numbers, the newest of them.
pub(super) fn bound_versions(versions: &mut Vec<TraceVersion>, in_use: &mut VersionOrigin) {
    in_use.number = in_use.number.clamp(1, MAX_VERSION_NUMBER);
    in_use.corrections.truncate(MAX_CORRECTIONS);
    let mut numbers = vec![in_use.number];
    versions.retain_mut(|version| {
        let mut templates = version
            .steps
            .iter()
            .flat_map(|step| step.needs.iter().chain(&step.free).chain(&step.leaves).chain(&step.removes));
        let is_valid = (1..=MAX_TRACE_STEPS).contains(&version.steps.len())
            && (1..=MAX_VERSION_NUMBER).contains(&version.origin.number)
            && !numbers.contains(&version.origin.number)
            && has_bounded_values(&version.slots, &version.steps)
            && templates.all(|text| slots::parse_template(text).is_ok());
        numbers.push(version.origin.number);
        version.origin.corrections.truncate(MAX_CORRECTIONS);
        bound_feedback(&mut version.feedback);
        is_valid
    });
    versions.sort_by_key(|version| version.origin.number);
    versions.drain(..versions.len().saturating_sub(MAX_TRACE_VERSIONS - 1));
    let size = |version: &TraceVersion| serde_saphyr::to_string(version).map_or(usize::MAX, |text| text.len());
    let (mut total, mut kept) = (0_usize, 0);
    for version in versions.iter().rev() {
        total = total.saturating_add(size(version));
        if total > MAX_VERSIONS_BYTES {
            break;
        }
        kept += 1;
    }
    versions.drain(..versions.len() - kept);
}

impl RunTrace {
    /// Returns the version in use, with everything that belongs to it.
    fn version_in_use(&self) -> TraceVersion {
        let known = &self.known;
        let mut origin = self.version.clone();
        let or = |text: &mut String, other: &str| {
            if text.is_empty() {
                other.clone_into(text);
            }
        };
        or(&mut origin.created_at, &known.created_at);
        or(&mut origin.run, &known.learned_from);
        TraceVersion {
            origin,
            is_proposed: false,
            goal_text: known.goal_text.clone(),
            learned_from: known.learned_from.clone(),
            usage_count: known.usage_count,
            verified_count: known.verified_count,
            feedback: self.feedback.clone(),
            slots: self.slots.clone(),
            steps: self.steps.clone(),
            answer: self.answer.clone(),
        }
    }

    /// Replaces the version in use. The other one has to be kept by the caller.
    fn put_in_use(&mut self, version: TraceVersion) {
        let TraceVersion { origin, goal_text, learned_from, usage_count, verified_count, feedback, slots, .. } =
            version;
        self.known.goal_text = goal_text;
        self.known.learned_from = learned_from;
        self.known.usage_count = usage_count;
        self.known.verified_count = verified_count;
        self.known.success_rating = super::trace::success_share(verified_count, usage_count);
        (self.version, self.feedback, self.slots) = (origin, feedback, slots);
        (self.steps, self.answer) = (version.steps, version.answer);
        self.known.goal_signature = self.goal_signature();
        self.last_run = None;
    }

    /// Returns all versions, the newest first. The second value says whether it's the one in use.
    pub fn all_versions(&self) -> Vec<(TraceVersion, bool)> {
        let mut all: Vec<(TraceVersion, bool)> =
            self.versions.iter().cloned().map(|version| (version, false)).collect();
        all.push((self.version_in_use(), true));
        all.sort_by_key(|(version, _)| std::cmp::Reverse(version.origin.number));
        all
    }

    /// Returns the version with this number.
    ///
    /// # Errors
    /// Returns an error if there's none.
    pub fn version_numbered(&self, number: u64) -> Result<TraceVersion, TraceVersionError> {
        let mut all = self.all_versions().into_iter().map(|(version, _)| version);
        all.find(|version| version.origin.number == number).ok_or(TraceVersionError::Unknown(number))
    }

    /// Returns the number of the newest version that waits for the user's decision.
    pub fn proposed_version(&self) -> Option<u64> {
        self.versions.iter().filter(|version| version.is_proposed).map(|version| version.origin.number).max()
    }

    /// Returns whether nothing speaks for the version in use: no good run, and no choice of the user.
    pub fn is_unproved(&self) -> bool {
        let is_chosen = matches!(self.version.reason, VersionReason::Edited | VersionReason::RolledBack);
        self.known.verified_count == 0 && !is_chosen
    }

    /// Returns the run that the version in use was learned from, or after which it was corrected.
    pub fn origin_run(&self) -> &str {
        if self.version.run.is_empty() { &self.known.learned_from } else { &self.version.run }
    }

    fn next_number(&self) -> u64 {
        let others = self.versions.iter().map(|version| version.origin.number);
        others.chain([self.version.number]).max().unwrap_or(0).saturating_add(1)
    }

    fn bound_own_versions(&mut self) {
        bound_versions(&mut self.versions, &mut self.version);
    }

    /// Adds what another run for the same goal did as a new version, in use or only proposed. If the same was proposed
    /// before, that version is used. Returns its number; `None` if it does what the version in use does, or if nothing
    /// new is proposed.
    pub fn add_learned_version(
        &mut self,
        learned: &RunTrace,
        reason: VersionReason,
        is_proposed: bool,
        at: &str,
    ) -> Option<u64> {
        let mut version = learned.version_in_use();
        let is_known = |known: &TraceVersion| known.does_the_same(&version);
        if is_known(&self.version_in_use()) || is_proposed && self.versions.iter().any(is_known) {
            return None;
        }
        let proposed = self.versions.iter().find(|known| known.is_proposed && is_known(known));
        if let Some(number) = proposed.map(|known| known.origin.number) {
            return self.use_version(number, at).ok();
        }
        let number = self.next_number();
        let used_since = if is_proposed { String::new() } else { at.to_owned() };
        let run = learned.known.learned_from.clone();
        version.origin =
            VersionOrigin { number, created_at: at.to_owned(), reason, run, used_since, ..VersionOrigin::default() };
        version.is_proposed = is_proposed;
        (version.usage_count, version.verified_count) = (0, 0);
        version.feedback = Vec::new();
        if is_proposed {
            self.versions.push(version);
        } else {
            let before = self.version_in_use();
            let (from, own) = (&learned.known, &mut self.known);
            own.created_at.clone_from(&from.created_at);
            (own.learned_tokens, own.learned_usd) = (from.learned_tokens, from.learned_usd);
            own.is_cost_unknown = from.is_cost_unknown;
            (own.learned_secs, own.estimated_time_secs) = (from.learned_secs, from.estimated_time_secs);
            self.put_in_use(version);
            self.versions.push(before);
        }
        self.bound_own_versions();
        Some(number)
    }

    /// Proposes the version in use with corrected texts: pairs of a step's index and the new template of its text.
    /// What was proposed after the same run is replaced. Returns the number; `None` if it's proposed already.
    pub(super) fn propose_correction(
        &mut self,
        run: &str,
        corrected: &[(usize, &str, String, StepCorrection)],
        at: &str,
    ) -> Option<u64> {
        let mut version = self.version_in_use();
        for (step, argument, template, _) in corrected {
            let input = version.steps.get_mut(*step).map(|step| &mut step.input)?;
            input.insert((*argument).to_owned(), serde_json::Value::String(template.clone()));
        }
        let is_same_edit = |known: &TraceVersion| {
            known.is_proposed && known.origin.reason == VersionReason::Edited && known.origin.run == run
        };
        let replaced = self.versions.iter().position(is_same_edit);
        if self.versions.iter().any(|known| known.does_the_same(&version)) {
            return None;
        }
        let number = replaced.map_or_else(|| self.next_number(), |at| self.versions[at].origin.number);
        version.origin = VersionOrigin {
            number,
            created_at: at.to_owned(),
            reason: VersionReason::Edited,
            run: run.to_owned(),
            of: self.version.number,
            used_since: String::new(),
            corrections: corrected.iter().map(|(.., correction)| correction.clone()).collect(),
        };
        version.is_proposed = true;
        (version.usage_count, version.verified_count) = (0, 0);
        version.feedback = Vec::new();
        match replaced {
            Some(at) => self.versions[at] = version,
            None => self.versions.push(version),
        }
        self.bound_own_versions();
        Some(number)
    }

    /// Withdraws what was proposed because the user edited what a run wrote.
    pub(super) fn withdraw_correction(&mut self, run: &str) {
        self.versions.retain(|version| {
            !(version.is_proposed && version.origin.reason == VersionReason::Edited && version.origin.run == run)
        });
    }

    /// Uses another version: a proposed one as it is, or an earlier one again, as a new version with the same steps
    /// and counts. Returns the number of the version that's in use then.
    ///
    /// # Errors
    /// Returns an error if there's no such version, or if it's in use already.
    pub fn use_version(&mut self, number: u64, at: &str) -> Result<u64, TraceVersionError> {
        if number == self.version.number {
            return Err(TraceVersionError::InUse(number));
        }
        let place = self.versions.iter().position(|version| version.origin.number == number);
        let place = place.ok_or(TraceVersionError::Unknown(number))?;
        let before = self.version_in_use();
        let mut version = if self.versions[place].is_proposed {
            self.versions.remove(place)
        } else {
            let mut again = self.versions[place].clone();
            again.origin.number = self.next_number();
            (again.origin.reason, again.origin.of) = (VersionReason::RolledBack, number);
            at.clone_into(&mut again.origin.created_at);
            again
        };
        version.is_proposed = false;
        at.clone_into(&mut version.origin.used_since);
        let used = version.origin.number;
        self.put_in_use(version);
        self.versions.push(before);
        self.bound_own_versions();
        Ok(used)
    }

    /// Leaves out what only this workspace knows: what runs found, and what the user thought of them.
    pub(super) fn forget_runs(&mut self) {
        self.last_run = None;
        self.feedback.clear();
        self.versions.iter_mut().for_each(|version| version.feedback.clear());
    }

    /// Takes over a trace of another workspace: its versions are kept, and what they proved there isn't.
    pub(super) fn forget_other_workspace(&mut self) {
        self.forget_runs();
        self.version.reason = VersionReason::Imported;
        (self.version.used_since, self.version.of) = (String::new(), 0);
        for version in &mut self.versions {
            (version.usage_count, version.verified_count) = (0, 0);
            version.origin.used_since = String::new();
        }
        self.bound_own_versions();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::trace::tests::sample;
    use proptest::prelude::*;

    const AT: &str = "2026-11-22T10:30:00Z";

    /// Returns another trace for the goal of the sample.
    fn other(run: &str, answer: &str) -> RunTrace {
        let mut other = sample();
        other.answer = Some(answer.to_owned());
        other.known.learned_from = run.to_owned();
        other
    }

    fn numbers(trace: &RunTrace) -> Vec<(u64, bool)> {
        trace.all_versions().iter().map(|(version, is_used)| (version.origin.number, *is_used)).collect()
    }

    #[test]
    fn versions_are_kept_written_and_used_again() {
        let mut trace = sample();
        (trace.known.usage_count, trace.known.verified_count) = (3, 2);
        assert!(!trace.to_note().contains("version"), "a first version needs no words about it");
        let before = trace.fingerprint();
        assert_eq!(trace.add_learned_version(&sample(), VersionReason::Relearned, false, AT), None, "it's the same");
        let added = trace.add_learned_version(&other("b", "Second"), VersionReason::Relearned, false, AT);
        assert_eq!((added, numbers(&trace)), (Some(2), vec![(2, true), (1, false)]));
        assert_eq!((trace.known.usage_count, trace.known.learned_from.as_str()), (0, "b"), "nothing is proved of it");
        assert_ne!(trace.fingerprint(), before, "a pin doesn't hold for it");
        let third = other("c", "Third");
        assert_eq!(trace.add_learned_version(&third, VersionReason::Relearned, true, AT), Some(3));
        assert_eq!(trace.add_learned_version(&third, VersionReason::Relearned, true, AT), None, "once is enough");
        assert_eq!((trace.proposed_version(), trace.version.number), (Some(3), 2), "it isn't used by itself");
        let read = RunTrace::parse(&trace.to_note()).expect("read");
        assert_eq!(read, trace, "{}", trace.to_note());

        assert_eq!(trace.use_version(2, AT), Err(TraceVersionError::InUse(2)));
        assert_eq!(trace.use_version(9, AT), Err(TraceVersionError::Unknown(9)));
        assert_eq!(trace.use_version(1, AT), Ok(4), "an earlier version gets a new number");
        assert_eq!(trace.version.describe(), "rolled back to version 1");
        assert_eq!((trace.known.usage_count, trace.fingerprint()), (3, before), "with its proofs, and its pin holds");
        assert_eq!(trace.use_version(3, AT), Ok(3), "a proposed one keeps its number");
        assert_eq!(numbers(&trace), [(4, false), (3, true), (2, false), (1, false)]);
        assert_eq!((trace.answer.as_deref(), trace.proposed_version()), (Some("Third"), None));
        assert_eq!(trace.version_numbered(2).expect("there").origin.describe(), "relearned from run b");
        // An imported trace keeps its versions, and proves nothing.
        let imported = RunTrace::parse(&trace.to_library_yaml()).expect("read").reset_for_import();
        assert_eq!((numbers(&imported), imported.known.usage_count), (numbers(&trace), 0));
        assert!(imported.versions.iter().all(|version| version.usage_count == 0));
        assert_eq!(imported.version.describe(), "imported");
    }

    #[test]
    fn versions_are_bounded() {
        let mut trace = sample();
        for number in 0..50 {
            let learned = other("r", &format!("Answer {number}"));
            trace.add_learned_version(&learned, VersionReason::Relearned, false, AT).expect("another one");
        }
        assert_eq!((trace.version.number, trace.all_versions().len()), (51, MAX_TRACE_VERSIONS));
        for number in 0..4 {
            let learned = other("r", &format!("{number}{}", "x".repeat(100_000)));
            trace.add_learned_version(&learned, VersionReason::Relearned, false, AT).expect("another one");
        }
        assert!(trace.to_note().len() < 512 << 10, "{}", trace.to_note().len());
        assert!(RunTrace::parse(&trace.to_note()).is_ok_and(|read| read == trace));
        // A file can claim anything.
        let mut hostile = other("r", "Hostile");
        let version = sample().version_in_use();
        hostile.versions = vec![version; 3];
        hostile.versions[1].origin.number = u64::MAX;
        let mut empty = hostile.versions[1].clone();
        (empty.origin.number, empty.steps) = (7, Vec::new());
        hostile.versions.push(empty);
        hostile.versions.push(sample().version_in_use());
        hostile.versions[4].origin.number = 9;
        let mut read = RunTrace::parse(&hostile.to_note()).expect("read");
        assert_eq!(numbers(&read), [(9, false), (1, true)], "odd numbers and versions without steps are left out");
        assert!(read.use_version(9, AT).is_ok() && read.use_version(1, AT).is_ok());
        assert!(RunTrace::parse(&read.to_note()).is_ok());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn the_steps_of_every_kept_version_stay_as_they_were(
            acts in proptest::collection::vec((0..3_u8, 1..9_u64), 0..30),
        ) {
            let mut trace = sample();
            let mut known: std::collections::BTreeMap<u64, Option<String>> = [(1, trace.answer.clone())].into();
            for (at, (act, number)) in acts.into_iter().enumerate() {
                let learned = other("r", &format!("Answer {at}"));
                match act {
                    0 | 1 => {
                        let added = trace.add_learned_version(&learned, VersionReason::Relearned, act == 0, AT);
                        known.insert(added.expect("another one"), learned.answer);
                    }
                    _ => {
                        if let Ok(used) = trace.use_version(number, AT) {
                            let answer = known.get(&number).cloned().expect("known");
                            known.insert(used, answer);
                        }
                    }
                }
                for (version, _) in trace.all_versions() {
                    prop_assert_eq!(Some(&version.answer), known.get(&version.origin.number));
                }
            }
            prop_assert_eq!(&RunTrace::parse(&trace.to_note()).expect("read"), &trace);
        }
    }
}
