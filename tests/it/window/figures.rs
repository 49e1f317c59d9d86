//! Figures in the window: drawn below their cell, named for those who do not see them, in both themes.

use super::{Bench, CTRL_SHIFT, pictures_folder, press, session, until};
use egui::Key;
use egui_kittest::kittest::Queryable;
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
    window.state_mut().wish(Command::RunAll { note });
    until(&mut window, "the cell has run", |window| {
        let note = session(window).note(note).expect("the note is open");
        note.cells().all(|cell| note.execution(cell).is_some_and(|run| run.status.is_final()))
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
