//! Find and replace in the open note: a bar above it, what was found on a ground of its own.

use crate::shell::pane::EditorPane;
use anyhow::anyhow;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Align2, Id, Layout, Rect, Sense, Stroke, Ui, UiBuilder, WidgetInfo, pos2, vec2};
use engine::{Command, Note, Session};
use notebook::actions::PageAction;
use regex_lite::{Regex, RegexBuilder};
use std::ops::Range;
use std::rc::Rc;
use store::DocId;
use text::text_edit::TextEdit;
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{icon_button, paint_focus_ring, set_accessible_name, text_button};

/// More is not found: who looks for a letter in a book does not read on.
const MAX_FIND_MATCHES: usize = 100_000;

/// A search pattern and its options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FindQuery {
    pub(crate) text: String,
    pub(crate) case: bool,
    pub(crate) whole: bool,
    pub(crate) regex: bool,
}

#[derive(Default)]
pub(crate) struct FindBar {
    pub(crate) query: FindQuery,
    pub(crate) with: String,
    pub(crate) replacing: bool,
    /// Which field shall have the keyboard.
    pub(crate) focus: Option<Id>,
    /// For which note, text and query it was looked.
    pub(crate) made: Option<(DocId, u64, FindQuery)>,
    pub(crate) found: Rc<[Range<usize>]>,
    pub(crate) trouble: Option<String>,
    /// Go to the first match from here on, once that is known.
    pub(crate) go: Option<usize>,
    /// Where it is looked backwards, as behind Vim's `?`.
    pub(crate) back: bool,
    /// Where the caret was when Vim's keys began to look, and from where they do.
    pub(crate) origin: Option<(usize, usize)>,
}

pub(crate) fn field() -> Id {
    Id::unique("find field")
}

pub(crate) fn with_field() -> Id {
    Id::unique("replace field")
}

impl FindQuery {
    fn pattern(&self) -> anyhow::Result<Regex> {
        RegexBuilder::new(&self.text)
            .case_insensitive(!self.case)
            .multi_line(true)
            .crlf(true)
            .build()
            .map_err(|error| anyhow!("Invalid pattern: {}", error.to_string().lines().last().unwrap_or("")))
    }

    /// All places in a text, in order.
    pub(crate) fn find(&self, text: &str) -> anyhow::Result<Vec<Range<usize>>> {
        if self.text.is_empty() {
            return Ok(Vec::new());
        }
        let is_word = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
        let fits = |range: &Range<usize>| {
            let (before, behind) = (text[..range.start].chars().next_back(), text[range.end..].chars().next());
            !range.is_empty() && !(self.whole && (is_word(before) || is_word(behind)))
        };
        if self.regex {
            let pattern = self.pattern()?;
            return Ok(pattern
                .find_iter(text)
                .map(|found| found.range())
                .filter(fits)
                .take(MAX_FIND_MATCHES)
                .collect());
        }
        Ok(plain(text, &self.text, self.case).filter(fits).take(MAX_FIND_MATCHES).collect())
    }

    /// Returns the replacement of a match.
    fn replaced(&self, text: &str, range: &Range<usize>, with: &str) -> String {
        let pattern = if self.regex { self.pattern().ok() } else { None };
        let Some(found) = pattern.and_then(|pattern| pattern.captures_at(text, range.start)) else {
            return with.to_owned();
        };
        let mut out = String::new();
        found.expand(&with.replace("\\n", "\n").replace("\\t", "\t"), &mut out);
        out
    }
}

/// The places of some words, without respect to capitals unless `case`.
fn plain<'a>(text: &'a str, words: &str, case: bool) -> impl Iterator<Item = Range<usize>> + 'a {
    let fold = move |letter: char| -> Vec<char> { if case { vec![letter] } else { letter.to_lowercase().collect() } };
    let wanted: Vec<char> = words.chars().flat_map(fold).collect();
    let first = wanted.first().copied();
    let mut next = 0;
    text.char_indices().filter_map(move |(start, letter)| {
        if start < next || (letter.is_ascii() && case && Some(letter) != first) {
            return None;
        }
        let mut left = wanted.as_slice();
        for (at, letter) in text[start..].char_indices() {
            for letter in fold(letter) {
                left = left.strip_prefix(&[letter])?;
            }
            if left.is_empty() {
                next = start + at + letter.len_utf8();
                return Some(start..next);
            }
        }
        None
    })
}

impl FindBar {
    /// Looks again where something has changed.
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

    /// Selects a match: the first from a byte on, or the last before it.
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

    /// Draws the bar. Whether it shall close.
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
            if toggle(&mut first, name, mark, *on) {
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
            // Where the search started, so that longer patterns match where shorter ones did.
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

    /// Puts the other words in place of this match, or of all.
    pub(crate) fn replace(&mut self, note: &Note, pane: &mut EditorPane, all: bool, actions: &mut Vec<PageAction>) {
        let text = note.text();
        let splice = |range: &Range<usize>| {
            let insert = self.query.replaced(&text, range, &self.with);
            TextEdit { at: range.start, delete: range.len(), insert }
        };
        if all {
            let edits: Vec<TextEdit> = self.found.iter().map(splice).collect();
            let count = edits.len();
            let says = match count {
                0 => "There is nothing to replace.".to_owned(),
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
        match self.found.iter().find(|range| **range == caret) {
            Some(range) => {
                let TextEdit { at, delete, insert } = splice(range);
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

/// A line of the bar, from left to right.
fn row(ui: &mut Ui, name: &str, rect: Rect) -> Ui {
    let layout = Layout::left_to_right(Align::Center);
    let mut row = ui.new_child(UiBuilder::new().max_rect(rect).id_salt(name).layout(layout));
    row.spacing_mut().item_spacing.x = space::XS;
    row
}

/// A field of the bar. Whether its text has changed.
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
    let ringed = ui.scope(|ui| {
        ui.visuals_mut().selection.stroke.color = colours.accent;
        ui.add(edit)
    });
    let response = ringed.inner.accessible_name(name);
    if focus.take_if(|wanted| *wanted == id).is_some() {
        response.request_focus();
    }
    response.changed()
}

/// A small switch. Whether it was clicked.
fn toggle(ui: &mut Ui, name: &str, mark: &str, on: bool) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, words: &str, switches: &str) -> Vec<String> {
        let has = |mark: char| switches.contains(mark);
        let query = FindQuery { text: words.to_owned(), case: has('c'), whole: has('w'), regex: has('r') };
        query
            .find(text)
            .map_or_else(|why| vec![why.to_string()], |found| found.into_iter().map(|at| text[at].to_owned()).collect())
    }

    #[test]
    fn words_and_patterns() {
        assert_eq!(found("Über über ÜBER", "über", "").len(), 3);
        assert_eq!(found("Über über ÜBER", "über", "c"), ["über"]);
        assert_eq!(found("one onerous one_", "one", "w"), ["one"]);
        assert_eq!(found("aaaa", "aa", ""), ["aa", "aa"]);
        assert_eq!(found("a1 b22\nc333", "[a-z]\\d+$", "r"), ["b22", "c333"]);
        assert_eq!(found("abc", "x*", "r").len(), 0, "nothing is no match");
        assert!(found("abc", "(", "r")[0].starts_with("Invalid pattern: "));
        assert_eq!(found("İx", "x", ""), ["x"], "a letter that is two when small");
    }

    #[test]
    fn groups_are_put_back() {
        let query = FindQuery { text: "(\\w+) (\\w+)".to_owned(), regex: true, ..FindQuery::default() };
        assert_eq!(query.replaced("one two", &(0..7), "$2 $1\\n"), "two one\n");
    }
}
