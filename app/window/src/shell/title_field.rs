//! The title field above a new note, for its first name.

use eframe::egui;
use egui::text::{CCursor, CCursorRange};
use egui::text_edit::TextEditState;
use egui::{Id, Key, Rect, Sense, Ui, vec2};
use notebook::actions::PageAction;
use store::DocId;
use text::untrusted_text;
use ui::theme::{self, ThemeColors, space};

/// The title of a new note while it's typed.
pub(crate) struct TitleField {
    pub(crate) note: DocId,
    pub(crate) text: String,
    /// Why the note can't have this name.
    pub(crate) trouble: Option<String>,
    /// Whether the field should get the keyboard focus.
    pub(crate) asks_focus: bool,
}

impl TitleField {
    pub(crate) fn new(note: DocId, text: String) -> TitleField {
        TitleField { note, text, trouble: None, asks_focus: true }
    }

    /// Draws the field above the note's column.
    pub(crate) fn show(&mut self, ui: &mut Ui, (column, margin): (f32, f32), actions: &mut Vec<PageAction>) {
        let colours = ThemeColors::of(ui);
        let style = theme::heading(1);
        let (area, _) =
            ui.allocate_exact_size(vec2(ui.available_width(), style.line + space::XL + space::L), Sense::hover());
        let place = Rect::from_min_size(area.left_top() + vec2(margin, space::XL), vec2(column, style.line));
        let id = Id::unique("note title");
        if std::mem::take(&mut self.asks_focus) {
            let mut state = TextEditState::load(ui.ctx(), id).unwrap_or_default();
            // After a refusal, the caret is at the end, so that the name isn't typed from the beginning again.
            let begin = if self.trouble.is_some() { self.text.chars().count() } else { 0 };
            let range = CCursorRange::two(CCursor::new(begin), CCursor::new(self.text.chars().count()));
            state.cursor.set_char_range(Some(range));
            state.store(ui.ctx(), id);
            ui.memory_mut(|memory| memory.request_focus(id));
        }
        let field = egui::TextEdit::singleline(&mut self.text)
            .id(id)
            .font(style.font.clone())
            .text_color(colours.ink)
            .hint_text(egui::RichText::new("Name").font(style.font).color(colours.muted))
            .frame(egui::Frame::NONE)
            .margin(egui::Margin::ZERO)
            .desired_width(column);
        let response = ui.put(place, field).accessible_name("Title of the note");
        if let Some(trouble) = &self.trouble {
            let trouble = untrusted_text::escape_line(trouble);
            let at = place.left_bottom();
            ui.painter().text(at, egui::Align2::LEFT_TOP, trouble, theme::small().font, colours.bad);
        }
        if response.changed() {
            self.trouble = None;
        }
        if response.lost_focus() {
            let (enters, leaves) = ui.input(|input| {
                (input.key_pressed(Key::Enter) || input.key_pressed(Key::Tab), input.key_pressed(Key::Escape))
            });
            let name = if leaves { String::new() } else { self.text.trim().to_owned() };
            actions.push(PageAction::NameNote { note: self.note, name, writes: enters || leaves });
        }
    }
}
