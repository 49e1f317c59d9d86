//! Code assistance in cells: completions, descriptions, variables.

use super::*;
use egui_kittest::kittest::NodeT;
use engine::commands::CommandId;

const NOTE: &str = "prose

```python
class Boat:
    'Floats.'
    def sail(self, to, fast=False): 'Sails.'
boat = Boat()
harbour = 3
```

```python

```
";
/// The position in the empty cell.
const IN: usize = NOTE.len() - 5;

fn offered(window: &Driven) -> Vec<String> {
    let options = window.query_all_by_role(Role::ListBoxOption);
    options.filter_map(|option| option.accesskit_node().label()).collect()
}

/// Presses and releases the mouse button on an offered name, in frames of their own as a hand does.
pub(super) fn click_offered(window: &mut Driven, name: &str) {
    let options = window.query_all_by_role(Role::ListBoxOption);
    let mut fits = options.filter(|option| option.accesskit_node().label().as_deref() == Some(name));
    let pos = fits.next().unwrap_or_else(|| panic!("{name} isn't offered")).rect().center();
    drop(fits);
    for pressed in [None, Some(true), Some(false)] {
        selecting::pointer(window, pos, pressed, NONE);
    }
    window.run();
}

#[test]
fn a_click_chooses_a_name() {
    let (_bench, mut window) = on();
    type_text(&mut window, "ha");
    click_offered(&mut window, "harbour");
    assert!(text(&window).is_some_and(|text| text.ends_with("```python\nharbour\n```\n")), "{:?}", text(&window));
    type_text(&mut window, "2");
    assert!(text(&window).is_some_and(|text| text.contains("harbour2")), "it still has the keyboard");
    // The same in the menu that a slash opens.
    window.state_mut().place_caret(5);
    press(&mut window, NONE, Key::Enter);
    type_text(&mut window, "/tas");
    let pos = window.get_by_label("Task").rect().center();
    for pressed in [None, Some(true), Some(false)] {
        selecting::pointer(&mut window, pos, pressed, NONE);
    }
    window.run();
    type_text(&mut window, "water");
    assert!(text(&window).is_some_and(|text| text.contains("- [ ] water\n")), "{:?}", text(&window));
}

fn on() -> (Bench, Driven) {
    let bench = Bench::new(&[("Code.md", NOTE)]);
    let mut window = bench.opened();
    window.state_mut().place_caret(IN);
    window.run();
    (bench, window)
}

#[test]
fn select_all_takes_the_code_of_a_cell_first() {
    let (_bench, mut window) = on();
    window.state_mut().place_caret(NOTE.find("harbour").expect("code"));
    window.run();
    press(&mut window, CTRL, Key::A);
    type_text(&mut window, "1");
    assert_eq!(text(&window).as_deref(), Some("prose\n\n```python\n1\n```\n\n```python\n\n```\n"));
    press(&mut window, CTRL, Key::A);
    press(&mut window, CTRL, Key::A);
    type_text(&mut window, "all");
    assert_eq!(text(&window).as_deref().map(str::trim_end), Some("all"));
}

fn ran() -> (Bench, Driven) {
    let (bench, mut window) = on();
    window.get_by_label("Run cell 1").click();
    until(&mut window, "it has run", |window| window.query_by_label("Python idle").is_some());
    // The button took the keyboard focus.
    window.state_mut().place_caret(IN);
    window.run();
    (bench, window)
}

#[test]
fn names_of_the_note_are_offered_before_anything_runs() {
    let (_bench, mut window) = on();
    type_text(&mut window, "h");
    assert!(offered(&window).is_empty(), "one letter is no question");
    type_text(&mut window, "a");
    assert_eq!(offered(&window), ["harbour"]);
    type_text(&mut window, "x");
    assert!(offered(&window).is_empty());
    press(&mut window, NONE, Key::Backspace);
    press(&mut window, NONE, Key::Tab);
    assert_eq!(offered(&window), ["harbour"], "asked for");
    press(&mut window, NONE, Key::Escape);
    assert!(offered(&window).is_empty());
    press(&mut window, NONE, Key::Tab);
    press(&mut window, NONE, Key::Enter);
    assert!(text(&window).is_some_and(|text| text.ends_with("```python\nharbour\n```\n")), "{:?}", text(&window));
    // A list that opened automatically doesn't capture Enter.
    press(&mut window, NONE, Key::Enter);
    type_text(&mut window, "bo");
    assert!(!offered(&window).is_empty());
    press(&mut window, NONE, Key::Enter);
    assert!(text(&window).is_some_and(|text| text.ends_with("harbour\nbo\n\n```\n")), "{:?}", text(&window));
    // No completions in prose.
    window.state_mut().place_caret(5);
    type_text(&mut window, " bo");
    assert!(offered(&window).is_empty());
}

#[test]
fn modules_are_completed_before_anything_runs() {
    let (_bench, mut window) = on();
    type_text(&mut window, "import ma");
    until(&mut window, "modules are offered", |window| offered(window).contains(&"math".to_owned()));
    assert!(!offered(&window).contains(&"map".to_owned()), "a function is no module");
    pictured(&mut window, "completion-modules");
    type_text(&mut window, "th");
    press(&mut window, NONE, Key::Enter);
    type_text(&mut window, "math.sq");
    until(&mut window, "what it holds is offered", |window| offered(window) == ["sqrt"]);
    assert!(window.query_by_label("Python off").is_some(), "the note's own kernel is not started");
    press(&mut window, NONE, Key::Tab);
    press(&mut window, NONE, Key::Enter);
    type_text(&mut window, "from json import du");
    until(&mut window, "its names are offered", |window| offered(window).contains(&"dumps".to_owned()));
    press(&mut window, NONE, Key::Escape);
    // Objects that no import names have no completions.
    press(&mut window, NONE, Key::Enter);
    type_text(&mut window, "boat.");
    assert!(offered(&window).is_empty());
}

#[test]
fn modules_of_the_chosen_kernel_are_completed_before_it_runs() {
    let bench = Bench::new(&[("Code.md", "---\nkernel: own\n---\n\n```python\n\n```\n")]);
    let environment = bench.notes().join(".venv");
    let spec = environment.join("share/jupyter/kernels/own/kernel.json");
    std::fs::create_dir_all(spec.parent().expect("a folder")).expect("made");
    let text = r#"{"argv": ["/bin/false"], "display_name": "Own", "language": "python"}"#;
    std::fs::write(spec, text).expect("written");
    std::fs::create_dir_all(environment.join("lib/python3.12/site-packages/mapping_kit")).expect("made");
    let mut window = bench.opened();
    let end = super::text(&window).expect("a note").len();
    until(&mut window, "kernels are found", |window| !session(window).kernels().is_empty());
    window.state_mut().place_caret(end - 5);
    window.run();
    type_text(&mut window, "import ma");
    until(&mut window, "modules are offered", |window| {
        // The environment is listed in the background: if it's late, the next letter shows the results.
        if offered(window).contains(&"math".to_owned()) && !offered(window).contains(&"mapping_kit".to_owned()) {
            press(window, NONE, Key::Backspace);
            type_text(window, "a");
        }
        offered(window).contains(&"mapping_kit".to_owned())
    });
}

#[test]
fn the_kernel_completes_and_describes() {
    let (_bench, mut window) = ran();
    type_text(&mut window, "boat.");
    until(&mut window, "attributes are offered", |window| offered(window) == ["sail"]);
    press(&mut window, NONE, Key::Tab);
    assert!(text(&window).is_some_and(|text| text.ends_with("```python\nboat.sail\n```\n")), "{:?}", text(&window));
    press(&mut window, Modifiers::SHIFT, Key::Tab);
    let card = "Hint: boat.sail(to, fast=False)";
    until(&mut window, "it is described", |window| window.query_by_label(card).is_some());
    press(&mut window, NONE, Key::Escape);
    assert!(window.query_by_label(card).is_none());
    type_text(&mut window, "(fa");
    until(&mut window, "arguments are offered", |window| offered(window).contains(&"fast=".to_owned()));
    press(&mut window, NONE, Key::Escape);
    // At the start of a line, Tab still indents.
    press(&mut window, NONE, Key::Home);
    press(&mut window, NONE, Key::Tab);
    assert!(
        text(&window).is_some_and(|text| text.ends_with("```python\n    boat.sail(fa\n```\n")),
        "{:?}",
        text(&window)
    );
}

#[test]
fn variables_are_listed_and_written_into_the_cell() {
    let (_bench, mut window) = ran();
    let context = window.ctx.clone();
    window.state_mut().perform_command(&context, CommandId::ViewVariables);
    until(&mut window, "they are listed", |window| window.query_by_label("harbour: int 3").is_some());
    assert!(window.query_by_label_contains("Boat: type").is_some());
    click_label(&mut window, "harbour: int 3");
    assert!(text(&window).is_some_and(|text| text.ends_with("```python\nharbour\n```\n")), "{:?}", text(&window));
    type_text(&mut window, " = 'wide'");
    window.get_by_label("Run cell 2").click();
    until(&mut window, "it is told anew", |window| window.query_by_label("harbour: str, 4 'wide'").is_some());
    window.get_by_label("Filter variables").focus();
    window.run();
    type_text(&mut window, "har");
    assert!(window.query_by_label_contains("Boat: type").is_none());
}

#[test]
fn a_name_is_described_under_the_pointer() {
    let (_bench, mut window) = ran();
    let code = window.get_by_label_contains("boat = Boat()").rect();
    // The first word of the fourth line.
    let point = code.left_top() + egui::vec2(12.0, code.height() / 5.0 * 3.5);
    window.hover_at(point);
    let card = "Hint: boat: Boat";
    until(&mut window, "it is described", |window| window.query_by_label_contains(card).is_some());
    window.hover_at(point + egui::vec2(0.0, 400.0));
    until(&mut window, "the card goes", |window| window.query_by_label_contains(card).is_none());
}

#[test]
fn a_kernel_of_the_users_is_chosen_in_the_window() {
    let bench = Bench::new(&[("Own.md", "```python\nimport ipykernel\nanswer = 42\nanswer\n```\n")]);
    if crate::kernel::jupyter::install_in(&bench.notes(), ".venv").is_none() {
        return;
    }
    let mut window = bench.opened();
    click_label(&mut window, "Python off");
    window.get_by_label("Choose Python…").click();
    until(&mut window, "kernels are offered", |window| window.query_by_label("Own Python").is_some());
    window.get_by_label("Own Python").click();
    until(&mut window, "it is asked, with the command", |window| {
        window.query_by_label_contains("ipykernel_launcher").is_some()
    });
    window.get_by_label("Allow").click();
    // The question contains similar text.
    until(&mut window, "it is said what that means", |window| {
        let said = "Own Python now runs this note's cells with all your rights";
        window.query_all_by_label_contains(said).next().is_some()
    });
    assert!(text(&window).is_some_and(|text| text.starts_with("---\nkernel: own\n---\n")), "{:?}", text(&window));
    window.get_by_label("Run cell 1").click();
    until(&mut window, "it has run", |window| window.query_by_label("42").is_some());
    // The kernel says so after the result.
    until(&mut window, "it is idle", |window| window.query_by_label("own idle").is_some());
    let context = window.ctx.clone();
    window.state_mut().perform_command(&context, CommandId::ViewVariables);
    until(&mut window, "its variables are listed", |window| window.query_by_label("answer: int 42").is_some());
}
