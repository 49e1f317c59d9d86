//! Requests besides running cells, and what cells ask for: input, await, help, completions, inspection, variables.

use super::{Kernel, check};
use crate::program::{House, assert_fast};
use serde_json::{Value, json};
use std::time::Duration;

impl Kernel {
    /// Waits for the next message of a type and returns its content.
    pub(super) fn next(&self, kind: &str) -> Value {
        loop {
            let message = self.message();
            if message["header"]["msg_type"] == kind {
                return message["content"].clone();
            }
        }
    }

    /// Sends a request about code; `|` marks the cursor.
    pub(super) fn look(&mut self, kind: &str, code: &str) -> Value {
        let at = code.chars().position(|c| c == '|').expect("a place");
        self.send(&format!("{kind}_request"), json!({"code": code.replacen('|', "", 1), "cursor_pos": at}));
        self.next(&format!("{kind}_reply"))
    }

    /// The completions in order, and the range of characters that they replace.
    pub(super) fn offered(&mut self, code: &str) -> (Vec<String>, u64, u64) {
        let reply = self.look("complete", code);
        let names = reply["matches"].as_array().expect("matches").iter();
        let names = names.map(|name| name.as_str().expect("a name").to_owned()).collect();
        (names, reply["cursor_start"].as_u64().expect("a start"), reply["cursor_end"].as_u64().expect("an end"))
    }

    pub(super) fn described(&mut self, code: &str) -> String {
        self.look("inspect", code)["data"]["text/plain"].as_str().unwrap_or("nothing").to_owned()
    }
}

/// Runs cells that ask for input: what they print when they get it, when the input ends, when they are interrupted, and
/// when the answer comes after that.
pub(super) fn outcomes_of_input(kernel: &mut Kernel) -> [String; 4] {
    let cell =
        "name = input('Who? ')\nimport getpass, sys\nword = getpass.getpass()\n(name, word, sys.stdin.readline())";
    let id = kernel.execute(cell);
    assert_eq!(kernel.next("input_request"), json!({"prompt": "Who? ", "password": false}));
    kernel.send("input_reply", json!({"value": "Ada ☂"}));
    assert_eq!(kernel.next("input_request"), json!({"prompt": "Password: ", "password": true}));
    kernel.send("input_reply", json!({"value": "secret"}));
    assert_eq!(kernel.next("input_request"), json!({"prompt": "", "password": false}));
    kernel.send("input_reply", json!({"value": "more"}));
    let answered = kernel.outcome_after(&id);
    // End of input raises Python's EOFError.
    let id = kernel.execute("input('more? ')");
    kernel.next("input_request");
    kernel.send("input_reply", json!({"value": "\u{4}"}));
    let ended = kernel.outcome_after(&id);
    // Interrupted while it waits for input: a late answer doesn't go to the next cell.
    let id = kernel.execute("input('never ')");
    kernel.next("input_request");
    kernel.send("interrupt_request", json!({}));
    let interrupted = kernel.outcome_after(&id);
    kernel.send("input_reply", json!({"value": "late"}));
    let id = kernel.execute("input('again ')");
    kernel.next("input_request");
    kernel.send("input_reply", json!({"value": "in time"}));
    [answered, ended, interrupted, kernel.outcome_after(&id)]
}

#[test]
fn a_cell_asks_for_a_line() {
    let [answered, ended, interrupted, again] = outcomes_of_input(&mut Kernel::start());
    assert_eq!(answered, "stdout more\n\n[1] ('Ada ☂', 'secret', 'more\\n')\nok");
    assert!(ended.contains("EOFError: EOF when reading a line"), "{ended}");
    assert!(interrupted.starts_with("KeyboardInterrupt"), "{interrupted}");
    assert_eq!(again, "stdout again in time\n\n[4] 'in time'\nok");
}

#[test]
fn a_cell_awaits() {
    let kernel = &mut Kernel::start();
    check(kernel, "import asyncio\nasync def f(x):\n    await asyncio.sleep(0.001)\n    return x * 2", "ok");
    check(kernel, "await f(21)", "[2] 42\nok");
    check(kernel, "x = await f(1)\nx", "[3] 2\nok");
    check(
        kernel,
        "async def g():\n    for i in range(3): yield i\nasync for i in g(): print(i)",
        "stdout 0\n1\n2\n\nok",
    );
    let with = "import contextlib\n@contextlib.asynccontextmanager\nasync def c():\n    yield 'in'\n\
                async with c() as v:\n    print(v)\n[i async for i in g()]";
    check(kernel, with, "stdout in\n\n[5] [0, 1, 2]\nok");
    check(kernel, "sum(await asyncio.gather(f(1), f(2)))", "[6] 6\nok");
    check(kernel, "asyncio.run(f(4))", "[7] 8\nok");
    let failed = kernel.run("async def bad(): 1/0\nawait bad()");
    let lines: Vec<&str> = failed.lines().filter(|line| line.contains("File ")).collect();
    assert_eq!(lines.len(), 2, "only the cell's own lines: {failed}");
    let mut executions = 8;
    assert_fast("an interrupt", Duration::from_secs(5), || {
        let (ename, took) = kernel.interrupt("await asyncio.sleep(60)");
        assert_eq!(ename, "KeyboardInterrupt");
        executions += 1;
        took
    });
    check(kernel, "await f(3)", &format!("[{}] 6\nok", executions + 1));
}

#[test]
fn help_is_text() {
    let kernel = &mut Kernel::start();
    let text = kernel.run("def f(a, b=1):\n    \"Adds.\"\nhelp(f)");
    assert!(text.contains("Help on function f") && text.contains("f(a, b=1)") && text.contains("Adds."), "{text}");
    assert!(kernel.run("help('nothing.of.it')").contains("nothing.of.it"));
    assert!(kernel.run("help('str.upper')").contains("upper"));
}

const BOATS: &str = "import math
class Boat:
    'Floats.'
    mast = 1
    def sail(self, to, *, fast=False): 'Sails.'
    @property
    def loud(self): print('no')
boat = Boat()
boats = {'red': 1, 'blue': 2}
öl = 3";

#[test]
fn completions_come_from_what_is_there() {
    let kernel = &mut Kernel::start();
    check(kernel, BOATS, "ok");
    assert_eq!(kernel.offered("x = boa|"), (vec!["boat".into(), "boats".into()], 4, 7));
    assert_eq!(kernel.offered("boat.|").0, ["loud", "mast", "sail"]);
    assert_eq!(kernel.offered("boat.sail.__na|").0, ["__name__"]);
    assert_eq!(kernel.offered("boat.loud.|").0, Vec::<String>::new(), "a property is not run");
    assert_eq!(kernel.offered("math.sqr|").0, ["sqrt"]);
    assert_eq!(kernel.offered("boat.sail(fa|").0, ["fast="]);
    assert_eq!(kernel.offered("boats['b|").0, ["blue"]);
    assert_eq!(kernel.offered("'boa|'").0, Vec::<String>::new());
    assert_eq!(kernel.offered("# boa|").0, Vec::<String>::new());
    assert_eq!(kernel.offered("ö|").0, ["öl"]);
    assert_eq!(kernel.offered("öl; wh|"), (vec!["while".into()], 4, 6));
    assert_eq!(kernel.offered("import statis|").0, ["statistics"]);
    assert_eq!(kernel.offered("from math import sqr|").0, ["sqrt"]);
    assert_eq!(kernel.offered("nothing.|").0, Vec::<String>::new());
    assert!(kernel.offered("|").0.len() > 50);
    assert!(kernel.described("boat.sa|il(1)").contains("Sails."));
    assert!(kernel.described("boat.sail('a', |)").starts_with("boat.sail(to, *, fast=False)"));
    assert_eq!(kernel.described("öl|"), "öl: int = 3");
    assert_eq!(kernel.described("boat.loud|"), "nothing");
    assert_eq!(kernel.described("   |"), "nothing");
    assert!(kernel.described("len|").starts_with("len("));
    assert!(kernel.described("Boat|").contains("Floats."));
}

const THINGS: &str = "import numpy as np
from statistics import mean
n = 3
words = ['a'] * 1000
text = 'x' * 500
grid = np.zeros((2, 3))
class Bad:
    def __repr__(self): 1/0
    def __len__(self): 1/0
bad = Bad()
_hidden = 1
def f(a, b): pass";

#[test]
fn variables_are_listed() {
    let kernel = &mut Kernel::start();
    check(kernel, THINGS, "ok");
    kernel.send("variables_request", json!({}));
    let reply = kernel.next("variables_reply");
    let rows = reply["variables"].as_array().expect("rows").clone();
    let row =
        |name: &str| rows.iter().find(|row| row["name"] == name).cloned().unwrap_or_else(|| panic!("{name}: {rows:?}"));
    assert_eq!(row("n"), json!({"name": "n", "type": "int", "size": "", "value": "3"}));
    assert_eq!((&row("words")["size"], &row("grid")["size"]), (&json!("1000"), &json!("2 × 3")));
    assert!(row("text")["value"].as_str().is_some_and(|value| value.chars().count() < 130));
    assert_eq!(row("bad")["value"], "<ZeroDivisionError>");
    assert_eq!(row("f")["value"], "f(a, b)");
    assert!(rows.iter().all(|row| !["_hidden", "np", "mean"].contains(&row["name"].as_str().unwrap_or(""))));
    check(kernel, "n", "[2] 3\nok");
}

#[test]
fn the_command_line_asks_in_the_terminal() {
    let note = "```python\nname = input('Who? ')\nprint('Hello', name)\nimport getpass\nlen(getpass.getpass())\n```\n";
    let house = House::with(&[("Ask.md", note)]);
    let done = house.fed(&["run", "Ask.md"], b"Ada\nsecret\n");
    assert_eq!((done.code, done.text().as_str()), (0, "Who? Hello Ada\nPassword: 6\n"), "{}", done.err);
    let kept = house.run(&["outputs", "Ask.md"]).good().text();
    assert!(kept.contains("Who? Ada\nHello Ada\n") && !kept.contains("secret"), "{kept}");
    // Without input to read, Python raises its own error, which a cell may catch.
    let done = house.fed(&["run", "Ask.md"], b"");
    assert_eq!(done.code, 1);
    assert!(done.text().starts_with("Who? ") && done.text().contains("EOFError: EOF when reading a line"), "{done:?}");
    let caught = "```python\nimport sys\ntry:\n    input('Who? ')\nexcept EOFError:\n    print('nobody')\n\
                  [line for line in sys.stdin], sys.stdin.read()\n```\n";
    house.write("notes/Ask.md", caught.as_bytes());
    let done = house.fed(&["run", "Ask.md"], b"");
    assert_eq!((done.code, done.text().as_str()), (0, "Who? \nnobody\n([], '')\n"), "{}", done.err);
}
