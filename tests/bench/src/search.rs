//! Benchmark of search speed on notes with realistic length and word frequencies.
//!
//! It measures searches by words, by phrases, while typing, with filters and by meaning, and the cost of an edit and a
//! restart. SQLite's full-text search and plain numpy are measured for comparison.

use super::report::{BenchReport, FigureGoal, percentile};
use super::text_fixtures::FixtureRng;
use super::{drive_until, open_volume, open_workspace, to_ms};
use engine::{Command, Session};
use host::search::{self, RankingWeights, SearchMode, SearchRequest, SearchService};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use support::measure::{self, ScratchFolder};

/// Maximum time to embed very many notes.
const NOTES_EMBEDDING_TIMEOUT: Duration = Duration::from_secs(7_200);
/// With more notes than this, the embedding model isn't used, because it would take hours.
const MAX_NOTES_FOR_MODEL: usize = 10_000;
/// Number of questions of each kind.
const QUESTIONS_PER_KIND: usize = 200;
/// Number of hits that a window shows.
const HITS_PER_QUESTION: usize = 20;
/// Number of passages of 1,000 bytes that the embedding model reads if a stand-in makes the vectors.
const MODEL_PASSAGES: usize = 200;
/// Number of questions for which exact and approximate nearest passages are compared.
const SIEVE_QUESTIONS: usize = 100;
/// Variable with the path of a Python that has numpy, for the peers; `python3` if it isn't set.
const PEER_PYTHON_VAR: &str = "TRACEBOOK_PYTHON";
/// Script of the peers.
const PEER_SCRIPT: &str = include_str!("peers.py");

/// Runs all benchmarks of search over `count` notes.
pub(super) fn measure(report: &mut BenchReport, count: usize) -> Result<(), String> {
    let scratch = ScratchFolder::new("search")?;
    let words = search::vocabulary_words();
    let notes = write_notes(&scratch, "N", count)?;
    scratch.sync_to_disk();
    report.add_figure("notes", count as f64, "", FigureGoal::None);
    let bytes: usize = notes.iter().map(String::len).sum();
    report.add_figure("text", bytes as f64 / 1e6, "MB", FigureGoal::None);

    let mut driver = open_workspace(&scratch)?;
    let stands_in = use_stand_in_model(report, &mut driver, count)?;
    let begun = Instant::now();
    open_volume(&mut driver, &scratch.folder().join("N"))?;
    drive_until(&mut driver, "all is on disk", Session::is_saved)?;
    report.add_figure("import", begun.elapsed().as_secs_f64(), "s", FigureGoal::None);
    let (begun, cpu) = (Instant::now(), measure::process_cpu());
    let search = driver.search().clone();
    search.wait_until_indexed(NOTES_EMBEDDING_TIMEOUT).map_err(|why| why.to_string())?;
    report.add_figure("index by words, after the import", begun.elapsed().as_secs_f64(), "s", FigureGoal::None);
    let cpu = measure::process_cpu().saturating_sub(cpu);
    report.add_figure("index by words, CPU of all threads", cpu.as_secs_f64(), "s", FigureGoal::None);
    let counts = search.counts().map_err(|why| why.to_string())?;
    report.add_figure("index by words, on disk", counts.bytes as f64 / 1e6, "MB", FigureGoal::None);
    report_memory(report, "with words");

    let questions = SearchQuestions::new(&notes, &words);
    let by_words = |report: &mut BenchReport, name: &str, asked: &[String], typing: bool, goal: FigureGoal| {
        time_questions(report, name, &search, asked, SearchMode::Words, typing, goal).map(drop)
    };
    by_words(report, "word", &questions.words, false, FigureGoal::None)?;
    by_words(report, "three words", &questions.three, false, FigureGoal::None)?;
    by_words(report, "phrase", &questions.phrases, false, FigureGoal::None)?;
    by_words(report, "as you type", &questions.typed, true, FigureGoal::Under(10.0))?;
    by_words(report, "word with a filter", &questions.filtered, false, FigureGoal::None)?;

    let (begun, cpu) = (Instant::now(), measure::process_cpu());
    if !stands_in {
        eprintln!("embedding: some 20 ms for each of {} passages", counts.meanings);
    }
    search.wait_until_embedded(NOTES_EMBEDDING_TIMEOUT).map_err(|why| why.to_string())?;
    let cpu = measure::process_cpu().saturating_sub(cpu).as_secs_f64();
    let counts = search.counts().map_err(|why| why.to_string())?;
    report.add_figure("meanings, wall", begun.elapsed().as_secs_f64(), "s", FigureGoal::None);
    let rate = counts.meanings as f64 / cpu.max(1e-9);
    report.add_figure("vectors", counts.meanings as f64, "", FigureGoal::None);
    let whose = if stands_in { " by the stand-in" } else { "" };
    report.add_figure(format!("meanings{whose}, passages a second of one core"), rate, "", FigureGoal::None);
    report.add_figure("index with meanings, on disk", counts.bytes as f64 / 1e6, "MB", FigureGoal::None);
    report_memory(report, "with meanings");
    let begun = Instant::now();
    search
        .search_blocking(SearchRequest {
            text: questions.three[0].clone(),
            limit: HITS_PER_QUESTION,
            ..SearchRequest::default()
        })
        .map_err(|why| why.to_string())?;
    report.add_figure("first question by meaning", to_ms(begun.elapsed()), "ms", FigureGoal::None);
    let mut hybrid =
        time_questions(report, "hybrid", &search, &questions.three, SearchMode::Both, false, FigureGoal::Under(20.0))?;
    if stands_in {
        measure_model(report, &questions.three, &notes, &mut hybrid)?;
    }
    measure_sieve(report, &search, &questions.three)?;
    measure_edit(report, &mut driver, &search)?;
    driver.close().map_err(|why| why.to_string())?;
    let begun = Instant::now();
    let driver = open_workspace(&scratch)?;
    driver
        .search()
        .search_blocking(SearchRequest {
            text: questions.words[0].clone(),
            limit: HITS_PER_QUESTION,
            ..SearchRequest::default()
        })
        .map_err(|why| why.to_string())?;
    report.add_figure("restart until the first answer", to_ms(begun.elapsed()), "ms", FigureGoal::None);
    driver.close().map_err(|why| why.to_string())?;
    measure_peers(report, &scratch, counts.meanings, &questions)
}

/// Writes a number of notes into a folder and returns their texts.
pub(super) fn write_notes(scratch: &ScratchFolder, folder: &str, count: usize) -> Result<Vec<String>, String> {
    let words = search::vocabulary_words();
    let mut notes = Vec::with_capacity(count);
    for number in 0..count {
        let text = note_text(number, &words);
        scratch.write(&format!("{folder}/{}", note_path(number)), text.as_bytes())?;
        notes.push(text);
    }
    Ok(notes)
}

/// Uses a stand-in for the embedding model if there are very many notes. Returns whether it's used.
pub(super) fn use_stand_in_model(
    report: &mut BenchReport,
    driver: &mut host::Driver,
    count: usize,
) -> Result<bool, String> {
    if count <= MAX_NOTES_FOR_MODEL {
        return Ok(false);
    }
    let mut settings = driver.session().settings().clone();
    settings.embedder = measure::start_stub_embedder()?;
    driver.run_command(Command::Set { settings: Box::new(settings) }).map_err(|reject| reject.0)?;
    report.leave_out(
        "the embedded model",
        format!("more than {MAX_NOTES_FOR_MODEL} notes: a stand-in makes their vectors"),
    );
    Ok(true)
}

/// Measures the embedding model separately if a stand-in made the vectors, by embedding the questions.
///
/// `took` holds the milliseconds that each question took without it.
fn measure_model(report: &mut BenchReport, asked: &[String], notes: &[String], took: &mut [f64]) -> Result<(), String> {
    let before = measure::process_footprint(std::process::id()).map_or(0, |now| now.anonymous);
    let begun = Instant::now();
    let model = measure::EmbeddingProbe::load_model()?;
    model.embed(&asked[0])?;
    report.add_figure("embedded model, loaded and first question read", to_ms(begun.elapsed()), "ms", FigureGoal::None);
    let mut read = Vec::with_capacity(asked.len());
    for (text, took) in asked.iter().zip(took.iter_mut()) {
        let begun = Instant::now();
        model.embed(text)?;
        read.push(to_ms(begun.elapsed()));
        *took += to_ms(begun.elapsed());
    }
    report.add_figure("embedded model, a question read, p50", percentile(&mut read, 50), "ms", FigureGoal::None);
    report.add_figure("embedded model, a question read, p95", percentile(&mut read, 95), "ms", FigureGoal::None);
    report.add_figure("hybrid, read by the embedded model, p95", percentile(took, 95), "ms", FigureGoal::Under(20.0));
    let cpu = measure::process_cpu();
    for text in notes.iter().take(MODEL_PASSAGES) {
        model.embed(&text[..text.floor_char_boundary(1_000)])?;
    }
    let cpu = measure::process_cpu().saturating_sub(cpu).as_secs_f64();
    let rate = MODEL_PASSAGES.min(notes.len()) as f64 / cpu.max(1e-9);
    report.add_figure("embedded model, passages of 1,000 bytes a second of one core", rate, "", FigureGoal::None);
    if let Some(now) = measure::process_footprint(std::process::id()) {
        let more = now.anonymous.saturating_sub(before) as f64 / 1e6;
        report.add_figure("embedded model, memory, anonymous", more, "MB", FigureGoal::None);
    }
    Ok(())
}

/// Measures how many of the nearest passages the prefilter by sign bits finds, and the time with and without it.
fn measure_sieve(report: &mut BenchReport, search: &SearchService, asked: &[String]) -> Result<(), String> {
    let nearest = |text: &String, compared: usize, took: &mut Vec<f64>| -> Result<Vec<store::DocId>, String> {
        let tuning = RankingWeights { exact_limit: compared, ..RankingWeights::default() };
        let ask = SearchRequest {
            text: text.clone(),
            limit: 10,
            mode: SearchMode::Meaning,
            tuning,
            ..SearchRequest::default()
        };
        let begun = Instant::now();
        let answer = search.search_blocking(ask).map_err(|why| why.to_string())?;
        took.push(to_ms(begun.elapsed()));
        Ok(answer.hits.iter().map(|hit| hit.note).collect())
    };
    let (mut found, mut all, mut exact_took, mut fast_took) = (0, 0, Vec::new(), Vec::new());
    for text in asked.iter().take(SIEVE_QUESTIONS) {
        let exact = nearest(text, usize::MAX, &mut exact_took)?;
        let fast = nearest(text, 0, &mut fast_took)?;
        all += exact.len();
        found += exact.iter().filter(|note| fast.contains(note)).count();
    }
    report.add_figure(
        "by meaning alone, all vectors compared, p95",
        percentile(&mut exact_took, 95),
        "ms",
        FigureGoal::None,
    );
    report.add_figure("by meaning alone, signs first, p95", percentile(&mut fast_took, 95), "ms", FigureGoal::None);
    report.add_figure("of the ten nearest, found by their signs first", fraction(found, all), "%", FigureGoal::None);
    Ok(())
}

fn fraction(part: usize, all: usize) -> f64 {
    part as f64 / all.max(1) as f64 * 100.0
}

fn report_memory(report: &mut BenchReport, when: &str) {
    if let Some(now) = measure::process_footprint(std::process::id()) {
        report.add_figure(format!("memory {when}, anonymous"), now.anonymous as f64 / 1e6, "MB", FigureGoal::None);
    }
}

/// Runs questions one after another. Returns the milliseconds of each; the goal applies to the 95th percentile.
fn time_questions(
    report: &mut BenchReport,
    name: &str,
    search: &SearchService,
    asked: &[String],
    mode: SearchMode,
    typing: bool,
    goal: FigureGoal,
) -> Result<Vec<f64>, String> {
    let mut took = Vec::with_capacity(asked.len());
    let mut found = 0;
    for text in asked {
        let begun = Instant::now();
        let answer = search
            .search_blocking(SearchRequest {
                text: text.clone(),
                limit: HITS_PER_QUESTION,
                mode,
                typing,
                ..SearchRequest::default()
            })
            .map_err(|why| why.to_string())?;
        took.push(to_ms(begun.elapsed()));
        found += usize::from(!answer.hits.is_empty());
    }
    if found * 2 < asked.len() {
        report.add_error(format!("{name}: only {found} of {} questions found anything", asked.len()));
    }
    let mut sorted = took.clone();
    report.add_figure(format!("{name}, p50"), percentile(&mut sorted, 50), "ms", FigureGoal::None);
    report.add_figure(format!("{name}, p95"), percentile(&mut sorted, 95), "ms", goal);
    report.add_figure(format!("{name}, p99"), percentile(&mut sorted, 99), "ms", FigureGoal::None);
    Ok(took)
}

/// Measures the time until text typed into a note is found.
fn measure_edit(report: &mut BenchReport, driver: &mut host::Driver, search: &SearchService) -> Result<(), String> {
    let note = driver.session().volumes().find_map(|volume| volume.files.values().next()).map(|row| row.id);
    let Some(note) = note else { return Err("there is no note".to_owned()) };
    driver.run_command(Command::OpenNote { note }).map_err(|reject| reject.0)?;
    drive_until(driver, "the note is readable", |session| session.note(note).is_some_and(engine::Note::is_settled))?;
    let begun = Instant::now();
    let insert = "Zyzzogeton ".to_owned();
    driver.run_command(Command::Edit { note, at: 0, delete: 0, insert }).map_err(|reject| reject.0)?;
    let ask =
        SearchRequest { text: "zyzzogeton".to_owned(), limit: 1, mode: SearchMode::Words, ..SearchRequest::default() };
    while search.search_blocking(ask.clone()).map_err(|why| why.to_string())?.hits.is_empty() {
        if begun.elapsed() > Duration::from_secs(60) {
            report.add_error("an edit is not found after a minute");
            return Ok(());
        }
        driver.wait(Duration::from_millis(5));
    }
    report.add_figure("edit until it is found", to_ms(begun.elapsed()), "ms", FigureGoal::Under(2_000.0));
    drive_until(driver, "all is on disk", Session::is_saved)
}

/// Measures SQLite FTS5 over the same notes and numpy over as many vectors, with this machine's Python.
fn measure_peers(
    report: &mut BenchReport,
    scratch: &ScratchFolder,
    count: usize,
    questions: &SearchQuestions,
) -> Result<(), String> {
    let asked = json!({
        "folder": scratch.folder().join("N"), "count": count, "limit": HITS_PER_QUESTION, "dimensions": 384,
        "word": questions.words, "three": questions.three, "phrase": questions.phrases, "typed": questions.typed,
    });
    scratch.write("peers.json", asked.to_string().as_bytes())?;
    let python = std::env::var_os(PEER_PYTHON_VAR).unwrap_or_else(|| "python3".into());
    let ran = std::process::Command::new(&python)
        .arg("-c")
        .arg(PEER_SCRIPT)
        .arg(scratch.folder().join("peers.json"))
        // Python imports modules from its working directory.
        .current_dir(scratch.folder())
        .stderr(std::process::Stdio::inherit())
        .output();
    let output = match ran {
        Ok(output) if output.status.success() => output,
        Ok(output) => {
            report.leave_out("SQLite FTS5, numpy", format!("{} ended with {}", python.display(), output.status));
            return Ok(());
        }
        Err(error) => {
            report.leave_out("SQLite FTS5, numpy", format!("{} cannot be run here ({error})", python.display()));
            return Ok(());
        }
    };
    let said: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("peers.py: {error}"))?;
    for figure in said.as_array().into_iter().flatten() {
        match (figure[0].as_str(), figure[1].as_f64(), figure[2].as_str()) {
            (Some(name), Some(value), Some("s")) => report.add_figure(name, value, "s", FigureGoal::None),
            (Some(name), Some(value), Some("MB")) => report.add_figure(name, value, "MB", FigureGoal::None),
            (Some(name), Some(value), _) => report.add_figure(name, value, "ms", FigureGoal::None),
            (Some(name), None, Some(why)) => report.leave_out(name, why),
            _ => {}
        }
    }
    Ok(())
}

/// The questions of each kind.
struct SearchQuestions {
    words: Vec<String>,
    three: Vec<String>,
    phrases: Vec<String>,
    typed: Vec<String>,
    filtered: Vec<String>,
}

impl SearchQuestions {
    fn new(notes: &[String], words: &[&str]) -> SearchQuestions {
        let mut chance = FixtureRng::new(77);
        let mut all = SearchQuestions {
            words: Vec::new(),
            three: Vec::new(),
            phrases: Vec::new(),
            typed: Vec::new(),
            filtered: Vec::new(),
        };
        for _ in 0..QUESTIONS_PER_KIND {
            let number = chance.below(notes.len());
            // Words of one note, so that the question has a hit.
            let of_note: Vec<&str> = notes[number]
                .lines()
                .skip(6)
                .flat_map(str::split_whitespace)
                .map(|word| word.trim_end_matches(['.', ',']))
                .filter(|word| word.len() > 3)
                .collect();
            let at = chance.below(of_note.len().saturating_sub(3));
            let word = of_note.get(at).copied().unwrap_or("word").to_lowercase();
            all.words.push(word.clone());
            let three: Vec<&str> = (0..3).map(|_| of_note[chance.below(of_note.len())]).collect();
            all.three.push(three.join(" ").to_lowercase());
            let line = notes[number].lines().skip(6).find(|line| line.len() > 40).unwrap_or_default();
            let pair: Vec<&str> = line.split_whitespace().skip(2).take(2).collect();
            all.phrases.push(format!("\"{}\"", pair.join(" ").trim_end_matches(['.', ',']).to_lowercase()));
            let typed = words[300 + chance.below(5_000.min(words.len() - 300))];
            all.typed.push(typed.chars().take(3 + chance.below(3)).collect());
            all.filtered.push(format!("{word} tag:topic-{:03}", number % 100));
        }
        all
    }
}

pub(super) fn note_path(number: usize) -> String {
    format!("Topic {:03}/Note {number:06}.md", number % 100)
}

/// Returns a note of one to three hundred words.
///
/// The sentence model's vocabulary lists whole words by frequency, and a word's frequency here follows its rank (Zipf).
/// A few hundred words therefore make up half of a text.
fn note_text(number: usize, words: &[&str]) -> String {
    let mut chance = FixtureRng::new(number as u64 + 1);
    let mut word = || {
        let place = chance.below(1 << 20) as f64 / f64::from(1 << 20);
        let rank = (words.len() as f64).powf(place) as usize;
        words[rank.saturating_sub(1).min(words.len() - 1)]
    };
    let title: Vec<&str> = (0..3).map(|_| word()).collect();
    let mut text = format!("---\ntags: [topic-{:03}]\n---\n\n# {}\n\n", number % 100, title.join(" "));
    for _ in 0..2 + number % 4 {
        for _ in 0..3 + number % 3 {
            let sentence: Vec<&str> = (0..10 + number % 7).map(|_| word()).collect();
            text.push_str(&sentence.join(" "));
            text.push_str(". ");
        }
        text.push_str("\n\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_as_long_as_real_ones_and_questions_are_about_them() {
        let words = search::vocabulary_words();
        assert!(words.len() > 15_000 && words.contains(&"river"), "{}", words.len());
        let notes: Vec<String> = (0..50).map(|number| note_text(number, &words)).collect();
        let count: usize = notes.iter().map(|note| note.split_whitespace().count()).sum();
        assert!((80..300).contains(&(count / notes.len())), "{count}");
        let questions = SearchQuestions::new(&notes, &words);
        assert!(questions.words.iter().all(|word| notes.iter().any(|note| note.contains(word.as_str()))));
    }
}
