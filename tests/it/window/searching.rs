//! The search palette: results while typing, filters by click, and opening at the block.

use super::*;

const LONG: &str = "# Rivers\n\nWater runs downhill.\n\n";

fn bench() -> Bench {
    let long = format!("{LONG}{}The heron waits at the weir.\n", "Filler about nothing in particular.\n\n".repeat(60));
    Bench::new(&[
        ("A first.md", "# First\n\nNothing much.\n"),
        ("Rivers.md", &long),
        ("Code.md", "# Code\n\n```rust\nfn heronCount() {}\n```\n\n- [ ] count the birds\n"),
    ])
}

/// The titles of the results, in order.
fn hits(window: &Driven) -> Vec<String> {
    use egui_kittest::kittest::NodeT;
    let labels = window.query_all_by_label_contains(": has").filter_map(|node| node.accesskit_node().label());
    let titles = labels.map(|label| label.split(':').next().unwrap_or_default().to_owned());
    titles.filter(|title| title != "Why").collect()
}

#[test]
fn a_hit_is_found_as_typed_and_opened_at_its_block() {
    let bench = bench();
    let mut window = bench.opened();
    press(&mut window, CTRL_SHIFT, Key::F);
    window.get_by_label("Search everything");
    window.get_by_label_contains("Finds notes, code and outputs");
    type_text(&mut window, "hero");
    until(&mut window, "both are found", |window| hits(window).len() == 2);
    window.get_by_label("Search in: Code").click();
    until(&mut window, "the code alone is found", |window| hits(window) == ["Code"]);
    window.get_by_label("Search in: Text").click();
    until(&mut window, "the text alone is found", |window| hits(window) == ["Rivers"]);
    window.get_by_label_contains("Why: has heron").click();
    until(&mut window, "the parts of the score are told", |window| {
        window.query_by_label_contains(", changed lately 0.02").is_some()
    });
    window.get_by_label("Copy a link to this passage").click();
    let link = (0..9).find_map(|_| {
        window.step();
        keystrokes::copied(&window)
    });
    let link = link.expect("a link was copied");
    assert!(link.starts_with("[[Rivers#") && link.ends_with("]]"), "{link}");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the caret is at the word", |window| {
        path(window) == "Rivers.md" && text(window).is_some() && with_caret(window).contains("The |heron waits")
    });
    assert!(window.query_by_label("Search everything").is_none());
    // Text typed just now is found, too, and a query without results says so.
    type_text(&mut window, "purple ");
    press(&mut window, CTRL_SHIFT, Key::F);
    until(&mut window, "the index is fresh", |window| window.query_by_label("3 notes, up to date").is_some());
    type_text(&mut window, "purple");
    until(&mut window, "the edit is found", |window| hits(window) == ["Rivers"]);
    type_text(&mut window, "xqzvw -purple");
    until(&mut window, "nothing is found", |window| window.query_by_label_contains("No results for").is_some());
    press(&mut window, NONE, Key::Escape);
    assert!(window.query_by_label("Search everything").is_none());
}

/// A passage keeps its address when other programs write before it.
#[test]
fn a_link_that_was_copied_stays_right() {
    let bench = bench();
    let mut window = bench.opened();
    let before = std::fs::metadata(bench.notes().join("Rivers.md")).expect("there").modified().expect("a time");
    press(&mut window, CTRL_SHIFT, Key::F);
    type_text(&mut window, "heron in:prose");
    until(&mut window, "it is found", |window| hits(window) == ["Rivers"]);
    let address = |window: &mut Driven| {
        window.get_by_label("Copy a link to this passage").click();
        let link = (0..9).find_map(|_| {
            window.step();
            keystrokes::copied(window)
        });
        link.expect("a link was copied")
    };
    let link = address(&mut window);
    until(&mut window, "the note has its document", |window| {
        session(window).is_saved() && session(window).pending_note_jobs() == 0
    });
    let after = std::fs::metadata(bench.notes().join("Rivers.md")).expect("there").modified().expect("a time");
    assert_eq!(before, after, "the file is not written");
    let text = format!("# Rivers\n\nNew before all.\n\n{}", bench.file("Rivers.md"));
    std::fs::write(bench.notes().join("Rivers.md"), text.replace("The heron waits", "The tall heron waits"))
        .expect("written");
    type_text(&mut window, " tall");
    until(&mut window, "the edit is found", |window| window.query_by_label_contains("s: has heron, tall").is_some());
    assert_eq!(address(&mut window), link);
}

#[test]
fn what_was_typed_into_the_switcher_can_be_searched_for() {
    let bench = bench();
    let mut window = bench.opened();
    for key in [None, Some(Key::F)] {
        press(&mut window, CTRL, Key::P);
        window.get_by_label("Go to note");
        type_text(&mut window, "heron");
        match key {
            None => window.get_by_label("Search everything for “heron”").click(),
            Some(key) => press(&mut window, CTRL_SHIFT, key),
        }
        until(&mut window, "both are found", |window| hits(window).len() == 2);
        press(&mut window, NONE, Key::Escape);
    }
}

#[test]
fn runs_can_be_asked_for() {
    use crate::recall::{Kept, document};
    let bench = bench();
    let kept = Kept::default();
    let steps = [(host::search::PassageKind::Run, "s1", "Count the herons at the weir.")];
    kept.0.lock().unwrap().push(document(1, "run-7", "Morning count", &steps));
    let mut window = bench.window_with(|driver| driver.search().add_source(Box::new(kept)));
    window.state_mut().send_command(engine::Command::OpenFolder { folder: bench.notes(), name: None });
    until(&mut window, "the first note is shown", |window| text(window).is_some());
    press(&mut window, CTRL_SHIFT, Key::F);
    type_text(&mut window, "heron");
    until(&mut window, "all are found", |window| hits(window).len() == 3);
    window.get_by_label("Search in: Runs").click();
    until(&mut window, "the run alone is found", |window| hits(window) == ["Morning count"]);
}

#[test]
fn search_pictures() {
    let Some(folder) = pictures_folder() else { return };
    let bench = bench();
    let mut window = bench.opened();
    for theme in ["light", "dark"] {
        press(&mut window, CTRL_SHIFT, Key::L);
        press(&mut window, CTRL_SHIFT, Key::F);
        type_text(&mut window, "heron");
        until(&mut window, "both are found", |window| hits(window).len() == 2);
        window.run_steps(3);
        let image = window.render().expect("a picture");
        image.save(folder.join(format!("{theme}-search.png"))).expect("a file");
        press(&mut window, NONE, Key::Escape);
    }
}

#[test]
fn searches_are_kept_and_asked_again() {
    let bench = bench();
    let mut window = bench.opened();
    press(&mut window, CTRL_SHIFT, Key::F);
    type_text(&mut window, "heron in:code");
    until(&mut window, "the code is found", |window| hits(window) == ["Code"]);
    window.get_by_label("Save search").click();
    until(&mut window, "it is kept", |window| window.query_by_label("Remove saved search").is_some());
    press(&mut window, NONE, Key::Escape);
    press(&mut window, CTRL_SHIFT, Key::F);
    window.get_by_label("Search again: heron in:code");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "it is asked again", |window| hits(window) == ["Code"]);
    press(&mut window, CTRL, Key::D);
    window.get_by_label("Save search");
    press(&mut window, NONE, Key::Escape);
    press(&mut window, CTRL_SHIFT, Key::F);
    window.get_by_label_contains("Finds notes, code and outputs");
}
