//! Batches of JSON-RPC messages. The versions of MCP up to 2025-03-26 have them; the library takes and gives single
//! messages.

use serde_json::Value;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of messages in a batch.
pub(crate) const MAX_BATCH_MESSAGES: usize = 100;

/// A batch with requests that aren't answered yet.
struct OpenBatch {
    /// Ids of the requests.
    waiting: Vec<Value>,
    answers: Vec<Value>,
}

/// What becomes of a message of the library.
#[derive(Debug, PartialEq)]
pub(crate) enum BatchedAnswer {
    /// It belongs to no batch.
    Single,
    /// It waits for the other answers of its batch.
    Held,
    /// It was the last one: these are all.
    Whole(Value),
}

/// The batches of a client on standard input that aren't answered yet.
#[derive(Default)]
pub(crate) struct OpenBatches(Mutex<Vec<OpenBatch>>);

impl OpenBatches {
    fn open(&self) -> MutexGuard<'_, Vec<OpenBatch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a batch with the ids of its requests, and the answers that are there already. Returns the whole answer if
    /// nothing is waited for; a batch of notifications has none.
    pub(crate) fn begin(&self, waiting: Vec<Value>, answers: Vec<Value>) -> Option<Value> {
        if waiting.is_empty() {
            return (!answers.is_empty()).then_some(Value::Array(answers));
        }
        self.open().push(OpenBatch { waiting, answers });
        None
    }

    /// Takes the answer of a request that is in a batch.
    pub(crate) fn take(&self, line: &[u8]) -> BatchedAnswer {
        let mut open = self.open();
        if open.is_empty() {
            return BatchedAnswer::Single;
        }
        let Ok(message) = serde_json::from_slice::<Value>(line) else { return BatchedAnswer::Single };
        let Some(id) = message.get("id").filter(|_| message.get("method").is_none()).cloned() else {
            return BatchedAnswer::Single;
        };
        let Some(at) = open.iter().position(|batch| batch.waiting.contains(&id)) else { return BatchedAnswer::Single };
        let batch = &mut open[at];
        batch.answers.push(message);
        batch.waiting.retain(|waiting| *waiting != id);
        match batch.waiting.is_empty() {
            true => BatchedAnswer::Whole(Value::Array(open.remove(at).answers)),
            false => BatchedAnswer::Held,
        }
    }

    /// Waits no longer for the answer of a request that the client cancels with this message. Returns the answers of
    /// its batch if it was the last one.
    pub(crate) fn cancel(&self, message: &Value) -> Option<Value> {
        let id = message.get("params").filter(|_| message["method"] == "notifications/cancelled")?.get("requestId")?;
        let mut open = self.open();
        let at = open.iter().position(|batch| batch.waiting.contains(id))?;
        open[at].waiting.retain(|waiting| waiting != id);
        let answers = open[at].waiting.is_empty().then(|| open.remove(at).answers)?;
        (!answers.is_empty()).then_some(Value::Array(answers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(batches: &OpenBatches, message: &Value) -> BatchedAnswer {
        batches.take(message.to_string().as_bytes())
    }

    #[test]
    fn the_answers_of_a_batch_go_out_together() {
        let batches = OpenBatches::default();
        let (first, second) = (json!({"id": 1, "result": {}}), json!({"id": "b", "error": {"code": 1}}));
        assert_eq!(answer(&batches, &first), BatchedAnswer::Single);
        assert_eq!(batches.begin(vec![json!(1), json!("b")], vec![json!("wrong")]), None);
        // A request of the server may have the id of one of the client's.
        assert_eq!(answer(&batches, &json!({"id": 1, "method": "ping"})), BatchedAnswer::Single);
        assert_eq!(answer(&batches, &json!({"id": 2, "result": {}})), BatchedAnswer::Single);
        assert_eq!(answer(&batches, &second), BatchedAnswer::Held);
        assert_eq!(answer(&batches, &first), BatchedAnswer::Whole(json!(["wrong", second, first])));
        assert_eq!(answer(&batches, &first), BatchedAnswer::Single);
    }

    #[test]
    fn nothing_is_waited_for_that_never_comes() {
        let batches = OpenBatches::default();
        assert_eq!(batches.begin(Vec::new(), Vec::new()), None);
        assert_eq!(batches.begin(Vec::new(), vec![json!("wrong")]), Some(json!(["wrong"])));
        let cancel = |id: u64| json!({"method": "notifications/cancelled", "params": {"requestId": id}});
        batches.begin(vec![json!(1), json!(2)], Vec::new());
        assert_eq!(answer(&batches, &json!({"id": 1, "result": 1})), BatchedAnswer::Held);
        assert_eq!(batches.cancel(&cancel(3)), None);
        assert_eq!(batches.cancel(&cancel(2)), Some(json!([{"id": 1, "result": 1}])));
        batches.begin(vec![json!(4)], Vec::new());
        assert_eq!((batches.cancel(&cancel(4)), batches.cancel(&cancel(4))), (None, None));
    }
}
