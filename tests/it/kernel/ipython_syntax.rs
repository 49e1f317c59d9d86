//! Cells of notebooks that use IPython's syntax and its displays, in the kernels that have no IPython.

use super::Kernel;
use super::note_runs::folder_of;
use crate::program::{House, finish};

/// Runs what notebooks begin with, and what they can't do here. `made` is the folder of the cells.
fn check_syntax(kernel: &mut Kernel, folder: &std::path::Path) {
    assert_eq!(kernel.run("%matplotlib inline\n%load_ext autoreload\nx = [3, 1, 2]\nx"), "[1] [3, 1, 2]\nok");
    assert_eq!(kernel.run("%%time\ny = sorted(x)\ny"), "[2] [1, 2, 3]\nok");
    assert_eq!(kernel.run("%time z = sum(x)\nz"), "[3] 6\nok");
    let timed = kernel.run("%timeit -n 10 len(x)");
    assert!(timed.starts_with("stdout ") && timed.contains(" loops, ") && timed.ends_with("ok"), "{timed}");
    let help = kernel.run("len?");
    assert!(help.contains("len(") && help.ends_with("ok"), "{help}");
    let written = kernel.run("%%writefile made.py\nvalue = 7\n");
    assert!(written.ends_with("ok"), "{written}");
    assert_eq!(std::fs::read_to_string(folder.join("made.py")).expect("a file"), "value = 7\n");
    let html = kernel.run("%%html\n<b>bold</b>");
    assert!(html.contains(r#""text/html":"<b>bold</b>""#) && html.ends_with("ok"), "{html}");

    // What runs before such a line in Jupyter doesn't run here, as with any other syntax error.
    for (code, why, line) in [
        ("w = 1\n!ls", "!ls runs another program, which cells of this kernel can't.", 2),
        ("%%bash\nls", "%%bash runs another program", 1),
        ("!pip install -q polars", "`tracebook kernels env NOTE --add polars`", 1),
        ("%lsmagic", "%lsmagic is a command of IPython. It needs a Jupyter kernel", 1),
    ] {
        let refused = kernel.run(code);
        let place = format!("File \"cell 2\", line {line}");
        assert!(refused.starts_with("SyntaxError: ") && refused.contains(why) && refused.contains(&place), "{refused}");
    }
    assert!(kernel.run("w").starts_with("NameError"));
    // Text that only looks like it, and code that is no Python at all.
    assert!(kernel.run("'''\n!ls\n%time'''").contains("!ls"));
    assert!(kernel.run("x = ?").starts_with("SyntaxError"));
    let deep = kernel.run(&format!("%time 1\n{}", "-".repeat(16_000)));
    assert!(deep.contains("Error"), "{deep:.300}");

    let shown =
        kernel.run("from IPython import display\nfrom IPython.core.display import HTML\ndisplay.display(HTML('<i>'))");
    assert!(shown.contains(r#""text/html":"<i>""#) && shown.ends_with("ok"), "{shown}");
    let updated = kernel.run(
        "from IPython.display import clear_output, display, Markdown, update_display\n\
         handle = display(Markdown('*a*'), display_id=True)\nhandle.update(Markdown('*b*'))\nclear_output(wait=True)",
    );
    for part in ["*a*", "\nupdated {", "*b*", "cleared, wait true"] {
        assert!(updated.contains(part) && updated.ends_with("ok"), "{part}: {updated}");
    }
    assert!(kernel.run("import IPython\nIPython.get_ipython() is None").contains("True"));
}

#[test]
fn the_built_in_python_takes_what_notebooks_begin_with() {
    let folder = tempfile::tempdir().expect("a folder");
    check_syntax(&mut Kernel::start_in(folder.path()), folder.path());
}

#[cfg(target_os = "linux")]
#[test]
fn an_environment_takes_what_notebooks_begin_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut kernel = super::environment::kernel(folder.path());
    check_syntax(&mut kernel, &folder.path().join("notes"));
}

/// Skipped without the pack, as the tutorials are.
#[test]
fn science_takes_what_notebooks_begin_with() {
    let Some(pack) = folder_of("TRACEBOOK_SCIENCE_KERNELS") else { return };
    let note = "```python\n%matplotlib inline\nimport pandas as pd\n```\n\n\
                ```python\n%%time\npd.Series([3, 4]).sum()\n```\n\n\
                ```python\nfrom IPython import display\ndisplay.display(display.HTML('<i>seen</i>'))\n```\n\n\
                ```python\n!ls\n```\n";
    let house = House::with(&[("a.md", note)]);
    let mut command = house.command(&["run", "a.md", "--kernel", "science", "--json"]);
    command.env("TRACEBOOK_KERNELS", &pack);
    let done = finish(command, b"");
    let lines = done.lines();
    let of_cell = |cell: u64| lines.iter().filter(move |line| line["cell"] == cell).map(ToString::to_string);
    assert!(of_cell(2).any(|line| line.contains("7")), "{lines:?}");
    assert!(of_cell(3).any(|line| line.contains("<i>seen</i>")), "{lines:?}");
    assert!(
        of_cell(4).any(|line| line.contains("SyntaxError") && line.contains("!ls runs another program")),
        "{lines:?}"
    );
    assert!(of_cell(1).all(|line| !line.contains("Error")), "{lines:?}");
}
