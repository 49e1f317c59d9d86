//! Collections inside notes: drawn in place and edited there, with a reason where that isn't possible.

use super::collections::{SHELF, book, click, has, vault};
use super::{Bench, CTRL, Driven, NONE, path, press, session, text, type_text, until};
use egui::Key;
use egui_kittest::kittest::Queryable;
use engine::commands::CommandId;

const BLOCK: &str = "Before.\n\n```base\nfilters: author == this\nviews:\n  - type: table\n    name: By this one\n    \
                     order:\n      - file.name\n      - rating\n```\n\nAfter.\n";

fn shelf(first: &str) -> Bench {
    let (one, two) = (book("rating: 7 # of ten\nauthor: \"[[A]]\"\n"), book("rating: 10\n"));
    Bench::new(&[("A.md", first), ("Books.md", "Books\n"), ("One.md", &one), ("Two.md", &two), ("Shelf.base", SHELF)])
}

fn shown(bench: &Bench, label: &str) -> Driven {
    let mut window = bench.opened();
    until(&mut window, label, |window| has(window, label));
    assert_eq!(path(&window), "A.md");
    window
}

#[test]
fn a_note_shows_a_file_and_its_cells_are_edited() {
    let note = "# Mine\n\n![[Shelf.base]]\n\nLast line.\n";
    let bench = shelf(note);
    let before = bench.file("One.md");
    let mut window = shown(&bench, "Rating of One: 7");
    assert!(has(&window, "2 results") && has(&window, "Average of Rating: 8.5"));
    let (grid, last) = (window.get_by_label("All, 2 rows").rect(), window.get_by_label("Last line.").rect());
    assert!(grid.bottom() <= last.top(), "what follows stands below: {grid:?} {last:?}");
    click(&mut window, "Rating of One: 7");
    press(&mut window, NONE, Key::Enter);
    press(&mut window, CTRL, Key::A);
    type_text(&mut window, "9");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the cell says so", |window| has(window, "Rating of One: 9"));
    let after = before.replace("rating: 7 # of ten", "rating: 9 # of ten");
    until(&mut window, "the other note says so", |_| bench.file("One.md") == after);
    press(&mut window, CTRL, Key::Z);
    until(&mut window, "it is taken back", |window| has(window, "Rating of One: 7"));
    until(&mut window, "in the other note, too", |_| bench.file("One.md") == before);
    // The header sorts, and the collection's file records it.
    click(&mut window, "Rating");
    until(&mut window, "it is sorted", |window| has(window, "Rating, sorted from first to last"));
    until(&mut window, "the file says so", |_| bench.file("Shelf.base").contains("      - property: rating\n"));
    assert_eq!(text(&window).as_deref(), Some(note), "the note itself stays as it is");
    click(&mut window, "Good");
    until(&mut window, "there are cards", |window| has(window, "Card Two"));
    click(&mut window, "Card Two");
    until(&mut window, "the note is shown", |window| path(window) == "Two.md");
}

#[test]
fn a_link_asks_for_a_view_and_the_caret_shows_the_link() {
    let bench = shelf("![[Shelf.base#Good]]\n\nLast line.\n");
    let mut window = shown(&bench, "Card One");
    assert!(!has(&window, "Rating"), "it is no table");
    window.state_mut().place_caret(0);
    window.run();
    window.get_by_label("Note text");
    assert!(has(&window, "Card One"), "the view stays below its link");
    press(&mut window, NONE, Key::End);
    type_text(&mut window, " x");
    assert!(!has(&window, "Card One"), "a link among words is a link");
    press(&mut window, CTRL, Key::Z);
    until(&mut window, "it is back", |window| has(window, "Card One"));
}

#[test]
fn a_block_is_a_collection_of_its_own() {
    let bench = shelf(BLOCK);
    let mut window = shown(&bench, "rating of One: 7");
    assert!(has(&window, "1 result") && has(&window, "By this one"), "`this` is the note around it");
    click(&mut window, "rating");
    let sort = "      - rating\n    sort:\n      - property: rating\n        direction: ASC\n```\n\nAfter.\n";
    until(&mut window, "the block says so", |window| text(window).is_some_and(|text| text.ends_with(sort)));
    click(&mut window, "rating of One: 7");
    press(&mut window, CTRL, Key::Z);
    until(&mut window, "it is taken back", |window| text(window).as_deref() == Some(BLOCK));
    until(&mut window, "it is saved", |window| session(window).is_saved());
    assert_eq!(bench.file("A.md"), BLOCK);
}

#[test]
fn a_line_of_a_paragraph_shows_a_collection() {
    let bench = shelf("What is good:\n![[Shelf.base#Good]]\nand what there is.\n");
    let mut window = shown(&bench, "Card One");
    assert!(has(&window, "What is good:") && has(&window, "and what there is."));
    window.state_mut().place_caret(0);
    window.run();
    press(&mut window, NONE, Key::End);
    press(&mut window, NONE, Key::ArrowDown);
    press(&mut window, NONE, Key::ArrowDown);
    type_text(&mut window, "x");
    assert!(text(&window).is_some_and(|text| text.starts_with("What is good:\n![[Shelf.base#Good]]\nand what the")));
}

#[test]
fn a_new_note_is_of_the_note_around_it() {
    let bench = shelf(BLOCK);
    let mut window = shown(&bench, "rating of One: 7");
    click(&mut window, "New note in this view");
    until(&mut window, "the note is shown", |window| path(window) == "Untitled.md");
    until(&mut window, "it is by the first one", |_| {
        std::fs::read_to_string(bench.notes().join("Untitled.md"))
            .is_ok_and(|text| text == "---\nauthor: \"[[A]]\"\n---\n")
    });
}

#[test]
fn a_markdown_folder_has_tables_instead() {
    let bench = shelf("# Mine\n\n![[Shelf.base]]\n\nLast line.\n");
    let mut window = shown(&bench, "Rating of One: 7");
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::ExportFolder);
    window.run();
    press(&mut window, CTRL, Key::A);
    let out = bench.folder.path().join("out");
    type_text(&mut window, &out.display().to_string());
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "it is exported", |window| window.query_by_label_contains("Dismiss: Exported to ").is_some());
    let made = std::fs::read_to_string(out.join("A.md")).expect("a note");
    let table = "| name | Rating | done | topics | last | Twice |\n| --- | --: | --- | --- | --- | --: |\n\
                 | [[One]] | 7 |  |  |  | 14 |\n| [[Two]] | 10 |  |  |  | 20 |\n\n*Average of Rating: 8.5*\n";
    assert_eq!(made, format!("# Mine\n\n{table}\nLast line.\n"));
}

#[test]
fn what_cannot_be_shown_is_said_in_place() {
    let bench = Bench::new(&[
        ("A.md", "![[No.base]]\n\n```base\nviews: [\n```\n\n![[Odd.base]]\n\n![[None.base#Other]]\n\nLast line.\n"),
        ("Odd.base", "filters:\n  when: x\n"),
        ("None.base", "filters: rating > 99\n"),
    ]);
    let mut window = bench.opened();
    for label in [
        "There is no collection “No.base”.",
        "Can't read this collection: the collection is not YAML: ",
        "Can't read this collection: a filter has and, or, not, and no “when”.",
        "The view “Other” doesn't exist. Another view is shown.",
        "No note fits this view.",
        "Last line.",
    ] {
        until(&mut window, label, |window| window.query_all_by_label_contains(label).next().is_some());
    }
}

#[test]
fn notes_of_a_real_vault_show_their_collections() {
    let Some((bench, files)) = vault() else { return };
    let mut window = bench.opened();
    for (note, labels) in [
        ("Categories/Movies.md", &["Favorites", "Last seen", "Director of Blade Runner: Ridley Scott"][..]),
        ("Categories/Books.md", &["2 results", "Author of Out of Control: Kevin Kelly"]),
        // `this` is the daily note.
        ("Daily/2023-09-12.md", &["Daily notes", "Created of The Machine Stops: 2023-09-12"]),
    ] {
        let row = session(&window).volumes().find_map(|volume| volume.files.get(note)).map(|row| row.id);
        window.state_mut().show(row.expect("a note"));
        for label in labels {
            until(&mut window, label, |window| has(window, label));
        }
        let before = files.iter().find(|(path, _)| path == note).map(|(_, text)| text.clone());
        assert_eq!(before, Some(bench.file(note)), "looking changes nothing");
    }
}

#[test]
fn a_search_in_a_note_shows_what_fits_now() {
    let bench = Bench::new(&[
        ("A.md", "# Food\n\n```query\ntag:baking dough\n```\n\nAfter it.\n"),
        ("Bread.md", "---\ntags: [baking]\n---\n# Sourdough\n\nKnead the dough.\n"),
        ("Soup.md", "# Soup\n\nNo dough here.\n"),
    ]);
    let mut window = shown(&bench, "1 note fits “tag:baking dough”");
    // The results stay up to date.
    std::fs::write(bench.notes().join("Cake.md"), "# Cake\n\nSweet dough. #baking\n").expect("written");
    until(&mut window, "the new one, too", |window| window.query_by_label("2 notes fit “tag:baking dough”").is_some());
    window.get_by_label_contains("Cake: has").click();
    until(&mut window, "it is open", |window| path(window) == "Cake.md");
}

#[test]
fn in_a_list_a_collection_is_a_card_that_opens_it() {
    let bench = shelf("- one ![[Shelf.base#Good]]\n- two\n\n> ```base\n> views: []\n> ```\n");
    let mut window = bench.opened();
    let card = |window: &Driven| window.query_by_label_contains("Collection, view “Good”: Shelf").map(|row| row.rect());
    until(&mut window, "the card is drawn", |window| card(window).is_some());
    assert!(window.query_by_label_contains("A collection is drawn outside of lists and quotes.").is_some());
    let row = card(&window).expect("the card");
    // The name is to the right of the icon, above the description.
    let name = egui::pos2(422.0 + 24.0 + 44.0 + 8.0, row.bottom() - 8.0 - 16.0 - 10.0);
    window.hover_at(name);
    window.run();
    window.drag_at(name);
    window.drop_at(name);
    until(&mut window, "the collection is shown", |window| path(window) == "Shelf.base");
}

#[test]
fn queries_of_other_programs_say_that_they_are_not_run() {
    let note =
        "# Tasks\n\n```dataview\nTABLE rating FROM #book\n```\n\n- ```tasks\n  not done\n  ```\n\n```js\n1\n```\n";
    let bench = Bench::new(&[("One.md", note)]);
    let window = bench.opened();
    let count = |says: &str| window.query_all_by_label_contains(says).count();
    assert_eq!(count("TABLE rating FROM #book"), 1, "the query can be read");
    assert_eq!(count("Dataview queries aren't run here."), 1);
    assert_eq!(count("Queries of the Tasks plugin aren't run here."), 1);
    assert_eq!(count("run here"), 2, "other code says nothing");
}
