//! SQL cells on the command line: queries over cells' variables, and CSV and SQLite files beside the note.

use super::states::science_pack;
use crate::program::{House, finish};

const NOTE: &str = "# A

```python
sales = [{'city': 'North', 'n': 1}, {'city': 'South', 'n': 2.5}, {'city': 'South', 'n': None}]
```

```sql
-- into: totals
SELECT city, sum(n) AS total FROM sales JOIN 'places.csv' USING (city)
WHERE land = 'A' GROUP BY city
```

```python
print(totals[0]['total'])
```
";

fn house() -> House {
    let house = House::with(&[("a.md", NOTE)]);
    house.write("notes/places.csv", b"city;land;id\nSouth;A;007\nNorth;B;1\n");
    house
}

fn asked(house: &House, query: &str) -> (bool, String) {
    let note = format!("```python\nrows = [{{'a': 1}}]\nx = 3\n```\n\n```sql\n{query}\n```\n");
    house.write("notes/q.md", note.as_bytes());
    let done = house.run(&["run", "q"]);
    (done.code == 0, format!("{}{}", done.text(), done.err))
}

#[test]
fn a_query_reads_variables_and_files_and_binds_its_result() {
    let house = house();
    assert_eq!(house.run(&["run", "a"]).good().text(), "city   total\nSouth  2.5\n2.5\n");
    let shown = house.run(&["run", "a", "--json"]).good().text();
    assert!(shown.contains("\"text/csv\":\"city,total\\nSouth,2.5\\n\""), "a table: {shown}");
    let cells = house.run(&["cells", "a", "--json"]).good().json();
    assert_eq!(cells["cells"][1]["binds"], serde_json::json!(["totals"]));
    assert_eq!(cells["cells"][1]["uses"], serde_json::json!({"sales": [1]}));
    assert_eq!(cells["cells"][2]["uses"], serde_json::json!({"totals": [2]}));
    // The query's own names don't become names of the note, and a change above makes the query stale.
    let changed = NOTE.replace("2.5", "4");
    house.write("notes/a.md", changed.as_bytes());
    let cells = house.run(&["cells", "a", "--json"]).good().json();
    assert!(!cells["cells"][1]["stale"].is_null() && !cells["cells"][2]["stale"].is_null(), "{cells}");
    assert_eq!(house.run(&["run", "a", "--stale"]).good().text(), "city   total\nSouth  4\n4\n");
}

#[test]
fn a_query_only_reads_and_says_what_is_wrong() {
    let house = house();
    let made = "```python\nimport sqlite3\nbase = sqlite3.connect('shop.db')\nbase.execute('create table orders (id, \
                text)')\nbase.execute(\"insert into orders values (1, 'x')\")\nbase.commit()\n```\n";
    house.write("notes/make.md", made.as_bytes());
    house.run(&["run", "make"]).good();
    for (query, found) in [
        ("SELECT o.text, r.a FROM shop.orders o JOIN rows r ON r.a = o.id", "text  a\nx     1\n"),
        ("select count(*) as n from 'shop.db'.orders", "n\n1\n"),
        ("select id, typeof(id) as kind from 'places.csv' order by city", "id   kind\n1    text\n007  text\n"),
        ("with t(n) as (select 1 union all select n + 1 from t where n < 3) select max(n) as n from t", "n\n3\n"),
    ] {
        assert_eq!(asked(&house, query), (true, found.to_owned()), "{query}");
    }
    for (query, why) in [
        ("select * from absent", "no table absent: no variable of the kernel and no file beside the note"),
        ("select * from x", "x isn't a table but of type int"),
        ("select * from 'none.csv'", "none.csv can't be read"),
        ("select * from 'secret.parquet'", "Parquet"),
        ("selec 1", "near \"selec\": syntax error"),
        ("select 1; drop table rows", "one statement at a time"),
        ("delete from shop.orders", "a SQL cell only reads"),
        ("create table made (a)", "a SQL cell only reads"),
        ("attach 'made.db' as made", "a SQL cell only reads"),
        ("pragma writable_schema = 1", "a SQL cell only reads"),
        ("vacuum into 'made.db'", "a SQL cell only reads"),
        ("-- into: import os\nselect 1", "`import os` can't be the name of a Python variable"),
        ("-- into: x, y\nselect 1", "can't be the name of a Python variable"),
        ("select '\"); print(\"out' || gone", "no such column: gone"),
    ] {
        let (good, said) = asked(&house, query);
        assert!(!good && said.contains(why) && !said.contains("lambda"), "{query}: {said}");
    }
    assert!(!house.path("notes/made.db").exists());
    assert_eq!(asked(&house, "select count(*) as n from shop.orders").1, "n\n1\n", "nothing was deleted");
}

#[test]
fn a_query_that_takes_too_long_is_stopped() {
    let endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t";
    let house = House::with(&[("a.md", &format!("```sql timeout=1\n{endless}\n```\n"))]);
    let done = house.run(&["run", "a"]).code(1);
    let said = format!("{}{}", done.text(), done.err);
    assert!(said.contains("TimeLimit") && said.contains("after 1 s"), "{said}");
    assert!(said.contains("`timeout=0` behind `sql`"), "{said}");
    // SQLite itself is interrupted: Python continues after the query.
    let caught = format!(
        "```sql\nselect 1 as one\n```\n\n```python timeout=2\nimport sys\nfor name, module in \
         list(sys.modules.items()):\n    if name.startswith('_tracebook_sql_'):\n        try:\n            \
         module.run({{}}, '{endless}')\n        except BaseException as error:\n            print('stopped', \
         type(error).__name__)\n```\n"
    );
    house.write("notes/b.md", caught.as_bytes());
    let done = house.run(&["run", "b"]);
    assert!(done.text().contains("stopped KeyboardInterrupt"), "{}{}", done.text(), done.err);
}

#[test]
fn the_science_kernel_gives_frames_of_pandas() {
    let Some(pack) = science_pack() else { return };
    let note = "---
kernel: science
---

```widget
slider: least
value: 2
```

```python
import pandas as pd
days = pd.to_datetime(['2024-01-01', '2024-01-02', None])
sales = pd.DataFrame({'city': ['N', 'S', 'S'], 'n': [1, 2, float('nan')], 'day': days})
```

```sql
-- into: found
SELECT city, n, day FROM sales WHERE n >= 1
```

```python
print(type(found).__name__, found.n.sum(), found.day[0], found[found.n >= least].city.tolist())
```
";
    let house = House::with(&[("a.md", note)]);
    let mut command = house.command(&["run", "a", "--json"]);
    command.env("TRACEBOOK_KERNELS", &pack);
    let said = finish(command, b"").good().text();
    assert!(said.contains("DataFrame 3.0 2024-01-01T00:00:00 ['S']"), "{said}");
    // A data frame is shown as a table in the window.
    assert!(said.contains(r#""text/csv":",city,n,day\n0,N,1.0,2024-01-01T00:00:00\n"#), "{said}");
}
