//! Orchestrating runs: their agent works in phases that the program controls, so that each phase is a fact of the run
//! and not part of a prompt. A plan is made (by rules if the goal lists its tasks, otherwise by a model that calls a
//! tool), each task goes to the agent that fits it, independent tasks run in parallel, and results are logged. The
//! state is derived from the run's steps, so that the run can continue after a stop.

use super::phases;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::runs::orchestrated_run::{
    LEAD_AGENT, PHASE_NAMES, WORK_PHASE, agent_phases, argument_text, calls_of_tool, current_plan,
    goal_without_mention, into_object, is_orchestrated, is_planned_by_rules, phase_title, task_status,
};
use crate::session::state::FilesState;
use crate::session::state::agent_run::{AgentRun, CallPhase, OrchestratorQuery, PendingCall, new_step};
use crate::session::state::runs::{RunRecord, RunRequest, RunsState};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use agent::memory::{MEMORY_FOLDER, RecallOptions};
use agent::notice::Notice;
use agent::planner::{self, TaskPlan};
use agent::policy::ToolPolicy;
use agent::run_records::RunSummary;
use agent::sent_task::{sent_task_prompt, task_call_arguments};
use agent::task_block::{self, TaskBlock, TaskStatus};
use agent::tool_catalog::BuiltInTool;
use agent::tool_job::ToolOutcome;
use agent::tool_spec::ToolSpec;
use agent::{agent_registry, tool_call_parser};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use store::{
    AgentState, DocId, ExecutionStep, MessageId, MessageRole, RunEnding, RunOrigin, SessionMessage, StepKind, TodoItem,
    TodoStatus, ToolCall,
};

/// Maximum number of requests to a model for a plan before rules make it.
const MAX_PLAN_ATTEMPTS: u8 = 2;

/// Maximum number of earlier runs of a plan whose results go along with tasks that are sent.
const MAX_EARLIER_RUNS: usize = 5;

/// Minimum budget in US dollars for which a task is sent beside others.
const MIN_SENT_TASK_DOLLARS: f64 = 0.000_001;

/// The folders of a project.
const PROJECT_FOLDERS: [&str; 6] = [
    "components/agents",
    "output/code",
    "output/data",
    "output/visualizations",
    "memory/short_term",
    "memory/long_term",
];

/// Outcome of a phase.
pub(super) enum PhaseOutcome {
    /// The phase has ended.
    Finished,
    /// The phase waits for work that it started.
    Waiting,
}

impl VolumesState {
    /// Returns the note that holds the plan of a run.
    pub(in crate::session) fn plan_note(&self, run: &AgentRun) -> Option<DocId> {
        match run.about.agent.as_str() {
            LEAD_AGENT => run.about.note,
            _ => self.find_file(
                run.about.volume,
                &format!("{}/{}/plan.md", run.project_folder()?, task_block::TASKS_FOLDER),
            ),
        }
    }
}

impl RunsState {
    /// Returns the tools of an orchestrating run.
    pub(super) fn orchestrator_tools(&self) -> Vec<ToolSpec> {
        let mut tools = self.all_tools();
        tools.extend([planner::plan_tool(), planner::assign_tool()]);
        tools
    }

    /// Returns the tools that an orchestrating run offers to a model.
    pub(super) fn tools_for_query(wants: Option<OrchestratorQuery>) -> Vec<ToolSpec> {
        match wants {
            Some(OrchestratorQuery::Assignments) => vec![planner::assign_tool()],
            Some(OrchestratorQuery::Plan) | None => vec![planner::plan_tool()],
        }
    }

    /// Does the next work of an orchestrating run.
    pub(super) fn step_orchestration(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) {
        if self.stop_before_next_task(turn, files, sync, workspace, id) {
            return;
        }
        let Some(run) = self.runs.get(&id) else { return };
        let gone = match run.about.phase {
            0 => PhaseOutcome::Finished,
            1 => self.plan_phase(turn, files, sync, workspace, id),
            2 => self.tree_phase(turn, files, sync, workspace, id),
            3 => self.agents_phase(turn, files, sync, workspace, id),
            4 => self.work_phase(turn, files, sync, workspace, id),
            5 => self.log_phase(turn, files, sync, id),
            6 => self.output_phase(turn, &files.volumes, sync, id),
            7 => PhaseOutcome::Finished,
            _ => self.memory_phase(turn, files, sync, id),
        };
        if matches!(gone, PhaseOutcome::Waiting) || self.stop_before_next_task(turn, files, sync, workspace, id) {
            return;
        }
        let Some(run) = self.runs.get(&id) else { return };
        match agent_phases(&run.about.agent).iter().find(|phase| **phase > run.about.phase) {
            Some(phase) => self.enter_phase(turn, sync, id, *phase),
            None => self.end_orchestrated_run(turn, files, sync, workspace, id),
        }
    }

    /// Ends a run whose budget or plan doesn't allow its next task. Returns whether it did.
    fn stop_before_next_task(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) -> bool {
        let run = self.runs.get_mut(&id);
        let Some((why, ending)) = run.and_then(|run| run.orchestrator.stop_reason.take()) else { return false };
        let words = format!("{why} What was done is kept; the tasks that are left wait.");
        self.fail_run(turn, files, sync, workspace, id, (words, ending));
        true
    }

    /// Returns runs that carried out the same plan before and are over, newest first.
    fn earlier_runs_of_plan(&self, run: &AgentRun) -> Vec<DocId> {
        let about = &run.about;
        let is_same = |line: &RunSummary| {
            (line.agent.as_str(), line.volume, &line.prompt) == (LEAD_AGENT, about.volume, &about.prompt)
        };
        let over = self.run_summaries.iter().filter(|(id, line)| **id != run.id && line.ending.is_some());
        let same = over.filter(|(_, line)| is_same(line));
        let mut same: Vec<(i64, DocId)> = same.map(|(id, line)| (line.start_time, *id)).collect();
        same.sort_unstable();
        same.into_iter().rev().take(MAX_EARLIER_RUNS).map(|(_, id)| id).collect()
    }

    /// Reads earlier runs of a plan whose tasks are sent: the results of those runs go along. Returns whether the run
    /// waits for that.
    fn read_earlier_runs(&mut self, turn: &mut ApplyContext<'_>, id: DocId) -> bool {
        let Some(run) = self.runs.get(&id).filter(|run| run.about.agent == LEAD_AGENT) else { return false };
        let is_sent = |plan: TaskPlan| plan.tasks.iter().any(|task| task.device.is_some());
        if !current_plan(run).is_some_and(is_sent) {
            return false;
        }
        let is_unread = |id: &DocId| !self.runs.contains_key(id) && !self.read_errors.contains_key(id);
        let mut unread = self.earlier_runs_of_plan(run);
        unread.retain(is_unread);
        for earlier in &unread {
            // It's in the list of runs, so it can be opened.
            let _ = self.open_run(turn, *earlier);
        }
        if !unread.is_empty() {
            self.stalled_runs.insert(id);
        }
        !unread.is_empty()
    }

    /// Returns the prompt of a task that is sent, with results of this run and of earlier runs of its plan.
    fn sent_prompt(&self, run: &AgentRun, task: &TaskBlock) -> String {
        let earlier = self.earlier_runs_of_plan(run);
        let earlier = earlier.iter().filter_map(|id| self.runs.get(id));
        let steps: Vec<&[ExecutionStep]> = [run].into_iter().chain(earlier).map(|run| run.steps.as_slice()).collect();
        sent_task_prompt(&steps, task)
    }

    /// Starts the first phase of an orchestrating run, before memory is consulted.
    pub(super) fn begin_orchestration(&mut self, turn: &mut ApplyContext<'_>, id: DocId, record: &mut RunRecord) {
        let Some(run) = self.runs.get_mut(&id).filter(|run| is_orchestrated(run) && run.about.phase == 0) else {
            return;
        };
        run.about.phase = 1;
        let (_, content) = phase_title(run, 1);
        let mut made = new_step(turn, run.last_step(), StepKind::Thinking { content, is_streaming: None });
        made.route = Some(phases::phase_mark(1));
        record.steps.push(made);
        turn.notify(Notice::Phase { run: id, phase: 1, name: PHASE_NAMES[0].to_owned() });
    }

    /// Starts a phase and records it as a step.
    fn enter_phase(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState, id: DocId, phase: u8) {
        let Some(run) = self.runs.get(&id) else { return };
        let (name, content) = phase_title(run, phase);
        self.add_program_step(turn, sync, id, Some(phase), content);
        turn.notify(Notice::Phase { run: id, phase, name: name.to_owned() });
    }

    /// Adds a step with a message from the program itself to a run.
    pub(super) fn add_program_step(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        phase: Option<u8>,
        content: String,
    ) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        if let Some(phase) = phase {
            run.about.phase = phase;
        }
        let mut made = new_step(turn, run.last_step(), StepKind::Thinking { content, is_streaming: None });
        made.route = Some(phases::phase_mark(run.about.phase));
        let batch = self.record_run(turn, sync, id, RunRecord { steps: vec![made], ..RunRecord::default() });
        self.continue_run_after(batch, id);
    }

    /// Makes tool calls as if a model had asked for them; the same policy checks them.
    fn call_tools(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        wanted: Vec<(BuiltInTool, Map<String, Value>)>,
    ) {
        let tools = self.orchestrator_tools();
        let Some(run) = self.runs.get_mut(&id) else { return };
        let wanted = wanted.into_iter().map(|(tool, arguments)| ToolCall {
            id: String::new(),
            name: tool.to_string(),
            arguments,
        });
        let asked = tool_call_parser::assign_call_ids(wanted.collect(), &mut run.used_call_ids);
        let parents = run.last_step();
        let message = SessionMessage {
            parents: vec![run.about.head],
            run: Some(id),
            tool_calls: asked.clone(),
            ..SessionMessage::new(MessageId(turn.next_id()), MessageRole::Assistant, String::new(), turn.now.0)
        };
        let mut record = RunRecord { messages: vec![message], ..RunRecord::default() };
        run.about.agent_state = AgentState::Executing;
        let route = phases::phase_mark(run.about.phase);
        let steps = run.open_tool_calls(turn, asked, &parents, &tools);
        record.steps.extend(steps.into_iter().map(|step| ExecutionStep { route: Some(route.clone()), ..step }));
        self.record_run(turn, sync, id, record);
        let mut record = RunRecord::default();
        self.check_new_calls(turn, files, sync, workspace, id, (&tools, &mut record));
        let batch = self.record_run(turn, sync, id, record);
        self.continue_run_after(batch, id);
    }

    /// Continues an orchestrating run without a model: rules make the plan, and the assistant does tasks that fit no
    /// agent.
    pub(super) fn orchestrate_without_model(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        wants: Option<OrchestratorQuery>,
        why: &str,
    ) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let words = if wants == Some(OrchestratorQuery::Assignments) {
            format!("No model says who does what ({why}), so the assistant does what fits nobody.")
        } else {
            run.orchestrator.plan_attempts = u8::MAX;
            format!("No model makes the plan ({why}), so it is made by rules.")
        };
        self.add_program_step(turn, sync, id, None, words);
    }

    // ---- Phase 1: plan ----

    fn plan_phase(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) -> PhaseOutcome {
        let Some(run) = self.runs.get_mut(&id) else { return PhaseOutcome::Waiting };
        if current_plan(run).is_some() {
            return PhaseOutcome::Finished;
        }
        let given_before = run.orchestrator.was_given;
        run.orchestrator.was_given |= run.orchestrator.plan.is_some();
        let refused =
            calls_of_tool(run, BuiltInTool::Plan).filter(|(_, result)| result.is_some_and(|(good, _)| !good)).count();
        let mut given = run.orchestrator.plan.take();
        let goal = goal_without_mention(run);
        let crew = run.project_agents.clone();
        let (tasks, listed) = planner::plan_without_model(&goal, &self.known_agents(&crew));
        let Some(run) = self.runs.get_mut(&id) else { return PhaseOutcome::Waiting };
        if given_before && refused > 0 {
            given = Some(Vec::new()); // what was to be carried out cannot be: another plan is not what was meant
        } else if given.is_none() && (listed || run.orchestrator.plan_attempts >= MAX_PLAN_ATTEMPTS) {
            given = Some(tasks);
        }
        let Some(mut tasks) = given else {
            run.orchestrator.plan_attempts = run.orchestrator.plan_attempts.saturating_add(1);
            run.orchestrator.next_query = Some(OrchestratorQuery::Plan);
            self.call_model(turn, files, sync, workspace, id);
            return PhaseOutcome::Waiting;
        };
        if refused > usize::from(MAX_PLAN_ATTEMPTS) || tasks.is_empty() {
            let why = calls_of_tool(run, BuiltInTool::Plan)
                .last()
                .and_then(|(_, result)| result)
                .map_or("it says nothing", |(_, why)| why);
            let words = format!("There is no plan that can be carried out: {why}.");
            self.fail_run(turn, files, sync, workspace, id, (words, RunEnding::Failed));
            return PhaseOutcome::Waiting;
        }
        for task in tasks.iter_mut().filter(|task| task.agent.is_none()) {
            task.agent = self.fitting_agent(&crew, &task.routing_text()).map(|(name, _)| name);
        }
        self.call_tools(
            turn,
            files,
            sync,
            workspace,
            id,
            vec![(BuiltInTool::Plan, into_object(json!({"tasks": tasks})))],
        );
        PhaseOutcome::Waiting
    }

    /// Returns the agent that rules assign to a task, and why.
    fn fitting_agent(&self, crew: &agent_registry::AgentRegistry, goal: &str) -> Option<(String, String)> {
        let all = self.known_agents(crew);
        agent_registry::best_matching_agent(goal, all.iter().filter(|agent| agent_phases(&agent.name).is_empty()))
    }

    /// Checks a plan and accepts it if it's valid.
    pub(super) fn accept_plan(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        arguments: &Map<String, Value>,
    ) -> ToolOutcome {
        let names: BTreeSet<String> = self.available_tools().into_iter().map(|tool| tool.name).collect();
        let budget = self.runs.get(&id).and_then(|run| run.about.budget);
        let plan = match planner::parse_plan(arguments, &names, budget) {
            Ok(plan) => plan,
            Err(why) => return agent::tool_outcomes::failed_outcome(why.to_string()),
        };
        let Some(run) = self.runs.get(&id) else {
            return agent::tool_outcomes::failed_outcome("the run was closed");
        };
        for task in &plan.tasks {
            let Some(name) = &task.agent else { continue };
            let made = plan.agents.iter().any(|agent| agent.name == *name);
            if !agent_phases(name).is_empty() || !made && !self.knows_agent(&run.project_agents, name) {
                return agent::tool_outcomes::failed_outcome(format!(
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
        let mut made = new_step(turn, run.last_step(), StepKind::Todo { todos: todos.clone() });
        made.route = Some(phases::phase_mark(run.about.phase));
        self.record_run(turn, sync, id, RunRecord { steps: vec![made], todos: Some(todos), ..RunRecord::default() });
        agent::tool_outcomes::successful_outcome(format!("The plan has {} tasks.", plan.tasks.len()))
    }

    // ---- Phases 2 and 3: project and agents ----

    fn tree_phase(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) -> PhaseOutcome {
        let Some(run) = self.runs.get(&id) else { return PhaseOutcome::Waiting };
        let Some(plan) = current_plan(run) else { return PhaseOutcome::Finished };
        let text_of = task_block::plan_to_markdown(&goal_without_mention(run), &plan.tasks);
        let mut wanted: Vec<(String, String)> = Vec::new();
        match run.project_folder() {
            Some(home) => {
                let in_folder = files.volumes.memory_home(run.about.volume) == run.about.volume;
                let folders = PROJECT_FOLDERS.iter().filter(|folder| in_folder || !folder.starts_with(MEMORY_FOLDER));
                wanted.extend(folders.map(|folder| (format!("{home}/{folder}/.gitkeep"), String::new())));
                wanted.push((format!("{home}/{}/plan.md", task_block::TASKS_FOLDER), text_of));
            }
            None => wanted.push((
                format!("{}/{}.md", task_block::TASKS_FOLDER, planner::slug(&goal_without_mention(run))),
                text_of,
            )),
        }
        let volume = run.about.volume;
        wanted.retain(|(path, _)| {
            files.volumes.find_file(volume, path).is_none()
                && calls_of_tool(run, BuiltInTool::WriteFile).all(|(known, _)| argument_text(known, "path") != path)
        });
        if wanted.is_empty() {
            return PhaseOutcome::Finished;
        }
        let calls = wanted
            .into_iter()
            .map(|(path, content)| (BuiltInTool::WriteFile, into_object(json!({"path": path, "content": content}))));
        self.call_tools(turn, files, sync, workspace, id, calls.collect());
        PhaseOutcome::Waiting
    }

    fn agents_phase(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) -> PhaseOutcome {
        let Some(run) = self.runs.get(&id) else { return PhaseOutcome::Waiting };
        let (Some(plan), Some(home)) = (current_plan(run), run.project_folder()) else { return PhaseOutcome::Finished };
        let place = |name: &str| format!("{home}/{}/{name}.md", agent_registry::AGENT_DEFINITIONS_FOLDER);
        let done: BTreeMap<&str, bool> = calls_of_tool(run, BuiltInTool::WriteFile)
            .map(|(known, result)| (argument_text(known, "path"), result.is_some_and(|(good, _)| good)))
            .collect();
        let mut calls = Vec::new();
        let mut new = Vec::new();
        for agent in plan.agents.iter().filter(|agent| !self.knows_agent(&run.project_agents, &agent.name)) {
            let path = place(&agent.name);
            let front = serde_saphyr::to_string(&json!({"name": agent.name, "description": agent.description}));
            let content = format!("---\n{}---\n{}\n", front.unwrap_or_default(), agent.prompt);
            match done.get(path.as_str()) {
                None => calls.push((BuiltInTool::WriteFile, into_object(json!({"path": path, "content": content})))),
                Some(true) => new.push((path, content)),
                Some(false) => {}
            }
        }
        if !calls.is_empty() {
            self.call_tools(turn, files, sync, workspace, id, calls);
            return PhaseOutcome::Waiting;
        }
        let names: Vec<String> = new.iter().map(|(path, _)| path.clone()).collect();
        if let Some(run) = self.runs.get_mut(&id) {
            let mut crew = (*run.project_agents).clone();
            crew.definitions.extend(agent_registry::AgentRegistry::read(new).definitions);
            run.project_agents = std::sync::Arc::new(crew);
        }
        let words = match names.as_slice() {
            [] => "No agent had to be made.".to_owned(),
            names => format!("Made {}.", names.join(", ")),
        };
        self.add_program_step(turn, sync, id, None, words);
        PhaseOutcome::Finished
    }

    // ---- Phase 4: work ----

    fn work_phase(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) -> PhaseOutcome {
        if self.read_earlier_runs(turn, id)
            || self.ask_for_assignments(turn, sync, id)
            || self.begin_tasks(turn, files, sync, workspace, id)
        {
            PhaseOutcome::Waiting
        } else {
            PhaseOutcome::Finished
        }
    }

    /// Returns open tasks of a plan to which neither the plan nor a rule assigns an agent.
    fn unassigned(&self, run: &AgentRun, plan: &TaskPlan) -> Vec<TaskBlock> {
        let open = |task: &&TaskBlock| !matches!(task_status(run, task), TaskStatus::Done | TaskStatus::Cancelled);
        let is_ruled = |task: &TaskBlock| self.fitting_agent(&run.project_agents, &task.routing_text()).is_some();
        let nobody = |task: &&TaskBlock| task.agent.is_none() && !is_ruled(task);
        plan.tasks.iter().filter(open).filter(nobody).cloned().collect()
    }

    /// Asks a model once to assign tasks that rules can't assign. Returns whether it's being asked.
    fn ask_for_assignments(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState, id: DocId) -> bool {
        let Some(run) = self.runs.get(&id) else { return false };
        let Some(plan) = current_plan(run).filter(|_| !run.orchestrator.was_assignment_asked) else { return false };
        // A model that made the plan knew the available agents.
        let asks = is_planned_by_rules(run) && calls_of_tool(run, BuiltInTool::Assign).next().is_none();
        let open: Vec<TaskBlock> = if asks { self.unassigned(run, &plan) } else { Vec::new() };
        let open: Vec<&str> = open.iter().map(|task| task.id.as_str()).collect();
        let Some(run) = self.runs.get_mut(&id) else { return false };
        run.orchestrator.was_assignment_asked = true;
        if !open.is_empty() {
            run.orchestrator.next_query = Some(OrchestratorQuery::Assignments);
            let words = format!("Rules know nobody for {}: a model is asked who does it.", open.join(", "));
            self.add_program_step(turn, sync, id, None, words);
        }
        !open.is_empty()
    }

    /// Returns the prompt that asks a model to assign tasks.
    pub(super) fn assignment_prompt(&self, run: &AgentRun) -> String {
        let tasks = current_plan(run).map(|plan| self.unassigned(run, &plan)).unwrap_or_default();
        planner::assignment_prompt(tasks.iter(), &self.describe_other_agents(run, true))
    }

    /// Returns whether an agent can be assigned a task: it exists and doesn't orchestrate.
    fn can_be_assigned(&self, run: &AgentRun, agent: &str) -> bool {
        agent_phases(agent).is_empty() && self.knows_agent(&run.project_agents, agent)
    }

    /// Checks a model's assignments and accepts the valid ones.
    pub(super) fn accept_assignments(&self, id: DocId, arguments: &Map<String, Value>) -> ToolOutcome {
        let Some(run) = self.runs.get(&id) else {
            return agent::tool_outcomes::failed_outcome("the run was closed");
        };
        let tasks = current_plan(run).map(|plan| self.unassigned(run, &plan)).unwrap_or_default();
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for (task, agent) in planner::parse_assignments(arguments) {
            if tasks.iter().all(|known| known.id != task) {
                bad.push(format!("{task} is no task that waits for an agent"));
            } else if self.can_be_assigned(run, agent) {
                good.push(format!("{task}: {agent}"));
            } else {
                bad.push(format!("the task {task} is for the agent {agent}, which is not there"));
            }
        }
        match (good.is_empty(), bad.is_empty()) {
            (true, _) => agent::tool_outcomes::failed_outcome(format!("{}; the assistant does it", bad.join("; "))),
            (false, true) => agent::tool_outcomes::successful_outcome(good.join("\n")),
            (false, false) => {
                agent::tool_outcomes::successful_outcome(format!("{}\nLeft out: {}.", good.join("\n"), bad.join("; ")))
            }
        }
    }

    /// Returns the agent for a task: from the plan, or else by rules, or else from the model, or else the assistant.
    fn assigned_agent(&self, run: &AgentRun, task: &TaskBlock) -> String {
        let said = || {
            let calls =
                calls_of_tool(run, BuiltInTool::Assign).filter(|(_, result)| result.is_some_and(|(good, _)| good));
            let mut pairs = calls.flat_map(|(arguments, _)| planner::parse_assignments(arguments));
            let agent = pairs.find(|(id, agent)| *id == task.id && self.can_be_assigned(run, agent));
            agent.map(|(_, agent)| agent.to_owned())
        };
        let ruled = || self.fitting_agent(&run.project_agents, &task.routing_text()).map(|(name, _)| name);
        task.agent.clone().or_else(ruled).or_else(said).unwrap_or_else(|| "assistant".to_owned())
    }

    /// While tasks of a run are running, starts others that don't depend on them, as soon as their dependencies are
    /// done. Returns whether any started.
    pub(super) fn begin_free_tasks(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) -> bool {
        let Some(run) = self.runs.get(&id) else { return false };
        let working = is_orchestrated(run) && run.about.phase == WORK_PHASE && run.about.ending.is_none();
        let task = |pending: &PendingCall| {
            BuiltInTool::AskAgent.is_named(&pending.call.name) && pending.phase != CallPhase::Done
        };
        let open = run.calls.iter().any(task);
        working && open && self.begin_tasks(turn, files, sync, workspace, id)
    }

    /// Starts tasks whose dependencies are done, up to the limit of parallel tasks. Returns whether any started.
    fn begin_tasks(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) -> bool {
        let parallel = self.setup().map_or(4, |setup| setup.config.runtime.profile.max_parallel_tools());
        let Some(run) = self.runs.get(&id).filter(|run| run.orchestrator.stop_reason.is_none()) else {
            return false;
        };
        let open = |pending: &&PendingCall| pending.phase != CallPhase::Done;
        let under: Vec<&str> =
            run.calls.iter().filter(open).map(|pending| argument_text(&pending.call.arguments, "task")).collect();
        let busy = under.len();
        let Some(plan) = current_plan(run).filter(|_| busy < parallel) else { return false };
        let names: BTreeSet<String> = plan.tasks.iter().flat_map(|task| task.tools_required.clone()).collect();
        let stand: BTreeMap<&str, TaskStatus> =
            plan.tasks.iter().map(|task| (task.id.as_str(), task_status(run, task))).collect();
        let over = |id: &str| matches!(stand.get(id), Some(TaskStatus::Done));
        let order = task_block::execution_order(&plan.tasks, &names);
        let mut begun = Vec::new();
        for at in order.as_deref().unwrap_or_default() {
            let task = &plan.tasks[*at];
            let open = !over(&task.id) && stand.get(task.id.as_str()) != Some(&TaskStatus::Cancelled);
            let free = !run.orchestrator.started_tasks.contains(&task.id) && !under.contains(&task.id.as_str());
            if open && free && task.needs.iter().all(|need| over(need)) {
                begun.push((task.clone(), self.assigned_agent(run, task)));
            }
        }
        if let (Err(why), Some(run)) = (order, self.runs.get_mut(&id)) {
            // An earlier version accepted the plan, or another device changed the run.
            let words = format!("The plan can't be carried out: {why}. Change its note, and run it again.");
            run.orchestrator.stop_reason = Some((words, RunEnding::Failed));
        }
        // If all that is left is promised to tasks that are away, others are sent once one of these has ended.
        let is_own = |task: &DocId| self.children.get(task).is_some_and(|(lead, _)| *lead == id);
        let is_promised = self.sent_tasks.keys().any(is_own)
            && self.remaining_budget(id).is_some_and(|left| left < MIN_SENT_TASK_DOLLARS);
        begun.retain(|(task, _)| !is_promised || task.device.is_none());
        begun.truncate(parallel - busy);
        if begun.is_empty() {
            return false;
        }
        // Other tasks are stopped by their next call of a model; a task that is sent isn't.
        if begun.iter().any(|(task, _)| task.device.is_some())
            && let Some(why) = self.over_own_budget(id, 0.0)
        {
            if let Some(run) = self.runs.get_mut(&id) {
                run.orchestrator.stop_reason = Some((why, RunEnding::Budget));
            }
            return false;
        }
        let mut calls = Vec::new();
        for (task, agent) in begun {
            let goal = match &task.device {
                Some(_) => self.runs.get(&id).map_or_else(String::new, |run| self.sent_prompt(run, &task)),
                None => task.prompt(),
            };
            let is_by_model = self.runs.get(&id).is_some_and(|run| !is_planned_by_rules(run));
            let arguments = task_call_arguments(&task, (&agent, &goal), is_by_model);
            if let Some(run) = self.runs.get_mut(&id) {
                run.orchestrator.started_tasks.insert(task.id.clone());
            }
            self.update_task_status(turn, files, sync, id, &task.id, TaskStatus::Running);
            calls.push((BuiltInTool::AskAgent, arguments));
        }
        self.call_tools(turn, files, sync, workspace, id, calls);
        true
    }

    /// Starts a run that carries out a plan.
    pub(in crate::session) fn run_tasks(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        workspace: &WorkspaceState,
        (run, session, note): (DocId, DocId, DocId),
        (tasks, only): (Vec<TaskBlock>, Option<&str>),
        (budget, allow): (Option<f64>, Vec<String>),
    ) -> Result<(), CommandError> {
        let place = volumes.locate_file(note).map(|(volume, path)| (volume, path.to_owned()));
        let (volume, path) = place.ok_or_else(|| CommandError(format!("there is no note {note}")))?;
        let tasks = planner::tasks_left(tasks, only, budget).map_err(|why| CommandError(why.to_string()))?;
        let text = format!("Carry out the plan in {path}.");
        let question = RunRequest {
            run,
            session,
            volume,
            note: Some(note),
            parent: None,
            text,
            agent: Some(LEAD_AGENT.to_owned()),
            budget,
            allow: ToolPolicy::rules_for_question(&allow, run),
            button: None,
            recall: RecallOptions::default(),
            origin: RunOrigin::User,
            plan: Some(tasks),
            project: None,
            provider: None,
        };
        self.request_run(turn, volumes, workspace, question)
    }

    /// Cancels a task in its note and in the runs that work on its plan.
    pub(in crate::session) fn cancel_task(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        note: DocId,
        task: String,
    ) -> Result<(), CommandError> {
        files.set_task_status(turn, sync, note, task.clone(), TaskStatus::Cancelled)?;
        let works = |run: &&AgentRun| run.about.ending.is_none() && files.volumes.plan_note(run) == Some(note);
        let runs: Vec<DocId> = self.runs.values().filter(works).map(|run| run.id).collect();
        for id in runs {
            self.update_task_status(turn, files, sync, id, &task, TaskStatus::Cancelled);
            let Some(run) = self.runs.get(&id) else { continue };
            // The task may have been started before; only the pending call counts.
            let own = |pending: &&PendingCall| {
                pending.phase != CallPhase::Done && argument_text(&pending.call.arguments, "task") == task
            };
            let Some(call) = run.calls.iter().find(own).map(|pending| pending.call.id.clone()) else { continue };
            let child = self.children.iter().find(|(_, asked)| **asked == (id, call.clone()));
            if let Some(child) = child.map(|(child, _)| *child)
                && self.cancel_run(turn, files, sync, workspace, child).is_err()
            {
                // Another device is to carry it out, and nothing of it is here.
                let ending = (Some(RunEnding::Cancelled), "It was stopped.");
                self.on_child_ended(turn, files, sync, workspace, child, ending);
            }
        }
        Ok(())
    }

    /// Reopens a canceled task in its note and in runs that work on its plan, which start it again.
    pub(in crate::session) fn reopen_task(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        note: DocId,
        (task, failed): (String, bool),
    ) -> Result<(), CommandError> {
        let standing = if failed { TaskStatus::Failed } else { TaskStatus::Open };
        files.set_task_status(turn, sync, note, task.clone(), standing)?;
        let given_up = |todo: &TodoItem| todo.id == task && todo.status == TodoStatus::Cancelled;
        let works = |run: &&AgentRun| run.about.ending.is_none() && files.volumes.plan_note(run) == Some(note);
        let runs = self.runs.values().filter(works).filter(|run| run.todos.iter().any(given_up));
        let runs: Vec<DocId> = runs.map(|run| run.id).collect();
        for id in runs {
            if let Some(run) = self.runs.get_mut(&id) {
                run.orchestrator.started_tasks.remove(&task);
            }
            self.update_task_status(turn, files, sync, id, &task, standing);
            self.begin_free_tasks(turn, files, sync, workspace, id);
        }
        Ok(())
    }
}
