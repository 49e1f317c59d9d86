//! The list of forks: switch between them, adopt, compare and discard them.

use super::state_comparison::StateComparisonForm;
use super::{LIST_HEIGHT, SavedStatesDecision, SavedStatesForm, move_to};
use eframe::egui;
use egui::accesskit::Role;
use egui::{RichText, ScrollArea, Ui};
use engine::KernelStateMove;
use host::kernel_states::NoteStates;
use text::untrusted_text;
use ui::dialog_parts::{at_right, words};
use ui::theme::{self, ThemeColors, space};
use ui::widgets::{set_accessible_name, text_button};

impl SavedStatesForm {
    pub(super) fn show_forks(&mut self, ui: &mut Ui, states: &NoteStates) -> Option<SavedStatesDecision> {
        words(
            ui,
            "A fork continues with the variables as they are now, in a line of its own. What cells do there doesn’t \
             change the other lines.",
        );
        ui.add_space(space::M);
        let mut decision = None;
        // A note in which nothing has run has no forks yet and is on the first.
        let none = None;
        let first = (&states.branch, &none);
        let branches = states.branches.iter().chain(states.branches.is_empty().then_some(first));
        ScrollArea::vertical().id_salt("forks").max_height(LIST_HEIGHT).show(ui, |ui| {
            ui.set_width(ui.available_width());
            for (name, state) in branches {
                ui.push_id(name, |ui| {
                    decision = self.show_fork(ui, states, name, state.as_deref()).or(decision.take());
                });
            }
        });
        decision
    }

    fn show_fork(
        &mut self,
        ui: &mut Ui,
        states: &NoteStates,
        name: &str,
        state: Option<&str>,
    ) -> Option<SavedStatesDecision> {
        let colours = ThemeColors::of(ui);
        let is_current = *name == states.branch;
        let saved = state.and_then(|id| states.states.iter().find(|saved| saved.state == id));
        let about = match (state, saved) {
            (None, _) => "no variables".to_owned(),
            (Some(_), Some(saved)) => format!("after {}", saved.cell),
            (Some(_), None) => "after a run whose state was thinned".to_owned(),
        };
        let about = if is_current { format!("current, {about}") } else { about };
        let is_free = self.is_up_to_date();
        let mut decision = None;
        if self.asked_discard.as_deref() == Some(name) {
            words(ui, &format!("Discard {name}? Its variables are deleted permanently."));
            at_right(ui, |ui| {
                if text_button(ui, "Discard permanently", true).clicked() {
                    self.asked_discard = None;
                    decision = Some(move_to(KernelStateMove::Discard { name: name.to_owned() }));
                }
                if text_button(ui, "Keep", false).clicked() {
                    self.asked_discard = None;
                }
            });
            return decision;
        }
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = space::S;
            let shown = untrusted_text::escape_line(name);
            let mut text = RichText::new(shown).font(theme::body().font).color(colours.ink);
            if is_current {
                text = text.color(colours.accent);
            }
            let label = ui.add(egui::Label::new(text).truncate());
            set_accessible_name(&label, Role::Label, &format!("Fork {name}: {about}"));
            words(ui, &about);
            let wanted = egui::vec2(ui.available_width(), theme::size::MIN_CLICK_HEIGHT);
            let layout = egui::Layout::right_to_left(egui::Align::Center);
            ui.allocate_ui_with_layout(wanted, layout, |ui| {
                let button = |ui: &mut Ui, text: &str, spoken: &str| {
                    let response = ui.add_enabled_ui(is_free, |ui| text_button(ui, text, false)).inner;
                    set_accessible_name(&response, Role::Button, spoken);
                    response.clicked()
                };
                if is_current {
                    return;
                }
                if button(ui, "Discard", &format!("Discard {name}")) {
                    self.asked_discard = Some(name.to_owned());
                }
                if state.is_some()
                    && states.current.is_some()
                    && button(ui, "Compare", &format!("Compare {} with {name}", states.branch))
                {
                    let form = StateComparisonForm::of_forks(states, &states.branch, name, self.place());
                    self.compare(ui.ctx(), form);
                }
                if button(ui, "Adopt", &format!("Adopt {name}: {} takes its variables over", states.branch)) {
                    decision = Some(move_to(KernelStateMove::Adopt { name: name.to_owned() }));
                }
                if button(ui, "Switch", &format!("Switch to {name}")) {
                    decision = Some(move_to(KernelStateMove::Switch { name: name.to_owned() }));
                }
            });
        });
        decision
    }
}
