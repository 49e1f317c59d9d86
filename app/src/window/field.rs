//! The text field that stands in the place of the row with the caret. What is typed into it leaves as an edit; it keeps
//! no text from frame to frame.

use super::editor::{self, Caret, Editor, Last, Target, World, byte_of, cursor_at};
use super::page::{Action, Page};
use super::rows::Kind;
use crate::tokens::space;
use eframe::egui;
use egui::text::CCursorRange;
use egui::{Pos2, Rect, Ui, UiBuilder, vec2};

impl Page {
    /// The text field of the row that holds the caret.
    #[allow(clippy::too_many_arguments, reason = "one frame's worth of context")]
    pub(super) fn field(
        &mut self,
        ui: &mut Ui,
        origin: Pos2,
        world: &mut World<'_>,
        editor: &mut Editor,
        target: &Target,
        hold: bool,
        actions: &mut Vec<Action>,
    ) {
        let Some(caret) = editor.caret else { return };
        let id = editor::field();
        let pen = world.pen;
        let (x, width) = editor::place_of(target, world.width, world.margin, pen);
        let (mut at, mut anchor) = (target.shown_byte(caret.at), target.shown_byte(caret.anchor));
        if editor.all {
            (at, anchor) = (target.shown.len(), 0);
        }
        let wanted = CCursorRange::two(cursor_at(&target.shown, anchor), cursor_at(&target.shown, at));
        let mut state = egui::text_edit::TextEditState::load(ui.ctx(), id).unwrap_or_default();
        let there = state.cursor.char_range().map(|range| (range.primary.index, range.secondary.index));
        if there != Some((wanted.primary.index, wanted.secondary.index)) {
            state.cursor.set_char_range(Some(wanted));
            state.clear_undoer();
            state.store(ui.ctx(), id);
        }
        // What floated in the last frame keeps the keyboard from what is below until this one is over.
        let free = ui.memory(|memory| memory.top_modal_layer().is_none());
        let asked = editor.focus && free;
        if asked {
            editor.focus = false;
            ui.ctx().memory_mut(|memory| memory.request_focus(id));
        } else if editor.focus && !hold {
            ui.ctx().request_repaint();
        }
        let mut text = target.shown.clone();
        let mut layouter = |_: &Ui, text: &dyn egui::TextBuffer, width: f32| {
            pen.galley(editor::job_of(target, text.as_str(), width, pen))
        };
        let line = editor::line_of(target.kind);
        let rect = Rect::from_min_size(origin + vec2(x, 0.0), vec2(width, line));
        let mut child = ui.new_child(UiBuilder::new().max_rect(rect).id_salt("field"));
        // A line of text is less high than a control.
        child.spacing_mut().interact_size.y = 0.0;
        let output = egui::TextEdit::multiline(&mut text)
            .id(id)
            .frame(egui::Frame::NONE)
            .desired_rows(1)
            .desired_width(width)
            .font(egui::FontId::new(1.0, egui::FontFamily::Proportional))
            .layouter(&mut layouter)
            // Where Tab moves an item or code in, it must not move the keyboard on.
            .lock_focus(matches!(target.kind, Kind::Item { tail: false, .. } | Kind::Cell | Kind::Fence { .. }))
            .show(&mut child);
        let name = match target.kind {
            Kind::Cell => {
                let cell = target.spot.map(|spot| world.sheet.piece(spot.block).id);
                let number = cell.and_then(|cell| self.numbers.get(&cell)).copied().unwrap_or(0);
                format!("Code of cell {number}")
            }
            _ => "Note text".to_owned(),
        };
        ui.ctx().accesskit_node_builder(id, |node| node.set_label(name));
        let focused = output.response.response.has_focus();
        // What the pointer did is in the state; what keys did is in both.
        if let Some(cursor) = output.state.cursor.range(&output.galley).filter(|_| focused) {
            let (to, from) = (byte_of(&text, cursor.primary.index.0), byte_of(&text, cursor.secondary.index.0));
            if text != target.shown {
                actions.push(Action::Edit(editor::difference(target, &text, to, from)));
            } else if (to, from) != (at, anchor) {
                editor.caret = Some(Caret { at: target.note_byte(to), anchor: target.note_byte(from) });
                editor.goal = editor.goal.filter(|_| false);
            }
            if std::mem::take(&mut editor.reveal) {
                let caret = output.galley.pos_from_cursor(cursor.primary).translate(output.galley_pos.to_vec2());
                ui.scroll_to_rect(caret.expand2(vec2(0.0, space::XXXL)), None);
                ui.ctx().request_repaint();
            }
            editor.last = Some(Last { galley: output.galley, cursor, x });
        } else if !focused && asked {
            // A click that gave the caret to another row in this very frame took the keyboard from the field.
            editor.focus = true;
            ui.ctx().request_repaint();
        } else if !focused && !hold && !editor.focus {
            editor.leave();
            ui.ctx().request_repaint();
        }
    }
}
