//! Colors: light and dark themes for figures, the palette, and color maps that turn numbers into colors.

use crate::colormaps;

/// A color: red, green, blue, 0 to 255 each.
pub type Rgb = (u8, u8, u8);

/// The colors that a figure is drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlotTheme {
    /// Background color; `None` draws no background.
    pub paper: Option<Rgb>,
    /// Color of text.
    pub ink: Rgb,
    /// Color of ticks and frames.
    pub muted: Rgb,
    /// Color of grid lines.
    pub grid_line: Rgb,
    dark: bool,
}

impl PlotTheme {
    /// Theme for a light background, as in exported files.
    pub const LIGHT: PlotTheme = PlotTheme {
        paper: Some((0xff, 0xff, 0xff)),
        ink: (0x1f, 0x23, 0x28),
        muted: (0x5c, 0x64, 0x6d),
        grid_line: (0xe6, 0xe3, 0xdc),
        dark: false,
    };
    /// Theme for the dark background of the window.
    pub const DARK: PlotTheme = PlotTheme {
        paper: None,
        ink: (0xe6, 0xe6, 0xe3),
        muted: (0x9a, 0xa0, 0xa8),
        grid_line: (0x2b, 0x2f, 0x36),
        dark: true,
    };

    /// Returns the theme without a background.
    #[must_use]
    pub const fn without_paper(mut self) -> PlotTheme {
        self.paper = None;
        self
    }

    /// Returns the theme for a figure's own background color.
    pub(crate) fn on_ground(self, ground: &str, dark: bool) -> PlotTheme {
        if ground.is_empty() {
            return self;
        }
        let look = if dark { PlotTheme::DARK } else { PlotTheme::LIGHT };
        PlotTheme { paper: Some(look.exact_colour(ground)), ..look }
    }

    /// Returns the color of faint text.
    pub(crate) fn faint_ink(&self) -> Rgb {
        let mix = |a: u8, b: u8| u8::midpoint(a, b);
        let (ground, ink) = (self.background(""), self.muted);
        (mix(ground.0, ink.0), mix(ground.1, ink.1), mix(ground.2, ink.2))
    }

    /// Returns the background color, for shapes that are cut out of it.
    pub(crate) fn background(&self, ground: &str) -> Rgb {
        let paper = if self.dark { (0x16, 0x18, 0x1d) } else { (0xfc, 0xfb, 0xf8) };
        let named = !ground.is_empty() && ground != "none";
        if named { self.exact_colour(ground) } else { self.paper.unwrap_or(paper) }
    }

    /// Returns the color of grid lines on a background.
    pub(crate) fn grid_line_on(&self, ground: &str) -> Rgb {
        let (red, green, blue) = self.exact_colour(ground);
        let light = u32::from(red) + u32::from(green) + u32::from(blue) > 600;
        if light && ground.starts_with("#e") { (0xff, 0xff, 0xff) } else { self.grid_line }
    }

    /// Returns a color by its name. On dark themes black becomes the text color, to stay visible.
    pub fn resolve_colour(&self, name: &str) -> Rgb {
        match self.exact_colour(name) {
            (0, 0, 0) if self.dark => self.ink,
            other => other,
        }
    }

    /// Returns a color by its name, without adapting it to the theme.
    pub(crate) fn exact_colour(&self, name: &str) -> Rgb {
        if let Some(number) = name.strip_prefix('C').and_then(|number| number.parse::<usize>().ok()) {
            return (if self.dark { PALETTE_DARK } else { PALETTE })[number % PALETTE.len()];
        }
        let hex = name.strip_prefix('#').and_then(|hex| u32::from_str_radix(hex.get(..6)?, 16).ok());
        let Some(hex) = hex else { return self.ink };
        let [_, red, green, blue] = hex.to_be_bytes();
        (red, green, blue)
    }
}

/// Palette after Okabe and Ito: eight colors that color-blind readers can tell apart. The first is the accent color.
const PALETTE: [Rgb; 8] = [
    (0x3b, 0x5b, 0xdb),
    (0xd5, 0x5e, 0x00),
    (0x00, 0x9e, 0x73),
    (0xcc, 0x79, 0xa7),
    (0xe6, 0x9f, 0x00),
    (0x56, 0xb4, 0xe9),
    (0x7a, 0x4f, 0xc4),
    (0x5c, 0x64, 0x6d),
];
const PALETTE_DARK: [Rgb; 8] = [
    (0x8e, 0xa4, 0xff),
    (0xff, 0x9d, 0x5c),
    (0x4f, 0xd1, 0xa5),
    (0xee, 0xa3, 0xcb),
    (0xf2, 0xc1, 0x4e),
    (0x7c, 0xcb, 0xf5),
    (0xb7, 0x9b, 0xf0),
    (0xa8, 0xb0, 0xb8),
];

/// Returns the color of a map at a position from 0 to 1.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "0 to 255")]
pub fn colour_at(map: &str, share: f64) -> Rgb {
    let (name, share) = map.strip_suffix("_r").map_or((map, share), |name| (name, 1.0 - share));
    let (stops, single) = colormaps::map_stops(name);
    let count = stops.len() / 6;
    let stop = |at: usize| {
        let hex = stops.get(at * 6..at * 6 + 6).and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or(0);
        let [_, red, green, blue] = hex.to_be_bytes();
        (red, green, blue)
    };
    let share = share.clamp(0.0, 1.0);
    if single {
        return stop(((share * count as f64) as usize).min(count - 1));
    }
    let at = share * (count - 1) as f64;
    let low = (at as usize).min(count - 2);
    let (a, b, part) = (stop(low), stop(low + 1), at - low as f64);
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * part).round() as u8;
    (mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

/// Returns a color map as a table of 256 colors, for many lookups.
pub(crate) fn colour_table(map: &str) -> Vec<Rgb> {
    (0..256_u32).map(|at| colour_at(map, (f64::from(at) + 0.5) / 256.0)).collect()
}
