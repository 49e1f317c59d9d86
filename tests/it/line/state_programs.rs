//! Random programs of cells with undo, redo, edits, forks, and kernels and their owner killed at any moment: variables
//! equal those of a fresh run of the same history, or of the note from top to bottom, and no saved state is lost.
//!
//! `TRACEBOOK_STATES_SEED` repeats a run whose seed a failure printed. At night the programs are longer.

use super::states::science_pack;
use crate::program::{Done, House, finish, pass, until};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

/// The time for generating and running programs of one kind, and that at night.
const TIME: Duration = Duration::from_secs(13);
const NIGHTLY_TIME: Duration = Duration::from_secs(240);
/// The minimum number of steps, however slow the machine is.
const FEWEST_STEPS: usize = 8;
const CELLS: usize = 6;
const NAMES: [char; 4] = ['a', 'b', 'c', 'd'];
const MODULUS: i64 = 1_000_003;

/// The code of a cell: an assignment, and a list that grows in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CellCode {
    to: char,
    from: char,
    times: i64,
    plus: i64,
}

/// The variables' values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Variables {
    numbers: BTreeMap<char, i64>,
    seen: Vec<i64>,
}

impl CellCode {
    fn random(rng: &mut StdRng) -> CellCode {
        let mut name = || NAMES[rng.random_range(0..NAMES.len())];
        let (to, from) = (name(), name());
        CellCode { to, from, times: rng.random_range(1..50), plus: rng.random_range(1..1000) }
    }

    fn text(self) -> String {
        let CellCode { to, from, times, plus } = self;
        format!(
            "```python\n{to} = (globals().get('{to}', 0) * {times} + globals().get('{from}', 0) + {plus}) % {MODULUS}\n\
             seen = globals().get('seen', [])\nseen.append({to})\n\
             print('=', [globals().get(n, 0) for n in 'abcd'], seen)\n```\n"
        )
    }

    /// The variables after running the cell, computed independently of the kernel.
    fn run(self, before: &Variables) -> Variables {
        let mut after = before.clone();
        let value = |name: char| before.numbers.get(&name).copied().unwrap_or(0);
        let result = (value(self.to) * self.times + value(self.from) + self.plus) % MODULUS;
        after.numbers.insert(self.to, result);
        after.seen.push(result);
        after
    }
}

impl Variables {
    /// The text that a cell prints for these variables.
    fn printed(&self) -> String {
        let numbers: Vec<String> =
            NAMES.iter().map(|name| self.numbers.get(name).copied().unwrap_or(0).to_string()).collect();
        let seen: Vec<String> = self.seen.iter().map(ToString::to_string).collect();
        format!("= [{}] [{}]", numbers.join(", "), seen.join(", "))
    }
}

/// The expected states: each with its parent and variables, and the current one of each branch.
#[derive(Clone, Debug, Default)]
struct Model {
    states: Vec<(Option<usize>, Variables)>,
    branch: String,
    branches: BTreeMap<String, Option<usize>>,
    redo: BTreeMap<String, Vec<usize>>,
}

impl Model {
    fn current(&self) -> Option<usize> {
        self.branches[&self.branch]
    }

    fn variables(&self) -> Variables {
        self.current().map(|at| self.states[at].1.clone()).unwrap_or_default()
    }

    fn run(&mut self, code: CellCode) -> usize {
        let variables = code.run(&self.variables());
        self.states.push((self.current(), variables));
        self.redo.remove(&self.branch);
        self.branches.insert(self.branch.clone(), Some(self.states.len() - 1));
        self.states.len() - 1
    }
}

/// A process that owns the workspace and its kernels until it's killed.
struct KernelOwner(Child);

impl KernelOwner {
    fn start(house: &House, pack: &Path) -> KernelOwner {
        let mut command = house.command(&["edit", "b"]);
        command.env("TRACEBOOK_KERNELS", pack);
        let owner = KernelOwner(command.spawn().expect("started"));
        until("it owns the workspace", || {
            let lock: Value =
                serde_json::from_slice(&std::fs::read(house.path("W/lock")).unwrap_or_default()).unwrap_or_default();
            lock["pid"] == owner.0.id() && lock["socket"].is_string()
        });
        owner
    }

    /// Kills the process, waits until its kernel has ended, too, and starts another one.
    fn replace(&mut self, house: &House, pack: &Path) {
        let kernel = self.kernel();
        self.kill();
        kernel.into_iter().for_each(until_ended);
        *self = KernelOwner::start(house, pack);
    }

    fn kill(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("ended");
    }

    /// The process of the note's kernel: a child of the owner that hasn't ended. A kernel whose note is closed saves
    /// its variables, and ends then.
    fn kernel(&self) -> Option<u32> {
        let owner = self.0.id().to_string();
        let entries = std::fs::read_dir("/proc").expect("processes").flatten();
        let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.find(|pid| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let about = process_status(*pid);
            about.is_some_and(|(state, parent)| parent == owner && state != "Z")
                && words.windows(9).any(|part| part == b"--science")
        })
    }
}

impl Drop for KernelOwner {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

struct Program {
    house: House,
    pack: PathBuf,
    owner: KernelOwner,
    cells: Vec<CellCode>,
    text: String,
    model: Model,
    /// The model before each run whose state may not be on disk yet.
    unsure: Vec<Model>,
    /// States that `kernels states` hasn't listed yet, oldest first.
    unlisted: Vec<usize>,
    ids: HashMap<String, usize>,
    listed: HashSet<String>,
    rng: StdRng,
    steps: usize,
    kills: usize,
}

const HEAD: &str = "---\nkernel: science\nfaithful: false\n---\n# A\n\n";

impl Program {
    fn start(pack: PathBuf, seed: u64) -> Program {
        let mut rng = StdRng::seed_from_u64(seed);
        let cells: Vec<CellCode> = (0..CELLS).map(|_| CellCode::random(&mut rng)).collect();
        let text = note_text(HEAD, &cells);
        let house = House::with(&[("a.md", &text), ("b.md", "# B\n")]);
        let owner = KernelOwner::start(&house, &pack);
        let branches = BTreeMap::from([("main".to_owned(), None)]);
        let model = Model { branch: "main".to_owned(), branches, ..Model::default() };
        Program {
            house,
            pack,
            owner,
            cells,
            text,
            model,
            unsure: Vec::new(),
            unlisted: Vec::new(),
            ids: HashMap::new(),
            listed: HashSet::new(),
            rng,
            steps: 0,
            kills: 0,
        }
    }

    fn tracebook(&self, words: &[&str]) -> Done {
        tracebook(&self.house, &self.pack, words)
    }

    /// Kills the process that owns the workspace. Its kernel ends with it. Edits that were reported as done stay.
    fn kill_owner(&mut self) {
        println!("kill the owner");
        self.owner.replace(&self.house, &self.pack);
        self.kills += 1;
        assert_eq!(String::from_utf8_lossy(&self.house.cat("a")), self.text);
        self.look_after_a_kill();
    }

    /// Kills the kernel, if there is one, and waits until it has ended. Returns whether there was one.
    fn kill_kernel(&mut self) -> bool {
        let Some(pid) = self.owner.kernel() else { return false };
        signal(pid, "KILL");
        until_ended(pid);
        self.kills += 1;
        true
    }

    fn run(&mut self) {
        let cell = self.rng.random_range(0..CELLS);
        println!("run cell {}", cell + 1);
        self.unsure.push(self.model.clone());
        let state = self.model.run(self.cells[cell]);
        self.unlisted.push(state);
        let said = self.tracebook(&["run", "a", "--cell", &(cell + 1).to_string()]).good().text();
        let expected = self.model.variables().printed();
        assert!(said.contains(&expected), "cell {} printed {said}, not {expected}", cell + 1);
    }

    /// Kills the kernel while a cell runs, or soon after.
    fn run_and_kill(&mut self) {
        let cell = self.rng.random_range(0..CELLS);
        println!("run cell {} and kill", cell + 1);
        self.unsure.push(self.model.clone());
        let state = self.model.run(self.cells[cell]);
        self.unlisted.push(state);
        let mut command = self.house.command(&["run", "a", "--cell", &(cell + 1).to_string()]);
        command.env("TRACEBOOK_KERNELS", &self.pack);
        let running = std::thread::spawn(move || finish(command, b""));
        std::thread::sleep(Duration::from_micros(self.rng.random_range(0..400_000)));
        let killed = self.kill_kernel();
        let ended = running.join().expect("ended");
        println!("{}{}", ended.text(), ended.err);
        if !killed {
            return;
        }
        self.wait_for_saving();
        // A cell that printed other values ran after the kill, in a new kernel that began with the last saved state.
        let printed = ended.text();
        match printed.contains("= [") && !printed.contains(&self.model.variables().printed()) {
            true => self.look_after_a_kill_before(self.cells[cell], &printed),
            false => self.look_after_a_kill(),
        }
    }

    /// Waits until no kernel is saving: the next kernel waits for it. Undo and redo leave everything as it was.
    fn wait_for_saving(&self) {
        let undone = self.tracebook(&["kernels", "undo", "a"]);
        match undone.code {
            0 => _ = self.tracebook(&["kernels", "redo", "a"]).good(),
            _ => _ = undone.refused(1, "there is no run to undo"),
        }
    }

    /// Lists the states with their parents, oldest first, and the current state. Asserts that no listed state was lost.
    fn list(&mut self) -> (Vec<(String, Option<String>)>, Option<String>) {
        let states = self.tracebook(&["kernels", "states", "a", "--json"]).good().json();
        let states: Vec<(String, Option<String>)> = states
            .as_array()
            .expect("a list")
            .iter()
            .map(|state| (state["state"].as_str().expect("an id").into(), state["parent"].as_str().map(Into::into)))
            .collect();
        let now: HashSet<String> = states.iter().map(|(id, _)| id.clone()).collect();
        let lost: Vec<&String> = self.listed.difference(&now).collect();
        assert!(lost.is_empty(), "states are lost: {lost:?}");
        self.listed = now;
        let text = self.tracebook(&["kernels", "states", "a"]).good().text();
        let current = text.lines().find_map(|line| line.strip_prefix("* ")).map(|current| {
            let begins = current.split(' ').next().expect("an id");
            let known = states.iter().find(|(id, _)| id.starts_with(begins));
            known.unwrap_or_else(|| panic!("the current state isn't listed: {current}")).0.clone()
        });
        (states, current)
    }

    /// Checks the states after a kill: all that were surely on disk are there, and none or some of the last runs.
    fn look_after_a_kill(&mut self) {
        let (states, current) = self.list();
        self.take_what_was_saved(states, current);
    }

    /// Checks the states if the kernel was killed before the run, which a new kernel made from the last saved state.
    fn look_after_a_kill_before(&mut self, code: CellCode, said: &str) {
        println!("the run came after the kill");
        self.unlisted.pop();
        self.model.states.pop();
        let states = std::mem::take(&mut self.model.states);
        self.model = Model { states, ..self.unsure.pop().expect("the model before the run") };
        let (mut states, current) = self.list();
        let run = current.expect("the run's state");
        let at = states.iter().position(|(id, _)| *id == run).expect("listed");
        let (_, from) = states.remove(at);
        self.take_what_was_saved(states, from);
        let state = self.model.run(code);
        self.ids.insert(run, state);
        let expected = self.model.variables().printed();
        assert!(said.contains(&expected), "printed {said}, not {expected}");
    }

    /// Updates the model to these listed states and this current one, after a kill.
    fn take_what_was_saved(&mut self, states: Vec<(String, Option<String>)>, current: Option<String>) {
        let new: Vec<String> = states.into_iter().map(|(id, _)| id).filter(|id| !self.ids.contains_key(id)).collect();
        assert!(new.len() <= self.unlisted.len(), "more states than runs: {new:?}");
        let lost = self.unlisted.len() - new.len();
        println!("after a kill: {lost} of {} lost, at {current:?}", self.unlisted.len());
        self.ids.extend(new.into_iter().zip(self.unlisted.drain(..)));
        assert!(lost <= self.unsure.len(), "{lost} states are lost that others were made from");
        let place = current.map(|id| self.ids[&id]);
        let at = self.unsure.len() - lost;
        // A state is written before it becomes current, so it can exist without being current.
        let mut models = self.unsure[at.saturating_sub(1)..].iter().take(2).chain((lost == 0).then_some(&self.model));
        let fits = models.rfind(|model| model.current() == place).cloned();
        let states = self.model.states.clone();
        self.model = fits.unwrap_or_else(|| panic!("another state is current: {place:?}"));
        self.model.states = states;
        self.unsure.clear();
    }

    /// Runs a command that moves between states, which waits for states that are being saved.
    fn go(&mut self, words: &[&str]) {
        print!("{}: {}", words.join(" "), self.tracebook(words).good().text());
        self.unsure.clear();
    }

    fn undo(&mut self) {
        let Some(current) = self.model.current() else {
            self.tracebook(&["kernels", "undo", "a"]).refused(1, "there is no run to undo");
            return;
        };
        self.go(&["kernels", "undo", "a"]);
        let branch = self.model.branch.clone();
        self.model.redo.entry(branch.clone()).or_default().push(current);
        self.model.branches.insert(branch, self.model.states[current].0);
    }

    fn redo(&mut self) {
        let branch = self.model.branch.clone();
        match self.model.redo.get_mut(&branch).and_then(Vec::pop) {
            Some(state) => {
                self.go(&["kernels", "redo", "a"]);
                self.model.branches.insert(branch, Some(state));
            }
            None => _ = self.tracebook(&["kernels", "redo", "a"]).refused(1, "there is no undone run"),
        }
    }

    fn fork(&mut self) {
        let name = format!("fork {}", self.steps);
        self.go(&["kernels", "fork", "a", "--as", &name]);
        let current = self.model.current();
        self.model.branches.insert(name.clone(), current);
        self.model.branch = name;
    }

    fn other_branch(&mut self) -> Option<String> {
        let others: Vec<String> =
            self.model.branches.keys().filter(|name| **name != self.model.branch).cloned().collect();
        (!others.is_empty()).then(|| others[self.rng.random_range(0..others.len())].clone())
    }

    fn switch_or_adopt(&mut self) {
        let Some(name) = self.other_branch() else { return self.fork() };
        let branch = self.model.branch.clone();
        if self.rng.random_bool(0.5) {
            self.go(&["kernels", "switch", "a", "--as", &name]);
            self.model.branch = name;
        } else {
            self.go(&["kernels", "adopt", "a", "--as", &name]);
            let state = self.model.branches.remove(&name).expect("a branch");
            self.model.redo.remove(&name);
            self.model.redo.remove(&branch);
            self.model.branches.insert(branch, state);
        }
    }

    /// Replaces the code of a cell by editing the note.
    fn edit(&mut self) {
        let cell = self.rng.random_range(0..CELLS);
        let mut cells = self.cells.clone();
        cells[cell] = CellCode::random(&mut self.rng);
        let (old, new) = (self.cells[cell].text(), cells[cell].text());
        let at = self.text.find(&old).expect("the cell");
        if self.text.matches(&old).count() > 1 {
            return;
        }
        let line = serde_json::json!({"at": at, "delete": old.len(), "insert": new}).to_string() + "\n";
        finish(self.house.command(&["edit", "a"]), line.as_bytes()).code(0);
        println!("edit cell {}", cell + 1);
        self.cells = cells;
        self.text = note_text(HEAD, &self.cells);
    }

    fn step(&mut self) {
        self.steps += 1;
        let (step, branch, current) = (self.steps, &self.model.branch, self.model.current());
        println!("{step}: on {branch} at {current:?}, {} of {} unsure", self.unsure.len(), self.unlisted.len());
        match self.rng.random_range(0..21) {
            0..8 => self.run(),
            8..11 => self.undo(),
            11..13 => self.redo(),
            13 => self.fork(),
            14 => self.switch_or_adopt(),
            15 | 16 => self.edit(),
            17 => {
                if self.kill_kernel() {
                    self.look_after_a_kill();
                }
            }
            18 => self.kill_owner(),
            _ => self.run_and_kill(),
        }
    }
}

fn tracebook(house: &House, pack: &Path, words: &[&str]) -> Done {
    let mut command = house.command(words);
    command.env("TRACEBOOK_KERNELS", pack);
    finish(command, b"")
}

/// A note in the default mode, in which a cell runs in the state that the cells above it left, and those below it
/// follow. Its cells have run from the first to some other one, with the code that they have.
struct FaithfulProgram {
    house: House,
    pack: PathBuf,
    owner: KernelOwner,
    cells: Vec<CellCode>,
    text: String,
    /// Number of cells whose runs count, from the first one on.
    line: usize,
    /// Number of undone runs that can be redone.
    undone: usize,
    listed: HashSet<String>,
    rng: StdRng,
    steps: usize,
    kills: usize,
}

const FAITHFUL_HEAD: &str = "---\nkernel: science\n---\n# A\n\n";

impl FaithfulProgram {
    fn start(pack: PathBuf, seed: u64) -> FaithfulProgram {
        let mut rng = StdRng::seed_from_u64(seed);
        let cells: Vec<CellCode> = (0..CELLS).map(|_| CellCode::random(&mut rng)).collect();
        let text = note_text(FAITHFUL_HEAD, &cells);
        let house = House::with(&[("a.md", &text), ("b.md", "# B\n")]);
        let owner = KernelOwner::start(&house, &pack);
        let (listed, line) = (HashSet::new(), 0);
        FaithfulProgram { house, pack, owner, cells, text, line, undone: 0, listed, rng, steps: 0, kills: 0 }
    }

    fn tracebook(&self, words: &[&str]) -> Done {
        tracebook(&self.house, &self.pack, words)
    }

    /// What these cells print in a run from top to bottom.
    fn fresh(&self, cells: Range<usize>) -> Vec<String> {
        let mut variables = Variables::default();
        let run = |cell: &CellCode| {
            variables = cell.run(&variables);
            variables.printed()
        };
        let all: Vec<String> = self.cells.iter().map(run).collect();
        all[cells].to_vec()
    }

    /// Asserts that the note shows what a run from top to bottom gives, for all cells whose runs count.
    fn check_outputs(&self) {
        let said = self.tracebook(&["outputs", "a"]).good().text();
        let printed = said.lines().filter_map(|line| Some(line[line.find("= [")?..].trim_end().to_owned()));
        let shown: Vec<String> = printed.take(self.line).collect();
        assert_eq!(shown, self.fresh(0..self.line), "the note shows {said}");
    }

    /// A cell that ran, or the one after them.
    fn reachable_cell(&mut self) -> usize {
        self.rng.random_range(0..(self.line + 1).min(CELLS))
    }

    fn edit(&mut self, cell: usize) {
        let (old, code) = (self.cells[cell].text(), CellCode::random(&mut self.rng));
        if self.text.matches(&old).count() > 1 {
            return;
        }
        let at = self.text.find(&old).expect("the cell");
        let line = serde_json::json!({"at": at, "delete": old.len(), "insert": code.text()}).to_string() + "\n";
        finish(self.house.command(&["edit", "a"]), line.as_bytes()).code(0);
        println!("edit cell {}", cell + 1);
        self.cells[cell] = code;
        self.text = note_text(FAITHFUL_HEAD, &self.cells);
    }

    fn run(&mut self, cell: usize) {
        println!("run cell {}", cell + 1);
        let said = self.tracebook(&["run", "a", "--cell", &(cell + 1).to_string()]).good().text();
        (self.line, self.undone) = (self.line.max(cell + 1), 0);
        let expected = self.fresh(cell..cell + 1).remove(0);
        assert!(said.contains(&expected), "cell {} printed {said}, not {expected}", cell + 1);
        self.check_outputs();
    }

    fn undo(&mut self) {
        let undone = self.tracebook(&["kernels", "undo", "a"]);
        if self.line == 0 {
            undone.refused(1, "there is no run to undo");
            return;
        }
        print!("undo: {}", undone.good().text());
        (self.line, self.undone) = (self.line - 1, self.undone + 1);
    }

    fn redo(&mut self) {
        let redone = self.tracebook(&["kernels", "redo", "a"]);
        if self.undone == 0 {
            redone.refused(1, "there is no undone run");
            return;
        }
        print!("redo: {}", redone.good().text());
        (self.line, self.undone) = (self.line + 1, self.undone - 1);
    }

    /// Asserts that all states that were listed before are there.
    fn list(&mut self) {
        let states = self.tracebook(&["kernels", "states", "a", "--json"]).good().json();
        let id = |state: &Value| state["state"].as_str().expect("an id").to_owned();
        let now: HashSet<String> = states.as_array().expect("a list").iter().map(id).collect();
        let lost: Vec<&String> = self.listed.difference(&now).collect();
        assert!(lost.is_empty(), "states are lost: {lost:?}");
        self.listed = now;
    }

    /// Edits a cell and runs it, and kills the kernel or the owner meanwhile or soon after.
    fn run_and_kill(&mut self, kills_owner: bool) {
        self.list();
        let cell = self.reachable_cell();
        self.edit(cell);
        println!("run cell {} and kill the {}", cell + 1, if kills_owner { "owner" } else { "kernel" });
        let mut command = self.house.command(&["run", "a", "--cell", &(cell + 1).to_string()]);
        command.env("TRACEBOOK_KERNELS", &self.pack);
        let running = std::thread::spawn(move || finish(command, b""));
        std::thread::sleep(Duration::from_micros(self.rng.random_range(0..400_000)));
        let kernel = self.owner.kernel();
        if kills_owner {
            self.owner.kill();
        } else {
            kernel.into_iter().for_each(|pid| signal(pid, "KILL"));
        }
        let ended = running.join().expect("ended");
        println!("{}{}", ended.text(), ended.err);
        kernel.into_iter().for_each(until_ended);
        if kills_owner {
            self.owner = KernelOwner::start(&self.house, &self.pack);
        }
        self.look_after_a_kill();
    }

    fn kill_owner(&mut self) {
        println!("kill the owner");
        self.list();
        self.owner.replace(&self.house, &self.pack);
        self.look_after_a_kill();
    }

    /// Asserts that what was reported as done is there after a kill, and that a run of the note gives what a fresh one
    /// does.
    fn look_after_a_kill(&mut self) {
        self.kills += 1;
        assert_eq!(String::from_utf8_lossy(&self.house.cat("a")), self.text, "an edit is lost");
        self.list();
        let done = self.tracebook(&["run", "a"]).code(0);
        print!("{}{}", done.text(), done.err);
        (self.line, self.undone) = (CELLS, 0);
        self.check_outputs();
    }

    fn step(&mut self) {
        self.steps += 1;
        println!("{}: {} cells ran, {} undone", self.steps, self.line, self.undone);
        match self.rng.random_range(0..12) {
            0..5 => {
                let cell = self.reachable_cell();
                self.edit(cell);
                self.run(cell);
            }
            5 | 6 => {
                let cell = self.reachable_cell();
                self.run(cell);
            }
            7 | 8 => self.undo(),
            9 => self.redo(),
            10 => self.run_and_kill(false),
            _ => self.kill_owner(),
        }
    }
}

/// The state and the parent of a process.
fn process_status(pid: u32) -> Option<(String, String)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut words = text.rsplit_once(") ")?.1.split(' ');
    Some((words.next()?.to_owned(), words.next()?.to_owned()))
}

fn signal(pid: u32, name: &str) {
    std::process::Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).output().expect("a shell");
}

fn until_ended(pid: u32) {
    until("it has ended", || process_status(pid).is_none_or(|(state, _)| state == "Z"));
}

fn note_text(head: &str, cells: &[CellCode]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.text()).collect();
    format!("{head}{}", cells.join("\n"))
}

/// The time for programs of one kind: more at night.
fn time_for_programs() -> Duration {
    if std::env::var_os("TRACEBOOK_NIGHTLY").is_some() { NIGHTLY_TIME } else { TIME }
}

fn first_seed() -> u64 {
    let seed = std::env::var("TRACEBOOK_STATES_SEED").ok().and_then(|seed| seed.parse().ok());
    seed.unwrap_or_else(|| rand::rng().random())
}

#[test]
fn a_faithful_note_shows_what_a_fresh_run_gives_whatever_is_killed() {
    let Some(pack) = science_pack() else { return };
    let (mut seed, time, began) = (first_seed(), time_for_programs(), Instant::now());
    let (mut steps, mut kills) = (0, 0);
    while steps < FEWEST_STEPS || began.elapsed() < time {
        println!("TRACEBOOK_STATES_SEED={seed}");
        let mut program = FaithfulProgram::start(pack.clone(), seed);
        while program.steps < 40 && (program.steps < FEWEST_STEPS || began.elapsed() < time) {
            program.step();
        }
        program.run_and_kill(true);
        (steps, kills) = (steps + program.steps, kills + program.kills);
        seed = seed.wrapping_add(1);
    }
    println!("{steps} steps, {kills} kills");
}

#[test]
fn variables_are_those_of_a_fresh_run_whatever_happens_to_the_kernel() {
    let Some(pack) = science_pack() else { return };
    let (mut seed, time, began) = (first_seed(), time_for_programs(), Instant::now());
    let (mut steps, mut kills) = (0, 0);
    while steps < FEWEST_STEPS || began.elapsed() < time {
        println!("TRACEBOOK_STATES_SEED={seed}");
        let mut program = Program::start(pack.clone(), seed);
        while program.steps < 60 && (program.steps < FEWEST_STEPS || began.elapsed() < time) {
            program.step();
        }
        program.run();
        (steps, kills) = (steps + program.steps, kills + program.kills);
        seed = seed.wrapping_add(1);
    }
    println!("{steps} steps, {kills} kills");
}

/// A kernel whose note is closed isn't killed while it saves, however little time it gets.
#[test]
fn variables_are_saved_after_their_note_is_closed() {
    let Some(pack) = science_pack() else { return };
    let code = "import numpy\nx = numpy.random.default_rng(1).bytes(50_000_000)";
    let house = House::with(&[("a.md", &format!("{HEAD}```python\n{code}\n```\n")), ("b.md", "# B\n")]);
    let owner = KernelOwner::start(&house, &pack);
    let tracebook = |words: &[&str]| {
        let mut command = house.command(words);
        command.env("TRACEBOOK_KERNELS", &pack);
        finish(command, b"")
    };
    tracebook(&["run", "a"]).good();
    let kernel = owner.kernel().expect("it still saves");
    signal(kernel, "STOP");
    pass(Duration::from_secs(2));
    signal(kernel, "CONT");
    until_ended(kernel);
    let states = tracebook(&["kernels", "states", "a", "--json"]).good().json();
    assert_eq!(states.as_array().map(Vec::len), Some(1), "{states}");
}
