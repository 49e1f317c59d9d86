//! Widgets on the command line: their values are variables of the cells, and can be set.

use crate::program::House;

const NOTE: &str = "# A

```widget
slider: threshold
min: 0
max: 1
step: 0.05
value: 0.4 # now
```

```widget
select: region
options: [north, \"so\\\"uth\", 3]
```

```widget
date: day
value: 2024-02-29
```

```python
print(threshold, repr(region), day.year, day.isoformat())
```
";

#[test]
fn a_widget_is_a_variable_and_its_value_can_be_set() {
    let house = House::with(&[("a.md", NOTE)]);
    assert_eq!(house.run(&["run", "a"]).good().text(), "0.4 'north' 2024 2024-02-29\n");
    let set = ["cells", "a", "--set", "threshold=0.75", "--set", "region=so\"uth", "--set", "day=2025-01-01"];
    house.run(&set).good();
    let text = String::from_utf8(house.read("notes/a.md")).expect("text");
    assert!(text.contains("\nvalue: 0.75 # now\n") && text.contains("\nvalue: 2025-01-01\n"), "{text}");
    assert_eq!(house.run(&["run", "a"]).good().text(), "0.75 'so\"uth' 2025 2025-01-01\n");
    // After a change, the widget's cell and its dependents are stale, since each run's inputs are recorded.
    house.run(&["cells", "a", "--set", "region=3"]).good();
    let cells = house.run(&["cells", "a", "--json"]).good().json();
    let stale: Vec<bool> =
        cells["cells"].as_array().expect("cells").iter().map(|cell| !cell["stale"].is_null()).collect();
    assert_eq!(stale, [false, true, false, true]);
    assert_eq!(house.run(&["run", "a", "--stale"]).good().text(), "0.75 3 2025 2025-01-01\n");
    for (set, why) in [
        ("threshold=2", "must be between 0 and 1"),
        ("threshold=x", "must be a number"),
        ("region=west", "must be one of the options"),
        ("day=today", "must be a day"),
        ("nothing=1", "has no widget that sets `nothing`"),
        ("threshold", "NAME=VALUE"),
    ] {
        let done = house.run(&["cells", "a", "--set", set]).code(2);
        assert!(done.err.contains(why), "{set}: {}", done.err);
    }
    house.run(&["fsck", "--check"]).good();
}

#[test]
fn a_widget_that_cannot_be_read_says_so_and_nothing_runs() {
    for (widget, why) in [
        ("slider: lambda", "`lambda` can't be the name"),
        ("text: \"print(1); x\"", "can't be the name"),
        ("slider: n\nmax: .nan", "`max` of `n` must be a number"),
        (&*format!("select: n\noptions: {}", "[".repeat(5_000)), "isn't YAML"),
        (&*format!("select: n\noptions: [{}]", "1, ".repeat(20_000)), "a list of 1 to 1000"),
    ] {
        let house = House::with(&[("a.md", &format!("```widget\n{widget}\n```\n\n```python\nprint('ran')\n```\n"))]);
        let done = house.run(&["run", "a"]).code(1);
        let said = format!("{}{}", done.text(), done.err);
        assert!(said.contains(why) && !said.contains("ran"), "{widget}: {said}");
        assert!(house.run(&["outputs", "a"]).good().text().contains(why), "it's kept below the widget");
    }
}
