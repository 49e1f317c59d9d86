//! Scripts: `.py` files with code beside its output.

use super::*;

fn opened(text: &str) -> (Bench, Driven) {
    let bench = Bench::new(&[("A note.md", "# A note\n"), ("work.py", text)]);
    let mut window = bench.opened();
    let script = session(&window).volumes().next().expect("one").files["work.py"].id;
    window.state_mut().show(script);
    until(&mut window, "it is there", |window| window.query_by_label("Preview").is_some());
    (bench, window)
}

/// Types a new line.
fn line(window: &mut Driven, text: &str) {
    press(window, NONE, Key::Enter);
    type_text(window, text);
}

#[test]
fn a_script_runs_while_it_is_written_and_shows_beside_what_it_makes() {
    let (bench, mut window) = opened("x = 20\nprint(x * 2)\n");
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(50));
        window.step();
    }
    assert!(window.query_by_label("40").is_none(), "nothing runs by itself on opening");
    let before = bench.file("work.py");
    window.get_by_label_contains("x = 20").click();
    window.run();
    press(&mut window, CTRL, Key::End);
    line(&mut window, "print(x + 3)");
    until(&mut window, "it has run", |window| window.query_by_label_contains("23").is_some());
    assert!(window.query_by_label_contains("40").is_some());
    // Code that can't be parsed isn't run: the last output stays until it can.
    line(&mut window, "print((");
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(50));
        window.step();
    }
    assert!(window.query_by_label_contains("SyntaxError").is_none());
    assert!(window.query_by_label_contains("23").is_some());
    type_text(&mut window, "7))");
    until(&mut window, "it has run", |window| window.query_by_label_contains("23\n7").is_some());
    until(&mut window, "it is saved", |window| session(window).is_saved() && bench.file("work.py") != before);
    assert!(
        bench.file("work.py").starts_with("x = 20\nprint(x * 2)\n") && bench.file("work.py").contains("print((7))")
    );
    // With automatic runs turned off, it waits for Ctrl+Enter.
    window.get_by_label("Run as I type").click();
    until(&mut window, "it waits", |window| !session(window).settings().script_runs);
    window.get_by_label_contains("x = 20").click();
    window.run();
    press(&mut window, CTRL, Key::End);
    line(&mut window, "print('later')");
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(50));
        window.step();
    }
    assert!(window.query_by_label_contains("7\nlater").is_none());
    press(&mut window, CTRL, Key::Enter);
    until(&mut window, "it has run", |window| window.query_by_label_contains("7\nlater").is_some());
}

#[test]
fn lines_of_code_are_numbered_if_wanted() {
    let (_bench, mut window) = opened("x = 1\ny = 2\n\nprint(x + y)\n");
    let numbers = |window: &Driven| {
        let shapes = window.output().shapes.iter().filter_map(|clipped| match &clipped.shape {
            egui::Shape::Text(shape) if shape.galley.job.sections.first()?.format.font_id.size < 11.0 => {
                shape.galley.text().parse::<usize>().ok()
            }
            _ => None,
        });
        shapes.collect::<Vec<_>>()
    };
    assert!(numbers(&window).is_empty());
    window.get_by_label("Settings").click_accesskit();
    window.run();
    window.get_by_role_and_label(Role::Tab, "Editor").click();
    window.run();
    window.get_by_role_and_label(Role::Switch, "Line numbers").click();
    window.run();
    press(&mut window, NONE, Key::Escape);
    assert!(session(&window).settings().line_numbers);
    assert_eq!(numbers(&window), [1_usize, 2, 3, 4]);
}

#[test]
fn the_line_beside_the_code_is_moved() {
    let (_bench, mut window) = opened("print(1)\n");
    let preview = |window: &Driven| window.get_by_role_and_label(Role::Heading, "Preview").rect().left();
    let before = preview(&window);
    window.get_by_role_and_label(Role::Splitter, "Width of the code").focus();
    window.run();
    press(&mut window, NONE, Key::ArrowRight);
    let after = preview(&window);
    assert!(after > before + 10.0, "{before} {after}");
    let from = window.get_by_role_and_label(Role::Splitter, "Width of the code").rect().center();
    window.hover_at(from);
    window.run();
    window.drag_at(from);
    window.run();
    window.hover_at(from - egui::vec2(200.0, 0.0));
    window.run();
    window.drop_at(from - egui::vec2(200.0, 0.0));
    window.run();
    assert!((preview(&window) - (after - 200.0)).abs() < 8.0, "{after} {}", preview(&window));
}

#[test]
fn one_that_does_not_end_is_stopped_and_run_anew() {
    let (_bench, mut window) = opened("print('begun')\n");
    window.get_by_label_contains("begun").click();
    window.run();
    press(&mut window, CTRL, Key::End);
    line(&mut window, "while True: pass");
    until(&mut window, "it runs", |window| {
        session(window).notes().any(|note| matches!(note.kernel, engine::KernelPhase::Busy(_)))
    });
    for _ in 0.."while True: pass".len() {
        press(&mut window, NONE, Key::Backspace);
    }
    type_text(&mut window, "print('over')");
    until(&mut window, "the new one has run", |window| window.query_by_label_contains("begun\nover").is_some());
}

#[test]
fn what_others_write_into_it_is_not_run() {
    let (bench, mut window) = opened("print('own')\n");
    window.get_by_label_contains("own").click();
    window.run();
    std::fs::write(bench.notes().join("work.py"), "print('own')\nprint(6 * 7)\n").expect("written");
    until(&mut window, "it is seen", |window| session(window).notes().any(|note| note.text().contains("6 * 7")));
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(50));
        window.step();
    }
    assert!(window.query_by_label_contains("42").is_none());
    let ran = |window: &Driven| session(window).notes().any(|note| note.run_revision() > 0);
    assert!(!ran(&window));
}
