//! Table cells: drawing and editing of values.

use super::{CellEditor, CollectionContext};
use crate::actions::PageAction;
use collection::CollectionCell;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Id, Key, Rect, Sense, Stroke, StrokeKind, Ui, Vec2, pos2, vec2};
use serde_json::Value;
use text::outline::plain_value;
use text::properties::{PropertyKind, parse_typed};
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring, set_accessible_name};

/// Horizontal padding of text in a cell.
const CELL_TEXT_INSET: f32 = space::S;

/// Draws a cell's value. Links in it are clickable.
pub(super) fn draw(ui: &Ui, scene: &mut CollectionContext<'_>, rect: Rect, id: Id, cell: &CollectionCell, own: bool) {
    let colours = ThemeColors::of(ui);
    let ink = if own { colours.ink } else { colours.muted };
    let style = theme::small();
    let inner = rect.shrink2(vec2(CELL_TEXT_INSET, 0.0));
    let top = rect.center().y - 10.0;
    match cell {
        CollectionCell::Empty => {}
        CollectionCell::Text(text) => {
            let line = text.lines().next().unwrap_or("");
            paint_clipped_text(ui, pos2(inner.left(), top), inner.width(), line, &style, ink);
        }
        CollectionCell::Date(date) => {
            let style = theme::TypeStyle { font: theme::tabular_font(13.0), line: 20.0 };
            paint_clipped_text(ui, pos2(inner.left(), top), inner.width(), date, &style, ink);
        }
        CollectionCell::Number(number) => {
            let at = pos2(inner.right(), rect.center().y);
            ui.painter().with_clip_rect(rect.intersect(ui.clip_rect())).text(
                at,
                Align2::RIGHT_CENTER,
                number.to_string(),
                theme::tabular_font(13.0),
                ink,
            );
        }
        CollectionCell::Check(done) => check(ui, pos2(inner.left() + 8.0, rect.center().y), *done, own),
        CollectionCell::Link { .. } => _ = link(ui, scene, inner.left(), inner, id, cell, false),
        CollectionCell::List(items) => {
            let mut x = inner.left();
            for (place, item) in items.iter().enumerate() {
                if x + space::L >= inner.right() {
                    break;
                }
                x += link(ui, scene, x, inner, id.with(place), item, true) + space::XS;
            }
        }
    }
}

/// Draws a link, or a word on its own background. Returns its width.
pub(super) fn link(
    ui: &Ui,
    scene: &mut CollectionContext<'_>,
    x: f32,
    inner: Rect,
    id: Id,
    cell: &CollectionCell,
    chip: bool,
) -> f32 {
    let colours = ThemeColors::of(ui);
    let words = cell.to_text();
    let style = if chip { theme::caption() } else { theme::small() };
    let leads = matches!(cell, CollectionCell::Link { .. });
    let pad = if chip { 6.0 } else { 0.0 };
    let room = (inner.right() - x - 2.0 * pad).max(0.0);
    let colour = if leads { colours.accent } else { colours.ink };
    let galley =
        ui.painter().layout_no_wrap(text::untrusted_text::escape_line(&words).into_owned(), style.font.clone(), colour);
    let width = galley.size().x.min(room) + 2.0 * pad;
    let rect = Rect::from_min_size(pos2(x, inner.center().y - 10.0), vec2(width, 20.0));
    if chip {
        let ground = if leads { colours.accent_ground } else { colours.sunken };
        ui.painter().rect_filled(rect, CONTROL_CORNER, ground);
    }
    let at = pos2(x + pad, inner.center().y - style.line / 2.0);
    if galley.size().x > room {
        paint_clipped_text(ui, at, room, &words, &style, colour);
    } else {
        let at = pos2(at.x, inner.center().y - galley.size().y / 2.0);
        ui.painter().galley(at, galley, colour);
    }
    if let CollectionCell::Link { target, to, .. } = cell {
        let area = Rect::from_x_y_ranges(rect.x_range(), inner.y_range());
        let response = ui.interact(area, id.with("link"), Sense::click() - Sense::FOCUSABLE);
        set_accessible_name(&response, Role::Link, &words);
        if response.hovered() {
            ui.painter().hline(at.x..=rect.right() - pad, rect.bottom() - 2.0, Stroke::new(1.0, colours.accent));
        }
        let beside = response.middle_clicked() || ui.input(|input| input.modifiers.command);
        if response.clicked() || response.middle_clicked() {
            scene.actions.push(match to {
                Some(file) if beside => PageAction::OpenBeside(*file),
                _ => PageAction::Follow(target.clone()),
            });
        }
        response.on_hover_cursor(egui::CursorIcon::PointingHand);
    }
    width
}

fn check(ui: &Ui, centre: egui::Pos2, done: bool, own: bool) {
    let colours = ThemeColors::of(ui);
    let square = Rect::from_center_size(centre, Vec2::splat(16.0));
    let colour = if own { colours.accent } else { colours.muted };
    if done {
        ui.painter().rect_filled(square, 4.0, colour);
        ui.painter().text(square.center(), Align2::CENTER_CENTER, icons::CHECK, theme::icon_font(12.0), colours.paper);
    } else {
        ui.painter().rect_stroke(square, 4.0, Stroke::new(1.5, colours.muted), StrokeKind::Inside);
    }
}

/// Returns a value as text for editing.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(plain_value).collect::<Vec<_>>().join(", "),
        other => plain_value(other),
    }
}

/// Outcome of editing a cell.
pub(super) enum CellEditOutcome {
    /// Editing continues.
    Not,
    /// Editing was canceled.
    Left,
    /// The new value (`None` removes it), and how far the selection moves to the right and down.
    Is(Option<Value>, (isize, isize)),
}

impl CellEditor {
    /// Draws the editor on top of a cell.
    pub(super) fn show(&mut self, ui: &mut Ui, rect: Rect, id: Id, kind: PropertyKind, label: &str) -> CellEditOutcome {
        let colours = ThemeColors::of(ui);
        let wide = rect.with_max_x(rect.right().max(rect.left() + 160.0));
        let trouble = self.trouble.is_some();
        ui.painter().rect_filled(wide, CONTROL_CORNER, colours.raised);
        let hint = match kind {
            PropertyKind::Date => "2026-11-22",
            PropertyKind::Number => "0",
            PropertyKind::List => "one, two",
            PropertyKind::Link => "[[Note]] or https://…",
            PropertyKind::Text | PropertyKind::Check(_) | PropertyKind::Nested => "",
        };
        let id = id.with("edit");
        let (enter, tab, escape) = ui.input_mut(|input| {
            let tab = if input.consume_key(egui::Modifiers::SHIFT, Key::Tab) {
                Some(-1)
            } else {
                input.consume_key(egui::Modifiers::NONE, Key::Tab).then_some(1)
            };
            let enter = input.consume_key(egui::Modifiers::NONE, Key::Enter);
            (enter, tab, input.consume_key(egui::Modifiers::NONE, Key::Escape))
        });
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(wide).id_salt("cell"));
        let hint = egui::RichText::new(hint).color(colours.muted);
        let field = egui::TextEdit::singleline(&mut self.text)
            .id(id)
            .font(theme::small().font)
            .hint_text(hint)
            .frame(egui::Frame::NONE)
            .lock_focus(true)
            .margin(egui::Margin::symmetric(8, 6))
            .desired_width(wide.width());
        let response = child.add_sized(wide.size(), field).accessible_name(label);
        let ring = Stroke::new(theme::size::FOCUS_RING_WIDTH, if trouble { colours.bad } else { colours.accent });
        ui.painter().rect_stroke(wide, CONTROL_CORNER, ring, StrokeKind::Inside);
        if let Some(trouble) = self.trouble {
            let at = wide.left_bottom() + vec2(space::S, space::XS);
            let font = theme::caption().font;
            let galley =
                ui.painter().layout_no_wrap(text::untrusted_text::escape_line(trouble).into_owned(), font, colours.bad);
            let ground = Rect::from_min_size(at, galley.size()).expand(space::XS);
            ui.painter().rect_filled(ground, CONTROL_CORNER, colours.raised);
            ui.painter().galley(at, galley, colours.bad);
            let response = ui.interact(ground, id.with("trouble"), Sense::hover());
            set_accessible_name(&response, Role::Alert, trouble);
        }
        if !self.begun {
            response.request_focus();
            self.begun = true;
            if let Some(mut state) = egui::TextEdit::load_state(ui.ctx(), id) {
                let mut all = egui::text::CCursorRange::select_all_str(&self.text);
                if self.typed {
                    all.secondary = all.primary; // what is typed next goes behind it
                }
                state.cursor.set_char_range(Some(all));
                egui::TextEdit::store_state(ui.ctx(), id, state);
            }
            return CellEditOutcome::Not;
        }
        if response.changed() {
            self.trouble = None;
        }
        if escape {
            return CellEditOutcome::Left;
        }
        if enter || tab.is_some() || response.lost_focus() {
            let way = match tab {
                Some(right) => (right, 0),
                None => (0, isize::from(enter)),
            };
            return match self.value(kind) {
                Ok(value) => CellEditOutcome::Is(value, way),
                // A click elsewhere cancels editing of an invalid value.
                Err(_) if !enter && tab.is_none() => CellEditOutcome::Left,
                Err(why) => {
                    self.trouble = Some(why);
                    response.request_focus();
                    CellEditOutcome::Not
                }
            };
        }
        CellEditOutcome::Not
    }

    fn value(&self, kind: PropertyKind) -> Result<Option<Value>, &'static str> {
        let value = parse_typed(kind, &self.text);
        match (kind, &value) {
            (PropertyKind::Number, Value::String(_)) => Err("Enter a number, such as 4.5."),
            (PropertyKind::Date, Value::String(text)) if text::task::CalendarDay::parse(text).is_none() => {
                Err("Enter a date, such as 2026-11-22.")
            }
            _ => Ok(Some(value)),
        }
    }
}

/// Draws a small flat button with an icon and a label.
pub(super) fn tool_button(ui: &mut Ui, icon: &str, words: &str, name: &str, on: bool) -> egui::Response {
    let colours = ThemeColors::of(ui);
    let colour = if on { colours.accent } else { colours.muted };
    let style = theme::small();
    let galley = ui.painter().layout_no_wrap(words.to_owned(), style.font, colour);
    let gap = if words.is_empty() { 0.0 } else { space::XS };
    let width = 16.0 + gap + galley.size().x + 2.0 * space::S;
    let (rect, response) = ui.allocate_exact_size(vec2(width, theme::size::MIN_CLICK_HEIGHT), Sense::click());
    ui::widgets::paint_hover_fill(ui, &response);
    let at = pos2(rect.left() + space::S + 8.0, rect.center().y);
    ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(15.0), colour);
    let words = pos2(rect.left() + space::S + 16.0 + gap, rect.center().y - galley.size().y / 2.0);
    ui.painter().galley(words, galley, colour);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    set_accessible_name(&response, Role::Button, name);
    response
}
