//! The Python kernel from outside: requests in, messages out, as the host sees them.
//!
//! Each test starts its own process and talks to it only through the protocol.

mod arrays;
mod asking;
#[cfg(target_os = "linux")]
mod environment;
mod figures;
#[cfg(target_os = "linux")]
mod frames;
mod gallery;
mod ipython_syntax;
pub(crate) mod jupyter;
mod jupyter_displays;
mod note_runs;
pub(crate) mod plots;
pub(crate) mod python_setup;
mod reactive;
mod science;
mod tutorials;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::program::assert_fast;
use serde_json::{Value, json};

/// The maximum wait, generous for a busy machine. Nothing takes this long unless it's broken.
const PATIENCE: Duration = Duration::from_secs(120);

struct Kernel {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// The first message, which describes the kernel.
    info: Value,
    requests: usize,
}

impl Kernel {
    fn start() -> Kernel {
        Kernel::start_in(std::path::Path::new("."))
    }

    /// Starts a kernel whose cells can access this folder.
    fn start_in(folder: &std::path::Path) -> Kernel {
        Kernel::with(&["kernel".as_ref()], folder)
    }

    /// Starts the bridge to the Jupyter kernel that this spec file describes.
    fn bridge(spec: &std::path::Path, folder: &std::path::Path) -> Kernel {
        Kernel::with(&["kernel".as_ref(), "--jupyter".as_ref(), spec], folder)
    }

    fn with(words: &[&std::path::Path], folder: &std::path::Path) -> Kernel {
        use std::os::unix::process::CommandExt;
        let mut child = Command::new(env!("CARGO_BIN_EXE_tracebook-under-test"))
            .args(words)
            .current_dir(folder)
            .process_group(0) // as the host starts it
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the kernel starts");
        let input = child.stdin.take();
        let output = child.stdout.take().expect("its output is a pipe");
        let (sender, messages) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line:?}"));
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let info = messages.recv_timeout(PATIENCE).expect("the kernel says that it is ready");
        Kernel { child, input, messages, info, requests: 0 }
    }

    fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the kernel's input is open");
        input.write_all(bytes).and_then(|()| input.flush()).expect("the kernel reads");
    }

    /// Sends a request and returns its id.
    fn send(&mut self, msg_type: &str, content: Value) -> String {
        self.requests += 1;
        let id = self.requests.to_string();
        let header = json!({"msg_type": msg_type, "msg_id": id});
        self.write(format!("{}\n", json!({"header": header, "parent_header": {}, "content": content})).as_bytes());
        id
    }

    fn execute(&mut self, code: &str) -> String {
        self.send("execute_request", json!({"code": code, "cell": "cell 2", "silent": false}))
    }

    fn message(&self) -> Value {
        self.messages.recv_timeout(PATIENCE).expect("a message comes")
    }

    /// The messages that the request `id` caused, one line each, with adjacent stream pieces joined. Checks that they
    /// start with busy and end with idle, and that every message of a cell names its request.
    fn outcome(&self, id: &str) -> String {
        self.rest(id, true)
    }

    /// Like `outcome`, when some of the messages have already been read.
    fn outcome_after(&self, id: &str) -> String {
        self.rest(id, false)
    }

    fn rest(&self, id: &str, whole: bool) -> String {
        let mut lines: Vec<String> = Vec::new();
        let mut stream = Value::Null;
        loop {
            let message = self.message();
            let (kind, content) = (message["header"]["msg_type"].clone(), &message["content"]);
            // They come at any time.
            if kind == "interrupt_reply" || kind == "state_saved" {
                continue;
            }
            assert_eq!(message["parent_header"]["msg_id"], id, "{message}");
            let name = if kind == "stream" { content["name"].clone() } else { Value::Null };
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            match kind.as_str().unwrap_or_default() {
                "status" if content["execution_state"] == "busy" => {
                    assert!(whole && lines.is_empty(), "busy comes first")
                }
                "status" => break,
                "stream" if name == stream => {
                    let last = lines.last_mut().expect("there is a piece before this one");
                    last.push_str(&text(&content["text"]));
                }
                "stream" => lines.push(format!("{} {}", text(&name), text(&content["text"]))),
                "execute_result" => {
                    lines.push(format!("[{}] {}", content["execution_count"], text(&content["data"]["text/plain"])))
                }
                "display_data" => lines.push(format!("display {}", content["data"])),
                "update_display_data" => lines.push(format!("updated {}", content["data"])),
                "clear_output" => lines.push(format!("cleared, wait {}", content["wait"])),
                "error" => {
                    lines.push(format!("{}: {}", text(&content["ename"]), text(&content["evalue"])));
                    let traceback = content["traceback"].as_array().cloned().unwrap_or_default();
                    lines.extend(traceback.iter().map(|line| format!("| {}", text(line))));
                }
                "execute_reply" => lines.push(text(&content["status"])),
                other => panic!("unexpected {other}: {message}"),
            }
            stream = name;
        }
        lines.join("\n")
    }

    fn run(&mut self, code: &str) -> String {
        let id = self.execute(code);
        self.outcome(&id)
    }

    /// Interrupts `code` once it has printed. Returns how it ended and how long that took.
    fn interrupt(&mut self, code: &str) -> (String, Duration) {
        self.execute(&format!("print('running')\n{code}"));
        while self.message()["header"]["msg_type"] != "stream" {}
        thread::sleep(Duration::from_millis(100)); // so that it blocks, or loops
        let start = Instant::now();
        self.send("interrupt_request", json!({}));
        let outcome = loop {
            let message = self.message();
            match message["header"]["msg_type"].as_str() {
                Some("error") => break message["content"]["ename"].as_str().unwrap_or_default().to_owned(),
                Some("execute_reply") => panic!("not interrupted: {code}"),
                _ => {}
            }
        };
        let took = start.elapsed();
        while self.message()["content"]["execution_state"] != "idle" {}
        (outcome, took)
    }

    fn ends(mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the kernel is ours") {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "the kernel does not end");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // The process may have ended already, as some tests want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn check(kernel: &mut Kernel, code: &str, expected: &str) {
    assert_eq!(kernel.run(code), expected, "{code}");
}

#[test]
fn says_what_it_is() {
    let mut kernel = Kernel::start();
    assert_eq!(kernel.info["header"]["msg_type"], "kernel_info_reply");
    assert_eq!(kernel.info["parent_header"], json!({}));
    assert_eq!(kernel.info["content"]["implementation"], "tracebook");
    assert_eq!(kernel.info["content"]["language_info"]["name"], "python");
    let id = kernel.send("kernel_info_request", json!({}));
    let again = kernel.message();
    assert_eq!(again["parent_header"]["msg_id"], *id);
    assert_eq!(again["content"], kernel.info["content"]);
}

#[test]
fn files_are_read_and_written_as_utf_8() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("names.csv"), "Zoë,日本\n").expect("written");
    let kernel = &mut Kernel::start_in(folder.path());
    check(kernel, "open('names.csv').read()", "[1] 'Zoë,日本\\n'\nok");
    check(kernel, "import csv\nlist(csv.reader(open('names.csv')))", "[2] [['Zoë', '日本']]\nok");
    check(kernel, "import pathlib\npathlib.Path('new.txt').write_text('ü')", "[3] 1\nok");
    assert_eq!(std::fs::read(folder.path().join("new.txt")).expect("read"), "ü".as_bytes());
}

#[cfg(unix)]
#[test]
fn time_zones_are_those_of_the_system() {
    if !std::path::Path::new("/usr/share/zoneinfo/Europe/Paris").exists() {
        return;
    }
    let code = "import datetime, zoneinfo\n\
                datetime.datetime(2020, 7, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Paris')).utcoffset()";
    check(&mut Kernel::start(), code, "[1] datetime.timedelta(seconds=7200)\nok");
}

#[test]
fn no_package_is_advised_for_a_part_of_the_standard_library() {
    let error = Kernel::start().run("import ctypes");
    assert!(error.starts_with("ModuleNotFoundError: No module named '_ctypes' (the built-in Python"), "{error}");
    assert!(error.contains("`tracebook kernels env NOTE`)") && !error.contains("--add"), "{error}");
}

#[test]
fn the_last_expression_has_a_value() {
    let kernel = &mut Kernel::start();
    check(kernel, "1 + 1", "[1] 2\nok");
    check(kernel, "x = 3\n[x,\n x]", "[2] [3, 3]\nok");
    check(kernel, "x; 'doc'", "[3] 'doc'\nok");
    check(kernel, "_", "[4] 'doc'\nok");
    check(kernel, "x;", "ok");
    check(kernel, "x  ;  # quiet", "ok");
    check(kernel, "None", "ok");
    check(kernel, "", "ok");
    check(kernel, "# nothing", "ok");
    check(kernel, "def f(): pass", "ok");
    check(kernel, "class C: pass", "ok");
    check(kernel, "if x:\n    5", "ok");
    check(kernel, "_", "[13] 'doc'\nok");
    check(kernel, "'Grüße ☃ 😀 \\ud800'", "[14] 'Grüße ☃ 😀 \\ud800'\nok");
    // Silent execution: no value, no count, and `_` is unchanged.
    let id = kernel.send("execute_request", json!({"code": "print(x); 7", "silent": true}));
    assert_eq!(kernel.outcome(&id), "stdout 3\n\nok");
    check(kernel, "_", "[15] 'Grüße ☃ 😀 \\ud800'\nok");
}

#[test]
fn variables_functions_classes_and_imports_are_kept() {
    let kernel = &mut Kernel::start();
    check(kernel, "import pickle, sys\nx = 2", "ok");
    check(kernel, "def double(y): return x * y", "ok");
    check(kernel, "class Point:\n    def __init__(self, a): self.a = a", "ok");
    check(
        kernel,
        "1 / 0; x = 99",
        &top_level_error("ZeroDivisionError: division by zero", 1, "1 / 0; x = 99", "~~^~~"),
    );
    check(kernel, "double(21)", "[5] 42\nok");
    check(kernel, "pickle.loads(pickle.dumps(Point(4))).a, __name__", "[6] (4, '__main__')\nok");
    check(kernel, "sys.modules['__main__'].__dict__ is globals()", "[7] True\nok");
}

/// The expected outcome of an error at the top level of "cell 2".
fn top_level_error(words: &str, line: usize, source: &str, marks: &str) -> String {
    format!(
        "{words}\n| Traceback (most recent call last):\n|   File \"cell 2\", line {line}, in <module>\n\
         |     {source}\n|     {marks}\n| {words}\nerror"
    )
}

#[test]
fn streams_come_in_order_and_before_what_follows() {
    let kernel = &mut Kernel::start();
    let code = "import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c', end='')\ndisplay(4)\nprint('ü')\n5";
    let expected = "stdout a\n\nstderr b\n\nstdout c\ndisplay {\"text/plain\":\"4\"}\nstdout ü\n\n[1] 5\nok";
    check(kernel, code, expected);
    check(kernel, "sys.stdout.write('x'); sys.stdout.writelines(['y', 'z']);", "stdout xyz\nok");
    check(kernel, "print('\\ud800')", "stdout \u{fffd}\n\nok");
}

/// Each run of a cell warns once, whatever earlier runs have warned about.
fn check_warnings(kernel: &mut Kernel) {
    kernel.run("import warnings\ndef odd():\n    warnings.warn('odd')");
    for _ in 0..2 {
        let said = kernel.run("odd()\nodd()");
        assert_eq!(said.matches("UserWarning: odd").count(), 1, "{said}");
    }
}

#[test]
fn each_run_of_a_cell_warns() {
    check_warnings(&mut Kernel::start());
}

#[test]
fn text_appears_while_the_cell_runs() {
    let mut kernel = Kernel::start();
    // It runs for longer than any message is waited for.
    let id = kernel.execute("import time\nprint('now', end='')\ntime.sleep(600)");
    let start = Instant::now();
    let message = loop {
        let message = kernel.message();
        if message["header"]["msg_type"] == "stream" {
            break message;
        }
    };
    assert_eq!(message["content"]["text"], "now");
    assert_eq!(message["parent_header"]["msg_id"], *id);
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn many_prints_are_few_messages() {
    let mut kernel = Kernel::start();
    let id = kernel.execute("for i in range(100_000): print(i)");
    let (mut text, mut messages) = (String::new(), 0);
    loop {
        let message = kernel.message();
        if message["header"]["msg_type"] == "stream" {
            messages += 1;
            text.push_str(message["content"]["text"].as_str().unwrap_or_default());
        } else if message["content"]["execution_state"] == "idle" {
            break;
        }
        assert_eq!(message["parent_header"]["msg_id"], *id);
    }
    assert!(text.lines().map(str::to_owned).eq((0..100_000).map(|i| i.to_string())));
    assert!(messages < 2_000, "{messages}");
}

#[test]
fn an_endless_print_is_cut_off_and_can_be_interrupted() {
    let mut kernel = Kernel::start();
    kernel.execute("kept = 1\nwhile True: print('x' * 10_000)");
    let (mut printed, mut notice) = (0, String::new());
    while notice.is_empty() {
        let message = kernel.message();
        let text = message["content"]["text"].as_str().unwrap_or_default();
        if message["content"]["name"] == "stdout" {
            printed += text.len();
        } else {
            notice.push_str(text);
        }
    }
    assert_eq!(notice, "output limit of 8 MiB reached; the rest is dropped\n");
    assert_eq!(printed, 8 << 20);
    kernel.send("interrupt_request", json!({}));
    loop {
        let message = kernel.message();
        assert_ne!(message["header"]["msg_type"], "stream");
        if message["content"]["execution_state"] == "idle" {
            break;
        }
    }
    check(&mut kernel, "print('again'); kept", "stdout again\n\n[2] 1\nok");
}

#[test]
fn a_traceback_shows_the_cell_and_nothing_of_the_kernel() {
    let kernel = &mut Kernel::start();
    let expected = "\
ZeroDivisionError: division by zero
| Traceback (most recent call last):
|   File \"cell 2\", line 5, in <module>
|     f(1)
|     ~^^^
|   File \"cell 2\", line 3, in f
|     return 1 / y
|            ~~^~~
| ZeroDivisionError: division by zero
error";
    check(kernel, "def f(x):\n    y = x - 1\n    return 1 / y\n\nf(1)", expected);
    // The traceback shows the lines that ran, even after the cell was edited.
    let expected = "\
ZeroDivisionError: division by zero
| Traceback (most recent call last):
|   File \"cell 2\", line 1, in <module>
|     f(1)  # edited
|     ~^^^
|   File \"cell 2 (an earlier run)\", line 3, in f
|     return 1 / y
|            ~~^~~
| ZeroDivisionError: division by zero
error";
    check(kernel, "f(1)  # edited", expected);
    let code = "try:\n    {}['a']\nexcept KeyError as error:\n    raise ValueError('no') from error";
    let expected = "\
ValueError: no
| Traceback (most recent call last):
|   File \"cell 2\", line 2, in <module>
|     {}['a']
|     ~~^^^^^
| KeyError: 'a'
| 
| The above exception was the direct cause of the following exception:
| 
| Traceback (most recent call last):
|   File \"cell 2\", line 4, in <module>
|     raise ValueError('no') from error
| ValueError: no
error";
    check(kernel, code, expected);
    // The call passes through the kernel's own `display` and back into the cell's code.
    let code = "class R:\n    def __repr__(self): raise ValueError('broken')\ndisplay(R())";
    let expected = "\
ValueError: broken
| Traceback (most recent call last):
|   File \"cell 2\", line 3, in <module>
|     display(R())
|     ~~~~~~~^^^^^
|   File \"cell 2\", line 2, in __repr__
|     def __repr__(self): raise ValueError('broken')
|                         ^^^^^^^^^^^^^^^^^^^^^^^^^^
| ValueError: broken
error";
    check(kernel, code, expected);
    let outcome = kernel.run("def deep(n): return deep(n + 1)\ndeep(0)");
    assert!(outcome.contains("[Previous line repeated 9"), "{outcome}");
    assert!(outcome.lines().count() < 30, "{outcome}");
    check(kernel, "'alive'", "[6] 'alive'\nok");
}

#[test]
fn a_syntax_error_shows_its_line_and_nothing_runs() {
    let kernel = &mut Kernel::start();
    let expected = "\
SyntaxError: '(' was never closed (cell 2, line 2)
|   File \"cell 2\", line 2
|     x = (1,
|         ^
| SyntaxError: '(' was never closed
error";
    check(kernel, "print('never')\nx = (1,\n", expected);
    let expected = "\
SyntaxError: 'return' outside function (cell 2, line 2)
|   File \"cell 2\", line 2
|     return 2
|     ^^^^^^^^
| SyntaxError: 'return' outside function
error";
    check(kernel, "print('never')\nreturn 2", expected);
    let outcome = kernel.run(&"(".repeat(100_000));
    assert!(outcome.starts_with("SyntaxError: too many nested parentheses"), "{outcome:.200}");
    check(kernel, "'alive'", "[4] 'alive'\nok");
}

#[test]
fn values_are_shown_in_all_their_forms() {
    let mut kernel = Kernel::start();
    let code = "
class Rich:
    def __repr__(self): return 'plain'
    def _repr_html_(self): return '<b>é</b>'
    def _repr_markdown_(self): return '**b**'
    def _repr_svg_(self): return '<svg/>'
    def _repr_png_(self): return b'\\x89PNG'
    def _repr_latex_(self): return '$x$'
    def _repr_json_(self): return {'a': [1, None]}
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {'application/x.test+json': {'b': 2}}, {'from': 'bundle'}
Rich()";
    let id = kernel.execute(code);
    let content = loop {
        let message = kernel.message();
        assert_eq!(message["parent_header"]["msg_id"], *id);
        if message["header"]["msg_type"] == "execute_result" {
            break message["content"].clone();
        }
    };
    let data = json!({
        "text/plain": "plain",
        "text/html": "<b>é</b>",
        "text/markdown": "**b**",
        "image/svg+xml": "<svg/>",
        "image/png": "iVBORw==",
        "text/latex": "$x$",
        "application/json": {"a": [1, null]},
        "application/x.test+json": {"b": 2},
    });
    assert_eq!(content, json!({"data": data, "metadata": {"from": "bundle"}, "execution_count": 1}));
    while kernel.message()["content"]["execution_state"] != "idle" {}

    let kernel = &mut kernel;
    check(kernel, "display({'text/html': '<i>'}, raw=True)", "display {\"text/html\":\"<i>\"}\nok");
    // A representation that fails is reported and hides no other; one that returns None is skipped.
    let code = "class Half:\n    def __repr__(self): return 'half'\n    \
                def _repr_html_(self): raise ValueError('torn')\n    \
                def _repr_svg_(self): return None\nHalf()";
    let outcome = kernel.run(code);
    assert!(outcome.starts_with("stderr Traceback"), "{outcome}");
    assert!(outcome.ends_with("ValueError: torn\n\n[3] half\nok"), "{outcome}");
    let outcome = kernel.run("'x' * 3_000_000");
    assert!(outcome.len() < 2 << 20 && outcome.contains("characters left out"), "{}", outcome.len());
}

#[test]
fn threads_of_a_cell_share_its_variables_and_go_on_behind_it() {
    let mut kernel = Kernel::start();
    let code = "import threading, queue\nlock, total = threading.Lock(), 0\n\
                def add():\n    global total\n    for _ in range(200):\n        with lock: total += 1\n\
                threads = [threading.Thread(target=add) for _ in range(4)]\n\
                [thread.start() for thread in threads]\n[thread.join() for thread in threads]\ntotal";
    check(&mut kernel, code, "[1] 800\nok");
    // A thread that outlives its cell waits for the next one.
    let code = "asked, answered = queue.Queue(), queue.Queue()\n\
                def double():\n    while True: answered.put(asked.get() * 2)\n\
                threading.Thread(target=double, daemon=True).start()";
    check(&mut kernel, code, "ok");
    check(&mut kernel, "asked.put(21)\nanswered.get()", "[3] 42\nok");
    // An error in a thread is reported and affects nothing else.
    let outcome = kernel.run("thread = threading.Thread(target=lambda: 1 / 0)\nthread.start()\nthread.join()\n'on'");
    assert!(outcome.contains("ZeroDivisionError") && outcome.ends_with("[4] 'on'\nok"), "{outcome}");
}

#[test]
fn an_interrupt_stops_what_runs_and_keeps_the_variables() {
    let mut kernel = Kernel::start();
    kernel.run("import time, threading, queue\nx = 41");
    kernel.run("1 / 0"); // the first traceback loads the module that formats them
    let blocked = [
        "while True: pass",
        "time.sleep(60)",
        "queue.Queue().get()",
        "threading.Event().wait(60)",
        "thread = threading.Thread(target=time.sleep, args=(60,), daemon=True); thread.start(); thread.join()",
    ];
    let mut executions = 2;
    for code in blocked {
        assert_fast(code, Duration::from_secs(1), || {
            let (outcome, took) = kernel.interrupt(code);
            assert_eq!(outcome, "KeyboardInterrupt", "{code}");
            executions += 1;
            took
        });
    }
    check(&mut kernel, "x + 1", &format!("[{}] 42\nok", executions + 1));
}

#[test]
fn an_interrupt_stops_what_waits_and_nothing_that_comes_later() {
    let mut kernel = Kernel::start();
    for _ in 0..20 {
        kernel.send("interrupt_request", json!({}));
    }
    check(&mut kernel, "sum(i for i in range(1000))", "[1] 499500\nok");
    kernel.execute("import time\nprint('running')\ntime.sleep(60)");
    let waiting = kernel.execute("print('never')");
    while kernel.message()["header"]["msg_type"] != "stream" {}
    kernel.send("interrupt_request", json!({}));
    let later = kernel.execute("'later'");
    while kernel.message()["content"]["execution_state"] != "idle" {}
    assert_eq!(kernel.outcome(&waiting), "aborted");
    assert_eq!(kernel.outcome(&later), "[3] 'later'\nok");
}

#[test]
fn the_protocol_is_out_of_reach() {
    let kernel = &mut Kernel::start();
    check(kernel, "import os, sys\nos.read(0, 100)", "[1] b''\nok");
    check(kernel, "os.write(1, b'noise\\n')", "[2] 6\nok");
    check(kernel, "sys.stdout.close(); print('still here')", "stdout still here\n\nok");
}

#[test]
fn leaving_a_cell_is_not_leaving_the_kernel() {
    let kernel = &mut Kernel::start();
    check(
        kernel,
        "import sys; sys.exit(3)",
        &top_level_error("SystemExit: 3", 1, "import sys; sys.exit(3)", "            ~~~~~~~~^^^"),
    );
    assert!(kernel.run("exit()").starts_with("SystemExit"));
    check(kernel, "'alive'", "[3] 'alive'\nok");
}

#[test]
fn what_is_no_request_is_answered_and_forgotten() {
    let mut kernel = Kernel::start();
    let refuse = |kernel: &mut Kernel, line: &[u8], why: &str| {
        kernel.write(line);
        let message = kernel.message();
        assert_eq!(message["header"]["msg_type"], "error");
        let evalue = message["content"]["evalue"].as_str().unwrap_or_default();
        assert!(evalue.contains(why), "{evalue}");
        message["parent_header"].clone()
    };
    assert_eq!(refuse(&mut kernel, b"nonsense\n", "not JSON"), json!({}));
    assert_eq!(refuse(&mut kernel, b"\xff\xfe\n", "not JSON"), json!({}));
    assert_eq!(refuse(&mut kernel, b"{}\n", "no header"), json!({}));
    let line = b"{\"header\":{\"msg_type\":\"dance\",\"msg_id\":\"d\"}}\n";
    assert_eq!(refuse(&mut kernel, line, "no message type")["msg_id"], "d");
    let mut long = vec![b'x'; (64 << 20) + 1];
    long.push(b'\n');
    assert_eq!(refuse(&mut kernel, &long, "longer than"), json!({}));
    check(&mut kernel, "'alive'", "[1] 'alive'\nok");
}

#[test]
fn it_ends_when_it_is_told_to_even_while_a_cell_runs() {
    let mut kernel = Kernel::start();
    kernel.run("import atexit; atexit.register(print, 'bye')\n1;");
    let id = kernel.send("shutdown_request", json!({}));
    let bye = kernel.message();
    assert_eq!(bye["content"]["text"], "bye\n");
    let reply = kernel.message();
    assert_eq!(reply["header"]["msg_type"], "shutdown_reply");
    assert_eq!(reply["parent_header"]["msg_id"], *id);
    assert_eq!(kernel.ends().code(), Some(0));

    let mut kernel = Kernel::start();
    kernel.execute("print('running')\nwhile True:\n    try:\n        while True: pass\n    except: pass");
    while kernel.message()["header"]["msg_type"] != "stream" {}
    kernel.send("shutdown_request", json!({}));
    while kernel.message()["header"]["msg_type"] != "shutdown_reply" {}
    assert_eq!(kernel.ends().code(), Some(0));
}

#[test]
fn it_ends_when_nobody_can_ask_any_more() {
    let mut kernel = Kernel::start();
    kernel.input = None;
    assert_eq!(kernel.ends().code(), Some(0));

    let mut kernel = Kernel::start();
    kernel.execute("import time\nprint('running')\ntime.sleep(600)");
    while kernel.message()["header"]["msg_type"] != "stream" {}
    kernel.input = None;
    assert_eq!(kernel.ends().code(), Some(0));

    let mut kernel = Kernel::start();
    kernel.execute("import os\nos._exit(7)");
    assert_eq!(kernel.ends().code(), Some(7));
}
