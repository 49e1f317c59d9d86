//! The row with the caret: its source, drawn with caret and selection, as the focused control. Key events have already
//! edited the note (`keyboard.rs`); this only draws the result.

use super::page::{NotePage, is_pressed};
use editor::bidi_text::{caret_at_point, caret_place};
use editor::note_editor::{self, CaretShape, EditContext, EditTarget, Editor, char_of};
use editor::remote_cursors::{self, RemoteUser};
use editor::row_layout::{self, text_rects};
use editor::row_splitter::RowKind;
use eframe::egui;
use egui::accesskit::{Action as Wish, Role};
use egui::emath::TSTransform;
use egui::text::{CCursor, CCursorRange};
use egui::text_selection::accesskit_text::update_accesskit_for_text_widget;
use egui::text_selection::visuals::paint_text_cursor;
use egui::{CursorIcon, EventFilter, Galley, Pos2, Rect, Sense, Stroke, Ui, WidgetInfo, pos2, vec2};
use std::sync::Arc;
use ui::theme::{ThemeColors, size, space};

impl NotePage {
    /// Draws the active row and returns its layout. `area`: where it receives pointer input.
    #[allow(clippy::too_many_arguments, reason = "one frame's worth of context")]
    pub fn show_active_row(
        &mut self,
        ui: &mut Ui,
        origin: Pos2,
        area: Rect,
        world: &mut EditContext<'_>,
        editor: &mut Editor,
        target: &EditTarget,
        hold: bool,
    ) -> Option<Arc<Galley>> {
        let caret = editor.caret?;
        let (id, pen) = (note_editor::field(), world.pen);
        let (x, width) = note_editor::place_of(target, world.width, world.margin, pen);
        let origin = origin + vec2(x, 0.0);
        let here = target.shown_byte(caret.at);
        // Text being composed is shown where it will be inserted.
        let mut text = target.shown.clone();
        let mut composed = here..here;
        if let Some(preedit) = &editor.preedit {
            let range = caret.range();
            let range = target.shown_byte(range.start)..target.shown_byte(range.end);
            composed = range.start..range.start + preedit.text.len();
            text.replace_range(range, &preedit.text);
        }
        let galley = pen.galley(note_editor::job_of(target, &text, width, pen));
        let response = ui.interact(area, id, Sense::click_and_drag()).on_hover_cursor(CursorIcon::Text);
        // A popup of the last frame blocks keyboard input to widgets below it until this frame ends.
        let free = ui.memory(|memory| memory.top_modal_layer().is_none());
        let asked = editor.focus && free;
        if asked {
            editor.focus = false;
            ui.ctx().memory_mut(|memory| memory.request_focus(id));
        } else if editor.focus && !hold {
            ui.ctx().request_repaint();
        }
        let focused = response.has_focus();
        if focused {
            // Where Tab indents an item or code, it must not move the focus.
            let mono = target.kind.is_fenced() || target.kind == RowKind::Table;
            let across = caret.range().start < target.range.start || caret.range().end > target.range.end;
            let tab = mono || across || matches!(target.kind, RowKind::Item { tail: false, .. });
            let filter = EventFilter { tab, horizontal_arrows: true, vertical_arrows: true, escape: true };
            ui.memory_mut(|memory| memory.set_focus_lock_filter(id, filter));
        } else if asked {
            // A click that moved the caret to another row in this frame took the focus from the field.
            editor.focus = true;
            ui.ctx().request_repaint();
        } else if !hold && !editor.focus && editor.drag.is_none() {
            editor.end_editing();
            ui.ctx().request_repaint();
        }
        let colours = ThemeColors::of(ui);
        let people = remote_cursors::remote_users(world.session, world.note);
        if editor.preedit.is_none() {
            self.field_grounds(ui, origin, &galley, editor, target, &people);
        }
        ui.painter().galley(origin, galley.clone(), colours.ink);
        if editor.preedit.is_none()
            && !self.is_spelling_off
            && !target.kind.is_fenced()
            && !matches!(target.kind, RowKind::Indented | RowKind::Html | RowKind::Meta)
        {
            editor::spelling::paint(ui.painter(), origin, &galley, Some(char_of(&text, here)));
        }
        remote_cursors::paint_carets(ui, &people, &target.range, |at| {
            let cursor = CCursor::new(char_of(&target.shown, target.shown_byte(at)));
            let is = editor.preedit.is_none() && target.range.start <= at;
            is.then(|| caret_place(&galley, cursor).translate(origin.to_vec2()))
        });
        self.carets(ui, origin, &galley, editor, target, &text, focused, composed.end);
        for rect in text_rects(&galley, char_of(&text, composed.start)..char_of(&text, composed.end)) {
            let rect = rect.translate(origin.to_vec2());
            let active = editor.preedit.as_ref().is_some_and(|preedit| preedit.active.is_some());
            let stroke = Stroke::new(if active { 2.0 } else { 1.0 }, colours.accent);
            ui.painter().hline(rect.x_range(), rect.bottom() - 2.0, stroke);
        }
        self.report_accessibility(ui, &response, origin, &galley, editor, target);
        if is_pressed(ui, &response, editor) {
            match response.interact_pointer_pos() {
                Some(point) => {
                    let cursor = caret_at_point(&galley, point - origin);
                    let at = editor::motion::floor_grapheme(
                        &target.shown,
                        note_editor::byte_of(&target.shown, cursor.index.0),
                    );
                    self.handle_press(ui, target.note_byte(at), point, world, editor);
                    let line_end = target.shown[at..].starts_with('\n') || at == target.shown.len();
                    editor.upstream = !cursor.prefer_next_row && !line_end;
                }
                None => editor.focus = true,
            }
        }
        Some(galley)
    }

    /// Draws the backgrounds of selections and search matches in this row.
    fn field_grounds(
        &self,
        ui: &Ui,
        origin: Pos2,
        galley: &Galley,
        editor: &Editor,
        target: &EditTarget,
        people: &[RemoteUser],
    ) {
        let mut grounds = remote_cursors::selection_fills(people, &target.range, ThemeColors::of(ui));
        grounds.extend(self.paint_backgrounds(ui, editor, &target.range));
        for (range, colour) in grounds {
            let (from, to) = (target.shown_byte(range.start), target.shown_byte(range.end));
            let chars = char_of(&target.shown, from)..char_of(&target.shown, to);
            for rect in text_rects(galley, chars) {
                row_layout::paint_ground(ui.painter(), rect.translate(origin.to_vec2()), colour, ThemeColors::of(ui));
            }
            if range.end > target.range.end {
                // The selection includes the line end.
                let end = caret_place(galley, galley.end()).translate(origin.to_vec2());
                let rect = Rect::from_min_max(end.left_top(), pos2(end.left() + space::S, end.bottom()));
                ui.painter().rect_filled(rect, 0.0, colour);
            }
        }
    }

    /// Draws all carets in this row.
    #[allow(clippy::too_many_arguments, reason = "one frame's worth of context")]
    pub fn carets(
        &mut self,
        ui: &mut Ui,
        origin: Pos2,
        galley: &Arc<Galley>,
        editor: &mut Editor,
        target: &EditTarget,
        text: &str,
        focused: bool,
        composed: usize,
    ) {
        let own = target.range.start..=target.range.end;
        let Some(caret) = editor.caret else { return };
        let place = |at: usize| {
            let shown = if editor.preedit.is_some() { composed } else { target.shown_byte(at) };
            let rect = caret_place(galley, editor.display_cursor(text, shown)).translate(origin.to_vec2());
            Rect::from_min_max(rect.min, pos2(rect.min.x + 1.0, rect.max.y)).expand2(vec2(0.5, 0.0))
        };
        let block = (editor.shape == CaretShape::Block).then(|| {
            let head = target.shown_byte(caret.at);
            let back = caret.at > caret.anchor && head > 0;
            let head = if back { editor::motion::previous_grapheme(text, head) } else { head };
            (head, editor::motion::next_grapheme(text, head))
        });
        let leads = editor.drag.is_none() || own.contains(&caret.at);
        let rect = place(caret.at);
        let now = ui.input(|input| input.time);
        let since = now - editor.touched;
        if let Some((head, end)) = block.filter(|_| leads && focused && ui.input(|input| input.focused)) {
            block_caret(ui, origin, galley, text, head..end);
        } else if leads && focused && editor.shape == CaretShape::Line && ui.input(|input| input.focused) {
            paint_text_cursor(ui, ui.painter(), rect, since);
            for other in editor.more.iter().filter(|other| own.contains(&other.at)) {
                paint_text_cursor(ui, ui.painter(), place(other.at), since);
            }
        }
        editor.seen = Some(rect);
        if focused && ui.memory(|memory| memory.owns_ime_events(note_editor::field())) {
            let to_global = ui.ctx().layer_transform_to_global(ui.layer_id()).unwrap_or_default();
            let area = Rect::from_min_size(origin, galley.size());
            ui.output_mut(|output| {
                output.ime = Some(egui::output::IMEOutput {
                    purpose: egui::IMEPurpose::Normal,
                    rect: to_global * area,
                    cursor_rect: to_global * rect,
                    should_interrupt_composition: false,
                });
            });
        }
        if leads && focused {
            editor.stands = Some(rect);
        }
        if editor.drag.is_none() && std::mem::take(&mut editor.reveal) {
            editor.touched = now;
            ui.scroll_to_rect(rect.expand2(vec2(0.0, space::XXXL)), None);
            ui.ctx().request_repaint();
        }
    }

    /// Reports the edited text to assistive technology.
    fn report_accessibility(
        &self,
        ui: &Ui,
        response: &egui::Response,
        origin: Pos2,
        galley: &Galley,
        editor: &Editor,
        target: &EditTarget,
    ) {
        let name = match target.kind {
            RowKind::Cell => {
                let number = self.cell_at(target).unwrap_or(0);
                format!("Code of cell {number}")
            }
            _ => "Note text".to_owned(),
        };
        let text = &target.shown;
        response.widget_info(|| WidgetInfo::text_edit(true, text.as_str(), text.as_str(), ""));
        ui.ctx().accesskit_node_builder(response.id, |node| {
            node.set_role(Role::MultilineTextInput);
            node.set_label(name);
            node.add_action(Wish::SetValue);
            node.add_action(Wish::ReplaceSelectedText);
        });
        let cursor = |at: usize| CCursor::new(char_of(text, target.shown_byte(at)));
        let range = editor.caret.map(|caret| CCursorRange::two(cursor(caret.anchor), cursor(caret.at)));
        let place = TSTransform::from_translation(origin.to_vec2());
        update_accesskit_for_text_widget(ui.ctx(), response.id, range, place, galley);
    }
}

/// Draws a caret that covers a character, for modes in which letters are commands.
fn block_caret(ui: &Ui, origin: Pos2, galley: &Arc<Galley>, text: &str, letter: std::ops::Range<usize>) {
    let colours = ThemeColors::of(ui);
    let place = |at: usize| {
        let cursor = CCursor { prefer_next_row: true, ..CCursor::new(char_of(text, at)) };
        caret_place(galley, cursor).translate(origin.to_vec2())
    };
    let (from, to) = (place(letter.start), place(letter.end));
    let right = if to.top() < from.bottom() && to.left() > from.left() { to.left() } else { from.left() + space::S };
    let rect = Rect::from_min_max(from.left_top(), pos2(right, from.bottom()));
    ui.painter().rect_filled(rect, 2.0, colours.accent);
    ui.painter().with_clip_rect(rect.intersect(ui.clip_rect())).galley_with_override_text_color(
        origin,
        galley.clone(),
        colours.paper,
    );
}

/// Draws a focus ring around read-only rows, where no caret shows the focus.
pub fn paint_focus_ring(ui: &Ui, origin: Pos2, width: f32, bottom: f32) {
    let ring =
        Rect::from_min_max(pos2(origin.x - space::S, origin.y - 2.0), pos2(origin.x + width + space::S, bottom + 2.0));
    let stroke = Stroke::new(size::FOCUS_RING_WIDTH, ThemeColors::of(ui).accent);
    ui.painter().rect_stroke(ring, ui::theme::CONTROL_CORNER, stroke, egui::StrokeKind::Inside);
}
