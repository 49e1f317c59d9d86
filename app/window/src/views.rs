//! Pages in the middle that are no notes: agenda, broken links. And the commands of the table that concern links and
//! files: what is asked of the session is asked here, what a page shows is its own affair.

use super::agenda::Agenda;
use super::dialogs::Dialog;
use super::graph::Graph;
use super::page::Action;
use super::references::Broken;
use super::trash::Trash;
use super::{Overlay, Window, history, sync};
use agent_ui::agent::{Branches, Changes, Timeline, Tools};
use agent_ui::memory::{Agents, Budget, Experiences, Plans, Schedules, Traces};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::{Command, Session};
use store::DocId;
use ui::controls::{clipped, icon_button, named};
use ui::icons;
use ui::tokens::{self, Colours, size, space};

/// A command of the table that concerns links and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Go {
    Rename,
    Delete,
    UndoMove,
    FollowRenamed,
    Links,
    Broken,
    Agenda,
    Graph,
    LocalGraph,
    History,
    Writers,
    Trash,
    EmptyTrash,
    Sync(sync::Wish),
}

/// What a command of the table is here.
pub(super) fn go(id: &str) -> Option<Go> {
    let go = match id {
        "note.rename" => Go::Rename,
        "note.delete" => Go::Delete,
        "files.undo" => Go::UndoMove,
        "files.follow" => Go::FollowRenamed,
        "view.links" => Go::Links,
        "view.broken" => Go::Broken,
        "view.agenda" => Go::Agenda,
        "view.graph" => Go::Graph,
        "view.local_graph" => Go::LocalGraph,
        "note.history" => Go::History,
        "note.writers" => Go::Writers,
        "view.trash" => Go::Trash,
        "trash.empty" => Go::EmptyTrash,
        other => Go::Sync(sync::wish(other)?),
    };
    Some(go)
}

/// A page that is no note.
#[allow(clippy::large_enum_variant, reason = "there is one of it")]
pub(super) enum View {
    Agenda(Agenda),
    Graph(Graph),
    Broken(Broken),
    History(Box<history::Page>),
    Trash(Trash),
    /// The steps of a run.
    Timeline(Box<Timeline>),
    /// What a run changed.
    Changes(Changes),
    /// The branches of a session.
    Branches(Branches),
    /// The user's own tools.
    Tools(Tools),
    /// What is shared with other devices, and what they did.
    Sync(Box<sync::Page>),
    /// What is remembered of earlier work.
    Memory(Box<Experiences>),
    /// What was learned to be done again without a model.
    Traces(Box<Traces>),
    /// What runs have spent.
    Budget(Box<Budget>),
    /// What begins by itself, and when.
    Schedule(Box<Schedules>),
    /// Who can be asked.
    Agents(Box<Agents>),
    /// What is to be done, by which agent, after what.
    Plans(Box<Plans>),
}

impl View {
    fn title(&self) -> &'static str {
        match self {
            View::Agenda(_) => "Agenda",
            View::Graph(_) => "Graph",
            View::Broken(_) => "Broken links",
            View::History(_) => "History",
            View::Trash(_) => "Trash",
            View::Timeline(_) => "Timeline of the run",
            View::Changes(_) => "Changes of the run",
            View::Branches(_) => "Branches of the session",
            View::Tools(_) => "Tools of your own",
            View::Sync(_) => "Sync",
            View::Memory(_) => "Memory",
            View::Traces(_) => "Trace library",
            View::Budget(_) => "Budget",
            View::Schedule(_) => "Schedule",
            View::Agents(_) => "Agents",
            View::Plans(_) => "Plans",
        }
    }

    /// Draws it; whether it shall be closed.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        session: &Session,
        note: Option<DocId>,
        actions: &mut Vec<Action>,
    ) -> bool {
        let closed = strip(ui, self.title());
        let rest = ui.available_rect_before_wrap();
        let mut ui = ui::layout::part(ui, "view", rest, rest);
        let mut asked = Vec::new();
        match self {
            View::Agenda(agenda) => agenda.show(&mut ui, session, actions),
            View::Graph(graph) => graph.show(&mut ui, session, note, actions),
            View::Broken(broken) => broken.show(&mut ui, session, actions),
            View::History(page) => page.show(&mut ui, session),
            View::Trash(trash) => trash.show(&mut ui, session, actions),
            View::Timeline(timeline) => timeline.show(&mut ui, session, &mut asked),
            View::Changes(changes) => changes.show(&mut ui, session, &mut asked),
            View::Branches(branches) => branches.show(&mut ui, session, &mut asked),
            View::Tools(tools) => tools.show(&mut ui, session, &mut asked),
            View::Sync(page) => page.show(&mut ui, session, actions),
            View::Memory(page) => page.show(&mut ui, session, &mut asked),
            View::Traces(page) => page.show(&mut ui, session, &mut asked),
            View::Budget(page) => page.show(&mut ui, session, &mut asked),
            View::Schedule(page) => page.show(&mut ui, session, note, &mut asked),
            View::Agents(page) => page.show(&mut ui, session, note, &mut asked),
            View::Plans(page) => page.show(&mut ui, session, note, &mut asked),
        }
        actions.extend(asked.into_iter().map(Action::from));
        closed
    }
}

/// The strip above a page, with its name; whether it shall be closed.
fn strip(ui: &mut Ui, title: &str) -> bool {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), size::STRIP), Sense::hover());
    let colours = Colours::of(ui);
    ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
    let style = tokens::Type { font: tokens::inter(tokens::Cut::SemiBold, 13.0), line: 20.0 };
    clipped(ui, pos2(rect.left() + space::L, rect.center().y - 10.0), rect.width() - 80.0, title, &style, colours.ink);
    named(&response, Role::Heading, title);
    let at =
        Rect::from_min_size(rect.right_top() + vec2(-size::HIT - space::S, space::XS), egui::Vec2::splat(size::HIT));
    let mut child = ui.new_child(UiBuilder::new().max_rect(at));
    icon_button(&mut child, icons::X, "Close this page", Some("Escape")).clicked()
}

impl Window {
    /// Performs a command that concerns links or files.
    pub(super) fn run_go(&mut self, go: Go) {
        match go {
            Go::Rename => match self.here.note {
                Some(note) => self.ask_rename(note),
                None => self.toasts.say("No note is open."),
            },
            Go::Delete => match self.here.note {
                Some(note) => self.delete(note),
                None => self.toasts.say("No note is open."),
            },
            Go::UndoMove => {
                if self.send(Command::UndoMove) {
                    self.toasts.say("Taken back.");
                }
            }
            Go::FollowRenamed => {
                let notes = self.session().map_or(0, Session::links_to_follow);
                if self.send(Command::FollowRenamed) {
                    let text = if notes == 1 { "The links in 1 note follow." } else { "The links follow." };
                    self.toasts.offer(text, "Undo", "files.undo");
                }
            }
            Go::Links => {
                let shown = self.prefs.right_open && self.references.shown;
                (self.prefs.right_open, self.references.shown) = (!shown, !shown);
                (self.variables.shown, self.agent.shown) = (false, false);
            }
            Go::Broken => self.view = Some(View::Broken(Broken::default())),
            Go::Graph => self.view = Some(View::Graph(Graph::new(None))),
            Go::LocalGraph => match self.here.note {
                Some(note) => self.view = Some(View::Graph(Graph::new(Some(note)))),
                None => self.toasts.say("No note is open."),
            },
            Go::History => self.show_history(self.here.note, false),
            Go::Trash => self.view = Some(View::Trash(Trash::default())),
            Go::EmptyTrash => self.ask_empty(),
            Go::Writers => self.show_history(self.here.note, true),
            Go::Sync(wish) => self.run_sync(wish),
            Go::Agenda => self.view = Some(View::Agenda(Agenda::default())),
        }
    }

    /// Says once when other programs renamed what notes link to.
    pub(super) fn tell_renamed(&mut self) {
        let notes = self.session().map_or(0, Session::links_to_follow);
        let before = std::mem::replace(&mut self.told_renamed, notes);
        if notes > before {
            let text = match notes {
                1 => "1 note links to the old name of a file that another program renamed.".to_owned(),
                many => format!("{many} notes link to old names of files that another program renamed."),
            };
            self.toasts.offer(text, "Update", "files.follow");
        }
    }

    /// Asks for a file's new path.
    pub(super) fn ask_rename(&mut self, file: DocId) {
        let path = self.session().and_then(|session| session.place(file)).map(|(_, path)| path.to_owned());
        if let Some(path) = path {
            let path = path.strip_suffix(".md").unwrap_or(&path).to_owned();
            self.overlay = Overlay::Dialog(Dialog::Rename { file, path, trouble: None });
        }
    }

    /// Gives a file another path. Gives why not.
    pub(super) fn rename(&mut self, file: DocId, path: &str) -> Result<(), String> {
        let Some(driver) = &mut self.driver else { return Ok(()) };
        let moves = vec![(file, path.trim_matches('/').to_owned())];
        driver.command(Command::MoveFiles { moves }).map_err(|reject| ui::text::sentence(&reject.0))?;
        let links = driver.session().moving().map_or(0, |moving| moving.relinks.len());
        if driver.session().moving().is_some() {
            let links = match links {
                0 => "Renamed.".to_owned(),
                1 => "Renamed; the links in 1 note follow.".to_owned(),
                many => format!("Renamed; the links in {many} notes follow."),
            };
            self.toasts.offer(links, "Undo", "files.undo");
        }
        Ok(())
    }

    /// Puts a note into the trash.
    pub(super) fn delete(&mut self, file: DocId) {
        let name = self.session().and_then(|session| session.place(file)).map(|(_, path)| path.to_owned());
        if let Some(name) = name
            && self.send(Command::DeleteFiles { files: vec![file] })
        {
            let name = super::tree::shown_name(name.rsplit('/').next().unwrap_or(&name)).to_owned();
            self.toasts.offer(format!("“{name}” is in the trash."), "Undo", "files.undo");
            self.leave_note(file);
        }
    }

    /// Closes every tab of a note.
    fn leave_note(&mut self, note: DocId) {
        while let Some(pane) = self.panes.with(note).filter(|pane| *pane != self.here.id) {
            self.close_tab(pane);
        }
        if self.here.note == Some(note) {
            self.close_tab(self.here.id);
        }
        if self.here.note == Some(note) {
            self.here.turn(None);
        }
        self.kept.retain(|kept| *kept != note);
    }
}
