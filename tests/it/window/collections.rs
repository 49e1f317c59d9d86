//! Collections in the window: views as tabs, a table and cards, cells edited in place, and what is written for it.

use super::{Bench, CTRL, Driven, NONE, path, press, session, text, type_text, until};
use egui::Key;
use egui_kittest::kittest::{NodeT, Queryable};

const SHELF: &str = "# what stands on the shelf
filters:
  and:
    - categories.contains(link(\"Books\")) # only books
properties:
  note.rating:
    displayName: Rating
formulas:
  Twice: rating * 2
views:
  - type: table
    name: All
    order:
      - file.name
      - rating
      - done
      - topics
      - last
      - formula.Twice
    summaries:
      note.rating: Average
  - type: cards
    name: Good
    filters: rating > 6
    order:
      - file.name
      - rating
";

fn book(more: &str) -> String {
    format!("---\ncategories: [\"[[Books]]\"]\n{more}---\nWords.\n")
}

fn shelf() -> Bench {
    let one = book("rating: 7 # of ten\ndone: false\ntopics:\n  - Rain\n  - \"[[Wind]]\"\nlast: 2026-01-02\n");
    let (two, three) = (book("rating: 10\ndone: true\n"), book("# no rating yet\ntopics: []\n"));
    Bench::new(&[
        ("A.md", "Here is [[Shelf.base|the shelf]] and [[Shelf.base#Good]].\n"),
        ("Books.md", "Books\n"),
        ("One.md", &one),
        ("Two.md", &two),
        ("Three.md", &three),
        ("Other.md", "---\nrating: 9\n---\n"),
        ("Shelf.base", SHELF),
    ])
}

fn has(window: &Driven, label: &str) -> bool {
    window.query_all_by_label(label).next().is_some()
}

fn click(window: &mut Driven, label: &str) {
    window.get_all_by_label(label).next().unwrap_or_else(|| panic!("{label} is there")).click();
    window.run();
}

/// A window in which the collection of the tree is shown.
fn opened(bench: &Bench) -> Driven {
    let mut window = bench.opened();
    click(&mut window, "Shelf.base");
    until(&mut window, "the table is there", |window| has(window, "3 results"));
    assert_eq!(path(&window), "Shelf.base");
    window
}

/// Where a cell stands from the top.
fn top(window: &Driven, label: &str) -> f32 {
    window.get_by_label(label).rect().top()
}

#[test]
fn a_collection_is_a_table_and_cards() {
    let bench = shelf();
    let mut window = opened(&bench);
    for label in ["Rating of One: 7", "done of Two: yes", "topics of One: Rain, Wind", "Rating of Three: empty"] {
        assert!(has(&window, label), "{label}");
    }
    assert!(has(&window, "Twice of Two: 20") && has(&window, "Average of Rating: 8.5"));
    assert!(!has(&window, "Rating of Other: 9"), "it is no book");
    click(&mut window, "Good");
    until(&mut window, "there are two cards", |window| has(window, "2 results"));
    assert!(has(&window, "Card One") && has(&window, "Rating of Two: 10"));
    click(&mut window, "Card Two");
    until(&mut window, "the note is shown", |window| path(window) == "Two.md" && text(window).is_some());
    // A link leads to the collection, and to a view of it.
    click(&mut window, "A");
    until(&mut window, "the note is shown", |window| path(window) == "A.md" && text(window).is_some());
    assert_eq!(bench.file("Shelf.base"), SHELF, "looking changes nothing");
}

#[test]
fn the_switcher_and_links_lead_to_collections() {
    let bench = shelf();
    let mut window = bench.opened();
    press(&mut window, CTRL, Key::P);
    type_text(&mut window, "shelf");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the table is there", |window| has(window, "3 results"));
    // The name of a file in its row leads to it.
    window.get_all_by_label("Two").last().expect("a row").click();
    window.run();
    until(&mut window, "the note is shown", |window| path(window) == "Two.md");
}

#[test]
fn the_head_sorts_and_the_file_says_so() {
    let bench = shelf();
    let mut window = opened(&bench);
    click(&mut window, "Rating");
    until(&mut window, "it is sorted", |window| has(window, "Rating, sorted from first to last"));
    until(&mut window, "One comes first", |window| top(window, "Rating of One: 7") < top(window, "Rating of Two: 10"));
    click(&mut window, "Rating, sorted from first to last");
    until(&mut window, "Two comes first", |window| {
        has(window, "Rating, sorted from last to first")
            && top(window, "Rating of Two: 10") < top(window, "Rating of One: 7")
    });
    let sorted = SHELF.replace("Average\n", "Average\n    sort:\n      - property: rating\n        direction: DESC\n");
    until(&mut window, "the file says so", |_| bench.file("Shelf.base") == sorted);
    press(&mut window, CTRL, Key::Z);
    press(&mut window, CTRL, Key::Z);
    until(&mut window, "the file is as it was", |_| bench.file("Shelf.base") == SHELF);
}

#[test]
fn filters_groups_and_views_are_written() {
    let bench = shelf();
    let mut window = opened(&bench);
    click(&mut window, "Group");
    let column = |node: &egui_kittest::Node<'_>| node.accesskit_node().role() == egui::accesskit::Role::ColumnHeader;
    window.get_all_by_label("done").find(|node| !column(node)).expect("it is offered").click();
    window.run();
    until(&mut window, "there are groups", |window| has(window, "Without a value: 1"));
    until(&mut window, "the file says so", |_| {
        bench.file("Shelf.base").contains("    groupBy:\n      property: done\n      direction: ASC\n")
    });
    press(&mut window, NONE, Key::Escape);
    click(&mut window, "Filter");
    click(&mut window, "Remove the condition categories.contains(link(\"Books\"))");
    until(&mut window, "all files are there", |window| has(window, "7 results"));
    until(&mut window, "the file has no filter", |_| !bench.file("Shelf.base").contains("link(\"Books\")"));
    press(&mut window, NONE, Key::Escape);
    press(&mut window, CTRL, Key::Z);
    until(&mut window, "the books are back", |window| has(window, "3 results"));
    click(&mut window, "New view");
    until(&mut window, "there is one more", |_| bench.file("Shelf.base").contains("    name: All 2\n"));
    assert!(bench.file("Shelf.base").starts_with("# what stands on the shelf\n"), "comments stay");
}

#[test]
fn a_new_note_of_a_view_has_what_it_asks_for() {
    let bench = shelf();
    let mut window = opened(&bench);
    click(&mut window, "New note in this view");
    until(&mut window, "the note is shown", |window| path(window) == "Untitled.md");
    press(&mut window, NONE, Key::Escape);
    until(&mut window, "it is a book", |_| {
        std::fs::read_to_string(bench.notes().join("Untitled.md"))
            .is_ok_and(|text| text == "---\ncategories:\n  - \"[[Books]]\"\n---\n")
    });
}

#[test]
fn what_is_no_collection_is_said() {
    let bench = Bench::new(&[("A.md", "a\n"), ("Odd.base", "views: [\n"), ("None.base", "filters: rating > 99\n")]);
    let mut window = bench.opened();
    click(&mut window, "Odd.base");
    until(&mut window, "it is said", |window| has(window, "Show its text"));
    click(&mut window, "Show its text");
    until(&mut window, "the text is there", |window| window.query_by_label_contains("views: [").is_some());
    click(&mut window, "None.base");
    until(&mut window, "it is empty", |window| has(window, "No note fits this view."));
}
