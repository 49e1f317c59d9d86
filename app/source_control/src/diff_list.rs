//! The unfolded diff below a file or a commit.

use super::hunk_buttons::{self, LineChoice};
use super::split_diff::SplitDiff;
use super::{PageScene, note_line};
use agent_ui::agent::diff_view::DiffView;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Sense, Stroke, StrokeKind, Ui, vec2};
use host::source_control::{DiffReading, DiffTarget, HunkAction};
use notebook::actions::PageAction;
use std::sync::Arc;
use store::TextHunk;
use ui::icons;
use ui::theme::{self, CARD_CORNER, ThemeColors, space};
use ui::widgets::{paint_clipped_text, set_accessible_name};

/// The views of a diff, kept until the diff or the width changes.
#[derive(Default)]
pub(crate) struct DiffList {
    made: Option<(Arc<DiffReading>, u32)>,
    files: Vec<ShownFileDiff>,
    /// The hunk whose lines are chosen; the choice ends with the diff.
    choice: Option<LineChoice>,
}

/// A file of the diff with its hunks and their heights.
struct ShownFileDiff {
    title: String,
    is_binary: bool,
    hunks: Vec<ShownHunk>,
}

/// A hunk, line by line or with both texts beside each other.
struct ShownHunk {
    view: DiffView,
    split: Option<SplitDiff>,
    height: f32,
}

impl ShownHunk {
    fn new(ui: &Ui, hunk: &TextHunk, width: f32) -> ShownHunk {
        let (view, split) = (DiffView::of_hunk(hunk), SplitDiff::for_width(hunk, width));
        let height = match &split {
            Some(split) => split.height(ui, width),
            None => view.height(ui, width),
        };
        ShownHunk { view, split, height }
    }
}

impl DiffList {
    /// Draws the diff of a target. That of a commit names its files; `allowed` is what can be done with hunks.
    pub(crate) fn show(
        &mut self,
        ui: &mut Ui,
        scene: &PageScene<'_>,
        target: &DiffTarget,
        allowed: &[HunkAction],
        actions: &mut Vec<PageAction>,
    ) {
        let has_titles = matches!(target, DiffTarget::Commit(_) | DiffTarget::Stash(_));
        ui.add_space(space::XS);
        let Some(reading) = scene.source.diff(scene.volume, target, scene.status.number) else {
            note_line(ui, icons::HOURGLASS, "Reading the changes…");
            return;
        };
        if let Some(why) = &reading.trouble {
            note_line(ui, icons::WARNING, why);
            return;
        }
        let width = ui.available_width();
        let is_made = |(made, at): &(Arc<DiffReading>, u32)| Arc::ptr_eq(made, &reading) && *at == width.to_bits();
        if !self.made.as_ref().is_some_and(is_made) {
            let shown = |file: &host::source_control::FileDiff| ShownFileDiff {
                title: file.path.clone(),
                is_binary: file.is_binary,
                hunks: file.hunks.iter().map(|hunk| ShownHunk::new(ui, hunk, width)).collect(),
            };
            if self.made.as_ref().is_none_or(|(made, _)| **made != *reading) {
                self.choice = None;
            }
            self.files = reading.files.iter().map(shown).collect();
            self.made = Some((reading.clone(), width.to_bits()));
        }
        if self.files.is_empty() {
            note_line(ui, icons::INFO, "No text has changed.");
        }
        for (place, file) in self.files.iter().enumerate() {
            if has_titles {
                let colours = ThemeColors::of(ui);
                let (rect, response) = ui.allocate_exact_size(vec2(width, 24.0), Sense::hover());
                paint_clipped_text(
                    ui,
                    rect.min + vec2(space::S, 2.0),
                    width,
                    &file.title,
                    &theme::small(),
                    colours.ink,
                );
                set_accessible_name(&response, Role::Label, &file.title);
            }
            if file.is_binary {
                note_line(ui, icons::INFO, "This file isn't text.");
            }
            let changed = reading.files.get(place).map_or(&[][..], |file| file.changed_lines.as_slice());
            for (number, ShownHunk { view, split, height }) in file.hunks.iter().enumerate() {
                let (rect, _) = ui.allocate_exact_size(vec2(width, height + 2.0 * space::XS), Sense::hover());
                ui.add_space(space::S);
                if ui.is_rect_visible(rect) {
                    let colours = ThemeColors::of(ui);
                    let stroke = Stroke::new(1.0, colours.line);
                    ui.painter().rect(rect, CARD_CORNER, colours.sunken, stroke, StrokeKind::Inside);
                    let response = ui.interact(rect, ui.scope_id().with(("hunk", place, number)), Sense::hover());
                    let at = rect.min + vec2(0.0, space::XS);
                    set_accessible_name(&response, Role::Label, &view.text());
                    match split {
                        Some(split) => {
                            split.paint(ui, at, rect.width());
                            ui.ctx().accesskit_node_builder(response.id, |node| node.set_description("side by side"));
                        }
                        None => view.paint(ui, at, rect.width()),
                    }
                }
                let lines = changed.get(number).map_or(&[][..], Vec::as_slice);
                let choice = (allowed, &mut self.choice);
                hunk_buttons::show(ui, scene, (target, &*reading), (number + 1, lines), choice, actions);
            }
        }
        if !reading.is_complete {
            note_line(ui, icons::INFO, "The diff is longer than what is shown here.");
        }
    }
}
