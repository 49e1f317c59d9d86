//! Themes of the user: YAML files in the workspace's folder `themes`, each with colors by name.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Maximum size of a theme's file in bytes.
pub const MAX_THEME_BYTES: usize = 64 << 10;
/// Minimum contrast of text on its background (WCAG AA).
const MIN_TEXT_CONTRAST: f32 = 4.5;
/// Names of all colors that a theme may set.
pub const THEME_COLORS: [&str; 20] = [
    "paper",
    "raised",
    "sunken",
    "ink",
    "muted",
    "line",
    "accent",
    "accent_ground",
    "mark",
    "mark_strong",
    "ok",
    "warn",
    "bad",
    "thought",
    "tool",
    "lit",
    "gone",
    "gone_strong",
    "come",
    "come_strong",
];
/// Colors of text.
const TEXT_COLORS: [&str; 8] = ["ink", "muted", "accent", "ok", "warn", "bad", "thought", "tool"];
/// Backgrounds of text.
const BACKGROUND_COLORS: [&str; 3] = ["paper", "raised", "sunken"];

/// The built-in theme that has the colors that a theme doesn't set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BaseTheme {
    /// The light theme.
    Light,
    /// The dark theme.
    Dark,
}

/// A color: red, green, blue.
pub type ThemeColor = [u8; 3];

/// A theme of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThemeFile {
    /// The theme that has the other colors.
    pub base: BaseTheme,
    /// The colors by name, which is one of [`THEME_COLORS`].
    pub colors: BTreeMap<String, ThemeColor>,
}

/// Why a text isn't a theme.
#[derive(Debug, thiserror::Error)]
pub enum ThemeFileError {
    /// It's too long.
    #[error("a theme has at most {} kB", MAX_THEME_BYTES >> 10)]
    TooLong,
    /// It isn't YAML of this form.
    #[error("{0}")]
    Yaml(#[from] serde_saphyr::Error),
    /// A color has another name.
    #[error("there is no color {name}; there are {}", THEME_COLORS.join(", "))]
    UnknownColor {
        /// The color's name in the file.
        name: String,
    },
    /// A color is written in another way.
    #[error("{name} is a color such as \"#1f2328\", not “{value}”")]
    InvalidColor {
        /// Name of the color.
        name: String,
        /// The color's value in the file.
        value: String,
    },
    /// Colors that others are compared with are missing.
    #[error("a theme sets at least the colors paper and ink")]
    Incomplete,
    /// A text can't be read on a background.
    #[error("{text} on {background} has a contrast of {contrast:.1} : 1; text needs at least {MIN_TEXT_CONTRAST} : 1")]
    LowContrast {
        /// Name of the text's color.
        text: &'static str,
        /// Name of the background's color.
        background: &'static str,
        /// The contrast.
        contrast: f32,
    },
}

/// The file as it's written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTheme {
    base: BaseTheme,
    colors: BTreeMap<String, String>,
}

impl ThemeFile {
    /// Parses a theme.
    ///
    /// # Errors
    /// Returns an error if it isn't one, or its text can't be read on its backgrounds.
    pub fn parse(text: &str) -> Result<ThemeFile, ThemeFileError> {
        if text.len() > MAX_THEME_BYTES {
            return Err(ThemeFileError::TooLong);
        }
        let written: WrittenTheme = crate::yaml_edit::parse_typed(text)?;
        let mut colors = BTreeMap::new();
        for (name, value) in written.colors {
            if !THEME_COLORS.contains(&name.as_str()) {
                return Err(ThemeFileError::UnknownColor { name: name.chars().take(40).collect() });
            }
            let color = parse_color(&value).ok_or_else(|| ThemeFileError::InvalidColor {
                name: name.clone(),
                value: value.chars().take(40).collect(),
            })?;
            colors.insert(name, color);
        }
        if !colors.contains_key("paper") || !colors.contains_key("ink") {
            return Err(ThemeFileError::Incomplete);
        }
        for (text, background) in
            TEXT_COLORS.into_iter().flat_map(|text| BACKGROUND_COLORS.map(|ground| (text, ground)))
        {
            let (Some(one), Some(other)) = (colors.get(text), colors.get(background)) else { continue };
            let contrast = contrast_ratio(*one, *other);
            if contrast < MIN_TEXT_CONTRAST {
                return Err(ThemeFileError::LowContrast { text, background, contrast });
            }
        }
        Ok(ThemeFile { base: written.base, colors })
    }
}

/// Parses `#rrggbb`.
fn parse_color(text: &str) -> Option<ThemeColor> {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6 && digits.is_ascii())?;
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
    Some([byte(0)?, byte(2)?, byte(4)?])
}

/// Returns the contrast of two colors, 1 to 21, as WCAG 2 defines it.
fn contrast_ratio(one: ThemeColor, other: ThemeColor) -> f32 {
    let luminance = |[red, green, blue]: ThemeColor| {
        let linear = |part: u8| {
            let part = f32::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn themes_are_read_and_wrong_ones_refused() {
        let good = "base: dark\ncolors:\n  paper: \"#101418\"\n  ink: \"#E8E8E8\"\n";
        let theme = ThemeFile::parse(good).expect("a theme");
        assert_eq!((theme.base, theme.colors["ink"]), (BaseTheme::Dark, [0xe8, 0xe8, 0xe8]));
        for (from, to, about) in [
            ("ink: \"#E8E8E8\"", "ink: \"#303030\"", "ink on paper has a contrast of 1."),
            ("ink: \"#E8E8E8\"", "ink: \"#é8E8E\"", "#1f2328"),
            ("ink: \"#E8E8E8\"", "ink: red", "#1f2328"),
            ("ink:", "inc:", "no color inc"),
            ("  ink: \"#E8E8E8\"\n", "", "paper and ink"),
            ("dark", "grey", "grey"),
        ] {
            let refused = ThemeFile::parse(&good.replace(from, to)).expect_err(about).to_string();
            assert!(refused.contains(about), "{about}: {refused}");
        }
    }
}
