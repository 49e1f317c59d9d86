//! How fast search is: notes of words as long and as frequent as real ones, asked by words, by phrases, while typing,
//! with filters and by meaning; what an edit and a restart cost; SQLite's full-text search and plain numpy beside it.

use super::prose::Chance;
use super::report::{Goal, Report, percentile};
use super::{ms, until, volume, workspace};
use engine::{Command, Session};
use host::measure::{self, ScratchFolder};
use host::search::{self, RankingWeights, SearchMode, SearchRequest, SearchService};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Meanings of very many notes take this long at most.
const PATIENCE: Duration = Duration::from_secs(7_200);
/// More notes than this the embedded model does not read here: it would take hours.
const READ: usize = 10_000;
/// Questions of each kind.
const ASKED: usize = 200;
/// Hits that a window shows.
const LIMIT: usize = 20;
/// Passages of 1,000 bytes that the embedded model reads where a stand-in makes the vectors.
const PASSAGES: usize = 200;
/// Questions of which the nearest passages are looked for in both ways.
const SIEVED: usize = 100;
/// The variable that names the Python of the peers, where it is not `python3`: one that has numpy.
const PYTHON: &str = "TRACEBOOK_PYTHON";
/// What the peers do, in the Python that is there.
const PEERS: &str = include_str!("peers.py");

/// All figures of search over this many notes.
pub(super) fn measure(report: &mut Report, count: usize) -> Result<(), String> {
    let scratch = ScratchFolder::new("search")?;
    let words = search::vocabulary();
    let notes = notes(&scratch, "N", count)?;
    scratch.settle();
    report.figure("notes", count as f64, "", Goal::None);
    let bytes: usize = notes.iter().map(String::len).sum();
    report.figure("text", bytes as f64 / 1e6, "MB", Goal::None);

    let mut driver = workspace(&scratch)?;
    let stands_in = stand_in(report, &mut driver, count)?;
    let begun = Instant::now();
    volume(&mut driver, &scratch.folder().join("N"))?;
    until(&mut driver, "all is on disk", Session::is_saved)?;
    report.figure("import", begun.elapsed().as_secs_f64(), "s", Goal::None);
    let (begun, cpu) = (Instant::now(), measure::process_cpu());
    let search = driver.search().clone();
    search.settle(PATIENCE)?;
    report.figure("index by words, after the import", begun.elapsed().as_secs_f64(), "s", Goal::None);
    let cpu = measure::process_cpu().saturating_sub(cpu);
    report.figure("index by words, CPU of all threads", cpu.as_secs_f64(), "s", Goal::None);
    let counts = search.counts()?;
    report.figure("index by words, on disk", counts.bytes as f64 / 1e6, "MB", Goal::None);
    memory(report, "with words");

    let questions = Questions::new(&notes, &words);
    let by_words = |report: &mut Report, name: &str, asked: &[String], typing: bool, goal: Goal| {
        time(report, name, &search, asked, SearchMode::Words, typing, goal).map(drop)
    };
    by_words(report, "word", &questions.words, false, Goal::None)?;
    by_words(report, "three words", &questions.three, false, Goal::None)?;
    by_words(report, "phrase", &questions.phrases, false, Goal::None)?;
    by_words(report, "as you type", &questions.typed, true, Goal::Under(10.0))?;
    by_words(report, "word with a filter", &questions.filtered, false, Goal::None)?;

    let (begun, cpu) = (Instant::now(), measure::process_cpu());
    if !stands_in {
        eprintln!("embedding: some 20 ms for each of {} passages", counts.meanings);
    }
    search.meanings(PATIENCE)?;
    let cpu = measure::process_cpu().saturating_sub(cpu).as_secs_f64();
    let counts = search.counts()?;
    report.figure("meanings, wall", begun.elapsed().as_secs_f64(), "s", Goal::None);
    let rate = counts.meanings as f64 / cpu.max(1e-9);
    report.figure("vectors", counts.meanings as f64, "", Goal::None);
    let whose = if stands_in { " by the stand-in" } else { "" };
    report.figure(format!("meanings{whose}, passages a second of one core"), rate, "", Goal::None);
    report.figure("index with meanings, on disk", counts.bytes as f64 / 1e6, "MB", Goal::None);
    memory(report, "with meanings");
    let begun = Instant::now();
    search.find(SearchRequest { text: questions.three[0].clone(), limit: LIMIT, ..SearchRequest::default() })?;
    report.figure("first question by meaning", ms(begun.elapsed()), "ms", Goal::None);
    let mut hybrid = time(report, "hybrid", &search, &questions.three, SearchMode::Both, false, Goal::Under(20.0))?;
    if stands_in {
        model(report, &questions.three, &notes, &mut hybrid)?;
    }
    sieve(report, &search, &questions.three)?;
    edit(report, &mut driver, &search)?;
    driver.close()?;
    let begun = Instant::now();
    let driver = workspace(&scratch)?;
    driver.search().find(SearchRequest {
        text: questions.words[0].clone(),
        limit: LIMIT,
        ..SearchRequest::default()
    })?;
    report.figure("restart until the first answer", ms(begun.elapsed()), "ms", Goal::None);
    driver.close()?;
    peers(report, &scratch, counts.meanings, &questions)
}

/// Writes so many notes into a folder; gives their texts.
pub(super) fn notes(scratch: &ScratchFolder, folder: &str, count: usize) -> Result<Vec<String>, String> {
    let words = search::vocabulary();
    let mut notes = Vec::with_capacity(count);
    for number in 0..count {
        let text = note(number, &words);
        scratch.write(&format!("{folder}/{}", path(number)), text.as_bytes())?;
        notes.push(text);
    }
    Ok(notes)
}

/// Has a stand-in make the vectors of very many notes. Whether it does.
pub(super) fn stand_in(report: &mut Report, driver: &mut host::Driver, count: usize) -> Result<bool, String> {
    if count <= READ {
        return Ok(false);
    }
    let mut settings = driver.session().settings().clone();
    settings.embedder = measure::stand_in()?;
    driver.command(Command::Set { settings: Box::new(settings) }).map_err(|reject| reject.0)?;
    report.leave_out("the embedded model", format!("more than {READ} notes: a stand-in makes their vectors"));
    Ok(true)
}

/// What the embedded model costs, where a stand-in made the vectors: questions it reads all the same. `took`: what
/// each of the questions took without it.
fn model(report: &mut Report, asked: &[String], notes: &[String], took: &mut [f64]) -> Result<(), String> {
    let before = measure::footprint(std::process::id()).map_or(0, |now| now.anonymous);
    let begun = Instant::now();
    let model = measure::EmbeddingProbe::load()?;
    model.read(&asked[0])?;
    report.figure("embedded model, loaded and first question read", ms(begun.elapsed()), "ms", Goal::None);
    let mut read = Vec::with_capacity(asked.len());
    for (text, took) in asked.iter().zip(took.iter_mut()) {
        let begun = Instant::now();
        model.read(text)?;
        read.push(ms(begun.elapsed()));
        *took += ms(begun.elapsed());
    }
    report.figure("embedded model, a question read, p50", percentile(&mut read, 50), "ms", Goal::None);
    report.figure("embedded model, a question read, p95", percentile(&mut read, 95), "ms", Goal::None);
    report.figure("hybrid, read by the embedded model, p95", percentile(took, 95), "ms", Goal::Under(20.0));
    let cpu = measure::process_cpu();
    for text in notes.iter().take(PASSAGES) {
        model.read(&text[..text.floor_char_boundary(1_000)])?;
    }
    let cpu = measure::process_cpu().saturating_sub(cpu).as_secs_f64();
    let rate = PASSAGES.min(notes.len()) as f64 / cpu.max(1e-9);
    report.figure("embedded model, passages of 1,000 bytes a second of one core", rate, "", Goal::None);
    if let Some(now) = measure::footprint(std::process::id()) {
        let more = now.anonymous.saturating_sub(before) as f64 / 1e6;
        report.figure("embedded model, memory, anonymous", more, "MB", Goal::None);
    }
    Ok(())
}

/// How much of what is nearest is found by looking at signs first, and what both ways cost.
fn sieve(report: &mut Report, search: &SearchService, asked: &[String]) -> Result<(), String> {
    let nearest = |text: &String, compared: usize, took: &mut Vec<f64>| -> Result<Vec<store::DocId>, String> {
        let tuning = RankingWeights { compared, ..RankingWeights::default() };
        let ask = SearchRequest {
            text: text.clone(),
            limit: 10,
            mode: SearchMode::Meaning,
            tuning,
            ..SearchRequest::default()
        };
        let begun = Instant::now();
        let answer = search.find(ask)?;
        took.push(ms(begun.elapsed()));
        Ok(answer.hits.iter().map(|hit| hit.note).collect())
    };
    let (mut found, mut all, mut exact_took, mut fast_took) = (0, 0, Vec::new(), Vec::new());
    for text in asked.iter().take(SIEVED) {
        let exact = nearest(text, usize::MAX, &mut exact_took)?;
        let fast = nearest(text, 0, &mut fast_took)?;
        all += exact.len();
        found += exact.iter().filter(|note| fast.contains(note)).count();
    }
    report.figure("by meaning alone, all vectors compared, p95", percentile(&mut exact_took, 95), "ms", Goal::None);
    report.figure("by meaning alone, signs first, p95", percentile(&mut fast_took, 95), "ms", Goal::None);
    report.figure("of the ten nearest, found by their signs first", share(found, all), "%", Goal::None);
    Ok(())
}

fn share(part: usize, all: usize) -> f64 {
    part as f64 / all.max(1) as f64 * 100.0
}

fn memory(report: &mut Report, when: &str) {
    if let Some(now) = measure::footprint(std::process::id()) {
        report.figure(format!("memory {when}, anonymous"), now.anonymous as f64 / 1e6, "MB", Goal::None);
    }
}

/// Asks one question after another; the goal is that of the 95th percentile. Gives what each took, milliseconds.
fn time(
    report: &mut Report,
    name: &str,
    search: &SearchService,
    asked: &[String],
    mode: SearchMode,
    typing: bool,
    goal: Goal,
) -> Result<Vec<f64>, String> {
    let mut took = Vec::with_capacity(asked.len());
    let mut found = 0;
    for text in asked {
        let begun = Instant::now();
        let answer = search.find(SearchRequest {
            text: text.clone(),
            limit: LIMIT,
            mode,
            typing,
            ..SearchRequest::default()
        })?;
        took.push(ms(begun.elapsed()));
        found += usize::from(!answer.hits.is_empty());
    }
    if found * 2 < asked.len() {
        report.wrong(format!("{name}: only {found} of {} questions found anything", asked.len()));
    }
    let mut sorted = took.clone();
    report.figure(format!("{name}, p50"), percentile(&mut sorted, 50), "ms", Goal::None);
    report.figure(format!("{name}, p95"), percentile(&mut sorted, 95), "ms", goal);
    report.figure(format!("{name}, p99"), percentile(&mut sorted, 99), "ms", Goal::None);
    Ok(took)
}

/// How long it takes until what was typed into a note is found.
fn edit(report: &mut Report, driver: &mut host::Driver, search: &SearchService) -> Result<(), String> {
    let note = driver.session().volumes().find_map(|volume| volume.files.values().next()).map(|row| row.id);
    let Some(note) = note else { return Err("there is no note".to_owned()) };
    driver.command(Command::OpenNote { note }).map_err(|reject| reject.0)?;
    until(driver, "the note is readable", |session| session.note(note).is_some_and(engine::Note::is_settled))?;
    let begun = Instant::now();
    let insert = "Zyzzogeton ".to_owned();
    driver.command(Command::Edit { note, at: 0, delete: 0, insert }).map_err(|reject| reject.0)?;
    let ask =
        SearchRequest { text: "zyzzogeton".to_owned(), limit: 1, mode: SearchMode::Words, ..SearchRequest::default() };
    while search.find(ask.clone())?.hits.is_empty() {
        if begun.elapsed() > Duration::from_secs(60) {
            report.wrong("an edit is not found after a minute");
            return Ok(());
        }
        driver.wait(Duration::from_millis(5));
    }
    report.figure("edit until it is found", ms(begun.elapsed()), "ms", Goal::Under(2_000.0));
    until(driver, "all is on disk", Session::is_saved)
}

/// SQLite FTS5 over the same notes and numpy over as many vectors, by the Python of this machine.
fn peers(report: &mut Report, scratch: &ScratchFolder, count: usize, questions: &Questions) -> Result<(), String> {
    let asked = json!({
        "folder": scratch.folder().join("N"), "count": count, "limit": LIMIT, "dimensions": 384,
        "word": questions.words, "three": questions.three, "phrase": questions.phrases, "typed": questions.typed,
    });
    scratch.write("peers.json", asked.to_string().as_bytes())?;
    let python = std::env::var_os(PYTHON).unwrap_or_else(|| "python3".into());
    let ran = std::process::Command::new(&python)
        .arg("-c")
        .arg(PEERS)
        .arg(scratch.folder().join("peers.json"))
        // Python looks for modules where it is started.
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
            (Some(name), Some(value), Some("s")) => report.figure(name, value, "s", Goal::None),
            (Some(name), Some(value), Some("MB")) => report.figure(name, value, "MB", Goal::None),
            (Some(name), Some(value), _) => report.figure(name, value, "ms", Goal::None),
            (Some(name), None, Some(why)) => report.leave_out(name, why),
            _ => {}
        }
    }
    Ok(())
}

/// What is asked.
struct Questions {
    words: Vec<String>,
    three: Vec<String>,
    phrases: Vec<String>,
    typed: Vec<String>,
    filtered: Vec<String>,
}

impl Questions {
    fn new(notes: &[String], words: &[&str]) -> Questions {
        let mut chance = Chance::new(77);
        let mut all = Questions {
            words: Vec::new(),
            three: Vec::new(),
            phrases: Vec::new(),
            typed: Vec::new(),
            filtered: Vec::new(),
        };
        for _ in 0..ASKED {
            let number = chance.below(notes.len());
            // The words of one note, so that there is something to find.
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

fn path(number: usize) -> String {
    format!("Topic {:03}/Note {number:06}.md", number % 100)
}

/// A note of one to three hundred words. The sentence model's vocabulary lists whole words by how often they are
/// used, and a word's frequency is that of its rank (Zipf): the same few hundred words make half of a text.
fn note(number: usize, words: &[&str]) -> String {
    let mut chance = Chance::new(number as u64 + 1);
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
        let words = search::vocabulary();
        assert!(words.len() > 15_000 && words.contains(&"river"), "{}", words.len());
        let notes: Vec<String> = (0..50).map(|number| note(number, &words)).collect();
        let count: usize = notes.iter().map(|note| note.split_whitespace().count()).sum();
        assert!((80..300).contains(&(count / notes.len())), "{count}");
        let questions = Questions::new(&notes, &words);
        assert!(questions.words.iter().all(|word| notes.iter().any(|note| note.contains(word.as_str()))));
    }
}
