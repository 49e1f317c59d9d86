//! Controls of the window. Each has an accessible name, a focus ring and a sufficient hit area.

use crate::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Color32, CornerRadius, Rect, Response, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo, vec2};

/// Paints the ring around a focused control.
pub fn paint_focus_ring(ui: &Ui, response: &Response, corner: CornerRadius) {
    if response.has_focus() {
        let stroke = Stroke::new(size::FOCUS_RING_WIDTH, ThemeColors::of(ui).accent);
        ui.painter().rect_stroke(response.rect, corner, stroke, StrokeKind::Inside);
    }
}

/// Draws an icon button. `name` describes its action; `key` is shown in its tooltip.
pub fn icon_button(ui: &mut Ui, icon: &str, name: &str, key: Option<&str>) -> Response {
    let (rect, response) = ui.allocate_exact_size(Vec2::splat(size::MIN_CLICK_HEIGHT), Sense::click());
    let colours = ThemeColors::of(ui);
    let colour = if response.hovered() || response.has_focus() { colours.ink } else { colours.muted };
    paint_hover_fill(ui, &response);
    ui.painter().text(rect.center(), Align2::CENTER_CENTER, icon, theme::icon_font(size::ICON_SIZE), colour);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    set_accessible_name(&response, Role::Button, name);
    let hint = key.map_or_else(|| name.to_owned(), |key| format!("{name}   {key}"));
    response.on_hover_text(text::untrusted_text::escape_block(&hint).into_owned())
}

/// Draws a flat text button; `lead` marks the primary button of a dialog.
pub fn text_button(ui: &mut Ui, text: &str, lead: bool) -> Response {
    let colours = ThemeColors::of(ui);
    let style = theme::small();
    let colour = if lead { colours.paper } else { colours.ink };
    let galley = ui.painter().layout_no_wrap(text::untrusted_text::escape_line(text).into_owned(), style.font, colour);
    let wanted = vec2(galley.size().x + 2.0 * space::M, size::MIN_CLICK_HEIGHT);
    let (rect, response) = ui.allocate_exact_size(wanted, Sense::click());
    let fill = match (lead, response.hovered()) {
        (true, false) => colours.accent,
        (true, true) => colours.accent.lerp_to_gamma(colours.ink, 0.15),
        (false, false) => colours.sunken,
        (false, true) => colours.hover_color(colours.sunken),
    };
    ui.painter().rect_filled(rect, CONTROL_CORNER, fill);
    ui.painter().galley(Align2::CENTER_CENTER.align_size_within_rect(galley.size(), rect).min, galley, colour);
    if response.has_focus() {
        let stroke = Stroke::new(size::FOCUS_RING_WIDTH, colours.accent);
        ui.painter().rect_stroke(rect.expand(2.0), CornerRadius::same(8), stroke, StrokeKind::Inside);
    }
    set_accessible_name(&response, Role::Button, text);
    response
}

/// Returns the width of a flat text button, in points.
pub fn text_button_width(ui: &Ui, text: &str) -> f32 {
    let text = text::untrusted_text::escape_line(text).into_owned();
    let galley = ui.painter().layout_no_wrap(text, theme::small().font, ThemeColors::of(ui).ink);
    galley.size().x + 2.0 * space::M
}

/// Draws a part of a page whose widgets stay the same ones when widgets appear or disappear before the part, so that
/// a field keeps the keyboard and a press isn't lost. `name`: unique within the surrounding scope.
pub fn stable_part<R>(ui: &mut Ui, name: impl std::hash::Hash + std::fmt::Debug, add: impl FnOnce(&mut Ui) -> R) -> R {
    let id = egui::Id::unique((ui.scope_id(), name));
    ui.scope_builder(egui::UiBuilder::new().scope_id(id), add).inner
}

/// Draws a small text button in the accent color.
pub fn word_button(ui: &mut Ui, rect: Rect, id: egui::Id, text: &str, name: &str) -> Response {
    let response = ui.interact(rect, id, Sense::click());
    let colours = ThemeColors::of(ui);
    let colour = if response.hovered() { colours.ink } else { colours.accent };
    let style = theme::caption();
    let at = rect.left_center() - vec2(0.0, style.line / 2.0);
    paint_clipped_text(ui, at, f32::INFINITY, text, &style, colour);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    set_accessible_name(&response, Role::Button, name);
    response
}

/// Returns the width of a button made of words, in points.
pub fn word_width(ui: &Ui, text: &str) -> f32 {
    let text = text::untrusted_text::escape_line(text).into_owned();
    let galley = ui.painter().layout_no_wrap(text, theme::caption().font, ThemeColors::of(ui).ink);
    galley.size().x.max(size::MIN_CLICK_HEIGHT)
}

/// Draws a check box whose empty square stands out from its ground.
pub fn check_box<'a>(ui: &mut Ui, is_on: &'a mut bool, label: impl egui::IntoAtoms<'a>) -> Response {
    with_outlines(ui, move |ui| ui.checkbox(is_on, label))
}

/// Draws a radio button whose empty circle stands out from its ground.
pub fn radio_button<'a>(ui: &mut Ui, is_chosen: bool, label: impl egui::IntoAtoms<'a>) -> Response {
    with_outlines(ui, move |ui| ui.radio(is_chosen, label))
}

fn with_outlines(ui: &mut Ui, draw: impl FnOnce(&mut Ui) -> Response) -> Response {
    let outline = Stroke::new(1.0, ThemeColors::of(ui).muted);
    let outlined = ui.scope(|ui| {
        let widgets = &mut ui.visuals_mut().widgets;
        widgets.inactive.bg_stroke = outline;
        widgets.hovered.bg_stroke = outline;
        draw(ui)
    });
    outlined.inner
}

/// Paints the background of a flat control under the pointer.
pub fn paint_hover_fill(ui: &Ui, response: &Response) {
    if response.hovered() || response.is_pointer_button_down_on() {
        let colours = ThemeColors::of(ui);
        ui.painter().rect_filled(response.rect, CONTROL_CORNER, colours.hover_color(colours.paper));
    }
}

/// Draws one of several mutually exclusive options. Returns whether it was clicked. `name`: for screen readers.
pub fn chip_button(ui: &mut Ui, text: &str, name: &str, is: bool, style: &theme::TypeStyle) -> bool {
    let colours = ThemeColors::of(ui);
    let colour = if is { colours.accent } else { colours.ink };
    let galley =
        ui.painter().layout_no_wrap(text::untrusted_text::escape_line(text).into_owned(), style.font.clone(), colour);
    let (rect, response) =
        ui.allocate_exact_size(vec2(galley.size().x + 2.0 * space::M, size::MIN_CLICK_HEIGHT), Sense::click());
    response.widget_info(|| WidgetInfo::selected(Role::RadioButton, true, is, text::untrusted_text::escape_line(name)));
    let ground = match (is, response.hovered()) {
        (true, _) => colours.accent_ground,
        (false, true) => colours.hover_color(colours.sunken),
        (false, false) => colours.sunken,
    };
    ui.painter().rect_filled(rect, CONTROL_CORNER, ground);
    ui.painter().galley(Align2::CENTER_CENTER.align_size_within_rect(galley.size(), rect).min, galley, colour);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    response.clicked()
}

/// Draws a small toggle button labeled with a few letters. Returns whether it was clicked.
pub fn toggle_button(ui: &mut Ui, name: &str, mark: &str, on: bool) -> bool {
    let (rect, response) = ui.allocate_exact_size(vec2(size::MIN_CLICK_HEIGHT, size::MIN_CLICK_HEIGHT), Sense::click());
    let colours = ThemeColors::of(ui);
    if on {
        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
    } else if response.hovered() {
        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.paper));
    }
    let colour = if on { colours.accent } else { colours.muted };
    let font = theme::inter_font(theme::InterCut::SemiBold, 12.0);
    ui.painter().text(rect.center(), Align2::CENTER_CENTER, mark, font, colour);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    response.widget_info(|| WidgetInfo::selected(Role::CheckBox, true, on, name));
    response.on_hover_text(name).clicked()
}

/// Shows a tooltip at the right of a control, where it hides none of those below.
pub fn tooltip_at_right(response: &Response, text: &str) {
    let mut tooltip = egui::Tooltip::for_enabled(response);
    tooltip.popup = tooltip.popup.align(egui::RectAlign::RIGHT);
    tooltip.show(|ui| {
        ui.set_max_width(ui.spacing().tooltip_width);
        ui.label(text);
    });
    response.ctx.accesskit_node_builder(response.id, |node| node.set_description(text));
}

/// Sets a control's accessible name. Names are often untrusted text: hidden characters are announced as they're shown.
pub fn set_accessible_name(response: &Response, role: Role, name: &str) {
    response.widget_info(|| WidgetInfo::labeled(role, true, text::untrusted_text::escape_block(name)));
}

/// Paints text that's truncated with an ellipsis. Returns its width.
pub fn paint_clipped_text(
    ui: &Ui,
    at: egui::Pos2,
    width: f32,
    text: &str,
    style: &theme::TypeStyle,
    colour: Color32,
) -> f32 {
    // Names and titles are untrusted text: bidirectional control characters are made visible.
    let text = &text::untrusted_text::escape_line(text);
    let mut job = egui::text::LayoutJob::default();
    job.append(text, 0.0, format(style.font.clone(), style.line, colour));
    job.wrap = egui::text::TextWrapping::truncate_at_width(width.max(0.0));
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let width = galley.size().x;
    ui.painter().galley(at, galley, colour);
    width
}

/// Appends a text to a layout. What stands between backticks has the font of code, and they are left out.
pub fn append_text(job: &mut egui::text::LayoutJob, text: &str, style: &theme::TypeStyle, colour: Color32) {
    let text = text::untrusted_text::escape_block(text);
    let parts: Vec<&str> = text.split('`').collect();
    // A backtick without a second one is a character like any other.
    let parts = if parts.len() % 2 == 1 { parts } else { vec![&*text] };
    let code = egui::FontId::new(style.font.size - 0.5, egui::FontFamily::Monospace);
    for (index, part) in parts.into_iter().enumerate() {
        let font = if index % 2 == 1 { code.clone() } else { style.font.clone() };
        job.append(part, 0.0, format(font, style.line, colour));
    }
}

/// Returns the frame of popups, in these colors.
pub fn floating_frame(colours: &ThemeColors, dark: bool) -> egui::Frame {
    egui::Frame::NONE
        .fill(colours.raised)
        .stroke(Stroke::new(1.0, colours.line))
        .corner_radius(theme::CARD_CORNER)
        .shadow(theme::floating_shadow(dark))
}

/// Returns a text format with a line height.
pub fn format(font: eframe::egui::FontId, line: f32, colour: eframe::egui::Color32) -> eframe::egui::TextFormat {
    eframe::egui::TextFormat {
        font_id: font,
        line_height: Some(line),
        color: colour,
        valign: eframe::egui::Align::Center,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_in_messages_has_its_own_font() {
        let laid_out = |text: &str| {
            let mut job = egui::text::LayoutJob::default();
            append_text(&mut job, text, &theme::small(), Color32::BLACK);
            let fonts: Vec<bool> = job.sections.iter().map(|part| theme::is_mono(&part.format.font_id)).collect();
            (job.text, fonts)
        };
        let expected = ("Run pip install x first.".to_owned(), vec![false, true, false]);
        assert_eq!(laid_out("Run `pip install x` first."), expected);
        assert_eq!(laid_out("a ` b"), ("a ` b".to_owned(), vec![false]));
    }
}
