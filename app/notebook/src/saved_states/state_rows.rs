//! The graph of saved states: a row for each state, with a line to the state that it continues.

use super::state_comparison::StateComparisonForm;
use super::{LIST_HEIGHT, SavedStatesDecision, SavedStatesForm, StateSpace, move_to};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Id, Layout, Rect, ScrollArea, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::KernelStateMove;
use host::kernel_states::{NoteStates, SavedState, StateGraphRow};
use text::untrusted_text;
use ui::dialog_parts::{FIELD_ID, further, words};
use ui::icons;
use ui::menus::{menu_below, menu_item};
use ui::page_parts::paint_row;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{icon_button, paint_clipped_text, set_accessible_name};

/// Height of a row, in points.
const STATE_ROW_HEIGHT: f32 = 48.0;
/// Distance of lanes, in points.
const LANE_WIDTH: f32 = 14.0;
/// Radius of a state's mark, in points.
const STATE_MARK_RADIUS: f32 = 4.5;
/// Width of the column with size and time, in points.
const SIZE_COLUMN_WIDTH: f32 = 190.0;
/// Maximum number of listed states, newest first. The search field finds the others.
const MAX_LISTED_STATES: usize = 500;
/// Maximum number of states without a search field.
const MAX_STATES_WITHOUT_SEARCH: usize = 8;
/// Maximum number of lines of code that are shown for a state.
const MAX_HINT_LINES: usize = 12;

/// What a row shows besides its state.
struct StateRowLook<'a> {
    /// The row's place in the graph; `None` while only some states are listed.
    row: Option<&'a StateGraphRow>,
    /// Number of lanes of the whole graph.
    lanes: usize,
    is_current: bool,
    /// Names of the forks whose last state it is.
    forks: Vec<&'a str>,
}

impl SavedStatesForm {
    pub(super) fn show_graph(&mut self, ui: &mut Ui, states: &NoteStates) -> Option<SavedStatesDecision> {
        if states.states.is_empty() {
            words(ui, "No saved states yet. Run a cell: its variables are saved after each run.");
            return None;
        }
        words(ui, "Lines lead from each state to the one it continues. Choose a state to go back to its variables.");
        ui.add_space(space::M);
        if states.states.len() > MAX_STATES_WITHOUT_SEARCH {
            further(ui, &mut self.query, "state query", "Find a state", "Cell or variable");
            ui.add_space(space::S);
        }
        let query = self.query.trim().to_lowercase();
        let graph = std::mem::take(&mut self.graph);
        let lanes = graph.iter().map(|row| row.lane + 1).max().unwrap_or(1);
        let mut decision = None;
        let found = states.states.iter().zip(&graph).rev().filter(|(state, _)| is_match(state, &query));
        let found: Vec<_> = found.take(MAX_LISTED_STATES).collect();
        let list = ScrollArea::vertical().id_salt("states").max_height(LIST_HEIGHT);
        let spacing = std::mem::take(&mut ui.spacing_mut().item_spacing.y);
        list.show_rows(ui, STATE_ROW_HEIGHT, found.len(), |ui, visible| {
            ui.set_width(ui.available_width());
            for (state, row) in found.into_iter().skip(visible.start).take(visible.len()) {
                let forks = states.branches.iter().filter(|(_, at)| at.as_ref() == Some(&state.state));
                let look = StateRowLook {
                    row: query.is_empty().then_some(row),
                    lanes: if query.is_empty() { lanes } else { 1 },
                    is_current: states.current.as_ref() == Some(&state.state),
                    forks: forks.map(|(name, _)| name.as_str()).filter(|_| states.branches.len() > 1).collect(),
                };
                ui.push_id(&state.state, |ui| {
                    decision = self.show_state(ui, states, state, &look).or(decision.take());
                });
            }
        });
        ui.spacing_mut().item_spacing.y = spacing;
        self.graph = graph;
        if states.thinned > 0 {
            ui.add_space(space::S);
            let older = ui::text::counted(states.thinned, "older state");
            words(ui, &format!("Without {older} that were thinned to save space. Their cells run again when needed."));
        }
        if let Some(used) = self.space {
            ui.add_space(space::S);
            words(ui, &space_text(states.used_bytes, used));
        }
        decision
    }

    /// Draws a state. A click goes back to it; its menu does more.
    fn show_state(
        &mut self,
        ui: &mut Ui,
        states: &NoteStates,
        state: &SavedState,
        look: &StateRowLook<'_>,
    ) -> Option<SavedStatesDecision> {
        let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), STATE_ROW_HEIGHT), Sense::hover());
        let place = rect.shrink2(vec2(0.0, (rect.height() - size::MIN_CLICK_HEIGHT) / 2.0));
        let builder = UiBuilder::new().max_rect(place).id_salt("menu");
        let mut child = ui.new_child(builder.layout(Layout::right_to_left(Align::Center)));
        let menu_name = format!("More about the state after {}", state.cell);
        let button = icon_button(&mut child, icons::MORE, &menu_name, None);
        let mut decision = None;
        menu_below(&button, &menu_name, |ui| decision = self.show_state_menu(ui, states, state, look));
        let body = rect.with_max_x(child.min_rect().left() - space::XS);
        let response = ui.interact(body, ui.scope_id().with("state"), Sense::click());
        if response.gained_focus() {
            // A part of the next row, too: rows out of sight aren't drawn, so Tab wouldn't reach them.
            ui.scroll_to_rect(rect.expand2(vec2(0.0, STATE_ROW_HEIGHT / 2.0)), None);
        }
        paint_row(ui, &response, look.is_current);
        paint_lines(ui, body, look, state.pinned);
        paint_texts(ui, body, state, look);
        set_accessible_name(&response, Role::Button, &spoken_state(state, look));
        if response.clicked() && !look.is_current && self.is_up_to_date() {
            decision = Some(move_to(KernelStateMove::To { state: state.state.clone() }));
        }
        let code: Vec<&str> = state.code.lines().take(MAX_HINT_LINES).collect();
        response.on_hover_text(untrusted_text::escape_block(&code.join("\n")).into_owned());
        decision
    }

    fn show_state_menu(
        &mut self,
        ui: &mut Ui,
        states: &NoteStates,
        state: &SavedState,
        look: &StateRowLook<'_>,
    ) -> Option<SavedStatesDecision> {
        let (is_free, id) = (self.is_up_to_date(), &state.state);
        let mut decision = None;
        if menu_item(ui, "Go back to this state", None, is_free && !look.is_current) {
            decision = Some(move_to(KernelStateMove::To { state: id.clone() }));
        }
        if menu_item(ui, "Fork from here…", None, is_free) {
            (self.fork_from, self.done, self.trouble) = (Some(id.clone()), None, None);
            ui.ctx().memory_mut(|memory| memory.request_focus(Id::unique(FIELD_ID)));
        }
        let current = states.current.as_deref().filter(|_| !look.is_current);
        if menu_item(ui, "Compare with the current state", None, current.is_some())
            && let Some(current) = current
        {
            let form = StateComparisonForm::of_pair(states, (id.as_str(), current), self.place());
            self.compare(ui.ctx(), form);
        }
        let pin = if state.pinned { "Unpin" } else { "Pin: never thin it" };
        if menu_item(ui, pin, None, is_free) {
            decision = Some(move_to(match state.pinned {
                true => KernelStateMove::Unpin { state: id.clone() },
                false => KernelStateMove::Pin { state: id.clone(), name: None },
            }));
        }
        if menu_item(ui, "Copy ID", None, true) {
            ui.ctx().copy_text(id.clone());
        }
        decision
    }
}

/// Returns whether a state's cell, name or variables contain the words, which are in lowercase.
fn is_match(state: &SavedState, query: &str) -> bool {
    let names = state.defined.iter().chain(&state.changed).chain(&state.name);
    query.is_empty() || names.chain([&state.cell]).any(|text| text.to_lowercase().contains(query))
}

fn state_title(state: &SavedState, look: &StateRowLook<'_>) -> String {
    format!("After {}{}", state.cell, if look.is_current { ", now" } else { "" })
}

/// Returns the forks and the pin of a state, or an empty text.
fn state_marks(state: &SavedState, look: &StateRowLook<'_>) -> String {
    let pin = match (&state.name, state.pinned) {
        (Some(name), true) => Some(format!("pinned: {name}")),
        (None, true) => Some("pinned".to_owned()),
        (_, false) => None,
    };
    look.forks.iter().map(|fork| format!("fork {fork}")).chain(pin).collect::<Vec<_>>().join(", ")
}

/// Returns what a state's cell defined and changed, or an empty text.
fn state_changes(state: &SavedState) -> String {
    let parts = [("defines", &state.defined), ("changes", &state.changed)];
    let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
    parts.map(|(what, names)| format!("{what} {}", names.join(", "))).collect::<Vec<_>>().join("; ")
}

/// Returns how much of their budgets the states of the note and of all notes use.
fn space_text(used_bytes: u64, space: StateSpace) -> String {
    let StateSpace { all_notes_bytes, budget } = space;
    let [used, of, all, of_all] =
        [used_bytes, budget.note_bytes, all_notes_bytes, budget.workspace_bytes].map(ui::text::amount);
    format!("This note uses {used} of {of}, all notes {all} of {of_all}. The settings of notes change these limits.")
}

fn size_and_time(state: &SavedState) -> String {
    let seconds = i64::try_from(state.time / 1000).unwrap_or_default();
    format!("{} · {}", ui::text::amount(state.bytes), ui::time::when(seconds))
}

/// Returns the row for screen readers.
fn spoken_state(state: &SavedState, look: &StateRowLook<'_>) -> String {
    let said = [state_marks(state, look), state_changes(state), size_and_time(state)];
    let said: Vec<String> = said.into_iter().filter(|text| !text.is_empty()).collect();
    format!("{}: {}", state_title(state, look), said.join("; "))
}

#[allow(clippy::cast_precision_loss, reason = "a few lanes")]
fn lane_x(body: Rect, lane: usize) -> f32 {
    body.left() + LANE_WIDTH + lane as f32 * LANE_WIDTH
}

/// Paints the lines to older and newer states, and the state's mark.
fn paint_lines(ui: &Ui, body: Rect, look: &StateRowLook<'_>, is_pinned: bool) {
    let colours = ThemeColors::of(ui);
    let (painter, line) = (ui.painter(), Stroke::new(1.5, colours.muted));
    let at = pos2(lane_x(body, look.row.map_or(0, |row| row.lane)), body.center().y);
    if let Some(row) = look.row {
        for lane in &row.passing {
            painter.vline(lane_x(body, *lane), body.y_range(), line);
        }
        for lane in &row.joining {
            let x = lane_x(body, *lane);
            let bend = pos2(x, at.y - LANE_WIDTH);
            painter.line_segment([pos2(x, body.top()), bend], line);
            painter.line_segment([bend, at], line);
        }
        if row.has_child {
            painter.vline(at.x, body.top()..=at.y, line);
        }
        if row.has_parent {
            painter.vline(at.x, at.y..=body.bottom(), line);
        }
    }
    let fill = match (look.is_current, is_pinned) {
        (true, _) => colours.accent,
        (false, true) => colours.muted,
        (false, false) => colours.paper,
    };
    let edge = if look.is_current { Stroke::new(1.5, colours.accent) } else { line };
    painter.circle(at, STATE_MARK_RADIUS, fill, edge);
}

fn paint_texts(ui: &Ui, body: Rect, state: &SavedState, look: &StateRowLook<'_>) {
    let colours = ThemeColors::of(ui);
    let left = lane_x(body, look.lanes.saturating_sub(1)) + LANE_WIDTH;
    let right = (body.right() - SIZE_COLUMN_WIDTH).max(left);
    let (small, caption) = (theme::small(), theme::caption());
    let ink = if look.is_current { colours.accent } else { colours.ink };
    let title = pos2(left, body.top() + 4.0);
    let used = paint_clipped_text(ui, title, right - left, &state_title(state, look), &small, ink) + space::S;
    let marks = title + vec2(used, 0.0);
    paint_clipped_text(ui, marks, right - marks.x - space::S, &state_marks(state, look), &small, colours.muted);
    let changes = state_changes(state);
    let about = if changes.is_empty() { state.code.lines().next().unwrap_or_default() } else { changes.as_str() };
    let below = pos2(left, body.top() + 4.0 + small.line);
    paint_clipped_text(ui, below, body.right() - left - space::S, about, &caption, colours.muted);
    let at = pos2(right, body.top() + 4.0 + (small.line - caption.line) / 2.0);
    paint_clipped_text(ui, at, body.right() - right, &size_and_time(state), &caption, colours.muted);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saved_states::{ForkSupport, SavedStatesView};
    use host::kernel_states::state_graph;
    use std::path::PathBuf;
    use store::DocId;

    #[test]
    fn only_visible_states_are_drawn() {
        let state = |number: usize| SavedState {
            state: number.to_string(),
            parent: number.checked_sub(1).map(|before| before.to_string()),
            kept_ancestor: number.checked_sub(1).map(|before| before.to_string()),
            cell: format!("cell {number}"),
            ..SavedState::default()
        };
        let states = NoteStates { states: (0..400).map(state).collect(), ..NoteStates::default() };
        let places = (PathBuf::new(), PathBuf::new());
        let mut form = SavedStatesForm::new(DocId([1; 16]), SavedStatesView::Graph, ForkSupport::Saved, places);
        form.graph = state_graph(&states.states);
        let ctx = egui::Context::default();
        ui::theme::install_theme(&ctx);
        ctx.enable_accesskit();
        let mut output = ctx.run_ui(egui::RawInput::default(), |ui| {
            form.show_graph(ui, &states);
        });
        output.textures_delta.clear(); // nobody draws it
        let nodes = output.platform_output.accesskit_update.expect("a tree").nodes;
        let drawn: Vec<&str> =
            nodes.iter().filter_map(|(_, node)| node.label()?.strip_prefix("More about the state after ")).collect();
        assert!(drawn.contains(&"cell 399") && drawn.len() < 12, "{drawn:?}");
    }
}
