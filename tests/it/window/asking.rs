//! A cell that asks for a line, in the window.

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
    assert!(window.query_by_label("Python asks").is_some());
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
