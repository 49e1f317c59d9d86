//! Text that no parser may take without limits: notes, collections, notebooks, agents, messages. Each fails alone with
//! an error, its bytes are unchanged, and every other note works as before.

#[path = "../fuzz/targets.rs"]
mod targets;

use crate::program::House;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The maximum duration of a command on text beyond the limits, on a busy machine.
const LONGEST: Duration = Duration::from_secs(20);
const GOOD: &str = "---\ntags: [fine]\n---\n# Good\n\nWords with [[Other]].\n";

/// Front matter that took exponential time, overflowed the stack, or expands.
fn front_matter() -> Vec<(&'static str, String)> {
    let laughs: String = (1..14)
        .map(|level| format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 9].join(", ")))
        .collect();
    vec![
        ("questions-28", format!("{}x\n", "? ".repeat(28))),
        ("questions-60", format!("{}x\n", "? ".repeat(60))),
        ("questions-2000", format!("{}x\n", "? ".repeat(2_000))),
        ("dashes", format!("a:\n{}x\n", "- ".repeat(10_000))),
        ("brackets", format!("a: {}\n", "[".repeat(100_000))),
        ("braces", format!("a: {}x{}\n", "{b: ".repeat(5_000), "}".repeat(5_000))),
        ("laughs", format!("a0: &a0 [x, x, x]\n{laughs}")),
        ("names", "? [[a, b], {c: d}]\n: e\n".to_owned()),
        ("flow-questions", format!("a: {}x\n", "[? ".repeat(40))),
    ]
}

#[test]
fn front_matter_beyond_the_limits_concerns_its_own_note_alone() {
    let house = House::new();
    house.write("notes/Good.md", GOOD.as_bytes());
    let mut texts = Vec::new();
    for (name, front) in front_matter() {
        let text = format!("---\n{front}---\nBody of {name}.\n");
        house.write(&format!("notes/{name}.md"), text.as_bytes());
        texts.push((format!("{name}.md"), text));
    }
    let begun = Instant::now();
    house.run(&["open", "notes"]).good();
    assert!(begun.elapsed() < LONGEST, "{:?}", begun.elapsed());
    assert_eq!(house.cat("Good.md"), GOOD.as_bytes());
    let listed = house.json(&["ls"]);
    let problem = |path: &str| {
        let row = listed.as_array().and_then(|rows| rows.iter().find(|row| row["path"] == path)).expect("listed");
        row["problem"].as_str().map(str::to_owned)
    };
    assert_eq!(problem("Good.md"), None);
    let said = house.run(&["ls"]).good().text();
    for (path, text) in &texts {
        let begun = Instant::now();
        let shown = house.run(&["cat", path]).code(0);
        assert_eq!(shown.out, text.as_bytes(), "{path}");
        let why = problem(path).unwrap_or_else(|| panic!("ls says nothing of {path}"));
        assert!(why.starts_with("Its properties can't be read: ") && why.ends_with('.'), "{path}: {why}");
        assert!(why.len() < 200 && !why.contains('\n'), "{path}: {why}");
        assert!(said.contains(&why) && shown.err.contains(&why), "{path}: {said}{}", shown.err);
        // The note can be edited like any other, and the edit is kept.
        house.fed(&["edit", path], crate::program::line(text.len(), 0, "More.\n").as_bytes()).code(0);
        assert_eq!(house.read(&format!("notes/{path}")), format!("{text}More.\n").as_bytes());
        assert!(begun.elapsed() < LONGEST, "{path}: {:?}", begun.elapsed());
    }
    assert_eq!(house.cat("Good.md"), GOOD.as_bytes());
    let found = house.run(&["search", "words"]).code(0).text();
    assert!(found.contains("Good.md"), "{found}");
    house.run(&["fsck"]).code(0);
}

#[test]
fn quotes_and_lists_beyond_the_limits_are_shown_as_plain_text() {
    let lazy = format!("{}a\n{}", "> ".repeat(3_000), "b\n".repeat(100_000));
    let lists: String = (0..400).map(|depth| format!("{}- a\n", "  ".repeat(depth))).collect();
    let house = House::with(&[
        ("Good.md", GOOD),
        ("lazy.md", &lazy),
        ("lists.md", &lists),
        ("quotes.md", &">".repeat(100_000)),
        ("mixed.md", &"> - ".repeat(10_000)),
    ]);
    let listed = house.json(&["ls"]);
    for (path, text) in [("lazy.md", &lazy), ("lists.md", &lists)] {
        let row = listed.as_array().and_then(|rows| rows.iter().find(|row| row["path"] == path)).expect("listed");
        let why = row["problem"].as_str().expect("a reason");
        assert!(why.starts_with("It's shown as plain text: ") && why.contains("100 levels"), "{why}");
        let begun = Instant::now();
        let shown = house.run(&["cat", path]).code(0);
        assert_eq!(shown.out, text.as_bytes());
        house.fed(&["edit", path], crate::program::line(0, 0, "# A\n\n").as_bytes()).code(0);
        assert!(begun.elapsed() < LONGEST, "{path}: {:?}", begun.elapsed());
    }
    assert_eq!(house.cat("Good.md"), GOOD.as_bytes());
}

#[test]
fn long_runs_of_marks_are_read_in_time() {
    let part = |part: &str| part.repeat(200_000 / part.len());
    let house = House::new();
    house.write("notes/Good.md", GOOD.as_bytes());
    let parts = [
        "[a](",
        "[[a]] ",
        "`a` #b ",
        "`a` [[b]] ",
        "*a ",
        "![",
        "(http://a",
        "www.a.b/)",
        "%%",
        "`a`%% ",
        "==a",
        "$a",
        "<a ",
        "- [ ] a\n",
        "| a ",
        "[^a]",
        "[a]: b\n",
        "> [!note] a\n",
        "# a\n",
        "```\n",
        "<!--",
        "a@",
        "^a ",
        "{{a}}",
        "[[a|b]]",
        "#a/b ",
        "\\",
        "&amp;",
        "- a\n  - b\n",
        "~~a",
        "[x](a.md) ",
        "![[a]]\n",
    ];
    for (index, words) in parts.iter().enumerate() {
        house.write(&format!("notes/{index}.md"), part(words).as_bytes());
    }
    let begun = Instant::now();
    house.run(&["open", "notes"]).good();
    let each = begun.elapsed() / u32::try_from(parts.len()).expect("few");
    assert!(each < Duration::from_secs(2), "{each:?} for each of them");
    assert_eq!(house.cat("Good.md"), GOOD.as_bytes());
}

#[test]
fn cells_beyond_the_limits_are_kept_and_end_no_process() {
    let parts = ["(", "[", "-", "not ", "f'{", "lambda: ", "a.b.", "1 + ", "{a: ", "x if y else "];
    let mut text = "# Cells\n".to_owned();
    for part in parts {
        text.push_str(&format!("\n```python\n{}1\n```\n", part.repeat(40_000 / part.len())));
    }
    let house = House::with(&[("Cells.md", &text), ("Good.md", GOOD)]);
    let begun = Instant::now();
    assert_eq!(house.cat("Cells.md"), text.as_bytes());
    house.fed(&["edit", "Cells.md"], crate::program::line(0, 0, "x\n\n").as_bytes()).good();
    // Running a cell fails; the next command finds everything unchanged.
    let run = house.run(&["run", "Cells.md", "--cell", "1"]);
    assert!(run.code > 0, "{run:?}");
    assert_eq!(house.cat("Cells.md"), format!("x\n\n{text}").as_bytes());
    assert_eq!(house.cat("Good.md"), GOOD.as_bytes());
    assert!(begun.elapsed() < 3 * LONGEST, "{:?}", begun.elapsed());
}

#[test]
fn collections_beyond_the_limits_say_so_and_others_work() {
    let filters = format!("filters: {}x{}\n", "{and: [".repeat(2_000), "]}".repeat(2_000));
    let house = House::with(&[
        ("Good.md", GOOD),
        ("good.base", "views:\n  - type: table\n    name: All\n"),
        ("deep.base", &filters),
        ("names.base", &format!("{}x\n", "? ".repeat(28))),
        ("long.base", &format!("formulas:\n  a: {}1\n", "(".repeat(50_000))),
        ("not.base", &format!("filters: '{}true'\n", "!".repeat(50_000))),
        ("sum.base", &format!("formulas:\n  a: 1{}\n", "+1".repeat(50_000))),
    ]);
    for (path, fine) in
        [("good.base", true), ("deep.base", false), ("names.base", false), ("long.base", true), ("not.base", false)]
    {
        let begun = Instant::now();
        let shown = house.run(&["base", path]);
        assert_eq!(shown.code == 0, fine, "{path}: {shown:?}");
        assert!(shown.code >= 0 && shown.err.len() < 1_000, "{path}: {:.300}", shown.err);
        assert!(begun.elapsed() < LONGEST, "{path}");
    }
    assert_eq!(house.cat("Good.md"), GOOD.as_bytes());
}

#[test]
fn notebooks_beyond_the_limits_are_refused_in_a_sentence() {
    let house = House::with(&[("Good.md", GOOD)]);
    let cell = |source: &str, outputs: &str| {
        format!(
            "{{\"nbformat\":4,\"nbformat_minor\":5,\"metadata\":{{}},\"cells\":[{{\"cell_type\":\"code\",\"id\":\"a\",\
             \"metadata\":{{}},\"execution_count\":1,\"source\":{source},\"outputs\":{outputs}}}]}}"
        )
    };
    let deep = "[".repeat(100_000);
    let html = serde_json::to_string(&"<div>".repeat(100_000)).expect("JSON");
    let shown = format!(
        "[{{\"output_type\":\"display_data\",\"metadata\":{{}},\"data\":{{\"text/html\":{html},\"text/latex\":{html},\
         \"image/svg+xml\":{html}}}}}]"
    );
    for (name, text, fine) in [
        ("deep.ipynb", deep.clone(), false),
        ("deep-cell.ipynb", cell(&deep, "[]"), false),
        ("deep-output.ipynb", cell("\"1\"", &format!("[{{\"output_type\":{deep}")), false),
        ("code.ipynb", cell(&serde_json::to_string(&deep).expect("JSON"), "[]"), true),
        ("html.ipynb", cell("\"1\"", &shown), true),
    ] {
        house.write(name, text.as_bytes());
        let begun = Instant::now();
        let done = house.run(&["import", name]);
        assert_eq!(done.code == 0, fine, "{name}: {:?}", done.err);
        assert!(done.code >= 0 && done.err.len() < 1_000, "{name}: {:.300}", done.err);
        assert!(begun.elapsed() < LONGEST, "{name}");
    }
    assert_eq!(house.cat("Good.md"), GOOD.as_bytes());
}

#[test]
fn agents_plans_and_memory_beyond_the_limits_do_not_stop_a_command() {
    let house = House::with(&[("Good.md", GOOD)]);
    for (name, front) in front_matter() {
        let text = format!("---\nname: {name}\n{front}---\nYou help.\n");
        house.write(&format!("notes/components/agents/{name}.md"), text.as_bytes());
        house.write(&format!("notes/projects/x/memory/traces/{name}.md"), text.as_bytes());
        let fenced = format!("# Plan\n\n- [ ] do it ^t1\n  ```yaml\n  {front}  ```\n\n## One\n\n```yaml\n{front}```\n");
        house.write(&format!("notes/projects/x/plan-{name}.md"), fenced.as_bytes());
        house.write("notes/projects/x/memory/experiences.md", fenced.as_bytes());
    }
    house.write("notes/components/agents/deep.py", format!("class A:\n x = {}1\n", "[".repeat(60_000)).as_bytes());
    let begun = Instant::now();
    house.run(&["open", "notes"]).code(0);
    for words in [&["tasks", "agents"][..], &["tasks", "list"], &["traces"], &["memory", "list"], &["todos"], &["ls"]] {
        let done = house.run(words);
        assert!((0..=2).contains(&done.code), "{words:?}: {done:?}");
    }
    assert!(begun.elapsed() < 3 * LONGEST, "{:?}", begun.elapsed());
    assert_eq!(house.cat("Good.md"), GOOD.as_bytes());
}

#[test]
fn a_configuration_beyond_the_limits_is_refused_in_a_sentence() {
    let house = House::with(&[("Good.md", GOOD)]);
    for (name, front) in front_matter() {
        house.write("W/config.yaml", front.as_bytes());
        let begun = Instant::now();
        let done = house.run(&["doctor"]);
        assert!((0..=3).contains(&done.code) && done.err.len() < 2_000, "{name}: {done:?}");
        assert_eq!(house.run(&["cat", "Good.md"]).out, GOOD.as_bytes(), "{name}");
        assert!(begun.elapsed() < LONGEST, "{name}");
    }
}

/// Replays the fuzzing corpora: each target handles each of its inputs in time.
#[test]
fn corpora_of_the_fuzz_targets_are_replayed() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for (name, target) in targets::ALL {
        let mut count = 0;
        for entry in fs::read_dir(corpora.join(name)).unwrap_or_else(|error| panic!("{error}: {name}")) {
            let path = entry.expect("listed").path();
            let bytes = fs::read(&path).expect("read");
            let begun = Instant::now();
            target(&bytes);
            assert!(begun.elapsed() < Duration::from_secs(10), "{:?}: {}", begun.elapsed(), path.display());
            count += 1;
        }
        assert!(count >= 5, "{name} has a corpus of {count}");
    }
}

/// Feeds random sequences of grammar tokens to every fuzz target.
#[test]
fn random_words_of_each_grammar_are_read() {
    use proptest::prelude::*;
    let words = [
        "? ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        "&a ",
        "*a",
        ": ",
        "a",
        "\n",
        "  ",
        "---\n",
        "> ",
        "1. ",
        "`",
        "```python\n",
        "|",
        "$",
        "[[",
        "]]",
        "(",
        ")",
        "!",
        "\"",
        "'",
        "#",
        "<a>",
        "filters:\n",
        "formulas:\n  a: ",
        "views:\n  - ",
        "and: ",
        "\\frac",
        "é",
        "\t",
        "%%",
        "==",
        "\r\n",
        "null",
        "1",
        "+",
        ".",
        "[^a]: ",
        "<<: ",
        "!t ",
        "|\n",
        "key: ",
    ];
    let text = prop::collection::vec((prop::sample::select(words.to_vec()), 1_usize..40), 1..60);
    proptest!(ProptestConfig::with_cases(200), |(parts in text)| {
        let text: String = parts.iter().map(|(part, times)| part.repeat(*times)).collect();
        for (name, target) in targets::ALL {
            let begun = Instant::now();
            target(text.as_bytes());
            target(format!("---\n{text}\n---\n{text}").as_bytes());
            prop_assert!(begun.elapsed() < Duration::from_secs(5), "{name}: {:?}", begun.elapsed());
        }
    });
}

#[test]
fn unreadable_properties_are_told_by_note_and_line() {
    // The bracket of the note's third line is still open where its properties end, on its fourth.
    let text = "---\na: 1\nb: [x\n---\nBody\n";
    let house = House::with(&[("Good.md", GOOD), ("Sub/Open.md", text)]);
    house.write("notes/Deep.md", format!("---\na: 1\nb:\n  {}x\n---\n", "- ".repeat(80)).as_bytes());
    let open = house.run(&["cat", "Sub/Open.md"]).code(0);
    assert_eq!(open.out, text.as_bytes());
    assert!(open.err.starts_with("tracebook: Sub/Open.md: Its properties can't be read: "), "{}", open.err);
    assert!(open.err.contains("at byte 15 line 4 column 1."), "{}", open.err);
    let deep = house.run(&["cat", "Deep"]).code(0).err;
    assert_eq!(deep, "tracebook: Deep.md: Its properties can't be read: it nests more than 64 levels deep, line 4.\n");
    assert!(house.run(&["ls"]).good().text().contains("levels deep, line 4."));
    assert_eq!(house.run(&["cat", "Good.md"]).good().err, "");
}
