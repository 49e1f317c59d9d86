//! Compares the variables of two saved states of a note: the choice of states, and tables of the differences.

use eframe::egui;
use egui::accesskit::Role;
use egui::{Grid, RichText, ScrollArea, Ui};
use host::kernel_states::{ComparedValue, LoneVariable, NoteStates, StateComparison, compare_states};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use store::DocId;
use text::untrusted_text;
use ui::dialog_parts::{at_right, head, words};
use ui::theme::{self, ThemeColors, space};
use ui::widgets::{set_accessible_name, text_button};

/// Maximum height of the tables before they scroll, in points.
const TABLES_HEIGHT: f32 = 320.0;
/// Width of the column with the variables' names, in points.
const NAME_WIDTH: f32 = 140.0;
/// Width of the drop-down list of states, in points.
const CHOICE_WIDTH: f32 = 240.0;
/// Number of displayed digits of a state's ID, as on the command line.
const SHOWN_ID_CHARS: usize = 10;

/// What a comparison needs: the program that compares, the workspace folder and the note.
pub(super) type StatesPlace = (PathBuf, PathBuf, DocId);

/// A state that can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ComparedState {
    /// The fork's name, or the cell and the state's ID.
    title: String,
    /// The state's ID.
    state: String,
}

/// A running comparison. Dropping it stops the comparison.
struct RunningComparison {
    is_stopped: Arc<AtomicBool>,
    answer: Receiver<anyhow::Result<StateComparison>>,
}

impl Drop for RunningComparison {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Release);
    }
}

/// The comparison of two states: the choices, and the result.
pub(super) struct StateComparisonForm {
    place: StatesPlace,
    choices: Vec<ComparedState>,
    /// Indices of the two compared states in `choices`.
    chosen: [usize; 2],
    running: Option<RunningComparison>,
    found: Option<anyhow::Result<StateComparison>>,
}

impl StateComparisonForm {
    /// Returns the states to choose from: forks that have a state, then all states, newest first.
    pub(super) fn choices_of(states: &NoteStates) -> Vec<ComparedState> {
        let forks = states.branches.iter().filter_map(|(name, state)| {
            state.as_ref().map(|state| ComparedState { title: name.clone(), state: state.clone() })
        });
        let saved = states.states.iter().rev().map(|saved| {
            let id = saved.state.get(..SHOWN_ID_CHARS).unwrap_or(&saved.state);
            let title = saved.name.as_ref().map_or_else(
                || format!("After {} ({id})", saved.cell),
                |name| format!("{name}, after {} ({id})", saved.cell),
            );
            ComparedState { title, state: saved.state.clone() }
        });
        forks.chain(saved).collect()
    }

    /// Creates the comparison of two forks, or `None` if one of them has no variables.
    pub(super) fn of_forks(states: &NoteStates, one: &str, other: &str, place: StatesPlace) -> Option<Self> {
        let choices = Self::choices_of(states);
        let position = |name: &str| choices.iter().position(|choice| choice.title == name);
        let chosen = [position(one)?, position(other)?];
        Some(StateComparisonForm { place, choices, chosen, running: None, found: None })
    }

    /// Creates the comparison of two states, or `None` if one of them is gone.
    pub(super) fn of_pair(states: &NoteStates, (first, second): (&str, &str), place: StatesPlace) -> Option<Self> {
        let choices = Self::choices_of(states);
        let position = |id: &str| choices.iter().rposition(|choice| choice.state == id);
        let chosen = [position(first)?, position(second)?];
        Some(StateComparisonForm { place, choices, chosen, running: None, found: None })
    }

    /// Creates the comparison of the current state with the one before it.
    pub(super) fn of_states(states: &NoteStates, place: StatesPlace) -> Self {
        let choices = Self::choices_of(states);
        let position = |id: Option<&str>| choices.iter().rposition(|choice| Some(choice.state.as_str()) == id);
        let current = states.states.iter().find(|saved| Some(&saved.state) == states.current.as_ref());
        let second = position(states.current.as_deref()).unwrap_or(0);
        let before = position(current.and_then(|saved| saved.parent.as_deref()));
        let last = choices.len().saturating_sub(1);
        let first = before.unwrap_or(if second == last { 0 } else { last });
        StateComparisonForm { place, choices, chosen: [first, second], running: None, found: None }
    }

    /// Starts comparing the two states on a thread.
    pub(super) fn start(&mut self, ctx: &egui::Context) {
        (self.running, self.found) = (None, None);
        let [Some(a), Some(b)] = self.chosen.map(|at| self.choices.get(at).map(|choice| choice.state.clone())) else {
            return;
        };
        if a == b {
            self.found = Some(Ok(StateComparison::default()));
            return;
        }
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (tell, answer) = channel();
        let ((program, workspace, note), stop, wake) = (self.place.clone(), is_stopped.clone(), ctx.clone());
        std::thread::spawn(move || {
            // Sending fails if the dialog is closed.
            let _ = tell.send(compare_states(&program, &workspace, note, (&a, &b), &stop));
            wake.request_repaint();
        });
        self.running = Some(RunningComparison { is_stopped, answer });
    }

    /// Draws the comparison. Returns whether the user goes back to the list.
    pub(super) fn show(&mut self, ui: &mut Ui) -> bool {
        if let Some(found) = self.running.as_ref().and_then(|running| running.answer.try_recv().ok()) {
            (self.running, self.found) = (None, Some(found));
        }
        head(ui, "Compare variables");
        let mut is_changed = false;
        ui.horizontal(|ui| {
            for (side, name) in ["First state", "Second state"].into_iter().enumerate() {
                let title = |at: usize| self.choices.get(at).map_or("", |choice| choice.title.as_str());
                let shown = untrusted_text::escape_line(title(self.chosen[side])).into_owned();
                let mut chosen = self.chosen[side];
                let picked = egui::ComboBox::from_id_salt(name).width(CHOICE_WIDTH).selected_text(shown);
                let picked = picked.truncate().show_ui(ui, |ui| {
                    for at in 0..self.choices.len() {
                        ui.selectable_value(&mut chosen, at, untrusted_text::escape_line(title(at)).into_owned());
                    }
                });
                set_accessible_name(&picked.response, Role::ComboBox, &format!("{name}: {}", title(chosen)));
                is_changed |= std::mem::replace(&mut self.chosen[side], chosen) != chosen;
            }
        });
        if is_changed {
            self.start(ui.ctx());
        }
        ui.add_space(space::M);
        // The fixed height keeps the buttons below in place for any result.
        ScrollArea::vertical().id_salt("compared").max_height(TABLES_HEIGHT).auto_shrink(false).show(ui, |ui| {
            match &self.found {
                None if self.running.is_some() => words(ui, "Comparing…"),
                None => words(ui, "The comparison was stopped. Choose another state to compare."),
                Some(Err(why)) => {
                    let why = format!("Can’t compare: {why:#}.");
                    let text = RichText::new(untrusted_text::escape_block(&why)).font(theme::small().font);
                    ui.label(text.color(ThemeColors::of(ui).bad));
                }
                Some(Ok(found)) => self.show_tables(ui, found),
            }
        });
        ui.add_space(space::L);
        let (mut goes_back, mut stops) = (false, false);
        at_right(ui, |ui| {
            goes_back = text_button(ui, "Back", true).clicked();
            stops = self.running.is_some() && text_button(ui, "Cancel", false).clicked();
        });
        if stops {
            self.running = None;
        }
        goes_back
    }

    fn show_tables(&self, ui: &mut Ui, found: &StateComparison) {
        let [a, b] = self.chosen.map(|at| self.choices.get(at).map_or("", |choice| choice.title.as_str()));
        if found.only_a.is_empty() && found.only_b.is_empty() && found.differ.is_empty() {
            words(ui, "The variables are the same.");
        }
        if !found.differ.is_empty() {
            caption(ui, "Different");
            let width = (ui.available_width() - NAME_WIDTH - 3.0 * space::M) / 2.0;
            Grid::new("different").num_columns(3).spacing([space::M, space::XS]).show(ui, |ui| {
                for (title, width) in [("", NAME_WIDTH), (a, width), (b, width)] {
                    ui.scope(|ui| {
                        ui.set_width(width);
                        words(ui, title);
                    });
                }
                ui.end_row();
                for variable in &found.differ {
                    name_cell(ui, &variable.name);
                    value_cell(ui, (&variable.name, a), &variable.a, width);
                    value_cell(ui, (&variable.name, b), &variable.b, width);
                    ui.end_row();
                }
            });
        }
        for (side, variables) in [(a, &found.only_a), (b, &found.only_b)] {
            show_lone(ui, side, variables);
        }
        for (title, names) in [("The same", &found.equal), ("Can’t be compared", &found.unclear)] {
            if !names.is_empty() {
                caption(ui, title);
                words(ui, &names.join(", "));
            }
        }
    }
}

/// Draws the variables that only one of the states has.
fn show_lone(ui: &mut Ui, side: &str, variables: &[LoneVariable]) {
    if variables.is_empty() {
        return;
    }
    caption(ui, &format!("Only in {side}"));
    let width = ui.available_width() - NAME_WIDTH - 2.0 * space::M;
    Grid::new(("only", side)).num_columns(2).spacing([space::M, space::XS]).show(ui, |ui| {
        for variable in variables {
            name_cell(ui, &variable.name);
            value_cell(ui, (&variable.name, side), &variable.value, width);
            ui.end_row();
        }
    });
}

fn caption(ui: &mut Ui, text: &str) {
    ui.add_space(space::S);
    let shown = RichText::new(untrusted_text::escape_line(text)).font(theme::body().font);
    let response = ui.label(shown.color(ThemeColors::of(ui).ink));
    set_accessible_name(&response, Role::Heading, text);
    ui.add_space(space::XS);
}

fn name_cell(ui: &mut Ui, name: &str) {
    ui.scope(|ui| {
        ui.set_width(NAME_WIDTH);
        let text = RichText::new(untrusted_text::escape_line(name)).font(theme::code().font);
        ui.add(egui::Label::new(text.color(ThemeColors::of(ui).ink)).truncate());
    });
}

/// Draws a value. Its accessible name includes the variable and the state.
fn value_cell(ui: &mut Ui, (name, side): (&str, &str), value: &ComparedValue, width: f32) {
    ui.scope(|ui| {
        ui.set_width(width);
        let said = value.describe();
        let text = RichText::new(untrusted_text::escape_line(&said)).font(theme::code().font);
        let label = ui.add(egui::Label::new(text.color(ThemeColors::of(ui).ink)).wrap());
        set_accessible_name(&label, Role::Label, &format!("{name} in {side}: {said}"));
    });
}
