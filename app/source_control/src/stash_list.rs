//! Stashes: changes that were put aside.

use super::diff_list::DiffList;
use super::{PageScene, begin, note_line, section};
use eframe::egui::{Ui, vec2};
use host::source_control::{DiffTarget, GitRequest};
use notebook::actions::PageAction;
use ui::icons;
use ui::menus::{menu_item, menu_separator};
use ui::page_parts::{ListRow, text_field};
use ui::theme::space;
use ui::widgets::text_button;

/// Draws the field for a new stash, and the list.
pub(crate) fn show(
    ui: &mut Ui,
    scene: &PageScene<'_>,
    message: &mut String,
    (unfolded, diff): (&mut Option<DiffTarget>, &mut DiffList),
    actions: &mut Vec<PageAction>,
) {
    section(ui, &format!("Stashes ({})", scene.status.stashes.len()), &[]);
    if scene.can_change() && !scene.status.changes.is_empty() {
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing = vec2(space::S, space::XS);
            text_field(ui, message, "Description of the stash", 240.0);
            if text_button(ui, "Stash all changes", true).clicked() {
                begin(actions, scene.volume, GitRequest::StashPush(std::mem::take(message)));
            }
        });
        ui.add_space(space::S);
    }
    if scene.status.stashes.is_empty() {
        note_line(ui, icons::INFO, "Nothing is stashed. A stash puts all changes aside, to take them back later.");
    }
    for stash in &scene.status.stashes {
        let target = DiffTarget::Stash(stash.id.clone());
        let is_open = unfolded.as_ref() == Some(&target);
        let name = format!("Stash {}: {}", stash.number, stash.message);
        let menu = format!("Actions for stash {}", stash.number);
        let row =
            ListRow { icon: icons::ARCHIVE, title: &stash.message, detail: "", name: &name, is_open: Some(is_open) };
        let clicked = row.show(ui, scene.can_change().then_some(menu.as_str()), |ui| {
            let id = || stash.id.clone();
            if menu_item(ui, "Apply", None, true) {
                begin(actions, scene.volume, GitRequest::StashApply { id: id(), pop: false });
            }
            if menu_item(ui, "Apply and delete", None, true) {
                begin(actions, scene.volume, GitRequest::StashApply { id: id(), pop: true });
            }
            menu_separator(ui);
            if menu_item(ui, "Delete stash", None, true) {
                let request = GitRequest::StashDrop { id: id(), message: stash.message.clone() };
                begin(actions, scene.volume, request);
            }
        });
        if clicked {
            *unfolded = (!is_open).then(|| target.clone());
        }
        if is_open {
            diff.show(ui, scene, &target, &[], actions);
        }
    }
}
