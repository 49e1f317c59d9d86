//! Agents of other volumes through the program: listed with their volume, and called once the user trusts it.

use super::agents::{house, model};
use crate::program::House;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const POET: &str = "---\nname: poet\ndescription: Makes verses.\n---\nAnswer with a rhyme.\n";

/// A house with the volumes `notes` and `Garden`, whose model remembers what it was told last.
fn two_volumes() -> (House, Arc<Mutex<String>>) {
    let heard = Arc::new(Mutex::new(String::new()));
    let told = heard.clone();
    let address = model(move |_, body: &Value| {
        *told.lock().expect("heard") = body["messages"].to_string();
        ("Done.".to_owned(), Vec::new())
    });
    let house = house(&address, &[("a.md", "# A\n")]);
    house.write("Garden/components/agents/poet.md", POET.as_bytes());
    house.run(&["open", "Garden"]).good();
    (house, heard)
}

/// Asks in the volume `notes`. Returns what was printed, and the agent of the run.
fn ask(house: &House, text: &str) -> (String, String) {
    let said = house.run(&["ask", text, "--project", "notes", "--json"]).code(0).text();
    let runs = house.run(&["runs", "--json"]).good().lines();
    (said, runs[0]["agent"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn agents_of_other_volumes_are_listed_and_used_once_their_volume_is_trusted() {
    let (house, heard) = two_volumes();
    let listed = |name: &str| {
        let agents = house.run(&["tasks", "agents", "--project", "notes", "--json"]).good().lines();
        agents.into_iter().find(|agent| agent["name"] == name).unwrap_or_default()
    };
    let poet = listed("Garden/poet");
    assert_eq!((&poet["volume"], &poet["trusted"]), (&json!("Garden"), &json!(false)), "{poet}");
    assert_eq!((&poet["status"], &poet["description"]), (&json!("disabled"), &json!("Makes verses.")));
    let text = house.run(&["tasks", "agents", "--project", "notes"]).good().text();
    assert!(text.contains("Garden/poet  (another volume, not trusted)  Makes verses."), "{text}");
    for text in ["@Garden/poet praise the rain", "@poet praise the rain"] {
        let (said, agent) = ask(&house, text);
        assert!(said.contains("which you don't trust. To trust it: tracebook volumes trust Garden."), "{said}");
        assert_eq!(agent, "assistant");
    }
    let words = ["ask", "praise the rain", "--project", "notes", "--agent", "Garden/poet"];
    house.run(&words).refused(2, "tracebook volumes trust Garden");

    let done = house.run(&["volumes", "trust", "Garden"]).good().text();
    assert!(done.contains("Messages in other volumes can call its agents"), "{done}");
    let poet = listed("Garden/poet");
    assert_eq!((&poet["trusted"], &poet["status"]), (&json!(true), &json!("idle")));
    for text in ["@Garden/poet praise the rain", "@poet praise the rain", "@garden/POET praise the rain"] {
        assert_eq!(ask(&house, text).1, "Garden/poet", "{text}");
        let told = heard.lock().expect("heard").clone();
        assert!(told.contains("describes an agent, and you take its part") && told.contains("rhyme"), "{told}");
    }
    house.run(&words).code(0);
    // It's no other agent's helper unless the user names it.
    ask(&house, "praise the rain");
    assert!(!heard.lock().expect("heard").contains("Garden/poet"));

    house.run(&["volumes", "distrust", "Garden"]).good();
    assert_eq!(ask(&house, "@poet praise the rain").1, "assistant");
}

#[test]
fn a_name_that_two_volumes_use_needs_the_volume() {
    let (house, _) = two_volumes();
    house.write("Far/components/agents/poet.md", POET.as_bytes());
    house.run(&["open", "Far"]).good();
    for volume in ["Garden", "Far"] {
        house.run(&["volumes", "trust", volume]).good();
    }
    let (said, agent) = ask(&house, "@poet praise the rain");
    assert!(said.contains("could be @Far/poet or @Garden/poet. Write more of the name."), "{said}");
    assert_eq!(agent, "assistant");
    assert_eq!(ask(&house, "@Far/poet praise the rain").1, "Far/poet");
    // The volume's own agent has the name for itself, and its whole name works there, too.
    house.write("notes/components/agents/poet.md", POET.as_bytes());
    assert_eq!(ask(&house, "@poet praise the rain").1, "poet");
    assert_eq!(ask(&house, "@notes/poet praise the rain").1, "poet");
    assert_eq!(ask(&house, "@Garden/poet praise the rain").1, "Garden/poet");
}
