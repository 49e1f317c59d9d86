//! Widgets of the memory pages: filter chips, expandable rows, small bars.

use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Id, Rect, Response, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use std::sync::Arc;
use text::untrusted_text;
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{chip_button, paint_clipped_text, paint_focus_ring, set_accessible_name};

/// Height of a list row.
pub(super) const MEMORY_ROW_HEIGHT: f32 = 52.0;

/// Height of a problem's row.
const PROBLEM_ROW_HEIGHT: f32 = 24.0;

/// Returns the left margin and the width of a page's column.
pub(super) fn page_column(ui: &Ui) -> (f32, f32) {
    let width = size::NOTE_COLUMN_WIDTH.min(ui.available_width() - 2.0 * space::XL).max(120.0);
    (((ui.available_width() - width) / 2.0).max(0.0), width)
}

/// Draws a row of widgets in the page's column.
pub(super) fn row<R>(ui: &mut Ui, add: impl FnOnce(&mut Ui) -> R) -> R {
    let (margin, width) = page_column(ui);
    let area = ui.available_rect_before_wrap();
    let rect =
        Rect::from_min_size(pos2(area.left() + margin, area.top()), vec2(width, size::MIN_CLICK_HEIGHT + space::XS));
    let layout = egui::Layout::left_to_right(egui::Align::Center).with_main_wrap(true);
    let mut child = ui.new_child(UiBuilder::new().max_rect(rect).layout(layout));
    child.spacing_mut().item_spacing = vec2(space::XS, space::XS);
    let done = add(&mut child);
    let used = child.min_rect();
    ui.allocate_rect(Rect::from_min_max(area.min, pos2(area.right(), used.bottom())), Sense::hover());
    done
}

/// Draws a group of filter chips. Returns the clicked one. `of`: what they filter, for screen readers.
pub(super) fn filter_chips(ui: &mut Ui, of: &str, names: &[&str], chosen: usize) -> Option<usize> {
    let mut clicked = None;
    for (place, name) in names.iter().enumerate() {
        let short: String =
            if name.chars().count() > 28 { name.chars().take(27).chain(['…']).collect() } else { (*name).to_owned() };
        if chip_button(ui, &short, &format!("{of}: {name}"), place == chosen, &theme::caption()) {
            clicked = Some(place);
        }
    }
    ui.add_space(space::M);
    clicked
}

/// Draws the background of a list row, with a caret that shows whether it's expanded.
pub(super) fn show_row_background(ui: &mut Ui, rect: Rect, id: Id, name: &str, open: bool) -> Response {
    let response = ui.interact(rect, id, Sense::click());
    let colours = ThemeColors::of(ui);
    if ui.rect_contains_pointer(rect) {
        ui.painter().rect_filled(rect.expand2(vec2(space::S, 0.0)), CONTROL_CORNER, colours.hover_color(colours.paper));
    }
    ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
    let caret = if open { icons::CARET_DOWN } else { icons::CARET_RIGHT };
    let at = pos2(rect.left() + 6.0, rect.center().y);
    ui.painter().text(at, Align2::CENTER_CENTER, caret, theme::icon_font(12.0), colours.muted);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    set_accessible_name(&response, Role::Button, name);
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_expanded(open));
    response
}

/// Layout of a list with one expanded row, and problems below.
pub(super) struct UnfoldedList {
    pub(super) page: Rect,
    viewport: Rect,
    margin: f32,
    width: f32,
    count: usize,
    opened: Option<usize>,
    /// Height of the expanded part below its row.
    pub(super) more: f32,
}

impl UnfoldedList {
    /// Reserves space in a scroll area for this many rows, one of them expanded by this height, and for problems.
    pub(super) fn begin_list(
        ui: &mut Ui,
        viewport: Rect,
        (margin, width): (f32, f32),
        count: usize,
        (opened, more): (Option<usize>, f32),
        problems: usize,
    ) -> UnfoldedList {
        ui.set_height(count as f32 * MEMORY_ROW_HEIGHT + more + problems as f32 * PROBLEM_ROW_HEIGHT + space::XL);
        UnfoldedList { page: ui.max_rect(), viewport, margin, width, count, opened, more }
    }

    /// Returns a row's rectangle, and whether it's expanded; `None` if it's not visible.
    pub(super) fn row_rect(&self, place: usize) -> Option<(Rect, bool)> {
        let behind = self.opened.is_some_and(|opened| place > opened);
        let is = self.opened == Some(place);
        let top = self.page.top() + place as f32 * MEMORY_ROW_HEIGHT + if behind { self.more } else { 0.0 };
        let height = MEMORY_ROW_HEIGHT + if is { self.more } else { 0.0 };
        let seen =
            top + height >= self.page.top() + self.viewport.top() && top <= self.page.top() + self.viewport.bottom();
        let left = self.page.left() + self.margin;
        seen.then(|| (Rect::from_min_size(pos2(left, top), vec2(self.width, MEMORY_ROW_HEIGHT)), is))
    }

    /// Returns the rectangle of the expanded part below a row.
    pub(super) fn detail_rect(&self, line: Rect) -> Rect {
        Rect::from_min_size(line.left_bottom() + vec2(space::XL, space::S), vec2(self.width, self.more))
    }

    /// Draws read errors below all rows.
    pub(super) fn show_problems<'a>(&self, ui: &mut Ui, problems: impl Iterator<Item = &'a str>) {
        let left = self.page.left() + self.margin;
        let mut top = self.page.top() + self.count as f32 * MEMORY_ROW_HEIGHT + self.more + space::S;
        for (number, problem) in problems.enumerate() {
            let rect = Rect::from_min_size(pos2(left, top), vec2(self.width, 20.0));
            paint_clipped_text(ui, rect.min, self.width, problem, &theme::caption(), ThemeColors::of(ui).bad);
            let id = ui.scope_id().with(("problem", number));
            set_accessible_name(&ui.interact(rect, id, Sense::hover()), Role::Label, problem);
            top += PROBLEM_ROW_HEIGHT;
        }
    }
}

/// Paints two lines of text, the second one smaller.
pub(super) fn paint_two_lines(ui: &Ui, rect: Rect, left: f32, right: f32, (first, second): (&str, &str), dim: bool) {
    let colours = ThemeColors::of(ui);
    let ink = if dim { colours.muted } else { colours.ink };
    paint_clipped_text(ui, pos2(left, rect.top() + 7.0), right - left, first, &theme::small(), ink);
    let style = theme::TypeStyle { font: theme::tabular_font(12.0), line: 16.0 };
    paint_clipped_text(ui, pos2(left, rect.top() + 27.0), right - left, second, &style, colours.muted);
}

/// Paints a small bar for a share from 0 to 1.
pub(super) fn paint_bar(ui: &Ui, rect: Rect, part: f64, colour: egui::Color32) {
    let colours = ThemeColors::of(ui);
    ui.painter().rect_filled(rect, 1.5, colours.sunken);
    let part = part.clamp(0.0, 1.0) as f32;
    ui.painter().rect_filled(rect.with_max_x(rect.left() + rect.width() * part), 1.5, colour);
}

/// Lays out facts as lines of name and value.
pub(super) fn facts_galley(ui: &Ui, facts: &[(&str, String)], width: f32) -> Arc<egui::Galley> {
    let colours = ThemeColors::of(ui);
    let mut job = egui::text::LayoutJob::default();
    job.wrap.max_width = width;
    let small = theme::small();
    let strong = theme::inter_font(theme::InterCut::SemiBold, 13.0);
    for (name, text) in facts.iter().filter(|(_, text)| !text.trim().is_empty()) {
        let gap = if job.text.is_empty() { "" } else { "\n" };
        job.append(&format!("{gap}{name}  "), 0.0, ui::widgets::format(strong.clone(), small.line, colours.muted));
        let text = &text[..text.floor_char_boundary(4_000)];
        job.append(
            &untrusted_text::escape_block(text.trim_end()),
            0.0,
            ui::widgets::format(small.font.clone(), small.line, colours.ink),
        );
    }
    ui.fonts_mut(|fonts| fonts.layout_job(job))
}

/// Returns the facts as one text, for screen readers.
pub(super) fn facts_accessible_text(facts: &[(&str, String)]) -> String {
    let said = facts.iter().filter(|(_, text)| !text.trim().is_empty()).map(|(name, text)| format!("{name} {text}"));
    said.collect::<Vec<_>>().join("\n")
}

/// Draws a line of text.
pub(super) fn show_text_line(ui: &mut Ui, text: &str, colour: egui::Color32, role: Role) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 24.0), Sense::hover());
    paint_clipped_text(ui, rect.left_top() + vec2(0.0, 2.0), rect.width(), text, &theme::small(), colour);
    set_accessible_name(&response, role, text);
}

/// Draws small wrapped text.
pub(super) fn show_small_text(ui: &mut Ui, text: &str, colour: egui::Color32) {
    let mut job = egui::text::LayoutJob::default();
    job.wrap.max_width = ui.available_width();
    let style = theme::caption();
    job.append(&untrusted_text::escape_block(text), 0.0, ui::widgets::format(style.font, style.line, colour));
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), galley.size().y), Sense::hover());
    ui.painter().galley(rect.min, galley, colour);
    set_accessible_name(&response, Role::Label, text);
}
