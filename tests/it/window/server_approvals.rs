//! What other programs ask, in the window: shown with its change wherever the window shows what waits, and decided
//! there.

use super::agent::{shows, soon};
use super::*;

use crate::line::grpc::ask_for_approval;
use crate::line::mcp_server::{Client, notes};
use crate::program::House;
use egui_kittest::Harness;
use host::socket::{self, SocketRequest};
use serde_json::json;
use std::io;
use window::AppWindow;

/// Opens the window on a house's workspace. As the program does, it asks a server that has the workspace to give it up.
fn window_on(house: &House) -> Driven {
    let begun = Instant::now();
    let driver = loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "the server doesn't give up the workspace");
        let options = host::WorkspaceOptions { program: program(), create: false };
        match host::open_workspace(&house.path("W"), options) {
            Ok(driver) => break driver,
            Err(host::OpenError::Owned { socket, .. }) => {
                let request = SocketRequest { words: Vec::new(), folder: PathBuf::from("/"), terminal: false };
                if let Some(socket) = socket {
                    // An owner that ends meanwhile gives it up, too.
                    let _ = socket::exchange(&socket, &request, &[], &mut io::sink(), &mut io::sink());
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            Err(why) => panic!("{why}"),
        }
    };
    let mut harness = Harness::builder()
        .with_size(egui::vec2(1280.0, 800.0))
        .with_max_steps(20_000)
        .allow_missing_glyphs()
        .build_eframe(move |creation| AppWindow::new(&creation.egui_ctx, driver));
    harness.run_steps(3);
    harness
}

/// Shows the agent panel through the status bar, which says that something waits.
fn show_waiting(window: &mut Driven) {
    soon(window, "the status bar tells", |window| window.query_by_label("1 approval waiting").is_some());
    window.get_by_label("1 approval waiting").click_accesskit();
    soon(window, "its card is shown", |window| shows(window, "A program waits"));
}

fn gone(window: &mut Driven) {
    soon(window, "nothing waits", |window| {
        window.query_by_label("1 approval waiting").is_none() && !shows(window, "A program waits")
    });
}

#[test]
fn a_write_of_a_program_is_shown_with_its_change_and_denied() {
    let house = notes();
    let before = house.read("notes/Boat.md");
    let mut client = Client::new(&house, &["--allow-write=ask"]);
    let edit = json!({"note": "Boat.md", "old_text": "12 volts", "new_text": "24 volts"});
    let id = client.begin("tools/call", json!({"name": "edit_note", "arguments": edit}));
    let folder = house.path("W/program-approvals");
    let is_waiting = || {
        let mut names = std::fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok);
        names.any(|entry| entry.path().extension().is_some_and(|ending| ending == "json"))
    };
    crate::program::until("the write waits", is_waiting);
    let mut window = window_on(&house);
    show_waiting(&mut window);
    window.get_by_label("A program waits: t: Edit Boat.md in notes");
    assert!(shows(&mut window, "+The solar panel gives 24 volts."), "the change is shown");
    assert!(shows(&mut window, "-The solar panel gives 12 volts."), "and what it replaces");
    assert!(shows(&mut window, "Writes of t wait for your approval."), "and why it's asked");
    pictured_card(&mut window);
    window.get_by_label("Deny").click_accesskit();
    window.run_steps(3);
    gone(&mut window);
    let why = client.refusal(id);
    assert!(why.contains("the user denied this"), "{why}");
    window.into_state().close().expect("all is saved");
    client.end();
    assert_eq!(house.read("notes/Boat.md"), before);
}

/// A screenshot, if one is wanted.
fn pictured_card(window: &mut Driven) {
    if let Some(folder) = pictures_folder() {
        picture(window, &folder, "program-approval");
    }
}

#[test]
fn a_request_over_grpc_is_approved_in_the_window() {
    let house = notes();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| ask_for_approval(&house, "deploy-1", "Deploy it"));
        let mut window = window_on(&house);
        show_waiting(&mut window);
        window.get_by_label("A program waits: ops: Deploy it");
        assert!(shows(&mut window, "target: production"));
        window.get_by_label("Approve").click_accesskit();
        window.run_steps(3);
        gone(&mut window);
        assert!(asked.join().expect("an answer"), "it's approved");
        window.into_state().close().expect("all is saved");
    });
}
