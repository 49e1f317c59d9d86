//! Forms of output: colored text, tables, trees, pictures, pages, progress; folded, copied, saved.

use super::{Bench, Driven, NONE, click_label, pictures_folder, press, session, type_text, until};
use egui::Key;
use egui_kittest::kittest::{NodeT, Queryable};
use engine::Command;
use host::desktop::PathChoice;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A window in which all cells of this note have run.
fn ran(note: &str) -> (Bench, Driven) {
    let bench = Bench::new(&[("Out.md", note)]);
    let window = ran_in(&bench);
    (bench, window)
}

/// A window in which all cells of the first note have run.
fn ran_in(bench: &Bench) -> Driven {
    let mut window = bench.opened();
    until(&mut window, "the note is shown", |window| window.state().note().is_some());
    let note = window.state().note().expect("a note is shown");
    until(&mut window, "the note is read", |window| session(window).note(note).is_some_and(|note| note.is_settled()));
    window.state_mut().send_command(Command::RunAll { note });
    until(&mut window, "the cells have run", |window| {
        let note = session(window).note(note).expect("the note is open");
        note.cells().all(|cell| note.latest_execution(cell).is_some_and(|run| run.status.is_final()))
    });
    window
}

#[test]
fn a_long_line_is_folded() {
    let (_bench, mut window) = ran("```python\nprint('word ' * 2000 + 'end')\n```\n");
    until(&mut window, "it is folded", |window| window.query_all_by_label_contains("Show all ").next().is_some());
    assert!(window.query_all_by_label_contains("word end").next().is_none());
    window.query_all_by_label_contains("Show all ").next().expect("a button").click();
    until(&mut window, "it is shown", |window| window.query_all_by_label_contains("word end").next().is_some());
}

fn shows(window: &mut Driven, label: &str) {
    until(window, label, |window| window.query_all_by_label(label).next().is_some());
}

fn picture(window: &mut Driven, name: &str) {
    if let Some(folder) = pictures_folder() {
        window.run_steps(4);
        window.render().expect("a picture").save(folder.join(format!("{name}.png"))).expect("a file");
    }
}

const TABLE: &str = "# Boats

```python timeout=0
rows = [{'name': f'boat {n}', 'length': n * 7919 % 1000003 / 10, 'crew': None if n % 3 else n,
         'kind': ['sail', 'motor', 'oars'][n % 7 % 3]}
        for n in range(2_000)]
table(rows)
```
";

#[test]
fn a_table_is_sorted_filtered_and_copied() {
    let (_bench, mut window) = ran(TABLE);
    until(&mut window, "how many there are", |window| {
        window.query_all_by_label_contains("2").any(|label| format!("{label:?}").contains("000 rows"))
    });
    shows(&mut window, "Table of cell 1, 2000 rows");
    // Each column says what it holds.
    shows(&mut window, "Values of name: 2\u{202f}000 different values");
    shows(&mut window, "Values of crew: 0 to 1998, 1\u{202f}333 empty");
    let kinds = window.get_by_label("Values of kind: 3 different values");
    let rect = kinds.rect();
    window.hover_at(rect.left_center() + egui::vec2(12.0, 0.0));
    window.run_steps(4);
    std::thread::sleep(std::time::Duration::from_millis(700));
    window.run_steps(4);
    shows(&mut window, "3 different values\n“sail”: 857 rows");
    picture(&mut window, "table");
    click_label(&mut window, "Sort by length");
    shows(&mut window, "Sort descending by length");
    click_label(&mut window, "Filter Table of cell 1");
    type_text(&mut window, "name=boat_x");
    until(&mut window, "nothing fits", |window| window.query_all_by_label_contains("0 of 2").next().is_some());
    for _ in 0.."name=boat_x".len() {
        press(&mut window, NONE, Key::Backspace);
    }
    type_text(&mut window, "length<5000");
    until(&mut window, "some fit", |window| {
        window.query_all_by_label_contains(" of 2").any(|label| !format!("{label:?}").contains("\"0 of"))
    });
    picture(&mut window, "table-filtered");
    window.get_by_label("Copy rows of Table of cell 1").click();
    let begun = std::time::Instant::now();
    let copied = loop {
        window.step();
        let copied = window.output().platform_output.commands.iter().find_map(|command| match command {
            egui::OutputCommand::CopyText(text) => Some(text.clone()),
            _ => None,
        });
        if let Some(copied) = copied {
            break copied;
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "it is copied");
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    let lines: Vec<&str> = copied.lines().collect();
    assert_eq!(lines[..2], ["name\tlength\tcrew\tkind", "boat 0\t0.0\t0\tsail"], "{copied:.200}");
    assert!(lines.len() > 2 && lines.len() < 1_500);
}

/// What the kernel asks of a data frame of pandas, with numbered rows.
#[cfg(target_os = "linux")]
const PANDAS: &str = "class DataFrame:
    columns = type('Columns', (), {'nlevels': 1})
    def __init__(self, rows):
        self.rows, self.shape = rows, (len(rows), 1)
        self.iloc = self.Rows(rows)
    class Rows:
        def __init__(self, rows):
            self.rows = rows
        def __getitem__(self, part):
            return DataFrame(self.rows[part])
    def to_csv(self, header=True):
        return (',n\\n' if header else '') + ''.join(f'{row},{row % 7}\\n' for row in self.rows)
";

#[cfg(target_os = "linux")]
const FRAME: &str = "---
kernel: environment
---
```python
import pandas
frame = pandas.DataFrame(range(150_000))
frame
```
";

#[cfg(target_os = "linux")]
#[test]
fn all_rows_of_a_data_frame_come_from_its_kernel() {
    let bench = Bench::new(&[("Frame.md", FRAME), ("pandas.py", PANDAS)]);
    let mut venv = std::process::Command::new("python3");
    let made = venv.args(["-m", "venv", "--without-pip"]).arg(bench.notes().join(".venv")).status();
    assert!(made.is_ok_and(|made| made.success()), "there is a python3 with venv");
    let mut window = ran_in(&bench);
    shows(&mut window, "Table of cell 1, 50000 rows");
    let cut = "The first 50\u{202f}000 of 150\u{202f}000 rows.";
    shows(&mut window, cut);
    let kept = |window: &Driven| {
        let note = session(window).note(window.state().note().expect("a note")).expect("it is open");
        serde_json::to_value(note.cells().map(|cell| note.latest_execution(cell)).collect::<Vec<_>>()).expect("JSON")
    };
    let before = kept(&window);
    let all = "Show all 150\u{202f}000 rows of Table of cell 1";
    shows(&mut window, all);
    picture(&mut window, "table-first-rows");
    click_label(&mut window, all);
    shows(&mut window, "Table of cell 1, 150000 rows");
    assert!(window.query_by_label(cut).is_none() && window.query_by_label(all).is_none());
    shows(&mut window, "Values of n: 0 to 6");
    click_label(&mut window, "Filter Table of cell 1");
    type_text(&mut window, "n=6");
    until(&mut window, "rows of the whole frame fit", |window| {
        window.query_by_label("21\u{202f}428 of 150\u{202f}000 rows").is_some()
    });
    assert_eq!(kept(&window), before, "nothing of it is kept");
    // Saved are all rows, too.
    click_label(&mut window, "Save output of cell 1");
    let file = bench.folder.path().join("all.csv");
    window.get_by_label("New file").focus();
    window.run();
    press(&mut window, super::CTRL, Key::A);
    type_text(&mut window, &file.display().to_string());
    press(&mut window, NONE, Key::Enter);
    let saved = || std::fs::read_to_string(&file).unwrap_or_default();
    until(&mut window, "it is saved", |_| saved().ends_with("\n149999,3\n"));
    assert!(saved().starts_with(",n\n0,0\n1,1\n") && saved().lines().count() == 150_001, "{}", saved().len());
}

const FORMS: &str = "# Forms

```python
class Page:
    def _repr_html_(self):
        return ('<h2>Head</h2><p>Some <b>bold</b> words<script>alert(1)</script></p>'
                '<table><tr><th>a</th></tr><tr><td>41</td></tr></table>')
Page()
```

```python
class Sea:
    def _repr_svg_(self):
        return ('<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"80\" height=\"40\">'
                '<rect width=\"80\" height=\"40\" fill=\"teal\"/></svg>')
Sea()
```

```python
png = ('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk'
       '+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==')
display({'image/png': png}, raw=True)
display({'application/json': {'deep': {'er': [1, 2]}}}, raw=True)
display({'text/latex': r'\\frac{1}{2}'}, raw=True)
```
";

const PRINTED: &str = "```python
print('\\x1b[31mred\\x1b[0m plain')
print('10 %\\r20 %\\r30 %')
def broken():
    return 1 / 0
broken()
```
";

#[test]
fn each_form_is_drawn() {
    let (_bench, mut window) = ran(FORMS);
    until(&mut window, "the page", |window| window.query_all_by_label_contains("bold").next().is_some());
    assert!(window.query_all_by_label_contains("alert(1)").all(|label| format!("{label:?}").contains("_repr_html_")));
    shows(&mut window, "Picture of cell 2");
    shows(&mut window, "Picture of cell 3");
    picture(&mut window, "forms");
    let note = window.state().note().expect("a note");
    let end = session(&window).note(note).expect("it is open").length();
    window.state_mut().place_caret(end - 5);
    window.run();
    until(&mut window, "the tree", |window| window.query_all_by_label("deep: 1 key").next().is_some());
    click_label(&mut window, "deep: 1 key");
    assert!(window.query_by_label("er: 2 items").is_none(), "it is closed");
    picture(&mut window, "forms-end");
}

#[test]
fn text_has_colours_and_tracebacks_lead_to_lines() {
    let (_bench, mut window) = ran(PRINTED);
    let note = window.state().note().expect("a note");
    shows(&mut window, "red plain\n30 %");
    picture(&mut window, "printed");
    click_label(&mut window, "Line 4 of cell 1");
    let caret = window.state().caret().expect("a caret");
    let text = session(&window).note(note).expect("it is open").text();
    assert!(text[caret..].starts_with("    return 1 / 0"), "{:?}", &text[caret..]);
}

#[test]
fn progress_is_a_bar_and_long_text_is_shown_whole() {
    let note = "```python\nfor n in progress(range(5), title='Rowing'): pass\n```\n\n```python\n\
                for n in range(40_000): print('line', n)\n```\n";
    let (_bench, mut window) = ran(note);
    shows(&mut window, "Progress: 100 %");
    until(&mut window, "its words", |window| {
        window.query_all_by_label_contains("Rowing · 100 % · 5 of 5").next().is_some()
    });
    until(&mut window, "the way to all of it", |window| {
        window.query_all_by_label("Show all of the output of cell 2").next().is_some()
    });
    picture(&mut window, "progress");
    click_label(&mut window, "Show all of the output of cell 2");
    shows(&mut window, "Table of cell 2, 40000 rows");
    click_label(&mut window, "Filter Table of cell 2");
    type_text(&mut window, "39999");
    until(&mut window, "one fits", |window| window.query_all_by_label_contains("1 of 40").next().is_some());
    // The complete output is saved.
    click_label(&mut window, "Save output of cell 2");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("all.txt");
    let field = window.get_by_label("New file");
    field.focus();
    window.run();
    press(&mut window, super::CTRL, Key::A);
    type_text(&mut window, &file.display().to_string());
    press(&mut window, NONE, Key::Enter);
    let saved = || std::fs::read_to_string(&file).unwrap_or_default();
    until(&mut window, "it is saved", |_| saved().ends_with("line 39999\n"));
    assert!(saved().starts_with("line 0\n"), "{}", saved().len());
}

#[test]
fn the_systems_dialog_names_the_file_of_an_output() {
    let (_bench, mut window) = ran("```python\nprint('rain')\n```\n");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("rain.txt");
    let (chosen, proposed) = (file.clone(), Arc::new(Mutex::new(PathBuf::new())));
    let told = proposed.clone();
    window.state_mut().use_new_file_chooser(Arc::new(move |path: &Path| {
        *told.lock().expect("a lock") = path.to_owned();
        PathChoice::Chosen(chosen.clone())
    }));
    let browse = |window: &mut Driven| {
        window.get_by_label("Save output of cell 1").click();
        window.run();
        window.get_by_label("Browse…").click();
    };
    browse(&mut window);
    until(&mut window, "it is saved", |_| std::fs::read_to_string(&file).is_ok_and(|text| text == "rain\n"));
    let name = proposed.lock().expect("a lock").file_name().map(|name| name.to_string_lossy().into_owned());
    assert_eq!(name.as_deref(), Some("Out 1.txt"));
    assert!(window.query_by_label("New file").is_none(), "our own dialog is closed");
    window.state_mut().use_new_file_chooser(Arc::new(|_: &Path| PathChoice::Unavailable));
    browse(&mut window);
    shows(&mut window, "There's no dialog for files on this desktop. Type the path.");
    assert!(window.query_by_label("New file").is_some(), "the path is typed");
}

#[test]
fn a_full_python_is_one_click_away() {
    let (_bench, mut window) = ran("```python\nimport pandas\n```\n");
    shows(&mut window, "This cell needs pandas.");
    click_label(&mut window, "Choose kernel… for cell 1");
    for kind in ["Instant", "Environment"] {
        shows(&mut window, kind);
    }
}

#[test]
fn a_parquet_file_that_the_kernel_cannot_read_offers_an_environment() {
    let query = "```sql\nSELECT * FROM 'data.parquet'\n```\n";
    let bench = Bench::new(&[("Out.md", query), ("data.parquet", "PAR1")]);
    let mut window = ran_in(&bench);
    shows(&mut window, "Add pyarrow to the environment… for cell 1");
    window.get_by_label("Add pyarrow to the environment… for cell 1").click();
    shows(&mut window, "Remove pyarrow");
}

#[test]
fn nothing_hides_in_what_a_cell_prints() {
    let note = "# Out\n\n```python\nprint('a\\u202eb\\u200bc\\x1b[31mred\\x1b[0m')\n```\n\n\
                ```python\nraise ValueError('d\\u202ee')\n```\n";
    let (_bench, mut window) = ran(note);
    shows(&mut window, "a\\u{202e}b\\u{200b}cred");
    shows(&mut window, "ValueError: d\\u{202e}e");
    for bad in ["\u{202e}", "\u{200b}"] {
        assert!(window.query_all_by_label_contains(bad).next().is_none(), "{bad:?}");
    }
}

#[test]
fn a_result_says_its_count_its_time_and_whether_its_kernel_runs() {
    let (_bench, mut window) = ran("```python\nx = 1\n```\n\n```python\nprint(x + 1)\n```\n");
    let caption = |window: &Driven, begin: &str| {
        let found = window.query_all_by_label_contains(begin).map(|node| node.rect().center()).next();
        found.filter(|_| window.query_all_by_label_contains(begin).count() == 1)
    };
    until(&mut window, "the count is shown", |window| caption(window, "[2] ").is_some());
    assert!(caption(&window, "[1] ").is_some());
    let has_time = |window: &Driven| {
        let mut labels = window.query_all_by_label_contains("[2] ").filter_map(|node| {
            let node = node.accesskit_node();
            node.label().or_else(|| node.value())
        });
        labels.any(|label| label.ends_with(" ms") || label.ends_with(" s"))
    };
    assert!(has_time(&window), "how long it took is shown");
    let at = caption(&window, "[2] ").expect("it is shown");
    window.hover_at(at);
    until(&mut window, "its time is told", |window| window.query_all_by_label_contains("Run at ").next().is_some());
    picture(&mut window, "count-now");
    assert!(window.query_all_by_label_contains("From an earlier session").next().is_none());
    let note = window.state().note().expect("a note");
    window.state_mut().send_command(Command::RestartKernel { note });
    until(&mut window, "both are of an earlier session", |window| {
        window.query_all_by_label_contains("earlier, ").count() == 2
    });
    let at = window.query_all_by_label_contains("earlier, ").next().expect("it is shown").rect().center();
    window.hover_at(at);
    until(&mut window, "that's explained", |window| {
        window.query_all_by_label_contains("From an earlier session: run it again").next().is_some()
    });
    picture(&mut window, "count-earlier");
    window.get_by_label("Run cell 1").click();
    until(&mut window, "the new kernel counts anew", |window| caption(window, "[1] ").is_some());
    assert!(window.query_all_by_label_contains("earlier, ").next().is_none(), "the other is out of date now");
}
