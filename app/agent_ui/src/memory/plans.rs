//! The page of plans: tasks with agents, dependencies and progress; create, run, cancel. A plan is a note with todos,
//! and the page is another view of it.

use super::widgets::{self, UnfoldedList};
use super::{ForgottenItem, MemoryAction, MemoryCache, VolumeContents, file, home};
use crate::panel_action::PanelAction;
use agent::memory::ReplayMode;
use agent::task_block::{self, DEFAULT_TASK_PRIORITY, TASKS_FOLDER, TaskBlock, TaskStatus};
use agent::{agent_definition, agent_registry, planner, sent_task};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Align2, Id, Key, Layout, Rect, Sense, Ui, UiBuilder, pos2, vec2};
use engine::commands::CommandId;
use engine::{Command, Session};
use std::collections::BTreeMap;
use std::path::Path;
use store::DocId;
use ui::empty_state;
use ui::icons;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{icon_button, paint_clipped_text, set_accessible_name, text_button};

/// Filters by task state.
const TASK_STATE_FILTERS: [&str; 5] = ["All tasks", "Open", "Under way", "Failed", "Done"];
/// Indentation of a task below its plan.
const TASK_INDENT: f32 = space::XL;

/// A plan as read from its note.
struct NotePlan {
    path: String,
    title: String,
    tasks: Vec<TaskBlock>,
    problems: Vec<String>,
}

/// Plans of a volume.
#[derive(Default)]
struct VolumePlans {
    plans: Vec<NotePlan>,
}

impl VolumeContents for VolumePlans {
    fn has(path: &str) -> bool {
        task_block::is_plan(path)
    }

    fn read(root: &Path, _: &Path) -> VolumePlans {
        let plan = |(path, text): (String, String)| {
            let (tasks, problems) = task_block::parse_tasks(&text);
            let head = text.lines().find_map(|line| line.strip_prefix("# "));
            let title = head.map(|head| head.trim().trim_start_matches("Plan:").trim().to_owned());
            let name = || path.rsplit('/').next().unwrap_or(&path).trim_end_matches(".md").to_owned();
            NotePlan { title: title.filter(|title| !title.is_empty()).unwrap_or_else(name), path, tasks, problems }
        };
        let plans = host::agents::project_memory::read_plans(root).into_iter().map(plan);
        VolumePlans { plans: plans.filter(|plan| !plan.tasks.is_empty() || !plan.problems.is_empty()).collect() }
    }
}

/// A listed plan: its position, the current status of its tasks, and its run.
struct ListedPlan {
    at: (usize, usize),
    stands: Vec<TaskStatus>,
    run: Option<DocId>,
    unfolded: bool,
}

/// A row of the list.
#[derive(Clone, Copy)]
enum PlanRow {
    Plan(usize),
    Task(usize, usize),
}

/// What the rows were built for: the read contents, the agents' revision, the filters, and the number of times a plan
/// was expanded or collapsed.
type PlanRowsKey = (u64, u64, String, usize, usize);

/// The page that lists agents' plans and their tasks.
#[derive(Default)]
pub struct PlansPage {
    shelf: MemoryCache<VolumePlans>,
    query: String,
    state: usize,
    goal: String,
    /// The device that does the tasks; empty for this one.
    device: String,
    made: Option<PlanRowsKey>,
    plans: Vec<ListedPlan>,
    rows: Vec<PlanRow>,
    /// Plans that the user has expanded or collapsed.
    turned: BTreeMap<(DocId, String), bool>,
    turns: usize,
    /// The expanded task: volume, path of the plan, and task id.
    open: Option<(DocId, String, String)>,
}

fn is_over(standing: TaskStatus) -> bool {
    matches!(standing, TaskStatus::Done | TaskStatus::Cancelled)
}

fn fits(standing: TaskStatus, state: usize) -> bool {
    match state {
        1 => standing == TaskStatus::Open,
        2 => standing == TaskStatus::Running,
        3 => standing == TaskStatus::Failed,
        4 => is_over(standing),
        _ => true,
    }
}

impl PlansPage {
    fn plan(&self, (at, place): (usize, usize)) -> Option<(DocId, &str, &NotePlan)> {
        let kept = self.shelf.kept.get(at)?;
        Some((kept.volume, &kept.name, kept.holds.plans.get(place)?))
    }

    fn refresh(&mut self, ctx: &egui::Context, session: &Session) {
        self.shelf.refresh(ctx, session);
        let agents = session.agents();
        let made = (self.shelf.revision, agents.revision(), self.query.clone(), self.state, self.turns);
        if self.made.as_ref() == Some(&made) {
            return;
        }
        self.made = Some(made);
        // A run knows the status of its tasks before the note does.
        let mut live: BTreeMap<DocId, (DocId, BTreeMap<String, TaskStatus>)> = BTreeMap::new();
        for run in agents.open_runs().filter(|run| run.about.ending.is_none()) {
            if let Some(note) = session.plan_note(run) {
                let stands = run.tasks().into_iter().map(|task| (task.id, task.standing)).collect();
                live.insert(note, (run.id, stands));
            }
        }
        let query = self.query.trim().to_lowercase();
        let (mut plans, mut rows) = (Vec::new(), Vec::new());
        for (at, kept) in self.shelf.kept.iter().enumerate() {
            for (place, plan) in kept.holds.plans.iter().enumerate() {
                let now = file(session, kept.volume, &plan.path).and_then(|note| live.get(&note));
                let stand = |task: &TaskBlock| now.and_then(|(_, stands)| stands.get(&task.id)).copied();
                let stands: Vec<TaskStatus> =
                    plan.tasks.iter().map(|task| stand(task).unwrap_or(task.standing)).collect();
                let whole = plan.title.to_lowercase().contains(&query);
                let found: Vec<usize> = (0..plan.tasks.len())
                    .filter(|task| whole || plan.tasks[*task].goal.to_lowercase().contains(&query))
                    .filter(|task| fits(stands[*task], self.state))
                    .collect();
                let narrowed = self.state > 0 || !query.is_empty();
                if found.is_empty() && (narrowed || plan.problems.is_empty()) {
                    continue;
                }
                // Finished plans are collapsed, unless a filter is active.
                let over = stands.iter().all(|standing| is_over(*standing)) && !narrowed;
                let turned = self.turned.get(&(kept.volume, plan.path.clone()));
                let unfolded = turned.copied().unwrap_or(!over);
                rows.push(PlanRow::Plan(plans.len()));
                if unfolded {
                    rows.extend(found.into_iter().map(|task| PlanRow::Task(plans.len(), task)));
                }
                plans.push(ListedPlan { at: (at, place), stands, run: now.map(|(run, _)| *run), unfolded });
            }
        }
        (self.plans, self.rows) = (plans, rows);
    }

    /// Draws the page. `note`: the open note; a new plan goes to its volume.
    pub fn show(&mut self, ui: &mut Ui, session: &Session, note: Option<DocId>, actions: &mut Vec<PanelAction>) {
        self.refresh(ui.ctx(), session);
        if self.shelf.revision == 0 {
            empty_state::show_message(ui, "Reading the plans…", None, "");
            return;
        }
        let words = ("Filter plans", "Filter by plan or task");
        if ui::layout::filter(ui, &mut self.query, words, "Agents") {
            actions.push(PanelAction::Run(CommandId::ViewAgents));
        }
        widgets::row(ui, |ui| {
            self.state = widgets::filter_chips(ui, "Tasks", &TASK_STATE_FILTERS, self.state).unwrap_or(self.state)
        });
        ui.add_space(space::XS);
        self.form(ui, session, note, actions);
        if !sent_runs::shared_hubs(session).is_empty() {
            self.show_device_field(ui);
        }
        ui.add_space(space::S);
        if self.rows.is_empty() {
            let none = if self.query.is_empty() && self.state == 0 {
                "No plans yet. Describe a goal above, or ask @planner."
            } else {
                "No matching tasks"
            };
            widgets::row(ui, |ui| widgets::show_text_line(ui, none, ThemeColors::of(ui).muted, Role::Label));
            return;
        }
        ui.spacing_mut().item_spacing.y = 0.0;
        self.list(ui, session, actions);
    }

    fn list(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PanelAction>) {
        let (margin, width) = widgets::page_column(ui);
        let (mut open, mut toggle) = (self.open.clone(), None);
        egui::ScrollArea::vertical().id_salt("plans").auto_shrink(false).show_viewport(ui, |ui, viewport| {
            let task = |row: &PlanRow| match *row {
                PlanRow::Plan(_) => None,
                PlanRow::Task(plan, task) => {
                    let shown = self.plans.get(plan)?;
                    let (volume, _, held) = self.plan(shown.at)?;
                    Some((volume, held, held.tasks.get(task)?, *shown.stands.get(task)?))
                }
            };
            let named_so = |row: &PlanRow| task(row).map(|(volume, plan, task, _)| (volume, &plan.path, &task.id));
            let is_open = |row: &PlanRow| {
                let open = open.as_ref().map(|(volume, path, id)| (*volume, path, id));
                open.is_some() && named_so(row) == open
            };
            let opened = self.rows.iter().position(is_open);
            let details = opened.and_then(|place| task(self.rows.get(place)?)).map(|(_, _, task, standing)| {
                let facts = facts(task, standing);
                (
                    widgets::facts_galley(ui, &facts, width - 2.0 * space::XL - TASK_INDENT),
                    widgets::facts_accessible_text(&facts),
                )
            });
            let more = details.as_ref().map_or(0.0, |(galley, _)| galley.size().y + 2.0 * space::M);
            let problems: Vec<String> = self
                .shelf
                .kept
                .iter()
                .flat_map(|kept| kept.holds.plans.iter())
                .flat_map(|plan| plan.problems.iter().map(|problem| format!("{problem}: {}", plan.path)))
                .collect();
            let count = self.rows.len();
            let lines = UnfoldedList::begin_list(ui, viewport, (margin, width), count, (opened, more), problems.len());
            for (place, row) in self.rows.iter().enumerate() {
                let Some((rect, is)) = lines.row_rect(place) else { continue };
                let (PlanRow::Plan(number) | PlanRow::Task(number, _)) = *row;
                let Some((shown, (volume, project, plan))) =
                    self.plans.get(number).and_then(|shown| Some((shown, self.plan(shown.at)?)))
                else {
                    continue;
                };
                let asked = match *row {
                    PlanRow::Plan(_) => head(ui, rect, shown, project, plan),
                    PlanRow::Task(_, task) => {
                        line(ui, rect.with_min_x(rect.left() + TASK_INDENT), shown, plan, task, is)
                    }
                };
                if let Some((galley, spoken)) = details.as_ref().filter(|_| is) {
                    let at = rect.left_bottom() + vec2(TASK_INDENT + space::XL + 20.0, space::S);
                    let text = Rect::from_min_size(at, galley.size());
                    ui.painter().galley(text.min, galley.clone(), ThemeColors::of(ui).ink);
                    let response = ui.interact(text, Id::unique(("task's facts", &plan.path)), Sense::hover());
                    set_accessible_name(&response, Role::Label, spoken);
                }
                let (Some(asked), note) = (asked, file(session, volume, &plan.path)) else { continue };
                let only = match *row {
                    PlanRow::Plan(_) => None,
                    PlanRow::Task(_, task) => plan.tasks.get(task).map(|task| task.id.clone()),
                };
                match (asked, only, note) {
                    (PlanAction::Fold, None, _) => toggle = Some(((volume, plan.path.clone()), !shown.unfolded)),
                    (PlanAction::Fold, Some(id), _) => open = (!is).then(|| (volume, plan.path.clone(), id)),
                    (PlanAction::Stop(run), ..) => actions.push(PanelAction::Do(Command::CancelRun { run })),
                    (PlanAction::Run(run), ..) => {
                        actions.push(PanelAction::Memory(Box::new(MemoryAction::ShowRun(run, String::new()))))
                    }
                    (PlanAction::Open, _, Some(note)) => actions.push(PanelAction::Open(note)),
                    (PlanAction::Begin, only, Some(note)) => {
                        let mut tasks = tasks_with_state(plan, &shown.stands);
                        let device = Some(self.device.trim()).filter(|device| !device.is_empty());
                        sent_task::assign_device(&mut tasks, device);
                        actions.push(PanelAction::Memory(Box::new(MemoryAction::CarryOut { note, tasks, only })));
                    }
                    (PlanAction::GiveUp, Some(task), Some(note)) => {
                        let place = plan.tasks.iter().position(|known| known.id == task);
                        let stood = place.and_then(|place| shown.stands.get(place)).copied();
                        let gone = ForgottenItem::Task { note, task, failed: stood == Some(TaskStatus::Failed) };
                        actions.push(PanelAction::Memory(Box::new(MemoryAction::Forget(gone))));
                    }
                    (PlanAction::GiveUp, None, _) => {}
                    (PlanAction::Open | PlanAction::Begin | PlanAction::GiveUp, _, None) => {
                        actions.push(PanelAction::Say("Its note isn't known yet. Try again in a moment.".to_owned()));
                    }
                }
            }
            lines.show_problems(ui, problems.iter().map(String::as_str));
        });
        self.open = open;
        if let Some((plan, unfolded)) = toggle {
            self.turned.insert(plan, unfolded);
            self.turns += 1;
        }
    }

    /// Draws the field for the device that does the tasks that are begun next.
    fn show_device_field(&mut self, ui: &mut Ui) {
        let (colours, style) = (ThemeColors::of(ui), theme::small());
        widgets::row(ui, |ui| {
            let hint = "Run tasks on this device. Or type a worker's name, or any";
            let hint = egui::RichText::new(hint).font(style.font.clone()).color(colours.muted);
            let field = egui::TextEdit::singleline(&mut self.device).id_salt("device").font(style.font).hint_text(hint);
            let width = ui.available_width().max(120.0);
            let response = ui.add(field.desired_width(width).margin(egui::Margin::symmetric(8, 6)));
            response.accessible_name("Device that does the tasks");
        });
    }

    /// Draws the form for a new plan, which is split into tasks by rules.
    fn form(&mut self, ui: &mut Ui, session: &Session, note: Option<DocId>, actions: &mut Vec<PanelAction>) {
        let colours = ThemeColors::of(ui);
        let PlansPage { goal, .. } = self;
        let mut makes = false;
        widgets::row(ui, |ui| {
            let style = theme::small();
            let says = "Goal and steps: first this, then that";
            let hint = egui::RichText::new(says).font(style.font.clone()).color(colours.muted);
            let width = (ui.available_width() - 66.0).max(120.0);
            let field = egui::TextEdit::singleline(goal).id_salt("goal").font(style.font).hint_text(hint);
            let response = ui.add(field.desired_width(width).margin(egui::Margin::symmetric(8, 6)));
            let response = response.accessible_name("Goal of a new plan");
            makes = response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
            makes |= text_button(ui, "Plan it", true).clicked();
        });
        if !makes {
            return;
        }
        let said = goal.trim().to_owned();
        let Some(volume) = home(session, note) else {
            return actions.push(PanelAction::Say("Open a folder first. Plans are notes in it.".to_owned()));
        };
        let mut known = agent_definition::built_in();
        known.retain(|agent| !session.is_switched_off(&agent.name));
        let (mut tasks, _) = planner::plan_without_model(&said, &known);
        if tasks.is_empty() {
            return actions.push(PanelAction::Say("Enter a goal first.".to_owned()));
        }
        for task in tasks.iter_mut().filter(|task| task.agent.is_none()) {
            task.agent = agent_registry::best_matching_agent(&task.routing_text(), known.iter()).map(|(name, _)| name);
        }
        let path = format!("{TASKS_FOLDER}/{}.md", planner::slug(&said));
        if file(session, volume, &path).is_some() {
            return actions.push(PanelAction::Say(format!("A plan with that name already exists: {path}")));
        }
        goal.clear();
        let text = task_block::plan_to_markdown(&said, &tasks);
        actions.push(PanelAction::Memory(Box::new(MemoryAction::Make { volume, path, text, shown: false })));
    }
}

/// Returns the tasks of a plan with their current status.
fn tasks_with_state(plan: &NotePlan, stands: &[TaskStatus]) -> Vec<TaskBlock> {
    let now = |(task, standing): (&TaskBlock, &TaskStatus)| TaskBlock { standing: *standing, ..task.clone() };
    plan.tasks.iter().zip(stands).map(now).collect()
}

/// Action requested on a plan or a task.
enum PlanAction {
    Fold,
    Open,
    Begin,
    Stop(DocId),
    Run(DocId),
    GiveUp,
}

/// Draws the row of a plan.
fn head(ui: &mut Ui, rect: Rect, shown: &ListedPlan, project: &str, plan: &NotePlan) -> Option<PlanAction> {
    let colours = ThemeColors::of(ui);
    let count = |wanted: TaskStatus| shown.stands.iter().filter(|standing| **standing == wanted).count();
    let (all, done) = (shown.stands.len(), count(TaskStatus::Done));
    let mut about = vec![format!("{done} of {all} done")];
    for (standing, word) in [(TaskStatus::Running, "under way"), (TaskStatus::Failed, "failed")] {
        about.extend(Some(count(standing)).filter(|count| *count > 0).map(|count| format!("{count} {word}")));
    }
    about.push(plan.path.clone());
    about.push(project.to_owned());
    let title = plan.title.as_str();
    let id = ui.scope_id().with(("plan", project, &plan.path));
    let response =
        widgets::show_row_background(ui, rect, id, &format!("Plan: {title}, {done} of {all} done"), shown.unfolded);
    let layout = Layout::right_to_left(Align::Center);
    let mut tools = ui.new_child(UiBuilder::new().max_rect(rect).id_salt((project, &plan.path)).layout(layout));
    tools.spacing_mut().item_spacing.x = 0.0;
    let opens = icon_button(&mut tools, icons::PENCIL, &format!("Open as a note: {title}"), None).clicked();
    let mut asked = None;
    let left = shown.stands.iter().any(|standing| !is_over(*standing));
    if let Some(run) = shown.run {
        if icon_button(&mut tools, icons::STOP, &format!("Stop: {title}"), None).clicked() {
            asked = Some(PlanAction::Stop(run));
        }
        if icon_button(&mut tools, icons::GRAPH, &format!("Show the run: {title}"), None).clicked() {
            asked = Some(PlanAction::Run(run));
        }
    } else if left && icon_button(&mut tools, icons::PLAY, &format!("Carry out: {title}"), None).clicked() {
        asked = Some(PlanAction::Begin);
    }
    let right = tools.min_rect().left() - space::S;
    let meter = Rect::from_min_size(pos2(right - 72.0, rect.center().y - 1.0), vec2(72.0, 3.0));
    let colour = if done == all { colours.ok } else { colours.accent };
    widgets::paint_bar(ui, meter, done as f64 / all.max(1) as f64, colour);
    let style = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 13.0), line: 20.0 };
    let (left, room) = (rect.left() + 20.0, meter.left() - space::M - rect.left() - 20.0);
    paint_clipped_text(ui, pos2(left, rect.top() + 7.0), room, title, &style, colours.ink);
    let style = theme::TypeStyle { font: theme::tabular_font(12.0), line: 16.0 };
    paint_clipped_text(ui, pos2(left, rect.top() + 27.0), room, &about.join("  ·  "), &style, colours.muted);
    match (opens, asked, response.clicked()) {
        (true, ..) => Some(PlanAction::Open),
        (_, Some(asked), _) => Some(asked),
        (_, _, true) => Some(PlanAction::Fold),
        _ => None,
    }
}

/// Draws the row of a task.
fn line(ui: &mut Ui, rect: Rect, shown: &ListedPlan, plan: &NotePlan, number: usize, open: bool) -> Option<PlanAction> {
    let colours = ThemeColors::of(ui);
    let (task, standing) = (plan.tasks.get(number)?, *shown.stands.get(number)?);
    let done = |id: &String| {
        let needed = plan.tasks.iter().position(|task| task.id == *id);
        needed.and_then(|at| shown.stands.get(at)).is_none_or(|standing| *standing == TaskStatus::Done)
    };
    let waits: Vec<&str> = task.needs.iter().filter(|id| !done(id)).map(String::as_str).collect();
    let (icon, colour, mut word) = match standing {
        TaskStatus::Open => (icons::CIRCLE, colours.muted, "open".to_owned()),
        TaskStatus::Running if shown.run.is_none() => (icons::WARNING, colours.warn, "interrupted".to_owned()),
        TaskStatus::Running => (icons::HOURGLASS, colours.accent, "under way".to_owned()),
        TaskStatus::Done => (icons::CHECK_CIRCLE, colours.ok, "done".to_owned()),
        TaskStatus::Failed => (icons::X_CIRCLE, colours.bad, "failed".to_owned()),
        TaskStatus::Cancelled => (icons::MINUS, colours.muted, "given up".to_owned()),
    };
    if standing == TaskStatus::Open && !waits.is_empty() {
        word = format!("waits for {}", waits.join(", "));
    }
    let goal = task.goal.as_str();
    let id = ui.scope_id().with(("task", &plan.path, &task.id));
    let response = widgets::show_row_background(ui, rect, id, &format!("Task {}: {goal}, {word}", task.id), open);
    let at = pos2(rect.left() + 26.0, rect.center().y);
    ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(size::ICON_SIZE), colour);
    let layout = Layout::right_to_left(Align::Center);
    let mut tools = ui.new_child(UiBuilder::new().max_rect(rect).id_salt((&plan.path, &task.id)).layout(layout));
    tools.spacing_mut().item_spacing.x = 0.0;
    let mut asked = None;
    if !is_over(standing) && icon_button(&mut tools, icons::X, &format!("Give up: {goal}"), None).clicked() {
        asked = Some(PlanAction::GiveUp);
    }
    let free = !is_over(standing) && waits.is_empty() && shown.run.is_none();
    if free && icon_button(&mut tools, icons::PLAY, &format!("Begin: {goal}"), None).clicked() {
        asked = Some(PlanAction::Begin);
    }
    let right = tools.min_rect().left().min(rect.right()) - space::S;
    let mut about = vec![word];
    about.extend(task.agent.as_ref().map(|agent| format!("@{agent}")));
    about.extend((task.priority != DEFAULT_TASK_PRIORITY).then(|| format!("priority {}", task.priority)));
    about.extend(task.budget().map(|budget| format!("at most ${budget:.2}")));
    about.extend(task.device.as_ref().map(|device| format!("on {device}")));
    about.push(task.id.clone());
    widgets::paint_two_lines(ui, rect, rect.left() + 44.0, right, (goal, &about.join("  ·  ")), is_over(standing));
    match (asked, response.clicked()) {
        (Some(asked), _) => Some(asked),
        (None, true) => Some(PlanAction::Fold),
        (None, false) => None,
    }
}

fn facts(task: &TaskBlock, standing: TaskStatus) -> Vec<(&'static str, String)> {
    let inputs = task.inputs.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>();
    let mode = match task.mode {
        ReplayMode::Auto => "auto: by a trace that is sure enough, else by a model",
        ReplayMode::Learner => "learner: by a model",
        ReplayMode::Follower => "follower: by a trace that fits, else by a model",
    };
    let agent = task.agent.as_ref().map_or_else(|| "as its words say".to_owned(), |agent| format!("@{agent}"));
    vec![
        ("Goal", task.goal.clone()),
        ("Stands", standing.as_str().to_owned()),
        ("Type", task.kind.clone().unwrap_or_default()),
        ("Inputs", inputs.join(", ")),
        ("Keeps to", task.constraints.join("; ")),
        ("Priority", format!("{} of 100", task.priority)),
        ("Tools that it needs", task.tools_required.join(", ")),
        ("Mode", mode.to_owned()),
        ("Agent", agent),
        ("After", task.needs.join(", ")),
        ("Device", task.device.clone().unwrap_or_default()),
        ("Deadline", task.deadline.map_or_else(String::new, |deadline| deadline.to_string())),
        ("Risk", task.risk.map_or_else(String::new, |risk| risk.as_str().to_owned())),
        ("Checkpoint", if task.has_checkpoint() { "you decide before it begins".to_owned() } else { String::new() }),
        ("Name", task.id.clone()),
    ]
}
