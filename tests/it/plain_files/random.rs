//! Random bytes in files: whatever goes in comes out unchanged.

use crate::program::{House, bytes, files, line};
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use serde_json::json;

const SEED: u64 = 20_261_123;
const PIECES: &[&str] = &[
    "a",
    " ",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "\0",
    "\u{feff}",
    "\u{e4}",
    "\u{1f469}\u{200d}\u{1f467}",
    "# ",
    "- ",
    "> ",
    "```",
    "```python\n",
    "~~~\n",
    "---\n",
    "<b>",
    "&amp;",
    "[a](b)",
    "$x$",
    "| a |\n|---|\n",
    "\u{2028}",
    "\u{202e}",
];

/// Random file content: noise, or text from pieces that are difficult for Markdown parsers.
fn content(chance: &mut StdRng) -> Vec<u8> {
    let mut noise = vec![0; chance.random_range(0..400)];
    chance.fill_bytes(&mut noise);
    let text: String = (0..chance.random_range(0..200)).map(|_| PIECES[chance.random_range(0..PIECES.len())]).collect();
    match chance.random_range(0..5) {
        0 => noise,
        1 => [text.as_bytes(), &noise, b"\n"].concat(),
        _ => text.into_bytes(),
    }
}

/// The bytes that `cat` prints for a note. Problems with its properties may be on standard error.
fn shown(house: &House, name: &str) -> Vec<u8> {
    house.run(&["cat", name]).code(0).out
}

#[test]
fn import_then_export_is_the_identity() {
    println!("seed {SEED}");
    let mut chance = StdRng::seed_from_u64(SEED);
    let house = House::new();
    let mut notes = Vec::new();
    for number in 0..120 {
        let content = content(&mut chance);
        let name = format!("{}/{number}.{}", number % 7, ["md", "markdown", "MD", "txt"][number % 4]);
        if number % 4 != 3 && std::str::from_utf8(&content).is_ok() {
            notes.push(name.clone());
        }
        house.write(&format!("in/{name}"), &content);
    }
    let before = files(&house.path("in"));
    let opened = house.json(&["open", "in"]);
    assert_eq!((&opened["notes"], &opened["attachments"]), (&json!(notes.len()), &json!(120 - notes.len())));
    let said = opened["skipped"].as_array().expect("an array");
    assert!(said.iter().all(|one| one["why"].as_str().is_some_and(|why| why.contains("not UTF-8"))), "{said:?}");
    let owner = house.owner(&notes[0]);
    for name in &notes {
        assert_eq!(shown(&house, name), before[name].0, "{name}");
    }
    owner.end();
    house.run(&["export", "in", "out"]).good();
    assert_eq!(bytes(&house.path("out")), bytes(&house.path("in")));
    assert_eq!(files(&house.path("in")), before, "a file was touched");
    // An edit and its reverse restore the same bytes.
    for name in notes.iter().step_by(6) {
        let text = String::from_utf8(before[name].0.clone()).expect("a note");
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let at = places[chance.random_range(0..places.len())];
        let delete = places.iter().find(|place| **place >= at + 5).map_or(0, |end| end - at);
        let there = line(at, delete, "new\n```python\n1\n```\n");
        let back = line(at, 20, &text[at..at + delete]);
        house.fed(&["edit", name], (there + &back).as_bytes()).good();
        assert_eq!(shown(&house, name), before[name].0, "{name}");
    }
    assert_eq!(bytes(&house.path("in")), bytes(&house.path("out")));
}
