//! What the commands and pages of memory do in the window.

use crate::app_window::AppWindow;
use crate::shell::page_view::PageView;
use agent::memory::MEMORY_FOLDER;
use agent::memory::trace::{RunTrace, TRACES_FOLDER};
use agent_ui::memory::{ExperiencesPage, MemoryAction, MemoryCommand, file};
use engine::Command;
use engine::commands::CommandId;
use store::DocId;

/// Maximum number of forgotten experiences that can be restored.
const MAX_FORGOTTEN: usize = 50;

impl AppWindow {
    /// Performs a command that concerns memory.
    pub(crate) fn run_remembering(&mut self, what: MemoryCommand) {
        match what {
            MemoryCommand::Experiences => self.panes.view = Some(PageView::Memory(Box::default())),
            MemoryCommand::Traces => self.panes.view = Some(PageView::Traces(Box::default())),
            MemoryCommand::Schedule => self.panes.view = Some(PageView::Schedule(Box::default())),
            MemoryCommand::Agents => {
                self.send(Command::ReadSetup);
                self.panes.view = Some(PageView::Agents(Box::default()));
            }
            MemoryCommand::Plans => self.panes.view = Some(PageView::Plans(Box::default())),
            MemoryCommand::Budget => {
                self.send(Command::ReadSetup);
                self.panes.view = Some(PageView::Budget(Box::default()));
            }
            MemoryCommand::Undo => match self.dock.forgotten.pop() {
                Some(gone) => {
                    let (_, _, back) = gone.commands();
                    if self.send(back) {
                        if let Some(PageView::Memory(page)) = &mut self.panes.view {
                            page.on_forget_undone();
                        }
                        self.notices.toasts.show_message("It is there again.");
                    }
                }
                None => self.notices.toasts.show_message("Nothing was forgotten."),
            },
        }
    }

    /// Does what a page of memory asks for.
    pub(crate) fn remember(&mut self, wish: MemoryAction) {
        match wish {
            MemoryAction::Forget(one) => {
                let (forget, says, _) = one.commands();
                if self.send(forget) {
                    self.dock.forgotten.push(one);
                    let old = self.dock.forgotten.len().saturating_sub(MAX_FORGOTTEN);
                    self.dock.forgotten.drain(..old);
                    self.notices.toasts.show_with_action(says, "Undo", CommandId::MemoryUndo);
                }
            }
            MemoryAction::ShowRun(run, step) => {
                if !self.show_found(run, &step) {
                    self.notices.toasts.show_message("The run is not on this device.");
                }
            }
            MemoryAction::Show(id) => self.panes.view = Some(PageView::Memory(Box::new(ExperiencesPage::at(id)))),
            MemoryAction::Import { volume, traces } => self.import_traces(volume, traces),
            MemoryAction::Call(name) => self.call_agent(&name),
            MemoryAction::Make { volume, path, text, shown } => {
                if self.send(Command::NewNote { volume, path: path.clone(), text })
                    && let Some(note) = file(self.host.session(), volume, &path)
                {
                    if shown {
                        self.open(note);
                    } else {
                        self.send(Command::CloseNote { note });
                    }
                }
            }
            MemoryAction::CarryOut { note, tasks, only } => {
                let [run, session] = [DocId::random(rand::random()), DocId::random(rand::random())];
                let (budget, allow) = (None, Vec::new());
                if self.send(Command::RunTasks { run, session, note, tasks, only, budget, allow }) {
                    self.show_session(session);
                }
            }
        }
    }

    /// Makes notes of traces of another workspace; those of goals that are known here are left out.
    fn import_traces(&mut self, volume: DocId, traces: Vec<RunTrace>) {
        let (mut made, mut known) = (0_usize, 0_usize);
        for trace in traces {
            let trace = trace.reset_for_import();
            let path = format!("{MEMORY_FOLDER}/{TRACES_FOLDER}/{}", trace.file_name());
            if file(self.host.session(), volume, &path).is_some() {
                known += 1;
                continue;
            }
            if !self.send(Command::NewNote { volume, path: path.clone(), text: trace.to_note() }) {
                return;
            }
            made += 1;
            if let Some(note) = file(self.host.session(), volume, &path) {
                self.send(Command::CloseNote { note });
            }
        }
        let traces = |count: usize| if count == 1 { "1 trace".to_owned() } else { format!("{count} traces") };
        let left =
            if known == 0 { String::new() } else { format!("; {} for goals that are known here", traces(known)) };
        let left = if known == 0 { left } else { format!("{left} left out") };
        self.notices.toasts.show_message(format!("{} taken over{left}.", traces(made)));
    }
}
