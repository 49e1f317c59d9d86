//! Traces that improve, through the program: rated, corrected by edits, compared, used in another version and rolled
//! back, learned again, and given to others with their versions.

use super::agents::{Said, house, model};
use super::follower::CSV;
use crate::program::House;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const DATA: [(&str, &str); 5] = [
    ("a.md", "# A\n"),
    ("data/2026-10.csv", CSV),
    ("data/2026-11.csv", CSV),
    ("data/2026-12.csv", CSV),
    ("data/2027-01.csv", CSV),
];

fn goal(name: &str, month: &str) -> String {
    format!("Write the report for {name} into reports/{month}.md")
}

/// A house that has learned to write a report, the name of the trace, and whether the model writes it in another way.
fn reporter() -> (House, String, Arc<AtomicBool>) {
    let is_other = Arc::new(AtomicBool::new(false));
    let other = Arc::clone(&is_other);
    let address = model(move |turn, body: &Value| -> Said {
        let messages = body["messages"].as_array().into_iter().flatten();
        let asked: String =
            messages.filter(|one| one["role"] == "user").map(|one| one["content"].to_string()).collect();
        let months = [("October 2026", "2026-10"), ("November 2026", "2026-11"), ("January 2027", "2027-01")];
        // The question comes before what was found for it.
        let places =
            months.into_iter().filter_map(|(name, month)| Some((asked.find(&goal(name, month))?, name, month)));
        let (_, name, month) = places.min().expect("it is asked for a month");
        match turn {
            0 => (String::new(), vec![("read_file", json!({"path": format!("data/{month}.csv")}))]),
            1 => {
                let line = if other.load(Ordering::SeqCst) { "All is in" } else { "See" };
                let content = format!("# {name}\n\n{line} data/{month}.csv\n");
                (
                    String::new(),
                    vec![("write_file", json!({"path": format!("reports/{month}.md"), "content": content}))],
                )
            }
            _ => ("It is written.".to_owned(), Vec::new()),
        }
    });
    let house = house(&address, &DATA);
    house.run(&["ask", &goal("October 2026", "2026-10")]).good();
    let known = house.run(&["traces", "--json"]).good().lines().remove(0);
    let name = known["path"].as_str().and_then(|path| path.rsplit('/').next()).expect("a name");
    let name = name.trim_end_matches(".md").to_owned();
    (house, name, is_other)
}

/// Replays the trace.
fn replay(house: &House, name: &str, month: &str) {
    house.run(&["ask", &goal(name, month), "--mode", "follower"]).good();
    assert_eq!(house.run(&["runs", "--json"]).good().lines()[0]["iteration"], json!(0), "no model is called");
}

fn report(house: &House, month: &str) -> String {
    String::from_utf8(house.read(&format!("notes/reports/{month}.md"))).expect("a text")
}

/// Number, standing and origin of each version.
fn versions(house: &House, name: &str) -> Vec<(u64, String, String)> {
    let lines = house.run(&["traces", "versions", name, "--json"]).good().lines();
    let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    lines
        .iter()
        .map(|line| (line["number"].as_u64().expect("a number"), text(line, "standing"), text(line, "reason")))
        .collect()
}

fn version(number: u64, standing: &str, reason: &str) -> (u64, String, String) {
    (number, standing.to_owned(), reason.to_owned())
}

#[test]
fn an_edit_is_proposed_compared_used_verified_and_rolled_back() {
    let (house, name, _) = reporter();
    assert_eq!(versions(&house, &name), [version(1, "in use", "learned")]);
    house.run(&["traces", "diff", &name]).refused(2, "no other version");
    replay(&house, "November 2026", "2026-11");
    house.write("notes/reports/2026-11.md", b"# Report: November 2026\n\nSee data/2026-11.csv\n");
    let listed = house.run(&["traces", "versions", &name]).good().text();
    assert!(listed.contains("2  proposed") && listed.contains("edited after run"), "{listed}");
    assert!(listed.contains("1  in use") && listed.contains("0 of 1 replays were good"), "{listed}");
    assert!(listed.contains(&format!("tracebook traces use {name} 2")), "{listed}");
    assert_eq!(house.run(&["traces", "--json"]).good().lines()[0]["proposed"], json!(2));
    let shown = house.run(&["traces", "show", &name]).good().text();
    assert!(shown.contains("was edited afterwards (a version with the text of reports/2026-11.md"), "{shown}");
    let diff = house.run(&["traces", "diff", &name]).good().text();
    assert!(diff.starts_with("--- version 1 (learned)\n+++ version 2 (edited after run "), "{diff}");
    assert!(diff.contains("-      # {month1:words}\n+      # Report: {month1:words}\n"), "{diff}");
    let back = house.run(&["traces", "diff", &name, "2", "1", "--json"]).good().json();
    assert_eq!((&back["older"], &back["newer"]), (&json!(2), &json!(1)), "{back}");
    // It isn't used by itself, whoever looks.
    replay(&house, "December 2026", "2026-12");
    assert_eq!(report(&house, "2026-12"), "# December 2026\n\nSee data/2026-12.csv\n");
    house.run(&["traces", "show", &name, "--pin"]).good();
    let used = house.run(&["traces", "use", &name, "2"]).good().text();
    assert!(used.contains("Version 2 is in use: 0 of 0 replays were good"), "{used}");
    assert_eq!(house.run(&["traces", "--json"]).good().lines()[0]["pinned"], json!(false), "a pin is for its steps");
    let checked = house.run(&["traces", "verify", &name]).good().text();
    assert!(checked.contains("does what 1 of 1 recorded runs did"), "{checked}");
    replay(&house, "January 2027", "2027-01");
    assert_eq!(report(&house, "2027-01"), "# Report: January 2027\n\nSee data/2027-01.csv\n");
    let checked = house.run(&["traces", "verify", &name]).good().text();
    assert!(checked.contains("does what 2 of 2 recorded runs did"), "{checked}");
    // Back to the first version, whose pin and counts hold again.
    let used = house.run(&["traces", "use", &name, "1"]).good().text();
    assert!(used.contains("Version 3 is in use, with the steps of version 1"), "{used}");
    let known = &house.run(&["traces", "--json"]).good().lines()[0];
    assert_eq!((&known["pinned"], &known["version"]), (&json!(true), &json!(3)), "{known}");
    assert_eq!((&known["usage_count"], &known["verified_count"]), (&json!(2), &json!(1)), "{known}");
    let all = [version(3, "in use", "rolled_back"), version(2, "earlier", "edited"), version(1, "earlier", "learned")];
    assert_eq!(versions(&house, &name), all);
    house.run(&["traces", "verify", &name]).good();
    house.run(&["traces", "use", &name, "3"]).refused(1, "in use already");
    house.run(&["traces", "use", &name, "7"]).refused(1, "no version 7");
    house.run(&["traces", "use", &name, "one"]).refused(2, "a version is a number");
    // Its versions go with it to others, without what runs here found and what the user thought of them.
    let library = house.run(&["traces", "export", &name]).good().text();
    assert!(
        library.contains("versions:") && !library.contains("last_run") && !library.contains("feedback"),
        "{library}"
    );
    let silent = model(|_, _: &Value| -> Said { ("I do nothing.".to_owned(), Vec::new()) });
    let copy = super::agents::house(&silent, &DATA);
    copy.write("library.yaml", library.as_bytes());
    copy.run(&["traces", "import", "library.yaml"]).good();
    assert_eq!(versions(&copy, &name)[0], version(3, "in use", "imported"));
    copy.run(&["traces", "use", &name, "2"]).good();
    replay(&copy, "January 2027", "2027-01");
    assert_eq!(report(&copy, "2027-01"), "# Report: January 2027\n\nSee data/2027-01.csv\n");
    // What comes for a goal that is known is only proposed.
    let known = copy.run(&["traces", "import", "library.yaml"]).code(0);
    assert!(known.err.contains("was left out") || known.err.contains("only proposed"), "{}", known.err);
    copy.write("other.yaml", library.replace("See data", "Look at data").as_bytes());
    let proposed = copy.run(&["traces", "import", "other.yaml"]).code(0).err;
    assert!(proposed.contains("only proposed as version"), "{proposed}");
    assert!(versions(&copy, &name).contains(&version(5, "proposed", "imported")), "{:?}", versions(&copy, &name));
}

#[test]
fn runs_and_traces_are_rated_and_ratings_are_taken_back() {
    let (house, name, _) = reporter();
    replay(&house, "November 2026", "2026-11");
    let rated = house.run(&["traces", "rate", "last", "good"]).good().text();
    assert!(rated.contains("is rated good: 2 of 2 replays and ratings were good, so 86 % sure"), "{rated}");
    let shown = house.run(&["traces", "show", &name]).good().text();
    assert!(shown.contains("was rated good."), "{shown}");
    let rated = house.run(&["traces", "rate", "last", "bad", "--json"]).good().json();
    assert_eq!((&rated["rating"], &rated["confidence"]), (&json!("bad"), &json!(0.4)), "{rated}");
    let rated = house.run(&["traces", "rate", "last", "none"]).good().text();
    assert!(rated.contains("isn't rated"), "{rated}");
    let known = &house.run(&["traces", "--json"]).good().lines()[0];
    assert_eq!((&known["verified_count"], &known["feedback"]), (&json!(1), &json!([])), "{known}");
    let rated = house.run(&["traces", "rate", &name, "bad"]).good().text();
    assert!(rated.contains("The trace is rated bad: 1 of 2 replays and ratings were good"), "{rated}");
    assert_eq!(house.run(&["traces", "--json"]).good().lines()[0]["feedback"][0]["rating"], json!("bad"));
    house.run(&["traces", "rate", &name, "none"]).good();
    house.run(&["traces", "rate", &name, "great"]).refused(2, "a rating is good, bad or none");
    house.run(&["traces", "rate", "ffffffff", "good"]).code(2);
    // Undone and rated bad, a replay is one bad replay.
    house.run(&["traces", "rate", "last", "bad"]).good();
    house.run(&["runs", "last", "--undo"]).good();
    let known = &house.run(&["traces", "--json"]).good().lines()[0];
    assert_eq!((&known["usage_count"], &known["verified_count"]), (&json!(1), &json!(0)), "{known}");
}

#[test]
fn a_run_is_learned_again_as_a_new_version() {
    let (house, name, is_other) = reporter();
    replay(&house, "November 2026", "2026-11");
    is_other.store(true, Ordering::SeqCst);
    house.run(&["ask", &goal("January 2027", "2027-01"), "--mode", "learner"]).good();
    assert_eq!(report(&house, "2027-01"), "# January 2027\n\nAll is in data/2027-01.csv\n");
    assert_eq!(versions(&house, &name), [version(2, "proposed", "relearned"), version(1, "in use", "learned")]);
    // The user wants just this.
    house.run(&["traces", "learn", "last"]).good();
    let all = versions(&house, &name);
    assert_eq!((all.len(), &all[0]), (2, &version(2, "in use", "relearned")));
    house.run(&["traces", "learn", "last"]).refused(1, "does the same already");
    house.run(&["traces", "verify", &name]).good();
    replay(&house, "December 2026", "2026-12");
    assert_eq!(report(&house, "2026-12"), "# December 2026\n\nAll is in data/2026-12.csv\n");
    // The file of an older program has no versions, and that of a newer one can be read by it: they are only more.
    let library = house.run(&["traces", "export", &name]).good().text();
    assert!(library.contains("steps:") && library.contains("versions:"), "{library}");
}
