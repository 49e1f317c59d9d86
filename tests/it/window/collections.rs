//! Collections in the window: views as tabs, table and cards, cells edited in place, and what is written for it.

use super::{Bench, CTRL, Driven, NONE, path, press, session, text, type_text, until};
use egui::accesskit::Role;
use egui::{Key, Modifiers};
use egui_kittest::kittest::{NodeT, Queryable};

pub(super) const SHELF: &str = "# what stands on the shelf
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

pub(super) fn book(more: &str) -> String {
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

pub(super) fn has(window: &Driven, label: &str) -> bool {
    window.query_all_by_label(label).next().is_some()
}

pub(super) fn click(window: &mut Driven, label: &str) {
    window.get_all_by_label(label).next().unwrap_or_else(|| panic!("{label} is there")).click();
    window.run();
}

/// A window that shows the collection from the file tree.
fn opened(bench: &Bench) -> Driven {
    let mut window = bench.opened();
    click(&mut window, "Shelf.base");
    until(&mut window, "the table is there", |window| has(window, "3 results"));
    assert_eq!(path(&window), "Shelf.base");
    window
}

/// The distance of a cell from the top.
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
    // A link leads to the collection and one of its views.
    click(&mut window, "A");
    until(&mut window, "the note is shown", |window| path(window) == "A.md" && text(window).is_some());
    assert_eq!(bench.file("Shelf.base"), SHELF, "looking changes nothing");
}

const VIEWS: &str = "filters: file.hasTag(\"place\")
views:
  - type: list
    name: Lines
    markers: number
    separator: \" - \"
    order: [file.name, rating, with]
  - type: list
    name: Below
    indentProperties: true
    order: [file.name, rating]
  - type: map
    name: World
    order: [file.name]
    coordinates: note.coordinates
  - type: kanban
    name: Board
    order: [file.name]
";

#[test]
fn lists_and_what_is_no_table_are_shown_by_turns() {
    let place = |more: &str| format!("---\ntags: place\ncoordinates: [\"35\", \"135.7\"]\n{more}---\n");
    let bench = Bench::new(&[
        ("A.md", "![[Views.base]]\n\nLast.\n"),
        ("Kyoto.md", &place("rating: 7\nwith: [Ann, \"[[A]]\"]\n")),
        ("Nara.md", &place("")),
        ("Views.base", VIEWS),
    ]);
    let mut window = bench.opened();
    until(&mut window, "the list is in the note", |window| has(window, "Kyoto, rating: 7, with: Ann, A"));
    assert!(has(&window, "Item Nara"));
    press(&mut window, Modifiers::ALT, Key::PageUp);
    let board = "There is no view of the kind “kanban” here: this is a table of what it would show.";
    until(&mut window, "the last view is shown", |window| has(window, board) && has(window, "Cell of Kyoto"));
    press(&mut window, Modifiers::ALT, Key::PageDown);
    press(&mut window, Modifiers::ALT, Key::PageDown);
    until(&mut window, "the second one is a list", |window| has(window, "Kyoto, rating: 7"));
    click(&mut window, "Views.base");
    until(&mut window, "its own page begins with the first", |window| has(window, "Kyoto, rating: 7, with: Ann, A"));
    press(&mut window, Modifiers::ALT, Key::PageDown);
    press(&mut window, Modifiers::ALT, Key::PageDown);
    until(&mut window, "places are named", |window| has(window, "coordinates of Kyoto: 35, 135.7"));
    assert!(has(&window, "Maps aren't supported. This view is shown as a table."));
    press(&mut window, Modifiers::ALT, Key::PageUp);
    until(&mut window, "the list is back", |window| has(window, "Item Nara"));
    click(&mut window, "Item Nara");
    until(&mut window, "the note is shown", |window| path(window) == "Nara.md");
    assert_eq!(bench.file("Views.base"), VIEWS, "looking changes nothing");
}

#[test]
fn the_switcher_and_links_lead_to_collections() {
    let bench = shelf();
    let mut window = bench.opened();
    press(&mut window, CTRL, Key::P);
    type_text(&mut window, "shelf");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the table is there", |window| has(window, "3 results"));
    // The file name in a row opens the file.
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
fn cells_are_edited_with_the_keyboard() {
    let bench = shelf();
    let mut window = opened(&bench);
    let before = bench.file("One.md");
    click(&mut window, "Rating of One: 7");
    press(&mut window, NONE, Key::Enter);
    press(&mut window, CTRL, Key::A);
    type_text(&mut window, "many");
    press(&mut window, NONE, Key::Enter);
    assert!(has(&window, "Enter a number, such as 4.5."));
    press(&mut window, CTRL, Key::A);
    type_text(&mut window, "8.5");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the cell says so", |window| {
        has(window, "Rating of One: 8.5") && has(window, "Twice of One: 17")
    });
    let after = before.replace("rating: 7 # of ten", "rating: 8.5 # of ten");
    until(&mut window, "the note says so", |_| bench.file("One.md") == after);
    // Typing replaces the old value; Escape keeps it.
    click(&mut window, "Rating of Two: 10");
    type_text(&mut window, "3");
    press(&mut window, NONE, Key::Escape);
    assert!(has(&window, "Rating of Two: 10"));
    press(&mut window, NONE, Key::ArrowRight);
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the box is ticked off", |window| has(window, "done of Two: no"));
    until(&mut window, "the note says so", |_| bench.file("Two.md").contains("done: false"));
    press(&mut window, CTRL, Key::Z);
    until(&mut window, "it is taken back", |_| bench.file("Two.md").contains("done: true"));
    press(&mut window, CTRL, Key::Z);
    until(&mut window, "this, too", |_| bench.file("One.md") == before);
    until(&mut window, "the cell says so", |window| has(window, "Rating of One: 7"));
    // A formula is read-only.
    click(&mut window, "Twice of Two: 20");
    press(&mut window, NONE, Key::Enter);
    assert!(has(&window, "This value comes from a formula and can't be edited."));
    press(&mut window, Modifiers::COMMAND, Key::Enter);
    until(&mut window, "its note is shown", |window| path(window) == "Two.md");
}

#[test]
fn cells_without_a_value_get_one() {
    let bench = shelf();
    let mut window = opened(&bench);
    click(&mut window, "last of Two: empty");
    type_text(&mut window, "2026-11-22");
    press(&mut window, NONE, Key::Tab);
    until(&mut window, "the note has the property", |_| {
        bench.file("Two.md").contains("done: true\nlast: 2026-11-22\n")
    });
    click(&mut window, "topics of One: Rain, Wind");
    press(&mut window, NONE, Key::Enter);
    press(&mut window, NONE, Key::End);
    type_text(&mut window, ", Snow");
    press(&mut window, NONE, Key::Enter);
    let list = "topics:\n  - Rain\n  - \"[[Wind]]\"\n  - Snow\n";
    until(&mut window, "the list has one more", |_| bench.file("One.md").contains(list));
}

#[test]
fn filters_groups_and_views_are_written() {
    let bench = shelf();
    let mut window = opened(&bench);
    click(&mut window, "Group");
    let column = |node: &egui_kittest::Node<'_>| node.accesskit_node().role() == Role::ColumnHeader;
    window.get_all_by_label("done").find(|node| !column(node)).expect("it is offered").click();
    window.run();
    until(&mut window, "there are groups", |window| has(window, "Without a value: 1"));
    until(&mut window, "the file says so", |_| {
        bench.file("Shelf.base").contains("    groupBy:\n      property: done\n      direction: ASC\n")
    });
    click(&mut window, "Filter");
    click(&mut window, "Remove the condition categories.contains(link(\"Books\"))");
    until(&mut window, "all files are there", |window| has(window, "7 results"));
    until(&mut window, "the file has no filter", |_| !bench.file("Shelf.base").contains("link(\"Books\")"));
    press(&mut window, NONE, Key::Escape);
    press(&mut window, CTRL, Key::Z);
    until(&mut window, "the books are back", |window| has(window, "3 results"));
    click(&mut window, "New view");
    until(&mut window, "there is one more", |_| bench.file("Shelf.base").contains("    name: All 2\n"));
    let lists = |bench: &Bench| bench.file("Shelf.base").matches("type: list").count();
    let before = lists(&bench);
    click(&mut window, "More of this view");
    window.get_by_role_and_label(Role::MenuItemRadio, "List").click();
    window.run();
    assert!(window.query_by_role_and_label(Role::MenuItemRadio, "List").is_none(), "the menu has closed");
    until(&mut window, "the new view is a list", |_| lists(&bench) == before + 1);
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

/// A copy of a real vault with its files, if the shared data is available.
pub(super) fn vault() -> Option<(Bench, Vec<(String, String)>)> {
    let vault = std::path::Path::new("/work/shared/data/vaults/kepano");
    let mut files: Vec<(String, String)> = Vec::new();
    let mut folders = vec![vault.to_path_buf()];
    while let Some(folder) = folders.pop().filter(|_| vault.is_dir()) {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let inside = path.strip_prefix(vault).expect("inside").to_string_lossy().into_owned();
                files.push((inside, text));
            }
        }
    }
    let all: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    (!all.is_empty()).then(|| (Bench::new(&all), files.clone()))
}

#[test]
fn the_collections_of_a_real_vault_are_shown() {
    let Some((bench, files)) = vault() else { return };
    let mut window = bench.opened();
    // Wide enough for the last column of each.
    window.set_size(egui::vec2(1400.0, 800.0));
    let of = |window: &Driven, path: &str| {
        session(window).volumes().find_map(|volume| volume.files.get(path)).map(|row| row.id).expect("a file")
    };
    // What Obsidian shows for these notes.
    for (base, count, labels) in [
        ("Movies", "1 result", &["Rating", "Director of Blade Runner: Ridley Scott", "Year of Blade Runner: 1982"][..]),
        ("Books", "2 results", &["Author", "last of Out of Control: 2023-09-12", "Year of The Machine Stops: 1909"]),
        ("People", "3 results", &["Age, sorted from last to first", "Birthday, sorted from last to first"]),
        ("Albums", "1 result", &["Artist of Bass on Top: Paul Chambers", "Genre of Bass on Top: Jazz"]),
        ("Places", "2 results", &["Location of Kyoto: Japan", "Rating of Fushimi Inari: 7"]),
        ("Podcast episodes", "1 result", &["Show of Well Made 145 Kevin Kelly: Well Made"]),
        ("Genre", "No note fits this view.", &[]),
        ("Templates", "No note fits this view.", &[]),
    ] {
        let file = of(&window, &format!("Templates/Bases/{base}.base"));
        window.state_mut().show(file);
        until(&mut window, base, |window| has(window, count));
        for label in labels {
            assert!(has(&window, label), "{base}: {label}");
        }
    }
    let bases: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).filter(|path| path.ends_with(".base")).collect();
    assert_eq!(bases.len(), 30);
    for base in bases {
        let file = of(&window, base);
        window.state_mut().show(file);
        until(&mut window, base, |window| {
            window.query_by_label_contains(" result").is_some() || has(window, "No note fits this view.")
        });
        for problem in ["Can't read a part of this collection", "Can't read this collection"] {
            assert!(window.query_by_label_contains(problem).is_none(), "{base}: {problem}");
        }
        let before = files.iter().find(|(path, _)| path == base).map(|(_, text)| text.clone());
        assert_eq!(before, Some(bench.file(base)), "looking changes nothing");
    }
}

#[test]
fn a_new_collection_is_of_the_folder() {
    let bench = Bench::new(&[("A.md", "a\n"), ("In/B.md", "---\ntags: [x]\n---\n"), ("In/C.md", "c\n")]);
    let mut window = bench.opened();
    let file = session(&window).volumes().find_map(|volume| volume.files.get("In/B.md")).map(|row| row.id);
    window.state_mut().show(file.expect("a note"));
    until(&mut window, "the note is shown", |window| path(window) == "In/B.md");
    press(&mut window, super::CTRL_SHIFT, Key::P);
    type_text(&mut window, "New collection");
    press(&mut window, NONE, Key::Enter);
    press(&mut window, NONE, Key::Escape);
    until(&mut window, "its notes are there", |window| has(window, "3 results") && has(window, "tags of B: x"));
    assert_eq!(path(&window), "In/Untitled.base");
    until(&mut window, "it is in its file", |_| bench.notes().join("In/Untitled.base").is_file());
    assert!(bench.file("In/Untitled.base").starts_with("filters:\n  and:\n    - file.inFolder(\"In\")\n"));
}
