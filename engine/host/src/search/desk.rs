//! Where questions are answered, beside the thread that writes the index, so that none waits for it.

use super::{Common, Question, Task, closing, guarded};
use index::{Answer, Ask, Mode, Query};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// A first question waits this long for an index that is being opened.
const OPENING: Duration = Duration::from_secs(60);

pub(super) fn answer(asked: &Receiver<Question>, tasks: &Sender<Task>, common: &Arc<Common>) {
    while let Ok(mut question) = asked.recv() {
        // Who types on does not want to know any more what the first letters would have found.
        for next in asked.try_iter() {
            let old = std::mem::replace(&mut question, next);
            if !old.ask.typing {
                reply(&old, tasks, common);
            }
        }
        reply(&question, tasks, common);
    }
}

fn reply(question: &Question, tasks: &Sender<Task>, common: &Arc<Common>) {
    let tell = |result: Result<Answer, String>| {
        let _ = question.answer.send(result);
        (question.told)();
    };
    let index = match common.index() {
        Some(index) => index,
        None => {
            let (opened, wait) = channel();
            let _ = tasks.send(Task::Settle(opened));
            let settled = wait.recv_timeout(OPENING).unwrap_or_else(|_| Err(closing()));
            match (common.index(), settled) {
                (Some(index), _) => index,
                (None, Err(why)) => return tell(Err(why)),
                (None, Ok(())) => return tell(Err("the search index cannot be opened".to_owned())),
            }
        }
    };
    let found = |ask: &Ask| -> Result<Answer, String> {
        guarded(|| match question.related {
            Some(note) => {
                index.related(note, ask.limit).map(|hits| Answer { hits, by_meaning: true, ..Answer::default() })
            }
            None => index.search(ask),
        })
        .map_err(|error| {
            let why = error.to_string();
            *common.suspect.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(why.clone());
            let _ = tasks.send(Task::Written(Vec::new()));
            format!("{why}; it is made again now, try again in a moment")
        })
    };
    let mut ask = question.ask.clone();
    let sentence = Query::parse(&ask.text).sentence();
    let by_meaning = question.related.is_none()
        && ask.mode != Mode::Words
        && sentence.chars().any(char::is_alphabetic)
        && index.vectors_kept() > 0;
    if by_meaning {
        if ask.typing {
            // By words at once: the model may have to be loaded first.
            tell(found(&Ask { mode: Mode::Words, ..ask.clone() }));
        }
        ask.vector = meaning(common, &sentence);
        let _ = tasks.send(Task::Loaded);
    }
    if !(by_meaning && ask.typing && ask.vector.is_none()) {
        tell(found(&ask));
    }
}

/// The vector of a question; without the model, words serve alone.
fn meaning(common: &Common, sentence: &str) -> Option<Vec<f32>> {
    let model = common.model().ok()?;
    guarded(|| Ok(model.embed(sentence).ok())).ok()?
}
