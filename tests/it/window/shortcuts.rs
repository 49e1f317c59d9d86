//! Presses every key of every preset where its command applies, as a keyboard sends it, and checks that the command
//! runs: nothing on the way swallows it.

use super::*;
use engine::commands::{COMMANDS, CommandId};
use engine::keymap::{KeymapPreset, effective_keymap};
use engine::{Settings, Volume};

const NOTE: &str = "word word\n\n- [ ] task\n\n```python\n1\n```\n\n# Head\n\nbelow\n";

/// The place that has the keyboard focus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The note, in a mode where text is written.
    Note,
    /// The note, in a mode where letters are commands: Vim's normal mode, Jupyter's command mode.
    Commands,
    /// No control has the focus.
    Nothing,
    /// The file tree.
    Tree,
    /// A page that isn't a note.
    Page,
    /// The field of the find bar.
    Field,
}

/// Commands that only apply while editing a cell.
const IN_CELLS: &[CommandId] = &[CommandId::CellRun, CommandId::CellRunInsert, CommandId::CellSplit];

/// Commands that only apply in a collection.
const IN_COLLECTIONS: &[CommandId] = &[CommandId::CollectionNextView, CommandId::CollectionPreviousView];
const COLLECTION: &str = "views:\n  - type: table\n    name: First\n  - type: cards\n    name: Second\n";

/// The keys of the window's commands, with a preset's keymap.
fn bindings(preset: KeymapPreset) -> Vec<(CommandId, String)> {
    let map = effective_keymap(&Settings { keymap_preset: preset, ..Settings::default() });
    let offered = COMMANDS.iter().filter(|command| command.window);
    offered.flat_map(|command| map[&command.id].iter().map(|key| (command.id, key.clone()))).collect()
}

/// A key as keyboards send it; some send it in more than one way.
fn sent(word: &str) -> Vec<(Key, Modifiers)> {
    let mut modifiers = NONE;
    let mut parts: Vec<&str> = word.split('+').collect();
    let name = parts.pop().expect("a key");
    for part in parts {
        modifiers |= match part {
            // On this system the command key is Ctrl.
            "Ctrl" => CTRL | Modifiers::CTRL,
            "Shift" => Modifiers::SHIFT,
            "Alt" => Modifiers::ALT,
            other => panic!("not a modifier: {other}"),
        };
    }
    match name {
        // With Shift on `=`, on a key of its own, and on the number pad.
        "Plus" => vec![(Key::Equals, modifiers), (Key::Plus, modifiers), (Key::Plus, modifiers | Modifiers::SHIFT)],
        "Backslash" if modifiers.shift => vec![(Key::Backslash, modifiers), (Key::Pipe, modifiers)],
        name => vec![(Key::from_name(name).unwrap_or_else(|| panic!("not a key: {name}")), modifiers)],
    }
}

/// Whether a command applies in a place.
fn applies(id: CommandId, preset: KeymapPreset, place: Place, key: Key, modifiers: Modifiers) -> bool {
    let writes = ["text.", "row.", "select.", "fold."].iter().any(|area| id.as_str().starts_with(area));
    let plain = modifiers.command && !modifiers.alt && !modifiers.shift;
    let vims = matches!(key, Key::A | Key::B | Key::D | Key::E | Key::F | Key::I | Key::O | Key::R | Key::U | Key::Y);
    if IN_COLLECTIONS.contains(&id) {
        return matches!(place, Place::Note);
    }
    match place {
        Place::Note => true,
        Place::Commands => match preset {
            // Vim uses these keys itself.
            KeymapPreset::Vim => !(plain && vims),
            // In Jupyter's command mode the caret is in a cell, where Enter doesn't belong to a paragraph.
            _ => true,
        },
        Place::Nothing => !IN_CELLS.contains(&id),
        Place::Tree => !writes && !IN_CELLS.contains(&id),
        Place::Page => !writes && !IN_CELLS.contains(&id),
        // A field has its own undo and redo.
        Place::Field => !writes && !IN_CELLS.contains(&id) && !matches!(id, CommandId::NoteUndo | CommandId::NoteRedo),
    }
}

/// Brings the window to a place where a command applies.
fn ready(window: &mut Driven, note: store::DocId, id: CommandId, preset: KeymapPreset, place: Place) {
    // Closes popups and cancels pending input.
    for _ in 0..3 {
        window.key_press_modifiers(NONE, Key::Escape);
    }
    window.state_mut().show(note);
    window.step();
    if text(window).is_none() {
        until(window, "the note is shown", |window| text(window).is_some());
    }
    if IN_COLLECTIONS.contains(&id) {
        let collection = session(window).volumes().next().expect("a volume").files["Views.base"].id;
        window.state_mut().show(collection);
        until(window, "the collection is shown", |window| window.query_by_label("First").is_some());
        return;
    }
    let now = text(window).expect("the note is shown");
    if now != NOTE {
        window.state_mut().send_command(Command::Edit { note, at: 0, delete: now.len(), insert: NOTE.to_owned() });
        window.step();
    }
    let cell = IN_CELLS.contains(&id) || (preset, place) == (KeymapPreset::Jupyter, Place::Commands);
    let at = if cell { NOTE.find("1\n").expect("a cell") } else { 2 };
    match place {
        Place::Note | Place::Commands | Place::Field => window.state_mut().place_carets(&[(at, at)]),
        Place::Nothing | Place::Tree | Place::Page => window.state_mut().place_carets(&[]),
    }
    window.step();
    match (preset, place) {
        (KeymapPreset::Vim, Place::Note) => window.event(egui::Event::Text("i".to_owned())),
        (KeymapPreset::Jupyter, Place::Commands) => window.key_press_modifiers(NONE, Key::Escape),
        (_, Place::Field) => window.key_press_modifiers(CTRL, Key::F),
        (_, Place::Tree) => {
            // The previous command may have folded the tree or shown another panel instead.
            if window.query_by_role_and_label(Role::TreeItem, "Other").is_none() {
                let ctx = window.ctx.clone();
                window.state_mut().perform_command(&ctx, CommandId::ViewFiles);
                window.step();
            }
            window.get_by_role_and_label(Role::TreeItem, "Other").focus();
        }
        (_, Place::Page) => window.key_press_modifiers(CTRL_SHIFT, Key::A),
        _ => return,
    }
    window.step();
}

/// Presses all keys of a preset in one window. Returns those that didn't run their command.
fn swallowed(preset: KeymapPreset, places: &[Place]) -> Vec<String> {
    let bench = Bench::new(&[("A.md", NOTE), ("Other.md", "other\n"), ("Views.base", COLLECTION)]);
    let mut window = bench.opened();
    // As small as possible while everything fits, since a frame's cost depends on what is drawn.
    window.set_size(egui::vec2(920.0, 500.0));
    choose_preset(&mut window, preset.name());
    until(&mut window, "the links are known", |window| session(window).volumes().all(Volume::is_indexed));
    let note = window.state().note().expect("a note is shown");
    let mut wrong = Vec::new();
    let mut all = bindings(preset);
    // These come last: opening the guide moves the notes in the tree, and quitting closes the window.
    let ends = |id: &CommandId| [CommandId::HelpOpen, CommandId::AppQuit].iter().position(|end| end == id);
    all.sort_by_key(|(id, _)| ends(id));
    for place in places {
        for (id, word) in all.iter().filter(|(id, _)| ends(id).is_none() || Some(place) == places.last()) {
            for (key, modifiers) in sent(word) {
                if !applies(*id, preset, *place, key, modifiers) {
                    continue;
                }
                ready(&mut window, note, *id, preset, *place);
                window.state_mut().take_ran();
                for pressed in [true, false] {
                    window.event(egui::Event::Key { key, physical_key: Some(key), pressed, repeat: false, modifiers });
                }
                window.step();
                let ran = window.state_mut().take_ran();
                if !ran.contains(id) {
                    wrong.push(format!("{preset:?}, {place:?}: {word} ({key:?}) for {id} ran {ran:?}"));
                }
                if id.as_str().starts_with("pane.") || *id == CommandId::TabNew {
                    let ctx = window.ctx.clone();
                    window.state_mut().perform_command(&ctx, CommandId::NoteClose);
                    window.step();
                }
            }
        }
    }
    wrong
}

fn check(preset: KeymapPreset, places: &[Place]) {
    let wrong = swallowed(preset, places);
    assert!(wrong.is_empty(), "{} keys:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_key_of_the_table_runs_its_command() {
    check(KeymapPreset::Tracebook, &[Place::Note, Place::Nothing, Place::Tree, Place::Page, Place::Field]);
}

#[test]
fn every_key_of_vs_code_runs_its_command() {
    check(KeymapPreset::VsCode, &[Place::Note]);
}

#[test]
fn every_key_of_obsidian_runs_its_command() {
    check(KeymapPreset::Obsidian, &[Place::Note]);
}

#[test]
fn every_key_beside_vims_runs_its_command() {
    check(KeymapPreset::Vim, &[Place::Commands, Place::Note]);
}

#[test]
fn every_key_beside_jupyters_runs_its_command() {
    check(KeymapPreset::Jupyter, &[Place::Commands, Place::Note]);
}

#[test]
fn ctrl_b_is_bold_and_ctrl_backslash_shows_the_tree() {
    let bench = Bench::new(&[("A.md", "word\n")]);
    let mut window = bench.opened();
    let tree = |window: &Driven| session(window).settings().left_open;
    window.state_mut().place_caret(2);
    window.run();
    press(&mut window, CTRL, Key::B);
    assert_eq!(text(&window).as_deref(), Some("**word**\n"), "without a selection, too");
    assert!(tree(&window));
    press(&mut window, CTRL, Key::Backslash);
    until(&mut window, "the tree is folded away", |window| !tree(window));
    choose_preset(&mut window, "VS Code");
    window.state_mut().place_caret(4);
    window.run();
    press(&mut window, CTRL, Key::B);
    until(&mut window, "the tree is there", |window| tree(window));
    assert_eq!(text(&window).as_deref(), Some("**word**\n"));
}
