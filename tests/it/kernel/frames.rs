//! Data frames in the kernel of an environment: what each library's types look like in the CSV that the window's table
//! and `run --save` read.

use super::Kernel;
use super::note_runs::folder_of;
use serde_json::{Value, json};
use std::path::Path;

const SHOW: &str = "import datetime as dt, decimal\nfrom IPython.display import display\n\
                    day, length, cost = dt.date(2026, 1, 2), dt.timedelta(hours=30), decimal.Decimal('1.10')\n\
                    moment = dt.datetime(2026, 1, 2, 3, 4, 5)";

/// A kernel in the environment of this variable, with some values for frames.
fn kernel_in(variable: &str, folder: &Path) -> Option<Kernel> {
    let python = folder_of(variable)?.join("bin/python");
    let notes = folder.join("notes");
    std::fs::create_dir(&notes).expect("made");
    let mut kernel = Kernel::with(&["kernel".as_ref(), "--environment".as_ref(), &python], &notes);
    assert_eq!(kernel.run(SHOW), "ok");
    Some(kernel)
}

/// Shows a frame. Returns its CSV and the CSV's metadata.
fn shown(kernel: &mut Kernel, frame: &str) -> (String, Value) {
    let asked = kernel.execute(&format!("display({frame})"));
    let messages = std::iter::repeat_with(|| kernel.message());
    let of_cell = |message: &Value| message["parent_header"]["msg_id"] == asked.as_str();
    let ends = |message: &Value| of_cell(message) && message["content"]["execution_state"] == "idle";
    let mut found = (String::new(), Value::Null);
    for message in messages.take_while(|message| !ends(message)) {
        let content = &message["content"];
        if let Some(csv) = content["data"]["text/csv"].as_str() {
            found = (csv.to_owned(), content["metadata"]["text/csv"].clone());
        }
        assert_ne!(message["header"]["msg_type"], "error", "{frame}: {message}");
    }
    found
}

/// Fetches a shown frame's rows from this one on. Returns their CSV and their number.
fn rows_from(kernel: &mut Kernel, about: &Value, first: usize) -> (String, u64) {
    kernel.send("frame_rows_request", json!({"frame": about["frame"], "first": first}));
    let mut messages = std::iter::repeat_with(|| kernel.message());
    let reply = messages.find(|message| message["header"]["msg_type"] == "frame_rows_reply").expect("a reply");
    let frame = &reply["content"]["frame"];
    (frame["csv"].as_str().unwrap_or_default().to_owned(), frame["rows"].as_u64().unwrap_or_default())
}

#[test]
fn tables_of_pyarrow_are_shown_with_all_their_types() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut kernel) = kernel_in("TRACEBOOK_PARQUET_ENVIRONMENT", folder.path()) else { return };
    assert_eq!(kernel.run("import pyarrow as pa"), "ok");
    for (column, cell) in [
        ("[1, None]", "1"),
        ("[1e-20, None]", "1e-20"),
        ("[True, None]", "true"),
        ("['x, \"y\"', None]", r#""x, ""y""""#),
        ("pa.array(['long', None], pa.large_string())", r#""long""#),
        ("pa.array(['category', None]).dictionary_encode()", r#""category""#),
        ("[cost, None]", "1.10"),
        ("[day, None]", "2026-01-02"),
        ("[moment, None]", "2026-01-02 03:04:05.000000"),
        ("pa.array([moment, None], pa.timestamp('s', 'Europe/Berlin'))", "2026-01-02 04:04:05+0100"),
        ("[length, None]", r#""1 days 06:00:00""#),
        ("pa.array([-1500, None], pa.duration('ms'))", r#""-1 days +23:59:58.500""#),
        ("[[1, 2], None]", r#""[1, 2]""#),
        ("[{'a': cost, 'b': 'é'}, None]", r#""{""a"": ""1.10"", ""b"": ""é""}""#),
        ("[b'a\\xff', None]", r#""b'a\xff'""#),
    ] {
        let (csv, about) = shown(&mut kernel, &format!("pa.table({{'c': {column}, 'n': [1, 2]}})"));
        assert_eq!((csv, about), (format!("\"c\",\"n\"\n{cell},1\n,2\n"), Value::Null), "{column}");
    }
    assert_eq!(shown(&mut kernel, "pa.record_batch({'n': [1]})").0, "\"n\"\n1\n");
    // A million rows come in pieces, each once.
    assert_eq!(kernel.run("large = pa.table({'n': range(1_000_000), 'list': [[7]] * 1_000_000})"), "ok");
    let (csv, about) = shown(&mut kernel, "large");
    assert_eq!((csv.lines().count(), &about["rows"], &about["all_rows"]), (33_334, &json!(33_333), &json!(1_000_000)));
    let (csv, rows) = rows_from(&mut kernel, &about, 0);
    assert!(csv.starts_with("\"n\",\"list\"\n0,\"[7]\"\n") && rows > 10_000, "{rows}: {csv:.100}");
    let (next, _) = rows_from(&mut kernel, &about, usize::try_from(rows).expect("a count"));
    assert!(next.starts_with(&format!("{rows},\"[7]\"\n")), "{next:.100}");
}

#[test]
fn frames_of_polars_are_shown_with_types_that_csv_lacks() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut kernel) = kernel_in("TRACEBOOK_PARQUET_ENVIRONMENT", folder.path()) else { return };
    assert_eq!(kernel.run("import polars as pl"), "ok");
    for (column, cell) in [
        ("['category', None]", "category"),
        ("[cost, None]", "1.10"),
        ("[day, None]", "2026-01-02"),
        ("[length, None]", "1 days 06:00:00"),
        ("[[1, 2], None]", r#""[1, 2]""#),
        ("[{'a': 1, 'b': None}, None]", r#""{""a"": 1, ""b"": null}""#),
        ("[b'a\\xff', None]", r"b'a\xff'"),
    ] {
        let (csv, _) = shown(&mut kernel, &format!("pl.DataFrame({{'c': {column}, 'n': [1, 2]}})"));
        assert_eq!(csv, format!("c,n\n{cell},1\n,2\n"), "{column}");
    }
}

#[test]
fn frames_of_pandas_are_shown_with_levels_of_names_and_long_texts() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut kernel) = kernel_in("TRACEBOOK_TUTORIALS_ENVIRONMENT", folder.path()) else { return };
    let sales = "import pandas as pd\ndays = pd.to_datetime([day] * 3)\n\
                 sales = pd.DataFrame({'city': ['N', 'S', 'S'], 'price': [1.5, 2, 4], 'day': days})\n\
                 class Places(pd.DataFrame): pass";
    assert_eq!(kernel.run(sales), "ok");
    let levels = shown(&mut kernel, "sales.groupby('city').agg({'price': ['mean', 'max'], 'day': ['min']})").0;
    assert_eq!(levels, "city,price_mean,price_max,day_min\nN,1.5,1.5,2026-01-02\nS,3.0,4.0,2026-01-02\n");
    assert_eq!(shown(&mut kernel, "Places({'n': [1]})").0, ",n\n0,1\n", "a subclass, as those of other packages");
    // Fewer rows of long texts, and the others on demand.
    assert_eq!(kernel.run("long = pd.DataFrame({'text': ['x' * 20_000] * 20_000})"), "ok");
    let (csv, about) = shown(&mut kernel, "long");
    assert_eq!((&about["rows"], &about["all_rows"]), (&json!(125), &json!(20_000)));
    assert_eq!(csv.lines().count(), 126);
    let (csv, rows) = rows_from(&mut kernel, &about, 125);
    assert!(rows > 100 && csv.starts_with("125,xxx") && csv.len() <= 4 << 20, "{rows}: {csv:.100}");
}
