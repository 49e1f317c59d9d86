//! Lines of tool calls in the agent panel: their icons, and what a folded edit shows of its diff.

use super::agent::{ask, asked, ended, model, shows, soon};
use super::*;
use serde_json::json;

/// Returns the icon that is painted at the beginning of a line.
fn icon_of(window: &Driven, line: &str) -> Option<String> {
    let rect = window.get_by_label_contains(line).rect();
    window.output().shapes.iter().find_map(|clipped| match &clipped.shape {
        egui::Shape::Text(text) if rect.contains(text.pos) && text.pos.x < rect.left() + 20.0 => {
            Some(text.galley.text().to_owned())
        }
        _ => None,
    })
}

#[test]
fn a_folded_edit_shows_its_first_lines_and_tools_have_their_icons() {
    let (address, _) = model(|turn, _| {
        let new: String = (1..=12).map(|number| format!("- new {number}\n")).collect();
        let edit = json!({"path": "Talk.md", "old_content": "- one\n", "new_content": new});
        match turn {
            0 => (String::new(), vec![("read_file", json!({"path": "Talk.md"})), ("edit_file", edit)]),
            _ => ("It is changed.".to_owned(), Vec::new()),
        }
    });
    let bench = Bench::new(&[("Talk.md", "# Talk\n\n- one\n")]);
    let mut window = asked(&bench, &address);
    ask(&mut window, "Change it");
    soon(&mut window, "it has ended", ended);
    soon(&mut window, "the edit is shown", |window| shows(window, "edit_file  Talk.md"));
    let first = "-- one\n+- new 1\n+- new 2\n";
    soon(&mut window, "its first lines are shown", |window| shows(window, first) && shows(window, " more lines"));
    assert!(!shows(&mut window, "+- new 12"));
    assert_eq!(icon_of(&window, "edit_file  Talk.md").as_deref(), Some(ui::icons::PENCIL));
    assert_eq!(icon_of(&window, "read_file  Talk.md").as_deref(), Some(ui::icons::FILE_TEXT));
    window.get_by_label_contains("edit_file  Talk.md").click();
    window.run();
    assert!(shows(&mut window, first) && shows(&mut window, "+- new 12"), "all of it");
    assert!(!shows(&mut window, " more lines"), "instead of its first lines");
}
