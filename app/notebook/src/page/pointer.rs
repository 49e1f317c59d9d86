//! Pointer input on the page: a press places the caret, a drag selects, and the middle button pastes.

use super::{NotePage, POINTER_REST_SECONDS};
use crate::actions::PageAction;
use editor::bidi_text::caret_at_point;
use editor::editor_keys;
use editor::motion;
use editor::note_editor::{self, EditContext, EditTarget, Editor, SelectionDrag, byte_of, target_of};
use eframe::egui;
use egui::{Pos2, Ui, vec2};
use std::ops::Range;
use ui::theme::space;

/// Maximum time between presses of a double or triple click, in seconds.
const MULTI_CLICK_SECONDS: f64 = 0.5;

impl NotePage {
    /// Handles a press at a byte of the note: places the caret, selects a word or row, extends the selection, or adds a
    /// caret.
    pub fn handle_press(&mut self, ui: &Ui, at: usize, point: Pos2, world: &mut EditContext<'_>, editor: &mut Editor) {
        // Modifiers at the time of the press, which may have been released since.
        let held = |event: &egui::Event| match event {
            egui::Event::PointerButton { pressed: true, modifiers, .. } => Some(*modifiers),
            _ => None,
        };
        let (modifiers, now, down) = ui.input(|input| {
            let modifiers = input.events.iter().rev().find_map(held).unwrap_or(input.modifiers);
            (modifiers, input.time, input.pointer.primary_down())
        });
        let (last, place, presses) = self.presses;
        let again = now - last <= MULTI_CLICK_SECONDS + 0.001 && place.distance(point) < 6.0;
        let count = if again { presses % 3 + 1 } else { 1 };
        self.presses = (now, point, count);
        let old = editor.caret;
        let frozen = old.filter(|_| !editor.behind).map(|caret| caret.at);
        let unit = count;
        let mut origin = unit_at(at, unit, world);
        match old {
            Some(caret) if modifiers.shift => {
                origin = caret.anchor..caret.anchor;
                editor.select(caret.anchor, at);
            }
            Some(caret) if modifiers.alt => {
                editor.more.retain(|other| other.at != at);
                editor.more.push(caret);
                editor.select(origin.start, origin.end);
            }
            _ => {
                editor.more.clear();
                editor.select(origin.start, origin.end);
            }
        }
        editor.reveal = false;
        editor.preedit = None;
        editor.touched = ui.input(|input| input.time);
        if down {
            editor.drag = Some(SelectionDrag { frozen, origin, unit, from: point, moved: false });
            ui.ctx().set_dragged_id(note_editor::field());
        }
        ui.ctx().request_repaint();
    }

    /// Extends the selection to the pointer while the button is down, and scrolls at the page's edges.
    pub(super) fn extend_selection(
        &mut self,
        ui: &Ui,
        target: Option<&EditTarget>,
        world: &mut EditContext<'_>,
        editor: &mut Editor,
    ) {
        let Some(mut drag) = editor.drag.take() else { return };
        let (down, point) = ui.input(|input| (input.pointer.primary_down(), input.pointer.latest_pos()));
        if !down {
            editor.focus = true;
            editor.reveal = drag.moved;
            let text: String =
                editor.selected().into_iter().filter_map(|range| world.note.slice(range.start, range.len())).collect();
            if !text.is_empty() {
                ui.ctx().send_cmd(egui::OutputCommand::TextSelectionSettled(text));
            }
            ui.ctx().request_repaint();
            return;
        }
        if let Some(point) = point {
            drag.moved |= point.distance(drag.from) > 3.0;
            if drag.moved
                && let Some(at) = self.hit(point, target, world)
            {
                let unit = unit_at(at, drag.unit, world);
                let backward = at < drag.origin.start;
                let anchor = if backward { drag.origin.end } else { drag.origin.start };
                let head = match drag.unit {
                    1 => at,
                    _ if backward => unit.start,
                    _ => unit.end.max(drag.origin.end),
                };
                editor.select(anchor, head);
                editor.reveal = false;
                let view = ui.clip_rect();
                let beyond = if point.y < view.top() + space::S {
                    point.y - view.top() - space::S
                } else {
                    (point.y - view.bottom() + space::S).max(0.0)
                };
                if beyond != 0.0 {
                    self.nudge += (beyond * 0.5).clamp(-60.0, 60.0);
                    ui.ctx().request_repaint();
                }
            }
        }
        editor.drag = Some(drag);
    }

    /// Updates what the pointer rests on.
    pub(super) fn update_hover(&mut self, ui: &Ui, target: Option<&EditTarget>, world: &mut EditContext<'_>) {
        let (point, still, down) = ui.input(|input| {
            let pointer = &input.pointer;
            (pointer.hover_pos(), pointer.time_since_last_movement(), pointer.any_down())
        });
        let over = point.filter(|_| !down && ui.rect_contains_pointer(ui.clip_rect()));
        self.resting = match over {
            Some(point) if still >= POINTER_REST_SECONDS => match self.resting {
                // The pointer hasn't moved since.
                Some((at, known)) if known == point => Some((at, known)),
                _ => self.hit(point, target, world).map(|at| (at, point)),
            },
            Some(_) => {
                ui.ctx().request_repaint_after(std::time::Duration::from_secs_f32(POINTER_REST_SECONDS - still));
                None
            }
            None => None,
        };
    }

    /// Returns the byte of the note at a point of the page.
    pub(super) fn hit(
        &mut self,
        point: Pos2,
        target: Option<&EditTarget>,
        world: &mut EditContext<'_>,
    ) -> Option<usize> {
        let index =
            self.seen.partition_point(|seen| seen.area.bottom() <= point.y).min(self.seen.len().checked_sub(1)?);
        let seen = self.seen.get(index)?;
        let (spot, origin) = (seen.spot, seen.origin);
        let row = world.sheet.row(spot)?.clone();
        if let Some(target) = target.filter(|target| target.spot == Some(spot)) {
            let (galley, left) = editor_keys::layout_target(target, world);
            let inset = super::pads(row.kind).0;
            let cursor = caret_at_point(&galley, point - origin - vec2(left, inset));
            let at = motion::floor_grapheme(&target.shown, byte_of(&target.shown, cursor.index.0));
            return Some(target.note_byte(at));
        }
        let drawn = self.drawn_row(spot, &row, world);
        let text = world.texts.get(spot.block)?.text.get(row.content.clone())?;
        let (byte, _) = drawn.byte_at_point(text, point - origin);
        Some(world.sheet.start(spot.block) + row.content.start + motion::floor_grapheme(text, byte))
    }

    /// Pastes text with the middle button, on systems that support this.
    pub(super) fn drop_text(
        &mut self,
        ui: &Ui,
        target: Option<&EditTarget>,
        world: &mut EditContext<'_>,
        actions: &mut Vec<PageAction>,
    ) {
        let dropped = ui.input(|input| {
            input.events.iter().find_map(|event| match event {
                egui::Event::MiddleClickPaste { pos, text } => Some((*pos, text.clone())),
                _ => None,
            })
        });
        let Some((point, text)) = dropped.filter(|(point, _)| ui.clip_rect().contains(*point)) else { return };
        if let Some(at) = self.hit(point, target, world) {
            let edit = editor_keys::replace_across(at..at, &note_editor::plain_ends(&text), world.crlf());
            actions.push(PageAction::Edit(edit));
        }
    }
}

/// Returns whether a widget was just pressed, or clicked without a press: within one frame, or without a pointer.
pub fn is_pressed(ui: &Ui, response: &egui::Response, editor: &Editor) -> bool {
    (response.is_pointer_button_down_on() && ui.input(|input| input.pointer.primary_pressed()))
        || (response.clicked() && editor.drag.is_none())
}

/// Returns what a press selects at a byte: nothing, a word or a row. `unit`: 1, 2 or 3.
fn unit_at(at: usize, unit: u32, world: &mut EditContext<'_>) -> Range<usize> {
    let target = world.find_row(at).filter(|_| unit > 1).and_then(|spot| target_of(spot, false, false, world));
    match target {
        Some(target) if unit == 2 => {
            let word = motion::word_around(&target.shown, target.shown_byte(at));
            target.note_byte(word.start)..target.note_byte(word.end)
        }
        Some(target) => target.range,
        None => at..at,
    }
}
