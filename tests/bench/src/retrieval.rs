//! Benchmark of search quality on any folder with `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`.
//!
//! The corpus becomes notes, which are indexed and searched like any others: by words, by meaning and by both.

use super::{CliError, EXIT_DONE, drive_until, open_volume, open_workspace};
use engine::Session;
use host::Driver;
use host::search::{GATE_SIGNALS, NoteHit, RankingWeights, SearchMode, SearchRequest, SearchService};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use support::measure::{self, ScratchFolder};

/// Maximum time to embed a whole corpus.
const CORPUS_EMBEDDING_TIMEOUT: Duration = Duration::from_secs(7_200);
/// Number of notes requested per query.
const NOTES_PER_QUERY: usize = 100;
/// With the prefilter by sign bits, one in this many vectors is compared exactly, as with very many notes.
const SIEVE_DIVISOR: usize = 40;

#[derive(Deserialize)]
struct CorpusText {
    #[serde(rename = "_id")]
    id: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    text: String,
}

/// Scores of a search mode, summed over queries.
#[derive(Clone, Copy, Default)]
pub(super) struct RetrievalScores {
    ndcg10: f64,
    recall10: f64,
    recall100: f64,
    queries: f64,
}

impl RetrievalScores {
    pub(super) fn add(&mut self, found: &[String], wanted: &BTreeMap<String, f64>) {
        let relevant = wanted.values().filter(|grade| **grade > 0.0).count() as f64;
        let gain = |grade: f64, place: usize| grade / (place as f64 + 2.0).log2();
        let grades = found.iter().map(|id| wanted.get(id).copied().unwrap_or(0.0));
        let got: f64 = grades.take(10).enumerate().map(|(place, grade)| gain(grade, place)).sum();
        let mut best: Vec<f64> = wanted.values().copied().collect();
        best.sort_by(|a, b| b.total_cmp(a));
        let most: f64 = best.into_iter().take(10).enumerate().map(|(place, grade)| gain(grade, place)).sum();
        let among = |count: usize| {
            let hits = found.iter().take(count).filter(|id| wanted.get(*id).is_some_and(|grade| *grade > 0.0));
            hits.count() as f64 / relevant
        };
        self.ndcg10 += got / most;
        self.recall10 += among(10);
        self.recall100 += among(100);
        self.queries += 1.0;
    }

    /// Returns the mean nDCG@10.
    pub(super) fn mean_ndcg10(self) -> f64 {
        self.ndcg10 / self.queries.max(1.0)
    }

    fn to_json(self) -> Value {
        let mean = |sum: f64| (sum / self.queries.max(1.0) * 1e4).round() / 1e4;
        json!({"ndcg10": mean(self.ndcg10), "recall10": mean(self.recall10), "recall100": mean(self.recall100)})
    }
}

/// The documents found for a query.
pub(super) struct DocumentRanking {
    /// The documents' ids, best first, each with its hit.
    pub(super) hits: Vec<(String, NoteHit)>,
    /// The signals of the fusion gate, if two rankings were fused.
    pub(super) signals: Option<[f32; GATE_SIGNALS]>,
}

/// A corpus that is indexed, and its queries.
pub(super) struct IndexedCorpus {
    scratch: ScratchFolder,
    driver: Driver,
    /// The documents' ids by their notes' paths.
    names: HashMap<String, String>,
    queries: Vec<CorpusText>,
    wanted: HashMap<String, BTreeMap<String, f64>>,
}

impl IndexedCorpus {
    /// Indexes a folder with `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`. Waits for the vectors only if these are
    /// measured.
    pub(super) fn open(corpus: &Path, needs_vectors: bool) -> Result<IndexedCorpus, String> {
        let scratch = ScratchFolder::new("retrieval")?;
        let mut names: HashMap<String, String> = HashMap::new();
        for (text, number) in read_texts(&corpus.join("corpus.jsonl"))?.into_iter().zip(0_usize..) {
            // The id isn't used as a file name, because it must not be found as one.
            let path = format!("{}/{number}.md", number / 500);
            scratch.write(&format!("N/{path}"), format!("# {}\n\n{}\n", text.title.trim(), text.text).as_bytes())?;
            names.insert(path, text.id);
        }
        let queries = read_texts(&corpus.join("queries.jsonl"))?;
        let wanted = read_judgements(&corpus.join("qrels.tsv"))?;
        let mut driver = open_workspace(&scratch)?;
        open_volume(&mut driver, &scratch.folder().join("N"))?;
        drive_until(&mut driver, "all is on disk", Session::is_saved)?;
        let search = driver.search();
        search.wait_until_indexed(CORPUS_EMBEDDING_TIMEOUT).map_err(|why| why.to_string())?;
        if needs_vectors {
            search.wait_until_embedded(CORPUS_EMBEDDING_TIMEOUT).map_err(|why| why.to_string())?;
        }
        Ok(IndexedCorpus { scratch, driver, names, queries, wanted })
    }

    /// Number of documents.
    pub(super) fn documents(&self) -> usize {
        self.names.len()
    }

    /// Returns the judged queries that have an answer: id, text, and the documents' grades.
    pub(super) fn judged(&self) -> impl Iterator<Item = (&str, &str, &BTreeMap<String, f64>)> {
        let asked = self.queries.iter().filter_map(|query| Some((query, self.wanted.get(&query.id)?)));
        asked
            .filter(|(_, wanted)| wanted.values().any(|grade| *grade > 0.0))
            .map(|(query, wanted)| (query.id.as_str(), query.text.as_str(), wanted))
    }

    /// Returns the hits for a query with their documents' ids, and what the fusion gate saw.
    pub(super) fn ranking(
        &self,
        text: &str,
        mode: SearchMode,
        tuning: RankingWeights,
        limit: usize,
    ) -> Result<DocumentRanking, String> {
        let ask = SearchRequest { text: plain_query(text), limit, mode, tuning, ..SearchRequest::default() };
        let answer = self.driver.search().search_blocking(ask).map_err(|why| why.to_string())?;
        let signals = answer.signals.map(|signals| signals.values);
        let hits = answer.hits.into_iter().filter_map(|hit| Some((self.names.get(&hit.path)?.clone(), hit)));
        Ok(DocumentRanking { hits: hits.collect(), signals })
    }

    /// Closes the workspace and deletes it.
    pub(super) fn close(self) -> Result<(), String> {
        let closed = self.driver.close().map_err(|why| why.to_string());
        drop(self.scratch);
        closed
    }
}

/// Indexes the corpus and runs all its queries. Returns what `--json` prints.
pub(super) fn measure(corpus: &Path, foreign: Option<&Path>) -> Result<Value, String> {
    let indexed = IndexedCorpus::open(corpus, true)?;
    let (search, names) = (indexed.driver.search().clone(), &indexed.names);
    let mut sums: BTreeMap<&str, [RetrievalScores; 2]> = BTreeMap::new();
    let (mut count, mut answered) = (0, [0, 0]);
    for (_, text, wanted) in indexed.judged() {
        let mut orders = Vec::new();
        for (name, mode) in [("bm25", SearchMode::Words), ("vectors", SearchMode::Meaning), ("fused", SearchMode::Both)]
        {
            let (found, fits) = run_query(&search, text, mode, names)?;
            if mode == SearchMode::Both && fits {
                answered[count % 2] += 1;
            }
            sums.entry(name).or_default()[count % 2].add(&found, wanted);
            orders.push(found);
        }
        sums.entry("rrf10").or_default()[count % 2].add(&fuse_ranks(&orders[..2]), wanted);
        count += 1;
    }
    let (mut sieved, mut nearest) = (0, 0);
    let vectors = search.counts().map_err(|why| why.to_string())?.meanings;
    let sieve = RankingWeights { exact_limit: 0, sieve_size: vectors / SIEVE_DIVISOR, ..RankingWeights::default() };
    for query in &indexed.queries {
        let ten = |tuning: RankingWeights| {
            let ask = SearchRequest {
                text: plain_query(&query.text),
                limit: 10,
                mode: SearchMode::Meaning,
                tuning,
                ..SearchRequest::default()
            };
            search.search_blocking(ask).map(|answer| answer.hits.into_iter().map(|hit| hit.note).collect::<Vec<_>>())
        };
        let (all, found) = (
            ten(RankingWeights { exact_limit: usize::MAX, ..sieve }).map_err(|why| why.to_string())?,
            ten(sieve).map_err(|why| why.to_string())?,
        );
        nearest += all.len();
        sieved += all.iter().filter(|note| found.contains(note)).count();
    }
    let mut others = Vec::new();
    for query in foreign.map(|foreign| read_texts(&foreign.join("queries.jsonl"))).transpose()?.unwrap_or_default() {
        others.push(run_query(&search, &query.text, SearchMode::Both, names)?.1);
    }
    indexed.close()?;
    let mut value = json!({"queries": count, "halves": [{}, {}]});
    // Share of queries with a match, among the corpus' own queries and those of another corpus.
    let share = |part: usize, all: usize| (part as f64 / all.max(1) as f64 * 1e4).round() / 1e4;
    value["sieve"] = json!({"vectors": vectors, "compared": sieve.sieve_size, "recall10": share(sieved, nearest)});
    value["answered"] = share(answered[0] + answered[1], count).into();
    for (half, answered) in answered.into_iter().enumerate() {
        value["halves"][half]["answered"] = share(answered, (count + 1 - half) / 2).into();
    }
    if !others.is_empty() {
        let fit = |half: usize| others.iter().skip(half).step_by(2).filter(|fits| **fits).count();
        value["foreign_answered"] = share(fit(0) + fit(1), others.len()).into();
        for half in 0..2 {
            value["halves"][half]["foreign_answered"] = share(fit(half), (others.len() + 1 - half) / 2).into();
        }
    }
    for (name, [even, odd]) in sums {
        let all = RetrievalScores {
            ndcg10: even.ndcg10 + odd.ndcg10,
            recall10: even.recall10 + odd.recall10,
            recall100: even.recall100 + odd.recall100,
            queries: even.queries + odd.queries,
        };
        value[name] = all.to_json();
        // The half that the ranking weights were chosen on, and the half that's reported.
        value["halves"][0][name] = even.to_json();
        value["halves"][1][name] = odd.to_json();
    }
    Ok(value)
}

/// Prints the results.
pub(super) fn print_results(found: &Value, json: bool, out: &mut dyn Write) -> Result<u8, CliError> {
    if json {
        writeln!(out, "{found}")?;
        return Ok(EXIT_DONE);
    }
    writeln!(out, "queries: {}", found["queries"])?;
    for name in ["bm25", "vectors", "fused"] {
        let way = &found[name];
        let halves = [&found["halves"][0][name]["ndcg10"], &found["halves"][1][name]["ndcg10"]];
        let (ndcg10, recall10, recall100) = (&way["ndcg10"], &way["recall10"], &way["recall100"]);
        writeln!(
            out,
            "{name:>8}: nDCG@10 {ndcg10} (halves {} and {}), recall@10 {recall10}, recall@100 {recall100}",
            halves[0], halves[1]
        )?;
    }
    writeln!(out, "of the ten nearest of all vectors, found by their signs first: {}", found["sieve"])?;
    writeln!(
        out,
        "queries that something fits: {} (the second half {})",
        found["answered"], found["halves"][1]["answered"]
    )?;
    if let Some(foreign) = found.get("foreign_answered") {
        let second = &found["halves"][1]["foreign_answered"];
        writeln!(out, "queries of the other collection that something fits: {foreign} (the second half {second})")?;
    }
    Ok(EXIT_DONE)
}

fn run_query(
    search: &SearchService,
    text: &str,
    mode: SearchMode,
    names: &HashMap<String, String>,
) -> Result<(Vec<String>, bool), String> {
    let answer = search
        .search_blocking(SearchRequest {
            text: plain_query(text),
            limit: NOTES_PER_QUERY,
            mode,
            ..SearchRequest::default()
        })
        .map_err(|why| why.to_string())?;
    Ok((answer.hits.iter().filter_map(|hit| names.get(&hit.path).cloned()).collect(), answer.has_match()))
}

/// Merges rankings by reciprocal rank fusion with k = 10, for comparison with ours.
pub(super) fn fuse_ranks(orders: &[Vec<String>]) -> Vec<String> {
    let mut scores: BTreeMap<&String, f64> = BTreeMap::new();
    for (id, place) in orders.iter().flat_map(|order| order.iter().zip(1_u32..)) {
        *scores.entry(id).or_default() += 1.0 / (10.0 + f64::from(place));
    }
    let mut all: Vec<(&String, f64)> = scores.into_iter().collect();
    all.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    all.into_iter().map(|(id, _)| id.clone()).collect()
}

/// Removes query syntax: a query of the corpus is a sentence in which such characters mean nothing.
fn plain_query(text: &str) -> String {
    let plain: String = text.chars().map(|c| if "\":-*".contains(c) { ' ' } else { c }).collect();
    plain.replace(" OR ", " or ")
}

fn read_texts(path: &Path) -> Result<Vec<CorpusText>, String> {
    let bytes = measure::read(path)?;
    let text = String::from_utf8(bytes).map_err(|_| format!("it is not UTF-8 text: {}", path.display()))?;
    let parse = |line: &str| {
        serde_json::from_str(line).map_err(|error| format!("a line is not as expected ({error}): {}", path.display()))
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(parse).collect()
}

/// Reads the relevant documents and their grades for each query.
fn read_judgements(path: &Path) -> Result<HashMap<String, BTreeMap<String, f64>>, String> {
    let text = String::from_utf8(measure::read(path)?).map_err(|_| format!("not UTF-8 text: {}", path.display()))?;
    let mut wanted: HashMap<String, BTreeMap<String, f64>> = HashMap::new();
    for line in text.lines() {
        let mut cells = line.split('\t');
        if let (Some(query), Some(document), Some(grade)) = (cells.next(), cells.next(), cells.next())
            && let Ok(grade) = grade.trim().parse::<f64>()
        {
            wanted.entry(query.to_owned()).or_default().insert(document.to_owned(), grade.max(0.0));
        }
    }
    Ok(wanted)
}
