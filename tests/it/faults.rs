//! Real faults on the program as users start it: killed, no space, no permission, files cut or emptied. Acknowledged
//! edits survive, nothing is left half done, and what can't be done gets a clear error.

mod damage;
pub(crate) mod disks;
mod documents;
mod older;
mod reading;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The maximum wait, generous for a busy machine. Nothing takes this long unless it's broken.
const PATIENCE: Duration = Duration::from_secs(120);
/// The note's initial text.
const FIRST: &str = "# Alpha\n\nBravo stands here.\n";
/// The note's path in the volume.
const NOTE: &str = "a.md";

/// A workspace and a volume folder with one known note.
struct Place {
    workspace: PathBuf,
    folder: PathBuf,
    /// The volume's id, as `open` reported it.
    volume: String,
    _dir: tempfile::TempDir,
}

/// The result of a command.
#[derive(Debug)]
struct Done {
    code: Option<i32>,
    out: String,
    errors: String,
}

impl Done {
    /// Asserts success and returns the output.
    fn fine(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// Asserts a refusal with this exit code and an error that contains these words.
    fn refused(&self, code: i32, words: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.errors.contains(words) && self.errors.starts_with("tracebook: "), "{words}: {self:?}");
    }
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().expect("a folder");
        let (workspace, folder) = (dir.path().join("workspace"), dir.path().join("Notes"));
        Place::of(dir, workspace, folder, &[(NOTE, FIRST)])
    }

    /// Creates a place whose workspace and folder may be on other disks, with other notes.
    fn of(dir: tempfile::TempDir, workspace: PathBuf, folder: PathBuf, notes: &[(&str, &str)]) -> Place {
        fs::create_dir_all(&folder).expect("made");
        for (name, text) in notes {
            fs::write(folder.join(name), text).expect("written");
        }
        let mut place = Place { workspace, folder, volume: String::new(), _dir: dir };
        let opened = place.run(&["open", place.folder.to_str().expect("UTF-8"), "--json"]).fine();
        let opened: serde_json::Value = serde_json::from_str(&opened).expect("JSON");
        assert_eq!(opened["notes"], notes.len());
        place.volume = opened["id"].as_str().expect("an id").to_owned();
        place
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracebook-under-test"));
        command.arg("--workspace").arg(&self.workspace).args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, words: &[&str]) -> Done {
        self.run_with(words, "")
    }

    fn run_with(&self, words: &[&str], input: &str) -> Done {
        let mut running = Running::start(self, words);
        running.send(input);
        running.done()
    }

    fn cat(&self) -> String {
        self.run(&["cat", NOTE]).fine()
    }

    fn file(&self) -> PathBuf {
        self.folder.join(NOTE)
    }

    /// The note's text in its file.
    fn on_disk(&self) -> String {
        fs::read_to_string(self.file()).expect("read")
    }

    /// Asserts that `fsck --check` finds nothing wrong.
    fn sound(&self) {
        let checked = self.run(&["fsck", "--check"]);
        assert_eq!(checked.code, Some(0), "{checked:?}");
    }
}

/// A line of input for `edit`.
fn insert(at: usize, text: &str) -> String {
    format!("{}\n", serde_json::json!({"at": at, "insert": text}))
}

/// A command that is still running.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Everything printed to standard output so far.
    out: Arc<Mutex<String>>,
    errors: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl Running {
    fn start(place: &Place, words: &[&str]) -> Running {
        let mut child = place.command(words).spawn().expect("the program starts");
        let (out, errors) = (Arc::new(Mutex::new(String::new())), Arc::new(Mutex::new(String::new())));
        let (sender, lines) = channel();
        let (stdout, stderr) = (child.stdout.take().expect("a pipe"), child.stderr.take().expect("a pipe"));
        let (all, said) = (out.clone(), errors.clone());
        let readers = vec![
            thread::spawn(move || {
                let mut stdout = BufReader::new(stdout);
                let mut line = String::new();
                while stdout.read_line(&mut line).is_ok_and(|count| count > 0) {
                    all.lock().expect("held").push_str(&line);
                    let _ = sender.send(std::mem::take(&mut line)); // nobody may be waiting for it
                }
            }),
            thread::spawn(move || {
                let mut stderr = BufReader::new(stderr);
                let mut line = String::new();
                while stderr.read_line(&mut line).is_ok_and(|count| count > 0) {
                    said.lock().expect("held").push_str(&std::mem::take(&mut line));
                }
            }),
        ];
        Running { input: child.stdin.take(), child, lines, out, errors, readers }
    }

    /// Writes to standard input. Returns whether the process could still read it.
    fn send(&mut self, input: &str) -> bool {
        self.input.as_mut().expect("open").write_all(input.as_bytes()).is_ok()
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("nothing came; it said: {}", self.said()))
    }

    /// Asserts that the next line is an acknowledgment.
    fn acknowledged(&self) {
        let line = self.line();
        assert!(is_acknowledgement(&line), "{line}");
    }

    fn said(&self) -> String {
        self.errors.lock().expect("held").clone()
    }

    /// Kills it as `kill -9` does and returns what it had printed.
    fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
        self.readers.drain(..).for_each(|reader| reader.join().expect("read"));
        self.lines.try_iter().collect()
    }

    /// Closes its input and waits for it to exit.
    fn done(mut self) -> Done {
        drop(self.input.take());
        let until = Instant::now() + PATIENCE;
        let code = loop {
            if let Some(status) = self.child.try_wait().expect("watched") {
                break status.code();
            }
            assert!(Instant::now() < until, "it does not end; it said: {}", self.said());
            thread::sleep(Duration::from_millis(2));
        };
        self.readers.drain(..).for_each(|reader| reader.join().expect("read"));
        Done { code, out: self.out.lock().expect("held").clone(), errors: self.said() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill(); // a test that failed leaves nothing running
        let _ = self.child.wait();
    }
}

fn is_acknowledgement(line: &str) -> bool {
    let line: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
    line["seq"].is_u64() && line["durable"] == true
}

/// Waits until a condition holds.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < end, "never came: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Types numbered words, starting at byte `at` of the note, until the process is gone. Returns the words.
fn typist(mut input: ChildStdin, mut at: usize, mark: usize, pace: Duration) -> JoinHandle<Vec<String>> {
    thread::spawn(move || {
        let mut words = Vec::new();
        for number in 0..20_000 {
            let word = format!("{mark}.{number} ");
            let line = insert(at, &word);
            at += word.len();
            words.push(word);
            if input.write_all(line.as_bytes()).is_err() {
                break;
            }
            if !pace.is_zero() {
                thread::sleep(pace);
            }
        }
        words
    })
}

/// Repeated kills at any moment: acknowledged text is there in order, followed by at most a prefix of the rest.
#[test]
fn kill_while_typing() {
    const SEED: u64 = 20_261_122;
    println!("seed {SEED}");
    let mut rng = StdRng::seed_from_u64(SEED);
    let (mut acknowledged, mut lost) = (0, 0);
    for round in 0..10 {
        let place = Place::new();
        let mut known = FIRST.to_owned();
        for kill in 0..5 {
            let moment = Duration::from_millis(rng.random_range(5..400));
            let pace = Duration::from_micros([0, 300, 3_000][rng.random_range(0..3)]);
            let mut running = Running::start(&place, &["edit", NOTE]);
            let input = running.input.take().expect("open");
            let words = typist(input, known.len(), round * 5 + kill, pace);
            thread::sleep(moment);
            let printed = running.kill();
            let words = words.join().expect("typed");
            // The last line may be cut short.
            let count = printed.iter().filter(|line| is_acknowledgement(line)).count();
            assert!(count + 1 >= printed.len(), "{printed:?}");
            acknowledged += count;
            let place_of = || format!("seed {SEED}, round {round}, kill {kill} after {moment:?}");
            if kill % 2 == 1 {
                place.sound(); // as the dead left it
            } else {
                // The recovery is killed, too.
                let recovery = Running::start(&place, &["cat", NOTE]);
                thread::sleep(Duration::from_millis(rng.random_range(1..90)));
                recovery.kill();
            }
            let text = place.cat();
            let typed =
                text.strip_prefix(&known).unwrap_or_else(|| panic!("{}: {known:?} became {text:?}", place_of()));
            let whole = words.concat();
            assert!(whole.starts_with(typed), "{}: {typed:?}", place_of());
            let needed = words[..count].concat();
            assert!(typed.len() >= needed.len(), "{}: {count} were acknowledged, there is {typed:?}", place_of());
            lost += whole.len() - typed.len();
            assert!(place.on_disk() == text, "{}: the file differs", place_of());
            known = text;
        }
        place.sound();
        // A kill during the file's replacement may leave the new file beside it, which isn't listed.
        let listed = fs::read_dir(&place.folder).expect("listed").map(|file| file.expect("listed").file_name());
        let names = listed.map(|name| name.into_string().expect("UTF-8"));
        let others: Vec<String> = names.filter(|name| name != NOTE).collect();
        assert!(others.iter().all(|name| name.starts_with(".tracebook-") && name.ends_with(".tmp")), "{others:?}");
        assert!(!place.run(&["ls", "--json"]).fine().contains(".tracebook-"), "{others:?} are listed");
    }
    println!("{acknowledged} words were acknowledged, {lost} bytes that were not are gone");
    assert!(acknowledged > 500 && lost > 0, "the kills came too early or too late: {acknowledged}, {lost}");
}

/// The child processes of a process, read from `/proc`.
fn children(parent: u32) -> Vec<u32> {
    let processes =
        fs::read_dir("/proc").expect("listed").filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    processes.filter(|process| stat(*process).is_some_and(|(_, of)| of == parent)).collect()
}

/// The state and the parent of a process.
fn stat(process: u32) -> Option<(String, u32)> {
    let mut text = String::new();
    fs::File::open(format!("/proc/{process}/stat")).ok()?.read_to_string(&mut text).ok()?;
    let mut words = text.rsplit_once(')')?.1.split_whitespace();
    Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
}

/// Killed while a cell runs: printed output is kept, the cell shows as interrupted, and its kernel is gone.
#[cfg(target_os = "linux")]
#[test]
fn kill_while_a_cell_runs() {
    let dir = tempfile::tempdir().expect("a folder");
    let (workspace, folder) = (dir.path().join("workspace"), dir.path().join("Notes"));
    let cell = "import time\nn = 0\nwhile True:\n    print('line', n)\n    n += 1\n    time.sleep(0.01)";
    let text = format!("{FIRST}\n```python\n{cell}\n```\n");
    let place = Place::of(dir, workspace, folder, &[(NOTE, &text)]);
    let running = Running::start(&place, &["run", NOTE]);
    while running.line() != "line 250\n" {}
    let kernels = children(running.child.id());
    assert_eq!(kernels.len(), 1, "one kernel");
    assert!(stat(kernels[0]).is_some_and(|(state, _)| state != "Z"), "it runs");
    running.kill();
    until("the end of the kernel", || stat(kernels[0]).is_none_or(|(state, _)| state == "Z"));

    let kept = place.run(&["outputs", NOTE, "--json"]).fine();
    let kept: serde_json::Value = serde_json::from_str(&kept).expect("one line of JSON");
    assert_eq!((&kept["status"], &kept["cell"]), (&"interrupted".into(), &1.into()));
    let printed = kept["outputs"][0]["text"].as_str().expect("text");
    // Output is saved after the first second and each time it has doubled since.
    let lines = printed.lines().count();
    assert!(lines >= 50, "{lines} lines were kept");
    assert_eq!(printed, (0..lines).map(|number| format!("line {number}\n")).collect::<String>());
    assert_eq!(place.cat(), text);
    place.sound();
    // A cell can run again.
    let again = Running::start(&place, &["run", NOTE]);
    assert_eq!((again.line(), again.line()), ("line 0\n".to_owned(), "line 1\n".to_owned()));
}

/// Copies the files of a folder, except those named in `without` and those in subfolders.
fn copy(from: &Path, to: &Path, without: &[&str]) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("listed") {
        let entry = entry.expect("listed");
        let skip = without.iter().any(|name| entry.file_name() == *name);
        if entry.file_type().expect("known").is_file() && !skip {
            fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
        }
    }
}
