//! Embedded searches: the current hits of a query, shown below a code block in the language `query`, with matches
//! highlighted. They follow the index without blocking.

use crate::actions::{PageAction, PendingJump};
use crate::hit_text::{highlighted_text, hit_location};
use eframe::egui;
use egui::accesskit::Role;
use egui::text::TextWrapping;
use egui::{Sense, Ui, pos2, vec2};
use host::search::{SearchAnswer, SearchRequest, SearchService};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};
use store::DocId;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, space};
use ui::widgets::{self, paint_clipped_text, set_accessible_name};

/// Maximum number of notes shown; the search panel shows more.
const MAX_EMBEDDED_RESULTS: usize = 50;
const EMBEDDED_SEARCH_HEADER_HEIGHT: f32 = 32.0;
const EMBEDDED_RESULT_HEIGHT: f32 = 48.0;
/// Maximum number of bytes of a passage on a line.
const MAX_EMBEDDED_PASSAGE_BYTES: usize = 160;
/// Minimum interval between two searches while notes change.
const EMBEDDED_SEARCH_INTERVAL: Duration = Duration::from_secs(1);

/// A search embedded in a note.
#[derive(Default)]
pub struct EmbeddedSearch {
    /// The query, the state of the index, and the time of the request.
    asked: Option<(String, u64, Instant)>,
    wait: Option<Receiver<anyhow::Result<SearchAnswer>>>,
    answer: SearchAnswer,
    /// Message shown instead of hits.
    said: String,
    /// Height of the content.
    pub high: f32,
}

impl EmbeddedSearch {
    fn refresh(&mut self, ui: &Ui, search: &SearchService, text: &str, around: DocId) {
        let revision = search.freshness().revision;
        let same = self.asked.as_ref().is_some_and(|(asked, at, _)| asked == text && *at == revision);
        let soon = self
            .asked
            .as_ref()
            .is_some_and(|(asked, _, when)| asked == text && when.elapsed() < EMBEDDED_SEARCH_INTERVAL);
        if text.is_empty() {
            (self.asked, self.wait, self.answer) = (None, None, SearchAnswer::default());
            self.said = "Write what to search for.".to_owned();
        } else if !same && soon {
            ui.ctx().request_repaint_after(EMBEDDED_SEARCH_INTERVAL);
        } else if !same && self.wait.is_none() {
            self.asked = Some((text.to_owned(), revision, Instant::now()));
            let wake = ui.ctx().clone();
            let ask =
                SearchRequest { text: text.to_owned(), limit: MAX_EMBEDDED_RESULTS + 1, ..SearchRequest::default() };
            self.wait = Some(search.ask(ask, move || wake.request_repaint()));
            if self.answer.hits.is_empty() {
                self.said = "Searching…".to_owned();
            }
        }
        let Some(wait) = &self.wait else { return };
        match wait.try_recv() {
            Ok(Ok(mut answer)) => {
                if !answer.has_match() {
                    answer.hits.clear();
                }
                // The surrounding note matches only because it contains the query.
                answer.hits.retain(|hit| hit.note != around);
                answer.hits.truncate(MAX_EMBEDDED_RESULTS);
                self.answer = answer;
                self.said = format!("No results for “{text}”.");
            }
            Ok(Err(why)) => (self.answer, self.said) = (SearchAnswer::default(), why.to_string()),
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => {}
        }
        self.wait = None;
    }

    /// Draws the search. `around`: the note that contains it.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        search: &SearchService,
        text: &str,
        around: DocId,
        actions: &mut Vec<PageAction>,
    ) {
        let text = text.trim();
        self.refresh(ui, search, text, around);
        let colours = ThemeColors::of(ui);
        let count = match self.answer.hits.len() {
            0 => self.said.clone(),
            1 => format!("1 note fits “{text}”"),
            MAX_EMBEDDED_RESULTS => format!("The first {MAX_EMBEDDED_RESULTS} notes that fit “{text}”"),
            count => format!("{count} notes fit “{text}”"),
        };
        let (rect, response) =
            ui.allocate_exact_size(vec2(ui.available_width(), EMBEDDED_SEARCH_HEADER_HEIGHT), Sense::hover());
        let at = pos2(rect.left() + space::M, rect.center().y - 8.0);
        paint_clipped_text(ui, at, rect.width() - 2.0 * space::M, &count, &theme::caption(), colours.muted);
        set_accessible_name(&response, Role::Label, &count);
        let lines = self.answer.hits.len();
        #[allow(clippy::cast_precision_loss, reason = "at most fifty lines")]
        let all = lines as f32 * EMBEDDED_RESULT_HEIGHT;
        self.high = EMBEDDED_SEARCH_HEADER_HEIGHT + all;
        egui::ScrollArea::vertical().id_salt("hits").auto_shrink(false).show_rows(
            ui,
            EMBEDDED_RESULT_HEIGHT,
            lines,
            |ui, range| {
                for line in range {
                    self.line(ui, line, actions);
                }
            },
        );
    }

    fn line(&self, ui: &mut Ui, line: usize, actions: &mut Vec<PageAction>) {
        let colours = ThemeColors::of(ui);
        let Some(hit) = self.answer.hits.get(line) else { return };
        let (rect, response) =
            ui.allocate_exact_size(vec2(ui.available_width(), EMBEDDED_RESULT_HEIGHT), Sense::click());
        let rect = rect.shrink2(vec2(space::XS, 0.0));
        if response.hovered() {
            ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.paper));
        }
        widgets::paint_focus_ring(ui, &response, CONTROL_CORNER);
        set_accessible_name(&response, Role::Link, &format!("{}: {}", hit.title, hit.why.describe()));
        let width = rect.width() - 2.0 * space::S;
        let at = pos2(rect.left() + space::S, rect.top() + space::XS);
        let used = paint_clipped_text(ui, at, width, &hit.title, &theme::small(), colours.accent);
        let at = pos2(at.x + used + space::S, at.y + 2.0);
        paint_clipped_text(ui, at, rect.right() - at.x, &hit_location(hit), &theme::caption(), colours.muted);
        let (text, found) = hit.excerpt(&self.answer.terms, MAX_EMBEDDED_PASSAGE_BYTES);
        let mut job = highlighted_text(&text, &found, 12.0, 18.0, colours.ink, colours);
        job.wrap = TextWrapping::truncate_at_width(width);
        let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
        ui.painter().galley(pos2(rect.left() + space::S, rect.top() + 24.0), galley, colours.ink);
        if response.on_hover_text(text::untrusted_text::escape_block(&hit.why.describe()).into_owned()).clicked() {
            actions.push(PageAction::Hit(PendingJump::from_hit(hit, &self.answer.terms)));
        }
    }
}
