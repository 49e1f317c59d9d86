//! The actions below a message: copy, fork, branches, and the rating of a run.

use super::messages::MessageAction;
use super::{composer, labels};
use crate::panel_action::PanelAction;
use agent::memory::trace_feedback::RunRating;
use eframe::egui;
use egui::accesskit::Role as Part;
use egui::{Align2, Id, Rect, Sense, Ui, pos2, vec2};
use engine::{AgentRun, AgentSession, Command};
use store::{MessageId, RunEnding, SessionMessage};
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size};
use ui::widgets::{paint_clipped_text, paint_focus_ring, set_accessible_name};

/// Draws a button that is visible only on hover or focus, and always present for screen readers.
fn faint(ui: &mut Ui, right: &mut f32, foot: Rect, icon: &str, name: &str, seen: bool, id: Id) -> bool {
    let rect = Rect::from_min_size(
        pos2(*right - size::MIN_CLICK_HEIGHT, foot.top()),
        egui::Vec2::splat(size::MIN_CLICK_HEIGHT),
    );
    *right = rect.left();
    let response = ui.interact(rect, id.with(name), Sense::click());
    let colours = ThemeColors::of(ui);
    if seen || response.has_focus() {
        ui::widgets::paint_hover_fill(ui, &response);
        let colour = if response.hovered() || response.has_focus() { colours.ink } else { colours.muted };
        ui.painter().text(rect.center(), Align2::CENTER_CENTER, icon, theme::icon_font(14.0), colour);
    }
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    set_accessible_name(&response, Part::Button, name);
    response.on_hover_text(name).clicked()
}

/// Draws the actions below a user's message.
#[allow(clippy::too_many_arguments, reason = "one frame's worth of context")]
pub(super) fn user_foot(
    ui: &mut Ui,
    foot: Rect,
    message: &SessionMessage,
    siblings: &[MessageId],
    parent: Option<MessageId>,
    session: &AgentSession,
    id: Id,
    actions: &mut Vec<PanelAction>,
) -> Option<MessageAction> {
    let seen = ui.rect_contains_pointer(foot.with_min_y(foot.top() - 60.0));
    let mut right = foot.right();
    let mut wish = None;
    if faint(ui, &mut right, foot, icons::PENCIL, "Edit and ask again", seen, id) {
        wish = Some(MessageAction::Again { text: message.content.clone(), parent });
    }
    if faint(ui, &mut right, foot, icons::COPY, "Copy the message", seen, id) {
        ui.ctx().copy_text(message.content.clone());
    }
    if faint(ui, &mut right, foot, icons::BRANCH, "Fork into a new session", seen, id) {
        wish = Some(MessageAction::Fork(message.id));
    }
    // Selecting a branch shows its newest end.
    let go = |to: MessageId| {
        PanelAction::Do(Command::GoTo { session: session.id, message: session.tree().newest_end_below(to) })
    };
    let at = siblings.iter().position(|sibling| *sibling == message.id);
    if let Some(at) = at.filter(|_| siblings.len() > 1) {
        let colours = ThemeColors::of(ui);
        let mut x = foot.left() + size::MIN_CLICK_HEIGHT;
        if faint(ui, &mut x, foot, icons::CARET_LEFT, "Earlier branch", true, id)
            && let Some(to) = at.checked_sub(1).and_then(|at| siblings.get(at))
        {
            actions.push(go(*to));
        }
        let words = format!("{} of {}", at + 1, siblings.len());
        let middle = pos2(foot.left() + size::MIN_CLICK_HEIGHT + 24.0, foot.center().y);
        ui.painter().text(middle, Align2::CENTER_CENTER, &words, theme::tabular_font(12.0), colours.muted);
        let rect = Rect::from_center_size(middle, vec2(48.0, size::MIN_CLICK_HEIGHT));
        let response = ui.interact(rect, id.with("branches"), Sense::hover());
        set_accessible_name(&response, Part::Label, &format!("Branch {words}"));
        let mut x = foot.left() + 2.0 * size::MIN_CLICK_HEIGHT + 48.0;
        if faint(ui, &mut x, foot, icons::CARET_RIGHT, "Later branch", true, id)
            && let Some(to) = siblings.get(at + 1)
        {
            actions.push(go(*to));
        }
    }
    wish
}

/// Draws the actions below an answer.
pub(super) fn answer_foot(
    ui: &mut Ui,
    foot: Rect,
    (message, run): (&SessionMessage, Option<&AgentRun>),
    session: &AgentSession,
    id: Id,
    actions: &mut Vec<PanelAction>,
) -> Option<MessageAction> {
    let colours = ThemeColors::of(ui);
    let mut says = message.duration.map(labels::duration_label).unwrap_or_default();
    let mut colour = colours.muted;
    if let Some(why) = &message.partial {
        says = format!("Incomplete: {why}");
        colour = colours.warn;
    }
    let used = paint_clipped_text(
        ui,
        foot.left_center() - vec2(0.0, 8.0),
        foot.width() - 5.0 * size::MIN_CLICK_HEIGHT,
        &says,
        &theme::caption(),
        colour,
    );
    if !says.is_empty() {
        let response = ui.interact(foot.with_max_x(foot.left() + used), id.with("took"), Sense::hover());
        set_accessible_name(&response, Part::Label, &says);
    }
    let seen = ui.rect_contains_pointer(foot.with_min_y(foot.top() - 60.0));
    let mut right = foot.right();
    let mut wish = None;
    if faint(ui, &mut right, foot, icons::COPY, "Copy the answer", seen, id) {
        ui.ctx().copy_text(message.content.clone());
    }
    if faint(ui, &mut right, foot, icons::BRANCH, "Fork into a new session here", seen, id) {
        wish = Some(MessageAction::Fork(message.id));
    }
    let last = session.head() == Some(message.id);
    if !last && faint(ui, &mut right, foot, icons::ARROW_LEFT, "Branch from here", seen, id) {
        actions.push(PanelAction::Do(Command::GoTo { session: session.id, message: message.id }));
        ui.memory_mut(|memory| memory.request_focus(composer::field()));
    }
    // The answer ends a run that did something, so that a trace can belong to it.
    let rated = run.filter(|run| run.about.head == message.id && run.about.ending == Some(RunEnding::Done));
    if let Some(run) = rated.filter(|run| run.has_tool_calls()) {
        rating_buttons(ui, (&mut right, foot, seen), run, id, actions);
    }
    wish
}

/// Draws the buttons that rate a run for the trace that it belongs to.
fn rating_buttons(
    ui: &mut Ui,
    (right, foot, seen): (&mut f32, Rect, bool),
    run: &AgentRun,
    id: Id,
    actions: &mut Vec<PanelAction>,
) {
    let choices =
        [(RunRating::Bad, icons::THUMBS_DOWN, "Rate as bad"), (RunRating::Good, icons::THUMBS_UP, "Rate as good")];
    for (rating, icon, name) in choices {
        let is_rated = run.rating == Some(rating);
        let name = if is_rated { format!("Remove rating: {}", rating.as_str()) } else { name.to_owned() };
        if faint(ui, right, foot, icon, &name, seen || is_rated, id) {
            let rating = Some(rating).filter(|_| !is_rated);
            actions.push(PanelAction::Do(Command::RateRun { run: run.id, rating }));
        }
    }
}
