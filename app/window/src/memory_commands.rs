//! What the commands and pages of memory do in the window.

use super::Window;
use super::views::View;
use agent::memory::FOLDER;
use agent::memory::trace::{TRACES, Trace};
use agent_ui::memory::{Experiences, Remembering, Wish, file};
use engine::Command;
use store::DocId;

/// So many forgotten experiences can be brought back.
const KEPT: usize = 50;

impl Window {
    /// Performs a command that concerns memory.
    pub(super) fn run_remembering(&mut self, what: Remembering) {
        match what {
            Remembering::Experiences => self.view = Some(View::Memory(Box::default())),
            Remembering::Traces => self.view = Some(View::Traces(Box::default())),
            Remembering::Schedule => self.view = Some(View::Schedule(Box::default())),
            Remembering::Agents => {
                self.send(Command::ReadSetup);
                self.view = Some(View::Agents(Box::default()));
            }
            Remembering::Plans => self.view = Some(View::Plans(Box::default())),
            Remembering::Budget => {
                self.send(Command::ReadSetup);
                self.view = Some(View::Budget(Box::default()));
            }
            Remembering::Undo => match self.forgotten.pop() {
                Some(gone) => {
                    let (_, _, back) = gone.commands();
                    if self.send(back) {
                        if let Some(View::Memory(page)) = &mut self.view {
                            page.undone();
                        }
                        self.toasts.say("It is there again.");
                    }
                }
                None => self.toasts.say("Nothing was forgotten."),
            },
        }
    }

    /// Does what a page of memory asks for.
    pub(super) fn remember(&mut self, wish: Wish) {
        match wish {
            Wish::Forget(one) => {
                let (forget, says, _) = one.commands();
                if self.send(forget) {
                    self.forgotten.push(one);
                    let old = self.forgotten.len().saturating_sub(KEPT);
                    self.forgotten.drain(..old);
                    self.toasts.offer(says, "Undo", "memory.undo");
                }
            }
            Wish::ShowRun(run, step) => {
                if !self.show_found(run, &step) {
                    self.toasts.say("The run is not on this device.");
                }
            }
            Wish::Show(id) => self.view = Some(View::Memory(Box::new(Experiences::at(id)))),
            Wish::Import { volume, traces } => self.import_traces(volume, traces),
            Wish::Call(name) => self.call_agent(&name),
            Wish::Make { volume, path, text, shown } => {
                if self.send(Command::NewNote { volume, path: path.clone(), text })
                    && let Some(note) = self.session().and_then(|session| file(session, volume, &path))
                {
                    if shown {
                        self.open(note);
                    } else {
                        self.send(Command::CloseNote { note });
                    }
                }
            }
            Wish::CarryOut { note, tasks, only } => {
                let [run, session] = [DocId::random(rand::random()), DocId::random(rand::random())];
                let (budget, allow) = (None, Vec::new());
                if self.send(Command::RunTasks { run, session, note, tasks, only, budget, allow }) {
                    self.show_session(session);
                }
            }
        }
    }

    /// Makes notes of traces of another workspace; those of goals that are known here are left out.
    fn import_traces(&mut self, volume: DocId, traces: Vec<Trace>) {
        let (mut made, mut known) = (0_usize, 0_usize);
        for trace in traces {
            let trace = trace.imported();
            let path = format!("{FOLDER}/{TRACES}/{}", trace.file_name());
            if self.session().and_then(|session| file(session, volume, &path)).is_some() {
                known += 1;
                continue;
            }
            if !self.send(Command::NewNote { volume, path: path.clone(), text: trace.note() }) {
                return;
            }
            made += 1;
            if let Some(note) = self.session().and_then(|session| file(session, volume, &path)) {
                self.send(Command::CloseNote { note });
            }
        }
        let traces = |count: usize| if count == 1 { "1 trace".to_owned() } else { format!("{count} traces") };
        let left =
            if known == 0 { String::new() } else { format!("; {} for goals that are known here", traces(known)) };
        let left = if known == 0 { left } else { format!("{left} left out") };
        self.toasts.say(format!("{} taken over{left}.", traces(made)));
    }
}
