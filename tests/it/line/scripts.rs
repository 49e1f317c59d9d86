//! Scripts on the command line: `.py` files are run, shown and found unchanged.

use crate::program::House;

#[test]
fn a_script_is_one_cell_and_stays_as_it_is() {
    let text = "#!/usr/bin/env python3\n# timeout=1\n\n\ndef twice(x):\n\n    return x * 2\n\n```\ntwice(21)";
    let house = House::with(&[("a.md", "# A\n"), ("work.py", &text.replace("```\n", ""))]);
    assert_eq!(house.run(&["run", "work.py"]).good().text(), "42\n");
    assert_eq!(house.run(&["cat", "work.py"]).good().text(), text.replace("```\n", ""));
    assert!(house.run(&["outputs", "work.py"]).good().text().contains("42"));
    assert_eq!(house.read("notes/work.py"), text.replace("```\n", "").as_bytes(), "nothing was written");
    let found = house.run(&["search", "twice in:code", "--json"]).good().text();
    assert!(found.contains("work.py"), "{found}");
    // After an edit by another program it's still one cell, and keeps its output until it runs again.
    house.write("notes/work.py", b"import sys\n\n\nprint('two', file=sys.stderr)\n1 / 0\n");
    let done = house.run(&["run", "work.py"]).code(1);
    let said = format!("{}{}", done.text(), done.err);
    assert!(said.contains("ZeroDivisionError") && said.contains("line 5"), "{said}");
    house.run(&["mv", "work.py", "tool"]).good();
    assert!(house.read("notes/tool.py").starts_with(b"import sys"));
    house.run(&["fsck", "--check"]).good();
}

/// A script finds files beside it by its own path, as in a terminal.
#[test]
fn a_script_knows_its_file() {
    let text =
        b"import pathlib\nhere = pathlib.Path(__file__)\nprint(here.name, (here.parent / 'data.txt').read_text())\n";
    let note = "```python\nopen('data.txt').read(), __name__, '__file__' in globals()\n```\n";
    let house = House::with(&[("sub/a.md", note), ("sub/data.txt", "beside")]);
    house.write("notes/sub/work.py", text);
    assert_eq!(house.run(&["run", "sub/work.py"]).good().text(), "work.py beside\n");
    // A note is no script. Relative paths of its cells begin at its folder.
    assert_eq!(house.run(&["run", "sub/a.md"]).good().text(), "('beside', '__main__', False)\n");
}

/// A script that ends itself has failed only if it says so, as in a terminal.
#[test]
fn a_script_that_exits_says_whether_it_failed() {
    let house = House::with(&[("a.md", "```python\nimport sys\nsys.exit(0)\n```\n\n```python\n'below'\n```\n")]);
    for (exit, code) in [("sys.exit()", 0), ("sys.exit(0)", 0), ("sys.exit(3)", 1), ("sys.exit('no input')", 1)] {
        house.write("notes/work.py", format!("import sys\nprint('done')\n{exit}\n").as_bytes());
        let done = house.run(&["run", "work.py"]).code(code);
        assert!(done.text().starts_with("done\n"), "{exit}: {done:?}");
        assert_eq!(done.text().contains("SystemExit"), code == 1, "{exit}: {done:?}");
    }
    // In a note it keeps the cells below from running.
    let done = house.run(&["run", "a.md"]).code(1);
    assert!(!done.text().contains("below"), "{done:?}");
}
