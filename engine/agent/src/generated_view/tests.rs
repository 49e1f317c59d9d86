//! Tests of parsing, rejecting and writing views.

use super::*;
use serde_json::json;

fn source(view: Value) -> String {
    json!({"title": "Loan", "view": view}).to_string()
}

fn refused_with(mut view: Value, key: &str, value: &str) -> String {
    view[key] = json!(value);
    refused(view)
}

fn refused(view: Value) -> String {
    AgentView::parse(&source(view)).expect_err("refused").to_string()
}

#[test]
fn a_view_is_read_and_written_without_a_window() {
    let view = json!({"type": "column", "children": [
        {"type": "text", "text": "Rate {property:rate} % of {variable:sum}, {not bound}", "look": "heading"},
        {"type": "slider", "property": "rate", "from": 0, "to": 10, "step": 0.5, "label": "Rate"},
        {"type": "row", "children": [
            {"type": "table", "rows": {"variable": "rows"}, "columns": ["year", "left"]},
            {"type": "plot", "y": {"variable": "left"}, "title": "What is left"}]},
        {"type": "form", "fields": [{"property": "name"}, {"property": "kind", "choices": ["a", "b"]},
            {"property": "paid", "input": "check"}]},
        {"type": "button", "label": "Work it out", "action": {"command": "note.run_all"}},
        {"type": "button", "label": "Look", "action": {"tool": "shell", "arguments": {"command": "ls"}}}]});
    let view = AgentView::parse(&source(view)).expect("read");
    assert_eq!(view.variable_names(), ["left", "rows", "sum"]);
    assert_eq!(view.buttons().len(), 2);
    let said = view.summary();
    assert!(said.contains("1 text, 1 table, 1 plot, 1 form, 1 slider, 2 buttons"), "{said}");
    assert!(said.contains("kind, name, paid, rate") && said.contains("the tool shell: ls"), "{said}");
    let mut values = ViewValues::from_note("---\nrate: 2.5\npaid: true\n---\n");
    let blank = view.to_markdown(&values);
    assert!(blank.contains("Rate 2.5 % of \u{2013}, {not bound}") || blank.contains("Rate 2.5"), "{blank}");
    assert!(blank.contains("*Variable rows*") && blank.contains("- paid: yes"), "{blank}");
    values
        .variables
        .insert("rows".to_owned(), json!([{"year": 1, "left": 90.25}, {"left": 80, "year": 2, "x": "y|z"}]));
    values.variables.insert("left".to_owned(), json!([90.25, 80]));
    let whole = view.to_markdown(&values);
    assert!(whole.contains("| year | left |\n| ---: | ---: |\n| 1 | 90.25 |\n| 2 | 80 |\n"), "{whole}");
    assert!(whole.contains("| 1 | 90.25 |\n| 2 | 80 |"), "{whole}");

    let note = format!("# A\n\n```view\n{}\n```\n\nbehind\n", source(json!({"type": "text", "text": "one *two*"})));
    let found = view_source(note.split_once("\n\n").map_or("", |(_, rest)| rest.trim_end_matches("\n\nbehind\n")))
        .expect("a view");
    assert_eq!(find_view(&note, source_hash(found)), Some(found));
    assert_eq!(text_with_views(&note), "# A\n\n**Loan**\n\none \\*two\\*\n\nbehind\n");
    assert!(text_with_views("```view\n{\n```\n").contains("This view is not shown: it isn't valid JSON"));
}

#[test]
fn what_is_unknown_too_large_or_too_deep_is_refused_in_a_sentence() {
    let text = json!({"type": "text", "text": "x"});
    assert!(refused(json!({"type": "script", "code": "1"})).contains("there is no \u{201c}script\u{201d}"));
    assert!(
        refused(json!({"type": "text", "text": "x", "onclick": "rm"}))
            .contains("view: a text has no \u{201c}onclick\u{201d}")
    );
    assert!(refused(json!([text])).contains("view is no object"));
    assert!(
        refused(json!({"type": "column", "children": vec![text.clone(); MAX_VIEW_NODES]}))
            .contains("at most 200 nodes")
    );
    let mut deep = text.clone();
    for _ in 0..MAX_VIEW_DEPTH {
        deep = json!({"type": "row", "children": [deep]});
    }
    assert!(refused(deep).contains("inside at most 8"));
    assert!(refused(json!({"type": "text", "text": "x".repeat(5_000)})).contains("view.text is longer than"));
    assert!(refused(json!({"type": "table", "rows": vec![0; 501]})).contains("500 are the most"));
    assert!(refused(json!({"type": "table", "rows": {"variable": "x; import os"}})).contains("names no variable"));
    assert!(refused(json!({"type": "text", "text": "{variable:__import__('os')}"})).contains("names no variable"));
    let slider = |from: f64, to: f64, step: f64| {
        let of = json!({"from": from, "to": to, "step": step, "type": "slider"});
        refused_with(of, "property", "a")
    };
    for (from, to, step) in [(1.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, 1e9, 1e-9)] {
        assert!(slider(from, to, step).contains("a slider goes up"));
    }
    let button = |action: Value| json!({"type": "button", "label": "b", "action": action});
    assert!(refused(button(json!({"command": "trash.empty"}))).contains("note.run_all"));
    assert!(refused(button(json!({"tool": "rm -rf", "arguments": {}}))).contains("no name of a tool"));
    assert!(refused(button(json!({"tool": "shell", "command": "x"}))).contains("has no \u{201c}tool\u{201d}"));
    let why = |source: &str| AgentView::parse(source).expect_err("refused").to_string();
    assert!(why(&" ".repeat(MAX_VIEW_BYTES + 1)).contains("16 kB"));
    assert!(why("{\"view\": {\"type\": \"text\", \"text\": \"x\"}, \"run\": 1}").contains("run"));
    assert!(why("[").starts_with("it isn't valid JSON"));
}

#[test]
fn whatever_a_kernel_says_becomes_rows_and_numbers_within_bounds() {
    let rows = |value: Value| to_grid(&value, &[]).rows;
    assert_eq!(rows(json!(3)), [["3"]]);
    assert_eq!(rows(json!([1, "a", null])), [["1"], ["a"], ["\u{2013}"]]);
    assert_eq!(rows(json!({"a": [1, 2], "b": [true]})), [["1", "yes"], ["2", "\u{2013}"]]);
    assert_eq!(rows(json!({"a": 1.5})), [["a", "1.5"]]);
    let long = to_grid(&json!(vec![vec![0; 100]; 2_000]), &[]);
    assert_eq!((long.rows.len(), long.rows[0].len(), long.more), (500, 30, 1_500));
    assert_eq!(value_text(&json!("x".repeat(1_000))).chars().count(), 201);
    let two = to_curves(Some(&json!(["a", "b"])), &json!({"one": [1, 2], "two": [3, "x", 5]}));
    assert_eq!((two.x.len(), two.labels.len(), two.y.len()), (3, 2, 2));
    assert!(two.y[1].1[1].is_nan());
    assert_eq!(to_curves(None, &json!(vec![0; 20_000])).x.len(), 10_000);
    assert_eq!(to_curves(None, &json!({"mon": 1, "tue": 2})).labels, ["mon", "tue"]);
    assert_eq!(to_curves(None, &json!("x")).y.len(), 1);
}
