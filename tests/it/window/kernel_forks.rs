//! Forks of a note's variables in the window: with the science pack's real kernel if it's installed, and what the
//! dialog offers otherwise.

use super::*;
use crate::line::states::science_pack;
use engine::commands::CommandId;
use std::path::Path;

const NOTE: &str = "---\nkernel: science\n---\n```python\nn = 1\nold = 'yes'\nsame = [1]\n```\n\n```python\nn = 2\n\
                    ```\n\n```python\nn = 30\nnew = 'no'\ndel old\n```\n";

/// Whether this process looks for the pack and for environments in `folder`. If not, the test with this name is run in
/// another process that does, since the environment variable applies to a whole process.
pub(super) fn runs_with_kernels(test: &str, folder: &Path) -> bool {
    crate::program::is_alone(test, |again| {
        again.env("TRACEBOOK_KERNELS", folder);
    })
}

/// Saves screenshots of a dialog in both themes. Dialogs capture the theme's keys, so the theme is changed by command.
pub(super) fn pictured_dialog(window: &mut Driven, name: &str) {
    let Some(folder) = pictures_folder() else { return };
    let ctx = window.ctx.clone();
    // The themes are system, light and dark.
    for _ in 0..3 {
        window.state_mut().perform_command(&ctx, CommandId::ViewTheme);
        window.run();
        let theme = if ctx.global_style().visuals.dark_mode { "dark" } else { "light" };
        picture(window, &folder, &format!("{theme}-{name}"));
    }
}

fn open_forks(window: &mut Driven) {
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::KernelForks);
    until(window, "the dialog", |window| window.query_by_role_and_label(Role::Heading, "Forks of variables").is_some());
}

pub(super) fn until_label(window: &mut Driven, label: &str) {
    until(window, label, |window| window.query_by_label(label).is_some());
}

pub(super) fn click(window: &mut Driven, label: &str) {
    click_label(window, label);
}

fn until_part(window: &mut Driven, label: &str) {
    until(window, label, |window| window.query_all_by_label_contains(label).next().is_some());
}

/// Runs a cell to its end.
fn run_cell(window: &mut Driven, number: usize) {
    let (note, cell) = {
        let note = session(window).note(window.state().note().expect("a note")).expect("open");
        (note.id, note.cells().nth(number - 1).expect("a cell"))
    };
    window.state_mut().send_command(Command::Run { note, cell });
    until(window, "the cell has run", |window| {
        let note = session(window).note(note).expect("open");
        note.latest_execution(cell).is_some_and(|run| run.status == store::ExecutionStatus::Ok)
            && note.kernel == engine::KernelPhase::Idle
    });
}

#[test]
fn forks_are_made_compared_adopted_and_discarded() {
    let Some(pack) = science_pack() else { return };
    if !runs_with_kernels("window::kernel_forks::forks_are_made_compared_adopted_and_discarded", &pack) {
        return;
    }
    let bench = Bench::new(&[("a.md", NOTE)]);
    let mut window = bench.opened();
    run_cell(&mut window, 1);
    run_cell(&mut window, 2);
    open_forks(&mut window);
    until_label(&mut window, "Fork main: current, after cell 2");
    assert!(window.query_by_label_contains("Switch to").is_none(), "there's no other one");
    // Using only the keyboard.
    type_text(&mut window, "try");
    press(&mut window, NONE, Key::Enter);
    until_label(&mut window, "Fork try: current, after cell 2");
    assert!(window.query_by_label("Cells run in try now.").is_some());
    assert!(window.query_by_label("Fork main: after cell 2").is_some());
    pictured_dialog(&mut window, "forks");
    type_text(&mut window, "main");
    click(&mut window, "Fork");
    until(&mut window, "it says why not", |window| window.query_by_label_contains("There is a fork").is_some());
    press(&mut window, NONE, Key::Escape);
    assert!(window.query_by_label("Forks of variables").is_none());

    run_cell(&mut window, 3);
    open_forks(&mut window);
    until_label(&mut window, "Fork try: current, after cell 3");
    click(&mut window, "Compare try with main");
    until_label(&mut window, "n in try: int 30");
    for shown in ["n in main: int 2", "Only in try", "Only in main", "new in try: str (2) 'no'", "same"] {
        assert!(window.query_by_label(shown).is_some(), "{shown}");
    }
    assert!(window.query_by_label_contains("old in main: str").is_some());
    pictured_dialog(&mut window, "compared-forks");
    click(&mut window, "Back");
    // Any two states can be compared, too.
    click(&mut window, "Compare states…");
    until_label(&mut window, "Different");
    assert!(window.query_by_label_contains("First state: After cell 2 (").is_some());
    pictured_dialog(&mut window, "compared-states");
    click(&mut window, "Back");

    click(&mut window, "Switch to main");
    until_label(&mut window, "Fork main: current, after cell 2");
    click(&mut window, "Adopt try: main takes its variables over");
    until_label(&mut window, "main continues with the variables of try.");
    until_label(&mut window, "Fork main: current, after cell 3");
    assert!(window.query_by_label_contains("Fork try").is_none());

    type_text(&mut window, "other");
    click(&mut window, "Fork");
    until_label(&mut window, "Fork other: current, after cell 3");
    click(&mut window, "Discard main");
    assert!(window.query_by_label_contains("deleted permanently").is_some());
    pictured_dialog(&mut window, "discard-fork");
    click(&mut window, "Keep");
    click(&mut window, "Discard main");
    click(&mut window, "Discard permanently");
    until_label(&mut window, "main is discarded.");
    until(&mut window, "it's gone", |window| window.query_by_label_contains("Fork main").is_none());
    assert!(window.query_by_label("Fork other: current, after cell 3").is_some());
}

#[test]
fn forks_say_what_they_need() {
    let bench = Bench::new(&[("a.md", "---\nkernel: science\nstate: off\n---\n```python\n1\n```\n"), ("b.md", "b\n")]);
    let mut window = bench.opened();
    open_forks(&mut window);
    assert!(window.query_by_label_contains("`state: off`").is_some());
    pictured_dialog(&mut window, "forks-off");
    click(&mut window, "Save variables");
    until_label(&mut window, "Fork main: current, no variables");
    assert!(text(&window).is_some_and(|text| !text.contains("state:")), "{:?}", text(&window));
    pictured_dialog(&mut window, "forks-none");
    press(&mut window, NONE, Key::Escape);

    let folder = host::science_pack::PackFolder::at(bench.folder.path().join("kernels/science"));
    let index = host::science_pack::PackIndex::at("http://127.0.0.1:9/simple");
    let pack = host::science_pack::SciencePack::new(folder, index, std::path::Path::new("/bin/false"));
    pack.wait_status();
    window.state_mut().use_science_pack(pack);
    let other = session(&window).volumes().next().expect("a volume").files["b.md"].id;
    window.state_mut().show(other);
    until(&mut window, "it's open", |window| text(window).as_deref() == Some("b\n"));
    open_forks(&mut window);
    pictured_dialog(&mut window, "forks-science");
    click(&mut window, "Use Science (98 MB download)");
    until_label(&mut window, "Install Science (98 MB download)");
}

#[test]
fn states_are_a_graph_to_go_back_in_and_to_fork_from() {
    let Some(pack) = science_pack() else { return };
    if !runs_with_kernels("window::kernel_forks::states_are_a_graph_to_go_back_in_and_to_fork_from", &pack) {
        return;
    }
    let bench = Bench::new(&[("a.md", NOTE)]);
    let mut window = bench.opened();
    run_cell(&mut window, 1);
    run_cell(&mut window, 2);
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::KernelStates);
    until_part(&mut window, "After cell 2, now: changes n");
    until_part(&mut window, "After cell 1: defines n, old, same");
    until_part(&mut window, " of 512.0 MB, all notes ");
    window.get_by_label_contains("After cell 1:").click();
    window.run();
    until_label(&mut window, "Variables are as they were before cell 2 ran.");
    until_part(&mut window, "After cell 1, now: ");
    // The fork continues with the state of its row, and the other line stays where it is.
    click(&mut window, "More about the state after cell 2");
    click(&mut window, "Fork from here…");
    type_text(&mut window, "try");
    press(&mut window, NONE, Key::Enter);
    until_label(&mut window, "Cells run in try now.");
    until_part(&mut window, "After cell 2, now: fork try; changes n");
    pictured_dialog(&mut window, "saved-states");
    click(&mut window, "Forks…");
    until_label(&mut window, "Fork try: current, after cell 2");
    assert!(window.query_by_label("Fork main: after cell 1").is_some());
}

/// Presses a key that moves the variables to another state, and waits until they're restored.
fn move_by_key(window: &mut Driven, modifiers: egui::Modifiers) {
    fn moves(window: &Driven) -> u64 {
        session(window).note(window.state().note().expect("a note")).expect("open").state_move().count
    }
    let before = moves(window);
    press(window, modifiers, Key::Z);
    until(window, "the variables are restored", |window| moves(window) > before);
}

/// What the latest run of a cell printed.
fn printed(window: &Driven, number: usize) -> String {
    let note = session(window).note(window.state().note().expect("a note")).expect("open");
    let run = note.cells().nth(number - 1).and_then(|cell| note.latest_execution(cell)).expect("a run");
    let texts = run.outputs.iter().map(|output| match &output.body {
        store::OutputBody::Stream { text, .. } => text.as_str(),
        _ => "",
    });
    texts.collect()
}

#[test]
fn runs_are_undone_and_redone_by_keys() {
    let Some(pack) = science_pack() else { return };
    if !runs_with_kernels("window::kernel_forks::runs_are_undone_and_redone_by_keys", &pack) {
        return;
    }
    let note = "---\nkernel: science\nfaithful: false\n---\n```python\nn = 1\n```\n\n```python\nn = 2\n```\n\n\
                ```python\nprint('n is', n)\n```\n";
    let bench = Bench::new(&[("a.md", note)]);
    let mut window = bench.opened();
    run_cell(&mut window, 1);
    run_cell(&mut window, 2);
    move_by_key(&mut window, CTRL_ALT);
    until_part(&mut window, "Variables are as they were before cell 2 ran.");
    move_by_key(&mut window, CTRL_ALT.plus(egui::Modifiers::SHIFT));
    run_cell(&mut window, 3);
    until(&mut window, "it has the redone value", |window| printed(window, 3) == "n is 2\n");
    // Back before the runs of cells 3 and 2.
    move_by_key(&mut window, CTRL_ALT);
    move_by_key(&mut window, CTRL_ALT);
    run_cell(&mut window, 3);
    until(&mut window, "it has the value before", |window| printed(window, 3) == "n is 1\n");
}

#[test]
fn cells_can_be_run_again_where_variables_were_lost() {
    let Some(pack) = science_pack() else { return };
    if !runs_with_kernels("window::kernel_forks::cells_can_be_run_again_where_variables_were_lost", &pack) {
        return;
    }
    let note = "---\nkernel: science\n---\n```python\nn = 1\nprint('first')\n```\n\n```python\nprint('second')\n```\n";
    let bench = Bench::new(&[("a.md", note)]);
    let mut window = bench.opened();
    run_cell(&mut window, 1);
    // Its variables are saved after its output.
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::KernelStates);
    until_part(&mut window, "After cell 1, now: ");
    press(&mut window, NONE, Key::Escape);
    until(&mut window, "all is saved", |window| session(window).is_saved());
    window.into_state().close().expect("all is saved");
    let states = bench.folder.path().join("workspace/states");
    let note = std::fs::read_dir(&states).expect("states").flatten().next().expect("one note").path();
    for segment in std::fs::read_dir(note.join("segments")).expect("segments").flatten() {
        let mut bytes = std::fs::read(segment.path()).expect("read");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(segment.path(), bytes).expect("damaged");
    }
    let mut window = bench.window();
    until(&mut window, "the note is shown", |window| text(window).is_some());
    run_cell(&mut window, 2);
    let again = "Run all cells again, since cell 2 began without variables";
    until_label(&mut window, again);
    assert!(window.query_by_label("Saved states before cell 2").is_some());
    click(&mut window, again);
    assert!(window.state_mut().take_ran().contains(&CommandId::NoteRunAll));
    until(&mut window, "cell 2 has its variables", |window| {
        window.query_by_label(again).is_none() && printed(window, 2) == "second\n"
    });
}

#[test]
fn sharing_variables_says_what_it_needs() {
    let bench = Bench::new(&[("a.md", "---\nkernel: science\n---\n```python\n1\n```\n")]);
    let mut window = bench.opened();
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::KernelShare);
    let switch = "Share variables with my devices";
    until(&mut window, switch, |window| window.query_by_role_and_label(Role::Switch, switch).is_some());
    assert!(window.query_by_label_contains("up to 512 MB").is_some(), "it says what is sent");
    pictured_dialog(&mut window, "share-variables");
    window.get_by_role_and_label(Role::Switch, switch).click();
    until_part(&mut window, "volume isn't shared with other devices; share that first");
    click(&mut window, "Continue with the variables of another device");
    until_part(&mut window, "No other device shares this note's variables.");
    click(&mut window, "All states…");
    until_part(&mut window, "No saved states yet");
}
