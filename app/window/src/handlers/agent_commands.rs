//! Handlers for the agent's commands and pages.

use crate::shell::dock_state::{DockState, RightPanel};
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::page_view::PageView;
use crate::shell::pane_state::PaneState;
use crate::shell::window_state::WindowState;
use agent::memory::RecallOptions;
use agent::policy::ToolPolicy;
use agent_ui::agent::{
    AgentCommand, AgentPanelAction, BranchesPage, ChangesPage, TimelinePage, ToolsPage, approvals, called, volume,
    works,
};
use agent_ui::panel_action::PanelAction;
use eframe::egui;
use egui::Ui;
use engine::{AgentRun, Command};
use host::peers::DeviceId;
use notebook::actions::PageAction;
use program_approvals::ProgramDecision;
use sent_runs::{RunTask, SentQuestion};
use source_control::forks_page::fork_desk::{AnsweredWish, ForkQuestion};
use store::{DocId, MessageId, StepId};

impl DockState {
    pub(crate) fn show_agent(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        ui: &mut Ui,
        actions: &mut Vec<PageAction>,
    ) {
        let (driver, agent, here) = (&host.driver, &mut self.agent, &panes.active);
        let session = driver.session();
        let goal = agent.goal(session, here.note);
        agent.program_requests = host.approvals.waiting();
        agent.sent_news = host.sent_runs.news();
        if let Some((volume, run)) = agent.run_elsewhere(session) {
            host.sent_runs.follow(volume, run);
        }
        let mut asked = Vec::new();
        agent.before.poll_recall(ui.ctx(), driver, goal, &mut asked);
        let wanted = agent.show(ui, (session, driver.folder()), here.note, &mut asked);
        actions.extend(asked.into_iter().map(PageAction::from));
        let Some(wanted) = wanted else { return };
        match wanted {
            AgentPanelAction::Send => self.ask_agent(host, panes, notices),
            AgentPanelAction::Stop(run) => self.stop_run(host, panes, notices, run),
            AgentPanelAction::FindWorkers(volume) => host.sent_runs.request_devices(volume),
            AgentPanelAction::Fork(at) => {
                let new = DocId::random(rand::random());
                if let Some(session) = self.agent.session
                    && host.send(Command::ForkSession { session, at, new }, notices)
                {
                    self.agent.turn(Some(new));
                    notices.toasts.show_message("Forked into a new session.");
                }
            }
            AgentPanelAction::Title(title) => {
                if let Some(session) = self.agent.session {
                    host.send(Command::DescribeSession { session, title: Some(title), closed: None }, notices);
                }
            }
            AgentPanelAction::Session(session) => self.agent.turn(Some(session)),
            AgentPanelAction::DecideRequest { id, approved } => {
                host.approvals.decide(&id, ProgramDecision { approved, comment: String::new() });
            }
        }
        ui.ctx().request_repaint();
    }

    /// Sends the composed message to an agent.
    fn ask_agent(&mut self, host: &mut HostLink, panes: &mut PaneState, notices: &mut NoticeState) {
        let session = host.session();
        let conversation = self.agent.session.and_then(|id| session.agents().session(id));
        let Some(volume) = volume(session, panes.active.note, conversation) else {
            notices.toasts.show_message("Open a folder first. An agent works in a folder.");
            return;
        };
        let agent = called(session, &self.agent.composer.text);
        let recall = match self.agent.before.recall() {
            Ok(recall) => recall,
            Err(why) => return notices.toasts.show_message(ui::text::sentence(&why.to_string())),
        };
        if recall.deadline.is_some_and(|at| at <= host::clock::unix_millis_now()) {
            return notices.toasts.show_message("The deadline has passed.");
        }
        if let Some(to) = self.agent.run_place.receiver() {
            return self.ask_elsewhere(host, panes, notices, (volume, agent, to), recall);
        }
        if self.agent.composer.in_fork && self.agent.session.is_none() {
            // A space at the beginning of a message has a meaning: no prompt is called.
            let text = self.agent.composer.text.trim_end().to_owned();
            let note = panes.active.note;
            match host.forks.job() {
                Some(job) => notices.toasts.show_message(job),
                None => {
                    host.forks.ask(ForkQuestion { volume, note, text, agent, recall });
                    self.agent.is_forking = true;
                }
            }
            return;
        }
        let parent = self.agent.composer.again.map(|again| again.parent);
        let (run, session) =
            (DocId::random(rand::random()), self.agent.session.unwrap_or_else(|| DocId::random(rand::random())));
        let text = self.agent.composer.text.trim_end().to_owned();
        // An edited first message starts a new branch.
        let (note, parent) = (panes.active.note, parent.map(|parent| parent.unwrap_or(MessageId::SESSION_ROOT)));
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
            provider: None,
        };
        if host.send(ask, notices) {
            self.agent.composer.take_message();
            self.agent.before.clear();
            self.agent.turn(Some(session));
            self.agent.waits = Some((run, text));
        }
    }

    /// Sends the composed message to a worker: `to`, or any.
    fn ask_elsewhere(
        &mut self,
        host: &mut HostLink,
        panes: &PaneState,
        notices: &mut NoticeState,
        (volume, agent, to): (DocId, Option<String>, Option<DeviceId>),
        recall: RecallOptions,
    ) {
        let again = self.agent.composer.again;
        let run = DocId::random(rand::random());
        let session = self.agent.session.unwrap_or_else(|| DocId::random(rand::random()));
        let text = self.agent.composer.text.trim_end().to_owned();
        let task = RunTask {
            session,
            note: panes.active.note,
            parent: again.map(|again| again.parent.unwrap_or(MessageId::SESSION_ROOT)),
            text: text.clone(),
            agent,
            budget: None,
            provider: None,
            allow: Vec::new(),
            recall,
            policy: ToolPolicy::default(),
        };
        match host.send_away(SentQuestion { run, volume, to, task }) {
            Ok(()) => {
                self.agent.composer.take_message();
                self.agent.before.clear();
                self.agent.turn(Some(session));
                self.agent.sent = Some((run, text));
            }
            Err(why) => notices.toasts.show_message(why.to_string()),
        }
    }

    /// Stops a run of the panel.
    fn stop_run(&self, host: &mut HostLink, panes: &PaneState, notices: &mut NoticeState, run: DocId) {
        let session = host.session();
        let conversation = self.agent.session.and_then(|id| session.agents().session(id));
        let volume = volume(session, panes.active.note, conversation);
        host.stop_run(run, volume, notices);
    }

    /// Sends the message whose fork is made.
    pub(crate) fn ask_in_made_fork(&mut self, host: &mut HostLink, notices: &mut NoticeState) {
        let Some(AnsweredWish { question, fork }) = host.forks.take_answered() else { return };
        self.agent.is_forking = false;
        let fork = match fork {
            Ok(fork) => fork,
            Err(why) => return notices.toasts.show_message(why.to_string()),
        };
        let [run, session] = [DocId::random(rand::random()), DocId::random(rand::random())];
        let ask = Command::Ask {
            run,
            session,
            volume: fork.volume,
            note: fork.note,
            parent: None,
            text: question.text.clone(),
            agent: question.agent,
            budget: None,
            allow: Vec::new(),
            recall: question.recall,
            provider: None,
        };
        if host.send(ask, notices) {
            // What was typed while the fork was made is another message.
            if self.agent.composer.text.trim_end() == question.text {
                self.agent.composer.take_message();
            }
            self.agent.composer.in_fork = false;
            self.agent.before.clear();
            self.agent.turn(Some(session));
            self.agent.waits = Some((run, question.text));
        }
    }

    /// Performs an agent command.
    pub(crate) fn run_agent(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        prefs: &mut WindowState,
        asked: AgentCommand,
    ) {
        let agents = host.session().agents();
        let run = self.agent.run(agents);
        let busy = run.and_then(|run| agents.run(run)).filter(|run| works(run)).map(|run| run.id);
        match asked {
            AgentCommand::Panel => {
                let shown = prefs.right_open && self.right == RightPanel::Agent;
                self.show_agent_panel(prefs, !shown);
            }
            AgentCommand::Connect => {
                self.show_agent_panel(prefs, true);
                self.agent.connection.open = true;
            }
            AgentCommand::New => {
                self.agent.turn(None);
                self.show_agent_panel(prefs, true);
            }
            AgentCommand::Stop => match busy {
                Some(run) => self.stop_run(host, panes, notices, run),
                None => notices.toasts.show_message("The agent isn't running."),
            },
            AgentCommand::Resume => {
                let limit =
                    run.and_then(|run| agents.run(run)).is_some_and(|run| run.about.iteration >= run.about.limit);
                let more = limit.then_some(20);
                match run {
                    Some(run) => _ = host.send(Command::ResumeRun { run, more, budget: None }, notices),
                    None => notices.toasts.show_message("No agent has run yet."),
                }
            }
            AgentCommand::Decide { allow } => match approvals::decide_first(agents.open_runs(), allow) {
                Some(PanelAction::Do(command)) => _ = host.send(command, notices),
                _ => notices.toasts.show_message("Nothing needs approval."),
            },
            AgentCommand::Timeline | AgentCommand::Changes => match run {
                Some(run) => {
                    host.send(Command::OpenRun { run }, notices);
                    panes.view = Some(match asked {
                        AgentCommand::Changes => PageView::Changes(ChangesPage::new(run)),
                        _ => PageView::Timeline(Box::new(TimelinePage::new(run))),
                    });
                }
                None => notices.toasts.show_message("No agent has run yet."),
            },
            AgentCommand::Tools => {
                let workspace = host.driver.handle().workspace_folder().to_owned();
                panes.view = Some(PageView::Tools(ToolsPage::new(workspace)));
            }
            AgentCommand::Branches => {
                let newest = || agents.sessions().max_by_key(|(_, line)| line.updated).map(|(id, _)| id);
                match self.agent.session.or_else(newest) {
                    Some(session) => {
                        host.send(Command::OpenSession { session }, notices);
                        panes.view = Some(PageView::Branches(BranchesPage::new(session)));
                    }
                    None => notices.toasts.show_message("No sessions yet"),
                }
            }
        }
    }

    /// Shows a run at one of its steps, or a session at one of its messages. Returns `false` for any other document.
    pub(crate) fn show_found(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        prefs: &mut WindowState,
        doc: DocId,
        part: &str,
    ) -> bool {
        let agents = host.session().agents();
        if agents.runs().any(|(run, _)| run == doc) {
            host.send(Command::OpenRun { run: doc }, notices);
            panes.view = Some(PageView::Timeline(Box::new(TimelinePage::at(doc, part.parse().ok()))));
            return true;
        }
        if !agents.sessions().any(|(session, _)| session == doc) {
            return false;
        }
        self.agent.turn(Some(doc));
        self.show_agent_panel(prefs, true);
        if let Ok(message) = part.parse::<MessageId>() {
            self.agent.go_to = Some(message);
        }
        true
    }

    /// Shows a session that was started outside the panel, without moving the keyboard focus.
    pub(crate) fn show_session(&mut self, prefs: &mut WindowState, session: DocId) {
        self.agent.turn(Some(session));
        self.show_agent_panel(prefs, true);
        self.agent.composer.focus = false;
    }

    /// Starts a message to the agent with this name.
    pub(crate) fn call_agent(&mut self, prefs: &mut WindowState, name: &str) {
        self.agent.composer.mention_agent(name);
        self.show_agent_panel(prefs, true);
    }

    /// Shows a session that waits for the user's approval.
    pub(crate) fn show_pending_decision(&mut self, host: &HostLink, prefs: &mut WindowState) {
        let agents = host.session().agents();
        let waits = |run: &&AgentRun| run.about.ending.is_none() && run.pending().next().is_some();
        let mut sessions: Vec<DocId> = agents.open_runs().filter(waits).map(|run| run.about.session).collect();
        if sessions.is_empty() {
            sessions = agents.open_runs().filter(|run| run.is_awake()).map(|run| run.about.session).collect();
        }
        if !sessions.is_empty() && self.agent.session.is_none_or(|session| !sessions.contains(&session)) {
            self.agent.turn(sessions.first().copied());
        }
        self.show_agent_panel(prefs, true);
    }

    fn show_agent_panel(&mut self, prefs: &mut WindowState, shown: bool) {
        self.show_or_close(RightPanel::Agent, shown, &mut prefs.right_open);
        self.agent.composer.focus = shown;
    }
}

impl PaneState {
    /// Shows the changes made by the runs of a session, identified by one of its runs.
    pub(crate) fn show_changes(&mut self, host: &mut HostLink, notices: &mut NoticeState, run: DocId) {
        host.send(Command::OpenRun { run }, notices);
        self.view = Some(PageView::Changes(ChangesPage::new(run)));
    }

    /// Shows a step of a run on its timeline.
    pub(crate) fn show_step(&mut self, host: &mut HostLink, notices: &mut NoticeState, run: DocId, step: StepId) {
        host.send(Command::OpenRun { run }, notices);
        self.view = Some(PageView::Timeline(Box::new(TimelinePage::at(run, Some(step)))));
    }
}
