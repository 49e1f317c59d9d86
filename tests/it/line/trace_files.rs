//! Traces as files, through the program: verified against recorded runs, signed, looked at before they are imported,
//! and replayed on a copy of the project.

use super::agents::{Said, house, model};
use super::follower::{CSV, OCTOBER, learned};
use crate::program::{House, bytes};
use serde_json::{Value, json};

/// The folder of notes without what the program keeps beside them.
fn project(house: &House) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = bytes(&house.path("notes")).into_iter().collect();
    all.retain(|(path, _)| !path.contains("memory/"));
    all
}

#[test]
fn a_trace_does_what_its_runs_did_until_it_is_changed() {
    let (house, ..) = learned();
    let shown = house.run(&["traces", "verify"]).good().text();
    assert!(shown.contains("does what 1 of 1 recorded runs did"), "{shown}");
    // A replay is a recorded run, too.
    let november = "Count the lines of November 2026 into reports/2026-11.txt";
    house.run(&["ask", november, "--mode", "follower", "--approve", "shell"]).good();
    let shown = &house.run(&["traces", "verify", "--json"]).good().lines()[0];
    assert_eq!((&shown["equal"], &shown["differences"]), (&json!(2), &json!([])), "{shown}");
    // What someone else made of it does something else, and every run that did the same says so.
    let library = house.run(&["traces", "export"]).good().text();
    assert!(library.contains("wc -l"), "{library}");
    house.write("other.yaml", library.replace("wc -l", "wc -c").as_bytes());
    let name = house.run(&["traces", "--json"]).good().lines()[0]["path"].as_str().expect("a path").to_owned();
    house.run(&["traces", "forget", &name]).good();
    house.run(&["traces", "verify"]).good();
    house.run(&["traces", "import", "other.yaml"]).good();
    let shown = house.run(&["traces", "verify"]).code(1).text();
    assert!(shown.contains("does what 0 of 2 recorded runs did"), "{shown}");
    assert_eq!(shown.matches("step 2 gives shell another “command” than the run did").count(), 2, "{shown}");
    house.run(&["traces", "verify", "nothing"]).refused(2, "there is no trace “nothing”");
}

#[test]
fn a_library_is_signed_and_a_changed_one_is_refused() {
    let (house, ..) = learned();
    let library = house.run(&["traces", "export", "--signed"]).good().text();
    let name = house.run(&["traces", "--json"]).good().lines()[0]["path"].as_str().expect("a path").to_owned();
    house.run(&["traces", "forget", &name]).good();
    house.write("library.yaml", library.as_bytes());
    let shown = house.run(&["traces", "import", "library.yaml", "--preview"]).good().text();
    assert!(shown.contains("The file is signed by this device."), "{shown}");
    assert!(shown.contains(OCTOBER) && shown.contains("2 steps: read_file, shell"), "{shown}");
    assert!(shown.contains("Everything that it needs is here."), "{shown}");
    assert_eq!(house.run(&["traces", "--json"]).good().lines(), Vec::<Value>::new(), "a preview imports nothing");
    // Changed, cut, with something added, and with the key of another device.
    let other_key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    let key = library.lines().find_map(|line| line.strip_prefix("# signed-by: ")).expect("a key").to_owned();
    let cut = library.rfind("# signature").expect("a signature");
    let bad: [(String, i32, &str); 5] = [
        (library.replace("wc -l", "wc -c"), 1, "it was changed after it was signed"),
        (library.replace(&key, other_key), 1, "it was changed after it was signed"),
        (library.replace(&key, "no key"), 1, "names no device"),
        (library[..cut].to_owned(), 2, "its signature is not whole"),
        (format!("{library}---\ntype: trace\n---\nsteps: []\n"), 2, "something was added behind its signature"),
    ];
    for (text, code, about) in bad {
        house.write("bad.yaml", text.as_bytes());
        house.run(&["traces", "import", "bad.yaml"]).refused(code, about);
        assert_eq!(house.run(&["traces", "--json"]).good().lines(), Vec::<Value>::new());
    }
    let done = house.run(&["traces", "import", "library.yaml"]).code(0);
    assert!(done.err.contains("signed by this device"), "{}", done.err);
    // Without its signature it's a library like any other.
    let unsigned = library.split("# signed-by").next().expect("traces").to_owned();
    house.write("unsigned.yaml", unsigned.as_bytes());
    let done = house.run(&["traces", "import", "unsigned.yaml"]).code(0);
    assert!(!done.err.contains("signed by") && done.err.contains("was left out"), "{}", done.err);
    House::with(&[("a.md", "# A\n")]).run(&["traces", "export"]).refused(1, "there are no traces to export");
}

#[test]
fn a_replay_on_a_copy_of_the_project_leaves_what_the_run_left() {
    let (origin, ..) = learned();
    origin.write("library.yaml", origin.run(&["traces", "export", "--signed"]).good().text().as_bytes());
    let silent = model(|_, _: &Value| -> Said { ("I do nothing.".to_owned(), Vec::new()) });
    let copy = house(&silent, &[("a.md", "# A\n"), ("data/2026-10.csv", CSV), ("data/2026-11.csv", CSV)]);
    copy.write("library.yaml", &origin.read("library.yaml"));
    let shown = copy.run(&["traces", "import", "library.yaml", "--preview"]).good().text();
    assert!(shown.contains("which isn't paired with this one"), "{shown}");
    copy.run(&["traces", "import", "library.yaml"]).code(0);
    copy.run(&["ask", OCTOBER, "--mode", "follower", "--approve", "shell"]).good();
    assert_eq!(project(&copy), project(&origin));
    // In a project without the data, the difference is shown first.
    let other = house(&silent, &[("a.md", "# A\n")]);
    other.write("library.yaml", &origin.read("library.yaml"));
    let shown = other.run(&["traces", "import", "library.yaml", "--preview"]).good().text();
    assert!(shown.contains("data/2026-10.csv is not here"), "{shown}");
}
