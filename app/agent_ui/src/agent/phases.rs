//! The phases of a run whose agent works in phases: the current one on a line, and below it the list of phases. Each
//! phase links to its first step.

use super::{labels, todos};
use crate::panel_action::PanelAction;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Color32, Rect, Sense, Ui, pos2, vec2};
use engine::{AgentRun, PHASE_NAMES, PhaseStatus, RunPhase, RunsState};
use std::collections::{BTreeMap, BTreeSet};
use store::{DocId, MessageId, MessageRole as Speaker, SessionMessage, StepKind};
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring, set_accessible_name};

/// View state of a run's phases.
#[derive(Default)]
pub(super) struct RunPhasesView {
    /// The run whose phases are expanded.
    open: Option<DocId>,
    /// The run and the revision that the phases were computed for.
    made: Option<(DocId, u64)>,
    all: Vec<RunPhase>,
}

/// Describes a phase with the total number.
pub(super) fn title(phase: &RunPhase, of: usize) -> String {
    format!("Phase {} of {of}: {}", phase.number, phase.name)
}

fn steps(count: usize) -> String {
    if count == 1 { "1 step".to_owned() } else { format!("{count} steps") }
}

impl RunPhasesView {
    pub(super) fn show(&mut self, ui: &mut Ui, run: &AgentRun, actions: &mut Vec<PanelAction>) {
        let key = (run.id, run.revision);
        if self.made != Some(key) {
            (self.all, self.made) = (run.phases(), Some(key));
        }
        let of = self.all.len();
        let Some(last) = self.all.iter().rfind(|phase| phase.reached != PhaseStatus::Upcoming).or(self.all.first())
        else {
            return;
        };
        let says = match last.reached {
            PhaseStatus::Finished if last.number == of => format!("All {of} phases are done"),
            PhaseStatus::Stopped => format!("{}, stopped", title(last, of)),
            PhaseStatus::Finished | PhaseStatus::Current | PhaseStatus::Upcoming => title(last, of),
        };
        let open = self.open == Some(run.id);
        if todos::show_header(ui, &says, open) {
            self.open = if open { None } else { Some(run.id) };
        }
        bar(ui, &self.all);
        if open {
            ui.spacing_mut().item_spacing.y = 0.0;
            for phase in &self.all {
                line(ui, run, phase, actions);
            }
        }
        ui.add_space(space::XS);
    }
}

fn hue(reached: PhaseStatus, colours: &ThemeColors) -> (&'static str, Color32, &'static str) {
    match reached {
        PhaseStatus::Upcoming => (icons::CIRCLE_DASHED, colours.muted, "to come"),
        PhaseStatus::Current => (icons::HOURGLASS, colours.accent, "under way"),
        PhaseStatus::Finished => (icons::CHECK_CIRCLE, colours.ok, "over"),
        PhaseStatus::Stopped => (icons::WARNING, colours.warn, "stopped"),
    }
}

/// Draws a progress bar with a segment for each phase.
fn bar(ui: &mut Ui, all: &[RunPhase]) {
    let colours = ThemeColors::of(ui);
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), 3.0), Sense::hover());
    let (gap, count) = (2.0, all.len().max(1) as f32);
    let wide = (rect.width() - gap * (count - 1.0)) / count;
    for (place, phase) in all.iter().enumerate() {
        let left = rect.left() + place as f32 * (wide + gap);
        let piece = Rect::from_min_size(pos2(left, rect.top()), vec2(wide, rect.height()));
        let colour = if phase.reached == PhaseStatus::Upcoming { colours.line } else { hue(phase.reached, colours).1 };
        ui.painter().rect_filled(piece, 1.5, colour);
    }
}

fn line(ui: &mut Ui, run: &AgentRun, phase: &RunPhase, actions: &mut Vec<PanelAction>) {
    let colours = ThemeColors::of(ui);
    let step = phase.first.and_then(|first| run.steps.get(first)).map(|step| step.id);
    let sense = if step.is_some() { Sense::click() } else { Sense::hover() };
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT), sense);
    if step.is_some() {
        ui::widgets::paint_hover_fill(ui, &response);
    }
    let (icon, colour, word) = hue(phase.reached, colours);
    let middle = rect.left_center() + vec2(14.0, 0.0);
    ui.painter().text(middle, Align2::CENTER_CENTER, icon, theme::icon_font(14.0), colour);
    let mut about = Vec::new();
    about.extend((phase.steps > 0).then(|| steps(phase.steps)));
    about.extend(phase.took.map(labels::duration_label));
    let about = about.join("  ·  ");
    let at = rect.right_center() - vec2(space::S, 0.0);
    let shown = ui.painter().text(at, Align2::RIGHT_CENTER, &about, theme::tabular_font(12.0), colours.muted);
    let left = rect.left() + 30.0;
    let ink = if phase.reached == PhaseStatus::Upcoming { colours.muted } else { colours.ink };
    let room = shown.left() - space::S - left;
    let name = format!("{}  {}", phase.number, phase.name);
    paint_clipped_text(ui, pos2(left, rect.center().y - 10.0), room, &name, &theme::small(), ink);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    let spoken = [format!("Phase {}: {}", phase.number, phase.name), word.to_owned(), about.replace("  ·  ", ", ")];
    let spoken = spoken.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(", ");
    set_accessible_name(&response, if step.is_some() { Role::Button } else { Role::Label }, &spoken);
    if let Some(step) = step.filter(|_| response.clicked()) {
        actions.push(PanelAction::ShowStep(run.id, step));
    }
}

/// Returns the messages of a branch before which a phase starts, with its title: those of its calls, and the
/// summarizing answer.
pub(super) fn phase_starts(agents: &RunsState, branch: &[&SessionMessage]) -> BTreeMap<MessageId, String> {
    let mut found = BTreeMap::new();
    let runs: BTreeSet<DocId> = branch.iter().filter_map(|message| message.run).collect();
    for run in runs.into_iter().filter_map(|run| agents.run(run)) {
        let all = run.phases();
        if all.is_empty() {
            continue;
        }
        let mut calls: BTreeMap<&str, usize> = BTreeMap::new();
        for (step, phase) in run.steps.iter().zip(run.step_phases()) {
            if let StepKind::ToolCall { tool_call_id, .. } = &step.kind {
                calls.insert(tool_call_id, phase);
            }
        }
        let sum = all.iter().find(|phase| phase.name == PHASE_NAMES[6]).map(|phase| phase.number);
        let mut now = None;
        let own = |message: &&&SessionMessage| message.run == Some(run.id) && message.role == Speaker::Assistant;
        for message in branch.iter().filter(own) {
            let phase = match message.tool_calls.first() {
                Some(call) => calls.get(call.id.as_str()).copied(),
                None => sum,
            };
            if let Some(known) = phase.filter(|_| phase != now).and_then(|phase| all.get(phase.checked_sub(1)?)) {
                found.insert(message.id, title(known, all.len()));
                now = phase;
            }
        }
    }
    found
}
