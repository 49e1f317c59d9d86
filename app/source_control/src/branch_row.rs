//! The row of the branch: its menu, ahead and behind, and the buttons for the remote.

use super::form_request::FormRequest;
use super::{PageScene, begin, branch_label, branch_name};
use eframe::egui;
use egui::{Align, Layout, Ui, vec2};
use host::source_control::GitRequest;
use notebook::actions::PageAction;
use ui::icons;
use ui::menus::{menu_below, menu_choice, menu_item, menu_separator};
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{icon_button, set_accessible_name, text_button};

/// Maximum number of branches in the menu. `git switch` reaches the rest.
const MAX_LISTED_BRANCHES: usize = 40;

/// The name of a branch that is about to be created.
#[derive(Default)]
pub(crate) struct NewBranch {
    name: String,
    pub(crate) request: FormRequest,
}

/// Draws the row.
pub(crate) fn show(ui: &mut Ui, scene: &PageScene<'_>, new: &mut Option<NewBranch>, actions: &mut Vec<PageAction>) {
    let branch = &scene.status.branch;
    ui.horizontal(|ui| {
        ui.set_min_height(size::MIN_CLICK_HEIGHT);
        let button = text_button(ui, &branch_label(branch), false);
        set_accessible_name(&button, egui::accesskit::Role::Button, &branch_name(branch));
        menu_below(&button, "Branches", |ui| {
            egui::ScrollArea::vertical().max_height(320.0).show(ui, |ui| {
                for one in scene.status.branches.iter().take(MAX_LISTED_BRANCHES) {
                    if menu_choice(ui, &one.name, one.current) && !one.current {
                        begin(actions, scene.volume, GitRequest::Switch { branch: one.name.clone(), create: false });
                    }
                }
            });
            menu_separator(ui);
            if menu_item(ui, "New branch…", None, scene.can_change()) {
                *new = Some(NewBranch::default());
            }
        });
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            ui.spacing_mut().item_spacing.x = space::S;
            let mut exchange = |request: GitRequest| match scene.status.has_remote {
                true => begin(actions, scene.volume, request),
                false => actions.push(PageAction::Say(
                    "This repository has no remote. `git remote add origin URL` adds one.".to_owned(),
                )),
            };
            if text_button(ui, "Push", false).clicked() {
                exchange(GitRequest::Push);
            }
            let choice = icon_button(ui, icons::CARET_DOWN, "Ways to pull", None);
            menu_below(&choice, "Ways to pull", |ui| {
                for (name, request) in
                    [("Pull and merge", GitRequest::PullMerge), ("Pull and rebase", GitRequest::PullRebase)]
                {
                    if menu_item(ui, name, None, scene.can_change()) {
                        exchange(request);
                    }
                }
            });
            for (name, request) in [("Pull", GitRequest::Pull), ("Fetch", GitRequest::Fetch)] {
                if text_button(ui, name, false).clicked() {
                    exchange(request);
                }
            }
        });
    });
    ui.add_space(space::M);
    let Some(typed) = new else { return };
    let mut is_canceled = false;
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = vec2(space::S, space::XS);
        let style = theme::small();
        let hint = egui::RichText::new("Name of the new branch").font(style.font.clone());
        let field = egui::TextEdit::singleline(&mut typed.name)
            .id_salt("new branch")
            .font(style.font)
            .hint_text(hint.color(ThemeColors::of(ui).muted))
            .margin(egui::Margin::symmetric(8, 6))
            .desired_width(200.0_f32.min(ui.available_width() * 0.5));
        let response = ui.add(field).accessible_name("Name of the new branch");
        if !std::mem::replace(&mut typed.request.has_focus, true) {
            response.request_focus();
        }
        if response.changed() {
            typed.request.clear_error();
        }
        let is_entered = response.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
        if text_button(ui, "Create branch", true).clicked() || is_entered {
            let branch = typed.name.trim().to_owned();
            match branch.is_empty() {
                true => actions.push(PageAction::Say("Name the branch first.".to_owned())),
                false => typed.request.send(ui, scene, GitRequest::Switch { branch, create: true }, actions),
            }
        }
        is_canceled = text_button(ui, "Don't create", false).clicked();
    });
    typed.request.show_error(ui);
    ui.add_space(space::M);
    if is_canceled {
        *new = None;
    }
}
