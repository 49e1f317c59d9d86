//! Typesets formulas in KaTeX's fonts, measures them, and draws them as SVG.

use super::MAX_FORMULA_BYTES;
use crate::drawing::VectorDrawing;
use crate::failure::DrawFailure;
use crate::fonts::FontSet;
use crate::tints::Rgb;
use ratex_layout::{LayoutOptions, layout, to_display_list, validate_layout};
use ratex_svg::{SvgColorSyntax, SvgOptions, render_to_svg_with_color_syntax};
use ratex_types::color::Color;
use ratex_types::display_item::{DisplayItem, DisplayList};
use ratex_types::math_style::MathStyle;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Padding around a drawn formula in em, because glyphs extend beyond their boxes.
pub const FORMULA_PADDING_EM: f32 = 0.15;
/// SVG units per em, fine enough for exact coordinates.
const SVG_UNITS_PER_EM: f64 = 100.0;
/// Maximum width and height of a formula in em.
const MAX_FORMULA_EM: f64 = 400.0;

/// A typeset formula. Lengths are in em, the size of the surrounding text.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct SetFormula {
    list: DisplayList,
    /// The formula as a line of plain text, if possible.
    pub words: Option<String>,
    /// Width in em.
    pub width: f32,
    /// Height above the baseline in em.
    pub height: f32,
    /// Depth below the baseline in em.
    pub depth: f32,
}

impl SetFormula {
    /// Typesets a formula inline, or as a block with `display`.
    ///
    /// # Errors
    /// Returns an error if the formula can't be parsed, is empty, too long or too large.
    #[allow(clippy::cast_possible_truncation, reason = "em, below some hundred")]
    pub fn new(source: &str, display: bool) -> Result<SetFormula, DrawFailure> {
        if source.len() > MAX_FORMULA_BYTES {
            return Err(DrawFailure::Limit(format!("The formula is longer than {} kB.", MAX_FORMULA_BYTES / 1_000)));
        }
        let set = || -> Result<DisplayList, DrawFailure> {
            let wrong = |why: String| DrawFailure::Wrong(error_sentence(&why));
            let nodes = ratex_parser::parse(source).map_err(|error| wrong(error.message))?;
            let style = if display { MathStyle::Display } else { MathStyle::Text };
            let root = layout(&nodes, &LayoutOptions { style, ..LayoutOptions::default() });
            validate_layout(&root).map_err(wrong)?;
            Ok(to_display_list(&root))
        };
        let list = match catch_unwind(AssertUnwindSafe(set)) {
            Ok(Ok(list)) => list,
            Ok(Err(why)) => return Err(why),
            Err(_) => return Err(DrawFailure::Wrong("The formula cannot be set.".to_owned())),
        };
        let fits = |length: f64| length.is_finite() && length.abs() <= MAX_FORMULA_EM;
        if !fits(list.width) || !fits(list.height) || !fits(list.depth) {
            return Err(DrawFailure::Limit("The formula is too large.".to_owned()));
        }
        if list.items.is_empty() {
            return Err(DrawFailure::Wrong("The formula is empty.".to_owned()));
        }
        let (width, height, depth) = (list.width as f32, list.height as f32, list.depth as f32);
        Ok(SetFormula { list, words: super::to_plain_line(source), width, height, depth })
    }

    /// Returns the formula as SVG in a color; colors set by the formula are kept.
    ///
    /// The image has an additional [`FORMULA_PADDING_EM`] on each side.
    pub fn to_svg(&self, ink: Rgb) -> String {
        let [r, g, b] = ink.map(|part| f32::from(part) / 255.0);
        let ink = Color::rgb(r, g, b);
        let mut list = self.list.clone();
        for item in &mut list.items {
            let (DisplayItem::GlyphPath { color, .. }
            | DisplayItem::Line { color, .. }
            | DisplayItem::Rect { color, .. }
            | DisplayItem::Path { color, .. }) = item;
            if *color == Color::BLACK {
                *color = ink;
            }
        }
        let options = SvgOptions {
            font_size: SVG_UNITS_PER_EM,
            padding: f64::from(FORMULA_PADDING_EM) * SVG_UNITS_PER_EM,
            stroke_width: 0.04 * SVG_UNITS_PER_EM,
            embed_glyphs: true,
            font_dir: String::new(),
        };
        render_to_svg_with_color_syntax(&list, &options, SvgColorSyntax::Rgb)
    }

    /// Returns the formula as a drawing in a color, with an additional [`FORMULA_PADDING_EM`] on each side.
    ///
    /// # Errors
    /// Returns an error if the SVG can't be drawn.
    pub fn to_drawing(&self, ink: Rgb, fonts: &FontSet) -> Result<VectorDrawing, DrawFailure> {
        let draw = || VectorDrawing::from_svg(&self.to_svg(ink), fonts);
        match catch_unwind(AssertUnwindSafe(draw)) {
            Ok(drawn) => drawn.map_err(|why| DrawFailure::Limit(error_sentence(&why.to_string()))),
            Err(_) => Err(DrawFailure::Wrong("The formula cannot be drawn.".to_owned())),
        }
    }
}

fn error_sentence(why: &str) -> String {
    let why = why.trim().trim_end_matches('.');
    let mut letters = why.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trips;
    use std::path::Path;

    fn set(source: &str) -> SetFormula {
        SetFormula::new(source, true).unwrap_or_else(|failure| panic!("{source}: {}", failure.message()))
    }

    #[test]
    fn formulas_have_two_dimensions() {
        let (flat, tall) = (set("a"), set("\\frac{a}{b}"));
        assert!(tall.height > flat.height && tall.depth > 0.3, "{tall:?}");
        let inline = SetFormula::new("\\sum_{i=1}^n i", false).expect("a formula");
        let block = set("\\sum_{i=1}^n i");
        assert!(block.height + block.depth > inline.height + inline.depth, "limits stand above and below");
        assert!(set("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}").height > 1.0);
    }

    #[test]
    fn they_are_drawn_in_the_ink_that_is_asked_for() {
        let formula = set("x^2 + \\sqrt{\\color{red}{y}}");
        let drawing = formula.to_drawing([0, 0, 255], &FontSet::bundled()).expect("a drawing");
        let raster = drawing.rasterize(0.5).expect("pixels");
        let seen = |colour: [u8; 3]| raster.bytes.chunks(4).any(|pixel| pixel[3] == 255 && pixel[..3] == colour);
        assert!(seen([0, 0, 255]) && seen([255, 0, 0]) && !seen([0, 0, 0]));
    }

    #[test]
    fn what_is_not_understood_says_what() {
        let failure = SetFormula::new("\\frac{a", false).expect_err("not whole");
        let why = failure.message();
        assert!(why.starts_with(char::is_uppercase) && why.ends_with('.'), "{why}");
        assert!(SetFormula::new("\\nonsense", false).expect_err("no command").message().contains("nonsense"));
        assert!(SetFormula::new("", false).is_err() && SetFormula::new(&"x".repeat(20_000), false).is_err());
    }

    #[test]
    fn nothing_trips_it() {
        let parts = [
            "\\frac",
            "{",
            "}",
            "^",
            "_",
            "\\sqrt",
            "[3]",
            "\\left(",
            "\\right)",
            "x",
            "é",
            "漢",
            "\\text{a b}",
            "&",
            "\\\\",
            "\\begin{matrix}",
            "\\end{matrix}",
            "\\color{red}",
            "\\def\\a{\\a\\a}",
            "\\a",
            "%",
            "\\kern9999em",
            "\\rule{1e9em}{1em}",
            "\\href{javascript:x}{y}",
            "\\includegraphics{/etc/passwd}",
            "\u{202e}",
            "🙂",
        ];
        for text in trips::texts(&parts, 2_000, 10) {
            if let Ok(formula) = SetFormula::new(&text, false) {
                assert!(!formula.to_svg([0, 0, 0]).contains("javascript"), "{text}");
            }
        }
        for deep in ["{", "\\sqrt{", "\\frac{1}{", "\\left(", "x^{", "\\begin{matrix}"] {
            let _ = SetFormula::new(&deep.repeat(1_000), true);
            let _ = SetFormula::new(&format!("{}x{}", deep.repeat(300), "}".repeat(300)), true);
        }
    }

    /// Typesets the formulas of real notes, if these are available.
    #[test]
    fn formulas_of_real_notes_are_set() {
        let vaults = Path::new("/work/shared/data/vaults");
        let (mut seen, mut wrong, mut folders) = (0, Vec::new(), vec![vaults.to_owned()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ending| ending == "md") && seen < 400 {
                    let Ok(text) = std::fs::read_to_string(&path) else { continue };
                    let tokens = text::markdown::dialect::tokenize(&text, text::markdown::dialect::dialect_options());
                    for (token, _) in tokens {
                        use pulldown_cmark::Event::{DisplayMath, InlineMath};
                        if let text::markdown::dialect::DialectToken::Mark(DisplayMath(math) | InlineMath(math)) = token
                        {
                            seen += 1;
                            if let Err(failure) = SetFormula::new(&math, true) {
                                wrong.push(format!("{math}: {}", failure.message()));
                            }
                        }
                    }
                }
            }
        }
        assert!(wrong.len() * 10 <= seen, "{} of {seen}: {wrong:#?}", wrong.len());
    }
}
