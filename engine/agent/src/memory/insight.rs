//! Recall: finds experiences that are relevant to a goal, each with the reason, and summarizes them by counting. No
//! model is needed.

use super::experience::{Experience, RunOutcome};
use super::goal::ParsedGoal;
use super::trace::{RunTrace, wilson_lower_bound};
use super::trace_trust::TraceTrust;
use super::{ExperienceMatch, ProjectMemory};
use crate::prompt_quote;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use text::task::CalendarDay;

/// Maximum number of recalled experiences.
const MAX_RECALLED_EXPERIENCES: usize = 5;
/// Minimum word similarity of a relevant experience, 0 to 1.
const MIN_RECALL_SIMILARITY: f64 = 0.2;
/// Minimum cosine similarity of a relevant experience that shares too few words with the goal.
const MIN_RECALL_COSINE: f64 = 0.4;
/// Maximum number of insights and recommendations.
const MAX_KEY_INSIGHTS: usize = 6;

/// A trace or experience that's relevant to a goal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecalledItem {
    /// Id of the experience or path of the trace; used to exclude it.
    pub name: String,
    /// Either `experience` or `trace`.
    pub kind: &'static str,
    /// A short description for the user.
    pub what: String,
    /// Why it's relevant to the goal.
    pub why: String,
    /// How relevant it is, 0 to 1.
    pub score: f64,
    /// Whether it's a trace that is replayed without being told to.
    pub follows: bool,
}

/// The kind of a [`RecalledItem`] that is an experience.
pub const EXPERIENCE_KIND: &str = "experience";
/// The kind of a [`RecalledItem`] that is a trace.
pub const TRACE_KIND: &str = "trace";

/// Formats the items that a run recalled, and those that the user excluded, as the text of a step. `None` if there are
/// neither.
pub fn recall_step_text(bearing: &[RecalledItem], without: &[String]) -> Option<String> {
    if bearing.is_empty() && without.is_empty() {
        return None;
    }
    let mut words = String::from(if bearing.is_empty() { NO_RECALL_HEADING } else { RECALL_HEADING });
    for one in bearing {
        words.push_str(&format!("\n- {} {}: {}\n  {}", one.kind, one.name, one.what, one.why));
    }
    if !without.is_empty() {
        words.push_str(&format!("\n{EXCLUDED_PREFIX}{}", without.join(", ")));
    }
    Some(words)
}

const RECALL_HEADING: &str = "What is remembered of this:";
const NO_RECALL_HEADING: &str = "Nothing else is remembered of this.";
const EXCLUDED_PREFIX: &str = "Left out by you: ";

/// Parses the text of a recall step: recalled and excluded items. `None` for other steps.
pub fn parse_recall_step(words: &str) -> Option<(Vec<RecalledItem>, Vec<String>)> {
    let mut lines = words.lines().peekable();
    lines.next().filter(|first| *first == RECALL_HEADING || *first == NO_RECALL_HEADING)?;
    let (mut all, mut without) = (Vec::new(), Vec::new());
    while let Some(line) = lines.next() {
        if let Some(names) = line.strip_prefix(EXCLUDED_PREFIX) {
            without.extend(names.split(", ").map(str::to_owned));
            continue;
        }
        let found = [EXPERIENCE_KIND, TRACE_KIND].into_iter().find_map(|kind| {
            let (name, what) = line.strip_prefix("- ")?.strip_prefix(kind)?.strip_prefix(' ')?.split_once(": ")?;
            Some((kind, name.to_owned(), what.to_owned()))
        });
        let Some((kind, name, what)) = found else { continue };
        let why = lines.next_if(|next| next.starts_with("  ")).unwrap_or_default().trim().to_owned();
        all.push(RecalledItem { name, kind, what, why, score: 0.0, follows: false });
    }
    Some((all, without))
}

/// A question to memory, in the JSON format of `llmos-lite.md`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryQuery {
    /// The question.
    pub query: String,
    /// Limits the experiences that are searched.
    pub filters: MemoryFilters,
    /// What the answer is needed for.
    pub context: String,
}

impl MemoryQuery {
    /// Returns the query in a text: the JSON of a query, or plain text.
    pub fn of_text(text: String) -> MemoryQuery {
        let given = json_object_slice(&text).and_then(|json| serde_json::from_str::<MemoryQuery>(json).ok());
        given
            .filter(|query| !query.query.trim().is_empty())
            .unwrap_or(MemoryQuery { query: text, ..MemoryQuery::default() })
    }
}

/// Returns the JSON object in a text, from its first to its last brace.
fn json_object_slice(text: &str) -> Option<&str> {
    text.get(text.find('{')?..=text.rfind('}')?)
}

/// Limits the experiences that are searched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryFilters {
    /// Words of which the project's name or the goal must contain one.
    pub project_type: String,
    /// Outcome that experiences must have; empty for any.
    pub outcome: String,
}

/// The answer of memory, in the JSON format of `llmos-lite.md`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryAnalysis {
    /// Summary in one or two sentences.
    pub analysis_summary: String,
    /// Ids of the relevant experiences.
    pub relevant_experiences: Vec<String>,
    /// Insights that they have in common.
    pub key_insights: Vec<String>,
    /// Advice for the next run.
    pub recommendations: Vec<String>,
    /// Confidence in the answer, 0 to 1.
    pub confidence_score: f64,
}

/// Returns the words of a text, cut to six characters so that "signals" matches "signal".
fn word_stems(text: &str) -> BTreeSet<String> {
    let goal = ParsedGoal::parse(text);
    let values: Vec<String> = goal.values().map(|(_, text)| text.to_lowercase()).collect();
    let all = goal.words().map(str::to_owned).chain(values);
    let parts = all.flat_map(|word| word.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect::<Vec<_>>());
    let telling = parts.filter(|word| word.chars().count() > 2 && !RECALL_STOP_WORDS.contains(&word.as_str()));
    telling.map(|word| word.chars().take(6).collect()).collect()
}

/// Words that say nothing about the topic of a text.
const RECALL_STOP_WORDS: [&str; 24] = [
    "and", "for", "with", "from", "into", "this", "was", "were", "are", "all", "what", "which", "how", "use", "used",
    "new", "not", "but", "has", "have", "when", "where", "that", "then",
];

/// Beginnings of words by which a question asks for runs that failed.
const FAILURE_WORDS: [&str; 7] = ["fail", "wrong", "denied", "refused", "rejected", "broke", "crash"];
/// Words with which a question can't be taken for one about an outcome.
const NEGATION_WORDS: [&str; 5] = ["not", "never", "without", "avoid", "prevent"];
/// Words of questions about outcomes that say nothing about their subject.
const OUTCOME_QUESTION_WORDS: [&str; 22] = [
    "run", "runs", "task", "tasks", "most", "often", "last", "lately", "recent", "recently", "ever", "did", "went",
    "go", "goes", "gone", "who", "why", "there", "were", "been", "thing",
];

/// Returns the outcome that a question asks for, and its other words: “which runs failed?” asks for failures of all
/// kinds. `None` if it asks for no outcome, or for more than one.
fn outcome_of_question(question: &str) -> Option<(RunOutcome, String)> {
    let lower = question.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|w| !w.is_empty()).collect();
    let begins = |word: &str, all: &[&str]| all.iter().any(|begin| word.starts_with(begin));
    let is_negated = words.iter().any(|word| NEGATION_WORDS.contains(word) || word.ends_with("n't"));
    let failed = words.iter().any(|word| begins(word, &FAILURE_WORDS));
    // “What went well?” and “what worked?” do, “what else is known as well?” and “what was worked on?” don't.
    let is_good = |at: usize, word: &str| {
        let before = at.checked_sub(1).and_then(|before| words.get(before)).copied().unwrap_or_default();
        let after = words.get(at + 1).copied().unwrap_or_default();
        word.starts_with("succe")
            || (word == "well" && ["went", "go", "goes", "gone", "did", "worked"].contains(&before))
            || (word == "worked" && !["on", "at", "with", "for"].contains(&after))
    };
    let good = words.iter().enumerate().any(|(at, word)| is_good(at, word));
    let outcome = match (failed, good) {
        (true, false) if !is_negated => RunOutcome::Failure,
        (false, true) if !is_negated => RunOutcome::Success,
        _ => return None,
    };
    let is_subject = |(at, word): &(usize, &&str)| {
        !begins(word, &FAILURE_WORDS) && !is_good(*at, word) && !OUTCOME_QUESTION_WORDS.contains(*word)
    };
    let rest: Vec<&str> = words.iter().enumerate().filter(is_subject).map(|(_, word)| *word).collect();
    Some((outcome, rest.join(" ")))
}

/// Ranks experiences by the words that they share with a query. Rare words weigh more.
fn rank_by_similarity<'a>(query: &str, all: &[&'a Experience]) -> Vec<(f64, Vec<String>, &'a Experience)> {
    let wanted = word_stems(query);
    let texts: Vec<BTreeSet<String>> = all
        .iter()
        .map(|one| {
            word_stems(&format!("{} {} {}", one.primary_goal, one.learnings_or_issues, one.components_used.join(" ")))
        })
        .collect();
    let count = texts.len().max(1) as f64;
    let weight = |word: &String| {
        let with = texts.iter().filter(|text| text.contains(word)).count() as f64;
        (1.0 + count / (1.0 + with)).ln()
    };
    let whole: f64 = wanted.iter().map(weight).sum();
    let mut found = Vec::new();
    for (one, text) in all.iter().zip(&texts) {
        let shared: Vec<String> = wanted.intersection(text).cloned().collect();
        let score: f64 = shared.iter().map(weight).sum::<f64>() / whole.max(f64::MIN_POSITIVE);
        if score >= MIN_RECALL_SIMILARITY && (shared.len() > 1 || wanted.len() == 1) {
            found.push((score.min(1.0), shared, *one));
        }
    }
    found.sort_by(|one, other| other.0.total_cmp(&one.0));
    found
}

impl ProjectMemory {
    /// Returns the experiences that are valid on this day.
    fn current_experiences(&self, today: CalendarDay) -> Vec<&Experience> {
        self.entries.iter().map(|entry| &entry.experience).filter(|one| one.is_current(today)).collect()
    }

    /// Returns the experiences that are relevant to a goal, each with the reason.
    pub fn relevant_experiences(&self, goal: &str, today: CalendarDay) -> Vec<RecalledItem> {
        let counting = self.current_experiences(today);
        let by_words = rank_by_similarity(goal, &counting);
        // A search by meaning ranks better; experiences that it doesn't know yet are ranked by words.
        let searched: BTreeMap<&str, &ExperienceMatch> =
            self.near.iter().map(|near| (near.id.as_str(), near)).collect();
        let mut found: Vec<RecalledItem> = Vec::new();
        for one in counting {
            let words = by_words.iter().find(|(_, _, other)| other.experience_id == one.experience_id);
            let known = searched.get(one.experience_id.as_str());
            let meaning = known.and_then(|known| known.meaning).filter(|meaning| *meaning >= MIN_RECALL_COSINE);
            if words.is_none() && meaning.is_none() {
                continue;
            }
            let mut why = Vec::new();
            why.extend(words.map(|(_, shared, _)| format!("it shares {}", shared.join(", "))));
            why.extend(meaning.map(|meaning| format!("near in meaning ({meaning:.2})")));
            let day = one.timestamp.get(..10).unwrap_or("once");
            let times = if one.count > 1 { format!(", {} times", one.count) } else { String::new() };
            why.push(format!("{} on {day}{times}", one.final_outcome.as_str().replace('_', " ")));
            let score = known.map_or_else(|| words.map_or(0.0, |(score, ..)| *score), |known| known.score);
            found.push(RecalledItem {
                name: one.experience_id.clone(),
                kind: EXPERIENCE_KIND,
                what: one.primary_goal.lines().next().unwrap_or_default().to_owned(),
                why: why.join("; "),
                score: (score * 1_000.0).round() / 1_000.0,
                follows: false,
            });
        }
        found.sort_by(|one, other| other.score.total_cmp(&one.score));
        found.truncate(MAX_RECALLED_EXPERIENCES);
        found
    }

    /// Returns all items that are relevant to a goal: experiences, and traces that match it.
    pub fn relevant_items(
        &self,
        goal: &str,
        note: Option<&str>,
        agent: &str,
        tools: &BTreeMap<String, String>,
        today: CalendarDay,
        trust: &dyn Fn(&RunTrace) -> TraceTrust,
    ) -> Vec<RecalledItem> {
        let mut bearing = self.relevant_experiences(goal, today);
        for fitting in self.matching_traces(goal, note, agent, tools, trust) {
            let Some(filed) = self.traces.get(fitting.at) else { continue };
            let what = filed.trace.known.goal_text.lines().next().unwrap_or_default().to_owned();
            let (name, why) = (filed.path.clone(), fitting.why);
            let (score, follows) = (fitting.trust.confidence, fitting.trust.is_followed());
            bearing.push(RecalledItem { name, kind: TRACE_KIND, what, why, score, follows });
        }
        bearing
    }

    /// Returns a prompt with these experiences, quoted as material and not as instructions.
    pub fn recall_prompt(&self, bearing: &[RecalledItem]) -> String {
        let mut text =
            format!("Results of earlier work that are relevant here. {}\n", prompt_quote::QUOTED_MATERIAL_PREAMBLE);
        for one in bearing {
            let Some(entry) = self.entries.iter().find(|entry| entry.experience.experience_id == one.name) else {
                continue;
            };
            let known = &entry.experience;
            let lesson = prompt_quote::single_line(&known.learnings_or_issues, 600);
            let said =
                format!("{} ({}): {lesson}", prompt_quote::single_line(&one.what, 300), known.final_outcome.as_str());
            let by = if known.author.is_empty() { "an unknown author" } else { &known.author };
            let source = format!("{}, {}, written by {by} of {}", entry.path, one.name, known.source);
            text.push_str(&format!("\n{}", prompt_quote::quote_block(&source, &said)));
        }
        text
    }

    /// Answers a question from memory, by retrieval and counting.
    pub fn analyze(&self, query: &MemoryQuery, today: CalendarDay) -> MemoryAnalysis {
        let wanted = query.filters.project_type.to_lowercase().replace('_', " ");
        let kinds = word_stems(&wanted);
        let asked = outcome_of_question(&query.query).filter(|_| query.filters.outcome.is_empty());
        let outcome = asked.as_ref().map(|(outcome, _)| *outcome);
        let all: Vec<&Experience> = self
            .current_experiences(today)
            .into_iter()
            .filter(|one| match outcome.or_else(|| RunOutcome::from_name(&query.filters.outcome)) {
                Some(RunOutcome::Success) => one.final_outcome.is_good(),
                Some(outcome) => one.final_outcome == outcome,
                None => true,
            })
            .filter(|one| {
                let own = word_stems(&format!("{} {}", one.project_name.replace('_', " "), one.primary_goal));
                kinds.is_empty() || kinds.intersection(&own).next().is_some()
            })
            .collect();
        let subject = asked.as_ref().map_or(query.query.as_str(), |(_, subject)| subject.as_str());
        let words = format!("{subject} {}", query.context);
        let found = if asked.is_some() && word_stems(&words).is_empty() {
            // It asks for all runs with this outcome: the most frequent first, and of these the latest.
            let mut found: Vec<(f64, Vec<String>, &Experience)> =
                all.into_iter().map(|one| (1.0, Vec::new(), one)).collect();
            found.sort_by(|(_, _, one), (_, _, other)| {
                (other.count, &other.timestamp).cmp(&(one.count, &one.timestamp))
            });
            found
        } else {
            rank_by_similarity(&words, &all)
        };
        let relevant: Vec<&Experience> = found.iter().map(|(_, _, one)| *one).take(20).collect();
        if relevant.is_empty() {
            let analysis_summary = "Nothing that is remembered bears on this.".to_owned();
            return MemoryAnalysis { analysis_summary, ..MemoryAnalysis::default() };
        }
        let weight = |one: &Experience| one.count.max(1);
        let times: u64 = relevant.iter().map(|one| weight(one)).sum();
        let good: u64 = relevant.iter().filter(|one| one.final_outcome.is_good()).map(|one| weight(one)).sum();
        let mut parts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for one in &relevant {
            for part in &one.components_used {
                let (well, all) = parts.entry(part).or_default();
                *all += weight(one);
                *well += if one.final_outcome.is_good() { weight(one) } else { 0 };
            }
        }
        let mut parts: Vec<(&str, u64, u64)> = parts.into_iter().map(|(name, (well, all))| (name, well, all)).collect();
        parts.sort_by(|one, other| {
            let by_success = wilson_lower_bound(other.1, other.2).total_cmp(&wilson_lower_bound(one.1, one.2));
            by_success.then(other.2.cmp(&one.2))
        });
        let mut key_insights: Vec<String> = parts
            .iter()
            .take(MAX_KEY_INSIGHTS - 1)
            .map(|(name, well, all)| {
                if outcome == Some(RunOutcome::Failure) {
                    return format!("{name} took part in {all} of them");
                }
                format!("{name} went well {well} of {all} times ({:.0} %)", *well as f64 / (*all).max(1) as f64 * 100.0)
            })
            .collect();
        let mut took: Vec<u64> = relevant.iter().map(|one| one.execution_time_ms).filter(|time| *time > 0).collect();
        took.sort_unstable();
        if let Some(middle) = took.get(took.len() / 2) {
            key_insights.push(format!("Half of them took less than {:.1} s", *middle as f64 / 1_000.0));
        }
        let lesson = |one: &Experience| {
            let first = one.learnings_or_issues.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
            (!first.is_empty()).then(|| first[..first.floor_char_boundary(300)].to_owned())
        };
        let mut recommendations: Vec<String> = Vec::new();
        for one in &relevant {
            let Some(first) = lesson(one) else { continue };
            let words = if one.final_outcome.is_good() { first } else { format!("Avoid: {first}") };
            if recommendations.len() < MAX_KEY_INSIGHTS && !recommendations.contains(&words) {
                recommendations.push(words);
            }
        }
        let subject = relevant.first().map_or("", |one| one.primary_goal.lines().next().unwrap_or_default());
        let top = found.first().map_or(0.0, |(score, _, _)| *score);
        // Confidence is high if the best match is close and the outcomes are consistent.
        let steady = wilson_lower_bound(good.max(times - good), times);
        let (runs, bear) = if times == 1 { ("earlier run", "bears") } else { ("earlier runs", "bear") };
        MemoryAnalysis {
            analysis_summary: match outcome {
                Some(RunOutcome::Failure) => {
                    format!("{times} {runs} failed; the most frequent and latest is \u{201c}{subject}\u{201d}.")
                }
                Some(RunOutcome::Success | RunOutcome::SuccessWithRecovery) => {
                    format!("{times} {runs} went well; the most frequent and latest is \u{201c}{subject}\u{201d}.")
                }
                None => format!(
                    "{times} {runs} {bear} on this, {good} of them went well; the nearest is \u{201c}{subject}\u{201d}."
                ),
            },
            relevant_experiences: relevant.iter().map(|one| one.experience_id.clone()).collect(),
            key_insights,
            recommendations,
            confidence_score: (f64::midpoint(top, steady) * 100.0).round() / 100.0,
        }
    }
}

impl MemoryAnalysis {
    /// Formats the analysis as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Parses an analysis written by a model, and counts experiences in it that don't exist.
    pub fn parse_answer(text: &str, memory: &ProjectMemory) -> Option<(MemoryAnalysis, usize)> {
        let mut said: MemoryAnalysis = serde_json::from_str(json_object_slice(text)?).ok()?;
        if said.analysis_summary.trim().is_empty() || !said.confidence_score.is_finite() {
            return None;
        }
        let count = said.relevant_experiences.len();
        said.relevant_experiences.retain(|id| memory.entries.iter().any(|one| one.experience.experience_id == *id));
        said.confidence_score = said.confidence_score.clamp(0.0, 1.0);
        let gone = count - said.relevant_experiences.len();
        Some((said, gone))
    }

    /// Formats the analysis as a note. `at` is when the question was asked.
    pub fn to_note(&self, question: &str, at: &str) -> String {
        let list = |lines: &[String]| match lines {
            [] => "None.".to_owned(),
            lines => lines.iter().map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n"),
        };
        format!(
            "# Analysis\n\nWhat memory says to \u{201c}{}\u{201d}, asked {at}.\n\n{}\n\n## Insights\n\n{}\n\n\
             ## Recommendations\n\n{}\n\n## Sources\n\n{}\n\nConfidence: {:.2}\n",
            question.lines().next().unwrap_or_default(),
            self.analysis_summary,
            list(&self.key_insights),
            list(&self.recommendations),
            list(&self.relevant_experiences),
            self.confidence_score
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::experience::ExperienceEntry;

    fn memory() -> ProjectMemory {
        let one = |id: &str, goal: &str, outcome, parts: &[&str], lesson: &str, count| ExperienceEntry {
            path: "memory/memory_log.md".to_owned(),
            at: 0,
            text: String::new(),
            experience: Experience {
                experience_id: id.to_owned(),
                primary_goal: goal.to_owned(),
                final_outcome: outcome,
                components_used: parts.iter().map(|part| (*part).to_owned()).collect(),
                learnings_or_issues: lesson.to_owned(),
                execution_time_ms: 12_500,
                timestamp: "2026-11-20T10:00:00Z".to_owned(),
                source: "run".to_owned(),
                count,
                ..Experience::default()
            },
        };
        let entries = vec![
            one("exp_1", "Analyse a noisy signal with an FFT", RunOutcome::Success, &["scipy"], "Use scipy.fft", 3),
            one("exp_2", "Plot the FFT of a signal", RunOutcome::Failure, &["pylab"], "pylab is not there", 1),
            one("exp_3", "Translate a letter into French", RunOutcome::Success, &["search"], "Ask for the tone", 1),
        ];
        ProjectMemory { entries, ..ProjectMemory::default() }
    }

    #[test]
    fn what_bears_on_a_goal_is_found_with_its_reason() {
        let today = CalendarDay::parse("2026-11-22").expect("a day");
        let found = memory().relevant_experiences("Find the peak in the FFT of these signals", today);
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names.len(), 2, "{found:?}");
        assert!(found.iter().all(|one| one.why.contains("fft") && one.why.contains("signal")), "{found:?}");
        assert_eq!(memory().relevant_experiences("Water the plants", today), []);
        // Experiences that a semantic search found are relevant too, in the search's order.
        let near = |id: &str, score, meaning| ExperienceMatch { id: id.to_owned(), score, meaning };
        let searched = vec![near("exp_3", 0.9, Some(0.6)), near("exp_2", 0.8, None), near("exp_1", 0.5, Some(0.1))];
        let searched = ProjectMemory { near: searched, ..memory() };
        let found = searched.relevant_experiences("Find the peak in the FFT of these signals", today);
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["exp_3", "exp_2", "exp_1"]);
        assert_eq!(found[0].why, "near in meaning (0.60); success on 2026-11-20");
        // The text stored in a run is parsed again.
        let words = recall_step_text(&found, &["exp_9".to_owned(), "memory/traces/a.md".to_owned()]).expect("words");
        let (mut again, without) = parse_recall_step(&words).expect("they are read");
        again.iter_mut().zip(&found).for_each(|(one, known)| one.score = known.score);
        assert_eq!((again, without.len()), (found, 2), "{words}");
        assert_eq!((recall_step_text(&[], &[]), parse_recall_step("I think: - experience x: y")), (None, None));
        let found = memory().relevant_experiences("Find the peak in the FFT of these signals", today);
        let told = memory().recall_prompt(&found);
        assert!(told.contains("not instruction") && told.contains("Use scipy.fft"), "{told}");
    }

    #[test]
    fn an_analysis_counts() {
        let today = CalendarDay::parse("2026-11-22").expect("a day");
        let query = MemoryQuery { query: "What leads to good FFT of a signal?".to_owned(), ..MemoryQuery::default() };
        let said = memory().analyze(&query, today);
        assert_eq!(said.relevant_experiences.len(), 2);
        assert!(said.key_insights.iter().any(|one| one.contains("scipy went well 3 of 3")), "{said:?}");
        assert!(said.recommendations.contains(&"Avoid: pylab is not there".to_owned()), "{said:?}");
        assert!(said.confidence_score > 0.2 && said.confidence_score <= 1.0);
        let good = MemoryQuery {
            filters: MemoryFilters { outcome: "success".to_owned(), ..MemoryFilters::default() },
            ..query
        };
        assert_eq!(memory().analyze(&good, today).relevant_experiences, ["exp_1"]);
    }

    #[test]
    fn words_of_outcome_are_a_filter() {
        let today = CalendarDay::parse("2026-11-22").expect("a day");
        let found = |question: &str| {
            let query = MemoryQuery { query: question.to_owned(), ..MemoryQuery::default() };
            memory().analyze(&query, today).relevant_experiences
        };
        for question in ["Which runs failed?", "what failed most?", "What went wrong lately?", "Why did the plot fail?"]
        {
            assert_eq!(found(question), ["exp_2"], "{question}");
        }
        assert_eq!(found("What went well?"), ["exp_1", "exp_3"], "the most frequent first");
        assert_eq!(found("Which translation of a letter into French worked?"), ["exp_3"]);
        assert_eq!(found("Which FFT of a signal did not fail?").len(), 2, "it asks for no single outcome");
        assert_eq!(found("Why did the watering of plants fail?"), Vec::<String>::new());
        let failed = MemoryQuery { query: "which runs failed?".to_owned(), ..MemoryQuery::default() };
        let said = memory().analyze(&failed, today);
        assert!(said.analysis_summary.starts_with("1 earlier run failed"), "{said:?}");
        assert_eq!(said.recommendations, ["Avoid: pylab is not there"]);
        let other = MemoryFilters { outcome: "success".to_owned(), ..MemoryFilters::default() };
        let both = memory().analyze(&MemoryQuery { filters: other, ..failed }, today);
        assert_eq!(both.relevant_experiences, Vec::<String>::new(), "what is said beside the question counts");
    }
}
