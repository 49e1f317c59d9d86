//! Nothing surprising: closing with running work asks, failures offer an action, safe mode starts nothing.

use super::agent::{ask, asked, model, run, soon};
use super::*;
use crate::faults::disks::{Mounted, ballast};
use engine::KernelPhase;
use engine::commands::CommandId;
use std::sync::mpsc::channel;

pub(super) fn close(window: &mut Driven) {
    let viewport = window.input_mut().viewports.entry(egui::ViewportId::ROOT).or_default();
    viewport.events.push(egui::ViewportEvent::Close);
    window.step();
}

fn is_told(window: &Driven, command: &egui::ViewportCommand) -> bool {
    window.output().viewport_output[&egui::ViewportId::ROOT].commands.contains(command)
}

fn is_busy(window: &Driven) -> bool {
    session(window).notes().any(|note| matches!(note.kernel, KernelPhase::Busy(_)))
}

fn shows(window: &Driven, label: &str) -> bool {
    window.query_all_by_label_contains(label).next().is_some()
}

/// Clicks a button, and steps frames until the window was told to close.
pub(super) fn click_and_close(window: &mut Driven, label: &str) {
    window.get_by_role_and_label(Role::Button, label).click();
    let begun = Instant::now();
    while !is_told(window, &egui::ViewportCommand::Close) {
        assert!(begun.elapsed() < Duration::from_secs(60), "the window is told to close");
        std::thread::sleep(Duration::from_millis(10));
        // In its own time: it asks when the disk takes seconds.
        step_taking(window, 0.01);
    }
    // The event loop then asks the window again.
    close(window);
}

#[test]
fn closing_with_a_running_cell_asks_once() {
    let bench = Bench::new(&[("Loop.md", "```python\nwhile True: pass\n```\n")]);
    let mut window = bench.opened();
    window.get_by_label("Run cell 1").click();
    until(&mut window, "it runs", |window| is_busy(window));
    close(&mut window);
    assert!(is_told(&window, &egui::ViewportCommand::CancelClose), "it stays open");
    window.run_steps(3);
    assert!(shows(&window, "A cell of Loop is running."));
    window.get_by_role_and_label(Role::Button, "Keep open").click();
    window.run_steps(4);
    assert!(window.query_by_label("Stop and close?").is_none() && is_busy(&window));
    close(&mut window);
    window.run_steps(3);
    click_and_close(&mut window, "Stop and close");
    soon(&mut window, "the cell has stopped", |window| !is_busy(window));
    assert!(window.query_by_label("Stop and close?").is_none(), "it asks no second time");
}

#[test]
fn closing_while_an_agent_works_stops_its_run() {
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let (address, go) = model(|_, _| ("I think ‖ so.".to_owned(), Vec::new()));
    let mut window = asked(&bench, &address);
    ask(&mut window, "What is this?");
    soon(&mut window, "it works", |window| session(window).agents().open_runs().any(engine::AgentRun::is_awake));
    close(&mut window);
    window.run_steps(3);
    assert!(shows(&window, "An agent is working."));
    click_and_close(&mut window, "Stop and close");
    soon(&mut window, "the run has stopped", |window| run(window).about.ending.is_some());
    drop(go);
}

#[test]
fn a_bug_report_is_written_and_its_folder_is_shown() {
    let bench = Bench::new(&[("One.md", "private words\n")]);
    let mut window = bench.opened();
    let (send, opened) = channel();
    window.state_mut().use_file_opener(std::sync::Arc::new(move |path| {
        send.send(path.to_owned())?;
        Ok(())
    }));
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::HelpReport);
    until(&mut window, "the report is there", |window| window.query_by_label("Bug report").is_some());
    window.get_by_role_and_label(Role::Button, "Show in folder").click();
    window.run();
    let folder = opened.recv_timeout(Duration::from_secs(60)).expect("the folder is opened");
    assert_eq!(folder, bench.folder.path().join("workspace/reports"));
    let files: Vec<_> = std::fs::read_dir(&folder).expect("a folder").flatten().map(|file| file.file_name()).collect();
    assert!(files.len() == 1 && files[0].to_string_lossy().ends_with(".tar.gz"), "{files:?}");
}

/// Leaves a crash report of a window that was open for this long.
fn crash(bench: &Bench, number: usize, seconds: usize) {
    let logs = bench.folder.path().join("workspace/logs");
    std::fs::create_dir_all(&logs).expect("a folder");
    let text = format!("Tracebook\nthread: main\nseconds since the window opened: {seconds}\n\nframes\n");
    std::fs::write(logs.join(format!("crash-000170000000{number}-77-1.txt")), text).expect("a file");
}

#[test]
fn a_crash_at_the_start_offers_safe_mode() {
    let bench = Bench::new(&[("Cells.md", "```python\n6 * 7\n```\n")]);
    let mut window = bench.opened();
    until(&mut window, "all is saved", |window| session(window).is_saved());
    window.into_state().close().expect("all is saved");
    crash(&bench, 1, 5);
    let mut window = bench.window();
    window.get_by_label("Tracebook crashed right after its last start");
    window.get_by_role_and_label(Role::Button, "Start in safe mode").click();
    window.run();
    assert!(window.state().note().is_none(), "no tab is restored");
    until(&mut window, "the tree", |window| window.query_by_role_and_label(Role::TreeItem, "Cells").is_some());
    assert!(shows(&window, "Safe mode: no cells"), "it says so");
    window.get_by_role_and_label(Role::TreeItem, "Cells").click();
    until(&mut window, "the note can be read", |window| text(window).is_some());
    window.get_by_label("Run cell 1").click();
    until(&mut window, "it is refused", |window| shows(window, "Dismiss: Safe mode starts no cells"));
    assert!(session(&window).notes().all(|note| note.kernel == KernelPhase::Off));
    window.into_state().close().expect("all is saved");
    // Otherwise it starts as usual.
    crash(&bench, 2, 5);
    let mut window = bench.window();
    window.get_by_role_and_label(Role::Button, "Start normally").click();
    until(&mut window, "the last note is there", |window| text(window).is_some());
    window.into_state().close().expect("all is saved");
    // A crash after an hour is no failed start.
    crash(&bench, 3, 3_600);
    let window = bench.window();
    assert!(window.query_by_label("Tracebook crashed right after its last start").is_none());
    assert!(shows(&window, "Tracebook crashed the last time it ran."));
    window.get_by_label("Report…");
}

#[test]
fn a_crashed_kernel_can_be_restarted_at_its_output() {
    let bench = Bench::new(&[("Cells.md", "```python\nimport os\nos._exit(7)\n```\n")]);
    let mut window = bench.opened();
    window.get_by_label("Run cell 1").click();
    until(&mut window, "it has crashed", |window| shows(window, "The kernel crashed."));
    window.get_by_label("Run cell 1 again");
    click_label(&mut window, "Restart kernel after the crash in cell 1");
    assert!(window.state_mut().take_ran().contains(&CommandId::KernelRestart));
}

#[test]
fn a_kernel_that_ends_between_cells_is_told_above_the_note() {
    let cell = "import os, threading, time\n\
                def leave():\n    while not os.path.exists('go'): time.sleep(0.01)\n    os._exit(7)\n\
                threading.Thread(target=leave, daemon=True).start()";
    let note = format!("```python\n{cell}\n```\n");
    let bench = Bench::new(&[("Cells.md", &note)]);
    let mut window = bench.opened();
    let go = bench.notes().join("go");
    let told = "The kernel's process ended";
    let is_idle = |window: &Driven| window.query_by_label("Python idle").is_some();
    let end = |window: &mut Driven| {
        std::fs::write(&go, "").expect("written");
        until(window, "it is told", |window| shows(window, told));
        std::fs::remove_file(&go).expect("removed");
    };
    window.get_by_label("Run cell 1").click();
    until(&mut window, "it has run", |window| is_idle(window));
    assert!(!shows(&window, told));
    end(&mut window);
    assert!(shows(&window, "Its variables are lost."));
    window.get_by_role_and_label(Role::Button, "Run all again").click();
    until(&mut window, "it has run again", |window| is_idle(window) && !shows(window, told));
    end(&mut window);
    window.get_by_role_and_label(Role::Button, "Dismiss").click();
    window.run();
    assert!(!shows(&window, told));
    // After a restart, there's nothing to tell.
    window.get_by_label("Run cell 1").click();
    until(&mut window, "it has run once more", |window| is_idle(window));
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::KernelRestart);
    until(&mut window, "the kernel is off", |window| window.query_by_label("Python off").is_some());
    assert!(!shows(&window, told));
}

#[test]
fn a_stopped_cell_can_be_run_again_at_its_output() {
    let bench = Bench::new(&[("Cells.md", "```python\nwhile True: pass\n```\n")]);
    let mut window = bench.opened();
    window.get_by_label("Run cell 1").click();
    until(&mut window, "it runs", |window| window.query_by_label("Python running").is_some());
    window.get_by_label("Stop cell 1").click();
    until(&mut window, "it says so", |window| shows(window, "Stopped before it was done."));
    assert!(window.query_by_label("Undo the stopped run of cell 1").is_none(), "Instant saves no variables");
    click_label(&mut window, "Run cell 1 again");
    assert!(window.state_mut().take_ran().contains(&CommandId::CellRun));
}

#[test]
fn a_cell_that_was_canceled_before_it_ran_is_not_called_stopped() {
    let bench = Bench::new(&[("Cells.md", "```python\n1 / 0\n```\n\n```python\n2\n```\n")]);
    let mut window = bench.opened();
    window.get_by_label("Run all cells").click();
    until(&mut window, "the second one isn't run", |window| shows(window, "Not run."));
    assert!(!shows(&window, "Stopped before it was done."));
    assert!(window.query_by_label("Run cell 2 again").is_none());
    window.get_by_label("Run cell 2").click();
    until(&mut window, "it has run", |window| !shows(window, "Not run."));
}

#[test]
fn a_note_that_cannot_be_written_offers_another_try() {
    let bench = Bench::new(&[("A.md", "one\n")]);
    let mut window = bench.opened();
    window.state_mut().place_caret(3);
    window.run();
    // A folder is in the file's place.
    let file = bench.notes().join("A.md");
    std::fs::remove_file(&file).expect("removed");
    std::fs::create_dir_all(file.join("inside")).expect("a folder");
    type_text(&mut window, " more");
    until(&mut window, "it is said", |window| shows(window, "Can't write A:"));
    std::fs::remove_dir_all(&file).expect("removed");
    assert!(window.query_all_by_role_and_label(Role::Button, "Open folder").next().is_some());
    window.get_by_role_and_label(Role::Button, "Try again").click();
    until(&mut window, "it is written", |_| std::fs::read_to_string(&file).is_ok_and(|text| text == "one more\n"));
    until(&mut window, "nothing is wrong", |window| !shows(window, "Can't write A:"));
}

#[test]
fn a_full_disk_is_told_above_the_note_and_loses_nothing() {
    let Some(small) = Mounted::small("32m") else { return };
    let bench = Bench::new(&[("A.md", "one\n"), ("B.md", "two\n")]);
    let workspace = small.path().join("workspace");
    let mut window = window_on(&workspace, |_| ());
    let (send, opened) = channel();
    window.state_mut().use_file_opener(std::sync::Arc::new(move |path| {
        send.send(path.to_owned())?;
        Ok(())
    }));
    window.state_mut().send_command(Command::OpenFolder { folder: bench.notes(), name: None });
    until(&mut window, "the first note is shown", |window| text(window).as_deref() == Some("one\n"));
    window.get_by_role_and_label(Role::TreeItem, "B").click_modifiers(CTRL);
    until(&mut window, "the other note is shown", |window| text(window).as_deref() == Some("two\n"));
    let other = window.state().note().expect("a note");
    press(&mut window, CTRL, Key::Tab);
    until(&mut window, "all is saved", |window| path(window) == "A.md" && session(window).is_saved());
    let ballast = ballast(small.path());
    // The database has some room in its own files until it needs more of the disk.
    for count in 0.. {
        assert!(count < 1_000, "the disk never fills up");
        let insert = format!("{} ", "w".repeat(20_000));
        window.state_mut().send_command(Command::Edit { note: other, at: 0, delete: 0, insert });
        until(&mut window, "it is saved, or it is said", |window| {
            session(window).is_saved() || shows(window, "Can't save: the disk is full")
        });
        if shows(&window, "Can't save: the disk is full") {
            break;
        }
    }
    assert!(shows(&window, "Not saved: the disk is full"), "the status bar says so, too");
    window.state_mut().place_caret(3);
    window.run();
    type_text(&mut window, " more");
    assert_eq!(text(&window).as_deref(), Some("one more\n"), "one can continue to write");
    // The tree has a button of this name, too, further to the left.
    let buttons = window.get_all_by_role_and_label(Role::Button, "Open folder");
    buttons.max_by(|a, b| a.rect().left().total_cmp(&b.rect().left())).expect("the banner's button").click();
    window.run();
    assert_eq!(opened.recv_timeout(Duration::from_secs(60)).expect("the folder is opened"), workspace);
    window.state_mut().take_ran();
    window.get_by_role_and_label(Role::Button, "Try again").click();
    window.run();
    assert!(window.state_mut().take_ran().contains(&CommandId::NoteSave));
    assert!(shows(&window, "Can't save: the disk is full"), "it still is");
    std::fs::remove_file(ballast).expect("removed");
    until(&mut window, "all is saved", |window| session(window).is_saved() && !shows(window, "Can't save:"));
    assert_eq!(bench.file("A.md"), "one more\n");
    assert!(bench.file("B.md").ends_with("w two\n"));
    window.into_state().close().expect("all is saved");
}

#[test]
fn cleared_lists_can_be_restored() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let mut window = bench.opened();
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::NoteStar);
    window.run();
    click_label(&mut window, "Settings");
    window.get_by_role_and_label(Role::Tab, "Window and tree").click();
    window.run();
    let stars = |window: &Driven| session(window).settings().starred.len();
    for (label, count) in [("Remove all stars", 0), ("Restore stars", 1)] {
        // The row may be below the visible area.
        window.get_by_role_and_label(Role::Button, label).click_accesskit();
        window.run();
        assert_eq!(stars(&window), count, "{label}");
    }
    assert!(window.query_by_label("Restore stars").is_none());
}
