//! Pending approvals, pinned above the message field: the request, its reason, its arguments, and the decision buttons.

use super::server_forms::{FormDecision, FormDraft};
use super::{key, labels, markdown_view};
use crate::panel_action::PanelAction;
use agent::approval_text;
use agent::tool_catalog::BuiltInTool;
use agent::tool_spec::ToolRisk;
use anyhow::anyhow;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Key, Modifiers, Sense, Stroke, Ui, vec2};
use engine::{AgentRun, Command, Session};
use sent_runs::sent_run_desk::SentRunsNews;
use serde_json::{Map, Value};
use store::{DecisionRecord, DecisionScope, DocId, RunApproval};
use text::untrusted_text;
use ui::icons;
use ui::menus::{menu_below, menu_item};
use ui::theme::{self, CARD_CORNER, ThemeColors, space};
use ui::widgets::{paint_clipped_text, set_accessible_name, stable_part, text_button};

/// Maximum height of a request without scrolling.
const MAX_REQUEST_HEIGHT: f32 = 160.0;
/// Maximum number of lines of a title that ends with what is shown in full below it.
const MAX_TITLE_ROWS: usize = 3;
/// How often the remaining time of an approval is updated.
pub(super) const EXPIRY_REFRESH_INTERVAL: std::time::Duration = std::time::Duration::from_secs(10);
/// Scopes of a lasting permission, with their labels.
const LASTING_SCOPES: [(DecisionScope, &str); 3] =
    [(DecisionScope::Run, "This run"), (DecisionScope::Project, "This project"), (DecisionScope::Always, "Always")];
/// Arguments that are edited as plain text rather than as JSON.
const PLAIN_TEXT_ARGUMENTS: [&str; 3] = ["command", "code", "content"];

/// Edits in progress on approval cards.
#[derive(Default)]
pub(super) struct ApprovalCards {
    /// The approval whose arguments are being edited: its id, the text, and why the text can't be parsed.
    edit: Option<(String, String, Option<String>)>,
    /// The risk of the shown approval's tool: the approval's id, and the risk if the tool is known.
    risk: Option<(String, Option<ToolRisk>)>,
    /// The user's answers to the questions of `ask_user`.
    answers: std::collections::BTreeMap<String, String>,
    /// The user's answers to the form of a tool server.
    form: FormDraft,
}

/// Returns whether approvals of this tool wait for words of the user, and not for yes or no.
pub(super) fn wants_answer(tool: &str) -> bool {
    BuiltInTool::AskUser.is_named(tool) || BuiltInTool::McpForm.is_named(tool)
}

/// Returns whether the title ends with an argument, such as a command, which the card shows in full below.
fn ends_with_argument(approval: &RunApproval) -> bool {
    let title = approval.what.trim_end();
    let mut texts = approval.arguments.values().filter_map(Value::as_str).map(str::trim_end);
    !wants_answer(&approval.tool) && texts.any(|text| !text.is_empty() && title.ends_with(text))
}

/// Builds a decision by the user.
fn decided(
    run: DocId,
    approval: &RunApproval,
    allowed: bool,
    scope: DecisionScope,
    comment: Option<String>,
) -> ApprovalDecision {
    let decision = DecisionRecord { comment, ..DecisionRecord::by_user(allowed, scope) };
    ApprovalDecision { run, approval: approval.id.clone(), decision }
}

struct ApprovalDecision {
    run: DocId,
    approval: String,
    decision: DecisionRecord,
}

impl ApprovalDecision {
    fn command(self) -> PanelAction {
        PanelAction::Do(Command::Decide { run: self.run, approval: self.approval, decision: self.decision })
    }
}

/// Allows or denies the first pending approval once; questions and forms can't be answered this way.
pub fn decide_first<'a>(runs: impl Iterator<Item = &'a AgentRun>, allowed: bool) -> Option<PanelAction> {
    let mut waiting = runs.flat_map(|run| run.pending().map(move |approval| (run.id, approval)));
    let (run, approval) = waiting.find(|(_, approval)| !allowed || !wants_answer(&approval.tool))?;
    Some(decided(run, approval, allowed, DecisionScope::Once, None).command())
}

impl ApprovalCards {
    /// Draws the card of the first pending approval. `free`: the keys that decide aren't needed by the text being
    /// written.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        session: &Session,
        runs: &[&AgentRun],
        free: bool,
        news: &SentRunsNews,
        actions: &mut Vec<PanelAction>,
    ) {
        let waiting = runs.iter().flat_map(|run| run.pending().map(move |approval| (*run, approval)));
        // A decision that is on its way to another device isn't asked for twice.
        let is_open = |of: &(&AgentRun, &RunApproval)| !news.decisions.contains_key(&(of.0.id, of.1.id.clone()));
        let waiting: Vec<(&AgentRun, &RunApproval)> = waiting.filter(is_open).collect();
        let Some((run, approval)) = waiting.first().copied() else {
            self.edit = None;
            self.answers.clear();
            return;
        };
        let (colours, dark) = (ThemeColors::of(ui), ui.visuals().dark_mode);
        let frame = egui::Frame::NONE
            .fill(colours.raised)
            .stroke(Stroke::new(1.0, colours.warn))
            .corner_radius(CARD_CORNER)
            .shadow(theme::floating_shadow(dark))
            .inner_margin(egui::Margin::same(12));
        // A press on one approval's button never counts for the next approval, which takes its place.
        let card = ("approval", &approval.id);
        let shown = frame.show(ui, |ui| {
            stable_part(ui, card, |ui| {
                ui.set_width(ui.available_width());
                ui.spacing_mut().item_spacing = vec2(space::XS, space::XS);
                let count = waiting.len();
                let more = if count > 1 { format!("1 of {count}") } else { String::new() };
                let rows = if ends_with_argument(approval) { MAX_TITLE_ROWS } else { usize::MAX };
                title(ui, &approval_text::title(approval), &more, rows);
                let risk = self.tool_risk(session, approval);
                // A reason that only names the risk says what the line below does.
                let is_risk = risk.is_some_and(|risk| approval.reason == agent::policy::risk_reason(risk));
                let reason = untrusted_text::escape_line(&approval.reason);
                let left = approval.expires.saturating_sub(jiff::Timestamp::now().as_millisecond());
                ui.ctx().request_repaint_after(EXPIRY_REFRESH_INTERVAL);
                let why = match labels::expiry_label(left) {
                    expiry if is_risk => expiry,
                    expiry => format!("{} {expiry}", sentence(&reason)),
                };
                line(ui, &why, &theme::caption(), colours.muted);
                if let Some(risk) = risk.filter(|_| !wants_answer(&approval.tool)) {
                    let (label, colour) = risk_text(ui, risk);
                    line(ui, &label, &theme::caption(), colour);
                }
                if BuiltInTool::AskUser.is_named(&approval.tool) {
                    self.question(ui, run.id, approval, actions);
                } else if BuiltInTool::McpForm.is_named(&approval.tool) {
                    let decision = self.form.show(ui, approval).map(|decision| match decision {
                        FormDecision::Send(arguments) => (true, Some(arguments)),
                        FormDecision::Decline => (false, None),
                    });
                    if let Some((allowed, arguments)) = decision {
                        let mut decided = decided(run.id, approval, allowed, DecisionScope::Once, None);
                        decided.decision.arguments = arguments;
                        actions.push(decided.command());
                    }
                } else {
                    self.body(ui, approval);
                    self.buttons(ui, run.id, approval, actions);
                }
            });
        });
        let label = format!("The agent waits: {}", approval_text::title(approval));
        set_accessible_name(&shown.response, Role::Group, &label);
        if free && !wants_answer(&approval.tool) && self.edit.is_none() {
            if key(ui, Key::Enter, Modifiers::COMMAND) {
                actions.push(decided(run.id, approval, true, DecisionScope::Once, None).command());
            } else if key(ui, Key::Backspace, Modifiers::COMMAND) {
                actions.push(decided(run.id, approval, false, DecisionScope::Once, None).command());
            }
        }
        ui.add_space(space::S);
    }

    /// Returns the risk of the approval's tool, if the tool is known.
    fn tool_risk(&mut self, session: &Session, approval: &RunApproval) -> Option<ToolRisk> {
        if self.risk.as_ref().is_none_or(|(id, _)| *id != approval.id) {
            let tool = session.agent_tools().into_iter().find(|tool| tool.name == approval.tool);
            self.risk = Some((approval.id.clone(), tool.map(|tool| tool.risk)));
        }
        self.risk.as_ref().and_then(|(_, risk)| *risk)
    }

    fn question(&mut self, ui: &mut Ui, run: DocId, approval: &RunApproval, actions: &mut Vec<PanelAction>) {
        let text = self.answers.entry(approval.id.clone()).or_default();
        let field = egui::TextEdit::multiline(text)
            .id_salt(("answer", &approval.id))
            .font(theme::small().font)
            .hint_text(egui::RichText::new("Your answer").font(theme::small().font).color(ThemeColors::of(ui).muted))
            .margin(egui::Margin::symmetric(8, 6))
            .desired_rows(2)
            .desired_width(f32::INFINITY);
        let response = ui.add(field).accessible_name("Answer to the agent");
        let enters = response.has_focus() && key(ui, Key::Enter, Modifiers::COMMAND);
        ui.horizontal_wrapped(|ui| {
            if (text_button(ui, "Answer", true).clicked() || enters) && !text.trim().is_empty() {
                actions.push(decided(run, approval, true, DecisionScope::Once, Some(text.trim().to_owned())).command());
            }
            if text_button(ui, "Don't answer", false).clicked() {
                actions.push(decided(run, approval, false, DecisionScope::Once, None).command());
            }
        });
    }

    /// Draws the request, read-only or editable.
    fn body(&mut self, ui: &mut Ui, approval: &RunApproval) {
        let colours = ThemeColors::of(ui);
        if let Some((_, text, trouble)) = self.edit.as_mut().filter(|(id, ..)| *id == approval.id) {
            egui::ScrollArea::vertical().id_salt("changed arguments").max_height(MAX_REQUEST_HEIGHT).show(ui, |ui| {
                let field = egui::TextEdit::multiline(text)
                    .id_salt(("changed", &approval.id))
                    .font(egui::FontId::new(12.0, theme::code().font.family))
                    .margin(egui::Margin::symmetric(8, 6))
                    .desired_width(f32::INFINITY);
                ui.add(field).accessible_name("What is allowed instead");
            });
            if let Some(trouble) = trouble {
                line(ui, trouble, &theme::caption(), colours.bad);
            }
            return;
        }
        show_request_text(ui, &all_of(approval));
    }

    fn buttons(&mut self, ui: &mut Ui, run: DocId, approval: &RunApproval, actions: &mut Vec<PanelAction>) {
        let changing = self.edit.as_ref().is_some_and(|(id, ..)| *id == approval.id);
        let colours = ThemeColors::of(ui);
        let mut chosen = None;
        ui.horizontal_wrapped(|ui| {
            let lead = if changing { "Allow this instead" } else { "Allow" };
            if text_button(ui, lead, true).on_hover_text("Once   Ctrl+Enter").clicked() {
                chosen = Some((true, DecisionScope::Once));
            }
            if text_button(ui, "Deny", false).on_hover_text("Ctrl+Backspace").clicked() {
                chosen = Some((false, DecisionScope::Once));
            }
            if !changing && agent::policy::each_time_reason(&approval.tool).is_none() {
                let menu = text_button(ui, "Allow for…", false);
                menu_below(&menu, "Lasting answers", |ui| {
                    let reach = approval_text::lasting_scope(approval);
                    if !reach.is_empty() {
                        let frame = egui::Frame::NONE.inner_margin(egui::Margin::symmetric(8, 4));
                        frame.show(ui, |ui| line(ui, &reach, &theme::caption(), colours.muted));
                    }
                    for (scope, words) in LASTING_SCOPES {
                        if menu_item(ui, words, None, true) {
                            chosen = Some((true, scope));
                        }
                    }
                });
            }
            let words = if changing { "Cancel edit" } else { "Edit" };
            if text_button(ui, words, false).clicked() {
                self.edit = (!changing).then(|| (approval.id.clone(), editable(&approval.arguments), None));
            }
        });
        let Some((allowed, scope)) = chosen else { return };
        let mut decided = decided(run, approval, allowed, scope, None);
        if let Some((_, text, trouble)) = self.edit.as_mut().filter(|_| changing && allowed) {
            match changed(&approval.arguments, text) {
                Ok(arguments) => decided.decision.arguments = Some(arguments),
                Err(why) => {
                    *trouble = Some(why.to_string());
                    return;
                }
            }
        }
        self.edit = None;
        actions.push(decided.command());
    }
}

/// Draws the whole text of a request, which scrolls if it's long.
pub(super) fn show_request_text(ui: &mut Ui, text: &str) {
    if text.is_empty() {
        return;
    }
    let colours = ThemeColors::of(ui);
    ui.add_space(space::XS);
    let width = ui.available_width();
    let height = markdown_view::height_in_full(ui, width, text) + 2.0 * space::XS;
    let area = ui.available_rect_before_wrap();
    let shown_height = height.min(MAX_REQUEST_HEIGHT);
    let ground = egui::Rect::from_min_size(area.min, vec2(width, shown_height));
    ui.painter().rect_filled(ground, theme::CONTROL_CORNER, colours.sunken);
    // The footer around it scrolls, too, and would give it less.
    let scroll = egui::ScrollArea::vertical().id_salt("arguments").max_height(MAX_REQUEST_HEIGHT);
    scroll.min_scrolled_height(shown_height).show(ui, |ui| {
        let (rect, response) = ui.allocate_exact_size(vec2(width, height), Sense::hover());
        markdown_view::paint_mono_in_full(ui, rect.min + vec2(0.0, space::XS), width, text);
        set_accessible_name(&response, Role::Label, text);
    });
    if height > MAX_REQUEST_HEIGHT {
        let says = format!("{} lines. Scroll to read them all.", text.lines().count());
        line(ui, &says, &theme::caption(), colours.muted);
    }
    ui.add_space(space::XS);
}

/// Returns everything that would run or be sent: the arguments, and code that isn't among them. Nothing is cut.
fn all_of(approval: &RunApproval) -> String {
    let mut text = labels::parameters_text(&approval.arguments);
    for piece in &approval.code {
        let gap = if text.is_empty() { "" } else { "\n\n" };
        text.push_str(&format!(
            "{gap}{}:\n{}",
            untrusted_text::escape_line(&piece.title),
            untrusted_text::escape_block(&piece.text)
        ));
    }
    text
}

/// Returns the argument that's edited as text: a command, code, or content.
fn plain(arguments: &Map<String, Value>) -> Option<(&'static str, &str)> {
    PLAIN_TEXT_ARGUMENTS.iter().find_map(|key| Some((*key, arguments.get(*key)?.as_str()?)))
}

fn editable(arguments: &Map<String, Value>) -> String {
    match plain(arguments) {
        Some((_, text)) => text.to_owned(),
        None => serde_json::to_string_pretty(arguments).unwrap_or_default(),
    }
}

/// Returns the arguments with the edited text applied.
fn changed(arguments: &Map<String, Value>, text: &str) -> anyhow::Result<Map<String, Value>> {
    let mut changed = arguments.clone();
    if let Some((key, _)) = plain(arguments) {
        changed.insert(key.to_owned(), Value::String(text.to_owned()));
        return Ok(changed);
    }
    serde_json::from_str(text).map_err(|error| anyhow!("This isn't a JSON object: {error}"))
}

/// Capitalizes the first letter and adds a full stop.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.trim().chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    let rest = letters.as_str();
    let stop = if rest.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{rest}{stop}")
}

/// Draws the title of a card in at most this many lines, with how many cards there are.
pub(super) fn title(ui: &mut Ui, text: &str, more: &str, max_rows: usize) {
    let colours = ThemeColors::of(ui);
    ui.horizontal_top(|ui| {
        let (rect, _) = ui.allocate_exact_size(vec2(20.0, 20.0), Sense::hover());
        ui.painter().text(
            rect.center(),
            egui::Align2::CENTER_CENTER,
            icons::QUESTION,
            theme::icon_font(16.0),
            colours.warn,
        );
        let room = ui.available_width() - if more.is_empty() { 0.0 } else { 56.0 };
        let mut job = egui::text::LayoutJob::default();
        (job.wrap.max_width, job.wrap.max_rows) = (room, max_rows);
        let font = theme::inter_font(theme::InterCut::SemiBold, 13.0);
        job.append(&untrusted_text::escape_line(text), 0.0, ui::widgets::format(font, 20.0, colours.ink));
        let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
        let (rect, response) = ui.allocate_exact_size(vec2(room, galley.size().y), Sense::hover());
        ui.painter().galley(rect.min, galley, colours.ink);
        set_accessible_name(&response, Role::Heading, text);
        if !more.is_empty() {
            let (rect, response) = ui.allocate_exact_size(vec2(48.0, 20.0), Sense::hover());
            paint_clipped_text(ui, rect.left_top() + vec2(0.0, 2.0), 48.0, more, &theme::caption(), colours.warn);
            set_accessible_name(&response, Role::Label, more);
        }
    });
}

/// Returns the risk of a tool as text, and its color.
pub(super) fn risk_text(ui: &Ui, risk: ToolRisk) -> (String, egui::Color32) {
    let colours = ThemeColors::of(ui);
    let colour = match risk {
        ToolRisk::Critical => colours.bad,
        ToolRisk::High => colours.warn,
        ToolRisk::None | ToolRisk::Low | ToolRisk::Medium => colours.muted,
    };
    (format!("Risk: {}", if risk == ToolRisk::None { "none" } else { agent::policy::risk_label(risk) }), colour)
}

/// Draws wrapped text.
pub(super) fn line(ui: &mut Ui, text: &str, style: &theme::TypeStyle, colour: egui::Color32) {
    let mut job = egui::text::LayoutJob::default();
    job.wrap.max_width = ui.available_width();
    job.append(&untrusted_text::escape_block(text), 0.0, ui::widgets::format(style.font.clone(), style.line, colour));
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), galley.size().y), Sense::hover());
    ui.painter().galley(rect.min, galley, colour);
    set_accessible_name(&response, Role::Label, text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_changed_as_what_they_are() {
        let object = |value: Value| value.as_object().cloned().unwrap_or_default();
        let shell = object(json!({"command": "ls", "seconds": 3}));
        assert_eq!(editable(&shell), "ls");
        assert_eq!(changed(&shell, "ls -l").expect("JSON"), object(json!({"command": "ls -l", "seconds": 3})));
        let other = object(json!({"path": "a.md"}));
        assert_eq!(changed(&other, "{\"path\": \"b.md\"}").expect("JSON"), object(json!({"path": "b.md"})));
        assert!(changed(&other, "b.md").is_err());
        assert_eq!(sentence("the rule says so"), "The rule says so.");
    }
}
