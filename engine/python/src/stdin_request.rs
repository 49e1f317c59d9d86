//! Asks the user for a line of text for a cell. The question is sent like other messages; the answer arrives through
//! the reading thread. While it waits, the cell can be interrupted.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustpython_vm::{PyResult, VirtualMachine};
use serde_json::json;

use crate::outbox::{KernelOutbox, OutputStream};

/// Maximum delay until an interrupt is noticed.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Text that Jupyter clients send for the end of input.
const END_OF_INPUT: &str = "\u{4}";

/// Environment variable that is set if the host makes web requests for this program.
const WEB_ENV_VAR: &str = "TRACEBOOK_WEB";

static INPUT_ANSWER: Mutex<Option<String>> = Mutex::new(None);
static INPUT_ANSWERED: Condvar = Condvar::new();

/// Stores an answer from the host and wakes the waiting cell.
pub(crate) fn deliver_answer(text: String) {
    *INPUT_ANSWER.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    INPUT_ANSWERED.notify_all();
}

/// Asks the user for a line and waits for it. Prompt and answer become part of the output; a password is masked.
pub(crate) fn ask_user(prompt: &str, password: bool, vm: &VirtualMachine) -> PyResult<String> {
    let Some(outbox) = KernelOutbox::get() else { return Err(vm.new_eof_error("there is nobody to ask".to_owned())) };
    // Load it now, so that stopping the cell doesn't wait for the first traceback's modules. A failure is reported when
    // it's needed.
    let _ = vm.import("traceback", 0);
    // Drop a late answer to the previous question.
    INPUT_ANSWER.lock().unwrap_or_else(PoisonError::into_inner).take();
    vm.allow_threads(|| outbox.send("input_request", json!({"prompt": prompt, "password": password})));
    let Some(answer) = wait_for_answer(vm)?.filter(|answer| answer.as_str() != END_OF_INPUT) else {
        if !prompt.is_empty() {
            vm.allow_threads(|| outbox.print_text(OutputStream::Out, &format!("{prompt}\n")));
        }
        return Err(vm.new_eof_error("EOF when reading a line".to_owned()));
    };
    let shown = if password { "········" } else { answer.as_str() };
    vm.allow_threads(|| outbox.print_text(OutputStream::Out, &format!("{prompt}{shown}\n")));
    Ok(answer)
}

/// Returns whether the host answers requests of this program.
pub(crate) fn asks_host() -> bool {
    std::env::var_os(WEB_ENV_VAR).is_some()
}

/// Asks the host to make a web request, given as JSON, and waits for its answer.
pub(crate) fn request_web(request: &str, vm: &VirtualMachine) -> PyResult<String> {
    let outbox = KernelOutbox::get().filter(|_| asks_host());
    let Some(outbox) = outbox else {
        return Err(vm.new_os_error("this program may not use the network or run commands".to_owned()));
    };
    INPUT_ANSWER.lock().unwrap_or_else(PoisonError::into_inner).take();
    vm.allow_threads(|| outbox.send("web_request", json!({"request": request})));
    Ok(wait_for_answer(vm)?.unwrap_or_default())
}

/// Waits for an answer from the host, while checking for interrupts.
fn wait_for_answer(vm: &VirtualMachine) -> PyResult<Option<String>> {
    loop {
        let answer = vm.allow_threads(|| {
            let waiting = INPUT_ANSWER.lock().unwrap_or_else(PoisonError::into_inner);
            let (mut answer, _) = INPUT_ANSWERED
                .wait_timeout_while(waiting, SIGNAL_CHECK_INTERVAL, |answer| answer.is_none())
                .unwrap_or_else(PoisonError::into_inner);
            answer.take()
        });
        if answer.is_some() {
            return Ok(answer);
        }
        vm.check_signals()?;
    }
}
