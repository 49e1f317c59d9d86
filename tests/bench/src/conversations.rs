//! Benchmark of recall in long conversations: how well turns are found for questions about them.
//!
//! The data has LoCoMo's form: a JSON array of conversations, each with sessions of turns (`dia_id`) and questions
//! whose evidence names turns.

use super::report::{BenchReport, FigureGoal as Aim};
use super::{BENCH_TIMEOUT, drive_until, open_volume, open_workspace};
use agent::memory::experience::{EXPERIENCE_LOG_FILE, EXPERIENCE_LOG_HEADING, Experience};
use agent::memory::{self, ProjectMemory};
use engine::Session;
use host::agents::project_memory::{memory_folders, nearest_experiences, read_project_memory};
use host::search::SearchMode;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;
use support::measure::{self, ScratchFolder};

/// Number of top results that count.
const RECALL_CUTOFFS: [usize; 2] = [5, 10];
/// The search modes compared.
const SEARCH_MODES: [(&str, SearchMode); 3] =
    [("words", SearchMode::Words), ("meaning", SearchMode::Meaning), ("both", SearchMode::Both)];

/// A turn of a conversation: its session and index, and what was said.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ConversationTurn {
    id: (u64, u64),
    words: String,
    session: String,
}

/// A question, the turns that hold its answer, and its category.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EvidenceQuestion {
    words: String,
    evidence: BTreeSet<(u64, u64)>,
    category: u64,
}

/// A conversation with its questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct BenchConversation {
    name: String,
    turns: Vec<ConversationTurn>,
    questions: Vec<EvidenceQuestion>,
    /// Number of questions without evidence among its turns.
    bare: usize,
}

/// Parses the turns that an evidence entry names: `D1:3`, several as in `D8:6; D9:17`, or `D:11:26`.
fn parse_evidence(evidence: &str) -> Vec<(u64, u64)> {
    let pieces = evidence.split([';', ',', ' ']).filter(|piece| !piece.is_empty());
    let one = |piece: &str| {
        let numbers = piece.strip_prefix('D')?.trim_start_matches(':');
        let (session, turn) = numbers.split_once(':')?;
        Some((session.parse().ok()?, turn.parse().ok()?))
    };
    pieces.filter_map(one).collect()
}

/// Reads conversations from JSON.
///
/// # Errors
/// Returns a sentence if the text isn't JSON of this form.
fn read_conversations(text: &[u8]) -> Result<Vec<BenchConversation>, String> {
    let all: Value = serde_json::from_slice(text).map_err(|error| format!("it isn't valid JSON: {error}"))?;
    let all = all.as_array().ok_or("it is no array of conversations")?;
    let mut found = Vec::new();
    for (number, one) in all.iter().enumerate() {
        let name = one["sample_id"].as_str().map_or_else(|| format!("conversation-{}", number + 1), str::to_owned);
        let parts = one["conversation"].as_object().ok_or_else(|| format!("{name} has no “conversation”"))?;
        let mut turns = Vec::new();
        for (key, session) in parts {
            let Some(session) = session.as_array().filter(|_| key.starts_with("session_")) else { continue };
            let when = parts.get(&format!("{key}_date_time")).and_then(Value::as_str).unwrap_or_default();
            for turn in session {
                let id = turn["dia_id"].as_str().and_then(|id| parse_evidence(id).into_iter().next());
                let id = id.ok_or_else(|| format!("a turn of {key} of {name} has no “dia_id” such as D1:3"))?;
                let speaker = turn["speaker"].as_str().unwrap_or("somebody");
                let mut words = format!("{speaker}: {}", turn["text"].as_str().unwrap_or_default());
                if let Some(shown) = turn["blip_caption"].as_str() {
                    words.push_str(&format!(" (shows {shown})"));
                }
                turns.push(ConversationTurn { id, words, session: format!("{key}, {when}") });
            }
        }
        turns.sort_by_key(|turn| turn.id);
        let known: BTreeSet<(u64, u64)> = turns.iter().map(|turn| turn.id).collect();
        let mut conversation = BenchConversation { name, turns, ..BenchConversation::default() };
        for question in one["qa"].as_array().into_iter().flatten() {
            let evidence = question["evidence"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let evidence: BTreeSet<(u64, u64)> =
                evidence.flat_map(parse_evidence).filter(|id| known.contains(id)).collect();
            let words = question["question"].as_str().unwrap_or_default().to_owned();
            if evidence.is_empty() || words.is_empty() {
                conversation.bare += 1;
                continue;
            }
            let category = question["category"].as_u64().unwrap_or(0);
            conversation.questions.push(EvidenceQuestion { words, evidence, category });
        }
        found.push(conversation);
    }
    if found.iter().all(|one| one.questions.is_empty()) {
        return Err("it has no question with evidence among its turns".to_owned());
    }
    Ok(found)
}

/// Recall of evidence, summed over questions.
#[derive(Clone, Copy, Debug, Default)]
struct EvidenceRecall {
    questions: f64,
    among: [f64; 2],
}

impl EvidenceRecall {
    fn add(&mut self, found: [f64; 2]) {
        self.questions += 1.0;
        for (sum, part) in self.among.iter_mut().zip(found) {
            *sum += part;
        }
    }

    fn recall(&self, at: usize) -> f64 {
        self.among.get(at).map_or(0.0, |sum| sum / self.questions.max(1.0))
    }
}

/// Reads a file of conversations, or all `.json` files of a folder, by name.
fn read_files(path: &Path) -> Result<Vec<BenchConversation>, String> {
    if !path.is_dir() {
        return read_conversations(&measure::read(path)?).map_err(|why| format!("{why}: {}", path.display()));
    }
    let entries = std::fs::read_dir(path).map_err(|error| format!("{} can't be read: {error}", path.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    if files.is_empty() {
        return Err(format!("{} has no .json file with conversations", path.display()));
    }
    let mut all = Vec::new();
    for file in files {
        all.extend(read_files(&file)?);
    }
    Ok(all)
}

/// Measures recall on a file or a folder of conversations.
///
/// Each conversation is a separate memory and each turn an experience. A question is searched as a run searches for
/// experiences relevant to its goal.
pub(super) fn measure(report: &mut BenchReport, path: &Path) -> Result<(), String> {
    let all = read_files(path)?;
    let mut ways: BTreeMap<&str, EvidenceRecall> = BTreeMap::new();
    let mut categories: BTreeMap<u64, EvidenceRecall> = BTreeMap::new();
    let mut took = Vec::new();
    for conversation in &all {
        measure_questions(conversation, &mut ways, &mut categories, &mut took)?;
    }
    let count = |of: fn(&BenchConversation) -> usize| all.iter().map(of).sum::<usize>() as f64;
    report.add_figure("conversations", all.len() as f64, "", Aim::None);
    report.add_figure("turns of conversations, an experience each", count(|one| one.turns.len()), "", Aim::None);
    report.add_figure("questions with evidence", count(|one| one.questions.len()), "", Aim::None);
    report.add_figure("questions without, left out", count(|one| one.bare), "", Aim::None);
    for (way, sum) in &ways {
        for (at, among) in RECALL_CUTOFFS.iter().enumerate() {
            report.add_figure(format!("evidence recall@{among} by {way}"), sum.recall(at), "", Aim::None);
        }
    }
    for (category, sum) in &categories {
        let name = format!("evidence recall@10 by both, category {category}");
        report.add_figure(name, sum.recall(1), "", Aim::None);
    }
    report.add_percentiles("what bears on a question, found", &mut took, "ms", Aim::None);
    Ok(())
}

fn measure_questions(
    conversation: &BenchConversation,
    ways: &mut BTreeMap<&'static str, EvidenceRecall>,
    categories: &mut BTreeMap<u64, EvidenceRecall>,
    took: &mut Vec<f64>,
) -> Result<(), String> {
    if conversation.questions.is_empty() {
        return Ok(());
    }
    let scratch = ScratchFolder::new("conversations")?;
    let id = |(session, turn): (u64, u64)| format!("exp_{session}_{turn}");
    let entries = conversation.turns.iter().map(|turn| {
        let one = Experience {
            experience_id: id(turn.id),
            project_name: conversation.name.clone(),
            primary_goal: turn.words.clone(),
            source: turn.session.clone(),
            author: "user".to_owned(),
            ..Experience::default()
        };
        one.to_markdown()
    });
    let text = format!("{EXPERIENCE_LOG_HEADING}{}", entries.collect::<Vec<String>>().join("\n"));
    scratch.write(&format!("N/{}/{EXPERIENCE_LOG_FILE}", memory::MEMORY_FOLDER), text.as_bytes())?;
    let root = scratch.folder().join("N");
    let mut driver = open_workspace(&scratch)?;
    open_volume(&mut driver, &root)?;
    drive_until(&mut driver, "all is on disk", Session::is_saved)?;
    let search = driver.search().clone();
    search.wait_until_indexed(BENCH_TIMEOUT).map_err(|why| why.to_string())?;
    search.wait_until_embedded(BENCH_TIMEOUT).map_err(|why| why.to_string())?;
    let known: ProjectMemory = read_project_memory(&root, &memory_folders(&root));
    let kept = known.entries.len();
    if kept != conversation.turns.len() {
        let (name, turns) = (&conversation.name, conversation.turns.len());
        return Err(format!("of the {turns} turns of {name} {kept} can be read again"));
    }
    for question in &conversation.questions {
        for (way, mode) in SEARCH_MODES {
            let begun = Instant::now();
            let found = nearest_experiences(&search, &known, &question.words, mode);
            let time = super::to_ms(begun.elapsed());
            let share = RECALL_CUTOFFS.map(|among| {
                let first: BTreeSet<&str> = found.iter().take(among).map(|near| near.id.as_str()).collect();
                let hits = question.evidence.iter().filter(|turn| first.contains(id(**turn).as_str())).count();
                hits as f64 / question.evidence.len() as f64
            });
            ways.entry(way).or_default().add(share);
            if mode == SearchMode::Both {
                categories.entry(question.category).or_default().add(share);
                took.push(time);
            }
        }
    }
    driver.close().map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_read_as_people_have_written_it() {
        assert_eq!(parse_evidence("D1:3"), [(1, 3)]);
        assert_eq!(parse_evidence("D8:6; D9:17"), [(8, 6), (9, 17)]);
        assert_eq!(parse_evidence("D:11:26 D30:05"), [(11, 26), (30, 5)]);
        for odd in ["", "D", "D1", "1:3", "Dx:y", "D1:"] {
            assert!(parse_evidence(odd).is_empty(), "{odd}");
        }
    }

    #[test]
    fn what_is_no_conversation_is_refused() {
        for (text, why) in [
            ("x", "valid JSON"),
            ("{}", "no array"),
            ("[{}]", "has no “conversation”"),
            (r#"[{"conversation": {"session_1": [{"text": "a"}]}}]"#, "no “dia_id”"),
            (r#"[{"conversation": {"session_1": [{"dia_id": "D1:1", "text": "a"}]}, "qa": []}]"#, "no question"),
            (r#"[{"conversation": {}, "qa": [{"question": "x", "evidence": ["D1:1"]}]}]"#, "no question"),
        ] {
            let refused = read_conversations(text.as_bytes()).expect_err(text);
            assert!(refused.contains(why), "{refused}");
        }
        let one = r#"[{"sample_id": "c", "conversation": {"speaker_a": "Ann", "session_2_date_time": "May",
            "session_2": [{"dia_id": "D2:1", "speaker": "Ann", "text": "Look", "blip_caption": "a boat"}]},
            "qa": [{"question": "What?", "evidence": ["D2:1"], "category": 4},
                {"question": "Who?", "evidence": []}]}]"#;
        let read = read_conversations(one.as_bytes()).expect("it is one");
        assert_eq!((read[0].turns[0].words.as_str(), read[0].bare), ("Ann: Look (shows a boat)", 1));
        assert_eq!(read[0].turns[0].session, "session_2, May");
        assert_eq!(read[0].questions[0].category, 4);
    }
}
