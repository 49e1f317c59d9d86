//! Buttons below a hunk: to stage, unstage or discard it, or some lines of it.

use super::{PageScene, begin};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, CornerRadius, Pos2, Sense, Stroke, StrokeKind, Ui, pos2, vec2};
use host::source_control::{DiffReading, DiffTarget, FileChangeKind, GitRequest, HunkAction, HunkChoice};
use notebook::actions::PageAction;
use std::collections::BTreeSet;
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring, paint_hover_fill, set_accessible_name, text_button};

/// Maximum number of lines of a hunk that can be chosen one by one.
const MAX_CHOSEN_LINES: usize = 2_000;
/// Width and height of a line's box.
const BOX_SIZE: f32 = 14.0;
/// Height of a line that can be chosen.
const LINE_ROW_HEIGHT: f32 = 28.0;

/// The hunk whose lines the user chooses.
pub(crate) struct LineChoice {
    hunk: usize,
    lines: BTreeSet<usize>,
}

/// Returns what can be done with hunks of a file: nothing in a conflict, and a new or deleted file is discarded whole.
pub(crate) fn hunk_actions(kind: FileChangeKind, is_staged: bool) -> &'static [HunkAction] {
    match (kind, is_staged) {
        (FileChangeKind::Conflicted, _) => &[],
        (_, true) => &[HunkAction::Unstage],
        (FileChangeKind::Modified | FileChangeKind::Added | FileChangeKind::Renamed, false) => {
            &[HunkAction::Stage, HunkAction::Discard]
        }
        (FileChangeKind::Deleted | FileChangeKind::Untracked, false) => &[HunkAction::Stage],
    }
}

fn verb(action: HunkAction) -> &'static str {
    match action {
        HunkAction::Stage => "Stage",
        HunkAction::Unstage => "Unstage",
        HunkAction::Discard => "Discard",
    }
}

/// Draws the buttons of a hunk with its number in the file, from 1, and, while lines are chosen, the lines.
pub(crate) fn show(
    ui: &mut Ui,
    scene: &PageScene<'_>,
    (target, reading): (&DiffTarget, &DiffReading),
    (number, changed_lines): (usize, &[String]),
    (allowed, choice): (&[HunkAction], &mut Option<LineChoice>),
    actions: &mut Vec<PageAction>,
) {
    let path = match target {
        DiffTarget::Staged(path) | DiffTarget::Unstaged(path) => path,
        DiffTarget::Commit(_) | DiffTarget::Stash(_) | DiffTarget::Conflict(_) => return,
    };
    if allowed.is_empty() || !scene.can_change() {
        return;
    }
    if let Some(chosen) = choice.as_mut().filter(|chosen| chosen.hunk == number) {
        for (line, text) in changed_lines.iter().enumerate().take(MAX_CHOSEN_LINES) {
            show_line(ui, (number, line + 1), text, &mut chosen.lines);
        }
        ui.add_space(space::XS);
    }
    let lines = choice.as_ref().filter(|chosen| chosen.hunk == number).map(|chosen| chosen.lines.clone());
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = vec2(space::S, space::XS);
        for action in allowed {
            let verb = verb(*action);
            let (text, name) = match &lines {
                Some(_) => (format!("{verb} lines"), format!("{verb} lines of hunk {number}")),
                None => (format!("{verb} hunk"), format!("{verb} hunk {number}")),
            };
            let button = text_button(ui, &text, false);
            set_accessible_name(&button, Role::Button, &name);
            if !button.clicked() {
                continue;
            }
            if lines.as_ref().is_some_and(BTreeSet::is_empty) {
                actions.push(PageAction::Say("Choose at least one line first.".to_owned()));
                continue;
            }
            let lines = lines.iter().flatten().copied().collect();
            let choices = vec![HunkChoice { hunk: number, lines }];
            let request = GitRequest::Hunks { path: path.clone(), action: *action, choices, seen: reading.hash };
            begin(actions, scene.volume, request);
        }
        let (text, name) = match &lines {
            Some(_) => ("Choose no lines", format!("Choose no lines of hunk {number}")),
            None => ("Choose lines", format!("Choose lines of hunk {number}")),
        };
        if changed_lines.len() > 1 {
            let button = text_button(ui, text, false);
            set_accessible_name(&button, Role::Button, &name);
            if button.clicked() {
                *choice = lines.is_none().then(|| LineChoice { hunk: number, lines: BTreeSet::new() });
            }
        }
    });
    ui.add_space(space::S);
}

/// Paints a box, checked or not.
pub(crate) fn paint_box(ui: &Ui, middle: Pos2, is_on: bool) {
    let colours = ThemeColors::of(ui);
    let square = egui::Rect::from_center_size(middle, vec2(BOX_SIZE, BOX_SIZE));
    if is_on {
        ui.painter().rect_filled(square, CornerRadius::same(3), colours.accent);
        ui.painter().text(middle, Align2::CENTER_CENTER, icons::CHECK, theme::icon_font(12.0), colours.paper);
    } else {
        let stroke = Stroke::new(1.0, colours.muted);
        ui.painter().rect_stroke(square, CornerRadius::same(3), stroke, StrokeKind::Inside);
    }
}

/// Draws a changed line with a box.
fn show_line(ui: &mut Ui, (hunk, number): (usize, usize), text: &str, chosen: &mut BTreeSet<usize>) {
    let colours = ThemeColors::of(ui);
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), LINE_ROW_HEIGHT), Sense::hover());
    if !ui.is_rect_visible(rect) {
        return;
    }
    let response = ui.interact(rect, ui.scope_id().with(("line", hunk, number)), Sense::click());
    if response.clicked() && !chosen.remove(&number) {
        chosen.insert(number);
    }
    let is_on = chosen.contains(&number);
    let name = format!("Line {number}: {text}");
    let shown_name = text::untrusted_text::escape_line(&name).into_owned();
    response.widget_info(|| egui::WidgetInfo::selected(Role::CheckBox, true, is_on, &shown_name));
    paint_hover_fill(ui, &response);
    paint_box(ui, pos2(rect.left() + space::L, rect.center().y), is_on);
    let colour = if text.starts_with('+') { colours.ok } else { colours.bad };
    let left = rect.left() + space::XL;
    paint_clipped_text(ui, pos2(left, rect.center().y - 10.0), rect.right() - left, text, &theme::code(), colour);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
}
