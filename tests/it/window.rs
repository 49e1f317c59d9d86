//! The window, driven by the names of its controls, on a real workspace in a temporary folder.

mod acp_agent;
mod agent;
mod agent_servers;
mod agent_settings;
mod agent_texts;
mod approvals;
mod asking;
mod attachments;
mod budgets;
mod coding;
mod collections;
mod command_menu;
mod commands;
mod comments;
mod connection;
mod deadlines;
mod driven;
mod dropped;
mod empty_states;
mod figures;
mod filing;
mod finding;
mod folders;
mod folding;
mod forks;
mod generated;
#[cfg(unix)]
mod github_folders;
mod help;
mod history;
mod insets;
#[cfg(target_os = "linux")]
mod interpreters;
mod kernel_forks;
mod keystrokes;
mod left_panel;
mod limits;
mod links;
mod looks;
pub(crate) mod memory;
mod menus;
mod modes;
mod moving;
mod note_packages;
mod notices;
mod notifications;
mod outputs;
mod packages;
mod panes;
mod phone_pairing;
mod python_setup;
mod rail;
mod random;
mod reach;
mod remote_runs;
mod restored;
mod safety;
mod scaling;
mod science_pack;
mod scripts;
mod search_panel;
mod searching;
mod selecting;
mod server_approvals;
mod setting;
mod settings;
mod shortcuts;
mod source_control;
mod source_control_conflicts;
mod source_control_more;
mod spelling;
mod status;
mod syncing;
mod tool_lines;
mod trace_versions;
mod value_menus;
mod widgets;

mod reading;
mod reading_order;

use driven::*;
use egui::accesskit::Role;
use egui::{Key, Modifiers};
use egui_kittest::kittest::Queryable;
use engine::Command;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[test]
fn a_note_is_clicked_typed_into_and_undone() {
    let bench = Bench::new(&[("One.md", "# One\n\nA line of text.\n"), ("Two.md", "Another note.\n")]);
    let mut window = bench.opened();
    assert_eq!(path(&window), "One.md");
    click_label(&mut window, "Two");
    until(&mut window, "the other note is shown", |window| text(window).as_deref() == Some("Another note.\n"));
    click_label(&mut window, "Another note.");
    press(&mut window, NONE, Key::End);
    type_text(&mut window, " Typed.");
    assert_eq!(text(&window).as_deref(), Some("Another note. Typed.\n"));
    until(&mut window, "it is in the file", |_| bench.file("Two.md") == "Another note. Typed.\n");
    until(&mut window, "all is saved", |window| window.query_by_label("All saved").is_some());
    press(&mut window, CTRL, Key::Z);
    assert_eq!(with_caret(&window), "Another note.|\n");
    press(&mut window, CTRL_SHIFT, Key::Z);
    assert_eq!(with_caret(&window), "Another note. Typed.|\n");
    assert_eq!(bench.file("One.md"), "# One\n\nA line of text.\n", "what nobody edits stays as it is");
}

#[test]
fn the_palette_runs_commands_and_the_switcher_goes_to_notes() {
    let bench = Bench::new(&[("One.md", "1\n"), ("Folder/Rainfall.md", "drops\n"), ("Folder/Brain.md", "cells\n")]);
    let mut window = bench.opened();
    press(&mut window, CTRL, Key::P);
    window.get_by_label("Go to note");
    type_text(&mut window, "rain");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the note is shown", |window| text(window).as_deref() == Some("drops\n"));
    assert!(window.query_by_label("Go to note").is_none());
    press(&mut window, CTRL_SHIFT, Key::P);
    window.get_by_label("Command palette");
    type_text(&mut window, "dark mode");
    let before = session(&window).settings().theme;
    press(&mut window, NONE, Key::Enter);
    assert_ne!(session(&window).settings().theme, before);
    press(&mut window, CTRL_SHIFT, Key::P);
    press(&mut window, NONE, Key::Escape);
    assert!(window.query_by_label("Command palette").is_none());
}

#[test]
fn settings_and_the_last_note_are_there_again() {
    let bench = Bench::new(&[("One.md", "1\n"), ("Two.md", "2\n")]);
    let mut window = bench.opened();
    click_label(&mut window, "Two");
    until(&mut window, "the note is shown", |window| text(window).as_deref() == Some("2\n"));
    for _ in 0..2 {
        press(&mut window, CTRL_SHIFT, Key::L);
    }
    press(&mut window, CTRL, Key::Backslash);
    until(&mut window, "all is saved", |window| session(window).is_saved());
    window.into_state().close().expect("all is saved");
    let mut window = bench.window();
    until(&mut window, "the last note is shown", |window| text(window).as_deref() == Some("2\n"));
    let settings = session(&window).settings().clone();
    assert_eq!((settings.theme, settings.left_open), (engine::ColorTheme::Dark, false));
    assert!(window.query_by_label("One").is_none(), "the tree is folded away");
}

#[test]
fn a_cell_runs_and_shows_what_it_came_to() {
    let bench = Bench::new(&[("Cells.md", "Two cells.\n\n```python\n1+1\n```\n\n```python\nprint('a'); 1/0\n```\n")]);
    let mut window = bench.opened();
    window.get_by_label("Run cell 1").click();
    until(&mut window, "the answer is shown", |window| window.query_by_label("2").is_some());
    window.get_by_label_contains("print('a')").click();
    window.run();
    press(&mut window, Modifiers::SHIFT, Key::Enter);
    until(&mut window, "the error is shown", |window| {
        window.query_by_label_contains("ZeroDivisionError: division by zero").is_some()
    });
    // The caret moved to a line after the last row, which doesn't exist until something is typed.
    let before = text(&window).expect("a note is shown");
    type_text(&mut window, "Done.");
    assert_eq!(text(&window).expect("a note is shown"), format!("{before}\nDone."));
}

#[test]
fn a_running_cell_is_stopped_by_a_click() {
    let bench = Bench::new(&[("Loop.md", "```python\nwhile True:\n    pass\n```\n")]);
    let mut window = bench.opened();
    window.get_by_label("Run cell 1").click();
    window.step();
    until(&mut window, "it can be stopped", |window| window.query_by_label("Stop cell 1").is_some());
    until(&mut window, "it runs", |window| window.query_by_label("Python running").is_some());
    window.get_by_label("Stop cell 1").click();
    until(&mut window, "it has stopped", |window| {
        window.query_by_label_contains("Stopped before it was done").is_some()
    });
    window.get_by_label("Run cell 1");
}

#[test]
fn a_box_is_ticked_by_a_click() {
    let bench = Bench::new(&[("Todo.md", "- [ ] buy bread\n- [x] eat it\n")]);
    let mut window = bench.opened();
    window.get_by_role_and_label(Role::CheckBox, "buy bread").click();
    window.run();
    window.get_by_role_and_label(Role::CheckBox, "eat it").click();
    window.run();
    assert_eq!(text(&window).as_deref(), Some("- [x] buy bread\n- [ ] eat it\n"));
}

#[test]
fn everything_can_be_copied_and_replaced() {
    let bench = Bench::new(&[("All.md", "# All\n\nof it\n")]);
    let mut window = bench.opened();
    click_label(&mut window, "of it");
    press(&mut window, CTRL, Key::A);
    window.event(egui::Event::Copy);
    window.step();
    let copied = window.output().platform_output.commands.iter().find_map(|command| match command {
        egui::OutputCommand::CopyText(text) => Some(text.clone()),
        _ => None,
    });
    assert_eq!(copied.as_deref(), Some("# All\n\nof it\n"));
    type_text(&mut window, "x");
    assert_eq!(with_caret(&window), "x|");
    press(&mut window, CTRL, Key::Z);
    assert_eq!(text(&window).as_deref(), Some("# All\n\nof it\n"));
}

#[test]
fn ten_thousand_notes_cost_no_frame() {
    let bench = Bench::new(&[("A.md", "first\n")]);
    for folder in 0..10 {
        let folder = bench.notes().join(format!("Folder {folder}"));
        std::fs::create_dir(&folder).expect("a folder");
        for note in 0..1_000 {
            std::fs::write(folder.join(format!("Note {note:04}.md")), "x\n").expect("a file");
        }
    }
    let mut window = bench.opened();
    until(&mut window, "all files are known", |window| {
        session(window).volumes().all(|volume| volume.files.len() == 10_001)
    });
    for folder in 0..10 {
        window.get_by_label(&format!("Folder {folder}")).click_accesskit();
        window.run();
        // An expanded folder's thousand lines push the next folder out of sight.
        if folder < 9 {
            window.get_by_label(&format!("Folder {folder}")).click_accesskit();
            window.run();
        }
    }
    window.get_by_label("Note 0000");
    assert!(window.query_by_label("Note 0500").is_none(), "only what is in sight is drawn");
    window.hover_at(egui::pos2(100.0, 400.0));
    window.event(egui::Event::MouseWheel {
        unit: egui::MouseWheelUnit::Point,
        delta: egui::vec2(0.0, -14_000.0),
        phase: egui::TouchPhase::Move,
        source: egui::MouseWheelSource::Wheel,
        modifiers: NONE,
    });
    window.run();
    assert!(window.query_by_label("Note 0000").is_none());
    let begun = support::measure::thread_cpu();
    window.run_steps(100);
    let frame = (support::measure::thread_cpu() - begun) / 100;
    // CPU time of a debug build; drawing all rows would take hundreds of milliseconds.
    assert!(frame < Duration::from_millis(60), "{frame:?}");
}

#[test]
fn what_is_refused_is_said() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let mut window = bench.opened();
    press(&mut window, CTRL, Key::Z);
    window.get_by_label("Dismiss: Nothing to undo");
    press(&mut window, CTRL, Key::O);
    type_text(&mut window, "notes");
    press(&mut window, NONE, Key::Enter);
    window.get_by_label_contains("Give the whole path");
    press(&mut window, NONE, Key::Escape);
    press(&mut window, CTRL_SHIFT, Key::N);
    type_text(&mut window, "One");
    press(&mut window, NONE, Key::Enter);
    window.get_by_label_contains("A file with that name already exists");
    type_text(&mut window, " more");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the new note is shown", |window| path(window) == "One more.md");
    type_text(&mut window, "Hello");
    until(&mut window, "it is in the file", |_| {
        bench.notes().join("One more.md").exists() && bench.file("One more.md") == "Hello"
    });
}

#[test]
fn another_program_writes_and_the_caret_stays() {
    let bench = Bench::new(&[("Both.md", "first\n\nsecond\n")]);
    let mut window = bench.opened();
    click_label(&mut window, "second");
    press(&mut window, NONE, Key::Home);
    type_text(&mut window, "my ");
    until(&mut window, "it is in the file", |_| bench.file("Both.md") == "first\n\nmy second\n");
    std::fs::write(bench.notes().join("Both.md"), "the very first\n\nmy second\n").expect("the file can be written");
    until(&mut window, "it is in the note", |window| text(window).is_some_and(|text| text.starts_with("the very")));
    assert_eq!(with_caret(&window), "the very first\n\nmy |second\n");
    type_text(&mut window, "own ");
    assert_eq!(with_caret(&window), "the very first\n\nmy own |second\n");
}

/// A note's text, keys, and the text afterwards; `|` is the caret.
type Case = (&'static str, &'static [(Modifiers, Key)], &'static str);

fn check(window: &mut Driven, number: usize, before: &str, keys: &[(Modifiers, Key)], after: &str) {
    let caret = before.find('|').expect("a caret");
    let volume = session(window).volumes().next().expect("a volume").id;
    let name = format!("Case {number}");
    let plain = before.replace('|', "");
    window.state_mut().send_command(Command::NewNote { volume, path: name.clone(), text: plain.clone() });
    let note = session(window).volume(volume).expect("the volume").files[&format!("{name}.md")].id;
    window.state_mut().show(note);
    window.run();
    assert_eq!(text(window).as_deref(), Some(plain.as_str()));
    window.state_mut().place_caret(caret);
    window.run();
    for (modifiers, key) in keys {
        press(window, *modifiers, *key);
    }
    assert_eq!(with_caret(window), after, "case {number}: {before:?} {keys:?}");
}

#[test]
fn keys_at_the_edges_of_rows() {
    let bench = Bench::new(&[("A.md", "\n")]);
    let mut window = bench.opened();
    let cases: &[Case] = &[
        // Enter
        ("on|e", &[(NONE, Key::Enter)], "on\n|e"),
        ("one|\n\ntwo\n", &[(NONE, Key::Enter)], "one\n|\n\ntwo\n"),
        ("one| two", &[(NONE, Key::Enter)], "one\n|two"),
        ("# one|\n", &[(NONE, Key::Enter)], "# one\n|\n"),
        ("- one|\n", &[(NONE, Key::Enter)], "- one\n- |\n"),
        ("- [x] one|\n", &[(NONE, Key::Enter)], "- [x] one\n- [ ] |\n"),
        ("3. one|\n", &[(NONE, Key::Enter)], "3. one\n4. |\n"),
        ("- one\n- |\n", &[(NONE, Key::Enter)], "- one\n\n|\n"),
        ("> one|\n", &[(NONE, Key::Enter)], "> one\n> |\n"),
        ("> one\n> |\n", &[(NONE, Key::Enter)], "> one\n\n|\n"),
        ("```js|", &[(NONE, Key::Enter)], "```js\n|\n```"),
        ("```python\nif x:|\n```\n", &[(NONE, Key::Enter)], "```python\nif x:\n    |\n```\n"),
        ("one|", &[(Modifiers::SHIFT, Key::Enter)], "one\n|"),
        // Backspace and Delete
        ("one\n\n|two\n", &[(NONE, Key::Backspace)], "one|two\n"),
        ("one\n\n|\n", &[(NONE, Key::Backspace)], "one|\n"),
        ("one\n\n|\n\ntwo", &[(NONE, Key::Backspace)], "one|\n\ntwo"),
        ("one|\n\ntwo\n", &[(NONE, Key::Delete)], "one|two\n"),
        ("- one\n- |two\n", &[(NONE, Key::Backspace)], "- one\n\n|two\n"),
        ("- one\n|- two\n", &[(NONE, Key::Backspace)], "- one|two\n"),
        ("- one\n  - |two\n", &[(NONE, Key::Backspace)], "- one\n- |two\n"),
        ("```python\n1\n```\n\n|two\n", &[(NONE, Key::Backspace)], "```python\n1|\n```\n\ntwo\n"),
        ("```python\n1\n```\n\n|", &[(NONE, Key::Backspace)], "```python\n1|\n```"),
        ("|one", &[(NONE, Key::Backspace)], "|one"),
        ("onä|", &[(NONE, Key::Backspace)], "on|"),
        // Arrow keys
        ("one|\n\ntwo\n", &[(NONE, Key::ArrowRight)], "one\n\n|two\n"),
        ("one\n\n|two\n", &[(NONE, Key::ArrowLeft)], "one|\n\ntwo\n"),
        ("on|e\n\ntwo\n", &[(NONE, Key::ArrowDown)], "one\n\ntw|o\n"),
        ("one\n\ntw|o\n", &[(NONE, Key::ArrowUp)], "on|e\n\ntwo\n"),
        ("one\n\nt|wo\n", &[(CTRL, Key::Home)], "|one\n\ntwo\n"),
        ("|one\n\n```python\n12\n```\n\nend\n", &[(NONE, Key::ArrowDown)], "one\n\n```python\n|12\n```\n\nend\n"),
        ("one\n\n```python\n|12\n```\n", &[(NONE, Key::ArrowLeft)], "one\n\n```python|\n12\n```\n"),
        // Tab
        ("- one\n- two|\n  - three\n", &[(NONE, Key::Tab)], "- one\n  - two|\n    - three\n"),
        ("- one\n  - two|\n", &[(Modifiers::SHIFT, Key::Tab)], "- one\n- two|\n"),
        ("```python\nx|\n```\n", &[(NONE, Key::Tab)], "```python\nx   |\n```\n"),
        // Windows line endings
        ("one\r\n\r\ntw|o\r\n", &[(NONE, Key::Enter)], "one\r\n\r\ntw\r\n|o\r\n"),
        ("one\r\n\r\n|two\r\n", &[(NONE, Key::Backspace)], "one|two\r\n"),
    ];
    for (number, (before, keys, after)) in cases.iter().enumerate() {
        check(&mut window, number, before, keys, after);
    }
}

#[test]
fn keys_behind_typed_text_see_it() {
    let bench = Bench::new(&[("A.md", "one\n")]);
    let mut window = bench.opened();
    window.state_mut().place_caret(3);
    window.run();
    // All events in one frame, as on a slow machine.
    let key = |key| egui::Event::Key { key, physical_key: None, pressed: true, repeat: false, modifiers: NONE };
    let letters = |text: &str| egui::Event::Text(text.to_owned());
    let events = vec![letters("x"), key(Key::Enter), letters("y"), key(Key::Backspace), letters("z"), key(Key::Enter)];
    window.input_mut().events.extend(events);
    window.step();
    window.run();
    assert_eq!(with_caret(&window), "onex\nz\n|\n");
}

#[test]
fn closing_waits_until_all_is_saved() {
    let bench = Bench::new(&[("A.md", "one\n")]);
    let mut window = bench.opened();
    window.state_mut().place_caret(3);
    window.run();
    let close = |window: &mut Driven| {
        let viewport = window.input_mut().viewports.entry(egui::ViewportId::ROOT).or_default();
        viewport.events.push(egui::ViewportEvent::Close);
    };
    let told = |window: &Driven, command: egui::ViewportCommand| {
        window.output().viewport_output[&egui::ViewportId::ROOT].commands.contains(&command)
    };
    // Typed and closed within two frames, so the text isn't in the file yet. If the machine paused in between, it may
    // be; then the test tries again.
    let mut typed = String::new();
    let waits = (0..10).any(|_| {
        typed.push_str(" more");
        window.event(egui::Event::Text(" more".to_owned()));
        window.step();
        close(&mut window);
        window.step();
        told(&window, egui::ViewportCommand::CancelClose)
    });
    assert!(waits, "it never waited");
    let begun = Instant::now();
    while !told(&window, egui::ViewportCommand::Close) {
        assert!(begun.elapsed() < Duration::from_secs(60), "the window closes once all is saved");
        std::thread::sleep(Duration::from_millis(10));
        // In its own time: it asks when the disk takes seconds.
        step_taking(&mut window, 0.01);
    }
    assert_eq!(bench.file("A.md"), format!("one{typed}\n"));
    close(&mut window);
    window.step();
    assert!(!told(&window, egui::ViewportCommand::CancelClose));
}

#[test]
fn links_and_the_outline_lead_there() {
    let long =
        format!("See [the other](Folder/Other%20note.md).\n\n{}## Far down\n\nHere.\n", "Words.\n\n".repeat(200));
    let bench = Bench::new(&[("A.md", long.as_str()), ("Folder/Other note.md", "The other.\n")]);
    let mut window = bench.opened();
    assert!(window.query_by_label("Here.").is_none());
    press(&mut window, CTRL_SHIFT, Key::B);
    window.get_by_role_and_label(Role::Link, "Far down").click();
    window.run();
    window.get_by_label("Here.");
    press(&mut window, NONE, Key::Home);
    let line = window.get_by_label("See the other.").rect();
    let link = egui::pos2(line.center().x, line.bottom() - 12.0);
    // The link is somewhere in the line, so the pointer moves along it until it hits the link.
    let mut x = line.left();
    while text(&window).as_deref() != Some("The other.\n") && x < line.right() {
        for pressed in [true, false] {
            let pos = egui::pos2(x, link.y);
            window.event(egui::Event::PointerMoved(pos));
            let button = egui::PointerButton::Primary;
            window.event(egui::Event::PointerButton { pos, button, pressed, modifiers: NONE });
        }
        window.run();
        std::thread::sleep(Duration::from_millis(20));
        press(&mut window, NONE, Key::Escape);
        x += 20.0;
    }
    until(&mut window, "the other note is shown", |window| text(window).as_deref() == Some("The other.\n"));
}

#[test]
fn long_output_is_folded() {
    let bench = Bench::new(&[("A.md", "```python\nfor n in range(100): print('line', n)\n```\n")]);
    let mut window = bench.opened();
    window.get_by_label("Run cell 1").click();
    until(&mut window, "it is done", |window| window.query_by_label("Show all 100 lines of cell 1").is_some());
    assert!(window.query_by_label_contains("line 23").is_some());
    assert!(window.query_by_label_contains("line 24").is_none());
    click_label(&mut window, "Show all 100 lines of cell 1");
    assert!(window.query_by_label_contains("line 99").is_some());
}

#[test]
fn text_and_clicks_of_one_frame_keep_their_order() {
    let bench = Bench::new(&[("A.md", "one\n\ntwo\n")]);
    let mut window = bench.opened();
    window.state_mut().place_caret(3);
    window.run();
    let pos = window.get_by_label("two").rect().center();
    let modifiers = NONE;
    let click = |pressed| egui::Event::PointerButton { pos, button: egui::PointerButton::Primary, pressed, modifiers };
    let key = Key::Backspace;
    // A slow machine delivers all events in one frame.
    window.input_mut().events.extend([
        egui::Event::Text("!".to_owned()),
        egui::Event::Key { key, physical_key: None, pressed: true, repeat: false, modifiers },
        egui::Event::Text("?".to_owned()),
        egui::Event::PointerMoved(pos),
        click(true),
        click(false),
        egui::Event::Text("2".to_owned()),
        egui::Event::Text(" ".to_owned()),
    ]);
    window.run();
    assert_eq!(with_caret(&window), "one?\n\ntwo2 |\n");
}

#[test]
fn a_click_above_the_caret_takes_it_there() {
    let bench = Bench::new(&[("A.md", "one\n\ntwo\n\nthree\n")]);
    let mut window = bench.opened();
    for (label, expected) in [("two", "one\n\ntwo|\n\nthree\n"), ("one", "one|\n\ntwo\n\nthree\n")] {
        let pos = window.get_by_label(label).rect().center();
        let (button, modifiers) = (egui::PointerButton::Primary, NONE);
        // A quick click, all events in one frame.
        window.input_mut().events.extend([
            egui::Event::PointerMoved(pos),
            egui::Event::PointerButton { pos, button, pressed: true, modifiers },
            egui::Event::PointerButton { pos, button, pressed: false, modifiers },
        ]);
        window.run();
        assert_eq!(with_caret(&window), expected);
    }
    type_text(&mut window, "!");
    assert_eq!(with_caret(&window), "one!|\n\ntwo\n\nthree\n");
}

/// The note in the screenshots, with a bit of everything.
const NOTE: &str = r#"# Rain on the roof

A quiet *morning* with **strong coffee**, `inline code`, a [link](Other.md), ~~a mistake~~ and enough words that the
line has to wrap somewhere near the right edge of the column.

## What to do

- [x] Put the kettle on
- [ ] Count the drops
- Bread
  - rye
  - wheat
- A longer item that goes on and on until it must wrap, because the column is not endless, and then some more

1. First
2. Second

> A notebook is a second memory, and like the first one it keeps best what is looked at again.

| berry | picked | kilograms |
|:------|:------:|----------:|
| raspberry | July | 4.2 |
| blackberry | August | 16.0 |

```python
def rain(days):  # a comment
    return sum(days) / len(days) if days else 0.0

rain([4, 2, 9])
```

```python
1 / 0
```

```sh
grep -rn "raspberry" .
```

---

### Smaller things

The end.[^1]

[^1]: A footnote is small.
"#;

/// Saves screenshots for people to look at, in the folder that [`pictures_folder`] names.
#[test]
fn pictures() {
    let Some(folder) = pictures_folder() else { return };
    let bench = Bench::new(&[("Rain.md", NOTE), ("Other.md", "# Other\n"), ("data.csv", "a,b"), ("Empty.md", "")]);
    let mut window = bench.opened();
    let picture = |window: &mut Driven, name: &str| picture(window, &folder, name);
    for theme in ["light", "dark"] {
        press(&mut window, CTRL_SHIFT, Key::L);
        window.get_by_label("Rain").click();
        window.run();
        until(&mut window, "the note is shown", |window| text(window).is_some_and(|text| text.starts_with("# Rain")));
        press(&mut window, NONE, Key::Home);
        picture(&mut window, &format!("{theme}-note"));
        let note = window.state().note().expect("a note is shown");
        window.state_mut().send_command(Command::RunAll { note });
        until(&mut window, "all cells have run", |window| {
            let note = session(window).note(note).expect("the note is open");
            note.cells().all(|cell| note.latest_execution(cell).is_some_and(|run| run.status.is_final()))
        });
        press(&mut window, NONE, Key::End);
        window.get_by_label_contains("def rain").click();
        window.run();
        picture(&mut window, &format!("{theme}-cells"));
        press(&mut window, CTRL, Key::Home);
        (0..10).for_each(|_| press(&mut window, NONE, Key::ArrowDown));
        picture(&mut window, &format!("{theme}-list"));
        press(&mut window, CTRL, Key::A);
        picture(&mut window, &format!("{theme}-all"));
        press(&mut window, NONE, Key::Escape);
        press(&mut window, CTRL_SHIFT, Key::P);
        type_text(&mut window, "run");
        picture(&mut window, &format!("{theme}-palette"));
        press(&mut window, NONE, Key::Escape);
        press(&mut window, CTRL_SHIFT, Key::B);
        picture(&mut window, &format!("{theme}-outline"));
        press(&mut window, CTRL_SHIFT, Key::B);
        press(&mut window, CTRL_SHIFT, Key::N);
        picture(&mut window, &format!("{theme}-new"));
        press(&mut window, NONE, Key::Escape);
        window.get_by_label("Empty").click();
        window.run();
        until(&mut window, "the note is shown", |window| text(window).as_deref() == Some(""));
        picture(&mut window, &format!("{theme}-empty"));
    }
}
