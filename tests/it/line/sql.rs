//! SQL cells on the command line: queries over cells' variables, collections, and CSV, Parquet and SQLite files beside
//! the note.

use super::states::science_pack;
use crate::program::{House, finish, strict};
use std::path::PathBuf;
use std::process::Command;

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
    house.write("notes/places.parquet", b"PAR1");
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
        ("select * from places.csv", "write places.csv in quotes"),
        ("select * from 'secret.parquet'", "secret.parquet can't be read"),
        (
            "select * from \"places.parquet\"",
            "the built-in Python can't read Parquet; make an environment that can: `tracebook kernels env NOTE --add \
             pyarrow`",
        ),
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
fn files_that_cannot_be_read_as_they_are_meant_are_refused() {
    let house = house();
    house.write("notes/long.csv", b"a,b\n1,2\n\n3,4,5\n6\n");
    let (good, said) = asked(&house, "select * from 'long.csv'");
    assert!(!good && said.contains("long.csv can't be read as CSV, line 4: the row has 3 cells"), "{said}");
    house.write("notes/latin.csv", b"a,b\n1,Z\xfcrich\n");
    let (good, said) = asked(&house, "select b from 'latin.csv'");
    assert!(!good && said.contains("latin.csv can't be read as CSV: it isn't UTF-8 text; save it as UTF-8"), "{said}");
    house.write("notes/utf.csv", "\u{feff}a,b\n1,Zürich\n".as_bytes());
    assert_eq!(asked(&house, "select b from 'utf.csv'"), (true, "b\nZürich\n".to_owned()));
    house.write("notes/short.csv", b"a,b\n1,2,\n6\n");
    let query = "select a, b is null as gone from 'short.csv' order by a";
    assert_eq!(asked(&house, query), (true, "a  gone\n1  0\n6  1\n".to_owned()));
    house.write("notes/open.csv", b"a,b\n1,\"x\ny\"\n2,\"z\n3,4\n");
    let (good, said) = asked(&house, "select * from 'open.csv'");
    assert!(!good && said.contains("open.csv can't be read as CSV, line 4: a quote is opened"), "{said}");
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

```sql
-- into: books
SELECT status, rating FROM 'Reading.base#Best'
```

```python
print(books.to_dict('records'))
```
";
    let mut files = READING.to_vec();
    files.push(("a.md", note));
    let house = House::with(&files);
    let mut command = house.command(&["run", "a", "--json"]);
    command.env("TRACEBOOK_KERNELS", &pack);
    let said = finish(command, b"").good().text();
    assert!(said.contains("DataFrame 3.0 2024-01-01T00:00:00 ['S']"), "{said}");
    let books = r#"[{'status': 'done', 'rating': 4.5}, {'status': 'say \"hi\" \\\\ é', 'rating': 3.0}]"#;
    assert!(said.contains(books), "{said}");
    // A data frame is shown as a table in the window.
    assert!(said.contains(r#""text/csv":",city,n,day\n0,N,1.0,2024-01-01T00:00:00\n"#), "{said}");
}

const READING: [(&str, &str); 6] = [
    (
        "Books/Ants.md",
        "---\nstatus: done\nrating: 4.5\npages: 300\nread: 2026-01-02\nseen: 2026-01-02 14:30\nowned: true\n\
         topics: [x, 2, \"[[Ann Lee|Ann]]\"]\nby: \"[[Ann Lee|Ann]]\"\n---\n",
    ),
    ("Books/Bees.md", "---\nstatus: say \"hi\" \\ é\nrating: 3\nowned: false\n---\n"),
    ("Books/Cows.md", "---\nstatus: open\n---\n"),
    ("keys/Door.md", "---\nstatus: done\nrating: 5\n---\n"),
    (
        "Reading.base",
        "filters: file.hasProperty(\"status\")
properties:
  note.pages:
    displayName: Page count
formulas:
  half: pages / 2
  odd: status - 1
views:
  - type: table
    name: All
    order: [file.name, status, rating, note.pages, read, seen, owned, topics, by, formula.half]
    filters: file.inFolder(\"Books\")
  - type: table
    name: Best
    filters: { and: [rating > 2, 'file.inFolder(\"Books\")'] }
    order: [status, rating]
    sort: [{ property: rating, direction: DESC }]
  - type: table
    name: Anywhere
    order: [file.name]
  - type: table
    name: First
    order: [file.name]
    limit: 1
  - type: table
    name: Odd
    order: [file.name, formula.odd, file]
    filters: this.file.path == \"q.md\" && status == \"done\"
",
    ),
    ("sub/Broken.base", "filters: [\n"),
];

#[test]
fn a_query_reads_the_views_of_collections() {
    let house = House::with(&READING);
    for (query, found) in [
        (
            "SELECT file, status, \"Page count\" AS pages FROM \"Reading.base\"",
            "file           status        pages\nBooks/Ants.md  done          300\nBooks/Bees.md  say \"hi\" \\ é\n\
             Books/Cows.md  open\n",
        ),
        (
            "SELECT name, rating, read, seen, owned, topics, \"by\", half FROM [Reading.base] WHERE rating > 4",
            "name  rating  read        seen              owned  topics           by   half\n\
             Ants  4.5     2026-01-02  2026-01-02T14:30  1      [\"x\", 2, \"Ann\"]  Ann  150\n",
        ),
        (
            "SELECT name, typeof(rating) AS rating, typeof(owned) AS owned, typeof(read) AS read FROM \
             'Reading.base#All'",
            "name  rating   owned    read\nAnts  real     integer  text\nBees  integer  integer  null\n\
             Cows  null     null     null\n",
        ),
        // Rows in the view's order, joined with a variable and with another view.
        (
            "SELECT status, a FROM 'reading.BASE#best' JOIN rows JOIN \"Reading.base#First\"",
            "status        a\ndone          1\nsay \"hi\" \\ é  1\n",
        ),
        ("SELECT count(*) AS n FROM 'Reading.base#Anywhere'", "n\n4\n"),
        ("SELECT value FROM \"Reading.base\", json_each(topics) WHERE value = 'Ann'", "value\nAnn\n"),
    ] {
        assert_eq!(asked(&house, query), (true, found.to_owned()), "{query}");
    }
    // Each run reads it again, also in a note of another folder. A name finds a file as in a link.
    house.write(
        "notes/sub/deep.md",
        b"```sql\nSELECT status FROM 'Reading.base#First' JOIN \"../Reading.base\" USING (file)\n```\n",
    );
    assert_eq!(house.run(&["run", "deep"]).good().text(), "status\ndone\n");
    house.write("notes/Books/Ants.md", b"---\nstatus: lost\n---\n");
    assert_eq!(house.run(&["run", "deep"]).good().text(), "status\nlost\n");
    // What a formula lacks is told, and its column is empty.
    let (good, said) = asked(&house, "SELECT odd FROM 'Reading.base#Odd'");
    assert!(good && said.contains("Reading.base#Odd: ") && said.contains("odd"), "{said}");
}

#[test]
fn a_collection_that_a_query_can_not_read_says_why() {
    let house = House::with(&READING);
    house.write("secret.base", b"views: []\n");
    std::os::unix::fs::symlink(house.path("secret.base"), house.path("notes/Link.base")).expect("linked");
    let wide = format!("views:\n  - name: Wide\n    order: [{}]\n", vec!["a"; 201].join(", "));
    house.write("notes/Wide.base", wide.as_bytes());
    let long = format!("views:\n  - name: Long\n    order: [{}]\n", vec!["text"; 150].join(", "));
    house.write("notes/Long.base", long.as_bytes());
    house.write("notes/long.md", format!("---\ntext: {}\n---\n", "x".repeat(60_000)).as_bytes());
    for (query, why) in [
        ("select * from 'None.base'", "None.base: the volume has no such collection"),
        ("select * from '../secret.base'", "../secret.base: the volume has no such collection"),
        ("select * from 'Link.base'", "Link.base: "),
        ("select * from \"Reading.base#Gone\"", "it has no view “Gone”; there are: All, Best, Anywhere"),
        ("select * from [sub/Broken.base]", "the collection is not YAML"),
        ("select * from Reading.base", "write collections' names in quotes behind FROM"),
        ("select * from 'Wide.base'", "its view has 201 columns, and a query reads up to 200"),
        ("select * from 'Long.base'", "a query reads up to 8 MB of collections"),
        ("select gone from 'Reading.base'", "no such column: gone"),
    ] {
        let (good, said) = asked(&house, query);
        assert!(!good && said.contains(why) && !said.contains("lambda"), "{query}: {said}");
    }
    // A broken collection stops only the query that needs it.
    assert_eq!(asked(&house, "select 1 as one where 'x.base' <> 'y'"), (true, "one\n1\n".to_owned()));
}

#[test]
fn a_query_has_no_rows_of_hidden_paths() {
    let house = House::with(&READING);
    let query = "select file from 'Reading.base#Anywhere' where file like 'keys/%'";
    assert_eq!(asked(&house, query), (true, "file\nkeys/Door.md\n".to_owned()));
    house.write("W/config.yaml", b"sandbox: {hidden: [keys]}\n");
    assert_eq!(asked(&house, query), (true, "file\n".to_owned()));
    house.write("notes/keys/own.md", format!("```sql\n{query}\n```\n").as_bytes());
    assert_eq!(house.run(&["run", "own"]).good().text(), "file\nkeys/Door.md\n");
}

/// Runs a query in the Python of an environment; `None` uses one without packages.
#[cfg(target_os = "linux")]
fn asked_in_environment(house: &House, environment: Option<PathBuf>, note: &str) -> (bool, String) {
    let place = house.path("notes/.venv");
    match environment {
        Some(environment) => std::os::unix::fs::symlink(environment, place).expect("linked"),
        None => {
            let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(place).status();
            assert!(made.is_ok_and(|made| made.success()), "there is a python3 with venv");
        }
    }
    house.write("notes/q.md", note.as_bytes());
    let done = house.run(&["run", "q", "--kernel", "environment"]);
    (done.code == 0, format!("{}{}", done.text(), done.err))
}

#[cfg(target_os = "linux")]
#[test]
fn an_environment_gets_the_rows_of_collections() {
    let house = House::with(&READING);
    house.write("notes/places.parquet", b"PAR1");
    let note = "```sql\nSELECT file, owned FROM 'Reading.base#All' WHERE status = 'say \"hi\" \\ é'\n```\n\n\
                ```sql\nSELECT * FROM 'places.parquet'\n```\n";
    let (good, said) = asked_in_environment(&house, None, note);
    assert!(said.contains("file           owned\nBooks/Bees.md  0\n"), "{said}");
    assert!(!good && said.contains("which has neither pyarrow nor polars, can't read Parquet"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_environment_with_pyarrow_reads_parquet() {
    let named = std::env::var_os("TRACEBOOK_PARQUET_ENVIRONMENT").map(PathBuf::from).filter(|path| path.exists());
    assert!(named.is_some() || !strict(), "CI makes an environment and names it in TRACEBOOK_PARQUET_ENVIRONMENT");
    let Some(named) = named else {
        eprintln!("left out: TRACEBOOK_PARQUET_ENVIRONMENT names no environment with pyarrow");
        return;
    };
    let note = "```python
import datetime, os, pyarrow, pyarrow.parquet
day = datetime.date(2026, 1, 2)
os.mkdir('k=1')
at = pyarrow.array([1704103200123456789, None], pyarrow.timestamp('ns'))
table = pyarrow.table({'a': [1, None], 'day': [day, None], 'all': [[1, 2], None], 'at': at})
pyarrow.parquet.write_table(table, 'k=1/data.parquet')
```

```sql
SELECT *, typeof(a) AS kind FROM 'k=1/data.parquet' WHERE a = 1
```

```sql
SELECT count(*) AS n FROM \"table\"
```
";
    let (good, said) = asked_in_environment(&House::with(&READING), Some(named), note);
    assert!(good, "{said}");
    let rows = "a  day         all     at                             kind\n\
                1  2026-01-02  [1, 2]  2024-01-01T10:00:00.123456789  integer\n";
    assert_eq!(said, format!("{rows}n\n2\n"));
}
