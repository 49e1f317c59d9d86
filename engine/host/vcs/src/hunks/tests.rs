//! Chosen hunks and lines, compared with what `git apply --cached` makes of the same patch.

use super::*;
use proptest::prelude::*;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

fn git(folder: &Path, words: &[&str], input: &str) -> Result<Vec<u8>, String> {
    let mut command = Command::new("git");
    command.args(words).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("git is there");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("written");
    let done = child.wait_with_output().expect("it ends");
    if done.status.success() { Ok(done.stdout) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
}

fn repository(old: &str, new: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    for words in [
        &["init", "-q", "-b", "main"][..],
        &["config", "core.autocrlf", "false"],
        &["config", "user.name", "Ada"],
        &["config", "user.email", "ada@example.org"],
    ] {
        git(dir.path(), words, "").expect("made");
    }
    fs::write(dir.path().join("a.md"), old).expect("written");
    git(dir.path(), &["add", "-A"], "").expect("staged");
    commit(dir.path());
    fs::write(dir.path().join("a.md"), new).expect("written");
    dir
}

fn commit(folder: &Path) {
    git(folder, &["commit", "-qm", "A version"], "").expect("committed");
}

fn staged(folder: &Path) -> String {
    String::from_utf8(git(folder, &["show", ":a.md"], "").expect("it's staged")).expect("text")
}

fn stage(folder: &Path, path: &str, is_unstaging: bool, choices: &[HunkChoice]) -> Result<(), VcsError> {
    match RepositoryFolder::open(folder)?.choose_staged(path, is_unstaging, choices)? {
        IndexUpdate::Set { repository_path, id, mode } => {
            let entry = format!("{mode},{id},{repository_path}");
            git(folder, &["update-index", "--add", "--cacheinfo", &entry], "").expect("staged");
        }
        IndexUpdate::Remove => {
            git(folder, &["update-index", "--force-remove", "--", path], "").expect("removed");
        }
    }
    Ok(())
}

/// Returns the patch of the chosen lines, made from Git's own text of the diff: what isn't chosen stays as it is.
fn patch_of(diff: &str, is_reverse: bool, chosen: &BTreeMap<usize, Vec<bool>>) -> String {
    let (mut patch, mut hunk, mut line, mut is_kept) = (String::new(), 0, 0, true);
    let (mut header, mut body, mut counts) = (String::new(), String::new(), (0, 0));
    // By how many lines the text that the patch makes has grown so far.
    let mut grown = 0;
    let mut end = |header: &mut String, body: &mut String, counts: &mut (i64, i64)| {
        if header.is_empty() {
            patch.push_str(body);
        } else {
            let starts: Vec<i64> =
                header.split([' ', ',']).filter_map(|part| part.strip_prefix(['-', '+'])?.parse().ok()).collect();
            // Git searches from the place that the header names, so both must be right without the other hunks. The
            // start of an empty range is the line before it.
            let is_empty = |count: i64| i64::from(count == 0);
            let (old, new) = match is_reverse {
                false => {
                    let place = starts[0] + is_empty(counts.0) + grown;
                    (starts[0], place - is_empty(counts.1))
                }
                true => {
                    let place = starts[1] + is_empty(counts.1) + grown;
                    (place - is_empty(counts.0), starts[1])
                }
            };
            grown += if is_reverse { counts.0 - counts.1 } else { counts.1 - counts.0 };
            patch.push_str(&format!("@@ -{old},{} +{new},{} @@\n{body}", counts.0, counts.1));
        }
        header.clear();
        body.clear();
        *counts = (0, 0);
    };
    for text in diff.split_inclusive('\n') {
        if text.starts_with("@@ ") {
            end(&mut header, &mut body, &mut counts);
            (hunk, line) = (hunk + 1, 0);
            is_kept = chosen.contains_key(&hunk);
            if is_kept {
                text.clone_into(&mut header);
            }
            continue;
        }
        if hunk == 0 {
            body.push_str(text);
            continue;
        }
        if !is_kept {
            continue;
        }
        let sign = text.chars().next().unwrap_or(' ');
        let mut sign_now = sign;
        if matches!(sign, '+' | '-') {
            line += 1;
            if !chosen[&hunk].get(line - 1).copied().unwrap_or(true) {
                // The side that the patch is applied to has this line, or it doesn't.
                if (sign == '-') == is_reverse {
                    continue;
                }
                sign_now = ' ';
            }
        }
        counts.0 += i64::from(matches!(sign_now, ' ' | '-'));
        counts.1 += i64::from(matches!(sign_now, ' ' | '+'));
        body.push(sign_now);
        body.push_str(&text[sign.len_utf8()..]);
    }
    end(&mut header, &mut body, &mut counts);
    patch
}

fn lines() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(vec!["a\n", "b\n", "c\r\n", "ä\n", "\n", "-x\n", "@@ y\n"]), 0..40)
}

/// Edits as (place, number of removed lines, inserted lines).
type Edits = Vec<(usize, usize, Vec<&'static str>)>;

fn edits() -> impl Strategy<Value = Edits> {
    let words = prop::collection::vec(prop::sample::select(vec!["n\n", "a\n", "m\r\n", "+z\n"]), 0..4);
    prop::collection::vec((0_usize..40, 0_usize..4, words), 1..5)
}

fn edited(old: &[&str], edits: &Edits) -> String {
    let mut new: Vec<&str> = old.to_vec();
    for (at, removed, inserted) in edits {
        let at = (*at).min(new.len());
        new.splice(at..(at + removed).min(new.len()), inserted.iter().copied());
    }
    new.concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chosen_hunks_and_lines_are_staged_as_git_stages_them(
        old in lines(),
        edits in edits(),
        open_ends in (any::<bool>(), any::<bool>()),
        picks in prop::collection::vec(any::<bool>(), 8),
        line_picks in prop::collection::vec(any::<bool>(), 12),
        is_by_line in any::<bool>(),
        is_unstaging in any::<bool>(),
    ) {
        let (mut old_text, mut new_text) = (old.concat(), edited(&old, &edits));
        // Lines chosen around a missing line end have no patch that Git takes; a test below covers them.
        if !is_by_line {
            for (text, is_open) in [(&mut old_text, open_ends.0), (&mut new_text, open_ends.1)] {
                if is_open && text.ends_with('\n') {
                    text.push_str("end");
                }
            }
        }
        prop_assume!(old_text != new_text);
        let (one, other) = (repository(&old_text, &new_text), repository(&old_text, &new_text));
        if is_unstaging {
            for dir in [&one, &other] {
                git(dir.path(), &["add", "-A"], "").expect("staged");
            }
        }
        let part = RepositoryFolder::open(one.path()).expect("opened");
        let hunks = part.hunks("a.md", is_unstaging).expect("hunks");
        let (mut choices, mut chosen) = (Vec::new(), BTreeMap::new());
        for hunk in hunks.iter().filter(|hunk| picks.get(hunk.number % 8).copied().unwrap_or(true)) {
            let changed = hunk.lines.iter().filter(|line| line.number.is_some()).count();
            let picked: Vec<bool> =
                (1..=changed).map(|line| !is_by_line || line_picks[(line + hunk.number) % 12]).collect();
            let lines: Vec<usize> = (1..=changed).filter(|line| picked[line - 1]).collect();
            if !lines.is_empty() {
                choices.push(HunkChoice { hunk: hunk.number, lines });
                chosen.insert(hunk.number, picked);
            }
        }
        prop_assume!(!choices.is_empty());
        let diff = if is_unstaging { part.staged_file_diff("a.md") } else { part.unstaged_diff("a.md") };
        let patch = patch_of(&diff.expect("a diff").0, is_unstaging, &chosen);
        let mut words = vec!["apply", "--cached", "--whitespace=nowarn"];
        words.extend(is_unstaging.then_some("--reverse"));
        git(other.path(), &words, &patch).map_err(|why| TestCaseError::fail(format!("{why}\n{patch}")))?;
        stage(one.path(), "a.md", is_unstaging, &choices).expect("staged");
        prop_assert_eq!(staged(one.path()), staged(other.path()));
        let tree = |dir: &tempfile::TempDir| git(dir.path(), &["write-tree"], "").expect("a tree");
        prop_assert_eq!(tree(&one), tree(&other));
    }
}

#[test]
fn a_missing_line_end_stays_where_it_is_or_is_added() {
    let dir = repository("one\ntwo", "one\nzwei\nthree");
    let choose = |lines: &[usize]| vec![HunkChoice { hunk: 1, lines: lines.to_vec() }];
    // Only “three” is added after “two”, which gets a line end.
    stage(dir.path(), "a.md", false, &choose(&[3])).expect("staged");
    assert_eq!(staged(dir.path()), "one\ntwo\nthree");
    stage(dir.path(), "a.md", true, &choose(&[])).expect("unstaged");
    assert_eq!(staged(dir.path()), "one\ntwo");
    let part = RepositoryFolder::open(dir.path()).expect("opened");
    let bytes = part.without_hunks("a.md", b"one\nzwei\nthree", &choose(&[3])).expect("taken out");
    assert_eq!(bytes, b"one\nzwei\n");
    let all = part.without_hunks("a.md", b"one\nzwei\nthree", &choose(&[])).expect("taken out");
    assert_eq!(all, b"one\ntwo");
    assert!(part.without_hunks("a.md", b"one\nother\nthree", &choose(&[])).is_err(), "the file is another one");
    for (hunk, lines) in [(0, vec![]), (2, vec![]), (1, vec![4]), (1, vec![0])] {
        assert!(part.choose_staged("a.md", false, &[HunkChoice { hunk, lines }]).is_err());
    }
}

#[test]
fn line_ends_that_git_converts_stay_in_the_file() {
    let dir = repository("one\ntwo\nthree\n", "one\r\nzwei\r\nthree\r\nfour\r\n");
    git(dir.path(), &["config", "core.autocrlf", "true"], "").expect("set");
    let part = RepositoryFolder::open(dir.path()).expect("opened");
    let hunks = part.hunks("a.md", false).expect("hunks");
    let changed: Vec<&str> =
        hunks[0].lines.iter().filter(|line| line.number.is_some()).map(|line| line.text.as_str()).collect();
    assert_eq!(changed, ["two", "zwei", "four"]);
    let bytes = fs::read(dir.path().join("a.md")).expect("read");
    let choices = [HunkChoice { hunk: 1, lines: vec![1, 2] }];
    let without = part.without_hunks("a.md", &bytes, &choices).expect("taken out");
    assert_eq!(String::from_utf8(without).expect("text"), "one\r\ntwo\r\nthree\r\nfour\r\n");
    stage(dir.path(), "a.md", false, &choices).expect("staged");
    assert_eq!(staged(dir.path()), "one\nzwei\nthree\n");
}

#[test]
fn new_deleted_renamed_and_odd_files() {
    let long: String = (1..40).map(|number| format!("line {number}\n")).collect();
    let dir = repository(&long, &long);
    let at = |name: &str| dir.path().join(name);
    let all = [HunkChoice { hunk: 1, lines: Vec::new() }];
    let listed = || String::from_utf8(git(dir.path(), &["ls-files"], "").expect("listed")).expect("text");
    // A new file, in part and out again.
    fs::write(at("new.md"), "1\n2\n3\n").expect("written");
    stage(dir.path(), "new.md", false, &[HunkChoice { hunk: 1, lines: vec![1, 3] }]).expect("staged");
    assert_eq!(git(dir.path(), &["show", ":new.md"], "").expect("staged"), b"1\n3\n");
    stage(dir.path(), "new.md", true, &all).expect("unstaged");
    assert_eq!(listed(), "a.md\n");
    let part = || RepositoryFolder::open(dir.path()).expect("opened");
    assert!(part().without_hunks("new.md", b"1\n2\n3\n", &all).is_err(), "a new file is discarded as a whole");
    fs::remove_file(at("new.md")).expect("removed");
    // A deleted file.
    fs::remove_file(at("a.md")).expect("removed");
    stage(dir.path(), "a.md", false, &all).expect("staged");
    assert_eq!(listed(), "");
    stage(dir.path(), "a.md", true, &all).expect("unstaged");
    assert_eq!(staged(dir.path()), long);
    // A renamed file has only the lines that differ.
    fs::write(at("b.md"), long.replace("line 3\n", "three\n")).expect("written");
    git(dir.path(), &["add", "-A"], "").expect("staged");
    let hunks = part().hunks("b.md", true).expect("hunks");
    assert_eq!(hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.number.is_some()).count(), 2);
    stage(dir.path(), "b.md", true, &all).expect("unstaged");
    assert_eq!(git(dir.path(), &["show", ":b.md"], "").expect("staged"), long.as_bytes());
    assert_eq!(listed(), "b.md\n", "it's still renamed");
    // What isn't text, or isn't told apart by lines.
    fs::write(at("data.bin"), b"\0\x01\x02").expect("written");
    assert!(matches!(part().hunks("data.bin", false), Err(VcsError::Refused(why)) if why.contains("isn't text")));
    fs::write(at("large.md"), "x\n").expect("written");
    fs::write(at(".gitattributes"), "large.md filter=lfs\n").expect("written");
    assert!(matches!(part().hunks("large.md", false), Err(VcsError::Refused(why)) if why.contains("filter")));
    for outside in ["../a.md", "/etc/passwd", ".git/config", "", "none.md"] {
        assert!(part().hunks(outside, false).is_err(), "{outside}");
    }
}

#[test]
fn a_conflict_is_left_alone() {
    let dir = repository("one\n", "mine\n");
    git(dir.path(), &["add", "-A"], "").expect("staged");
    git(dir.path(), &["branch", "other"], "").expect("made");
    commit(dir.path());
    git(dir.path(), &["checkout", "-q", "other"], "").expect("switched");
    fs::write(dir.path().join("a.md"), "theirs\n").expect("written");
    git(dir.path(), &["add", "-A"], "").expect("staged");
    commit(dir.path());
    assert!(git(dir.path(), &["merge", "main"], "").is_err());
    let part = RepositoryFolder::open(dir.path()).expect("opened");
    assert!(matches!(part.hunks("a.md", false), Err(VcsError::Refused(why)) if why.contains("conflict")));
}
