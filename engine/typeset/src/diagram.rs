//! Renders Mermaid diagrams as SVG.
//!
//! The renderer is immature, so callers run it on a thread with a large stack and a time limit. Its panics are caught
//! here.

use crate::failure::DrawFailure;
use crate::tints::{Rgb, ThemeTints, css_hex, mix_colors};
use mermaid_rs_renderer::{LayoutConfig, RenderOptions, Theme, render_strict};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Maximum length of a diagram's source in bytes; a longer one stays text.
const MAX_DIAGRAM_BYTES: usize = 50_000;
/// A font name that doesn't exist. For an installed font, the renderer would search the system for it to measure text,
/// and keep a copy in a folder of its own. Without one it measures by a table, which is as good.
const DIAGRAM_FONT_FAMILY: &str = "Tracebook Sans";

/// Renders a diagram as SVG.
///
/// # Errors
/// Returns an error if the diagram is empty, too long or can't be parsed.
pub fn diagram_svg(source: &str, tints: &ThemeTints) -> Result<String, DrawFailure> {
    if source.len() > MAX_DIAGRAM_BYTES {
        return Err(DrawFailure::Limit(format!("The diagram is longer than {} kB.", MAX_DIAGRAM_BYTES / 1_000)));
    }
    if source.trim().is_empty() {
        return Err(DrawFailure::Wrong("The diagram is empty.".to_owned()));
    }
    let options = RenderOptions { theme: diagram_theme(tints), layout: layout_config(tints) };
    let drawn = catch_unwind(AssertUnwindSafe(|| render_strict(source, options)));
    match drawn {
        Ok(Ok(mut svg)) => {
            // Timelines have fixed colors that ignore the theme.
            if source.trim_start().starts_with("timeline") {
                let own = ["#ECECFF", "#FFE6CC", "#D5E8D4", "#F8CECC", "#FFF2CC", "#E1D5E7"];
                for (own, colour) in own.iter().zip(tints.palette()) {
                    let ground = css_hex(mix_colors(colour, tints.paper, 0.8));
                    svg = svg.replace(&format!("fill=\"{own}\""), &format!("fill=\"{ground}\""));
                }
            }
            Ok(svg.replace(DIAGRAM_FONT_FAMILY, crate::fonts::TEXT_FONT_FAMILY))
        }
        Ok(Err(error)) => {
            let why = error.to_string();
            let why = why.lines().next().unwrap_or("").trim_end_matches('.');
            let mut letters = why.chars();
            let first = letters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
            Err(DrawFailure::Wrong(format!("{first}{}.", letters.as_str())))
        }
        Err(_) => Err(DrawFailure::Wrong("The diagram cannot be drawn.".to_owned())),
    }
}

fn layout_config(tints: &ThemeTints) -> LayoutConfig {
    let mut layout = LayoutConfig { fast_text_metrics: true, ..LayoutConfig::default() };
    let palette = tints.palette();
    let grounds = palette.iter().map(|colour| css_hex(mix_colors(*colour, tints.paper, 0.8))).collect();
    layout.mindmap.section_colors = grounds;
    layout.mindmap.section_label_colors = palette.iter().map(|_| css_hex(tints.ink)).collect();
    layout.mindmap.section_line_colors = palette.iter().map(|colour| css_hex(*colour)).collect();
    layout.mindmap.root_fill = Some(css_hex(tints.accent));
    layout.mindmap.root_text = Some(css_hex(tints.paper));
    let requirement = &mut layout.requirement;
    requirement.fill = css_hex(tints.accent_ground);
    requirement.box_stroke = css_hex(tints.accent);
    requirement.stroke = css_hex(tints.accent);
    requirement.label_color = css_hex(tints.ink);
    requirement.divider_color = css_hex(tints.accent);
    requirement.edge_stroke = css_hex(tints.muted);
    requirement.edge_label_color = css_hex(tints.ink);
    requirement.edge_label_background = css_hex(tints.paper);
    layout
}

fn diagram_theme(tints: &ThemeTints) -> Theme {
    let palette = |at: usize| {
        let all = tints.palette();
        // After the sixth, the colors repeat in a tone closer to the background.
        mix_colors(all[at % all.len()], tints.paper, if at < all.len() { 0.0 } else { 0.35 })
    };
    let named = |colour: Rgb| css_hex(colour);
    Theme {
        font_family: DIAGRAM_FONT_FAMILY.to_owned(),
        font_size: 14.0,
        primary_color: named(tints.accent_ground),
        primary_text_color: named(tints.ink),
        primary_border_color: named(tints.accent),
        line_color: named(tints.muted),
        secondary_color: named(tints.sunken),
        tertiary_color: named(tints.paper),
        edge_label_background: named(tints.paper),
        cluster_background: named(tints.sunken),
        cluster_border: named(tints.line),
        background: named(tints.paper),
        sequence_actor_fill: named(tints.accent_ground),
        sequence_actor_border: named(tints.accent),
        sequence_actor_line: named(tints.muted),
        sequence_note_fill: named(tints.mark),
        sequence_note_border: named(tints.warn),
        sequence_activation_fill: named(tints.sunken),
        sequence_activation_border: named(tints.muted),
        text_color: named(tints.ink),
        git_colors: std::array::from_fn(|at| named(palette(at))),
        git_inv_colors: std::array::from_fn(|at| named(mix_colors(palette(at), tints.ink, 0.5))),
        git_branch_label_colors: std::array::from_fn(|_| named(tints.paper)),
        git_commit_label_color: named(tints.ink),
        git_commit_label_background: named(tints.sunken),
        git_tag_label_color: named(tints.ink),
        git_tag_label_background: named(tints.accent_ground),
        git_tag_label_border: named(tints.accent),
        pie_colors: std::array::from_fn(|at| named(palette(at))),
        pie_title_text_size: 18.0,
        pie_title_text_color: named(tints.ink),
        pie_section_text_size: 14.0,
        pie_section_text_color: named(tints.paper),
        pie_legend_text_size: 14.0,
        pie_legend_text_color: named(tints.ink),
        pie_stroke_color: named(tints.paper),
        pie_stroke_width: 1.5,
        pie_outer_stroke_width: 0.0,
        pie_outer_stroke_color: named(tints.paper),
        pie_opacity: 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::VectorDrawing;
    use crate::fonts::FontSet;
    use crate::tints::PLAIN;
    use crate::trips;

    const KINDS: &[(&str, &str)] = &[
        ("flowchart LR\n  A[Start] --> B{Choice}\n  B -->|yes| C[Done]\n  B -->|no| A\n", "Choice"),
        ("sequenceDiagram\n  Alice->>Bob: Hello\n  Note over Bob: thinks\n  Bob-->>Alice: Hi\n", "Hello"),
        ("classDiagram\n  Animal <|-- Duck\n  Animal : +int age\n", "Duck"),
        ("stateDiagram-v2\n  [*] --> Still\n  Still --> Moving\n", "Moving"),
        ("erDiagram\n  CUSTOMER ||--o{ ORDER : places\n", "CUSTOMER"),
        ("pie title Pets\n  \"Dogs\" : 386\n  \"Cats\" : 85\n", "Dogs"),
        ("gantt\n  title Plan\n  dateFormat YYYY-MM-DD\n  section A\n  Task one :a1, 2024-01-01, 30d\n", "Task one"),
        ("mindmap\n  root((Ideas))\n    One\n    Two\n", "Ideas"),
        ("gitGraph\n  commit\n  branch develop\n  commit\n  checkout main\n  merge develop\n", "develop"),
        ("timeline\n  title History\n  2002 : LinkedIn\n  2004 : Facebook\n", "LinkedIn"),
    ];

    #[test]
    fn every_kind_is_drawn_with_its_words() {
        for (source, word) in KINDS {
            let svg = diagram_svg(source, &PLAIN).unwrap_or_else(|why| panic!("{source}: {why:?}"));
            let drawing =
                VectorDrawing::from_svg(&svg, &FontSet::bundled()).unwrap_or_else(|why| panic!("{source}: {why}"));
            assert!(drawing.width > 20.0 && drawing.height > 20.0, "{source}");
            assert!(drawing.to_safe_svg("").contains(word), "{source}: {}", drawing.to_safe_svg(""));
            let raster = drawing.rasterize(1.0).expect("pixels");
            assert!(raster.bytes.chunks(4).any(|pixel| pixel[..3] == PLAIN.ink), "{source}: words in ink");
        }
    }

    #[test]
    fn what_is_no_diagram_says_so() {
        for source in ["", "  \n", "no diagram at all", "flowchart LR\n  subgraph a\n  A-->B\n"] {
            let failure = diagram_svg(source, &PLAIN).expect_err(source);
            let why = failure.message();
            assert!(why.ends_with('.') && why.starts_with(char::is_uppercase), "{source}: {why}");
        }
        assert!(diagram_svg(&format!("flowchart LR\n{}", "A-->B\n".repeat(10_000)), &PLAIN).is_err());
    }

    #[test]
    fn nothing_trips_it() {
        let parts = [
            "flowchart LR\n",
            "sequenceDiagram\n",
            "A",
            "-->",
            "|x|",
            "[",
            "]",
            "{",
            "}",
            "\n",
            "subgraph ",
            "end\n",
            "é",
            "((",
            "))",
            "\"",
            ":",
            "style A fill:#f9f\n",
            "class ",
            "%%",
            "click A \"javascript:alert(1)\"\n",
            "🙂",
            ";",
        ];
        for (round, text) in trips::texts(&parts, 400, 12).enumerate() {
            let text = if round % 2 == 0 { format!("flowchart TD\n{text}") } else { text };
            if let Ok(svg) = diagram_svg(&text, &PLAIN)
                && let Ok(drawing) = VectorDrawing::from_svg(&svg, &FontSet::bundled())
            {
                assert!(!drawing.to_safe_svg("").contains("javascript"), "{text}");
            }
        }
    }
}
