//! The part of the search panel that finds exact text, and replaces it in all checked notes.

use super::panel_list::PanelList;
use super::search_panel::{
    GROUP_ROW_HEIGHT, GroupHeading, INDEX_POLL_INTERVAL, paint_row_hover, show_panel_field, show_panel_status,
};
use eframe::egui;
use egui::accesskit::Role;
use egui::text::{LayoutJob, TextWrapping};
use egui::{Align2, Id, Key, Rect, Response, Sense, Stroke, StrokeKind, Ui, WidgetInfo, pos2, vec2};
use engine::Session;
use host::Driver;
use host::search::{ExactMatch, ExactSearch, MAX_EXACT_MATCHES, NoteMatches};
use notebook::actions::{NoteReplacement, PageAction, PendingJump, TextReplacement};
use std::cell::OnceCell;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::mpsc::TryRecvError;
use store::DocId;
use text::find_query::FindQuery;
use text::untrusted_text;
use ui::icons;
use ui::text::{counted, shown_name};
use ui::theme::{self, InterCut, ThemeColors, size, space};
use ui::widgets::{format, icon_button, paint_focus_ring, set_accessible_name, text_button, toggle_button};

const MATCH_ROW_HEIGHT: f32 = size::MIN_CLICK_HEIGHT;
/// Pause in typing before a search starts, in seconds.
const TYPING_PAUSE_SECONDS: f64 = 0.25;
/// Number of characters shown before a match.
const SHOWN_CONTEXT_CHARS: usize = 16;
const CHECKBOX_SIZE: f32 = 14.0;

/// A note with matches.
struct MatchedNote {
    note: DocId,
    title: String,
    folder: String,
    matches: Vec<ExactMatch>,
    /// The replacement for each match and the current input, computed when it's visible.
    previews: Vec<OnceCell<String>>,
}

/// A row of the list.
#[derive(Clone, Copy)]
enum MatchRow {
    Note(usize),
    Match(usize, usize),
}

/// The state of a search for exact text.
#[derive(Default)]
pub(crate) struct ExactPanel {
    query: FindQuery,
    with: String,
    /// Whether the replace field is shown.
    replaces: bool,
    /// The last requested query, and the index's revision.
    asked: Option<(FindQuery, u64)>,
    /// Time of the last change to the query.
    changed_at: f64,
    search: Option<ExactSearch>,
    trouble: Option<String>,
    notes: Vec<MatchedNote>,
    /// Results of a repeated search that is still running.
    incoming: Option<Vec<MatchedNote>>,
    /// Matches that won't be replaced, by note and index.
    unchecked: HashSet<(DocId, usize)>,
    folded: HashSet<DocId>,
    rows: Vec<MatchRow>,
    list: PanelList,
    focus_with: bool,
    /// Whether the replace field had the keyboard focus when last drawn.
    pub(crate) has_keyboard: bool,
}

fn with_field() -> Id {
    Id::unique("search panel replacement")
}

impl MatchedNote {
    fn of(session: &Session, found: NoteMatches) -> MatchedNote {
        let path = session.locate_file(found.note).map_or("", |(_, path)| path);
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        MatchedNote {
            note: found.note,
            title: shown_name(name).to_owned(),
            folder: folder.to_owned(),
            previews: vec![OnceCell::new(); found.matches.len()],
            matches: found.matches,
        }
    }
}

impl ExactPanel {
    /// Shows the replace field.
    pub(crate) fn begin_replacing(&mut self) {
        self.replaces = true;
    }

    /// Searches for the current text, and processes results.
    pub(crate) fn refresh(&mut self, ctx: &egui::Context, driver: &Driver, text: &str) {
        let now = ctx.input(|input| input.time);
        if self.query.text != text {
            text.clone_into(&mut self.query.text);
            self.changed_at = now;
        }
        if !text.is_empty() {
            ctx.request_repaint_after(INDEX_POLL_INTERVAL);
        }
        let revision = driver.search().freshness().revision;
        let is_same = self.asked.as_ref().is_some_and(|(query, _)| *query == self.query);
        // Unchecked matches are stored by index. A new search could apply them to other matches.
        let is_fresh = is_same
            && (self.search.is_some()
                || !self.unchecked.is_empty()
                || self.asked.as_ref().is_some_and(|(_, asked)| *asked == revision));
        let pause = self.changed_at + TYPING_PAUSE_SECONDS - now;
        if !is_same && pause > 0.0 && !text.is_empty() {
            ctx.request_repaint_after(std::time::Duration::from_secs_f64(pause));
        } else if !is_fresh {
            self.start(driver, revision, is_same);
        }
        self.receive(driver.session());
    }

    fn start(&mut self, driver: &Driver, revision: u64, is_same: bool) {
        self.asked = Some((self.query.clone(), revision));
        self.trouble = self.query.find("").err().map(|why| why.to_string());
        self.search = None;
        self.incoming = None;
        if !is_same {
            self.unchecked.clear();
            self.folded.clear();
            self.notes.clear();
            self.list.choose(1); // the first match, below its note
            self.lay_rows();
        }
        if !self.query.text.is_empty() && self.trouble.is_none() {
            self.search = Some(driver.find_exact(self.query.clone()));
            self.incoming = is_same.then(Vec::new);
        } else {
            self.notes.clear();
            self.lay_rows();
        }
    }

    fn receive(&mut self, session: &Session) {
        let Some(search) = &self.search else { return };
        let mut is_new = false;
        loop {
            match search.found.try_recv() {
                Ok(found) => {
                    self.incoming.as_mut().unwrap_or(&mut self.notes).push(MatchedNote::of(session, found));
                    is_new = true;
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.search = None;
                    if let Some(incoming) = self.incoming.take() {
                        self.notes = incoming;
                    }
                    is_new = true;
                    break;
                }
            }
        }
        if is_new {
            self.lay_rows();
        }
    }

    /// Repeats the search, and checks all results.
    fn search_again(&mut self) {
        self.unchecked.clear();
        self.asked = None;
    }

    fn lay_rows(&mut self) {
        self.rows.clear();
        for (note, found) in self.notes.iter().enumerate() {
            self.rows.push(MatchRow::Note(note));
            if !self.folded.contains(&found.note) {
                self.rows.extend((0..found.matches.len()).map(|index| MatchRow::Match(note, index)));
            }
        }
    }

    fn is_checked(&self, note: DocId, index: usize) -> bool {
        !self.unchecked.contains(&(note, index))
    }

    fn checked_count(&self, found: &MatchedNote) -> usize {
        (0..found.matches.len()).filter(|index| self.is_checked(found.note, *index)).count()
    }

    /// Returns the number of checked matches, and of the notes that contain them.
    fn checked_counts(&self) -> (usize, usize) {
        let counts = self.notes.iter().map(|found| self.checked_count(found)).filter(|count| *count > 0);
        counts.fold((0, 0), |(matches, notes), count| (matches + count, notes + 1))
    }

    /// Handles a key press while a field of the panel has the keyboard focus. Returns whether it was used.
    pub(crate) fn key(&mut self, key: Key, actions: &mut Vec<PageAction>) -> bool {
        if key == Key::Enter {
            if self.has_keyboard {
                self.replace(actions);
            } else if let Some(row) = self.rows.get(self.list.row).copied() {
                self.choose(row, actions);
            }
            return true;
        }
        self.list.key(key, self.rows.len())
    }

    fn choose(&mut self, row: MatchRow, actions: &mut Vec<PageAction>) {
        match row {
            MatchRow::Note(note) => {
                let Some(found) = self.notes.get(note) else { return };
                if !self.folded.remove(&found.note) {
                    self.folded.insert(found.note);
                }
                self.lay_rows();
            }
            MatchRow::Match(note, index) => {
                let Some(found) = self.notes.get(note) else { return };
                if let Some(one) = found.matches.get(index) {
                    actions.push(PageAction::Hit(PendingJump::from_range(found.note, one.range.clone())));
                }
            }
        }
    }

    /// Requests the replacement of all checked matches.
    fn replace(&mut self, actions: &mut Vec<PageAction>) {
        let mut notes = Vec::new();
        for found in &self.notes {
            let checked = found.matches.iter().enumerate().filter(|(index, _)| self.is_checked(found.note, *index));
            let edits: Vec<TextReplacement> = checked
                .map(|(_, one)| TextReplacement { at: one.range.start, old: one.matched().to_owned(), new: None })
                .collect();
            if !edits.is_empty() {
                notes.push(NoteReplacement { note: found.note, edits });
            }
        }
        if !notes.is_empty() {
            actions.push(PageAction::Replace { query: self.query.clone(), with: self.with.clone(), notes });
            self.search_again();
        }
    }

    /// Draws the search options, the replace field and the list.
    pub(crate) fn show(&mut self, ui: &mut Ui, actions: &mut Vec<PageAction>) {
        self.show_switches(ui);
        self.has_keyboard = false;
        if self.replaces {
            ui.add_space(space::XS);
            let field = show_panel_field(ui, with_field(), &mut self.with, "Replace with", &mut self.focus_with);
            self.has_keyboard = field.has_focus();
            if field.changed() {
                let previews = self.notes.iter_mut().flat_map(|found| &mut found.previews);
                previews.for_each(|preview| *preview = OnceCell::new());
            }
            self.show_replace_button(ui, actions);
        }
        self.show_summary(ui);
        let (mut list, mut clicked, mut checked) = (std::mem::take(&mut self.list), None, None);
        list.show(
            ui,
            "exact results",
            self.rows.len(),
            |_| GROUP_ROW_HEIGHT.max(MATCH_ROW_HEIGHT),
            |ui, row, rect| {
                let (is_clicked, is_checked) = match self.rows[row] {
                    MatchRow::Note(note) => self.show_note(ui, note, rect),
                    MatchRow::Match(note, index) => self.show_match(ui, note, index, rect),
                };
                clicked = clicked.or(is_clicked.then_some(row));
                checked = checked.or(is_checked.then_some(row));
            },
        );
        self.list = list;
        if let Some(row) = checked {
            self.toggle_checks(self.rows[row]);
            ui.ctx().request_repaint();
        } else if let Some(row) = clicked {
            self.list.row = row;
            self.choose(self.rows[row], actions);
            ui.ctx().request_repaint();
        }
    }

    fn toggle_checks(&mut self, row: MatchRow) {
        match row {
            MatchRow::Note(note) => {
                let found = &self.notes[note];
                let all = (0..found.matches.len()).map(|index| (found.note, index));
                if self.checked_count(found) == found.matches.len() {
                    self.unchecked.extend(all);
                } else {
                    all.for_each(|one| _ = self.unchecked.remove(&one));
                }
            }
            MatchRow::Match(note, index) => {
                let key = (self.notes[note].note, index);
                if !self.unchecked.remove(&key) {
                    self.unchecked.insert(key);
                }
            }
        }
    }

    fn show_switches(&mut self, ui: &mut Ui) {
        ui.add_space(space::XS);
        ui.horizontal(|ui| {
            ui.add_space(space::M);
            ui.spacing_mut().item_spacing.x = space::XS;
            for (name, mark, on) in [
                ("Match case", "Aa", &mut self.query.case),
                ("Whole words", "W", &mut self.query.whole),
                ("Regular expression", ".*", &mut self.query.regex),
            ] {
                if toggle_button(ui, name, mark, *on) {
                    *on = !*on;
                    ui.ctx().request_repaint();
                }
            }
            if icon_button(ui, icons::REDO, "Search again", None).clicked() {
                self.search_again();
            }
            let icon = if self.replaces { icons::CARET_DOWN } else { icons::CARET_RIGHT };
            let rest = ui.available_width() - space::M;
            let button = ui.allocate_ui_with_layout(
                vec2(rest, size::MIN_CLICK_HEIGHT),
                egui::Layout::right_to_left(egui::Align::Center),
                |ui| icon_button(ui, icon, "Toggle replace", None),
            );
            if button.inner.clicked() {
                self.replaces = !self.replaces;
                self.focus_with = self.replaces;
            }
        });
    }

    fn show_replace_button(&mut self, ui: &mut Ui, actions: &mut Vec<PageAction>) {
        let (matches, notes) = self.checked_counts();
        if matches == 0 {
            return;
        }
        ui.add_space(space::XS);
        ui.horizontal(|ui| {
            ui.add_space(space::M);
            let text = format!("Replace {} in {}", ui::text::format_thousands(matches), counted(notes, "note"));
            if text_button(ui, &text, true).clicked() {
                self.replace(actions);
            }
        });
    }

    fn show_summary(&self, ui: &mut Ui) {
        let matches: usize = self.notes.iter().map(|found| found.matches.len()).sum();
        let (text, is_bad) = match &self.trouble {
            Some(why) => (why.clone(), true),
            None if self.query.text.is_empty() => ("Finds text letter by letter in all notes.".to_owned(), false),
            None if matches == 0 && (self.search.is_some() || self.asked.is_none()) => ("Searching…".to_owned(), false),
            None if matches == 0 => (format!("No note contains “{}”.", self.query.text), false),
            None => {
                let first = if matches >= MAX_EXACT_MATCHES { "The first " } else { "" };
                (format!("{first}{} in {}", counted_matches(matches), counted(self.notes.len(), "note")), false)
            }
        };
        show_panel_status(ui, &text, is_bad);
    }

    /// Draws a note's heading. Returns whether it was clicked, and whether its checkbox was.
    fn show_note(&self, ui: &mut Ui, note: usize, rect: Rect) -> (bool, bool) {
        let found = &self.notes[note];
        let response = ui.interact(rect, ui.scope_id().with(("matched note", found.note)), Sense::click());
        let heading = GroupHeading {
            title: &found.title,
            folder: &found.folder,
            count: found.matches.len(),
            is_open: !self.folded.contains(&found.note),
        };
        let room = if self.replaces { size::MIN_CLICK_HEIGHT } else { 0.0 };
        heading.paint(ui, rect, rect.left() + room, &response);
        let is_checked = self.replaces && {
            let checked = self.checked_count(found);
            let state = if checked == found.matches.len() { Some(true) } else { (checked == 0).then_some(false) };
            show_checkbox(ui, rect, state, &format!("Replace in {}", found.title)).clicked()
        };
        (response.clicked() && !is_checked, is_checked)
    }

    /// Draws a match and its replacement. Returns whether it was clicked, and whether its checkbox was.
    fn show_match(&self, ui: &mut Ui, note: usize, index: usize, rect: Rect) -> (bool, bool) {
        let colours = ThemeColors::of(ui);
        let found = &self.notes[note];
        let one = &found.matches[index];
        let id = ui.scope_id().with(("match", found.note, one.range.start));
        let response = ui.interact(rect, id, Sense::click());
        paint_row_hover(ui, rect, &response);
        let checked = self.is_checked(found.note, index);
        let preview = (self.replaces && checked).then(|| {
            found.previews[index].get_or_init(|| {
                let ranges = [one.in_line.clone()];
                self.query.replacements(&one.line, &ranges, &self.with).pop().unwrap_or_default()
            })
        });
        let before = found.matches[..index].iter().rev().take_while(|other| other.line_number == one.line_number);
        let place = match before.count() {
            0 => format!("{}, line {}", found.title, one.line_number),
            before => format!("{}, line {}, match {}", found.title, one.line_number, before + 1),
        };
        let becomes = preview.map_or(String::new(), |new| format!(" becomes {new}"));
        set_accessible_name(&response, Role::Button, &format!("{place}: {}{becomes}", one.line.trim()));
        let room = if self.replaces { size::MIN_CLICK_HEIGHT + space::S } else { space::XL };
        let left = rect.left() + room + space::S;
        let mut job = match_text(one, preview.map(String::as_str), colours);
        job.wrap = TextWrapping::truncate_at_width(rect.right() - space::S - left);
        let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
        ui.painter().galley(pos2(left, rect.center().y - galley.size().y / 2.0), galley, colours.muted);
        let is_checked = self.replaces
            && show_checkbox(
                ui,
                rect.with_min_x(rect.left() + space::S),
                Some(checked),
                &format!("Replace in {place}"),
            )
            .clicked();
        (response.clicked() && !is_checked, is_checked)
    }
}

/// Returns a number of matches as text.
pub(crate) fn counted_matches(number: usize) -> String {
    let es = if number == 1 { "" } else { "es" };
    format!("{} match{es}", ui::text::format_thousands(number))
}

/// Lays out the line of a match: highlighted, or struck out and followed by the replacement.
fn match_text(one: &ExactMatch, new: Option<&str>, colours: &ThemeColors) -> LayoutJob {
    let Range { start, end } = one.in_line.clone();
    let from = one.line[..start].char_indices().rev().nth(SHOWN_CONTEXT_CHARS).map(|(from, _)| from);
    let before = from.map_or(one.line[..start].trim_start().to_owned(), |from| format!("…{}", &one.line[from..start]));
    let mut job = LayoutJob::default();
    let (font, strong) = (theme::inter_font(InterCut::Regular, 13.0), theme::inter_font(InterCut::SemiBold, 13.0));
    let mut append = |text: &str, format| job.append(&untrusted_text::escape_line(text), 0.0, format);
    append(&before, format(font.clone(), 20.0, colours.muted));
    let mut old = format(strong.clone(), 20.0, colours.ink);
    match new {
        None => old.background = colours.mark,
        Some(_) => {
            old = format(font.clone(), 20.0, colours.ink);
            (old.background, old.strikethrough) = (colours.gone_strong, Stroke::new(1.0, colours.ink));
        }
    }
    append(one.matched(), old);
    if let Some(new) = new {
        let mut format = format(strong, 20.0, colours.ink);
        format.background = colours.come_strong;
        append(new, format);
    }
    append(&one.line[end..], format(font, 20.0, colours.muted));
    job
}

/// Draws a checkbox at the left of a row; `None` if only some of its matches are checked.
fn show_checkbox(ui: &Ui, row: Rect, checked: Option<bool>, name: &str) -> Response {
    let colours = ThemeColors::of(ui);
    let area = Rect::from_min_size(row.left_top(), vec2(size::MIN_CLICK_HEIGHT, row.height()));
    let response = ui.interact(area, ui.scope_id().with(("check", name, row.top().to_bits())), Sense::click());
    let square = Rect::from_center_size(area.center(), vec2(CHECKBOX_SIZE, CHECKBOX_SIZE));
    let corner = egui::CornerRadius::same(3);
    if checked == Some(false) {
        let edge = if response.hovered() { colours.ink } else { colours.muted };
        ui.painter().rect_stroke(square, corner, Stroke::new(1.0, edge), StrokeKind::Inside);
    } else {
        ui.painter().rect_filled(square, corner, colours.accent);
        let icon = if checked.is_some() { icons::CHECK } else { icons::MINUS };
        ui.painter().text(square.center(), Align2::CENTER_CENTER, icon, theme::icon_font(11.0), colours.paper);
    }
    paint_focus_ring(ui, &response, corner);
    let is_on = checked != Some(false);
    response.widget_info(|| WidgetInfo::selected(Role::CheckBox, true, is_on, untrusted_text::escape_line(name)));
    response
}
