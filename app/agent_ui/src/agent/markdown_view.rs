//! Markdown of messages: split into rows, each laid out once. While a text grows, only its last row is laid out again.

use editor::assets;
use editor::render::{self, TextStyleContext};
use editor::row_layout::{RowLayout, RowPart};
use editor::row_splitter::{self, MarkdownRow, PrecedingContext, RowKind};
use eframe::egui;
use egui::{Pos2, Rect, Ui, pos2, vec2};
use std::collections::HashMap;
use std::rc::Rc;
use store::DocId;
use ui::theme::{self, ThemeColors, space};

/// Number of cached rows beyond those of the last frames.
const MAX_CACHED_MESSAGE_ROWS: usize = 2_000;
/// Maximum number of bytes of a message that are shown; the note or the timeline has the rest.
pub(super) const MAX_MESSAGE_BYTES: usize = 200_000;

/// A text split into rows.
pub(super) struct MarkdownView {
    text: String,
    rows: Vec<MarkdownRow>,
}

impl MarkdownView {
    pub(super) fn new(text: &str) -> MarkdownView {
        // Model output is untrusted: hidden characters are made visible.
        let text = text::untrusted_text::escape_block(text[..text.floor_char_boundary(MAX_MESSAGE_BYTES)].trim_end())
            .into_owned();
        // At the start of a note, three dashes would begin its front matter; a message has none.
        let rows = row_splitter::rows(&text, &PrecedingContext::Gap, None, true);
        let rows = rows.into_iter().filter(|row| row.kind != RowKind::Blank && !row.content.is_empty()).collect();
        MarkdownView { text, rows }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the length in bytes.
    pub(super) fn byte_len(&self) -> usize {
        self.text.len()
    }
}

/// What rows were laid out for: width, background, pixels per point, revision of fonts and images.
type MarkdownLayoutKey = (u32, egui::Color32, u32, u64);

/// Cache of laid out rows.
#[derive(Default)]
pub(super) struct MarkdownLayoutCache {
    look: Option<MarkdownLayoutKey>,
    rows: HashMap<u64, (Rc<RowLayout>, u64)>,
    frame: u64,
    /// Number of resets, after which heights are measured again.
    pub(super) anew: u64,
}

impl MarkdownLayoutCache {
    /// Begins a frame with this text width.
    pub(super) fn begin_frame(&mut self, ui: &Ui, width: f32) {
        let scale = ui.ctx().pixels_per_point() * theme::text_scale();
        let look = (width.to_bits(), ThemeColors::of(ui).paper, scale.to_bits(), assets::version(ui.ctx()));
        self.frame += 1;
        if self.look != Some(look) {
            self.look = Some(look);
            self.rows.clear();
            self.anew += 1;
        }
        if self.rows.len() > MAX_CACHED_MESSAGE_ROWS {
            let frame = self.frame;
            self.rows.retain(|_, (_, used)| *used + 2 >= frame);
        }
    }

    fn row(&mut self, ui: &Ui, prose: &MarkdownView, row: &MarkdownRow, width: f32) -> Rc<RowLayout> {
        let frame = self.frame;
        if let Some((drawn, used)) = self.rows.get_mut(&row.layout_hash()) {
            *used = frame;
            return drawn.clone();
        }
        let source = prose.text.get(row.content.clone()).unwrap_or("");
        let kind = match row.kind {
            RowKind::Fence { .. } | RowKind::Cell => RowKind::Paragraph,
            RowKind::Code { .. } => RowKind::Indented,
            kind => kind,
        };
        // There is no note: links and images are resolved from the open note when they are followed.
        let pen = TextStyleContext { ctx: ui.ctx(), colours: ThemeColors::of(ui), note: DocId([0; 16]) };
        let drawn = Rc::new(render::draw(source, kind, width, width, pen));
        self.rows.insert(row.layout_hash(), (drawn.clone(), frame));
        drawn
    }

    /// Returns the height of a text.
    pub(super) fn height(&mut self, ui: &Ui, prose: &MarkdownView, width: f32) -> f32 {
        let mut height = 0.0;
        for (at, row) in prose.rows.iter().enumerate() {
            height += above(at, row) + self.row(ui, prose, row, width).height;
        }
        height
    }

    /// Draws a text. Returns the link that was clicked. `id` must be unique.
    pub(super) fn paint(
        &mut self,
        ui: &mut Ui,
        prose: &MarkdownView,
        at: Pos2,
        width: f32,
        id: egui::Id,
    ) -> Option<String> {
        let (colours, clip) = (ThemeColors::of(ui), ui.clip_rect());
        let mut y = at.y;
        let mut followed = None;
        for (index, row) in prose.rows.iter().enumerate() {
            y += above(index, row);
            if y > clip.bottom() {
                break;
            }
            let drawn = self.row(ui, prose, row, width);
            let origin = pos2(at.x, y);
            let area = Rect::from_min_size(origin, vec2(width, drawn.height));
            y += drawn.height;
            if area.bottom() < clip.top() {
                continue;
            }
            let source = prose.text.get(row.content.clone()).unwrap_or("");
            drawn.paint(ui.painter(), origin, colours, source, &[]);
            let has_links =
                drawn.parts.iter().any(|part| matches!(part, RowPart::Text { links, .. } if !links.is_empty()));
            let sense = if has_links { egui::Sense::click() } else { egui::Sense::hover() };
            let response = ui.interact(area, id.with(("row", index)), sense);
            ui::widgets::set_accessible_name(&response, egui::accesskit::Role::Label, &drawn.text);
            let pointer = ui.input(|input| input.pointer.latest_pos()).filter(|_| response.hovered());
            if let Some(link) = pointer.and_then(|pointer| drawn.byte_at_point(source, pointer - origin).1) {
                ui.ctx().set_cursor_icon(egui::CursorIcon::PointingHand);
                if response.clicked() {
                    followed = Some(link.to_owned());
                }
            }
        }
        followed
    }
}

/// Returns the spacing above a row.
fn above(at: usize, row: &MarkdownRow) -> f32 {
    match row.kind {
        _ if at == 0 => 0.0,
        RowKind::Heading(_) => space::L,
        RowKind::Item { .. } if !row.spaced => space::XS,
        RowKind::Code { first: false, .. } => 0.0,
        _ => space::S,
    }
}

/// Paints text in the code font; the lines of a diff get colored backgrounds.
pub(super) fn paint_mono(ui: &Ui, at: Pos2, width: f32, text: &str) {
    lines(ui, width, text, Some(at), false);
}

/// Paints text without a limit, for decisions of the user, where nothing may be omitted.
pub(super) fn paint_mono_in_full(ui: &Ui, at: Pos2, width: f32, text: &str) {
    lines(ui, width, text, Some(at), true);
}

/// Returns the height of text painted by [`paint_mono`].
pub(super) fn height(ui: &Ui, width: f32, text: &str) -> f32 {
    lines(ui, width, text, None, false)
}

/// Returns the height of text painted by [`paint_mono_in_full`].
pub(super) fn height_in_full(ui: &Ui, width: f32, text: &str) -> f32 {
    lines(ui, width, text, None, true)
}

fn lines(ui: &Ui, width: f32, text: &str, paint: Option<Pos2>, in_full: bool) -> f32 {
    let text = &text::untrusted_text::escape_block(text);
    let colours = ThemeColors::of(ui);
    let font = egui::FontId::new(12.0, theme::code().font.family);
    let diff = is_diff(text);
    let clip = ui.clip_rect();
    let mut y = 0.0;
    let limit = if in_full { usize::MAX } else { MAX_MONO_TEXT_LINES };
    let pieces = text.lines().take(limit).flat_map(|line| {
        let (mut rest, mut first) = (Some(line), true);
        // A long line is split into pieces that can be laid out.
        std::iter::from_fn(move || {
            let (piece, more) = rest?.split_at(rest?.floor_char_boundary(MAX_MONO_LINE_BYTES));
            rest = Some(more).filter(|more| in_full && !more.is_empty());
            Some((piece, std::mem::take(&mut first)))
        })
    });
    for (line, first) in pieces {
        let (ground, ink) = match (diff && first, line.as_bytes().first()) {
            (true, Some(b'+')) => (Some(colours.come), colours.ink),
            (true, Some(b'-')) => (Some(colours.gone), colours.ink),
            (true, Some(b'@')) => (None, colours.muted),
            _ => (None, colours.ink),
        };
        let mut job = egui::text::LayoutJob::default();
        job.wrap.max_width = (width - 2.0 * space::S).max(48.0);
        job.wrap.break_anywhere = false;
        job.append(line, 0.0, ui::widgets::format(font.clone(), 18.0, ink));
        let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
        let height = galley.size().y.max(18.0);
        if let Some(at) = paint {
            let rect = Rect::from_min_size(at + vec2(0.0, y), vec2(width, height));
            if let Some(ground) = ground {
                ui.painter().rect_filled(rect, 0.0, ground);
            }
            if rect.intersects(clip) {
                ui.painter().galley(rect.min + vec2(space::S, 0.0), galley, ink);
            }
        }
        y += height;
    }
    let more = text.lines().count().saturating_sub(limit);
    if more > 0 {
        if let Some(at) = paint {
            let at = at + vec2(space::S, y);
            let words = format!("… and {more} lines more");
            ui.painter().text(at, egui::Align2::LEFT_TOP, words, theme::caption().font, colours.muted);
        }
        y += 18.0;
    }
    y
}

/// Maximum number of drawn lines, and of bytes per line.
const MAX_MONO_TEXT_LINES: usize = 300;
const MAX_MONO_LINE_BYTES: usize = 2_000;

/// Returns whether a text is a unified diff.
pub(super) fn is_diff(text: &str) -> bool {
    text.starts_with("--- ") || text.starts_with("@@ ") || text.contains("\n@@ ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_the_text_and_only_the_last_one_grows() {
        let one = MarkdownView::new("# A\n\nfirst\n\nsec");
        let more = MarkdownView::new("# A\n\nfirst\n\nsecond word");
        let looks = |prose: &MarkdownView| prose.rows.iter().map(MarkdownRow::layout_hash).collect::<Vec<_>>();
        let (one, more) = (looks(&one), looks(&more));
        assert_eq!((one.len(), &one[..2]), (3, &more[..2]));
        assert_ne!(one[2], more[2]);
        assert!(MarkdownView::new("\n\n ").is_empty());
        assert!(!MarkdownView::new("---\nx").is_empty());
    }

    #[test]
    fn diffs_are_told_from_other_text() {
        assert!(is_diff("--- a.md\n+++ a.md\n@@ -1 +1 @@\n-a\n+b\n"));
        assert!(!is_diff("a - b\n+ c"));
    }

    #[test]
    fn what_is_decided_on_is_drawn_in_full() {
        let line = format!("{}import os", " ".repeat(5 * MAX_MONO_LINE_BYTES));
        let text: String = (0..2 * MAX_MONO_TEXT_LINES).map(|number| format!("print({number})\n")).collect();
        let ctx = egui::Context::default();
        theme::install_theme(&ctx);
        let mut heights = Vec::new();
        let mut output = ctx.run_ui(egui::RawInput::default(), |ui| {
            heights = [&line, &text].map(|text| (height(ui, 400.0, text), height_in_full(ui, 400.0, text))).to_vec();
        });
        output.textures_delta.clear(); // nobody draws it
        let [(cut, whole), (some, all)] = heights[..] else { panic!("{heights:?}") };
        assert!(whole > 4.0 * cut, "a line of {whole}, of which {cut} were drawn");
        assert!(all >= 2.0 * (some - 18.0), "lines of {all}, of which {some} were drawn");
    }
}
