//! A real Jupyter kernel: ipykernel, started by the program, with all its messages.
//!
//! `TRACEBOOK_IPYKERNEL` names a Python that has ipykernel; otherwise `python3` is tried. If neither has it, these
//! tests say so and are skipped; with `TRACEBOOK_CI=1` it must be there.

use super::Kernel;
use crate::program::{House, until};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The Python with ipykernel, or `None` if there is none.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("TRACEBOOK_IPYKERNEL").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let has = Command::new(&python).args(["-c", "import ipykernel"]).output().is_ok_and(|done| done.status.success());
    if !has {
        let ci = std::env::var_os("TRACEBOOK_CI").is_some();
        assert!(!ci, "ipykernel must be there where TRACEBOOK_CI is set: {}", python.display());
        eprintln!("left out: {} has no ipykernel", python.display());
    }
    has.then_some(python)
}

/// Installs a kernel spec named `own` below a folder, as `pip install --user` does below the home folder.
pub(crate) fn install(folder: &Path) -> Option<PathBuf> {
    install_in(folder, ".local")
}

/// Like `install`, in the environment folder with this name.
pub(crate) fn install_in(folder: &Path, environment: &str) -> Option<PathBuf> {
    let spec = folder.join(environment).join("share/jupyter/kernels/own/kernel.json");
    let argv = json!([python()?, "-m", "ipykernel_launcher", "-f", "{connection_file}"]);
    std::fs::create_dir_all(spec.parent().expect("a folder")).expect("made");
    let text = json!({"argv": argv, "display_name": "Own Python", "language": "python"}).to_string();
    std::fs::write(&spec, text).expect("written");
    Some(spec)
}

fn house(files: &[(&str, &str)]) -> Option<House> {
    let house = House::with(files);
    install(&house.path(""))?;
    Some(house)
}

impl Kernel {
    /// All messages that a request caused, up to idle: types and contents.
    fn told(&self, id: &str) -> Vec<(String, Value)> {
        let mut told = Vec::new();
        loop {
            let message = self.message();
            if message["parent_header"]["msg_id"] != id {
                continue;
            }
            let kind = message["header"]["msg_type"].as_str().unwrap_or_default().to_owned();
            let done = kind == "status" && message["content"]["execution_state"] == "idle";
            told.push((kind, message["content"].clone()));
            if done {
                return told;
            }
        }
    }

    fn until(&self, kind: &str) -> Value {
        loop {
            let message = self.message();
            if message["header"]["msg_type"] == kind {
                return message["content"].clone();
            }
        }
    }
}

/// A kernel of another language, which prints its input in upper case.
const SHOUT: &str = "from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel
class Shout(Kernel):
    implementation = 'shout'
    implementation_version = banner = '1'
    language_info = {'name': 'bash', 'version': '1', 'mimetype': 'text/x-sh', 'file_extension': '.sh'}
    def do_execute(self, code, silent, *rest, **more):
        content = {'name': 'stdout', 'text': code.strip().upper() + '\\n'}
        self.send_response(self.iopub_socket, 'stream', content)
        return {'status': 'ok', 'execution_count': self.execution_count, 'payload': [], 'user_expressions': {}}
IPKernelApp.launch_instance(kernel_class=Shout)
";

#[test]
fn cells_of_other_languages_run_in_their_kernel() {
    let note =
        "```{bash}\necho one\n```\n\n```python\nprint('no')\n```\n\n```bash\nonly shown\n```\n\n```{bash}\ntwo\n```\n";
    let house = House::with(&[("A.md", note)]);
    let Some(python) = python() else { return };
    let folder = house.path(".local/share/jupyter/kernels/shout");
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::write(folder.join("shout.py"), SHOUT).expect("written");
    let argv = json!([python, folder.join("shout.py"), "-f", "{connection_file}"]);
    let spec = json!({"argv": argv, "display_name": "Shout", "language": "bash"});
    std::fs::write(folder.join("kernel.json"), spec.to_string()).expect("written");
    let done = house.run(&["run", "A.md", "--cell", "1"]);
    assert!(done.code != 0 && done.err.contains("this cell is in bash: choose a kernel"), "{done:?}");
    assert_eq!(house.run(&["run", "A.md", "--cell", "2"]).good().text(), "no\n");
    house.run(&["kernels", "A.md", "--use", "shout"]).good();
    assert_eq!(house.run(&["run", "A.md"]).good().text(), "ECHO ONE\nTWO\n");
    assert_eq!(house.run(&["run", "A.md", "--cell", "3", "--kernel", "shout"]).good().text(), "TWO\n");
}

fn kinds(told: &[(String, Value)]) -> Vec<&str> {
    told.iter().map(|(kind, _)| kind.as_str()).filter(|kind| *kind != "execute_input").collect()
}

#[test]
fn a_note_runs_in_a_kernel_of_the_users() {
    let note = "```python\nimport sys, IPython\nprint('out')\nprint('err', file=sys.stderr)\n\
                x = IPython.display.HTML('<b>bold</b>')\nx\n```\n\n\
                ```python\nh = IPython.display.display({'text/plain': 'one'}, raw=True, display_id='d')\n\
                print('a')\nIPython.display.clear_output(wait=True)\nprint('b')\n\
                IPython.display.display({'text/plain': '1 %'}, raw=True, display_id='p')\n\
                IPython.display.update_display({'text/plain': '2 %'}, raw=True, display_id='p')\n```\n\n\
                ```python\n1/0\n```\n";
    let Some(house) = house(&[("Note.md", note)]) else { return };
    let done = house.run(&["run", "Note.md", "--kernel", "own", "--json"]);
    assert_eq!(done.code, 1, "the last cell raises: {}", done.err);
    let lines = done.lines();
    let of = |cell: u64| lines.iter().filter(move |line| line["cell"] == cell).collect::<Vec<_>>();
    let first = of(1);
    assert!(first.iter().any(|output| output["name"] == "stdout" && output["text"] == "out\n"), "{first:?}");
    assert!(first.iter().any(|output| output["name"] == "stderr" && output["text"] == "err\n"), "{first:?}");
    assert!(first.iter().any(|output| output["data"]["text/html"] == "<b>bold</b>"), "{first:?}");
    let second = of(2);
    assert_eq!(second.len(), 2, "what came before it is taken back: {second:?}");
    assert_eq!(second[0]["text"], "b\n");
    assert_eq!(second[1]["data"]["text/plain"], "2 %");
    let third = of(3);
    assert_eq!(third[0]["ename"], "ZeroDivisionError");
    assert!(third[0]["traceback"].as_array().is_some_and(|lines| lines.len() > 1));
    // The kept outputs, as the window would show them later.
    let kept = house.run(&["outputs", "Note.md"]).good();
    assert!(kept.text().contains("2 %") && !kept.text().contains("1 %"), "{}", kept.text());
}

#[test]
fn relative_paths_begin_at_the_folder_of_the_note() {
    let note = "```python\nprint(open('data.txt').read(), __name__)\n```\n";
    let Some(house) = house(&[("sub/Note.md", note), ("sub/data.txt", "beside")]) else { return };
    let said = house.run(&["run", "sub/Note.md", "--kernel", "own"]).good().text();
    assert_eq!(said, "beside __main__\n");
}

#[test]
fn a_note_cannot_choose_such_a_kernel_by_itself() {
    let Some(house) = house(&[("Note.md", "---\nkernel: own\n---\n\n```python\nimport ipykernel\n1+1\n```\n")]) else {
        return;
    };
    let done = house.run(&["run", "Note.md"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("all your rights"), "{}", done.err);
    let listed = house.run(&["kernels", "Note.md"]).good();
    assert!(listed.text().contains("* own  Own Python"), "{}", listed.text());
    assert_eq!(house.run(&["kernels", "Note.md", "--use", "none-such"]).code, 2);
    house.run(&["kernels", "Note.md", "--use", "own"]).good();
    assert_eq!(house.run(&["run", "Note.md"]).good().text(), "2\n");
    house.run(&["kernels", "Note.md", "--use", "embedded"]).good();
    assert_eq!(house.read("notes/Note.md"), b"---\n---\n\n```python\nimport ipykernel\n1+1\n```\n");
    house.run(&["run", "Note.md", "--kernel", "gone"]).refused(2, "there is no Jupyter kernel gone here");
}

#[test]
fn it_is_asked_stopped_and_ended() {
    let dir = tempfile::tempdir().expect("a folder");
    let Some(spec) = install(dir.path()) else { return };
    let mut kernel = Kernel::bridge(&spec, dir.path());
    assert_eq!(kernel.info["content"]["language_info"]["name"], "python");
    let id = kernel.execute("21 * 2");
    let told = kernel.told(&id);
    assert_eq!(
        kinds(&told),
        ["status", "execute_result", "execute_reply", "status"],
        "the reply comes behind all output"
    );
    assert_eq!(told.iter().find(|(kind, _)| kind == "execute_result").expect("one").1["data"]["text/plain"], "42");
    // The cell asks for input.
    let id = kernel.execute("name = input('Who? ')\nimport getpass\nword = getpass.getpass('Word? ')\n(name, word)");
    let asked = kernel.until("input_request");
    assert_eq!((&asked["prompt"], &asked["password"]), (&json!("Who? "), &json!(false)));
    kernel.send("input_reply", json!({"value": "Ada"}));
    assert_eq!(kernel.until("input_request")["password"], true);
    kernel.send("input_reply", json!({"value": "secret"}));
    let told = kernel.told(&id);
    let shown = |told: &[(String, Value)]| {
        let text = told.iter().filter(|(kind, _)| kind == "stream").filter_map(|(_, content)| content["text"].as_str());
        text.collect::<String>()
    };
    assert_eq!(shown(&told), "Word? ········\n");
    assert!(told.iter().any(|(_, content)| content["data"]["text/plain"] == "('Ada', 'secret')"), "{told:?}");
    // Names in `forget` are removed before a cell runs.
    let content = json!({"code": "'name' in globals()", "cell": "cell 1", "forget": ["name"]});
    let id = kernel.send("execute_request", content);
    assert!(kernel.told(&id).iter().any(|(_, content)| content["data"]["text/plain"] == "False"));
    // Completion and inspection.
    kernel.send("complete_request", json!({"code": "import os; os.getc", "cursor_pos": 18}));
    let reply = kernel.until("complete_reply");
    assert!(reply["matches"].as_array().is_some_and(|all| all.iter().any(|name| name == "getcwd")), "{reply}");
    // The kernel's variables, listed as the embedded kernel lists them.
    let id = kernel.execute("import os\ntotal = [1, 2]");
    kernel.told(&id);
    kernel.send("variables_request", json!({}));
    let reply = kernel.until("variables_reply");
    let rows = reply["variables"].as_array().expect("rows").clone();
    // Some values, as a generated view shows them.
    kernel.send("values_request", json!({"names": ["total", "not \"there\""]}));
    let values = kernel.until("values_reply");
    assert_eq!(values["values"], json!({"total": [1, 2]}), "{values}");
    assert!(rows.contains(&json!({"name": "total", "type": "list", "size": "2", "value": "[1, 2]"})), "{reply}");
    assert!(rows.iter().all(|row| row["name"] != "In" && row["name"] != "exit" && row["name"] != "os"), "{reply}");
    // A figure with other limits, from the backend if it's there.
    let asked = json!({"figure": "f", "limits": [[[1.0, 2.5], null]]});
    kernel.send("redraw_request", asked.clone());
    assert_eq!(kernel.until("redraw_reply"), json!({"status": "error"}));
    let backend = "import sys, types\nsys.modules['tracebook_backend'] = types.SimpleNamespace(\n    \
                   redraw=lambda figure, limits: f'{figure} {limits}')";
    let id = kernel.execute(backend);
    kernel.told(&id);
    kernel.send("redraw_request", asked);
    assert_eq!(kernel.until("redraw_reply"), json!({"status": "ok", "figure": "f [[[1.0, 2.5], None]]"}));
    kernel.send("frame_rows_request", json!({"frame": "gone", "first": 0}));
    assert_eq!(kernel.until("frame_rows_reply"), json!({"status": "ok", "frame": null}));
    // An interrupt stops a running cell.
    let begun = Instant::now();
    let id = kernel.execute("print('on')\nimport time\nwhile True: time.sleep(0.01)");
    kernel.until("stream");
    kernel.send("interrupt_request", json!({}));
    let told = kernel.told(&id);
    assert!(told.iter().any(|(kind, content)| kind == "error" && content["ename"] == "KeyboardInterrupt"), "{told:?}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    let id = kernel.execute("name = 1; 'still here'");
    assert!(kernel.told(&id).iter().any(|(_, content)| content["data"]["text/plain"] == "'still here'"));
    // The kernel process dies.
    kernel.execute("import os; os._exit(3)");
    assert!(!kernel.ends().success());
}

#[test]
fn nothing_is_left_when_the_host_goes() {
    let dir = tempfile::tempdir().expect("a folder");
    let Some(spec) = install(dir.path()) else { return };
    let mut kernel = Kernel::bridge(&spec, dir.path());
    let id = kernel.execute("import os; os.getpid()");
    let told = kernel.told(&id);
    let pid = told.iter().find_map(|(_, content)| content["data"]["text/plain"].as_str()).expect("a number").to_owned();
    let there = || Path::new(&format!("/proc/{pid}")).exists();
    assert!(there());
    kernel.input = None;
    assert!(kernel.ends().success());
    until("the kernel ends with the bridge", || !there());
}
