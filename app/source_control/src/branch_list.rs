//! Branches and tags, each with a menu of what can be done with it.

use super::form_request::FormRequest;
use super::{PageScene, begin, note_line, section};
use eframe::egui;
use egui::{Ui, vec2};
use host::source_control::{BranchInfo, GitRequest};
use notebook::actions::PageAction;
use ui::icons;
use ui::menus::{menu_item, menu_separator};
use ui::page_parts::{ListRow, text_field};
use ui::theme::space;
use ui::widgets::text_button;

/// A tag that is about to be created.
#[derive(Default)]
pub(crate) struct NewTag {
    name: String,
    message: String,
    pub(crate) request: FormRequest,
}

/// Draws the lists.
pub(crate) fn show(ui: &mut Ui, scene: &PageScene<'_>, new: &mut Option<NewTag>, actions: &mut Vec<PageAction>) {
    let status = scene.status;
    section(ui, &format!("Local branches ({})", status.branches.len()), &[]);
    for branch in &status.branches {
        branch_row(ui, scene, branch, actions);
    }
    if !status.remote_branches.is_empty() {
        section(ui, &format!("Remote branches ({})", status.remote_branches.len()), &[]);
        for branch in &status.remote_branches {
            branch_row(ui, scene, branch, actions);
        }
    }
    let can_tag = scene.can_change() && status.branch.head.is_some();
    let title = format!("Tags ({})", status.tags.len());
    if section(ui, &title, if can_tag { &["New tag…"] } else { &[] }).is_some() {
        *new = Some(NewTag::default());
    }
    tag_form(ui, scene, new, actions);
    if status.tags.is_empty() {
        note_line(ui, icons::INFO, "No tags yet");
    }
    for tag in &status.tags {
        let menu = format!("Actions for tag {}", tag.name);
        let name = format!("Tag {}: {}", tag.name, tag.summary);
        let row = ListRow { icon: icons::TAG, title: &tag.name, detail: &tag.summary, name: &name, is_open: None };
        row.show(ui, scene.can_change().then_some(menu.as_str()), |ui| {
            if menu_item(ui, "Delete tag", None, true) {
                begin(actions, scene.volume, GitRequest::DeleteTag { name: tag.name.clone(), at: tag.object.clone() });
            }
        });
    }
}

fn branch_row(ui: &mut Ui, scene: &PageScene<'_>, branch: &BranchInfo, actions: &mut Vec<PageAction>) {
    let current = scene.status.branch.branch.as_deref();
    let name = match branch.current {
        true => format!("Current branch {}: {}", branch.name, branch.summary),
        false => format!("Branch {}: {}", branch.name, branch.summary),
    };
    let icon = if branch.current { icons::CHECK } else { icons::BRANCH };
    let menu = format!("Actions for {}", branch.name);
    let has_menu = scene.can_change() && !branch.current;
    let row = ListRow { icon, title: &branch.name, detail: &branch.summary, name: &name, is_open: None };
    row.show(ui, has_menu.then_some(menu.as_str()), |ui| {
        let mut choose = |request: GitRequest| begin(actions, scene.volume, request);
        // Git makes a local branch that follows the remote one.
        let local = if branch.remote { branch.name.split_once('/').map_or("", |(_, name)| name) } else { &branch.name };
        if menu_item(ui, "Switch to it", None, true) {
            choose(GitRequest::Switch { branch: local.to_owned(), create: false });
        }
        if let Some(current) = current {
            if menu_item(ui, &format!("Merge into {current}"), None, true) {
                choose(GitRequest::Merge(branch.name.clone()));
            }
            if menu_item(ui, &format!("Rebase {current} onto it"), None, true) {
                choose(GitRequest::Rebase(branch.name.clone()));
            }
        }
        if !branch.remote {
            menu_separator(ui);
            if menu_item(ui, "Delete branch", None, true) {
                choose(GitRequest::DeleteBranch { name: branch.name.clone(), at: branch.id.clone() });
            }
        }
    });
}

/// Draws the fields for a new tag.
fn tag_form(ui: &mut Ui, scene: &PageScene<'_>, new: &mut Option<NewTag>, actions: &mut Vec<PageAction>) {
    let Some(typed) = new else { return };
    let mut is_canceled = false;
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = vec2(space::S, space::XS);
        let name = text_field(ui, &mut typed.name, "Name of the tag", 140.0);
        if !std::mem::replace(&mut typed.request.has_focus, true) {
            name.request_focus();
        }
        if name.changed() {
            typed.request.clear_error();
        }
        let message = text_field(ui, &mut typed.message, "Message of the tag, if it has one", 240.0);
        let is_entered =
            (name.lost_focus() || message.lost_focus()) && ui.input(|input| input.key_pressed(egui::Key::Enter));
        if text_button(ui, "Create tag", true).clicked() || is_entered {
            let (name, message) = (typed.name.trim().to_owned(), typed.message.trim().to_owned());
            match name.is_empty() {
                true => actions.push(PageAction::Say("Name the tag first.".to_owned())),
                false => {
                    typed.request.send(ui, scene, GitRequest::CreateTag { name, message, at: None }, actions);
                }
            }
        }
        is_canceled = text_button(ui, "No tag", false).clicked();
    });
    typed.request.show_error(ui);
    ui.add_space(space::S);
    if is_canceled {
        *new = None;
    }
}
