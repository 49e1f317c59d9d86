//! What the commands and pages of the agent do in the window.

use crate::actions::PageAction;
use crate::app_window::AppWindow;
use crate::shell::dock_state::RightPanel;
use crate::shell::page_view::PageView;
use agent_ui::agent::{
    AgentCommand, AgentPanelAction, BranchesPage, ChangesPage, TimelinePage, ToolsPage, approvals, called, volume,
    works,
};
use agent_ui::panel_action::PanelAction;
use eframe::egui;
use egui::Ui;
use engine::{AgentRun, Command};
use store::{DocId, MessageId, StepId};

impl AppWindow {
    pub(crate) fn show_agent(&mut self, ui: &mut Ui, actions: &mut Vec<PageAction>) {
        let (driver, agent, here) = (&self.host.driver, &mut self.dock.agent, &self.panes.active);
        let session = driver.session();
        let goal = agent.goal(session, here.note);
        let mut asked = Vec::new();
        agent.before.poll_recall(ui.ctx(), driver, goal, &mut asked);
        let wanted = agent.show(ui, session, here.note, &mut asked);
        actions.extend(asked.into_iter().map(PageAction::from));
        let Some(wanted) = wanted else { return };
        match wanted {
            AgentPanelAction::Send => self.ask_agent(),
            AgentPanelAction::Stop(run) => _ = self.send(Command::CancelRun { run }),
            AgentPanelAction::Fork(at) => {
                let new = DocId::random(rand::random());
                if let Some(session) = self.dock.agent.session
                    && self.send(Command::ForkSession { session, at, new })
                {
                    self.dock.agent.turn(Some(new));
                    self.notices.toasts.show_message("This is a session of its own now.");
                }
            }
            AgentPanelAction::Title(title) => {
                if let Some(session) = self.dock.agent.session {
                    self.send(Command::DescribeSession { session, title: Some(title), closed: None });
                }
            }
            AgentPanelAction::Session(session) => self.dock.agent.turn(Some(session)),
        }
        ui.ctx().request_repaint();
    }

    /// Sends what was written.
    fn ask_agent(&mut self) {
        let session = self.host.session();
        let conversation = self.dock.agent.session.and_then(|id| session.agents().session(id));
        let Some(volume) = volume(session, self.panes.active.note, conversation) else {
            self.notices.toasts.show_message("Open a folder first. An agent works in a folder.");
            return;
        };
        let agent = called(session, &self.dock.agent.composer.text);
        let parent = self.dock.agent.composer.again.map(|again| again.parent);
        let (run, session) =
            (DocId::random(rand::random()), self.dock.agent.session.unwrap_or_else(|| DocId::random(rand::random())));
        let text = self.dock.agent.composer.text.trim().to_owned();
        // An edited first message starts a new branch.
        let (note, parent) = (self.panes.active.note, parent.map(|parent| parent.unwrap_or(MessageId::SESSION_ROOT)));
        let recall = self.dock.agent.before.recall();
        let ask = Command::Ask {
            run,
            session,
            volume,
            note,
            parent,
            text: text.clone(),
            agent,
            budget: None,
            allow: Vec::new(),
            recall,
        };
        if self.send(ask) {
            self.dock.agent.composer.take_message();
            self.dock.agent.before.clear();
            self.dock.agent.turn(Some(session));
            self.dock.agent.waits = Some((run, text));
        }
    }

    /// Performs a command that concerns the agent.
    pub(crate) fn run_agent(&mut self, asked: AgentCommand) {
        let agents = self.host.session().agents();
        let run = self.dock.agent.run(agents);
        let busy = run.and_then(|run| agents.run(run)).filter(|run| works(run)).map(|run| run.id);
        match asked {
            AgentCommand::Panel => {
                let shown = self.prefs.right_open && self.dock.right == RightPanel::Agent;
                self.show_agent_panel(!shown);
            }
            AgentCommand::New => {
                self.dock.agent.turn(None);
                self.show_agent_panel(true);
            }
            AgentCommand::Stop => match busy {
                Some(run) => _ = self.send(Command::CancelRun { run }),
                None => self.notices.toasts.show_message("The agent isn't running."),
            },
            AgentCommand::Resume => {
                let limit =
                    run.and_then(|run| agents.run(run)).is_some_and(|run| run.about.iteration >= run.about.limit);
                let more = limit.then_some(20);
                match run {
                    Some(run) => _ = self.send(Command::ResumeRun { run, more, budget: None }),
                    None => self.notices.toasts.show_message("Nothing was asked yet."),
                }
            }
            AgentCommand::Decide { allow } => match approvals::decide_first(agents.open_runs(), allow) {
                Some(PanelAction::Do(command)) => _ = self.send(command),
                _ => self.notices.toasts.show_message("Nothing waits for a word."),
            },
            AgentCommand::Timeline | AgentCommand::Changes => match run {
                Some(run) => {
                    self.send(Command::OpenRun { run });
                    self.panes.view = Some(match asked {
                        AgentCommand::Changes => PageView::Changes(ChangesPage::new(run)),
                        _ => PageView::Timeline(Box::new(TimelinePage::new(run))),
                    });
                }
                None => self.notices.toasts.show_message("Nothing was asked yet."),
            },
            AgentCommand::Tools => self.panes.view = Some(PageView::Tools(ToolsPage::default())),
            AgentCommand::Branches => {
                let newest = || agents.sessions().max_by_key(|(_, line)| line.updated).map(|(id, _)| id);
                match self.dock.agent.session.or_else(newest) {
                    Some(session) => {
                        self.send(Command::OpenSession { session });
                        self.panes.view = Some(PageView::Branches(BranchesPage::new(session)));
                    }
                    None => self.notices.toasts.show_message("No sessions yet"),
                }
            }
        }
    }

    /// Shows a run at one of its steps, or a session at one of its messages, if it is one of these.
    pub(crate) fn show_found(&mut self, doc: DocId, part: &str) -> bool {
        let agents = self.host.session().agents();
        if agents.runs().any(|(run, _)| run == doc) {
            self.send(Command::OpenRun { run: doc });
            self.panes.view = Some(PageView::Timeline(Box::new(TimelinePage::at(doc, part.parse().ok()))));
            return true;
        }
        if !agents.sessions().any(|(session, _)| session == doc) {
            return false;
        }
        self.dock.agent.turn(Some(doc));
        self.show_agent_panel(true);
        if let Ok(message) = part.parse::<MessageId>() {
            self.dock.agent.go_to = Some(message);
        }
        true
    }

    /// Shows a session in which something was begun elsewhere; the keyboard stays where it is.
    pub(crate) fn show_session(&mut self, session: DocId) {
        self.dock.agent.turn(Some(session));
        self.show_agent_panel(true);
        self.dock.agent.composer.focus = false;
    }

    /// Begins a message to the agent of this name.
    pub(crate) fn call_agent(&mut self, name: &str) {
        self.dock.agent.composer.mention_agent(name);
        self.show_agent_panel(true);
    }

    /// Shows a step of a run on its timeline.
    pub(crate) fn show_step(&mut self, run: DocId, step: StepId) {
        self.send(Command::OpenRun { run });
        self.panes.view = Some(PageView::Timeline(Box::new(TimelinePage::at(run, Some(step)))));
    }

    /// Shows what waits for the user's word.
    pub(crate) fn show_pending_decision(&mut self) {
        let agents = self.host.session().agents();
        let waits = |run: &&AgentRun| run.about.ending.is_none() && run.pending().next().is_some();
        let sessions: Vec<DocId> = agents.open_runs().filter(waits).map(|run| run.about.session).collect();
        if self.dock.agent.session.is_none_or(|session| !sessions.contains(&session)) {
            self.dock.agent.turn(sessions.first().copied());
        }
        self.show_agent_panel(true);
    }

    fn show_agent_panel(&mut self, shown: bool) {
        self.dock.show_or_close(RightPanel::Agent, shown, &mut self.prefs.right_open);
        self.dock.agent.composer.focus = shown;
    }
}
