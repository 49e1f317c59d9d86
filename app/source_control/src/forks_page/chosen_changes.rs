//! What a fork has changed: files with their hunks, each with a box to choose it and the steps that made it.

use super::super::hunk_buttons::paint_box;
use super::super::note_line;
use super::fork_desk::ForkDetails;
use agent_ui::agent::diff_view::DiffView;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Sense, Stroke, StrokeKind, Ui, pos2, vec2};
use forks::{ChangeMaker, ChangeSelection, ChangedForkFile, FileMakers, ForkChanges, ForkFileChange, ForkHunk};
use notebook::actions::PageAction;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::TextHunk;
use ui::icons;
use ui::theme::{self, CARD_CORNER, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring, paint_hover_fill, set_accessible_name, text_button};

/// Maximum number of hunks of a file that are shown.
const MAX_SHOWN_HUNKS: usize = 200;
/// Maximum number of steps that are named below a hunk.
const MAX_NAMED_STEPS: usize = 3;

/// The changes of a fork, and which of them are left out of an adoption.
#[derive(Default)]
pub(super) struct ForkChangeList {
    /// Paths with the numbers of hunks, from 1; 0 for a file without hunks.
    left_out: BTreeSet<(String, usize)>,
    made: Option<(Arc<ForkDetails>, u32)>,
    /// The hunks of each file with their heights.
    views: Vec<Vec<(DiffView, f32)>>,
}

/// Returns the view of a hunk.
pub(super) fn view_of(hunk: &ForkHunk) -> DiffView {
    let number = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
    DiffView::of_hunk(&TextHunk {
        removed: hunk.removed.clone(),
        inserted: hunk.added.clone(),
        lines: Some((number(hunk.old_line), number(hunk.new_line))),
        ..TextHunk::default()
    })
}

/// Returns how a file has changed, as a word.
pub(super) fn change_word(change: ForkFileChange) -> &'static str {
    match change {
        ForkFileChange::Added => "new",
        ForkFileChange::Modified => "changed",
        ForkFileChange::Deleted => "deleted",
    }
}

/// Returns the numbers of a file's parts that can be chosen.
fn parts(file: &ChangedForkFile) -> Vec<usize> {
    // A new or deleted file is adopted as a whole.
    match file.change {
        ForkFileChange::Modified if !file.hunks.is_empty() => file.hunks.iter().map(|hunk| hunk.number).collect(),
        ForkFileChange::Modified | ForkFileChange::Added | ForkFileChange::Deleted => vec![0],
    }
}

impl ForkChangeList {
    /// Returns whether nothing is left out.
    pub(super) fn is_everything(&self) -> bool {
        self.left_out.is_empty()
    }

    fn is_chosen(&self, path: &str, part: usize) -> bool {
        !self.left_out.contains(&(path.to_owned(), part))
    }

    /// Returns the chosen changes; `None` if nothing is chosen.
    pub(super) fn selection(&self, changes: &ForkChanges) -> Option<ChangeSelection> {
        let mut selection = ChangeSelection::default();
        if self.is_everything() {
            return Some(selection);
        }
        for file in &changes.files {
            let all = parts(file);
            let chosen: Vec<usize> = all.iter().copied().filter(|part| self.is_chosen(&file.path, *part)).collect();
            if chosen.len() == all.len() {
                selection.add(&file.path, None);
            } else {
                chosen.into_iter().for_each(|part| selection.add(&file.path, Some(part)));
            }
        }
        selection.is_partial().then_some(selection)
    }

    /// Draws the changes.
    pub(super) fn show(&mut self, ui: &mut Ui, details: &Arc<ForkDetails>, actions: &mut Vec<PageAction>) {
        let width = ui.available_width();
        let is_made = |(made, at): &(Arc<ForkDetails>, u32)| Arc::ptr_eq(made, details) && *at == width.to_bits();
        if !self.made.as_ref().is_some_and(is_made) {
            let views = |file: &ChangedForkFile| {
                let hunks = file.hunks.iter().take(MAX_SHOWN_HUNKS);
                hunks
                    .map(view_of)
                    .map(|view| {
                        let height = view.height(ui, width);
                        (view, height)
                    })
                    .collect()
            };
            self.views = details.changes.files.iter().map(views).collect();
            self.made = Some((details.clone(), width.to_bits()));
        }
        if details.changes.files.is_empty() {
            note_line(ui, icons::INFO, "Nothing has changed in this fork.");
        }
        for (at, file) in details.changes.files.iter().enumerate() {
            self.file(ui, at, file, &details.makers, actions);
        }
        for (path, why) in &details.changes.skipped {
            note_line(ui, icons::WARNING, &format!("{path} can't be adopted: {why}"));
        }
    }

    fn file(
        &mut self,
        ui: &mut Ui,
        at: usize,
        file: &ChangedForkFile,
        makers: &[ChangeMaker],
        actions: &mut Vec<PageAction>,
    ) {
        let makers = FileMakers::of(makers, &file.path);
        let title = format!("{}, {}", file.path, change_word(file.change));
        let all = parts(file);
        let is_chosen = all.iter().any(|part| self.is_chosen(&file.path, *part));
        ui.add_space(space::S);
        if check_row(ui, ("file", at, 0), &title, &format!("Adopt {}", file.path), is_chosen) {
            for part in &all {
                let key = (file.path.clone(), *part);
                if is_chosen {
                    self.left_out.insert(key)
                } else {
                    self.left_out.remove(&key)
                };
            }
        }
        if let Some(why) = file.runs_because {
            note_line(ui, icons::WARNING, &format!("Look closely: {why}"));
        }
        if !file.is_text {
            note_line(ui, icons::INFO, "This file isn't text. It's adopted as a whole.");
            steps(ui, &makers.of_file(), actions);
        }
        let has_boxes = all.len() > 1;
        for (number, hunk) in file.hunks.iter().take(MAX_SHOWN_HUNKS).enumerate() {
            let Some((view, height)) = self.views.get(at).and_then(|views| views.get(number)) else { continue };
            if has_boxes {
                let is_chosen = self.is_chosen(&file.path, hunk.number);
                let title = format!("Hunk {}", hunk.number);
                let name = format!("Adopt hunk {} of {}", hunk.number, file.path);
                if check_row(ui, ("hunk", at, hunk.number), &title, &name, is_chosen) {
                    let key = (file.path.clone(), hunk.number);
                    if is_chosen {
                        self.left_out.insert(key)
                    } else {
                        self.left_out.remove(&key)
                    };
                }
            }
            paint_hunk(ui, view, *height, ("fork's hunk", at, number));
            steps(ui, &makers.of_hunk(hunk), actions);
        }
        if file.hunks.len() > MAX_SHOWN_HUNKS {
            let left = file.hunks.len() - MAX_SHOWN_HUNKS;
            note_line(
                ui,
                icons::INFO,
                &format!("{} more. They are adopted with the file.", ui::text::counted(left, "hunk")),
            );
        }
    }
}

/// Draws a hunk as a card.
fn paint_hunk(ui: &mut Ui, view: &DiffView, height: f32, id: (&str, usize, usize)) {
    let width = ui.available_width();
    let (rect, _) = ui.allocate_exact_size(vec2(width, height + 2.0 * space::XS), Sense::hover());
    ui.add_space(space::XS);
    if !ui.is_rect_visible(rect) {
        return;
    }
    let colours = ThemeColors::of(ui);
    ui.painter().rect(rect, CARD_CORNER, colours.sunken, Stroke::new(1.0, colours.line), StrokeKind::Inside);
    let response = ui.interact(rect, ui.scope_id().with(id), Sense::hover());
    view.paint(ui, rect.min + vec2(0.0, space::XS), rect.width());
    set_accessible_name(&response, Role::Label, &view.text());
}

/// Draws the steps that made a change, which lead to the run's timeline.
fn steps(ui: &mut Ui, makers: &[&ChangeMaker], actions: &mut Vec<PageAction>) {
    if makers.is_empty() {
        note_line(ui, icons::INFO, "No recorded step made this change.");
        return;
    }
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = vec2(space::S, space::XS);
        for maker in makers.iter().take(MAX_NAMED_STEPS) {
            let words =
                if maker.what.is_empty() { maker.tool.clone() } else { format!("{} {}", maker.tool, maker.what) };
            let button = text_button(ui, &words, false);
            set_accessible_name(&button, Role::Button, &format!("Show the step: {words}"));
            if button.clicked()
                && let Ok(step) = maker.step.parse()
            {
                actions.push(PageAction::ShowStep(maker.run, step));
            }
        }
    });
    ui.add_space(space::XS);
}

/// Draws a row with a box. Returns whether it was clicked.
fn check_row(ui: &mut Ui, id: (&str, usize, usize), title: &str, name: &str, is_on: bool) -> bool {
    let colours = ThemeColors::of(ui);
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT), Sense::hover());
    let response = ui.interact(rect, ui.scope_id().with(id), Sense::click());
    let spoken = text::untrusted_text::escape_line(name).into_owned();
    response.widget_info(|| egui::WidgetInfo::selected(Role::CheckBox, true, is_on, &spoken));
    if !ui.is_rect_visible(rect) {
        return response.clicked();
    }
    paint_hover_fill(ui, &response);
    paint_box(ui, pos2(rect.left() + space::M, rect.center().y), is_on);
    let left = rect.left() + 28.0;
    paint_clipped_text(
        ui,
        pos2(left, rect.center().y - 10.0),
        rect.right() - left,
        title,
        &theme::small(),
        colours.ink,
    );
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    response.clicked()
}
