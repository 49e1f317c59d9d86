//! Interaction with figures by pointer and keyboard: zoom, pan, hover, hide series.

use super::{FigureSlot, PageFigures};
use crate::render::TextStyleContext;
use eframe::egui;
use egui::accesskit::Role;
use egui::{ColorImage, Key, Modifiers, Order, Pos2, Rect, Response, Sense, Stroke, Ui, Vec2, pos2, vec2};
use plot::{LegendEntry, PreparedFigure};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use text::untrusted_text;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, space};
use ui::widgets::{paint_focus_ring, set_accessible_name, word_button};

/// An operation on a figure's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureCommand {
    /// Zooms in.
    In,
    /// Zooms out.
    Out,
    /// Resets the view to the original one.
    Reset,
}

/// Zoom factor of one keyboard step.
const KEYBOARD_ZOOM_FACTOR: f64 = 1.25;
/// Resolution of a figure that is copied as an image.
const COPIED_PIXELS_PER_POINT: f64 = 2.0;
/// Distance of one keyboard pan step, as a fraction of the frame.
const KEYBOARD_PAN_FRACTION: f64 = 0.1;
/// Delay before the loading message of a figure appears, in seconds.
const FIGURE_LOADING_DELAY_SECONDS: f64 = 0.15;
/// Distance in points within which a data point counts as near the pointer.
const POINT_HIT_RADIUS: f64 = 24.0;

impl PageFigures {
    /// Shows a figure relative to `origin`, the top left of its outputs; `number` is that of its cell.
    pub fn show(&mut self, ui: &mut Ui, slot: &FigureSlot, origin: Pos2, number: usize, pen: TextStyleContext<'_>) {
        self.begin(ui.ctx());
        let rect = Rect::from_min_size(origin + vec2(0.0, slot.y), slot.size);
        let id = ui.scope_id().with(("figure", slot.name));
        let response = ui.interact(rect, id, Sense::click_and_drag());
        response
            .widget_info(|| egui::WidgetInfo::labeled(Role::Image, true, untrusted_text::escape_block(&slot.words)));
        let looked = self.looked.entry(slot.name).or_default();
        (looked.seen, looked.top, looked.focused) = (self.frame, rect.top(), response.has_focus());
        let ready = match self.draw(slot, pen) {
            Some(Ok(ready)) => ready,
            Some(Err(why)) => return says(ui, rect, &format!("Can't show this figure: {why}.")),
            None => {
                let now = ui.input(|input| input.time);
                let since = self.looked.get_mut(&slot.name).map_or(now, |looked| *looked.since.get_or_insert(now));
                if now - since > FIGURE_LOADING_DELAY_SECONDS {
                    says(ui, rect, "Reading the figure…");
                } else {
                    ui.ctx().request_repaint_after(std::time::Duration::from_secs_f64(FIGURE_LOADING_DELAY_SECONDS));
                }
                return;
            }
        };
        if response.clicked() || response.drag_started() {
            response.request_focus();
        }
        if let Some(image) = self.copy.as_ref().and_then(|copy| copy.try_recv().ok()) {
            self.copy = None;
            ui.ctx().copy_image(image);
        }
        let scale = f64::from(slot.scale);
        let at = |pointer: Pos2| {
            let at = (pointer - rect.min) / slot.scale;
            [f64::from(at.x), f64::from(at.y)]
        };
        self.steer(ui, &response, slot, &ready, at);
        // Draws again so that a view change shows in this frame.
        let _ = self.draw(slot, pen);
        let Some(looked) = self.looked.get_mut(&slot.name) else { return };
        let Some(drawn) = &looked.drawn else { return };
        drawn.paint(&ui.painter_at(rect), rect.min);
        paint_focus_ring(ui, &response, CONTROL_CORNER);
        let mut turned: Option<(usize, LegendEntry)> = None;
        for place in &drawn.places {
            for (index, entry) in place.entries.iter().enumerate() {
                #[allow(clippy::cast_possible_truncation, reason = "points")]
                let [left, top, right, bottom] = entry.rect.map(|side| (side * scale) as f32);
                let area = Rect::from_min_max(pos2(left, top), pos2(right, bottom)).translate(rect.min.to_vec2());
                let id = id.with(("entry", place.axes, index));
                let response = ui.interact(area, id, Sense::click());
                let name = format!("Show {}", entry.label);
                response.widget_info(|| {
                    egui::WidgetInfo::selected(Role::CheckBox, true, entry.shown, untrusted_text::escape_line(&name))
                });
                paint_focus_ring(ui, &response, CONTROL_CORNER);
                if response.hovered() {
                    ui.ctx().set_cursor_icon(egui::CursorIcon::PointingHand);
                }
                if response.clicked() {
                    turned = Some((place.axes, entry.clone()));
                }
            }
        }
        if response.hovered()
            && !response.dragged()
            && turned.is_none()
            && let Some(pointer) = ui.input(|input| input.pointer.hover_pos())
        {
            let near = drawn.places.iter().rev().find_map(|place| {
                let inside = place.contains(at(pointer));
                inside.then(|| place.nearest(&drawn.ready, &drawn.view, at(pointer), POINT_HIT_RADIUS))?
            });
            if let Some(near) = near {
                #[allow(clippy::cast_possible_truncation, reason = "points")]
                let spot = rect.min + vec2(near.at[0] as f32, near.at[1] as f32) * slot.scale;
                card(ui, id, spot, pointer, &near.description);
            }
        }
        if let Some((axes, entry)) = turned {
            looked.view.toggle(axes, &entry);
            ui.ctx().request_repaint();
        }
        if !looked.view.is_plain() {
            let button =
                Rect::from_min_size(pos2(rect.right() - 72.0, rect.top()), vec2(72.0, theme::size::MIN_CLICK_HEIGHT));
            ui.painter().rect_filled(button, CONTROL_CORNER, pen.colours.paper);
            let name = format!("Reset view of the figure of cell {number}");
            if word_button(ui, button.shrink2(vec2(space::XS, 0.0)), id.with("reset"), "Reset view", &name).clicked() {
                looked.view = plot::PlotView::default();
                ui.ctx().request_repaint();
            }
        }
    }

    /// Starts to copy a figure to the clipboard as an image.
    pub fn copy_as_image(&mut self, ctx: &egui::Context, slot: &FigureSlot) {
        let drawn = self.looked.get(&slot.name).and_then(|looked| looked.drawn.as_ref());
        if let Some(drawn) = drawn {
            self.copy = Some(start_copy(ctx, &drawn.ready));
        }
    }

    /// Handles wheel, pinch, drag, double click and keys.
    fn steer(
        &mut self,
        ui: &Ui,
        response: &Response,
        slot: &FigureSlot,
        ready: &PreparedFigure,
        at: impl Fn(Pos2) -> [f64; 2],
    ) {
        let Some(looked) = self.looked.get_mut(&slot.name) else { return };
        let Some(drawn) = &looked.drawn else { return };
        let before = looked.view.clone();
        if response.double_clicked() {
            looked.view = plot::PlotView::default();
            return;
        }
        let places = &drawn.places;
        let under = |pointer: Pos2| {
            let at = at(pointer);
            // Overlapping axes move together.
            let found: Vec<_> = places.iter().filter(|place| place.contains(at)).collect();
            (at, found)
        };
        if response.contains_pointer()
            && let Some(pointer) = ui.input(|input| input.pointer.hover_pos())
        {
            let (scroll, pinch) = ui.input(|input| (input.smooth_scroll_delta().y, input.zoom_delta()));
            // The page keeps scrolling until the user clicks into the figure.
            let scroll = if response.has_focus() { scroll } else { 0.0 };
            let (at, places) = under(pointer);
            if (scroll != 0.0 || pinch != 1.0) && !places.is_empty() {
                let factor = f64::from((scroll * 0.004).exp() * pinch);
                places.iter().for_each(|place| looked.view.zoom(ready, place, at, factor));
                ui.ctx().input_mut(|input| input.smooth_scroll_delta = Vec2::ZERO);
            }
        }
        if response.dragged_by(egui::PointerButton::Primary) {
            let by = response.drag_delta() / slot.scale;
            let from = ui.input(|input| input.pointer.press_origin());
            if let Some(from) = from {
                for place in under(from).1 {
                    looked.view.pan(ready, place, [f64::from(by.x), f64::from(by.y)]);
                }
            }
            ui.ctx().set_cursor_icon(egui::CursorIcon::Grabbing);
        }
        if response.has_focus() {
            let arrows = egui::EventFilter { horizontal_arrows: true, vertical_arrows: true, ..Default::default() };
            ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, arrows));
            for (key, turn) in [
                (Key::Plus, FigureCommand::In),
                (Key::Equals, FigureCommand::In),
                (Key::Minus, FigureCommand::Out),
                (Key::Num0, FigureCommand::Reset),
            ] {
                if ui.input_mut(|input| input.consume_key(Modifiers::NONE, key)) {
                    looked.turn(ready, turn);
                }
            }
            for (key, x, y) in [
                (Key::ArrowLeft, 1.0, 0.0),
                (Key::ArrowRight, -1.0, 0.0),
                (Key::ArrowUp, 0.0, 1.0),
                (Key::ArrowDown, 0.0, -1.0),
            ] {
                if ui.input_mut(|input| input.consume_key(Modifiers::NONE, key)) {
                    let Some(drawn) = &looked.drawn else { return };
                    for place in &drawn.places {
                        let [left, top, right, bottom] = place.frame();
                        let by =
                            [(right - left) * x * KEYBOARD_PAN_FRACTION, (bottom - top) * y * KEYBOARD_PAN_FRACTION];
                        looked.view.pan(ready, place, by);
                    }
                }
            }
        }
        if looked.view != before {
            ui.ctx().request_repaint();
        }
    }

    /// Returns the number of figures that have a drawing.
    pub fn drawn_count(&self) -> usize {
        self.looked.values().filter(|looked| looked.drawn.is_some()).count()
    }

    /// Applies a command to the focused figure, or else to the topmost visible one. Returns whether there is one.
    pub fn apply_figure_command(&mut self, ctx: &egui::Context, turn: FigureCommand) -> bool {
        // Only figures drawn in this frame or the previous one count as visible.
        let frame = if ctx.cumulative_pass_nr() <= self.pass + 2 { self.frame } else { u64::MAX };
        let seen = self.looked.values_mut().filter(|looked| looked.seen == frame && looked.drawn.is_some());
        let meant = seen.min_by(|a, b| (!a.focused).cmp(&!b.focused).then(a.top.total_cmp(&b.top)));
        let Some(looked) = meant else { return false };
        if let Some(ready) = looked.drawn.as_ref().map(|drawn| drawn.ready.clone()) {
            looked.turn(&ready, turn);
            ctx.request_repaint();
        }
        true
    }
}

impl super::FigureView {
    fn turn(&mut self, ready: &PreparedFigure, turn: FigureCommand) {
        let factor = match turn {
            FigureCommand::In => KEYBOARD_ZOOM_FACTOR,
            FigureCommand::Out => 1.0 / KEYBOARD_ZOOM_FACTOR,
            FigureCommand::Reset => {
                self.view = plot::PlotView::default();
                return;
            }
        };
        for place in self.drawn.iter().flat_map(|drawn| &drawn.places) {
            let [left, top, right, bottom] = place.frame();
            let middle = [f64::midpoint(left, right), f64::midpoint(top, bottom)];
            self.view.zoom(ready, place, middle, factor);
        }
    }
}

/// Starts to draw a figure as an image for the clipboard.
fn start_copy(ctx: &egui::Context, ready: &Arc<PreparedFigure>) -> Receiver<ColorImage> {
    let (send, receive) = channel();
    let (ready, wake) = (ready.clone(), ctx.clone());
    std::thread::spawn(move || {
        if let Ok((width, height, pixels)) = plot::render_pixels(&ready, COPIED_PIXELS_PER_POINT) {
            let _ = send.send(ColorImage::from_rgb([width, height], &pixels)); // the note may be gone
            wake.request_repaint();
        }
    });
    receive
}

/// Shows a message in place of a figure.
#[allow(clippy::cast_possible_truncation, reason = "a place on a page")]
fn says(ui: &Ui, rect: Rect, words: &str) {
    let colours = ThemeColors::of(ui);
    let at = rect.min + vec2(0.0, space::S);
    let galley = ui.painter().layout(
        untrusted_text::escape_block(words).into_owned(),
        theme::caption().font,
        colours.muted,
        rect.width(),
    );
    ui.painter_at(rect).galley(at, galley, colours.muted);
    set_accessible_name(
        &ui.interact(rect, ui.scope_id().with("says").with(rect.top() as i32), Sense::hover()),
        Role::Label,
        words,
    );
}

/// Draws the nearest point's values next to the pointer, and marks the point.
fn card(ui: &Ui, id: egui::Id, spot: Pos2, pointer: Pos2, words: &str) {
    let colours = ThemeColors::of(ui);
    let painter = ui.ctx().layer_painter(egui::LayerId::new(Order::Tooltip, id.with("card")));
    painter.circle_stroke(spot, 4.5, Stroke::new(1.5, colours.ink));
    let galley = painter.layout_no_wrap(
        untrusted_text::escape_block(words).into_owned(),
        theme::tabular_font(12.0),
        colours.ink,
    );
    let size = galley.size() + vec2(2.0 * space::S, 2.0 * space::XS);
    let screen = ui.ctx().content_rect();
    let right = pointer.x + space::M + size.x <= screen.right();
    let below = pointer.y + space::M + size.y <= screen.bottom();
    let x = if right { pointer.x + space::M } else { pointer.x - space::M - size.x };
    let y = if below { pointer.y + space::M } else { pointer.y - space::M - size.y };
    let area = Rect::from_min_size(pos2(x, y), size);
    painter.rect(area, CONTROL_CORNER, colours.raised, Stroke::new(1.0, colours.line), egui::StrokeKind::Inside);
    painter.galley(area.min + vec2(space::S, space::XS), galley, colours.ink);
    // The values are exposed to screen readers too.
    let said = ui.interact(Rect::from_min_size(spot, Vec2::ZERO), id.with("said"), Sense::empty());
    set_accessible_name(&said, Role::Tooltip, words);
}
