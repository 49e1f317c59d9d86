//! Folding of sections: rows below a folded heading, up to the next one of the same or a higher level, take no space.
//! The same goes for rows below the summary of `<details>`, up to its end tag. Folds are kept while the note is open;
//! they're not part of the note.

use crate::details::DetailsTag;
use crate::display_map::{DisplayMap, RowIndex};
use crate::note_editor::{EditContext, Editor};
use crate::render::details::summary_area;
use crate::row_layout::RowLayout;
use crate::row_splitter::RowKind;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, CursorIcon, Pos2, Rect, Sense, Ui, Vec2, pos2};
use engine::Note;
use store::{Block, BlockId};
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{paint_focus_ring, set_accessible_name};

/// Minimum width of a left margin that has room for both a grip and a chevron, in points.
const MIN_WIDE_MARGIN: f32 = 72.0;

impl DisplayMap {
    /// Returns whether folding hides a row.
    pub fn is_hidden(&self, spot: RowIndex) -> bool {
        self.row(spot).is_some_and(|row| row.hidden)
    }

    /// Returns a heading's fold key and level; `None` if the row isn't a heading.
    pub fn fold_of(&self, spot: RowIndex) -> Option<((BlockId, usize), u8)> {
        let RowKind::Heading(level) = self.row(spot)?.kind else { return None };
        Some((self.fold_key(spot)?, level))
    }

    /// Returns the fold key of a heading or of a summary.
    fn fold_key(&self, spot: RowIndex) -> Option<(BlockId, usize)> {
        if !self.row(spot)?.begins_fold() {
            return None;
        }
        let before = (0..spot.row).filter_map(|row| self.row(RowIndex { row, ..spot }));
        Some((self.block_rows(spot.block).id, before.filter(|row| row.begins_fold()).count()))
    }

    /// Returns whether a row is a heading whose section is folded, or a summary whose details are.
    pub fn is_folded(&self, spot: RowIndex) -> bool {
        !self.folds.is_empty() && self.fold_key(spot).is_some_and(|fold| self.folds.contains(&fold))
    }

    /// Unfolds everything, or all but the details that are folded at first. The caller updates the rows.
    pub fn reset_folds(&mut self, folds_details: bool, note: &Note, texts: &[&Block]) {
        self.folds.clear();
        if folds_details {
            self.fold_details(note, texts);
        }
    }

    /// Folds all details that aren't open at first.
    pub(crate) fn fold_details(&mut self, note: &Note, texts: &[&Block]) {
        for block in 0..self.len() {
            if !may_have_details(texts, block) {
                continue;
            }
            for row in 0..self.rows(block, note, texts).len() {
                let spot = RowIndex { block, row };
                if self.row(spot).is_some_and(|row| row.details == DetailsTag::Start { open: false }) {
                    let fold = self.fold_key(spot);
                    self.folds.extend(fold);
                }
            }
        }
    }

    /// Returns the rows of the start and end tags of all details that begin in or between these blocks. An element
    /// without an end tag is left out.
    fn details_pairs(&mut self, blocks: &[usize], note: &Note, texts: &[&Block]) -> Vec<(RowIndex, RowIndex)> {
        let (mut open, mut pairs) = (Vec::new(), Vec::new());
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return pairs };
        for block in *first..self.len() {
            if block > *last && open.is_empty() {
                break;
            }
            if !may_have_details(texts, block) {
                continue;
            }
            for row in 0..self.rows(block, note, texts).len() {
                let spot = RowIndex { block, row };
                match self.row(spot).map_or(DetailsTag::None, |row| row.details) {
                    DetailsTag::None => {}
                    DetailsTag::Start { .. } => open.push(spot),
                    DetailsTag::End(count) => {
                        let ended = open.split_off(open.len().saturating_sub(count));
                        pairs.extend(ended.into_iter().map(|start| (start, spot)));
                    }
                }
            }
        }
        pairs.sort_unstable();
        pairs
    }

    /// Hides the rows of folded sections and comments, and shows all others.
    pub fn update_folds(&mut self, note: &Note, texts: &[&Block]) {
        self.show_all();
        let commented = !self.comments.is_empty() || std::mem::take(&mut self.commented);
        if commented {
            self.commented = !self.comments.is_empty();
            self.fold_comments(note, texts);
        }
        if self.folds.is_empty() {
            if commented {
                self.remeasure();
            }
            return;
        }
        let blocks: Vec<usize> = (0..self.len())
            .filter(|block| self.folds.iter().any(|fold| fold.0 == self.block_rows(*block).id))
            .collect();
        for block in blocks.iter().copied() {
            let rows = self.rows(block, note, texts).len();
            for row in 0..rows {
                let spot = RowIndex { block, row };
                let Some((_, level)) = self.fold_of(spot).filter(|(fold, _)| self.folds.contains(fold)) else {
                    continue;
                };
                let mut next = self.row_after(spot, note, texts);
                while let Some(spot) = next {
                    self.rows(spot.block, note, texts);
                    if self.row(spot).is_some_and(|row| matches!(row.kind, RowKind::Heading(other) if other <= level)) {
                        break;
                    }
                    self.hide_row(spot);
                    next = self.row_after(spot, note, texts);
                }
            }
        }
        for (start, end) in self.details_pairs(&blocks, note, texts) {
            // Those inside folded ones are hidden already.
            if !self.is_folded(start) || self.is_hidden(start) && self.is_hidden(end) {
                continue;
            }
            let mut next = self.row_after(start, note, texts);
            while let Some(spot) = next.filter(|spot| *spot <= end) {
                self.rows(spot.block, note, texts);
                self.hide_row(spot);
                next = self.row_after(spot, note, texts);
            }
        }
        self.remeasure();
    }
}

/// Returns whether a block may have tags of `<details>`.
fn may_have_details(texts: &[&Block], block: usize) -> bool {
    texts.get(block).is_some_and(|block| block.text.contains('<'))
}

impl EditContext<'_> {
    /// Folds a heading's section or details, or unfolds them if they're folded.
    pub fn toggle_fold(&mut self, spot: RowIndex) {
        if let Some(fold) = self.sheet.fold_key(spot)
            && !self.sheet.folds.remove(&fold)
        {
            self.sheet.folds.insert(fold);
        }
        self.sheet.update_folds(self.note, self.texts);
    }

    /// Unfolds every section and comment that hides a row.
    pub fn unfold_to(&mut self, spot: RowIndex) {
        let mut at = spot;
        if self.sheet.is_hidden(spot) {
            self.unfold_comment(spot);
        }
        while self.sheet.is_hidden(spot) {
            let Some(before) = self.sheet.row_before(at, self.note, self.texts) else { return };
            at = before;
            if self.sheet.is_folded(at) {
                self.toggle_fold(at);
            }
        }
    }

    /// Unfolds what is hidden directly after or before a row, so the user sees what an edit across it would delete.
    /// Returns whether anything was hidden.
    pub fn unfold_beside(&mut self, spot: RowIndex, behind: bool) -> bool {
        let Some(beside) = self.hidden_beside(spot, behind) else { return false };
        self.unfold_to(beside);
        true
    }

    /// Returns whether the row directly after or before this one is hidden by folding.
    pub fn beside_hidden(&mut self, spot: RowIndex, behind: bool) -> bool {
        self.hidden_beside(spot, behind).is_some()
    }

    fn hidden_beside(&mut self, spot: RowIndex, behind: bool) -> Option<RowIndex> {
        let beside = match behind {
            true => self.sheet.row_after(spot, self.note, self.texts),
            false => self.sheet.row_before(spot, self.note, self.texts),
        };
        beside.filter(|beside| self.sheet.is_hidden(*beside))
    }

    /// Moves the caret out of folded details: to the row after them, or to their summary if there is none.
    pub fn leave_details(&mut self, editor: &mut Editor, summary: RowIndex) {
        let is_inside =
            editor.caret.and_then(|caret| self.find_row(caret.at)).is_some_and(|spot| self.sheet.is_hidden(spot));
        if !is_inside {
            return;
        }
        let after = self.sheet.following_row(summary, self.note, self.texts);
        let Some(content) = self.sheet.row(after.unwrap_or(summary)).map(|row| row.content.clone()) else { return };
        let at = match after {
            Some(after) => self.sheet.start(after.block) + content.start,
            None => self.sheet.start(summary.block) + content.end,
        };
        editor.more.clear();
        editor.place_caret(at);
        editor.reveal = false;
    }

    /// Returns the heading of the section that contains a row; for a heading, the row itself.
    pub fn heading_of(&mut self, spot: RowIndex) -> Option<RowIndex> {
        let mut at = spot;
        while !self.rows(at.block).get(at.row).is_some_and(|row| matches!(row.kind, RowKind::Heading(_))) {
            at = self.previous_row(at)?;
        }
        Some(at)
    }
}

/// Draws the chevron next to a heading; it's visible if the pointer is near or the section is folded. Returns whether
/// it was clicked.
pub fn show_fold_chevron(
    ui: &Ui,
    spot: RowIndex,
    origin: Pos2,
    area: Rect,
    name: &str,
    folded: bool,
    id: BlockId,
) -> bool {
    // In a narrow margin the chevron is next to the text and leaves the remaining space to the grip.
    let left = if origin.x - area.left() < MIN_WIDE_MARGIN { size::MIN_CLICK_HEIGHT } else { space::XXXL };
    let centre = pos2(origin.x - left + size::MIN_CLICK_HEIGHT / 2.0, area.bottom() - (area.bottom() - origin.y) / 2.0);
    let rect = Rect::from_center_size(centre, Vec2::splat(size::MIN_CLICK_HEIGHT));
    let response = ui.interact(rect, ui.scope_id().with(("fold", id, spot.row)), Sense::click());
    set_accessible_name(&response, Role::Button, &format!("{} {name}", if folded { "Unfold" } else { "Fold" }));
    let colours = ThemeColors::of(ui);
    if folded || ui.rect_contains_pointer(area) || response.has_focus() {
        let icon = if folded { icons::CARET_RIGHT } else { icons::CARET_DOWN };
        let colour = if response.hovered() { colours.ink } else { colours.muted };
        ui.painter().text(centre, Align2::CENTER_CENTER, icon, theme::icon_font(12.0), colour);
    }
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    response.clicked()
}

/// Draws the caret before a summary. Returns whether the caret or the summary was clicked.
pub fn show_details_toggle(
    ui: &Ui,
    spot: RowIndex,
    origin: Pos2,
    drawn: &RowLayout,
    folded: bool,
    id: BlockId,
) -> bool {
    let rect = summary_area(drawn).translate(origin.to_vec2());
    let response = ui.interact(rect, ui.scope_id().with(("details", id, spot.row)), Sense::click());
    let name = drawn.text.lines().next().unwrap_or("Details");
    set_accessible_name(&response, Role::Button, &format!("{}: {name}", if folded { "Unfold" } else { "Fold" }));
    let colours = ThemeColors::of(ui);
    let icon = if folded { icons::CARET_RIGHT } else { icons::CARET_DOWN };
    ui.painter().text(rect.left_center(), Align2::LEFT_CENTER, icon, theme::icon_font(14.0), colours.muted);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    response.on_hover_cursor(CursorIcon::PointingHand).clicked()
}
