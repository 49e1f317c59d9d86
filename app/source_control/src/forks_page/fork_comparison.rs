//! Two forks of a project side by side, file by file.

use super::super::note_line;
use super::chosen_changes::{change_word, view_of};
use super::fork_desk::{ForkDesk, ForkDetails};
use agent_ui::agent::diff_view::DiffView;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Rect, Sense, Stroke, StrokeKind, Ui, pos2, vec2};
use forks::ChangedForkFile;
use std::collections::BTreeMap;
use std::sync::Arc;
use ui::icons;
use ui::theme::{self, CARD_CORNER, ThemeColors, space};
use ui::widgets::{paint_clipped_text, set_accessible_name};

/// Height of a heading and of a line of text.
const LINE_HEIGHT: f32 = 24.0;
/// Maximum number of hunks of a side that are shown.
const MAX_SHOWN_HUNKS: usize = 100;

/// The comparison of the unfolded fork with another.
pub(super) struct ForkComparison {
    other: String,
    made: Option<(Arc<ForkDetails>, Arc<ForkDetails>, u32)>,
    files: Vec<ComparedFile>,
}

/// A file that at least one of the forks has changed.
struct ComparedFile {
    title: String,
    sides: [ComparedSide; 2],
}

/// What a fork made of a file.
struct ComparedSide {
    words: &'static str,
    hunks: Vec<(DiffView, f32)>,
}

impl ComparedSide {
    fn of(ui: &Ui, file: Option<&ChangedForkFile>, width: f32) -> ComparedSide {
        let Some(file) = file else { return ComparedSide { words: "unchanged", hunks: Vec::new() } };
        let words = match file.is_text {
            true => change_word(file.change),
            false => "changed, not text",
        };
        let hunks = file.hunks.iter().take(MAX_SHOWN_HUNKS).map(view_of);
        let hunks = hunks
            .map(|view| {
                let height = view.height(ui, width);
                (view, height)
            })
            .collect();
        ComparedSide { words, hunks }
    }

    fn height(&self) -> f32 {
        LINE_HEIGHT + self.hunks.iter().map(|(_, height)| height + 3.0 * space::XS).sum::<f32>()
    }

    /// Draws the side; `fork` and `title` name it for screen readers.
    fn paint(&self, ui: &Ui, rect: Rect, (fork, title): (&str, &str)) {
        let colours = ThemeColors::of(ui);
        let at = rect.min + vec2(space::XS, 2.0);
        paint_clipped_text(ui, at, rect.width(), self.words, &theme::caption(), colours.muted);
        let mut spoken = format!("{title} in the fork {fork}: {}\n", self.words);
        let mut top = rect.top() + LINE_HEIGHT;
        for (view, height) in &self.hunks {
            let card = Rect::from_min_size(pos2(rect.left(), top), vec2(rect.width(), height + 2.0 * space::XS));
            ui.painter().rect(card, CARD_CORNER, colours.sunken, Stroke::new(1.0, colours.line), StrokeKind::Inside);
            view.paint(ui, card.min + vec2(0.0, space::XS), card.width());
            spoken.push_str(&view.text());
            top = card.bottom() + space::XS;
        }
        let response = ui.interact(rect, ui.scope_id().with(("compared", fork, title)), Sense::hover());
        set_accessible_name(&response, Role::Label, &spoken);
    }
}

impl ForkComparison {
    /// Creates the comparison with this fork.
    pub(super) fn new(other: &str) -> ForkComparison {
        ForkComparison { other: other.to_owned(), made: None, files: Vec::new() }
    }

    /// Returns the name of the other fork.
    pub(super) fn other(&self) -> &str {
        &self.other
    }

    /// Draws the comparison.
    pub(super) fn show(&mut self, ui: &mut Ui, (own, details): (&str, &Arc<ForkDetails>), desk: &ForkDesk) {
        let other = match desk.details(&self.other) {
            None => return note_line(ui, icons::HOURGLASS, "Reading the changes of the other fork…"),
            Some(Err(why)) => return note_line(ui, icons::WARNING, &why),
            Some(Ok(other)) => other,
        };
        let width = ui.available_width();
        let side = ((width - space::M) / 2.0).max(60.0);
        let is_made = |(one, two, at): &(Arc<ForkDetails>, Arc<ForkDetails>, u32)| {
            Arc::ptr_eq(one, details) && Arc::ptr_eq(two, &other) && *at == width.to_bits()
        };
        if !self.made.as_ref().is_some_and(is_made) {
            self.files = compared_files(ui, [details, &other], side);
            self.made = Some((details.clone(), other, width.to_bits()));
        }
        if self.files.is_empty() {
            note_line(ui, icons::INFO, "Neither fork has changed anything.");
        }
        let places = |rect: Rect| {
            let one = Rect::from_min_size(rect.min, vec2(side, rect.height()));
            (one, Rect::from_min_max(pos2(rect.right() - side, rect.top()), rect.max))
        };
        if !self.files.is_empty() {
            let style = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 13.0), ..theme::small() };
            let (head, _) = ui.allocate_exact_size(vec2(width, LINE_HEIGHT + space::S), Sense::hover());
            let (one, two) = places(head);
            for (rect, name) in [(one, own), (two, self.other.as_str())] {
                let at = rect.min + vec2(space::XS, space::S);
                paint_clipped_text(ui, at, rect.width(), name, &style, ThemeColors::of(ui).ink);
                let response = ui.interact(rect, ui.scope_id().with(("compared fork", name)), Sense::hover());
                set_accessible_name(&response, Role::Heading, &format!("Fork {name}"));
            }
        }
        for file in &self.files {
            let (head, response) = ui.allocate_exact_size(vec2(width, LINE_HEIGHT + space::S), Sense::hover());
            set_accessible_name(&response, Role::Heading, &file.title);
            let at = head.min + vec2(0.0, space::S);
            paint_clipped_text(ui, at, width, &file.title, &theme::small(), ThemeColors::of(ui).ink);
            let height = file.sides.iter().map(ComparedSide::height).fold(0.0, f32::max);
            let (rect, _) = ui.allocate_exact_size(vec2(width, height), Sense::hover());
            if ui.is_rect_visible(rect) {
                let (one, two) = places(rect);
                file.sides[0].paint(ui, one, (own, &file.title));
                file.sides[1].paint(ui, two, (&self.other, &file.title));
            }
        }
    }
}

fn compared_files(ui: &Ui, [one, other]: [&ForkDetails; 2], width: f32) -> Vec<ComparedFile> {
    let mut paths: BTreeMap<&str, [Option<&ChangedForkFile>; 2]> = BTreeMap::new();
    for (at, details) in [one, other].into_iter().enumerate() {
        for file in &details.changes.files {
            paths.entry(&file.path).or_default()[at] = Some(file);
        }
    }
    let compared = |(path, [one, other]): (&str, [Option<&ChangedForkFile>; 2])| {
        let is_same = one.zip(other).is_some_and(|(one, other)| one.has_same_content(other));
        let title = if is_same { format!("{path} (the same in both)") } else { path.to_owned() };
        ComparedFile { title, sides: [one, other].map(|file| ComparedSide::of(ui, file, width)) }
    };
    paths.into_iter().map(compared).collect()
}
