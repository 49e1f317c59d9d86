//! Pages and panels without content say what they are for, and offer one action.

use super::*;
use engine::commands::CommandId;

/// Shows a page or panel, and waits for a part of its text.
fn show(window: &mut Driven, page: CommandId, says: &str) {
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, page);
    until(window, says, |window| window.query_all_by_label_contains(says).next().is_some());
}

/// Clicks a button. Returns the commands that ran.
fn click(window: &mut Driven, button: &str) -> Vec<CommandId> {
    window.state_mut().take_ran();
    window.get_by_role_and_label(Role::Button, button).click();
    window.run();
    window.state_mut().take_ran()
}

#[test]
fn an_empty_outline_and_list_of_variables_begin_something() {
    let bench = Bench::new(&[("Rain.md", "---\na: 1\n---\ntext\n")]);
    let mut window = bench.opened();
    show(&mut window, CommandId::ViewRight, "The outline lists the headings");
    click(&mut window, "Add a heading");
    assert_eq!(text(&window).as_deref(), Some("---\na: 1\n---\n# Rain\n\ntext\n"));
    assert!(window.query_by_role_and_label(Role::Link, "Rain").is_some(), "the outline lists it");
    type_text(&mut window, "Sun");
    assert_eq!(text(&window).as_deref(), Some("---\na: 1\n---\n# Sun\n\ntext\n"), "its words were selected");
    show(&mut window, CommandId::ViewVariables, "No cell has run yet");
    click(&mut window, "Add a cell");
    type_text(&mut window, "x = 6");
    let all = "---\na: 1\n---\n# Sun\n\ntext\n\n```python\nx = 6\n```\n";
    assert_eq!(text(&window).as_deref(), Some(all));
    assert_eq!(click(&mut window, "Run the cells"), [CommandId::NoteRunAll]);
    until(&mut window, "the variable", |window| window.query_all_by_label_contains("x: int").next().is_some());
}

#[test]
fn empty_pages_lead_to_what_fills_them() {
    let bench = Bench::new(&[("One.md", "text\n")]);
    let mut window = bench.opened();
    show(&mut window, CommandId::ViewTags, "No note has a tag. Write #tag in a note");
    show(&mut window, CommandId::ViewBroken, "No broken links");
    press(&mut window, NONE, Key::Escape);
    show(&mut window, CommandId::ViewSchedule, "Schedules start nothing yet");
    click(&mut window, "Fill in an example");
    click(&mut window, "Add");
    let added = |window: &mut Driven| window.query_all_by_label_contains(": List the open tasks").next().is_some();
    until(&mut window, "the example is added", added);
    press(&mut window, NONE, Key::Escape);
    show(&mut window, CommandId::ViewBudget, "No spending yet");
    assert_eq!(click(&mut window, "Connect a model"), [CommandId::AgentConnect]);
    press(&mut window, NONE, Key::Escape);
    show(&mut window, CommandId::ViewAgenda, "The agenda shows the tasks");
    assert_eq!(click(&mut window, "Open today's note"), [CommandId::NoteToday]);
    until(&mut window, "today's note is open", |window| path(window) != "One.md");
}

#[test]
fn the_graph_of_an_empty_folder_offers_a_note() {
    let bench = Bench::new(&[]);
    let mut window = bench.window();
    show(&mut window, CommandId::ViewGraph, "The graph shows notes");
    window.state_mut().take_ran();
    // The tree at the left has such a button, too.
    let buttons = window.query_all_by_role_and_label(Role::Button, "Open a folder");
    let button = buttons.max_by(|one, other| one.rect().left().total_cmp(&other.rect().left()));
    button.expect("a button on the page").click();
    window.run();
    assert_eq!(window.state_mut().take_ran(), [CommandId::FolderOpen]);
    press(&mut window, NONE, Key::Escape);
    std::fs::create_dir_all(bench.notes()).expect("a folder");
    window.state_mut().send_command(Command::OpenFolder { folder: bench.notes(), name: None });
    show(&mut window, CommandId::ViewGraph, "Create a note");
    assert_eq!(click(&mut window, "Create a note"), [CommandId::NoteNew]);
    until(&mut window, "the note is open", |window| path_of_note(window).is_some());
}

fn path_of_note(window: &Driven) -> Option<String> {
    let note = window.state().note()?;
    session(window).locate_file(note).map(|(_, path)| path.to_owned())
}
