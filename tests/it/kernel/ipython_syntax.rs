//! Cells of notebooks that use IPython's syntax and its displays, in the kernels that have no IPython.

use super::Kernel;
use super::note_runs::{NOTE_TIMEOUT, folder_of};
use crate::program::{House, finish, finish_within};
use serde_json::json;

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

/// Runs what notebooks guard, set up and start.
fn check_programs(kernel: &mut Kernel, folder: &std::path::Path) {
    let guarded = kernel.run(
        "import sys\nif 'google.colab' in sys.modules or 'google.colab' in str(get_ipython()):\n    \
         !pip install nothing\n    files = !ls\n    %lsmagic\nelse:\n    here = 1\nhere",
    );
    assert_eq!(guarded, "[1] 1\nok");
    let reached = kernel.run("try:\n    import nothing_such\nexcept ImportError:\n    !pip install nothing-such");
    assert!(reached.starts_with("SyntaxError: Cells can't install packages."), "{reached}");
    assert!(reached.contains("--add nothing-such") && reached.contains("File \"cell 2\", line 4"), "{reached}");
    let there = kernel.run("!{sys.executable} -m pip install -q pip==24.0 wheel\nhere + 1");
    assert_eq!(there, "stdout Already installed: pip==24.0 wheel\n\n[3] 2\nok");
    assert_eq!(kernel.run("%matplotlib inline\nfrom __future__ import annotations\nimport json"), "ok");

    std::fs::write(folder.join("script.py"), "import sys\ngiven = sys.argv[1:], __name__\n").expect("written");
    assert_eq!(kernel.run("%run script.py a b\ngiven"), "[5] (['a', 'b'], '__main__')\nok");
    let names = kernel.run("%who");
    assert!(names.contains("given\there") && names.ends_with("ok"), "{names}");
    let timed = kernel.run("%%timeit -n 3 numbers = [1]\nlen(numbers)");
    assert!(timed.contains(" loops, ") && timed.ends_with("ok"), "{timed}");
    let captured =
        "%%capture kept --no-stderr\nimport sys\nprint('out')\nsys.stderr.write('err')\ndisplay('shown')\nmade = 1";
    assert_eq!(kernel.run(captured), "stderr err\nok");
    assert_eq!(kernel.run("kept.stdout, made, len(kept.outputs)"), "[9] ('out\\n', 1, 1)\nok");
    assert_eq!(kernel.run("kept.show()"), "stdout out\n\ndisplay {\"text/plain\":\"'shown'\"}\nok");
    let failed = kernel.run("%%capture\nprint('lost')\n1 / 0");
    assert!(failed.starts_with("ZeroDivisionError") && failed.contains("File \"cell 2\", line 3"), "{failed}");
    assert_eq!(kernel.run("print('seen')"), "stdout seen\n\nok");
    assert!(kernel.run("%reset -f\n1").ends_with("1\nok"));
    assert!(kernel.run("given").starts_with("NameError"));

    let shell = "from IPython.core.interactiveshell import InteractiveShell\nInteractiveShell.ast_node_interactivity";
    assert_eq!(kernel.run(&format!("{shell} = 'all'")), "ok");
    let all = kernel.run("x = 1\nx\nx + 1;\nif x:\n    5\n'a'\n(x,\n 2)\nx + 3");
    let shown =
        ["display {\"text/plain\":\"1\"}", "display {\"text/plain\":\"'a'\"}", "display {\"text/plain\":\"(1, 2)\"}"];
    assert_eq!(all, format!("{}\n[16] 4\nok", shown.join("\n")));
    let failed = kernel.run("x\n1 / 0");
    assert!(failed.contains("ZeroDivisionError") && failed.contains("File \"cell 2\", line 2"), "{failed}");
    assert_eq!(kernel.run(&format!("{shell} = 'last_expr'")), "ok");
    assert_eq!(kernel.run("x\nx"), "[19] 1\nok");

    let shown = kernel.run(
        "import IPython\nfrom IPython.display import Audio, Code, FileLink, IFrame, Image, display, display_html\n\
         display(IPython.lib.display.YouTubeVideo('abc', start=5), IFrame('https://example.org', 9, 9))\n\
         display(Audio([0, 0.5, -1], rate=8000), Code('a < b'), FileLink('script.py'))\n\
         display(Image('https://example.org/a.png', width=9))\ndisplay_html('<b>raw</b>', raw=True)",
    );
    for part in [
        "https://www.youtube.com/watch?v=abc&amp;start=5",
        "<a href=\\\"https://example.org\\\">",
        "<audio controls src=\\\"data:audio/wav;base64,UklGRi",
        "<pre><code>a &lt; b</code></pre>",
        ">script.py</a>",
        "<img src=\\\"https://example.org/a.png\\\" width=\\\"9\\\"/>",
        "{\"text/html\":\"<b>raw</b>\"}",
    ] {
        assert!(shown.contains(part) && shown.ends_with("ok"), "{part}: {shown}");
    }
}

#[test]
fn the_built_in_python_takes_what_notebooks_begin_with() {
    let folder = tempfile::tempdir().expect("a folder");
    check_syntax(&mut Kernel::start_in(folder.path()), folder.path());
}

#[test]
fn the_built_in_python_takes_what_notebooks_guard_and_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let kernel = &mut Kernel::start_in(folder.path());
    check_programs(kernel, folder.path());
    let drawn = kernel.run("%pylab inline\nplot([1, 2])\nfloat(mean([1, 3])), len(randn(3)), np.pi > 3, max(1, 2)");
    assert!(drawn.contains("vnd.tracebook.figure+json") && drawn.ends_with("(2.0, 3, True, 2)\nok"), "{drawn}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_environment_takes_what_notebooks_begin_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut kernel = super::environment::kernel(folder.path());
    check_syntax(&mut kernel, &folder.path().join("notes"));
}

#[cfg(target_os = "linux")]
#[test]
fn an_environment_takes_what_notebooks_guard_and_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut kernel = super::environment::kernel(folder.path());
    check_programs(&mut kernel, &folder.path().join("notes"));
    // Statements from `__future__` may come later, as in IPython.
    assert!(kernel.run("import json\nfrom __future__ import annotations\njson.dumps(1)").ends_with("'1'\nok"));
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

/// Skipped without the pack, as the tutorials are.
#[test]
fn science_shows_lists_of_formulas_and_says_that_it_has_no_threads() {
    let Some(pack) = folder_of("TRACEBOOK_SCIENCE_KERNELS") else { return };
    let run = |note: &str| {
        let house = House::with(&[("a.md", note)]);
        let mut command = house.command(&["run", "a.md", "--kernel", "science", "--json", "--timeout", "0"]);
        command.env("TRACEBOOK_KERNELS", &pack);
        finish_within(command, b"", NOTE_TIMEOUT).lines()
    };
    let note = "```python\nfrom sympy import *\ninit_printing()\nx = symbols('x')\nsolve(x**2 - 2, x)\n```\n\n\
                ```python\n[1, 'a']\n```\n\n\
                ```python\nimport asyncio\nasync def wait(value):\n    await asyncio.sleep(0.01)\n    return value\n\
                await wait(1)\n```\n\n\
                ```python\nasyncio.run(wait(2))\n```\n\n\
                ```python\n%pylab inline\nmean(array([1, 3])), randn(2).shape, max(1, 2)\n```\n\n\
                ```python\nplot([1, 2])\nshow(gcf())\n```\n";
    let lines = run(note);
    let of_cell = |cell: u64| {
        lines.iter().find(|line| line["cell"] == cell).unwrap_or_else(|| panic!("nothing of {cell}: {lines:?}"))
    };
    let formula = "$\\displaystyle \\left[ - \\sqrt{2}, \\  \\sqrt{2}\\right]$";
    assert_eq!(of_cell(1)["data"]["text/latex"], formula);
    assert_eq!(of_cell(2)["data"]["text/plain"], "[1, 'a']");
    assert!(of_cell(2)["data"]["text/latex"].is_null());
    // The first output: nothing complains about sockets.
    assert_eq!((&of_cell(3)["data"]["text/plain"], &of_cell(4)["data"]["text/plain"]), (&json!("1"), &json!("2")));
    assert!(of_cell(5).to_string().contains("(2,), 2)"), "{lines:?}");
    // As Jupyter's backend, `show` ignores a figure.
    assert!(of_cell(6)["data"]["image/png"].is_string(), "{lines:?}");
    // A failed cell ends the run of a note.
    for (cell, said) in [
        (
            "import threading\nthreading.Thread(target=print).start()",
            "can't start new thread (Science has no threads; ",
        ),
        ("import ssl", "Science doesn't have this part"),
    ] {
        let lines = run(&format!("```python\n{cell}\n```\n"));
        let words = lines.iter().find_map(|line| line["evalue"].as_str()).expect("an error");
        assert!(words.contains(said), "{words}");
    }
}
