//! Typeset and drawn content in a note: formulas, diagrams, SVG.

use super::{Bench, CTRL_SHIFT, Driven, NONE, pictures_folder, press, until};
use egui::Key;
use egui_kittest::kittest::Queryable;

const NOTE: &str = r#"# Formulas

Mass is energy: $E = mc^2$, and $\frac{a+1}{b_{12}} \leq \sqrt{x}$ stands on the line $\int_0^1 x\,dx$ of the words.

$$\sum_{i=1}^{n} \alpha_i = \begin{pmatrix} a & b \\ c & d \end{pmatrix} \left( \frac{1}{1 + \frac{1}{x}} \right)$$

This one $\nonsense{x}$ is wrong.

| Name | Formula |
|------|---------|
| Mean | $\bar{x} = \frac{1}{n} \sum_i x_i$ |

> [!note] With $\alpha^2$ in its title
> and $\beta_3$ below.

```mermaid
flowchart LR
  Rain[Rain falls] --> Soil{Dry?}
  Soil -->|yes| Grow[It grows]
  Soil -->|no| River[To the river]
```

```mermaid
flowchart LR
  subgraph never closed
  A --> B
```

![](sun.svg)
"#;

const SUN: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='120' height='60'>\
                   <circle cx='60' cy='30' r='25' fill='#e0a458'/><text x='30' y='35'>Sun</text></svg>";

fn drawn() -> (Bench, Driven) {
    let bench = Bench::new(&[("Formulas.md", NOTE), ("sun.svg", SUN)]);
    let mut window = bench.opened();
    until(&mut window, "the diagrams are drawn, or are not", |window| {
        window.query_by_label_contains("Diagram: flowchart LR").is_some()
            && window.query_by_label_contains("Not drawn. Unclosed subgraph").is_some()
    });
    (bench, window)
}

#[test]
fn formulas_and_diagrams_are_drawn_and_read_aloud() {
    let (_bench, mut window) = drawn();
    window.get_by_label_contains("Mass is energy: E = mc², and (a + 1)/b₁₂ ≤ √x stands on the line ∫₀¹");
    window.get_by_label_contains("With α² in its title");
    let why = window.get_by_label_contains("Can't read this formula.").rect();
    window.hover_at(why.center());
    until(&mut window, "the pointer is told why", |window| {
        window.query_all_by_label_contains("Can't read this formula.").count() > 1
    });
    // A fraction is taller than a line of text, and a block formula is taller still.
    let line = window.get_by_label_contains("Mass is energy").rect().height();
    let alone = window.get_by_label_contains("\\begin{pmatrix}").rect().height();
    assert!(line > 28.0 && alone > line, "{line} {alone}");
}

#[test]
fn the_caret_in_a_diagram_shows_its_source() {
    let (_bench, mut window) = drawn();
    let place = window.get_by_label_contains("Diagram: flowchart LR").rect();
    window.get_by_label_contains("Diagram: flowchart LR").click();
    window.run();
    assert!(window.query_by_label_contains("Diagram: flowchart LR").is_none(), "its source is shown");
    assert!(place.height() > 60.0);
    press(&mut window, NONE, Key::ArrowUp);
    press(&mut window, NONE, Key::ArrowUp);
    until(&mut window, "it is drawn again", |window| window.query_by_label_contains("Diagram: flowchart LR").is_some());
}

/// Saves screenshots for people to look at, as in `window::pictures`.
#[test]
fn pictures() {
    let Some(folder) = pictures_folder() else { return };
    let (_bench, mut window) = drawn();
    for theme in ["light", "dark"] {
        press(&mut window, CTRL_SHIFT, Key::L);
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            window.run_steps(2);
        }
        let image = window.render().expect("a picture");
        image.save(folder.join(format!("{theme}-formulas.png"))).expect("a file");
    }
}
