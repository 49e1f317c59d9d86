//! Handlers for the memory commands and pages.

use crate::shell::dock_state::DockState;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::page_view::PageView;
use crate::shell::pane_state::PaneState;
use crate::shell::window_state::WindowState;
use agent::memory::MEMORY_FOLDER;
use agent::memory::trace::{RunTrace, TRACES_FOLDER};
use agent_ui::memory::{BudgetPage, ExperiencesPage, MemoryAction, MemoryCommand, file};
use engine::Command;
use engine::commands::CommandId;
use store::DocId;

/// Maximum number of forgotten experiences that can be restored.
const MAX_FORGOTTEN: usize = 50;

impl PaneState {
    /// Performs a memory command.
    pub(crate) fn run_remembering(
        &mut self,
        host: &mut HostLink,
        dock: &mut DockState,
        notices: &mut NoticeState,
        what: MemoryCommand,
    ) {
        match what {
            MemoryCommand::Experiences => self.view = Some(PageView::Memory(Box::default())),
            MemoryCommand::Traces => self.view = Some(PageView::Traces(Box::default())),
            MemoryCommand::Schedule => self.view = Some(PageView::Schedule(Box::default())),
            MemoryCommand::Agents => {
                host.send(Command::ReadSetup, notices);
                self.view = Some(PageView::Agents(Box::default()));
            }
            MemoryCommand::Plans => self.view = Some(PageView::Plans(Box::default())),
            MemoryCommand::Budget => {
                host.send(Command::ReadSetup, notices);
                let folder = host.driver.folder().to_owned();
                self.view = Some(PageView::Budget(Box::new(BudgetPage::of_workspace(folder))));
            }
            MemoryCommand::Undo => match dock.forgotten.pop() {
                Some(gone) => {
                    let (_, _, back) = gone.commands();
                    if host.send(back, notices) {
                        if let Some(PageView::Memory(page)) = &mut self.view {
                            page.on_forget_undone();
                        }
                        notices.toasts.show_message("Restored.");
                    }
                }
                None => notices.toasts.show_message("Nothing to restore"),
            },
        }
    }
}

impl DockState {
    /// Performs what a memory page requests.
    pub(crate) fn remember(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        prefs: &mut WindowState,
        wish: MemoryAction,
    ) {
        match wish {
            MemoryAction::Forget(one) => {
                let (forget, says, _) = one.commands();
                if host.send(forget, notices) {
                    self.forgotten.push(one);
                    let old = self.forgotten.len().saturating_sub(MAX_FORGOTTEN);
                    self.forgotten.drain(..old);
                    notices.toasts.show_with_action(says, "Undo", CommandId::MemoryUndo);
                }
            }
            MemoryAction::ShowRun(run, step) => {
                if !self.show_found(host, panes, notices, prefs, run, &step) {
                    notices.toasts.show_message("The run is not on this device.");
                }
            }
            MemoryAction::Show(id) => panes.view = Some(PageView::Memory(Box::new(ExperiencesPage::at(id)))),
            MemoryAction::Import { volume, traces } => host.import_traces(notices, volume, traces),
            MemoryAction::Call(name) => self.call_agent(prefs, &name),
            MemoryAction::Make { volume, path, text, shown } => {
                if host.send(Command::NewNote { volume, path: path.clone(), text }, notices)
                    && let Some(note) = file(host.session(), volume, &path)
                {
                    if shown {
                        panes.open(host, notices, note);
                    } else {
                        host.send(Command::CloseNote { note }, notices);
                    }
                }
            }
            MemoryAction::CarryOut { note, tasks, only } => {
                let [run, session] = [DocId::random(rand::random()), DocId::random(rand::random())];
                let (budget, allow) = (None, Vec::new());
                if host.send(Command::RunTasks { run, session, note, tasks, only, budget, allow }, notices) {
                    self.show_session(prefs, session);
                }
            }
        }
    }
}

impl HostLink {
    /// Creates notes from the traces of another workspace, except for goals that are already known here.
    fn import_traces(&mut self, notices: &mut NoticeState, volume: DocId, traces: Vec<RunTrace>) {
        let volume = self.session().memory_home(volume).map_or(volume, |(home, _)| home);
        let (mut made, mut known) = (0_usize, 0_usize);
        for trace in traces {
            let trace = trace.reset_for_import();
            let path = format!("{MEMORY_FOLDER}/{TRACES_FOLDER}/{}", trace.file_name());
            if file(self.session(), volume, &path).is_some() {
                known += 1;
                continue;
            }
            if !self.send(Command::NewNote { volume, path: path.clone(), text: trace.to_note() }, notices) {
                return;
            }
            made += 1;
            if let Some(note) = file(self.session(), volume, &path) {
                self.send(Command::CloseNote { note }, notices);
            }
        }
        let traces = |count: usize| if count == 1 { "1 trace".to_owned() } else { format!("{count} traces") };
        let left =
            if known == 0 { String::new() } else { format!("; {} for goals that are known here", traces(known)) };
        let left = if known == 0 { left } else { format!("{left} left out") };
        notices.toasts.show_message(format!("{} imported{left}.", traces(made)));
    }
}
