//! The sample notes of a first start work as they say.

use crate::program::House;
use serde_json::json;

#[test]
fn the_samples_cells_run() {
    let house = House::new();
    house.run(&["init", "--sample"]).good();
    let listed = house.json(&["ls"]);
    let listed = listed.as_array().expect("an array");
    assert!(listed.iter().all(|row| row["volume"] == "Sample"));
    for row in listed.iter().filter(|row| row["kind"] == "note") {
        let path = row["path"].as_str().expect("a path");
        assert_eq!(house.cat(path), house.read(&format!("W/Sample/{path}")), "{path}");
    }
    for note in ["Welcome", "First cells", "Rainfall"] {
        let path = listed.iter().find(|row| row["path"].as_str().is_some_and(|path| path.contains(note)));
        let cells = path.expect("listed")["cells"].as_u64().expect("a number");
        let done = house.run(&["run", note, "--json"]).good();
        let ran = done.lines().iter().filter_map(|line| line["cell"].as_u64()).max();
        assert_eq!(ran, Some(cells), "{note}: its last cell says something");
        let kept = house.run(&["outputs", note, "--json"]).good().lines();
        assert_eq!(kept.len() as u64, cells, "{note}");
        assert!(kept.iter().all(|cell| cell["status"] == "ok" && cell["stale"] == json!(false)), "{note}");
    }
    let done = house.run(&["run", "When something goes wrong", "--cell", "1", "--json"]).code(1);
    assert_eq!(done.lines()[0]["ename"], "ZeroDivisionError");
    assert_eq!(house.run(&["links", "--broken"]).good().text(), "", "the sample's links lead to its notes");
    let welcome = house.json(&["links", "Welcome"]);
    let linked = welcome["outgoing"].as_array().expect("an array").len();
    assert_eq!(linked, listed.iter().filter(|row| row["kind"] == "note").count() - 1, "Welcome links to all others");
    let drawn = house.run(&["outputs", "Welcome", "--json"]).good().lines();
    assert!(drawn[0].to_string().contains("vnd.tracebook.figure"), "the first cell draws: {}", drawn[0]);
    // A changed cell's output is stale.
    let text = String::from_utf8(house.cat("Welcome")).expect("UTF-8");
    let at = text.find("date.today()").expect("the cell");
    house.edit("Welcome", at, 0, " ");
    assert_eq!(house.run(&["outputs", "Welcome", "--json"]).good().lines()[1]["stale"], json!(true));
}
