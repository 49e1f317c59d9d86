//! Changes of a trace's note. They change only what differs, so that what people wrote in the note stays.

use super::trace::{self, RunTrace};
use super::trace_edits::LastTraceRun;
use super::trace_feedback::{RatedRun, RunRating};
use super::trace_versions::VersionReason;
use serde_json::Value;
use text::{outline, properties};

/// A change of a trace.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceUpdate {
    /// A replay ended, or a model did what the trace would have done.
    Replayed {
        /// Whether all conditions held.
        is_good: bool,
        /// Duration in milliseconds of an actual replay, which counts towards the savings.
        took_ms: Option<i64>,
        /// What is needed to learn from edits of what the run wrote.
        last: Option<LastTraceRun>,
    },
    /// The user undid a run, or did it again.
    Reverted {
        /// The run.
        run: RatedRun,
        /// Whether it's undone now.
        is_undone: bool,
    },
    /// The user rated a run, or the trace as a whole.
    Rated {
        /// The run.
        run: RatedRun,
        /// The rating; `None` takes it back.
        rating: Option<RunRating>,
    },
    /// A run for the same goal did something else.
    Relearned {
        /// The trace of that run.
        learned: Box<RunTrace>,
        /// Whether it's only proposed, and counts as a failure of the version in use.
        is_proposed: bool,
        /// What is needed to learn from edits of what the run wrote.
        last: Option<LastTraceRun>,
    },
    /// A run of this workspace did the same, and vouches for the trace from now on.
    VouchedBy {
        /// Id of the run.
        run: String,
    },
    /// The trace was looked at with the current texts of what its last run wrote.
    Reviewed(Box<RunTrace>),
}

impl RunTrace {
    /// Applies a change. `at` is the time, such as `2026-11-22T10:30:00Z`.
    pub fn apply_update(&mut self, update: &TraceUpdate, at: &str) {
        match update {
            TraceUpdate::Replayed { is_good, took_ms, last } => {
                self.count_run(*is_good, at);
                let known = &mut self.known;
                if let Some(took) = took_ms {
                    let secs = *took as f64 / 1_000.0;
                    known.estimated_time_secs = secs;
                    known.saved_tokens = known.saved_tokens.saturating_add(known.learned_tokens);
                    known.saved_usd += known.learned_usd;
                    known.saved_secs += (known.learned_secs - secs).max(0.0);
                }
                if let Some(last) = last {
                    self.remember_run(last.clone());
                }
            }
            TraceUpdate::Reverted { run, is_undone } => self.mark_undone(run, *is_undone, at),
            TraceUpdate::Rated { run, rating } => self.rate_run(run, *rating, at),
            TraceUpdate::Relearned { learned, is_proposed, last } => {
                if *is_proposed {
                    self.count_run(false, at);
                }
                let added = self.add_learned_version(learned, VersionReason::Relearned, *is_proposed, at);
                if let Some(last) = last.clone().filter(|_| added.is_some() && !is_proposed) {
                    self.remember_run(last);
                }
            }
            TraceUpdate::VouchedBy { run } => self.known.learned_from.clone_from(run),
            TraceUpdate::Reviewed(reviewed) => *self = (**reviewed).clone(),
        }
    }

    fn count_run(&mut self, is_good: bool, at: &str) {
        let known = &mut self.known;
        known.usage_count = known.usage_count.saturating_add(1);
        known.verified_count = known.verified_count.saturating_add(u64::from(is_good));
        known.success_rating = trace::success_share(known.verified_count, known.usage_count);
        at.clone_into(&mut known.last_used);
    }

    /// Returns the text of the trace's note with this trace in it. Other text and properties of the note stay.
    pub fn written_into(&self, note: &str) -> Option<String> {
        let before = RunTrace::parse(note).ok()?;
        let mut text = note.to_owned();
        let values = |trace: &RunTrace| match serde_json::to_value(&trace.known) {
            Ok(Value::Object(values)) => Some(values),
            Ok(_) | Err(_) => None,
        };
        let old = values(&before)?;
        for (key, value) in values(self)? {
            if old.get(&key) != Some(&value) {
                text = properties::set_property(&text, &key, Some(&value)).ok()?;
            }
        }
        if before.body_yaml() == self.body_yaml() {
            return Some(text);
        }
        let front = outline::front_matter_range(&text)?;
        let (block, yaml) = trace::body_ranges(&text, front.end);
        let body = if block == yaml { format!("\n{}", self.body_yaml()) } else { self.body_block() };
        text.replace_range(block, &body);
        Some(text)
    }
}

/// Returns the text of a trace's note after a change; `None` if it isn't a trace.
pub fn updated_note(note: &str, update: &TraceUpdate, at: &str) -> Option<String> {
    let mut trace = RunTrace::parse(note).ok()?;
    trace.apply_update(update, at);
    trace.written_into(note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::trace::tests::sample;

    const AT: &str = "2026-11-22T10:30:00Z";

    #[test]
    fn a_note_keeps_what_people_wrote() {
        let trace = sample();
        let note = trace.to_note().replacen("---\n", "---\ntags: [mine]\n", 1) + "\nMy own words.\n";
        let good = TraceUpdate::Replayed { is_good: true, took_ms: Some(1_000), last: None };
        let counted = updated_note(&note, &good, AT).expect("a trace");
        let read = RunTrace::parse(&counted).expect("read");
        assert_eq!((read.known.usage_count, read.known.verified_count, read.steps), (1, 1, trace.steps.clone()));
        assert!(counted.contains("tags: [mine]") && counted.ends_with("\nMy own words.\n"), "{counted}");
        let mut learned = trace.clone();
        learned.answer = Some("A ```` fence".to_owned());
        let learned = Box::new(learned);
        let again = TraceUpdate::Relearned { learned: learned.clone(), is_proposed: false, last: None };
        let renewed = updated_note(&counted, &again, AT).expect("a trace");
        let read = RunTrace::parse(&renewed).expect("read");
        assert_eq!(
            (read.version.number, read.answer.as_ref(), read.known.usage_count),
            (2, learned.answer.as_ref(), 0)
        );
        assert_eq!(read.versions[0].usage_count, 1);
        assert!(renewed.contains("tags: [mine]") && renewed.ends_with("\nMy own words.\n"), "{renewed}");
        // A file of the exchange format is changed in place, too.
        let bare = updated_note(&trace.to_library_yaml(), &again, AT).expect("a trace");
        assert_eq!(RunTrace::parse(&bare).expect("read").version.number, 2);
        assert_eq!(updated_note("# No trace\n", &good, AT), None);
        assert_eq!(updated_note(&note, &TraceUpdate::Rated { run: RatedRun::default(), rating: None }, AT), Some(note));
    }
}
