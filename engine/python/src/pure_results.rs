//! Asks the host for the cached result of a pure cell, or sends it. The answer arrives through the reading thread.
//! While it waits, the cell can be interrupted.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustpython_vm::{PyResult, VirtualMachine};
use serde_json::{Value, json};

use crate::outbox::KernelOutbox;

/// Maximum delay until an interrupt is noticed.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Time that the host has to answer. After that, nothing counts as cached.
const PURE_REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a cache entry that is sent. The message of a larger one would be refused.
const MAX_PURE_ENTRY_BYTES: usize = 24 << 20;

static PURE_REPLY: Mutex<Option<Value>> = Mutex::new(None);
static PURE_REPLY_ARRIVED: Condvar = Condvar::new();

/// Stores an answer from the host and wakes the waiting cell.
pub(crate) fn deliver_reply(content: Value) {
    *PURE_REPLY.lock().unwrap_or_else(PoisonError::into_inner) = Some(content);
    PURE_REPLY_ARRIVED.notify_all();
}

/// Sends a question to the host and waits for the answer, up to [`PURE_REPLY_TIMEOUT`].
pub(crate) fn ask_host(kind: &str, content: Value, vm: &VirtualMachine) -> PyResult<Value> {
    let none = |why: &str| Ok(json!({"entry": null, "why": why}));
    let Some(outbox) = KernelOutbox::get() else { return none("there is nobody to keep it") };
    if content["entry"].as_str().is_some_and(|entry| entry.len() > MAX_PURE_ENTRY_BYTES) {
        return none(&format!("it is larger than {} MB", MAX_PURE_ENTRY_BYTES >> 20));
    }
    let key = content["key"].clone();
    // Drop a late answer to the previous question.
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
