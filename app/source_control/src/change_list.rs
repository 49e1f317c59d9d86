//! A list of changed files, each with its buttons and, unfolded, its diff.

use super::diff_list::DiffList;
use super::hunk_buttons::hunk_actions;
use super::{PageScene, ROW_HEIGHT, begin, change_color, conflict_list, paint_row};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Align2, Layout, Rect, Sense, Ui, UiBuilder, pos2, vec2};
use host::source_control::{DiffTarget, FileChange, FileChangeKind, GitRequest};
use notebook::actions::PageAction;
use ui::icons;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{icon_button, paint_clipped_text, set_accessible_name};

/// Returns the paths that staging or unstaging a change concerns.
pub(crate) fn all_paths(change: &FileChange) -> Vec<String> {
    change.old_path.iter().chain([&change.path]).cloned().collect()
}

/// Draws the list.
pub(crate) fn show(
    ui: &mut Ui,
    scene: &PageScene<'_>,
    changes: &[&FileChange],
    is_staged: bool,
    (unfolded, diff): (&mut Option<DiffTarget>, &mut DiffList),
    actions: &mut Vec<PageAction>,
) {
    for change in changes {
        let Some(kind) = (if is_staged { change.staged } else { change.unstaged }) else { continue };
        let is_in_conflict = kind == FileChangeKind::Conflicted;
        let target = match is_staged {
            true => DiffTarget::Staged(change.path.clone()),
            false if is_in_conflict => DiffTarget::Conflict(change.path.clone()),
            false => DiffTarget::Unstaged(change.path.clone()),
        };
        let is_open = unfolded.as_ref() == Some(&target);
        let (row, _) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::hover());
        if ui.is_rect_visible(row) {
            let left = buttons(ui, scene, row, change, (kind, is_staged), actions);
            let rect = row.with_max_x(left - space::S);
            // Without Git, there's no diff to unfold.
            let sense = if scene.is_github() { Sense::hover() } else { Sense::click() };
            let response = ui.interact(rect, ui.scope_id().with(("change", &change.path, is_staged)), sense);
            if response.clicked() {
                *unfolded = (!is_open).then(|| target.clone());
            }
            let renamed = change.old_path.as_ref().filter(|_| is_staged);
            let shown = match renamed {
                Some(old) => format!("{old} → {}", change.path),
                None => change.path.clone(),
            };
            if scene.is_github() {
                set_accessible_name(&response, Role::Label, &format!("{shown}, {}", kind.word()));
            } else {
                let place = if is_staged { "staged" } else { "not staged" };
                set_accessible_name(&response, Role::Button, &format!("{shown}, {}, {place}", kind.word()));
                ui.ctx().accesskit_node_builder(response.id, |node| node.set_expanded(is_open));
            }
            paint_row(ui, &response, is_open);
            let colours = ThemeColors::of(ui);
            let at = pos2(rect.left() + space::M, rect.center().y);
            let font = egui::FontId::new(13.0, theme::code().font.family);
            ui.painter().text(at, Align2::CENTER_CENTER, kind.letter(), font, change_color(kind, colours));
            let at = pos2(rect.left() + 28.0, rect.center().y - 10.0);
            paint_clipped_text(ui, at, rect.width() - 28.0 - space::S, &shown, &theme::small(), colours.ink);
        }
        if is_open && is_in_conflict {
            conflict_list::show(ui, scene, &change.path, actions);
        } else if is_open {
            diff.show(ui, scene, &target, hunk_actions(kind, is_staged), actions);
        }
    }
}

/// Draws the buttons of a changed file. Returns where they begin.
fn buttons(
    ui: &mut Ui,
    scene: &PageScene<'_>,
    row: Rect,
    change: &FileChange,
    (kind, is_staged): (FileChangeKind, bool),
    actions: &mut Vec<PageAction>,
) -> f32 {
    let path = &change.path;
    let file = scene.session.volume(scene.volume).and_then(|volume| volume.files.get(path)).map(|row| row.id);
    let place = row.shrink2(vec2(0.0, (row.height() - size::MIN_CLICK_HEIGHT) / 2.0));
    // Rows come and go while one's button is pressed.
    let builder = UiBuilder::new().max_rect(place).scope_id(ui.scope_id().with(("buttons", path, is_staged)));
    let mut child = ui.new_child(builder.layout(Layout::right_to_left(Align::Center)));
    child.spacing_mut().item_spacing.x = space::XS;
    let mut left = row.right();
    if scene.can_change() && !scene.is_github() {
        let (icon, verb) = if is_staged { (icons::MINUS, "Unstage") } else { (icons::PLUS, "Stage") };
        if icon_button(&mut child, icon, &format!("{verb} {path}"), None).clicked() {
            let files = all_paths(change);
            let request = match is_staged {
                true => GitRequest::Unstage(files),
                false => GitRequest::Stage(vec![path.clone()]),
            };
            begin(actions, scene.volume, request);
        }
        if !is_staged && kind != FileChangeKind::Conflicted {
            let name = format!("Discard changes in {path}");
            if icon_button(&mut child, icons::UNDO, &name, None).clicked() {
                match file.filter(|_| kind == FileChangeKind::Untracked) {
                    Some(file) => actions.push(PageAction::Delete(file)),
                    None => begin(actions, scene.volume, GitRequest::Discard(vec![path.clone()])),
                }
            }
        }
        left = child.min_rect().left();
    }
    if let Some(file) = file {
        if icon_button(&mut child, icons::NOTE, &format!("Open {path}"), None).clicked() {
            actions.push(PageAction::Open(file));
        }
        left = child.min_rect().left();
    }
    left
}
