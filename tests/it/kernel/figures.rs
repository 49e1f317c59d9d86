//! matplotlib in the kernel: drawings cross as data, and the data is drawn as PNG and SVG.

use super::Kernel;
use plot::{Figure, MarkKind};
use serde_json::Value;

/// A Python program that uses every available drawing call. Its picture is docs/figures.png.
const SHEET: &str = include_str!("../../data/figures.py");

/// Runs code. Returns the figures that it shows and the rest of its outcome.
pub(super) fn figures(kernel: &mut Kernel, code: &str) -> (Vec<String>, String) {
    let id = kernel.execute(code);
    let (mut figures, mut rest) = (Vec::new(), String::new());
    loop {
        let message = kernel.message();
        assert_eq!(message["parent_header"]["msg_id"], *id);
        let content = &message["content"];
        match message["header"]["msg_type"].as_str() {
            Some("display_data" | "execute_result") => match content["data"].get(plot::FIGURE_MIME) {
                Some(figure) => figures.push(figure.to_string()),
                None => rest.push_str(content["data"]["text/plain"].as_str().unwrap_or_default()),
            },
            Some("error") => rest.push_str(&format!("{}: {}", content["ename"], content["evalue"])),
            Some("stream") => rest.push_str(content["text"].as_str().unwrap_or_default()),
            _ if content["execution_state"] == "idle" => return (figures, rest),
            _ => {}
        }
    }
}

#[test]
fn every_call_is_drawn() {
    let kernel = &mut Kernel::start();
    let small = SHEET.lines().filter(|line| !line.starts_with("fig.savefig")).collect::<Vec<_>>().join("\n");
    let (all, rest) = figures(kernel, &small.replace("1_000_000", "30_000"));
    assert_eq!((all.len(), rest.as_str()), (1, ""));
    let figure = Figure::from_json(&all[0]).expect("a figure");
    assert_eq!(figure.axes.len(), 20);
    assert!(figure.axes.iter().all(|axes| !axes.marks.is_empty()));
    let marks = figure.axes.iter().flat_map(|axes| &axes.marks);
    let kinds: std::collections::BTreeSet<String> =
        marks.map(|mark| format!("{:?}", mark.kind).split(' ').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(kinds.len(), 11, "{kinds:?}");
    let svg = plot::render_svg(&figure).expect("drawn");
    for words in ["format strings", "a million points", "colorbar", "birch", "time in s", "north", "35%"] {
        assert!(svg.contains(words), "{words}");
    }
    assert!(svg.starts_with("<svg width=\"1600\" height=\"1700\"") && svg.matches("<poly").count() > 100);
    let png = plot::render_png(&figure, 0.25).expect("drawn");
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!((&png[16..20], &png[20..24]), (&400_u32.to_be_bytes()[..], &425_u32.to_be_bytes()[..]));
}

#[test]
fn a_figure_is_shown_once_however_it_is_asked_for() {
    let kernel = &mut Kernel::start();
    for code in [
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])",
        "plt.plot([1, 2])\nplt.show()",
        "fig, ax = plt.subplots()\nax.plot([1, 2])\nfig",
        "fig, ax = plt.subplots()\nax.bar([1, 2], [3, 4])",
        "ax = plt.figure().add_subplot(111)\nax.plot([1, 2])\nplt.title('t');",
    ] {
        let (all, rest) = figures(kernel, code);
        assert_eq!((all.len(), rest.as_str()), (1, ""), "{code}");
    }
    let (all, rest) = figures(kernel, "plt.plot([1, 2])\nplt.show()\nplt.plot([3, 4])\n5");
    assert_eq!((all.len(), rest.as_str()), (2, "5"));
    let (all, rest) = figures(kernel, "plt.plot([1, 2])\n1 / 0");
    assert!(all.len() == 1 && rest.contains("division by zero"), "{rest}");
    assert_eq!(figures(kernel, "2").0.len(), 0, "what failed is not shown again");
}

#[test]
fn what_is_drawn_is_what_was_asked_for() {
    let kernel = &mut Kernel::start();
    let code = "import matplotlib.pyplot as plt\nplt.plot([1, 2, None], [3, 4, 5], 'ro--', label='a', lw=3)\n\
                plt.xlabel('x'); plt.ylabel('y'); plt.title('t'); plt.xlim(0, 9)\n\
                plt.yscale('log'); plt.grid(); plt.legend()";
    let (all, _) = figures(kernel, code);
    let figure = Figure::from_json(&all[0]).expect("a figure");
    let axes = &figure.axes[0];
    let [x, y] = &axes.sides;
    assert_eq!([&axes.title, &x.label, &y.label], ["t", "x", "y"]);
    assert_eq!((x.limits, y.scale.as_str(), x.grid, y.grid), (Some([0.0, 9.0]), "log", true, true));
    assert_eq!(axes.legend.as_ref().map(|legend| legend.place.as_str()), Some("best"));
    let MarkKind::Line { x, color, dash, marker, label, width, .. } = &axes.marks[0].kind else { panic!("{axes:?}") };
    assert!(x.0[2].is_nan());
    assert_eq!([color.as_str(), dash, marker, label], ["#ff0000", "--", "o", "a"]);
    assert!((width - 3.0).abs() < 1e-9);
    for (code, words) in [
        ("plt.barbs", "matplotlib.pyplot.barbs is not in Tracebook's small matplotlib"),
        ("plt.subplots()[1].streamplot", "Axes.streamplot is not in"),
        ("plt.plot([1], fillstyle='full')", "plot: the option 'fillstyle' is not in"),
        ("plt.plot([1], 'q')", "'q' is not a valid format string"),
        ("plt.plot([1, 2], [1])", "x and y must have same first dimension"),
        ("plt.xscale('symlog')", "the scale 'symlog' is not in"),
        ("plt.imshow([[1]], cmap='gnuplot')", "the colormap 'gnuplot' is not in"),
        ("plt.subplot(projection='polar')", "the projection 'polar' is not in"),
        ("import matplotlib.ticker as t\nt.FuncFormatter(str)", "matplotlib.ticker.FuncFormatter is not in"),
        ("plt.style.use('xkcd')", "the style 'xkcd' is not in"),
        ("import matplotlib\nmatplotlib.animation", "matplotlib.animation is not in"),
    ] {
        let (_, rest) = figures(kernel, code);
        assert!(rest.contains(words), "{code}: {rest}");
    }
}

#[test]
fn a_picture_is_written_into_memory() {
    let kernel = &mut Kernel::start();
    let code = "import io\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\npicture = io.BytesIO()\n\
                plt.savefig(picture, format='png', dpi=50, bbox_inches='tight')\nplt.close()\n\
                picture.getvalue()[:8] == b'\\x89PNG\\r\\n\\x1a\\n'";
    let (all, rest) = figures(kernel, code);
    assert_eq!((all.len(), rest.as_str()), (0, "True"), "a closed figure isn't shown");
}

#[test]
fn many_points_cross_whole_and_a_file_holds_the_picture() {
    let folder = tempfile::tempdir().expect("a folder");
    let kernel = &mut Kernel::start_in(folder.path());
    let code = "import matplotlib.pyplot as plt\nimport numpy as np\nfig, ax = plt.subplots(figsize=(3, 2))\n\
                ax.plot(np.sin(np.arange(100_000)))\nfig.savefig('a.png', dpi=50)\nfig.savefig('a.svg')\nfig";
    let (all, rest) = figures(kernel, code);
    assert_eq!(rest, "");
    assert!((1_000_000..1_200_000).contains(&all[0].len()), "{}", all[0].len());
    let figure: Value = serde_json::from_str(&all[0]).expect("JSON");
    let mark = &figure["axes"][0]["marks"][0];
    assert!(mark["x"]["count"] == 100_000 && mark["y"].is_string(), "packed");
    let MarkKind::Line { y, .. } = &Figure::from_json(&all[0]).expect("a figure").axes[0].marks[0].kind else {
        panic!()
    };
    assert_eq!((y.0.len(), y.0[99_999]), (100_000, 99_999_f64.sin()));
    assert!(std::fs::read(folder.path().join("a.png")).expect("written").starts_with(b"\x89PNG"));
    assert!(std::fs::read_to_string(folder.path().join("a.svg")).expect("written").contains("width=\"300\""));
    let (_, rest) = figures(kernel, "fig.savefig('a.pdf')");
    assert!(rest.contains("the format 'pdf' is not in"), "{rest}");
}
