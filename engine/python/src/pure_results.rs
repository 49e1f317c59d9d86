//! A pure cell asks the host for its result, or hands it over: the answer comes in through the reading thread. While it
//! waits, the cell can be interrupted.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustpython_vm::{PyResult, VirtualMachine};
use serde_json::{Value, json};

use crate::outbox::Outbox;

/// How long an interrupt may go unseen.
const SLICE: Duration = Duration::from_millis(50);
/// A host that answers later keeps nothing.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// A longer entry is not sent, in bytes: its message would be refused.
const MAX_ENTRY_BYTES: usize = 24 << 20;

static ANSWER: Mutex<Option<Value>> = Mutex::new(None);
static CAME: Condvar = Condvar::new();

/// Takes the answer that the host sent.
pub(crate) fn answered(content: Value) {
    *ANSWER.lock().unwrap_or_else(PoisonError::into_inner) = Some(content);
    CAME.notify_all();
}

/// Asks and waits.
pub(crate) fn ask(kind: &str, content: Value, vm: &VirtualMachine) -> PyResult<Value> {
    let none = |why: &str| Ok(json!({"entry": null, "why": why}));
    let Some(outbox) = Outbox::get() else { return none("there is nobody to keep it") };
    if content["entry"].as_str().is_some_and(|entry| entry.len() > MAX_ENTRY_BYTES) {
        return none(&format!("it is larger than {} MB", MAX_ENTRY_BYTES >> 20));
    }
    let key = content["key"].clone();
    // One that came too late for the question before.
    ANSWER.lock().unwrap_or_else(PoisonError::into_inner).take();
    vm.allow_threads(|| outbox.send(kind, content));
    let begun = Instant::now();
    while begun.elapsed() < ANSWER_TIMEOUT {
        let answer = vm.allow_threads(|| {
            let waiting = ANSWER.lock().unwrap_or_else(PoisonError::into_inner);
            let (mut answer, _) = CAME
                .wait_timeout_while(waiting, SLICE, |answer| answer.is_none())
                .unwrap_or_else(PoisonError::into_inner);
            answer.take()
        });
        if let Some(answer) = answer.filter(|answer| answer["key"] == key) {
            return Ok(answer);
        }
        vm.check_signals()?;
    }
    none("nobody keeps it")
}
