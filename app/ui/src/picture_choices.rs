//! Choices shown as pictures to click: themes as small notes, text sizes as letters, and sets of keys as key caps.

use crate::icons;
use crate::theme::{self, CONTROL_CORNER, InterCut, ThemeColors, size, space};
use crate::widgets::paint_focus_ring;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Color32, Painter, Rect, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo, pos2, vec2};

/// Size of a picture, without the name below it.
const PICTURE_SIZE: Vec2 = vec2(120.0, 72.0);
/// Height of a key cap, and its least width.
const KEY_CAP_HEIGHT: f32 = 24.0;
/// Size of the letters that show the usual text size, in points.
const SAMPLE_TEXT_POINTS: f32 = 24.0;

/// Draws a choice of pictures with their names, in as many rows as they need. Returns the clicked one.
pub fn picture_choices(
    ui: &mut Ui,
    names: &[&str],
    chosen: Option<usize>,
    paint: impl Fn(&Painter, Rect, usize),
) -> Option<usize> {
    let mut clicked = None;
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = vec2(space::M, space::S);
        for (place, name) in names.iter().enumerate() {
            if show_card(ui, name, chosen == Some(place), |painter, rect| paint(painter, rect, place)) {
                clicked = Some(place);
            }
        }
    });
    clicked
}

/// Draws a picture with its name below. Returns whether it was clicked.
fn show_card(ui: &mut Ui, name: &str, is_chosen: bool, paint: impl Fn(&Painter, Rect)) -> bool {
    let colours = ThemeColors::of(ui);
    let wanted = PICTURE_SIZE + vec2(0.0, size::MIN_CLICK_HEIGHT);
    let (rect, response) = ui.allocate_exact_size(wanted, Sense::click());
    response.widget_info(|| WidgetInfo::selected(Role::RadioButton, true, is_chosen, name));
    let picture = Rect::from_min_size(rect.min, PICTURE_SIZE);
    paint(ui.painter(), picture);
    let stroke = match (is_chosen, response.hovered()) {
        (true, _) => Stroke::new(2.0, colours.accent),
        (false, true) => Stroke::new(1.0, colours.muted),
        (false, false) => Stroke::new(1.0, colours.line),
    };
    ui.painter().rect_stroke(picture, CONTROL_CORNER, stroke, StrokeKind::Inside);
    let below = pos2(picture.center().x, picture.bottom() + size::MIN_CLICK_HEIGHT / 2.0);
    let text = ui.painter().text(below, Align2::CENTER_CENTER, name, theme::caption().font, colours.ink);
    if is_chosen {
        let at = pos2(text.left() - space::M, below.y);
        ui.painter().text(at, Align2::CENTER_CENTER, icons::CHECK, theme::icon_font(12.0), colours.accent);
    }
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    response.clicked()
}

/// Paints a small note in the light or dark theme, or half in each.
pub fn paint_theme(painter: &Painter, rect: Rect, dark: Option<bool>) {
    let Some(dark) = dark else {
        let (left, right) = rect.split_left_right_at_fraction(0.5);
        for (half, dark) in [(left, false), (right, true)] {
            paint_theme(&painter.with_clip_rect(half.intersect(painter.clip_rect())), rect, Some(dark));
        }
        return;
    };
    let colours = ThemeColors::for_dark_mode(dark);
    painter.rect_filled(rect, CONTROL_CORNER, colours.paper);
    let fill = |left: f32, top: f32, size: Vec2, color: Color32| {
        painter.rect_filled(Rect::from_min_size(rect.min + vec2(left, top), size), 2.0, color);
    };
    fill(space::XS, space::XS, vec2(20.0, rect.height() - 2.0 * space::XS), colours.sunken);
    fill(36.0, 12.0, vec2(32.0, 5.0), colours.ink);
    fill(36.0, 24.0, vec2(72.0, 3.0), colours.muted);
    fill(36.0, 31.0, vec2(56.0, 3.0), colours.muted);
    for (left, height) in [(36.0, 12.0), (48.0, 20.0), (60.0, 8.0), (72.0, 16.0), (84.0, 22.0)] {
        fill(left, 64.0 - height, vec2(8.0, height), colours.accent);
    }
}

/// Paints two letters in a text size, relative to the usual one.
pub fn paint_text_size(painter: &Painter, rect: Rect, colours: &ThemeColors, scale: f32) {
    painter.rect_filled(rect, CONTROL_CORNER, colours.sunken);
    let font = theme::inter_font(InterCut::Regular, SAMPLE_TEXT_POINTS * scale);
    painter.text(rect.center(), Align2::CENTER_CENTER, "Aa", font, colours.ink);
}

/// Paints key caps in a row.
pub fn paint_key_caps(painter: &Painter, rect: Rect, colours: &ThemeColors, caps: &[&str]) {
    painter.rect_filled(rect, CONTROL_CORNER, colours.sunken);
    let font = theme::inter_font(InterCut::SemiBold, 12.0);
    let laid = caps.iter().map(|cap| painter.layout_no_wrap((*cap).to_owned(), font.clone(), colours.ink));
    let caps: Vec<_> = laid.map(|galley| ((galley.size().x + 2.0 * space::S).max(KEY_CAP_HEIGHT), galley)).collect();
    let wide = caps.iter().map(|(width, _)| width + space::XS).sum::<f32>() - space::XS;
    let mut left = rect.center().x - wide / 2.0;
    for (width, galley) in caps {
        let at = pos2(left, rect.center().y - KEY_CAP_HEIGHT / 2.0);
        let cap = Rect::from_min_size(at, vec2(width, KEY_CAP_HEIGHT));
        let stroke = Stroke::new(1.0, colours.muted);
        painter.rect(cap, CONTROL_CORNER, colours.raised, stroke, StrokeKind::Inside);
        let place = Align2::CENTER_CENTER.align_size_within_rect(galley.size(), cap);
        painter.galley(place.min, galley, colours.ink);
        left += width + space::XS;
    }
}
