//! The program is killed while an agent works: reported steps are kept, nothing runs twice, pending approvals stay.

use super::agents::{Said, house, model};
use crate::program::{House, is_nightly, pass, until};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A process in which an agent works.
struct Asked {
    child: Child,
    /// The number of steps printed so far, and whether it has said that an approval is pending.
    told: Arc<AtomicUsize>,
    waits: Arc<AtomicBool>,
    steps: JoinHandle<Vec<String>>,
    errors: JoinHandle<Vec<String>>,
}

/// What the process had reported when it was killed.
struct Told {
    steps: BTreeSet<String>,
    /// The approvals that it said it waits for.
    waiting: Vec<String>,
}

impl Asked {
    fn new(house: &House, words: &[&str]) -> Asked {
        let mut child = house.command(words).spawn().expect("started");
        drop(child.stdin.take());
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let err = BufReader::new(child.stderr.take().expect("piped"));
        let (told, waits) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (count, wait) = (told.clone(), waits.clone());
        let steps = std::thread::spawn(move || {
            let lines = out.lines().map_while(Result::ok);
            lines.inspect(|_| _ = count.fetch_add(1, Ordering::AcqRel)).collect()
        });
        let errors = std::thread::spawn(move || {
            let lines = err.lines().map_while(Result::ok);
            lines.inspect(|line| _ = wait.fetch_or(line.contains("waits for"), Ordering::AcqRel)).collect()
        });
        Asked { child, told, waits, steps, errors }
    }

    /// Kills the process `later` after it has printed `steps` steps, waits for approval, or has ended.
    fn kill(mut self, steps: usize, later: Duration) -> Told {
        let end = Instant::now() + Duration::from_secs(60);
        let there = |asked: &Asked| {
            asked.told.load(Ordering::Acquire) >= steps
                || asked.waits.load(Ordering::Acquire)
                || asked.steps.is_finished()
        };
        while !there(&self) {
            assert!(Instant::now() < end, "it tells nothing for a minute");
            std::thread::park_timeout(Duration::from_millis(1));
        }
        pass(later);
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
        let (steps, errors) = (self.steps.join().expect("read"), self.errors.join().expect("read"));
        let step = |line: &String| serde_json::from_str::<Value>(line).ok()?["id"].as_str().map(str::to_owned);
        let name = |line: &String| Some(line.split_once("`tracebook approvals ")?.1.split(' ').next()?.to_owned());
        Told { steps: steps.iter().filter_map(step).collect(), waiting: errors.iter().filter_map(name).collect() }
    }
}

/// Asserts that nothing is damaged. Temporary files that the crash left are allowed, and removed.
fn sound(house: &House, round: usize) {
    let checked = house.run(&["fsck", "--json"]);
    let findings = checked.json()["findings"].as_array().cloned().unwrap_or_default();
    let harmless = findings.iter().all(|finding| finding["what"] == "a crash left it behind");
    assert!(checked.code <= 1 && harmless, "round {round}: {findings:?} {}", checked.err);
    house.run(&["fsck"]).code(0);
}

/// Killed at 20 moments: no printed step is lost, nothing runs twice, pending approvals stay, and the run continues.
/// The model has many more turns than are awaited, so the kill falls inside the run even on a slow machine.
#[test]
fn a_run_is_killed_at_random_moments() {
    const TURNS: usize = 18;
    let forgot = Arc::<AtomicBool>::default();
    let told = forgot.clone();
    let script = move |turn: usize, body: &Value| -> Said {
        pass(Duration::from_millis(15));
        // Even after a crash the model gets the question and all results.
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let asked =
            messages.iter().any(|message| message["role"] == "user" && message["content"].to_string().contains("work"));
        if !asked || (turn > 0 && messages.last().is_some_and(|last| last["role"] == "assistant")) {
            told.store(true, Ordering::Release);
        }
        if turn >= TURNS {
            return ("Done.".to_owned(), Vec::new());
        }
        let mark = format!("echo mark{turn} >> log.txt");
        let write = json!({"path": format!("n{turn}.md"), "content": format!("note {turn}\n")});
        (format!("Turn {turn}."), vec![("shell", json!({"command": mark})), ("write_file", write)])
    };
    let model = model(script);
    let mut rng = StdRng::seed_from_u64(20);
    let (mut interrupted, mut waited) = (0, 0);
    // More of them every night.
    let rounds = if is_nightly() { 20 } else { 12 };
    for round in 0..rounds {
        let house = house(&model, &[("a.md", "# A\n")]);
        // Redirection isn't a plain command, so exact command lines are allowed. Every fourth round allows only some.
        let waits = round % 4 == 3;
        let (allowed, steps) =
            if waits { (rng.random_range(0..5), usize::MAX) } else { (TURNS, rng.random_range(0..28)) };
        let lines: Vec<String> = (0..allowed).map(|turn| format!("shell: echo mark{turn} >> log.txt")).collect();
        let words = ["ask", "work", "--json"].into_iter();
        let words: Vec<&str> = words.chain(lines.iter().flat_map(|line| ["--approve", line])).collect();
        let asked = Asked::new(&house, &words);
        let told = asked.kill(steps, Duration::from_millis(rng.random_range(0..60)));
        let runs = house.run(&["runs", "--json"]).good().lines();
        if runs.is_empty() {
            assert!(told.steps.is_empty(), "round {round}: {:?}", told.steps);
            continue;
        }
        let kept = house.run(&["steps", "last", "--json"]).good().lines();
        let ids: BTreeSet<String> = kept.iter().filter_map(|step| Some(step["id"].as_str()?.to_owned())).collect();
        let lost: Vec<_> = told.steps.difference(&ids).collect();
        assert!(lost.is_empty(), "round {round}: {lost:?} are lost");
        let waiting = house.run(&["approvals", "--json"]).good().lines();
        let waiting: Vec<&str> = waiting.iter().filter_map(|one| one["name"].as_str()).collect();
        assert_eq!(waiting, told.waiting, "round {round}: what waited waits");
        waited += waiting.len();
        if runs[0]["standing"] != "done" {
            interrupted += 1;
        }
        if runs[0]["standing"] != "done" && waiting.is_empty() {
            // Permissions given for the original run no longer apply: the run waits, or it was already past them.
            let done = house.run(&["runs", "last", "--resume", "--json", "--no-wait"]);
            assert!(done.code <= 1, "round {round}: {}", done.err);
            assert!(!forgot.load(Ordering::Acquire), "round {round}: the model was asked without its conversation");
        }
        let log = String::from_utf8_lossy(&std::fs::read(house.path("notes/log.txt")).unwrap_or_default()).into_owned();
        let marks: Vec<&str> = log.lines().collect();
        let once: BTreeSet<&str> = marks.iter().copied().collect();
        assert_eq!(marks.len(), once.len(), "round {round}: something ran twice: {marks:?}");
        sound(&house, round);
    }
    assert!(interrupted * 4 >= rounds * 3, "only {interrupted} of {rounds} were in the middle of it");
    assert_eq!(waited, rounds / 4, "each fourth waited for a word");
}

#[test]
fn what_waited_when_the_program_was_killed_is_decided_by_the_next() {
    let script = |turn: usize, body: &Value| -> Said {
        match turn {
            0 => (String::new(), vec![("shell", json!({"command": "echo once >> log.txt; echo it is done"}))]),
            _ => (format!("{}", body["messages"].to_string().contains("it is done")), Vec::new()),
        }
    };
    let house = house(&model(script), &[("a.md", "# A\n")]);
    let told = Asked::new(&house, &["ask", "work", "--json"]).kill(usize::MAX, Duration::ZERO);
    let name = told.waiting.first().expect("it waits").clone();
    let decided = house.run(&["approvals", &name, "--allow", "--json"]).good().lines();
    assert_eq!(decided.last().map(|step| step["content"].clone()), Some(json!("true")), "{decided:?}");
    until("it ran once", || house.read("notes/log.txt") == b"once\n");
    assert_eq!(house.run(&["runs", "--json"]).good().lines()[0]["standing"], "done");
}

/// What a run knows of a note is kept, so its write is merged with what the user typed after the crash.
#[test]
fn what_is_written_while_a_killed_run_waits_is_kept() {
    let script = |turn: usize, _: &Value| -> Said {
        match turn {
            0 => (String::new(), vec![("read_file", json!({"path": "a.md"}))]),
            1 => {
                let content = "# A\n\none, the agent's\n\ntwo\n\nthree\n";
                (String::new(), vec![("write_file", json!({"path": "a.md", "content": content}))])
            }
            _ => ("Done.".to_owned(), Vec::new()),
        }
    };
    let house = house(&model(script), &[("a.md", "# A\n\none\n\ntwo\n\nthree\n")]);
    super::follower::add_config(&house, "approval:\n  always_approve: [write_file]\n");
    let told = Asked::new(&house, &["ask", "work", "--json"]).kill(usize::MAX, Duration::ZERO);
    let name = told.waiting.first().expect("it waits").clone();
    house.fed(&["edit", "a.md", "--text"], b"# A\n\none\n\ntwo\n\nthree, the user's\n").good();
    house.run(&["approvals", &name, "--allow", "--json"]).code(0);
    let both = "# A\n\none, the agent's\n\ntwo\n\nthree, the user's\n";
    assert_eq!(String::from_utf8_lossy(&house.read("notes/a.md")), both);
    assert_eq!(house.run(&["runs", "--json"]).good().lines()[0]["standing"], "done");
}

/// Number of shell calls in the trace whose replays are killed.
const REPLAYED_CALLS: usize = 4;

fn mark_file(call: usize, month: &str) -> String {
    format!("out{call}/{month}.txt")
}

/// A house that has learned to leave a mark in several folders, and the number of the model's calls. Shells need no
/// approval there, and take long enough that a kill falls inside the replay.
fn marking() -> (House, Arc<AtomicUsize>) {
    let count = Arc::<AtomicUsize>::default();
    let calls = Arc::clone(&count);
    let address = model(move |turn, _: &Value| -> Said {
        calls.fetch_add(1, Ordering::SeqCst);
        match turn {
            0 => (String::new(), vec![("read_file", json!({"path": "data/2026-10.csv"}))]),
            1..=REPLAYED_CALLS => {
                let command = format!("mkdir -p out{turn} && sleep 0.2 && echo once >> {}", mark_file(turn, "2026-10"));
                (String::new(), vec![("shell", json!({ "command": command }))])
            }
            _ => ("It is marked.".to_owned(), Vec::new()),
        }
    });
    let csv = "day,sold\n1,517\n";
    let house = house(&address, &[("a.md", "# A\n"), ("data/2026-10.csv", csv), ("data/2026-11.csv", csv)]);
    super::follower::add_config(&house, "approval:\n  never_approve: [shell]\n");
    house.run(&["ask", "Mark the month of October 2026 from data/2026-10.csv"]).good();
    assert_eq!(house.run(&["traces", "--json"]).good().lines().len(), 1);
    (house, count)
}

/// Replays are killed at seeded moments: no printed step is lost, no call runs twice, the resumed run ends by
/// itself, and no model is asked unless the run says so.
#[test]
fn a_replay_is_killed_at_random_moments() {
    const ROUNDS: usize = 3;
    /// On a slow machine a replay may end before it's killed, so more rounds follow.
    const MAX_ROUNDS: usize = 9;
    const MIN_INTERRUPTED: usize = 2;
    let ask = ["ask", "Mark the month of November 2026 from data/2026-11.csv", "--mode", "follower", "--json"];
    let mut rng = StdRng::seed_from_u64(21);
    let mut interrupted = 0;
    for round in 0..MAX_ROUNDS {
        if round >= ROUNDS && interrupted >= MIN_INTERRUPTED {
            break;
        }
        let (house, count) = marking();
        let asked = count.load(Ordering::SeqCst);
        // Each call is two lines, and the announcement one: the call before the last hasn't ended then.
        let steps = rng.random_range(1..=2 * REPLAYED_CALLS - 2);
        let told = Asked::new(&house, &ask).kill(steps, Duration::from_millis(rng.random_range(0..150)));
        let newest = || house.run(&["runs", "--json"]).good().lines().remove(0);
        let kept = || house.run(&["steps", "last", "--json"]).good();
        assert!(newest()["prompt"].as_str().is_some_and(|text| text.contains("November")), "round {round}");
        let ids: BTreeSet<String> =
            kept().lines().iter().filter_map(|step| Some(step["id"].as_str()?.to_owned())).collect();
        let lost: Vec<_> = told.steps.difference(&ids).collect();
        assert!(lost.is_empty(), "round {round}: {lost:?} are lost");
        if newest()["standing"] != "done" {
            interrupted += 1;
            house.run(&["runs", "last", "--resume", "--json", "--no-wait"]).code(0);
        }
        assert_eq!(newest()["standing"], "done", "round {round}");
        let read = |call| std::fs::read_to_string(house.path("notes").join(mark_file(call, "2026-11"))).ok();
        let marks: Vec<String> = (1..=REPLAYED_CALLS).filter_map(read).collect();
        assert!(marks.iter().all(|mark| mark.matches("once").count() <= 1), "round {round}: it ran twice: {marks:?}");
        // What happened to a call that was under way isn't known: a model continues from there, and the run says so.
        let said = kept().text();
        if !said.contains("A model continues from here") {
            assert_eq!(marks, ["once\n"; REPLAYED_CALLS], "round {round}: {said}");
            assert_eq!(count.load(Ordering::SeqCst), asked, "round {round}: a model was asked: {said}");
        }
        sound(&house, round);
    }
    assert!(interrupted >= MIN_INTERRUPTED, "only {interrupted} were in the middle of it");
}

/// Number of shell calls of each agent whose runs are killed.
const MARKS: usize = 3;
/// A turn that no model holds back.
const NO_TURN: usize = usize::MAX;

/// Two agents, `data` and `docs`, that leave marks in files of their own. Their models hold back their answer in one
/// turn, until it's another one.
struct HeldAgents {
    house: House,
    /// The turn in which answers are held back.
    turn: Arc<AtomicUsize>,
    /// The agents that wait, with the turn.
    waiting: Arc<Mutex<BTreeSet<(&'static str, usize)>>>,
}

impl HeldAgents {
    /// `lead`: the model of all other agents.
    fn new(files: &[(&str, &str)], lead: fn(&Value) -> Said) -> HeldAgents {
        let (turn, waiting) = (Arc::new(AtomicUsize::new(2)), Arc::<Mutex<BTreeSet<_>>>::default());
        let (held, waits) = (Arc::clone(&turn), Arc::clone(&waiting));
        let address = model(move |turn, body: &Value| -> Said {
            let said = body["messages"].to_string();
            let name = match (said.contains("an expert data analyst"), said.contains("an expert technical writer")) {
                (true, _) => "data",
                (_, true) => "docs",
                (false, false) => return lead(body),
            };
            while held.load(Ordering::SeqCst) == turn {
                waits.lock().expect("not poisoned").insert((name, turn));
                pass(Duration::from_millis(5));
            }
            match turn {
                0..MARKS => (String::new(), vec![("shell", json!({"command": format!("echo {turn} >> {name}.log")}))]),
                _ => ("It is marked.".to_owned(), Vec::new()),
            }
        });
        let house = house(&address, files);
        super::follower::add_config(&house, "approval:\n  never_approve: [shell]\nmemory:\n  learn: false\n");
        HeldAgents { house, turn, waiting }
    }

    /// Kills the process once both agents wait in this turn, whose earlier calls are all done.
    fn kill_in(&self, turn: usize, words: &[&str]) {
        self.turn.store(turn, Ordering::SeqCst);
        let asked = Asked::new(&self.house, words);
        let both = BTreeSet::from([("data", turn), ("docs", turn)]);
        until("both wait", || self.waiting.lock().expect("not poisoned").is_superset(&both));
        asked.kill(0, Duration::ZERO);
        self.turn.store(NO_TURN, Ordering::SeqCst);
    }

    /// Kills the work that these words begin, resumes and kills it once more, and lets it end.
    fn kill_twice(&self, words: &[&str]) {
        self.kill_in(2, words);
        let runs = self.house.run(&["runs", "--json"]).good().lines();
        let lead = runs.iter().find(|run| run["origin"]["by"] == "user").expect("a lead")["id"].clone();
        let resume = ["runs", lead.as_str().expect("an id"), "--resume", "--json"];
        self.kill_in(3, &resume);
        self.house.run(&resume).code(0);
        for log in ["notes/data.log", "notes/docs.log"] {
            assert_eq!(String::from_utf8_lossy(&self.house.read(log)), "0\n1\n2\n", "each call ran once: {log}");
        }
        let runs = self.house.run(&["runs", "--json"]).good().lines();
        let stand: Vec<&Value> = runs.iter().map(|run| &run["standing"]).collect();
        assert_eq!(stand, ["done"; 3], "no run was begun twice, and none is left: {runs:#?}");
        sound(&self.house, 0);
    }
}

#[test]
fn tasks_of_a_killed_plan_continue_and_no_call_runs_twice() {
    let plan = "- [ ] Mark the first log ^first\n  ```yaml\n  agent: data\n  ```\n- [ ] Mark the second log \
                ^second\n  ```yaml\n  agent: docs\n  ```\n";
    let agents = HeldAgents::new(&[("tasks/marks.md", plan)], |_| ("Nobody asks me.".to_owned(), Vec::new()));
    agents.kill_twice(&["tasks", "run", "tasks/marks.md", "--json"]);
    let plan = agents.house.read("notes/tasks/marks.md");
    assert_eq!(String::from_utf8_lossy(&plan).matches("- [x] ").count(), 2);
}

#[test]
fn agents_that_were_asked_by_a_killed_one_continue_and_no_call_runs_twice() {
    let lead = |body: &Value| -> Said {
        // It asks both again until it has their answers.
        if body["messages"].to_string().matches("It is marked.").count() >= 2 {
            return ("Both are marked.".to_owned(), Vec::new());
        }
        let question = |agent: &str| ("ask_agent", json!({"agent": agent, "goal": "Mark your log"}));
        (String::new(), vec![question("data"), question("docs")])
    };
    let agents = HeldAgents::new(&[("a.md", "# A\n")], lead);
    agents.kill_twice(&["ask", "Have both logs marked", "--json"]);
}
