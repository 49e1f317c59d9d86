//! A pure cell asks the host for its result, or hands it over: the answer comes in through the reading thread. While it
//! waits, the cell can be interrupted.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustpython_vm::{PyResult, VirtualMachine};
use serde_json::{Value, json};

use crate::outbox::KernelOutbox;

/// How long an interrupt may go unseen.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// A host that answers later keeps nothing.
const PURE_REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// A longer entry is not sent, in bytes: its message would be refused.
const MAX_PURE_ENTRY_BYTES: usize = 24 << 20;

static PURE_REPLY: Mutex<Option<Value>> = Mutex::new(None);
static PURE_REPLY_ARRIVED: Condvar = Condvar::new();

/// Takes the answer that the host sent.
pub(crate) fn deliver_reply(content: Value) {
    *PURE_REPLY.lock().unwrap_or_else(PoisonError::into_inner) = Some(content);
    PURE_REPLY_ARRIVED.notify_all();
}

/// Sends a question to the host and waits for the answer.
pub(crate) fn ask_host(kind: &str, content: Value, vm: &VirtualMachine) -> PyResult<Value> {
    let none = |why: &str| Ok(json!({"entry": null, "why": why}));
    let Some(outbox) = KernelOutbox::get() else { return none("there is nobody to keep it") };
    if content["entry"].as_str().is_some_and(|entry| entry.len() > MAX_PURE_ENTRY_BYTES) {
        return none(&format!("it is larger than {} MB", MAX_PURE_ENTRY_BYTES >> 20));
    }
    let key = content["key"].clone();
    // One that came too late for the question before.
    PURE_REPLY.lock().unwrap_or_else(PoisonError::into_inner).take();
    vm.allow_threads(|| outbox.send(kind, content));
    let begun = Instant::now();
    while begun.elapsed() < PURE_REPLY_TIMEOUT {
        let answer = vm.allow_threads(|| {
            let waiting = PURE_REPLY.lock().unwrap_or_else(PoisonError::into_inner);
            let (mut answer, _) = PURE_REPLY_ARRIVED
                .wait_timeout_while(waiting, SIGNAL_CHECK_INTERVAL, |answer| answer.is_none())
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
