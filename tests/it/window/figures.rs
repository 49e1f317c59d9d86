//! Figures in the window: drawn below their cell, with accessible names, in both themes.

use super::{Bench, CTRL_SHIFT, Driven, NONE, click_label, pictures_folder, press, session, until};
use crate::kernel::plots::calls;
use egui::{Key, Modifiers, Pos2, vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use engine::Command;

const NOTE: &str = "# Plots

```python
import matplotlib.pyplot as plt
x = [at / 10 for at in range(100)]
fig, ax = plt.subplots(1, 2, figsize=(7, 3))
ax[0].fill_between(x, [at * 0.5 for at in x], [at + 1 for at in x])
ax[0].plot(x, x, 'o--', label='a line')
ax[0].legend()
ax[0].set_title('Rain')
ax[0].set_ylabel('millimetres')
ax[1].bar(['ash', 'fir'], [2, 3])
ax[1].set_title('Trees')
```

After the figure.
";

#[test]
fn a_figure_stands_below_its_cell() {
    let bench = Bench::new(&[("Plots.md", NOTE)]);
    let mut window = bench.opened();
    until(&mut window, "the note is shown", |window| window.state().note().is_some());
    let note = window.state().note().expect("a note is shown");
    until(&mut window, "the note is read", |window| session(window).note(note).is_some_and(|note| note.is_settled()));
    let before = window.query_by_label_contains("After the figure").map(|below| below.rect().top());
    window.state_mut().send_command(Command::RunAll { note });
    until(&mut window, "the cell has run", |window| {
        let note = session(window).note(note).expect("the note is open");
        note.cells().all(|cell| note.latest_execution(cell).is_some_and(|run| run.status.is_final()))
    });
    until(&mut window, "the figure is shown", |window| window.query_by_label("Figure: Rain, Trees").is_some());
    let figure = window.get_by_label("Figure: Rain, Trees").rect();
    assert!((figure.width() / figure.height() - 7.0 / 3.0).abs() < 0.05 && figure.width() > 400.0, "{figure:?}");
    if let (Some(before), Some(below)) = (before, window.query_by_label_contains("After the figure")) {
        assert!(below.rect().top() >= figure.bottom() && below.rect().top() > before, "{figure:?}");
    }
    let Some(folder) = pictures_folder() else { return };
    for theme in ["light", "dark"] {
        press(&mut window, CTRL_SHIFT, Key::L);
        window.run_steps(4);
        window.render().expect("a picture").save(folder.join(format!("{theme}-figure.png"))).expect("a file");
    }
}

/// A window on a note with one cell, after its figure has been drawn.
fn shown(code: &str, label: &str) -> (Bench, Driven) {
    let text = format!("```python\nimport matplotlib.pyplot as plt\n{code}\n```\n\n{}", "Below.\n\n".repeat(60));
    let bench = Bench::new(&[("Plot.md", &text)]);
    let mut window = bench.opened();
    let note = window.state().note().expect("a note is shown");
    window.state_mut().send_command(Command::RunAll { note });
    until(&mut window, "the figure is drawn", |window| {
        window.query_by_label(label).is_some() && window.state().figures() > 0
    });
    (bench, window)
}

#[test]
fn figures_that_ask_for_too_much_are_named_with_the_reason() {
    let code = "import json
kind = 'application/vnd.tracebook.figure+json'
def show(place, marks):
    figure = {'width': 200, 'height': 100, 'axes': [{'place': place, 'marks': marks}]}
    display({kind: json.dumps(figure)}, raw=True, metadata={kind: {'width': 200, 'height': 100}})
even = {'start': 0, 'step': 1, 'count': 19_000_000}
line = {'kind': 'line', 'x': even, 'y': even, 'color': 'C0', 'width': 1, 'dash': '-', 'marker': '', 'size': 6,
        'alpha': 1, 'label': ''}
word = {'kind': 'text', 'x': 0.5, 'y': 0.5, 'text': 'W', 'color': 'C0', 'size': 1e6, 'h': 'center', 'v': 'center',
        'arrow': None, 'inside': True}
show([0, 0, 1, 1], [line] * 200)
show([-1e300, 0, 1e300, 1], [line] * 0)
show([0, 0, 1, 1], [word])";
    let bench = Bench::new(&[("Plot.md", &format!("```python\n{code}\n```\n"))]);
    let mut window = bench.opened();
    let note = window.state().note().expect("a note is shown");
    window.state_mut().send_command(Command::RunAll { note });
    until(&mut window, "two are refused and one is drawn", |window| {
        let says = |words: &str| window.query_by_label_contains(words).is_some();
        says("evenly spaced numbers is too large") && says("far outside") && window.state().figures() > 0
    });
}

#[test]
fn a_figure_of_matplotlib_is_shown_and_zoomed() {
    let list = include_str!("../../data/matplotlib/bar.json");
    let code = "class Figure:\n    def _repr_mimebundle_(self, **options):\n        \
                return {'application/vnd.tracebook.figure+json': open('bar.json').read()}\n\nFigure()";
    let bench = Bench::new(&[("Plot.md", &format!("```python\n{code}\n```\n")), ("bar.json", list)]);
    let mut window = bench.opened();
    let note = window.state().note().expect("a note is shown");
    window.state_mut().send_command(Command::RunAll { note });
    until(&mut window, "the figure is drawn", |window| {
        window.query_by_label("Figure").is_some() && window.state().figures() > 0
    });
    let rect = window.get_by_label("Figure").rect();
    assert!((rect.width() - 200.0).abs() < 1.0 && (rect.height() - 200.0).abs() < 1.0, "{rect:?}");
    assert!(window.query_by_label(RESET).is_none());
    wheel(&mut window, rect.center(), 60.0, Modifiers::COMMAND | Modifiers::CTRL);
    assert!(window.query_by_label(RESET).is_some(), "Ctrl and the wheel");
    let Some(folder) = pictures_folder() else { return };
    window.render().expect("a picture").save(folder.join("matplotlib-figure.png")).expect("a file");
}

/// A figure that a kernel draws again, as the backend of matplotlib does. Its limits tell the drawings apart.
#[cfg(target_os = "linux")]
const LIVE: &str = "---
kernel: environment
---
```python
import json, sys
plain = open('bar.json').read()
def redraw(figure, limits):
    again = json.loads(plain)
    assert figure == 'f' and len(limits) == 1
    for side in again['display_list']['axes'][0]['sides']:
        side['limits'] = [100, 101]
    return json.dumps(again)
sys.modules['tracebook_backend'].redraw = redraw
kind = 'application/vnd.tracebook.figure+json'
display({kind: plain}, raw=True, metadata={kind: {'figure': 'f'}})
```
";

#[cfg(target_os = "linux")]
fn is_drawn_again(window: &Driven) -> bool {
    window.query_by_label_contains("x = 100").is_some()
}

#[cfg(target_os = "linux")]
#[test]
fn a_zoomed_figure_is_drawn_again_by_its_kernel() {
    let list = include_str!("../../data/matplotlib/bar.json");
    let bench = Bench::new(&[("Live.md", LIVE), ("bar.json", list)]);
    let mut venv = std::process::Command::new("python3");
    let made = venv.args(["-m", "venv", "--without-pip"]).arg(bench.notes().join(".venv")).status();
    assert!(made.is_ok_and(|made| made.success()), "there is a python3 with venv");
    let mut window = bench.opened();
    let id = window.state().note().expect("a note is shown");
    window.state_mut().send_command(Command::RunAll { note: id });
    until(&mut window, "the figure is drawn and the kernel idle", |window| {
        let idle = session(window).note(id).is_some_and(|note| note.kernel == engine::KernelPhase::Idle);
        idle && window.query_by_label("Figure").is_some() && window.state().figures() > 0
    });
    let kept = |window: &Driven| {
        let note = session(window).note(id).expect("open");
        serde_json::to_value(note.cells().map(|cell| note.latest_execution(cell)).collect::<Vec<_>>()).expect("JSON")
    };
    let before = kept(&window);
    let middle = window.get_by_label("Figure").rect().center();
    wheel(&mut window, middle, 60.0, Modifiers::COMMAND | Modifiers::CTRL);
    until(&mut window, "the kernel has drawn it", |window| is_drawn_again(window));
    assert_eq!(kept(&window), before, "nothing of it is kept");
    click_label(&mut window, RESET);
    window.event(egui::Event::PointerMoved(middle));
    window.run();
    let plain = |window: &Driven| window.query_by_label_contains("x = ").is_some() && !is_drawn_again(window);
    assert!(plain(&window), "the stored figure");
    // Without the kernel, it's scaled.
    window.state_mut().send_command(Command::RestartKernel { note: id });
    until(&mut window, "the kernel is off", |window| {
        session(window).note(id).is_some_and(|note| note.kernel == engine::KernelPhase::Off)
    });
    wheel(&mut window, middle, 30.0, Modifiers::COMMAND | Modifiers::CTRL);
    window.run_steps(12);
    assert!(plain(&window) && window.query_by_label(RESET).is_some());
    assert!(window.query_by_label_contains("Can't show this figure").is_none());
}

fn wheel(window: &mut Driven, at: Pos2, by: f32, modifiers: Modifiers) {
    window.event(egui::Event::PointerMoved(at));
    window.step();
    window.event(egui::Event::MouseWheel {
        unit: egui::MouseWheelUnit::Point,
        delta: vec2(0.0, by),
        phase: egui::TouchPhase::Move,
        source: egui::MouseWheelSource::Unknown,
        modifiers,
    });
    window.run_steps(12);
}

/// Spreads two fingers on the touchpad.
pub(super) fn pinch(window: &mut Driven, at: Pos2, factor: f32) {
    window.event(egui::Event::PointerMoved(at));
    window.step();
    window.event(egui::Event::Zoom(factor));
    window.run_steps(12);
}

fn button(window: &mut Driven, pos: Pos2, pressed: bool) {
    window.event(egui::Event::PointerMoved(pos));
    let button = egui::PointerButton::Primary;
    window.event(egui::Event::PointerButton { pos, button, pressed, modifiers: NONE });
    window.step();
}

fn click(window: &mut Driven, at: Pos2) {
    button(window, at, true);
    button(window, at, false);
    window.run();
}

const RESET: &str = "Reset view of the figure of cell 1";

#[test]
fn a_figure_is_zoomed_moved_and_reset() {
    let (_bench, mut window) =
        shown("plt.plot([1, 3, 2], label='rain'); plt.legend(); plt.title('Rain')", "Figure: Rain");
    let moved = |window: &Driven| window.query_by_label(RESET).is_some();
    let rect = window.get_by_label("Figure: Rain").rect();
    let middle = rect.center();
    assert!(!moved(&window));
    // The wheel scrolls the page under the pointer; with Ctrl it zooms the figure.
    wheel(&mut window, middle, -20.0, NONE);
    assert!(!moved(&window) && window.get_by_label("Figure: Rain").rect().top() < rect.top());
    wheel(&mut window, middle, 20.0, NONE);
    wheel(&mut window, middle, 60.0, Modifiers::COMMAND | Modifiers::CTRL);
    assert!(moved(&window), "Ctrl and the wheel");
    click_label(&mut window, RESET);
    assert!(!moved(&window), "the button");
    pinch(&mut window, middle, 1.5);
    assert!(moved(&window), "two fingers");
    click_label(&mut window, RESET);
    // After a click into the figure the wheel zooms it.
    click(&mut window, middle);
    let before = window.get_by_label("Figure: Rain").rect();
    wheel(&mut window, middle, 60.0, NONE);
    assert!(moved(&window) && window.get_by_label("Figure: Rain").rect() == before, "the wheel after a click");
    press(&mut window, NONE, Key::Num0);
    assert!(!moved(&window), "0");
    for key in [Key::Plus, Key::Minus, Key::ArrowLeft, Key::ArrowUp] {
        press(&mut window, NONE, key);
        assert!(moved(&window), "{key:?}");
        press(&mut window, NONE, Key::Num0);
        assert!(!moved(&window), "{key:?}, 0");
    }
    press(&mut window, NONE, Key::Plus);
    assert!(moved(&window), "once more");
    // Two clicks within one frame are a double click, however slow the machine is.
    for pressed in [true, false, true, false] {
        let (button, modifiers) = (egui::PointerButton::Primary, NONE);
        window.input_mut().events.push(egui::Event::PointerButton { pos: middle, button, pressed, modifiers });
    }
    window.run();
    assert!(!moved(&window), "double click");
    button(&mut window, middle, true);
    for step in [10.0, 20.0, 30.0] {
        window.event(egui::Event::PointerMoved(middle + vec2(step, step)));
        window.step();
    }
    button(&mut window, middle + vec2(30.0, 30.0), false);
    window.run();
    assert!(moved(&window), "drag");
    click_label(&mut window, RESET);
    assert!(!moved(&window), "button");
}

#[test]
fn the_pointer_reads_values_and_the_legend_hides_series() {
    let code = "plt.plot([0, 10], [5, 5], marker='o', label='rain'); plt.plot([0, 10], [1, 9], label='snow')\n\
                plt.xlim(-5, 5); plt.ylim(0, 10); plt.legend(loc='upper left'); plt.title('Rain')";
    let (_bench, mut window) = shown(code, "Figure: Rain");
    let rect = window.get_by_label("Figure: Rain").rect();
    let near = |window: &Driven| window.query_by_label_contains("rain\nx = 0\ny = 5").is_some();
    // (0, 5) is the middle of the axes; what is drawn around them shifts it a little.
    window.event(egui::Event::PointerMoved(rect.center() + vec2(6.0, -4.0)));
    window.run();
    assert!(near(&window));
    let entry = |window: &Driven| window.get_by_label("Show rain").accesskit_node().toggled();
    assert_eq!(entry(&window), Some(egui::accesskit::Toggled::True));
    click_label(&mut window, "Show rain");
    assert_eq!(entry(&window), Some(egui::accesskit::Toggled::False));
    assert!(window.query_by_label("Show snow").is_some());
    window.event(egui::Event::PointerMoved(rect.center() + vec2(6.0, -4.0)));
    window.run();
    assert!(!near(&window), "what is hidden has no values");
    click_label(&mut window, RESET);
    assert_eq!(entry(&window), Some(egui::accesskit::Toggled::True));
}

#[test]
fn a_figure_with_much_data_is_a_blob_and_comes_back() {
    let code = "import numpy as np\nplt.plot(np.sin(np.arange(200_000) / 1000)); plt.title('Much')";
    let (bench, window) = shown(code, "Figure: Much");
    let note = session(&window).note(window.state().note().expect("a note")).expect("it is open");
    let run = note.cells().find_map(|cell| note.latest_execution(cell)).expect("it ran");
    let whole = run.outputs[0].whole.as_ref().expect("a blob");
    assert!(whole.mime == plot::FIGURE_MIME && whole.size > 2_000_000, "{whole:?}");
    let body = serde_json::to_string(&run.outputs).expect("JSON");
    assert!(body.len() < 1_000, "{}", body.len());
    drop(window);
    // The command line reads the same figure from disk.
    let save = bench.folder.path().join("pictures");
    let status = std::process::Command::new(super::driven::program())
        .args(["--workspace".as_ref(), bench.folder.path().join("workspace").as_os_str()])
        .args(["outputs".as_ref(), bench.notes().join("Plot.md").as_os_str()])
        .args(["--save".as_ref(), save.as_os_str()])
        .status();
    assert!(status.expect("it runs").success());
    let svg = std::fs::read_to_string(save.join("cell-1-1.svg")).expect("a picture");
    assert!(svg.contains("Much") && (20_000..1_000_000).contains(&svg.len()), "{}", svg.len());
}

/// Every call of the conformance set is drawn in the window.
#[test]
fn sixty_calls_are_shown() {
    let cells = calls().into_iter().filter(|(_, why, _)| why.is_none());
    let cells: Vec<String> = cells.map(|(_, _, code)| format!("```python\n{code}\n```\n\n")).collect();
    let text = cells.concat();
    let bench = Bench::new(&[("Plots.md", &text)]);
    let mut window = bench.opened();
    let note = window.state().note().expect("a note is shown");
    window.state_mut().send_command(Command::RunAll { note });
    until(&mut window, "all cells have run", |window| {
        let note = session(window).note(note).expect("the note is open");
        note.cells().all(|cell| note.latest_execution(cell).is_some_and(|run| run.status.is_final()))
    });
    let mut at = 0;
    for cell in &cells {
        window.state_mut().place_caret(at + 12);
        window.step();
        for _ in 0..500 {
            if window.query_all_by_label_contains("Reading the figure").next().is_none() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            window.step();
        }
        window.step();
        let wrong: Vec<_> = window.query_all_by_label_contains("Can't show this figure").collect();
        assert!(wrong.is_empty(), "{cell}");
        at += cell.len();
    }
    assert!(window.state().figures() >= 60, "{}", window.state().figures());
}
