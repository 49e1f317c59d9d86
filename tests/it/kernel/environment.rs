//! The kernel of an environment: this machine's CPython in the same sandbox as the built-in kernel.

use super::note_runs::folder_of;
use super::{Kernel, check_warnings};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Creates an environment without pip, so that nothing is downloaded, and a folder for cells beside it.
fn environment(folder: &Path) -> (PathBuf, PathBuf) {
    let (environment, notes) = (folder.join("env"), folder.join("notes"));
    std::fs::create_dir(&notes).expect("made");
    let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&environment).output();
    let made = made.expect("there is a python3");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (environment.join("bin/python"), notes)
}

pub(super) fn kernel(folder: &Path) -> Kernel {
    let (python, notes) = environment(folder);
    let words: [&Path; 5] =
        ["kernel".as_ref(), "--environment".as_ref(), &python, "--advice".as_ref(), "add {package}".as_ref()];
    Kernel::with(&words, &notes)
}

#[test]
fn cells_run_in_the_environments_python() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut kernel = kernel(folder.path());
    assert_eq!(kernel.info["content"]["implementation"], "tracebook-environment");
    assert_eq!(kernel.run("print('a')\n1 + 1"), "stdout a\n\n[1] 2\nok");
    let prefix = kernel.run("import sys\nsys.prefix");
    assert!(prefix.contains(&folder.path().join("env").display().to_string()), "{prefix}");
    let error = kernel.run("def f():\n    return 1/0\nf()");
    assert!(error.starts_with("ZeroDivisionError") && error.contains("File \"cell 2\", line 2, in f"), "{error}");
    assert!(!error.contains("tracebook>"), "frames of ours are hidden: {error}");
    let lacks = kernel.run("import sklearn");
    assert!(lacks.contains("(add scikit-learn)"), "{lacks}");
    assert_eq!(kernel.run("import os\nos.write(1, b'native\\n')\nNone"), "stdout native\n\nok");
    let id = kernel.send("execute_request", json!({"code": "exit()\nprint(1)", "cell": "c", "silent": false}));
    assert!(kernel.outcome(&id).starts_with("SystemExit"));
    assert_eq!(kernel.run("'alive'"), "[7] 'alive'\nok");
}

#[test]
fn each_run_warns_and_characters_may_come_in_pieces() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut kernel = kernel(folder.path());
    check_warnings(&mut kernel);
    let pieces = "import sys\nfor byte in 'é€\\n'.encode():\n    sys.stdout.buffer.write(bytes([byte]))\nNone";
    assert_eq!(kernel.run(pieces), "stdout é€\n\nok");
}

#[test]
fn a_user_without_a_variable_has_a_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut kernel = kernel(folder.path());
    let code = "import getpass, os, pwd\nfor name in ('LOGNAME', 'USER', 'LNAME', 'USERNAME'):\n    \
                os.environ.pop(name, None)\ngetpass.getuser() == pwd.getpwuid(os.getuid()).pw_name";
    assert_eq!(kernel.run(code), "[1] True\nok");
}

#[test]
fn paths_begin_at_the_folder_and_scripts_have_theirs() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut kernel = kernel(folder.path());
    std::fs::write(folder.path().join("notes/data.txt"), "beside").expect("written");
    let said = kernel.run("open('data.txt').read(), __name__, '__file__' in globals()");
    assert_eq!(said, "[1] ('beside', '__main__', False)\nok");
    let code = "import pathlib\n(pathlib.Path(__file__).parent / 'data.txt').read_text()";
    let file = folder.path().join("notes/work.py");
    let id = kernel.send("execute_request", json!({"code": code, "cell": "work", "silent": false, "file": file}));
    assert_eq!(kernel.outcome(&id), "[2] 'beside'\nok");
}

#[test]
fn cells_stay_behind_the_walls() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("secret"), "PRIVATE").expect("written");
    let mut kernel = kernel(folder.path());
    for refused in [
        "open('../secret').read()",
        "open('../new', 'w')",
        "import socket\nsocket.create_connection(('127.0.0.1', 9))",
        "import os\nos.fork()",
        "import subprocess\nsubprocess.run(['/bin/true'])",
        "import os\nos.execv('/bin/true', ['true'])",
        "import os, signal\nos.kill(os.getppid(), signal.SIGTERM)",
        "import os\nos.makedirs('.git/hooks')",
    ] {
        let outcome = kernel.run(refused);
        assert!(outcome.starts_with("PermissionError") && !outcome.contains("PRIVATE"), "{refused}: {outcome}");
    }
    assert_eq!(kernel.run("open('own', 'w').write('x')\nopen('own').read()"), "[9] 'x'\nok");
    let threads = "import threading\nall = []\nfor n in range(8):\n    t = threading.Thread(target=all.append, \
                   args=(n,))\n    \
                   t.start()\n    t.join()\nlen(all)";
    assert_eq!(kernel.run(threads), "[10] 8\nok");
}

#[test]
fn an_interrupt_ends_the_cell_and_keeps_variables() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut kernel = kernel(folder.path());
    kernel.run("x = 5");
    for endless in ["while True: pass", "import time\ntime.sleep(1000)", "while True: print('y')"] {
        let id = kernel.execute(endless);
        // The reply to the last interrupt may come after the end of its cell.
        let mut messages = std::iter::repeat_with(|| kernel.message());
        let busy = messages.find(|message| message["header"]["msg_type"] != "interrupt_reply");
        assert!(busy.as_ref().is_some_and(|busy| busy["content"]["execution_state"] == "busy"), "{busy:?}");
        kernel.send("interrupt_request", json!({}));
        let outcome = kernel.outcome_after(&id);
        assert!(outcome.contains("KeyboardInterrupt") || outcome.ends_with("aborted"), "{endless}: {outcome:.500}");
    }
    let kept = kernel.run("x");
    assert!(kept.ends_with("5\nok"), "{kept}");
}

#[test]
fn values_are_shown_in_their_forms_and_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut kernel = kernel(folder.path());
    let html = kernel.run("from IPython.display import HTML, display\ndisplay(HTML('<i>'))");
    assert!(html.contains(r#""text/html":"<i>""#) && html.ends_with("ok"), "{html}");
    let table = kernel.run("display(table({'a': [1], 'b': [2]}))");
    assert!(table.contains(r#""text/csv":"a,b\n1,2\n""#), "{table}");
    assert_eq!(kernel.run("import asyncio\nawait asyncio.sleep(0)\n'awaited'"), "[3] 'awaited'\nok");
    let long = kernel.run("list(range(10**6))");
    assert!(long.len() < 100_000 && long.contains("more items"), "{}", long.len());
    let broken = kernel.run("class A:\n    def __repr__(self): raise ValueError('no')\nA()");
    assert!(broken.starts_with("ValueError: no"), "{broken}");
    let deep = kernel.run("def g(): g()\ng()");
    assert!(deep.starts_with("RecursionError") && deep.len() < 100_000, "{}", deep.len());
    assert_eq!(kernel.run("1;"), "ok");
}

/// In the environment of the tutorials, which has matplotlib.
#[test]
fn figures_of_matplotlib_cross_as_data_with_a_picture_beside() {
    let Some(environment) = folder_of("TRACEBOOK_TUTORIALS_ENVIRONMENT") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (python, notes) = (environment.join("bin/python"), folder.path().join("notes"));
    std::fs::create_dir(&notes).expect("made");
    let mut kernel = Kernel::with(&["kernel".as_ref(), "--environment".as_ref(), &python], &notes);
    let shown = kernel.run("import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\naxes.plot([1, 2])\nNone");
    assert!(shown.contains("application/vnd.tracebook.figure+json") && shown.contains("display_list"), "{shown:.500}");
    assert!(shown.contains("image/png"), "{shown:.500}");
    // With other limits on the same canvas; the figure keeps its own.
    let id = kernel.run("import sys\nprint(*sys.modules['tracebook_backend']._live_figures, axes.get_xlim())");
    let (id, limits) = id.split_once(' ').and_then(|(_, rest)| rest.split_once(' ')).expect("an ID and limits");
    let mut drawn = |limits: Value| -> Value {
        kernel.send("redraw_request", json!({"figure": id, "limits": limits}));
        let mut messages = std::iter::repeat_with(|| kernel.message());
        let reply = messages.find(|message| message["header"]["msg_type"] == "redraw_reply").expect("a reply");
        serde_json::from_str(reply["content"]["figure"].as_str().expect("a figure")).expect("JSON")
    };
    let (stored, zoomed) = (drawn(json!([[null, null]])), drawn(json!([[[0.25, 0.5], null]])));
    let sides = &zoomed["display_list"]["axes"][0]["sides"];
    assert_eq!(sides[0]["limits"], json!([0.25, 0.5]));
    assert_eq!(sides[1], stored["display_list"]["axes"][0]["sides"][1]);
    assert_eq!((&zoomed["width"], &zoomed["height"]), (&stored["width"], &stored["height"]));
    assert!(kernel.run("print('', axes.get_xlim())").contains(limits.lines().next().expect("limits")));
    assert_eq!(kernel.run("1"), "[4] 1\nok", "a drawing isn't an execution");
}

#[test]
fn a_missing_interpreter_is_said() {
    let output = Command::new(env!("CARGO_BIN_EXE_tracebook-under-test"))
        .args(["kernel", "--environment", "/nowhere/bin/python"])
        .output()
        .expect("it runs");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && words.contains("/nowhere/bin/python isn't there"), "{words}");
}
