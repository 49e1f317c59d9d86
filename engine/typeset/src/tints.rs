//! Colors of diagrams and pages in the light and dark theme.

/// A color: red, green, blue, 0 to 255 each.
pub type Rgb = [u8; 3];

/// The colors of a theme, by purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs, reason = "the words are those of the window's own colours")]
pub struct ThemeTints {
    pub paper: Rgb,
    pub sunken: Rgb,
    pub ink: Rgb,
    pub muted: Rgb,
    pub line: Rgb,
    pub accent: Rgb,
    pub accent_ground: Rgb,
    /// Background of notes and search hits.
    pub mark: Rgb,
    /// Background of highlighted text.
    pub lit: Rgb,
    pub ok: Rgb,
    pub warn: Rgb,
    pub bad: Rgb,
    pub thought: Rgb,
    pub tool: Rgb,
}

impl ThemeTints {
    /// Returns distinguishable colors, for slices, branches and the like.
    pub fn palette(&self) -> [Rgb; 6] {
        [self.accent, self.tool, self.warn, self.thought, self.ok, self.bad]
    }

    /// Returns the colors as CSS variables, for exported pages.
    pub fn css_variables(&self) -> String {
        let named = [
            ("paper", self.paper),
            ("sunken", self.sunken),
            ("ink", self.ink),
            ("muted", self.muted),
            ("line", self.line),
            ("accent", self.accent),
            ("accent-ground", self.accent_ground),
            ("ok", self.ok),
            ("warn", self.warn),
            ("bad", self.bad),
            ("thought", self.thought),
            ("tool", self.tool),
            ("lit", self.lit),
        ];
        named.into_iter().map(|(name, colour)| format!("--{name}:{};", css_hex(colour))).collect()
    }
}

/// Colors of the light theme.
pub const LIGHT_TINTS: ThemeTints = ThemeTints {
    paper: [0xfc, 0xfb, 0xf8],
    sunken: [0xf4, 0xf2, 0xec],
    ink: [0x1f, 0x23, 0x28],
    muted: [0x5c, 0x64, 0x6d],
    line: [0xe6, 0xe3, 0xdc],
    accent: [0x3b, 0x5b, 0xdb],
    accent_ground: [0xe7, 0xec, 0xfd],
    mark: [0xfb, 0xf0, 0xc4],
    lit: [0xff, 0xef, 0xb0],
    ok: [0x2b, 0x7a, 0x3b],
    warn: [0x9a, 0x4f, 0x00],
    bad: [0xc4, 0x2b, 0x2b],
    thought: [0x7a, 0x4f, 0xc4],
    tool: [0x0b, 0x72, 0x85],
};

/// Colors of the dark theme.
pub const DARK_TINTS: ThemeTints = ThemeTints {
    paper: [0x16, 0x18, 0x1d],
    sunken: [0x10, 0x12, 0x16],
    ink: [0xe6, 0xe6, 0xe3],
    muted: [0x9a, 0xa0, 0xa8],
    line: [0x2b, 0x2f, 0x36],
    accent: [0x8e, 0xa4, 0xff],
    accent_ground: [0x23, 0x2b, 0x47],
    mark: [0x3b, 0x33, 0x18],
    lit: [0x3d, 0x37, 0x1c],
    ok: [0x69, 0xc3, 0x7d],
    warn: [0xe0, 0xa4, 0x58],
    bad: [0xff, 0x80, 0x80],
    thought: [0xb7, 0x9b, 0xf0],
    tool: [0x5c, 0xc4, 0xd6],
};

/// Formats a color for CSS.
pub fn css_hex([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Mixes two colors; `share` is the proportion of the second, 0 to 1.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two bytes")]
pub fn mix_colors(one: Rgb, other: Rgb, share: f32) -> Rgb {
    let share = share.clamp(0.0, 1.0);
    std::array::from_fn(|at| (f32::from(one[at]) * (1.0 - share) + f32::from(other[at]) * share).round() as u8)
}

/// Colors for tests: the window's light theme.
#[cfg(test)]
pub(crate) const PLAIN: ThemeTints = ThemeTints {
    paper: [0xfc, 0xfb, 0xf8],
    sunken: [0xf4, 0xf2, 0xec],
    ink: [0x1f, 0x23, 0x28],
    muted: [0x5c, 0x64, 0x6d],
    line: [0xe6, 0xe3, 0xdc],
    accent: [0x3b, 0x5b, 0xdb],
    accent_ground: [0xe7, 0xec, 0xfd],
    mark: [0xfb, 0xf0, 0xc4],
    lit: [0xfb, 0xf0, 0xc4],
    ok: [0x2b, 0x7a, 0x3b],
    warn: [0x9a, 0x4f, 0x00],
    bad: [0xc4, 0x2b, 0x2b],
    thought: [0x7a, 0x4f, 0xc4],
    tool: [0x0b, 0x72, 0x85],
};
