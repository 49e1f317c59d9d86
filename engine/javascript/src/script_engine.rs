//! Runs one call of a JavaScript function in QuickJS, within limits of processor time, memory and stack.
//!
//! It has no files, no network and no processes: it hands requests to a [`ScriptHost`], which decides what is done.
//! Permissions in a call only say which error the function gets.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use rquickjs::context::EvalOptions;
use rquickjs::function::Func;
use rquickjs::{
    ArrayBuffer, CatchResultExt, CaughtError, Context, Ctx, Exception, Function, Object, Promise, Runtime, Value,
};
use serde::{Deserialize, Serialize};

/// Maximum size of a call's result as JSON, in bytes.
pub(crate) const MAX_SCRIPT_RESULT_BYTES: usize = 8 << 20;
/// Memory that QuickJS may use for a call, unless the call says otherwise, in bytes.
pub(crate) const DEFAULT_SCRIPT_MEMORY_BYTES: usize = 256 << 20;
/// Stack that QuickJS may use, in bytes. Unoptimized, a call of a function takes several KiB of it.
const MAX_SCRIPT_STACK_BYTES: usize = 2 << 20;
/// Stack of the thread that runs a script, in bytes: what QuickJS may use, and room for what it calls.
pub(crate) const SCRIPT_THREAD_STACK_BYTES: usize = 16 << 20;
/// Maximum number of requests that wait for the host's answer.
const MAX_WAITING_REQUESTS: usize = 100;
/// Maximum number of timers that run at once.
const MAX_TIMERS: usize = 1_000;
/// Maximum length of an error with its stack, in bytes.
const MAX_ERROR_BYTES: usize = 8 << 10;
/// File name of the functions that a script finds, in stack traces.
const GLOBALS_FILE: &str = "tracebook.js";
const GLOBALS: &str = include_str!("globals.js");

/// One call of a tool's function.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScriptCall {
    /// Name of the tool, for errors.
    pub name: String,
    /// The function, as an expression.
    pub func: String,
    /// The arguments, which the function gets as one object.
    pub arguments: serde_json::Map<String, serde_json::Value>,
    /// What the function may do.
    pub permissions: ScriptPermissions,
    /// Processor time limit, in seconds.
    pub cpu_seconds: u64,
    /// Memory limit, in bytes.
    pub memory_bytes: Option<usize>,
}

/// What a function may ask the host for. The host checks it again.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScriptPermissions {
    /// Web requests.
    pub network: bool,
    /// Files of the project.
    pub fs: bool,
    /// Pictures in the result.
    pub ui: bool,
    /// Shell commands.
    pub process: bool,
}

/// Whoever runs a script: prints for it, and answers its requests.
pub trait ScriptHost {
    /// Shows a line of the console.
    fn print(&self, text: &str);
    /// Shows a bundle of MIME types, as JSON.
    fn show(&self, bundle: &str);
    /// Sends a request, as JSON. There is never more than one without an answer.
    fn send_request(&self, request: &str);
    /// Waits for the answer to the request; `None` if it hasn't come within this time, which is at most a minute.
    fn receive_answer(&self, timeout: Duration) -> Option<String>;
}

/// Why a call has no result.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// The function threw an error, or isn't valid.
    #[error("{name}{}: {message}", at_line(*.line))]
    Thrown {
        /// Name of the tool.
        name: String,
        /// Line of the function, from 1, if it's known.
        line: Option<usize>,
        /// The error and its stack.
        message: String,
    },
    /// It used too much processor time.
    #[error("{name} was stopped{}: it used more than {seconds} s of processor time", at_line(*.line))]
    TooLong {
        /// Name of the tool.
        name: String,
        /// Line of the function, from 1, if it's known.
        line: Option<usize>,
        /// The limit.
        seconds: u64,
    },
    /// It used too much memory.
    #[error("{name} was stopped{}: it used more than {} MB of memory", at_line(*.line), limit >> 20)]
    OutOfMemory {
        /// Name of the tool.
        name: String,
        /// Line of the function, from 1, if it's known.
        line: Option<usize>,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The result is too large.
    #[error("the result of {name} is larger than {} MB; return less", MAX_SCRIPT_RESULT_BYTES >> 20)]
    ResultTooLarge {
        /// Name of the tool.
        name: String,
    },
    /// The result isn't JSON.
    #[error("{0} returned a function or a symbol, which isn't JSON")]
    NotJson(String),
    /// The function awaits something that can no longer happen.
    #[error("{0} never ends: it awaits a promise that nothing settles")]
    NeverSettled(String),
    /// The engine couldn't be started.
    #[error("JavaScript could not be started ({0})")]
    NoEngine(String),
}

fn at_line(line: Option<usize>) -> String {
    line.map(|line| format!(", line {line}")).unwrap_or_default()
}

/// What scripts have asked for and what runs for them.
#[derive(Default)]
struct ScriptQueue {
    last_id: Cell<u32>,
    /// Requests in order; the first one was sent.
    requests: RefCell<VecDeque<(u32, String)>>,
    /// When each timer is due, in order.
    timers: RefCell<BTreeMap<(Instant, u32), ()>>,
}

impl ScriptQueue {
    fn next_id(&self) -> u32 {
        self.last_id.set(self.last_id.get().wrapping_add(1));
        self.last_id.get()
    }

    fn add_request(&self, host: &dyn ScriptHost, request: String) -> Result<u32, &'static str> {
        let mut requests = self.requests.borrow_mut();
        if requests.len() >= MAX_WAITING_REQUESTS {
            return Err("too many requests at once: await them first");
        }
        if requests.is_empty() {
            host.send_request(&request);
        }
        let id = self.next_id();
        requests.push_back((id, request));
        Ok(id)
    }

    /// Removes the request that was answered and sends the next one. Returns its id.
    fn finish_request(&self, host: &dyn ScriptHost) -> Option<u32> {
        let mut requests = self.requests.borrow_mut();
        let (id, _) = requests.pop_front()?;
        if let Some((_, next)) = requests.front() {
            host.send_request(next);
        }
        Some(id)
    }

    fn add_timer(&self, milliseconds: f64) -> Result<u32, &'static str> {
        let mut timers = self.timers.borrow_mut();
        if timers.len() >= MAX_TIMERS {
            return Err("too many timers at once");
        }
        let id = self.next_id();
        let delay = Duration::from_secs_f64(milliseconds.clamp(0.0, 86_400_000.0) / 1_000.0);
        timers.insert((Instant::now() + delay, id), ());
        Ok(id)
    }
}

/// Processor time that this thread has used.
fn cpu_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), u32::try_from(used.tv_nsec).unwrap_or(0))
}

/// Runs a call and returns its result as JSON. The thread needs 16 MiB of stack.
///
/// # Errors
/// Returns an error that names the tool and, where it's known, the line of its function.
pub fn run_script(call: &ScriptCall, host: Rc<dyn ScriptHost>) -> Result<String, ScriptError> {
    let no_engine = |error: rquickjs::Error| ScriptError::NoEngine(error.to_string());
    let runtime = Runtime::new().map_err(no_engine)?;
    let limit = call.memory_bytes.unwrap_or(DEFAULT_SCRIPT_MEMORY_BYTES);
    runtime.set_memory_limit(limit);
    runtime.set_max_stack_size(MAX_SCRIPT_STACK_BYTES);
    let is_interrupted = Rc::new(Cell::new(false));
    let (begun, allowed, flag) = (cpu_time(), Duration::from_secs(call.cpu_seconds.max(1)), is_interrupted.clone());
    runtime.set_interrupt_handler(Some(Box::new(move || {
        flag.set(flag.get() || cpu_time().saturating_sub(begun) >= allowed);
        flag.get()
    })));
    let context = Context::full(&runtime).map_err(no_engine)?;
    context.with(|ctx| {
        let run = ScriptRun { ctx: ctx.clone(), call, host, queue: Rc::default(), is_interrupted, limit };
        run.execute()
    })
}

/// A call while it runs.
struct ScriptRun<'a, 'js> {
    ctx: Ctx<'js>,
    call: &'a ScriptCall,
    host: Rc<dyn ScriptHost>,
    queue: Rc<ScriptQueue>,
    is_interrupted: Rc<Cell<bool>>,
    /// Memory limit in bytes.
    limit: usize,
}

impl<'js> ScriptRun<'_, 'js> {
    fn execute(&self) -> Result<String, ScriptError> {
        let hooks = self.install_globals().catch(&self.ctx).map_err(|caught| self.error_from(caught))?;
        let promise = self.begin(&hooks).catch(&self.ctx).map_err(|caught| self.error_from(caught))?;
        loop {
            while !self.is_interrupted.get() && self.ctx.execute_pending_job() {}
            if let Some(result) = promise.result::<Value<'js>>() {
                let result = result.catch(&self.ctx).map_err(|caught| self.error_from(caught))?;
                return self.to_json(result);
            }
            if self.is_interrupted.get() {
                return Err(self.too_long(None));
            }
            self.wait(&hooks)?;
        }
    }

    /// Evaluates what scripts find. Returns the object of its hooks.
    fn install_globals(&self) -> rquickjs::Result<Object<'js>> {
        let native = Object::new(self.ctx.clone())?;
        let host = self.host.clone();
        native.set("print", Func::from(move |text: String| host.print(&text)))?;
        let host = self.host.clone();
        native.set("show", Func::from(move |bundle: String| host.show(&bundle)))?;
        let (host, queue) = (self.host.clone(), self.queue.clone());
        let request = move |ctx: Ctx<'js>, text: String| {
            queue.add_request(host.as_ref(), text).map_err(|why| Exception::throw_message(&ctx, why))
        };
        native.set("request", Func::from(request))?;
        let queue = self.queue.clone();
        let start = move |ctx: Ctx<'js>, milliseconds: f64| {
            queue.add_timer(milliseconds).map_err(|why| Exception::throw_message(&ctx, why))
        };
        native.set("startTimer", Func::from(start))?;
        let queue = self.queue.clone();
        native.set(
            "stopTimer",
            Func::from(move |id: f64| queue.timers.borrow_mut().retain(|(_, known), ()| f64::from(*known) != id)),
        )?;
        native.set("encodeText", Func::from(|text: String| BASE64.encode(text)))?;
        // A string with a character for each byte.
        let bytes_of = |text: String| text.chars().map(|byte| u8::try_from(byte).unwrap_or(0)).collect::<Vec<u8>>();
        native.set("encodeBytes", Func::from(move |text: String| BASE64.encode(bytes_of(text))))?;
        let decode = |ctx: &Ctx<'js>, text: &str| {
            BASE64.decode(text).map_err(|_| Exception::throw_message(ctx, "the host's answer isn't Base64"))
        };
        native.set(
            "decodeText",
            Func::from(move |ctx: Ctx<'js>, text: String| {
                decode(&ctx, &text).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            }),
        )?;
        native.set(
            "decodeBytes",
            Func::from(move |ctx: Ctx<'js>, text: String| ArrayBuffer::new(ctx.clone(), decode(&ctx, &text)?)),
        )?;
        let granted = Object::new(self.ctx.clone())?;
        let ScriptPermissions { network, fs, ui, process } = self.call.permissions;
        for (key, value) in [("network", network), ("fs", fs), ("ui", ui), ("process", process)] {
            granted.set(key, value)?;
        }
        let mut options = EvalOptions::default();
        options.filename = Some(GLOBALS_FILE.to_owned());
        let install: Function<'js> = self.ctx.eval_with_options(GLOBALS, options)?;
        install.call((native, granted, self.call.name.as_str()))
    }

    /// Evaluates the tool's function and calls it. Returns the promise of its result.
    fn begin(&self, hooks: &Object<'js>) -> rquickjs::Result<Promise<'js>> {
        // In parentheses, because a function's declaration alone has no value. They keep the numbers of lines.
        let func = self.call.func.trim_end().trim_end_matches(';');
        let mut options = EvalOptions::default();
        options.strict = false;
        options.filename = Some(self.file_name());
        let value: Value<'js> = self.ctx.eval_with_options(format!("({func}\n)"), options)?;
        let Some(function) = value.as_function().cloned() else {
            return Err(Exception::throw_type(&self.ctx, "func isn't a function, such as async ({ city }) => { … }"));
        };
        let arguments = serde_json::to_string(&self.call.arguments).unwrap_or_else(|_| "{}".to_owned());
        let arguments = self.ctx.json_parse(arguments)?;
        hooks.get::<_, Function<'js>>("run")?.call((function, arguments))
    }

    /// Waits for the next answer or timer, and hands it to the script.
    fn wait(&self, hooks: &Object<'js>) -> Result<(), ScriptError> {
        let due = self.queue.timers.borrow().keys().next().map(|(due, _)| *due);
        let has_request = !self.queue.requests.borrow().is_empty();
        let most = due.map_or(Duration::from_secs(60), |due| due.saturating_duration_since(Instant::now()));
        let answer = match (has_request, due) {
            (false, None) => return Err(ScriptError::NeverSettled(self.call.name.clone())),
            (true, _) if most.is_zero() => None,
            (true, _) => self.host.receive_answer(most.min(Duration::from_secs(60))),
            (false, Some(_)) => {
                std::thread::sleep(most);
                None
            }
        };
        let happened = match answer {
            Some(answer) => {
                let Some(id) = self.queue.finish_request(self.host.as_ref()) else { return Ok(()) };
                hooks.get::<_, Function<'js>>("settle").and_then(|settle| settle.call::<_, ()>((id, answer)))
            }
            None => {
                let first = self.queue.timers.borrow().keys().next().copied();
                let Some((due, id)) = first.filter(|(due, _)| *due <= Instant::now()) else { return Ok(()) };
                self.queue.timers.borrow_mut().remove(&(due, id));
                hooks.get::<_, Function<'js>>("fire").and_then(|fire| fire.call::<_, ()>((id,)))
            }
        };
        // As in a browser, an error in a timer's function ends the call with that error.
        happened.catch(&self.ctx).map_err(|caught| self.error_from(caught))
    }

    fn to_json(&self, value: Value<'js>) -> Result<String, ScriptError> {
        if value.is_undefined() {
            return Ok("null".to_owned());
        }
        let json = self.ctx.json_stringify(value).catch(&self.ctx).map_err(|caught| self.error_from(caught))?;
        let Some(json) = json else { return Err(ScriptError::NotJson(self.call.name.clone())) };
        let json = json.to_string().catch(&self.ctx).map_err(|caught| self.error_from(caught))?;
        match json.len() > MAX_SCRIPT_RESULT_BYTES {
            true => Err(ScriptError::ResultTooLarge { name: self.call.name.clone() }),
            false => Ok(json),
        }
    }

    fn file_name(&self) -> String {
        format!("{}.js", self.call.name)
    }

    fn too_long(&self, line: Option<usize>) -> ScriptError {
        ScriptError::TooLong { name: self.call.name.clone(), line, seconds: self.call.cpu_seconds.max(1) }
    }

    /// Returns what a caught error says, and where in the function it happened.
    fn error_from(&self, caught: CaughtError<'js>) -> ScriptError {
        let (mut message, stack) = match caught {
            CaughtError::Exception(exception) => {
                let kind = exception.as_object().get::<_, String>("name").unwrap_or_else(|_| "Error".to_owned());
                (format!("{kind}: {}", exception.message().unwrap_or_default()), exception.stack().unwrap_or_default())
            }
            // What can't be shown, such as an object that refuses, is named at least.
            CaughtError::Value(value) => {
                let text = value.get::<rquickjs::Coerced<String>>().map(|text| text.0);
                (format!("it threw {}", text.unwrap_or_else(|_| "what can't be shown".to_owned())), String::new())
            }
            CaughtError::Error(error) => (error.to_string(), String::new()),
        };
        let line = self.line_in(&stack);
        let name = self.call.name.clone();
        if self.is_interrupted.get() {
            return self.too_long(line);
        }
        if message == "InternalError: out of memory" {
            return ScriptError::OutOfMemory { name, line, limit: self.limit };
        }
        let own = |frame: &&str| !frame.trim().is_empty() && !frame.contains(GLOBALS_FILE);
        for frame in stack.lines().filter(own) {
            message.push('\n');
            message.push_str(frame);
        }
        message.truncate(message.floor_char_boundary(MAX_ERROR_BYTES));
        ScriptError::Thrown { name, line, message }
    }

    /// Returns the first line of the function in a stack trace, whose frames end like `(NAME.js:2:5)`.
    fn line_in(&self, stack: &str) -> Option<usize> {
        let file = format!("{}:", self.file_name());
        let rest = stack.split_once(&file)?.1;
        rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Answers every request with the same text, and keeps what was printed.
    #[derive(Default)]
    struct TestHost {
        answer: String,
        printed: RefCell<String>,
    }

    impl ScriptHost for TestHost {
        fn print(&self, text: &str) {
            self.printed.borrow_mut().push_str(text);
        }

        fn show(&self, bundle: &str) {
            self.print(bundle);
        }

        fn send_request(&self, request: &str) {
            self.print(request);
        }

        fn receive_answer(&self, timeout: Duration) -> Option<String> {
            if self.answer.is_empty() {
                std::thread::sleep(timeout);
                return None;
            }
            Some(self.answer.clone())
        }
    }

    fn call(func: &str) -> ScriptCall {
        ScriptCall {
            name: "tool".to_owned(),
            func: func.to_owned(),
            arguments: json!({"city": "Rome"}).as_object().cloned().unwrap_or_default(),
            cpu_seconds: 1,
            memory_bytes: Some(32 << 20),
            ..ScriptCall::default()
        }
    }

    /// Runs a function on a thread with enough stack. Returns its result or error, and what it printed.
    fn run_with(call: ScriptCall, answer: &str) -> (String, String) {
        let answer = answer.to_owned();
        let run = move || {
            let host = Rc::new(TestHost { answer, ..TestHost::default() });
            let done = run_script(&call, host.clone()).unwrap_or_else(|error| error.to_string());
            (done, host.printed.borrow().clone())
        };
        let thread = std::thread::Builder::new().stack_size(SCRIPT_THREAD_STACK_BYTES).spawn(run);
        thread.expect("a thread").join().expect("no panic")
    }

    #[track_caller]
    fn check(func: &str, expected: &str) {
        assert_eq!(run_with(call(func), "").0, expected, "{func}");
    }

    #[test]
    fn a_function_gets_its_arguments_and_returns_json() {
        check("async ({ city }) => { return city.toUpperCase(); }", "\"ROME\"");
        check("function named(args) { return [args.city, 1.5, null]; };", "[\"Rome\",1.5,null]");
        check("// a comment\nasync args => args", "{\"city\":\"Rome\"}");
        check("() => undefined", "null");
        check("async () => { await new Promise(done => setTimeout(done, 20)); return 7; }", "7");
        check("() => (() => 1)", "tool returned a function or a symbol, which isn't JSON");
        check("() => new Promise(() => {})", "tool never ends: it awaits a promise that nothing settles");
        check("async () => Promise.race([new Promise(() => {}), new Promise(r => setTimeout(() => r(3), 5))])", "3");
        let (_, printed) = run_with(call("() => { console.log('a', {b: 1}, new Error('c')); }"), "");
        assert_eq!(printed, "a {\"b\":1} Error: c\n");
    }

    #[test]
    fn errors_name_the_tool_and_the_line() {
        check(
            "({ city }) => {\n  const x = 1;\n  return x.foo.bar;\n}",
            "tool, line 3: TypeError: cannot read property 'bar' of undefined\n    at <anonymous> (tool.js:3:10)",
        );
        let broken = run_with(call("() => {\n  let x = ;\n}"), "").0;
        assert!(broken.starts_with("tool, line 2: SyntaxError: unexpected token"), "{broken}");
        check("() => { throw 'words'; }", "tool: it threw words");
        check("() => { throw { get toString() { throw 1; } }; }", "tool: it threw what can't be shown");
        let late = run_with(
            call("() => {\n setTimeout(() => { throw new Error('late'); }, 1);\n return new Promise(() => {}); }"),
            "",
        )
        .0;
        assert!(late.starts_with("tool, line 2: Error: late"), "{late}");
        let five = run_with(call("5"), "").0;
        assert!(five.starts_with("tool: TypeError: func isn't a function"), "{five}");
    }

    #[test]
    fn a_function_is_stopped_at_its_limits() {
        let too_long = "it used more than 1 s of processor time";
        check("() => { while (true) {} }", &format!("tool was stopped, line 1: {too_long}"));
        check("async () => { for (;;) await null; }", &format!("tool was stopped: {too_long}"));
        check("() => /^(a+)+$/.test('a'.repeat(40) + 'b')", &format!("tool was stopped, line 1: {too_long}"));
        // What it catches doesn't save it.
        let caught = "async () => { try { for (;;) {} } catch { for (;;) {} } finally { for (;;) {} } }";
        check(caught, &format!("tool was stopped, line 1: {too_long}"));
        let too_much = "tool was stopped, line 1: it used more than 32 MB of memory";
        check("() => { const all = []; for (;;) all.push('x'.repeat(100000)); }", too_much);
        check("() => [].fill.call({ length: 2 ** 40 }, 0)", too_much);
        check("() => 'x'.repeat(9000000)", "the result of tool is larger than 8 MB; return less");
        for deep in [
            "() => { const f = () => f() + 1; return f(); }",
            "() => { let a = []; for (let i = 0; i < 100000; i++) a = [a]; return a; }",
            "() => JSON.parse('['.repeat(1000000))",
            "() => new RegExp('('.repeat(100000) + ')'.repeat(100000))",
        ] {
            let said = run_with(call(deep), "").0;
            assert!(said.contains("RangeError") || said.contains("SyntaxError"), "{deep}: {said}");
        }
    }

    #[test]
    fn what_is_not_granted_is_refused_by_name() {
        for (func, why) in [
            ("() => fetch('https://example.org/')", "Error: tool has no network permission"),
            ("() => fs.readFile('a.md')", "Error: tool has no fs permission"),
            ("() => ui.show({})", "Error: tool has no ui permission"),
            ("() => shell('true')", "Error: tool has no process permission"),
            ("() => Function('return fetch(\"https://example.org/\")')()", "Error: tool has no network permission"),
            ("() => (0, eval)('fs.readFile(\"a.md\")')", "Error: tool has no fs permission"),
            ("() => import('os')", "ReferenceError: could not load module 'os'"),
        ] {
            let (said, sent) = run_with(call(func), "{}");
            assert!(said.contains(why) && sent.is_empty(), "{func}: {said} {sent}");
        }
        check(
            "() => [typeof require, typeof std, typeof os, typeof native, typeof process]",
            "[\"undefined\",\"undefined\",\"undefined\",\"undefined\",\"undefined\"]",
        );
    }

    #[test]
    fn requests_go_to_the_host_and_their_answers_come_back() {
        let permissions = ScriptPermissions { network: true, fs: true, ..ScriptPermissions::default() };
        let answer = r#"{"status": 201, "url": "u", "headers": [["X-A", "b"]], "body": "eyJhIjoxfQ=="}"#;
        let func = "async ({ city }) => { const answer = await fetch('https://x/' + city, \
            { method: 'post', headers: { A: 'b' }, body: new Uint8Array([0, 255]) });\
            return [answer.ok, answer.status, answer.headers.get('x-a'), await answer.json()]; }";
        let (said, sent) = run_with(ScriptCall { permissions, ..call(func) }, answer);
        assert_eq!(said, "[true,201,\"b\",{\"a\":1}]");
        assert_eq!(
            sent,
            "{\"url\":\"https://x/Rome\",\"method\":\"POST\",\"headers\":{\"a\":\"b\"},\"body\":\"AP8=\"}"
        );
        let many = "async () => { await Promise.all(Array.from({ length: 101 }, () => fetch('u'))); }";
        let (said, _) = run_with(ScriptCall { permissions, ..call(many) }, "");
        assert!(said.contains("too many requests at once"), "{said}");
        let (said, _) =
            run_with(ScriptCall { permissions, ..call("() => fs.readFile('a.md')") }, "{\"body\": \"w6Q=\"}");
        assert_eq!(said, "\"ä\"");
        let refused =
            run_with(ScriptCall { permissions, ..call("() => fetch('u')") }, "{\"error\": \"no such host\"}").0;
        assert!(refused.contains("fetch failed: no such host"), "{refused}");
    }
}
