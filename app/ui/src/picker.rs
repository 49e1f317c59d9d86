//! A text input with matching items below it, shared by the command palette and the search.

use super::icons;
use super::widgets::floating_frame;
use crate::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use eframe::egui;
use egui::{Align2, Color32, Id, Key, Modal, Rect, Response, Sense, Ui, pos2, vec2};

/// The selected line of a list.
#[derive(Debug)]
pub struct ListPicker {
    /// Index of the selected line.
    pub line: usize,
    /// Whether to scroll to the selected line.
    scroll: bool,
}

impl Default for ListPicker {
    fn default() -> Self {
        ListPicker { line: 0, scroll: true }
    }
}

impl ListPicker {
    /// Handles a key that moves the selection among this many lines, of which `sight` are visible. Returns whether it
    /// moved.
    pub fn key(&mut self, key: Key, lines: usize, sight: usize) -> bool {
        let (lines, page) = (lines.max(1), sight.saturating_sub(1));
        self.line = match key {
            Key::ArrowDown => (self.line + 1) % lines,
            Key::ArrowUp => (self.line + lines - 1) % lines,
            Key::PageDown => (self.line + page).min(lines - 1),
            Key::PageUp => self.line.saturating_sub(page),
            _ => return false,
        };
        self.scroll = true;
        true
    }

    /// Draws lines of equal height with `draw`. Returns the line that was clicked.
    pub fn show_list(
        &mut self,
        ui: &mut Ui,
        lines: usize,
        line_height: f32,
        most: f32,
        mut draw: impl FnMut(&Ui, usize, Rect, &Response),
    ) -> Option<usize> {
        let colours = ThemeColors::of(ui);
        let mut clicked = None;
        let moved = ui.input(|input| input.pointer.is_moving());
        #[allow(clippy::cast_precision_loss, reason = "a count of lines")]
        let height = most.min(lines as f32 * line_height);
        let area = egui::ScrollArea::vertical().auto_shrink(false).min_scrolled_height(height).max_height(height);
        egui::Frame::NONE.inner_margin(egui::Margin::same(4)).show(ui, |ui| {
            area.show_rows(ui, line_height, lines, |ui, range| {
                if std::mem::take(&mut self.scroll) {
                    #[allow(clippy::cast_precision_loss, reason = "counts of lines")]
                    let top = ui.max_rect().top() + line_height * (self.line as f32 - range.start as f32);
                    let rect = Rect::from_min_size(pos2(ui.max_rect().left(), top), vec2(1.0, line_height));
                    ui.scroll_to_rect(rect, None);
                }
                for line in range {
                    let size = vec2(ui.available_width(), line_height);
                    let (rect, response) = ui.allocate_exact_size(size, Sense::click());
                    if response.hovered() && moved {
                        self.line = line;
                    }
                    if line == self.line {
                        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
                    }
                    draw(ui, line, rect, &response);
                    if response.clicked() {
                        self.line = line;
                        clicked = Some(line);
                    }
                }
            });
        });
        clicked
    }
}

/// Draws the focused input; `behind` draws content of width `room` at its right.
pub fn show_entry(
    ui: &mut Ui,
    query: &mut String,
    id: &str,
    (name, hint): (&str, &str),
    room: f32,
    behind: impl FnOnce(&mut Ui, &str),
) {
    let colours = ThemeColors::of(ui);
    let body = theme::body();
    egui::Frame::NONE.inner_margin(egui::Margin::symmetric(16, 12)).show(ui, |ui| {
        ui.horizontal(|ui| {
            let (rect, _) = ui.allocate_exact_size(vec2(space::XL, 24.0), Sense::hover());
            let at = rect.left_center();
            ui.painter().text(at, Align2::LEFT_CENTER, icons::SEARCH, theme::icon_font(size::ICON_SIZE), colours.muted);
            ui.spacing_mut().interact_size.y = 0.0;
            let width = ui.available_width() - room;
            let field = egui::TextEdit::singleline(query)
                .id(Id::unique(id))
                .font(body.font.clone())
                .hint_text(egui::RichText::new(hint).font(body.font).color(colours.muted))
                .frame(egui::Frame::NONE)
                .align(Align2::LEFT_CENTER)
                .desired_width(f32::INFINITY);
            ui.add_sized(vec2(width, 24.0), field).accessible_name(name).request_focus();
            behind(ui, query);
        });
    });
}

/// Shows a popup above the window, at this share of its height, and dims what is below. Returns whether the backdrop
/// was clicked.
pub fn show_floating(
    ctx: &egui::Context,
    id: &str,
    part: f32,
    colours: &'static ThemeColors,
    dark: bool,
    draw: impl FnOnce(&mut Ui),
) -> bool {
    let screen = ctx.content_rect();
    let width = size::PALETTE_WIDTH.min(screen.width() - 2.0 * space::L);
    let id = Id::unique(id);
    let area = Modal::default_area(id).anchor(Align2::CENTER_TOP, vec2(0.0, (screen.height() * part).round()));
    let response = Modal::new(id)
        .area(area)
        .backdrop_color(Color32::from_black_alpha(if dark { 90 } else { 30 }))
        .frame(floating_frame(colours, dark))
        .show(ctx, |ui| {
            ui.set_width(width);
            ui.spacing_mut().item_spacing = vec2(0.0, 0.0);
            draw(ui);
        });
    response.backdrop_response.clicked()
}
