//! A cell asks the user for a line of text: the question goes out with the other messages, the answer comes in through
//! the reading thread. While it waits, a cell can be interrupted.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustpython_vm::{PyResult, VirtualMachine};
use serde_json::json;

use crate::outbox::{Outbox, Stream};

/// How long an interrupt may go unseen.
const SLICE: Duration = Duration::from_millis(50);

/// What Jupyter's clients send as the end of all input.
const END: &str = "\u{4}";

/// Says that the host fetches what this program asks of the web.
const WEB: &str = "TRACEBOOK_WEB";

static ANSWER: Mutex<Option<String>> = Mutex::new(None);
static CAME: Condvar = Condvar::new();

/// Takes the answer that the host sent.
pub(crate) fn answered(text: String) {
    *ANSWER.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    CAME.notify_all();
}

/// Asks and waits. What was asked and answered stands among the output afterwards; a password does not.
pub(crate) fn ask(prompt: &str, password: bool, vm: &VirtualMachine) -> PyResult<String> {
    let Some(outbox) = Outbox::get() else { return Err(vm.new_eof_error("there is nobody to ask".to_owned())) };
    // Whoever stops the cell instead of answering must not wait until the first traceback has its modules. What cannot
    // be loaded is loaded again, and said, where it is needed.
    let _ = vm.import("traceback", 0);
    // One that came too late for the question before.
    ANSWER.lock().unwrap_or_else(PoisonError::into_inner).take();
    vm.allow_threads(|| outbox.send("input_request", json!({"prompt": prompt, "password": password})));
    let Some(answer) = answer(vm)?.filter(|answer| answer.as_str() != END) else {
        if !prompt.is_empty() {
            vm.allow_threads(|| outbox.print(Stream::Out, &format!("{prompt}\n")));
        }
        return Err(vm.new_eof_error("EOF when reading a line".to_owned()));
    };
    let shown = if password { "········" } else { answer.as_str() };
    vm.allow_threads(|| outbox.print(Stream::Out, &format!("{prompt}{shown}\n")));
    Ok(answer)
}

/// Asks the host for something of the web, as JSON, and waits for its answer.
pub(crate) fn web(request: &str, vm: &VirtualMachine) -> PyResult<String> {
    let outbox = Outbox::get().filter(|_| std::env::var_os(WEB).is_some());
    let Some(outbox) = outbox else {
        return Err(vm.new_os_error("this program may not use the network".to_owned()));
    };
    ANSWER.lock().unwrap_or_else(PoisonError::into_inner).take();
    vm.allow_threads(|| outbox.send("web_request", json!({"request": request})));
    Ok(answer(vm)?.unwrap_or_default())
}

/// Waits for what the host sends.
fn answer(vm: &VirtualMachine) -> PyResult<Option<String>> {
    loop {
        let answer = vm.allow_threads(|| {
            let waiting = ANSWER.lock().unwrap_or_else(PoisonError::into_inner);
            let (mut answer, _) = CAME
                .wait_timeout_while(waiting, SLICE, |answer| answer.is_none())
                .unwrap_or_else(PoisonError::into_inner);
            answer.take()
        });
        if answer.is_some() {
            return Ok(answer);
        }
        vm.check_signals()?;
    }
}
