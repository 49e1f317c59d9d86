//! Data frames on the command line: a note keeps their first rows, and `--save` writes all of them.

use crate::program::House;
use serde_json::json;

/// What the kernel asks of a data frame of pandas, with numbered rows.
const PANDAS: &str = "class DataFrame:
    columns = type('Columns', (), {'nlevels': 1})
    def __init__(self, rows):
        self.rows, self.shape, self.iloc = rows, (len(rows), 1), Rows(rows)
    def to_csv(self, header=True):
        return (',n\\n' if header else '') + ''.join(f'{row},{row % 7}\\n' for row in self.rows)

class Rows:
    def __init__(self, rows):
        self.rows = rows
    def __getitem__(self, part):
        return DataFrame(self.rows[part])
";
const NOTE: &str = "---
kernel: environment
---

```python
import pandas
frame = pandas.DataFrame(range(300_000))
frame
```

```python
print('shown', frame.shape)
```
";

#[test]
fn a_run_saves_all_rows_of_a_data_frame() {
    let house = House::with(&[("a.md", NOTE), ("pandas.py", PANDAS)]);
    let mut venv = std::process::Command::new("python3");
    let made = venv.args(["-m", "venv", "--without-pip"]).arg(house.path("notes/.venv")).status();
    assert!(made.is_ok_and(|made| made.success()), "there is a python3 with venv");
    let printed = house.run(&["run", "a", "--save", "rows"]).good().text();
    assert!(printed.contains("shown (300000, 1)") && printed.contains("cell-1-1.csv"), "{printed}");
    let rows = String::from_utf8(house.read("rows/cell-1-1.csv")).expect("text");
    assert!(rows.starts_with(",n\n0,0\n1,1\n") && rows.ends_with("\n299999,0\n"), "{}", rows.len());
    assert_eq!(rows.lines().count(), 300_001, "the names of columns are written once");
    // A program gets the path. A folder with files in it is refused before anything runs.
    let said = house.run(&["run", "a", "--cell", "1", "--save", "more", "--json"]).good().lines();
    let saved = said.last().expect("a line");
    assert_eq!((&saved["cell"], &saved["rows"], &saved["all_rows"]), (&json!(1), &json!(300_000), &json!(300_000)));
    assert!(saved["saved"].as_str().is_some_and(|path| path.ends_with("cell-1-1.csv")), "{saved}");
    house.run(&["run", "a", "--save", "rows"]).refused(2, "isn't an empty folder");
    // The kernel has ended with the run, so the note's rows are all there are.
    let done = house.run(&["outputs", "a", "--save", "kept"]).code(0);
    assert!(done.err.contains("has the first 50000 of 300000 rows"), "{done:?}");
    assert_eq!(house.read("kept/cell-1-1.csv").iter().filter(|byte| **byte == b'\n').count(), 50_001);
}
