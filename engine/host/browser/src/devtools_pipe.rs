//! The DevTools protocol over a pipe: each message is JSON followed by a zero byte
//! (<https://chromedevtools.github.io/devtools-protocol/>). Unlike the protocol's socket, no other process can connect
//! to it, and the browser ends when it's closed.

use crate::BrowserError;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum size of a message in bytes.
const MAX_MESSAGE_BYTES: u64 = 48 << 20;
/// Interval for checking whether a call was canceled.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long something may take, and whether it's still wanted.
#[derive(Clone, Copy)]
pub(crate) struct CallLimit<'a> {
    pub(crate) is_stopped: &'a dyn Fn() -> bool,
}

impl CallLimit<'_> {
    /// Sleeps briefly.
    ///
    /// # Errors
    /// Returns an error if the call was canceled.
    pub(crate) fn pause(&self, time: Duration) -> Result<(), BrowserError> {
        let until = Instant::now() + time;
        loop {
            if (self.is_stopped)() {
                return Err(BrowserError::Cancelled);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(POLL_INTERVAL));
        }
    }
}

/// An event of the browser.
pub(crate) struct DevToolsEvent {
    /// The session of the tab; empty for the browser itself.
    pub(crate) session: String,
    pub(crate) method: String,
    pub(crate) params: Value,
}

#[derive(Default)]
struct PipeState {
    last_id: u64,
    /// Commands whose answer someone waits for.
    waiting: HashMap<u64, Option<Result<Value, PipeFailure>>>,
    has_ended: bool,
}

enum PipeFailure {
    Refused(String),
    TooLarge,
}

/// A connection to a browser.
pub(crate) struct DevToolsPipe {
    input: Mutex<Box<dyn Write + Send>>,
    state: Mutex<PipeState>,
    changed: Condvar,
}

impl DevToolsPipe {
    pub(crate) fn new(input: impl Write + Send + 'static) -> DevToolsPipe {
        DevToolsPipe { input: Mutex::new(Box::new(input)), state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, PipeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, id: u64, session: &str, method: &str, params: &Value) {
        let mut message = json!({"id": id, "method": method, "params": params});
        if !session.is_empty() {
            message["sessionId"] = Value::String(session.to_owned());
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        if input.write_all(&bytes).and_then(|()| input.flush()).is_err() {
            drop(input);
            self.end(); // the browser is gone
        }
    }

    /// Sends a command whose answer doesn't matter.
    pub(crate) fn send(&self, session: &str, method: &str, params: &Value) {
        let id = {
            let mut state = self.state();
            state.last_id += 1;
            state.last_id
        };
        self.write(id, session, method, params);
    }

    /// Sends a command and waits for its answer.
    ///
    /// # Errors
    /// Returns an error if the browser refuses it, doesn't answer in time or is gone, or if the call was canceled.
    pub(crate) fn request(
        &self,
        session: &str,
        method: &'static str,
        params: &Value,
        (limit, time): (CallLimit<'_>, Duration),
    ) -> Result<Value, BrowserError> {
        let id = {
            let mut state = self.state();
            state.last_id += 1;
            let id = state.last_id;
            state.waiting.insert(id, None);
            id
        };
        self.write(id, session, method, params);
        let until = Instant::now() + time;
        let mut state = self.state();
        loop {
            if let Some(Some(_)) = state.waiting.get(&id) {
                let answer = state.waiting.remove(&id).flatten();
                return match answer {
                    Some(Ok(value)) => Ok(value),
                    Some(Err(PipeFailure::TooLarge)) => Err(BrowserError::TooLarge),
                    Some(Err(PipeFailure::Refused(why))) => Err(BrowserError::Command { method, why }),
                    None => Err(BrowserError::Ended(String::new())),
                };
            }
            let why = match (state.has_ended, (limit.is_stopped)(), Instant::now() >= until) {
                (true, ..) => Some(BrowserError::Ended("it has ended".to_owned())),
                (_, true, _) => Some(BrowserError::Cancelled),
                (.., true) => Some(BrowserError::TimedOut { what: "the page".to_owned(), limit: time }),
                (false, false, false) => None,
            };
            if let Some(why) = why {
                state.waiting.remove(&id);
                return Err(why);
            }
            state = self.changed.wait_timeout(state, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn end(&self) {
        self.state().has_ended = true;
        self.changed.notify_all();
    }

    fn answer(&self, id: u64, answer: Result<Value, PipeFailure>) {
        if let Some(waiting) = self.state().waiting.get_mut(&id) {
            *waiting = Some(answer);
        }
        self.changed.notify_all();
    }

    /// Fails all commands that are waited for, because the answer to one of them was too large to be read.
    fn fail_all(&self) {
        self.state().waiting.values_mut().for_each(|waiting| *waiting = Some(Err(PipeFailure::TooLarge)));
        self.changed.notify_all();
    }

    /// Reads all that the browser sends until it ends. `on_event` must not wait for an answer.
    pub(crate) fn read_all(&self, output: impl Read, on_event: impl Fn(DevToolsEvent)) {
        let mut output = BufReader::new(output);
        let mut message = Vec::new();
        while let Ok(1..) = (&mut output).take(MAX_MESSAGE_BYTES).read_until(0, &mut message) {
            if message.pop() != Some(0) {
                // The rest of what is too large is dropped without being kept.
                self.fail_all();
                if !skip_message(&mut output) {
                    break;
                }
            } else if let Ok(value) = serde_json::from_slice::<Value>(&message) {
                self.take_message(value, &on_event);
            }
            message.clear();
        }
        self.end();
    }

    fn take_message(&self, mut value: Value, on_event: &impl Fn(DevToolsEvent)) {
        if let Some(id) = value["id"].as_u64() {
            let answer = match value["error"]["message"].as_str() {
                Some(why) => Err(PipeFailure::Refused(why.chars().take(300).collect())),
                None => Ok(value["result"].take()),
            };
            return self.answer(id, answer);
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (session, method) = (text(&value["sessionId"]), text(&value["method"]));
        on_event(DevToolsEvent { session, method, params: value["params"].take() });
    }
}

/// Skips the rest of a message. Returns whether another one may follow.
fn skip_message(output: &mut impl BufRead) -> bool {
    loop {
        let Ok(bytes) = output.fill_buf() else { return false };
        if bytes.is_empty() {
            return false;
        }
        let end = bytes.iter().position(|byte| *byte == 0);
        let count = end.map_or(bytes.len(), |end| end + 1);
        output.consume(count);
        if end.is_some() {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn answers_find_their_commands_and_events_their_handler() {
        let (commands, input) = std::io::pipe().expect("a pipe");
        let (output, mut answers) = std::io::pipe().expect("a pipe");
        let pipe = DevToolsPipe::new(input);
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            // A browser that answers in its own way, and then ends.
            scope.spawn(move || {
                let mut commands = BufReader::new(commands);
                for id in 1..=3 {
                    let mut command = Vec::new();
                    commands.read_until(0, &mut command).expect("a command");
                    command.pop();
                    let command: Value = serde_json::from_slice(&command).expect("JSON");
                    assert_eq!((&command["id"], &command["method"]), (&json!(id), &json!("X.y")));
                    let answer = match id {
                        1 => format!("{{\"id\": 1, \"result\": \"{}\"}}\0", "x".repeat(49 << 20)),
                        2 => "nonsense\0{\"id\": 2, \"error\": {\"message\": \"no\"}}\0".to_owned(),
                        _ => "{\"method\": \"A.b\", \"sessionId\": \"s\", \"params\": 1}\0\
                              {\"id\": 3, \"result\": {\"b\": 2}}\0"
                            .to_owned(),
                    };
                    answers.write_all(answer.as_bytes()).expect("sent");
                }
            });
            scope.spawn(|| {
                pipe.read_all(output, |event| _ = tell.send((event.session, event.method, event.params)));
            });
            let limit = CallLimit { is_stopped: &|| false };
            let ask = || pipe.request("", "X.y", &json!({}), (limit, Duration::from_secs(20)));
            assert!(matches!(ask(), Err(BrowserError::TooLarge)));
            assert!(matches!(ask(), Err(BrowserError::Command { why, .. }) if why == "no"));
            assert_eq!(ask().expect("an answer"), json!({"b": 2}));
            assert_eq!(told.recv().expect("an event"), ("s".to_owned(), "A.b".to_owned(), json!(1)));
            assert!(matches!(ask(), Err(BrowserError::Ended(_))));
        });
        let stopped = CallLimit { is_stopped: &|| true };
        assert!(matches!(stopped.pause(Duration::from_secs(60)), Err(BrowserError::Cancelled)));
    }
}
