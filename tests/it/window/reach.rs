//! Accessibility without a mouse or without sight: every control has a name and a role, Tab reaches everything, and the
//! focused control is marked.

use super::*;
use egui::accesskit::Action;
use egui_kittest::kittest::NodeT;
use engine::commands::CommandId;

const RAIN: &str = "---\ntags: [wet]\n---\n# Rain\n\nSome [[Other|words]] about rain.\n\n- [ ] a task\n\n\
                    | a | b |\n| - | - |\n| 1 | 2 |\n\n```python\n1+1\n```\n\n## Below\n\nmore ![[Other]]\n";
const BOOKS: &str = "views:\n  - type: table\n    name: First\n    order:\n      - file.name\n      - tags\n  \
                     - type: cards\n    name: Second\n";

/// The usable controls: role, name and position.
fn usable(window: &Driven) -> Vec<(Role, String, egui::Rect)> {
    let all = window.root().children_recursive().filter(|node| {
        let data = node.accesskit_node();
        let data = data.data();
        // Scroll bars are the UI toolkit's own and have a role of their own.
        data.role() != Role::ScrollBar
            && !data.is_hidden()
            && (data.supports_action(Action::Click) || data.supports_action(Action::SetValue))
    });
    let name = |node: &egui_kittest::Node<'_>| {
        let node = node.accesskit_node();
        node.label().or_else(|| node.value()).unwrap_or_default()
    };
    all.map(|node| (node.accesskit_node().role(), name(&node), node.rect())).collect()
}

fn focused(window: &Driven) -> Option<(Role, String, egui::Rect)> {
    let node = window.root().children_recursive().find(|node| node.accesskit_node().is_focused())?;
    let label = node.accesskit_node().label().or_else(|| node.accesskit_node().value());
    Some((node.accesskit_node().role(), label.unwrap_or_default(), node.rect()))
}

/// Shows the screen that this command opens.
fn go(window: &mut Driven, command: CommandId) {
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, command);
    window.run_steps(6);
}

/// The commands that show each screen.
const SCREENS: &[CommandId] = &[
    CommandId::ViewRight,
    CommandId::NoteHistory,
    CommandId::NoteWriters,
    CommandId::ViewAgenda,
    CommandId::ViewTrash,
    CommandId::ViewSourceControl,
    CommandId::ViewGraph,
    CommandId::ViewLinks,
    CommandId::ViewBroken,
    CommandId::ViewMemory,
    CommandId::ViewTraces,
    CommandId::ViewBudget,
    CommandId::ViewSchedule,
    CommandId::ViewAgents,
    CommandId::ViewPlans,
    CommandId::ViewForks,
    CommandId::ViewPackages,
    CommandId::SyncStatus,
    CommandId::SyncMerges,
    CommandId::SyncLog,
    CommandId::AppWelcome,
    // With the card that connects a model.
    CommandId::AgentOpen,
    CommandId::FindReplace,
    CommandId::AppSettings,
    CommandId::AppKeys,
    CommandId::PaletteOpen,
    CommandId::SwitcherOpen,
    CommandId::CollectionOpen,
    CommandId::SearchOpen,
    CommandId::SearchPanel,
    CommandId::SearchReplace,
    CommandId::ViewTags,
    CommandId::NoteNew,
    CommandId::FolderOpen,
    CommandId::NoteRename,
    CommandId::ExportHtml,
];

/// The sections of the settings.
pub(super) const SETTINGS_SECTIONS: &[&str] = &[
    "Appearance",
    "Window and tree",
    "Editor",
    "Notes and files",
    "Volumes",
    "Spelling",
    "Search",
    "Agents and models",
    "Devices",
    "Other programs",
    "Keyboard shortcuts",
];

fn opened() -> (Bench, Driven) {
    let bench = Bench::new(&[("Rain.md", RAIN), ("Other.md", "[[Rain]] [[Nowhere]]\n"), ("Books.base", BOOKS)]);
    let mut window = bench.opened();
    until(&mut window, "the links are known", |window| session(window).volumes().all(engine::Volume::is_indexed));
    let rain = session(&window).volumes().next().expect("a volume").files["Rain.md"].id;
    window.state_mut().show(rain);
    until(&mut window, "the note is shown", |window| text(window).is_some_and(|text| text == RAIN));
    (bench, window)
}

fn nameless(window: &Driven, screen: &str) -> Vec<String> {
    let bad = |(role, name, _): &(Role, String, egui::Rect)| {
        name.trim().is_empty() || matches!(role, Role::Unknown | Role::GenericContainer)
    };
    let found = usable(window);
    assert!(!found.is_empty(), "{screen} has nothing to use");
    let found = found.into_iter().filter(bad);
    found.map(|(role, name, rect)| format!("{screen}: {role:?} “{name}” at {rect:?}")).collect()
}

#[test]
fn everything_that_can_be_used_has_a_name_and_a_role() {
    let (_bench, mut window) = opened();
    let mut bad = nameless(&window, "the note");
    window.state_mut().place_caret(RAIN.find("about").expect("a word"));
    window.run();
    bad.extend(nameless(&window, "the note with its caret"));
    for screen in SCREENS {
        go(&mut window, *screen);
        bad.extend(nameless(&window, screen.as_str()));
        press(&mut window, NONE, Key::Escape);
    }
    go(&mut window, CommandId::AppSettings);
    for section in SETTINGS_SECTIONS {
        window.get_by_role_and_label(Role::Tab, section).click();
        window.run_steps(6);
        bad.extend(nameless(&window, section));
    }
    press(&mut window, NONE, Key::Escape);
    let books = session(&window).volumes().next().expect("a volume").files["Books.base"].id;
    window.state_mut().show(books);
    until(&mut window, "the table is shown", |window| window.query_by_label("First").is_some());
    bad.extend(nameless(&window, "a table"));
    go(&mut window, CommandId::CollectionNextView);
    bad.extend(nameless(&window, "cards"));
    let volume = session(&window).volumes().next().expect("a volume").id;
    window.state_mut().send_command(Command::CloseVolume { volume });
    until(&mut window, "there is no volume", |window| session(window).volumes().next().is_none());
    bad.extend(nameless(&window, "the empty window"));
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Whether something is painted around a control in the color of the focus.
fn ringed(window: &Driven, rect: egui::Rect) -> bool {
    let light = ui::theme::LIGHT;
    let accents = [light.accent, light.ink];
    let near = rect.expand(6.0);
    let is_ring = |shape: &egui::Shape| match shape {
        egui::Shape::Rect(shape) => {
            accents.contains(&shape.stroke.color) && shape.stroke.width >= 1.0 && near.contains_rect(shape.rect)
        }
        // The caret, or a line.
        egui::Shape::LineSegment { points, stroke } => {
            accents.contains(&stroke.color) && points.iter().all(|point| near.contains(*point))
        }
        _ => false,
    };
    fn any(shape: &egui::Shape, is: &dyn Fn(&egui::Shape) -> bool) -> bool {
        match shape {
            egui::Shape::Vec(shapes) => shapes.iter().any(|shape| any(shape, is)),
            shape => is(shape),
        }
    }
    window.output().shapes.iter().any(|clipped| any(&clipped.shape, &is_ring))
}

/// Presses Tab until the focus is back at the start. Returns the focused controls in order.
#[allow(clippy::cast_possible_truncation, reason = "points on a screen")]
fn round(window: &mut Driven) -> Vec<(Role, String)> {
    let (mut seen, mut places, mut dark) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..100 {
        window.key_press_modifiers(NONE, Key::Tab);
        window.run_steps(3);
        let Some((role, name, rect)) = focused(window) else { continue };
        // Two panes may show the same note, so the position is compared, too.
        let place = (rect.left().round() as i32, rect.top().round() as i32);
        if places.contains(&(role, name.clone(), place)) {
            break;
        }
        places.push((role, name.clone(), place));
        if !ringed(window, rect) {
            dark.push(format!("{role:?} “{name}” at {rect:?}"));
        }
        seen.push((role, name));
    }
    assert!(dark.is_empty(), "without a ring:\n{}", dark.join("\n"));
    seen
}

#[test]
fn tab_leads_everywhere_and_what_has_the_keyboard_is_marked() {
    let (_bench, mut window) = opened();
    go(&mut window, CommandId::PaneSplitRight);
    go(&mut window, CommandId::ViewRight);
    let seen = round(&mut window);
    let has = |role: Role, name: &str| seen.iter().any(|(own, label)| *own == role && label.contains(name));
    for (role, name) in [
        (Role::Button, "New note"),
        (Role::TreeItem, "Other"),
        (Role::Tab, "Rain"),
        (Role::Heading, "Below"),
        (Role::CheckBox, "a task"),
        (Role::Button, "Run cell 1"),
        (Role::RadioButton, "Panel: Links"),
        (Role::Button, "Settings"),
    ] {
        assert!(has(role, name), "{role:?} {name} in {seen:?}");
    }
}

#[test]
fn f6_leads_from_one_part_of_the_window_to_the_next() {
    let (_bench, mut window) = opened();
    go(&mut window, CommandId::ViewRight);
    window.state_mut().place_caret(RAIN.find("about").expect("a word"));
    window.run();
    let mut parts = Vec::new();
    let tree = window.get_by_role_and_label(Role::TreeItem, "Other").rect();
    for _ in 0..5 {
        press(&mut window, NONE, Key::F6);
        let (_, name, rect) = focused(&window).expect("something has the keyboard");
        let part = match rect.center() {
            at if at.y > 780.0 => "status bar",
            at if at.x < 48.0 => "rail",
            at if at.x < tree.right() + 8.0 => "left panel",
            at if at.x < 900.0 => "note",
            _ => "right panel",
        };
        parts.push(part);
        assert!(!name.is_empty() || part == "note", "{part} has a name");
    }
    assert_eq!(parts, ["right panel", "status bar", "rail", "left panel", "note"]);
    type_text(&mut window, "much ");
    let now = text(&window).unwrap_or_default();
    assert!(now.contains("much about rain"), "the caret is where it was: {now}");
    press(&mut window, Modifiers::SHIFT, Key::F6);
    let first = focused(&window).expect("the left panel has the keyboard");
    press(&mut window, NONE, Key::Tab);
    let next = focused(&window).expect("the next has it");
    press(&mut window, NONE, Key::F6);
    press(&mut window, Modifiers::SHIFT, Key::F6);
    assert_eq!(focused(&window).map(|it| it.1), Some(next.1), "a part remembers what had the keyboard");
    assert_ne!(first.2, next.2);
}

#[test]
fn f6_gives_the_note_the_keyboard_when_nothing_has_it() {
    let (_bench, mut window) = opened();
    assert!(focused(&window).is_none(), "{:?}", focused(&window));
    press(&mut window, NONE, Key::F6);
    press(&mut window, CTRL, Key::End);
    type_text(&mut window, "last words");
    let now = text(&window).unwrap_or_default();
    assert!(now.contains("last words"), "{now}");
}

#[test]
fn tab_stays_in_what_floats() {
    let (_bench, mut window) = opened();
    for screen in [CommandId::AppSettings, CommandId::NoteNewIn, CommandId::ExportHtml, CommandId::NoteRename] {
        go(&mut window, screen);
        let seen = round(&mut window);
        assert!(seen.len() > 1, "{screen}: {seen:?}");
        assert!(seen.iter().all(|(role, _)| !matches!(role, Role::TreeItem | Role::Heading)), "{screen}: {seen:?}");
        press(&mut window, NONE, Key::Escape);
    }
}

#[test]
fn what_has_the_keyboard_is_scrolled_into_sight() {
    let (_bench, mut window) = opened();
    window.set_size(egui::vec2(800.0, 600.0));
    go(&mut window, CommandId::AppSettings);
    window.get_by_role_and_label(Role::Tab, "Notes and files").click();
    window.run();
    let place = |window: &Driven, id| window.ctx.viewport(|view| view.prev_pass.widgets.get(id).copied());
    let (mut before, mut has_scrolled) = (Vec::new(), false);
    for _ in 0..60 {
        press(&mut window, NONE, Key::Tab);
        let Some(id) = window.ctx.memory(|memory| memory.focused()) else { continue };
        let (whole, seen) = place(&window, id).map(|it| (it.rect, it.interact_rect.expand(1.0))).expect("it's drawn");
        let is_in_sight = seen.top() <= whole.top() && whole.bottom() <= seen.bottom();
        assert!(is_in_sight, "{seen:?} of {whole:?}, {:?}", focused(&window));
        let has_moved = |(id, top): &(egui::Id, f32)| place(&window, *id).is_some_and(|it| it.rect.top() < top - 40.0);
        has_scrolled |= before.iter().any(has_moved);
        before.push((id, whole.top()));
    }
    assert!(has_scrolled, "all of the page was in sight from the start");
}

#[test]
fn a_dialog_that_is_higher_than_the_window_scrolls() {
    let (_bench, mut window) = opened();
    // What a screen of 1280 by 720 has at twice the size.
    window.set_size(egui::vec2(640.0, 360.0));
    go(&mut window, CommandId::KernelGrant);
    for button in ["Grant", "Cancel"] {
        let mut found = None;
        for _ in 0..8 {
            press(&mut window, NONE, Key::Tab);
            found = focused(&window).filter(|(_, name, _)| name == button);
            if found.is_some() {
                break;
            }
        }
        let (.., rect) = found.expect(button);
        assert!(window.ctx.content_rect().contains_rect(rect), "{button} is at {rect:?}");
    }
    press(&mut window, NONE, Key::Enter);
    assert!(window.query_by_label("Cell permissions").is_none(), "the button was pressed");
    // So do the sections of the settings.
    go(&mut window, CommandId::AppSettings);
    let is_last = |window: &Driven| focused(window).filter(|(_, name, _)| name == "Keyboard shortcuts");
    for _ in 0..20 {
        if is_last(&window).is_none() {
            press(&mut window, NONE, Key::Tab);
        }
    }
    let (.., rect) = is_last(&window).expect("the last section has the keyboard");
    assert!(window.ctx.content_rect().contains_rect(rect), "it's at {rect:?}");
    press(&mut window, NONE, Key::Enter);
    window.get_by_role_and_label(Role::Heading, "Keyboard shortcuts");
}

#[test]
fn the_edge_between_panes_has_a_name_and_moves_by_keys() {
    let (_bench, mut window) = opened();
    press(&mut window, CTRL | Modifiers::ALT, Key::Backslash);
    let tabs = |window: &Driven| {
        let mut lefts: Vec<f32> = window.query_all_by_role(Role::Tab).map(|tab| tab.rect().left()).collect();
        lefts.sort_by(f32::total_cmp);
        lefts
    };
    let before = tabs(&window);
    window.get_by_role_and_label(Role::Splitter, "Width of panes").focus();
    window.run();
    press(&mut window, NONE, Key::ArrowLeft);
    press(&mut window, NONE, Key::ArrowLeft);
    let after = tabs(&window);
    assert!(after[1] < before[1] - 40.0, "{before:?} {after:?}");
    assert!(nameless(&window, "two panes").is_empty(), "{:?}", nameless(&window, "two panes"));
}
