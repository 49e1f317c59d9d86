//! Layout helpers: clipped regions of the window, tab bars that scroll, and the filter row above a list.

use crate::theme::{self, ThemeColors, size, space};
use eframe::egui;
use egui::{Align, Id, Layout, Rect, Sense, Ui, UiBuilder, vec2};

/// Frames in which a tab must be in sight until it counts as shown: the arrows of its bar come and go a frame later.
const SETTLED_TAB_FRAMES: u8 = 2;
/// Maximum number of frames in which a tab is scrolled into sight.
const MAX_TAB_REVEAL_FRAMES: u8 = 120;

/// Creates a child `Ui` for a region of the window, clipped to its visible part.
pub fn part(ui: &mut Ui, name: &str, rect: Rect, seen: Rect) -> Ui {
    let mut child = ui.new_child(UiBuilder::new().max_rect(rect).id_salt(name).layout(Layout::top_down(Align::Min)));
    child.set_clip_rect(seen.intersect(ui.clip_rect()));
    child
}

/// How far a tab has been scrolled into sight.
#[derive(Clone, Copy, Default)]
struct TabRevealState {
    is_active: bool,
    bar_width: f32,
    frames: u8,
    settled_frames: u8,
}

/// Scrolls a tab into sight when it becomes active or its bar's width changes. Later, users scroll the bar as they
/// like.
pub fn reveal_active_tab(ui: &Ui, tab: Id, rect: Rect, is_active: bool, bar_width: f32) {
    let key = tab.with("reveal");
    let before = ui.ctx().data(|data| data.get_temp::<TabRevealState>(key)).unwrap_or_default();
    if !is_active && !before.is_active {
        return;
    }
    let is_same = is_active && before.is_active && (before.bar_width - bar_width).abs() < 0.5;
    let mut now = if is_same { before } else { TabRevealState { is_active, bar_width, ..TabRevealState::default() } };
    if is_active && now.settled_frames < SETTLED_TAB_FRAMES && now.frames < MAX_TAB_REVEAL_FRAMES {
        now.frames += 1;
        let seen = ui.clip_rect().expand(1.0).x_range();
        let is_in_sight = seen.contains(rect.left()) && seen.contains(rect.right());
        if is_in_sight || rect.width() > seen.span() {
            now.settled_frames += 1;
        } else {
            now.settled_frames = 0;
            ui.scroll_to_rect(rect, None);
        }
        ui.ctx().request_repaint();
    }
    ui.ctx().data_mut(|data| data.insert_temp(key, now));
}

/// Draws a filter field with a button at its right. Returns whether the button was clicked.
pub fn filter(ui: &mut Ui, query: &mut String, (name, hint): (&str, &str), button: &str) -> bool {
    let colours = ThemeColors::of(ui);
    let width = size::NOTE_COLUMN_WIDTH.min(ui.available_width() - 2.0 * space::XL);
    let margin = ((ui.available_width() - width) / 2.0).max(0.0);
    ui.add_space(space::XL);
    let (line, _) =
        ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT + space::XS), Sense::hover());
    let line = Rect::from_x_y_ranges(line.left() + margin..=line.left() + margin + width, line.y_range());
    let layout = egui::Layout::right_to_left(egui::Align::Center);
    let mut child = ui.new_child(UiBuilder::new().max_rect(line).id_salt("filter").layout(layout));
    child.spacing_mut().item_spacing.x = space::S;
    let clicked = crate::widgets::text_button(&mut child, button, false).clicked();
    let style = theme::small();
    let hint = egui::RichText::new(hint).font(style.font.clone()).color(colours.muted);
    let field = egui::TextEdit::singleline(query)
        .id_salt(name)
        .font(style.font)
        .hint_text(hint)
        .margin(egui::Margin::symmetric(8, 6))
        .desired_width(f32::INFINITY);
    child.add(field).accessible_name(name);
    ui.add_space(space::M);
    clicked
}
