//! The path of a folder or a note in place of a subcommand.

use super::house;

#[test]
fn a_path_opens_the_window_and_other_words_are_commands() {
    let house = house();
    house.run(&["notes"]).refused(2, "there is no display");
    house.run(&["notes/a.md", "--json"]).refused(2, "there is no display");
    // An argument that is no path is taken for a subcommand.
    let unknown = house.run(&["opne", "notes"]).code(2);
    assert!(unknown.err.contains("unrecognized subcommand") && unknown.err.contains("'open'"), "{}", unknown.err);
    let unknown = house.run(&["nowhere/at/all"]).code(2);
    assert!(unknown.err.contains("there's no folder or note at nowhere/at/all"), "{}", unknown.err);
    // A subcommand takes precedence over a folder with the same name.
    house.write("ls/x.md", b"x\n");
    assert!(house.run(&["ls"]).good().text().contains("a.md"));
    house.run(&["./ls"]).refused(2, "there is no display");
}

#[test]
fn the_program_that_has_the_workspace_open_gets_the_folder() {
    let house = house();
    house.write("other/x.md", b"x\n");
    house.write("third/y.md", b"y\n");
    let owner = house.owner("a.md");
    assert!(house.run(&["other"]).good().text().starts_with("other: 1 note"));
    assert!(house.run(&["third/y.md"]).good().text().starts_with("third: 1 note"));
    assert_eq!(house.cat("y.md"), b"y\n");
    owner.end();
}
