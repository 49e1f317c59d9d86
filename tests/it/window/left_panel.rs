//! The left panels besides search: sorting and folding the file tree, and the tags.

use super::*;
use egui_kittest::kittest::NodeT;
use engine::TreeOrder;

fn files() -> Bench {
    Bench::new(&[
        ("Apple.md", "---\ncreated: 2026-01-01\ntags: [fruit]\n---\nAn apple, #fruit/red.\n"),
        ("Banana.md", "---\ncreated: 2026-03-01\n---\nYellow. #Fruit #big\n"),
        ("Cherry.md", "---\ncreated: 2026-02-01\n---\nSmall. #fruit/red/dark\n"),
        ("Deep/Under/Egg.md", "no tag\n"),
    ])
}

/// The labels of the tree's lines, from top to bottom.
fn lines(window: &Driven) -> Vec<String> {
    let mut found: Vec<(f32, String)> = window
        .query_all_by_role(Role::TreeItem)
        .filter_map(|node| Some((node.rect().top(), node.accesskit_node().label()?)))
        .collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let lines = found.into_iter().map(|(_, label)| label);
    lines.skip_while(|label| label != "notes").take_while(|label| label != "System (read-only)").collect()
}

fn indexed() -> (Bench, Driven) {
    let bench = files();
    let mut window = bench.opened();
    until(&mut window, "the links are known", |window| session(window).volumes().all(engine::Volume::is_indexed));
    (bench, window)
}

fn sort(window: &mut Driven, name: &str) {
    window.get_by_role_and_label(Role::Button, "Sort files").click();
    window.run();
    window.get_by_role_and_label(Role::MenuItemRadio, name).click();
    window.run();
}

#[test]
fn the_tree_is_sorted_as_chosen_and_stays_so() {
    let (bench, mut window) = indexed();
    assert_eq!(lines(&window), ["notes", "Deep", "Apple", "Banana", "Cherry"]);
    sort(&mut window, "Name (Z to A)");
    assert_eq!(lines(&window), ["notes", "Deep", "Cherry", "Banana", "Apple"]);
    sort(&mut window, "Newest first");
    assert_eq!(lines(&window), ["notes", "Deep", "Banana", "Cherry", "Apple"]);
    let file = std::fs::File::options().append(true).open(bench.notes().join("Cherry.md")).expect("a file");
    file.set_modified(std::time::SystemTime::now() + Duration::from_secs(60)).expect("a time");
    window.state_mut().send_command(Command::Rescan);
    sort(&mut window, "Last edited first");
    until(&mut window, "the change is seen", |window| lines(window)[2] == "Cherry");
    until(&mut window, "all is saved", |window| session(window).is_saved());
    window.into_state().close().expect("all is saved");
    let window = bench.window();
    assert_eq!(session(&window).settings().tree_order, TreeOrder::Edited);
}

#[test]
fn a_file_of_another_program_is_in_the_tree_and_says_its_size_and_time() {
    let (bench, mut window) = indexed();
    std::fs::write(bench.notes().join("Date.md"), "sweet\n").expect("written");
    until(&mut window, "it's in the tree", |window| lines(window).contains(&"Date".to_owned()));
    let at = window.get_by_role_and_label(Role::TreeItem, "Date").rect().center();
    window.hover_at(at);
    until(&mut window, "it's described", |window| {
        window.query_all_by_label_contains("6 bytes\nChanged: ").next().is_some()
    });
}

#[test]
fn folders_are_collapsed_and_the_open_note_is_revealed() {
    let (_bench, mut window) = indexed();
    let egg = session(&window).volumes().next().expect("a volume").files["Deep/Under/Egg.md"].id;
    window.state_mut().show(egg);
    until(&mut window, "its folders are unfolded", |window| lines(window).contains(&"Egg".to_owned()));
    window.get_by_role_and_label(Role::Button, "Collapse all folders").click();
    window.run();
    assert_eq!(lines(&window), ["notes", "Deep", "Apple", "Banana", "Cherry"]);
    window.get_by_role_and_label(Role::Button, "Reveal open note").click();
    window.run();
    assert_eq!(lines(&window)[..4], ["notes", "Deep", "Under", "Egg"]);
    pictured(&mut window, "tree");
}

#[test]
fn tags_are_a_tree_with_counts_and_lead_to_their_notes() {
    let (_bench, mut window) = indexed();
    window.get_by_role_and_label(Role::Button, "Toggle tags").click();
    window.run();
    let tags = |window: &Driven| {
        let items = window.query_all_by_role(Role::TreeItem);
        items.filter_map(|node| node.accesskit_node().label()).collect::<Vec<_>>()
    };
    let all = ["#big, 1 note", "#fruit, 3 notes", "#fruit/red, 2 notes", "#fruit/red/dark, 1 note"];
    assert_eq!(tags(&window).iter().map(|tag| tag.to_lowercase()).collect::<Vec<_>>(), all);
    pictured(&mut window, "tags");
    window.get_by_role_and_label(Role::Button, "Collapse #fruit/red").click();
    window.run();
    assert_eq!(tags(&window).len(), 3);
    click_label(&mut window, "Filter tags");
    type_text(&mut window, "dark");
    assert_eq!(tags(&window), ["#fruit/red/dark, 1 note"]);
    window.get_by_role_and_label(Role::TreeItem, "#fruit/red/dark, 1 note").click();
    window.run();
    until(&mut window, "its note is found", |window| {
        window.query_by_role_and_label(Role::TreeItem, "Cherry, 1 result").is_some()
    });
}
