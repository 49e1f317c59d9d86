//! Benchmark of memory quality on the conversations of BFCL v4 (PyPI `bfcl-eval`).
//!
//! It measures what the admission gate keeps of a log of 500 entries with repeats and noise, and how well earlier
//! statements are found for a question.

use super::replay::paraphrase_goal;
use super::report::{BenchReport, FigureGoal as Aim, percentile};
use super::{BENCH_TIMEOUT, drive_until, open_volume, open_workspace};
use agent::memory;
use agent::memory::ProjectMemory;
use agent::memory::experience::{self, EXPERIENCE_LOG_FILE, EXPERIENCE_LOG_HEADING, Experience, RunOutcome};
use engine::Session;
use host::agents::project_memory::{memory_folders, nearest_experiences, read_project_memory};
use host::search::SearchMode;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;
use support::measure::{self, ScratchFolder};

/// Number of entries presented to the gate.
const LOG_ENTRIES: usize = 500;
/// Maximum percentage of kept entries that are repeats or have no source.
const MAX_REPEAT_PERCENT: f64 = 5.0;
/// Data folder in the wheel.
const BFCL_DATA_FOLDER: &str = "bfcl_eval/data";

/// Messages to an agent that aren't work.
const CHATTER_MESSAGES: [&str; 8] = ["ok", "thanks!", "yes", "hm, no", "go on", "?", "do it", "and now"];

pub(super) fn measure(report: &mut BenchReport, corpus: &Path) -> Result<(), String> {
    measure_admission(report, &corpus.join(BFCL_DATA_FOLDER))?;
    measure_recall(report, &corpus.join(BFCL_DATA_FOLDER))
}

fn read_json_lines(path: &Path) -> Result<Vec<Value>, String> {
    let text = String::from_utf8(measure::read(path)?).map_err(|_| format!("not UTF-8 text: {}", path.display()))?;
    let one = |line: &str| {
        serde_json::from_str(line).map_err(|error| format!("a line is no JSON ({error}): {}", path.display()))
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(one).collect()
}

/// Returns the user's messages in a conversation, in order.
fn user_messages(conversation: &Value) -> Vec<String> {
    let turns = conversation["question"].as_array().into_iter().flatten();
    let messages = turns.flat_map(|turn| turn.as_array().into_iter().flatten());
    messages.filter(|one| one["role"] == "user").filter_map(|one| Some(one["content"].as_str()?.to_owned())).collect()
}

/// Returns a deterministic pseudorandom number, for a shuffled order.
fn scramble(at: usize) -> u64 {
    let mut state = (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(0x5851_F42D_4C95_7F2D);
    state ^= state >> 31;
    state.wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// An entry presented to the gate, and the index of its work; `None` for noise.
struct GateEntry {
    work: Option<usize>,
    experience: Experience,
}

/// Builds the log: distinct works, done once or repeatedly, in the same or other words, successful or not. It also has
/// chatter and entries without a source.
fn build_log(works: &[String]) -> Vec<GateEntry> {
    let mut fed: Vec<(u64, GateEntry)> = Vec::new();
    for number in 0..LOG_ENTRIES {
        let entry = |goal: String, source: &str| Experience {
            experience_id: format!("exp_{number:04}"),
            project_name: "bench".to_owned(),
            primary_goal: goal,
            learnings_or_issues: format!("read_file, write_file did it, in {} model calls.", 1 + number % 7),
            source: source.to_owned(),
            author: "assistant".to_owned(),
            final_outcome: if number % 11 == 5 { RunOutcome::Failure } else { RunOutcome::Success },
            ..Experience::default()
        };
        let run = format!("run {number:032x}");
        let chosen = scramble(number) as usize % works.len().max(1);
        let goal = works.get(chosen).cloned().unwrap_or_default();
        let one = match number % 25 {
            // One in 25 is chatter, and one has no source.
            0 => GateEntry {
                work: None,
                experience: entry(CHATTER_MESSAGES[number / 25 % CHATTER_MESSAGES.len()].to_owned(), &run),
            },
            1 => GateEntry { work: Some(chosen), experience: entry(goal, "") },
            // Nine of 25 are paraphrased.
            kind @ 2..=10 => {
                let forms = paraphrase_goal(&goal);
                let form = forms.get(kind % forms.len().max(1)).cloned().unwrap_or(goal);
                GateEntry { work: Some(chosen), experience: entry(form, &run) }
            }
            _ => GateEntry { work: Some(chosen), experience: entry(goal, &run) },
        };
        fed.push((scramble(number + LOG_ENTRIES), one));
    }
    fed.sort_by_key(|(order, _)| *order);
    fed.into_iter().map(|(_, one)| one).collect()
}

/// Measures what the gate keeps of the log.
fn measure_admission(report: &mut BenchReport, data: &Path) -> Result<(), String> {
    let tasks = read_json_lines(&data.join("BFCL_v4_multi_turn_base.json"))?;
    let works: Vec<String> = tasks.iter().filter_map(|task| user_messages(task).into_iter().next()).collect();
    let fed = build_log(&works);
    let of: BTreeMap<String, Option<usize>> =
        fed.iter().map(|one| (one.experience.experience_id.clone(), one.work)).collect();
    let goals: BTreeSet<usize> =
        fed.iter().filter(|one| !one.experience.source.is_empty()).filter_map(|one| one.work).collect();
    let (mut text, mut refused, mut took) = (String::new(), 0_u32, Vec::new());
    let count = fed.len();
    for GateEntry { experience, .. } in fed {
        let begun = Instant::now();
        match experience::with_experience(&text, experience.with_limits(0)) {
            Some(new) => text = new,
            None => refused += 1,
        }
        took.push(super::to_ms(begun.elapsed()));
    }
    let kept = experience::parse_entries(EXPERIENCE_LOG_FILE, &text, &mut Vec::new());
    let mut seen: BTreeSet<usize> = BTreeSet::new();
    let (mut repeats, mut noise, mut bare, mut superseded) = (0_u32, 0_u32, 0_u32, 0_u32);
    for entry in &kept {
        let one = &entry.experience;
        bare += u32::from(one.source.trim().is_empty());
        if !one.superseded_by.is_empty() {
            // Kept on purpose, with a link to the entry that contradicts it.
            superseded += 1;
            continue;
        }
        match of.get(&one.experience_id).copied().flatten() {
            Some(work) => repeats += u32::from(!seen.insert(work)),
            None => noise += 1,
        }
    }
    let share = |part: u32| f64::from(part) / (kept.len().max(1) as f64) * 100.0;
    report.add_figure("entries at the gate", count as f64, "", Aim::None);
    report.add_figure("works among them", goals.len() as f64, "", Aim::None);
    report.add_figure("refused", f64::from(refused), "", Aim::None);
    report.add_figure("kept", kept.len() as f64, "", Aim::None);
    report.add_figure("kept and superseded, with a link", f64::from(superseded), "", Aim::None);
    report.add_figure(
        "of what is kept, repeats or without source",
        share(repeats + bare),
        "%",
        Aim::Under(MAX_REPEAT_PERCENT),
    );
    report.add_figure("of what is kept, without source", share(bare), "%", Aim::Zero);
    report.add_figure("of what is kept, noise", share(noise), "%", Aim::None);
    report.add_figure("works that were taken for others", (goals.len() - seen.len()) as f64, "", Aim::None);
    report.add_figure("an entry through the gate p99", percentile(&mut took, 99), "ms", Aim::None);
    Ok(())
}

/// Splits a text into lowercase words without punctuation.
fn plain_words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Returns the turns that a question's source quotes: those that contain one of its pieces, otherwise the one with most
/// of its words.
fn evidence_turns(source: &str, turns: &[(usize, Vec<String>)]) -> BTreeSet<usize> {
    let pieces = source.replace(['…', '\n'], "...");
    let pieces: Vec<Vec<String>> = pieces.split("...").map(plain_words).filter(|piece| piece.len() >= 3).collect();
    let has = |turn: &[String], piece: &Vec<String>| turn.windows(piece.len()).any(|words| words == piece.as_slice());
    let found: BTreeSet<usize> = turns
        .iter()
        .filter(|(_, turn)| pieces.iter().any(|piece| has(turn, piece)))
        .map(|(number, _)| *number)
        .collect();
    if !found.is_empty() {
        return found;
    }
    let words: BTreeSet<String> = plain_words(source).into_iter().collect();
    let shared = |turn: &[String]| words.iter().filter(|word| turn.contains(word)).count();
    let best = turns.iter().max_by_key(|(_, turn)| shared(turn));
    let whole = |(_, turn): &&(usize, Vec<String>)| shared(turn) * 20 >= words.len() * 19;
    best.filter(whole).map(|(number, _)| *number).into_iter().collect()
}

/// Measures how much of the evidence is among the ten experiences found for a question: by words, by meaning and by
/// both, as a run gets them.
fn measure_recall(report: &mut BenchReport, data: &Path) -> Result<(), String> {
    let scratch = ScratchFolder::new("memory")?;
    let mut turns: BTreeMap<String, Vec<(usize, Vec<String>)>> = BTreeMap::new();
    let mut number = 0;
    for name in ["customer", "finance", "healthcare", "notetaker", "student"] {
        let mut entries = Vec::new();
        for conversation in read_json_lines(&data.join(format!("memory_prereq_conversation/memory_{name}.json")))? {
            for turn in user_messages(&conversation) {
                turns.entry(name.to_owned()).or_default().push((number, plain_words(&turn)));
                let one = Experience {
                    experience_id: format!("exp_{number}"),
                    project_name: name.to_owned(),
                    primary_goal: turn,
                    source: format!("session {}", conversation["id"].as_str().unwrap_or_default()),
                    author: "user".to_owned(),
                    ..Experience::default()
                };
                entries.push(one.to_markdown());
                number += 1;
            }
        }
        let text = format!("{EXPERIENCE_LOG_HEADING}{}", entries.join("\n"));
        let path = format!("N/{}/{name}/{}/{EXPERIENCE_LOG_FILE}", memory::PROJECTS_FOLDER, memory::MEMORY_FOLDER);
        scratch.write(&path, text.as_bytes())?;
    }
    let questions = read_json_lines(&data.join("BFCL_v4_memory.json"))?;
    let answers = read_json_lines(&data.join("possible_answer/BFCL_v4_memory.json"))?;
    let root = scratch.folder().join("N");
    let mut driver = open_workspace(&scratch)?;
    open_volume(&mut driver, &root)?;
    drive_until(&mut driver, "all is on disk", Session::is_saved)?;
    let search = driver.search().clone();
    search.wait_until_indexed(BENCH_TIMEOUT).map_err(|why| why.to_string())?;
    search.wait_until_embedded(BENCH_TIMEOUT).map_err(|why| why.to_string())?;
    // All five conversations are searched at once, so that other people's statements interfere.
    let known: ProjectMemory = read_project_memory(&root, &memory_folders(&root));
    let (mut asked, mut took) = (0_u32, Vec::new());
    let mut sums: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for question in &questions {
        let (id, scenario) = (&question["id"], question["scenario"].as_str().unwrap_or_default());
        let Some(answer) = answers.iter().find(|answer| answer["id"] == *id) else { continue };
        let source = match &answer["source"] {
            Value::Array(pieces) => pieces.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("..."),
            other => other.as_str().unwrap_or_default().to_owned(),
        };
        let wanted = evidence_turns(&source, turns.get(scenario).map(Vec::as_slice).unwrap_or_default());
        let Some(text) = user_messages(question).into_iter().next().filter(|_| !wanted.is_empty()) else { continue };
        asked += 1;
        let modes = [("words", SearchMode::Words), ("meaning", SearchMode::Meaning), ("both", SearchMode::Both)];
        for (name, mode) in modes {
            let begun = Instant::now();
            let found = nearest_experiences(&search, &known, &text, mode);
            if mode == SearchMode::Both {
                took.push(super::to_ms(begun.elapsed()));
            }
            let among = |count: usize| {
                let first: BTreeSet<&str> = found.iter().take(count).map(|near| near.id.as_str()).collect();
                let hits = wanted.iter().filter(|number| first.contains(format!("exp_{number}").as_str())).count();
                hits as f64 / wanted.len() as f64
            };
            let sum = sums.entry(name).or_default();
            sum[0] += among(5);
            sum[1] += among(10);
        }
    }
    driver.close().map_err(|why| why.to_string())?;
    report.add_figure("turns of conversations, an experience each", number as f64, "", Aim::None);
    report.add_figure("questions with evidence", f64::from(asked), "", Aim::None);
    for (name, [five, ten]) in sums {
        report.add_figure(format!("evidence recall@5 by {name}"), five / f64::from(asked.max(1)), "", Aim::None);
        report.add_figure(format!("evidence recall@10 by {name}"), ten / f64::from(asked.max(1)), "", Aim::None);
    }
    report.add_percentiles("what bears on a question, found", &mut took, "ms", Aim::None);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_found_by_its_quote() {
        let turn = |number, text: &str| (number, plain_words(text));
        let turns = [turn(1, "My name is Michael, and I am new."), turn(2, "I'm 35 years old, live in Seattle.")];
        assert_eq!(evidence_turns("...35 years old, live in Seattle...", &turns), BTreeSet::from([2]));
        assert_eq!(
            evidence_turns("new, my name: Michael", &turns),
            BTreeSet::from([1]),
            "all its words, in another order"
        );
        assert!(evidence_turns("nobody said this at all", &turns).is_empty());
    }

    #[test]
    fn a_log_with_repeats_and_noise_passes_the_gate() {
        let words = ["report", "garden", "signal", "letter", "budget", "ticket", "tyre", "archive", "stock", "order"];
        let works: Vec<String> = (0..60)
            .map(|number| {
                let (one, other) = (words[number % 10], words[(number / 10 + 3) % 10]);
                format!(
                    "Create the {one} for the {other} of house {number}, then delete the draft in directory {one}s."
                )
            })
            .collect();
        let fed = build_log(&works);
        assert_eq!(fed.len(), LOG_ENTRIES);
        assert!(fed.iter().filter(|one| one.work.is_none()).count() >= 20);
        assert!(fed.iter().filter(|one| one.experience.source.is_empty()).count() >= 20);
        let again: Vec<String> = build_log(&works).into_iter().map(|one| one.experience.experience_id).collect();
        let ids: Vec<String> = fed.into_iter().map(|one| one.experience.experience_id).collect();
        assert_eq!(ids, again, "the same each time");
    }
}
