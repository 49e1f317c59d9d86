//! Jupyter notebooks: what is imported is exported unchanged, even after edits.

use crate::program::{House, shared};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Files that Jupyter's own validation also refuses, with the expected error.
const INVALID: [(&str, &str); 3] = [
    ("invalid", "cell 1 has no source"),
    ("test3_no_worksheets", "no worksheets"),
    ("test3_worksheet_with_no_cells", "a worksheet has no cells"),
];
/// Files with mistakes that are repaired, and old formats: they're exported in a different form.
const MENDED: [&str; 8] = [
    "invalid_cell_id",
    "invalid_unique_cell_id",
    "no_min_version",
    "test2",
    "test3",
    "test3_no_metadata",
    "test3_no_min_version",
    "v4_5_no_cell_id",
];

fn notebooks() -> Option<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for folder in ["notebooks/nbdime", "notebooks/nbformat"] {
        let files = std::fs::read_dir(shared(folder)?).expect("a folder");
        for path in files.map(|entry| entry.expect("an entry").path()) {
            if path.extension().is_some_and(|ending| ending == "ipynb") {
                found.push((path.file_stem().expect("a name").to_string_lossy().into_owned(), path));
            }
        }
    }
    found.sort();
    Some(found)
}

fn notebook(path: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("read")).expect("JSON")
}

fn export(house: &House, name: &str) -> Value {
    let to = format!("out/{name}.ipynb");
    house.run(&["export", &format!("{name}.md"), &to]).good();
    notebook(&house.path(&to))
}

#[test]
fn notebooks_come_back_as_they_were() {
    let Some(all) = notebooks() else { return };
    assert!(all.len() > 70);
    let house = House::new();
    let good: Vec<&(String, PathBuf)> =
        all.iter().filter(|(name, _)| INVALID.iter().all(|(invalid, _)| invalid != name)).collect();
    let paths = good.iter().map(|(_, path)| path.to_str().expect("UTF-8"));
    let words: Vec<&str> = ["import"].into_iter().chain(paths).collect();
    house.run(&words).good();
    let done = house.json(&["export", "Notes", "out", "--to", "ipynb"]);
    assert_eq!((done["exported"].as_array().map(Vec::len), &done["skipped"]), (Some(good.len()), &json!([])));
    for (name, path) in &good {
        let (was, mut is) = (notebook(path), notebook(&house.path(&format!("out/{name}.ipynb"))));
        if MENDED.contains(&name.as_str()) {
            assert_eq!(is["nbformat"], 4, "{name}");
            let old = &was["worksheets"][0]["cells"];
            let old = if old.is_array() { old } else { &was["cells"] };
            assert_eq!(is["cells"].as_array().map(Vec::len), old.as_array().map(Vec::len), "{name}");
            continue;
        }
        let cells = is["cells"].as_array_mut().expect("cells").iter_mut();
        for (cell, old) in cells.zip(was["cells"].as_array().expect("cells")) {
            // Format 4.5 requires ids, so cells without one got one.
            if old.get("id").is_none() {
                cell.as_object_mut().expect("a cell").remove("id");
            }
        }
        assert_eq!(is, was, "{name}");
    }
}

#[test]
fn notebooks_of_early_formats_keep_their_lines() {
    let house = House::new();
    let cells = json!([
        {"cell_type": "heading", "level": -1, "metadata": {}, "source": ["Sums", "and more"]},
        {"cell_type": "markdown", "source": ["One", "", "Two"]},
        {"cell_type": "code", "language": "python", "collapsed": true, "input": ["a = 1", "print(a)"], "outputs": [
            {"output_type": "stream", "stream": "stdout", "text": ["1", "2"]},
        ]},
    ]);
    for format in [2, 3] {
        let name = format!("old{format}");
        let old = json!({"nbformat": format, "metadata": {}, "worksheets": [{"cells": cells}]});
        house.write(&format!("{name}.ipynb"), old.to_string().as_bytes());
        house.run(&["import", &format!("{name}.ipynb")]).good();
        let is = export(&house, &name);
        let joined = |text: &Value| match text {
            Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect::<String>(),
            text => text.as_str().unwrap_or_default().to_owned(),
        };
        let source = |at: usize| joined(&is["cells"][at]["source"]);
        assert_eq!([source(0), source(1), source(2)], ["# Sums and more", "One\n\nTwo", "a = 1\nprint(a)"]);
        let code = &is["cells"][2];
        let printed = joined(&code["outputs"][0]["text"]);
        assert_eq!((printed.as_str(), &code["metadata"]["collapsed"]), ("1\n2", &json!(true)), "{code}");
    }
}

#[test]
fn what_is_no_notebook_is_refused() {
    let Some(all) = notebooks() else { return };
    let house = House::new();
    for (name, why) in INVALID {
        let (_, path) = all.iter().find(|(other, _)| other == name).expect(name);
        house.run(&["import", path.to_str().expect("UTF-8")]).refused(2, why);
        assert!(!house.path(&format!("W/Notes/{name}.md")).exists());
    }
}

#[test]
fn the_note_of_a_notebook_in_a_volume_goes_beside_it() {
    let house = House::with(&[("a.md", "a\n")]);
    let file = json!({
        "cells": [{"cell_type": "markdown", "id": "m1", "metadata": {}, "source": "# Sums"}],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
    });
    for place in ["notes/top.ipynb", "notes/Data/sums.ipynb", "elsewhere/far.ipynb"] {
        house.write(place, file.to_string().as_bytes());
    }
    assert_eq!(
        house.json(&["import", "notes/Data/sums.ipynb", "notes/top.ipynb"]),
        json!({"volume": "notes", "imported": ["Data/sums.md", "top.md"], "skipped": []})
    );
    assert!(house.read("notes/Data/sums.md").starts_with(b"# Sums"));
    assert!(house.path("notes/top.md").is_file() && !house.path("W/Notes").exists());
    house.run(&["import", "notes/Data/sums.ipynb"]).refused(2, "already exists");
    let far = house.json(&["import", "elsewhere/far.ipynb"]);
    assert_eq!((&far["volume"], &far["imported"]), (&json!("Notes"), &json!(["far.md"])));
}

#[test]
fn a_notebook_goes_on_as_a_note() {
    let house = House::with(&[("a.md", "a\n")]);
    let file = json!({
        "cells": [
            {"cell_type": "markdown", "id": "m1", "metadata": {"tags": ["x"]}, "source": "# Sums"},
            {"cell_type": "markdown", "id": "m2", "metadata": {}, "source": ["![p](attachment:p.png)\n", "end"],
             "attachments": {"p.png": {"image/png": "iVBORw0KGgo="}}},
            {"cell_type": "code", "id": "c1", "metadata": {"collapsed": true}, "source": "x = 20", "outputs": [],
             "execution_count": 1},
            {"cell_type": "code", "id": "c2", "metadata": {}, "source": "x + 1", "execution_count": 2,
             "outputs": [{"output_type": "execute_result", "execution_count": 2, "metadata": {},
                          "data": {"text/plain": ["21"], "text/html": ["<b>\n", "21</b>"]}}]},
        ],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}, "mine": 1},
        "nbformat": 4,
        "nbformat_minor": 5,
    });
    house.write("in/sums.ipynb", file.to_string().as_bytes());
    assert_eq!(
        house.json(&["import", "in/sums.ipynb", "--volume", "notes"]),
        json!({"volume": "notes", "imported": ["sums.md"], "skipped": []})
    );
    house.run(&["import", "in/sums.ipynb", "--volume", "notes"]).refused(2, "already exists");
    let text = "# Sums\n\n![p](attachment:p.png)\nend\n\n```python\nx = 20\n```\n\n```python\nx + 1\n```\n";
    assert_eq!(String::from_utf8(house.read("notes/sums.md")).expect("text"), text);
    let outputs = String::from_utf8(house.run(&["outputs", "sums"]).good().out).expect("text");
    assert_eq!(outputs, "cell 1: ok\ncell 2: ok\n21\n");

    // Another editor changes a cell and adds one; the note is run again.
    let edited = text.replace("x = 20", "x = 41").replace("# Sums\n", "# Sums of two\n") + "\n```python\nx\n```\n";
    std::fs::write(house.path("notes/sums.md"), edited).expect("written");
    house.run(&["run", "sums"]).good();
    let made = export(&house, "sums");
    let cells = made["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 5, "{made:#}");
    assert_eq!(
        cells[0],
        json!({"cell_type": "markdown", "id": "m1", "metadata": {"tags": ["x"]}, "source": "# Sums of two"})
    );
    assert_eq!(cells[1], file["cells"][1]);
    assert_eq!(cells[2]["metadata"], json!({"collapsed": true}));
    assert_eq!((&cells[2]["id"], &cells[2]["source"]), (&json!("c1"), &json!("x = 41")));
    assert_eq!(cells[3]["id"], "c2");
    assert_eq!(cells[3]["outputs"][0]["data"], json!({"text/plain": ["42"]}));
    assert_eq!(cells[4]["outputs"][0]["data"], json!({"text/plain": ["41"]}));
    assert_eq!(made["metadata"], file["metadata"]);

    house.run(&["export", "sums", "out", "--to", "py"]).good();
    let program = String::from_utf8(house.read("out/sums.py")).expect("text");
    assert!(program.ends_with("# %%\nx = 41\n\n# %%\nx + 1\n\n# %%\nx\n"), "{program}");
    house.run(&["export", "sums", "out2", "--to", "doc"]).refused(2, "no export to “doc”");
    house.run(&["fsck", "--check"]).good();
}

#[test]
fn figures_are_pictures_elsewhere() {
    let plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()";
    let house = House::with(&[("plot.md", &format!("```python\n{plot}\n```\n"))]);
    house.run(&["run", "plot"]).good();
    let made = export(&house, "plot");
    let data = &made["cells"][0]["outputs"][0]["data"];
    assert!(data["image/png"].as_str().expect("a picture").starts_with("iVBORw0KGgo"), "{made}");
    house.run(&["outputs", "plot", "--save", "pictures"]).good();
    assert!(house.read("pictures/cell-1-1.png").starts_with(b"\x89PNG"));
    assert!(house.read("pictures/cell-1-1.svg").starts_with(b"<svg"));
}

#[test]
fn tables_are_files_elsewhere() {
    let large = "table({'n': range(30_000), 'w': ['x' * 9] * 30_000})";
    let small = "import sqlite3\ndb = sqlite3.connect(':memory:')\ntable(db.execute('select 1 as one, null as two'))";
    let note = format!("```python timeout=0\n{large}\n```\n\n```python timeout=0\n{small}\n```\n");
    let house = House::with(&[("rows.md", &note)]);
    let told = house.run(&["run", "rows"]).good().text();
    assert!(told.starts_with("n") && told.contains("... 29980 more rows"), "{told:.300}");
    house.run(&["outputs", "rows", "--save", "out"]).good();
    let (first, second) = (house.read("out/cell-1-1.csv"), house.read("out/cell-2-1.csv"));
    assert!(first.starts_with(b"n,w\n0,xxxxxxxxx\n") && first.ends_with(b"\n29999,xxxxxxxxx\n"), "{}", first.len());
    assert_eq!(second, b"one,two\n1,\n");
    house.write("notes/bare.md", b"Only text.\n");
    let done = house.run(&["outputs", "bare", "--save", "none"]).code(0);
    assert!(done.err.contains("bare has no figures") && !house.path("none").exists(), "{}", done.err);
}

#[test]
fn numbers_that_json_does_not_have_are_null() {
    let house = House::with(&[("a.md", "a\n")]);
    let figure = r#"{"output_type": "display_data", "metadata": {}, "data": {"application/vnd.plotly.v1+json":
        {"y": [1, NaN, -Infinity], "name": "NaN \"NaN"}}}"#;
    let cell = r#"{"cell_type": "code", "id": "a", "metadata": {}, "source": "1", "execution_count": 1, "outputs": ["#;
    let file = format!(r#"{{"nbformat": 4, "nbformat_minor": 5, "metadata": {{}}, "cells": [{cell}{figure}]}}]}}"#);
    // A byte order mark is no part of JSON, and no reason to refuse the file.
    house.write("in/odd.ipynb", format!("\u{feff}{file}").as_bytes());
    let done = house.run(&["import", "in/odd.ipynb", "--volume", "notes"]).code(0);
    assert!(done.err.contains("2 numbers are read as null") && done.err.lines().count() == 1, "{}", done.err);
    let made = export(&house, "odd");
    let data = &made["cells"][0]["outputs"][0]["data"]["application/vnd.plotly.v1+json"];
    assert_eq!(data, &json!({"y": [1, null, null], "name": "NaN \"NaN"}));
}

#[test]
fn a_program_has_no_commands_of_ipython() {
    let note = "# Setup\n\n```python\n%matplotlib inline\nimport os\n!ls\nif os:\n    !pwd\nx = 7 % 4\n```\n\n\
                ```python\n%%bash\necho $HOME\n```\n\n```sql\nselect 1 as a\n```\n\n\
                ```sql\n-- into: b\nselect 2 as b\n```\n\n```python\nassert b[0]['b'] == 2\nprint('end', x)\n```\n";
    let house = House::with(&[("m.md", note)]);
    house.run(&["export", "m", "m.py"]).good();
    let program = String::from_utf8(house.read("m.py")).expect("text");
    let cell = "# %%\n# %matplotlib inline\nimport os\n# !ls\nif os:\n    pass  # !pwd\nx = 7 % 4\n\n\
                # %%\n# %%bash\n# echo $HOME\n\n# %%\n";
    assert!(program.contains(cell), "{program}");
    assert_eq!(program.matches("def _csv_table").count(), 1);
    // The program is a script that runs.
    house.write("notes/made.py", program.as_bytes());
    let ran = house.run(&["run", "made.py"]).code(0).text();
    assert!(ran.contains("end 3"), "{ran}");
}

#[test]
fn a_volume_is_no_single_file() {
    let house = House::with(&[("m.md", "# M\n")]);
    for (name, form) in [("x.ipynb", "add --to ipynb"), ("x.py", "add --to py"), ("x.html", "add --html")] {
        house.run(&["export", "notes", name]).refused(2, form);
        assert!(!house.path(name).exists());
    }
    house.run(&["export", "notes", "x.ipynb", "--to", "ipynb"]).good();
    assert!(house.path("x.ipynb/m.ipynb").exists());
}
