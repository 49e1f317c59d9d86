//! Pages in the middle that are no notes: agenda, broken links. And the commands of the table that concern links and
//! files: what is asked of the session is asked here, what a page shows is its own affair.

use crate::notebook::page::PageAction;
use crate::overlays::dialogs::Dialog;
use crate::pages::agenda::AgendaPage;
use crate::pages::graph::GraphPage;
use crate::pages::trash::TrashPage;
use crate::panels::backlinks_panel::BrokenLinksPage;
use crate::panels::tree;
use crate::{
    AppWindow, WindowOverlay,
    pages::{history, sync},
};
use agent_ui::agent::{BranchesPage, ChangesPage, TimelinePage, ToolsPage};
use agent_ui::memory::{AgentsPage, BudgetPage, ExperiencesPage, PlansPage, SchedulesPage, TracesPage};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::commands::CommandId;
use engine::{Command, Session};
use store::DocId;
use ui::icons;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{icon_button, paint_clipped_text, set_accessible_name};

/// A command of the table that concerns links and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NavigationCommand {
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
    Sync(sync::SyncCommand),
}

/// A page that is no note.
#[allow(clippy::large_enum_variant, reason = "there is one of it")]
pub(crate) enum PageView {
    Agenda(AgendaPage),
    Graph(GraphPage),
    Broken(BrokenLinksPage),
    History(Box<history::HistoryPage>),
    Trash(TrashPage),
    /// The steps of a run.
    Timeline(Box<TimelinePage>),
    /// What a run changed.
    Changes(ChangesPage),
    /// The branches of a session.
    Branches(BranchesPage),
    /// The user's own tools.
    Tools(ToolsPage),
    /// What is shared with other devices, and what they did.
    Sync(Box<sync::SyncPage>),
    /// What is remembered of earlier work.
    Memory(Box<ExperiencesPage>),
    /// What was learned to be done again without a model.
    Traces(Box<TracesPage>),
    /// What runs have spent.
    Budget(Box<BudgetPage>),
    /// What begins by itself, and when.
    Schedule(Box<SchedulesPage>),
    /// Who can be asked.
    Agents(Box<AgentsPage>),
    /// What is to be done, by which agent, after what.
    Plans(Box<PlansPage>),
}

impl PageView {
    fn title(&self) -> &'static str {
        match self {
            PageView::Agenda(_) => "Agenda",
            PageView::Graph(_) => "Graph",
            PageView::Broken(_) => "Broken links",
            PageView::History(_) => "History",
            PageView::Trash(_) => "Trash",
            PageView::Timeline(_) => "Timeline of the run",
            PageView::Changes(_) => "Changes of the run",
            PageView::Branches(_) => "Branches of the session",
            PageView::Tools(_) => "Tools of your own",
            PageView::Sync(_) => "Sync",
            PageView::Memory(_) => "Memory",
            PageView::Traces(_) => "Trace library",
            PageView::Budget(_) => "Budget",
            PageView::Schedule(_) => "Schedule",
            PageView::Agents(_) => "Agents",
            PageView::Plans(_) => "Plans",
        }
    }

    /// Draws it; whether it shall be closed.
    pub(crate) fn show(
        &mut self,
        ui: &mut Ui,
        session: &Session,
        note: Option<DocId>,
        actions: &mut Vec<PageAction>,
    ) -> bool {
        let closed = strip(ui, self.title());
        let rest = ui.available_rect_before_wrap();
        let mut ui = ui::layout::part(ui, "view", rest, rest);
        let mut asked = Vec::new();
        match self {
            PageView::Agenda(agenda) => agenda.show(&mut ui, session, actions),
            PageView::Graph(graph) => graph.show(&mut ui, session, note, actions),
            PageView::Broken(broken) => broken.show(&mut ui, session, actions),
            PageView::History(page) => page.show(&mut ui, session),
            PageView::Trash(trash) => trash.show(&mut ui, session, actions),
            PageView::Timeline(timeline) => timeline.show(&mut ui, session, &mut asked),
            PageView::Changes(changes) => changes.show(&mut ui, session, &mut asked),
            PageView::Branches(branches) => branches.show(&mut ui, session, &mut asked),
            PageView::Tools(tools) => tools.show(&mut ui, session, &mut asked),
            PageView::Sync(page) => page.show(&mut ui, session, actions),
            PageView::Memory(page) => page.show(&mut ui, session, &mut asked),
            PageView::Traces(page) => page.show(&mut ui, session, &mut asked),
            PageView::Budget(page) => page.show(&mut ui, session, &mut asked),
            PageView::Schedule(page) => page.show(&mut ui, session, note, &mut asked),
            PageView::Agents(page) => page.show(&mut ui, session, note, &mut asked),
            PageView::Plans(page) => page.show(&mut ui, session, note, &mut asked),
        }
        actions.extend(asked.into_iter().map(PageAction::from));
        closed
    }
}

/// The strip above a page, with its name; whether it shall be closed.
fn strip(ui: &mut Ui, title: &str) -> bool {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), size::TOOLBAR_HEIGHT), Sense::hover());
    let colours = ThemeColors::of(ui);
    ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
    let style = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 13.0), line: 20.0 };
    paint_clipped_text(
        ui,
        pos2(rect.left() + space::L, rect.center().y - 10.0),
        rect.width() - 80.0,
        title,
        &style,
        colours.ink,
    );
    set_accessible_name(&response, Role::Heading, title);
    let at = Rect::from_min_size(
        rect.right_top() + vec2(-size::MIN_CLICK_HEIGHT - space::S, space::XS),
        egui::Vec2::splat(size::MIN_CLICK_HEIGHT),
    );
    let mut child = ui.new_child(UiBuilder::new().max_rect(at));
    icon_button(&mut child, icons::X, "Close this page", Some("Escape")).clicked()
}

impl AppWindow {
    /// Performs a command that concerns links or files.
    pub(crate) fn run_go(&mut self, go: NavigationCommand) {
        match go {
            NavigationCommand::Rename => match self.active_pane.note {
                Some(note) => self.ask_rename(note),
                None => self.toasts.show_message("No note is open."),
            },
            NavigationCommand::Delete => match self.active_pane.note {
                Some(note) => self.delete(note),
                None => self.toasts.show_message("No note is open."),
            },
            NavigationCommand::UndoMove => {
                if self.send(Command::UndoMove) {
                    self.toasts.show_message("Taken back.");
                }
            }
            NavigationCommand::FollowRenamed => {
                let notes = self.session().map_or(0, Session::count_outdated_link_notes);
                if self.send(Command::FollowRenamed) {
                    let text = if notes == 1 { "The links in 1 note follow." } else { "The links follow." };
                    self.toasts.show_with_action(text, "Undo", CommandId::FilesUndo);
                }
            }
            NavigationCommand::Links => {
                let shown = self.prefs.right_open && self.references.shown;
                (self.prefs.right_open, self.references.shown) = (!shown, !shown);
                (self.variables.shown, self.agent.shown) = (false, false);
            }
            NavigationCommand::Broken => self.view = Some(PageView::Broken(BrokenLinksPage::default())),
            NavigationCommand::Graph => self.view = Some(PageView::Graph(GraphPage::new(None))),
            NavigationCommand::LocalGraph => match self.active_pane.note {
                Some(note) => self.view = Some(PageView::Graph(GraphPage::new(Some(note)))),
                None => self.toasts.show_message("No note is open."),
            },
            NavigationCommand::History => self.show_history(self.active_pane.note, false),
            NavigationCommand::Trash => self.view = Some(PageView::Trash(TrashPage::default())),
            NavigationCommand::EmptyTrash => self.ask_empty(),
            NavigationCommand::Writers => self.show_history(self.active_pane.note, true),
            NavigationCommand::Sync(wish) => self.run_sync(wish),
            NavigationCommand::Agenda => self.view = Some(PageView::Agenda(AgendaPage::default())),
        }
    }

    /// Says once when other programs renamed what notes link to.
    pub(crate) fn report_renamed_links(&mut self) {
        let notes = self.session().map_or(0, Session::count_outdated_link_notes);
        let before = std::mem::replace(&mut self.last_reported_renames, notes);
        if notes > before {
            let text = match notes {
                1 => "1 note links to the old name of a file that another program renamed.".to_owned(),
                many => format!("{many} notes link to old names of files that another program renamed."),
            };
            self.toasts.show_with_action(text, "Update", CommandId::FilesFollow);
        }
    }

    /// Asks for a file's new path.
    pub(crate) fn ask_rename(&mut self, file: DocId) {
        let path = self.session().and_then(|session| session.locate_file(file)).map(|(_, path)| path.to_owned());
        if let Some(path) = path {
            let path = path.strip_suffix(".md").unwrap_or(&path).to_owned();
            self.overlay = WindowOverlay::Dialog(Dialog::Rename { file, path, trouble: None });
        }
    }

    /// Gives a file another path. Gives why not.
    pub(crate) fn rename(&mut self, file: DocId, path: &str) -> Result<(), String> {
        let Some(driver) = &mut self.driver else { return Ok(()) };
        let moves = vec![(file, path.trim_matches('/').to_owned())];
        driver.command(Command::MoveFiles { moves }).map_err(|reject| ui::text::sentence(&reject.0))?;
        let links = driver.session().pending_move().map_or(0, |moving| moving.relinks.len());
        if driver.session().pending_move().is_some() {
            let links = match links {
                0 => "Renamed.".to_owned(),
                1 => "Renamed; the links in 1 note follow.".to_owned(),
                many => format!("Renamed; the links in {many} notes follow."),
            };
            self.toasts.show_with_action(links, "Undo", CommandId::FilesUndo);
        }
        Ok(())
    }

    /// Puts a note into the trash.
    pub(crate) fn delete(&mut self, file: DocId) {
        let name = self.session().and_then(|session| session.locate_file(file)).map(|(_, path)| path.to_owned());
        if let Some(name) = name
            && self.send(Command::DeleteFiles { files: vec![file] })
        {
            let name = tree::shown_name(name.rsplit('/').next().unwrap_or(&name)).to_owned();
            self.toasts.show_with_action(format!("“{name}” is in the trash."), "Undo", CommandId::FilesUndo);
            self.leave_note(file);
        }
    }

    /// Closes every tab of a note.
    fn leave_note(&mut self, note: DocId) {
        while let Some(pane) = self.panes.pane_with_note(note).filter(|pane| *pane != self.active_pane.id) {
            self.close_tab(pane);
        }
        if self.active_pane.note == Some(note) {
            self.close_tab(self.active_pane.id);
        }
        if self.active_pane.note == Some(note) {
            self.active_pane.show_note(None);
        }
        self.background_notes.retain(|kept| *kept != note);
    }
}
