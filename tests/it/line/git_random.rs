//! Random edits here, by another program and by Git, against a model: the same steps of Git in a repository that the
//! program doesn't know. A note's text is always Git's, and what was acknowledged is never lost.

use crate::program::{House, Owner, chosen_seeds, until};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

/// Number of random steps for each seed.
const STEPS: usize = 20;
/// Number of paragraphs in a note: far enough apart for Git to merge changes of two neighbors.
const PARTS: usize = 8;
const NOTES: [&str; 2] = ["a.md", "b.md"];

/// Runs Git with given names and times (in seconds since 1970), so that two repositories with the same steps have the
/// same hashes. Returns whether it succeeded, and what it said.
fn git_at(folder: &Path, time: u64, words: &[&str]) -> (bool, String) {
    let date = format!("{time} +0000");
    let mut command = Command::new("git");
    command.args(words).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_EDITOR", "true");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "Ada").env(format!("GIT_{who}_EMAIL"), "ada@example.org");
        command.env(format!("GIT_{who}_DATE"), &date);
    }
    let done = command.output().expect("git is there");
    let said = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[track_caller]
fn git_well(folder: &Path, time: u64, words: &[&str]) -> String {
    let (is_done, said) = git_at(folder, time, words);
    assert!(is_done, "{words:?}: {said}");
    said
}

/// A word that was put into a note.
struct PlacedWord {
    note: &'static str,
    text: String,
    /// Whether the program has acknowledged or shown it.
    is_known: bool,
}

/// The volume `notes`, the repository `twin` with the same steps, and the clone `other` of someone else.
struct GitRace {
    house: House,
    /// A process that has the workspace open all the time; otherwise each command is a process of its own.
    owner: Option<Owner>,
    chance: StdRng,
    seed: u64,
    step: usize,
    /// When the step began: the time of its commits, which is later than that of the files before.
    time: u64,
    /// What was done, for the message of a failure.
    log: Vec<String>,
    words: Vec<PlacedWord>,
}

impl GitRace {
    fn new(seed: u64) -> GitRace {
        let text: String = (0..PARTS).map(|part| format!("Part {part}.\n\nBetween.\n\n")).collect();
        let house = House::with(&NOTES.map(|note| (note, text.as_str())));
        // The notes have documents before the first commit.
        NOTES.iter().for_each(|note| house.edit(note, 0, 0, "# Mine\n\n"));
        for note in NOTES {
            house.write(&format!("twin/{note}"), &house.read(&format!("notes/{note}")));
        }
        let time = now();
        for folder in ["notes", "twin"] {
            let folder = house.path(folder);
            git_well(&folder, time, &["init", "-q", "-b", "main"]);
            git_well(&folder, time, &["add", "-A"]);
            git_well(&folder, time, &["commit", "-qm", "First"]);
        }
        git_well(&house.path(""), time, &["clone", "-q", "notes", "other"]);
        let owner = (seed % 2 == 1).then(|| house.owner(NOTES[0]));
        let chance = StdRng::seed_from_u64(seed);
        GitRace { house, owner, chance, seed, step: 0, time, log: Vec::new(), words: Vec::new() }
    }

    fn draw(&mut self, most: usize) -> usize {
        self.chance.random_range(0..most)
    }

    fn model(&self, note: &str) -> String {
        String::from_utf8(self.house.read(&format!("twin/{note}"))).expect("text")
    }

    fn context(&self) -> String {
        format!("seed {}, step {}: {}", self.seed, self.step, self.log.join("; "))
    }

    /// Runs Git in both repositories. It succeeds in both, or in none.
    #[track_caller]
    fn both(&mut self, words: &[&str]) -> bool {
        self.log.push(format!("git {}", words.join(" ")));
        let (is_done, said) = git_at(&self.house.path("notes"), self.time, words);
        let (is_done_there, said_there) = git_at(&self.house.path("twin"), self.time, words);
        assert_eq!(is_done, is_done_there, "{}: {said}; {said_there}", self.context());
        is_done
    }

    /// Chooses a place in a note, and a new word for it.
    fn choose_word(&mut self, kind: &str, text_of: &dyn Fn(&House, &str) -> String) -> (&'static str, usize, String) {
        let (note, part) = (NOTES[self.draw(NOTES.len())], self.draw(PARTS));
        let word = format!(" {kind}{}x{};", self.seed, self.step);
        let (text, begin) = (text_of(&self.house, note), format!("Part {part}."));
        let at = text.find(&begin).unwrap_or_else(|| panic!("{}: no “{begin}” in: {text}", self.context()));
        self.log.push(format!("{kind} in {note}, part {part}"));
        self.words.push(PlacedWord { note, text: word.clone(), is_known: false });
        (note, at + begin.len(), word)
    }

    fn type_word(&mut self) {
        let (note, at, word) = self.choose_word("typed", &|house, note| read_text(house, "twin", note));
        match &mut self.owner {
            Some(owner) if note == NOTES[0] => owner.types(at, 0, &word),
            _ => self.house.edit(note, at, 0, &word),
        }
        self.words.iter_mut().for_each(|known| known.is_known |= known.text == word);
        insert(&self.house, "twin", note, at, &word);
    }

    fn write_word(&mut self) {
        let (note, at, word) = self.choose_word("written", &|house, note| read_text(house, "twin", note));
        insert(&self.house, "notes", note, at, &word);
        insert(&self.house, "twin", note, at, &word);
    }

    /// Someone else commits, beside or on top of what is here.
    fn commit_elsewhere(&mut self) {
        let (other, time) = (self.house.path("other"), self.time);
        git_well(&other, time, &["fetch", "-q", "../notes", "HEAD"]);
        if self.draw(3) > 0 {
            git_well(&other, time, &["reset", "-q", "--hard", "FETCH_HEAD"]);
        }
        let (note, at, word) = self.choose_word("theirs", &|house, note| read_text(house, "other", note));
        insert(&self.house, "other", note, at, &word);
        git_well(&other, time, &["commit", "-qam", "Theirs"]);
    }

    /// Takes back what Git has left half done.
    fn back_out(&mut self) {
        self.both(&["merge", "--abort"]);
        self.both(&["rebase", "--abort"]);
        let status = git_well(&self.house.path("notes"), self.time, &["status", "--porcelain"]);
        if status.lines().any(|line| line.starts_with("UU")) {
            self.both(&["reset", "-q", "--hard"]);
        }
    }

    fn take_step(&mut self) {
        let message = format!("--message=S{}", self.step);
        let branch = git_well(&self.house.path("notes"), self.time, &["branch", "--show-current"]);
        let beside = if branch.trim() == "main" { "side" } else { "main" };
        let kind = self.draw(15);
        if matches!(kind, 5 | 6 | 13 | 14) && self.draw(3) > 0 {
            // Git refuses most of these beside changes that aren't committed.
            self.both(&["commit", "-q", "--all", &message]);
        }
        let is_done = match kind {
            0..=3 => {
                self.type_word();
                true
            }
            4 => {
                self.write_word();
                true
            }
            5 | 6 => {
                self.commit_elsewhere();
                let way = if kind == 5 { "--no-rebase" } else { "--rebase" };
                self.both(&["pull", "-q", "--no-edit", way, "../other", "main"])
            }
            7 | 8 => self.both(&["commit", "-q", "--all", &message]),
            9 => self.both(&["commit", "-q", "--all", "--amend", "--no-edit"]),
            10 => {
                let how = ["--soft", "--mixed", "--hard"][self.draw(3)];
                self.both(&["reset", "-q", how, "HEAD~1"])
            }
            11 => match self.draw(2) {
                0 => self.both(&["stash", "push", "-q"]),
                _ => self.both(&["stash", "pop", "-q"]),
            },
            12 => self.both(&["switch", "-q", beside]) || self.both(&["switch", "-q", "-c", beside]),
            13 => self.both(&["merge", "-q", "--no-edit", beside]),
            _ => self.both(&["rebase", "-q", beside]),
        };
        if !is_done {
            self.back_out();
        }
    }

    /// Asserts that notes and files have the model's text, and that both repositories are the same.
    #[track_caller]
    fn check(&mut self) {
        for note in NOTES {
            let expected = self.model(note);
            let file = || read_text(&self.house, "notes", note);
            let shown = || String::from_utf8(self.house.run(&["cat", note]).out).expect("text");
            if self.owner.is_some() {
                until(&format!("{note} has Git's text; {}", self.context()), || {
                    file() == expected && shown() == expected
                });
            }
            assert_eq!(file(), expected, "{note}; {}", self.context());
            assert_eq!(shown(), expected, "{note}; {}", self.context());
            let seen = self.words.iter_mut().filter(|word| word.note == note && expected.contains(&word.text));
            seen.for_each(|word| word.is_known = true);
        }
        for words in [&["for-each-ref"][..], &["status", "--porcelain=v2", "--branch"]] {
            let [ours, model] = ["notes", "twin"].map(|name| git_well(&self.house.path(name), self.time, words));
            assert_eq!(ours, model, "{}", self.context());
        }
    }

    /// Asserts that each word that the program has acknowledged or shown is in its note, or in the note's history.
    fn assert_nothing_lost(&self) {
        for note in NOTES {
            let text = self.model(note);
            let known = self.words.iter().filter(|word| word.note == note && word.is_known);
            let mut missing: Vec<&str> = known.map(|word| word.text.as_str()).collect();
            missing.retain(|word| !text.contains(word));
            let listed = self.house.json(&["history", note]);
            let numbers = listed.as_array().expect("a list").iter().filter_map(|change| change["number"].as_u64());
            for number in numbers.collect::<Vec<_>>().into_iter().rev() {
                if missing.is_empty() {
                    break;
                }
                let version = self.house.run(&["history", note, "--at", &number.to_string()]).good().text();
                missing.retain(|word| !version.contains(word));
            }
            assert!(missing.is_empty(), "{note} has lost {missing:?}; {}", self.context());
        }
        git_well(&self.house.path("notes"), self.time, &["fsck", "--no-dangling"]);
        self.house.run(&["fsck"]).good();
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs()
}

fn read_text(house: &House, folder: &str, note: &str) -> String {
    String::from_utf8(house.read(&format!("{folder}/{note}"))).expect("text")
}

/// Inserts a word into a file, as another program does.
fn insert(house: &House, folder: &str, note: &str, at: usize, word: &str) {
    let mut text = read_text(house, folder, note);
    text.insert_str(at, word);
    house.write(&format!("{folder}/{note}"), text.as_bytes());
}

/// `TRACEBOOK_GIT_SEEDS=from..to` selects the seeds, and the nightly run takes others: even ones run each command as
/// its own process, odd ones beside a process that keeps the workspace open.
#[test]
fn whatever_git_does_a_note_has_its_text_and_loses_nothing() {
    for seed in chosen_seeds("TRACEBOOK_GIT_SEEDS", 24..26) {
        println!("TRACEBOOK_GIT_SEEDS={seed}..{}", seed + 1);
        let mut race = GitRace::new(seed);
        for step in 1..=STEPS {
            (race.step, race.time) = (step, now());
            race.take_step();
            race.check();
        }
        if let Some(owner) = race.owner.take() {
            owner.end();
        }
        race.check();
        race.assert_nothing_lost();
        assert!(race.words.iter().filter(|word| word.is_known).count() > 1, "{}", race.context());
    }
}
