//! Benchmark of search quality over a folder of collections: one row for each, with the parameters that were trained
//! without it, and with SQLite FTS5 and PyPI's `bm25s` over the same texts.

use super::retrieval::{IndexedCorpus, RetrievalScores, fuse_ranks};
use super::{CliError, EXIT_DONE};
use host::search::{FusionGate, RankingWeights, SearchMode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The trained parameters, with those that were trained without one of the collections.
const TRAINED_GATES: &str = include_str!("../fusion/gate.json");
/// Measures SQLite FTS5 and `bm25s`.
const PEER_SCRIPT: &str = include_str!("retrieval_peers.py");
/// The Python that runs it.
const PEER_PYTHON_VAR: &str = "TRACEBOOK_PYTHON";
/// Number of documents requested per query, and of candidates written for the training.
const DOCUMENTS_PER_QUERY: usize = 100;
const CANDIDATES_PER_QUERY: usize = 200;
/// What is compared, in the table's order: name in the results and heading. The first five are of words alone.
const COLUMNS: [(&str, &str); 9] = [
    ("fts5", "FTS5"),
    ("bm25s", "bm25s"),
    ("words", "words"),
    ("no_stop_words", "no stop words"),
    ("no_pairs", "no pairs"),
    ("vectors", "cosine"),
    ("rrf10", "RRF 10"),
    ("fused", "fused"),
    ("left_out", "left out"),
];

/// The content of `gate.json`.
#[derive(Deserialize)]
struct TrainedGates {
    /// The parameters trained without the named collection.
    left_out: BTreeMap<String, TrainedGate>,
}

#[derive(Deserialize)]
struct TrainedGate {
    factors: Vec<f32>,
    ranks: Vec<f32>,
}

impl TrainedGate {
    fn to_gate(&self) -> Result<FusionGate, String> {
        let factors = self.factors.clone().try_into();
        let factors = factors.map_err(|_| "gate.json has another number of factors than the program; train again")?;
        let ranks = *self.ranks.first().ok_or("gate.json has no weight of ranks; train again")?;
        Ok(FusionGate { factors, ranks, ..FusionGate::default() })
    }
}

/// What is measured of each collection.
#[derive(Clone, Copy, Default)]
pub(super) struct MeasuredParts<'a> {
    /// Only words, which takes no vectors and therefore seconds instead of minutes.
    pub(super) words_only: bool,
    /// The file for the candidates of each query.
    pub(super) dump: Option<&'a Path>,
}

/// Measures each collection in a folder. With `dump`, the candidates of each query are written there for
/// `tests/bench/fusion/train.py`, a JSON object per line.
pub(super) fn measure(folder: &Path, parts: MeasuredParts<'_>) -> Result<Value, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{} can't be read: {error}", folder.display()))?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.join("corpus.jsonl").is_file());
    folders.sort();
    if folders.is_empty() {
        return Err(format!("no folder in {} has corpus.jsonl, queries.jsonl, qrels.tsv", folder.display()));
    }
    let trained: TrainedGates = serde_json::from_str(TRAINED_GATES).map_err(|error| format!("gate.json: {error}"))?;
    let mut lines = String::new();
    let mut rows = Vec::new();
    for folder in &folders {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let left_out = trained.left_out.get(&name).map(TrainedGate::to_gate).transpose()?;
        let row = measure_collection(folder, &name, left_out, parts, &mut lines)?;
        // Each takes minutes: say what is done.
        eprintln!("{row}");
        rows.push(row);
    }
    if let Some(dump) = parts.dump {
        std::fs::write(dump, lines).map_err(|error| format!("{} can't be written: {error}", dump.display()))?;
    }
    Ok(summarize(rows))
}

fn measure_collection(
    folder: &Path,
    name: &str,
    left_out: Option<FusionGate>,
    measured: MeasuredParts<'_>,
    lines: &mut String,
) -> Result<Value, String> {
    let indexed = IndexedCorpus::open(folder, !measured.words_only)?;
    let mut sums: BTreeMap<&str, RetrievalScores> = BTreeMap::new();
    let mut count = 0;
    let shipped = RankingWeights::default();
    for (id, text, wanted) in indexed.judged() {
        count += 1;
        let order = |mode: SearchMode, tuning: RankingWeights| -> Result<Vec<String>, String> {
            let found = indexed.ranking(text, mode, tuning, DOCUMENTS_PER_QUERY)?;
            Ok(found.hits.into_iter().map(|(id, _)| id).collect())
        };
        let mut add = |name, found: &[String]| sums.entry(name).or_default().add(found, wanted);
        let by_words = order(SearchMode::Words, shipped)?;
        add("words", &by_words);
        add("no_stop_words", &order(SearchMode::Words, RankingWeights { stop_word: 1.0, ..shipped })?);
        add("no_pairs", &order(SearchMode::Words, RankingWeights { pair: 0.0, ..shipped })?);
        if measured.words_only {
            continue;
        }
        let parts = [by_words, order(SearchMode::Meaning, shipped)?];
        add("vectors", &parts[1]);
        add("rrf10", &fuse_ranks(&parts));
        add("fused", &order(SearchMode::Both, shipped)?);
        if let Some(gate) = left_out {
            add("left_out", &order(SearchMode::Both, RankingWeights { gate, ..shipped })?);
        }
        if measured.dump.is_some() {
            let found = indexed.ranking(text, SearchMode::Both, shipped, CANDIDATES_PER_QUERY)?;
            let candidates = found.hits.iter().map(|(id, hit)| {
                let words = hit.why.parts.iter().find(|part| part.name == "words").map_or(0.0, |part| part.value);
                json!([id, words, hit.why.meaning])
            });
            let candidates: Vec<Value> = candidates.collect();
            let line = json!({
                "collection": name, "query": id, "signals": found.signals, "candidates": candidates, "wanted": wanted,
            });
            // A string takes every line.
            let _ = writeln!(lines, "{line}");
        }
    }
    let mut row = json!({"collection": name, "documents": indexed.documents(), "queries": count});
    indexed.close()?;
    let round = |value: f64| (value * 1e4).round() / 1e4;
    for (name, sum) in &sums {
        row[*name] = round(sum.mean_ndcg10()).into();
    }
    let best = row["words"].as_f64().unwrap_or(0.0).max(row["vectors"].as_f64().unwrap_or(0.0));
    for (name, change) in [("fused", "fused_change"), ("left_out", "left_out_change")] {
        if let Some(value) = row[name].as_f64().filter(|_| best > 0.0) {
            row[change] = round(value / best - 1.0).into();
        }
    }
    measure_peers(folder, &mut row);
    Ok(row)
}

/// Measures SQLite FTS5 and `bm25s` with this machine's Python. What isn't installed there stays empty.
fn measure_peers(folder: &Path, row: &mut Value) {
    let python = std::env::var_os(PEER_PYTHON_VAR).unwrap_or_else(|| "python3".into());
    let mut command = std::process::Command::new(python);
    command.arg("-c").arg(PEER_SCRIPT).arg(folder).stderr(std::process::Stdio::inherit());
    let output = command.output().ok().filter(|output| output.status.success());
    let said = output.and_then(|output| serde_json::from_slice::<Value>(&output.stdout).ok());
    for name in ["fts5", "bm25s"] {
        row[name] = said.as_ref().map_or(Value::Null, |said| said[name].clone());
    }
}

/// Adds the mean and the lowest change against the better part.
fn summarize(rows: Vec<Value>) -> Value {
    let mut value = json!({});
    for change in ["fused_change", "left_out_change"] {
        let all: Vec<f64> = rows.iter().filter_map(|row| row[change].as_f64()).collect();
        if !all.is_empty() {
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            value[change] =
                json!({"mean": (mean * 1e4).round() / 1e4, "lowest": all.iter().copied().fold(f64::MAX, f64::min)});
        }
    }
    value["collections"] = rows.into();
    value
}

/// Prints the results as a table.
pub(super) fn print_table(found: &Value, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    if json {
        writeln!(out, "{found}")?;
        return Ok(EXIT_DONE);
    }
    write!(out, "| nDCG@10 | documents | queries |")?;
    for (_, heading) in COLUMNS {
        write!(out, " {heading} |")?;
    }
    writeln!(out, " left out against the better part |\n|{}", "---|".repeat(COLUMNS.len() + 4))?;
    let percent =
        |value: &Value| value.as_f64().map_or_else(|| "–".to_owned(), |value| format!("{:+.1} %", value * 100.0));
    for row in found["collections"].as_array().into_iter().flatten() {
        write!(
            out,
            "| {} | {} | {} |",
            row["collection"].as_str().unwrap_or_default(),
            row["documents"],
            row["queries"]
        )?;
        for (name, _) in COLUMNS {
            match row[name].as_f64() {
                Some(value) => write!(out, " {value:.4} |")?,
                None => write!(out, " – |")?,
            }
        }
        // A collection that the training didn't have is unseen by the parameters in use.
        let change = if row["left_out_change"].is_null() { &row["fused_change"] } else { &row["left_out_change"] };
        writeln!(out, " {} |", percent(change))?;
    }
    for (name, said) in [("fused_change", "parameters in use"), ("left_out_change", "trained without the collection")] {
        if let Some(change) = found.get(name) {
            let (mean, lowest) = (percent(&change["mean"]), percent(&change["lowest"]));
            writeln!(out, "fused against the better part, {said}: mean {mean}, lowest {lowest}")?;
        }
    }
    Ok(EXIT_DONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_collection_of_the_training_was_left_out_once() {
        let trained: TrainedGates = serde_json::from_str(TRAINED_GATES).expect("gate.json");
        assert!(trained.left_out.len() >= 6, "{}", trained.left_out.len());
        let shipped = FusionGate::default();
        for (name, gate) in &trained.left_out {
            let gate = gate.to_gate().expect(name);
            assert!(gate.factors.iter().all(|factor| factor.is_finite()) && gate != shipped, "{name}");
        }
    }

    #[test]
    fn the_table_tells_the_lowest_and_the_mean() {
        let rows = vec![
            json!({"collection": "a", "documents": 2, "queries": 1, "words": 0.5, "left_out_change": 0.1}),
            json!({"collection": "b", "documents": 3, "queries": 1, "words": 0.5, "left_out_change": -0.02}),
        ];
        let mut out = Vec::new();
        print_table(&summarize(rows), false, &mut out).expect("written");
        let text = String::from_utf8(out).expect("text");
        assert!(text.contains("| a | 2 | 1 | – | – | 0.5000 |") && text.contains("| +10.0 % |"), "{text}");
        assert!(text.ends_with("trained without the collection: mean +4.0 %, lowest -2.0 %\n"), "{text}");
    }
}
