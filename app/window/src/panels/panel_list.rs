//! A list in a side panel with rows of different heights and a selection. Only visible rows are drawn.

use eframe::egui;
use egui::{Key, Rect, Ui, pos2, vec2};
use ui::theme::{CONTROL_CORNER, ThemeColors, space};

/// Number of rows that Page Up and Page Down move by.
const PAGE_KEY_ROWS: usize = 8;

/// The selection of a panel's list.
#[derive(Debug, Default)]
pub(crate) struct PanelList {
    /// Index of the selected row.
    pub(crate) row: usize,
    /// Whether to scroll to the selected row.
    scroll: bool,
    /// Whether the selection is hidden because the rows themselves have the keyboard focus.
    pub(crate) hides_choice: bool,
}

impl PanelList {
    /// Selects a row and scrolls to it.
    pub(crate) fn choose(&mut self, row: usize) {
        (self.row, self.scroll) = (row, true);
    }

    /// Handles a key that moves the selection. Returns whether it did.
    pub(crate) fn key(&mut self, key: Key, rows: usize) -> bool {
        let last = rows.saturating_sub(1);
        let row = match key {
            Key::ArrowDown => (self.row + 1).min(last),
            Key::ArrowUp => self.row.saturating_sub(1),
            Key::PageDown => (self.row + PAGE_KEY_ROWS).min(last),
            Key::PageUp => self.row.saturating_sub(PAGE_KEY_ROWS),
            _ => return false,
        };
        self.choose(row);
        true
    }

    /// Draws the visible rows with `draw`, with a background behind the selected one.
    pub(crate) fn show(
        &mut self,
        ui: &mut Ui,
        name: &str,
        rows: usize,
        height_of: impl Fn(usize) -> f32,
        mut draw: impl FnMut(&mut Ui, usize, Rect),
    ) {
        if rows > 0 {
            self.row = self.row.min(rows - 1);
        }
        let mut tops = Vec::with_capacity(rows + 1);
        let mut top = 0.0;
        tops.push(top);
        for row in 0..rows {
            top += height_of(row);
            tops.push(top);
        }
        let scroll = std::mem::take(&mut self.scroll) && rows > 0;
        let colours = ThemeColors::of(ui);
        egui::ScrollArea::vertical().id_salt(name).auto_shrink(false).show_viewport(ui, |ui, viewport| {
            ui.set_height(top + space::XL);
            let page = ui.max_rect();
            let rect_of = |row: usize| {
                let size = vec2(page.width() - 2.0 * space::S, tops[row + 1] - tops[row]);
                Rect::from_min_size(pos2(page.left() + space::S, page.top() + tops[row]), size)
            };
            if scroll {
                ui.scroll_to_rect(rect_of(self.row), None);
            }
            let first = tops.partition_point(|top| *top <= viewport.top()).saturating_sub(1);
            for row in (first..rows).take_while(|row| tops[*row] < viewport.bottom()) {
                let rect = rect_of(row);
                if row == self.row && !self.hides_choice {
                    ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
                }
                draw(ui, row, rect);
            }
        });
    }
}
