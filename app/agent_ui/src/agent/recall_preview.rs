//! Preview of recalled memory for the message being written: each item with its reason, so that it can be excluded
//! before sending. Also shows what a run was given. Memory is searched in the background and never waited for.

use super::super::memory::MemoryAction;
use super::deadline_field::DeadlineField;
use crate::panel_action::PanelAction;
use agent::deadline::DeadlineError;
use agent::memory::insight::{self, RecalledItem, TRACE_KIND};
use agent::memory::{self, ProjectMemory, RecallOptions, ReplayMode};
use eframe::egui;
use egui::accesskit::{Role, Toggled};
use egui::{Align, Align2, Layout, Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::commands::CommandId;
use engine::{AgentRun, Command, Session};
use host::Driver;
use host::clock;
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;
use store::{DocId, StepKind};
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{icon_button, paint_clipped_text, paint_focus_ring, set_accessible_name};

/// Delay of the search after the last keystroke, in seconds.
const RECALL_DEBOUNCE_SECONDS: f64 = 0.35;
/// Height of a row.
const RECALL_ROW_HEIGHT: f32 = 40.0;
/// Maximum height without scrolling.
const MAX_RECALL_HEIGHT: f32 = 4.5 * RECALL_ROW_HEIGHT;
/// Number of first steps among which is the one that lists a run's recalled memory.
const MAX_STEPS_BEFORE_CONTEXT: usize = 8;

/// What to recall memory for: question, place and agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecallQuery {
    pub(super) text: String,
    pub(super) volume: DocId,
    /// Path of the open note.
    pub(super) note: Option<String>,
    pub(super) agent: String,
}

/// Memory that is relevant for the question being written.
#[derive(Default)]
pub struct RecallPreview {
    /// The typed query, and the time of its last change in seconds.
    typed: Option<(RecallQuery, f64)>,
    /// The query that was searched last.
    asked: Option<RecallQuery>,
    waits: Option<Receiver<ProjectMemory>>,
    found: Vec<RecalledItem>,
    /// Names of the items that the user excludes.
    without: BTreeSet<String>,
    /// Whether to replay a trace whose confidence is too low for an automatic replay.
    follow: bool,
    folded: bool,
    /// When the run of the message ends at the latest.
    pub(super) deadline: DeadlineField,
}

impl RecallPreview {
    /// Searches memory for a question once typing pauses. `None`: nothing is typed.
    pub fn poll_recall(
        &mut self,
        ctx: &egui::Context,
        driver: &Driver,
        goal: Option<RecallQuery>,
        actions: &mut Vec<PanelAction>,
    ) {
        let session = driver.session();
        self.receive(session);
        let Some(goal) = goal.filter(|goal| goal.text.split_whitespace().nth(1).is_some()) else {
            if self.typed.take().is_some() {
                let deadline = std::mem::take(&mut self.deadline);
                self.clear();
                self.deadline = deadline;
            }
            return;
        };
        let now = ctx.input(|input| input.time);
        if self.typed.as_ref().is_none_or(|(typed, _)| *typed != goal) {
            self.typed = Some((goal.clone(), now));
        }
        let since = self.typed.as_ref().map_or(now, |(_, since)| *since);
        if self.asked.as_ref() == Some(&goal) || self.waits.is_some() {
            return;
        }
        if now - since < RECALL_DEBOUNCE_SECONDS {
            ctx.request_repaint_after(Duration::from_secs_f64(RECALL_DEBOUNCE_SECONDS - (now - since) + 0.01));
            return;
        }
        let agents = session.agents();
        if agents.setup().is_none() && !agents.is_reading() {
            // The available tools decide which traces can be replayed.
            actions.push(PanelAction::Do(Command::ReadSetup));
        }
        let Some(root) = session.memory_home(goal.volume).map(|(_, root)| root) else { return };
        let (text, folders) = (goal.text.clone(), memory::memory_folders(goal.note.as_deref()));
        self.asked = Some(goal);
        let (tell, told) = channel();
        let (search, wake) = (driver.search().clone(), ctx.clone());
        std::thread::spawn(move || {
            // The message may have been sent by now.
            let _ = tell.send(host::agents::project_memory::recall_project_memory(&search, &root, &folders, &text));
            wake.request_repaint();
        });
        self.waits = Some(told);
    }

    fn receive(&mut self, session: &Session) {
        let Some(waits) = &self.waits else { return };
        let memory = match waits.try_recv() {
            Ok(memory) => memory,
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => ProjectMemory::default(),
        };
        self.waits = None;
        let Some(goal) = &self.asked else { return };
        let schemas = session.tool_schemas(&goal.agent);
        let trust = |trace: &_| session.trace_trust(trace);
        let note = goal.note.as_deref();
        self.found = memory.relevant_items(&goal.text, note, &goal.agent, &schemas, clock::today(), &trust);
    }

    /// Clears the question, the exclusions and the deadline. The collapsed state is kept.
    pub fn clear(&mut self) {
        let folded = self.folded;
        *self = RecallPreview { folded, ..RecallPreview::default() };
    }

    /// Returns what a run may use of memory, which is all shown items except the excluded ones, and its deadline.
    ///
    /// # Errors
    /// Returns an error if what is typed as its deadline is no time.
    pub fn recall(&self) -> Result<RecallOptions, DeadlineError> {
        let mode = if self.follow { ReplayMode::Follower } else { ReplayMode::Auto };
        let shown = |name: &String| self.found.iter().any(|one| one.name == *name);
        let without = self.without.iter().filter(|name| shown(name)).cloned().collect();
        Ok(RecallOptions { mode, without, deadline: self.deadline.deadline()? })
    }

    /// Draws the preview if there are any items.
    pub(super) fn show(&mut self, ui: &mut Ui, actions: &mut Vec<PanelAction>) {
        if self.found.is_empty() {
            return;
        }
        let used = self.found.iter().filter(|one| !self.without.contains(&one.name));
        let mut title = format!("From memory: {}", counted(used));
        let left = self.found.iter().filter(|one| self.without.contains(&one.name)).count();
        if left > 0 {
            title.push_str(&format!(", {left} left out"));
        }
        if super::todos::show_header(ui, &title, !self.folded) {
            self.folded = !self.folded;
        }
        if self.folded {
            return;
        }
        let RecallPreview { found, without, follow, .. } = self;
        ui.spacing_mut().item_spacing.y = 0.0;
        egui::ScrollArea::vertical().id_salt("from memory").max_height(MAX_RECALL_HEIGHT).show(ui, |ui| {
            for one in found.iter() {
                let out = without.contains(&one.name);
                let trace = one.kind == TRACE_KIND && !out;
                let by_itself = trace && one.follows;
                let replayed = by_itself || (trace && *follow);
                let why = if replayed { format!("Replayed, no model is called: {}", one.why) } else { one.why.clone() };
                let (rect, mut tools) = line(ui, one, &why, out, replayed, actions);
                let (icon, word) = if out { (icons::UNDO, "Use again") } else { (icons::X, "Leave out") };
                let clicked = icon_button(&mut tools, icon, &format!("{word}: {}", one.what), None).clicked();
                if clicked && !without.remove(&one.name) {
                    without.insert(one.name.clone());
                }
                if trace && !by_itself {
                    let name = format!("Replay without a model: {}", one.what);
                    let button = icon_button(&mut tools, if *follow { icons::STOP } else { icons::PLAY }, &name, None);
                    let toggled = if *follow { Toggled::True } else { Toggled::False };
                    ui.ctx().accesskit_node_builder(button.id, |node| node.set_toggled(toggled));
                    if button.clicked() {
                        *follow = !*follow;
                    }
                }
                text(ui, rect, tools.min_rect().left(), one, &why, out, replayed);
            }
        });
        ui.add_space(space::XS);
    }
}

/// Formats the number of experiences and traces.
fn counted<'a>(all: impl Iterator<Item = &'a RecalledItem>) -> String {
    let (mut experiences, mut traces) = (0, 0);
    for one in all {
        *(if one.kind == TRACE_KIND { &mut traces } else { &mut experiences }) += 1;
    }
    let count = |count: usize, word: &str| match count {
        0 => None,
        1 => Some(format!("1 {word}")),
        many => Some(format!("{many} {word}s")),
    };
    let said: Vec<String> = [count(experiences, "experience"), count(traces, "trace")].into_iter().flatten().collect();
    if said.is_empty() { "nothing".to_owned() } else { said.join(", ") }
}

/// Draws the background of a row. Returns its rectangle, and the area for its buttons.
fn line(
    ui: &mut Ui,
    one: &RecalledItem,
    why: &str,
    out: bool,
    replayed: bool,
    actions: &mut Vec<PanelAction>,
) -> (Rect, Ui) {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), RECALL_ROW_HEIGHT), Sense::hover());
    let colours = ThemeColors::of(ui);
    let response = ui.interact(rect, ui.scope_id().with(("remembered", &one.name)), Sense::click());
    if ui.rect_contains_pointer(rect) {
        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.paper));
    }
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    let state = if out { "left out" } else { why };
    set_accessible_name(&response, Role::Link, &format!("{}: {state}", one.what));
    if response.on_hover_text(text::untrusted_text::escape_block(state).into_owned()).clicked() {
        actions.push(match one.kind {
            TRACE_KIND => PanelAction::Run(CommandId::ViewTraces),
            _ => PanelAction::Memory(Box::new(MemoryAction::Show(one.name.clone()))),
        });
    }
    let (icon, colour) = match (one.kind, out) {
        (_, true) => (icons::CIRCLE_DASHED, colours.muted),
        (TRACE_KIND, false) if replayed => (icons::PLAY, colours.ok),
        (TRACE_KIND, false) => (icons::GRAPH, colours.tool),
        (_, false) => (icons::HISTORY, colours.thought),
    };
    let at = pos2(rect.left() + 14.0, rect.top() + 14.0);
    ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(size::ICON_SIZE), colour);
    let layout = Layout::right_to_left(Align::Center);
    let mut tools = ui.new_child(UiBuilder::new().max_rect(rect).id_salt(("remembered", &one.name)).layout(layout));
    tools.spacing_mut().item_spacing.x = 0.0;
    (rect, tools)
}

fn text(ui: &Ui, rect: Rect, right: f32, one: &RecalledItem, why: &str, out: bool, replayed: bool) {
    let colours = ThemeColors::of(ui);
    let left = rect.left() + 30.0;
    let room = right - left - space::XS;
    let ink = if out { colours.muted } else { colours.ink };
    let width = paint_clipped_text(ui, pos2(left, rect.top() + 3.0), room, &one.what, &theme::small(), ink);
    if out {
        let y = rect.top() + 13.5;
        ui.painter().hline(left..=left + width, y, Stroke::new(1.0, colours.muted));
    }
    let below = if replayed && !out { colours.ok } else { colours.muted };
    paint_clipped_text(ui, pos2(left, rect.top() + 21.0), room, why, &theme::caption(), below);
}

/// Draws the memory that a run recalled, collapsed by default.
pub(super) fn show_recalled_memory(
    ui: &mut Ui,
    run: &AgentRun,
    open: &mut Option<DocId>,
    actions: &mut Vec<PanelAction>,
) {
    let told = run.steps.iter().take(MAX_STEPS_BEFORE_CONTEXT).find_map(|step| match &step.kind {
        StepKind::Thinking { content, .. } if step.route.as_deref() == Some("memory") => {
            insight::parse_recall_step(content)
        }
        _ => None,
    });
    let Some((given, without)) = told else { return };
    let mut title = format!("Given from memory: {}", counted(given.iter()));
    if !without.is_empty() {
        title.push_str(&format!(", {} left out", without.len()));
    }
    let is = *open == Some(run.id);
    if super::todos::show_header(ui, &title, is) {
        *open = (!is).then_some(run.id);
    }
    if !is {
        return;
    }
    ui.spacing_mut().item_spacing.y = 0.0;
    egui::ScrollArea::vertical().id_salt("given").max_height(MAX_RECALL_HEIGHT).show(ui, |ui| {
        for one in &given {
            let (rect, _) = line(ui, one, &one.why, false, false, actions);
            text(ui, rect, rect.right(), one, &one.why, false, false);
        }
        for name in &without {
            let kind = if memory::is_trace(name) { TRACE_KIND } else { insight::EXPERIENCE_KIND };
            let why = "You left it out.".to_owned();
            let one = RecalledItem { name: name.clone(), kind, what: name.clone(), why, score: 0.0, follows: false };
            let (rect, _) = line(ui, &one, &one.why, true, false, actions);
            text(ui, rect, rect.right(), &one, &one.why, true, false);
        }
    });
    ui.add_space(space::XS);
}
