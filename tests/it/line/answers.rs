//! What commands print: figures in formats that other programs know, imports that the built-in Python lacks, answers
//! that contain calls.

use super::agents::{Said, house, model};
use crate::program::House;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_plot_is_printed_with_its_pictures() {
    let note = "```python\nimport matplotlib.pyplot as plt\nplt.plot([1, 2, 4])\nplt.show()\n```\n\n\
                ```python\nimport numpy as np\nplt.plot(np.arange(200000) ** 0.5)\nplt.show()\n```\n";
    let house = House::with(&[("a.md", note)]);
    let outputs = house.run(&["run", "a", "--json"]).good().lines();
    let figures: Vec<&Value> = outputs.iter().filter(|output| output["data"]["image/png"].is_string()).collect();
    assert_eq!(figures.len(), 2, "a small figure and one that is a blob: {} outputs", outputs.len());
    for figure in figures {
        let png = figure["data"]["image/png"].as_str().expect("a text");
        assert!(png.starts_with("iVBORw0KGgo") && !png.contains('\n'), "{}", &png[..40.min(png.len())]);
        let svg = figure["data"]["image/svg+xml"].as_str().expect("a text");
        assert!(svg.starts_with("<svg") || svg.starts_with("<?xml"), "{}", &svg[..40.min(svg.len())]);
    }
    assert!(outputs[0]["data"][plot::FIGURE_MIME].is_object() || outputs[0]["data"][plot::FIGURE_MIME].is_string());
    // The kept outputs stay small: they don't contain the picture.
    let kept = house.run(&["outputs", "a", "--json"]).good().text();
    assert!(!kept.contains("iVBORw0KGgo"), "pictures are drawn, not kept");
}

#[test]
fn an_import_that_the_built_in_python_lacks_names_the_way_out() {
    let cells = [
        "import pandas",
        "from sklearn.linear_model import Ridge",
        "import torch.nn",
        "import own.gone",
        "import xml.gone",
        "import lacking",
        "raise ModuleNotFoundError('of my own')",
    ];
    for (at, cell) in cells.iter().enumerate() {
        let house = House::with(&[("a.md", &format!("```python\n{cell}\n```\n"))]);
        house.write("notes/own/__init__.py", b"");
        house.write("notes/lacking.py", b"import polars\n");
        let done = house.run(&["run", "a"]).code(1);
        let (text, last) = (done.text(), done.text().lines().last().unwrap_or_default().to_owned());
        let named = last.contains("the built-in Python doesn't have it") && last.contains("tracebook kernels env NOTE");
        assert_eq!(named, !matches!(at, 3 | 4 | 6), "{cell}: {text}");
        assert!(last.starts_with("ModuleNotFoundError: "), "{cell}: {text}");
        assert!(text.starts_with("Traceback (most recent call last):") && !text.contains("_tracebook"), "{text}");
    }
}

#[test]
fn a_call_in_an_answer_is_no_part_of_what_is_printed() {
    let call = "I will look at the files first.\n\n```tool\n{\"tool\": \"list_files\", \"inputs\": {}}\n```\n";
    let script = move |turn: usize, _: &Value| -> Said {
        match turn {
            0 => (call.to_owned(), Vec::new()),
            1 => ("```tool_call\n{\"name\": \"list_files\", \"arguments\": {}}\n```".to_owned(), Vec::new()),
            _ => ("There is one:\n\n```python\nprint(1)\n```\n\nand `that` is all.".to_owned(), Vec::new()),
        }
    };
    let house = house(&model(script), &[("a.md", "# A\n")]);
    let printed = house.run(&["ask", "how many?"]).code(0).text();
    assert!(!printed.contains("```tool") && !printed.contains("\"list_files\""), "{printed}");
    assert_eq!(printed.matches("I will look at the files first.").count(), 1, "{printed}");
    assert_eq!(printed.matches("› list_files").count(), 2, "{printed}");
    assert_eq!(printed.matches("There is one:").count(), 1, "{printed}");
    assert!(printed.ends_with("```python\nprint(1)\n```\n\nand `that` is all.\n"), "{printed}");
    let steps = house.run(&["ask", "and now?", "--json"]).code(0).lines();
    assert!(steps.iter().any(|step| step["type"] == json!("tool_call")), "{steps:?}");
}

#[test]
fn a_call_by_name_in_the_text_runs_and_other_objects_are_printed() {
    let named = "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.md\"}}";
    let other = "{\"name\": \"Ada\", \"born\": 1815}\nWrite {\"tool\": \"hammer\"} for a hammer.";
    for call in [named.to_owned(), format!("I look.\n<tool_call>\n{named}\n</tool_call>")] {
        let script = move |turn: usize, body: &Value| -> Said {
            match turn {
                0 => (call.clone(), Vec::new()),
                _ => {
                    let was_read = body.to_string().contains("planted");
                    (if was_read { format!("Here:\n{other}") } else { "It came to nothing.".to_owned() }, Vec::new())
                }
            }
        };
        let house = house(&model(script), &[("a.md", "planted\n")]);
        let said = house.run(&["ask", "who was Ada?"]).good().text();
        assert!(said.contains(&format!("Here:\n{other}\n")) && !said.contains("tool_call>"), "{said}");
        let steps = house.run(&["steps", "last", "--json"]).good().lines();
        assert!(steps.iter().any(|step| step["toolName"] == "read_file"), "{steps:?}");
    }
}

#[test]
fn reasoning_in_tags_is_no_part_of_the_answer() {
    let words = "<think>\nThe user wants a number.\n</think>\n\nIt is 42.";
    let house = house(&model(move |_, _| (words.to_owned(), Vec::new())), &[("a.md", "# A\n")]);
    let steps = house.run(&["ask", "which number?", "--json"]).good().lines();
    let of = |kind: &str| -> Vec<&Value> { steps.iter().filter(|step| step["type"] == kind).collect() };
    assert_eq!(of("final_answer")[0]["content"], "It is 42.", "{steps:?}");
    let reasoned = of("thinking").iter().any(|step| step["content"] == "The user wants a number.\n");
    assert!(reasoned, "{steps:?}");
    let shown = house.run(&["sessions", "--json"]).good().lines()[0]["id"].as_str().expect("an id").to_owned();
    assert!(!house.run(&["sessions", &shown]).good().text().contains("think>"));
}

#[test]
fn a_model_whose_calls_can_never_be_read_is_made_to_answer() {
    let count = Arc::new(AtomicUsize::new(0));
    let calls = count.clone();
    let script = move |_: usize, body: &Value| -> Said {
        calls.fetch_add(1, Ordering::SeqCst);
        let has_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        let broken = "```tool\n{\"tool\": \"read_file\", \"inputs\": {\"path\": }}\n```";
        let words = if has_tools { broken } else { "I can't read the note." };
        (words.to_owned(), Vec::new())
    };
    let house = house(&model(script), &[("a.md", "# A\n")]);
    let said = house.run(&["ask", "read the note a"]).code(0);
    assert!(said.text().contains("I can't read the note."), "{said:?}");
    assert_eq!(said.err.matches("could not be read").count(), 4, "{said:?}");
    assert_eq!(count.load(Ordering::SeqCst), 5, "four attempts, and the answer");
}

#[test]
fn a_model_is_told_of_a_call_that_cannot_be_read_beside_a_good_one() {
    let script = |turn: usize, body: &Value| -> Said {
        let good = "```tool\n{\"tool\": \"read_file\", \"inputs\": {\"path\": \"a.md\"}}\n```";
        let broken = "```tool\n{\"tool\": \"read_file\", \"inputs\": {\"path\": }}\n```";
        let messages = body["messages"].to_string();
        let words = match turn {
            0 => format!("{good}\n\n{broken}\n"),
            _ if messages.contains("Kale") && messages.contains("could not be read") => "I know of both.".to_owned(),
            _ => "I know of one.".to_owned(),
        };
        (words, Vec::new())
    };
    let house = house(&model(script), &[("a.md", "# Kale\n")]);
    let said = house.run(&["ask", "read the notes"]).code(0);
    assert!(said.text().contains("I know of both."), "{said:?}");
    assert_eq!(said.err.matches("could not be read").count(), 1, "{said:?}");
}

#[test]
fn an_empty_answer_is_asked_for_once_more() {
    for (empty_answers, code) in [(1, 0), (2, 1)] {
        let count = Arc::new(AtomicUsize::new(0));
        let calls = count.clone();
        let script = move |_: usize, _: &Value| -> Said {
            let is_empty = calls.fetch_add(1, Ordering::SeqCst) < empty_answers;
            (if is_empty { "" } else { "Here it is." }.to_owned(), Vec::new())
        };
        let house = house(&model(script), &[("a.md", "# A\n")]);
        let said = house.run(&["ask", "read the note a"]).code(code);
        assert_eq!(count.load(Ordering::SeqCst), 2, "{said:?}");
        assert_eq!(said.text().contains("Here it is."), code == 0, "{said:?}");
        let run = house.run(&["runs", "--json"]).good().lines().remove(0);
        assert_eq!(run["standing"] == "failed", code == 1, "{run}");
        if code == 1 {
            assert!(said.err.contains("answer was empty") && said.err.contains("Ask again"), "{}", said.err);
        }
    }
}

#[test]
fn options_for_one_thing_are_refused_without_its_name() {
    let script = |_: usize, _: &Value| -> Said { ("Done.".to_owned(), Vec::new()) };
    let house = house(&model(script), &[("a.md", "# A\n")]);
    house.run(&["ask", "read the note a"]).good();
    for option in ["--stop", "--resume", "--undo", "--redo", "--result", "--export", "--change=1"] {
        house.run(&["runs", option]).refused(2, "say which run");
    }
    house.run(&["runs", "--import", "x.json"]).refused(2, "say into which session");
    for option in ["--more=3", "--budget=1", "--no-wait"] {
        house.run(&["runs", "last", option]).refused(2, "need --resume");
    }
    for option in ["--allow", "--deny", "--scope=run", "--comment=no"] {
        house.run(&["approvals", option]).refused(2, "say which approval");
    }
    let session = house.run(&["sessions", "--json"]).good().lines()[0]["id"].as_str().expect("an id").to_owned();
    let elsewhere = ["ask", "and then?", "--session", &session, "--from", "0123456789abcdef"];
    house.run(&elsewhere).refused(2, "no message 0123456789abcdef");
    for option in ["--fork=0123456789abcdef", "--into=0123456789abcdef", "--title=x", "--delete"] {
        house.run(&["sessions", option]).refused(2, "say which session");
    }
}
