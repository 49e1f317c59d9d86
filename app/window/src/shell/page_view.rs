//! Pages shown in place of notes: agenda, graph, history and more.

use crate::pages::agenda::AgendaPage;
use crate::pages::graph::GraphPage;
use crate::pages::system_file::SystemFilePage;
use crate::pages::trash::TrashPage;
use crate::pages::welcome::WelcomePage;
use crate::pages::{history, sync};
use crate::panels::backlinks_panel::BrokenLinksPage;
use agent_ui::agent::{BranchesPage, ChangesPage, TimelinePage, ToolsPage};
use agent_ui::memory::{AgentsPage, BudgetPage, ExperiencesPage, PlansPage, SchedulesPage, TracesPage};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::Session;
use host::source_control::SourceControl;
use notebook::actions::PageAction;
use package_page::PackagesPage;
use package_page::package_desk::PackageDesk;
use source_control::SourceControlPage;
use source_control::forks_page::ForksPage;
use source_control::forks_page::fork_desk::ForkDesk;
use store::DocId;
use ui::icons;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{icon_button, paint_clipped_text, set_accessible_name};

/// A page other than a note.
#[allow(clippy::large_enum_variant, reason = "there is one of it")]
pub(crate) enum PageView {
    Agenda(AgendaPage),
    Graph(GraphPage),
    Broken(BrokenLinksPage),
    History(Box<history::HistoryPage>),
    Trash(TrashPage),
    /// The steps of a run.
    Timeline(Box<TimelinePage>),
    /// The changes made by a run.
    Changes(ChangesPage),
    /// The branches of a session.
    Branches(BranchesPage),
    /// The user's own agent tools.
    Tools(ToolsPage),
    /// Sync status, and changes from other devices.
    Sync(Box<sync::SyncPage>),
    /// Experiences remembered from earlier work.
    Memory(Box<ExperiencesPage>),
    /// Traces that can be replayed without a model.
    Traces(Box<TracesPage>),
    /// Spending of runs.
    Budget(Box<BudgetPage>),
    /// Scheduled work.
    Schedule(Box<SchedulesPage>),
    /// The agents that can be asked.
    Agents(Box<AgentsPage>),
    /// Plans: tasks, agents and dependencies.
    Plans(Box<PlansPage>),
    /// The volume's Git repository.
    SourceControl(Box<SourceControlPage>),
    /// The copies of folders in which agents work.
    Forks(Box<ForksPage>),
    /// Packages that others have made.
    Packages(Box<PackagesPage>),
    /// A file of the volume System.
    SystemFile(SystemFilePage),
    /// Ways to begin, for the first start.
    Welcome(WelcomePage),
}

impl PageView {
    pub(crate) fn title(&self) -> &'static str {
        match self {
            PageView::Agenda(_) => "Agenda",
            PageView::Graph(_) => "Graph",
            PageView::Broken(_) => "Broken links",
            PageView::History(_) => "History",
            PageView::Trash(_) => "Trash",
            PageView::Timeline(_) => "Run timeline",
            PageView::Changes(_) => "Changes of the run",
            PageView::Branches(_) => "Session branches",
            PageView::Tools(_) => "Tools of your own",
            PageView::Sync(_) => "Sync",
            PageView::Memory(_) => "Memory",
            PageView::Traces(_) => "Trace library",
            PageView::Budget(_) => "Budget",
            PageView::Schedule(_) => "Schedule",
            PageView::Agents(_) => "Agents",
            PageView::Plans(_) => "Plans",
            PageView::SourceControl(_) => "Source control",
            PageView::Forks(_) => "Forks",
            PageView::Packages(_) => "Packages",
            PageView::SystemFile(_) => "System",
            PageView::Welcome(_) => "Welcome",
        }
    }

    /// Draws the page. Returns whether it must close.
    pub(crate) fn show(
        &mut self,
        ui: &mut Ui,
        session: &Session,
        (source, forks, packages): (&SourceControl, &ForkDesk, &PackageDesk),
        note: Option<DocId>,
        actions: &mut Vec<PageAction>,
    ) -> bool {
        let mut closed = strip(ui, self.title());
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
            PageView::SourceControl(page) => page.show(&mut ui, session, source, note, actions),
            PageView::Forks(page) => page.show(&mut ui, session, forks, actions),
            PageView::Packages(page) => page.show(&mut ui, session, packages, actions),
            PageView::SystemFile(page) => page.show(&mut ui, actions),
            PageView::Welcome(page) => closed |= page.show(&mut ui, session, actions),
        }
        actions.extend(asked.into_iter().map(PageAction::from));
        closed
    }
}

/// Draws the bar above a page with its title. Returns whether it must close.
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
