//! The menus of values in tables and collections, of plots and of tags.

use super::menus::{choose, open_menu_at};
use super::*;

#[test]
fn values_of_an_output_table_are_copied_and_filtered_by() {
    let code = "```python\ntable([{'kind': ['sail', 'oars'][n % 2], 'name': f'boat {n}'} for n in range(20)])\n```\n";
    let bench = Bench::new(&[("Out.md", code)]);
    let mut window = bench.opened();
    window.get_by_label("Run cell 1").click();
    until(&mut window, "the table", |window| window.query_by_label("Table of cell 1, 20 rows").is_some());
    let grid = window.get_by_label("Table of cell 1, 20 rows").rect();
    let second = grid.left_top() + egui::vec2(12.0, 36.0);
    open_menu_at(&mut window, second);
    assert_eq!(choose(&mut window, "Copy value").as_deref(), Some("oars"));
    open_menu_at(&mut window, second);
    assert_eq!(choose(&mut window, "Copy row").as_deref(), Some("oars\tboat 1"));
    open_menu_at(&mut window, second);
    choose(&mut window, "Filter by value");
    until(&mut window, "half are shown", |window| window.query_all_by_label_contains("10 of 20").next().is_some());
}

#[test]
fn values_of_a_collection_are_copied_and_filtered_by() {
    let base = "views:\n  - type: table\n    name: All\n    order: [file.name, rating]\n";
    let bench =
        Bench::new(&[("A.base", base), ("One.md", "---\nrating: 7\n---\n"), ("Two.md", "---\nrating: 9\n---\n")]);
    let mut window = bench.opened();
    window.get_by_role_and_label(Role::TreeItem, "A.base").click();
    until(&mut window, "the collection", |window| window.query_by_label("rating of One: 7").is_some());
    let value = window.get_by_label("rating of One: 7").rect().center();
    open_menu_at(&mut window, value);
    assert_eq!(choose(&mut window, "Copy value").as_deref(), Some("7"));
    open_menu_at(&mut window, value);
    assert!(choose(&mut window, "Copy row").is_some_and(|row| row.starts_with("One") && row.ends_with("\t7")));
    open_menu_at(&mut window, value);
    choose(&mut window, "Filter by value");
    until(&mut window, "only one is left", |window| window.query_by_label("rating of Two: 9").is_none());
    until(&mut window, "it is in the file", |_| bench.file("A.base").contains("rating == 7"));
}

#[test]
fn a_plot_is_copied_as_an_image() {
    let code = "```python\nimport matplotlib.pyplot as plt\nplt.plot([1, 3, 2]); plt.title('Rain')\n```\n";
    let bench = Bench::new(&[("Plot.md", code)]);
    let mut window = bench.opened();
    window.get_by_label("Run cell 1").click();
    until(&mut window, "the figure is there", |window| window.query_by_label("Figure: Rain").is_some());
    let middle = window.get_by_label("Figure: Rain").rect().center();
    open_menu_at(&mut window, middle);
    window.get_by_role_and_label(Role::MenuItem, "Copy as image").click();
    let begun = Instant::now();
    let image = loop {
        window.step();
        let commands = &window.output().platform_output.commands;
        let found = commands.iter().find_map(|command| match command {
            egui::OutputCommand::CopyImage(image) => Some(image.size),
            _ => None,
        });
        if let Some(size) = found {
            break size;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the image is copied");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(image[0] > 200 && image[1] > 100, "{image:?}");
}

#[test]
fn a_tag_has_a_menu() {
    let bench = Bench::new(&[("One.md", "#garden words\n")]);
    let mut window = bench.opened();
    window.get_by_role_and_label(Role::Button, "Toggle tags").click();
    until(&mut window, "the tag", |window| window.query_by_label("#garden, 1 note").is_some());
    let tag = window.get_by_label("#garden, 1 note").rect().center();
    open_menu_at(&mut window, tag);
    assert_eq!(choose(&mut window, "Copy").as_deref(), Some("#garden"));
    open_menu_at(&mut window, tag);
    choose(&mut window, "Search");
    until(&mut window, "the search", |window| window.query_by_label("Search notes").is_some());
}
