//! The rail at the left: every part of the program is one click away, visibly and by its accessible name.

use super::*;
use engine::keymap::KeymapPreset;
use serde_json::json;

#[test]
fn the_rail_leads_everywhere() {
    let bench = Bench::new(&[
        ("One.md", "# One\n\n- [ ] a task\n"),
        ("Books.base", "views:\n  - type: table\n    name: All\n"),
    ]);
    let mut window = bench.opened();
    let click = |window: &mut Driven, name: &str| {
        window.get_by_role_and_label(Role::Button, name).click();
        window.run();
    };
    click(&mut window, "Open agenda");
    until(&mut window, "the agenda", |window| window.query_by_label("Agenda").is_some());
    click(&mut window, "Open graph");
    until(&mut window, "the graph", |window| window.query_by_label("Graph").is_some());
    click(&mut window, "Open source control");
    until(&mut window, "source control", |window| window.query_by_label("Source control").is_some());
    click(&mut window, "Open memory");
    until(&mut window, "what is remembered", |window| window.query_by_label("Memory").is_some());
    click(&mut window, "Open sync");
    until(&mut window, "sync", |window| window.query_by_label("Sync").is_some());
    click(&mut window, "Toggle agent");
    window.get_by_label("Panel: Agent");
    click(&mut window, "Toggle agent");
    assert!(window.query_by_label("Panel: Agent").is_none(), "the panel is closed again");
    click(&mut window, "Toggle files");
    assert!(window.query_by_role_and_label(Role::TreeItem, "One").is_none(), "the tree is hidden");
    click(&mut window, "Toggle files");
    window.get_by_role_and_label(Role::TreeItem, "One");
    click(&mut window, "Toggle search");
    window.get_by_label("Search notes");
    assert!(window.query_by_role_and_label(Role::TreeItem, "One").is_none(), "the search is in the tree's place");
    click(&mut window, "Toggle search");
    assert!(window.query_by_label("Search notes").is_none(), "the left side is closed");
    click(&mut window, "Toggle tags");
    window.get_by_label("Filter tags");
    click(&mut window, "Toggle files");
    window.get_by_role_and_label(Role::TreeItem, "One");
    click(&mut window, "Settings");
    window.get_by_role_and_label(Role::Tab, "Appearance");
    press(&mut window, NONE, Key::Escape);
    click(&mut window, "Open collections");
    window.get_by_role_and_label(Role::MenuItem, "Books").click();
    until(&mut window, "the collection is open", |window| window.query_by_label_contains("All").is_some());
}

#[test]
fn a_tooltip_hides_no_button_of_the_rail() {
    let bench = Bench::new(&[("One.md", "# One\n")]);
    let mut window = bench.opened();
    let button = window.get_by_role_and_label(Role::Button, "Open graph").rect();
    window.hover_at(button.center());
    until(&mut window, "the tooltip is shown", |window| {
        let mut tips = window.query_all_by_label_contains("Graph   Ctrl+");
        tips.next().is_some_and(|tip| tip.rect().left() >= button.right())
    });
}

#[test]
fn a_narrow_window_shows_the_side_that_is_asked_for() {
    let bench = Bench::new(&[("One.md", "# One\n")]);
    let mut window = bench.opened();
    window.set_size(egui::vec2(800.0, 600.0));
    window.run();
    let click = |window: &mut Driven, name: &str| {
        window.get_by_role_and_label(Role::Button, name).click();
        window.run();
    };
    // The left side, and the right one.
    let sides = |window: &Driven| {
        let has_tree = window.query_by_role_and_label(Role::TreeItem, "One").is_some();
        (has_tree, window.query_by_label("Message to the agent").is_some())
    };
    assert_eq!(sides(&window), (true, false));
    for button in ["Toggle files", "Show the tree"] {
        click(&mut window, "Toggle agent");
        assert_eq!(sides(&window), (false, true), "there's room for one of them");
        click(&mut window, button);
        assert_eq!(sides(&window), (true, false), "{button}");
    }
    click(&mut window, "Hide the tree");
    assert_eq!(sides(&window), (false, false));
}

#[test]
fn files_search_tags_and_collections_have_keys() {
    let bench = Bench::new(&[("One.md", "# One\n"), ("Lists/Books.base", "views:\n  - type: table\n    name: All\n")]);
    let mut window = bench.opened();
    let has_tree = |window: &Driven| window.query_by_role_and_label(Role::TreeItem, "One").is_some();
    press(&mut window, CTRL_SHIFT, Key::J);
    window.get_by_label("Search notes");
    press(&mut window, CTRL_SHIFT, Key::M);
    window.get_by_label("Filter tags");
    press(&mut window, CTRL_SHIFT, Key::E);
    assert!(has_tree(&window) && window.query_by_label("Filter tags").is_none());
    press(&mut window, CTRL_SHIFT, Key::E);
    assert!(!has_tree(&window), "the tree is hidden");
    press(&mut window, CTRL_SHIFT, Key::I);
    window.get_by_label("Go to collection");
    type_text(&mut window, "books");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the collection is open", |window| path(window) == "Lists/Books.base");
    // Without a name, the last choice creates a collection.
    press(&mut window, CTRL_SHIFT, Key::I);
    type_text(&mut window, "new coll");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "a new collection is open", |window| path(window) == "Lists/Untitled.base");
}

#[test]
fn the_welcome_page_is_shown_once_and_its_first_steps_tick_themselves() {
    let bench = Bench::new(&[("One.md", "# One\n\n```python\nprint(6 * 7)\n```\n"), ("Two.md", "# Two\n")]);
    let mut window = bench.opened();
    let settings = session(&window).settings().clone();
    let settings = engine::Settings { show_welcome: true, show_first_steps: true, ..settings };
    window.state_mut().send_command(engine::Command::Set { settings: Box::new(settings) });
    until(&mut window, "the welcome page", |window| window.query_by_label("Welcome to Tracebook").is_some());
    let import = "Import from Obsidian, Jupyter or Notion";
    for choice in ["Start with the sample", "Open a folder", import, "Connect a model", "Pair a device"] {
        window.get_by_role_and_label(Role::Button, choice);
    }
    for lists in [true, false] {
        window.get_by_role_and_label(Role::Button, import).click();
        window.run();
        for choice in ["Obsidian vault", "Jupyter notebooks", "Notion export"] {
            assert_eq!(window.query_by_role_and_label(Role::Button, choice).is_some(), lists, "{choice}");
        }
    }
    window.get_by_label("Run a cell: to do");
    window.get_by_role_and_label(Role::RadioButton, "Dark").click();
    window.run();
    assert_eq!(session(&window).settings().theme, engine::ColorTheme::Dark);
    assert!(!session(&window).settings().show_welcome, "it is shown once");
    window.get_by_role_and_label(Role::Button, "Start with the sample").click();
    until(&mut window, "its first figure", |window| {
        window.query_by_label("Figure: Half a year of rain, in mm").is_some() && window.state().figures() > 0
    });
    assert!(window.query_by_label("Welcome to Tracebook").is_none());
    assert_eq!(path(&window), "Welcome.md");
    let figure = window.get_by_label("Figure: Half a year of rain, in mm").rect();
    assert!(figure.bottom() < 800.0, "it is in sight: {figure:?}");
    window.get_by_label("First steps: 0 of 5");
    window.get_by_label("Run all cells").click();
    until(&mut window, "the step is ticked", |window| window.query_by_label("First steps: 1 of 5").is_some());
    click_label(&mut window, "First steps: 1 of 5");
    window.get_by_label("Run a cell: done");
    window.get_by_label("Ask the agent: to do");
    // The button may be below the visible area.
    window.get_by_label("Hide first steps").click_accesskit();
    window.run();
    assert!(window.query_by_label_contains("First steps: ").is_none());
}

#[test]
fn each_of_the_five_first_steps_ticks_itself() {
    let (address, _go) = agent::model(|turn, _| {
        let edit = json!({"path": "List.md", "old_content": "- two\n", "new_content": "- 2\n"});
        match turn {
            0 => (String::new(), vec![("edit_file", edit)]),
            _ => ("It is changed.".to_owned(), Vec::new()),
        }
    });
    let car = "# Car\n\nThe automobile needs new tires and an oil change.\n\n```python\n6 * 7\n```\n";
    let bench = Bench::new(&[("Car.md", car), ("List.md", "# List\n\n- one\n- two\n")]);
    let mut window = agent::asked(&bench, &address);
    let settings = engine::Settings { show_first_steps: true, ..session(&window).settings().clone() };
    window.state_mut().send_command(engine::Command::Set { settings: Box::new(settings) });
    let ticks = |window: &mut Driven, steps: usize| {
        let shown = format!("First steps: {steps} of 5");
        agent::soon(window, &shown, |window| agent::shows(window, &shown));
    };
    ticks(&mut window, 0);
    window.get_by_label("Run cell 1").click();
    ticks(&mut window, 1);
    agent::soon(&mut window, "the cell has run", |window| window.query_by_label("42").is_some());
    window.state_mut().place_caret(car.find(".\n\n```").expect("a sentence"));
    window.run();
    type_text(&mut window, " [[Li");
    press(&mut window, NONE, Key::Enter);
    ticks(&mut window, 2);
    press(&mut window, CTRL_SHIFT, Key::J);
    type_text(&mut window, "vehicle maintenance");
    agent::soon(&mut window, "it is found by meaning", |window| agent::shows(window, "Car: The auto"));
    window.get_by_label_contains("Car: The auto").click();
    ticks(&mut window, 3);
    window.get_by_label("Message to the agent").focus();
    window.run();
    agent::ask(&mut window, "Change the second");
    ticks(&mut window, 4);
    agent::soon(&mut window, "the run has ended", agent::ended);
    agent::soon(&mut window, "its change is listed", |window| agent::shows(window, "1 file changed"));
    click_label(&mut window, "1 file changed");
    window.get_by_label("Revert: List.md part 1").click();
    ticks(&mut window, 5);
    until(&mut window, "the file is as it was", |_| bench.file("List.md") == "# List\n\n- one\n- two\n");
    click_label(&mut window, "First steps: 5 of 5");
    for step in ["Run a cell", "Link two notes", "Find by meaning", "Ask the agent", "Undo what it did"] {
        window.get_by_label(&format!("{step}: done"));
    }
}

#[test]
fn themes_text_sizes_and_keys_are_pictures_that_fit_a_small_window() {
    let bench = Bench::new(&[("One.md", "# One\n")]);
    let mut window = bench.opened();
    window.set_size(egui::vec2(800.0, 600.0));
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, engine::commands::CommandId::AppWelcome);
    window.run_steps(6);
    let sizes = ["Small", "Medium", "Large", "Very large"];
    let themes = ["System", "Light", "Dark"];
    let keys = ["Tracebook", "VS Code", "Obsidian", "Vim", "Jupyter"];
    for name in themes.into_iter().chain(sizes).chain(keys) {
        let picture = window.get_by_role_and_label(Role::RadioButton, name).rect();
        assert!(picture.left() > 0.0 && picture.right() < 800.0 && picture.height() > 60.0, "{name}: {picture:?}");
    }
    for (name, scale) in [("Large", 1.2), ("Medium", 1.0)] {
        window.get_by_role_and_label(Role::RadioButton, name).focus();
        window.run();
        press(&mut window, NONE, Key::Enter);
        assert_eq!(session(&window).settings().text_scale, scale);
    }
    for (name, preset) in [("Vim", KeymapPreset::Vim), ("Tracebook", KeymapPreset::Tracebook)] {
        window.get_by_role_and_label(Role::RadioButton, name).focus();
        window.run();
        press(&mut window, NONE, Key::Enter);
        assert_eq!(session(&window).settings().keymap_preset, preset);
    }
}

#[test]
fn wide_choices_stand_below_their_setting_in_a_small_window() {
    let bench = Bench::new(&[("One.md", "# One\n")]);
    let mut window = bench.opened();
    window.set_size(egui::vec2(800.0, 600.0));
    press(&mut window, CTRL_ALT, Key::K);
    window.run_steps(6);
    let setting = window.get_by_label_contains("Keys as in: ").rect();
    let choice = window.get_by_role_and_label(Role::RadioButton, "Jupyter").rect();
    assert!(choice.top() - setting.top() > 40.0, "{setting:?} {choice:?}");
}

#[test]
fn a_low_window_has_the_buttons_that_fit_and_the_menu_of_all_commands() {
    let bench = Bench::new(&[("One.md", "# One\n")]);
    let mut window = bench.opened();
    until(&mut window, "all is saved", |window| window.query_by_label("All saved").is_some());
    let rect =
        |window: &Driven, name: &str| window.query_by_role_and_label(Role::Button, name).map(|button| button.rect());
    for (height, has_sync, has_graph, has_settings) in [
        (800.0, true, true, true),
        (500.0, true, true, false),
        (430.0, false, true, false),
        (266.0, false, false, false),
    ] {
        window.set_size(egui::vec2(800.0, height));
        window.run();
        let names = ["Toggle files", "More", "Open sync", "Open graph", "Settings"];
        let [files, more, sync, graph, settings] = names.map(|name| rect(&window, name));
        let shown = (sync.is_some(), graph.is_some(), settings.is_some());
        assert_eq!(shown, (has_sync, has_graph, has_settings), "at {height}");
        let saved = rect(&window, "All saved").expect("the status bar");
        let (files, more) = (files.expect("the first button"), more.expect("the menu"));
        assert!(files.bottom() <= more.top() && more.bottom() <= saved.top(), "at {height}: {more:?} {saved:?}");
    }
    window.get_by_role_and_label(Role::Button, "More").click();
    window.run();
    window.get_by_role_and_label(Role::Tab, "Help");
}
