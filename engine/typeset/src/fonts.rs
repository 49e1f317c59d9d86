//! Fonts for drawings and pages: the bundled fonts, with the system's fonts as fallback for missing glyphs.

use resvg::usvg::fontdb::{Database, Family, ID, Query, Source, Stretch, Style, Weight};
use std::sync::Arc;

/// Font family of text.
pub const TEXT_FONT_FAMILY: &str = "Inter";
/// Font family of code.
pub const CODE_FONT_FAMILY: &str = "JetBrains Mono";

macro_rules! files {
    ($($name:literal),*) => {
        [$(include_bytes!(concat!("../../../assets/fonts/", $name, ".ttf")).as_slice()),*]
    };
}

const FONT_FILES: [&[u8]; 8] = files!(
    "Inter-Regular",
    "Inter-Italic",
    "Inter-SemiBold",
    "Inter-Bold",
    "Inter-BoldItalic",
    "JetBrainsMono-Regular",
    "JetBrainsMono-Italic",
    "JetBrainsMono-Bold"
);

/// The bundled fonts of web pages, as TrueType: text, bold text, and code.
pub const WEB_FONT_FILES: [&[u8]; 3] = [FONT_FILES[0], FONT_FILES[2], FONT_FILES[5]];

/// A set of fonts that drawings and pages use.
#[derive(Clone)]
pub struct FontSet {
    pub(crate) db: Arc<Database>,
}

impl FontSet {
    /// Returns the bundled fonts, with which output looks the same everywhere.
    pub fn bundled() -> FontSet {
        let mut db = Database::new();
        for file in FONT_FILES {
            db.load_font_source(Source::Binary(Arc::new(file)));
        }
        db.set_sans_serif_family(TEXT_FONT_FAMILY);
        db.set_serif_family(TEXT_FONT_FAMILY);
        db.set_cursive_family(TEXT_FONT_FAMILY);
        db.set_fantasy_family(TEXT_FONT_FAMILY);
        db.set_monospace_family(CODE_FONT_FAMILY);
        FontSet { db: Arc::new(db) }
    }

    /// Returns the bundled fonts with all system fonts as fallback for glyphs they lack.
    ///
    /// It scans the system's font folders, so it takes up to a second the first time.
    pub fn with_system() -> FontSet {
        let mut fonts = FontSet::bundled();
        Arc::make_mut(&mut fonts.db).load_system_fonts();
        fonts
    }

    /// Returns the face of a family with a weight and style.
    pub fn find_face(&self, family: &str, bold: u16, italic: bool) -> Option<ID> {
        self.db.query(&Query {
            families: &[Family::Name(family)],
            weight: Weight(bold),
            stretch: Stretch::Normal,
            style: if italic { Style::Italic } else { Style::Normal },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cut_is_there() {
        let fonts = FontSet::bundled();
        let mut all: Vec<ID> = Vec::new();
        for (family, bold, italic) in [
            (TEXT_FONT_FAMILY, 400, false),
            (TEXT_FONT_FAMILY, 400, true),
            (TEXT_FONT_FAMILY, 600, false),
            (TEXT_FONT_FAMILY, 700, false),
            (TEXT_FONT_FAMILY, 700, true),
            (CODE_FONT_FAMILY, 400, false),
            (CODE_FONT_FAMILY, 400, true),
            (CODE_FONT_FAMILY, 700, false),
        ] {
            let face = fonts.find_face(family, bold, italic).unwrap_or_else(|| panic!("{family} {bold} {italic}"));
            assert!(!all.contains(&face), "{family} {bold} {italic} is a cut of its own");
            all.push(face);
        }
    }
}
