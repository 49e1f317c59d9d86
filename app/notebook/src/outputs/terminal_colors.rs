//! Colors of terminal output in the theme, mixed until they're legible.

use editor::render::TextStyleContext;
use eframe::egui;
use egui::{Color32, Stroke};
use typeset::ansi::{TerminalColor, TerminalStyle};
use ui::theme;
use ui::widgets::format;

/// Returns the text format for a terminal style, in theme colors.
pub(super) fn styled(style: &TerminalStyle, plain: Color32, pen: TextStyleContext<'_>) -> egui::TextFormat {
    let colours = pen.colours;
    let colour = |ink: TerminalColor| match ink {
        TerminalColor::Named(1) => colours.bad,
        TerminalColor::Named(2) => colours.ok,
        TerminalColor::Named(3) => colours.warn,
        TerminalColor::Named(4) => colours.accent,
        TerminalColor::Named(5) => colours.thought,
        TerminalColor::Named(6) => colours.tool,
        TerminalColor::Named(7) => colours.muted,
        TerminalColor::Named(_) => colours.ink,
        TerminalColor::Exact([red, green, blue]) => Color32::from_rgb(red, green, blue),
    };
    let mut ink = style.ink.map_or(plain, colour);
    let mut ground = style.ground.map(colour);
    if style.reverse {
        (ink, ground) = (ground.unwrap_or(colours.paper), Some(ink));
    }
    let code = theme::code();
    let font = if style.italic { theme::code_italic_font() } else { code.font };
    let mut format = format(font, code.line, legible(ink, ground.unwrap_or(colours.paper), colours));
    if let Some(ground) = ground {
        format.background = ground;
    }
    if style.underline {
        format.underline = Stroke::new(1.0, format.color);
    }
    if style.bold && style.ink.is_none() {
        format.color = colours.ink;
    }
    format
}

/// Mixes a color with ink or paper until it's legible on a background.
fn legible(colour: Color32, ground: Color32, colours: &theme::ThemeColors) -> Color32 {
    let ink = contrast(colours.ink, ground) >= contrast(colours.paper, ground);
    let towards = if ink { colours.ink } else { colours.paper };
    let steps = (0..=10_u8).map(|step| colour.lerp_to_gamma(towards, f32::from(step) / 10.0));
    // On a background of medium brightness neither is enough; either black or white always is.
    let (black, white) = (Color32::BLACK, Color32::WHITE);
    let last = if contrast(black, ground) >= contrast(white, ground) { black } else { white };
    steps.into_iter().find(|mixed| contrast(*mixed, ground) >= 4.5).unwrap_or(last)
}

/// Returns the contrast of two colors by WCAG 2.2, 1 to 21.
fn contrast(a: Color32, b: Color32) -> f32 {
    let light = |colour: Color32| {
        let rgba = egui::Rgba::from(colour);
        0.2126 * rgba.r() + 0.7152 * rgba.g() + 0.0722 * rgba.b() + 0.05
    };
    let (a, b) = (light(a), light(b));
    a.max(b) / a.min(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_can_be_read() {
        for colours in [&theme::LIGHT, &theme::DARK, &theme::LIGHT_HIGH_CONTRAST, &theme::DARK_HIGH_CONTRAST] {
            for step in 0..=5_u8 {
                for colour in [[255, 51 * step, 0], [51 * step, 51 * step, 255], [51 * step; 3]] {
                    let [red, green, blue] = colour;
                    let colour = Color32::from_rgb(red, green, blue);
                    for ground in [colours.paper, colours.ink, colour, colours.ok] {
                        assert!(contrast(legible(colour, ground, colours), ground) >= 4.4, "{colour:?} on {ground:?}");
                    }
                }
            }
        }
    }
}
