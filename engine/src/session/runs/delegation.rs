//! Work delegated to other agents. Each delegation is its own run, under the same policy and within the budget of the
//! run that requested it. The question and the answer are steps of the requesting run. Python agents run as one call
//! that the policy checks like any other code.

use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::runs::orchestrated_run::{current_plan, is_orchestrated};
use crate::session::state::FilesState;
use crate::session::state::agent_run::{AgentRun, CallPhase, PendingCall};
use crate::session::state::runs::{RunRecord, RunRequest, RunsState};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use agent::agent_definition::{self, AgentDefinition};
use agent::agent_registry::AgentRegistry;
use agent::deadline::earliest;
use agent::delegated_run::{self, DelegatedRunState, choose_delegated_run, requesting_run};
use agent::memory::{RecallOptions, ReplayMode};
use agent::mention_match::{MentionMatch, strip_code};
use agent::notice::Notice;
use agent::planner::TaskPlan;
use agent::policy::{Permission, PolicyRule};
use agent::sent_task::{SentPlanTask, sent_task_calls};
use agent::tool_catalog::BuiltInTool;
use agent::tool_job::{ToolJob, ToolOutcome};
use agent::tool_outcomes::{failed_outcome, string_argument};
use agent::{model_context, prompt_quote, task_block::TaskStatus};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use store::{DocId, RunEnding, RunOrigin, StepKind, TodoStatus, ToolCall};

/// Maximum depth of delegation.
const MAX_DELEGATION_DEPTH: usize = 3;
/// Maximum number of delegations per run.
const MAX_DELEGATIONS_PER_RUN: usize = 60;

/// Returns whether a step is a call of this tool.
fn is_call_of(kind: &StepKind, tool: BuiltInTool) -> bool {
    matches!(kind, StepKind::ToolCall { tool_name, .. } if tool.is_named(tool_name))
}

/// Returns whether the whole work of a run is one call, whose result is its answer.
pub(super) fn is_one_call(run: &AgentRun) -> bool {
    let python = |kind: &StepKind| is_call_of(kind, BuiltInTool::RunAgent);
    run.about.agent == agent_definition::BUTTON_AGENT || run.steps.iter().any(|step| python(&step.kind))
}

impl crate::session::state::runs::RunsState {
    /// Returns a run and the runs that it was delegated from: first the run itself, then its parent, and so on.
    pub fn ancestors(&self, run: DocId) -> Vec<DocId> {
        delegated_run::ancestors(&self.run_summaries, run)
    }

    /// Returns who began a run, or the run that it was delegated from; `None` if that run was deleted.
    pub(in crate::session) fn root_origin(&self, run: DocId) -> Option<RunOrigin> {
        self.ancestors(run).last().and_then(|root| self.run_summaries.get(root)).map(|line| line.origin)
    }

    /// Returns a run and all runs delegated from it, directly or indirectly.
    pub fn run_family(&self, run: DocId) -> Vec<DocId> {
        let mut all = vec![run];
        let handed = self.run_summaries.iter().filter(|(_, line)| requesting_run(line.origin).is_some());
        let is_below = |id: &DocId| *id != run && self.ancestors(*id).contains(&run);
        all.extend(handed.map(|(id, _)| *id).filter(is_below));
        all
    }

    /// Returns a run and all runs whose cost counts for its budget: those delegated from it, and tasks of its plan that
    /// other devices carry out, with what these delegated.
    pub fn paid_runs(&self, run: DocId) -> Vec<DocId> {
        let mut all = self.run_family(run);
        let read = all.iter().filter_map(|id| self.runs.get(id));
        let sent = read.flat_map(|run| sent_task_calls(run.id, &run.steps)).flat_map(|sent| self.run_family(sent.run));
        let sent: BTreeSet<DocId> =
            sent.filter(|id| !all.contains(id) && self.run_summaries.contains_key(id)).collect();
        all.extend(sent);
        all
    }

    /// Returns the cost in US dollars of a run with all runs that it pays for, and the expected cost of their pending
    /// calls.
    pub(super) fn family_cost(&self, run: DocId) -> (f64, f64) {
        let (mut spent, mut coming) = (0.0, 0.0);
        for id in self.paid_runs(run) {
            let line = self.run_summaries.get(&id);
            spent += line.map_or(0.0, |line| line.known_cost());
            // A call that the program didn't outlive is settled once its run is read.
            let lost = || line.and_then(|line| line.unsettled?.cost).unwrap_or(0.0);
            coming += self.runs.get(&id).map_or_else(lost, AgentRun::pending_cost);
        }
        (spent, coming)
    }
}

impl RunsState {
    /// Returns the definition of a run's agent. The user's own agents come before the built-in ones, and those before
    /// the project's.
    pub(super) fn definition_of(&self, run: &AgentRun) -> AgentDefinition {
        let known = self.known_agents(&run.project_agents).into_iter().find(|agent| agent.name == run.about.agent);
        let mut agent = known.unwrap_or_else(|| {
            let own = self.setup().map(|setup| setup.agents.as_slice()).unwrap_or_default();
            agent_definition::find(&run.about.agent, own)
        });
        if let Some(setup) = self.setup() {
            agent.apply_choice(&run.about.agent, &setup.config.agents);
        }
        agent
    }

    /// Returns all agents defined in Markdown. A project's agent can't replace another one with the same name.
    pub(super) fn known_agents(&self, crew: &AgentRegistry) -> Vec<AgentDefinition> {
        let mut all = self.setup().map(|setup| setup.agents.clone()).unwrap_or_default();
        for agent in agent_definition::built_in().into_iter().chain(crew.definitions.iter().cloned()) {
            if all.iter().all(|known| known.name != agent.name) {
                all.push(agent);
            }
        }
        // Agents that are disabled in the configuration get no work.
        all.retain(|agent| !self.is_switched_off(&agent.name));
        all
    }

    /// Lists the agents that a run may delegate to, for the model: their names and, with `whole`, their descriptions.
    /// Those of other volumes work only if the user names them.
    pub(super) fn describe_other_agents(&self, run: &AgentRun, whole: bool) -> String {
        let about = |name: String, words: &str| match words.lines().next().filter(|_| whole) {
            Some(words) => {
                format!("{} ({})", prompt_quote::single_line(&name, 60), prompt_quote::quote_inline(words, 200))
            }
            None => prompt_quote::single_line(&name, 60),
        };
        let mut all: Vec<String> = self
            .known_agents(&run.project_agents)
            .into_iter()
            .filter(|agent| {
                !crate::session::runs::orchestrated_run::is_orchestrator(&agent.name)
                    && agent.name != run.about.agent
                    && agent.program.is_none()
                    && agent.volume.is_none()
            })
            .map(|agent| about(agent.name, &agent.description))
            .collect();
        let python = run.project_agents.python.iter().filter(|agent| agent.name == agent.class);
        let python = python.filter(|agent| !self.is_switched_off(&agent.class));
        all.extend(python.map(|agent| about(agent.class.clone(), &agent.description)));
        all.join(", ")
    }

    /// Returns whether an agent with this name exists.
    pub(super) fn knows_agent(&self, crew: &AgentRegistry, name: &str) -> bool {
        crew.find_python_agent(name)
            .is_some_and(|agent| !self.is_switched_off(&agent.name) && !self.is_switched_off(name))
            || self.known_agents(crew).iter().any(|agent| agent.name == name)
    }

    /// Sets the agents of a run's project after they were loaded, and resolves the mentioned ones, unless the run
    /// started long ago (`again`).
    pub(super) fn set_project_agents(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        id: DocId,
        crew: AgentRegistry,
        again: bool,
    ) {
        let Some(run) = self.runs.get(&id) else { return };
        let mut crew = crew;
        if let Some(above) = requesting_run(run.about.origin).and_then(|above| self.runs.get(&above)) {
            // Agents created for this work may not be on disk yet.
            let new = |agent: &&AgentDefinition| crew.definitions.iter().all(|known| known.name != agent.name);
            let made: Vec<AgentDefinition> = above.project_agents.definitions.iter().filter(new).cloned().collect();
            crew.definitions.extend(made);
        }
        let mut named = None;
        if run.about.agent == "assistant" && !again {
            let known = |name: &String| self.knows_agent(&crew, name);
            named = model_context::mentions(&run.about.prompt).into_iter().find(known);
            let said = || model_context::mentions(&strip_code(&run.about.prompt)).into_iter();
            named = named.or_else(|| {
                said().find_map(|name| match self.match_mention(Some(&crew), volumes, run.about.volume, &name) {
                    MentionMatch::Agent(agent) => Some(agent),
                    MentionMatch::Note(_) | MentionMatch::Several(_) | MentionMatch::Nothing => None,
                })
            });
        }
        let new: Vec<String> =
            crew.problems.iter().filter(|problem| !turn.journal.problems.contains(problem)).cloned().collect();
        turn.journal.problems.extend(new);
        let Some(run) = self.runs.get_mut(&id) else { return };
        run.project_agents = Arc::new(crew);
        if let Some(name) = named {
            run.about.agent = name;
        }
    }

    /// Returns the single call of a run whose agent is a Python agent; `None` for other agents.
    pub(super) fn python_call(&self, id: DocId) -> Option<ToolCall> {
        let run = self.runs.get(&id)?;
        if self.known_agents(&run.project_agents).iter().any(|agent| agent.name == run.about.agent) {
            return None;
        }
        let agent = run
            .project_agents
            .find_python_agent(&run.about.agent)
            .filter(|_| self.knows_agent(&run.project_agents, &run.about.agent))?;
        let mut arguments = Map::new();
        for (key, value) in [("agent", agent.name.clone()), ("code", agent.hash()), ("task", run.about.prompt.clone())]
        {
            arguments.insert(key.to_owned(), Value::String(value));
        }
        Some(ToolCall { id: String::new(), name: BuiltInTool::RunAgent.to_string(), arguments })
    }

    /// Returns the job that runs a Python agent; `None` if its file isn't the one that was checked.
    pub(super) fn python_job(&self, id: DocId, root: PathBuf, arguments: &Map<String, Value>) -> Option<ToolJob> {
        let run = self.runs.get(&id)?;
        let agent = run.project_agents.find_python_agent(string_argument(arguments, "agent")).cloned();
        let agent = agent.filter(|agent| agent.hash() == string_argument(arguments, "code"))?;
        let session = self.sessions.get(&run.about.session);
        let messages = session.map(|session| model_context::context_messages(session.tree(), run.about.head));
        let mut messages = messages.unwrap_or_default();
        self.mask_messages(&mut messages);
        let code = agent.task_program(string_argument(arguments, "task"), &messages);
        Some(ToolJob::Python {
            root,
            code,
            seconds: agent::tool_outcomes::DEFAULT_TOOL_TIMEOUT_SECS
                .min((self.watchdog_limits(run).tool / 1_000).max(1)),
            web: None,
            grants: store::ToolGrants::default(),
            packages: None,
        })
    }

    /// Delegates work: starts a run of another agent, whose answer becomes the result of the call. A run that an
    /// interrupted call began for the same work is continued.
    pub(super) fn delegate(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        (id, call): (DocId, &str),
        arguments: &Map<String, Value>,
    ) -> Option<ToolOutcome> {
        let (name, goal) =
            (string_argument(arguments, "agent").trim_start_matches('@'), string_argument(arguments, "goal"));
        let run = self.runs.get(&id)?;
        if self.ancestors(id).len() > MAX_DELEGATION_DEPTH {
            return Some(failed_outcome("this work was handed on too often already; do it yourself"));
        }
        let asks = |kind: &StepKind| is_call_of(kind, BuiltInTool::AskAgent);
        if run.steps.iter().filter(|step| asks(&step.kind)).count() > MAX_DELEGATIONS_PER_RUN {
            return Some(failed_outcome(format!("a run hands work on at most {MAX_DELEGATIONS_PER_RUN} times")));
        }
        if !self.knows_agent(&run.project_agents, name) {
            return Some(failed_outcome(self.agent_unavailable_reason(&run.project_agents, name).unwrap_or_default()));
        }
        // The delegated run inherits what the user has allowed this run, and no more.
        let leave = |rule: &&PolicyRule| rule.within == Some(id) && rule.word == Permission::Allow;
        let device = string_argument(arguments, "device").to_owned();
        let calls = sent_task_calls(id, &run.steps);
        let sent = calls.iter().find(|sent| sent.call == call);
        let task = string_argument(arguments, "task");
        let is_planned = |plan: TaskPlan| plan.tasks.iter().any(|known| known.id == task && known.device.is_some());
        let sent =
            sent.filter(|_| !device.is_empty() && is_orchestrated(run) && current_plan(run).is_some_and(is_planned));
        if !device.is_empty() && sent.is_none() {
            return Some(failed_outcome("only tasks of a plan are sent to other devices; ask again without `device`"));
        }
        let is_resumed = sent.is_some_and(|sent| calls.iter().any(|one| one.run == sent.run && one.call != sent.call));
        let is_open = |call: &String| {
            run.calls.iter().any(|pending| pending.call.id == *call && pending.phase != CallPhase::Done)
        };
        let is_held = self.holder_policy(id).is_some();
        let state_of = |child: DocId, session: DocId| match self.run_summaries.get(&child) {
            _ if self.children.get(&child).is_some_and(|(_, call)| is_open(call)) => DelegatedRunState::Unusable,
            None => DelegatedRunState::Unknown,
            Some(line)
                if workspace.is_own_device(line.device.as_ref())
                    || is_held && delegated_run::is_continued_elsewhere(line, run.about.volume, arguments) =>
            {
                DelegatedRunState::from_summary(line, id, session, goal)
            }
            Some(_) => DelegatedRunState::Unusable,
        };
        let chosen = match sent {
            Some(sent) => Some([sent.run, sent.session]),
            None => choose_delegated_run(id, &run.steps, arguments, state_of),
        };
        let mut bytes = [[0; 16]; 2];
        bytes.iter_mut().for_each(|bytes| turn.rng.fill_bytes(bytes));
        let [child, session] = chosen.unwrap_or_else(|| bytes.map(DocId::random));
        let is_begun = sent.is_none() && self.run_summaries.contains_key(&child);
        let handed = |rule: &PolicyRule| PolicyRule { within: Some(child), ..rule.clone() };
        let allow = self.rules.iter().filter(leave).map(handed).collect();
        let budget = arguments.get("budget").and_then(Value::as_f64);
        // Another device doesn't know what the plan spends meanwhile: tasks that are sent at once share what is left.
        let waits = |pending: &&PendingCall| {
            let (phase, device) = (&pending.phase, string_argument(&pending.call.arguments, "device"));
            !matches!(phase, CallPhase::Running { .. } | CallPhase::Done) && !device.is_empty()
        };
        let sharers = run.calls.iter().filter(waits).count() + 1;
        let left = if device.is_empty() { None } else { self.remaining_budget(id) };
        let left = left.map(|left| left / sharers as f64);
        let question = RunRequest {
            run: child,
            session,
            volume: run.about.volume,
            note: run.about.note,
            parent: None,
            text: goal.to_owned(),
            agent: Some(name.to_owned()),
            budget: budget.into_iter().chain(left).reduce(f64::min),
            allow,
            button: None,
            recall: RecallOptions {
                mode: ReplayMode::from_name(string_argument(arguments, "mode")).unwrap_or_default(),
                without: run.run_memory.recall.without.clone(),
                deadline: earliest(run.about.deadline, string_argument(arguments, "deadline"), turn.now.0),
            },
            origin: RunOrigin::Agent { run: id },
            plan: None,
            project: run.project.clone().or_else(|| crate::session::runs::orchestrated_run::orchestrated_project(run)),
            provider: run.about.provider.clone(),
        };
        self.children.insert(child, (id, call.to_owned()));
        if !device.is_empty() {
            self.sent_tasks.insert(child, SentPlanTask { device, request: question, is_resumed });
            self.revision += 1;
            return None;
        }
        if is_begun {
            self.rules.extend(question.allow);
            if self.runs.contains_key(&child) {
                self.rejoin_run(turn, files, sync, workspace, child);
            } else {
                let _ = self.open_run(turn, child); // it's listed, so it can be opened
            }
            return None;
        }
        if let Err(CommandError(why)) = self.request_run(turn, &files.volumes, workspace, question) {
            self.children.remove(&child);
            return Some(failed_outcome(why));
        }
        None
    }

    /// Reports the end of a delegated run to the run that requested it.
    pub(super) fn on_child_ended(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        child: DocId,
        (ending, said): (Option<RunEnding>, &str),
    ) {
        let Some((id, call)) = self.children.remove(&child) else { return };
        let short: String = child.to_string().chars().take(8).collect();
        let sent = self.sent_tasks.remove(&child).and_then(|sent| sent.request.agent);
        let agent = self.runs.get(&child).map(|run| run.about.agent.clone()).or(sent).unwrap_or_default();
        let success = ending == Some(RunEnding::Done);
        let text = if success { said.to_owned() } else { format!("{agent} came to no answer (run {short}): {said}") };
        let Some(run) = self.runs.get_mut(&id) else { return };
        if ending == Some(RunEnding::Budget) {
            run.orchestrator.stop_reason = Some((said.to_owned(), RunEnding::Budget));
        }
        let pending = run.calls.iter().find(|pending| pending.call.id == call);
        let task =
            pending.map(|pending| string_argument(&pending.call.arguments, "task").to_owned()).unwrap_or_default();
        if !task.is_empty() {
            let given_up = run.todos.iter().any(|todo| todo.id == task && todo.status == TodoStatus::Cancelled);
            let standing = if success { TaskStatus::Done } else { TaskStatus::Failed };
            if !given_up {
                self.update_task_status(turn, files, sync, id, &task, standing);
            }
        }
        self.on_tool_done(
            turn,
            files,
            sync,
            workspace,
            (id, &call),
            ToolOutcome { success, text, ..ToolOutcome::default() },
        );
    }

    /// Updates the status of a task in the run's todos and the plan's note, and publishes a notice.
    pub(super) fn update_task_status(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        id: DocId,
        task: &str,
        standing: TaskStatus,
    ) {
        let Some(run) = self.runs.get(&id) else { return };
        let mut todos = run.todos.clone();
        for todo in todos.iter_mut().filter(|todo| todo.id == task) {
            todo.status = match standing {
                TaskStatus::Open | TaskStatus::Failed => TodoStatus::Pending,
                TaskStatus::Running => TodoStatus::InProgress,
                TaskStatus::Done => TodoStatus::Completed,
                TaskStatus::Cancelled => TodoStatus::Cancelled,
            };
        }
        let note = files.volumes.plan_note(run);
        self.record_run(turn, sync, id, RunRecord { todos: Some(todos), ..RunRecord::default() });
        if let Some(note) = note {
            // A note that can't be read stays unchanged.
            let _ = files.set_task_status(turn, sync, note, task.to_owned(), standing);
        }
        let (task, status) = (task.to_owned(), standing.as_str().to_owned());
        turn.notify(Notice::Task { run: id, task, status });
    }

    /// Ends the delegated runs of a run that ended. Running tasks of its plan become open again.
    pub(super) fn stop_children(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) {
        let own = self.children.iter().filter(|(_, (asker, _))| *asker == id);
        let own: Vec<(DocId, String)> = own.map(|(child, (_, call))| (*child, call.clone())).collect();
        for (child, call) in own {
            self.children.remove(&child);
            self.sent_tasks.remove(&child);
            let _ = self.cancel_run(turn, files, sync, workspace, child); // it refuses only where it is over
            let Some(run) = self.runs.get(&id) else { continue };
            let asks = |step: &store::ExecutionStep| match &step.kind {
                StepKind::ToolCall { tool_call_id, params, .. } if *tool_call_id == call => {
                    Some(string_argument(params, "task").to_owned())
                }
                _ => None,
            };
            let task = run.steps.iter().rev().find_map(asks).unwrap_or_default();
            if run.todos.iter().any(|todo| todo.id == task && todo.status == TodoStatus::InProgress) {
                self.update_task_status(turn, files, sync, id, &task, TaskStatus::Open);
            }
        }
    }

    /// Returns what is left in US dollars of the budgets of a run and its parent runs; `None` if none has one. What
    /// tasks that are away may still spend isn't left.
    pub(super) fn remaining_budget(&self, id: DocId) -> Option<f64> {
        let reserved = |(task, sent): (&DocId, &SentPlanTask)| {
            // A task that was sent before a restart has the budget that its worker knows.
            let known = self.run_summaries.get(task).and_then(|line| line.budget);
            Some((known.or(sent.request.budget)? - self.family_cost(*task).0).max(0.0))
        };
        let left = |above: DocId| {
            let budget = self.runs.get(&above)?.about.budget?;
            let (spent, coming) = self.family_cost(above);
            let is_below = |(lead, _): &(DocId, String)| self.ancestors(*lead).contains(&above);
            let away = self.sent_tasks.iter().filter(|(task, _)| self.children.get(*task).is_some_and(is_below));
            let promised: f64 = away.filter_map(reserved).sum();
            Some((budget - spent - coming - promised).max(0.0))
        };
        self.ancestors(id).into_iter().filter_map(left).reduce(f64::min)
    }

    /// Returns why a run may not spend `more` US dollars of its own or a parent run's budget, as a sentence; `None` if
    /// it may. The pending cost of related runs counts as spent.
    pub(super) fn over_own_budget(&self, id: DocId, more: f64) -> Option<String> {
        for above in self.ancestors(id) {
            let Some(budget) = self.runs.get(&above).and_then(|run| run.about.budget) else { continue };
            let (spent, coming) = self.family_cost(above);
            if spent + coming >= budget || spent + coming + more > budget {
                return Some(agent::budget::over_run_budget_reason(above == id, spent, budget, more));
            }
        }
        None
    }
}
