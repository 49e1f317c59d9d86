//! The search palette: found as typed, filtered by click, opened at the block.

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

/// The hits in the order in which they stand.
fn hits(window: &Driven) -> Vec<String> {
    use egui_kittest::kittest::NodeT;
    let labels = window.query_all_by_label_contains(": has").filter_map(|node| node.accesskit_node().label());
    labels.map(|label| label.split(':').next().unwrap_or_default().to_owned()).collect()
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
    window.get_by_label_contains("Why: has heron");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the caret is at the word", |window| {
        path(window) == "Rivers.md" && text(window).is_some() && with_caret(window).contains("The |heron waits")
    });
    assert!(window.query_by_label("Search everything").is_none());
    // What is typed now is found, too, and what fits nothing is said.
    type_text(&mut window, "purple ");
    press(&mut window, CTRL_SHIFT, Key::F);
    until(&mut window, "the index is fresh", |window| window.query_by_label("3 notes, up to date").is_some());
    type_text(&mut window, "purple");
    until(&mut window, "the edit is found", |window| hits(window) == ["Rivers"]);
    type_text(&mut window, "xqzvw -purple");
    until(&mut window, "nothing is found", |window| window.query_by_label_contains("Nothing fits").is_some());
    press(&mut window, NONE, Key::Escape);
    assert!(window.query_by_label("Search everything").is_none());
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
    window.get_by_label("Keep this search").click();
    until(&mut window, "it is kept", |window| window.query_by_label("Forget this search").is_some());
    press(&mut window, NONE, Key::Escape);
    press(&mut window, CTRL_SHIFT, Key::F);
    window.get_by_label("Search again: heron in:code");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "it is asked again", |window| hits(window) == ["Code"]);
    press(&mut window, CTRL, Key::D);
    window.get_by_label("Keep this search");
    press(&mut window, NONE, Key::Escape);
    press(&mut window, CTRL_SHIFT, Key::F);
    window.get_by_label_contains("Finds notes, code and outputs");
}
