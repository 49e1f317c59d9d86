//! The memory page of all projects: experiences, recent tasks from session logs, and traces. Items can be filtered by
//! text, tier, outcome and project, edited in their note, deleted and restored. The context of the latest session is
//! read-only: it's in no note, and other tiers exclude it.

use super::curve::LearningCurvePlot;
use super::detail::{MemoryDetail, MemoryItem, project};
use super::widgets::{self, MEMORY_ROW_HEIGHT, UnfoldedList};
use super::{ForgottenItem, MemoryAction, MemoryCache, file};
use crate::panel_action::PanelAction;
use agent::memory::experience::{Experience, MemoryTier, RunOutcome};
use agent::memory::{ProjectMemory, StoredTrace, task_log};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Align2, Id, Key, Layout, Rect, Sense, Ui, UiBuilder, pos2, vec2};
use engine::commands::CommandId;
use engine::{Command, Session};
use host::clock;
use std::collections::BTreeSet;
use store::{DocId, SessionMessage};
use ui::empty_state;
use ui::icons;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{icon_button, set_accessible_name, text_button};

/// Filter by memory tier.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemoryTierFilter {
    All,
    Context,
    Logs,
    Traces,
    Entries(MemoryTier),
}

const TIER_FILTERS: [(&str, MemoryTierFilter); 7] = [
    ("All tiers", MemoryTierFilter::All),
    ("Context", MemoryTierFilter::Context),
    ("Session logs", MemoryTierFilter::Logs),
    ("Traces", MemoryTierFilter::Traces),
    ("Episodic", MemoryTierFilter::Entries(MemoryTier::Episodic)),
    ("Short term", MemoryTierFilter::Entries(MemoryTier::ShortTerm)),
    ("Long term", MemoryTierFilter::Entries(MemoryTier::LongTerm)),
];

const OUTCOME_FILTERS: [(&str, Option<RunOutcome>); 4] = [
    ("All outcomes", None),
    ("Went well", Some(RunOutcome::Success)),
    ("Failed", Some(RunOutcome::Failure)),
    ("Recovered", Some(RunOutcome::SuccessWithRecovery)),
];

/// Filters of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ExperienceFilter {
    query: String,
    tier: usize,
    outcome: usize,
    project: Option<String>,
}

impl ExperienceFilter {
    fn level(&self) -> MemoryTierFilter {
        TIER_FILTERS.get(self.tier).map_or(MemoryTierFilter::All, |(_, level)| *level)
    }

    fn fits(&self, one: &Experience) -> bool {
        let words = [&one.primary_goal, &one.learnings_or_issues].into_iter().chain(&one.components_used);
        self.has(&[MemoryTierFilter::Entries(one.tier)], Some(one.final_outcome), &one.project_name, words)
    }

    /// Returns whether a logged task matches. Recent tasks count as short-term memory.
    fn fits_task(&self, task: &task_log::LoggedTask, project: &str) -> bool {
        let words = [&task.goal, &task.results].into_iter().chain(&task.actions);
        self.has(
            &[MemoryTierFilter::Logs, MemoryTierFilter::Entries(MemoryTier::ShortTerm)],
            task.outcome(),
            project,
            words,
        )
    }

    /// Returns whether a trace matches. Traces count as successful.
    fn fits_trace(&self, filed: &StoredTrace, project: &str) -> bool {
        let words =
            std::iter::once(&filed.trace.known.goal_text).chain(filed.trace.steps.iter().map(|step| &step.tool));
        self.has(&[MemoryTierFilter::Traces], Some(RunOutcome::Success), project, words)
    }

    fn has<'a>(
        &self,
        own: &[MemoryTierFilter],
        came: Option<RunOutcome>,
        project: &str,
        mut words: impl Iterator<Item = &'a String>,
    ) -> bool {
        let level = self.level();
        let outcome = OUTCOME_FILTERS.get(self.outcome).and_then(|(_, outcome)| *outcome);
        let query = self.query.trim().to_lowercase();
        (level == MemoryTierFilter::All || own.contains(&level))
            && outcome.is_none_or(|outcome| came == Some(outcome))
            && self.project.as_ref().is_none_or(|wanted| project == wanted)
            && words.any(|text| text.to_lowercase().contains(&query))
    }
}

/// Position of a listed item.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MemoryItemRef {
    volume: usize,
    number: usize,
    what: MemoryItemKind,
}

/// Kind of item.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MemoryItemKind {
    Experience,
    Task,
    Trace,
    Message,
}

/// The page that lists what agents remember in all volumes.
#[derive(Default)]
pub struct ExperiencesPage {
    shelf: MemoryCache<ProjectMemory>,
    filter: ExperienceFilter,
    /// What the rows were built for: the read contents, the filter, the number of items deleted since, and the context.
    made: Option<(u64, ExperienceFilter, usize, u64)>,
    rows: Vec<MemoryItemRef>,
    projects: Vec<String>,
    /// Key of the expanded item.
    open: Option<String>,
    /// Whether to scroll to the expanded item.
    reveal: bool,
    /// Keys of the items deleted since the files were read.
    gone: BTreeSet<String>,
    /// Messages of the displayed context.
    context: Vec<SessionMessage>,
    /// The session whose context was requested.
    asked: Option<DocId>,
    curve: LearningCurvePlot,
    /// Whether the learning curve is shown.
    with_curve: bool,
}

/// Returns the item at a position.
fn at<'a>(
    shelf: &'a MemoryCache<ProjectMemory>,
    context: &'a [SessionMessage],
    place: MemoryItemRef,
) -> Option<MemoryItem<'a>> {
    let kept = || shelf.kept.get(place.volume).map(|kept| &kept.holds);
    match place.what {
        MemoryItemKind::Experience => kept()?.entries.get(place.number).map(MemoryItem::Experience),
        MemoryItemKind::Task => kept()?.logged.get(place.number).map(MemoryItem::Task),
        MemoryItemKind::Trace => kept()?.traces.get(place.number).map(MemoryItem::Trace),
        MemoryItemKind::Message => context.get(place.number).map(MemoryItem::Message),
    }
}

impl ExperiencesPage {
    /// Creates the page with one item expanded.
    pub fn at(id: String) -> ExperiencesPage {
        ExperiencesPage { open: Some(id), reveal: true, ..ExperiencesPage::default() }
    }

    /// Handles that a deleted item was restored.
    pub fn on_forget_undone(&mut self) {
        self.gone.clear();
    }

    /// Updates the context from the latest session. Returns its key.
    fn read_context(&mut self, session: &Session, actions: &mut Vec<PanelAction>) -> u64 {
        if self.filter.level() != MemoryTierFilter::Context {
            return 0;
        }
        let agents = session.agents();
        let last = agents.sessions().max_by_key(|(_, line)| line.updated).map(|(id, _)| id);
        match last.and_then(|id| agents.session(id)) {
            Some(conversation) if self.made.as_ref().is_none_or(|made| made.3 != agents.revision() + 1) => {
                self.context = conversation.context();
            }
            Some(_) => {}
            None if last.is_some() && self.asked != last => {
                self.asked = last;
                actions.extend(last.map(|session| PanelAction::Do(Command::OpenSession { session })));
            }
            None => {}
        }
        agents.revision() + 1
    }

    fn refresh(&mut self, ctx: &egui::Context, session: &Session, actions: &mut Vec<PanelAction>) {
        let before = self.shelf.revision;
        self.shelf.refresh(ctx, session);
        if self.shelf.revision != before {
            self.gone.clear();
        }
        let context = self.read_context(session, actions);
        let key = (self.shelf.revision, self.filter.clone(), self.gone.len(), context);
        if self.made.as_ref() == Some(&key) {
            return;
        }
        self.made = Some(key);
        let mut projects = BTreeSet::new();
        let mut rows: Vec<(&str, MemoryItemRef)> = Vec::new();
        for (kept, volume) in self.shelf.kept.iter().zip(0..) {
            for (entry, number) in kept.holds.entries.iter().zip(0..) {
                let one = &entry.experience;
                projects.insert(one.project_name.clone());
                let open = self.reveal && self.open.as_ref() == Some(&one.experience_id);
                if (self.filter.fits(one) || open) && !self.gone.contains(&one.experience_id) {
                    rows.push((&one.timestamp, MemoryItemRef { volume, number, what: MemoryItemKind::Experience }));
                }
            }
            for (entry, number) in kept.holds.logged.iter().zip(0..) {
                let project = project(&entry.path, &kept.name);
                projects.insert(project.to_owned());
                if self.filter.fits_task(&entry.task, project) && !self.gone.contains(&*MemoryItem::Task(entry).name())
                {
                    rows.push((
                        &entry.task.known.timestamp,
                        MemoryItemRef { volume, number, what: MemoryItemKind::Task },
                    ));
                }
            }
            for (filed, number) in kept.holds.traces.iter().zip(0..) {
                if self.filter.fits_trace(filed, project(&filed.path, &kept.name)) {
                    rows.push((
                        &filed.trace.known.created_at,
                        MemoryItemRef { volume, number, what: MemoryItemKind::Trace },
                    ));
                }
            }
        }
        rows.sort_by(|one, other| other.cmp(one));
        if self.filter.level() == MemoryTierFilter::Context {
            let query = self.filter.query.trim().to_lowercase();
            let fits = |message: &SessionMessage| message.content.to_lowercase().contains(&query);
            let fitting = self.context.iter().zip(0..).filter(|(message, _)| fits(message));
            // In the order of the conversation: oldest first.
            rows = fitting
                .map(|(_, number)| ("", MemoryItemRef { volume: 0, number, what: MemoryItemKind::Message }))
                .collect();
        }
        self.rows = rows.into_iter().map(|(_, place)| place).collect();
        self.projects = projects.into_iter().collect();
    }

    /// Draws the page; memory is read in the background.
    pub fn show(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PanelAction>) {
        self.refresh(ui.ctx(), session, actions);
        if self.shelf.revision == 0 {
            empty_state::show_message(ui, "Reading the memory…", None, "");
            return;
        }
        let empty =
            |memory: &ProjectMemory| memory.entries.is_empty() && memory.logged.is_empty() && memory.traces.is_empty();
        let nothing = self.shelf.kept.iter().all(|kept| empty(&kept.holds));
        if nothing && self.filter.level() != MemoryTierFilter::Context {
            if session.agents().sessions().next().is_some() {
                self.choices(ui); // a context there may be
                if self.with_curve {
                    self.curve.show(ui, session);
                }
            }
            let hint = "Agents keep what they did and learned here. Before you send a message, you see what they \
                        recall for it.";
            if empty_state::show_message(ui, "Nothing is remembered yet.", Some("Ask the agent"), hint) {
                actions.push(PanelAction::Run(CommandId::AgentNew));
            }
            return;
        }
        let words = ("Filter memory", "Filter by what was wanted or learned");
        if ui::layout::filter(ui, &mut self.filter.query, words, "Trace library") {
            actions.push(PanelAction::Run(CommandId::ViewTraces));
        }
        self.choices(ui);
        if self.with_curve {
            ui.add_space(space::S);
            self.curve.show(ui, session);
        }
        ui.add_space(space::S);
        let (margin, width) = widgets::page_column(ui);
        if self.rows.is_empty() {
            let at = pos2(ui.max_rect().left() + margin, ui.cursor().top());
            let none = "No matching memories";
            ui.painter().text(at, Align2::LEFT_TOP, none, theme::small().font, ThemeColors::of(ui).muted);
            return;
        }
        let today = clock::today();
        ui.spacing_mut().item_spacing.y = 0.0;
        let problems: Vec<String> = self.shelf.problems().map(str::to_owned).collect();
        let ExperiencesPage { shelf, rows, open, reveal, gone, context, .. } = self;
        let (shelf, context) = (&*shelf, context.as_slice());
        let shown = |place: &MemoryItemRef| {
            let kept = shelf.kept.get(place.volume);
            let one = at(shelf, context, *place)?.detail(kept.map_or("", |kept| &kept.name), today);
            Some((kept.map(|kept| kept.volume), one))
        };
        let mut show = None;
        egui::ScrollArea::vertical().id_salt("experiences").auto_shrink(false).show_viewport(ui, |ui, viewport| {
            let is_open =
                |place: &MemoryItemRef, open: &str| at(shelf, context, *place).is_some_and(|one| one.name() == open);
            let opened = open.as_ref().and_then(|open| rows.iter().position(|place| is_open(place, open)));
            let details = opened.and_then(|place| shown(rows.get(place)?)).map(|(_, one)| {
                (widgets::facts_galley(ui, &one.facts, width - space::XL), widgets::facts_accessible_text(&one.facts))
            });
            let more =
                details.as_ref().map_or(0.0, |(galley, _)| galley.size().y + size::MIN_CLICK_HEIGHT + 2.0 * space::M);
            let lines =
                UnfoldedList::begin_list(ui, viewport, (margin, width), rows.len(), (opened, more), problems.len());
            if std::mem::take(reveal)
                && let Some(place) = opened
            {
                let top = lines.page.top() + place as f32 * MEMORY_ROW_HEIGHT;
                ui.scroll_to_rect(
                    Rect::from_min_size(pos2(lines.page.left(), top), vec2(width, MEMORY_ROW_HEIGHT + more)),
                    None,
                );
            }
            for (place, row) in rows.iter().enumerate() {
                let Some((rect, is)) = lines.row_rect(place) else { continue };
                let Some((volume, one)) = shown(row) else { continue };
                let note = volume.and_then(|volume| file(session, volume, one.path));
                let asked = line(ui, rect, &one, is);
                let asked = match details.as_ref().filter(|_| is) {
                    Some((galley, spoken)) => unfolded(ui, lines.detail_rect(rect), &one, galley, spoken).or(asked),
                    None => asked,
                };
                match (asked, note) {
                    (Some(ExperienceAction::Fold), _) => *open = (!is).then(|| one.name.clone()),
                    (Some(ExperienceAction::Edit), Some(note)) => actions.push(PanelAction::OpenAt(note, one.at)),
                    (Some(ExperienceAction::Forget), Some(note)) if !one.text.is_empty() => {
                        gone.insert(one.name.clone());
                        let forgotten = ForgottenItem::Entry { note, at: one.at, text: one.text.to_owned() };
                        actions.push(PanelAction::Memory(Box::new(MemoryAction::Forget(forgotten))));
                    }
                    (Some(ExperienceAction::Forget), Some(note)) if row.what == MemoryItemKind::Trace => {
                        actions.push(PanelAction::Delete(note))
                    }
                    (Some(ExperienceAction::Forget), Some(note)) => actions.push(PanelAction::OpenAt(note, one.at)),
                    (Some(ExperienceAction::Edit | ExperienceAction::Forget), None) => {
                        actions.push(PanelAction::Say("Its note isn't known yet. Try again in a moment.".to_owned()));
                    }
                    (Some(ExperienceAction::Run(run, step)), _) => {
                        actions.push(PanelAction::Memory(Box::new(MemoryAction::ShowRun(run, step))));
                    }
                    (Some(ExperienceAction::Other(id)), _) => show = Some(id),
                    (None, _) => {}
                }
            }
            lines.show_problems(ui, problems.iter().map(String::as_str));
        });
        if let Some(id) = show {
            (self.open, self.reveal, self.made) = (Some(id), true, None);
        }
    }

    fn choices(&mut self, ui: &mut Ui) {
        let ExperiencesPage { filter, projects, with_curve, .. } = self;
        widgets::row(ui, |ui| {
            let names = TIER_FILTERS.map(|(name, _)| name);
            filter.tier = widgets::filter_chips(ui, "Tier", &names, filter.tier).unwrap_or(filter.tier);
            let names = OUTCOME_FILTERS.map(|(name, _)| name);
            filter.outcome = widgets::filter_chips(ui, "Outcome", &names, filter.outcome).unwrap_or(filter.outcome);
            let words = if *with_curve { "Hide learning curve" } else { "Show learning curve" };
            if text_button(ui, words, false).clicked() {
                *with_curve = !*with_curve;
            }
        });
        if projects.len() > 1 {
            ui.add_space(space::XS);
            widgets::row(ui, |ui| {
                let names: Vec<&str> =
                    std::iter::once("All projects").chain(projects.iter().map(String::as_str)).collect();
                let at = projects.iter().position(|name| Some(name) == filter.project.as_ref()).map_or(0, |at| at + 1);
                if let Some(chosen) = widgets::filter_chips(ui, "Project", &names, at) {
                    filter.project = chosen.checked_sub(1).and_then(|at| projects.get(at)).cloned();
                }
            });
        }
    }
}

/// Action requested on a remembered item.
enum ExperienceAction {
    Fold,
    Edit,
    Forget,
    Run(DocId, String),
    Other(String),
}

fn line(ui: &mut Ui, rect: Rect, one: &MemoryDetail<'_>, open: bool) -> Option<ExperienceAction> {
    let colours = ThemeColors::of(ui);
    let goal = one.goal;
    let id = ui.scope_id().with(("experience", one.path, &one.name));
    let response = widgets::show_row_background(ui, rect, id, &one.label, open);
    let (icon, colour) = match one.came {
        _ if one.dim => (icons::CIRCLE_DASHED, colours.muted),
        Some(RunOutcome::Success) => (icons::CHECK_CIRCLE, colours.ok),
        Some(RunOutcome::SuccessWithRecovery) => (icons::WARNING_CIRCLE, colours.warn),
        Some(RunOutcome::Failure) => (icons::X_CIRCLE, colours.bad),
        None => (icons::CIRCLE, colours.muted),
    };
    let at = pos2(rect.left() + 26.0, rect.center().y);
    ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(size::ICON_SIZE), colour);
    let layout = Layout::right_to_left(Align::Center);
    let mut tools = ui.new_child(UiBuilder::new().max_rect(rect).id_salt((one.path, &one.name)).layout(layout));
    tools.spacing_mut().item_spacing.x = 0.0;
    let kept = !one.path.is_empty();
    let forget = kept && icon_button(&mut tools, icons::TRASH, &format!("Forget: {goal}"), Some("Delete")).clicked();
    let edit = kept && icon_button(&mut tools, icons::PENCIL, &format!("Edit in its note: {goal}"), None).clicked();
    let right = tools.min_rect().left() - space::S;
    widgets::paint_two_lines(ui, rect, rect.left() + 44.0, right, (goal, &one.about), one.dim);
    let deletes =
        kept && response.has_focus() && ui.input_mut(|input| input.consume_key(egui::Modifiers::NONE, Key::Delete));
    match (forget || deletes, edit, response.clicked()) {
        (true, _, _) => Some(ExperienceAction::Forget),
        (_, true, _) => Some(ExperienceAction::Edit),
        (_, _, true) => Some(ExperienceAction::Fold),
        _ => None,
    }
}

/// Draws the expanded details of a row.
fn unfolded(
    ui: &mut Ui,
    rect: Rect,
    one: &MemoryDetail<'_>,
    galley: &std::sync::Arc<egui::Galley>,
    spoken: &str,
) -> Option<ExperienceAction> {
    let colours = ThemeColors::of(ui);
    let text = Rect::from_min_size(rect.min + vec2(20.0, 0.0), galley.size());
    ui.painter().galley(text.min, galley.clone(), colours.ink);
    let id = Id::unique(("experience's facts", &one.name));
    set_accessible_name(&ui.interact(text, id, Sense::hover()), Role::Label, spoken);
    let place =
        Rect::from_min_size(text.left_bottom() + vec2(0.0, space::S), vec2(rect.width(), size::MIN_CLICK_HEIGHT));
    let layout = Layout::left_to_right(Align::Center);
    let mut tools = ui.new_child(UiBuilder::new().max_rect(place).id_salt(("facts", &one.name)).layout(layout));
    tools.spacing_mut().item_spacing.x = space::S;
    let mut asked = None;
    if !one.path.is_empty() && text_button(&mut tools, "Edit in its note", false).clicked() {
        asked = Some(ExperienceAction::Edit);
    }
    if let Some((run, step)) = &one.run
        && text_button(&mut tools, "Show the run", false).clicked()
    {
        asked = Some(ExperienceAction::Run(*run, step.clone()));
    }
    if !one.superseded_by.is_empty() && text_button(&mut tools, "Show what supersedes it", false).clicked() {
        asked = Some(ExperienceAction::Other(one.superseded_by.to_owned()));
    }
    asked
}
