//! Instruction files of volumes (`AGENTS.md` and the like) on the command line, hostile ones included.

use super::agents::{house, model};
use crate::program::House;
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// A house whose model remembers what it was told last.
fn listening(files: &[(&str, &str)]) -> (House, Arc<Mutex<String>>) {
    let heard = Arc::new(Mutex::new(String::new()));
    let told = heard.clone();
    let address = model(move |_, body: &Value| {
        *told.lock().expect("heard") = body["messages"].to_string();
        ("Done.".to_owned(), Vec::new())
    });
    (house(&address, files), heard)
}

#[test]
fn a_volume_is_trusted_and_distrusted() {
    let (house, heard) = listening(&[
        ("a.md", "# A\n"),
        ("AGENTS.md", "Answer in verse.\n"),
        ("sub/b.md", "# B\n"),
        ("sub/AGENTS.md", "Answer in prose.\n"),
    ]);
    let said = || heard.lock().expect("heard").clone();
    let steps = house.run(&["ask", "Improve it", "--note", "a.md", "--json"]).good().text();
    assert!(steps.contains("you don't trust the volume notes"), "{steps}");
    assert!(!said().contains("verse"), "{}", said());
    let listed = house.run(&["volumes", "--json"]).good().json();
    assert_eq!((&listed[0]["name"], &listed[0]["trusted"]), (&"notes".into(), &false.into()));

    let done = house.run(&["volumes", "trust", "notes"]).good().text();
    assert!(done.contains("Agents follow AGENTS.md"), "{done}");
    assert!(house.run(&["volumes", "list"]).good().text().contains("trusted"));
    house.run(&["ask", "Improve it", "--note", "a.md"]).good();
    assert!(said().contains("The user trusts this volume") && said().contains("Answer in verse."), "{}", said());
    let steps = house.run(&["ask", "Improve it", "--note", "sub/b.md", "--json"]).good().text();
    assert!(said().contains("Answer in prose.") && !said().contains("Answer in verse."), "{}", said());
    assert!(steps.contains("Follows the instructions of notes/sub/AGENTS.md."), "{steps}");

    let done = house.run(&["volumes", "distrust", "notes", "--json"]).good().json();
    assert_eq!(done["trusted"], false);
    house.run(&["ask", "Improve it", "--note", "a.md"]).good();
    assert!(!said().contains("verse"), "{}", said());
    for (wrong, why) in [
        (&["volumes", "fly"][..], "not “fly”"),
        (&["volumes", "trust"], "the volume"),
        (&["volumes", "trust", "nowhere"], "no volume “nowhere”"),
        (&["volumes", "trust", "system"], "System is read-only"),
        (&["volumes", "list", "nowhere"], "no volume “nowhere”"),
    ] {
        house.run(wrong).refused(2, why);
    }
}

#[cfg(unix)]
#[test]
fn hostile_instruction_files_reach_nothing_outside_and_stay_short() {
    let (house, heard) = listening(&[("a.md", "# A\n"), ("deep/c.md", "# C\n")]);
    house.write("outside/secret.md", b"The password is swordfish.\n");
    house.write("notes/SKILL.md", b"unreadable-skill \xff\xfe\x00\n");
    house.write("notes/deep/AGENTS.md", format!("Be brief.\n{}", "lorem ipsum ".repeat(400_000)).as_bytes());
    std::os::unix::fs::symlink("../outside/secret.md", house.path("notes/CLAUDE.md")).expect("linked");
    std::os::unix::fs::symlink("../outside/secret.md", house.path("notes/AGENTS.md")).expect("linked");
    house.run(&["open", "notes"]).good();
    house.run(&["volumes", "trust", "notes"]).good();
    let steps = house.run(&["ask", "Improve it", "--note", "deep/c.md", "--json"]).good().text();
    let said = heard.lock().expect("heard").clone();
    assert!(!said.contains("swordfish") && !steps.contains("swordfish"), "{steps}");
    assert!(said.contains("Be brief.") && said.len() < 100_000, "{}", said.len());
    assert!(!said.contains("unreadable-skill"), "what isn't text isn't given");
    assert!(steps.contains("Left out notes/SKILL.md"), "{steps}");
}

#[test]
fn an_agent_asks_before_it_writes_instructions() {
    let address = model(|turn, _| match turn {
        0 => {
            let content = serde_json::json!({"path": "AGENTS.md", "content": "Obey me.\n"});
            (String::new(), vec![("write_file", content)])
        }
        _ => ("Done.".to_owned(), Vec::new()),
    });
    let house = house(&address, &[("a.md", "# A\n")]);
    assert_eq!(house.fed(&["ask", "write it", "--no-wait"], b"").code, 1);
    assert!(house.run(&["approvals"]).good().text().contains("agents take it as instructions"));
    assert!(!house.path("notes/AGENTS.md").exists());
}
