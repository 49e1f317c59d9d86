//! Several processes in one workspace: the same answers through the owner as alone, and recovery after a dead owner.

use super::house;
use crate::program::{Done, House, finish, line};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};

/// A result without what differs between two houses: ids, hashes, times and the house's own path.
fn same(house: &House, done: Done) -> (i32, String, String) {
    fn plain(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    match key.as_str() {
                        "id" | "hash" | "actor" | "time" | "started" | "duration" => *value = Value::Null,
                        _ => plain(value),
                    }
                }
            }
            Value::Array(values) => values.iter_mut().for_each(plain),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let here = house.path("").canonicalize().expect("there").to_string_lossy().into_owned();
    let text = done.text();
    let text = text.lines().map(|line| match serde_json::from_str::<Value>(line) {
        Ok(mut value) => {
            plain(&mut value);
            value.to_string()
        }
        Err(_) => line.replace(&here, "HOUSE"),
    });
    (done.code, text.collect::<Vec<_>>().join("\n"), done.err.replace(&here, "HOUSE"))
}

#[test]
fn a_command_does_the_same_while_another_process_owns_the_workspace() {
    let splices = line(0, 0, "one ") + &line(4, 0, "two ");
    let wrong = line(0, 0, "three ") + &line(10_000, 0, "x");
    let rows: &[(&[&str], &[u8], i32)] = &[
        (&["cat", "a.md"], b"", 0),
        (&["cat", "a.md", "--json"], b"", 0),
        (&["ls"], b"", 0),
        (&["ls", "--json"], b"", 0),
        (&["edit", "a.md"], splices.as_bytes(), 0),
        (&["edit", "a.md"], wrong.as_bytes(), 2),
        (&["edit", "a.md", "--text"], b"one two three\n\nnew text\n", 0),
        (&["cat", "a.md"], b"", 0),
        (&["history", "one/twin.md", "--json"], b"", 0),
        (&["history", "one/twin.md"], b"", 0),
        (&["run", "cells.md", "--cell", "1"], b"", 0),
        (&["run", "cells.md", "--cell", "2"], b"", 0),
        (&["run", "cells.md", "--json"], b"", 1),
        (&["run", "cells.md", "--cell", "9"], b"", 2),
        (&["run", "cells.md", "--cell", "3"], b"", 1),
        (&["outputs", "cells.md", "--json"], b"", 0),
        (&["new", "fresh", "--text", "-"], b"fresh\n", 0),
        (&["new", "fresh", "--text", "x", "--json"], b"", 2),
        (&["cat", "fresh"], b"", 0),
        (&["cat", "nowhere"], b"", 2),
        (&["cat", "twin"], b"", 2),
        (&["open", "no folder"], b"", 2),
        (&["open", "notes", "--json"], b"", 0),
        (&["open", "more", "--json"], b"", 0),
        (&["import", "more", "--volume", "notes", "--json"], b"", 0),
        (&["import", "more", "--volume", "notes", "--json"], b"", 2),
        (&["export", "a.md", "out.md"], b"", 0),
        (&["export", "a.md", "out.md"], b"", 2),
        (&["export", "notes", "out", "--json"], b"", 0),
        (&["ls", "--json"], b"", 0),
    ];
    let (alone, beside) = (house(), house());
    for house in [&alone, &beside] {
        house.write("more/more.md", b"more\n");
    }
    let owner = beside.owner("two/twin.md");
    for (words, input, code) in rows {
        let one = same(&alone, alone.fed(words, input).code(*code));
        let other = same(&beside, beside.fed(words, input));
        assert_eq!(one, other, "{words:?}");
    }
    // Text typed through the owner reaches its file soon.
    crate::program::until("the file", || beside.read("notes/a.md") == alone.read("notes/a.md"));
    // Commands that need the workspace for themselves say so or only read.
    beside.run(&["fsck"]).good();
    beside.run(&["init"]).refused(2, "there is a workspace already");
    beside.run(&[]).refused(2, "there is no display");
    assert!(beside.run(&["doctor"]).good().text().contains("it is open in another Tracebook"));
    owner.end();
    assert_eq!(beside.cat("a.md"), alone.cat("a.md"));
    assert_eq!(crate::program::bytes(&beside.path("notes")), crate::program::bytes(&alone.path("notes")));
    beside.run(&["fsck"]).good();
}

#[test]
fn two_type_into_one_note_at_once() {
    let house = house();
    let mut owner = house.owner("a.md");
    let mut other = house.command(&["edit", "a.md"]).spawn().expect("started");
    let mut input = other.stdin.take().expect("piped");
    for number in 0..20 {
        owner.types(0, 0, "o");
        std::io::Write::write_all(&mut input, line(0, 0, &format!("{}", number % 10)).as_bytes()).expect("taken");
    }
    drop(input);
    let done = other.wait_with_output().expect("ended");
    assert_eq!((done.status.code(), done.stdout.iter().filter(|byte| **byte == b'\n').count()), (Some(0), 20));
    owner.end();
    let text = String::from_utf8(house.cat("a.md")).expect("UTF-8");
    let (typed, rest) = text.split_at(40);
    assert_eq!(rest, "# Alpha\n\né and more\n");
    assert_eq!(typed.bytes().filter(|byte| *byte == b'o').count(), 20);
    let digits: String = typed.chars().filter(char::is_ascii_digit).collect();
    assert_eq!(digits, "98765432109876543210", "in the order in which they were typed");
}

#[test]
fn what_a_killed_owner_leaves_is_no_obstacle() {
    let house = house();
    for round in 0..2 {
        let mut owner = house.owner("a.md");
        owner.types(0, 0, "kept ");
        owner.kill();
        assert!(house.path("W/socket").exists(), "the dead one's socket is what this is about");
        let text = format!("{}# Alpha\n\né and more\n", "kept ".repeat(round + 1));
        assert_eq!(house.cat("a.md"), text.as_bytes());
        assert_eq!(house.json(&["ls"]).as_array().expect("an array").len(), 5);
        assert_eq!(house.read("notes/a.md"), text.as_bytes(), "the file has it, too");
    }
    house.edit("a.md", 0, 10, "");
    assert_eq!(house.run(&["run", "cells.md", "--cell", "1"]).good().text(), "out\n42\n");
    let owner = house.owner("a.md");
    assert_eq!(house.cat("a.md"), "# Alpha\n\né and more\n".as_bytes());
    owner.end();
    house.run(&["fsck"]).good();
}

#[test]
fn an_owner_that_is_killed_in_the_middle_of_a_command_ends_it_with_a_sentence() {
    let house = House::with(&[("a.md", "a\n"), ("slow.md", "```python\nwhile True: pass\n```\n")]);
    let owner = house.owner("a.md");
    let asked = house.command(&["run", "slow.md"]);
    let asking = std::thread::spawn(move || finish(asked, b""));
    // The kernel is the owner's child. Once it exists, the cell runs or is about to.
    let pid = serde_json::from_slice::<Value>(&house.read("W/lock")).expect("JSON")["pid"].clone();
    let children = format!("/proc/{pid}/task");
    crate::program::until("the kernel runs", || {
        let threads = fs::read_dir(&children).expect("listed").flatten();
        threads
            .map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default())
            .any(|ids| !ids.is_empty())
    });
    owner.kill();
    let done = asking.join().expect("joined");
    // The command isn't repeated, since part of it could then be done twice.
    done.refused(3, "ended in the middle");
    assert_eq!(house.cat("a.md"), b"a\n");
}

#[test]
fn an_owner_that_is_done_waits_for_what_others_had_it_begin() {
    let house = house();
    let mut owner = house.owner("a.md");
    let mut guest = house.guest("one/twin.md");
    owner.types(0, 0, "o");
    guest.types(0, 0, "one ");
    owner.close();
    guest.types(4, 0, "two ");
    guest.types(8, 0, "three ");
    guest.end();
    owner.end();
    assert_eq!(house.read("notes/one/twin.md"), b"one two three first\n");
    assert_eq!(house.cat("one/twin.md"), b"one two three first\n");
}

#[test]
fn several_that_start_at_once_all_succeed() {
    for fresh in [true, false] {
        let house = House::new();
        for number in 0..4 {
            house.write(&format!("notes/{number}.md"), b"note\n");
        }
        if !fresh {
            house.run(&["open", "notes"]).good();
        }
        std::thread::scope(|scope| {
            let start = |number: usize| {
                let house = &house;
                let note = format!("{number}.md");
                scope.spawn(move || match fresh {
                    true => house.run(&["open", "notes"]).good(),
                    false => house.fed(&["edit", &note], line(0, 0, "a ").as_bytes()).good(),
                })
            };
            (0..4).map(start).collect::<Vec<_>>().into_iter().for_each(|one| _ = one.join().expect("joined"));
        });
        let text = if fresh { "note\n" } else { "a note\n" };
        for number in 0..4 {
            assert_eq!(house.cat(&format!("{number}.md")), text.as_bytes());
        }
        assert_eq!(house.json(&["ls"]).as_array().expect("an array").len(), 4, "one volume, whoever made it");
        house.run(&["fsck"]).good();
    }
}

#[test]
fn the_socket_is_the_owners_alone() {
    let house = house();
    let owner = house.owner("a.md");
    let meta = fs::symlink_metadata(house.path("W/socket")).expect("there");
    assert!(meta.file_type().is_socket());
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    owner.end();
    // In a deep folder the socket's path would be too long, so the socket is in a folder of its own.
    let deep = format!("{}/W", "deep".repeat(30));
    fs::create_dir(house.path("run")).expect("made");
    let command = |words: &[&str]| {
        let words: Vec<&str> = ["--workspace", &deep].into_iter().chain(words.iter().copied()).collect();
        let mut command = house.command(&words);
        command.env("XDG_RUNTIME_DIR", house.path("run"));
        command
    };
    finish(command(&["open", "notes"]), b"").good();
    let mut owner = command(&["edit", "a.md"]).spawn().expect("started");
    let mut socket = String::new();
    crate::program::until("it owns the workspace", || {
        let lock: Value = serde_json::from_slice(&house.read(&format!("{deep}/lock"))).unwrap_or_default();
        socket = lock["socket"].as_str().unwrap_or("").to_owned();
        lock["pid"] == owner.id() && !socket.is_empty()
    });
    let socket = std::path::Path::new(&socket);
    let mode = |path| fs::symlink_metadata(path).expect("there").permissions().mode() & 0o777;
    assert!(socket.starts_with(house.path("run")), "{}", socket.display());
    assert_eq!((mode(socket), mode(socket.parent().expect("a folder"))), (0o600, 0o700));
    let beside = finish(command(&["cat", "a.md"]), b"");
    drop(owner.stdin.take());
    owner.wait().expect("ended");
    assert_eq!(beside.good().out, "# Alpha\n\né and more\n".as_bytes());
}

#[test]
fn a_backup_is_made_while_an_owner_types() {
    let house = house();
    house.run(&["run", "cells.md", "--cell", "1"]).good();
    let outputs = house.run(&["outputs", "cells.md", "--json"]).good().out;
    let mut owner = house.owner("a.md");
    owner.types(0, 0, "typed ");
    house.run(&["backup", "B"]).good();
    owner.types(0, 0, "after the backup ");
    let text = "typed # Alpha\n\né and more\n";
    house.run(&["restore", "B", "--workspace", "elsewhere/R"]).good();
    let there = |words: &[&str]| {
        let words: Vec<&str> = words.iter().copied().chain(["--workspace", "elsewhere/R"]).collect();
        house.run(&words).good()
    };
    there(&["fsck"]);
    assert_eq!(there(&["cat", "a.md"]).out, text.as_bytes());
    assert_eq!(there(&["cat", "two/twin.md"]).out, b"second\n");
    assert_eq!(there(&["outputs", "cells.md", "--json"]).out, outputs);
    owner.end();
    assert_eq!(house.read("notes/a.md"), format!("after the backup {text}").as_bytes());
    assert_eq!(there(&["cat", "a.md"]).out, text.as_bytes(), "the restored one is another");
}
