//! Figures and data frames of a Jupyter kernel are native, as in our own kernels.
//!
//! `TRACEBOOK_JUPYTER_PACKAGES` names a Python that has ipykernel, matplotlib and pandas; otherwise the Python of the
//! other ipykernel tests is tried. If it lacks them, these tests say so and are skipped; with `TRACEBOOK_CI=1` they
//! must be there.

use crate::program::House;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;

const FIGURE: &str = "application/vnd.tracebook.figure+json";
/// The MIME types of a native figure; the program adds SVG.
const NATIVE: [&str; 4] = [FIGURE, "image/png", "image/svg+xml", "text/plain"];
const PLOT: &str = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nNone";

fn python() -> Option<PathBuf> {
    let named = std::env::var_os("TRACEBOOK_JUPYTER_PACKAGES").or_else(|| std::env::var_os("TRACEBOOK_IPYKERNEL"));
    let python = named.map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let tried = Command::new(&python).args(["-c", "import ipykernel, matplotlib, pandas"]).output();
    let has = tried.is_ok_and(|done| done.status.success());
    if !has {
        let ci = std::env::var_os("TRACEBOOK_CI").is_some();
        assert!(!ci, "ipykernel, matplotlib and pandas must be there with TRACEBOOK_CI: {}", python.display());
        eprintln!("left out: {} lacks ipykernel, matplotlib or pandas", python.display());
    }
    has.then_some(python)
}

/// The outputs of each cell, in a note that runs in the Jupyter kernel. `None` without such a Python.
fn shown(cells: &[&str]) -> Option<Vec<Vec<Value>>> {
    let python = python()?;
    let fences = cells.iter().map(|code| format!("```python\n{code}\n```\n\n")).collect::<String>();
    let house = House::with(&[("Note.md", &fences)]);
    let spec = house.path(".local/share/jupyter/kernels/own/kernel.json");
    std::fs::create_dir_all(spec.parent().expect("a folder")).expect("made");
    let argv = json!([python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]);
    let text = json!({"argv": argv, "display_name": "Own Python", "language": "python"}).to_string();
    std::fs::write(&spec, text).expect("written");
    let done = house.run(&["run", "Note.md", "--kernel", "own", "--json"]).good();
    let lines = done.lines();
    let of = |cell: usize| lines.iter().filter(move |line| line["cell"] == cell + 1).cloned().collect();
    Some((0..cells.len()).map(of).collect())
}

/// The MIME types in which a cell shows figures and tables, sorted.
fn forms(outputs: &[Value]) -> Vec<&str> {
    let keys = outputs.iter().filter_map(|output| output["data"].as_object()).flat_map(|data| data.keys());
    let mut forms: Vec<&str> = keys.map(String::as_str).collect();
    forms.sort_unstable();
    forms
}

#[test]
fn figures_and_frames_are_native_and_the_setup_is_unseen() {
    let cells = [
        "import os, sys\nloaded = [name for name in ('matplotlib', 'pandas', 'tracebook_backend') if name in \
         sys.modules]\nprint(loaded, os.environ['MPLBACKEND'], len(In))\n\
         print([name for name in globals() if name[0] != '_'])",
        PLOT,
        "figure, axes = plt.subplots()\nfigure",
        "import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})",
        "pd.DataFrame({'n': range(60_000)})",
        "class Broken(plt.Line2D):\n    def draw(self, renderer): raise ValueError('not drawn')\n\
         plt.gca().add_line(Broken([0, 1], [0, 1]))\n\
         try:\n    plt.show()\nexcept ValueError as error:\n    print(error, plt.get_fignums())",
    ];
    let Some(cells) = shown(&cells) else { return };
    let printed = cells[0][0]["text"].as_str().expect("text");
    let names = "['In', 'Out', 'get_ipython', 'exit', 'quit', 'open', 'os', 'sys', 'loaded']\n";
    // `len(In)` counts an empty entry before the first cell.
    assert_eq!(printed, format!("[] module://matplotlib_inline.backend_inline 2\n{names}"));
    for (outputs, kind) in [(&cells[1], "display_data"), (&cells[2], "execute_result")] {
        assert_eq!(forms(outputs), NATIVE, "{outputs:?}");
        assert_eq!(outputs[0]["output_type"], kind, "{outputs:?}");
        let figure = &outputs[0]["data"][FIGURE];
        assert!(figure["display_list"]["ops"].as_array().is_some_and(|all| all.len() > 10), "{figure}");
    }
    assert_eq!(forms(&cells[3]), ["text/csv", "text/html", "text/plain"], "{:?}", cells[3]);
    assert_eq!(cells[3][0]["data"]["text/csv"], ",a,b\n0,1,x\n1,2,y\n");
    let cut = cells[4].iter().find_map(|output| output["metadata"]["text/csv"].as_object()).expect("it says so");
    assert_eq!((&cut["rows"], &cut["all_rows"]), (&json!(50_000), &json!(60_000)));
    assert_eq!(cells[5][0]["text"], "not drawn []\n", "one that can't be drawn isn't tried again");
}

#[test]
fn a_backend_that_the_user_chooses_wins() {
    let Some(cells) = shown(&["%matplotlib inline", PLOT]) else { return };
    assert_eq!(forms(&cells[1]), ["image/png", "text/plain"], "{cells:?}");
    let late = ["import matplotlib.pyplot as plt\nplt.plot([1])\nNone", "%matplotlib inline\nplt.plot([1])\nNone"];
    let agg = "plt.switch_backend('agg')\nplt.plot([1])\nplt.get_fignums()";
    let cells = shown(&[late[0], late[1], agg]).expect("as above");
    assert_eq!(forms(&cells[0]), NATIVE, "{cells:?}");
    assert_eq!(forms(&cells[1]), ["image/png", "text/plain"], "{cells:?}");
    assert_eq!(forms(&cells[2]), ["text/plain"], "{cells:?}");
    assert_eq!(cells[2][0]["data"]["text/plain"], "[1]", "nothing closes a figure of theirs");
}

#[test]
fn a_matplotlib_that_works_differently_is_drawn_as_before() {
    // matplotlib lacks a class that the backend needs at the time of its import.
    let other = "import matplotlib.backends.backend_agg, matplotlib.backend_bases as bases\n\
                 kept = bases.RendererBase\ndel bases.RendererBase\nimport matplotlib.pyplot as plt\nplt.figure()\n\
                 bases.RendererBase = kept\nplt.plot([1, 2])\nNone";
    let Some(cells) = shown(&[other, PLOT, "plt.get_fignums()"]) else { return };
    for outputs in &cells[..2] {
        assert_eq!(forms(outputs), ["image/png", "text/plain"], "{outputs:?}");
    }
    assert_eq!(cells[2][0]["data"]["text/plain"], "[]");
}
