//! Runs that lead: their agent works in phases, and the program walks them, so that each is a fact of the run and no
//! word of a prompt. A plan is made (by rules where the goal says its tasks itself, else by a model that calls a
//! tool), each task is handed to the agent that fits it, those that need nothing of each other side by side, and what
//! came of it is logged. Where the run stands is read off its steps, so that it goes on after a stop where it was.

use super::team::DELEGATE;
use super::{Asking, CallPhase, Pending, Record, Run, phases, step};
use crate::notice::Notice;
use crate::session::{Reject, Session, Turn};
use agent::block::{self, Standing, TaskBlock};
use agent::job::Outcome;
use agent::memory::{PROJECTS, Recall};
use agent::planner::{self, ASSIGN, PLAN, Plan};
use agent::policy::{Facts, Policy};
use agent::tool::{Risk, ToolSpec};
use agent::{calls, crew};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use store::{AgentState, DocId, Ending, Message, MessageId, Origin, Role, StepKind, TodoItem, TodoStatus, ToolCall};

/// The agent that leads larger work in eight phases.
pub(super) const SYSTEM: &str = "system";
/// The agent that carries out a plan.
pub(in crate::session) const LEAD: &str = "lead";
/// The agent that makes a plan and keeps it as a note.
pub(super) const PLANNER: &str = "planner";
/// A model is asked for a plan so often; then rules make it.
const TRIES: u8 = 2;
/// The phases, from 1.
pub const PHASES: [&str; 8] = [
    "Analyse and plan",
    "Create the project",
    "Create agents",
    "Execute the plan",
    "Log",
    "Produce the output",
    "Summarise",
    "Update memory",
];

/// The phase in which tasks are done.
pub(super) const WORK: u8 = 4;

/// The folders of a project.
const TREE: [&str; 6] = [
    "components/agents",
    "output/code",
    "output/data",
    "output/visualizations",
    "memory/short_term",
    "memory/long_term",
];

/// What a run that leads knows beyond its document.
#[derive(Clone, Debug, Default)]
pub(super) struct Lead {
    /// The plan that it is to carry out.
    pub(super) plan: Option<Vec<TaskBlock>>,
    /// Whether it was told one.
    pub(super) given: bool,
    /// How often a model was asked for one.
    pub(super) tries: u8,
    /// What the next call of a model is for.
    pub(super) wants: Option<Wants>,
    /// What the last one was for.
    pub(super) asked: Option<Wants>,
    /// Whether a model was asked who does the tasks for which rules know nobody.
    pub(super) who: bool,
    /// Tasks that were begun since it was let go on last.
    pub(super) tried: BTreeSet<String>,
    /// Why there is no money left.
    pub(super) halted: Option<String>,
}

/// What a run that leads asks a model for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// A plan.
    Plan,
    /// Who does which task.
    Who,
}

/// What a phase comes to.
pub(super) enum Gone {
    /// It is over.
    On,
    /// It waits for what it has begun.
    Waits,
}

/// The phases that an agent walks; none: it does not lead.
pub(super) fn course(agent: &str) -> &'static [u8] {
    match agent {
        SYSTEM => &[1, 2, 3, 4, 5, 6, 7, 8],
        LEAD => &[1, 4, 7],
        PLANNER => &[1, 2, 7],
        _ => &[],
    }
}

/// Whether a run leads.
pub(super) fn leads(run: &Run) -> bool {
    is_lead(&run.about.agent)
}

/// Whether an agent leads.
pub(super) fn is_lead(agent: &str) -> bool {
    !course(agent).is_empty()
}

/// What a phase is called where this agent walks it.
pub(super) fn name_of(agent: &str, phase: u8) -> &'static str {
    match (agent, phase) {
        (PLANNER, 2) => "Keep the plan",
        _ => PHASES.get(usize::from(phase).saturating_sub(1)).copied().unwrap_or("Work"),
    }
}

/// What a phase of a run is called, and the words of the step that says that it begins.
fn title(run: &Run, phase: u8) -> (&'static str, String) {
    let own = course(&run.about.agent);
    let name = name_of(&run.about.agent, phase);
    let place = own.iter().position(|known| *known == phase).map_or(0, |at| at + 1);
    (name, format!("Phase {place} of {}: {name}.", own.len()))
}

/// The goal without the name by which the agent was called.
pub(super) fn goal(run: &Run) -> String {
    let called = format!("@{}", run.about.agent);
    run.about.prompt.replacen(&called, "", 1).trim().to_owned()
}

/// The calls of a tool in a run with what came of each, oldest first; `None`: nothing yet.
pub(super) fn made<'a>(
    run: &'a Run,
    tool: &'a str,
) -> impl Iterator<Item = (&'a Map<String, Value>, Option<(bool, &'a str)>)> {
    run.steps.iter().filter_map(move |step| {
        let StepKind::ToolCall { tool_call_id, tool_name, params } = &step.kind else { return None };
        if tool_name != tool {
            return None;
        }
        let result = run.steps.iter().find_map(|step| match &step.kind {
            StepKind::ToolResult { tool_call_id: id, success, result, error, .. } if id == tool_call_id => {
                let text = result.as_ref().and_then(Value::as_str).or(error.as_deref()).unwrap_or_default();
                Some((*success, text))
            }
            StepKind::ToolResult { .. }
            | StepKind::ToolCall { .. }
            | StepKind::Thinking { .. }
            | StepKind::Todo { .. }
            | StepKind::FinalAnswer { .. }
            | StepKind::Error { .. } => None,
        });
        Some((params, result))
    })
}

pub(super) fn text<'a>(arguments: &'a Map<String, Value>, key: &str) -> &'a str {
    arguments.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The plan that a run carries out.
pub(super) fn planned(run: &Run) -> Option<Plan> {
    let (arguments, _) = made(run, PLAN).filter(|(_, result)| result.is_some_and(|(good, _)| good)).last()?;
    let mut plan: Plan = serde_json::from_value(Value::Object(arguments.clone())).ok()?;
    if plan.project.is_empty() {
        plan.project = planner::slug(&goal(run));
    }
    Some(plan)
}

/// Whether the plan that a run carries out came by rules, or from the user: no model thought before it was called.
fn made_by_rules(run: &Run) -> bool {
    let called =
        |step: &&store::ExecutionStep| matches!(&step.kind, StepKind::ToolCall { tool_name, .. } if tool_name == PLAN);
    run.steps.iter().rev().find(called).is_some_and(|step| step.route.is_some())
}

/// How a task stands, by what came of it and by what the user says.
fn standing(run: &Run, task: &TaskBlock) -> Standing {
    let last = made(run, DELEGATE).filter(|(arguments, _)| text(arguments, "task") == task.id).last();
    let said = run.todos.iter().find(|todo| todo.id == task.id).map(|todo| todo.status);
    match (said, last) {
        (Some(TodoStatus::Cancelled), _) => Standing::Cancelled,
        (Some(TodoStatus::Completed), _) | (_, Some((_, Some((true, _))))) => Standing::Done,
        (_, Some((_, Some((false, _))))) => Standing::Failed,
        (_, Some((_, None))) => Standing::Running,
        (_, None) => Standing::Open,
    }
}

/// The project that a run leads.
pub(super) fn project(run: &Run) -> Option<String> {
    if run.about.agent == SYSTEM { planned(run).map(|plan| plan.project) } else { None }
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}

impl Run {
    /// The plan that it carries out, with how each task stands; empty: none.
    pub fn tasks(&self) -> Vec<TaskBlock> {
        let plan = planned(self).unwrap_or_default();
        plan.tasks.into_iter().map(|task| TaskBlock { standing: standing(self, &task), ..task }).collect()
    }

    /// The folder of the project that it works on, where its agent has made one.
    pub(super) fn home(&self) -> Option<String> {
        project(self).map(|project| format!("{PROJECTS}/{project}"))
    }
}

impl Session {
    /// The note in which the plan stands that a run carries out.
    pub fn plan_note(&self, run: &Run) -> Option<DocId> {
        match run.about.agent.as_str() {
            LEAD => run.about.note,
            _ => self.file_of(run.about.volume, &format!("{}/{}/plan.md", run.home()?, block::TASKS)),
        }
    }

    /// The tools of a run that leads.
    pub(super) fn lead_tools(&self) -> Vec<ToolSpec> {
        let mut tools = self.all_tools();
        tools.extend([planner::tool(), planner::assign_tool()]);
        tools
    }

    /// The tools that a model is offered by a run that leads.
    pub(super) fn wanted_tools(wants: Option<Wants>) -> Vec<ToolSpec> {
        match wants {
            Some(Wants::Who) => vec![planner::assign_tool()],
            Some(Wants::Plan) | None => vec![planner::tool()],
        }
    }

    /// Does what is next in a run that leads.
    pub(super) fn lead(&mut self, turn: &mut Turn<'_>, id: DocId) {
        let Some(run) = self.agents.runs.get_mut(&id) else { return };
        if let Some(why) = run.lead.halted.take() {
            let words = format!("{why} What was done is kept; the tasks that are left wait.");
            return self.fail_run(turn, id, words, Ending::Budget);
        }
        let gone = match run.about.phase {
            0 => Gone::On,
            1 => self.plan_phase(turn, id),
            2 => self.tree_phase(turn, id),
            3 => self.agents_phase(turn, id),
            4 => self.work_phase(turn, id),
            5 => self.log_phase(turn, id),
            6 => self.output_phase(turn, id),
            7 => Gone::On,
            _ => self.memory_phase(turn, id),
        };
        if let Gone::Waits = gone {
            return;
        }
        let Some(run) = self.agents.runs.get(&id) else { return };
        match course(&run.about.agent).iter().find(|phase| **phase > run.about.phase) {
            Some(phase) => self.enter(turn, id, *phase),
            None => self.end_lead(turn, id),
        }
    }

    /// A run that leads begins with its first phase, before memory is consulted.
    pub(super) fn begin_lead(&mut self, turn: &mut Turn<'_>, id: DocId, record: &mut Record) {
        let Some(run) = self.agents.runs.get_mut(&id).filter(|run| leads(run) && run.about.phase == 0) else { return };
        run.about.phase = 1;
        let (_, content) = title(run, 1);
        let mut made = step(turn, run.last_step(), StepKind::Thinking { content, is_streaming: None });
        made.route = Some(phases::mark(1));
        record.steps.push(made);
        self.notify(turn, Notice::Phase { run: id, phase: 1, name: PHASES[0].to_owned() });
    }

    /// A phase begins: a step says so.
    fn enter(&mut self, turn: &mut Turn<'_>, id: DocId, phase: u8) {
        let Some(run) = self.agents.runs.get(&id) else { return };
        let (name, content) = title(run, phase);
        self.remark(turn, id, Some(phase), content);
        self.notify(turn, Notice::Phase { run: id, phase, name: name.to_owned() });
    }

    /// What the program itself has to say in a run: a step.
    pub(super) fn remark(&mut self, turn: &mut Turn<'_>, id: DocId, phase: Option<u8>, content: String) {
        let Some(run) = self.agents.runs.get_mut(&id) else { return };
        if let Some(phase) = phase {
            run.about.phase = phase;
        }
        let mut made = step(turn, run.last_step(), StepKind::Thinking { content, is_streaming: None });
        made.route = Some(phases::mark(run.about.phase));
        let batch = self.record(turn, id, Record { steps: vec![made], ..Record::default() });
        self.go_on_after(batch, id);
    }

    /// Makes calls of tools, as if a model had asked for them: they are judged by the same policy.
    fn call_tools(&mut self, turn: &mut Turn<'_>, id: DocId, wanted: Vec<(&str, Map<String, Value>)>) {
        let tools = self.lead_tools();
        let Some(run) = self.agents.runs.get_mut(&id) else { return };
        let wanted = wanted.into_iter().map(|(name, arguments)| ToolCall {
            id: String::new(),
            name: name.to_owned(),
            arguments,
        });
        let asked = calls::named(wanted.collect(), &mut run.used);
        let parents = run.last_step();
        let message = Message {
            parents: vec![run.about.head],
            run: Some(id),
            tool_calls: asked.clone(),
            ..Message::new(MessageId(turn.name()), Role::Assistant, String::new(), turn.now.0)
        };
        let mut record = Record { messages: vec![message], ..Record::default() };
        run.about.agent_state = AgentState::Executing;
        for call in asked {
            let kind = StepKind::ToolCall {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                params: call.arguments.clone(),
            };
            let mut made = step(turn, parents.clone(), kind);
            made.route = Some(phases::mark(run.about.phase));
            let changes = tools.iter().find(|tool| tool.name == call.name).is_some_and(|tool| tool.risk > Risk::None);
            run.calls.push(Pending { call, step: made.id, phase: CallPhase::Ready, changes, facts: Facts::default() });
            record.steps.push(made);
        }
        self.record(turn, id, record);
        let mut record = Record::default();
        self.judge_calls(turn, id, &tools, &mut record);
        let batch = self.record(turn, id, record);
        self.go_on_after(batch, id);
    }

    /// No model can be asked: rules make the plan, or the assistant does what nobody else is known to fit.
    pub(super) fn lead_alone(&mut self, turn: &mut Turn<'_>, id: DocId, wants: Option<Wants>, why: &str) {
        let Some(run) = self.agents.runs.get_mut(&id) else { return };
        let words = if wants == Some(Wants::Who) {
            format!("No model says who does what ({why}), so the assistant does what fits nobody.")
        } else {
            run.lead.tries = u8::MAX;
            format!("No model makes the plan ({why}), so it is made by rules.")
        };
        self.remark(turn, id, None, words);
    }

    // ---- 1: the plan ----

    fn plan_phase(&mut self, turn: &mut Turn<'_>, id: DocId) -> Gone {
        let Some(run) = self.agents.runs.get_mut(&id) else { return Gone::Waits };
        if planned(run).is_some() {
            return Gone::On;
        }
        let given_before = run.lead.given;
        run.lead.given |= run.lead.plan.is_some();
        let refused = made(run, PLAN).filter(|(_, result)| result.is_some_and(|(good, _)| !good)).count();
        let mut given = run.lead.plan.take();
        let goal = goal(run);
        let (tasks, listed) = planner::by_rules(&goal);
        if given_before && refused > 0 {
            given = Some(Vec::new()); // what was to be carried out cannot be: another plan is not what was meant
        } else if given.is_none() && (listed || run.lead.tries >= TRIES) {
            given = Some(tasks);
        }
        let Some(mut tasks) = given else {
            run.lead.tries = run.lead.tries.saturating_add(1);
            run.lead.wants = Some(Wants::Plan);
            self.call_model(turn, id);
            return Gone::Waits;
        };
        if refused > usize::from(TRIES) || tasks.is_empty() {
            let why = made(run, PLAN).last().and_then(|(_, result)| result).map_or("it says nothing", |(_, why)| why);
            let words = format!("There is no plan that can be carried out: {why}.");
            self.fail_run(turn, id, words, Ending::Failed);
            return Gone::Waits;
        }
        let crew = run.crew.clone();
        for task in tasks.iter_mut().filter(|task| task.agent.is_none()) {
            task.agent = self.fitting_agent(&crew, &task.goal).map(|(name, _)| name);
        }
        self.call_tools(turn, id, vec![(PLAN, object(json!({"tasks": tasks})))]);
        Gone::Waits
    }

    /// The agent to which a task goes by rules, and why.
    fn fitting_agent(&self, crew: &crew::Crew, goal: &str) -> Option<(String, String)> {
        let all = self.known_agents(crew);
        crew::fitting(goal, all.iter().filter(|agent| course(&agent.name).is_empty()))
    }

    /// A plan is checked and taken.
    pub(super) fn take_plan(&mut self, turn: &mut Turn<'_>, id: DocId, arguments: &Map<String, Value>) -> Outcome {
        let names: BTreeSet<String> = self.tools().into_iter().map(|tool| tool.name).collect();
        let plan = match planner::read(arguments, &names) {
            Ok(plan) => plan,
            Err(why) => return super::deeds::failed(why),
        };
        let Some(run) = self.agents.runs.get(&id) else { return super::deeds::failed("the run was closed") };
        for task in &plan.tasks {
            let Some(name) = &task.agent else { continue };
            let made = plan.agents.iter().any(|agent| agent.name == *name);
            if !course(name).is_empty() || !made && !self.knows_agent(&run.crew, name) {
                return super::deeds::failed(format!(
                    "the task {} is for the agent {name}, which is not there",
                    task.id
                ));
            }
        }
        let todo = |task: &TaskBlock| TodoItem {
            id: task.id.clone(),
            content: task.goal.clone(),
            status: TodoStatus::Pending,
            priority: (task.priority / 20).min(5),
            due: None,
            repeat: None,
        };
        let todos: Vec<TodoItem> = plan.tasks.iter().map(todo).collect();
        let mut made = step(turn, run.last_step(), StepKind::Todo { todos: todos.clone() });
        made.route = Some(phases::mark(run.about.phase));
        self.record(turn, id, Record { steps: vec![made], todos: Some(todos), ..Record::default() });
        super::deeds::done(format!("The plan has {} tasks.", plan.tasks.len()))
    }

    // ---- 2 and 3: the project and its agents ----

    fn tree_phase(&mut self, turn: &mut Turn<'_>, id: DocId) -> Gone {
        let Some(run) = self.agents.runs.get(&id) else { return Gone::Waits };
        let Some(plan) = planned(run) else { return Gone::On };
        let text_of = block::plan(&goal(run), &plan.tasks);
        let mut wanted: Vec<(String, String)> = Vec::new();
        match run.home() {
            Some(home) => {
                wanted.extend(TREE.iter().map(|folder| (format!("{home}/{folder}/.gitkeep"), String::new())));
                wanted.push((format!("{home}/{}/plan.md", block::TASKS), text_of));
            }
            None => wanted.push((format!("{}/{}.md", block::TASKS, planner::slug(&goal(run))), text_of)),
        }
        let volume = run.about.volume;
        wanted.retain(|(path, _)| {
            self.file_of(volume, path).is_none()
                && made(run, "write_file").all(|(known, _)| text(known, "path") != path)
        });
        if wanted.is_empty() {
            return Gone::On;
        }
        let calls =
            wanted.into_iter().map(|(path, content)| ("write_file", object(json!({"path": path, "content": content}))));
        self.call_tools(turn, id, calls.collect());
        Gone::Waits
    }

    fn agents_phase(&mut self, turn: &mut Turn<'_>, id: DocId) -> Gone {
        let Some(run) = self.agents.runs.get(&id) else { return Gone::Waits };
        let (Some(plan), Some(home)) = (planned(run), run.home()) else { return Gone::On };
        let place = |name: &str| format!("{home}/{}/{name}.md", crew::DEFINITIONS);
        let done: BTreeMap<&str, bool> = made(run, "write_file")
            .map(|(known, result)| (text(known, "path"), result.is_some_and(|(good, _)| good)))
            .collect();
        let mut calls = Vec::new();
        let mut new = Vec::new();
        for agent in plan.agents.iter().filter(|agent| !self.knows_agent(&run.crew, &agent.name)) {
            let path = place(&agent.name);
            let front = serde_saphyr::to_string(&json!({"name": agent.name, "description": agent.description}));
            let content = format!("---\n{}---\n{}\n", front.unwrap_or_default(), agent.prompt);
            match done.get(path.as_str()) {
                None => calls.push(("write_file", object(json!({"path": path, "content": content})))),
                Some(true) => new.push((path, content)),
                Some(false) => {}
            }
        }
        if !calls.is_empty() {
            self.call_tools(turn, id, calls);
            return Gone::Waits;
        }
        let names: Vec<String> = new.iter().map(|(path, _)| path.clone()).collect();
        if let Some(run) = self.agents.runs.get_mut(&id) {
            let mut crew = (*run.crew).clone();
            crew.definitions.extend(crew::Crew::read(new).definitions);
            run.crew = std::sync::Arc::new(crew);
        }
        let words = match names.as_slice() {
            [] => "No agent had to be made.".to_owned(),
            names => format!("Made {}.", names.join(", ")),
        };
        self.remark(turn, id, None, words);
        Gone::On
    }

    // ---- 4: the work ----

    fn work_phase(&mut self, turn: &mut Turn<'_>, id: DocId) -> Gone {
        if self.ask_who(turn, id) || self.begin_tasks(turn, id) { Gone::Waits } else { Gone::On }
    }

    /// The tasks of a plan that are to be done and of which neither the plan nor a rule says who does them.
    fn unassigned(&self, run: &Run, plan: &Plan) -> Vec<TaskBlock> {
        let open = |task: &&TaskBlock| !matches!(standing(run, task), Standing::Done | Standing::Cancelled);
        let nobody = |task: &&TaskBlock| task.agent.is_none() && self.fitting_agent(&run.crew, &task.goal).is_none();
        plan.tasks.iter().filter(open).filter(nobody).cloned().collect()
    }

    /// Rules do not say who does some tasks: a model is asked, once. Gives whether it is.
    fn ask_who(&mut self, turn: &mut Turn<'_>, id: DocId) -> bool {
        let Some(run) = self.agents.runs.get(&id) else { return false };
        let Some(plan) = planned(run).filter(|_| !run.lead.who) else { return false };
        // A model that has made the plan knew who is there.
        let asks = made_by_rules(run) && made(run, ASSIGN).next().is_none();
        let open: Vec<TaskBlock> = if asks { self.unassigned(run, &plan) } else { Vec::new() };
        let open: Vec<&str> = open.iter().map(|task| task.id.as_str()).collect();
        let Some(run) = self.agents.runs.get_mut(&id) else { return false };
        run.lead.who = true;
        if !open.is_empty() {
            run.lead.wants = Some(Wants::Who);
            let words = format!("Rules know nobody for {}: a model is asked who does it.", open.join(", "));
            self.remark(turn, id, None, words);
        }
        !open.is_empty()
    }

    /// What a model is asked that says who does which tasks.
    pub(super) fn who(&self, run: &Run) -> String {
        let tasks = planned(run).map(|plan| self.unassigned(run, &plan)).unwrap_or_default();
        planner::who(tasks.iter(), &self.others(run, true))
    }

    /// Whether an agent may get a task: it is there, and does not lead.
    fn may_get(&self, run: &Run, agent: &str) -> bool {
        course(agent).is_empty() && self.knows_agent(&run.crew, agent)
    }

    /// A model has said who does which tasks: what holds of it is taken.
    pub(super) fn take_assigned(&self, id: DocId, arguments: &Map<String, Value>) -> Outcome {
        let Some(run) = self.agents.runs.get(&id) else { return super::deeds::failed("the run was closed") };
        let tasks = planned(run).map(|plan| self.unassigned(run, &plan)).unwrap_or_default();
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for (task, agent) in planner::assigned(arguments) {
            if tasks.iter().all(|known| known.id != task) {
                bad.push(format!("{task} is no task that waits for an agent"));
            } else if self.may_get(run, agent) {
                good.push(format!("{task}: {agent}"));
            } else {
                bad.push(format!("the task {task} is for the agent {agent}, which is not there"));
            }
        }
        match (good.is_empty(), bad.is_empty()) {
            (true, _) => super::deeds::failed(format!("{}; the assistant does it", bad.join("; "))),
            (false, true) => super::deeds::done(good.join("\n")),
            (false, false) => super::deeds::done(format!("{}\nLeft out: {}.", good.join("\n"), bad.join("; "))),
        }
    }

    /// Who does a task: as the plan says, else as the rules say, else as the model said, else the assistant.
    fn doer(&self, run: &Run, task: &TaskBlock) -> String {
        let said = || {
            let calls = made(run, ASSIGN).filter(|(_, result)| result.is_some_and(|(good, _)| good));
            let mut pairs = calls.flat_map(|(arguments, _)| planner::assigned(arguments));
            let agent = pairs.find(|(id, agent)| *id == task.id && self.may_get(run, agent));
            agent.map(|(_, agent)| agent.to_owned())
        };
        let ruled = || self.fitting_agent(&run.crew, &task.goal).map(|(name, _)| name);
        task.agent.clone().or_else(ruled).or_else(said).unwrap_or_else(|| "assistant".to_owned())
    }

    /// While other tasks of a run are under way, those begin that need none of them: each as soon as what it needs is
    /// done. Gives whether any did.
    pub(super) fn begin_free_tasks(&mut self, turn: &mut Turn<'_>, id: DocId) -> bool {
        let Some(run) = self.agents.runs.get(&id) else { return false };
        let working = leads(run) && run.about.phase == WORK && run.about.ending.is_none();
        let task = |pending: &Pending| pending.call.name == DELEGATE && pending.phase != CallPhase::Done;
        let open = run.calls.iter().any(task);
        working && open && self.begin_tasks(turn, id)
    }

    /// Begins the tasks whose needs are done, as many as there is room for beside what is under way. Gives whether any
    /// began.
    fn begin_tasks(&mut self, turn: &mut Turn<'_>, id: DocId) -> bool {
        let parallel = self.agents.setup().map_or(4, |setup| setup.config.runtime.profile.parallel_tools());
        let Some(run) = self.agents.runs.get(&id).filter(|run| run.lead.halted.is_none()) else { return false };
        let open = |pending: &&Pending| pending.phase != CallPhase::Done;
        let under: Vec<&str> =
            run.calls.iter().filter(open).map(|pending| text(&pending.call.arguments, "task")).collect();
        let busy = under.len();
        let Some(plan) = planned(run).filter(|_| busy < parallel) else { return false };
        let names: BTreeSet<String> = plan.tasks.iter().flat_map(|task| task.tools_required.clone()).collect();
        let stand: BTreeMap<&str, Standing> =
            plan.tasks.iter().map(|task| (task.id.as_str(), standing(run, task))).collect();
        let over = |id: &str| matches!(stand.get(id), Some(Standing::Done));
        let mut begun = Vec::new();
        for at in block::order(&plan.tasks, &names).unwrap_or_default() {
            let task = &plan.tasks[at];
            let open = !over(&task.id) && stand.get(task.id.as_str()) != Some(&Standing::Cancelled);
            let free = !run.lead.tried.contains(&task.id) && !under.contains(&task.id.as_str());
            if open && free && task.needs.iter().all(|need| over(need)) {
                begun.push((task.clone(), self.doer(run, task)));
            }
        }
        begun.truncate(parallel - busy);
        if begun.is_empty() {
            return false;
        }
        let mut calls = Vec::new();
        for (task, agent) in begun {
            let mut arguments = object(json!({
                "agent": agent,
                "goal": task.prompt(),
                "task": task.id,
                "mode": task.mode,
            }));
            if let Some(budget) = task.budget() {
                arguments.insert("budget".to_owned(), json!(budget));
            }
            if let Some(run) = self.agents.runs.get_mut(&id) {
                run.lead.tried.insert(task.id.clone());
            }
            self.task_stands(turn, id, &task.id, Standing::Running);
            calls.push((DELEGATE, arguments));
        }
        self.call_tools(turn, id, calls);
        true
    }

    /// Begins a run that carries out a plan.
    pub(in crate::session) fn run_tasks(
        &mut self,
        turn: &mut Turn<'_>,
        (run, session, note): (DocId, DocId, DocId),
        mut tasks: Vec<TaskBlock>,
        only: Option<&str>,
        (budget, allow): (Option<f64>, Vec<String>),
    ) -> Result<(), Reject> {
        let place = self.place(note).map(|(volume, path)| (volume, path.to_owned()));
        let (volume, path) = place.ok_or_else(|| Reject(format!("there is no note {note}")))?;
        let names: BTreeSet<String> = tasks.iter().flat_map(|task| task.tools_required.clone()).collect();
        block::order(&tasks, &names).map_err(Reject)?;
        let stand: BTreeMap<String, Standing> = tasks.iter().map(|task| (task.id.clone(), task.standing)).collect();
        let left = |task: &TaskBlock| !matches!(task.standing, Standing::Done | Standing::Cancelled);
        tasks.retain(|task| left(task) && only.is_none_or(|only| task.id == only));
        if tasks.is_empty() {
            return Err(Reject("nothing is left to do in this plan".to_owned()));
        }
        for task in &mut tasks {
            if let Some(need) = task.needs.iter().find(|need| stand.get(*need) == Some(&Standing::Cancelled)) {
                return Err(Reject(format!("the task {} needs {need}, which was given up", task.id)));
            }
            task.needs.retain(|need| stand.get(need) != Some(&Standing::Done));
            if let Some(need) = task.needs.first().filter(|_| only.is_some()) {
                return Err(Reject(format!("the task {} needs {need}, which is not done", task.id)));
            }
            task.standing = Standing::Open;
        }
        let text = format!("Carry out the plan in {path}.");
        let question = Asking {
            run,
            session,
            volume,
            note: Some(note),
            parent: None,
            text,
            agent: Some(LEAD.to_owned()),
            budget,
            allow: Policy::asked(&allow, run),
            button: None,
            recall: Recall::default(),
            origin: Origin::User,
            plan: Some(tasks),
            project: None,
        };
        self.ask(turn, question)
    }

    /// Gives a task up: in its note, and in runs that work on it.
    pub(in crate::session) fn cancel_task(
        &mut self,
        turn: &mut Turn<'_>,
        note: DocId,
        task: String,
    ) -> Result<(), Reject> {
        self.mark_task(turn, note, task.clone(), Standing::Cancelled)?;
        let works = |run: &&Run| run.about.ending.is_none() && self.plan_note(run) == Some(note);
        let runs: Vec<DocId> = self.agents.runs.values().filter(works).map(|run| run.id).collect();
        for id in runs {
            self.task_stands(turn, id, &task, Standing::Cancelled);
            let Some(run) = self.agents.runs.get(&id) else { continue };
            // It may have been begun before: the call that is open is meant.
            let own =
                |pending: &&Pending| pending.phase != CallPhase::Done && text(&pending.call.arguments, "task") == task;
            let Some(call) = run.calls.iter().find(own).map(|pending| pending.call.id.clone()) else { continue };
            let child = self.agents.children.iter().find(|(_, asked)| **asked == (id, call.clone()));
            if let Some(child) = child.map(|(child, _)| *child) {
                let _ = self.cancel_run(turn, child); // it refuses only where it is over
            }
        }
        Ok(())
    }

    /// Takes a task up again that was given up: in its note, and in runs that work on its plan, which begin it anew.
    pub(in crate::session) fn reopen_task(
        &mut self,
        turn: &mut Turn<'_>,
        note: DocId,
        task: String,
        failed: bool,
    ) -> Result<(), Reject> {
        let standing = if failed { Standing::Failed } else { Standing::Open };
        self.mark_task(turn, note, task.clone(), standing)?;
        let given_up = |todo: &TodoItem| todo.id == task && todo.status == TodoStatus::Cancelled;
        let works = |run: &&Run| run.about.ending.is_none() && self.plan_note(run) == Some(note);
        let runs = self.agents.runs.values().filter(works).filter(|run| run.todos.iter().any(given_up));
        let runs: Vec<DocId> = runs.map(|run| run.id).collect();
        for id in runs {
            if let Some(run) = self.agents.runs.get_mut(&id) {
                run.lead.tried.remove(&task);
            }
            self.task_stands(turn, id, &task, standing);
            self.begin_free_tasks(turn, id);
        }
        Ok(())
    }
}
