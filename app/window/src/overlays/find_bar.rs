//! Find and replace in the open note: a bar above the note, with highlighted matches.

use crate::shell::pane::EditorPane;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Id, Layout, Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::{Command, Note, Session};
use notebook::actions::PageAction;
use std::ops::Range;
use std::rc::Rc;
use store::DocId;
use text::find_query::{FindQuery, MAX_FIND_MATCHES};
use text::text_edit::TextEdit;
use ui::icons;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{icon_button, set_accessible_name, text_button, toggle_button};

#[derive(Default)]
pub(crate) struct FindBar {
    pub(crate) query: FindQuery,
    pub(crate) with: String,
    pub(crate) replacing: bool,
    /// The field that should get the keyboard focus.
    pub(crate) focus: Option<Id>,
    /// The note, revision and query of the current matches.
    pub(crate) made: Option<(DocId, u64, FindQuery)>,
    pub(crate) found: Rc<[Range<usize>]>,
    pub(crate) trouble: Option<String>,
    /// Byte from which to go to the first match, once matches are known.
    pub(crate) go: Option<usize>,
    /// Whether the search goes backwards, as with Vim's `?`.
    pub(crate) back: bool,
    /// For a search by Vim keys: the caret before it, and the byte it starts from.
    pub(crate) origin: Option<(usize, usize)>,
}

pub(crate) fn field() -> Id {
    Id::unique("find field")
}

pub(crate) fn with_field() -> Id {
    Id::unique("replace field")
}

impl FindBar {
    /// Searches again if the note or query has changed.
    pub(crate) fn refresh(&mut self, note: &Note) {
        let key = (note.id, note.revision(), self.query.clone());
        if self.made.as_ref() == Some(&key) {
            return;
        }
        match self.query.find(&note.text()) {
            Ok(found) => (self.found, self.trouble) = (found.into(), None),
            Err(why) => (self.found, self.trouble) = (Rc::default(), Some(why.to_string())),
        }
        self.made = Some(key);
    }

    /// Selects the first match from a byte on, or the last one before it.
    pub(crate) fn go(&self, pane: &mut EditorPane, from: usize, back: bool) {
        let index = self.found.partition_point(|range| range.start < from);
        let index = if back { index.checked_sub(1).unwrap_or(self.found.len().saturating_sub(1)) } else { index };
        let Some(range) = self.found.get(index).or_else(|| self.found.first()) else { return };
        let focus = pane.editor.focus;
        pane.editor.more.clear();
        pane.editor.select(range.start, range.end);
        // The bar keeps the focus while typing.
        pane.editor.focus = focus;
        pane.page.current = Some(range.clone());
    }

    /// Draws the bar. Returns whether it must close.
    pub(crate) fn show_find_bar(
        &mut self,
        ui: &mut Ui,
        session: &Session,
        pane: &mut EditorPane,
        actions: &mut Vec<PageAction>,
    ) -> bool {
        let note = pane.note.and_then(|note| session.note(note));
        if let Some(note) = note {
            self.refresh(note);
        }
        if let Some(from) = self.go.take() {
            self.go(pane, from, self.back);
        }
        pane.page.found = self.found.clone();
        let colours = ThemeColors::of(ui);
        let lines = if self.replacing { 2.0 } else { 1.0 };
        let height = lines * (size::MIN_CLICK_HEIGHT + space::S) + space::S;
        let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), height), Sense::hover());
        ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
        let line = |number: f32| {
            let top = rect.top() + space::S + number * (size::MIN_CLICK_HEIGHT + space::S);
            Rect::from_min_max(
                pos2(rect.left() + space::L, top),
                pos2(rect.right() - space::S, top + size::MIN_CLICK_HEIGHT),
            )
        };
        let width = (rect.width() * 0.4).clamp(120.0, 320.0);
        let mut first = row(ui, "find", line(0.0));
        let typed = entry(&mut first, field(), &mut self.query.text, "Find in note", width, &mut self.focus);
        let mut changed = typed;
        for (name, mark, on) in [
            ("Match case", "Aa", &mut self.query.case),
            ("Whole words", "W", &mut self.query.whole),
            ("Regular expression", ".*", &mut self.query.regex),
        ] {
            if toggle_button(&mut first, name, mark, *on) {
                *on = !*on;
                changed = true;
            }
        }
        let caret = pane.editor.caret.map_or(0..0, editor::note_editor::Caret::range);
        if icon_button(&mut first, icons::CARET_UP, "Previous match", Some("Shift+F3")).clicked() {
            self.go(pane, caret.start, true);
        }
        if icon_button(&mut first, icons::CARET_DOWN, "Next match", Some("F3")).clicked() {
            self.go(pane, caret.end, false);
        }
        let closes = icon_button(&mut first, icons::X, "Close find", Some("Escape")).clicked();
        first.add_space(space::S);
        self.count(&mut first, pane);
        if changed {
            // Start where the search began, so that a longer pattern matches where its beginning did.
            self.go = Some(self.origin.map_or(caret.start, |(_, from)| from));
            ui.ctx().request_repaint();
        }
        if self.replacing {
            let mut second = row(ui, "replace", line(1.0));
            entry(&mut second, with_field(), &mut self.with, "Replace with", width, &mut self.focus);
            let one = text_button(&mut second, "Replace", false).clicked();
            let all = text_button(&mut second, "Replace all", false).clicked();
            if let Some(note) = note.filter(|_| one || all) {
                self.replace(note, pane, all, actions);
            }
        }
        closes
    }

    fn count(&self, ui: &mut Ui, pane: &EditorPane) {
        let colours = ThemeColors::of(ui);
        let current = pane.page.current.as_ref();
        let place = current.and_then(|range| self.found.binary_search_by_key(&range.start, |found| found.start).ok());
        let (text, colour) = match (&self.trouble, self.found.len(), place) {
            (Some(why), ..) => (why.clone(), colours.bad),
            (None, 0, _) if self.query.text.is_empty() => return,
            (None, 0, _) => ("No matches".to_owned(), colours.muted),
            (None, MAX_FIND_MATCHES, _) => ("Very many matches".to_owned(), colours.muted),
            (None, count, Some(place)) => (format!("{} of {count}", place + 1), colours.muted),
            (None, 1, None) => ("1 match".to_owned(), colours.muted),
            (None, count, None) => (format!("{count} matches"), colours.muted),
        };
        let rect = ui.available_rect_before_wrap();
        let at = pos2(rect.left(), rect.center().y - 8.0);
        ui::widgets::paint_clipped_text(ui, at, rect.width(), &text, &theme::caption(), colour);
        let response = ui.interact(rect, Id::unique("find count"), Sense::hover());
        set_accessible_name(&response, Role::Status, &text);
    }

    /// Replaces the current match or all matches.
    pub(crate) fn replace(&mut self, note: &Note, pane: &mut EditorPane, all: bool, actions: &mut Vec<PageAction>) {
        let text = note.text();
        let splices = |ranges: &[Range<usize>]| -> Vec<TextEdit> {
            let inserts = self.query.replacements(&text, ranges, &self.with);
            let edit =
                |(range, insert): (&Range<usize>, String)| TextEdit { at: range.start, delete: range.len(), insert };
            ranges.iter().zip(inserts).map(edit).collect()
        };
        if all {
            let edits = splices(&self.found);
            let count = edits.len();
            let says = match count {
                0 => "Nothing to replace".to_owned(),
                1 => "Replaced 1 match.".to_owned(),
                count => format!("Replaced {count} matches."),
            };
            if count > 0 {
                actions.push(PageAction::Do(Command::EditAll { note: note.id, edits }));
            }
            actions.push(PageAction::Say(says));
            return;
        }
        let caret = pane.editor.caret.map_or(0..0, editor::note_editor::Caret::range);
        let edit = self.found.iter().find(|range| **range == caret).map(|range| splices(std::slice::from_ref(range)));
        match edit.and_then(|mut edits| edits.pop()) {
            Some(TextEdit { at, delete, insert }) => {
                self.go = Some(at + insert.len());
                // The next match is searched in the updated note.
                pane.editor.place_caret(at + delete);
                pane.editor.focus = false;
                actions.push(PageAction::Do(Command::Edit { note: note.id, at, delete, insert }));
            }
            None => self.go(pane, caret.start, false),
        }
    }
}

/// Returns the UI for a row of the bar, left to right.
fn row(ui: &mut Ui, name: &str, rect: Rect) -> Ui {
    let layout = Layout::left_to_right(Align::Center);
    let mut row = ui.new_child(UiBuilder::new().max_rect(rect).id_salt(name).layout(layout));
    row.spacing_mut().item_spacing.x = space::XS;
    row
}

/// Draws a text field of the bar. Returns whether its text has changed.
fn entry(ui: &mut Ui, id: Id, text: &mut String, name: &str, width: f32, focus: &mut Option<Id>) -> bool {
    let colours = ThemeColors::of(ui);
    let style = theme::small();
    let edit = egui::TextEdit::singleline(text)
        .id(id)
        .font(style.font.clone())
        .hint_text(egui::RichText::new(name).font(style.font).color(colours.muted))
        .margin(egui::Margin::symmetric(8, 4))
        .align(egui::Align2::LEFT_CENTER)
        .min_size(vec2(0.0, size::MIN_CLICK_HEIGHT))
        .desired_width(width);
    let response = ui.add(edit).accessible_name(name);
    if focus.take_if(|wanted| *wanted == id).is_some() {
        response.request_focus();
    }
    response.changed()
}
