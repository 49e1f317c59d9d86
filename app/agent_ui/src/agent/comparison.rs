//! Two branches of a session side by side, from where they diverge, with actions for the other branch.

use crate::panel_action::PanelAction;
use eframe::egui;
use egui::accesskit::Role as Part;
use egui::{Sense, Ui, vec2};
use engine::{AgentSession, Command};
use store::{MessageId, MessageRole, SessionMessage};
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{set_accessible_name, text_button};

/// Limits of each branch: number of messages, and characters of each message.
const MAX_COMPARED_MESSAGES: usize = 100;
const MAX_COMPARED_MESSAGE_CHARS: usize = 2_000;

pub(super) struct BranchComparison {
    other: MessageId,
    made: Option<(u64, Option<MessageId>)>,
    /// Role and text of each message, for both sides.
    sides: [Vec<(&'static str, String)>; 2],
}

/// Returns the messages of a branch after the fork, with their roles.
fn said(session: &AgentSession, end: MessageId, fork: Option<MessageId>) -> Vec<(&'static str, String)> {
    let branch = session.tree().branch_to(end);
    let from = branch.iter().position(|message| Some(message.id) == fork).map_or(0, |at| at + 1);
    let words = |message: &&SessionMessage| {
        let who = match message.role {
            MessageRole::User => "You",
            MessageRole::Assistant => "Agent",
            MessageRole::Tool => "Tool",
            MessageRole::System => "System",
        };
        let mut text: String = message.content.trim().chars().take(MAX_COMPARED_MESSAGE_CHARS).collect();
        for call in &message.tool_calls {
            text.push_str(&format!("\n› {} {}", call.name, super::labels::call_summary(&call.arguments)));
        }
        (who, text.trim().to_owned())
    };
    let all = branch[from..].iter().map(words).filter(|(_, text)| !text.is_empty());
    all.take(MAX_COMPARED_MESSAGES).collect()
}

impl BranchComparison {
    pub(super) fn new(other: MessageId) -> BranchComparison {
        BranchComparison { other, made: None, sides: Default::default() }
    }

    fn make(&mut self, session: &AgentSession) {
        let key = (session.revision, session.head());
        if self.made == Some(key) {
            return;
        }
        self.made = Some(key);
        let Some(head) = session.head() else { return };
        let fork = session.tree().last_shared_message(head, self.other);
        self.sides = [said(session, head, fork), said(session, self.other, fork)];
    }

    /// Draws the comparison. Returns whether the user closed it.
    pub(super) fn show(&mut self, ui: &mut Ui, session: &AgentSession, actions: &mut Vec<PanelAction>) -> bool {
        self.make(session);
        let mut closed = false;
        egui::Frame::NONE.inner_margin(egui::Margin::same(16)).show(ui, |ui| {
            ui.horizontal_wrapped(|ui| {
                ui.spacing_mut().item_spacing.x = space::S;
                closed |= text_button(ui, "Back to the branches", false).clicked();
                if text_button(ui, "Go to the other branch", false).clicked() {
                    actions.push(PanelAction::Do(Command::GoTo { session: session.id, message: self.other }));
                    closed = true;
                }
                if text_button(ui, "Merge its result", true).clicked()
                    && let Some(into) = session.head()
                {
                    actions.push(PanelAction::Do(Command::MergeBranch { session: session.id, from: self.other, into }));
                    closed = true;
                }
            });
            ui.add_space(space::S);
            egui::ScrollArea::vertical().id_salt("comparison").auto_shrink(false).show(ui, |ui| {
                ui.columns(2, |columns| {
                    let names = ["The branch that you see", "The other branch"];
                    for ((ui, side), name) in columns.iter_mut().zip(&self.sides).zip(names) {
                        ui.set_max_width(size::NOTE_COLUMN_WIDTH);
                        let strong =
                            theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 13.0), line: 20.0 };
                        line(ui, name, &strong, ThemeColors::of(ui).ink, Part::Heading);
                        for (who, text) in side {
                            ui.add_space(space::S);
                            line(ui, who, &theme::caption(), ThemeColors::of(ui).muted, Part::Label);
                            line(ui, text, &theme::small(), ThemeColors::of(ui).ink, Part::Label);
                        }
                    }
                });
            });
        });
        closed
    }
}

fn line(ui: &mut Ui, text: &str, style: &theme::TypeStyle, colour: egui::Color32, role: Part) {
    let mut job = egui::text::LayoutJob::default();
    job.wrap.max_width = ui.available_width();
    job.append(
        &text::untrusted_text::escape_block(text),
        0.0,
        ui::widgets::format(style.font.clone(), style.line, colour),
    );
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), galley.size().y), Sense::hover());
    ui.painter().galley(rect.min, galley, colour);
    set_accessible_name(&response, role, text);
}
