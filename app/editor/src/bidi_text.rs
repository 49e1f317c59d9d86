//! Layout of right-to-left text. egui lays out every line from left to right (egui #8576). Text with Hebrew or Arabic
//! letters is therefore cut into pieces that egui shapes. The pieces are placed side by side in the order of Unicode's
//! bidirectional algorithm.
//!
//! As in every galley, a row has one glyph for each character, in the order of the text. A right-to-left glyph begins
//! at its right edge: its width is negative.

use eframe::egui;
use egui::epaint::Mesh;
use egui::epaint::text::{CharIndex, Glyph, PlacedRow, Row};
use egui::text::{CCursor, LayoutJob};
use egui::{Align, Context, Galley, Rect, Vec2, pos2, vec2};
use std::ops::Range;
use std::sync::Arc;
use unicode_bidi::{BidiClass, BidiInfo, Level, bidi_class};
use unicode_segmentation::UnicodeSegmentation;

/// Tolerance by which a line may exceed its width, to allow for rounding errors in sums of widths.
const WIDTH_TOLERANCE: f32 = 0.01;

/// Returns whether a text contains right-to-left letters.
pub fn has_right_to_left(text: &str) -> bool {
    text.chars().any(|letter| letter >= '\u{590}' && letter != '\u{200f}' && is_right_to_left(letter))
}

/// Returns whether the first line of a text reads from right to left, as its first letter does.
pub(crate) fn begins_right_to_left(text: &str) -> bool {
    let line = text.split('\n').next().unwrap_or_default();
    has_right_to_left(line) && BidiInfo::new(line, None).paragraphs.first().is_some_and(|first| first.level.is_rtl())
}

fn is_right_to_left(letter: char) -> bool {
    matches!(bidi_class(letter), BidiClass::R | BidiClass::AL)
}

/// Lays out text in reading order. A paragraph whose first letter is right-to-left is aligned to the right edge of the
/// job's width.
pub(crate) fn layout_in_reading_order(ctx: &Context, job: LayoutJob) -> Arc<Galley> {
    let mut rows = Vec::new();
    let mut at = 0;
    let (mut top, mut widest): (f32, f32) = (0.0, 0.0);
    let lines: Vec<&str> = job.text.split('\n').collect();
    for (index, line) in lines.iter().enumerate() {
        let paragraph = ShapedParagraph::new(ctx, &job, at, line);
        let cuts = paragraph.line_cuts(job.wrap.max_width);
        for (number, cut) in cuts.iter().enumerate() {
            let Some(mut placed) = paragraph.placed_row(ctx, &job, at, cut.clone()) else { continue };
            placed.pos.y = top;
            placed.ends_with_newline = number + 1 == cuts.len() && index + 1 < lines.len();
            top += placed.row.size.y;
            widest = widest.max(placed.rect().right());
            rows.push(placed);
        }
        at += line.len() + 1;
    }
    // Only egui can construct a galley, so an existing one is cloned and modified.
    let mut galley = Galley::clone(&blank_galley(ctx, &job, 0));
    galley.rect = Rect::from_min_size(egui::Pos2::ZERO, vec2(widest.ceil(), top));
    galley.mesh_bounds = Rect::NOTHING;
    (galley.num_vertices, galley.num_indices) = (0, 0);
    for placed in &rows {
        galley.mesh_bounds |= placed.visuals.mesh_bounds.translate(placed.pos.to_vec2());
        galley.num_vertices += placed.visuals.mesh.vertices.len();
        galley.num_indices += placed.visuals.mesh.indices.len();
    }
    galley.rows = rows;
    galley.job = Arc::new(job);
    Arc::new(galley)
}

/// Text of one style and one direction, shaped by egui.
struct ShapedPiece {
    text: String,
    galley: Arc<Galley>,
    level: Level,
    /// Index of the job's section that contains the piece.
    section: usize,
    /// Whether further letters of the same word may be appended.
    is_word: bool,
    is_space: bool,
    /// Space before the piece, in points.
    lead: f32,
}

impl ShapedPiece {
    fn row(&self) -> Option<&Row> {
        self.galley.rows.first().map(|placed| &*placed.row)
    }

    fn width(&self) -> f32 {
        self.row().map_or(0.0, |row| row.size.x)
    }

    /// Returns each character's start position and advance; the advance is negative in right-to-left text.
    fn extents(&self) -> Vec<(f32, f32)> {
        let glyphs = self.row().map_or(&[][..], |row| &row.glyphs);
        if !self.level.is_rtl() && glyphs.len() == self.text.chars().count() {
            return glyphs.iter().map(|glyph| (glyph.pos.x, glyph.advance_width)).collect();
        }
        let clusters: Vec<&str> = self.text.graphemes(true).collect();
        let mut spans: Vec<(f32, f32)> =
            glyphs.iter().filter(|glyph| glyph.advance_width > 0.0).map(|glyph| (glyph.pos.x, glyph.max_x())).collect();
        if spans.len() != clusters.len() {
            // Letters drawn as one glyph share its width.
            let each = self.width() / clusters.len().max(1) as f32;
            spans = (0..clusters.len()).map(|index| (index as f32 * each, (index + 1) as f32 * each)).collect();
        }
        if self.level.is_rtl() {
            spans = spans.into_iter().rev().map(|(left, right)| (right, left)).collect();
        }
        let mut extents = Vec::new();
        for (cluster, (from, to)) in clusters.iter().zip(spans) {
            extents.push((from, to - from));
            let nothing = if self.level.is_rtl() { -0.0 } else { 0.0 };
            extents.extend(cluster.chars().skip(1).map(|_| (to, nothing)));
        }
        extents
    }
}

/// A paragraph as shaped pieces, in the order of its text.
struct ShapedParagraph {
    pieces: Vec<ShapedPiece>,
    base: Level,
}

impl ShapedParagraph {
    /// Shapes a paragraph; `start` is its byte offset in the job's text.
    fn new(ctx: &Context, job: &LayoutJob, start: usize, line: &str) -> ShapedParagraph {
        // Invisible direction overrides could make text read differently than it is, so they are replaced.
        let plain: String = line.chars().map(|letter| if is_override(letter) { '\u{fffd}' } else { letter }).collect();
        let is_code = job.sections.iter().all(|section| ui::theme::is_mono(&section.format.font_id));
        let bidi = BidiInfo::new(&plain, is_code.then(Level::ltr));
        let base = bidi.paragraphs.first().map_or(Level::ltr(), |paragraph| paragraph.level);
        let mut words: Vec<(Range<usize>, Level, usize, bool)> = Vec::new();
        for (at, cluster) in line.grapheme_indices(true) {
            let level = bidi.levels.get(at).copied().unwrap_or(base);
            let section = section_at(job, start + at);
            let first = cluster.chars().next().unwrap_or(' ');
            // Characters without a direction of their own become separate pieces: egui would lay them out left to
            // right.
            let is_word = if level.is_rtl() {
                is_right_to_left(first)
            } else {
                !first.is_whitespace() && !('\u{600}'..='\u{6ff}').contains(&first)
            };
            match words.last_mut() {
                Some((range, last, of, true)) if is_word && *last == level && *of == section => {
                    range.end = at + cluster.len();
                }
                _ => words.push((at..at + cluster.len(), level, section, is_word)),
            }
        }
        let mut pieces = Vec::new();
        for (range, level, section, is_word) in words {
            let text = &line[range.clone()];
            let lead = match job.sections.get(section) {
                Some(found) if found.byte_range.start.0 == start + range.start => found.leading_space,
                _ => 0.0,
            };
            let piece = shaped_piece(ctx, job, text, level, section, is_word, lead);
            if piece.width() <= job.wrap.max_width || !is_word {
                pieces.push(piece);
                continue;
            }
            for (at, cluster) in text.grapheme_indices(true) {
                let lead = if at == 0 { lead } else { 0.0 };
                pieces.push(shaped_piece(ctx, job, cluster, level, section, is_word, lead));
            }
        }
        ShapedParagraph { pieces, base }
    }

    /// Breaks the paragraph into lines of a width, after spaces where possible.
    fn line_cuts(&self, width: f32) -> Vec<Range<usize>> {
        let mut cuts = Vec::new();
        let (mut start, mut behind_space) = (0, 0);
        let reach =
            |range: Range<usize>| -> f32 { self.pieces[range].iter().map(|piece| piece.lead + piece.width()).sum() };
        for (index, piece) in self.pieces.iter().enumerate() {
            while index > start && !piece.is_space && reach(start..index + 1) > width + WIDTH_TOLERANCE {
                let end = if behind_space > start { behind_space } else { index };
                cuts.push(start..end);
                start = end;
            }
            if piece.is_space {
                behind_space = index + 1;
            }
        }
        cuts.push(start..self.pieces.len());
        cuts
    }

    /// Places the pieces of one line as a row at height 0.
    fn placed_row(&self, ctx: &Context, job: &LayoutJob, start: usize, cut: Range<usize>) -> Option<PlacedRow> {
        let pieces = &self.pieces[cut];
        let mut placed = match pieces.first() {
            Some(piece) => piece.galley.rows.first()?.clone(),
            None => blank_galley(ctx, job, start).rows.first()?.clone(),
        };
        let row = Arc::make_mut(&mut placed.row);
        let scale = ctx.pixels_per_point();
        let rounded = |x: f32| (x * scale).round() / scale;
        let mut levels: Vec<Level> = pieces.iter().map(|piece| piece.level).collect();
        let trailing = pieces.iter().rev().take_while(|piece| piece.is_space).count();
        levels[pieces.len() - trailing..].fill(self.base);
        let mut lefts = vec![0.0; pieces.len()];
        let mut width = 0.0;
        for index in BidiInfo::reorder_visual(&levels) {
            let piece = &pieces[index];
            lefts[index] = rounded(if piece.level.is_rtl() { width } else { width + piece.lead });
            width += piece.lead + piece.width();
        }
        let height = pieces.iter().filter_map(ShapedPiece::row).map(|row| row.size.y).fold(0.0, f32::max);
        row.size = vec2(width, if pieces.is_empty() { row.size.y } else { height });
        row.glyphs = Vec::new();
        let mut mesh = Mesh::default();
        // Backgrounds come first, then letters, then underlines.
        let offsets: Vec<Vec2> = pieces
            .iter()
            .zip(&lefts)
            .map(|(piece, left)| {
                let valign = job.sections.get(piece.section).map_or(Align::BOTTOM, |section| section.format.valign);
                let own = piece.row().map_or(height, |row| row.size.y);
                vec2(*left, rounded(valign.to_factor() * (height - own)))
            })
            .collect();
        let mut each = |part: RowMeshPart| {
            let start = (mesh.vertices.len(), mesh.indices.len());
            let firsts: Vec<usize> = pieces
                .iter()
                .zip(&offsets)
                .map(|(piece, by)| {
                    let first = mesh.vertices.len();
                    if let Some(row) = piece.row() {
                        append_mesh(&mut mesh, row, part, *by);
                    }
                    first
                })
                .collect();
            (start, firsts)
        };
        each(RowMeshPart::Ground);
        let ((glyph_start, glyph_index_start), firsts) = each(RowMeshPart::Letters);
        let ((glyph_end, _), _) = each(RowMeshPart::Lines);
        for ((piece, by), first) in pieces.iter().zip(&offsets).zip(firsts) {
            let Some(from) = piece.row() else { continue };
            let own = from.visuals.glyph_vertex_range.start;
            let characters = piece.text.chars().zip(piece.extents()).enumerate();
            row.glyphs.extend(characters.filter_map(|(index, (letter, (x, advance)))| {
                let same = if piece.level.is_rtl() && piece.is_word { None } else { from.glyphs.get(index) };
                let mut glyph: Glyph = *same.or(from.glyphs.first())?;
                let vertex = (glyph.first_vertex as usize).saturating_sub(own);
                glyph.first_vertex = (first + if same.is_some() { vertex } else { 0 }) as u32;
                (glyph.chr, glyph.advance_width) = (letter, advance);
                glyph.pos = pos2(by.x + x, glyph.pos.y + by.y);
                Some(glyph)
            }));
        }
        row.visuals.mesh_bounds = mesh.calc_bounds();
        row.visuals.mesh = mesh;
        row.visuals.glyph_index_start = glyph_index_start;
        row.visuals.glyph_vertex_range = glyph_start..glyph_end;
        let is_aligned_right = self.base.is_rtl() && job.wrap.max_width.is_finite();
        placed.pos = pos2(if is_aligned_right { rounded(job.wrap.max_width - width) } else { 0.0 }, 0.0);
        Some(placed)
    }
}

/// A part of a row's mesh.
#[derive(Clone, Copy)]
enum RowMeshPart {
    Ground,
    Letters,
    Lines,
}

/// Appends a part of a row's mesh to another mesh, offset by `by`.
fn append_mesh(mesh: &mut Mesh, row: &Row, part: RowMeshPart, by: Vec2) {
    let visuals = &row.visuals;
    let letters = visuals.glyph_vertex_range.clone();
    // A letter is a rectangle: four corners, and two triangles.
    let letters_end = visuals.glyph_index_start + letters.len() / 4 * 6;
    let (vertices, indices) = match part {
        RowMeshPart::Ground => (0..letters.start, 0..visuals.glyph_index_start),
        RowMeshPart::Letters => (letters, visuals.glyph_index_start..letters_end),
        RowMeshPart::Lines => (letters.end..visuals.mesh.vertices.len(), letters_end..visuals.mesh.indices.len()),
    };
    let (from, to) = (vertices.start as u32, mesh.vertices.len() as u32);
    let Some(found) = visuals.mesh.vertices.get(vertices) else { return };
    mesh.vertices.extend(found.iter().map(|vertex| egui::epaint::Vertex { pos: vertex.pos + by, ..*vertex }));
    let found = visuals.mesh.indices.get(indices).unwrap_or(&[]);
    mesh.indices.extend(found.iter().map(|index| index.saturating_sub(from) + to));
}

/// Returns whether a character is an invisible mark that overrides the direction of the text after it.
fn is_override(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn section_at(job: &LayoutJob, at: usize) -> usize {
    job.sections.partition_point(|section| section.byte_range.end.0 <= at).min(job.sections.len().saturating_sub(1))
}

fn shaped_piece(
    ctx: &Context,
    job: &LayoutJob,
    text: &str,
    level: Level,
    section: usize,
    is_word: bool,
    lead: f32,
) -> ShapedPiece {
    let format = job.sections.get(section).map(|section| section.format.clone()).unwrap_or_default();
    // Brackets are mirrored in right-to-left text.
    let shown = if level.is_rtl() { text.chars().map(mirrored).collect() } else { text.to_owned() };
    let set = |text: String| {
        let mut part = LayoutJob { break_on_newline: false, round_output_to_gui: false, ..LayoutJob::default() };
        part.append(&text, 0.0, format.clone());
        ctx.fonts_mut(|fonts| fonts.layout_job(part))
    };
    let mut galley = set(shown);
    if galley.rows.first().is_none_or(|row| row.glyphs.is_empty()) {
        galley = set(" ".to_owned());
    }
    let is_space = text.chars().all(char::is_whitespace);
    ShapedPiece { text: text.to_owned(), galley, level, section, is_word, is_space, lead }
}

/// Returns the layout of a blank line, as high as the text at a byte of the job.
fn blank_galley(ctx: &Context, job: &LayoutJob, at: usize) -> Arc<Galley> {
    shaped_piece(ctx, job, " ", Level::ltr(), section_at(job, at), false, 0.0).galley
}

/// Returns the counterpart of a bracket; other characters are returned unchanged.
fn mirrored(letter: char) -> char {
    const PAIRS: [(char, char); 6] = [('(', ')'), ('[', ']'), ('{', '}'), ('<', '>'), ('«', '»'), ('‹', '›')];
    PAIRS
        .iter()
        .find_map(|(open, close)| match letter {
            _ if letter == *open => Some(*close),
            _ if letter == *close => Some(*open),
            _ => None,
        })
        .unwrap_or(letter)
}

fn is_reversed(glyph: &Glyph) -> bool {
    glyph.advance_width.is_sign_negative()
}

/// Returns whether a row contains right-to-left text.
fn is_turned(row: &Row) -> bool {
    row.glyphs.iter().any(is_reversed)
}

/// Returns the caret's rectangle at a character; its width is zero.
pub fn caret_place(galley: &Galley, cursor: CCursor) -> Rect {
    let place = galley.layout_from_cursor(cursor);
    let rect = galley.pos_from_layout_cursor(&place);
    match galley.rows.get(place.row).filter(|row| is_turned(row)) {
        Some(row) => match row.glyphs.last() {
            Some(last) if place.column >= CharIndex(row.glyphs.len()) => {
                let x = row.pos.x + last.max_x();
                Rect::from_x_y_ranges(x..=x, rect.y_range())
            }
            _ => rect,
        },
        None => rect,
    }
}

/// Returns the caret position nearest to a point of laid-out text.
pub fn caret_at_point(galley: &Galley, point: Vec2) -> CCursor {
    let found = galley.cursor_from_pos(point);
    let place = galley.layout_from_cursor(found);
    let Some(row) = galley.rows.get(place.row).filter(|row| is_turned(row)) else { return found };
    let x = point.x - row.pos.x;
    let away = |glyph: &Glyph| {
        let (left, right) = (glyph.pos.x.min(glyph.max_x()), glyph.pos.x.max(glyph.max_x()));
        (left - x).max(x - right).max(0.0)
    };
    let wide = row.glyphs.iter().enumerate().filter(|(_, glyph)| glyph.advance_width != 0.0);
    let Some((index, glyph)) = wide.min_by(|(_, a), (_, b)| away(a).total_cmp(&away(b))) else { return found };
    let middle = glyph.pos.x + glyph.advance_width / 2.0;
    let column = if (x < middle) == is_reversed(glyph) {
        let marks = row.glyphs[index + 1..].iter().take_while(|glyph| glyph.advance_width == 0.0);
        index + 1 + marks.count()
    } else {
        index
    };
    let before: usize = galley.rows[..place.row].iter().map(|row| row.char_count_including_newline().0).sum();
    CCursor { prefer_next_row: column < row.glyphs.len(), ..CCursor::new(before + column) }
}

/// Returns the rectangles of a range of a row's characters; `None` if the row has no right-to-left text.
pub(crate) fn turned_rects(row: &PlacedRow, columns: Range<usize>) -> Option<Vec<Rect>> {
    if !is_turned(row) {
        return None;
    }
    let mut rects: Vec<Rect> = Vec::new();
    for glyph in row.glyphs.get(columns)?.iter().filter(|glyph| glyph.advance_width != 0.0) {
        let (from, to) = (row.pos.x + glyph.pos.x, row.pos.x + glyph.max_x());
        let rect = Rect::from_x_y_ranges(from.min(to)..=from.max(to), row.rect().y_range());
        match rects.last_mut() {
            Some(last) if last.left() - 1.0 <= rect.right() && rect.left() <= last.right() + 1.0 => *last |= rect,
            _ => rects.push(rect),
        }
    }
    Some(rects)
}
