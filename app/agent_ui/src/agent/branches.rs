//! The page of a session's branches: the prompts with the start of each answer, indented where a branch begins. A click
//! goes to a prompt; the result of another branch can be merged.

use super::comparison::BranchComparison;
use super::labels;
use crate::panel_action::PanelAction;
use eframe::egui;
use egui::accesskit::Role as Part;
use egui::{Align2, Id, Rect, Sense, Stroke, Ui, pos2, vec2};
use engine::{AgentSession, Command, Session};
use std::collections::BTreeSet;
use store::{DocId, MessageId, MessageRole, SessionMessage};
use text::untrusted_text;
use ui::empty_state;
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring, word_button};

const BRANCH_ROW_HEIGHT: f32 = 48.0;
/// Indentation per branch level, and the maximum number of levels.
const BRANCH_INDENT: f32 = 20.0;
const MAX_BRANCH_INDENT_LEVELS: usize = 12;
/// Maximum number of messages that are visited.
const MAX_BRANCH_MESSAGES: usize = 100_000;

/// A prompt and the start of its answer.
struct BranchRow {
    id: MessageId,
    depth: usize,
    text: String,
    about: String,
    /// Whether it's on the current branch.
    on: bool,
}

/// The page that lists a session's branches.
pub struct BranchesPage {
    session: DocId,
    made: Option<(u64, Option<MessageId>)>,
    lines: Vec<BranchRow>,
    /// The comparison of the current branch with another one.
    compared: Option<BranchComparison>,
}

fn first(text: &str) -> String {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").chars().take(200).collect()
}

impl BranchesPage {
    /// Creates the page for a session.
    pub fn new(session: DocId) -> BranchesPage {
        BranchesPage { session, made: None, lines: Vec::new(), compared: None }
    }

    fn make(&mut self, session: &AgentSession) {
        let key = (session.revision, session.head());
        if self.made == Some(key) {
            return;
        }
        let tree = session.tree();
        let on: BTreeSet<MessageId> = session.branch().iter().map(|message| message.id).collect();
        self.lines.clear();
        let mut seen = BTreeSet::new();
        let mut left: Vec<(MessageId, usize)> = tree.children(None).iter().rev().map(|id| (*id, 0)).collect();
        if tree.children(None).len() > 1 {
            left.iter_mut().for_each(|(_, depth)| *depth = 1);
        }
        while let Some((id, depth)) = left.pop().filter(|_| seen.len() < MAX_BRANCH_MESSAGES) {
            let Some(message) = tree.get(id).filter(|_| seen.insert(id)) else { continue };
            match message.role {
                MessageRole::User => self.lines.push(BranchRow {
                    id,
                    depth,
                    text: first(&message.content),
                    about: labels::time_label(message.timestamp),
                    on: on.contains(&id),
                }),
                MessageRole::Assistant => self.answered(message),
                MessageRole::System | MessageRole::Tool => {}
            }
            let children = tree.children(Some(id));
            let deeper = depth + usize::from(children.len() > 1);
            left.extend(children.iter().rev().map(|child| (*child, deeper)));
        }
        self.made = Some(key);
    }

    /// Adds the start of an answer to the last prompt.
    fn answered(&mut self, message: &SessionMessage) {
        let text = first(&message.content);
        if let Some(line) = self.lines.last_mut().filter(|_| !text.is_empty()) {
            line.about = format!("{}  ·  {text}", labels::time_label(message.timestamp));
        }
    }

    /// Draws the page; the session may still be loading.
    pub fn show(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PanelAction>) {
        let Some(conversation) = session.agents().session(self.session) else {
            empty_state::show_message(ui, "Reading the session…", None, "");
            return;
        };
        if let Some(compared) = &mut self.compared {
            if compared.show(ui, conversation, actions) {
                self.compared = None;
            }
            return;
        }
        self.make(conversation);
        let mut beside = None;
        let width = size::NOTE_COLUMN_WIDTH.min(ui.available_width() - 2.0 * space::XL);
        let margin = ((ui.available_width() - width) / 2.0).max(space::L);
        ui.add_space(space::L);
        ui.spacing_mut().item_spacing.y = 0.0;
        egui::ScrollArea::vertical().id_salt("branches").auto_shrink(false).show_rows(
            ui,
            BRANCH_ROW_HEIGHT,
            self.lines.len(),
            |ui, rows| {
                for line in self.lines.get(rows).unwrap_or_default() {
                    let (row, _) =
                        ui.allocate_exact_size(vec2(ui.available_width(), BRANCH_ROW_HEIGHT), Sense::hover());
                    let inset = BRANCH_INDENT * line.depth.min(MAX_BRANCH_INDENT_LEVELS) as f32;
                    let left = row.left() + margin + inset;
                    let rect =
                        Rect::from_min_max(pos2(left, row.top()), pos2(row.left() + margin + width, row.bottom()));
                    beside = one(ui, rect, line, conversation, actions).or(beside);
                }
            },
        );
        if let Some(other) = beside {
            self.compared = Some(BranchComparison::new(other));
            ui.ctx().request_repaint();
        }
    }
}

/// Draws a prompt. Returns the end of its branch if the user wants to compare it with the current one.
fn one(
    ui: &mut Ui,
    rect: Rect,
    line: &BranchRow,
    session: &AgentSession,
    actions: &mut Vec<PanelAction>,
) -> Option<MessageId> {
    let colours = ThemeColors::of(ui);
    let id = Id::unique(("branch", line.id.0));
    let rect = rect.shrink2(vec2(0.0, 1.0));
    let response = ui.interact(rect, id, Sense::click());
    if response.hovered() {
        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.paper));
    }
    let colour = if line.on { colours.accent } else { colours.muted };
    let rail = pos2(rect.left() + 10.0, rect.center().y);
    let stroke = Stroke::new(if line.on { 2.0 } else { 1.0 }, if line.on { colours.accent } else { colours.line });
    ui.painter().vline(rail.x, rect.expand(1.0).y_range(), stroke);
    if line.on {
        ui.painter().circle_filled(rail, 5.0, colour);
    } else {
        ui.painter().circle(rail, 4.5, colours.paper, Stroke::new(1.5, colour));
    }
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    let end = session.tree().newest_end_below(line.id);
    let room = rect.width() - 28.0 - if line.on { space::S } else { 192.0 };
    let cut = if line.on { theme::InterCut::SemiBold } else { theme::InterCut::Regular };
    let style = theme::TypeStyle { font: theme::inter_font(cut, 13.0), line: 20.0 };
    paint_clipped_text(ui, rect.left_top() + vec2(28.0, 3.0), room, &line.text, &style, colours.ink);
    paint_clipped_text(ui, rect.left_top() + vec2(28.0, 24.0), room, &line.about, &theme::caption(), colours.muted);
    response.widget_info(|| {
        egui::WidgetInfo::selected(Part::TreeItem, true, line.on, untrusted_text::escape_line(&line.text))
    });
    if response.clicked() {
        let to = if line.on { line.id } else { end };
        // On the current branch, the user continues from the answer.
        let to = if line.on { answer_to(session, to) } else { to };
        actions.push(PanelAction::Do(Command::GoTo { session: session.id, message: to }));
    }
    if line.on {
        return None;
    }
    let compare = Rect::from_min_max(pos2(rect.right() - 176.0, rect.top()), pos2(rect.right() - 116.0, rect.bottom()));
    let name = format!("Compare: {}", line.text);
    let compared = word_button(ui, compare, id.with("compare"), "Compare", &name).clicked();
    let at = Rect::from_min_max(pos2(rect.right() - 100.0, rect.top()), rect.max);
    let name = format!("Bring over: {}", line.text);
    let icon = pos2(at.left() - 10.0, at.center().y);
    ui.painter().text(icon, Align2::CENTER_CENTER, icons::BRANCH, theme::icon_font(13.0), colours.accent);
    if word_button(ui, at, id.with("over"), "Bring over", &name).clicked()
        && let Some(into) = session.head()
    {
        actions.push(PanelAction::Do(Command::MergeBranch { session: session.id, from: end, into }));
    }
    compared.then_some(end)
}

/// Returns the last message of the current branch before the next question.
fn answer_to(session: &AgentSession, question: MessageId) -> MessageId {
    let branch = session.branch();
    let own = branch.iter().skip_while(|message| message.id != question).skip(1);
    own.take_while(|message| message.role != MessageRole::User).last().map_or(question, |message| message.id)
}
