//! The agent beside the note: its session as a conversation, what waits for the user's word, what it has still to do
//! and what it has used; and the commands of the table that concern it.

pub mod approvals;
mod bearing;
mod branches;
mod changes;
mod comparison;
mod composer;
mod messages;
mod phases;
mod prose;
mod sessions;
mod timeline;
mod todos;
mod tools;
mod words;

pub use branches::Branches;
pub use changes::Changes;
pub use timeline::Timeline;
pub use tools::Tools;

use crate::panel_action::PanelAction;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Id, Key, Layout, Modifiers, Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::{Agents, Command, Conversation, Run, Session};
use std::collections::BTreeSet;
use store::{AgentState, DocId, MessageId, Role as Speaker, StepKind};
use ui::controls::{icon_button, named};
use ui::icons;
use ui::tokens::{self, Colours, size, space};

/// The lower part takes no more of the panel than this.
const FOOT: f32 = 0.72;

/// A command of the table that concerns the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Panel,
    New,
    Stop,
    Resume,
    Decide { allow: bool },
    Timeline,
    Changes,
    Branches,
    Tools,
}

/// What a command of the table is here.
pub fn asked(id: &str) -> Option<Asked> {
    let asked = match id {
        "agent.open" => Asked::Panel,
        "agent.new" => Asked::New,
        "agent.stop" => Asked::Stop,
        "agent.resume" => Asked::Resume,
        "agent.allow" => Asked::Decide { allow: true },
        "agent.deny" => Asked::Decide { allow: false },
        "agent.timeline" => Asked::Timeline,
        "agent.changes" => Asked::Changes,
        "agent.branches" => Asked::Branches,
        "agent.tools" => Asked::Tools,
        _ => return None,
    };
    Some(asked)
}

/// The panel.
#[derive(Default)]
pub struct Agent {
    /// Whether this is seen, and not the outline, the links or the variables.
    pub shown: bool,
    /// The session that is looked at.
    pub session: Option<DocId>,
    /// Whether the next message begins a session.
    fresh: bool,
    /// What was asked, until its run has begun.
    pub waits: Option<(DocId, String)>,
    /// Sessions and runs that were asked for.
    read: BTreeSet<DocId>,
    pub composer: composer::Composer,
    /// Who can be called.
    callable: super::memory::Callable,
    pub before: bearing::Before,
    /// The run of which it is shown what it was given of memory.
    given: Option<DocId>,
    /// A word on what is left to spend.
    low: super::memory::Low,
    messages: messages::Messages,
    cards: approvals::Cards,
    phases: phases::Phases,
    todos: todos::Todos,
    sessions: sessions::Sessions,
    /// The session's title while it is changed.
    title: Option<String>,
    /// A message that is looked at once its session is read.
    pub go_to: Option<MessageId>,
    /// How high the lower part was.
    foot: f32,
}

/// What the panel asks of the window.
pub enum Wanted {
    Send,
    Stop(DocId),
    Fork(store::MessageId),
    Title(String),
    Session(DocId),
}

/// A key that was pressed with just these modifiers; it is used up.
fn key(ui: &Ui, key: Key, modifiers: Modifiers) -> bool {
    let mut found = false;
    ui.input_mut(|input| {
        input.events.retain(|event| {
            let fits = matches!(event, egui::Event::Key { key: pressed, pressed: true, modifiers: held, .. }
                if *pressed == key && held.matches_exact(modifiers));
            found |= fits;
            !fits
        });
    });
    found
}

/// Puts the caret of a text field behind so many characters.
fn lately(ui: &Ui, field: Id, caret: usize) {
    if let Some(mut state) = egui::TextEdit::load_state(ui.ctx(), field) {
        let cursor = egui::text::CCursor::new(caret);
        state.cursor.set_char_range(Some(egui::text::CCursorRange::one(cursor)));
        state.store(ui.ctx(), field);
    }
}

/// Why a run failed, as it says itself.
fn last_error(run: &Run) -> Option<String> {
    run.steps.iter().rev().find_map(|step| match &step.kind {
        StepKind::Error { message, .. } => Some(message.clone()),
        StepKind::Thinking { .. }
        | StepKind::ToolCall { .. }
        | StepKind::ToolResult { .. }
        | StepKind::Todo { .. }
        | StepKind::FinalAnswer { .. } => None,
    })
}

/// Whether a run goes on by itself, or once the user has decided. One that the program's end has interrupted does not.
pub fn works(run: &Run) -> bool {
    run.about.ending.is_none() && (run.is_busy() || run.about.agent_state != AgentState::Idle)
}

/// How many decisions runs wait for, anywhere.
pub fn waiting(agents: &Agents) -> usize {
    agents.open_runs().filter(|run| run.about.ending.is_none()).map(|run| run.pending().count()).sum()
}

/// The run at the end of the branch that is looked at.
fn run_of(session: &Conversation) -> Option<DocId> {
    session.tree().get(session.head()?)?.run
}

impl Agent {
    /// The run that commands mean: that of the session that is looked at, else the newest.
    pub fn run(&self, agents: &Agents) -> Option<DocId> {
        let own = self.session.and_then(|session| agents.session(session)).and_then(run_of);
        own.or_else(|| agents.runs().max_by_key(|(_, line)| line.start_time).map(|(id, _)| id))
    }

    /// For what memory is asked while it is written.
    pub fn goal(&self, session: &Session, note: Option<DocId>) -> Option<bearing::Goal> {
        let text = self.composer.text.trim();
        if text.is_empty() {
            return None;
        }
        let conversation = self.session.and_then(|id| session.agents().session(id));
        let volume = volume(session, note, conversation)?;
        let note = note.and_then(|note| session.place(note)).map(|(_, path)| path.to_owned());
        let agent = called(session, text).unwrap_or_else(|| "assistant".to_owned());
        Some(bearing::Goal { text: text.to_owned(), volume, note, agent })
    }

    /// Looks at a session from now on.
    pub fn turn(&mut self, session: Option<DocId>) {
        (self.session, self.fresh, self.title) = (session, session.is_none(), None);
        self.sessions.open = false;
        self.composer.again = None;
        self.composer.focus = true;
    }

    /// Has what is looked at read.
    fn sync(&mut self, session: &Session, actions: &mut Vec<PanelAction>) {
        let agents = session.agents();
        if self.session.is_none() && !self.fresh {
            let open = agents.sessions().filter(|(_, line)| !line.closed);
            self.session = open.max_by_key(|(_, line)| line.updated).map(|(id, _)| id);
        }
        if let Some((run, text)) = self.waits.take_if(|(run, _)| agents.run(*run).is_some() || !agents.is_asking(*run))
            && agents.run(run).is_none()
            && self.composer.text.is_empty()
        {
            // It was not taken; why is said elsewhere.
            self.composer.text = text;
        }
        let Some(id) = self.session else { return };
        let known = agents.sessions().any(|(session, _)| session == id);
        match agents.session(id) {
            None if known && self.read.insert(id) => {
                actions.push(PanelAction::Do(Command::OpenSession { session: id }))
            }
            Some(conversation) => {
                if let Some(message) = self.go_to.take().filter(|message| conversation.tree().get(*message).is_some()) {
                    let message = conversation.tree().newest_below(message);
                    actions.push(PanelAction::Do(Command::GoTo { session: id, message }));
                }
                let run = run_of(conversation).filter(|run| agents.run(*run).is_none());
                if let Some(run) = run.filter(|run| agents.runs().any(|(id, _)| id == *run))
                    && self.read.insert(run)
                {
                    actions.push(PanelAction::Do(Command::OpenRun { run }));
                }
            }
            None => {}
        }
    }

    pub fn show(
        &mut self,
        ui: &mut Ui,
        session: &Session,
        note: Option<DocId>,
        actions: &mut Vec<PanelAction>,
    ) -> Option<Wanted> {
        self.sync(session, actions);
        let agents = session.agents();
        let area = ui.available_rect_before_wrap();
        let conversation = self.session.and_then(|id| agents.session(id));
        let run = conversation.and_then(run_of).and_then(|run| agents.run(run));
        let mut wanted = self.head(ui, conversation, run, actions);
        let top = ui.cursor().top();
        let most = area.height() * FOOT;
        let foot = self.foot.clamp(120.0, most.max(120.0));
        let middle = Rect::from_min_max(pos2(area.left(), top), pos2(area.right(), area.bottom() - foot));
        let mut body = ui::layout::part(ui, "conversation", middle, middle);
        if self.sessions.open {
            wanted = self.sessions.show(&mut body, agents, self.session).map(Wanted::Session).or(wanted);
        } else if let Some(conversation) = conversation {
            match self.messages.show(&mut body, agents, conversation, run, actions) {
                Some(messages::Wish::Again { text, parent }) => {
                    (self.composer.text, self.composer.focus) = (text, true);
                    lately(ui, composer::field(), self.composer.text.chars().count());
                    self.composer.again = Some(composer::Again { parent });
                }
                Some(messages::Wish::Fork(at)) => wanted = Some(Wanted::Fork(at)),
                None => {}
            }
        } else {
            self.nothing(&mut body, agents);
        }
        let below = Rect::from_min_max(pos2(area.left(), middle.bottom()), area.max);
        ui.painter().hline(below.x_range(), below.top() + 0.5, Stroke::new(1.0, Colours::of(ui).line));
        // It is as high as what it holds, and no part of it is out of reach where that is too much.
        let inner = Rect::from_min_size(below.min, vec2(below.width(), most)).shrink2(vec2(space::M, 0.0));
        let mut lower =
            ui.new_child(UiBuilder::new().max_rect(inner).id_salt("agent's foot").layout(Layout::top_down(Align::Min)));
        lower.set_clip_rect(below.intersect(ui.clip_rect()));
        let area = egui::ScrollArea::vertical().id_salt("foot").max_height(most).auto_shrink([false, true]);
        let shown = area.show(&mut lower, |ui| self.lower(ui, session, conversation, note, run, actions));
        wanted = shown.inner.or(wanted);
        let high = (shown.content_size.y.min(most) + space::S).ceil();
        if (high - self.foot).abs() > 0.5 {
            self.foot = high;
            ui.ctx().request_repaint();
        }
        wanted
    }

    /// Title and buttons.
    fn head(
        &mut self,
        ui: &mut Ui,
        conversation: Option<&Conversation>,
        run: Option<&Run>,
        actions: &mut Vec<PanelAction>,
    ) -> Option<Wanted> {
        let mut wanted = None;
        let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), size::STRIP), Sense::hover());
        let right_to_left = Layout::right_to_left(Align::Center);
        let inner = rect.shrink2(vec2(space::S, 0.0));
        let mut row = ui.new_child(UiBuilder::new().max_rect(inner).id_salt("agent's head").layout(right_to_left));
        row.spacing_mut().item_spacing.x = 0.0;
        if icon_button(&mut row, icons::PLUS, "New agent session", None).clicked() {
            actions.push(PanelAction::Run("agent.new"));
        }
        if icon_button(&mut row, icons::HISTORY, "Agent sessions", None).clicked() {
            self.sessions.open = !self.sessions.open;
        }
        if conversation.is_some() && icon_button(&mut row, icons::BRANCH, "Branches of the session", None).clicked() {
            actions.push(PanelAction::Run("agent.branches"));
        }
        if run.is_some() && icon_button(&mut row, icons::GRAPH, "Timeline of the run", None).clicked() {
            actions.push(PanelAction::Run("agent.timeline"));
        }
        let left = Rect::from_min_max(inner.min, pos2(row.min_rect().left() - space::S, inner.bottom()));
        if let Some(title) = &mut self.title {
            let mut child = ui.new_child(UiBuilder::new().max_rect(left.shrink2(vec2(0.0, 4.0))).id_salt("title"));
            let field = egui::TextEdit::singleline(title).font(tokens::small().font).desired_width(f32::INFINITY);
            let id = Id::unique("title of the session");
            let response =
                child.add(field.id(id).margin(egui::Margin::symmetric(8, 4))).accessible_name("Title of the session");
            if response.lost_focus() {
                let keeps = !child.input(|input| input.key_pressed(Key::Escape));
                let title = self.title.take().unwrap_or_default();
                wanted = keeps.then_some(Wanted::Title(title));
            } else if !response.has_focus() {
                response.request_focus();
            }
            return wanted;
        }
        let text = match conversation {
            Some(conversation) if !conversation.about.title.is_empty() => conversation.about.title.as_str(),
            Some(_) => "Session",
            None => "Agent",
        };
        let sense = if conversation.is_some() { Sense::click() } else { Sense::hover() };
        let response = ui.interact(left, Id::unique("agent's title"), sense);
        let style = tokens::Type { font: tokens::inter(tokens::Cut::SemiBold, 13.0), line: 20.0 };
        let at = left.left_center() + vec2(space::S, -10.0);
        ui::controls::clipped(ui, at, left.width() - space::S, text, &style, Colours::of(ui).ink);
        ui::controls::ring(ui, &response, tokens::CORNER);
        if conversation.is_some() {
            named(&response, Role::Button, &format!("Change the title: {text}"));
            if response.clicked() {
                self.title = Some(text.to_owned());
            }
        } else {
            named(&response, Role::Heading, text);
        }
        wanted
    }

    /// What stands there while nothing was said.
    fn nothing(&self, ui: &mut Ui, agents: &Agents) {
        let trouble = self.session.and_then(|id| agents.trouble(id));
        let setup = agents.setup().and_then(|setup| setup.trouble.as_deref());
        let (text, hint) = match (trouble, setup, &self.waits) {
            (Some(why), _, _) => (why, ""),
            (None, _, Some(_)) => ("Sending…", ""),
            (None, Some(why), None) => (why, "Mend the configuration; the settings say where it lies."),
            (None, None, None) if self.session.is_some_and(|id| agents.sessions().any(|(known, _)| known == id)) => {
                ("Reading the session…", "")
            }
            (None, None, None) => {
                ("Ask about this note, or have something done.", "What it changes can be seen, and taken back.")
            }
        };
        ui::states::sentence(ui, text, None, hint);
    }

    /// What is pinned below: todos, what was used, what waits for a word, and the field.
    fn lower(
        &mut self,
        ui: &mut Ui,
        session: &Session,
        conversation: Option<&Conversation>,
        note: Option<DocId>,
        run: Option<&Run>,
        actions: &mut Vec<PanelAction>,
    ) -> Option<Wanted> {
        let agents = session.agents();
        ui.spacing_mut().item_spacing.y = space::XS;
        ui.add_space(space::XS);
        if let Some(run) = run {
            self.phases.show(ui, run, actions);
            self.todos.show(ui, run, actions);
            todos::meter(ui, run, actions);
            changes::line(ui, run, actions);
            bearing::given(ui, run, &mut self.given, actions);
        }
        let own = |run: &&Run| conversation.is_some_and(|conversation| conversation.id == run.about.session);
        let mine: Vec<&Run> = agents.open_runs().filter(|run| run.about.ending.is_none()).filter(own).collect();
        let elsewhere = waiting(agents) - mine.iter().map(|run| run.pending().count()).sum::<usize>();
        if elsewhere > 0 && mine.iter().all(|run| run.pending().next().is_none()) {
            self.elsewhere(ui, agents, elsewhere);
        }
        let free = self.composer.text.is_empty();
        self.cards.show(ui, &mine, free, actions);
        let volume = volume(session, note, conversation);
        let before = || -> Vec<String> {
            let branch = conversation.map(Conversation::branch).unwrap_or_default();
            branch.iter().filter(|said| said.role == Speaker::User).map(|said| said.content.clone()).collect()
        };
        let busy = mine.iter().find(|run| works(run)).map(|run| run.id);
        let busy = busy.or(self.waits.as_ref().map(|(run, _)| *run));
        self.before.show(ui, actions);
        if let Some(words) = self.low.look(session, volume) {
            low(ui, words, actions);
        }
        let callable = if self.composer.names_somebody() {
            self.callable.look(ui.ctx(), session, volume)
        } else {
            (0, [].as_slice())
        };
        match self.composer.show(ui, session, (volume, callable), &before, busy.is_some()) {
            Some(composer::Wish::Send) => Some(Wanted::Send),
            Some(composer::Wish::Stop) => busy.map(Wanted::Stop),
            None => None,
        }
    }

    /// A word on what waits in another session.
    fn elsewhere(&mut self, ui: &mut Ui, agents: &Agents, count: usize) {
        let words = if count == 1 { "Another session waits for you" } else { "Other sessions wait for you" };
        if ui::controls::text_button(ui, words, false).clicked() {
            let other = agents.open_runs().find(|run| run.about.ending.is_none() && run.pending().next().is_some());
            self.turn(other.map(|run| run.about.session));
        }
    }
}

/// The agent that a message calls by its name.
pub fn called(session: &Session, text: &str) -> Option<String> {
    let names = agent::context::mentions(text);
    let agents = agent::definition::built_in();
    let asked = |name: &String| agents.iter().any(|agent| agent.name == *name) && !session.is_switched_off(name);
    names.into_iter().find(asked)
}

/// A word on what is left to spend, which leads to the page of it.
fn low(ui: &mut Ui, text: &str, actions: &mut Vec<PanelAction>) {
    let colours = Colours::of(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), tokens::size::HIT), Sense::click());
    ui::controls::ground(ui, &response);
    let at = rect.left_center() + vec2(14.0, 0.0);
    ui.painter().text(at, egui::Align2::CENTER_CENTER, icons::WARNING, tokens::icon(size::ICON), colours.warn);
    let room = rect.width() - 30.0;
    ui::controls::clipped(ui, rect.left_center() + vec2(30.0, -8.0), room, text, &tokens::caption(), colours.warn);
    ui::controls::ring(ui, &response, tokens::CORNER);
    named(&response, Role::Link, text);
    if response.on_hover_text(text).clicked() {
        actions.push(PanelAction::Run("view.budget"));
    }
}

/// The volume in which the agent works: the open note's, the session's, or the first.
pub fn volume(session: &Session, note: Option<DocId>, conversation: Option<&Conversation>) -> Option<DocId> {
    let here = note.and_then(|note| session.place(note)).map(|(volume, _)| volume);
    let own = conversation.and_then(|conversation| conversation.about.volume);
    own.or(here).or_else(|| session.volumes().find(|volume| volume.root.is_some()).map(|volume| volume.id))
}
