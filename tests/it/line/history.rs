//! `history`: lists changes, earlier versions, differences since then and who wrote what, and restores.

use crate::program::House;
use serde_json::json;

#[test]
fn a_note_is_shown_compared_and_restored_as_it_was() {
    let house = House::with(&[("a.md", "one\ntwo\nthree\n")]);
    house.edit("a.md", 4, 3, "zwei");
    house.edit("a.md", 0, 0, "zero\n");
    let all = house.json(&["history", "a.md"]);
    let all = all.as_array().expect("an array");
    assert_eq!(all.last().map(|change| (&change["number"], &change["who"])), Some((&json!(4), &json!("You"))));
    assert_eq!(all[1]["who"], json!("As the file was found"));
    let at = |number: &str| house.run(&["history", "a.md", "--at", number]).good().text();
    assert_eq!([at("0"), at("2")], ["", "one\ntwo\nthree\n"]);
    assert_eq!([at("3"), at("4")], ["one\nzwei\nthree\n", "zero\none\nzwei\nthree\n"]);
    let hash = all[2]["hash"].as_str().expect("a hash");
    assert_eq!(at(&hash[..8]), "one\nzwei\nthree\n");
    house.run(&["history", "a.md", "--at", "9"]).refused(2, "there is no change");

    let diff = house.run(&["history", "a.md", "--at", "2", "--diff"]).good().text();
    assert_eq!(diff, "--- after change 2\n+++ now\n@@ -1,3 +1,4 @@\n+zero\n one\n-two\n+zwei\n three\n");
    let last = house.json(&["history", "a.md", "--diff", "--at", "3"]);
    assert_eq!(last["changes"], json!([{"then": {"at": 0, "text": ""}, "now": {"at": 0, "text": "zero\n"}}]));
    let since = house.run(&["history", "a.md", "--diff"]).good().text();
    assert!(since.starts_with("--- after change 2"), "both edits are one version: {since}");

    let blame = house.run(&["history", "a.md", "--blame"]).good().text();
    let who: Vec<&str> = blame.lines().map(|line| line[..22].trim()).collect();
    assert_eq!(who, ["You", "As the file was found", "You", "As the file was found"]);
    let spans = house.run(&["history", "a.md", "--blame", "--json"]).good().lines();
    let text: String = spans.iter().filter_map(|span| span["text"].as_str()).collect();
    assert_eq!(text, "zero\none\nzwei\nthree\n");
    assert_eq!((&spans[0]["change"], &spans[1]["change"]), (&json!(4), &json!(2)));

    house.run(&["history", "a.md", "--restore", "2"]).good();
    assert_eq!(house.read("notes/a.md"), b"one\ntwo\nthree\n");
    assert_eq!(at("4"), "zero\none\nzwei\nthree\n", "what was since is kept");
    house.run(&["history", "a.md", "--restore", "4", "--json"]).good();
    assert_eq!(house.cat("a.md"), b"zero\none\nzwei\nthree\n");
}

#[test]
fn what_another_program_wrote_is_told_from_what_the_user_wrote() {
    let house = House::with(&[("a.md", "one\n")]);
    house.edit("a.md", 3, 0, " mine");
    house.write("notes/a.md", b"one mine theirs\n");
    house.cat("a.md");
    let blame = house.run(&["history", "a.md", "--blame", "--json"]).good().lines();
    let said: Vec<(&str, &str)> =
        blame.iter().map(|span| (span["who"].as_str().expect("who"), span["text"].as_str().expect("text"))).collect();
    assert_eq!(
        said,
        [
            ("As the file was found", "one"),
            ("You", " mine"),
            ("Another program", " theirs"),
            ("As the file was found", "\n")
        ]
    );
}
