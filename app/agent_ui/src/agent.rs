//! The agent panel: the session as a conversation, pending approvals, todos and usage, and the agent-related commands.

pub mod approvals;
mod branches;
mod changes;
mod comparison;
mod composer;
pub mod connection;
mod deadline_field;
pub mod diff_view;
mod instruction_files;
mod labels;
mod markdown_view;
mod message_foot;
mod messages;
pub(crate) mod model_picker;
mod phases;
mod program_cards;
mod prompt_fields;
mod recall_preview;
mod run_place;
mod server_forms;
mod sessions;
mod timeline;
mod todos;
mod tool_icons;
mod tools;

pub use branches::BranchesPage;
pub use changes::ChangesPage;
pub use run_place::RunPlace;
pub use timeline::TimelinePage;
pub use tools::ToolsPage;

use crate::panel_action::PanelAction;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Id, Key, Layout, Modifiers, Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::commands::CommandId;
use engine::{AgentRun, AgentSession, Command, RunsState, Session};
use program_approvals::ProgramApproval;
use sent_runs::sent_run_desk::SentRunsNews;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use store::{AgentState, DocId, MessageId, MessageRole as Speaker, StepKind};
use ui::icons;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{icon_button, set_accessible_name, text_button};

/// Maximum share of the panel's height that the footer takes.
const MAX_FOOTER_FRACTION: f32 = 0.72;

/// A command from the command table that concerns the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentCommand {
    /// Shows or hides the panel.
    Panel,
    /// Shows the card that connects a model.
    Connect,
    /// Starts a new session with the next message.
    New,
    /// Stops the active run.
    Stop,
    /// Resumes the session's last run, with more turns if it reached its limit.
    Resume,
    /// Answers the first pending approval.
    Decide {
        /// Whether the call is allowed; denied otherwise.
        allow: bool,
    },
    /// Shows the run's steps.
    Timeline,
    /// Shows the changes that the run made.
    Changes,
    /// Shows the session's branches.
    Branches,
    /// Shows the user's own tools.
    Tools,
}

/// The panel for conversations with agents: one session, its run, and the field for the next message.
#[derive(Default)]
pub struct AgentPanel {
    /// The visible session.
    pub session: Option<DocId>,
    /// Whether the next message starts a new session.
    fresh: bool,
    /// The requested run and its prompt, until the run has started.
    pub waits: Option<(DocId, String)>,
    /// The run that was sent to a worker and its prompt, until the worker has begun it.
    pub sent: Option<(DocId, String)>,
    /// What is known of sent runs.
    pub sent_news: Arc<SentRunsNews>,
    /// Where the next message is carried out.
    pub run_place: RunPlace,
    places: run_place::RunPlacePicker,
    /// Whether a fork is being made for the message in the field.
    pub is_forking: bool,
    /// Sessions and runs that were already requested.
    read: BTreeSet<DocId>,
    /// The field for the next message.
    pub composer: composer::MessageComposer,
    /// Names of the agents that can be called.
    callable: super::memory::CallableAgents,
    /// Recalled memory for the message that is being written.
    pub before: recall_preview::RecallPreview,
    /// Whether the instruction files are folded.
    are_instructions_folded: bool,
    /// The run whose recalled memory is shown.
    given: Option<DocId>,
    /// Warning that little of the budget is left.
    low: super::memory::LowBudgetWarning,
    messages: messages::MessageList,
    cards: approvals::ApprovalCards,
    /// What other programs ask and wait for.
    pub program_requests: Arc<Vec<ProgramApproval>>,
    phases: phases::RunPhasesView,
    todos: todos::TodoListView,
    sessions: sessions::SessionList,
    /// The session's title while it's being edited.
    title: Option<String>,
    /// The card that connects a model.
    pub connection: connection::ModelConnection,
    picker: model_picker::ModelPicker,
    /// A message to scroll to once its session is loaded.
    pub go_to: Option<MessageId>,
    /// Height of the footer in the last frame.
    foot: f32,
}

/// What the panel requests from the window.
pub enum AgentPanelAction {
    /// Sends the message in the field.
    Send,
    /// Stops this run.
    Stop(DocId),
    /// Copies the session up to this message into a new session, and shows it.
    Fork(store::MessageId),
    /// Sets the session's title.
    Title(String),
    /// Shows this session.
    Session(DocId),
    /// Asks for the devices that may carry out runs of this volume.
    FindWorkers(DocId),
    /// Decides what another program asks.
    DecideRequest {
        /// The request.
        id: String,
        /// Whether it's approved; denied otherwise.
        approved: bool,
    },
}

/// Returns whether a key was pressed with exactly these modifiers, and consumes the event.
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

/// Moves the caret of a text field to after this many characters.
fn lately(ui: &Ui, field: Id, caret: usize) {
    if let Some(mut state) = egui::TextEdit::load_state(ui.ctx(), field) {
        let cursor = egui::text::CCursor::new(caret);
        state.cursor.set_char_range(Some(egui::text::CCursorRange::one(cursor)));
        state.store(ui.ctx(), field);
    }
}

/// Returns the message of the last error among a run's steps.
fn last_error(run: &AgentRun) -> Option<String> {
    run.steps.iter().rev().find_map(|step| match &step.kind {
        StepKind::Error { message, .. } => Some(message.clone()),
        StepKind::Thinking { .. }
        | StepKind::ToolCall { .. }
        | StepKind::ToolResult { .. }
        | StepKind::Todo { .. }
        | StepKind::FinalAnswer { .. } => None,
    })
}

/// Returns whether a run continues by itself or after the user's decision. Interrupted runs don't.
pub fn works(run: &AgentRun) -> bool {
    run.about.ending.is_none() && (run.is_busy() || run.about.agent_state != AgentState::Idle)
}

/// Returns the number of pending approvals in all open runs.
pub fn pending_decision_count(agents: &RunsState) -> usize {
    agents.open_runs().filter(|run| run.about.ending.is_none()).map(|run| run.pending().count()).sum()
}

/// Returns the run at the end of the current branch.
fn run_of(session: &AgentSession) -> Option<DocId> {
    session.tree().get(session.head()?)?.run
}

impl AgentPanel {
    /// Returns the run that commands apply to: that of the visible session, otherwise the newest.
    pub fn run(&self, agents: &RunsState) -> Option<DocId> {
        let own = self.session.and_then(|session| agents.session(session)).and_then(run_of);
        own.or_else(|| agents.runs().max_by_key(|(_, line)| line.start_time).map(|(id, _)| id))
    }

    /// Returns the memory query for the message that is being written, or `None` if there is none.
    pub fn goal(&self, session: &Session, note: Option<DocId>) -> Option<recall_preview::RecallQuery> {
        let text = self.composer.text.trim();
        if text.is_empty() {
            return None;
        }
        let conversation = self.session.and_then(|id| session.agents().session(id));
        let volume = volume(session, note, conversation)?;
        let note = note.and_then(|note| session.locate_file(note)).map(|(_, path)| path.to_owned());
        let agent = called(session, text).unwrap_or_else(|| "assistant".to_owned());
        Some(recall_preview::RecallQuery { text: text.to_owned(), volume, note, agent })
    }

    /// Switches to a session.
    pub fn turn(&mut self, session: Option<DocId>) {
        (self.session, self.fresh, self.title) = (session, session.is_none(), None);
        self.sessions.open = false;
        self.composer.again = None;
        self.composer.focus = true;
    }

    /// Requests the documents that the panel shows.
    fn sync(&mut self, session: &Session, actions: &mut Vec<PanelAction>) {
        let agents = session.agents();
        if self.session.is_none() && !self.fresh {
            let open = agents.sessions().filter(|(_, line)| !line.closed);
            self.session = open.max_by_key(|(_, line)| line.updated).map(|(id, _)| id);
        }
        if let Some((run, text)) =
            self.waits.take_if(|(run, _)| agents.run(*run).is_some() || !agents.is_request_pending(*run))
            && agents.run(run).is_none()
            && self.composer.text.is_empty()
        {
            // The request was rejected; the reason is shown elsewhere.
            self.composer.text = text;
        }
        if let Some((_, text)) = self.sent.take_if(|(run, _)| self.sent_news.unsent.contains(&*run))
            && self.composer.text.is_empty()
        {
            // It wasn't sent; the reason is shown elsewhere.
            self.composer.text = text;
        }
        let news = &self.sent_news;
        let is_over = |run: DocId| news.ended.contains(&run) && !news.labels.contains_key(&run);
        _ = self.sent.take_if(|(run, _)| agents.run(*run).is_some() || is_over(*run));
        let Some(id) = self.session else { return };
        let known = agents.sessions().any(|(session, _)| session == id);
        match agents.session(id) {
            None if known && self.read.insert(id) => {
                actions.push(PanelAction::Do(Command::OpenSession { session: id }))
            }
            Some(conversation) => {
                if let Some(message) = self.go_to.take().filter(|message| conversation.tree().get(*message).is_some()) {
                    let message = conversation.tree().newest_end_below(message);
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

    /// Draws the panel. `note`: the open note, which the message refers to.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        (session, workspace): (&Session, &Path),
        note: Option<DocId>,
        actions: &mut Vec<PanelAction>,
    ) -> Option<AgentPanelAction> {
        self.sync(session, actions);
        self.connection.refresh(ui.ctx(), workspace);
        let gets_keyboard = self.composer.focus && self.composer.text.is_empty();
        let agents = session.agents();
        let area = ui.available_rect_before_wrap();
        let conversation = self.session.and_then(|id| agents.session(id));
        let run = conversation.and_then(run_of).and_then(|run| agents.run(run));
        let mut wanted = self.head(ui, conversation, run, actions);
        let top = ui.cursor().top();
        let most = area.height() * MAX_FOOTER_FRACTION;
        let foot = self.foot.clamp(120.0, most.max(120.0));
        let middle = Rect::from_min_max(pos2(area.left(), top), pos2(area.right(), area.bottom() - foot));
        let mut body = ui::layout::part(ui, "conversation", middle, middle);
        if self.is_connecting(agents, conversation) {
            let is_idle = self.composer.text.is_empty() && ui.memory(|memory| memory.has_focus(composer::field()));
            self.connection.pass_keyboard(is_idle);
            self.connect(&mut body, actions);
        } else if self.sessions.open {
            wanted = self.sessions.show(&mut body, agents, self.session).map(AgentPanelAction::Session).or(wanted);
        } else if let Some(conversation) = conversation {
            match self.messages.show(&mut body, agents, conversation, run, actions) {
                Some(messages::MessageAction::Again { text, parent }) => {
                    (self.composer.text, self.composer.focus) = (text, true);
                    lately(ui, composer::field(), self.composer.text.chars().count());
                    self.composer.again = Some(composer::MessageResend { parent });
                }
                Some(messages::MessageAction::Fork(at)) => wanted = Some(AgentPanelAction::Fork(at)),
                None => {}
            }
        } else {
            self.nothing(&mut body, agents);
        }
        let below = Rect::from_min_max(pos2(area.left(), middle.bottom()), area.max);
        ui.painter().hline(below.x_range(), below.top() + 0.5, Stroke::new(1.0, ThemeColors::of(ui).line));
        // The footer is as tall as its content, and scrolls if that exceeds the limit.
        let inner = Rect::from_min_size(below.min, vec2(below.width(), most)).shrink2(vec2(space::M, 0.0));
        let mut lower =
            ui.new_child(UiBuilder::new().max_rect(inner).id_salt("agent's foot").layout(Layout::top_down(Align::Min)));
        lower.set_clip_rect(below.intersect(ui.clip_rect()));
        let area = egui::ScrollArea::vertical().id_salt("foot").max_height(most).auto_shrink([false, true]);
        let shown = area.show(&mut lower, |ui| self.lower(ui, (session, workspace), conversation, note, run, actions));
        // The field has taken the keyboard in this frame; without a model, the card takes it in a later one.
        self.connection.awaits_keyboard |= gets_keyboard;
        wanted = shown.inner.or(wanted);
        let high = (shown.content_size.y.min(most) + space::S).ceil();
        if (high - self.foot).abs() > 0.5 {
            self.foot = high;
            ui.ctx().request_repaint();
        }
        wanted
    }

    fn head(
        &mut self,
        ui: &mut Ui,
        conversation: Option<&AgentSession>,
        run: Option<&AgentRun>,
        actions: &mut Vec<PanelAction>,
    ) -> Option<AgentPanelAction> {
        let mut wanted = None;
        let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), size::TOOLBAR_HEIGHT), Sense::hover());
        let right_to_left = Layout::right_to_left(Align::Center);
        let inner = rect.shrink2(vec2(space::S, 0.0));
        let mut row = ui.new_child(UiBuilder::new().max_rect(inner).id_salt("agent's head").layout(right_to_left));
        row.spacing_mut().item_spacing.x = 0.0;
        if icon_button(&mut row, icons::PLUS, "New agent session", None).clicked() {
            actions.push(PanelAction::Run(CommandId::AgentNew));
        }
        if icon_button(&mut row, icons::HISTORY, "Agent sessions", None).clicked() {
            self.sessions.open = !self.sessions.open;
        }
        if conversation.is_some() && icon_button(&mut row, icons::BRANCH, "Session branches", None).clicked() {
            actions.push(PanelAction::Run(CommandId::AgentBranches));
        }
        if run.is_some() && icon_button(&mut row, icons::GRAPH, "Run timeline", None).clicked() {
            actions.push(PanelAction::Run(CommandId::AgentTimeline));
        }
        let left = Rect::from_min_max(inner.min, pos2(row.min_rect().left() - space::S, inner.bottom()));
        if let Some(title) = &mut self.title {
            let mut child = ui.new_child(UiBuilder::new().max_rect(left.shrink2(vec2(0.0, 4.0))).id_salt("title"));
            let field = egui::TextEdit::singleline(title).font(theme::small().font).desired_width(f32::INFINITY);
            let id = Id::unique("title of the session");
            let response =
                child.add(field.id(id).margin(egui::Margin::symmetric(8, 4))).accessible_name("Title of the session");
            if response.lost_focus() {
                let keeps = !child.input(|input| input.key_pressed(Key::Escape));
                let title = self.title.take().unwrap_or_default();
                wanted = keeps.then_some(AgentPanelAction::Title(title));
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
        let style = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 13.0), line: 20.0 };
        let at = left.left_center() + vec2(space::S, -10.0);
        ui::widgets::paint_clipped_text(ui, at, left.width() - space::S, text, &style, ThemeColors::of(ui).ink);
        ui::widgets::paint_focus_ring(ui, &response, theme::CONTROL_CORNER);
        if conversation.is_some() {
            set_accessible_name(&response, Role::Button, &format!("Change the title: {text}"));
            if response.clicked() {
                self.title = Some(text.to_owned());
            }
        } else {
            set_accessible_name(&response, Role::Heading, text);
        }
        wanted
    }

    /// Returns the height of the field for the next message and what belongs to it, as last drawn.
    pub fn foot_height(&self) -> f32 {
        self.foot
    }

    /// Returns whether the card that connects a model is shown: the user wants it, or there is no content and no model.
    fn is_connecting(&self, agents: &RunsState, conversation: Option<&AgentSession>) -> bool {
        let is_reading = self.session.is_some_and(|id| agents.sessions().any(|(known, _)| known == id));
        let is_asking = self.waits.is_some() || self.sent.is_some();
        let is_empty = conversation.is_none() && !is_asking && !self.sessions.open && !is_reading;
        self.connection.open || (is_empty && self.connection.is_needed())
    }

    /// Draws the card that connects a model.
    fn connect(&mut self, ui: &mut Ui, actions: &mut Vec<PanelAction>) {
        let shown = egui::ScrollArea::vertical().id_salt("connect a model").auto_shrink(false).show(ui, |ui| {
            let colours = ThemeColors::of(ui);
            let frame = egui::Frame::NONE
                .fill(colours.raised)
                .stroke(Stroke::new(1.0, colours.line))
                .corner_radius(theme::CARD_CORNER)
                .inner_margin(space::L)
                .outer_margin(space::L);
            let card = frame.show(ui, |ui| {
                ui.set_min_width(ui.available_width());
                self.connection.show(ui)
            });
            card.inner
        });
        if let Some(connection::ConnectionEvent::Connected(model)) = shown.inner {
            self.composer.focus = true;
            actions.push(PanelAction::Do(Command::ReadSetup));
            actions.push(PanelAction::Say(format!("Agents now use {model}.")));
        }
    }

    /// Draws the placeholder of an empty session.
    fn nothing(&self, ui: &mut Ui, agents: &RunsState) {
        let trouble = self.session.and_then(|id| agents.read_error(id));
        let setup = agents.setup().and_then(|setup| setup.trouble.as_deref());
        if self.is_forking {
            let hint = "A fork is a copy in which the agent works. Your folder stays as it is.";
            ui::empty_state::show_message(ui, "Making a fork of the folder…", None, hint);
            return;
        }
        if let Some((run, _)) = &self.sent {
            let words = run_place::queue_sentence(&self.sent_news, *run).unwrap_or_else(|| "Sending…".to_owned());
            ui::empty_state::show_message(ui, &words, None, "You see its steps as they arrive.");
            return;
        }
        let (text, hint) = match (trouble, setup, &self.waits) {
            (Some(why), _, _) => (why, ""),
            (None, _, Some(_)) => ("Sending…", ""),
            (None, Some(why), None) => (why, "Fix the configuration file. Settings show its path."),
            (None, None, None) if self.session.is_some_and(|id| agents.sessions().any(|(known, _)| known == id)) => {
                ("Reading the session…", "")
            }
            (None, None, None) => {
                ("Ask about this note, or give the agent a task.", "You can review and revert its changes.")
            }
        };
        ui::empty_state::show_message(ui, text, None, hint);
    }

    /// Draws the footer: todos, usage, pending approvals, and the message field.
    fn lower(
        &mut self,
        ui: &mut Ui,
        (session, workspace): (&Session, &Path),
        conversation: Option<&AgentSession>,
        note: Option<DocId>,
        run: Option<&AgentRun>,
        actions: &mut Vec<PanelAction>,
    ) -> Option<AgentPanelAction> {
        let agents = session.agents();
        ui.spacing_mut().item_spacing.y = space::XS;
        ui.add_space(space::S);
        if let Some(run) = run {
            self.phases.show(ui, run, actions);
            self.todos.show(ui, run, actions);
            if todos::show_run_usage(ui, run, actions) {
                self.connection.open = true;
            }
            recall_preview::show_recalled_memory(ui, run, &mut self.given, actions);
        }
        let own = |run: &&AgentRun| conversation.is_some_and(|conversation| conversation.id == run.about.session);
        let mine: Vec<&AgentRun> = agents.open_runs().filter(|run| run.about.ending.is_none()).filter(own).collect();
        let elsewhere = pending_decision_count(agents) - mine.iter().map(|run| run.pending().count()).sum::<usize>();
        if elsewhere > 0 && mine.iter().all(|run| run.pending().next().is_none()) {
            self.elsewhere(ui, agents, elsewhere);
        }
        let free = self.composer.text.is_empty();
        self.cards.show(ui, session, &mine, free, &self.sent_news, actions);
        let elsewhere = run_place::run_elsewhere(session, run).map(|(_, root)| root);
        let sent = self.sent.as_ref().map(|(run, _)| *run).filter(|run| !self.sent_news.ended.contains(run));
        if conversation.is_some() {
            run_place::show_sent_run(ui, &self.sent_news, sent.or(elsewhere), &mine);
        }
        let decided = program_cards::show_program_request(ui, &self.program_requests);
        let volume = volume(session, note, conversation);
        let before = || -> Vec<String> {
            let branch = conversation.map(AgentSession::branch).unwrap_or_default();
            branch.iter().filter(|said| said.role == Speaker::User).map(|said| said.content.clone()).collect()
        };
        let busy = mine.iter().find(|run| works(run)).map(|run| run.id);
        let busy = busy.or(self.waits.as_ref().map(|(run, _)| *run)).or(sent);
        instruction_files::show(ui, session, (volume, note), &mut self.are_instructions_folded, actions);
        let fork = volume.and_then(|volume| session.volume(volume)?.fork_of.as_ref());
        if let Some(fork) = fork
            && text_button(ui, &format!("In the fork {}", fork.name), false).clicked()
        {
            actions.push(PanelAction::Run(CommandId::ViewForks));
        }
        self.before.show(ui, actions);
        if !free {
            self.before.deadline.show(ui);
        }
        let finds = self.show_run_place(ui, session, volume);
        let is_here = self.run_place == RunPlace::Here;
        self.composer.can_fork = conversation.is_none() && volume.is_some() && !self.is_forking && is_here;
        if let Some(words) = self.low.refresh_warning(session, volume) {
            low(ui, words, actions);
        }
        let callable = if self.composer.is_naming_agent() {
            self.callable.refresh_names(ui.ctx(), session, volume)
        } else {
            (0, [].as_slice())
        };
        if self.composer.is_naming_offer() && agents.setup().is_none() && !agents.is_reading() {
            // What servers offer comes with the setup.
            actions.push(PanelAction::Do(Command::ReadSetup));
        }
        self.picker.show_small_context(ui, agents, workspace);
        let (picker, config) = (&mut self.picker, self.connection.config());
        let mut picked = None;
        let pick = |ui: &mut Ui| picked = picker.show(ui, agents, config, workspace);
        let wish = self.composer.show(ui, session, (volume, callable), &before, (busy.is_some(), pick));
        match picked {
            Some(model_picker::PickerEvent::Connect) => self.connection.open = true,
            Some(model_picker::PickerEvent::Changed) => actions.push(PanelAction::Do(Command::ReadSetup)),
            Some(model_picker::PickerEvent::Failed(why)) => actions.push(PanelAction::Say(ui::text::sentence(&why))),
            None => {}
        }
        match wish {
            _ if decided.is_some() => decided,
            Some(composer::ComposerAction::Send) => Some(AgentPanelAction::Send),
            Some(composer::ComposerAction::Stop) => busy.map(AgentPanelAction::Stop),
            None => finds.map(AgentPanelAction::FindWorkers),
        }
    }

    /// Draws where the next message is carried out, if the volume's runs can be sent. Returns the volume if the devices
    /// of its hub are to be asked for.
    fn show_run_place(&mut self, ui: &mut Ui, session: &Session, volume: Option<DocId>) -> Option<DocId> {
        let Some(volume) = volume.filter(|volume| sent_runs::is_shared_over_hub(session, *volume)) else {
            self.run_place = RunPlace::Here;
            return None;
        };
        let devices = self.sent_news.devices.get(&volume);
        if let RunPlace::Worker { id, .. } = &self.run_place
            && !devices.is_some_and(|known| known.as_ref().is_ok_and(|known| known.iter().any(|(of, _)| of == id)))
        {
            // Another volume's hub doesn't know it.
            self.run_place = RunPlace::Here;
        }
        self.places.show(ui, &mut self.run_place, devices).then_some(volume)
    }

    /// Returns the visible run and its volume if another device carries it out.
    pub fn run_elsewhere(&self, session: &Session) -> Option<(DocId, DocId)> {
        let agents = session.agents();
        let run = self.session.and_then(|id| agents.session(id)).and_then(run_of).and_then(|run| agents.run(run));
        run_place::run_elsewhere(session, run)
    }

    /// Draws the button that switches to another session with pending approvals.
    fn elsewhere(&mut self, ui: &mut Ui, agents: &RunsState, count: usize) {
        let words =
            if count == 1 { "Another session needs your approval" } else { "Other sessions need your approval" };
        if text_button(ui, words, false).clicked() {
            let other = agents.open_runs().find(|run| run.about.ending.is_none() && run.pending().next().is_some());
            self.turn(other.map(|run| run.about.session));
        }
    }
}

/// Returns the agent that a message mentions by name.
pub fn called(session: &Session, text: &str) -> Option<String> {
    let names = agent::model_context::mentions(text);
    let agents = agent::agent_definition::built_in();
    let own = session.agents().setup().map(|setup| setup.agents.as_slice()).unwrap_or_default();
    let asked =
        |name: &String| own.iter().chain(&agents).any(|agent| agent.name == *name) && !session.is_switched_off(name);
    names.into_iter().find(asked)
}

/// Draws the low-budget warning, which links to the budget page.
fn low(ui: &mut Ui, text: &str, actions: &mut Vec<PanelAction>) {
    let colours = ThemeColors::of(ui);
    let (rect, response) =
        ui.allocate_exact_size(vec2(ui.available_width(), theme::size::MIN_CLICK_HEIGHT), Sense::click());
    ui::widgets::paint_hover_fill(ui, &response);
    let at = rect.left_center() + vec2(14.0, 0.0);
    ui.painter().text(at, egui::Align2::CENTER_CENTER, icons::WARNING, theme::icon_font(size::ICON_SIZE), colours.warn);
    let room = rect.width() - 30.0;
    ui::widgets::paint_clipped_text(
        ui,
        rect.left_center() + vec2(30.0, -8.0),
        room,
        text,
        &theme::caption(),
        colours.warn,
    );
    ui::widgets::paint_focus_ring(ui, &response, theme::CONTROL_CORNER);
    set_accessible_name(&response, Role::Link, text);
    if response.on_hover_text(text::untrusted_text::escape_block(text).into_owned()).clicked() {
        actions.push(PanelAction::Run(CommandId::ViewBudget));
    }
}

/// Returns the volume in which the agent works: the session's, the open note's, or the first with a folder.
pub fn volume(session: &Session, note: Option<DocId>, conversation: Option<&AgentSession>) -> Option<DocId> {
    let here = note.and_then(|note| session.locate_file(note)).map(|(volume, _)| volume);
    let own = conversation.and_then(|conversation| conversation.about.volume);
    own.or(here).or_else(|| session.volumes().find(|volume| volume.root.is_some()).map(|volume| volume.id))
}
