//! Parts that dialogs share: title, text, fields, errors and buttons.

use crate::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use crate::widgets::{
    append_text, floating_frame, format, paint_clipped_text, paint_focus_ring, paint_hover_fill, set_accessible_name,
    text_button, text_button_width,
};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Color32, Id, Margin, Modal, ScrollArea, Ui, vec2};
use text::untrusted_text;

/// Name of the field that has the keyboard when a dialog opens, for [`Id::unique`].
pub const FIELD_ID: &str = "dialog field";

/// Room above and below the content of a dialog in which focus rings are painted, in points.
const RING_MARGIN: i8 = 4;

/// Draws a dialog over the window, a fifth from its top. It scrolls where the window is too low for it, as in a small
/// window or with large text. Returns what `add` returns, and whether the user clicked beside the dialog.
pub fn show_dialog<R>(
    ctx: &egui::Context,
    name: &str,
    width: f32,
    (colours, is_dark): (&ThemeColors, bool),
    add: impl FnOnce(&mut Ui) -> R,
) -> (R, bool) {
    let (screen, id) = (ctx.content_rect(), Id::unique(name));
    let area = Modal::default_area(id).anchor(Align2::CENTER_TOP, vec2(0.0, (screen.height() / 5.0).round()));
    let width = width.min(screen.width() - 2.0 * space::L);
    let response = Modal::new(id)
        .area(area)
        .backdrop_color(Color32::from_black_alpha(if is_dark { 90 } else { 30 }))
        .frame(floating_frame(colours, is_dark).inner_margin(Margin::symmetric(24, 24 - RING_MARGIN)))
        .show(ctx, |ui| {
            ui.set_width(width - 2.0 * space::XL);
            // The dialog may be higher than when it was last drawn.
            ui.set_max_height(screen.height() - 2.0 * space::XL - 2.0 * space::S);
            let area = ScrollArea::vertical().id_salt("dialog").content_margin(Margin::symmetric(0, RING_MARGIN));
            area.show(ui, add).inner
        });
    (response.inner, response.backdrop_response.clicked())
}

/// Draws a dialog's title.
pub fn head(ui: &mut Ui, text: &str) {
    let style = theme::heading(3);
    let response = ui.label(egui::RichText::new(untrusted_text::escape_block(text)).font(style.font));
    set_accessible_name(&response, Role::Heading, text);
    ui.add_space(space::M);
}

/// Draws a paragraph.
pub fn words(ui: &mut Ui, text: &str) {
    let mut job = egui::text::LayoutJob::default();
    append_text(&mut job, text, &theme::small(), ThemeColors::of(ui).muted);
    set_accessible_name(&ui.label(job), Role::Label, text);
}

/// Draws a paragraph that others wrote and that the user decides about, such as a command: each character is shown.
pub fn exact_words(ui: &mut Ui, text: &str) {
    let style = theme::small();
    let mut job = egui::text::LayoutJob::default();
    job.append(&untrusted_text::escape_block(text), 0.0, format(style.font, style.line, ThemeColors::of(ui).muted));
    set_accessible_name(&ui.label(job), Role::Label, text);
}

/// Draws the text field that has the keyboard when the dialog opens.
pub fn field(ui: &mut Ui, text: &mut String, name: &str, hint: &str) {
    let response = further(ui, text, FIELD_ID, name, hint);
    if !response.has_focus() && ui.memory(|memory| memory.focused().is_none()) {
        response.request_focus();
    }
}

/// Draws [`field`] and a button beside it, as wide together as the dialog. Returns whether the button was clicked.
pub fn field_with_button(ui: &mut Ui, text: &mut String, name: &str, hint: &str, button: &str) -> bool {
    let row = ui.horizontal(|ui| {
        let room = ui.available_width() - text_button_width(ui, button) - ui.spacing().item_spacing.x;
        ui.allocate_ui(vec2(room, size::MIN_CLICK_HEIGHT), |ui| field(ui, text, name, hint));
        text_button(ui, button, false).clicked()
    });
    row.inner
}

/// Draws a text field that doesn't take the focus when the dialog opens.
pub fn further(ui: &mut Ui, text: &mut String, id: &str, name: &str, hint: &str) -> egui::Response {
    let colours = ThemeColors::of(ui);
    let style = theme::body();
    let field = egui::TextEdit::singleline(text)
        .id(Id::unique(id))
        .font(style.font.clone())
        .hint_text(egui::RichText::new(hint).font(style.font).color(colours.muted))
        .margin(egui::Margin::symmetric(12, 8))
        .desired_width(f32::INFINITY);
    ui.add(field).accessible_name(name)
}

/// Draws the error message, if any, and the space before the buttons.
pub fn show_trouble(ui: &mut Ui, trouble: Option<&str>) {
    let colours = ThemeColors::of(ui);
    if let Some(trouble) = trouble {
        ui.add_space(space::S);
        ui.label(
            egui::RichText::new(untrusted_text::escape_block(trouble)).font(theme::small().font).color(colours.bad),
        );
    }
    ui.add_space(space::L);
}

/// Draws how the last operation ended, as a sentence; it's red only for an error.
pub fn show_outcome(ui: &mut Ui, outcome: &str, is_error: bool) {
    let colours = ThemeColors::of(ui);
    let text = format!("{}.", crate::text::sentence(outcome.trim_end_matches('.')));
    let colour = if is_error { colours.bad } else { colours.muted };
    ui.label(egui::RichText::new(untrusted_text::escape_block(&text)).font(theme::small().font).color(colour));
    ui.add_space(space::S);
}

/// Draws two buttons at the right. Returns `Some(true)` for the first one, which is primary.
pub fn buttons(ui: &mut Ui, lead: &str, other: &str) -> Option<bool> {
    let mut chosen = None;
    at_right(ui, |ui| {
        if text_button(ui, lead, true).clicked() {
            chosen = Some(true);
        }
        if text_button(ui, other, false).clicked() {
            chosen = Some(false);
        }
    });
    chosen
}

/// Draws a row that chooses a folder; `name` is for screen readers. Returns whether it was clicked.
pub fn folder_row(ui: &mut Ui, path: &str, name: &str) -> bool {
    let wanted = vec2(ui.available_width(), size::MIN_CLICK_HEIGHT);
    let (rect, response) = ui.allocate_exact_size(wanted, egui::Sense::click());
    paint_hover_fill(ui, &response);
    let (style, ink) = (theme::small(), ThemeColors::of(ui).ink);
    let room = rect.width() - 2.0 * space::M;
    let at = rect.left_center() + vec2(space::M, -style.line / 2.0);
    paint_clipped_text(ui, at, room, &fitting_path(ui, path, room), &style, ink);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    set_accessible_name(&response, Role::Button, name);
    response.clicked()
}

/// Returns a path as it fits into a width: without its first folders, because the last ones tell it from others.
fn fitting_path(ui: &Ui, path: &str, width: f32) -> String {
    let path = untrusted_text::escape_line(path).into_owned();
    let is_too_wide = |shown: &str| {
        let font = theme::small().font;
        ui.painter().layout_no_wrap(shown.to_owned(), font, egui::Color32::PLACEHOLDER).size().x > width
    };
    let (mut shown, mut rest) = (path.clone(), path.trim_start_matches('/'));
    while is_too_wide(&shown)
        && let Some((_, tail)) = rest.split_once('/').filter(|(_, tail)| !tail.is_empty())
    {
        (shown, rest) = (format!("…/{tail}"), tail);
    }
    shown
}

/// Draws a right-aligned row.
pub fn at_right<R>(ui: &mut Ui, buttons: impl FnOnce(&mut Ui) -> R) -> R {
    let wanted = vec2(ui.available_width(), size::MIN_CLICK_HEIGHT);
    ui.allocate_ui_with_layout(wanted, egui::Layout::right_to_left(egui::Align::Center), buttons).inner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_keeps_its_end() {
        let ctx = egui::Context::default();
        theme::install_theme(&ctx);
        let mut shown = Vec::new();
        let mut output = ctx.run_ui(egui::RawInput::default(), |ui| {
            let deep = "/home/ada/notes/a folder with a long name/garden";
            shown = [1_000.0, 120.0, 1.0].map(|width| fitting_path(ui, deep, width)).to_vec();
        });
        output.textures_delta.clear(); // the test paints nothing
        assert_eq!(shown, ["/home/ada/notes/a folder with a long name/garden", "…/garden", "…/garden"]);
    }

    #[test]
    fn words_that_the_user_decides_about_keep_their_backticks() {
        let ctx = egui::Context::default();
        theme::install_theme(&ctx);
        let painted = |draw: fn(&mut Ui, &str)| {
            let mut output = ctx.run_ui(egui::RawInput::default(), |ui| draw(ui, "sh -c `id` now"));
            output.textures_delta.clear(); // the test paints nothing
            let mut shown = String::new();
            for clipped in &output.shapes {
                if let egui::Shape::Text(text) = &clipped.shape {
                    shown.push_str(text.galley.text());
                }
            }
            shown
        };
        assert_eq!([painted(exact_words), painted(words)], ["sh -c `id` now", "sh -c id now"]);
    }
}
