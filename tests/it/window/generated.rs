//! Generated views in the window: nothing is drawn before the user approves; then controls set properties and ask.

use super::collections::{click, has};
use super::{Bench, Driven, NONE, pictured, press, text, type_text, until};
use egui::Key;
use egui::accesskit::Role;
use egui_kittest::kittest::Queryable;
use serde_json::json;

const LOAN: &str = r#"---
rate: 5
---
# Loan

```python
rows = [{"year": 1, "left": 90.5}, {"year": 2, "left": 80}]
left = [row["left"] for row in rows]
```

```view
{"title": "What is left", "view": {"type": "column", "children": [
  {"type": "text", "text": "At {property:rate} % in {variable:years} years"},
  {"type": "slider", "property": "rate", "label": "Rate", "from": 0, "to": 10, "step": 0.5},
  {"type": "form", "fields": [{"property": "bank", "label": "Bank"},
    {"property": "paid", "label": "Paid", "input": "check"}]},
  {"type": "row", "children": [{"type": "table", "rows": {"variable": "rows"}, "columns": ["year", "left"]},
    {"type": "plot", "y": {"variable": "left"}}]},
  {"type": "button", "label": "Work it out", "action": {"command": "note.run_all"}}]}}
```
"#;

fn loan() -> Bench {
    Bench::new(&[("Loan.md", LOAN)])
}

fn note(window: &Driven) -> String {
    text(window).unwrap_or_default()
}

fn shows(window: &mut Driven, label: &str) -> bool {
    window.query_all_by_label_contains(label).next().is_some()
}

#[test]
fn a_view_is_drawn_once_the_user_says_so_and_its_controls_reach_the_note() {
    let bench = loan();
    let mut window = bench.opened();
    assert!(has(&window, "Render preview") && shows(&mut window, "It has 1 text, 1 table, 1 plot, 1 form, 1 slider"));
    assert!(window.query_by_role_and_label(Role::Slider, "Rate").is_none(), "nothing of it is drawn");
    assert_eq!(note(&window), LOAN);
    click(&mut window, "Render preview");
    until(&mut window, "it is drawn", |window| has(window, "At 5 % in \u{2013} years"));
    assert!(has(&window, "Run the note's cells to see rows."));

    // A slider and fields set the note's properties.
    window.get_by_role_and_label(Role::Slider, "Rate").focus();
    window.run();
    press(&mut window, NONE, Key::ArrowRight);
    until(&mut window, "the property is set", |window| note(window).contains("rate: 5.5\n"));
    until(&mut window, "it is seen", |window| has(window, "At 5.5 % in \u{2013} years"));
    window.get_by_role_and_label(Role::TextInput, "Bank").focus();
    window.run();
    type_text(&mut window, "North");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the field is set", |window| note(window).contains("bank: North\n"));
    window.get_by_role_and_label(Role::CheckBox, "Paid").click();
    until(&mut window, "the box is ticked", |window| note(window).contains("paid: true\n"));

    // A button needs approval, as an agent's call does.
    click(&mut window, "Work it out");
    until(&mut window, "it waits", |window| has(window, "Waiting for approval"));
    click(&mut window, "Waiting for approval");
    until(&mut window, "the card is there", |window| shows(window, "The agent waits: Run all cells in Loan.md"));
    click(&mut window, "Allow");
    until(&mut window, "the cells ran, and the kernel was asked", |window| has(window, "1, 90.5"));
    pictured(&mut window, "view");
    assert!(has(&window, "year, left"));
    assert!(shows(&mut window, "Figure"), "the plot is drawn");

    // The approval survives a restart, and the user can revoke it.
    drop(window);
    let mut window = bench.opened();
    until(&mut window, "it is drawn again", |window| has(window, "At 5.5 % in \u{2013} years"));
    click(&mut window, "Hide this view");
    until(&mut window, "it is hidden", |window| has(window, "Render preview"));
}

#[test]
fn a_changed_view_asks_again_and_a_hostile_one_is_a_sentence() {
    let bench = loan();
    let mut window = bench.opened();
    click(&mut window, "Render preview");
    until(&mut window, "it is drawn", |window| has(window, "At 5 % in \u{2013} years"));
    std::fs::write(bench.notes().join("Loan.md"), LOAN.replace("Work it out", "Sure")).expect("written");
    until(&mut window, "it is asked again", |window| has(window, "Render preview"));
    let hostile = LOAN.replace("\"type\": \"slider\"", "\"type\": \"script\"");
    std::fs::write(bench.notes().join("Loan.md"), hostile).expect("written");
    let said = "Can't draw this view: view.children[1]: there is no";
    until(&mut window, "it is said", |window| shows(window, said));
    assert!(!has(&window, "Render preview"));
}

#[test]
fn nothing_hides_in_what_a_view_says() {
    let (evil, bidi) = ("a\u{202e}b\u{200b}\u{1b}c", "d\u{2066}e");
    let form = json!([
        {"property": "one", "label": format!("Field {evil}")},
        {"property": "two", "label": format!("Check {evil}"), "input": "check"},
        {"property": "three", "label": format!("Choice {evil}"), "choices": [format!("x {evil}"), "y"]},
    ]);
    let view = json!({"title": format!("Title {evil}"), "view": {"type": "column", "children": [
        {"type": "text", "text": format!("Text {evil} {{property:told}}")},
        {"type": "slider", "property": "rate", "label": format!("Slider {evil}"), "from": 0, "to": 10, "step": 1},
        {"type": "form", "title": format!("Form {evil}"), "fields": form},
        {"type": "table", "rows": [{(format!("Column {evil}")): format!("Cell {evil}")}]},
        {"type": "plot", "title": format!("Plot {evil}"), "y": [1, 2]},
        {"type": "button", "label": format!("Button {evil}"), "action": {"command": "note.run_all"}}]}});
    let note = format!("---\ntold: Told {bidi}\n---\n# V\n\n```view\n{view}\n```\n");
    let bench = Bench::new(&[("V.md", &note)]);
    let mut window = bench.opened();
    let safe = "a\\u{202e}b\\u{200b}␛c";
    until(&mut window, "it is proposed", |window| shows(window, &format!("“Button {safe}” asks for")));
    click(&mut window, "Render preview");
    until(&mut window, "it is drawn", |window| has(window, &format!("Text {safe} Told d\\u{{2066}}e")));
    for part in ["Title", "Slider", "Field", "Check", "Choice", "Form", "Column", "Cell", "Button"] {
        assert!(shows(&mut window, &format!("{part} {safe}")), "{part}");
        assert!(!shows(&mut window, &format!("{part} {evil}")), "{part}");
    }
    pictured(&mut window, "view-hidden");
    window.get_by_role_and_label(Role::ComboBox, &format!("Choice {safe}")).click();
    window.run();
    assert!(shows(&mut window, &format!("x {safe}")) && !shows(&mut window, &format!("x {evil}")));
    // The property gets the view's value, not its displayed form.
    click(&mut window, &format!("x {safe}"));
    until(&mut window, "the property is set", |window| self::note(window).contains("\nthree: "));
    assert!(!self::note(&window).contains("␛"), "{}", self::note(&window));
}
