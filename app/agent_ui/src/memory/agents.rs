//! The page of agents: those of projects (Markdown and Python), the user's own, and built-in ones, with their purpose,
//! role, tools, file and what they do now; ask, open, create.

use super::widgets::{self, UnfoldedList};
use super::{MemoryAction, MemoryCache, VolumeContents, file, home};
use crate::panel_action::PanelAction;
use agent::agent_definition::{self, AgentDefinition};
use agent::agent_registry::{self, AgentRegistry};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Align2, Id, Layout, Rect, Sense, Ui, UiBuilder, pos2, vec2};
use engine::{AgentRun, Session, phases_of};
use std::path::Path;
use store::{AgentState, DocId, TodoStatus};
use ui::empty_state;
use ui::icons;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{icon_button, paint_clipped_text, set_accessible_name, text_button};

/// Filters by the owner of agents.
const OWNER_FILTERS: [&str; 4] = ["All agents", "Of projects", "Yours", "The program's"];
/// Maximum length of a displayed prompt in bytes.
const MAX_PROMPT_PREVIEW_BYTES: usize = 3_000;

impl VolumeContents for AgentRegistry {
    fn has(path: &str) -> bool {
        agent_registry::is_agent_file(path)
    }

    fn read(root: &Path, _: &Path) -> AgentRegistry {
        host::agents::project_memory::read_agent_registry(root)
    }
}

/// Owner of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AgentOwner {
    /// A project: its volume, and the volume's name.
    Project(DocId, String),
    Yours,
    Program,
}

/// A row of the list of agents.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AgentRow {
    name: String,
    description: String,
    whose: AgentOwner,
    path: Option<String>,
    /// Its tools; `None` means all.
    tools: Option<Vec<String>>,
    when: Vec<String>,
    /// Its role; empty for a Python agent.
    role: String,
    /// What it's good at, such as `api_design`.
    capabilities: Vec<String>,
    prompt: String,
    python: bool,
    /// Whether a program of this computer does its work.
    is_program: bool,
    /// Why it isn't used; `None` if it is.
    off: Option<String>,
}

/// The page that lists callable agents: built-in ones, the user's, and those of each volume.
#[derive(Default)]
pub struct AgentsPage {
    shelf: MemoryCache<AgentRegistry>,
    query: String,
    whose: usize,
    /// Whether agents for software developers are listed, too.
    with_developers: bool,
    /// What the rows were built for: revisions of the volumes' agents and of the session's agents, and the filters.
    made: Option<(u64, u64, String, usize, bool)>,
    rows: Vec<AgentRow>,
    /// The expanded row.
    open: Option<(AgentOwner, String)>,
}

impl AgentRow {
    fn of(agent: AgentDefinition, whose: AgentOwner) -> AgentRow {
        let role = agent.role().to_owned();
        let AgentDefinition { name, description, tools, when, capabilities, prompt, path, program, .. } = agent;
        let is_program = program.is_some();
        AgentRow {
            name,
            description,
            whose,
            path,
            tools,
            when,
            role,
            capabilities,
            prompt,
            python: false,
            is_program,
            off: None,
        }
    }

    fn fits(&self, query: &str, whose: usize) -> bool {
        let own = match whose {
            1 => matches!(self.whose, AgentOwner::Project(..)),
            2 => self.whose == AgentOwner::Yours,
            3 => self.whose == AgentOwner::Program,
            _ => true,
        };
        own && [&self.name, &self.description].iter().any(|text| text.to_lowercase().contains(query))
    }

    /// Describes briefly how the agent works.
    fn way(&self) -> String {
        if self.is_program {
            return "a program of this computer".to_owned();
        }
        match (self.python, phases_of(&self.name)) {
            (true, _) => "Python, no model".to_owned(),
            (false, phases) if !phases.is_empty() => format!("leads others in {} phases", phases.len()),
            (false, _) => match &self.tools {
                None => "a model with all tools".to_owned(),
                Some(tools) if tools.len() == 1 => "a model with 1 tool".to_owned(),
                Some(tools) => format!("a model with {} tools", tools.len()),
            },
        }
    }

    /// Describes what the agent does now; `None` while it's idle.
    fn work(&self, session: &Session) -> Option<String> {
        let is_its_own = |run: &&AgentRun| match &self.whose {
            AgentOwner::Project(volume, _) => run.about.volume == *volume,
            AgentOwner::Yours | AgentOwner::Program => true,
        };
        let runs = session.agents().open_runs();
        let active = runs.filter(|run| run.is_busy() && run.about.agent == self.name).filter(is_its_own);
        let progress: Vec<String> = active.map(progress_text).collect();
        (self.off.is_none() && !progress.is_empty()).then(|| format!("busy: {}", progress.join("; ")))
    }

    fn place(&self) -> String {
        match &self.whose {
            AgentOwner::Project(_, project) => project.clone(),
            AgentOwner::Yours => "yours".to_owned(),
            AgentOwner::Program => "comes with the program".to_owned(),
        }
    }
}

/// Describes how far an active run is.
fn progress_text(run: &AgentRun) -> String {
    let state = match run.about.agent_state {
        AgentState::Idle => "waits for you",
        AgentState::Thinking => "asks a model",
        AgentState::Executing => "uses tools",
    };
    let mut text = format!("{state}, {} of {} iterations", run.about.iteration, run.about.limit);
    if !run.todos.is_empty() {
        let done = run.todos.iter().filter(|todo| todo.status == TodoStatus::Completed).count();
        text.push_str(&format!(", {done} of {} todos", run.todos.len()));
    }
    text
}

/// Returns all agents in list order: projects' first, then the user's, then built-in ones. Of agents with the same
/// name, one is used: the user's, else the built-in one, else the first project's.
fn listed(session: &Session, crews: &MemoryCache<AgentRegistry>) -> Vec<AgentRow> {
    let setup = session.agents().setup();
    let own: Vec<AgentDefinition> = setup.map(|setup| setup.agents.clone()).unwrap_or_default();
    let built_in = agent_definition::built_in();
    let mut rows = Vec::new();
    for kept in &crews.kept {
        let whose = || AgentOwner::Project(kept.volume, kept.name.clone());
        for agent in kept.holds.definitions.iter().cloned() {
            let taken = own.iter().chain(&built_in).any(|other| other.name == agent.name);
            let off = taken.then(|| "its name is taken by an agent of yours or of the program".to_owned());
            rows.push(AgentRow { off, ..AgentRow::of(agent, whose()) });
        }
        for agent in &kept.holds.python {
            rows.push(AgentRow {
                name: agent.class.clone(),
                description: agent.description.clone(),
                whose: whose(),
                path: Some(agent.path.clone()),
                tools: Some(Vec::new()),
                when: Vec::new(),
                role: String::new(),
                capabilities: agent.capabilities.clone(),
                prompt: agent.code.clone(),
                python: true,
                is_program: false,
                off: None,
            });
        }
    }
    let shadowed = |agent: &AgentDefinition| own.iter().any(|other| other.name == agent.name);
    let program: Vec<AgentRow> = built_in
        .into_iter()
        .map(|agent| {
            let off = shadowed(&agent).then(|| "yours of this name is".to_owned());
            AgentRow { off, ..AgentRow::of(agent, AgentOwner::Program) }
        })
        .collect();
    rows.extend(own.iter().cloned().map(|agent| AgentRow::of(agent, AgentOwner::Yours)));
    rows.extend(program);
    for row in &mut rows {
        let choice = setup.and_then(|setup| setup.config.agents.specialists.get(&row.name));
        if choice.is_some_and(|choice| choice.enabled == Some(false)) && row.off.is_none() {
            row.off = Some("switched off in the configuration".to_owned());
        }
    }
    rows
}

impl AgentsPage {
    fn refresh(&mut self, ctx: &egui::Context, session: &Session) {
        self.shelf.refresh(ctx, session);
        let (query, developers) = (self.query.clone(), self.with_developers);
        let key = (self.shelf.revision, session.agents().revision(), query, self.whose, developers);
        if self.made.as_ref() == Some(&key) {
            return;
        }
        self.made = Some(key);
        let query = self.query.trim().to_lowercase();
        self.rows = listed(session, &self.shelf);
        // A search also finds the hidden agents.
        let hides = !self.with_developers && query.is_empty();
        let hidden =
            |row: &AgentRow| row.whose == AgentOwner::Program && agent_definition::is_developer_agent(&row.name);
        self.rows.retain(|row| row.fits(&query, self.whose) && !(hides && hidden(row)));
    }

    /// Draws the page. `note`: the open note; a new agent goes to its volume.
    pub fn show(&mut self, ui: &mut Ui, session: &Session, note: Option<DocId>, actions: &mut Vec<PanelAction>) {
        self.refresh(ui.ctx(), session);
        if self.shelf.revision == 0 {
            empty_state::show_message(ui, "Reading the agents…", None, "");
            return;
        }
        let words = ("Filter agents", "Filter by name or purpose");
        if ui::layout::filter(ui, &mut self.query, words, "New agent") {
            match home(session, note) {
                Some(volume) => actions.push(new(session, volume)),
                None => actions.push(PanelAction::Say("Open a folder first. Agents are files in it.".to_owned())),
            }
        }
        widgets::row(ui, |ui| {
            self.whose = widgets::filter_chips(ui, "Whose", &OWNER_FILTERS, self.whose).unwrap_or(self.whose);
        });
        widgets::row(ui, |ui| {
            let words = if self.with_developers { "Hide developer agents" } else { "Show developer agents" };
            if text_button(ui, words, false).clicked() {
                self.with_developers = !self.with_developers;
            }
        });
        ui.add_space(space::S);
        if self.rows.is_empty() {
            let none = match self.whose {
                1 if self.query.is_empty() => "No agents in your folders yet. “New agent” adds one.",
                2 if self.query.is_empty() => {
                    "No agents of your own yet. They're kept in the workspace's folder agents."
                }
                _ => "No matching agents",
            };
            widgets::row(ui, |ui| widgets::show_text_line(ui, none, ThemeColors::of(ui).muted, Role::Label));
            return;
        }
        ui.spacing_mut().item_spacing.y = 0.0;
        let (margin, width) = widgets::page_column(ui);
        let mut open = self.open.clone();
        egui::ScrollArea::vertical().id_salt("agents").auto_shrink(false).show_viewport(ui, |ui, viewport| {
            let key = |row: &AgentRow| (row.whose.clone(), row.name.clone());
            let opened = open.as_ref().and_then(|open| self.rows.iter().position(|row| key(row) == *open));
            let details = opened.and_then(|place| self.rows.get(place)).map(|row| {
                let facts = facts(row, row.work(session));
                (widgets::facts_galley(ui, &facts, width - 2.0 * space::XL), widgets::facts_accessible_text(&facts))
            });
            let more =
                details.as_ref().map_or(0.0, |(galley, _)| galley.size().y + size::MIN_CLICK_HEIGHT + 2.0 * space::M);
            let problems: Vec<&str> =
                self.shelf.kept.iter().flat_map(|kept| kept.holds.problems.iter().map(String::as_str)).collect();
            let count = self.rows.len();
            let lines = UnfoldedList::begin_list(ui, viewport, (margin, width), count, (opened, more), problems.len());
            for (place, row) in self.rows.iter().enumerate() {
                let Some((rect, is)) = lines.row_rect(place) else { continue };
                let mut asked = line(ui, rect, row, (is, row.work(session)));
                if let Some((galley, spoken)) = details.as_ref().filter(|_| is) {
                    asked = unfolded(ui, lines.detail_rect(rect), row, galley, spoken).or(asked);
                }
                match asked {
                    Some(AgentRowAction::Fold) => open = (!is).then(|| key(row)),
                    Some(AgentRowAction::Call) => {
                        actions.push(PanelAction::Memory(Box::new(MemoryAction::Call(row.name.clone()))))
                    }
                    Some(AgentRowAction::Open) => actions.extend(opening(ui, session, row)),
                    None => {}
                }
            }
            lines.show_problems(ui, problems.into_iter());
        });
        self.open = open;
    }
}

/// Names of the agents that can be called with `@` in a volume: built-in ones, the user's own, the volume's, and those
/// of other volumes that the user trusts, as far as they have been read.
#[derive(Default)]
pub struct CallableAgents {
    shelf: MemoryCache<AgentRegistry>,
    /// What the names were collected for: revisions of the volumes' agents and of the session's agents, the volume, and
    /// the trusted volumes.
    made: Option<(u64, u64, Option<DocId>, Vec<DocId>)>,
    names: Vec<String>,
    /// Incremented when the names change.
    revision: u64,
}

impl CallableAgents {
    /// Updates the names. Returns them with their revision.
    pub(crate) fn refresh_names(
        &mut self,
        ctx: &egui::Context,
        session: &Session,
        volume: Option<DocId>,
    ) -> (u64, &[String]) {
        self.shelf.refresh(ctx, session);
        let trusted = &session.settings().trusted_volumes;
        let key = (self.shelf.revision, session.agents().revision(), volume, trusted.clone());
        if self.made.as_ref() != Some(&key) {
            self.made = Some(key);
            // An agent of another volume is called by the volume's name, too.
            let called = |row: &AgentRow| match &row.whose {
                AgentOwner::Project(of, _) if Some(*of) == volume => Some(row.name.clone()),
                AgentOwner::Project(of, name) => trusted.contains(of).then(|| format!("{name}/{}", row.name)),
                AgentOwner::Yours | AgentOwner::Program => Some(row.name.clone()),
            };
            let mut names: Vec<String> = Vec::new();
            for row in listed(session, &self.shelf).iter().filter(|row| row.off.is_none()) {
                if let Some(name) = called(row).filter(|name| !names.contains(name)) {
                    names.push(name);
                }
            }
            if names != self.names {
                self.names = names;
                self.revision += 1;
            }
        }
        (self.revision, &self.names)
    }
}

/// Creates a project's agent as a template file for the user to complete.
fn new(session: &Session, volume: DocId) -> PanelAction {
    let path = |name: &str| format!("{}/{name}.md", agent_registry::AGENT_DEFINITIONS_FOLDER);
    let free = |name: &String| file(session, volume, &path(name)).is_none();
    let names = std::iter::once("helper".to_owned()).chain((2..).map(|number| format!("helper-{number}")));
    let name = names.into_iter().find(free).unwrap_or_default();
    let text = format!(
        "---\nname: {name}\ndescription: \"Says in a sentence what it is good for.\"\nwhen: [words, of, goals]\ntools: \
         [search, read_file, write_file]\n---\nYou help. Say here what it is to do, how, and what it must not do.\n"
    );
    PanelAction::Memory(Box::new(MemoryAction::Make { volume, path: path(&name), text, shown: true }))
}

/// Opens an agent's file: in the window if it's in a project, otherwise in the system's viewer.
fn opening(ui: &Ui, session: &Session, row: &AgentRow) -> Option<PanelAction> {
    let path = row.path.as_ref()?;
    match &row.whose {
        AgentOwner::Project(volume, _) => Some(match file(session, *volume, path) {
            Some(note) => PanelAction::Open(note),
            None => PanelAction::Say("Its file isn't known yet. Try again in a moment.".to_owned()),
        }),
        AgentOwner::Yours | AgentOwner::Program => {
            ui.ctx().open_url(egui::OpenUrl::new_tab(format!("file://{path}")));
            None
        }
    }
}

/// Action requested on an agent's row.
enum AgentRowAction {
    Fold,
    Call,
    Open,
}

fn line(ui: &mut Ui, rect: Rect, row: &AgentRow, (open, work): (bool, Option<String>)) -> Option<AgentRowAction> {
    let colours = ThemeColors::of(ui);
    let salt = (&row.name, row.path.as_deref(), matches!(row.whose, AgentOwner::Program));
    let id = ui.scope_id().with(("agent", salt));
    let response = widgets::show_row_background(ui, rect, id, &format!("Agent: {}", row.name), open);
    if let Some(work) = &work {
        ui.ctx().accesskit_node_builder(response.id, |node| node.set_description(work.as_str()));
    }
    let icon = if row.python { icons::FILE_CODE } else { icons::ROBOT };
    let colour = match (&row.off, &row.whose) {
        (Some(_), _) => colours.muted,
        (None, AgentOwner::Project(..) | AgentOwner::Yours) => colours.accent,
        (None, AgentOwner::Program) => colours.tool,
    };
    let at = pos2(rect.left() + 26.0, rect.center().y);
    ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(size::ICON_SIZE), colour);
    let layout = Layout::right_to_left(Align::Center);
    let mut tools = ui.new_child(UiBuilder::new().max_rect(rect).id_salt(salt).layout(layout));
    tools.spacing_mut().item_spacing.x = 0.0;
    let opens = row.path.is_some()
        && icon_button(&mut tools, icons::PENCIL, &format!("Open the file of {}", row.name), None).clicked();
    let calls =
        row.off.is_none() && icon_button(&mut tools, icons::CHAT, &format!("Ask @{}", row.name), None).clicked();
    let right = tools.min_rect().left().min(rect.right()) - space::S;
    let mut about: Vec<String> = work.into_iter().chain([row.way(), row.place()]).collect();
    about.extend(row.off.as_ref().map(|why| format!("not asked: {why}")));
    let purpose = row.description.lines().next().unwrap_or_default();
    // The name is emphasized and followed by the description.
    let style = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 13.0), line: 20.0 };
    let (left, ink) = (rect.left() + 44.0, if row.off.is_some() { colours.muted } else { colours.ink });
    let used = paint_clipped_text(ui, pos2(left, rect.top() + 7.0), right - left, &row.name, &style, ink);
    let behind = left + used + space::S;
    paint_clipped_text(ui, pos2(behind, rect.top() + 7.0), right - behind, purpose, &theme::small(), ink);
    let style = theme::TypeStyle { font: theme::tabular_font(12.0), line: 16.0 };
    paint_clipped_text(ui, pos2(left, rect.top() + 27.0), right - left, &about.join("  ·  "), &style, colours.muted);
    match (opens, calls, response.clicked()) {
        (true, _, _) => Some(AgentRowAction::Open),
        (_, true, _) => Some(AgentRowAction::Call),
        (_, _, true) => Some(AgentRowAction::Fold),
        _ => None,
    }
}

fn facts(row: &AgentRow, work: Option<String>) -> Vec<(&'static str, String)> {
    let tools = match (&row.tools, row.python) {
        (_, true) => {
            "none of the agents': it runs as a program in the sandbox, once you have allowed its code".to_owned()
        }
        (None, false) => "all".to_owned(),
        (Some(tools), false) => tools.join(", "),
    };
    let phases: Vec<String> =
        (1..).zip(phases_of(&row.name)).map(|(number, phase)| format!("{number} {phase}")).collect();
    let file = match (&row.whose, &row.path) {
        (AgentOwner::Project(_, project), Some(path)) => format!("{path} in {project}"),
        (_, Some(path)) => path.clone(),
        (_, None) => format!("system/agents/{}.md, inside the program", row.name),
    };
    let prompt = &row.prompt[..row.prompt.floor_char_boundary(MAX_PROMPT_PREVIEW_BYTES)];
    let (call, now) = match row.off {
        Some(_) => (String::new(), String::new()),
        None => (format!("@{} in a message", row.name), work.unwrap_or_else(|| "idle".to_owned())),
    };
    vec![
        ("For", row.description.clone()),
        ("Not asked", row.off.clone().unwrap_or_default()),
        ("Now", now),
        ("Role", row.role.clone()),
        ("Good at", row.capabilities.join(", ")),
        ("Called by", call),
        ("By rules for goals of", row.when.join(", ")),
        ("Works as", row.way()),
        ("Phases", phases.join(", ")),
        ("Tools", tools),
        ("File", file),
        (if row.python { "Code" } else { "Told" }, format!("\n{prompt}")),
    ]
}

/// Draws the expanded details of a row.
fn unfolded(
    ui: &mut Ui,
    rect: Rect,
    row: &AgentRow,
    galley: &std::sync::Arc<egui::Galley>,
    spoken: &str,
) -> Option<AgentRowAction> {
    let colours = ThemeColors::of(ui);
    let text = Rect::from_min_size(rect.min + vec2(20.0, 0.0), galley.size());
    ui.painter().galley(text.min, galley.clone(), colours.ink);
    let id = Id::unique(("agent's facts", &row.name));
    set_accessible_name(&ui.interact(text, id, Sense::hover()), Role::Label, spoken);
    let place =
        Rect::from_min_size(text.left_bottom() + vec2(0.0, space::S), vec2(rect.width(), size::MIN_CLICK_HEIGHT));
    let layout = Layout::left_to_right(Align::Center);
    let mut tools = ui.new_child(UiBuilder::new().max_rect(place).id_salt(("facts", &row.name)).layout(layout));
    tools.spacing_mut().item_spacing.x = space::S;
    let mut asked = None;
    if row.off.is_none() && text_button(&mut tools, &format!("Call @{}", row.name), false).clicked() {
        asked = Some(AgentRowAction::Call);
    }
    if row.path.is_some() && text_button(&mut tools, "Open its file", false).clicked() {
        asked = Some(AgentRowAction::Open);
    }
    asked
}
