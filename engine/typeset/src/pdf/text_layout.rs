//! Text layout: chooses fonts by glyph, shapes text, breaks it into lines and orders it for display.

use crate::drawing::VectorDrawing;
use crate::fonts::{CODE_FONT_FAMILY, FontSet, TEXT_FONT_FAMILY};
use crate::tints::Rgb;
use krilla::image::Image;
use krilla::text::{Font, GlyphId, KrillaGlyph};
use resvg::usvg::fontdb::ID;
use rustybuzz::{Direction, Script, ShapePlan, UnicodeBuffer};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use unicode_bidi::{BidiInfo, Level};
use unicode_segmentation::UnicodeSegmentation;
use yoke::{Yoke, Yokeable};

/// Maximum number of glyphs in the cache of shaped words.
const MAX_KEPT_GLYPHS: usize = 400_000;
/// Longer words are shaped in pieces of this many grapheme clusters.
const MAX_WORD_CLUSTERS: usize = 200;

/// Style of a word: font, size and color.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WordStyle {
    pub(super) code: bool,
    pub(super) weight: u16,
    pub(super) italic: bool,
    /// Size in points.
    pub(super) size: f32,
    pub(super) colour: Rgb,
    pub(super) ground: Option<Rgb>,
    pub(super) strike: bool,
    /// Offset above the baseline in points.
    pub(super) rise: f32,
    /// Index of the link in the document; `None` if the word isn't linked.
    pub(super) link: Option<usize>,
}

/// A vector drawing or a raster image.
#[allow(clippy::large_enum_variant, reason = "it stands behind a pointer")]
pub(super) enum PictureShape {
    Drawing(VectorDrawing),
    Image(Image),
}

/// An inline image. Lengths are in points.
#[derive(Clone)]
pub(super) struct InlinePicture {
    pub(super) shape: Rc<PictureShape>,
    pub(super) width: f32,
    pub(super) height: f32,
    pub(super) depth: f32,
    /// Padding of the drawing on each side.
    pub(super) pad: f32,
    pub(super) alt: String,
    pub(super) formula: bool,
}

/// An item of a paragraph.
#[derive(Clone)]
pub(super) enum ParagraphItem {
    Text(String, WordStyle),
    Object(InlinePicture),
    /// A line break.
    Break,
}

/// Glyphs shaped in one face; advances and width are in em.
pub(super) struct ShapedLetters {
    pub(super) glyphs: Vec<KrillaGlyph>,
    pub(super) width: f32,
}

/// The parsed tables of a face, kept because parsing them takes longer than shaping a word.
#[derive(Yokeable)]
struct ShapingTables<'a>(rustybuzz::Face<'a>);

/// A face of a font.
pub(super) struct FontFace {
    pub(super) font: Font,
    tables: Yoke<ShapingTables<'static>, Arc<Vec<u8>>>,
    /// Shaping plans by direction and script. They depend on nothing else, because all features are the default ones.
    plans: RefCell<HashMap<(Direction, Script), Rc<ShapePlan>>>,
    pub(super) ascent: f32,
    pub(super) descent: f32,
}

impl FontFace {
    /// Returns the shaping plan for the direction and script of a text.
    fn shape_plan(&self, buffer: &UnicodeBuffer) -> Rc<ShapePlan> {
        let (direction, script) = (buffer.direction(), buffer.script());
        let make = || {
            let known = Some(script).filter(|script| *script != rustybuzz::script::UNKNOWN);
            Rc::new(ShapePlan::new(&self.tables.get().0, direction, known, buffer.language().as_ref(), &[]))
        };
        self.plans.borrow_mut().entry((direction, script)).or_insert_with(make).clone()
    }
}

/// A part of a line.
#[derive(Clone)]
pub(super) struct LinePiece {
    pub(super) x: f32,
    pub(super) width: f32,
    pub(super) what: PieceKind,
}

#[derive(Clone)]
pub(super) enum PieceKind {
    Run { face: usize, glyphs: Vec<KrillaGlyph>, text: String, style: WordStyle },
    Object(InlinePicture),
}

/// A line; `base` is the distance from its top to the baseline.
pub(super) struct TextLine {
    pub(super) height: f32,
    pub(super) base: f32,
    pub(super) width: f32,
    pub(super) pieces: Vec<LinePiece>,
}

/// The fonts of a document, with caches.
pub(super) struct DocumentFonts<'a> {
    fonts: &'a FontSet,
    pub(super) faces: Vec<FontFace>,
    by_id: HashMap<ID, Option<usize>>,
    cuts: HashMap<(bool, u16, bool), Option<usize>>,
    letters_by_face: HashMap<(usize, char), bool>,
    fallback_faces: HashMap<(char, bool), Option<usize>>,
    /// The regular system faces in fallback order.
    fallback_order: Option<Rc<[ID]>>,
    /// The code points that each face covers, sorted.
    coverage: HashMap<ID, Vec<u32>>,
    shaped: HashMap<(usize, bool, String), Rc<ShapedLetters>>,
    /// Number of glyphs in `shaped`.
    kept_glyphs: usize,
    /// Characters that no font has.
    pub(super) missing: BTreeSet<char>,
}

impl<'a> DocumentFonts<'a> {
    pub(super) fn new(fonts: &'a FontSet) -> DocumentFonts<'a> {
        DocumentFonts {
            fonts,
            faces: Vec::new(),
            by_id: HashMap::new(),
            cuts: HashMap::new(),
            letters_by_face: HashMap::new(),
            fallback_faces: HashMap::new(),
            fallback_order: None,
            coverage: HashMap::new(),
            shaped: HashMap::new(),
            kept_glyphs: 0,
            missing: BTreeSet::new(),
        }
    }

    fn load_face(&mut self, id: ID) -> Option<usize> {
        if let Some(known) = self.by_id.get(&id) {
            return *known;
        }
        let read = self.fonts.db.with_face_data(id, |data, index| (Arc::new(data.to_vec()), index));
        let face = read.and_then(|(data, index)| {
            let font = Font::new(data.clone().into(), index)?;
            let tables = Yoke::<ShapingTables<'static>, _>::try_attach_to_cart(data, |data| {
                rustybuzz::Face::from_slice(data, index).map(ShapingTables).ok_or(())
            });
            let tables = tables.ok()?;
            let shaper = &tables.get().0;
            let units = f32::from(u16::try_from(shaper.units_per_em()).ok()?).max(1.0);
            let (ascent, descent) = (f32::from(shaper.ascender()) / units, -f32::from(shaper.descender()) / units);
            Some(FontFace { font, tables, plans: RefCell::default(), ascent, descent })
        });
        let place = face.map(|face| {
            self.faces.push(face);
            self.faces.len() - 1
        });
        self.by_id.insert(id, place);
        place
    }

    /// Returns the face of a style; `None` only if the bundled fonts can't be read.
    pub(super) fn style_face(&mut self, style: &WordStyle) -> Option<usize> {
        let key = (style.code, style.weight, style.italic);
        if let Some(known) = self.cuts.get(&key) {
            return *known;
        }
        let id = self.fonts.find_face(
            if style.code { CODE_FONT_FAMILY } else { TEXT_FONT_FAMILY },
            style.weight,
            style.italic,
        );
        let face = id.and_then(|id| self.load_face(id));
        self.cuts.insert(key, face);
        face
    }

    fn has_letter(&mut self, face: usize, letter: char) -> bool {
        if let Some(known) = self.letters_by_face.get(&(face, letter)) {
            return *known;
        }
        let found = self.faces.get(face).is_some_and(|face| face.tables.get().0.glyph_index(letter).is_some());
        self.letters_by_face.insert((face, letter), found);
        found
    }

    /// Returns a face that has a character, or the style's own face if none does.
    fn face_for_letter(&mut self, letter: char, own: usize, style: &WordStyle) -> usize {
        if letter.is_ascii() || is_invisible(letter) || self.has_letter(own, letter) {
            return own;
        }
        if let Some(known) = self.fallback_faces.get(&(letter, style.code)) {
            return known.unwrap_or(own);
        }
        let mut found = None;
        // Bundled fonts first, each in its regular face; then system fonts ordered by name, so that the result is
        // stable.
        let plain = WordStyle { weight: 400, italic: false, ..*style };
        for code in [style.code, !style.code] {
            found = found.or_else(|| {
                self.style_face(&WordStyle { code, ..plain }).filter(|face| self.has_letter(*face, letter))
            });
        }
        if found.is_none() {
            let ids = self.fallbacks_in_order();
            let id = ids.iter().copied().find(|id| self.face_covers(*id, letter));
            found = id.and_then(|id| self.load_face(id));
        }
        if found.is_none() {
            self.missing.insert(letter);
        }
        self.fallback_faces.insert((letter, style.code), found);
        found.unwrap_or(own)
    }

    /// Returns the regular system faces, Noto's first, ordered by name.
    fn fallbacks_in_order(&mut self) -> Rc<[ID]> {
        if let Some(ids) = &self.fallback_order {
            return ids.clone();
        }
        let mut ids: Vec<(bool, String, ID)> = self
            .fonts
            .db
            .faces()
            .filter(|face| face.weight.0 == 400 && face.style == resvg::usvg::fontdb::Style::Normal)
            .map(|face| (!face.post_script_name.contains("Noto"), face.post_script_name.clone(), face.id))
            .collect();
        ids.sort();
        let ids: Rc<[ID]> = ids.into_iter().map(|(.., id)| id).collect();
        self.fallback_order = Some(ids.clone());
        ids
    }

    /// Returns whether a face covers a character. Coverage is cached, because a text may lack very many characters.
    fn face_covers(&mut self, id: ID, letter: char) -> bool {
        let fonts = self.fonts;
        let letters = self.coverage.entry(id).or_insert_with(|| {
            let read = |data: &[u8], index| {
                let face = rustybuzz::Face::from_slice(data, index)?;
                let mut letters: Vec<u32> = Vec::new();
                for table in face.tables().cmap?.subtables.into_iter().filter(|table| table.is_unicode()) {
                    table.codepoints(|letter| letters.push(letter));
                }
                letters.sort_unstable();
                letters.dedup();
                let has = |letter: &u32| char::from_u32(*letter).is_some_and(|c| face.glyph_index(c).is_some());
                letters.retain(has);
                Some(letters)
            };
            fonts.db.with_face_data(id, read).flatten().unwrap_or_default()
        });
        letters.binary_search(&u32::from(letter)).is_ok()
    }

    fn measure_text(&self, face: usize, text: &str, backwards: bool) -> f32 {
        self.faces.get(face).map_or(0.0, |face| shape_text(face, text, backwards).width)
    }

    fn shape_cached(&mut self, face: usize, text: &str, backwards: bool) -> Rc<ShapedLetters> {
        let key = (face, backwards, text.to_owned());
        if let Some(known) = self.shaped.get(&key) {
            return known.clone();
        }
        let shaped = Rc::new(self.faces.get(face).map_or_else(empty_shaped, |face| shape_text(face, text, backwards)));
        self.kept_glyphs += shaped.glyphs.len() + 1;
        if self.kept_glyphs > MAX_KEPT_GLYPHS {
            self.shaped.clear();
            self.kept_glyphs = shaped.glyphs.len() + 1;
        }
        self.shaped.insert(key, shaped.clone());
        shaped
    }

    /// Returns the width of the items on one line, in points.
    pub(super) fn measure_items(&mut self, items: &[ParagraphItem]) -> f32 {
        self.break_lines(items, f32::INFINITY, 10.0).iter().map(|line| line.width).fold(0.0, f32::max)
    }

    /// Returns the width of the widest unbreakable part, in points.
    pub(super) fn widest_word(&mut self, items: &[ParagraphItem]) -> f32 {
        let (mut widest, mut here) = (0.0_f32, 0.0);
        for atom in self.split_into_atoms(items).0 {
            widest = widest.max(here + atom.width - atom.tail);
            here = if atom.breaks { 0.0 } else { here + atom.width };
        }
        widest
    }

    /// Breaks a paragraph into lines no wider than `width`, if possible. `leading` is the line height.
    pub(super) fn break_lines(&mut self, items: &[ParagraphItem], width: f32, leading: f32) -> Vec<TextLine> {
        let mut lines = Vec::new();
        for part in items.split(|item| matches!(item, ParagraphItem::Break)) {
            let (atoms, right) = self.split_into_atoms(part);
            let mut row: Vec<ParagraphAtom> = Vec::new();
            let mut queue: std::collections::VecDeque<ParagraphAtom> = atoms.into();
            let mut used = 0.0;
            while let Some(atom) = queue.pop_front() {
                if used + atom.width - atom.tail <= width {
                    used += atom.width;
                    row.push(atom);
                    continue;
                }
                // The line ends after its last break opportunity.
                match row.iter().rposition(|atom| atom.breaks) {
                    Some(last) => {
                        queue.push_front(atom);
                        row.drain(last + 1..).rev().for_each(|atom| queue.push_front(atom));
                    }
                    // A word that's too long is split.
                    None => match self.split_atom(&atom, width - used, row.is_empty()) {
                        Some((head, tail)) => {
                            row.push(head);
                            queue.push_front(tail);
                        }
                        None if row.is_empty() => row.push(atom),
                        None => queue.push_front(atom),
                    },
                }
                lines.push(self.build_line(std::mem::take(&mut row), right, width, leading));
                used = 0.0;
            }
            lines.push(self.build_line(row, right, width, leading));
        }
        lines
    }

    /// Splits an atom so that its head is no wider than `room`. With `force`, the head has at least one character.
    fn split_atom(&mut self, atom: &ParagraphAtom, room: f32, force: bool) -> Option<(ParagraphAtom, ParagraphAtom)> {
        let LineContent::Text { text, face, style } = &atom.content else { return None };
        let (right, ends) = (atom.level.is_rtl(), text.grapheme_indices(true).map(|(at, cluster)| at + cluster.len()));
        let ends: Vec<usize> = ends.collect();
        // Starts from the summed widths of the shaped glyphs, then adjusts: characters may be narrower next to others.
        let shaped = self.shape_cached(*face, text, right);
        let fits = |end: usize| {
            let inside = shaped.glyphs.iter().filter(|glyph| glyph.text_range.end <= end);
            inside.map(|glyph| glyph.x_advance).sum::<f32>() * style.size <= room
        };
        let mut count = ends.partition_point(|end| fits(*end));
        let wide = |count: usize| {
            let end = count.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(0);
            self.measure_text(*face, &text[..end], right) * style.size > room
        };
        while count < ends.len() && !wide(count + 1) {
            count += 1;
        }
        while count > 0 && wide(count) {
            count -= 1;
        }
        if force {
            count = count.max(1);
        }
        let end = count.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(0);
        if end == 0 || end >= text.len() {
            return None;
        }
        let (head, tail) = (text[..end].to_owned(), text[end..].to_owned());
        let (face, style, level) = (*face, *style, atom.level);
        Some((self.make_atom(head, face, style, level, true), self.make_atom(tail, face, style, level, atom.breaks)))
    }

    fn make_atom(&mut self, text: String, face: usize, style: WordStyle, level: Level, breaks: bool) -> ParagraphAtom {
        let trimmed = text.trim_end_matches(' ').len();
        let width = self.shape_cached(face, &text, level.is_rtl()).width * style.size;
        let tail = if trimmed < text.len() {
            width - self.shape_cached(face, &text[..trimmed], level.is_rtl()).width * style.size
        } else {
            0.0
        };
        ParagraphAtom { width, tail, breaks, level, content: LineContent::Text { text, face, style } }
    }

    /// Splits a paragraph at every change of font, style or direction and at every break opportunity.
    ///
    /// Also returns whether the paragraph is read from right to left.
    fn split_into_atoms(&mut self, items: &[ParagraphItem]) -> (Vec<ParagraphAtom>, bool) {
        let mut whole = String::new();
        for item in items {
            match item {
                ParagraphItem::Text(text, _) => whole.push_str(text),
                ParagraphItem::Object(_) => whole.push('\u{fffc}'),
                ParagraphItem::Break => {}
            }
        }
        // Most text has one direction.
        let bidi = whole.chars().any(|c| c >= '\u{590}').then(|| BidiInfo::new(&whole, None));
        let level = |at: usize| bidi.as_ref().and_then(|bidi| bidi.levels.get(at).copied()).unwrap_or(Level::ltr());
        let right = bidi.as_ref().is_some_and(|bidi| bidi.paragraphs.first().is_some_and(|par| par.level.is_rtl()));
        let mut atoms: Vec<ParagraphAtom> = Vec::new();
        let mut at = 0;
        for item in items {
            match item {
                ParagraphItem::Break => {}
                ParagraphItem::Object(object) => {
                    let content = LineContent::Object(object.clone());
                    atoms.push(ParagraphAtom {
                        width: object.width,
                        tail: 0.0,
                        breaks: false,
                        level: level(at),
                        content,
                    });
                    at += '\u{fffc}'.len_utf8();
                }
                ParagraphItem::Text(text, style) => {
                    let Some(own) = self.style_face(style) else { continue };
                    let mut open: Option<(String, usize, Level)> = None;
                    let mut clusters = 0;
                    for cluster in text.graphemes(true) {
                        let first = cluster.chars().next().unwrap_or(' ');
                        let face = self.face_for_letter(first, own, style);
                        let here = level(at);
                        at += cluster.len();
                        if let Some((text, known, was)) = open.take_if(|(_, known, was)| *known != face || *was != here)
                        {
                            atoms.push(self.make_atom(text, known, *style, was, false));
                            clusters = 0;
                        }
                        // A very long word is shaped piece by piece, because splitting it would take quadratic time
                        // otherwise.
                        clusters += 1;
                        if clusters > MAX_WORD_CLUSTERS
                            && let Some((text, face, level)) = open.take()
                        {
                            atoms.push(self.make_atom(text, face, *style, level, false));
                            clusters = 1;
                        }
                        let shown = match first {
                            '\t' => "    ",
                            c if c.is_control() => "",
                            _ => cluster,
                        };
                        open.get_or_insert_with(|| (String::new(), face, here)).0.push_str(shown);
                        if can_break_after(cluster, whole.get(at..).and_then(|rest| rest.chars().next()))
                            && let Some((text, face, level)) = open.take()
                        {
                            atoms.push(self.make_atom(text, face, *style, level, true));
                            clusters = 0;
                        }
                    }
                    if let Some((text, face, level)) = open {
                        atoms.push(self.make_atom(text, face, *style, level, false));
                    }
                }
            }
        }
        (atoms, right)
    }

    fn build_line(&mut self, mut atoms: Vec<ParagraphAtom>, right: bool, width: f32, leading: f32) -> TextLine {
        let style = atoms.iter().find_map(|atom| match &atom.content {
            LineContent::Text { style, .. } => Some(*style),
            LineContent::Object(_) => None,
        });
        let face = style.and_then(|style| self.style_face(&style));
        let (ascent, descent) = face.and_then(|face| self.faces.get(face)).map_or((0.97, 0.24), |face| {
            // A line of code has the same height as a line of text.
            (face.ascent.min(1.0), face.descent.min(0.3))
        });
        let size = style.map_or(10.0, |style| style.size);
        let mut base = (leading - (ascent + descent) * size) / 2.0 + ascent * size;
        let mut below = leading - base;
        for atom in &atoms {
            if let LineContent::Object(object) = &atom.content {
                base = base.max(object.height + 1.5);
                below = below.max(object.depth + 1.5);
            }
        }
        let used = atoms.iter().map(|atom| atom.width).sum::<f32>() - atoms.last().map_or(0.0, |atom| atom.tail);
        reorder_atoms(&mut atoms);
        let mut x = if right && width.is_finite() { (width - used).max(0.0) } else { 0.0 };
        let mut pieces: Vec<LinePiece> = Vec::new();
        for atom in atoms {
            let ParagraphAtom { width, level, content, .. } = atom;
            match content {
                LineContent::Object(object) => pieces.push(LinePiece { x, width, what: PieceKind::Object(object) }),
                LineContent::Text { text, face, style } => {
                    let shaped = self.shape_cached(face, &text, level.is_rtl());
                    let last = pieces.last_mut().filter(|_| level.is_ltr());
                    match last {
                        Some(LinePiece {
                            width: known,
                            what: PieceKind::Run { face: f, glyphs, text: t, style: s },
                            ..
                        }) if *f == face && *s == style => {
                            let by = t.len();
                            glyphs.extend(shaped.glyphs.iter().cloned().map(|mut glyph| {
                                glyph.text_range = glyph.text_range.start + by..glyph.text_range.end + by;
                                glyph
                            }));
                            t.push_str(&text);
                            *known += width;
                        }
                        _ => {
                            let glyphs = shaped.glyphs.clone();
                            pieces.push(LinePiece { x, width, what: PieceKind::Run { face, glyphs, text, style } });
                        }
                    }
                }
            }
            x += width;
        }
        TextLine { height: base + below, base, width: used, pieces }
    }
}

/// A part of a paragraph without changes of font, style or direction.
struct ParagraphAtom {
    width: f32,
    /// Width of the trailing space.
    tail: f32,
    /// Whether a line may end after it.
    breaks: bool,
    level: Level,
    content: LineContent,
}

enum LineContent {
    Text { text: String, face: usize, style: WordStyle },
    Object(InlinePicture),
}

fn empty_shaped() -> ShapedLetters {
    ShapedLetters { glyphs: Vec::new(), width: 0.0 }
}

#[allow(clippy::cast_precision_loss, reason = "units of a font")]
fn shape_text(face: &FontFace, text: &str, backwards: bool) -> ShapedLetters {
    let shaper = &face.tables.get().0;
    let mut buffer = UnicodeBuffer::new();
    buffer.push_str(text);
    buffer.guess_segment_properties();
    buffer.set_direction(if backwards { Direction::RightToLeft } else { Direction::LeftToRight });
    let output = rustybuzz::shape_with_plan(shaper, &face.shape_plan(&buffer), buffer);
    let units = (shaper.units_per_em() as f32).max(1.0);
    let mut starts: Vec<usize> = output.glyph_infos().iter().map(|info| info.cluster as usize).collect();
    starts.sort_unstable();
    starts.dedup();
    let mut width = 0.0;
    let glyphs = output
        .glyph_infos()
        .iter()
        .zip(output.glyph_positions())
        .map(|(info, place)| {
            let start = (info.cluster as usize).min(text.len());
            let next = starts.partition_point(|known| *known <= start);
            let end = starts.get(next).copied().unwrap_or(text.len());
            let advance = place.x_advance as f32 / units;
            width += advance;
            let (x, y) = (place.x_offset as f32 / units, place.y_offset as f32 / units);
            KrillaGlyph::new(GlyphId::new(info.glyph_id), advance, x, y, 0.0, start..end, None)
        })
        .collect();
    ShapedLetters { glyphs, width }
}

/// Reorders the atoms of a line from left to right for display.
fn reorder_atoms(atoms: &mut [ParagraphAtom]) {
    let levels: Vec<u8> = atoms.iter().map(|atom| atom.level.number()).collect();
    let (Some(most), Some(odd)) = (levels.iter().max(), levels.iter().filter(|level| *level % 2 == 1).min()) else {
        return;
    };
    let mut levels = levels.clone();
    for level in (*odd..=*most).rev() {
        let mut at = 0;
        while at < levels.len() {
            let run = levels[at..].iter().take_while(|own| **own >= level).count();
            atoms[at..at + run].reverse();
            levels[at..at + run].reverse();
            at += run.max(1);
        }
    }
}

/// Returns whether a character has no glyph of its own, or only modifies its neighbor.
fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || letter.is_whitespace()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
        || matches!(letter, '\u{fe00}'..='\u{fe0f}' | '\u{ad}' | '\u{fffc}' | '\u{e0000}'..='\u{e0fff}')
}

fn is_wide(letter: char) -> bool {
    matches!(letter, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}')
        || matches!(letter, '\u{ff00}'..='\u{ff60}' | '\u{20000}'..='\u{3fffd}')
}

/// Returns whether a line may end after a grapheme cluster.
fn can_break_after(cluster: &str, next: Option<char>) -> bool {
    let (Some(letter), Some(next)) = (cluster.chars().next_back(), next) else { return true };
    match letter {
        '\u{a0}' | '\u{202f}' | '\u{2060}' => false,
        letter if letter.is_whitespace() || letter == '\u{200b}' => !next.is_whitespace(),
        '-' | '–' | '—' | '/' | '\u{ad}' => next.is_alphabetic(),
        letter if is_wide(letter) || is_wide(next) => {
            !"、。，．！？：；」』）】〉》ー…".contains(next)
                && !"「『（【〈《".contains(letter)
                && !next.is_whitespace()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style() -> WordStyle {
        WordStyle {
            code: false,
            weight: 400,
            italic: false,
            size: 10.0,
            colour: [0; 3],
            ground: None,
            strike: false,
            rise: 0.0,
            link: None,
        }
    }

    fn broken(text: &str, width: f32) -> Vec<String> {
        let fonts = FontSet::bundled();
        let mut letters = DocumentFonts::new(&fonts);
        let lines = letters.break_lines(&[ParagraphItem::Text(text.to_owned(), style())], width, 15.0);
        for line in &lines {
            assert!(line.width <= width + 0.01 || width < 12.0, "{text}: {} in {width}", line.width);
        }
        let words = |line: &TextLine| {
            let runs = line.pieces.iter().filter_map(|piece| match &piece.what {
                PieceKind::Run { text, .. } => Some(text.as_str()),
                PieceKind::Object(_) => None,
            });
            runs.collect::<String>()
        };
        lines.iter().map(words).collect()
    }

    #[test]
    fn lines_end_where_they_may() {
        assert_eq!(broken("one two three", 1e9), ["one two three"]);
        assert_eq!(broken("one two three", 40.0), ["one two ", "three"]);
        assert_eq!(broken("well-known", 33.0), ["well-", "known"]);
        assert!(broken("incomprehensibilities", 40.0).len() > 1, "a long word is cut");
        assert_eq!(broken("", 40.0), [""]);
        assert_eq!(broken("a\u{a0}b c", 18.0).join("|"), "a\u{a0}b |c");
    }

    #[test]
    fn nothing_is_lost_and_nothing_trips_it() {
        for text in [
            "é漢字かな交じり文です。長い",
            "שלום עולם abc",
            "🙂👩‍👩‍👧 🇩🇪",
            "a\u{301}\u{301}b",
            "\u{202e}x",
            "ﬁ fi \t.",
            "\u{0}",
        ] {
            for width in [3.0, 20.0, 45.0, 200.0] {
                let whole: String = broken(text, width).concat();
                let plain = |text: &str| {
                    let mut letters: Vec<char> =
                        text.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect();
                    letters.sort_unstable();
                    letters
                };
                assert_eq!(plain(&whole), plain(text), "{text} {width}");
            }
        }
    }
}
