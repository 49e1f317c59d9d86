//! Colours: the look of a figure on light and dark paper, the palette, and the scales that turn numbers into colours.

/// Red, green, blue.
pub type Rgb = (u8, u8, u8);

/// The colours that a figure is drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Behind everything; nothing is painted where there is none.
    pub paper: Option<Rgb>,
    /// Words.
    pub ink: Rgb,
    /// Ticks and frames.
    pub muted: Rgb,
    /// The grid.
    pub line: Rgb,
    dark: bool,
}

impl Look {
    /// Light paper, as for a file.
    pub const LIGHT: Look = Look {
        paper: Some((0xff, 0xff, 0xff)),
        ink: (0x1f, 0x23, 0x28),
        muted: (0x5c, 0x64, 0x6d),
        line: (0xe6, 0xe3, 0xdc),
        dark: false,
    };
    /// On the dark paper of the window.
    pub const DARK: Look =
        Look { paper: None, ink: (0xe6, 0xe6, 0xe3), muted: (0x9a, 0xa0, 0xa8), line: (0x2b, 0x2f, 0x36), dark: true };

    /// The same with nothing painted behind it.
    #[must_use]
    pub const fn bare(mut self) -> Look {
        self.paper = None;
        self
    }

    /// A colour by its name.
    pub(crate) fn colour(&self, name: &str) -> Rgb {
        if let Some(number) = name.strip_prefix('C').and_then(|number| number.parse::<usize>().ok()) {
            return (if self.dark { PALETTE_DARK } else { PALETTE })[number % PALETTE.len()];
        }
        let hex = name.strip_prefix('#').and_then(|hex| u32::from_str_radix(hex.get(..6)?, 16).ok());
        let Some(hex) = hex else { return self.ink };
        let [_, red, green, blue] = hex.to_be_bytes();
        match (red, green, blue) {
            // Black words and lines on dark paper would not be seen.
            (0, 0, 0) if self.dark => self.ink,
            other => other,
        }
    }
}

/// After Okabe and Ito: eight colours that colour-blind readers tell apart; the first one is the program's accent.
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

const VIRIDIS: &[Rgb] = &[
    (0x44, 0x01, 0x54),
    (0x48, 0x28, 0x78),
    (0x3e, 0x4a, 0x89),
    (0x31, 0x68, 0x8e),
    (0x26, 0x82, 0x8e),
    (0x1f, 0x9e, 0x89),
    (0x35, 0xb7, 0x79),
    (0x6d, 0xcd, 0x59),
    (0xb4, 0xde, 0x2c),
    (0xfd, 0xe7, 0x25),
];
const PLASMA: &[Rgb] = &[
    (0x0d, 0x08, 0x87),
    (0x46, 0x03, 0x9f),
    (0x72, 0x01, 0xa8),
    (0x9c, 0x17, 0x9e),
    (0xbd, 0x37, 0x86),
    (0xd8, 0x57, 0x6b),
    (0xed, 0x79, 0x53),
    (0xfb, 0x9f, 0x3a),
    (0xfd, 0xca, 0x26),
    (0xf0, 0xf9, 0x21),
];
const INFERNO: &[Rgb] = &[
    (0x00, 0x00, 0x04),
    (0x1b, 0x0c, 0x41),
    (0x4a, 0x0c, 0x6b),
    (0x78, 0x1c, 0x6d),
    (0xa5, 0x2c, 0x60),
    (0xcf, 0x44, 0x46),
    (0xed, 0x69, 0x25),
    (0xfb, 0x9b, 0x06),
    (0xf7, 0xd1, 0x3d),
    (0xfc, 0xff, 0xa4),
];
const GRAY: &[Rgb] = &[(0, 0, 0), (255, 255, 255)];
const BLUES: &[Rgb] =
    &[(0xf7, 0xfb, 0xff), (0xc6, 0xdb, 0xef), (0x6b, 0xae, 0xd6), (0x21, 0x71, 0xb5), (0x08, 0x30, 0x6b)];
const COOLWARM: &[Rgb] =
    &[(0x3b, 0x4c, 0xc0), (0x8d, 0xb0, 0xfe), (0xdd, 0xdd, 0xdd), (0xf4, 0x98, 0x7a), (0xb4, 0x04, 0x26)];

/// The names of the scales; `_r` behind one turns it round.
pub const MAPS: [&str; 6] = ["viridis", "plasma", "inferno", "gray", "Blues", "coolwarm"];

/// The colour at a share (0 to 1) of a scale.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "0 to 255")]
pub(crate) fn shade(map: &str, share: f64) -> Rgb {
    let (name, share) = map.strip_suffix("_r").map_or((map, share), |name| (name, 1.0 - share));
    let stops = match name {
        "plasma" => PLASMA,
        "inferno" | "magma" | "hot" => INFERNO,
        "gray" | "grey" => GRAY,
        "Blues" => BLUES,
        "coolwarm" | "RdBu" | "bwr" => COOLWARM,
        _ => VIRIDIS,
    };
    let at = share.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
    let low = (at as usize).min(stops.len() - 2);
    let (a, b, part) = (stops[low], stops[low + 1], at - low as f64);
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * part).round() as u8;
    (mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}
