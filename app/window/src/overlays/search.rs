//! The search palette: results while typing with matches highlighted, filters, and the full passage below.
//!
//! It queries the host without blocking. A chosen result opens at its block.

use eframe::egui;
use egui::accesskit::Role;
use egui::text::{LayoutJob, LayoutSection, TextWrapping};
use egui::{Align2, Color32, Id, Key, Rect, Sense, Stroke, Ui, pos2, vec2};
use host::search::{IndexFreshness, NoteHit, SearchAnswer, SearchRequest, SearchService, highlight_ranges};
use notebook::actions::PendingJump;
use notebook::hit_text::{highlighted_text, hit_location, readable_hit};
use std::cell::OnceCell;
use std::ops::Range;
use std::sync::mpsc::{Receiver, TryRecvError};
use store::DocId;
use text::untrusted_text;
use ui::icons;
use ui::picker::{self, ListPicker};
use ui::text::format_thousands;
use ui::theme::{self, CONTROL_CORNER, InterCut, ThemeColors, size, space};
use ui::widgets::{self, format, paint_clipped_text, set_accessible_name};

/// Maximum number of listed notes. Typing more finds the rest.
const MAX_SEARCH_RESULTS: usize = 30;
/// Number of visible rows.
const VISIBLE_SEARCH_ROWS: f32 = 6.0;
const SEARCH_ROW_HEIGHT: f32 = 56.0;
/// Height of a saved search in the list.
const SAVED_SEARCH_ROW_HEIGHT: f32 = 32.0;
/// Number of lines in the passage preview.
const PASSAGE_PREVIEW_LINES: usize = 7;
/// Maximum bytes of a passage in a row, and in the preview.
const MAX_ROW_PASSAGE_BYTES: usize = 140;
const MAX_PREVIEW_PASSAGE_BYTES: usize = 700;

/// The clickable filters: name, and the prefix for the query.
const SEARCH_FILTERS: [(&str, &str); 7] = [
    ("Everything", ""),
    ("Text", "in:prose "),
    ("Code", "in:code "),
    ("Outputs", "in:output "),
    ("Todos", "is:todo "),
    ("Runs", "in:run "),
    ("Memory", "in:memory "),
];

pub(crate) struct SearchOverlay {
    pub(crate) search: SearchService,
    pub(crate) query: String,
    pub(crate) filter: usize,
    /// The last request: text, filter, and the index's revision.
    pub(crate) asked: Option<(String, usize, u64)>,
    pub(crate) wait: Option<Receiver<anyhow::Result<SearchAnswer>>>,
    pub(crate) answer: SearchAnswer,
    /// The hits as plain text, each filled in when it's first visible.
    pub(crate) readable: Vec<OnceCell<NoteHit>>,
    /// Whether the current query was answered.
    pub(crate) answered: bool,
    pub(crate) trouble: Option<String>,
    pub(crate) pick: ListPicker,
    /// Saved searches: name and query.
    pub(crate) kept: Vec<(String, String)>,
    /// A saved search to add (`true`) or remove.
    pub(crate) keep: Option<(String, bool)>,
    /// Whether the parts of the score are shown.
    pub(crate) explains: bool,
    /// Whether to show the results in the search panel.
    pub(crate) shows_panel: bool,
    /// The note whose passage link was copied.
    pub(crate) linked: Option<DocId>,
}

impl SearchOverlay {
    pub(crate) fn new(search: SearchService, kept: Vec<(String, String)>) -> SearchOverlay {
        SearchOverlay {
            search,
            query: String::new(),
            filter: 0,
            asked: None,
            wait: None,
            answer: SearchAnswer::default(),
            readable: Vec::new(),
            answered: false,
            trouble: None,
            pick: ListPicker::default(),
            kept,
            keep: None,
            explains: false,
            shows_panel: false,
            linked: None,
        }
    }

    /// Saves the current query, or deletes the saved one.
    pub(crate) fn toggle_saved_search(&mut self) {
        let text = self.text().trim().to_owned();
        if text.is_empty() {
            return;
        }
        let known = self.kept.iter().any(|(_, query)| *query == text);
        if known {
            self.kept.retain(|(_, query)| *query != text);
        } else {
            self.kept.push((text.clone(), text.clone()));
        }
        self.keep = Some((text, !known));
    }

    /// Returns the saved search that was added (`true`) or removed since the last call.
    pub(crate) fn take_saved_change(&mut self) -> Option<(String, bool)> {
        self.keep.take()
    }

    /// Returns the note whose link was copied since the last call.
    pub(crate) fn take_copied_link(&mut self) -> Option<DocId> {
        self.linked.take()
    }

    /// Returns the query for the search panel, if its button was clicked since the last call.
    pub(crate) fn take_panel_query(&mut self) -> Option<String> {
        std::mem::take(&mut self.shows_panel).then(|| self.text())
    }

    /// Returns the filter and the typed text.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", SEARCH_FILTERS[self.filter].1, self.query)
    }

    /// Returns whether the saved searches are listed.
    fn lists_kept(&self) -> bool {
        !self.kept.is_empty() && self.query.trim().is_empty() && self.filter == 0
    }

    /// Requests results for the current query, and processes answers.
    fn ask(&mut self, ctx: &egui::Context) {
        let now = (self.query.clone(), self.filter, self.search.freshness().revision);
        if self.asked.as_ref() != Some(&now) {
            let same = self.asked.take().is_some_and(|(query, filter, _)| query == now.0 && filter == now.1);
            self.asked = Some(now);
            if !same {
                (self.pick, self.answered) = (ListPicker::default(), false);
            }
            let text = self.text();
            if text.trim().is_empty() {
                (self.answer, self.trouble, self.wait) = (SearchAnswer::default(), None, None);
            } else {
                let wake = ctx.clone();
                let ask = SearchRequest { text, limit: MAX_SEARCH_RESULTS, typing: true, ..SearchRequest::default() };
                self.wait = Some(self.search.ask(ask, move || wake.request_repaint()));
            }
        }
        let Some(wait) = &self.wait else { return };
        loop {
            match wait.try_recv() {
                Ok(Ok(answer)) => {
                    // A later answer, including one by meaning, keeps the note that the user has selected.
                    let kept = self.answer.hits.get(self.pick.line).filter(|_| self.pick.line > 0).map(|hit| hit.note);
                    let place = answer.hits.iter().position(|hit| Some(hit.note) == kept);
                    self.pick.line = place.unwrap_or(0);
                    self.readable = vec![OnceCell::new(); answer.hits.len()];
                    (self.answer, self.answered, self.trouble) = (answer, true, None);
                }
                Ok(Err(why)) => (self.trouble, self.answered) = (Some(why.to_string()), true),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => break,
            }
        }
        self.wait = None;
    }

    /// Handles a key that moves the selection. Returns whether it did.
    pub(crate) fn key(&mut self, key: Key) -> bool {
        let lines = if self.lists_kept() { self.kept.len() } else { self.answer.hits.len() };
        self.pick.key(key, lines, VISIBLE_SEARCH_ROWS as usize)
    }

    /// Returns the target for Enter. If a saved search is selected, its query is run instead.
    pub(crate) fn take_choice(&mut self) -> Option<PendingJump> {
        if self.lists_kept() {
            self.query = self.kept.get(self.pick.line)?.1.clone();
            return None;
        }
        let hit = self.answer.hits.get(self.pick.line)?;
        Some(PendingJump::from_hit(hit, &self.answer.terms))
    }

    /// Draws the palette. `Some(None)` means that it must close.
    pub(crate) fn show(
        &mut self,
        ctx: &egui::Context,
        colours: &'static ThemeColors,
        dark: bool,
    ) -> Option<Option<PendingJump>> {
        self.ask(ctx);
        let mut chosen = None;
        let most = (ctx.content_rect().height() * 0.45).min(VISIBLE_SEARCH_ROWS * SEARCH_ROW_HEIGHT);
        let away = picker::show_floating(ctx, "search", 0.125, colours, dark, |ui| {
            self.entry(ui);
            self.filters(ui);
            hairline(ui);
            chosen = self.list(ui, most);
            self.passage(ui);
            self.foot(ui);
        });
        if away {
            return Some(None);
        }
        chosen.map(Some)
    }

    fn entry(&mut self, ui: &mut Ui) {
        let hint = "Words, \"a phrase\", -not, tag: path: title: lang: by: before: after:";
        let text = self.text();
        let known = self.kept.iter().any(|(_, query)| *query == text.trim());
        let (mut keep, mut shows_panel) = (false, false);
        picker::show_entry(
            ui,
            &mut self.query,
            "search query",
            ("Search everything", hint),
            2.0 * size::MIN_CLICK_HEIGHT + space::S,
            |ui, _| {
                let name = if known { "Remove saved search" } else { "Save search" };
                let icon = if known { icons::CHECK } else { icons::FLOPPY };
                if text.trim().is_empty() {
                    return;
                }
                keep = widgets::icon_button(ui, icon, name, Some("Ctrl+D")).clicked();
                shows_panel = widgets::icon_button(ui, icons::SIDEBAR, "Show in the search panel", None).clicked();
            },
        );
        self.shows_panel |= shows_panel;
        if keep {
            self.toggle_saved_search();
        }
    }

    fn filters(&mut self, ui: &mut Ui) {
        let colours = ThemeColors::of(ui);
        let (strip, _) =
            ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT + space::S), Sense::hover());
        let mut x = strip.left() + space::M;
        for (place, (name, _)) in SEARCH_FILTERS.iter().enumerate() {
            let on = place == self.filter;
            let colour = if on { colours.accent } else { colours.muted };
            let galley = ui.painter().layout_no_wrap((*name).to_owned(), theme::small().font, colour);
            let rect = Rect::from_min_size(
                pos2(x, strip.top()),
                vec2(galley.size().x + 2.0 * space::S, size::MIN_CLICK_HEIGHT),
            );
            let response = ui.interact(rect, Id::unique(("search filter", place)), Sense::click());
            if on {
                ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
            } else if response.hovered() {
                ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.raised));
            }
            let at = Align2::CENTER_CENTER.align_size_within_rect(galley.size(), rect).min;
            ui.painter().galley(at, galley, colour);
            widgets::paint_focus_ring(ui, &response, CONTROL_CORNER);
            set_accessible_name(&response, Role::Button, &format!("Search in: {name}"));
            if response.clicked() {
                self.filter = place;
                ui.ctx().request_repaint();
            }
            x = rect.right() + space::XS;
        }
    }

    fn list(&mut self, ui: &mut Ui, height: f32) -> Option<PendingJump> {
        let colours = ThemeColors::of(ui);
        if self.lists_kept() {
            self.list_kept(ui);
            return None;
        }
        let lines = self.answer.hits.len();
        if lines == 0 {
            let text = match (&self.trouble, self.answered) {
                (Some(why), _) => why.clone(),
                (None, true) => format!("No results for “{}”.", self.query.trim()),
                (None, false) if self.query.trim().is_empty() && self.filter == 0 => {
                    "Finds notes, code and outputs by their words and by what they mean.".to_owned()
                }
                (None, false) => "Searching…".to_owned(),
            };
            let (rect, response) =
                ui.allocate_exact_size(vec2(ui.available_width(), SEARCH_ROW_HEIGHT), Sense::hover());
            let at = pos2(rect.left() + space::L, rect.center().y - 10.0);
            paint_clipped_text(ui, at, rect.width() - 2.0 * space::L, &text, &theme::small(), colours.muted);
            set_accessible_name(&response, Role::Label, &text);
            return None;
        }
        if !self.answer.has_match() {
            let text = format!("No results for “{}”. The nearest:", self.query.trim());
            let (rect, response) =
                ui.allocate_exact_size(vec2(ui.available_width(), SAVED_SEARCH_ROW_HEIGHT), Sense::hover());
            let at = pos2(rect.left() + space::L, rect.center().y - 10.0);
            paint_clipped_text(ui, at, rect.width() - 2.0 * space::L, &text, &theme::small(), colours.muted);
            set_accessible_name(&response, Role::Label, &text);
        }
        let mut pick = std::mem::take(&mut self.pick);
        let clicked = pick.show_list(ui, lines, SEARCH_ROW_HEIGHT, height, |ui, line, rect, response| {
            self.line(ui, line, rect, response)
        });
        self.pick = pick;
        clicked.and_then(|_| self.take_choice())
    }

    /// Draws the saved searches, while nothing is typed.
    fn list_kept(&mut self, ui: &mut Ui) {
        let colours = ThemeColors::of(ui);
        let draw = |ui: &Ui, line: usize, rect: Rect, response: &egui::Response| {
            let (name, query) = &self.kept[line];
            set_accessible_name(response, Role::Button, &format!("Search again: {name}"));
            let mut job = LayoutJob::default();
            job.append(&untrusted_text::escape_line(name), 0.0, format(theme::small().font, 20.0, colours.ink));
            if name != query {
                job.append(
                    &untrusted_text::escape_line(query),
                    space::S,
                    format(theme::small().font, 20.0, colours.muted),
                );
            }
            job.wrap = TextWrapping::truncate_at_width(rect.width() - 2.0 * space::M);
            let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
            let at = pos2(rect.left() + space::M, rect.center().y - galley.size().y / 2.0);
            ui.painter().galley(at, galley, colours.ink);
        };
        let clicked = self.pick.show_list(
            ui,
            self.kept.len(),
            SAVED_SEARCH_ROW_HEIGHT,
            VISIBLE_SEARCH_ROWS * SEARCH_ROW_HEIGHT,
            draw,
        );
        if let Some(line) = clicked {
            self.query.clone_from(&self.kept[line].1);
            ui.ctx().request_repaint();
        }
    }

    fn line(&self, ui: &Ui, line: usize, rect: Rect, response: &egui::Response) {
        let colours = ThemeColors::of(ui);
        let Some(hit) = self.answer.hits.get(line) else { return };
        let why = hit.why.describe();
        set_accessible_name(response, Role::Button, &format!("{}: {why}", hit.title));
        let width = rect.width() - 2.0 * space::M;
        let place = hit_location(hit);
        let mut job = LayoutJob::default();
        job.append(
            &untrusted_text::escape_line(&hit.title),
            0.0,
            format(theme::inter_font(InterCut::SemiBold, 14.0), 20.0, colours.ink),
        );
        job.append(&untrusted_text::escape_line(&place), space::S, format(theme::small().font, 20.0, colours.muted));
        job.wrap = TextWrapping::truncate_at_width(width);
        let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
        let top = rect.top() + space::S;
        ui.painter().galley(pos2(rect.left() + space::M, top), galley, colours.ink);
        let Some(readable) = self.readable_hit(line) else { return };
        let (text, found) = readable.excerpt(&self.answer.terms, MAX_ROW_PASSAGE_BYTES);
        let mut job = highlighted_text(&text, &found, 13.0, 20.0, colours.ink, colours);
        job.wrap = TextWrapping::truncate_at_width(width);
        let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
        ui.painter().galley(pos2(rect.left() + space::M, top + 20.0), galley, colours.ink);
    }

    /// Returns a hit as plain text. Its Markdown is parsed only once.
    fn readable_hit(&self, line: usize) -> Option<&NoteHit> {
        let (hit, readable) = (self.answer.hits.get(line)?, self.readable.get(line)?);
        Some(readable.get_or_init(|| readable_hit(hit)))
    }

    /// Draws the selected passage in full, and why it matches.
    fn passage(&mut self, ui: &mut Ui) {
        let colours = ThemeColors::of(ui);
        let Some(hit) = self.answer.hits.get(self.pick.line) else { return };
        hairline(ui);
        let width = ui.available_width() - 2.0 * space::L;
        let Some(readable) = self.readable_hit(self.pick.line) else { return };
        let found = highlight_ranges(&readable.text, &self.answer.terms);
        let (text, found, nearest) = part(&readable.text, &found, readable.why.nearest.as_ref());
        let mut job = highlighted_text(&text, &found, 13.0, 20.0, colours.muted, colours);
        ground(&mut job, nearest, colours.accent_ground);
        job.wrap = TextWrapping { max_width: width, max_rows: PASSAGE_PREVIEW_LINES, ..TextWrapping::default() };
        let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
        let more = match hit.more {
            0 => String::new(),
            1 => "; one more passage of this note fits".to_owned(),
            more => format!("; {more} more passages of this note fit"),
        };
        let why = format!("Why: {}{more}", hit.why.describe());
        let (parts, link, note) = (parts(hit), link(hit), hit.note);
        let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), galley.size().y + space::S), Sense::hover());
        ui.painter().galley(rect.min + vec2(space::L, space::S), galley, colours.muted);
        ui.horizontal(|ui| {
            let wide = ui.available_width() - size::MIN_CLICK_HEIGHT - space::M - ui.spacing().item_spacing.x;
            let (rect, response) = ui.allocate_exact_size(vec2(wide, size::MIN_CLICK_HEIGHT), Sense::click());
            let at = pos2(rect.left() + space::L, rect.center().y - 10.0);
            paint_clipped_text(ui, at, rect.width() - space::L, &why, &theme::small(), colours.accent);
            widgets::paint_focus_ring(ui, &response, CONTROL_CORNER);
            set_accessible_name(&response, Role::Button, &why);
            if response.on_hover_text(untrusted_text::escape_block(&parts).into_owned()).clicked() {
                self.explains = !self.explains;
            }
            if widgets::icon_button(ui, icons::COPY, "Copy a link to this passage", None).clicked() {
                ui.ctx().copy_text(link);
                self.linked = Some(note);
            }
        });
        if self.explains {
            let (rect, response) =
                ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT), Sense::hover());
            let at = pos2(rect.left() + space::L, rect.center().y - 10.0);
            paint_clipped_text(ui, at, width, &parts, &theme::small(), colours.muted);
            set_accessible_name(&response, Role::Label, &parts);
        }
    }

    /// Draws how up to date the index is.
    fn foot(&self, ui: &mut Ui) {
        let colours = ThemeColors::of(ui);
        hairline(ui);
        let fresh = self.search.freshness();
        let (text, bad) = match host::search::ParsedQuery::misread_filter(&self.query) {
            Some(misread) => (format!("{misread}; searching for it as a word"), true),
            None => describe_freshness(&fresh),
        };
        // Repaint so that edits, here or elsewhere, are found without typing again.
        ui.ctx().request_repaint_after(std::time::Duration::from_millis(500));
        let (rect, response) =
            ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT), Sense::hover());
        let at = pos2(rect.left() + space::L, rect.center().y - 8.0);
        let colour = if bad { colours.warn } else { colours.muted };
        paint_clipped_text(ui, at, rect.width() - 2.0 * space::L, &text, &theme::caption(), colour);
        set_accessible_name(&response, Role::Label, &text);
    }
}

/// Describes the state of the index, and whether it's a problem.
pub(crate) fn describe_freshness(fresh: &IndexFreshness) -> (String, bool) {
    if let Some(why) = fresh.words_only_reason.as_ref().or(fresh.error.as_ref()) {
        return (why.clone(), true);
    }
    if !fresh.complete {
        let left = if fresh.waiting == 1 { "note" } else { "notes" };
        let waiting = if fresh.waiting > 0 {
            format!(": {} {left} left", format_thousands(fresh.waiting))
        } else {
            String::new()
        };
        return (format!("Indexing{waiting}"), false);
    }
    let notes = if fresh.notes == 1 { "1 note".to_owned() } else { format!("{} notes", format_thousands(fresh.notes)) };
    match fresh.meanings {
        (0, _) => match &fresh.repair_notice {
            Some(mended) => (format!("{notes}, up to date; {mended}"), false),
            None => (format!("{notes}, up to date"), false),
        },
        (left, all) => (
            format!(
                "{notes}; meaning of {} of {} passages",
                format_thousands(all - left.min(all)),
                format_thousands(all)
            ),
            false,
        ),
    }
}

/// Describes the parts of a score.
fn parts(hit: &NoteHit) -> String {
    let parts: Vec<String> = hit.why.parts.iter().map(|part| format!("{} {:.2}", part.name, part.value)).collect();
    format!("Score {:.2}: {}", hit.score, parts.join(", "))
}

/// Returns a link to a hit in wiki link syntax.
fn link(hit: &NoteHit) -> String {
    let address = hit.link_address();
    let (path, place) = address.split_once('#').unwrap_or((&address, ""));
    let hash = if place.is_empty() { "" } else { "#" };
    format!("[[{}{hash}{place}]]", path.strip_suffix(".md").unwrap_or(path))
}

/// Returns the part of a passage with the matches, with line breaks; and the ranges of matched words and of the most
/// similar text.
fn part(
    text: &str,
    found: &[Range<usize>],
    nearest: Option<&Range<usize>>,
) -> (String, Vec<Range<usize>>, Option<Range<usize>>) {
    let first = found.first().or(nearest).map_or(0, |mark| mark.start);
    let start =
        if first < MAX_PREVIEW_PASSAGE_BYTES / 2 { 0 } else { text[..first].rfind('\n').map_or(0, |line| line + 1) };
    let end = text.floor_char_boundary((start + MAX_PREVIEW_PASSAGE_BYTES).min(text.len()));
    let inside = found.iter().filter(|mark| mark.start >= start && mark.end <= end);
    let near = nearest.map(|near| near.start.clamp(start, end) - start..near.end.clamp(start, end) - start);
    let inside = inside.map(|mark| mark.start - start..mark.end - start).collect();
    (text[start..end].to_owned(), inside, near.filter(|near| !near.is_empty()))
}

/// Sets the background of a range of text.
fn ground(job: &mut LayoutJob, range: Option<Range<usize>>, colour: Color32) {
    let Some(range) = range else { return };
    let mut sections = Vec::with_capacity(job.sections.len() + 2);
    for section in std::mem::take(&mut job.sections) {
        let of = section.byte_range.start.0..section.byte_range.end.0;
        let cuts = [of.start, range.start.clamp(of.start, of.end), range.end.clamp(of.start, of.end), of.end];
        for (cut, on) in cuts.windows(2).zip([false, true, false]).filter(|(cut, _)| cut[0] < cut[1]) {
            let mut piece = LayoutSection { byte_range: cut[0].into()..cut[1].into(), ..section.clone() };
            piece.leading_space = if cut[0] == of.start { section.leading_space } else { 0.0 };
            if on {
                piece.format.background = colour;
            }
            sections.push(piece);
        }
    }
    job.sections = sections;
}

fn hairline(ui: &Ui) {
    let line = ui.available_rect_before_wrap();
    ui.painter().hline(line.x_range(), line.top(), Stroke::new(1.0, ThemeColors::of(ui).line));
}
