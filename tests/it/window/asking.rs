//! A cell that asks for a line of input, in the window.

use super::*;

#[test]
fn a_cell_asks_below_it_and_goes_on() {
    let cell =
        "```python\nname = input('Who? ')\nimport getpass\nprint('Hello', name, len(getpass.getpass('Word? ')))\n```\n";
    let bench = Bench::new(&[("Ask.md", cell)]);
    let mut window = bench.opened();
    window.get_by_label("Run cell 1").click();
    let field = "Answer to cell 1: Who? ";
    until(&mut window, "it asks", |window| window.query_by_label(field).is_some());
    assert!(window.query_by_label("Python needs input").is_some());
    assert!(window.get_by_label(field).is_focused(), "one can type at once");
    type_text(&mut window, "Ada");
    press(&mut window, NONE, Key::Enter);
    let field = "Answer to cell 1: Word? ";
    until(&mut window, "it asks again", |window| window.query_by_label(field).is_some());
    type_text(&mut window, "secret");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "it goes on", |window| window.query_by_label_contains("Hello Ada 6").is_some());
    assert!(window.query_by_label_contains("Who? Ada").is_some(), "what was said stands among the output");
    assert!(window.query_all_by_label_contains("secret").next().is_none());
    assert!(window.query_by_label(field).is_none());
    assert_eq!(text(&window).as_deref(), Some(cell), "nothing was typed into the note");
}

#[test]
fn a_dialog_gives_the_keyboard_back_to_the_answer() {
    let cell = "```python\nname = input('Who? ')\n```\n";
    let bench = Bench::new(&[("Ask.md", cell)]);
    let mut window = bench.opened();
    let field = "Answer to cell 1: Who? ";
    for caret in [None, Some(cell.find("name").expect("the cell"))] {
        if let Some(caret) = caret {
            window.state_mut().place_caret(caret);
            window.run();
        }
        window.get_by_label("Run cell 1").click();
        until(&mut window, "it asks", |window| window.query_by_label(field).is_some());
        type_text(&mut window, "A");
        super::safety::close(&mut window);
        until(&mut window, "the dialog", |window| window.query_by_label("Stop and close?").is_some());
        press(&mut window, NONE, Key::Escape);
        until(&mut window, "the field has it again", |window| window.get_by_label(field).is_focused());
        type_text(&mut window, "da");
        press(&mut window, NONE, Key::Enter);
        until(&mut window, "it goes on", |window| window.query_by_label_contains("Who? Ada").is_some());
        until(&mut window, "it has ended", |window| window.query_by_label(field).is_none());
    }
    assert_eq!(text(&window).as_deref(), Some(cell), "nothing was typed into the note");
}

#[test]
fn the_caret_is_back_where_it_was_once_the_answer_is_given() {
    let cell = "```python\nname = input('Who? ')\n```\n\n```python\nlen(name) * 111\n```\n";
    let bench = Bench::new(&[("Ask.md", cell)]);
    let mut window = bench.opened();
    let field = "Answer to cell 1: Who? ";
    // Shift+Enter moved to the next cell; that cell runs without a click.
    window.state_mut().place_caret(cell.find("name").expect("the first cell"));
    window.run();
    press(&mut window, Modifiers::SHIFT, Key::Enter);
    let next = window.state().caret();
    assert!(next > cell.find("```\n\n"), "in the next cell: {next:?}");
    until(&mut window, "it asks", |window| window.query_by_label(field).is_some());
    window.run();
    type_text(&mut window, "Ada");
    press(&mut window, NONE, Key::Enter);
    window.run();
    assert_eq!(window.state().caret(), next);
    press(&mut window, Modifiers::SHIFT, Key::Enter);
    until(&mut window, "the next cell has run", |window| window.query_by_label("333").is_some());
    // Run by a click, the input field itself gets the caret.
    window.get_by_label("Run cell 1").click();
    until(&mut window, "it asks again", |window| window.query_by_label(field).is_some());
    window.run();
    type_text(&mut window, "Eve");
    press(&mut window, NONE, Key::Enter);
    window.run();
    type_text(&mut window, "# ");
    assert!(text(&window).is_some_and(|text| text.contains("# name = input")), "{:?}", text(&window));
}
