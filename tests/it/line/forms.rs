//! The output formats that programs rely on: what each command prints on success, with and without `--json`.

use super::{CELLS, COMMANDS, house, keys};
use crate::program::{House, PROGRAM, finish, line, until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};

#[test]
fn open_and_ls_print_their_forms() {
    let house = house();
    let opened = house.json(&["open", "notes"]);
    assert_eq!(keys(&opened), BTreeSet::from(["attachments", "id", "notes", "skipped", "volume"]));
    assert_eq!((&opened["volume"], &opened["notes"]), (&json!("notes"), &json!(4)));
    assert_eq!((&opened["attachments"], &opened["skipped"]), (&json!(1), &json!([])));
    assert_eq!(house.run(&["open", "notes"]).good().text(), "notes: 4 notes, 1 attachment\n");
    house.write("notes/latin.md", b"caf\xe9");
    let skipped = house.json(&["open", "notes"])["skipped"].clone();
    assert_eq!(skipped.as_array().expect("an array").len(), 1);
    assert_eq!(keys(&skipped[0]), BTreeSet::from(["path", "why"]));
    assert_eq!(skipped[0]["path"], "latin.md");
    let text = house.run(&["open", "notes"]).good().text();
    let why = skipped[0]["why"].as_str().expect("why");
    assert_eq!(text, format!("notes: 4 notes, 2 attachments\n  latin.md: {why}\n"));
    house.write("notes/Shelf.base", b"views: []\n");
    let opened = house.json(&["open", "notes"]);
    assert_eq!((&opened["notes"], &opened["attachments"]), (&json!(4), &json!(3)), "all other files");
    let text = house.run(&["open", "notes"]).good().text();
    assert_eq!(text, format!("notes: 4 notes, 1 collection, 2 attachments\n  latin.md: {why}\n"));
    std::fs::remove_file(house.path("notes/Shelf.base")).expect("a file");
    house.run(&["open", "notes"]).good();

    let listed = house.json(&["ls"]);
    let row = |path: &str, kind: &str, blocks: u64, cells: u64| {
        let volume = "notes";
        json!({"path": path, "kind": kind, "blocks": blocks, "cells": cells, "volume": volume})
    };
    let expected = [
        row("a.md", "note", 1, 0),
        row("cells.md", "note", 5, 4),
        row("data.csv", "attachment", 0, 0),
        row("latin.md", "attachment", 0, 0),
        row("one/twin.md", "note", 1, 0),
        row("two/twin.md", "note", 1, 0),
    ];
    assert_eq!(listed, json!(expected));
    assert_eq!(house.json(&["ls", "--volume", "notes"]), listed);
    let text = house.run(&["ls"]).good().text();
    assert!(text.starts_with("notes\n  a.md\n  cells.md, 4 cells\n  data.csv  (attachment)\n"), "{text}");
}

#[test]
fn ls_lists_tags_with_the_notes_that_have_them() {
    let house = House::with(&[
        ("a.md", "---\ntags: [Gaff, garden/herbs]\n---\n#gaff again\n"),
        ("b.md", "#gaff and `#no`\n"),
        ("c.md", "nothing\n"),
    ]);
    house.write("more/d.md", b"#other\n");
    house.run(&["open", "more"]).good();
    let listed = house.run(&["ls", "--tags", "--json"]).good().lines();
    let row = |volume: &str, tag: &str, notes: u64| json!({"tag": tag, "notes": notes, "volume": volume});
    let lower = |mut row: Value| {
        row["tag"] = row["tag"].as_str().expect("a tag").to_lowercase().into();
        row
    };
    let listed: Vec<Value> = listed.into_iter().map(lower).collect();
    assert_eq!(listed, [row("more", "other", 1), row("notes", "gaff", 2), row("notes", "garden/herbs", 1)]);
    let text = house.run(&["ls", "--tags", "--volume", "more"]).good().text();
    assert_eq!(text, "     1  #other  (more)\n");
    house.run(&["ls", "--tags", "--volume", "nowhere"]).refused(2, "nowhere");
}

#[test]
fn edit_acknowledges_each_line() {
    let house = house();
    let lines = line(0, 2, "## ") + "\n" + &line(3, 5, "") + "{\"at\":0,\"insert\":\"é\"}\r\n" + "{\"at\":2}";
    let done = house.fed(&["edit", "a.md"], lines.as_bytes()).good();
    let acks = done.lines();
    let seqs: Vec<u64> = acks.iter().map(|ack| ack["seq"].as_u64().expect("a number")).collect();
    assert_eq!(acks.len(), 4);
    assert!(seqs.is_sorted() && seqs[0] < seqs[1] && seqs[1] < seqs[2], "{seqs:?}");
    let form = |seq: &u64| format!("{{\"seq\":{seq},\"durable\":true}}\n");
    assert_eq!(done.text(), seqs.iter().map(form).collect::<String>());
    assert_eq!(house.cat("a.md"), "é## \n\né and more\n".as_bytes());
    assert_eq!(house.read("notes/a.md"), "é## \n\né and more\n".as_bytes());

    let done = house.fed(&["edit", "a.md", "--text"], b"# Alpha\n\nall new\n").good();
    assert_eq!((done.lines().len(), &done.lines()[0]["durable"]), (1, &json!(true)));
    assert_eq!(house.cat("a.md"), b"# Alpha\n\nall new\n");
    let json = house.fed(&["edit", "a.md", "--json"], line(0, 0, "x").as_bytes()).good().lines();
    assert_eq!(keys(&json[0]), BTreeSet::from(["durable", "seq"]));
    let whole = json!({"text": "x# Alpha\n\nall new\n", "path": "a.md", "volume": "notes"});
    let mut printed = house.json(&["cat", "a.md"]);
    let version = printed.as_object_mut().and_then(|printed| printed.remove("version"));
    assert!(version.is_some_and(|version| version.as_str().is_some_and(|version| version.len() == 64)));
    assert_eq!(printed, whole);
    assert_eq!(house.fed(&["edit", "a.md"], b"").good().out, b"");
}

#[test]
fn run_prints_outputs_in_nbformats_form() {
    let house = house();
    let done = house.run(&["run", "cells.md", "--json"]).code(1);
    assert_eq!(done.err, "");
    let lines = done.lines();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!(lines[0], json!({"output_type": "stream", "name": "stdout", "text": "out\n", "cell": 1}));
    let value = json!({"output_type": "execute_result", "data": {"text/plain": "42"}, "metadata": {},
        "execution_count": 1, "cell": 1});
    assert_eq!(lines[1], value);
    assert_eq!(lines[2], json!({"output_type": "stream", "name": "stderr", "text": "err", "cell": 2}));
    let error = &lines[3];
    assert_eq!(keys(error), BTreeSet::from(["cell", "ename", "evalue", "output_type", "traceback"]));
    assert_eq!((&error["output_type"], &error["cell"]), (&json!("error"), &json!(3)));
    assert_eq!((&error["ename"], &error["evalue"]), (&json!("ZeroDivisionError"), &json!("division by zero")));
    let traceback = error["traceback"].as_array().expect("an array");
    assert!(traceback.len() > 1 && traceback.iter().all(Value::is_string), "{traceback:?}");

    // Outputs are kept and the same in a new process.
    let kept = house.run(&["outputs", "cells.md", "--json"]).good().lines();
    let kept: Vec<Value> = kept
        .iter()
        .flat_map(|cell| cell["outputs"].as_array().expect("an array").iter().map(|one| (cell["cell"].clone(), one)))
        .map(|(cell, output)| {
            let mut output = output.clone();
            output["cell"] = cell;
            output
        })
        .collect();
    assert_eq!(kept, lines);
    let text = house.run(&["outputs", "cells.md"]).good().text();
    assert!(text.contains("out\n42\n") && text.contains("division by zero"), "{text}");

    let done = house.run(&["run", "cells.md", "--cell", "1"]).good();
    assert_eq!(done.text(), "out\n42\n");
    let done = house.run(&["run", "cells.md", "--cell", "2"]).code(0);
    assert_eq!((done.text(), done.err), (String::new(), "err".to_owned()));
    let done = house.run(&["run", "cells.md", "--cell", "3"]).code(1);
    assert!(done.text().ends_with("ZeroDivisionError: division by zero\n"), "{done:?}");
    assert_eq!(house.run(&["run", "cells.md", "--cell", "4", "--json"]).good().lines()[0]["cell"], 4);
    assert_eq!(house.run(&["run", "a.md"]).code(0).out, b"", "a note without cells");
    assert_eq!(house.read("notes/cells.md"), CELLS.as_bytes(), "running wrote into the file");
}

#[test]
fn a_cell_that_does_not_end_is_stopped_by_its_timeout() {
    let house = House::with(&[("a.md", "```python\nwhile True: pass\n```\n\n```python\n1\n```\n")]);
    let begun = std::time::Instant::now();
    let done = house.run(&["run", "a.md", "--timeout", "1"]).code(1);
    let time = begun.elapsed().as_secs_f64();
    assert!((1.0..8.0).contains(&time), "{time} s");
    assert!(done.text().contains("TimeLimit: stopped after 1 s"), "{}", done.text());
    let done = house.run(&["run", "a.md", "--timeout", "1", "--json"]).code(1);
    assert!(done.lines().iter().all(|line| line["cell"] == 1), "cell 2 ran");
    assert_eq!(house.run(&["run", "a.md", "--cell", "2", "--timeout", "30"]).good().out, b"1\n");
}

#[test]
fn a_program_waits_for_the_run_of_another_one_up_to_its_limit() {
    let code = "import time\nopen('seen', 'w').close()\ntime.sleep(300)";
    let house = House::with(&[("a.md", &format!("```python timeout=0\n{code}\n```\n"))]);
    std::thread::scope(|scope| {
        let command = house.command(&["run", "a.md"]);
        let first = scope.spawn(move || finish(command, b""));
        until("it runs", || house.path("notes/seen").exists());
        let second = house.run(&["run", "a.md", "--json", "--timeout", "1"]);
        house.run(&["run", "a.md", "--stop"]).good();
        first.join().expect("it ends").code(1);
        second.refused(1, "cell 1 still runs for another program after 1 s");
    });
}

#[test]
fn new_history_import_and_export_print_their_forms() {
    let house = house();
    let made = house.json(&["new", "deep/er/idea", "--text", "first\n"]);
    assert_eq!(keys(&made), BTreeSet::from(["id", "path", "volume"]));
    assert_eq!((&made["path"], &made["volume"]), (&json!("deep/er/idea.md"), &json!("notes")));
    assert_eq!(house.read("notes/deep/er/idea.md"), b"first\n");
    let done = house.fed(&["new", "x.md", "--text", "-"], "from é\r\n".as_bytes()).good();
    assert_eq!(done.text(), "notes:x.md\n");
    assert_eq!(house.read("notes/x.md"), "from é\r\n".as_bytes());
    house.run(&["new", "empty"]).good();
    assert_eq!(house.cat("empty"), b"");

    assert_eq!(house.json(&["history", "a.md"]), json!([]), "opened is not changed");
    assert!(house.run(&["history", "a.md"]).good().text().starts_with("no changes yet"));
    house.edit("a.md", 0, 0, "x");
    let changes = house.json(&["history", "a.md"]);
    let changes = changes.as_array().expect("an array");
    assert!(changes.iter().all(|change| change["hash"].is_string() && change["time"].is_i64()), "{changes:?}");
    assert_eq!(house.run(&["history", "a.md"]).good().text().lines().count(), changes.len());

    house.write("in/one.md", b"1\n");
    house.write("in/two.md", b"2\n");
    let imported = house.json(&["import", "in", "in/one.md", "--volume", "notes"]);
    let expected = json!({"volume": "notes", "imported": ["in/one.md", "in/two.md", "one.md"], "skipped": []});
    assert_eq!(imported, expected);
    assert_eq!(house.cat("in/two.md"), b"2\n");
    house.write("three.md", b"3\n");
    assert_eq!(house.run(&["import", "three.md"]).good().text(), "Notes: 1 file imported\n");
    assert_eq!(house.read("W/Notes/three.md"), b"3\n");
    assert_eq!(house.json(&["export", "three", "to/3.md"]), json!({"exported": ["three.md"], "skipped": []}));
    assert_eq!(house.read("to/3.md"), b"3\n");
    assert!(house.run(&["export", "Notes", "all"]).good().text().starts_with("1 file exported to "));
    house.write("Export.zip", b"PK");
    let packed = house.run(&["import", "Export.zip"]).code(0);
    assert!(packed.err.contains("Export.zip is an attachment; to use notes in it, unpack it"), "{packed:?}");
    assert_eq!(house.read("W/Notes/Export.zip"), b"PK");
    house.run(&["export", "three", "-"]).refused(2, "name a new file or folder");
}

#[test]
fn the_workspace_is_made_checked_backed_up_and_looked_at() {
    let house = House::new();
    assert!(house.run(&["init"]).good().text().starts_with("made a workspace: "));
    house.run(&["init"]).refused(2, "there is a workspace already");
    assert_eq!(house.json(&["ls"]), json!([]));
    let done = house.run(&["init", "--json", "--workspace", "W2"]).good().json();
    assert_eq!(done, json!({"workspace": house.path("W2").canonicalize().expect("there")}));

    house.write("notes/a.md", b"a\n");
    house.run(&["open", "notes"]).good();
    house.edit("a", 0, 0, "b");
    let report = house.json(&["fsck"]);
    assert!(report["findings"].is_array() && report["documents"].is_u64(), "{report}");
    assert!(house.run(&["fsck"]).good().text().ends_with("everything is in order\n"));
    house.run(&["fsck", "--check"]).good();
    assert!(house.json(&["backup", "B"])["files"].as_u64().is_some_and(|files| files > 2));
    assert!(house.run(&["backup", "B2"]).good().text().starts_with("backed up "));
    house.run(&["backup", "B"]).refused(2, "");
    house.run(&["restore", "B", "--workspace", "R"]).good();
    assert!(house.run(&["restore", "B2", "--json", "--workspace", "R2"]).good().json()["files"].is_u64());
    house.run(&["restore", "B", "--workspace", "R"]).refused(2, "");
    for place in ["R", "R2"] {
        assert_eq!(house.run(&["cat", "a.md", "--workspace", place]).good().out, b"ba\n");
        house.run(&["fsck", "--workspace", place]).good();
    }

    let offers = house.json(&["doctor"]);
    let offers = offers.as_array().expect("an array");
    assert!(offers.iter().any(|offer| offer["area"] == "workspace" && offer["there"] == true), "{offers:?}");
    let text = house.run(&["doctor"]).good().text();
    assert_eq!(text.lines().count(), offers.len());
    for area in ["display", "sandbox", "kernel", "model"] {
        assert!(text.contains(area), "doctor does not speak of {area}: {text}");
    }
}

#[test]
fn the_default_workspace_lies_in_the_platforms_folder() {
    let house = House::new();
    let run = |words: &[&str]| {
        let mut plain = Command::new(PROGRAM);
        plain.args(words).current_dir(house.path("")).env("XDG_DATA_HOME", house.path("data"));
        plain.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(plain, b"")
    };
    run(&["ls"]).refused(2, "data/tracebook");
    run(&["init"]).good();
    assert!(house.path("data/tracebook/tracebook.db").is_file());
    assert_eq!(run(&["ls", "--json"]).good().json(), json!([]));
}

#[test]
fn run_prints_all_of_a_long_stream() {
    let house =
        House::with(&[("a.md", "```python\nfor n in range(40_000): print('é', n)\nprint('x' * 200_000)\n```\n")]);
    house.run(&["open", "notes"]).good();
    let expected: String = (0..40_000).map(|n| format!("é {n}\n")).collect::<String>() + &"x".repeat(200_000) + "\n";
    assert!(house.run(&["run", "a.md"]).good().text() == expected);
}

#[test]
fn help_manual_and_completions_name_every_command() {
    let house = House::new();
    let help = house.run(&["help", "--all"]).good().text();
    for group in ["Notes:", "Cells:", "Search:", "Agents:", "Sync:", "Maintenance:"] {
        assert!(help.lines().any(|line| line == group), "help: no {group}");
    }
    let short = house.run(&["--help"]).good().text();
    assert!(short.lines().count() <= 24 && short.lines().all(|line| line.chars().count() <= 80), "{short}");
    assert!(short.contains("tracebook help --all lists everything"), "{short}");
    for words in ["help", "-h"] {
        assert_eq!(house.run(&[words]).good().text(), short, "{words}");
    }
    let manual = house.run(&["man"]).good().text();
    assert!(manual.starts_with(".ie") || manual.starts_with(".TH"), "{manual}");
    for name in COMMANDS {
        assert!(help.lines().any(|line| line.split_whitespace().next() == Some(name)), "help: no {name}");
        assert!(short.split_whitespace().any(|word| word == name), "short help: no {name}");
        assert!(manual.contains(&format!(".SH \"{}\"", name.to_uppercase())), "man: no {name}");
        let one = house.run(&["help", name]).good().text();
        assert!(one.contains("--workspace") && one.contains("--json"), "{one}");
        assert_eq!(one.lines().filter(|line| line.starts_with("  tracebook ")).count(), 2, "two examples: {one}");
    }
    house.write("manual.1", manual.as_bytes());
    match Command::new("groff").args(["-man", "-Tutf8", "-ww"]).arg(house.path("manual.1")).output() {
        Ok(page) => {
            assert!(page.status.success() && page.stderr.is_empty(), "{}", String::from_utf8_lossy(&page.stderr));
            let page = String::from_utf8_lossy(&page.stdout);
            assert!(COMMANDS.iter().all(|name| page.contains(&format!("tracebook-{name}(1)"))), "{page}");
        }
        Err(_) => println!("left out: there is no groff to set the manual page with"),
    }
    for code in ["0  done", "1  a cell", "2  wrong use", "3  the workspace"] {
        assert!(help.contains(code), "the exit codes are not told: {help}");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = house.run(&["completions", shell]).good();
        for name in COMMANDS {
            assert!(script.text().contains(name), "{shell}: no {name}");
        }
        if shell == "bash" {
            house.write("completions", &script.out);
            let parsed = Command::new("bash").arg("-n").arg(house.path("completions")).output().expect("bash");
            assert!(parsed.status.success() && parsed.stderr.is_empty(), "{parsed:?}");
        }
    }
    let version = house.run(&["--version"]).good().text();
    let number = version.strip_prefix("tracebook ").and_then(|rest| rest.strip_suffix('\n')).expect("its form");
    assert_eq!(number.split('.').filter(|part| part.parse::<u32>().is_ok()).count(), 3, "{version}");
    assert!(!house.path("W").exists(), "asking made a workspace");
}

#[test]
fn what_cannot_be_exported_or_run_is_said() {
    let house = House::with(&[("a.md", "# A\n\nText.\n")]);
    house.run(&["open", "notes"]).good();
    house.run(&["export", "a.md", "a.docx"]).refused(2, "can't export to .docx: use .md, .html, .pdf, .ipynb or .py");
    house.run(&["export", "a.md", "a.png"]).refused(2, "can't export to .png");
    assert!(!house.path("a.docx").exists() && !house.path("a.png").exists());
    let ran = house.run(&["run", "a.md"]).code(0);
    assert!(ran.err.contains("a.md has no cells to run") && ran.text().is_empty(), "{}", ran.err);
}

#[test]
fn a_kernel_that_does_not_exist_is_refused_before_any_cell_runs() {
    let house = House::with(&[("a.md", "```python\nprint(6 * 7)\n```\n")]);
    house.run(&["open", "notes"]).good();
    for words in [&["run", "a.md", "--kernel", "nope"][..], &["kernels", "a.md", "--use", "nope"]] {
        let done = house.run(words).refused(2, "there is no Jupyter kernel nope here");
        assert!(done.err.contains("choose one of: instant, science, environment"), "{}", done.err);
        assert!(done.text().is_empty(), "{}", done.text());
    }
    for name in ["builtin", "built-in", "embedded", "instant"] {
        assert_eq!(house.run(&["run", "a.md", "--kernel", name]).good().text(), "42\n", "{name}");
    }
}

#[test]
fn a_thought_is_captured_in_todays_note() {
    let house = House::with(&[("a.md", "# A\n")]);
    house.run(&["open", "notes"]).good();
    let said = house.run(&["capture", "Call Ada"]).good().text();
    let path = said.trim().strip_prefix("Added to ").expect("where it went").to_owned();
    assert!(path.starts_with("Journal/2") && path.ends_with(".md"), "{path}");
    house.fed(&["capture", "-"], b"two\nlines\n").good();
    let text = std::fs::read_to_string(house.path("notes").join(&path)).expect("the note");
    assert!(text.starts_with("# 2") && text.ends_with("\n\n- Call Ada\n- two\n  lines\n"), "{text}");
    house.run(&["capture", "  "]).refused(2, "there is nothing to capture");
}

#[test]
fn a_template_of_obsidian_writes_weeks_and_ordinals() {
    let template = "{{date:MMMM Do}}|{{date:YYYY-[W]W}}|{{date:[Q]Q YYYY}}\n";
    let house = House::with(&[("Templates/Daily.md", template)]);
    let said = house.run(&["capture", "Call Ada"]).good().text();
    let path = said.trim().strip_prefix("Added to ").expect("where it went").to_owned();
    let text = String::from_utf8(house.read(&format!("notes/{path}"))).expect("text");
    let [day, week, quarter] = text.lines().next().unwrap_or_default().split('|').collect::<Vec<_>>()[..] else {
        panic!("{text}")
    };
    let (_, ordinal) = day.rsplit_once(' ').expect("a month and a day");
    let number = ordinal.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    assert!((1..=31).contains(&number.parse().unwrap_or(0)), "{text}");
    assert!(["st", "nd", "rd", "th"].contains(&&ordinal[number.len()..]), "{text}");
    let (_, week) = week.split_once("-W").expect("a week");
    assert!((1..=53).contains(&week.parse().unwrap_or(0)), "{text}");
    assert!(matches!(quarter.get(..2), Some("Q1" | "Q2" | "Q3" | "Q4")), "{text}");
}
