//! Answers queries on a thread separate from the one that writes the index, so that they don't wait for it.

use super::{IndexTask, SearchQuestion, SharedIndex, catch_index_panic, closing_error};
use crate::clock::unix_now;
use anyhow::anyhow;
use index::{FullTextIndex, ParsedQuery, SearchAnswer, SearchMode, SearchRequest};
use models::EmbedderChoice;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// Time limit for opening the index for the first query.
const INDEX_OPEN_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of hits that are reranked.
const MAX_REREAD_HITS: usize = 20;

/// Number of passages, first by words, that are read at once. With 20 to 50 of them the ranking is about
/// the one with all passages read (docs/decisions/0068).
const MAX_PASSAGES_READ_ON_REQUEST: usize = 50;
/// Time limit for reading them, and the limit while the user is typing.
const READ_ON_REQUEST_TIMEOUT: Duration = Duration::from_millis(600);
const TYPING_READ_TIMEOUT: Duration = Duration::from_millis(150);

pub(super) fn run_query_thread(asked: &Receiver<SearchQuestion>, tasks: &Sender<IndexTask>, common: &Arc<SharedIndex>) {
    while let Ok(mut question) = asked.recv() {
        // While the user keeps typing, earlier queries are obsolete.
        for next in asked.try_iter() {
            let old = std::mem::replace(&mut question, next);
            if !old.ask.typing {
                answer_question(&old, tasks, common);
            }
        }
        answer_question(&question, tasks, common);
    }
}

fn answer_question(question: &SearchQuestion, tasks: &Sender<IndexTask>, common: &Arc<SharedIndex>) {
    let tell = |result: anyhow::Result<SearchAnswer>| {
        // Here and below: the receiver is gone only if the program ends or the caller no longer waits.
        let _ = question.answer.send(result);
        (question.on_answer)();
    };
    let index = match common.index() {
        Some(index) => index,
        None => {
            let (opened, wait) = channel();
            let _ = tasks.send(IndexTask::WaitUntilIndexed(opened));
            let settled = wait.recv_timeout(INDEX_OPEN_TIMEOUT).unwrap_or_else(|_| Err(closing_error()));
            match (common.index(), settled) {
                (Some(index), _) => index,
                (None, Err(why)) => return tell(Err(why)),
                (None, Ok(())) => return tell(Err(anyhow!("the search index cannot be opened"))),
            }
        }
    };
    let forks = common.forks.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let found = |ask: &SearchRequest| -> anyhow::Result<SearchAnswer> {
        let wide = &ask.widened_for_forks(&forks);
        catch_index_panic(|| match question.related {
            Some(note) => index.related_notes(note, wide.limit, wide.volume.as_deref()).map(|hits| SearchAnswer {
                hits,
                by_meaning: true,
                ..SearchAnswer::default()
            }),
            None => index.search(wide),
        })
        .map(|answer| answer.without_forks(ask, &forks))
        .map_err(|error| {
            let why = error.to_string();
            *common.suspected_damage.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.clone());
            let _ = tasks.send(IndexTask::Written(Vec::new()));
            anyhow!("{why}; it's being rebuilt, so try again in a moment")
        })
    };
    let mut ask = question.ask.clone();
    ask.starred = common.starred();
    if ask.now == 0 {
        ask.now = unix_now().0;
    }
    let sentence = ParsedQuery::parse(&ask.text).meaning_text();
    let by_meaning = question.related.is_none()
        && ask.mode != SearchMode::Words
        && sentence.chars().any(char::is_alphabetic)
        && (index.vector_count() > 0 || can_read_on_request(common, &index));
    if by_meaning {
        if ask.typing {
            // Answer by words at once, because the model may have to be loaded first.
            tell(found(&SearchRequest { mode: SearchMode::Words, ..ask.clone() }));
        }
        add_query_vector(common, &index, &sentence, &mut ask);
        if ask.vector.is_some() && can_read_on_request(common, &index) {
            read_first_passages(common, &index, &ask);
        }
        let _ = tasks.send(IndexTask::Loaded);
    }
    if !(by_meaning && ask.typing && ask.vector.is_none()) {
        let mut answer = found(&ask);
        if let Ok(answer) = &mut answer
            && by_meaning
            && !ask.typing
        {
            rerank_hits(common, &sentence, answer);
        }
        tell(answer);
    }
}

/// Adds the query's vector; without the model, only words are used.
fn add_query_vector(common: &SharedIndex, index: &FullTextIndex, sentence: &str, ask: &mut SearchRequest) {
    let key = index.answering_model();
    let found = common.load_if_present(&key).and_then(|model| {
        let vector = match catch_index_panic(|| Ok(model.embed_question(sentence))) {
            Ok(vector) => vector.map_err(anyhow::Error::from),
            Err(_) => Err(anyhow!("the model failed")),
        };
        vector
            .map(|vector| (vector, model.unrelated_cosine()))
            .map_err(Arc::new)
            .inspect_err(|why| common.models.record_failure(&key, why.clone()))
    });
    common.update_freshness(|fresh| {
        fresh.words_only_reason = found.as_ref().err().map(|why| format!("search goes by words alone for now: {why}"));
    });
    // Another model may have become active in the meantime.
    if let Ok((vector, unrelated)) = found
        && index.answering_model() == key
    {
        (ask.vector, ask.unrelated) = (Some(vector), unrelated);
    }
}

/// Whether passages without a vector are read when they are asked for: by the bundled model only, because others are
/// slower, or paid by text.
fn can_read_on_request(common: &SharedIndex, index: &FullTextIndex) -> bool {
    let wanted = common.models.wanted_model();
    let (left, all) = common.freshness.lock().unwrap_or_else(PoisonError::into_inner).meanings;
    let is_bundled = wanted.choice == EmbedderChoice::Embedded && index.answering_model() == wanted.choice.key();
    is_bundled && !wanted.paused && index.dimensions() > 0 && (left > 0 || all == 0)
}

/// Reads the passages that a query finds first by words and that have no vector yet, as many as the time allows.
fn read_first_passages(common: &SharedIndex, index: &FullTextIndex, ask: &SearchRequest) {
    let begun = Instant::now();
    let limit = if ask.typing { TYPING_READ_TIMEOUT } else { READ_ON_REQUEST_TIMEOUT };
    let key = index.answering_model();
    let Ok(model) = common.load_if_present(&key) else { return };
    // A damaged index is reported by the search that follows.
    let Ok(texts) = catch_index_panic(|| index.unread_texts(ask, MAX_PASSAGES_READ_ON_REQUEST)) else { return };
    let mut read = Vec::new();
    for (hash, text) in texts {
        if begun.elapsed() >= limit {
            break;
        }
        // The indexing thread reads the same passage later, and reports why it can't.
        let Ok(Ok(vector)) = catch_index_panic(|| Ok(model.embed_question(&text))) else { break };
        read.push((hash, vector));
    }
    if let Err(error) = catch_index_panic(|| index.store_answering_vectors(&key, &read)) {
        let why = crate::logging::content_field(error.why);
        tracing::warn!(what = error.what, why, "vectors were not stored; they are computed again");
    }
}

/// Reranks the best hits, each together with the query, if a reranker is chosen.
fn rerank_hits(common: &SharedIndex, sentence: &str, answer: &mut SearchAnswer) {
    let reranker = match common.load_reranker(false) {
        Ok(Some(reranker)) => reranker,
        Ok(None) => return,
        Err(why) => return common.update_freshness(|fresh| fresh.reranker = Some(why.to_string())),
    };
    let best = answer.hits.len().min(MAX_REREAD_HITS);
    let passages: Vec<String> = answer.hits[..best].iter().map(|hit| format!("{}\n{}", hit.title, hit.text)).collect();
    match catch_index_panic(|| Ok(reranker.scores(sentence, &passages))) {
        Ok(Ok(scores)) => answer.apply_rerank(&scores),
        Ok(Err(why)) => common.update_freshness(|fresh| fresh.reranker = Some(why.to_string())),
        Err(_) => {}
    }
}
