//! The search panel beside the notes: results grouped by note, which stay while notes are read and edited.
//!
//! It queries the host without blocking.

use super::exact_panel::ExactPanel;
use super::panel_list::PanelList;
use crate::overlays::search::describe_freshness;
use eframe::egui;
use egui::accesskit::Role;
use egui::text::{CCursorRange, TextWrapping};
use egui::{Align2, Id, Key, Rect, Response, Sense, Ui, WidgetInfo, pos2, vec2};
use host::Driver;
use host::search::{NoteHit, ParsedQuery, SearchAnswer, SearchRequest, SearchService, highlight_ranges};
use notebook::actions::{PageAction, PendingJump};
use notebook::hit_text::{highlighted_text, readable_hit};
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;
use store::DocId;
use text::untrusted_text;
use ui::icons;
use ui::text::counted;
use ui::theme::{self, CONTROL_CORNER, InterCut, ThemeColors, size, space};
use ui::widgets::{self, chip_button, paint_clipped_text};

/// Maximum number of listed passages. Typing more finds the rest.
const MAX_PANEL_PASSAGES: usize = 120;
/// Maximum bytes of a passage.
const MAX_PANEL_PASSAGE_BYTES: usize = 120;
pub(crate) const GROUP_ROW_HEIGHT: f32 = size::MIN_CLICK_HEIGHT;
/// Maximum number of lines per passage.
const PASSAGE_LINES: usize = 2;
const PASSAGE_INDENT: f32 = 2.0 * space::L;
/// Maximum time until edits show up in the results.
pub(crate) const INDEX_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The scope of a search in the panel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SearchScope {
    #[default]
    Notes,
    /// Notes, by exact text.
    Exact,
    Runs,
}

impl SearchScope {
    const ALL: [(SearchScope, &'static str); 3] =
        [(SearchScope::Notes, "Notes"), (SearchScope::Exact, "Exact text"), (SearchScope::Runs, "Runs")];

    /// Returns the query, limited to the scope unless the query names one itself.
    fn narrowed(self, typed: &str) -> String {
        let typed = typed.trim();
        match self {
            _ if typed.is_empty() || typed.contains("in:run") => typed.to_owned(),
            // The exclusion comes first, since the last word may still be incomplete.
            SearchScope::Notes | SearchScope::Exact => format!("-in:run {typed}"),
            SearchScope::Runs => format!("in:run {typed}"),
        }
    }
}

/// A passage in the search results.
struct FoundPassage {
    hit: NoteHit,
    /// The displayed excerpt and its matched ranges, computed when first drawn.
    excerpt: OnceCell<(String, Vec<Range<usize>>)>,
}

impl FoundPassage {
    /// Returns the passage's plain text, from the line with the first match on.
    fn excerpt(&self, terms: &HashSet<String>) -> &(String, Vec<Range<usize>>) {
        self.excerpt.get_or_init(|| {
            let mut readable = readable_hit(&self.hit);
            let first = highlight_ranges(&readable.text, terms).first().map(|mark| mark.start);
            let first = first.or(readable.why.nearest.as_ref().map(|nearest| nearest.start)).unwrap_or(0);
            let mut line = readable.text[..first].rfind('\n').map_or(0, |newline| newline + 1);
            // The title is already shown above.
            if readable.text[line..].lines().next() == Some(&self.hit.title) {
                line = readable.text[line..].find('\n').map_or(line, |newline| line + newline + 1);
            }
            readable.text.drain(..line);
            readable.why.nearest = None;
            readable.excerpt(terms, MAX_PANEL_PASSAGE_BYTES)
        })
    }
}

/// A note in the search results, with its passages.
struct FoundNote {
    note: DocId,
    title: String,
    folder: String,
    passages: Vec<FoundPassage>,
}

/// A row of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchRow {
    /// A note's heading: its index.
    Note(usize),
    /// A passage: the indices of the note and the passage.
    Passage(usize, usize),
}

/// State of the search panel.
#[derive(Default)]
pub(crate) struct SearchPanel {
    query: String,
    scope: SearchScope,
    /// The last request: text, scope, and the index's revision.
    asked: Option<(String, SearchScope, u64)>,
    wait: Option<Receiver<anyhow::Result<SearchAnswer>>>,
    answer: SearchAnswer,
    answered: bool,
    /// Whether there are real matches, and not only similar passages.
    fits: bool,
    trouble: Option<String>,
    notes: Vec<FoundNote>,
    folded: HashSet<DocId>,
    rows: Vec<SearchRow>,
    list: PanelList,
    exact: ExactPanel,
    /// Whether the query field should get the keyboard focus.
    focus: bool,
    /// Whether the query field had the keyboard focus when last drawn.
    has_keyboard: bool,
}

/// Returns the ID of the query field.
pub(crate) fn query_field() -> Id {
    Id::unique("search panel query")
}

impl SearchPanel {
    /// Focuses the query field, and sets `query` unless it's empty.
    pub(crate) fn open(&mut self, query: String) {
        self.focus = true;
        if self.scope == SearchScope::Runs {
            self.scope = SearchScope::Notes;
        }
        if !query.is_empty() {
            self.query = query;
        }
    }

    /// Runs a query in the notes.
    pub(crate) fn open_query(&mut self, query: String) {
        self.open(query);
        self.scope = SearchScope::Notes;
    }

    /// Focuses the query field for exact text, with the replace field shown.
    pub(crate) fn open_replace(&mut self, text: String) {
        self.open(text);
        self.scope = SearchScope::Exact;
        self.exact.begin_replacing();
    }

    /// Returns whether one of the fields has the keyboard focus.
    pub(crate) fn has_keyboard(&self) -> bool {
        self.has_keyboard || self.exact.has_keyboard
    }

    /// Marks the fields as unfocused until the panel is drawn again.
    pub(crate) fn release_keyboard(&mut self) {
        (self.has_keyboard, self.exact.has_keyboard) = (false, false);
    }

    /// Requests results for the current query, and processes answers.
    fn ask(&mut self, ctx: &egui::Context, search: &SearchService) {
        let now = (self.query.clone(), self.scope, search.freshness().revision);
        if self.asked.as_ref() != Some(&now) {
            let is_same = self.asked.take().is_some_and(|(query, scope, _)| query == now.0 && scope == now.1);
            self.asked = Some(now);
            if !is_same {
                (self.answered, self.folded) = (false, HashSet::new());
                self.notes.clear();
                self.list.choose(0);
                self.lay_rows();
            }
            let text = self.scope.narrowed(&self.query);
            if text.is_empty() {
                (self.answer, self.trouble, self.wait) = (SearchAnswer::default(), None, None);
            } else {
                let wake = ctx.clone();
                let ask = SearchRequest {
                    text,
                    limit: MAX_PANEL_PASSAGES,
                    typing: true,
                    per_passage: true,
                    ..SearchRequest::default()
                };
                self.wait = Some(search.ask(ask, move || wake.request_repaint()));
            }
        }
        if !self.query.trim().is_empty() {
            ctx.request_repaint_after(INDEX_POLL_INTERVAL);
        }
        let Some(wait) = self.wait.take() else { return };
        loop {
            match wait.try_recv() {
                Ok(Ok(answer)) => {
                    (self.fits, self.answered, self.trouble) = (answer.has_match(), true, None);
                    self.answer = answer;
                    self.group_passages();
                }
                Ok(Err(why)) => (self.trouble, self.answered) = (Some(why.to_string()), true),
                Err(TryRecvError::Empty) => {
                    self.wait = Some(wait);
                    return;
                }
                Err(TryRecvError::Disconnected) => return,
            }
        }
    }

    /// Groups the answer by note, a note of that name first. While the query is the same, listed notes keep their
    /// positions.
    fn group_passages(&mut self) {
        let chosen = self.rows.get(self.list.row).map(|row| self.key_of(*row));
        let places: HashMap<DocId, usize> = self.notes.iter().zip(0..).map(|(found, at)| (found.note, at)).collect();
        let mut notes: Vec<FoundNote> = Vec::new();
        for hit in std::mem::take(&mut self.answer.hits) {
            let passage = |hit| FoundPassage { hit, excerpt: OnceCell::new() };
            match notes.iter_mut().find(|found| found.note == hit.note) {
                Some(found) => found.passages.push(passage(hit)),
                None => {
                    let folder = hit.path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
                    let (note, title) = (hit.note, hit.title.clone());
                    notes.push(FoundNote { note, title, folder, passages: vec![passage(hit)] });
                }
            }
        }
        let wanted = self.query.trim().to_lowercase();
        notes.sort_by_key(|found| {
            (places.get(&found.note).copied().unwrap_or(usize::MAX), found.title.to_lowercase() != wanted)
        });
        self.notes = notes;
        self.lay_rows();
        let row = chosen.and_then(|chosen| self.rows.iter().position(|row| self.key_of(*row) == chosen));
        self.list.row = row.filter(|_| !places.is_empty()).unwrap_or(1);
    }

    fn key_of(&self, row: SearchRow) -> (Option<DocId>, String) {
        match row {
            SearchRow::Note(note) => (self.notes.get(note).map(|found| found.note), String::new()),
            SearchRow::Passage(note, passage) => {
                let found = self.notes.get(note);
                let place = found.and_then(|found| found.passages.get(passage)).map(|found| found.hit.place.clone());
                (found.map(|found| found.note), place.unwrap_or_default())
            }
        }
    }

    fn lay_rows(&mut self) {
        self.rows.clear();
        for (note, found) in self.notes.iter().enumerate() {
            self.rows.push(SearchRow::Note(note));
            if !self.folded.contains(&found.note) {
                self.rows.extend((0..found.passages.len()).map(|passage| SearchRow::Passage(note, passage)));
            }
        }
    }

    /// Handles a key press while the field has the keyboard focus: Enter opens the selected row, other keys move the
    /// selection. Returns whether the key was used.
    pub(crate) fn key(&mut self, key: Key, actions: &mut Vec<PageAction>) -> bool {
        if self.scope == SearchScope::Exact {
            return self.exact.key(key, actions);
        }
        if key == Key::Enter {
            if let Some(row) = self.rows.get(self.list.row).copied() {
                self.choose(row, actions);
            }
            return true;
        }
        self.list.key(key, self.rows.len())
    }

    fn choose(&mut self, row: SearchRow, actions: &mut Vec<PageAction>) {
        match row {
            SearchRow::Note(note) => {
                let Some(found) = self.notes.get(note) else { return };
                if !self.folded.remove(&found.note) {
                    self.folded.insert(found.note);
                }
                self.lay_rows();
            }
            SearchRow::Passage(note, passage) => {
                if let Some(found) = self.notes.get(note).and_then(|found| found.passages.get(passage)) {
                    actions.push(PageAction::Hit(PendingJump::from_hit(&found.hit, &self.answer.terms)));
                }
            }
        }
    }

    /// Draws the panel.
    pub(crate) fn show(&mut self, ui: &mut Ui, driver: &Driver, actions: &mut Vec<PageAction>) {
        let search = driver.search();
        match self.scope {
            SearchScope::Exact => self.exact.refresh(ui.ctx(), driver, &self.query),
            SearchScope::Notes | SearchScope::Runs => self.ask(ui.ctx(), search),
        }
        show_panel_title(ui, "Search");
        let hint = "Search notes";
        self.has_keyboard = show_panel_field(ui, query_field(), &mut self.query, hint, &mut self.focus).has_focus();
        self.show_scopes(ui);
        if self.scope == SearchScope::Exact {
            self.exact.show(ui, actions);
            return;
        }
        self.show_summary(ui, search);
        let (mut list, mut clicked) = (std::mem::take(&mut self.list), None);
        let width = ui.available_width() - 2.0 * space::S;
        let height = |row: &SearchRow| match row {
            SearchRow::Note(_) => GROUP_ROW_HEIGHT,
            SearchRow::Passage(note, passage) => {
                let one = &self.notes[*note].passages[*passage];
                (self.passage_galley(ui, one, width).size().y + space::S).max(size::MIN_CLICK_HEIGHT)
            }
        };
        let heights: Vec<f32> = self.rows.iter().map(height).collect();
        list.show(
            ui,
            "search results",
            self.rows.len(),
            |row| heights[row],
            |ui, row, rect| {
                let is_clicked = match self.rows[row] {
                    SearchRow::Note(note) => self.show_note(ui, note, rect).clicked(),
                    SearchRow::Passage(note, passage) => self.show_passage(ui, note, passage, rect).clicked(),
                };
                if is_clicked {
                    clicked = Some(row);
                }
            },
        );
        self.list = list;
        if let Some(row) = clicked {
            self.list.row = row;
            self.choose(self.rows[row], actions);
            ui.ctx().request_repaint();
        }
    }

    fn show_scopes(&mut self, ui: &mut Ui) {
        ui.add_space(space::XS);
        ui.horizontal(|ui| {
            ui.add_space(space::M);
            ui.spacing_mut().item_spacing.x = space::XS;
            for (scope, name) in SearchScope::ALL {
                if chip_button(ui, name, &format!("Results: {name}"), self.scope == scope, &theme::small()) {
                    (self.scope, self.focus) = (scope, true);
                    ui.ctx().request_repaint();
                }
            }
        });
    }

    /// Draws the number of results, or why there are none.
    fn show_summary(&self, ui: &mut Ui, search: &SearchService) {
        let typed = self.query.trim();
        let fresh = search.freshness();
        let passages: usize = self.notes.iter().map(|found| found.passages.len()).sum();
        let (text, is_bad) = match (&self.trouble, ParsedQuery::misread_filter(typed)) {
            (Some(why), _) => (why.clone(), true),
            (None, Some(misread)) => (format!("{misread}; searching for it as a word"), true),
            (None, None) if typed.is_empty() && self.scope == SearchScope::Notes => {
                ("Finds text, code and outputs by words and by meaning.".to_owned(), false)
            }
            (None, None) if typed.is_empty() => ("Finds what agents did.".to_owned(), false),
            (None, None) if !self.answered => ("Searching…".to_owned(), false),
            (None, None) if !fresh.complete => describe_freshness(&fresh),
            (None, None) if passages == 0 && fresh.meanings.0 > 0 => {
                (format!("No results yet for “{typed}”. Search by meaning is still being prepared."), false)
            }
            (None, None) if passages == 0 => (format!("No results for “{typed}”."), false),
            (None, None) if !self.fits => (format!("No results for “{typed}”. The nearest:"), false),
            (None, None) => {
                let more = if passages >= MAX_PANEL_PASSAGES { "The best " } else { "" };
                let of = if self.scope == SearchScope::Runs { "run" } else { "note" };
                (format!("{more}{} in {}", counted(passages, "result"), counted(self.notes.len(), of)), false)
            }
        };
        show_panel_status(ui, &text, is_bad);
    }

    fn show_note(&self, ui: &Ui, note: usize, rect: Rect) -> Response {
        let found = &self.notes[note];
        let response = ui.interact(rect, ui.scope_id().with(("found note", found.note)), Sense::click());
        let heading = GroupHeading {
            title: &found.title,
            folder: &found.folder,
            count: found.passages.len(),
            is_open: !self.folded.contains(&found.note),
        };
        heading.paint(ui, rect, rect.left(), &response);
        response
    }

    fn passage_galley(&self, ui: &Ui, one: &FoundPassage, width: f32) -> std::sync::Arc<egui::Galley> {
        let colours = ThemeColors::of(ui);
        let (text, marks) = one.excerpt(&self.answer.terms);
        let mut job = highlighted_text(text, marks, 13.0, 18.0, colours.muted, colours);
        let max_width = width - PASSAGE_INDENT - space::S;
        job.wrap = TextWrapping { max_width, max_rows: PASSAGE_LINES, ..TextWrapping::default() };
        ui.fonts_mut(|fonts| fonts.layout_job(job))
    }

    fn show_passage(&self, ui: &Ui, note: usize, passage: usize, rect: Rect) -> Response {
        let colours = ThemeColors::of(ui);
        let found = &self.notes[note];
        let one = &found.passages[passage];
        let id = ui.scope_id().with(("found passage", found.note, &one.hit.place, passage));
        let response = ui.interact(rect, id, Sense::click());
        paint_row_hover(ui, rect, &response);
        let (text, _) = one.excerpt(&self.answer.terms);
        widgets::set_accessible_name(&response, Role::Button, &format!("{}: {text}", found.title));
        let galley = self.passage_galley(ui, one, rect.width());
        let at = pos2(rect.left() + PASSAGE_INDENT, rect.center().y - galley.size().y / 2.0);
        ui.painter().galley(at, galley, colours.muted);
        response.on_hover_text(untrusted_text::escape_block(&one.hit.why.describe()).into_owned())
    }
}

/// The heading of a note's results.
pub(crate) struct GroupHeading<'a> {
    pub(crate) title: &'a str,
    pub(crate) folder: &'a str,
    pub(crate) count: usize,
    pub(crate) is_open: bool,
}

impl GroupHeading<'_> {
    /// Paints the heading from `left` on. `response` is that of the whole row.
    pub(crate) fn paint(&self, ui: &Ui, rect: Rect, left: f32, response: &Response) {
        let colours = ThemeColors::of(ui);
        paint_row_hover(ui, rect, response);
        let name = format!("{}, {}", self.title, counted(self.count, "result"));
        response.widget_info(|| WidgetInfo::labeled(Role::TreeItem, true, untrusted_text::escape_line(&name)));
        ui.ctx().accesskit_node_builder(response.id, |node| node.set_expanded(self.is_open));
        let middle = rect.center().y;
        let icon = if self.is_open { icons::CARET_DOWN } else { icons::CARET_RIGHT };
        let at = pos2(left + 11.0, middle);
        ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(12.0), colours.muted);
        let at = pos2(rect.right() - space::S, middle);
        let number = ui.painter().text(
            at,
            Align2::RIGHT_CENTER,
            self.count.to_string(),
            theme::tabular_font(12.0),
            colours.muted,
        );
        let (x, right) = (left + space::XL, number.left() - space::S);
        let style = theme::TypeStyle { font: theme::inter_font(InterCut::SemiBold, 13.0), line: 20.0 };
        let wide = paint_clipped_text(ui, pos2(x, middle - 10.0), right - x, self.title, &style, colours.ink);
        let x = x + wide + space::S;
        if right - x > space::XXL {
            let folder = self.folder.replace('/', " / ");
            paint_clipped_text(ui, pos2(x, middle - 8.0), right - x, &folder, &theme::caption(), colours.muted);
        }
    }
}

/// Paints a row's hover background and focus ring.
pub(crate) fn paint_row_hover(ui: &Ui, rect: Rect, response: &Response) {
    let colours = ThemeColors::of(ui);
    if response.hovered() {
        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.paper));
    }
    widgets::paint_focus_ring(ui, response, CONTROL_CORNER);
}

/// Draws the title of a left panel.
pub(crate) fn show_panel_title(ui: &mut Ui, title: &str) -> Rect {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), size::TOOLBAR_HEIGHT), Sense::hover());
    let at = rect.left_center() + vec2(space::L, 0.0);
    let font = theme::inter_font(InterCut::SemiBold, 13.0);
    ui.painter().text(at, Align2::LEFT_CENTER, title, font, ThemeColors::of(ui).ink);
    widgets::set_accessible_name(&response, Role::Heading, title);
    rect
}

/// Draws a text field of a left panel.
pub(crate) fn show_panel_field(ui: &mut Ui, id: Id, text: &mut String, name: &str, focus: &mut bool) -> Response {
    let colours = ThemeColors::of(ui);
    let style = theme::small();
    let (rect, _) =
        ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT + space::XS), Sense::hover());
    let rect = Rect::from_x_y_ranges(rect.left() + space::M..=rect.right() - space::M, rect.y_range());
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(rect).id_salt(("panel field", name)));
    let edit = egui::TextEdit::singleline(text)
        .id(id)
        .font(style.font.clone())
        .hint_text(egui::RichText::new(name).font(style.font).color(colours.muted))
        .margin(egui::Margin::symmetric(8, 4))
        .align(Align2::LEFT_CENTER)
        .min_size(vec2(0.0, size::MIN_CLICK_HEIGHT))
        .desired_width(f32::INFINITY);
    let response = child.add(edit).accessible_name(name);
    if std::mem::take(focus) {
        response.request_focus();
        // All text is selected, so that typing replaces the last query.
        if let Some(mut state) = egui::TextEdit::load_state(ui.ctx(), id) {
            state.cursor.set_char_range(Some(CCursorRange::select_all_str(text)));
            egui::TextEdit::store_state(ui.ctx(), id, state);
        }
    }
    response
}

/// Draws a line with the status of a search.
pub(crate) fn show_panel_status(ui: &mut Ui, text: &str, is_bad: bool) {
    let colours = ThemeColors::of(ui);
    let colour = if is_bad { colours.warn } else { colours.muted };
    let style = theme::caption();
    let mut job = egui::text::LayoutJob::default();
    job.append(&untrusted_text::escape_line(text), 0.0, widgets::format(style.font, style.line, colour));
    let width = ui.available_width() - 2.0 * space::L;
    job.wrap = TextWrapping { max_width: width, max_rows: 4, ..TextWrapping::default() };
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let wanted = vec2(ui.available_width(), galley.size().y + space::M);
    let (rect, response) = ui.allocate_exact_size(wanted, Sense::hover());
    ui.painter().galley(pos2(rect.left() + space::L, rect.top() + space::XS), galley, colour);
    widgets::set_accessible_name(&response, Role::Status, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_narrows_the_query_unless_it_names_one() {
        assert_eq!(SearchScope::Notes.narrowed(" heron "), "-in:run heron");
        assert_eq!(SearchScope::Runs.narrowed("heron"), "in:run heron");
        assert_eq!(SearchScope::Notes.narrowed("heron in:run"), "heron in:run");
        assert_eq!(SearchScope::Runs.narrowed(" "), "");
    }
}
