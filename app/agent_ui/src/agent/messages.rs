//! The current branch of a session: messages as Markdown, tool calls as collapsible lines. Only visible parts are
//! drawn; other heights are cached or estimated.

use super::changes::changed_files_label;
use super::markdown_view::{self, MarkdownLayoutCache, MarkdownView};
use super::message_foot::{answer_foot, user_foot};
use super::{approvals, labels, phases, tool_icons};
use crate::panel_action::PanelAction;
use eframe::egui;
use egui::accesskit::Role as Part;
use egui::{Align2, Id, Pos2, Rect, Sense, Ui, pos2, vec2};
use engine::{AgentRun, AgentSession, CallPhase, Command, RunsState};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use store::{DecisionRecord, DocId, MessageId, MessageRole, SessionMessage, StepKind, ToolCall};
use ui::icons;
use ui::theme::{self, CARD_CORNER, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring, set_accessible_name};

/// Time per frame spent on measuring new messages.
const MESSAGE_MEASURE_BUDGET: Duration = Duration::from_millis(4);
/// Indentation of messages from the program to the model.
const CONTEXT_INDENT: f32 = space::L;
/// Maximum number of characters shown of a context message's first line.
const MAX_TOLD_TITLE_CHARS: usize = 120;
/// Key of the expanded text of a context message.
const TOLD_TEXT: &str = "text";
/// Maximum number of lines shown of a diff while its call is folded.
const MAX_PREVIEW_LINES: usize = 10;
/// Maximum number of characters shown of each of them.
const MAX_PREVIEW_LINE_CHARS: usize = 120;
/// Width of the pill that jumps to the end.
const JUMP_PILL_WIDTH: f32 = 116.0;
/// Padding around a message on its card.
const MESSAGE_PADDING: f32 = space::M;

/// Displayed content of a message.
enum MessageContent {
    User {
        text: MarkdownView,
        siblings: Vec<MessageId>,
        parent: Option<MessageId>,
    },
    Words {
        text: MarkdownView,
    },
    Call {
        call: ToolCall,
        result: Option<MessageId>,
        run: Option<DocId>,
    },
    /// Messages from the program to the model in this turn, each with its start; collapsed, since they are long.
    Context {
        told: Vec<(MessageId, String)>,
    },
    /// Start of a phase of a run.
    Phase {
        title: String,
    },
    /// End of a run that changed files.
    Changed {
        run: DocId,
        title: String,
    },
}

struct MessageRow {
    id: MessageId,
    what: MessageContent,
    height: Option<f32>,
}

/// Action requested by a click on a message.
pub(super) enum MessageAction {
    Again { text: String, parent: Option<MessageId> },
    Fork(MessageId),
}

/// The list of a branch's messages, with cached rows.
#[derive(Default)]
pub(super) struct MessageList {
    /// What the rows were built for: the session, its revision, the end of the branch, and the number of known runs and
    /// their changes.
    made: Option<(DocId, u64, Option<MessageId>, usize)>,
    items: Vec<MessageRow>,
    setting: MarkdownLayoutCache,
    /// The width and the layout revision that the heights are valid for.
    measured: (f32, u64),
    /// Calls and context messages that are expanded.
    open: BTreeSet<(MessageId, String)>,
    /// The answer being streamed, and its text as last split.
    live: Option<(u64, usize, MarkdownView)>,
    offset: f32,
    at_end: bool,
    /// Runs that were already requested.
    read: BTreeSet<DocId>,
    /// Whether the next frame scrolls to the end.
    goes_to_end: bool,
    /// The user's latest message.
    last_asked: Option<MessageId>,
}

impl MessageList {
    fn sync(&mut self, agents: &RunsState, session: &AgentSession) {
        // Changes when a run is opened, or changes a file.
        let known = agents.open_runs().filter(|run| run.about.session == session.id);
        let known = known.map(|run| 1 + run.changes.len()).sum();
        let key = (session.id, session.revision, session.head(), known);
        if self.made == Some(key) {
            return;
        }
        let same = self.made.is_some_and(|(id, ..)| id == session.id);
        let old = std::mem::take(&mut self.items);
        let branch = session.branch();
        // Messages are immutable: rows and heights are reused where the branches agree.
        let mut kept = old.into_iter().peekable();
        self.items = items(agents, session, &branch, &phases::phase_starts(agents, &branch));
        for item in &mut self.items {
            let kind = std::mem::discriminant(&item.what);
            let alike = |before: &MessageRow| before.id == item.id && std::mem::discriminant(&before.what) == kind;
            let Some(before) = kept.next_if(alike).filter(|_| same) else { break };
            let has_grown = match &item.what {
                MessageContent::Call { result, .. } => result.is_some(),
                MessageContent::Context { .. } => true,
                MessageContent::User { .. }
                | MessageContent::Words { .. }
                | MessageContent::Phase { .. }
                | MessageContent::Changed { .. } => false,
            };
            item.height = before.height.filter(|_| !has_grown);
        }
        let asked = branch.iter().rev().find(|message| message.role == MessageRole::User).map(|message| message.id);
        // After asking, the user wants to see the answer.
        self.goes_to_end |= same && asked.is_some() && asked != self.last_asked;
        self.last_asked = asked;
        if !same {
            self.at_end = true;
        }
        self.made = Some(key);
    }

    /// Draws the branch, and the streamed answer at its end.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        agents: &RunsState,
        session: &AgentSession,
        run: Option<&AgentRun>,
        actions: &mut Vec<PanelAction>,
    ) -> Option<MessageAction> {
        self.sync(agents, session);
        let width = (ui.available_width() - 2.0 * space::L).max(120.0);
        self.setting.begin_frame(ui, width);
        if self.measured != (width, self.setting.anew) {
            self.measured = (width, self.setting.anew);
            self.items.iter_mut().for_each(|item| item.height = None);
        }
        let grown = self.measure(ui, agents, session, width);
        let growing = run.filter(|run| super::works(run) && Some(run.about.head) == session.head());
        let live = self.live(ui, growing, width);
        let total: f32 = self.items.iter().map(|item| item.height.unwrap_or_else(|| guess(item, width))).sum();
        let total = total + live + space::L;
        let mut area =
            egui::ScrollArea::vertical().id_salt(("messages", session.id)).auto_shrink(false).stick_to_bottom(true);
        if std::mem::take(&mut self.goes_to_end) {
            area = area.vertical_scroll_offset((total - ui.available_height()).max(0.0));
            ui.ctx().request_repaint();
        } else if grown != 0.0 && !self.at_end {
            // The visible part stays in place while content above it grows.
            area = area.vertical_scroll_offset((self.offset + grown).max(0.0));
        }
        let mut wish = None;
        let shown = area.show_viewport(ui, |ui, viewport| {
            ui.set_height(total);
            let page = ui.max_rect();
            let left = page.left() + space::L;
            let mut top = page.top() + space::S;
            for at in 0..self.items.len() {
                let height = self.items[at].height.unwrap_or_else(|| guess(&self.items[at], width));
                let rect = Rect::from_min_size(pos2(left, top), vec2(width, height));
                top += height;
                let near = rect.bottom() - page.top() >= viewport.top() && rect.top() - page.top() <= viewport.bottom();
                if near {
                    self.read_run(at, agents, session, actions);
                    let asked = self.item(ui, at, rect, agents, session, actions);
                    wish = asked.or(wish.take());
                }
            }
            self.paint_live(ui, growing, pos2(left, top), width, actions);
        });
        self.offset = shown.state.clamped_offset().y;
        self.at_end = self.offset + shown.inner_rect.height() >= total - 2.0;
        if !self.at_end {
            self.jump_pill(ui, shown.inner_rect);
        }
        wish
    }

    /// Requests the run of a visible item, to show what it changed.
    fn read_run(&mut self, at: usize, agents: &RunsState, session: &AgentSession, actions: &mut Vec<PanelAction>) {
        let message = self.items.get(at).and_then(|item| session.tree().get(item.id));
        let Some(run) = message.and_then(|message| message.run).filter(|run| agents.run(*run).is_none()) else {
            return;
        };
        if self.read.insert(run) && agents.runs().any(|(id, _)| id == run) {
            actions.push(PanelAction::Do(Command::OpenRun { run }));
        }
    }

    /// Draws a pill at the bottom of the view that jumps to the end.
    fn jump_pill(&mut self, ui: &mut Ui, view: Rect) {
        let place = Rect::from_center_size(
            view.center_bottom() - vec2(0.0, size::MIN_CLICK_HEIGHT),
            vec2(JUMP_PILL_WIDTH, size::MIN_CLICK_HEIGHT),
        );
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(place).id_salt("jump to latest"));
        self.goes_to_end |= ui::widgets::text_button(&mut child, "Jump to latest", true).clicked();
    }

    /// Measures the heights of items, from the end, within the frame's time budget. Returns by how much the content
    /// above the view has grown.
    fn measure(&mut self, ui: &Ui, agents: &RunsState, session: &AgentSession, width: f32) -> f32 {
        if self.items.iter().all(|item| item.height.is_some()) {
            return 0.0;
        }
        let begun = Instant::now();
        let mut tops = Vec::with_capacity(self.items.len());
        let mut top = space::S;
        for item in &self.items {
            tops.push(top);
            top += item.height.unwrap_or_else(|| guess(item, width));
        }
        let mut grown = 0.0;
        for at in (0..self.items.len()).rev() {
            if self.items[at].height.is_some() {
                continue;
            }
            if begun.elapsed() > MESSAGE_MEASURE_BUDGET {
                ui.ctx().request_repaint();
                break;
            }
            let guessed = guess(&self.items[at], width);
            let height = self.height(ui, at, agents, session, width);
            self.items[at].height = Some(height);
            if tops.get(at).is_some_and(|top| *top < self.offset) {
                grown += height - guessed;
            }
        }
        grown
    }

    fn height(&mut self, ui: &Ui, at: usize, agents: &RunsState, session: &AgentSession, width: f32) -> f32 {
        let MessageList { items, setting, open, .. } = self;
        let item = &items[at];
        match &item.what {
            MessageContent::User { text, .. } => {
                setting.height(ui, text, width - 2.0 * MESSAGE_PADDING)
                    + 2.0 * MESSAGE_PADDING
                    + size::MIN_CLICK_HEIGHT
                    + space::S
            }
            MessageContent::Words { text } => setting.height(ui, text, width) + size::MIN_CLICK_HEIGHT,
            MessageContent::Phase { .. } | MessageContent::Changed { .. } => size::MIN_CLICK_HEIGHT + space::S,
            MessageContent::Call { call, result, run } => {
                let below = match open.contains(&(item.id, call.id.clone())) {
                    true => Some(details(ui, agents, session, call, *result, *run, width).1),
                    false => diff_preview(session, call, *result).map(|preview| height_of(ui, &preview, width)),
                };
                size::MIN_CLICK_HEIGHT + below.map_or(0.0, |height| height + space::S)
            }
            MessageContent::Context { told } => {
                let is_open = |id: MessageId, part: &str| open.contains(&(id, part.to_owned()));
                let one = |(id, _): &(MessageId, String)| {
                    let text = session.tree().get(*id).map_or("", |message| message.content.as_str());
                    let inner = width - CONTEXT_INDENT;
                    let text = if is_open(*id, TOLD_TEXT) { height_of(ui, text, inner) + space::S } else { 0.0 };
                    size::MIN_CLICK_HEIGHT + text
                };
                let inside = if is_open(item.id, "") { told.iter().map(one).sum() } else { 0.0 };
                size::MIN_CLICK_HEIGHT + inside
            }
        }
    }

    fn item(
        &mut self,
        ui: &mut Ui,
        at: usize,
        rect: Rect,
        agents: &RunsState,
        session: &AgentSession,
        actions: &mut Vec<PanelAction>,
    ) -> Option<MessageAction> {
        let MessageList { items, setting, open, .. } = self;
        let item = items.get_mut(at)?;
        let message = session.tree().get(item.id)?;
        let colours = ThemeColors::of(ui);
        let id = Id::unique(("message", item.id.0, at));
        let mut toggled = None;
        let mut wish = None;
        match &item.what {
            MessageContent::User { text, siblings, parent } => {
                // The space above sets it apart from the answer before.
                let card = Rect::from_x_y_ranges(
                    rect.x_range(),
                    rect.top() + space::S..=rect.bottom() - size::MIN_CLICK_HEIGHT,
                );
                ui.painter().rect_filled(card, CARD_CORNER, colours.accent_ground);
                let origin = card.min + vec2(MESSAGE_PADDING, MESSAGE_PADDING);
                // An estimated height may be smaller than the text.
                let link = setting.paint(ui, text, origin, rect.width() - 2.0 * MESSAGE_PADDING, id);
                actions.extend(link.map(PanelAction::Follow));
                let foot = Rect::from_min_max(
                    pos2(rect.left(), card.bottom()),
                    pos2(rect.right(), card.bottom() + size::MIN_CLICK_HEIGHT),
                );
                wish = user_foot(ui, foot, message, siblings, *parent, session, id, actions);
            }
            MessageContent::Words { text } => {
                let link = setting.paint(ui, text, rect.min, rect.width(), id);
                actions.extend(link.map(PanelAction::Follow));
                let foot = rect.with_min_y(rect.bottom() - size::MIN_CLICK_HEIGHT);
                let run = message.run.and_then(|run| agents.run(run));
                wish = answer_foot(ui, foot, (message, run), session, id, actions);
            }
            MessageContent::Call { call, result, run } => {
                let key = (item.id, call.id.clone());
                let is_open = open.contains(&key);
                let line = rect.with_max_y(rect.top() + size::MIN_CLICK_HEIGHT);
                if call_line(ui, line, agents, session, call, *result, *run, is_open, id.with(&call.id)) {
                    toggled = Some(key);
                }
                if is_open {
                    let (text, _) = details(ui, agents, session, call, *result, *run, rect.width());
                    unfolded(ui, pos2(rect.left(), line.bottom()), rect.width(), &text, id.with((&call.id, "text")));
                } else if let Some(preview) = diff_preview(session, call, *result) {
                    let id = id.with((&call.id, "preview"));
                    unfolded(ui, pos2(rect.left(), line.bottom()), rect.width(), &preview, id);
                }
            }
            MessageContent::Phase { title } => phase_line(ui, rect, title, id),
            MessageContent::Changed { run, title } => {
                let place = rect.with_max_y(rect.top() + size::MIN_CLICK_HEIGHT);
                let mut child = ui.new_child(egui::UiBuilder::new().max_rect(place).id_salt(("changed", at)));
                if ui::widgets::text_button(&mut child, title, false).clicked() {
                    actions.push(PanelAction::ShowChanges(*run));
                }
            }
            MessageContent::Context { told } => {
                let key = (item.id, String::new());
                let is_open = open.contains(&key);
                let line = rect.with_max_y(rect.top() + size::MIN_CLICK_HEIGHT);
                let count = told.len();
                let title = format!("Context ({count} item{})", if count == 1 { "" } else { "s" });
                if quiet_line(ui, line, icons::INFO, colours.muted, &title, "", is_open, id) {
                    toggled = Some(key);
                }
                let mut top = line.bottom();
                for (told, title) in told.iter().filter(|_| is_open) {
                    let key = (*told, TOLD_TEXT.to_owned());
                    let is_open = open.contains(&key);
                    let left = rect.left() + CONTEXT_INDENT;
                    let line = Rect::from_min_max(pos2(left, top), pos2(rect.right(), top + size::MIN_CLICK_HEIGHT));
                    let id = id.with(told.0);
                    if quiet_line(ui, line, icons::CHAT, colours.muted, title, "", is_open, id) {
                        toggled = Some(key);
                    }
                    top = line.bottom();
                    if let Some(message) = session.tree().get(*told).filter(|_| is_open) {
                        unfolded(ui, pos2(left, top), line.width(), &message.content, id.with("text"));
                        top += height_of(ui, &message.content, line.width()) + space::S;
                    }
                }
            }
        }
        if let Some(key) = toggled {
            if !open.remove(&key) {
                open.insert(key);
            }
            item.height = None;
            ui.ctx().request_repaint();
        }
        wish
    }

    /// Returns the height of the streamed answer.
    fn live(&mut self, ui: &Ui, run: Option<&AgentRun>, width: f32) -> f32 {
        let Some(live) = run.and_then(|run| run.live.as_ref()) else {
            self.live = None;
            return if run.is_some() { size::MIN_CLICK_HEIGHT } else { 0.0 };
        };
        let known =
            self.live.as_ref().is_some_and(|(call, length, _)| (*call, *length) == (live.call.number, live.text.len()));
        if !known {
            self.live = Some((live.call.number, live.text.len(), MarkdownView::new(&live.text)));
        }
        let Some((_, _, prose)) = &self.live else { return size::MIN_CLICK_HEIGHT };
        let text = if prose.is_empty() { 0.0 } else { self.setting.height(ui, prose, width) + space::S };
        size::MIN_CLICK_HEIGHT + text
    }

    fn paint_live(
        &mut self,
        ui: &mut Ui,
        run: Option<&AgentRun>,
        at: Pos2,
        width: f32,
        actions: &mut Vec<PanelAction>,
    ) {
        let Some(run) = run else { return };
        let colours = ThemeColors::of(ui);
        let mut y = at.y;
        if let Some((_, _, prose)) = self.live.as_ref().filter(|(_, _, prose)| !prose.is_empty()) {
            let link = self.setting.paint(ui, prose, at, width, Id::unique("answer on its way"));
            actions.extend(link.map(PanelAction::Follow));
            y += self.setting.height(ui, prose, width) + space::S;
        }
        let mut thinks = false;
        let says = match &run.live {
            Some(live) if !live.summary_of.is_empty() => "Summarising what was said before…".to_owned(),
            Some(live) => match (&live.again, live.text.is_empty(), live.thinking.trim()) {
                (Some(again), _, _) => again.clone(),
                (None, true, "") => {
                    format!("Waiting for {}…", live.route.split(':').next().unwrap_or("the model").trim())
                }
                (None, true, thinking) => {
                    let tail: Vec<char> = thinking.chars().rev().take(90).collect();
                    let tail: String =
                        tail.into_iter().rev().map(|letter| if letter == '\n' { ' ' } else { letter }).collect();
                    thinks = true;
                    format!("Thinking: …{tail}")
                }
                (None, false, _) => "Writing…".to_owned(),
            },
            None => match run.pending().next() {
                Some(approval) if approvals::wants_answer(&approval.tool) => "Waiting for your answer".to_owned(),
                Some(_) => "Waiting for your approval".to_owned(),
                None => "Working…".to_owned(),
            },
        };
        let line = Rect::from_min_size(pos2(at.x, y), vec2(width, size::MIN_CLICK_HEIGHT));
        let response = ui.interact(line, Id::unique("agent running"), Sense::hover());
        let (icon, colour) = if thinks { (icons::BRAIN, colours.thought) } else { (icons::ROBOT, colours.accent) };
        ui.painter().text(
            line.left_center() + vec2(8.0, 0.0),
            Align2::CENTER_CENTER,
            icon,
            theme::icon_font(size::ICON_SIZE),
            colour,
        );
        paint_clipped_text(
            ui,
            line.left_center() + vec2(24.0, -8.0),
            width - 24.0,
            &says,
            &theme::caption(),
            colours.muted,
        );
        set_accessible_name(&response, Part::Status, &says);
    }
}

/// Splits a branch into displayed rows.
fn items(
    agents: &RunsState,
    session: &AgentSession,
    branch: &[&SessionMessage],
    phases: &BTreeMap<MessageId, String>,
) -> Vec<MessageRow> {
    let tree = session.tree();
    // A result is shown below its call, wherever its message is in the branch.
    let results: BTreeMap<(Option<DocId>, &str), MessageId> = branch
        .iter()
        .filter_map(|message| Some(((message.run, message.tool_call_id.as_deref()?), message.id)))
        .collect();
    // The last message of each run.
    let ends: BTreeMap<DocId, MessageId> =
        branch.iter().filter_map(|message| Some((message.run?, message.id))).collect();
    let mut items: Vec<MessageRow> = Vec::new();
    // Index of the row that lists this turn's context messages.
    let mut context: Option<usize> = None;
    for message in branch {
        if message.role == MessageRole::User {
            context = None;
        }
        let mut push = |what| items.push(MessageRow { id: message.id, what, height: None });
        if let Some(title) = phases.get(&message.id) {
            push(MessageContent::Phase { title: title.clone() });
        }
        match message.role {
            MessageRole::User => {
                let parent = message.parents.first().copied().filter(|parent| tree.get(*parent).is_some());
                let own = |id: &&MessageId| tree.get(**id).is_some_and(|other| other.role == MessageRole::User);
                let siblings = tree.children(parent).iter().filter(own).copied().collect();
                push(MessageContent::User { text: MarkdownView::new(&message.content), siblings, parent });
            }
            MessageRole::Assistant => {
                if !message.content.trim().is_empty() || message.tool_calls.is_empty() {
                    push(MessageContent::Words { text: MarkdownView::new(&message.content) });
                }
                for call in &message.tool_calls {
                    let result = results.get(&(message.run, call.id.as_str())).copied();
                    push(MessageContent::Call { call: call.clone(), result, run: message.run });
                }
            }
            MessageRole::System => {
                let beginning = message.content.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                let title = match message.summary_of.len() {
                    0 => beginning.chars().take(MAX_TOLD_TITLE_CHARS).collect(),
                    count => format!("Summary of {count} messages"),
                };
                match context.and_then(|at| items.get_mut(at)).map(|row: &mut MessageRow| &mut row.what) {
                    Some(MessageContent::Context { told }) => told.push((message.id, title)),
                    _ => {
                        context = Some(items.len());
                        let what = MessageContent::Context { told: vec![(message.id, title)] };
                        items.push(MessageRow { id: message.id, what, height: None });
                    }
                }
            }
            MessageRole::Tool => {}
        }
        let ends = message.run.filter(|run| ends.get(run) == Some(&message.id));
        let changed = ends.and_then(|run| agents.run(run)).and_then(|run| Some((run.id, changed_files_label(run)?)));
        if let Some((run, title)) = changed {
            items.push(MessageRow { id: message.id, what: MessageContent::Changed { run, title }, height: None });
        }
    }
    items
}

/// Estimates the height of an item.
fn guess(item: &MessageRow, width: f32) -> f32 {
    match &item.what {
        MessageContent::User { .. } => 24.0 + 2.0 * MESSAGE_PADDING + size::MIN_CLICK_HEIGHT + space::S,
        MessageContent::Words { text } => {
            (text.byte_len() as f32 * 7.5 / width).ceil().max(1.0) * 24.0 + size::MIN_CLICK_HEIGHT
        }
        MessageContent::Call { .. } | MessageContent::Context { .. } => size::MIN_CLICK_HEIGHT,
        MessageContent::Phase { .. } | MessageContent::Changed { .. } => size::MIN_CLICK_HEIGHT + space::S,
    }
}

/// Draws the start of a phase: its name, followed by a hairline.
fn phase_line(ui: &mut Ui, rect: Rect, title: &str, id: Id) {
    let colours = ThemeColors::of(ui);
    let line = rect.with_min_y(rect.bottom() - size::MIN_CLICK_HEIGHT);
    let style = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 12.0), line: 16.0 };
    let used = paint_clipped_text(ui, line.left_center() - vec2(0.0, 8.0), line.width(), title, &style, colours.muted);
    let from = line.left() + used + space::S;
    if from < line.right() {
        ui.painter().hline(from..=line.right(), line.center().y, egui::Stroke::new(1.0, colours.line));
    }
    set_accessible_name(&ui.interact(line, id.with("phase"), Sense::hover()), Part::Label, title);
}

fn height_of(ui: &Ui, text: &str, width: f32) -> f32 {
    markdown_view::height(ui, width, text) + 2.0 * space::XS
}

/// Draws expanded text in the code font below its line.
fn unfolded(ui: &mut Ui, at: Pos2, width: f32, text: &str, id: Id) {
    let height = height_of(ui, text, width);
    let rect = Rect::from_min_size(at, vec2(width, height));
    ui.painter().rect_filled(rect, CONTROL_CORNER, ThemeColors::of(ui).sunken);
    markdown_view::paint_mono(ui, at + vec2(0.0, space::XS), width, text);
    let response = ui.interact(rect, id, Sense::hover());
    set_accessible_name(&response, Part::Label, text);
}

/// Returns the text of a call's arguments and result, and its height.
fn details(
    ui: &Ui,
    agents: &RunsState,
    session: &AgentSession,
    call: &ToolCall,
    result: Option<MessageId>,
    run: Option<DocId>,
    width: f32,
) -> (String, f32) {
    let arguments = approved(agents, call, run).unwrap_or(&call.arguments);
    let given = labels::parameters_text(arguments);
    let said = result.and_then(|id| session.tree().get(id)).map_or("", |message| message.content.as_str());
    // The result of a tool that edits a file is the diff, so the arguments are omitted.
    let mut text = if markdown_view::is_diff(said) {
        said.to_owned()
    } else {
        [given.as_str(), said].join("\n\n").trim().to_owned()
    };
    if let Some(whole) = result.and_then(|id| session.tree().get(id)).and_then(|message| message.whole.as_ref()) {
        text.push_str(&format!("\n\nThe whole result has {} bytes.", whole.size));
    }
    let height = height_of(ui, &text, width);
    (text, height)
}

/// Returns the first lines of the diff of a call that has changed a file, without the file's names.
fn diff_preview(session: &AgentSession, call: &ToolCall, result: Option<MessageId>) -> Option<String> {
    let said = &session.tree().get(result?).filter(|message| message.error.is_none())?.content;
    if !tool_icons::edits_file(&call.name) || !markdown_view::is_diff(said) {
        return None;
    }
    let mut lines = said.lines().skip_while(|line| !line.starts_with("@@ "));
    let short = |line: &str| line.chars().take(MAX_PREVIEW_LINE_CHARS).collect::<String>();
    let mut shown: Vec<String> = lines.by_ref().take(MAX_PREVIEW_LINES).map(short).collect();
    match lines.count() {
        0 => {}
        1 => shown.push("… 1 more line".to_owned()),
        more => shown.push(format!("… {more} more lines")),
    }
    Some(shown.join("\n")).filter(|text| !text.is_empty())
}

/// Returns the decision about a call that needed approval.
fn decision<'a>(agents: &'a RunsState, call: &ToolCall, run: Option<DocId>) -> Option<&'a DecisionRecord> {
    let run = agents.run(run?)?;
    run.approvals.iter().rev().find(|approval| approval.call_id() == call.id)?.decision.as_ref()
}

/// Returns the arguments that the user approved instead of the requested ones.
fn approved<'a>(
    agents: &'a RunsState,
    call: &ToolCall,
    run: Option<DocId>,
) -> Option<&'a serde_json::Map<String, serde_json::Value>> {
    decision(agents, call, run)?.arguments.as_ref()
}

/// Returns a call's state, and a label with the time it took.
fn tool_call_state(
    agents: &RunsState,
    session: &AgentSession,
    call: &ToolCall,
    result: Option<MessageId>,
    run: Option<DocId>,
) -> (ToolCallState, String) {
    let is_denied = decision(agents, call, run).is_some_and(|decision| !decision.allowed);
    let run = run.and_then(|run| agents.run(run));
    if let Some(message) = result.and_then(|id| session.tree().get(id)) {
        let of_call =
            |kind: &StepKind| matches!(kind, StepKind::ToolResult { tool_call_id, .. } if *tool_call_id == call.id);
        let step = run.and_then(|run| run.steps.iter().rev().find(|step| of_call(&step.kind)));
        let took = step.and_then(|step| step.duration).map(labels::duration_label).unwrap_or_default();
        return match (&message.error, is_denied) {
            (None, _) => (ToolCallState::Done, took),
            (Some(_), true) => (ToolCallState::Denied, String::new()),
            (Some(_), false) => (ToolCallState::Failed, took),
        };
    }
    let phase =
        run.and_then(|run| run.calls.iter().find(|pending| pending.call.id == call.id)).map(|pending| &pending.phase);
    match phase {
        Some(CallPhase::AwaitingApproval) => (ToolCallState::Asks, String::new()),
        Some(CallPhase::ReadingFacts | CallPhase::Ready) => (ToolCallState::Waits, String::new()),
        Some(CallPhase::Running { .. }) => (ToolCallState::Runs, String::new()),
        Some(CallPhase::Done) | None => (ToolCallState::Waits, String::new()),
    }
}

#[derive(Clone, Copy)]
enum ToolCallState {
    Asks,
    Waits,
    Runs,
    Done,
    Failed,
    Denied,
}

#[allow(clippy::too_many_arguments, reason = "one frame's worth of context")]
fn call_line(
    ui: &mut Ui,
    rect: Rect,
    agents: &RunsState,
    session: &AgentSession,
    call: &ToolCall,
    result: Option<MessageId>,
    run: Option<DocId>,
    open: bool,
    id: Id,
) -> bool {
    let colours = ThemeColors::of(ui);
    let (stands, took) = tool_call_state(agents, session, call, result, run);
    let wants_answer = approvals::wants_answer(&call.name);
    let (icon, colour, word) = match stands {
        ToolCallState::Asks if wants_answer => (icons::QUESTION, colours.warn, "needs an answer"),
        ToolCallState::Asks => (icons::QUESTION, colours.warn, "needs approval"),
        ToolCallState::Waits => (icons::HOURGLASS, colours.muted, "waiting"),
        ToolCallState::Runs => (icons::SPINNER, colours.tool, "running"),
        ToolCallState::Done => (tool_icons::tool_icon(&call.name), colours.tool, "done"),
        ToolCallState::Failed => (icons::X_CIRCLE, colours.bad, "failed"),
        ToolCallState::Denied if wants_answer => (icons::X_CIRCLE, colours.muted, "not answered"),
        ToolCallState::Denied => (icons::X_CIRCLE, colours.muted, "denied"),
    };
    let about = labels::call_summary(approved(agents, call, run).unwrap_or(&call.arguments));
    let title = if about.is_empty() { call.name.clone() } else { format!("{}  {about}", call.name) };
    let end = if took.is_empty() && !matches!(stands, ToolCallState::Done) { word.to_owned() } else { took };
    let pressed = quiet_line(ui, rect, icon, colour, &title, &end, open, id);
    if matches!(stands, ToolCallState::Failed) && !open {
        let why = result.and_then(|id| session.tree().get(id)).map_or("", |message| message.content.as_str());
        let response = ui.interact(rect, id.with("why"), Sense::hover());
        let why: String = why.chars().take(300).collect();
        response.on_hover_text(text::untrusted_text::escape_block(&why).into_owned());
    }
    pressed
}

/// Draws a line that can be expanded. Returns whether it was clicked.
#[allow(clippy::too_many_arguments, reason = "what stands on the line")]
fn quiet_line(
    ui: &mut Ui,
    rect: Rect,
    icon: &str,
    colour: egui::Color32,
    title: &str,
    end: &str,
    open: bool,
    id: Id,
) -> bool {
    let colours = ThemeColors::of(ui);
    let response = ui.interact(rect, id.with("line"), Sense::click());
    ui::widgets::paint_hover_fill(ui, &response);
    ui.painter().text(
        rect.left_center() + vec2(10.0, 0.0),
        Align2::CENTER_CENTER,
        icon,
        theme::icon_font(14.0),
        colour,
    );
    let caret = if open { icons::CARET_DOWN } else { icons::CARET_RIGHT };
    ui.painter().text(
        rect.right_center() - vec2(8.0, 0.0),
        Align2::CENTER_CENTER,
        caret,
        theme::icon_font(11.0),
        colours.muted,
    );
    let font = theme::tabular_font(12.0);
    let right =
        ui.painter().text(rect.right_center() - vec2(20.0, 0.0), Align2::RIGHT_CENTER, end, font, colours.muted).left();
    let room = right - rect.left() - 24.0 - space::S;
    paint_clipped_text(ui, rect.left_center() + vec2(24.0, -10.0), room, title, &theme::small(), colours.muted);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    let name = if end.is_empty() { title.to_owned() } else { format!("{title}, {end}") };
    set_accessible_name(&response, Part::Button, &name);
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_expanded(open));
    response.clicked()
}
