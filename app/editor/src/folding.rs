//! Folding of sections: rows below a folded heading, up to the next one of the same or a higher level, take no space.
//! Folds are kept while the note is open; they're not part of the note.

use crate::display_map::{DisplayMap, RowIndex};
use crate::note_editor::EditContext;
use crate::row_splitter::RowKind;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Pos2, Rect, Sense, Ui, Vec2, pos2};
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
        let before = (0..spot.row).filter_map(|row| self.row(RowIndex { row, ..spot }));
        let count = before.filter(|row| matches!(row.kind, RowKind::Heading(_))).count();
        Some(((self.block_rows(spot.block).id, count), level))
    }

    /// Returns whether a row is a heading whose section is folded.
    pub fn is_folded(&self, spot: RowIndex) -> bool {
        !self.folds.is_empty() && self.fold_of(spot).is_some_and(|(fold, _)| self.folds.contains(&fold))
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
        for block in blocks {
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
        self.remeasure();
    }
}

impl EditContext<'_> {
    /// Folds a heading's section, or unfolds it if it's folded.
    pub fn toggle_fold(&mut self, spot: RowIndex) {
        if let Some((fold, _)) = self.sheet.fold_of(spot)
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
