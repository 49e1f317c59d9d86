//! What other programs ask, pinned above the message field: what they want, the change, and the buttons that decide.

use super::{AgentPanelAction, approvals, labels};
use agent::approval_text;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Stroke, Ui, vec2};
use program_approvals::ProgramApproval;
use text::untrusted_text;
use ui::theme::{self, CARD_CORNER, ThemeColors, space};
use ui::widgets::{set_accessible_name, stable_part, text_button};

/// Returns all that a request says beyond its title.
fn request_text(request: &ProgramApproval) -> String {
    let mut parts = Vec::new();
    if !request.parameters.is_empty() {
        parts.push(approval_text::format_arguments(&request.parameters));
    }
    if !request.diff.is_empty() {
        parts.push(untrusted_text::escape_block(&request.diff).into_owned());
    }
    parts.join("\n")
}

/// Draws the card of the oldest request. Returns the user's decision.
pub(super) fn show_program_request(ui: &mut Ui, waiting: &[ProgramApproval]) -> Option<AgentPanelAction> {
    let request = waiting.first()?;
    let (colours, dark) = (ThemeColors::of(ui), ui.visuals().dark_mode);
    let frame = egui::Frame::NONE
        .fill(colours.raised)
        .stroke(Stroke::new(1.0, colours.warn))
        .corner_radius(CARD_CORNER)
        .shadow(theme::floating_shadow(dark))
        .inner_margin(egui::Margin::same(12));
    let program = untrusted_text::escape_line(&request.program);
    let title = format!("{program}: {}", untrusted_text::escape_line(&request.what));
    let mut decided = None;
    // A press on one request's button never counts for the next one, which takes its place.
    let shown = frame.show(ui, |ui| {
        stable_part(ui, ("program request", &request.id, request.asked), |ui| {
            ui.set_width(ui.available_width());
            ui.spacing_mut().item_spacing = vec2(space::XS, space::XS);
            let count = waiting.len();
            let more = if count > 1 { format!("1 of {count}") } else { String::new() };
            approvals::title(ui, &title, &more, usize::MAX);
            let left = request.expires.saturating_sub(jiff::Timestamp::now().as_millisecond());
            ui.ctx().request_repaint_after(approvals::EXPIRY_REFRESH_INTERVAL);
            let why = approvals::sentence(&untrusted_text::escape_line(&request.reason));
            let why = format!("{why} {}", labels::expiry_label(left));
            approvals::line(ui, &why, &theme::caption(), colours.muted);
            approvals::show_request_text(ui, &request_text(request));
            ui.horizontal_wrapped(|ui| {
                if text_button(ui, "Approve", true).clicked() {
                    decided = Some(true);
                }
                if text_button(ui, "Deny", false).clicked() {
                    decided = Some(false);
                }
            });
        });
    });
    set_accessible_name(&shown.response, Role::Group, &format!("A program waits: {title}"));
    ui.add_space(space::S);
    decided.map(|approved| AgentPanelAction::DecideRequest { id: request.id.clone(), approved })
}
