//! Searches that a note holds: below a code block in the language `query` stand the notes that fit it now, with the
//! words that were found marked. They follow the index and are never waited for.

use super::page::Action;
use super::search::{self, Aim};
use eframe::egui;
use egui::accesskit::Role;
use egui::text::TextWrapping;
use egui::{Sense, Ui, pos2, vec2};
use host::search::{Answer, Ask, Search};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};
use store::DocId;
use ui::controls::{self, clipped, named};
use ui::tokens::{self, CORNER, Colours, space};

/// As many notes are shown; the search itself shows more.
const SHOWN: usize = 50;
const HEAD: f32 = 32.0;
const LINE: f32 = 48.0;
/// Bytes of a passage in a line.
const SHORT: usize = 160;
/// While notes change, it is asked again at most this often.
const EVERY: Duration = Duration::from_secs(1);

/// A search in a note.
#[derive(Default)]
pub(super) struct Hits {
    /// What was asked, of which state of the index, and when.
    asked: Option<(String, u64, Instant)>,
    wait: Option<Receiver<Result<Answer, String>>>,
    answer: Answer,
    /// What is said in the place of hits.
    said: String,
    /// How high all of it is.
    pub(super) high: f32,
}

impl Hits {
    fn refresh(&mut self, ui: &Ui, search: &Search, text: &str, around: DocId) {
        let revision = search.freshness().revision;
        let same = self.asked.as_ref().is_some_and(|(asked, at, _)| asked == text && *at == revision);
        let soon = self.asked.as_ref().is_some_and(|(asked, _, when)| asked == text && when.elapsed() < EVERY);
        if text.is_empty() {
            (self.asked, self.wait, self.answer) = (None, None, Answer::default());
            self.said = "Write what to search for.".to_owned();
        } else if !same && soon {
            ui.ctx().request_repaint_after(EVERY);
        } else if !same && self.wait.is_none() {
            self.asked = Some((text.to_owned(), revision, Instant::now()));
            let wake = ui.ctx().clone();
            let ask = Ask { text: text.to_owned(), limit: SHOWN + 1, ..Ask::default() };
            self.wait = Some(search.ask(ask, move || wake.request_repaint()));
            if self.answer.hits.is_empty() {
                self.said = "Looking…".to_owned();
            }
        }
        let Some(wait) = &self.wait else { return };
        match wait.try_recv() {
            Ok(Ok(mut answer)) => {
                if !answer.fits() {
                    answer.hits.clear();
                }
                // The note around it has the words because they stand in the query.
                answer.hits.retain(|hit| hit.note != around);
                answer.hits.truncate(SHOWN);
                self.answer = answer;
                self.said = format!("Nothing fits “{text}”.");
            }
            Ok(Err(why)) => (self.answer, self.said) = (Answer::default(), why),
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => {}
        }
        self.wait = None;
    }

    /// Draws it. `around`: the note that holds it.
    pub(super) fn show(&mut self, ui: &mut Ui, search: &Search, text: &str, around: DocId, actions: &mut Vec<Action>) {
        let text = text.trim();
        self.refresh(ui, search, text, around);
        let colours = Colours::of(ui);
        let count = match self.answer.hits.len() {
            0 => self.said.clone(),
            1 => format!("1 note fits “{text}”"),
            SHOWN => format!("The first {SHOWN} notes that fit “{text}”"),
            count => format!("{count} notes fit “{text}”"),
        };
        let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), HEAD), Sense::hover());
        let at = pos2(rect.left() + space::M, rect.center().y - 8.0);
        clipped(ui, at, rect.width() - 2.0 * space::M, &count, &tokens::caption(), colours.muted);
        named(&response, Role::Label, &count);
        let lines = self.answer.hits.len();
        #[allow(clippy::cast_precision_loss, reason = "at most fifty lines")]
        let all = lines as f32 * LINE;
        self.high = HEAD + all;
        egui::ScrollArea::vertical().id_salt("hits").auto_shrink(false).show_rows(ui, LINE, lines, |ui, range| {
            for line in range {
                self.line(ui, line, actions);
            }
        });
    }

    fn line(&self, ui: &mut Ui, line: usize, actions: &mut Vec<Action>) {
        let colours = Colours::of(ui);
        let Some(hit) = self.answer.hits.get(line) else { return };
        let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), LINE), Sense::click());
        let rect = rect.shrink2(vec2(space::XS, 0.0));
        if response.hovered() {
            ui.painter().rect_filled(rect, CORNER, colours.hover(colours.paper));
        }
        controls::ring(ui, &response, CORNER);
        named(&response, Role::Link, &format!("{}: {}", hit.title, hit.why.sentence()));
        let width = rect.width() - 2.0 * space::S;
        let at = pos2(rect.left() + space::S, rect.top() + space::XS);
        let used = clipped(ui, at, width, &hit.title, &tokens::small(), colours.accent);
        let at = pos2(at.x + used + space::S, at.y + 2.0);
        clipped(ui, at, rect.right() - at.x, &search::place(hit), &tokens::caption(), colours.muted);
        let (text, found) = hit.excerpt(&self.answer.terms, SHORT);
        let mut job = search::marked(&text, &found, 12.0, 18.0, colours.ink, colours);
        job.wrap = TextWrapping::truncate_at_width(width);
        let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
        ui.painter().galley(pos2(rect.left() + space::S, rect.top() + 24.0), galley, colours.ink);
        if response.on_hover_text(hit.why.sentence()).clicked() {
            actions.push(Action::Hit(Aim::of(hit, &self.answer.terms)));
        }
    }
}
