//! The program under test as a shell sees it: arguments and input go in; output, errors and an exit code come out. This
//! module knows no internals of the program except that `W/lock` names the owner of a workspace.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_tracebook-under-test");
/// A command that takes longer than this is considered hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// A temporary folder with a workspace `W`, which may not exist yet.
pub(crate) struct House {
    dir: tempfile::TempDir,
}

impl House {
    pub(crate) fn new() -> House {
        House { dir: tempfile::tempdir().expect("a folder") }
    }

    /// A house whose workspace has the folder `notes`, with these files, as a volume.
    pub(crate) fn with(files: &[(&str, &str)]) -> House {
        let house = House::new();
        for (name, text) in files {
            house.write(&format!("notes/{name}"), text.as_bytes());
        }
        house.run(&["open", "notes"]).good();
        house
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder above")).expect("made");
        fs::write(path, bytes).expect("written");
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{error}: {name}"))
    }

    /// The program in this folder, without the tester's own environment.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        self.surround(&mut command, words);
        command
    }

    pub(crate) fn surround(&self, command: &mut Command, words: &[&str]) {
        if !words.contains(&"--workspace") {
            command.args(["--workspace", "W"]);
        }
        command.args(words);
        self.enclose(command);
    }

    /// Runs any program in this folder, with pipes and without the tester's own environment.
    pub(crate) fn enclose(&self, command: &mut Command) {
        command.current_dir(self.dir.path()).env("HOME", self.dir.path());
        for name in [
            "CONTAINER_HOST",
            "DISPLAY",
            "DOCKER_HOST",
            "WAYLAND_DISPLAY",
            "WAYLAND_SOCKET",
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "XDG_RUNTIME_DIR",
        ] {
            command.env_remove(name);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }

    pub(crate) fn run(&self, words: &[&str]) -> Done {
        self.fed(words, b"")
    }

    /// Runs a command with standard input.
    pub(crate) fn fed(&self, words: &[&str], input: &[u8]) -> Done {
        finish(self.command(words), input)
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        self.run(&words).good().json()
    }

    pub(crate) fn cat(&self, note: &str) -> Vec<u8> {
        self.run(&["cat", note]).good().out
    }

    /// Applies one splice in a separate process.
    pub(crate) fn edit(&self, note: &str, at: usize, delete: usize, insert: &str) {
        self.fed(&["edit", note], line(at, delete, insert).as_bytes()).good();
    }

    /// Starts `edit NOTE` on an open pipe, which owns the workspace until it ends.
    pub(crate) fn owner(&self, note: &str) -> Owner {
        let owner = self.guest(note);
        let pid = owner.child.id();
        until("it owns the workspace", || {
            let text = fs::read_to_string(self.path("W/lock")).unwrap_or_default();
            let lock: Value = serde_json::from_str(&text).unwrap_or_default();
            lock["pid"] == pid && lock["socket"].is_string()
        });
        owner
    }

    /// Starts `edit NOTE` beside an owner.
    pub(crate) fn guest(&self, note: &str) -> Owner {
        let mut child = self.command(&["edit", note]).spawn().expect("started");
        let (told, acks) = channel();
        let out = BufReader::new(child.stdout.take().expect("piped"));
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| told.send(line)));
        Owner { input: child.stdin.take(), child, acks }
    }
}

/// One line of `edit`'s input.
pub(crate) fn line(at: usize, delete: usize, insert: &str) -> String {
    serde_json::json!({"at": at, "delete": delete, "insert": insert}).to_string() + "\n"
}

/// A process that edits a note and usually owns the workspace. Killed on drop.
pub(crate) struct Owner {
    child: Child,
    input: Option<ChildStdin>,
    acks: Receiver<String>,
}

impl Owner {
    /// Sends an edit and waits until it's acknowledged as durable.
    pub(crate) fn types(&mut self, at: usize, delete: usize, insert: &str) {
        let input = self.input.as_mut().expect("not ended");
        input.write_all(line(at, delete, insert).as_bytes()).expect("taken");
        let ack = self.acks.recv_timeout(PATIENCE).expect("an answer");
        assert!(ack.ends_with(",\"durable\":true}"), "{ack}");
    }

    /// Sends a signal to its process, such as `-STOP`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status().expect("`kill` runs");
        assert!(sent.success(), "{name}");
    }

    /// Closes its input.
    pub(crate) fn close(&mut self) {
        drop(self.input.take());
    }

    /// Closes its input and waits for a clean exit.
    pub(crate) fn end(mut self) {
        self.close();
        let code = wait(&mut self.child, PATIENCE).expect("the owner ends with its input");
        assert_eq!(code, 0);
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The exit code, output and errors of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Done {
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Done {
        assert_eq!(self.code, code, "{}{}", String::from_utf8_lossy(&self.out), self.err);
        self
    }

    /// Asserts exit code 0 without any error output.
    #[track_caller]
    pub(crate) fn good(self) -> Done {
        assert_eq!(self.err, "");
        self.code(0)
    }

    /// Asserts a refusal with this code and one sentence that contains `about`.
    #[track_caller]
    pub(crate) fn refused(self, code: i32, about: &str) -> Done {
        let sentence = self.err.strip_prefix("tracebook: ").and_then(|rest| rest.strip_suffix('\n'));
        let sentence = sentence.unwrap_or_else(|| panic!("not a sentence of ours: {self:?}"));
        assert!(!sentence.contains('\n') && sentence.len() > 10, "{sentence}");
        assert!(sentence.contains(about), "does not say “{about}”: {sentence}");
        self.code(code)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.out.clone()).expect("UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.text().lines().map(parse).collect()
    }
}

fn wait(child: &mut Child, patience: Duration) -> Option<i32> {
    let until = Instant::now() + patience;
    while Instant::now() < until {
        if let Some(status) = child.try_wait().expect("waited") {
            return Some(status.code().unwrap_or(-1));
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// Returns whether `.ci/nightly` runs the tests, which may take longer then.
pub(crate) fn is_nightly() -> bool {
    std::env::var_os("TRACEBOOK_NIGHTLY").is_some()
}

/// Returns the seeds of a property test: those of an environment variable, as `FROM..TO`, or else the given ones.
pub(crate) fn chosen_seeds(variable: &str, usual: Range<u64>) -> Range<u64> {
    let asked = std::env::var(variable).ok();
    let asked = asked.as_deref().and_then(|seeds| seeds.split_once(".."));
    let asked = asked.and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    asked.unwrap_or(usual)
}

/// Returns whether a slow test is left to `.ci/nightly`, and says so. The test then counts as passed, since only
/// the attribute `ignore` makes it count as anything else; `.ci/run` can count these lines.
pub(crate) fn is_left_to_nightly() -> bool {
    let is_left = !is_nightly();
    if is_left {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let line = format!("left to .ci/nightly: {test} is slow; TRACEBOOK_NIGHTLY=1 runs it here\n");
        // Not by a macro, whose output isn't shown for tests that pass. In one piece, as other tests print, too.
        std::io::stderr().write_all(line.as_bytes()).expect("printed");
    }
    is_left
}

/// Runs a command to its end. A command that hangs is killed and fails the test.
pub(crate) fn finish(command: Command, input: &[u8]) -> Done {
    finish_within(command, input, PATIENCE)
}

/// Like `finish`, with this time limit.
pub(crate) fn finish_within(mut command: Command, input: &[u8], patience: Duration) -> Done {
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{error}: {command:?}"));
    let mut stdin = child.stdin.take().expect("piped");
    let (mut stdout, mut stderr) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let (out, err, code) = std::thread::scope(|scope| {
        let out = scope.spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).map(|_| bytes)
        });
        let err = scope.spawn(move || {
            let mut bytes = Vec::new();
            stderr.read_to_end(&mut bytes).map(|_| bytes)
        });
        // A command that refuses at once doesn't read its input, which isn't a failure here.
        scope.spawn(move || stdin.write_all(input));
        let code = wait(&mut child, patience);
        (out.join().expect("read").expect("read"), err.join().expect("read").expect("read"), code)
    });
    let err = String::from_utf8_lossy(&err).into_owned();
    let code = code.unwrap_or_else(|| panic!("hangs: {command:?}\n{}{err}", String::from_utf8_lossy(&out)));
    Done { code, out, err }
}

/// Waits up to two minutes until a condition holds.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "not in two minutes: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Asserts that something takes less than `limit`; `attempt` returns how long it took. Other processes may take the CPU
/// for seconds, so one fast attempt is enough: a slow implementation is slow in each.
#[track_caller]
pub(crate) fn assert_fast(what: &str, limit: Duration, mut attempt: impl FnMut() -> Duration) {
    const MAX_ATTEMPTS: usize = 5;
    let mut times: Vec<Duration> = Vec::new();
    while times.iter().all(|took| *took >= limit) {
        assert!(times.len() < MAX_ATTEMPTS, "{what} takes {times:.1?}");
        times.push(attempt());
    }
}

/// Runs a test, of this full name, once more in a process of its own, for what concerns a whole process. Returns
/// whether this is that process.
#[track_caller]
pub(crate) fn is_alone(test: &str, prepare: impl FnOnce(&mut Command)) -> bool {
    const TEST_VARIABLE: &str = "TRACEBOOK_TEST_ALONE";
    if std::env::var(TEST_VARIABLE).is_ok_and(|running| running == test) {
        return true;
    }
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    again.args(["--exact", test, "--nocapture"]).env(TEST_VARIABLE, test);
    prepare(&mut again);
    let done = again.output().expect("started");
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && said.contains("1 passed"), "in a process of its own: {said}");
    false
}

/// Lets time pass. A single `park_timeout` may end at once, because threads of an earlier scope leave a token.
pub(crate) fn pass(time: Duration) {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        std::thread::park_timeout(left);
    }
}

/// A file's bytes, modification time and inode.
pub(crate) type Stand = (Vec<u8>, i64, i64, u64);

/// The regular files below a folder by path, without hidden folders and files of 32 MiB or more.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Stand> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).unwrap_or_else(|error| panic!("{error}: {}", at.display())) {
            let entry = entry.expect("listed");
            let (path, meta) = (entry.path(), entry.metadata().expect("a link itself is looked at"));
            if meta.is_dir() && !entry.file_name().to_string_lossy().starts_with('.') {
                folders.push(path);
            } else if meta.is_file() && meta.len() < 32 << 20 {
                let name = path.strip_prefix(folder).expect("below").to_string_lossy().into_owned();
                let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{error}: {}", path.display()));
                found.insert(name, (bytes, meta.mtime(), meta.mtime_nsec(), meta.ino()));
            }
        }
    }
    found
}

/// The bytes of the files below a folder, by path.
pub(crate) fn bytes(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    files(folder).into_iter().map(|(path, stand)| (path, stand.0)).collect()
}

/// Whether missing test requirements are failures, as on the project's own machine.
pub(crate) fn strict() -> bool {
    std::env::var_os("TRACEBOOK_CI").is_some_and(|value| value == "1")
}

/// Whether this process may do everything.
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Whether there's a Chromium or Chrome for tests. On the project's own machine it must be there.
pub(crate) fn has_browser() -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"];
    let there = std::env::split_paths(&folders).any(|folder| names.iter().any(|name| folder.join(name).is_file()));
    assert!(there || !strict(), "TRACEBOOK_CI=1 and there is no Chromium: `apt install chromium`");
    if !there {
        println!("left out: there is no Chromium or Chrome");
    }
    there
}

/// The command lines of all running processes that name `marker`, and of those in the same process groups.
pub(crate) fn processes_naming(marker: &str) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc").expect("listed").flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        let is_over = matches!(fields.next(), None | Some("Z" | "X"));
        let group = fields.nth(1).unwrap_or_default().to_owned();
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if !is_over {
            let pid = entry.file_name().to_string_lossy().into_owned();
            all.push((group, format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " "))));
        }
    }
    let groups: Vec<String> =
        all.iter().filter(|(_, line)| line.contains(marker)).map(|(group, _)| group.clone()).collect();
    all.into_iter().filter(|(group, _)| groups.contains(group)).map(|(_, line)| line).collect()
}

/// Returns the peak memory so far of the process `root` or a descendant, whichever is larger, in bytes. `is_counted`
/// gets the name of each program among them.
pub(crate) fn peak_memory(root: u32, is_counted: &dyn Fn(&str) -> bool) -> u64 {
    let mut parents: BTreeMap<u32, u32> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parents.extend(parent.map(|parent| (pid, parent)));
    }
    let mut family = BTreeSet::from([root]);
    while let Some(more) = parents.iter().find(|(pid, parent)| family.contains(*parent) && !family.contains(*pid)) {
        family.insert(*more.0);
    }
    let high = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()));
        if !field("Name:").is_some_and(|name| is_counted(&name)) {
            return None;
        }
        field("VmHWM:")?.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
    };
    family.iter().filter_map(high).max().unwrap_or(0)
}

/// A folder of the shared data, or `None` with a message if it isn't on this machine.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let data = std::env::var_os("TRACEBOOK_DATA").map_or_else(|| here.join("../../shared/data"), PathBuf::from);
    let folder = data.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(!strict(), "TRACEBOOK_CI=1 and there is no {}", folder.display());
    println!("left out: there is no {} (TRACEBOOK_DATA names the shared data)", folder.display());
    None
}

/// Pseudorandom bytes that depend on the seed and the size.
pub(crate) fn noise(seed: u8, size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ u64::from(seed) << 17 ^ size as u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..size.div_ceil(8)).flat_map(|_| next()).take(size).collect()
}

/// Starts an import of a history into a repository; it's read from standard input.
pub(crate) fn start_import(repository: &Path) -> Child {
    let mut command = Command::new("git");
    command.args(["fast-import", "--quiet", "--force"]).current_dir(repository).stdin(Stdio::piped());
    command.spawn().expect("git is there")
}
