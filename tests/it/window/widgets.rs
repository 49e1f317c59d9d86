//! Widgets in the window: native controls with labels, which set variables and run dependent cells.

use super::collections::click;
use super::{Bench, CTRL, Driven, NONE, press, session, text, type_text, until};
use egui::Key;
use egui::accesskit::Role;
use egui_kittest::kittest::Queryable;

const NOTE: &str = "# Rates

```widget
slider: rate
label: Interest rate
min: 0
max: 10
value: 4
```

```widget
select: region
options: [north, south]
```

```widget
checkbox: paid
label: Paid back
```

```widget
text: bank
value: First
```

```widget
date: day
value: 2024-02-29
```

```python
print('got', rate, region, paid, bank, day)
```

```python
print('alone')
```
";

fn note(window: &Driven) -> String {
    text(window).unwrap_or_default()
}

fn shows(window: &Driven, label: &str) -> bool {
    window.query_all_by_label_contains(label).next().is_some()
}

#[test]
fn controls_set_variables_and_run_what_depends_on_them() {
    let bench = Bench::new(&[("Rates.md", NOTE)]);
    let mut window = bench.opened();
    until(&mut window, "the slider is there", |window| {
        window.query_by_role_and_label(Role::Slider, "Interest rate").is_some()
    });
    assert!(!shows(&window, "max: 10"), "the source isn't shown");
    click(&mut window, "Run cell 6");
    until(&mut window, "a name is missing", |window| shows(window, "NameError"));

    // A key on the slider sets a new value, and the cells that use it run again, with everything that they need.
    window.get_by_role_and_label(Role::Slider, "Interest rate").focus();
    window.run();
    press(&mut window, NONE, Key::ArrowRight);
    until(&mut window, "the value is set", |window| note(window).contains("value: 5\n"));
    until(&mut window, "it ran", |window| shows(window, "got 5 north False First 2024-02-29"));
    assert!(!shows(&window, "alone\n"), "what doesn't depend on it doesn't run");

    window.get_by_role_and_label(Role::CheckBox, "Paid back").click();
    until(&mut window, "it is checked", |window| note(window).contains("value: true\n"));
    until(&mut window, "it ran again", |window| shows(window, "got 5 north True First"));
    window.get_by_role_and_label(Role::ComboBox, "region").click();
    window.run();
    click(&mut window, "south");
    until(&mut window, "it is chosen", |window| shows(window, "got 5 south True First"));
    window.get_by_role_and_label(Role::TextInput, "bank").focus();
    window.run();
    press(&mut window, CTRL, Key::A);
    type_text(&mut window, "it's \"2nd\"");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the text is taken", |window| shows(window, "got 5 south True it's \"2nd\" 2024-02-29"));
    click(&mut window, "day: day after");
    until(&mut window, "the next day", |window| shows(window, "it's \"2nd\" 2024-03-01"));
    until(&mut window, "it is saved", |window| {
        session(window).is_saved() && bench.file("Rates.md").contains("value: 2024-03-01\n")
    });

    // The source is a click away, and the control returns when the caret leaves.
    click(&mut window, "Edit widget rate");
    until(&mut window, "its source is shown", |window| {
        window.query_by_role_and_label(Role::Slider, "Interest rate").is_none()
    });
    click(&mut window, "Rates");
    until(&mut window, "it is back", |window| window.query_by_role_and_label(Role::Slider, "Interest rate").is_some());
}

#[test]
fn a_drag_is_one_step_and_a_broken_widget_says_why() {
    let bench =
        Bench::new(&[("Rates.md", "# R\n\n```widget\nslider: rate\nvalue: 50\n```\n\n```widget\nslider: def\n```\n")]);
    let mut window = bench.opened();
    until(&mut window, "the error is there", |window| shows(window, "`def` can't be the name of a Python variable"));
    let place = window.get_by_role_and_label(Role::Slider, "rate").rect();
    let at = |share: f32| egui::pos2(place.left() + share * place.width(), place.center().y);
    let button = |window: &mut Driven, pos, pressed| {
        let button = egui::PointerButton::Primary;
        window.event(egui::Event::PointerMoved(pos));
        window.event(egui::Event::PointerButton { pos, button, pressed, modifiers: NONE });
        window.step();
    };
    button(&mut window, at(0.5), true);
    for step in 1..6 {
        window.event(egui::Event::PointerMoved(at(0.5 + 0.02 * step as f32)));
        window.step();
    }
    assert!(note(&window).contains("value: 50\n"), "the note is left alone meanwhile");
    button(&mut window, at(0.62), false);
    until(&mut window, "it is set", |window| !note(window).contains("value: 50\n"));
    window.state_mut().place_caret(0);
    window.step();
    press(&mut window, CTRL, Key::Z);
    until(&mut window, "one step takes it back", |window| note(window).contains("value: 50\n"));
}

#[test]
fn a_query_is_shown_as_a_table() {
    let text = "# Q

```python
rows = [{'city': city, 'n': n} for n, city in enumerate('abcdefghijkl')]
```

```sql
SELECT city, n * 2 AS twice FROM rows WHERE n > 1
```

```sql
SELECT 1 AS one
```
";
    let bench = Bench::new(&[("Q.md", text)]);
    let mut window = bench.opened();
    click(&mut window, "Run cell 1");
    click(&mut window, "Run cell 2");
    until(&mut window, "the table is there", |window| shows(window, "Table of cell 2, 10 rows"));
    click(&mut window, "Run cell 3");
    until(&mut window, "it has one row", |window| shows(window, "Table of cell 3, 1 row"));
    assert!(!shows(&window, "1 rows"));
}
