//! `mv`, `rm`, `trash`, `restore-note`, `undo`, `follow`, `links`, `todos`, `base`.

use crate::program::House;
use serde_json::{Value, json};

fn rows(house: &House, words: &[&str]) -> Vec<Value> {
    let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
    let out = house.run(&words).good().text();
    out.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
fn a_note_is_moved_deleted_and_restored() {
    let house = House::with(&[("a.md", "[[b]] [x](sub/b.md)\n"), ("sub/b.md", "[up](../a.md)\n"), ("sub/c.md", "")]);
    house.edit("sub/b.md", 0, 0, "B: ");
    let moved = rows(&house, &["mv", "b", "other/new b"]);
    assert_eq!(moved, [json!({"from": "sub/b.md", "to": "other/new b.md"})]);
    assert_eq!(house.read("notes/a.md"), b"[[new b]] [x](other/new%20b.md)\n");
    assert!(!house.path("notes/sub/b.md").exists());
    assert!(house.json(&["history", "new b"]).as_array().is_some_and(|changes| !changes.is_empty()));
    house.run(&["mv", "other", "third/place"]).good();
    assert_eq!(house.read("notes/a.md"), b"[[new b]] [x](third/place/new%20b.md)\n");
    assert_eq!(house.read("notes/third/place/new b.md"), b"B: [up](../../a.md)\n");
    assert!(!house.path("notes/other").exists(), "an empty folder is left");
    assert_eq!(house.run(&["mv", "new b", "sub/"]).good().text(), "third/place/new b.md -> sub/new b.md\n");
    house.run(&["mv", "new b", "sub/c.md"]).refused(2, "that name already");
    house.run(&["mv", "nowhere", "b"]).refused(2, "there is no note");

    house.run(&["rm", "new b"]).good();
    assert!(!house.path("notes/sub/new b.md").exists());
    assert_eq!(rows(&house, &["links", "--broken"]).len(), 2);
    let trash = rows(&house, &["trash"]);
    assert_eq!((trash.len(), &trash[0]["path"]), (1, &json!("sub/new b.md")));
    // A backup includes the trash.
    house.run(&["backup", "B"]).good();
    house.run(&["restore", "B", "--workspace", "elsewhere/R"]).good();
    house.run(&["restore-note", "new b", "--workspace", "elsewhere/R"]).good();
    assert_eq!(house.run(&["cat", "new b", "--workspace", "elsewhere/R"]).good().out, b"B: [up](../a.md)\n");
    house.run(&["restore-note", "gone"]).refused(2, "in the trash");
    assert_eq!(house.run(&["restore-note", "new b", "back.md"]).good().text(), "back.md\n");
    assert_eq!(house.read("notes/back.md"), b"B: [up](../a.md)\n");
    assert!(house.json(&["history", "back"]).as_array().is_some_and(|changes| !changes.is_empty()));
    assert!(house.run(&["trash"]).good().text().is_empty());
    // Permanent deletion keeps nothing of the note.
    house.run(&["rm", "back"]).good();
    house.run(&["rm", "a.md"]).good();
    house.run(&["trash", "--delete", "nowhere"]).refused(2, "in the trash");
    assert_eq!(house.run(&["trash", "--delete", "back"]).good().text(), "permanently deleted: 1\n");
    assert_eq!(rows(&house, &["trash"]).len(), 1);
    assert_eq!(rows(&house, &["trash", "--empty"]), [json!({"deleted": 1})]);
    assert!(house.run(&["trash"]).good().text().is_empty());
    house.run(&["restore-note", "back"]).refused(2, "in the trash");
    house.run(&["fsck"]).good();
}

#[test]
fn a_note_that_another_program_took_away_holds_no_move_up() {
    let house = House::with(&[("a.md", "[[b]]\n"), ("b.md", "b\n"), ("sub/c.md", "c\n")]);
    // Their links are known from other bytes than the files had last, so they're to be read again.
    house.edit("b.md", 0, 0, "new ");
    house.edit("sub/c.md", 0, 0, "new ");
    std::fs::remove_file(house.path("notes/b.md")).expect("removed");
    // Neither readable nor gone: it may come back.
    std::fs::remove_file(house.path("notes/sub/c.md")).expect("removed");
    std::fs::create_dir(house.path("notes/sub/c.md")).expect("made");
    house.run(&["mv", "a", "d"]).good();
    assert_eq!(house.read("notes/d.md"), b"[[b]]\n");
}

#[test]
fn moves_are_taken_back_by_another_process() {
    let house = House::with(&[("a.md", "[[b]]\n"), ("b.md", "b\n")]);
    house.run(&["undo"]).refused(2, "to undo");
    house.run(&["mv", "b", "c"]).good();
    house.run(&["rm", "c"]).good();
    assert_eq!(house.run(&["undo"]).good().text(), "undone\n");
    assert_eq!((house.read("notes/c.md"), house.read("notes/a.md")), (b"b\n".to_vec(), b"[[c]]\n".to_vec()));
    house.run(&["undo"]).good();
    assert_eq!((house.read("notes/b.md"), house.read("notes/a.md")), (b"b\n".to_vec(), b"[[b]]\n".to_vec()));
    house.run(&["undo"]).refused(2, "to undo");
}

#[test]
fn links_follow_what_other_programs_rename() {
    let files =
        [("a.md", "[[b]] and [x](b.md) and [[same]]\n"), ("b.md", "words\n"), ("same.md", "s\n"), ("twin.md", "s\n")];
    let house = House::with(&files);
    house.run(&["ls"]).good();
    house.run(&["follow"]).refused(2, "no link leads");
    std::fs::create_dir(house.path("notes/sub")).expect("made");
    std::fs::rename(house.path("notes/b.md"), house.path("notes/sub/c.md")).expect("renamed");
    std::fs::rename(house.path("notes/same.md"), house.path("notes/other.md")).expect("renamed");
    // Another process notices the renames first.
    house.run(&["ls"]).good();
    assert_eq!(house.run(&["follow"]).good().text(), "links follow in 1 note\n");
    assert_eq!(house.read("notes/a.md"), b"[[c]] and [x](sub/c.md) and [[same]]\n", "what may be another file stays");
    assert_eq!(house.run(&["undo"]).good().text(), "undone\n");
    assert_eq!(house.read("notes/a.md"), files[0].1.as_bytes());
    house.run(&["follow"]).refused(2, "no link leads");
}

#[test]
fn a_link_may_begin_with_the_volume_as_search_shows_paths() {
    let text = "[[notes/sub/b]] [x](/Notes/sub/b.md) [[notes/gone]] [[other/y]]\n";
    let house = House::with(&[("a.md", text), ("sub/b.md", "b\n")]);
    let text = house.run(&["links", "a"]).good().text();
    let lines: Vec<&str> = text.lines().take(3).collect();
    assert_eq!(lines, ["-> sub/b.md  (notes/sub/b)", "-> sub/b.md  (/Notes/sub/b.md)", "-> nowhere  (notes/gone)"]);
    let backlinks = |note: &str| house.json(&["links", note])["backlinks"].as_array().map(Vec::len);
    assert_eq!(backlinks("sub/b"), Some(2));
    assert_eq!(rows(&house, &["links", "--broken"]).len(), 2);
    house.run(&["mv", "sub/b", "deep/c d"]).good();
    let moved = "[[notes/deep/c d]] [x](/notes/deep/c%20d.md) [[notes/gone]] [[other/y]]\n";
    assert_eq!(house.read("notes/a.md"), moved.as_bytes(), "the links keep their form");
    assert_eq!(rows(&house, &["links", "--broken"]).len(), 2);
    // A folder that is called as the volume comes first.
    house.run(&["new", "./notes/deep/c d"]).good();
    assert_eq!((backlinks("notes:deep/c d"), backlinks("notes/deep/c d")), (Some(0), Some(2)));
}

#[test]
fn links_and_todos_are_listed() {
    let tasks = "# Plan\n- [ ] late 📅 2001-01-01\n- [x] over\n- [ ] some day #tag\n- [ ] far ⏫ [due:: 2999-01-01]\n";
    let house = House::with(&[("a.md", "see [[Plan#x|it]] and [[gone]]\n"), ("Plan.md", tasks)]);
    let links = house.json(&["links", "plan"]);
    assert_eq!(links["backlinks"][0]["path"], "a.md");
    assert_eq!(links["backlinks"][0]["line"], "see [[Plan#x|it]] and [[gone]]");
    assert_eq!(links["headings"], json!(["Plan"]));
    assert!(house.run(&["links", "a"]).good().text().starts_with("-> Plan.md  (Plan#x)\n-> nowhere  (gone)\n"));
    let broken = rows(&house, &["links", "--broken"]);
    assert_eq!((broken.len(), &broken[0]["target"]), (1, &json!("gone")));
    let todos = rows(&house, &["todos"]);
    let seen: Vec<_> = todos.iter().map(|row| (row["when"].as_str(), row["text"].as_str())).collect();
    let expected = [("Overdue", "late"), ("Upcoming", "far"), ("No date", "some day #tag")];
    assert_eq!(seen, expected.map(|(when, text)| (Some(when), Some(text))));
    assert_eq!((&todos[1]["priority"], &todos[1]["due"]), (&json!(4), &json!("2999-01-01")));
    assert_eq!(rows(&house, &["todos", "--all"]).len(), 4);
    assert_eq!(house.run(&["todos", "--words", "SOME tag"]).good().text().lines().count(), 2);
    // An edit counts at once.
    house.edit("a.md", 0, 0, "- [ ] new\n\n");
    assert_eq!(rows(&house, &["todos"]).len(), 4);
}

#[test]
fn a_task_that_is_commented_out_is_not_listed() {
    let plan = "- [ ] sow %% in rows %%\n\n<!--\n- [ ] weed\n-->\n\n%%\n- [ ] mow\n%%\n\n\
                - [ ] prune 📅 2999-01-01 <!-- late -->\n";
    let house = House::with(&[("Plan.md", plan)]);
    let todos = rows(&house, &["todos"]);
    let seen: Vec<_> = todos.iter().map(|row| row["text"].as_str().unwrap_or_default()).collect();
    assert_eq!(seen, ["prune <!-- late -->", "sow %% in rows %%"]);
    house.run(&["todos", "--check", "Plan", "--words", "weed"]).refused(2, "Plan has no task “weed”");
}

#[test]
fn a_ticked_task_comes_back_by_the_rules_of_the_tasks_plugin() {
    let plan = "- [ ] pay 🔁 every month on the last Friday 🗓️ 2024-05-31\r\n- [ ] water 🆔 w1 🔁 every week on Tuesday, \
                Friday 📅 2024-05-07 ^w\r\n- [ ] ✅ means done\r\n";
    let house = House::with(&[("Plan.md", plan)]);
    let todos = rows(&house, &["todos"]);
    let seen: Vec<_> = todos.iter().map(|row| (row["text"].as_str(), row["due"].as_str())).collect();
    let expected = [("water ^w", Some("2024-05-07")), ("pay", Some("2024-05-31")), ("✅ means done", None)];
    assert_eq!(seen, expected.map(|(text, due)| (Some(text), due)));
    let tick = |words: &str| house.run(&["todos", "--check", "Plan", "--words", words]).good().text();
    for words in ["pay", "water ^w", "✅ means done"] {
        assert_eq!(tick(words), "Done\n");
    }
    let text = String::from_utf8(house.read("notes/Plan.md")).expect("text");
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(lines[0], "- [ ] pay 🔁 every month on the last Friday 🗓️ 2024-06-28");
    assert!(lines[1].starts_with("- [x] pay 🔁 every month on the last Friday 🗓️ 2024-05-31 ✅ "), "{text}");
    assert_eq!(lines[2], "- [ ] water 🔁 every week on Tuesday, Friday 📅 2024-05-10", "ids stay with one task");
    assert!(lines[3].starts_with("- [x] water 🆔 w1 ") && lines[3].ends_with(" ^w"), "{text}");
    assert_eq!(lines[4..], ["- [x] ✅ means done", ""]);
    assert_eq!(tick("✅ means done"), "Open again\n");
    assert!(house.read("notes/Plan.md").ends_with("- [ ] ✅ means done\r\n".as_bytes()), "its text stays");
}

#[test]
fn names_and_tags_are_read_as_their_programs_write_them() {
    let house = House::with(&[
        ("pages/AI___Code.md", "title:: Programming\n\n- #area/🌱seed\n"),
        ("journals/2024_05_06.md", "- [[AI/Code]] [[programming]] #हिन्दी\n"),
        // macOS writes the name in another form than keyboards and web pages.
        ("Ko/\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}.md", "caf\u{e9}\n"),
        ("From.md", "[[\u{d55c}\u{ae00}]] [[\u{d55c}\u{ae00}#a|b]] #标签，#no <i style=\"color: #fff\">b</i>\n"),
    ]);
    assert_eq!(rows(&house, &["links", "--broken"]), Vec::<Value>::new());
    let backlinks = |note: &str| house.json(&["links", note])["backlinks"].as_array().map(Vec::len);
    assert_eq!((backlinks("pages/AI___Code"), backlinks("\u{d55c}\u{ae00}")), (Some(2), Some(2)));
    let tags = rows(&house, &["ls", "--tags"]);
    let tags: Vec<_> = tags.iter().map(|row| row["tag"].as_str().expect("a tag")).collect();
    assert_eq!(tags, ["area/🌱seed", "हिन्दी", "标签"]);
    house.run(&["mv", "pages/AI___Code", "pages/AI___Tool"]).good();
    let journal = "- [[AI/Tool]] [[programming]] #हिन्दी\n";
    assert_eq!(house.read("notes/journals/2024_05_06.md"), journal.as_bytes(), "as Logseq writes it");
}

#[test]
fn a_markdown_link_to_a_folder_leads_to_the_note_that_stands_for_it() {
    let root = "[d](docs) [e](./docs/) [a](docs/api) [g](guide/) [s](src/) [[docs]]\n";
    let house = House::with(&[
        ("README.md", root),
        ("docs/Readme.md", "[up](..) [here](.) [top](/)\n"),
        ("docs/api/_index.md", "[up](../)\n"),
        ("guide/index.md", ""),
        ("src/main.txt", ""),
    ]);
    let broken = rows(&house, &["links", "--broken"]);
    let broken: Vec<_> = broken.iter().map(|row| row["target"].as_str()).collect();
    assert_eq!(broken, [Some("src/"), Some("docs")], "a folder without such a note, and what isn't Markdown");
    let text = house.run(&["links", "docs/Readme"]).good().text();
    assert!(text.starts_with("-> README.md  (..)\n-> docs/Readme.md  (.)\n-> README.md  (/)\n"), "{text}");
    assert_eq!(text.matches("<- ").count(), 3, "{text}");
    house.run(&["mv", "docs", "manual"]).good();
    let moved = "[d](manual) [e](manual/) [a](manual/api) [g](guide/) [s](src/) [[docs]]\n";
    assert_eq!(house.read("notes/README.md"), moved.as_bytes());
    house.run(&["mv", "guide/index", "guide/start"]).good();
    assert_eq!(house.read("notes/README.md"), moved.replace("guide/)", "guide/start.md)").as_bytes());
}

const SHELF: &str = r#"filters:
  and:
    - categories.contains(link("Books"))
    - '!file.name.contains("Template")'
properties:
  note.author:
    displayName: Author
formulas:
  twice: rating * 2
views:
  - type: table
    name: All
    order: [file.name, author, rating, formula.twice]
    sort:
      - property: rating
        direction: DESC
  - type: table
    name: Good
    filters: rating > 5 && !author.isEmpty()
    order: [file.name]
    limit: 1
  - type: table
    name: Odd
    filters: file.unheard()
"#;

#[test]
fn a_collection_is_listed() {
    let book = |author: &str, rating: &str| {
        format!("---\ncategories: [\"[[Books]]\"]\nauthor: {author}\nrating: {rating}\n---\n")
    };
    let (one, two, three) = (book("\"[[Ann|A.]]\"", "7"), book("Bob", "10"), book("", "3"));
    let house = House::with(&[
        ("One.md", &one),
        ("Two.md", &two),
        ("x/Three.md", &three),
        ("Book Template.md", &two),
        ("Other.md", "---\nrating: 9\n---\n"),
        ("Shelf.base", SHELF),
    ]);
    let all = "name\tAuthor\trating\ttwice\nTwo\tBob\t10\t20\nOne\tA.\t7\t14\nThree\t\t3\t6\n";
    assert_eq!(house.run(&["base", "shelf"]).good().text(), all);
    let good = rows(&house, &["base", "Shelf.base", "--view", "good"]);
    assert_eq!(good, [json!({"path": "One.md", "group": "", "cells": {"file.name": "One"}})]);
    let odd = house.run(&["base", "shelf", "--view", "Odd"]).code(1);
    assert_eq!(odd.text(), "name\n");
    assert!(odd.err.contains("does not know this function"), "{}", odd.err);
    house.run(&["base", "shelf", "--view", "no"]).refused(2, "there are: All, Good, Odd");
    house.run(&["base", "no"]).refused(2, "no collection");
    let odd = house.run(&["base", "shelf", "--view", "Odd", "--json"]).code(1).lines();
    assert!(odd.len() == 1 && odd[0]["problem"].to_string().contains("does not know this function"), "{odd:?}");
    // A formula that fails for some notes only leaves their cells empty.
    let formulas = "formulas:\n  all: rating.unheard()\n  some: rating * 2\n  none: (\n";
    let views = ["all", "some", "none"].map(|name| {
        format!(
            "  - type: table\n    name: {name}\n    filters: file.name == \"One\" || file.name == \"Text\"\n    \
                 order: [file.name, formula.{name}]\n"
        )
    });
    house.write("notes/Text.md", b"---\nrating: [a, b]\n---\n");
    house.write("notes/Sums.base", format!("{formulas}views:\n{}", views.concat()).as_bytes());
    for (view, code) in [("all", 1), ("some", 0), ("none", 1)] {
        let told = house.run(&["base", "Sums", "--view", view]).code(code);
        assert_eq!(told.text().lines().count(), 3, "{told:?}");
    }
    house.write("notes/Open.base", b"views:\n  - name: [a\n");
    let why = house.run(&["base", "Open"]).refused(2, "the collection is not YAML: ").err;
    assert!(why.contains(" line 3 ") || why.contains(" line 2 "), "{why}");
}
